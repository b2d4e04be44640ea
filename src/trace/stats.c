/* stats.c - steps, lane use and critical path of a trace: what `yard trace` prints and the viewer shows. */
#include "trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b) { return COMPARE(*(const double *)a, *(const double *)b); }

double trace_median(double *values, size_t n)
{
    if (n == 0)
        return 0;
    qsort(values, n, sizeof *values, by_value);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/* ---- modelled time --------------------------------------------------------------------------------------------- */

static uint64_t modelled(const struct trace_header *h, uint64_t ns)
{
    double since = ns > h->start_ns ? (double)(ns - h->start_ns) : 0;
    return h->start_ns + (uint64_t)fmin(since * h->pace_scale, 0x1p62);
}

static void modelled_records(const struct trace_header *h, struct trace_record *records, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct trace_record *r = &records[i];
        r->queued = modelled(h, r->queued);
        if (r->end) {
            r->start = modelled(h, r->start);
            r->end = modelled(h, r->end);
        }
    }
}

void trace_to_modelled_time(struct trace *t)
{
    if (t->header.pace_scale == 1)
        return;
    modelled_records(&t->header, t->records, t->n_records);
    modelled_records(&t->header, t->unfinished, t->n_unfinished);
    t->header.pace_scale = 1;
}

struct trace *trace_open_modelled(const char *path)
{
    struct trace *t = trace_open(path);
    trace_to_modelled_time(t);
    return t;
}

const char *trace_kind_name(const struct trace *t)
{
    static const char *const names[] = {
        [TRACE_REAL] = "real", [TRACE_PACED] = "paced", [TRACE_SIMULATED] = "simulated"};
    return names[t->header.kind];
}

static uint32_t named_list(const struct trace *t, const char *path, const char *name)
{
    char known[COUNT(t->header.list) * (sizeof t->header.list[0] + 2)] = "";
    for (uint32_t i = 0; i < t->header.n_lists; i++) {
        if (strcmp(t->header.list[i], name) == 0)
            return i;
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", t->header.list[i]);
    }
    fail(EXIT_USAGE, "the trace %s has no task list \"%s\"; --list takes one of: %s", path, name, known);
}

uint32_t trace_list(const struct trace *t, const char *path, const char *name)
{
    if (name)
        return named_list(t, path, name);
    uint32_t list = t->n_records ? UINT32_MAX : 0;
    for (size_t i = 0; i < t->n_records; i++)
        list = MIN(list, t->tasks[t->records[i].task].list);
    return list;
}

/* ---- steps ----------------------------------------------------------------------------------------------------- */

static int by_step(const void *a, const void *b)
{
    return COMPARE(((const struct trace_step *)a)->step, ((const struct trace_step *)b)->step);
}

/* Each record of the list as a step of its own, sorted, then those of the same step made one. */
static void collect_steps(const struct trace *t, struct trace_steps *s)
{
    s->steps = allocate(t->n_records, sizeof *s->steps);
    size_t n = 0;
    for (size_t i = 0; i < t->n_records; i++) {
        const struct trace_record *r = &t->records[i];
        bool background = t->lanes[t->tasks[r->task].lane].kind == LANE_DISK;
        if (t->tasks[r->task].list == s->list)
            s->steps[n++] = (struct trace_step){r->step, r->start, r->end, background ? 0 : r->end};
    }
    if (n)
        qsort(s->steps, n, sizeof *s->steps, by_step);
    for (size_t i = 0; i < n; i++) {
        const struct trace_step *one = &s->steps[i];
        struct trace_step *last = s->n ? &s->steps[s->n - 1] : NULL;
        if (last && last->step == one->step)
            *last = (struct trace_step){last->step, MIN(last->start, one->start), MAX(last->end, one->end),
                                        MAX(last->done, one->done)};
        else
            s->steps[s->n++] = *one;
    }
    for (size_t i = 0; i < s->n; i++)
        s->steps[i].done = s->steps[i].done ? s->steps[i].done : s->steps[i].end;
}

/* Is the step one later than the one before it in the table? */
static bool follows(const struct trace_steps *s, size_t i)
{
    return i > 0 && s->steps[i].step == s->steps[i - 1].step + 1;
}

struct trace_steps trace_steps_of(const struct trace *t, uint32_t list)
{
    struct trace_steps s = {.list = list};
    collect_steps(t, &s);
    size_t whole = s.n;
    while (whole > 1 && s.steps[whole - 1].step > t->whole_step)
        whole--;
    s.first = whole > 1;
    s.counted = whole - s.first;
    if (s.counted == 0)
        return s;
    for (size_t i = s.first; i < whole; i++)
        s.end = MAX(s.end, s.steps[i].end);
    s.start = follows(&s, s.first) ? s.steps[0].end : s.steps[s.first].start;
    s.start = MIN(s.start, s.end);
    return s;
}

