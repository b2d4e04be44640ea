/* pipeline.c - the order of micro-batches: which stage does which forward and backward when.
 *
 * F and B stand for the forward and backward of a micro-batch on a stage.  With 2 stages and 3 micro-batches:
 *
 *     gpipe    stage 0   F0 F1 F2          B0 B1 B2            all forwards, then all backwards   (Huang et al. 2019)
 *              stage 1      F0 F1 F2 B0 B1 B2
 *     1f1b     stage 0   F0 F1    B0 F2 B1    B2               as early a backward as can be: the activations of at
 *              stage 1      F0 B0 F1 B1 F2 B2                  most `stages` are kept         (Narayanan et al. 2019)
 *
 * An interleaved pipeline has several stages (chunks) per device, so a micro-batch passes each device several times,
 * and the wait at both ends is shorter (Narayanan et al. 2021).
 *
 * Zero bubble.  The stage before waits for the gradient of the input alone.  So backward is cut in two: here D computes
 * the gradient of the input, and W those of the weights, for which no stage waits.  (The papers write B for D.)
 *
 *     zbh1       stage 0   F0 F1    D0 W0 F2 D1 W1 D2 W2     later stages put W off, so D goes earlier: each keeps as
 *                stage 1      F0 D0 F1 D1 W0 F2 D2 W1 W2     many tapes as stage 0 of 1f1b          (Qi et al. 2023)
 *     zbh2       more forwards first: with 2p - 1 tapes, and without clipping, no stage ever waits       (the same)
 *     dualpipev  two stages per device, folded like a V: device 0 has the first and the last     (Sea AI Lab 2025)
 *
 * An order is a function that takes the turns of one device, and a row of pipeline_orders[].  In all orders a stage's
 * backwards, and both of their halves, take the micro-batches in ascending order.  So gradients are summed in the same
 * order, and to the same bits, as on one device.
 */
#include "model.h"
#include "trainer/base/additions.h"

/* ---- orders ------------------------------------------------------------------------------------------------------ */

enum { MOST_TURNS = 3 }; /* of a stage and micro-batch: a forward, and a backward in two halves */

struct turns { /* the turns of one device, as far as they have been taken */
    const struct mesh *mesh;
    int pp_rank; /* the device's pipeline coordinate */
    int micros;  /* micro-batches of a step */
    struct turn *items;
    int n;
    int (*done)[COMPUTATIONS]; /* by stage: as note_done() counts */
};

void note_done(int (*done)[COMPUTATIONS], const struct turn *turn)
{
    int *of_stage = done[turn->stage];
    of_stage[turn->computation]++;
    if (turn->computation == BACKWARD) {
        of_stage[INPUT_GRADIENT]++;
        of_stage[WEIGHT_GRADIENT]++;
    }
}

int due_micro(int (*const done)[COMPUTATIONS], const struct turn *turn)
{
    return done[turn->stage][turn->computation == BACKWARD ? WEIGHT_GRADIENT : turn->computation];
}

static void take_turn(struct turns *turns, enum computation computation, int stage)
{
    struct turn *turn = &turns->items[turns->n];
    turns->n++;
    *turn = (struct turn){.computation = computation, .stage = stage};
    turn->micro = due_micro(turns->done, turn);
    CHECK(turn->micro < turns->micros, "an order takes more turns of stage %d than there are micro-batches", stage);
    note_done(turns->done, turn);
}

static void gpipe(struct turns *turns)
{
    for (int i = 0; i < turns->micros; i++)
        take_turn(turns, FORWARD, turns->pp_rank);
    for (int i = 0; i < turns->micros; i++)
        take_turn(turns, BACKWARD, turns->pp_rank);
}

/* First come as many forwards as there are stages after this one. */
static void one_forward_one_backward(struct turns *turns)
{
    int ahead = MIN(turns->mesh->pp - 1 - turns->pp_rank, turns->micros);
    for (int i = -ahead; i < turns->micros; i++) {
        if (i + ahead < turns->micros)
            take_turn(turns, FORWARD, turns->pp_rank);
        if (i >= 0)
            take_turn(turns, BACKWARD, turns->pp_rank);
    }
}

