/* simulate_ring.c - which iterations of a simulated list get a member of the rings (step/ring.c).
 *
 * Tasks that need a member (struct member_use in task.h) store what the iteration makes, and a few iterations at a time
 * have one.  An iteration asks once:
 *
 *     when the first task ends whose result is to be stored         ask_or_return(), at each end
 *     when a task that needs a member has its turn before that      must_ask(), for each task that may start
 *     at once, if no task with such a result runs in it             ask_if_never_later(), for each iteration
 *
 * A task that needs a member does not start before its iteration has asked (lacks_member()).  If a member is free, the
 * iteration has it until its last task has stored.  If none is free, all tasks that need one leave the iteration: they
 * skip it, as if it were one in which they do not run.
 */
#include "simulator.h"

bool lacks_member(const struct simulator *sim, int node)
{
    return task_of(sim, node)->member.needed && !sim->iteration[node / sim->n].asked;
}

/* A copy of what an update has made has its turn.  The update has asked, unless it skips this iteration: then the copy
 * asks, as in a run (run/late.c).  Else an update that comes after it on its lane would wait for an answer that waits
 * for this update. */
bool must_ask(const struct simulator *sim, int node)
{
    const struct task *t = task_of(sim, node);
    if (t->member.aside || t->condition.unexpected)
        return false;
    return sim->unmet[node] == 0 && lacks_member(sim, node);
}

/* All tasks that need a member leave the iteration, which has got none. */
static void leave_iteration(struct simulator *sim, int number)
{
    for (int i = 0; i < sim->n; i++) {
        if (!task_of(sim, i)->member.needed)
            continue;
        sim->result->moments[number * sim->n + i].skipped = true;
        count_end(sim, i, number);
    }
}

void ask_for_member(struct simulator *sim, int number)
{
    struct iteration *iteration = &sim->iteration[number];
    iteration->asked = true;
    if (!runs(sim->returning_task, (uint32_t)number + 1))
        return;
    iteration->has_member = take_member(&sim->ring, (uint32_t)number + 1) > 0;
    if (!iteration->has_member)
        leave_iteration(sim, number); /* all of them leave before a task that waits for them can start */
    for (int i = 0; i < sim->n; i++) {
        if (!task_of(sim, i)->member.needed)
            continue;
        /* If the task's last run has not ended, release() is called when it does. */
        const bool last_run_ended = latest_iteration(sim, i, number - 1) <= sim->tasks[i].last_ended;
        if (!iteration->has_member && last_run_ended)
            release(sim, i, number);
        queue_lane(sim, lane_of_node(sim, i));
    }
}

/* Has task i a result that is to be stored? */
static bool is_stored(const struct simulator *sim, int i)
{
    return sim->tasks[i].before_member && !task_of(sim, i)->member.needed;
}

void ask_if_never_later(struct simulator *sim, int number)
{
    if (!sim->returning_task)
        return;
    for (int i = 0; i < sim->n; i++)
        if (is_stored(sim, i) && !skipped(sim, number * sim->n + i))
            return;
    ask_for_member(sim, number);
}

void ask_or_return(struct simulator *sim, int i, int number)
{
    if (is_stored(sim, i) && !sim->iteration[number].asked)
        ask_for_member(sim, number);
    if (task_of(sim, i)->member.returned)
        return_member(&sim->ring, (uint32_t)number + 1, true);
}
