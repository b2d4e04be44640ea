/* edit.c - the verbs of passes (see edit.h).
 *
 * While an edit is open, the tasks are a closed chain of neighbours, so that every change of order is a change of a few
 * pointers.  A task that does nothing, `sentinel`, closes it.  Before a verb changes anything else in tasks and
 * tensors, it notes the old bytes in a journal: undo_edit() writes them back, the last change first.
 */
#include "edit.h"

#include "cl/shared.h" /* brings: BLOCK */

struct change {                                    /* an entry of the journal */
    void *where;                                   /* in a task or a tensor */
    unsigned char old[sizeof(struct state_range)]; /* the first n bytes count; nothing larger is changed */
    size_t n;
};
struct edit {
    struct list *list;
    struct task sentinel; /* its `next` is the first task, its `prev` the last one */
    /* as they were when the edit was opened: */
    size_t n_tasks, n_tensors;
    uint64_t last_origin;
    int last_message;
    struct tags tags;
    /* since then: */
    struct change *journal;
    size_t n_changes, cap_changes;
    struct task **dropped;
    size_t n_dropped, cap_dropped;
    struct obstacle obstacle; /* what the last move met */
    /* by preview_edit(): */
    struct task **before; /* the list's array before; NULL: there is no preview */
    size_t n_before;
};

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

struct edit *open_edit(struct list *list)
{
    CHECK(!list->extra.cursor && !list->running, "list %s is being edited already, or ready to run", list->name);
    struct edit *edit = allocate(1, sizeof *edit);
    edit->list = list;
    edit->n_tasks = list->n;
    edit->n_tensors = list->pool->n;
    edit->last_origin = list->extra.last_origin;
    edit->last_message = list->extra.last_message;
    edit->tags = list->tags;
    edit->sentinel.prev = &edit->sentinel;
    edit->sentinel.next = &edit->sentinel;
    for (size_t i = 0; i < list->n; i++)
        link_behind(list->tasks[i], edit->sentinel.prev);
    list->extra.sentinel = &edit->sentinel;
    list->extra.cursor = edit->sentinel.prev;
    return edit;
}

/* The part that commit_edit() and undo_edit() have in common. */
static void close_edit(struct edit *edit)
{
    edit->list->extra.sentinel = NULL;
    edit->list->extra.cursor = NULL;
    edit->list->tags = edit->tags;
    free(edit->journal);
    free(edit->dropped);
    free(edit->before);
    free(edit);
}

/* Writes the tasks of the chain to the array, in their order, and returns how many there are. */
static size_t copy_chain(const struct task *sentinel, struct task **tasks)
{
    size_t n = 0;
    for (struct task *task = sentinel->next; task != sentinel; task = task->next)
        tasks[n++] = task;
    return n;
}

/* The list gets the tasks in the order of the chain. */
static void order_list(struct edit *edit)
{
    struct list *list = edit->list;
    list->n = copy_chain(&edit->sentinel, list->tasks);
    for (size_t i = 0; i < list->n; i++)
        list->tasks[i]->index = i;
}

void preview_edit(struct edit *edit)
{
    struct list *list = edit->list;
    edit->n_before = list->n;
    edit->before = copy_bytes(list->tasks, list->n * sizeof *list->tasks);
    order_list(edit);
    list->extra.sentinel = NULL;
    list->extra.cursor = NULL;
    list->tags = edit->tags;
}

/* The array is as it was before preview_edit(), so that undo_edit() finds the new tasks at its end. */
static void end_preview(struct edit *edit)
{
    struct list *list = edit->list;
    CHECK(!list->extra.cursor, "list %s is undone below an edit that is open", list->name);
    list->n = edit->n_before;
    memcpy(list->tasks, edit->before, list->n * sizeof *list->tasks);
    for (size_t i = 0; i < list->n; i++)
        list->tasks[i]->index = i;
}

void commit_edit(struct edit *edit)
{
    order_list(edit);
    for (size_t i = 0; i < edit->n_dropped; i++)
        free_task(edit->dropped[i]);
    close_edit(edit);
}

void undo_edit(struct edit *edit)
{
    struct list *list = edit->list;
    if (edit->before)
        end_preview(edit);
    for (size_t i = edit->n_changes; i-- > 0;)
        memcpy(edit->journal[i].where, edit->journal[i].old, edit->journal[i].n);
    for (size_t i = edit->n_tasks; i < list->n; i++)
        free_task(list->tasks[i]);
    list->n = edit->n_tasks;
    drop_tensors(list->pool, edit->n_tensors);
    list->extra.last_origin = edit->last_origin;
    list->extra.last_message = edit->last_message;
    close_edit(edit);
}

