/* memory.c - yard plan --memory: what each device, and the host, would hold at the peak, by strategy: with each
 * kind of recomputation and, where there are several data-parallel ranks, each level of ZeRO, on the mesh as given.
 * Nothing is refused here: the last column says what fits.
 *
 * The column "formula" is what papers count for parameters, gradients and optimizer: with N data-parallel ranks and
 * ZeRO 0 to 3
 *
 *     in 32 bits    16    8 + 8/N     4 + 12/N    16/N    bytes per parameter: 4 + 4 + 8 (m, v)
 *     mixed         16    4 + 12/N    2 + 14/N    16/N    2 + 2 + 12 (m, v and parameters of 32 bits)
 *
 * Mixed precision cannot be run here: its bytes are counted on the list that runs in 32 bits.
 */
#include "planning/console/table.h"
#include "planning/lists/lists.h"
#include "planning/lists/plan_command.h"
#include "planning/pass/pass.h"
#include "planning/predict/plan.h"
#include "planning/predict/predict.h"
#include "planning/proof/proof.h"
#include "techniques/recompute/recompute.h"
#include "techniques/swap/swap.h"

#include <math.h>

/* Bytes per element: parameters, gradients and optimizer per parameter of the model, then the other classes. */
static const double run_bytes[MEM_CLASSES] = {4, 4, 8, 4, 4, 4};
static const double mixed_bytes[MEM_CLASSES] = {2, 2, 12, 2, 4, 2};

enum { PLANNED = ALL_LISTS | OPEN_GIVEN_DATA }; /* what the trainer of a strategy is made with */

struct strategy {
    struct settings settings;     /* those of this strategy, without limits of memory */
    const struct settings *asked; /* as the user gave them; its budgets are 0 where the devices' memory is meant */
    const double *bytes;          /* by class: run_bytes or mixed_bytes */
    enum recompute recompute;
    struct trainer *trainer;
};

/* The formula for a rank's part of the model, in bytes.  ZeRO shares the classes out one by one, the last first. */
static double formula_bytes(const struct strategy *strategy, int rank)
{
    const struct mesh *mesh = &strategy->trainer->mesh;
    const struct params *params = params_of(strategy->trainer->model, rank);
    double elements = 0, bytes = 0;
    for (int i = 0; i < params->n; i++)
        if (has_stage(mesh, rank, stage_of(strategy->trainer->model, params->items[i].unit)))
            elements += (double)param_elements(&params->items[i]);
    for (int c = MEM_PARAMETERS; c <= MEM_OPTIMIZER; c++) {
        bool shared_out = mesh->zero >= 3 - c;
        bytes += elements * strategy->bytes[c] / (shared_out ? mesh->dp : 1);
    }
    return bytes;
}

/* Bytes of a class, from those of the list, which is planned in 32 bits. */
static double bytes_of(const struct strategy *strategy, int class, size_t planned)
{
    return (double)planned * strategy->bytes[class] / run_bytes[class];
}

/* Do two devices hold as many MiB of each class? */
static bool hold_the_same(const struct list *list, int first, int second)
{
    for (int k = 0; k < MEM_CLASSES; k++)
        if (list->extra.peak[first][k] >> 20 != list->extra.peak[second][k] >> 20)
            return false;
    return true;
}

/* Does a device before this one hold as many MiB of each class? */
static bool was_listed(const struct list *list, int device)
{
    for (int i = 0; i < device; i++)
        if (hold_the_same(list, i, device))
            return true;
    return false;
}

/* The most bytes that the device holds at a time. */
static double most_together(const struct strategy *strategy, int device)
{
    const struct list *list = strategy->trainer->train_list;
    double most = 0;
    for (const struct level *level = list->extra.levels; level < list->extra.levels + list->extra.n_levels; level++) {
        double bytes = 0;
        if (level->device != device)
            continue;
        for (int k = 0; k < MEM_CLASSES; k++)
            bytes += bytes_of(strategy, k, level->of_class[k]);
        most = fmax(most, bytes);
    }
    return most;
}

