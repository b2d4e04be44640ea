/* settings.c - the one table of options: parsing, --help, presets, config file and the log's record follow from it. */
#include "../base/table.h"
#include "train.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUILD_ALL = CMD_TRAIN | CMD_PLAN | CMD_BENCH | CMD_PROFILE,
    RUN_ALL = BUILD_ALL | CMD_SAMPLE | CMD_CHECK,
};
static struct settings s; /* the table points into it; one command runs in a process */

#define MODEL "Model"
#define DATA "Data"
#define TRAINING "Training"
#define DEVICES "Devices"
#define PASSES "Techniques"
#define LOOKING "Running and looking"
#define SAMPLING "Sampling"
#define PREDICTING "Predicting"

#define BELOW_1 (1 - FLT_EPSILON / 2) /* the largest float below 1 */

static struct option options[] = {
    {"model", 0, OPT_CHOICE, &s.preset, "tiny|nano|char|gpt2", 0, 0, MODEL,
     "sizes by name: tiny (2 layers, 2 heads, 32 channels, seq-len 32, batch 4), nano (4, 4, 128, 64, 12), char (6, 6, "
     "384, 256, 8), gpt2 (12, 12, 768, 1024, 4)",
     BUILD_ALL, false},
    {"layers", 0, OPT_INT, &s.layers, "N", 1, MAX_LAYERS, MODEL, "transformer layers", BUILD_ALL, false},
    {"heads", 0, OPT_INT, &s.heads, "N", 1, 1000, MODEL, "attention heads; must divide --channels", BUILD_ALL, false},
    {"channels", 0, OPT_INT, &s.channels, "N", 1, 100000, MODEL, "width of the model", BUILD_ALL, false},
    {"seq-len", 0, OPT_INT, &s.seq_len, "N", 1, 1000000, MODEL, "tokens per sequence", BUILD_ALL, false},
    {"untied", 0, OPT_FLAG, &s.untied, NULL, 0, 0, MODEL,
     "the head has weights of its own (default: the token embedding)", BUILD_ALL, false},
    {"init", 0, OPT_INPUT, &s.init, "FILE|DIR", 0, 0, MODEL,
     "start from an llm.c checkpoint, safetensors with GPT-2 names, or the weights of what --save wrote; brings its "
     "own sizes",
     CMD_TRAIN | CMD_PLAN, false},
    {"config", 0, OPT_INPUT, &s.config, "FILE", 0, 0, MODEL, "lines `option = value`; options on the command line win",
     BUILD_ALL, false},

    {"data", 0, OPT_INPUT, &s.data, "PATH", 0, 0, DATA,
     "text, llm.c shard or uint16 tokens: a file, a folder or a quoted glob (default: this program's own sources; "
     "plan, profile and bench: random tokens)",
     BUILD_ALL, false},
    {"vocab", 0, OPT_INT, &s.vocab, "N", 1, 1e6, DATA,
     "the random tokens are numbers below N; with --model gpt2 50257 unless N is given",
     CMD_PLAN | CMD_BENCH | CMD_PROFILE, false},
    {"tokens", 0, OPT_CHOICE, &s.tokens, "bytes|chars", 0, 0, DATA, "what a token of text is", BUILD_ALL, false},
    {"order", 0, OPT_CHOICE, &s.order, "shuffle|file", 0, 0, DATA, "random windows, or one after another", BUILD_ALL,
     false},
    {"val-data", 0, OPT_INPUT, &s.val_data, "PATH", 0, 0, DATA, "validation data (default: the end of --data)",
     BUILD_ALL, false},
    {"val-share", 0, OPT_DOUBLE, &s.val_share, "X", 0, 0.9, DATA, "share of the data kept for validation", BUILD_ALL,
     false},
    {"val-every", 0, OPT_INT, &s.val_every, "N", 0, 1e9, DATA,
     "steps between evaluations (0: only after the last step)", CMD_TRAIN, false},
    {"val-batches", 0, OPT_INT, &s.val_batches, "N", 0, 1e9, DATA, "evaluate on N batches (0: the whole split)",
     CMD_TRAIN, false},

