/* trace_summary.c - yard trace summary: lanes, tasks and the critical path of a trace as tables or JSON. */
#include "trace_cmd.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Tasks of one name, over the counted steps. */
struct row {
    const char *name;
    size_t n;
    double median_ns, total_ns, flops, bytes;
};
/* Part of the critical path: the tasks of one name, or a way of waiting. */
struct part {
    const char *name;
    bool waiting;
    size_t n;
    double ns;
};
struct summary {
    const char *path;
    struct trace *trace;
    struct trace_steps steps;
    double window_ns; /* per step */
    struct trace_use *use;
    struct row *rows; /* longest total first */
    struct part *parts;
    size_t n_rows, n_parts, n_approximate;
    double busy_ns; /* of all rows */
    struct trace_path critical;
};

/* ---- tasks by name --------------------------------------------------------------------------------------------- */

struct named_task {
    const char *name;
    uint32_t task;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct named_task *)a)->name, ((const struct named_task *)b)->name);
}

/* For each task a number that it shares with the tasks of the same name; *n of them. */
static uint32_t *number_names(const struct trace *t, size_t *n)
{
    size_t n_tasks = t->header.n_tasks;
    struct named_task *order = allocate(n_tasks, sizeof *order);
    uint32_t *number = allocate(n_tasks, sizeof *number);
    for (uint32_t i = 0; i < n_tasks; i++)
        order[i] = (struct named_task){t->tasks[i].name, i};
    qsort(order, n_tasks, sizeof *order, by_name);
    *n = 0;
    for (size_t i = 0; i < n_tasks; i++) {
        *n += i == 0 || strcmp(order[i - 1].name, order[i].name) != 0;
        number[order[i].task] = (uint32_t)*n - 1;
    }
    free(order);
    return number;
}

struct sample {
    uint32_t name;
    uint32_t task;
    double ns;
};

static int by_name_and_time(const void *left, const void *right)
{
    const struct sample *a = left, *b = right;
    return a->name != b->name ? COMPARE(a->name, b->name) : COMPARE(a->ns, b->ns);
}

static int longest_row(const void *a, const void *b)
{
    return COMPARE(((const struct row *)b)->total_ns, ((const struct row *)a)->total_ns);
}

static struct sample *collect_samples(const struct summary *m, const uint32_t *number, size_t *n)
{
    const struct trace *t = m->trace;
    struct sample *samples = allocate(t->n_records, sizeof *samples);
    *n = 0;
    for (size_t i = 0; i < t->n_records; i++) {
        const struct trace_record *r = &t->records[i];
        if (trace_counts(t, &m->steps, i))
            samples[(*n)++] = (struct sample){number[r->task], r->task, (double)(r->end - r->start)};
    }
    qsort(samples, *n, sizeof *samples, by_name_and_time);
    return samples;
}

/* The row of samples[0..n), which are of one name and in order of time. */
static struct row make_row(const struct trace *t, const struct sample *samples, size_t n)
{
    struct row row = {.name = t->tasks[samples->task].name, .n = n};
    row.median_ns = (samples[(n - 1) / 2].ns + samples[n / 2].ns) / 2;
    for (size_t i = 0; i < n; i++) {
        row.total_ns += samples[i].ns;
        row.flops += t->tasks[samples[i].task].flops;
        row.bytes += (double)t->tasks[samples[i].task].bytes;
    }
    return row;
}

static void measure_tasks(struct summary *m, const uint32_t *number, size_t n_names)
{
    size_t n;
    struct sample *samples = collect_samples(m, number, &n);
    m->rows = allocate(n_names, sizeof *m->rows);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && samples[end].name == samples[i].name; end++)
            ;
        m->rows[m->n_rows++] = make_row(m->trace, &samples[i], end - i);
        m->busy_ns += m->rows[m->n_rows - 1].total_ns;
    }
    qsort(m->rows, m->n_rows, sizeof *m->rows, longest_row);
    free(samples);
}

/* ---- critical path by name ------------------------------------------------------------------------------------- */

static int longest_part(const void *a, const void *b)
{
    return COMPARE(((const struct part *)b)->ns, ((const struct part *)a)->ns);
}

static void add_part(struct part *p, const char *name, uint64_t from, uint64_t to)
{
    p->name = name;
    p->n += to > from;
    p->ns += to > from ? (double)(to - from) : 0;
}

static void measure_path(struct summary *m, const uint32_t *number, size_t n_names)
{
    const struct trace *t = m->trace;
    struct trace_index *index = trace_index(t);
    m->critical = trace_critical_path(t, &m->steps, index, trace_median_step(&m->steps));
    m->parts = allocate(n_names + 2, sizeof *m->parts);
    for (size_t i = 0; i < m->critical.n; i++) {
        const struct trace_hop *hop = &m->critical.hops[i];
        const struct trace_record *r = &t->records[hop->record];
        uint64_t queued = MIN(MAX(r->queued, hop->wait), hop->from);
        add_part(&m->parts[number[r->task]], t->tasks[r->task].name, hop->from, hop->to);
        add_part(&m->parts[n_names], "(not yet queued)", hop->wait, queued);
        add_part(&m->parts[n_names + 1], "(queued, not started)", queued, hop->from);
    }
    m->parts[n_names].waiting = m->parts[n_names + 1].waiting = true;
    qsort(m->parts, n_names + 2, sizeof *m->parts, longest_part);
    while (m->n_parts < n_names + 2 && m->parts[m->n_parts].ns > 0)
        m->n_parts++;
    trace_index_free(index);
}

