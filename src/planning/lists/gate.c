/* gate.c - clipping by order: no update starts before the norm of all gradients is known.
 *
 *     an update                                       waits
 *     that follows from a task of role norm           for what that task writes: nothing is to be done
 *     any other, in a list with tasks of role norm    at the *gate*, which these tasks open
 *     any other, in a list without                    at the gate, which the tasks of role backward open
 *
 * The last two are for lists that were written by hand.  Tasks that open the gate, or wait at it, are marked, and
 * depend() gives each task that waits an edge from the last task of each lane that opens.  The list's order must fit
 * too: updates that wait, and the tasks that follow from them, come after the last task that opens.
 *
 * One could instead add a tensor that the opening tasks write and the updates read.  But it would take bytes of a
 * device, and it would make the next step's norm wait for this step's updates, though they share no other bytes.
 */
#include "lists.h"

/* Does the task follow, within the iteration, from one that is marked? */
static bool follows(const struct task *task, const bool *marked)
{
    for (const struct edge *edge = task->edges; edge < task->edges + task->n_edges; edge++)
        if (!edge->previous && marked[edge->producer])
            return true;
    return false;
}

/* The role of the tasks that open the gate. */
static enum role opening_role(const struct list *list)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->tasks[i]->role == ROLE_NORM)
            return ROLE_NORM;
    return ROLE_BACKWARD;
}

/* Marks the tasks that open the gate.  Returns the number of tasks up to the last of them, this one included; 0: there
 * is none. */
static size_t mark_openers(struct list *list, enum role role)
{
    size_t end = 0;
    for (size_t i = 0; i < list->n; i++)
        if (list->tasks[i]->role == role) {
            end = i + 1;
            list->tasks[i]->extra.gate = GATE_OPENS;
        }
    return end;
}

/* Marks the updates that wait at the gate: those that do not follow from a norm. */
static void mark_waiting(struct list *list)
{
    bool *knows_norm = allocate(list->n, sizeof *knows_norm);
    for (size_t i = 0; i < list->n; i++) {
        struct task *task = list->tasks[i];
        knows_norm[i] = task->role == ROLE_NORM || follows(task, knows_norm);
        if (task->role == ROLE_UPDATE && !knows_norm[i])
            task->extra.gate = GATE_WAITS;
    }
    free(knows_norm);
}

/* Among the first `end` tasks, those that wait at the gate and those that follow from them move to the end, in their
 * order. */
static void move_waiting(struct list *list, size_t end, enum role role)
{
    size_t n = 0, n_moved = 0;
    bool *moves = allocate(list->n, sizeof *moves);
    size_t *positions = allocate(list->n, sizeof *positions);
    size_t *moved = allocate(list->n, sizeof *moved);
    for (size_t i = 0; i < end; i++) {
        const struct task *task = list->tasks[i];
        moves[i] = task->extra.gate == GATE_WAITS || follows(task, moves);
        if (moves[i] && task->role == role)
            fail(EXIT_USAGE,
                 "task %zu %s follows from an update, but --clip holds all updates until every task of its role, %s, "
                 "has ended: give the update another role, or use --clip 0",
                 i, task->name, role_name[task->role]);
        if (moves[i])
            moved[n_moved++] = i;
        else
            positions[n++] = i;
    }
    memcpy(positions + n, moved, n_moved * sizeof *moved);
    permute_tasks(list, 0, positions, end);
    free(moves);
    free(positions);
    free(moved);
}

void gate_updates(struct list *list)
{
    enum role role = opening_role(list);
    depend(list, DATA_EDGES);
    size_t end = mark_openers(list, role);
    if (end == 0)
        return;
    mark_waiting(list);
    move_waiting(list, end, role);
}
