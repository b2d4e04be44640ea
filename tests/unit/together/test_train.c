/* test_train.c - a trainer inside this program: its bits, its evaluation, the width of its vectors, and its plan.
 *
 * It tests src/trainer/train.  It checks that trainings which promise the same bits have them, and that other ways to
 * the same come close.  It catches an evaluation that leaves out a part of the text or changes the training, kernels
 * that are compiled while it trains, and a plan that predicts other memory than the training takes.
 *
 * To see it fail: in evaluation.c, leave out the last round if it is not full: windows / per_round in evaluate().
 *
 * The expected result is that of another run, without the option or in another way, or a loss that is summed by hand.
 * test_train_runs.c tests runs as a user starts them, and test_train_finite.c numbers that are not finite.
 */
#include "planning/predict/plan.h"
#include "tests/support/support.h"
#include "tests/support/support_training.h"
#include "trainer/file/file.h"

#include <clblast_c.h>
#include <dlfcn.h>
#include <math.h>

/* ---- runs inside this program ------------------------------------------------------------------------------------ */

/* (Our own products: test_mesh_bits.c, test_grid.c.)  Gradients differ by rounding, about 1e-7; Adam divides by the
 * gradient's size and magnifies this where it is nearly zero. */
TEST(clblast_trains_alike)
{
    struct state own = train(parse_words(TINY_SIZES "--gemm own"), 3);
    struct state clblast = train(parse_words(TINY_SIZES "--gemm clblast"), 3);
    struct state serial = train(parse_words(TINY_SIZES "--gemm clblast --serial"), 3);
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
                "train " TINY_SIZES "--gemm clblast --steps 1 --data LICENSE");
    for (int large = 0; large < 2; large++) {
        struct trainer *trainer = open_training(parse_words(TINY_SIZES "--gemm clblast"), LIST_TRAIN);
        int built = programs_built, made = buffers_made;
        run_steps(trainer, 1, 2);
        assert_above(built, 0);
        assert_above(made, 0);
        assert_int_equal(programs_built, built);
        assert_int_equal(buffers_made, made);
        size_t work = 0;
        for (size_t i = 0; i < trainer->pool->n; i++)
            if (strcmp(trainer->pool->tensors[i]->name, "clblast.work") == 0)
                work++;
        assert_int_equal(work > 0, large);
        if (!large)
            assert_int_equal(CLBlastOverrideParameters(trainer->machine->devices[0].cl, "GemmRoutine",
                                                       CLBlastPrecisionSingle, 1, &name, (size_t[]){1}),
                             CLBlastSuccess);
        check_training(trainer, 2);
        free_trainer(trainer);
    }
}

/* ---- evaluation -------------------------------------------------------------------------------------------------- */

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
        const struct param *param = &trainer->model->params->items[i];
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
    struct settings *settings = parse_words(lasting(TINY_SIZES "--gemm own -d %s --batch %d", devices, batch));
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
    assert_close(evaluate(trainer, 0, NULL, NULL), ours, 0);
    assert_int_equal(trainer->extra.eval_iterations % 2, 0); /* its iterations go on from there */
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
    struct state plain = train(parse_words(TINY_SIZES "--gemm own"), 6);
    struct trainer *trainer = open_tiny_training("");
    for (uint32_t number = 1; number <= 6; number++) {
        issue_step(trainer, number);
        drain(trainer->train_list);
        evaluate(trainer, 1, NULL, NULL);
    }
    struct state evaluated = read_whole_state(trainer);
    expect_same_bits("with evaluations", evaluated.values, plain.values, plain.n);
    free(plain.values);
    free(evaluated.values);
    free_trainer(trainer);
}

/* ---- the width of vectors ---------------------------------------------------------------------------------------- */

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
    unsigned own = machine->devices[0].shape.vector;
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
    expect_yard(EXIT_USAGE, "--vector 3: take ", "train --model tiny --vector 3");
    expect_yard(EXIT_USAGE, "--vector takes a whole number from 0 to 16", "train --model tiny --vector 32");
    set_number("YARD_VEC", 4);
    expect_yard(EXIT_USAGE, "--vector 8: take 1, 4, 8 or 16, and at most 4: ", "train --model tiny --vector 8");
    set_number("YARD_VEC", 0);
}

/* ---- the plan ---------------------------------------------------------------------------------------------------- */

