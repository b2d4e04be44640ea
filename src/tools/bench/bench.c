/* bench.c - yard bench: the limits of the device, and what this program makes of them.
 *
 * All in one run on the chosen device, since machines drift: the peak of independent FMAs, copy bandwidth, every matrix
 * product of the model in its form (packing included) by both engines, then training.  A product is timed as the same
 * task that a training step runs, alone in a list that is executed over and over.  A share is the median over pairs of
 * about equally long stretches, the FMA probe and then what is compared with it.  On CPUs it is one of CPU time, which
 * other programs cannot lengthen.  Where it is above 1 all the same the probe was disturbed, and no share is known.
 */
#include "bench.h"
#include "techniques/pass/pass.h"
#include "tools/command/numbers.h"
#include "tools/command/table.h"
#include "tools/predict/predict.h"
#include "tools/trace/peak.h"
#include "trainer/cmd/cmd.h"
#include "trainer/train/train.h"

#include <math.h>

enum { REPEATS = 9, WARM_UP = 2, TRAIN_STEPS = 12 };

struct bench {
    struct settings *settings;
    FILE *text; /* what people read: stdout, or with --json stderr */
    struct machine *machine;
    struct config config;
    struct table *gemms;
    struct probe *probe;
    double peak;           /* FLOP/s of FMAs: the best moment of this run */
    double weighted[3][2]; /* per engine, over the projections: FLOPs, and FLOPs divided by the share of the peak */
};

struct timing { /* medians */
    double seconds, share;
};

typedef void run_once(void *what, uint32_t number);

/* n stretches behind a warm-up, which compiles kernels: each is one run, or as many as take as long as the probe. */
static struct timing time_runs(struct bench *b, run_once *run, void *what, uint32_t n, bool fill, double flops)
{
    enum { LONGEST = 1 }; /* of the probe, in seconds */
    const struct device *d = &b->machine->device[0];
    double *seconds = allocate(n, sizeof *seconds), *share = allocate(n, sizeof *share), last = 0;
    int alike = d->is_cpu || d->is_logical ? 1 : b->machine->n_devices; /* the probe runs on one device */
    uint32_t number = 0;
    while (number < WARM_UP)
        run(what, ++number);
    for (uint32_t i = 0; i < n; i++) {
        double begin = work_seconds(d), peak = run_probe(b->probe, fmin(last, LONGEST));
        double from = work_seconds(d), probed = from - begin;
        uint64_t start = now_ns(), runs = 0;
        do
            run(what, ++number), runs++;
        while (fill && work_seconds(d) - from < probed);
        seconds[i] = 1e-9 * (double)(now_ns() - start) / (double)runs;
        last = work_seconds(d) - from;
        share[i] = flops * (double)runs / last / alike / peak;
        b->peak = fmax(b->peak, peak);
    }
    struct timing t = {median(seconds, n), median(share, n)};
    t.share = t.share <= 1 ? t.share : NAN;
    free(seconds), free(share);
    return t;
}

/* ---- matrix products ------------------------------------------------------------------------------------------- */

/* The products of one forward and backward, with how often a layer (or the model) runs each. */
struct shape {
    const char *name;
    enum gemm_form form;
    int m, n, k, batch;
    enum gemm_causal causal;
    int count;
};

static size_t list_shapes(const struct bench *b, struct shape *out)
{
    const struct config *c = &b->config;
    int n = (int)(b->settings->batch * b->settings->seq_len), C = c->channels, L = c->layers;
    const int V = (int)padded_words(c->vocab);
    int t = (int)b->settings->seq_len, hs = C / c->heads, z = (int)b->settings->batch * c->heads;
    const struct {
        const char *name;
        int out, in, count;
    } linear[] = {{"attn.qkv", 3 * C, C, L},
                  {"attn.proj", C, C, L},
                  {"mlp.fc", 4 * C, C, L},
                  {"mlp.proj", C, 4 * C, L},
                  {"head", V, C, 1}};
    size_t k = 0;
    for (enum gemm_form form = GEMM_NT; form <= GEMM_TN; form++)
        for (size_t i = 0; i < COUNT(linear); i++) {
            const int to = linear[i].out, from = linear[i].in;
            const int size[][3] = {[GEMM_NT] = {n, to, from}, [GEMM_NN] = {n, from, to}, [GEMM_TN] = {to, from, n}};
            const int *s = size[form];
            out[k++] = (struct shape){linear[i].name, form, s[0], s[1], s[2], 1, CAUSAL_NONE, linear[i].count};
        }
    out[k++] = (struct shape){"attn.scores, datt", GEMM_NT, t, t, hs, z, CAUSAL_OUT, 2 * L};
    out[k++] = (struct shape){"attn.mix, dq", GEMM_NN, t, hs, t, z, CAUSAL_A, 2 * L};
    out[k++] = (struct shape){"attn.dv, dk", GEMM_TN, t, hs, t, z, CAUSAL_A_TRANSPOSED, 2 * L};
    return k;
}

