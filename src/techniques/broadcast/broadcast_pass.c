/* broadcast_pass.c - the broadcast pass: which of two orders takes less time, the report, and the options.
 *
 * The report gives the period, the period with one queue, and a bound: the time that the fullest link needs for all
 * broadcasts of a step.  Where one queue fills a link, more queues save only latency.
 */
#include "broadcast.h"
#include "planning/pass/traits.h"
#include "planning/predict/forecast.h"
#include "trainer/base/json.h"

#include <math.h>

struct broadcast_options asked_broadcast;

/* ---- how long it takes ------------------------------------------------------------------------------------------- */

/* Seconds that the fullest link needs for the broadcasts of a step; NAN: no link is described. */
static double compute_bound(const struct list *list)
{
    const struct machine *machine = list->pool->machine;
    double *seconds = allocate_each(machine->n_links, sizeof *seconds);
    double most = 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct link *links[2];
        const struct task *task = list->tasks[i];
        if (!is_broadcast(task))
            continue;
        links_of(task, links);
        for (int k = 0; k < 2; k++)
            if (links[k])
                seconds[links[k]->index] += (double)copy_target(task)->bytes / links[k]->rate / task->extra.when.every;
    }
    for (int i = 0; i < machine->n_links; i++)
        most = fmax(most, seconds[i]);
    free(seconds);
    return machine->n_links ? most : NAN;
}

enum route { DIRECT, STAGED };

/* How the broadcasts of a list go: all directly from device to device, or some through the host. */
static enum route find_route(const struct list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct task *task = list->tasks[i];
        if (is_broadcast(task) && (copy_target(task)->device->is_host || copy_source(task)->device->is_host))
            return STAGED;
    }
    return DIRECT;
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

struct tally { /* the bytes that a queue sends of a layer */
    int slices;
    size_t bytes;
};

/* The first shard of the same owner and layer, which counts for all: without a layer an owner has several. */
static size_t first_same_shard(const struct broadcast *broadcast, size_t shard)
{
    size_t i = 0;
    while (broadcast->shards[i].owner != broadcast->shards[shard].owner ||
           broadcast->shards[i].layer != broadcast->shards[shard].layer)
        i++;
    return i;
}

/* Counts what each queue sends of each shard: the array has element [shard * queues + queue].  The caller frees it. */
static struct tally *count_slices(const struct broadcast *broadcast)
{
    size_t queues = (size_t)broadcast->options.queues;
    struct tally *tallies = allocate(broadcast->n_shards * queues, sizeof *tallies);
    for (size_t i = 0; i < broadcast->n_shards; i++) {
        struct tally *by_queue = &tallies[first_same_shard(broadcast, i) * queues];
        for (int nth = 0; nth < broadcast->shards[i].slices; nth++)
            by_queue[broadcast->shards[i].queue[nth]].slices++;
    }
    for (size_t i = 0; i < broadcast->n_messages; i++) {
        const struct message *message = &broadcast->messages[i];
        if (message->repeated)
            continue;
        struct tally *by_queue = &tallies[first_same_shard(broadcast, message->shard) * queues];
        for (int nth = 0; nth < broadcast->shards[message->shard].slices; nth++) {
            struct message_part part = part_in_slice(broadcast, message, nth);
            if (part.begin < part.end)
                by_queue[part.queue].bytes += part.end - part.begin;
        }
    }
    return tallies;
}

static json_t *queues_json(const struct broadcast *broadcast)
{
    json_t *rows = json_array();
    struct tally *tallies = count_slices(broadcast);
    for (size_t i = 0; i < broadcast->n_shards; i++) {
        if (first_same_shard(broadcast, i) != i)
            continue;
        for (int j = 0; j < broadcast->options.queues; j++) {
            const struct tally *counted = &tallies[i * (size_t)broadcast->options.queues + (size_t)j];
            json_t *row = json_object();
            set_json_text(row, "device", broadcast->shards[i].owner->id);
            set_json_integer(row, "queue", j);
            set_json_integer(row, "layer", broadcast->shards[i].layer);
            set_json_integer(row, "slices", counted->slices);
            set_json_integer(row, "bytes", (json_int_t)counted->bytes);
            json_array_append_new(rows, row);
        }
    }
    free(tallies);
    return rows;
}

