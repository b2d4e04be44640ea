/* bounds.c - what no step of a candidate can undercut.
 *
 * The times and bytes of a layer depend on how tensor parallelism cuts it and on the size of the micro-batch, and on
 * nothing else.  So a list for one pipeline stage, the sketch, is built once, and tells them for many candidates.
 *
 *     time      a device's work, before it the forwards, and after it the backwards, of the stages that come first:
 *
 *                   stage 0   F F F . . . B B B
 *                   stage 1     F F F B B B        the work of stage 1, one F before it, and one B after it
 *
 *               With clipping a step's turns lie between two updates.  Without it, only the work counts.
 *               Where dp > 1, also all that a link carries in a step, and the cycle, see below
 *     memory    parameters, gradients and optimizer, divided by dp where ZeRO shares them out; or, in place of the
 *               gradients, the tapes that the order keeps at the same time
 *
 * The cycle is the time from a stage's first forward to that of the next step, on the rank that begins it before all
 * others: work up to the first gradients that can travel, then gradients and new values:
 *
 *     work      F F F B B B[2 1 0]          F
 *     link                 [2][1][ 0 ][2][1][ 0 ]     units, as long as their bytes take
 *
 * The last backward goes from the stage's last unit to its first, unit 0.  When the backward of unit u begins, no
 * gradient of units 0 to u can have travelled.  From then on all of these must travel, so the cycle takes at least, for
 * each u,
 *
 *     work - (B[0] + ... + B[u]) + (bytes[0] + ... + bytes[u]) * byte_seconds       B[u]: the backward of unit u
 *
 * Say that one micro-batch takes 1 s forward and 2 s backward in each of three units, and that the bytes of unit 0, the
 * large embedding, take 4 s, those of the others 1 s.  The cycle takes at least 11 s (two characters are a second):
 *
 *     compute                     F F F B2B2B1B1B0B0
 *     u = 2     9 - 6 + 6 =  9          2 1 0 0 0 0
 *     u = 1     9 - 4 + 5 = 10                  1 0 0 0 0
 *     u = 0     9 - 2 + 4 = 11                      0 0 0 0
 *
 * With clipping the norm waits for the gradients of all ranks, which share a link.  New values come after it, and are
 * left out here.  Without clipping new values follow in the same order, and the rank waits for its own bytes alone.
 */
#include "bounds.h"
#include "planning/predict/plan.h"
#include "planning/predict/predict.h"

#include <math.h>

/* ---- the sketch -------------------------------------------------------------------------------------------------- */

/* The unit of each task, by position.  Tasks without a layer belong to the embedding if they come before the first
 * forward or after the last backward of a layer, and else to the head. */
static int *new_units_of_tasks(const struct list *list, int layers)
{
    int *unit = allocate(list->n, sizeof *unit);
    int now = 0; /* the unit of the task before */
    for (size_t i = 0; i < list->n; i++) {
        const struct task *task = list->tasks[i];
        if (task->layer != NONE)
            now = task->layer + 1;
        else if (task->role == ROLE_FORWARD && now > 0)
            now = layers + 1;
        else if (task->role == ROLE_BACKWARD && now <= 1)
            now = 0;
        unit[i] = now;
    }
    return unit;
}

/* The earliest end of the task, given those of all tasks before it.  It waits for its lane's last task, and for those
 * whose results it needs.  (Waits for bytes are left out: they depend on where tensors lie.) */
static double earliest_end(const struct trainer *trainer, const struct task *task, const double *end,
                           const double *lane_end)
{
    enum cost_source source;
    double begin = lane_end[task->lane->index];
    for (const struct edge *edge = task->edges; edge < task->edges + task->n_edges; edge++)
        if (!edge->previous && edge->kind == EDGE_DATA)
            begin = fmax(begin, end[edge->producer]);
    return begin + task_seconds(costs_of(trainer), task, &source);
}

/* Notes by unit how long the forward and the backward of the first micro-batch occupy the first rank's compute lane.
 * Waits for what other ranks send count, too. */
