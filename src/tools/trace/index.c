/* index.c - what follows from a trace's records: the bars of each lane, the runs of each task, the steps of each list,
 * and the holds.
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
    uint64_t before = first->start < from ? from - first->start : 0, behind = last->end > to ? last->end - to : 0;
    return MIN(busy - MIN(busy, before + behind), to - from);
}

/* ---- tasks ----------------------------------------------------------------------------------------------------- */

/* How many of the task's runs come before record `at` of the step.  A task's steps ascend, as they do in any trace of
 * ours; in another one, records may not be found. */
static size_t count_runs(const struct trace *t, uint32_t task, uint32_t step, size_t at)
{
    const struct runs *x = &t->runs[task];
    size_t i;
    FIND_FIRST(i, x->n,
               t->records[x->record[i]].step < step || (t->records[x->record[i]].step == step && x->record[i] < at));
    return i;
}

/* The last one before `at` of that step, or if the task skipped it, of the last one before it. */
static int64_t find_latest(const struct trace *t, uint32_t task, uint32_t step, size_t at)
{
    const struct runs *x = &t->runs[task];
    size_t i = count_runs(t, task, step, at);
    return i && x->record[i - 1] < at ? (int64_t)x->record[i - 1] : NO_RECORD;
}

int64_t trace_find_before(const struct trace *t, uint32_t task, uint32_t step, size_t at)
{
    int64_t i = find_latest(t, task, step, at);
    return i != NO_RECORD && t->records[i].step == step ? i : NO_RECORD;
}

int64_t trace_find_from(const struct trace *t, uint32_t task, uint32_t step, size_t at)
{
    const struct runs *x = &t->runs[task];
    size_t i = count_runs(t, task, step, at);
    bool found = i < x->n && t->records[x->record[i]].step == step && x->record[i] >= at;
    return found ? (int64_t)x->record[i] : NO_RECORD;
}

int64_t trace_last_producer(const struct trace *t, uint32_t task, uint32_t step, size_t at,
                            const struct trace_edge **edge)
{
    const struct trace_edge *e = &t->edges[t->tasks[task].first_edge], *end = e + t->tasks[task].n_edges;
    int64_t last = NO_RECORD;
    for (; e < end; e++) {
        int64_t p = find_latest(t, e->from, step - (e->previous_step != 0), at);
        if (p != NO_RECORD && (last == NO_RECORD || t->records[p].end > t->records[last].end))
            last = p, *edge = e;
    }
    return last;
}

/* ---- steps ----------------------------------------------------------------------------------------------------- */

/* Mostly of the last one, or of one behind it. */
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
    if (computes >= s->computes)
        s->work = computes > s->computes ? r->start : MIN(s->work, r->start);
    s->computes |= computes;
    s->computed = MAX(s->computed, computes ? r->end : 0);
    if (kind != LANE_DISK && !has_role(t, task, "snapshot"))
        s->done = MAX(s->done, r->end);
}

/* ---- holds ----------------------------------------------------------------------------------------------------- */

uint64_t trace_hold_before(const struct trace *t, uint64_t clock)
{
    size_t i;
    FIND_FIRST(i, t->n_holds, t->holds[i].from < clock);
    const struct hold *h = i ? &t->holds[i - 1] : NULL;
    return h ? h->before + MIN(clock, h->to) - h->from : 0;
}

/* From the last end before a record that was held was queued. */
static void take_hold(struct trace *t, const struct trace_record *r, size_t record)
{
    const struct hold *last = t->n_holds ? &t->holds[t->n_holds - 1] : NULL;
    uint64_t from = 0;
    for (size_t i = 0; i < t->header.n_lanes; i++) {
        size_t n = first_bar_from(&t->bars[i], r->queued);
        from = n ? MAX(from, t->bars[i].bar[n - 1].end) : from;
    }
    if (from == 0 || from >= r->queued || (last && from < last->to))
        return;
    uint64_t before = last ? last->before + (last->to - last->from) : 0;
    *APPEND(t->holds, t->n_holds, t->cap_holds) = (struct hold){from, r->queued, before, record};
}

/* ---- all of them ----------------------------------------------------------------------------------------------- */

void trace_index(struct trace *t, size_t first)
{
    while (t->n_holds && t->holds[t->n_holds - 1].record >= first)
        t->n_holds--;
    for (size_t i = 0; i < t->header.n_lanes && first < t->n_records; i++)
        while (t->bars[i].n && t->bars[i].bar[t->bars[i].n - 1].record >= first)
            t->bars[i].n--;
    for (size_t i = 0; i < t->header.n_tasks && first < t->n_records; i++)
        while (t->runs[i].n && t->runs[i].record[t->runs[i].n - 1] >= first)
            t->runs[i].n--;
    for (size_t i = 0; i < TRACE_LISTS && first == 0; i++)
        t->steps[i].n = 0;

    for (size_t i = first; i < t->n_records; i++) {
        const struct trace_record *r = &t->records[i];
        struct runs *x = &t->runs[r->task];
        struct bars *b = &t->bars[t->tasks[r->task].lane];
        struct bar *bar = APPEND(b->bar, b->n, b->cap), *before = b->n > 1 ? bar - 1 : NULL;
        uint64_t busy = before ? before->busy + (before->end - before->start) : 0;
        *bar = (struct bar){r->start, r->end, busy, (uint32_t)i, r->task};
        *APPEND(x->record, x->n, x->cap) = i;
        take_step(t, r);
        if (r->flags & TRACE_HELD)
            take_hold(t, r, i);
    }
    for (size_t i = 0; i < t->n_unfinished; i++)
        if (t->unfinished[i].flags & TRACE_HELD)
            take_hold(t, &t->unfinished[i], SIZE_MAX);
}
