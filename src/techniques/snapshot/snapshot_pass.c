/* snapshot_pass.c - --snapshot as a pass: its options, and its run.  The technique itself is in snapshot.c. */
#include "planning/pass/traits.h"
#include "planning/predict/forecast.h"
#include "snapshot_parts.h"
#include "trainer/settings/settings.h"

#include <math.h>

struct snapshot_options asked_snapshot;

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static bool wants_snapshot(const struct run_facts *facts) { return asked_snapshot.file && !facts->trial; }

/* Opens an edit, in which the copies are to go to this place. */
static struct snapshot_rewrite begin_snapshots(struct list *list, const struct costs *costs, enum snapshot_place place)
{
    struct snapshot_rewrite rewrite = {
        .list = list, .edit = open_edit(list), .options = asked_snapshot, .no_costs = !costs};
    rewrite.options.place = place;
    return rewrite;
}

/* Seconds of a step with copies to this place; INFINITY: the list does not fit then. */
static double try_place(struct list *list, const struct costs *costs, enum snapshot_place place)
{
    struct snapshot_rewrite rewrite = begin_snapshots(list, costs, place);
    store_all(&rewrite);
    struct forecast forecast = forecast_list_within(list, costs, 0, NULL, NULL);
    double period = forecast_fits(&forecast) ? forecast.period : INFINITY;
    free_forecast(&forecast);
    undo_edit(rewrite.edit);
    return period;
}

static bool run_snapshot(struct list *list, const struct costs *costs, const struct run_facts *facts,
                         struct pass_report *report)
{
    enum snapshot_place place = asked_snapshot.place;
    enum snapshot_place other = place == IN_DEVICE ? IN_HOST : IN_DEVICE;
    double other_period = has_times(list, costs) ? try_place(list, costs, other) : NAN;
    struct snapshot_rewrite rewrite = begin_snapshots(list, costs, place);
    bool stored = store_all(&rewrite) > 0;
    if (stored)
        commit_edit(rewrite.edit); /* from here on the list has the tasks */
    else
        undo_edit(rewrite.edit);
    report_snapshot(list, costs, facts, other_period, report);
    return stored;
}

/* Reserves the bytes of the buffers for one update, which are those that store_all() would make. */
static void reserve_for_update(struct pool *pool, const struct task *update, size_t bytes)
{
    bool by_device = asked_snapshot.place == IN_DEVICE && !side_word_of(update); /* else straight to the host */
    new_buffers(pool, pool->machine->host, bytes, asked_snapshot.slots);
    for (int i = 0; i < update->n_accesses; i++) {
        const struct access *access = &update->accesses[i];
        if (by_device && writes_state(access) && !access->tensor->device->is_host)
            new_buffers(pool, access->tensor->device, access->tensor->bytes, asked_snapshot.slots);
    }
}

/* Tells passes that run earlier, and look for what fits, how many bytes all buffers will take. */
static void reserve_buffers(struct list *list, const struct run_facts *facts)
{
    (void)facts;
    size_t n;
    struct task **tasks = tasks_in_order(list, &n);
    size_t *bytes = bytes_to_store(tasks, n, list->pool);
    for (size_t i = 0; i < n; i++)
        if (bytes[i])
            reserve_for_update(list->pool, tasks[i], bytes[i]);
    free(tasks);
    free(bytes);
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static const struct pass_traits traits = {
    .reserve = reserve_buffers,
};
static const struct pass pass = {
    .runs_at = 60,
    .name = "snapshot",
    .wanted = wants_snapshot,
    .run = run_snapshot,
    .turned_on = {NULL},
    .traits = &traits,
};

static void check_snapshot_options(struct settings *settings)
{
    if (!asked_snapshot.file)
        return;
    if (asked_snapshot.slots == 1)
        warn("--snapshot-slots 1: the first snapshot keeps the only slot, and no later one is stored; use 2 or more");
    if (settings->trains && asked_snapshot.every > settings->steps)
        warn("--snapshot-every %d: the last step is %d, so no snapshot is stored; use a smaller number",
             asked_snapshot.every, settings->steps);
    settings->demands.kept_elsewhere = true;
}

static const struct option options[] = {
    {.name = "snapshot",
     .type = OPT_KEPT,
     .value = &asked_snapshot.file,
     .argument = "FILE",
     .group = GROUP_TECHNIQUES,
     .classes = OF_TRAIN | OF_PLAN,
     .help = "store each unit (a layer, the embedding, the model's end) in FILE as soon as it is updated, "
             "while the step goes on. --resume FILE goes on from there after any interruption. `yard plan` "
             "does not write FILE, but says when each step could be recovered"},
    {.name = "snapshot-every",
     .type = OPT_INT,
     .value = &asked_snapshot.every,
     .initial = "1",
     .argument = "K",
     .low = 1,
     .high = MOST_EVERY,
     .group = GROUP_TECHNIQUES,
     .classes = OF_TRAIN | OF_PLAN,
     .help = "store every Kth step"},
    {.name = "snapshot-slots",
     .type = OPT_INT,
     .value = &asked_snapshot.slots,
     .initial = "2",
     .argument = "S",
     .low = 1,
     .high = MOST_SLOTS,
     .group = GROUP_TECHNIQUES,
     .classes = OF_TRAIN | OF_PLAN,
     .help = "number of steps for which the file has room, each in a slot. A step that finds no slot "
             "free is dropped, and training does not wait. The newest stored step keeps its slot, so with "
             "one slot only the first step is stored"},
    {.name = "snapshot-in",
     .type = OPT_CHOICE,
     .value = &asked_snapshot.place,
     .initial = "host",
     .argument = WORDS([IN_HOST] = "host", [IN_DEVICE] = "device"),
     .group = GROUP_TECHNIQUES,
     .classes = OF_TRAIN | OF_PLAN,
     .help = "where a unit is copied to before its next update may begin. host: into the host's memory. "
             "device: within the device's memory, which needs room for S copies; from there they go to the host "
             "while training goes on. This is for slow links"},
    {.name = "iterations",
     .type = OPT_INT,
     .value = &asked_snapshot.iterations,
     .initial = "16",
     .argument = "N",
     .low = 1,
     .high = 1e6,
     .group = GROUP_PREDICTING,
     .classes = OF_PLAN | OF_STEP_FILE,
     .help = "with --snapshot, report the commits of the first N steps"},
};
static const struct option_rule rules[] = {{"snapshot-every", NEEDS, "snapshot", NULL},
                                           {"snapshot-slots", NEEDS, "snapshot", NULL},
                                           {"snapshot-in", NEEDS, "snapshot", NULL},
                                           {"iterations", NEEDS, "snapshot", NULL},
                                           {"print-list", EXCLUDES, "snapshot", "a step file cannot describe slots"}};
static const struct training_parts training = {.hooks = &snapshot_hooks};
static const struct planning_parts planning = {.pass = &pass};
const struct module module_snapshot = {
    .name = "snapshot",
    .needs = "pass predict checkpoint snapfile",
    .planning = &planning,
    .options = options,
    .n_options = COUNT(options),
    .unrecorded = "snapshot",
    .rules = rules,
    .n_rules = COUNT(rules),
    .check_settings = check_snapshot_options,
    .training = &training,
};
