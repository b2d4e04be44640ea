/* snapshot.c - per-layer snapshots: each unit is stored as soon as it is updated, while the backward of further layers
 * still runs.  A *unit* is what one update makes anew: here the parameters of a layer, and Adam's m and v of them.
 *
 *     device      B3   U3   B2   U2   B1   U1   B0   U0   | F0       B: backward, U: update of a unit
 *     copies              s3        s2        s1        s0           s: snapshot
 *     disk                   [p3  ] [p2  ] [p1  ] [p0  ] c           p: persist, c: commit
 *
 * The rewrite.  After every update come tasks for what it wrote:
 *
 *     snapshot   one for each tensor: copies it to a buffer of the host, on a lane of its own.  The unit's next update
 *                waits for these alone
 *     persist    one: writes the buffer to the file, in one piece, on the host's disk lane
 *
 * and after all of them, on the disk lane too,
 *
 *     commit     writes the page that names the iteration, which is recoverable then, and flushes the file: it is
 *                durable.  (In a run it first waits for the report that the step is sound, which is not simulated.)
 *
 * A commit waits for its persists because one thread of the disk runs both, in the order of the list.
 *
 * Slots.  The file has S slots, each with room for a whole iteration, and the host has S buffers for each unit.  An
 * iteration takes a slot when its first unit has been updated, and returns it when its commit has ended.  Which slot it
 * takes, and when it takes none and is dropped, is the rule of trainer/step/slots.c.  The list has each task once, and
 * where it reads and writes is decided for each iteration.
 *
 * Persist and commit stand *aside* (struct slot_use in when.h): nothing of the training waits for them.  Such a task is
 * parked outside of its lane until its iteration has asked for a slot; without one it is dropped (trainer/run/late.c).
 *
 * On the device (--snapshot-in device).  Where the link is slow the next update waits long for the copy to the host.  A
 * copy within the device's memory is faster:
 *
 *     device      U1   B0   U0   | F0        F1        B1   U1   B0
 *     snapshot      d1        d0                                        into the slot's buffers on the device
 *     copies          [s1           ] [s0           ]                   from there to the host's buffers
 *
 * Now the next update waits only for its copy d within the device.  The copies s to the host stand aside too, as
 * persist does.  d runs on a compute lane of its own: it is work of the device and needs no link.  The main compute
 * lane will not do: its tasks are issued ahead, but d is issued only when its update has ended.  The simulated time of
 * d follows from the device's memory.  That kernels beside d are slower is not simulated.
 *
 * Source: "Method and apparatus for model training" (Huawei Cloud, 2023).
 */
#include "cl/shared.h" /* brings: SIDE_CPU, SIDE_DEVICE */
#include "planning/predict/costs.h"
#include "snapshot_parts.h"

#include <math.h>

#define FOR_SNAPSHOT "snapshot" /* the lanes of copies into slots */

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

struct tensor *new_buffers(struct pool *pool, struct device *device, size_t bytes, int slots)
{
    struct tensor *first = NULL;
    struct tensor **end = &first;
    for (int k = 0; k < slots; k++) {
        *end = new_bytes_tensor(pool, device, MEM_WORK, "snapshot", bytes);
        (*end)->persistent = true;
        end = &(*end)->extra.next_slot;
    }
    first->extra.slots = &pool->slots;
    return first;
}

/* Makes the part [begin, end), in bytes, of the buffer of each slot.  Returns that of slot 1, which leads to the
 * others. */
static struct tensor *part_of_buffers(struct pool *pool, struct tensor *buffers, const char *name, size_t begin,
                                      size_t end)
{
    struct tensor *first = NULL;
    struct tensor **next = &first;
    for (struct tensor *buffer = buffers; buffer; buffer = buffer->extra.next_slot) {
        *next = new_range(pool, buffer, name, begin, end);
        next = &(*next)->extra.next_slot;
    }
    return first;
}

/* ---- the tasks of an update -------------------------------------------------------------------------------------- */

bool is_of_snapshot(const struct task *task) { return task->extra.slot.needed; }
bool is_commit(const struct task *task) { return is_of_snapshot(task) && task->extra.slot.returns; }
bool is_persist(const struct task *task) { return is_of_snapshot(task) && !is_commit(task) && !is_copy(task); }

