/* settings.c - the one table of options: parsing, --help, presets, config file and the log's record follow from it.
 *
 *     recorded options of --resume  <  --config  <  command line        later ones win; sizes that are still open are
 *                                                                       those of --init or --resume, else --model's
 */
#include "tools/trace/trace.h"
#include "train.h"
#include "trainer/base/module.h"
#include "trainer/base/table.h"

#include <float.h>

enum {
    BUILD_ALL = CMD_TRAIN | CMD_PLAN | CMD_BENCH | CMD_PROFILE,
    RUN_ALL = BUILD_ALL | CMD_SAMPLE | CMD_CHECK,
    TUNED = CMD_TRAIN | CMD_CHECK
};
static struct settings s; /* the table points into it; one command runs in a process */
struct one_life *this_life = &(struct one_life){0};

#define MODEL "Model"
#define DATA "Data"
#define TRAINING "Training"
#define DEVICES "Devices"
#define PASSES "Techniques"
#define LOOKING "Running and looking"
#define SAMPLING "Sampling"
#define PREDICTING "Predicting"
#define CHECKING "Checking"

#define BELOW_1 (1 - FLT_EPSILON / 2) /* the largest float below 1 */
static const struct option own_options[] = {
    {"model", 0, OPT_CHOICE, &s.preset, "nano", WORDS("tiny", "nano", "char", "gpt2"), 0, 0, MODEL, BUILD_ALL,
     "sizes by name: tiny (2 layers, 2 heads, 32 channels, seq-len 32, batch 4), nano (4, 4, 128, 64, 12), char (6, 6, "
     "384, 256, 8), gpt2 (12, 12, 768, 1024, 4)"},
    {"layers", 0, OPT_INT, &s.layers, NULL, "N", 1, MAX_LAYERS, MODEL, BUILD_ALL, "transformer layers"},
    {"heads", 0, OPT_INT, &s.heads, NULL, "N", 1, 1000, MODEL, BUILD_ALL | CMD_SAMPLE | CMD_CHECK,
     "attention heads; must divide --channels; of a model file that does not say its own"},
    {"channels", 0, OPT_INT, &s.channels, NULL, "N", 1, 100000, MODEL, BUILD_ALL, "width of the model"},
    {"seq-len", 0, OPT_INT, &s.seq_len, NULL, "N", 1, 1000000, MODEL, BUILD_ALL, "tokens per sequence"},
    {"untied", 0, OPT_FLAG, &s.untied, NULL, NULL, 0, 0, MODEL, BUILD_ALL, "give the head weights of its own"},
    {"init", 0, OPT_INPUT, &s.init, NULL, "FILE|DIR", 0, 0, MODEL, CMD_TRAIN | CMD_PLAN,
     "start from an llm.c checkpoint, safetensors with GPT-2 names (a file, the index of shards, or their folder, "
     "where a "
     "config.json is read too), or what --save wrote; brings its own sizes"},
    {"config", 0, OPT_INPUT, &s.config, NULL, "FILE", 0, 0, MODEL, BUILD_ALL, "lines `option = value`"},

    {"data", 0, OPT_INPUTS, &s.data.path, NULL, "PATH", 0, 0, DATA, BUILD_ALL,
     "text (also packed with gzip), llm.c shard or uint16 tokens: a file, a folder or a quoted glob; a folder with "
     "train.bin and val.bin: the one to train, the other to validate; 'stories': a built-in text whose best "
     "possible loss is known; 'stories:FILE': by your own grammar; 'self': this program's sources (default: stories; "
     "plan, profile and bench: random tokens)"},
    {"vocab", 0, OPT_INT, &s.vocab, NULL, "N", 1, 1e6, DATA, CMD_PLAN | CMD_BENCH | CMD_PROFILE,
     "of random tokens (default: 256; of gpt2 50257)"},
    {"tokens", 0, OPT_CHOICE, &s.data.tokens, "bytes", WORDS([TOKENS_BYTES] = "bytes", [TOKENS_CHARS] = "chars"), 0, 0,
     DATA, BUILD_ALL, "what a token of text is"},
    {"order", 0, OPT_CHOICE, &s.data.order, "shuffle", WORDS([ORDER_SHUFFLE] = "shuffle", [ORDER_FILE] = "file"), 0, 0,
     DATA, BUILD_ALL, "random windows, or one after another"},
    {"val-data", 0, OPT_INPUTS, &s.data.val_data, NULL, "PATH", 0, 0, DATA, BUILD_ALL,
     "default: --val-share of --data"},
    {"val-share", 0, OPT_DOUBLE, &s.data.val_share, "0.1", "X", 0, 0.9, DATA, BUILD_ALL,
     "share of the data for validation: the end of a text, parts all over several files"},
    {"val-every", 0, OPT_INT, &s.val_every, NULL, "N", 0, 1e9, DATA, CMD_TRAIN,
     "evaluate so often (0: only at the end)"},
    {"val-batches", 0, OPT_INT, &s.val_batches, NULL, "N", 0, 1e9, DATA, CMD_TRAIN, "evaluate on N batches (0: all)"},

    {"batch", 0, OPT_INT, &s.batch, NULL, "N", 1, 1e6, TRAINING, BUILD_ALL, "sequences per step, over all devices"},
    {"micro-batch", 0, OPT_INT, &s.micro_batch, NULL, "N", 0, 1e6, TRAINING, BUILD_ALL,
     "sequences a device takes at a time (0: its whole share); gradients are accumulated"},
    {"steps", 0, OPT_INT, &s.steps, "500", "N", 1, 1e9, TRAINING, CMD_TRAIN | CMD_BENCH, "of training"},
    {"stop-after", 0, OPT_INT, &s.stop_after, NULL, "N", 0, 1e9, TRAINING, CMD_TRAIN,
     "save and stop after step N; the schedule is still meant for --steps (0: off)"},
    {"lr", 0, OPT_FLOAT, &s.lr, "1e-3", "X", 0, 1e3, TRAINING, TUNED, "learning rate"},
    {"lr-min", 0, OPT_FLOAT, &s.lr_min, "-1", "X", -1, 1e3, TRAINING, CMD_TRAIN, "at the end (-1: a tenth of --lr)"},
    {"schedule", 0, OPT_CHOICE, &s.schedule, "cosine",
     WORDS([RATE_COSINE] = "cosine", [RATE_CONSTANT] = "constant", [RATE_LINEAR] = "linear", [RATE_WSD] = "wsd"), 0, 0,
     TRAINING, CMD_TRAIN, "of the learning rate; wsd: constant, and the last fifth of the steps decays"},
    {"warmup", 0, OPT_INT, &s.warmup, "-1", "N", -1, 1e9, TRAINING, CMD_TRAIN,
     "steps in which the learning rate rises (-1: a twentieth of --steps, at most 100; none when constant)"},
    {"beta1", 0, OPT_FLOAT, &s.beta1, "0.9", "X", 0, BELOW_1, TRAINING, TUNED, "AdamW: mean of gradients"},
    {"beta2", 0, OPT_FLOAT, &s.beta2, "0.99", "X", 0, BELOW_1, TRAINING, TUNED, "AdamW: mean of squared gradients"},
    {"eps", 0, OPT_FLOAT, &s.eps, "1e-8", "X", FLT_MIN, 1, TRAINING, TUNED, "AdamW: added to the denominator"},
    {"weight-decay", 0, OPT_FLOAT, &s.weight_decay, "0.1", "X", 0, 10, TRAINING, TUNED, "AdamW: decay of matrices"},
    {"clip", 0, OPT_FLOAT, &s.clip, "1", "X", 0, 1e9, TRAINING, CMD_TRAIN | CMD_PLAN,
     "largest norm of the gradient; above 0 all updates, of a step file too, wait for the end of the last backward; 0: "
     "no limit, and each layer is updated right behind its backward"},
    {"seed", 0, OPT_LONG, &s.seed, "1337", "N", 0, 9e15, TRAINING, BUILD_ALL | CMD_SAMPLE, "of random numbers"},

    {"devices", 'd', OPT_TEXT, &s.devices, NULL, "P:D[/n|xN][,...]", 0, 0, DEVICES, RUN_ALL,
     "platform:device as `yard devices` numbers them; /n cuts a CPU into n sub-devices, xN uses a device as N logical "
     "ones (default: the first GPU, else the first device)"},
    {"mesh", 0, OPT_TEXT, &s.mesh, NULL, "dp=A,pp=B,tp=C", 0, 0, DEVICES, BUILD_ALL,
     "arrange the devices: A data-parallel pipelines of B stages, each stage's layers cut by heads, columns and words "
     "for C tensor-parallel devices (default: dp = all devices)"},
    {"zero", 0, OPT_INT, &s.zero, "1", "0..3", 0, 3, DEVICES, BUILD_ALL,
     "what data-parallel devices share out instead of each keeping all. 1: the optimizer's state; 2: gradients too "
     "(with a single micro-batch); 3: parameters too, gathered layer by layer before use. The bits are the same"},
    {"stages", 0, OPT_TEXT, &s.stages, NULL, "N,N,...", 0, 0, DEVICES, BUILD_ALL,
     "layers of each stage (default: equal)"},
    {"pipeline", 0, OPT_CHOICE, &s.pipeline, "1f1b", pipeline_name, 0, 0, DEVICES, BUILD_ALL,
     "order of micro-batches in a pipeline. interleaved: two stages per device, micro-batches a multiple of pp; "
     "zbh1, zbh2: the gradients of weights fill the waits, zbh2 in twice the memory; dualpipev: the same with two "
     "stages per device, the first and the last on device 0, at least 2 pp micro-batches"},
    {"grad-groups", 0, OPT_INT, &s.grad_groups, "1", "G", 1, MAX_RANKS, DEVICES, BUILD_ALL,
     "sum the gradient in G groups of sequences, as dp=G does, to compare to the bit"},
    {"device-mem", 0, OPT_BYTES, &s.device_memory, NULL, "BYTES", 0, 0, DEVICES, RUN_ALL,
     "budget per device, with K, M or G (0: of a CPU three quarters of the host's memory, of a GPU all of its own but "
     "a sixteenth and 256 MiB, left to the driver)"},
    {"host-mem", 0, OPT_BYTES, &s.host_memory, NULL, "BYTES", 0, 0, DEVICES, RUN_ALL, "the same for the host"},
    {"gemm", 0, OPT_CHOICE, &s.kernels.gemm, "auto",
     WORDS([GEMM_AUTO] = "auto", [GEMM_OWN] = "own", [GEMM_CLBLAST] = "clblast"), 0, 0, DEVICES, RUN_ALL,
     "matrix products: our kernel, which is for CPUs, or CLBlast (auto: ours on CPUs, CLBlast on GPUs)"},
    {"attention", 0, OPT_CHOICE, &s.kernels.attention, "plain",
     WORDS([ATTENTION_PLAIN] = "plain", [ATTENTION_FLASH] = "flash"), 0, 0, DEVICES, RUN_ALL,
     "plain: products and softmax, keeps a (T, T) matrix per head; flash: fused kernels, memory grows with T alone"},
    {"vector", 0, OPT_INT, &s.vector, NULL, "N", 0, 16, DEVICES, RUN_ALL,
     "floats per vector: 1, 4, 8 or 16, at most what the device has (0: just that); results depend on it to the last "
     "bit"},

    {"overlap", 0, OPT_CHOICE, &s.pass.overlap, "off",
     WORDS([OVERLAP_OFF] = "off", [OVERLAP_PLAN] = "plan", [OVERLAP_LOCAL] = "local", [OVERLAP_ALL_CPU] = "all-cpu",
           [OVERLAP_ALL_DEVICE] = "all-device"),
     0, 0, PASSES, BUILD_ALL,
     "run optimizer updates of some layers on the CPU while the device goes on. plan: chosen for the shortest step; "
     "local: chosen at the end of each layer's backward, by the work that the CPU still has"},
    {"overlap-plan", 0, OPT_OUTPUT, &s.pass.overlap_plan, NULL, "FILE", 0, 0, PASSES, BUILD_ALL,
     "of --overlap plan: the plan as text, read when the file is there, else written"},
    {"recompute", 0, OPT_CHOICE, &s.pass.recompute, "off",
     WORDS([RECOMPUTE_OFF] = "off", [RECOMPUTE_FULL] = "full", [RECOMPUTE_SELECTIVE] = "selective",
           [RECOMPUTE_AUTO] = "auto"),
     0, 0, PASSES, BUILD_ALL,
     "make activations again before a layer's backward instead of keeping them. full: all but the layer's input; "
     "selective: attention's (T, T) matrices and GELU's output; auto: as the budget needs, for the shortest step"},
    {"swap", 0, OPT_CHOICE, &s.pass.swap, "off",
     WORDS([SWAP_OFF] = "off", [SWAP_AUTO] = "auto", [SWAP_LAYER] = "layer", [SWAP_MICROBATCH] = "microbatch"), 0, 0,
     PASSES, BUILD_ALL,
     "move data to the host and back in time. auto: as the budget needs, for the shortest step; data that is cheaper "
     "to make again is made again. layer: away during the next layer's forward, back during that layer's backward. "
     "microbatch: away behind a micro-batch's forward, back during the backward before its own"},
    {"swap-what", 0, OPT_TEXT, &s.swap_what, "activations", "CLASS,...", 0, 0, PASSES, BUILD_ALL,
     "which of activations, gradients, optimizer and parameters may leave; state then lives on the host"},
    {"snapshot", 0, OPT_OUTPUT, &s.pass.snapshot.file, NULL, "FILE", 0, 0, PASSES, CMD_TRAIN | CMD_PLAN,
     "store each unit in FILE as soon as it is updated, while the rest of the step goes on: --resume FILE goes on from "
     "there after any interruption (plan: say when which iteration could be recovered, and write nothing)"},
    {"snapshot-every", 0, OPT_INT, &s.pass.snapshot.every, "1", "K", 1, MOST_EVERY, PASSES, CMD_TRAIN | CMD_PLAN,
     "every Kth iteration"},
    {"snapshot-slots", 0, OPT_INT, &s.pass.snapshot.slots, "2", "S", 1, 16, PASSES, CMD_TRAIN | CMD_PLAN,
     "iterations for which the file has room; one that finds no slot free is dropped, and training does not wait. The "
     "newest one keeps its slot, so with 1 only the first is stored"},
    {"snapshot-in", 0, OPT_CHOICE, &s.pass.snapshot.in, "host", WORDS([IN_HOST] = "host", [IN_DEVICE] = "device"), 0, 0,
     PASSES, CMD_TRAIN | CMD_PLAN,
     "a unit's next update waits for its copy. host: into the host's memory; device: into the device's, with room for "
     "S copies, from where it goes down while training goes on: for slow links"},
    {"restart", 0, OPT_FLAG, &s.restart, NULL, NULL, 0, 0, PASSES, CMD_TRAIN,
     "train in a process of its own. When that dies, the next one goes on from the newest commit in --snapshot FILE; "
     "without --resume the first one does too. Ctrl-C, a not-a-number that comes again, and 3 restarts without a newer "
     "commit end the run"},

    {"serial", 0, OPT_FLAG, &s.serial, NULL, NULL, 0, 0, LOOKING, CMD_TRAIN | CMD_CHECK | CMD_SAMPLE | CMD_BENCH,
     "run one task after another, wait after each, create no thread: the reference, and for debuggers"},
    {"audit", 0, OPT_FLAG, &s.audit, NULL, NULL, 0, 0, LOOKING, TUNED,
     "with --serial: run every task over three fillings of what it does not declare to read, and compare: for the data "
     "of this run, tasks touch what they declare and no more (slow)"},
    {"delay-seed", 0, OPT_LONG, &s.delay_seed, "-1", "N", -1, 9e15, LOOKING, CMD_TRAIN,
     "delay the end of tasks at random, and with --overlap local draw where updates run (-1: neither)"},
    {"trace", 0, OPT_OUTPUT, &s.trace, NULL, "FILE", 0, 0, LOOKING, CMD_TRAIN | CMD_PLAN,
     "record what ran when (plan: what is simulated); see `yard trace --help`"},
    {"view", 0, OPT_FLAG, &s.view, NULL, NULL, 0, 0, LOOKING, RUN_ALL, "show in a window what runs when, as it runs"},
    {"log", 0, OPT_OUTPUT, &s.log, NULL, "FILE.jsonl", 0, 0, LOOKING, CMD_TRAIN,
     "one line of JSON per step; when it cannot be written any more the run goes on, and ends with exit code 4"},
    {"save", 0, OPT_OUTPUT, &s.save, NULL, "DIR", 0, 0, LOOKING, CMD_TRAIN,
     "write a checkpoint DIR/step-N at the end, and the parameters, for other programs, to DIR/model.safetensors"},
    {"save-every", 0, OPT_INT, &s.save_every, NULL, "N", 0, 1e9, LOOKING, CMD_TRAIN, "also every N steps (0: never)"},
    {"keep", 0, OPT_INT, &s.keep, NULL, "K", 0, 1e9, LOOKING, CMD_TRAIN, "keep the K newest checkpoints (0: all)"},
    {"resume", 0, OPT_INPUT, &s.resume, NULL, "DIR|FILE", 0, 0, LOOKING, CMD_TRAIN,
     "go on from a checkpoint, the newest one in a folder, or a snapshot. Sizes, data, options and strategy are as "
     "saved, except for what the command line says; on another number of devices dp is changed"},
    {"sample-tokens", 0, OPT_INT, &s.sample_tokens, "200", "N", 0, 1e6, LOOKING, CMD_TRAIN, "of text shown at the end"},
    {"json", 0, OPT_FLAG, &s.json, NULL, NULL, 0, 0, LOOKING, CMD_DEVICES | CMD_CHECK | CMD_PLAN | CMD_BENCH,
     "one JSON object on stdout and nothing else"},
    {"print", 0, OPT_FLAG, &s.print, NULL, NULL, 0, 0, LOOKING, CMD_PLAN, "tasks and memory map too"},
    {"memory", 0, OPT_FLAG, &s.memory, NULL, NULL, 0, 0, LOOKING, CMD_PLAN,
     "a table instead: what each device would hold at the peak, with each kind of --recompute and of --zero"},
    {"after", 0, OPT_TEXT, &s.after, NULL, "PASS", 0, 0, LOOKING, CMD_PLAN, "the list as it is after that pass"},
    {"list", 0, OPT_INPUT, &s.list, NULL, "FILE", 0, 0, LOOKING, CMD_PLAN,
     "the list of a step file instead of a model's: a machine, tensors and tasks written by hand, with their times "
     "(the format: tutorials/reference-lists.md, examples: data/steps)"},
    {"print-list", 0, OPT_FLAG, &s.print_list, NULL, NULL, 0, 0, LOOKING, CMD_PLAN,
     "the train list as a step file, which is simulated to the same times; needs --profile, --hardware or --list"},
    {"verify", 0, OPT_FLAG, &s.verify, NULL, NULL, 0, 0, LOOKING, CMD_PLAN,
     "prove that every read sees the right value, that every conflict is ordered whatever the timing, and that memory "
     "is within the budgets, provided that tasks touch what they declare (train --serial --audit checks that)"},

    {"simulate", 0, OPT_FLAG, &s.simulate, NULL, NULL, 0, 0, PREDICTING, CMD_PLAN,
     "predict the step on a virtual clock; needs --profile, --hardware or --list"},
    {"profile", 0, OPT_INPUT, &s.profile, NULL, "FILE", 0, 0, PREDICTING, CMD_TRAIN | CMD_PLAN,
     "task times that `yard profile` measured; train: for its plans, instead of a trial"},
    {"hardware", 0, OPT_INPUT, &s.hardware, NULL, "FILE", 0, 0, PREDICTING, CMD_TRAIN | CMD_PLAN | CMD_BENCH,
     "task times modelled from a description, see data/hardware; --mesh dp=N uses N of its devices, and no OpenCL "
     "device is needed (bench: with --broadcast); train: on the real devices, for its plans, instead of a trial"},
    {"what-if", 0, OPT_TEXT, &s.what_if, NULL, "WORDS", 0, 0, PREDICTING, CMD_PLAN,
     "as \"link=2x cpu=0.5x device=1.5x mem=8G\"; with --memory: mixed, for mixed precision, which is counted, not "
     "run"},
    {"pace", 0, OPT_INPUT, &s.pace, NULL, "FILE", 0, 0, PREDICTING, CMD_TRAIN,
     "pad every task of a real run to its predicted end, by a profile or a hardware description, all stretched alike"},
    {"iterations", 0, OPT_INT, &s.pass.snapshot.iterations, "16", "N", 1, 1e6, PREDICTING, CMD_PLAN,
     "with --snapshot: report the commits of the first N iterations"},
    {"broadcast", 0, OPT_FLAG, &s.broadcast, NULL, NULL, 0, 0, PREDICTING, CMD_BENCH,
     "instead, train with one broadcast queue and with several, and slices of several sizes"},
    {"output", 'o', OPT_OUTPUT, &s.output, NULL, "FILE", 0, 0, PREDICTING, CMD_PROFILE, "the profile to write"},

    {"from", 0, OPT_INPUT, &s.from, NULL, "DIR|FILE", 0, 0, SAMPLING, CMD_SAMPLE, "what --save wrote, or as --init"},
    {"prompt", 0, OPT_TEXT, &s.prompt, "\n", "TEXT", 0, 0, SAMPLING, CMD_SAMPLE, "to continue (default: a line's end)"},
    {"count", 0, OPT_INT, &s.count, "300", "N", 1, 1e7, SAMPLING, CMD_SAMPLE, "tokens to add"},
    {"temperature", 0, OPT_FLOAT, &s.temperature, "0.8", "X", 0, 100, SAMPLING, CMD_SAMPLE, "0: always the likeliest"},
    {"top-k", 0, OPT_INT, &s.top_k, "40", "K", 0, 1e6, SAMPLING, CMD_SAMPLE, "choose among the K likeliest (0: all)"},

    {"tolerance", 0, OPT_DOUBLE, &s.tolerance, "1e-5", "X", 0, 1, CHECKING, CMD_CHECK,
     "largest relative error (with --gradients 1e-4)"},
    {"gradients", 0, OPT_FLAG, &s.gradients, NULL, NULL, 0, 0, CHECKING, CMD_CHECK,
     "instead of a FILE: compare the backward of every operation with differences of its forward, on a small model "
     "with random values; shows the worst element of the gradient of each input"},
};
static struct option options[MOST_OPTIONS]; /* these, and those of folders, which stand at the end of the techniques' */
static struct option_table table = {.options = options, .foreign = foreign_options};

