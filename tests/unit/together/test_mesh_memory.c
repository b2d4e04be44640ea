/* test_mesh_memory.c - the memory of meshes: what ZeRO shares out, what plan --memory says, and what kernels work in.
 *
 * It tests the tensors of src/trainer/model and src/tools/memory.  It checks that state takes the bytes of ZeRO's
 * formula, that a budget which plan --memory names is enough and one byte less is not, and that CLBlast takes the same
 * work space on paper as on a real device.  It catches state that is kept twice, and a class of memory that is
 * forgotten.
 *
 * To see it fail: in replica.c, let ZeRO-1 share out no optimizer: 3 : 2 in is_shared_out().
 *
 * The expected bytes come from formulas beside the tests, and the sizes of work space from CLBlast itself.
 */
#include "planning/predict/plan.h"
#include "planning/predict/predict.h"
#include "tests/support/support.h"
#include "tests/support/support_training.h"

#include <math.h>

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Bytes of a class on a device, all tensors that persist. */
static size_t persistent_bytes(const struct trainer *trainer, int device, enum memory_class class)
{
    size_t bytes = 0;
    for (size_t i = 0; i < trainer->pool->n; i++) {
        const struct tensor *tensor = trainer->pool->tensors[i];
        bool persists = tensor->storage == tensor && tensor->persistent;
        if (persists && tensor->class == class && tensor->device->index == device)
            bytes += tensor->bytes;
    }
    return bytes;
}

/* Bytes of the parameters of so many units that are used one after another, at most. */
static double bytes_of_units(const struct trainer *trainer, int together)
{
    double most = 0;
    int n = trainer->model->params->n_units;
    for (int u = 0; u < n; u++) {
        double sum = 0;
        for (int i = u; i < MIN(u + together, n); i++)
            sum += (double)trainer->model->params->units[i].elements * ELEMENT_BYTES;
        most = fmax(most, sum);
    }
    return most;
}

/* State per device in bytes per parameter: 4 of values, 4 of gradients, 8 of Adam's.  ZeRO-1 shares out the
 * last, 2 the gradients too, 3 all.  The padding of units, and shards in whole norm blocks, make a little more.
 * Room to receive two layers' gradients is counted as buffers; with ZeRO-2 their whole gradients too, with 3
 * the parameters of two. */
TEST(zero_shares_the_state_out)
{
    static const struct {
        double values, gradients, adams; /* whole, or shared out: 1 or 1 / N of 4, 4 and 8 bytes */
    } expected[] = {{1, 1, 1}, {1, 1, 0}, {1, 0, 0}, {0, 0, 0}};
    for (int devices = 2; devices <= 4; devices += 2)
        for (int zero = 0; zero <= 3; zero++) {
            char words[128];
            snprintf(words, sizeof words, "--model nano --layers 16 --untied --batch 4 -d 0:0x%d --zero %d", devices,
                     zero);
            struct trainer *trainer = plan_training(parse_words(words), LIST_TRAIN);
            double n = (double)count_parameters(trainer->model->params), share = 1.0 / devices;
            double adams = 8 * fmax(expected[zero].adams, share), values = 4 * fmax(expected[zero].values, share);
            for (int d = 0; d < devices; d++) {
                double held = (double)persistent_bytes(trainer, d, MEM_OPTIMIZER) / n;
                assert_close(held, adams, 0.08 * adams);
                held = (double)persistent_bytes(trainer, d, MEM_PARAMETERS) / n;
                assert_close(held, values, 0.08 * values);
                assert_int_equal(persistent_bytes(trainer, d, MEM_GRADIENTS) > 0, expected[zero].gradients > 0);
                const size_t *peak = trainer->train_list->extra.peak[d];
                assert_int_equal(peak[MEM_PARAMETERS], persistent_bytes(trainer, d, MEM_PARAMETERS));
                double gradients = 4 * fmax(expected[zero].gradients, share), buffers = (double)peak[MEM_BUFFERS];
                assert_close((double)peak[MEM_GRADIENTS] / n, gradients, 0.08 * gradients);
                assert_above(buffers, 0);
                assert_at_most(buffers, bytes_of_units(trainer, zero < 2 ? 2 : 2 * zero));
            }
            free_trainer(trainer);
        }
}

/* plan --memory beside the formula: of gpt2 padding and shards of whole blocks are less than 0.3 %.  `bytes` are those
 * per parameter of its classes; whole, ZeRO shares them out one after another, the last one first. */