    {"batch", 0, OPT_INT, &s.batch, "N", 1, 1e6, TRAINING, "sequences per step, over all devices", BUILD_ALL, false},
    {"micro-batch", 0, OPT_INT, &s.micro_batch, "N", 0, 1e6, TRAINING,
     "sequences a device takes at a time (0: its whole share); gradients are accumulated", BUILD_ALL, false},
    {"steps", 0, OPT_INT, &s.steps, "N", 1, 1e9, TRAINING, "training steps", CMD_TRAIN | CMD_BENCH, false},
    {"stop-after", 0, OPT_INT, &s.stop_after, "N", 0, 1e9, TRAINING,
     "save and stop after step N; the schedule is still meant for --steps (0: off)", CMD_TRAIN, false},
    {"lr", 0, OPT_FLOAT, &s.lr, "X", 0, 1e3, TRAINING, "learning rate", CMD_TRAIN | CMD_CHECK, false},
    {"lr-min", 0, OPT_FLOAT, &s.lr_min, "X", -1, 1e3, TRAINING, "where the schedule ends (-1: a tenth of --lr)",
     CMD_TRAIN, false},
    {"schedule", 0, OPT_CHOICE, &s.schedule, "cosine|constant|linear|wsd", 0, 0, TRAINING,
     "course of the learning rate", CMD_TRAIN, false},
    {"warmup", 0, OPT_INT, &s.warmup, "N", -1, 1e9, TRAINING,
     "steps over which it rises (-1: a twentieth of --steps, at most 100; none when constant)", CMD_TRAIN, false},
    {"decay-share", 0, OPT_DOUBLE, &s.decay_share, "X", 0, 1, TRAINING, "wsd: share of the steps that decay", CMD_TRAIN,
     false},
    {"beta1", 0, OPT_FLOAT, &s.beta1, "X", 0, BELOW_1, TRAINING, "AdamW: mean of gradients (at 1 it would never learn)",
     CMD_TRAIN | CMD_CHECK, false},
    {"beta2", 0, OPT_FLOAT, &s.beta2, "X", 0, BELOW_1, TRAINING, "AdamW: mean of squared gradients",
     CMD_TRAIN | CMD_CHECK, false},
    {"eps", 0, OPT_FLOAT, &s.eps, "X", FLT_MIN, 1, TRAINING, "AdamW: added to the denominator, which may be 0",
     CMD_TRAIN | CMD_CHECK, false},
    {"weight-decay", 0, OPT_FLOAT, &s.weight_decay, "X", 0, 10, TRAINING, "AdamW: decay of matrices",
     CMD_TRAIN | CMD_CHECK, false},
    {"clip", 0, OPT_FLOAT, &s.clip, "X", 0, 1e9, TRAINING,
     "largest norm of the gradient; 0: none, and each layer is updated right behind its backward; above 0 no update "
     "starts before the last backward has ended, nor in a step file",
     CMD_TRAIN | CMD_PLAN, false},
    {"seed", 0, OPT_INT, &s.seed, "N", 0, 9e15, TRAINING, "of random numbers: initial weights, order of data, sampling",
     BUILD_ALL | CMD_SAMPLE, false},

    {"devices", 'd', OPT_TEXT, &s.devices, "P:D[/n|xN][,...]", 0, 0, DEVICES,
     "platform:device as `yard devices` numbers them; /n cuts a CPU into n sub-devices, xN uses a device as N logical "
     "ones (default: the first GPU, else the first device)",
     RUN_ALL, false},
    {"mesh", 0, OPT_TEXT, &s.mesh, "dp=A,pp=B,tp=C", 0, 0, DEVICES,
     "arrange the devices: A data-parallel pipelines of B stages, each stage's layers cut by heads, columns and words "
     "for C tensor-parallel devices (default: dp = all devices)",
     BUILD_ALL, false},
    {"tp-exact", 0, OPT_FLAG, &s.tp_exact, NULL, 0, 0, DEVICES,
     "tensor-parallel devices go on with each other's sums instead of adding up their own, which gives one device's "
     "bits (with --clip 0 and --gemm own) but lets them wait for one another; head and embedding are not cut",
     BUILD_ALL, false},
    {"zero", 0, OPT_INT, &s.zero, "0..3", 0, 3, DEVICES,
     "what data-parallel devices share out instead of each keeping all: 1 the optimizer's state, 2 gradients too (with "
     "a single micro-batch), 3 parameters too, of which a layer's are gathered before use; the bits are the same",
     BUILD_ALL, false},
    {"stages", 0, OPT_TEXT, &s.stages, "N,N,...|auto", 0, 0, DEVICES,
     "layers of each stage (default: as equal as can be); auto: so that stages take equally long, the head counted "
     "too, and the speed of unlike devices",
     BUILD_ALL, false},
    {"pipeline", 0, OPT_CHOICE, &s.pipeline, "1f1b|gpipe|interleaved", 0, 0, DEVICES,
     "order of micro-batches in a pipeline; interleaved: --chunks stages per device, and a multiple of B micro-batches",
     BUILD_ALL, false},
    {"chunks", 0, OPT_INT, &s.chunks, "N", 0, MAX_CHUNKS, DEVICES,
     "stages per device of an interleaved pipeline (0: two)", BUILD_ALL, false},
    {"grad-groups", 0, OPT_INT, &s.grad_groups, "G", 1, MAX_RANKS, DEVICES,
     "sum the gradient in G groups of sequences, as dp=G does, to compare to the bit; needs a multiple of G "
     "micro-batches",
     BUILD_ALL, false},
    {"device-mem", 0, OPT_BYTES, &s.device_memory, "BYTES", 0, 0, DEVICES,
     "budget per device, with K, M or G; what does not fit is refused before the first step (0: the device's memory; "
     "of a CPU three quarters of the host's)",
     RUN_ALL, false},
    {"host-mem", 0, OPT_BYTES, &s.host_memory, "BYTES", 0, 0, DEVICES, "the same for the host", RUN_ALL, false},
    {"gemm", 0, OPT_CHOICE, &s.gemm, "auto|own|clblast", 0, 0, DEVICES,
     "matrix products: our kernel, or CLBlast (auto: ours on CPUs, CLBlast on GPUs)", RUN_ALL, false},
    {"vector", 0, OPT_INT, &s.vector, "N", 0, 16, DEVICES,
     "floats per vector: 1, 4, 8 or 16, at most what the device has (0: just that). Results depend on it to the last "
     "bit: for the same bits on unlike CPUs, take the same N there, and the same driver",
     RUN_ALL, false},
    {"oversubscribe", 0, OPT_FLAG, &s.oversubscribe, NULL, 0, 0, DEVICES, "allow -d to name the same cores twice",
     RUN_ALL, false},
    {"gather-ahead", 0, OPT_INT, &s.gather_ahead, "N", 0, MAX_LAYERS, DEVICES,
     "with --zero 3: parameters are gathered N layers before they are used, and so many more layers' are held",
     BUILD_ALL, false},
    {"overlap", 0, OPT_CHOICE, &s.overlap, "off|plan|local|slack|all-cpu|all-device", 0, 0, PASSES,
     "run optimizer updates of some layers on the CPU while the device goes on. plan: those with which a step is "
     "shortest; local: by what the CPU has still to do at the end of each layer's backward; slack: by how late they "
     "would be",
     BUILD_ALL, false},
    {"overlap-plan", 0, OPT_TEXT, &s.overlap_plan, "FILE", 0, 0, PASSES,
     "of --overlap plan: the plan as text, read when the file is there, else written", BUILD_ALL, false},

