/* fuzz.c - mutated files of every format through the readers, in children of this process; `make fuzz` runs it under
 * AddressSanitizer and UBSan.
 *
 *     fuzz SECONDS FILES SEED        ends after so many seconds or files, whichever comes first
 *
 * File number i depends on SEED and i alone.  What a child may do: print text that a terminal shows as it is, and exit
 * with 0, or with one sentence and 1, 2 or 4.  A signal, a sanitizer's report, a broken invariant or a hang is a
 * finding: its file and what was printed are kept in build/fuzz.  A new format is a line in `formats`.
 */
#include "../src/cmd/cmd.h"
#include "support_paper.h"

#include <ctype.h>
#include <fcntl.h>
#include <signal.h>
#include <time.h>

#define FOLDER "build/fuzz/"
#define SERVER "data/hardware/server.txt"
enum { HANG_SECONDS = 30, MOST_WORDS = 12, START = 2048 };

/* Sanitizers end with a signal, so that their exit codes are not taken for ours.  Whoever asks for too much memory gets
 * none, as elsewhere. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "abort_on_error=1:detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4096";
}
const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void) { return "abort_on_error=1:print_stacktrace=1"; }

/* ---- readers that no command runs without a device -------------------------------------------------------------- */

static int read_tensors(int n, char **words)
{
    (void)n;
    struct safetensors *st = open_safetensors(words[0]);
    for (size_t i = 0; i < st->n; i++) {
        const struct st_tensor *t = &st->tensors[i];
        bool whole = t->dtype == DTYPE_I32 || t->dtype == DTYPE_I64 || t->dtype == DTYPE_U8 || t->dtype == DTYPE_U16;
        void *values = allocate(st_elements(t), 4);
        if (whole)
            read_ints(st, t, values);
        else if (t->dtype != DTYPE_OTHER)
            read_floats(st, t, values);
        free(values);
    }
    close_safetensors(st);
    return 0;
}

static int read_checkpoint(int n, char **words)
{
    (void)n;
    size_t count;
    struct llmc_model *m = open_llmc_model(words[0]);
    free(read_llmc_tensor(m, "wte", 0, &count));
    free(read_llmc_tensor(m, "fcprojw", m->layers - 1, &count));
    free(read_llmc_tensor(m, "lnfb", 0, &count));
    close_llmc_model(m);
    return 0;
}

static int predict(int n, char **words)
{
    (void)n;
    struct trainer *t = plan_tiny(SERVER, 2);
    struct costs *c = read_costs(words[0]);
    struct simulation *sim = simulate(t->train, c);
    print_simulation(stdout, sim, c);
    free_simulation(sim), free_costs(c), free_trainer(t);
    return 0;
}

/* ---- seeds ------------------------------------------------------------------------------------------------------- */

static const char profile_text[] = "device = some device\ndriver = 1.0\nengine = own\nunits = 2\nvector = 8\n"
                                   "shape = small # and round\nlink upload = 1e9 1e-6\nlink download = 2e9 2e-6\n"
                                   "gap compute = 1e-7\nissue = 1e-6\nmemory work = 4096\n"
                                   "task mlp.fc compute = 1000 100 400\ntask ln1 compute = 5000.5 900 4e3\n"
                                   "task batch.upload upload = 3000 0 800\ntask batch.prepare cpu = 2e3 0 100\n";
static const char config_text[] = "# sizes\nlayers = 2\nheads = 2\nchannels=32\nseq-len = 16 # short\nbatch = 4\n"
                                  "micro-batch = 2\nuntied = true\ntokens = chars\nval-share = 0.25\nlr = 1e-3\n"
                                  "eps = 1e-8\nseed = 7\ndevice-mem = 512M\nhost-mem = 8G\ngemm = own\nbeta2 = 0.99\n";
static const char list_text[] =
    "device gpu.0 memory=1K align=64 slab=512\ndevice b memory=2K\ndevice host memory=1M issue=1us\n"
    "lane gpu.0.upload1 gap=2us\nlane host.disk1\nlink gpu.0,b up 1e9 2us queues=2 queue=5e8\nlink b down 1e8\n"
    "disk 1e9 1ms\ntensor w gpu.0 256 parameters\ntensor x b 256 work keep\ntensor h host 4K activations\n"
    "task f gpu.0.compute 1.5ms layer=0 micro=1 role=forward cpu=3ms every=2 reads=w[0:128],x writes=x[4:8]\n"
    "copy c h[0:256] w lane=gpu.0.download role=send\ncopy d x w time=3us every=3\n"
    "copy e h[256:512] h[0:256] lane=host.disk1\ntask g host.feed 2e-3 reads=h[0:512] writes=w[8:16]\n";
