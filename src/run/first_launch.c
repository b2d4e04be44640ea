/* first_launch.c - launches that must be alone: a fault of PoCL's, which all CPU devices of a program share.
 *
 * PoCL 3.1 compiles a kernel anew when it is launched with the same work-group size and a wider grid than before.  It
 * counts the launches that use either, but takes the newer one off for both: when the two are in flight at once, the
 * count falls below 0 and the driver aborts the program (`found->ref_count > 0`).  So the first launch of a kernel, and
 * each that is wider than all before, waits until nothing is in flight, and the others wait for it.  That is the first
 * iteration only, in which drivers compile anyway.  PoCL 3.1 takes the width of a grid without its third dimension;
 * other versions may not, so a launch that is wider in either way waits.
 */
#include "run.h"

struct launch {
    const char *function;
    size_t local[3], plane, width; /* width without the third dimension, and with it */
};
static struct launch *launches; /* the widest of each kernel and work-group, of the whole process */
static size_t n_launches, cap_launches;

static struct launch *find_launch(const struct task *t)
{
    for (size_t i = 0; i < n_launches; i++)
        if (strcmp(launches[i].function, t->function) == 0 &&
            memcmp(launches[i].local, t->grid.local, sizeof t->grid.local) == 0)
            return &launches[i];
    struct launch *l = APPEND(launches, n_launches, cap_launches);
    *l = (struct launch){.function = copy_string(t->function)};
    memcpy(l->local, t->grid.local, sizeof l->local);
    return l;
}

bool must_be_alone(const struct step *s, const struct task *t)
{
    if (s->running->task[t->index].issued || !t->file || s->pool->machine->n_devices == 1)
        return false;
    struct launch *l = find_launch(t);
    size_t plane = MAX(t->grid.global[0], t->grid.global[1]), width = MAX(plane, t->grid.global[2]);
    bool yes = plane > l->plane || width > l->width;
    l->plane = MAX(l->plane, plane);
    l->width = MAX(l->width, width);
    return yes;
}
