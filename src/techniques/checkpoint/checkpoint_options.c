/* checkpoint_options.c - the folder's options of yard train, --resume and --keep; its module. */
#include "resume.h"

struct checkpoint_options asked_checkpoint;

static const struct option options[] = {
    {.name = "resume",
     .type = OPT_INPUT,
     .value = &asked_checkpoint.resume,
     .argument = "DIR|FILE",
     .group = GROUP_LOOKING,
     .classes = OF_TRAIN,
     .help = "go on from a checkpoint (--save DIR also writes DIR/step-N), from the newest checkpoint in a "
             "folder, or from a snapshot. Sizes, data, options and strategy are as saved, except for what the "
             "command line says. With another number of devices dp is changed"},
    {.name = "keep",
     .type = OPT_INT,
     .value = &asked_checkpoint.keep,
     .argument = "K",
     .low = 0,
     .high = 1e9,
     .group = GROUP_LOOKING,
     .classes = OF_TRAIN,
     .help = "keep the K newest checkpoints (0: all)"},
};

/* A restart goes on from its own checkpoint, whatever --resume says. */
static void check_checkpoint_options(void)
{
    if (this_process->from)
        asked_checkpoint.resume = this_process->from;
}

static const struct option_rule rules[] = {
    {"keep", NEEDS, "save", NULL},
    {"resume", EXCLUDES, "init", "one goes on from a checkpoint's weights, the other begins from a model's"}};
static const struct foreign_words foreign[] = {
    {"resume",
     "resume-from resume-from-checkpoint load load-checkpoint checkpoint ckpt ckpt-path restore continue continue-from",
     NULL},
    {"keep", "save-total-limit keep-last", NULL},
};
static const struct training_parts training = {.hooks = &checkpoint_hooks, .archive = &archive};
const struct module module_checkpoint = {
    .name = "checkpoint",
    .needs = "reshard",
    .after = "pass", /* whose reports are printed before the line on the run that goes on */
    .options = options,
    .n_options = COUNT(options),
    .foreign = foreign,
    .n_foreign = COUNT(foreign),
    .rules = rules,
    .n_rules = COUNT(rules),
    .check = check_checkpoint_options,
    .training = &training,
};
