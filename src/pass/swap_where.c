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

struct ground { /* one device */
    const struct survey *v;
    const struct line *l;
    const struct device *device;
    struct swap_plan *plan;
    double lead;
    int64_t *held, most;
    int *wish; /* by gap: where its bytes would leave, or come back, were there room */
};

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static void hold_between(int64_t *change, int from, int to, int64_t bytes)
{
    change[from] += bytes;
    change[to] -= bytes;
}

int64_t *bytes_along(const struct survey *v, const struct line *l, const struct device *d)
{
    const struct pool *p = v->step->pool;
    int64_t *held = allocate((size_t)l->n + 1, sizeof *held);
    for (size_t i = 0; i < p->n; i++) {
        const struct tensor *x = p->tensors[i];
        const struct gap_uses *u = &l->uses[i];
        bool always = x->persistent || (x->apart == APART_ALWAYS && u->n);
        if (x->root == x && x->device == d && (always || u->n))
            hold_between(held, always ? 0 : u->use[0].task, always ? l->n : u->use[u->n - 1].task + 1,
                         (int64_t)round_up(x->bytes, MAX(d->alignment, 1u)));
    }
    for (size_t k = 0; k < l->n_stretches; k++)
        if (l->out[k].device == d && l->out[k].begin + 1 < l->out[k].end)
            hold_between(held, l->out[k].begin + 1, l->out[k].end, -l->out[k].bytes);
    for (int i = 1; i < l->n; i++)
        held[i] += held[i - 1];
    return held;
}

/* ---- what the copies ask for ------------------------------------------------------------------------------------- */

static bool is_computed(const struct ground *g, int place)
{
    return g->l->task[place]->lane == g->device->lane[LANE_COMPUTE];
}

static void wish_outs(struct ground *g)
{
    double done = -INFINITY;
    for (size_t k = 0; k < g->l->n_stretches; k++) {
        const struct stretch *s = &g->l->out[k];
        int before = g->v->gaps[s->gap].before;
        g->wish[s->gap] = s->begin;
        if (s->device != g->device || !s->copied)
            continue;
        double made = g->l->start[s->begin] + g->v->end[before] - g->v->start[before];
        done = fmax(done, made) + g->lead * g->v->candidates[g->v->gaps[s->gap].candidate].out;
        for (int i = s->begin + 1; i < s->end && !(is_computed(g, i) && g->l->start[i] >= done * (1 - 1e-9)); i++)
            g->wish[s->gap] = is_computed(g, i) ? i : g->wish[s->gap];
    }
}

static void wish_ins(struct ground *g)
{
    double next = INFINITY;
    for (size_t k = g->l->n_stretches; k-- > 0;) {
        const struct stretch *s = &g->l->in[k];
        if (s->device != g->device || s->end == g->l->n)
            continue;
        next = fmin(next, g->l->start[s->end]) - g->lead * g->v->candidates[g->v->gaps[s->gap].candidate].in;
        int i = s->end;
        while (i > s->begin + 1 && !(is_computed(g, i) && g->l->start[i] <= next * (1 + 1e-9)))
            i--;
        g->wish[s->gap] = i;
    }
}

/* ---- what there is room for -------------------------------------------------------------------------------------- */

/* The last made first: what has waited longest leaves earlier. */
static void place_outs(struct ground *g)
{
    wish_outs(g);
    for (size_t k = g->l->n_stretches; k-- > 0;) {
        const struct stretch *s = &g->l->out[k];
        struct spot *spot = &g->plan->spot[s->gap];
        int latest = MIN(g->wish[s->gap], spot->in - 1);
        if (s->device == g->device)
            for (spot->out = s->begin; spot->out < latest && g->held[spot->out + 1] + s->bytes <= g->most;)
                g->held[++spot->out] += s->bytes;
    }
}

/* The first needed first; none comes before those that are needed sooner. */
static void place_ins(struct ground *g)
{
    int before = 0;
    wish_ins(g);
    for (size_t k = 0; k < g->l->n_stretches; k++) {
        const struct stretch *s = &g->l->in[k];
        struct spot *spot = &g->plan->spot[s->gap];
        if (s->device != g->device || s->end == g->l->n)
            continue;
        int soonest = MAX(MAX(g->wish[s->gap], spot->out + 1), before);
        for (spot->in = s->end; spot->in > soonest && g->held[spot->in - 1] + s->bytes <= g->most;)
            g->held[--spot->in] += s->bytes;
        before = spot->in;
    }
}

void choose_spots(const struct survey *v, const struct line *l, struct swap_plan *p, const size_t *budget,
                  const struct way *way)
{
    const struct machine *m = v->step->pool->machine;
    int *wish = allocate(v->n_gaps + 1, sizeof *wish);
    for (size_t k = 0; k < l->n_stretches; k++)
        p->spot[l->out[k].gap] = (struct spot){l->out[k].begin, l->out[k].end};
    for (int d = 0; d < m->n_devices && l->n_stretches && way->lead > 0; d++) {
        double most = (double)budget[d] * (1 - way->margin) - (double)guard_bytes(&m->device[d]);
        struct ground g = {v, l, &m->device[d], p, way->lead, bytes_along(v, l, &m->device[d]), (int64_t)most, wish};
        if (way->in_first)
            place_ins(&g);
        place_outs(&g);
        if (!way->in_first)
            place_ins(&g);
        free(g.held);
    }
    free(wish);
}
