/* swap_plan.c - what to keep, to swap and to make again.
 *
 * Every answer comes from trying: the plan is made true in an edit, placed and simulated.  What needs too many bytes is
 * not simulated, which is most of the work.  What replicas do alike is one unit, and has one fate.
 *
 * First comes the plan that needs the fewest bytes; then plans by rule: whatever is over the budget leaves, the tensor
 * with the furthest next use first (Belady) or what is cheapest to have again, with some bytes to spare or none.  From
 * the best of them on, families of units, single ones and pairs get another fate while it helps; few choices are tried
 * all.  That is done without moving state first.  In the end what comes too late gets more lead, and the copies
 * themselves are moved.
 *
 * A plan is better when it needs fewer bytes beyond the budgets, then when the step is shorter, then when it copies
 * less.
 */
#include "gaps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
static const struct way least_way = {.lead = 0}; /* holds the fewest bytes */

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

struct swap_plan copy_of_plan(const struct survey *v, const struct swap_plan *p)
{
    struct swap_plan copy = new_plan(v);
    copy_plan(v, &copy, p);
    return copy;
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

/* On a terminal, once a second. */
static void show_work(struct planner *p)
{
    uint64_t now = now_ns();
    if (now - p->shown < 1000000000 || !isatty(STDERR_FILENO))
        return;
    p->shown = now;
    fprintf(stderr, "\rlooking for a plan: %.0f %% \r", 100 * fmin(p->work / p->most, 1));
}

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

/* The same, but its period is INFINITY when it is over budgets by more than `most` bytes. */
static void try_within(struct planner *p, struct swap_plan *plan, const struct way *way, double most)
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
    show_work(p);
    free_forecast(&f);
    free_line(&l);
    undo(e);
}

void try_plan(struct planner *p, struct swap_plan *plan, const struct way *way) { try_within(p, plan, way, INFINITY); }

static bool is_perfect(const struct planner *p, const struct swap_plan *plan)
{
    return plan->excess == 0 && (p->any || !is_less(p->bare, plan->period));
}

/* The same fates in several ways; the plan becomes the best of them.  Those that are over budgets by more than `most`
 * are not wanted. */
static void try_ways(struct planner *p, struct swap_plan *plan, const struct way *list, size_t n, double most)
{
    struct swap_plan other = new_plan(p->survey);
    for (size_t i = 0; i < n && !is_perfect(p, plan); i++) {
        copy_plan(p->survey, &other, plan);
        try_within(p, &other, &list[i], fmin(plan->excess, most));
        if (is_better(&other, plan))
            copy_plan(p->survey, plan, &other);
    }
    free_plan(&other);
}

