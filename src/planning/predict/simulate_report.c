/* simulate_report.c - a simulation for people, as JSON, and as a trace like a real one. */
#include "forecast.h"
#include "planning/console/table.h"
#include "planning/trace/list_tables.h"
#include "planning/trace/stats.h"

#include <math.h>

/* ---- as a trace -------------------------------------------------------------------------------------------------- */

static double simulated_ns(void *context, const struct task *task)
{
    const double *seconds = context;
    return 1e9 * seconds[task->index];
}

/* The time in nanoseconds.  The clock begins at 1, since 0 stands for no time in a trace. */
static uint64_t trace_clock(double seconds) { return 1 + (uint64_t)(1e9 * seconds); }

/* The task has a start: it was run to its end, or was under way when the simulation ended. */
static bool has_started(const struct simulation *simulation, uint32_t iteration, const struct moment *moment)
{
    if (moment->skipped)
        return false;
    return moment->end > 0 || iteration < (uint32_t)simulation->steps;
}

/* Records in order of issue.  A task is queued when all that it waits for is there, the host too: what is left up to
 * its start is its lane's gap. */
static struct trace *simulated_trace(const struct simulation *simulation, int steps, const char *model)
{
    struct list *list = (struct list *)simulation->list; /* only its place in the trace's table is set */
    struct trace_about about = {.model = model,
                                .kind = TRACE_SIMULATED,
                                .pace_scale = 1,
                                .predicted = simulated_ns,
                                .context = simulation->seconds};
    struct trace *trace = new_trace_of_lists(list->pool->machine, &list, 1, &about);
    trace->records = allocate((size_t)steps * list->n, sizeof *trace->records);
    for (uint32_t iteration = 0; iteration < (uint32_t)steps; iteration++)
        for (uint32_t i = 0; i < list->n; i++) {
            const struct moment *moment = &simulation->moments[iteration * list->n + i];
            if (!has_started(simulation, iteration, moment))
                continue;
            trace->records[trace->n_records++] =
                (struct trace_record){.step = iteration + 1,
                                      .task = i,
                                      .queued = trace_clock(moment->start - list->tasks[i]->lane->gap_seconds),
                                      .start = trace_clock(moment->start),
                                      .end = trace_clock(fmax(moment->start, moment->end))};
        }
    return trace;
}

void write_simulation(const struct simulation *simulation, const char *path, const char *model)
{
    struct trace *trace = simulated_trace(simulation, simulation->steps, model);
    struct trace_writer *writer = open_trace_writer(path, trace, MIN(trace->n_records, (size_t)TRACE_RING));
    for (const struct trace_record *record = trace->records; record < trace->records + trace->n_records; record++)
        end_trace_record(writer, begin_trace_record(writer, record->step, record->task, record->queued), record->start,
                         record->end, 0);
    close_trace_writer(writer);
    free_trace(trace);
}

static void write_tried(void *path, const struct simulation *simulation)
{
    write_simulation(simulation, path, "a list in an edit");
}

void show_list(const struct list *list, const struct costs *costs, char *path)
{
    struct forecast forecast = forecast_list_within(list, costs, INFINITY, write_tried, path);
    free_forecast(&forecast);
}

/* The trace with its indices: what lanes do, and what tensors hold. */
static struct trace *indexed_trace(const struct simulation *simulation)
{
    struct trace *trace = simulated_trace(simulation, simulation->begun, "");
    trace->whole_step = (uint32_t)simulation->steps;
    sort_records(trace->records, trace->n_records);
    index_trace(trace, 0);
    update_memory_use(trace, 0);
    return trace;
}

size_t *simulated_peaks(const struct simulation *simulation)
{
    struct trace *trace = indexed_trace(simulation);
    size_t *peak = allocate(trace->header.n_devices, sizeof *peak);
    for (uint32_t nth = 0; nth < trace->header.n_devices; nth++)
        peak[nth] = most_bytes_held(&trace->memory_use[nth]);
    free_trace(trace);
    return peak;
}

/* What lanes do in the steady pattern, as of any trace.  A pattern that has repeated is looked at once before the
 * end: there what comes after it is known too. */
static struct lane_use *new_steady_uses(const struct simulation *simulation, const struct trace *trace)
{
    double length = simulation->pattern * simulation->period;
    double end = simulation->end;
    if (simulation->settled && simulation->first >= simulation->pattern)
        end -= length;
    struct trace_steps window = {
        .counted = (size_t)simulation->pattern, .start = trace_clock(fmax(end - length, 0)), .end = trace_clock(end)};
    return new_lane_uses(trace, &window);
}

/* The critical path of the step with the median period in the steady pattern. */
static struct table *path_table(const struct simulation *simulation, const struct trace *trace)
{
    struct trace_steps steps = steps_of_list(trace, 0);
    size_t counted_end = steps.first + steps.counted;
    steps.counted = MIN((size_t)simulation->pattern, counted_end);
    steps.first = counted_end - steps.counted;
    struct trace_path path = find_critical_path(trace, &steps, find_median_step(&steps));
    struct table *table = new_path_table(trace, &path, "critical path, simulated");
    free(path.hops);
    return table;
}

