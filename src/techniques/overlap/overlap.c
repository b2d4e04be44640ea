/* overlap.c - the layered optimizer: some layers' updates run on the CPU while the device goes on.
 *
 * The idea.  An update reads and writes much memory for little arithmetic, and its parameters are not needed before the
 * layer's next forward.  So the CPU can do it while the device goes on with other layers.  Adam's state then lies in
 * the host's memory.
 *
 *     device   F0  F1  F2  F3  B3  B2  B1  B0  U0  | F0  F1  F2  F3        U0: the update of layer 0, on the device
 *     down                         g3  g2  g1      |                       g3: the gradients of layer 3
 *     CPU                              U3  U2  U1  |
 *     up                                   w3  w2  | w1                    w1: the new parameters of layer 1
 *
 * The rule.  The updates of a layer are a *bucket*.  A plan has a letter for each bucket:
 *
 *     D   on its device, where it is: after the layer's backward, or after the norm
 *     C   on the CPU, in the order in which the backward releases the buckets
 *     L   on the CPU last, after all C, in the order in which the next forward needs them
 *
 *     released    layer 3   layer 2   layer 1   layer 0      layer 0's backward is last and its forward is first, so
 *     needed      layer 0   layer 1   layer 2   layer 3      what its update takes on the CPU is hard to hide
 *
 * This file carries a plan out.  overlap_choose.c finds the best plan.
 *
 * The rewrite.  Five edits move an update: its gradients go down as soon as they are made; the host's update stands in
 * for the device's; the host keeps the parameters too, as a mirror of them; Adam's state gets its home on the host; and
 * the new parameters go up.
 *
 *     the list before                        the list with layer 3 on the CPU            lane
 *     backward     writes g                  backward         writes g                   the device's compute
 *                                            overlap.down     host.g = g                 its download
 *     update       g, w, m, v                update           host.g, mirror of w, m, v  the host's cpu
 *                                            overlap.up       w = mirror of w            the device's upload
 *
 * A large update moves in slices, so that one is computed while others are copied.  No edge is added by hand: the next
 * forward, and the tasks that send parameters to other devices, wait for `up` because they read what `up` writes.  So a
 * device waits for a layer's parameters when it begins that layer, and not for all layers at once.
 *
 * Source: "Iterative computing method and device for model training" (Ant, 2025).
 */
#include "overlap.h"

#include <math.h>

/* ---- which updates can move -------------------------------------------------------------------------------------- */

static bool is_on_device(const struct access *access, enum memory_class class)
{
    return access->tensor->class == class && !access->tensor->device->is_host;
}

/* Does it write parameters that lie on a device? */
static bool renews_parameters(const struct access *access)
{
    return is_on_device(access, MEM_PARAMETERS) && (access->mode & ACCESS_WRITE);
}

/* The first parameters on a device that the task writes, or NULL. */
static const struct tensor *parameters_of(const struct task *task)
{
    const struct access *access = find_access(task, renews_parameters);
    return access ? access->tensor : NULL;
}

bool is_of_step_file(const struct task *update) { return !update->extra.on_host.function; }

/* An update of a device that the host can do too. */
static bool host_can_do(const struct task *task)
{
    bool host_can = task->extra.on_host.function || !isnan(task->extra.on_host.seconds);
    return task->role == ROLE_UPDATE && task->lane->kind == LANE_COMPUTE && host_can && parameters_of(task);
}

/* Two updates that the host can do too.  Are they of one bucket, so that a plan moves both or neither?  Those of no
 * layer are, if they renew the same parameters, in shards or on other devices.  Only the name of the parameters says
 * that: the replicas of a step file's parameters know nothing of one another. */
static bool in_one_bucket(const struct task *a, const struct task *b)
{
    if (a->layer != b->layer)
        return false;
    return a->layer >= 0 || strcmp(parameters_of(a)->storage->name, parameters_of(b)->storage->name) == 0;
}