static void add_option(const struct option *o)
{
    CHECK(table.n < MOST_OPTIONS, "more than %d options", MOST_OPTIONS);
    options[table.n] = *o;
    table.n++;
}

static void add_options_of_folders(void)
{
    for (size_t i = 0; i < n_modules; i++)
        for (size_t k = 0; k < modules[i]->n_options; k++) {
            struct option o = modules[i]->options[k];
            o.group = PASSES;
            o.commands = BUILD_ALL;
            add_option(&o);
        }
}

static void gather_options(void)
{
    for (size_t i = 0; i < COUNT(own_options); i++) {
        bool was_technique = i > 0 && strcmp(own_options[i - 1].group, PASSES) == 0;
        if (was_technique && strcmp(own_options[i].group, PASSES) != 0)
            add_options_of_folders();
        add_option(&own_options[i]);
    }
}

/* ---- what makes no sense, or not together ----------------------------------------------------------------------- */

#define REFUSE_IF(condition, ...) ((condition) ? fail(EXIT_USAGE, __VA_ARGS__) : (void)0)

static const struct law laws[] = {
    {"save-every", "save", NULL},
    {"keep", "save", NULL},
    {"swap-what", "swap", NULL},
    {"snapshot-every", "snapshot", NULL},
    {"snapshot-slots", "snapshot", NULL},
    {"snapshot-in", "snapshot", NULL},
    {"iterations", "snapshot", NULL},
    {"profile", "hardware", "both say how long tasks take"},
    {"hardware", "pace", "both say how long tasks take"},
    {"profile", "pace", "both say how long tasks take"},
    {"pace", "delay-seed", "both decide when tasks end"},
    {"serial", "pace", "tasks run one after another, as fast as they can"},
    {"serial", "delay-seed", "tasks run one after another, as fast as they can"},
    {"vocab", "data", "the data bring their own vocabulary"},
    {"vocab", "init", "a model brings its own sizes"},
    {"resume", "init", "one goes on from a checkpoint's weights, the other begins from a model's"},
    {"print-list", "json", "a step file is printed and nothing else"},
    {"print-list", "print", "a step file is printed and nothing else"},
    {"print-list", "trace", "a step file is printed and nothing else"},
    {"print-list", "view", "a step file is printed and nothing else"},
    {"print-list", "snapshot", "a step file has no words for slots"}};