static void try_fates(struct planner *p, struct swap_plan *plan, double most)
{
    plan->excess = INFINITY;
    if (p->any)
        try_within(p, plan, &least_way, 0);
    else
        try_ways(p, plan, ways, COUNT(ways), most);
    if (plan->excess > 0 && !p->any) /* holes, or no room for prefetching */
        try_ways(p, plan, more_ways, COUNT(more_ways), most);
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

struct member { /* of a unit: what several devices do alike has one fate */
    size_t candidate;
    const struct tensor *tensor;
    const struct task *maker;
    int nth; /* of its kind on its device */
};
struct search {
    struct planner *p;
    struct member *members; /* that are concerned */
    size_t n_plain;         /* units that are no state: the first ones */
    size_t *first, n;       /* unit u begins at members[first[u]], the last one ends at first[n] */

    uint64_t *tried; /* hashes of fates */
    size_t n_tried, cap_tried;
    uint64_t draws;
    struct swap_plan best[BEST];
};

static bool is_over(const struct search *s) { return s->p->work > s->p->most || (s->p->any && s->best[0].excess == 0); }

/* With the holes between addresses as they are when all is kept. */
static double most_held(const struct planner *p, const struct device *d)
{
    return (double)p->budget[d->index] - (double)p->holes[d->index];
}

/* It lies around a place that is over the budget, and may leave. */
static bool is_concerned(const struct planner *p, size_t candidate)
{
    const struct survey *v = p->survey;
    const struct candidate *c = &v->candidates[candidate];
    bool around = false;
    for (size_t g = c->first; g < c->first + c->n; g++)
        for (int i = v->gaps[g].before + 1; i < v->gaps[g].behind; i++)
            around |= (double)v->held[c->device->index][i] > most_held(p, c->device);
    return around && allowed_fate(p, candidate, SWAP) != KEEP;
}

static int by_kind(const struct member *x, const struct member *y)
{
    const struct task *a = x->maker, *b = y->maker;
    int of_x[] = {a->layer, a->micro, (int)a->role, x->nth}, of_y[] = {b->layer, b->micro, (int)b->role, y->nth};
    int order = x->tensor->persistent - y->tensor->persistent;
    order = order ? order : COMPARE(y->tensor->bytes >> 12, x->tensor->bytes >> 12); /* shards need not be equal */
    order = order ? order : strcmp(x->tensor->name, y->tensor->name);
    order = order ? order : strcmp(a->name, b->name);
    for (size_t i = 0; i < COUNT(of_x) && !order; i++)
        order = COMPARE(of_x[i], of_y[i]);
    return order;
}

static int by_unit(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    int order = by_kind(x, y);
    order = order ? order : x->tensor->device->index - y->tensor->device->index;
    return order ? order : COMPARE(x->candidate, y->candidate);
}

/* Replicas have the same tensors: of a name, layer and micro-batch.  The largest come first. */
static void find_units(struct search *s, size_t n)
{
    struct member *m = s->members;
    qsort(m, n, sizeof *m, by_unit);
    for (size_t i = 1; i < n; i++) {
        struct member last = m[i - 1];
        last.nth = 0;
        m[i].nth = last.tensor->device == m[i].tensor->device && by_kind(&last, &m[i]) == 0 ? m[i - 1].nth + 1 : 0;
    }
    qsort(m, n, sizeof *m, by_unit);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || by_kind(&m[i], &m[i - 1]) != 0) {
            s->n_plain += !m[i].tensor->persistent;
            s->first[s->n++] = i;
        }
    s->first[s->n] = n;
}

static struct search open_search(struct planner *p)
{
    const struct survey *v = p->survey;
    size_t n = 0;
    struct search s = {.p = p};
    s.members = allocate(v->n_candidates + 1, sizeof *s.members);
    s.first = allocate(v->n_candidates + 1, sizeof *s.first);
    for (size_t c = 0; c < v->n_candidates; c++)
        if (is_concerned(p, c)) {
            const struct candidate *candidate = &v->candidates[c];
            s.members[n++] = (struct member){c, candidate->tensor, v->task[candidate->maker], 0};
        }
    find_units(&s, n);
    for (int i = 0; i < BEST; i++)
        s.best[i] = new_plan(v);
    return s;
}

static void set_fate(const struct search *s, struct swap_plan *plan, size_t unit, enum fate fate)
{
    for (size_t i = s->first[unit]; i < s->first[unit + 1]; i++) {
        size_t c = s->members[i].candidate;
        if (fate == KEEP || allowed_fate(s->p, c, fate) == fate)
            plan->fate[c] = fate;
    }
}

/* The same fates come from many rules and flips. */
static bool was_tried(struct search *s, const struct swap_plan *plan)
{
    uint64_t hash = hash_bytes(plan->fate, s->p->survey->n_candidates * sizeof *plan->fate, 0);
    for (size_t i = 0; i < s->n_tried; i++)
        if (s->tried[i] == hash)
            return true;
    *APPEND(s->tried, s->n_tried, s->cap_tried) = hash;
    return false;
}

/* Among the best.  Frees the plan. */
static void enter(struct search *s, struct swap_plan *plan)
{
    int at = BEST;
    while (at > 0 && is_better(plan, &s->best[at - 1]))
        at--;
    if (at < BEST) {
        struct swap_plan last = s->best[BEST - 1];
        memmove(&s->best[at + 1], &s->best[at], (size_t)(BEST - 1 - at) * sizeof last);
        s->best[at] = *plan;
        *plan = last;
    }
    free_plan(plan);
}

/* Tries the plan's fates.  Frees it. */
static void consider(struct search *s, struct swap_plan *plan)
{
    if (!was_tried(s, plan))
        try_fates(s->p, plan, s->best[BEST - 1].excess);
    else
        plan->excess = INFINITY, plan->period = INFINITY;
    enter(s, plan);
}

/* ---- plans by rule ----------------------------------------------------------------------------------------------- */

