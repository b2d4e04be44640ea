/* broadcast.c - new parameters go to the other devices in slices, over several queues at once.
 *
 * In data parallelism each device sums the gradients of the shards that it owns, updates them, and sends the new
 * parameters to all others.  The next forward waits for them.  One queue sends a shard after the other, as a whole:
 *
 *     one queue    |AAAAAAAA|BBBBBBBB|            each copy pays its latency in turn
 *
 *     main         | computes
 *     queue 1      |A0 |A2 |B1 |                  slices in turn to the queues that send: latencies overlap, and
 *     queue 2      |A1 |B0 |B2 |                  layer A's forward starts when A's slices are there
 *
 * Words:
 *
 *     queue      each device has N.  Queue 0 is its main queue, the compute lane that runs the updates.  Each other
 *                queue has two lanes: one sends, and one receives.  Queue 1 has `download` and `upload`, which carry
 *                the broadcasts without this pass too; queue 2 has `download1` and `upload1`, and so on
 *     message    the same bytes on their way to the other devices: directly, or down to the host once and up from
 *                there, or sent on by another device that has received them
 *     hop        a copy of a message; its role is broadcast.  All hops of a message have the same number: from
 *                add_broadcast() when the list was built, or from a step file (msg=)
 *     shard      what a device sends of one layer, by all its messages
 *
 * With --zero 3, each gathering of gather.c is sent in the same way.
 *
 * The rule.
 *
 *     cut      a shard is cut into M slices, fewer where it is small
 *     deal     slices go to the queues that send: all N, where the main queue sends between its computations, or only
 *              the other N - 1.  Evenly: in turn, beginning after the queue that got the last slice of the owner's
 *              previous shard.  At random: the slices of each shard are shuffled, each queue gets one, and then each
 *              slice that is left goes to a queue at random
 *     send     queue j of a device sends to queue j of the others: all copies of a slice are on queue j, and a slice
 *              that comes directly is received on queue j
 *     ring     device o sends to o + 1, o + 2, ..., and begins with another receiver for every slice: so no device
 *              receives from all others at once
 *
 * The rewrite.  The copies of a message become neighbours, and each copy is replaced by one per slice.  No edge is
 * added: a task that reads a parameter waits for the slices of its own bytes, since it reads what their copies write.
 *
 *     before                     after, for slice 0                            lane
 *     w on d1 = w on d0          slice 0 of w on d1 = slice 0 of w on d0       queue j of d0
 *                                receive: writes slice 0 of w on d1 anew       queue j of d1
 *     forward on d1 reads w      forward on d1 reads w                         compute of d1
 *
 * Where a slice comes directly, its copy is on the sender's queue, so a *receive* gives the slice a place on the
 * receiver's queue too.  This is a copy of the slice to itself, which moves nothing.  It reads what the slice's copy
 * wrote, and writes it for the readers, so the readers wait for the receive.  A copy up from the host needs none: it is
 * on the receiver's queue already.
 *
 * Source: "Multi-stream broadcast method for model parameters of deep learning models" (Baidu, 2023).
 */
#include "broadcast.h"

#include <math.h>

enum { LEAST_SLICE = 512 }; /* bytes */

/* ---- which messages there are ------------------------------------------------------------------------------------ */

/* A copy can be cut if it is of role broadcast, by a device, to another device or the host, and waits for its source
 * alone (two accesses). */
bool is_broadcast(const struct task *task)
{
    return is_copy(task) && task->n_accesses == 2 && task->role == ROLE_BROADCAST && !task->lane->device->is_host &&
           copy_target(task)->device != copy_source(task)->device;
}

static bool run_together(const struct task *a, const struct task *b)
{
    return a->extra.when.every == b->extra.when.every && a->extra.when.remainder == b->extra.when.remainder;
}

/* The last message of that number so far, or NULL.  (There are several where a copy could not join the one before.) */
static struct message *find_message(const struct broadcast *broadcast, int number)
{
    for (size_t i = broadcast->n_messages; i > 0; i--)
        if (broadcast->messages[i - 1].number == number)
            return &broadcast->messages[i - 1];
    return NULL;
}

