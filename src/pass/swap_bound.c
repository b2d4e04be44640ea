/* swap_bound.c - what no plan can beat: a step's least time in a budget (see gaps.h).
 *
 * The bound: a device's step is cut in two before a task at which its budget is too small.  What is over must have left
 * before, and comes back behind, or is made again; the two parts follow one another, so their least times add up.  It
 * is a bound only: of several such tasks it looks at one at a time.  Nor is a step shorter than its data edges let it
 * be.
 */
#include "gaps.h"

#include <math.h>

/* ---- the bound --------------------------------------------------------------------------------------------------- */

struct cutting { /* a device's step, cut in two before task `at`: what is over the budget there left, and comes back */
    double before, behind; /* seconds of what it computes */
    double made, needed;   /* seconds until the first candidate is made, and from the last one's need on */
    double over;           /* bytes */
    double again, out, in; /* seconds per byte, at least: made again, copied; INFINITY: nothing can be */
};

/* With s bytes swapped, and the others made again. */
static double bound_with(const struct cutting *c, double s)
{
    double again = c->over > s ? (c->over - s) * c->again : 0;
    double out = s > 0 ? c->made + s * c->out : 0, in = s > 0 ? c->needed + s * c->in : 0;
    return fmax(c->before, out) + fmax(c->behind + again, in);
}

/* It is convex in s: its least value lies at an end, or where one of its two terms bends. */
static double bound_of(const struct cutting *c, bool swap)
{
    double bend[] = {0, swap ? c->over : 0, (c->before - c->made) / c->out, (c->behind - c->needed) / c->in,
                     (c->behind + c->over * c->again - c->needed) / (c->in + c->again)};
    double least = INFINITY;
    for (size_t i = 0; i < COUNT(bend); i++)
        if (swap ? bend[i] >= 0 && bend[i] <= c->over : i == 0)
            least = fmin(least, bound_with(c, bend[i]));
    return least;
}

/* Seconds that the device computes before each place of the list, and in all behind the last one. */
static double *seconds_before(const struct survey *v, const struct device *d)
{
    double *sum = allocate((size_t)v->n + 1, sizeof *sum);
    for (int i = 0; i < v->n; i++) {
        const struct task *t = v->task[i];
        sum[i + 1] = sum[i] + (t->lane == d->lane[LANE_COMPUTE] ? seconds_alone(v->costs, t) : 0);
    }
    return sum;
}

/* At least so many seconds per byte of candidate c: its first maker makes no more than all that it writes. */
static double remaking_rate(const struct survey *v, const struct candidate *c)
{
    const struct task *t = v->task[c->maker];
    double bytes = 0;
    for (int i = 0; i < t->n_access; i++)
        if (t->access[i].mode & ACCESS_WRITE)
            bytes += (double)t->access[i].tensor->root->bytes;
    return seconds_alone(v->costs, t) / bytes;
}

ORDER(by_size, double, COMPARE(*a, *b))

/* Tensors move whole: as many as must, if they were the largest, are at least as many bytes as so many of the smallest.
 */
static double whole_bytes(double over, double *size, size_t n)
{
    double large = 0, small = 0;
    SORT(size, n, by_size);
    for (size_t k = 0; k < n && large < over; k++) {
        large += size[n - 1 - k];
        small += size[k];
    }
    return fmax(over, small);
}

static double bound_at(const struct planner *p, const struct device *d, int at, double over, const double *sum)
{
    const struct survey *v = p->survey;
    struct cutting c = {sum[at], sum[v->n] - sum[at], INFINITY, INFINITY, over, 1e30, INFINITY, INFINITY};
    double *size = allocate(v->n_gaps + 1, sizeof *size);
    size_t n = 0;
    bool any_time = false;
    for (size_t g = 0; g < v->n_gaps; g++) {
        const struct gap *gap = &v->gaps[g];
        const struct candidate *candidate = &v->candidates[gap->candidate];
        double bytes = (double)gap->tensor->bytes;
        if (gap->tensor->device != d || !crosses(gap, at))
            continue;
        any_time |= gap->tensor->persistent || gap->tensor->class != MEM_ACTIVATIONS;
        size[n++] = bytes;
        c.made = fmin(c.made, sum[candidate->maker + 1]);
        c.needed = fmin(c.needed, sum[v->n] - sum[gap->behind]);
        c.out = fmin(c.out, candidate->out / bytes), c.in = fmin(c.in, candidate->in / bytes);
        if (p->remake && candidate->remakeable)
            c.again = fmin(c.again, remaking_rate(v, candidate));
    }
    c.over = whole_bytes(over, size, n);
    free(size);
    return isfinite(c.made) && !any_time ? bound_of(&c, p->swap) : 0; /* state may leave and come back at any time */
}

/* What the list takes by itself, in any memory: no task waits for bytes. */
static double period_of_data(const struct survey *v)
{
    struct task **tasks;
    struct simulation *sim = NULL;
    struct step *draft = draft_of(v->step, &tasks);
    depend(draft, false);
    free(simulate(draft, v->costs, &sim));
    double period = sim ? sim->period : 0;
    if (sim)
        free_simulation(sim);
    free_draft(draft);
    free(tasks);
    return period;
}

double lower_bound(const struct planner *p, const size_t *budget)
{
    const struct survey *v = p->survey;
    const struct machine *m = v->step->pool->machine;
    double bound = p->bare > 0 ? period_of_data(v) : 0;
    for (int d = 0; d < m->n_devices && p->bare > 0; d++) {
        double *sum = seconds_before(v, &m->device[d]);
        for (int i = 0; i < v->n; i++) {
            double over = (double)v->held[d][i] + (double)guard_bytes(&m->device[d]) - (double)budget[d];
            if (over > 0 && v->task[i]->lane == m->device[d].lane[LANE_COMPUTE])
                bound = fmax(bound, bound_at(p, &m->device[d], i, over, sum));
        }
        free(sum);
    }
    return bound;
}
