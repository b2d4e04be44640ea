/* check.c - yard check: compares with reference numbers made by another program.
 *
 * A reference file is a safetensors file with a model (GPT-2 names), tokens and targets I32 [B,T], and any of: logits,
 * loss, grad.NAME; trajectory [n], the losses before each of n AdamW steps on that batch, and after.NAME, the
 * parameters after them.  Errors are relative: ||ours - reference|| / ||reference||, both norms over the whole tensor.
 */
#include "check.h"
#include "planning/console/table.h"
#include "techniques/checkpoint/checkpoint.h"
#include "trainer/cmd/cmd.h"
#include "trainer/model_files/model_files.h"
#include "trainer/train/train.h"

#include <math.h>

enum { MOST_ROWS = 1000000, MOST_STEPS = 1000000 }; /* what a reference file may have */

struct checker {
    struct trainer *trainer;
    struct safetensors *file;
    json_t *errors;
    double worst;
    char worst_name[80];
};

/* Compares `ours` (n values) with the file's tensor of that name, if it has one. */
static void compare_with_file(struct checker *checker, const char *name, const float *ours, size_t n)
{
    const struct st_tensor *stored = find_tensor(checker->file, name);
    if (!stored)
        return;
    char shape[SHAPE_TEXT];
    if (st_elements(stored) != n)
        fail(EXIT_FAILED, "%s: tensor %s has shape %s, expected %zu elements", checker->file->file->path, name,
             format_shape(shape, stored->n_dims, stored->shape), n);
    float *reference = allocate(n, sizeof *reference);
    read_floats(checker->file, stored, reference);
    const struct difference d = compare_floats(ours, reference, n);
    free(reference);

    double error = d.distance;
    if (d.norm > 0)
        error /= d.norm;
    if (!checker->trainer->settings->json)
        printf("%-36s %9.2e\n", name, fabs(error)); /* (a NaN may carry a sign) */
    set_json_number(checker->errors, name, error);
    if (!isnan(checker->worst) && !(error <= checker->worst)) { /* NaN is the worst error, and stays the worst */
        checker->worst = error;
        snprintf(checker->worst_name, sizeof checker->worst_name, "%s", name);
    }
}

/* Compares all parameters, or all gradients, under the file's prefix. */
static void compare_params(struct checker *checker, const char *prefix, enum kept role)
{
    struct model *model = checker->trainer->model;
    for (int i = 0; i < model->params->n; i++) {
        const struct param *param = &model->params->items[i];
        float *values = allocate(param_elements(param), sizeof *values);
        read_param(model, i, role, values);
        values = transpose_conv1d(param, values, OURS_TO_FILE);
        compare_with_file(checker, JOINED(prefix, param->name), values, param_elements(param));
        free(values);
    }
}

static void compare_logits(struct checker *checker)
{
    const struct trainer *trainer = checker->trainer;
    size_t rows = (size_t)rows_of(trainer->kept_logits);
    size_t width = (size_t)columns_of(trainer->kept_logits);
    size_t words = (size_t)trainer->config.vocab;
    float *logits = allocate(rows * width, sizeof *logits);
    read_tensor(trainer->kept_logits, logits);
    for (size_t row = 1; row < rows; row++) /* leaves the padding out */
        memmove(logits + row * words, logits + row * width, words * sizeof *logits);
    compare_with_file(checker, "logits", logits, rows * words);
    free(logits);
}

/* After the first step logits, loss and gradients are compared; after the last one the trajectory, which is all losses,
 * and the parameters. */
static void train_and_compare(struct checker *checker, size_t n)
{
    struct trainer *trainer = checker->trainer;
    float *losses = allocate(n, sizeof *losses);
    for (size_t i = 0; i < n; i++) {
        issue_step(trainer, (uint32_t)i + 1);
        losses[i] = (float)step_result(trainer, (uint32_t)i + 1)->loss;
        if (i > 0)
            continue;
        compare_logits(checker);
        compare_with_file(checker, "loss", losses, 1);
        compare_params(checker, "grad.", KEPT_GRADIENT);
    }
    drain(trainer->train_list);
    compare_with_file(checker, "trajectory", losses, n);
    if (find_tensor(checker->file, "trajectory"))
        compare_params(checker, "after.", KEPT_VALUE);
    free(losses);
}

