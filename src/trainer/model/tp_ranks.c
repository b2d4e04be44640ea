/* tp_ranks.c - the ranks of a tensor-parallel group, each built as if it were alone.
 *
 * Where a rank needs what the others have, it calls a collective.  All ranks call the same collectives in the same
 * order: such a call is a *rendezvous*.  The ranks are built one after another, so a collective's tasks are added when
 * the last rank calls it, since only then all tensors that take part are known.  In the list they belong before what
 * the other ranks do next.  So in the end the tasks are put in order: those of each rank up to the first rendezvous,
 * those of its collective, those of each rank up to the second rendezvous, ...
 *
 *     rank 0   a0 | b0          meets rank 1 at |          list   a0 a1 | b0 b1
 *     rank 1   a1 | b1
 */
#include "model.h"

typedef void collective(struct step *s, const char *name, struct tensor *const *x, int n);
struct rendezvous {
    struct tensor *x; /* what the rank brings */
    size_t end;       /* length of the list when the rank has met the others */
};

int first_tp_rank(struct build *b)
{
    b->n_met = b->n_rendezvous = 0;
    b->group_begin = b->step->n;
    b->tp_rank = 0;
    return 0;
}

/* Puts the group's tasks in order: those between two rendezvous, rank by rank. */
static void order_group(struct build *b)
{
    struct step *s = b->step;
    size_t at = b->group_begin;
    struct task **built = copy_bytes(s->task + at, (s->n - at) * sizeof *built);
    for (size_t i = 0; i < b->n_rendezvous; i++)
        for (size_t m = i; m < b->n_met; m += b->n_rendezvous) {
            size_t begin = m ? b->met[m - 1].end : b->group_begin;
            for (size_t k = begin; k < b->met[m].end; k++) {
                s->task[at] = built[k - b->group_begin];
                s->task[at]->index = at;
                at++;
            }
        }
    free(built);
}

int next_tp_rank(struct build *b)
{
    *APPEND(b->met, b->n_met, b->cap_met) = (struct rendezvous){.end = b->step->n};
    if (b->tp_rank == 0)
        b->n_rendezvous = b->n_met;
    CHECK(b->n_met == b->n_rendezvous * (size_t)(b->tp_rank + 1),
          "tp_rank %d comes to %zu rendezvous, the first to %zu", b->tp_rank,
          b->n_met - b->n_rendezvous * (size_t)b->tp_rank, b->n_rendezvous);
    b->tp_rank++;
    if (b->tp_rank < b->model->mesh->tp)
        return b->tp_rank;
    order_group(b);
    return NONE;
}

/* A rank comes to a rendezvous with x.  When the last rank has come, the collective's tasks are added. */
static void meet(struct build *b, const char *name, struct tensor *x, collective *perform)
{
    int n = b->model->mesh->tp;
    size_t nth = b->n_met - (size_t)b->tp_rank * b->n_rendezvous;
    *APPEND(b->met, b->n_met, b->cap_met) = (struct rendezvous){.x = x};
    if (b->tp_rank == n - 1) {
        enum role role = b->step->tags.role;
        struct tensor **all = allocate((size_t)n, sizeof *all);
        for (int k = 0; k < n; k++)
            all[k] = b->met[(size_t)k * b->n_rendezvous + nth].x;
        b->step->tags.role = ROLE_SEND;
        perform(b->step, name, all, n);
        b->step->tags.role = role;
        free(all);
    }
    b->met[b->n_met - 1].end = b->step->n;
}

void all_reduce(struct build *b, const char *name, struct tensor *x) { meet(b, name, x, add_all_reduce); }

void all_gather(struct build *b, const char *name, struct tensor *x) { meet(b, name, x, add_all_gather); }
