/* settings.c - the one table of options: parsing, --help, presets, config file and the log's record follow from it.
 *
 *     options of the run that this one goes on from  <  --config  <  command line        later ones win
 *
 * Sizes that none of them gives are those of that run, or of --init; else those of --model.
 */
#include "hooks.h"
#include "trainer/base/json.h"

#include <float.h>

static struct settings asked; /* the table points into it; one command runs in a process */
static struct one_life own_life;
struct one_life *this_life = &own_life;

#define BELOW_1 (1 - FLT_EPSILON / 2) /* the largest float below 1 */
static const struct option own_options[] = {
    {.name = "model",
     .type = OPT_CHOICE,
     .value = &asked.preset,
     .initial = "nano",
     .argument = WORDS("tiny", "nano", "char", "gpt2"),
     .group = GROUP_MODEL,
     .commands = OF_LIST,
     .help = "sizes by name: tiny (2 layers, 2 heads, 32 channels, seq-len 32, batch 4), nano (4, 4, 128, 64, 12), "
             "char (6, 6, 384, 256, 8), gpt2 (12, 12, 768, 1024, 4)"},
    {.name = "layers",
     .type = OPT_INT,
     .value = &asked.layers,
     .argument = "N",
     .low = 1,
     .high = MAX_LAYERS,
     .group = GROUP_MODEL,
     .commands = OF_LIST,
     .help = "transformer layers"},
    {.name = "heads",
     .type = OPT_INT,
     .value = &asked.heads,
     .argument = "N",
     .low = 1,
     .high = 1000,
     .group = GROUP_MODEL,
     .commands = OF_LIST | OF_SAMPLE,
     .help = "attention heads. Their number must divide --channels. It is also used for a model file that "
             "does not say how many heads it has"},
    {.name = "channels",
     .type = OPT_INT,
     .value = &asked.channels,
     .argument = "N",
     .low = 1,
     .high = 100000,
     .group = GROUP_MODEL,
     .commands = OF_LIST,
     .help = "width of the model"},
    {.name = "seq-len",
     .type = OPT_INT,
     .value = &asked.seq_len,
     .argument = "N",
     .low = 1,
     .high = 1000000,
     .group = GROUP_MODEL,
     .commands = OF_LIST,
     .help = "tokens per sequence"},
    {.name = "untied",
     .type = OPT_FLAG,
     .value = &asked.untied,
     .group = GROUP_MODEL,
     .commands = OF_LIST,
     .help = "give the head weights of its own"},
    {.name = "init",
     .type = OPT_INPUT,
     .value = &asked.init,
     .argument = "FILE|DIR",
     .group = GROUP_MODEL,
     .commands = OF_TRAIN | OF_PLAN,
     .help = "start from an llm.c checkpoint, from safetensors with GPT-2 names (a file, the index of shards, "
             "or their folder, where a config.json is read too), or from what --save wrote. The sizes are "
             "those of the file"},
    {.name = "config",
     .type = OPT_INPUT,
     .value = &asked.config,
     .argument = "FILE",
     .group = GROUP_MODEL,
     .commands = OF_LIST,
     .help = "file of lines `option = value`"},

    {.name = "data",
     .type = OPT_INPUTS,
     .value = &asked.data.path,
     .argument = "PATH",
     .group = GROUP_DATA,
     .commands = OF_LIST,
     .help = "text (also packed with gzip), llm.c shard or uint16 tokens. PATH is a file, a folder or a "
             "quoted glob. In a folder with train.bin and val.bin, these are for training and for validation. "
             "'stories' is a built-in text whose best possible loss is known. 'stories:FILE' is such a text "
             "by your own grammar. 'self' is this program's sources (default: stories; plan, profile and "
             "bench: random tokens)"},
    {.name = "vocab",
     .type = OPT_INT,
     .value = &asked.vocab,
     .argument = "N",
     .low = 1,
     .high = 1e6,
     .group = GROUP_DATA,
     .commands = 0,
     .help = "vocabulary of random tokens (default: 256; of gpt2 50257)"},
    {.name = "tokens",
     .type = OPT_TEXT,
     .value = &asked.data.tokens,
     .initial = "bytes",
     .argument = "bytes|chars|bpe:N|FILE",
     .group = GROUP_DATA,
     .commands = OF_LIST | OF_SAMPLE,
     .help = "what a token of text is: a byte, a character, one of N tokens that are learnt from the training "
             "text (byte pair encoding), or what a FILE says. The FILE may be a tokenizer.json, a vocab.json "
             "beside merges.txt, or llm.c's gpt2_tokenizer.bin. A model uses its own tokenizer, or one that "
             "lies beside it. If it has neither, FILE is its tokenizer"},
    {.name = "order",
     .type = OPT_CHOICE,
     .value = &asked.data.order,
     .initial = "shuffle",
     .argument = WORDS([ORDER_SHUFFLE] = "shuffle", [ORDER_FILE] = "file"),
     .group = GROUP_DATA,
     .commands = OF_LIST,
     .help = "take windows of the data at random, or one after another"},
    {.name = "val-data",
     .type = OPT_INPUTS,
     .value = &asked.data.val_data,
     .argument = "PATH",
     .group = GROUP_DATA,
     .commands = OF_LIST,
     .help = "text to validate on (default: --val-share of --data)"},
    {.name = "val-share",
     .type = OPT_DOUBLE,
     .value = &asked.data.val_share,
     .initial = "0.1",
     .argument = "X",
     .low = 0,
     .high = 0.9,
     .group = GROUP_DATA,
     .commands = OF_LIST,
     .help = "share of the data for validation. It is the end of a text, or the ends of the parts into which "
             "several files are cut"},
    {.name = "val-every",
     .type = OPT_INT,
     .value = &asked.val_every,
     .argument = "N",
     .low = 0,
     .high = 1e9,
     .group = GROUP_DATA,
     .commands = OF_TRAIN,
     .help = "evaluate every N steps (0: only at the end)"},
    {.name = "val-batches",
     .type = OPT_INT,
     .value = &asked.val_batches,
     .argument = "N",
     .low = 0,
     .high = 1e9,
     .group = GROUP_DATA,
     .commands = OF_TRAIN,
     .help = "evaluate on N batches (0: all)"},

    {.name = "batch",
     .type = OPT_INT,
     .value = &asked.batch,
     .argument = "N",
     .low = 1,
     .high = 1e6,
     .group = GROUP_TRAINING,
     .commands = OF_LIST,
     .help = "sequences per step, over all devices"},
    {.name = "micro-batch",
     .type = OPT_INT,
     .value = &asked.micro_batch,
     .argument = "N",
     .low = 0,
     .high = 1e6,
     .group = GROUP_TRAINING,
     .commands = OF_LIST,
     .help = "sequences that a device takes at a time (0: its whole share). The gradients of all "
             "micro-batches are added up"},
    {.name = "steps",
     .type = OPT_INT,
     .value = &asked.steps,
     .initial = "500",
     .argument = "N",
     .low = 1,
     .high = 1e9,
     .group = GROUP_TRAINING,
     .commands = OF_TRAIN,
     .help = "steps to train"},
    {.name = "stop-after",
     .type = OPT_INT,
     .value = &asked.stop_after,
     .argument = "N",
     .low = 0,
     .high = 1e9,
     .group = GROUP_TRAINING,
     .commands = OF_TRAIN,
     .help = "save and stop after step N. The schedule of the learning rate still ends with --steps (0: off)"},
    {.name = "lr",
     .type = OPT_FLOAT,
     .value = &asked.lr,
     .initial = "1e-3",
     .argument = "X",
     .low = 0,
     .high = 1e3,
     .group = GROUP_TRAINING,
     .commands = OF_TRAIN,
     .help = "learning rate"},
    {.name = "lr-min",
     .type = OPT_FLOAT,
     .value = &asked.lr_min,
     .initial = "-1",
     .argument = "X",
     .low = -1,
     .high = 1e3,
     .group = GROUP_TRAINING,
     .commands = OF_TRAIN,
     .help = "learning rate at the end (-1: a tenth of --lr)"},
    {.name = "schedule",
     .type = OPT_CHOICE,
     .value = &asked.schedule,
     .initial = "cosine",
     .argument =
         WORDS([RATE_COSINE] = "cosine", [RATE_CONSTANT] = "constant", [RATE_LINEAR] = "linear", [RATE_WSD] = "wsd"),
     .group = GROUP_TRAINING,
     .commands = OF_TRAIN,
     .help = "course of the learning rate. wsd: it is constant, and decays in the last fifth of the steps"},
    {.name = "warmup",
     .type = OPT_INT,
     .value = &asked.warmup,
     .initial = "-1",
     .argument = "N",
     .low = -1,
     .high = 1e9,
     .group = GROUP_TRAINING,
     .commands = OF_TRAIN,
     .help = "steps in which the learning rate rises (-1: a twentieth of --steps, at most 100; none with "
             "--schedule constant)"},
    {.name = "beta1",
     .type = OPT_FLOAT,
     .value = &asked.beta1,
     .initial = "0.9",
     .argument = "X",
     .low = 0,
     .high = BELOW_1,
     .group = GROUP_TRAINING,
     .commands = OF_TRAIN,
     .help = "AdamW: decay of the mean of gradients"},
    {.name = "beta2",
     .type = OPT_FLOAT,
     .value = &asked.beta2,
     .initial = "0.99",
     .argument = "X",
     .low = 0,
     .high = BELOW_1,
     .group = GROUP_TRAINING,
     .commands = OF_TRAIN,
     .help = "AdamW: decay of the mean of squared gradients"},
    {.name = "eps",
     .type = OPT_FLOAT,
     .value = &asked.eps,
     .initial = "1e-8",
     .argument = "X",
     .low = FLT_MIN,
     .high = 1,
     .group = GROUP_TRAINING,
     .commands = OF_TRAIN,
     .help = "AdamW: number added to the denominator"},
    {.name = "weight-decay",
     .type = OPT_FLOAT,
     .value = &asked.weight_decay,
     .initial = "0.1",
     .argument = "X",
     .low = 0,
     .high = 10,
     .group = GROUP_TRAINING,
     .commands = OF_TRAIN,
     .help = "AdamW: decay of matrices"},
    {.name = "clip",
     .type = OPT_FLOAT,
     .value = &asked.clip,
     .initial = "1",
     .argument = "X",
     .low = 0,
     .high = 1e9,
     .group = GROUP_TRAINING,
     .commands = OF_TRAIN | OF_PLAN,
     .help = "largest norm of the gradient. Above 0 all updates, of a step file too, wait for the end of the "
             "last backward. 0: there is no limit, and each layer is updated right after its backward"},
    {.name = "seed",
     .type = OPT_LONG,
     .value = &asked.seed,
     .initial = "1337",
     .argument = "N",
     .low = 0,
     .high = 9e15,
     .group = GROUP_TRAINING,
     .commands = OF_LIST | OF_SAMPLE,
     .help = "seed of all random numbers"},

    {.name = "devices",
     .letter = 'd',
     .type = OPT_TEXT,
     .value = &asked.devices,
     .argument = "P:D[/n|xN][,...]",
     .group = GROUP_DEVICES,
     .commands = OF_RUN,
     .help = "platform:device as `yard devices` numbers them. /n cuts a CPU into n sub-devices, and xN uses a "
             "device as N logical devices (default: the first GPU, else the first device)"},
    {.name = "mesh",
     .type = OPT_TEXT,
     .value = &asked.mesh,
     .argument = "dp=A,pp=B,tp=C",
     .group = GROUP_DEVICES,
     .commands = OF_LIST,
     .help = "arrange the devices as A data-parallel pipelines of B stages. Each stage's layers are cut by "
             "heads, columns and words for C tensor-parallel devices (default: dp = all devices)"},
    {.name = "zero",
     .type = OPT_INT,
     .value = &asked.zero,
     .initial = "1",
     .argument = "0..3",
     .low = 0,
     .high = 3,
     .group = GROUP_DEVICES,
     .commands = OF_LIST,
     .help = "what data-parallel devices share out, so that not each of them keeps all of it. 1: the "
             "optimizer's state. 2: gradients too (with a single micro-batch). 3: parameters too, which are "
             "gathered layer by layer before use. The bits are the same"},
    {.name = "stages",
     .type = OPT_TEXT,
     .value = &asked.stages,
     .argument = "N,N,...",
     .group = GROUP_DEVICES,
     .commands = OF_LIST,
     .help = "layers of each stage (default: equal)"},
    {.name = "pipeline",
     .type = OPT_TEXT,
     .value = &asked.pipeline,
     .initial = "1f1b",
     .argument = "1f1b|gpipe|interleaved|zbh1|zbh2|dualpipev|FILE.csv",
     .group = GROUP_DEVICES,
     .commands = OF_LIST,
     .help = "order of micro-batches in a pipeline. interleaved: two stages per device; the number of "
             "micro-batches is a multiple of pp. zbh1, zbh2: the gradients of weights fill the waits; zbh2 "
             "takes twice the memory. dualpipev: the same with two stages per device, the first and the last "
             "on device 0, and at least 2 pp micro-batches. FILE.csv: the order in that file, as PyTorch "
             "writes it"},
    {.name = "grad-groups",
     .type = OPT_INT,
     .value = &asked.grad_groups,
     .initial = "1",
     .argument = "G",
     .low = 1,
     .high = MAX_RANKS,
     .group = GROUP_DEVICES,
     .commands = OF_LIST,
     .help = "sum the gradient in G groups of sequences, as dp=G does, so that the bits can be compared"},
    {.name = "device-mem",
     .type = OPT_BYTES,
     .value = &asked.device_memory,
     .argument = "BYTES",
     .group = GROUP_DEVICES,
     .commands = OF_RUN,
     .help = "memory budget of each device, with K, M or G (0: for a CPU three quarters of the host's memory, for a "
             "GPU all of its memory except a sixteenth and 256 MiB, which are left to the driver)"},
    {.name = "host-mem",
     .type = OPT_BYTES,
     .value = &asked.host_memory,
     .argument = "BYTES",
     .group = GROUP_DEVICES,
     .commands = OF_RUN,
     .help = "memory budget of the host, with K, M or G (0: all of its memory)"},
    {.name = "gemm",
     .type = OPT_CHOICE,
     .value = &asked.kernels.gemm,
     .initial = "auto",
     .argument = WORDS([GEMM_AUTO] = "auto", [GEMM_OWN] = "own", [GEMM_CLBLAST] = "clblast"),
     .group = GROUP_DEVICES,
     .commands = OF_RUN,
     .help = "what computes matrix products. own: the project's kernel, which is made for CPUs. clblast: the "
             "library CLBlast. auto: own on CPUs, clblast on GPUs"},
    {.name = "attention",
     .type = OPT_CHOICE,
     .value = &asked.kernels.attention,
     .initial = "plain",
     .argument = WORDS([ATTENTION_PLAIN] = "plain", [ATTENTION_FLASH] = "flash"),
     .group = GROUP_DEVICES,
     .commands = OF_RUN,
     .help = "how attention is computed. plain: by matrix products and a softmax, which keeps a (T, T) matrix "
             "per head for T tokens. flash: by fused kernels, whose memory grows with T, not with T * T"},
    {.name = "vector",
     .type = OPT_INT,
     .value = &asked.vector,
     .argument = "N",
     .low = 0,
     .high = 16,
     .group = GROUP_DEVICES,
     .commands = OF_RUN,
     .help = "floats per vector: 1, 4, 8 or 16, and at most as many as the device has (0: as many as it has). "
             "The last bits of results depend on it"},

    {.name = "serial",
     .type = OPT_FLAG,
     .value = &asked.serial,
     .group = GROUP_LOOKING,
     .commands = OF_TRAIN | OF_SAMPLE,
     .help = "run one task after another, wait after each of them, and create no thread. The results are the "
             "reference for all other runs. Use this in a debugger"},
    {.name = "log",
     .type = OPT_OUTPUT,
     .value = &asked.log,
     .argument = "FILE.jsonl",
     .group = GROUP_LOOKING,
     .commands = OF_TRAIN,
     .help = "file that gets one line of JSON per step. If it cannot be written any more, the run goes on, "
             "and ends with exit code 4"},
    {.name = "save",
     .type = OPT_KEPT,
     .value = &asked.save,
     .argument = "DIR",
     .group = GROUP_LOOKING,
     .commands = OF_TRAIN,
     .help = "write the parameters, for other programs, to DIR/model.safetensors at the end"},
    {.name = "save-every",
     .type = OPT_INT,
     .value = &asked.save_every,
     .argument = "N",
     .low = 0,
     .high = 1e9,
     .group = GROUP_LOOKING,
     .commands = OF_TRAIN,
     .help = "save every N steps too (0: only at the end)"},
    {.name = "sample-tokens",
     .type = OPT_INT,
     .value = &asked.sample_tokens,
     .initial = "200",
     .argument = "N",
     .low = 0,
     .high = 1e6,
     .group = GROUP_LOOKING,
     .commands = OF_TRAIN,
     .help = "tokens of a sample text to print at the end"},
    {.name = "json",
     .type = OPT_FLAG,
     .value = &asked.json,
     .group = GROUP_LOOKING,
     .commands = 0,
     .help = "print one JSON object on stdout and nothing else"},

    {.name = "from",
     .type = OPT_INPUT,
     .value = &asked.from,
     .argument = "DIR|FILE",
     .group = GROUP_SAMPLING,
     .commands = OF_SAMPLE,
     .help = "model that writes: what --save wrote, or a file as for --init of yard train"},
    {.name = "prompt",
     .type = OPT_TEXT,
     .value = &asked.prompt,
     .initial = "\n",
     .argument = "TEXT",
     .group = GROUP_SAMPLING,
     .commands = OF_SAMPLE,
     .help = "text to continue (default: a line's end)"},
    {.name = "count",
     .type = OPT_INT,
     .value = &asked.count,
     .initial = "300",
     .argument = "N",
     .low = 1,
     .high = 1e7,
     .group = GROUP_SAMPLING,
     .commands = OF_SAMPLE,
     .help = "tokens to add. An end-of-text token, <|endoftext|>, ends the text earlier"},
    {.name = "temperature",
     .type = OPT_FLOAT,
     .value = &asked.temperature,
     .initial = "0.8",
     .argument = "X",
     .low = 0,
     .high = 100,
     .group = GROUP_SAMPLING,
     .commands = OF_SAMPLE,
     .help = "how freely tokens are chosen (0: always the likeliest)"},
    {.name = "top-k",
     .type = OPT_INT,
     .value = &asked.top_k,
     .initial = "40",
     .argument = "K",
     .low = 0,
     .high = 1e6,
     .group = GROUP_SAMPLING,
     .commands = OF_SAMPLE,
     .help = "choose among the K likeliest (0: all)"},
};
static struct option options[MOST_OPTIONS]; /* these and those of folders, group by group */
static struct option_table table = {.options = options};

