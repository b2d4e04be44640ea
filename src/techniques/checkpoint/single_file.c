/* single_file.c - asks the folders that register another form of a checkpoint: whose is this file? */
#include "checkpoint.h"
#include "trainer/base/module.h"

const struct checkpoint_form *find_checkpoint_form(const char *path)
{
    for (size_t i = 0; i < n_modules; i++) {
        const struct checkpoint_form *form = modules[i]->checkpoint_form;
        if (form && form->is_ours(path))
            return form;
    }
    return NULL;
}

void free_single_file(struct single_file *single_file)
{
    for (size_t i = 0; i < single_file->n_damage; i++)
        free(single_file->damage[i]);
    free(single_file->damage);
    free(single_file);
}
