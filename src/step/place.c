/* place.c - an address for every tensor, and how many bytes each device holds when.
 *
 * List position decides how long bytes are held: a tensor lives from the first task that touches it to the last one.
 * Two tensors of one list may share bytes when these spans do not meet; tensors of different lists always may, since
 * one list runs at a time; a persistent tensor shares with none.
 *
 * On each device, persistent tensors come first, in the order they were made, then the others, each at the lowest
 * address that is free for its whole life.  There are two orders for these: largest first (offline "greedy by size":
 * within a few percent of the most bytes ever live at once, which is the lower bound), and as they begin to live.  The
 * one that takes less is kept.
 *
 * A device of a step file that has room for all at once shares nothing, unless it says `share`.
 */
#include "held.h"
#include "step.h"

/* ---- lifetimes ------------------------------------------------------------------------------------------------- */

enum { APART = 512 }; /* tasks, or a sixteenth of the list */

static void find_lifetimes(struct step *s)
{
    int n = (int)s->n;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < s->task[i]->n_access; k++) {
            struct tensor *t = s->task[i]->access[k].tensor->storage;
            if (t->persistent)
                continue;
            CHECK(!t->step || t->step == s, "tensor %s lives in lists %s and %s but does not persist", t->name,
                  t->step->name, s->name);
            /* An exclusive tensor keeps others away for so many tasks before and behind it: those that get its bytes,
             * or had them, then need not wait, since what they would wait for is long done. */
            int distance = t->exclusive == EXCLUSIVE_ALWAYS ? n : t->exclusive ? MAX(n / 16, APART) : 0;
            t->step = s;
            t->first = MIN(t->first, MAX(i - distance, 0));
            t->last = MAX(t->last, MIN(i + distance, n - 1));
        }
}

/* ---- levels ---------------------------------------------------------------------------------------------------- */

struct event { /* from this position on a tensor's device holds so many bytes more, or fewer */
    int position;
    int64_t bytes;
    const struct tensor *tensor;
};
/* At one position, what has ended goes before what begins. */
ORDER(in_time, struct event, BY(a->position, b->position, COMPARE(a->bytes > 0, b->bytes > 0)))

/* Levels are few, however many devices there are: only one on which a tensor begins or has ended gets a new one. */
static void find_levels(struct step *s)
{
    const struct pool *p = s->pool;
    size_t n_devices = (size_t)p->machine->n_devices + 1, n = 0;
    size_t *last = allocate(n_devices, sizeof *last); /* by device: its last level so far */
    struct event *events = allocate(2 * p->n, sizeof *events);
    for (size_t i = 0; i < p->n; i++) {
        const struct tensor *t = p->tensors[i];
        int64_t bytes = (int64_t)t->bytes;
        if (t->storage == t && (t->persistent || t->step == s))
            events[n++] = (struct event){t->persistent ? 0 : t->first, bytes, t};
        if (t->storage == t && !t->persistent && t->step == s && t->last + 1 < (int)s->n)
            events[n++] = (struct event){t->last + 1, -bytes, t};
    }
    SORT(events, n, in_time);
    memset(s->peak, 0, n_devices * sizeof *s->peak);
    memset(s->high, 0, n_devices * sizeof *s->high);
    s->n_levels = 0;
    for (size_t d = 0; d < n_devices; d++) {
        *APPEND(s->level, s->n_levels, s->cap_levels) = (struct level){.device = (int)d};
        last[d] = d;
    }
    for (const struct event *e = events; e < events + n; e++) {
        int d = e->tensor->device->index, class = (int)counted_as(e->tensor);
        if (s->level[last[d]].position < e->position) {
            struct level *next = APPEND(s->level, s->n_levels, s->cap_levels);
            *next = s->level[last[d]];
            next->position = e->position;
            last[d] = s->n_levels - 1;
        }
        struct level *l = &s->level[last[d]];
        l->of_class[class] += (size_t)e->bytes;
        l->bytes += (size_t)e->bytes;
        s->peak[d][class] = MAX(s->peak[d][class], l->of_class[class]);
        s->high[d] = MAX(s->high[d], l->bytes);
    }
    free(events), free(last);
}

/* ---- addresses ------------------------------------------------------------------------------------------------- */

