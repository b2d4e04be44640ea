/* plan_command.c - yard plan: the step as it would run: printed, verified, simulated. */
#include "plan_command.h"

#include "lists.h"
#include "planning/pass/pass.h"
#include "planning/predict/plan.h"
#include "planning/predict/predict.h"
#include "planning/proof/proof.h"
#include "planning/trace/record.h"
#include "trainer/train/hooks.h"

struct plan_options asked_plan;

/* The values that the list must have: those of the file of --like, or those of the list as it was built. */
static struct problem *prove_list(const struct trainer *trainer, const struct list *list)
{
    if (!asked_plan.like)
        return verify_list(list, values_of(trainer, list));
    struct list *like = read_list(asked_plan.like);
    struct values *expected = hash_named_values(like);
    struct problem *problem = verify_list(list, expected);
    free_values(expected);
    free_list_and_machine(like);
    return problem;
}

/* Proves the trainer's n lists, that for training first, and says the first fault.  Returns the exit code. */
static enum exit_code prove_lists(const struct trainer *trainer, struct list *const *all, size_t n)
{
    struct problem *problem = NULL;
    for (size_t i = 0; i < n && !problem; i++) {
        problem = verify_devices(all[i]);
        if (!problem)
            problem = prove_list(trainer, all[i]);
    }
    fflush(stdout); /* stdout and stderr may be one file: keep their order */
    if (problem) {
        print_problem("yard: verify: ", problem);
        return EXIT_FAILED;
    }
    if (asked_plan.like)
        print_line(stderr, "verify: %zu tasks: each reads the same values as in %s, and every conflict is ordered",
                   trainer->train_list->n, asked_plan.like);
    else if (n == 1)
        print_line(stderr,
                   "verify: %zu tasks: consistent with the list as it is written, and every conflict is ordered",
                   trainer->train_list->n);
    else
        print_line(stderr,
                   "verify: %zu tasks of the train list, and those of the others: every read sees the right value, "
                   "every conflict is ordered,\n        provided that tasks touch what they declare (`yard train "
                   "--serial --audit` checks that)",
                   trainer->train_list->n);
    return EXIT_OK;
}

/* The number of tasks of each lane; lanes without a task are left out. */
static void print_task_counts(const struct list *list)
{
    const struct machine *machine = list->pool->machine;
    printf("list %s: %zu tasks, by lane (--print shows each, --simulate the period)\n", list->name, list->n);
    for (int lane = 0; lane < machine->n_lanes; lane++) {
        size_t tasks = 0;
        for (size_t i = 0; i < list->n; i++)
            if (list->tasks[i]->lane->index == lane)
                tasks++;
        if (tasks > 0)
            printf("  %-24s %7zu\n", machine->lanes[lane]->name, tasks);
    }
}

/* The JSON is one line, unlike what print_json() prints.  With an indented line for each number, a list of thousands of
 * tasks would be several times as many bytes. */