static void add_option(const struct option *o)
{
    CHECK(table.n < MOST_OPTIONS, "more than %d options", MOST_OPTIONS);
    CHECK(!find_option(&table, o->name), "two options are called --%s", o->name);
    options[table.n] = *o;
    table.n++;
}

static void add_group(const char *group)
{
    for (size_t i = 0; i < COUNT(own_options); i++)
        if (strcmp(own_options[i].group, group) == 0)
            add_option(&own_options[i]);
    for (size_t i = 0; i < n_modules; i++)
        for (size_t k = 0; k < modules[i]->n_options; k++)
            if (strcmp(modules[i]->options[k].group, group) == 0)
                add_option(&modules[i]->options[k]);
}

static void gather_options(void)
{
    static const char *const first[] = {GROUP_MODEL,      GROUP_DATA,    GROUP_TRAINING,   GROUP_DEVICES,
                                        GROUP_TECHNIQUES, GROUP_LOOKING, GROUP_PREDICTING, GROUP_SAMPLING};
    for (size_t i = 0; i < n_modules; i++)
        CHECK(!modules[i]->options == !modules[i]->n_options, "folder %s has options and no n_options, or the reverse",
              modules[i]->name);
    for (size_t i = 0; i < COUNT(first); i++)
        add_group(first[i]);
    for (size_t i = 0; i < n_modules; i++)
        for (size_t k = 0; k < modules[i]->n_options; k++)
            if (!find_option(&table, modules[i]->options[k].name)) /* its group is the folder's own */
                add_group(modules[i]->options[k].group);
    table.foreign = sole_parts().foreign_lookup;
}

