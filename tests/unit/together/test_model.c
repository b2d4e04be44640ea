/* test_model.c - the whole model: loss, gradients and updates.
 *
 * It tests src/trainer/model with all kernels.  It checks that gradients are those of finite differences, that loss,
 * gradients and ten updates of a small GPT-2 are PyTorch's, and that the losses of llm.c's model are llm.c's.  It
 * catches a wrong derivative, a term that is left out, and weights that are read in another order.
 *
 * To see it fail: in layernorm.cl, let LAYERNORM_EPS be 1e-4f.
 *
 * The expected numbers are in tests/data: PyTorch made gpt2-tiny.safetensors in 64-bit floats, and llm.c made
 * llmc-tiny.bin.
 */
#include "planning/lists/lists.h"
#include "planning/predict/plan.h"
#include "planning/predict/predict.h"
#include "tests/support/support.h"
#include "trainer/model_files/model_files.h"

#include <math.h>

static const struct config small = {.layers = 1, .heads = 4, .channels = 32, .seq_len = 16, .vocab = 64, .tied = true};

/* ---- engines ----------------------------------------------------------------------------------------------------- */

/* The second device runs one work-item at a time, so its product is a kernel of ours.  That of the first device is
 * CLBlast's. */
TEST(each_device_has_its_engine)
{
    struct costs *costs = read_costs("data/hardware/server.txt");
    struct machine *machine = virtual_machine(costs, 2);
    struct mesh two = one_rank;
    two.dp = 2;
    machine->devices[1].shape.one_item = true;
    struct pool *pool = new_pool(machine);
    struct model *model = new_model(pool, &small, &two, TO_COMPUTE, (struct gradients){0});
    struct list *list = new_list(pool, "engines");
    struct builder b = make_builder(list, model, (struct kernels){.gemm = GEMM_AUTO}, 1, 16);
    bool is_own_kernel[2];
    for (int rank = 0; rank < 2; rank++) {
        on_rank(&b, rank, 0, ROLE_FORWARD);
        linear(&b, "head", activation(&b, "x", SHAPE(16, 32)), b.replica->unlayered[HEAD], (struct weight){0});
        is_own_kernel[rank] = list->tasks[list->n - 1]->action == ACT_KERNEL;
    }
    assert_false(is_own_kernel[0]);
    assert_true(is_own_kernel[1]);
    end_build(&b);
    free_model(model);
    free_list_and_machine(list);
    free_costs(costs);
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

/* The bytes that tasks read and write count, not the size of their tensors: the embedding is looked up, and half of a
 * causal matrix is never touched. */
TEST(bytes_are_those_touched)
{
    enum { B = 3, T = 16, C = 32, H = 2, V = 64 };
    double half = B * H * T * T / 2.0;
    const struct {
        const char *name;
        double floats;
    } expected[] = {{"embed", C * (2 * B * T + T)},        {"attn.qkv", B * T * C + 3 * C * C + B * T * 3 * C},
                    {"attn.scores", 2 * B * T * C + half}, {"attn.softmax", 3 * half},
                    {"attn.mix", half + 2 * B * T * C},    {"attn.residual", 3 * B * T * C}};
    struct settings *settings = parse_settings(&train_usage, 0, NULL);
    settings->layers = 1;
    settings->heads = H;
    settings->channels = C;
    settings->seq_len = T;
    settings->vocab = V;
    settings->batch = B;
    struct trainer *trainer = plan_training(settings, LIST_TRAIN);
    for (size_t k = 0, i = 0; k < COUNT(expected); k++) {
        while (i < trainer->train_list->n && strcmp(trainer->train_list->tasks[i]->name, expected[k].name) != 0)
            i++;
        assert_below(i, trainer->train_list->n);
        if ((double)trainer->train_list->tasks[i]->bytes != 4 * expected[k].floats)
            test_failed("%s: %zu bytes, expected %.0f\n", expected[k].name, trainer->train_list->tasks[i]->bytes,
                        4 * expected[k].floats);
    }
    free_trainer(trainer);
}

/* ---- finite differences ------------------------------------------------------------------------------------------ */

struct study { /* a small model, one batch, and its gradient */
    struct trainer *trainer;
    struct {
        int32_t *tokens, *targets;
    } batch;
    uint32_t number; /* steps run so far */
};

struct sizes {
    struct config config;
    int batch, seq;
    enum gemm_engine gemm;
};

/* With lr 0 a step leaves the parameters as they are. */
static struct settings *still_settings(const struct sizes *sizes)
{
    struct settings *settings = parse_settings(&train_usage, 0, NULL);
    settings->batch = sizes->batch;
    settings->seq_len = sizes->seq;
    settings->schedule = RATE_CONSTANT;
    settings->lr = settings->lr_min = 0;
    settings->warmup = 0;
    settings->kernels.gemm = sizes->gemm;
    settings->serial = true;
    return settings;
}

static int32_t *random_ids(int n, int below, uint64_t seed)
{
    int32_t *ids = allocate((size_t)n, sizeof *ids);
    for (int i = 0; i < n; i++)
        ids[i] = (int32_t)(random_words(seed, STREAM_TEST, 3, (uint64_t)i).word[0] % (unsigned)below);
    return ids;
}

static size_t elements_of(const struct param *param) { return (size_t)(param->shape[0] * param->shape[1]); }

/* Far from the first values of training, so that no part of the gradient is small: weights of about 0.3, and
 * LayerNorm's between 0.5 and 1.5. */
static void set_parameters(struct model *model)
{
    for (int i = 0; i < model->params->n; i++) {
        const struct param *param = &model->params->items[i];
        float *values = random_floats(elements_of(param), 100 + (uint64_t)i);
        for (size_t k = 0; k < elements_of(param); k++)
            values[k] = values[k] * 0.3f + (param->init == INIT_ONE ? 1.0f : 0.0f);
        write_param(model, i, KEPT_VALUE, values);
        free(values);
    }
}

static struct study new_study(const struct sizes *sizes)
{
    struct study study = {.number = 0};
    study.batch.tokens = random_ids(sizes->batch * sizes->seq, sizes->config.vocab, 1);
    study.batch.targets = random_ids(sizes->batch * sizes->seq, sizes->config.vocab, 2);
    study.trainer = new_trainer_for(still_settings(sizes), &sizes->config, NULL, LIST_TRAIN | KEEP_LOGITS);
    set_parameters(study.trainer->model);
    return study;
}

static void free_study(struct study *study)
{
    free_trainer(study->trainer);
    free(study->batch.tokens);
    free(study->batch.targets);
}

static double row_loss(const float *logits, int vocab, int target)
{
    double max = -INFINITY, sum = 0;
    for (int v = 0; v < vocab; v++)
        max = logits[v] > max ? logits[v] : max;
    for (int v = 0; v < vocab; v++)
        sum += exp(logits[v] - max);
    return max + log(sum) - logits[target];
}

/* The mean loss in double precision from the model's float logits: rounding is then that of the logits alone. */
static double run_for_loss(struct study *study)
{
    struct trainer *trainer = study->trainer;
    trainer->extra.fixed_tokens = study->batch.tokens;
    trainer->extra.fixed_targets = study->batch.targets;
    study->number++;
    issue_step(trainer, study->number);
    double reported = step_result(trainer, study->number)->loss, sum = 0;
    int n = rows_of(trainer->kept_logits), width = columns_of(trainer->kept_logits);
    float *logits = allocate((size_t)(n * width), sizeof *logits);
    read_tensor(trainer->kept_logits, logits);
    for (int i = 0; i < n; i++)
        sum += row_loss(logits + i * width, trainer->config.vocab, study->batch.targets[i]);
    free(logits);
    assert_close(sum / n, reported, 1e-5);
    return sum / n;
}

/* Loss at parameter tensor p = value + h * direction. */
static double loss_at(struct study *study, int p, const float *value, const double *direction, double h)
{
    size_t n = elements_of(&study->trainer->model->params->items[p]);
    float *moved = allocate(n, sizeof *moved);
    for (size_t i = 0; i < n; i++)
        moved[i] = (float)(value[i] + h * direction[i]);
    write_param(study->trainer->model, p, KEPT_VALUE, moved);
    free(moved);
    return run_for_loss(study);
}

/* Central differences of two widths, combined so that the error of third order drops out. */
static double slope(struct study *study, int p, const float *value, const double *direction, double h)
{
    double narrow = (loss_at(study, p, value, direction, h) - loss_at(study, p, value, direction, -h)) / (2 * h);
    double wide = (loss_at(study, p, value, direction, 2 * h) - loss_at(study, p, value, direction, -2 * h)) / (4 * h);
    write_param(study->trainer->model, p, KEPT_VALUE, value);
    return (4 * narrow - wide) / 3;
}

/* The logits carry relative errors of some 1e-7, hence the loss an error of about 1e-7 and its slope of 1e-7 / h, which
 * is 1e-5 here; what remains of fourth order in h is below.  Directions have length 1. */
static void check_slope(struct study *study, int p, const float *value, const float *gradient, const double *direction,
                        const char *kind)
{
    const struct param *param = &study->trainer->model->params->items[p];
    double expected = 0, found = slope(study, p, value, direction, 0.01);
    for (size_t i = 0; i < elements_of(param); i++)
        expected += direction[i] * gradient[i];
    if (!(fabs(found - expected) <= 4e-5 + 1e-3 * fabs(expected)))
        test_failed("%s, %s: the loss changes by %.9g, the gradient says %.9g\n", param->name, kind, found, expected);
}

static void normalise(double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    for (size_t i = 0; i < n; i++)
        x[i] /= sqrt(sum);
}

/* Along the gradient, along two random directions, and along single parameters, the one of the steepest among them. */
static void check_parameter(struct study *study, int p)
{
    struct model *model = study->trainer->model;
    size_t n = elements_of(&model->params->items[p]), steepest = 0;
    float *value = allocate(n, sizeof *value), *gradient = allocate(n, sizeof *gradient);
    double *direction = allocate(n, sizeof *direction);
    double norm = 0;
    read_param(model, p, KEPT_VALUE, value);
    run_for_loss(study);
    read_param(model, p, KEPT_GRADIENT, gradient);
    for (size_t i = 0; i < n; i++) {
        direction[i] = gradient[i];
        norm += direction[i] * direction[i];
        steepest = fabsf(gradient[i]) > fabsf(gradient[steepest]) ? i : steepest;
    }
    assert_above(norm, 0);
    normalise(direction, n);
    check_slope(study, p, value, gradient, direction, "along the gradient");
    for (uint32_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < n; i++)
            direction[i] = random_normal(5 + k, STREAM_TEST, (uint32_t)p, i);
        normalise(direction, n);
        check_slope(study, p, value, gradient, direction, "along a random direction");
    }
    for (uint32_t k = 0; k < 3; k++) {
        size_t single = k ? random_words(6, STREAM_TEST, (uint32_t)p, k).word[0] % n : steepest;
        memset(direction, 0, n * sizeof *direction);
        direction[single] = 1;
        check_slope(study, p, value, gradient, direction, "one parameter");
    }
    free(value);
    free(gradient);
    free(direction);
}

