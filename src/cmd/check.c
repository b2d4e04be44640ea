/* check.c - yard check: compares with reference numbers made by another program.
 *
 * A reference file is a safetensors file with a model (GPT-2 names), tokens and targets I32 [B,T], and any of: logits,
 * loss, grad.NAME; trajectory [n], the losses before each of n AdamW steps on that batch, and after.NAME, the
 * parameters behind them.  Errors are relative: ||ours - reference|| / ||reference||, both norms over the whole tensor.
 */
#include "../base/table.h"
#include "../train/train.h"
#include "cmd.h"

#include <math.h>

struct checker {
    struct trainer *trainer;
    struct safetensors *file;
    json_t *errors;
    double worst;
    char worst_name[80];
    bool json;
};

static double relative_error(const float *ours, const float *reference, size_t n)
{
    double difference = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        double d = (double)ours[i] - reference[i];
        difference += d * d;
        norm += (double)reference[i] * reference[i];
    }
    return norm > 0 ? sqrt(difference / norm) : sqrt(difference);
}

static void report(struct checker *c, const char *name, double error)
{
    if (!c->json)
        printf("%-36s %9.2e\n", name, fabs(error)); /* (a NaN may carry a sign) */
    json_object_set_new(c->errors, name, number_json(error));
    if (!isnan(c->worst) && !(error <= c->worst)) { /* NaN is the worst, and stays */
        c->worst = error;
        snprintf(c->worst_name, sizeof c->worst_name, "%s", name);
    }
}

/* Compare `ours` (n values) with the file's tensor of that name, if it has one. */
static void compare(struct checker *c, const char *name, const float *ours, size_t n)
{
    const struct st_tensor *t = find_tensor(c->file, name);
    if (!t)
        return;
    if (st_elements(t) != n) {
        char shape[128];
        fail(EXIT_FAILED, "%s: tensor %s has shape %s, expected %zu elements", c->file->file->path, name,
             format_shape(shape, t->rank, t->shape), n);
    }
    float *reference = allocate(n, sizeof *reference);
    read_floats(c->file, t, reference);
    report(c, name, relative_error(ours, reference, n));
    free(reference);
}

/* All parameters, or all gradients, under the file's prefix. */
static void compare_params(struct checker *c, const char *prefix, enum kept role)
{
    struct model *m = c->trainer->model;
    for (int i = 0; i < m->params->n; i++) {
        const struct param *p = &m->params->param[i];
        size_t n = param_elements(p);
        float *values = allocate(n, sizeof *values);
        read_param(m, i, role, values);
        values = turn_conv1d(p, values, true);
        compare(c, JOINED(prefix, p->name), values, n);
        free(values);
    }
}

static void compare_first_step(struct checker *c, double loss)
{
    struct trainer *t = c->trainer;
    float first = (float)loss;
    size_t n = count_elements(t->keep_logits);
    float *logits = allocate(n, sizeof *logits);
    read_tensor(t->keep_logits, logits);
    compare(c, "logits", logits, n);
    compare(c, "loss", &first, 1);
    compare_params(c, "grad.", KEPT_GRADIENT);
    free(logits);
}

/* The first step gives logits, loss and gradients; all of them the trajectory and the parameters after it. */
static void run_steps(struct checker *c)
{
    const struct st_tensor *trajectory = find_tensor(c->file, "trajectory");
    size_t n = trajectory ? st_elements(trajectory) : 1;
    float *losses = allocate(n, sizeof *losses);
    for (size_t i = 0; i < n; i++) {
        run_step(c->trainer, (uint32_t)i + 1);
        losses[i] = (float)step_result(c->trainer, (uint32_t)i + 1)->loss;
        if (i == 0)
            compare_first_step(c, step_result(c->trainer, 1)->loss);
    }
    drain(c->trainer->train);
    compare(c, "trajectory", losses, n);
    if (trajectory)
        compare_params(c, "after.", KEPT_VALUE);
    free(losses);
}

/* ---- the file's batch ------------------------------------------------------------------------------------------ */

