/* fuzz.c - mutated files of every format through the readers, in children of this process; `make fuzz` runs it under
 * AddressSanitizer and UBSan.
 *
 *     fuzz SECONDS FILES SEED        ends after so many seconds or files, whichever comes first
 *
 * File number i depends on SEED and i alone.  What a child may do: print text that a terminal shows as it is, and exit
 * with 0, or with one sentence and 1, 2 or 4.  A signal, a sanitizer's report, a broken invariant or a hang is a
 * finding: its file and what was printed are kept in build/fuzz.  A new format is a line in `formats`.
 */
#include "planning/predict/predict.h"
#include "planning/trace/follow.h"
#include "techniques/checkpoint/files.h"
#include "tests/support/support_paper.h"
#include "tests/support/support_state.h"
#include "tools/ckpt/model_forms.h"
#include "tools/tokens/bpe.h"
#include "trainer/cmd/cmd.h"
#include "trainer/train/train.h"

#include <ctype.h>
#include <inttypes.h>
#include <signal.h>
#include <time.h>

#define FOLDER "build/fuzz/"
#define DATA "tests/data/"
#define SERVER "data/hardware/server.txt"
enum { HANG_SECONDS = 30, MOST_WORDS = 16, START = 2048 };

/* ---- readers that no command runs without a device --------------------------------------------------------------- */

static enum exit_code read_tensors(int n, char **words)
{
    (void)n;
    read_all_tensors(words[0]);
    return EXIT_OK;
}

static enum exit_code predict(int n, char **words)
{
    (void)n;
    struct trainer *trainer = plan_tiny(SERVER, 2);
    struct costs *costs = read_costs(words[0]);
    struct simulation *simulation = must_simulate(trainer->train_list, costs);
    print_simulation(stdout, simulation, costs);
    free_simulation(simulation);
    free_costs(costs);
    free_trainer(trainer);
    return EXIT_OK;
}

static void copy_file(const char *from, const char *to)
{
    size_t n;
    char *bytes = read_whole(from, &n);
    FILE *file = fopen(to, "w"); /* in place: a reader keeps the file that it has open */
    if (!file || fwrite(bytes, 1, n, file) != n || fclose(file))
        fail(EXIT_IO, "cannot write %s", to);
    free(bytes);
}

/* A sound trace that becomes the mutated one under its follower. */
static enum exit_code follow(int n, char **words)
{
    (void)n;
    const char *path = FOLDER "followed.trace";
    struct trace_follower *follower;
    bool changed;
    struct trace_running_task running;
    copy_file(FOLDER "seed.trace", path);
    must(open_follower(path, &follower));
    const struct trace *trace = followed_trace(follower);
    copy_file(words[0], path);
    struct problem *problem = poll_follower(follower, &changed);
    free(poll_follower(follower, &changed));
    for (uint32_t i = 0; i < trace->header.n_lanes; i++)
        find_running_task(trace, i, &running);
    for (uint32_t i = 0; i < trace->header.n_devices; i++) {
        const struct trace_tensor **tensors;
        tensors_alive_at(trace, i, most_bytes_held(&trace->memory_use[i]), &tensors);
        free(tensors);
    }
    close_follower(follower);
    must(problem);
    return EXIT_OK;
}

/* A tokenizer that was read is used and written. */
static enum exit_code use_tokenizer(struct bpe *bpe)
{
    static char bytes[] = "the cat's  on\n\xC3\xA9\xFF 12<|endoftext|> the";
    struct text text = {.name = "a text", .bytes = bytes, .n = sizeof bytes - 1};
    json_t *json = bpe_to_json(bpe);
    free_bpe(bpe_from_json(json, "its own text"));
    json_decref(json);
    if (!bpe->decodes_only) {
        size_t n, length;
        uint16_t *tokens = bpe_encode(bpe, &text, &n);
        size_t total = 0;
        for (size_t i = 0; i < n; i++) {
            bpe_decode(bpe, tokens[i], &length);
            total += length;
        }
        CHECK(total == text.n, "%zu tokens of %zu bytes", n, total);
        free(tokens);
    }
    free_bpe(bpe);
    return EXIT_OK;
}

static enum exit_code read_tokenizer(int n, char **words)
{
    (void)n;
    return use_tokenizer(read_bpe(words[0]));
}

