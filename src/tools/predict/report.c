/* report.c - a simulation for people, as JSON, and as a trace like a real one. */
#include "forecast.h"
#include "tools/command/table.h"
#include "tools/trace/tables.h"

#include <math.h>

/* ---- as a trace -------------------------------------------------------------------------------------------------- */

static double simulated_ns(void *context, const struct task *t)
{
    const struct simulation *sim = context;
    return 1e9 * sim->seconds[t->index];
}

static uint64_t trace_clock(double seconds) { return 1 + (uint64_t)(1e9 * seconds); }

/* The task has a start: it was run to its end, or was under way when the simulation ended. */
static bool has_started(const struct simulation *sim, uint32_t iteration, const struct moment *m)
{
    if (m->skipped)
        return false;
    return m->end > 0 || iteration < (uint32_t)sim->steps;
}

/* Records in order of issue.  A task is queued when all that it waits for is there, the host too: what is left up to
 * its start is its lane's gap. */
static struct trace *simulated_trace(const struct simulation *sim, int steps, const char *model)
{
    struct step *s = (struct step *)sim->step; /* only its place in the trace's table is set */
    struct trace_about about = {
        .model = model, .kind = TRACE_SIMULATED, .pace_scale = 1, .predicted = simulated_ns, .context = (void *)sim};
    struct trace *t = trace_tables(s->pool->machine, &s, 1, &about);
    t->records = allocate((size_t)steps * s->n, sizeof *t->records);
    for (uint32_t iteration = 0; iteration < (uint32_t)steps; iteration++)
        for (uint32_t i = 0; i < s->n; i++) {
            const struct moment *m = &sim->moments[iteration * s->n + i];
            if (!has_started(sim, iteration, m))
                continue;
            t->records[t->n_records++] =
                (struct trace_record){.step = iteration + 1,
                                      .task = i,
                                      .queued = trace_clock(m->start - s->task[i]->lane->gap_seconds),
                                      .start = trace_clock(m->start),
                                      .end = trace_clock(fmax(m->start, m->end))};
        }
    return t;
}

void write_simulation(const struct simulation *sim, const char *path, const char *model)
{
    struct trace *t = simulated_trace(sim, sim->steps, model);
    struct trace_writer *w = trace_create(path, t, MIN(t->n_records, (size_t)TRACE_RING));
    for (const struct trace_record *r = t->records; r < t->records + t->n_records; r++)
        trace_end(w, trace_begin(w, r->step, r->task, r->queued), r->start, r->end, 0);
    trace_close(w);
    trace_free(t);
}

static void write_tried(void *path, const struct simulation *sim) { write_simulation(sim, path, "a list in an edit"); }

void show_list(const struct step *s, const struct costs *c, char *path)
{
    struct forecast f = try_list(s, c, INFINITY, write_tried, path);
    free_forecast(&f);
}

/* The trace with its indices: what lanes do, and what tensors hold. */
static struct trace *indexed_trace(const struct simulation *sim)
{
    struct trace *t = simulated_trace(sim, sim->begun, "");
    t->whole_step = (uint32_t)sim->steps;
    trace_sort(t->records, t->n_records);
    trace_index(t, 0);
    trace_update_memory(t, 0);
    return t;
}

size_t *simulated_peaks(const struct simulation *sim)
{
    struct trace *t = indexed_trace(sim);
    size_t *peak = allocate(t->header.n_devices, sizeof *peak);
    for (uint32_t d = 0; d < t->header.n_devices; d++)
        peak[d] = trace_peak(&t->memory_use[d]);
    trace_free(t);
    return peak;
}

/* Tells what lanes do in the steady pattern, as of any trace.  A pattern that has repeated is looked at once before the
 * end: there what comes after it is known too. */
static json_t *lanes_json(const struct simulation *sim, const struct trace *t)
{
    double length = sim->pattern * sim->period;
    double end = sim->end;
    if (sim->settled && sim->first >= sim->pattern)
        end -= length;
    struct trace_steps window = {
        .counted = (size_t)sim->pattern, .start = trace_clock(fmax(end - length, 0)), .end = trace_clock(end)};
    return trace_lanes_json(t, &window);
}

