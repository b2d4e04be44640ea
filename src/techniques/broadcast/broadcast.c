/* broadcast.c - what an update made goes to the other devices in slices, over several queues at once.
 *
 *     one queue    |AAAAAAAA|BBBBBBBB|            a shard after the other; each copy pays its latency in turn
 *
 *     main         | computes
 *     queue 1      |A0 |A2 |B1 |                  slices in turn to the queues that send: latencies overlap, and
 *     queue 2      |A1 |B0 |B2 |                  layer A's forward starts when A's slices are there
 *
 * Each device has N queues.  Queue 0 is its main one, the compute lane that runs the updates; queue 1 is the lane that
 * has its broadcasts now, and the others are lanes of their own (FOR_QUEUE).  A *message* is what copies of role
 * broadcast bring from one device to others: directly, or down to the host once and up from there.  The messages of a
 * layer on one device are a *shard*.  With --zero 3 what gather.c gathers is sent so, each time.
 *
 * The rule.  A shard is cut into M slices.  They are dealt to the queues that send: the main queue too, in turn with
 * what it computes, or only the other N - 1.  Evenly: in turn, going on where the owner's shard before ended.  At
 * random, with every shard anew: shuffled, one to each queue, the rest as it comes.  Queue j of a device sends to queue
 * j of the others: all copies of a slice are on queue j, and what comes directly is received there.  Device o sends to
 * o + 1, o + 2, ... and begins with another one for every slice, so that none gets everything at once when all send.
 * Shards go as they stand in the list, or in the order of their use, if that takes less time.
 *
 * The rewrite.  Each copy is replaced by one per slice.  Who reads a parameter waits for the slices of its own bytes
 * only: the edges say so.  A slice is received by a copy to itself, which moves nothing: a marker in the queue, for
 * which the readers of the slice wait.  That a message's copies stand side by side, a parent before what it brought, is
 * what send_message() relies on: add_hop() moves them there, or makes another message.
 *
 * Where one queue fills a link, more queues of it gain no more than latency: `bound_ms` is what the fullest link needs.
 *
 * Source: "Multi-stream broadcast method for model parameters of deep learning models" (Baidu, 2023).
 */
#include "broadcast.h"
#include "techniques/pass/pass.h"
#include "tools/predict/predict.h"

#include <math.h>

enum { LEAST_SLICE = 512, SOURCE = -1 };
struct hop { /* a copy of the list */
    struct task *copy;
    int parent;          /* the hop that brought what it sends on, or SOURCE */
    struct task *reader; /* the first one of what arrived: behind the message, else in the next iteration; or NULL */
};
struct message {
    struct tensor *source;
    struct hop *hops; /* a parent before what it brought; they stand behind each other in the list */
    size_t n, cap;
    int shard;
    size_t begin;     /* in the shard's bytes */
    bool repeated;    /* another message has brought the same bytes, elsewhere or for another use */
    size_t at;        /* position in the list */
    size_t first_use; /* the first position, from the list's start, of a task that reads what arrived */
};
struct shard {
    struct device *owner;
    int layer;
    size_t bytes;
    int slices, *queue; /* of each slice */
    struct shard *like; /* the first one that the owner has of the layer (-1: it may have several) counts for all: */
    int *dealt;         /* by queue: slices */
    size_t *sent;       /* bytes */
};
struct broadcast {
    struct step *step;
    uint64_t seed;
    int queues;
    bool by_use;
    size_t align;
    struct message *messages;
    struct shard *shards;
    size_t n_messages, cap_messages, n_shards, cap_shards;
};

struct broadcast_options broadcast_options;

static bool wants_broadcast(const struct run_facts *w)
{
    (void)w; /* what is asked of the other techniques */
    return broadcast_options.queues > 0;
}

static bool at_random(void) { return broadcast_options.deal == DEAL_RANDOM; }
static bool main_sends(void) { return broadcast_options.main == MAIN_BOTH; }

/* ---- what is sent ------------------------------------------------------------------------------------------------ */

static bool is_broadcast(const struct task *t)
{
    return t->copy && t->n_access == 2 && t->role == ROLE_BROADCAST && !t->lane->device->is_host &&
           t->access[0].tensor->device != t->access[1].tensor->device;
}

static bool same_bytes(const struct tensor *a, const struct tensor *b)
{
    return a->storage == b->storage && a->offset == b->offset && a->bytes == b->bytes;
}

