/* plot.c - yard plot: the losses that `yard train --log` wrote, against steps; several runs over each other. */
#include "plot.h"
#include "tools/command/arguments.h"
#include "tools/command/table.h"
#include "trainer/file/file.h"

#include <math.h>
#include <unistd.h>

/* ---- reading a log --------------------------------------------------------------------------------------------- */

enum { TRAIN, VAL, FLOOR, RATE, KINDS };

struct log_reading { /* a log that is read */
    struct series series[KINDS];
    size_t line;       /* the number of the line, from 1 */
    double floor;      /* the lowest loss, which the log's first line tells; 0: it does not */
    double rate;       /* a bound below it, likewise */
    size_t not_finite; /* losses that are no finite numbers */
};

static json_t *parse_line(const struct log_reading *r, const char *line, size_t n)
{
    const char *path = r->series->path;
    json_error_t error;
    json_t *o = json_loadb(line, n, 0, &error);
    if (!o)
        fail(EXIT_FAILED, "%s, line %zu is no JSON object: %s; yard plot reads what yard train --log FILE writes", path,
             r->line, error.text);
    if (!json_is_object(o))
        fail(EXIT_FAILED, "%s, line %zu is no JSON object; yard plot reads what yard train --log FILE writes", path,
             r->line);
    const json_t *step = json_object_get(o, "step");
    if (step && (!json_is_number(step) || !(fabs(json_number_value(step)) <= 1e12)))
        fail(EXIT_FAILED, "%s, line %zu: \"step\" is no number of a step", path, r->line);
    return o;
}

static void add_point(struct series *s, double step, double loss)
{
    *APPEND(s->point, s->n, s->cap) = (struct point){step, loss};
}

/* Adds the loss to a series, if there is one. */
static void take_loss(struct log_reading *r, struct series *s, double step, const json_t *loss)
{
    if (!loss)
        return;
    if (json_is_number(loss) && fabs(json_number_value(loss)) < 1e300)
        add_point(s, step, json_number_value(loss));
    else
        r->not_finite++; /* null stands for what is not a number */
}

static void take_number(const json_t *o, const char *key, double *number)
{
    const json_t *value = json_object_get(o, key);
    if (json_is_number(value))
        *number = json_number_value(value);
}

/* The losses of a line go to the series of their kind; the floor stands at each step. */
static void take_line(struct log_reading *r, const char *line, size_t n)
{
    json_t *o = parse_line(r, line, n);
    take_number(o, "floor", &r->floor);
    take_number(o, "rate", &r->rate);
    take_number(o, "bytes_per_token", &r->series->bytes_per_token);
    if (json_object_get(o, "step")) {
        double step = json_number_value(json_object_get(o, "step"));
        if (r->floor > 0)
            add_point(&r->series[FLOOR], step, r->floor);
        else if (r->rate > 0 && r->series->bytes_per_token != 1)
            add_point(&r->series[RATE], step, r->rate);
        take_loss(r, &r->series[TRAIN], step, json_object_get(o, "loss"));
        take_loss(r, &r->series[VAL], step, json_object_get(o, "val_loss"));
    }
    json_decref(o);
}

/* Reads line by line; a last one without its end is still being written, and is left out. */
static void read_lines(struct log_reading *r, const char *path)
{
    size_t size;
    char *text = read_whole(path, &size);
    char *line = text, *end;
    while ((end = memchr(line, '\n', size - (size_t)(line - text)))) {
        r->line++;
        if (end > line)
            take_line(r, line, (size_t)(end - line));
        line = end + 1;
    }
    free(text);
}

static void read_run(struct plot *p, size_t run, const char *path)
{
    struct log_reading r = {.series = {[TRAIN] = {.path = path, .kind = "train", .run = run},
                                       [VAL] = {.path = path, .kind = "val", .run = run, .val = true},
                                       [FLOOR] = {.path = path, .kind = "floor", .run = run},
                                       [RATE] = {.path = path, .kind = "rate", .run = run}}};
    read_lines(&r, path);
    if (r.series[TRAIN].n + r.series[VAL].n == 0)
        fail(EXIT_FAILED, "%s holds no losses%s; yard plot reads what yard train --log FILE writes", path,
             r.not_finite ? " that are finite numbers" : "");
    if (r.not_finite)
        note("%s: left out, because they are not finite: %zu losses", path, r.not_finite);
    for (int i = 0; i < KINDS; i++) {
        r.series[i].bytes_per_token = r.series->bytes_per_token;
        if (r.series[i].n > 0)
            *APPEND(p->series, p->n, p->cap) = r.series[i];
    }
}

