/* swap_plan.c - what to keep, to swap and to make again.
 *
 * Every answer comes from trying: the plan is made true in an edit, placed and simulated.  First come plans by rule:
 * whatever is over the budget leaves, the tensor with the furthest next use first (Belady) or what is cheapest to have
 * again, with some bytes to spare or none; and all.  From the best of them on, single tensors get another fate, and
 * pairs where these are few, while it helps; few choices are tried all.  In the end what comes too late gets more lead,
 * and the copies themselves are moved.
 *
 * A plan is better when it needs fewer bytes beyond the budgets, then when the step is shorter, then when it copies
 * less.
 */
#include "gaps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALL_TRIED = 800, FEW = 16, SOME = 40, BEST = 3 };
const double MOST_WORK = 6e5;

static const struct way ways[] = {{.lead = 1}, {.lead = 1, .in_first = true}};
static const struct way more_ways[] = {
    {.lead = 0},
    {.lead = 2},
    {.lead = 2, .in_first = true},
    {.lead = 1e6},
    {.lead = 1, .margin = 0.03},
    {.lead = 1, .margin = 0.03, .in_first = true},
    {.lead = 1, .margin = 0.12},
    {.lead = 1, .margin = 0.12, .in_first = true},
};

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static size_t n_devices(const struct survey *v) { return (size_t)v->step->pool->machine->n_devices + 1; }

struct swap_plan new_plan(const struct survey *v)
{
    return (struct swap_plan){.fate = allocate(v->n_candidates + 1, sizeof(enum fate)),
                              .spot = allocate(v->n_gaps + 1, sizeof(struct spot)),
                              .need = allocate(n_devices(v), sizeof(size_t)),
                              .excess = INFINITY};
}

void free_plan(struct swap_plan *p) { free(p->fate), free(p->spot), free(p->need); }

static void copy_plan(const struct survey *v, struct swap_plan *to, const struct swap_plan *from)
{
    struct swap_plan old = *to;
    *to = *from;
    to->fate = old.fate, to->spot = old.spot, to->need = old.need;
    memcpy(to->fate, from->fate, v->n_candidates * sizeof *to->fate);
    memcpy(to->spot, from->spot, v->n_gaps * sizeof *to->spot);
    memcpy(to->need, from->need, n_devices(v) * sizeof *to->need);
}

static bool is_less(double a, double b) { return a < b - 1e-9 * fabs(b); }

static bool is_better(const struct swap_plan *a, const struct swap_plan *b)
{
    if (a->excess != b->excess)
        return a->excess < b->excess;
    if (is_less(a->period, b->period) || is_less(b->period, a->period))
        return a->period < b->period;
    return a->moved < b->moved;
}

/* ---- trying ------------------------------------------------------------------------------------------------------ */

static void judge(const struct planner *p, struct swap_plan *plan, const struct line *l, const struct forecast *f)
{
    plan->excess = f->why_not ? INFINITY : 0;
    plan->period = isnan(f->period) ? 0 : f->period;
    plan->moved = 0;
    for (size_t d = 0; d < f->n_devices; d++) {
        plan->need[d] = f->need[d];
        if (f->need[d] > p->budget[d])
            plan->excess += (double)(f->need[d] - p->budget[d]);
    }
    for (size_t g = 0; g < p->survey->n_gaps; g++)
        plan->moved += (double)p->survey->gaps[g].tensor->bytes *
                       ((l->deeds[g].out != NULL) + (l->deeds[g].in && l->deeds[g].in->copy));
}

void try_plan(struct planner *p, struct swap_plan *plan, const struct way *way)
{
    struct survey *v = p->survey;
    struct edit *e = open_edit(v->step);
    struct line l = open_line(v, e, plan);
    if (way)
        choose_spots(v, &l, plan, p->budget, way);
    insert_copies(v, e, &l, plan);
    struct forecast f = try_step(v->step, v->costs);
    judge(p, plan, &l, &f);
    p->work += (double)f.n;
    free_forecast(&f);
    free_line(&l);
    undo(e);
}

static bool is_perfect(const struct planner *p, const struct swap_plan *plan)
{
    return plan->excess == 0 && (p->any || !is_less(p->bare, plan->period));
}

/* The same fates in several ways; the plan becomes the best of them. */
static void try_ways(struct planner *p, struct swap_plan *plan, const struct way *list, size_t n)
{
    struct swap_plan other = new_plan(p->survey);
    for (size_t i = 0; i < n && !is_perfect(p, plan); i++) {
        copy_plan(p->survey, &other, plan);
        try_plan(p, &other, &list[i]);
        if (is_better(&other, plan))
            copy_plan(p->survey, plan, &other);
    }
    free_plan(&other);
}

