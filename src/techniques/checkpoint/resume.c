/* resume.c - records a run in its checkpoints, and lets a run go on from a checkpoint, on other devices too.
 *
 * Options on the command line win over recorded ones.  Without --mesh the recorded strategy goes on: unchanged on as
 * many devices as before, and with another dp on another number of devices.  On a single device training goes on
 * without a mesh; checkpoints still record the old strategy, so that it returns when there are more devices again.
 */
#include "resume.h"
#include "files.h"
#include "trainer/model_files/model_files.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <unistd.h>

struct run_record { /* what checkpoints say of a training */
    json_t *options;
    uint64_t run_id;
    int64_t session;
};

static struct run_record *record_of(const struct trainer *trainer)
{
    return *folder_data_of(trainer, &module_checkpoint);
}

/* ---- the resumed run --------------------------------------------------------------------------------------------- */

/* A checkpoint that was opened from that path, as the model with which a run begins. */
static struct source source_of(const char *path, struct checkpoint *checkpoint)
{
    return (struct source){.path = copy_string(path),
                           .config = checkpoint->cut->config,
                           .checkpoint = checkpoint,
                           .tokenizer = checkpoint->tokenizer};
}

static const struct resumed_run *open_resumed_run(void)
{
    const char *path = this_process->from ? this_process->from : asked_checkpoint.resume;
    if (!path)
        return NULL;
    struct checkpoint *checkpoint = open_checkpoint(path);
    checkpoint->times.open = now_ns() - this_process->begun - checkpoint->times.read - checkpoint->times.verify;
    struct resumed_run *found = allocate(1, sizeof *found);
    *found = (struct resumed_run){
        .given_path = path,
        .kept_by = checkpoint->single_file ? checkpoint->single_file->form->option : "--save",
        .path = checkpoint->path,
        .step = checkpoint->step,
        .samples = checkpoint->samples,
        .options = checkpoint->options,
        .source = source_of(path, checkpoint),
        .elsewhere = checkpoint->single_file != NULL,
        .options_in = format_string("%s%s", checkpoint->path, checkpoint->single_file ? "" : "/" MANIFEST)};
    return found;
}

static bool open_run(const char *path, struct source *source)
{
    char *newest = find_checkpoint(path), *model = model_in_folder(path);
    if (!newest && !model && is_folder(path))
        refuse_if_foreign_folder(path);
    bool ours = newest || find_checkpoint_form(path) || (is_folder(path) && !model);
    if (ours) {
        struct checkpoint *checkpoint = open_checkpoint_or_model(newest ? newest : path);
        *source = source_of(path, checkpoint);
    }
    free(newest);
    free(model);
    return ours;
}

static void close_run(struct source *source) { free_checkpoint(source->checkpoint); }

static void load_run(struct model *model, const struct source *source, enum loaded_state wanted)
{
    load_checkpoint(model, source->checkpoint, wanted);
}

/* ---- the mesh ---------------------------------------------------------------------------------------------------- */

/* The number of devices nearest to `devices` that is a multiple of `each` and shares the batch out evenly. */
static int nearest_devices(int batch, int each, int devices)
{
    int nearest = 0;
    for (int dp = 1; dp <= batch && dp * each <= MOST_RANKS; dp++)
        if (batch % dp == 0 && (!nearest || abs(dp * each - devices) < abs(nearest - devices)))
            nearest = dp * each;
    return nearest;
}

/* Says that the strategy cannot go on with `devices` devices, and with how many it can. */
static _Noreturn void fail_with_devices(const struct settings *settings, const struct mesh *strategy, int devices)
{
    int each = strategy->pp * strategy->tp; /* devices of a replica */
    int nearest = nearest_devices(settings->batch, each, devices);
    char text[MESH_TEXT];
    fail(EXIT_USAGE,
         "%s was trained with %s and --batch %d, which cannot go on with %d device%s: the nearest "
         "that can is --mesh dp=%d,pp=%d,tp=%d, which takes %d; or choose another --mesh",
         settings->resumed->given_path, format_mesh(text, strategy), settings->batch, devices, PLURAL(devices),
         nearest / each, strategy->pp, strategy->tp, nearest);
}

static struct mesh resumed_mesh(const struct settings *settings, int devices)
{
    struct mesh mesh = read_strategy(settings->source.checkpoint);
    int each = mesh.pp * mesh.tp; /* devices of a replica */
    if (devices == 1 && each > 1)
        return (struct mesh){.dp = 1, .pp = 1, .tp = 1, .chunks = 1};
    if (devices != n_ranks(&mesh) && (devices % each || settings->batch % (devices / each)))
        fail_with_devices(settings, &mesh, devices);
    mesh.dp = devices / each;
    return mesh;
}

