/* trainer.c - opens a machine, a model and its lists as the settings say, and runs the lists.  The sizes of
 * mesh and batch are checked in sizes.c.
 */
#include "hooks.h"

#include <glob.h>
#include <math.h>
#include <unistd.h>

double tokens_per_step(const struct trainer *t) { return (double)t->batch * t->seq; }

/* ---- opening --------------------------------------------------------------------------------------------------- */

/* The tokenizer of the model with which a run begins; without tokens: the model does not say it.  Programs that write a
 * model anew leave our metadata out, but a tokenizer may lie beside the model. */
static struct tokenizer source_tokenizer(const struct source *s)
{
    struct tokenizer tokenizer = {0};
    char *text = NULL;
    if (!s->path)
        return tokenizer;
    if (s->checkpoint)
        text = copy_string(s->tokenizer);
    else if (!has_magic(s->path, LLMC_MODEL_MAGIC))
        text = read_weights_metadata(s->path, "yard.tokenizer");
    if (text)
        tokenizer = tokenizer_from_text(text, s->path);
    else
        tokenizer = tokenizer_beside(s->path);
    free(text);
    return tokenizer;
}

/* Does --tokens repeat the word with which the resumed run was begun?  A FILE does not count, since it may have
 * changed. */
static bool is_recorded_tokens(const struct settings *s)
{
    const json_t *word = s->resumed ? json_object_get(s->resumed->options, "tokens") : NULL;
    return word && !file_of_tokens(s->data.tokens) && strcmp(json_string_value(word), s->data.tokens) == 0;
}

/* The model's tokenizer, or the one that --tokens says where the model knows none.  vocab: the model's. */
static struct tokenizer model_tokenizer(const struct settings *s, const struct source *model, int vocab)
{
    struct tokenizer tokenizer = source_tokenizer(model);
    const char *word = s->data.tokens;
    const bool is_known = tokenizer.n && !tokenizer.takes_numbers;
    if (!is_known && model->path && was_given("tokens") && file_of_tokens(word)) {
        free_tokenizer(&tokenizer);
        tokenizer = make_tokenizer(word, NULL, NULL);
    } else if (is_known && was_given("tokens") && !is_recorded_tokens(s) && !is_tokenizer(&tokenizer, word)) {
        fail(EXIT_USAGE, "--tokens %s: %s was trained on %s, and knows no others than its own: leave --tokens out",
             word, model->path, tokenizer.kind->noun);
    }
    if (vocab)
        fit_tokenizer(&tokenizer, vocab, model->path);
    return tokenizer;
}

static void warn_of_bytes(const char *model)
{
    warn("%s does not say what its 256 tokens are: they are taken for bytes", model);
}

struct dataset *open_vocabulary(const struct settings *s, int vocab)
{
    const struct source *model = &s->source;
    struct dataset *d = allocate(1, sizeof *d);
    d->vocab = vocab;
    d->tokenizer = model_tokenizer(s, model, vocab);
    if (!d->tokenizer.n && vocab == 256)
        warn_of_bytes(model->path);
    if (!d->tokenizer.n)
        d->tokenizer = vocab == 256 ? byte_tokenizer() : id_tokenizer(vocab);
    return d;
}

/* A run that goes on reads the data that it was begun with.  Their paths hold in the folder where it was begun. */
static void expect_recorded_data(const struct settings *s, const char *option, const char *path)
{
    const char *file = path ? file_of_data(path) : NULL;
    if (!s->resumed || !file || was_given(option))
        return;
    glob_t found = {0};
    if (access(file, F_OK) != 0 && glob(file, 0, NULL, &found) != 0)
        fail(EXIT_IO,
             "%s was trained with --%s %s, and no such file is here: give --%s PATH, or run it in the folder "
             "where it was begun",
             s->resumed->path, option, path, option);
    globfree(&found);
}

static struct dataset *open_data(const struct settings *s, int vocab)
{
    struct data_options o = s->data;
    o.batch = s->batch;
    o.seq_len = s->seq_len;
    o.tokenizer = model_tokenizer(s, &s->source, vocab);
    o.vocab = vocab;
    expect_recorded_data(s, "data", o.path);
    expect_recorded_data(s, "val-data", o.val_data);
    struct dataset *data = open_dataset(&o);
    bool unsaid = s->source.path && !o.tokenizer.n && data->tokenizer.kind == &token_bytes;
    if (unsaid && vocab == data->tokenizer.n)
        warn_of_bytes(s->source.path);
    else if (unsaid)
        warn("%s does not say what its %d tokens stand for, so the text is taken byte by byte, as numbers below 256: "
             "not what the model has learnt; to train on its own tokens, give --tokens the FILE of its tokenizer, or "
             "--data token files (.bin)",
             s->source.path, vocab);
    return data;
}

