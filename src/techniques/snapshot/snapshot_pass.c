/* snapshot_pass.c - has the pass, which stores all updates of the list, and the report of `yard plan`: which iterations
 * are recoverable in the simulation, from when on, and what to change.  The technique itself is in snapshot.c.
 */
#include "planning/pass/traits.h"
#include "planning/predict/forecast.h"
#include "snapshot.h"
#include "snapshot_file.h" /* defines: snapshot_form */
#include "trainer/train/settings.h"

#include <math.h>

/* ---- which iterations are stored, and when ----------------------------------------------------------------------- */

struct outcome {        /* what becomes of an iteration; all in seconds */
    double begin;       /* the start of its first copy; INFINITY: it is dropped */
    double recoverable; /* the end of its last persist; the page is written then, too */
    double durable;     /* the end of its commit, whose time is that of the flush */
};

/* The outcome of iteration i, from 1.  The last sim->pattern simulated iterations repeat for ever; see pattern.c. */
static struct outcome outcome_at(const struct simulation *sim, int iteration)
{
    struct outcome outcome = {.begin = INFINITY};
    int beyond = MAX(iteration - sim->steps, 0);
    int rounds = (beyond + sim->pattern - 1) / sim->pattern;
    const struct moment *moments = &sim->moments[(size_t)(iteration - rounds * sim->pattern - 1) * sim->list->n];
    double shift = rounds * sim->pattern * sim->period;
    for (size_t i = 0; i < sim->list->n; i++) {
        const struct task *task = sim->list->tasks[i];
        const struct moment *moment = &moments[i];
        if (!task->member.needed || moment->skipped)
            continue;
        outcome.begin = fmin(outcome.begin, moment->start + shift);
        if (task->member.returned)
            outcome.durable = moment->end + shift;
        else if (task->lane->kind == LANE_DISK)
            outcome.recoverable = moment->end + shift;
    }
    return outcome;
}

/* The longest time from the end of an update to the end of the copies for which the unit's next update waits.  In the
 * list the copies come right after the update, which is thus the last task before them.  Where the update skips an
 * iteration, the time begins with the copies. */
static double longest_hold(const struct simulation *sim)
{
    const struct moment *moments = &sim->moments[(size_t)sim->first * sim->list->n];
    const struct moment *update = moments;
    double hold = 0;
    for (size_t i = 0; i < (size_t)sim->pattern * sim->list->n; i++) {
        const struct task *task = sim->list->tasks[i % sim->list->n];
        if (!task->member.needed) {
            update = &moments[i];
        } else if (is_copy(task) && !task->member.aside && !moments[i].skipped) {
            double from = update->skipped ? moments[i].start : update->end;
            hold = fmax(hold, moments[i].end - from);
        }
    }
    return hold;
}

/* ---- sentences --------------------------------------------------------------------------------------------------- */

struct telling {
    struct pass_report *report;
    const struct costs *costs;
    double other_period; /* the period with copies in the other place */
};

/* Says how often an iteration can be stored without any being dropped.  disk, links: the seconds that the disk and the
 * links need for one iteration. */
static void advise(const struct telling *telling, const struct simulation *sim, double disk, double links,
                   const struct outcome *first)
{
    char **text = &telling->report->reason;
    int under_way = snapshot_options.slots - 1; /* the newest commit keeps one slot */
    if (!under_way) {
        append_text(text, ": the newest commit holds the only slot");
        return;
    }
    double apart = fmax(fmax(disk, links), (first->durable - first->begin) / under_way);
    double advised = fmax(ceil(apart / fmin(sim->period, telling->other_period) - 1e-6), 1);
    const char *slower = disk < links ? "links keep" : "disk keeps";
    if (advised > MOST_EVERY)
        append_text(text, "; the %s up with one iteration in %.0f, and --snapshot-every takes at most %d", slower,
                    advised, MOST_EVERY);
    else
        append_text(text, "; the %s up with --snapshot-every %.0f", slower, advised);
}

static void list_commits(const struct simulation *sim, json_t *commits, json_t *dropped)
{
    const int every = snapshot_options.every;
    for (int i = every; i <= snapshot_options.iterations; i += every) {
        struct outcome outcome = outcome_at(sim, i);
        if (isfinite(outcome.begin))
            json_array_append_new(commits, json_pack("{s:i, s:f, s:f}", "iteration", i, "written_ms",
                                                     1e3 * outcome.recoverable, "durable_ms", 1e3 * outcome.durable));
        else
            json_array_append_new(dropped, json_integer(i));
    }
}

