/* bench.c - yard bench: the limits of the device, and what this program makes of them.
 *
 * All in one run on the chosen device, since machines drift: the peak of independent FMAs, copy bandwidth, every matrix
 * product of the model in its form (packing included) by both engines, then training.  A product is timed as the same
 * task that a training step runs, alone in a list that is executed over and over.  A *share* is a speed as a part of
 * the peak: the median over pairs of about equally long stretches, the FMA probe and then what is compared with it.  On
 * CPUs both are timed by CPU time, which other programs cannot lengthen.  If a share is above 1 all the same, the probe
 * was disturbed, and the share is not known.
 */
#include "bench.h"
#include "planning/console/numbers.h"
#include "planning/console/table.h"
#include "planning/pass/pass.h"
#include "planning/peak/peak.h"
#include "planning/predict/plan.h"
#include "planning/predict/predict.h"
#include "trainer/cmd/cmd.h"
#include "trainer/train/train.h"

#include <math.h>

enum { REPEATS = 9, WARM_UP = 2, TRAIN_STEPS = 12 };

struct engine_sums { /* over the projections that were timed by one engine */
    double flops;
    double at_peak; /* what they would be at the peak in the same time: each one's FLOPs divided by its share */
};
struct bench {
    struct settings *settings;
    FILE *text; /* what people read: stdout, or with --json stderr */
    struct machine *machine;
    struct config config;
    struct table *gemms;
    struct probe *probe;
    double peak;                /* FLOP/s of FMAs in the best moment of this run */
    struct engine_sums sums[3]; /* by engine */
};

struct timing {     /* medians over the stretches */
    double seconds; /* the time of one run */
    double share;   /* the share of the peak; NAN: the probe was disturbed */
};

typedef void run_once(void *context, uint32_t number);

/* Runs until least_seconds have passed, at least once, and returns how often.  *number: the number of the last run. */
static uint64_t run_stretch(struct bench *bench, run_once *run, void *context, uint32_t *number, double least_seconds)
{
    const struct device *device = &bench->machine->devices[0];
    double from = work_seconds(device);
    uint64_t runs = 0;
    do {
        *number += 1;
        run(context, *number);
        runs++;
    } while (work_seconds(device) - from < least_seconds);
    return runs;
}

/* A stretch is a single run, or as many runs as take as long as the probe before them. */
enum stretch { SINGLE_RUN, AS_LONG_AS_PROBE };

/* Times n stretches after a warm-up, which compiles kernels.  context: what `run` gets.  flops: of one run. */
static struct timing time_runs(struct bench *bench, run_once *run, void *context, uint32_t n, enum stretch stretch,
                               double flops)
{
    enum { LONGEST = 1 }; /* seconds of the probe */
    const struct device *device = &bench->machine->devices[0];
    double *seconds = allocate(n, sizeof *seconds);
    double *share = allocate(n, sizeof *share);
    double last = 0; /* how long the last stretch worked */
    /* The devices that work at the same time; the probe runs on one. */
    int n_alike = device->is_cpu || device->extra.is_logical ? 1 : bench->machine->n_devices;
    uint32_t number = WARM_UP;
    for (uint32_t i = 1; i <= WARM_UP; i++)
        run(context, i);
    for (uint32_t i = 0; i < n; i++) {
        double begin = work_seconds(device);
        double peak = run_probe(bench->probe, fmin(last, LONGEST));
        double from = work_seconds(device);
        uint64_t start = now_ns();
        uint64_t runs = run_stretch(bench, run, context, &number, stretch == AS_LONG_AS_PROBE ? from - begin : 0);
        seconds[i] = 1e-9 * (double)(now_ns() - start) / (double)runs;
        last = work_seconds(device) - from;
        share[i] = flops * (double)runs / last / n_alike / peak;
        bench->peak = fmax(bench->peak, peak);
    }
    struct timing timing = {median(seconds, n), median(share, n)};
    if (timing.share > 1)
        timing.share = NAN;
    free(seconds);
    free(share);
    return timing;
}

