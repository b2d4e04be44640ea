/* track.c - a trace made drawable: per lane its bars in order of start, per step its span.
 *
 * Both grow as the trace does: the follower says up to where its records are as they were, and only what is behind is
 * taken again.  A lane's bars carry how long the lane was busy before them, so that a stretch of any number of bars is
 * measured by two of them.
 */
#include "view.h"

#include <math.h>
#include <stdlib.h>

/* ---- bars ------------------------------------------------------------------------------------------------------ */

size_t first_bar_from(const struct bars *b, uint64_t clock)
{
    size_t low = 0, high = b->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (b->bar[middle].start < clock)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t first_bar_in(const struct bars *b, uint64_t clock)
{
    size_t i = first_bar_from(b, clock);
    return i > 0 && b->bar[i - 1].end > clock ? i - 1 : i;
}

uint64_t busy_between(const struct bars *b, uint64_t from, uint64_t to)
{
    size_t i = first_bar_in(b, from), end = first_bar_from(b, to);
    if (i >= end || to <= from)
        return 0;
    const struct bar *first = &b->bar[i], *last = &b->bar[end - 1];
    uint64_t busy = last->busy - first->busy + (last->end - last->start);
    uint64_t before = first->start < from ? from - first->start : 0, behind = last->end > to ? last->end - to : 0;
    return MIN(busy - MIN(busy, before + behind), to - from);
}

static void drop_bars(struct track *k, size_t first)
{
    for (size_t i = 0; i < k->trace->header.n_lanes; i++)
        while (k->lane[i].n && k->lane[i].bar[k->lane[i].n - 1].record >= first)
            k->lane[i].n--;
}

static void take_bar(struct track *k, size_t record)
{
    const struct trace_record *r = &k->trace->records[record];
    struct bars *b = &k->lane[k->trace->tasks[r->task].lane];
    struct bar *bar = APPEND(b->bar, b->n, b->cap), *before = b->n > 1 ? bar - 1 : NULL;
    *bar = (struct bar){r->start, r->end, before ? before->busy + (before->end - before->start) : 0, record};
}

int64_t find_record(const struct track *k, const struct trace_record *r)
{
    const struct bars *b = &k->lane[k->trace->tasks[r->task].lane];
    for (size_t i = first_bar_from(b, r->start); i < b->n && b->bar[i].start == r->start; i++)
        if (memcmp(&k->trace->records[b->bar[i].record], r, sizeof *r) == 0)
            return (int64_t)b->bar[i].record;
    return NOTHING;
}

/* ---- steps ----------------------------------------------------------------------------------------------------- */

static int by_step(const void *a, const void *b)
{
    return COMPARE(((const struct span *)a)->step, ((const struct span *)b)->step);
}

/* A step's work begins with its first task on a compute lane: batches are fetched long before. */
static void widen(struct span *s, const struct span *more)
{
    bool sooner = more->computes == s->computes ? more->start < s->start : more->computes;
    s->start = sooner ? more->start : s->start;
    s->computes |= more->computes;
    s->end = MAX(s->end, more->end);
}

/* To the last few, or as a new one. */
static void take_step(struct track *k, const struct trace_record *r)
{
    const struct trace_task *task = &k->trace->tasks[r->task];
    struct span s = {r->step, k->trace->lanes[task->lane].kind == LANE_COMPUTE, r->start, r->end};
    if (task->list != k->list)
        return;
    for (size_t i = k->n_steps; i > 0 && i + 4 > k->n_steps; i--)
        if (k->step[i - 1].step == s.step) {
            widen(&k->step[i - 1], &s);
            return;
        }
    *APPEND(k->step, k->n_steps, k->cap_steps) = s;
}

/* In order, and one span per step. */
static void settle_steps(struct track *k)
{
    size_t n = 0;
    for (size_t i = 1; i < k->n_steps; i++)
        n += k->step[i - 1].step >= k->step[i].step;
    if (n == 0)
        return;
    qsort(k->step, k->n_steps, sizeof *k->step, by_step);
    for (size_t i = n = 1; i < k->n_steps; i++)
        if (k->step[i].step == k->step[n - 1].step)
            widen(&k->step[n - 1], &k->step[i]);
        else
            k->step[n++] = k->step[i];
    k->n_steps = n;
}

const struct span *find_span(const struct track *k, uint32_t step)
{
    size_t low = 0, high = k->n_steps;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (k->step[middle].step <= step)
            low = middle + 1;
        else
            high = middle;
    }
    return k->n_steps == 0 ? NULL : &k->step[low ? low - 1 : 0];
}

