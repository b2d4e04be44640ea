/* trainer.c - opens a machine, a model and its lists as the settings say, and runs the lists.  The sizes of mesh and
 * batch are checked in sizes.c.
 */
#include "hooks.h"
#include "log.h"
#include "train_parts.h"
#include "trainer/import/import.h"
#include "trainer/settings/archive.h"

#include <math.h>
#include <unistd.h>

static struct process_facts own_facts;
struct process_facts *this_process = &own_facts;

double tokens_per_step(const struct trainer *trainer) { return (double)trainer->batch * trainer->seq_len; }

/* ---- opening --------------------------------------------------------------------------------------------------- */

struct machine *open_machine_for(const struct settings *settings, bool separate)
{
    struct machine_options options = {
        .devices = settings->devices,
        .device_memory = settings->device_memory,
        .host_memory = settings->host_memory,
        .profiling = settings->demands.time_tasks,
        .separate = separate,
        .vector = (unsigned)settings->vector,
    };
    struct machine *machine = open_machine(&options);
    if (settings->demands.one_device && machine->n_devices > 1)
        fail(EXIT_USAGE, "%s runs on one device: give a single one to -d", settings->demands.one_device);
    return machine;
}

struct config config_of(const struct settings *settings)
{
    if (settings->source.path)
        return settings->source.config;
    return (struct config){
        .layers = settings->layers,
        .heads = settings->heads,
        .channels = settings->channels,
        .seq_len = settings->seq_len,
        .vocab = settings->vocab,
        .tied = !settings->untied,
    };
}

size_t lists_of(const struct trainer *trainer, struct list *all[MOST_LISTS])
{
    struct list *each[] = {trainer->train_list, trainer->eval_list, trainer->sample_list};
    size_t n = 0;
    for (size_t i = 0; i < COUNT(each); i++)
        if (each[i])
            all[n++] = each[i];
    return n;
}

static void build_lists(struct trainer *trainer, unsigned wanted)
{
    struct list *all[MOST_LISTS];
    if (wanted & LIST_TRAIN)
        build_train(trainer);
    if (wanted & LIST_EVAL)
        build_eval(trainer);
    if (wanted & LIST_SAMPLE)
        build_sample(trainer);
    if (wanted & KEEP_LOGITS)
        trainer->kept_logits->persistent = true;
    const size_t n = lists_of(trainer, all);
    for (size_t i = 0; i < n; i++)
        tell_list_built(trainer, all[i]);
}

_Noreturn void refuse_other_sizes(const char *path, const struct config *its)
{
    char sizes[160];
    fail(EXIT_USAGE, "%s has another model (%s): give --save another folder, or remove that model first", path,
         describe_sizes(sizes, its));
}

/* Refuses to save over a model of other sizes. */
static void check_saved(const struct settings *settings, const struct config *ours)
{
    const struct archive *archive = find_archive();
    if (!settings->save)
        return;
    if (archive)
        archive->expect_sizes(settings->save, ours);
    char *model = saved_model(settings);
    if (access(model, F_OK) == 0) {
        const struct config old = read_config(model, ours->heads);
        if (!same_sizes(&old, ours))
            refuse_other_sizes(model, &old);
    }
    free(model);
}

/* Sees to it that --save's folder is there, ours alone, and can be written: better to learn now than after training. */
static void open_folder_of_save(struct trainer *trainer)
{
    const char *folder = trainer->settings->save;
    char *file = format_string("%s/.try", folder);
    make_folder(folder); /* --log and others may lie in it */
    abandon(open_writer(file));
    free(file);
    trainer->lock = lock_folder("--save", folder);
    const struct archive *archive = find_archive();
    if (archive) /* asked again: meanwhile another process may have written a run there */
        archive->expect_outside("--save", folder);
}

/* ---- a trainer: its parts --------------------------------------------------------------------------------------- */