/* The options that the page names one by one belong to the command at hand too. */
static void mark_options(const struct page *page)
{
    for (size_t i = 0; i < table.n; i++) {
        options[i].commands &= ~(unsigned)OF_THIS;
        if (has_word(page->also, options[i].name))
            options[i].commands |= OF_THIS;
    }
}

/* ---- what makes no sense, or not together ----------------------------------------------------------------------- */

static const struct option_rule rules[] = {
    {"vocab", "data", "the data bring their own vocabulary"},
    {"vocab", "init", "a model brings its own sizes"},
    {"save-every", "save", NULL},
};

static bool is_off(const struct option *o)
{
    char *text = option_text(o);
    bool off = !*text;
    if (!is_output(o)) /* a file may be called "off" */
        off |= strcmp(text, "off") == 0 || strcmp(text, "0") == 0;
    free(text);
    return off;
}

/* Warns of, or refuses, what a rule says of two options, if this yard has both. */
static void apply_rule(const struct option_rule *rule)
{
    const struct option *other = find_option(&table, rule->other);
    if (!other || !was_given(rule->option))
        return;
    if (rule->why && was_given(rule->other))
        fail(EXIT_USAGE, "--%s and --%s: %s; leave one out", rule->option, rule->other, rule->why);
    if (!rule->why && is_off(other) && !asked.sweeps)
        warn("--%s has no effect without --%s", rule->option, rule->other);
}

