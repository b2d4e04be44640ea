/* condition.c - whether a task runs in an iteration, where that is known only when all that it waits for has ended.
 *
 * A task may need two things (struct condition, struct member_use).  It may need bits of a choice, a word in memory
 * that another task of the same iteration has written.  And it may need that its iteration has a member of the rings,
 * which only a few iterations at a time have (ring.c).  A run asks for both (run/late.c), and so does the simulation.
 */
#include "step.h"

bool is_conditional(const struct task *t) { return t->when.every > 1 || t->member.needed; }

bool chooses(const struct task *t)
{
    for (int i = 0; i < t->n_access; i++)
        if (t->access[i].tensor->choice && (t->access[i].mode & ACCESS_WRITE) && !is_copy(t))
            return true;
    return false;
}

struct tensor *choice_word(const struct task *t)
{
    for (int i = 0; i < t->n_access; i++)
        if (t->access[i].tensor->choice)
            return t->access[i].tensor;
    return NULL;
}

int choice_bits(const struct task *t) { return *(int32_t *)tensor_memory(choice_word(t)); }

bool has_needed(const struct task *t)
{
    return !t->condition.needs || (choice_bits(t) & t->condition.needs) == t->condition.needs;
}