static void note_compute_times(struct sketch *sketch, const struct trainer *trainer, const int *unit)
{
    const struct list *list = trainer->train_list;
    double *end = allocate(list->n, sizeof *end);
    double *lane_end = allocate_each(trainer->machine->n_lanes, sizeof *lane_end);
    bool is_forward = true;
    for (size_t i = 0; i < list->n; i++) {
        const struct task *task = list->tasks[i];
        if (task->micro != 0 || task->role > ROLE_SEND || task->lane->device->is_host)
            continue;
        double before = lane_end[task->lane->index];
        end[i] = earliest_end(trainer, task, end, lane_end);
        lane_end[task->lane->index] = end[i];
        if (task->role == ROLE_BACKWARD)
            is_forward = false;
        if (task->lane != trainer->machine->devices[0].lanes[LANE_COMPUTE])
            continue;
        if (is_forward)
            sketch->units[unit[i]].forward += end[i] - before;
        else
            sketch->units[unit[i]].backward += end[i] - before;
    }
    free(end);
    free(lane_end);
}

/* Notes what the description says of links. */
static void note_link(struct sketch *sketch, const struct trainer *trainer)
{
    const struct costs *costs = costs_of(trainer);
    sketch->link_share = costs->link_share;
    if (costs->speeds[LANE_UPLOAD].bytes_per_s > 0)
        sketch->link_byte_seconds = 1 / (costs->speeds[LANE_UPLOAD].bytes_per_s * costs->scale_link);
}

/* Notes what the list's tensors take: parameters and tape by unit, and what is held beyond the tapes in the
 * backward. */
static void note_bytes(struct sketch *sketch, const struct trainer *trainer, const int *unit)
{
    const struct params *params = params_of(trainer->model, 0);
    int backward = 0; /* where it begins */
    for (int i = 0; i < params->n; i++)
        sketch->units[params->items[i].unit].parameter_bytes +=
            (double)(param_elements(&params->items[i]) * ELEMENT_BYTES);
    while (trainer->train_list->tasks[backward]->role != ROLE_BACKWARD)
        backward++;
    double tapes = 0;
    for (size_t i = 0; i < trainer->pool->n; i++) {
        const struct tensor *tensor = trainer->pool->tensors[i];
        bool is_activation = tensor->class == MEM_ACTIVATIONS && tensor->list == trainer->train_list &&
                             tensor->device == trainer->machine->devices;
        if (!is_activation || tensor->held_from >= backward || tensor->held_until < backward)
            continue;
        sketch->units[unit[tensor->held_from]].tape_bytes += (double)tensor->bytes;
        tapes += (double)tensor->bytes;
    }
    for (size_t i = 0; i < trainer->train_list->extra.n_levels; i++) {
        const struct level *level = &trainer->train_list->extra.levels[i];
        /* Buffers are left out: one for gradients that several micro-batches add to is there from the first one on. */
        size_t held = level->of_class[MEM_ACTIVATIONS] + level->of_class[MEM_WORK];
        if (level->device == 0 && level->position >= backward && unit[level->position] >= trainer->config.layers)
            sketch->bytes_beside_tape = fmax(sketch->bytes_beside_tape, (double)held - tapes);
    }
}

