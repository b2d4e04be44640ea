/* swap_where.c - where in the list bytes leave and come back.
 *
 * The place in the list decides how long bytes are held.  What leaves should be held until its copy has ended: a task
 * that takes the bytes before would wait for it.  What comes back should be held from when its copy must begin: as late
 * as the link allows.  Both follow from when tasks start and how long copies take, one after another on their lane:
 * the first made leaves first, the first needed comes first.  Where bytes are short, the one that must leave soonest
 * leaves earlier, and what comes back waits.
 */
#include "gaps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct stretch { /* a gap, as places in the line */
    size_t gap;
    int begin, end;      /* of its last use before, and its next */
    int latest, soonest; /* until which its bytes are wanted for the copy out; from which for the copy back */
    int64_t bytes;
};
struct ground { /* one device */
    const struct survey *v;
    const struct line *l;
    const struct device *device;
    int64_t *held, most;
    struct stretch *out, *in; /* first to leave first; first needed first */
    size_t n_out, n_in;
    int *beat; /* the places of what it computes */
    int n_beats;
};

static int64_t held_bytes(const struct tensor *x) { return (int64_t)round_up(x->bytes, MAX(x->device->alignment, 1u)); }

static void hold_between(int64_t *change, int from, int to, int64_t bytes)
{
    change[from] += bytes;
    change[to] -= bytes;
}

/* Changes of what the device holds, as if nothing left. */
static void add_lives(const struct survey *v, const struct line *l, const struct device *d, int64_t *change)
{
    const struct pool *p = v->step->pool;
    int *first = allocate(p->n, sizeof *first), *last = allocate(p->n, sizeof *last);
    memset(last, -1, p->n * sizeof *last);
    for (int i = 0; i < l->n; i++)
        for (int k = 0; k < l->task[i]->n_access; k++) {
            int id = l->task[i]->access[k].tensor->root->id;
            first[id] = last[id] < 0 ? i : first[id];
            last[id] = i;
        }
    for (size_t i = 0; i < p->n; i++) {
        const struct tensor *x = p->tensors[i];
        if (x->root != x || x->device != d)
            continue;
        if (x->persistent || (x->apart == APART_ALWAYS && last[i] >= 0))
            hold_between(change, 0, l->n, held_bytes(x));
        else if (last[i] >= 0)
            hold_between(change, first[i], last[i] + 1, held_bytes(x));
    }
    free(first), free(last);
}

int64_t *bytes_along(const struct survey *v, const struct line *l, const struct swap_plan *p, const struct device *d)
{
    int64_t *held = allocate((size_t)l->n + 1, sizeof *held);
    add_lives(v, l, d, held);
    for (size_t g = 0; g < v->n_gaps; g++)
        if (leaves(v, p, g) && v->gaps[g].tensor->device == d && gap_begins(v, l, g) + 1 < gap_ends(v, l, g))
            hold_between(held, gap_begins(v, l, g) + 1, gap_ends(v, l, g), -held_bytes(v->gaps[g].tensor));
    for (int i = 1; i < l->n; i++)
        held[i] += held[i - 1];
    return held;
}

/* ---- what the copies ask for ------------------------------------------------------------------------------------- */

/* The last thing computed that starts before that time, or at it. */
static int beat_before(const struct ground *g, double time, bool or_at)
{
    int low = 0, high = g->n_beats;
    while (low < high) {
        int middle = (low + high) / 2;
        double start = g->l->start[g->beat[middle]];
        if (start < time || (or_at && start <= time))
            low = middle + 1;
        else
            high = middle;
    }
    return low ? g->beat[low - 1] : -1;
}

static void wish_outs(struct ground *g, double lead)
{
    double done = -INFINITY;
    const struct copy_speed *speed = &g->v->down[g->device->index];
    for (size_t i = 0; i < g->n_out; i++) {
        struct stretch *s = &g->out[i];
        int before = g->v->gaps[s->gap].before;
        s->latest = s->begin;
        if (!is_copied(g->v, s->gap))
            continue;
        double made = g->l->start[s->begin] + g->v->end[before] - g->v->start[before];
        done = fmax(done, made) + lead * copy_seconds(speed, g->v->gaps[s->gap].tensor->bytes);
        s->latest = MAX(s->begin, beat_before(g, done - 1e-9 * fabs(done), false));
    }
}

static void wish_ins(struct ground *g, double lead)
{
    double next = INFINITY;
    const struct copy_speed *speed = &g->v->up[g->device->index];
    for (size_t i = g->n_in; i-- > 0;) {
        struct stretch *s = &g->in[i];
        double needed = fmin(next, g->l->start[s->end]);
        next = needed - lead * copy_seconds(speed, g->v->gaps[s->gap].tensor->bytes);
        s->soonest = MAX(s->begin + 1, MIN(beat_before(g, next + 1e-9 * fabs(next), true), s->end));
    }
}

