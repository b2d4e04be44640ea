/* track.c - a trace made drawable: where its axis starts, where now is. */
#include "view.h"

#include <math.h>

/* ---- the axis -------------------------------------------------------------------------------------------------- */

const struct trace_step *find_step(const struct track *k, uint32_t step)
{
    size_t i;
    FIND_FIRST(i, k->steps->n, k->steps->step[i].step <= step);
    return k->steps->n == 0 ? NULL : &k->steps->step[i ? i - 1 : 0];
}

double step_ns(const struct track *k, const struct trace_step *s)
{
    const struct trace_step *next = s + 1;
    bool last = next == k->steps->step + k->steps->n || next->step != s->step + 1 || next->work < s->work;
    return (double)((last ? MAX(s->end, s->work) : next->work) - s->work) * k->trace->header.pace_scale;
}

const struct trace_step *newest_step(const struct track *k)
{
    size_t n = k->steps->n;
    while (n > 1 && !k->steps->step[n - 1].computes)
        n--;
    return n ? &k->steps->step[n - 1] : NULL;
}

double axis_of(const struct track *k, uint64_t clock)
{
    double ns = clock >= k->zero ? (double)(clock - k->zero) : -(double)(k->zero - clock);
    return ns * k->trace->header.pace_scale;
}

uint64_t clock_of(const struct track *k, double axis)
{
    double ns = axis / k->trace->header.pace_scale;
    if (ns < 0)
        return k->zero - (uint64_t)fmin(-ns, (double)k->zero);
    return k->zero + (uint64_t)fmin(ns, 0x1p62);
}

/* ---- following ------------------------------------------------------------------------------------------------- */

/* While the trainer runs, the clock; when it stands, its last sign of life. */
static void set_now(struct track *k)
{
    enum trace_life life = trace_follow_life(k->follow);
    const struct trace_header *h = &k->trace->header;
    k->list = trace_list(k->trace, k->path, NULL);
    k->steps = &k->trace->steps[k->list];
    k->last = 0;
    for (uint32_t i = 0; i < h->n_devices; i++) {
        k->peak[i] = (double)trace_peak(&k->trace->held[i]);
        k->highest_peak = fmax(k->highest_peak, k->peak[i]);
    }
    for (size_t i = 0; i < h->n_lanes; i++)
        if (k->trace->bars[i].n)
            k->last = MAX(k->last, k->trace->bars[i].bar[k->trace->bars[i].n - 1].end);
    k->stands = life == LIFE_PAUSED || life == LIFE_STOPPED || life == LIFE_GONE;
    k->now = MAX(k->last, life == LIFE_RUNS ? now_ns() : life == LIFE_STOPPED ? MIN(h->alive_ns, now_ns()) : 0);
}

struct track *open_track(const char *path)
{
    struct trace_follow *follow;
    struct track *k = allocate(1, sizeof *k);
    must(trace_follow_open(path, &follow));
    const struct trace *t = trace_follow_trace(follow);
    *k = (struct track){.path = path, .follow = follow, .trace = t};
    k->peak = allocate(t->header.n_devices, sizeof *k->peak);
    k->purpose = trace_purposes(t);
    k->folded = allocate(t->header.n_devices, sizeof *k->folded);
    set_now(k);
    k->zero = k->steps->n ? k->steps->step[0].work : t->header.start_ns;
    return k;
}

void close_track(struct track *k)
{
    trace_follow_close(k->follow);
    free(k->broken);
    free(k->peak), free(k->purpose), free(k->folded);
    free(k);
}

bool is_living(const struct track *k)
{
    enum trace_life life = trace_follow_life(k->follow);
    return !k->broken && life != LIFE_CLOSED && life != LIFE_GONE;
}

bool poll_track(struct track *k)
{
    bool changed = false;
    if (!is_living(k))
        return false;
    k->broken = trace_follow_poll(k->follow, &changed);
    if (changed)
        set_now(k);
    return changed || k->broken;
}
