/* pipeline.c - the order of micro-batches: which stage does which forward and backward when.
 *
 * F and B stand for the forward and backward of a micro-batch on a stage.  With 2 stages and 3 micro-batches:
 *
 *     gpipe    stage 0   F0 F1 F2          B0 B1 B2            all forwards, then all backwards   (Huang et al. 2019)
 *              stage 1      F0 F1 F2 B0 B1 B2
 *     1f1b     stage 0   F0 F1    B0 F2 B1    B2               as early a backward as can be: at most `stages` tapes
 *              stage 1      F0 B0 F1 B1 F2 B2                  are kept                       (Narayanan et al. 2019)
 *
 * An interleaved pipeline has several stages (chunks) per device, so a micro-batch passes each device several times,
 * and the wait at both ends is shorter (Narayanan et al. 2021).
 *
 * Zero bubble.  The stage before waits for the gradient of the input alone.  So backward is cut in two: here D is the
 * gradient of the input, and W are those of the weights, for which nobody waits.  (The papers write B for D.)
 *
 *     zbh1       stage 0   F0 F1    D0 W0 F2 D1 W1 D2 W2     later stages put W off, so D goes earlier: each keeps as
 *                stage 1      F0 D0 F1 D1 W0 F2 D2 W1 W2     many tapes as stage 0 of 1f1b          (Qi et al. 2023)
 *     zbh2       more forwards first: with 2p - 1 tapes, and without clipping, nobody ever waits         (the same)
 *     dualpipev  two stages per device, folded like a V: device 0 has the first and the last     (Sea AI Lab 2025)
 *
 * An order is a function that takes the turns of one device, and a row of orders[].  Backward takes the micro-batches
 * of a stage in ascending order in all of them, both halves, so that gradients are summed in the same order, and to the
 * same bits, as on one device.
 */
#include "model.h"

/* ---- orders ---------------------------------------------------------------------------------------------------- */

struct turns { /* of device p, as far as they have been taken */
    const struct mesh *m;
    int p, micros;
    struct turn *turn;
    int n;
    int (*done)[COMPUTATIONS]; /* by stage: how many micro-batches; a whole backward counts as both halves */
};

static void note_done(int (*done)[COMPUTATIONS], const struct turn *t)
{
    for (enum computation a = FORWARD; a < COMPUTATIONS; a++)
        done[t->stage][a] += a == t->computation || (t->computation == BACKWARD && a != FORWARD);
}

static void take(struct turns *o, enum computation what, int stage)
{
    struct turn *t = &o->turn[o->n++];
    *t = (struct turn){what, stage, o->done[stage][what == BACKWARD ? WEIGHT_GRADIENT : what]};
    CHECK(t->micro < o->micros, "an order takes more turns of stage %d than there are micro-batches", stage);
    note_done(o->done, t);
}

static void gpipe(struct turns *o)
{
    for (int i = 0; i < o->micros; i++)
        take(o, FORWARD, o->p);
    for (int i = 0; i < o->micros; i++)
        take(o, BACKWARD, o->p);
}

/* As many forwards first as there are stages behind. */
static void one_forward_one_backward(struct turns *o)
{
    const int ahead = MIN(o->m->pp - 1 - o->p, o->micros);
    for (int i = -ahead; i < o->micros; i++) {
        if (i + ahead < o->micros)
            take(o, FORWARD, o->p);
        if (i >= 0)
            take(o, BACKWARD, o->p);
    }
}

/* pp micro-batches pass the first chunk, the same ones the second, and so on; backwards from the last chunk. */
static void interleaved(struct turns *o)
{
    const int pp = o->m->pp, chunks = o->m->chunks, n = chunks * o->micros, round = MIN(pp, o->micros);
    const int ahead = MIN(2 * (pp - 1 - o->p) + (chunks - 1) * pp, n);
    for (int i = -ahead; i < n; i++) {
        if (i + ahead < n)
            take(o, FORWARD, (i + ahead) / round % chunks * pp + o->p);
        if (i >= 0)
            take(o, BACKWARD, (chunks - 1 - i / round % chunks) * pp + o->p);
    }
}

