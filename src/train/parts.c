/* parts.c - is the update of a tied embedding built in two parts (../model/tied.c)?
 *
 * With --overlap all-cpu or plan, where a step is shorter with it: the list is built both ways, planned and dropped.
 * Where nobody knows how long tasks take, all-cpu has it in parts.
 */
#include "train.h"

#include <math.h>

static const char *find_hindrance(const struct trainer *t, const struct wishes *w)
{
    if (n_ranks(&t->mesh) > 1)
        return "other devices have gradients of it too";
    if (t->micros > 1)
        return "each micro-batch has words of its own";
    if (t->batch * t->seq >= t->config.vocab)
        return "a batch has as many tokens as there are words";
    if (w->snapshot.file)
        return "a snapshot stores what one update leaves";
    if (swaps_state(w))
        return "another pass moves state too";
    return NULL;
}

/* Seconds of a step, with each --overlap too. */
static double try_parts(struct trainer *t, enum gemm_engine engine, const struct wishes *w, bool in_parts,
                        double period[OVERLAPS])
{
    size_t tensors = t->pool->n;
    t->in_parts = in_parts;
    build_train(t, engine);
    double seconds = plan_period(t->train, t->costs, w, period);
    free_step(t->train);
    free_feeds(t->feeds, t->micros * t->mesh.dp);
    free(t->rank_total);
    drop_tensors(t->pool, tensors);
    return seconds;
}

void choose_parts(struct trainer *t, enum gemm_engine engine, const struct wishes *w)
{
    bool all_cpu = w->overlap == OVERLAP_ALL_CPU;
    if (!t->config.tied || t->settings->clip != 0 || !(all_cpu || w->overlap == OVERLAP_PLAN))
        return;
    const char *why_whole = find_hindrance(t, w);
    double whole = INFINITY, parts = INFINITY, unused[OVERLAPS];
    if (!why_whole && t->costs)
        whole = try_parts(t, engine, w, false, t->whole), parts = try_parts(t, engine, w, true, unused);
    t->in_parts = !why_whole && (parts < whole || (all_cpu && whole == INFINITY));
    if (t->in_parts)
        t->embedding = copy_string("in two parts: rows of no word of the batch behind the head's backward, the others "
                                   "last");
    else if (why_whole)
        t->embedding = format_string("whole: %s", why_whole);
    else if (parts < INFINITY)
        t->embedding = format_string("whole: in two parts a step would take %.3f ms", 1e3 * parts);
    if (t->in_parts && whole < INFINITY)
        append_text(&t->embedding, "; whole a step would take %.3f ms", 1e3 * whole);
}
