/* causes.c - why a lane stood idle.
 *
 * A gap lies before a record, and begins where its lane became free.  It is cut into four parts, one after the other;
 * any of them may be empty:
 *
 *     nothing to do   until the compute lanes were done with the step two before: the host opens no step sooner
 *     the blocker     until the last of the task's producers had ended.  The *blocker*, the producer that ended last,
 *                     is blamed for all of this part, whatever it waited for itself; among several that ended at the
 *                     same time, it is the producer of the first edge.  The blocker's kind is the cause:
 *                       bytes      the edge is a reuse edge: the blocker held memory that the task writes
 *                       norm       the blocker's role is norm: clipping
 *                       batch      the blocker's role is feed
 *                       pipeline   its role is send, or the blocker and the task compute on two devices
 *                       link       the blocker is another copy, on an upload or download lane
 *                       compute, cpu, disk   the blocker did what these lanes do
 *     host            until the host had queued the task
 *     launch          until the task started: it was queued and nothing held it
 *
 * After a lane's last record there is nothing to do.  If a producer skipped the step, its latest instance in an earlier
 * step counts.
 */
#include "planning/console/table.h"
#include "stats.h"

const char *const cause_name[CAUSES] = {
    [CAUSE_PIPELINE] = "pipeline", [CAUSE_LINK] = "link",     [CAUSE_COMPUTE] = "compute",      [CAUSE_CPU] = "cpu",
    [CAUSE_DISK] = "disk",         [CAUSE_NORM] = "norm",     [CAUSE_BYTES] = "bytes",          [CAUSE_BATCH] = "batch",
    [CAUSE_HOST] = "host",         [CAUSE_LAUNCH] = "launch", [CAUSE_NOTHING] = "nothing to do"};

/* Why a task waits for the producer of this edge, which is one of its own. */
static enum cause cause_of(const struct trace *trace, const struct trace_task *task, const struct trace_edge *edge)
{
    static const enum cause by_lane[LANE_KINDS] = {
        [LANE_COMPUTE] = CAUSE_COMPUTE, [LANE_UPLOAD] = CAUSE_LINK, [LANE_DOWNLOAD] = CAUSE_LINK,
        [LANE_CPU] = CAUSE_CPU,         [LANE_DISK] = CAUSE_DISK,   [LANE_REPORT] = CAUSE_CPU,
        [LANE_FEED] = CAUSE_BATCH};
    const struct trace_task *producer = &trace->tasks[edge->producer];
    const struct trace_lane *producer_lane = &trace->lanes[producer->lane];
    const struct trace_lane *task_lane = &trace->lanes[task->lane];
    if (edge->reuse)
        return CAUSE_BYTES;
    if (has_role(trace, producer, "norm"))
        return CAUSE_NORM;
    if (has_role(trace, producer, "feed"))
        return CAUSE_BATCH;
    bool both_compute = producer_lane->kind == LANE_COMPUTE && task_lane->kind == LANE_COMPUTE;
    bool on_two_devices = producer_lane->device_index != task_lane->device_index;
    if (has_role(trace, producer, "send") || (both_compute && on_two_devices))
        return CAUSE_PIPELINE;
    return by_lane[producer_lane->kind];
}

/* The gap before the nth record on a lane that is free from `from` on. */
static struct trace_gap gap_on_lane(const struct trace *trace, size_t nth, uint64_t from)
{
    const struct trace_record *record = &trace->records[nth];
    const struct trace_task *task = &trace->tasks[record->task];
    const struct trace_step_list *steps = &trace->steps[task->list];
    const struct trace_edge *edge;
    struct trace_gap gap = {.blocker = find_last_producer(trace, record->task, record->step, nth, &edge)};
    /* steps of the list up to the step two before this one, after which the host opens this one */
    size_t n_before = first_step_of(steps, MAX(record->step, 1) - 1);
    gap.cause[0] = CAUSE_NOTHING;
    gap.cause[1] = CAUSE_NOTHING;
    gap.cause[2] = CAUSE_HOST;
    gap.cause[3] = CAUSE_LAUNCH;
    gap.at[0] = MIN(from, record->start);
    if (n_before > 0)
        gap.at[1] = steps->items[n_before - 1].computed;
    if (gap.blocker != NONE) {
        gap.cause[1] = cause_of(trace, task, edge);
        gap.at[2] = trace->records[gap.blocker].end;
    }
    gap.at[3] = record->queued;
    gap.at[4] = record->start;
    for (int i = 1; i < GAP_PARTS; i++)
        gap.at[i] = MIN(MAX(gap.at[i], gap.at[i - 1]), record->start);
    return gap;
}

struct trace_gap gap_before_bar(const struct trace *trace, const struct bars *bars, size_t i)
{
    uint64_t from = i > 0 ? bars->items[i - 1].end : trace->records[0].start;
    return gap_on_lane(trace, bars->items[i].record, from);
}

/* Adds the parts of a gap, as far as they lie in the window of the steps, to the causes of a lane. */
static void count_gap(const struct trace_gap *gap, const struct trace_steps *steps, uint64_t causes[CAUSES])
{
    for (int k = 0; k < GAP_PARTS; k++) {
        uint64_t from = MAX(gap->at[k], steps->start);
        uint64_t to = MIN(gap->at[k + 1], steps->end);
        if (to > from)
            causes[gap->cause[k]] += to - from;
    }
}

