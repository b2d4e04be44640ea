/* plot.c - yard plot: the losses that `yard train --log` wrote, against steps; several runs over each other. */

#include <math.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../base/table.h"
#include "../file/file.h"
#include "cmd.h"

/* ---- reading a log --------------------------------------------------------------------------------------------- */

struct log {
    const char *path;
    struct series train, val;
    size_t not_finite;
};

static void add_loss(struct log *log, struct series *to, double step, const json_t *loss)
{
    if (!json_is_number(loss) || !(fabs(json_number_value(loss)) < 1e300)) { /* null: not a number */
        log->not_finite++;
        return;
    }
    *APPEND(to->point, to->n, to->cap) = (struct point){step, json_number_value(loss)};
}

static void take_line(struct log *log, size_t number, const char *line, size_t n)
{
    json_error_t error;
    json_t *o = json_loadb(line, n, 0, &error);
    if (!json_is_object(o))
        fail(EXIT_FAILED, "%s, line %zu is no JSON object%s%s; yard plot reads what yard train --log FILE writes",
             log->path, number, o ? "" : ": ", o ? "" : error.text);
    const json_t *step = json_object_get(o, "step"), *loss = json_object_get(o, "loss"),
                 *val = json_object_get(o, "val_loss");
    if (step && (!json_is_number(step) || !(fabs(json_number_value(step)) <= 1e12)))
        fail(EXIT_FAILED, "%s, line %zu: \"step\" is no number of a step", log->path, number);
    if (step && loss)
        add_loss(log, &log->train, json_number_value(step), loss);
    if (step && val)
        add_loss(log, &log->val, json_number_value(step), val);
    json_decref(o);
}

/* Line by line; a last one without its end is being written. */
static void read_log(struct log *log)
{
    size_t size, number = 0;
    char *text = read_whole(log->path, &size), *line = text;
    for (char *end; (end = memchr(line, '\n', size - (size_t)(line - text))); line = end + 1)
        if (++number && end > line)
            take_line(log, number, line, (size_t)(end - line));
    free(text);
    if (log->train.n + log->val.n == 0)
        fail(EXIT_FAILED, "%s holds no losses%s; yard plot reads what yard train --log FILE writes", log->path,
             log->not_finite ? " that are finite numbers" : "");
    if (log->not_finite)
        note("%s: left out, because they are not finite: %zu losses", log->path, log->not_finite);
}

static void read_run(struct plot *p, size_t run, const char *path)
{
    struct log log = {.path = path,
                      .train = {.path = path, .kind = "train", .run = run},
                      .val = {.path = path, .kind = "val", .run = run, .val = true}};
    read_log(&log);
    if (log.train.n)
        *APPEND(p->series, p->n, p->cap) = log.train;
    if (log.val.n)
        *APPEND(p->series, p->n, p->cap) = log.val;
}

/* ---- the command ----------------------------------------------------------------------------------------------- */

static struct {
    const char *png, *size;
} given;
static const struct option options[] = {
    {"png", 0, OPT_OUTPUT, &given.png, NULL, "OUT", 0, 0, "Output", 1, "write a picture instead"},
    {"size", 0, OPT_TEXT, &given.size, NULL, "WxH", 0, 0, "Output", 1,
     "of the picture in pixels (default: 1280x720), or of what is printed in characters (default: the terminal's "
     "width, 20 rows)"},
};
static struct option_table table = {.options = options, .n = COUNT(options)};

/* Does the locale say UTF-8?  The first of these that is set decides. */
static bool knows_braille(void)
{
    const char *names[] = {"LC_ALL", "LC_CTYPE", "LANG"}, *value = NULL;
    for (size_t i = 0; i < COUNT(names) && !(value && *value); i++)
        value = getenv(names[i]);
    return value && (strstr(value, "UTF-8") || strstr(value, "utf8") || strstr(value, "UTF8"));
}

static void find_size(int *width, int *height)
{
    struct winsize window;
    char behind;
    *width = given.png ? 1280 : 80;
    *height = given.png ? 720 : 20;
    if (!given.png && ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0)
        *width = window.ws_col;
    int low = given.png ? 200 : 10, high = given.png ? 16384 : 1000;
    if (given.size && (sscanf(given.size, "%dx%d%c", width, height, &behind) != 2 || *width < low || *width > high ||
                       *height < low || *height > high))
        fail(EXIT_USAGE, "--size takes WIDTHxHEIGHT in %s, each %d to %d, not \"%s\"",
             given.png ? "pixels" : "characters", low, high, given.size);
}

static void show(const struct plot *p, int width, int height)
{
    if (!given.png) {
        draw_on_terminal(stdout, p, width, height, shows_colour(), shows_colour() && knows_braille());
        return;
    }
    struct canvas *c = draw_picture(p, width, height);
    must(write_png(given.png, c->pixels, width, height));
    free_canvas(c);
}

int cmd_plot(int argc, char **argv)
{
    char **files;
    int n, width, height;
    struct plot p = {.n = 0};
    reset_options(&table);
    if (wants_help(argc, argv)) {
        printf("usage: yard plot FILE.jsonl... [options]\n\n"
               "Draws the training and validation losses that yard train --log FILE.jsonl wrote, against steps;\n"
               "several runs over each other.\n");
        print_options(stdout, &table, 1);
        return EXIT_OK;
    }
    parse_options(&table, 1, "plot", argc, argv, &files, &n);
    if (n == 0)
        fail(EXIT_USAGE, "yard plot needs a log that yard train --log FILE.jsonl wrote; 'yard plot --help' says more");
    begin_claims();
    for (int i = 0; i < n; i++)
        claim_input("yard plot", files[i]);
    if (given.png)
        claim_output("--png", given.png, NULL);
    find_size(&width, &height);
    for (int i = 0; i < n; i++)
        read_run(&p, (size_t)i, files[i]);
    show(&p, width, height);
    for (size_t i = 0; i < p.n; i++)
        free(p.series[i].point);
    free(p.series);
    free(files);
    return EXIT_OK;
}
