/* plot_names.c - the texts of the legend: what a run and a series are called, and the values that are told of a series.
 *
 *     run.jsonl                                            run_name()
 *     - train, mean of 2 steps                             series_title()
 *                      last 2.2200, lowest 2.0500 at step 390      series_values()
 */
#include "plot.h"
#include "trainer/base/base.h"
#include "trainer/file/paths.h"

const char *run_name(const struct plot *plot, const struct series *of)
{
    for (const struct series *series = plot->series; series < plot->series + plot->n; series++)
        if (series->run_number != of->run_number && strcmp(last_part(series->path), last_part(of->path)) == 0)
            return of->path;
    return last_part(of->path);
}

const char *series_title(char out[128], const struct plot *plot, const struct series *series)
{
    static const char *const names[] = {
        [EACH_STEP] = "each step", [FLOOR] = "floor", [RATE] = "rate", [TRAIN] = "train", [VAL] = "val"};
    bool smoothed = series->kind == TRAIN && plot->smoothing;
    snprintf(out, 128, "%s%s%s", names[series->kind], smoothed ? ", " : "", smoothed ? plot->smoothing : "");
    return out;
}

const char *series_values(char out[128], const struct frame *frame, const struct series *series)
{
    const struct point *last = &series->points[series->n - 1];
    const struct point *best = series->points;
    for (const struct point *point = series->points; point <= last; point++)
        if (point->loss < best->loss)
            best = point;
    if (is_bound(series))
        snprintf(out, 128, "%.4f%s", last->loss, is_below_axis(frame, series) ? ", below the axis" : "");
    else
        snprintf(out, 128, "last %.4f, lowest %.4f at step %.0f", last->loss, best->loss, best->step);
    return out;
}
