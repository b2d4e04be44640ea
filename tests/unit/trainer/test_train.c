/* test_train.c - training runs: their bits, what they log and save, and how they end.
 *
 * It tests src/trainer/train.  What promises the same bits has them, and the other ways come close; a step whose
 * numbers are not finite changes nothing and is named; and an interrupted run has saved what it has done.  An
 * evaluation that moves the training, a log that lacks a step, and a model that is saved though it is spoilt are found.
 *
 * To see it fail: in loop.c, evaluate and save a step late: let due() ask for a rest of 1.
 *
 * What is expected is another run: without the option, or by another way to the same.  Runs are processes of ./yard
 * where they are to fail, to be interrupted, or to be as a user starts them.
 */
#include "techniques/reshard/export.h"
#include "techniques/reshard/find_checkpoint.h"
#include "techniques/reshard/resume.h"
#include "techniques/reshard/save_and_load.h"
#include "tests/support/support.h"
#include "tools/trace/trace.h"

#include <clblast_c.h>
#include <dlfcn.h>
#include <math.h>
#include <signal.h>
#include <time.h>

/* ---- runs inside this program ----------------------------------------------------------------------------------- */

#define TINY "--layers 2 --heads 2 --channels 32 --seq-len 16 --batch 4 "

static struct trainer *open_tiny(const char *more)
{
    struct trainer *trainer =
        new_trainer(settings_of(lasting(TINY "--gemm own %s", more)), LIST_TRAIN | LIST_EVAL | OPEN_DATA);
    init_random(trainer->model, 1337);
    return trainer;
}

/* (Our own products: test_mesh.c, test_grid.c.)  Gradients differ by rounding, about 1e-7; Adam divides by the
 * gradient's size and magnifies this where it is nearly zero. */
TEST(clblast_trains_alike)
{
    struct state own = train(settings_of(TINY "--gemm own"), 3);
    struct state clblast = train(settings_of(TINY "--gemm clblast"), 3);
    struct state serial = train(settings_of(TINY "--gemm clblast --serial"), 3);
    double distance = relative_distance(clblast.values, own.values, own.n_parameters);
    if (!(distance > 0 && distance <= 1e-5))
        test_failed("parameters are %g apart\n", distance);
    expect_same_bits("serial", serial.values, clblast.values, clblast.n);
    free(own.values);
    free(clblast.values);
    free(serial.values);
}

/* CLBlast's calls come here too. */
static int programs_built, buffers_made;
cl_int clBuildProgram(cl_program program, cl_uint n, const cl_device_id *devices, const char *options,
                      void(CL_CALLBACK *notify)(cl_program, void *), void *context)
{
    cl_int (*build)(cl_program, cl_uint, const cl_device_id *, const char *, void (*)(cl_program, void *), void *);
    *(void **)&build = dlsym(RTLD_NEXT, "clBuildProgram");
    programs_built++;
    return build(program, n, devices, options, notify, context);
}

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes, void *host, cl_int *code)
{
    cl_mem (*make)(cl_context, cl_mem_flags, size_t, void *, cl_int *);
    *(void **)&make = dlsym(RTLD_NEXT, "clCreateBuffer");
    buffers_made++;
    return make(context, flags, bytes, host, code);
}

/* It does so with its kernel for small products, and with that for large ones, which has work space. */
TEST(clblast_compiles_and_allocates_before_the_first_step)
{
    const char *name = "XGEMM_MIN_INDIRECT_SIZE";
    expect_yard(EXIT_OK, "CLBlast compiles its kernels for 0:0 ...",
                "train " TINY "--gemm clblast --steps 1 --data LICENSE");
    for (int large = 0; large < 2; large++) {
        struct trainer *trainer = open_training(settings_of(TINY "--gemm clblast"), LIST_TRAIN);
        const int built = programs_built, made = buffers_made;
        run_steps(trainer, 1, 2);
        assert_true(built > 0);
        assert_true(made > 0);
        assert_int_equal(programs_built, built);
        assert_int_equal(buffers_made, made);
        size_t work = 0;
        for (size_t i = 0; i < trainer->pool->n; i++)
            work += strcmp(trainer->pool->tensors[i]->name, "clblast.work") == 0;
        assert_int_equal(work > 0, large);
        if (!large)
            assert_int_equal(CLBlastOverrideParameters(trainer->machine->device[0].cl, "GemmRoutine",
                                                       CLBlastPrecisionSingle, 1, &name, (size_t[]){1}),
                             CLBlastSuccess);
        check_training(trainer, 2);
        free_trainer(trainer);
    }
}

/* ---- what is not finite ----------------------------------------------------------------------------------------- */

static void poke(struct trainer *trainer, const char *name, size_t at, float value)
{
    for (int i = 0; i < trainer->model->params->n; i++) {
        const struct param *param = &trainer->model->params->param[i];
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
    run_step(trainer, number);
    run_step(trainer, number + 1);
    const struct result *result = step_result(trainer, number);
    drain(trainer->train);
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
    struct trainer *trainer = open_tiny(lasting("-d %s", two_devices()));
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
        struct trainer *trainer = open_tiny(lasting("-d %s", devices[i]));
        struct state before = read_state(trainer, 0);
        const struct result *result = end_bad_steps(trainer, 1, &before);
        assert_true(result->halted);
        assert_true(isfinite(result->norm));
        assert_true(!isfinite(result->loss));
        free_trainer(trainer);
    }
    unsetenv("YARD_KERNELS");
}

