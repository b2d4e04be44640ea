/* settings.c - the one table of options: parsing, --help, presets, config file and the log's record follow from it. */
#include "../base/table.h"
#include "train.h"

#include <float.h>

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

static const struct option options[] = {
    {"model", 0, OPT_CHOICE, &s.preset, "nano", "tiny|nano|char|gpt2", 0, 0, MODEL, BUILD_ALL,
     "sizes by name: tiny (2 layers, 2 heads, 32 channels, seq-len 32, batch 4), nano (4, 4, 128, 64, 12), char (6, 6, "
     "384, 256, 8), gpt2 (12, 12, 768, 1024, 4)"},
    {"layers", 0, OPT_INT, &s.layers, NULL, "N", 1, MAX_LAYERS, MODEL, BUILD_ALL, "transformer layers"},
    {"heads", 0, OPT_INT, &s.heads, NULL, "N", 1, 1000, MODEL, BUILD_ALL, "attention heads; must divide --channels"},
    {"channels", 0, OPT_INT, &s.channels, NULL, "N", 1, 100000, MODEL, BUILD_ALL, "width of the model"},
    {"seq-len", 0, OPT_INT, &s.seq_len, NULL, "N", 1, 1000000, MODEL, BUILD_ALL, "tokens per sequence"},
    {"untied", 0, OPT_FLAG, &s.untied, NULL, NULL, 0, 0, MODEL, BUILD_ALL,
     "the head has weights of its own (default: the token embedding)"},
    {"init", 0, OPT_INPUT, &s.init, NULL, "FILE|DIR", 0, 0, MODEL, CMD_TRAIN | CMD_PLAN,
     "start from an llm.c checkpoint, safetensors with GPT-2 names, or the weights of what --save wrote; brings its "
     "own sizes"},
    {"config", 0, OPT_INPUT, &s.config, NULL, "FILE", 0, 0, MODEL, BUILD_ALL,
     "lines `option = value`; options on the command line win"},

    {"data", 0, OPT_INPUT, &s.data, NULL, "PATH", 0, 0, DATA, BUILD_ALL,
     "text, llm.c shard or uint16 tokens: a file, a folder or a quoted glob (default: this program's own sources; "
     "plan, profile and bench: random tokens)"},
    {"vocab", 0, OPT_INT, &s.vocab, NULL, "N", 1, 1e6, DATA, CMD_PLAN | CMD_BENCH | CMD_PROFILE,
     "the random tokens are numbers below N; with --model gpt2 50257 unless N is given"},
    {"tokens", 0, OPT_CHOICE, &s.tokens, "bytes", "bytes|chars", 0, 0, DATA, BUILD_ALL, "what a token of text is"},
    {"order", 0, OPT_CHOICE, &s.order, "shuffle", "shuffle|file", 0, 0, DATA, BUILD_ALL,
     "random windows, or one after another"},
    {"val-data", 0, OPT_INPUT, &s.val_data, NULL, "PATH", 0, 0, DATA, BUILD_ALL,
     "validation data (default: the end of --data)"},
    {"val-share", 0, OPT_DOUBLE, &s.val_share, "0.1", "X", 0, 0.9, DATA, BUILD_ALL,
     "share of the data kept for validation"},
    {"val-every", 0, OPT_INT, &s.val_every, NULL, "N", 0, 1e9, DATA, CMD_TRAIN,
     "steps between evaluations (0: only after the last step)"},
    {"val-batches", 0, OPT_INT, &s.val_batches, NULL, "N", 0, 1e9, DATA, CMD_TRAIN,
     "evaluate on N batches (0: the whole split)"},

    {"batch", 0, OPT_INT, &s.batch, NULL, "N", 1, 1e6, TRAINING, BUILD_ALL, "sequences per step, over all devices"},
    {"micro-batch", 0, OPT_INT, &s.micro_batch, NULL, "N", 0, 1e6, TRAINING, BUILD_ALL,
     "sequences a device takes at a time (0: its whole share); gradients are accumulated"},
    {"steps", 0, OPT_INT, &s.steps, "500", "N", 1, 1e9, TRAINING, CMD_TRAIN | CMD_BENCH,
     "training steps; bench times 12 without it"},
    {"stop-after", 0, OPT_INT, &s.stop_after, NULL, "N", 0, 1e9, TRAINING, CMD_TRAIN,
     "save and stop after step N; the schedule is still meant for --steps (0: off)"},
    {"lr", 0, OPT_FLOAT, &s.lr, "1e-3", "X", 0, 1e3, TRAINING, CMD_TRAIN | CMD_CHECK, "learning rate"},
    {"lr-min", 0, OPT_FLOAT, &s.lr_min, "-1", "X", -1, 1e3, TRAINING, CMD_TRAIN,
     "where the schedule ends (-1: a tenth of --lr)"},
    {"schedule", 0, OPT_CHOICE, &s.schedule, "cosine", "cosine|constant|linear|wsd", 0, 0, TRAINING, CMD_TRAIN,
     "course of the learning rate; wsd: constant, and the last fifth of the steps decays"},
    {"warmup", 0, OPT_INT, &s.warmup, "-1", "N", -1, 1e9, TRAINING, CMD_TRAIN,
     "steps over which it rises (-1: a twentieth of --steps, at most 100; none when constant)"},
    {"beta1", 0, OPT_FLOAT, &s.beta1, "0.9", "X", 0, BELOW_1, TRAINING, CMD_TRAIN | CMD_CHECK,
     "AdamW: mean of gradients (at 1 it would never learn)"},
    {"beta2", 0, OPT_FLOAT, &s.beta2, "0.99", "X", 0, BELOW_1, TRAINING, CMD_TRAIN | CMD_CHECK,
     "AdamW: mean of squared gradients"},
    {"eps", 0, OPT_FLOAT, &s.eps, "1e-8", "X", FLT_MIN, 1, TRAINING, CMD_TRAIN | CMD_CHECK,
     "AdamW: added to the denominator, which may be 0 without it; above 0"},
    {"weight-decay", 0, OPT_FLOAT, &s.weight_decay, "0.1", "X", 0, 10, TRAINING, CMD_TRAIN | CMD_CHECK,
     "AdamW: decay of matrices"},
    {"clip", 0, OPT_FLOAT, &s.clip, "1", "X", 0, 1e9, TRAINING, CMD_TRAIN | CMD_PLAN,
     "largest norm of the gradient; 0: none, and each layer is updated right behind its backward; above 0 no update "
     "starts before the last backward has ended, nor in a step file"},
    {"seed", 0, OPT_INT, &s.seed, "1337", "N", 0, 9e15, TRAINING, BUILD_ALL | CMD_SAMPLE,
     "of random numbers: initial weights, order of data, sampling"},

    {"devices", 'd', OPT_TEXT, &s.devices, NULL, "P:D[/n|xN][,...]", 0, 0, DEVICES, RUN_ALL,
     "platform:device as `yard devices` numbers them; /n cuts a CPU into n sub-devices, xN uses a device as N logical "
     "ones (default: the first GPU, else the first device)"},
    {"mesh", 0, OPT_TEXT, &s.mesh, NULL, "dp=A,pp=B,tp=C", 0, 0, DEVICES, BUILD_ALL,
     "arrange the devices: A data-parallel pipelines of B stages, each stage's layers cut by heads, columns and words "
     "for C tensor-parallel devices (default: dp = all devices)"},
    {"zero", 0, OPT_INT, &s.zero, "1", "0..3", 0, 3, DEVICES, BUILD_ALL,
     "what data-parallel devices share out instead of each keeping all: 1 the optimizer's state, 2 gradients too (with "
     "a single micro-batch), 3 parameters too, of which a layer's are gathered before use; the bits are the same"},
    {"stages", 0, OPT_TEXT, &s.stages, NULL, "N,N,...", 0, 0, DEVICES, BUILD_ALL,
     "layers of each stage (default: as equal as can be)"},
    {"pipeline", 0, OPT_CHOICE, &s.pipeline, "1f1b", "1f1b|gpipe|interleaved", 0, 0, DEVICES, BUILD_ALL,
     "order of micro-batches in a pipeline; interleaved: two stages per device, and a multiple of B micro-batches"},
    {"grad-groups", 0, OPT_INT, &s.grad_groups, "1", "G", 1, MAX_RANKS, DEVICES, BUILD_ALL,
     "sum the gradient in G groups of sequences, as dp=G does, to compare to the bit; needs a multiple of G "
     "micro-batches"},
    {"device-mem", 0, OPT_BYTES, &s.device_memory, NULL, "BYTES", 0, 0, DEVICES, RUN_ALL,
     "budget per device, with K, M or G; what does not fit is refused before the first step (0: the device's memory; "
     "of a CPU three quarters of the host's)"},
    {"host-mem", 0, OPT_BYTES, &s.host_memory, NULL, "BYTES", 0, 0, DEVICES, RUN_ALL, "the same for the host"},
    {"gemm", 0, OPT_CHOICE, &s.gemm, "auto", "auto|own|clblast", 0, 0, DEVICES, RUN_ALL,
     "matrix products: our kernel, or CLBlast (auto: ours on CPUs, CLBlast on GPUs)"},
    {"vector", 0, OPT_INT, &s.vector, NULL, "N", 0, 16, DEVICES, RUN_ALL,
     "floats per vector: 1, 4, 8 or 16, at most what the device has (0: just that). Results depend on it to the last "
     "bit: for the same bits on unlike CPUs, take the same N there, and the same driver"},
    {"overlap", 0, OPT_CHOICE, &s.overlap, "off", "off|plan|local|all-cpu|all-device", 0, 0, PASSES, BUILD_ALL,
     "run optimizer updates of some layers on the CPU while the device goes on. plan: those with which a step is "
     "shortest; local: by what the CPU has still to do at the end of each layer's backward"},
    {"overlap-plan", 0, OPT_TEXT, &s.overlap_plan, NULL, "FILE", 0, 0, PASSES, BUILD_ALL,
     "of --overlap plan: the plan as text, read when the file is there, else written"},

    {"recompute", 0, OPT_CHOICE, &s.recompute, "off", "off|full|selective|auto", 0, 0, PASSES, BUILD_ALL,
     "make activations again before a layer's backward instead of keeping them: all but its input, or selective: the "
     "(T, T) matrices of attention and GELU's output; auto: what the budget needs, so that the step is shortest; the "
     "weights are the same to the last bit"},
    {"swap", 0, OPT_CHOICE, &s.swap, "off", "off|auto|layer|microbatch", 0, 0, PASSES, BUILD_ALL,
     "data leaves for the host and comes back in time. auto: what the budget needs, so that the step is shortest, and "
     "what is cheaper to make again is; layer: during the next layer's forward, and back during its backward; "
     "microbatch: behind a micro-batch's forward, and back during the backward before its own"},
    {"swap-what", 0, OPT_TEXT, &s.swap_what, "activations", "CLASS,...", 0, 0, PASSES, BUILD_ALL,
     "of activations, gradients, optimizer and parameters, those that may leave; state then lives on the host, and a "
     "model may be larger than the device"},
    {"broadcast-queues", 0, OPT_INT, &s.queues, NULL, "N", 0, 64, PASSES, BUILD_ALL,
     "what an update made goes to the other devices over N queues of each device at once, the main one, which "
     "computes, among them (0: off, over one beside it)"},
    {"broadcast-slices", 0, OPT_INT, &s.slices, "16", "M", 1, 4096, PASSES, BUILD_ALL,
     "cut what a device sends of a layer into M slices, of at least 512 bytes"},
    {"broadcast-deal", 0, OPT_CHOICE, &s.deal, "even", "even|random", 0, 0, PASSES, BUILD_ALL,
     "how slices are dealt to the queues (random: by --seed)"},
    {"broadcast-main", 0, OPT_CHOICE, &s.main_queue, "both", "both|compute", 0, 0, PASSES, BUILD_ALL,
     "the main queue computes and sends, or only computes while the other N - 1 send"},
    {"snapshot", 0, OPT_OUTPUT, &s.snapshot, NULL, "FILE", 0, 0, PASSES, CMD_TRAIN | CMD_PLAN,
     "store each unit in FILE as soon as it is updated, while the rest of the step goes on: --resume FILE goes on from "
     "there after any interruption (plan: say when which iteration could be recovered, and write nothing)"},
    {"snapshot-every", 0, OPT_INT, &s.snapshot_every, "1", "K", 1, MOST_EVERY, PASSES, CMD_TRAIN | CMD_PLAN,
     "store iterations divisible by K"},
    {"snapshot-slots", 0, OPT_INT, &s.snapshot_slots, "2", "S", 1, 16, PASSES, CMD_TRAIN | CMD_PLAN,
     "iterations for which the file has room; one that finds no slot free is dropped, and training does not wait"},

    {"serial", 0, OPT_FLAG, &s.serial, NULL, NULL, 0, 0, LOOKING, CMD_TRAIN | CMD_CHECK | CMD_SAMPLE | CMD_BENCH,
     "run one task after another, wait after each, create no thread: the reference, and for debuggers"},
    {"audit", 0, OPT_FLAG, &s.audit, NULL, NULL, 0, 0, LOOKING, CMD_TRAIN | CMD_CHECK,
     "with --serial: run every task over three fillings of what it does not declare to read, and compare; proves, for "
     "the data of this run, that tasks touch what they declare and no more (slow)"},
    {"delay-seed", 0, OPT_INT, &s.delay_seed, "-1", "N", -1, 9e15, LOOKING, CMD_TRAIN,
     "delay the end of tasks at random, and with --overlap local draw where updates run: the weights must not change "
     "(-1: neither)"},
    {"trace", 0, OPT_OUTPUT, &s.trace, NULL, "FILE", 0, 0, LOOKING, CMD_TRAIN | CMD_PLAN,
     "record what ran when (plan: what is simulated); see `yard trace --help`"},
    {"view", 0, OPT_FLAG, &s.view, NULL, NULL, 0, 0, LOOKING, RUN_ALL,
     "show that in a window while it runs: yard view, a process of its own (plan: what is simulated)"},
    {"log", 0, OPT_OUTPUT, &s.log, NULL, "FILE.jsonl", 0, 0, LOOKING, CMD_TRAIN, "one line of JSON per step"},
    {"save", 0, OPT_OUTPUT, &s.save, NULL, "DIR", 0, 0, LOOKING, CMD_TRAIN,
     "write a checkpoint DIR/step-N at the end, and the parameters alone, for other programs, to "
     "DIR/model.safetensors"},
    {"save-every", 0, OPT_INT, &s.save_every, NULL, "N", 0, 1e9, LOOKING, CMD_TRAIN,
     "also every N steps (0: only at the end)"},
    {"keep", 0, OPT_INT, &s.keep, NULL, "K", 0, 1e9, LOOKING, CMD_TRAIN,
     "keep the K newest checkpoints (0: all of the run)"},
    {"resume", 0, OPT_INPUT, &s.resume, NULL, "DIR|FILE", 0, 0, LOOKING, CMD_TRAIN,
     "go on from a checkpoint, the newest one in a folder, or a snapshot, as if there had been no break: with its "
     "sizes, data, options and strategy, except for what the command line says; on another number of devices dp is "
     "changed"},
    {"sample-tokens", 0, OPT_INT, &s.sample_tokens, "200", "N", 0, 1e6, LOOKING, CMD_TRAIN,
     "tokens of text shown at the end"},
    {"json", 0, OPT_FLAG, &s.json, NULL, NULL, 0, 0, LOOKING, CMD_DEVICES | CMD_CHECK | CMD_PLAN | CMD_BENCH,
     "one JSON object on stdout and nothing else"},
    {"print", 0, OPT_FLAG, &s.print, NULL, NULL, 0, 0, LOOKING, CMD_PLAN,
     "the list of tasks and the memory map (default)"},
    {"memory", 0, OPT_FLAG, &s.memory, NULL, NULL, 0, 0, LOOKING, CMD_PLAN,
     "a table instead: what each device and the host would hold at the peak, with each kind of --recompute and of "
     "--zero"},
    {"after", 0, OPT_TEXT, &s.after, NULL, "PASS", 0, 0, LOOKING, CMD_PLAN,
     "the list as it is after that pass, of the passes that are on (default: after all of them)"},
    {"list", 0, OPT_INPUT, &s.list, NULL, "FILE", 0, 0, LOOKING, CMD_PLAN,
     "the list of a step file instead of a model's: a machine, tensors and tasks written by hand, with their times; "
     "nothing of it is run (the format: tutorials/reference-lists.md, examples: data/steps)"},
    {"print-list", 0, OPT_FLAG, &s.print_list, NULL, NULL, 0, 0, LOOKING, CMD_PLAN,
     "the train list as a step file, which is simulated to the same times; needs --profile, --hardware or --list"},
    {"verify", 0, OPT_FLAG, &s.verify, NULL, NULL, 0, 0, LOOKING, CMD_PLAN,
     "prove that every read sees the right value (of --list: the one that its order gives), that every conflict is "
     "ordered whatever the timing, that tasks touch their own device's memory, and that it is within the budgets, "
     "provided that tasks touch what they declare (train --serial --audit checks that)"},

    {"simulate", 0, OPT_FLAG, &s.simulate, NULL, NULL, 0, 0, PREDICTING, CMD_PLAN,
     "predict the step on a virtual clock; needs --profile or --hardware"},
    {"profile", 0, OPT_INPUT, &s.profile, NULL, "FILE", 0, 0, PREDICTING, CMD_TRAIN | CMD_PLAN,
     "task times that `yard profile` measured; train: for --overlap, instead of a trial"},
    {"hardware", 0, OPT_INPUT, &s.hardware, NULL, "FILE", 0, 0, PREDICTING, CMD_PLAN | CMD_BENCH,
     "task times modelled from a description, see data/hardware; --mesh dp=N uses N of its devices, and no OpenCL "
     "device is needed (bench: with --broadcast)"},
    {"what-if", 0, OPT_TEXT, &s.what_if, NULL, "WORDS", 0, 0, PREDICTING, CMD_PLAN,
     "change speeds and memory: \"link=2x cpu=0.5x device=1.5x mem=8G\""},
    {"pace", 0, OPT_INPUT, &s.pace, NULL, "FILE", 0, 0, PREDICTING, CMD_TRAIN,
     "pad every task of a real run to its predicted end, by a profile or a hardware description; all of them stretched "
     "so that real work takes at most half of the cores, and the median task 5 ms"},
    {"iterations", 0, OPT_INT, &s.iterations, "16", "N", 1, 1e6, PREDICTING, CMD_PLAN,
     "with --snapshot: report the commits of the first N iterations"},
    {"broadcast", 0, OPT_FLAG, &s.broadcast, NULL, NULL, 0, 0, PREDICTING, CMD_BENCH,
     "instead, train with one broadcast queue and with several, and slices of several sizes"},
    {"output", 'o', OPT_OUTPUT, &s.output, NULL, "FILE", 0, 0, PREDICTING, CMD_PROFILE, "the profile to write"},

    {"from", 0, OPT_INPUT, &s.from, NULL, "DIR|FILE", 0, 0, SAMPLING, CMD_SAMPLE,
     "what --save wrote, or any file that --init takes"},
    {"prompt", 0, OPT_TEXT, &s.prompt, "\n", "TEXT", 0, 0, SAMPLING, CMD_SAMPLE,
     "text to continue (default: the end of a line)"},
    {"count", 0, OPT_INT, &s.count, "300", "N", 1, 1e7, SAMPLING, CMD_SAMPLE, "tokens to add"},
    {"temperature", 0, OPT_FLOAT, &s.temperature, "0.8", "X", 0, 100, SAMPLING, CMD_SAMPLE,
     "0: always the likeliest token"},
    {"top-k", 0, OPT_INT, &s.top_k, "40", "K", 0, 1e6, SAMPLING, CMD_SAMPLE, "choose among the K likeliest (0: all)"},

    {"tolerance", 0, OPT_DOUBLE, &s.tolerance, "1e-5", "X", 0, 1, "Checking", CMD_CHECK,
     "largest relative error that passes"},
};
static struct option_table table = {.options = options, .n = COUNT(options)};

