/* levels.c - how many bytes each device holds at each position of a placed list, and the most of them.
 *
 * The list is walked over once.  Only devices on which a tensor begins or has ended hold more or less than before, so
 * levels are few, however many devices there are.
 */
#include "step.h"

struct holding { /* of a device, at one position */
    size_t live[MEM_CLASSES], sum;
    size_t told[MEM_CLASSES]; /* in its last level */
};

static void take_bytes(struct step *s, struct holding *devices, const struct tensor *t)
{
    int d = t->device->index;
    struct holding *h = &devices[d];
    h->live[t->class] += t->bytes;
    h->sum += t->bytes;
    s->peak[d][t->class] = MAX(s->peak[d][t->class], h->live[t->class]);
    s->high[d] = MAX(s->high[d], h->sum);
}

static void give_bytes(struct holding *devices, const struct tensor *t)
{
    devices[t->device->index].live[t->class] -= t->bytes;
    devices[t->device->index].sum -= t->bytes;
}

/* Of each device there is one at the list's begin. */
static void tell_level(struct step *s, struct holding *h, int device, size_t position)
{
    if (position && memcmp(h->told, h->live, sizeof h->told) == 0)
        return;
    struct level *l = APPEND(s->level, s->n_levels, s->cap_levels);
    *l = (struct level){.device = device, .position = (int)position, .bytes = h->sum};
    memcpy(l->of_class, h->live, sizeof h->live);
    memcpy(h->told, h->live, sizeof h->told);
}

/* Tensors of the list by a position, one behind another: where they begin to live, or end. */
struct chain {
    int *head, *next; /* by position; by tensor: NONE ends it */
};
enum { NONE = -1 };

static struct chain chain_tensors(const struct step *s, bool ends)
{
    const struct pool *p = s->pool;
    struct chain c = {allocate(s->n + 1, sizeof *c.head), allocate(p->n, sizeof *c.next)};
    memset(c.head, NONE, (s->n + 1) * sizeof *c.head);
    for (size_t i = p->n; i-- > 0;) {
        const struct tensor *t = p->tensors[i];
        int position = ends ? t->last : t->first;
        if (t->storage != t || t->persistent || t->step != s)
            continue;
        c.next[i] = c.head[position];
        c.head[position] = (int)i;
    }
    return c;
}

static void hold_persistent(struct step *s, struct holding *devices)
{
    const struct pool *p = s->pool;
    size_t n_devices = (size_t)p->machine->n_devices + 1;
    memset(s->peak, 0, n_devices * sizeof *s->peak);
    memset(s->high, 0, n_devices * sizeof *s->high);
    s->n_levels = 0;
    for (size_t i = 0; i < p->n; i++)
        if (p->tensors[i]->storage == p->tensors[i] && p->tensors[i]->persistent)
            take_bytes(s, devices, p->tensors[i]);
}

static void tell_devices(struct step *s, struct holding *devices, const struct chain *c, size_t at, size_t position)
{
    for (int t = c->head[at]; t != NONE; t = c->next[t]) {
        int d = s->pool->tensors[t]->device->index;
        tell_level(s, &devices[d], d, position);
    }
}

void find_peaks(struct step *s)
{
    struct holding *devices = allocate((size_t)s->pool->machine->n_devices + 1, sizeof *devices);
    struct chain begins = chain_tensors(s, false), ends = chain_tensors(s, true);
    hold_persistent(s, devices);
    for (size_t i = 0; i < s->n; i++) {
        for (int t = begins.head[i]; t != NONE; t = begins.next[t])
            take_bytes(s, devices, s->pool->tensors[t]);
        for (int d = 0; i == 0 && d <= s->pool->machine->n_devices; d++)
            tell_level(s, &devices[d], d, 0);
        if (i > 0)
            tell_devices(s, devices, &begins, i, i), tell_devices(s, devices, &ends, i - 1, i);
        for (int t = ends.head[i]; t != NONE; t = ends.next[t])
            give_bytes(devices, s->pool->tensors[t]);
    }
    free(devices), free(begins.head), free(begins.next), free(ends.head), free(ends.next);
}
