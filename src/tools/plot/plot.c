/* plot.c - yard plot: the losses that `yard train --log` wrote, against steps; several runs over each other.
 *
 *     logs -> plot_read.c -> series -> plot_values.c -> series -> plot_axes.c, and plot_terminal.c or plot_picture.c
 *
 * plot_names.c has the texts that both draw.
 */
#include "plot.h"
#include "planning/console/arguments.h"
#include "planning/console/table.h"
#include "trainer/file/file.h"

#include <unistd.h>

enum { WIDTH = 1280, HEIGHT = 720 }; /* pixels of the picture */
enum { ROWS = 20 };                  /* lines of the terminal on which curves are drawn */
enum { OF_PLOT = 1 };                /* the bit of this command, which alone takes the options */
static struct {
    const char *png;
    bool bits, logarithmic;
    double smooth;
    int from; /* the first step that is drawn */
} asked_plot;
static const struct option options[] = {
    {.name = "bits",
     .type = OPT_FLAG,
     .value = &asked_plot.bits,
     .group = "Output",
     .classes = OF_PLOT,
     .help = "draw losses in bits per byte of text, not in nats per token. Without this option plot does so "
             "only if the tokens of several runs have different lengths"},
    {.name = "from",
     .type = OPT_INT,
     .value = &asked_plot.from,
     .initial = "0",
     .argument = "STEP",
     .low = 0,
     .high = INT32_MAX,
     .group = "Output",
     .classes = OF_PLOT,
     .help = "leave out the steps before this one, so that the axis of losses fits the later ones"},
    {.name = "log",
     .type = OPT_FLAG,
     .value = &asked_plot.logarithmic,
     .group = "Output",
     .classes = OF_PLOT,
     .help =
         "draw losses on a logarithmic axis. If each run has a floor, as with stories, what is drawn is how far the "
         "losses are above it"},
    {.name = "smooth",
     .type = OPT_DOUBLE,
     .value = &asked_plot.smooth,
     .initial = "1",
     .argument = "N",
     .low = 0,
     .high = 1e9,
     .group = "Output",
     .classes = OF_PLOT,
     .help = "draw the training losses as means of N steps, each at the middle of its steps. A number below 1, such as "
             "0.9, means exponential means: it is the weight of what was before"},
    {.name = "png",
     .type = OPT_OUTPUT,
     .value = &asked_plot.png,
     .argument = "OUT",
     .group = "Output",
     .classes = OF_PLOT,
     .help = "write a picture of 1280 x 720 pixels instead of drawing on the terminal"},
};
static struct option_table table = {.options = options, .n = COUNT(options)};

static const struct path_command arguments = {
    .name = "plot",
    .takes = "FILE.jsonl... [options]",
    .examples = "run.jsonl --log\n"
                "long.jsonl short.jsonl --smooth 16 --from 100 --png losses.png\n",
    .help = "Draws the training and validation losses that `yard train --log FILE.jsonl` wrote, against steps. "
            "Several runs are drawn in one picture.",
    .bit = OF_PLOT,
    .inputs = INT32_MAX,
};

/* Does the terminal show all of Unicode?  The console of Linux has no dots of Braille. */
static bool has_braille(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *terminal = getenv("TERM"), *locale = NULL;
    for (size_t i = 0; i < COUNT(names) && !locale; i++) {
        const char *value = getenv(names[i]);
        locale = value && *value ? value : NULL;
    }
    bool utf8 = locale && (strstr(locale, "UTF-8") || strstr(locale, "utf8"));
    return utf8 && !(terminal && strcmp(terminal, "linux") == 0);
}

static enum exit_code run_plot(int argc, char **argv)
{
    int n;
    struct plot plot = {.n = 0};
    char **files = take_arguments(&table, &arguments, argc, argv, &n);
    if (!files)
        return EXIT_OK;
    if (n == 0)
        fail(EXIT_USAGE, "plot needs a log that `yard train --log FILE.jsonl` wrote; `yard plot --help` says more");
    for (int i = 0; i < n; i++)
        read_run(&plot, (size_t)i, files[i]);
    smooth_losses(&plot, asked_plot.smooth);
    begin_at(&plot, asked_plot.from);
    choose_unit(&plot, asked_plot.bits);
    if (asked_plot.logarithmic)
        take_logarithms(&plot);
    merge_floors(&plot);
    if (asked_plot.png) {
        struct canvas *canvas = draw_picture(&plot, WIDTH, HEIGHT);
        write_png(asked_plot.png, canvas->pixels, WIDTH, HEIGHT);
        free_canvas(canvas);
    } else {
        draw_on_terminal(stdout, &plot, screen_width(STDOUT_FILENO), ROWS, shows_colour(), has_braille());
    }
    empty_plot(&plot);
    free(files);
    return EXIT_OK;
}

static const struct subcommand command = {
    .help_place = 90,
    .name = "plot",
    .help = "draw the losses that --log recorded",
    .run = run_plot,
    .foreign = "curve loss losses graph chart compare tensorboard",
};
const struct module module_plot = {
    .name = "plot",
    .needs = "console picture",
    .commands = &command,
    .n_commands = 1,
};
