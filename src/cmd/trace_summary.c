/* trace_summary.c - yard trace summary: lanes, tasks and the critical path of a trace as tables or JSON. */
#include "../base/table.h"
#include "../trace/trace.h"
#include "cmd.h"

#include <inttypes.h>

enum { TOP = 12 }; /* rows of a table that are printed; the JSON has all */

static double ratio(double a, double b) { return b > 0 ? a / b : 0; }

/* ---- tasks by name --------------------------------------------------------------------------------------------- */

/* Tasks of one name, over the counted steps or on the critical path; or there a way of waiting. */
struct row {
    const char *name;
    double *ns; /* of each: not of the path */
    size_t n, cap;
    double total_ns, flops, bytes;
};

ORDER(by_name, struct row, strcmp(a->name, b->name))
/* Names of which nothing counts come last. */
ORDER(longest_row, struct row, BY(b->total_ns, a->total_ns, COMPARE(b->n, a->n)))

/* Empty rows, one for each name, in order of the names; *n of them, and room for two more. */
static struct row *new_rows(const struct trace *t, size_t *n)
{
    struct row *rows = allocate(t->header.n_tasks + 2, sizeof *rows);
    for (size_t i = 0; i < t->header.n_tasks; i++)
        rows[i].name = t->tasks[i].name;
    SORT(rows, t->header.n_tasks, by_name);
    *n = 0;
    for (size_t i = 0; i < t->header.n_tasks; i++)
        if (i == 0 || strcmp(rows[*n - 1].name, rows[i].name) != 0)
            rows[(*n)++].name = rows[i].name;
    return rows;
}

static struct row *row_of(struct row *rows, size_t n, const struct trace_task *task)
{
    return bsearch(&(struct row){.name = task->name}, rows, n, sizeof *rows, by_name);
}

static struct table *task_table(const struct trace *t, const struct trace_steps *s)
{
    static const struct column columns[] = {{"task", "name", CELL_TEXT, 32, 0},
                                            {"per step", "per_step", CELL_SHORT, 8, 0},
                                            {"median us", "median_us", CELL_FIXED, 10, 2},
                                            {"ms/step", "ms_per_step", CELL_FIXED, 9, 3},
                                            {"share", "share", CELL_SHARE, 6, 0},
                                            {"GFLOP/s", "gflops", CELL_RATE, 8, 2},
                                            {"GB/s", "gbytes_per_s", CELL_RATE, 8, 2}};
    struct table *table = new_table(columns, COUNT(columns));
    size_t n;
    struct row *rows = new_rows(t, &n);
    double busy_ns = 0, steps = (double)s->counted;
    for (size_t i = 0; i < t->n_records; i++) {
        const struct trace_record *r = &t->records[i];
        const struct trace_task *task = &t->tasks[r->task];
        if (!trace_counts(t, s, i))
            continue;
        struct row *row = row_of(rows, n, task);
        double ns = *APPEND(row->ns, row->n, row->cap) = (double)(r->end - r->start);
        row->total_ns += ns;
        row->flops += task->flops;
        row->bytes += (double)task->bytes;
        busy_ns += ns;
    }
    SORT(rows, n, longest_row);
    for (const struct row *r = rows; r < rows + n && r->n; r++)
        ROW(table, text_cell(r->name), number_cell((double)r->n / steps), number_cell(trace_median(r->ns, r->n) / 1e3),
            number_cell(r->total_ns / steps / 1e6), number_cell(ratio(r->total_ns, busy_ns)),
            number_cell(ratio(r->flops, r->total_ns)), number_cell(ratio(r->bytes, r->total_ns)));
    return table;
}

static void add_part(struct row *p, uint64_t from, uint64_t to)
{
    p->n += to > from;
    p->total_ns += to > from ? (double)(to - from) : 0;
}

/* What a hop waited for: the host, which had not queued it, or the device. */
static struct table *path_table(const struct trace *t, const struct trace_path *path)
{
    static const struct column columns[] = {{"critical path", "name", CELL_TEXT, 32, 0},
                                            {"hops", "hops", CELL_COUNT, 8, 0},
                                            {"ms", "ms", CELL_FIXED, 21, 3},
                                            {"share", "share", CELL_SHARE, 6, 0}};
    struct table *table = new_table(columns, COUNT(columns));
    size_t n;
    struct row *parts = new_rows(t, &n), *unqueued = &parts[n], *queued = unqueued + 1;
    *unqueued = (struct row){.name = "(not yet queued)"};
    *queued = (struct row){.name = "(queued, not started)"};
    for (size_t i = 0; i < path->n; i++) {
        const struct trace_hop *hop = &path->hops[i];
        const struct trace_record *r = &t->records[hop->record];
        uint64_t at = MIN(MAX(r->queued, hop->wait), hop->from);
        add_part(row_of(parts, n, &t->tasks[r->task]), hop->from, hop->to);
        add_part(unqueued, hop->wait, at);
        add_part(queued, at, hop->from);
    }
    SORT(parts, n + 2, longest_row);
    for (const struct row *p = parts; p < parts + n + 2 && p->n; p++)
        ROW(table, text_cell(p->name), number_cell((double)p->n), number_cell(p->total_ns / 1e6),
            number_cell(ratio(p->total_ns, (double)(path->end - path->start))));
    return table;
}

