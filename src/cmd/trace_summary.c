/* trace_summary.c - yard trace summary: lanes, tasks and the critical path of a trace as tables or JSON. */
#include "../base/table.h"
#include "../trace/trace.h"
#include "cmd.h"

#include <inttypes.h>
#include <math.h>

/* Tasks of one name, over the counted steps or on the critical path; or there a way of waiting. */
struct row {
    const char *name;
    bool waiting;
    double *ns; /* of each: not of the path */
    size_t n, cap;
    double median_ns, total_ns, flops, bytes;
};
struct summary {
    const char *path;
    struct trace *trace;
    struct trace_steps steps;
    double period_ns; /* mean, over the window of the lanes */
    struct trace_use *use;
    struct row *rows, *parts; /* of all; of the critical path.  Longest total first */
    size_t n_rows, n_parts, n_approximate;
    double busy_ns; /* of all rows */
    struct trace_path critical;
};

/* ---- tasks by name --------------------------------------------------------------------------------------------- */

ORDER(by_name, struct row, strcmp(a->name, b->name))

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

/* Names of which nothing counts come last. */
ORDER(longest_row, struct row, BY(b->total_ns, a->total_ns, COMPARE(b->n, a->n)))

static void add_to_row(struct row *row, const struct trace_task *task, double ns)
{
    *APPEND(row->ns, row->n, row->cap) = ns;
    row->total_ns += ns;
    row->flops += task->flops;
    row->bytes += (double)task->bytes;
}

static void measure_tasks(struct summary *m)
{
    size_t n_names;
    const struct trace *t = m->trace;
    m->rows = new_rows(t, &n_names);
    for (size_t i = 0; i < t->n_records; i++) {
        const struct trace_record *r = &t->records[i];
        const struct trace_task *task = &t->tasks[r->task];
        if (trace_counts(t, &m->steps, i))
            add_to_row(row_of(m->rows, n_names, task), task, (double)(r->end - r->start));
    }
    SORT(m->rows, n_names, longest_row);
    while (m->n_rows < n_names && m->rows[m->n_rows].n > 0)
        m->busy_ns += m->rows[m->n_rows++].total_ns;
    for (size_t i = 0; i < m->n_rows; i++)
        m->rows[i].median_ns = trace_median(m->rows[i].ns, m->rows[i].n);
}

/* ---- critical path by name ------------------------------------------------------------------------------------- */

static void add_part(struct row *p, uint64_t from, uint64_t to)
{
    p->n += to > from;
    p->total_ns += to > from ? (double)(to - from) : 0;
}

static void measure_path(struct summary *m)
{
    size_t n_names;
    const struct trace *t = m->trace;
    m->critical = trace_critical_path(t, &m->steps, trace_median_step(&m->steps));
    m->parts = new_rows(t, &n_names);
    struct row *unqueued = &m->parts[n_names], *queued = unqueued + 1;
    *unqueued = (struct row){.name = "(not yet queued)", .waiting = true};
    *queued = (struct row){.name = "(queued, not started)", .waiting = true};
    for (size_t i = 0; i < m->critical.n; i++) {
        const struct trace_hop *hop = &m->critical.hops[i];
        const struct trace_record *r = &t->records[hop->record];
        uint64_t at = MIN(MAX(r->queued, hop->wait), hop->from);
        add_part(row_of(m->parts, n_names, &t->tasks[r->task]), hop->from, hop->to);
        add_part(unqueued, hop->wait, at);
        add_part(queued, at, hop->from);
    }
    SORT(m->parts, n_names + 2, longest_row);
    while (m->n_parts < n_names + 2 && m->parts[m->n_parts].n > 0)
        m->n_parts++;
}

static struct summary summarise(const char *path, const char *list)
{
    struct summary m = {.path = path, .trace = trace_open_modelled(path)};
    const struct trace *t = m.trace;
    m.steps = trace_steps_of(t, trace_list(t, path, list));
    m.use = allocate(t->header.n_lanes, sizeof *m.use);
    if (m.steps.counted) {
        m.period_ns = (double)(m.steps.end - m.steps.start) / (double)m.steps.counted;
        trace_lane_use(t, &m.steps, m.use);
        measure_tasks(&m);
        measure_path(&m);
    }
    for (size_t i = 0; i < t->n_records; i++)
        m.n_approximate += t->records[i].flags & TRACE_APPROXIMATE;
    return m;
}

