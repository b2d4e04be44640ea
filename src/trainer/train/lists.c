/* lists.c - the lists of tasks: train, eval, sample.
 *
 * The train list, per step:
 *
 *     for each micro-batch, each rank, in the order of the pipeline:
 *         batch.prepare, batch.upload      the windows of tokens             host, each rank
 *         forward, backward
 *     control.prepare, control.upload      lr, Adam's corrections ...        host, each rank
 *     sums over ranks, norm, AdamW, parameters to all ranks                  see optimizer.c; without clipping the
 *                                                                            last backward has them, unit by unit
 *     report.* , report                    loss and norm                     each rank, host
 *
 * All that a step needs follows from its number, so only the model is kept between steps.  The list is cyclic, and
 * steps overlap: while the device computes one batch, the host prepares the next one and uploads it.  Therefore the
 * tasks of batches have a host lane of their own, and an upload lane that no move between devices uses.  The control
 * block comes after all batches.  Its upload waits until the update of the step before has read the old block: if it
 * came before the batches, it would hold them up.
 */
#include "train.h"

/* ---- the lists ------------------------------------------------------------------------------------------------- */

struct work { /* building the train list */
    struct trainer *t;
    struct build *b;
    /* What each forward keeps for its backward, by micro-batch, stage, data-parallel rank k and tensor-parallel rank:
     * [((micro * stages + stage) * dp + k) * tp + tp_rank]. */
    struct tape *tapes;
};

/* NULL: there is no stage before the first one. */
static struct tape *tape_at(const struct work *w, int stage, int micro, int k, int tp_rank)
{
    const struct mesh *m = &w->t->mesh;
    if (stage < 0)
        return NULL;
    int i = (micro * n_stages(m) + stage) * m->dp + k;
    return &w->tapes[i * m->tp + tp_rank];
}

/* The group of sequences (--grad-groups) to which a micro-batch belongs. */
static int group_of(const struct trainer *t, int micro) { return micro * t->settings->grad_groups / t->micros; }

/* Rank k's forward was built at positions begin[k] to begin[k + 1] of the list.  Now all ranks' forwards come side by
 * side, layer by layer: what all ranks need for a layer can be sent when the first of them comes to it. */
static void put_abreast(struct step *s, const size_t *begin, int ranks)
{
    const size_t first = begin[0], end = begin[ranks];
    struct task **built = copy_bytes(s->task + first, (end - first) * sizeof *built);
    size_t *next = copy_bytes(begin, (size_t)ranks * sizeof *next); /* by rank: the first task not placed yet */
    size_t at = first;
    while (at < end)
        for (int k = 0; k < ranks; k++) {
            if (next[k] == begin[k + 1])
                continue;
            int layer = built[next[k] - first]->layer;
            while (next[k] < begin[k + 1] && built[next[k] - first]->layer == layer) {
                struct task *t = built[next[k] - first];
                t->index = at;
                s->task[at] = t;
                at++;
                next[k]++;
            }
        }
    free(built);
    free(next);
}

/* Logits and losses of data-parallel rank k.  All tensor-parallel ranks have the losses; the first sums them up. */
static void add_head(struct work *w, struct tensor *out, int micro, int k, int tp_rank)
{
    struct trainer *t = w->t;
    const struct feed *f = &t->feeds[micro * t->mesh.dp + k];
    struct tensor *logits = gpt_head(w->b, out);
    if (k == 0 && micro == 0 && tp_rank == 0)
        t->keep_logits = logits;
    struct tensor *total = tp_rank == 0 ? t->rank_total[k] : NULL;
    cross_entropy(w->b, logits, &f->last[tp_rank], total, tokens_per_step(t));
}

/* The forward of one stage and micro-batch on all data-parallel ranks. */
static void add_forwards(struct work *w, int stage, int micro)
{
    struct trainer *t = w->t;
    const int dp = t->mesh.dp;
    size_t *begin = allocate((size_t)dp + 1, sizeof *begin);
    for (int k = 0; k < dp; k++) {
        struct feed *f = &t->feeds[micro * dp + k];
        begin[k] = t->train->n;
        if (stage == 0)
            add_batch(t, t->train, f, k, micro, prepare_batch, t->micro_batch * t->seq);
        for (int j = first_tp_rank(w->b); j >= 0; j = next_tp_rank(w->b)) {
            struct tape *tape = tape_at(w, stage, micro, k, j);
            const struct tape *before = tape_at(w, stage - 1, micro, k, j);
            forward_stage(w->b, tape, before, k, stage, micro, group_of(t, micro), &f->first[j]);
            if (stage == n_stages(&t->mesh) - 1)
                add_head(w, tape->out, micro, k, j);
        }
    }
    begin[dp] = t->train->n;
    put_abreast(t->train, begin, dp);
    free(begin);
}

