/* index.c - what follows from a trace's records: the bars of each lane, the instances of each task, the steps of each
 * list, and the pauses.
 *
 * All of them grow as the trace does: entries for records before `first` stay, and the later ones are made again.  A
 * lane's bars say how long the lane was busy before them, so that a stretch of any number of bars is measured by two of
 * them.
 */
#include "near.h"
#include "trace.h"

/* ---- lanes ------------------------------------------------------------------------------------------------------- */

static bool is_earlier(const void *item, const void *key)
{
    const uint64_t *start = item;
    const uint64_t *clock = key;
    return *start < *clock;
}

size_t first_bar_from(const struct bars *bars, uint64_t clock)
{
    return lower_bound_within(&clock, bars->starts, 0, bars->n, sizeof *bars->starts, is_earlier);
}

size_t next_bar_from(const struct bars *bars, size_t i, uint64_t clock)
{
    return lower_bound_near(i, &clock, bars->starts, bars->n, sizeof *bars->starts, is_earlier);
}

size_t first_bar_in(const struct bars *bars, uint64_t clock)
{
    size_t i = first_bar_from(bars, clock);
    return i > 0 && bars->items[i - 1].end > clock ? i - 1 : i;
}

static bool has_earlier_record(const void *item, const void *key)
{
    const struct bar *bar = item;
    const size_t *record = key;
    return bar->record < *record;
}

size_t bar_of(const struct trace *trace, size_t record)
{
    const struct bars *bars = &trace->bars[trace->tasks[trace->records[record].task].lane];
    return lower_bound(&record, bars->items, bars->n, sizeof *bars->items, has_earlier_record);
}

