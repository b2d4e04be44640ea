/* save_folder.c - --save's folder: that it is ours alone, can be written, and holds no model of other sizes.
 *
 * All of this is looked at before the first step: better to learn it then than after training.
 */
#include "train_parts.h"
#include "trainer/model_files/model_files.h"
#include "trainer/settings/archive.h"

#include <unistd.h>

_Noreturn void refuse_other_sizes(const char *path, const struct config *its)
{
    char sizes[SIZES_BYTES];
    fail(EXIT_USAGE, "%s has another model (%s): give --save another folder, or remove that model first", path,
         describe_sizes(sizes, its));
}

void check_saved(const struct settings *settings, const struct config *ours)
{
    const struct archive *archive = find_archive();
    if (!settings->save)
        return;
    if (archive)
        archive->expect_sizes(settings->save, ours);
    char *model = saved_model(settings);
    if (access(model, F_OK) == 0) {
        const struct config old = read_config(model, ours->heads);
        if (!same_sizes(&old, ours))
            refuse_other_sizes(model, &old);
    }
    free(model);
}

void open_folder_of_save(struct trainer *trainer)
{
    const char *folder = trainer->settings->save;
    char *file = format_string("%s/.try", folder);
    make_folder(folder); /* --log and others may lie in it */
    abandon(open_writer(file));
    free(file);
    trainer->extra.lock = lock_folder("--save", folder);
    const struct archive *archive = find_archive();
    if (archive) /* asked again: meanwhile another process may have written a run there */
        archive->expect_outside("--save", folder);
}
