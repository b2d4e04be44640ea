/* trace_diff.c - yard trace diff: how far the tasks and the steps of trace B are from those of trace A.
 *
 * The use it is made for: A a run, B the simulation of the same list, or A before and B after a change.
 */
#include "../base/table.h"
#include "trace_cmd.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WORST = 10 };

/* A task that ran, and its median time. */
struct timed {
    const struct trace *trace;
    const struct trace_task *task;
    double ns;
};
struct pair {
    const struct timed *a, *b;
};
/* One side of the comparison. */
struct side {
    const char *path;
    struct trace *trace;
    struct timed *timed; /* by name, layer, micro-batch, lane, list; then position in the list */
    size_t n;
    double makespan_ns;
    const struct timed **alone; /* without a counterpart */
    size_t n_alone;
};
struct diff {
    struct side a, b;
    struct pair *pairs; /* largest difference first */
    size_t n;
    double mape; /* not a number when nothing matches */
};

/* ---- medians --------------------------------------------------------------------------------------------------- */

struct sample {
    uint32_t task, step;
    double ns;
};

static int by_task_and_step(const void *left, const void *right)
{
    const struct sample *a = left, *b = right;
    return a->task != b->task ? COMPARE(a->task, b->task) : COMPARE(a->step, b->step);
}

static struct sample *collect_samples(const struct trace *t)
{
    struct sample *samples = allocate(t->n_records, sizeof *samples);
    for (size_t i = 0; i < t->n_records; i++) {
        const struct trace_record *r = &t->records[i];
        samples[i] = (struct sample){r->task, r->step, (double)(r->end - r->start)};
    }
    qsort(samples, t->n_records, sizeof *samples, by_task_and_step);
    return samples;
}

/* Of one task's samples, in order of steps: the median of those after the first step, or of its only step. */
static double median_after_first(const struct sample *samples, size_t n)
{
    size_t first = 0;
    while (first < n && samples[first].step == samples[0].step)
        first++;
    first = first == n ? 0 : first;
    double *values = allocate(n - first, sizeof *values);
    for (size_t i = first; i < n; i++)
        values[i - first] = samples[i].ns;
    double middle = trace_median(values, n - first);
    free(values);
    return middle;
}

/* ---- sides ----------------------------------------------------------------------------------------------------- */

static int compare_text(const char *a, const char *b) { return COMPARE(strcmp(a, b), 0); }

/* 0: the same task in two traces. */
static int compare_tasks(const struct timed *a, const struct timed *b)
{
    const struct trace_task *x = a->task, *y = b->task;
    int order = compare_text(x->name, y->name);
    order = order ? order : COMPARE(x->layer, y->layer);
    order = order ? order : COMPARE(x->micro, y->micro);
    order = order ? order : compare_text(a->trace->lanes[x->lane].name, b->trace->lanes[y->lane].name);
    return order ? order : compare_text(a->trace->header.list[x->list], b->trace->header.list[y->list]);
}

/* Within a trace, tasks that nothing else tells apart are told apart by their order: the first matches the first. */
static int by_identity(const void *left, const void *right)
{
    const struct timed *a = left, *b = right;
    int order = compare_tasks(a, b);
    return order ? order : COMPARE(a->task, b->task);
}

static double makespan(const struct trace *t, uint32_t list)
{
    struct trace_steps s = trace_steps_of(t, list);
    return trace_period_ns(&s);
}

static struct side read_side(const char *path, const char *list)
{
    struct side side = {.path = path, .trace = trace_open_modelled(path)};
    const struct trace *t = side.trace;
    uint32_t chosen = trace_list(t, path, list);
    struct sample *samples = collect_samples(t);
    side.timed = allocate(t->n_records, sizeof *side.timed);
    side.alone = allocate(t->n_records, sizeof *side.alone);
    side.makespan_ns = makespan(t, chosen);
    for (size_t i = 0, end; i < t->n_records; i = end) {
        const struct trace_task *k = &t->tasks[samples[i].task];
        for (end = i; end < t->n_records && samples[end].task == samples[i].task; end++)
            ;
        if (!list || k->list == chosen)
            side.timed[side.n++] = (struct timed){t, k, median_after_first(&samples[i], end - i)};
    }
    qsort(side.timed, side.n, sizeof *side.timed, by_identity);
    free(samples);
    return side;
}

static void free_side(struct side *side)
{
    free(side->timed);
    free(side->alone);
    trace_free(side->trace);
}

/* ---- comparing ------------------------------------------------------------------------------------------------- */

static double off_by(const struct pair *p) { return fabs(p->b->ns - p->a->ns); }

static int largest_difference(const void *left, const void *right)
{
    const struct pair *a = left, *b = right;
    int order = COMPARE(off_by(b), off_by(a));
    return order ? order : COMPARE(a->a, b->a);
}

/* Both sides are sorted: walk them together. */
static void match(struct diff *d)
{
    size_t i = 0, k = 0;
    d->pairs = allocate(MIN(d->a.n, d->b.n), sizeof *d->pairs);
    while (i < d->a.n || k < d->b.n) {
        int order = i == d->a.n ? 1 : k == d->b.n ? -1 : compare_tasks(&d->a.timed[i], &d->b.timed[k]);
        if (order < 0)
            d->a.alone[d->a.n_alone++] = &d->a.timed[i++];
        else if (order > 0)
            d->b.alone[d->b.n_alone++] = &d->b.timed[k++];
        else
            d->pairs[d->n++] = (struct pair){&d->a.timed[i++], &d->b.timed[k++]};
    }
}

