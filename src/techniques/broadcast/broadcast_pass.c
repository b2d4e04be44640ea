/* broadcast_pass.c - the broadcast pass: whether slices gain time, the report, and the options.
 *
 * The report gives the period, the period with one queue, and a bound: the time that the fullest link needs for all
 * broadcasts of a step.  Where one queue fills a link, more queues save only latency.
 */
#include "order.h"
#include "techniques/pass/traits.h"
#include "tools/predict/predict.h"

#include <math.h>

/* ---- what it comes to -------------------------------------------------------------------------------------------- */

/* Seconds that the fullest link needs for the broadcasts of a step; NAN: no link is described. */
static double find_bound(const struct step *s)
{
    const struct machine *m = s->pool->machine;
    double *seconds = allocate(m->n_links + 1, sizeof *seconds), most = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct link *link[2];
        const struct task *t = s->task[i];
        if (!is_broadcast(t))
            continue;
        links_of(t, link);
        for (int k = 0; k < 2; k++)
            if (link[k])
                seconds[link[k]->index] += (double)copy_target(t)->bytes / link[k]->rate / t->when.every;
    }
    for (size_t i = 0; i < m->n_links; i++)
        most = fmax(most, seconds[i]);
    free(seconds);
    return m->n_links ? most : NAN;
}

/* Does a broadcast of the list go through the host? */
static bool is_staged(const struct step *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct access *a = s->task[i]->access;
        if (is_broadcast(s->task[i]) && (a[0].tensor->device->is_host || a[1].tensor->device->is_host))
            return true;
    }
    return false;
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

struct tally { /* the bytes that a queue sends of a layer */
    int slices;
    size_t bytes;
};

/* The first shard of the same owner and layer, which counts for all: without a layer an owner has several. */
static size_t first_same_shard(const struct broadcast *b, size_t shard)
{
    size_t i = 0;
    while (b->shards[i].owner != b->shards[shard].owner || b->shards[i].layer != b->shards[shard].layer)
        i++;
    return i;
}

/* [shard * queues + queue], which the caller frees. */
static struct tally *count_slices(const struct broadcast *b)
{
    size_t queues = (size_t)b->options.queues;
    struct tally *tally = allocate(b->n_shards * queues + 1, sizeof *tally);
    for (size_t i = 0; i < b->n_shards; i++) {
        struct tally *by_queue = &tally[first_same_shard(b, i) * queues];
        for (int nth = 0; nth < b->shards[i].slices; nth++)
            by_queue[b->shards[i].queue[nth]].slices++;
    }
    for (const struct message *message = b->messages; message < b->messages + b->n_messages; message++) {
        struct tally *by_queue = &tally[first_same_shard(b, message->shard) * queues];
        for (int nth = 0; nth < b->shards[message->shard].slices && !message->repeated; nth++) {
            struct slice slice = slice_of(b, message, nth);
            if (slice.begin < slice.end)
                by_queue[slice.queue].bytes += slice.end - slice.begin;
        }
    }
    return tally;
}

static json_t *queues_json(const struct broadcast *b)
{
    json_t *rows = json_array();
    struct tally *tally = count_slices(b);
    for (size_t i = 0; i < b->n_shards; i++) {
        if (first_same_shard(b, i) != i)
            continue;
        for (int j = 0; j < b->options.queues; j++) {
            const struct tally *t = &tally[i * (size_t)b->options.queues + (size_t)j];
            json_t *row = json_pack("{s:s, s:i, s:i, s:i, s:I}", "device", b->shards[i].owner->id, "queue", j, "layer",
                                    b->shards[i].layer, "slices", t->slices, "bytes", (json_int_t)t->bytes);
            json_array_append_new(rows, row);
        }
    }
    free(tally);
    return rows;
}

