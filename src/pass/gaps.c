/* gaps.c - finding gaps, and the edit that makes a plan of them true (see gaps.h). */
#include "gaps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- uses and gaps ----------------------------------------------------------------------------------------------- */

static void note_use(struct survey *v, const struct task *t, const struct access *a, int *next)
{
    int id = a->tensor->root->id;
    struct use *last = next[id] > v->first_use[id] ? &v->use[next[id] - 1] : NULL;
    if (last && last->task == (int)t->index)
        last->mode |= a->mode;
    else
        v->use[next[id]++] = (struct use){(int)t->index, a->mode};
}

/* By tensor, in list order; a task counts once.  Behind the last one lies a use of task -1. */
static void find_uses(struct survey *v)
{
    const struct step *s = v->step;
    int *next = allocate(v->tensors + 1, sizeof *next);
    v->first_use = allocate(v->tensors + 2, sizeof *v->first_use);
    for (size_t i = 0; i < s->n; i++)
        for (int k = 0; k < s->task[i]->n_access; k++)
            v->first_use[s->task[i]->access[k].tensor->root->id + 1]++;
    for (size_t i = 0; i < v->tensors; i++) {
        v->first_use[i + 1] += v->first_use[i] + 1;
        next[i] = v->first_use[i];
    }
    v->use = allocate((size_t)v->first_use[v->tensors] + 1, sizeof *v->use);
    for (int i = 0; i <= v->first_use[v->tensors]; i++)
        v->use[i].task = -1;
    for (size_t i = 0; i < s->n; i++)
        for (int k = 0; k < s->task[i]->n_access; k++)
            note_use(v, s->task[i], &s->task[i]->access[k], next);
    free(next);
}

static const struct use *uses_of(const struct survey *v, const struct tensor *x)
{
    return &v->use[v->first_use[x->id]];
}

static bool same_block(const struct task *a, const struct task *b)
{
    return a->layer >= 0 && a->layer == b->layer && a->micro == b->micro && a->role == b->role;
}

/* Other work lies between: of another layer, where tasks have any. */
static bool is_gap(const struct survey *v, int before, int behind)
{
    return behind - before > 1 && !same_block(v->task[before], v->task[behind]);
}

static bool may_leave(const struct survey *v, const struct tensor *x, unsigned classes)
{
    if (x->root != x || x->apart || x->device->is_host || !(classes >> x->class & 1))
        return false;
    for (const struct use *u = uses_of(v, x); u->task >= 0; u++)
        if (is_conditional(v->task[u->task]))
            return false;
    return uses_of(v, x)->task >= 0;
}

static bool is_written_between(const struct survey *v, const struct tensor *x, int from, int to)
{
    if ((size_t)x->id >= v->tensors)
        return false; /* made again: nothing writes it but that */
    for (const struct use *u = uses_of(v, x); u->task >= 0; u++)
        if (u->task > from && u->task < to && (u->mode & ACCESS_WRITE))
            return true;
    return false;
}

/* Can be repeated before task `behind`: work of the device alone, whose reads have the same values still. */
static bool may_repeat(const struct survey *v, const struct task *t, const struct tensor *made, int behind)
{
    if (t->run || t->copy || is_conditional(t) || t->lane->device != made->device)
        return false;
    for (int i = 0; i < t->n_access; i++) {
        const struct tensor *x = t->access[i].tensor->root;
        if ((t->access[i].mode & ACCESS_WRITE) && x->persistent)
            return false;
        if (x != made && (t->access[i].mode & ACCESS_READ) && is_written_between(v, x, (int)t->index, behind))
            return false;
    }
    return true;
}

/* Everything that wrote it, before `behind`, can be repeated, and nothing writes it from there on. */
static bool may_remake(const struct survey *v, const struct tensor *x, int behind)
{
    bool written = false;
    if (x->persistent || x->class != MEM_ACTIVATIONS)
        return false;
    for (const struct use *u = uses_of(v, x); u->task >= 0; u++) {
        if (!(u->mode & ACCESS_WRITE))
            continue;
        if (u->task >= behind || !may_repeat(v, v->task[u->task], x, behind))
            return false;
        written = true;
    }
    return written;
}

static void add_gap(struct survey *v, struct tensor *x, int before, int behind)
{
    *APPEND(v->gaps, v->n_gaps, v->cap_gaps) = (struct gap){x, before, behind, 0};
}