/* ---- what is recorded -------------------------------------------------------------------------------------------- */

const json_t *recorded_options(const struct trainer *trainer) { return record_of(trainer)->options; }

/* This is called before defaults are filled in, so that only options that the user gave are recorded. */
static void record_training(struct trainer *trainer, struct list *list)
{
    const struct settings *settings = trainer->settings;
    if (list != trainer->train_list || settings->demands.trial)
        return;
    struct run_record *record = allocate(1, sizeof *record);
    /* A run that goes on without a mesh records the old strategy. */
    bool without_mesh = settings->resumed && !settings->mesh && n_ranks(&trainer->mesh) == 1;
    struct mesh strategy = without_mesh ? read_strategy(settings->source.checkpoint) : trainer->mesh;
    char text[MESH_TEXT];
    record->options = options_json(RECORDED_OPTIONS);
    set_json_text(record->options, "mesh", format_mesh(text, &strategy));
    *folder_data_of(trainer, &module_checkpoint) = record;
}

/* A random number from the system, so that no two runs have the same. */
static uint64_t draw_id(void)
{
    uint64_t id;
    if (getentropy(&id, sizeof id) != 0)
        fail(EXIT_IO, "the system has no random numbers: %s", strerror(errno));
    return id;
}

/* The checkpoint that the run goes on from; NULL: it is a new one. */
static const struct checkpoint *resumed_checkpoint(const struct trainer *trainer)
{
    return trainer->settings->resumed ? trainer->settings->source.checkpoint : NULL;
}

/* A new run will replace the checkpoints of earlier ones (save_training()): says so while they are still there. */
static void warn_of_replaced(const char *folder)
{
    char *newest = find_checkpoint(folder);
    if (newest)
        warn("%s is of an earlier run, whose checkpoints this run will remove when it first saves; --resume %s goes on "
             "from it, and another --save keeps it",
             newest, folder);
    free(newest);
}

/* Gives the run its id and its session.  This is called when --save's folder is locked for this run. */
static void number_run(struct trainer *trainer)
{
    const struct settings *settings = trainer->settings;
    const struct checkpoint *from = resumed_checkpoint(trainer);
    struct run_record *record = record_of(trainer);
    if (!record)
        return;
    record->run_id = from ? from->run_id : NOT_KNOWN;
    if (record->run_id == NOT_KNOWN)
        record->run_id = draw_id();
    int64_t last = settings->save ? last_session(settings->save) : 0;
    if (from)
        last = MAX(last, from->session);
    else if (last > 0)
        warn_of_replaced(settings->save);
    record->session = last + 1;
}

static void free_record(struct trainer *trainer)
{
    struct run_record *record = record_of(trainer);
    if (record)
        json_decref(record->options);
    free(record);
}

/* XXH64 of the training tokens; NOT_KNOWN: there are none.  They are many, so the hash is computed once in a run. */
static uint64_t hash_data(const struct trainer *trainer)
{
    if (!trainer->data)
        return NOT_KNOWN;
    struct split *train = &trainer->data->train;
    if (train->hash == NOT_KNOWN)
        train->hash = hash_bytes(train->tokens, train->n * sizeof *train->tokens, 0);
    return train->hash;
}

/* Warns where the run goes on, but not as it would have gone on without a break. */
static void compare_training(struct trainer *trainer)
{
    const struct checkpoint *checkpoint = resumed_checkpoint(trainer);
    if (!checkpoint)
        return;
    unsigned vector = vector_width(trainer->machine);
    if (checkpoint->data != NOT_KNOWN && checkpoint->data != hash_data(trainer))
        warn("the data are not those that %s was trained on: their tokens have another hash", checkpoint->path);
    if (checkpoint->vector != VECTORS_DIFFER && checkpoint->vector != vector)
        warn("%s was trained with vectors of %u floats, now they have %u: the last bits will differ", checkpoint->path,
             checkpoint->vector, vector);
}

struct checkpoint *new_checkpoint(const struct trainer *trainer, uint32_t step)
{
    struct checkpoint *checkpoint = allocate(1, sizeof *checkpoint);
    checkpoint->step = step;
    checkpoint->run_id = record_of(trainer)->run_id;
    checkpoint->session = record_of(trainer)->session;
    checkpoint->samples = ((int64_t)step + trainer->extra.batches_ahead) * trainer->batch;
    checkpoint->data = hash_data(trainer);
    checkpoint->vector = vector_width(trainer->machine);
    checkpoint->tokenizer = tokenizer_to_text(trainer->data ? &trainer->data->tokenizer : NULL);
    checkpoint->options = json_incref(record_of(trainer)->options);
    return checkpoint;
}

/* ---- checkpoints that are in --save's folder already ------------------------------------------------------------- */

