/* trace_summary.c - yard trace summary: lanes, tasks and the critical path of a trace as tables or JSON. */
#include "command.h"
#include "planning/console/numbers.h"
#include "planning/console/table.h"
#include "stats.h"
#include "trainer/cmd/cmd.h"

#include <inttypes.h>

static double ratio(double amount, double per) { return per > 0 ? amount / per : 0; }

static int by_name(const void *left, const void *right)
{
    const struct trace_task *a = *(struct trace_task *const *)left;
    const struct trace_task *b = *(struct trace_task *const *)right;
    return strcmp(a->name, b->name);
}

/* Sums over the instances of all tasks of one name, in the counted steps. */
struct task_sums {
    double ns, flops, bytes;
};

/* Adds the counted instances of a task to the sums, and stores the time of each in ns[n ..].  Returns the new n. */
static size_t add_runs(const struct trace *trace, const struct trace_steps *steps, const struct trace_task *task,
                       struct task_sums *sums, double *ns, size_t n)
{
    const struct runs *runs = &trace->runs[task - trace->tasks];
    for (size_t i = 0; i < runs->n; i++) {
        const struct trace_record *record = &trace->records[runs->record[i]];
        if (!is_counted(trace, steps, runs->record[i]))
            continue;
        ns[n] = (double)(record->end - record->start);
        sums->ns += ns[n];
        sums->flops += task->flops;
        sums->bytes += (double)task->bytes;
        n++;
    }
    return n;
}

enum { MS = 3, SHARE = 4, COLUMNS = 7 }; /* the columns of the table of tasks */

/* Adds a row for each name that tasks have.  Its SHARE is in nanoseconds until task_table() divides it by the sum over
 * all rows, which is returned. */
static double add_names(struct table *table, const struct trace *trace, const struct trace_steps *steps)
{
    size_t n_tasks = trace->header.n_tasks;
    double n_steps = (double)steps->counted;
    const struct trace_task **tasks = allocate(n_tasks, sizeof *tasks);
    double *ns = allocate(trace->n_records, sizeof *ns);
    double busy = 0;
    for (size_t i = 0; i < n_tasks; i++)
        tasks[i] = &trace->tasks[i];
    SORT(tasks, n_tasks, by_name);
    size_t i = 0;
    while (i < n_tasks) {
        const char *name = tasks[i]->name;
        struct task_sums sums = {0, 0, 0};
        size_t n = 0;
        for (; i < n_tasks && strcmp(tasks[i]->name, name) == 0; i++)
            n = add_runs(trace, steps, tasks[i], &sums, ns, n);
        busy += sums.ns;
        if (n > 0)
            ROW(table, text_cell(name), number_cell((double)n / n_steps), number_cell(median(ns, n) / 1e3),
                number_cell(sums.ns / n_steps / 1e6), number_cell(sums.ns), number_cell(ratio(sums.flops, sums.ns)),
                number_cell(ratio(sums.bytes, sums.ns)));
    }
    free(tasks);
    free(ns);
    return busy;
}

