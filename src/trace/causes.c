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
#include "../base/table.h"
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

/* When the compute lanes were done with the step two before; 0: there was none. */
static uint64_t opened_at(const struct trace_step_list *l, uint32_t step)
{
    size_t i;
    FIND_FIRST(i, l->n, l->step[i].step + (uint64_t)2 <= step);
    return i ? l->step[i - 1].computed : 0;
}

struct trace_gap trace_gap_before(const struct trace *t, size_t record, uint64_t from)
{
    const struct trace_record *r = &t->records[record];
    const struct trace_task *task = &t->tasks[r->task];
    struct trace_gap gap = {.from = MIN(from, r->start), .blocker = NO_RECORD};
    enum cause cause = CAUSE_COMPUTE;
    for (uint32_t e = task->first_edge; e < task->first_edge + task->n_edges; e++) {
        const struct trace_edge *edge = &t->edges[e];
        int64_t p = trace_find_latest(t, edge->from, r->step - (edge->previous_step != 0), record);
        if (p != NO_RECORD && (gap.blocker == NO_RECORD || t->records[p].end > t->records[gap.blocker].end)) {
            gap.blocker = p;
            cause = cause_of(t, task, edge);
        }
    }
    uint64_t ready = gap.blocker == NO_RECORD ? 0 : t->records[gap.blocker].end, at = gap.from;
    struct gap_part part[GAP_PARTS] = {{CAUSE_NOTHING, opened_at(&t->steps[task->list], r->step)},
                                       {cause, ready},
                                       {CAUSE_HOST, r->queued},
                                       {CAUSE_LAUNCH, r->start}};
    for (int i = 0; i < GAP_PARTS; i++) {
        at = part[i].until = MIN(MAX(part[i].until, at), r->start);
        gap.part[i] = part[i];
    }
    return gap;
}

struct trace_gap trace_gap_of_bar(const struct trace *t, const struct bars *b, size_t i)
{
    return trace_gap_before(t, b->bar[i].record, i ? b->bar[i - 1].end : t->records[0].start);
}

/* Records come by their starts: the lane is free when all up to there have ended. */
void trace_causes(const struct trace *t, const struct trace_steps *s, uint64_t (*causes)[CAUSES])
{
    memset(causes, 0, t->header.n_lanes * sizeof *causes);
    for (size_t lane = 0; lane < t->header.n_lanes; lane++) {
        const struct bars *b = &t->bars[lane];
        uint64_t free_from = 0;
        for (size_t i = 0; i < b->n && free_from < s->end; i++) {
            if (t->tasks[t->records[b->bar[i].record].task].list != s->list)
                continue;
            if (b->bar[i].start > MAX(free_from, s->start)) {
                struct trace_gap gap = trace_gap_before(t, b->bar[i].record, free_from);
                uint64_t at = MAX(gap.from, s->start);
                for (int k = 0; k < GAP_PARTS; k++) {
                    uint64_t until = MIN(MAX(gap.part[k].until, at), s->end);
                    causes[lane][gap.part[k].cause] += until - at;
                    at = until;
                }
            }
            free_from = MAX(free_from, b->bar[i].end);
        }
        if (free_from < s->end)
            causes[lane][CAUSE_NOTHING] += s->end - MAX(free_from, s->start);
    }
}

/* ---- as a table -------------------------------------------------------------------------------------------------- */

/* "link 8%, norm 3%": the largest first, as far as a line goes. */
static char *list_causes(const uint64_t *causes, double window)
{
    enum { MOST = 4 };
    char *text = NULL;
    uint64_t told = 0; /* a bit for each */
    for (int n = 0; n < MOST; n++) {
        int best = 0;
        for (int c = 0; c < CAUSES; c++)
            if (told >> best & 1 || (causes[c] > causes[best] && !(told >> c & 1)))
                best = c;
        told |= 1u << best;
        if ((double)causes[best] >= 0.005 * window)
            append_text(&text, "%s%s %.0f%%", text ? ", " : "", cause_name[best], 100 * (double)causes[best] / window);
    }
    return text ? text : copy_string("-");
}

struct table *trace_lane_table(const struct trace *t, const struct trace_steps *s, const char *heading, json_t **json)
{
    static struct column columns[] = {{NULL, "name", CELL_TEXT, 0, 0},
                                      {NULL, "device", CELL_TEXT, 0, 0},
                                      {"busy ms/step", "busy_ms", CELL_FIXED, 12, 3},
                                      {NULL, "idle_ms", CELL_FIXED, 12, 3},
                                      {"busy", "busy", CELL_SHARE, 6, 0},
                                      {"idle for", NULL, CELL_TEXT, 99, 0}};
    struct table *table = new_table(columns, COUNT(columns));
    uint64_t(*causes)[CAUSES] = allocate(t->header.n_lanes, sizeof *causes), window = s->end - s->start;
    double ms = 1e-6 / (double)s->counted;
    columns[0].heading = heading;
    columns[0].width = 21;
    trace_causes(t, s, causes);
    for (size_t i = 0; i < t->header.n_lanes; i++) {
        uint64_t idle = 0;
        for (int c = 0; c < CAUSES; c++)
            idle += causes[i][c];
        if (idle < window) /* those that are printed */
            columns[0].width = MAX(columns[0].width, (int)strlen(t->lanes[i].name));
        char *text = list_causes(causes[i], (double)window);
        ROW(table, text_cell(t->lanes[i].name), text_cell(t->devices[t->lanes[i].device_index].name),
            number_cell((double)(window - idle) * ms), number_cell((double)idle * ms),
            number_cell(window ? (double)(window - idle) / (double)window : 0), text_cell(text));
        free(text);
    }
    *json = table_json(table);
    for (size_t i = 0; i < t->header.n_lanes; i++) {
        json_t *all = json_object();
        for (int c = 0; c < CAUSES; c++)
            json_object_set_new(all, cause_name[c], json_real((double)causes[i][c] * ms));
        json_object_set_new(json_array_get(*json, i), "causes", all);
    }
    free(causes);
    return table;
}

void print_busy_lanes(FILE *out, const struct table *lanes)
{
    print_heading(out, lanes);
    for (size_t i = 0; i < lanes->n; i++)
        if (lanes->cells[i * lanes->n_columns + 2].number > 0)
            print_rows(out, lanes, i, i + 1);
}
