/* other_form.c - asks the folders that register another form of a checkpoint: whose is this file? */
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

void free_other_form(struct other_form *other_form)
{
    for (size_t i = 0; i < other_form->n_damage; i++)
        free(other_form->damage[i]);
    free(other_form->damage);
    free(other_form);
}
