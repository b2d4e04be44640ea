/* details.c - the text about a task, or about the step. */
#include "pick.h"
#include "planning/console/numbers.h"

#include <inttypes.h>
#include <math.h>

void format_axis(const struct view *view, char out[AXIS_TEXT], double at, double apart)
{
    bool seconds = view->sight.to - view->sight.from >= 1e10;
    int digits = seconds ? 9 : 6;
    int decimals = (int)fmin(fmax(ceil(digits - log10(apart) - 0.01), 0), digits);
    double shown = at / pow(10, digits);
    bool zero = fabs(shown) < 0.5 * pow(10, -decimals); /* it is written without a minus */
    snprintf(out, 48, "%.*f %s", decimals, zero ? 0 : shown, seconds ? "s" : "ms");
}

/* "2.42 GFLOP", "85.5 GB/s" */
static char *format_amount(char out[NUMBER_TEXT], double amount, const char *unit)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    size_t i = 0;
    for (; i + 1 < COUNT(prefixes) && amount >= 999.5; i++)
        amount /= 1000;
    snprintf(out, NUMBER_TEXT, "%.*f %s%s", decimals_of(amount, 2), amount, prefixes[i], unit);
    return out;
}

/* Appends "2.42 GFLOP: 85.5 GFLOP/s (7 % of peak)   ". */
static void put_work(char **text, const char *amount, double rate, const char *unit, double peak)
{
    char per_second[NUMBER_TEXT];
    append_text(text, "%s", amount);
    if (rate > 0)
        append_text(text, ": %s", format_amount(per_second, rate, unit));
    if (peak > 0)
        append_text(text, " (%.0f %% of peak)", 100 * rate / peak);
    append_text(text, "   ");
}

/* ---- a task ------------------------------------------------------------------------------------------------------ */

/* Appends "waited 1.20 ms for dw L3 on 0:0 compute (link); launch took 3.00 us".  Time in which the viewer paused the
 * trainer does not count. */
static void put_gap(char **text, const struct track *track, const struct trace_gap *gap)
{
    const struct trace *trace = track->trace;
    for (int i = 0; i < GAP_PARTS; i++) {
        enum cause cause = gap->cause[i];
        uint64_t from = gap->at[i], to = gap->at[i + 1];
        uint64_t paused = paused_before(trace, to) - paused_before(trace, from);
        uint64_t ns = to - from - paused;
        char time[NUMBER_TEXT];
        if (ns == 0)
            continue;
        format_ns(time, (double)ns * trace->header.pace_scale);
        append_text(text, from > gap->at[0] ? "; " : "   ");
        if (cause == CAUSE_NOTHING) {
            append_text(text, "nothing to do for %s", time);
        } else if (cause == CAUSE_HOST) {
            append_text(text, "waited %s for the host", time);
        } else if (cause == CAUSE_LAUNCH) {
            append_text(text, "launch took %s", time);
        } else {
            const struct trace_task *blocker = &trace->tasks[trace->records[gap->blocker].task];
            append_text(text, "waited %s for %s", time, blocker->name);
            if (blocker->layer >= 0)
                append_text(text, " L%d", blocker->layer);
            append_text(text, " on %s (%s)", track->purpose[blocker->lane], cause_name[cause]);
        }
    }
}

/* The first line: "mlp.fc   layer 3   forward   on 0:0 compute   step 2" */
static void put_identity(char **text, const struct track *track, const struct trace_record *record)
{
    const struct trace *trace = track->trace;
    const struct trace_task *task = &trace->tasks[record->task];
    append_text(text, "%s", task->name);
    if (task->layer >= 0)
        append_text(text, "   layer %d", task->layer);
    if (task->micro >= 0)
        append_text(text, "   micro-batch %d", task->micro);
    const char *kind = kind_name(trace, kind_of_task(trace, task));
    if (strcmp(task->name, kind) != 0)
        append_text(text, "   %s", kind);
    append_text(text, "   on %s   step %" PRIu32, track->purpose[task->lane], record->step);
}

