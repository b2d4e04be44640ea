/* stats.c - steps and critical path of a trace: what `yard trace` prints and the viewer shows. */
#include "stats.h"
#include "planning/console/numbers.h"
#include "planning/console/table.h"

#include <math.h>

/* ---- modelled time ----------------------------------------------------------------------------------------------- */

static uint64_t modelled(const struct trace *trace, uint64_t clock)
{
    uint64_t start = trace->header.start_ns;
    uint64_t run = clock - paused_before(trace, clock);
    double since = run > start ? (double)(run - start) : 0;
    return start + (uint64_t)fmin(since * trace->header.pace_scale, 0x1p62);
}

static void model_record(const struct trace *trace, struct trace_record *record)
{
    record->queued = modelled(trace, record->queued);
    record->start = record->end ? modelled(trace, record->start) : 0;
    record->end = record->end ? modelled(trace, record->end) : 0;
}

struct trace *read_modelled_trace(const char *path)
{
    struct trace *trace = read_trace(path);
    if (trace->header.pace_scale == 1 && !trace->n_pauses)
        return trace;
    for (size_t i = 0; i < trace->n_records; i++)
        model_record(trace, &trace->records[i]);
    for (size_t i = 0; i < trace->n_unfinished; i++)
        model_record(trace, &trace->unfinished[i]);
    trace->header.pace_scale = 1;
    index_trace(trace, 0);
    update_memory_use(trace, 0);
    return trace;
}

const char *name_of_trace_kind(const struct trace *trace)
{
    static const char *const names[] = {
        [TRACE_REAL] = "real", [TRACE_PACED] = "paced", [TRACE_SIMULATED] = "simulated"};
    return names[trace->header.kind];
}

/* Is it the list that find_trace_list() looks for? */
static bool is_list(const struct trace *trace, uint32_t list, const char *name)
{
    if (name)
        return strcmp(trace->header.list[list], name) == 0;
    return trace->steps[list].n > 0;
}

