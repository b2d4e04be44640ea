/* stats.c - steps and critical path of a trace: what `yard trace` prints and the viewer shows. */
#include "tools/command/numbers.h"
#include "tools/command/table.h"
#include "trace.h"

#include <math.h>

/* ---- modelled time --------------------------------------------------------------------------------------------- */

static uint64_t modelled(const struct trace *t, uint64_t clock)
{
    uint64_t start = t->header.start_ns;
    uint64_t run = clock - trace_paused_before(t, clock);
    double since = run > start ? (double)(run - start) : 0;
    return start + (uint64_t)fmin(since * t->header.pace_scale, 0x1p62);
}

static void model_record(const struct trace *t, struct trace_record *r)
{
    r->queued = modelled(t, r->queued);
    r->start = r->end ? modelled(t, r->start) : 0;
    r->end = r->end ? modelled(t, r->end) : 0;
}

struct trace *trace_open_modelled(const char *path)
{
    struct trace *t = trace_open(path);
    if (t->header.pace_scale == 1 && !t->n_pauses)
        return t;
    for (size_t i = 0; i < t->n_records; i++)
        model_record(t, &t->records[i]);
    for (size_t i = 0; i < t->n_unfinished; i++)
        model_record(t, &t->unfinished[i]);
    t->header.pace_scale = 1;
    trace_index(t, 0);
    trace_update_memory(t, 0);
    return t;
}

const char *trace_kind_name(const struct trace *t)
{
    static const char *const names[] = {
        [TRACE_REAL] = "real", [TRACE_PACED] = "paced", [TRACE_SIMULATED] = "simulated"};
    return names[t->header.kind];
}

/* Is it the list that trace_list() looks for? */
static bool is_list(const struct trace *t, uint32_t list, const char *name)
{
    if (name)
        return strcmp(t->header.list[list], name) == 0;
    return t->steps[list].n > 0;
}

uint32_t trace_list(const struct trace *t, const char *path, const char *name)
{
    const uint32_t n = t->header.n_lists;
    char *known = NULL;
    uint32_t list = 0;
    while (list < n && !is_list(t, list, name)) {
        append_text(&known, "%s%s", known ? ", " : "", t->header.list[list]);
        list++;
    }
    if (list == n && name)
        fail(EXIT_USAGE, "the trace %s has no task list \"%s\"; --list takes one of: %s", path, name,
             known ? known : "none");
    free(known);
    return list < n ? list : 0;
}

/* ---- steps ----------------------------------------------------------------------------------------------------- */

static uint64_t done_of(const struct trace_step *s) { return s->done ? s->done : s->end; }

/* Does step i of the table come directly after step i - 1, with no number between them? */
static bool follows_directly(const struct trace_steps *s, size_t i)
{
    return i > 0 && s->steps[i].step == s->steps[i - 1].step + 1;
}

struct trace_steps trace_steps_of(const struct trace *t, uint32_t list)
{
    struct trace_steps s = {.list = list, .steps = t->steps[list].step, .n = t->steps[list].n};
    size_t whole = s.n;
    while (whole > 1 && s.steps[whole - 1].step > t->whole_step)
        whole--;
    s.first = whole > 1;
    s.counted = whole - s.first;
    if (s.counted == 0)
        return s;
    for (size_t i = s.first; i < whole; i++)
        s.end = MAX(s.end, done_of(&s.steps[i]));
    s.start = follows_directly(&s, s.first) ? done_of(&s.steps[0]) : s.steps[s.first].start;
    s.start = MIN(s.start, s.end);
    return s;
}

bool trace_counts(const struct trace *t, const struct trace_steps *s, size_t record)
{
    const struct trace_record *r = &t->records[record];
    if (s->counted == 0 || t->tasks[r->task].list != s->list)
        return false;
    const struct trace_step *first = &s->steps[s->first];
    const struct trace_step *last = first + s->counted - 1;
    return r->step >= first->step && r->step <= last->step;
}

static double length_of_step(const struct trace_steps *s, size_t i)
{
    const struct trace_step *step = &s->steps[i];
    return (double)(step->end - step->start);
}

/* A period lasts from where one step is done to where the next one is.  It does not count what is written to the disk
 * in the background, which may end long after the next step.  Clocks of devices may disagree, so the distance can be
 * negative. */
static double period_of_step(const struct trace_steps *s, size_t i)
{
    if (!follows_directly(s, i))
        return length_of_step(s, i);
    uint64_t from = done_of(&s->steps[i - 1]);
    uint64_t end = done_of(&s->steps[i]);
    return end >= from ? (double)(end - from) : -(double)(from - end);
}

static double median_of_steps(const struct trace_steps *s, double (*of)(const struct trace_steps *, size_t))
{
    double *values = allocate(s->counted, sizeof *values);
    for (size_t i = 0; i < s->counted; i++)
        values[i] = of(s, s->first + i);
    double middle = median(values, s->counted);
    free(values);
    return middle;
}