/* Does the task write a range that shares bytes with the tensor, but is another one? */
static bool writes_other_range(const struct task *task, const struct tensor *tensor)
{
    for (int i = 0; i < task->n_accesses; i++) {
        const struct access *access = &task->accesses[i];
        if ((access->mode & ACCESS_WRITE) && share_bytes(access->tensor, tensor) && !same_bytes(access->tensor, tensor))
            return true;
    }
    return false;
}

/* The tensor is state of the update.  Does all that touches the tensor move with the update?  (Without ZeRO the shards
 * of a layer have one m and v on each device, which several updates share.)  moves: see mark_movable(). */
static bool moves_as_one(const struct uses *uses, const bool *moves, const struct tensor *tensor,
                         const struct task *update)
{
    const struct use_range found = uses_of(uses, tensor);
    for (size_t k = 0; k < found.n; k++) {
        const struct task *task = found.uses[k].task;
        if (!moves[found.uses[k].position] || !in_one_bucket(task, update))
            return false;
    }
    return true;
}

/* The tensor holds parameters of the update.  Does a task write them that may stay on its device when the update moves?
 * Then the host's mirror of the tensor would not know of it; nor would it where the tensor is written as a part of
 * another range, whose mirror is another one. */
static bool is_written_by_others(const struct uses *uses, const bool *moves, const struct tensor *tensor,
                                 const struct task *update)
{
    const struct use_range found = uses_of(uses, tensor);
    for (size_t k = 0; k < found.n; k++) {
        const struct task *task = found.uses[k].task;
        if (!touches_bytes(task, tensor, ACCESS_WRITE))
            continue;
        if (!moves[found.uses[k].position] || !in_one_bucket(task, update) || writes_other_range(task, tensor))
            return true;
    }
    return false;
}

/* The host can do the update.  Does it write nothing but parameters and Adam's state?  Only parameters are copied up.
 * The state has one home, so all that touches it moves, or nothing does. */
static bool can_move(const struct uses *uses, const bool *moves, const struct task *task)
{
    for (int i = 0; i < task->n_accesses; i++) {
        const struct access *access = &task->accesses[i];
        enum memory_class class = access->tensor->class;
        if (class == MEM_PARAMETERS && is_written_by_others(uses, moves, access->tensor, task))
            return false;
        if (class == MEM_PARAMETERS)
            continue;
        if (class == MEM_OPTIMIZER && !moves_as_one(uses, moves, access->tensor, task))
            return false;
        if (class != MEM_OPTIMIZER && (access->mode & ACCESS_WRITE))
            return false;
    }
    return true;
}

/* Which tasks can move, by their positions in the list.  Where one update has to stay, others may have to stay because
 * of it, so the question is asked again until no answer changes.  The caller frees the array. */
static bool *mark_movable(const struct uses *uses)
{
    bool *moves = allocate(uses->n, sizeof *moves);
    bool changed = true;
    for (size_t i = 0; i < uses->n; i++)
        moves[i] = host_can_do(uses->tasks[i]);
    while (changed) {
        changed = false;
        for (size_t i = 0; i < uses->n; i++)
            if (moves[i] && !can_move(uses, moves, uses->tasks[i])) {
                moves[i] = false;
                changed = true;
            }
    }
    return moves;
}

int release_position(const struct uses *uses, const struct task *update)
{
    int last = NONE;
    for (int i = 0; i < update->n_accesses; i++) {
        const struct access *access = &update->accesses[i];
        if (!is_on_device(access, MEM_GRADIENTS))
            continue;
        int maker = last_write_before(uses, access->tensor, (int)update->index);
        last = MAX(last, maker);
    }
    return last;
}

/* The bucket that the update belongs to; NULL: there is none yet. */
static struct update_bucket *find_bucket(struct update_buckets *buckets, const struct uses *uses,
                                         const struct task *update)
{
    for (size_t k = 0; k < buckets->n; k++)
        if (in_one_bucket(uses->tasks[buckets->items[k].first_update], update))
            return &buckets->items[k];
    return NULL;
}

