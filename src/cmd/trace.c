/* trace.c - yard trace: what ran when, as numbers (summary), for a browser (export), against another run (diff). */
#include "../file/file.h"
#include "trace_cmd.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the words ------------------------------------------------------------------------------------------------- */

static struct {
    bool json, help;
    const char *list, *chrome, *steps;
    int64_t top;
} given;

enum { SUMMARY = 1, EXPORT = 2, DIFF = 4 };
static struct option options[] = {
    {"list", 0, OPT_TEXT, &given.list, "NAME", 0, 0, "What",
     "only this task list: train, eval ... (default: the first that has run; diff: all)", SUMMARY | EXPORT | DIFF,
     false},
    {"top", 0, OPT_INT, &given.top, "N", 1, 1e6, "What", "rows of the table of tasks", SUMMARY, false},
    {"steps", 0, OPT_TEXT, &given.steps, "A:B", 0, 0, "What",
     "only the steps A to B; A: is from A on, :B up to B, A alone is one step", EXPORT, false},
    {"chrome", 0, OPT_OUTPUT, &given.chrome, "FILE", 0, 0, "Output",
     "where to write; compressed when the name ends in .gz", EXPORT, false},
    {"json", 0, OPT_FLAG, &given.json, NULL, 0, 0, "Output",
     "one JSON object on stdout instead of tables; shares are 0 to 1", SUMMARY | DIFF, false},
    {"help", 'h', OPT_FLAG, &given.help, NULL, 0, 0, "Output", "print this", SUMMARY | EXPORT | DIFF, false},
};
static struct option_table table = {options, COUNT(options)};

/* 0 when the text is no step number. */
static uint32_t step_number(const char *text)
{
    int64_t value;
    return parse_int(text, &value) && value >= 1 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

static void parse_steps(const char *text, uint32_t *first, uint32_t *last)
{
    *first = 1;
    *last = UINT32_MAX;
    if (!text)
        return;
    char *from = copy_string(text), *colon = strchr(from, ':');
    if (colon)
        *colon = '\0';
    if (!colon)
        *first = *last = step_number(from);
    if (colon && *from)
        *first = step_number(from);
    if (colon && colon[1])
        *last = step_number(colon + 1);
    if (*first == 0 || *last == 0 || *first > *last)
        fail(EXIT_USAGE, "--steps takes A:B, two step numbers that count from 1 with A at most B, not \"%s\"", text);
    free(from);
}

static int run_summary(char **files)
{
    trace_summary(files[0], given.list, (size_t)given.top, given.json);
    return EXIT_OK;
}

static int run_export(char **files)
{
    uint32_t first, last;
    if (!given.chrome)
        fail(EXIT_USAGE, "yard trace export needs --chrome OUT.json.gz, the file to write");
    claim_output("--chrome", given.chrome, NULL);
    parse_steps(given.steps, &first, &last);
    trace_export(files[0], given.chrome, given.list, first, last);
    return EXIT_OK;
}

static int run_diff(char **files) { return trace_diff(files[0], files[1], given.list, given.json); }

static const struct word {
    const char *name, *files, *what;
    int n_files;
    unsigned bit;
    int (*run)(char **files);
    const char *help;
} words[] = {
    {"summary", "FILE", "where the time went: lanes, overlap, tasks, critical path", 1, SUMMARY, run_summary,
     "The first step warms up (kernels are compiled, caches are cold): it is left out when there are more,\n"
     "and so is a last step that has not ended.\n"
     "\n"
     "  step      length: first start to last end; period: end of one step to the end of the next;\n"
     "            what is on the disk's lane goes on in the background, and is not in it\n"
     "  overlap   the part of a lane's busy time in which a lane of another kind or device was busy too.\n"
     "            This is interval overlap: two lanes that share cores overlap without any gain; compare\n"
     "            step times\n"
     "  critical path of the step with the median period: back from its last end, always to the\n"
     "            predecessor (by tensor, by reused bytes or on the same lane) that ended last.  Its\n"
     "            parts add up to the period.  \"not yet queued\": the host was late; \"queued, not\n"
     "            started\": the device or driver was\n"},
    {"export", "FILE", "Chrome's JSON, for ui.perfetto.dev or chrome://tracing", 1, EXPORT, run_export,
     "A process per device, a thread per lane, an arrow per edge between lanes.  Open the file in\n"
     "ui.perfetto.dev (it stays on your machine) or chrome://tracing.  Browsers get slow beyond some\n"
     "hundred thousand tasks: cut with --steps.\n"},
    {"diff", "A B", "a run against another, or against its simulation", 2, DIFF, run_diff,
     "Compares the median time of each task (same name, layer, micro-batch, lane and task list) over its\n"
     "steps after the first, or its only step.\n"
     "\n"
     "  task_mape        sum of |b - a| over the sum of a: the mean error, weighted by duration\n"
     "  makespan_error   B's step over A's, less 1; a step is the median period, or an only step's length\n"
     "\n"
     "Exit code 0 whatever the difference, 1 when the traces have no task in common.\n"},
};

static void print_overview(void)
{
    printf("usage: yard trace WORD FILE... [options]\n\n"
           "Reads the traces that yard train --trace FILE and yard plan --trace FILE write, also while the run\n"
           "goes on.  Times of a paced trace are modelled ones.\n\n");
    for (size_t i = 0; i < COUNT(words); i++)
        printf("  %-8s %-5s  %s\n", words[i].name, words[i].files, words[i].what);
    printf("\n'yard trace WORD --help' says more.\n");
}

static void print_word(const struct word *w)
{
    printf("usage: yard trace %s %s [options]\n\n%s: %s.\n\n%s", w->name, w->files, w->name, w->what, w->help);
    print_options(stdout, &table, w->bit);
}

static int run_word(const struct word *w, int argc, char **argv)
{
    char **files;
    int n;
    char *full_name = format_string("trace %s", w->name);
    memset(&given, 0, sizeof given);
    given.top = 12;
    parse_options(&table, w->bit, full_name, argc, argv, &files, &n);
    int code = EXIT_OK;
    begin_claims();
    for (int i = 0; i < n; i++)
        claim_input("yard trace", files[i]);
    if (given.help)
        print_word(w);
    else if (n != w->n_files)
        fail(EXIT_USAGE, "yard %s takes %s, %d file%s, but %d %s given; 'yard %s --help' says more", full_name,
             w->files, w->n_files, w->n_files == 1 ? "" : "s", n, n == 1 ? "was" : "were", full_name);
    else
        code = w->run(files);
    free(files);
    free(full_name);
    return code;
}

int cmd_trace(int argc, char **argv)
{
    if (argc == 0)
        fail(EXIT_USAGE, "yard trace needs a word: summary, export or diff; 'yard trace --help' says more");
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0 || strcmp(argv[0], "help") == 0) {
        print_overview();
        return EXIT_OK;
    }
    const struct word *nearest = &words[0];
    for (size_t i = 0; i < COUNT(words); i++) {
        if (strcmp(argv[0], words[i].name) == 0)
            return run_word(&words[i], argc - 1, argv + 1);
        if (edit_distance(argv[0], words[i].name) < edit_distance(argv[0], nearest->name))
            nearest = &words[i];
    }
    if (edit_distance(argv[0], nearest->name) <= 2)
        fail(EXIT_USAGE, "yard trace has no word \"%s\"; did you mean yard trace %s?", argv[0], nearest->name);
    fail(EXIT_USAGE, "yard trace has no word \"%s\"; it takes summary, export or diff", argv[0]);
}