/* The report's sentence; the caller frees it. */
static char *describe_slices(const struct broadcast *broadcast, const struct run_facts *facts, enum route route)
{
    int senders = count_sending_queues(broadcast), slices = 0;
    if (!broadcast->n_shards)
        return copy_string("the list has no copy of role broadcast between devices");
    for (size_t i = 0; i < broadcast->n_shards; i++)
        slices += broadcast->shards[i].slices;
    const char *how = route == STAGED ? "through the host" : "directly";
    const char *which = broadcast->options.main == MAIN_BOTH ? ", the main one among them" : " beside the main one";
    const char *order = broadcast->by_use ? ", in the order of their first use" : "";
    const char *when = facts->gather ? ", each time they are gathered" : "";
    const char *dealt = "";
    if (senders > 1)
        dealt = broadcast->options.deal == DEAL_RANDOM ? ", dealt at random" : ", dealt evenly";
    return format_string("%zu shards of parameters are sent in %d slices, %s, over %d queue%s of each device%s%s%s%s",
                         broadcast->n_shards, slices, how, senders, PLURAL(senders), which, dealt, order, when);
}

/* ---- trying both orders ------------------------------------------------------------------------------------------ */

struct periods {
    double period;    /* seconds of a step with the queues of the options; NAN: not known */
    double one_queue; /* seconds of a step if only one queue sends; NAN: not known */
};

/* The period with slices, seconds; NAN: no times are known.  `plan` has no messages yet. */
static double try_slices(const struct broadcast *plan, const struct costs *costs)
{
    struct broadcast broadcast = *plan;
    struct edit *edit = slice_list(&broadcast);
    struct forecast forecast = forecast_list(broadcast.list, costs);
    double period = forecast.period;
    free_forecast(&forecast);
    undo_edit(edit);
    free_messages(&broadcast);
    return period;
}

/* Sets broadcast->by_use if a step takes less time when shards go in the order of their first use.  Returns the times
 * in the order that is chosen.  The broadcast has no messages before and after the call. */
