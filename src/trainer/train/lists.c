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
 * block stands behind all batches.  Its upload waits until the update of the step before has read the old block: in
 * front of them it would hold them up.
 */
#include "train.h"

/* ---- the lists ------------------------------------------------------------------------------------------------- */

/* What is kept from a forward to its backward, of each data-parallel rank k and rank. */
struct work {
    struct trainer *t;
    struct build *b;
    struct tape *tapes; /* [((micro * stages + stage) * dp + k) * tp + tp_rank] */
};

static struct tape *tape_at(const struct work *w, int stage, int micro, int k, int tp_rank)
{
    const struct mesh *m = &w->t->mesh;
    return stage < 0 ? NULL : &w->tapes[((micro * n_stages(m) + stage) * m->dp + k) * m->tp + tp_rank];
}

/* Which group of sequences, one after another, a micro-batch is of. */
static int group_of(const struct trainer *t, int micro) { return micro * t->settings->grad_groups / t->micros; }

/* The ranks' forwards, rank k's from position begin[k] to begin[k + 1] of the list, become one, layer by layer: what
 * all ranks need for a layer can be sent when the first of them comes to it. */
static void put_abreast(struct step *s, const size_t *begin, int ranks)
{
    size_t at = begin[0], end = begin[ranks];
    struct task **built = copy_bytes(s->task + at, (end - at) * sizeof *built);
    size_t *next = copy_bytes(begin, (size_t)ranks * sizeof *next);
    while (at < end)
        for (int k = 0; k < ranks; k++) {
            int layer = next[k] < begin[k + 1] ? built[next[k] - begin[0]]->layer : 0;
            for (; next[k] < begin[k + 1] && built[next[k] - begin[0]]->layer == layer; next[k]++, at++) {
                s->task[at] = built[next[k] - begin[0]];
                s->task[at]->index = at;
            }
        }
    free(built), free(next);
}

/* Of all data-parallel ranks.  All tensor-parallel ranks have the losses; the first of them sums them up. */
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
            forward_stage(w->b, tape, tape_at(w, stage - 1, micro, k, j), k, stage, micro, group_of(t, micro),
                          &f->first[j]);
            if (stage < n_stages(&t->mesh) - 1)
                continue;
            struct tensor *logits = gpt_head(w->b, tape->out);
            if (k == 0 && micro == 0 && j == 0)
                t->keep_logits = logits;
            cross_entropy(w->b, logits, &f->last[j], j ? NULL : t->rank_total[k], tokens_per_step(t));
        }
    }
    begin[dp] = t->train->n;
    put_abreast(t->train, begin, dp);
    free(begin);
}

/* Gradients are sent behind a unit's last backward, and summed one unit later in the list, by then all have arrived; at
 * once where there are no others. */
static void add_backwards(struct work *w, const struct turn *turn)
{
    const struct trainer *t = w->t;
    const struct mesh *m = &t->mesh;
    const int stage = turn->stage, micro = turn->micro, group = group_of(t, micro);
    const int first = first_unit(t->model, stage), end = first_unit(t->model, stage + 1);
    const bool weights = turn->computation != INPUT_GRADIENT, last = micro == t->micros - 1, alone = m->dp == 1;
    for (int u = end - 1; u >= first; u--) {
        for (int k = 0; k < m->dp; k++)
            for (int j = first_tp_rank(w->b); j >= 0; j = next_tp_rank(w->b)) {
                on_tape(w->b, tape_at(w, stage, micro, k, j), ROLE_BACKWARD);
                backward(w->b, u, turn->computation);
            }
        if (weights && (last || group_of(t, micro + 1) != group))
            end_group(w->b, u, group > 0);
        if (weights && last)
            send_unit(w->b, u);
        if (weights && last && (alone || u < end - 1))
            reduce_unit(w->b, alone ? u : u + 1);
    }
    for (int i = 0; i < m->dp * m->tp && stage > 0 && turn->computation != WEIGHT_GRADIENT; i++)
        send_gradient(w->b, tape_at(w, stage, micro, 0, i), tape_at(w, stage - 1, micro, 0, i));
    if (weights && last && !alone)
        reduce_unit(w->b, first);
    for (int i = 0; i < m->dp * m->tp && weights; i++)
        free(tape_at(w, stage, micro, 0, i)->ops);
}

void build_train(struct trainer *t)
{
    size_t n, each = (size_t)(t->micros * t->mesh.dp);
    struct turn *order = merge_orders(t->settings->pipeline, &t->mesh, t->micros, &n);
    t->train = new_step(t->pool, "train");
    struct build b = new_build(t->train, t->model, t->settings->kernels, t->micro_batch, t->seq);
    b.backward_wanted = true;
    struct work w = {t, &b, allocate(each * (size_t)(n_stages(&t->mesh) * t->mesh.tp), sizeof *w.tapes)};
    t->model->norm_rank = t->settings->clip == 0 ? loss_rank(t, 0) : 0; /* where it is waited for */
    struct tensor *losses = add_losses(t);
    for (size_t i = 0; i < n; i++) {
        if (order[i].computation == FORWARD)
            add_forwards(&w, order[i].stage, order[i].micro);
        else
            add_backwards(&w, &order[i]);
        bool last = order[i].stage == n_stages(&t->mesh) - 1 && order[i].micro == t->micros - 1;
        if (last && order[i].computation == FORWARD && t->settings->clip == 0) {
            add_control(t);
            release_updates(&b, losses, t->rank_total);
        }
    }
    if (!b.released)
        add_control(t);
    add_update(&b, losses, t->rank_total);
    add_report(t);
    end_build(&b);
    free(w.tapes), free(order);
}

/* All stages' forward on data-parallel rank k, without a backward; up to the last LayerNorm.  tape[tp] gets what comes
 * out. */
static void add_stages(struct build *b, const struct feed *f, int k, struct tape *tape)
{
    for (int stage = 0; stage < n_stages(&f->trainer->mesh); stage++)
        for (int j = first_tp_rank(b); j >= 0; j = next_tp_rank(b)) {
            struct tape before = tape[j];
            forward_stage(b, &tape[j], stage ? &before : NULL, k, stage, 0, 0, &f->first[j]);
        }
}

/* Each data-parallel rank's losses of one iteration come to the host. */
void build_eval(struct trainer *t)
{
    t->eval = new_step(t->pool, "eval");
    struct build b = new_build(t->eval, t->model, t->settings->kernels, t->micro_batch, t->seq);
    const int dp = t->mesh.dp, n = t->micro_batch * t->seq;
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
    free(host), free(tape), free(begin);
}

/* One sequence.  The last token's hidden row alone goes through the head, and each rank's logits to their place on the
 * host. */
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
        set_traffic(LAUNCH(&b, "last", "elementwise.cl", "pick_row", groups(&b, 1), OUT(row), IN(tape[j].out),
                           IN(f->last[j].targets), INT(channels)),
                    2.0 * channels);
        struct tensor *logits = gpt_head(&b, row);
        size_t first = (size_t)b.replica->other[HEAD].first, words = (size_t)words_of(&b);
        struct tensor *host = new_slice(t->pool, t->sample_logits, b.tp_rank, (struct shard){first, first + words});
        t->sample->tags = (struct tags){-1, -1, ROLE_REPORT};
        add_copy(t->sample, b.device->lane[LANE_DOWNLOAD], "logits.download", host,
                 new_view(t->pool, logits, "logits", 0, SHAPE((int64_t)words)));
    }
    end_build(&b);
    free(tape);
}