static void expect_formula(const json_t *rows, int ranks, int dp, const double bytes[3])
{
    static const char *const key[] = {"parameters_mib", "gradients_mib", "optimizer_mib"};
    double n = 124439808.0 / (1 << 20);
    double all[4] = {0};
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        double formula = number_at(row, "formula_mib"), ours = 0;
        int zero = atoi(text_at(row, "zero"));
        for (int k = 0; k < 3; k++) {
            double share = zero >= 3 - k ? 1.0 / dp : 1, mib = number_at(row, key[k]);
            if (ranks == dp && formula > 0)
                assert_close(mib, n * bytes[k] * share, 0.003 * n * bytes[k] * share);
            ours += mib;
        }
        if (strcmp(text_at(row, "recompute"), "off") == 0)
            all[zero] += formula;
        assert_close(ours, formula, 0.01 * formula);
    }
    for (int zero = 0; zero < 4; zero++) {
        double per = 0; /* bytes per parameter, of all ranks */
        for (int k = 0; k < 3; k++)
            per += bytes[k] * (zero >= 3 - k ? 1 : dp);
        assert_close(all[zero], n * per, 1e-6 * n * per);
    }
}

TEST(memory_agrees_with_its_formula)
{
    static const char *const words = "plan --model gpt2 --batch 8 --hardware data/hardware/server.txt --memory --json";
    static const char *const key[] = {"parameters_mib", "gradients_mib",   "optimizer_mib",
                                      "buffers_mib",    "activations_mib", "work_mib"};
    json_t *run = yard_json("%s --mesh dp=4", words), *mixed = yard_json("%s --mesh dp=4 --what-if mixed", words);
    expect_formula(json_at(run, "strategies"), 4, 4, (double[]){4, 4, 8});
    expect_formula(json_at(mixed, "strategies"), 4, 4, (double[]){2, 2, 12});
    expect_formula(json_at(yard_json("%s --mesh dp=2,pp=2", words), "strategies"), 4, 2, (double[]){4, 4, 8});
    for (size_t i = 0; i < json_array_size(json_at(run, "strategies")); i++) {
        const json_t *whole = json_array_get(json_at(run, "strategies"), i);
        const json_t *half = json_array_get(json_at(mixed, "strategies"), i);
        assert_close(number_at(half, "activations_mib"), number_at(whole, "activations_mib") / 2, 1e-6);
        assert_close(number_at(half, "buffers_mib"), number_at(whole, "buffers_mib") / 2, 1e-6);
        assert_close(number_at(half, "work_mib"), number_at(whole, "work_mib"), 0);
        double sum = 0;
        for (size_t k = 0; k < COUNT(key); k++)
            sum += number_at(half, key[k]);
        assert_at_most(number_at(half, "together_mib"), sum + 1e-6);
    }
    expect_yard(EXIT_OK, "counted, it cannot be run here", "plan --model tiny -d 0:0 --memory --what-if mixed");
    expect_yard(EXIT_USAGE, "takes only the word mixed", "plan --model tiny -d 0:0 --memory --what-if link=2x");
    expect_yard(EXIT_USAGE, "add --simulate", "plan --model tiny -d 0:0 --what-if mixed");
}

/* The words are those of the data, and all lists are placed: also one that samples keeps something on the host. */
TEST(memory_needed_is_enough)
{
    static const char *const words =
        "plan --model tiny --data LICENSE --tokens chars --hardware data/hardware/server.txt";
    for (int dp = 1; dp <= 2; dp++) {
        char *run = lasting("%s --mesh dp=%d,pp=2 --micro-batch 1 --recompute full", words, dp);
        const json_t *rows = json_at(yard_json("%s --memory --json", run), "strategies");
        double device = 0, host = 0;
        for (size_t i = 0; i < json_array_size(rows); i++) {
            const json_t *row = json_array_get(rows, i);
            double *most = strcmp(text_at(row, "device"), "host") == 0 ? &host : &device;
            if (strcmp(text_at(row, "recompute"), "full") == 0 && strchr("-1", *text_at(row, "zero")))
                *most = fmax(*most, number_at(row, "needs_bytes"));
        }
        expect_yard(EXIT_OK, "", "%s --device-mem %.0f --host-mem %.0f", run, device, host);
        expect_yard(EXIT_USAGE, "1 B more", "%s --device-mem %.0f --host-mem %.0f", run, device - 1, host);
        expect_yard(EXIT_USAGE, "1 B more", "%s --device-mem %.0f --host-mem %.0f", run, device, host - 1);
        rows = json_at(yard_json("%s --memory --json --device-mem %.0f --host-mem %.0f", run, device, host - 1),
                       "strategies");
        for (size_t i = 0; i < json_array_size(rows); i++) {
            const json_t *row = json_array_get(rows, i);
            double budget = strcmp(text_at(row, "device"), "host") == 0 ? host - 1 : device;
            assert_string_equal(text_at(row, "fits"), number_at(row, "needs_bytes") <= budget ? "yes" : "no");
        }
    }
}