/* Commands as readers of files. */
static enum exit_code run_plan(int argc, char **argv) { return find_command("plan")->run(argc, argv); }
static enum exit_code run_ckpt(int argc, char **argv) { return find_command("ckpt")->run(argc, argv); }
static enum exit_code run_trace(int argc, char **argv) { return find_command("trace")->run(argc, argv); }
static enum exit_code run_plot(int argc, char **argv) { return find_command("plot")->run(argc, argv); }
static enum exit_code run_check(int argc, char **argv) { return find_command("check")->run(argc, argv); }

/* The words of a text into argv, which ends with NULL; how many.  They are never freed: children use them. */
static int split(const char *text, char *argv[MOST_WORDS + 1])
{
    int n = 0;
    char *rest = copy_string(text);
    for (char *word; n < MOST_WORDS && (word = strsep(&rest, " "));)
        argv[n++] = word;
    argv[n] = NULL;
    return n;
}

static void make_seed_trace(void *unused)
{
    (void)unused;
    char *words[MOST_WORDS + 1];
    run_plan(split("--model tiny --simulate --hardware " SERVER " --trace " FOLDER "seed.trace", words), words);
}

/* The model of a checkpoint as other programs have it: twice with a config.json, one of which is replaced, and in a
 * shard with an index. */
static void make_foreign(void)
{
    static const char *const folders[] = {FOLDER "hf", FOLDER "described", FOLDER "sharded"};
    struct checkpoint *checkpoint = open_checkpoint(FOLDER "state");
    for (size_t i = 0; i < COUNT(folders); i++) {
        remove_folder(folders[i]);
        export_huggingface(checkpoint, folders[i], NULL, -1);
    }
    const char *shard = "model-00001-of-00001.safetensors";
    struct safetensors *st = open_safetensors(FOLDER "sharded/model.safetensors");
    json_t *map = json_object();
    for (size_t i = 0; i < st->n; i++)
        json_object_set_new(map, st->tensors[i].name, json_string(shard));
    json_t *index = json_pack("{s:o}", "weight_map", map);
    char *text = json_dumps(index, 0), *path = format_string(FOLDER "sharded/%s", shard);
    publish_text(FOLDER "seed.index.json", text);
    if (rename(FOLDER "sharded/model.safetensors", path) != 0)
        fail(EXIT_IO, "cannot rename the shard to %s", path);
    json_decref(index);
    free(text);
    free(path);
    close_safetensors(st);
    free_checkpoint(checkpoint);
}

/* A tokenizer of README.md in all forms: tokenizer.json; vocab.json and merges.txt, one sound and one to be
 * replaced, in two folders; and llm.c's. */
static void make_tokenizers(void *unused)
{
    (void)unused;
    static const char *const added[] = {"<|endoftext|>", NULL};
    struct text text = {.name = "README.md"};
    text.bytes = read_whole(text.name, &text.n);
    struct bpe *bpe = learn_bpe(&text, 1, 290, added);
    json_t *json = bpe_to_json(bpe), *model = json_object_get(json, "model");
    char *vocab = json_dumps(json_object_get(model, "vocab"), 0), *merges = copy_string("#version: 0.2\n");
    size_t i;
    json_t *merge;
    json_array_foreach(json_object_get(model, "merges"), i, merge)
        append_text(&merges, "%s\n", json_string_value(merge));
    publish_text(FOLDER "seed.tokenizer.json", json_dumps(json, 0));
    make_folder(FOLDER "merges");
    publish_text(FOLDER "seed.vocab.json", vocab);
    publish_text(FOLDER "merges/vocab.json", vocab);
    publish_text(FOLDER "seed.merges.txt", merges);
    publish_text(FOLDER "merges.txt", merges);
    int32_t header[256] = {20240328, 2, bpe->n, 256};
    struct writer *writer = open_writer(FOLDER "seed.tokenizer.bin");
    write_bytes(writer, header, sizeof header);
    for (int k = 0; k < bpe->n; k++) {
        write_bytes(writer, &(char){(char)bpe->tokens[k].n}, 1);
        write_bytes(writer, bpe->tokens[k].bytes, bpe->tokens[k].n);
    }
    must(publish(writer));
}

