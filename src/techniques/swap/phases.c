/* phases.c - the fixed orders of --swap layer and --swap microbatch: when data leaves, and when it comes back.
 *
 * What a device computes of one layer, or of one micro-batch, one way, is a *phase*.
 *
 *     phases       F0    F1    F2    F3    B3    B2    B1    B0
 *     data of 0    made  out                           in    read
 *     data of 1          made  out               in    read
 *
 * The rule.  What a forward has made leaves during the phase behind it, and comes back during the last backward before
 * its reader's phase; where there is none between, during the phase before its reader's.  State (parameters, Adam's m
 * and v) goes by layers: it leaves at once, and comes back during the phase before its reader's.
 *
 * Source: "vDNN: Virtualized Deep Neural Networks for Scalable, Memory-Efficient Neural Network Design" (Rhu et al.
 * 2016).
 */
#include "swap.h"

struct phases find_phases(const struct uses *u, const struct device *d, bool by_layer)
{
    struct phases t = {allocate(u->n + 1, sizeof *t.phase), 0, (int)u->n};
    const struct task *last = NULL;
    for (int i = 0; i < t.tasks; i++) { /* a phase's tasks lie side by side on the device */
        const struct task *task = u->task[i];
        if (task->lane != d->lane[LANE_COMPUTE] || (by_layer ? task->layer : task->micro) < 0)
            continue;
        if (!last || task->role != last->role || task->micro != last->micro || (by_layer && task->layer != last->layer))
            t.phase[t.n++] = (struct phase){.first = i, .backward = task->role == ROLE_BACKWARD};
        t.phase[t.n - 1].last = i;
        last = task;
    }
    return t;
}

/* The first phase that ends at this position or behind it; n: none. */
static int phase_at(const struct phases *t, int position)
{
    int i = 0;
    while (i < t->n && t->phase[i].last < position)
        i++;
    return i;
}

/* maker NULL: x is state.  t->n as a phase is none. */
bool place_by_phases(const struct phases *t, const struct task *maker, int before, int behind, int *out, int *in)
{
    int made = maker ? phase_at(t, (int)maker->index) : t->n, before_reader = phase_at(t, behind) - 1;
    int back = before_reader;
    while (back > made && !t->phase[back].backward)
        back--;
    back = back > made ? back : before_reader;
    *out = made + 1 < t->n ? MAX(t->phase[made + 1].last, before) : before;
    *in = behind;
    if (behind < t->tasks && back >= 0 && t->phase[back].last > before)
        *in = MAX(t->phase[back].first, before + 1);
    return !maker || (*in > *out && maker->role == ROLE_FORWARD && made + 1 <= back);
}
