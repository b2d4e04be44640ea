/* trace_diff.c - yard trace diff: how far the tasks and the steps of trace B are from those of trace A.
 *
 * The use it is made for: A a run, B the simulation of the same list, or A before and B after a change.
 */
#include "command.h"
#include "tools/command/numbers.h"
#include "tools/command/table.h"
#include "trace.h"
#include "trainer/cmd/cmd.h"

#include <inttypes.h>
#include <math.h>

enum { WORST = 10 };

/* A task that ran, and its median time. */
struct timed {
    const struct trace *trace;
    const struct trace_task *task;
    double ns, other; /* other: in the other trace */
};
/* One side of the comparison. */
struct side {
    struct trace *trace;
    struct timed *timed; /* by name, layer, micro-batch, lane, list; then position in the list */
    size_t n;
    double makespan_ns;
    json_t *alone; /* tasks without a counterpart, as texts */
};

/* 0: the same task in two traces. */
static int compare_tasks(const struct timed *a, const struct timed *b)
{
    const struct trace_task *x = a->task, *y = b->task;
    int name = strcmp(x->name, y->name), lane = strcmp(a->trace->lanes[x->lane].name, b->trace->lanes[y->lane].name);
    int list = strcmp(a->trace->header.list[x->list], b->trace->header.list[y->list]);
    return BY(name, 0, BY(x->layer, y->layer, BY(x->micro, y->micro, BY(lane, 0, list))));
}

/* Within a trace, tasks that nothing else tells apart are told apart by their order: the first matches the first. */
ORDER(by_identity, struct timed, BY(compare_tasks(a, b), 0, COMPARE(a->task, b->task)))

/* Of a task's runs, the median of those after the first step, or of its only step. */
static double median_after_first(const struct trace *t, const struct runs *runs)
{
    uint32_t first = t->records[runs->record[0]].step, last = t->records[runs->record[runs->n - 1]].step;
    double *ns = allocate(runs->n, sizeof *ns);
    size_t n = 0;
    for (size_t i = 0; i < runs->n; i++) {
        const struct trace_record *r = &t->records[runs->record[i]];
        if (r->step != first || first == last)
            ns[n++] = (double)(r->end - r->start);
    }
    double middle = median(ns, n);
    free(ns);
    return middle;
}

static struct side read_side(const char *path)
{
    const char *list = trace_options.list;
    struct side side = {.trace = trace_open_modelled(path), .alone = json_array()};
    const struct trace *t = side.trace;
    uint32_t chosen = trace_list(t, path, list);
    struct trace_steps steps = trace_steps_of(t, chosen);
    side.timed = allocate(t->header.n_tasks, sizeof *side.timed);
    side.makespan_ns = trace_period_ns(&steps);
    for (size_t i = 0; i < t->header.n_tasks; i++)
        if (t->runs[i].n && (!list || t->tasks[i].list == chosen))
            side.timed[side.n++] = (struct timed){t, &t->tasks[i], median_after_first(t, &t->runs[i]), 0};
    SORT(side.timed, side.n, by_identity);
    return side;
}

/* "mlp.fc, layer 3, micro-batch 0 on 0:0 compute (train)" */
static json_t *task_text(const struct timed *x)
{
    char layer[32] = "", micro[32] = "";
    if (x->task->layer >= 0)
        snprintf(layer, sizeof layer, ", layer %" PRId32, x->task->layer);
    if (x->task->micro >= 0)
        snprintf(micro, sizeof micro, ", micro-batch %" PRId32, x->task->micro);
    return json_sprintf("%s%s%s on %s (%s)", x->task->name, layer, micro, x->trace->lanes[x->task->lane].name,
                        x->trace->header.list[x->task->list]);
}

static double off_by(const struct timed *x) { return fabs(x->other - x->ns); }

ORDER(largest_difference, struct timed, BY(off_by(b), off_by(a), COMPARE(a->task, b->task)))

/* Both sides are sorted: walk them together.  In a, those with a counterpart come to the front; returns how many. */
static size_t match(struct side *a, struct side *b)
{
    size_t i = 0, k = 0, n = 0;
    while (i < a->n || k < b->n) {
        int order = i == a->n ? 1 : k == b->n ? -1 : compare_tasks(&a->timed[i], &b->timed[k]);
        if (order < 0)
            json_array_append_new(a->alone, task_text(&a->timed[i++]));
        else if (order > 0)
            json_array_append_new(b->alone, task_text(&b->timed[k++]));
        else {
            a->timed[i].other = b->timed[k++].ns;
            a->timed[n++] = a->timed[i++];
        }
    }
    SORT(a->timed, n, largest_difference);
    return n;
}

static double relative(double b, double a) { return a > 0 ? b / a - 1 : NAN; }

/* "+3.4 %", or "-" where there is nothing to compare with. */
static const char *percent(char out[32], double x)
{
    snprintf(out, 32, isfinite(x) ? "%+.2f %%" : "-", 100 * x);
    return out;
}

int trace_diff(char **files)
{
    static const struct column columns[] = {{"largest differences", "task", CELL_TEXT, 64, 0},
                                            {"A us", NULL, CELL_FIXED, 10, 2},
                                            {"B us", NULL, CELL_FIXED, 10, 2},
                                            {NULL, "a_ns", CELL_FIXED, 0, 0},
                                            {NULL, "b_ns", CELL_FIXED, 0, 0},
                                            {"B/A - 1", "error", CELL_CHANGE, 8, 0}};
    struct side a = read_side(files[0]), b = read_side(files[1]);
    struct table *worst = new_table(columns, COUNT(columns));
    size_t n = match(&a, &b);
    double total = 0, off = 0, makespan_error = relative(b.makespan_ns, a.makespan_ns);
    for (size_t i = 0; i < n; i++) {
        const struct timed *x = &a.timed[i];
        total += x->ns;
        off += off_by(x);
        if (i < WORST)
            ROW(worst, text_cell(json_string_value(task_text(x))), number_cell(x->ns / 1e3),
                number_cell(x->other / 1e3), number_cell(x->ns), number_cell(x->other),
                number_cell(relative(x->other, x->ns)));
    }
    double mape = total > 0 ? off / total : n > 0 && off == 0 ? 0 : NAN;
    if (trace_options.json) {
        print_json(json_pack("{s:o, s:o, s:f, s:f, s:I, s:o, s:o, s:o}", "task_mape", number_json(mape),
                             "makespan_error", number_json(makespan_error), "makespan_a_ns", a.makespan_ns,
                             "makespan_b_ns", b.makespan_ns, "matched", (json_int_t)n, "unmatched_a", a.alone,
                             "unmatched_b", b.alone, "worst", table_json(worst)));
    } else {
        char step[32], mean[32];
        print_line(stdout, "A        %s (%s), step %.3f ms", files[0], trace_kind_name(a.trace), a.makespan_ns / 1e6);
        print_line(stdout, "B        %s (%s), step %.3f ms", files[1], trace_kind_name(b.trace), b.makespan_ns / 1e6);
        percent(mean, mape);
        printf("step     %s (B/A - 1)\n", percent(step, makespan_error));
        printf("tasks    %zu matched, mean error weighted by duration %s; %zu only in A, %zu only in B\n", n,
               mean + (*mean == '+'), json_array_size(a.alone), json_array_size(b.alone));
        if (n)
            print_table(stdout, worst);
        if (json_array_size(a.alone) + json_array_size(b.alone))
            printf("\n--json names the tasks of one trace only\n");
    }
    if (!n)
        note("yard: the traces %s and %s have no task in common", files[0], files[1]);
    return n ? EXIT_OK : EXIT_FAILED;
}