struct rule { /* for what leaves */
    enum fate wish;
    bool by_cost; /* else by next use */
    bool state;   /* may leave too */
};

struct leaver {
    const struct gap *gap;
    double merit;
};

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

static int by_before(const void *a, const void *b)
{
    const struct leaver *x = a, *y = b;
    return x->gap->before != y->gap->before ? x->gap->before - y->gap->before : COMPARE(x->gap, y->gap);
}

/* The device's gaps that the rule lets leave, the earliest first. */
static struct leaver *list_leavers(const struct planner *p, const struct device *d, const struct rule *rule, size_t *n)
{
    const struct survey *v = p->survey;
    struct leaver *list = allocate(v->n_gaps + 1, sizeof *list);
    *n = 0;
    for (size_t g = 0; g < v->n_gaps; g++) {
        const struct gap *gap = &v->gaps[g];
        enum fate fate = allowed_fate(p, gap->candidate, rule->wish);
        if (gap->tensor->device == d && fate != KEEP && (rule->state || !gap->tensor->persistent))
            list[(*n)++] = (struct leaver){gap, merit(p, gap, fate, rule->by_cost)};
    }
    qsort(list, *n, sizeof *list, by_before);
    return list;
}

/* Of those that are kept and lie around the position the best; the others leave the list.  NULL: there is none. */
static const struct gap *best_to_leave(const struct swap_plan *plan, struct leaver *here, size_t *n, int position)
{
    size_t kept = 0, best = 0;
    for (size_t i = 0; i < *n; i++)
        if (here[i].gap->behind > position && plan->fate[here[i].gap->candidate] == KEEP) {
            here[kept] = here[i];
            best = here[kept].merit > here[best].merit ? kept : best;
            kept++;
        }
    *n = kept;
    return kept ? here[best].gap : NULL;
}