struct machine *machine_of(const struct settings *s, enum contexts contexts)
{
    struct machine_options o = {
        .devices = s->devices,
        .device_memory = s->device_memory,
        .host_memory = s->host_memory,
        .profiling = s->time_tasks,
        .separate = contexts == A_CONTEXT_FOR_EACH,
        .vector = (unsigned)s->vector,
    };
    struct machine *m = open_machine(&o);
    if (s->one_device && m->n_devices > 1)
        fail(EXIT_USAGE, "%s runs on one device: give a single one to -d", s->one_device);
    return m;
}

struct config config_of(const struct settings *s)
{
    if (s->source.path)
        return s->source.config;
    return (struct config){
        .layers = s->layers,
        .heads = s->heads,
        .channels = s->channels,
        .seq_len = s->seq_len,
        .vocab = s->vocab,
        .tied = !s->untied,
    };
}

/* Builds the lists that are wanted, writes them to all[], and returns how many there are. */
static size_t build_lists(struct trainer *t, unsigned wanted, struct step *all[3])
{
    size_t n = 0;
    if (wanted & LIST_TRAIN) {
        build_train(t);
        all[n++] = t->train;
    }
    if (wanted & LIST_EVAL) {
        build_eval(t);
        all[n++] = t->eval;
    }
    if (wanted & LIST_SAMPLE) {
        build_sample(t);
        all[n++] = t->sample;
    }
    if (wanted & KEEP_LOGITS)
        t->keep_logits->persistent = true;
    for (size_t i = 0; i < n; i++)
        tell_list_built(t, all[i]);
    return n;
}

/* Sees to it that --save's folder is there, ours alone, and can be written: better to learn now than after training. */
static void open_folder_of_save(struct trainer *t)
{
    const char *folder = t->settings->save;
    char *file = format_string("%s/.try", folder);
    make_folder(folder); /* --log and others may lie in it */
    abandon(open_writer(file));
    free(file);
    t->lock = lock_folder("--save", folder);
    const struct archive *archive = find_archive();
    if (archive) /* asked again: meanwhile another process may have written a run there */
        archive->refuse("--save", folder);
}

/* ---- a trainer -------------------------------------------------------------------------------------------------- */

struct trainer *new_trainer(const struct settings *s, unsigned wanted)
{
    const bool has_model = s->source.path;
    struct config config = config_of(s);
    struct dataset *data = NULL;
    if (wanted & OPEN_DATA || (wanted & OPEN_GIVEN_DATA && s->data.path))
        data = open_data(s, has_model ? config.vocab : 0);
    if (data && !has_model)
        config.vocab = data->vocab;
    check_config(&config);
    check_saved(s, &config);
    if (data && data->val.n == 0)
        wanted &= ~(unsigned)LIST_EVAL;
    return new_trainer_for(s, &config, data, wanted);
}

struct trainer_attempt { /* the argument of build_trainer(), for attempt() */
    const struct settings *settings;
    unsigned wanted;
    struct trainer *trainer;
};

static void build_trainer(void *argument)
{
    struct trainer_attempt *attempt = argument;
    attempt->trainer = new_trainer(attempt->settings, attempt->wanted);
}

struct trainer *try_new_trainer(const struct settings *s, unsigned wanted, struct problem **impossible)
{
    struct trainer_attempt a = {.settings = s, .wanted = wanted};
    *impossible = attempt(build_trainer, &a);
    return *impossible ? NULL : a.trainer;
}

static void set_rate(struct trainer *t)
{
    const struct settings *s = t->settings;
    t->rate = (struct rate){
        .schedule = s->schedule,
        .lr = s->lr,
        .lr_min = s->lr_min,
        .steps = s->steps,
        .warmup = s->warmup,
    };
    fill_rate(&t->rate);
    check_rate(&t->rate);
    if (s->resumed) /* whole batches: no sequence is trained on twice */
        t->ahead = (int64_t)ceil_div((size_t)s->resumed->samples, (size_t)s->batch) - s->resumed->step;
}

static void make_model(struct trainer *t, bool trains)
{
    const struct gradients gradients = {
        .dropped = t->mesh.zero >= 2 && t->micros == 1,
        .grouped = trains && t->settings->grad_groups > 1,
    };
    t->model = new_model(t->pool, &t->config, &t->mesh, trains ? TO_TRAIN : TO_COMPUTE, gradients);
}