static size_t budget_of(const struct strategy *strategy, const struct device *device)
{
    size_t asked = device->is_host ? strategy->asked->host_memory : strategy->asked->device_memory;
    return asked ? asked : default_budget(device);
}

/* The columns of the table, in their order. */
enum {
    RECOMPUTE,
    ZERO,
    DEVICE,
    PARAMETERS,
    GRADIENTS,
    OPTIMIZER,
    FORMULA,
    BUFFERS,
    ACTIVATIONS,
    WORK,
    OTHER,
    TOGETHER,
    NEEDED,
    BUDGET,
    FITS,
    COLUMNS
};
static const struct column columns[COLUMNS] = {
    [RECOMPUTE] = {"recompute", "recompute", CELL_TEXT, 9, 0},
    [ZERO] = {"ZeRO", "zero", CELL_TEXT, 4, 0},
    [DEVICE] = {"device", "device", CELL_TEXT, 8, 0},
    [PARAMETERS] = {"param.", "parameters_mib", CELL_FIXED, 6, 1},
    [GRADIENTS] = {"grad.", "gradients_mib", CELL_FIXED, 6, 1},
    [OPTIMIZER] = {"optim.", "optimizer_mib", CELL_FIXED, 6, 1},
    [FORMULA] = {"formula", "formula_mib", CELL_FIXED, 7, 1},
    [BUFFERS] = {NULL, "buffers_mib", CELL_FIXED, 0, 0},
    [ACTIVATIONS] = {"activ.", "activations_mib", CELL_FIXED, 6, 1},
    [WORK] = {NULL, "work_mib", CELL_FIXED, 0, 0},
    [OTHER] = {"other", NULL, CELL_FIXED, 6, 1},
    [TOGETHER] = {"together", "together_mib", CELL_FIXED, 8, 1},
    [NEEDED] = {NULL, "needs_bytes", CELL_COUNT, 0, 0},
    [BUDGET] = {NULL, "budget_mib", CELL_FIXED, 0, 0},
    [FITS] = {"fits", "fits", CELL_TEXT, 4, 0},
};

struct device_bytes { /* what a device would hold, in bytes */
    double peak[MEM_CLASSES];
    double together; /* all classes at the moment at which they take most */
    double formula;  /* what papers count; 0: the host, about which they say nothing */
    double needed;   /* what the budget must have */
    double budget;
};

static struct device_bytes count_device_bytes(const struct strategy *strategy, int nth)
{
    const struct list *list = strategy->trainer->train_list;
    const struct device *device = &list->pool->machine->devices[nth];
    struct device_bytes bytes = {.together = most_together(strategy, nth),
                                 .budget = (double)budget_of(strategy, device)};
    for (int k = 0; k < MEM_CLASSES; k++)
        bytes.peak[k] = bytes_of(strategy, k, list->extra.peak[nth][k]);
    if (!device->is_host)
        bytes.formula = formula_bytes(strategy, nth);
    bytes.needed = bytes.together;
    if (strategy->bytes == run_bytes)
        bytes.needed = (double)device->placed_bytes;
    return bytes;
}

static struct cell mib_cell(double bytes) { return number_cell(bytes / (1 << 20)); }

