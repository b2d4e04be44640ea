/* control.c - tasks that bring a step its control block (learning rate and the like), and tasks that report the losses
 * and the norm which come out of the step. */
#include "hooks.h"

#include <math.h>

/* ---- the control block ----------------------------------------------------------------------------------------- */

/* Values that follow from others are computed in double precision; adamw.cl says why. */
static void prepare_control(void *trainer, const struct task *task, uint32_t number)
{
    const struct trainer *t = trainer;
    const struct settings *s = t->settings;
    const double lr = learning_rate(&t->rate, number);
    const double correction1 = 1 - pow(s->beta1, number);
    const double correction2 = 1 - pow(s->beta2, number);
    const double values[CONTROL_SIZE] = {
        [CONTROL_LR] = lr,
        [CONTROL_BETA1] = s->beta1,
        [CONTROL_BETA2] = s->beta2,
        [CONTROL_EPS] = s->eps,
        [CONTROL_WEIGHT_DECAY] = s->weight_decay,
        [CONTROL_CORRECTION1] = correction1,
        [CONTROL_CORRECTION2] = correction2,
        [CONTROL_CLIP] = s->clip,
        [CONTROL_ONE_MINUS_BETA1] = 1 - s->beta1,
        [CONTROL_ONE_MINUS_BETA2] = 1 - s->beta2,
        [CONTROL_DECAY] = 1 - lr * s->weight_decay,
        [CONTROL_STEP_SIZE] = lr / correction1,
        [CONTROL_INV_SQRT_CORRECTION2] = 1 / sqrt(correction2),
    };
    float *control = tensor_memory(task->access[0].tensor);
    for (int i = 0; i < CONTROL_SIZE; i++)
        control[i] = (float)values[i];
    fill_others(task);
}

void add_control(struct trainer *t)
{
    struct tensor *control = new_work_tensor(t->pool, t->machine->host, "control.host", SHAPE(CONTROL_SIZE));
    control->persistent = true;
    t->train->tags = (struct tags){.layer = NONE, .micro = NONE, .role = ROLE_FEED};
    struct task *task = add_host(t->train, t->machine->host->lane[LANE_FEED], "control.prepare", prepare_control, t);
    add_access(task, control, ACCESS_WRITE);
    const struct device *before = t->model->replica[0].device;
    for (int rank = 0; rank < t->machine->n_devices; rank++) {
        struct replica *replica = &t->model->replica[rank];
        struct tensor *from = for_upload(t, task, before, replica->device);
        add_copy(t->train, replica->device->lane[LANE_UPLOAD], "control.upload", replica->control, from);
        before = replica->device;
    }
}

/* The first tensor-parallel rank of the last stage of data-parallel rank k has the losses. */
int loss_rank(const struct trainer *t, int k) { return rank_at(&t->mesh, k, n_stages(&t->mesh) - 1); }

/* Makes a tensor for each data-parallel rank's sum of losses.  Those on the device of the norm are views of `losses`,
 * which is returned: the sums of other devices are gathered there. */
struct tensor *add_losses(struct trainer *t)
{
    struct device *norms = t->model->replica[t->model->norm_rank].device;
    struct tensor *losses = new_work_tensor(t->pool, norms, "loss.totals", SHAPE((int64_t)t->mesh.dp * UNIT_ALIGN));
    losses->persistent = true; /* the gaps between the sums stay 0 */
    t->rank_total = allocate((size_t)t->mesh.dp, sizeof *t->rank_total);
    for (int k = 0; k < t->mesh.dp; k++) {
        struct device *d = t->model->replica[loss_rank(t, k)].device;
        if (d == norms)
            t->rank_total[k] = new_view(t->pool, losses, "loss.total", (size_t)k * UNIT_ALIGN, SHAPE(1));
        else
            t->rank_total[k] = new_work_tensor(t->pool, d, "loss.total", SHAPE(1));
    }
    return losses;
}

/* ---- reports --------------------------------------------------------------------------------------------------- */

/* Reads the data-parallel ranks' loss sums, then the state of the norm's rank. */
static void report_step(void *context, const struct task *task, uint32_t number)
{
    struct trainer *t = context;
    const float *state = tensor_memory(task->access[t->mesh.dp].tensor);
    double sum = 0;
    for (int k = 0; k < t->mesh.dp; k++) {
        const float *total = tensor_memory(task->access[k].tensor);
        sum += *total;
    }
    t->result[number % RESULTS] = (struct result){
        .loss = sum / tokens_per_step(t),
        .norm = state[STATE_NORM],
        .lr = learning_rate(&t->rate, number),
        .halted = state[STATE_HALTED] != 0,
    };
    tell_step_reported(t, number, state[STATE_HALTED] == 0 && isfinite(sum));
}

void add_report(struct trainer *t)
{
    struct device *host = t->machine->host;
    struct tensor *totals = NULL; /* for the ranks of one OpenCL context, for which it is pinned */
    t->train->tags = (struct tags){.layer = NONE, .micro = NONE, .role = ROLE_REPORT};
    struct tensor **part = allocate((size_t)t->mesh.dp, sizeof *part);
    for (int k = 0; k < t->mesh.dp; k++) {
        const struct device *d = t->rank_total[k]->device;
        if (k == 0 || d->context->index != t->rank_total[k - 1]->device->context->index)
            totals = new_work_tensor(t->pool, host, "report.totals", SHAPE(t->mesh.dp, UNIT_ALIGN));
        totals->persistent = true;
        part[k] = new_view(t->pool, totals, "report.total", (size_t)k * UNIT_ALIGN, SHAPE(1));
        add_copy(t->train, d->lane[LANE_DOWNLOAD], "report.loss", part[k], t->rank_total[k]);
    }
    struct tensor *state = new_work_tensor(t->pool, host, "report.state", SHAPE(STATE_SIZE));
    state->persistent = true;
    struct replica *first = &t->model->replica[t->model->norm_rank];
    add_copy(t->train, first->device->lane[LANE_DOWNLOAD], "report.norm", state, first->state);
    struct task *task = add_host(t->train, host->lane[LANE_REPORT], "report", report_step, t);
    t->report = task;
    for (int k = 0; k < t->mesh.dp; k++)
        add_access(task, part[k], ACCESS_READ);
    add_access(task, state, ACCESS_READ);
    free(part);
}

/* Reads the losses of each rank, and goes on from the sum of the iteration before. */
void report_evaluation(void *context, const struct task *task, uint32_t number)
{
    struct trainer *t = context;
    size_t n_windows = validation_windows(t->data, t->seq);
    struct losses all = t->eval_sum[(number - 1) & 1];
    for (int k = 0; k < t->mesh.dp; k++) {
        const float *losses = tensor_memory(task->access[k].tensor);
        size_t window = first_window(t, k, number);
        for (int i = 0; i < t->micro_batch && window < n_windows; i++) {
            int counted = validation_count(t->data, window, t->seq);
            for (int at = t->seq - counted; at < t->seq; at++)
                all.sum += losses[i * t->seq + at];
            all.n += (uint64_t)counted;
            window++;
        }
    }
    t->eval_sum[number & 1] = all;
}
