/* fuzzers.c - libFuzzer's targets: readers of files that may be anything, millions of inputs in one process.
 *
 *     make fuzzers SECONDS=600             all of them; what they find lies in build/fuzzers
 *     build/fuzzers/manifest FILE          one input again
 *
 * The program's name says which target it is.  A reader that refuses ends in fail(), which attempt() turns into a
 * problem; what it had allocated by then is freed here, so that memory lasts.  A reader that accepts must free its own:
 * libFuzzer looks for leaks.  Corpora begin with what the project's own writers write.
 */
#include "../src/state/snap.h"
#include "support_state.h"

#include <fcntl.h>
#include <sanitizer/allocator_interface.h>
#include <sys/mman.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* ---- memory ------------------------------------------------------------------------------------------------------ */

enum { SLOTS = 1 << 20 };
static struct {
    const volatile void *block[SLOTS]; /* allocated since the attempt began; a table of hashes */
    bool freed[SLOTS];
    uint32_t used[SLOTS]; /* its slots in order */
    size_t n;
    bool on;
} live;

static uint32_t slot_of(const volatile void *block)
{
    uint32_t i = (uint32_t)((uintptr_t)block * 0x9E3779B97F4A7C15u >> 44);
    while (live.block[i] && live.block[i] != block)
        i = (i + 1) % SLOTS;
    return i;
}

static void note_malloc(const volatile void *block, size_t n)
{
    (void)n;
    if (!live.on || live.n == SLOTS / 2)
        return;
    uint32_t i = slot_of(block);
    if (!live.block[i])
        live.used[live.n++] = i;
    live.block[i] = block;
    live.freed[i] = false;
}

static void note_free(const volatile void *block)
{
    if (live.on)
        live.freed[slot_of(block)] = true;
}

static void try_reader(void (*read)(void *), void *argument)
{
    live.n = 0, live.on = true;
    struct problem *p = attempt(read, argument);
    live.on = false;
    CHECK(!p || p->code == EXIT_FAILED || p->code == EXIT_USAGE || p->code == EXIT_IO, "exit code %d", p->code);
    for (size_t k = 0; k < live.n; k++) {
        uint32_t i = live.used[k];
        if (p && !live.freed[i] && live.block[i] != p)
            free((void *)live.block[i]);
        live.block[i] = NULL;
    }
    free(p);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static char *folder; /* on a file system in memory, where there is one */
static char input[32];
static int memory; /* the file of that name, which no file system has */

static void put_input(const void *bytes, size_t n)
{
    CHECK(ftruncate(memory, 0) == 0 && pwrite(memory, bytes, n, 0) == (ssize_t)n, "cannot write %s", input);
}

static void put_file(const char *path, const char *head, const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0 && write(fd, head, strlen(head)) == (ssize_t)strlen(head) && write(fd, bytes, n) == (ssize_t)n,
          "cannot write %s", path);
    close(fd);
}

static void add_seed(const char *corpus, const char *from, size_t skipped)
{
    size_t n;
    static int number;
    char *bytes = read_whole(from, &n), *path = format_string("%s/seed-%d", corpus, number++);
    put_file(path, "", bytes + skipped, n - skipped);
    free(bytes), free(path);
}

static const struct config model = {.layers = 1, .heads = 2, .channels = 4, .seq_len = 2, .vocab = 5, .tied = true};

/* A checkpoint as one of four meshes cuts it. */
static char *state_of(int i)
{
    static const int meshes[][4] = {{1, 1, 1, 0}, {2, 1, 1, 1}, {1, 1, 2, 0}, {2, 1, 2, 1}};
    char *path = format_string("%s/state-%d", folder, i);
    struct mesh m = mesh_of(&model, meshes[i][0], meshes[i][1], meshes[i][2], meshes[i][3]);
    write_random_state(path, &model, &m, 3, 1, 7);
    free_mesh(&m);
    return path;
}

static void add_states(const char *corpus, const char *file, size_t skipped)
{
    for (int i = 0; i < 4; i++) {
        char *state = state_of(i), *path = format_string("%s/%s", state, file);
        add_seed(corpus, path, skipped);
        free(state), free(path);
    }
}

/* ---- safetensors ------------------------------------------------------------------------------------------------- */

static void seed_safetensors(const char *corpus)
{
    add_states(corpus, "rank-0.safetensors", 0);
    add_seed(corpus, "tests/data/chars.safetensors", 0);
}

static void read_safetensors(void *path) { read_all_tensors(path); }

static void fuzz_safetensors(const uint8_t *bytes, size_t n)
{
    put_input(bytes, n);
    try_reader(read_safetensors, input);
}

/* ---- manifests, with a hash that fits ---------------------------------------------------------------------------- */

enum { HASH_LINE = 28, MOST_ELEMENTS = 1 << 16 };

static void seed_manifest(const char *corpus) { add_states(corpus, MANIFEST, HASH_LINE); }

