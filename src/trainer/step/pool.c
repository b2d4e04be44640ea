/* pool.c - the pool of all tensors of a machine. */
#include "list.h"

struct pool *new_pool(struct machine *machine)
{
    struct pool *pool = allocate(1, sizeof *pool);
    pool->machine = machine;
    return pool;
}

void drop_tensors(struct pool *pool, size_t n)
{
    for (; pool->n > n; pool->n--) {
        struct tensor *last = pool->tensors[pool->n - 1];
        if (last->storage != last)
            last->storage->next_view = last->next_view;
        free(last);
    }
}

void free_pool(struct pool *pool)
{
    drop_tensors(pool, 0);
    for (int i = 0; i <= pool->machine->n_devices; i++)
        free_slabs(pool->machine, &pool->machine->devices[i]);
    free(pool->tensors);
    free(pool);
}