/* Is there a folder that gathers parameters? */
static bool can_gather(void)
{
    for (size_t i = 0; i < n_modules; i++)
        if (modules[i]->gathers)
            return true;
    return false;
}

/* A file's order is read once, and from then on its text stands for it: a run that goes on needs no file. */
static void set_order(void)
{
    const char *words = find_option(&table, "pipeline")->argument;
    const char *because = *left_out ? "; this yard was built without" : "";
    asked.order = find_order(asked.pipeline);
    if (!asked.order)
        fail(EXIT_USAGE, "--pipeline takes one of %s, not \"%.40s\"%s%s", words, asked.pipeline, because, left_out);
    if (asked.order->written)
        asked.pipeline = asked.order->written->text;
}

static void check_together(void)
{
    for (size_t i = 0; i < n_modules; i++)
        if (modules[i]->check)
            modules[i]->check(&asked);
    for (size_t i = 0; i < COUNT(rules); i++)
        apply_rule(&rules[i]);
    for (size_t i = 0; i < n_modules; i++)
        for (size_t k = 0; k < modules[i]->n_rules; k++)
            apply_rule(&modules[i]->rules[k]);
    if (was_given("tokens"))
        check_tokens(asked.data.tokens);
    if (was_given("lr-min") && asked.schedule == RATE_CONSTANT)
        warn("--lr-min has no effect with --schedule constant");
    if (was_given("val-share") && was_given("val-data"))
        warn("--val-share has no effect with --val-data");
    if (asked.zero == 3 && !can_gather())
        fail(EXIT_USAGE,
             "--zero 3 keeps parameters in shards, and nothing here gathers them: this yard was built without%s",
             left_out);
    if (asked.stop_after && !asked.save)
        fail(EXIT_USAGE, "--stop-after saves and stops: add --save DIR");
    if (asked.stop_after > asked.steps)
        fail(EXIT_USAGE, "--stop-after %d is beyond the last step, %d", asked.stop_after, asked.steps);
}

