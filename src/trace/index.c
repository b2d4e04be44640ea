/* index.c - what follows from a trace's records: the bars of each lane, the runs of each task, the steps of each list.
 *
 * All three grow as the trace does: what is known of records before `first` stays, and what is behind is taken again.
 * A lane's bars carry how long the lane was busy before them, so that a stretch of any number of bars is measured by
 * two of them.
 */
#include "trace.h"

/* ---- lanes ----------------------------------------------------------------------------------------------------- */

size_t first_bar_from(const struct bars *b, uint64_t clock)
{
    size_t i;
    FIND_FIRST(i, b->n, b->bar[i].start < clock);
    return i;
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

/* ---- tasks ----------------------------------------------------------------------------------------------------- */

/* A task's steps ascend, as they do in any trace of ours; in another one, records may not be found. */
static size_t place_of(const struct trace *t, uint32_t task, uint32_t step, size_t at)
{
    const struct runs *x = &t->runs[task];
    size_t i;
    FIND_FIRST(i, x->n,
               t->records[x->record[i]].step < step || (t->records[x->record[i]].step == step && x->record[i] < at));
    return i;
}

static int64_t run_at(const struct trace *t, uint32_t task, uint32_t step, size_t i)
{
    const struct runs *x = &t->runs[task];
    return i < x->n && t->records[x->record[i]].step == step ? (int64_t)x->record[i] : NO_RECORD;
}

int64_t trace_find_before(const struct trace *t, uint32_t task, uint32_t step, size_t at)
{
    int64_t found = run_at(t, task, step, place_of(t, task, step, at) - 1);
    return found < (int64_t)MIN(at, INT64_MAX) ? found : NO_RECORD;
}

int64_t trace_find_from(const struct trace *t, uint32_t task, uint32_t step, size_t at)
{
    return run_at(t, task, step, place_of(t, task, step, at));
}

/* ---- steps ----------------------------------------------------------------------------------------------------- */

ORDER(by_step, struct trace_step, COMPARE(a->step, b->step))

static void widen(struct trace_step *s, const struct trace_step *more)
{
    bool sooner = more->computes == s->computes ? more->work < s->work : more->computes;
    s->work = sooner ? more->work : s->work;
    s->computes |= more->computes;
    s->start = MIN(s->start, more->start);
    s->end = MAX(s->end, more->end);
    s->done = MAX(s->done, more->done);
}

/* To one of the last few, or as a new one. */
static void take_step(struct trace_step_list *l, const struct trace_step *s)
{
    for (size_t i = l->n; i > 0 && i + 4 > l->n; i--)
        if (l->step[i - 1].step == s->step) {
            widen(&l->step[i - 1], s);
            return;
        }
    *APPEND(l->step, l->n, l->cap) = *s;
}

/* In order, and each once. */
static void settle_steps(struct trace_step_list *l)
{
    size_t i = 1, n = 1;
    while (i < l->n && l->step[i - 1].step < l->step[i].step)
        i++;
    if (i >= l->n)
        return;
    SORT(l->step, l->n, by_step);
    for (i = 1; i < l->n; i++)
        if (l->step[i].step == l->step[n - 1].step)
            widen(&l->step[n - 1], &l->step[i]);
        else
            l->step[n++] = l->step[i];
    l->n = n;
}

/* ---- all of them ----------------------------------------------------------------------------------------------- */

static void drop(struct trace *t, size_t first)
{
    for (size_t i = 0; i < t->header.n_lanes; i++)
        while (t->bars[i].n && t->bars[i].bar[t->bars[i].n - 1].record >= first)
            t->bars[i].n--;
    for (size_t i = 0; i < t->header.n_tasks; i++)
        while (t->runs[i].n && t->runs[i].record[t->runs[i].n - 1] >= first)
            t->runs[i].n--;
    for (size_t i = 0; i < TRACE_LISTS && first == 0; i++)
        t->steps[i].n = 0;
}

static void take(struct trace *t, size_t record)
{
    const struct trace_record *r = &t->records[record];
    const struct trace_task *task = &t->tasks[r->task];
    enum lane_kind kind = t->lanes[task->lane].kind;
    struct runs *x = &t->runs[r->task];
    struct bars *b = &t->bars[task->lane];
    struct bar *bar = APPEND(b->bar, b->n, b->cap), *before = b->n > 1 ? bar - 1 : NULL;
    *bar = (struct bar){r->start, r->end, before ? before->busy + (before->end - before->start) : 0, record};
    *APPEND(x->record, x->n, x->cap) = record;
    struct trace_step s = {r->step, kind == LANE_COMPUTE, r->start, r->end, r->start, kind == LANE_DISK ? 0 : r->end};
    take_step(&t->steps[task->list], &s);
}

void trace_index(struct trace *t, size_t first)
{
    if (first == t->n_records)
        return;
    drop(t, first);
    for (size_t i = first; i < t->n_records; i++)
        take(t, i);
    for (size_t i = 0; i < TRACE_LISTS; i++)
        settle_steps(&t->steps[i]);
}
