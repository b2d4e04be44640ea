/* test_train_finite.c - numbers that are not finite: in a step, in a model that is to be saved, and in a file.
 *
 * It tests src/trainer/train and src/tools/finite.  It checks that a step whose loss or norm is not finite changes
 * nothing, and that its cause is named; that a model with such a value is not saved, and a file with one is refused.
 * It catches a step that spoils the parameters or Adam's state, a sound model that is replaced by a spoilt one, and a
 * sentence about the wrong tensor.
 *
 * To see it fail: in after_step.c, save without a look at the parameters: NULL for find_not_finite_parameter().
 *
 * Training itself makes no such models.  So the test trains or draws a model, and then overwrites one of its values.
 */
#include "techniques/checkpoint/resume.h"
#include "tests/support/support.h"
#include "tests/support/support_training.h"
#include "tools/ckpt/model_forms.h"

#include <math.h>

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static void poke(struct trainer *trainer, const char *name, size_t at, float value)
{
    for (int i = 0; i < trainer->model->params->n; i++) {
        const struct param *param = &trainer->model->params->items[i];
        if (strcmp(param->name, name) != 0)
            continue;
        float *values = allocate((size_t)(param->shape[0] * param->shape[1]), sizeof *values);
        read_param(trainer->model, i, KEPT_VALUE, values);
        values[at] = value;
        write_param(trainer->model, i, KEPT_VALUE, values);
        free(values);
        return;
    }
    test_failed("there is no parameter %s\n", name);
}

/* Two steps that change neither parameters nor Adam's state; what is known of the first. */
static const struct result *end_bad_steps(struct trainer *trainer, uint32_t number, struct state *before)
{
    issue_step(trainer, number);
    issue_step(trainer, number + 1);
    const struct result *result = step_result(trainer, number);
    drain(trainer->train_list);
    struct state after = read_state(trainer, 0);
    expect_same_bits("state after bad steps", after.values, before->values, before->n);
    expect_equal_replicas(trainer, "replica");
    free(before->values);
    free(after.values);
    return result;
}

/* Two good steps, then an infinite weight: the steps from there on change nothing. */
TEST(a_bad_step_changes_nothing)
{
    struct trainer *trainer = open_tiny_training(lasting("-d %s", two_devices()));
    run_steps(trainer, 1, 2);
    poke(trainer, "h.1.mlp.c_fc.weight", 5, INFINITY);
    struct state before = read_state(trainer, 0);
    const struct result *result = end_bad_steps(trainer, 3, &before);
    assert_true(result->halted);
    assert_true(!isfinite(result->norm));
    free_trainer(trainer);
}

/* An infinite loss with gradients that are finite: the fault of a kernel that someone has changed. */
TEST(a_bad_loss_changes_nothing)
{
    const char *folder = temp_path("kernels");
    char *line =
        lasting("cp -r cl '%s' && sed -i 's/total.0. = sum/total[0] = sum + INFINITY/' '%s/loss.cl'", folder, folder);
    assert_int_equal(system(line), 0); /* NOLINT */
    setenv("YARD_KERNELS", folder, 1);
    const char *devices[] = {"0:0", two_devices()};
    for (size_t i = 0; i < COUNT(devices); i++) {
        struct trainer *trainer = open_tiny_training(lasting("-d %s", devices[i]));
        struct state before = read_state(trainer, 0);
        const struct result *result = end_bad_steps(trainer, 1, &before);
        assert_true(result->halted);
        assert_true(isfinite(result->norm));
        assert_true(!isfinite(result->loss));
        free_trainer(trainer);
    }
    unsetenv("YARD_KERNELS");
}

/* ---- models and files -------------------------------------------------------------------------------------------- */