/* The copy is a hop of a message, if it sends on what that is or brings, in the same steps, and can stand behind its
 * other hops; else it is a new message.  What does not persist, such as what ZeRO-3 gathers, stays where it is: sooner,
 * it would be held for longer. */
static void add_hop(struct broadcast *b, struct edit *e, struct task *t)
{
    struct tensor *from = t->access[1].tensor;
    for (size_t i = b->n_messages; i-- > 0;) {
        struct message *p = &b->messages[i];
        const struct when *when = &p->hops[0].copy->when;
        struct task *last = p->hops[p->n - 1].copy;
        int parent = (int)p->n - 1;
        while (parent != SOURCE && !same_bytes(p->hops[parent].copy->access[0].tensor, from))
            parent--;
        if ((parent == SOURCE && !same_bytes(p->source, from)) || when->every != t->when.every ||
            when->rest != t->when.rest)
            continue;
        if (last->next == t || (t->access[0].tensor->persistent && hoist(e, t, last->next))) {
            *APPEND(p->hops, p->n, p->cap) = (struct hop){t, parent, NULL};
            return;
        }
    }
    struct message *p = APPEND(b->messages, b->n_messages, b->cap_messages);
    *p = (struct message){.source = from, .at = t->index, .first_use = SIZE_MAX};
    *APPEND(p->hops, p->n, p->cap) = (struct hop){t, SOURCE, NULL};
}

/* Without a layer, each source is a shard. */
static void add_to_shard(struct broadcast *b, struct message *p)
{
    struct device *owner = p->source->device;
    int layer = p->hops[0].copy->layer;
    size_t i = 0;
    for (const struct message *q = b->messages; q < p; q++)
        if (same_bytes(q->source, p->source)) {
            p->shard = q->shard, p->begin = q->begin, p->repeated = true;
            return;
        }
    while (i < b->n_shards && (layer < 0 || b->shards[i].owner != owner || b->shards[i].layer != layer))
        i++;
    if (i == b->n_shards)
        *APPEND(b->shards, b->n_shards, b->cap_shards) = (struct shard){.owner = owner, .layer = layer};
    p->shard = (int)i;
    p->begin = round_up(b->shards[i].bytes, b->align);
    b->shards[i].bytes = p->begin + p->source->bytes;
}

static void survey(struct broadcast *b, struct edit *e)
{
    const struct step *s = b->step;
    const struct machine *m = s->pool->machine;
    size_t n = s->n;
    b->align = 1;
    for (int d = 0; d < m->n_devices; d++)
        b->align = MAX(b->align, m->device[d].alignment);
    for (size_t i = 0; i < n; i++)
        if (is_broadcast(s->task[i]))
            add_hop(b, e, s->task[i]);
    for (struct message *p = b->messages; p < b->messages + b->n_messages; p++) {
        add_to_shard(b, p);
        for (size_t i = 0; i < n; i++)
            for (struct hop *h = p->hops; h < p->hops + p->n && !is_broadcast(s->task[i]); h++)
                if (touches_bytes(s->task[i], h->copy->access[0].tensor, ACCESS_READ)) {
                    p->first_use = MIN(p->first_use, i);
                    if (!h->reader || (h->reader->index < p->at && p->at < i))
                        h->reader = s->task[i];
                }
    }
}

static void free_survey(struct broadcast *b)
{
    for (size_t i = 0; i < b->n_messages; i++)
        free(b->messages[i].hops);
    for (size_t i = 0; i < b->n_shards; i++)
        free(b->shards[i].queue), free(b->shards[i].dealt), free(b->shards[i].sent);
    free(b->messages), free(b->shards);
}

/* ---- dealing ----------------------------------------------------------------------------------------------------- */

static int first_sender(void) { return main_sends() ? 0 : 1; }

static int draw(const struct broadcast *b, const struct shard *s, int nth, int below)
{
    return (int)(random_uniform(b->seed, STREAM_DEAL, (uint32_t)(s - b->shards), (uint64_t)nth) * below);
}

