/* plot_values.c - what is drawn of the losses that were read: means of several steps, later steps alone, another unit,
 * the part above the floor.  The order of the calls is that of plot.h.
 */
#include "plot.h"

#include <math.h>

/* ---- smoothing --------------------------------------------------------------------------------------------------- */

/* The mean of n losses.  Each mean has a sum of its own: a sum that runs on, from which the oldest loss is taken, would
 * keep the rounding error of one huge loss in all later means. */
static double mean_loss(const struct point *points, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += points[i].loss / (double)n;
    return sum;
}

/* Puts the means of each n neighbours in place of the points.  A mean belongs to the step in their middle.  The old
 * points are not freed: the caller keeps them. */
static void take_means(struct series *series, size_t n)
{
    const struct point *single = series->points;
    size_t n_means = series->n - n + 1;
    struct point *means = allocate(n_means, sizeof *means);
    for (size_t i = 0; i < n_means; i++)
        means[i] = (struct point){single[i + n - 1 - n / 2].step, mean_loss(&single[i], n)};
    series->points = means;
    series->n = n_means;
}

/* Replaces each loss by a weighted mean of it and of all losses before it.  It has the weight 1 - share, and each
 * earlier loss has `share` times the weight of the loss after it.  The sum is divided by the sum of the weights.  The
 * old points are not freed: the caller keeps them. */
static void take_exponential_means(struct series *series, double share)
{
    double sum = 0, weights = 0;
    struct point *means = allocate(series->n, sizeof *means);
    for (size_t i = 0; i < series->n; i++) {
        sum = share * sum + (1 - share) * series->points[i].loss;
        weights = share * weights + 1 - share;
        means[i] = (struct point){series->points[i].step, sum / weights};
    }
    series->points = means;
}

void smooth_losses(struct plot *plot, double by)
{
    bool counts = by >= 1;
    if (counts && by != floor(by))
        fail(EXIT_USAGE, "--smooth %g is neither a whole number of steps nor a number below 1", by);
    if (by == 0 || by == 1)
        return;
    plot->smoothing = counts ? format_string("mean of %.0f steps", by) : format_string("exponential mean, %g", by);
    size_t n = plot->n;
    for (size_t i = 0; i < n; i++) {
        const struct series single = plot->series[i];
        if (single.kind != TRAIN)
            continue;
        if (counts && by > (double)single.n)
            fail(EXIT_USAGE, "--smooth %.0f is longer than %s, which has %zu step%s: take fewer", by, single.path,
                 single.n, PLURAL(single.n));
        if (counts)
            take_means(&plot->series[i], (size_t)by);
        else
            take_exponential_means(&plot->series[i], by);
        GROW(plot->series, plot->cap, plot->n + 1);
        struct series *each = &plot->series[plot->n++];
        *each = single;
        each->kind = EACH_STEP;
    }
}

/* ---- later steps ------------------------------------------------------------------------------------------------- */

/* Removes the series without points. */
static void drop_empty(struct plot *plot)
{
    size_t n_series = 0;
    for (size_t i = 0; i < plot->n; i++) {
        if (plot->series[i].n > 0) {
            plot->series[n_series] = plot->series[i];
            n_series++;
        } else {
            free(plot->series[i].points);
        }
    }
    plot->n = n_series;
}

void begin_at(struct plot *plot, double step)
{
    double last = 0;
    const char *untrained = NULL; /* a run whose training ends before */
    for (size_t i = 0; i < plot->n; i++) {
        struct series *series = &plot->series[i];
        size_t n = 0;
        for (size_t k = 0; k < series->n; k++) {
            last = fmax(last, series->points[k].step);
            if (series->points[k].step >= step) {
                series->points[n] = series->points[k];
                n++;
            }
        }
        series->n = n;
        if (n == 0 && series->kind == TRAIN)
            untrained = series->path;
    }
    drop_empty(plot);
    if (plot->n == 0)
        fail(EXIT_USAGE, "--from %.0f is beyond the last step of these runs, which is %.0f", step, last);
    if (untrained)
        inform("%s has no training loss from step %.0f on", untrained, step);
}

/* ---- bits per byte ----------------------------------------------------------------------------------------------- */

const char *losses_are(size_t n) { return n == 1 ? "loss is" : "losses are"; }

/* Do the runs have tokens of different lengths?  Then their losses per token are not comparable. */
static bool has_several_lengths(const struct plot *plot)
{
    for (size_t i = 1; i < plot->n; i++)
        if (plot->series[i].bytes_per_token != plot->series->bytes_per_token)
            return true;
    return false;
}