static void evict(const struct planner *p, struct swap_plan *plan, const struct device *d, double most,
                  const struct rule *rule)
{
    const struct survey *v = p->survey;
    double *gone = allocate((size_t)v->n + 1, sizeof *gone);
    size_t n, next = 0, n_here = 0;
    struct leaver *list = list_leavers(p, d, rule, &n), *here = allocate(n + 1, sizeof *here);
    for (int i = 0; i < v->n; i++) {
        while (next < n && list[next].gap->before < i)
            here[n_here++] = list[next++];
        while ((double)v->held[d->index][i] - gone[i] > most) {
            const struct gap *best = best_to_leave(plan, here, &n_here, i);
            if (!best)
                break;
            const struct candidate *c = &v->candidates[best->candidate];
            plan->fate[best->candidate] = allowed_fate(p, best->candidate, rule->wish);
            for (size_t g = c->first; g < c->first + c->n; g++)
                for (int k = v->gaps[g].before + 1; k < v->gaps[g].behind; k++)
                    gone[k] += (double)c->tensor->bytes;
        }
    }
    free(gone), free(list), free(here);
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

/* Between layers all is kept, within them nothing: Chen et al. 2016.  And state, or not. */
static void start_by_layer(struct search *s, enum fate wish, bool state)
{
    const struct survey *v = s->p->survey;
    struct swap_plan plan = new_plan(v);
    for (size_t u = 0; u < s->n; u++) {
        size_t c = s->members[s->first[u]].candidate;
        if (u < s->n_plain ? is_of_one_layer(v, &v->candidates[c]) : state)
            set_fate(s, &plan, u, allowed_fate(s->p, c, wish));
    }
    consider(s, &plan);
}

/* spare: more than must leaves, by that share of the budget. */
static void start_by(struct search *s, const struct rule *rule, double spare, bool state_last)
{
    const struct machine *m = s->p->survey->step->pool->machine;
    struct swap_plan plan = new_plan(s->p->survey);
    for (int d = 0; d < m->n_devices; d++) {
        double most = most_held(s->p, &m->device[d]) * (1 - spare);
        if (state_last)
            evict(s->p, &plan, &m->device[d], most, &(struct rule){rule->wish, rule->by_cost, false});
        evict(s->p, &plan, &m->device[d], most, rule);
    }
    consider(s, &plan);
}

static void start_by_rule(struct search *s, bool state)
{
    static const double spare[] = {1, 0, 0.02, 0.05, 0.1, 0.2};
    for (int wish = SWAP; wish <= REMAKE && !is_over(s); wish++) {
        start_by_layer(s, (enum fate)wish, state);
        for (int i = 0; i < (state ? 4 : 2) * (int)COUNT(spare) && !is_over(s); i++)
            start_by(s, &(struct rule){(enum fate)wish, i & 1, state}, spare[i / 2 % (int)COUNT(spare)],
                     i >= 2 * (int)COUNT(spare));
    }
}

static size_t fates_of(const struct search *s, size_t unit)
{
    size_t c = s->members[s->first[unit]].candidate;
    return allowed_fate(s->p, c, SWAP) != allowed_fate(s->p, c, REMAKE) ? 3 : 2;
}

/* All combinations of fates, where these are few. */
static bool try_all(struct search *s)
{
    size_t n = 1;
    for (size_t u = 0; u < s->n && n <= ALL_TRIED; u++)
        n *= fates_of(s, u);
    for (size_t k = 0; k < n && n <= ALL_TRIED; k++) {
        struct swap_plan plan = new_plan(s->p->survey);
        size_t rest = k;
        for (size_t u = 0; u < s->n; rest /= fates_of(s, u++)) {
            enum fate fate = (enum fate)(rest % fates_of(s, u));
            set_fate(s, &plan, u, fate != KEEP && !s->p->swap ? REMAKE : fate);
        }
        consider(s, &plan);
    }
    return n <= ALL_TRIED;
}

/* ---- other fates ------------------------------------------------------------------------------------------------- */

/* Gives each of the n units its fate, tries, and keeps that if it is better. */
static bool flip(struct search *s, struct swap_plan *plan, const size_t *units, const enum fate *fates, size_t n)
{
    const struct survey *v = s->p->survey;
    if (is_over(s))
        return false;
    struct swap_plan other = copy_of_plan(v, plan);
    for (size_t i = 0; i < n; i++)
        set_fate(s, &other, units[i], fates[i]);
    bool better = !was_tried(s, &other);
    if (better && plan->excess > 0)
        try_fates(s->p, &other, plan->excess);
    else if (better)
        try_within(s->p, &other, plan->way, 0);
    better = better && is_better(&other, plan);
    if (better)
        copy_plan(v, plan, &other);
    free_plan(&other);
    return better;
}

static bool flip_singles(struct search *s, struct swap_plan *plan)
{
    bool better = false;
    for (size_t u = 0; u < s->n; u++)
        for (int fate = KEEP; fate <= REMAKE; fate++)
            better |= flip(s, plan, &u, &(enum fate){(enum fate)fate}, 1);
    return better;
}

static const char *name_of(const struct search *s, size_t unit) { return s->members[s->first[unit]].tensor->name; }

/* All of one name: the same tensor of other layers and micro-batches.  (Units of a name stand side by side.) */
static bool flip_families(struct search *s, struct swap_plan *plan)
{
    bool better = false;
    size_t *family = allocate(s->n + 1, sizeof *family);
    enum fate *fates = allocate(s->n + 1, sizeof *fates);
    for (size_t u = 0, n; u < s->n; u += n) {
        for (n = 0; u + n < s->n && strcmp(name_of(s, u + n), name_of(s, u)) == 0; n++)
            family[n] = u + n;
        for (int fate = KEEP; fate <= REMAKE && n > 1; fate++) {
            for (size_t i = 0; i < n; i++)
                fates[i] = (enum fate)fate;
            better |= flip(s, plan, family, fates, n);
        }
    }
    free(family), free(fates);
    return better;
}

static bool flip_pairs(struct search *s, struct swap_plan *plan)
{
    bool better = false;
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = i + 1; k < s->n; k++)
            for (int fates = 0; fates < 9; fates++)
                better |=
                    flip(s, plan, (size_t[]){i, k}, (enum fate[]){(enum fate)(fates / 3), (enum fate)(fates % 3)}, 2);
    return better;
}