/* What may stand beside --list, and the techniques: a step file brings its machine, its times and its sizes. */
static const char *const beside_list[] = {"list",    "simulate",   "verify",   "print", "json", "trace",
                                          "view",    "print-list", "clip",     "after", "seed", "iterations",
                                          "what-if", "device-mem", "host-mem", NULL};

static void keep_law(const struct law *law)
{
    const struct option *other = find_option(&table, law->other);
    char *text = option_text(other);
    bool off = !*text || (other->type != OPT_OUTPUT && (strcmp(text, "off") == 0 || strcmp(text, "0") == 0));
    bool given = was_given(law->option);
    if (given && !law->why && off && !s.broadcast)
        warn("--%s has no effect without --%s", law->option, law->other);
    REFUSE_IF(given && law->why && was_given(law->other), "--%s and --%s: %s; leave one out", law->option, law->other,
              law->why);
    free(text);
}

static void check_together(enum command command)
{
    for (size_t i = 0; i < COUNT(laws); i++)
        keep_law(&laws[i]);
    for (size_t i = 0; i < n_modules; i++) {
        for (size_t k = 0; k < modules[i]->n_laws; k++)
            keep_law(&modules[i]->laws[k]);
        if (modules[i]->check)
            modules[i]->check();
    }
    if (was_given("lr-min") && s.schedule == RATE_CONSTANT)
        warn("--lr-min has no effect with --schedule constant");
    if (was_given("val-share") && was_given("val-data"))
        warn("--val-share has no effect with --val-data");
    for (size_t i = 0; i < table.n && s.list; i++)
        REFUSE_IF(table.given[i] && strcmp(options[i].group, PASSES) != 0 &&
                      choice_number(beside_list, options[i].name) < 0,
                  "--list %s brings machine, sizes and times: leave --%s out", s.list, options[i].name);
    for (size_t i = 0; i < table.n && s.gradients; i++)
        REFUSE_IF(table.given[i] && (options[i].value == &s.serial || options[i].value == &s.view ||
                                     options[i].value == &s.heads || strcmp(options[i].group, TRAINING) == 0),
                  "--gradients takes a model of its own, updates nothing, and runs each task alone: leave --%s out",
                  options[i].name);
    REFUSE_IF((s.simulate || s.print_list) && !s.profile && !s.hardware && !s.list,
              "--%s needs times: add --profile, --hardware or --list", s.simulate ? "simulate" : "print-list");
    REFUSE_IF(s.hardware && command == CMD_BENCH && !s.broadcast,
              "--hardware %s: bench measures what is here; only --broadcast can be simulated", s.hardware);
    REFUSE_IF(s.after && !find_pass(s.after), "--after %s: there is no such pass; there are: %s", s.after,
              pass_names());
    REFUSE_IF(s.zero == 3 && !somebody_gathers(),
              "--zero 3 keeps parameters in shards, and nothing here gathers them: this yard was built without%s",
              left_out);
    REFUSE_IF(s.memory && (s.simulate || s.verify || s.print || s.print_list),
              "--memory prints a table and nothing else: leave --simulate, --verify, --print and --print-list out");
    REFUSE_IF(s.what_if && !s.simulate && !s.print_list && !s.memory,
              "--what-if changes what is predicted: add --simulate");
    REFUSE_IF(s.what_if && strstr(s.what_if, "mem=") && was_given("device-mem"),
              "--what-if %s and --device-mem: both say what a device may hold; leave one out", s.what_if);
    REFUSE_IF(s.pass.overlap_plan && s.pass.overlap != OVERLAP_PLAN,
              "--overlap-plan %s is the plan of --overlap plan: add that", s.pass.overlap_plan);
    REFUSE_IF(s.audit && !s.serial, "--audit runs every task alone: add --serial");
    REFUSE_IF(s.restart && !s.pass.snapshot.file, "--restart goes on from a snapshot: add --snapshot FILE");
    if (s.pass.snapshot.file && s.pass.snapshot.slots == 1)
        warn("--snapshot-slots 1: the first snapshot keeps the only slot, and no later one is stored; use 2 or more");
    if (s.pass.snapshot.file && command == CMD_TRAIN && s.pass.snapshot.every > s.steps)
        warn("--snapshot-every %d: the last step is %d, so no snapshot is stored; use a smaller one",
             s.pass.snapshot.every, s.steps);
    REFUSE_IF(s.stop_after && !s.save, "--stop-after saves and stops: add --save DIR");
    REFUSE_IF(s.stop_after > s.steps, "--stop-after %d is behind the last step, %d", s.stop_after, s.steps);
}