uint64_t busy_between(const struct bars *bars, uint64_t from, uint64_t to)
{
    size_t i = first_bar_in(bars, from);
    size_t end = first_bar_from(bars, to);
    return i < end ? busy_from_to(&bars->items[i], &bars->items[end - 1], from, to) : 0;
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

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

/* A task's steps ascend, as they do in any trace that yard writes; in another one, records may not be found. */
size_t count_runs(const struct trace *trace, uint32_t task, uint32_t step, size_t at)
{
    const struct runs *runs = &trace->runs[task];
    size_t low = 0;
    size_t high = runs->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        size_t record = runs->record[middle];
        uint32_t its_step = trace->records[record].step;
        if (its_step < step || (its_step == step && record < at))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The task's last record before `at` in that step or, if the task skipped it, in an earlier one. */
static int64_t find_latest(const struct trace *trace, uint32_t task, uint32_t step, size_t at)
{
    const struct runs *runs = &trace->runs[task];
    size_t n = count_runs(trace, task, step, at);
    if (n == 0 || runs->record[n - 1] >= at)
        return NONE;
    return (int64_t)runs->record[n - 1];
}

int64_t find_run_before(const struct trace *trace, uint32_t task, uint32_t step, size_t at)
{
    int64_t i = find_latest(trace, task, step, at);
    return i != NONE && trace->records[i].step == step ? i : NONE;
}

int64_t find_run_from(const struct trace *trace, uint32_t task, uint32_t step, size_t at)
{
    const struct runs *runs = &trace->runs[task];
    size_t i = count_runs(trace, task, step, at);
    if (i == runs->n || trace->records[runs->record[i]].step != step || runs->record[i] < at)
        return NONE;
    return (int64_t)runs->record[i];
}

int64_t find_last_producer(const struct trace *trace, uint32_t task, uint32_t step, size_t at,
                           const struct trace_edge **edge)
{
    uint32_t first = trace->tasks[task].first_edge;
    int64_t last = NONE;
    for (uint32_t i = first; i < first + trace->tasks[task].n_edges; i++) {
        const struct trace_edge *found = &trace->edges[i];
        int64_t producer = find_latest(trace, found->producer, step - (found->previous_step != 0), at);
        if (producer == NONE)
            continue;
        if (last == NONE || trace->records[producer].end > trace->records[last].end) {
            last = producer;
            *edge = found;
        }
    }
    return last;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static bool has_lower_number(const void *item, const void *key)
{
    const struct trace_step *step = item;
    const uint64_t *number = key;
    return step->step < *number;
}

size_t first_step_of(const struct trace_step_list *list, uint64_t number)
{
    return lower_bound(&number, list->items, list->n, sizeof *list->items, has_lower_number);
}

static bool works_before(const void *item, const void *key)
{
    const struct trace_step *step = item;
    const uint64_t *clock = key;
    return step->work < *clock;
}

size_t first_step_from(const struct trace_step *steps, size_t n, uint64_t clock)
{
    return lower_bound(&clock, steps, n, sizeof *steps, works_before);
}

/* Adds a record to its step, which is mostly the last one of its list, or one after that. */
static void take_step(struct trace *trace, const struct trace_record *record)
{
    const struct trace_task *task = &trace->tasks[record->task];
    struct trace_step_list *list = &trace->steps[task->list];
    enum lane_kind kind = trace->lanes[task->lane].kind;
    bool computes = kind == LANE_COMPUTE;
    size_t i = first_step_of(list, record->step);
    if (i == list->n || list->items[i].step != record->step) {
        const struct trace_step new_step = {.step = record->step, .start = UINT64_MAX, .work = UINT64_MAX};
        list->items = insert_item(list->items, &list->n, &list->cap, i, sizeof *list->items);
        list->items[i] = new_step;
    }
    struct trace_step *step = &list->items[i];
    step->start = MIN(step->start, record->start);
    step->end = MAX(step->end, record->end);
    if (computes && !step->computes)
        step->work = record->start;
    else if (computes == step->computes)
        step->work = MIN(step->work, record->start);
    step->computes |= computes;
    if (computes)
        step->computed = MAX(step->computed, record->end);
    if (kind != LANE_DISK && !has_role(trace, task, "snapshot"))
        step->done = MAX(step->done, record->end);
}

/* ---- pauses ------------------------------------------------------------------------------------------------------ */

static bool pauses_before(const void *item, const void *key)
{
    const struct pause *pause = item;
    const uint64_t *clock = key;
    return pause->start < *clock;
}

uint64_t paused_before(const struct trace *trace, uint64_t clock)
{
    size_t i = lower_bound(&clock, trace->pauses, trace->n_pauses, sizeof *trace->pauses, pauses_before);
    if (i == 0)
        return 0;
    const struct pause *last = &trace->pauses[i - 1];
    return last->before + MIN(clock, last->end) - last->start;
}

/* Adds the pause after which a record was queued.  It lasts from the last end before that moment to that moment. */
static void take_pause(struct trace *trace, const struct trace_record *record, size_t nth)
{
    struct pause pause = {.start = 0, .end = record->queued, .before = 0, .record = nth};
    for (size_t i = 0; i < trace->header.n_lanes; i++) {
        const struct bars *bars = &trace->bars[i];
        size_t n = first_bar_from(bars, record->queued);
        if (n > 0)
            pause.start = MAX(pause.start, bars->items[n - 1].end);
    }
    if (pause.start == 0 || pause.start >= record->queued)
        return;
    if (trace->n_pauses > 0) {
        const struct pause *last = &trace->pauses[trace->n_pauses - 1];
        if (pause.start < last->end)
            return;
        pause.before = last->before + (last->end - last->start);
    }
    GROW(trace->pauses, trace->cap_pauses, trace->n_pauses + 1);
    trace->pauses[trace->n_pauses++] = pause;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

/* Removes what came from records from `first` on.  Steps stay, unless all records are new: they only ever grow. */
static void forget_records(struct trace *trace, size_t first)
{
    while (trace->n_pauses && trace->pauses[trace->n_pauses - 1].record >= first)
        trace->n_pauses--;
    if (first == 0)
        for (size_t i = 0; i < TRACE_LISTS; i++)
            trace->steps[i].n = 0;
    if (first >= trace->n_records)
        return;
    for (size_t i = 0; i < trace->header.n_lanes; i++) {
        struct bars *bars = &trace->bars[i];
        while (bars->n && bars->items[bars->n - 1].record >= first)
            bars->n--;
    }
    for (size_t i = 0; i < trace->header.n_tasks; i++) {
        struct runs *runs = &trace->runs[i];
        while (runs->n && runs->record[runs->n - 1] >= first)
            runs->n--;
    }
}

static void take_bar(struct bars *bars, const struct trace_record *record, size_t nth)
{
    GROW(bars->items, bars->cap, bars->n + 1);
    struct bar *bar = &bars->items[bars->n++];
    *bar = (struct bar){.start = record->start, .end = record->end, .record = (uint32_t)nth, .task = record->task};
    if (bars->n > 1) {
        const struct bar *before = bar - 1;
        bar->busy = before->busy + (before->end - before->start);
    }
    GROW(bars->starts, bars->cap_starts, bars->n);
    bars->starts[bars->n - 1] = bar->start;
}

void index_trace(struct trace *trace, size_t first)
{
    forget_records(trace, first);
    for (size_t i = first; i < trace->n_records; i++) {
        const struct trace_record *record = &trace->records[i];
        struct runs *runs = &trace->runs[record->task];
        take_bar(&trace->bars[trace->tasks[record->task].lane], record, i);
        GROW(runs->record, runs->cap, runs->n + 1);
        runs->record[runs->n++] = i;
        take_step(trace, record);
        if (record->flags & TRACE_AFTER_PAUSE)
            take_pause(trace, record, i);
    }
    for (size_t i = 0; i < trace->n_unfinished; i++)
        if (trace->unfinished[i].flags & TRACE_AFTER_PAUSE)
            take_pause(trace, &trace->unfinished[i], SIZE_MAX);
}