void trace_steps_free(struct trace_steps *s) { free(s->steps); }

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
    uint64_t end = s->steps[i].done, from = i ? s->steps[i - 1].done : 0;
    if (!follows(s, i))
        return length_of(s, i);
    return end >= from ? (double)(end - from) : -(double)(from - end);
}

static double median_of_steps(const struct trace_steps *s, double (*of)(const struct trace_steps *, size_t))
{
    double *values = allocate(s->counted, sizeof *values);
    for (size_t i = 0; i < s->counted; i++)
        values[i] = of(s, s->first + i);
    double middle = trace_median(values, s->counted);
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

/* ---- lanes ----------------------------------------------------------------------------------------------------- */

struct border { /* where a record starts or ends */
    uint64_t at;
    uint32_t lane;
    int change; /* +1 or -1 */
};

static int by_time(const void *a, const void *b)
{
    return COMPARE(((const struct border *)a)->at, ((const struct border *)b)->at);
}

/* The borders of the list's records, cut to the window, in order of time. */
static struct border *collect_borders(const struct trace *t, const struct trace_steps *s, size_t *n)
{
    struct border *borders = allocate(2 * t->n_records, sizeof *borders);
    *n = 0;
    for (size_t i = 0; i < t->n_records; i++) {
        const struct trace_record *r = &t->records[i];
        const struct trace_task *k = &t->tasks[r->task];
        uint64_t start = MAX(r->start, s->start), end = MIN(r->end, s->end);
        if (k->list != s->list || start >= end)
            continue;
        borders[(*n)++] = (struct border){start, k->lane, +1};
        borders[(*n)++] = (struct border){end, k->lane, -1};
    }
    if (*n)
        qsort(borders, *n, sizeof *borders, by_time);
    return borders;
}

/* Lanes of one kind and device are one group, named by its first lane. */
static uint32_t group_of(const struct trace *t, uint32_t lane)
{
    for (uint32_t i = 0; i < lane; i++)
        if (t->lanes[i].kind == t->lanes[lane].kind && t->lanes[i].device_index == t->lanes[lane].device_index)
            return i;
    return lane;
}

/* Which lanes are busy between two borders. */
struct sweep {
    uint32_t *group; /* [lanes] */
    int *in_lane;    /* [lanes] records running there */
    int *in_group;   /* [lanes] records running in the group */
    int groups;      /* groups with a record */
    uint32_t *busy;  /* lanes with a record, in no order */
    uint32_t n_busy;
};

static struct sweep make_sweep(const struct trace *t)
{
    uint32_t n = t->header.n_lanes;
    struct sweep w = {.group = allocate(n, sizeof *w.group),
                      .in_lane = allocate(n, sizeof *w.in_lane),
                      .in_group = allocate(n, sizeof *w.in_group),
                      .busy = allocate(n, sizeof *w.busy)};
    for (uint32_t i = 0; i < n; i++)
        w.group[i] = group_of(t, i);
    return w;
}

static void free_sweep(struct sweep *w)
{
    free(w->group);
    free(w->in_lane);
    free(w->in_group);
    free(w->busy);
}

static void leave_busy(struct sweep *w, uint32_t lane)
{
    for (uint32_t i = 0; i < w->n_busy; i++)
        if (w->busy[i] == lane) {
            w->busy[i] = w->busy[--w->n_busy];
            return;
        }
}

static void cross(struct sweep *w, const struct border *b)
{
    int *in_lane = &w->in_lane[b->lane], *in_group = &w->in_group[w->group[b->lane]];
    bool lane_was = *in_lane > 0, group_was = *in_group > 0;
    *in_lane += b->change;
    *in_group += b->change;
    w->groups += (*in_group > 0) - group_was;
    if (*in_lane > 0 && !lane_was)
        w->busy[w->n_busy++] = b->lane;
    else if (*in_lane <= 0 && lane_was)
        leave_busy(w, b->lane);
}

void trace_lane_use(const struct trace *t, const struct trace_steps *s, struct trace_use *use)
{
    size_t n;
    struct border *borders = collect_borders(t, s, &n);
    struct sweep w = make_sweep(t);
    memset(use, 0, t->header.n_lanes * sizeof *use);
    for (size_t i = 0; i < n; i++) {
        double since = i ? (double)(borders[i].at - borders[i - 1].at) : 0;
        for (uint32_t k = 0; k < w.n_busy && since > 0; k++) {
            use[w.busy[k]].busy_ns += since;
            use[w.busy[k]].overlapped_ns += w.groups > 1 ? since : 0;
        }
        cross(&w, &borders[i]);
    }
    free_sweep(&w);
    free(borders);
}

/* ---- index: the records of a task and step --------------------------------------------------------------------- */

struct entry {
    uint32_t task, step;
    uint64_t record;
};
struct trace_index {
    struct entry *entries; /* sorted */
    size_t n;
};

static int by_task(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    int order = COMPARE(a->task, b->task);
    order = order ? order : COMPARE(a->step, b->step);
    return order ? order : COMPARE(a->record, b->record);
}

struct trace_index *trace_index(const struct trace *t)
{
    struct trace_index *x = allocate(1, sizeof *x);
    x->n = t->n_records;
    x->entries = allocate(x->n, sizeof *x->entries);
    for (size_t i = 0; i < x->n; i++)
        x->entries[i] = (struct entry){t->records[i].task, t->records[i].step, i};
    qsort(x->entries, x->n, sizeof *x->entries, by_task);
    return x;
}

void trace_index_free(struct trace_index *x)
{
    free(x->entries);
    free(x);
}

int64_t trace_find(const struct trace_index *x, uint32_t task, uint32_t step, size_t before)
{
    struct entry key = {task, step, before};
    size_t low = 0, high = x->n; /* the first entry that is not less than the key is in [low, high] */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (by_task(&x->entries[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || x->entries[low - 1].task != task || x->entries[low - 1].step != step)
        return NO_RECORD;
    return (int64_t)x->entries[low - 1].record;
}

/* ---- critical path --------------------------------------------------------------------------------------------- */

/* For each record the one before it on its lane, or NO_RECORD. */
static int64_t *previous_on_lanes(const struct trace *t)
{
    int64_t *previous = allocate(t->n_records, sizeof *previous);
    int64_t *last = allocate(t->header.n_lanes, sizeof *last);
    for (size_t i = 0; i < t->header.n_lanes; i++)
        last[i] = NO_RECORD;
    for (size_t i = 0; i < t->n_records; i++) {
        uint32_t lane = t->tasks[t->records[i].task].lane;
        previous[i] = last[lane];
        last[lane] = (int64_t)i;
    }
    free(last);
    return previous;
}

static int64_t later_end(const struct trace *t, int64_t a, int64_t b)
{
    if (a == NO_RECORD || b == NO_RECORD)
        return a == NO_RECORD ? b : a;
    return t->records[b].end > t->records[a].end ? b : a;
}

/* The predecessor of record `i` that ended last.  It comes before `i` in the order of starts, so that walking back
 * comes to an end whatever the file says. */
static int64_t last_predecessor(const struct trace *t, const struct trace_index *x, const int64_t *previous, size_t i)
{
    const struct trace_record *r = &t->records[i];
    const struct trace_task *k = &t->tasks[r->task];
    int64_t last = previous[i];
    for (uint32_t e = k->first_edge; e < k->first_edge + k->n_edges; e++) {
        const struct trace_edge *edge = &t->edges[e];
        last = later_end(t, last, trace_find(x, edge->from, r->step - (edge->previous_step != 0), i));
    }
    return last;
}

/* The record with which the step is done. */
static int64_t last_of_step(const struct trace *t, const struct trace_steps *s, const struct trace_step *step)
{
    int64_t last = NO_RECORD;
    for (size_t i = 0; i < t->n_records; i++)
        if (t->records[i].step == step->step && t->records[i].end <= step->done &&
            t->tasks[t->records[i].task].list == s->list)
            last = later_end(t, last, (int64_t)i);
    return last;
}

struct trace_path trace_critical_path(const struct trace *t, const struct trace_steps *s, const struct trace_index *x,
                                      size_t step)
{
    const struct trace_step *here = &s->steps[step];
    struct trace_path path = {.step = here->step, .start = here->start, .end = here->done};
    if (follows(s, step) && s->steps[step - 1].done < here->done)
        path.start = s->steps[step - 1].done;
    int64_t *previous = previous_on_lanes(t);
    uint64_t to = path.end;
    for (int64_t i = last_of_step(t, s, here); i != NO_RECORD && to > path.start;) {
        int64_t before = last_predecessor(t, x, previous, (size_t)i);
        uint64_t ready = before == NO_RECORD ? path.start : MAX(t->records[before].end, path.start);
        ready = MIN(ready, to); /* clocks of two devices may disagree a little: no time counts twice */
        uint64_t from = MIN(MAX(t->records[i].start, ready), to);
        *APPEND(path.hops, path.n, path.cap) = (struct trace_hop){(size_t)i, ready, from, to};
        to = ready;
        i = before;
    }
    free(previous);
    return path;
}
