/* plan_memory.c - yard plan --memory: what each device, and the host, would hold at the peak, by strategy: with each
 * kind of recomputation and, where there are several data-parallel ranks, each level of ZeRO, on the mesh as given.
 * Nothing is refused here: the last column says what fits.
 */
#include "../base/table.h"
#include "../train/train.h"
#include "cmd.h"

enum { ZERO_LEVELS = 4 };

struct strategy {
    struct settings settings;
    size_t budget, host_budget; /* as asked for; 0: what the devices have */
    struct trainer *trainer;
};

static void build(void *strategy)
{
    struct strategy *s = strategy;
    s->trainer = new_trainer(&s->settings, LIST_TRAIN, false, true);
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
        const size_t *peak = list->peak[d];
        size_t wanted = device->is_host ? s->host_budget : s->budget, budget = wanted ? wanted : default_budget(device);
        bool seen = false;
        for (int k = 0; k < d && !device->is_host && !s->settings.json; k++) {
            bool same = true;
            for (int class = 0; class < MEM_CLASSES; class ++)
                same &= list->peak[k][class] >> 20 == peak[class] >> 20;
            seen |= same;
        }
        if (seen)
            continue;
        ROW(t, text_cell(word_of("recompute", (int)s->settings.pass.recompute)),
            text_cell(s->trainer->mesh.dp > 1 ? zero : "-"), text_cell(device->id),
            number_cell((double)peak[MEM_PARAMETERS] / mib), number_cell((double)peak[MEM_GRADIENTS] / mib),
            number_cell((double)peak[MEM_OPTIMIZER] / mib), number_cell((double)peak[MEM_ACTIVATIONS] / mib),
            number_cell((double)peak[MEM_WORK] / mib), number_cell((double)list->high[d] / mib),
            number_cell((double)device->placed), number_cell((double)budget / mib),
            text_cell(device->placed <= budget ? "yes" : "no"));
    }
}

/* As asked for, but with all the memory that it takes, and nothing that only looks at it. */
static struct strategy without_limits(const struct settings *s)
{
    struct strategy all = {*s, s->device_memory, s->host_memory, NULL};
    all.settings.pass.swap = SWAP_OFF;
    all.settings.after = NULL;
    all.settings.device_memory = all.settings.host_memory = NO_LIMIT;
    all.settings.simulate = all.settings.verify = false;
    return all;
}

int plan_memory(const struct settings *s)
{
    static const struct column columns[] = {
        {"recompute", "recompute", CELL_TEXT, 9, 0},      {"ZeRO", "zero", CELL_TEXT, 4, 0},
        {"device", "device", CELL_TEXT, 16, 0},           {"param.", "parameters_mib", CELL_FIXED, 9, 1},
        {"gradients", "gradients_mib", CELL_FIXED, 9, 1}, {"optim.", "optimizer_mib", CELL_FIXED, 9, 1},
        {"activ.", "activations_mib", CELL_FIXED, 9, 1},  {"work", "work_mib", CELL_FIXED, 7, 1},
        {"together", "together_mib", CELL_FIXED, 9, 1},   {NULL, "needs_bytes", CELL_COUNT, 0, 0},
        {"budget", "budget_mib", CELL_FIXED, 9, 1},       {"fits", "fits", CELL_TEXT, 4, 0}};
    static const enum recompute recompute[] = {RECOMPUTE_OFF, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL};
    struct table *t = new_table(columns, COUNT(columns));
    if (s->after || s->pass.swap != SWAP_OFF)
        warn("--memory shows what is held without --%s: leave --memory out to see it", s->after ? "after" : "swap");
    struct strategy shape = without_limits(s);
    build(&shape);
    bool several = shape.trainer->mesh.dp > 1;
    const char *rule = budget_rule(shape.trainer->machine);
    free_trainer(shape.trainer);
    for (size_t i = 0; i < COUNT(recompute); i++)
        for (int zero = several ? 0 : s->zero; zero < (several ? ZERO_LEVELS : s->zero + 1); zero++) {
            struct strategy strategy = without_limits(s);
            strategy.settings.pass.recompute = recompute[i];
            strategy.settings.zero = zero;
            struct problem *impossible = attempt(build, &strategy);
            if (impossible)
                note("recompute %s, ZeRO %d: %s", word_of("recompute", (int)recompute[i]), zero, impossible->sentence);
            else
                add_rows(t, &strategy), free_trainer(strategy.trainer);
        }
    if (s->json) {
        print_json(json_pack("{s:o}", "strategies", table_json(t)));
    } else {
        printf("MiB at the peak of each class, predicted; devices like one above are left out\nbudget: %s\n", rule);
        print_table(stdout, t);
    }
    return EXIT_OK;
}