static void check_model(const struct sizes *sizes)
{
    struct study study = new_study(sizes);
    for (int p = 0; p < study.trainer->model->params->n; p++)
        check_parameter(&study, p);
    free_study(&study);
}

TEST(gradients_of_a_tied_model_are_right)
{
    need_own_products();
    const struct config tied = {.layers = 2, .heads = 5, .channels = 20, .seq_len = 9, .vocab = 67, .tied = true};
    check_model(&(struct sizes){.config = tied, .batch = 3, .seq = 7, .gemm = GEMM_OWN});
}

/* The head of the larger vocabulary has padding. */
TEST(gradients_of_an_untied_model_are_right)
{
    need_own_products();
    static const int vocab[] = {13, 127};
    for (size_t i = 0; i < COUNT(vocab); i++) {
        const struct config untied = {.layers = 1, .heads = 3, .channels = 33, .seq_len = 11, .vocab = vocab[i]};
        check_model(&(struct sizes){.config = untied, .batch = 2, .seq = 11, .gemm = GEMM_OWN});
    }
}

TEST(gradients_of_the_smallest_model_are_right)
{
    need_own_products();
    const struct config smallest = {.layers = 1, .heads = 1, .channels = 3, .seq_len = 1, .vocab = 2, .tied = true};
    check_model(&(struct sizes){.config = smallest, .batch = 1, .seq = 1, .gemm = GEMM_OWN});
}