static struct diff compare(const char *path_a, const char *path_b, const char *list)
{
    struct diff d = {.a = read_side(path_a, list), .b = read_side(path_b, list)};
    double total = 0, off = 0;
    match(&d);
    for (size_t i = 0; i < d.n; i++) {
        total += d.pairs[i].a->ns;
        off += off_by(&d.pairs[i]);
    }
    d.mape = total > 0 ? off / total : d.n > 0 && off == 0 ? 0 : NAN;
    qsort(d.pairs, d.n, sizeof *d.pairs, largest_difference);
    return d;
}

static double relative(double b, double a) { return a > 0 ? b / a - 1 : NAN; }
static double makespan_error(const struct diff *d) { return relative(d->b.makespan_ns, d->a.makespan_ns); }

/* "mlp.fc, layer 3, micro-batch 0 on 0:0 compute (train)"; the caller frees it. */
static char *task_text(const struct timed *x)
{
    char layer[32] = "", micro[32] = "";
    if (x->task->layer >= 0)
        snprintf(layer, sizeof layer, ", layer %" PRId32, x->task->layer);
    if (x->task->micro >= 0)
        snprintf(micro, sizeof micro, ", micro-batch %" PRId32, x->task->micro);
    return format_string("%s%s%s on %s (%s)", x->task->name, layer, micro, x->trace->lanes[x->task->lane].name,
                         x->trace->header.list[x->task->list]);
}

/* ---- output ---------------------------------------------------------------------------------------------------- */

/* JSON has no not-a-number. */
static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static json_t *json_alone(const struct side *side)
{
    json_t *array = json_array();
    for (size_t i = 0; i < side->n_alone; i++) {
        char *text = task_text(side->alone[i]);
        json_array_append_new(array, json_string(text));
        free(text);
    }
    return array;
}

static struct table *worst_table(const struct diff *d)
{
    static const struct column columns[] = {
        {NULL, "task", CELL_TEXT, 0, 0},   {"largest differences", NULL, CELL_TEXT, 30, 0},
        {"layer", NULL, CELL_COUNT, 5, 0}, {"micro", NULL, CELL_COUNT, 5, 0},
        {"lane", NULL, CELL_TEXT, 16, 0},  {"A us", NULL, CELL_FIXED, 10, 2},
        {"B us", NULL, CELL_FIXED, 10, 2}, {NULL, "a_ns", CELL_FIXED, 0, 0},
        {NULL, "b_ns", CELL_FIXED, 0, 0},  {"B/A - 1", "error", CELL_CHANGE, 10, 0}};
    struct table *t = new_table(columns, COUNT(columns));
    for (size_t i = 0; i < MIN(d->n, WORST); i++) {
        const struct pair *p = &d->pairs[i];
        const struct trace_task *k = p->a->task;
        char *text = task_text(p->a);
        ROW(t, text_cell(text), text_cell(k->name), number_cell(k->layer), number_cell(k->micro),
            text_cell(p->a->trace->lanes[k->lane].name), number_cell(p->a->ns / 1e3), number_cell(p->b->ns / 1e3),
            number_cell(p->a->ns), number_cell(p->b->ns), number_cell(relative(p->b->ns, p->a->ns)));
        free(text);
    }
    return t;
}

static json_t *diff_json(const struct diff *d, const struct table *worst)
{
    return json_pack("{s:o, s:o, s:f, s:f, s:I, s:o, s:o, s:o}", "task_mape", number(d->mape), "makespan_error",
                     number(makespan_error(d)), "makespan_a_ns", d->a.makespan_ns, "makespan_b_ns", d->b.makespan_ns,
                     "matched", (json_int_t)d->n, "unmatched_a", json_alone(&d->a), "unmatched_b", json_alone(&d->b),
                     "worst", table_json(worst));
}

/* "+3.4 %", or "-" where there is nothing to compare with. */
static const char *percent(char out[32], double x)
{
    snprintf(out, 32, isfinite(x) ? "%+.2f %%" : "-", 100 * x);
    return out;
}

static void print_alone(const struct side *side, const char *name)
{
    for (size_t i = 0; i < MIN(side->n_alone, WORST); i++) {
        char *text = task_text(side->alone[i]);
        printf("%s%s %s\n", i ? "         " : "\nonly in ", i ? "" : name, text);
        free(text);
    }
    if (side->n_alone > WORST)
        printf("          and %zu more\n", side->n_alone - WORST);
}

static void print_diff(const struct diff *d, const struct table *worst)
{
    char text[32];
    print_line(stdout, "A        %s (%s), step %.3f ms", d->a.path, trace_kind_name(d->a.trace),
               d->a.makespan_ns / 1e6);
    print_line(stdout, "B        %s (%s), step %.3f ms", d->b.path, trace_kind_name(d->b.trace),
               d->b.makespan_ns / 1e6);
    printf("step     %s (B/A - 1)\n", percent(text, makespan_error(d)));
    const char *mean = percent(text, d->mape);
    printf("tasks    %zu matched, mean error weighted by duration %s; %zu only in A, %zu only in B\n", d->n,
           mean + (*mean == '+'), d->a.n_alone, d->b.n_alone);
    if (d->n)
        print_heading(stdout, worst);
    print_rows(stdout, worst, 0, worst->n);
    print_alone(&d->a, "A");
    print_alone(&d->b, "B");
}

int trace_diff(const char *path_a, const char *path_b, const char *list, bool json)
{
    struct diff d = compare(path_a, path_b, list);
    bool comparable = d.n > 0;
    struct table *worst = worst_table(&d);
    if (json)
        print_json(diff_json(&d, worst));
    else
        print_diff(&d, worst);
    if (!comparable)
        note("yard: the traces %s and %s have no task in common", path_a, path_b);
    free_table(worst);
    free(d.pairs);
    free_side(&d.a);
    free_side(&d.b);
    return comparable ? EXIT_OK : EXIT_FAILED;
}