/* Makes the task run only where its iteration has a slot, and returns it. */
static struct task *need_slot(const struct snapshot_rewrite *rewrite, struct task *task)
{
    task->extra.slot.needed = true;
    task->extra.when.every = (uint32_t)rewrite->options.every;
    return task;
}

/* Copies go on a download lane that nothing else uses: lane order does not hold between tasks that may be skipped at
 * the last moment and others.  (In a step file the link may allow no further lane.) */
static struct task *add_snapshot(const struct snapshot_rewrite *rewrite, struct tensor *to, struct tensor *from)
{
    struct list *list = rewrite->list;
    if (from->device->is_host)
        return need_slot(rewrite, add_copy(list, from->device->lanes[LANE_CPU], "snapshot", to, from));
    return need_slot(rewrite, add_copy_for(list, "snapshot", to, from, FOR_SNAPSHOT));
}

/* Stores the tensor by way of a buffer on its device. */
static void add_snapshot_by_device(const struct snapshot_rewrite *rewrite, struct tensor *to, struct tensor *tensor)
{
    struct list *list = rewrite->list;
    struct tensor *buffers = new_buffers(list->pool, tensor->device, tensor->bytes, rewrite->options.slots);
    struct lane *lane = lane_for(list->pool->machine, tensor->device, LANE_COMPUTE, FOR_SNAPSHOT);
    need_slot(rewrite, add_copy(list, lane, "snapshot.device", buffers, tensor));
    struct task *snapshot = add_snapshot(rewrite, to, buffers);
    snapshot->extra.slot.aside = true;
}

/* Adds copies into the buffers: of the tensors that `slice` wrote, in the order of the accesses of `update`, each on
 * the host's alignment.  `slice` is the update itself, or on the host a slice of it, which writes the same part of each
 * tensor. */
static void copy_written(const struct snapshot_rewrite *rewrite, struct tensor *buffers, const struct task *update,
                         const struct task *slice, enum snapshot_place place)
{
    struct pool *pool = rewrite->list->pool;
    size_t begin = slice->extra.slice_begin - update->extra.slice_begin; /* in the buffer */
    for (int i = 0; i < update->n_accesses; i++) {
        struct tensor *tensor = slice->accesses[i].tensor;
        if (!writes_state(&update->accesses[i]))
            continue;
        struct tensor *to = part_of_buffers(pool, buffers, tensor->name, begin, begin + tensor->bytes);
        if (place == IN_DEVICE && !tensor->device->is_host)
            add_snapshot_by_device(rewrite, to, tensor);
        else
            add_snapshot(rewrite, to, tensor);
        begin += round_up(update->accesses[i].tensor->bytes, pool->machine->host->alignment);
    }
}

/* Seconds that so many bytes take on the disk that a step file describes for the host; 0: it describes none. */
static double seconds_of_disk(const struct device *host, size_t bytes)
{
    const struct link *disks[2] = {host->extra.described.disk};
    return link_latency(disks) + (double)bytes / link_rate(disks, NULL);
}

/* Adds the task that writes what an update stored in the buffers to the disk. */
static void add_persist(const struct snapshot_rewrite *rewrite, struct tensor *buffers, const struct task *update)
{
    struct list *list = rewrite->list;
    struct lane *disk = list->pool->machine->host->lanes[LANE_DISK];
    struct task *persist = need_slot(rewrite, add_host(list, disk, "persist", NULL, NULL));
    add_access(persist, buffers, ACCESS_READ);
    persist->extra.slot.aside = true;
    persist->extra.state = update->extra.state;
    if (rewrite->no_costs)
        persist->extra.seconds = seconds_of_disk(list->pool->machine->host, buffers->bytes);
}

/* Tasks that are added from now on store what the update writes, and come right behind the task `last`.  Returns the
 * host's buffers for it, which have `bytes` bytes. */
static struct tensor *begin_storing(const struct snapshot_rewrite *rewrite, const struct task *update,
                                    struct task *last, size_t bytes)
{
    struct list *list = rewrite->list;
    insert_behind(rewrite->edit, last);
    tag_tasks(list, update->layer, update->micro, ROLE_SNAPSHOT);
    return new_buffers(list->pool, list->pool->machine->host, bytes, rewrite->options.slots);
}