/* Overwrite n floats of a tensor in a file. */
static void poke_file(const char *path, const char *name, size_t at, size_t n, float value)
{
    struct safetensors *st = open_safetensors(path);
    const struct st_tensor *tensor = find_tensor(st, name);
    FILE *file = fopen(path, "r+b");
    assert_true(file);
    assert_true(tensor);
    assert_true(at + n <= st_elements(tensor));
    assert_int_equal(fseek(file, (long)(tensor->offset + at * sizeof value), SEEK_SET), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(fwrite(&value, sizeof value, 1, file), 1);
    fclose(file);
    close_safetensors(st);
}

/* A file with a model of which n floats are `value`; training itself would not save such a thing. */
static void save_with(const char *path, const char *words, const char *name, size_t at, size_t n, float value)
{
    struct trainer *trainer = open_tiny(words);
    struct checkpoint *made = describe_training(trainer, 0);
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

static void save_poisoned(const char *path, const char *name) { save_with(path, "", name, 7, 1, INFINITY); }

TEST(the_culprit_is_named)
{
    const char *path = temp_path("poisoned.safetensors");
    save_poisoned(path, "h.1.mlp.c_fc.weight");
    const char *modes[] = {"", "--serial", "-d 0:0x2", "--micro-batch 1"};
    for (size_t i = 0; i < COUNT(modes); i++) {
        struct ran ran = expect_yard(EXIT_FAILED, "step 1, layer 1, task mlp.fc: reads element ",
                                     "train --init '%s' --batch 4 --steps 3 --seq-len 16 %s", path, modes[i]);
        expect_text(ran.err, "which was not finite before the step");
    }
}

/* Squares overflow, and gradients and losses do not.  Without clipping the step has been made by then. */
TEST(a_norm_alone_is_not_finite)
{
    const char *path = temp_path("steep.safetensors");
    save_with(path, "", "ln_f.weight", 0, 32, 1e25f);
    expect_yard(EXIT_FAILED, "no parameter was changed by this step",
                "train --init '%s' --batch 4 --steps 3 --seq-len 16", path);
    struct ran ran =
        expect_yard(EXIT_FAILED, "not finite", "train --init '%s' --batch 4 --steps 3 --seq-len 16 --clip 0", path);
    assert_null(strstr(ran.err, "no parameter was changed"));
}

/* All lines of a log, each of them one JSON object; valid until two more are read. */
static json_t *read_log(const char *path)
{
    static json_t *kept[3];
    json_decref(kept[2]);
    memmove(kept + 1, kept, 2 * sizeof *kept);
    json_t *lines = kept[0] = json_array();
    char text[16384];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(text, sizeof text, file)) {
        json_error_t error;
        json_t *line = json_loads(text, JSON_REJECT_DUPLICATES, &error);
        if (!json_is_object(line) || text[strlen(text) - 1] != '\n')
            test_failed("%s: not one object: %s (%s)\n", path, text, error.text);
        json_array_append_new(lines, line);
    }
    fclose(file);
    return lines;
}

static json_t *last_line(const char *path)
{
    json_t *lines = read_log(path);
    return json_array_get(lines, json_array_size(lines) - 1);
}

/* The loss and the norm are those of the positions that are used: only the look before saving finds the bad one. */
TEST(a_bad_model_is_not_saved)
{
    const char *init = temp_path("bad.safetensors"), *folder = temp_path("good");
    char *good = lasting("%s/model.safetensors", folder);
    expect_yard(EXIT_OK, "", "train --model tiny --seq-len 16 --steps 2 --sample-tokens 0 --val-batches 1 --save '%s'",
                folder);
    size_t size, after_size;
    char *before = read_whole(good, &size);
    save_with(init, "", "wpe.weight", 12 * 32, 1, NAN);
    static const char *const more[] = {"", "--save-every 1", "--val-share 0", "--serial"};
    for (size_t i = 0; i < COUNT(more); i++) {
        expect_yard(EXIT_FAILED, "left values in parameter wpe.weight that are not finite",
                    "train --init '%s' --seq-len 8 --batch 4 --steps 3 --val-batches 1 --save '%s' %s", init, folder,
                    more[i]);
        char *after = read_whole(good, &after_size);
        assert_int_equal(after_size, size);
        assert_memory_equal(after, before, size);
        free(after);
    }
    free(before);
}

/* A row of the embedding that is so long that its layernorm overflows; only the validation text has its token. */
TEST(a_bad_validation_loss_fails)
{
    char text[500], other[100];
    memset(text, 'a', sizeof text);
    memset(other, 'z', sizeof other);
    const char *data = write_file("a.txt", text, sizeof text), *val = write_file("z.txt", other, sizeof other);
    char *words = lasting("--data '%s' --val-data '%s' --batch 2 --steps 3 --sample-tokens 0", data, val);
    static const float values[] = {3e38f, NAN};
    static const char *const parts[] = {"the validation loss is not finite", "parameter wte.weight"};
    for (size_t i = 0; i < COUNT(values); i++) {
        const char *init = temp_path("long.safetensors"), *log = temp_path("val.jsonl");
        save_with(init, "--untied", "wte.weight", 'z' * 32, 32, values[i]);
        expect_yard(EXIT_FAILED, parts[i], "train --init '%s' %s --log '%s'", init, words, log);
        const json_t *line = last_line(log);
        assert_int_equal(number_at(line, "step"), 3);
        assert_true(json_is_null(json_object_get(line, "val_loss")));
    }
}

TEST(a_bad_file_is_named)
{
    const char *path = temp_path("poisoned.safetensors");
    save_poisoned(path, "h.1.ln_2.bias");
    struct ran ran = expect_yard(EXIT_FAILED, "tensor h.1.ln_2.bias holds a value that is not finite",
                                 "sample --from '%s' --count 5", path);
    assert_string_equal(ran.out, "");
    save_with(path, "", "wte.weight", 0, 32 * 256, 3e38f);
    expect_yard(EXIT_FAILED, "logits are not finite", "sample --from '%s' --count 5", path);
    char *line = lasting("cp tests/data/gpt2-tiny.safetensors '%s'", path);
    assert_int_equal(system(line), 0); /* NOLINT */
    poke_file(path, "h.0.mlp.c_fc.weight", 3, 1, NAN);
    expect_yard(EXIT_FAILED, "tensor h.0.mlp.c_fc.weight holds a value that is not finite", "check '%s'", path);
}

/* ---- runs of ./yard --------------------------------------------------------------------------------------------- */

TEST(log_lines)
{
    const char *log = temp_path("log.jsonl");
    expect_yard(EXIT_OK, "", "train --model tiny --steps 5 --val-every 2 --val-batches 2 --sample-tokens 0 --log '%s'",
                log);
    json_t *lines = read_log(log);
    static const int order[] = {1, 2, -2, 3, 4, -4, 5, -5}; /* steps; below 0: evaluations after them */
    assert_int_equal(json_array_size(lines), 1 + COUNT(order));
    const json_t *run = json_at(lines, "0.run");
    assert_true(number_at(json_array_get(lines, 0), "bytes_per_token") == 1);
    assert_int_equal(number_at(run, "steps"), 5);
    assert_int_equal(number_at(run, "batch"), 4); /* the preset's: options are resolved */
    assert_int_equal(number_at(run, "seq-len"), 32);
    assert_string_equal(text_at(run, "model"), "tiny");
    for (size_t i = 0; i < COUNT(order); i++) {
        const json_t *line = json_array_get(lines, i + 1);
        assert_int_equal(number_at(line, "step"), abs(order[i]));
        assert_true(number_at(line, order[i] > 0 ? "loss" : "val_loss") > 0);
        assert_int_equal(json_object_size(line), order[i] > 0 ? 6 : 3);
        if (order[i] < 0) /* a token is a byte */
            assert_true(fabs(number_at(line, "val_bits_per_byte") * M_LN2 - number_at(line, "val_loss")) < 1e-6);
        if (order[i] > 0) {
            assert_true(number_at(line, "norm") > 0);
            assert_true(number_at(line, "lr") > 0);
            assert_true(number_at(line, "ms") > 0);
            assert_true(number_at(line, "tokens_per_s") > 0);
        }
    }
}

/* When the compute lanes were done with each step, by the trace. */
static double *device_ends(const struct trace *trace, uint32_t steps)
{
    double *ends = allocate(steps + 1, sizeof *ends);
    for (size_t i = 0; i < trace->n_records; i++) {
        const struct trace_record *record = &trace->records[i];
        const struct trace_task *task = &trace->tasks[record->task];
        if (trace->lanes[task->lane].kind == LANE_COMPUTE && strcmp(trace->header.list[task->list], "train") == 0)
            ends[record->step] = fmax(ends[record->step], 1e-6 * (double)record->end);
    }
    return ends;
}

/* A step's time goes from its end on the device to the next one's, not from when the host notices. */
TEST(steps_are_timed_on_the_device)
{
    enum { STEPS = 20 };
    const char *log = temp_path("timed.jsonl"), *path = temp_path("timed.trace");
    static const char *const modes[] = {"", "--serial", "-d 0:0x2"};
    for (size_t m = 0; m < COUNT(modes); m++) {
        expect_yard(EXIT_OK, "",
                    "train --model tiny --steps %d --val-share 0 --sample-tokens 0 --log '%s' --trace '%s' %s", STEPS,
                    log, path, modes[m]);
        json_t *lines = read_log(log);
        struct trace *trace = trace_open(path);
        double *ends = device_ends(trace, STEPS);
        assert_non_null(strstr(trace->header.model, m == 2 ? " on 2 devices" : " on 1 device")); /* all of the text */
        for (uint32_t i = 2; i <= STEPS; i++) {
            const json_t *line = json_array_get(lines, i);
            double ms = number_at(line, "ms");
            if (fabs(ms - (ends[i] - ends[i - 1])) > 1e-4)
                test_failed("%s: step %u took %.6f ms, its device %.6f\n", modes[m], i, ms, ends[i] - ends[i - 1]);
            assert_true(fabs(number_at(line, "tokens_per_s") * ms / 1e3 / (4 * 32) - 1) < 1e-6);
        }
        free(ends);
        trace_free(trace);
    }
}

/* The preset, then the config file, then the command line. */
TEST(precedence_of_options)
{
    static const char text[] = "# smaller\nchannels = 48\nheads = 3\nsteps = 9\n";
    const char *config = write_file("config", text, sizeof text - 1), *log = temp_path("precedence.jsonl");
    expect_yard(EXIT_OK, "",
                "train --steps 1 --model tiny --config '%s' --heads=4 --val-batches 1 --sample-tokens 0 "
                "--log '%s'",
                config, log);
    json_t *lines = read_log(log), *run = json_at(lines, "0.run");
    assert_int_equal(number_at(run, "channels"), 48);
    assert_int_equal(number_at(run, "heads"), 4);
    assert_int_equal(number_at(run, "steps"), 1);
    assert_int_equal(number_at(run, "layers"), 2);
}

/* --stop-after saves and stops, and the learning rate is that of the longer run. */
TEST(stop_after)
{
    const char *log = temp_path("stopped.jsonl");
    const char *whole_log = temp_path("whole.jsonl");
    const char *folder = temp_path("stopped");
    expect_yard(EXIT_OK, "", "train --model tiny --steps 8 --stop-after 3 --save '%s' --sample-tokens 0 --log '%s'",
                folder, log);
    expect_yard(EXIT_OK, "", "train --model tiny --steps 8 --sample-tokens 0 --log '%s'", whole_log);
    json_t *stopped = read_log(log), *whole = read_log(whole_log);
    assert_int_equal(json_array_size(stopped), 1 + 3 + 1);
    for (size_t i = 1; i <= 3; i++) {
        const json_t *line = json_array_get(stopped, i), *expected = json_array_get(whole, i);
        assert_true(number_at(line, "lr") == number_at(expected, "lr"));
        assert_true(number_at(line, "loss") == number_at(expected, "loss"));
    }
    char *model = lasting("%s/model.safetensors", folder);
    assert_int_equal(access(model, R_OK), 0);
}

TEST(save_then_init_and_sample)
{
    const char *log = temp_path("first.jsonl"), *second_log = temp_path("second.jsonl");
    const char *more[] = {"", "--untied"}, *folders[] = {temp_path("saved"), temp_path("untied")};
    for (size_t i = 0; i < COUNT(more); i++) {
        const char *folder = folders[i];
        expect_yard(EXIT_OK, "",
                    "train --model tiny --steps 5 %s --save '%s' --log '%s' --val-batches 20 --sample-tokens 5",
                    more[i], folder, log);
        expect_yard(
            EXIT_OK, "validation loss",
            "train --init '%s/model.safetensors' --batch 4 --steps 1 --lr 0 --lr-min 0 --log '%s' --val-batches 20",
            folder, second_log);
        assert_true(number_at(last_line(log), "val_loss") == number_at(last_line(second_log), "val_loss"));
        struct ran first = run_yard("sample --from '%s' --prompt 'int main' --count 20 --seed 5", folder);
        struct ran second =
            run_yard("sample --from '%s/model.safetensors' --prompt 'int main' --count 20 --seed 5", folder);
        assert_int_equal(first.code, 0);
        assert_int_equal(second.code, 0);
        assert_true(strncmp(first.out, "int main", 8) == 0);
        assert_string_equal(first.out, second.out);
        second = run_yard("sample --from '%s' --prompt 'int main' --count 20 --seed 6", folder);
        assert_string_not_equal(first.out, second.out);
    }
}

/* A token is a byte, a letter of this text two of them: what is shown is text, the prompt too, also into a file. */
TEST(sample_with_bytes_of_letters)
{
    char text[4096] = "";
    while (strlen(text) < sizeof text - 20)
        strcat(text, "\u0436\u0438\u043B\u0438 "); /* 4 letters and a space */
    write_text("russian.txt", "%s", text);
    const char *folder = temp_path("russian");
    expect_yard(EXIT_OK, "\u0438\u043B\u0438",
                "train --model tiny --data '%s' --steps 400 --lr 5e-3 --val-share 0 --sample-tokens 40 --save '%s'",
                temp_path("russian.txt"), folder);
    expect_yard(EXIT_OK, "\u0436\u0438\u043B\u0438 \u0436\u0438\u043B\u0438\n",
                "sample --from '%s' --prompt '\u0436\u0438\u043B' --count 11 --temperature 0", folder);
    expect_yard(EXIT_OK, "\u0436\u0438\u043B\u0438 \uFFFD\n", /* the last letter has only begun */
                "sample --from '%s' --prompt '\u0436\u0438\u043B\u0438' --count 2 --temperature 0", folder);
}

/* Characters travel with the model: the prompt is read with the tokens of the training text. */
TEST(sample_with_characters)
{
    char text[900], *at = text;
    for (int i = 0; i < 100; i++)
        at += sprintf(at, "äbcd%s", i % 10 ? "" : "\n");
    const char *data = write_file("letters.txt", text, strlen(text)), *folder = temp_path("letters");
    expect_yard(EXIT_OK, "vocabulary 5", /* a b c d newline, the first one with two dots */
                "train --model tiny --seq-len 8 --tokens chars --data '%s' --steps 120 --lr 1e-2 --save '%s'", data,
                folder);
    expect_yard(EXIT_OK, "äbcdäbc", "sample --from '%s' --prompt 'äb' --count 5 --temperature 0", folder);
    expect_yard(EXIT_USAGE, "x", "sample --from '%s' --prompt 'xyz' --count 5", folder);
}

/* A tokenizer is learnt, kept by checkpoints and models, and written for other programs. */
TEST(a_run_with_learnt_tokens)
{
    const char *folder = temp_path("learnt"), *hf = temp_path("learnt-hf"), *log = temp_path("learnt.jsonl");
    const char *both = temp_path("learnt-2"), *again = "--sample-tokens 0 --val-batches 1";
    expect_yard(EXIT_OK, "vocabulary 300", "train --model tiny --tokens bpe:300 --steps 20 %s --save '%s' --log '%s'",
                again, folder, log);
    const json_t *first = json_array_get(read_log(log), 0), *last = last_line(log);
    const double bits = number_at(last, "val_loss") / M_LN2 / number_at(first, "bytes_per_token");
    assert_true(number_at(first, "bytes_per_token") > 1.5);
    assert_true(fabs(number_at(last, "val_bits_per_byte") - bits) < 1e-6);
    expect_yard(EXIT_OK, "step 22/22", "train --resume '%s' --tokens bpe:300 --steps 22 %s", folder, again);
    expect_yard(EXIT_OK, "", "ckpt reshard '%s' '%s' --mesh dp=2", folder, both);
    expect_yard(EXIT_OK, "step 22/22", "train --resume '%s' -d 0:0x2 --steps 22 %s", both, again);
    expect_yard(EXIT_OK, "", "ckpt export '%s' '%s'", folder, hf);
    expect_yard(EXIT_OK, "step 2/2", "train --init '%s' --steps 2 %s", hf, again);
    expect_yard(EXIT_OK, "Tom went", "sample --from '%s' --prompt 'Tom went' --count 3 --temperature 0", hf);
    expect_yard(EXIT_USAGE, "was trained on byte pairs, and knows no others",
                "train --init '%s' --tokens bpe:301 --steps 1", hf);
    assert_int_equal(remove(lasting("%s/tokenizer.json", hf)), 0); /* its metadata have it too */
    expect_yard(EXIT_OK, "Tom went", "sample --from '%s' --prompt 'Tom went' --count 3 --temperature 0", hf);
}

/* A tokenizer that is larger than the model is refused by number; of one that cannot be read the reason is said. */
TEST(a_tokenizer_beside_a_model)
{
    const char *folder = temp_path("beside");
    assert_int_equal(mkdir(folder, 0777), 0);
    expect_yard(EXIT_OK, "", "train --model tiny --steps 1 --sample-tokens 0 --val-batches 1 --save '%s'",
                temp_path("beside-0"));
    expect_yard(EXIT_OK, "", "ckpt export '%s' '%s.bin'", temp_path("beside-0"), temp_path("beside/model"));
    write_text("beside/tokenizer.json", "{\"model\": {\"type\": \"Unigram\"}}");
    expect_yard(EXIT_OK, "asks for model.type \"Unigram\"", "sample --from '%s/model.bin' --count 2", folder);
    expect_yard(EXIT_OK, "", "train --model tiny --tokens bpe:300 --steps 1 --sample-tokens 0 --save '%s'",
                temp_path("beside-1"));
    expect_yard(EXIT_OK, "", "ckpt export '%s' '%s'", temp_path("beside-1"), temp_path("beside-2"));
    const char *large = temp_path("beside-2/tokenizer.json");
    expect_yard(EXIT_FAILED, "its tokenizer has 300 tokens, its model only 256: they do not belong together; put the",
                "sample --from '%s/model.bin' --tokens '%s' --count 2", folder, large);
    expect_yard(EXIT_USAGE, "knows no others than its own", "train --init '%s' --tokens bpe:300 --steps 1",
                temp_path("beside-2"));
    /* Others add tokens for special texts, and the model has no rows for them. */
    json_t *json = json_load_file(large, 0, NULL);
    json_array_append_new(json_object_get(json, "added_tokens"),
                          json_pack("{s:i, s:s}", "id", 300, "content", "<|pad|>"));
    write_text("beside-2/tokenizer.json", "%s", json_dumps(json, 0));
    write_text("beside/padded.json", "%s", json_dumps(json, 0));
    expect_yard(EXIT_OK, "", "ckpt export '%s' '%s.bin'", temp_path("beside-1"), temp_path("beside/learnt"));
    expect_yard(EXIT_OK, "its tokenizer has 301 tokens, its model only 300: the special texts",
                "sample --from '%s/learnt.bin' --tokens '%s' --count 2", folder, temp_path("beside/padded.json"));
    expect_yard(EXIT_USAGE, "or its tokenizer with --tokens FILE", "sample --from '%s/learnt.bin' --prompt you",
                folder);
}

/* The text ends where the model says so. */
TEST(a_sample_ends_with_the_text)
{
    char text[2000] = "";
    while (strlen(text) < 1900)
        strcat(text, "ab<|endoftext|>");
    const char *data = write_text("ends.txt", "%s", text), *folder = temp_path("ends");
    expect_yard(EXIT_OK, "vocabulary 258", /* 256 bytes, the end of a text, "ab" */
                "train --model tiny --seq-len 8 --tokens bpe:300 --data '%s' --steps 100 --lr 1e-2 --save '%s'", data,
                folder);
    struct ran ran =
        expect_yard(EXIT_OK, "", "sample --from '%s' --prompt '<|endoftext|>' --count 50 --temperature 0", folder);
    assert_string_equal(ran.out, "<|endoftext|>ab\n");
}

/* Ctrl-C: the step in flight ends, the model is saved, the exit code says so.  The log tells when training began. */
static int interrupt_training(const char *log, const char *folder, const char *err)
{
    const char *program = getenv("YARD");
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stdout) || !freopen(err, "w", stderr))
            _exit(98);
        execl(program ? program : "./yard", "yard", "train", "--model", "tiny", "--steps", "100000000", "--val-batches",
              "1", "--log", log, "--save", folder, (char *)NULL);
        _exit(99);
    }
    for (long size = 0; size < 4096;) { /* some steps */
        struct stat status_of_log;
        size = stat(log, &status_of_log) == 0 ? (long)status_of_log.st_size : 0;
        if (waitpid(child, &status, WNOHANG) == child)
            test_failed("training ended by itself, status %d\n", status);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    kill(child, SIGINT);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(interrupt_saves)
{
    const char *log = temp_path("interrupted.jsonl");
    const char *folder = temp_path("interrupted");
    const char *err = temp_path("err");
    int code = interrupt_training(log, folder, err);
    if (code != 130)
        test_failed("exit code %d instead of 130:\n%s\n", code, read_text(err));
    json_t *lines = read_log(log);
    char *path = lasting("%s/model.safetensors", folder);
    struct safetensors *st = open_safetensors(path);
    const json_t *last = json_array_get(lines, json_array_size(lines) - 1); /* the evaluation after the last step */
    assert_int_equal(number_at(last, "step"), atoi(find_metadata(st, "yard.step")));
    assert_true(number_at(last, "val_loss") > 0);
    close_safetensors(st);
}

/* ---- evaluation ------------------------------------------------------------------------------------------------- */

/* With wte as it is, ln_f.weight 0 and ln_f.bias b, the hidden state is b whatever comes in: the model gives each token
 * v always the logit wte[v].b, and the loss of every target can be summed by hand. */
static double loss_by_hand(struct trainer *trainer, const float *bias)
{
    int channels = trainer->config.channels, vocab = trainer->config.vocab;
    float *wte = allocate((size_t)(vocab * channels), sizeof *wte);
    double *logit = allocate((size_t)vocab, sizeof *logit);
    double sum = 0;
    double loss = 0;
    read_param(trainer->model, 0, KEPT_VALUE, wte);
    for (int v = 0; v < vocab; v++) {
        for (int c = 0; c < channels; c++)
            logit[v] += (double)wte[v * channels + c] * bias[c];
        sum += exp(logit[v]);
    }
    for (size_t i = 1; i < trainer->data->val.n; i++)
        loss += log(sum) - logit[trainer->data->val.tokens[i]];
    free(wte);
    free(logit);
    return loss / (double)(trainer->data->val.n - 1);
}

static void set_constant_model(struct trainer *trainer, float *bias)
{
    for (int i = 0; i < trainer->model->params->n; i++) {
        const struct param *param = &trainer->model->params->param[i];
        size_t n = (size_t)(param->shape[0] * param->shape[1]);
        float *values = random_floats(n, 3);
        if (strcmp(param->name, "ln_f.weight") == 0)
            memset(values, 0, n * sizeof *values);
        if (strcmp(param->name, "ln_f.bias") == 0)
            memcpy(bias, values, n * sizeof *values);
        write_param(trainer->model, i, KEPT_VALUE, values);
        free(values);
    }
}

static struct trainer *validate_bytes(const char *devices, int batch, int bytes)
{
    char *text = allocate((size_t)bytes, 1);
    for (int i = 0; i < bytes; i++)
        text[i] = (char)('a' + random_words(4, STREAM_TEST, 0, (uint64_t)i).word[0] % 20);
    struct settings *settings = settings_of(lasting(TINY "--gemm own -d %s --batch %d", devices, batch));
    settings->data.val_data = write_file("validation.txt", text, (size_t)bytes);
    free(text);
    return new_trainer(settings, LIST_TRAIN | LIST_EVAL | OPEN_DATA);
}

static void check_evaluation(const char *devices, int batch, int bytes)
{
    float bias[32];
    struct trainer *trainer = validate_bytes(devices, batch, bytes);
    set_constant_model(trainer, bias);
    double ours = evaluate(trainer, 0, NULL, NULL), expected = loss_by_hand(trainer, bias);
    if (!(fabs(ours - expected) <= 1e-6 * expected))
        test_failed("-d %s, %d bytes: validation loss %.9g, by hand %.9g\n", devices, bytes, ours, expected);
    assert_true(evaluate(trainer, 0, NULL, NULL) == ours);
    assert_int_equal(trainer->evaluated % 2, 0); /* its iterations go on from there */
    free_trainer(trainer);
}

/* Windows of 16 and one target more; the last window is short, and the last round has too few for all devices. */
TEST(evaluation_goes_over_the_whole_split)
{
    static const int lengths[] = {17, 18, 33, 100, 161, 200};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        check_evaluation("0:0", 4, lengths[i]);
        check_evaluation(two_devices(), 4, lengths[i]);
    }
    check_evaluation("0:0x3", 3, 100);
}

