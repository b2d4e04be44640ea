/* verify_places.c - proves of a placed list where its tensors lie, and for how long.
 *
 *     slots      a task touches what lies in a slot only while its iteration has one
 *     devices    a task touches tensors of its own device
 *     memory     tensors lie within their slabs and budgets, and one that persists shares its bytes with none
 */
#include "cells.h"
#include "proof.h"
#include "proof_parts.h"

/* ---- slots ------------------------------------------------------------------------------------------------------- */

/* A tensor that lies in slots, and that the task touches; NULL: there is none. */
static const struct tensor *tensor_with_slots(const struct task *task)
{
    for (int i = 0; i < task->n_accesses; i++)
        if (task->accesses[i].tensor->storage->extra.slots)
            return task->accesses[i].tensor;
    return NULL;
}

/* One task of an iteration returns its slot.  By task: does it need the slot, and has it certainly ended by then?  That
 * holds for the tasks that the returning one waits for within the iteration, for those before it on its lane, and for
 * those that these wait for in turn.  A chain of waits counts only through tasks that run whenever the iteration has a
 * slot.  Tasks are looked at from the last to the first, so a task is known before those that it waits for. */
static bool *mark_returned(const struct list *list)
{
    bool *ended = allocate(list->n, sizeof *ended);
    /* By lane: have all its tasks before task i ended? */
    bool *on_lane = allocate_each(list->pool->machine->n_lanes, sizeof *on_lane);
    for (size_t i = list->n; i-- > 0;) {
        const struct task *task = list->tasks[i];
        if (!task->extra.slot.needed)
            continue;
        ended[i] |= task->extra.slot.returns || on_lane[task->lane->index];
        if (!ended[i] || task->extra.condition.needs)
            continue;
        on_lane[task->lane->index] = true;
        for (const struct edge *edge = task->edges; edge < task->edges + task->n_edges; edge++)
            ended[edge->producer] |= edge->needs_wait && !edge->previous;
    }
    free(on_lane);
    return ended;
}

/* Iterations that run at the same time use different slots, since the rule of slots.c gives no slot to two.  So it is
 * enough that an iteration touches its slot only while it has it: from its first task that needs a slot until the task
 * that returns the slot has ended. */
struct problem *verify_slots(const struct list *list)
{
    bool *returned = mark_returned(list);
    struct problem *problem = NULL;
    for (size_t i = 0; i < list->n && !problem; i++) {
        const struct task *task = list->tasks[i];
        const struct tensor *tensor = tensor_with_slots(task);
        if (tensor && !task->extra.slot.needed)
            problem =
                new_problem(EXIT_FAILED, "task %zu %s touches tensor %s in a slot, and may run in a step that has none",
                            i, task->name, tensor->name);
        else if (tensor && !returned[i])
            problem = new_problem(EXIT_FAILED,
                                  "task %zu %s touches tensor %s in a slot, and may run in a step that has returned "
                                  "its own",
                                  i, task->name, tensor->name);
    }
    free(returned);
    return problem;
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

struct problem *verify_devices(const struct list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const struct task *task = list->tasks[i];
        const struct device *device = task->lane->device;
        /* An update that a pass moved to the host in a step file may still name tensors of the device. */
        bool moved = device->is_host && device->extra.described.by_hand && task->role == ROLE_UPDATE;
        if (is_copy(task) || writes_side_word(task) || moved)
            continue;
        for (int k = 0; k < task->n_accesses; k++) {
            const struct tensor *tensor = task->accesses[k].tensor;
            if (tensor->device != device)
                return new_problem(EXIT_FAILED,
                                   "task %zu %s of device %s touches tensor %s of device %s: only a copy may", i,
                                   task->name, device->id, tensor->name, tensor->device->id);
        }
    }
    return NULL;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* A tensor that is kept from step to step shares bytes with no other, even where the list does not touch it.  And every
 * tensor lies within its slab, once slabs have been made. */
static struct problem *verify_storage(const struct list *list, struct strip *strip, const struct tensor *tensor)
{
    size_t n;
    struct byte_cell *cell = cells_of(strip, strip_begin(tensor), strip_begin(tensor) + tensor->bytes, &n);
    if (list->running && (tensor->slab >= (int)tensor->device->n_slabs ||
                          tensor->address + tensor->bytes > tensor->device->slabs[tensor->slab].bytes))
        return new_problem(EXIT_FAILED, "tensor %s extends past the end of its slab on device %s", tensor->name,
                           tensor->device->id);
    for (size_t i = 0; i < n; i++) {
        if (cell[i].occupancy.kept)
            return new_problem(EXIT_FAILED, "tensor %s shares bytes with %s, which is kept from step to step",
                               tensor->name, cell[i].occupancy.kept->name);
        if (tensor->persistent)
            cell[i].occupancy.kept = tensor;
        cell[i].occupancy.used = true;
    }
    return NULL;
}

enum tensors_verified { THOSE_THAT_PERSIST, ALL_OTHERS };

/* Verifies the tensors that persist, or the others.  Those that persist must come first: no other tensor may have their
 * bytes at any time. */
static struct problem *verify_tensors(const struct list *list, struct strip *strips, enum tensors_verified which)
{
    struct problem *problem = NULL;
    for (size_t i = 0; i < list->pool->n && !problem; i++) {
        const struct tensor *tensor = list->pool->tensors[i];
        if (tensor->storage == tensor && tensor->slab >= 0 && tensor->persistent == (which == THOSE_THAT_PERSIST))
            problem = verify_storage(list, &strips[tensor->device->index], tensor);
    }
    return problem;
}

/* Adds up the bytes of a device's slabs, each as far as tensors reach in it.  A cell may lie across the border of two
 * slabs only where no tensor is. */
static size_t sum_slabs(const struct strip *strip)
{
    size_t sum = 0, reach = 0; /* reach: in the slab of cell i */
    for (size_t i = 0; i < strip->n; i++) {
        const struct byte_cell *cell = &strip->cells[i];
        size_t slab = cell->begin / NO_LIMIT;
        if (cell->occupancy.used)
            reach = cell->end - slab * NO_LIMIT;
        if (i + 1 == strip->n || cell[1].begin / NO_LIMIT > slab) {
            sum += reach;
            reach = 0;
        }
    }
    return sum;
}

struct problem *verify_memory(const struct list *list)
{
    const struct machine *machine = list->pool->machine;
    size_t n = (size_t)machine->n_devices + 1;
    struct strip *strips = new_strips(n, (struct byte_cell){.occupancy = {.used = false, .kept = NULL}});
    struct problem *problem = verify_tensors(list, strips, THOSE_THAT_PERSIST);
    if (!problem)
        problem = verify_tensors(list, strips, ALL_OTHERS);
    for (size_t nth = 0; nth < n && !problem; nth++) {
        const struct device *device = &machine->devices[nth];
        size_t sum = sum_slabs(&strips[nth]);
        if (sum > device->budget)
            problem = new_problem(EXIT_FAILED, "device %s holds %zu bytes, its budget is %zu", device->id, sum,
                                  device->budget);
    }
    free_strips(strips, n);
    return problem;
}
