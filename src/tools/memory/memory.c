/* memory.c - yard plan --memory: what each device, and the host, would hold at the peak, by strategy: with each
 * kind of recomputation and, where there are several data-parallel ranks, each level of ZeRO, on the mesh as given.
 * Nothing is refused here: the last column says what fits.
 *
 * Beside it is what papers count for parameters, gradients and optimizer: with N data-parallel ranks and ZeRO 0 to 3
 *
 *     in 32 bits    16    8 + 8/N     4 + 12/N    16/N    bytes per parameter: 4 + 4 + 8 (m, v)
 *     mixed         16    4 + 12/N    2 + 14/N    16/N    2 + 2 + 12 (m, v and parameters of 32 bits)
 *
 * Mixed precision cannot be run here: its bytes are counted on the list that runs in 32 bits.
 */
#include "techniques/pass/pass.h"
#include "techniques/recompute/recompute.h"
#include "techniques/swap/swap.h"
#include "tools/command/table.h"
#include "tools/lists/lists.h"
#include "tools/lists/plan.h"
#include "tools/predict/predict.h"
#include "tools/proof/proof.h"

#include <math.h>

/* Per parameter of the model, of its activations and the like per element. */
static const double run_bytes[MEM_CLASSES] = {4, 4, 8, 4, 4, 4}, mixed_bytes[MEM_CLASSES] = {2, 2, 12, 2, 4, 2};

struct strategy {
    struct settings settings;
    const struct settings *asked; /* of the budgets 0 is what the devices have */
    const double *bytes;          /* by class */
    enum recompute recompute;
    struct trainer *trainer;
};

static void build(void *strategy)
{
    struct strategy *s = strategy;
    recompute_options.how = s->recompute;
    s->trainer = new_trainer(&s->settings, LIST_TRAIN | LIST_EVAL | LIST_SAMPLE, s->settings.data.path != NULL, true);
}

/* Of what a rank has of the model, in bytes.  ZeRO shares the classes out one after another, the last one first. */
static double formula_bytes(const struct strategy *s, int rank)
{
    const struct mesh *mesh = &s->trainer->mesh;
    const struct params *p = params_of(s->trainer->model, rank);
    double elements = 0, bytes = 0;
    for (int i = 0; i < p->n; i++)
        if (has_stage(mesh, rank, stage_of(s->trainer->model, p->param[i].unit)))
            elements += (double)param_elements(&p->param[i]);
    for (int class = MEM_PARAMETERS; class <= MEM_OPTIMIZER; class ++)
        bytes += elements * s->bytes[class] / (mesh->zero >= 3 - class ? mesh->dp : 1);
    return bytes;
}

/* Of devices that hold the same, to a MiB, people see the first. */
static void add_rows(struct table *t, const struct strategy *s)
{
    const struct step *list = s->trainer->train;
    const struct machine *m = list->pool->machine;
    const double mib = 1 << 20;
    char zero[8];
    snprintf(zero, sizeof zero, "%d", s->trainer->mesh.zero);
    for (int d = 0; d <= m->n_devices; d++) {
        const struct device *device = &m->device[d];
        size_t wanted = device->is_host ? s->asked->host_memory : s->asked->device_memory,
               budget = wanted ? wanted : default_budget(device);
        struct cell of[MEM_CLASSES];
        double together = 0; /* the most at a time */
        bool seen = false;
        for (int k = 0; k < d && !device->is_host && !s->settings.json; k++) {
            bool same = true;
            for (int class = 0; class < MEM_CLASSES; class ++)
                same &= list->peak[k][class] >> 20 == list->peak[d][class] >> 20;
            seen |= same;
        }
        if (seen)
            continue;
        for (const struct level *l = list->level; l < list->level + list->n_levels; l++) {
            double bytes = 0;
            for (int class = 0; class < MEM_CLASSES && l->device == d; class ++)
                bytes += (double)l->of_class[class] * s->bytes[class] / run_bytes[class];
            together = fmax(together, bytes);
        }
        double needed = s->bytes == run_bytes ? (double)device->placed : together;
        for (int class = 0; class < MEM_CLASSES; class ++)
            of[class] = number_cell((double)list->peak[d][class] * s->bytes[class] / run_bytes[class] / mib);
        ROW(t, text_cell(word_of("recompute", (int)s->recompute)), text_cell(s->trainer->mesh.dp > 1 ? zero : "-"),
            text_cell(device->id), of[MEM_PARAMETERS], of[MEM_GRADIENTS], of[MEM_OPTIMIZER],
            number_cell(device->is_host ? 0 : formula_bytes(s, d) / mib), of[MEM_BUFFERS], of[MEM_ACTIVATIONS],
            of[MEM_WORK], number_cell(together / mib), number_cell(needed), number_cell((double)budget / mib),
            text_cell(needed <= (double)budget ? "yes" : "no"));
    }
}