/* pp micro-batches pass the first chunk, the same ones the second, and so on; backwards from the last chunk. */
static void interleaved(struct turns *turns)
{
    int pp = turns->mesh->pp, chunks = turns->mesh->chunks;
    int n = chunks * turns->micros; /* forwards of the device */
    int round = MIN(pp, turns->micros);
    int ahead = MIN(2 * (pp - 1 - turns->pp_rank) + (chunks - 1) * pp, n);
    for (int i = -ahead; i < n; i++) {
        if (i + ahead < n) {
            int chunk = (i + ahead) / round % chunks;
            take_turn(turns, FORWARD, chunk * pp + turns->pp_rank);
        }
        if (i >= 0) {
            int chunk = chunks - 1 - i / round % chunks;
            take_turn(turns, BACKWARD, chunk * pp + turns->pp_rank);
        }
    }
}

/* A device takes `factor` times as many forwards first as in 1f1b, and holds back the weights' gradients of as many
 * micro-batches as it has fewer forwards first than device 0.  So every device keeps factor * (pp - 1) + 1 tapes.  With
 * three devices, four micro-batches and factor 1 (F forward, D inputs' gradients, W weights' gradients):
 *
 *     device 0    F0 F1 F2 D0 W0 F3 D1 W1 D2 W2 D3 W3     two first, none held back
 *     device 1    F0 F1 D0 F2 D1 W0 F3 D2 W1 D3 W2 W3     one first, one held back
 *     device 2    F0 D0 F1 D1 F2 D2 W0 F3 D3 W1 W2 W3     none first, two held back */
static void zero_bubble(struct turns *turns, int factor)
{
    int ahead = MIN(factor * (turns->mesh->pp - 1 - turns->pp_rank), turns->micros);
    int held = factor * turns->pp_rank;
    for (int i = -ahead; i < turns->micros; i++) {
        if (i + ahead < turns->micros)
            take_turn(turns, FORWARD, turns->pp_rank);
        if (i >= 0)
            take_turn(turns, INPUT_GRADIENT, turns->pp_rank);
        if (i >= 0 && (i >= held || i + ahead >= turns->micros))
            take_turn(turns, WEIGHT_GRADIENT, turns->pp_rank);
    }
    while (turns->done[turns->pp_rank][WEIGHT_GRADIENT] < turns->micros)
        take_turn(turns, WEIGHT_GRADIENT, turns->pp_rank);
}

static void zb_h1(struct turns *turns) { zero_bubble(turns, 1); }

static void zb_h2(struct turns *turns) { zero_bubble(turns, 2); }

/* Takes the gradients of the weights of one of the device's two stages: of all that are wanted, those whose input's
 * gradient came first. */
static void take_oldest_weights(struct turns *turns)
{
    int down = turns->pp_rank, up = 2 * turns->mesh->pp - 1 - turns->pp_rank; /* the two stages */
    int owed[2] = {turns->done[down][WEIGHT_GRADIENT], turns->done[up][WEIGHT_GRADIENT]};
    for (int i = 0; i < turns->n; i++) {
        const struct turn *turn = &turns->items[i];
        bool has_input = turn->computation == INPUT_GRADIENT || turn->computation == BACKWARD;
        if (has_input && turn->micro >= owed[turn->stage == up]) {
            take_turn(turns, WEIGHT_GRADIENT, turn->stage);
            return;
        }
    }
}

/* DeepSeek's schedule has eight parts, three while the pipeline fills, one while it is full, four while it empties.  A
 * device has two stages, one on the way down the V and one on the way up. */
struct fold {
    int after;    /* devices after this one */
    int until;    /* devices up to this one */
    int down, up; /* the two stages */
};

static void fill_v(struct turns *turns, const struct fold *fold)
{
    for (int i = 0; i < 2 * fold->after; i++)
        take_turn(turns, FORWARD, fold->down);
    for (int i = 0; i < fold->until; i++) {
        take_turn(turns, FORWARD, fold->down);
        take_turn(turns, FORWARD, fold->up);
    }
    for (int i = 0; i < fold->after; i++) {
        take_turn(turns, INPUT_GRADIENT, fold->up);
        take_oldest_weights(turns);
        take_turn(turns, FORWARD, fold->up);
    }
}

