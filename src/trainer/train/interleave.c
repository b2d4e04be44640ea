/* interleave.c - puts the forwards of several data-parallel ranks side by side in a list.
 *
 *     before   rank 0: layer 0, 1, 2             rank 1: layer 0, 1, 2
 *     after    layer 0: rank 0, 1     layer 1: rank 0, 1     layer 2: rank 0, 1
 *
 * The list for training and that for evaluation are both built with it, so it has a file of its own.
 */
#include "train_parts.h"

/* Appends to positions[0 .. n) those from `begin` on, before `end`, whose tasks are of the same layer as the task
 * at `begin`.  Returns the new n. */
static size_t append_layer(const struct list *list, size_t begin, size_t end, size_t *positions, size_t n)
{
    for (size_t i = begin; i < end && list->tasks[i]->layer == list->tasks[begin]->layer; i++)
        positions[n++] = i;
    return n;
}

void interleave_ranks(struct list *list, const size_t *begin, int ranks)
{
    size_t first = begin[0], n = begin[ranks] - first;
    size_t *positions = allocate(n, sizeof *positions);
    size_t *next = copy_bytes(begin, (size_t)ranks * sizeof *next); /* by rank: its first that is not placed yet */
    size_t n_placed = 0;
    while (n_placed < n)
        for (int k = 0; k < ranks; k++) {
            size_t n_before = n_placed;
            n_placed = append_layer(list, next[k], begin[k + 1], positions, n_placed);
            next[k] += n_placed - n_before;
        }
    permute_tasks(list, first, positions, n);
    free(positions);
    free(next);
}
