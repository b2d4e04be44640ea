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
/* Each row is a struct option (base/options.h):
 * name, letter, type, value, default, argument, low, high, group, commands, help */
static const struct option own_options[] = {
    {"model", 0, OPT_CHOICE, &asked.preset, "nano", WORDS("tiny", "nano", "char", "gpt2"), 0, 0, GROUP_MODEL, OF_LIST,
     "sizes by name: tiny (2 layers, 2 heads, 32 channels, seq-len 32, batch 4), nano (4, 4, 128, 64, 12), char (6, 6, "
     "384, 256, 8), gpt2 (12, 12, 768, 1024, 4)"},
    {"layers", 0, OPT_INT, &asked.layers, NULL, "N", 1, MAX_LAYERS, GROUP_MODEL, OF_LIST, "transformer layers"},
    {"heads", 0, OPT_INT, &asked.heads, NULL, "N", 1, 1000, GROUP_MODEL, OF_LIST | OF_SAMPLE,
     "attention heads; must divide --channels; also those of a model file that does not say how many it has"},
    {"channels", 0, OPT_INT, &asked.channels, NULL, "N", 1, 100000, GROUP_MODEL, OF_LIST, "width of the model"},
    {"seq-len", 0, OPT_INT, &asked.seq_len, NULL, "N", 1, 1000000, GROUP_MODEL, OF_LIST, "tokens per sequence"},
    {"untied", 0, OPT_FLAG, &asked.untied, NULL, NULL, 0, 0, GROUP_MODEL, OF_LIST, "give the head weights of its own"},
    {"init", 0, OPT_INPUT, &asked.init, NULL, "FILE|DIR", 0, 0, GROUP_MODEL, OF_TRAIN | OF_PLAN,
     "start from an llm.c checkpoint, safetensors with GPT-2 names (a file, the index of shards, or their folder, "
     "where a config.json is read too), or what --save wrote; brings its own sizes"},
    {"config", 0, OPT_INPUT, &asked.config, NULL, "FILE", 0, 0, GROUP_MODEL, OF_LIST, "file of lines `option = value`"},

    {"data", 0, OPT_INPUTS, &asked.data.path, NULL, "PATH", 0, 0, GROUP_DATA, OF_LIST,
     "text (also packed with gzip), llm.c shard or uint16 tokens: a file, a folder or a quoted glob; a folder with "
     "train.bin and val.bin: the one to train, the other to validate; 'stories': a built-in text whose best "
     "possible loss is known; 'stories:FILE': by your own grammar; 'self': this program's sources (default: stories; "
     "plan, profile and bench: random tokens)"},
    {"vocab", 0, OPT_INT, &asked.vocab, NULL, "N", 1, 1e6, GROUP_DATA, 0,
     "vocabulary of random tokens (default: 256; of gpt2 50257)"},
    {"tokens", 0, OPT_TEXT, &asked.data.tokens, "bytes", "bytes|chars|bpe:N|FILE", 0, 0, GROUP_DATA,
     OF_LIST | OF_SAMPLE,
     "what a token of text is: a byte, a character, one of N tokens that are learnt from the training text (byte pair "
     "encoding), or what a FILE says: tokenizer.json, vocab.json beside merges.txt, llm.c's gpt2_tokenizer.bin. A "
     "model brings its own tokenizer, or has such a file beside it; else FILE is its tokenizer"},
    {"order", 0, OPT_CHOICE, &asked.data.order, "shuffle", WORDS([ORDER_SHUFFLE] = "shuffle", [ORDER_FILE] = "file"), 0,
     0, GROUP_DATA, OF_LIST, "take windows of the data at random, or one after another"},
    {"val-data", 0, OPT_INPUTS, &asked.data.val_data, NULL, "PATH", 0, 0, GROUP_DATA, OF_LIST,
     "text to validate on (default: --val-share of --data)"},
    {"val-share", 0, OPT_DOUBLE, &asked.data.val_share, "0.1", "X", 0, 0.9, GROUP_DATA, OF_LIST,
     "share of the data for validation: the end of a text, parts all over several files"},
    {"val-every", 0, OPT_INT, &asked.val_every, NULL, "N", 0, 1e9, GROUP_DATA, OF_TRAIN,
     "evaluate every N steps (0: only at the end)"},
    {"val-batches", 0, OPT_INT, &asked.val_batches, NULL, "N", 0, 1e9, GROUP_DATA, OF_TRAIN,
     "evaluate on N batches (0: all)"},

    {"batch", 0, OPT_INT, &asked.batch, NULL, "N", 1, 1e6, GROUP_TRAINING, OF_LIST,
     "sequences per step, over all devices"},
    {"micro-batch", 0, OPT_INT, &asked.micro_batch, NULL, "N", 0, 1e6, GROUP_TRAINING, OF_LIST,
     "sequences a device takes at a time (0: its whole share); gradients are accumulated"},
    {"steps", 0, OPT_INT, &asked.steps, "500", "N", 1, 1e9, GROUP_TRAINING, OF_TRAIN, "steps to train"},
    {"stop-after", 0, OPT_INT, &asked.stop_after, NULL, "N", 0, 1e9, GROUP_TRAINING, OF_TRAIN,
     "save and stop after step N; the schedule is still meant for --steps (0: off)"},
    {"lr", 0, OPT_FLOAT, &asked.lr, "1e-3", "X", 0, 1e3, GROUP_TRAINING, OF_TRAIN, "learning rate"},
    {"lr-min", 0, OPT_FLOAT, &asked.lr_min, "-1", "X", -1, 1e3, GROUP_TRAINING, OF_TRAIN,
     "learning rate at the end (-1: a tenth of --lr)"},
    {"schedule", 0, OPT_CHOICE, &asked.schedule, "cosine",
     WORDS([RATE_COSINE] = "cosine", [RATE_CONSTANT] = "constant", [RATE_LINEAR] = "linear", [RATE_WSD] = "wsd"), 0, 0,
     GROUP_TRAINING, OF_TRAIN, "course of the learning rate; wsd: constant, and the last fifth of the steps decays"},
    {"warmup", 0, OPT_INT, &asked.warmup, "-1", "N", -1, 1e9, GROUP_TRAINING, OF_TRAIN,
     "steps in which the learning rate rises (-1: a twentieth of --steps, at most 100; none when constant)"},
    {"beta1", 0, OPT_FLOAT, &asked.beta1, "0.9", "X", 0, BELOW_1, GROUP_TRAINING, OF_TRAIN,
     "AdamW: decay of the mean of gradients"},
    {"beta2", 0, OPT_FLOAT, &asked.beta2, "0.99", "X", 0, BELOW_1, GROUP_TRAINING, OF_TRAIN,
     "AdamW: decay of the mean of squared gradients"},
    {"eps", 0, OPT_FLOAT, &asked.eps, "1e-8", "X", FLT_MIN, 1, GROUP_TRAINING, OF_TRAIN,
     "AdamW: number added to the denominator"},
    {"weight-decay", 0, OPT_FLOAT, &asked.weight_decay, "0.1", "X", 0, 10, GROUP_TRAINING, OF_TRAIN,
     "AdamW: decay of matrices"},
    {"clip", 0, OPT_FLOAT, &asked.clip, "1", "X", 0, 1e9, GROUP_TRAINING, OF_TRAIN | OF_PLAN,
     "largest norm of the gradient; above 0 all updates, of a step file too, wait for the end of the last backward; 0: "
     "no limit, and each layer is updated right after its backward"},
    {"seed", 0, OPT_LONG, &asked.seed, "1337", "N", 0, 9e15, GROUP_TRAINING, OF_LIST | OF_SAMPLE,
     "seed of all random numbers"},

    {"devices", 'd', OPT_TEXT, &asked.devices, NULL, "P:D[/n|xN][,...]", 0, 0, GROUP_DEVICES, OF_RUN,
     "platform:device as `yard devices` numbers them; /n cuts a CPU into n sub-devices, xN uses a device as N logical "
     "ones (default: the first GPU, else the first device)"},
    {"mesh", 0, OPT_TEXT, &asked.mesh, NULL, "dp=A,pp=B,tp=C", 0, 0, GROUP_DEVICES, OF_LIST,
     "arrange the devices: A data-parallel pipelines of B stages, each stage's layers cut by heads, columns and words "
     "for C tensor-parallel devices (default: dp = all devices)"},
    {"zero", 0, OPT_INT, &asked.zero, "1", "0..3", 0, 3, GROUP_DEVICES, OF_LIST,
     "what data-parallel devices share out instead of each keeping all. 1: the optimizer's state; 2: gradients too "
     "(with a single micro-batch); 3: parameters too, gathered layer by layer before use. The bits are the same"},
    {"stages", 0, OPT_TEXT, &asked.stages, NULL, "N,N,...", 0, 0, GROUP_DEVICES, OF_LIST,
     "layers of each stage (default: equal)"},
    {"pipeline", 0, OPT_CHOICE, &asked.pipeline, "1f1b", pipeline_name, 0, 0, GROUP_DEVICES, OF_LIST,
     "order of micro-batches in a pipeline. interleaved: two stages per device, micro-batches a multiple of pp; "
     "zbh1, zbh2: the gradients of weights fill the waits, zbh2 in twice the memory; dualpipev: the same with two "
     "stages per device, the first and the last on device 0, at least 2 pp micro-batches"},
    {"grad-groups", 0, OPT_INT, &asked.grad_groups, "1", "G", 1, MAX_RANKS, GROUP_DEVICES, OF_LIST,
     "sum the gradient in G groups of sequences, as dp=G does, to compare to the bit"},
    {"device-mem", 0, OPT_BYTES, &asked.device_memory, NULL, "BYTES", 0, 0, GROUP_DEVICES, OF_RUN,
     "memory budget of each device, with K, M or G (0: of a CPU three quarters of the host's memory, of a GPU all of "
     "its own but a sixteenth and 256 MiB, left to the driver)"},
    {"host-mem", 0, OPT_BYTES, &asked.host_memory, NULL, "BYTES", 0, 0, GROUP_DEVICES, OF_RUN,
     "memory budget of the host, with K, M or G (0: all of its memory)"},
    {"gemm", 0, OPT_CHOICE, &asked.kernels.gemm, "auto",
     WORDS([GEMM_AUTO] = "auto", [GEMM_OWN] = "own", [GEMM_CLBLAST] = "clblast"), 0, 0, GROUP_DEVICES, OF_RUN,
     "what computes matrix products: our kernel, which is for CPUs, or CLBlast (auto: ours on CPUs, CLBlast on GPUs)"},
    {"attention", 0, OPT_CHOICE, &asked.kernels.attention, "plain",
     WORDS([ATTENTION_PLAIN] = "plain", [ATTENTION_FLASH] = "flash"), 0, 0, GROUP_DEVICES, OF_RUN,
     "how attention is computed. plain: products and softmax, keeps a (T, T) matrix per head; flash: fused kernels, "
     "memory grows with T alone"},
    {"vector", 0, OPT_INT, &asked.vector, NULL, "N", 0, 16, GROUP_DEVICES, OF_RUN,
     "floats per vector: 1, 4, 8 or 16, at most what the device has (0: just that); results depend on it to the last "
     "bit"},

    {"serial", 0, OPT_FLAG, &asked.serial, NULL, NULL, 0, 0, GROUP_LOOKING, OF_TRAIN | OF_SAMPLE,
     "run one task after another, wait after each, create no thread: the reference, and for debuggers"},
    {"log", 0, OPT_OUTPUT, &asked.log, NULL, "FILE.jsonl", 0, 0, GROUP_LOOKING, OF_TRAIN,
     "file that gets one line of JSON per step; when it cannot be written any more the run goes on, and ends with exit "
     "code 4"},
    {"save", 0, OPT_KEPT, &asked.save, NULL, "DIR", 0, 0, GROUP_LOOKING, OF_TRAIN,
     "write the parameters, for other programs, to DIR/model.safetensors at the end"},
    {"save-every", 0, OPT_INT, &asked.save_every, NULL, "N", 0, 1e9, GROUP_LOOKING, OF_TRAIN,
     "save every N steps too (0: only at the end)"},
    {"sample-tokens", 0, OPT_INT, &asked.sample_tokens, "200", "N", 0, 1e6, GROUP_LOOKING, OF_TRAIN,
     "tokens of a sample text to print at the end"},
    {"json", 0, OPT_FLAG, &asked.json, NULL, NULL, 0, 0, GROUP_LOOKING, 0,
     "print one JSON object on stdout and nothing else"},

    {"from", 0, OPT_INPUT, &asked.from, NULL, "DIR|FILE", 0, 0, GROUP_SAMPLING, OF_SAMPLE,
     "model to write with: what --save wrote, or a file as for --init of yard train"},
    {"prompt", 0, OPT_TEXT, &asked.prompt, "\n", "TEXT", 0, 0, GROUP_SAMPLING, OF_SAMPLE,
     "text to continue (default: a line's end)"},
    {"count", 0, OPT_INT, &asked.count, "300", "N", 1, 1e7, GROUP_SAMPLING, OF_SAMPLE,
     "tokens to add; an end-of-text token, <|endoftext|>, ends the text earlier"},
    {"temperature", 0, OPT_FLOAT, &asked.temperature, "0.8", "X", 0, 100, GROUP_SAMPLING, OF_SAMPLE,
     "how freely tokens are chosen; 0: always the likeliest"},
    {"top-k", 0, OPT_INT, &asked.top_k, "40", "K", 0, 1e6, GROUP_SAMPLING, OF_SAMPLE,
     "choose among the K likeliest (0: all)"},
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
    for (size_t i = 0; i < n_modules; i++)
        if (modules[i]->foreign_lookup)
            table.foreign = modules[i]->foreign_lookup;
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

static const struct law laws[] = {
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

/* Warns of, or refuses, what a law says of two options, if this yard has both. */
static void keep_law(const struct law *law)
{
    const struct option *other = find_option(&table, law->other);
    if (!other || !was_given(law->option))
        return;
    if (law->why && was_given(law->other))
        fail(EXIT_USAGE, "--%s and --%s: %s; leave one out", law->option, law->other, law->why);
    if (!law->why && is_off(other) && !asked.sweeps)
        warn("--%s has no effect without --%s", law->option, law->other);
}

/* Is there a folder that gathers parameters? */
static bool can_gather(void)
{
    for (size_t i = 0; i < n_modules; i++)
        if (modules[i]->gathers)
            return true;
    return false;
}

static void check_together(void)
{
    for (size_t i = 0; i < n_modules; i++)
        if (modules[i]->check)
            modules[i]->check(&asked);
    for (size_t i = 0; i < COUNT(laws); i++)
        keep_law(&laws[i]);
    for (size_t i = 0; i < n_modules; i++)
        for (size_t k = 0; k < modules[i]->n_laws; k++)
            keep_law(&modules[i]->laws[k]);
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
    else if (asked.past && was_given("model"))
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
    .text = "Trains a GPT; without options a small one on stories, a built-in text.",
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
static void apply_recorded(const struct past *past)
{
    const char *name;
    json_t *value;
    asked.past = past;
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
    const struct archive *archive = find_archive();
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
    printf("usage: yard %s %s\n\n%s\n", page->name, page->takes, page->text);
    print_options(stdout, &table, classes_of(page));
    if (page->classes & OF_LIST)
        printf("\nA config file holds lines `option = value`. Precedence: --model's sizes, --config, command line.\n");
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
    const struct archive *archive = find_archive();
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
    char **words;
    int n_words;
    reset_settings(page);
    if (wants_help(argc, argv)) {
        print_page(page);
        exit(EXIT_OK);
    }
    parse_options(&table, classes_of(page), page->name, argc, argv, &words, &n_words);
    if (n_words && !page->takes_word)
        refuse_word(page, words[0]);
    const char *config = asked.config;
    const struct archive *archive = find_archive();
    const struct past *past = archive && page->classes & OF_TRAIN ? archive->past() : NULL;
    reset_settings(page);
    if (past)
        apply_recorded(past);
    if (config)
        apply_config(page, config);
    parse_options(&table, classes_of(page), page->name, argc, argv, &words, &n_words);
    asked.word = words[0];
    asked.n_words = n_words;
    claim_files(page);
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
