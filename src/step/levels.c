/* levels.c - how many bytes each device holds at each position of a placed list, and the most of them.
 *
 * The list is walked over once.  Only the devices that a task and the one before it touch can hold more or less than
 * before, so levels are few, however many devices there are.
 */
#include "step.h"

#include <stdlib.h>
#include <string.h>

struct holding { /* of a device, at one position */
    size_t live[MEM_CLASSES], sum;
    size_t told; /* the sum in its last level */
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

static void tell_level(struct step *s, struct holding *h, int device, size_t position)
{
    if (h->sum == h->told)
        return;
    h->told = h->sum;
    *APPEND(s->level, s->n_levels, s->cap_levels) = (struct level){device, (int)position, h->sum};
}

/* Levels of the devices that task i and the one before it touch, of which only something can have changed. */
static void tell_levels(struct step *s, struct holding *devices, size_t i)
{
    for (size_t k = i ? i - 1 : 0; k <= i; k++)
        for (int a = 0; a < s->task[k]->n_access; a++) {
            int d = s->task[k]->access[a].tensor->device->index;
            tell_level(s, &devices[d], d, i);
        }
}

static bool held_throughout(const struct step *s, const struct tensor *t)
{
    return t->root == t && (t->persistent || (t->alone && t->step == s));
}

static void begin_peaks(struct step *s, struct holding *devices, bool *held)
{
    const struct pool *p = s->pool;
    size_t n_devices = (size_t)p->machine->n_devices + 1;
    memset(s->peak, 0, n_devices * sizeof *s->peak);
    memset(s->high, 0, n_devices * sizeof *s->high);
    s->n_levels = 0;
    for (size_t i = 0; i < p->n; i++)
        if ((held[i] = held_throughout(s, p->tensors[i])))
            take_bytes(s, devices, p->tensors[i]);
    for (size_t d = 0; d < n_devices; d++)
        tell_level(s, &devices[d], (int)d, 0);
}

void find_peaks(struct step *s)
{
    struct holding *devices = allocate((size_t)s->pool->machine->n_devices + 1, sizeof *devices);
    bool *held = allocate(s->pool->n, sizeof *held);
    begin_peaks(s, devices, held);
    for (size_t i = 0; i < s->n; i++) {
        const struct task *task = s->task[i];
        for (int a = 0; a < task->n_access; a++) {
            const struct tensor *t = task->access[a].tensor->root;
            if (!held[t->id])
                take_bytes(s, devices, t);
            held[t->id] = true;
        }
        tell_levels(s, devices, i);
        for (int a = 0; a < task->n_access; a++) {
            const struct tensor *t = task->access[a].tensor->root;
            if (held[t->id] && t->last == (int)i && !held_throughout(s, t))
                give_bytes(devices, t), held[t->id] = false;
        }
    }
    free(devices), free(held);
}