/* Evaluating between steps leaves no trace in the training. */
TEST(evaluation_changes_nothing)
{
    struct state plain = train(settings_of(TINY "--gemm own"), 6);
    struct trainer *trainer = open_tiny("");
    for (uint32_t number = 1; number <= 6; number++) {
        run_step(trainer, number);
        drain(trainer->train);
        evaluate(trainer, 1, NULL, NULL);
    }
    struct state evaluated = read_whole_state(trainer);
    expect_same_bits("with evaluations", evaluated.values, plain.values, plain.n);
    free(plain.values);
    free(evaluated.values);
    free_trainer(trainer);
}

/* ---- the width of vectors --------------------------------------------------------------------------------------- */

static char *trained_bytes(const char *words, unsigned width, size_t *n)
{
    const char *folder = temp_path("width"), *log = temp_path("width.jsonl");
    expect_yard(EXIT_OK, lasting("vectors of %u float", width),
                "train --model tiny --steps 3 --val-batches 1 --sample-tokens 0 --save '%s' --log '%s' %s", folder, log,
                words);
    char *path = lasting("%s/model.safetensors", folder);
    assert_int_equal(number_at(read_log(log), "0.run.vector"), width);
    struct safetensors *st = open_safetensors(path);
    assert_int_equal(atoi(find_metadata(st, "yard.vector")), width);
    close_safetensors(st);
    expect_yard(EXIT_OK, "", "sample --from '%s' --count 3", folder);
    return read_whole(path, n);
}

