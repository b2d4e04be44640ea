/* snapshot_report.c - the report of snapshots: what is stored, which iterations are recoverable in the simulation, from
 * when on, and what to change.
 */
#include "planning/predict/forecast.h"
#include "snapshot_parts.h"

#include <math.h>

/* ---- which iterations are stored, and when ----------------------------------------------------------------------- */

struct outcome {        /* what becomes of an iteration; all in seconds */
    double begin;       /* the start of its first copy; INFINITY: it is dropped */
    double recoverable; /* the end of its last persist; the page is written then, too */
    double durable;     /* the end of its commit, whose time is that of the flush */
};

/* The outcome of iteration i, from 1.  The last simulation->pattern simulated iterations repeat for ever (see
 * simulate_pattern.c).  So an iteration that was not simulated is as one that was, some rounds of the pattern
 * earlier. */
static struct outcome outcome_at(const struct simulation *simulation, int iteration)
{
    struct outcome outcome = {.begin = INFINITY};
    int beyond = MAX(iteration - simulation->steps, 0);
    int rounds = (beyond + simulation->pattern - 1) / simulation->pattern;
    const struct moment *moments =
        &simulation->moments[(size_t)(iteration - rounds * simulation->pattern - 1) * simulation->list->n];
    double shift = rounds * simulation->pattern * simulation->period;
    for (size_t i = 0; i < simulation->list->n; i++) {
        const struct task *task = simulation->list->tasks[i];
        const struct moment *moment = &moments[i];
        if (!is_of_snapshot(task) || moment->skipped)
            continue;
        outcome.begin = fmin(outcome.begin, moment->start + shift);
        if (is_commit(task))
            outcome.durable = moment->end + shift;
        else if (is_persist(task))
            outcome.recoverable = moment->end + shift;
    }
    return outcome;
}

/* The longest time from the end of an update to the end of the copies for which the unit's next update waits.  In the
 * list the copies come right after the update, which is thus the last task before them.  Where the update skips an
 * iteration, the time begins with the copies. */
static double longest_hold(const struct simulation *simulation)
{
    const struct moment *moments = &simulation->moments[(size_t)simulation->first * simulation->list->n];
    const struct moment *update = moments;
    double hold = 0;
    for (size_t i = 0; i < (size_t)simulation->pattern * simulation->list->n; i++) {
        const struct task *task = simulation->list->tasks[i % simulation->list->n];
        if (!is_of_snapshot(task)) {
            update = &moments[i];
        } else if (is_copy(task) && !task->extra.slot.aside && !moments[i].skipped) {
            double from = update->skipped ? moments[i].start : update->end;
            hold = fmax(hold, moments[i].end - from);
        }
    }
    return hold;
}

/* ---- sentences --------------------------------------------------------------------------------------------------- */

struct times_report { /* the argument of report_times() */
    struct pass_report *pass;
    const struct snapshot_options *options;
    const struct costs *costs;
    double other_period; /* the period with copies in the other place; seconds */
};

/* A quotient of times that should be 3 may come out as 3.0000000001.  So this is subtracted before it is rounded up. */
static const double WHOLE_ENOUGH = 1e-6;

struct store_seconds { /* what each needs for all that one iteration stores */
    double disk, links;
};

/* The end of a sentence on dropped iterations: how often an iteration can be stored without any being dropped.  The
 * caller frees it. */
static char *advise(const struct times_report *times_report, const struct simulation *simulation,
                    struct store_seconds needed, const struct outcome *first)
{
    int under_way = times_report->options->slots - 1; /* iterations at a time: the newest commit keeps one slot */
    if (!under_way)
        return copy_string(": the newest commit holds the only slot");
    /* From one stored iteration to the next, in seconds: the disk and the links must be done with the one before, and a
     * slot must be free. */
    double apart = fmax(fmax(needed.disk, needed.links), (first->durable - first->begin) / under_way);
    double advised = fmax(ceil(apart / fmin(simulation->period, times_report->other_period) - WHOLE_ENOUGH), 1);
    const char *slower = needed.disk < needed.links ? "links keep" : "disk keeps";
    if (advised > MOST_EVERY)
        return format_string("; the %s up with one step in %.0f, and --snapshot-every takes at most %d", slower,
                             advised, MOST_EVERY);
    return format_string("; the %s up with --snapshot-every %.0f", slower, advised);
}

static void add_commits(const struct snapshot_options *options, const struct simulation *simulation, json_t *commits,
                        json_t *dropped)
{
    for (int i = options->every; i <= options->iterations; i += options->every) {
        struct outcome outcome = outcome_at(simulation, i);
        if (isfinite(outcome.begin))
            json_array_append_new(commits, json_pack("{s:i, s:f, s:f}", "iteration", i, "written_ms",
                                                     1e3 * outcome.recoverable, "durable_ms", 1e3 * outcome.durable));
        else
            json_array_append_new(dropped, json_integer(i));
    }
}

static struct store_seconds sum_seconds(const struct simulation *simulation)
{
    struct store_seconds needed = {0, 0};
    for (size_t i = 0; i < simulation->list->n; i++) {
        const struct task *task = simulation->list->tasks[i];
        if (is_persist(task) || is_commit(task))
            needed.disk += simulation->seconds[i];
        else if (is_of_snapshot(task) && task->lane->kind != LANE_COMPUTE)
            needed.links += simulation->seconds[i];
    }
    return needed;
}