/* The seconds that the disk and the links need for what one iteration stores. */
static void sum_seconds(const struct simulation *sim, double *disk, double *links)
{
    *disk = 0;
    *links = 0;
    for (size_t i = 0; i < sim->list->n; i++) {
        const struct task *task = sim->list->tasks[i];
        if (task->member.needed && task->lane->kind == LANE_DISK)
            *disk += sim->seconds[i];
        else if (task->member.needed && task->lane->kind != LANE_COMPUTE)
            *links += sim->seconds[i];
    }
}

/* Adds to the report what the simulation says of commits: a simulation_look, argument: struct telling. */
static void tell_times(void *argument, const struct simulation *sim)
{
    const struct telling *telling = argument;
    const int every = snapshot_options.every;
    json_t *dropped = json_object_get(telling->report->fields, "dropped");
    char **text = &telling->report->reason;
    double disk, links; /* seconds for an iteration */
    struct outcome first = outcome_at(sim, every);
    sum_seconds(sim, &disk, &links);
    list_commits(sim, json_object_get(telling->report->fields, "commits"), dropped);
    if (disk > 0 && (!telling->costs || sim->list->pool->machine->host->described.disk))
        append_text(text, "; the disk needs %.3f ms for them", 1e3 * disk);
    else
        append_text(text, "; no link disk says how fast the disk is, so it counts as if it took no time");
    append_text(text, "; iteration %d is recoverable after %.3f ms, durable after %.3f ms", every,
                1e3 * first.recoverable, 1e3 * first.durable);
    append_text(text, "; %zu of %d iterations dropped", json_array_size(dropped), snapshot_options.iterations / every);
    if (json_array_size(dropped))
        advise(telling, sim, disk, links, &first);
    report_ms(telling->report, "held_ms", "the next update is held for at most", longest_hold(sim));
}

/* Bytes that are stored in each slot, and the ways by which they come there. */
struct ways {
    size_t updates;
    double bytes;     /* all that an iteration stores */
    double on_device; /* size of the devices' buffers, for all slots */
    double chosen;    /* bytes that go straight to the host: --overlap local decides in the step who updates them */
    double on_host;   /* bytes that are on the host when they are updated */
};

/* Adds up the bytes of all tasks that store something. */
static struct ways measure_ways(const struct list *list)
{
    struct ways ways = {.updates = 0};
    for (size_t i = 0; i < list->n; i++) {
        const struct task *task = list->tasks[i];
        if (!task->member.needed || task->member.returned)
            continue;
        /* A persist task, which is no copy, has its buffer as its first access. */
        const struct tensor *tensor = is_copy(task) ? copy_source(task) : task->accesses[0].tensor;
        if (!is_copy(task)) {
            ways.updates++;
            ways.bytes += (double)tensor->bytes;
        } else if (task->lane->kind == LANE_COMPUTE) {
            ways.on_device += list->pool->ring.n * (double)round_up(tensor->bytes, tensor->device->alignment);
        } else if (tensor->device->is_host && !task->condition.needs) {
            ways.on_host += (double)tensor->bytes;
        } else if (!tensor->device->is_host && task->condition.needs) {
            ways.chosen += (double)tensor->bytes;
        }
    }
    return ways;
}

/* Says which bytes go by way of the device under --snapshot-in device. */
static void describe_place(const struct ways *ways, char **text)
{
    char bytes[32];
    if (ways->on_device > 0)
        append_text(text, ", by way of %s on the device", format_bytes(bytes, ways->on_device));
    else
        append_text(text, "; --snapshot-in device has no effect here");
    if (ways->chosen > 0)
        append_text(text, ": %s go straight to the host, since --overlap local decides in the step who updates them",
                    format_bytes(bytes, ways->chosen));
    if (ways->on_host > 0)
        append_text(text, ": %s are on the host when they are updated", format_bytes(bytes, ways->on_host));
}

/* Writes the report's fields, and its sentence on the list as the pass has left it.  other: the period, in seconds,
 * with copies in the other place of enum snapshot_in; NAN where it is not known. */