/* ---- sizes ------------------------------------------------------------------------------------------------------ */

static const struct preset {
    int layers, heads, channels, seq_len, batch, vocab;
} presets[] = {
    /* in the order of --model's words */
    {.layers = 2, .heads = 2, .channels = 32, .seq_len = 32, .batch = 4, .vocab = 256},
    {.layers = 4, .heads = 4, .channels = 128, .seq_len = 64, .batch = 12, .vocab = 256},
    {.layers = 6, .heads = 6, .channels = 384, .seq_len = 256, .batch = 8, .vocab = 256},
    {.layers = 12, .heads = 12, .channels = 768, .seq_len = 1024, .batch = 4, .vocab = 50257},
};

static void fill_in(int *size, int by_preset)
{
    if (!*size)
        *size = by_preset;
}

/* --model fills in the sizes that are still open (0). */
static void apply_preset(void)
{
    const struct preset *p = &presets[asked.preset];
    fill_in(&asked.layers, p->layers);
    fill_in(&asked.heads, p->heads);
    fill_in(&asked.channels, p->channels);
    fill_in(&asked.seq_len, p->seq_len);
    fill_in(&asked.batch, p->batch);
    fill_in(&asked.vocab, p->vocab);
}

/* Sets a size to that of the source's model, `theirs`.  The option `name`, or --model where a run goes on, may only
 * repeat it. */