static struct periods choose_order(struct broadcast *broadcast, const struct costs *costs)
{
    struct periods periods = {.period = try_slices(broadcast, costs), .one_queue = NAN};
    if (isnan(periods.period))
        return periods;
    struct broadcast reordered = *broadcast;
    reordered.by_use = true;
    double period_by_use = try_slices(&reordered, costs);
    if (period_by_use < periods.period) {
        broadcast->by_use = true;
        periods.period = period_by_use;
    }
    struct broadcast one_queue = *broadcast;
    one_queue.options.queues = first_sending_queue(broadcast) + 1; /* the main queue counts, even if it does not send */
    periods.one_queue = try_slices(&one_queue, costs);
    return periods;
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static bool wants_broadcast(const struct run_facts *facts)
{
    (void)facts; /* the options say all */
    return asked_broadcast.queues > 0;
}

/* The largest alignment of a device, in bytes.  Slices begin at multiples of it on every device. */
static size_t largest_alignment(const struct machine *machine)
{
    size_t largest = 1;
    for (int d = 0; d < machine->n_devices; d++)
        largest = MAX(largest, machine->devices[d].alignment);
    return largest;
}

static bool run_broadcast(struct list *list, const struct costs *costs, const struct run_facts *facts,
                          struct pass_report *report)
{
    struct broadcast broadcast = {
        .list = list, .seed = facts->seed, .options = asked_broadcast, .align = largest_alignment(list->pool->machine)};
    struct periods periods = choose_order(&broadcast, costs);
    struct edit *edit = slice_list(&broadcast);
    commit_edit(edit);
    bool sent = broadcast.n_shards > 0;
    enum route route = find_route(list);
    if (sent && broadcast.options.slices < count_sending_queues(&broadcast))
        warn("--broadcast-slices %d for %d queues: in each layer some queues send nothing", broadcast.options.slices,
             count_sending_queues(&broadcast));
    report->reason = describe_slices(&broadcast, facts, route);
    report->fields = json_object();
    json_object_set_new(report->fields, "queues", queues_json(&broadcast));
    set_json_text(report->fields, "bound", route == STAGED ? "staged" : "direct");
    report_ms(report, "period_ms", ONLY_IN_JSON, periods.period);
    report_ms(report, "one_queue_ms", sent ? "with one queue that sends, a step would take" : ONLY_IN_JSON,
              periods.one_queue);
    report_ms(report, "bound_ms", sent ? "the slices of a step need on the fullest link at least" : ONLY_IN_JSON,
              compute_bound(list));
    free_messages(&broadcast);
    return sent;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static const struct option options[] = {
    {.name = "broadcast-queues",
     .type = OPT_INT,
     .value = &asked_broadcast.queues,
     .initial = "0",
     .argument = "N",
     .low = 0,
     .high = 64,
     .group = GROUP_TECHNIQUES,
     .classes = OF_LIST,
     .help = "send parameters to the other devices over N queues of each device: those that were updated, and "
             "with --zero 3 those that are gathered. One of the queues is the main queue, which computes (0: "
             "off, so that one queue beside the main queue sends them all)"},
    {.name = "broadcast-slices",
     .type = OPT_INT,
     .value = &asked_broadcast.slices,
     .initial = "16",
     .argument = "M",
     .low = 1,
     .high = 4096,
     .group = GROUP_TECHNIQUES,
     .classes = OF_LIST,
     .help = "cut the part of a layer that a device sends into M slices, of at least 512 bytes"},
    {.name = "broadcast-deal",
     .type = OPT_CHOICE,
     .value = &asked_broadcast.deal,
     .initial = "even",
     .argument = WORDS([DEAL_EVEN] = "even", [DEAL_RANDOM] = "random"),
     .group = GROUP_TECHNIQUES,
     .classes = OF_LIST,
     .help = "how slices are dealt to the queues (random: by --seed)"},
    {.name = "broadcast-main",
     .type = OPT_CHOICE,
     .value = &asked_broadcast.main,
     .initial = "both",
     .argument = WORDS([MAIN_BOTH] = "both", [MAIN_COMPUTE] = "compute"),
     .group = GROUP_TECHNIQUES,
     .classes = OF_LIST,
     .help = "the main queue computes and sends, or only computes while the other N - 1 send"},
};
static const struct option_rule rules[] = {{"broadcast-slices", NEEDS, "broadcast-queues", NULL},
                                           {"broadcast-deal", NEEDS, "broadcast-queues", NULL},
                                           {"broadcast-main", NEEDS, "broadcast-queues", NULL}};

static void check_broadcast_options(void)
{
    if (asked_broadcast.queues == 1 && asked_broadcast.main == MAIN_COMPUTE)
        fail(EXIT_USAGE, "--broadcast-queues 1 --broadcast-main compute: no queue is left to send: use 2 or more");
}

static const struct pass_traits traits = {
    .always = SENDS_COPIES,
};
static const struct pass pass = {
    .runs_at = 40,
    .name = "broadcast",
    .wanted = wants_broadcast,
    .run = run_broadcast,
    .turned_on = {"--broadcast-queues 3 --broadcast-main compute",
                  "--broadcast-queues 2 --broadcast-slices 5 --broadcast-deal random"},
    .traits = &traits,
};
static const struct planning_parts planning = {.pass = &pass};
const struct module module_broadcast = {
    .name = "broadcast",
    .needs = "pass predict",
    .planning = &planning,
    .options = options,
    .n_options = COUNT(options),
    .rules = rules,
    .n_rules = COUNT(rules),
    .check = check_broadcast_options,
};