/* Notes in the journal n bytes that are about to change. */
static void remember(struct edit *edit, void *where, size_t n)
{
    GROW(edit->journal, edit->cap_changes, edit->n_changes + 1);
    struct change *change = &edit->journal[edit->n_changes++];
    CHECK(n <= sizeof change->old, "a change of %zu bytes", n);
    change->where = where;
    change->n = n;
    memcpy(change->old, where, n);
}

/* Sets a field of a task or tensor, and notes what it was. */
#define CHANGE(e, place, value)                                                                                        \
    do {                                                                                                               \
        remember((e), &(place), sizeof(place));                                                                        \
        (place) = (value);                                                                                             \
    } while (0)

/* ---- order ------------------------------------------------------------------------------------------------------- */

void insert_behind(struct edit *edit, struct task *task)
{
    edit->list->extra.cursor = task;
    tag_tasks(edit->list, task->layer, task->micro, task->role);
}

void insert_before(struct edit *edit, struct task *task)
{
    insert_behind(edit, task);
    edit->list->extra.cursor = task->prev;
}

struct task *add_copy_before(struct edit *edit, struct task *task, struct lane *lane, const char *name,
                             struct tensor *to, struct tensor *from)
{
    struct list *list = edit->list;
    struct task *cursor = list->extra.cursor;
    const struct tags tags = list->tags;
    insert_before(edit, task);
    list->tags = tags;
    struct task *copy = add_copy(list, lane, name, to, from);
    list->extra.cursor = cursor;
    return copy;
}

/* Takes the task out of the chain; the position where new tasks come stays the same. */
static void take_out(struct edit *edit, struct task *task)
{
    CHECK(task->prev->next == task, "task %s has left the list before", task->name);
    if (edit->list->extra.cursor == task)
        edit->list->extra.cursor = task->prev;
    task->prev->next = task->next;
    task->next->prev = task->prev;
}

/* The first tensor of the task for whose bytes the task and `other` must keep their order; NULL: there is none. */
static const struct tensor *find_shared(const struct task *task, const struct task *other)
{
    for (int i = 0; i < task->n_accesses; i++) {
        const struct access *access = &task->accesses[i];
        enum access_mode forbidden = access->mode & ACCESS_WRITE ? ACCESS_BOTH : ACCESS_WRITE;
        if (touches_bytes(other, access->tensor, forbidden))
            return access->tensor;
    }
    return NULL;
}

enum move_way { EARLIER, LATER };

/* Looks whether the task may change places with its neighbour, the one after it where it moves LATER.  If not, the
 * edit's obstacle says why. */
static bool try_to_pass(struct edit *edit, const struct task *task, const struct task *neighbour, enum move_way way)
{
    bool is_end = neighbour == &edit->sentinel;
    const struct task *first = way == LATER ? task : neighbour;
    const struct task *second = way == LATER ? neighbour : task;
    edit->obstacle = (struct obstacle){.first = first, .second = second, .on_way = is_end ? NULL : neighbour};
    if (is_end || (first->extra.gate == GATE_OPENS && second->extra.gate == GATE_WAITS) ||
        is_after(edit->list, second, first, SAME_STEP))
        return false;
    edit->obstacle.over = find_shared(task, neighbour);
    return !edit->obstacle.over;
}

/* Moves the task past all tasks on the way to `where`, and past that; false: one of them is in the way. */
static bool move(struct edit *edit, struct task *task, struct task *where, enum move_way way)
{
    const struct task *on_way = task;
    while (on_way != where) {
        on_way = way == LATER ? on_way->next : on_way->prev;
        if (!try_to_pass(edit, task, on_way, way))
            return false;
    }
    if (task != where) {
        take_out(edit, task);
        link_behind(task, way == LATER ? where : where->prev);
    }
    return true;
}

bool sink_task(struct edit *edit, struct task *task, struct task *where) { return move(edit, task, where, LATER); }
bool hoist_task(struct edit *edit, struct task *task, struct task *where) { return move(edit, task, where, EARLIER); }

const struct obstacle *last_obstacle(const struct edit *edit) { return &edit->obstacle; }

/* ---- where things are -------------------------------------------------------------------------------------------- */

void set_home(struct edit *edit, struct tensor *tensor, struct device *device)
{
    CHECK(tensor->persistent && tensor->storage == tensor, "tensor %s does not persist, or is a view", tensor->name);
    for (struct tensor *part = tensor; part; part = part->next_view)
        CHANGE(edit, part->device, device);
}