/* Leaves out the points before that step.  A series without later ones goes. */
static void begin_at(struct plot *p, double step)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->n; i++) {
        struct series *s = &p->series[i];
        size_t n = 0;
        for (size_t k = 0; k < s->n; k++)
            if (s->point[k].step >= step) {
                s->point[n] = s->point[k];
                n++;
            }
        s->n = n;
        if (n > 0) {
            p->series[kept] = *s;
            kept++;
        } else {
            free(s->point);
        }
    }
    p->n = kept;
    if (kept == 0)
        fail(EXIT_USAGE, "--from %.0f is beyond the last step of these runs", step);
}

/* ---- bits per byte ---------------------------------------------------------------------------------------------- */

/* Losses per token are not comparable where a token has another length. */
static bool has_several_lengths(const struct plot *p)
{
    for (size_t i = 1; i < p->n; i++)
        if (p->series[i].bytes_per_token != p->series->bytes_per_token)
            return true;
    return false;
}

/* The first series of a run that does not tell how long its tokens are; NULL: all do. */
static const struct series *first_unknown(const struct plot *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (!(p->series[i].bytes_per_token > 0))
            return &p->series[i];
    return NULL;
}

static void convert_to_bits(struct plot *p)
{
    p->unit = "bits per byte";
    for (struct series *s = p->series; s < p->series + p->n; s++)
        for (size_t i = 0; i < s->n; i++)
            s->point[i].loss /= M_LN2 * s->bytes_per_token;
}

static void choose_unit(struct plot *p, bool bits)
{
    const struct series *unknown = first_unknown(p);
    p->unit = "loss";
    if (bits && unknown)
        fail(EXIT_USAGE, "%s does not tell how many bytes its tokens have: leave --bits out", unknown->path);
    const bool several = has_several_lengths(p);
    if (several && unknown)
        warn("losses per token of these runs are not comparable, and %s does not tell how many bytes its tokens have",
             unknown->path);
    if (several && !unknown)
        note("the runs have tokens of several lengths: losses are drawn in bits per byte");
    if (bits || (several && !unknown))
        convert_to_bits(p);
}

/* ---- the command ----------------------------------------------------------------------------------------------- */

enum { WIDTH = 1280, HEIGHT = 720 }; /* pixels of the picture */
enum { ROWS = 20 };                  /* lines of the terminal on which curves are drawn */
static const char *png;
static bool bits;
static int from; /* the first step that is drawn */
static const struct option options[] = {
    {.name = "bits",
     .type = OPT_FLAG,
     .value = &bits,
     .group = "Output",
     .commands = 1,
     .help = "draw losses in bits per byte of text, not in nats per token. Without this option plot does so "
             "only if the tokens of several runs have different lengths"},
    {.name = "from",
     .type = OPT_INT,
     .value = &from,
     .initial = "0",
     .argument = "STEP",
     .low = 0,
     .high = INT32_MAX,
     .group = "Output",
     .commands = 1,
     .help = "leave out the steps before this one, so that the axis of losses fits the later ones"},
    {.name = "png",
     .type = OPT_OUTPUT,
     .value = &png,
     .argument = "OUT",
     .group = "Output",
     .commands = 1,
     .help = "write a picture of 1280 x 720 pixels instead of drawing on the terminal"},
};
static struct option_table table = {.options = options, .n = COUNT(options)};

static const struct path_command arguments = {
    .name = "plot",
    .takes = "FILE.jsonl... [options]",
    .examples = "run.jsonl\n"
                "long.jsonl short.jsonl --from 100 --png losses.png\n",
    .help = "Draws the training and validation losses that yard train --log FILE.jsonl wrote, against steps. Several "
            "runs are drawn in one picture.",
    .bit = 1,
    .inputs = INT32_MAX,
};

static int run_plot(int argc, char **argv)
{
    int n;
    struct plot p = {.n = 0};
    char **files = take_arguments(&table, &arguments, argc, argv, &n);
    if (!files)
        return EXIT_OK;
    if (n == 0)
        fail(EXIT_USAGE, "yard plot needs a log that yard train --log FILE.jsonl wrote; 'yard plot --help' says more");
    for (int i = 0; i < n; i++)
        read_run(&p, (size_t)i, files[i]);
    begin_at(&p, from);
    choose_unit(&p, bits);
    if (png)
        write_png(png, draw_picture(&p, WIDTH, HEIGHT)->pixels, WIDTH, HEIGHT);
    else
        draw_on_terminal(stdout, &p, screen_width(STDOUT_FILENO), ROWS, shows_colour());
    return EXIT_OK;
}

static const struct subcommand command = {
    .help_place = 90,
    .name = "plot",
    .help = "draw the losses that --log recorded",
    .run = run_plot,
    .foreign = " curve loss graph ",
};
const struct module module_plot = {
    .name = "plot",
    .needs = "command picture",
    .commands = &command,
    .n_commands = 1,
};