/* The critical path of the step with the median period in the steady pattern. */
static struct table *path_table(const struct simulation *sim, const struct trace *t)
{
    struct trace_steps s = trace_steps_of(t, 0);
    size_t counted_end = s.first + s.counted;
    s.counted = MIN((size_t)sim->pattern, counted_end);
    s.first = counted_end - s.counted;
    struct trace_path path = trace_critical_path(t, &s, trace_median_step(&s));
    struct table *table = trace_path_table(t, &path, "critical path, simulated");
    free(path.hops);
    return table;
}

/* ---- for people -------------------------------------------------------------------------------------------------- */

static void print_period(FILE *out, const struct simulation *sim, const struct costs *c)
{
    if (c)
        print_line(out, "simulated step: %.3f ms, from %s %s: times of %zu tasks measured, %zu scaled, %zu modelled",
                   1e3 * sim->period, c->measured ? "profile" : "hardware", c->path, sim->by_source[COST_MEASURED],
                   sim->by_source[COST_SCALED], sim->by_source[COST_MODELLED]);
    else
        print_line(out, "simulated step: %.3f ms, from the times of %zu tasks in the list", 1e3 * sim->period,
                   sim->by_source[COST_GIVEN]);
    if (!sim->settled)
        print_line(out, "the times of %d steps did not repeat: these are means of the last %d", sim->steps,
                   sim->pattern);
    else if (sim->pattern > 1)
        print_line(out, "mean of the steady pattern, which is %d steps long", sim->pattern);
}

/* Prints what the device holds at most: in list order, or by the clock, where lanes run ahead of the list's order. */
static void print_peak(FILE *out, const struct device *d, size_t high_in_list, size_t high_by_clock)
{
    char in_list[32], by_clock[32], budget[32] = "none";
    format_bytes(in_list, (double)high_in_list);
    format_bytes(by_clock, (double)high_by_clock);
    if (d->budget < NO_LIMIT)
        format_bytes(budget, (double)d->budget);
    char *most;
    if (strcmp(in_list, by_clock) == 0)
        most = copy_string(in_list);
    else if (high_by_clock > high_in_list)
        most = format_string("%s, in list order %s", by_clock, in_list);
    else
        most = format_string("%s, by the clock %s", in_list, by_clock);
    print_line(out, "%-24s holds at most %s, budget %s", d->id, most, budget);
    free(most);
}

void print_simulation(FILE *out, const struct simulation *sim, const struct costs *c)
{
    const struct machine *m = sim->step->pool->machine;
    struct trace *t = indexed_trace(sim);
    json_t *lanes = lanes_json(sim, t);
    struct table *path = path_table(sim, t);
    print_period(out, sim, c);
    print_lane_use(out, "lane, simulated", lanes);
    fputc('\n', out);
    for (int d = 0; d <= m->n_devices; d++)
        print_peak(out, &m->device[d], sim->step->peak_total[d], trace_peak(&t->memory_use[d]));
    print_top(out, path, PATH_MS);
    free_table(path);
    json_decref(lanes);
    trace_free(t);
}

/* ---- as data --------------------------------------------------------------------------------------------------- */

json_t *simulation_json(const struct simulation *sim)
{
    static const char *const source_name[COST_SOURCES] = {"measured", "scaled", "modelled", "given"};
    const struct machine *m = sim->step->pool->machine;
    json_t *busy = json_object();
    struct trace *t = indexed_trace(sim);
    struct table *path = path_table(sim, t);
    json_t *held = json_object();
    for (int i = 0; i < m->n_lanes; i++)
        json_object_set_new(busy, m->lane[i]->name, json_real(sim->busy[i] / sim->period));
    for (int d = 0; d <= m->n_devices; d++)
        json_object_set_new(held, m->device[d].id, json_integer((json_int_t)trace_peak(&t->memory_use[d])));
    json_t *all = json_pack("{s:s, s:f, s:i, s:b, s:o, s:o, s:o, s:o, s:{}}", "kind", "simulated", "step_ms",
                            1e3 * sim->period, "pattern", sim->pattern, "settled", sim->settled, "busy", busy, "held",
                            held, "lanes", lanes_json(sim, t), "critical_path", table_json(path), "tasks");
    json_t *tasks = json_object_get(all, "tasks");
    for (int source = 0; source < COST_SOURCES; source++)
        json_object_set_new(tasks, source_name[source], json_integer((json_int_t)sim->by_source[source]));
    free_table(path);
    trace_free(t);
    return all;
}
