/* details.c - what is said about a task, a lane's row, the step. */
#include "view.h"

#include <inttypes.h>
#include <math.h>

char *format_ns(char out[32], double ns)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    size_t i = 0;
    for (; i + 1 < COUNT(units) && fabs(ns) >= 999.95; i++)
        ns /= 1000;
    double size = fabs(ns);
    snprintf(out, 32, "%.*f %s", i == 0 || size >= 999.5 ? 0 : size >= 99.95 ? 1 : size >= 9.995 ? 2 : 3, ns, units[i]);
    return out;
}

/* "2.42 GFLOP", "85.5 GB/s" */
static char *format_amount(char out[32], double x, const char *unit)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    size_t i = 0;
    for (; i + 1 < COUNT(prefixes) && x >= 999.5; i++)
        x /= 1000;
    snprintf(out, 32, "%.*f %s%s", x >= 99.95 ? 0 : x >= 9.995 ? 1 : 2, x, prefixes[i], unit);
    return out;
}

/* "2.42 GFLOP: 85.5 GFLOP/s (7 % of peak)   " */
static void put_work(char **l, const char *amount, double rate, const char *unit, double peak)
{
    char text[32];
    append_text(l, rate > 0 ? "%s: %s" : "%s", amount, format_amount(text, rate, unit));
    append_text(l, peak > 0 ? " (%.0f %% of peak)   " : "   ", 100 * rate / peak);
}

/* ---- a task ---------------------------------------------------------------------------------------------------- */

/* "waited 1.20 ms for dw L3 on 0:0 compute (link); launch took 3.00 us" */
static void put_gap(char **l, const struct trace *t, const struct trace_gap *gap)
{
    static const char *const words[CAUSES] = {[CAUSE_NOTHING] = "nothing to do for %s",
                                              [CAUSE_HOST] = "waited %s for the host",
                                              [CAUSE_LAUNCH] = "launch took %s"};
    for (int i = 0; i < GAP_PARTS; i++) {
        char time[32];
        enum cause cause = gap->cause[i];
        if (gap->at[i] == gap->at[i + 1])
            continue;
        append_text(l, gap->at[i] > gap->at[0] ? "; " : "   ");
        append_text(l, words[cause] ? words[cause] : "waited %s for ",
                    format_ns(time, (double)(gap->at[i + 1] - gap->at[i]) * t->header.pace_scale));
        const struct trace_task *task = words[cause] ? NULL : &t->tasks[t->records[gap->blocker].task];
        if (task)
            append_text(l, task->layer < 0 ? "%s" : "%s L%d", task->name, task->layer);
        if (task)
            append_text(l, " on %s (%s)", t->lanes[task->lane].name, cause_name[cause]);
    }
}

char *describe_record(const struct trace *t, size_t record)
{
    const struct trace_record *r = &t->records[record];
    const struct trace_task *task = &t->tasks[r->task];
    const struct trace_lane *lane = &t->lanes[task->lane];
    double scale = t->header.pace_scale, ns = (double)(r->end - r->start) * scale, per_s = ns > 0 ? 1e9 / ns : 0;
    double predicted = t->header.kind == TRACE_SIMULATED ? 0 : task->predicted_ns;
    char text[32], *all = copy_string(task->name), **l = &all;
    if (task->layer >= 0)
        append_text(l, "   layer %d", task->layer);
    if (task->micro >= 0)
        append_text(l, "   micro-batch %d", task->micro);
    append_text(l, "   %s   on %s   step %" PRIu32, t->header.role[task->role], lane->name, r->step);

    append_text(l, "\n%s", format_ns(text, ns));
    if (predicted > 0)
        append_text(l, "   predicted %s (measured %+.1f %%)", format_ns(text, predicted), 100 * (ns / predicted - 1));
    if (r->start > r->queued)
        append_text(l, "   queued %s before", format_ns(text, (double)(r->start - r->queued) * scale));
    struct trace_gap gap = trace_gap_of_bar(t, &t->bars[task->lane], bar_of(t, record));
    put_gap(l, t, &gap);
    append_text(l, "%s", r->flags & TRACE_APPROXIMATE ? "   times approximate" : "");

    append_text(l, task->shape[0] ? "\n%s   " : "\n", task->shape);
    if (task->flops > 0)
        put_work(l, format_amount(text, task->flops, "FLOP"), task->flops * per_s, "FLOP/s", lane->flops_per_s);
    if (task->bytes > 0)
        put_work(l, format_bytes(text, (double)task->bytes), (double)task->bytes * per_s, "B/s", lane->bytes_per_s);
    return all;
}

/* ---- the step -------------------------------------------------------------------------------------------------- */

/* With nothing under the mouse and nothing selected: the anchor step, and where to go from here. */
char *describe_step(const struct view *v)
{
    char text[32], *all = NULL;
    for (int i = 0; i < v->n_tracks; i++) {
        const struct trace_step *s = find_step(v->track[i], v->anchor);
        if (s)
            append_text(&all, "%sstep %" PRIu32 ": %s", name_of_track(v, i), s->step,
                        format_ns(text, step_ns(v->track[i], s)));
        append_text(&all, "\n");
    }
    append_text(&all, "click a task for its edges, c: critical path, k: other colours, h: all keys");
    if (v->rows_height > places_of(v).rows.h) /* one trace, or two of very many lanes */
        append_text(&all, "\nup, down: more rows");
    return all;
}
