/* bench_broadcast.c - yard bench --broadcast: the training step with one queue and with several, and slices of several
 * sizes.  On devices that are here it is run; with --hardware it is simulated, and compared with its bound.
 *
 * Beside the sweep, the best number of slices by reckoning, for one queue with ports of its own.  A shard of S bytes
 * comes down in k slices, and each of p - 1 receivers takes its slices one after another.  They wait for the first
 * slice to come down, and every copy has a latency:
 *
 *     T(k) = (a + S / kB) + k (p - 1) (a + S / kB),    least at    k = sqrt(S / ((p - 1) a B))
 */
#include "bench.h"
#include "planning/console/numbers.h"
#include "planning/console/table.h"
#include "planning/pass/pass.h"
#include "planning/predict/plan.h"
#include "planning/predict/predict.h"
#include "techniques/broadcast/broadcast.h"
#include "trainer/cmd/cmd.h"
#include "trainer/train/train.h"

#include <math.h>

enum { STEPS = 6, WARM_UP = 2 };
struct round {          /* what one iteration's broadcasts and compute lanes did */
    double first, last; /* seconds: the first start and the last end of a broadcast's copy */
    double bytes;       /* bytes that these copies moved */
    double computing;   /* seconds of compute lanes, all together */
};

static void see(struct round *round, const struct task *task, double start, double end)
{
    if (task->lane->kind == LANE_COMPUTE && !is_copy(task))
        round->computing += end - start;
    if (task->role != ROLE_BROADCAST || !is_copy(task) || copies_nothing(task))
        return;
    if (round->bytes == 0 || start < round->first)
        round->first = start;
    round->last = fmax(round->last, end);
    round->bytes += (double)copy_target(task)->bytes;
}

struct timed_steps {              /* one configuration */
    struct round seen[STEPS + 1]; /* by iteration */
    double period;
};

static void note_run(void *context, const struct list *list, const struct task *task, const struct task_flight *flight)
{
    struct timed_steps *timed = context;
    (void)list;
    if (flight->iteration <= STEPS)
        see(&timed->seen[flight->iteration], task, 1e-9 * (double)flight->start, 1e-9 * (double)flight->end);
}

static void time_steps(struct trainer *trainer, struct timed_steps *timed)
{
    struct observer looker = {.ended = note_run, .context = timed};
    init_random(trainer->model, 1);
    add_observer(&looker);
    uint64_t start = 0;
    for (uint32_t i = 1; i <= STEPS; i++) {
        issue_step(trainer, i);
        if (i == WARM_UP) {
            drain(trainer->train_list);
            start = now_ns();
        }
    }
    drain(trainer->train_list);
    timed->period = 1e-9 * (double)(now_ns() - start) / (STEPS - WARM_UP);
    remove_observer(&looker);
}

/* The last simulated step is seen in place of the last one that is timed. */
static void simulate_steps(const struct trainer *trainer, struct timed_steps *timed)
{
    struct simulation *simulation = must_simulate(trainer->train_list, costs_of(trainer));
    const struct moment *last = &simulation->moments[(size_t)(simulation->steps - 1) * trainer->train_list->n];
    for (size_t i = 0; i < trainer->train_list->n; i++)
        if (!last[i].skipped)
            see(&timed->seen[STEPS], trainer->train_list->tasks[i], last[i].start, last[i].end);
    timed->period = simulation->period;
    free_simulation(simulation);
}

static const struct column columns[] = {{"queues", "queues", CELL_COUNT, 6, 0},
                                        {"slices", "slices", CELL_COUNT, 6, 0},
                                        {"KB at most", "largest_kbytes", CELL_FIXED, 10, 1},
                                        {"ms", "broadcast_ms", CELL_FIXED, 10, 3},
                                        {"GB/s", "gbytes_per_s", CELL_FIXED, 8, 2},
                                        {"of bound", "of_bound", CELL_SHARE, 8, 0},
                                        {"computing", "computing", CELL_SHARE, 9, 0},
                                        {"step ms", "step_ms", CELL_FIXED, 10, 3}};

static const struct pass_report *broadcast_report(const struct trainer *trainer)
{
    const struct pass_report *report = reports_of(trainer).items;
    while (strcmp(report->pass->name, "broadcast") != 0)
        report++;
    if (report->declined)
        fail(EXIT_USAGE, "--broadcast: %s: use two devices or more, as -d P:DxN or --mesh dp=N", report->reason);
    return report;
}

static double largest_copy(const struct list *list)
{
    double bytes = 0;
    for (size_t i = 0; i < list->n; i++)
        if (is_copy(list->tasks[i]) && list->tasks[i]->role == ROLE_BROADCAST)
            bytes = fmax(bytes, (double)copy_target(list->tasks[i])->bytes);
    return bytes;
}

