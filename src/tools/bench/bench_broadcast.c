/* bench_broadcast.c - yard bench --broadcast: the training step with one queue and with several, and slices of several
 * sizes.  On devices that are here it is run; with --hardware it is simulated, and compared with its bound.
 *
 * Beside the sweep, the best number of slices by reckoning, for one queue with ports of its own.  A shard of S bytes
 * comes down in k slices, and each of p - 1 receivers takes its slices behind one another.  They wait for the first
 * slice to come down, and every copy has a latency:
 *
 *     T(k) = (a + S / kB) + k (p - 1) (a + S / kB),    least at    k = sqrt(S / ((p - 1) a B))
 */
#include "bench.h"
#include "techniques/broadcast/broadcast.h"
#include "techniques/pass/pass.h"
#include "tools/command/numbers.h"
#include "tools/command/table.h"
#include "tools/predict/predict.h"
#include "trainer/cmd/cmd.h"
#include "trainer/train/train.h"

#include <math.h>

enum { STEPS = 6, WARM_UP = 2 };
struct seen { /* of the broadcasts and of compute lanes, seconds */
    double first, last, bytes, computing;
};

static void see(struct seen *s, const struct task *t, double start, double end)
{
    if (t->lane->kind == LANE_COMPUTE && !t->copy)
        s->computing += end - start;
    if (t->role != ROLE_BROADCAST || !t->copy || copies_nothing(t))
        return;
    s->first = s->bytes > 0 ? fmin(s->first, start) : start;
    s->last = fmax(s->last, end);
    s->bytes += (double)t->access[0].tensor->bytes;
}

struct run {                     /* one configuration */
    struct seen seen[STEPS + 1]; /* by iteration */
    double period;
};

static void note_run(void *run, const struct step *s, const struct task *t, const struct task_flight *flight)
{
    (void)s;
    if (flight->number <= STEPS)
        see(&((struct run *)run)->seen[flight->number], t, 1e-9 * (double)flight->start, 1e-9 * (double)flight->end);
}

static void run_steps(struct trainer *t, struct run *r)
{
    struct observer looker = {.ended = note_run, .context = r};
    init_random(t->model, 1);
    add_observer(&looker);
    uint64_t start = 0;
    for (uint32_t i = 1; i <= STEPS; i++) {
        run_step(t, i);
        if (i == WARM_UP)
            drain(t->train), start = now_ns();
    }
    drain(t->train);
    r->period = 1e-9 * (double)(now_ns() - start) / (STEPS - WARM_UP);
    remove_observer(&looker);
}

static const struct column columns[] = {{"queues", "queues", CELL_COUNT, 6, 0},
                                        {"slices", "slices", CELL_COUNT, 6, 0},
                                        {"KB at most", "largest_kbytes", CELL_FIXED, 10, 1},
                                        {"ms", "broadcast_ms", CELL_FIXED, 10, 3},
                                        {"GB/s", "gbytes_per_s", CELL_FIXED, 8, 2},
                                        {"of bound", "of_bound", CELL_SHARE, 8, 0},
                                        {"computing", "computing", CELL_SHARE, 9, 0},
                                        {"step ms", "step_ms", CELL_FIXED, 10, 3}};

/* A row of the table: medians over the steps that were seen, of the time from the first broadcast's start to the last
 * one's end, and of what compute lanes did.  Returns the k of the file's head for the largest copy, which is a shard if
 * slices is 1; NAN: no link is described. */
static double bench_one(struct settings *s, FILE *text, struct table *table, int queues, int slices)
{
    broadcast_options.queues = queues;
    broadcast_options.slices = slices;
    struct run r = {.period = 0};
    struct trainer *t = new_trainer(s, LIST_TRAIN, s->data.path != NULL, predict_options.hardware != NULL);
    const struct pass_report *pass = reports_of(t).report;
    while (strcmp(pass->pass->name, "broadcast") != 0)
        pass++;
    if (pass->declined)
        fail(EXIT_USAGE, "--broadcast: %s: use two devices or more, as -d P:DxN or --mesh dp=N", pass->reason);
    struct simulation *sim = predict_options.hardware ? must_simulate(t->train, costs_of(t)) : NULL;
    for (size_t i = 0; i < t->train->n && sim; i++) {
        const struct moment *m = &sim->moments[(size_t)(sim->steps - 1) * t->train->n + i];
        if (!m->skipped)
            see(&r.seen[STEPS], t->train->task[i], m->start, m->end);
    }
    if (sim)
        r.period = sim->period, free_simulation(sim);
    else
        run_steps(t, &r);
    double span[STEPS], computing[STEPS], largest = 0;
    size_t n = 0;
    for (int i = WARM_UP + 1; i <= STEPS; i++)
        if (r.seen[i].bytes > 0)
            span[n] = r.seen[i].last - r.seen[i].first, computing[n++] = r.seen[i].computing;
    for (size_t i = 0; i < t->train->n; i++)
        if (t->train->task[i]->copy && t->train->task[i]->role == ROLE_BROADCAST)
            largest = fmax(largest, (double)t->train->task[i]->access[0].tensor->bytes);
    const json_t *bound = json_object_get(pass->fields, "bound_ms");
    double ms = 1e3 * median(span, n);
    ROW(table, number_cell(queues), number_cell(slices), number_cell(largest / 1e3), number_cell(ms),
        number_cell(r.seen[STEPS].bytes / ms / 1e6),
        number_cell(json_is_number(bound) ? json_number_value(bound) / ms : NAN),
        number_cell(median(computing, n) / r.period / t->machine->n_devices), number_cell(1e3 * r.period));
    print_rows(text, table, table->n - 1, table->n);
    fflush(text);
    const struct lane_speed *up = costs_of(t) ? &costs_of(t)->link[LANE_UPLOAD] : NULL;
    double best = up ? sqrt(largest / ((t->mesh.dp - 1) * up->latency * up->bytes_per_s)) : NAN;
    free_trainer(t);
    return best;
}

int bench_broadcast(struct settings *s)
{
    static const int senders[] = {1, 2, 4}, slices[] = {1, 4, 16, 64};
    struct table *table = new_table(columns, COUNT(columns));
    FILE *text = s->json ? stderr : stdout;
    int beside = broadcast_options.main == MAIN_COMPUTE;
    double best = NAN;
    run_trial_for(s);
    s->time_tasks = true;
    fprintf(text, "broadcasts of one step of model %s, %s%s\n", word_of("model", s->preset),
            predict_options.hardware ? "simulated on " : "run",
            predict_options.hardware ? predict_options.hardware : "");
    print_heading(text, table);
    for (size_t i = 0; i < COUNT(senders); i++)
        for (size_t k = 0; k < COUNT(slices); k++) {
            if (slices[k] < senders[i])
                continue;
            double found = bench_one(s, text, table, senders[i] + beside, slices[k]);
            best = i + k ? best : found;
        }
    if (s->json)
        print_json(json_pack("{s:o, s:o}", "broadcast", table_json(table), "best_slices", number_json(best)));
    else if (!isnan(best))
        printf("by reckoning, one queue with a link of its own is best with %.1f slices\n", best);
    return EXIT_OK;
}
