/* details.c - the text about a task, or about the step. */
#include "pick.h"

#include <inttypes.h>
#include <math.h>

/* How many decimals a number is shown with: `most` below 10, one less from there on, two less from 100 on. */
static int decimals_of(double size, int most)
{
    if (size >= 99.95)
        return most - 2;
    return size >= 9.995 ? most - 1 : most;
}

char *format_ns(char out[32], double ns)
{
    static const char *const units[] = {"ns", "µs", "ms", "s"};
    size_t i = 0;
    for (; i + 1 < COUNT(units) && fabs(ns) >= 999.95; i++)
        ns /= 1000;
    int decimals = 0;
    if (i > 0 && fabs(ns) < 999.5)
        decimals = decimals_of(fabs(ns), 3);
    snprintf(out, 32, "%.*f %s", decimals, ns, units[i]);
    return out;
}

void format_axis(const struct view *v, char out[48], double at, double apart)
{
    const bool seconds = v->sight.to - v->sight.from >= 1e10;
    const int digits = seconds ? 9 : 6;
    const int decimals = (int)fmin(fmax(ceil(digits - log10(apart) - 0.01), 0), digits);
    const double shown = at == 0 ? 0 : at / pow(10, digits); /* no -0 */
    snprintf(out, 48, "%.*f %s", decimals, shown, seconds ? "s" : "ms");
}

/* "2.42 GFLOP", "85.5 GB/s" */
static char *format_amount(char out[32], double x, const char *unit)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    size_t i = 0;
    for (; i + 1 < COUNT(prefixes) && x >= 999.5; i++)
        x /= 1000;
    snprintf(out, 32, "%.*f %s%s", decimals_of(x, 2), x, prefixes[i], unit);
    return out;
}

/* Appends "2.42 GFLOP: 85.5 GFLOP/s (7 % of peak)   ". */
static void put_work(char **text, const char *amount, double rate, const char *unit, double peak)
{
    char per_second[32];
    append_text(text, "%s", amount);
    if (rate > 0)
        append_text(text, ": %s", format_amount(per_second, rate, unit));
    if (peak > 0)
        append_text(text, " (%.0f %% of peak)", 100 * rate / peak);
    append_text(text, "   ");
}

/* ---- a task ---------------------------------------------------------------------------------------------------- */

/* Appends "waited 1.20 ms for dw L3 on 0:0 compute (link); launch took 3.00 us". */
static void put_gap(char **text, const struct trace *t, const struct trace_gap *gap)
{
    for (int i = 0; i < GAP_PARTS; i++) {
        const enum cause cause = gap->cause[i];
        const uint64_t from = gap->at[i], to = gap->at[i + 1];
        char time[32];
        if (from == to)
            continue;
        format_ns(time, (double)(to - from) * t->header.pace_scale);
        append_text(text, from > gap->at[0] ? "; " : "   ");
        if (cause == CAUSE_NOTHING) {
            append_text(text, "nothing to do for %s", time);
        } else if (cause == CAUSE_HOST) {
            append_text(text, "waited %s for the host", time);
        } else if (cause == CAUSE_LAUNCH) {
            append_text(text, "launch took %s", time);
        } else {
            const struct trace_task *blocker = &t->tasks[t->records[gap->blocker].task];
            append_text(text, "waited %s for %s", time, blocker->name);
            if (blocker->layer >= 0)
                append_text(text, " L%d", blocker->layer);
            append_text(text, " on %s (%s)", t->lanes[blocker->lane].name, cause_name[cause]);
        }
    }
}

/* The first line: "mlp.fc   layer 3   forward   on 0:0 compute   step 2" */
static void put_identity(char **text, const struct trace *t, const struct trace_record *r)
{
    const struct trace_task *task = &t->tasks[r->task];
    append_text(text, "%s", task->name);
    if (task->layer >= 0)
        append_text(text, "   layer %d", task->layer);
    if (task->micro >= 0)
        append_text(text, "   micro-batch %d", task->micro);
    if (strcmp(task->name, t->header.role[task->role]) != 0)
        append_text(text, "   %s", t->header.role[task->role]);
    append_text(text, "   on %s   step %" PRIu32, t->lanes[task->lane].name, r->step);
}

/* Appends a time on the axis.  It has as many decimals as the length of its task. */
static void put_time(const struct view *v, char **text, const char *what, double at, double length)
{
    char time[48];
    format_axis(v, time, at, fmax(length / 1000, 1));
    append_text(text, "\n\t%s\t%s", what, time);
}