/* For each width that the device has: --vector gives the bits that a device of that width gives, and no two widths give
 * the same.  YARD_VEC makes a device of a width; with width 1 it would have a GPU's shape. */
TEST(bits_follow_the_vector_width)
{
    struct machine *machine = open_machine(&(struct machine_options){.devices = "0:0"});
    unsigned own = machine->device[0].shape.vector;
    close_machine(machine);
    static const unsigned widths[] = {1, 4, 8, 16};
    char *before = NULL;
    size_t n, size;
    for (size_t i = 0; i < COUNT(widths) && widths[i] <= own; i++) {
        char *asked = trained_bytes(lasting("--vector %u", widths[i]), widths[i], &size);
        if (widths[i] > 1)
            set_number("YARD_VEC", (int)widths[i]);
        char *native = trained_bytes(widths[i] > 1 ? "" : "--vector 1", widths[i], &n);
        set_number("YARD_VEC", 0);
        assert_int_equal(n, size);
        assert_memory_equal(asked, native, n);
        size_t floats = n - 4 * 34688; /* what comes after the header */
        if (before && memcmp(asked + floats, before, n - floats) == 0)
            test_failed("width %u gives the bits of the width before it\n", widths[i]);
        free(before);
        free(native);
        before = memcpy(allocate(n - floats, 1), asked + floats, n - floats);
        free(asked);
    }
    free(before);
}

