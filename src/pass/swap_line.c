/* swap_line.c - a plan made true in an edit: tasks that make tensors again, then copies (see gaps.h). */
#include "gaps.h"

#include <math.h>

/* ---- making again ------------------------------------------------------------------------------------------------ */

struct remaking {
    const struct survey *v;
    struct edit *edit;
    struct tensor **twin; /* by tensor: made again, or NULL */
    size_t *gap_of;       /* by tensor: the gap from which on it is made again, or NO_GAP */
    bool by_layer;
};
#define NO_GAP SIZE_MAX

static void remake(struct remaking *r, struct tensor *x, int reader);

/* What a repeat before `reader` reads: the twin, or the tensor itself. */
static void provide(struct remaking *r, struct tensor *x, int reader)
{
    const struct survey *v = r->v;
    if ((size_t)x->id >= v->tensors || r->twin[x->id] || x->persistent)
        return;
    size_t g = r->gap_of[x->id];
    const struct gap_uses *u = &v->uses[x->id];
    bool gone = g != NO_GAP && v->gaps[g].before < reader, over = u->use[u->n - 1].task < reader;
    if (gone || (over && may_remake(v, x, reader)))
        remake(r, x, reader);
}

static void repeat_task(struct remaking *r, const struct task *t, int reader)
{
    for (int i = 0; i < t->n_access; i++)
        if (t->access[i].mode & ACCESS_READ)
            provide(r, t->access[i].tensor->root, reader);
    insert_before(r->edit, r->v->task[reader]);
    struct task *again = repeat(r->edit, t);
    for (int i = 0; i < t->n_access; i++) {
        struct tensor *x = t->access[i].tensor->root;
        if ((size_t)x->id >= r->v->tensors)
            continue; /* a twin already */
        if ((t->access[i].mode & ACCESS_WRITE) && !r->twin[x->id])
            r->twin[x->id] = new_twin(r->v->step->pool, x->device, x);
        if (r->twin[x->id])
            repoint(r->edit, again, x, r->twin[x->id]);
    }
}

static void remake(struct remaking *r, struct tensor *x, int reader)
{
    const struct gap_uses *u = &r->v->uses[x->id];
    for (size_t i = 0; i < u->n && u->use[i].task < reader; i++)
        if (u->use[i].mode & ACCESS_WRITE)
            repeat_task(r, r->v->task[u->use[i].task], reader);
}

/* The first task of the reader's block. */
static int first_of_block(const struct survey *v, int reader)
{
    int first = reader;
    for (int i = reader; i >= 0; i--)
        if (v->task[i]->lane->device == v->task[reader]->lane->device && same_block(v->task[i], v->task[reader]))
            first = i;
    return first;
}

static void visit_reader(struct remaking *r, int i)
{
    struct task *t = r->v->task[i];
    for (int k = 0; k < t->n_access; k++) {
        struct tensor *x = t->access[k].tensor->root;
        size_t g = (size_t)x->id < r->v->tensors ? r->gap_of[x->id] : NO_GAP;
        if (g == NO_GAP || i < r->v->gaps[g].behind)
            continue;
        if (!r->twin[x->id])
            remake(r, x, r->by_layer ? first_of_block(r->v, i) : i);
        repoint(r->edit, t, x, r->twin[x->id]);
    }
}

/* ---- the line ---------------------------------------------------------------------------------------------------- */

/* A repeat puts off all that its device computes behind it. */
static void time_line(struct line *l, const struct survey *v)
{
    size_t n_devices = (size_t)v->step->pool->machine->n_devices + 1;
    double *later = allocate(n_devices, sizeof *later), *computed = allocate(n_devices, sizeof *computed);
    l->start = allocate((size_t)l->n, sizeof *l->start);
    for (int i = 0; i < l->n; i++) {
        const struct task *t = l->task[i];
        const struct device *d = t->lane->device;
        bool again = t->index >= (size_t)v->n;
        double seconds = again ? seconds_alone(v->costs, t) : v->end[t->index] - v->start[t->index];
        l->start[i] = again ? computed[d->index] : v->start[t->index] + later[d->index];
        if (again)
            later[d->index] += seconds;
        if (t->lane == d->lane[LANE_COMPUTE])
            computed[d->index] = l->start[i] + seconds;
    }
    free(later), free(computed);
}