static struct update_bucket *add_bucket(struct update_buckets *buckets, const struct task *update)
{
    struct update_bucket *new = &buckets->items[buckets->n];
    buckets->n++;
    *new = (struct update_bucket){.layer = update->layer, .first_update = update->index, .released = NONE};
    if (update->layer < 0)
        snprintf(new->name, sizeof new->name, "other %s", parameters_of(update)->storage->name);
    else
        snprintf(new->name, sizeof new->name, "layer %d", update->layer);
    return new;
}

static int by_release(const void *left, const void *right)
{
    const struct update_bucket *a = left;
    const struct update_bucket *b = right;
    return BY(a->released, b->released, COMPARE(a->first_update, b->first_update));
}

void fill_buckets(struct update_buckets *buckets, const struct uses *uses)
{
    bool *moves = mark_movable(uses);
    buckets->n = 0;
    buckets->n_left_out = 0;
    buckets->bucket_of = allocate(uses->n, sizeof *buckets->bucket_of);
    for (size_t i = 0; i < uses->n; i++) {
        const struct task *task = uses->tasks[i];
        if (!moves[i])
            continue;
        struct update_bucket *bucket = find_bucket(buckets, uses, task);
        if (!bucket && buckets->n == MOST_BUCKETS) {
            buckets->n_left_out++;
            continue;
        }
        if (!bucket)
            bucket = add_bucket(buckets, task);
        int released = release_position(uses, task);
        bucket->released = MAX(bucket->released, released);
    }
    SORT(buckets->items, buckets->n, by_release);
    for (size_t i = 0; i < uses->n; i++) { /* now their numbers are known */
        const struct update_bucket *bucket = moves[i] ? find_bucket(buckets, uses, uses->tasks[i]) : NULL;
        buckets->bucket_of[i] = bucket ? (int)(bucket - buckets->items) : NONE;
    }
    free(moves);
}

/* ---- what the host's update works on ----------------------------------------------------------------------------- */

static struct device *host_of(const struct update_mover *mover) { return mover->list->pool->machine->host; }

/* The task that makes the tensor for the update.  If the step before has made it, that is the head of the list. */
static struct task *maker_of(const struct update_mover *mover, const struct tensor *tensor, const struct task *update)
{
    int at = last_write_before(mover->uses, tensor, (int)update->index);
    return at == NONE ? mover->list->extra.sentinel : mover->list->tasks[at];
}

/* The host's tensor shares bytes with nothing, so that no task waits for the update.  With GRADIENTS_ALONE the device's
 * tensor does not either, so that no task waits for the copy. */
struct tensor *bring_down(struct update_mover *mover, struct tensor *tensor, struct task *maker, int layer,
                          const char *purpose)
{
    struct list *list = mover->list;
    const char *name = JOINED("host.", tensor->name);
    struct tensor *copy = new_bytes_tensor(list->pool, host_of(mover), tensor->class, name, tensor->bytes);
    struct task *last = maker;
    set_exclusive(mover->edit, copy);
    if (mover->sharing == GRADIENTS_ALONE && !tensor->storage->persistent)
        make_persistent(mover->edit, tensor->storage);
    while (last->next->role == ROLE_OFFLOAD) /* a copy down that follows the maker already */
        last = last->next;
    insert_behind(mover->edit, last);
    tag_tasks(list, layer, NONE, ROLE_OFFLOAD);
    add_copy_for(list, "overlap.down", copy, tensor, purpose);
    return copy;
}

/* The first tensor that has the same bytes as this one: what several tensors name has one mirror. */
static struct tensor *first_same_bytes(struct tensor *tensor)
{
    struct tensor *first = tensor;
    for (struct tensor *view = tensor->storage->next_view; view; view = view->next_view)
        if (same_bytes(view, tensor) && view->id < first->id)
            first = view;
    return same_bytes(tensor->storage, tensor) ? tensor->storage : first;
}