TEST(impossible_widths_are_refused)
{
    expect_yard(EXIT_USAGE, "--vector 3: the kernels know vectors of 1, 4, 8 and 16 floats",
                "train --model tiny --vector 3");
    expect_yard(EXIT_USAGE, "--vector takes a whole number from 0 to 16", "train --model tiny --vector 32");
    set_number("YARD_VEC", 4);
    expect_yard(EXIT_USAGE, "computes with vectors of 4 floats; take that or fewer", "train --model tiny --vector 8");
    set_number("YARD_VEC", 0);
}

/* ---- the plan --------------------------------------------------------------------------------------------------- */

TEST(plan_as_data)
{
    struct ran ran = expect_yard(EXIT_OK, "every read sees the right value",
                                 "plan --model tiny -d 0:0x2 --micro-batch 1 --json --verify");
    json_t *plan = json_load_file(ran.stdout_path, JSON_REJECT_DUPLICATES, NULL);
    const json_t *tasks = json_at(plan, "lists.0.tasks");
    assert_true(json_array_size(tasks) > 100);
    const json_t *memory = json_object_get(plan, "memory");
    assert_non_null(json_at(memory, "0.peak"));
    double bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE); /* the same from run to run */
    assert_true(number_at(json_array_get(memory, 2), "budget") == bytes);
    struct machine *machine = open_machine(&(struct machine_options){.devices = "0:0"});
    if (machine->device[0].is_cpu) /* each of its two shares has half of the memory */
        assert_true(fabs(number_at(json_array_get(memory, 0), "budget") / (0.75 * bytes / 2) - 1) < 1e-6);
    close_machine(machine);
    expect_yard(EXIT_OK, "every conflict is ordered", "plan --model tiny --verify");
}

