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
 * and the wait at both ends is shorter (Narayanan et al. 2021).  The orders differ in how many forwards come first.
 *
 * Backward takes the micro-batches of a stage in ascending order in all of them, so that gradients are summed in the
 * same order, and to the same bits, as on one device.
 */
#include "model.h"

/* ---- orders ---------------------------------------------------------------------------------------------------- */

/* So many forwards come first, then a backward and a forward in turn, then the other backwards.  With chunks: pp
 * micro-batches pass the first chunk, the same ones the second, and so on; backwards from the last chunk. */
struct turn *pipeline_order(enum pipeline kind, const struct mesh *m, int p, int micros)
{
    int n = m->chunks * micros, done[2] = {0} /* forwards, backwards */, stages_behind = m->pp - 1 - p;
    int warmup = kind == PIPELINE_GPIPE  ? n
                 : kind == PIPELINE_1F1B ? MIN(stages_behind, micros)
                                         : MIN(2 * stages_behind + (m->chunks - 1) * m->pp, n);
    int round = MIN(m->pp, micros), per_round = round * m->chunks;
    struct turn *order = allocate(2 * (size_t)n, sizeof *order);
    for (int i = 0; i < 2 * n; i++) {
        bool backward = done[0] == n || (done[0] > warmup && done[0] > done[1] + warmup);
        int nth = done[backward]++, chunk = nth % per_round / round;
        order[i] = (struct turn){.backward = backward,
                                 .stage = (backward ? m->chunks - 1 - chunk : chunk) * m->pp + p,
                                 .micro = nth / per_round * round + nth % round};
    }
    return order;
}

/* ---- one list -------------------------------------------------------------------------------------------------- */

/* In rounds: each device does its next action if what that needs was done in an earlier round. */
struct turn *merge_orders(enum pipeline kind, const struct mesh *m, int micros, size_t *n)
{
    size_t each = 2 * (size_t)(m->chunks * micros), total = each * (size_t)m->pp;
    int last = n_stages(m) - 1, *done[2]; /* by stage: how many micro-batches have passed forward, backward */
    struct turn **order = allocate((size_t)m->pp, sizeof *order), *all = allocate(total, sizeof *all);
    size_t *next = allocate((size_t)m->pp, sizeof *next);
    for (int backward = 0; backward < 2; backward++)
        done[backward] = allocate((size_t)n_stages(m), sizeof(int));
    for (int p = 0; p < m->pp; p++)
        order[p] = pipeline_order(kind, m, p, micros);
    for (*n = 0; *n < total;) {
        size_t first = *n;
        for (int p = 0; p < m->pp; p++) {
            const struct turn *a = &order[p][next[p]];
            if (next[p] == each)
                continue;
            int passed = micros;
            if (a->backward)
                passed = a->stage == last ? done[0][last] : done[1][a->stage + 1];
            else if (a->stage > 0)
                passed = done[0][a->stage - 1];
            if (passed > a->micro) {
                all[(*n)++] = *a;
                next[p]++;
            }
        }
        CHECK(*n > first, "the orders of a pipeline wait for one another after %zu of %zu actions", *n, total);
        for (size_t i = first; i < *n; i++)
            done[all[i].backward][all[i].stage]++;
    }
    for (int p = 0; p < m->pp; p++)
        free(order[p]);
    free(order), free(next), free(done[0]), free(done[1]);
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
