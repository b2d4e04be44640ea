/* control.c - tasks that bring a step its control block (learning rate and the like), and tasks that report the losses
 * and the norm which come out of the step. */
#include "hooks.h"
#include "train_parts.h"

#include <math.h>

/* ---- the control block ------------------------------------------------------------------------------------------- */

/* Values that follow from others are computed in double precision; adamw.cl says why. */
static void prepare_control(void *argument, const struct task *task, uint32_t iteration)
{
    const struct trainer *trainer = argument;
    const struct settings *settings = trainer->settings;
    double lr = learning_rate(&trainer->rate, iteration);
    double correction1 = 1 - pow(settings->beta1, iteration);
    double correction2 = 1 - pow(settings->beta2, iteration);
    const double values[CONTROL_SIZE] = {
        [CONTROL_BETA1] = settings->beta1,
        [CONTROL_BETA2] = settings->beta2,
        [CONTROL_EPS] = settings->eps,
        [CONTROL_CLIP] = settings->clip,
        [CONTROL_ONE_MINUS_BETA1] = 1 - settings->beta1,
        [CONTROL_ONE_MINUS_BETA2] = 1 - settings->beta2,
        [CONTROL_DECAY] = 1 - lr * settings->weight_decay,
        [CONTROL_STEP_SIZE] = lr / correction1,
        [CONTROL_INV_SQRT_CORRECTION2] = 1 / sqrt(correction2),
    };
    float *control = tensor_memory(task->accesses[0].tensor);
    for (int i = 0; i < CONTROL_SIZE; i++)
        control[i] = (float)values[i];
    copy_to_other_contexts(task);
}

void add_control(struct trainer *trainer)
{
    struct tensor *control =
        new_kept_work_tensor(trainer->pool, trainer->machine->host, "control.host", SHAPE(CONTROL_SIZE));
    tag_role(trainer->train_list, ROLE_FEED);
    struct task *task = add_host(trainer->train_list, trainer->machine->host->lanes[LANE_FEED], "control.prepare",
                                 prepare_control, trainer);
    add_access(task, control, ACCESS_WRITE);
    struct transfers uploads = {.list = trainer->train_list, .maker = task, .on_host = control, .context = NONE};
    for (int rank = 0; rank < trainer->machine->n_devices; rank++)
        add_upload(&uploads, "control.upload", trainer->model->replicas[rank].control);
}

/* ---- reports ----------------------------------------------------------------------------------------------------- */

int loss_rank(const struct trainer *trainer, int dp_rank)
{
    return rank_at(&trainer->mesh, dp_rank, n_stages(&trainer->mesh) - 1);
}

/* A rank on the norm's device adds its losses up in the returned tensor itself, through a view.  A rank on another
 * device has a tensor of its own, from which its sum is moved later. */
struct tensor *new_loss_totals(struct trainer *trainer)
{
    int dp = trainer->mesh.dp;
    struct device *norm_device = trainer->model->replicas[trainer->model->norm_rank].device;
    const struct shape shape = SHAPE((int64_t)dp * UNIT_ALIGN); /* the gaps between the sums stay 0 */
    struct tensor *losses = new_kept_work_tensor(trainer->pool, norm_device, "loss.totals", shape);
    trainer->rank_losses = allocate_each(dp, sizeof *trainer->rank_losses);
    for (int dp_rank = 0; dp_rank < dp; dp_rank++) {
        struct device *device = trainer->model->replicas[loss_rank(trainer, dp_rank)].device;
        if (device == norm_device)
            trainer->rank_losses[dp_rank] =
                new_view(trainer->pool, losses, "loss.total", (size_t)dp_rank * UNIT_ALIGN, SHAPE(1));
        else
            trainer->rank_losses[dp_rank] = new_work_tensor(trainer->pool, device, "loss.total", SHAPE(1));
    }
    return losses;
}

/* Reads the data-parallel ranks' loss sums, then the verdict on the norm's rank. */
static void report_step(void *argument, const struct task *task, uint32_t iteration)
{
    struct trainer *trainer = argument;
    int dp = trainer->mesh.dp;
    const float *verdict = tensor_memory(task->accesses[dp].tensor);
    double sum = 0;
    for (int dp_rank = 0; dp_rank < dp; dp_rank++) {
        const float *total = tensor_memory(task->accesses[dp_rank].tensor);
        sum += *total;
    }
    trainer->results[iteration % RESULTS] = (struct result){
        .loss = sum / tokens_per_step(trainer),
        .norm = verdict[VERDICT_NORM],
        .lr = learning_rate(&trainer->rate, iteration),
        .halted = verdict[VERDICT_HALTED] != 0,
    };
    tell_step_reported(trainer, iteration, verdict[VERDICT_HALTED] == 0 && isfinite(sum));
}

void add_report(struct trainer *trainer)
{
    int dp = trainer->mesh.dp;
    struct device *host = trainer->machine->host;
    struct tensor *totals = new_kept_work_tensor(trainer->pool, host, "report.totals", SHAPE(dp, UNIT_ALIGN));
    tag_role(trainer->train_list, ROLE_REPORT);
    struct tensor **parts = allocate_each(dp, sizeof *parts);
    struct transfers downloads = {.list = trainer->train_list, .on_host = totals, .context = NONE};
    for (int dp_rank = 0; dp_rank < dp; dp_rank++) {
        struct tensor *total = trainer->rank_losses[dp_rank];
        struct tensor *totals_on_host = tensor_on_host(&downloads, total->device);
        parts[dp_rank] =
            new_view(trainer->pool, totals_on_host, "report.total", (size_t)dp_rank * UNIT_ALIGN, SHAPE(1));
        add_copy(trainer->train_list, total->device->lanes[LANE_DOWNLOAD], "report.loss", parts[dp_rank], total);
    }
    struct tensor *verdict = new_kept_work_tensor(trainer->pool, host, "report.verdict", SHAPE(VERDICT_SIZE));
    struct replica *norm_replica = &trainer->model->replicas[trainer->model->norm_rank];
    add_copy(trainer->train_list, norm_replica->device->lanes[LANE_DOWNLOAD], "report.norm", verdict,
             norm_replica->verdict);
    struct task *task = add_host(trainer->train_list, host->lanes[LANE_REPORT], "report", report_step, trainer);
    trainer->report = task;
    for (int dp_rank = 0; dp_rank < dp; dp_rank++)
        add_access(task, parts[dp_rank], ACCESS_READ);
    add_access(task, verdict, ACCESS_READ);
    free(parts);
}