    {"recompute", 0, OPT_CHOICE, &s.recompute, "off|full|selective|auto", 0, 0, PASSES,
     "make activations again before a layer's backward instead of keeping them: all but its input, or selective: the "
     "(T, T) matrices of attention and GELU's output; auto: what the budget needs, so that the step is shortest; the "
     "weights are the same to the last bit",
     BUILD_ALL, false},
    {"swap", 0, OPT_CHOICE, &s.swap, "off|auto|layer|microbatch", 0, 0, PASSES,
     "data leaves for the host and comes back in time. auto: what the budget needs, so that the step is shortest, and "
     "what is cheaper to make again is; layer: during the next layer's forward, and back during its backward; "
     "microbatch: behind a micro-batch's forward, and back during the backward before its own",
     BUILD_ALL, false},
    {"swap-what", 0, OPT_TEXT, &s.swap_what, "CLASS,...", 0, 0, PASSES,
     "of activations, gradients, optimizer and parameters, those that may leave; state then lives on the host, and a "
     "model may be larger than the device",
     BUILD_ALL, false},
    {"broadcast-queues", 0, OPT_INT, &s.queues, "N", 0, 64, PASSES,
     "what an update made goes to the other devices over N queues of each device at once, the main one, which "
     "computes, among them (0: off, over one beside it)",
     BUILD_ALL, false},
    {"broadcast-slices", 0, OPT_INT, &s.slices, "M", 1, 4096, PASSES,
     "cut what a device sends of a layer into M slices, of at least 512 bytes", BUILD_ALL, false},
    {"broadcast-deal", 0, OPT_CHOICE, &s.deal, "even|random", 0, 0, PASSES,
     "how slices are dealt to the queues (random: by --seed)", BUILD_ALL, false},
    {"broadcast-main", 0, OPT_CHOICE, &s.main_queue, "both|compute", 0, 0, PASSES,
     "the main queue computes and sends, or only computes while the other N - 1 send", BUILD_ALL, false},
    {"snapshot", 0, OPT_OUTPUT, &s.snapshot, "FILE", 0, 0, PASSES,
     "store each unit in FILE as soon as it is updated, while the rest of the step goes on: --resume FILE goes on from "
     "there after any interruption (plan: say when which iteration could be recovered, and write nothing)",
     CMD_TRAIN | CMD_PLAN, false},
    {"snapshot-every", 0, OPT_INT, &s.snapshot_every, "K", 1, MOST_EVERY, PASSES, "store iterations divisible by K",
     CMD_TRAIN | CMD_PLAN, false},
    {"snapshot-slots", 0, OPT_INT, &s.snapshot_slots, "S", 1, 16, PASSES,
     "iterations for which the file has room; one that finds no slot free is dropped, and training does not wait",
     CMD_TRAIN | CMD_PLAN, false},
    {"snapshot-wait", 0, OPT_FLAG, &s.snapshot_wait, NULL, 0, 0, PASSES,
     "drop no iteration: the update of a layer that was not stored yet waits until a slot is free",
     CMD_TRAIN | CMD_PLAN, false},