static void free_summary(struct summary *m)
{
    trace_free(m->trace);
    free(m->use);
    for (size_t i = 0; i < m->n_rows; i++)
        free(m->rows[i].ns);
    free(m->rows);
    free(m->parts);
    free(m->critical.hops);
}

/* ---- numbers that both outputs show ---------------------------------------------------------------------------- */

static double ratio(double a, double b) { return b > 0 ? a / b : 0; }
static double per_step(const struct summary *m, double x) { return ratio(x, (double)m->steps.counted); }
static double path_ns(const struct summary *m) { return (double)(m->critical.end - m->critical.start); }
static const char *list_name(const struct summary *m)
{
    return m->steps.list < m->trace->header.n_lists ? m->trace->header.list[m->steps.list] : "";
}

/* ---- tables ---------------------------------------------------------------------------------------------------- */

static struct table *lane_table(const struct summary *m)
{
    static const struct column columns[] = {{"lane", "name", CELL_TEXT, 21, 0},
                                            {NULL, "device", CELL_TEXT, 0, 0},
                                            {"busy ms/step", "busy_ms", CELL_FIXED, 12, 3},
                                            {"idle ms/step", "idle_ms", CELL_FIXED, 12, 3},
                                            {"busy", "busy", CELL_SHARE, 6, 0},
                                            {"overlap (in time: no gain is implied)", "overlap", CELL_SHARE, 7, 0}};
    struct table *t = new_table(columns, COUNT(columns));
    for (size_t i = 0; i < m->trace->header.n_lanes; i++) {
        const struct trace_lane *l = &m->trace->lanes[i];
        const struct trace_use *u = &m->use[i];
        double busy = per_step(m, u->busy_ns);
        ROW(t, text_cell(l->name), text_cell(m->trace->devices[l->device_index].name), number_cell(busy / 1e6),
            number_cell(MAX(m->period_ns - busy, 0) / 1e6), number_cell(ratio(busy, m->period_ns)),
            number_cell(ratio(u->overlapped_ns, u->busy_ns)));
    }
    return t;
}

static struct table *task_table(const struct summary *m)
{
    static const struct column columns[] = {{"task", "name", CELL_TEXT, 32, 0},
                                            {"per step", "per_step", CELL_SHORT, 8, 0},
                                            {"median us", "median_us", CELL_FIXED, 10, 2},
                                            {"ms/step", "ms_per_step", CELL_FIXED, 9, 3},
                                            {"share", "share", CELL_SHARE, 6, 0},
                                            {"GFLOP/s", "gflops", CELL_RATE, 8, 2},
                                            {"GB/s", "gbytes_per_s", CELL_RATE, 8, 2}};
    struct table *t = new_table(columns, COUNT(columns));
    for (size_t i = 0; i < m->n_rows; i++) {
        const struct row *r = &m->rows[i];
        ROW(t, text_cell(r->name), number_cell(per_step(m, (double)r->n)), number_cell(r->median_ns / 1e3),
            number_cell(per_step(m, r->total_ns) / 1e6), number_cell(ratio(r->total_ns, m->busy_ns)),
            number_cell(ratio(r->flops, r->total_ns)), number_cell(ratio(r->bytes, r->total_ns)));
    }
    return t;
}

static struct table *path_table(const struct summary *m)
{
    static const struct column columns[] = {{"critical path", "name", CELL_TEXT, 32, 0},
                                            {"hops", "hops", CELL_COUNT, 8, 0},
                                            {"ms", "ms", CELL_FIXED, 21, 3},
                                            {"share", "share", CELL_SHARE, 6, 0}};
    struct table *t = new_table(columns, COUNT(columns));
    for (size_t i = 0; i < m->n_parts; i++) {
        const struct row *p = &m->parts[i];
        ROW(t, text_cell(p->name), number_cell((double)p->n), number_cell(p->total_ns / 1e6),
            number_cell(ratio(p->total_ns, path_ns(m))));
    }
    return t;
}

/* ---- broadcasts: how fast new parameters travelled -------------------------------------------------------------- */

/* Lanes of one kind of one device: its queues.  The speed is that of its bytes of a step, from the first one's start to
 * the last one's end; the share is of what the link carries, where the trace knows that. */
struct port {
    uint64_t lanes; /* bit set: the first 64 */
    size_t copies;
    double bytes, link;     /* link: bytes per second, 0: not known */
    uint64_t *first, *last; /* by counted step */
};