static struct summary summarise(const char *path, const char *list)
{
    struct summary m = {.path = path, .trace = trace_open_modelled(path)};
    const struct trace *t = m.trace;
    m.steps = trace_steps_of(t, trace_list(t, path, list));
    m.use = allocate(t->header.n_lanes, sizeof *m.use);
    if (m.steps.counted) {
        size_t n_names;
        uint32_t *number = number_names(t, &n_names);
        m.window_ns = (double)(m.steps.end - m.steps.start) / (double)m.steps.counted;
        trace_lane_use(t, &m.steps, m.use);
        measure_tasks(&m, number, n_names);
        measure_path(&m, number, n_names);
        free(number);
    }
    for (size_t i = 0; i < t->n_records; i++)
        m.n_approximate += t->records[i].flags & TRACE_APPROXIMATE;
    return m;
}

static void free_summary(struct summary *m)
{
    trace_steps_free(&m->steps);
    trace_free(m->trace);
    free(m->use);
    free(m->rows);
    free(m->parts);
    free(m->critical.hops);
}

/* ---- numbers that both outputs show ---------------------------------------------------------------------------- */

static double ratio(double a, double b) { return b > 0 ? a / b : 0; }
static double per_step(const struct summary *m, double x) { return ratio(x, (double)m->steps.counted); }
static double path_ns(const struct summary *m) { return (double)(m->critical.end - m->critical.start); }
static double idle_ns(const struct summary *m, size_t lane)
{
    return MAX(m->window_ns - per_step(m, m->use[lane].busy_ns), 0);
}
static const char *list_name(const struct summary *m)
{
    return m->steps.list < m->trace->header.n_lists ? m->trace->header.list[m->steps.list] : "";
}

/* ---- tables ---------------------------------------------------------------------------------------------------- */

static void print_heading(const char *text)
{
    const char *no_color = getenv("NO_COLOR");
    bool bold = isatty(STDOUT_FILENO) && !(no_color && *no_color);
    printf(bold ? "\n\033[1m%s\033[0m\n" : "\n%s\n", text);
}

static void print_other_lists(const struct summary *m)
{
    const struct trace_header *h = &m->trace->header;
    for (uint32_t i = 0, n = 0; i < h->n_lists; i++)
        if (i != m->steps.list)
            printf("%s%s", n++ ? ", " : "; --list shows ", h->list[i]);
}

static void print_head(const struct summary *m)
{
    const struct trace *t = m->trace;
    const struct trace_steps *s = &m->steps;
    printf("model    %s\n", t->header.model);
    printf("trace    %s%s, list %s", trace_kind_name(t), t->header.kind == TRACE_PACED ? " (modelled time)" : "",
           list_name(m));
    print_other_lists(m);
    printf("\nrecords  %zu ended, %zu unfinished, %" PRIu64 " lost%s, %zu with approximate times\n", t->n_records,
           t->n_unfinished, t->n_lost, t->n_lost ? " (the ring was full)" : "", m->n_approximate);
    if (!s->counted) {
        printf("\nNo task of this list has ended yet.\n");
        return;
    }
    printf("steps    %" PRIu32 " to %" PRIu32 ", measured %" PRIu32 " to %" PRIu32 "%s\n", s->steps[0].step,
           s->steps[s->n - 1].step, s->steps[s->first].step, s->steps[s->first + s->counted - 1].step,
           s->n == 1 ? " (the only one, warm-up included)" : "");
    printf("step     period %.3f ms: from one step's end to the next (median)\n", trace_period_ns(s) / 1e6);
    printf("         length %.3f ms: from its first task to its last; the next batch is prepared a step early\n",
           trace_length_ns(s) / 1e6);
}

static void print_lanes(const struct summary *m)
{
    print_heading("lane                   busy ms/step  idle ms/step    busy  overlap   (in time: no gain is implied)");
    for (size_t i = 0; i < m->trace->header.n_lanes; i++) {
        const struct trace_lane *l = &m->trace->lanes[i];
        const struct trace_use *u = &m->use[i];
        double busy = per_step(m, u->busy_ns);
        if (busy > 0)
            printf("%-21.21s %13.3f %13.3f %6.1f%% %7.1f%%\n", l->name, busy / 1e6, idle_ns(m, i) / 1e6,
                   100 * ratio(busy, m->window_ns), 100 * ratio(u->overlapped_ns, u->busy_ns));
    }
}

/* "-" where there is no such work. */
static void print_rate(double amount, double ns)
{
    if (amount > 0 && ns > 0)
        printf(" %9.2f", amount / ns);
    else
        printf(" %9s", "-");
}

