/* trainer.c - makes a trainer: opens a machine and data, makes a model and its lists as the settings say.
 * It takes them from the settings in trainer_settings.c, checks mesh and batch in sizes.c, and --save's folder in
 * save_folder.c.
 */
#include "hooks.h"
#include "log.h"
#include "train_parts.h"
#include "trainer/settings/archive.h"

#include <unistd.h>

static struct process_facts own_facts;
struct process_facts *this_process = &own_facts;

double tokens_per_step(const struct trainer *trainer) { return (double)trainer->batch * trainer->seq_len; }

/* ---- its lists and its model ------------------------------------------------------------------------------------- */

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
    size_t n = lists_of(trainer, all);
    for (size_t i = 0; i < n; i++)
        tell_list_built(trainer, all[i]);
}

static void set_model(struct trainer *trainer, bool trains)
{
    const struct gradients gradients = {
        .dropped = trainer->mesh.zero >= 2 && trainer->micros == 1,
        .grouped = trains && trainer->settings->grad_groups > 1,
    };
    trainer->model =
        new_model(trainer->pool, &trainer->config, &trainer->mesh, trains ? TO_TRAIN : TO_COMPUTE, gradients);
}

/* ---- a trainer --------------------------------------------------------------------------------------------------- */

/* machine -> mesh -> sizes -> model -> lists */
static struct trainer *assemble_trainer(const struct settings *settings, const struct config *config,
                                        struct dataset *data, unsigned wanted)
{
    struct trainer *trainer = allocate(1, sizeof *trainer);
    *trainer = (struct trainer){.settings = settings, .data = data, .config = *config, .extra.lock = NONE};
    trainer->is_draft = wanted & ONLY_DRAFT;
    trainer->folder_data = allocate(n_modules, sizeof *trainer->folder_data);
    bool separate = false; /* does each device have a context of its own? */
    trainer->machine = ask_machine(trainer, &separate);
    if (!trainer->machine) /* devices as -d says */
        trainer->machine = open_machine_for(settings, separate);
    set_mesh(trainer);
    set_batch(trainer, wanted);
    make_feeds(trainer);
    if (wanted & LIST_TRAIN) {
        set_rate(trainer);
        set_batches_ahead(trainer);
    }
    tell_machine_opened(trainer);
    trainer->pool = new_pool(trainer->machine);
    set_model(trainer, wanted & LIST_TRAIN);
    build_lists(trainer, wanted);
    return trainer;
}

/* Opens data if they are wanted, and assembles a trainer of the sizes that they and the settings have. */
static struct trainer *open_trainer(const struct settings *settings, unsigned wanted)
{
    bool has_model = settings->source.path;
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
    size_t n = lists_of(trainer, all);
    execution.serial = trainer->settings->serial;
    must(finish_lists(trainer->pool, all, n));
    if (trainer->settings->save)
        open_folder_of_save(trainer);
    trainer->extra.log = open_log(trainer->settings->log);
    tell_lists_ready(trainer);
}

struct trainer *new_trainer(const struct settings *settings, unsigned wanted)
{
    struct trainer *trainer = open_trainer(settings, wanted);
    make_ready(trainer);
    return trainer;
}

/* ---- trainers for other commands, and the end of a trainer ------------------------------------------------------- */

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
    size_t n = lists_of(trainer, all);
    for (size_t i = 0; i < n; i++)
        drain(all[i]);
    tell_trainer_closing(trainer);
    for (size_t i = 0; i < n; i++)
        free_list(all[i]);
    stop_lane_threads(trainer->machine);
    free_model(trainer->model);
    free_mesh(&trainer->mesh);
    free_pool(trainer->pool);
    close_machine(trainer->machine);
    if (trainer->extra.lock != NONE)
        close(trainer->extra.lock);
    if (trainer->data)
        close_dataset(trainer->data);
    free_feeds(trainer);
    free(trainer->rank_losses);
    free(trainer->extra.sample_window);
    free(trainer->folder_data);
    free(trainer);
}