/* Refuses parameters after steps that nobody has counted: the length of the trajectory is their number. */
static void expect_trajectory(const struct safetensors *file, const char *path)
{
    if (find_tensor(file, "trajectory"))
        return;
    for (size_t i = 0; i < file->n; i++)
        if (begins_with(file->tensors[i].name, "after."))
            fail(EXIT_FAILED,
                 "%s has %s, a tensor after some steps, but no trajectory, which says after how many: "
                 "add a trajectory",
                 path, file->tensors[i].name);
}

/* ---- the file's batch -------------------------------------------------------------------------------------------- */

static int32_t *read_ids(const struct safetensors *file, const char *name, int vocab)
{
    const struct st_tensor *stored = find_tensor(file, name);
    if (!stored || stored->n_dims != 2)
        fail(EXIT_FAILED, "%s: a reference file needs tokens and targets, I32 of shape [batch, seq-len]",
             file->file->path);
    size_t n = st_elements(stored);
    int32_t *ids = allocate(n, sizeof *ids);
    read_ints(file, stored, ids);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= vocab)
            fail(EXIT_FAILED, "%s: element %zu of %s is %d, outside the vocabulary of %d", file->file->path, i, name,
                 ids[i], vocab);
    return ids;
}

/* Sets the training's sizes to those of the file's tokens. */
static void take_shape(struct settings *settings, const struct safetensors *file, const char *path, int positions)
{
    const struct st_tensor *tokens = find_tensor(file, "tokens");
    const struct st_tensor *targets = find_tensor(file, "targets");
    char text[SHAPE_TEXT];
    int64_t rows = tokens->shape[0], length = tokens->shape[1];
    if (rows != targets->shape[0] || length != targets->shape[1])
        fail(EXIT_FAILED, "%s: tokens and targets have different shapes", path);
    bool fits = rows >= 1 && rows <= MOST_ROWS && length >= 1 && length <= positions;
    if (!fits)
        fail(EXIT_FAILED, "%s: tokens have shape %s, expected 1 to %d rows of 1 to %d, the model's positions", path,
             format_shape(text, 2, tokens->shape), MOST_ROWS, positions);
    settings->batch = (int)rows;
    settings->seq_len = (int)length;
}