ORDER(by_begin, struct stretch, BY(a->begin, b->begin, COMPARE(b->end, a->end)))
ORDER(by_end, struct stretch, BY(a->end, b->end, COMPARE(a->gap, b->gap)))

static struct stretch stretch_of(const struct line *l, const struct survey *v, size_t gap, const int *at)
{
    struct tensor *x = v->gaps[gap].tensor;
    const struct gap_uses *u = &l->uses[x->id];
    int before = v->gaps[gap].before;
    struct stretch s = {.gap = gap, .begin = -1, .end = l->n, .device = x->device};
    if (before >= 0)
        s.begin = at[v->task[before]->index];
    for (size_t i = u->n; i-- > 0 && u->use[i].task > s.begin;)
        s.end = u->use[i].task;
    s.bytes = (int64_t)round_up(x->bytes, MAX(x->device->alignment, 1u));
    return s;
}

/* What leaves once more, and has not been written since it came back, is on the host still. */
static void note_copied(struct line *l, const struct survey *v)
{
    const struct gap **last = allocate(v->tensors, sizeof *last);
    for (size_t k = 0; k < l->n_stretches; k++) {
        const struct gap *g = &v->gaps[l->out[k].gap], *before = last[g->tensor->id];
        l->out[k].copied =
            g->before >= 0 && (!before || is_rewritten_between(v, g->tensor, before->behind - 1, g->before + 1));
        last[g->tensor->id] = g;
    }
    free(last);
}

static void list_stretches(struct line *l, const struct survey *v, const struct swap_plan *p, const int *at)
{
    l->out = allocate(v->n_gaps + 1, sizeof *l->out), l->in = allocate(v->n_gaps + 1, sizeof *l->in);
    for (size_t g = 0; g < v->n_gaps; g++)
        if (p->fate[v->gaps[g].candidate] == SWAP)
            l->out[l->n_stretches++] = stretch_of(l, v, g, at);
    SORT(l->out, l->n_stretches, by_begin);
    note_copied(l, v);
    memcpy(l->in, l->out, l->n_stretches * sizeof *l->in);
    SORT(l->in, l->n_stretches, by_end);
}

static void note_remade(struct line *l, const struct remaking *r)
{
    for (size_t g = 0; g < r->v->n_gaps; g++) {
        const struct tensor *x = r->v->gaps[g].tensor;
        if (r->gap_of[x->id] != g)
            continue;
        const struct gap_uses *u = &l->uses[r->twin[x->id]->id];
        struct deed *d = &l->deeds[g];
        d->in = l->task[u->use[0].task], d->reader = r->v->task[r->v->gaps[g].behind];
        for (size_t i = 0; i < u->n; i++)
            d->ready = u->use[i].mode & ACCESS_WRITE ? l->task[u->use[i].task] : d->ready;
    }
}

static void walk_line(struct line *l, const struct remaking *r, const struct swap_plan *p)
{
    const struct step *s = r->v->step;
    int *at = allocate(s->n, sizeof *at);
    l->task = allocate(s->n, sizeof *l->task);
    for (struct task *t = s->head->behind; t != s->head; t = t->behind) {
        at[t->index] = l->n;
        l->task[l->n++] = t;
    }
    l->tensors = s->pool->n;
    l->uses = find_gap_uses(l->task, l->n, l->tensors);
    list_stretches(l, r->v, p, at);
    free(at);
}

struct line open_line(const struct survey *v, struct edit *e, const struct swap_plan *p)
{
    struct line l = {.deeds = allocate(v->n_gaps + 1, sizeof *l.deeds)};
    struct remaking r = {v, e, allocate(v->tensors, sizeof *r.twin), allocate(v->tensors, sizeof *r.gap_of),
                         p->by_layer};
    memset(r.gap_of, 0xff, v->tensors * sizeof *r.gap_of);
    for (size_t g = v->n_gaps; g-- > 0;)
        if (p->fate[v->gaps[g].candidate] == REMAKE)
            r.gap_of[v->gaps[g].tensor->id] = g;
    for (int i = 0; i < v->n; i++)
        visit_reader(&r, i);
    walk_line(&l, &r, p);
    time_line(&l, v);
    note_remade(&l, &r);
    free(r.twin), free(r.gap_of);
    return l;
}