TEST(gradients_with_clblast_are_right)
{
    static const int vocab[] = {17, 127};
    for (size_t i = 0; i < COUNT(vocab); i++) {
        const struct config tied = {
            .layers = 1, .heads = 2, .channels = 12, .seq_len = 5, .vocab = vocab[i], .tied = true};
        check_model(&(struct sizes){.config = tied, .batch = 2, .seq = 5, .gemm = GEMM_CLBLAST});
    }
}

/* ---- reference numbers ------------------------------------------------------------------------------------------- */

static void expect_reference(const char *more)
{
    struct ran ran = run_yard("check tests/data/gpt2-tiny.safetensors --tolerance 1e-5 --json %s", more);
    json_t *all = json_loads(ran.out, 0, NULL);
    if (ran.code != EXIT_OK || !json_is_true(json_object_get(all, "passed")))
        test_failed("check %s: exit code %d\n%s%s\n", more, ran.code, ran.out, ran.err);
    /* 28 parameters, each with a gradient and a value after the steps; logits, loss, trajectory */
    assert_int_equal(json_object_size(json_object_get(all, "errors")), 2 * 28 + 3);
    assert_above(number_at(all, "worst"), 0);
    json_decref(all);
}

TEST(pytorchs_numbers_are_met)
{
    expect_reference("");
    expect_reference("--serial --audit");
    expect_reference("--gemm clblast");
}

