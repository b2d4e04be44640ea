/* swap_report.c - reports the gaps that are swapped or made again, to people and to `plan --json`.
 *
 * Times count from the steady step's first task, which may run while the step before still does.  Two kinds of tasks do
 * not count as the first one: those that prepare the step's batch, a step early, and those that skip this step.
 */
#include "swap_parts.h"
#include "trainer/base/json.h"

#include <math.h>

struct gap_times { /* one gap's, in seconds; NAN: the time is not known, or there is no such task */
    double out_start, out_end, in_start, in_end; /* the copies' */
    double needed;                               /* start of the first task that reads the tensor that came back */
};

/* When the steady step's first task starts. */
static double start_of_step(const struct forecast *forecast)
{
    double first = 0;
    if (!forecast->spans)
        return first;
    for (size_t i = 0; i < forecast->n; i++)
        if (forecast->tasks[i]->role != ROLE_FEED && forecast->tasks[i]->extra.when.every <= 1)
            first = fmin(first, forecast->spans[i].start);
    return first;
}

/* The first use of a tensor that came back is the copy.  The first use of one that is made again is the repeated task;
 * where there are several, the last makes the tensor whole.  A task that reads the tensor follows in either case, since
 * for it the tensor is back. */
static void fill_return(struct gap_times *times, const struct fate *fate, const struct forecast *forecast,
                        const struct uses *uses)
{
    const struct use_range found = uses_of(uses, fate->back);
    CHECK(found.n >= 2, "nobody reads %s, which is back", fate->back->name);
    size_t last = 0; /* the use that makes the tensor whole */
    if (fate->action == REMAKE_TENSOR)
        while (last + 2 < found.n && (found.uses[last + 1].mode & ACCESS_WRITE))
            last++;
    times->in_start = forecast->spans[found.uses[0].position].start;
    times->in_end = forecast->spans[found.uses[last].position].end;
    times->needed = forecast->spans[found.uses[last + 1].position].start;
}

static struct gap_times times_of_gap(const struct fate *fate, const struct forecast *forecast, const struct uses *uses)
{
    struct gap_times times = {.out_start = NAN, .out_end = NAN, .in_start = NAN, .in_end = NAN, .needed = NAN};
    if (forecast->spans && fate->copy_out) {
        times.out_start = forecast->spans[fate->copy_out->index].start;
        times.out_end = forecast->spans[fate->copy_out->index].end;
    }
    if (forecast->spans && fate->back)
        fill_return(&times, fate, forecast, uses);
    return times;
}

static json_t *move_json(const struct fate *fate, const struct gap_times *times, double zero)
{
    const struct gap *gap = fate->gap;
    const char *action = fate->action == SWAP_TENSOR ? "swap" : "recompute";
    json_t *move = json_object();
    set_json_text(move, "tensor", gap->tensor->name);
    set_json_integer(move, "layer", gap->maker->layer);
    set_json_integer(move, "micro", gap->maker->micro);
    set_json_text(move, "device", gap->device->id);
    set_json_integer(move, "bytes", (json_int_t)gap->tensor->bytes);
    set_json_text(move, "how", action);
    json_object_set_new(move, "out_start_ms", milliseconds_json(times->out_start - zero));
    json_object_set_new(move, "out_end_ms", milliseconds_json(times->out_end - zero));
    json_object_set_new(move, "in_start_ms", milliseconds_json(times->in_start - zero));
    json_object_set_new(move, "in_end_ms", milliseconds_json(times->in_end - zero));
    json_object_set_new(move, "needed_ms", milliseconds_json(times->needed - zero));
    return move;
}

static json_t *moves_json(const struct gaps *gaps, const struct fate *fates, const struct forecast *forecast)
{
    struct uses *uses = new_uses(forecast->tasks, forecast->n, gaps->list->pool);
    double zero = start_of_step(forecast);
    json_t *moves = json_array();
    for (const struct fate *fate = fates; fate < fates + gaps->n; fate++) {
        if (!fate->copy_out && !fate->back)
            continue;
        struct gap_times times = times_of_gap(fate, forecast, uses);
        json_array_append_new(moves, move_json(fate, &times, zero));
    }
    free_uses(uses);
    return moves;
}

static json_t *peaks_json(const struct gaps *gaps, const struct forecast *forecast)
{
    const struct machine *machine = gaps->list->pool->machine;
    json_t *peaks = json_object();
    for (int i = 0; i <= machine->n_devices; i++) {
        json_int_t before = (json_int_t)gaps->bare.needed_bytes[i], after = (json_int_t)forecast->needed_bytes[i];
        json_object_set_new(peaks, machine->devices[i].id, json_pack("{s:I, s:I}", "before", before, "after", after));
    }
    return peaks;
}

static char *sum_up(const struct fate *fates, size_t n)
{
    size_t n_swapped = 0, n_remade = 0;
    double copied = 0;
    char bytes[NUMBER_TEXT];
    for (const struct fate *fate = fates; fate < fates + n; fate++) {
        double bytes_of_x = (double)fate->gap->tensor->bytes;
        if (fate->action == SWAP_TENSOR && fate->copy_out)
            copied += bytes_of_x;
        if (fate->action == SWAP_TENSOR && fate->back) {
            n_swapped++;
            copied += bytes_of_x;
        }
        if (fate->action == REMAKE_TENSOR && fate->back)
            n_remade++;
    }
    return format_string("%zu swapped, %zu made again, %s copied", n_swapped, n_remade, format_bytes(bytes, copied));
}

void report_gaps(const struct gaps *gaps, const struct fate *fates, const struct costs *costs, const char *why_kept,
                 struct pass_report *report)
{
    report->after = keep_forecast(forecast_list(gaps->list, costs));
    const struct forecast *forecast = report->after;
    double bare = gaps->bare.period, stall = forecast->period - fmin(forecast->period, bare);
    report->reason = why_kept ? copy_string(why_kept) : sum_up(fates, gaps->n);
    report->fields =
        json_pack("{s:o, s:o}", "moves", moves_json(gaps, fates, forecast), "peak_bytes", peaks_json(gaps, forecast));
    report_ms(report, "stall_ms", why_kept ? ONLY_IN_JSON : "stall", stall);
    report_ms(report, "bare_ms", ONLY_IN_JSON, bare);
    report_ms(report, "period_ms", ONLY_IN_JSON, forecast->period);
}