struct sketch *new_sketch(const struct settings *like, int tp, int micro_batch)
{
    char mesh[MESH_TEXT];
    struct settings settings = *like;
    struct problem *problem;
    settings.mesh = format_mesh(mesh, &(struct mesh){.dp = 1, .pp = 1, .tp = tp});
    settings.batch = 2 * micro_batch; /* the times of the last one would contain the end of a step */
    settings.micro_batch = micro_batch;
    settings.host_memory = NO_LIMIT;
    settings.clip = 1; /* so that no update comes between the tasks of a backward */
    struct trainer *trainer = try_to_plan(&settings, LIST_TRAIN, &problem);
    free(problem);
    if (!trainer)
        return NULL;
    const struct config *config = &trainer->config;
    struct sketch *sketch = allocate(1, sizeof *sketch);
    *sketch = (struct sketch){.tp = tp, .micro_batch = micro_batch, .tasks = (double)trainer->train_list->n / 2};
    sketch->passed_bytes = (double)micro_batch * settings.seq_len * config->channels * ELEMENT_BYTES;
    sketch->units = allocate_each(config->layers + 2, sizeof *sketch->units);
    int *unit = new_units_of_tasks(trainer->train_list, config->layers);
    note_compute_times(sketch, trainer, unit);
    note_link(sketch, trainer);
    note_bytes(sketch, trainer, unit);
    free(unit);
    free_trainer(trainer);
    return sketch;
}

void free_sketch(struct sketch *sketch)
{
    free(sketch->units);
    free(sketch);
}

/* ---- a candidate: its stages ------------------------------------------------------------------------------------- */

struct step_form { /* what bounds depend on besides the sketch and the mesh */
    bool clips;    /* updates wait for the norm of all gradients */
    bool splits;   /* some backwards are in halves, whose times are not known */
};

struct load {             /* what a device has of one pipeline */
    double before, after; /* seconds of one micro-batch in the stages before its first one: forward, and backward */
    double work;          /* seconds of its turns so far; at the end, of all */
    double parameters;    /* bytes */
    double held, most;    /* bytes of tapes and of gradients that later micro-batches add to; the most so far */
};
struct stage {
    struct unit_work sum; /* the work of its units together */
    int begin, end;       /* its units: [begin, end) */
    double starts, stops; /* seconds of its device's turns before its first forward, and up to its last backward */
    bool has_started;     /* true: the first forward has been counted */
};

/* Sums the work of the stage's units.  Its output is on the tape of the next stage. */
static struct stage sum_stage(const struct mesh *mesh, const struct sketch *sketch, int number)
{
    bool is_last = number == n_stages(mesh) - 1;
    struct stage stage = {.begin = number == 0 ? 0 : mesh->first_layer[number] + 1,
                          .end = mesh->first_layer[number + 1] + (is_last ? 2 : 1),
                          .sum.tape_bytes = is_last ? 0 : -sketch->passed_bytes};
    for (int u = stage.begin; u < stage.end; u++) {
        const struct unit_work *unit = &sketch->units[u];
        stage.sum.forward += unit->forward;
        stage.sum.backward += unit->backward;
        stage.sum.parameter_bytes += unit->parameter_bytes;
        stage.sum.tape_bytes += unit->tape_bytes;
    }
    return stage;
}

/* ---- a candidate: time ------------------------------------------------------------------------------------------- */

/* Adds the turn's time.  Only the time of both halves of a backward together is known; it counts with the second. */
static void count_turn(struct load *load, struct stage *stage, enum computation computation)
{
    if (!stage->has_started)
        stage->starts = load->work;
    stage->has_started = true;
    if (computation == FORWARD)
        load->work += stage->sum.forward;
    else if (computation != INPUT_GRADIENT)
        load->work += stage->sum.backward;
    stage->stops = load->work;
}

struct link_use { /* the link that most ranks of a stage share */
    int ranks;    /* how many share it */
    bool alike;   /* as many ranks share each of the links */
};

static struct link_use use_of_links(const struct mesh *mesh, int stage, int64_t link_share)
{
    int64_t link = NONE;
    int ranks = 0, most = 0;
    int links = 0;
    for (int dp = 0; dp < mesh->dp; dp++) {
        int first = rank_at(mesh, dp, stage);
        for (int rank = first; rank < first + mesh->tp; rank++) {
            if (rank / link_share != link) {
                ranks = 0;
                links++;
            }
            link = rank / link_share;
            ranks++;
            most = MAX(most, ranks);
        }
    }
    return (struct link_use){.ranks = most, .alike = most * links == mesh->dp * mesh->tp};
}