struct block {
    char *bytes;
    size_t n;
};

/* With the line of its hash in front. */
static struct block manifest_of(const void *bytes, size_t n)
{
    struct block t = {malloc(HASH_LINE + n + 1), HASH_LINE + n};
    snprintf(t.bytes, HASH_LINE + 1, "{\"hash\":\"%016llx\",\n", (unsigned long long)hash_bytes(bytes, n, 0));
    memcpy(t.bytes + HASH_LINE, bytes, n);
    t.bytes[t.n] = '\0';
    return t;
}

static void read_description(void *text)
{
    const struct block *input_text = text;
    struct checkpoint *c = parse_manifest("input", input_text->bytes, input_text->n, NULL);
    for (size_t i = 0; i < c->pieces->n; i++) {
        const struct kept_tensor *t = &c->pieces->tensor[i];
        if (tensor_elements(t) > MOST_ELEMENTS) /* no file has them: read_checkpoint() would say so */
            continue;
        struct copies p = plan_copies(t, t, "input");
        must(prove_copies(&p));
        free_copies(&p);
    }
    json_decref(tensors_json(c));
    free_checkpoint(c);
}

static void fuzz_manifest(const uint8_t *bytes, size_t n)
{
    struct block t = manifest_of(bytes, n);
    try_reader(read_description, &t);
    free(t.bytes);
}

/* ---- a rank's file, whose size the manifest has ------------------------------------------------------------------ */

static struct checkpoint *shards;

static void seed_shard(const char *corpus)
{
    char *state = state_of(3);
    add_states(corpus, "rank-0.safetensors", 0);
    shards = open_checkpoint(state);
    free(state);
}

static void read_shards(void *path)
{
    struct checkpoint *c = open_checkpoint(path);
    for (size_t i = 0; i < c->pieces->n; i++)
        must(verify_tensor(c, i));
    free_checkpoint(c);
}

static void fuzz_shard(const uint8_t *bytes, size_t n)
{
    char *rank = rank_file(shards, 0), *manifest = format_string("%s/" MANIFEST, shards->path);
    if (shards->bytes[0] != n) {
        shards->bytes[0] = n;
        char *text = manifest_text(shards);
        put_file(manifest, "", text, strlen(text));
        free(text);
    }
    put_file(rank, "", bytes, n);
    free(rank), free(manifest);
    try_reader(read_shards, shards->path);
}

/* ---- snapshot files: superblock, commit pages and manifest, with hashes that fit, before the slots of a seed -------
 */

enum { STORED_SEEDS = 4, SUPER = 64, COMMIT = 512, FRONT = 1 + SUPER + 2 * COMMIT, MOST_PIECES = 1000 };
static struct block slots[STORED_SEEDS];

static void seed_snapshot(const char *corpus)
{
    for (int i = 0; i < STORED_SEEDS; i++) {
        struct snapshot s;
        char *path = format_string("%s/stored-%d", folder, i), *seed = format_string("%s/stored-%d", corpus, i);
        struct mesh m = mesh_of(&model, 1 + i % 2, 1, 1 + i / 2, 3 * (i % 2));
        write_snapshot(path, &model, &m, i % 2, 2);
        slots[i].bytes = read_whole(path, &slots[i].n);
        CHECK(!parse_superblock(&s, slots[i].bytes, slots[i].n), "%s cannot be read", path);
        size_t n = (size_t)s.manifest_bytes - HASH_LINE;
        char *bytes = allocate(FRONT + n, 1);
        bytes[0] = (char)i;
        memcpy(bytes + 1, slots[i].bytes, SUPER);
        for (int k = 0; k < 2; k++)
            memcpy(bytes + 1 + SUPER + k * COMMIT, slots[i].bytes + commit_at(&s, k), COMMIT);
        memcpy(bytes + FRONT, slots[i].bytes + s.manifest_at + HASH_LINE, n);
        put_file(seed, "", bytes, FRONT + n);
        slots[i].n -= s.slots_at;
        memmove(slots[i].bytes, slots[i].bytes + s.slots_at, slots[i].n);
        free(bytes), free(path), free(seed);
        free_mesh(&m);
    }
}

static void read_stored(void *path)
{
    struct checkpoint *c = open_snapshot(path);
    for (size_t i = 0; i < c->pieces->n; i++)
        must(verify_tensor(c, i));
    free_checkpoint(c);
}

static void put_hashed(char *at, const void *bytes, size_t n, size_t page)
{
    memcpy(at, bytes, n);
    uint64_t hash = hash_bytes(at, page - 8, 0);
    memcpy(at + page - 8, &hash, 8);
}