struct tensor *part_of_mirror(struct update_mover *mover, struct tensor *whole, const struct tensor *part)
{
    size_t begin = part->offset - whole->offset;
    struct tensor *first = first_same_bytes(whole);
    if (!mover->counterparts[first->id])
        mover->counterparts[first->id] = mirror_tensor(mover->edit, first, host_of(mover));
    struct tensor *whole_on_host = mover->counterparts[first->id];
    return new_range(mover->list->pool, whole_on_host, part->name, begin, begin + part->bytes);
}

/* Is the task a copy up, of what the host has? */
static bool is_copy_up(const struct task *task) { return is_copy(task) && copy_source(task)->device->is_host; }

/* Returns the host's tensor of what many updates read, such as the norm, and adds the copy down that it needs: one for
 * all of them.  What the host itself has sent up is not brought down: the host uses its own tensor, as for `control`,
 * and with dp=2 for `state` of replica 1.  In a step file `whole` stays where it is, since `cpu=` means that nothing
 * but gradients and parameters is copied (tutorials/reference-lists.md).
 *
 * With clipping all updates read the norm; those of a step file are held (gate.c).  Then gradients still go down during
 * the backward, and the CPU works during the next forward.  Without clipping a model's `state` goes down too, as soon
 * as it is written, since it says whether training has halted. */
static struct tensor *shared_copy(struct update_mover *mover, const struct task *update, struct tensor *whole)
{
    struct task *maker = maker_of(mover, whole, update);
    struct tensor **on_host = &mover->counterparts[whole->id];
    if (is_of_step_file(update))
        return whole;
    if (*on_host)
        return *on_host;
    if (is_copy_up(maker) && copy_target(maker) == whole)
        *on_host = copy_source(maker);
    else
        *on_host = bring_down(mover, whole, maker, update->layer, FOR_CONTROL);
    return *on_host;
}

/* Gradients have lanes for their copies alone, and what shared_copy() brings down has another, since on one lane the
 * copies of both would wait for each other. */
struct tensor *host_tensor(struct update_mover *mover, const struct task *update, const struct task *slice, int i)
{
    struct tensor *tensor = slice->accesses[i].tensor, *whole = update->accesses[i].tensor;
    if (tensor->device->is_host)
        return tensor;
    switch (tensor->class) {
    case MEM_GRADIENTS:
        return bring_down(mover, tensor, maker_of(mover, tensor, update), update->layer, FOR_OFFLOAD);
    case MEM_PARAMETERS:
        return part_of_mirror(mover, whole, tensor);
    case MEM_OPTIMIZER:
        set_home(mover->edit, tensor->storage, host_of(mover));
        return tensor;
    default:
        return shared_copy(mover, update, whole);
    }
}

/* ---- moving an update -------------------------------------------------------------------------------------------- */

/* There are as many slices as cores, and more where one would be larger than LARGEST. */
struct update_slices cut_update(struct update_mover *mover, struct task *update)
{
    enum { LARGEST = 16 << 20, SMALLEST = 256 << 10 }; /* bytes */
    size_t bytes = update->accesses[0].tensor->bytes;
    struct update_slices slices = {.n = 1};
    if (update->extra.elementwise && bytes > SMALLEST)
        slices.n = MAX((size_t)mover->cores, ceil_div(bytes, LARGEST));
    slices.tasks = allocate(slices.n, sizeof *slices.tasks);
    slices.tasks[0] = update;
    if (slices.n > 1)
        slices.n = cut_task(mover->edit, update, slices.n, slices.tasks);
    return slices;
}

/* Puts a task of the host in the place of `slice`, and returns it.  Slices take the CPU's lanes in turn. */
static struct task *run_on_host(struct update_mover *mover, struct task *slice, struct tensor *const *on_host)
{
    struct lane *lane = open_lane(mover->list->pool->machine, host_of(mover), LANE_CPU, mover->n_slices % mover->cores);
    mover->n_slices++;
    return replace_on_host(mover->edit, slice, lane, on_host);
}

