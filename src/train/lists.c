/* lists.c - the lists of tasks: train, eval, sample.
 *
 * The train list, per step:
 *
 *     for each micro-batch, each rank:
 *         batch.prepare, batch.upload      the windows of tokens             host, each rank
 *         forward, backward
 *     control.prepare, control.upload      lr, Adam's corrections ...        host, each rank
 *     sums over ranks, norm, AdamW, parameters to all ranks                  see optimizer.c
 *     report.* , report                    loss and norm                     each rank, host
 *
 * Everything of a step follows from its number, so nothing is kept between steps but the model.  The list is cyclic and
 * steps overlap: the next batch is prepared on the host, and brought up, while the device computes this one.  So its
 * tasks have a host lane of their own, and an upload lane that no move between devices uses; and the control block,
 * which the update of the step before still reads, comes behind all batches.
 */
#include "train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the control block ----------------------------------------------------------------------------------------- */

/* The derived ones are computed in double precision, adamw.cl says why. */
static void fill_control(const struct trainer *t, uint32_t number, float *c)
{
    const struct settings *s = t->settings;
    double lr = learning_rate(&t->rate, number);
    double correction1 = 1 - pow(s->beta1, number), correction2 = 1 - pow(s->beta2, number);
    memset(c, 0, CONTROL_SIZE * sizeof *c);
    c[CONTROL_LR] = (float)lr;
    c[CONTROL_BETA1] = (float)s->beta1;
    c[CONTROL_BETA2] = (float)s->beta2;
    c[CONTROL_EPS] = (float)s->eps;
    c[CONTROL_WEIGHT_DECAY] = (float)s->weight_decay;
    c[CONTROL_CORRECTION1] = (float)correction1;
    c[CONTROL_CORRECTION2] = (float)correction2;
    c[CONTROL_CLIP] = (float)s->clip;
    c[CONTROL_ONE_MINUS_BETA1] = (float)(1 - s->beta1);
    c[CONTROL_ONE_MINUS_BETA2] = (float)(1 - s->beta2);
    c[CONTROL_DECAY] = (float)(1 - lr * s->weight_decay);
    c[CONTROL_STEP_SIZE] = (float)(lr / correction1);
    c[CONTROL_INV_SQRT_CORRECTION2] = (float)(1 / sqrt(correction2));
}

static void prepare_control(void *context, const struct task *task, uint32_t number)
{
    fill_control(context, number, tensor_memory(task->access[0].tensor));
}

static void add_control(struct trainer *t)
{
    struct tensor *control =
        new_tensor(t->pool, t->machine->host, MEM_WORK, "control.host", FLOAT32, SHAPE(CONTROL_SIZE));
    control->persistent = true;
    t->train->stamp = (struct stamp){-1, -1, ROLE_FEED};
    struct task *task = add_host(t->train, t->machine->host->lane[LANE_FEED], "control.prepare", prepare_control, t);
    add_access(task, control, ACCESS_WRITE);
    for (int r = 0; r < t->ranks; r++) {
        struct replica *replica = &t->model->replica[r];
        add_copy(t->train, replica->device->lane[LANE_UPLOAD], "control.upload", replica->control, control);
    }
}

/* The sum of its losses on every rank: those on rank 0 are a view of `losses`, where the others' are gathered. */
static struct tensor *add_losses(struct trainer *t)
{
    struct device *first = t->model->replica[0].device;
    struct tensor *losses =
        new_tensor(t->pool, first, MEM_WORK, "loss.totals", FLOAT32, SHAPE((int64_t)t->ranks * UNIT_ALIGN));
    losses->persistent = true; /* what lies between the sums stays 0 */
    t->rank_total = allocate((size_t)t->ranks, sizeof *t->rank_total);
    t->rank_total[0] = new_view(t->pool, losses, "loss.total", 0, SHAPE(1));
    for (int r = 1; r < t->ranks; r++)
        t->rank_total[r] = new_tensor(t->pool, t->model->replica[r].device, MEM_WORK, "loss.total", FLOAT32, SHAPE(1));
    return losses;
}

/* ---- reports --------------------------------------------------------------------------------------------------- */

/* Reads the ranks' loss sums, then the state of rank 0. */
static void report(void *context, const struct task *task, uint32_t number)
{
    struct trainer *t = context;
    const float *state = tensor_memory(task->access[t->ranks].tensor);
    double sum = 0;
    for (int r = 0; r < t->ranks; r++)
        sum += *(const float *)tensor_memory(task->access[r].tensor);
    t->result[number % RESULTS] = (struct result){.loss = sum / tokens_per_step(t),
                                                  .norm = state[STATE_NORM],
                                                  .lr = learning_rate(&t->rate, number),
                                                  .halted = state[STATE_HALTED] != 0};
}

static void add_report(struct trainer *t)
{
    struct device *host = t->machine->host;
    struct tensor *totals = new_tensor(t->pool, host, MEM_WORK, "report.totals", FLOAT32, SHAPE(t->ranks, UNIT_ALIGN));
    struct tensor *state = new_tensor(t->pool, host, MEM_WORK, "report.state", FLOAT32, SHAPE(STATE_SIZE));
    totals->persistent = state->persistent = true;
    t->train->stamp = (struct stamp){-1, -1, ROLE_REPORT};
    struct tensor **part = allocate((size_t)t->ranks, sizeof *part);
    for (int r = 0; r < t->ranks; r++) {
        part[r] = new_view(t->pool, totals, "report.total", (size_t)r * UNIT_ALIGN, SHAPE(1));
        add_copy(t->train, t->model->replica[r].device->lane[LANE_DOWNLOAD], "report.loss", part[r], t->rank_total[r]);
    }
    struct replica *first = &t->model->replica[0];
    add_copy(t->train, first->device->lane[LANE_DOWNLOAD], "report.norm", state, first->state);
    struct task *task = add_host(t->train, host->lane[LANE_REPORT], "report", report, t);
    t->report = task;
    for (int r = 0; r < t->ranks; r++)
        add_access(task, part[r], ACCESS_READ);
    add_access(task, state, ACCESS_READ);
    free(part);
}