/* order[] says which slice is dealt when.  (No shard is added any more: pointers to them are good.) */
static void deal(const struct broadcast *b, struct shard *s)
{
    int first = first_sender(), senders = b->queues - first, before = 0; /* the owner's slices that were dealt */
    for (const struct shard *q = b->shards; q < s && !at_random(); q++)
        before += q->owner == s->owner ? q->slices : 0;
    size_t most = MIN(s->bytes / LEAST_SLICE, s->bytes / b->align);
    s->slices = (int)MAX(MIN((size_t)broadcast_options.slices, most), 1);
    s->queue = allocate((size_t)s->slices, sizeof *s->queue);
    s->like = b->shards;
    while (s->like->owner != s->owner || s->like->layer != s->layer)
        s->like++;
    if (s->like == s) {
        s->dealt = allocate((size_t)b->queues, sizeof *s->dealt);
        s->sent = allocate((size_t)b->queues, sizeof *s->sent);
    }
    int *order = allocate((size_t)s->slices, sizeof *order);
    for (int i = 0; i < s->slices; i++) { /* a shuffle while it is filled: i goes anywhere up to place i */
        int place = at_random() ? draw(b, s, i, i + 1) : i;
        order[i] = order[place];
        order[place] = i;
    }
    for (int i = 0; i < s->slices; i++) {
        bool drawn = at_random() && i >= senders;
        int queue = first + (drawn ? draw(b, s, s->slices + i, senders) : (before + i) % senders);
        s->queue[order[i]] = queue;
        s->like->dealt[queue]++;
    }
    free(order);
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

/* Of the device on whose lane the copy is, the sender of a direct one and the receiver of what comes from the host: 0,
 * its main queue; 1, the lane that has its broadcasts now; else a lane of its own. */
static struct lane *queue_lane(const struct broadcast *b, const struct task *copy, int j)
{
    struct device *d = copy->lane->device;
    enum lane_kind kind = copy->access[1].tensor->device->is_host ? LANE_UPLOAD : LANE_DOWNLOAD;
    if (j == 0)
        return d->lane[LANE_COMPUTE];
    if (j == 1)
        return copy->lane->kind == kind ? copy->lane : d->lane[kind];
    struct lane *lane = lane_for(b->step->pool->machine, d, kind, FOR_QUEUE + j);
    if (lane->purpose != FOR_QUEUE + j)
        fail(EXIT_USAGE, "--broadcast-queues %d: the link of device %s takes no more %s lanes: use %d", b->queues,
             d->id, lane_kind_name[kind], j);
    return lane;
}

struct slice {
    const struct message *message;
    int number, queue;
    size_t begin, end; /* bytes of the message */
};

static struct tensor *new_part(const struct broadcast *b, struct tensor *of, const struct slice *s)
{
    char name[sizeof of->name];
    snprintf(name, sizeof name, "%.36s.%d", of->name, s->number);
    return new_range(b->step->pool, of, name, s->begin, s->end);
}

/* Right in front of its first reader, so that nothing on the lane waits behind it for longer than for the reader. Where
 * that is the next step's forward, it stands at the list's beginning, and marks the arrival of what the step before
 * sent.  Queue 1's receives are on the device's ordinary lane of copies from others (FOR_MOVES). */
static void receive(const struct broadcast *b, struct edit *e, const struct hop *h, int queue, struct tensor *slice)
{
    struct step *s = b->step;
    struct tags tags = s->tags;
    struct task *cursor = s->cursor;
    struct device *d = slice->device;
    int purpose = queue == 1 ? FOR_MOVES : FOR_QUEUE + queue;
    insert_before(e, h->reader); /* takes the reader's tags: the broadcast's come back */
    s->tags = tags;
    add_copy(s, queue ? lane_for(s->pool->machine, d, LANE_UPLOAD, purpose) : d->lane[LANE_COMPUTE], "receive", slice,
             slice);
    s->cursor = cursor;
}

/* What has arrived goes on: to the host, then around the ring of devices.  Of four, device 0 sends slice 0 to 1, 2, 3,
 * slice 1 to 2, 3, 1, and slice 2 to 3, 1, 2. */
static void send_on(const struct broadcast *b, struct edit *e, const struct slice *s, int parent, struct tensor *from)
{
    int n = b->step->pool->machine->n_devices, owner = s->message->source->device->index % n;
    for (int i = 0; i < n; i++) {
        int due = i == 0 ? 0 : 1 + (s->number + i - 1) % (n - 1);
        for (const struct hop *h = s->message->hops; h < s->message->hops + s->message->n; h++) {
            struct tensor *whole = h->copy->access[0].tensor;
            int turn = whole->device->is_host ? 0 : (whole->device->index + n - owner) % n;
            if (h->parent != parent || turn != due)
                continue;
            struct tensor *to = new_part(b, whole, s);
            struct task *t = add_copy(b->step, queue_lane(b, h->copy, s->queue), h->copy->name, to, from);
            t->origin = h->copy->origin;
            t->when = h->copy->when;
            if (h->copy->seconds >= 0)
                t->seconds = h->copy->seconds * (double)to->bytes / (double)whole->bytes;
            if (h->reader && !from->device->is_host && !to->device->is_host)
                receive(b, e, h, s->queue, to);
            send_on(b, e, s, (int)(h - s->message->hops), to);
        }
    }
}

/* The slices of its shard, as far as they are of this message. */
static void send_message(const struct broadcast *b, struct edit *e, const struct message *p)
{
    const struct shard *s = &b->shards[p->shard];
    size_t grains = ceil_div(s->bytes, b->align), n = (size_t)s->slices;
    insert_before(e, p->hops[0].copy);
    for (size_t k = 0; k < n; k++) {
        size_t begin = MAX(k * grains / n * b->align, p->begin);
        size_t end = MIN((k + 1) * grains / n * b->align, p->begin + p->source->bytes);
        if (begin >= end)
            continue;
        s->like->sent[s->queue[k]] += p->repeated ? 0 : end - begin;
        struct slice slice = {p, (int)k, s->queue[k], begin - p->begin, end - p->begin};
        send_on(b, e, &slice, SOURCE, new_part(b, p->source, &slice));
    }
    for (size_t h = 0; h < p->n; h++)
        drop(e, p->hops[h].copy);
}

ORDER(by_first_use, struct message, BY(a->first_use, b->first_use, COMPARE(a->at, b->at)))

/* A message goes behind those that are needed sooner, as far as the list allows. */
static void sort_messages(struct broadcast *b, struct edit *e)
{
    SORT(b->messages, b->n_messages, by_first_use);
    for (size_t i = 1; i < b->n_messages; i++) {
        struct message *sooner = &b->messages[i - 1], *p = &b->messages[i];
        bool moves = true;
        for (size_t h = p->n; p->at < sooner->at && h-- > 0 && moves;)
            moves = sink(e, p->hops[h].copy, sooner->hops[sooner->n - 1].copy);
        p->at = moves ? MAX(p->at, sooner->at) : p->at;
    }
}

/* The list with slices, in an edit that stays open. */
static struct edit *slice_list(struct broadcast *b)
{
    struct edit *e = open_edit(b->step);
    survey(b, e);
    if (b->by_use)
        sort_messages(b, e);
    for (size_t i = 0; i < b->n_shards; i++)
        deal(b, &b->shards[i]);
    for (size_t i = 0; i < b->n_messages; i++)
        send_message(b, e, &b->messages[i]);
    return e;
}

/* ---- what it comes to -------------------------------------------------------------------------------------------- */

static double try_slices(struct broadcast b, const struct costs *c)
{
    struct edit *e = slice_list(&b);
    struct forecast f = try_step(b.step, c);
    double period = f.period;
    free_forecast(&f);
    undo(e);
    free_survey(&b);
    return period;
}

/* Seconds that the fullest link needs for the broadcasts of a step; NAN: no link is described. */
static double find_bound(const struct step *s, bool *staged)
{
    const struct machine *m = s->pool->machine;
    double *seconds = allocate(m->n_links + 1, sizeof *seconds), most = 0;
    *staged = false;
    for (size_t i = 0; i < s->n; i++) {
        const struct link *link[2];
        const struct task *t = s->task[i];
        if (!is_broadcast(t))
            continue;
        *staged |= t->access[0].tensor->device->is_host || t->access[1].tensor->device->is_host;
        links_of(t, link);
        for (int k = 0; k < 2; k++)
            if (link[k])
                seconds[link[k]->index] += (double)t->access[0].tensor->bytes / link[k]->rate / t->when.every;
    }
    for (size_t i = 0; i < m->n_links; i++)
        most = fmax(most, seconds[i]);
    free(seconds);
    return m->n_links ? most : NAN;
}

static json_t *queues_json(const struct broadcast *b)
{
    json_t *rows = json_array();
    for (const struct shard *s = b->shards; s < b->shards + b->n_shards; s++)
        for (int j = 0; j < b->queues && s->like == s; j++)
            json_array_append_new(rows,
                                  json_pack("{s:s, s:i, s:i, s:i, s:I}", "device", s->owner->id, "queue", j, "layer",
                                            s->layer, "slices", s->dealt[j], "bytes", (json_int_t)s->sent[j]));
    return rows;
}

static bool run_broadcast(struct step *s, const struct costs *c, const struct run_facts *w, struct pass_report *r)
{
    struct broadcast b = {.step = s, .seed = w->seed, .queues = broadcast_options.queues}, other = b;
    int senders = b.queues - first_sender(), slices = 0;
    bool staged;
    double period = try_slices(b, c), one_queue = NAN;
    if (!isnan(period)) { /* whether the order of first use takes less, and what one queue would make of it */
        other.by_use = true;
        double by_use = try_slices(other, c);
        b.by_use = other.by_use = by_use < period;
        period = fmin(period, by_use);
        other.queues = first_sender() + 1;
        one_queue = try_slices(other, c);
    }
    struct edit *e = slice_list(&b);
    commit(e);
    double bound = find_bound(s, &staged);
    for (size_t i = 0; i < b.n_shards; i++)
        slices += b.shards[i].slices;
    if (b.n_shards && broadcast_options.slices < senders)
        warn("--broadcast-slices %d for %d queues that send: in each layer some have nothing to do",
             broadcast_options.slices, senders);
    r->reason =
        b.n_shards
            ? format_string("%d slices of %zu shards, dealt %s to %d queue%s %s the main one, %s%s%s", slices,
                            b.n_shards, at_random() ? "at random" : "evenly", senders, senders == 1 ? "" : "s",
                            main_sends() ? "with" : "beside", staged ? "through the host" : "directly",
                            b.by_use ? ", in order of use" : "", w->gather ? ", each time they are gathered" : "")
            : copy_string("the list has no copy of role broadcast between devices");
    r->fields = json_pack("{s:o, s:s}", "queues", queues_json(&b), "bound", staged ? "staged" : "direct");
    report_ms(r, "period_ms", NULL, period);
    report_ms(r, "one_queue_ms", b.n_shards ? "one queue: a step of" : NULL, one_queue);
    report_ms(r, "bound_ms", b.n_shards ? "the fullest link" : NULL, bound);
    bool any = b.n_shards > 0;
    free_survey(&b);
    return any;
}

static const struct option options[] = {
    {"broadcast-queues", 0, OPT_INT, &broadcast_options.queues, "0", "N", 0, 64, GROUP_TECHNIQUES, OF_LIST,
     "send updated parameters, with --zero 3 gathered ones, to the other devices over N queues of each device. One of "
     "the N is the main queue, which computes (0: off, over one queue beside the main one)"},
    {"broadcast-slices", 0, OPT_INT, &broadcast_options.slices, "16", "M", 1, 4096, GROUP_TECHNIQUES, OF_LIST,
     "cut what a device sends of a layer into M slices, of at least 512 bytes"},
    {"broadcast-deal", 0, OPT_CHOICE, &broadcast_options.deal, "even",
     WORDS([DEAL_EVEN] = "even", [DEAL_RANDOM] = "random"), 0, 0, GROUP_TECHNIQUES, OF_LIST,
     "how slices are dealt to the queues (random: by --seed)"},
    {"broadcast-main", 0, OPT_CHOICE, &broadcast_options.main, "both",
     WORDS([MAIN_BOTH] = "both", [MAIN_COMPUTE] = "compute"), 0, 0, GROUP_TECHNIQUES, OF_LIST,
     "the main queue computes and sends, or only computes while the other N - 1 send"},
};
static const struct law laws[] = {{"broadcast-slices", "broadcast-queues", NULL},
                                  {"broadcast-deal", "broadcast-queues", NULL},
                                  {"broadcast-main", "broadcast-queues", NULL}};

static void check(struct settings *s)
{
    (void)s;
    if (broadcast_options.queues == 1 && broadcast_options.main == MAIN_COMPUTE)
        fail(EXIT_USAGE, "--broadcast-queues 1 --broadcast-main compute: no queue is left to send: use 2 or more");
}

static const struct pass pass = {.sends_copies = true,
                                 .place = 40,
                                 .name = "broadcast",
                                 .wanted = wants_broadcast,
                                 .run = run_broadcast,
                                 .turned_on = {"--broadcast-queues 3 --broadcast-main compute",
                                               "--broadcast-queues 2 --broadcast-slices 5 --broadcast-deal random"}};
const struct module module_broadcast = {.name = "broadcast",
                                        .needs = "pass predict",
                                        .place = 25,
                                        .pass = &pass,
                                        .options = options,
                                        .n_options = COUNT(options),
                                        .laws = laws,
                                        .n_laws = COUNT(laws),
                                        .check = check};