TEST(check_fails_above_the_tolerance)
{
    struct ran ran =
        expect_yard(EXIT_FAILED, "FAILED: 59 tensors", "check tests/data/gpt2-tiny.safetensors --tolerance 1e-9");
    /* This optimizer is not the reference's. */
    ran = run_yard("check tests/data/gpt2-tiny.safetensors --beta2 0.9 --json");
    assert_int_equal(ran.code, EXIT_FAILED);
    assert_contains(ran.out, "\"passed\": false");
}

TEST(llmcs_losses_are_met)
{
    /* Losses that llm.c's own program for CPUs prints when it trains from these two files. */
    static const double losses[] = {5.5520167, 5.3506155, 5.2154417, 5.1142387, 5.0335608, 4.9265060,
                                    4.8317766, 4.7630773, 4.7331305, 4.6235523, 4.5511670};
    const char *log = temp_path("llmc.jsonl");
    struct ran ran =
        run_yard("train --init tests/data/llmc-tiny.bin --data tests/data/llmc-tokens.bin --batch 4 --seq-len "
                 "64 --steps 11 --lr 1e-3 --beta2 0.999 --weight-decay 0 --clip 0 --schedule constant "
                 "--order file --log '%s'",
                 log);
    if (ran.code != EXIT_OK)
        test_failed("exit code %d: %s\n", ran.code, ran.err);
    char line[8192];
    FILE *file = fopen(log, "r");
    size_t n = 0;
    while (fgets(line, sizeof line, file)) {
        json_t *json = json_loads(line, 0, NULL), *loss = json_object_get(json, "loss");
        if (loss && n < COUNT(losses) && !(fabs(json_number_value(loss) - losses[n]) < 1e-4))
            test_failed("step %zu: loss %.7f, llm.c has %.7f\n", n + 1, json_number_value(loss), losses[n]);
        if (loss)
            n++;
        json_decref(json);
    }
    fclose(file);
    assert_int_equal(n, COUNT(losses));
}

