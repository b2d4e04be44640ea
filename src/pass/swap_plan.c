/* swap_plan.c - what comes of a plan for swapping, and where its copies lie best (see gaps.h).
 *
 * Every answer comes from trying: the plan is made true in an edit, placed and simulated.  What needs too many bytes is
 * not simulated, which is most of the work.  Where its copies begin is chosen in a few ways; in the end what comes too
 * late gets more lead, and the copies themselves are moved.
 *
 * A plan is better when it needs fewer bytes beyond the budgets, then when the step is shorter, then when it copies
 * less.
 */
#include "gaps.h"

#include <math.h>

const double MOST_WORK = 6e5;

static const struct way least_way = {.lead = 0}; /* holds the fewest bytes */
enum { FIRST_WAYS = 2 };
static const struct way ways[] = {
    {.lead = 1},
    {.lead = 1, .in_first = true},
    {.lead = 0},
    {.lead = 2},
    {.lead = 2, .in_first = true},
    {.lead = 1e6},
    {.lead = 1, .margin = 0.03},
    {.lead = 1, .margin = 0.03, .in_first = true},
    {.lead = 1, .margin = 0.12},
    {.lead = 1, .margin = 0.12, .in_first = true},
};

const struct way *any_way(size_t n) { return &ways[n % COUNT(ways)]; }

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

struct swap_plan copy_of_plan(const struct survey *v, const struct swap_plan *p)
{
    struct swap_plan copy = new_plan(v);
    copy_plan(v, &copy, p);
    return copy;
}

static bool is_less(double a, double b) { return a < b - 1e-9 * fabs(b); }

bool is_better_plan(const struct swap_plan *a, const struct swap_plan *b)
{
    if (a->excess != b->excess)
        return a->excess < b->excess;
    if (is_less(a->period, b->period) || is_less(b->period, a->period))
        return a->period < b->period;
    return a->moved < b->moved;
}

/* ---- trying ------------------------------------------------------------------------------------------------------ */

struct trial {
    const struct planner *p;
    struct swap_plan *plan;
    double most; /* bytes over budgets; beyond, nobody asks how long it takes */
};

/* What the host has too little of nobody makes up for. */
static bool judge_bytes(void *trial, const struct forecast *f)
{
    const struct trial *t = trial;
    t->plan->excess = 0;
    for (size_t d = 0; d < f->n_devices; d++) {
        double weight = d + 1 == f->n_devices ? 1e6 : 1;
        t->plan->need[d] = f->need[d];
        if (f->need[d] > t->p->budget[d])
            t->plan->excess += weight * (double)(f->need[d] - t->p->budget[d]);
    }
    return !t->p->any && t->plan->excess <= t->most;
}

static double bytes_moved(const struct survey *v, const struct line *l)
{
    double bytes = 0;
    for (size_t g = 0; g < v->n_gaps; g++)
        bytes +=
            (double)v->gaps[g].tensor->bytes * ((l->deeds[g].out != NULL) + (l->deeds[g].in && l->deeds[g].in->copy));
    return bytes;
}

void try_within(struct planner *p, struct swap_plan *plan, const struct way *way, double most)
{
    struct survey *v = p->survey;
    struct edit *e = open_edit(v->step);
    struct line l = open_line(v, e, plan);
    if (way)
        choose_spots(v, &l, plan, p->budget, way);
    insert_copies(v, e, &l, plan);
    plan->excess = INFINITY, plan->way = way;
    struct forecast f = try_while(v->step, v->costs, judge_bytes, &(struct trial){p, plan, most});
    bool judged = !p->any && plan->excess <= most;
    plan->excess = f.why_not ? INFINITY : plan->excess;
    plan->period = !isnan(f.period) ? f.period : judged || p->any ? 0 : INFINITY;
    plan->moved = bytes_moved(v, &l);
    p->work += (double)f.n / (judged ? 1 : 4);
    show_busy(&p->busy, p->work / p->most);
    free_forecast(&f);
    free_line(&l);
    undo(e);
}

