/* store.c - asks the folders that register another form of a checkpoint (struct store): whose is this file? */
#include "store.h"
#include "trainer/base/module.h"

const struct store *find_store(const char *path)
{
    for (size_t i = 0; i < n_modules; i++) {
        const struct store *store = modules[i]->store;
        if (store && store->is_ours(path))
            return store;
    }
    return NULL;
}

void free_in_store(struct in_store *stored)
{
    for (size_t i = 0; i < stored->n_damage; i++)
        free(stored->damage[i]);
    free(stored->damage);
    free(stored);
}