/* Adds to the report what the simulation says of commits: a simulation_look, argument: struct times_report. */
static void report_times(void *argument, const struct simulation *simulation)
{
    const struct times_report *times_report = argument;
    const struct snapshot_options *options = times_report->options;
    struct pass_report *report = times_report->pass;
    json_t *dropped = json_object_get(report->fields, "dropped");
    struct outcome first = outcome_at(simulation, options->every);
    struct store_seconds needed = sum_seconds(simulation);
    add_commits(options, simulation, json_object_get(report->fields, "commits"), dropped);
    if (needed.disk > 0 && (!times_report->costs || simulation->list->pool->machine->host->extra.described.disk))
        report_fact(report, format_string("the disk needs %.3f ms for them", 1e3 * needed.disk));
    else
        report_fact(report, copy_string("no link disk says how fast the disk is, so it counts as if it took no time"));
    report_fact(report, format_string("step %d is recoverable after %.3f ms, durable after %.3f ms", options->every,
                                      1e3 * first.recoverable, 1e3 * first.durable));
    char *text =
        format_string("%zu of %d steps dropped", json_array_size(dropped), options->iterations / options->every);
    if (json_array_size(dropped))
        append_string(&text, advise(times_report, simulation, needed, &first));
    report_fact(report, text);
    report_ms(report, "held_ms", "the next update is held for at most", longest_hold(simulation));
}

/* Bytes that are stored in each slot, and the ways by which they come there. */
struct ways {
    size_t updates;
    double bytes;     /* all that an iteration stores */
    double on_device; /* size of the devices' buffers, for all slots */
    double chosen;    /* bytes that go straight to the host: --overlap local decides in the step who updates them */
    double on_host;   /* bytes that are on the host when they are updated */
};

/* Adds up the bytes of all tasks that store something. */
static struct ways measure_ways(const struct list *list)
{
    struct ways ways = {.updates = 0};
    for (size_t i = 0; i < list->n; i++) {
        const struct task *task = list->tasks[i];
        if (!is_of_snapshot(task) || is_commit(task))
            continue;
        /* A persist has its buffer as its first access. */
        const struct tensor *tensor = is_persist(task) ? task->accesses[0].tensor : copy_source(task);
        if (is_persist(task)) {
            ways.updates++;
            ways.bytes += (double)tensor->bytes;
        } else if (task->lane->kind == LANE_COMPUTE) {
            ways.on_device += list->pool->slots.n * (double)round_up(tensor->bytes, tensor->device->alignment);
        } else if (tensor->device->is_host && !task->extra.condition.needs) {
            ways.on_host += (double)tensor->bytes;
        } else if (!tensor->device->is_host && task->extra.condition.needs) {
            ways.chosen += (double)tensor->bytes;
        }
    }
    return ways;
}

/* Says which bytes go by way of the device under --snapshot-in device. */
static void describe_place(const struct ways *ways, struct pass_report *report)
{
    char bytes[NUMBER_TEXT];
    if (ways->on_device > 0)
        append_text(&report->reason, ", by way of %s on the device", format_bytes(bytes, ways->on_device));
    else
        report_fact(report, copy_string("--snapshot-in device has no effect here"));
    if (ways->chosen > 0)
        report_fact(report, format_string("%s go straight to the host, since --overlap local decides in the step who "
                                          "updates them",
                                          format_bytes(bytes, ways->chosen)));
    if (ways->on_host > 0)
        report_fact(report,
                    format_string("%s are on the host when they are updated", format_bytes(bytes, ways->on_host)));
}

/* The fields of the report, of which those that a forecast tells are still empty. */
static json_t *fields_before_forecast(const struct ways *ways)
{
    json_t *fields = json_object();
    json_object_set_new(fields, "commits", json_array());
    json_object_set_new(fields, "dropped", json_array());
    set_json_text(fields, "in", ways->on_device > 0 ? "device" : "host");
    set_json_integer(fields, "device_bytes", (json_int_t)ways->on_device);
    json_object_set_new(fields, "held_ms", json_null());
    return fields;
}

void report_snapshot(struct list *list, const struct costs *costs, const struct run_facts *facts, double other_period,
                     struct pass_report *report)
{
    const struct snapshot_options *options = &asked_snapshot;
    bool in_device = options->place == IN_DEVICE;
    const struct ways ways = measure_ways(list);
    struct times_report times_report = {
        .pass = report, .options = options, .costs = costs, .other_period = other_period};
    char bytes[NUMBER_TEXT];
    report->fields = fields_before_forecast(&ways);
    if (!ways.updates) {
        report->reason =
            copy_string("nothing can be stored, since the list has no update whose gradient its own device has summed");
        return;
    }
    report->reason = format_string("%s of %zu updates into each of %d slots of %s", format_bytes(bytes, ways.bytes),
                                   ways.updates, options->slots, options->file);
    if (in_device)
        describe_place(&ways, report);
    report->after = keep_forecast(forecast_list_within(list, costs, INFINITY, report_times, &times_report));
    if (facts->clipped)
        report_fact(report, copy_string("--clip holds all updates until the last backward has ended, so nothing is "
                                        "stored before; --clip 0 stores each layer right after its backward"));
    if (in_device && !forecast_fits(report->after))
        fail_too_large(list->pool->machine, report->after, "--snapshot-in device", facts, SAME_LIST);
    report_ms(report, "host_ms", "with copies in the host a step takes",
              in_device ? other_period : report->after->period);
    report_ms(report, "device_ms", "on the device", in_device ? report->after->period : other_period);
}
