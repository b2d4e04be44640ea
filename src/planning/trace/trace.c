/* trace.c - yard trace: what ran when, as numbers (summary), for a browser (export), against another run (diff). */
#include "command.h"
#include "planning/console/arguments.h"
#include "trainer/base/base.h"

/* ---- the words --------------------------------------------------------------------------------------------------- */

struct trace_options asked_trace;

enum { SUMMARY = 1, EXPORT = 2, DIFF = 4 };
static const struct option options[] = {
    {.name = "list",
     .type = OPT_TEXT,
     .value = &asked_trace.list,
     .argument = "NAME",
     .group = "What",
     .classes = SUMMARY | EXPORT | DIFF,
     .help = "show only this list, such as train or eval (default: the first that has run; diff: all)"},
    {.name = "steps",
     .type = OPT_TEXT,
     .value = &asked_trace.steps,
     .argument = "A:B",
     .group = "What",
     .classes = EXPORT,
     .help = "write only the steps A to B. A: means from A on, :B means up to B, and A alone is one step"},
    {.name = "chrome",
     .type = OPT_OUTPUT,
     .value = &asked_trace.chrome,
     .argument = "FILE",
     .group = "Output",
     .classes = EXPORT,
     .help = "file to write. It is compressed if its name ends in .gz"},
    {.name = "json",
     .type = OPT_FLAG,
     .value = &asked_trace.json,
     .group = "Output",
     .classes = SUMMARY | DIFF,
     .help = "print one JSON object on stdout instead of tables. In it shares are 0 to 1"},
};
static struct option_table table = {.options = options, .n = COUNT(options)};

static const struct path_subcommand subcommands[] = {
    {.name = "summary",
     .takes = "FILE",
     .summary = "show where the time went: by lane, by task, what ran at the same time, and the critical path",
     .n_paths = 1,
     .bit = SUMMARY,
     .run = trace_summary,
     .examples = "build/run.trace\n"
                 "build/run.trace --list eval --json\n",
     .help = "The first step is left out if there are more, since it warms up (kernels are compiled, caches are "
             "cold). A last step that has not ended is left out too.\n\n"
             "  step      A step's length is the time from the start of its first task to the end of its last. The "
             "period is the time from the end of one step to the end of the next. Work on the disk's lane goes on in "
             "the background, and does not count. The time in which the viewer paused the run is left out of all "
             "times.\n"
             "  beside    This table is about updates on the CPU, by layer. It says how many of them ran while a "
             "device did a backward or update of another layer in the same step. \"none left\" counts the updates for "
             "which no device had such work left in that step. \"next step\" counts those during which a device did "
             "work of the next step. \"hidden\" is the part of ms/step in which a device worked too.\n"
             "  critical path\n"
             "            The path is that of the step with the median period. It goes back from the step's last end, "
             "always to the predecessor (by tensor, by reused bytes or on the same lane) that ended last. Its parts "
             "add up to the period. \"not yet queued\" is time in which the host was late, and \"queued, not "
             "started\" is time in which the device or the driver was late."},
    {.name = "export",
     .takes = "FILE",
     .summary = "write Chrome's JSON, for ui.perfetto.dev or chrome://tracing",
     .n_paths = 1,
     .bit = EXPORT,
     .run = trace_export,
     .examples = "build/run.trace --chrome run.json\n"
                 "build/run.trace --chrome run.json --steps 2:4\n",
     .help = "Writes the file --chrome FILE, which has a process per device, a thread per lane, and an arrow per edge "
             "between lanes. Open it in ui.perfetto.dev (it stays on your machine) or chrome://tracing. Browsers get "
             "slow beyond some hundred thousand tasks. Then write fewer steps with --steps."},
    {.name = "diff",
     .takes = "A B",
     .summary = "compare a run with another run, or with its simulation",
     .n_paths = 2,
     .bit = DIFF,
     .run = trace_diff,
     .examples = "build/run.trace build/simulated.trace\n"
                 "build/before.trace build/after.trace --json\n",
     .help = "Compares the median time of each task (same name, layer, micro-batch, lane and list) over its steps "
             "after the first, or over its only step.\n\n"
             "  task_mape        sum of |b - a| over the sum of a, which is the mean error, weighted by duration\n"
             "  makespan_error   the step of B over that of A, less 1. A step is the median period, or the length of "
             "an only step\n\n"
             "The exit code is 0 whatever the difference is, and 1 if the traces have no task in common."},
};

static const struct subcommand_group trace_group = {
    .command = "trace",
    .examples = "summary build/run.trace\n"
                "diff build/run.trace build/simulated.trace\n",
    .about = "Reads the traces that `yard train --trace FILE` and `yard plan --trace FILE` write, also while the run "
             "still goes on. The times of a run with --pace are modelled.",
    .inputs = 2,
    .subcommands = subcommands,
    .n = COUNT(subcommands),
    .table = &table};

static enum exit_code run_trace(int argc, char **argv) { return run_subcommand(&trace_group, argc, argv); }

const struct subcommand trace_command = {
    .help_place = 70,
    .name = "trace",
    .help = "summarise, export or compare what --trace recorded",
    .run = run_trace,
    .foreign = "summary chrome perfetto",
};
