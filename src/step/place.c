/* place.c - an address for every tensor.
 *
 * List position decides how long bytes are held: a tensor lives from the first task that touches it to the last one.
 * Two tensors of one list may share bytes when these spans do not meet; tensors of different lists always may, since
 * one list runs at a time; a persistent tensor shares with none.  Persistent tensors are placed first, in the order
 * they were made; then the others, largest first, each at the lowest address that is free for its whole life.  (Offline
 * "greedy by size": within a few percent of the most bytes ever live at once, which is the lower bound.)
 */
#include "step.h"

#include <stdlib.h>
#include <string.h>

/* ---- lifetimes ------------------------------------------------------------------------------------------------- */

static void find_lifetimes(struct step *s)
{
    for (size_t i = 0; i < s->n; i++)
        for (int k = 0; k < s->task[i]->n_access; k++) {
            struct tensor *t = s->task[i]->access[k].tensor->root;
            if (t->persistent)
                continue;
            CHECK(!t->step || t->step == s, "tensor %s lives in lists %s and %s but does not persist", t->name,
                  t->step->name, s->name);
            t->step = s;
            t->first = MIN(t->first, (int)i);
            t->last = MAX(t->last, (int)i);
        }
}

static bool is_used(const struct tensor *t) { return t->root == t && (t->persistent || t->step); }

static bool lives_with(const struct tensor *a, const struct tensor *b)
{
    if (a->persistent || b->persistent)
        return true;
    return a->step == b->step && a->first <= b->last && b->first <= a->last;
}

/* ---- addresses ------------------------------------------------------------------------------------------------- */

struct arena {
    struct device *device;
    struct tensor **placed; /* by address within each slab */
    size_t n;
    size_t high[256]; /* per slab: bytes in use from its start */
    int n_slabs;
};

/* Lowest address of slab `slab` that is free for t's whole life; SIZE_MAX when it does not fit. */
static size_t lowest_fit(const struct arena *a, int slab, const struct tensor *t, size_t limit)
{
    size_t at = 0, align = a->device->alignment;
    for (size_t i = 0; i < a->n; i++) {
        const struct tensor *other = a->placed[i];
        if (other->slab != slab || !lives_with(t, other))
            continue;
        if (at + t->bytes <= other->address)
            break;
        at = MAX(at, round_up(other->address + other->bytes, align));
    }
    return at + t->bytes <= limit ? at : SIZE_MAX;
}

static void insert_sorted(struct arena *a, struct tensor *t)
{
    size_t i = a->n++;
    for (; i > 0 && a->placed[i - 1]->address > t->address; i--)
        a->placed[i] = a->placed[i - 1];
    a->placed[i] = t;
}

static size_t arena_bytes(const struct arena *a)
{
    size_t sum = 0;
    for (int i = 0; i < a->n_slabs; i++)
        sum += round_up(a->high[i], a->device->alignment) + guard_bytes(a->device);
    return sum;
}

/* NULL, or what is wrong: the tensor does not fit into one piece of memory. */
static struct problem *assign(struct arena *a, struct tensor *t)
{
    size_t limit = slab_limit(a->device);
    for (t->slab = 0; t->slab < a->n_slabs; t->slab++) {
        t->address = lowest_fit(a, t->slab, t, limit);
        if (t->address != SIZE_MAX)
            break;
    }
    if (t->slab == a->n_slabs) {
        char size[32], most[32];
        if (t->bytes > limit || a->n_slabs == (int)COUNT(a->high))
            return new_problem(EXIT_USAGE, "tensor %s needs %s in one piece, device %s allows %s: use %s", t->name,
                               format_bytes(size, (double)t->bytes), a->device->id, format_bytes(most, (double)limit),
                               a->device->by_hand ? "smaller tensors, or a larger memory="
                                                  : "a smaller --micro-batch or --seq-len");
        a->n_slabs++;
        t->address = 0;
    }
    a->high[t->slab] = MAX(a->high[t->slab], t->address + t->bytes);
    insert_sorted(a, t);
    return NULL;
}

static struct problem *over_budget(const struct arena *a, const struct tensor *t)
{
    char need[32], have[32], size[32];
    const struct task *task = t->persistent ? NULL : t->step->task[t->first];
    char *where = task ? format_string("task %s (layer %d, micro-batch %d) of the %s list", task->name, task->layer,
                                       task->micro, t->step->name)
                       : copy_string("the state that is kept from step to step");
    const char *smaller = a->device->by_hand ? "smaller tensors"
                          : task             ? "a smaller --micro-batch or --seq-len"
                                             : "a smaller model";
    const char *larger = a->device->by_hand ? "memory=" : a->device->is_host ? "--host-mem" : "--device-mem";
    struct problem *p = new_problem(
        EXIT_USAGE,
        "device %s: %s does not fit: with tensor %s (%s, %s) at least %s are needed, the budget is %s; use %s, or a "
        "larger %s",
        a->device->id, where, t->name, memory_class_name[t->class], format_bytes(size, (double)t->bytes),
        format_bytes(need, (double)arena_bytes(a)), format_bytes(have, (double)a->device->budget), smaller, larger);
    free(where);
    return p;
}

