/* pass_hooks.c - the hooks of this folder: when a training's lists have been built, passes rewrite the list for
 * training as the options say.  They change the other lists only because these must find the parameters where they lie
 * now.
 */
#include "fetch.h"
#include "pass.h"
#include "trainer/train/hooks.h"
#include "trainer/train/train.h"

static const char *last_pass; /* the name that --after gives; NULL: all passes are done */

struct run_facts facts_of(const struct settings *settings)
{
    return (struct run_facts){
        .seed = (uint64_t)settings->seed,
        .clipped = settings->clip > 0,
        .paced = settings->demands.paced,
        .drawn = settings->demands.draw_seed >= 0 && !settings->demands.trial,
        .draw_seed = (uint64_t)settings->demands.draw_seed,
        .gather = settings->zero == 3,
        .trial = settings->demands.trial,
        .unread = settings->demands.sweeps,
    };
}

struct pass_reports reports_of(const struct trainer *trainer)
{
    const struct pass_reports *reports = *folder_data_of(trainer, &module_pass);
    return reports ? *reports : (struct pass_reports){NULL, 0};
}

static const struct costs *costs_for(const struct trainer *trainer)
{
    const struct forecaster *forecaster = find_forecaster();
    return forecaster ? forecaster->costs(trainer) : NULL;
}

static void rewrite(struct trainer *trainer, struct list *list)
{
    if (trainer->settings->demands.no_passes)
        return;
    struct run_facts facts = facts_of(trainer->settings);
    facts.gather &= trainer->mesh.dp > 1;
    facts.trainer = trainer;
    if (list == trainer->train_list) {
        struct pass_reports *reports = allocate(1, sizeof *reports);
        reports->items = run_passes(list, costs_for(trainer), &facts, last_pass, &reports->n);
        *folder_data_of(trainer, &module_pass) = reports;
    } else {
        run_on_other_list(list, costs_for(trainer), &facts);
        fetch_state(list);
    }
}

static void print_all_reports(struct trainer *trainer)
{
    struct pass_reports reports = reports_of(trainer);
    print_reports(stdout, reports.items, reports.n);
}

static void free_all_reports(struct trainer *trainer)
{
    struct pass_reports *reports = *folder_data_of(trainer, &module_pass);
    if (reports)
        free_reports(reports->items, reports->n);
    free(reports);
}

static void check_pass_options(void)
{
    if (last_pass && !find_pass(last_pass))
        fail(EXIT_USAGE, "--after takes the name of a pass, not \"%s\"; there are: %s", last_pass, pass_names());
}

static const struct option options[] = {
    {.name = "after",
     .type = OPT_TEXT,
     .value = &last_pass,
     .argument = "PASS",
     .group = GROUP_LOOKING,
     .classes = OF_PLAN | OF_STEP_FILE,
     .help = "show the list as it is after that pass"},
};
static const struct hooks hooks = {
    .list_built = rewrite, .summary_printed = print_all_reports, .trainer_closing = free_all_reports};
static const struct training_parts training = {.hooks = &hooks};
const struct module module_pass = {
    .name = "pass",
    .after = "proof lists", /* proof numbers what a list computes before passes rewrite it; a plan's title is printed
                              * before their reports */
    .options = options,
    .n_options = COUNT(options),
    .check = check_pass_options,
    .training = &training,
};
