/* swap_search.c - what to keep, to swap and to make again (see gaps.h).
 *
 * What replicas do alike is one unit, and has one fate.  A search begins with plans by rule: whatever is over the
 * budget leaves, the tensor with the furthest next use first (Belady) or what is cheapest to have again, with some
 * bytes to spare or none.  The best of them changes at random for as long as that helps now and then, and in the end
 * the copies of what is best are moved one by one.
 *
 * Classes are admitted one after another, each time with a search of its own, which begins where the one before has
 * ended: so a step in which one more class may move is not longer.  What a search of few classes finds, one of more
 * finds first.
 */
#include "gaps.h"

#include <math.h>

/* ---- units ------------------------------------------------------------------------------------------------------- */

enum { FEW = 16 };
struct member { /* of a unit */
    size_t candidate;
    const struct tensor *tensor;
    const struct task *maker;
    int nth; /* of its tensor's */
};
struct search {
    struct planner *p;
    struct member *members; /* that are concerned */
    size_t *first, n;       /* unit u begins at members[first[u]], the last one ends at first[n] */
    uint64_t draws;
    struct swap_plan best;
};

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

/* Replicas have the same tensors: of a name, layer and micro-batch.  The largest come first. */
static int by_unit(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    const struct task *s = x->maker, *t = y->maker;
    int of_x[] = {s->layer, s->micro, (int)s->role, x->nth}, of_y[] = {t->layer, t->micro, (int)t->role, y->nth};
    int order = COMPARE(y->tensor->bytes >> 12, x->tensor->bytes >> 12); /* shards need not be equal */
    order = order ? order : strcmp(x->tensor->name, y->tensor->name);
    order = order ? order : strcmp(s->name, t->name);
    for (size_t i = 0; i < COUNT(of_x) && !order; i++)
        order = COMPARE(of_x[i], of_y[i]);
    return order;
}

static struct search open_search(struct planner *p)
{
    const struct survey *v = p->survey;
    struct search s = {.p = p, .best = new_plan(v)};
    size_t n = 0;
    int nth = 0;
    s.members = allocate(v->n_candidates + 1, sizeof *s.members);
    s.first = allocate(v->n_candidates + 1, sizeof *s.first);
    for (size_t i = 0; i < v->n_candidates; i++) {
        const struct candidate *c = &v->candidates[i];
        nth = i && c->tensor == c[-1].tensor ? nth + 1 : 0;
        if (is_concerned(p, i))
            s.members[n++] = (struct member){i, c->tensor, v->task[c->maker], nth};
    }
    SORT(s.members, n, by_unit);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || by_unit(&s.members[i], &s.members[i - 1]) != 0)
            s.first[s.n++] = i;
    s.first[s.n] = n;
    return s;
}

static void close_search(struct search *s)
{
    free_plan(&s->best);
    free(s->members), free(s->first);
}

static void set_fate(const struct search *s, struct swap_plan *plan, size_t unit, enum fate fate)
{
    for (size_t i = s->first[unit]; i < s->first[unit + 1]; i++) {
        size_t c = s->members[i].candidate;
        if (fate == KEEP || allowed_fate(s->p, c, fate) == fate)
            plan->fate[c] = fate;
    }
}

static const struct member *one_of(const struct search *s, size_t unit) { return &s->members[s->first[unit]]; }

/* ---- plans by rule ----------------------------------------------------------------------------------------------- */

static bool is_over(const struct search *s) { return s->p->work > s->p->most || (s->p->any && s->best.excess == 0); }

/* The plan's fates may be the best now.  Frees it. */
static void consider(struct search *s, struct swap_plan plan)
{
    try_fates(s->p, &plan, s->best.excess);
    if (is_better_plan(&plan, &s->best))
        copy_plan(s->p->survey, &s->best, &plan);
    free_plan(&plan);
}

/* Between layers all is kept, within them nothing: Chen et al. 2016. */
static void start_by_layer(struct search *s, enum fate wish)
{
    const struct survey *v = s->p->survey;
    struct swap_plan plan = new_plan(v);
    for (size_t c = 0; c < v->n_candidates; c++)
        if (is_of_one_layer(v, &v->candidates[c]))
            plan.fate[c] = allowed_fate(s->p, c, wish);
    consider(s, plan);
}

/* spare: more than must leaves, by that share of the budget.  State leaves like all else, or last. */
static void start_by_rule(struct search *s)
{
    static const double spare[] = {1, 0, 0.02, 0.05, 0.1, 0.2};
    const struct machine *m = s->p->survey->step->pool->machine;
    struct planner without = *s->p;
    without.classes &= ~(1u << MEM_OPTIMIZER | 1u << MEM_PARAMETERS);
    for (int wish = SWAP; wish <= REMAKE; wish++) {
        start_by_layer(s, (enum fate)wish);
        for (int i = 0; i < 4 * (int)COUNT(spare) && !is_over(s); i++) {
            if (i & 2 && without.classes == s->p->classes)
                continue;
            struct swap_plan plan = new_plan(s->p->survey);
            for (int d = 0; d < m->n_devices; d++) {
                double most = most_held(s->p, &m->device[d]) * (1 - spare[i / 4]);
                if (i & 2)
                    evict(&without, &plan, &m->device[d], most, (enum fate)wish, i & 1);
                evict(s->p, &plan, &m->device[d], most, (enum fate)wish, i & 1);
            }
            consider(s, plan);
        }
    }
}

/* ---- other fates ------------------------------------------------------------------------------------------------- */

static size_t draw(struct search *s, size_t n)
{
    return (size_t)((double)n * random_uniform(0, STREAM_PLAN, 0, s->draws++));
}