/* ---- sizes ------------------------------------------------------------------------------------------------------ */

enum { SIZES = 6 };
static int *const size[SIZES] = {&s.layers, &s.heads, &s.channels, &s.seq_len, &s.batch, &s.vocab};
static const int presets[][SIZES] = {
    {2, 2, 32, 32, 4, 256}, {4, 4, 128, 64, 12, 256}, {6, 6, 384, 256, 8, 256}, {12, 12, 768, 1024, 4, 50257}};

/* --model fills in what nobody else gave. */
static void apply_preset(void)
{
    for (int i = 0; i < SIZES; i++)
        if (!*size[i])
            *size[i] = presets[s.preset][i];
}

/* --resume and --init bring their own sizes: who gives them must give the same.  Only sequences may be shorter. */
static void adopt_sizes(void)
{
    static const char *const name[] = {"layers", "heads", "channels"};
    const struct config c = s.source.config;
    const int theirs[] = {c.layers, c.heads, c.channels};
    for (size_t i = 0; i < COUNT(name); i++) {
        int given = *size[i] ? *size[i] : s.resume && was_given("model") ? presets[s.preset][i] : theirs[i];
        REFUSE_IF(given != theirs[i], "%s has %d %s, not %d: leave --model and --%s out", s.source.path, theirs[i],
                  name[i], given, name[i]);
        *size[i] = theirs[i];
    }
    REFUSE_IF(s.untied && c.tied, "%s has a tied head: leave --untied out", s.source.path);
    REFUSE_IF(s.seq_len > c.seq_len, "--seq-len %d is longer than the %d positions of %s", s.seq_len, c.seq_len,
              s.source.path);
    s.untied = !c.tied;
    s.seq_len = s.seq_len ? s.seq_len : c.seq_len;
}