/* What makes no sense, or not together. */
#define REFUSE_IF(condition, ...) ((condition) ? fail(EXIT_USAGE, __VA_ARGS__) : (void)0)

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

char *saved_model(const struct settings *settings) { return format_string("%s/model.safetensors", settings->save); }

char *trace_path(const struct settings *settings)
{
    return settings->trace ? copy_string(settings->trace) : settings->view ? private_trace() : NULL;
}

bool was_given(const char *option) { return option_given(&table, option); }

int chosen(const char *option, const char *word) { return choice_number(find_option(&table, option)->argument, word); }

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
        bool good = !table.given[i] || strcmp(options[i].group, PASSES) == 0;
        for (size_t k = 0; k < COUNT(may); k++)
            good |= strcmp(options[i].name, may[k]) == 0;
        REFUSE_IF(!good, "--list %s brings machine, sizes and times: leave --%s out", s.list, options[i].name);
    }
}

static void check_print_list(void)
{
    REFUSE_IF(!s.profile && !s.hardware && !s.list,
              "--print-list writes how long tasks take: add --profile, --hardware or --list");
    REFUSE_IF(s.snapshot, "--print-list: a step file has no words for slots: leave --snapshot out");
    REFUSE_IF(s.json || s.print || s.simulate || s.verify,
              "--print-list prints a step file and nothing else: leave --%s out",
              s.json       ? "json"
              : s.print    ? "print"
              : s.simulate ? "simulate"
                           : "verify");
}

