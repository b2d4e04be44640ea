/* lists.c - the lists of tasks: train, eval, sample.
 *
 * The train list, per step:
 *
 *     control.prepare, control.upload      lr, Adam's corrections ...        host, each rank
 *     for each micro-batch, each rank:
 *         batch.prepare, batch.upload      the windows of tokens             host, each rank
 *         forward, backward
 *     sums over ranks, norm, AdamW, parameters to all ranks                  see optimizer.c
 *     report.* , report                    loss and norm                     each rank, host
 *
 * Everything of a step follows from its number, so nothing is kept between steps but the model.  The list is cyclic and
 * two steps may be in flight: the next batch is prepared on the host while the device computes this one.
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
    (void)task;
    struct trainer *t = context;
    fill_control(t, number, tensor_memory(t->control));
}

static void add_control(struct trainer *t)
{
    t->control = new_tensor(t->pool, t->machine->host, MEM_WORK, "control.host", FLOAT32, SHAPE(CONTROL_SIZE));
    t->control->persistent = true;
    t->train->stamp = (struct stamp){-1, -1, ROLE_FEED};
    struct task *task = add_host(t->train, t->machine->host->lane[LANE_CPU], "control.prepare", prepare_control, t);
    add_access(task, t->control, ACCESS_WRITE);
    for (int r = 0; r < t->ranks; r++) {
        struct replica *replica = &t->model->replica[r];
        add_copy(t->train, replica->device->lane[LANE_UPLOAD], "control.upload", replica->control, t->control);
    }
}

/* ---- reports --------------------------------------------------------------------------------------------------- */

static void report(void *context, const struct task *task, uint32_t number)
{
    (void)task;
    struct trainer *t = context;
    const float *total = tensor_memory(t->totals), *state = tensor_memory(t->state);
    double sum = 0;
    for (int r = 0; r < t->ranks; r++)
        sum += total[r * UNIT_ALIGN];
    t->result[number & 3] = (struct result){.loss = sum / tokens_per_step(t),
                                            .norm = state[STATE_NORM],
                                            .lr = learning_rate(&t->rate, number),
                                            .halted = state[STATE_HALTED] != 0,
                                            .ended_ns = now_ns()};
}

static void add_report(struct trainer *t)
{
    struct device *host = t->machine->host;
    t->totals = new_tensor(t->pool, host, MEM_WORK, "report.totals", FLOAT32, SHAPE(t->ranks, UNIT_ALIGN));
    t->state = new_tensor(t->pool, host, MEM_WORK, "report.state", FLOAT32, SHAPE(STATE_SIZE));
    t->totals->persistent = t->state->persistent = true;
    t->train->stamp = (struct stamp){-1, -1, ROLE_REPORT};
    struct tensor **part = allocate((size_t)t->ranks, sizeof *part);
    for (int r = 0; r < t->ranks; r++) {
        part[r] = new_view(t->pool, t->totals, "report.total", (size_t)r * UNIT_ALIGN, SHAPE(1));
        add_copy(t->train, t->model->replica[r].device->lane[LANE_DOWNLOAD], "report.loss", part[r], t->rank_total[r]);
    }
    struct replica *first = &t->model->replica[0];
    add_copy(t->train, first->device->lane[LANE_DOWNLOAD], "report.norm", t->state, first->state);
    struct task *task = add_host(t->train, host->lane[LANE_REPORT], "report", report, t);
    for (int r = 0; r < t->ranks; r++)
        add_access(task, part[r], ACCESS_READ);
    add_access(task, t->state, ACCESS_READ);
    free(part);
}

static void report_evaluation(void *context, const struct task *task, uint32_t number)
{
    (void)task;
    struct trainer *t = context;
    size_t n = validation_windows(t->data, t->seq);
    for (int r = 0; r < t->ranks; r++) {
        const float *losses = tensor_memory(t->eval_losses[r]);
        size_t first = first_window(t, r, number);
        for (int i = 0; i < t->micro_batch && first + (size_t)i < n; i++) {
            int counted = validation_count(t->data, first + (size_t)i, t->seq);
            for (int k = t->seq - counted; k < t->seq; k++)
                t->eval_sum += losses[i * t->seq + k];
            t->eval_counted += (uint64_t)counted;
        }
    }
}

/* ---- the lists ------------------------------------------------------------------------------------------------- */

void build_train(struct trainer *t, enum gemm_engine engine)
{
    t->train = new_step(t->pool, "train");
    struct build b = new_build(t->train, t->model, engine, true);
    int n = t->micro_batch * t->seq;
    t->feeds = allocate((size_t)(t->ranks * t->micros), sizeof *t->feeds);
    t->rank_total = allocate((size_t)t->ranks, sizeof *t->rank_total);
    add_control(t);
    for (int r = 0; r < t->ranks; r++)
        t->rank_total[r] = new_tensor(t->pool, t->model->replica[r].device, MEM_WORK, "loss.total", FLOAT32, SHAPE(1));
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
    add_update(&b);
    add_report(t);
    end_build(&b);
}

void build_eval(struct trainer *t, enum gemm_engine engine)
{
    t->eval = new_step(t->pool, "eval");
    struct build b = new_build(t->eval, t->model, engine, false);
    int n = t->micro_batch * t->seq;
    struct task *task;
    t->eval_feeds = allocate((size_t)t->ranks, sizeof *t->eval_feeds);
    t->eval_losses = allocate((size_t)t->ranks, sizeof *t->eval_losses);
    for (int r = 0; r < t->ranks; r++) {
        struct feed *f = &t->eval_feeds[r];
        *f = (struct feed){.trainer = t, .rank = r};
        add_batch(t, t->eval, f, prepare_evaluation, n);
        start_micro_batch(&b, r, 0, t->micro_batch, t->seq);
        struct tensor *losses = cross_entropy(&b, gpt_forward(&b, &f->device), &f->device, NULL, 1);
        t->eval->stamp = (struct stamp){-1, -1, ROLE_REPORT};
        t->eval_losses[r] = new_tensor(t->pool, t->machine->host, MEM_WORK, "eval.losses", FLOAT32, SHAPE(n));
        add_copy(t->eval, b.device->lane[LANE_DOWNLOAD], "eval.download", t->eval_losses[r], losses);
    }
    task = add_host(t->eval, t->machine->host->lane[LANE_REPORT], "eval.report", report_evaluation, t);
    for (int r = 0; r < t->ranks; r++)
        add_access(task, t->eval_losses[r], ACCESS_READ);
    end_build(&b);
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
    LAUNCH(&b, "last", "elementwise.cl", "pick_row", groups(&b, 1), OUT(row), IN(hidden),
           IN(t->sample_feed->device.targets), INT(t->config.channels));
    struct tensor *logits = linear(&b, "head", row, b.replica->other[HEAD], (struct weight){0});
    t->sample->stamp = (struct stamp){-1, -1, ROLE_REPORT};
    t->sample_logits = new_tensor(t->pool, t->machine->host, MEM_WORK, "logits.host", FLOAT32, SHAPE(t->config.vocab));
    t->sample_logits->persistent = true;
    add_copy(t->sample, b.device->lane[LANE_DOWNLOAD], "logits.download", t->sample_logits, logits);
    end_build(&b);
}
