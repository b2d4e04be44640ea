/* strip.c - the steps above the rows: the overview with a bar for each, the ruler, borders. */
#include "draw.h"
#include "tools/command/numbers.h"

#include <inttypes.h>
#include <math.h>

/* ---- overview: a bar per step ---------------------------------------------------------------------------------- */

uint32_t step_at_overview(const struct view *v, int x)
{
    const struct trace_step_list *steps = v->track[0]->steps;
    const struct box b = places_of(v).overview;
    if (steps->n == 0)
        return 0;
    double index = fmin(fmax((double)(x - b.x) / b.w, 0), 1) * (double)steps->n;
    return steps->step[MIN((size_t)index, steps->n - 1)].step;
}

/* The median of the steps' lengths, or when there are many of a sample of them. */
static double median_step_ns(const struct track *track)
{
    double ns[1000];
    const size_t n = track->steps->n;
    const size_t sample = MIN(n, COUNT(ns));
    for (size_t i = 0; i < sample; i++)
        ns[i] = step_ns(track, &track->steps->step[i * n / sample]);
    return median(ns, sample);
}

/* Draws the bar of step i; `top`: the length of a step at the upper edge, in nanoseconds. */
static void draw_step(const struct view *v, size_t i, double top)
{
    const struct track *track = v->track[0];
    const struct trace_step *s = &track->steps->step[i];
    const struct box b = places_of(v).overview;
    const size_t n = track->steps->n, pixels = (size_t)b.w;
    int left = b.x + (int)(i * pixels / n);
    int width = b.x + (int)((i + 1) * pixels / n) - left;
    int high = (int)(fmin(step_ns(track, s) / top, 1) * b.h);
    if (width > 3) /* a gap before the next one */
        width--;
    width = MAX(width, 1);
    high = MAX(high, v->scale);
    fill(v, left, b.y + b.h - high, width, high, s->step == v->sight.anchor ? SOFT : RULE);
}

static void draw_overview(const struct view *v)
{
    const struct track *track = v->track[0];
    const struct box b = places_of(v).overview;
    const size_t n = track->steps->n;
    const size_t stride = MAX(n / (size_t)MAX(2 * b.w, 1), 1);
    const double middle = median_step_ns(track);
    const bool quiet = track->trace->header.kind == TRACE_SIMULATED;
    const double top = quiet ? 1 : 2 * middle; /* a first step that compiles kernels would flatten all others */
    const int dot = v->scale;
    char text[32];
    for (size_t i = 0; i < n && top > 0; i += stride)
        draw_step(v, i, top);
    fill(v, b.x, b.y + b.h, b.w, dot, BORDER);
    const int y = quiet ? b.y : b.y + b.h / 2 - 17 * dot;
    put_text(v, 10 * dot, y, b.x, INK, "%zu step%s", n, n == 1 ? "" : "s");
    put_small(v, quiet ? AT_RIGHT : 10 * dot, quiet ? y : y + 17 * dot, b.x - 8 * dot, SOFT, "median %s",
              format_ns(text, middle));
}

/* ---- ruler and step borders ------------------------------------------------------------------------------------ */

static void draw_ticks(const struct view *v)
{
    const struct box ruler = places_of(v).ruler;
    const int dot = v->scale, bottom = ruler.y + ruler.h;
    const double tick = tick_length((v->sight.to - v->sight.from) * 110 * dot / ruler.w);
    const int decimals = (int)fmax(ceil(6 - log10(tick) - 0.01), 0); /* enough to tell ticks apart */
    const double first = ceil(v->sight.from / tick);
    const double n = floor(v->sight.to / tick) - first;
    for (double i = 0; i <= n; i++) {
        const double at = (first + i) * tick;
        const int x = (int)x_of(v, at);
        char text[32];
        snprintf(text, sizeof text, "%.*f ms", decimals, at == 0 ? 0 : at / 1e6); /* no -0 */
        fill(v, x, bottom - 6 * dot, dot, 6 * dot, BORDER);
        if (x + small_width(v, text) + 5 * dot < ruler.x + ruler.w)
            put_small(v, x + 5 * dot, bottom - 17 * dot, v->width, SOFT, "%s", text);
    }
    fill(v, ruler.x, bottom - dot, ruler.w, dot, BORDER);
}

/* Steps [*from, *to) begin in sight. */
static void find_steps_in_sight(const struct view *v, const struct track *track, size_t *from, size_t *to)
{
    const struct trace_step_list *steps = track->steps;
    const uint64_t clock = clock_of(track, v->sight.from);
    size_t i;
    FIND_FIRST(i, steps->n, steps->step[i].work < clock);
    *from = i;
    while (i < steps->n && axis_of(track, steps->step[i].work) < v->sight.to)
        i++;
    *to = i;
}

/* Nothing is drawn where the lines would be too close to each other. */
void draw_borders(const struct view *v, const struct track *track, int y, int height)
{
    size_t from, to;
    find_steps_in_sight(v, track, &from, &to);
    if ((double)(to - from) > places_of(v).rows.w / (12.0 * v->scale))
        return;
    for (; from < to; from++)
        fill(v, (int)x_of(v, axis_of(track, track->steps->step[from].work)), y, v->scale, height, BORDER);
}

/* Writes the numbers of the first trace's steps, from the right, as many as there is room for; at the left edge that of
 * the step that goes on. */
static void draw_step_numbers(const struct view *v)
{
    const struct track *track = v->track[0];
    const struct box b = places_of(v).ruler;
    int free_to = b.x + b.w;
    size_t first, end;
    find_steps_in_sight(v, track, &first, &end);
    if (first > 0)
        first--;
    for (size_t i = end; i-- > first;) {
        char text[32];
        const struct trace_step *s = &track->steps->step[i];
        int x = (int)fmax(x_of(v, axis_of(track, s->work)), b.x);
        snprintf(text, sizeof text, "step %" PRIu32, s->step);
        if (x + width_of(v, text) > free_to)
            continue;
        put_text(v, x, b.y + 2 * v->scale, v->width, s->step == v->sight.anchor ? ACCENT : INK, "%s", text);
        free_to = x - 16 * v->scale;
    }
}

void draw_strip(const struct view *v)
{
    struct places p = places_of(v);
    fill(v, 0, p.header.h, v->width, p.rows.y - p.header.h, PAPER);
    draw_overview(v);
    draw_ticks(v);
    draw_step_numbers(v);
}
