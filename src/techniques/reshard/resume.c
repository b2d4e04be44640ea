/* resume.c - records a run in its checkpoints, and lets a run go on from a checkpoint, on other devices too.
 *
 * Options on the command line win over recorded ones.  Without --mesh the recorded strategy goes on: unchanged on as
 * many devices as before, and with another dp on another number of devices.  On a single device training goes on
 * without a mesh; checkpoints still record the old strategy, so that it returns when there are more devices again.
 */
#include "resume.h"
#include "find_checkpoint.h"
#include "manifest.h"
#include "save_and_load.h"
#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#ifndef O_DIRECT
#define O_DIRECT O_DIRECTORY /* then measure_disk() opens no file, and measures nothing */
#endif

struct run_record { /* what checkpoints say of a training */
    json_t *options;
    uint64_t run;
    int64_t session;
};

static struct run_record *record_of(const struct trainer *t) { return *own_of(t, &module_reshard); }

/* ---- the run that this one goes on from -------------------------------------------------------------------------- */

static const struct resumed_run *find_resumed_run(void)
{
    static struct resumed_run found;
    const char *path = this_life->from ? this_life->from : reshard_options.resume;
    if (!path)
        return NULL;
    struct checkpoint *c = open_checkpoint(path);
    c->buffer->open = now_ns() - this_life->begun - c->buffer->read - c->buffer->verify;
    found = (struct resumed_run){.given_path = path,
                                 .kept_by = c->stored ? c->stored->store->option : "--save",
                                 .path = c->path,
                                 .step = c->step,
                                 .samples = c->samples,
                                 .options = c->options,
                                 .source = {copy_string(path), c->pieces->config, c, c->tokenizer},
                                 .elsewhere = c->stored != NULL,
                                 .options_in = format_string("%s%s", c->path, c->stored ? "" : "/" MANIFEST)};
    return &found;
}

static bool open_run(const char *path, struct source *s)
{
    char *newest = find_checkpoint(path), *model = model_in_folder(path);
    if (!newest && !model && is_folder(path))
        refuse_foreign_folder(path);
    const bool ours = newest || find_store(path) || (is_folder(path) && !model);
    if (ours) {
        struct checkpoint *c = open_checkpoint(newest ? newest : path);
        *s = (struct source){copy_string(path), c->pieces->config, c, c->tokenizer};
    }
    free(newest);
    free(model);
    return ours;
}

static void close_run(struct source *s) { free_checkpoint(s->checkpoint); }

static void load_run(struct model *m, const struct source *s, enum loaded_state wanted)
{
    load_checkpoint(m, s->checkpoint, wanted);
}

/* ---- the mesh --------------------------------------------------------------------------------------------------- */

/* The number of devices nearest to `devices` that is a multiple of `each` and shares the batch out evenly. */
static int nearest_devices(int batch, int each, int devices)
{
    int nearest = 0;
    for (int dp = 1; dp <= batch && dp * each <= MOST_RANKS; dp++)
        if (batch % dp == 0 && (!nearest || abs(dp * each - devices) < abs(nearest - devices)))
            nearest = dp * each;
    return nearest;
}

static struct mesh resumed_mesh(const struct settings *s, int devices)
{
    struct mesh m = strategy_of(s->source.checkpoint);
    int each = m.pp * m.tp; /* devices of a replica */
    if (devices == 1 && each > 1)
        return (struct mesh){.dp = 1, .pp = 1, .tp = 1, .chunks = 1};
    if (devices != n_ranks(&m) && (devices % each || s->batch % (devices / each))) {
        int nearest = nearest_devices(s->batch, each, devices);
        char text[64];
        fail(EXIT_USAGE,
             "%s was trained with %s and --batch %d, which cannot go on with %d devices: the nearest "
             "that can is --mesh dp=%d,pp=%d,tp=%d with %d; or choose another --mesh",
             s->resumed->given_path, format_mesh(text, &m), s->batch, devices, nearest / each, m.pp, m.tp, nearest);
    }
    m.dp = devices / each;
    return m;
}

