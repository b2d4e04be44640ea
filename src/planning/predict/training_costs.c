/* training_costs.c - what a training has of predictions: costs, and for plans a machine that is only described. */
#include "planning/pass/pass.h"
#include "predict.h"
#include "trainer/train/hooks.h"
#include "trainer/train/train.h"

#include <math.h>

struct predict_options asked_predict;
static struct costs *trial; /* what was measured where no file says; NULL: nothing was */

struct costs *costs_of(const struct trainer *trainer) { return *folder_data_of(trainer, &module_predict); }

static const char *costs_file(void)
{
    const struct predict_options *options = &asked_predict;
    if (options->pace)
        return options->pace;
    return options->profile ? options->profile : options->hardware;
}

int n_paper_devices(const struct settings *settings)
{
    int64_t n;
    if (!asked_predict.hardware || !settings->devices || !parse_int(settings->devices, &n))
        return 0;
    if (n < 1 || n > MOST_PAPER_DEVICES)
        fail(EXIT_USAGE, "-d %s: a plan can use 1 to %d devices of %s", settings->devices, MOST_PAPER_DEVICES,
             asked_predict.hardware);
    return (int)n;
}

/* The costs that the options ask for: those of a file, or of a trial; NULL: nothing says how long tasks take. */
static struct costs *open_costs(const struct settings *settings)
{
    const char *file = settings->demands.trial ? NULL : costs_file();
    if (!file)
        return trial;
    struct costs *costs = read_costs(file);
    if (file == asked_predict.profile && !costs->measured)
        fail(EXIT_USAGE, "%s is a hardware description, not a profile: give it to --hardware", file);
    return costs;
}

/* Is the training a plan for described hardware, which does not ask for devices of this host? */
static bool is_on_paper(const struct trainer *trainer)
{
    const struct settings *settings = trainer->settings;
    if (!asked_predict.hardware || settings->demands.trial || !trainer->is_draft)
        return false;
    return !settings->devices || n_paper_devices(settings) > 0;
}

/* A machine with as many of the described devices as -d says, or else as the mesh needs. */
static struct machine *paper_machine(const struct settings *settings, const struct costs *costs)
{
    int counted = n_paper_devices(settings);
    struct mesh mesh = wanted_mesh(settings, MAX(counted, 1));
    struct machine *machine = virtual_machine(costs, counted ? counted : n_ranks(&mesh));
    set_budgets(machine, settings->device_memory, settings->host_memory);
    return machine;
}

/* The trainer is about to open its devices.  This gives it its costs, and returns the machine of a plan on paper; NULL:
 * devices of this host are opened.  With described costs each of these has a context of its own, as on paper. */
static struct machine *bring_costs_and_machine(struct trainer *trainer, bool *separate)
{
    struct costs *costs = open_costs(trainer->settings);
    *folder_data_of(trainer, &module_predict) = costs;
    *separate = costs && !costs->measured;
    return is_on_paper(trainer) ? paper_machine(trainer->settings, costs) : NULL;
}

static void adapt_costs(struct trainer *trainer)
{
    struct costs *costs = costs_of(trainer);
    if (asked_predict.what_if && costs)
        apply_what_if(costs, trainer->machine, asked_predict.what_if);
    if (costs && trainer->machine->devices[0].cl)
        refuse_if_other_fingerprint(costs, &trainer->machine->devices[0], engine_name(trainer));
}

void use_trial_costs(struct costs *costs) { trial = costs; }

static void free_own_costs(struct trainer *trainer)
{
    struct costs *costs = costs_of(trainer);
    if (costs && costs != trial)
        free_costs(costs);
}

static double predict_task(const struct trainer *trainer, const struct task *task)
{
    enum cost_source source;
    const struct costs *costs = costs_of(trainer);
    return costs ? task_seconds(costs, task, &source) : NAN;
}

static void check_predict_options(void)
{
    const struct predict_options *options = &asked_predict;
    if (options->what_if && strstr(options->what_if, "mem=") && was_given("device-mem"))
        fail(EXIT_USAGE, "--what-if %s and --device-mem: both say what a device may hold; leave one out",
             options->what_if);
}

static const struct option options[] = {
    {.name = "simulate",
     .type = OPT_FLAG,
     .value = &asked_predict.simulate,
     .group = GROUP_PREDICTING,
     .classes = OF_PLAN | OF_STEP_FILE,
     .help = "predict the step on a virtual clock. It needs --profile, --hardware or --list"},
    {.name = "profile",
     .type = OPT_INPUT,
     .value = &asked_predict.profile,
     .argument = "FILE",
     .group = GROUP_PREDICTING,
     .classes = OF_TRAIN | OF_PLAN,
     .help = "file with the times of tasks that `yard profile` measured. `yard train` plans with them instead of "
             "measuring in a trial"},
    {.name = "hardware",
     .type = OPT_INPUT,
     .value = &asked_predict.hardware,
     .argument = "FILE",
     .group = GROUP_PREDICTING,
     .classes = OF_TRAIN | OF_PLAN,
     .help = "description of a machine, from which the times of tasks are modelled (see data/hardware). --mesh dp=N, "
             "or -d N, uses N of its devices, and no OpenCL device is needed (of `yard bench`, only --broadcast "
             "can be simulated). `yard train` plans with these times instead of measuring in a trial"},
    {.name = "what-if",
     .type = OPT_TEXT,
     .value = &asked_predict.what_if,
     .argument = "WORDS",
     .group = GROUP_PREDICTING,
     .classes = OF_PLAN | OF_STEP_FILE,
     .help = "predict for changed hardware, as in \"link=2x cpu=0.5x device=1.5x mem=8G\". With --memory it "
             "may be mixed, for mixed precision, which is counted but cannot be run"},
    {.name = "output",
     .letter = 'o',
     .type = OPT_OUTPUT,
     .value = &asked_predict.output,
     .argument = "FILE",
     .group = GROUP_PREDICTING,
     .classes = 0, /* only a usage that names it takes it */
     .help = "the profile to write"},
};
static const struct option_rule rules[] = {{"profile", EXCLUDES, "hardware", "both say how long tasks take"}};
static const struct hooks hooks = {
    .training_begins = run_trial_for,
    .machine = bring_costs_and_machine,
    .machine_opened = adapt_costs,
    .predicted_seconds = predict_task,
    .trainer_closing = free_own_costs,
};
static const struct subcommand command = {
    .help_place = 60, .name = "profile", .help = "measure how long tasks take, for predictions", .run = run_profile};
static const struct training_parts training = {.hooks = &hooks};
static const struct planning_parts planning = {.forecaster = &forecaster};
const struct module module_predict = {
    .name = "predict",
    .needs = "console pass trace",
    .after = "restart watch", /* a trial trains: in the process that trains then, and watched */
    .commands = &command,
    .n_commands = 1,
    .options = options,
    .n_options = COUNT(options),
    .rules = rules,
    .n_rules = COUNT(rules),
    .check = check_predict_options,
    .training = &training,
    .planning = &planning,
};
