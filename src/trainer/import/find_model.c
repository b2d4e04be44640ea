/* find_model.c - finds a model by the names in a folder, and refuses models in forms that are not read here. */
#include "import.h"
#include "trainer/base/module.h"

char *model_in_folder(const char *folder)
{
    static const char *const models[] = {MODEL_FILE, MODEL_INDEX};
    for (size_t i = 0; i < COUNT(models); i++) {
        char *path = join_path(folder, models[i]);
        if (exists(path)) /* also a link to what has not been fetched: opening it says so */
            return path;
        free(path);
    }
    return NULL;
}

void refuse_if_foreign_file(const char *path)
{
    const struct formats *formats = find_formats();
    if (formats)
        formats->refuse_if_foreign_file(path);
}

void refuse_if_foreign_folder(const char *folder)
{
    const struct formats *formats = find_formats();
    if (formats)
        formats->refuse_if_foreign_folder(folder);
}