static size_t count_steps(const struct safetensors *file, const char *path)
{
    const struct st_tensor *trajectory = find_tensor(file, "trajectory");
    size_t steps = trajectory ? st_elements(trajectory) : 1;
    if (steps < 1 || steps > MOST_STEPS)
        fail(EXIT_FAILED, "%s: a trajectory of %zu losses, expected 1 to %d", path, steps, MOST_STEPS);
    return steps;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

struct check_options asked_check;

/* The reference's optimizer. */
static void take_defaults(struct settings *settings)
{
    settings->beta2 = 0.95;
    settings->eps = 1e-5;
}

static const struct usage usage = {
    .name = "check",
    .takes = "FILE|--gradients [options]",
    .examples = "reference.safetensors --tolerance 1e-4\n"
                "--gradients\n",
    .text = "FILE has numbers that another program computed (see tutorials/reference-files.md). Check computes the "
            "same numbers, and prints the relative error of every tensor. The exit code is 1 if an error is above "
            "--tolerance.",
    .classes = OF_RUN,
    .also = "heads lr beta1 beta2 eps weight-decay serial audit json tolerance gradients",
    .defaults = take_defaults,
    .takes_file = true};

/* Trains on the file's batch, and compares. */
static void compare_file(struct checker *checker, struct settings *settings, const char *path)
{
    refuse_if_folder(path, "a file of reference numbers (see tutorials/reference-files.md)");
    struct config config = read_config(path, given_heads());
    expect_heads(&config, path);
    checker->file = open_safetensors(path);
    int32_t *tokens = read_ids(checker->file, "tokens", config.vocab);
    int32_t *targets = read_ids(checker->file, "targets", config.vocab);
    take_shape(settings, checker->file, path, config.seq_len);
    expect_trajectory(checker->file, path);
    size_t steps = count_steps(checker->file, path);
    settings->schedule = RATE_CONSTANT; /* plain AdamW steps: the reference has no schedule and no clipping */
    settings->steps = (int)steps;
    settings->warmup = 0;
    settings->clip = 0;
    checker->trainer = new_trainer_for(settings, &config, NULL, LIST_TRAIN | KEEP_LOGITS);
    checker->trainer->extra.fixed_tokens = tokens;
    checker->trainer->extra.fixed_targets = targets;
    init_from_file(checker->trainer->model, path);
    train_and_compare(checker, steps);
    free_trainer(checker->trainer);
    free(tokens);
    free(targets);
    close_safetensors(checker->file);
}

static void print_errors_json(const struct checker *checker, const char *file, bool passed)
{
    json_t *all = json_object();
    set_json_text(all, "file", file);
    json_object_set_new(all, "tolerance", json_real(asked_check.tolerance));
    set_json_number(all, "worst", checker->worst);
    set_json_text(all, "worst_tensor", checker->worst_name);
    set_json_truth(all, "passed", passed);
    json_object_set_new(all, "errors", json_incref(checker->errors));
    print_json(all);
}

/* Prints the worst error, or with --json all errors; returns whether the check has passed. */
static bool print_errors(const struct checker *checker, const char *path, bool as_json)
{
    size_t n = json_object_size(checker->errors);
    bool passed = checker->worst <= asked_check.tolerance;
    if (n == 0)
        fail(EXIT_FAILED,
             "%s has nothing to compare with: expected some of logits, loss, grad.NAME, trajectory (with after.NAME)",
             path);
    char *file = make_printable(copy_string(path), ONE_LINE);
    if (as_json)
        print_errors_json(checker, file, passed);
    else
        print_line(stdout, "%s: %zu tensors, the worst is %s with %.2e; tolerance %.1e", passed ? "passed" : "FAILED",
                   n, checker->worst_name, fabs(checker->worst), asked_check.tolerance);
    free(file);
    return passed;
}

static enum exit_code run_check(int argc, char **argv)
{
    struct settings *settings = parse_settings(&usage, argc, argv);
    const char *path = settings->file;
    int n_files = asked_check.gradients ? 0 : 1;
    if (settings->n_files != n_files)
        fail(EXIT_USAGE, "check takes one reference file, such as tests/data/gpt2-tiny.safetensors, or --gradients "
                         "and no file");
    settings->demands.one_device = "check";
    if (asked_check.gradients)
        return check_gradients(settings);
    claim_input("check", path);
    struct checker checker = {.errors = json_object()};
    compare_file(&checker, settings, path);
    bool passed = print_errors(&checker, path, settings->json);
    json_decref(checker.errors);
    return passed ? EXIT_OK : EXIT_FAILED;
}

static const struct subcommand command = {
    .help_place = 40,
    .name = "check",
    .help = "compare with reference numbers made by another program",
    .run = run_check,
    .foreign = "verify",
};

/* Does the option make sense beside --gradients? */
static bool fits_gradients(const struct option *option)
{
    static const char *const unfit[] = {"serial", "view", "heads", NULL};
    return choice_number(unfit, option->name) < 0 && strcmp(option->group, GROUP_TRAINING) != 0;
}

static void check_gradients_options(void)
{
    if (!asked_check.gradients)
        return;
    const char *unfit = first_unfit(fits_gradients);
    if (unfit)
        fail(EXIT_USAGE,
             "--gradients takes a model of its own, updates nothing, and runs each task alone: leave --%s out", unfit);
}

static const struct option options[] = {
    {.name = "gradients",
     .type = OPT_FLAG,
     .value = &asked_check.gradients,
     .group = "Checking",
     .classes = 0, /* only a usage that names it takes it */
     .help = "compare the backward of every operation with differences of its forward, on a small model with "
             "random values, instead of a FILE. The worst element of the gradient of each input is shown"},
    {.name = "tolerance",
     .type = OPT_DOUBLE,
     .value = &asked_check.tolerance,
     .initial = "1e-5",
     .argument = "X",
     .low = 0,
     .high = 1,
     .group = "Checking",
     .classes = 0, /* only a usage that names it takes it */
     .help = "largest relative error; with --gradients the default is 1e-4"},
};
const struct module module_check = {
    .name = "check",
    .needs = "console checkpoint",
    .commands = &command,
    .n_commands = 1,
    .options = options,
    .n_options = COUNT(options),
    .check = check_gradients_options,
};