/* The bytes of a unit that count for a rank.  A rank sums its shard of the gradient, which is whole blocks of the norm:
 * with dp=3 and 10 blocks, shards have 4, 3 and 3.  If each link has as many ranks, the busiest link carries at least
 * the mean, so all 10 blocks count.  Otherwise the ranks of the link that counts may all have the smallest shard, so dp
 * times the smallest counts: 9 blocks. */
static double counted_bytes(const struct unit_work *unit, const struct mesh *mesh, const struct link_use *use)
{
    size_t elements = (size_t)unit->parameter_bytes / ELEMENT_BYTES;
    size_t least = elements;
    if (use->alike)
        return unit->parameter_bytes;
    for (int k = 0; k < mesh->dp; k++) {
        const struct range shard = shard_of(elements, k, mesh->dp);
        least = MIN(least, shard.end - shard.begin);
    }
    return (double)(least * (size_t)mesh->dp * ELEMENT_BYTES);
}

/* Link seconds per byte of gradients, or of new values: each rank receives all but its own 1/dp. */
static double seconds_a_byte(const struct mesh *mesh, const struct sketch *sketch)
{
    return (double)(mesh->dp - 1) / mesh->dp * sketch->link_byte_seconds;
}

/* The cycle of a stage, as the head of this file defines it.  bytes: those that count, by unit.  byte_seconds: what one
 * of them takes, with all that must travel for it.  Where backwards are in halves, it is not known which unit's
 * gradients come first, but none comes before the last second half begins: then only the last u counts. */
static double bound_cycle(const struct stage *stage, const struct sketch *sketch, const double *bytes,
                          double byte_seconds, const struct step_form *form)
{
    double work = stage->stops - stage->starts;
    double begins = work, most = work;
    double travelled = 0;
    for (int u = stage->begin; u < stage->end; u++) {
        begins -= sketch->units[u].backward;
        travelled += bytes[u];
        if (!form->splits || u == stage->end - 1)
            most = fmax(most, begins + travelled * byte_seconds);
    }
    return most;
}

static double bound_time(const struct mesh *mesh, const struct sketch *sketch, const struct stage *stages,
                         const struct load *loads, const struct step_form *form)
{
    double byte_seconds = seconds_a_byte(mesh, sketch);
    double turns = 0;   /* seconds of a step's turns, and of what they wait for */
    double carried = 0; /* seconds of all that a link carries in a step */
    double *bytes = allocate_each(stages[n_stages(mesh) - 1].end, sizeof *bytes); /* those that count, by unit */
    for (int number = 0; number < n_stages(mesh); number++) {
        const struct load *load = &loads[pp_of(mesh, number)];
        const struct link_use use = use_of_links(mesh, number, sketch->link_share);
        double bytes_sum = 0;
        for (int u = stages[number].begin; u < stages[number].end; u++) {
            bytes[u] = counted_bytes(&sketch->units[u], mesh, &use);
            bytes_sum += bytes[u];
        }
        double cycle = bound_cycle(&stages[number], sketch, bytes, (form->clips ? use.ranks : 2) * byte_seconds, form);
        carried =
            fmax(carried, 2 * use.ranks * bytes_sum * byte_seconds); /* gradients, and as many bytes of new values */
        turns = fmax(turns, fmax(cycle, load->work));
        if (form->clips && number < mesh->pp)
            turns = fmax(turns, load->before + fmax(cycle, load->work + load->after));
    }
    if (form->clips) /* the first unit's values come after the norm, and all forwards after them */
        turns += sketch->units[0].parameter_bytes * byte_seconds;
    free(bytes);
    return fmax(turns, carried);
}

/* ---- a candidate: memory ----------------------------------------------------------------------------------------- */

/* Adds to the load the bytes that its device must keep from this turn on, takes off those that the turn frees, and
 * raises the most so far.  extra: bytes beside the tapes during this backward.  adds: later micro-batches add to the
 * gradients. */