/* A caller that goes on is told why, and may plan again. */
TEST(a_plan_that_does_not_fit_is_refused)
{
    struct problem *problem;
    assert_null(try_to_plan(parse_words("--model tiny -d 0:0 --device-mem 200K"), LIST_TRAIN, &problem));
    assert_contains(problem->sentence, "does not fit");
    free(problem);
    struct trainer *trainer = try_to_plan(parse_words("--model tiny -d 0:0"), LIST_TRAIN, &problem);
    assert_null(problem);
    free_trainer(trainer);
}

/* They have gradients of their own, and the parameters of their rank: also a tied head's after the first stage. */
TEST(groups_share_their_parameters)
{
    size_t bytes[2];
    for (int groups = 1; groups <= 2; groups++) {
        char words[96];
        snprintf(words, sizeof words, "--model tiny --micro-batch 1 -d 0:0x2 --mesh pp=2 --grad-groups %d", groups);
        struct trainer *trainer = plan_training(parse_words(words), LIST_TRAIN);
        bytes[groups - 1] = persistent_bytes(trainer, 0, MEM_PARAMETERS) + persistent_bytes(trainer, 1, MEM_PARAMETERS);
        free_trainer(trainer);
    }
    assert_int_equal(bytes[0], bytes[1]);
}

/* Work space of CLBlast at gpt2's sizes, as it says of the device here (tutorials/reference-numbers.md), and as it is
 * taken to be of a GPU that does not exist: the sizes are whole tiles of any usual size, so it is the same. */
static size_t work_of(const struct task *task)
{
    const struct tensor *last = task->accesses[task->n_accesses - 1].tensor;
    return strcmp(last->name, "clblast.work") == 0 ? last->bytes : 0;
}

TEST(work_space_is_what_clblast_asks_for)
{
    static const struct {
        const char *product;
        double mebibytes;
    } known[] = {{"attn.qkv", 18.75}, {"attn.proj", 14.25}, {"mlp.fc", 21},    {"mlp.proj", 57},
                 {"attn.qkv.dx", 36}, {"attn.proj.dx", 12}, {"mlp.fc.dx", 48}, {"mlp.proj.dx", 12},
                 {"attn.qkv.dw", 0},  {"attn.proj.dw", 0},  {"mlp.fc.dw", 0},  {"mlp.proj.dw", 0},
                 {"head", 159.375},   {"head.dx", 786},     {"head.dw", 0},    {"attn.scores", 0},
                 {"attn.mix", 0},     {"attn.datt", 0},     {"attn.dv", 0},    {"attn.dk", 0}};
    struct settings *settings = parse_words("--gemm clblast --model gpt2 --layers 1 --batch 4 --seq-len 1024");
    settings->data.path = NULL;
    settings->vocab = 50257;
    struct trainer *here = plan_training(settings, LIST_TRAIN);
    asked_predict.hardware = "data/hardware/server.txt";
    struct trainer *paper = plan_training(settings, LIST_TRAIN);
    size_t seen = 0;
    assert_int_equal(here->train_list->n, paper->train_list->n);
    for (size_t i = 0; i < here->train_list->n; i++) {
        const struct task *task = here->train_list->tasks[i], *same = paper->train_list->tasks[i];
        assert_string_equal(task->name, same->name);
        for (size_t k = 0; k < COUNT(known); k++)
            if (strcmp(task->name, known[k].product) == 0) {
                seen++;
                if (work_of(task) != known[k].mebibytes * 1048576 || work_of(same) != work_of(task))
                    test_failed("%s: CLBlast takes %zu bytes, estimated %zu\n", task->name, work_of(task),
                                work_of(same));
            }
    }
    assert_int_equal(seen, COUNT(known));
    free_trainer(here);
    free_trainer(paper);
}