/* An option that says more about another one, which is off. */
static const struct {
    const char *detail, *of;
} details[] = {{"save-every", "save"},
               {"keep", "save"},
               {"swap-what", "swap"},
               {"broadcast-slices", "broadcast-queues"},
               {"broadcast-deal", "broadcast-queues"},
               {"broadcast-main", "broadcast-queues"},
               {"snapshot-every", "snapshot"},
               {"snapshot-slots", "snapshot"},
               {"iterations", "snapshot"}};

/* Allowed all the same: a script that tries a technique on and off need not take its details away. */
static void warn_of_idle(void)
{
    for (size_t i = 0; i < COUNT(details); i++) {
        const char *detail = details[i].detail, *of = details[i].of;
        const struct option *option = find_option(&table, of);
        char *text = option_text(option);
        bool off = option->type != OPT_OUTPUT && (strcmp(text, "off") == 0 || strcmp(text, "0") == 0);
        if (was_given(detail) && (off || !*text) && !s.broadcast)
            warn("--%s has no effect without --%s", detail, of);
        free(text);
    }
}

static void derive(enum command command)
{
    warn_of_idle();
    if (s.list)
        check_list();
    if (s.print_list)
        check_print_list();
    if (s.lr_min < 0)
        s.lr_min = s.lr / 10;
    if (s.warmup < 0)
        s.warmup = strcmp(s.schedule, "constant") == 0 ? 0 : MIN(s.steps / 20, 100);
    REFUSE_IF(s.vector && s.hardware && !s.devices,
              "--vector: the devices of %s are on paper and compute nothing: leave it out, or add -d", s.hardware);
    REFUSE_IF(was_given("vocab") && s.data, "--vocab: --data %s brings its own vocabulary; leave one of the two out",
              s.data);
    REFUSE_IF(s.after && !find_pass(s.after), "--after %s: there is no such pass; there are: %s", s.after,
              pass_names());
    REFUSE_IF(s.queues == 1 && strcmp(s.main_queue, "compute") == 0,
              "--broadcast-queues 1 --broadcast-main compute: no queue is left to send: use 2 or more");
    REFUSE_IF(s.hardware && command == CMD_BENCH && !s.broadcast,
              "--hardware %s: bench measures what is here; only --broadcast can be simulated", s.hardware);
    REFUSE_IF(s.overlap_plan && strcmp(s.overlap, "plan") != 0,
              "--overlap-plan %s is the plan of --overlap plan: add that", s.overlap_plan);
    REFUSE_IF(s.audit && !s.serial, "--audit runs every task alone: add --serial");
    REFUSE_IF(s.simulate && !s.profile && !s.hardware && !s.list,
              "--simulate needs times: --profile FILE (yard profile -o FILE) or --hardware data/hardware/..., or a "
              "--list that has them");
    REFUSE_IF(s.profile && s.hardware, "--profile and --hardware both say how long tasks take: leave one out");
    REFUSE_IF((s.what_if || s.profile) && !s.simulate && !s.print_list && strcmp(s.overlap, "off") == 0,
              "--profile and --what-if serve the prediction: add --%s", command == CMD_PLAN ? "simulate" : "overlap");
    REFUSE_IF(s.serial && (s.pace || s.delay_seed >= 0),
              "--serial runs one task after another: it cannot be paced or delayed; leave --serial out");
    REFUSE_IF(s.pace && s.delay_seed >= 0, "--pace and --delay-seed both decide when tasks end: leave one out");
    REFUSE_IF(s.stop_after && !s.save, "--stop-after saves and stops: add --save DIR");
    REFUSE_IF(s.stop_after > s.steps, "--stop-after %lld is behind the last step, %lld", (long long)s.stop_after,
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
        const struct option *o = find_option(&table, name);
        char *where = format_string("%s/" MANIFEST ": option %s", s.source.checkpoint->path, name);
        if (o && is_recorded(o))
            set_option(&table, o, where, json_string_value(value)), table.given[o - options] = false;
        else if (strcmp(name, "mesh") != 0)
            warn("%s is unknown to this program, and left out", where);
        free(where);
    }
}