static void print_row(const struct summary *m, const struct row *r)
{
    printf("%-32.32s %9.4g %11.2f %10.3f %6.1f%%", r->name, per_step(m, (double)r->n), r->median_ns / 1e3,
           per_step(m, r->total_ns) / 1e6, 100 * ratio(r->total_ns, m->busy_ns));
    print_rate(r->flops, r->total_ns);
    print_rate(r->bytes, r->total_ns);
    printf("\n");
}

static void print_tasks(const struct summary *m, size_t top)
{
    double rest = 0;
    print_heading("task                              per step   median us    ms/step   share   GFLOP/s      GB/s");
    for (size_t i = 0; i < m->n_rows; i++)
        if (i < top)
            print_row(m, &m->rows[i]);
        else
            rest += per_step(m, m->rows[i].total_ns) / 1e6;
    if (m->n_rows > top)
        printf("%zu more kinds, %.3f ms/step in all: --top %zu shows them\n", m->n_rows - top, rest, m->n_rows);
}

static void print_part(const struct summary *m, const struct part *p)
{
    printf("%-32.32s %9zu %22.3f %6.1f%%\n", p->name, p->n, p->ns / 1e6, 100 * ratio(p->ns, path_ns(m)));
}

/* The longest parts, all waiting, and the rest in one line. */
static void print_path(const struct summary *m)
{
    enum { TOP = 12 };
    char *title = format_string("critical path of step %" PRIu32, m->critical.step);
    char *heading = format_string("%-32s %9s %22s %7s", title, "hops", "ms", "share");
    struct part rest = {.name = "others"};
    print_heading(heading);
    for (size_t i = 0; i < m->n_parts; i++) {
        const struct part *p = &m->parts[i];
        if (i < TOP || p->waiting) {
            print_part(m, p);
        } else {
            rest.n += p->n;
            rest.ns += p->ns;
        }
    }
    if (rest.n)
        print_part(m, &rest);
    free(heading);
    free(title);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

static json_t *json_lanes(const struct summary *m)
{
    json_t *array = json_array();
    for (size_t i = 0; i < m->trace->header.n_lanes; i++) {
        const struct trace_lane *l = &m->trace->lanes[i];
        const struct trace_use *u = &m->use[i];
        double busy = per_step(m, u->busy_ns);
        json_array_append_new(array,
                              json_pack("{s:s, s:s, s:f, s:f, s:f, s:f}", "name", l->name, "device", l->device,
                                        "busy_ms", busy / 1e6, "idle_ms", idle_ns(m, i) / 1e6, "busy",
                                        ratio(busy, m->window_ns), "overlap", ratio(u->overlapped_ns, u->busy_ns)));
    }
    return array;
}

static json_t *json_tasks(const struct summary *m)
{
    json_t *array = json_array();
    for (size_t i = 0; i < m->n_rows; i++) {
        const struct row *r = &m->rows[i];
        json_array_append_new(array, json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f}", "name", r->name, "per_step",
                                               per_step(m, (double)r->n), "median_us", r->median_ns / 1e3,
                                               "ms_per_step", per_step(m, r->total_ns) / 1e6, "share",
                                               ratio(r->total_ns, m->busy_ns), "gflops", ratio(r->flops, r->total_ns),
                                               "gbytes_per_s", ratio(r->bytes, r->total_ns)));
    }
    return array;
}

static json_t *json_path(const struct summary *m)
{
    json_t *array = json_array();
    for (size_t i = 0; i < m->n_parts; i++) {
        const struct part *p = &m->parts[i];
        json_array_append_new(array, json_pack("{s:s, s:I, s:f, s:f}", "name", p->name, "hops", (json_int_t)p->n, "ms",
                                               p->ns / 1e6, "share", ratio(p->ns, path_ns(m))));
    }
    return json_pack("{s:I, s:f, s:o}", "step", (json_int_t)m->critical.step, "ms", path_ns(m) / 1e6, "parts", array);
}

static json_t *json_summary(const struct summary *m)
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
    json_t *measured =
        json_pack("{s:I, s:I, s:f, s:f}", "first_step", (json_int_t)s->steps[s->first].step, "steps",
                  (json_int_t)s->counted, "step_ms", trace_length_ns(s) / 1e6, "period_ms", trace_period_ns(s) / 1e6);
    json_object_update_new(object, measured);
    json_object_set_new(object, "lanes", json_lanes(m));
    json_object_set_new(object, "tasks", json_tasks(m));
    json_object_set_new(object, "critical_path", json_path(m));
    return object;
}

void trace_summary(const char *path, const char *list, size_t top, bool json)
{
    struct summary m = summarise(path, list);
    if (json) {
        json_t *object = json_summary(&m);
        json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
        printf("\n");
        json_decref(object);
    } else {
        print_head(&m);
        if (m.steps.counted) {
            print_lanes(&m);
            print_tasks(&m, top);
            print_path(&m);
        }
    }
    free_summary(&m);
}