    {"serial", 0, OPT_FLAG, &s.serial, NULL, 0, 0, LOOKING,
     "run one task after another, wait after each, create no thread: the reference, and for debuggers",
     CMD_TRAIN | CMD_CHECK | CMD_SAMPLE | CMD_BENCH, false},
    {"audit", 0, OPT_FLAG, &s.audit, NULL, 0, 0, LOOKING,
     "with --serial: run every task over three fillings of what it does not declare to read, and compare; proves, for "
     "the data of this run, that tasks touch what they declare and no more (slow)",
     CMD_TRAIN | CMD_CHECK, false},
    {"delay-seed", 0, OPT_INT, &s.delay_seed, "N", -1, 9e15, LOOKING,
     "delay the end of tasks at random: the weights must not change (-1: no delays)", CMD_TRAIN, false},
    {"trace", 0, OPT_OUTPUT, &s.trace, "FILE", 0, 0, LOOKING,
     "record what ran when (plan: what is simulated); see `yard trace --help`", CMD_TRAIN | CMD_PLAN, false},
    {"view", 0, OPT_FLAG, &s.view, NULL, 0, 0, LOOKING,
     "show that in a window while it runs: yard view, a process of its own (plan: what is simulated)", RUN_ALL, false},
    {"log", 0, OPT_OUTPUT, &s.log, "FILE.jsonl", 0, 0, LOOKING, "one line of JSON per step", CMD_TRAIN, false},
    {"save", 0, OPT_OUTPUT, &s.save, "DIR", 0, 0, LOOKING,
     "write a checkpoint DIR/step-N at the end, and the parameters alone, for other programs, to DIR/model.safetensors",
     CMD_TRAIN, false},
    {"save-every", 0, OPT_INT, &s.save_every, "N", 0, 1e9, LOOKING, "also every N steps (0: only at the end)",
     CMD_TRAIN, false},
    {"overwrite", 0, OPT_FLAG, &s.overwrite, NULL, 0, 0, LOOKING,
     "--save and --snapshot may replace a model of other sizes, and --save the file of --init", CMD_TRAIN, false},
    {"keep", 0, OPT_INT, &s.keep, "K", 0, 1e9, LOOKING, "keep the K newest checkpoints (0: all of the run)", CMD_TRAIN,
     false},
    {"resume", 0, OPT_INPUT, &s.resume, "DIR|FILE", 0, 0, LOOKING,
     "go on from a checkpoint, the newest one in a folder, or a snapshot, as if there had been no break: with its "
     "sizes, data, options and strategy, except for what the command line says; on another number of devices dp is "
     "changed",
     CMD_TRAIN, false},
    {"sample-tokens", 0, OPT_INT, &s.sample_tokens, "N", 0, 1e6, LOOKING, "tokens of text shown at the end", CMD_TRAIN,
     false},
    {"watchdog", 0, OPT_DOUBLE, &s.watchdog, "SECONDS", 0, 1e6, LOOKING,
     "when no task ends for so long, print what each lane waits for;\nafter five times as long, end the run (0: off)",
     CMD_TRAIN | CMD_BENCH, false},
    {"json", 0, OPT_FLAG, &s.json, NULL, 0, 0, LOOKING, "one JSON object on stdout and nothing else",
     CMD_DEVICES | CMD_CHECK | CMD_PLAN | CMD_BENCH, false},
    {"print", 0, OPT_FLAG, &s.print, NULL, 0, 0, LOOKING, "the list of tasks and the memory map (default)", CMD_PLAN,
     false},
    {"memory", 0, OPT_FLAG, &s.memory, NULL, 0, 0, LOOKING,
     "a table instead: what each device and the host would hold at the peak, with each kind of --recompute and of "
     "--zero",
     CMD_PLAN, false},
    {"after", 0, OPT_TEXT, &s.after, "PASS", 0, 0, LOOKING,
     "the list as it is after that pass, of the passes that are on (default: after all of them)", CMD_PLAN, false},
    {"list", 0, OPT_INPUT, &s.list, "FILE", 0, 0, LOOKING,
     "the list of a step file instead of a model's: a machine, tensors and tasks written by hand, with their times; "
     "nothing of it is run (the format: tutorials/reference-lists.md, examples: data/steps)",
     CMD_PLAN, false},
    {"print-list", 0, OPT_FLAG, &s.print_list, NULL, 0, 0, LOOKING,
     "the train list as a step file, which is simulated to the same times; needs --profile, --hardware or --list",
     CMD_PLAN, false},
    {"verify", 0, OPT_FLAG, &s.verify, NULL, 0, 0, LOOKING,
     "prove that every read sees the right value, that every conflict is ordered whatever the timing, and that memory "
     "is within the budgets, provided that tasks touch what they declare (train --serial --audit checks that)",
     CMD_PLAN, false},

