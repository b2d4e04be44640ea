/* build_train.c - builds the list for training.  Per step:
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

struct step_tapes { /* the tapes of a step, and what its tasks are added with */
    struct trainer *trainer;
    struct builder *b;
    /* What each forward keeps for its backward, by micro-batch, stage, data-parallel rank and tensor-parallel rank:
     * [((micro * stages + stage) * dp + dp_rank) * tp + tp_rank]. */
    struct tape *tapes;
};

/* The tape of this stage, micro-batch and rank; NULL for stage -1, since no stage comes before the first one. */
static struct tape *tape_at(const struct step_tapes *step_tapes, int stage, int micro, int dp_rank, int tp_rank)
{
    const struct mesh *mesh = &step_tapes->trainer->mesh;
    if (stage < 0)
        return NULL;
    int i = (micro * n_stages(mesh) + stage) * mesh->dp + dp_rank;
    return &step_tapes->tapes[i * mesh->tp + tp_rank];
}

/* How many tapes a stage has of a micro-batch.  They are side by side, and tape k is of tensor-parallel rank
 * k % tp. */
static int count_tapes(const struct step_tapes *step_tapes)
{
    return step_tapes->trainer->mesh.dp * step_tapes->trainer->mesh.tp;
}

/* The gradient group (--grad-groups) to which a micro-batch belongs. */
static int grad_group_of(const struct trainer *trainer, int micro)
{
    return micro * trainer->settings->grad_groups / trainer->micros;
}

/* ---- the forward ------------------------------------------------------------------------------------------------- */

/* Adds the logits and losses of a data-parallel rank.  All its tensor-parallel ranks have the losses, and the first one
 * sums them up. */
static void add_head(struct step_tapes *step_tapes, struct tensor *out, int micro, int dp_rank, int tp_rank)
{
    struct trainer *trainer = step_tapes->trainer;
    const struct feed *feed = train_feed(trainer, micro, dp_rank);
    struct tensor *logits = gpt_head(step_tapes->b, out);
    if (dp_rank == 0 && micro == 0 && tp_rank == 0)
        trainer->kept_logits = logits;
    struct tensor *total = tp_rank == 0 ? trainer->rank_losses[dp_rank] : NULL;
    cross_entropy(step_tapes->b, logits, &feed->on_last_stage[tp_rank], total, tokens_per_step(trainer));
}

/* Adds the forward of one stage and micro-batch on all data-parallel ranks. */
static void add_forwards(struct step_tapes *step_tapes, int stage, int micro)
{
    struct trainer *trainer = step_tapes->trainer;
    int dp = trainer->mesh.dp;
    size_t *begin = allocate_each(dp + 1, sizeof *begin);
    for (int dp_rank = 0; dp_rank < dp; dp_rank++) {
        struct feed *feed = train_feed(trainer, micro, dp_rank);
        begin[dp_rank] = trainer->train_list->n;
        if (stage == 0)
            add_batch(trainer->train_list, feed, prepare_batch);
        for (int tp_rank = 0; tp_rank < trainer->mesh.tp; tp_rank++) {
            begin_tp_rank(step_tapes->b, tp_rank);
            struct tape *tape = tape_at(step_tapes, stage, micro, dp_rank, tp_rank);
            const struct tape *before = tape_at(step_tapes, stage - 1, micro, dp_rank, tp_rank);
            *tape = make_tape(step_tapes->b, dp_rank, stage, micro, grad_group_of(trainer, micro));
            forward_stage(step_tapes->b, tape, stage, before, &feed->on_first_stage[tp_rank]);
            if (stage == n_stages(&trainer->mesh) - 1)
                add_head(step_tapes, tape->out, micro, dp_rank, tp_rank);
            end_tp_rank(step_tapes->b);
        }
    }
    begin[dp] = trainer->train_list->n;
    interleave_ranks(trainer->train_list, begin, dp);
    free(begin);
}

/* ---- the backward ------------------------------------------------------------------------------------------------ */

/* Adds the backward of a unit on all ranks. */
static void add_unit_backward(struct step_tapes *step_tapes, const struct turn *turn, int unit)
{
    struct tape *tapes = tape_at(step_tapes, turn->stage, turn->micro, 0, 0);
    for (int k = 0; k < count_tapes(step_tapes); k++) {
        begin_tp_rank(step_tapes->b, k % step_tapes->trainer->mesh.tp);
        on_tape(step_tapes->b, &tapes[k], ROLE_BACKWARD);
        backward(step_tapes->b, unit, turn->computation);
        end_tp_rank(step_tapes->b);
    }
}

