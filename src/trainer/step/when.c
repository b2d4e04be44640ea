/* when.c - whether a task runs in an iteration.  For some tasks this is known only when all that they wait for has
 * ended.
 *
 * Such a task may need two things (struct condition, struct slot_use).  It may need bits of a *side word*, a word in
 * memory that another task of the same iteration has written.  And it may need that its iteration has a slot (slots.c),
 * which only a few iterations at a time have.  A run asks for both (run/late.c), and so does the simulation.
 */
#include "list.h"

bool is_due(const struct task *task, uint32_t iteration)
{
    return iteration % task->extra.when.every == task->extra.when.remainder;
}

bool is_conditional(const struct task *task) { return task->extra.when.every > 1 || task->extra.slot.needed; }

bool is_decided_late(const struct task *task) { return task->extra.slot.needed || task->extra.condition.needs; }

static bool is_of_word(const struct access *access) { return access->tensor->extra.is_side_word; }

static bool writes_word(const struct access *access)
{
    return access->tensor->extra.is_side_word && (access->mode & ACCESS_WRITE);
}

bool writes_side_word(const struct task *task) { return !is_copy(task) && find_access(task, writes_word); }

struct tensor *side_word_of(const struct task *task)
{
    const struct access *access = find_access(task, is_of_word);
    return access ? access->tensor : NULL;
}

int side_bits(const struct task *task) { return *(int32_t *)tensor_memory(side_word_of(task)); }

bool word_allows(const struct task *task)
{
    return !task->extra.condition.needs ||
           (side_bits(task) & task->extra.condition.needs) == task->extra.condition.needs;
}