static void print_plan_json(const struct trainer *trainer, struct list *const *all, size_t n,
                            const struct simulation *simulation)
{
    const struct pass_reports passes = reports_of(trainer);
    json_t *plan = plan_json(trainer->pool, all, n);
    json_object_set_new(plan, "passes", reports_json(passes.items, passes.n));
    if (simulation)
        json_object_set_new(plan, "simulation", simulation_json(simulation));
    json_dumpf(plan, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(plan);
}

static void print_plan(const struct trainer *trainer, struct list *const *all, size_t n,
                       const struct simulation *simulation)
{
    const struct pass_reports passes = reports_of(trainer);
    print_reports(stdout, passes.items, passes.n);
    if (asked_plan.print || (!asked_proof.verify && !simulation)) {
        print_task_counts(trainer->train_list);
        print_memory(stdout, trainer->pool, all, n);
    }
    if (simulation)
        print_simulation(stdout, simulation, costs_of(trainer));
    if (asked_plan.print) {
        print_step(stdout, trainer->train_list);
        print_map(stdout, trainer->pool, trainer->train_list);
    }
}

static void trace_plan(const struct simulation *simulation, const char *title)
{
    char *path = path_of_trace();
    if (path)
        write_simulation(simulation, path, title);
    show_if_asked(path);
    free(path);
}

static enum exit_code show_plan(const struct trainer *trainer, const char *title)
{
    struct list *all[MOST_LISTS]; /* they share one arena: one list runs at a time */
    size_t n = lists_of(trainer, all);
    struct simulation *simulation = NULL;
    if (asked_predict.simulate || asked_plan.print_list)
        simulation = must_simulate(trainer->train_list, costs_of(trainer));
    if (asked_plan.print_list)
        write_list(stdout, trainer->train_list, simulation->seconds); /* seconds: how long each task takes alone */
    else if (trainer->settings->json)
        print_plan_json(trainer, all, n, simulation);
    else
        print_plan(trainer, all, n, simulation);
    if (simulation && !asked_plan.print_list)
        trace_plan(simulation, title);
    if (simulation)
        free_simulation(simulation);
    return asked_proof.verify ? prove_lists(trainer, all, n) : EXIT_OK;
}

/* Both ways to plan make a trainer: one of a model, or one that has the list of a step file and nothing else. */

static enum exit_code plan_model(const struct settings *settings)
{
    struct trainer *trainer = plan_training(settings, ALL_LISTS | OPEN_GIVEN_DATA);
    char *shape = describe_shape(trainer);
    enum exit_code code = show_plan(trainer, shape);
    free(shape);
    free_trainer(trainer);
    return code;
}

/* As much of a trainer as a list needs that is looked at, without a model: its list for training is this one. */
static struct trainer *new_trainer_of_list(const struct settings *settings, struct list *list)
{
    struct trainer *trainer = allocate(1, sizeof *trainer);
    *trainer = (struct trainer){
        .settings = settings, .pool = list->pool, .machine = list->pool->machine, .train_list = list, .mesh = one_rank};
    trainer->folder_data = allocate(n_modules, sizeof *trainer->folder_data);
    return trainer;
}

/* Frees the trainer of new_trainer_of_list(), and its list: free_trainer() would look for a model. */
static void free_trainer_of_list(struct trainer *trainer)
{
    tell_trainer_closing(trainer);
    free_list_and_machine(trainer->train_list);
    free(trainer->folder_data);
    free(trainer);
}

static enum exit_code plan_list(const struct settings *settings)
{
    struct list *list = read_list(asked_plan.list);
    set_budgets(list->pool->machine, settings->device_memory, settings->host_memory);
    if (asked_predict.what_if)
        apply_what_if_to_list(list, asked_predict.what_if);
    if (settings->clip > 0)
        gate_updates(list);
    struct trainer *trainer = new_trainer_of_list(settings, list);
    tell_list_built(trainer, list);
    struct problem *problem = place(list->pool, &list, 1, PLACE_TO_CHECK);
    if (problem)
        fail(problem->code, "%s: %s", asked_plan.list, problem->sentence);
    depend(list, ALL_EDGES);
    enum exit_code code = show_plan(trainer, asked_plan.list);
    free_trainer_of_list(trainer);
    return code;
}

static const struct usage usage = {
    .name = "plan",
    .takes = "[options]",
    .examples = "--model tiny --print\n"
                "--list data/steps/1f1b.txt --simulate --trace build/1f1b.trace\n",
    .text = "Builds a training step, but does not run it. Shows its tasks, with their lanes, edges and work, and its "
            "memory.",
    .classes = OF_LIST | OF_PLAN | OF_RUN,
    .files = "--list FILE for a step file, --data FILE for a text",
    .also = "vocab json",
};

/* The way to show a plan that another folder brings, when the options ask for it; else NULL. */
static const struct other_plan *other_plan(void)
{
    for (size_t i = 0; i < n_modules; i++) {
        const struct other_plan *plan = planning_parts_of(modules[i])->plan;
        if (plan && plan->is_wanted())
            return plan;
    }
    return NULL;
}

static enum exit_code run_plan(int argc, char **argv)
{
    struct settings *settings = parse_settings(&usage, argc, argv);
    if (asked_record.file && !asked_predict.simulate)
        fail(EXIT_USAGE, "plan --trace writes what is simulated: add --simulate");
    if (asked_record.shown && !asked_predict.simulate)
        fail(EXIT_USAGE, "plan --view shows what is simulated: add --simulate");
    if (other_plan())
        return other_plan()->run(settings);
    if (asked_plan.list)
        return plan_list(settings);
    return plan_model(settings);
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* May the option be used with --list?  A step file brings its machine, its times and its sizes. */
static bool fits_list(const struct option *option)
{
    return strcmp(option->group, GROUP_TECHNIQUES) == 0 || (option->classes & OF_STEP_FILE);
}

static void check_plan_options(void)
{
    bool simulates = asked_predict.simulate;
    bool has_list = asked_plan.list;
    bool has_times = asked_predict.profile || asked_predict.hardware || has_list;
    const char *unfit = has_list ? first_unfit(fits_list) : NULL;
    if (unfit)
        fail(EXIT_USAGE, "--list %s has its own machine, sizes and times: leave --%s out", asked_plan.list, unfit);
    if ((simulates || asked_plan.print_list) && !has_times)
        fail(EXIT_USAGE, "--%s needs times: add --profile, --hardware or --list",
             simulates ? "simulate" : "print-list");
    if (asked_plan.like && !(has_list && asked_proof.verify))
        fail(EXIT_USAGE, "--like compares the values of two step files: add --list FILE --verify");
    if (asked_predict.what_if && !simulates && !asked_plan.print_list && !other_plan())
        fail(EXIT_USAGE, "--what-if changes what is predicted: add --simulate");
}

/* A training on several devices prints what each holds. */
static void print_summary(struct trainer *trainer)
{
    if (trainer->machine->n_devices > 1)
        print_memory(stdout, trainer->pool, (struct list *[]){trainer->train_list}, 1);
}

static const struct option options[] = {
    {.name = "print",
     .type = OPT_FLAG,
     .value = &asked_plan.print,
     .group = GROUP_LOOKING,
     .classes = OF_PLAN | OF_STEP_FILE,
     .help = "print tasks and memory map too"},
    {.name = "list",
     .type = OPT_INPUT,
     .value = &asked_plan.list,
     .argument = "FILE",
     .group = GROUP_LOOKING,
     .classes = OF_PLAN | OF_STEP_FILE,
     .help = "show the list of a step file instead of a model's list. A step file has a machine, tensors and "
             "tasks written by hand, with their times (the format: tutorials/reference-lists.md, examples: "
             "data/steps). FILE.csv: a list that follows a pipeline's schedule as PyTorch writes it"},
    {.name = "like",
     .type = OPT_INPUT,
     .value = &asked_plan.like,
     .argument = "FILE",
     .group = GROUP_LOOKING,
     .classes = OF_PLAN | OF_STEP_FILE,
     .help = "with --list and --verify, also prove that the list computes the same as the list of this step "
             "file. Both must have the same tasks, known by their names, and each must read the same values. "
             "Copies, order and places may differ"},
    {.name = "print-list",
     .type = OPT_FLAG,
     .value = &asked_plan.print_list,
     .group = GROUP_LOOKING,
     .classes = OF_PLAN | OF_STEP_FILE,
     .help = "print the train list as a step file, which gives the same simulated times. It needs --profile, "
             "--hardware or --list"},
};
static const char nothing_else[] = "a step file is printed and nothing else";
static const struct option_rule rules[] = {
    {"print-list", EXCLUDES, "json", nothing_else},
    {"print-list", EXCLUDES, "print", nothing_else},
    {"print-list", EXCLUDES, "trace", nothing_else},
    {"print-list", EXCLUDES, "view", nothing_else},
};
static const struct hooks hooks = {
    .summary_printed = print_summary,
};
static const struct subcommand command = {
    .help_place = 50,
    .name = "plan",
    .help = "show a training step as a list of tasks, and its memory",
    .run = run_plan,
    .foreign = "simulate list print memory dry-run",
};
static const struct training_parts training = {.hooks = &hooks};
const struct module module_lists = {
    .name = "lists",
    .needs = "pass predict proof trace",
    .commands = &command,
    .n_commands = 1,
    .options = options,
    .n_options = COUNT(options),
    .rules = rules,
    .n_rules = COUNT(rules),
    .check = check_plan_options,
    .training = &training,
};
