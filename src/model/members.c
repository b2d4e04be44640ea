/* members.c - the members of a tensor-parallel group, each built as if it were alone.
 *
 * Where a member needs what the others have, it calls a collective, and all members call the same ones in the same
 * order.  They are built one after another, so the collective's tasks come when the last member calls it: then all
 * tensors that take part are known.  In the list they belong in front of what the other members did next.  So in the
 * end the tasks are put in order: of each member up to the first meeting, that collective's, of each member up to the
 * second, ...
 *
 *     member 0   a0 | b0          meets member 1 at |          list   a0 a1 | b0 b1
 *     member 1   a1 | b1
 */
#include "model.h"

typedef void collective(struct step *s, const char *name, struct tensor *const *x, int n);
struct meeting {
    struct tensor *x; /* what the member brings */
    size_t end;       /* of its tasks up to here, in the list */
};

int first_member(struct build *b)
{
    b->n_met = b->n_meetings = 0;
    b->group_begin = b->step->n;
    return b->member = 0;
}

/* The tasks between two meetings, member by member. */
static void put_in_order(struct build *b)
{
    struct step *s = b->step;
    size_t at = b->group_begin;
    struct task **built = copy_bytes(s->task + at, (s->n - at) * sizeof *built);
    for (size_t i = 0; i < b->n_meetings; i++)
        for (size_t m = i; m < b->n_met; m += b->n_meetings)
            for (size_t k = m ? b->met[m - 1].end : b->group_begin; k < b->met[m].end; k++) {
                s->task[at] = built[k - b->group_begin];
                s->task[at]->index = at;
                at++;
            }
    free(built);
}

int next_member(struct build *b)
{
    *APPEND(b->met, b->n_met, b->cap_met) = (struct meeting){.end = b->step->n};
    if (b->member == 0)
        b->n_meetings = b->n_met;
    CHECK(b->n_met == b->n_meetings * (size_t)(b->member + 1), "member %d comes to %zu meetings, the first to %zu",
          b->member, b->n_met - b->n_meetings * (size_t)b->member, b->n_meetings);
    if (++b->member < b->model->mesh->tp)
        return b->member;
    put_in_order(b);
    return -1;
}

/* When the last member has come, all of them perform what they came for. */
static void meet(struct build *b, const char *name, struct tensor *x, collective *perform)
{
    int n = b->model->mesh->tp;
    size_t nth = b->n_met - (size_t)b->member * b->n_meetings;
    *APPEND(b->met, b->n_met, b->cap_met) = (struct meeting){.x = x};
    if (b->member == n - 1) {
        enum role role = b->step->stamp.role;
        struct tensor **all = allocate((size_t)n, sizeof *all);
        for (int k = 0; k < n; k++)
            all[k] = b->met[(size_t)k * b->n_meetings + nth].x;
        b->step->stamp.role = ROLE_SEND;
        perform(b->step, name, all, n);
        b->step->stamp.role = role;
        free(all);
    }
    b->met[b->n_met - 1].end = b->step->n;
}

void all_reduce(struct build *b, const char *name, struct tensor *x) { meet(b, name, x, add_all_reduce); }

void all_gather(struct build *b, const char *name, struct tensor *x) { meet(b, name, x, add_all_gather); }
