/* index.c - what follows from a trace's records: the bars of each lane, the runs of each task, the steps of each list,
 * and the pauses.
 *
 * All of them grow as the trace does: entries for records before `first` stay, and the later ones are made again.  A
 * lane's bars say how long the lane was busy before them, so that a stretch of any number of bars is measured by two of
 * them.
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

size_t bar_of(const struct trace *t, size_t record)
{
    const struct bars *b = &t->bars[t->tasks[t->records[record].task].lane];
    size_t i;
    FIND_FIRST(i, b->n, b->bar[i].record < record);
    return i;
}

uint64_t busy_between(const struct bars *b, uint64_t from, uint64_t to)
{
    size_t i = first_bar_in(b, from), end = first_bar_from(b, to);
    return i < end ? busy_from_to(&b->bar[i], &b->bar[end - 1], from, to) : 0;
}

uint64_t busy_from_to(const struct bar *first, const struct bar *last, uint64_t from, uint64_t to)
{
    if (to <= from || first->start >= to)
        return 0;
    uint64_t busy = last->busy - first->busy + (last->end - last->start);
    uint64_t outside = 0; /* the parts of the two bars before `from` and after `to` */
    if (first->start < from)
        outside += from - first->start;
    if (last->end > to)
        outside += last->end - to;
    return MIN(busy - MIN(busy, outside), to - from);
}

/* ---- tasks ----------------------------------------------------------------------------------------------------- */

/* How many of the task's runs come before record `at` of the step.  A task's steps ascend, as they do in any trace that
 * yard writes; in another one, records may not be found. */
static size_t count_runs(const struct trace *t, uint32_t task, uint32_t step, size_t at)
{
    const struct runs *x = &t->runs[task];
    size_t i;
    FIND_FIRST(i, x->n,
               t->records[x->record[i]].step < step || (t->records[x->record[i]].step == step && x->record[i] < at));
    return i;
}

/* The task's last record before `at` in that step or, if the task skipped it, in an earlier one. */
static int64_t find_latest(const struct trace *t, uint32_t task, uint32_t step, size_t at)
{
    const struct runs *x = &t->runs[task];
    size_t n = count_runs(t, task, step, at);
    if (n == 0 || x->record[n - 1] >= at)
        return NONE;
    return (int64_t)x->record[n - 1];
}

int64_t trace_find_before(const struct trace *t, uint32_t task, uint32_t step, size_t at)
{
    int64_t i = find_latest(t, task, step, at);
    return i != NONE && t->records[i].step == step ? i : NONE;
}

int64_t trace_find_from(const struct trace *t, uint32_t task, uint32_t step, size_t at)
{
    const struct runs *x = &t->runs[task];
    size_t i = count_runs(t, task, step, at);
    if (i == x->n || t->records[x->record[i]].step != step || x->record[i] < at)
        return NONE;
    return (int64_t)x->record[i];
}

int64_t trace_last_producer(const struct trace *t, uint32_t task, uint32_t step, size_t at,
                            const struct trace_edge **edge)
{
    const uint32_t first = t->tasks[task].first_edge;
    int64_t last = NONE;
    for (uint32_t i = first; i < first + t->tasks[task].n_edges; i++) {
        const struct trace_edge *e = &t->edges[i];
        int64_t producer = find_latest(t, e->producer, step - (e->previous_step != 0), at);
        if (producer == NONE)
            continue;
        if (last == NONE || t->records[producer].end > t->records[last].end) {
            last = producer;
            *edge = e;
        }
    }
    return last;
}

/* ---- steps ----------------------------------------------------------------------------------------------------- */

