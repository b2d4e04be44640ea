/* tp_ranks.c - the ranks of a tensor-parallel group, each built as if it were alone.
 *
 * Where a rank needs what the others have, it calls a collective, and all ranks call the same ones in the same
 * order.  They are built one after another, so the collective's tasks come when the last rank calls it: then all
 * tensors that take part are known.  In the list they belong in front of what the other ranks did next.  So in the
 * end the tasks are put in order: of each rank up to the first rendezvous, that collective's, of each rank up to
 * the second, ...
 *
 *     rank 0   a0 | b0          meets rank 1 at |          list   a0 a1 | b0 b1
 *     rank 1   a1 | b1
 */
#include "model.h"

typedef void collective(struct step *s, const char *name, struct tensor *const *x, int n);
struct rendezvous {
    struct tensor *x; /* what the rank brings */
    size_t end;       /* of its tasks up to here, in the list */
};

int first_tp_rank(struct build *b)
{
    b->n_met = b->n_rendezvous = 0;
    b->group_begin = b->step->n;
    return b->tp_rank = 0;
}

int next_tp_rank(struct build *b)
{
    *APPEND(b->met, b->n_met, b->cap_met) = (struct rendezvous){.end = b->step->n};
    if (b->tp_rank == 0)
        b->n_rendezvous = b->n_met;
    CHECK(b->n_met == b->n_rendezvous * (size_t)(b->tp_rank + 1),
          "tp_rank %d comes to %zu rendezvous, the first to %zu", b->tp_rank,
          b->n_met - b->n_rendezvous * (size_t)b->tp_rank, b->n_rendezvous);
    if (++b->tp_rank < b->model->mesh->tp)
        return b->tp_rank;
    struct step *s = b->step; /* the tasks between two rendezvous, rank by rank */
    size_t at = b->group_begin;
    struct task **built = copy_bytes(s->task + at, (s->n - at) * sizeof *built);
    for (size_t i = 0; i < b->n_rendezvous; i++)
        for (size_t m = i; m < b->n_met; m += b->n_rendezvous)
            for (size_t k = m ? b->met[m - 1].end : b->group_begin; k < b->met[m].end; k++) {
                s->task[at] = built[k - b->group_begin];
                s->task[at]->index = at;
                at++;
            }
    free(built);
    return -1;
}

/* When the last rank has come, all of them perform what they came for. */
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
