/* schedule.c - the options of schedules, and what other folders call. */
#include "schedule.h"
#include "planning/lists/lists.h"
#include "planning/lists/plan_command.h"
#include "planning/pass/pass.h"
#include "planning/predict/plan.h"
#include "trainer/base/additions.h"
#include "trainer/file/file.h"

static struct {
    bool print;
    const char *times;
} asked_schedule;

/* ---- files ------------------------------------------------------------------------------------------------------- */

static struct schedule *read_schedule_file(const char *path)
{
    char *text = read_text(path);
    struct schedule *schedule = read_schedule(path, text);
    free(text);
    return schedule;
}

/* The text of a checkpoint has lines, a path has none. */
static const struct turn_order *read_order(const char *from)
{
    bool is_text = strchr(from, '\n');
    struct schedule *schedule = is_text ? read_schedule("the schedule of the run", from) : read_schedule_file(from);
    const struct turn_order *turn_order = new_turn_order(schedule);
    free_schedule(schedule);
    return turn_order;
}

static char *read_as_list(const char *path)
{
    struct schedule *schedule = read_schedule_file(path);
    char *list = format_step_file(schedule, asked_schedule.times);
    free_schedule(schedule);
    return list;
}

static const struct order_reader orders = {.ending = ".csv", .read = read_order};
static const struct list_form form = {.ending = ".csv", .read = read_as_list};

/* ---- --print-schedule -------------------------------------------------------------------------------------------- */

static bool wants_schedule(void) { return asked_schedule.print; }

static struct schedule *new_schedule_of_order(const struct turn_order *turn_order, const struct mesh *mesh, int micros)
{
    struct schedule *schedule = allocate(1, sizeof *schedule);
    schedule->name = "--pipeline";
    for (int p = 0; p < mesh->pp; p++) {
        int n;
        struct turn *turns = pipeline_order(turn_order, mesh, p, micros, &n);
        GROW(schedule->rows, schedule->cap, schedule->n + 1);
        struct row *row = &schedule->rows[schedule->n++];
        for (int i = 0; i < n; i++)
            add_cell(row, (struct turn_cell){.turns = {turns[i]}, .n = 1, .row = p, .column = i});
        free(turns);
    }
    index_cells(schedule);
    return schedule;
}

/* A schedule from a file is printed as it was there: with the turns that overlap. */
static struct schedule *new_schedule_of_model(const struct settings *settings)
{
    struct schedule *schedule;
    struct trainer *trainer = plan_training(settings, 0);
    if (trainer->turn_order->written)
        schedule = read_schedule("--pipeline", trainer->turn_order->written->text);
    else
        schedule = new_schedule_of_order(trainer->turn_order, &trainer->mesh, trainer->micros);
    free_trainer(trainer);
    return schedule;
}

static void print_and_free(struct schedule *schedule)
{
    refuse_if_waits_are_endless(schedule, UNTIED);
    refuse_if_wrong_in_pytorch(schedule);
    char *text = format_schedule(schedule);
    fputs(text, stdout);
    free(text);
    free_schedule(schedule);
}

static void print_schedule_of_list(const char *path)
{
    struct list *list = read_list(path);
    print_and_free(new_schedule_of_list(path, list));
    free_list_and_machine(list);
}

static enum exit_code print_schedule(const struct settings *settings)
{
    const char *list = asked_plan.list;
    if (!list)
        print_and_free(new_schedule_of_model(settings));
    else if (ends_with(list, form.ending))
        print_and_free(read_schedule_file(list));
    else
        print_schedule_of_list(list);
    return EXIT_OK;
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static const struct other_plan plan = {.is_wanted = wants_schedule, .run = print_schedule};

static void check_schedule_options(void)
{
    if (asked_schedule.times && asked_plan.list && !ends_with(asked_plan.list, form.ending))
        fail(EXIT_USAGE, "--times is for a schedule, --list FILE.csv; %s has times of its own: leave --times out",
             asked_plan.list);
}

static const struct option options[] = {
    {.name = "print-schedule",
     .type = OPT_FLAG,
     .value = &asked_schedule.print,
     .group = GROUP_LOOKING,
     .classes = OF_PLAN | OF_STEP_FILE,
     .help = "print the order of a pipeline's micro-batches as PyTorch reads it. This is a CSV with a row per "
             "device, for a model's mesh or for --list FILE"},
    {.name = "times",
     .type = OPT_TEXT,
     .value = &asked_schedule.times,
     .argument = "F=TIME,...",
     .group = GROUP_LOOKING,
     .classes = OF_PLAN | OF_STEP_FILE,
     .help = "times of --list FILE.csv: of a stage's forward (F), its backward's two parts (I, W), a whole "
             "backward (B), a forward and a backward that overlap (FB), and a send. 3F=2ms is for stage 3 alone "
             "(tutorials/reference-lists.md) (default: F=1ms,I=1ms,W=1ms,send=0)"},
};
static const char nothing_else[] = "a schedule is printed and nothing else";
static const struct option_rule rules[] = {
    {"times", NEEDS, "list", NULL},
    {"print-schedule", EXCLUDES, "json", nothing_else},
    {"print-schedule", EXCLUDES, "print", nothing_else},
    {"print-schedule", EXCLUDES, "print-list", nothing_else},
    {"print-schedule", EXCLUDES, "simulate", nothing_else},
    {"print-schedule", EXCLUDES, "memory", nothing_else},
    {"print-schedule", EXCLUDES, "verify", nothing_else},
};
static const struct training_parts training = {.orders = &orders};
static const struct planning_parts planning = {.plan = &plan, .list_form = &form};
const struct module module_schedule = {
    .name = "schedule",
    .needs = "lists",
    .options = options,
    .n_options = COUNT(options),
    .rules = rules,
    .n_rules = COUNT(rules),
    .check = check_schedule_options,
    .training = &training,
    .planning = &planning,
};
