/* widest.c - launches that must be alone: a fault of PoCL's, which all CPU devices of a program share.
 *
 * PoCL 3.1 compiles a kernel anew when it is launched with the same work-group size and a wider grid than before.  It
 * counts the launches that use either, but takes the newer one off for both: when the two are in flight at once, the
 * count falls below 0 and the driver aborts the program (`found->ref_count > 0`).  So the first launch of a kernel, and
 * each that is wider than all before, waits until nothing is in flight, and the others wait for it.  That is the first
 * iteration only, in which drivers compile anyway.
 */
#include "run.h"

#include <string.h>

struct launch {
    const char *function;
    size_t local[3], width;
};
static struct launch *launches; /* the widest of each kernel and work-group, of the whole process */
static size_t n_launches, cap_launches;

static size_t width_of(const struct grid *g) { return MAX(g->global[0], MAX(g->global[1], g->global[2])); }

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

bool is_widest(const struct step *s, const struct task *t)
{
    if (t->issued || !t->kernel || s->pool->machine->n_devices == 1)
        return false;
    struct launch *l = find_launch(t);
    size_t width = width_of(&t->grid);
    bool yes = width > l->width;
    l->width = MAX(l->width, width);
    return yes;
}