double span_ns(const struct track *k, const struct span *s)
{
    const struct span *next = s + 1;
    bool last = next == k->step + k->n_steps || next->step != s->step + 1 || next->start < s->start;
    return (double)((last ? MAX(s->end, s->start) : next->start) - s->start) * k->trace->header.pace_scale;
}

/* ---- the axis -------------------------------------------------------------------------------------------------- */

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

/* ---- memory ---------------------------------------------------------------------------------------------------- */

static double sum_of(const struct trace *t, const struct trace_memory *m)
{
    double sum = 0;
    for (size_t i = 0; i < t->header.n_classes; i++)
        sum += (double)m->bytes[i];
    return sum;
}

static double *find_most_held(const struct trace *t)
{
    double *most = allocate(t->header.n_devices, sizeof *most);
    for (size_t i = 0; i < t->header.n_memory; i++)
        most[t->memory[i].device] = fmax(most[t->memory[i].device], sum_of(t, &t->memory[i]));
    return most;
}

double highest_peak(const struct track *k)
{
    double most = 0;
    for (size_t i = 0; i < k->trace->header.n_devices; i++)
        most = fmax(most, k->peak[i]);
    return most;
}

/* ---- following ------------------------------------------------------------------------------------------------- */

static void take_records(struct track *k, size_t first)
{
    const struct trace *t = k->trace;
    drop_bars(k, first);
    k->list = first ? k->list : trace_list(t, k->path, NULL);
    k->n_steps = first ? k->n_steps : 0;
    k->last = first ? k->last : 0;
    for (size_t i = first; i < t->n_records; i++) {
        take_bar(k, i);
        take_step(k, &t->records[i]);
        k->last = MAX(k->last, t->records[i].end);
    }
    settle_steps(k);
}

/* While the trainer runs, the clock; when it stands, its last sign of life. */
static void set_now(struct track *k)
{
    enum trace_life life = trace_follow_life(k->follow);
    const struct trace_header *h = &k->trace->header;
    k->stands = life == LIFE_PAUSED || life == LIFE_STOPPED || life == LIFE_GONE;
    k->now = MAX(k->last, life == LIFE_RUNS ? now_ns() : life == LIFE_STOPPED ? MIN(h->alive_ns, now_ns()) : 0);
}

struct problem *open_track(const char *path, struct track **track)
{
    struct trace_follow *follow;
    struct problem *wrong = trace_follow_open(path, &follow);
    *track = NULL;
    if (wrong)
        return wrong;
    struct track *k = *track = allocate(1, sizeof *k);
    k->path = path;
    k->follow = follow;
    k->trace = trace_follow_trace(follow);
    k->lane = allocate(k->trace->header.n_lanes, sizeof *k->lane);
    take_records(k, 0);
    k->peak = find_most_held(k->trace);
    set_now(k);
    k->zero = k->n_steps ? k->step[0].start : k->trace->header.start_ns;
    return NULL;
}

void close_track(struct track *k)
{
    for (size_t i = 0; i < k->trace->header.n_lanes; i++)
        free(k->lane[i].bar);
    free(k->lane);
    free(k->step);
    trace_follow_close(k->follow);
    free(k->broken);
    free(k->peak);
    free(k);
}

bool poll_track(struct track *k)
{
    struct trace_news news;
    struct problem *wrong = k->broken ? NULL : trace_follow_poll(k->follow, &news);
    if (k->broken)
        return false;
    if (wrong) {
        k->broken = wrong;
        return true;
    }
    if (news.first < k->trace->n_records)
        take_records(k, news.first);
    if (news.changed)
        set_now(k);
    return news.changed;
}