static void add_candidate(struct survey *v, struct tensor *x, size_t first, bool remakeable)
{
    for (size_t g = first; g < v->n_gaps; g++)
        v->gaps[g].candidate = v->n_candidates;
    *APPEND(v->candidates, v->n_candidates, v->cap_candidates) =
        (struct candidate){x, x->device, first, v->n_gaps - first, remakeable, uses_of(v, x)->task};
}

static void find_gaps_of(struct survey *v, struct tensor *x)
{
    const struct use *u = uses_of(v, x);
    size_t first = v->n_gaps;
    if (x->persistent)
        add_gap(v, x, -1, u->task);
    for (; u[1].task >= 0; u++) {
        if (!is_gap(v, u->task, u[1].task))
            continue;
        add_gap(v, x, u->task, u[1].task);
        if (!x->persistent)
            add_candidate(v, x, v->n_gaps - 1, may_remake(v, x, u[1].task));
    }
    if (x->persistent) {
        add_gap(v, x, u->task, v->n);
        add_candidate(v, x, first, false);
    }
}

/* ---- times ------------------------------------------------------------------------------------------------------- */

double copy_seconds(const struct copy_speed *s, size_t bytes) { return s->latency + s->per_byte * (double)bytes; }

static struct copy_speed speed_of(const struct survey *v, struct device *d, struct lane *lane, bool down)
{
    enum { SMALL = 4096, LARGE = 1 << 26 };
    double seconds[2];
    struct edit *e = open_edit(v->step);
    for (int i = 0; i < 2; i++) {
        size_t bytes = i ? LARGE : SMALL;
        struct tensor *here = new_bytes_tensor(v->step->pool, d, MEM_WORK, "swap", bytes),
                      *there = new_bytes_tensor(v->step->pool, v->step->pool->machine->host, MEM_WORK, "swap", bytes);
        seconds[i] = seconds_alone(v->costs, add_copy(v->step, lane, "swap", down ? there : here, down ? here : there));
    }
    undo(e);
    double per_byte = fmax((seconds[1] - seconds[0]) / (LARGE - SMALL), 0);
    return (struct copy_speed){fmax(seconds[0] - per_byte * SMALL, 0), per_byte};
}

static bool is_used(const struct step *s, const struct lane *lane)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->task[i]->lane == lane)
            return true;
    return false;
}

/* The first lane of its kind that no task is on, for else swaps would wait for others and hold them up; the last one
 * where the link allows no more. */
static struct lane *free_lane(struct step *s, struct device *d, enum lane_kind kind)
{
    const struct link *link = d->link[kind == LANE_UPLOAD ? LINK_UP : LINK_DOWN];
    int nth = 0;
    while (lane_of(d, kind, nth) && is_used(s, lane_of(d, kind, nth)) && !(link && nth + 1 == link->queues))
        nth++;
    return open_lane(s->pool->machine, d, kind, nth);
}

static void note_times(struct survey *v, const struct forecast *f)
{
    struct machine *m = v->step->pool->machine;
    size_t n = (size_t)m->n_devices;
    v->start = allocate((size_t)v->n, sizeof *v->start);
    v->end = allocate((size_t)v->n, sizeof *v->end);
    for (int i = 0; i < v->n; i++) {
        v->start[i] = f->span ? f->span[i].start : i;
        v->end[i] = f->span ? f->span[i].end : i + 1;
    }
    v->down = allocate(n, sizeof *v->down), v->up = allocate(n, sizeof *v->up);
    v->to_host = allocate(n, sizeof *v->to_host), v->from_host = allocate(n, sizeof *v->from_host);
    for (size_t d = 0; d < n; d++) {
        v->to_host[d] = free_lane(v->step, &m->device[d], LANE_DOWNLOAD);
        v->from_host[d] = free_lane(v->step, &m->device[d], LANE_UPLOAD);
        if (!f->span) { /* as long as four tasks take */
            v->down[d].latency = v->up[d].latency = 4;
            continue;
        }
        v->down[d] = speed_of(v, &m->device[d], v->to_host[d], true);
        v->up[d] = speed_of(v, &m->device[d], v->from_host[d], false);
    }
}

struct survey *look_for_gaps(struct step *s, const struct costs *c, const struct forecast *f, unsigned classes)
{
    struct survey *v = allocate(1, sizeof *v);
    *v = (struct survey){.step = s, .costs = c, .n = (int)s->n, .tensors = s->pool->n};
    v->task = allocate(s->n, sizeof *v->task);
    memcpy(v->task, s->task, s->n * sizeof *v->task);
    find_uses(v);
    note_times(v, f);
    for (size_t i = 0; i < v->tensors; i++)
        if (may_leave(v, s->pool->tensors[i], classes))
            find_gaps_of(v, s->pool->tensors[i]);
    return v;
}