/* The first series of a run that does not tell how long its tokens are; NULL: all do. */
static const struct series *first_unknown(const struct plot *plot)
{
    for (size_t i = 0; i < plot->n; i++)
        if (plot->series[i].bytes_per_token <= 0)
            return &plot->series[i];
    return NULL;
}

static void convert_to_bits(struct plot *plot)
{
    strcpy(plot->unit, "bits per byte");
    for (struct series *series = plot->series; series < plot->series + plot->n; series++)
        for (size_t i = 0; i < series->n; i++)
            series->points[i].loss /= M_LN2 * series->bytes_per_token;
}

void choose_unit(struct plot *plot, bool bits)
{
    const struct series *unknown = first_unknown(plot);
    strcpy(plot->unit, "loss");
    if (bits && unknown)
        fail(EXIT_USAGE, "%s does not tell how many bytes its tokens have: leave --bits out", unknown->path);
    bool several = has_several_lengths(plot);
    if (several && unknown)
        warn("losses per token of these runs are not comparable, and %s does not tell how many bytes its tokens have",
             unknown->path);
    if (several && !unknown)
        inform("the runs have tokens of several lengths: losses are drawn in bits per byte");
    if (bits || (several && !unknown))
        convert_to_bits(plot);
}

/* ---- above the floor --------------------------------------------------------------------------------------------- */

/* The run's floor, or its rate where it has no floor; NULL: it has neither. */
static const struct series *bound_of(const struct plot *plot, size_t run)
{
    for (const struct series *series = plot->series; series < plot->series + plot->n; series++)
        if (series->run_number == run && is_bound(series))
            return series;
    return NULL;
}

/* Has each run a floor or a rate?  If only some have one, this tells why none is subtracted. */
static bool all_have_bounds(const struct plot *plot)
{
    const struct series *with = NULL, *without = NULL;
    for (const struct series *series = plot->series; series < plot->series + plot->n; series++)
        if (bound_of(plot, series->run_number))
            with = series;
        else
            without = series;
    if (with && without)
        inform("the axis counts from 0, not from the floor, because %s has none", without->path);
    return !without;
}

static void subtract_bounds(struct plot *plot)
{
    for (struct series *series = plot->series; series < plot->series + plot->n; series++)
        if (!is_bound(series))
            for (size_t i = 0; i < series->n; i++)
                series->points[i].loss -= bound_of(plot, series->run_number)->points->loss;
    for (struct series *series = plot->series; series < plot->series + plot->n; series++)
        if (is_bound(series))
            series->n = 0;
    drop_empty(plot);
}

void take_logarithms(struct plot *plot)
{
    bool above = all_have_bounds(plot);
    plot->log = true;
    size_t n = strlen(plot->unit);
    snprintf(plot->unit + n, sizeof plot->unit - n, "%s, logarithmic", above ? " above the floor" : "");
    if (above)
        subtract_bounds(plot);
    size_t below = 0, positive = 0;
    for (const struct series *series = plot->series; series < plot->series + plot->n; series++) {
        if (series->kind != TRAIN && series->kind != VAL)
            continue;
        for (size_t i = 0; i < series->n; i++) {
            positive += series->points[i].loss > 0;
            below += series->points[i].loss <= 0;
        }
    }
    const char *than = above ? "above their floor" : "above 0";
    if (positive == 0)
        fail(EXIT_USAGE, "none of these losses is %s, so a logarithmic axis cannot show them: leave --log out", than);
    if (below > 0)
        inform("%zu %s not %s, and so below the logarithmic axis", below, losses_are(below), than);
}

static bool have_same_points(const struct series *a, const struct series *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; i < a->n && same; i++)
        same = a->points[i].step == b->points[i].step && a->points[i].loss == b->points[i].loss;
    return same;
}

const struct series *same_before(const struct plot *plot, const struct series *series)
{
    for (const struct series *other = plot->series; other < plot->series + plot->n; other++)
        if (other->run_number < series->run_number && other->kind == series->kind && have_same_points(other, series))
            return other;
    return NULL;
}

void merge_floors(struct plot *plot)
{
    const struct series *first = NULL;
    for (const struct series *series = plot->series; series < plot->series + plot->n; series++) {
        if (!bound_of(plot, series->run_number))
            return;
        if (!first && is_bound(series))
            first = series;
        if (is_bound(series) && (series->kind != first->kind || series->points->loss != first->points->loss))
            return;
    }
    for (struct series *series = plot->series; series < plot->series + plot->n; series++)
        if (is_bound(series) && series != first)
            series->n = 0;
    plot->one_floor = first != NULL;
    drop_empty(plot);
}
