/* test_mesh_orders.c - pipelines: the order in which a device takes its turns, and how long it waits between them.
 *
 * It tests the orders in src/trainer/model/pipeline.c and the lists that are built for them.  It checks that a device
 * computes each micro-batch of each of its stages once, that it keeps as many tapes as the order's paper says, and that
 * a step's bubble is no longer than its formula.  It catches a stage that is visited in the wrong order, a tape more
 * than needed, and a wait that no paper knows.
 *
 * To see it fail: in mesh.c, fold the chunks of even numbers: chunk % 2 == 0.
 *
 * The expected tapes and bubbles come from the papers' formulas, which stand beside the tests.
 */
#include "planning/lists/lists.h"
#include "planning/predict/plan.h"
#include "planning/predict/predict.h"
#include "tests/support/support_paper.h"
#include "tests/support/support_training.h"

enum { CHUNKS = 3, MOST_STAGES = 4 * CHUNKS }; /* of the orders that are tried: on four devices */

/* ---- orders ------------------------------------------------------------------------------------------------------ */

/* Forwards whose last gradients are still to come: so many tapes are kept. */
static int most_in_flight(const struct turn *turn, int n)
{
    int now = 0, most = 0;
    for (int i = 0; i < n; i++) {
        if (turn[i].computation == FORWARD)
            now++;
        else if (turn[i].computation != INPUT_GRADIENT)
            now--;
        most = MAX(most, now);
    }
    return most;
}

/* The turn has the micro-batch that is due, and after it the following one is. */
static void expect_next(const struct turn *turn, int *due)
{
    assert_int_equal(turn->micro, *due);
    ++*due;
}

/* Each stage of a device computes each micro-batch once, in ascending order; both halves of a backward come after its
 * forward, and the gradients of weights after those of inputs. */
static void expect_sound_order(const struct mesh *mesh, int device, int micros, const struct turn *turn, int n)
{
    int next[COMPUTATIONS][MOST_STAGES] = {{0}};
    for (int i = 0; i < n; i++) {
        int *of[COMPUTATIONS];
        for (enum computation k = FORWARD; k < COMPUTATIONS; k++)
            of[k] = &next[k][turn[i].stage];
        assert_int_equal(pp_of(mesh, turn[i].stage), device);
        if (turn[i].computation == FORWARD)
            expect_next(&turn[i], of[FORWARD]);
        if (turn[i].computation == BACKWARD || turn[i].computation == INPUT_GRADIENT)
            expect_next(&turn[i], of[INPUT_GRADIENT]);
        if (turn[i].computation == BACKWARD || turn[i].computation == WEIGHT_GRADIENT)
            expect_next(&turn[i], of[WEIGHT_GRADIENT]);
        assert_at_least(*of[FORWARD], *of[INPUT_GRADIENT]);
        assert_at_least(*of[INPUT_GRADIENT], *of[WEIGHT_GRADIENT]);
    }
    for (int stage = 0; stage < n_stages(mesh); stage++)
        if (pp_of(mesh, stage) == device) {
            assert_int_equal(next[FORWARD][stage], micros);
            assert_int_equal(next[WEIGHT_GRADIENT][stage], micros);
        }
}

/* How many tapes a device keeps at most, by the formula of the order's paper; 0: the paper has no such formula. */
static int tapes_of_paper(enum pipeline kind, int pp, int device, int micros)
{
    int behind = pp - device; /* this device and those of later stages */
    if (kind == PIPELINE_1F1B)
        return MIN(behind, micros);
    if (kind == PIPELINE_INTERLEAVED && pp > 1)
        return MIN(2 * behind + 2 * pp - 1, CHUNKS * micros);
    if (kind == PIPELINE_ZBH1)
        return MIN(pp, micros);
    if (kind == PIPELINE_ZBH2)
        return MIN(2 * (pp - 1) + 1, micros);
    return 0;
}

