/* condition.c - whether a task runs in an iteration, where that is known only when all that it waits for has ended.
 *
 * A task may need two things (struct condition, struct member_use).  It may need bits of a choice, a word in memory
 * that another task of the same iteration has written.  And it may need that its iteration has a member of the rings,
 * which only a few iterations at a time have (ring.c).  A run asks for both (run/late.c), and so does the simulation.
 */
#include "list.h"

bool is_conditional(const struct task *task) { return task->when.every > 1 || task->member.needed; }

bool chooses(const struct task *task)
{
    for (int i = 0; i < task->n_accesses; i++)
        if (task->accesses[i].tensor->choice && (task->accesses[i].mode & ACCESS_WRITE) && !is_copy(task))
            return true;
    return false;
}

struct tensor *choice_word(const struct task *task)
{
    for (int i = 0; i < task->n_accesses; i++)
        if (task->accesses[i].tensor->choice)
            return task->accesses[i].tensor;
    return NULL;
}

int choice_bits(const struct task *task) { return *(int32_t *)tensor_memory(choice_word(task)); }

bool has_needed(const struct task *task)
{
    return !task->condition.needs || (choice_bits(task) & task->condition.needs) == task->condition.needs;
}