/* The last task of the sample list brings one token's logits to the host: 4 bytes per word of the vocabulary. */
static void expect_vocabulary(const char *options, int vocab)
{
    json_t *plan = yard_json("plan --layers 1 --hardware data/hardware/server.txt --json %s", options);
    json_t *tasks = json_at(plan, "lists.1.tasks");
    json_t *last = json_array_get(tasks, json_array_size(tasks) - 1);
    assert_string_equal(text_at(last, "accesses.0.tensor"), "logits.host");
    assert_int_equal(number_at(last, "accesses.0.bytes"), 4 * vocab);
}

TEST(vocabulary)
{
    expect_vocabulary("--model gpt2", 50257);
    expect_vocabulary("--model gpt2 --vocab 99", 99);
    expect_vocabulary("--model nano", 256);
    expect_vocabulary("--model gpt2 --data tests/data/llmc-tokens.bin", 123);
}

TEST(devices_as_data)
{
    const json_t *device = json_at(yard_json("devices --json"), "platforms.0.devices.0");
    assert_string_equal(text_at(device, "id"), "0:0");
    assert_true(number_at(device, "vector_width") >= 1);
    assert_true(number_at(device, "kernel_vector") >= 1);
    assert_true(number_at(device, "memory") >= number_at(device, "max_allocation"));
    assert_true(number_at(device, "units") >= 1);
    bool exact = json_is_true(json_object_get(device, "correctly_rounded_divide_sqrt"));
    struct ran ran = expect_yard(EXIT_OK, "-d 0:0", "devices");
    expect_text(ran.out,
                exact ? "are correctly rounded: AdamW gives the bits" : "NOT correctly rounded: AdamW's bits differ");
}