static void try_fates(struct planner *p, struct swap_plan *plan)
{
    plan->excess = INFINITY;
    try_ways(p, plan, ways, COUNT(ways));
    if (plan->excess > 0) /* holes, or no room for prefetching */
        try_ways(p, plan, more_ways, COUNT(more_ways));
}

/* A fate that the candidate may have: the one wished for, or else another than KEEP. */
static enum fate allowed_fate(const struct planner *p, size_t candidate, enum fate wish)
{
    bool remake = p->remake && p->survey->candidates[candidate].remakeable;
    if (wish == REMAKE || !p->swap)
        return remake ? REMAKE : p->swap ? SWAP : KEEP;
    return SWAP;
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

struct search {
    struct planner *p;
    size_t *list, n; /* candidates that are concerned */
    double largest;  /* bytes of one */
    struct swap_plan best[BEST];
};

static bool is_over(const struct search *s) { return s->p->work > s->p->most || (s->p->any && s->best[0].excess == 0); }

/* With the holes between addresses as they are when all is kept. */
static double most_held(const struct planner *p, const struct device *d)
{
    return (double)p->budget[d->index] - (double)p->holes[d->index];
}

/* Those around a place that is over the budget. */
static void list_concerned(struct search *s)
{
    const struct survey *v = s->p->survey;
    s->list = allocate(v->n_candidates + 1, sizeof *s->list);
    for (size_t c = 0; c < v->n_candidates; c++) {
        const struct candidate *candidate = &v->candidates[c];
        bool around = false;
        for (size_t g = candidate->first; g < candidate->first + candidate->n; g++)
            for (int i = v->gaps[g].before + 1; i < v->gaps[g].behind; i++)
                around |= (double)v->held[candidate->device->index][i] > most_held(s->p, candidate->device);
        if (!around || allowed_fate(s->p, c, SWAP) == KEEP)
            continue;
        s->list[s->n++] = c;
        s->largest = fmax(s->largest, (double)candidate->tensor->bytes);
    }
}

/* Tries the plan's fates, and keeps it among the best.  Frees it. */
static void enter(struct search *s, struct swap_plan *plan)
{
    const struct survey *v = s->p->survey;
    int at = BEST;
    try_fates(s->p, plan);
    for (int i = BEST; i-- > 0;) {
        if (s->best[i].excess == plan->excess &&
            memcmp(s->best[i].fate, plan->fate, v->n_candidates * sizeof *plan->fate) == 0)
            at = BEST + 1;
        at = at <= BEST && is_better(plan, &s->best[i]) ? i : at;
    }
    if (at < BEST) {
        struct swap_plan last = s->best[BEST - 1];
        memmove(&s->best[at + 1], &s->best[at], (size_t)(BEST - 1 - at) * sizeof last);
        s->best[at] = *plan;
        *plan = last;
    }
    free_plan(plan);
}

/* ---- plans by rule ----------------------------------------------------------------------------------------------- */

/* How good it is that this gap's tensor leaves: when it is needed again; or how many bytes a second of work buys, or,
 * where nothing is made again, how many bytes a copy does. */
static double merit(const struct planner *p, const struct gap *g, enum fate fate, bool by_cost)
{
    const struct survey *v = p->survey;
    const struct uses *u = &v->uses[g->tensor->id];
    double seconds = 0;
    if (!by_cost)
        return g->behind;
    if (fate == SWAP)
        return (double)g->tensor->bytes;
    for (size_t i = 0; i < u->n; i++)
        seconds += u->use[i].mode & ACCESS_WRITE ? seconds_alone(v->costs, v->task[u->use[i].task]) : 0;
    return (double)g->tensor->bytes / fmax(seconds, 1e-12);
}

/* The best one to leave of the gaps around `position`, of candidates that are kept. */
static const struct gap *best_to_leave(const struct planner *p, const struct swap_plan *plan, const struct device *d,
                                       int position, enum fate wish, bool by_cost)
{
    const struct survey *v = p->survey;
    const struct gap *best = NULL;
    double most = -INFINITY;
    for (size_t g = 0; g < v->n_gaps; g++) {
        const struct gap *gap = &v->gaps[g];
        enum fate fate = allowed_fate(p, gap->candidate, wish);
        if (gap->tensor->device != d || !crosses(gap, position) || plan->fate[gap->candidate] != KEEP || fate == KEEP)
            continue;
        double now = merit(p, gap, fate, by_cost);
        if (now > most)
            best = gap, most = now;
    }
    return best;
}

static void evict(const struct planner *p, struct swap_plan *plan, const struct device *d, double most, enum fate wish,
                  bool by_cost)
{
    const struct survey *v = p->survey;
    double *gone = allocate((size_t)v->n, sizeof *gone);
    for (int i = 0; i < v->n; i++)
        while ((double)v->held[d->index][i] - gone[i] > most) {
            const struct gap *best = best_to_leave(p, plan, d, i, wish, by_cost);
            if (!best)
                break;
            const struct candidate *c = &v->candidates[best->candidate];
            plan->fate[best->candidate] = allowed_fate(p, best->candidate, wish);
            for (size_t g = c->first; g < c->first + c->n; g++)
                for (int k = v->gaps[g].before + 1; k < v->gaps[g].behind; k++)
                    gone[k] += (double)c->tensor->bytes;
        }
    free(gone);
}

/* No other layer touches it. */
static bool is_of_one_layer(const struct survey *v, const struct candidate *c)
{
    const struct uses *u = &v->uses[c->tensor->id];
    bool same = v->task[c->maker]->layer >= 0;
    for (size_t i = 0; i < u->n; i++)
        same &= v->task[u->use[i].task]->layer == v->task[c->maker]->layer;
    return same;
}

/* Between layers all is kept, within them nothing: Chen et al. 2016. */
static void start_by_layer(struct search *s, enum fate wish)
{
    struct swap_plan plan = new_plan(s->p->survey);
    for (size_t i = 0; i < s->n; i++)
        if (is_of_one_layer(s->p->survey, &s->p->survey->candidates[s->list[i]]))
            plan.fate[s->list[i]] = allowed_fate(s->p, s->list[i], wish);
    enter(s, &plan);
}

static void start_by_rule(struct search *s)
{
    static const double spare[] = {0, 1, 2, 4, 8, 1e30};
    const struct machine *m = s->p->survey->step->pool->machine;
    for (int wish = SWAP; wish <= REMAKE && !is_over(s); wish++) {
        start_by_layer(s, (enum fate)wish);
        for (size_t i = 0; i < 2 * COUNT(spare) && !is_over(s); i++) {
            struct swap_plan plan = new_plan(s->p->survey);
            for (int d = 0; d < m->n_devices; d++)
                evict(s->p, &plan, &m->device[d], most_held(s->p, &m->device[d]) - spare[i / 2] * s->largest,
                      (enum fate)wish, i % 2 == 1);
            enter(s, &plan);
        }
    }
}

/* All combinations of fates, where these are few. */
static bool try_all(struct search *s)
{
    size_t n = 1;
    for (size_t i = 0; i < s->n && n <= ALL_TRIED; i++)
        n *= allowed_fate(s->p, s->list[i], SWAP) != allowed_fate(s->p, s->list[i], REMAKE) ? 3 : 2;
    for (size_t k = 0; k < n && n <= ALL_TRIED; k++) {
        struct swap_plan plan = new_plan(s->p->survey);
        size_t rest = k;
        for (size_t i = 0; i < s->n; i++) {
            enum fate fates[] = {KEEP, allowed_fate(s->p, s->list[i], SWAP), allowed_fate(s->p, s->list[i], REMAKE)};
            size_t of = fates[1] != fates[2] ? 3 : 2;
            plan.fate[s->list[i]] = fates[rest % of];
            rest /= of;
        }
        enter(s, &plan);
    }
    return n <= ALL_TRIED;
}

/* ---- other fates ------------------------------------------------------------------------------------------------- */

/* Gives each of the n listed candidates the fate, tries, and keeps that if it is better. */
static bool flip(struct search *s, struct swap_plan *plan, const size_t *list, const enum fate *fates, size_t n)
{
    const struct survey *v = s->p->survey;
    bool differs = false;
    if (is_over(s))
        return false;
    struct swap_plan other = new_plan(v);
    copy_plan(v, &other, plan);
    for (size_t i = 0; i < n; i++)
        if (fates[i] == KEEP || allowed_fate(s->p, list[i], fates[i]) == fates[i]) {
            differs |= other.fate[list[i]] != fates[i];
            other.fate[list[i]] = fates[i];
        }
    if (differs)
        try_fates(s->p, &other);
    differs = differs && is_better(&other, plan);
    if (differs)
        copy_plan(v, plan, &other);
    free_plan(&other);
    return differs;
}

static bool flip_singles(struct search *s, struct swap_plan *plan)
{
    bool better = false;
    for (size_t i = 0; i < s->n; i++)
        for (int fate = KEEP; fate <= REMAKE; fate++)
            better |= flip(s, plan, &s->list[i], &(enum fate){(enum fate)fate}, 1);
    return better;
}

static const char *name_of(const struct search *s, size_t i)
{
    return s->p->survey->candidates[s->list[i]].tensor->name;
}

/* All of one name: the same tensor of other layers and micro-batches. */
static bool flip_families(struct search *s, struct swap_plan *plan)
{
    bool better = false, *had = allocate(s->n + 1, sizeof *had);
    size_t *family = allocate(s->n + 1, sizeof *family);
    enum fate *fates = allocate(s->n + 1, sizeof *fates);
    for (size_t of = 0; of < s->n; of++) {
        size_t n = 0;
        for (size_t i = of; i < s->n && !had[of]; i++)
            if (strcmp(name_of(s, i), name_of(s, of)) == 0)
                family[n++] = s->list[i], had[i] = i > of;
        for (int fate = KEEP; fate <= REMAKE && n > 1; fate++) {
            for (size_t i = 0; i < n; i++)
                fates[i] = (enum fate)fate;
            better |= flip(s, plan, family, fates, n);
        }
    }
    free(had), free(family), free(fates);
    return better;
}

static bool flip_pairs(struct search *s, struct swap_plan *plan)
{
    bool better = false;
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = i + 1; k < s->n; k++)
            for (int fates = 0; fates < 9; fates++) {
                enum fate both[] = {(enum fate)(fates / 3), (enum fate)(fates % 3)};
                size_t pair[] = {s->list[i], s->list[k]};
                if (both[0] != plan->fate[pair[0]] && both[1] != plan->fate[pair[1]])
                    better |= flip(s, plan, pair, both, 2);
            }
    return better;
}