/* ---- matrix products --------------------------------------------------------------------------------------------- */

/* A product of one forward and backward. */
struct product {
    const char *name;
    enum gemm_form form;
    int m, n, k, batch;
    enum gemm_causal causal;
    int count; /* how often a step runs it */
};

enum { MOST_PRODUCTS = 32 }; /* at least 5 linear layers in 3 forms, and 3 of attention */

/* Lists the products of linear layers, each in the form of the forward, of the input's gradient and of the weight's. */
static size_t collect_linear_products(const struct bench *bench, struct product *products)
{
    int channels = bench->config.channels, layers = bench->config.layers;
    int vocab = (int)padded_vocab(bench->config.vocab);
    int tokens = (int)(bench->settings->batch * bench->settings->seq_len);
    const struct {
        const char *name;
        int out, in, count; /* channels; `count` as in struct product */
    } linear[] = {{"attn.qkv", 3 * channels, channels, layers},
                  {"attn.proj", channels, channels, layers},
                  {"mlp.fc", 4 * channels, channels, layers},
                  {"mlp.proj", channels, 4 * channels, layers},
                  {"head", vocab, channels, 1}};
    size_t n_products = 0;
    for (enum gemm_form form = GEMM_NT; form <= GEMM_TN; form++)
        for (size_t i = 0; i < COUNT(linear); i++) {
            int out = linear[i].out, in = linear[i].in;
            const int sizes[][3] = {
                [GEMM_NT] = {tokens, out, in}, [GEMM_NN] = {tokens, in, out}, [GEMM_TN] = {out, in, tokens}};
            const int *size = sizes[form];
            products[n_products] = (struct product){.name = linear[i].name,
                                                    .form = form,
                                                    .m = size[0],
                                                    .n = size[1],
                                                    .k = size[2],
                                                    .batch = 1,
                                                    .causal = CAUSAL_NONE,
                                                    .count = linear[i].count};
            n_products++;
        }
    return n_products;
}

/* Lists the products of attention: squares are (T, T), heads (T, head_size), for each head of each sequence. */
static size_t collect_attention_products(const struct bench *bench, struct product *products)
{
    int T = (int)bench->settings->seq_len;
    int head_size = bench->config.channels / bench->config.heads;
    int n_heads = (int)bench->settings->batch * bench->config.heads;
    int count = 2 * bench->config.layers;
    const struct product attention[] = {
        {"attn.scores, datt", GEMM_NT, T, T, head_size, n_heads, CAUSAL_OUT, count},
        {"attn.mix, dq", GEMM_NN, T, head_size, T, n_heads, CAUSAL_A, count},
        {"attn.dv, dk", GEMM_TN, T, head_size, T, n_heads, CAUSAL_A_TRANSPOSED, count},
    };
    memcpy(products, attention, sizeof attention);
    return COUNT(attention);
}

/* The operands of a linear layer's product are whole tensors. */
static void take_matrices(struct gemm *gemm, struct tensor *const operand[3])
{
    gemm->a = matrix(operand[0], gemm->form == GEMM_TN ? gemm->m : gemm->k);
    gemm->b = matrix(operand[1], gemm->form == GEMM_NT ? gemm->k : gemm->n);
    gemm->c = matrix(operand[2], gemm->n);
}

/* The operands of attention lie as in training: heads, which are (T, head_size), side by side in rows of C. */
static void take_heads(struct gemm *gemm, struct tensor *const operand[3], int C)
{
    int T = gemm->m;
    size_t area = (size_t)T * (size_t)T;
    const struct operand square = {.ld = T, .batch_stride = (size_t)gemm->heads * area, .head_stride = area};
    const struct operand head = {
        .ld = C, .batch_stride = (size_t)T * (size_t)C, .head_stride = (size_t)(C / gemm->heads)};
    bool makes_square = gemm->causal == CAUSAL_OUT;
    gemm->a = makes_square ? head : square;
    gemm->b = head;
    gemm->c = makes_square ? square : head;
    gemm->a.tensor = operand[0];
    gemm->b.tensor = operand[1];
    gemm->c.tensor = operand[2];
}