/* The vocabulary of llm.c's file is padded. */
TEST(llmc_padding_rows_are_left_out)
{
    enum { MAGIC = 20240326, VERSION = 3, T = 2, V = 3, L = 1, H = 1, C = 1, PADDED_V = 4 };
    int32_t file[256 + 33] = {MAGIC, VERSION, T, V, L, H, C, PADDED_V};
    float *values = (float *)(file + 256);
    float wte[V], wpe[T];
    float ln_1;
    for (int i = 0; i < 33; i++)
        values[i] = (float)i;
    struct writer *writer = open_writer(temp_path("pad.bin"));
    write_bytes(writer, file, sizeof file);
    must(publish(writer));
    struct machine *machine = open_machine(&(struct machine_options){0});
    struct pool *pool = new_pool(machine);
    const struct config config = {.layers = L, .heads = H, .channels = C, .seq_len = T, .vocab = V, .tied = true};
    struct model *model = new_model(pool, &config, &one_rank, TO_COMPUTE, (struct gradients){0});
    struct list *list = new_list(pool, "none");
    must(finish_lists(pool, &list, 1));
    init_from_file(model, temp_path("pad.bin"));
    read_param(model, WTE, KEPT_VALUE, wte);
    read_param(model, WPE, KEPT_VALUE, wpe);
    read_param(model, 2 + LN1_W, KEPT_VALUE, &ln_1);
    /* value i of the file is i: four rows of wte, the last of which is padding, two of wpe, then ln_1 */
    assert_close(wte[V - 1], V - 1, 0);
    assert_close(wpe[0], PADDED_V, 0);
    assert_close(wpe[1], PADDED_V + 1, 0);
    assert_close(ln_1, PADDED_V + T, 0);
    free_model(model);
    free_list_and_machine(list);
}

/* ---- yard check --gradients -------------------------------------------------------------------------------------- */

static struct ran check_gradients_with(const char *edits)
{
    static int number;
    number++;
    char *folder = format_string("%s.%d", temp_path("kernels"), number);
    char *line = format_string("cp -r cl '%s' && cd '%s' && %s", folder, folder, edits);
    assert_int_equal(system(line), 0); /* NOLINT */
    setenv("YARD_KERNELS", folder, 1);
    struct ran ran = run_yard("check --gradients --json");
    unsetenv("YARD_KERNELS");
    free(folder);
    free(line);
    return ran;
}

static bool is_among(const char *const *all, const char *operation, const char *of)
{
    for (; *all; all++)
        if (strcmp(*all, JOINED(operation, JOINED(" ", of))) == 0)
            return true;
    return false;
}

/* Each edit makes exactly these gradients wrong, and no others. */
static void expect_wrong_gradients(int code, const char *edits, const char *const *wrong)
{
    struct ran ran = check_gradients_with(edits);
    json_t *all = json_load_file(ran.stdout_path, 0, NULL), *row;
    size_t i, n = 0;
    assert_int_equal(ran.code, code);
    json_array_foreach(json_at(all, "gradients"), i, row)
    {
        const char *operation = text_at(row, "operation"), *of = text_at(row, "of");
        const json_t *error = json_at(row, "error"); /* null: not a number */
        bool right = json_is_number(error) && json_number_value(error) <= number_at(all, "tolerance"),
             bad = is_among(wrong, operation, of);
        if (right == bad)
            test_failed("%s: the gradient of %s in %s is found %s\n", edits, of, operation, right ? "right" : "wrong");
        n += bad;
    }
    assert_int_equal(i, 32); /* of all operations of one layer, the embedding, the head and the loss */
    for (i = 0; wrong[i]; i++)
        n--;
    assert_int_equal(n, 0);
    json_decref(all);
}