/* The memory that the plan foretells is the memory that the run takes. */
TEST(predicted_memory_is_what_is_allocated)
{
    struct settings *settings = settings_of(lasting(TINY "-d %s", two_devices()));
    struct trainer *planned = new_trainer(settings, LIST_TRAIN | OPEN_DATA | PLAN_ONLY),
                   *real = new_trainer(settings, LIST_TRAIN | OPEN_DATA);
    size_t predicted = 0;
    size_t given = 0;
    size_t n = real->pool->n;
    assert_int_equal(planned->machine->allocated, 0);
    assert_int_equal(planned->pool->n, n);
    for (int d = 0; d <= planned->machine->n_devices; d++) {
        size_t end[64] = {0};
        for (size_t i = 0; i < n; i++) {
            const struct tensor *tensor = planned->pool->tensors[i], *allocated = real->pool->tensors[i];
            assert_int_equal(tensor->slab, allocated->slab);
            assert_int_equal(tensor->address, allocated->address);
            if (tensor->storage == tensor && tensor->slab >= 0 && tensor->device->index == d)
                end[tensor->slab] =
                    MAX(end[tensor->slab],
                        round_up(tensor->address + tensor->bytes, tensor->device->alignment) + GUARD_BYTES);
        }
        for (int k = 0; k < 64; k++)
            predicted += end[k];
        for (size_t k = 0; k < real->machine->device[d].n_slabs; k++)
            given += real->machine->device[d].slabs[k].bytes + GUARD_BYTES;
        assert_int_equal(planned->train->peak_total[d], real->train->peak_total[d]);
    }
    assert_int_equal(predicted, given);
    assert_int_equal(given, real->machine->allocated);
    free_trainer(planned);
    free_trainer(real);
}

