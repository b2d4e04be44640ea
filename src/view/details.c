/* details.c - what is said about a task, a lane's row, the step. */
#include "view.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>

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

/* ---- rates ----------------------------------------------------------------------------------------------------- */

static void put(struct text_line *l, const char *format, ...) PRINTF_LIKE(2, 3);
static void put(struct text_line *l, const char *format, ...)
{
    va_list arguments;
    size_t used = strlen(l->text);
    va_start(arguments, format);
    vsnprintf(l->text + used, sizeof l->text - used, format, arguments);
    va_end(arguments);
}

/* "85.5 GB/s (7 % of peak)" */
static void put_rate(struct text_line *l, double rate, double peak, const char *unit)
{
    char text[32];
    put(l, ": %s", format_amount(text, rate, unit));
    if (peak > 0)
        put(l, " (%.0f %% of peak)", 100 * rate / peak);
}

static void put_rates(struct text_line *l, const struct trace_task *task, const struct trace_lane *lane, double ns)
{
    char text[32];
    if (task->flops > 0) {
        put(l, "   %s", format_amount(text, task->flops, "FLOP"));
        put_rate(l, task->flops / ns * 1e9, lane->flops_per_s, "FLOP/s");
    }
    if (task->bytes > 0) {
        put(l, "   %s", format_bytes(text, (double)task->bytes));
        put_rate(l, (double)task->bytes / ns * 1e9, lane->bytes_per_s, "B/s");
    }
}

static void put_prediction(struct text_line *l, const struct trace_task *task, double ns)
{
    char text[32];
    if (task->predicted_ns > 0)
        put(l, "   predicted %s (measured %+.1f %%)", format_ns(text, task->predicted_ns),
            100 * (ns / task->predicted_ns - 1));
}

/* ---- a task ---------------------------------------------------------------------------------------------------- */

static struct text_line name_line(const struct trace *t, const struct trace_record *r)
{
    const struct trace_task *task = &t->tasks[r->task];
    struct text_line l = {""};
    put(&l, "%s", task->name);
    if (task->layer >= 0)
        put(&l, "   layer %d", task->layer);
    if (task->micro >= 0)
        put(&l, "   micro-batch %d", task->micro);
    put(&l, "   %s   on %s   step %" PRIu32, t->header.role[task->role], t->lanes[task->lane].name, r->step);
    return l;
}

static struct text_line time_line(const struct trace *t, const struct trace_record *r)
{
    struct text_line l = {""};
    char text[32];
    double scale = t->header.pace_scale, ns = (double)(r->end - r->start) * scale;
    put(&l, "%s", format_ns(text, ns));
    if (t->header.kind != TRACE_SIMULATED)
        put_prediction(&l, &t->tasks[r->task], ns);
    if (r->start > r->queued)
        put(&l, "   queued %s before", format_ns(text, (double)(r->start - r->queued) * scale));
    if (r->flags & TRACE_APPROXIMATE)
        put(&l, "   times approximate");
    if (r->flags & TRACE_SLOWED)
        put(&l, "   slow motion");
    return l;
}

static struct text_line work_line(const struct trace *t, const struct trace_record *r)
{
    const struct trace_task *task = &t->tasks[r->task];
    struct text_line l = {""};
    put(&l, "%s", task->shape);
    put_rates(&l, task, &t->lanes[task->lane], fmax((double)(r->end - r->start) * t->header.pace_scale, 1));
    while (l.text[0] == ' ')
        memmove(l.text, l.text + 1, strlen(l.text));
    return l;
}

void describe_record(const struct trace *t, const struct trace_record *r, struct text_line lines[DETAIL_LINES])
{
    lines[0] = name_line(t, r);
    lines[1] = time_line(t, r);
    lines[2] = work_line(t, r);
}

/* ---- the step -------------------------------------------------------------------------------------------------- */

/* With nothing under the mouse and nothing selected: the anchor step, and where to go from here. */
void describe_step(const struct view *v, struct text_line lines[DETAIL_LINES])
{
    char text[32];
    memset(lines, 0, DETAIL_LINES * sizeof *lines);
    for (int i = 0; i < v->n_tracks; i++) {
        const struct trace_step *s = find_step(v->track[i], v->anchor);
        if (v->n_tracks > 1)
            put(&lines[i], "%c   ", 'A' + i);
        if (s)
            put(&lines[i], "step %" PRIu32 ": %s %s", s->step, format_ns(text, step_ns(v->track[i], s)),
                s == newest_step(v->track[i]) && is_living(v->track[i]) ? "so far" : "from start to start");
    }
    put(&lines[v->n_tracks], "click a task for its edges, c: critical path, k: other colours, h: all keys");
}