/* Three sound checkpoints: a seed, and one each whose manifest and whose shard are replaced; and a snapshot file. */
static void make_states(void *unused)
{
    (void)unused;
    static const struct config config = {
        .layers = 1, .heads = 2, .channels = 8, .seq_len = 4, .vocab = 9, .tied = true};
    static const char *const folders[] = {FOLDER "state", FOLDER "manifest", FOLDER "shard"};
    struct mesh mesh = cut_mesh(&config, (struct mesh){.dp = 2, .tp = 2, .zero = 1});
    for (size_t i = 0; i < COUNT(folders); i++) {
        remove_folder(folders[i]);
        write_random_state(folders[i], &config, &mesh, 3, 1, 7);
    }
    make_foreign();
    remove(FOLDER "seed.snap");
    write_snapshot(FOLDER "seed.snap", &config, &mesh, HALF_PAYLOADS, 2);
}

/* Gives the manifest a hash that fits, or the first rule would refuse nearly all. */
static enum exit_code rehashed(int n, char **words)
{
    size_t size;
    const char *path = FOLDER "manifest/" MANIFEST;
    char *text = read_whole(path, &size), *line = strchr(text, '\n');
    size_t head = line ? (size_t)(line - text) + 1 : 0;
    uint64_t hash = hash_bytes(text + head, size - head, 0);
    FILE *file = fopen(path, "w");
    if (!file)
        fail(EXIT_IO, "cannot open %s", path);
    fprintf(file, "{\"hash\":\"%016" PRIx64 "\",\n", hash);
    fwrite(text + head, 1, size - head, file);
    bool failed = ferror(file);
    if (fclose(file) || failed)
        fail(EXIT_IO, "cannot write %s", path);
    free(text);
    return run_ckpt(n, words);
}

/* Puts into the last eight of n bytes the hash of those before. */
static void put_hash(char *bytes, size_t n)
{
    uint64_t hash = hash_bytes(bytes, n - 8, 0);
    memcpy(bytes + n - 8, &hash, 8);
}

/* The same for a snapshot file, from the manifest to its first page, as far as that says where it is. */
static enum exit_code rehashed_snapshot(int n, char **words)
{
    size_t size;
    const char *path = words[n - 1];
    char *bytes = read_whole(path, &size), *line;
    uint64_t length, hash, at = MANIFEST_AT;
    if (size > at) {
        memcpy(&length, bytes + 48, 8);
        line = NULL;
        if (length <= size - at && length > 28)
            line = memchr(bytes + at, '\n', length);
        if (line) {
            size_t head = (size_t)(line - bytes) + 1;
            char text[20];
            snprintf(text, sizeof text, "%016llx", (unsigned long long)hash_bytes(bytes + head, at + length - head, 0));
            if (head > at + 18)
                memcpy(bytes + at + 9, text, 16);
            hash = hash_bytes(bytes + at, length, 0);
            memcpy(bytes + 56, &hash, 8);
            memcpy(bytes + SNAPFILE_PAGE + 56, &hash, 8);
        }
        memcpy(bytes + 16, &(uint64_t){size}, 8);
        put_hash(bytes, SNAPFILE_PAGE);
        put_hash(bytes + SNAPFILE_PAGE, SNAPFILE_PAGE);
    }
    FILE *file = fopen(path, "w");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file))
        fail(EXIT_IO, "cannot write %s", path);
    free(bytes);
    return run_ckpt(n, words);
}

/* ---- formats ----------------------------------------------------------------------------------------------------- */