/* Sends the gradients of the stage's inputs to the stage before. */
static void send_gradients(struct step_tapes *step_tapes, int stage, int micro)
{
    struct tape *tapes = tape_at(step_tapes, stage, micro, 0, 0);
    const struct tape *before = tape_at(step_tapes, stage - 1, micro, 0, 0);
    for (int k = 0; k < count_tapes(step_tapes); k++)
        send_gradient(step_tapes->b, &tapes[k], &before[k]);
}

/* Frees the tapes of a stage and micro-batch. */
static void free_tapes(struct step_tapes *step_tapes, int stage, int micro)
{
    const struct tape *tapes = tape_at(step_tapes, stage, micro, 0, 0);
    for (int k = 0; k < count_tapes(step_tapes); k++)
        free(tapes[k].ops);
}

/* Sums a unit's gradients over ranks.  Its update follows at once if it waits for no norm. */
static void reduce_and_update(struct builder *b, int unit)
{
    reduce_unit(b, unit);
    update_if_released(b, unit);
}

/* Adds the backward of a stage and micro-batch.  In the step's last one, a unit's gradients are sent right after its
 * backward.  They are summed one unit later in the list, when all have arrived; or at once, where no other rank has
 * any. */
static void add_backwards(struct step_tapes *step_tapes, const struct turn *turn)
{
    const struct trainer *trainer = step_tapes->trainer;
    int stage = turn->stage, micro = turn->micro;
    int first = first_unit(trainer->model, stage), end = first_unit(trainer->model, stage + 1);
    int grad_group = grad_group_of(trainer, micro);
    int lag = trainer->mesh.dp == 1 ? 0 : 1; /* how many units later the sums come than the sends */
    bool has_weights = turn->computation != INPUT_GRADIENT;
    bool ends_step = has_weights && micro == trainer->micros - 1;
    bool ends_group = ends_step || (has_weights && grad_group_of(trainer, micro + 1) != grad_group);
    for (int unit = end - 1; unit >= first; unit--) {
        add_unit_backward(step_tapes, turn, unit);
        if (ends_group)
            end_grad_group(step_tapes->b, unit, grad_group);
        if (!ends_step)
            continue;
        send_unit(step_tapes->b, unit);
        if (unit + lag < end)
            reduce_and_update(step_tapes->b, unit + lag);
    }
    if (stage > 0 && turn->computation != WEIGHT_GRADIENT)
        send_gradients(step_tapes, stage, micro);
    if (ends_step && lag)
        reduce_and_update(step_tapes->b, first);
    if (has_weights)
        free_tapes(step_tapes, stage, micro);
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

/* Is this turn the forward after which the step's losses are complete? */
static bool is_last_forward(const struct trainer *trainer, const struct turn *turn)
{
    return turn->computation == FORWARD && turn->stage == n_stages(&trainer->mesh) - 1 &&
           turn->micro == trainer->micros - 1;
}

/* Takes one turn after another.  Without clipping, updates may begin after the last forward, so the control block,
 * which they read, comes before them. */
void build_train(struct trainer *trainer)
{
    bool clips = trainer->settings->clip > 0;
    size_t n;
    struct turn *turns = merge_orders(trainer->turn_order, &trainer->mesh, trainer->micros, &n);
    trainer->train_list = new_list(trainer->pool, "train");
    struct builder b = make_builder(trainer->train_list, trainer->model, trainer->settings->kernels,
                                    trainer->micro_batch, trainer->seq_len);
    b.backward_wanted = true;
    struct step_tapes step_tapes = {.trainer = trainer, .b = &b};
    int n_tapes = trainer->micros * n_stages(&trainer->mesh) * count_tapes(&step_tapes);
    step_tapes.tapes = allocate_each(n_tapes, sizeof *step_tapes.tapes);
    trainer->model->norm_rank = clips ? 0 : loss_rank(trainer, 0); /* without clipping only the losses are waited for */
    struct tensor *losses = new_loss_totals(trainer);
    for (size_t i = 0; i < n; i++) {
        if (turns[i].computation == FORWARD)
            add_forwards(&step_tapes, turns[i].stage, turns[i].micro);
        else
            add_backwards(&step_tapes, &turns[i]);
        if (is_last_forward(trainer, &turns[i]) && !clips) {
            add_control(trainer);
            release_updates(&b, losses, trainer->rank_losses);
        }
    }
    if (clips)
        add_control(trainer);
    add_update(&b, losses, trainer->rank_losses);
    add_report(trainer);
    end_build(&b);
    free(step_tapes.tapes);
    free(turns);
}
