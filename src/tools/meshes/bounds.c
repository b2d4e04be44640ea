/* bounds.c - what no step of a candidate can undercut.
 *
 * The times and bytes of a layer depend on how tensor parallelism cuts it and on the size of the micro-batch, and on
 * nothing else.  So a small list, the sketch, tells them for many candidates.  What follows for one of them costs
 * microseconds: its turns are taken in their order, on devices that wait for nothing but one another's results.
 *
 *     compute     the sum of a device's turns
 *     pipeline    the end of the last turn.  It holds with clipping only: then a step's turns lie between two updates
 *     links       gradients to their owners, and parameters back, 2 (dp - 1) times the model; for each micro-batch what
 *                 tensor-parallel ranks exchange and stages pass on
 *     memory      parameters, gradients and optimizer, divided by dp where ZeRO shares them out; or, in place of the
 *                 gradients, the tapes that are kept when most forwards wait for their backward
 */
#include "bounds.h"
#include "tools/predict/predict.h"

#include <math.h>

/* ---- the sketch -------------------------------------------------------------------------------------------------- */

/* The unit of each task, by position: tasks of no layer are the embedding's before and after all layers, else the
 * head's. */
static int *units_of(const struct step *s, int layers)
{
    int *unit = allocate(s->n, sizeof *unit), now = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct task *t = s->task[i];
        if (t->layer != NONE)
            now = t->layer + 1;
        else if (t->role == ROLE_FORWARD && now > 0)
            now = layers + 1;
        else if (t->role == ROLE_BACKWARD && now <= 1)
            now = 0;
        unit[i] = now;
    }
    return unit;
}

/* When the task ends at the earliest, if all before it end then: after its lane's last task, and after those whose
 * results it needs.  (Waits for bytes are left out: they depend on where tensors lie.) */
static double earliest_end(const struct trainer *t, const struct task *task, const double *end, const double *lane_end)
{
    enum cost_source source;
    double begin = lane_end[task->lane->index];
    for (const struct edge *e = task->edges; e < task->edges + task->n_edges; e++)
        if (!e->previous && e->kind == EDGE_DATA)
            begin = fmax(begin, end[e->producer]);
    return begin + task_seconds(costs_of(t), task, &source);
}

/* A turn also keeps its lane while it waits for what other ranks send. */
static void note_times(struct sketch *k, const struct trainer *t, const int *unit)
{
    const struct step *s = t->train;
    double *end = allocate(s->n, sizeof *end);
    double *lane_end = allocate((size_t)t->machine->n_lanes, sizeof *lane_end);
    bool is_forward = true;
    for (size_t i = 0; i < s->n; i++) {
        const struct task *task = s->task[i];
        if (task->micro != 0 || task->role > ROLE_SEND || task->lane->device->is_host)
            continue;
        double *lane = &lane_end[task->lane->index], before = *lane;
        end[i] = earliest_end(t, task, end, lane_end);
        *lane = end[i];
        is_forward &= task->role != ROLE_BACKWARD;
        if (is_copy(task) && task->role == ROLE_SEND && !task->access[0].tensor->device->is_host)
            k->sent += (double)task->access[0].tensor->bytes;
        if (task->lane != t->machine->device[0].lane[LANE_COMPUTE])
            continue;
        if (is_forward)
            k->unit[unit[i]].forward += end[i] - before;
        else
            k->unit[unit[i]].backward += end[i] - before;
    }
    free(end);
    free(lane_end);
}