static void adopt_size(const char *name, int *size, int theirs, int by_preset)
{
    int given = theirs;
    if (*size)
        given = *size;
    else if (asked.resumed && was_given("model"))
        given = by_preset;
    if (given != theirs)
        fail(EXIT_USAGE, "%s has %d %s, not %d: leave --model and --%s out", asked.source.path, theirs, name, given,
             name);
    *size = theirs;
}

/* --resume and --init bring their own sizes: options may only repeat them.  Only sequences may be shorter. */
static void adopt_sizes(void)
{
    const struct config c = asked.source.config;
    const struct preset *p = &presets[asked.preset];
    adopt_size("layers", &asked.layers, c.layers, p->layers);
    adopt_size("heads", &asked.heads, c.heads, p->heads);
    adopt_size("channels", &asked.channels, c.channels, p->channels);
    if (asked.untied && c.tied)
        fail(EXIT_USAGE, "%s has a tied head: leave --untied out", asked.source.path);
    if (asked.seq_len > c.seq_len)
        fail(EXIT_USAGE, "--seq-len %d is longer than the %d positions of %s", asked.seq_len, c.seq_len,
             asked.source.path);
    asked.untied = !c.tied;
    if (!asked.seq_len)
        asked.seq_len = c.seq_len;
}

/* ---- recorded options ------------------------------------------------------------------------------------------- */