static void add_copy_to(struct port *p, const struct trace *t, const struct trace_steps *s,
                        const struct trace_record *r)
{
    const struct trace_task *task = &t->tasks[r->task];
    size_t i = 0;
    while (s->steps[s->first + i].step != r->step)
        i++;
    if (!p->first) {
        p->first = allocate(s->counted, sizeof *p->first);
        p->last = allocate(s->counted, sizeof *p->last);
    }
    p->first[i] = p->last[i] ? MIN(p->first[i], r->start) : r->start;
    p->last[i] = MAX(p->last[i], r->end);
    p->lanes |= (uint64_t)1 << task->lane % 64;
    p->copies++;
    p->bytes += (double)task->bytes / 2; /* read and written */
    p->link = t->lanes[task->lane].kind == LANE_COMPUTE ? 0 : t->lanes[task->lane].bytes_per_s;
}

static struct table *port_table(const struct trace *t, const struct trace_steps *s)
{
    static const struct column columns[] = {
        {"broadcast", "device", CELL_TEXT, 23, 0}, {"lanes", "kind", CELL_TEXT, 9, 0},
        {"queues", "queues", CELL_COUNT, 6, 0},    {"copies/step", "copies", CELL_SHORT, 11, 0},
        {"MB/step", "mbytes", CELL_FIXED, 9, 3},   {"ms/step", "ms", CELL_FIXED, 9, 3},
        {"GB/s", "gbytes_per_s", CELL_RATE, 8, 2}, {"of the link", "of_link", CELL_SHARE, 11, 0}};
    static const char *const kinds[] = {"compute", "upload", "download"};
    struct table *table = new_table(columns, COUNT(columns));
    struct port *ports = allocate(t->header.n_devices * COUNT(kinds), sizeof *ports);
    for (size_t i = 0; i < t->n_records; i++) {
        const struct trace_task *task = &t->tasks[t->records[i].task];
        const struct trace_lane *l = &t->lanes[task->lane];
        if (l->kind < COUNT(kinds) && strcmp(t->header.role[task->role], "broadcast") == 0 && trace_counts(t, s, i))
            add_copy_to(&ports[l->device_index * COUNT(kinds) + l->kind], t, s, &t->records[i]);
    }
    for (size_t i = 0; i < t->header.n_devices * COUNT(kinds); i++) {
        const struct port *p = &ports[i];
        double ns = 0, n = (double)s->counted;
        for (size_t k = 0; k < s->counted && p->copies; k++)
            ns += (double)(p->last[k] - p->first[k]);
        if (p->copies)
            ROW(table, text_cell(t->devices[i / COUNT(kinds)].id), text_cell(kinds[i % COUNT(kinds)]),
                number_cell(__builtin_popcountll(p->lanes)), number_cell((double)p->copies / n),
                number_cell(p->bytes / n / 1e6), number_cell(ns / n / 1e6), number_cell(p->bytes / ns),
                number_cell(p->link > 0 ? 1e9 * p->bytes / ns / p->link : NAN));
        free(p->first), free(p->last);
    }
    free(ports);
    return table;
}

/* ---- text ------------------------------------------------------------------------------------------------------ */

static void print_head(const struct summary *m)
{
    const struct trace *t = m->trace;
    const struct trace_steps *s = &m->steps;
    printf("model    %s\n", t->header.model);
    printf("trace    %s%s, list %s", trace_kind_name(t), t->header.kind == TRACE_PACED ? " (modelled time)" : "",
           list_name(m));
    for (uint32_t i = 0, n = 0; i < t->header.n_lists; i++)
        if (i != s->list)
            printf("%s%s", n++ ? ", " : "; --list shows ", t->header.list[i]);
    printf("\nrecords  %zu ended, %zu unfinished, %" PRIu64 " lost%s, %zu with approximate times\n", t->n_records,
           t->n_unfinished, t->n_lost, t->n_lost ? " (the ring was full)" : "", m->n_approximate);
    if (!s->counted) {
        printf("\nNo task of this list has ended yet.\n");
        return;
    }
    printf("steps    %" PRIu32 " to %" PRIu32 ", measured %" PRIu32 " to %" PRIu32 "%s\n", s->steps[0].step,
           s->steps[s->n - 1].step, s->steps[s->first].step, s->steps[s->first + s->counted - 1].step,
           s->n == 1 ? " (the only one, warm-up included)" : "");
    printf("step     period %.3f ms: from one step's end to the next, the mean (median %.3f ms)\n", m->period_ns / 1e6,
           trace_period_ns(s) / 1e6);
    printf("         length %.3f ms: from its first task to its last; the next batch is prepared a step early\n",
           trace_length_ns(s) / 1e6);
    if (10 * m->n_approximate > t->n_records)
        printf(
            "\nThe driver tells few times: an approximate one runs from when a task was queued to when it was seen to\n"
            "have ended.  Tasks are shorter and lanes less busy than shown.\n");
}

