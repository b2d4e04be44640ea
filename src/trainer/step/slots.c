/* slots.c - tensors that lie in *slots*, so that a few iterations can each have one of their own.
 *
 * A task that stores an iteration needs the iteration's bytes for longer than the iteration lasts.  So the tensor that
 * it reads is there several times, once in each slot: these tensors are alike, and each has bytes of its own.  The
 * accesses of tasks in the list name the one in slot 1.  When a task runs, it touches the one in the slot that its
 * iteration has: tensor_at().
 *
 *     iteration     1    2    3    4    5    6           two slots
 *     slot          1    2    -    1    -    2           -: none was free, and nothing of the iteration is stored
 *
 * The rule.  A slot is free unless an iteration has it, or it holds the newest iteration that is durable.  An iteration
 * has its slot from take_slot() until return_slot(), which says whether the slot's contents are durable now.  An
 * iteration that finds no free slot does without one, and nothing waits.  A run follows this rule (begin_commit()),
 * and so does the simulation (simulate_slots.c).
 *
 * An iteration that has slot k has it for all tensors of the pool that lie in slots.
 */
#include "list.h"

int take_slot(struct slots *slots, uint32_t iteration)
{
    for (int k = 1; k <= slots->n; k++)
        if (!slots->iteration[k] && k != slots->durable) {
            slots->iteration[k] = iteration;
            return k;
        }
    return 0;
}

void return_slot(struct slots *slots, uint32_t iteration, bool durable)
{
    int k = slot_of(slots, iteration);
    CHECK(k > 0, "iteration %u returns a slot, and has none", iteration);
    if (durable)
        slots->durable = k;
    slots->iteration[k] = 0;
}

int slot_of(const struct slots *slots, uint32_t iteration)
{
    for (int k = 1; k <= slots->n; k++)
        if (slots->iteration[k] == iteration)
            return k;
    return 0;
}

/* ---- its tensors ------------------------------------------------------------------------------------------------- */

struct tensor *tensor_in_slot(struct tensor *tensor, int k)
{
    for (int i = 1; i < k && tensor; i++)
        tensor = tensor->extra.next_slot;
    CHECK(k > 0 && tensor, "there is no slot %d", k);
    return tensor;
}

struct tensor *tensor_at(struct tensor *tensor, uint32_t iteration)
{
    const struct slots *slots = tensor->storage->extra.slots;
    return slots ? tensor_in_slot(tensor, slot_of(slots, iteration)) : tensor;
}