static void fuzz_snapshot(const uint8_t *bytes, size_t n)
{
    uint32_t pieces;
    if (n < FRONT)
        return;
    memcpy(&pieces, bytes + 1 + 44, 4);
    const struct block *behind = &slots[bytes[0] % STORED_SEEDS];
    struct block manifest = manifest_of(bytes + FRONT, n - FRONT);
    size_t page = round_up(64 + 8 * (size_t)MIN(pieces, MOST_PIECES) + 8, SNAP_PAGE), at = 2 * SNAP_PAGE + 2 * page,
           slots_at = round_up(at + manifest.n, SNAP_PAGE);
    uint64_t all = slots_at + behind->n, hash = hash_bytes(manifest.bytes, manifest.n, 0), length = manifest.n;
    char super[SUPER], *file = allocate(all, 1);
    memcpy(super, bytes + 1, SUPER);
    memcpy(super + 16, &all, 8), memcpy(super + 48, &length, 8), memcpy(super + 56, &hash, 8);
    for (size_t k = 0; k < 2; k++) {
        put_hashed(file + k * SNAP_PAGE, super, SUPER, SNAP_PAGE);
        put_hashed(file + 2 * SNAP_PAGE + k * page, bytes + 1 + SUPER + k * COMMIT, COMMIT, page);
    }
    memcpy(file + at, manifest.bytes, manifest.n);
    memcpy(file + slots_at, behind->bytes, behind->n);
    put_input(file, all);
    free(file), free(manifest.bytes);
    try_reader(read_stored, input);
}

/* ---- llm.c ------------------------------------------------------------------------------------------------------- */

static void seed_llmc(const char *corpus)
{
    char *state = state_of(0);
    int32_t shard[LLMC_HEADER_BYTES / 4 + 4] = {LLMC_TOKENS_MAGIC, 1, 8};
    struct checkpoint *c = open_checkpoint(state);
    char *path = format_string("%s/llmc", folder);
    export_llmc(c, path);
    add_seed(corpus, path, 0);
    put_file(path, "", shard, sizeof shard);
    add_seed(corpus, path, 0);
    free_checkpoint(c), free(state), free(path);
}

static void read_llmc(void *path)
{
    size_t n;
    struct llmc_model *m = open_llmc_model(path);
    for (int i = 0; llmc_parameter(i); i++)
        free(read_llmc_tensor(m, llmc_parameter(i), 0, &n));
    close_llmc_model(m);
}

static void read_tokens(void *path)
{
    size_t n;
    free(read_token_shard(path, &n));
}

static void read_plain_tokens(void *path)
{
    size_t n;
    free(read_headerless_tokens(path, &n));
}

static void fuzz_llmc(const uint8_t *bytes, size_t n)
{
    put_input(bytes, n);
    try_reader(read_llmc, input);
    try_reader(read_tokens, input);
    try_reader(read_plain_tokens, input);
}

/* ---- profiles ---------------------------------------------------------------------------------------------------- */

static void seed_profile(const char *corpus)
{
    add_seed(corpus, "tests/data/profile.txt", 0);
    add_seed(corpus, "data/hardware/server.txt", 0);
}

static void read_profile(void *path) { free_costs(read_costs(path)); }

static void fuzz_profile(const uint8_t *bytes, size_t n)
{
    put_input(bytes, n);
    try_reader(read_profile, input);
}

/* ---- libFuzzer --------------------------------------------------------------------------------------------------- */

static const struct target {
    const char *name;
    void (*seed)(const char *corpus);
    void (*fuzz)(const uint8_t *bytes, size_t n);
} targets[] = {
    {"safetensors", seed_safetensors, fuzz_safetensors},
    {"manifest", seed_manifest, fuzz_manifest},
    {"shard", seed_shard, fuzz_shard},
    {"snapshot", seed_snapshot, fuzz_snapshot},
    {"llmc", seed_llmc, fuzz_llmc},
    {"profile", seed_profile, fuzz_profile},
};
static const struct target *target;

static void remove_all(void)
{
    char *command = format_string("rm -rf '%s'", folder);
    if (system(command) != 0) /* NOLINT: a test's own words */
        perror(command);
    free(command);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    const char *slash = strrchr((*argv)[0], '/'), *name = slash ? slash + 1 : (*argv)[0];
    for (size_t i = 0; i < COUNT(targets); i++)
        if (strcmp(targets[i].name, name) == 0)
            target = &targets[i];
    CHECK(target, "no target is called %s", name);
    folder = copy_string(access("/dev/shm", W_OK) == 0 ? "/dev/shm/yard-XXXXXX" : "/tmp/yard-XXXXXX");
    CHECK(mkdtemp(folder), "cannot make %s", folder);
    atexit(remove_all);
    memory = memfd_create("input", 0);
    snprintf(input, sizeof input, "/proc/self/fd/%d", memory);
    char *corpus = format_string("build/fuzzers/corpus/%s", name);
    make_folder(corpus);
    target->seed(corpus);
    free(corpus);
    __sanitizer_install_malloc_and_free_hooks(note_malloc, note_free);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    target->fuzz(bytes, n);
    return 0;
}
