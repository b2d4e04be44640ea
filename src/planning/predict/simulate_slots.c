/* simulate_slots.c - which iterations of a simulated list get a slot (step/slots.c).
 *
 * Tasks that need a slot (struct slot_use in when.h) store what the iteration makes, and a few iterations at a time
 * have one.  An iteration asks once:
 *
 *     when the first task ends whose result is to be stored         asks_at_end()
 *     when a task that needs a slot has its turn before that        asks_in_turn()
 *     at once, if no task with such a result runs in it             asks_at_once()
 *
 * A task that needs a slot does not start before its iteration has asked (waits_for_slot()).  If a slot is free, the
 * iteration has it until its last task has stored.  If none is free, all tasks that need one leave the iteration: they
 * skip it, as if it were one in which they do not run (ask_for_slot() in simulate.c).
 */
#include "simulator.h"

bool waits_for_slot(const struct simulator *simulator, int node)
{
    return task_of(simulator, node)->extra.slot.needed && !simulator->iterations[node / simulator->n].has_asked;
}

/* A copy of what an update has made has its turn: must it ask for a slot?  The update has asked already, unless it
 * skips this iteration.  Then the copy asks, as in a run (run/late.c).  If it waited for an answer instead, so would
 * all that comes after it on its lane, perhaps the very update that is to ask. */
bool asks_in_turn(const struct simulator *simulator, int node)
{
    const struct task *task = task_of(simulator, node);
    if (task->extra.slot.aside || task->extra.condition.unexpected)
        return false;
    return simulator->unmet[node] == 0 && waits_for_slot(simulator, node);
}

bool give_slot(struct simulator *simulator, int iteration)
{
    struct iteration *state = &simulator->iterations[iteration];
    state->has_asked = true;
    if (!is_due(simulator->returning_task, (uint32_t)iteration + 1))
        return false;
    state->has_slot = take_slot(&simulator->slots, (uint32_t)iteration + 1) > 0;
    return true;
}

/* Has task i a result that is to be stored? */
static bool is_stored(const struct simulator *simulator, int i)
{
    return simulator->tasks[i].before_slot && !task_of(simulator, i)->extra.slot.needed;
}

bool asks_at_once(const struct simulator *simulator, int iteration)
{
    if (!simulator->returning_task)
        return false;
    for (int i = 0; i < simulator->n; i++)
        if (is_stored(simulator, i) && !skipped(simulator, node_of(simulator, iteration, i)))
            return false;
    return true;
}

bool asks_at_end(const struct simulator *simulator, int i, int iteration)
{
    return is_stored(simulator, i) && !simulator->iterations[iteration].has_asked;
}

void return_at_end(struct simulator *simulator, int i, int iteration)
{
    if (task_of(simulator, i)->extra.slot.returns)
        return_slot(&simulator->slots, (uint32_t)iteration + 1, true);
}