/* Sets whether the tensor, with its views, keeps its bytes from step to step. */
static void set_persistent(struct edit *edit, struct tensor *tensor, bool persistent)
{
    CHECK(tensor->storage == tensor, "tensor %s is a view", tensor->name);
    for (struct tensor *part = tensor; part; part = part->next_view)
        CHANGE(edit, part->persistent, persistent);
}

void make_transient(struct edit *edit, struct tensor *tensor) { set_persistent(edit, tensor, false); }

void make_persistent(struct edit *edit, struct tensor *tensor) { set_persistent(edit, tensor, true); }

void set_exclusive(struct edit *edit, struct tensor *tensor)
{
    CHANGE(edit, tensor->storage->extra.exclusive, EXCLUSIVE_ALWAYS);
}

struct tensor *mirror_tensor(struct edit *edit, struct tensor *tensor, struct device *device)
{
    struct tensor *copy = new_bytes_tensor(edit->list->pool, device, tensor->class, tensor->name, tensor->bytes);
    CHECK(tensor->storage->persistent, "tensor %s does not persist", tensor->name);
    copy->persistent = true;
    copy->replica.of = tensor->storage->replica.of;
    copy->replica.begin = tensor->storage->replica.begin + tensor->offset;
    copy->extra.mirror.of = tensor;
    struct tensor *first = tensor->storage->replica.of;
    copy->extra.mirror.next = first->extra.mirror.first;
    CHANGE(edit, first->extra.mirror.first, copy);
    return copy;
}

void repoint_task(struct edit *edit, struct task *task, const struct tensor *old, struct tensor *new)
{
    CHECK(old->bytes == new->bytes, "tensor %s of %zu bytes in place of %s of %zu", new->name, new->bytes, old->name,
          old->bytes);
    CHECK(task->action != ACT_KERNEL || new->device == task->lane->device,
          "kernel task %s on %s would take tensor %s of %s", task->name, task->lane->name, new->name, new->device->id);
    for (int i = 0; i < task->n_accesses; i++) {
        const struct tensor *tensor = task->accesses[i].tensor;
        if (tensor == old)
            CHANGE(edit, task->accesses[i].tensor, new);
        else if (tensor->storage == old)
            CHANGE(edit, task->accesses[i].tensor, same_part(edit->list->pool, new, tensor));
    }
}

void switch_readers(struct edit *edit, const struct uses *uses, const struct tensor *tensor, int from,
                    const struct tensor *old, struct tensor *new)
{
    const struct use_range found = uses_of(uses, tensor);
    for (size_t i = 0; i < found.n; i++)
        if (found.uses[i].position >= from)
            repoint_task(edit, found.uses[i].task, old, new);
}

/* ---- what is computed, and how often ----------------------------------------------------------------------------- */

struct task *repeat_task(struct edit *edit, const struct task *task)
{
    struct task *again = append_task(edit->list);
    struct task links = *again;
    *again = *task;
    again->index = links.index;
    again->prev = links.prev;
    again->next = links.next;
    again->args = copy_bytes(task->args, (size_t)task->n_args * sizeof *task->args);
    again->accesses = copy_bytes(task->accesses, (size_t)task->n_accesses * sizeof *task->accesses);
    if (task->extra.argument_bytes)
        again->argument = copy_bytes(task->argument, task->extra.argument_bytes);
    again->edges = NULL;
    again->n_edges = 0;
    return again;
}

void drop_task(struct edit *edit, struct task *task)
{
    take_out(edit, task);
    GROW(edit->dropped, edit->cap_dropped, edit->n_dropped + 1);
    edit->dropped[edit->n_dropped++] = task;
}

/* It begins with all fields, so that a field which is new in the struct is taken over too. */
void inherit_extra(struct task *mine, const struct task *theirs)
{
    struct task_extra extra = theirs->extra;
    extra.on_host = mine->extra.on_host;
    extra.seconds = mine->extra.seconds;
    extra.commands = mine->extra.commands;
    extra.argument_bytes = mine->extra.argument_bytes;
    extra.partial = mine->extra.partial;
    mine->extra = extra;
}

void stand_in(struct edit *edit, struct task *mine, struct task *theirs)
{
    CHECK(mine->n_accesses == theirs->n_accesses, "task %s has %d accesses, task %s %d", mine->name, mine->n_accesses,
          theirs->name, theirs->n_accesses);
    inherit_extra(mine, theirs);
    drop_task(edit, theirs);
}