void free_survey(struct survey *v)
{
    free(v->task), free(v->first_use), free(v->use), free(v->gaps), free(v->candidates), free(v->start), free(v->end);
    free(v->down), free(v->up), free(v->to_host), free(v->from_host);
    free(v);
}

/* ---- making again ------------------------------------------------------------------------------------------------ */

struct remaking {
    const struct survey *v;
    struct edit *edit;
    const struct swap_plan *plan;
    struct line *line;
    struct tensor **twin;  /* by tensor: made again, or NULL */
    struct task **made[2]; /* by tensor: the first and the last task of that */
    size_t *gap_of;        /* by tensor: the gap that REMAKE is chosen for, or none */
    struct repeat {
        struct task *task;
        int reader; /* that it comes before */
    } * repeats;    /* in the order in which they were added */
    size_t n, cap;
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
    int last = -1;
    for (const struct use *u = uses_of(v, x); u->task >= 0; u++)
        last = u->task;
    bool gone = g != NO_GAP && v->gaps[g].before < reader;
    if (gone || (last < reader && may_remake(v, x, reader)))
        remake(r, x, reader);
}

static void note_early_read(struct remaking *r, const struct tensor *x, int reader, struct task *repeat)
{
    const struct survey *v = r->v;
    for (size_t g = 0; g < v->n_gaps; g++)
        if (v->gaps[g].tensor == x && v->gaps[g].before < reader && reader <= v->gaps[g].behind && !r->line->early[g])
            r->line->early[g] = repeat;
}

static void repeat_task(struct remaking *r, const struct task *t, int reader)
{
    struct pool *pool = r->v->step->pool;
    for (int i = 0; i < t->n_access; i++)
        if (t->access[i].mode & ACCESS_READ)
            provide(r, t->access[i].tensor->root, reader);
    insert_before(r->edit, r->v->task[reader]);
    struct task *again = repeat(r->edit, t);
    *APPEND(r->repeats, r->n, r->cap) = (struct repeat){again, reader};
    for (int i = 0; i < t->n_access; i++) {
        struct tensor *x = t->access[i].tensor->root;
        if ((size_t)x->id >= r->v->tensors)
            continue; /* a twin already */
        if ((t->access[i].mode & ACCESS_WRITE) && !r->twin[x->id])
            r->twin[x->id] = new_twin(pool, x->device, x), r->made[0][x->id] = again;
        if (t->access[i].mode & ACCESS_WRITE)
            r->made[1][x->id] = again;
        if (r->twin[x->id])
            repoint(r->edit, again, x, r->twin[x->id]);
        else
            note_early_read(r, x, reader, again);
    }
}

static void remake(struct remaking *r, struct tensor *x, int reader)
{
    const struct survey *v = r->v;
    for (const struct use *u = uses_of(v, x); u->task >= 0 && u->task < reader; u++)
        if (u->mode & ACCESS_WRITE)
            repeat_task(r, v->task[u->task], reader);
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
            remake(r, x, i);
        repoint(r->edit, t, x, r->twin[x->id]);
    }
}

/* ---- the line ---------------------------------------------------------------------------------------------------- */

static void walk_line(struct line *l, const struct step *s)
{
    l->task = allocate(s->n, sizeof *l->task);
    l->at = allocate(s->n, sizeof *l->at);
    for (struct task *t = s->head->behind; t != s->head; t = t->behind) {
        l->at[t->index] = l->n;
        l->task[l->n++] = t;
    }
}

/* A repeat puts off all that its device computes behind it. */
static void time_line(struct line *l, const struct remaking *r)
{
    const struct survey *v = r->v;
    double *later = allocate((size_t)v->step->pool->machine->n_devices + 1, sizeof *later);
    l->start = allocate((size_t)l->n, sizeof *l->start);
    int *before = allocate(v->step->n, sizeof *before);
    for (size_t i = 0; i < r->n; i++)
        before[r->repeats[i].task->index] = r->repeats[i].reader + 1;
    for (int i = 0; i < l->n; i++) {
        const struct task *t = l->task[i];
        int d = t->lane->device->index, base = before[t->index] ? before[t->index] - 1 : (int)t->index;
        l->start[i] = v->start[base] + later[d];
        if (before[t->index])
            later[d] += seconds_alone(v->costs, t);
    }
    free(later), free(before);
}