/* Records are in the order of their starts: a lane is free when all those before have ended. */
static void fill_lane_causes(const struct trace *trace, const struct trace_steps *steps, const struct bars *bars,
                             uint64_t causes[CAUSES])
{
    uint64_t free_from = 0;
    for (size_t i = 0; i < bars->n; i++) {
        const struct bar *bar = &bars->items[i];
        if (trace->tasks[bar->task].list != steps->list)
            continue;
        if (bar->start > MAX(free_from, steps->start) && free_from < steps->end) {
            struct trace_gap gap = gap_on_lane(trace, bar->record, free_from);
            count_gap(&gap, steps, causes);
        }
        free_from = MAX(free_from, bar->end);
    }
    if (free_from < steps->end)
        causes[CAUSE_NOTHING] += steps->end - MAX(free_from, steps->start);
}

void sum_up_causes(const struct trace *trace, const struct trace_steps *steps, uint64_t (*causes)[CAUSES])
{
    memset(causes, 0, trace->header.n_lanes * sizeof *causes);
    for (size_t lane = 0; lane < trace->header.n_lanes; lane++)
        fill_lane_causes(trace, steps, &trace->bars[lane], causes[lane]);
}

/* ---- shown ------------------------------------------------------------------------------------------------------- */

/* What the lane did, with its causes in nanoseconds. */
static struct lane_use use_of_lane(const struct trace *trace, const struct trace_steps *steps,
                                   const struct trace_lane *lane, const uint64_t causes[CAUSES])
{
    double ms = 1e-6 / (double)steps->counted;
    double window = (double)(steps->end - steps->start);
    struct lane_use use = {.lane = lane->name, .device = trace->devices[lane->device_index].name};
    uint64_t idle = 0;
    for (int cause = 0; cause < CAUSES; cause++) {
        idle += causes[cause];
        use.cause_ms[cause] = (double)causes[cause] * ms;
    }
    double busy = (double)(steps->end - steps->start - idle);
    use.busy_ms = busy * ms;
    use.idle_ms = (double)idle * ms;
    use.busy = window > 0 ? busy / window : 0;
    return use;
}

struct lane_use *new_lane_uses(const struct trace *trace, const struct trace_steps *steps)
{
    size_t n = trace->header.n_lanes;
    uint64_t(*causes)[CAUSES] = allocate(n, sizeof *causes);
    struct lane_use *uses = allocate(n, sizeof *uses);
    sum_up_causes(trace, steps, causes);
    for (size_t i = 0; i < n; i++)
        uses[i] = use_of_lane(trace, steps, &trace->lanes[i], causes[i]);
    free(causes);
    return uses;
}

static json_t *lane_use_json(const struct lane_use *use)
{
    json_t *causes = json_object();
    for (int cause = 0; cause < CAUSES; cause++)
        json_object_set_new(causes, cause_name[cause], json_real(use->cause_ms[cause]));
    json_t *json = json_object();
    set_json_text(json, "name", use->lane);
    set_json_text(json, "device", use->device);
    json_object_set_new(json, "busy_ms", json_real(use->busy_ms));
    json_object_set_new(json, "idle_ms", json_real(use->idle_ms));
    json_object_set_new(json, "busy", json_real(use->busy));
    json_object_set_new(json, "causes", causes);
    return json;
}

json_t *lane_uses_json(const struct lane_use *uses, size_t n)
{
    json_t *lanes = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(lanes, lane_use_json(&uses[i]));
    return lanes;
}

static const double LEAST_SHOWN = 0.005; /* a cause of a smaller share would be shown as 0% */

/* "link 12%, host 3%": the causes of the lane that take at least this share of the window; NULL: none does.  The caller
 * frees it. */
static char *describe_causes(const struct lane_use *use)
{
    double window_ms = use->busy_ms + use->idle_ms;
    char *text = NULL;
    for (int cause = 0; cause < CAUSES; cause++) {
        double share = use->cause_ms[cause] / window_ms;
        if (share >= LEAST_SHOWN)
            append_text(&text, "%s%s %.0f%%", text ? ", " : "", cause_name[cause], 100 * share);
    }
    return text;
}

void print_lane_uses(FILE *out, const char *heading, const struct lane_use *uses, size_t n)
{
    const struct column columns[] = {{heading, NULL, CELL_TEXT, 21, 0},
                                     {"busy ms/step", NULL, CELL_FIXED, 12, 3},
                                     {"busy", NULL, CELL_SHARE, 6, 0},
                                     {"idle for", NULL, CELL_TEXT, 99, 0}};
    struct table *table = new_table(columns, COUNT(columns));
    struct column *name_column = &table->columns[0];
    for (const struct lane_use *use = uses; use < uses + n; use++) {
        if (use->busy_ms <= 0)
            continue;
        char *text = describe_causes(use);
        name_column->width = MAX(name_column->width, (int)strlen(use->lane));
        ROW(table, text_cell(use->lane), number_cell(use->busy_ms), number_cell(use->busy),
            text_cell(text ? text : "-"));
        free(text);
    }
    print_table(out, table);
    free_table(table);
}
