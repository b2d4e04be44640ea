/* build_lists.c - builds the lists of tasks: train, eval, sample.
 *
 * The train list, per step:
 *
 *     for each micro-batch, each rank, in the order of the pipeline:
 *         batch.prepare, batch.upload      the windows of tokens             host, each rank
 *         forward, backward
 *     control.prepare, control.upload      lr, Adam's corrections ...        host, each rank
 *     sums over ranks, norm, AdamW, parameters to all ranks                  see optimizer.c; without clipping they
 *                                                                            come in the last backward, unit by unit
 *     report.* , report                    loss and norm                     each rank, host
 *
 * All that a step needs follows from its number, so only the model is kept between steps.  The list is cyclic, and
 * steps overlap: while the device computes one batch, the host prepares the next one and uploads it.  Therefore the
 * tasks of batches have a host lane of their own, and an upload lane that no move between devices uses.  The control
 * block comes after all batches.  Its upload waits until the update of the step before has read the old block: if it
 * came before the batches, it would hold them up.
 */
#include "train_parts.h"

struct train_build { /* the train list while it is built */
    struct trainer *trainer;
    struct builder *b;
    /* What each forward keeps for its backward, by micro-batch, stage, data-parallel rank and tensor-parallel rank:
     * [((micro * stages + stage) * dp + dp_rank) * tp + tp_rank]. */
    struct tape *tapes;
};

/* The tape of this stage, micro-batch and rank; NULL for stage -1, since no stage comes before the first one. */
static struct tape *tape_at(const struct train_build *train_build, int stage, int micro, int dp_rank, int tp_rank)
{
    const struct mesh *mesh = &train_build->trainer->mesh;
    if (stage < 0)
        return NULL;
    int i = (micro * n_stages(mesh) + stage) * mesh->dp + dp_rank;
    return &train_build->tapes[i * mesh->tp + tp_rank];
}

/* How many tapes a stage has of a micro-batch.  They are side by side, and tape k is of tensor-parallel rank
 * k % tp. */
static int count_tapes(const struct train_build *train_build)
{
    return train_build->trainer->mesh.dp * train_build->trainer->mesh.tp;
}

/* The gradient group (--grad-groups) to which a micro-batch belongs. */
static int grad_group_of(const struct trainer *trainer, int micro)
{
    return micro * trainer->settings->grad_groups / trainer->micros;
}

/* Appends to positions[0 .. n) those from `begin` on, before `end`, whose tasks are of the same layer as the task
 * at `begin`.  Returns the new n. */
static size_t append_layer(const struct list *list, size_t begin, size_t end, size_t *positions, size_t n)
{
    for (size_t i = begin; i < end && list->tasks[i]->layer == list->tasks[begin]->layer; i++)
        positions[n++] = i;
    return n;
}

/* Puts the forwards of all ranks side by side, layer by layer: what all ranks need for a layer can be sent when the
 * first of them begins it.  Rank k's forward is at the positions from begin[k] on, before begin[k + 1].
 *
 *     before   rank 0: layer 0, 1, 2             rank 1: layer 0, 1, 2
 *     after    layer 0: rank 0, 1     layer 1: rank 0, 1     layer 2: rank 0, 1 */
static void interleave_ranks(struct list *list, const size_t *begin, int ranks)
{
    const size_t first = begin[0], n = begin[ranks] - first;
    size_t *positions = allocate(n, sizeof *positions);
    size_t *next = copy_bytes(begin, (size_t)ranks * sizeof *next); /* by rank: its first that is not placed yet */
    size_t n_placed = 0;
    while (n_placed < n)
        for (int k = 0; k < ranks; k++) {
            size_t n_before = n_placed;
            n_placed = append_layer(list, next[k], begin[k + 1], positions, n_placed);
            next[k] += n_placed - n_before;
        }
    permute_tasks(list, first, positions, n);
    free(positions);
    free(next);
}

/* Adds the logits and losses of a data-parallel rank.  All its tensor-parallel ranks have the losses, and the first one
 * sums them up. */