bool is_perfect(const struct planner *p, const struct swap_plan *plan)
{
    return plan->excess == 0 && (p->any || !is_less(p->bare, plan->period));
}

/* The same fates in other ways; the plan becomes the best of them.  Those that are over budgets by more than `most` are
 * not wanted. */
static void try_ways(struct planner *p, struct swap_plan *plan, size_t from, size_t to, double most)
{
    struct swap_plan other = new_plan(p->survey);
    for (size_t i = from; i < to && !is_perfect(p, plan); i++) {
        copy_plan(p->survey, &other, plan);
        try_within(p, &other, &ways[i], fmin(plan->excess, most));
        if (is_better_plan(&other, plan))
            copy_plan(p->survey, plan, &other);
    }
    free_plan(&other);
}

void try_fates(struct planner *p, struct swap_plan *plan, double most)
{
    plan->excess = INFINITY;
    if (p->any)
        try_within(p, plan, &least_way, 0);
    else
        try_ways(p, plan, 0, FIRST_WAYS, most);
    if (plan->excess > 0 && !p->any) /* holes, or no room for prefetching */
        try_ways(p, plan, FIRST_WAYS, COUNT(ways), most);
}

void try_other_ways(struct planner *p, struct swap_plan *plan) { try_ways(p, plan, 0, COUNT(ways), INFINITY); }

enum fate allowed_fate(const struct planner *p, size_t candidate, enum fate wish)
{
    const struct candidate *c = &p->survey->candidates[candidate];
    bool remake = p->remake && c->remakeable;
    if (!(p->classes >> c->tensor->class & 1))
        return KEEP;
    if (wish == REMAKE || !p->swap)
        return remake ? REMAKE : p->swap ? SWAP : KEEP;
    return SWAP;
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
        try_within(p, &other, NULL, plan->excess);
        if (is_better_plan(&other, plan))
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
    try_within(p, &other, NULL, INFINITY);
    bool better = is_better_plan(&other, plan);
    if (better)
        copy_plan(v, plan, &other);
    free_plan(&other);
    return better;
}

void polish(struct planner *p, struct swap_plan *plan)
{
    try_other_ways(p, plan);
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
    struct planner p = {.survey = v, .swap = swap, .remake = remake, .busy = {.what = "looking for a plan"}};
    p.classes = (1u << MEM_CLASSES) - 1, p.most = MOST_WORK;
    p.budget = allocate(n_devices(v), sizeof *p.budget);
    memcpy(p.budget, budget, n_devices(v) * sizeof *budget);
    struct swap_plan none = new_plan(v);
    try_within(&p, &none, NULL, INFINITY);
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

void close_planner(struct planner *p)
{
    end_busy(&p->busy);
    free(p->budget), free(p->holes);
    for (size_t i = 0; i < COUNT(p->least); i++)
        free_plan(&p->least[i]);
}

size_t *bytes_in_use(const struct planner *p)
{
    const struct survey *v = p->survey;
    struct swap_plan plan = new_plan(v);
    size_t *bytes = allocate(n_devices(v), sizeof *bytes);
    for (size_t c = 0; c < v->n_candidates; c++)
        plan.fate[c] = allowed_fate(p, c, SWAP) == KEEP ? KEEP : SWAP;
    struct line l = peek_line(v, &plan);
    for (size_t d = 0; d + 1 < n_devices(v); d++) {
        const struct device *device = &v->step->pool->machine->device[d];
        int64_t *held = bytes_along(v, &l, device), most = 0;
        for (int i = 0; i < l.n; i++)
            most = MAX(most, held[i]);
        bytes[d] = (size_t)most + guard_bytes(device);
        free(held);
    }
    free_line(&l);
    free_plan(&plan);
    return bytes;
}