const struct page train_page = {
    .name = "train",
    .takes = "[options]",
    .examples = "--steps 300 --sample-tokens 200\n"
                "--data book.txt --save out --save-every 500 --log out.jsonl\n",
    .text = "Trains a GPT. Without options it is a small one, which learns stories, a built-in text.",
    .classes = OF_TRAIN | OF_LIST | OF_RUN,
};

static bool is_unrecorded(const char *option)
{
    if (has_word("stop-after mesh", option))
        return true;
    for (size_t i = 0; i < n_modules; i++)
        if (has_word(modules[i]->unrecorded, option))
            return true;
    return false;
}

/* Does the training follow from this option?  The model's sizes and the mesh are recorded elsewhere. */
static bool is_recorded(const struct option *o)
{
    static const char *const groups[] = {GROUP_DATA, GROUP_TRAINING, GROUP_DEVICES, GROUP_TECHNIQUES, NULL};
    if (!(o->commands & train_page.classes) || is_unrecorded(o->name))
        return false;
    return choice_number(groups, o->group) >= 0 || strcmp(o->name, "seq-len") == 0;
}

json_t *options_json(bool recorded)
{
    json_t *all = json_object();
    for (size_t i = 0; i < table.n; i++) {
        const struct option *o = &options[i];
        char *text = option_text(o);
        bool is_number = o->type < OPT_TEXT && !recorded;
        bool is_wanted = o->commands & train_page.classes;
        if (recorded)
            is_wanted = is_recorded(o) && *text;
        if (is_wanted)
            json_object_set_new(all, o->name, is_number ? json_loads(text, JSON_DECODE_ANY, NULL) : text_json(text));
        free(text);
    }
    return all;
}

/* Takes over the options of the run that this one goes on from.  They do not count as given. */
static void apply_recorded(const struct resumed_run *past)
{
    const char *name;
    json_t *value;
    asked.resumed = past;
    asked.source = past->source;
    json_object_foreach((json_t *)past->options, name, value)
    {
        const struct option *o = find_option(&table, name);
        char *where = format_string("%s: option %s", past->options_in, name);
        if (o && is_recorded(o)) {
            set_option(&table, o, where, json_string_value(value));
            table.given[o - options] = false;
        } else if (strcmp(name, "mesh") != 0) {
            warn("%s is unknown to this program, and left out", where);
        }
        free(where);
    }
}

/* ---- the command line ------------------------------------------------------------------------------------------- */

static unsigned classes_of(const struct page *page) { return page->classes | OF_THIS; }

static void claim_file(const struct option *o)
{
    const struct archive *archive = sole_parts().archive;
    const char *path = *(const char **)o->value;
    const char *name = JOINED("--", o->name);
    if (!path)
        return;
    if (!is_output(o)) {
        claim_input(name, path);
        return;
    }
    if (archive)
        archive->refuse(name, path);
    claim_output(name, path, archive && o->type == OPT_KEPT ? archive->option : NULL);
}

/* Claims the files that options name, before any is opened for writing.  Files in folders are claimed where the folders
 * are listed. */
static void claim_files(const struct page *page)
{
    for (size_t i = 0; i < table.n; i++)
        if (options[i].type >= OPT_INPUT && (options[i].commands & classes_of(page)))
            claim_file(&options[i]);
    if (was_given("tokens") && file_of_tokens(asked.data.tokens))
        claim_input("--tokens", asked.data.tokens);
    if (was_given("pipeline") && is_written_order(asked.pipeline))
        claim_input("--pipeline", asked.pipeline);
    if (asked.save)
        claim_output("--save", saved_model(&asked), NULL);
}

static void reset_settings(const struct page *page)
{
    asked = (struct settings){.trains = page->classes & OF_TRAIN, .draw_seed = -1};
    if (table.n == 0)
        gather_options();
    mark_options(page);
    reset_options(&table);
    begin_claims();
    if (page->defaults)
        page->defaults(&asked);
}