static void add_turn_to_load(struct load *load, const struct turn *turn, const struct stage *stage, double extra,
                             bool adds)
{
    bool is_forward = turn->computation == FORWARD;
    bool makes_weight_gradients = !is_forward && turn->computation != INPUT_GRADIENT;
    if (is_forward)
        load->held += stage->sum.tape_bytes;
    load->most = fmax(load->most, load->held + (is_forward ? 0 : extra));
    if (!is_forward && turn->computation != WEIGHT_GRADIENT)
        load->held -= stage->sum.tape_bytes;
    if (makes_weight_gradients && turn->micro == 0 && adds)
        load->held += stage->sum.parameter_bytes;
}

static void bound_memory(struct mesh_candidate *candidate, const struct load *load, const struct step_form *form)
{
    int zero = candidate->mesh.zero;
    double share = 1.0 / candidate->mesh.dp;
    double parameters = load->parameters * (zero >= 3 ? share : 1);
    double optimizer = 2 * load->parameters * (zero >= 1 ? share : 1);
    double gradients = load->parameters;
    if (candidate->micros == 1 && zero >= 2)
        gradients *= share;
    if (candidate->micros == 1 && !form->clips) /* each is gone when its unit is updated */
        gradients = 0;
    candidate->least_state = fmax(candidate->least_state, parameters + optimizer + gradients);
    candidate->least_bytes = fmax(candidate->least_bytes, parameters + optimizer + fmax(gradients, load->most));
}

/* ---- a candidate: both ------------------------------------------------------------------------------------------- */

/* Sets what the first stage of a device waits for: `previous` is the device before it, `stage` that one's stage. */
static void set_waits_of_device(struct load *load, const struct load *previous, const struct stage *stage,
                                const struct step_form *form)
{
    load->before = previous->before + stage->sum.forward;
    load->after = previous->after + (form->splits ? 0 : stage->sum.backward);
}

/* The stages of the mesh, and what each device has of them before its first turn.  The caller frees the stages. */
static struct stage *sum_stages(const struct mesh *mesh, const struct sketch *sketch, struct load *loads,
                                const struct step_form *form)
{
    int n = n_stages(mesh);
    struct stage *stages = allocate_each(n, sizeof *stages);
    for (int number = 0; number < n; number++) {
        struct load *load = &loads[pp_of(mesh, number)];
        stages[number] = sum_stage(mesh, sketch, number);
        load->parameters += stages[number].sum.parameter_bytes;
        if (number > 0 && number < mesh->pp)
            set_waits_of_device(load, &loads[number - 1], &stages[number - 1], form);
    }
    return stages;
}

/* Is a backward among the turns that is in halves? */
static bool has_halves(const struct turn *turns, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (turns[i].computation == INPUT_GRADIENT)
            return true;
    return false;
}

void set_bounds(struct mesh_candidate *candidate, const struct sketch *sketch, bool clips)
{
    const struct mesh *mesh = &candidate->mesh;
    size_t n;
    struct turn *turns = merge_orders(candidate->turn_order, mesh, candidate->micros, &n);
    const struct step_form form = {.clips = clips, .splits = has_halves(turns, n)};
    struct load *loads = allocate_each(mesh->pp, sizeof *loads);
    struct stage *stages = sum_stages(mesh, sketch, loads, &form);
    for (size_t i = 0; i < n; i++) {
        int number = turns[i].stage;
        struct load *load = &loads[pp_of(mesh, number)];
        count_turn(load, &stages[number], turns[i].computation);
        bool has_head = number == n_stages(mesh) - 1;
        add_turn_to_load(load, &turns[i], &stages[number], has_head ? sketch->bytes_beside_tape : 0,
                         candidate->micros > 1);
    }
    candidate->tasks = sketch->tasks * candidate->micros * mesh->dp;
    candidate->least_seconds = bound_time(mesh, sketch, stages, loads, &form);
    for (int pp = 0; pp < mesh->pp; pp++)
        bound_memory(candidate, &loads[pp], &form);
    free(stages);
    free(loads);
    free(turns);
}