/* The operands lie as in training: heads side by side in rows of C for what is (T, hs). */
static struct gemm describe_gemm(const struct bench *b, const struct shape *s, struct tensor *const of[3])
{
    bool ta = s->form == GEMM_TN, tb = s->form == GEMM_NT, alone = s->batch == 1, out = s->causal == CAUSAL_OUT;
    int heads = s->batch > 1 ? b->config.heads : 1, C = b->config.channels, t = s->m;
    struct gemm g = {s->form, s->m, s->n, s->k, s->batch / heads, heads, .causal = s->causal};
    struct operand square = {NULL, 0, t, (size_t)heads * (size_t)t * (size_t)t, (size_t)t * (size_t)t};
    struct operand head = {NULL, 0, C, (size_t)t * (size_t)C, (size_t)(C / heads)};
    g.a = alone ? matrix(of[0], ta ? s->m : s->k) : out ? head : square;
    g.b = alone ? matrix(of[1], tb ? s->k : s->n) : head;
    g.c = alone ? matrix(of[2], s->n) : out ? square : head;
    g.a.tensor = of[0], g.b.tensor = of[1], g.c.tensor = of[2];
    return g;
}

static double flops_of(const struct shape *s) { return 2.0 * s->m * s->n * s->k * s->batch; }

static void run_list(void *list, uint32_t number)
{
    execute(list, number);
    wait_all(list);
}