static void keep_v_full(struct turns *turns, const struct fold *fold)
{
    int rounds = turns->micros - 2 * turns->mesh->pp + fold->until;
    for (int i = 0; i < rounds; i++) {
        take_turn(turns, FORWARD, fold->down);
        take_turn(turns, BACKWARD, fold->up);
        take_turn(turns, FORWARD, fold->up);
        take_turn(turns, BACKWARD, fold->down);
    }
}

static void empty_v(struct turns *turns, const struct fold *fold)
{
    for (int i = 0; i < fold->after; i++) {
        take_turn(turns, BACKWARD, fold->up);
        take_turn(turns, FORWARD, fold->up);
        take_turn(turns, BACKWARD, fold->down);
    }
    for (int i = 0; i < 2 * fold->until; i++) { /* up and down in turn, the second half without the weights */
        enum computation what = i < fold->until ? BACKWARD : INPUT_GRADIENT;
        take_turn(turns, what, i % 2 ? fold->down : fold->up);
    }
    for (int i = 0; i < fold->after; i++) {
        take_oldest_weights(turns);
        take_turn(turns, INPUT_GRADIENT, fold->down);
    }
    for (int i = 0; i < fold->until; i++)
        take_oldest_weights(turns);
}

static void dualpipe_v(struct turns *turns)
{
    const struct fold fold = {
        .after = turns->mesh->pp - 1 - turns->pp_rank,
        .until = turns->pp_rank + 1,
        .down = turns->pp_rank,
        .up = 2 * turns->mesh->pp - 1 - turns->pp_rank,
    };
    fill_v(turns, &fold);
    keep_v_full(turns, &fold);
    empty_v(turns, &fold);
}

const char *const pipeline_name[PIPELINES + 1] = {"1f1b", "gpipe", "interleaved", "zbh1", "zbh2", "dualpipev"};
const struct turn_order pipeline_orders[PIPELINES] = {
    [PIPELINE_1F1B] = {.take_turns = one_forward_one_backward, .chunks = 1},
    [PIPELINE_GPIPE] = {.take_turns = gpipe, .chunks = 1},
    [PIPELINE_INTERLEAVED] = {.take_turns = interleaved, .chunks = 2},
    [PIPELINE_ZBH1] = {.take_turns = zb_h1, .chunks = 1},
    [PIPELINE_ZBH2] = {.take_turns = zb_h2, .chunks = 1},
    [PIPELINE_DUALPIPEV] = {.take_turns = dualpipe_v, .chunks = 2, .folded = true},
};

static void as_written(struct turns *turns, const struct written_turns *written)
{
    for (int i = 0; i < written->n[turns->pp_rank]; i++)
        take_turn(turns, written->turns[turns->pp_rank][i].computation, written->turns[turns->pp_rank][i].stage);
}

/* An order has to compute all that the device's stages need. */
static void check_turns(const struct turns *turns, const struct turn_order *turn_order)
{
    for (int computation = 0; computation < COMPUTATIONS; computation++) {
        int taken = 0;
        for (int stage = 0; stage < n_stages(turns->mesh); stage++)
            taken += turns->done[stage][computation];
        CHECK(computation == BACKWARD || taken == turns->mesh->chunks * turns->micros,
              "order %s leaves out turns of device %d",
              turn_order->written ? "of a file" : pipeline_name[turn_order - pipeline_orders], turns->pp_rank);
    }
}

struct turn *pipeline_order(const struct turn_order *turn_order, const struct mesh *mesh, int pp_rank, int micros,
                            int *n_turns)
{
    struct turns turns = {.mesh = mesh, .pp_rank = pp_rank, .micros = micros};
    turns.items = allocate_each(MOST_TURNS * mesh->chunks * micros, sizeof *turns.items);
    turns.done = allocate_each(n_stages(mesh), sizeof *turns.done);
    if (mesh->chunks < turn_order->chunks)
        one_forward_one_backward(&turns);
    else if (turn_order->written)
        as_written(&turns, turn_order->written);
    else
        turn_order->take_turns(&turns);
    check_turns(&turns, turn_order);
    free(turns.done);
    *n_turns = turns.n;
    return turns.items;
}