static const char text_text[] = "The quick brown fox, gr\xC3\xBC\xC3\x9F Gott \xE2\x82\xAC \xF0\x9F\x98\x80 jumps.\n"
                                "Over the lazy dog, and over it again: so that there are enough characters here.\n";

/* A model of a few kilobytes, most of them header, with a tokenizer. */
static void write_model(const char *path)
{
    struct params *p = new_params(&(struct config){2, 2, 4, 8, 70, true});
    struct st_writer *w = new_st_writer(path);
    static const float zeros[1024];
    st_metadata(w, "config", "{\"n_layer\": 2, \"n_head\": 2}");
    st_metadata(w, "yard.tokenizer", "chars a 20 41 42 43 61 62 63 20ac 1f600");
    for (int i = 0; i < p->n; i++) {
        const struct param *x = &p->param[i];
        st_declare(w, x->name, DTYPE_F32, x->rank, (int64_t[]){x->shape[x->conv1d], x->shape[!x->conv1d]});
    }
    st_begin(w);
    for (int i = 0; i < p->n; i++)
        st_write(w, zeros, 4 * (size_t)(p->param[i].shape[0] * p->param[i].shape[1]));
    st_publish(w);
    free_params(p);
}

static void write_seed(const char *path, const char *text)
{
    struct writer *w = open_writer(path);
    write_bytes(w, text, strlen(text));
    publish(w);
}

static void make_seeds(void *unused)
{
    (void)unused;
    write_seed(FOLDER "seed.profile", profile_text);
    write_seed(FOLDER "seed.config", config_text);
    write_seed(FOLDER "seed.text", text_text);
    write_seed(FOLDER "seed.list", list_text);
    write_model(FOLDER "seed.model");
    cmd_plan(7, (char *[]){"--model", "tiny", "--simulate", "--hardware", SERVER, "--trace", FOLDER "seed.trace"});
}

/* ---- formats ----------------------------------------------------------------------------------------------------- */

#define PLAN "--simulate", "--model", "tiny", "--val-share", "0", "--hardware"
static const struct format {
    const char *seed, *file; /* the mutated file is called so */
    int (*run)(int argc, char **argv);
    const char *words[MOST_WORDS]; /* "@" stands for the file */
    int every;                     /* 1: each round; 0 is 1 */
} formats[] = {
    {"tests/data/gpt2-tiny.safetensors", "tensors", read_tensors, {"@"}, 0},
    {FOLDER "seed.model", "model", read_tensors, {"@"}, 0},
    {FOLDER "seed.model",
     "model",
     cmd_plan,
     {"--simulate", "--hardware", SERVER, "--data", "README.md", "--init", "@"},
     0},
    {"tests/data/llmc-tiny.bin", "checkpoint.bin", read_checkpoint, {"@"}, 0},
    {"tests/data/llmc-tiny.bin", "checkpoint.bin", cmd_plan, {"--simulate", "--hardware", SERVER, "--init", "@"}, 0},
    {"tests/data/llmc-tokens.bin", "shard.bin", cmd_plan, {PLAN, SERVER, "--data", "@"}, 0},
    {FOLDER "seed.text", "text", cmd_plan, {PLAN, SERVER, "--data", "@", "--tokens", "chars"}, 0},
    {FOLDER "seed.trace", "trace", cmd_trace, {"summary", "@"}, 0},
    {FOLDER "seed.trace", "trace", cmd_trace, {"summary", "--json", "@"}, 0},
    {FOLDER "seed.trace", "trace", cmd_trace, {"export", "@", "--chrome", FOLDER "chrome.json"}, 0},
    {FOLDER "seed.trace", "trace", cmd_trace, {"diff", FOLDER "seed.trace", "@"}, 0},
    {FOLDER "seed.profile", "profile", predict, {"@"}, 0},
    {SERVER, "hardware", cmd_plan, {"--simulate", "--model", "tiny", "--mesh", "dp=2", "--hardware", "@"}, 0},
    {"data/steps/overlap-pays.txt", "list", cmd_plan, {"--simulate", "--verify", "--print", "--list", "@"}, 0},
    {FOLDER "seed.list", "list", cmd_plan, {"--simulate", "--list", "@"}, 0},
    {FOLDER "seed.list", "list", cmd_plan, {"--print-list", "--list", "@"}, 0},
    {FOLDER "seed.config", "config", cmd_plan, {PLAN, SERVER, "--config", "@"}, 0},
    {"tests/data/gpt2-tiny.safetensors", "reference", cmd_check, {"--serial", "@"}, 50},
};