struct task *replace_on_host(struct edit *edit, struct task *task, struct lane *lane,
                             struct tensor *const *host_tensors)
{
    insert_before(edit, task);
    struct task *mine = add_host(edit->list, lane, task->name, task->extra.on_host.function, NULL);
    for (int i = 0; i < task->n_accesses; i++)
        add_access(mine, host_tensors[i], task->accesses[i].mode);
    mine->args = copy_bytes(task->args, (size_t)task->n_args * sizeof *task->args);
    mine->n_args = task->n_args;
    mine->extra.seconds = task->extra.on_host.seconds;
    mine->flops = task->flops;
    mine->bytes = task->bytes;
    stand_in(edit, mine, task);
    insert_behind(edit, mine);
    return mine;
}

/* The kernel's counts of elements: those that are left from element `first` on, but at most n. */
static void narrow_args(struct task *task, size_t first, size_t n)
{
    for (int i = 0; i < task->n_args; i++) {
        struct arg *arg = &task->args[i];
        if (arg->kind != ARG_ELEMENTS)
            continue;
        int64_t left = (int64_t)arg->number - (int64_t)first;
        arg->number = (int32_t)MIN(MAX(left, 0), (int64_t)n);
    }
}

/* From now on the task works only on bytes [begin, end) of those tensors that are as large as that of its first access.
 * It still touches smaller ones whole, such as the optimizer's control block: they have at most READ_WHOLE bytes
 * (set_elementwise()), and cut_task() cuts no tensor so small. */
static void narrow(struct task *task, struct pool *pool, size_t begin, size_t end)
{
    size_t task_bytes = task->accesses[0].tensor->bytes;
    size_t first = begin / ELEMENT_BYTES;
    size_t n = (end - begin) / ELEMENT_BYTES;
    for (int i = 0; i < task->n_accesses; i++) {
        struct tensor *tensor = task->accesses[i].tensor;
        if (tensor->bytes == task_bytes)
            task->accesses[i].tensor = new_view(pool, tensor, tensor->name, first, SHAPE((int64_t)n));
    }
    narrow_args(task, first, n);
    if (task->action == ACT_KERNEL)
        task->grid.global[0] = ceil_div(n, BLOCK) * task->grid.local[0];
    task->extra.slice_begin += begin;
    task->extra.state.elements.begin += first;
    task->extra.state.elements.end = task->extra.state.elements.begin + n;
    task->flops *= (double)(end - begin) / (double)task_bytes;
    task->bytes = (size_t)((double)task->bytes * (double)(end - begin) / (double)task_bytes);
}

size_t cut_task(struct edit *edit, struct task *task, size_t n, struct task **slices)
{
    CHECK(task->extra.elementwise, "task %s is cut into slices, but is not elementwise", task->name);
    CHECK(n > 0, "task %s is cut into no slices", task->name);
    struct list *list = edit->list;
    struct task *cursor = list->extra.cursor;
    size_t bytes = task->accesses[0].tensor->bytes;
    size_t align = MAX(task->lane->device->alignment, (size_t)ELEMENT_BYTES);
    size_t units = ceil_div(bytes, align); /* slices begin at multiples of `align` bytes */
    n = bytes > READ_WHOLE ? MIN(n, units) : 1;
    list->extra.cursor = task;
    for (size_t i = 0; i < n; i++) {
        size_t begin = i * units / n * align;
        size_t end = (i + 1) * units / n * align;
        slices[i] = repeat_task(edit, task);
        narrow(slices[i], list->pool, begin, MIN(end, bytes));
    }
    list->extra.cursor = cursor == task ? slices[n - 1] : cursor;
    drop_task(edit, task);
    return n;
}

void need_side_bits(struct task *task, struct tensor *word, int bits, enum assumption assumed)
{
    size_t bytes = task->bytes;
    add_access(task, word, ACCESS_READ);
    task->bytes = bytes; /* the word is no work */
    task->extra.condition.needs = bits;
    task->extra.condition.unexpected = assumed == ASSUME_SKIPPED;
    if (assumed == ASSUME_SKIPPED)
        task->extra.seconds = 0; /* a task that does nothing takes no time */
}

/* ---- tasks of a list --------------------------------------------------------------------------------------------- */

struct task **tasks_in_order(const struct list *list, size_t *n)
{
    struct task **tasks = copy_bytes(list->tasks, list->n * sizeof *tasks);
    *n = list->n;
    if (list->extra.sentinel)
        *n = copy_chain(list->extra.sentinel, tasks); /* dropped tasks are in list->tasks still, but not in the chain */
    return tasks;
}