/* Of many, what is good enough stays as it is, though some bytes more are copied than must be. */
static void improve(struct search *s, struct swap_plan *plan)
{
    bool better = flip_families(s, plan) || true;
    while (better && !is_over(s) && !(s->n > FEW && plan->excess == 0 && plan->period <= s->p->bare * (1 + 1e-5))) {
        better = s->n > FEW && flip_families(s, plan);
        better |= flip_singles(s, plan);
        if (!better && s->n <= FEW)
            better = flip_pairs(s, plan);
    }
}

/* ---- other spots ------------------------------------------------------------------------------------------------- */

/* Each copy earlier or later by so many places. */
static bool shift_all(struct planner *p, struct swap_plan *plan, const struct line *l, int by)
{
    const struct survey *v = p->survey;
    bool better = false;
    struct swap_plan other = new_plan(v);
    for (size_t i = 0; i < 4 * l->n_stretches && p->work < p->most && !is_perfect(p, plan); i++) {
        const struct stretch *s = &l->out[i / 4];
        copy_plan(v, &other, plan);
        struct spot *spot = &other.spot[s->gap];
        *(i % 4 < 2 ? &spot->out : &spot->in) += i % 4 == 1 || i % 4 == 2 ? -by : by;
        if (spot->out < s->begin || spot->in > s->end || spot->out >= spot->in)
            continue;
        try_plan(p, &other, NULL);
        if (is_better(&other, plan))
            copy_plan(v, plan, &other), better = true;
    }
    free_plan(&other);
    return better;
}