/* The product as tasks of a list (one, or with CLBlast's bias filling two). */
static struct timing time_gemm(struct bench *b, const struct shape *s, enum gemm_engine engine)
{
    struct device *d = &b->machine->device[0];
    struct pool *pool = new_pool(b->machine);
    struct config tiny = {1, 1, 1, 1, 1, true};
    struct model *model = new_model(pool, &tiny, &one_rank, false, (struct gradients){0});
    struct step *list = new_step(pool, "gemm");
    struct build build = new_build(list, model, (struct kernels){.gemm = engine}, 1, 1);
    size_t most = (size_t)s->batch *
                  MAX(MAX((size_t)s->m * (size_t)s->k, (size_t)s->n * (size_t)s->k), (size_t)s->m * (size_t)s->n);
    struct tensor *of[3];
    for (int i = 0; i < 3; i++) {
        of[i] = new_tensor(pool, d, MEM_WORK, "operand", FLOAT32, SHAPE((int64_t)most));
        of[i]->persistent = true;
    }
    struct gemm g = describe_gemm(b, s, of);
    gemm(&build, s->name, &g);
    must(finish_steps(pool, &list, 1));
    struct timing timing = time_runs(b, run_list, list, REPEATS, true, flops_of(s));
    end_build(&build);
    drain(list);
    free_step(list);
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

static void bench_gemms(struct bench *b)
{
    struct shape shapes[32];
    size_t n = list_shapes(b, shapes);
    enum gemm_engine only = has_own_products(&b->machine->device[0]) ? b->settings->kernels.gemm : GEMM_CLBLAST;
    print_heading(b->text, b->gemms);
    for (size_t i = 0; i < 2 * n; i++) {
        enum gemm_engine engine = i % 2 ? GEMM_CLBLAST : GEMM_OWN;
        const struct shape *s = &shapes[i / 2];
        if (only != engine && only != GEMM_AUTO)
            continue;
        struct timing t = time_gemm(b, s, engine);
        if (s->batch == 1 && !isnan(t.share)) {
            b->weighted[engine][0] += s->count * flops_of(s);
            b->weighted[engine][1] += s->count * flops_of(s) / t.share;
        }
        ROW(b->gemms, text_cell(word_of("gemm", (int)engine)), text_cell(s->name), text_cell(gemm_form_name[s->form]),
            number_cell(s->m), number_cell(s->n), number_cell(s->k), number_cell(s->batch),
            number_cell(flops_of(s) / t.seconds / 1e9), number_cell(t.share));
        print_rows(b->text, b->gemms, b->gemms->n - 1, b->gemms->n);
        fflush(b->text);
    }
}

static const char *of_peak(char out[80], double share)
{
    snprintf(out, 80, isnan(share) ? "no share of peak (not timed, or the probe was disturbed)" : "%.1f %% of peak",
             100 * share);
    return out;
}

/* ---- training -------------------------------------------------------------------------------------------------- */

static void run_training(void *trainer, uint32_t number)
{
    struct trainer *t = trainer;
    run_step(t, number);
    drain(t->train);
}

static json_t *bench_training(struct bench *b)
{
    run_trial_for(b->settings);
    struct trainer *t = new_trainer(b->settings, LIST_TRAIN, b->settings->data.path != NULL, false);
    init_random(t->model, 1);
    uint32_t n = was_given("steps") ? (uint32_t)b->settings->steps : TRAIN_STEPS;
    double tokens = tokens_per_step(t), flops = flops_per_token(t->model->params, t->seq) * tokens;
    struct timing step = time_runs(b, run_training, t, n, false, flops);
    fprintf(b->text, "\ntraining: %.1f ms per step (median of %u), %.0f tokens/s, %.1f GFLOP/s; %s\n",
            1e3 * step.seconds, n, tokens / step.seconds, flops / step.seconds * 1e-9,
            of_peak((char[80]){0}, step.share));
    const struct pass_reports passes = reports_of(t);
    print_reports(b->text, passes.report, passes.n);
    json_t *train = json_pack("{s:s, s:f, s:f, s:o, s:o}", "model", word_of("model", b->settings->preset),
                              "ms_per_step", 1e3 * step.seconds, "tokens_per_s", tokens / step.seconds, "share_of_peak",
                              number_json(step.share), "passes", reports_json(passes.report, passes.n));
    free_trainer(t);
    return train;
}

/* ---- the command ----------------------------------------------------------------------------------------------- */

static bool measures; /* the command is yard bench */
static bool sweeps;   /* --broadcast */

static void check(struct settings *s)
{
    s->sweeps = sweeps;
    if (predict_options.hardware && measures && !sweeps)
        fail(EXIT_USAGE, "--hardware %s: bench measures what is here; only --broadcast can be simulated",
             predict_options.hardware);
}

static const struct page page = {"bench",
                                 "[options]",
                                 "Measures the device: the peak of fused multiply-adds (FMA), copies, matrix products, "
                                 "training.",
                                 OF_LIST | OF_RUN,
                                 " vocab steps serial json hardware broadcast ",
                                 NULL,
                                 false};

static int run_bench(int argc, char **argv)
{
    measures = true;
    struct settings *s = parse_settings(&page, argc, argv);
    if (sweeps)
        return bench_broadcast(s);
    struct bench b = {.settings = s, .text = s->json ? stderr : stdout, .config = config_of(s)};
    b.gemms = new_table(gemm_columns, COUNT(gemm_columns));
    b.machine = machine_of(s, false);
    /* What training would refuse is refused now, and not behind the products. */
    free_trainer(new_trainer(s, LIST_TRAIN, s->data.path != NULL, true));

    struct device *d = &b.machine->device[0];
    b.probe = open_probe(d);
    b.peak = run_probe(b.probe, 0.3);
    double copy = measure_copy(d, 0.3);
    fprintf(b.text,
            "device %s (%s, %u units)\nFMA peak %.1f GFLOP/s, copy %.1f GB/s read + written\n\nmatrix products of "
            "one step of model %s\n",
            d->name, d->id, d->units, b.peak / 1e9, copy / 1e9, word_of("model", s->preset));
    bench_gemms(&b);
    const double *w = b.weighted[GEMM_OWN], *lib = b.weighted[GEMM_CLBLAST];
    double own = w[1] > 0 ? w[0] / w[1] : NAN, clblast = lib[1] > 0 ? lib[0] / lib[1] : NAN;
    fprintf(b.text, "projections, weighted by FLOPs: own %s, CLBlast %s\n", of_peak((char[80]){0}, own),
            of_peak((char[80]){0}, clblast));
    json_t *train = bench_training(&b);
    fprintf(b.text,
            "\nFMA peak: %.1f GFLOP/s in the best moment of this run; shares are of the moment beside each timing%s\n",
            b.peak / 1e9,
            d->is_cpu ? ",\nby CPU time: neither what other programs take counts, nor cores that wait" : "");
    if (s->json)
        print_json(json_pack("{s:s, s:f, s:f, s:o, s:o, s:o, s:o}", "device", d->name, "fma_peak_gflops", b.peak / 1e9,
                             "copy_gbytes_per_s", copy / 1e9, "gemm", table_json(b.gemms), "own_share_of_peak",
                             number_json(own), "clblast_share_of_peak", number_json(clblast), "train", train));
    close_probe(b.probe);
    close_machine(b.machine);
    return EXIT_OK;
}

static const struct subcommand command = {100, "bench", "measure the device, its matrix products and training",
                                          run_bench, " benchmark speed "};
static const struct option options[] = {
    {"broadcast", 0, OPT_FLAG, &sweeps, NULL, NULL, 0, 0, GROUP_PREDICTING, 0,
     "instead, train with one broadcast queue and with several, and slices of several sizes"},
};
const struct module module_bench = {.name = "bench",
                                    .needs = "broadcast command pass predict trace",
                                    .place = 96,
                                    .commands = &command,
                                    .n_commands = 1,
                                    .options = options,
                                    .n_options = COUNT(options),
                                    .check = check};