/* ---- what there is room for -------------------------------------------------------------------------------------- */

static void hold_from_to(struct ground *g, int from, int to, int64_t bytes)
{
    for (int i = from; i < to; i++)
        g->held[i] += bytes;
}

/* Along the line: what has left by then, what must leave because it is needed again, what must because of others. */
static void place_outs(struct ground *g, struct swap_plan *p)
{
    bool *gone = allocate(g->n_out + 1, sizeof *gone);
    size_t oldest = 0, next = 0;
    int64_t waiting = 0;
    for (int i = 0; i < g->l->n; i++) {
        for (; next < g->n_out && g->out[next].begin < i; next++)
            waiting += g->out[next].bytes;
        for (size_t k = oldest; k < next; k++) {
            struct stretch *s = &g->out[k];
            struct spot *spot = &p->spot[s->gap];
            bool over = g->held[i] + waiting > g->most;
            if (gone[k] || (!over && s->latest >= i && spot->in > i))
                continue;
            spot->out = i - 1;
            waiting -= s->bytes;
            gone[k] = true;
        }
        while (oldest < next && gone[oldest])
            oldest++;
        g->held[i] += waiting;
    }
    for (size_t k = oldest; k < g->n_out; k++)
        if (!gone[k])
            p->spot[g->out[k].gap].out = MAX(g->out[k].begin, g->l->n - 1);
    free(gone);
}

static void place_ins(struct ground *g, struct swap_plan *p)
{
    int before = 0;
    for (size_t i = 0; i < g->n_in; i++) {
        const struct stretch *s = &g->in[i];
        struct spot *spot = &p->spot[s->gap];
        int limit = MAX(MAX(s->soonest, spot->out + 1), before);
        spot->in = s->end;
        while (spot->in > limit && g->held[spot->in - 1] + s->bytes <= g->most)
            spot->in--;
        hold_from_to(g, spot->in, s->end, s->bytes);
        before = spot->in;
    }
}

/* ---- one device -------------------------------------------------------------------------------------------------- */

static int by_begin(const void *a, const void *b)
{
    const struct stretch *x = a, *y = b;
    return x->begin != y->begin ? x->begin - y->begin : y->end - x->end;
}

static int by_end(const void *a, const void *b)
{
    const struct stretch *x = a, *y = b;
    return x->end != y->end ? x->end - y->end : COMPARE(x->gap, y->gap);
}

/* Both lists of stretches; each gap is first held for its uses alone. */
static void list_stretches(struct ground *g, struct swap_plan *p)
{
    const struct survey *v = g->v;
    g->out = allocate(v->n_gaps + 1, sizeof *g->out), g->in = allocate(v->n_gaps + 1, sizeof *g->in);
    for (size_t i = 0; i < v->n_gaps; i++) {
        struct stretch s = {i, gap_begins(v, g->l, i), gap_ends(v, g->l, i), 0, 0, held_bytes(v->gaps[i].tensor)};
        if (!leaves(v, p, i) || v->gaps[i].tensor->device != g->device)
            continue;
        p->spot[i] = (struct spot){s.begin, s.end};
        if (v->gaps[i].before >= 0)
            g->out[g->n_out++] = s;
        if (v->gaps[i].behind < v->n)
            g->in[g->n_in++] = s;
    }
    qsort(g->out, g->n_out, sizeof *g->out, by_begin);
    qsort(g->in, g->n_in, sizeof *g->in, by_end);
}

static void list_beats(struct ground *g)
{
    double latest = -INFINITY;
    g->beat = allocate((size_t)g->l->n, sizeof *g->beat);
    for (int i = 0; i < g->l->n; i++)
        if (g->l->task[i]->lane == g->device->lane[LANE_COMPUTE] && g->l->start[i] >= latest) {
            latest = g->l->start[i];
            g->beat[g->n_beats++] = i;
        }
}

static void choose_on(struct ground *g, struct swap_plan *p, const struct way *way)
{
    list_stretches(g, p);
    if (way->tight || !(g->n_out + g->n_in)) {
        free(g->out), free(g->in);
        return;
    }
    list_beats(g);
    g->held = bytes_along(g->v, g->l, p, g->device);
    wish_outs(g, way->lead);
    wish_ins(g, way->lead);
    if (way->in_first)
        place_ins(g, p), place_outs(g, p);
    else
        place_outs(g, p), place_ins(g, p);
    free(g->out), free(g->in), free(g->beat), free(g->held);
}

void choose_spots(const struct survey *v, const struct line *l, struct swap_plan *p, const size_t *budget,
                  const struct way *way)
{
    const struct machine *m = v->step->pool->machine;
    for (int d = 0; d < m->n_devices; d++) {
        double most = (double)budget[d] * (1 - way->margin) - (double)guard_bytes(&m->device[d]);
        struct ground g = {.v = v, .l = l, .device = &m->device[d], .most = (int64_t)most};
        choose_on(&g, p, way);
    }
}