void free_line(struct line *l)
{
    free_gap_uses(l->uses, l->tensors);
    free(l->task), free(l->start), free(l->out), free(l->in), free(l->deeds);
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

struct move { /* of a gap */
    struct tensor *from, *there, *back;
};

/* State that leaves lives on the host from the start. */
static void move_homes(const struct survey *v, struct edit *e, const struct swap_plan *p)
{
    for (size_t i = 0; i < v->n_candidates; i++)
        if (p->fate[i] == SWAP && v->candidates[i].tensor->persistent)
            set_home(e, v->candidates[i].tensor, v->step->pool->machine->host);
}

static struct move *list_moves(const struct survey *v, const struct line *l)
{
    struct pool *pool = v->step->pool;
    struct move *moves = allocate(v->n_gaps + 1, sizeof *moves), **last = allocate(v->tensors, sizeof *last);
    for (size_t k = 0; k < l->n_stretches; k++) {
        const struct stretch *s = &l->out[k];
        struct tensor *x = v->gaps[s->gap].tensor;
        struct move *m = &moves[s->gap], *before = last[x->id];
        m->from = before ? before->back : x;
        m->there = x->persistent ? x : s->copied ? new_twin(pool, pool->machine->host, x) : before->there;
        m->back = s->end < l->n ? new_twin(pool, s->device, x) : NULL;
        last[x->id] = m;
    }
    free(last);
    return moves;
}

static struct task *insert_copy(const struct survey *v, struct edit *e, const struct line *l, const struct stretch *s,
                                const struct move *m, int place, bool in)
{
    const struct task *maker = v->task[v->candidates[v->gaps[s->gap].candidate].maker];
    int d = s->device->index;
    insert_behind(e, place < 0 ? v->step->head : l->task[place]);
    v->step->stamp = (struct stamp){maker->layer, maker->micro, ROLE_SWAP};
    return in ? add_copy(v->step, v->from_host[d], "swap.in", m->back, m->there)
              : add_copy(v->step, v->to_host[d], "swap.out", m->there, m->from);
}

/* Later tasks touch what has come back. */
static void follow_line(const struct survey *v, struct edit *e, const struct line *l, const struct move *moves)
{
    struct tensor **now = allocate(v->tensors, sizeof *now);
    for (int i = 0, k = 0; i < l->n; i++) {
        for (; k < (int)l->n_stretches && l->in[k].end == i; k++)
            now[v->gaps[l->in[k].gap].tensor->id] = moves[l->in[k].gap].back;
        for (int a = 0; a < l->task[i]->n_access; a++) {
            struct tensor *x = l->task[i]->access[a].tensor->root;
            if ((size_t)x->id < v->tensors && now[x->id])
                repoint(e, l->task[i], x, now[x->id]);
        }
    }
    free(now);
}

/* Backwards, each right behind its place, so that copies at one place come in the order of the lists, outs first. */
void insert_copies(const struct survey *v, struct edit *e, struct line *l, const struct swap_plan *p)
{
    move_homes(v, e, p);
    struct move *moves = list_moves(v, l);
    for (size_t k = l->n_stretches; k-- > 0;) {
        const struct stretch *s = &l->in[k];
        struct deed *d = &l->deeds[s->gap];
        if (s->end == l->n)
            continue;
        d->in = d->ready = insert_copy(v, e, l, s, &moves[s->gap], p->spot[s->gap].in - 1, true);
        d->reader = l->task[s->end];
    }
    for (size_t k = l->n_stretches; k-- > 0;) {
        const struct stretch *s = &l->out[k];
        if (s->copied)
            l->deeds[s->gap].out = insert_copy(v, e, l, s, &moves[s->gap], p->spot[s->gap].out, false);
    }
    follow_line(v, e, l, moves);
    free(moves);
}

struct line follow_plan(const struct survey *v, struct edit *e, const struct swap_plan *p)
{
    struct line l = open_line(v, e, p);
    insert_copies(v, e, &l, p);
    return l;
}