static void set_rate(struct trainer *trainer)
{
    const struct settings *settings = trainer->settings;
    trainer->rate = (struct rate){
        .schedule = settings->schedule,
        .lr = settings->lr,
        .lr_min = settings->lr_min,
        .steps = settings->steps,
        .warmup = settings->warmup,
    };
    fill_rate(&trainer->rate);
    check_rate(&trainer->rate);
    if (settings->resumed) /* whole batches: no sequence is trained on twice */
        trainer->ahead =
            (int64_t)ceil_div((size_t)settings->resumed->samples, (size_t)settings->batch) - settings->resumed->step;
}

static void make_model(struct trainer *trainer, bool trains)
{
    const struct gradients gradients = {
        .dropped = trainer->mesh.zero >= 2 && trainer->micros == 1,
        .grouped = trains && trainer->settings->grad_groups > 1,
    };
    trainer->model =
        new_model(trainer->pool, &trainer->config, &trainer->mesh, trains ? TO_TRAIN : TO_COMPUTE, gradients);
}

/* machine -> mesh -> sizes -> model -> lists */
static struct trainer *assemble_trainer(const struct settings *settings, const struct config *config,
                                        struct dataset *data, unsigned wanted)
{
    struct trainer *trainer = allocate(1, sizeof *trainer);
    *trainer = (struct trainer){.settings = settings, .data = data, .config = *config, .lock = NONE};
    trainer->is_draft = wanted & ONLY_DRAFT;
    trainer->folder_data = allocate(n_modules, sizeof *trainer->folder_data);
    trainer->machine = ask_machine(trainer);
    if (!trainer->machine) /* devices as -d says */
        trainer->machine = open_machine_for(settings, trainer->separate);
    set_mesh(trainer);
    set_batch(trainer, wanted);
    new_feeds(trainer);
    if (wanted & LIST_TRAIN)
        set_rate(trainer);
    tell_machine_opened(trainer);
    trainer->pool = new_pool(trainer->machine);
    make_model(trainer, wanted & LIST_TRAIN);
    build_lists(trainer, wanted);
    return trainer;
}

/* Opens data if they are wanted, and assembles a trainer of the sizes that they and the settings have. */
static struct trainer *open_trainer(const struct settings *settings, unsigned wanted)
{
    const bool has_model = settings->source.path;
    struct config config = config_of(settings);
    struct dataset *data = NULL;
    if ((wanted & OPEN_DATA) || ((wanted & OPEN_GIVEN_DATA) && settings->data.path))
        data = open_training_data(settings, has_model ? config.vocab : 0);
    if (data && !has_model)
        config.vocab = data->vocab;
    check_config(&config);
    check_saved(settings, &config);
    if (data && data->val.n == 0)
        wanted &= ~(unsigned)LIST_EVAL;
    return assemble_trainer(settings, &config, data, wanted);
}

/* The rest of what a trainer needs to run: how its lists run, memory on devices, and files. */
static void make_ready(struct trainer *trainer)
{
    struct list *all[MOST_LISTS];
    const size_t n = lists_of(trainer, all);
    execution.serial = trainer->settings->serial;
    must(finish_lists(trainer->pool, all, n));
    if (trainer->settings->save)
        open_folder_of_save(trainer);
    trainer->log = open_log(trainer->settings->log);
    tell_lists_ready(trainer);
}

/* ---- a trainer -------------------------------------------------------------------------------------------------- */

struct trainer *new_trainer(const struct settings *settings, unsigned wanted)
{
    struct trainer *trainer = open_trainer(settings, wanted);
    make_ready(trainer);
    return trainer;
}

struct trainer *new_trainer_for(const struct settings *settings, const struct config *config, struct dataset *data,
                                unsigned wanted)
{
    struct trainer *trainer = assemble_trainer(settings, config, data, wanted);
    make_ready(trainer);
    return trainer;
}

struct trainer *new_draft(const struct settings *settings, unsigned wanted)
{
    return open_trainer(settings, wanted | ONLY_DRAFT);
}