/* ---- recorded options ------------------------------------------------------------------------------------------- */

/* Does the training follow from it, beside the sizes and the mesh? */
static bool is_recorded(const struct option *o)
{
    static const char *const groups[] = {DATA, TRAINING, DEVICES, PASSES, NULL};
    static const char *const unrecorded[] = {"stop-after", "mesh", "snapshot", "restart", NULL};
    return (o->commands & CMD_TRAIN) && choice_number(unrecorded, o->name) < 0 &&
           (choice_number(groups, o->group) >= 0 || strcmp(o->name, "seq-len") == 0);
}

json_t *options_json(bool recorded)
{
    json_t *all = json_object();
    for (size_t i = 0; i < table.n; i++) {
        const struct option *o = &options[i];
        char *text = option_text(o);
        bool number = o->type < OPT_TEXT && !recorded, wanted = recorded ? is_recorded(o) && *text : true;
        if (wanted && (o->commands & CMD_TRAIN))
            json_object_set_new(all, o->name, number ? json_loads(text, JSON_DECODE_ANY, NULL) : text_json(text));
        free(text);
    }
    return all;
}

/* Recorded ones do not count as given. */
static void apply_recorded(const char *path)
{
    const char *name;
    json_t *value;
    struct checkpoint *c = open_checkpoint(path);
    c->room->open = now_ns() - this_life->begun - c->room->read - c->room->verify;
    s.source = (struct source){copy_string(path), c, c->pieces->config};
    json_object_foreach(c->options, name, value)
    {
        const struct option *o = find_option(&table, name);
        char *where = format_string("%s%s: option %s", c->path, c->stored ? "" : "/" MANIFEST, name);
        if (o && is_recorded(o))
            set_option(&table, o, where, json_string_value(value)), table.given[o - options] = false;
        else if (strcmp(name, "mesh") != 0)
            warn("%s is unknown to this program, and left out", where);
        free(where);
    }
}