/* Time has a moment wherever a tensor begins to live, list behind list: two lives meet when they share a moment. */
struct life {
    struct tensor *tensor;
    size_t first, last; /* moments */
};
struct arena {
    struct device *device;
    struct life *lives; /* of all its tensors */
    size_t n, cap, n_moments;
    size_t high[256]; /* per slab: bytes in use from its start */
    int n_slabs;
};

/* Where the tensor's list begins, all lists standing one behind the other. */
static size_t start_of(struct step *const *steps, const struct tensor *t)
{
    size_t start = 0;
    for (; *steps != t->step; steps++)
        start += (*steps)->n;
    return start;
}

static void find_moments(struct arena *a, struct step *const *steps, size_t n)
{
    size_t n_positions = 1;
    for (size_t i = 0; i < n; i++)
        n_positions += steps[i]->n;
    size_t *moments = allocate(n_positions, sizeof *moments); /* begun up to a position */
    for (size_t i = 0; i < a->n; i++) {
        const struct tensor *t = a->lives[i].tensor;
        if (!t->persistent)
            moments[start_of(steps, t) + (size_t)t->first] = 1;
    }
    for (size_t i = 1; i < n_positions; i++)
        moments[i] += moments[i - 1];
    a->n_moments = MAX(moments[n_positions - 1], 1);
    for (size_t i = 0; i < a->n; i++) {
        struct life *l = &a->lives[i];
        const struct tensor *t = l->tensor;
        l->first = t->persistent ? 0 : moments[start_of(steps, t) + (size_t)t->first] - 1;
        l->last = t->persistent ? a->n_moments - 1 : moments[start_of(steps, t) + (size_t)t->last] - 1;
    }
    free(moments);
}

static size_t arena_bytes(const struct arena *a)
{
    size_t sum = 0;
    for (int i = 0; i < a->n_slabs; i++)
        sum += round_up(a->high[i], a->device->alignment) + guard_bytes(a->device);
    return sum;
}

static struct problem *over_budget(const struct arena *a, const struct tensor *t)
{
    char need[32], have[32], size[32];
    const struct device *d = a->device;
    const struct task *task = NULL; /* the first that touches it */
    for (size_t i = (size_t)t->first; !t->persistent && !task; i++)
        for (int k = 0; k < t->step->task[i]->n_access; k++)
            if (t->step->task[i]->access[k].tensor->storage == t)
                task = t->step->task[i];
    char *what = task ? format_string("task %s%s of the %s list", task->name, layer_and_micro((char[64]){0}, task),
                                      t->step->name)
                      : copy_string("the state that is kept from step to step");
    format_bytes(need, (double)arena_bytes(a)), format_bytes(have, (double)d->budget);
    if (strcmp(need, have) == 0) /* rounded */
        snprintf(need, sizeof need, "%zu B", arena_bytes(a)), snprintf(have, sizeof have, "%zu B", d->budget);
    struct problem *p = new_problem(
        EXIT_USAGE,
        "device %s: %s does not fit: with tensor %s (%s, %s) at least %s are needed, the budget is %s; use %s, or a "
        "larger %s%s",
        d->id, what, t->name, memory_class_name[t->class], format_bytes(size, (double)t->bytes), need, have,
        d->by_hand ? "smaller tensors"
        : task     ? "--recompute full, --swap auto, a smaller --micro-batch or --seq-len"
                   : "a smaller model",
        d->by_hand ? "memory= or " : "", d->is_host ? "--host-mem" : "--device-mem");
    free(what);
    return p;
}

/* NULL, or what does not fit. */
static struct problem *assign(struct arena *a)
{
    struct problem *wrong = NULL;
    struct held *held = new_held(a->n_moments); /* slab k lies at k times the limit of slabs */
    size_t limit = slab_limit(a->device);
    a->n_slabs = 0;
    memset(a->high, 0, sizeof a->high);
    for (size_t i = 0; i < a->n && !wrong; i++) {
        struct tensor *t = a->lives[i].tensor;
        size_t bytes = round_up(t->bytes, a->device->alignment), at = 0;
        if (t->bytes <= limit)
            at = hold_lowest(held, a->lives[i].first, a->lives[i].last, bytes, limit);
        if (t->bytes > limit || at / limit >= COUNT(a->high)) {
            wrong = new_problem(EXIT_USAGE, "tensor %s needs %s in one piece, device %s allows %s: use %s", t->name,
                                format_bytes((char[32]){0}, (double)t->bytes), a->device->id,
                                format_bytes((char[32]){0}, (double)limit),
                                a->device->by_hand ? "smaller tensors, or a larger memory="
                                                   : "a smaller --micro-batch or --seq-len");
            break;
        }
        t->slab = (int)(at / limit);
        t->address = at % limit;
        a->n_slabs = MAX(a->n_slabs, t->slab + 1);
        a->high[t->slab] = MAX(a->high[t->slab], t->address + t->bytes);
        if (arena_bytes(a) > a->device->budget)
            wrong = over_budget(a, t);
    }
    free_held(held);
    return wrong;
}