/* A line that is no longer edited: its places only. */
static struct line peek_line(const struct survey *v, const struct swap_plan *plan)
{
    struct edit *e = open_edit(v->step);
    struct line l = open_line(v, e, plan);
    undo(e);
    return l;
}

/* How long each reader waits for what comes back, by gap; 0 where it does not.  Its device could have gone on. */
static double *list_waits(const struct survey *v, const struct line *l, const struct forecast *f)
{
    size_t *at = allocate(v->step->n, sizeof *at);
    double *waits = allocate(v->n_gaps + 1, sizeof *waits);
    for (size_t i = 0; i < f->n; i++)
        at[f->task[i]->index] = i;
    for (size_t k = 0; k < l->n_stretches && f->span; k++) {
        const struct deed *d = &l->deeds[l->in[k].gap];
        double before = 0;
        for (size_t i = d->in ? at[d->reader->index] : 0; i-- > 0 && before == 0;)
            before = f->task[i]->lane == d->reader->lane ? f->span[i].end : 0;
        if (d->in)
            waits[l->in[k].gap] = fmin(f->span[at[d->in->index]].end, f->span[at[d->reader->index]].start) - before;
    }
    free(at);
    return waits;
}

bool lead_more(struct planner *p, struct swap_plan *plan)
{
    struct survey *v = p->survey;
    struct swap_plan other = new_plan(v);
    struct edit *e = open_edit(v->step);
    struct line l = follow_plan(v, e, plan);
    struct forecast f = try_step(v->step, v->costs);
    double *waits = list_waits(v, &l, &f);
    undo(e);
    copy_plan(v, &other, plan);
    for (size_t k = 0; k < l.n_stretches; k++) {
        struct spot *spot = &other.spot[l.in[k].gap];
        double from = spot->in < l.n ? l.start[spot->in] - waits[l.in[k].gap] : 0;
        for (bool late = waits[l.in[k].gap] > 1e-9 * plan->period; late && spot->in - 1 > spot->out; spot->in--)
            late = l.start[spot->in - 1] > from;
    }
    free(waits);
    free_forecast(&f);
    free_line(&l);
    try_plan(p, &other, NULL);
    bool better = is_better(&other, plan);
    if (better)
        copy_plan(v, plan, &other);
    free_plan(&other);
    return better;
}