/* Appends a time on the axis.  It has as many decimals as the length of its task. */
static void put_time(const struct view *view, char **text, const char *what, double at, double length)
{
    char time[AXIS_TEXT];
    format_axis(view, time, at, fmax(length / 1000, 1));
    append_text(text, "\n\t%s\t%s", what, time);
}

/* Appends "mlp.fc · layer 3 · micro-batch 0". */
static void put_name(char **text, const struct trace_task *task)
{
    append_text(text, "%s", task->name);
    if (task->layer >= 0)
        append_text(text, " · layer %d", task->layer);
    if (task->micro >= 0)
        append_text(text, " · micro-batch %d", task->micro);
}

/* Appends from when to when, and how long. */
static void put_times(const struct view *view, char **text, double from, double to)
{
    char part[NUMBER_TEXT];
    put_time(view, text, "from", from, to - from);
    put_time(view, text, "to", to, to - from);
    append_text(text, "\n\tlasts\t%s", format_ns(part, to - from));
}

/* Appends what was waited for, unless the gap is empty. */
static void put_causes(char **text, const struct track *track, const struct trace_gap *gap, const char *what)
{
    char *causes = NULL;
    put_gap(&causes, track, gap);
    if (causes)
        append_text(text, "\n\t%s\t%s", what, causes + strspn(causes, " "));
    free(causes);
}

struct trace_gap gap_before(const struct view *view, const struct pick *pick)
{
    const struct trace *trace = view->tracks[pick->track]->trace;
    const struct trace_task *task = &trace->tasks[pick->copy.task];
    return gap_before_bar(trace, &trace->bars[task->lane], bar_of(trace, (size_t)pick->record));
}

char *describe_gap(const struct view *view, const struct pick *after)
{
    const struct track *track = view->tracks[after->track];
    const struct trace_task *task = &track->trace->tasks[after->copy.task];
    const struct trace_gap gap = gap_before(view, after);
    char *text = copy_string("idle");
    append_text(&text, "\n\tlane\t%s", track->purpose[task->lane]);
    put_times(view, &text, axis_of(track, gap.at[0]), axis_of(track, gap.at[GAP_PARTS]));
    put_causes(&text, track, &gap, "cause");
    append_text(&text, "\n\tthen\t");
    put_name(&text, task);
    return text;
}

char *describe_briefly(const struct view *view, const struct pick *pick)
{
    const struct track *track = view->tracks[pick->track];
    const struct trace *trace = track->trace;
    const struct trace_record *record = &pick->copy;
    const struct trace_task *task = &trace->tasks[record->task];
    int64_t device = track->receiver[record->task];
    const struct trace_gap gap = gap_before(view, pick);
    char part[NUMBER_TEXT];
    char *text = NULL;
    put_name(&text, task);
    append_text(&text, "\n\tlane\t%s", track->purpose[task->lane]);
    if (device != NONE)
        append_text(&text, " → %s", trace->devices[device].id);
    put_times(view, &text, axis_of(track, record->start), axis_of(track, record->end));
    if (task->bytes > 0)
        append_text(&text, "\n\tbytes\t%s", format_bytes(part, (double)task->bytes));
    put_causes(&text, track, &gap, "before");
    return text;
}

/* "512x1024 <- 512x256, 1024x256" becomes "writes 512x1024   reads 512x256, 1024x256   ".  Where the text ends with its
 * field, it has been cut. */
static void put_shapes(char **text, const struct trace_task *task)
{
    static const char arrow[] = "<- ";
    const char *shape = task->shape, *reads = strstr(shape, arrow);
    bool cut = strlen(shape) + 1 == sizeof task->shape;
    int n = reads ? (int)(reads - shape) : (int)strlen(shape);
    if (n > 0)
        append_text(text, "writes %.*s%s", n, shape, reads ? "  " : "");
    if (reads)
        append_text(text, "reads %s", reads + strlen(arrow));
    append_text(text, "%s   ", cut ? "…" : "");
}

/* Appends "predicted 2.00 ms (measured +5.0 %)", or from three times the prediction on "(45 times as long)". */
static void put_prediction(char **text, double ns, double predicted)
{
    double times = ns / predicted;
    char part[NUMBER_TEXT];
    append_text(text, "   predicted %s", format_ns(part, predicted));
    if (times >= 3)
        append_text(text, " (%.*f times as long)", times < 9.95 ? 1 : 0, times);
    else
        append_text(text, " (measured %+.1f %%)", 100 * (times - 1));
}