/* Adds a row with medians over the steps that were seen: of the time from the first broadcast's start to the last one's
 * end, and of what compute lanes did. */
static void add_run(struct table *table, const struct trainer *trainer, const struct timed_steps *timed,
                    double bound_ms)
{
    double span[STEPS], computing[STEPS];
    size_t n = 0;
    for (int i = WARM_UP + 1; i <= STEPS; i++) {
        const struct round *seen = &timed->seen[i];
        if (seen->bytes == 0)
            continue;
        span[n] = seen->last - seen->first;
        computing[n] = seen->computing;
        n++;
    }
    double ms = 1e3 * median(span, n);
    ROW(table, number_cell(asked_broadcast.queues), number_cell(asked_broadcast.slices),
        number_cell(largest_copy(trainer->train_list) / 1e3), number_cell(ms),
        number_cell(timed->seen[STEPS].bytes / ms / 1e6), number_cell(bound_ms / ms),
        number_cell(median(computing, n) / timed->period / trainer->machine->n_devices),
        number_cell(1e3 * timed->period));
}

/* The best number of slices by the formula in the head of this file, for the largest copy, which is a shard if there is
 * one slice; NAN: no link is described. */
static double best_slices(const struct trainer *trainer)
{
    const struct costs *costs = costs_of(trainer);
    if (!costs)
        return NAN;
    const struct lane_speed *up = &costs->speeds[LANE_UPLOAD];
    return sqrt(largest_copy(trainer->train_list) / ((trainer->mesh.dp - 1) * up->latency * up->bytes_per_s));
}

/* Prints the table's newest row, and above the first row what the table shows. */
static void print_newest(FILE *text, const struct settings *settings, const struct table *table)
{
    if (table->n == 1) {
        fprintf(text, "broadcasts of one step of model %s, ", word_of("model", settings->preset));
        if (asked_predict.hardware)
            fprintf(text, "simulated on %s\n", asked_predict.hardware);
        else
            fprintf(text, "run\n");
        print_heading(text, table);
    }
    print_rows(text, table, table->n - 1, table->n);
    fflush(text);
}

/* Trains or simulates with the options' queues and slices, and adds a row to the table.  Returns best_slices(). */
static double bench_one(struct settings *settings, FILE *text, struct table *table)
{
    struct timed_steps timed = {.period = 0};
    unsigned wanted = LIST_TRAIN | OPEN_GIVEN_DATA;
    struct trainer *trainer = asked_predict.hardware ? plan_training(settings, wanted) : new_trainer(settings, wanted);
    const json_t *bound = json_object_get(broadcast_report(trainer)->fields, "bound_ms");
    if (asked_predict.hardware)
        simulate_steps(trainer, &timed);
    else
        time_steps(trainer, &timed);
    add_run(table, trainer, &timed, json_is_number(bound) ? json_number_value(bound) : NAN);
    print_newest(text, settings, table);
    double best = best_slices(trainer);
    free_trainer(trainer);
    return best;
}

/* Calls bench_one() with `queues` queues and `slices` slices. */
static double bench_with(struct settings *settings, FILE *text, struct table *table, int queues, int slices)
{
    char n_queues[16], n_slices[16];
    snprintf(n_queues, sizeof n_queues, "%d", queues);
    snprintf(n_slices, sizeof n_slices, "%d", slices);
    const struct value_before queues_before = try_option("broadcast-queues", n_queues);
    const struct value_before slices_before = try_option("broadcast-slices", n_slices);
    double best = bench_one(settings, text, table);
    restore_value(&slices_before);
    restore_value(&queues_before);
    return best;
}

enum exit_code bench_broadcast(struct settings *settings)
{
    static const int senders[] = {1, 2, 4}, slices[] = {1, 4, 16, 64};
    struct table *table = new_table(columns, COUNT(columns));
    FILE *text = settings->json ? stderr : stdout;
    int beside = asked_broadcast.main == MAIN_COMPUTE;
    double best = NAN;
    run_trial_for(settings);
    settings->demands.time_tasks = true;
    for (size_t i = 0; i < COUNT(senders); i++)
        for (size_t k = 0; k < COUNT(slices); k++) {
            if (slices[k] < senders[i])
                continue;
            double found = bench_with(settings, text, table, senders[i] + beside, slices[k]);
            if (i == 0 && k == 0) /* one slice is a whole shard */
                best = found;
        }
    if (settings->json)
        print_json(json_pack("{s:o, s:o}", "broadcast", table_json(table), "best_slices", number_json(best)));
    else if (!isnan(best))
        printf("by the formula, one queue with a link of its own is best with %.1f slices\n", best);
    free_table(table);
    return EXIT_OK;
}