    {"simulate", 0, OPT_FLAG, &s.simulate, NULL, 0, 0, PREDICTING,
     "predict the step on a virtual clock; needs --profile or --hardware", CMD_PLAN, false},
    {"profile", 0, OPT_INPUT, &s.profile, "FILE", 0, 0, PREDICTING,
     "task times that `yard profile` measured; train: for --overlap, instead of a trial", CMD_TRAIN | CMD_PLAN, false},
    {"hardware", 0, OPT_INPUT, &s.hardware, "FILE", 0, 0, PREDICTING,
     "task times modelled from a description, see data/hardware; --mesh dp=N uses N of its devices, and no OpenCL "
     "device is needed (bench: with --broadcast)",
     CMD_PLAN | CMD_BENCH, false},
    {"what-if", 0, OPT_TEXT, &s.what_if, "WORDS", 0, 0, PREDICTING,
     "change speeds and memory: \"link=2x cpu=0.5x device=1.5x mem=8G\"", CMD_PLAN, false},
    {"pace", 0, OPT_INPUT, &s.pace, "FILE", 0, 0, PREDICTING,
     "pad every task of a real run to its predicted end, by a profile or a hardware description", CMD_TRAIN, false},
    {"pace-scale", 0, OPT_DOUBLE, &s.pace_scale, "X", 0, 1e9, PREDICTING,
     "seconds shown per modelled second (0: so that real work takes at most half of the cores, and the median task 5 "
     "ms)",
     CMD_TRAIN, false},
    {"iterations", 0, OPT_INT, &s.iterations, "N", 1, 1e6, PREDICTING,
     "with --snapshot: report the commits of the first N iterations", CMD_PLAN, false},
    {"broadcast", 0, OPT_FLAG, &s.broadcast, NULL, 0, 0, PREDICTING,
     "instead, train with one broadcast queue and with several, and slices of several sizes", CMD_BENCH, false},
    {"output", 'o', OPT_OUTPUT, &s.output, "FILE", 0, 0, PREDICTING, "the profile to write", CMD_PROFILE, false},

    {"from", 0, OPT_INPUT, &s.from, "DIR|FILE", 0, 0, SAMPLING, "what --save wrote, or any file that --init takes",
     CMD_SAMPLE, false},
    {"prompt", 0, OPT_TEXT, &s.prompt, "TEXT", 0, 0, SAMPLING, "text to continue (default: the end of a line)",
     CMD_SAMPLE, false},
    {"count", 0, OPT_INT, &s.count, "N", 1, 1e7, SAMPLING, "tokens to add", CMD_SAMPLE, false},
    {"temperature", 0, OPT_FLOAT, &s.temperature, "X", 0, 100, SAMPLING, "0: always the likeliest token", CMD_SAMPLE,
     false},
    {"top-k", 0, OPT_INT, &s.top_k, "K", 0, 1e6, SAMPLING, "choose among the K likeliest (0: all)", CMD_SAMPLE, false},

    {"tolerance", 0, OPT_DOUBLE, &s.tolerance, "X", 0, 1, "Checking", "largest relative error that passes", CMD_CHECK,
     false},
};
static struct option_table table = {options, COUNT(options)};

/* ---- defaults and presets -------------------------------------------------------------------------------------- */

static const struct preset {
    const char *name;
    int64_t layers, heads, channels, seq_len, batch, vocab;
} presets[] = {
    {"tiny", 2, 2, 32, 32, 4, 256},
    {"nano", 4, 4, 128, 64, 12, 256},
    {"char", 6, 6, 384, 256, 8, 256},
    {"gpt2", 12, 12, 768, 1024, 4, 50257},
};

static void set_defaults(void)
{
    s = (struct settings){
        .preset = "nano",
        .tokens = "bytes",
        .order = "shuffle",
        .val_share = 0.1,
        .steps = 500,
        .warmup = -1,
        .seed = 1337,
        .lr = 1e-3,
        .lr_min = -1,
        .decay_share = 0.2,
        .beta1 = 0.9,
        .beta2 = 0.99,
        .eps = 1e-8,
        .weight_decay = 0.1,
        .clip = 1.0,
        .schedule = "cosine",
        .zero = 1,
        .gather_ahead = 1,
        .pipeline = "1f1b",
        .grad_groups = 1,
        .gemm = "auto",
        .recompute = "off",
        .slices = 16,
        .deal = "even",
        .main_queue = "both",
        .swap = "off",
        .swap_what = "activations",
        .snapshot_every = 1,
        .snapshot_slots = 2,
        .iterations = 16,
        .overlap = "off",
        .sample_tokens = 200,
        .watchdog = 60,
        .prompt = "\n",
        .count = 300,
        .temperature = 0.8,
        .top_k = 40,
        .tolerance = 1e-5,
        .delay_seed = -1,
    };
    for (size_t i = 0; i < COUNT(options); i++)
        options[i].given = false;
}

char *saved_model(const struct settings *settings) { return format_string("%s/model.safetensors", settings->save); }

char *trace_path(const struct settings *settings)
{
    return settings->trace ? copy_string(settings->trace) : settings->view ? private_trace() : NULL;
}

bool was_given(const char *option) { return find_option(&table, option)->given; }

/* The preset fills in what neither command line nor config file gave. */
static void apply_preset(void)
{
    for (size_t i = 0; i < COUNT(presets); i++) {
        const struct preset *p = &presets[i];
        if (strcmp(p->name, s.preset) != 0)
            continue;
        s.layers = was_given("layers") ? s.layers : p->layers;
        s.heads = was_given("heads") ? s.heads : p->heads;
        s.channels = was_given("channels") ? s.channels : p->channels;
        s.seq_len = was_given("seq-len") ? s.seq_len : p->seq_len;
        s.batch = was_given("batch") ? s.batch : p->batch;
        s.vocab = was_given("vocab") ? s.vocab : p->vocab;
    }
}

