/* training_proofs.c - the proofs that a training asks for: it keeps the values of its lists as they were built, and
 * audits a serial run.
 */
#include "proof.h"
#include "trainer/train/hooks.h"
#include "trainer/train/train.h"

struct proof_options asked_proof;

struct list_values { /* one of the trainer's lists, and its values */
    const struct list *list;
    struct values *values;
    struct list_values *next;
};

struct values *values_of(const struct trainer *trainer, const struct list *list)
{
    const struct list_values *known = *folder_data_of(trainer, &module_proof);
    while (known && known->list != list)
        known = known->next;
    return known ? known->values : NULL;
}

static void keep_values(struct trainer *trainer, struct list *list)
{
    if (!asked_proof.verify || trainer->settings->demands.trial)
        return;
    struct list_values *added = allocate(1, sizeof *added);
    added->list = list;
    added->values = hash_values(list);
    added->next = *folder_data_of(trainer, &module_proof);
    *folder_data_of(trainer, &module_proof) = added;
}

static void choose_runner(struct trainer *trainer)
{
    execution.serial_runner = NULL;
    if (asked_proof.audit && !trainer->settings->demands.trial)
        execution.serial_runner = &audit_runner;
}

static void free_all_values(struct trainer *trainer)
{
    struct list_values *first = *folder_data_of(trainer, &module_proof);
    while (first) {
        struct list_values *next = first->next;
        free_values(first->values);
        free(first);
        first = next;
    }
}

static void check_proof_options(struct settings *settings)
{
    if (asked_proof.audit && !settings->serial)
        fail(EXIT_USAGE, "--audit runs every task alone: add --serial");
}

static const struct option options[] = {
    {.name = "audit",
     .type = OPT_FLAG,
     .value = &asked_proof.audit,
     .group = GROUP_LOOKING,
     .classes = OF_TRAIN,
     .help = "with --serial, run every task three times, each time with another filling of the memory that it "
             "does not declare to read, and compare the results. For the data of this run this shows that "
             "tasks touch what they declare and no more (slow)"},
    {.name = "verify",
     .type = OPT_FLAG,
     .value = &asked_proof.verify,
     .group = GROUP_LOOKING,
     .classes = OF_PLAN | OF_STEP_FILE,
     .help = "prove three things, provided that tasks touch what they declare (`yard train --serial --audit` checks "
             "that): every read sees the right value, every conflict is ordered whatever the timing, and memory is "
             "within the budgets"},
};
static const struct hooks hooks = {
    .machine_opened = choose_runner, .list_built = keep_values, .trainer_closing = free_all_values};
static const struct training_parts training = {.hooks = &hooks};
const struct module module_proof = {
    .name = "proof",
    .options = options,
    .n_options = COUNT(options),
    .check_settings = check_proof_options,
    .training = &training,
};