/* What reads the order `named`, a file or its text; NULL: it is neither, or no folder reads orders. */
static const struct order_reader *reader_of(const char *named)
{
    const struct order_reader *reader = find_order_reader();
    bool reads = reader && (ends_with(named, reader->ending) || strchr(named, '\n'));
    return reads ? reader : NULL;
}

bool is_written_order(const char *named) { return reader_of(named) != NULL; }

const struct turn_order *turn_order_of(const char *named)
{
    int known = choice_number(pipeline_name, named);
    const struct order_reader *reader = reader_of(named);
    if (known >= 0)
        return &pipeline_orders[known];
    return reader ? reader->read(named) : NULL;
}

/* ---- one list ---------------------------------------------------------------------------------------------------- */

int turn_needs(const struct turn *turn, int last, enum head_weights head, struct turn needs[MOST_NEEDS])
{
    int stage = turn->stage, micro = turn->micro;
    bool weights = turn->computation == BACKWARD || turn->computation == WEIGHT_GRADIENT;
    int n = 0;
    if (turn->computation == WEIGHT_GRADIENT)
        needs[n++] = (struct turn){INPUT_GRADIENT, stage, micro};
    else if (turn->computation == FORWARD && stage > 0)
        needs[n++] = (struct turn){FORWARD, stage - 1, micro};
    else if (turn->computation != FORWARD && stage == last)
        needs[n++] = (struct turn){FORWARD, stage, micro};
    else if (turn->computation != FORWARD)
        needs[n++] = (struct turn){INPUT_GRADIENT, stage + 1, micro};
    if (head == TIED && weights && stage == 0 && last > 0)
        needs[n++] = (struct turn){WEIGHT_GRADIENT, last, micro};
    return n;
}

/* Has what this turn needs been done?  An order is the same for tied and untied heads, so it always counts as tied. */
static bool is_ready(const struct turn *turn, int last, int (*const done)[COMPUTATIONS])
{
    struct turn needs[MOST_NEEDS];
    int n = turn_needs(turn, last, TIED, needs);
    for (int i = 0; i < n; i++)
        if (done[needs[i].stage][needs[i].computation] <= needs[i].micro)
            return false;
    return true;
}

struct device_turns {
    struct turn *turns;
    int n;
    int next; /* the first that has no place in the merged order yet */
};

/* Each device takes its next turn if what that needs was done in an earlier round.  The turns are written to `round`,
 * which has room for one of each device.  Returns how many there are. */
static size_t take_round(struct device_turns *devices, const struct mesh *mesh, int (*done)[COMPUTATIONS],
                         struct turn *round)
{
    size_t taken = 0;
    for (struct device_turns *device = devices; device < devices + mesh->pp; device++) {
        if (device->next == device->n || !is_ready(&device->turns[device->next], n_stages(mesh) - 1, done))
            continue;
        round[taken++] = device->turns[device->next];
        device->next++;
    }
    for (size_t i = 0; i < taken; i++)
        note_done(done, &round[i]);
    return taken;
}

struct turn *merge_orders(const struct turn_order *turn_order, const struct mesh *mesh, int micros, size_t *n_turns)
{
    size_t most = MOST_TURNS * (size_t)(n_stages(mesh) * micros);
    size_t taken = 0, total = 0;
    int(*done)[COMPUTATIONS] = allocate_each(n_stages(mesh), sizeof *done);
    struct turn *all = allocate(most, sizeof *all);
    struct device_turns *devices = allocate_each(mesh->pp, sizeof *devices);
    for (int pp_rank = 0; pp_rank < mesh->pp; pp_rank++) {
        devices[pp_rank].turns = pipeline_order(turn_order, mesh, pp_rank, micros, &devices[pp_rank].n);
        total += (size_t)devices[pp_rank].n;
    }
    while (taken < total) {
        size_t of_round = take_round(devices, mesh, done, all + taken);
        CHECK(of_round > 0, "the orders of a pipeline wait for one another after %zu of %zu turns", taken, total);
        taken += of_round;
    }
    for (int pp_rank = 0; pp_rank < mesh->pp; pp_rank++)
        free(devices[pp_rank].turns);
    free(devices);
    free(done);
    *n_turns = taken;
    return all;
}