/* Copies the new parameters up, right after the task that was added last.  on_host: the host's tensors, by access of
 * the slice.  Returns the last copy. */
static struct task *bring_up(struct update_mover *mover, const struct task *slice, struct tensor *const *on_host,
                             const char *purpose)
{
    struct task *last = NULL;
    mover->list->tags.role = ROLE_OFFLOAD;
    for (int i = 0; i < slice->n_accesses; i++) {
        const struct access *access = &slice->accesses[i];
        if (renews_parameters(access))
            last = add_copy_for(mover->list, "overlap.up", access->tensor, on_host[i], purpose);
    }
    return last;
}

/* The tasks from `first` to `end` stand beside the update at that position.  They come after those that have moved
 * before, unless something is in their way.  For example two L, without clipping:
 *
 *     layer 0 has moved       .... U1 up1 .... U0 up0         layer 1's stand at `position`, 0's at `last_position`
 *     then layer 1            ................ U0 up0 U1 up1  both stand at `last_position`
 */
static void keep_order(struct update_mover *mover, size_t position, const struct task *first, struct task *end)
{
    const struct task *stop = first->prev;
    bool overtakes = mover->last && position < mover->last_position;
    struct task *task = end;
    while (overtakes && task != stop) {
        struct task *before = task->prev;
        if (!sink_task(mover->edit, task, mover->last))
            return;
        task = before;
    }
    mover->last = end;
    if (!overtakes)
        mover->last_position = position;
}

struct moved_slice move_slice(struct update_mover *mover, const struct task *update, struct task *slice,
                              const struct transport *transport)
{
    struct moved_slice moved_slice;
    struct tensor **on_host = allocate_each(slice->n_accesses, sizeof(struct tensor *));
    for (int i = 0; i < slice->n_accesses; i++)
        on_host[i] = transport->host_tensor(mover, update, slice, i);
    moved_slice.update = run_on_host(mover, slice, on_host); /* in place of `slice`, which lives until commit_edit() */
    moved_slice.last_copy = bring_up(mover, slice, on_host, transport->purpose);
    free(on_host);
    return moved_slice;
}

void move_update(struct update_mover *mover, size_t position)
{
    static const struct transport transport = {.host_tensor = host_tensor, .purpose = FOR_OFFLOAD};
    struct task *update = mover->list->tasks[position];
    struct update_slices slices = cut_update(mover, update);
    for (size_t k = 0; k < slices.n; k++) {
        struct moved_slice moved_slice = move_slice(mover, update, slices.tasks[k], &transport);
        keep_order(mover, position, moved_slice.update, moved_slice.last_copy);
    }
    free(slices.tasks);
}

/* ---- carrying a plan out ----------------------------------------------------------------------------------------- */

struct update_mover begin_moves(struct edit *edit, struct list *list, const struct uses *uses, int cores,
                                enum sharing sharing)
{
    struct update_mover mover = {.edit = edit, .list = list, .uses = uses, .cores = cores, .sharing = sharing};
    mover.counterparts = allocate(list->pool->n, sizeof *mover.counterparts);
    return mover;
}

void end_moves(struct update_mover *mover) { free(mover->counterparts); }

static void move_bucket(struct update_mover *mover, const struct update_buckets *buckets, size_t bucket)
{
    for (size_t i = 0; i < mover->uses->n; i++)
        if (buckets->bucket_of[i] == (int)bucket)
            move_update(mover, i);
}

/* First the buckets with C, in the order in which they are released; then those with L, in the reverse order. */
void move_updates(struct update_mover *mover, const struct update_buckets *buckets, const side_byte *side)
{
    for (size_t k = 0; k < buckets->n; k++)
        if (side[k] == ON_CPU)
            move_bucket(mover, buckets, k);
    for (size_t k = buckets->n; k > 0; k--)
        if (side[k - 1] == ON_CPU_LAST)
            move_bucket(mover, buckets, k - 1);
}
