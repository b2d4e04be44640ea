/* source.c - the model with which training or sampling begins: a model's file, or what a run has left.  Only the folder
 * that keeps runs can read the latter (struct archive).
 */
#include "archive.h"

#include <unistd.h>

struct source open_source(const char *path, int heads)
{
    struct source source = {0};
    if (!exists(path))
        fail(EXIT_IO,
             "cannot open %s: nothing of that name is here; to use a model from the web, fetch its "
             "model.safetensors and config.json into a folder, and name that folder",
             path);
    const struct archive *archive = find_archive();
    if (archive && archive->open(path, &source))
        return source;
    char *model = model_in_folder(path);
    if (!model && is_folder(path))
        refuse_foreign_folder(path);
    source.path = model ? model : copy_string(path);
    source.config = read_config(source.path, heads);
    return source;
}

void close_source(struct source *source)
{
    if (source->checkpoint)
        the_archive()->close(source);
    free(source->path);
}

void init_from_source(struct model *model, const struct source *source)
{
    if (source->checkpoint)
        the_archive()->load(model, source, LOAD_PARAMETERS);
    else
        init_from_file(model, source->path);
}

char *saved_model(const struct settings *settings) { return format_string("%s/" MODEL_FILE, settings->save); }

void check_saved(const struct settings *settings, const struct config *ours)
{
    const struct archive *archive = find_archive();
    if (!settings->save)
        return;
    if (archive)
        archive->compare(settings->save, ours);
    char *model = saved_model(settings);
    if (access(model, F_OK) == 0) {
        const struct config old = read_config(model, ours->heads);
        if (!same_sizes(&old, ours))
            refuse_other_sizes(model, &old);
    }
    free(model);
}

_Noreturn void refuse_other_sizes(const char *path, const struct config *its)
{
    char sizes[160];
    fail(EXIT_USAGE, "%s is another model (%s): --save to another folder, or remove it first", path,
         describe_sizes(sizes, its));
}
