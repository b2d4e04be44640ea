/* plot_axes.c - what the axes show, and where their ticks are. */
#include "plot.h"
#include "trainer/base/base.h"

#include <math.h>

/* ---- ticks ------------------------------------------------------------------------------------------------------- */

static void place_linear_ticks(struct plot_axis *axis, int wanted)
{
    double least = (axis->high - axis->low) / MAX(wanted, 1);
    double length = tick_length(axis->whole ? fmax(least, 1) : least);
    double first = ceil(axis->low / length - 1e-9) * length;
    axis->n = MIN(1 + (int)floor((axis->high - first) / length + 1e-9), MOST_TICKS);
    for (int i = 0; i < axis->n; i++) {
        double tick = first + i * length;
        axis->tick[i] = fabs(tick) < 1e-9 * length ? 0 : tick;
    }
}

static void add_tick(struct plot_axis *axis, double tick)
{
    if (axis->n == MOST_TICKS || tick < axis->low || tick > axis->high)
        return;
    axis->tick[axis->n] = tick;
    axis->n++;
}

/* Replaces the ticks by multiples of powers of ten: `digits` has the factors, and 0 behind the last one.  every: of how
 * many powers that follow each other only one is used. */
static void set_decade_ticks(struct plot_axis *axis, const double *digits, int every)
{
    int first = (int)floor(log10(axis->low)), last = (int)floor(log10(axis->high));
    axis->n = 0;
    for (int power = first; power <= last; power += every)
        for (const double *digit = digits; *digit > 0; digit++)
            add_tick(axis, *digit * pow(10, power));
}

/* Places as many ticks as possible, but at most `wanted`: 1, 1.5, 2, 3, 4, 5 and 7 times each power of ten, or 1, 2 and
 * 5 times, or 1 and 3 times, or the powers alone, or some of the powers. */
static void place_logarithmic_ticks(struct plot_axis *axis, int wanted)
{
    static const double digits[][8] = {{1, 1.5, 2, 3, 4, 5, 7}, {1, 2, 5}, {1, 3}, {1}};
    const double *fewest = digits[COUNT(digits) - 1];
    int powers = 1 + (int)floor(log10(axis->high)) - (int)floor(log10(axis->low));
    for (size_t set = 0; set < COUNT(digits); set++) {
        set_decade_ticks(axis, digits[set], 1);
        if (axis->n <= wanted)
            return;
    }
    for (int every = 2; axis->n > wanted && every <= powers; every++)
        set_decade_ticks(axis, fewest, every);
}

static void place_ticks(struct plot_axis *axis, int wanted)
{
    if (axis->log)
        place_logarithmic_ticks(axis, MAX(wanted, 2));
    if (!axis->log || axis->n < 3) /* it shows so little that it is nearly linear */
        place_linear_ticks(axis, wanted);
}

const char *tick_text(char out[NUMBER_TEXT], const struct plot_axis *axis, int i)
{
    snprintf(out, NUMBER_TEXT, "%.5g", axis->tick[i]);
    return out;
}

/* ---- ranges ------------------------------------------------------------------------------------------------------ */

static void widen(struct plot_axis *axis, double value)
{
    axis->low = fmin(axis->low, value);
    axis->high = fmax(axis->high, value);
}

static int by_loss(const void *left, const void *right)
{
    const struct point *a = left;
    const struct point *b = right;
    return COMPARE(a->loss, b->loss);
}

/* On a logarithmic axis, single losses near 0 would push all others together.  So at most 1 in 50 of the training
 * losses above 0 are left out: those that are less than half of the rest.  The last one is never left out, unless it is
 * drawn only behind a mean. */
static void widen_by_logarithms(struct plot_axis *axis, const struct series *series)
{
    struct point *sorted = allocate(series->n, sizeof *sorted);
    size_t first = 0;
    memcpy(sorted, series->points, series->n * sizeof *sorted);
    SORT(sorted, series->n, by_loss);
    while (first < series->n && sorted[first].loss <= 0)
        first++;
    if (first < series->n) {
        size_t n = series->n - first;
        double rest = sorted[first + n / 50].loss;
        while (series->kind != VAL && sorted[first].loss < rest / 2)
            first++;
        widen(axis, sorted[first].loss);
        widen(axis, sorted[series->n - 1].loss);
        if (series->points[series->n - 1].loss > 0 && series->kind != EACH_STEP)
            widen(axis, series->points[series->n - 1].loss);
    }
    free(sorted);
}