static void add_head(struct train_build *train_build, struct tensor *out, int micro, int dp_rank, int tp_rank)
{
    struct trainer *trainer = train_build->trainer;
    const struct feed *feed = train_feed(trainer, micro, dp_rank);
    struct tensor *logits = gpt_head(train_build->b, out);
    if (dp_rank == 0 && micro == 0 && tp_rank == 0)
        trainer->kept_logits = logits;
    struct tensor *total = tp_rank == 0 ? trainer->rank_totals[dp_rank] : NULL;
    cross_entropy(train_build->b, logits, &feed->on_last_stage[tp_rank], total, tokens_per_step(trainer));
}

/* Adds the forward of one stage and micro-batch on all data-parallel ranks. */
static void add_forwards(struct train_build *train_build, int stage, int micro)
{
    struct trainer *trainer = train_build->trainer;
    const int dp = trainer->mesh.dp;
    size_t *begin = allocate((size_t)dp + 1, sizeof *begin);
    for (int dp_rank = 0; dp_rank < dp; dp_rank++) {
        struct feed *feed = train_feed(trainer, micro, dp_rank);
        begin[dp_rank] = trainer->train_list->n;
        if (stage == 0)
            add_batch(trainer->train_list, feed, prepare_batch);
        for (int tp_rank = 0; tp_rank < trainer->mesh.tp; tp_rank++) {
            begin_tp_rank(train_build->b, tp_rank);
            struct tape *tape = tape_at(train_build, stage, micro, dp_rank, tp_rank);
            const struct tape *before = tape_at(train_build, stage - 1, micro, dp_rank, tp_rank);
            *tape = new_tape(train_build->b, dp_rank, stage, micro, grad_group_of(trainer, micro));
            forward_stage(train_build->b, tape, stage, before, &feed->on_first_stage[tp_rank]);
            if (stage == n_stages(&trainer->mesh) - 1)
                add_head(train_build, tape->out, micro, dp_rank, tp_rank);
            end_tp_rank(train_build->b);
        }
    }
    begin[dp] = trainer->train_list->n;
    interleave_ranks(trainer->train_list, begin, dp);
    free(begin);
}

/* Adds the backward of a unit on all ranks. */
static void add_unit_backward(struct train_build *train_build, const struct turn *turn, int unit)
{
    struct tape *tapes = tape_at(train_build, turn->stage, turn->micro, 0, 0);
    for (int k = 0; k < count_tapes(train_build); k++) {
        begin_tp_rank(train_build->b, k % train_build->trainer->mesh.tp);
        on_tape(train_build->b, &tapes[k], ROLE_BACKWARD);
        backward(train_build->b, unit, turn->computation);
        end_tp_rank(train_build->b);
    }
}

/* Sends the gradients of the stage's inputs to the stage before. */
static void send_gradients(struct train_build *train_build, int stage, int micro)
{
    struct tape *tapes = tape_at(train_build, stage, micro, 0, 0);
    const struct tape *before = tape_at(train_build, stage - 1, micro, 0, 0);
    for (int k = 0; k < count_tapes(train_build); k++)
        send_gradient(train_build->b, &tapes[k], &before[k]);
}

static void free_tapes(struct train_build *train_build, int stage, int micro)
{
    const struct tape *tapes = tape_at(train_build, stage, micro, 0, 0);
    for (int k = 0; k < count_tapes(train_build); k++)
        free(tapes[k].ops);
}

/* Adds the backward of a stage and micro-batch.  In the step's last one, a unit's gradients are sent right after its
 * backward.  They are summed one unit later in the list, when all have arrived; or at once, where no other rank has
 * any. */
static void add_backwards(struct train_build *train_build, const struct turn *turn)
{
    const struct trainer *trainer = train_build->trainer;
    const int stage = turn->stage, micro = turn->micro;
    const int first = first_unit(trainer->model, stage), end = first_unit(trainer->model, stage + 1);
    const int grad_group = grad_group_of(trainer, micro);
    const bool alone = trainer->mesh.dp == 1;
    const bool weights = turn->computation != INPUT_GRADIENT;
    const bool ends_step = weights && micro == trainer->micros - 1;
    const bool ends_group = ends_step || (weights && grad_group_of(trainer, micro + 1) != grad_group);
    for (int unit = end - 1; unit >= first; unit--) {
        add_unit_backward(train_build, turn, unit);
        if (ends_group)
            end_grad_group(train_build->b, unit, grad_group);
        if (!ends_step)
            continue;
        send_unit(train_build->b, unit);
        if (alone)
            reduce_unit(train_build->b, unit);
        else if (unit < end - 1)
            reduce_unit(train_build->b, unit + 1);
    }
    if (stage > 0 && turn->computation != WEIGHT_GRADIENT)
        send_gradients(train_build, stage, micro);
    if (ends_step && !alone)
        reduce_unit(train_build->b, first);
    if (weights)
        free_tapes(train_build, stage, micro);
}