/* ---- what is recorded ------------------------------------------------------------------------------------------- */

const json_t *recorded_options(const struct trainer *t) { return record_of(t)->options; }

/* This is called before defaults are filled in, so that only options that the user gave are recorded. */
static void record_training(struct trainer *t, struct step *list)
{
    const struct settings *s = t->settings;
    if (list != t->train || s->trial)
        return;
    struct run_record *r = allocate(1, sizeof *r);
    bool without_mesh = s->resumed && !s->mesh && n_ranks(&t->mesh) == 1; /* then the old strategy is recorded */
    struct mesh strategy = without_mesh ? strategy_of(s->source.checkpoint) : t->mesh;
    char text[64];
    r->options = options_json(RECORDED_OPTIONS);
    json_object_set_new(r->options, "mesh", json_string(format_mesh(text, &strategy)));
    *own_of(t, &module_reshard) = r;
}

/* A random number from the system, so that no two runs have the same. */
static uint64_t new_id(void)
{
    uint64_t id;
    if (getentropy(&id, sizeof id) != 0)
        fail(EXIT_IO, "the system has no random numbers: %s", strerror(errno));
    return id;
}

/* Gives the run its id and its session.  This is called when --save's folder is locked for this run. */
static void number_run(struct trainer *t)
{
    const struct settings *s = t->settings;
    const struct checkpoint *from = s->resumed ? s->source.checkpoint : NULL;
    struct run_record *r = record_of(t);
    if (!r)
        return;
    r->run = from ? from->run : 0;
    if (!r->run)
        r->run = new_id();
    int64_t last = s->save ? last_session(s->save) : 0;
    if (from)
        last = MAX(last, from->session);
    r->session = last + 1;
}

static void free_run_state(struct trainer *t)
{
    struct run_record *r = record_of(t);
    if (r)
        json_decref(r->options);
    free(r);
}

/* XXH64 of the training tokens; 0: there are none.  They are many, so the hash is computed once in a run. */
static uint64_t hash_data(const struct trainer *t)
{
    if (!t->data)
        return 0;
    struct split *train = &t->data->train;
    if (!train->hash)
        train->hash = hash_bytes(train->tokens, train->n * sizeof *train->tokens, 0);
    return train->hash;
}

/* Warns where the run goes on, but not as it would have gone on without a break. */
static void compare_training(struct trainer *t)
{
    const struct checkpoint *c = t->settings->resumed ? t->settings->source.checkpoint : NULL;
    if (!c)
        return;
    unsigned vector = vector_width(t->machine);
    if (c->data && c->data != hash_data(t))
        warn("the data are not those that %s was trained on: their tokens have another hash", c->path);
    if (c->vector && c->vector != vector)
        warn("%s was trained with vectors of %u floats, now they have %u: the last bits will differ", c->path,
             c->vector, vector);
}

struct checkpoint *describe_training(const struct trainer *t, uint32_t step)
{
    struct checkpoint *c = allocate(1, sizeof *c);
    c->step = step;
    c->run = record_of(t)->run;
    c->session = record_of(t)->session;
    c->samples = ((int64_t)step + t->ahead) * t->batch;
    c->data = hash_data(t);
    c->vector = vector_width(t->machine);
    c->tokenizer = tokenizer_to_text(t->data ? &t->data->tokenizer : NULL);
    c->options = json_incref(record_of(t)->options);
    return c;
}

/* ---- checkpoints that are in --save's folder already ------------------------------------------------------------- */

static void compare_with_saved(const char *folder, const struct config *ours)
{
    char *saved = find_checkpoint(folder);
    if (saved) {
        struct checkpoint *old = open_checkpoint(saved);
        if (!same_sizes(&old->pieces->config, ours))
            refuse_other_sizes(saved, &old->pieces->config);
        free_checkpoint(old);
    }
    free(saved);
}