static bool same_name(const struct search *s, size_t unit, size_t other)
{
    return strcmp(one_of(s, unit)->tensor->name, one_of(s, other)->tensor->name) == 0;
}

/* A unit gets another fate; or all of its name, the same tensor of other layers and micro-batches, which stand side by
 * side; or two units change places.  First come all names in turn. */
static void change(struct search *s, struct swap_plan *plan, size_t nth)
{
    bool in_turn = nth < 3 * s->n;
    size_t first = in_turn ? nth / 3 : draw(s, s->n), last = first, kind = in_turn ? 2 : draw(s, 8);
    enum fate fate = (enum fate)(in_turn ? nth % 3 : draw(s, 3));
    if (in_turn && first > 0 && same_name(s, first - 1, first))
        return;
    if (kind < 2) {
        size_t other = draw(s, s->n);
        fate = plan->fate[one_of(s, other)->candidate];
        set_fate(s, plan, other, plan->fate[one_of(s, first)->candidate]);
    }
    while (kind == 2 && first > 0 && same_name(s, first - 1, first))
        first--;
    while (kind == 2 && last + 1 < s->n && same_name(s, last + 1, last))
        last++;
    for (size_t u = first; u <= last; u++)
        set_fate(s, plan, u, fate);
}

/* Of many, what is good enough stays as it is, though some bytes more are copied than must be. */
static bool is_good(const struct search *s)
{
    return s->n > FEW && s->best.excess == 0 && s->best.period <= s->p->bare * (1 + 1e-5);
}

/* Its step is not longer than the best one's by more than that share. */
static bool is_near(const struct swap_plan *plan, const struct swap_plan *best, double by)
{
    return plan->excess < best->excess || (plan->excess == best->excess && plan->period <= best->period * (1 + by));
}

/* From the best on, by record-to-record travel (Dueck 1993): the search goes on from a plan that is worse than the
 * best, by the more the longer nothing better was found. */
static void improve(struct search *s)
{
    struct planner *p = s->p;
    size_t bytes = p->survey->n_candidates * sizeof *s->best.fate, most_idle = 400 + 20 * s->n;
    struct swap_plan now = copy_of_plan(p->survey, &s->best);
    for (size_t i = 0, idle = 0; s->n && idle < most_idle && !is_over(s) && !is_good(s); i++, idle++) {
        struct swap_plan other = copy_of_plan(p->survey, &now);
        const struct way *way = p->any || draw(s, 16) ? now.way : any_way(draw(s, 1000));
        change(s, &other, i);
        bool differs = way != now.way || memcmp(other.fate, now.fate, bytes) != 0;
        if (differs)
            try_within(p, &other, way, now.excess);
        if (differs && is_near(&other, &s->best, 0.3 * pow((double)idle / (double)most_idle, 3)))
            copy_plan(p->survey, &now, &other);
        free_plan(&other);
        if (is_better_plan(&now, &s->best))
            copy_plan(p->survey, &s->best, &now), idle = 0;
    }
    free_plan(&now);
}

/* ---- planning ---------------------------------------------------------------------------------------------------- */

const struct swap_plan *least_plan(struct planner *p)
{
    struct swap_plan *least = &p->least[p->classes];
    if (least->fate)
        return least;
    struct planner q = *p;
    int host = p->survey->step->pool->machine->n_devices;
    q.any = true, q.work = 0, q.most = MOST_WORK / 3;
    q.budget = bytes_in_use(p);
    q.budget[host] = p->budget[host];
    struct search s = open_search(&q);
    consider(&s, new_plan(p->survey));
    start_by_rule(&s);
    improve(&s);
    *least = copy_of_plan(p->survey, &s.best);
    p->busy = q.busy;
    close_search(&s);
    free(q.budget);
    return least;
}

/* At least as far as what is in use at a time fits. */
static bool is_possible(const struct planner *p)
{
    size_t *bytes = bytes_in_use(p);
    bool possible = true;
    for (int d = 0; d < p->survey->step->pool->machine->n_devices; d++)
        possible &= bytes[d] <= p->budget[d];
    free(bytes);
    return possible;
}

/* Begins by rule, and then, where the plan fits already, once more with the best so far.  That is what it becomes. */
static void search_from(struct search *s, struct swap_plan *plan)
{
    struct planner *p = s->p;
    int rounds = plan->excess == 0 ? 2 : 1;
    for (int round = 0; round < rounds; round++) {
        double work = rounds == 1 ? MOST_WORK : MOST_WORK / (6 * (round + 1)); /* the later, the less is to be found */
        p->most = p->work + work;
        s->best.excess = INFINITY;
        if (round == 1)
            consider(s, copy_of_plan(p->survey, plan));
        else
            start_by_rule(s);
        if (s->best.excess > 0)
            consider(s, copy_of_plan(p->survey, least_plan(p)));
        if (s->best.excess > 0)
            return;
        improve(s);
        p->most = p->work + work / 2;
        polish(p, &s->best);
        if (is_better_plan(&s->best, plan))
            copy_plan(p->survey, plan, &s->best);
    }
}

struct swap_plan find_plan(struct planner *p)
{
    static const enum memory_class order[] = {MEM_ACTIVATIONS, MEM_WORK, MEM_OPTIMIZER, MEM_PARAMETERS, MEM_GRADIENTS};
    struct swap_plan plan = new_plan(p->survey);
    unsigned all = p->classes;
    size_t n = 0;
    p->classes = 0;
    for (size_t i = 0; i < COUNT(order) && !is_perfect(p, &plan); i++) {
        p->classes |= 1u << order[i];
        struct search s = open_search(p);
        if (plan.excess > 0 ? is_possible(p) : s.n > n)
            search_from(&s, &plan);
        n = s.n;
        close_search(&s);
    }
    p->classes = all;
    return plan;
}