/* If all values are the same, the axis is widened around them. */
static void add_margins(struct plot_axis *axis)
{
    if (axis->high - axis->low < 1e-9 * fmax(fabs(axis->high), 1e-9)) {
        double half = axis->log ? axis->high / 2 : fmax(fabs(axis->high) / 10, 0.5);
        axis->low -= half;
        axis->high += half;
    }
}

static void widen_by_series(struct frame *frame, const struct plot *plot, const struct series *series)
{
    for (size_t i = 0; i < series->n; i++)
        widen(&frame->step, series->points[i].step);
    if (plot->log)
        widen_by_logarithms(&frame->loss, series);
    else
        for (size_t i = 0; i < series->n; i++)
            widen(&frame->loss, series->points[i].loss);
}

/* The length of a part of the axis: a difference, or if the axis is logarithmic the logarithm of a ratio. */
static double length_of(const struct plot_axis *axis, double from, double to)
{
    return axis->log ? log(to / from) : to - from;
}

/* A floor or rate is on the axis if it takes a quarter of it at most: curves have the rest. */
static void widen_by_bounds(struct frame *frame, const struct plot *plot)
{
    const struct plot_axis curves = frame->loss;
    for (const struct series *series = plot->series; series < plot->series + plot->n; series++)
        if (is_bound(series) && (curves.low > curves.high || length_of(&curves, series->points->loss, curves.low) <=
                                                                 length_of(&curves, curves.low, curves.high) / 3))
            widen_by_series(frame, plot, series);
}

void fit_axes(struct frame *frame, const struct plot *plot, int step_ticks, int loss_ticks)
{
    double air = 0.03; /* above and below the curves */
    frame->step = (struct plot_axis){.low = INFINITY, .high = -INFINITY, .whole = true};
    frame->loss = (struct plot_axis){.low = INFINITY, .high = -INFINITY, .log = plot->log};
    for (const struct series *series = plot->series; series < plot->series + plot->n; series++)
        if (!is_bound(series))
            widen_by_series(frame, plot, series);
    widen_by_bounds(frame, plot);
    add_margins(&frame->step);
    /* If the first step is near 0, the axis begins at 0. */
    if (frame->step.low > 0 && frame->step.low <= 0.05 * frame->step.high)
        frame->step.low = 0;
    add_margins(&frame->loss);
    double low = frame->loss.low, high = frame->loss.high;
    frame->loss.low = plot->log ? low * pow(low / high, air) : low - air * (high - low);
    frame->loss.high = plot->log ? high * pow(high / low, air) : high + air * (high - low);
    place_ticks(&frame->step, step_ticks);
    place_ticks(&frame->loss, loss_ticks);
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* Where the value lies: 0 at the axis' low end, 1 at its high end; from -1 to 2. */
static double share(const struct plot_axis *axis, double value)
{
    if (!axis->log)
        return fmin(fmax((value - axis->low) / (axis->high - axis->low), -1), 2);
    if (value <= 0)
        return -1;
    return fmin(fmax(log(value / axis->low) / log(axis->high / axis->low), -1), 2);
}

bool is_below_axis(const struct frame *frame, const struct series *series)
{
    return is_bound(series) && series->points->loss < frame->loss.low;
}

size_t count_below(const struct frame *frame, const struct plot *plot, enum series_kind first)
{
    size_t n = 0;
    for (const struct series *series = plot->series; series < plot->series + plot->n; series++)
        if (series->kind >= first && !is_bound(series))
            for (size_t i = 0; i < series->n; i++)
                n += series->points[i].loss < frame->loss.low;
    return n;
}

int x_of_step(const struct frame *frame, double step, int parts)
{
    return frame->x * parts + (int)lround(share(&frame->step, step) * ((frame->width - 1) * parts));
}

int y_of_loss(const struct frame *frame, double loss, int parts)
{
    return (frame->y + frame->height - 1) * parts -
           (int)lround(share(&frame->loss, loss) * ((frame->height - 1) * parts));
}
