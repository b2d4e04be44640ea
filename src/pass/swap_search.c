/* swap_search.c - what to keep, to swap and to make again (see gaps.h).
 *
 * What replicas do alike is one unit, and has one fate.  First comes the plan that needs the fewest bytes; then plans
 * by rule: whatever is over the budget leaves, the tensor with the furthest next use first (Belady) or what is cheapest
 * to have again, with some bytes to spare or none.  From the best of them on, families of units, single ones and pairs
 * get another fate while it helps; few choices are tried all.  That is done without moving state first.
 */
#include "gaps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALL_TRIED = 800, FEW = 16, SOME = 40, BEST = 3 };

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
    bool better = true;
    flip_families(s, plan);
    while (better && !is_over(s) && !(s->n > FEW && plan->excess == 0 && plan->period <= s->p->bare * (1 + 1e-5))) {
        try_other_ways(s->p, plan);
        better = s->n > FEW && flip_families(s, plan);
        better |= flip_singles(s, plan);
        if (!better)
            better = s->n <= FEW ? flip_pairs(s, plan) : flip_some_pairs(s, plan);
    }
}

/* ---- planning ---------------------------------------------------------------------------------------------------- */

const struct swap_plan *least_plan(struct planner *p)
{
    if (p->least.fate)
        return &p->least;
    struct planner q = *p;
    int host = p->survey->step->pool->machine->n_devices;
    q.any = true, q.work = 0, q.most = MOST_WORK / 4;
    q.budget = bytes_in_use(p);
    q.budget[host] = p->budget[host];
    p->least = find_plan(&q);
    p->busy = q.busy;
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
    try_plan(s->p, &as_is, s->p->least.way);
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
