/* trace_diff.c - yard trace diff: how far the tasks and the steps of trace B are from those of trace A.
 *
 * Usually A is a run and B the simulation of the same list, or A is from before a change and B from after it.
 */
#include "command.h"
#include "planning/console/numbers.h"
#include "planning/console/table.h"
#include "stats.h"
#include "trainer/cmd/cmd.h"

#include <inttypes.h>
#include <math.h>

enum { MOST_SHOWN = 10 };

/* A task that ran, and its median time. */
struct timed_task {
    const struct trace *trace;
    const struct trace_task *task;
    double ns, other; /* other: its time in the other trace */
};

/* A or B. */
struct compared_trace {
    struct trace *trace;
    struct timed_task *timed; /* by name, layer, micro-batch, lane, list; then position in the list */
    size_t n;
    double makespan_ns;
    json_t *alone; /* tasks that the other trace does not have, as texts */
};

/* Returns 0 for the same task in two traces. */
static int compare_tasks(const struct timed_task *a, const struct timed_task *b)
{
    const struct trace_task *task_a = a->task;
    const struct trace_task *task_b = b->task;
    int by_name = strcmp(task_a->name, task_b->name);
    if (by_name != 0)
        return by_name;
    if (task_a->layer != task_b->layer)
        return COMPARE(task_a->layer, task_b->layer);
    if (task_a->micro != task_b->micro)
        return COMPARE(task_a->micro, task_b->micro);
    int by_lane = strcmp(a->trace->lanes[task_a->lane].name, b->trace->lanes[task_b->lane].name);
    if (by_lane != 0)
        return by_lane;
    return strcmp(a->trace->header.list[task_a->list], b->trace->header.list[task_b->list]);
}

/* When nothing else tells tasks of a trace apart, their order does: the first matches the first. */
static int by_identity(const void *left, const void *right)
{
    const struct timed_task *a = left;
    const struct timed_task *b = right;
    int order = compare_tasks(a, b);
    return order != 0 ? order : COMPARE(a->task, b->task);
}

/* The median time of a task's runs after the first step, or in its only step. */
static double median_after_first(const struct trace *trace, const struct runs *runs)
{
    uint32_t first = trace->records[runs->record[0]].step;
    uint32_t last = trace->records[runs->record[runs->n - 1]].step;
    double *ns = allocate(runs->n, sizeof *ns);
    size_t n = 0;
    for (size_t i = 0; i < runs->n; i++) {
        const struct trace_record *record = &trace->records[runs->record[i]];
        if (record->step != first || first == last)
            ns[n++] = (double)(record->end - record->start);
    }
    double middle = median(ns, n);
    free(ns);
    return middle;
}

static struct compared_trace read_compared(const char *path)
{
    const char *list = asked_trace.list;
    struct compared_trace compared = {.trace = read_modelled_trace(path), .alone = json_array()};
    const struct trace *trace = compared.trace;
    uint32_t chosen = find_trace_list(trace, path, list);
    struct trace_steps steps = steps_of_list(trace, chosen);
    compared.timed = allocate(trace->header.n_tasks, sizeof *compared.timed);
    compared.makespan_ns = median_period_ns(&steps);
    for (size_t i = 0; i < trace->header.n_tasks; i++) {
        const struct trace_task *task = &trace->tasks[i];
        if (trace->runs[i].n == 0 || (list && task->list != chosen))
            continue;
        double ns = median_after_first(trace, &trace->runs[i]);
        compared.timed[compared.n++] = (struct timed_task){.trace = trace, .task = task, .ns = ns};
    }
    SORT(compared.timed, compared.n, by_identity);
    return compared;
}

static void free_compared(struct compared_trace *compared)
{
    json_decref(compared->alone);
    free(compared->timed);
    free_trace(compared->trace);
}

/* "mlp.fc, layer 3, micro-batch 0 on 0:0 compute (train)" */
static json_t *task_text(const struct timed_task *timed)
{
    char layer[32] = "", micro[32] = "";
    if (timed->task->layer >= 0)
        snprintf(layer, sizeof layer, ", layer %" PRId32, timed->task->layer);
    if (timed->task->micro >= 0)
        snprintf(micro, sizeof micro, ", micro-batch %" PRId32, timed->task->micro);
    return json_sprintf("%s%s%s on %s (%s)", timed->task->name, layer, micro,
                        timed->trace->lanes[timed->task->lane].name, timed->trace->header.list[timed->task->list]);
}

static double off_by(const struct timed_task *timed) { return fabs(timed->other - timed->ns); }

static int largest_difference(const void *left, const void *right)
{
    const struct timed_task *a = left;
    const struct timed_task *b = right;
    return BY(off_by(b), off_by(a), COMPARE(a->task, b->task));
}

/* Finds the tasks that both traces have, and returns how many.  They move to the front of a->timed, the largest
 * difference first. */