/* Adds a record to its step, which is mostly the last one of its list, or one after that. */
static void take_step(struct trace *t, const struct trace_record *r)
{
    const struct trace_task *task = &t->tasks[r->task];
    struct trace_step_list *l = &t->steps[task->list];
    enum lane_kind kind = t->lanes[task->lane].kind;
    bool computes = kind == LANE_COMPUTE;
    size_t i;
    FIND_FIRST(i, l->n, l->step[i].step < r->step);
    if (i == l->n || l->step[i].step != r->step) {
        (void)APPEND(l->step, l->n, l->cap);
        memmove(&l->step[i + 1], &l->step[i], (l->n - 1 - i) * sizeof *l->step);
        l->step[i] = (struct trace_step){.step = r->step, .start = UINT64_MAX, .work = UINT64_MAX};
    }
    struct trace_step *s = &l->step[i];
    s->start = MIN(s->start, r->start);
    s->end = MAX(s->end, r->end);
    if (computes && !s->computes)
        s->work = r->start;
    else if (computes == s->computes)
        s->work = MIN(s->work, r->start);
    s->computes |= computes;
    if (computes)
        s->computed = MAX(s->computed, r->end);
    if (kind != LANE_DISK && !has_role(t, task, "snapshot"))
        s->done = MAX(s->done, r->end);
}

/* ---- pauses ---------------------------------------------------------------------------------------------------- */

uint64_t trace_paused_before(const struct trace *t, uint64_t clock)
{
    size_t i;
    FIND_FIRST(i, t->n_pauses, t->pauses[i].start < clock);
    if (i == 0)
        return 0;
    const struct pause *last = &t->pauses[i - 1];
    return last->before + MIN(clock, last->end) - last->start;
}

/* Adds the pause after which a record was queued.  It lasts from the last end before that moment to that moment. */
static void take_pause(struct trace *t, const struct trace_record *r, size_t record)
{
    struct pause pause = {.start = 0, .end = r->queued, .before = 0, .record = record};
    for (size_t i = 0; i < t->header.n_lanes; i++) {
        const struct bars *b = &t->bars[i];
        size_t n = first_bar_from(b, r->queued);
        if (n > 0)
            pause.start = MAX(pause.start, b->bar[n - 1].end);
    }
    if (pause.start == 0 || pause.start >= r->queued)
        return;
    if (t->n_pauses > 0) {
        const struct pause *last = &t->pauses[t->n_pauses - 1];
        if (pause.start < last->end)
            return;
        pause.before = last->before + (last->end - last->start);
    }
    *APPEND(t->pauses, t->n_pauses, t->cap_pauses) = pause;
}

/* ---- all of them ----------------------------------------------------------------------------------------------- */

/* Removes what came from records from `first` on.  Steps stay, unless all records are new: they only ever grow. */
static void forget_records(struct trace *t, size_t first)
{
    while (t->n_pauses && t->pauses[t->n_pauses - 1].record >= first)
        t->n_pauses--;
    if (first == 0)
        for (size_t i = 0; i < TRACE_LISTS; i++)
            t->steps[i].n = 0;
    if (first >= t->n_records)
        return;
    for (size_t i = 0; i < t->header.n_lanes; i++) {
        struct bars *b = &t->bars[i];
        while (b->n && b->bar[b->n - 1].record >= first)
            b->n--;
    }
    for (size_t i = 0; i < t->header.n_tasks; i++) {
        struct runs *x = &t->runs[i];
        while (x->n && x->record[x->n - 1] >= first)
            x->n--;
    }
}

static void take_bar(struct bars *b, const struct trace_record *r, size_t record)
{
    struct bar *bar = APPEND(b->bar, b->n, b->cap);
    *bar = (struct bar){.start = r->start, .end = r->end, .record = (uint32_t)record, .task = r->task};
    if (b->n > 1) {
        const struct bar *before = bar - 1;
        bar->busy = before->busy + (before->end - before->start);
    }
}

void trace_index(struct trace *t, size_t first)
{
    forget_records(t, first);
    for (size_t i = first; i < t->n_records; i++) {
        const struct trace_record *r = &t->records[i];
        struct runs *x = &t->runs[r->task];
        take_bar(&t->bars[t->tasks[r->task].lane], r, i);
        *APPEND(x->record, x->n, x->cap) = i;
        take_step(t, r);
        if (r->flags & TRACE_AFTER_PAUSE)
            take_pause(t, r, i);
    }
    for (size_t i = 0; i < t->n_unfinished; i++)
        if (t->unfinished[i].flags & TRACE_AFTER_PAUSE)
            take_pause(t, &t->unfinished[i], SIZE_MAX);
}