#define PLAN "--simulate --model tiny --val-share 0 --hardware " SERVER " "
static const struct format {
    const char *seed, *file; /* a sound file; the name of its mutated copy */
    enum exit_code (*run)(int argc, char **argv);
    const char *words; /* "@" stands for the file */
    uint32_t every;    /* it is tried in one round of so many: some take long */
} formats[] = {
    {.seed = DATA "gpt2-tiny.safetensors", .file = "tensors", .run = read_tensors, .words = "@", .every = 1},
    {.seed = DATA "chars.safetensors", .file = "model", .run = read_tensors, .words = "@", .every = 1},
    {.seed = DATA "chars.safetensors",
     .file = "model",
     .run = run_plan,
     .words = "--simulate --hardware " SERVER " --data README.md --init @",
     .every = 1},
    {.seed = FOLDER "hf/config.json",
     .file = "described/config.json",
     .run = run_plan,
     .words = "--simulate --hardware " SERVER " --init " FOLDER "described",
     .every = 1},
    {.seed = FOLDER "seed.index.json",
     .file = "sharded/model.safetensors.index.json",
     .run = run_plan,
     .words = "--simulate --hardware " SERVER " --init " FOLDER "sharded",
     .every = 1},
    {.seed = DATA "llmc-tiny.bin",
     .file = "checkpoint.bin",
     .run = run_plan,
     .words = "--simulate --hardware " SERVER " --init @",
     .every = 1},
    {.seed = DATA "llmc-tokens.bin", .file = "shard.bin", .run = run_plan, .words = PLAN "--data @", .every = 1},
    {.seed = FOLDER "seed.tokenizer.json", .file = "tokenizer.json", .run = read_tokenizer, .words = "@", .every = 1},
    {.seed = FOLDER "seed.vocab.json", .file = "vocab.json", .run = read_tokenizer, .words = "@", .every = 1},
    {.seed = FOLDER "seed.merges.txt", .file = "merges/merges.txt", .run = read_tokenizer, .words = "@", .every = 1},
    {.seed = FOLDER "seed.tokenizer.bin", .file = "tokenizer.bin", .run = read_tokenizer, .words = "@", .every = 1},
    {.seed = DATA "text.txt", .file = "text", .run = run_plan, .words = PLAN "--tokens chars --data @", .every = 1},
    {.seed = FOLDER "seed.trace", .file = "trace", .run = run_trace, .words = "summary @", .every = 1},
    {.seed = FOLDER "seed.trace", .file = "trace", .run = run_trace, .words = "summary --json @", .every = 1},
    {.seed = FOLDER "seed.trace",
     .file = "trace",
     .run = run_trace,
     .words = "export @ --chrome " FOLDER "chrome.json",
     .every = 1},
    {.seed = FOLDER "seed.trace",
     .file = "trace",
     .run = run_trace,
     .words = "diff " FOLDER "seed.trace @",
     .every = 1},
    {.seed = FOLDER "seed.trace", .file = "trace", .run = follow, .words = "@", .every = 1},
    {.seed = DATA "log.jsonl", .file = "log", .run = run_plot, .words = "@", .every = 1},
    {.seed = DATA "log.jsonl", .file = "log", .run = run_plot, .words = "@ --png " FOLDER "plot.png", .every = 1},
    {.seed = DATA "profile.txt", .file = "profile", .run = predict, .words = "@", .every = 1},
    {.seed = SERVER,
     .file = "hardware",
     .run = run_plan,
     .words = "--simulate --model tiny --mesh dp=2 --hardware @",
     .every = 1},
    {.seed = "data/steps/overlap-pays.txt",
     .file = "list",
     .run = run_plan,
     .words = "--simulate --verify --print --list @",
     .every = 1},
    {.seed = DATA "list.txt", .file = "list", .run = run_plan, .words = "--simulate --list @", .every = 1},
    {.seed = DATA "list.txt", .file = "list", .run = run_plan, .words = "--print-list --list @", .every = 1},
    {.seed = DATA "config.txt", .file = "config", .run = run_plan, .words = PLAN "--config @", .every = 1},
    {.seed = FOLDER "state/manifest.json",
     .file = "manifest/manifest.json",
     .run = run_ckpt,
     .words = "verify " FOLDER "manifest",
     .every = 4},
    {.seed = FOLDER "state/manifest.json",
     .file = "manifest/manifest.json",
     .run = rehashed,
     .words = "verify " FOLDER "manifest",
     .every = 1},
    {.seed = FOLDER "state/manifest.json",
     .file = "manifest/manifest.json",
     .run = rehashed,
     .words = "ls --json " FOLDER "manifest",
     .every = 1},
    {.seed = FOLDER "state/manifest.json",
     .file = "manifest/manifest.json",
     .run = rehashed,
     .words = "reshard " FOLDER "manifest x --plan --mesh tp=2",
     .every = 1},
    {.seed = FOLDER "state/rank-0.safetensors",
     .file = "shard/rank-0.safetensors",
     .run = run_ckpt,
     .words = "verify " FOLDER "shard",
     .every = 1},
    {.seed = FOLDER "state/rank-0.safetensors",
     .file = "shard/rank-0.safetensors",
     .run = run_ckpt,
     .words = "diff " FOLDER "shard " FOLDER "state",
     .every = 1},
    {.seed = FOLDER "seed.snap", .file = "snapshot", .run = run_ckpt, .words = "verify @", .every = 4},
    {.seed = FOLDER "seed.snap", .file = "snapshot", .run = rehashed_snapshot, .words = "verify @", .every = 1},
    {.seed = FOLDER "seed.snap", .file = "snapshot", .run = rehashed_snapshot, .words = "ls --json @", .every = 1},
    {.seed = DATA "gpt2-tiny.safetensors", .file = "reference", .run = run_check, .words = "--serial @", .every = 50},
};