/* Where pairs are too many, some at random: two units change places, or get any fates. */
static bool flip_some_pairs(struct search *s, struct swap_plan *plan)
{
    bool better = false;
    for (size_t i = 0; i < 16 * s->n; i++) {
        size_t pair[2];
        enum fate fates[2];
        for (int k = 0; k < 2; k++) {
            pair[k] = (size_t)(random_uniform(0, STREAM_PLAN, 0, s->draws++) * (double)s->n);
            fates[!k] = plan->fate[s->members[s->first[pair[k]]].candidate];
        }
        for (int k = 0; k < 2 && i % 2; k++)
            fates[k] = (enum fate)(random_uniform(0, STREAM_PLAN, 0, s->draws++) * 3);
        better |= (i % 2 || fates[0] != fates[1]) && flip(s, plan, pair, fates, 2);
    }
    return better;
}

/* Of many, what is good enough stays as it is, though some bytes more are copied than must be. */
static void improve(struct search *s, struct swap_plan *plan)
{
    bool better = flip_families(s, plan) || true;
    while (better && !is_over(s) && !(s->n > FEW && plan->excess == 0 && plan->period <= s->p->bare * (1 + 1e-5))) {
        try_ways(s->p, plan, ways, COUNT(ways), 0);
        try_ways(s->p, plan, more_ways, COUNT(more_ways), 0);
        better = s->n > FEW && flip_families(s, plan);
        better |= flip_singles(s, plan);
        if (!better)
            better = s->n <= FEW ? flip_pairs(s, plan) : flip_some_pairs(s, plan);
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
        try_within(p, &other, NULL, plan->excess);
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
    try_ways(p, plan, more_ways, COUNT(more_ways), INFINITY);
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
    struct planner p = {.survey = v, .swap = swap, .remake = remake, .most = MOST_WORK, .shown = now_ns()};
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

void close_planner(struct planner *p)
{
    free(p->budget), free(p->holes);
    free_plan(&p->least);
}

/* By device: no plan needs fewer bytes than are in use at a time. */
static size_t *bytes_in_use(const struct planner *p)
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

const struct swap_plan *least_plan(struct planner *p)
{
    if (p->least.fate)
        return &p->least;
    struct planner q = *p;
    size_t host = n_devices(p->survey) - 1;
    q.any = true, q.work = 0, q.most = MOST_WORK / 4;
    q.budget = bytes_in_use(p);
    q.budget[host] = p->budget[host];
    p->least = find_plan(&q);
    free(q.budget);
    return &p->least;
}

static void promote(struct search *s, int i)
{
    struct swap_plan first = s->best[0];
    if (is_better(&s->best[i], &first))
        s->best[0] = s->best[i], s->best[i] = first;
}

static struct swap_plan close_search(struct search *s)
{
    for (int i = 1; i < BEST; i++)
        free_plan(&s->best[i]);
    free(s->members), free(s->first), free(s->tried);
    return s->best[0];
}

/* What needs the fewest bytes, as it is and with more lead. */
static void start_with_least(struct search *s)
{
    const struct survey *v = s->p->survey;
    struct swap_plan as_is = copy_of_plan(v, least_plan(s->p)), plan = copy_of_plan(v, &as_is);
    try_plan(s->p, &as_is, &least_way);
    enter(s, &as_is);
    consider(s, &plan);
}

static bool moves_state(const struct search *s, const struct swap_plan *plan)
{
    bool moves = false;
    for (size_t i = s->first[s->n_plain]; i < s->first[s->n]; i++)
        moves |= plan->fate[s->members[i].candidate] != KEEP;
    return moves;
}

/* State stays where it is, first: then it moves only if it must, or if it helps. */
static void search_without_state(struct search *s)
{
    size_t n = s->n;
    double most = s->p->most;
    s->p->most = most / 2;
    start_by_rule(s, false);
    bool moves = moves_state(s, &s->best[0]);
    s->n = s->n_plain;
    if (!moves)
        improve(s, &s->best[0]);
    s->n = n, s->p->most = most;
}

struct swap_plan find_plan(struct planner *p)
{
    struct search s = open_search(p);
    if (!p->any)
        start_with_least(&s);
    if (!try_all(&s) || s.best[0].excess > 0) {
        if (!p->any && s.n_plain < s.n)
            search_without_state(&s);
        start_by_rule(&s, true);
        for (int i = 0; i < BEST; i++)
            improve(&s, &s.best[i]), promote(&s, i);
    }
    for (int i = 0; i < BEST && !p->any && (i == 0 || s.n <= SOME || s.best[0].excess > 0); i++)
        polish(p, &s.best[i]), promote(&s, i);
    return close_search(&s);
}