static struct gemm make_gemm(const struct bench *bench, const struct product *product, struct tensor *const operand[3])
{
    struct gemm gemm = {
        .form = product->form, .m = product->m, .n = product->n, .k = product->k, .causal = product->causal};
    gemm.heads = product->batch > 1 ? bench->config.heads : 1;
    gemm.batch = product->batch / gemm.heads;
    if (product->batch == 1)
        take_matrices(&gemm, operand);
    else
        take_heads(&gemm, operand, bench->config.channels);
    return gemm;
}

/* Elements of the largest operand. */
static size_t most_elements(const struct product *product)
{
    size_t m = (size_t)product->m, n = (size_t)product->n;
    size_t k = (size_t)product->k;
    size_t most = MAX(m * k, n * k);
    return (size_t)product->batch * MAX(most, m * n);
}

static double flops_of(const struct product *product)
{
    return 2.0 * product->m * product->n * product->k * product->batch;
}

static void run_list(void *list, uint32_t number)
{
    execute(list, number);
    retire_all(list);
}

/* Times a product as the task of a list. */
static struct timing time_gemm(struct bench *bench, const struct product *product, enum gemm_engine engine)
{
    struct device *device = &bench->machine->devices[0];
    struct pool *pool = new_pool(bench->machine);
    struct config tiny = {1, 1, 1, 1, 1, true};
    struct model *model = new_model(pool, &tiny, &one_rank, TO_COMPUTE, (struct gradients){0});
    struct list *list = new_list(pool, "gemm");
    struct builder b = make_builder(list, model, (struct kernels){.gemm = engine}, 1, 1);
    struct tensor *operands[3];
    for (int i = 0; i < 3; i++) {
        operands[i] = new_work_tensor(pool, device, "operand", SHAPE((int64_t)most_elements(product)));
        operands[i]->persistent = true;
    }
    struct gemm operation = make_gemm(bench, product, operands);
    gemm(&b, product->name, &operation);
    must(finish_lists(pool, &list, 1));
    struct timing timing = time_runs(bench, run_list, list, REPEATS, AS_LONG_AS_PROBE, flops_of(product));
    end_build(&b);
    drain(list);
    free_list(list);
    free_model(model);
    free_pool(pool);
    return timing;
}

static const struct column gemm_columns[] = {{"engine", "engine", CELL_TEXT, 7, 0},
                                             {"product", "name", CELL_TEXT, 17, 0},
                                             {"form", "form", CELL_TEXT, 4, 0},
                                             {"m", "m", CELL_COUNT, 6, 0},
                                             {"n", "n", CELL_COUNT, 6, 0},
                                             {"k", "k", CELL_COUNT, 6, 0},
                                             {"batch", "batch", CELL_COUNT, 5, 0},
                                             {"GFLOP/s", "gflops", CELL_FIXED, 8, 1},
                                             {"of peak", "share_of_peak", CELL_SHARE, 7, 0}};

static void bench_gemm(struct bench *bench, const struct product *product, enum gemm_engine engine)
{
    struct timing timing = time_gemm(bench, product, engine);
    if (product->batch == 1 && !isnan(timing.share)) {
        bench->sums[engine].flops += product->count * flops_of(product);
        bench->sums[engine].at_peak += product->count * flops_of(product) / timing.share;
    }
    ROW(bench->gemms, text_cell(word_of("gemm", (int)engine)), text_cell(product->name),
        text_cell(gemm_form_name[product->form]), number_cell(product->m), number_cell(product->n),
        number_cell(product->k), number_cell(product->batch), number_cell(flops_of(product) / timing.seconds / 1e9),
        number_cell(timing.share));
    print_rows(bench->text, bench->gemms, bench->gemms->n - 1, bench->gemms->n);
    fflush(bench->text);
}