double trace_period_ns(const struct trace_steps *s) { return median_of_steps(s, period_of_step); }
double trace_length_ns(const struct trace_steps *s) { return median_of_steps(s, length_of_step); }

size_t trace_median_step(const struct trace_steps *s)
{
    double middle = trace_period_ns(s);
    size_t nearest = s->first;
    double distance = INFINITY;
    for (size_t i = s->first; i < s->first + s->counted; i++) {
        double off = fabs(period_of_step(s, i) - middle);
        if (off < distance) {
            distance = off;
            nearest = i;
        }
    }
    return nearest;
}

/* ---- beside the device ------------------------------------------------------------------------------------------- */

enum { LAYER, TASKS, BESIDE, NONE_LEFT, NEXT_STEP, MS, HIDDEN, COLUMNS };

/* Looks at the work of a compute lane while record r, an update on the CPU, runs and after it, and fills the columns of
 * r's row: BESIDE, NEXT_STEP, NONE_LEFT, HIDDEN.  The columns MS and HIDDEN are in nanoseconds here. */
static void look_beside(const struct trace *t, const struct trace_record *r, const struct bars *b, double row[COLUMNS])
{
    const struct trace_task *update = &t->tasks[r->task];
    double ns = 0;
    for (size_t i = first_bar_in(b, r->start); i < b->n; i++) {
        const struct trace_record *other = &t->records[b->bar[i].record];
        const struct trace_task *task = &t->tasks[other->task];
        bool backward = has_role(t, task, "backward") || has_role(t, task, "update");
        bool later = backward && other->step == r->step && task->layer != update->layer;
        bool next = (backward || has_role(t, task, "forward")) && other->step > r->step;
        if (task->list != update->list || other->end == other->start || !(later || next))
            continue;
        if (later)
            row[NONE_LEFT] = 0;
        if (other->start >= r->end)
            break;
        row[later ? BESIDE : NEXT_STEP] = 1;
        ns += (double)(MIN(other->end, r->end) - MAX(other->start, r->start));
    }
    ns = fmin(ns, row[MS]); /* a trace that contradicts itself may have two tasks at once on the lane */
    row[HIDDEN] = fmax(row[HIDDEN], ns);
}

static bool is_cpu_update(const struct trace *t, const struct trace_record *r)
{
    const struct trace_task *task = &t->tasks[r->task];
    return t->lanes[task->lane].kind == LANE_CPU && has_role(t, task, "update") && r->end > r->start;
}

/* The cells of the layer's row, which is added where it is missing. */
static struct cell *row_of_layer(struct table *table, int32_t layer)
{
    size_t row = 0;
    while (row < table->n && table->cells[row * COLUMNS].number != layer)
        row++;
    if (row == table->n)
        add_row(table, (struct cell[COLUMNS]){number_cell(layer)});
    return &table->cells[row * COLUMNS];
}