/* ---- mutating ---------------------------------------------------------------------------------------------------- */

struct file {
    const struct format *format;
    char *path;
    unsigned char *bytes;
    size_t n;
    uint64_t seed, drawn; /* the seed of its random numbers, and how many of them have been drawn */
    uint32_t number;
};

static size_t draw(struct file *file, size_t below)
{
    struct random4 random4 = random_words(file->seed, STREAM_TEST, file->number, file->drawn);
    file->drawn++;
    return below ? ((uint64_t)random4.word[0] << 32 | random4.word[1]) % below : 0;
}

/* Half of the places are near the start, where headers are. */
static size_t place_in(struct file *file) { return draw(file, draw(file, 2) ? MIN(file->n, START) : file->n); }

static void replace_part(struct file *file, size_t at, size_t old, const void *new, size_t n)
{
    unsigned char *bytes = allocate(file->n - old + n, 1);
    memcpy(bytes, file->bytes, at);
    if (n)
        memcpy(bytes + at, new, n);
    memcpy(bytes + at + n, file->bytes + at + old, file->n - at - old);
    free(file->bytes);
    file->bytes = bytes;
    file->n += n - old;
}

/* An aligned one becomes 0, or a power of two, or one off it. */
static void change_integer(struct file *file)
{
    size_t width = (size_t)1 << draw(file, 4), at = place_in(file) / width * width;
    uint64_t power = (uint64_t)1 << draw(file, 64);
    uint64_t value = power + draw(file, 3) - 1;
    if (at + width <= file->n)
        memcpy(file->bytes + at, &value, width);
}

static bool is_of_number(unsigned char c) { return isdigit(c) || c == '.' || c == 'e'; }

/* The next number that is written in digits becomes another; where bytes are counted, one of the same length. */
static void change_number(struct file *file)
{
    char *odd[MOST_WORDS + 1];
    int n_odd = split("0 -1 1e-320 1e300 nan inf 2147483648 4294967297 1000000 18446744073709551617 1.5 0x10", odd);
    size_t at = place_in(file);
    while (at < file->n && !isdigit(file->bytes[at]))
        at++;
    size_t end = at;
    while (end < file->n && is_of_number(file->bytes[end]))
        end++;
    const char *number = odd[draw(file, (size_t)n_odd)];
    if (draw(file, 2))
        replace_part(file, at, end - at, number, strlen(number));
    else
        for (size_t i = at; i < end; i++)
            file->bytes[i] = (unsigned char)('0' + draw(file, 10));
    free(odd[0]);
}