LONG_TEST(gradients_that_are_wrong_are_named)
{
    static const char *const idle[] = {"--serial", "--audit --serial", "--view", "--lr 1", "--beta1 0.5", "--eps 1"};
    for (size_t i = 0; i < COUNT(idle); i++)
        expect_yard(EXIT_USAGE, "--gradients takes a model of its own, updates nothing", "check --gradients %s",
                    idle[i]);
    assert_int_equal(run_yard("check --gradients --tolerance 0").code,
                     EXIT_FAILED); /* rounding alone makes a larger error */
    expect_wrong_gradients(EXIT_OK, "true", (const char *const[]){NULL});
    expect_wrong_gradients(
        EXIT_FAILED,
        "sed -i 's/used = t < T ? B/used = t < T ? B - 1/' embed.cl &&" /* a sequence is left out */
        "sed -i 's/ - norm . mean_g_norm//; s/fma(d, norm, sum_w/fma(d, norm * 1.001f, sum_w/' layernorm.cl &&"
        "sed -i 's/i, live - i, 0) . d . scale/i, live - i, 0) * d/' softmax.cl &&"
        "sed -i 's/(3 . GELU_CUBIC)/GELU_CUBIC/' gelu.cl &&"
        "sed -i 's/accumulate && ADDS ? load(db/0 ? load(db/' elementwise.cl &&" /* it always starts anew */
        "sed -i 's/(p - onehot)/(p - 0.999f * onehot)/' loss.cl",
        (const char *const[]){"embed wpe.weight", "attn.ln h.0.ln_1.weight", "attn.ln embed",
                              "attn.qkv h.0.attn.c_attn.bias", "attn.mix attn.qkv", "attn.proj h.0.attn.c_proj.bias",
                              "mlp.ln h.0.ln_2.weight", "mlp.ln attn.residual", "mlp.fc h.0.mlp.c_fc.bias",
                              "mlp.gelu mlp.fc", "mlp.proj h.0.mlp.c_proj.bias", "final.ln ln_f.weight",
                              "final.ln mlp.residual", "loss head", NULL});
    /* not a number; and what was there before the first backward is added */
    expect_wrong_gradients(
        EXIT_FAILED,
        "sed -i 's/store(load(dout + i, end - i, 0)/store(sqrt((vec)-1)/' gelu.cl &&"
        "sed -i 's/if (accumulate)/if (1)/' embed.cl && sed -i 's/onehot) . scale/onehot)/' loss.cl",
        (const char *const[]){"embed wte.weight", "embed wpe.weight", "mlp.gelu mlp.fc", "loss head", NULL});
}

LONG_TEST(check_gradients_says_the_first_wrong_operation)
{
    expect_yard(EXIT_OK, "passed: 32 gradients", "check --gradients --gemm clblast --vector 1");
    expect_yard(EXIT_FAILED, "FAILED: attn.ln is the first operation with an error above",
                "check --gradients "
                "--tolerance 1e-9");
}

/* State that tensor-parallel ranks share comes from the group's first, where they compute in another way. */
TEST(unlike_ranks_agree)
{
    struct costs *costs = read_costs("data/hardware/server.txt");
    struct machine *machine = virtual_machine(costs, 3);
    struct mesh three = one_rank;
    three.tp = 3;
    machine->devices[2].shape.vector = machine->devices[0].shape.vector + 4;
    struct pool *pool = new_pool(machine);
    struct model *model = new_model(pool, &small, &three, TO_TRAIN, (struct gradients){0});
    struct list *list = new_list(pool, "agree");
    struct builder b = make_builder(list, model, (struct kernels){.gemm = GEMM_OWN}, 1, 16);
    send_unit(&b, 1);
    reduce_unit(&b, 1);
    const struct access *access = list->tasks[1]->accesses; /* it comes after the download */
    const struct params *first = model->parts[0], *last = model->parts[2];
    assert_int_equal(list->n, 2);
    assert_ptr_equal(access[0].tensor->storage, model->replicas[2].grads[1]);
    int ln_1 = last->units[1].first_param + 4; /* the first of those that are not cut */
    assert_string_equal(last->items[ln_1].name, "h.0.ln_1.weight");
    assert_int_equal(access[0].tensor->offset, last->items[ln_1].offset * ELEMENT_BYTES);
    assert_int_equal(list->tasks[0]->accesses[1].tensor->offset, first->items[ln_1].offset * ELEMENT_BYTES);
    end_build(&b);
    free_model(model);
    free_list_and_machine(list);
    free_costs(costs);
}