TEST(a_plan_as_json_has_its_fields)
{
    struct ran ran = expect_yard(EXIT_OK, "every read sees the right value",
                                 "plan --model tiny -d 0:0x2 --micro-batch 1 --json --verify");
    json_t *plan = json_load_file(ran.stdout_path, JSON_REJECT_DUPLICATES, NULL);
    const json_t *tasks = json_at(plan, "lists.0.tasks");
    assert_above(json_array_size(tasks), 100);
    const json_t *memory = json_object_get(plan, "memory");
    assert_non_null(json_at(memory, "0.peak"));
    double bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE); /* the same from run to run */
    assert_close(number_at(json_array_get(memory, 2), "budget"), bytes, 0);
    struct machine *machine = open_machine(&(struct machine_options){.devices = "0:0"});
    if (machine->devices[0].is_cpu) /* each of its two shares has half of the memory */
        assert_close(number_at(json_array_get(memory, 0), "budget") / (0.75 * bytes / 2), 1, 1e-6);
    close_machine(machine);
    expect_yard(EXIT_OK, "every conflict is ordered", "plan --model tiny --verify");
}

/* The last task of the sample list brings one token's logits to the host: 4 bytes per word of the vocabulary. */
static void expect_vocabulary(const char *options, int vocab)
{
    json_t *plan = yard_json("plan --layers 1 --hardware data/hardware/server.txt --json %s", options);
    json_t *tasks = json_at(plan, "lists.2.tasks"); /* the lists are train, eval, sample */
    json_t *last = json_array_get(tasks, json_array_size(tasks) - 1);
    assert_string_equal(text_at(last, "accesses.0.tensor"), "logits.host");
    assert_int_equal(number_at(last, "accesses.0.bytes"), 4 * vocab);
}

TEST(the_vocabulary_is_the_models_or_the_datas)
{
    expect_vocabulary("--model gpt2", 50257);
    expect_vocabulary("--model gpt2 --vocab 99", 99);
    expect_vocabulary("--model nano", 256);
    expect_vocabulary("--model gpt2 --data tests/data/llmc-tokens.bin", 123);
}

TEST(devices_as_json_have_their_fields)
{
    const json_t *device = json_at(yard_json("devices --json"), "platforms.0.devices.0");
    assert_string_equal(text_at(device, "id"), "0:0");
    assert_at_least(number_at(device, "vector_width"), 1);
    assert_at_least(number_at(device, "kernel_vector"), 1);
    assert_at_least(number_at(device, "memory"), number_at(device, "max_allocation"));
    assert_at_least(number_at(device, "units"), 1);
    bool exact = json_is_true(json_object_get(device, "correctly_rounded_divide_sqrt"));
    struct ran ran = expect_yard(EXIT_OK, "-d 0:0", "devices");
    assert_contains(ran.out, exact ? "are correctly rounded: AdamW gives the bits"
                                   : "NOT correctly rounded: AdamW's bits differ");
}

/* The memory that the plan foretells is the memory that the run takes. */
TEST(predicted_memory_is_what_is_allocated)
{
    struct settings *settings = parse_words(lasting(TINY_SIZES "-d %s", two_devices()));
    struct trainer *planned = plan_training(settings, LIST_TRAIN | OPEN_DATA),
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
        for (size_t k = 0; k < real->machine->devices[d].n_slabs; k++)
            given += real->machine->devices[d].slabs[k].bytes + GUARD_BYTES;
        assert_int_equal(planned->train_list->extra.peak_total[d], real->train_list->extra.peak_total[d]);
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
        for (int k = 0; k < list->tasks[i]->n_accesses; k++) {
            const struct device *device = list->tasks[i]->lane->device;
            const struct tensor *tensor = list->tasks[i]->accesses[k].tensor;
            cl_context context = NULL;
            bool received = false;
            if (device->is_host || !tensor->device->is_host)
                continue;
            for (size_t j = 0; j < list->n && k == 1; j++)
                received |= !list->tasks[j]->lane->device->is_host && list->tasks[j]->accesses[0].tensor == tensor;
            CL(clGetMemObjectInfo(tensor->device->slabs[tensor->storage->slab].pinned, CL_MEM_CONTEXT, sizeof context,
                                  &context, NULL));
            if (context != device->context->cl && !received)
                test_failed("%s: another context than that of %s has pinned %s\n", list->tasks[i]->name, device->id,
                            tensor->name);
        }
}

TEST(the_context_that_copies_has_pinned_the_memory)
{
    static const char *const words[] = {"", "--zero 3", "--mesh pp=2 --micro-batch 2", "--overlap all-cpu",
                                        "--swap layer --swap-what activations,optimizer"};
    contexts_apart(true);
    for (size_t i = 0; i < COUNT(words); i++) {
        struct trainer *trainer = open_tiny_training(lasting("-d 0:0x2 %s", words[i]));
        assert_int_equal(trainer->machine->n_contexts, 2);
        assert_at_least(trainer->machine->host->n_slabs, 2);
        expect_pinned(trainer->train_list);
        expect_pinned(trainer->eval_list);
        free_trainer(trainer);
    }
    restore_contexts();
}
