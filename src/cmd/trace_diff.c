/* trace_diff.c - yard trace diff: how far the tasks and the steps of trace B are from those of trace A.
 *
 * The use it is made for: A a run, B the simulation of the same list, or A before and B after a change.
 */
#include "../base/table.h"
#include "../trace/trace.h"
#include "cmd.h"

#include <inttypes.h>
#include <math.h>

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
    json_t *alone; /* tasks without a counterpart, as texts */
};
struct diff {
    struct side a, b;
    struct pair *pairs; /* largest difference first */
    size_t n;
    double mape; /* not a number when nothing matches */
};

/* ---- sides ----------------------------------------------------------------------------------------------------- */

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
    double *ns = allocate(runs->n, sizeof *ns);
    uint32_t first = UINT32_MAX;
    size_t n = 0;
    for (size_t i = 0; i < runs->n; i++)
        first = MIN(first, t->records[runs->record[i]].step);
    for (int only = 0; only < 2 && n == 0; only++)
        for (size_t i = 0; i < runs->n; i++) {
            const struct trace_record *r = &t->records[runs->record[i]];
            if (only || r->step != first)
                ns[n++] = (double)(r->end - r->start);
        }
    double middle = trace_median(ns, n);
    free(ns);
    return middle;
}

static struct side read_side(const char *path, const char *list)
{
    struct side side = {.path = path, .trace = trace_open_modelled(path)};
    const struct trace *t = side.trace;
    uint32_t chosen = trace_list(t, path, list);
    struct trace_steps steps = trace_steps_of(t, chosen);
    side.timed = allocate(t->header.n_tasks, sizeof *side.timed);
    side.alone = json_array();
    side.makespan_ns = trace_period_ns(&steps);
    for (size_t i = 0; i < t->header.n_tasks; i++)
        if (t->runs[i].n && (!list || t->tasks[i].list == chosen))
            side.timed[side.n++] = (struct timed){t, &t->tasks[i], median_after_first(t, &t->runs[i])};
    SORT(side.timed, side.n, by_identity);
    return side;
}

static void free_side(struct side *side)
{
    free(side->timed);
    json_decref(side->alone);
    trace_free(side->trace);
}

/* ---- comparing ------------------------------------------------------------------------------------------------- */

static double off_by(const struct pair *p) { return fabs(p->b->ns - p->a->ns); }

ORDER(largest_difference, struct pair, BY(off_by(b), off_by(a), COMPARE(a->a, b->a)))

/* "mlp.fc, layer 3, micro-batch 0 on 0:0 compute (train)"; the caller frees it. */
static char *task_text(const struct timed *x)
{
    char *text = copy_string(x->task->name);
    if (x->task->layer >= 0)
        append_text(&text, ", layer %" PRId32, x->task->layer);
    if (x->task->micro >= 0)
        append_text(&text, ", micro-batch %" PRId32, x->task->micro);
    append_text(&text, " on %s (%s)", x->trace->lanes[x->task->lane].name, x->trace->header.list[x->task->list]);
    return text;
}

static void add_alone(struct side *side, const struct timed *x)
{
    char *text = task_text(x);
    json_array_append_new(side->alone, json_string(text));
    free(text);
}

/* Both sides are sorted: walk them together. */
static void match(struct diff *d)
{
    size_t i = 0, k = 0;
    d->pairs = allocate(MIN(d->a.n, d->b.n), sizeof *d->pairs);
    while (i < d->a.n || k < d->b.n) {
        int order = i == d->a.n ? 1 : k == d->b.n ? -1 : compare_tasks(&d->a.timed[i], &d->b.timed[k]);
        if (order < 0)
            add_alone(&d->a, &d->a.timed[i++]);
        else if (order > 0)
            add_alone(&d->b, &d->b.timed[k++]);
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
    SORT(d.pairs, d.n, largest_difference);
    return d;
}

static double relative(double b, double a) { return a > 0 ? b / a - 1 : NAN; }
static double makespan_error(const struct diff *d) { return relative(d->b.makespan_ns, d->a.makespan_ns); }

/* ---- output ---------------------------------------------------------------------------------------------------- */

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
    return json_pack("{s:o, s:o, s:f, s:f, s:I, s:O, s:O, s:o}", "task_mape", number_json(d->mape), "makespan_error",
                     number_json(makespan_error(d)), "makespan_a_ns", d->a.makespan_ns, "makespan_b_ns",
                     d->b.makespan_ns, "matched", (json_int_t)d->n, "unmatched_a", d->a.alone, "unmatched_b",
                     d->b.alone, "worst", table_json(worst));
}

/* "+3.4 %", or "-" where there is nothing to compare with. */
static const char *percent(char out[32], double x)
{
    snprintf(out, 32, isfinite(x) ? "%+.2f %%" : "-", 100 * x);
    return out;
}

static void print_alone(const struct side *side, const char *name)
{
    size_t n = json_array_size(side->alone);
    for (size_t i = 0; i < MIN(n, WORST); i++)
        printf("%s%s %s\n", i ? "         " : "\nonly in ", i ? "" : name,
               json_string_value(json_array_get(side->alone, i)));
    if (n > WORST)
        printf("          and %zu more\n", n - WORST);
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
           mean + (*mean == '+'), json_array_size(d->a.alone), json_array_size(d->b.alone));
    if (d->n)
        print_table(stdout, worst);
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