static void expect_size(const char *name, int64_t given, int64_t saved)
{
    REFUSE_IF((was_given(name) || was_given("model")) && given != saved,
              "%s has %lld %s, not %lld: leave --model and --%s out, or begin a new run with --init", s.resume,
              (long long)saved, name, (long long)given, name);
}

/* The sizes are the checkpoint's; who gives them must give the same. */
static void apply_resume(void)
{
    const struct config *c = &s.source.checkpoint->pieces->config;
    struct settings recorded = s;
    REFUSE_IF(s.init, "--resume goes on from a checkpoint's weights, --init begins from others: leave one out");
    if (was_given("model"))
        apply_preset();
    expect_size("layers", s.layers, c->layers);
    expect_size("heads", s.heads, c->heads);
    expect_size("channels", s.channels, c->channels);
    REFUSE_IF(s.untied && c->tied, "%s has a tied head: leave --untied out", s.resume);
    REFUSE_IF(recorded.seq_len > c->seq_len, "--seq-len %lld is longer than the %d positions of %s",
              (long long)recorded.seq_len, c->seq_len, s.resume);
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
        REFUSE_IF(was_given(fixed[i]), "--%s: --init %s brings its own sizes; leave one of the two out", fixed[i],
                  s.init);
    s.source = open_source(s.init);
    struct config c = source_config(&s.source);
    REFUSE_IF(was_given("seq-len") && s.seq_len > c.seq_len, "--seq-len %lld is longer than the %d positions of %s",
              (long long)s.seq_len, c.seq_len, s.init);
    s.layers = c.layers;
    s.heads = c.heads;
    s.channels = c.channels;
    s.untied = !c.tied;
    s.seq_len = was_given("seq-len") ? s.seq_len : c.seq_len;
    s.preset = NULL;
}