static char *describe_slices(const struct broadcast *b, const struct run_facts *facts, bool staged)
{
    int senders = count_sending_queues(b), slices = 0;
    if (!b->n_shards)
        return copy_string("the list has no copy of role broadcast between devices");
    for (size_t i = 0; i < b->n_shards; i++)
        slices += b->shards[i].slices;
    char *text = format_string("%d slices of %zu shards", slices, b->n_shards);
    append_text(&text, ", dealt %s", b->options.deal == DEAL_RANDOM ? "at random" : "evenly");
    append_text(&text, " to %d queue%s", senders, senders == 1 ? "" : "s");
    append_text(&text, " %s the main one", b->options.main == MAIN_BOTH ? "with" : "beside");
    append_text(&text, ", %s", staged ? "through the host" : "directly");
    if (b->by_use)
        append_text(&text, ", in order of use");
    if (facts->gather)
        append_text(&text, ", each time they are gathered");
    return text;
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static bool wants_broadcast(const struct run_facts *facts)
{
    (void)facts; /* what is asked of the other techniques */
    return broadcast_options.queues > 0;
}

/* Bytes: slices begin at multiples of it on every device. */
static size_t largest_alignment(const struct machine *m)
{
    size_t largest = 1;
    for (int d = 0; d < m->n_devices; d++)
        largest = MAX(largest, m->device[d].alignment);
    return largest;
}

static bool run_broadcast(struct step *s, const struct costs *c, const struct run_facts *facts, struct pass_report *r)
{
    struct broadcast b = {
        .step = s, .seed = facts->seed, .options = broadcast_options, .align = largest_alignment(s->pool->machine)};
    struct periods periods = choose_order(&b, c);
    struct edit *e = slice_list(&b);
    commit(e);
    bool sent = b.n_shards > 0, staged = is_staged(s);
    if (sent && b.options.slices < count_sending_queues(&b))
        warn("--broadcast-slices %d for %d queues that send: in each layer some have nothing to do", b.options.slices,
             count_sending_queues(&b));
    r->reason = describe_slices(&b, facts, staged);
    r->fields = json_pack("{s:o, s:s}", "queues", queues_json(&b), "bound", staged ? "staged" : "direct");
    report_ms(r, "period_ms", NULL, periods.period);
    report_ms(r, "one_queue_ms", sent ? "one queue: a step of" : NULL, periods.one_queue);
    report_ms(r, "bound_ms", sent ? "the fullest link" : NULL, find_bound(s));
    free_messages(&b);
    return sent;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static const struct option options[] = {
    {.name = "broadcast-queues",
     .type = OPT_INT,
     .value = &broadcast_options.queues,
     .initial = "0",
     .argument = "N",
     .low = 0,
     .high = 64,
     .group = GROUP_TECHNIQUES,
     .commands = OF_LIST,
     .help = "send parameters to the other devices over N queues of each device: those that were updated, and "
             "with --zero 3 those that are gathered. One of the N queues is the main queue, which computes "
             "(0: the pass is off, and a single queue beside the main one sends)"},
    {.name = "broadcast-slices",
     .type = OPT_INT,
     .value = &broadcast_options.slices,
     .initial = "16",
     .argument = "M",
     .low = 1,
     .high = 4096,
     .group = GROUP_TECHNIQUES,
     .commands = OF_LIST,
     .help = "cut the part of a layer that a device sends into M slices, of at least 512 bytes"},
    {.name = "broadcast-deal",
     .type = OPT_CHOICE,
     .value = &broadcast_options.deal,
     .initial = "even",
     .argument = WORDS([DEAL_EVEN] = "even", [DEAL_RANDOM] = "random"),
     .group = GROUP_TECHNIQUES,
     .commands = OF_LIST,
     .help = "how slices are dealt to the queues (random: by --seed)"},
    {.name = "broadcast-main",
     .type = OPT_CHOICE,
     .value = &broadcast_options.main,
     .initial = "both",
     .argument = WORDS([MAIN_BOTH] = "both", [MAIN_COMPUTE] = "compute"),
     .group = GROUP_TECHNIQUES,
     .commands = OF_LIST,
     .help = "the main queue computes and sends, or only computes while the other N - 1 send"},
};
static const struct option_rule rules[] = {{"broadcast-slices", "broadcast-queues", NULL},
                                           {"broadcast-deal", "broadcast-queues", NULL},
                                           {"broadcast-main", "broadcast-queues", NULL}};

static void check_broadcast_options(struct settings *s)
{
    (void)s;
    if (broadcast_options.queues == 1 && broadcast_options.main == MAIN_COMPUTE)
        fail(EXIT_USAGE, "--broadcast-queues 1 --broadcast-main compute: no queue is left to send: use 2 or more");
}

static const struct pass_traits traits = {
    .sends_copies = true,
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
const struct module module_broadcast = {
    .name = "broadcast",
    .needs = "pass predict",
    .table_place = 26,
    .pass = &pass,
    .options = options,
    .n_options = COUNT(options),
    .rules = rules,
    .n_rules = COUNT(rules),
    .check = check_broadcast_options,
};