/* ---- text ------------------------------------------------------------------------------------------------------ */

static void print_head(const struct trace *t, const struct trace_steps *s, size_t n_approximate, double period_ns)
{
    printf("model    %s\n", t->header.model);
    printf("trace    %s%s, list %s", trace_kind_name(t), t->header.kind == TRACE_PACED ? " (modelled time)" : "",
           t->header.list[s->list]);
    for (uint32_t i = 0, n = 0; i < t->header.n_lists; i++)
        if (i != s->list)
            printf("%s%s", n++ ? ", " : "; --list shows ", t->header.list[i]);
    printf("\nrecords  %zu ended, %zu unfinished, %" PRIu64 " lost%s, %zu with approximate times\n", t->n_records,
           t->n_unfinished, t->n_lost, t->n_lost ? " (the ring was full)" : "", n_approximate);
    if (!s->counted) {
        printf("\nNo task of this list has ended yet.\n");
        return;
    }
    bool feeds = false;
    for (uint32_t i = 0; i < t->header.n_tasks; i++)
        feeds |= t->tasks[i].list == s->list && strcmp(t->header.role[t->tasks[i].role], "feed") == 0;
    printf("steps    %" PRIu32 " to %" PRIu32 ", measured %" PRIu32 " to %" PRIu32 "%s\n", s->steps[0].step,
           s->steps[s->n - 1].step, s->steps[s->first].step, s->steps[s->first + s->counted - 1].step,
           s->n == 1 ? " (the only one, warm-up included)" : "");
    printf("step     period %.3f ms: from one step's end to the next, the mean (median %.3f ms)\n", period_ns / 1e6,
           trace_period_ns(s) / 1e6);
    printf("         length %.3f ms: from its first task to its last%s\n", trace_length_ns(s) / 1e6,
           feeds ? "; the next batch is prepared a step early" : "");
    if (10 * n_approximate > t->n_records)
        printf(
            "\nThe driver tells few times: an approximate one runs from when a task was queued to when it was seen to\n"
            "have ended.  Tasks are shorter and lanes less busy than shown.\n");
}

/* Lanes that did nothing are left out, and of tasks and the path all but the longest. */
static void print_tables(const json_t *lanes, const struct table *tasks, const struct table *parts,
                         uint32_t critical_step)
{
    print_lane_use(stdout, "lane", lanes);
    print_top(stdout, tasks, TOP, 3);
    printf("\ncritical path of step %" PRIu32 ", whose period is the median", critical_step);
    print_top(stdout, parts, TOP, 2);
}

int trace_summary(char **files)
{
    const bool json = trace_options.json;
    const struct trace *t = trace_open_modelled(files[0]);
    struct trace_steps s = trace_steps_of(t, trace_list(t, files[0], trace_options.list));
    double period_ns = ratio((double)(s.end - s.start), (double)s.counted);
    size_t n_approximate = 0;
    json_t *lists = json_array();
    for (size_t i = 0; i < t->n_records; i++)
        n_approximate += t->records[i].flags & TRACE_APPROXIMATE;
    for (uint32_t i = 0; i < t->header.n_lists; i++)
        json_array_append_new(lists, json_string(t->header.list[i]));
    json_t *object = json_pack("{s:s, s:s, s:s, s:o, s:I, s:I, s:I, s:I}", "model", t->header.model, "kind",
                               trace_kind_name(t), "list", t->header.list[s.list], "lists", lists, "records",
                               (json_int_t)t->n_records, "unfinished", (json_int_t)t->n_unfinished, "lost",
                               (json_int_t)MIN(t->n_lost, INT64_MAX), "approximate", (json_int_t)n_approximate);
    if (!json)
        print_head(t, &s, n_approximate, period_ns);
    if (s.counted) {
        struct trace_path critical = trace_critical_path(t, &s, trace_median_step(&s));
        struct table *tasks = task_table(t, &s), *parts = path_table(t, &critical);
        json_t *lanes = trace_lanes_json(t, &s);
        if (!json)
            print_tables(lanes, tasks, parts, critical.step), print_beside(t, &s);
        json_t *path_json = json_pack("{s:I, s:f, s:o}", "step", (json_int_t)critical.step, "ms",
                                      (double)(critical.end - critical.start) / 1e6, "parts", table_json(parts));
        json_t *measured =
            json_pack("{s:I, s:I, s:f, s:f, s:f, s:o, s:o, s:o}", "first_step", (json_int_t)s.steps[s.first].step,
                      "steps", (json_int_t)s.counted, "step_ms", trace_length_ns(&s) / 1e6, "period_ms",
                      period_ns / 1e6, "median_period_ms", trace_period_ns(&s) / 1e6, "lanes", lanes, "tasks",
                      table_json(tasks), "critical_path", path_json);
        json_object_update_new(object, measured);
        json_object_set_new(object, "cpu_updates", table_json(trace_beside(t, &s, false)));
        json_object_set_new(object, "persists", table_json(trace_beside(t, &s, true)));
    }
    if (json)
        print_json(object);
    return EXIT_OK;
}