/* The order of each device is sound, and none waits for ever when all go together. */
static void check_orders(enum pipeline kind, int pp, int micros)
{
    const struct turn_order *order = &pipeline_orders[kind];
    struct mesh mesh = {.dp = 1, .pp = pp, .tp = 1, .chunks = pp > 1 ? order->chunks : 1, .folded = order->folded};
    size_t n_merged, n_turns = 0;
    if (mesh.folded && micros < 2 * pp)
        return;
    if (kind == PIPELINE_INTERLEAVED && pp > 1)
        mesh.chunks = CHUNKS;
    for (int device = 0; device < pp; device++) {
        int turns;
        struct turn *turn = pipeline_order(order, &mesh, device, micros, &turns);
        int tapes = tapes_of_paper(kind, pp, device, micros);
        expect_sound_order(&mesh, device, micros, turn, turns);
        if (tapes > 0)
            assert_int_equal(most_in_flight(turn, turns), tapes);
        n_turns += (size_t)turns;
        free(turn);
    }
    free(merge_orders(order, &mesh, micros, &n_merged)); /* it ends */
    assert_int_equal(n_merged, n_turns);
}

TEST(orders_are_sound)
{
    for (int pp = 1; pp <= MOST_STAGES / CHUNKS; pp++)
        for (int micros = pp; micros <= 12; micros += pp)
            for (enum pipeline kind = PIPELINE_1F1B; kind < PIPELINES; kind++)
                check_orders(kind, pp, micros);
}

/* ---- bubble ------------------------------------------------------------------------------------------------------ */

/* The counter for a task of a layer: it counts those of the same kind (forward, gradient of an input or of a weight),
 * device and micro-batch.  NULL: the task is none of these. */
static int *counter_of(int *counters, const struct task *task, int pp, int micros)
{
    if (task->layer < 0 || (task->role != ROLE_FORWARD && task->role != ROLE_BACKWARD))
        return NULL;
    int kind = 0;
    if (task->role == ROLE_BACKWARD)
        kind = task->accesses[0].tensor->class == MEM_GRADIENTS ? 2 : 1;
    return &counters[(kind * pp + task->lane->device->index) * micros + MAX(task->micro, 0)];
}

/* How long a step of a model's list takes, in which stages wait for bytes too.  A device needs a second for a
 * micro-batch's forward, one for the gradients of inputs and one for those of weights, in equal parts per task of its
 * layers; all else takes no time. */
static double step_of_list(const char *pipeline, int pp, int layers, int micros, int clip)
{
    char *words = lasting("--model tiny --layers %d --seq-len 16 --batch %d --micro-batch 1 -d 0:0x%d --mesh "
                          "pp=%d --pipeline %s --clip %d --untied",
                          layers, micros, pp, pp, pipeline, clip);
    struct trainer *trainer = plan_training(parse_words(words), LIST_TRAIN);
    double *seconds = allocate(trainer->train_list->n, sizeof *seconds);
    int *counters = allocate((size_t)(3 * pp * micros), sizeof *counters);
    for (size_t i = 0; i < trainer->train_list->n; i++) {
        int *counter = counter_of(counters, trainer->train_list->tasks[i], pp, micros);
        if (counter)
            ++*counter;
    }
    for (size_t i = 0; i < trainer->train_list->n; i++) {
        const int *counter = counter_of(counters, trainer->train_list->tasks[i], pp, micros);
        if (counter)
            seconds[i] = 1.0 / *counter;
    }
    struct simulation *simulation = simulate_durations(trainer->train_list, seconds);
    double period = simulation->period;
    free_simulation(simulation);
    free_trainer(trainer);
    free(seconds);
    free(counters);
    return period;
}

/* The papers' formulas, with F = B = W = 1 s (of two stages per device half of it each).  With clipping all wait for
 * the last gradient; without, zbh2 never waits, unless a tied head's last gradient has to come to the first stage. */
TEST(orders_take_what_the_papers_formulas_say)
{
    for (int pp = 2; pp <= 4; pp++) {
        int micros = 2 * pp;
        expect_number("gpipe", step_of_list("gpipe", pp, pp, micros, 1), 3 * micros + 3 * (pp - 1));
        expect_number("1f1b", step_of_list("1f1b", pp, pp, micros, 1), 3 * micros + 3 * (pp - 1));
        expect_number("interleaved", step_of_list("interleaved", pp, 2 * pp, micros, 1), 3 * micros + 1.5 * (pp - 1));
        expect_number("zbh1", step_of_list("zbh1", pp, pp, micros, 1), 3 * micros + pp - 1);
        expect_number("zbh2", step_of_list("zbh2", pp, pp, micros, 1), 3 * micros + pp - 1);
        expect_number("zbh2, no clipping", step_of_list("zbh2", pp, pp, micros, 0), 3 * micros);
        expect_number("dualpipev", step_of_list("dualpipev", pp, 2 * pp, micros, 1), 3 * micros + 0.5 * (pp - 1));
    }
}