/* The hop that brought the bytes that the copy sends on; SOURCE: it sends the message's source; NO_HOP: other bytes. */
static int find_parent(const struct message *message, const struct task *copy)
{
    const struct tensor *from = copy_source(copy);
    for (size_t h = message->n; h > 0; h--)
        if (same_bytes(copy_target(message->hops[h - 1].copy), from))
            return (int)h - 1;
    return same_bytes(message->source, from) ? SOURCE : NO_HOP;
}

/* Must the copy wait for a whole copy of the message, as after= may say?  Slices would only wait for slices. */
static bool waits_for_whole(const struct list *list, const struct message *message, const struct task *copy)
{
    for (size_t h = 0; h < message->n; h++)
        if (is_after(list, copy, message->hops[h].copy, SAME_STEP))
            return true;
    return false;
}

/* Makes the copy the neighbour of the message's last one; false: other tasks are in its way.  A copy to a tensor that
 * does not persist, such as one that ZeRO-3 gathers, stays where it is: sooner, its bytes would be held for longer. */
static bool bring_beside(struct edit *edit, const struct message *message, struct task *copy)
{
    struct task *behind = message->hops[message->n - 1].copy->next;
    if (behind == copy)
        return true;
    return copy_target(copy)->persistent && hoist_task(edit, copy, behind);
}

/* Adds the copy to the hops of the message whose number it has.  It begins a message where it sends other bytes or runs
 * in other steps, as a step file may say; where it must wait for a whole copy; or where it cannot be a neighbour. */
static void add_hop(struct broadcast *broadcast, struct edit *edit, struct task *copy)
{
    struct message *message = NULL;
    int parent = NO_HOP;
    if (copy->extra.message)
        message = find_message(broadcast, copy->extra.message);
    if (message)
        parent = find_parent(message, copy);
    bool joins = parent != NO_HOP && run_together(copy, message->hops[0].copy) &&
                 !waits_for_whole(broadcast->list, message, copy);
    if (joins)
        joins = bring_beside(edit, message, copy);
    if (!joins) {
        GROW(broadcast->messages, broadcast->cap_messages, broadcast->n_messages + 1);
        message = &broadcast->messages[broadcast->n_messages++];
        *message = (struct message){
            .number = copy->extra.message, .source = copy_source(copy), .position = copy->index, .first_use = SIZE_MAX};
        parent = SOURCE;
    }
    GROW(message->hops, message->cap, message->n + 1);
    message->hops[message->n++] = (struct hop){.copy = copy, .parent = parent};
}

/* Finds the reader of what the hop brings: the first one after the message, or else the first of the next step. */
static void note_reader(const struct uses *uses, struct message *message, struct hop *hop)
{
    const struct tensor *brought = copy_target(hop->copy);
    const struct use_range found = uses_of(uses, brought);
    for (size_t k = 0; k < found.n; k++) {
        struct task *task = found.uses[k].task;
        if (is_broadcast(task) || !touches_bytes(task, brought, ACCESS_READ))
            continue;
        message->first_use = MIN(message->first_use, task->index);
        bool of_next_step = hop->reader && hop->reader->index < message->position;
        if (!hop->reader || (of_next_step && message->position < task->index))
            hop->reader = task;
    }
}

/* ---- which shards ------------------------------------------------------------------------------------------------ */

/* The owner's shard of the layer.  Without a layer, each source is a shard. */
static struct layer_shard *shard_for(struct broadcast *broadcast, struct device *owner, int layer)
{
    if (layer != NONE)
        for (size_t i = 0; i < broadcast->n_shards; i++)
            if (broadcast->shards[i].owner == owner && broadcast->shards[i].layer == layer)
                return &broadcast->shards[i];
    GROW(broadcast->shards, broadcast->cap_shards, broadcast->n_shards + 1);
    struct layer_shard *shard = &broadcast->shards[broadcast->n_shards++];
    *shard = (struct layer_shard){.owner = owner, .layer = layer};
    return shard;
}

static void add_to_shard(struct broadcast *broadcast, struct message *message)
{
    for (const struct message *other = broadcast->messages; other < message; other++)
        if (same_bytes(other->source, message->source)) {
            message->shard = other->shard;
            message->begin = other->begin;
            message->repeated = true;
            return;
        }
    struct layer_shard *shard = shard_for(broadcast, message->source->device, message->hops[0].copy->layer);
    message->shard = (size_t)(shard - broadcast->shards);
    message->begin = round_up(shard->bytes, broadcast->align);
    shard->bytes = message->begin + message->source->bytes;
}

