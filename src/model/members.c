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
    struct tensor *x; /* what the member brings: a tensor, or a product in sections */
    collective *perform;
    struct gemm product;
    int sections;
    size_t end; /* of its tasks up to here, in the list */
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
static void meet(struct build *b, const char *name, struct meeting mine,
                 void (*perform)(struct build *, const char *, const struct meeting *const *all))
{
    int n = b->model->mesh->tp;
    size_t nth = b->n_met - (size_t)b->member * b->n_meetings;
    const struct meeting **all = allocate((size_t)n, sizeof *all);
    *APPEND(b->met, b->n_met, b->cap_met) = mine;
    for (int k = 0; k <= b->member; k++)
        all[k] = &b->met[(size_t)k * b->n_meetings + nth];
    if (b->member == n - 1)
        perform(b, name, all);
    b->met[b->n_met - 1].end = b->step->n;
    free(all);
}

/* ---- collectives ----------------------------------------------------------------------------------------------- */

static void perform_collective(struct build *b, const char *name, const struct meeting *const *all)
{
    int n = b->model->mesh->tp;
    enum role role = b->step->stamp.role;
    struct tensor **x = allocate((size_t)n, sizeof *x);
    for (int k = 0; k < n; k++)
        x[k] = all[k]->x;
    b->step->stamp.role = ROLE_SEND;
    all[0]->perform(b->step, name, x, n);
    b->step->stamp.role = role;
    free(x);
}

void all_reduce(struct build *b, const char *name, struct tensor *x)
{
    meet(b, name, (struct meeting){.x = x, .perform = add_all_reduce}, perform_collective);
}

void all_gather(struct build *b, const char *name, struct tensor *x)
{
    meet(b, name, (struct meeting){.x = x, .perform = add_all_gather}, perform_collective);
}

/* ---- sums of products ------------------------------------------------------------------------------------------ */

/* Section i of a product's k: columns of A, and of B rows (NN) or columns (NT). */
static struct gemm section_of(const struct meeting *m, int i)
{
    struct gemm g = m->product;
    g.k /= m->sections;
    g.a.base += (size_t)(i * g.k);
    g.b.base += (size_t)(i * g.k) * (size_t)(g.form == GEMM_NN ? g.b.ld : 1);
    return g;
}

/* The tasks that follow are of member k of the same group. */
static void on_member(struct build *b, int k, enum role role)
{
    struct stamp stamp = b->step->stamp;
    on_rank(b, b->replica->rank - b->member + k, stamp.micro, role);
    b->step->stamp.layer = stamp.layer;
}

/* The chain of additions that one device makes of an element, in the same order: a member goes on from where the one
 * before it stopped, through all sections; the last one has the sum and sends it. */
static void perform_chain(struct build *b, const char *name, const struct meeting *const *all)
{
    int n = b->model->mesh->tp;
    enum role role = b->step->stamp.role;
    struct replica *mine = b->replica; /* of its group of sequences */
    struct tensor *before = NULL, **to = allocate((size_t)n, sizeof *to);
    for (int i = 0; i < all[0]->sections * n; i++) {
        struct gemm g = section_of(all[i % n], i / n);
        to[i % n] = g.c.tensor;
        on_member(b, i % n, ROLE_SEND);
        if (before && before != g.c.tensor)
            add_move(b->step, JOINED(name, ".move"), g.c.tensor, before);
        g.start = before ? START_OLD : g.start;
        b->step->stamp.role = role;
        gemm(b, name, &g);
        before = g.c.tensor;
    }
    b->step->stamp.role = ROLE_SEND;
    add_broadcast(b->step, JOINED(name, ".send"), to, n - 1, before, 0);
    on_member(b, n - 1, role);
    b->replica = mine;
    free(to);
}

void sum_products(struct build *b, const char *name, const struct gemm *g, int sections)
{
    if (b->model->mesh->exact) {
        meet(b, name, (struct meeting){.product = *g, .sections = sections}, perform_chain);
        return;
    }
    gemm(b, name, g);
    all_reduce(b, name, g->c.tensor);
}
