/* plot_read.c - the losses of a log that `yard train --log` writes: a line of JSON for each step and evaluation.
 *
 *     {"run": {...}, "floor": 0.2447, "rate": 0.1148}     the first line
 *     {"step": 1, "loss": 5.55, ...}                      a step
 *     {"step": 50, "val_loss": 3.01, ...}                 an evaluation
 */
#include "plot.h"
#include "trainer/base/json.h"
#include "trainer/file/file.h"

#include <math.h>

struct log_reading { /* a log that is read */
    const char *path;
    struct series series[SERIES_KINDS];
    size_t line;            /* the number of the line, from 1 */
    double floor;           /* the lowest loss, which the log's first line tells; 0: it does not */
    double rate;            /* a bound below the floor, which the log's first line tells; 0: it does not */
    double bytes_per_token; /* 0: not known */
    size_t not_finite;      /* losses that are no finite numbers */
};

#define WHAT_PLOT_READS "`yard plot` reads what `yard train --log FILE` writes"

static json_t *parse_line(const struct log_reading *reading, const char *line, size_t n)
{
    json_t *object = json_loadb(line, n, 0, NULL);
    if (!json_is_object(object))
        fail(EXIT_FAILED, "%s, line %zu is not a JSON object; " WHAT_PLOT_READS, reading->path, reading->line);
    const json_t *step = json_object_get(object, "step");
    if (step && (!json_is_number(step) || fabs(json_number_value(step)) > 1e12))
        fail(EXIT_FAILED, "%s, line %zu: \"step\" is not the number of a step", reading->path, reading->line);
    return object;
}

static void add_point(struct series *series, double step, double loss)
{
    GROW(series->points, series->cap, series->n + 1);
    series->points[series->n++] = (struct point){step, loss};
}

/* Adds the loss to a series, if there is one. */
static void take_loss(struct log_reading *reading, struct series *series, double step, const json_t *loss)
{
    if (!loss)
        return;
    if (json_is_number(loss) && fabs(json_number_value(loss)) < 1e300)
        add_point(series, step, json_number_value(loss));
    else
        reading->not_finite++; /* null stands for what is not a number */
}

static void take_number_if_any(const json_t *object, const char *key, double *number)
{
    const json_t *value = json_object_get(object, key);
    if (json_is_number(value))
        *number = json_number_value(value);
}

/* The losses of a line go to the series of their kind; the floor stands at each step. */
static void take_line(struct log_reading *reading, const char *line, size_t n)
{
    json_t *object = parse_line(reading, line, n);
    take_number_if_any(object, "floor", &reading->floor);
    take_number_if_any(object, "rate", &reading->rate);
    take_number_if_any(object, "bytes_per_token", &reading->bytes_per_token);
    if (json_object_get(object, "step")) {
        double step = json_number_value(json_object_get(object, "step"));
        if (reading->floor > 0)
            add_point(&reading->series[FLOOR], step, reading->floor);
        else if (reading->rate > 0 && reading->bytes_per_token != 1)
            add_point(&reading->series[RATE], step, reading->rate);
        take_loss(reading, &reading->series[TRAIN], step, json_object_get(object, "loss"));
        take_loss(reading, &reading->series[VAL], step, json_object_get(object, "val_loss"));
    }
    json_decref(object);
}

/* Reads line by line; a last one without its end is still being written, and is left out. */
static void read_log_lines(struct log_reading *reading, const char *path)
{
    size_t size;
    char *text = read_whole(path, &size);
    char *line = text, *end;
    while ((end = memchr(line, '\n', size - (size_t)(line - text)))) {
        reading->line++;
        if (end > line)
            take_line(reading, line, (size_t)(end - line));
        line = end + 1;
    }
    free(text);
}

void read_run(struct plot *plot, size_t run, const char *path)
{
    struct log_reading reading = {.path = path};
    for (int i = 0; i < SERIES_KINDS; i++) {
        reading.series[i].path = path;
        reading.series[i].kind = (enum series_kind)i;
        reading.series[i].run_number = run;
    }
    refuse_if_other_kind(path, KIND_LOG, "a log, which --log writes");
    read_log_lines(&reading, path);
    if (reading.series[TRAIN].n + reading.series[VAL].n == 0)
        fail(EXIT_FAILED, "%s holds no losses%s; " WHAT_PLOT_READS, path,
             reading.not_finite ? " that are finite numbers" : "");
    if (reading.not_finite)
        inform("%s: %zu %s left out", path, reading.not_finite,
               reading.not_finite == 1 ? "loss is not finite, and is" : "losses are not finite, and are");
    for (int i = 0; i < SERIES_KINDS; i++) {
        reading.series[i].bytes_per_token = reading.bytes_per_token;
        if (reading.series[i].n > 0) {
            GROW(plot->series, plot->cap, plot->n + 1);
            plot->series[plot->n++] = reading.series[i];
        }
    }
}

void empty_plot(struct plot *plot)
{
    for (size_t i = 0; i < plot->n; i++)
        free(plot->series[i].points);
    free(plot->series);
    free(plot->smoothing);
}
