/* gate.c - clipping by order: no update starts before the norm of all gradients is known.
 *
 * Where the gradient's norm is a task that the updates read from, its tensors say all of this.  A list written by hand
 * has no such tensors: there the tasks of role norm, or, where there is none, those of role backward, *hold* the
 * updates.  The list's order must serve too: updates that are held, and what follows from them, come behind the last
 * task that holds them.
 *
 * An ordinary tensor that says it would cost a task of the list its place, or a device its bytes, and would make the
 * next step's norm wait for this step's updates, which share no bytes with it.  So tasks are marked, and depend() gives
 * those that are held an edge from each lane's last that holds.
 */
#include "lists.h"

/* Does the task follow, within the iteration, from one that is marked? */
static bool follows(const struct task *t, const bool *marked)
{
    bool yes = false;
    for (size_t e = 0; e < t->n_edges; e++)
        yes |= !t->edges[e].previous && marked[t->edges[e].from];
    return yes;
}

void gate_updates(struct step *s)
{
    enum role role = ROLE_BACKWARD;
    size_t end = 0, n = 0, n_behind = 0; /* end: behind the last task that holds */
    bool *knows_norm = allocate(s->n, sizeof *knows_norm), *moves = allocate(s->n, sizeof *moves);
    struct task **behind = allocate(s->n, sizeof *behind);
    depend(s, false);
    for (size_t i = 0; i < s->n; i++)
        role = s->task[i]->role == ROLE_NORM ? ROLE_NORM : role;
    for (size_t i = 0; i < s->n; i++)
        if (s->task[i]->role == role) {
            end = i + 1;
            s->task[i]->gate = GATE_HOLDS;
        }
    for (size_t i = 0; i < s->n && end; i++) {
        struct task *t = s->task[i];
        knows_norm[i] = t->role == ROLE_NORM || follows(t, knows_norm);
        if (t->role == ROLE_UPDATE && !knows_norm[i])
            t->gate = GATE_HELD;
    }
    /* Those before it that are held, and what follows from them, move behind it, in their order. */
    for (size_t i = 0; i < end; i++) {
        struct task *t = s->task[i];
        moves[i] = t->gate == GATE_HELD || follows(t, moves);
        if (moves[i] && t->role == role)
            fail(EXIT_USAGE,
                 "task %zu %s is of role %s and follows from an update, which --clip holds until it has ended: give "
                 "the update another role, or --clip 0",
                 i, t->name, role_name[t->role]);
        if (moves[i])
            behind[n_behind++] = t;
        else
            s->task[n++] = t;
    }
    memcpy(s->task + n, behind, n_behind * sizeof *behind);
    for (size_t i = 0; i < end; i++)
        s->task[i]->index = i;
    free(knows_norm), free(moves), free(behind);
}
