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
 * Everything of a step follows from its number, so nothing is kept between steps but the model.  The list is cyclic and
 * steps overlap: the next batch is prepared on the host, and brought up, while the device computes this one.  So its
 * tasks have a host lane of their own, and an upload lane that no move between devices uses; and the control block,
 * which the update of the step before still reads, comes behind all batches.
 */
#include "train.h"

/* ---- the lists ------------------------------------------------------------------------------------------------- */

/* What is kept from a forward to its backward, of each data-parallel rank k and rank. */
struct work {
    struct trainer *t;
    struct build *b;
    struct feed *feeds; /* [micro * dp + k] */
    struct tape *tapes; /* [((micro * stages + stage) * dp + k) * tp + tp_rank] */
};

static struct tape *tape_at(const struct work *w, int stage, int micro, int k, int tp_rank)
{
    const struct mesh *m = &w->t->mesh;
    return stage < 0 ? NULL : &w->tapes[((micro * n_stages(m) + stage) * m->dp + k) * m->tp + tp_rank];
}

/* Which group of sequences, one after another, a micro-batch is of. */
static int group_of(const struct trainer *t, int micro) { return micro * (int)t->settings->grad_groups / t->micros; }

/* All ranks of a group have the losses; one of them sums them up. */
static void add_loss(struct work *w, struct tensor *logits, int micro, int k, int tp_rank)
{
    struct trainer *t = w->t;
    if (k == 0 && micro == 0 && tp_rank == 0)
        t->keep_logits = logits;
    cross_entropy(w->b, logits, &w->feeds[micro * t->mesh.dp + k].last[tp_rank], tp_rank ? NULL : t->rank_total[k],
                  tokens_per_step(t));
}

/* The ranks' forwards, rank k's from position begin[k] to begin[k + 1] of the list, become one, layer by layer: what
 * all ranks need for a layer can be sent when the first of them comes to it. */
static void put_abreast(struct step *s, size_t *begin, int ranks)
{
    size_t at = begin[0], end = s->n, n = end - at;
    struct task **built = n ? memcpy(allocate(n, sizeof *built), s->task + at, n * sizeof *built) : NULL;
    size_t *next = memcpy(allocate((size_t)ranks, sizeof *next), begin, (size_t)ranks * sizeof *next);
    while (at < end)
        for (int k = 0; k < ranks; k++) {
            int layer = next[k] < begin[k + 1] ? built[next[k] - begin[0]]->layer : 0;
            for (; next[k] < begin[k + 1] && built[next[k] - begin[0]]->layer == layer; next[k]++, at++) {
                s->task[at] = built[next[k] - begin[0]];
                s->task[at]->index = at;
            }
        }
    free(built), free(next), free(begin);
}

static void add_forward(struct work *w, int stage, int micro, int k)
{
    struct trainer *t = w->t;
    struct feed *f = &w->feeds[micro * t->mesh.dp + k];
    if (stage == 0) {
        *f = (struct feed){.trainer = t, .rank = k, .micro = micro};
        add_batch(t, t->train, f, prepare_batch, t->micro_batch * t->seq);
    }
    for (int j = first_tp_rank(w->b); j >= 0; j = next_tp_rank(w->b)) {
        struct tape *tape = tape_at(w, stage, micro, k, j);
        forward_stage(w->b, tape, tape_at(w, stage - 1, micro, k, j), k, stage, micro, group_of(t, micro),
                      &f->first[j]);
        if (stage == n_stages(&t->mesh) - 1)
            add_loss(w, gpt_head(w->b, tape->out), micro, k, j);
    }
}

static void end_unit(const struct work *w, int unit, int micro)
{
    int group = group_of(w->t, micro);
    if (micro == w->t->micros - 1 || group_of(w->t, micro + 1) != group)
        end_group(w->b, unit, group > 0);
    if (micro == w->t->micros - 1)
        send_unit(w->b, unit);
}

/* Gradients are sent behind a unit's last backward, and summed one unit later in the list, by then all have arrived; at
 * once where there are no others. */
static void add_backward(struct work *w, int stage, int micro)
{
    const struct mesh *m = &w->t->mesh;
    int first = first_unit(w->t->model, stage), end = first_unit(w->t->model, stage + 1);
    bool last = micro == w->t->micros - 1, alone = m->dp == 1;
    for (int u = end - 1; u >= first; u--) {
        for (int k = 0; k < m->dp; k++)
            for (int j = first_tp_rank(w->b); j >= 0; j = next_tp_rank(w->b))
                backward_unit(w->b, tape_at(w, stage, micro, k, j), u);
        end_unit(w, u, micro);
        if (last && (alone || u < end - 1))
            reduce_unit(w->b, alone ? u : u + 1);
    }
    for (int i = 0; i < m->dp * m->tp && stage > 0; i++)
        send_gradient(w->b, tape_at(w, stage, micro, 0, i), tape_at(w, stage - 1, micro, 0, i));
    if (last && !alone)
        reduce_unit(w->b, first);
    for (int i = 0; i < m->dp * m->tp; i++)
        free(tape_at(w, stage, micro, 0, i)->ops);
}

/* Of all data-parallel ranks. */
static void add_forwards(struct work *w, int stage, int micro)
{
    int dp = w->t->mesh.dp;
    size_t *begin = allocate((size_t)dp + 1, sizeof *begin);
    for (int k = 0; k < dp; k++) {
        begin[k] = w->t->train->n;
        add_forward(w, stage, micro, k);
    }
    begin[dp] = w->t->train->n;
    put_abreast(w->t->train, begin, dp);
}