static void note_bytes(struct sketch *k, const struct trainer *t, const int *unit)
{
    const struct params *p = params_of(t->model, 0);
    int backward = 0; /* where it begins */
    for (int i = 0; i < p->n; i++)
        k->unit[p->param[i].unit].parameters += (double)(param_elements(&p->param[i]) * ELEMENT_BYTES);
    while (t->train->task[backward]->role != ROLE_BACKWARD)
        backward++;
    double tapes = 0;
    for (size_t i = 0; i < t->pool->n; i++) {
        const struct tensor *x = t->pool->tensors[i];
        bool is_activation = x->class == MEM_ACTIVATIONS && x->step == t->train && x->device == t->machine->device;
        if (!is_activation || x->held_from >= backward || x->held_until < backward)
            continue;
        k->unit[unit[x->held_from]].tape += (double)x->bytes;
        tapes += (double)x->bytes;
    }
    for (const struct level *l = t->train->level; l < t->train->level + t->train->n_levels; l++) {
        size_t state = l->of_class[MEM_PARAMETERS] + l->of_class[MEM_GRADIENTS] + l->of_class[MEM_OPTIMIZER];
        if (l->device == 0 && l->position >= backward && unit[l->position] >= t->config.layers)
            k->extra = fmax(k->extra, (double)(l->bytes - state) - tapes);
    }
}

struct building {
    struct settings settings;
    struct trainer *trainer;
};

static void build_sketch(void *building)
{
    struct building *b = building;
    b->trainer = new_trainer(&b->settings, LIST_TRAIN, false, true);
}

struct sketch *new_sketch(const struct settings *s, int tp, int micro_batch)
{
    char mesh[64];
    struct building b = {.settings = *s};
    b.settings.mesh = format_mesh(mesh, &(struct mesh){.dp = 1, .pp = 1, .tp = tp});
    b.settings.batch = 2 * micro_batch; /* the first one's times are free of what ends a step */
    b.settings.micro_batch = micro_batch;
    b.settings.clip = 1; /* so that no update comes between the tasks of a backward */
    struct problem *impossible = attempt(build_sketch, &b);
    free(impossible);
    if (impossible)
        return NULL;
    const struct config *c = &b.trainer->config;
    struct sketch *k = allocate(1, sizeof *k);
    *k = (struct sketch){.tp = tp, .micro_batch = micro_batch};
    k->passed = (double)micro_batch * s->seq_len * c->channels * ELEMENT_BYTES;
    k->unit = allocate((size_t)c->layers + 2, sizeof *k->unit);
    int *unit = units_of(b.trainer->train, c->layers);
    note_times(k, b.trainer, unit);
    note_bytes(k, b.trainer, unit);
    free(unit);
    free_trainer(b.trainer);
    return k;
}

void free_sketch(struct sketch *k)
{
    free(k->unit);
    free(k);
}

/* ---- a candidate's turns ----------------------------------------------------------------------------------------- */

struct walk { /* one pipeline goes through a step */
    const struct candidate *c;
    struct unit_work *stage; /* by stage: the sum of its units */
    struct walker {
        double work, now;  /* seconds of its turns, and when the last of them ended */
        double held, most; /* bytes of tapes and of gradients that later micro-batches add to; the most so far */
        double parameters;
    } * device;         /* by pipeline coordinate */
    double extra;       /* bytes, as in struct sketch */
    double (*ended)[2]; /* by stage and micro-batch: when its forward, and its input's gradient, were there */
};

/* The output of a stage is kept by the one that gets it, not by the one that made it. */
static struct unit_work sum_stage(const struct candidate *c, const struct sketch *k, int stage)
{
    const struct mesh *m = &c->mesh;
    const bool is_last = stage == n_stages(m) - 1;
    const int begin = stage == 0 ? 0 : m->first_layer[stage] + 1;
    const int end = m->first_layer[stage + 1] + (is_last ? 2 : 1);
    struct unit_work sum = {.tape = is_last ? 0 : -k->passed};
    for (int u = begin; u < end; u++) {
        sum.forward += k->unit[u].forward;
        sum.backward += k->unit[u].backward;
        sum.parameters += k->unit[u].parameters;
        sum.tape += k->unit[u].tape;
    }
    return sum;
}

static void hold(struct walk *w, const struct turn *t)
{
    const struct mesh *m = &w->c->mesh;
    const struct unit_work *stage = &w->stage[t->stage];
    struct walker *d = &w->device[pp_of(m, t->stage)];
    bool is_forward = t->computation == FORWARD, has_head = t->stage == n_stages(m) - 1;
    if (is_forward)
        d->held += stage->tape;
    d->most = fmax(d->most, d->held + (!is_forward && has_head ? w->extra : 0));
    if (!is_forward && t->computation != WEIGHT_GRADIENT)
        d->held -= stage->tape;
    if (!is_forward && t->computation != INPUT_GRADIENT && t->micro == 0 && w->c->micros > 1)
        d->held += stage->parameters;
}

