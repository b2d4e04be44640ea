/* source.c - the model with which training or sampling begins: a model's file, or what a run has left.  Only the folder
 * that keeps runs can read the latter (struct archive).
 */
#include "archive.h"
#include "settings_parts.h"
#include "trainer/model_files/model_files.h"

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
        refuse_if_foreign_folder(path);
    source.path = model ? model : copy_string(path);
    source.config = read_config(source.path, heads);
    return source;
}

void open_init(void)
{
    own_settings.source = open_source(own_settings.init, own_settings.heads);
    if (strcmp(own_settings.source.path, own_settings.init) != 0) /* a folder's model */
        claim_input("--init", own_settings.source.path);
    if (!own_settings.source.checkpoint)
        claim_weights("--init", own_settings.source.path);
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