static int bigger_first(const void *a, const void *b)
{
    const struct tensor *x = *(struct tensor *const *)a, *y = *(struct tensor *const *)b;
    if (x->persistent != y->persistent)
        return y->persistent - x->persistent;
    if (!x->persistent && x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->id - y->id;
}

/* The tensors of device d that have an address, in the order in which they get it.  The caller frees them. */
static struct tensor **order_tensors(const struct pool *p, const struct device *d, size_t *n)
{
    struct tensor **order = allocate(p->n, sizeof *order);
    *n = 0;
    for (size_t i = 0; i < p->n; i++)
        if (p->tensors[i]->device == d && is_used(p->tensors[i]))
            order[(*n)++] = p->tensors[i];
    if (*n)
        qsort(order, *n, sizeof *order, bigger_first);
    return order;
}

static struct problem *place_device(struct pool *p, struct arena *a)
{
    size_t n;
    struct tensor **order = order_tensors(p, a->device, &n);
    struct problem *wrong = NULL;
    a->placed = allocate(n, sizeof *a->placed);
    for (size_t i = 0; i < n && !wrong; i++) {
        wrong = assign(a, order[i]);
        if (!wrong && arena_bytes(a) > a->device->budget)
            wrong = over_budget(a, order[i]);
    }
    free(order);
    free(a->placed);
    return wrong;
}

/* Devices that use the host's memory and the host itself share it. */
static struct problem *check_ram(const struct machine *m, const struct arena *arenas)
{
    size_t sum = 0;
    char need[32], have[32];
    for (int i = 0; i <= m->n_devices; i++)
        sum += m->device[i].uses_ram ? arena_bytes(&arenas[i]) : 0;
    if (sum <= m->host->memory)
        return NULL;
    return new_problem(EXIT_USAGE,
                       "the devices and the host share one memory of %s, and together need %s; use a smaller model, "
                       "--micro-batch or --seq-len",
                       format_bytes(have, (double)m->host->memory), format_bytes(need, (double)sum));
}

/* ---- what it comes to ------------------------------------------------------------------------------------------ */

static void find_peaks(const struct pool *p, struct step *s)
{
    int64_t *change = allocate((s->n + 1) * MEM_CLASSES, sizeof *change);
    for (int d = 0; d <= p->machine->n_devices; d++) {
        memset(change, 0, (s->n + 1) * MEM_CLASSES * sizeof *change);
        for (size_t i = 0; i < p->n; i++) {
            const struct tensor *t = p->tensors[i];
            if (t->device->index != d || !is_used(t) || (!t->persistent && t->step != s))
                continue;
            size_t first = t->persistent ? 0 : (size_t)t->first, end = t->persistent ? s->n : (size_t)t->last + 1;
            change[first * MEM_CLASSES + t->class] += (int64_t)t->bytes;
            change[end * MEM_CLASSES + t->class] -= (int64_t)t->bytes;
        }
        int64_t live[MEM_CLASSES] = {0};
        for (size_t i = 0; i < s->n; i++) {
            int64_t sum = 0;
            for (int c = 0; c < MEM_CLASSES; c++) {
                live[c] += change[i * MEM_CLASSES + (size_t)c];
                s->peak[d][c] = MAX(s->peak[d][c], (size_t)live[c]);
                sum += live[c];
            }
            s->high[d] = MAX(s->high[d], (size_t)sum);
        }
    }
    free(change);
}

struct problem *place(struct pool *p, struct step *const *steps, size_t n, bool check_only)
{
    struct machine *m = p->machine;
    struct arena *arenas = allocate((size_t)m->n_devices + 1, sizeof *arenas);
    struct problem *wrong = NULL;
    for (size_t i = 0; i < n; i++)
        find_lifetimes(steps[i]);
    for (int d = 0; d <= m->n_devices && !wrong; d++) {
        arenas[d].device = &m->device[d];
        wrong = place_device(p, &arenas[d]);
    }
    if (!wrong)
        wrong = check_ram(m, arenas);
    for (int d = 0; d <= m->n_devices && !check_only; d++)
        for (int i = 0; i < arenas[d].n_slabs && !wrong; i++)
            wrong = add_slab(m, &m->device[d], round_up(arenas[d].high[i], m->device[d].alignment));
    for (size_t i = 0; i < n; i++)
        find_peaks(p, steps[i]);
    free(arenas);
    return wrong;
}