static void note_remade(struct line *l, const struct remaking *r)
{
    for (size_t g = 0; g < r->v->n_gaps; g++) {
        int id = r->v->gaps[g].tensor->id;
        if (r->gap_of[id] == g)
            l->deeds[g] = (struct deed){NULL, r->made[0][id], r->made[1][id], r->v->task[r->v->gaps[g].behind]};
    }
}

struct line open_line(const struct survey *v, struct edit *e, const struct swap_plan *p)
{
    struct line l = {.early = allocate(v->n_gaps, sizeof *l.early), .deeds = allocate(v->n_gaps, sizeof *l.deeds)};
    struct remaking r = {.v = v, .edit = e, .plan = p, .line = &l};
    r.twin = allocate(v->tensors, sizeof *r.twin);
    r.made[0] = allocate(v->tensors, sizeof *r.made[0]), r.made[1] = allocate(v->tensors, sizeof *r.made[1]);
    r.gap_of = allocate(v->tensors, sizeof *r.gap_of);
    memset(r.gap_of, 0xff, v->tensors * sizeof *r.gap_of);
    for (size_t g = v->n_gaps; g-- > 0;)
        if (p->fate[v->gaps[g].candidate] == REMAKE)
            r.gap_of[v->gaps[g].tensor->id] = g;
    for (int i = 0; i < v->n; i++)
        visit_reader(&r, i);
    walk_line(&l, v->step);
    time_line(&l, &r);
    note_remade(&l, &r);
    free(r.twin), free(r.made[0]), free(r.made[1]), free(r.gap_of), free(r.repeats);
    return l;
}

void free_line(struct line *l) { free(l->task), free(l->at), free(l->start), free(l->early), free(l->deeds); }

int gap_begins(const struct survey *v, const struct line *l, size_t gap)
{
    int before = v->gaps[gap].before;
    return before < 0 ? -1 : l->at[v->task[before]->index];
}

int gap_ends(const struct survey *v, const struct line *l, size_t gap)
{
    if (l->early[gap])
        return l->at[l->early[gap]->index];
    int behind = v->gaps[gap].behind;
    return behind == v->n ? l->n : l->at[v->task[behind]->index];
}

bool is_copied(const struct survey *v, size_t gap)
{
    const struct gap *g = &v->gaps[gap];
    if (g->before < 0 || !g->tensor->persistent)
        return g->before >= 0;
    return is_written_between(v, g->tensor, g[-1].behind - 1, g->before + 1);
}