/* Overwrites n floats of a tensor in a file. */
static void poke_file(const char *path, const char *name, size_t at, size_t n, float value)
{
    struct safetensors *st = open_safetensors(path);
    const struct st_tensor *tensor = find_tensor(st, name);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_non_null(tensor);
    assert_at_most(at + n, st_elements(tensor));
    assert_int_equal(fseek(file, (long)(tensor->offset + at * sizeof value), SEEK_SET), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(fwrite(&value, sizeof value, 1, file), 1);
    fclose(file);
    close_safetensors(st);
}

/* A file with a model of which n floats are `value`; training itself would not save such a thing. */
static void save_with(const char *path, const char *words, const char *name, size_t at, size_t n, float value)
{
    struct trainer *trainer = open_tiny_training(words);
    struct checkpoint *made = new_checkpoint(trainer, 0);
    char *folder = lasting("%s.saved", path);
    make_folder(folder);
    save_checkpoint(trainer->model, folder, made);
    struct checkpoint *saved = open_checkpoint(made->path);
    export_safetensors(saved, path, PLAIN_NAMES);
    free_checkpoint(made);
    free_checkpoint(saved);
    free_trainer(trainer);
    poke_file(path, name, at, n, value);
}

/* A finite weight whose products are infinite: such a file is read. */
TEST(the_culprit_is_named)
{
    const char *path = temp_path("steep.safetensors");
    save_with(path, "", "h.1.mlp.c_fc.weight", 7, 32, 3e38f);
    const char *modes[] = {"", "--serial", "-d 0:0x2", "--micro-batch 1"};
    for (size_t i = 0; i < COUNT(modes); i++) {
        struct ran ran = expect_yard(EXIT_FAILED, "step 1, task mlp.fc (layer 1, micro-batch 0): element ",
                                     "train --init '%s' --batch 4 --steps 3 --seq-len 16 %s", path, modes[i]);
        assert_contains(ran.err, "of tensor mlp.fc is the first that is not finite");
    }
}

CASE(train_poisoned)
{
    struct trainer *trainer = open_tiny_training("--steps 3");
    poke(trainer, "h.1.mlp.c_fc.weight", 7, INFINITY);
    exit(train_loop(trainer));
}

TEST(a_bad_parameter_is_named)
{
    expect_case("train_poisoned", EXIT_FAILED, "step 1: task mlp.fc (layer 1, micro-batch 0) reads element ",
                "which was not finite before the step", NULL);
}

/* Squares overflow, and gradients and losses do not.  Without clipping the step has been made by then. */
TEST(a_norm_alone_is_not_finite)
{
    const char *path = temp_path("steep.safetensors");
    save_with(path, "", "ln_f.weight", 0, 32, 1e25f);
    struct ran clipped = expect_yard(EXIT_FAILED, "no parameter was changed by this step",
                                     "train --init '%s' --batch 4 --steps 3 --seq-len 16", path);
    assert_null(strstr(clipped.err, "--clip 1"));
    struct ran ran =
        expect_yard(EXIT_FAILED, "not finite", "train --init '%s' --batch 4 --steps 3 --seq-len 16 --clip 0", path);
    assert_null(strstr(ran.err, "no parameter was changed"));
    assert_contains(ran.err, "try --clip 1, a smaller --lr"); /* advised only where the run does not clip */
}

#define OVERFLOWING "--lr 1 --weight-decay 10 --warmup 0 --schedule constant" /* a step multiplies weights by -9 */

/* The loss and the norm are those of the positions that are used: only the look before saving finds the weight of
 * another position, which the first update makes infinite. */
TEST(a_bad_model_is_not_saved)
{
    const char *init = temp_path("bad.safetensors"), *folder = temp_path("good");
    char *good = lasting("%s/model.safetensors", folder);
    expect_yard(EXIT_OK, "", "train --model tiny --seq-len 16 --steps 2 --sample-tokens 0 --val-batches 1 --save '%s'",
                folder);
    size_t size, after_size;
    char *before = read_whole(good, &size);
    save_with(init, "", "wpe.weight", 12 * 32, 1, 3e38f);
    static const char *const more[] = {"", "--save-every 1", "--val-share 0", "--serial"};
    for (size_t i = 0; i < COUNT(more); i++) {
        expect_yard(EXIT_FAILED, "left values in parameter wpe.weight that are not finite",
                    "train --init '%s' --seq-len 8 --batch 4 --steps 3 --val-batches 1 " OVERFLOWING " --save '%s' %s",
                    init, folder, more[i]);
        char *after = read_whole(good, &after_size);
        assert_int_equal(after_size, size);
        assert_memory_equal(after, before, size);
        free(after);
    }
    free(before);
}

/* A row of the embedding that is so long that its layernorm overflows, and that updates make infinite in the second
 * run; only the validation text has its token. */
TEST(a_bad_validation_loss_fails)
{
    char text[500], other[100];
    memset(text, 'a', sizeof text);
    memset(other, 'z', sizeof other);
    const char *data = write_file("a.txt", text, sizeof text), *val = write_file("z.txt", other, sizeof other);
    char *words = lasting("--data '%s' --val-data '%s' --batch 2 --steps 3 --sample-tokens 0", data, val);
    static const char *const more[] = {"", OVERFLOWING};
    static const char *const parts[] = {"the validation loss is not finite", "parameter wte.weight"};
    for (size_t i = 0; i < COUNT(more); i++) {
        const char *init = temp_path("long.safetensors"), *log = temp_path("val.jsonl");
        save_with(init, "--untied", "wte.weight", 'z' * 32, 32, 3e38f);
        expect_yard(EXIT_FAILED, parts[i], "train --init '%s' %s %s --log '%s'", init, words, more[i], log);
        const json_t *line = last_line(log);
        assert_int_equal(number_at(line, "step"), 3);
        assert_true(json_is_null(json_object_get(line, "val_loss")));
    }
}

TEST(a_bad_file_is_named)
{
    const char *path = temp_path("poisoned.safetensors");
    save_with(path, "", "h.1.ln_2.bias", 7, 1, INFINITY);
    static const char sentence[] = "tensor h.1.ln_2.bias holds a value that is not finite";
    struct ran ran = expect_yard(EXIT_FAILED, sentence, "sample --from '%s' --count 5", path);
    expect_yard(EXIT_FAILED, sentence, "train --init '%s' --steps 1", path);
    assert_string_equal(ran.out, "");
    save_with(path, "", "wte.weight", 0, 32 * 256, 3e38f);
    expect_yard(EXIT_FAILED, "logits are not finite", "sample --from '%s' --count 5", path);
    char *line = lasting("cp tests/data/gpt2-tiny.safetensors '%s'", path);
    assert_int_equal(system(line), 0); /* NOLINT */
    poke_file(path, "h.0.mlp.c_fc.weight", 3, 1, NAN);
    expect_yard(EXIT_FAILED, "tensor h.0.mlp.c_fc.weight holds a value that is not finite", "check '%s'", path);
}