/* Reads the losses of each rank, and goes on from the sum of the iteration before. */
static void report_evaluation(void *context, const struct task *task, uint32_t number)
{
    struct trainer *t = context;
    size_t n = validation_windows(t->data, t->seq);
    struct losses all = t->eval_sum[(number - 1) & 1];
    for (int r = 0; r < t->ranks; r++) {
        const float *losses = tensor_memory(task->access[r].tensor);
        size_t first = first_window(t, r, number);
        for (int i = 0; i < t->micro_batch && first + (size_t)i < n; i++) {
            int counted = validation_count(t->data, first + (size_t)i, t->seq);
            for (int k = t->seq - counted; k < t->seq; k++)
                all.sum += losses[i * t->seq + k];
            all.n += (uint64_t)counted;
        }
    }
    t->eval_sum[number & 1] = all;
}

/* ---- the lists ------------------------------------------------------------------------------------------------- */

void build_train(struct trainer *t, enum gemm_engine engine)
{
    t->train = new_step(t->pool, "train");
    struct build b = new_build(t->train, t->model, engine, true);
    int n = t->micro_batch * t->seq;
    t->feeds = allocate((size_t)(t->ranks * t->micros), sizeof *t->feeds);
    struct tensor *losses = add_losses(t);
    for (int micro = 0; micro < t->micros; micro++)
        for (int r = 0; r < t->ranks; r++) {
            struct feed *f = &t->feeds[micro * t->ranks + r];
            *f = (struct feed){.trainer = t, .rank = r, .micro = micro};
            add_batch(t, t->train, f, prepare_batch, n);
            start_micro_batch(&b, r, micro, t->micro_batch, t->seq);
            struct tensor *logits = gpt_forward(&b, &f->device);
            if (r == 0 && micro == 0)
                t->keep_logits = logits;
            cross_entropy(&b, logits, &f->device, t->rank_total[r], tokens_per_step(t));
            backward(&b);
        }
    add_control(t);
    add_update(&b, losses, t->rank_total);
    add_report(t);
    end_build(&b);
}

void build_eval(struct trainer *t, enum gemm_engine engine)
{
    t->eval = new_step(t->pool, "eval");
    struct build b = new_build(t->eval, t->model, engine, false);
    int n = t->micro_batch * t->seq;
    struct tensor **host = allocate((size_t)t->ranks, sizeof *host);
    t->eval_feeds = allocate((size_t)t->ranks, sizeof *t->eval_feeds);
    for (int r = 0; r < t->ranks; r++) {
        struct feed *f = &t->eval_feeds[r];
        *f = (struct feed){.trainer = t, .rank = r};
        add_batch(t, t->eval, f, prepare_evaluation, n);
        start_micro_batch(&b, r, 0, t->micro_batch, t->seq);
        struct tensor *losses = cross_entropy(&b, gpt_forward(&b, &f->device), &f->device, NULL, 1);
        t->eval->stamp = (struct stamp){-1, -1, ROLE_REPORT};
        host[r] = new_tensor(t->pool, t->machine->host, MEM_WORK, "eval.losses", FLOAT32, SHAPE(n));
        add_copy(t->eval, b.device->lane[LANE_DOWNLOAD], "eval.download", host[r], losses);
    }
    struct task *task = add_host(t->eval, t->machine->host->lane[LANE_REPORT], "eval.report", report_evaluation, t);
    for (int r = 0; r < t->ranks; r++)
        add_access(task, host[r], ACCESS_READ);
    end_build(&b);
    free(host);
}

/* One sequence on rank 0; only the last token's hidden row goes through the head. */
void build_sample(struct trainer *t, enum gemm_engine engine)
{
    t->sample = new_step(t->pool, "sample");
    struct build b = new_build(t->sample, t->model, engine, false);
    t->sample_feed = allocate(1, sizeof *t->sample_feed);
    *t->sample_feed = (struct feed){.trainer = t};
    t->sample_tokens = allocate((size_t)t->seq, sizeof *t->sample_tokens);
    add_batch(t, t->sample, t->sample_feed, prepare_sample, t->seq);
    start_micro_batch(&b, 0, 0, 1, t->seq);
    struct tensor *hidden = gpt_hidden(&b, &t->sample_feed->device);
    struct tensor *row = activation(&b, "last", SHAPE(1, t->config.channels));
    set_traffic(LAUNCH(&b, "last", "elementwise.cl", "pick_row", groups(&b, 1), OUT(row), IN(hidden),
                       IN(t->sample_feed->device.targets), INT(t->config.channels)),
                2.0 * t->config.channels);
    struct tensor *logits = linear(&b, "head", row, b.replica->other[HEAD], (struct weight){0});
    t->sample->stamp = (struct stamp){-1, -1, ROLE_REPORT};
    t->sample_logits = new_tensor(t->pool, t->machine->host, MEM_WORK, "logits.host", FLOAT32, SHAPE(t->config.vocab));
    t->sample_logits->persistent = true;
    add_copy(t->sample, b.device->lane[LANE_DOWNLOAD], "logits.download", t->sample_logits, logits);
    end_build(&b);
}
