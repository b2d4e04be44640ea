/* recompute.c - activations are made again instead of kept.
 *
 * What a layer's forward leaves for its backward lies in memory for most of a step.  Instead, the layer keeps less, and
 * right before its backward so much of its forward is repeated, into new tensors, as backward reads:
 *
 *     full         of each layer only its input is kept.  The forward is computed almost twice, for a third more work;
 *                  what nothing reads again, as the layer's last product, is not repeated.    (Chen et al. 2016)
 *     selective    only what is large and cheap is dropped: the (T, T) matrices of attention and GELU's output.
 *                                                                                          (Korthikanti et al. 2022)
 *     auto         what must be, in a budget: a search (swap.c)
 *
 * All three are plans for gaps (gaps.h), of which swap_line.c makes the list.  The repeat's tasks are the forward's, of
 * the same origin: on the same values they give the same bits.  What is made of values that have changed by then, in
 * place or by an update, is kept.
 */
#include "gaps.h"

bool wants_recompute(const struct wishes *w) { return w->recompute != RECOMPUTE_OFF; }

/* Of a device's backward passes of a layer this is one more. */
static bool is_first(const struct survey *v, const struct swap_plan *p, size_t candidate)
{
    const struct candidate *c = v->candidates;
    const struct task *maker = v->task[c[candidate].maker];
    bool first = true;
    for (size_t i = 0; i < candidate; i++) {
        const struct task *t = v->task[c[i].maker];
        first &= p->fate[i] == KEEP || t->layer != maker->layer || t->micro != maker->micro ||
                 c[i].device != c[candidate].device;
    }
    return first;
}

bool run_recompute(struct step *s, const struct costs *c, const struct wishes *w, struct pass_report *r)
{
    if (w->recompute == RECOMPUTE_AUTO)
        return run_recompute_auto(s, c, w, r);
    bool full = w->recompute == RECOMPUTE_FULL;
    struct survey *v = look_for_gaps(s, c, NULL, 1u << MEM_ACTIVATIONS);
    struct swap_plan plan = new_plan(v);
    size_t layers = 0;
    double bytes = 0;
    for (size_t i = 0; i < v->n_candidates; i++) {
        const struct candidate *x = &v->candidates[i];
        if (!x->remakeable || !(full || x->tensor->cheap) || !is_of_one_layer(v, x))
            continue;
        plan.fate[i] = REMAKE;
        layers += is_first(v, &plan, i);
        bytes += (double)x->tensor->bytes;
    }
    plan.by_layer = true;
    struct edit *e = open_edit(s);
    struct line l = follow_plan(v, e, &plan);
    commit(e);
    r->reason =
        layers ? format_string("%s: %d tasks repeated for %zu backward passes of a layer; %s of activations not kept",
                               full ? "full" : "selective", l.n - v->n, layers, format_bytes((char[32]){0}, bytes))
               : copy_string("the list keeps no activation of a layer for its backward that could be made again");
    free_line(&l);
    free_plan(&plan);
    free_survey(v);
    return layers > 0;
}