/* k times as many forwards first as in 1f1b; and weights' gradients wait until as many are held back as the stages
 * before have forwards more, or no forward is left.  So every device keeps k*(pp-1) + 1 tapes. */
static void zero_bubble(struct turns *o, int k)
{
    const int ahead = MIN(k * (o->m->pp - 1 - o->p), o->micros), held = k * o->p;
    for (int i = -ahead; i < o->micros; i++) {
        if (i + ahead < o->micros)
            take(o, FORWARD, o->p);
        if (i >= 0)
            take(o, INPUT_GRADIENT, o->p);
        if (i >= 0 && (i >= held || i + ahead >= o->micros))
            take(o, WEIGHT_GRADIENT, o->p);
    }
    while (o->done[o->p][WEIGHT_GRADIENT] < o->micros)
        take(o, WEIGHT_GRADIENT, o->p);
}

static void zb_h1(struct turns *o) { zero_bubble(o, 1); }
static void zb_h2(struct turns *o) { zero_bubble(o, 2); }

/* The stage whose input's gradient came first of those that want the gradients of their weights. */
static void take_oldest_weights(struct turns *o)
{
    int owed[2] = {o->done[o->p][WEIGHT_GRADIENT], o->done[2 * o->m->pp - 1 - o->p][WEIGHT_GRADIENT]};
    for (int i = 0; i < o->n; i++) {
        const struct turn *t = &o->turn[i];
        if ((t->computation == INPUT_GRADIENT || t->computation == BACKWARD) && t->micro >= owed[t->stage != o->p]) {
            take(o, WEIGHT_GRADIENT, t->stage);
            return;
        }
    }
}

/* The eight parts of DeepSeek's schedule; x is the device's stage on the way down the V, y that on the way up. */
static void dualpipe_v(struct turns *o)
{
    const int behind = o->m->pp - 1 - o->p, before = o->p + 1, x = o->p, y = 2 * o->m->pp - 1 - o->p;
    for (int i = 0; i < 2 * behind; i++)
        take(o, FORWARD, x);
    for (int i = 0; i < before; i++)
        take(o, FORWARD, x), take(o, FORWARD, y);
    for (int i = 0; i < behind; i++)
        take(o, INPUT_GRADIENT, y), take_oldest_weights(o), take(o, FORWARD, y);
    for (int i = 0; i < o->micros - 2 * o->m->pp + before; i++)
        take(o, FORWARD, x), take(o, BACKWARD, y), take(o, FORWARD, y), take(o, BACKWARD, x);
    for (int i = 0; i < behind; i++)
        take(o, BACKWARD, y), take(o, FORWARD, y), take(o, BACKWARD, x);
    for (int i = 0; i < 2 * before; i++) /* y and x in turn, the second half without the weights */
        take(o, i < before ? BACKWARD : INPUT_GRADIENT, i % 2 ? x : y);
    for (int i = 0; i < behind; i++)
        take_oldest_weights(o), take(o, INPUT_GRADIENT, x);
    for (int i = 0; i < before; i++)
        take_oldest_weights(o);
}

const char *const pipeline_name[PIPELINES + 1] = {"1f1b", "gpipe", "interleaved", "zbh1", "zbh2", "dualpipev"};
const struct order pipeline_orders[PIPELINES] = {[PIPELINE_1F1B] = {one_forward_one_backward, 1, false},
                                                 [PIPELINE_GPIPE] = {gpipe, 1, false},
                                                 [PIPELINE_INTERLEAVED] = {interleaved, 2, false},
                                                 [PIPELINE_ZBH1] = {zb_h1, 1, false},
                                                 [PIPELINE_ZBH2] = {zb_h2, 1, false},
                                                 [PIPELINE_DUALPIPEV] = {dualpipe_v, 2, true}};