/* Fills in the messages and shards of the list, which is in an open edit, and makes each message's copies neighbours in
 * the list. */
static void fill_messages(struct broadcast *broadcast, struct edit *edit)
{
    const struct list *list = broadcast->list;
    for (size_t i = 0; i < list->n; i++)
        if (is_broadcast(list->tasks[i]))
            add_hop(broadcast, edit, list->tasks[i]);
    struct uses *uses = new_uses(list->tasks, list->n, list->pool);
    for (size_t i = 0; i < broadcast->n_messages; i++) {
        struct message *message = &broadcast->messages[i];
        add_to_shard(broadcast, message);
        for (size_t h = 0; h < message->n; h++)
            note_reader(uses, message, &message->hops[h]);
    }
    free_uses(uses);
}

void free_messages(struct broadcast *broadcast)
{
    for (size_t i = 0; i < broadcast->n_messages; i++)
        free(broadcast->messages[i].hops);
    for (size_t i = 0; i < broadcast->n_shards; i++)
        free(broadcast->shards[i].queue);
    free(broadcast->messages);
    free(broadcast->shards);
}

/* ---- the order of first use -------------------------------------------------------------------------------------- */

static int by_first_use(const void *left, const void *right)
{
    const struct message *a = left;
    const struct message *b = right;
    return BY(a->first_use, b->first_use, COMPARE(a->position, b->position));
}

/* Moves the message to after the one that is needed sooner: the last copy first, so that all keep their order.  Where a
 * task is in the way of a copy, the message counts as being where its first copy is. */
static void sink_message(struct edit *edit, struct message *message, const struct message *sooner)
{
    struct task *behind = sooner->hops[sooner->n - 1].copy;
    for (size_t h = message->n; h > 0; h--)
        if (!sink_task(edit, message->hops[h - 1].copy, behind))
            return;
    message->position = sooner->position;
}

/* Puts the messages in the order of their first use in the next step, as far as the list allows.  In the list they are
 * in the order in which updates end.  broadcast_pass.c tries both. */
static void sort_messages(struct broadcast *broadcast, struct edit *edit)
{
    SORT(broadcast->messages, broadcast->n_messages, by_first_use);
    for (size_t i = 1; i < broadcast->n_messages; i++)
        if (broadcast->messages[i].position < broadcast->messages[i - 1].position)
            sink_message(edit, &broadcast->messages[i], &broadcast->messages[i - 1]);
}

/* ---- cut and deal ------------------------------------------------------------------------------------------------ */

int first_sending_queue(const struct broadcast *broadcast) { return broadcast->options.main == MAIN_BOTH ? 0 : 1; }

int count_sending_queues(const struct broadcast *broadcast)
{
    return broadcast->options.queues - first_sending_queue(broadcast);
}

static void cut_shard(const struct broadcast *broadcast, struct layer_shard *shard)
{
    size_t most = MIN(shard->bytes / LEAST_SLICE, shard->bytes / broadcast->align);
    size_t slices = MIN((size_t)broadcast->options.slices, most);
    shard->slices = (int)MAX(slices, 1);
    shard->queue = allocate_each(shard->slices, sizeof *shard->queue);
}

static void deal_evenly(const struct broadcast *broadcast, struct layer_shard *shard)
{
    int dealt = 0; /* how many of the owner's slices, so far */
    for (const struct layer_shard *other = broadcast->shards; other < shard; other++)
        if (other->owner == shard->owner)
            dealt += other->slices;
    for (int i = 0; i < shard->slices; i++)
        shard->queue[i] = first_sending_queue(broadcast) + (dealt + i) % count_sending_queues(broadcast);
}

/* The shard's nth draw, of 0 to below - 1. */
static int draw(const struct broadcast *broadcast, const struct layer_shard *shard, int nth, int below)
{
    return (int)(random_uniform(broadcast->seed, STREAM_DEAL, (uint32_t)(shard - broadcast->shards), (uint64_t)nth) *
                 below);
}