uint32_t find_trace_list(const struct trace *trace, const char *path, const char *name)
{
    uint32_t n = trace->header.n_lists;
    char *known = NULL;
    uint32_t list = 0;
    while (list < n && !is_list(trace, list, name)) {
        append_text(&known, "%s%s", known ? ", " : "", trace->header.list[list]);
        list++;
    }
    if (list == n && name)
        fail(EXIT_USAGE, "the trace %s has no task list \"%s\"; --list takes one of: %s", path, name,
             known ? known : "none");
    free(known);
    return list < n ? list : 0;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static uint64_t done_of(const struct trace_step *step) { return step->done ? step->done : step->end; }

/* Does step i of the table come directly after step i - 1, with no number between them? */
static bool follows_directly(const struct trace_steps *steps, size_t i)
{
    return i > 0 && steps->items[i].step == steps->items[i - 1].step + 1;
}

struct trace_steps steps_of_list(const struct trace *trace, uint32_t list)
{
    struct trace_steps steps = {.list = list, .items = trace->steps[list].items, .n = trace->steps[list].n};
    size_t whole = steps.n;
    while (whole > 1 && steps.items[whole - 1].step > trace->whole_step)
        whole--;
    steps.first = whole > 1;
    steps.counted = whole - steps.first;
    if (steps.counted == 0)
        return steps;
    for (size_t i = steps.first; i < whole; i++)
        steps.end = MAX(steps.end, done_of(&steps.items[i]));
    steps.start = follows_directly(&steps, steps.first) ? done_of(&steps.items[0]) : steps.items[steps.first].start;
    steps.start = MIN(steps.start, steps.end);
    return steps;
}

bool is_counted(const struct trace *trace, const struct trace_steps *steps, size_t nth)
{
    const struct trace_record *record = &trace->records[nth];
    if (steps->counted == 0 || trace->tasks[record->task].list != steps->list)
        return false;
    const struct trace_step *first = &steps->items[steps->first];
    const struct trace_step *last = first + steps->counted - 1;
    return record->step >= first->step && record->step <= last->step;
}

static double length_of_step(const struct trace_steps *steps, size_t i)
{
    const struct trace_step *step = &steps->items[i];
    return (double)(step->end - step->start);
}

/* A period lasts from where one step is done to where the next one is.  It does not count what is written to the disk
 * in the background, which may end long after the next step.  Clocks of devices may disagree, so the distance can be
 * negative. */
static double period_of_step(const struct trace_steps *steps, size_t i)
{
    if (!follows_directly(steps, i))
        return length_of_step(steps, i);
    uint64_t from = done_of(&steps->items[i - 1]);
    uint64_t end = done_of(&steps->items[i]);
    return end >= from ? (double)(end - from) : -(double)(from - end);
}

static double median_of_steps(const struct trace_steps *steps, double (*of)(const struct trace_steps *, size_t))
{
    double *values = allocate(steps->counted, sizeof *values);
    for (size_t i = 0; i < steps->counted; i++)
        values[i] = of(steps, steps->first + i);
    double middle = median(values, steps->counted);
    free(values);
    return middle;
}

double median_period_ns(const struct trace_steps *steps) { return median_of_steps(steps, period_of_step); }
double median_length_ns(const struct trace_steps *steps) { return median_of_steps(steps, length_of_step); }

size_t find_median_step(const struct trace_steps *steps)
{
    double middle = median_period_ns(steps);
    size_t nearest = steps->first;
    double distance = INFINITY;
    for (size_t i = steps->first; i < steps->first + steps->counted; i++) {
        double off = fabs(period_of_step(steps, i) - middle);
        if (off < distance) {
            distance = off;
            nearest = i;
        }
    }
    return nearest;
}

/* ---- beside the device ------------------------------------------------------------------------------------------- */

/* What one update on the CPU ran beside, as new_beside_table() counts it. */
struct update_beside {
    bool beside;        /* true: a backward or an update of another layer, in the same step, ran meanwhile */
    bool none_left;     /* true: its step had no such work, then or later */
    bool next_step;     /* true: work of a later step ran meanwhile */
    uint64_t hidden_ns; /* how much of its time ran beside either: the most on one compute lane */
};

/* The sums over the updates of a layer. */
struct layer_beside {
    int32_t layer;
    size_t tasks;                        /* how many updates there were */
    size_t beside, none_left, next_step; /* for how many of them this is true */
    uint64_t ns, hidden_ns;              /* their time, and how much of it ran beside work of a device */
};

struct layers_beside { /* in the order of their first updates */
    struct layer_beside *items;
    size_t n, cap;
};

/* Is the record a backward or an update? */
static bool goes_backward(const struct trace *trace, const struct trace_record *record)
{
    const struct trace_task *task = &trace->tasks[record->task];
    return has_role(trace, task, "backward") || has_role(trace, task, "update");
}

/* Is the record a backward or an update of another layer, in the step of this update? */
static bool is_of_same_step(const struct trace *trace, const struct trace_record *update,
                            const struct trace_record *record)
{
    bool other_layer = trace->tasks[record->task].layer != trace->tasks[update->task].layer;
    return goes_backward(trace, record) && record->step == update->step && other_layer;
}

/* Is the record's work that of a step after this update's? */
static bool is_of_later_step(const struct trace *trace, const struct trace_record *update,
                             const struct trace_record *record)
{
    bool forward = has_role(trace, &trace->tasks[record->task], "forward");
    return (forward || goes_backward(trace, record)) && record->step > update->step;
}

/* Nanoseconds in which both ran. */
static uint64_t overlap_ns(const struct trace_record *a, const struct trace_record *b)
{
    uint64_t from = MAX(a->start, b->start);
    uint64_t to = MIN(a->end, b->end);
    return to > from ? to - from : 0;
}

/* Looks at the work of a compute lane while the update runs and after it. */
static void look_beside(const struct trace *trace, const struct trace_record *update, const struct bars *bars,
                        struct update_beside *one)
{
    uint32_t list = trace->tasks[update->task].list;
    uint64_t ns = 0;
    for (size_t i = first_bar_in(bars, update->start); i < bars->n; i++) {
        const struct trace_record *other = &trace->records[bars->items[i].record];
        bool same_step = is_of_same_step(trace, update, other);
        bool is_work = same_step || is_of_later_step(trace, update, other);
        if (!is_work || trace->tasks[other->task].list != list || other->end == other->start)
            continue;
        if (same_step)
            one->none_left = false;
        if (other->start >= update->end)
            break;
        if (same_step)
            one->beside = true;
        else
            one->next_step = true;
        ns += overlap_ns(update, other);
    }
    ns = MIN(ns,
             update->end - update->start); /* a trace that contradicts itself may have two tasks at once on the lane */
    one->hidden_ns = MAX(one->hidden_ns, ns);
}

/* Looks at all compute lanes. */
static struct update_beside beside_update(const struct trace *trace, const struct trace_record *update)
{
    struct update_beside one = {.none_left = true};
    for (uint32_t lane = 0; lane < trace->header.n_lanes; lane++)
        if (trace->lanes[lane].kind == LANE_COMPUTE)
            look_beside(trace, update, &trace->bars[lane], &one);
    return one;
}

static bool is_cpu_update(const struct trace *trace, const struct trace_record *record)
{
    const struct trace_task *task = &trace->tasks[record->task];
    return trace->lanes[task->lane].kind == LANE_CPU && has_role(trace, task, "update") && record->end > record->start;
}

/* The sums of the layer, which is added where it is missing. */
static struct layer_beside *sums_of_layer(struct layers_beside *layers, int32_t layer)
{
    for (size_t i = 0; i < layers->n; i++)
        if (layers->items[i].layer == layer)
            return &layers->items[i];
    GROW(layers->items, layers->cap, layers->n + 1);
    struct layer_beside *added = &layers->items[layers->n++];
    *added = (struct layer_beside){.layer = layer};
    return added;
}

static struct layers_beside sum_up_layers(const struct trace *trace, const struct trace_steps *steps)
{
    struct layers_beside layers = {0};
    for (size_t i = 0; i < trace->n_records; i++) {
        const struct trace_record *record = &trace->records[i];
        if (!is_cpu_update(trace, record) || !is_counted(trace, steps, i))
            continue;
        const struct update_beside one = beside_update(trace, record);
        struct layer_beside *sums = sums_of_layer(&layers, trace->tasks[record->task].layer);
        sums->tasks++;
        sums->beside += one.beside;
        sums->none_left += one.none_left;
        sums->next_step += one.next_step;
        sums->ns += record->end - record->start;
        sums->hidden_ns += one.hidden_ns;
    }
    return layers;
}

struct table *new_beside_table(const struct trace *trace, const struct trace_steps *steps)
{
    static const struct column columns[] = {{"layer", "layer", CELL_COUNT, 8, 0},
                                            {"tasks", "tasks", CELL_COUNT, 7, 0},
                                            {"beside", "beside", CELL_COUNT, 8, 0},
                                            {"none left", "none_left", CELL_COUNT, 9, 0},
                                            {"next step", "next_step", CELL_COUNT, 9, 0},
                                            {"ms/step", "ms_per_step", CELL_FIXED, 9, 3},
                                            {"hidden", "hidden_ms_per_step", CELL_FIXED, 9, 3}};
    struct table *table = new_table(columns, COUNT(columns));
    struct layers_beside layers = sum_up_layers(trace, steps);
    double ms = 1e-6 * trace->header.pace_scale / (double)steps->counted;
    for (const struct layer_beside *sums = layers.items; sums < layers.items + layers.n; sums++)
        ROW(table, number_cell(sums->layer), number_cell((double)sums->tasks), number_cell((double)sums->beside),
            number_cell((double)sums->none_left), number_cell((double)sums->next_step),
            number_cell((double)sums->ns * ms), number_cell((double)sums->hidden_ns * ms));
    free(layers.items);
    return table;
}

void print_beside(struct table *beside)
{
    if (!beside->n)
        return;
    printf("\nupdates on the CPU: how many ran beside a later backward or update of a\n"
           "device, for how many none was left, as after the last backward, and how many\n"
           "ran beside work of the next step");
    print_table(stdout, beside);
}

/* ---- critical path ----------------------------------------------------------------------------------------------- */

/* Returns the one of two records that ended later.  Either may be NONE. */
static int64_t later_end(const struct trace *trace, int64_t first, int64_t second)
{
    if (first == NONE)
        return second;
    if (second == NONE)
        return first;
    return trace->records[second].end > trace->records[first].end ? second : first;
}

static bool record_starts_before(const void *item, const void *key)
{
    const struct trace_record *record = item;
    const uint64_t *clock = key;
    return record->start < *clock;
}

/* The record with which a step is done: of the step's records that end at `end` or before, the one that ends last. */
static int64_t find_last_record(const struct trace *trace, uint32_t list, const struct trace_step *step, uint64_t end)
{
    int64_t last = NONE;
    size_t i =
        lower_bound(&step->start, trace->records, trace->n_records, sizeof *trace->records, record_starts_before);
    for (; i < trace->n_records && trace->records[i].start <= step->end; i++) {
        const struct trace_record *record = &trace->records[i];
        if (record->step == step->step && record->end <= end && trace->tasks[record->task].list == list)
            last = later_end(trace, last, (int64_t)i);
    }
    return last;
}

/* The predecessor of a record, by lane or by edge, that ended last.  It comes before `i` in the order of starts, so
 * that walking back ends whatever the file says. */
static int64_t find_predecessor(const struct trace *trace, int64_t i)
{
    const struct trace_record *record = &trace->records[i];
    const struct bars *lane = &trace->bars[trace->tasks[record->task].lane];
    const struct trace_edge *edge;
    size_t bar = bar_of(trace, (size_t)i);
    int64_t by_lane = bar > 0 ? (int64_t)lane->items[bar - 1].record : NONE;
    int64_t by_edge = find_last_producer(trace, record->task, record->step, (size_t)i, &edge);
    return later_end(trace, by_lane, by_edge);
}

struct trace_path find_critical_path(const struct trace *trace, const struct trace_steps *steps, size_t step)
{
    const struct trace_step *here = &steps->items[step];
    struct trace_path path = {.step = here->step, .start = here->start, .end = done_of(here)};
    if (follows_directly(steps, step) && done_of(here - 1) < path.end)
        path.start = done_of(here - 1);
    int64_t i = find_last_record(trace, steps->list, here, path.end);
    uint64_t to = path.end;
    while (i != NONE && to > path.start) {
        int64_t before = find_predecessor(trace, i);
        uint64_t ready = path.start;
        if (before != NONE)
            ready = MAX(trace->records[before].end, path.start);
        ready = MIN(ready, to); /* clocks of two devices may disagree a little: no time counts twice */
        uint64_t from = MIN(MAX(trace->records[i].start, ready), to);
        GROW(path.hops, path.cap, path.n + 1);
        path.hops[path.n++] = (struct trace_hop){(size_t)i, ready, from, to};
        to = ready;
        i = before;
    }
    return path;
}

/* The cells of the row with this name and lane, which is added where it is missing. */
static struct cell *row_of_part(struct table *table, const char *name, const char *lane)
{
    for (size_t row = 0; row < table->n; row++) {
        struct cell *cell = &table->cells[row * PATH_COLUMNS];
        if (strcmp(cell[PATH_NAME].text, name) == 0 && strcmp(cell[PATH_LANE].text, lane) == 0)
            return cell;
    }
    add_row(table, (struct cell[PATH_COLUMNS]){text_cell(name), text_cell(lane)});
    return &table->cells[(table->n - 1) * PATH_COLUMNS];
}

static void add_part(struct table *table, const char *name, const char *lane, uint64_t from, uint64_t to)
{
    if (to <= from)
        return;
    struct cell *cell = row_of_part(table, name, lane);
    cell[PATH_HOPS].number++;
    cell[PATH_MS].number += (double)(to - from) / 1e6;
}

/* A hop waits for the host until the host has queued its task, and then for the device. */
struct table *new_path_table(const struct trace *trace, const struct trace_path *path, const char *heading)
{
    const struct column columns[PATH_COLUMNS] = {{heading, "task", CELL_TEXT, 24, 0},
                                                 {"lane", "lane", CELL_TEXT, 24, 0},
                                                 {"hops", "hops", CELL_COUNT, 6, 0},
                                                 {"ms", "ms", CELL_FIXED, 10, 3},
                                                 {"share", "share", CELL_SHARE, 6, 0}};
    struct table *table = new_table(columns, PATH_COLUMNS);
    for (size_t i = 0; i < path->n; i++) {
        const struct trace_hop *hop = &path->hops[i];
        const struct trace_record *record = &trace->records[hop->record];
        const struct trace_task *task = &trace->tasks[record->task];
        uint64_t queued = MIN(MAX(record->queued, hop->wait), hop->start);
        add_part(table, task->name, trace->lanes[task->lane].name, hop->start, hop->end);
        add_part(table, "(not yet queued)", "", hop->wait, queued);
        add_part(table, "(queued, not started)", "", queued, hop->start);
    }
    for (size_t row = 0; row < table->n; row++) {
        struct cell *cell = &table->cells[row * PATH_COLUMNS];
        cell[PATH_SHARE].number = cell[PATH_MS].number * 1e6 / (double)(path->end - path->start);
    }
    sort_table(table, PATH_MS);
    return table;
}
