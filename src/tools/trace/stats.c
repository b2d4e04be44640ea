/* stats.c - steps and critical path of a trace: what `yard trace` prints and the viewer shows. */
#include "tools/command/numbers.h"
#include "tools/command/table.h"
#include "trace.h"

#include <math.h>

/* ---- modelled time --------------------------------------------------------------------------------------------- */

static uint64_t modelled(const struct trace *t, uint64_t clock)
{
    uint64_t run = clock - trace_hold_before(t, clock), start = t->header.start_ns;
    double since = run > start ? (double)(run - start) : 0;
    return start + (uint64_t)fmin(since * t->header.pace_scale, 0x1p62);
}

struct trace *trace_open_modelled(const char *path)
{
    struct trace *t = trace_open(path);
    if (t->header.pace_scale == 1 && !t->n_holds)
        return t;
    for (size_t i = 0; i < t->n_records + t->n_unfinished; i++) {
        struct trace_record *r = i < t->n_records ? &t->records[i] : &t->unfinished[i - t->n_records];
        r->queued = modelled(t, r->queued);
        r->start = r->end ? modelled(t, r->start) : 0;
        r->end = r->end ? modelled(t, r->end) : 0;
    }
    t->header.pace_scale = 1;
    trace_index(t, 0);
    trace_hold(t, 0);
    return t;
}

const char *trace_kind_name(const struct trace *t)
{
    static const char *const names[] = {
        [TRACE_REAL] = "real", [TRACE_PACED] = "paced", [TRACE_SIMULATED] = "simulated"};
    return names[t->header.kind];
}

uint32_t trace_list(const struct trace *t, const char *path, const char *name)
{
    char *known = NULL;
    uint32_t list = 0, n = t->header.n_lists;
    for (; list < n && (name ? strcmp(t->header.list[list], name) != 0 : t->steps[list].n == 0); list++)
        append_text(&known, "%s%s", known ? ", " : "", t->header.list[list]);
    if (list == n && name)
        fail(EXIT_USAGE, "the trace %s has no task list \"%s\"; --list takes one of: %s", path, name,
             known ? known : "none");
    free(known);
    return list < n ? list : 0;
}

/* ---- steps ----------------------------------------------------------------------------------------------------- */

static uint64_t done_of(const struct trace_step *s) { return s->done ? s->done : s->end; }

/* Is the step one later than the one before it in the table? */
static bool follows(const struct trace_steps *s, size_t i)
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
    s.start = follows(&s, s.first) ? done_of(&s.steps[0]) : s.steps[s.first].start;
    s.start = MIN(s.start, s.end);
    return s;
}

bool trace_counts(const struct trace *t, const struct trace_steps *s, size_t record)
{
    const struct trace_record *r = &t->records[record];
    return s->counted && t->tasks[r->task].list == s->list && r->step >= s->steps[s->first].step &&
           r->step <= s->steps[s->first + s->counted - 1].step;
}

static double length_of(const struct trace_steps *s, size_t i) { return (double)(s->steps[i].end - s->steps[i].start); }

/* From where one step is done to where the next one is: what is written to the disk meanwhile, in the background,
 * may end long after the step behind it.  The distance has a sign all the same. */
static double period_of(const struct trace_steps *s, size_t i)
{
    uint64_t end = done_of(&s->steps[i]), from = i ? done_of(&s->steps[i - 1]) : 0;
    if (!follows(s, i))
        return length_of(s, i);
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

double trace_period_ns(const struct trace_steps *s) { return median_of_steps(s, period_of); }
double trace_length_ns(const struct trace_steps *s) { return median_of_steps(s, length_of); }

size_t trace_median_step(const struct trace_steps *s)
{
    double middle = trace_period_ns(s);
    size_t nearest = s->first;
    for (size_t i = s->first; i < s->first + s->counted; i++)
        if (fabs(period_of(s, i) - middle) < fabs(period_of(s, nearest) - middle))
            nearest = i;
    return nearest;
}

/* ---- beside the device ------------------------------------------------------------------------------------------- */

enum { LAYER, TASKS, BESIDE, NONE_LEFT, NEXT_STEP, MS, HIDDEN, COLUMNS };

/* What a compute lane does while record r runs, and whether it has anything left to do in r's step. */
static void look_beside(const struct trace *t, const struct trace_record *r, const struct bars *b, double one[COLUMNS])
{
    const struct trace_task *mine = &t->tasks[r->task];
    double ns = 0;
    for (size_t i = first_bar_in(b, r->start); i < b->n; i++) {
        const struct trace_record *w = &t->records[b->bar[i].record];
        const struct trace_task *k = &t->tasks[w->task];
        bool backward = has_role(t, k, "backward") || has_role(t, k, "update");
        bool later = backward && w->step == r->step && k->layer != mine->layer;
        bool next = (backward || has_role(t, k, "forward")) && w->step > r->step;
        if (k->list != mine->list || w->end == w->start || !(later || next))
            continue;
        if (later)
            one[NONE_LEFT] = 0;
        if (w->start >= r->end)
            break;
        one[later ? BESIDE : NEXT_STEP] = 1;
        ns += (double)(MIN(w->end, r->end) - MAX(w->start, r->start));
    }
    one[HIDDEN] = fmax(one[HIDDEN], ns);
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
        const struct trace_task *k = &t->tasks[r->task];
        if (t->lanes[k->lane].kind != LANE_CPU || !has_role(t, k, "update") || r->end == r->start ||
            !trace_counts(t, s, i))
            continue;
        double one[COLUMNS] = {k->layer, [TASKS] = 1, [NONE_LEFT] = 1, [MS] = (double)(r->end - r->start)};
        for (uint32_t lane = 0; lane < t->header.n_lanes; lane++)
            if (t->lanes[lane].kind == LANE_COMPUTE)
                look_beside(t, r, &t->bars[lane], one);
        size_t row = 0;
        while (row < table->n && table->cells[row * COLUMNS].number != k->layer)
            row++;
        if (row == table->n)
            add_row(table, (struct cell[COLUMNS]){number_cell(k->layer)});
        for (size_t c = TASKS; c < COLUMNS; c++)
            table->cells[row * COLUMNS + c].number += one[c] * (c < MS ? 1 : ms);
    }
    return table;
}