static void deal_at_random(const struct broadcast *broadcast, struct layer_shard *shard)
{
    int senders = count_sending_queues(broadcast);
    int *order = allocate_each(shard->slices, sizeof *order);
    for (int i = 0; i < shard->slices; i++) { /* a shuffle: slice i goes to a place, the one from there to place i */
        int place = draw(broadcast, shard, i, i + 1);
        order[i] = order[place];
        order[place] = i;
    }
    for (int i = 0; i < shard->slices; i++) {
        int sender = i < senders ? i : draw(broadcast, shard, shard->slices + i, senders);
        shard->queue[order[i]] = first_sending_queue(broadcast) + sender;
    }
    free(order);
}

/* ---- send -------------------------------------------------------------------------------------------------------- */

struct message_part part_in_slice(const struct broadcast *broadcast, const struct message *message, int nth)
{
    const struct layer_shard *shard = &broadcast->shards[message->shard];
    /* Slice k of n has the grains from k * grains / n on.  A grain is `align` bytes: slices begin at its multiples. */
    size_t grains = ceil_div(shard->bytes, broadcast->align);
    size_t n = (size_t)shard->slices, k = (size_t)nth;
    size_t begin = (k * grains / n) * broadcast->align;
    size_t end = ((k + 1) * grains / n) * broadcast->align;
    return (struct message_part){.message = message,
                                 .nth = nth,
                                 .queue = shard->queue[nth],
                                 .begin = MAX(begin, message->begin),
                                 .end = MIN(end, message->begin + message->source->bytes)};
}

/* The bytes of the part in a tensor that the message is sent from, or brings. */
static struct tensor *tensor_of_part(const struct broadcast *broadcast, struct tensor *whole,
                                     const struct message_part *part)
{
    char name[sizeof whole->name];
    snprintf(name, sizeof name, "%.*s.%d", NAME_OF_WHOLE, whole->name, part->nth);
    return new_range(broadcast->list->pool, whole, name, part->begin - part->message->begin,
                     part->end - part->message->begin);
}

/* "queue 2": what a lane is for that is queue 2 alone. */
static const char *for_queue(char out[PURPOSE_NAME], int queue)
{
    snprintf(out, PURPOSE_NAME, "queue %d", queue);
    return out;
}

/* That queue of the device on whose lane the copy is: that is the sender, or, of a copy from the host, the receiver. */
static struct lane *lane_of_queue(const struct broadcast *broadcast, const struct task *copy, int queue)
{
    struct device *device = copy->lane->device;
    enum lane_kind kind = copy_source(copy)->device->is_host ? LANE_UPLOAD : LANE_DOWNLOAD;
    char purpose[PURPOSE_NAME];
    if (queue == 0)
        return device->lanes[LANE_COMPUTE];
    if (queue == 1 && copy->lane->kind == kind) /* a step file may have put the copy on a lane of its own */
        return copy->lane;
    if (queue == 1)
        return device->lanes[kind];
    struct lane *lane = lane_for(broadcast->list->pool->machine, device, kind, for_queue(purpose, queue));
    if (!is_for(lane, purpose))
        fail(EXIT_USAGE, "--broadcast-queues %d: the link of device %s takes no more %s lanes: use %d",
             broadcast->options.queues, device->id, lane_kind_name[kind], queue);
    return lane;
}

/* That queue of a device that receives.  Queue 1's receives are on its lane of copies from others (FOR_MOVES). */
static struct lane *receiving_lane(const struct broadcast *broadcast, struct device *to, int queue)
{
    char word[PURPOSE_NAME];
    if (queue == 0)
        return to->lanes[LANE_COMPUTE];
    return lane_for(broadcast->list->pool->machine, to, LANE_UPLOAD, queue == 1 ? FOR_MOVES : for_queue(word, queue));
}

/* Puts the receive right before the first reader of what the hop brings, so that later tasks of the lane wait no longer
 * than the reader does.  Where that is a forward of the next step, the receive is earlier in the list than the
 * slice's copy.  The list is cyclic (depend.c), so the receive waits for the copy of the step before. */