/* ---- the command line ------------------------------------------------------------------------------------------- */

static const struct page {
    enum command command;
    const char *name, *takes, *text;
} pages[] = {
    {CMD_DEVICES, "devices", "[--json]", "Shows the OpenCL platforms and devices, numbered as -d takes them."},
    {CMD_TRAIN, "train", "[options]", "Trains a GPT; without options a small one on stories, a built-in text."},
    {CMD_SAMPLE, "sample", "--from DIR|FILE [options]", "Lets a saved model write."},
    {CMD_CHECK, "check", "FILE|--gradients [options]",
     "Computes what FILE (see tutorials/reference-files.md) holds as another program computed it, and prints the "
     "relative\nerror of every tensor. Exit code 1 when one is above --tolerance."},
    {CMD_PLAN, "plan", "[options]",
     "Builds a training step and shows it instead of running it: tasks with lanes, edges and work, and the memory."},
    {CMD_PROFILE, "profile", "-o FILE [options]",
     "Trains a few steps and writes the time of every kind of task, the speed of copies and the memory to FILE."},
    {CMD_BENCH, "bench", "[options]",
     "Measures the device: the peak of fused multiply-adds (FMA), copies, matrix products, training."},
};

/* Before any file is opened for writing.  What lies in folders is added where they are listed. */
static void claim_files(enum command command)
{
    for (size_t i = 0; i < table.n; i++) {
        const struct option *o = &options[i];
        const char *path = o->type >= OPT_INPUT ? *(const char **)o->value : NULL;
        const char *who = JOINED("--", o->name);
        if (!path || !(o->commands & command))
            continue;
        if (o->type != OPT_OUTPUT)
            claim_input(who, path);
        else {
            expect_outside(who, path);
            claim_output(who, path, path == s.save || path == s.pass.snapshot.file ? "--resume" : NULL);
        }
    }
    if (s.save)
        claim_output("--save", saved_model(&s), NULL);
}