/* A row for all tasks of one name. */
static struct table *task_table(const struct trace *trace, const struct trace_steps *steps)
{
    static const struct column columns[COLUMNS] = {{"task", "name", CELL_TEXT, 32, 0},
                                                   {"per step", "per_step", CELL_SHORT, 8, 0},
                                                   {"median us", "median_us", CELL_FIXED, 10, 2},
                                                   {"ms/step", "ms_per_step", CELL_FIXED, 9, 3},
                                                   {"share", "share", CELL_SHARE, 6, 0},
                                                   {"GFLOP/s", "gflops", CELL_RATE, 8, 2},
                                                   {"GB/s", "gbytes_per_s", CELL_RATE, 8, 2}};
    struct table *table = new_table(columns, COLUMNS);
    double busy = add_names(table, trace, steps);
    for (size_t row = 0; row < table->n; row++) {
        struct cell *share = &table->cells[row * COLUMNS + SHARE];
        share->number = ratio(share->number, busy);
    }
    sort_table(table, SHARE);
    return table;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* How many records have this flag. */
static size_t count_flag(const struct trace *trace, uint32_t flag)
{
    size_t n = 0;
    for (size_t i = 0; i < trace->n_records; i++)
        if (trace->records[i].flags & flag)
            n++;
    return n;
}

/* Has the list a task that fetches batches? */
static bool has_feed(const struct trace *trace, uint32_t list)
{
    for (uint32_t i = 0; i < trace->header.n_tasks; i++)
        if (trace->tasks[i].list == list && has_role(trace, &trace->tasks[i], "feed"))
            return true;
    return false;
}

static void print_steps(const struct trace *trace, const struct trace_steps *steps, double period_ns)
{
    const struct trace_step *first = &steps->items[steps->first];
    const struct trace_step *last = first + steps->counted - 1;
    printf("steps    %" PRIu32 " to %" PRIu32 ", measured %" PRIu32 " to %" PRIu32 "%s\n", steps->items[0].step,
           steps->items[steps->n - 1].step, first->step, last->step,
           steps->n == 1 ? " (the only one, warm-up included)" : "");
    print_line(stdout, "step     period %.3f ms: from one step's end to the next, the mean (median %.3f ms)",
               period_ns / 1e6, median_period_ns(steps) / 1e6);
    print_line(stdout, "         length %.3f ms: from its first task to its last%s", median_length_ns(steps) / 1e6,
               has_feed(trace, steps->list) ? "; the next batch is prepared a step early" : "");
}

static void print_head(const struct trace *trace, const struct trace_steps *steps, double period_ns,
                       size_t n_approximate, size_t n_back)
{
    const char *joint = "; --list shows ";
    print_line(stdout, "model    %s", trace->header.model);
    printf("trace    %s%s, list %s", name_of_trace_kind(trace),
           trace->header.kind == TRACE_PACED ? " (modelled time)" : "", trace->header.list[steps->list]);
    for (uint32_t i = 0; i < trace->header.n_lists; i++) {
        if (i == steps->list)
            continue;
        printf("%s%s", joint, trace->header.list[i]);
        joint = ", ";
    }
    printf("\nrecords  %zu ended, %zu unfinished, %" PRIu64 " lost%s, %zu with approximate times\n", trace->n_records,
           trace->n_unfinished, trace->n_lost, trace->n_lost ? " (the ring was full)" : "", n_approximate);
    if (n_back)
        printf("         %zu of these began, by the driver's clock, before the end of the task before them on their "
               "lane,\n"
               "         because that clock steps back: they are shown from that end on\n",
               n_back);
    if (!steps->counted) {
        printf("\nNo task of this list has ended yet.\n");
        return;
    }
    print_steps(trace, steps, period_ns);
    bool tells_few = 10 * (n_approximate - n_back) > trace->n_records; /* more than a tenth of the times are missing */
    if (tells_few)
        printf(
            "\nThe driver tells few times: an approximate one runs from when a task was queued to when it was seen to\n"
            "have ended.  Tasks are shorter and lanes less busy than shown.\n");
}

static json_t *lists_json(const struct trace *trace)
{
    json_t *lists = json_array();
    for (uint32_t i = 0; i < trace->header.n_lists; i++)
        json_array_append_new(lists, text_json(trace->header.list[i]));
    return lists;
}

/* What print_head() prints, as data. */
static json_t *head_json(const struct trace *trace, const struct trace_steps *steps, size_t n_approximate,
                         size_t n_back)
{
    json_t *head = json_object();
    set_json_text(head, "model", trace->header.model);
    set_json_text(head, "kind", name_of_trace_kind(trace));
    set_json_text(head, "list", trace->header.list[steps->list]);
    json_object_set_new(head, "lists", lists_json(trace));
    set_json_integer(head, "records", (json_int_t)trace->n_records);
    set_json_integer(head, "unfinished", (json_int_t)trace->n_unfinished);
    set_json_integer(head, "lost", (json_int_t)MIN(trace->n_lost, INT64_MAX));
    set_json_integer(head, "approximate", (json_int_t)n_approximate);
    set_json_integer(head, "stepped_back", (json_int_t)n_back);
    return head;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

/* What is shown of the counted steps. */
struct tables {
    struct trace_path critical; /* the critical path of the step whose period is the median */
    struct table *tasks;
    struct table *parts;   /* the parts of that path */
    struct table *beside;  /* what updates on the CPU ran beside */
    struct lane_use *uses; /* [n_lanes] */
};

static struct tables make_tables(const struct trace *trace, const struct trace_steps *steps)
{
    struct tables tables = {.critical = find_critical_path(trace, steps, find_median_step(steps)),
                            .tasks = task_table(trace, steps),
                            .beside = new_beside_table(trace, steps),
                            .uses = new_lane_uses(trace, steps)};
    tables.parts = new_path_table(trace, &tables.critical, "critical path");
    return tables;
}

static void free_tables(struct tables *tables)
{
    free(tables->uses);
    free_table(tables->beside);
    free_table(tables->parts);
    free_table(tables->tasks);
    free(tables->critical.hops);
}

/* Of the tasks and of the path's parts it prints the longest. */
static void print_tables(const struct trace *trace, const struct trace_steps *steps)
{
    struct tables tables = make_tables(trace, steps);
    print_lane_uses(stdout, "lane", tables.uses, trace->header.n_lanes);
    print_top(stdout, tables.tasks, MS);
    printf("\ncritical path of step %" PRIu32 ", whose period is the median", tables.critical.step);
    print_top(stdout, tables.parts, PATH_MS);
    print_beside(tables.beside);
    free_tables(&tables);
}

static json_t *tables_json(const struct trace *trace, const struct trace_steps *steps, double period_ns)
{
    struct tables tables = make_tables(trace, steps);
    double critical_ns = (double)(tables.critical.end - tables.critical.start);
    json_t *critical = json_object();
    set_json_integer(critical, "step", (json_int_t)tables.critical.step);
    json_object_set_new(critical, "ms", json_real(critical_ns / 1e6));
    json_object_set_new(critical, "parts", table_json(tables.parts));
    json_t *measured = json_object();
    set_json_integer(measured, "first_step", (json_int_t)steps->items[steps->first].step);
    set_json_integer(measured, "steps", (json_int_t)steps->counted);
    json_object_set_new(measured, "step_ms", json_real(median_length_ns(steps) / 1e6));
    json_object_set_new(measured, "period_ms", json_real(period_ns / 1e6));
    json_object_set_new(measured, "median_period_ms", json_real(median_period_ns(steps) / 1e6));
    json_object_set_new(measured, "lanes", lane_uses_json(tables.uses, trace->header.n_lanes));
    json_object_set_new(measured, "tasks", table_json(tables.tasks));
    json_object_set_new(measured, "critical_path", critical);
    json_object_set_new(measured, "cpu_updates", table_json(tables.beside));
    free_tables(&tables);
    return measured;
}

enum exit_code trace_summary(char **files)
{
    struct trace *trace = read_modelled_trace(files[0]);
    struct trace_steps steps = steps_of_list(trace, find_trace_list(trace, files[0], asked_trace.list));
    double period_ns = ratio((double)(steps.end - steps.start), (double)steps.counted);
    size_t n_approximate = count_flag(trace, TRACE_APPROXIMATE);
    size_t n_back = count_flag(trace, TRACE_STEPPED_BACK);
    if (asked_trace.json) {
        json_t *all = head_json(trace, &steps, n_approximate, n_back);
        if (steps.counted)
            json_object_update_new(all, tables_json(trace, &steps, period_ns));
        print_json(all);
    } else {
        print_head(trace, &steps, period_ns, n_approximate, n_back);
        if (steps.counted)
            print_tables(trace, &steps);
    }
    free_trace(trace);
    return EXIT_OK;
}
