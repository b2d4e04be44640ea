/* strip.c - the steps above the rows: the overview with a bar for each, the ruler, borders. */
#include "tools/command/numbers.h"
#include "view.h"

#include <inttypes.h>
#include <math.h>

/* ---- overview: a bar per step ---------------------------------------------------------------------------------- */

uint32_t step_at_overview(const struct view *v, int x)
{
    const struct track *k = v->track[0];
    struct box b = places_of(v).overview;
    double index = fmin(fmax((double)(x - b.x) / b.w, 0), 1) * (double)k->steps->n;
    return k->steps->n ? k->steps->step[MIN((size_t)index, k->steps->n - 1)].step : 0;
}

static void draw_overview(const struct view *v)
{
    const struct track *k = v->track[0];
    struct box b = places_of(v).overview;
    double ns[1000];
    size_t n = k->steps->n, stride = MAX(n / (size_t)MAX(2 * b.w, 1), 1), sample = MIN(n, COUNT(ns));
    char text[32];
    int u = v->scale;
    for (size_t i = 0; i < sample; i++)
        ns[i] = step_ns(k, &k->steps->step[i * n / sample]);
    double top = 2 * median(ns, sample); /* a first step that compiles kernels would flatten all others */
    for (size_t i = 0; i < n && top > 0; i += stride) {
        const struct trace_step *s = &k->steps->step[i];
        int left = b.x + (int)(i * (size_t)b.w / n), right = b.x + (int)((i + 1) * (size_t)b.w / n),
            gap = right - left > 3;
        int high = MAX((int)(fmin(step_ns(k, s) / top, 1) * b.h), u);
        fill(v, left, b.y + b.h - high, MAX(right - left - gap, 1), high, s->step == v->anchor ? ACCENT : BORDER);
    }
    fill(v, b.x, b.y + b.h, b.w, u, BORDER);
    put_text(v, 10 * u, b.y, b.x, INK, "%zu step%s", n, n == 1 ? "" : "s");
    put_text(v, 10 * u, b.y + 18 * u, b.x, SOFT, "median %s", format_ns(text, top / 2));
}

/* ---- ruler and step borders ------------------------------------------------------------------------------------ */

static void draw_ticks(const struct view *v)
{
    struct places p = places_of(v);
    int u = v->scale;
    double tick = tick_length((v->to - v->from) * 110 * u / p.ruler.w);
    int decimals = (int)fmax(ceil(6 - log10(tick) - 0.01), 0); /* as tell ticks apart */
    double first = ceil(v->from / tick), n = floor(v->to / tick) - first;
    for (double i = 0; i <= n; i++) {
        char text[32];
        double at = (first + i) * tick;
        int x = (int)x_of(v, at);
        snprintf(text, sizeof text, "%.*f ms", decimals, at == 0 ? 0 : at / 1e6); /* no -0 */
        fill(v, x, p.ruler.y + p.ruler.h - 6 * u, u, 6 * u, BORDER);
        if (x + width_of(v, text) + 5 * u < p.ruler.x + p.ruler.w)
            put_text(v, x + 5 * u, p.ruler.y + p.ruler.h - 17 * u, v->width, SOFT, "%s", text);
    }
    fill(v, p.ruler.x, p.ruler.y + p.ruler.h - u, p.ruler.w, u, BORDER);
}

/* Those that begin there are [*from, *to). */
static void find_steps_in_sight(const struct view *v, const struct track *k, size_t *from, size_t *to)
{
    uint64_t clock = clock_of(k, v->from);
    FIND_FIRST(*from, k->steps->n, k->steps->step[*from].work < clock);
    for (*to = *from; *to < k->steps->n && axis_of(k, k->steps->step[*to].work) < v->to;)
        ++*to;
}

/* A line where each step starts, through rows [y, y + height); none where they would stand too close. */
void draw_borders(const struct view *v, const struct track *k, int y, int height)
{
    size_t from, to;
    find_steps_in_sight(v, k, &from, &to);
    if ((double)(to - from) > places_of(v).rows.w / (12.0 * v->scale))
        return;
    for (; from < to; from++)
        fill(v, (int)x_of(v, axis_of(k, k->steps->step[from].work)), y, v->scale, height, BORDER);
}

/* Of the first trace's steps, as many as there is room for, from the right; at the left edge the one that goes on. */
static void draw_step_numbers(const struct view *v)
{
    const struct track *k = v->track[0];
    struct box b = places_of(v).ruler;
    int free_to = b.x + b.w;
    size_t first, i;
    find_steps_in_sight(v, k, &first, &i);
    while (i-- > 0 && i + 1 >= first) {
        char text[32];
        const struct trace_step *s = &k->steps->step[i];
        int x = (int)fmax(x_of(v, axis_of(k, s->work)), b.x);
        snprintf(text, sizeof text, "step %" PRIu32, s->step);
        if (x + width_of(v, text) > free_to)
            continue;
        put_text(v, x, b.y + 2 * v->scale, v->width, s->step == v->anchor ? ACCENT : INK, "%s", text);
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