void print_beside(const struct table *beside)
{
    if (!beside->n)
        return;
    printf("\nupdates on the CPU: how many ran beside a later backward or update of a device, for how many\n"
           "none was left, as behind the last backward, and how many ran beside work of the next step");
    print_table(stdout, beside);
}

/* ---- critical path --------------------------------------------------------------------------------------------- */

static int64_t later_end(const struct trace *t, int64_t a, int64_t b)
{
    if (a == NO_RECORD || b == NO_RECORD)
        return a == NO_RECORD ? b : a;
    return t->records[b].end > t->records[a].end ? b : a;
}

struct trace_path trace_critical_path(const struct trace *t, const struct trace_steps *s, size_t step)
{
    const struct trace_step *here = &s->steps[step];
    struct trace_path path = {.step = here->step, .start = here->start, .end = done_of(here)};
    if (follows(s, step) && done_of(here - 1) < path.end)
        path.start = done_of(here - 1);
    uint64_t to = path.end;
    int64_t i = NO_RECORD; /* the record with which the step is done */
    size_t first;
    FIND_FIRST(first, t->n_records, t->records[first].start < here->start);
    for (const struct trace_record *r = &t->records[first]; r < t->records + t->n_records && r->start <= here->end; r++)
        if (r->step == here->step && r->end <= path.end && t->tasks[r->task].list == s->list)
            i = later_end(t, i, r - t->records);
    while (i != NO_RECORD && to > path.start) {
        /* The predecessor that ended last, by lane or by edge.  It comes before `i` in the order of starts, so that
         * walking back comes to an end whatever the file says. */
        const struct trace_record *r = &t->records[i];
        const struct trace_edge *edge;
        size_t bar = bar_of(t, (size_t)i);
        int64_t before = later_end(t, bar ? (int64_t)t->bars[t->tasks[r->task].lane].bar[bar - 1].record : NO_RECORD,
                                   trace_last_producer(t, r->task, r->step, (size_t)i, &edge));
        uint64_t ready = before == NO_RECORD ? path.start : MAX(t->records[before].end, path.start);
        ready = MIN(ready, to); /* clocks of two devices may disagree a little: no time counts twice */
        uint64_t from = MIN(MAX(r->start, ready), to);
        *APPEND(path.hops, path.n, path.cap) = (struct trace_hop){(size_t)i, ready, from, to};
        to = ready;
        i = before;
    }
    return path;
}

enum { NAME, LANE, HOPS, PATH_MS, SHARE, PATH_COLUMNS };

static void add_part(struct table *table, const char *name, const char *lane, uint64_t from, uint64_t to)
{
    struct cell *c = table->cells;
    if (to <= from)
        return;
    while (c < table->cells + table->n * PATH_COLUMNS && (strcmp(c[NAME].text, name) || strcmp(c[LANE].text, lane)))
        c += PATH_COLUMNS;
    if (c == table->cells + table->n * PATH_COLUMNS) {
        add_row(table, (struct cell[PATH_COLUMNS]){text_cell(name), text_cell(lane)});
        c = &table->cells[(table->n - 1) * PATH_COLUMNS];
    }
    c[HOPS].number++;
    c[PATH_MS].number += (double)(to - from) / 1e6;
}

/* What a hop waited for: the host, which had not queued it, or the device. */
struct table *trace_path_table(const struct trace *t, const struct trace_path *path, const char *heading)
{
    static struct column columns[PATH_COLUMNS] = {{NULL, "task", CELL_TEXT, 24, 0},
                                                  {"lane", "lane", CELL_TEXT, 24, 0},
                                                  {"hops", "hops", CELL_COUNT, 6, 0},
                                                  {"ms", "ms", CELL_FIXED, 10, 3},
                                                  {"share", "share", CELL_SHARE, 6, 0}};
    struct table *table = new_table(columns, PATH_COLUMNS);
    columns[NAME].heading = heading;
    for (const struct trace_hop *hop = path->hops; hop < path->hops + path->n; hop++) {
        const struct trace_record *r = &t->records[hop->record];
        const struct trace_task *task = &t->tasks[r->task];
        uint64_t at = MIN(MAX(r->queued, hop->wait), hop->from);
        add_part(table, task->name, t->lanes[task->lane].name, hop->from, hop->to);
        add_part(table, "(not yet queued)", "", hop->wait, at);
        add_part(table, "(queued, not started)", "", at, hop->from);
    }
    for (struct cell *c = table->cells; c < table->cells + table->n * PATH_COLUMNS; c += PATH_COLUMNS)
        c[SHARE].number = c[PATH_MS].number * 1e6 / (double)(path->end - path->start);
    sort_table(table, PATH_MS);
    return table;
}