/* ---- the command line ------------------------------------------------------------------------------------------ */

static const struct page {
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

static const struct page *page_of(enum command command)
{
    const struct page *p = pages;
    while (p->command != command)
        p++;
    return p;
}

static void print_page(enum command command)
{
    printf("usage: %s\n\n%s\n", page_of(command)->usage, page_of(command)->text);
    print_options(stdout, &table, command);
    if (command & BUILD_ALL)
        printf("\nA config file holds lines `option = value`. Precedence: --model's sizes, --config, command line.\n");
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
    REFUSE_IF(was_given("config"), "%s: a config file cannot name another one with `config = ...`: copy its lines here",
              path);
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
                         o->value == &s.snapshot || o->value == &s.save ? "--resume" : NULL);
        free(who);
    }
    if (s.overlap_plan)
        claim_output("--overlap-plan", s.overlap_plan, NULL);
    if (s.save) {
        char *model = saved_model(&s);
        claim_output("--save", model, NULL);
        free(model);
    }
}

/* Only yard check takes a word that is no option. */
static void take_words(enum command command, char **words, int n)
{
    REFUSE_IF(command == CMD_CHECK && n != 1,
              "yard check takes one reference file, for example tests/data/gpt2-tiny.safetensors");
    REFUSE_IF(command != CMD_CHECK && n, "'%s' is not an option: options start with --; see `yard %s --help`", words[0],
              page_of(command)->name);
    s.reference = words[0];
    free(words);
}

struct settings *parse_settings(enum command command, int argc, char **argv)
{
    char **words;
    int n_words;
    s = (struct settings){0};
    reset_options(&table);
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
    parse_options(&table, (unsigned)command, page_of(command)->name, argc, argv, &words, &n_words);
    take_words(command, words, n_words);
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