/* Refuses a folder that has checkpoints of a model of other sizes. */
static void compare_with_saved(const char *folder, const struct config *ours)
{
    char *saved = find_checkpoint(folder);
    if (saved) {
        struct checkpoint *old = open_checkpoint(saved);
        if (!same_sizes(&old->cut->config, ours))
            refuse_other_sizes(saved, &old->cut->config);
        free_checkpoint(old);
    }
    free(saved);
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

/* The `first` checkpoint of a run that began from nothing replaces all checkpoints of earlier runs.  With --keep each
 * new checkpoint replaces the oldest. */
static void save_training(struct trainer *trainer, uint32_t step, bool first)
{
    const struct settings *settings = trainer->settings;
    bool begins = first && !settings->resumed; /* a resumed run keeps the checkpoints that it was resumed from */
    struct checkpoint *checkpoint = new_checkpoint(trainer, step);
    make_folder(settings->save);
    save_checkpoint(trainer->model, settings->save, checkpoint);
    if (begins || asked_checkpoint.keep != KEEP_ALL)
        prune_checkpoints(settings->save, begins ? record_of(trainer)->session : ANY_SESSION, asked_checkpoint.keep);
    free_checkpoint(checkpoint);
}

/* ---- what the user sees ------------------------------------------------------------------------------------------ */

/* Bytes per second of reading the beginning of a file past the page cache; NAN where the file system cannot do that. */
static double measure_disk(const char *path)
{
    enum { MOST = 32 << 20 }; /* bytes */
    int fd = open_past_cache(path, O_RDONLY);
    if (fd == NONE)
        return NAN;
    char *memory = allocate(MOST + DIRECT_ALIGNMENT, 1);
    char *into = memory + DIRECT_ALIGNMENT - (uintptr_t)memory % DIRECT_ALIGNMENT;
    memset(into, 1, MOST); /* then the pages of `into` exist, and their first use is not timed */
    uint64_t begun = now_ns();
    ssize_t n = pread(fd, into, MOST, 0);
    double seconds = 1e-9 * (double)(now_ns() - begun);
    free(memory);
    close(fd);
    return n > 0 ? (double)n / seconds : NAN;
}

/* Prints what the first step has waited for.  A checkpoint in another form is read twice: first to see which state in
 * it is whole, then to load this state. */
static void print_resumed(struct trainer *trainer)
{
    const struct checkpoint *checkpoint = resumed_checkpoint(trainer);
    if (!checkpoint)
        return;
    const struct load_times *times = &checkpoint->times;
    uint64_t all = now_ns() - this_process->begun;
    uint64_t state = times->open + times->read + times->verify + times->upload;
    char *path = rank_file(checkpoint, 0);
    char bytes[NUMBER_TEXT];
    double disk = measure_disk(path);
    print_line(stdout, "resumed     step %u of %s; %.3f s from the start to the first step:", checkpoint->step,
               checkpoint->path, 1e-9 * (double)all);
    printf("            open %.3f, read %.3f, verify %.3f, upload %.3f, devices and lists %.3f\n",
           1e-9 * (double)times->open, 1e-9 * (double)times->read, 1e-9 * (double)times->verify,
           1e-9 * (double)times->upload, 1e-9 * (double)(all - state));
    printf("            %s read at %.0f MB/s", format_bytes(bytes, (double)times->bytes_read),
           1e3 * (double)times->bytes_read / (double)MAX(times->read, 1));
    if (!isnan(disk))
        printf("; the disk alone, past the cache: %.0f MB/s", 1e-6 * disk);
    printf("\n");
    free(path);
}

static void add_kept(struct trainer *trainer, struct kept_run *kept_run)
{
    const struct settings *settings = trainer->settings;
    if (!settings->save)
        return;
    append_text(&kept_run->command, " --resume ");
    append_quoted(&kept_run->command, settings->save);
    append_text(&kept_run->command, " --save ");
    append_quoted(&kept_run->command, settings->save);
    if (settings->save_every)
        append_text(&kept_run->command, " --save-every %d", settings->save_every);
    if (asked_checkpoint.keep != KEEP_ALL)
        append_text(&kept_run->command, " --keep %d", asked_checkpoint.keep);
}

const struct archive archive = {
    .option = "--resume",
    .find_run = open_resumed_run,
    .mesh = resumed_mesh,
    .open = open_run,
    .close = close_run,
    .load = load_run,
    .expect_outside = expect_outside,
    .expect_sizes = compare_with_saved,
    .save = save_training,
};
const struct hooks checkpoint_hooks = {
    .list_built = record_training,
    .lists_ready = number_run,
    .model_filled = compare_training,
    .summary_printed = print_resumed,
    .kept = add_kept,
    .trainer_closing = free_record,
};