char *describe_briefly(const struct view *v, const struct pick *p)
{
    const struct track *track = v->track[p->track];
    const struct trace *t = track->trace;
    const struct trace_record *r = &p->copy;
    const struct trace_task *task = &t->tasks[r->task];
    const int64_t device = track->receiver[r->task];
    const double from = axis_of(track, r->start), to = axis_of(track, r->end);
    char part[32], *gap_text = NULL, *text = copy_string(task->name);
    if (task->layer >= 0)
        append_text(&text, " · layer %d", task->layer);
    if (task->micro >= 0)
        append_text(&text, " · micro-batch %d", task->micro);
    append_text(&text, "\n\tlane\t%s", t->lanes[task->lane].name);
    if (device != NONE)
        append_text(&text, " → %s", t->devices[device].id);
    put_time(v, &text, "from", from, to - from);
    put_time(v, &text, "to", to, to - from);
    append_text(&text, "\n\tlasts\t%s", format_ns(part, to - from));
    if (task->bytes > 0)
        append_text(&text, "\n\tbytes\t%s", format_bytes(part, (double)task->bytes));
    struct trace_gap gap = trace_gap_of_bar(t, &t->bars[task->lane], bar_of(t, (size_t)p->record));
    put_gap(&gap_text, t, &gap);
    if (gap_text)
        append_text(&text, "\n\tbefore\t%s", gap_text + strspn(gap_text, " "));
    free(gap_text);
    return text;
}

/* "512x1024 <- 512x256, 1024x256" becomes "writes 512x1024   reads 512x256, 1024x256   ".  Where the text ends with its
 * field, it has been cut. */
static void put_shapes(char **text, const struct trace_task *task)
{
    static const char arrow[] = "<- ";
    const char *shape = task->shape, *reads = strstr(shape, arrow);
    const bool cut = strlen(shape) + 1 == sizeof task->shape;
    const int n = reads ? (int)(reads - shape) : (int)strlen(shape);
    if (n > 0)
        append_text(text, "writes %.*s%s", n, shape, reads ? "  " : "");
    if (reads)
        append_text(text, "reads %s", reads + strlen(arrow));
    append_text(text, "%s   ", cut ? "…" : "");
}

char *describe_record(const struct trace *t, size_t record)
{
    const struct trace_record *r = &t->records[record];
    const struct trace_task *task = &t->tasks[r->task];
    const struct trace_lane *lane = &t->lanes[task->lane];
    const double scale = t->header.pace_scale;
    const double ns = (double)(r->end - r->start) * scale;
    const double per_s = ns > 0 ? 1e9 / ns : 0;
    const double predicted = t->header.kind == TRACE_SIMULATED ? 0 : task->predicted_ns;
    char part[32], *text = NULL;
    put_identity(&text, t, r);

    append_text(&text, "\n%s", format_ns(part, ns));
    if (predicted > 0)
        append_text(&text, "   predicted %s (measured %+.1f %%)", format_ns(part, predicted),
                    100 * (ns / predicted - 1));
    if (r->start > r->queued)
        append_text(&text, "   queued %s before", format_ns(part, (double)(r->start - r->queued) * scale));
    struct trace_gap gap = trace_gap_of_bar(t, &t->bars[task->lane], bar_of(t, record));
    put_gap(&text, t, &gap);
    if (r->flags & TRACE_APPROXIMATE)
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

/* ---- the step -------------------------------------------------------------------------------------------------- */

/* Nothing is under the mouse and nothing selected: describes the anchor step, and what the user can do next. */
char *describe_step(const struct view *v)
{
    char text[32], *all = NULL;
    for (int i = 0; i < v->n_tracks; i++) {
        const struct trace_step *s = find_step(v->track[i], v->sight.anchor);
        append_text(&all, all && s ? "   " : "");
        if (s && is_unfinished(v->track[i], s))
            append_text(&all, "%sstep %" PRIu32 " has not ended", name_of_track(v, i), s->step);
        else if (s)
            append_text(&all, "%sstep %" PRIu32 ": %s", name_of_track(v, i), s->step,
                        format_ns(text, step_ns(v->track[i], s)));
    }
    append_text(&all, "\n");
    if (v->still)
        return all;
    append_text(&all, "click a task for its edges, c: critical path, k: other colours, h: all keys");
    if (v->layout.rows_height > places_of(v).rows.h) /* one trace, or two of very many lanes */
        append_text(&all, "\nup, down: more rows");
    return all;
}

/* The text about the gap under the mouse, or else about the task there or the selected one, or else about the step.
 * The caller frees it. */
char *find_details(const struct view *v)
{
    const struct pick after_gap = pick_after_gap(v);
    const struct pick *p = is_picked(&v->mouse.hover) ? &v->mouse.hover : &v->selection.task;
    if (!is_picked(&v->mouse.hover) && is_picked(&after_gap) && v->mouse.drag != DRAG_TASK) {
        char *task = describe_record(v->track[after_gap.track]->trace, (size_t)after_gap.record);
        char *text = format_string("idle, then   %s", task);
        free(task);
        return text;
    }
    if (is_picked(p))
        return describe_record(v->track[p->track]->trace, (size_t)p->record);
    return describe_step(v);
}

int count_details_lines(const struct view *v)
{
    int n = 0;
    if (!v->still || v->mouse.x != OFF_WINDOW)
        return 3;
    char *text = find_details(v);
    for (const char *line = text; *line; line += strcspn(line, "\n") + (strchr(line, '\n') != NULL))
        n++;
    free(text);
    return MIN(n + (v->message[0] != '\0'), 3);
}