/* A step file brings its machine, its times and its sizes. */
static void check_list(void)
{
    static const char *const may[] = {"list", "simulate",   "verify", "print", "json", "trace",
                                      "view", "print-list", "clip",   "after", "seed", "iterations"};
    for (size_t i = 0; i < COUNT(options); i++) {
        bool good = !options[i].given || strcmp(options[i].group, PASSES) == 0;
        for (size_t k = 0; k < COUNT(may); k++)
            good |= strcmp(options[i].name, may[k]) == 0;
        if (!good)
            fail(EXIT_USAGE, "--list %s brings machine, sizes and times: leave --%s out", s.list, options[i].name);
    }
}

static void check_print_list(void)
{
    if (!s.profile && !s.hardware && !s.list)
        fail(EXIT_USAGE, "--print-list writes how long tasks take: add --profile, --hardware or --list");
    if (s.snapshot)
        fail(EXIT_USAGE, "--print-list: a step file has no words for slots: leave --snapshot out");
    if (s.json || s.print || s.simulate || s.verify)
        fail(EXIT_USAGE, "--print-list prints a step file and nothing else: leave --%s out",
             s.json       ? "json"
             : s.print    ? "print"
             : s.simulate ? "simulate"
                          : "verify");
}

static void derive(enum command command)
{
    if (s.list)
        check_list();
    if (s.print_list)
        check_print_list();
    if (s.lr_min < 0)
        s.lr_min = s.lr / 10;
    if (s.warmup < 0)
        s.warmup = strcmp(s.schedule, "constant") == 0 ? 0 : MIN(s.steps / 20, 100);
    if (s.vector && s.hardware && !s.devices)
        fail(EXIT_USAGE, "--vector: the devices of %s are on paper and compute nothing: leave it out, or add -d",
             s.hardware);
    if (was_given("vocab") && s.data)
        fail(EXIT_USAGE, "--vocab: --data %s brings its own vocabulary; leave one of the two out", s.data);
    if (s.after && !find_pass(s.after))
        fail(EXIT_USAGE, "--after %s: there is no such pass; there are: %s", s.after, pass_names());
    if (s.queues == 1 && strcmp(s.main_queue, "compute") == 0)
        fail(EXIT_USAGE, "--broadcast-queues 1 --broadcast-main compute: no queue is left to send: use 2 or more");
    if (s.hardware && command == CMD_BENCH && !s.broadcast)
        fail(EXIT_USAGE, "--hardware %s: bench measures what is here; only --broadcast can be simulated", s.hardware);
    if (s.overlap_plan && strcmp(s.overlap, "plan") != 0)
        fail(EXIT_USAGE, "--overlap-plan %s is the plan of --overlap plan: add that", s.overlap_plan);
    if (s.snapshot_wait && s.snapshot_slots == 1)
        fail(EXIT_USAGE, "--snapshot-wait would wait for ever: the newest commit holds the only slot; let "
                         "--snapshot-slots be 2 or more");
    if (s.audit && !s.serial)
        fail(EXIT_USAGE, "--audit runs every task alone: add --serial");
    if (s.simulate && !s.profile && !s.hardware && !s.list)
        fail(EXIT_USAGE, "--simulate needs times: --profile FILE (yard profile -o FILE) or --hardware "
                         "data/hardware/..., or a --list that has them");
    if (s.profile && s.hardware)
        fail(EXIT_USAGE, "--profile and --hardware both say how long tasks take: leave one out");
    if ((s.what_if || s.profile) && !s.simulate && !s.print_list && strcmp(s.overlap, "off") == 0)
        fail(EXIT_USAGE, "--profile and --what-if serve the prediction: add --simulate");
    if (s.serial && (s.pace || s.delay_seed >= 0))
        fail(EXIT_USAGE, "--serial runs one task after another: it cannot be paced or delayed; leave --serial out");
    if (s.pace && s.delay_seed >= 0)
        fail(EXIT_USAGE, "--pace and --delay-seed both decide when tasks end: leave one out");
    if (s.pace_scale != 0 && s.pace_scale < 1e-9)
        fail(EXIT_USAGE, "--pace-scale must be 0 or 1e-9 to 1e9");
    if (s.stop_after && !s.save)
        fail(EXIT_USAGE, "--stop-after saves and stops: add --save DIR");
    if (s.stop_after > s.steps)
        fail(EXIT_USAGE, "--stop-after %lld is behind the last step, %lld", (long long)s.stop_after,
             (long long)s.steps);
}

/* ---- resuming --------------------------------------------------------------------------------------------------- */

