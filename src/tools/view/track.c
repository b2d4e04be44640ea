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
    const struct trace *t = k->trace;
    bool last = next == k->steps->step + k->steps->n || next->step != s->step + 1 || next->work < s->work ||
                next->computes < s->computes; /* what comes next is fetched ahead */
    uint64_t end = last ? MAX(s->end, s->work) : next->work;
    for (size_t i = 0; i < t->n_unfinished && last; i++)
        if (t->unfinished[i].step == s->step && t->tasks[t->unfinished[i].task].list == k->list)
            end = MAX(end, k->now);
    return axis_of(k, end) - axis_of(k, s->work);
}

const struct trace_step *newest_step(const struct track *k)
{
    size_t n = k->steps->n;
    while (n > 1 && !k->steps->step[n - 1].computes)
        n--;
    return n ? &k->steps->step[n - 1] : NULL;
}

static uint64_t run_until(const struct track *k, uint64_t clock) { return clock - trace_hold_before(k->trace, clock); }

double axis_of(const struct track *k, uint64_t clock)
{
    uint64_t at = run_until(k, clock), zero = run_until(k, k->zero);
    double ns = at >= zero ? (double)(at - zero) : -(double)(zero - at);
    return ns * k->trace->header.pace_scale;
}

uint64_t clock_of(const struct track *k, double axis)
{
    const struct trace *t = k->trace;
    double ns = axis / t->header.pace_scale;
    uint64_t zero = run_until(k, k->zero),
             at = zero - (uint64_t)fmin(fmax(-ns, 0), (double)zero) + (uint64_t)fmin(fmax(ns, 0), 0x1p62);
    size_t i;
    FIND_FIRST(i, t->n_holds, t->holds[i].from - t->holds[i].before < at);
    return i ? at + t->holds[i - 1].before + (t->holds[i - 1].to - t->holds[i - 1].from) : at;
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

void renew_track(struct track *k)
{
    const char *path = k->board ? board_trace(k->board) : k->path;
    uint32_t had = k->trace ? k->trace->header.n_devices : 0;
    if (k->follow)
        trace_follow_close(k->follow);
    must(trace_follow_open(path, &k->follow));
    if (k->board)
        remove(path);
    const struct trace *t = k->trace = trace_follow_trace(k->follow);
    free(k->peak), free(k->purpose);
    k->highest_peak = 0;
    k->peak = allocate(t->header.n_devices, sizeof *k->peak);
    k->purpose = trace_purposes(t);
    for (size_t i = 0; i < t->header.n_roles; i++)
        k->kind_colour[i] = kind_colour(t->header.role[i]);
    if (t->header.n_devices != had) /* another machine */
        free(k->folded), k->folded = allocate(t->header.n_devices, sizeof *k->folded);
    set_now(k);
    k->zero = k->steps->n ? k->steps->step[0].work : t->header.start_ns;
}

struct track *open_track(const char *path, struct board *board)
{
    struct track *k = allocate(1, sizeof *k);
    k->path = path;
    k->board = board;
    renew_track(k);
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