static void report_snapshot(struct list *list, const struct costs *costs, const struct run_facts *facts, double other,
                            struct pass_report *report)
{
    const bool in_device = snapshot_options.place == IN_DEVICE;
    const struct ways ways = measure_ways(list);
    struct telling telling = {.report = report, .costs = costs, .other_period = other};
    char bytes[32];
    report->fields =
        json_pack("{s:[], s:[], s:s, s:I, s:n}", "commits", "dropped", "in", ways.on_device > 0 ? "device" : "host",
                  "device_bytes", (json_int_t)ways.on_device, "held_ms");
    if (!ways.updates) {
        report->reason =
            copy_string("nothing can be stored, since the list has no update whose gradient its own device has summed");
        return;
    }
    report->reason = format_string("%s of %zu updates into each of %d slots of %s", format_bytes(bytes, ways.bytes),
                                   ways.updates, snapshot_options.slots, snapshot_options.file);
    if (in_device)
        describe_place(&ways, &report->reason);
    report->after = keep_forecast(forecast_list_within(list, costs, INFINITY, tell_times, &telling));
    if (facts->clipped)
        append_text(&report->reason,
                    "; --clip holds all updates until the last backward has ended, so nothing is stored "
                    "before; --clip 0 stores each layer right after its backward");
    if (in_device && report->after->excess_bytes > 0)
        refuse_too_large(list->pool->machine, report->after, "--snapshot-in device", SAME_LIST);
    report_ms(report, "host_ms", "with copies in the host a step takes", in_device ? other : report->after->period);
    report_ms(report, "device_ms", "on the device", in_device ? report->after->period : other);
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

/* Adds the commit, which stays the last task of the list, since all others are inserted before it.  So with --serial
 * the report, for which the commit waits, comes before it. */
static void add_commit(const struct snapshot_edit *snapshot_edit)
{
    struct list *list = snapshot_edit->list;
    struct device *host = list->pool->machine->host;
    list->tags.role = ROLE_SNAPSHOT;
    struct task *task = in_slot(add_host(list, host->lanes[LANE_DISK], "commit", NULL, NULL));
    task->member.aside = true;
    task->member.returned = true;
    if (snapshot_edit->by_hand)
        task->seconds = host->described.disk ? host->described.disk->latency : 0;
}

/* Adds all tasks.  Returns how many updates are stored. */
static size_t store_all(struct snapshot_edit *snapshot_edit)
{
    struct list *list = snapshot_edit->list;
    size_t n = list->n, updates = 0;
    size_t *bytes = bytes_to_store(list->tasks, n, list->pool);
    list->pool->ring.n = snapshot_options.slots;
    add_commit(snapshot_edit);
    for (size_t i = 0; i < n; i++) {
        struct task *update = list->tasks[i];
        if (!bytes[i])
            continue;
        struct task *last = last_on_host(list, n, update);
        if (last)
            store_either(snapshot_edit, update, last, n, bytes[i]);
        else
            store_update(snapshot_edit, update, bytes[i]);
        updates++;
    }
    free(bytes);
    return updates;
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static bool wants_snapshot(const struct run_facts *facts) { return snapshot_options.file && !facts->trial; }

/* The period with copies in this place; INFINITY: the list does not fit then. */
static double try_place(struct list *list, const struct costs *costs, enum snapshot_in in)
{
    struct snapshot_edit snapshot_edit = {.list = list, .edit = open_edit(list), .place = in, .by_hand = !costs};
    store_all(&snapshot_edit);
    struct forecast forecast = forecast_list_within(list, costs, 0, NULL, NULL);
    double period = forecast.excess_bytes > 0 ? INFINITY : forecast.period;
    free_forecast(&forecast);
    undo_edit(snapshot_edit.edit);
    return period;
}

static bool run_snapshot(struct list *list, const struct costs *costs, const struct run_facts *facts,
                         struct pass_report *report)
{
    enum snapshot_in in = snapshot_options.place;
    enum snapshot_in other = in == IN_DEVICE ? IN_HOST : IN_DEVICE;
    double other_period = has_times(list, costs) ? try_place(list, costs, other) : NAN;
    struct snapshot_edit snapshot_edit = {.list = list, .edit = open_edit(list), .place = in, .by_hand = !costs};
    bool stored = store_all(&snapshot_edit) > 0;
    if (stored)
        commit_edit(snapshot_edit.edit); /* from here on the list has the tasks */
    else
        undo_edit(snapshot_edit.edit);
    report_snapshot(list, costs, facts, other_period, report);
    return stored;
}

/* Tells passes that run earlier, and look for what fits, how many bytes all buffers will take. */
static void reserve_buffers(struct list *list, const struct run_facts *facts)
{
    (void)facts;
    size_t n;
    struct task **tasks = tasks_in_order(list, &n);
    size_t *bytes = bytes_to_store(tasks, n, list->pool);
    for (size_t i = 0; i < n; i++) {
        bool either = choice_word(tasks[i]) != NULL;
        if (!bytes[i])
            continue;
        new_buffers(list->pool, list->pool->machine->host, bytes[i]);
        for (int k = 0; k < tasks[i]->n_accesses; k++) {
            const struct access *access = &tasks[i]->accesses[k];
            if (snapshot_options.place == IN_DEVICE && is_state(access) && !either && !access->tensor->device->is_host)
                new_buffers(list->pool, access->tensor->device, access->tensor->bytes);
        }
    }
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
    if (!snapshot_options.file)
        return;
    if (snapshot_options.slots == 1)
        warn("--snapshot-slots 1: the first snapshot keeps the only slot, and no later one is stored; use 2 or more");
    if (settings->trains && snapshot_options.every > settings->steps)
        warn("--snapshot-every %d: the last step is %d, so no snapshot is stored; use a smaller one",
             snapshot_options.every, settings->steps);
    settings->demands.kept_elsewhere = true;
}

static const struct option options[] = {
    {.name = "snapshot",
     .type = OPT_KEPT,
     .value = &snapshot_options.file,
     .argument = "FILE",
     .group = GROUP_TECHNIQUES,
     .classes = OF_TRAIN | OF_PLAN,
     .help = "store each unit (a layer, the embedding, or the model's end) in FILE as soon as it is updated, "
             "while the rest of the step goes on. --resume FILE goes on from there after any interruption. "
             "plan does not write FILE, but says when which iteration could be recovered"},
    {.name = "snapshot-every",
     .type = OPT_INT,
     .value = &snapshot_options.every,
     .initial = "1",
     .argument = "K",
     .low = 1,
     .high = MOST_EVERY,
     .group = GROUP_TECHNIQUES,
     .classes = OF_TRAIN | OF_PLAN,
     .help = "store every Kth iteration"},
    {.name = "snapshot-slots",
     .type = OPT_INT,
     .value = &snapshot_options.slots,
     .initial = "2",
     .argument = "S",
     .low = 1,
     .high = MOST_MEMBERS,
     .group = GROUP_TECHNIQUES,
     .classes = OF_TRAIN | OF_PLAN,
     .help = "number of iterations for which the file has room, each in a slot. An iteration that finds no "
             "slot free is dropped, and training does not wait. The newest stored one keeps its slot, so with "
             "1 only the first is stored"},
    {.name = "snapshot-in",
     .type = OPT_CHOICE,
     .value = &snapshot_options.place,
     .initial = "host",
     .argument = WORDS([IN_HOST] = "host", [IN_DEVICE] = "device"),
     .group = GROUP_TECHNIQUES,
     .classes = OF_TRAIN | OF_PLAN,
     .help = "where a unit is copied to before its next update may begin. host: into the host's memory. "
             "device: within the device's memory, with room for S copies. They go down to the host while "
             "training goes on. This is for slow links"},
    {.name = "iterations",
     .type = OPT_INT,
     .value = &snapshot_options.iterations,
     .initial = "16",
     .argument = "N",
     .low = 1,
     .high = 1e6,
     .group = GROUP_PREDICTING,
     .classes = OF_PLAN | OF_STEP_FILE,
     .help = "with --snapshot, report the commits of the first N iterations"},
};
static const struct option_rule rules[] = {{"snapshot-every", "snapshot", NULL},
                                           {"snapshot-slots", "snapshot", NULL},
                                           {"snapshot-in", "snapshot", NULL},
                                           {"iterations", "snapshot", NULL},
                                           {"print-list", "snapshot", "a step file has no words for slots"}};
const struct module module_snapshot = {
    .name = "snapshot",
    .needs = "pass predict reshard",
    .pass = &pass,
    .options = options,
    .n_options = COUNT(options),
    .unrecorded = "snapshot",
    .rules = rules,
    .n_rules = COUNT(rules),
    .check = check_snapshot_options,
    .hooks = &snapshot_hooks,
    .checkpoint_form = &snapshot_form,
};