/* ---- for people -------------------------------------------------------------------------------------------------- */

static void print_period(FILE *out, const struct simulation *simulation, const struct costs *costs)
{
    if (costs)
        print_line(out, "simulated step: %.3f ms, from %s %s: times of %zu tasks measured, %zu scaled, %zu modelled",
                   1e3 * simulation->period, costs->measured ? "profile" : "hardware", costs->label,
                   simulation->by_source[COST_MEASURED], simulation->by_source[COST_SCALED],
                   simulation->by_source[COST_MODELLED]);
    else
        print_line(out, "simulated step: %.3f ms, from the times of %zu task%s in the list", 1e3 * simulation->period,
                   simulation->by_source[COST_GIVEN], PLURAL(simulation->by_source[COST_GIVEN]));
    if (!simulation->settled)
        print_line(out, "the times of %d steps did not repeat: these are means of the last %d", simulation->steps,
                   simulation->pattern);
    else if (simulation->pattern > 1)
        print_line(out, "mean of the steady pattern, which is %d steps long", simulation->pattern);
}

/* Prints what the device holds at most: in list order, or by the clock, where lanes run ahead of the list's order. */
static void print_peak(FILE *out, const struct device *device, size_t high_in_list, size_t high_by_clock)
{
    char in_list[NUMBER_TEXT], by_clock[NUMBER_TEXT], budget[NUMBER_TEXT] = "none";
    format_bytes(in_list, (double)high_in_list);
    format_bytes(by_clock, (double)high_by_clock);
    if (device->budget < NO_LIMIT)
        format_bytes(budget, (double)device->budget);
    char *most;
    if (strcmp(in_list, by_clock) == 0)
        most = copy_string(in_list);
    else if (high_by_clock > high_in_list)
        most = format_string("%s, in list order %s", by_clock, in_list);
    else
        most = format_string("%s, by the clock %s", in_list, by_clock);
    print_line(out, "%-24s holds at most %s, budget %s", device->id, most, budget);
    free(most);
}

void print_simulation(FILE *out, const struct simulation *simulation, const struct costs *costs)
{
    const struct machine *machine = simulation->list->pool->machine;
    struct trace *trace = indexed_trace(simulation);
    struct lane_use *uses = new_steady_uses(simulation, trace);
    struct table *path = path_table(simulation, trace);
    print_period(out, simulation, costs);
    print_lane_uses(out, "lane, simulated", uses, trace->header.n_lanes);
    fputc('\n', out);
    for (int i = 0; i <= machine->n_devices; i++)
        print_peak(out, &machine->devices[i], simulation->list->extra.peak_total[i],
                   most_bytes_held(&trace->memory_use[i]));
    print_top(out, path, PATH_MS);
    free_table(path);
    free(uses);
    free_trace(trace);
}

/* ---- as data ----------------------------------------------------------------------------------------------------- */

json_t *simulation_json(const struct simulation *simulation)
{
    static const char *const source_name[COST_SOURCES] = {
        [COST_MEASURED] = "measured", [COST_SCALED] = "scaled", [COST_MODELLED] = "modelled", [COST_GIVEN] = "given"};
    const struct machine *machine = simulation->list->pool->machine;
    json_t *busy = json_object();
    struct trace *trace = indexed_trace(simulation);
    struct table *path = path_table(simulation, trace);
    struct lane_use *uses = new_steady_uses(simulation, trace);
    json_t *held = json_object();
    for (int i = 0; i < machine->n_lanes; i++)
        json_object_set_new(busy, machine->lanes[i]->name, json_real(simulation->busy[i] / simulation->period));
    for (int i = 0; i <= machine->n_devices; i++)
        set_json_integer(held, machine->devices[i].id, (json_int_t)most_bytes_held(&trace->memory_use[i]));
    json_t *all = json_object();
    set_json_text(all, "kind", "simulated");
    json_object_set_new(all, "step_ms", json_real(1e3 * simulation->period));
    set_json_integer(all, "pattern", simulation->pattern);
    set_json_truth(all, "settled", simulation->settled);
    json_object_set_new(all, "busy", busy);
    json_object_set_new(all, "held", held);
    json_object_set_new(all, "lanes", lane_uses_json(uses, trace->header.n_lanes));
    json_object_set_new(all, "critical_path", table_json(path));
    json_t *tasks = json_object();
    for (int source = 0; source < COST_SOURCES; source++)
        set_json_integer(tasks, source_name[source], (json_int_t)simulation->by_source[source]);
    json_object_set_new(all, "tasks", tasks);
    free(uses);
    free_table(path);
    free_trace(trace);
    return all;
}
