/* causes.c - why a lane stood idle.
 *
 * A gap lies before a record, from where its lane became free.  It is cut into four parts, one behind the other; any of
 * them may be empty:
 *
 *     nothing to do   until the compute lanes were done with the step two before: sooner the host opens no step
 *     the blocker     until the last of the task's producers had ended.  The one that ended last is blamed for all of
 *                     this part, whatever it waited for itself; of several, the first edge.  Its kind is the cause:
 *                       bytes      by a reuse edge: it held memory that the task writes
 *                       norm       its role is norm: clipping
 *                       batch      its role is feed
 *                       pipeline   its role is send, or it and the task compute on two devices
 *                       link       another copy, on an upload or download lane
 *                       compute, cpu, disk   what its lane does
 *     host            until the host had queued the task
 *     launch          until it started: by then it was queued and nothing held it
 *
 * Behind a lane's last record there is nothing to do.  A producer that skipped a step is its run before that.
 */
#include "tools/command/table.h"
#include "trace.h"

const char *const cause_name[CAUSES] = {"pipeline", "link",  "compute", "cpu",    "disk",         "norm",
                                        "bytes",    "batch", "host",    "launch", "nothing to do"};

static enum cause cause_of(const struct trace *t, const struct trace_task *task, const struct trace_edge *edge)
{
    static const enum cause by_lane[LANE_KINDS] = {CAUSE_COMPUTE, CAUSE_LINK, CAUSE_LINK, CAUSE_CPU,
                                                   CAUSE_DISK,    CAUSE_CPU,  CAUSE_BATCH};
    const struct trace_task *producer = &t->tasks[edge->from];
    const struct trace_lane *its = &t->lanes[producer->lane], *mine = &t->lanes[task->lane];
    if (edge->reuse)
        return CAUSE_BYTES;
    if (has_role(t, producer, "norm"))
        return CAUSE_NORM;
    if (has_role(t, producer, "feed"))
        return CAUSE_BATCH;
    bool computes = its->kind == LANE_COMPUTE && mine->kind == LANE_COMPUTE;
    if (has_role(t, producer, "send") || (computes && its->device_index != mine->device_index))
        return CAUSE_PIPELINE;
    return by_lane[its->kind];
}

/* Of a lane that is free `from` there on. */
static struct trace_gap gap_before(const struct trace *t, size_t record, uint64_t from)
{
    const struct trace_record *r = &t->records[record];
    const struct trace_task *task = &t->tasks[r->task];
    const struct trace_step_list *steps = &t->steps[task->list];
    const struct trace_edge *edge;
    int64_t last = trace_last_producer(t, r->task, r->step, record, &edge);
    size_t opener; /* behind the step two before: the host opens this one when its compute lanes are done */
    FIND_FIRST(opener, steps->n, steps->step[opener].step + (uint64_t)2 <= r->step);
    uint64_t opened = opener ? steps->step[opener - 1].computed : 0;
    uint64_t ready = last == NO_RECORD ? 0 : t->records[last].end;
    struct trace_gap gap = {
        .blocker = last,
        .cause = {CAUSE_NOTHING, last == NO_RECORD ? CAUSE_NOTHING : cause_of(t, task, edge), CAUSE_HOST, CAUSE_LAUNCH},
        .at = {MIN(from, r->start), opened, ready, r->queued, r->start}};
    for (int i = 1; i < GAP_PARTS; i++)
        gap.at[i] = MIN(MAX(gap.at[i], gap.at[i - 1]), r->start);
    return gap;
}

struct trace_gap trace_gap_of_bar(const struct trace *t, const struct bars *b, size_t i)
{
    return gap_before(t, b->bar[i].record, i ? b->bar[i - 1].end : t->records[0].start);
}

/* Records come by their starts: the lane is free when all up to there have ended. */
void trace_causes(const struct trace *t, const struct trace_steps *s, uint64_t (*causes)[CAUSES])
{
    memset(causes, 0, t->header.n_lanes * sizeof *causes);
    for (size_t lane = 0; lane < t->header.n_lanes; lane++) {
        uint64_t free_from = 0;
        for (struct bar *bar = t->bars[lane].bar; bar < t->bars[lane].bar + t->bars[lane].n; bar++) {
            if (t->tasks[bar->task].list != s->list)
                continue;
            if (bar->start > MAX(free_from, s->start) && free_from < s->end) {
                struct trace_gap gap = gap_before(t, bar->record, free_from);
                for (int k = 0; k < GAP_PARTS; k++) {
                    uint64_t from = MAX(gap.at[k], s->start), to = MIN(gap.at[k + 1], s->end);
                    causes[lane][gap.cause[k]] += to > from ? to - from : 0;
                }
            }
            free_from = MAX(free_from, bar->end);
        }
        if (free_from < s->end)
            causes[lane][CAUSE_NOTHING] += s->end - MAX(free_from, s->start);
    }
}

/* ---- shown ------------------------------------------------------------------------------------------------------- */

json_t *trace_lanes_json(const struct trace *t, const struct trace_steps *s)
{
    json_t *lanes = json_array();
    uint64_t(*causes)[CAUSES] = allocate(t->header.n_lanes, sizeof *causes);
    double ms = 1e-6 / (double)s->counted, window = (double)(s->end - s->start);
    trace_causes(t, s, causes);
    for (size_t i = 0; i < t->header.n_lanes; i++) {
        const struct trace_lane *l = &t->lanes[i];
        json_t *all = json_object();
        uint64_t idle = 0;
        for (int c = 0; c < CAUSES; c++) {
            idle += causes[i][c];
            json_object_set_new(all, cause_name[c], json_real((double)causes[i][c] * ms));
        }
        double busy = (double)(s->end - s->start - idle);
        json_array_append_new(lanes,
                              json_pack("{s:s, s:s, s:f, s:f, s:f, s:o}", "name", l->name, "device",
                                        t->devices[l->device_index].name, "busy_ms", busy * ms, "idle_ms",
                                        (double)idle * ms, "busy", window > 0 ? busy / window : 0, "causes", all));
    }
    free(causes);
    return lanes;
}

void print_lane_use(FILE *out, const char *heading, const json_t *lanes)
{
    static struct column columns[] = {{NULL, NULL, CELL_TEXT, 21, 0},
                                      {"busy ms/step", NULL, CELL_FIXED, 12, 3},
                                      {"busy", NULL, CELL_SHARE, 6, 0},
                                      {"idle for", NULL, CELL_TEXT, 99, 0}};
    struct table *table = new_table(columns, COUNT(columns));
    size_t i;
    json_t *lane, *ms;
    columns[0].heading = heading;
    json_array_foreach(lanes, i, lane)
    {
        const char *name, *cause;
        char *text = NULL;
        double busy, idle;
        json_unpack(lane, "{s:s, s:F, s:F}", "name", &name, "busy_ms", &busy, "idle_ms", &idle);
        json_object_foreach(json_object_get(lane, "causes"), cause,
                            ms) if (json_real_value(ms) >= 0.005 * (busy + idle))
            append_text(&text, "%s%s %.0f%%", text ? ", " : "", cause, 100 * json_real_value(ms) / (busy + idle));
        if (busy > 0) {
            columns[0].width = MAX(columns[0].width, (int)strlen(name));
            ROW(table, text_cell(name), number_cell(busy), number_cell(busy / (busy + idle)),
                text_cell(text ? text : "-"));
        }
        free(text);
    }
    print_table(out, table);
    free_table(table);
}