/* ---- saving ----------------------------------------------------------------------------------------------------- */

/* The `first` checkpoint of a run that began from nothing replaces all checkpoints of earlier runs.  With --keep each
 * new checkpoint replaces the oldest. */
static void save_training(struct trainer *t, uint32_t step, bool first)
{
    const struct settings *s = t->settings;
    bool begins = first && !s->resumed; /* a resumed run keeps the checkpoints that it was resumed from */
    struct checkpoint *c = describe_training(t, step);
    make_folder(s->save);
    save_checkpoint(t->model, s->save, c);
    if (begins || reshard_options.keep)
        prune_checkpoints(s->save, begins ? record_of(t)->session : 0, reshard_options.keep);
    free_checkpoint(c);
}

/* ---- what the user sees ------------------------------------------------------------------------------------------ */

/* Bytes per second of reading the beginning of a file past the page cache; 0 where the file system cannot do that. */
static double measure_disk(const char *path)
{
    enum { MOST = 32 << 20, ALIGNED = 4096 };
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
    char *memory = allocate(MOST + ALIGNED, 1), *into = memory + ALIGNED - (uintptr_t)memory % ALIGNED;
    memset(into, 1, MOST); /* then the pages of `into` exist, and their first use is not timed */
    uint64_t begun = now_ns();
    ssize_t n = pread(fd, into, MOST, 0);
    double seconds = 1e-9 * (double)(now_ns() - begun);
    free(memory);
    close(fd);
    return (double)MAX(n, 0) / seconds;
}

/* Prints what the first step has waited for.  A checkpoint in another form is read twice: first to see which state in
 * it is whole, then to load this state. */
static void print_resumed(struct trainer *t)
{
    const struct checkpoint *c = t->settings->resumed ? t->settings->source.checkpoint : NULL;
    if (!c)
        return;
    const struct read_buffer *took = c->buffer;
    const uint64_t all = now_ns() - this_life->begun;
    const uint64_t state = took->open + took->read + took->verify + took->upload;
    char *path = rank_file(c, 0), bytes[32];
    print_line(stdout, "resumed     step %u of %s; %.3f s from the start to the first step:", c->step, c->path,
               1e-9 * (double)all);
    printf("            open %.3f, read %.3f, verify %.3f, upload %.3f, devices and lists %.3f\n",
           1e-9 * (double)took->open, 1e-9 * (double)took->read, 1e-9 * (double)took->verify,
           1e-9 * (double)took->upload, 1e-9 * (double)(all - state));
    printf("            %s read at %.0f MB/s; the disk alone, past the cache: %.0f MB/s\n",
           format_bytes(bytes, (double)took->bytes_read), 1e3 * (double)took->bytes_read / (double)MAX(took->read, 1),
           1e-6 * measure_disk(path));
    free(path);
}

static void tell_kept(struct trainer *t, struct kept_run *k)
{
    const struct settings *s = t->settings;
    if (!s->save)
        return;
    append_text(&k->command, " --resume ");
    append_quoted(&k->command, s->save);
    append_text(&k->command, " --save ");
    append_quoted(&k->command, s->save);
    if (s->save_every)
        append_text(&k->command, " --save-every %d", s->save_every);
    if (reshard_options.keep)
        append_text(&k->command, " --keep %d", reshard_options.keep);
}

const struct archive archive = {
    .option = "--resume",
    .find_run = find_resumed_run,
    .mesh = resumed_mesh,
    .open = open_run,
    .close = close_run,
    .load = load_run,
    .refuse = expect_outside,
    .compare = compare_with_saved,
    .save = save_training,
};
const struct hooks reshard_hooks = {
    .list_built = record_training,
    .lists_ready = number_run,
    .model_filled = compare_training,
    .summary_printed = print_resumed,
    .kept = tell_kept,
    .trainer_closing = free_run_state,
};
