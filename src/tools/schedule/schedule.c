/* schedule.c - the options of schedules, and what other folders call. */
#include "schedule.h"
#include "tools/lists/lists.h"
#include "tools/lists/plan_command.h"

static struct {
    bool print;
    const char *times;
} given;

/* ---- files -------------------------------------------------------------------------------------------------------- */

/* The text of a checkpoint has lines, a path has none. */
static const struct order *read_order(const char *from)
{
    const bool is_text = strchr(from, '\n');
    char *text = is_text ? copy_string(from) : read_text(from);
    const struct schedule *s = read_schedule(is_text ? "the schedule of the run" : from, text);
    free(text);
    return order_of(s);
}

static char *read_as_list(const char *path)
{
    char *text = read_text(path);
    char *list = step_file_of(read_schedule(path, text), given.times);
    free(text);
    return list;
}

static const struct list_form form = {.ending = ".csv", .read = read_as_list};

/* ---- --print-schedule --------------------------------------------------------------------------------------------- */

static bool is_wanted(void) { return given.print; }

static struct schedule *schedule_of_file(const char *path)
{
    if (!ends_with(path, form.ending))
        return schedule_of(path, read_list(path));
    char *text = read_text(path);
    struct schedule *s = read_schedule(path, text);
    free(text);
    return s;
}

static struct schedule *schedule_of_model(const struct settings *o)
{
    struct trainer *t = new_trainer(o, 0, false, true);
    const struct order *order = order_for(o, t->mesh.pp);
    if (order->written)
        return read_schedule("--pipeline", order->written->text);
    struct schedule *s = allocate(1, sizeof *s);
    s->path = "--pipeline";
    for (int p = 0; p < t->mesh.pp; p++) {
        int n;
        struct turn *turn = pipeline_order(order, &t->mesh, p, t->micros, &n);
        struct row *row = APPEND(s->row, s->n, s->cap);
        for (int i = 0; i < n; i++)
            *APPEND(row->cell, row->n, row->cap) = (struct cell){.turn = {turn[i]}, .n = 1, .row = p, .column = i};
        free(turn);
    }
    free_trainer(t);
    index_cells(s);
    return s;
}

static int print_schedule(const struct settings *o)
{
    const char *list = plan_options.list;
    struct schedule *s = list ? schedule_of_file(list) : schedule_of_model(o);
    refuse_wrong_in_pytorch(s);
    char *text = format_schedule(s);
    fputs(text, stdout);
    free(text);
    return EXIT_OK;
}

/* ---- the folder --------------------------------------------------------------------------------------------------- */

static const struct order_reader orders = {.ending = ".csv", .read = read_order};
static const struct other_plan plan = {.is_wanted = is_wanted, .run = print_schedule};

static void check_schedule_options(struct settings *s)
{
    (void)s;
    if (given.times && plan_options.list && !ends_with(plan_options.list, form.ending))
        fail(EXIT_USAGE, "--times is for a schedule, --list FILE.csv: %s has times of its own", plan_options.list);
}

/* name, letter, type, value, default, argument, low, high, group, commands, help */
static const struct option options[] = {
    {.name = "print-schedule",
     .type = OPT_FLAG,
     .value = &given.print,
     .group = GROUP_LOOKING,
     .commands = OF_PLAN,
     .help = "print the order of a pipeline's micro-batches as PyTorch reads it, a CSV with a row per device: that of "
             "a model's mesh, or that of --list FILE"},
    {.name = "times",
     .type = OPT_TEXT,
     .value = &given.times,
     .argument = "F=TIME,...",
     .group = GROUP_LOOKING,
     .commands = OF_PLAN,
     .help = "times of --list FILE.csv, of a stage: F forward, I and W the halves of its backward, B a whole one (else "
             "I + W), FB a forward and a backward that overlap (else F + B), send; with a number before it of that "
             "stage alone (default: F=1ms,I=1ms,W=1ms,send=0)"},
};
static const struct law laws[] = {{"times", "list", NULL},
                                  {"print-schedule", "json", "a schedule is printed and nothing else"},
                                  {"print-schedule", "print", "a schedule is printed and nothing else"},
                                  {"print-schedule", "print-list", "a schedule is printed and nothing else"},
                                  {"print-schedule", "simulate", "a schedule is printed and nothing else"},
                                  {"print-schedule", "verify", "a schedule is printed and nothing else"}};
const struct module module_schedule = {
    .name = "schedule",
    .needs = "lists",
    .place = 56,
    .options = options,
    .n_options = COUNT(options),
    .laws = laws,
    .n_laws = COUNT(laws),
    .check = check_schedule_options,
    .sole.orders = &orders,
    .plan = &plan,
    .list_form = &form,
};
