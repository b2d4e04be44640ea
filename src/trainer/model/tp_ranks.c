/* tp_ranks.c - the ranks of a tensor-parallel group, each built as if it were alone.
 *
 * Where a rank needs what the other ranks have, it calls a collective.  All ranks call the same collectives in the same
 * order: such a call is a *rendezvous*.  The ranks are built one after another, and a collective needs the tensors of
 * all of them.  So its tasks are added when the last rank calls it.  In the list these tasks belong before what the
 * other ranks do next.  So in the end the tasks are put in order: those of each rank up to the first rendezvous, those
 * of its collective, those of each rank up to the second rendezvous, ...
 *
 *     rank 0   a0 | b0          meets rank 1 at |          list   a0 a1 | b0 b1
 *     rank 1   a1 | b1
 */
#include "model.h"

typedef void collective(struct list *list, const char *name, struct tensor *const *x, int n);
struct rendezvous {
    struct tensor *x; /* what the rank brings; NULL: nothing, since it has no further rendezvous */
    /* Positions in the list: those of the rank's tasks since its last rendezvous; those of the last rank include the
     * collective's. */
    size_t begin, end;
};

void begin_tp_rank(struct builder *b, int tp_rank)
{
    b->tp_rank = tp_rank;
    if (tp_rank > 0)
        return;
    b->n_met = 0;
    b->n_rendezvous = 0;
    b->met_end = b->list->n;
}

static struct rendezvous *rendezvous_of(const struct builder *b, int tp_rank, size_t nth)
{
    return &b->met[(size_t)tp_rank * b->n_rendezvous + nth];
}

/* Notes that the rank has met the others: the list so far is its part, from the end of the part before on. */
static void end_part(struct builder *b)
{
    struct rendezvous *rendezvous = &b->met[b->n_met - 1];
    rendezvous->begin = b->met_end;
    rendezvous->end = b->list->n;
    b->met_end = rendezvous->end;
}

/* Appends to `positions`, which has n of them, those of a part.  Returns how many it has then. */
static size_t append_part(const struct rendezvous *part, size_t *positions, size_t n)
{
    for (size_t i = part->begin; i < part->end; i++)
        positions[n++] = i;
    return n;
}

/* Puts the group's tasks in order: those between two rendezvous, rank by rank. */
static void order_group(struct builder *b)
{
    size_t first = rendezvous_of(b, 0, 0)->begin;
    size_t *positions = allocate(b->list->n - first, sizeof *positions);
    size_t n = 0;
    for (size_t nth = 0; nth < b->n_rendezvous; nth++)
        for (int k = 0; k < b->model->mesh->tp; k++)
            n = append_part(rendezvous_of(b, k, nth), positions, n);
    permute_tasks(b->list, first, positions, n);
    free(positions);
}

static void add_rendezvous(struct builder *b, struct tensor *x)
{
    GROW(b->met, b->cap_met, b->n_met + 1);
    b->met[b->n_met++] = (struct rendezvous){.x = x};
}

void end_tp_rank(struct builder *b)
{
    add_rendezvous(b, NULL);
    end_part(b);
    if (b->tp_rank == 0)
        b->n_rendezvous = b->n_met;
    CHECK(b->n_met == b->n_rendezvous * (size_t)(b->tp_rank + 1),
          "tp_rank %d has %zu rendezvous, the first one has %zu", b->tp_rank,
          b->n_met - b->n_rendezvous * (size_t)b->tp_rank, b->n_rendezvous);
    if (b->tp_rank == b->model->mesh->tp - 1)
        order_group(b);
}

/* The rank brings x to a rendezvous.  When the last rank has brought its own, the collective's tasks are added. */
static void meet(struct builder *b, const char *name, struct tensor *x, collective *perform)
{
    int n = b->model->mesh->tp;
    size_t nth = b->n_met - (size_t)b->tp_rank * b->n_rendezvous;
    add_rendezvous(b, x);
    if (b->tp_rank == n - 1) {
        enum role role = b->list->tags.role;
        struct tensor **all = allocate_each(n, sizeof *all);
        for (int k = 0; k < n; k++)
            all[k] = rendezvous_of(b, k, nth)->x;
        b->list->tags.role = ROLE_SEND;
        perform(b->list, name, all, n);
        b->list->tags.role = role;
        free(all);
    }
    end_part(b);
}

void all_reduce(struct builder *b, const char *name, struct tensor *x) { meet(b, name, x, add_all_reduce); }

void all_gather(struct builder *b, const char *name, struct tensor *x) { meet(b, name, x, add_all_gather); }