/* ---- mutating ---------------------------------------------------------------------------------------------------- */

struct file {
    unsigned char *bytes;
    size_t n;
    uint64_t seed, drawn; /* of its random numbers */
    uint32_t number;
};

static size_t draw(struct file *f, size_t below)
{
    struct random4 r = random_words(f->seed, STREAM_TEST, f->number, f->drawn++);
    return below ? ((uint64_t)r.word[0] << 32 | r.word[1]) % below : 0;
}

/* Half of the places are near the start, where headers are. */
static size_t place_in(struct file *f) { return draw(f, draw(f, 2) ? MIN(f->n, START) : f->n); }

static void replace_part(struct file *f, size_t at, size_t old, const void *new, size_t n)
{
    unsigned char *bytes = allocate(f->n - old + n, 1);
    memcpy(bytes, f->bytes, at);
    memcpy(bytes + at, new, n);
    memcpy(bytes + at + n, f->bytes + at + old, f->n - at - old);
    free(f->bytes);
    f->bytes = bytes;
    f->n += n - old;
}

static void change_integer(struct file *f)
{
    static const uint64_t odd[] = {0,
                                   1,
                                   0x7F,
                                   0xFF,
                                   0x7FFFFFFF,
                                   0x80000000,
                                   0xFFFFFFFF,
                                   UINT64_MAX,
                                   1ull << 63,
                                   (1ull << 32) + 1,
                                   0x7FF0ull << 48,
                                   1000000007};
    size_t width = (size_t)1 << draw(f, 4), at = place_in(f) / width * width;
    uint64_t value = odd[draw(f, COUNT(odd))];
    if (at + width <= f->n)
        memcpy(f->bytes + at, &value, width);
}

/* The next number written in digits becomes another; where bytes are counted, one of the same length. */
static void change_number(struct file *f)
{
    static const char *const odd[] = {"0",
                                      "-1",
                                      "1e-320",
                                      "1e300",
                                      "nan",
                                      "inf",
                                      "2147483648",
                                      "4294967297",
                                      "1000000",
                                      "18446744073709551617",
                                      "99999999999999999999",
                                      "0x10",
                                      "1e-12",
                                      "",
                                      "1.5",
                                      "7"};
    size_t at = place_in(f), end;
    while (at < f->n && !isdigit(f->bytes[at]))
        at++;
    for (end = at; end < f->n && (isdigit(f->bytes[end]) || f->bytes[end] == '.' || f->bytes[end] == 'e');)
        end++;
    const char *number = odd[draw(f, COUNT(odd))];
    if (draw(f, 2))
        replace_part(f, at, end - at, number, strlen(number));
    else
        for (size_t i = at; i < end; i++)
            f->bytes[i] = (unsigned char)('0' + draw(f, 10));
}