/* Is this turn the forward after which the step's losses are complete? */
static bool is_last_forward(const struct trainer *trainer, const struct turn *turn)
{
    return turn->computation == FORWARD && turn->stage == n_stages(&trainer->mesh) - 1 &&
           turn->micro == trainer->micros - 1;
}

/* Takes one turn after another.  Without clipping, updates may begin after the last forward. */
void build_train(struct trainer *trainer)
{
    const bool clips = trainer->settings->clip > 0;
    size_t n;
    struct turn *turns = merge_orders(trainer->turn_order, &trainer->mesh, trainer->micros, &n);
    trainer->train_list = new_list(trainer->pool, "train");
    struct builder b = new_builder(trainer->train_list, trainer->model, trainer->settings->kernels,
                                   trainer->micro_batch, trainer->seq_len);
    b.backward_wanted = true;
    size_t count = (size_t)(trainer->micros * trainer->mesh.dp) * (size_t)(n_stages(&trainer->mesh) * trainer->mesh.tp);
    struct train_build train_build = {.trainer = trainer, .b = &b, .tapes = allocate(count, sizeof(struct tape))};
    trainer->model->norm_rank = clips ? 0 : loss_rank(trainer, 0); /* without clipping only the losses are waited for */
    struct tensor *losses = new_losses(trainer);
    for (size_t i = 0; i < n; i++) {
        if (turns[i].computation == FORWARD)
            add_forwards(&train_build, turns[i].stage, turns[i].micro);
        else
            add_backwards(&train_build, &turns[i]);
        if (is_last_forward(trainer, &turns[i]) && !clips) {
            add_control(trainer);
            release_updates(&b, losses, trainer->rank_totals);
        }
    }
    if (!b.released)
        add_control(trainer);
    add_update(&b, losses, trainer->rank_totals);
    add_report(trainer);
    end_build(&b);
    free(train_build.tapes);
    free(turns);
}

/* Adds the forward of all stages on a data-parallel rank, up to the last LayerNorm, without a backward.  tapes[tp_rank]
 * gets what comes out on that tensor-parallel rank. */
static void add_stages(struct builder *b, const struct feed *feed, int dp_rank, struct tape *tapes)
{
    const struct mesh *mesh = &feed->trainer->mesh;
    for (int stage = 0; stage < n_stages(mesh); stage++)
        for (int tp_rank = 0; tp_rank < mesh->tp; tp_rank++) {
            begin_tp_rank(b, tp_rank);
            struct tape before = tapes[tp_rank];
            tapes[tp_rank] = new_tape(b, dp_rank, stage, 0, 0);
            forward_stage(b, &tapes[tp_rank], stage, stage ? &before : NULL, &feed->on_first_stage[tp_rank]);
            end_tp_rank(b);
        }
}

/* Adds the evaluation of a micro-batch on a data-parallel rank.  Returns its losses, on the host.  All tensor-parallel
 * ranks have them, and the last one's go there.  tapes: see add_stages(). */
static struct tensor *add_evaluation(struct builder *b, struct trainer *trainer, int dp_rank, struct tape *tapes)
{
    struct feed *feed = &trainer->eval_feeds[dp_rank];
    struct tensor *losses = NULL;
    const int n = trainer->micro_batch * trainer->seq_len;
    add_batch(trainer->eval_list, feed, prepare_evaluation);
    add_stages(b, feed, dp_rank, tapes);
    for (int tp_rank = 0; tp_rank < trainer->mesh.tp; tp_rank++) {
        begin_tp_rank(b, tp_rank);
        on_tape(b, &tapes[tp_rank], ROLE_FORWARD);
        losses = cross_entropy(b, gpt_head(b, tapes[tp_rank].out), &feed->on_last_stage[tp_rank], NULL, 1);
        end_tp_rank(b);
    }
    tag_role(trainer->eval_list, ROLE_REPORT);
    struct tensor *on_host = new_work_tensor(trainer->pool, trainer->machine->host, "eval.losses", SHAPE(n));
    add_copy(trainer->eval_list, losses->device->lanes[LANE_DOWNLOAD], "eval.download", on_host, losses);
    return on_host;
}