static size_t match(struct compared_trace *a, struct compared_trace *b)
{
    size_t i = 0, k = 0; /* the next of a and of b */
    size_t n = 0;
    while (i < a->n && k < b->n) { /* both are sorted: walk them together */
        int order = compare_tasks(&a->timed[i], &b->timed[k]);
        if (order < 0) {
            json_array_append_new(a->alone, task_text(&a->timed[i]));
            i++;
        } else if (order > 0) {
            json_array_append_new(b->alone, task_text(&b->timed[k]));
            k++;
        } else {
            a->timed[n] = a->timed[i];
            a->timed[n].other = b->timed[k].ns;
            n++;
            i++;
            k++;
        }
    }
    for (; i < a->n; i++)
        json_array_append_new(a->alone, task_text(&a->timed[i]));
    for (; k < b->n; k++)
        json_array_append_new(b->alone, task_text(&b->timed[k]));
    SORT(a->timed, n, largest_difference);
    return n;
}

static double relative(double after, double before) { return before > 0 ? after / before - 1 : NAN; }

enum { PERCENT_BYTES = 32 };

/* "3.40 %", or "-" where there is nothing to compare with. */
static const char *error_text(char out[PERCENT_BYTES], double error)
{
    snprintf(out, PERCENT_BYTES, isfinite(error) ? "%.2f %%" : "-", 100 * error);
    return out;
}

/* The same with a sign: "+3.40 %". */
static const char *change_text(char out[PERCENT_BYTES], double change)
{
    snprintf(out, PERCENT_BYTES, isfinite(change) ? "%+.2f %%" : "-", 100 * change);
    return out;
}

/* A table of the largest differences among n tasks that both have. */
static struct table *worst_table(const struct timed_task *matched, size_t n)
{
    static const struct column columns[] = {{"largest differences", "task", CELL_TEXT, 64, 0},
                                            {"A us", NULL, CELL_FIXED, 10, 2},
                                            {"B us", NULL, CELL_FIXED, 10, 2},
                                            {NULL, "a_ns", CELL_FIXED, 0, 0},
                                            {NULL, "b_ns", CELL_FIXED, 0, 0},
                                            {"B/A - 1", "error", CELL_CHANGE, 8, 0}};
    struct table *table = new_table(columns, COUNT(columns));
    for (size_t i = 0; i < MIN(n, MOST_SHOWN); i++) {
        const struct timed_task *timed = &matched[i];
        json_t *text = task_text(timed);
        ROW(table, text_cell(json_string_value(text)), number_cell(timed->ns / 1e3), number_cell(timed->other / 1e3),
            number_cell(timed->ns), number_cell(timed->other), number_cell(relative(timed->other, timed->ns)));
        json_decref(text);
    }
    return table;
}

/* The mean error of n tasks that both have, weighted by duration. */
static double weighted_error(const struct timed_task *matched, size_t n)
{
    double total = 0, off = 0;
    for (size_t i = 0; i < n; i++) {
        total += matched[i].ns;
        off += off_by(&matched[i]);
    }
    if (total > 0)
        return off / total;
    return n > 0 && off == 0 ? 0 : NAN;
}

static void print_compared_json(const struct compared_trace *a, const struct compared_trace *b, size_t n,
                                const struct table *worst)
{
    json_t *all = json_object();
    set_json_number(all, "task_mape", weighted_error(a->timed, n));
    set_json_number(all, "makespan_error", relative(b->makespan_ns, a->makespan_ns));
    json_object_set_new(all, "makespan_a_ns", json_real(a->makespan_ns));
    json_object_set_new(all, "makespan_b_ns", json_real(b->makespan_ns));
    set_json_integer(all, "matched", (json_int_t)n);
    json_object_set_new(all, "unmatched_a", json_incref(a->alone));
    json_object_set_new(all, "unmatched_b", json_incref(b->alone));
    json_object_set_new(all, "worst", table_json(worst));
    print_json(all);
}

static void print_compared(char **files, const struct compared_trace *a, const struct compared_trace *b, size_t n,
                           struct table *worst)
{
    char step[PERCENT_BYTES], mean[PERCENT_BYTES];
    size_t n_a = json_array_size(a->alone);
    size_t n_b = json_array_size(b->alone);
    print_line(stdout, "A        %s (%s), step %.3f ms", files[0], name_of_trace_kind(a->trace), a->makespan_ns / 1e6);
    print_line(stdout, "B        %s (%s), step %.3f ms", files[1], name_of_trace_kind(b->trace), b->makespan_ns / 1e6);
    printf("step     %s (B/A - 1)\n", change_text(step, relative(b->makespan_ns, a->makespan_ns)));
    print_line(stdout, "tasks    %zu matched, mean error weighted by duration %s; %zu only in A, %zu only in B", n,
               error_text(mean, weighted_error(a->timed, n)), n_a, n_b);
    if (n)
        print_table(stdout, worst);
    if (n_a + n_b > 0)
        printf("\n--json names the tasks that only one trace has\n");
}

enum exit_code trace_diff(char **files)
{
    struct compared_trace a = read_compared(files[0]);
    struct compared_trace b = read_compared(files[1]);
    size_t n = match(&a, &b);
    struct table *worst = worst_table(a.timed, n);
    if (asked_trace.json)
        print_compared_json(&a, &b, n, worst);
    else
        print_compared(files, &a, &b, n, worst);
    free_table(worst);
    free_compared(&a);
    free_compared(&b);
    if (!n)
        say(stderr, "yard: ", "the traces %s and %s have no task in common: compare traces of the same model", files[0],
            files[1]);
    return n ? EXIT_OK : EXIT_FAILED;
}
