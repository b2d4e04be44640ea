/* trace.c - yard trace: what ran when, as numbers (summary), for a browser (export), against another run (diff). */
#include "command.h"
#include "tools/command/arguments.h"
#include "trainer/base/base.h"

/* ---- the words ------------------------------------------------------------------------------------------------- */

struct trace_options trace_options;

enum { SUMMARY = 1, EXPORT = 2, DIFF = 4 };
static const struct option options[] = {
    {.name = "list",
     .type = OPT_TEXT,
     .value = &trace_options.list,
     .argument = "NAME",
     .group = "What",
     .commands = SUMMARY | EXPORT | DIFF,
     .help = "show only this task list: train, eval ... (default: the first that has run; diff: all)"},
    {.name = "steps",
     .type = OPT_TEXT,
     .value = &trace_options.steps,
     .argument = "A:B",
     .group = "What",
     .commands = EXPORT,
     .help = "write only the steps A to B; A: is from A on, :B up to B, A alone is one step"},
    {.name = "chrome",
     .type = OPT_OUTPUT,
     .value = &trace_options.chrome,
     .argument = "FILE",
     .group = "Output",
     .commands = EXPORT,
     .help = "file to write; compressed when its name ends in .gz"},
    {.name = "json",
     .type = OPT_FLAG,
     .value = &trace_options.json,
     .group = "Output",
     .commands = SUMMARY | DIFF,
     .help = "print one JSON object on stdout instead of tables; shares are 0 to 1"},
};
static struct option_table table = {.options = options, .n = COUNT(options)};

static const struct word words[] = {
    {"summary", "FILE", "where the time went: lanes, tasks, what ran beside, critical path", 1, SUMMARY, trace_summary,
     "The first step warms up (kernels are compiled, caches are cold): it is left out when there are more,\n"
     "and so is a last step that has not ended.\n"
     "\n"
     "  step      length: first start to last end; period: end of one step to the end of the next;\n"
     "            work on the disk's lane goes on in the background, and does not count\n"
     "            the time in which the viewer paused the run is cut out of all times\n"
     "  beside    updates on the CPU, by layer: how many ran while a device did a backward\n"
     "            or update of another layer in the same step.  \"none left\": no device had one left in that step.\n"
     "            \"next step\", counted apart: a device did work of the next step.\n"
     "            \"hidden\": the part of ms/step in which a device worked too\n"
     "  critical path of the step with the median period: back from its last end, always to the\n"
     "            predecessor (by tensor, by reused bytes or on the same lane) that ended last.  Its\n"
     "            parts add up to the period.  \"not yet queued\": the host was late; \"queued, not\n"
     "            started\": the device or driver was\n"},
    {"export", "FILE", "Chrome's JSON, for ui.perfetto.dev or chrome://tracing", 1, EXPORT, trace_export,
     "Writes --chrome OUT: a process per device, a thread per lane, an arrow per edge between lanes.  Open it in\n"
     "ui.perfetto.dev (it stays on your machine) or chrome://tracing.  Browsers get slow beyond some\n"
     "hundred thousand tasks: cut with --steps.\n"},
    {"diff", "A B", "a run against another, or against its simulation", 2, DIFF, trace_diff,
     "Compares the median time of each task (same name, layer, micro-batch, lane and task list) over its\n"
     "steps after the first, or its only step.\n"
     "\n"
     "  task_mape        sum of |b - a| over the sum of a: the mean error, weighted by duration\n"
     "  makespan_error   B's step over A's, less 1; a step is the median period, or an only step's length\n"
     "\n"
     "Exit code 0 whatever the difference, 1 when the traces have no task in common.\n"},
};

static const struct words trace_words = {
    .command = "trace",
    .about = "usage: yard trace WORD FILE... [options]\n\n"
             "Reads the traces that yard train --trace FILE and yard plan --trace FILE write, also while the run\n"
             "goes on.  Times of a paced trace are modelled ones.\n",
    .list = "summary, export or diff",
    .inputs = 2,
    .word = words,
    .n = COUNT(words),
    .table = &table};

static int run_trace(int argc, char **argv) { return run_words(&trace_words, argc, argv); }

const struct subcommand trace_command = {
    .help_place = 70,
    .name = "trace",
    .help = "summarise, export or compare what --trace recorded",
    .run = run_trace,
    .foreign = " summary chrome perfetto ",
};