/* What persists in the order it was made. */
static int by_life(const void *a, const void *b)
{
    const struct tensor *x = ((const struct life *)a)->tensor, *y = ((const struct life *)b)->tensor;
    int order = BY(y->persistent, x->persistent, x->persistent ? 0 : COMPARE(x->first, y->first));
    return order ? order : COMPARE(x->id, y->id);
}

static int by_size(const void *a, const void *b)
{
    const struct tensor *x = ((const struct life *)a)->tensor, *y = ((const struct life *)b)->tensor;
    bool both = !x->persistent && !y->persistent;
    return both && x->bytes != y->bytes ? COMPARE(y->bytes, x->bytes) : by_life(a, b);
}

/* Of the two orders the one that takes less. */
static struct problem *place_device(struct arena *a)
{
    SORT(a->lives, a->n, by_life);
    struct problem *other = assign(a);
    size_t bytes = arena_bytes(a), all = 0;
    SORT(a->lives, a->n, by_size);
    struct problem *wrong = assign(a);
    if (!other && (wrong || bytes < arena_bytes(a))) {
        free(wrong);
        SORT(a->lives, a->n, by_life);
        wrong = assign(a);
    }
    free(other);
    for (size_t i = 0; i < a->n; i++)
        all += round_up(a->lives[i].tensor->bytes, a->device->alignment);
    if (wrong || !a->device->by_hand || a->device->shares || all > MIN(a->device->memory, slab_limit(a->device)))
        return wrong;
    /* On paper, where memory is plenty, no tensors share bytes, so that nobody waits for any. */
    for (size_t i = 0, at = 0; i < a->n; i++) {
        a->lives[i].tensor->slab = 0;
        a->lives[i].tensor->address = at;
        at += round_up(a->lives[i].tensor->bytes, a->device->alignment);
    }
    return NULL;
}

struct problem *place(struct pool *p, struct step *const *steps, size_t n, bool check_only)
{
    struct machine *m = p->machine;
    size_t n_devices = (size_t)m->n_devices + 1, ram = 0; /* ram: bytes of the host's memory */
    struct arena *arenas = allocate(n_devices, sizeof *arenas);
    struct problem *wrong = NULL;
    for (size_t i = 0; i < p->n; i++) {
        struct tensor *t = p->tensors[i];
        t->step = NULL;
        t->first = INT32_MAX;
        t->last = t->slab = -1;
        t->address = 0;
    }
    for (size_t i = 0; i < n; i++)
        find_lifetimes(steps[i]);
    for (size_t i = 0; i < p->n; i++) {
        struct tensor *t = p->tensors[i];
        struct arena *a = &arenas[t->device->index];
        if (t->storage == t && (t->persistent || t->step))
            APPEND(a->lives, a->n, a->cap)->tensor = t;
    }
    for (size_t d = 0; d < n_devices && !wrong; d++) {
        arenas[d].device = &m->device[d];
        find_moments(&arenas[d], steps, n);
        wrong = place_device(&arenas[d]);
        m->device[d].placed = arena_bytes(&arenas[d]);
        ram += m->device[d].uses_ram ? m->device[d].placed : 0;
    }
    if (!wrong && ram > m->host->memory)
        wrong =
            new_problem(EXIT_USAGE,
                        "the devices and the host share one memory of %s, and together need %s; use a smaller "
                        "model, --micro-batch or --seq-len",
                        format_bytes((char[32]){0}, (double)m->host->memory), format_bytes((char[32]){0}, (double)ram));
    for (size_t d = 0; d < n_devices; d++) {
        for (int i = 0; i < arenas[d].n_slabs && !wrong && !check_only; i++)
            wrong = add_slab(m, &m->device[d], round_up(arenas[d].high[i], m->device[d].alignment));
        free(arenas[d].lives);
    }
    for (size_t i = 0; i < n; i++)
        find_levels(steps[i]);
    free(arenas);
    return wrong;
}