static void polish(struct planner *p, struct swap_plan *plan)
{
    p->most = p->work + p->most / 2;
    try_ways(p, plan, more_ways, COUNT(more_ways));
    struct line l = peek_line(p->survey, plan);
    for (bool better = true; better && p->work < p->most && !is_perfect(p, plan);) {
        better = lead_more(p, plan);
        for (int by = 8; by > 0; by /= 2)
            better |= shift_all(p, plan, &l, by);
    }
    free_line(&l);
}

/* ---- planning ---------------------------------------------------------------------------------------------------- */

struct planner open_planner(struct survey *v, const size_t *budget, bool swap, bool remake)
{
    struct planner p = {.survey = v, .swap = swap, .remake = remake, .most = MOST_WORK};
    p.budget = allocate(n_devices(v), sizeof *p.budget);
    memcpy(p.budget, budget, n_devices(v) * sizeof *budget);
    struct swap_plan none = new_plan(v);
    try_plan(&p, &none, NULL);
    p.bare = none.period;
    p.holes = allocate(n_devices(v), sizeof *p.holes);
    for (int d = 0; d < v->step->pool->machine->n_devices; d++) {
        size_t most = 0;
        for (int i = 0; i < v->n; i++)
            most = MAX(most, v->held[d][i]);
        p.holes[d] = none.need[d] - most;
    }
    free_plan(&none);
    return p;
}

void close_planner(struct planner *p) { free(p->budget), free(p->holes); }

size_t bytes_in_use(const struct planner *p, const struct device *d)
{
    const struct survey *v = p->survey;
    struct swap_plan plan = new_plan(v);
    int64_t most = 0;
    for (size_t c = 0; c < v->n_candidates; c++)
        plan.fate[c] = allowed_fate(p, c, SWAP) == KEEP ? KEEP : SWAP;
    struct line l = peek_line(v, &plan);
    int64_t *held = bytes_along(v, &l, d);
    for (int i = 0; i < l.n; i++)
        most = MAX(most, held[i]);
    free(held);
    free_line(&l);
    free_plan(&plan);
    return (size_t)most + guard_bytes(d);
}

static void promote(struct search *s, int i)
{
    struct swap_plan first = s->best[0];
    if (is_better(&s->best[i], &first))
        s->best[0] = s->best[i], s->best[i] = first;
}

struct swap_plan find_plan(struct planner *p)
{
    const struct survey *v = p->survey;
    struct search s = {.p = p};
    list_concerned(&s);
    for (int i = 0; i < BEST; i++)
        s.best[i] = new_plan(v);
    if (!try_all(&s) || s.best[0].excess > 0) {
        start_by_rule(&s);
        for (int i = 0; i < (s.n <= SOME ? BEST : 1); i++)
            improve(&s, &s.best[i]), promote(&s, i);
    }
    for (int i = 0; i < BEST && (i == 0 || s.n <= SOME || s.best[0].excess > 0); i++)
        polish(p, &s.best[i]), promote(&s, i);
    for (int i = 1; i < BEST; i++)
        free_plan(&s.best[i]);
    free(s.list);
    return s.best[0];
}