static void mutate(struct file *file)
{
    for (size_t times = 1 + draw(file, 4); times && file->n; times--) {
        size_t at = place_in(file);
        size_t n = 1 + draw(file, MIN(file->n - at, 64));
        size_t from = draw(file, file->n - n + 1);
        size_t what = draw(file, 9);
        unsigned char byte = (unsigned char)draw(file, 256);
        unsigned char part[64];
        memcpy(part, file->bytes + from, n);
        if (what == 0)
            file->bytes[at] ^= (unsigned char)(1 << draw(file, 8));
        else if (what == 1)
            replace_part(file, at, n, &byte, draw(file, 2));
        else if (what == 2)
            replace_part(file, at, file->n - at, NULL, 0); /* cut */
        else if (what == 3)
            replace_part(file, at, n, part, n); /* a part stands in another's place, */
        else if (what == 4)
            replace_part(file, at, 0, part, n); /* it is put in before it */
        else if (what < 7)
            change_number(file);
        else
            change_integer(file);
    }
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static void run_reader(void *argument)
{
    const struct file *file = argument;
    char *words[MOST_WORDS + 1];
    int n = split(file->format->words, words);
    for (int i = 0; i < n; i++)
        if (strcmp(words[i], "@") == 0)
            words[i] = file->path;
    dup2(2, 1);
    alarm(HANG_SECONDS);
    enum exit_code code = file->format->run(n, words);
    fflush(stdout);
    _exit((int)code);
}

/* What is wrong with how a child ended, or NULL.  A text that fills its buffer may be cut. */
static const char *finding(struct outcome *outcome)
{
    bool whole = strlen(outcome->text) < sizeof outcome->text - 1, sentence = strncmp(outcome->text, "yard: ", 6) == 0;
    sentence |= strstr(outcome->text, "\nyard: ") != NULL;
    sentence |= strstr(outcome->text, "\nFAILED: ") != NULL; /* yard check refuses so */
    if (outcome->signal)
        return outcome->signal == SIGALRM ? "it hangs" : strsignal(outcome->signal);
    bool ended = outcome->code == EXIT_OK || outcome->code == EXIT_FAILED;
    bool refused = outcome->code == EXIT_USAGE || outcome->code == EXIT_IO;
    if (!ended && !refused)
        return "an exit code outside the contract";
    if (outcome->code != EXIT_OK && !sentence && whole)
        return "an error without a sentence";
    char *shown = make_printable(copy_string(outcome->text), MANY_LINES);
    bool same = strcmp(shown, outcome->text) == 0 || !whole;
    free(shown);
    return same ? NULL : "raw control characters";
}

/* true: something was found */
static bool try_file(struct file *file, int codes[5])
{
    const char *slash = strrchr(file->format->file, '/');
    char *kept = lasting(FOLDER "finding-%u-%s", file->number, slash ? slash + 1 : file->format->file);
    file->path = format_string(FOLDER "%s", file->format->file);
    file->bytes = (unsigned char *)read_whole(file->format->seed, &file->n);
    mutate(file);
    FILE *out = fopen(file->path, "wb");
    CHECK(out && fwrite(file->bytes, 1, file->n, out) == file->n && fclose(out) == 0, "cannot write %s", file->path);
    struct outcome outcome = run_child(run_reader, file);
    const char *wrong = finding(&outcome);
    if (wrong) {
        rename(file->path, kept);
        printf("FOUND  %s: %s (code %d), %s\n%.2000s\n", kept, wrong, outcome.code, file->format->words, outcome.text);
    } else
        codes[outcome.code]++;
    free(file->path);
    free(file->bytes);
    return wrong;
}

int main(int argc, char **argv)
{
    int64_t seconds, files, seed;
    int tried[COUNT(formats)] = {0}, codes[5] = {0}, found = 0;
    uint32_t number = 0, rounds = 0;
    bool good = argc == 4 && parse_int(argv[1], &seconds) && parse_int(argv[2], &files) && parse_int(argv[3], &seed);
    if (!good)
        fail(EXIT_USAGE, "fuzz SECONDS FILES SEED");
    make_folder(FOLDER);
    if (run_child(make_seed_trace, NULL).code != 0)
        fail(EXIT_FAILED, "the trace could not be made");
    if (run_child(make_tokenizers, NULL).code != 0)
        fail(EXIT_FAILED, "the tokenizers could not be made");
    if (run_child(make_states, NULL).code != 0)
        fail(EXIT_FAILED, "the checkpoints could not be made");
    for (time_t end = time(NULL) + seconds; number < files && time(NULL) < end; rounds++)
        for (size_t k = 0; k < COUNT(formats) && number < files; k++)
            if (rounds % formats[k].every == 0) {
                struct file file = {.format = &formats[k], .seed = (uint64_t)seed, .number = number};
                number++;
                found += try_file(&file, codes);
                tried[k]++;
            }
    for (size_t k = 0; k < COUNT(formats); k++)
        printf("%6d of %-24s through %s\n", tried[k], formats[k].file, formats[k].words);
    printf("%u files, seed %lld: %d still valid, %d damaged (1), %d refused (2), %d unreadable (4); %d findings\n",
           number, (long long)seed, codes[0], codes[1], codes[2], codes[4], found);
    return found > 0;
}