static void print_page(const struct page *page)
{
    apply_preset();
    print_usage(stdout, page->name, page->takes, page->examples, page->text);
    print_options(stdout, &table, classes_of(page));
    if (page->classes & OF_LIST)
        printf("\nA config file holds lines `option = value`.\n"
               "Precedence: --model's sizes, --config, command line.\n");
    flush_output();
}

/* Refuses a word that is no option, where the command takes none. */
static _Noreturn void refuse_word(const struct page *page, const char *word)
{
    const bool samples = page->classes & OF_SAMPLE;
    const char *option = samples ? "from" : "data";
    char *known = strchr(word, '=') ? find_foreign(&table, classes_of(page), word, "--") : NULL;
    if (known)
        fail(EXIT_USAGE, "'%s' is not an option: options start with --; %s", word, known);
    if (exists(word))
        fail(EXIT_USAGE, "'%s' is a file that no option takes: write --%s %s%s", word, option, word,
             samples ? "" : "; for several files a quoted pattern, such as --data 'folder/*.txt'");
    if (strpbrk(word, "./"))
        fail(EXIT_USAGE, "'%s' is not an option, and no such file is here; a file is given as --%s FILE", word, option);
    fail(EXIT_USAGE, "'%s' is not an option: options start with --; see `yard %s --help`", word, page->name);
}

static void apply_config(const struct page *page, const char *config)
{
    static char *text; /* options point into it */
    claim_input("--config", config);
    if (is_json(config))
        fail(EXIT_USAGE,
             "%s is a JSON text, not lines `option = value`: the config.json of a model is read by --init FOLDER",
             config);
    text = read_text(config);
    parse_config(&table, classes_of(page), config, text);
    const struct archive *archive = sole_parts().archive;
    if (archive && (was_given("config") || was_given(archive->option + strlen("--"))))
        fail(EXIT_USAGE, "%s: --config and %s belong on the command line, not into a config file", config,
             archive->option);
    if (was_given("config"))
        fail(EXIT_USAGE, "%s: --config belongs on the command line, not into a config file", config);
}

/* Opens the model of --init. */
static void open_init(void)
{
    asked.source = open_source(asked.init, asked.heads);
    if (strcmp(asked.source.path, asked.init) != 0) /* a folder's model */
        claim_input("--init", asked.source.path);
    if (!asked.source.checkpoint)
        claim_weights("--init", asked.source.path);
}

/* The command line is parsed twice.  First it says which run and which config file say more; then it overrules both. */
struct settings *parse_settings(const struct page *page, int argc, char **argv)
{
    int n_words;
    reset_settings(page);
    if (wants_help(argc, argv)) {
        print_page(page);
        exit(EXIT_OK);
    }
    char **words = parse_options(&table, classes_of(page), page->name, argc, argv, &n_words);
    if (n_words && !page->takes_word)
        refuse_word(page, words[0]);
    const char *config = asked.config;
    const struct archive *archive = sole_parts().archive;
    const struct resumed_run *past = archive && page->classes & OF_TRAIN ? archive->find_run() : NULL;
    reset_settings(page);
    if (past)
        apply_recorded(past);
    if (config)
        apply_config(page, config);
    words = parse_options(&table, classes_of(page), page->name, argc, argv, &n_words);
    asked.word = words[0];
    asked.n_words = n_words;
    claim_files(page);
    set_order();
    check_together();
    if (past)
        asked.init = NULL;
    if (asked.init)
        open_init();
    if (asked.source.path)
        adopt_sizes();
    apply_preset();
    if (asked.source.path)
        asked.preset = -1;
    return &asked;
}

/* ---- for others ------------------------------------------------------------------------------------------------- */

bool was_given(const char *option)
{
    const struct option *o = find_option(&table, option);
    return o && table.given[o - options];
}

const char *first_given(option_fits *fits)
{
    for (size_t i = 0; i < table.n; i++)
        if (table.given[i] && !fits(&options[i]))
            return options[i].name;
    return NULL;
}

int given_heads(void) { return was_given("heads") ? asked.heads : 0; }

void expect_heads(const struct config *c, const char *path)
{
    int given = given_heads();
    if (given && given != c->heads)
        fail(EXIT_USAGE, "%s has %d heads, not %d: leave --heads out", path, c->heads, given);
}

const char *word_of(const char *option, int number) { return choice_words(find_option(&table, option))[number]; }