/* As asked for, but with all the memory that it takes. */
static struct strategy without_limits(const struct settings *s, bool is_mixed)
{
    struct strategy all = {*s, s, is_mixed ? mixed_bytes : run_bytes, RECOMPUTE_OFF, NULL};
    all.settings.device_memory = all.settings.host_memory = NO_LIMIT;
    return all;
}

static int plan_memory(const struct settings *s)
{
    static const struct column columns[] = {
        {"recompute", "recompute", CELL_TEXT, 9, 0},     {"ZeRO", "zero", CELL_TEXT, 4, 0},
        {"device", "device", CELL_TEXT, 9, 0},           {"param.", "parameters_mib", CELL_FIXED, 7, 1},
        {"grad.", "gradients_mib", CELL_FIXED, 7, 1},    {"optim.", "optimizer_mib", CELL_FIXED, 7, 1},
        {"formula", "formula_mib", CELL_FIXED, 7, 1},    {"buffers", "buffers_mib", CELL_FIXED, 7, 1},
        {"activ.", "activations_mib", CELL_FIXED, 7, 1}, {"work", "work_mib", CELL_FIXED, 6, 1},
        {"together", "together_mib", CELL_FIXED, 8, 1},  {NULL, "needs_bytes", CELL_COUNT, 0, 0},
        {"budget", "budget_mib", CELL_FIXED, 9, 1},      {"fits", "fits", CELL_TEXT, 4, 0}};
    static const enum recompute recompute[] = {RECOMPUTE_OFF, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL};
    struct table *t = new_table(columns, COUNT(columns));
    const bool is_mixed = predict_options.what_if != NULL;
    if (was_given("after") || swap_options.how != SWAP_OFF)
        warn("--memory shows what is held without --%s: leave --memory out to see it",
             was_given("after") ? "after" : "swap");
    if (is_mixed && strcmp(predict_options.what_if, "mixed") != 0)
        fail(EXIT_USAGE, "--memory --what-if %s: expected the word mixed; budgets: --device-mem",
             predict_options.what_if);
    predict_options.what_if = NULL; /* it is counted here, not tried */
    run_all_passes();
    swap_options.how = SWAP_OFF;
    struct strategy shape = without_limits(s, is_mixed);
    build(&shape);
    bool several = shape.trainer->mesh.dp > 1;
    const char *rule = budget_rule(shape.trainer->machine);
    free_trainer(shape.trainer);
    for (size_t i = 0; i < COUNT(recompute); i++)
        for (int zero = several ? 0 : s->zero; zero <= (several ? 3 : s->zero); zero++) {
            struct strategy strategy = without_limits(s, is_mixed);
            strategy.recompute = recompute[i];
            strategy.settings.zero = zero;
            struct problem *impossible = attempt(build, &strategy);
            if (impossible)
                note("recompute %s, ZeRO %d: %s", word_of("recompute", (int)recompute[i]), zero, impossible->sentence);
            else
                add_rows(t, &strategy), free_trainer(strategy.trainer);
        }
    if (s->json) {
        print_json(json_pack("{s:s, s:o}", "precision", is_mixed ? "mixed" : "float32", "strategies", table_json(t)));
    } else {
        printf("MiB at the peak of each class, predicted; devices like one above are left out\nbudget: %s\n"
               "formula: param., grad. and optim. by %s bytes per parameter, with ZeRO 0 to 3 over dp=N\n%s",
               rule, is_mixed ? "16, 4 + 12/N, 2 + 14/N, 16/N" : "16, 8 + 8/N, 4 + 12/N, 16/N",
               is_mixed ? "mixed precision: counted, it cannot be run here\n" : "");
        print_table(stdout, t);
    }
    return EXIT_OK;
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static bool wanted; /* --memory */

static bool is_wanted(void) { return wanted; }

static void check(struct settings *s)
{
    (void)s;
    if (wanted && (predict_options.simulate || proof_options.verify || plan_options.print || plan_options.print_list))
        fail(EXIT_USAGE,
             "--memory prints a table and nothing else: leave --simulate, --verify, --print and --print-list out");
}

static const struct option options[] = {
    {"memory", 0, OPT_FLAG, &wanted, NULL, NULL, 0, 0, GROUP_LOOKING, OF_PLAN,
     "a table instead: what each device would hold at the peak, with each kind of --recompute and of --zero"},
};
static const struct other_plan plan = {is_wanted, plan_memory};
const struct module module_memory = {.name = "memory",
                                     .needs = "command lists recompute swap",
                                     .place = 54,
                                     .options = options,
                                     .n_options = COUNT(options),
                                     .check = check,
                                     .plan = &plan};