static void reset_settings(enum command command)
{
    s = (struct settings){0};
    if (table.n == 0)
        gather_options();
    reset_options(&table);
    begin_claims();
    if (command == CMD_CHECK) /* the reference's optimizer */
        s.beta2 = 0.95, s.eps = 1e-5;
}

struct settings *parse_settings(enum command command, int argc, char **argv)
{
    const struct page *page = pages;
    char **words;
    int n_words;
    while (page->command != command)
        page++;
    reset_settings(command);
    if (wants_help(argc, argv)) {
        apply_preset();
        printf("usage: yard %s %s\n\n%s\n", page->name, page->takes, page->text);
        print_options(stdout, &table, page->command);
        if (page->command & BUILD_ALL)
            printf(
                "\nA config file holds lines `option = value`. Precedence: --model's sizes, --config, command line.\n");
        flush_output();
        exit(EXIT_OK);
    }
    parse_options(&table, (unsigned)command, page->name, argc, argv, &words, &n_words);
    REFUSE_IF(
        command == CMD_CHECK && n_words != !s.gradients,
        "yard check takes one reference file, for example tests/data/gpt2-tiny.safetensors; or --gradients and no "
        "file");
    if (command != CMD_CHECK && n_words) {
        char *known = strchr(words[0], '=') ? known_elsewhere(&table, (unsigned)command, words[0], "--") : NULL;
        if (known)
            fail(EXIT_USAGE, "'%s' is not an option: options start with --; %s", words[0], known);
        const char *option = command == CMD_SAMPLE ? "from" : "data";
        if (exists(words[0]))
            fail(EXIT_USAGE, "'%s' is a file that no option takes: write --%s %s%s", words[0], option, words[0],
                 command != CMD_SAMPLE ? "; for several files a quoted pattern, such as --data 'folder/*.txt'" : "");
        if (strpbrk(words[0], "./"))
            fail(EXIT_USAGE, "'%s' is not an option, and no such file is here; a file is given as --%s FILE", words[0],
                 option);
        fail(EXIT_USAGE, "'%s' is not an option: options start with --; see `yard %s --help`", words[0], page->name);
    }
    const char *config = s.config, *resume = this_life->from ? this_life->from : s.resume, *reference = words[0];
    reset_settings(command); /* what they say is overruled by the command line, which comes once more */
    if (resume)
        apply_recorded(resume);
    if (config) {
        static char *text; /* options point into it */
        claim_input("--config", config);
        REFUSE_IF(is_json(config),
                  "%s is a JSON text, not lines `option = value`: the config.json of a model is read by --init FOLDER",
                  config);
        text = read_text(config);
        parse_config(&table, (unsigned)command, config, text);
        REFUSE_IF(was_given("config") || was_given("resume"),
                  "%s: --config and --resume belong on the command line, not into a config file", config);
    }
    parse_options(&table, (unsigned)command, page->name, argc, argv, &words, &n_words);
    s.reference = reference;
    if (this_life->from)
        s.resume = this_life->from, s.init = NULL;
    claim_files(command);
    check_together(command);
    if (s.init) {
        s.source = open_source(s.init, s.heads);
        if (strcmp(s.source.path, s.init) != 0) /* a folder's model */
            claim_input("--init", s.source.path);
        if (!s.source.checkpoint)
            claim_weights("--init", s.source.path);
    }
    if (s.source.path)
        adopt_sizes();
    apply_preset();
    s.preset = s.source.path ? -1 : s.preset;
    return &s;
}

/* ---- for others ------------------------------------------------------------------------------------------------- */

bool was_given(const char *option) { return option_given(&table, option); }

int given_heads(void) { return was_given("heads") ? s.heads : 0; }

void expect_heads(const struct config *c, const char *path)
{
    int given = given_heads();
    REFUSE_IF(given && given != c->heads, "%s has %d heads, not %d: leave --heads out", path, c->heads, given);
}

const char *word_of(const char *option, int number) { return choice_words(find_option(&table, option))[number]; }

char *saved_model(const struct settings *settings) { return format_string("%s/model.safetensors", settings->save); }

char *trace_path(const struct settings *settings)
{
    if (settings->trace && this_life->restarts) /* those before it stay */
        return format_string("%s.%d", settings->trace, this_life->restarts);
    return settings->trace ? copy_string(settings->trace) : settings->view ? private_trace() : NULL;
}