/* Adds the tasks that store the `bytes` bytes that an update writes. */
static void store_update(const struct snapshot_rewrite *rewrite, struct task *update, size_t bytes)
{
    struct tensor *buffers = begin_storing(rewrite, update, update, bytes);
    copy_written(rewrite, buffers, update, update, rewrite->options.place);
    add_persist(rewrite, buffers, update);
}

/* ---- an update that is in the list on both sides: skip it at first ----------------------------------------------- */

/* --overlap local lists an update twice.  The last task of the host, of the first n tasks, that does the same as this
 * update of the device; NULL: there is none. */
static struct task *last_on_host(const struct list *list, size_t n, const struct task *update)
{
    struct task *last = NULL;
    if (!side_word_of(update))
        return NULL;
    for (size_t i = update->index + 1; i < n; i++)
        if (list->tasks[i]->extra.origin == update->extra.origin)
            last = list->tasks[i];
    return last;
}

/* The copies that were added to the list from position `from` on are those of this update.  They run if the word has
 * these bits, and the forecast assumes of them what it assumes of the update. */
static void need_side(const struct list *list, size_t from, struct tensor *word, int bits, const struct task *update)
{
    enum assumption assumed = update->extra.condition.unexpected ? ASSUME_SKIPPED : ASSUME_RUNS;
    for (size_t i = from; i < list->n; i++)
        need_side_bits(list->tasks[i], word, bits, assumed);
}

/* Adds the tasks that store such an update, whichever side does it in a step.  last: what last_on_host() has found.
 *
 * The update is in the list twice, on the host perhaps in slices.  Both sides fill the same buffers, after the last
 * task of both: the device's copies after the host's, so that no CPU lane waits for them.
 *
 *     U  h1 h2  up up | s(h1) s(h2)  s(U)  persist        U: on the device, h: on the host, up: its copies back
 *
 * All copies go straight to the host: what stands aside would look at the side word too late. */
static void store_either(const struct snapshot_rewrite *rewrite, struct task *update, struct task *last, size_t n,
                         size_t bytes)
{
    const struct list *list = rewrite->list;
    struct tensor *word = side_word_of(last);
    while (last->next->role == ROLE_OFFLOAD && last->next->extra.condition.needs)
        last = last->next; /* its copies back */
    struct tensor *buffers = begin_storing(rewrite, update, last, bytes);
    for (size_t i = update->index + 1; i < n; i++) {
        const struct task *slice = list->tasks[i];
        size_t from = list->n;
        if (slice->extra.origin != update->extra.origin)
            continue;
        copy_written(rewrite, buffers, update, slice, IN_HOST);
        need_side(list, from, word, SIDE_CPU, slice);
    }
    size_t from = list->n;
    copy_written(rewrite, buffers, update, update, IN_HOST);
    need_side(list, from, word, SIDE_DEVICE, update);
    add_persist(rewrite, buffers, update);
}

/* ---- all of a list ----------------------------------------------------------------------------------------------- */

/* Adds the commit, which stays the last task of the list, since all others are inserted before it.  So with --serial
 * the report, for which the commit waits, comes before it. */
static void add_commit(const struct snapshot_rewrite *rewrite)
{
    struct list *list = rewrite->list;
    struct device *host = list->pool->machine->host;
    tag_role(list, ROLE_SNAPSHOT);
    struct task *task = need_slot(rewrite, add_host(list, host->lanes[LANE_DISK], "commit", NULL, NULL));
    task->extra.slot.aside = true;
    task->extra.slot.returns = true;
    if (rewrite->no_costs)
        task->extra.seconds = seconds_of_disk(host, 0);
}

size_t store_all(struct snapshot_rewrite *rewrite)
{
    struct list *list = rewrite->list;
    size_t n = list->n, updates = 0;
    size_t *bytes = bytes_to_store(list->tasks, n, list->pool);
    list->pool->slots.n = rewrite->options.slots;
    add_commit(rewrite);
    for (size_t i = 0; i < n; i++) {
        struct task *update = list->tasks[i];
        if (!bytes[i])
            continue;
        struct task *last = last_on_host(list, n, update);
        if (last)
            store_either(rewrite, update, last, n, bytes[i]);
        else
            store_update(rewrite, update, bytes[i]);
        updates++;
    }
    free(bytes);
    return updates;
}