void build_train(struct trainer *t, enum gemm_engine engine)
{
    size_t n, each = (size_t)(t->micros * t->mesh.dp);
    struct turn *order = merge_orders(t->settings->pipeline, &t->mesh, t->micros, &n);
    t->train = new_step(t->pool, "train");
    struct build b = new_build(t->train, t->model, engine, t->micro_batch, t->seq);
    b.backward_wanted = true;
    t->feeds = allocate(each, sizeof *t->feeds);
    struct work w = {t, &b, t->feeds, allocate(each * (size_t)(n_stages(&t->mesh) * t->mesh.tp), sizeof *w.tapes)};
    t->model->norm_rank = t->settings->clip == 0 ? loss_rank(t, 0) : 0; /* where it is waited for */
    struct tensor *losses = add_losses(t);
    for (size_t i = 0; i < n; i++) {
        if (order[i].backward)
            add_backward(&w, order[i].stage, order[i].micro);
        else
            add_forwards(&w, order[i].stage, order[i].micro);
        bool last = order[i].stage == n_stages(&t->mesh) - 1 && order[i].micro == t->micros - 1;
        if (last && !order[i].backward && t->settings->clip == 0) {
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

/* The losses of one iteration on data-parallel rank k, on the host. */
static struct tensor *add_evaluation(struct trainer *t, struct build *b, int k)
{
    int n = t->micro_batch * t->seq;
    struct feed *f = &t->eval_feeds[k];
    struct tape *tape = allocate((size_t)t->mesh.tp, sizeof *tape);
    struct tensor *losses = NULL;
    *f = (struct feed){.trainer = t, .rank = k};
    add_batch(t, t->eval, f, prepare_evaluation, n);
    add_stages(b, f, k, tape);
    for (int j = first_tp_rank(b); j >= 0; j = next_tp_rank(b)) {
        on_tape(b, &tape[j], ROLE_FORWARD);
        losses = cross_entropy(b, gpt_head(b, tape[j].out), &f->last[j], NULL, 1);
    }
    free(tape);
    t->eval->tags = (struct tags){-1, -1, ROLE_REPORT};
    struct tensor *host = new_tensor(t->pool, t->machine->host, MEM_WORK, "eval.losses", FLOAT32, SHAPE(n));
    add_copy(t->eval, losses->device->lane[LANE_DOWNLOAD], "eval.download", host, losses);
    return host;
}

void build_eval(struct trainer *t, enum gemm_engine engine)
{
    t->eval = new_step(t->pool, "eval");
    struct build b = new_build(t->eval, t->model, engine, t->micro_batch, t->seq);
    int dp = t->mesh.dp;
    struct tensor **host = allocate((size_t)dp, sizeof *host);
    size_t *begin = allocate((size_t)dp + 1, sizeof *begin);
    t->eval_feeds = allocate((size_t)dp, sizeof *t->eval_feeds);
    for (int k = 0; k < dp; k++) {
        begin[k] = t->eval->n;
        host[k] = add_evaluation(t, &b, k);
    }
    begin[dp] = t->eval->n;
    put_abreast(t->eval, begin, dp);
    struct task *task = add_host(t->eval, t->machine->host->lane[LANE_REPORT], "eval.report", report_evaluation, t);
    for (int k = 0; k < dp; k++)
        add_access(task, host[k], ACCESS_READ);
    end_build(&b);
    free(host);
}

/* The last token's hidden row alone goes through the head, and a rank's logits to their place on the host. */
static void add_sample_head(struct trainer *t, struct build *b, struct tensor *hidden, const struct batch *batch)
{
    int channels = t->config.channels;
    struct tensor *row = activation(b, "last", SHAPE(1, channels));
    set_traffic(LAUNCH(b, "last", "elementwise.cl", "pick_row", groups(b, 1), OUT(row), IN(hidden), IN(batch->targets),
                       INT(channels)),
                2.0 * channels);
    struct tensor *logits = gpt_head(b, row);
    size_t first = (size_t)b->replica->other[HEAD].first;
    struct tensor *host =
        new_slice(t->pool, t->sample_logits, b->tp_rank, (struct shard){first, first + count_elements(logits)});
    t->sample->tags = (struct tags){-1, -1, ROLE_REPORT};
    add_copy(t->sample, b->device->lane[LANE_DOWNLOAD], "logits.download", host, logits);
}

/* One sequence. */
void build_sample(struct trainer *t, enum gemm_engine engine)
{
    t->sample = new_step(t->pool, "sample");
    struct build b = new_build(t->sample, t->model, engine, 1, t->seq);
    struct tape *tape = allocate((size_t)t->mesh.tp, sizeof *tape);
    t->sample_feed = allocate(1, sizeof *t->sample_feed);
    *t->sample_feed = (struct feed){.trainer = t};
    t->sample_tokens = allocate((size_t)t->seq, sizeof *t->sample_tokens);
    t->sample_logits = new_tensor(t->pool, t->machine->host, MEM_WORK, "logits.host", FLOAT32, SHAPE(t->config.vocab));
    t->sample_logits->persistent = true;
    add_batch(t, t->sample, t->sample_feed, prepare_sample, t->seq);
    add_stages(&b, t->sample_feed, 0, tape);
    for (int j = first_tp_rank(&b); j >= 0; j = next_tp_rank(&b)) {
        on_tape(&b, &tape[j], ROLE_FORWARD);
        add_sample_head(t, &b, tape[j].out, &t->sample_feed->last[j]);
    }
    end_build(&b);
    free(tape);
}