/* How a backward's time divides into its two halves is not known, so the second one gets all of it. */
static void take_turn(struct walk *w, const struct turn *t)
{
    const struct mesh *m = &w->c->mesh;
    const struct unit_work *stage = &w->stage[t->stage];
    struct walker *d = &w->device[pp_of(m, t->stage)];
    const int micros = w->c->micros;
    double(*ended)[2] = &w->ended[t->stage * micros + t->micro];
    double seconds = 0;
    if (t->computation == FORWARD)
        seconds = stage->forward;
    else if (t->computation != INPUT_GRADIENT)
        seconds = stage->backward;
    if (t->computation == FORWARD && t->stage > 0)
        d->now = fmax(d->now, ended[-micros][0]);
    if (t->computation != FORWARD && t->computation != WEIGHT_GRADIENT && t->stage < n_stages(m) - 1)
        d->now = fmax(d->now, ended[micros][1]);
    d->now += seconds;
    d->work += seconds;
    if (t->computation != WEIGHT_GRADIENT)
        (*ended)[t->computation != FORWARD] = d->now;
    hold(w, t);
}

/* The bytes of the device, when nothing but state is held, or, with the tapes, at the end of the forwards. */
static void bound_memory(struct candidate *c, const struct walker *d, bool clips)
{
    const double share = 1.0 / c->mesh.dp, parameters = d->parameters * (c->mesh.zero >= 3 ? share : 1);
    const double optimizer = 2 * d->parameters * (c->mesh.zero >= 1 ? share : 1);
    double gradients = d->parameters;
    if (c->micros == 1 && c->mesh.zero >= 2)
        gradients *= share;
    if (c->micros == 1 && !clips) /* each is gone when its unit is updated */
        gradients = 0;
    c->state = fmax(c->state, parameters + optimizer + gradients);
    c->bytes = fmax(c->bytes, parameters + optimizer + fmax(gradients, d->most));
}

void set_bounds(struct candidate *c, const struct sketch *k, bool clips, double link_rate)
{
    const struct mesh *m = &c->mesh;
    const int stages = n_stages(m);
    size_t n;
    struct turn *turn = merge_orders(c->order, m, c->micros, &n);
    struct walk w = {.c = c, .extra = k->extra, .stage = allocate((size_t)stages, sizeof *w.stage)};
    w.device = allocate((size_t)m->pp, sizeof *w.device);
    w.ended = allocate((size_t)(stages * c->micros), sizeof *w.ended);
    double model = 0, passed = 0;
    for (int s = 0; s < stages; s++) {
        w.stage[s] = sum_stage(c, k, s);
        w.device[pp_of(m, s)].parameters += w.stage[s].parameters;
        model += w.stage[s].parameters * m->tp;
        if (s > 0 && pp_of(m, s) != pp_of(m, s - 1))
            passed += 2 * k->passed * m->tp;
    }
    for (size_t i = 0; i < n; i++)
        take_turn(&w, &turn[i]);
    for (struct walker *d = w.device; d < w.device + m->pp; d++) {
        c->seconds[BY_COMPUTE] = fmax(c->seconds[BY_COMPUTE], d->work);
        c->seconds[BY_PIPELINE] = fmax(c->seconds[BY_PIPELINE], clips ? d->now : d->work);
        bound_memory(c, d, clips);
    }
    c->seconds[BY_LINKS] = (2 * (m->dp - 1) * model + m->dp * c->micros * (k->sent + passed)) / link_rate;
    free(w.stage);
    free(w.device);
    free(w.ended);
    free(turn);
}

double least_seconds(const struct candidate *c)
{
    return fmax(fmax(c->seconds[BY_COMPUTE], c->seconds[BY_LINKS]), c->seconds[BY_PIPELINE]);
}
