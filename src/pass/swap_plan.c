/* swap_plan.c - what to keep, to swap and to make again.
 *
 * Every answer comes from trying: the plan is made true in an edit, placed and simulated.  First come plans by rule:
 * whatever is over the budget leaves, the tensor with the furthest next use first (Belady), with some bytes to spare or
 * none; the first k of all; all.  From the best of them on, single tensors get another fate, and pairs where these are
 * few, while it helps; few choices are tried all.  In the end the copies themselves are moved: earlier where something
 * waits for one, else what comes back as late as nothing waits.
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
    {.tight = true},
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

void copy_plan(const struct survey *v, struct swap_plan *to, const struct swap_plan *from)
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

static void judge(const struct planner *p, struct swap_plan *plan, const struct forecast *f)
{
    plan->excess = f->why_not ? INFINITY : 0;
    plan->period = isnan(f->period) ? 0 : f->period;
    for (size_t d = 0; d < f->n_devices; d++) {
        plan->need[d] = f->need[d];
        if (f->need[d] > p->budget[d])
            plan->excess += (double)(f->need[d] - p->budget[d]);
    }
}

static double copied_bytes(const struct survey *v, const struct line *l)
{
    double sum = 0;
    for (size_t g = 0; g < v->n_gaps; g++) {
        const struct deed *d = &l->deeds[g];
        sum += (double)v->gaps[g].tensor->bytes * ((d->out != NULL) + (d->in && d->in == d->ready && d->in->copy));
    }
    return sum;
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
    judge(p, plan, &f);
    plan->moved = copied_bytes(v, &l);
    p->work += (double)f.n;
    free_forecast(&f);
    free_line(&l);
    undo(e);
}

bool is_spent(const struct planner *p) { return p->work > p->most; }

/* The same fates in several ways; the plan becomes the best of them. */
static void try_ways(struct planner *p, struct swap_plan *plan, const struct way *list, size_t n)
{
    struct swap_plan other = new_plan(p->survey);
    for (size_t i = 0; i < n; i++) {
        copy_plan(p->survey, &other, plan);
        try_plan(p, &other, &list[i]);
        if (is_better(&other, plan))
            copy_plan(p->survey, plan, &other);
        if (plan->excess == 0 && !is_less(p->bare, plan->period))
            break;
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

/* ---- plans by rule ----------------------------------------------------------------------------------------------- */

enum fate allowed_fate(const struct planner *p, const struct candidate *c, enum fate wish)
{
    bool remake = p->remake && c->remakeable;
    if (wish == REMAKE)
        return remake ? REMAKE : p->swap ? SWAP : KEEP;
    return p->swap ? SWAP : remake ? REMAKE : KEEP;
}

static bool may(const struct planner *p, const struct candidate *c, enum fate fate)
{
    return fate == KEEP || allowed_fate(p, c, fate) == fate;
}

/* How good it is that this gap's tensor leaves: when it is needed again; or how many bytes a second of work buys, or,
 * where nothing is made again, how many bytes a copy does. */
static double merit(const struct planner *p, const struct gap *g, enum fate wish, bool by_cost)
{
    const struct survey *v = p->survey;
    const struct candidate *c = &v->candidates[g->candidate];
    if (!by_cost)
        return g->behind;
    if (allowed_fate(p, c, wish) == SWAP)
        return (double)g->tensor->bytes;
    double seconds = 0;
    for (const struct use *u = &v->use[v->first_use[g->tensor->id]]; u->task >= 0; u++)
        seconds += u->mode & ACCESS_WRITE ? seconds_alone(v->costs, v->task[u->task]) : 0;
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
        if (gap->tensor->device != d || !crosses(gap, position) || plan->fate[gap->candidate] != KEEP ||
            allowed_fate(p, &v->candidates[gap->candidate], wish) == KEEP)
            continue;
        double now = merit(p, gap, wish, by_cost);
        if (now > most)
            best = gap, most = now;
    }
    return best;
}

static void change_fate(const struct survey *v, struct swap_plan *plan, size_t candidate, enum fate fate, int64_t *held)
{
    const struct candidate *c = &v->candidates[candidate];
    plan->fate[candidate] = fate;
    for (size_t g = c->first; g < c->first + c->n; g++)
        for (int i = v->gaps[g].before + 1; i < v->gaps[g].behind; i++)
            held[i] -= (int64_t)c->tensor->bytes;
}

int64_t *bytes_kept(const struct survey *v, const struct device *d)
{
    struct swap_plan none = new_plan(v);
    struct edit *e = open_edit(v->step);
    struct line l = open_line(v, e, &none);
    int64_t *held = bytes_along(v, &l, &none, d);
    free_line(&l);
    undo(e);
    free_plan(&none);
    return held;
}

static void evict(const struct planner *p, struct swap_plan *plan, double spare, enum fate wish, bool by_cost)
{
    const struct survey *v = p->survey;
    const struct machine *m = v->step->pool->machine;
    for (int d = 0; d < m->n_devices; d++) {
        int64_t *held = bytes_kept(v, &m->device[d]);
        double most = (double)p->budget[d] - (double)guard_bytes(&m->device[d]) - spare;
        for (int i = 0; i < v->n; i++)
            for (const struct gap *g; (double)held[i] > most;) {
                if (!(g = best_to_leave(p, plan, &m->device[d], i, wish, by_cost)))
                    break;
                change_fate(v, plan, g->candidate, allowed_fate(p, &v->candidates[g->candidate], wish), held);
            }
        free(held);
    }
}

/* Which candidates lie around a place that is over the budget; how many. */
static size_t list_concerned(const struct planner *p, size_t *list)
{
    const struct survey *v = p->survey;
    size_t n = 0;
    const struct machine *m = v->step->pool->machine;
    int64_t **held = allocate(n_devices(v), sizeof *held);
    for (int d = 0; d < m->n_devices; d++)
        held[d] = bytes_kept(v, &m->device[d]);
    for (size_t c = 0; c < v->n_candidates; c++) {
        bool around = false;
        int d = v->candidates[c].tensor->device->index;
        double most = (double)p->budget[d] - (double)guard_bytes(&m->device[d]);
        for (size_t g = v->candidates[c].first; g < v->candidates[c].first + v->candidates[c].n; g++)
            for (int i = v->gaps[g].before + 1; i < v->gaps[g].behind && !around; i++)
                around = (double)held[d][i] > most;
        if (around && allowed_fate(p, &v->candidates[c], SWAP) != KEEP)
            list[n++] = c;
    }
    for (int d = 0; d < m->n_devices; d++)
        free(held[d]);
    free(held);
    return n;
}

struct search {
    struct planner *p;
    size_t *list, n; /* candidates that are concerned */
    double largest;  /* bytes of one */
    struct swap_plan best[BEST];
};

static void keep_if_good(struct search *s, const struct swap_plan *plan)
{
    const struct survey *v = s->p->survey;
    for (int i = 0; i < BEST; i++)
        if (s->best[i].excess == plan->excess &&
            memcmp(s->best[i].fate, plan->fate, v->n_candidates * sizeof *plan->fate) == 0)
            return;
    for (int i = 0; i < BEST; i++) {
        if (!is_better(plan, &s->best[i]))
            continue;
        struct swap_plan last = s->best[BEST - 1];
        memmove(&s->best[i + 1], &s->best[i], (size_t)(BEST - 1 - i) * sizeof last);
        s->best[i] = last;
        copy_plan(v, &s->best[i], plan);
        return;
    }
}

static void start_with(struct search *s, size_t first, size_t end, enum fate wish)
{
    if (is_spent(s->p))
        return;
    struct swap_plan plan = new_plan(s->p->survey);
    for (size_t i = first; i < end; i++)
        plan.fate[s->list[i]] = allowed_fate(s->p, &s->p->survey->candidates[s->list[i]], wish);
    try_fates(s->p, &plan);
    keep_if_good(s, &plan);
    free_plan(&plan);
}

static void start_by_rule(struct search *s)
{
    static const double spare[] = {0, 1, 2, 4, 8};
    for (int wish = SWAP; wish <= REMAKE; wish++) {
        for (size_t i = 0; i < 2 * COUNT(spare) && !is_spent(s->p); i++) {
            struct swap_plan plan = new_plan(s->p->survey);
            evict(s->p, &plan, spare[i / 2] * s->largest, (enum fate)wish, i % 2 == 1);
            try_fates(s->p, &plan);
            keep_if_good(s, &plan);
            free_plan(&plan);
        }
        for (size_t part = 1; part <= 4; part++) {
            start_with(s, 0, s->n * part / 4, (enum fate)wish);
            start_with(s, s->n - s->n * part / 4, s->n, (enum fate)wish);
        }
    }
}

/* ---- other fates ------------------------------------------------------------------------------------------------- */

/* Gives each of the n listed candidates the fate, tries, and keeps that if it is better. */
static bool flip(struct search *s, struct swap_plan *plan, const size_t *list, const enum fate *fates, size_t n)
{
    const struct survey *v = s->p->survey;
    bool differs = false;
    struct swap_plan other = new_plan(v);
    copy_plan(v, &other, plan);
    for (size_t i = 0; i < n; i++) {
        enum fate fate = may(s->p, &v->candidates[list[i]], fates[i]) ? fates[i] : plan->fate[list[i]];
        differs |= other.fate[list[i]] != fate;
        other.fate[list[i]] = fate;
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
    for (size_t i = 0; i < s->n && !is_spent(s->p); i++)
        for (int fate = KEEP; fate <= REMAKE; fate++)
            better |= flip(s, plan, &s->list[i], &(enum fate){(enum fate)fate}, 1);
    return better;
}

/* All that have the name of this one: the same tensor of other layers and micro-batches. */
static bool flip_family(struct search *s, struct swap_plan *plan, size_t of, size_t *family, enum fate *fates)
{
    const struct survey *v = s->p->survey;
    size_t n = 0;
    bool better = false;
    for (size_t i = 0; i < s->n; i++) {
        bool same = strcmp(v->candidates[s->list[i]].tensor->name, v->candidates[s->list[of]].tensor->name) == 0;
        if (same && i < of)
            return false; /* has had its turn */
        if (same)
            family[n++] = s->list[i];
    }
    for (int fate = KEEP; fate <= REMAKE && n > 1; fate++) {
        for (size_t i = 0; i < n; i++)
            fates[i] = (enum fate)fate;
        better |= flip(s, plan, family, fates, n);
    }
    return better;
}

static bool flip_families(struct search *s, struct swap_plan *plan)
{
    bool better = false;
    size_t *family = allocate(s->n + 1, sizeof *family);
    enum fate *fates = allocate(s->n + 1, sizeof *fates);
    for (size_t i = 0; i < s->n && !is_spent(s->p); i++)
        better |= flip_family(s, plan, i, family, fates);
    free(family), free(fates);
    return better;
}

static bool flip_pairs(struct search *s, struct swap_plan *plan)
{
    bool better = false;
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = i + 1; k < s->n && !is_spent(s->p); k++)
            for (int fates = 0; fates < 9; fates++) {
                enum fate both[] = {(enum fate)(fates / 3), (enum fate)(fates % 3)};
                size_t pair[] = {s->list[i], s->list[k]};
                if (both[0] != plan->fate[pair[0]] && both[1] != plan->fate[pair[1]])
                    better |= flip(s, plan, pair, both, 2);
            }
    return better;
}

/* Of many, what is good enough stays as it is, though some bytes more are copied than must be. */
static bool is_good(const struct search *s, const struct swap_plan *plan)
{
    return s->n > FEW && plan->excess == 0 && plan->period <= s->p->bare * (1 + 1e-5);
}

static void improve(struct search *s, struct swap_plan *plan)
{
    bool better = true;
    if (is_good(s, plan))
        flip_families(s, plan);
    while (better && !is_spent(s->p) && !is_good(s, plan)) {
        better = s->n > FEW && flip_families(s, plan);
        better |= flip_singles(s, plan);
        if (!better && s->n <= FEW)
            better = flip_pairs(s, plan);
    }
}

/* All combinations of fates, where these are few. */
static bool try_all(struct search *s)
{
    size_t n = 1;
    for (size_t i = 0; i < s->n && n <= ALL_TRIED; i++)
        n *= s->p->swap && s->p->remake && s->p->survey->candidates[s->list[i]].remakeable ? 3 : 2;
    if (n > ALL_TRIED)
        return false;
    for (size_t k = 0; k < n; k++) {
        struct swap_plan plan = new_plan(s->p->survey);
        size_t rest = k;
        for (size_t i = 0; i < s->n; i++) {
            const struct candidate *c = &s->p->survey->candidates[s->list[i]];
            bool three = s->p->swap && s->p->remake && c->remakeable;
            plan.fate[s->list[i]] = three ? (enum fate)(rest % 3) : rest % 2 ? allowed_fate(s->p, c, SWAP) : KEEP;
            rest /= three ? 3 : 2;
        }
        try_fates(s->p, &plan);
        keep_if_good(s, &plan);
        free_plan(&plan);
    }
    return true;
}

/* ---- other spots ------------------------------------------------------------------------------------------------- */

static bool shift(struct planner *p, struct swap_plan *plan, size_t gap, int out, int in)
{
    const struct survey *v = p->survey;
    struct swap_plan other = new_plan(v);
    copy_plan(v, &other, plan);
    other.spot[gap] = (struct spot){plan->spot[gap].out + out, plan->spot[gap].in + in};
    try_plan(p, &other, NULL);
    bool better = is_better(&other, plan);
    if (better)
        copy_plan(v, plan, &other);
    free_plan(&other);
    return better;
}

struct reach { /* how far a gap's copies may be moved, and the line's length */
    int begin, end;
};

/* Of each gap that is swapped; in the line of these fates. */
static struct reach *list_reaches(const struct planner *p, const struct swap_plan *plan)
{
    struct survey *v = p->survey;
    struct reach *reach = allocate(v->n_gaps + 1, sizeof *reach);
    struct edit *e = open_edit(v->step);
    struct line l = open_line(v, e, plan);
    for (size_t g = 0; g < v->n_gaps; g++)
        reach[g] = (struct reach){gap_begins(v, &l, g), gap_ends(v, &l, g)};
    free_line(&l);
    undo(e);
    return reach;
}

static bool shift_within(struct planner *p, struct swap_plan *plan, size_t g, const struct reach *r, int out, int in)
{
    struct spot s = {plan->spot[g].out + out, plan->spot[g].in + in};
    if (s.out < r->begin || s.in > r->end || s.out >= s.in)
        return false;
    return shift(p, plan, g, out, in);
}

static bool shift_all(struct planner *p, struct swap_plan *plan, const struct reach *reach, int by)
{
    bool better = false;
    for (size_t g = 0; g < p->survey->n_gaps && !is_spent(p); g++)
        for (int way = 0; way < 4 && leaves(p->survey, plan, g); way++)
            better |= shift_within(p, plan, g, &reach[g],
                                   way == 0   ? by
                                   : way == 1 ? -by
                                              : 0,
                                   way == 2   ? -by
                                   : way == 3 ? by
                                              : 0);
    return better;
}

/* What comes back later, as late as the period stays: the last needed first. */
static void delay_ins(struct planner *p, struct swap_plan *plan, const struct reach *reach)
{
    struct survey *v = p->survey;
    struct swap_plan other = new_plan(v);
    for (size_t g = v->n_gaps; g-- > 0 && !is_spent(p);) {
        if (!leaves(v, plan, g) || v->gaps[g].behind == v->n)
            continue;
        int low = plan->spot[g].in, high = reach[g].end;
        while (low < high && !is_spent(p)) {
            int middle = (low + high + 1) / 2;
            copy_plan(v, &other, plan);
            other.spot[g].in = middle;
            try_plan(p, &other, NULL);
            if (other.excess > plan->excess || is_less(plan->period, other.period))
                high = middle - 1;
            else
                copy_plan(v, plan, &other), low = middle;
        }
    }
    free_plan(&other);
}

static void polish(struct planner *p, struct swap_plan *plan)
{
    bool better = plan->excess > 0 || is_less(p->bare, plan->period);
    struct reach *reach;
    p->most += p->last_work;
    if (better)
        try_ways(p, plan, more_ways, COUNT(more_ways));
    reach = list_reaches(p, plan);
    while (better && (plan->excess > 0 || is_less(p->bare, plan->period)) && !is_spent(p)) {
        better = false;
        for (int by = 8; by > 0; by /= 2)
            better |= shift_all(p, plan, reach, by);
    }
    if (plan->excess == 0)
        delay_ins(p, plan, reach);
    free(reach);
}

/* ---- planning ---------------------------------------------------------------------------------------------------- */

struct planner open_planner(struct survey *v, const size_t *budget, bool swap, bool remake)
{
    struct planner p = {.survey = v, .swap = swap, .remake = remake, .most = MOST_WORK, .last_work = MOST_WORK / 2};
    p.budget = allocate(n_devices(v), sizeof *p.budget);
    memcpy(p.budget, budget, n_devices(v) * sizeof *budget);
    struct swap_plan none = new_plan(v);
    try_plan(&p, &none, NULL);
    p.bare = none.period;
    free_plan(&none);
    return p;
}

void try_tight(struct planner *p, struct swap_plan *plan, const struct device *d, enum fate fate)
{
    const struct survey *v = p->survey;
    for (size_t c = 0; c < v->n_candidates; c++)
        if (v->candidates[c].tensor->device == d)
            plan->fate[c] = allowed_fate(p, &v->candidates[c], fate);
    try_plan(p, plan, &(struct way){.tight = true});
}

size_t bytes_in_use(struct planner *p, const struct device *d)
{
    struct survey *v = p->survey;
    struct swap_plan plan = new_plan(v);
    int64_t most = 0;
    for (size_t c = 0; c < v->n_candidates; c++)
        plan.fate[c] = allowed_fate(p, &v->candidates[c], SWAP) == KEEP ? KEEP : SWAP;
    struct edit *e = open_edit(v->step);
    struct line l = open_line(v, e, &plan);
    int64_t *held = bytes_along(v, &l, &plan, d);
    for (int i = 0; i < l.n; i++)
        most = MAX(most, held[i]);
    free(held);
    free_line(&l);
    undo(e);
    free_plan(&plan);
    return (size_t)most + guard_bytes(d);
}

bool tight_plan(struct planner *p, struct swap_plan *plan, enum fate fate)
{
    const struct machine *m = p->survey->step->pool->machine;
    bool possible = true;
    for (int d = 0; d < m->n_devices; d++) {
        try_tight(p, plan, &m->device[d], fate);
        possible &= p->budget[d] >= bytes_in_use(p, &m->device[d]);
    }
    return possible;
}

void close_planner(struct planner *p) { free(p->budget); }

/* Where addresses leave holes, what holds the least at a time may fit when nothing else does. */
static void fall_back(struct planner *p, struct swap_plan *plan)
{
    struct swap_plan tight = new_plan(p->survey);
    for (int fate = SWAP; fate <= REMAKE && plan->excess > 0; fate++) {
        tight_plan(p, &tight, (enum fate)fate);
        if (is_better(&tight, plan))
            copy_plan(p->survey, plan, &tight);
    }
    free_plan(&tight);
}

struct swap_plan find_plan(struct planner *p)
{
    const struct survey *v = p->survey;
    struct search s = {.p = p, .list = allocate(v->n_candidates + 1, sizeof *s.list)};
    s.n = list_concerned(p, s.list);
    for (size_t i = 0; i < s.n; i++)
        s.largest = fmax(s.largest, (double)v->candidates[s.list[i]].tensor->bytes);
    for (int i = 0; i < BEST; i++)
        s.best[i] = new_plan(v);
    if (!try_all(&s)) {
        start_by_rule(&s);
        struct swap_plan found = new_plan(v);
        for (int i = 0; i < (s.n <= SOME ? BEST : 1); i++) {
            improve(&s, &s.best[i]);
            if (is_better(&s.best[i], &found))
                copy_plan(v, &found, &s.best[i]);
        }
        copy_plan(v, &s.best[0], &found);
        free_plan(&found);
    }
    for (int i = 0; i < BEST && (i == 0 || s.best[0].excess > 0); i++) {
        polish(p, &s.best[i]);
        if (i > 0 && is_better(&s.best[i], &s.best[0]))
            copy_plan(v, &s.best[0], &s.best[i]);
    }
    fall_back(p, &s.best[0]);
    for (int i = 1; i < BEST; i++)
        free_plan(&s.best[i]);
    free(s.list);
    return s.best[0];
}