static void add_receive(const struct broadcast *broadcast, struct edit *edit, struct task *reader, int queue,
                        struct tensor *brought)
{
    struct lane *lane = receiving_lane(broadcast, brought->device, queue);
    add_copy_before(edit, reader, lane, "receive", brought, brought);
}

static void send_on(const struct broadcast *broadcast, struct edit *edit, const struct message_part *part, int parent,
                    struct tensor *from);

/* Adds the slice's copy in place of the hop's, and then the copies that send on what it brings. */
static void send_hop(const struct broadcast *broadcast, struct edit *edit, const struct message_part *part, int h,
                     struct tensor *from)
{
    const struct hop *hop = &part->message->hops[h];
    struct tensor *whole = copy_target(hop->copy), *to = tensor_of_part(broadcast, whole, part);
    struct task *task =
        add_copy(broadcast->list, lane_of_queue(broadcast, hop->copy, part->queue), hop->copy->name, to, from);
    inherit_extra(task, hop->copy);
    task->extra.message = part->number;
    if (!isnan(hop->copy->extra.seconds))
        task->extra.seconds = hop->copy->extra.seconds * (double)to->bytes / (double)whole->bytes;
    if (hop->reader && !from->device->is_host && !to->device->is_host)
        add_receive(broadcast, edit, hop->reader, part->queue, to);
    send_on(broadcast, edit, part, h, to);
}

/* The place of the device that a hop leads to: 0 for the host, 1 for the next device after the owner on the ring of n
 * devices, 2 for the one after that, and so on.  (If the host sends, device 0 has place 0 too.) */
static int place_on_ring(const struct hop *hop, int owner, int n)
{
    const struct device *device = copy_target(hop->copy)->device;
    return device->is_host ? 0 : (device->index + n - owner) % n;
}

/* The bytes that the parent has brought go on: to the host, then around the ring.  Among four devices, device 0 sends
 * slice 0 to 1, 2, 3, slice 1 to 2, 3, 1, and slice 2 to 3, 1, 2. */
static void send_on(const struct broadcast *broadcast, struct edit *edit, const struct message_part *part, int parent,
                    struct tensor *from)
{
    const struct message *message = part->message;
    int n = broadcast->list->pool->machine->n_devices;
    int owner = message->source->device->index % n; /* the first device, if the host sends */
    for (int turn = 0; turn < n; turn++) {
        int place = 0; /* first the host */
        if (turn > 0)
            place = 1 + (part->nth + turn - 1) % (n - 1);
        for (size_t h = 0; h < message->n; h++)
            if (message->hops[h].parent == parent && place_on_ring(&message->hops[h], owner, n) == place)
                send_hop(broadcast, edit, part, (int)h, from);
    }
}

static void send_message(const struct broadcast *broadcast, struct edit *edit, const struct message *message)
{
    insert_before(edit, message->hops[0].copy);
    for (int nth = 0; nth < broadcast->shards[message->shard].slices; nth++) {
        struct message_part part = part_in_slice(broadcast, message, nth);
        if (part.begin >= part.end)
            continue;
        broadcast->list->extra.last_message++;
        part.number = broadcast->list->extra.last_message;
        send_on(broadcast, edit, &part, SOURCE, tensor_of_part(broadcast, message->source, &part));
    }
    for (size_t h = 0; h < message->n; h++)
        drop_task(edit, message->hops[h].copy);
}

/* Cuts and deals the shards, and sends the messages slice by slice, in their order in broadcast->messages. */
static void send_slices(struct broadcast *broadcast, struct edit *edit)
{
    for (struct layer_shard *shard = broadcast->shards; shard < broadcast->shards + broadcast->n_shards; shard++) {
        cut_shard(broadcast, shard);
        if (broadcast->options.deal == DEAL_RANDOM)
            deal_at_random(broadcast, shard);
        else
            deal_evenly(broadcast, shard);
    }
    for (size_t i = 0; i < broadcast->n_messages; i++)
        send_message(broadcast, edit, &broadcast->messages[i]);
}

struct edit *slice_list(struct broadcast *broadcast)
{
    struct edit *edit = open_edit(broadcast->list);
    fill_messages(broadcast, edit);
    if (broadcast->by_use)
        sort_messages(broadcast, edit);
    send_slices(broadcast, edit);
    return edit;
}