static void bench_gemms(struct bench *bench)
{
    struct product products[MOST_PRODUCTS];
    size_t n = collect_linear_products(bench, products);
    n += collect_attention_products(bench, products + n);
    enum gemm_engine only = GEMM_CLBLAST;
    if (has_own_products(&bench->machine->devices[0]))
        only = bench->settings->kernels.gemm;
    print_heading(bench->text, bench->gemms);
    for (size_t i = 0; i < n; i++) {
        if (only == GEMM_OWN || only == GEMM_AUTO)
            bench_gemm(bench, &products[i], GEMM_OWN);
        if (only == GEMM_CLBLAST || only == GEMM_AUTO)
            bench_gemm(bench, &products[i], GEMM_CLBLAST);
    }
}

/* The share of the peak over all projections, weighted by their FLOPs; NAN: none was timed. */
static double weighted_share(const struct bench *bench, enum gemm_engine engine)
{
    if (bench->sums[engine].at_peak <= 0)
        return NAN;
    return bench->sums[engine].flops / bench->sums[engine].at_peak;
}

enum { SHARE_TEXT = 80 }; /* how many bytes the array of of_peak() has */

static const char *of_peak(char out[SHARE_TEXT], double share)
{
    if (isnan(share))
        snprintf(out, SHARE_TEXT, "no share of peak (not timed, or the probe was disturbed)");
    else
        snprintf(out, SHARE_TEXT, "%.1f %% of peak", 100 * share);
    return out;
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

static void run_training(void *context, uint32_t number)
{
    struct trainer *trainer = context;
    issue_step(trainer, number);
    drain(trainer->train_list);
}

static json_t *bench_training(struct bench *bench)
{
    run_trial_for(bench->settings);
    struct trainer *trainer = new_trainer(bench->settings, LIST_TRAIN | OPEN_GIVEN_DATA);
    init_random(trainer->model, 1);
    uint32_t n = was_given("steps") ? (uint32_t)bench->settings->steps : TRAIN_STEPS;
    double tokens = tokens_per_step(trainer);
    double flops = flops_per_token(trainer->model->params, trainer->seq_len) * tokens;
    struct timing step = time_runs(bench, run_training, trainer, n, SINGLE_RUN, flops);
    char share[SHARE_TEXT];
    fprintf(bench->text, "\ntraining: %.1f ms per step (median of %u), %.0f tokens/s, %.1f GFLOP/s; %s\n",
            1e3 * step.seconds, n, tokens / step.seconds, flops / step.seconds * 1e-9, of_peak(share, step.share));
    const struct pass_reports passes = reports_of(trainer);
    print_reports(bench->text, passes.items, passes.n);
    json_t *train = json_object();
    set_json_text(train, "model", word_of("model", bench->settings->preset));
    json_object_set_new(train, "ms_per_step", json_real(1e3 * step.seconds));
    json_object_set_new(train, "tokens_per_s", json_real(tokens / step.seconds));
    set_json_number(train, "share_of_peak", step.share);
    json_object_set_new(train, "passes", reports_json(passes.items, passes.n));
    free_trainer(trainer);
    return train;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static bool is_running;         /* is the command yard bench? */
static bool measures_broadcast; /* is --broadcast given? */

static void check_bench_options(struct settings *settings)
{
    settings->demands.sweeps |= measures_broadcast;
    if (asked_predict.hardware && is_running && !measures_broadcast)
        fail(EXIT_USAGE,
             "--hardware %s: bench measures this machine, and simulates only --broadcast: add that, or "
             "leave --hardware out",
             asked_predict.hardware);
}

static const struct usage usage = {
    .name = "bench",
    .takes = "[options]",
    .examples = "--model nano\n"
                "--json --model gpt2 -d 0:0\n",
    .text =
        "Measures the device: its peak of fused multiply-adds (FMA), and how fast copies, matrix products and training "
        "are.",
    .classes = OF_LIST | OF_RUN,
    .files = "--data FILE",
    .also = "vocab steps serial json hardware broadcast"};

/* copy: bytes per second; train: what bench_training() returned, which becomes a part of what is printed. */
static void print_bench_json(const struct bench *bench, double copy, json_t *train)
{
    json_t *all = json_object();
    set_json_text(all, "device", bench->machine->devices[0].name);
    json_object_set_new(all, "fma_peak_gflops", json_real(bench->peak / 1e9));
    json_object_set_new(all, "copy_gbytes_per_s", json_real(copy / 1e9));
    json_object_set_new(all, "gemm", table_json(bench->gemms));
    set_json_number(all, "own_share_of_peak", weighted_share(bench, GEMM_OWN));
    set_json_number(all, "clblast_share_of_peak", weighted_share(bench, GEMM_CLBLAST));
    json_object_set_new(all, "train", train);
    print_json(all);
}

static void bench_all(struct bench *bench)
{
    const struct settings *settings = bench->settings;
    struct device *device = &bench->machine->devices[0];
    char own_text[SHARE_TEXT], clblast_text[SHARE_TEXT];
    bench->peak = run_probe(bench->probe, 0.3);
    double copy = measure_copy_speed(device, 0.3);
    fprintf(bench->text,
            "device %s (%s, %u units)\nFMA peak %.1f GFLOP/s, copy %.1f GB/s read + written\n\nmatrix products of "
            "one step of model %s\n",
            device->name, device->id, device->units, bench->peak / 1e9, copy / 1e9, word_of("model", settings->preset));
    bench_gemms(bench);
    fprintf(bench->text, "projections, weighted by FLOPs: own %s, CLBlast %s\n",
            of_peak(own_text, weighted_share(bench, GEMM_OWN)),
            of_peak(clblast_text, weighted_share(bench, GEMM_CLBLAST)));
    json_t *train = bench_training(bench);
    print_line(bench->text,
               "\nFMA peak: %.1f GFLOP/s at its best in this run; each share is of the peak measured beside its "
               "timing%s",
               bench->peak / 1e9,
               device->is_cpu ? ",\nby CPU time, so that neither other programs nor waiting cores count" : "");
    if (settings->json)
        print_bench_json(bench, copy, train);
}

static enum exit_code run_bench(int argc, char **argv)
{
    is_running = true;
    struct settings *settings = parse_settings(&usage, argc, argv);
    if (measures_broadcast)
        return bench_broadcast(settings);
    struct bench bench = {
        .settings = settings, .text = settings->json ? stderr : stdout, .config = config_of(settings)};
    bench.gemms = new_table(gemm_columns, COUNT(gemm_columns));
    bench.machine = open_machine_for(settings, false);
    /* A model that training would refuse is refused now, and not after the products. */
    free_trainer(plan_training(settings, LIST_TRAIN | OPEN_GIVEN_DATA));
    bench.probe = open_probe(&bench.machine->devices[0]);
    bench_all(&bench);
    close_probe(bench.probe);
    close_machine(bench.machine);
    free_table(bench.gemms);
    return EXIT_OK;
}

static const struct subcommand command = {
    .help_place = 100,
    .name = "bench",
    .help = "measure the device, its matrix products and training",
    .run = run_bench,
    .foreign = "benchmark speed",
};
static const struct option options[] = {
    {.name = "broadcast",
     .type = OPT_FLAG,
     .value = &measures_broadcast,
     .group = GROUP_PREDICTING,
     .classes = 0, /* only a usage that names it takes it */
     .help = "measure only training, with one broadcast queue and with several, and with slices of several "
             "sizes"},
};
const struct module module_bench = {
    .name = "bench",
    .needs = "broadcast console pass peak predict trace",
    .commands = &command,
    .n_commands = 1,
    .options = options,
    .n_options = COUNT(options),
    .check_settings = check_bench_options,
};