static void add_device_row(struct table *table, const struct strategy *strategy, int nth)
{
    const struct device_bytes bytes = count_device_bytes(strategy, nth);
    const double *peak = bytes.peak;
    const struct device *device = &strategy->trainer->train_list->pool->machine->devices[nth];
    char zero[8] = "-";
    struct cell row[COLUMNS];
    if (strategy->trainer->mesh.dp > 1)
        snprintf(zero, sizeof zero, "%d", strategy->trainer->mesh.zero);
    row[RECOMPUTE] = text_cell(word_of("recompute", (int)strategy->recompute));
    row[ZERO] = text_cell(zero);
    row[DEVICE] = text_cell(device->id);
    row[PARAMETERS] = mib_cell(peak[MEM_PARAMETERS]);
    row[GRADIENTS] = mib_cell(peak[MEM_GRADIENTS]);
    row[OPTIMIZER] = mib_cell(peak[MEM_OPTIMIZER]);
    row[FORMULA] = mib_cell(bytes.formula);
    row[BUFFERS] = mib_cell(peak[MEM_BUFFERS]);
    row[ACTIVATIONS] = mib_cell(peak[MEM_ACTIVATIONS]);
    row[WORK] = mib_cell(peak[MEM_WORK]);
    row[OTHER] = mib_cell(peak[MEM_BUFFERS] + peak[MEM_WORK]);
    row[TOGETHER] = mib_cell(bytes.together);
    row[NEEDED] = number_cell(bytes.needed);
    row[BUDGET] = mib_cell(bytes.budget);
    row[FITS] = text_cell(bytes.needed <= bytes.budget ? "yes" : "no");
    add_row(table, row);
}

/* Where several devices hold the same, the table for people has only the first; JSON has all. */
static void add_rows(struct table *table, const struct strategy *strategy)
{
    const struct list *list = strategy->trainer->train_list;
    const struct machine *machine = list->pool->machine;
    for (int i = 0; i <= machine->n_devices; i++)
        if (strategy->settings.json || machine->devices[i].is_host || !was_listed(list, i))
            add_device_row(table, strategy, i);
}

/* The strategy that the settings ask for, but with as much memory as it takes. */
static struct strategy without_limits(const struct settings *settings, bool is_mixed)
{
    struct strategy all = {.settings = *settings, .asked = settings, .bytes = is_mixed ? mixed_bytes : run_bytes};
    all.settings.device_memory = NO_LIMIT;
    all.settings.host_memory = NO_LIMIT;
    return all;
}

/* A row for each device, or a note why this strategy is impossible. */
static void try_strategy(struct table *table, struct strategy *strategy)
{
    struct problem *problem;
    const char *choice = word_of("recompute", (int)strategy->recompute);
    const struct value_before recompute = try_option("recompute", choice);
    strategy->trainer = try_to_plan(&strategy->settings, PLANNED, &problem);
    restore_value(&recompute);
    if (problem) {
        inform("recompute %s, ZeRO %d: %s", choice, strategy->settings.zero, problem->sentence);
        free(problem);
        return;
    }
    add_rows(table, strategy);
    free_trainer(strategy->trainer);
}

static double number_in_cell(const struct table *table, size_t row, size_t column)
{
    return table->cells[row * table->n_columns + column].number;
}

/* The devices and their budgets: each strategy's rows have the same. */
static void print_budgets(const struct table *table, const char *rule)
{
    char *text = copy_string("budget:");
    for (size_t i = 0; i < table->n; i++) {
        const char *device = table->cells[i * COLUMNS + DEVICE].text;
        if (i > 0 && strcmp(device, table->cells[DEVICE].text) == 0)
            break;
        append_text(&text, "%s %s %.1f", i > 0 ? "," : "", device, number_in_cell(table, i, BUDGET));
    }
    print_line(stdout, "%s", text);
    print_line(stdout, "    (%s)", rule);
    free(text);
}

/* Where there are GiB, a tenth of a MiB says nothing, and has no room. */
static void choose_decimals(struct table *table)
{
    double most = 0;
    for (size_t i = 0; i < table->n; i++)
        most = fmax(most, number_in_cell(table, i, TOGETHER));
    if (most >= 1000)
        for (size_t k = PARAMETERS; k <= TOGETHER; k++)
            table->columns[k].decimals = 0;
}

static void print_memory_table(struct table *table, bool is_mixed, const char *rule)
{
    const char *counts = "16, 8 + 8/N, 4 + 12/N, 16/N"; /* bytes per parameter, with ZeRO 0 to 3 */
    if (is_mixed)
        counts = "16, 4 + 12/N, 2 + 14/N, 16/N";
    printf("MiB at the peak of each class, predicted; devices like one above are left out\n");
    printf("other: buffers and work\n");
    print_budgets(table, rule);
    print_line(stdout, "formula: param., grad. and optim. by %s bytes per parameter, with ZeRO 0 to 3 over dp=N",
               counts);
    if (is_mixed)
        printf("mixed precision: counted, it cannot be run here\n");
    table->blanks = 1;
    choose_decimals(table);
    print_table(stdout, table);
}

