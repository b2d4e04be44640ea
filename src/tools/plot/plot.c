/* plot.c - yard plot: the losses that `yard train --log` wrote, against steps; several runs over each other. */

#include <math.h>
#include <unistd.h>

#include "plot.h"
#include "tools/command/table.h"
#include "tools/command/words.h"
#include "trainer/file/file.h"

/* ---- reading a log --------------------------------------------------------------------------------------------- */

enum { TRAIN, VAL, FLOOR, KINDS };

/* Losses of a line go to the series of their kind; the floor, which the log's first line tells, stands at each step.
 * Returns how many are no finite numbers. */
static size_t take_line(struct series *series, size_t number, const char *line, size_t n, double *floor)
{
    static const char *const keys[] = {[TRAIN] = "loss", [VAL] = "val_loss"};
    size_t not_finite = 0;
    json_error_t error;
    json_t *o = json_loadb(line, n, 0, &error);
    if (!json_is_object(o))
        fail(EXIT_FAILED, "%s, line %zu is no JSON object%s%s; yard plot reads what yard train --log FILE writes",
             series->path, number, o ? "" : ": ", o ? "" : error.text);
    const json_t *step = json_object_get(o, "step");
    if (step && (!json_is_number(step) || !(fabs(json_number_value(step)) <= 1e12)))
        fail(EXIT_FAILED, "%s, line %zu: \"step\" is no number of a step", series->path, number);
    if (json_is_number(json_object_get(o, "floor")))
        *floor = json_number_value(json_object_get(o, "floor"));
    if (step && *floor > 0)
        *APPEND(series[FLOOR].point, series[FLOOR].n, series[FLOOR].cap) =
            (struct point){json_number_value(step), *floor};
    for (size_t i = 0; step && i < COUNT(keys); i++) {
        const json_t *loss = json_object_get(o, keys[i]);
        double value = json_is_number(loss) ? json_number_value(loss) : NAN; /* null: not a number */
        if (loss && fabs(value) < 1e300)
            *APPEND(series[i].point, series[i].n, series[i].cap) = (struct point){json_number_value(step), value};
        else
            not_finite += loss != NULL;
    }
    json_decref(o);
    return not_finite;
}

/* Line by line; a last one without its end is being written. */
static void read_run(struct plot *p, size_t run, const char *path)
{
    struct series series[KINDS] = {[TRAIN] = {.path = path, .kind = "train", .run = run},
                                   [VAL] = {.path = path, .kind = "val", .run = run, .val = true},
                                   [FLOOR] = {.path = path, .kind = "floor", .run = run}};
    double floor = 0;
    size_t size, number = 0, not_finite = 0;
    char *text = read_whole(path, &size), *line = text;
    for (char *end; (end = memchr(line, '\n', size - (size_t)(line - text))); line = end + 1)
        if (++number && end > line)
            not_finite += take_line(series, number, line, (size_t)(end - line), &floor);
    free(text);
    if (series[TRAIN].n + series[VAL].n == 0)
        fail(EXIT_FAILED, "%s holds no losses%s; yard plot reads what yard train --log FILE writes", path,
             not_finite ? " that are finite numbers" : "");
    if (not_finite)
        note("%s: left out, because they are not finite: %zu losses", path, not_finite);
    for (size_t i = 0; i < COUNT(series); i++)
        if (series[i].n)
            *APPEND(p->series, p->n, p->cap) = series[i];
}

/* ---- the command ----------------------------------------------------------------------------------------------- */

enum { WIDTH = 1280, HEIGHT = 720, ROWS = 20 }; /* of the picture in pixels; of what is printed */
static const char *png;
static const struct option options[] = {
    {"png", 0, OPT_OUTPUT, &png, NULL, "OUT", 0, 0, "Output", 1, "write a picture, of 1280 x 720 pixels, instead"},
};
static struct option_table table = {.options = options, .n = COUNT(options)};

static int run_plot(int argc, char **argv)
{
    int n;
    struct plot p = {.n = 0};
    char **files = take_arguments(
        &table, 1, "plot",
        "FILE.jsonl... [options]\n\n"
        "Draws the training and validation losses that yard train --log FILE.jsonl wrote, against steps;\n"
        "several runs over each other.\n",
        INT32_MAX, argc, argv, &n);
    if (!files)
        return EXIT_OK;
    if (n == 0)
        fail(EXIT_USAGE, "yard plot needs a log that yard train --log FILE.jsonl wrote; 'yard plot --help' says more");
    for (int i = 0; i < n; i++)
        read_run(&p, (size_t)i, files[i]);
    if (png)
        write_png(png, draw_picture(&p, WIDTH, HEIGHT)->pixels, WIDTH, HEIGHT);
    else
        draw_on_terminal(stdout, &p, screen_width(STDOUT_FILENO), ROWS, shows_colour());
    return EXIT_OK;
}

static const struct subcommand command = {90, "plot", "draw the losses that --log recorded", run_plot,
                                          " curve loss graph "};
const struct module module_plot = {.name = "plot", .needs = "command picture", .commands = &command, .n_commands = 1};