/* The backward of a unit on all ranks. */
static void add_unit_backward(struct work *w, const struct turn *turn, int unit)
{
    for (int k = 0; k < w->t->mesh.dp; k++)
        for (int j = first_tp_rank(w->b); j >= 0; j = next_tp_rank(w->b)) {
            on_tape(w->b, tape_at(w, turn->stage, turn->micro, k, j), ROLE_BACKWARD);
            backward(w->b, unit, turn->computation);
        }
}

/* Gradients of the stage's inputs go to the stage before. */
static void send_gradients(struct work *w, int stage, int micro)
{
    const struct mesh *m = &w->t->mesh;
    for (int i = 0; i < m->dp * m->tp; i++)
        send_gradient(w->b, tape_at(w, stage, micro, 0, i), tape_at(w, stage - 1, micro, 0, i));
}

static void free_tapes(struct work *w, int stage, int micro)
{
    const struct mesh *m = &w->t->mesh;
    for (int i = 0; i < m->dp * m->tp; i++)
        free(tape_at(w, stage, micro, 0, i)->ops);
}

/* A unit's gradients are sent after its last backward.  They are summed one unit later in the list, when all have
 * arrived; or at once, where no other rank has any. */
static void add_backwards(struct work *w, const struct turn *turn)
{
    const struct trainer *t = w->t;
    const int stage = turn->stage, micro = turn->micro;
    const int first = first_unit(t->model, stage), end = first_unit(t->model, stage + 1);
    const int group = group_of(t, micro);
    const bool alone = t->mesh.dp == 1;
    const bool weights = turn->computation != INPUT_GRADIENT;
    const bool ends_step = weights && micro == t->micros - 1;
    const bool ends_group = ends_step || (weights && group_of(t, micro + 1) != group);
    for (int u = end - 1; u >= first; u--) {
        add_unit_backward(w, turn, u);
        if (ends_group)
            end_group(w->b, u, group > 0);
        if (!ends_step)
            continue;
        send_unit(w->b, u);
        if (alone)
            reduce_unit(w->b, u);
        else if (u < end - 1)
            reduce_unit(w->b, u + 1);
    }
    if (stage > 0 && turn->computation != WEIGHT_GRADIENT)
        send_gradients(w, stage, micro);
    if (ends_step && !alone)
        reduce_unit(w->b, first);
    if (weights)
        free_tapes(w, stage, micro);
}

/* Is it the forward with which the step's losses are complete? */
static bool is_last_forward(const struct trainer *t, const struct turn *turn)
{
    return turn->computation == FORWARD && turn->stage == n_stages(&t->mesh) - 1 && turn->micro == t->micros - 1;
}

void build_train(struct trainer *t)
{
    const bool clips = t->settings->clip > 0;
    size_t n;
    struct turn *order = merge_orders(t->settings->pipeline, &t->mesh, t->micros, &n);
    t->train = new_step(t->pool, "train");
    struct build b = new_build(t->train, t->model, t->settings->kernels, t->micro_batch, t->seq);
    b.backward_wanted = true;
    size_t n_tapes = (size_t)(t->micros * t->mesh.dp) * (size_t)(n_stages(&t->mesh) * t->mesh.tp);
    struct work w = {.t = t, .b = &b, .tapes = allocate(n_tapes, sizeof *w.tapes)};
    t->model->norm_rank = clips ? 0 : loss_rank(t, 0); /* without clipping only the losses are waited for */
    struct tensor *losses = add_losses(t);
    for (size_t i = 0; i < n; i++) {
        if (order[i].computation == FORWARD)
            add_forwards(&w, order[i].stage, order[i].micro);
        else
            add_backwards(&w, &order[i]);
        if (is_last_forward(t, &order[i]) && !clips) {
            add_control(t);
            release_updates(&b, losses, t->rank_total);
        }
    }
    if (!b.released)
        add_control(t);
    add_update(&b, losses, t->rank_total);
    add_report(t);
    end_build(&b);
    free(w.tapes);
    free(order);
}

/* All stages' forward on data-parallel rank k, without a backward; up to the last LayerNorm.  tape[j] gets what comes
 * out on tensor-parallel rank j. */
