/* swap_rules.c - what leaves a device by rule, where it holds too much: plans from which a search begins (see gaps.h).
 */
#include "gaps.h"

#include <math.h>

struct leaver {
    const struct gap *gap;
    double merit;
};

/* How good it is that this gap's tensor leaves: when it is needed again; or how many bytes a second of work buys, or,
 * where nothing is made again, how many bytes a copy does. */
static double merit(const struct planner *p, const struct gap *g, enum fate fate, bool by_cost)
{
    const struct candidate *c = &p->survey->candidates[g->candidate];
    if (!by_cost)
        return g->behind;
    return (double)g->tensor->bytes / (fate == SWAP ? 1 : fmax(c->again, 1e-12));
}

ORDER(by_before, struct leaver, BY(a->gap->before, b->gap->before, COMPARE(a->gap, b->gap)))

/* The device's gaps that the rule lets leave, the earliest first. */
static struct leaver *list_leavers(const struct planner *p, const struct device *d, enum fate wish, bool by_cost,
                                   size_t *n)
{
    const struct survey *v = p->survey;
    struct leaver *list = allocate(v->n_gaps + 1, sizeof *list);
    *n = 0;
    for (size_t g = 0; g < v->n_gaps; g++) {
        const struct gap *gap = &v->gaps[g];
        enum fate fate = allowed_fate(p, gap->candidate, wish);
        if (gap->tensor->device == d && fate != KEEP)
            list[(*n)++] = (struct leaver){gap, merit(p, gap, fate, by_cost)};
    }
    SORT(list, *n, by_before);
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

void evict(const struct planner *p, struct swap_plan *plan, const struct device *d, double most, enum fate wish,
           bool by_cost)
{
    const struct survey *v = p->survey;
    double *gone = allocate((size_t)v->n + 1, sizeof *gone);
    size_t n, next = 0, n_here = 0;
    struct leaver *list = list_leavers(p, d, wish, by_cost, &n), *here = allocate(n + 1, sizeof *here);
    for (int i = 0; i < v->n; i++) {
        while (next < n && list[next].gap->before < i)
            here[n_here++] = list[next++];
        while ((double)v->held[d->index][i] - gone[i] > most) {
            const struct gap *best = best_to_leave(plan, here, &n_here, i);
            if (!best)
                break;
            const struct candidate *c = &v->candidates[best->candidate];
            plan->fate[best->candidate] = allowed_fate(p, best->candidate, wish);
            for (size_t g = c->first; g < c->first + c->n; g++)
                for (int k = v->gaps[g].before + 1; k < v->gaps[g].behind; k++)
                    gone[k] += (double)c->tensor->bytes;
        }
    }
    free(gone), free(list), free(here);
}