char *describe_record(const struct track *track, size_t nth)
{
    const struct trace *trace = track->trace;
    const struct trace_record *record = &trace->records[nth];
    const struct trace_task *task = &trace->tasks[record->task];
    const struct trace_lane *lane = &trace->lanes[task->lane];
    double scale = trace->header.pace_scale;
    double ns = (double)(record->end - record->start) * scale;
    double per_s = ns > 0 ? 1e9 / ns : 0;
    double predicted = trace->header.kind == TRACE_SIMULATED ? 0 : task->predicted_ns;
    char part[NUMBER_TEXT];
    char *text = NULL;
    put_identity(&text, track, record);

    append_text(&text, "\n%s", format_ns(part, ns));
    if (predicted > 0)
        put_prediction(&text, ns, predicted);
    if (record->start > record->queued)
        append_text(&text, "   queued %s before", format_ns(part, (double)(record->start - record->queued) * scale));
    struct trace_gap gap = gap_before_bar(trace, &trace->bars[task->lane], bar_of(trace, nth));
    put_gap(&text, track, &gap);
    if (record->flags & TRACE_APPROXIMATE)
        append_text(&text, "   times approximate");

    append_text(&text, "\n");
    if (task->shape[0])
        put_shapes(&text, task);
    if (task->flops > 0)
        put_work(&text, format_amount(part, task->flops, "FLOP"), task->flops * per_s, "FLOP/s", lane->flops_per_s);
    if (task->bytes > 0)
        put_work(&text, format_bytes(part, (double)task->bytes), (double)task->bytes * per_s, "B/s", lane->bytes_per_s);
    return text;
}

/* ---- the step ---------------------------------------------------------------------------------------------------- */

char *describe_step(const struct view *view)
{
    char text[NUMBER_TEXT];
    char *all = NULL;
    for (int i = 0; i < view->n_tracks; i++) {
        const struct trace_step *step = find_step(view->tracks[i], view->sight.anchor);
        append_text(&all, all && step ? "   " : "");
        if (step && is_unfinished(view->tracks[i], step))
            append_text(&all, "%sstep %" PRIu32 " has not ended", name_of_track(view, i), step->step);
        else if (step)
            append_text(&all, "%sstep %" PRIu32 ": %s", name_of_track(view, i), step->step,
                        format_ns(text, step_ns(view->tracks[i], step)));
    }
    append_text(&all, "\n");
    if (view->still)
        return all;
    append_text(&all, "click a task for its edges, c: critical path, k: other colours, h: all keys");
    if (view->layout.rows_height > places_of(view).rows.h) /* one trace, or two of very many lanes */
        append_text(&all, "\nup, down: more rows%s", view->hide_memory ? "" : ", m: without memory");
    return all;
}

/* While a task is dragged, others under the mouse do not count. */
bool is_hovered(const struct view *view) { return is_picked(&view->mouse.hover) && view->mouse.drag != DRAG_TASK; }

char *new_details(const struct view *view)
{
    const struct pick after_gap = pick_after_gap(view);
    const struct pick *pick = is_hovered(view) ? &view->mouse.hover : &view->selection.task;
    if (is_picked(&after_gap) && view->mouse.drag != DRAG_TASK) {
        char *task = describe_record(view->tracks[after_gap.track], (size_t)after_gap.record);
        char *text = format_string("idle, then   %s", task);
        free(task);
        return text;
    }
    if (is_picked(pick))
        return describe_record(view->tracks[pick->track], (size_t)pick->record);
    return describe_step(view);
}

int count_details_lines(const struct view *view)
{
    enum { MOST = 3 };
    int n = 0;
    if (!view->still || view->mouse.x != OFF_WINDOW)
        return MOST;
    char *text = new_details(view);
    const char *at = text;
    while (*at) {
        n++;
        at += strcspn(at, "\n");
        if (*at)
            at++;
    }
    free(text);
    if (view->message[0])
        n++;
    return MIN(n, MOST);
}
