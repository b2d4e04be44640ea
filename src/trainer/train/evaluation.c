/* evaluation.c - the validation loss: the list that computes it, and its run.
 *
 * An iteration of the list takes a micro-batch on each data-parallel rank, and copies the losses to the host, where the
 * task eval.report adds them up.
 */
#include "train_parts.h"

#include <math.h>

/* ---- the host tasks ---------------------------------------------------------------------------------------------- */

/* The first of the micro_batch validation windows that a data-parallel rank takes in that iteration. */
static size_t first_window(const struct trainer *trainer, int dp_rank, uint32_t iteration)
{
    return ((size_t)(iteration - trainer->extra.eval_iterations - 1) * (size_t)trainer->mesh.dp + (size_t)dp_rank) *
           (size_t)trainer->micro_batch;
}

/* Fills a batch of the evaluation: an iteration takes the next micro_batch windows for each rank.  Where no more
 * windows are there, it leaves zeros. */
static void prepare_evaluation(void *argument, const struct task *task, uint32_t iteration)
{
    struct feed *feed = argument;
    struct trainer *trainer = feed->trainer;
    int32_t *tokens = clear_batch(&feed->host);
    int32_t *targets = tensor_memory(feed->host.targets);
    size_t window = first_window(trainer, feed->dp_rank, iteration);
    size_t n_windows = validation_windows(trainer->data, trainer->seq_len);
    for (int i = 0; i < trainer->micro_batch && window < n_windows; i++) {
        validation_window(trainer->data, window, trainer->seq_len, tokens + i * trainer->seq_len,
                          targets + i * trainer->seq_len);
        window++;
    }
    complete_batch(feed, task);
}

/* Reads the losses of each rank, and goes on from the sum of the iteration before.  There are two sums in turn: the
 * function may be called again for one run, and must not add twice. */
static void report_evaluation(void *argument, const struct task *task, uint32_t iteration)
{
    struct trainer *trainer = argument;
    size_t n_windows = validation_windows(trainer->data, trainer->seq_len);
    struct losses sums = trainer->extra.eval_sums[(iteration - 1) & 1];
    for (int dp_rank = 0; dp_rank < trainer->mesh.dp; dp_rank++) {
        const float *losses = tensor_memory(task->accesses[dp_rank].tensor);
        size_t window = first_window(trainer, dp_rank, iteration);
        for (int i = 0; i < trainer->micro_batch && window < n_windows; i++) {
            int counted = validation_count(trainer->data, window, trainer->seq_len);
            for (int at = trainer->seq_len - counted; at < trainer->seq_len; at++)
                sums.sum += losses[i * trainer->seq_len + at];
            sums.n += (uint64_t)counted;
            window++;
        }
    }
    trainer->extra.eval_sums[iteration & 1] = sums;
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

void add_stages(struct builder *b, const struct feed *feed, int dp_rank, struct tape *tapes)
{
    const struct mesh *mesh = &feed->trainer->mesh;
    for (int stage = 0; stage < n_stages(mesh); stage++)
        for (int tp_rank = 0; tp_rank < mesh->tp; tp_rank++) {
            begin_tp_rank(b, tp_rank);
            struct tape before = tapes[tp_rank];
            tapes[tp_rank] = make_tape(b, dp_rank, stage, 0, 0);
            forward_stage(b, &tapes[tp_rank], stage, stage ? &before : NULL, &feed->on_first_stage[tp_rank]);
            end_tp_rank(b);
        }
}

/* Adds the evaluation of a micro-batch on a data-parallel rank.  Returns its losses, on the host.  All tensor-parallel
 * ranks have them, and the last one's go there.  tapes: see train_parts.h. */
static struct tensor *add_evaluation(struct builder *b, struct trainer *trainer, int dp_rank, struct tape *tapes)
{
    struct feed *feed = &trainer->eval_feeds[dp_rank];
    struct tensor *losses = NULL;
    int n = trainer->micro_batch * trainer->seq_len;
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
    struct builder b = make_builder(trainer->eval_list, trainer->model, trainer->settings->kernels,
                                    trainer->micro_batch, trainer->seq_len);
    int dp = trainer->mesh.dp;
    struct tensor **losses = allocate_each(dp, sizeof *losses); /* on the host, by data-parallel rank */
    struct tape *tapes = allocate_each(dp * trainer->mesh.tp, sizeof *tapes);
    size_t *begin = allocate_each(dp + 1, sizeof *begin);
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

/* ---- its run ----------------------------------------------------------------------------------------------------- */

double evaluate(struct trainer *trainer, int64_t batches, bool (*goes_on)(void *), void *context)
{
    size_t windows = validation_windows(trainer->data, trainer->seq_len);
    size_t per_round = (size_t)(trainer->mesh.dp * trainer->micro_batch);
    size_t rounds = ceil_div(windows, per_round);
    if (batches > 0)
        rounds = MIN(rounds, ceil_div((size_t)batches * (size_t)trainer->batch, per_round));
    trainer->extra.eval_sums[trainer->extra.eval_iterations & 1] = (struct losses){0};
    uint64_t begun = now_ns();
    size_t done = 0; /* rounds that have been issued */
    bool is_cut = false;
    while (done < rounds && !is_cut) {
        show_busy("validating", begun, (double)done / (double)rounds);
        done++;
        execute(trainer->eval_list, trainer->extra.eval_iterations + (uint32_t)done);
        is_cut = goes_on && !goes_on(context);
    }
    drain(trainer->eval_list);
    erase_line();
    trainer->extra.eval_iterations += (uint32_t)done;
    const struct losses *all = &trainer->extra.eval_sums[trainer->extra.eval_iterations & 1];
    return all->n && !is_cut ? all->sum / (double)all->n : NAN;
}