struct table *trace_beside(const struct trace *t, const struct trace_steps *s)
{
    static const struct column columns[COLUMNS] = {{"layer", "layer", CELL_COUNT, 8, 0},
                                                   {"tasks", "tasks", CELL_COUNT, 7, 0},
                                                   {"beside", "beside", CELL_COUNT, 8, 0},
                                                   {"none left", "none_left", CELL_COUNT, 9, 0},
                                                   {"next step", "next_step", CELL_COUNT, 9, 0},
                                                   {"ms/step", "ms_per_step", CELL_FIXED, 9, 3},
                                                   {"hidden", "hidden_ms_per_step", CELL_FIXED, 9, 3}};
    struct table *table = new_table(columns, COLUMNS);
    const double ms = 1e-6 * t->header.pace_scale / (double)s->counted;
    for (size_t i = 0; i < t->n_records; i++) {
        const struct trace_record *r = &t->records[i];
        const int32_t layer = t->tasks[r->task].layer;
        if (!is_cpu_update(t, r) || !trace_counts(t, s, i))
            continue;
        double added[COLUMNS] = {layer, [TASKS] = 1, [NONE_LEFT] = 1, [MS] = (double)(r->end - r->start)};
        for (uint32_t lane = 0; lane < t->header.n_lanes; lane++)
            if (t->lanes[lane].kind == LANE_COMPUTE)
                look_beside(t, r, &t->bars[lane], added);
        added[MS] *= ms;
        added[HIDDEN] *= ms;
        struct cell *sum = row_of_layer(table, layer);
        for (size_t c = TASKS; c < COLUMNS; c++)
            sum[c].number += added[c];
    }
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

/* ---- critical path --------------------------------------------------------------------------------------------- */

/* Of two records the one that ended later.  Either may be NONE. */
static int64_t later_end(const struct trace *t, int64_t a, int64_t b)
{
    if (a == NONE)
        return b;
    if (b == NONE)
        return a;
    return t->records[b].end > t->records[a].end ? b : a;
}

/* The record with which a step is done: of the step's records that end at `end` or before, the one that ends last. */
static int64_t find_last_record(const struct trace *t, uint32_t list, const struct trace_step *step, uint64_t end)
{
    int64_t last = NONE;
    size_t i;
    FIND_FIRST(i, t->n_records, t->records[i].start < step->start);
    for (; i < t->n_records && t->records[i].start <= step->end; i++) {
        const struct trace_record *r = &t->records[i];
        if (r->step == step->step && r->end <= end && t->tasks[r->task].list == list)
            last = later_end(t, last, (int64_t)i);
    }
    return last;
}

/* The predecessor of a record, by lane or by edge, that ended last.  It comes before `i` in the order of starts, so
 * that walking back comes to an end whatever the file says. */
static int64_t find_predecessor(const struct trace *t, int64_t i)
{
    const struct trace_record *r = &t->records[i];
    const struct bars *lane = &t->bars[t->tasks[r->task].lane];
    const struct trace_edge *edge;
    size_t bar = bar_of(t, (size_t)i);
    int64_t by_lane = bar > 0 ? (int64_t)lane->bar[bar - 1].record : NONE;
    int64_t by_edge = trace_last_producer(t, r->task, r->step, (size_t)i, &edge);
    return later_end(t, by_lane, by_edge);
}

struct trace_path trace_critical_path(const struct trace *t, const struct trace_steps *s, size_t step)
{
    const struct trace_step *here = &s->steps[step];
    struct trace_path path = {.step = here->step, .start = here->start, .end = done_of(here)};
    if (follows_directly(s, step) && done_of(here - 1) < path.end)
        path.start = done_of(here - 1);
    int64_t i = find_last_record(t, s->list, here, path.end);
    uint64_t to = path.end;
    while (i != NONE && to > path.start) {
        int64_t before = find_predecessor(t, i);
        uint64_t ready = path.start;
        if (before != NONE)
            ready = MAX(t->records[before].end, path.start);
        ready = MIN(ready, to); /* clocks of two devices may disagree a little: no time counts twice */
        uint64_t from = MIN(MAX(t->records[i].start, ready), to);
        *APPEND(path.hops, path.n, path.cap) = (struct trace_hop){(size_t)i, ready, from, to};
        to = ready;
        i = before;
    }
    return path;
}

/* The cells of the row with this name and lane, which is added where it is missing. */
static struct cell *row_of_part(struct table *table, const char *name, const char *lane)
{
    for (size_t row = 0; row < table->n; row++) {
        struct cell *c = &table->cells[row * PATH_COLUMNS];
        if (strcmp(c[PATH_NAME].text, name) == 0 && strcmp(c[PATH_LANE].text, lane) == 0)
            return c;
    }
    add_row(table, (struct cell[PATH_COLUMNS]){text_cell(name), text_cell(lane)});
    return &table->cells[(table->n - 1) * PATH_COLUMNS];
}

static void add_part(struct table *table, const char *name, const char *lane, uint64_t from, uint64_t to)
{
    if (to <= from)
        return;
    struct cell *c = row_of_part(table, name, lane);
    c[PATH_HOPS].number++;
    c[PATH_MS].number += (double)(to - from) / 1e6;
}

/* A hop waits for the host until the host has queued its task, and then for the device. */
struct table *trace_path_table(const struct trace *t, const struct trace_path *path, const char *heading)
{
    const struct column columns[PATH_COLUMNS] = {{heading, "task", CELL_TEXT, 24, 0},
                                                 {"lane", "lane", CELL_TEXT, 24, 0},
                                                 {"hops", "hops", CELL_COUNT, 6, 0},
                                                 {"ms", "ms", CELL_FIXED, 10, 3},
                                                 {"share", "share", CELL_SHARE, 6, 0}};
    struct table *table = new_table(columns, PATH_COLUMNS);
    for (size_t i = 0; i < path->n; i++) {
        const struct trace_hop *hop = &path->hops[i];
        const struct trace_record *r = &t->records[hop->record];
        const struct trace_task *task = &t->tasks[r->task];
        uint64_t queued = MIN(MAX(r->queued, hop->wait), hop->start);
        add_part(table, task->name, t->lanes[task->lane].name, hop->start, hop->end);
        add_part(table, "(not yet queued)", "", hop->wait, queued);
        add_part(table, "(queued, not started)", "", queued, hop->start);
    }
    for (size_t row = 0; row < table->n; row++) {
        struct cell *c = &table->cells[row * PATH_COLUMNS];
        c[PATH_SHARE].number = c[PATH_MS].number * 1e6 / (double)(path->end - path->start);
    }
    sort_table(table, PATH_MS);
    return table;
}