static int32_t *read_ids(const struct safetensors *file, const char *name, int vocab)
{
    const struct st_tensor *t = find_tensor(file, name);
    if (!t || t->rank != 2)
        fail(EXIT_FAILED, "%s: a reference file needs tokens and targets, I32 of shape [batch, seq-len]",
             file->file->path);
    size_t n = st_elements(t);
    int32_t *ids = allocate(n, sizeof *ids);
    read_ints(file, t, ids);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= vocab)
            fail(EXIT_FAILED, "%s: element %zu of %s is %d, outside the vocabulary of %d", file->file->path, i, name,
                 ids[i], vocab);
    return ids;
}

static void set_file_batch(struct settings *s, const struct safetensors *file, struct fixed_batch *batch, int vocab)
{
    batch->tokens = read_ids(file, "tokens", vocab);
    batch->targets = read_ids(file, "targets", vocab);
    const struct st_tensor *tokens = find_tensor(file, "tokens"), *targets = find_tensor(file, "targets");
    if (tokens->shape[0] != targets->shape[0] || tokens->shape[1] != targets->shape[1])
        fail(EXIT_FAILED, "%s: tokens and targets have different shapes", file->file->path);
    if (tokens->shape[0] < 1 || tokens->shape[1] < 1 || tokens->shape[0] > 1000000)
        fail(EXIT_FAILED, "%s: tokens have %lld rows of %lld, expected 1 to 1000000 rows of at least 1",
             file->file->path, (long long)tokens->shape[0], (long long)tokens->shape[1]);
    s->batch = (int)tokens->shape[0];
    s->seq_len = (int)tokens->shape[1];
}

/* Plain AdamW steps: the reference has no schedule and no clipping. */
static void set_optimizer(struct settings *s, int steps)
{
    s->schedule = RATE_CONSTANT;
    s->steps = steps;
    s->warmup = 0;
    s->clip = 0;
}

static void finish(struct checker *c, double tolerance)
{
    if (json_object_size(c->errors) == 0)
        fail(EXIT_FAILED,
             "%s has nothing to compare with: expected some of logits, loss, grad.NAME, trajectory, after.NAME",
             c->file->file->path);
    bool passed = c->worst <= tolerance;
    if (c->json) {
        char *path = make_printable(copy_string(c->file->file->path), false);
        json_t *all =
            json_pack("{s:s, s:f, s:o, s:s, s:b, s:O}", "file", path, "tolerance", tolerance, "worst",
                      number_json(c->worst), "worst_tensor", c->worst_name, "passed", passed, "errors", c->errors);
        print_json(all);
        free(path);
    } else
        printf("%s: %zu tensors, the worst is %s with %.2e; tolerance %.1e\n", passed ? "passed" : "FAILED",
               json_object_size(c->errors), c->worst_name, fabs(c->worst), tolerance);
}

int cmd_check(int argc, char **argv)
{
    struct settings *s = parse_settings(CMD_CHECK, argc, argv);
    const char *path = s->reference;
    claim_input("yard check", path);
    struct config config = read_config(path);
    struct checker c = {.file = open_safetensors(path), .errors = json_object(), .json = s->json};
    const struct st_tensor *trajectory = find_tensor(c.file, "trajectory");
    struct fixed_batch batch;
    set_file_batch(s, c.file, &batch, config.vocab);
    size_t steps = trajectory ? st_elements(trajectory) : 1;
    if (steps < 1 || steps > 1000000)
        fail(EXIT_FAILED, "%s: a trajectory of %zu losses, expected 1 to 1000000", path, steps);
    set_optimizer(s, (int)steps);
    if (s->seq_len > config.seq_len)
        fail(EXIT_FAILED, "%s: tokens are longer than the model's %d positions", path, config.seq_len);
    c.trainer = new_trainer_for(s, &config, NULL, LIST_TRAIN | KEEP_LOGITS, false);
    c.trainer->fixed = &batch;
    init_from_file(c.trainer->model, path);
    refuse_bad_parameters(c.trainer->model, path);
    run_steps(&c);
    finish(&c, s->tolerance);
    int code = c.worst <= s->tolerance ? EXIT_OK : EXIT_FAILED;
    free_trainer(c.trainer);
    close_safetensors(c.file);
    json_decref(c.errors);
    free(batch.tokens), free(batch.targets);
    return code;
}