struct turn *pipeline_order(enum pipeline kind, const struct mesh *m, int p, int micros, int *n)
{
    struct turns o = {.m = m, .p = p, .micros = micros};
    o.turn = allocate((size_t)(3 * m->chunks * micros), sizeof *o.turn);
    o.done = allocate((size_t)n_stages(m), sizeof *o.done);
    (m->chunks < pipeline_orders[kind].chunks ? one_forward_one_backward : pipeline_orders[kind].take_turns)(&o);
    for (int a = 0; a < COMPUTATIONS; a++) {
        int taken = 0;
        for (int stage = 0; stage < n_stages(m); stage++)
            taken += o.done[stage][a];
        CHECK(a == BACKWARD || taken == m->chunks * micros, "order %s leaves out turns of device %d",
              pipeline_name[kind], p);
    }
    free(o.done);
    *n = o.n;
    return o.turn;
}

/* ---- one list -------------------------------------------------------------------------------------------------- */

/* Has what this turn needs been done?  `done`: as in struct turns.  The embedding's gradient wants that of a tied head,
 * so stage 0 comes behind the last one. */
static bool is_ready(const struct turn *t, int last, int (*const done)[COMPUTATIONS])
{
    if (t->computation == FORWARD)
        return t->stage == 0 || done[t->stage - 1][FORWARD] > t->micro;
    if (t->computation == WEIGHT_GRADIENT)
        return done[t->stage ? t->stage : last][t->stage || last == 0 ? INPUT_GRADIENT : WEIGHT_GRADIENT] > t->micro;
    return t->stage == last ? done[last][FORWARD] > t->micro : done[t->stage + 1][INPUT_GRADIENT] > t->micro;
}

/* In rounds: each device takes its next turn if what that needs was done in an earlier round. */
struct turn *merge_orders(enum pipeline kind, const struct mesh *m, int micros, size_t *n)
{
    size_t most = 3 * (size_t)(n_stages(m) * micros), total = 0;
    int(*done)[COMPUTATIONS] = allocate((size_t)n_stages(m), sizeof *done);
    struct turn **order = allocate((size_t)m->pp, sizeof *order), *all = allocate(most, sizeof *all);
    int *next = allocate((size_t)m->pp, sizeof *next), *each = allocate((size_t)m->pp, sizeof *each);
    for (int p = 0; p < m->pp; p++) {
        order[p] = pipeline_order(kind, m, p, micros, &each[p]);
        total += (size_t)each[p];
    }
    for (*n = 0; *n < total;) {
        size_t first = *n;
        for (int p = 0; p < m->pp; p++)
            if (next[p] < each[p] && is_ready(&order[p][next[p]], n_stages(m) - 1, done))
                all[(*n)++] = order[p][next[p]++];
        CHECK(*n > first, "the orders of a pipeline wait for one another after %zu of %zu turns", *n, total);
        for (size_t i = first; i < *n; i++)
            note_done(done, &all[i]);
    }
    for (int p = 0; p < m->pp; p++)
        free(order[p]);
    free(order), free(next), free(each), free(done);
    return all;
}

/* ---- tasks of a stage ------------------------------------------------------------------------------------------ */

static struct tensor *receive(struct build *b, const char *name, struct tensor *from, enum purpose purpose)
{
    struct tensor *x = activation(b, name, from->rank, from->shape);
    x->exclusive = EXCLUSIVE_ALWAYS; /* else it waits for whatever had the bytes, and stages for it */
    add_move(b->step, name, x, from, purpose);
    return x;
}

void on_tape(struct build *b, struct tape *tape, enum role role)
{
    b->tape = tape;
    on_rank(b, tape->rank, tape->micro, role);
    if (tape->group)
        b->replica = b->replica->group;
}

void forward_stage(struct build *b, struct tape *tape, const struct tape *before, int k, int stage, int micro,
                   int group, const struct batch *batch)
{
    *tape = (struct tape){.rank = rank_at(b->model->mesh, k, stage) + b->tp_rank, .micro = micro, .group = group};
    on_tape(b, tape, ROLE_SEND);
    if (before)
        tape->in = receive(b, "send.x", before->out, FOR_ACTIVATIONS);
    b->step->tags.role = ROLE_FORWARD;
    tape->out = gpt_stage(b, stage, batch, tape->in);
}

void send_gradient(struct build *b, struct tape *tape, const struct tape *before)
{
    on_rank(b, before->rank, tape->micro, ROLE_SEND);
    set_gradient(b, before->out, receive(b, "send.dx", gradient(b, tape->in), FOR_GRADIENTS));
}