static void add_stages(struct build *b, const struct feed *f, int k, struct tape *tape)
{
    for (int stage = 0; stage < n_stages(&f->trainer->mesh); stage++)
        for (int j = first_tp_rank(b); j >= 0; j = next_tp_rank(b)) {
            struct tape before = tape[j];
            forward_stage(b, &tape[j], stage ? &before : NULL, k, stage, 0, 0, &f->first[j]);
        }
}

/* One iteration takes a micro-batch on each data-parallel rank; the losses come to the host. */
void build_eval(struct trainer *t)
{
    t->eval = new_step(t->pool, "eval");
    struct build b = new_build(t->eval, t->model, t->settings->kernels, t->micro_batch, t->seq);
    const int dp = t->mesh.dp;
    const int n = t->micro_batch * t->seq;
    struct tensor **host = allocate((size_t)dp, sizeof *host);
    struct tape *tape = allocate((size_t)(dp * t->mesh.tp), sizeof *tape);
    size_t *begin = allocate((size_t)dp + 1, sizeof *begin);
    for (int k = 0; k < dp; k++) {
        struct feed *f = &t->feeds[t->micros * dp + k];
        struct tape *outs = &tape[k * t->mesh.tp];
        struct tensor *losses = NULL;
        begin[k] = t->eval->n;
        add_batch(t, t->eval, f, k, 0, prepare_evaluation, n);
        add_stages(&b, f, k, outs);
        for (int j = first_tp_rank(&b); j >= 0; j = next_tp_rank(&b)) {
            on_tape(&b, &outs[j], ROLE_FORWARD);
            losses = cross_entropy(&b, gpt_head(&b, outs[j].out), &f->last[j], NULL, 1);
        }
        t->eval->tags = (struct tags){-1, -1, ROLE_REPORT};
        host[k] = new_tensor(t->pool, t->machine->host, MEM_WORK, "eval.losses", FLOAT32, SHAPE(n));
        add_copy(t->eval, losses->device->lane[LANE_DOWNLOAD], "eval.download", host[k], losses);
    }
    begin[dp] = t->eval->n;
    put_abreast(t->eval, begin, dp);
    struct task *task = add_host(t->eval, t->machine->host->lane[LANE_REPORT], "eval.report", report_evaluation, t);
    for (int k = 0; k < dp; k++)
        add_access(task, host[k], ACCESS_READ);
    end_build(&b);
    free(host);
    free(tape);
    free(begin);
}

/* A sample is one sequence.  Only the last token's hidden row goes through the head, and each rank's logits go to their
 * place on the host. */
void build_sample(struct trainer *t)
{
    t->sample = new_step(t->pool, "sample");
    struct build b = new_build(t->sample, t->model, t->settings->kernels, 1, t->seq);
    struct tape *tape = allocate((size_t)t->mesh.tp, sizeof *tape);
    struct feed *f = &t->feeds[(t->micros + 1) * t->mesh.dp];
    const int channels = t->config.channels;
    t->sample_tokens = allocate((size_t)t->seq, sizeof *t->sample_tokens);
    t->sample_logits = new_tensor(t->pool, t->machine->host, MEM_WORK, "logits.host", FLOAT32, SHAPE(t->config.vocab));
    t->sample_logits->persistent = true;
    add_batch(t, t->sample, f, 0, 0, prepare_sample, t->seq);
    add_stages(&b, f, 0, tape);
    for (int j = first_tp_rank(&b); j >= 0; j = next_tp_rank(&b)) {
        on_tape(&b, &tape[j], ROLE_FORWARD);
        struct tensor *row = activation(&b, "last", SHAPE(1, channels));
        struct task *pick = LAUNCH(&b, "last", "elementwise.cl", "pick_row", groups(&b, 1), OUT(row), IN(tape[j].out),
                                   IN(f->last[j].targets), INT(channels));
        set_traffic(pick, 2.0 * channels);
        struct tensor *logits = gpt_head(&b, row);
        size_t first = (size_t)b.replica->other[HEAD].first;
        size_t words = (size_t)words_of(&b);
        struct tensor *host = new_slice(t->pool, t->sample_logits, b.tp_rank, (struct shard){first, first + words});
        struct tensor *view = new_view(t->pool, logits, "logits", 0, SHAPE((int64_t)words));
        t->sample->tags = (struct tags){-1, -1, ROLE_REPORT};
        add_copy(t->sample, b.device->lane[LANE_DOWNLOAD], "logits.download", host, view);
    }
    end_build(&b);
    free(tape);
}