/* The context that copies memory of the host has pinned it; of a move between two contexts the one that sends. */
static void expect_pinned(const struct list *list)
{
    for (size_t i = 0; i < list->n; i++)
        for (int k = 0; k < list->task[i]->n_access; k++) {
            const struct device *device = list->task[i]->lane->device;
            const struct tensor *tensor = list->task[i]->access[k].tensor;
            cl_context context = NULL;
            bool received = false;
            if (device->is_host || !tensor->device->is_host)
                continue;
            for (size_t j = 0; j < list->n && k == 1; j++)
                received |= !list->task[j]->lane->device->is_host && list->task[j]->access[0].tensor == tensor;
            CL(clGetMemObjectInfo(tensor->device->slabs[tensor->storage->slab].pinned, CL_MEM_CONTEXT, sizeof context,
                                  &context, NULL));
            if (context != device->context->cl && !received)
                test_failed("%s: another context than that of %s has pinned %s\n", list->task[i]->name, device->id,
                            tensor->name);
        }
}

TEST(the_context_that_copies_has_pinned_the_memory)
{
    static const char *const words[] = {"", "--zero 3", "--mesh pp=2 --micro-batch 2", "--overlap all-cpu",
                                        "--swap layer --swap-what activations,optimizer"};
    contexts_apart(true);
    for (size_t i = 0; i < COUNT(words); i++) {
        struct trainer *trainer = open_tiny(lasting("-d 0:0x2 %s", words[i]));
        assert_int_equal(trainer->machine->n_contexts, 2);
        assert_true(trainer->machine->host->n_slabs >= 2);
        expect_pinned(trainer->train);
        expect_pinned(trainer->eval);
        free_trainer(trainer);
    }
    contexts_apart(false);
}