static void mutate(struct file *f)
{
    for (size_t times = 1 + draw(f, 4); times && f->n; times--) {
        size_t at = place_in(f), n = 1 + draw(f, MIN(f->n - at, 64)), from = draw(f, f->n - n + 1);
        unsigned char byte = (unsigned char)draw(f, 256), *copy;
        switch (draw(f, 9)) {
        case 0:
            f->bytes[at] ^= (unsigned char)(1 << draw(f, 8));
            break;
        case 1:
            f->bytes[at] = byte;
            break;
        case 2:
            f->n = at;
            break;
        case 3: /* a part moves */
            memmove(f->bytes + at, f->bytes + from, n);
            break;
        case 4: /* a part doubles, or two are in another's way */
            copy = memcpy(allocate(n, 1), f->bytes + from, n);
            replace_part(f, at, 0, copy, n);
            free(copy);
            break;
        case 5:
            replace_part(f, at, n, &byte, draw(f, 2));
            break;
        case 6:
            change_number(f);
            break;
        default:
            change_integer(f);
        }
    }
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static struct { /* what is run */
    const struct format *format;
    const char *path;
} now;

static void run_reader(void *unused)
{
    (void)unused;
    char *words[MOST_WORDS + 1] = {NULL};
    int n = 0;
    for (; n < MOST_WORDS && now.format->words[n]; n++)
        words[n] = copy_string(strcmp(now.format->words[n], "@") == 0 ? now.path : now.format->words[n]);
    dup2(2, 1);
    alarm(HANG_SECONDS);
    int code = now.format->run(n, words);
    fflush(stdout);
    _exit(code);
}

/* What is wrong with how a child ended, or NULL. */
static const char *finding(const struct outcome *o)
{
    bool sentence = false;
    for (const char *at = o->text; (at = strstr(at, "yard: ")); at++)
        sentence |= at == o->text || at[-1] == '\n';
    char *printable = make_printable(copy_string(o->text), true);
    bool raw =
        strlen(o->text) + 8 < sizeof o->text && strcmp(printable, o->text) != 0; /* (not cut within a character) */
    free(printable);
    if (o->signal)
        return o->signal == SIGALRM ? "it hangs" : strsignal(o->signal);
    if (o->code != EXIT_OK && o->code != EXIT_FAILED && o->code != EXIT_USAGE && o->code != EXIT_IO)
        return "an exit code outside the contract";
    if (o->code != EXIT_OK && !sentence && strlen(o->text) + 8 < sizeof o->text)
        return "an error without a sentence";
    return raw ? "raw control characters" : NULL;
}

static bool try_file(const struct format *format, struct file *f, int codes[5])
{
    char *path = format_string(FOLDER "%s", format->file),
         *kept = format_string(FOLDER "finding-%u-%s", f->number, format->file);
    size_t n;
    f->bytes = (unsigned char *)read_whole(format->seed, &n);
    f->n = n;
    mutate(f);
    FILE *out = fopen(path, "wb");
    CHECK(out && fwrite(f->bytes, 1, f->n, out) == f->n && fclose(out) == 0, "cannot write %s", path);
    now.format = format, now.path = path;
    struct outcome o = run_child(run_reader, NULL);
    const char *wrong = finding(&o);
    if (wrong && rename(path, kept) == 0)
        printf("FOUND  %s: %s (code %d), %s\n%.2000s\n", kept, wrong, o.code, format->words[0], o.text);
    if (!wrong)
        codes[o.code]++;
    fflush(stdout);
    free(path), free(kept), free(f->bytes);
    return wrong;
}

int main(int argc, char **argv)
{
    int64_t seconds = 60, files = INT32_MAX, seed = 1;
    if (argc > 4 || (argc > 1 && !parse_int(argv[1], &seconds)) || (argc > 2 && !parse_int(argv[2], &files)) ||
        (argc > 3 && !parse_int(argv[3], &seed)))
        fail(EXIT_USAGE, "fuzz SECONDS FILES SEED");
    make_folder(FOLDER);
    if (run_child(make_seeds, NULL).code != 0)
        fail(EXIT_FAILED, "the valid files could not be made");
    int tried[COUNT(formats)] = {0}, codes[5] = {0}, found = 0;
    uint32_t number = 0, rounds = 0;
    for (time_t end = time(NULL) + seconds; number < files && time(NULL) < end; rounds++)
        for (size_t k = 0; k < COUNT(formats) && number < files && time(NULL) < end; k++)
            if (rounds % (uint32_t)MAX(formats[k].every, 1) == 0) {
                found += try_file(&formats[k], &(struct file){.seed = (uint64_t)seed, .number = number++}, codes);
                tried[k]++;
            }
    for (size_t k = 0; k < COUNT(formats); k++)
        printf("%6d of %-14s through %s\n", tried[k], formats[k].file, formats[k].words[0]);
    printf("%u files mutated with seed %lld: %d still valid, %d damaged (1), %d refused (2), %d unreadable (4); %d "
           "findings\n",
           number, (long long)seed, codes[0], codes[1], codes[2], codes[4], found);
    return found > 0;
}