bool leaves(const struct survey *v, const struct swap_plan *p, size_t gap)
{
    return p->fate[v->gaps[gap].candidate] == SWAP;
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

struct event { /* a copy right behind task `place` of the line */
    int place, order;
    bool in;
    size_t gap;
};
struct swapping {
    const struct survey *v;
    struct edit *edit;
    struct line *line;
    struct tensor **now;    /* by tensor: what later tasks touch instead, or NULL */
    struct tensor **hosted; /* by tensor: its value on the host, or NULL ... */
    bool *stale;            /* ... and whether it has been written since */
};

static int by_place(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    if (x->place != y->place)
        return COMPARE(x->place, y->place);
    if (x->in != y->in)
        return x->in - y->in;
    return x->order != y->order ? COMPARE(x->order, y->order) : COMPARE(x->gap, y->gap);
}

static struct event *list_events(const struct survey *v, const struct line *l, const struct swap_plan *p, size_t *n)
{
    struct event *events = allocate(2 * v->n_gaps + 1, sizeof *events);
    *n = 0;
    for (size_t g = 0; g < v->n_gaps; g++) {
        if (!leaves(v, p, g))
            continue;
        if (v->gaps[g].before >= 0)
            events[(*n)++] = (struct event){p->spot[g].out, gap_begins(v, l, g), false, g};
        if (v->gaps[g].behind < v->n)
            events[(*n)++] = (struct event){p->spot[g].in - 1, gap_ends(v, l, g), true, g};
    }
    if (*n)
        qsort(events, *n, sizeof *events, by_place);
    return events;
}

static struct tensor *current(const struct swapping *w, struct tensor *x) { return w->now[x->id] ? w->now[x->id] : x; }

static void take_out(struct swapping *w, size_t gap)
{
    const struct survey *v = w->v;
    struct tensor *x = v->gaps[gap].tensor, *there = w->hosted[x->id];
    if (there && !w->stale[x->id])
        return;
    if (!there || !x->persistent)
        there = new_twin(v->step->pool, v->step->pool->machine->host, x);
    w->line->deeds[gap].out = add_copy(v->step, v->to_host[x->device->index], "swap.out", there, current(w, x));
    w->hosted[x->id] = there;
    w->stale[x->id] = false;
}

static void bring_in(struct swapping *w, size_t gap)
{
    const struct survey *v = w->v;
    struct tensor *x = v->gaps[gap].tensor, *back = new_twin(v->step->pool, x->device, x);
    struct deed *d = &w->line->deeds[gap];
    d->in = d->ready = add_copy(v->step, v->from_host[x->device->index], "swap.in", back, w->hosted[x->id]);
    d->reader = w->line->task[gap_ends(v, w->line, gap)];
    w->now[x->id] = back;
}

static void happen(struct swapping *w, const struct event *event, bool same_place)
{
    const struct survey *v = w->v;
    const struct task *maker = v->task[v->candidates[v->gaps[event->gap].candidate].maker];
    if (!same_place && event->place < 0)
        insert_before(w->edit, w->line->task[0]);
    else if (!same_place)
        insert_behind(w->edit, w->line->task[event->place]);
    v->step->stamp = (struct stamp){maker->layer, maker->micro, ROLE_OTHER};
    if (event->in)
        bring_in(w, event->gap);
    else
        take_out(w, event->gap);
}

static void follow(struct swapping *w, struct task *t)
{
    for (int k = 0; k < t->n_access; k++)
        if ((size_t)t->access[k].tensor->root->id < w->v->tensors && (t->access[k].mode & ACCESS_WRITE))
            w->stale[t->access[k].tensor->root->id] = true;
    for (int k = 0; k < t->n_access; k++) {
        struct tensor *x = t->access[k].tensor->root;
        if ((size_t)x->id < w->v->tensors && w->now[x->id])
            repoint(w->edit, t, x, w->now[x->id]);
    }
}

/* State that leaves lives on the host from the start. */
static void move_homes(struct swapping *w, const struct swap_plan *p, bool before)
{
    for (size_t i = 0; i < w->v->n_candidates; i++) {
        struct tensor *x = w->v->candidates[i].tensor;
        if (p->fate[i] == SWAP && x->persistent && before)
            w->hosted[x->id] = x;
        else if (p->fate[i] == SWAP && x->persistent)
            set_home(w->edit, x, w->v->step->pool->machine->host);
    }
}

void insert_copies(const struct survey *v, struct edit *e, struct line *l, const struct swap_plan *p)
{
    size_t n, k = 0;
    struct event *events = list_events(v, l, p, &n);
    struct swapping w = {v,
                         e,
                         l,
                         allocate(v->tensors, sizeof *w.now),
                         allocate(v->tensors, sizeof *w.hosted),
                         allocate(v->tensors, sizeof *w.stale)};
    move_homes(&w, p, true);
    for (int i = -1; i < l->n; i++) {
        if (i >= 0)
            follow(&w, l->task[i]);
        for (bool first = true; k < n && events[k].place == i; first = false)
            happen(&w, &events[k++], !first);
    }
    move_homes(&w, p, false);
    free(events), free(w.now), free(w.hosted), free(w.stale);
}

bool crosses(const struct gap *g, int position) { return g->before < position && position < g->behind; }

/* ---- lists that are not planned ---------------------------------------------------------------------------------- */

struct fetched { /* state of the host, as the device has it for now */
    struct tensor *there;
    const struct task *user; /* the last one */
};

static void fetch(struct edit *e, struct step *s, struct task *t, struct tensor *x, struct fetched *f)
{
    struct device *d = t->lane->device;
    bool here = f->there && f->there->device == d && (same_block(f->user, t) || t->index - f->user->index == 1);
    if (!here) {
        f->there = new_twin(s->pool, d, x);
        insert_before(e, t);
        add_copy(s, free_lane(s, d, LANE_UPLOAD), "swap.in", f->there, x);
    }
    f->user = t;
    repoint(e, t, x, f->there);
}

void fetch_state(struct step *s)
{
    size_t n = s->n, tensors = s->pool->n;
    struct fetched *fetched = allocate(tensors, sizeof *fetched);
    struct edit *e = open_edit(s);
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < s->task[i]->n_access && !s->task[i]->copy && !s->task[i]->lane->device->is_host; k++) {
            struct tensor *x = s->task[i]->access[k].tensor->root;
            if ((size_t)x->id < tensors && x->device->is_host)
                fetch(e, s, s->task[i], x, &fetched[x->id]);
        }
    commit(e);
    free(fetched);
}