void build_eval(struct trainer *trainer)
{
    trainer->eval_list = new_list(trainer->pool, "eval");
    struct builder b = new_builder(trainer->eval_list, trainer->model, trainer->settings->kernels, trainer->micro_batch,
                                   trainer->seq_len);
    const int dp = trainer->mesh.dp;
    struct tensor **losses = allocate((size_t)dp, sizeof *losses); /* on the host, by data-parallel rank */
    struct tape *tapes = allocate((size_t)(dp * trainer->mesh.tp), sizeof *tapes);
    size_t *begin = allocate((size_t)dp + 1, sizeof *begin);
    for (int dp_rank = 0; dp_rank < dp; dp_rank++) {
        begin[dp_rank] = trainer->eval_list->n;
        losses[dp_rank] = add_evaluation(&b, trainer, dp_rank, &tapes[dp_rank * trainer->mesh.tp]);
    }
    begin[dp] = trainer->eval_list->n;
    interleave_ranks(trainer->eval_list, begin, dp);
    struct task *task = add_host(trainer->eval_list, trainer->machine->host->lanes[LANE_REPORT], "eval.report",
                                 report_evaluation, trainer);
    for (int dp_rank = 0; dp_rank < dp; dp_rank++)
        add_access(task, losses[dp_rank], ACCESS_READ);
    end_build(&b);
    free(losses);
    free(tapes);
    free(begin);
}

/* Adds the rank's logits of the token that is wanted: only its hidden row, of those in `out`, goes through the head.
 * The logits go to their place on the host. */
static void add_sampled_logits(struct builder *b, struct trainer *trainer, struct tensor *out, struct tensor *wanted)
{
    const int channels = trainer->config.channels;
    struct tensor *row = activation(b, "last", SHAPE(1, channels));
    struct task *pick = LAUNCH(b, "last", "elementwise.cl", "pick_row", work_groups(b, 1),
                               OUT(row),
                               IN(out), IN(wanted),
                               INT(channels));
    set_traffic(pick, 2.0 * channels);
    struct tensor *logits = gpt_head(b, row);
    size_t first = (size_t)b->replica->unlayered[HEAD].first;
    size_t words = (size_t)rank_vocab(b);
    struct tensor *host =
        view_of_shard(trainer->pool, trainer->sample_logits, b->tp_rank, (struct range){first, first + words});
    struct tensor *view = new_view(trainer->pool, logits, "logits", 0, SHAPE((int64_t)words));
    tag_role(trainer->sample_list, ROLE_REPORT);
    add_copy(trainer->sample_list, b->device->lanes[LANE_DOWNLOAD], "logits.download", host, view);
}

void build_sample(struct trainer *trainer)
{
    trainer->sample_list = new_list(trainer->pool, "sample");
    struct builder b =
        new_builder(trainer->sample_list, trainer->model, trainer->settings->kernels, 1, trainer->seq_len);
    struct tape *tapes = allocate((size_t)trainer->mesh.tp, sizeof *tapes);
    struct feed *feed = &trainer->sample_feed;
    trainer->sample_window = allocate((size_t)trainer->seq_len, sizeof *trainer->sample_window);
    trainer->sample_logits =
        new_work_tensor(trainer->pool, trainer->machine->host, "logits.host", SHAPE(trainer->config.vocab));
    trainer->sample_logits->persistent = true;
    add_batch(trainer->sample_list, feed, prepare_sample);
    add_stages(&b, feed, 0, tapes);
    for (int tp_rank = 0; tp_rank < trainer->mesh.tp; tp_rank++) {
        begin_tp_rank(&b, tp_rank);
        on_tape(&b, &tapes[tp_rank], ROLE_FORWARD);
        add_sampled_logits(&b, trainer, tapes[tp_rank].out, feed->on_last_stage[tp_rank].targets);
        end_tp_rank(&b);
    }
    end_build(&b);
    free(tapes);
}