/* machine -> mesh -> sizes -> model -> lists -> addresses */
struct trainer *new_trainer_for(const struct settings *s, const struct config *c, struct dataset *data, unsigned wanted)
{
    struct trainer *t = allocate(1, sizeof *t);
    const bool trains = wanted & LIST_TRAIN, plan_only = wanted & PLAN_ONLY;
    struct step *all[3];
    *t = (struct trainer){.settings = s, .data = data, .config = *c, .log = -1};
    t->folder_data = allocate(n_modules, sizeof *t->folder_data);
    execution.serial = s->serial;
    t->machine = ask_machine(t, plan_only);
    if (!t->machine) /* devices as -d says */
        t->machine = machine_of(s, t->separate ? A_CONTEXT_FOR_EACH : SHARED_CONTEXTS);
    set_mesh(t);
    set_batch(t, (wanted & ALL_LISTS) == LIST_SAMPLE);
    new_feeds(t);
    if (trains)
        set_rate(t);
    tell_machine_opened(t);
    t->pool = new_pool(t->machine);
    make_model(t, trains);
    size_t n = build_lists(t, wanted, all);
    if (plan_only) {
        must(place(t->pool, all, n, PLACE_TO_CHECK));
        for (size_t i = 0; i < n; i++)
            depend(all[i], ALL_EDGES);
        return t;
    }
    must(finish_steps(t->pool, all, n));
    if (s->save)
        open_folder_of_save(t);
    if (s->log)
        open_log(t);
    tell_lists_ready(t);
    return t;
}

void free_trainer(struct trainer *t)
{
    struct step *all[] = {t->train, t->eval, t->sample};
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i])
            drain(all[i]);
    tell_trainer_closing(t);
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i])
            free_step(all[i]);
    for (int i = 0; i < t->machine->n_lanes; i++) {
        stop_thread(&t->machine->lane[i]->thread);
        stop_thread(&t->machine->lane[i]->forwarder);
        stop_thread(&t->machine->lane[i]->aside_thread);
    }
    free_model(t->model);
    free_mesh(&t->mesh);
    free_pool(t->pool);
    close_machine(t->machine);
    if (t->lock)
        close(t->lock);
    if (t->data)
        close_dataset(t->data);
    free_feeds(t);
    free(t->rank_total);
    free(t->sample_tokens);
    free(t->folder_data);
    free(t);
}

/* ---- running --------------------------------------------------------------------------------------------------- */

void run_step(struct trainer *t, uint32_t number) { execute(t->train, number); }

const struct result *step_result(struct trainer *t, uint32_t number)
{
    wait_task(t->train, t->report, number);
    struct result *result = &t->result[number % RESULTS];
    result->ended_ns = t->train->running->iteration_end[number % KEPT_ENDS];
    return result;
}

bool has_result(struct trainer *t, uint32_t number)
{
    retire_ended(t->train);
    return is_computed(t->train, number) && !latest_run(t->train, t->report, number);
}

double evaluate(struct trainer *t, int64_t batches, bool (*goes_on)(void *), void *context)
{
    size_t windows = validation_windows(t->data, t->seq);
    size_t per_round = (size_t)(t->mesh.dp * t->micro_batch);
    size_t rounds = ceil_div(windows, per_round);
    if (batches > 0)
        rounds = MIN(rounds, ceil_div((size_t)batches * (size_t)t->batch, per_round));
    t->eval_sum[t->evaluated & 1] = (struct losses){0};
    const uint64_t begun = now_ns();
    bool cut = false;
    for (size_t i = 1; i <= rounds; i++) {
        show_busy("validating", begun, (double)(i - 1) / (double)rounds);
        execute(t->eval, t->evaluated + (uint32_t)i);
        cut = goes_on && !goes_on(context);
        if (cut)
            rounds = i;
    }
    drain(t->eval);
    erase_line();
    t->evaluated += (uint32_t)rounds;
    const struct losses *all = &t->eval_sum[t->evaluated & 1];
    return all->n && !cut ? all->sum / (double)all->n : NAN;
}

/* ---- what is not finite ---------------------------------------------------------------------------------------- */

const char not_finite_advice[] =
    "try a smaller --lr, more --warmup or --clip 1; of a run with --init, is its file sound?";

void explain_bad_model(uint32_t step, const char *parameter)
{
    this_life->not_finite = true;
    if (parameter)
        fail(EXIT_FAILED,
             "step %u: its update left values in parameter %s that are not finite, and nothing is saved; %s", step,
             parameter, not_finite_advice);
    fail(EXIT_FAILED, "step %u: the validation loss is not finite, though all parameters are; %s", step,
         not_finite_advice);
}

void explain_not_finite(struct trainer *t, uint32_t number, const struct result *result)
{
    drain(t->train);
    tell_step_not_finite(t, number, result);
    fail(EXIT_FAILED, "step %u: the loss or the gradient's norm is not finite; %s", number, not_finite_advice);
}