/* Does the training follow from it, beside the sizes and the mesh? */
static bool is_recorded(const struct option *o)
{
    static const char *const groups[] = {MODEL, DATA, TRAINING, DEVICES, PASSES};
    static const char *const not [] = {"model", "layers", "heads", "channels",   "untied",
                                       "init",  "config", "vocab", "stop-after", "mesh"};
    bool data = o->type != OPT_INPUT || strcmp(o->group, DATA) == 0, found = false;
    for (size_t i = 0; i < COUNT(groups); i++)
        found |= strcmp(o->group, groups[i]) == 0;
    for (size_t i = 0; i < COUNT(not ); i++)
        found &= strcmp(o->name, not [i]) != 0;
    return found && data && o->type != OPT_OUTPUT && (o->commands & CMD_TRAIN);
}

json_t *training_options(void)
{
    json_t *all = json_object();
    for (size_t i = 0; i < COUNT(options); i++) {
        char *text = is_recorded(&options[i]) ? option_text(&options[i]) : copy_string("");
        if (*text)
            json_object_set_new(all, options[i].name, text_json(text));
        free(text);
    }
    return all;
}

/* Before the command line, which wins: recorded ones do not count as given. */
static void apply_recorded(const char *path)
{
    const char *name;
    json_t *value;
    s.source = (struct source){copy_string(path), open_checkpoint(path)};
    json_object_foreach(s.source.checkpoint->options, name, value)
    {
        struct option *o = find_option(&table, name);
        char *where = format_string("%s/" MANIFEST ": option %s", s.source.checkpoint->path, name);
        if (o && is_recorded(o))
            set_option(o, where, json_string_value(value)), o->given = false;
        else if (strcmp(name, "mesh") != 0)
            warn("%s is unknown to this program, and left out", where);
        free(where);
    }
}

static void expect_size(const char *name, int64_t given, int64_t saved)
{
    if ((was_given(name) || was_given("model")) && given != saved)
        fail(EXIT_USAGE, "%s has %lld %s, not %lld: leave --model and --%s out, or begin a new run with --init",
             s.resume, (long long)saved, name, (long long)given, name);
}

/* The sizes are the checkpoint's; who gives them must give the same. */
static void apply_resume(void)
{
    const struct config *c = &s.source.checkpoint->pieces->config;
    struct settings recorded = s;
    if (s.init)
        fail(EXIT_USAGE, "--resume goes on from a checkpoint's weights, --init begins from others: leave one out");
    if (was_given("model"))
        apply_preset();
    expect_size("layers", s.layers, c->layers);
    expect_size("heads", s.heads, c->heads);
    expect_size("channels", s.channels, c->channels);
    if (s.untied && c->tied)
        fail(EXIT_USAGE, "%s has a tied head: leave --untied out", s.resume);
    if (recorded.seq_len > c->seq_len)
        fail(EXIT_USAGE, "--seq-len %lld is longer than the %d positions of %s", (long long)recorded.seq_len,
             c->seq_len, s.resume);
    s.layers = c->layers, s.heads = c->heads, s.channels = c->channels;
    s.untied = !c->tied;
    s.batch = recorded.batch, s.seq_len = recorded.seq_len;
    s.preset = NULL;
}

/* A file brings its own sizes; only the length of the sequences may be less than it can take. */
static void apply_init(void)
{
    static const char *const fixed[] = {"layers", "heads", "channels", "untied", "vocab"};
    for (size_t i = 0; i < COUNT(fixed); i++)
        if (was_given(fixed[i]))
            fail(EXIT_USAGE, "--%s: --init %s brings its own sizes; leave one of the two out", fixed[i], s.init);
    s.source = open_source(s.init);
    struct config c = source_config(&s.source);
    if (was_given("seq-len") && s.seq_len > c.seq_len)
        fail(EXIT_USAGE, "--seq-len %lld is longer than the %d positions of %s", (long long)s.seq_len, c.seq_len,
             s.init);
    s.layers = c.layers;
    s.heads = c.heads;
    s.channels = c.channels;
    s.untied = !c.tied;
    s.seq_len = was_given("seq-len") ? s.seq_len : c.seq_len;
    s.preset = NULL;
}

struct settings *default_settings(void)
{
    set_defaults();
    apply_preset();
    derive(CMD_TRAIN);
    return &s;
}

/* ---- the command line ------------------------------------------------------------------------------------------ */

static const struct {
    enum command command;
    const char *name, *usage, *text;
} pages[] = {
    {CMD_DEVICES, "devices", "yard devices [--json]",
     "Shows the OpenCL platforms and devices, numbered as -d takes them."},
    {CMD_TRAIN, "train", "yard train [options]",
     "Trains a GPT. Without options: a small one on the program's own sources."},
    {CMD_SAMPLE, "sample", "yard sample --from DIR|FILE [options]", "Lets a saved model write."},
    {CMD_CHECK, "check", "yard check FILE [options]",
     "Computes what FILE holds as another program computed it (logits, loss, gradients, steps of AdamW; the "
     "format:\ntutorials/reference-files.md) and prints the relative error of every tensor. Exit code 1 when one is "
     "above\n--tolerance. AdamW's constants default to the reference's: lr 1e-3, betas 0.9 and 0.95, eps 1e-5, weight "
     "decay\n0.1."},
    {CMD_PLAN, "plan", "yard plan [options]",
     "Builds a training step and shows it instead of running it: tasks with lanes, edges and work, and the memory."},
    {CMD_PROFILE, "profile", "yard profile -o FILE [options]",
     "Trains a few steps and writes the time of every kind of task, the speed of copies and the memory to FILE, as "
     "text\nthat can be edited. `yard plan --simulate --profile FILE` predicts with it."},
    {CMD_BENCH, "bench", "yard bench [options]",
     "Measures the device: the peak of fused multiply-adds (FMA), copies, matrix products of the model, "
     "training;\neach as share of the peak."},
};