/* Lanes that did nothing are left out. */
static void print_lanes(const struct summary *m, const struct table *t)
{
    print_heading(stdout, t);
    for (size_t i = 0; i < t->n; i++)
        if (m->use[i].busy_ns > 0)
            print_rows(stdout, t, i, i + 1);
}

static void print_tasks(const struct summary *m, const struct table *t)
{
    enum { TOP = 12 };
    double rest = 0;
    print_heading(stdout, t);
    print_rows(stdout, t, 0, TOP);
    for (size_t i = TOP; i < m->n_rows; i++)
        rest += per_step(m, m->rows[i].total_ns) / 1e6;
    if (m->n_rows > TOP)
        printf("%zu more kinds, %.3f ms/step in all: --json shows them\n", m->n_rows - TOP, rest);
}

/* The longest parts and all waiting. */
static void print_path(const struct summary *m, const struct table *t)
{
    enum { TOP = 12 };
    size_t others = 0;
    double ns = 0;
    printf("\ncritical path of step %" PRIu32 ", whose period is the median", m->critical.step);
    print_heading(stdout, t);
    for (size_t i = 0; i < t->n; i++)
        if (i < TOP || m->parts[i].waiting)
            print_rows(stdout, t, i, i + 1);
        else
            others += m->parts[i].n, ns += m->parts[i].total_ns;
    if (others)
        printf("%zu hops of other tasks, %.3f ms\n", others, ns / 1e6);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

static json_t *json_summary(const struct summary *m, const struct table *lanes, const struct table *tasks,
                            const struct table *path, const struct table *ports)
{
    const struct trace *t = m->trace;
    const struct trace_steps *s = &m->steps;
    json_t *lists = json_array();
    for (uint32_t i = 0; i < t->header.n_lists; i++)
        json_array_append_new(lists, json_string(t->header.list[i]));
    json_t *object = json_pack("{s:s, s:s, s:s, s:o, s:I, s:I, s:I, s:I}", "model", t->header.model, "kind",
                               trace_kind_name(t), "list", list_name(m), "lists", lists, "records",
                               (json_int_t)t->n_records, "unfinished", (json_int_t)t->n_unfinished, "lost",
                               (json_int_t)MIN(t->n_lost, INT64_MAX), "approximate", (json_int_t)m->n_approximate);
    if (!s->counted)
        return object;
    json_t *measured = json_pack("{s:I, s:I, s:f, s:f, s:f}", "first_step", (json_int_t)s->steps[s->first].step,
                                 "steps", (json_int_t)s->counted, "step_ms", trace_length_ns(s) / 1e6, "period_ms",
                                 m->period_ns / 1e6, "median_period_ms", trace_period_ns(s) / 1e6);
    json_object_update_new(object, measured);
    json_object_set_new(object, "lanes", table_json(lanes));
    json_object_set_new(object, "tasks", table_json(tasks));
    json_object_set_new(object, "broadcast", table_json(ports));
    json_object_set_new(object, "critical_path",
                        json_pack("{s:I, s:f, s:o}", "step", (json_int_t)m->critical.step, "ms", path_ns(m) / 1e6,
                                  "parts", table_json(path)));
    return object;
}

void trace_summary(const char *path, const char *list, bool json)
{
    struct summary m = summarise(path, list);
    struct table *lanes = lane_table(&m), *tasks = task_table(&m), *parts = path_table(&m);
    struct table *ports = port_table(m.trace, &m.steps);
    if (json)
        print_json(json_summary(&m, lanes, tasks, parts, ports));
    else
        print_head(&m);
    if (!json && m.steps.counted) {
        print_lanes(&m, lanes);
        print_tasks(&m, tasks);
        if (ports->n)
            print_table(stdout, ports);
        print_path(&m, parts);
    }
    free_table(lanes), free_table(tasks), free_table(parts), free_table(ports);
    free_summary(&m);
}