void free_trainer(struct trainer *trainer)
{
    struct list *all[MOST_LISTS];
    const size_t n = lists_of(trainer, all);
    for (size_t i = 0; i < n; i++)
        drain(all[i]);
    tell_trainer_closing(trainer);
    for (size_t i = 0; i < n; i++)
        free_list(all[i]);
    for (int i = 0; i < trainer->machine->n_lanes; i++) {
        stop_thread(&trainer->machine->lanes[i]->thread);
        stop_thread(&trainer->machine->lanes[i]->forwarder);
        stop_thread(&trainer->machine->lanes[i]->aside_thread);
    }
    free_model(trainer->model);
    free_mesh(&trainer->mesh);
    free_pool(trainer->pool);
    close_machine(trainer->machine);
    if (trainer->lock != NONE)
        close(trainer->lock);
    if (trainer->data)
        close_dataset(trainer->data);
    free_feeds(trainer);
    free(trainer->rank_totals);
    free(trainer->sample_window);
    free(trainer->folder_data);
    free(trainer);
}

/* ---- running --------------------------------------------------------------------------------------------------- */

void run_step(struct trainer *trainer, uint32_t step) { execute(trainer->train_list, step); }

const struct result *step_result(struct trainer *trainer, uint32_t step)
{
    retire_until(trainer->train_list, trainer->report, step);
    struct result *result = &trainer->results[step % RESULTS];
    result->ended_ns = trainer->train_list->running->iteration_end[step % KEPT_ENDS];
    return result;
}

bool has_result(struct trainer *trainer, uint32_t step)
{
    retire_ended(trainer->train_list);
    return is_computed(trainer->train_list, step) && !latest_run(trainer->train_list, trainer->report, step);
}

double evaluate(struct trainer *trainer, int64_t batches, bool (*goes_on)(void *), void *context)
{
    const size_t windows = validation_windows(trainer->data, trainer->seq_len);
    const size_t per_round = (size_t)(trainer->mesh.dp * trainer->micro_batch);
    size_t rounds = ceil_div(windows, per_round);
    if (batches > 0)
        rounds = MIN(rounds, ceil_div((size_t)batches * (size_t)trainer->batch, per_round));
    trainer->eval_sums[trainer->eval_iterations & 1] = (struct losses){0};
    const uint64_t begun = now_ns();
    size_t done = 0; /* rounds that have been issued */
    bool cut = false;
    while (done < rounds && !cut) {
        show_busy("validating", begun, (double)done / (double)rounds);
        done++;
        execute(trainer->eval_list, trainer->eval_iterations + (uint32_t)done);
        cut = goes_on && !goes_on(context);
    }
    drain(trainer->eval_list);
    erase_line();
    trainer->eval_iterations += (uint32_t)done;
    const struct losses *all = &trainer->eval_sums[trainer->eval_iterations & 1];
    return all->n && !cut ? all->sum / (double)all->n : NAN;
}

/* ---- what is not finite ---------------------------------------------------------------------------------------- */

const char *not_finite_advice(const struct trainer *trainer)
{
    if (trainer->settings->clip > 0)
        return "try a smaller --lr or more --warmup; if the run began with --init, check that file";
    return "try --clip 1, a smaller --lr or more --warmup; if the run began with --init, check that file";
}

void fail_bad_model(const struct trainer *trainer, uint32_t step, const char *parameter)
{
    this_process->not_finite = true;
    if (parameter)
        fail(EXIT_FAILED,
             "step %u: its update left values in parameter %s that are not finite, and nothing is saved; %s", step,
             parameter, not_finite_advice(trainer));
    fail(EXIT_FAILED, "step %u: the validation loss is not finite, though all parameters are; %s", step,
         not_finite_advice(trainer));
}

void fail_not_finite(struct trainer *trainer, uint32_t step, const struct result *result)
{
    drain(trainer->train_list);
    tell_step_not_finite(trainer, step, result);
    fail(EXIT_FAILED, "step %u: the loss or the gradient's norm is not finite; %s", step, not_finite_advice(trainer));
}