static void print_page(enum command command)
{
    for (size_t i = 0; i < COUNT(pages); i++)
        if (pages[i].command == command)
            printf("usage: %s\n\n%s\n", pages[i].usage, pages[i].text);
    print_options(stdout, &table, command);
    if (command & BUILD_ALL)
        printf("\nA config file holds lines `option = value`. Precedence: --model's sizes, --config, command line.\n");
}

static bool wants_help(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

static const char *name_of(enum command command)
{
    for (size_t i = 0; i < COUNT(pages); i++)
        if (pages[i].command == command)
            return pages[i].name;
    return "";
}

/* --resume and --config are looked for first: what the command line gives is parsed after it and wins.  As with every
 * option, the last one counts. */
static const char *find_early(const char *option, int argc, char **argv)
{
    const char *found = NULL;
    size_t n = strlen(option);
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], option, n) == 0 && argv[i][n] == '=')
            found = argv[i] + n + 1;
        if (strcmp(argv[i], option) == 0 && i + 1 < argc)
            found = argv[i + 1];
    }
    return found;
}

static void apply_config(enum command command, const char *path)
{
    claim_input("--config", path);
    char *text = read_text(path);
    parse_config(&table, (unsigned)command, path, text);
    free(text);
    if (was_given("config"))
        fail(EXIT_USAGE, "%s: a config file cannot name another one with `config = ...`: copy its lines here", path);
}

/* Before any file is opened for writing.  What lies in folders is added where they are listed. */
static void claim_files(enum command command)
{
    for (size_t i = 0; i < COUNT(options); i++) {
        const struct option *o = &options[i];
        if ((o->type != OPT_INPUT && o->type != OPT_OUTPUT) || !(o->commands & command) || !*(const char **)o->value)
            continue;
        char *who = format_string("--%s", o->name);
        if (o->type == OPT_INPUT)
            claim_input(who, *(const char **)o->value);
        else
            claim_output(who, *(const char **)o->value,
                         o->value == &s.snapshot    ? "--resume"
                         : o->value != &s.save      ? NULL
                         : s.overwrite && !s.resume ? "--init"
                                                    : "--resume");
        free(who);
    }
    if (s.overlap_plan)
        claim_output("--overlap-plan", s.overlap_plan, NULL);
    if (s.save) {
        char *model = saved_model(&s);
        claim_output("--save", model, s.overwrite ? "--init" : NULL);
        free(model);
    }
}

struct settings *parse_settings(enum command command, int argc, char **argv, char ***words, int *n_words)
{
    set_defaults();
    begin_claims();
    if (command == CMD_CHECK) { /* the reference's optimizer */
        s.beta2 = 0.95;
        s.eps = 1e-5;
    }
    if (wants_help(argc, argv)) {
        s.batch = s.layers = s.heads = s.channels = s.seq_len = s.vocab = 0;
        apply_preset();
        print_page(command);
        flush_output();
        exit(EXIT_OK);
    }
    const char *config = command & BUILD_ALL ? find_early("--config", argc, argv) : NULL;
    const char *resume = command & CMD_TRAIN ? find_early("--resume", argc, argv) : NULL;
    if (resume && *resume)
        apply_recorded(resume);
    if (config)
        apply_config(command, config);
    parse_options(&table, (unsigned)command, name_of(command), argc, argv, words, n_words);
    if (s.resume && !s.source.path) /* of a config file */
        fail(EXIT_USAGE, "--resume belongs on the command line, not into a config file");
    claim_files(command);
    if (s.resume)
        apply_resume();
    else
        apply_preset();
    if (s.init)
        apply_init();
    derive(command);
    return &s;
}

/* ---- the log's record ------------------------------------------------------------------------------------------ */

static json_t *value_json(const struct option *o)
{
    switch (o->type) {
    case OPT_FLAG:
        return json_boolean(*(bool *)o->value);
    case OPT_INT:
        return json_integer(*(int64_t *)o->value);
    case OPT_DOUBLE:
    case OPT_FLOAT:
        return json_real(*(double *)o->value);
    case OPT_BYTES:
        return json_integer((json_int_t) * (size_t *)o->value);
    default:
        return text_json(*(const char **)o->value);
    }
}

json_t *settings_json(enum command command)
{
    json_t *all = json_object();
    for (size_t i = 0; i < COUNT(options); i++)
        if (options[i].commands & (unsigned)command)
            json_object_set_new(all, options[i].name, value_json(&options[i]));
    return all;
}
