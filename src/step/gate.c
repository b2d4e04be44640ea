/* gate.c - clipping by order: no update starts before the norm of all gradients is known.
 *
 * Where the gradient's norm is a task that the updates read from, its tensors say all of this.  A list written by hand
 * has no such tensors: there an update is *gated* by the tasks of role norm, or, where there is none, by those of role
 * backward.  depend() gives it edges from them.  The list's order must serve too: gated updates, and what follows from
 * them, come behind the last task that holds them.
 */
#include "step.h"

static enum role gate_role(const struct step *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->task[i]->role == ROLE_NORM)
            return ROLE_NORM;
    return ROLE_BACKWARD;
}

bool is_gate(const struct step *s, const struct task *t) { return t->role == gate_role(s); }

size_t list_gates(const struct step *s, struct task **gate)
{
    enum role role = gate_role(s);
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->task[i]->role == role)
            gate[n++] = s->task[i];
    return n;
}

/* Does the task follow, within the iteration, from one that is marked? */
static bool follows(const struct task *t, const bool *marked)
{
    bool yes = false;
    for (size_t e = 0; e < t->n_edges; e++)
        yes |= !t->edges[e].previous && marked[t->edges[e].from];
    return yes;
}

static void mark_gated(struct step *s)
{
    bool *knows_norm = allocate(s->n, sizeof *knows_norm);
    for (size_t i = 0; i < s->n; i++) {
        struct task *t = s->task[i];
        knows_norm[i] = t->role == ROLE_NORM || follows(t, knows_norm);
        t->gated = t->role == ROLE_UPDATE && !knows_norm[i];
    }
    free(knows_norm);
}

/* Of the tasks before `last`, gated ones and what follows from them move behind it, in their order. */
static void move_gated(struct step *s, const struct task *last)
{
    bool *moves = allocate(s->n, sizeof *moves);
    struct task **behind = allocate(s->n, sizeof *behind);
    size_t end = last->index + 1, n_behind = 0, n = 0;
    for (size_t i = 0; i < end; i++) {
        struct task *t = s->task[i];
        moves[i] = t->gated || follows(t, moves);
        if (moves[i] && t->role == last->role)
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
    free(moves);
    free(behind);
}

void gate_updates(struct step *s)
{
    struct task **gate = allocate(s->n, sizeof *gate);
    size_t n = list_gates(s, gate);
    if (n) {
        mark_gated(s);
        move_gated(s, gate[n - 1]);
    }
    free(gate);
}