/* Warns of an option that the table does not show. */
static void warn_of_hidden_options(void)
{
    if (was_given("after"))
        warn("--memory shows what is held without --after: leave --memory out to see it");
    else if (asked_swap.mode != SWAP_OFF)
        warn("--memory shows what is held without --swap: leave --memory out to see it");
}

static void refuse_if_what_if_is_other(void)
{
    if (asked_predict.what_if && strcmp(asked_predict.what_if, "mixed") != 0)
        fail(EXIT_USAGE, "--what-if %s: with --memory it takes only the word mixed; a budget is given as --device-mem",
             asked_predict.what_if);
}

static enum exit_code print_strategies(const struct settings *settings, bool is_mixed)
{
    static const enum recompute recompute[] = {RECOMPUTE_OFF, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL};
    struct table *table = new_table(columns, COLUMNS);
    struct strategy shape = without_limits(settings, is_mixed);
    shape.trainer = plan_training(&shape.settings, PLANNED);
    int first = settings->zero, last = settings->zero; /* levels of ZeRO */
    if (shape.trainer->mesh.dp > 1) {
        first = 0;
        last = 3;
    }
    const char *rule = budget_rule(shape.trainer->machine);
    free_trainer(shape.trainer);
    for (size_t i = 0; i < COUNT(recompute); i++)
        for (int zero = first; zero <= last; zero++) {
            struct strategy strategy = without_limits(settings, is_mixed);
            strategy.recompute = recompute[i];
            strategy.settings.zero = zero;
            try_strategy(table, &strategy);
        }
    if (settings->json)
        print_json(
            json_pack("{s:s, s:o}", "precision", is_mixed ? "mixed" : "float32", "strategies", table_json(table)));
    else
        print_memory_table(table, is_mixed, rule);
    free_table(table);
    return EXIT_OK;
}

/* No strategy has an option that the table does not show.  Mixed precision is counted, not tried. */
static enum exit_code plan_memory(const struct settings *settings)
{
    static const struct {
        const char *option, *text;
    } without[] = {{"after", NULL}, {"what-if", NULL}, {"swap", "off"}, {"recompute", "off"}};
    bool is_mixed = asked_predict.what_if != NULL;
    struct value_before before[COUNT(without)];
    refuse_if_what_if_is_other();
    warn_of_hidden_options();
    for (size_t i = 0; i < COUNT(without); i++)
        before[i] = try_option(without[i].option, without[i].text);
    enum exit_code code = print_strategies(settings, is_mixed);
    for (size_t i = 0; i < COUNT(without); i++)
        restore_value(&before[i]);
    return code;
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static bool asked_memory; /* is --memory given? */

static bool wants_memory_table(void) { return asked_memory; }

static void check_memory_options(void)
{
    bool proves = asked_predict.simulate || asked_proof.verify;
    bool prints = asked_plan.print || asked_plan.print_list;
    if (asked_memory && (proves || prints))
        fail(EXIT_USAGE,
             "--memory prints a table and nothing else: leave --simulate, --verify, --print and --print-list out");
}

static const struct option options[] = {
    {.name = "memory",
     .type = OPT_FLAG,
     .value = &asked_memory,
     .group = GROUP_LOOKING,
     .classes = OF_PLAN,
     .help = "print only a table of what each device would hold at the peak, with each kind of --recompute "
             "and of --zero"},
};
static const struct other_plan plan = {wants_memory_table, plan_memory};
static const struct planning_parts planning = {.plan = &plan};
const struct module module_memory = {
    .name = "memory",
    .needs = "console lists recompute swap",
    .options = options,
    .n_options = COUNT(options),
    .check = check_memory_options,
    .planning = &planning,
};
