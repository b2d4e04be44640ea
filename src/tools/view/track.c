/* track.c - a trace made drawable: its axis, and where now is on it. */
#include "view.h"

#include <math.h>

/* ---- the axis -------------------------------------------------------------------------------------------------- */

const struct trace_step *find_step(const struct track *k, uint32_t step)
{
    const struct trace_step_list *steps = k->steps;
    size_t n; /* steps up to that one */
    FIND_FIRST(n, steps->n, steps->step[n].step <= step);
    if (steps->n == 0)
        return NULL;
    return n > 0 ? &steps->step[n - 1] : &steps->step[0];
}

/* Where step s ends if no later step ends it: its last end, or now while tasks of it are unfinished. */
static uint64_t end_of_last(const struct track *k, const struct trace_step *s)
{
    const struct trace *t = k->trace;
    uint64_t end = MAX(s->end, s->work);
    for (size_t i = 0; i < t->n_unfinished; i++) {
        const struct trace_record *r = &t->unfinished[i];
        if (r->step == s->step && t->tasks[r->task].list == k->list)
            end = MAX(end, k->now);
    }
    return end;
}

double step_ns(const struct track *k, const struct trace_step *s)
{
    const struct trace_step *next = s + 1;
    bool last = next == k->steps->step + k->steps->n || next->step != s->step + 1 || next->work < s->work ||
                next->computes < s->computes; /* then it only fetches ahead */
    uint64_t end = last ? end_of_last(k, s) : next->work;
    return axis_of(k, end) - axis_of(k, s->work);
}

const struct trace_step *newest_step(const struct track *k)
{
    size_t n = k->steps->n;
    while (n > 1 && !k->steps->step[n - 1].computes)
        n--;
    return n > 0 ? &k->steps->step[n - 1] : NULL;
}

/* A clock less the time in which a viewer held the trainer up to there. */
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
    const double ns = axis / t->header.pace_scale;
    const uint64_t zero = run_until(k, k->zero);
    const uint64_t before = (uint64_t)fmin(fmax(-ns, 0), (double)zero);
    const uint64_t after = (uint64_t)fmin(fmax(ns, 0), 0x1p62);
    const uint64_t at = zero - before + after;
    size_t n; /* the holds before it */
    FIND_FIRST(n, t->n_holds, t->holds[n].from - t->holds[n].before < at);
    if (n == 0)
        return at;
    const struct hold *last = &t->holds[n - 1];
    return at + last->before + (last->to - last->from);
}

/* ---- following ------------------------------------------------------------------------------------------------- */

/* The clock while the trainer runs, its last sign of life when it is stopped, else 0. */
static uint64_t present(const struct track *k)
{
    const enum trace_life life = trace_follow_life(k->follow);
    if (life == LIFE_RUNS)
        return now_ns();
    if (life == LIFE_STOPPED)
        return MIN(k->trace->header.alive_ns, now_ns());
    return 0;
}

/* Updates what follows from the trace. */
static void update_track(struct track *k)
{
    const enum trace_life life = trace_follow_life(k->follow);
    const struct trace_header *h = &k->trace->header;
    k->list = trace_list(k->trace, k->path, NULL);
    k->steps = &k->trace->steps[k->list];
    for (uint32_t i = 0; i < h->n_devices; i++) {
        k->peak[i] = (double)trace_peak(&k->trace->held[i]);
        k->highest_peak = fmax(k->highest_peak, k->peak[i]);
    }
    k->last = 0;
    for (size_t i = 0; i < h->n_lanes; i++) {
        const struct bars *b = &k->trace->bars[i];
        if (b->n > 0)
            k->last = MAX(k->last, b->bar[b->n - 1].end);
    }
    k->stands = life == LIFE_PAUSED || life == LIFE_STOPPED || life == LIFE_GONE;
    k->now = MAX(k->last, present(k));
}

void renew_track(struct track *k)
{
    const char *path = k->board ? board_trace(k->board) : k->path;
    const uint32_t had = k->trace ? k->trace->header.n_devices : 0;
    if (k->follow)
        trace_follow_close(k->follow);
    must(trace_follow_open(path, &k->follow));
    if (k->board)
        remove(path);
    const struct trace *t = trace_follow_trace(k->follow);
    k->trace = t;
    free(k->peak);
    free(k->purpose);
    k->highest_peak = 0;
    k->peak = allocate(t->header.n_devices, sizeof *k->peak);
    k->purpose = trace_purposes(t);
    for (size_t i = 0; i < t->header.n_roles; i++)
        k->kind_colour[i] = kind_colour(t->header.role[i]);
    if (t->header.n_devices != had) { /* another machine */
        free(k->folded);
        k->folded = allocate(t->header.n_devices, sizeof *k->folded);
    }
    update_track(k);
    k->zero = k->steps->n > 0 ? k->steps->step[0].work : t->header.start_ns;
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
    free(k->peak);
    free(k->purpose);
    free(k->folded);
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
        update_track(k);
    return changed || k->broken;
}
