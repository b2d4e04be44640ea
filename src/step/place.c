/* place.c - an address for every tensor.
 *
 * List position decides how long bytes are held: a tensor lives from the first task that touches it to the last one.
 * Two tensors of one list may share bytes when these spans do not meet; tensors of different lists always may, since
 * one list runs at a time; a persistent tensor shares with none.  Persistent tensors are placed first, in the order
 * they were made; then the others, largest first, of equal ones the earliest, each at the lowest address that is free
 * for its whole life. (Offline "greedy by size": within a few percent of the most bytes ever live at once, which is the
 * lower bound.)  Where that takes more than the bound, they are also placed in the order in which they begin to live,
 * and what takes less is kept.
 *
 * A device of a step file that has room for all at once shares nothing, unless it says `share`.
 *
 * held.c tells that address without looking at all tensors placed before.
 */
#include "held.h"
#include "step.h"

/* ---- lifetimes ------------------------------------------------------------------------------------------------- */

static void forget_places(struct pool *p)
{
    for (size_t i = 0; i < p->n; i++) {
        struct tensor *t = p->tensors[i];
        t->step = NULL;
        t->first = INT32_MAX;
        t->last = t->slab = -1;
        t->address = 0;
    }
}

enum { APART = 512 }; /* tasks, or a sixteenth of the list */

/* What is to be apart keeps others away for some tasks before and behind it: when these get its bytes, or leave them,
 * it is long done, or not yet there. */
static int distance(const struct step *s, const struct tensor *t)
{
    int n = (int)s->n;
    return t->exclusive == EXCLUSIVE_ALWAYS ? n : t->exclusive ? MAX(n / 16, APART) : 0;
}

static void find_lifetimes(struct step *s)
{
    for (size_t i = 0; i < s->n; i++)
        for (int k = 0; k < s->task[i]->n_access; k++) {
            struct tensor *t = s->task[i]->access[k].tensor->storage;
            if (t->persistent)
                continue;
            CHECK(!t->step || t->step == s, "tensor %s lives in lists %s and %s but does not persist", t->name,
                  t->step->name, s->name);
            t->step = s;
            t->first = MIN(t->first, MAX((int)i - distance(s, t), 0));
            t->last = MAX(t->last, MIN((int)i + distance(s, t), (int)s->n - 1));
        }
}

static bool is_used(const struct tensor *t) { return t->storage == t && (t->persistent || t->step); }

/* ---- addresses ------------------------------------------------------------------------------------------------- */

/* Its time has a moment wherever a tensor begins to live, list behind list: two lives meet when they share a moment. */
struct spot {
    int slab;
    size_t address;
};
struct arena {
    struct device *device;
    struct step *const *steps; /* all lists */
    struct tensor **tensors;   /* in the order in which they get addresses */
    struct spot *spot;         /* of each */
    size_t n;
    uint64_t *moment; /* sorted */
    size_t n_moments;
    struct held *held; /* slab k lies at k times the limit of slabs */
    size_t high[256];  /* per slab: bytes in use from its start */
    int n_slabs;
};

static uint64_t moment_of(const struct arena *a, const struct tensor *t, int position)
{
    uint64_t list = 0;
    while (a->steps[list] != t->step)
        list++;
    return list << 32 | (uint32_t)position;
}

ORDER(by_moment, uint64_t, COMPARE(*a, *b))

static void find_moments(struct arena *a)
{
    size_t n = 0;
    a->moment = allocate(a->n + 1, sizeof *a->moment);
    for (size_t i = 0; i < a->n; i++)
        if (!a->tensors[i]->persistent)
            a->moment[n++] = moment_of(a, a->tensors[i], a->tensors[i]->first);
    SORT(a->moment, n, by_moment);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || a->moment[i] != a->moment[i - 1])
            a->moment[a->n_moments++] = a->moment[i];
    a->n_moments = MAX(a->n_moments, 1);
}

static size_t moments_before(const struct arena *a, uint64_t moment)
{
    size_t i;
    FIND_FIRST(i, a->n_moments, a->moment[i] < moment);
    return i;
}

static size_t arena_bytes(const struct arena *a)
{
    size_t sum = 0;
    for (int i = 0; i < a->n_slabs; i++)
        sum += round_up(a->high[i], a->device->alignment) + guard_bytes(a->device);
    return sum;
}

static struct problem *too_large(const struct arena *a, const struct tensor *t, size_t limit)
{
    char size[32], most[32];
    return new_problem(EXIT_USAGE, "tensor %s needs %s in one piece, device %s allows %s: use %s", t->name,
                       format_bytes(size, (double)t->bytes), a->device->id, format_bytes(most, (double)limit),
                       a->device->by_hand ? "smaller tensors, or a larger memory="
                                          : "a smaller --micro-batch or --seq-len");
}

/* NULL, or what is wrong: the tensor does not fit into one piece of memory. */
static struct problem *assign(struct arena *a, size_t i)
{
    const struct tensor *t = a->tensors[i];
    size_t limit = slab_limit(a->device), first = 0, last = a->n_moments - 1;
    if (t->bytes > limit)
        return too_large(a, t, limit);
    if (!t->persistent) {
        first = moments_before(a, moment_of(a, t, t->first));
        last = moments_before(a, moment_of(a, t, t->last) + 1) - 1;
    }
    size_t at = lowest_free(a->held, first, last, t->bytes, limit);
    if (at / limit >= COUNT(a->high))
        return too_large(a, t, limit);
    hold(a->held, first, last, at, at + round_up(t->bytes, a->device->alignment));
    int slab = (int)(at / limit);
    a->spot[i] = (struct spot){slab, at % limit};
    a->n_slabs = MAX(a->n_slabs, slab + 1);
    a->high[slab] = MAX(a->high[slab], at % limit + t->bytes);
    return NULL;
}

/* The first task of its list that touches the tensor. */
static const struct task *first_user(const struct tensor *t)
{
    for (size_t i = (size_t)t->first; i < t->step->n; i++)
        for (int k = 0; k < t->step->task[i]->n_access; k++)
            if (t->step->task[i]->access[k].tensor->storage == t)
                return t->step->task[i];
    return NULL;
}

/* What would need fewer bytes; task: that needs them, or NULL. */
static const char *advise(const struct arena *a, const struct step *s, const struct task *task)
{
    const struct device *d = a->device;
    if (d->by_hand)
        return "smaller tensors";
    if (!task)
        return d->is_host || strcmp(a->steps[0]->name, "train") != 0
                   ? "a smaller model"
                   : "--swap auto --swap-what optimizer,parameters, a smaller model";
    if (strcmp(s->name, "train") == 0 && s->n <= s->last_origin) /* nothing is repeated yet */
        return d->is_host ? "--recompute full, a smaller --micro-batch or --seq-len"
                          : "--recompute full, --swap auto, a smaller --micro-batch or --seq-len";
    return "a smaller --micro-batch or --seq-len";
}

static struct problem *over_budget(const struct arena *a, const struct tensor *t)
{
    char need[32], have[32], size[32];
    const struct task *task = t->persistent ? NULL : first_user(t);
    char *where = task ? format_string("task %s%s of the %s list", task->name, layer_and_micro((char[64]){0}, task),
                                       t->step->name)
                       : copy_string("the state that is kept from step to step");
    format_bytes(need, (double)arena_bytes(a)), format_bytes(have, (double)a->device->budget);
    if (strcmp(need, have) == 0) /* rounded */
        snprintf(need, sizeof need, "%zu B", arena_bytes(a)), snprintf(have, sizeof have, "%zu B", a->device->budget);
    const char *larger = a->device->by_hand ? "memory=" : a->device->is_host ? "--host-mem" : "--device-mem";
    struct problem *p = new_problem(
        EXIT_USAGE,
        "device %s: %s does not fit: with tensor %s (%s, %s) at least %s are needed, the budget is %s; use %s, or a "
        "larger %s",
        a->device->id, where, t->name, memory_class_name[t->class], format_bytes(size, (double)t->bytes), need, have,
        advise(a, t->step, task), larger);
    free(where);
    return p;
}

/* ---- in which order ------------------------------------------------------------------------------------------ */

static int by_life(const void *a, const void *b)
{
    const struct tensor *x = *(struct tensor *const *)a, *y = *(struct tensor *const *)b;
    if (x->persistent != y->persistent)
        return y->persistent - x->persistent;
    if (!x->persistent && x->first != y->first)
        return x->first - y->first;
    return x->id - y->id;
}

/* By device too. */
static int by_turn(const void *a, const void *b)
{
    const struct tensor *x = *(struct tensor *const *)a, *y = *(struct tensor *const *)b;
    if (x->device != y->device)
        return x->device->index - y->device->index;
    if (!x->persistent && !y->persistent && x->bytes != y->bytes)
        return COMPARE(y->bytes, x->bytes);
    return by_life(a, b);
}

/* NULL, or what does not fit. */
static struct problem *assign_all(struct arena *a)
{
    struct problem *wrong = NULL;
    a->held = new_held(a->n_moments);
    a->n_slabs = 0;
    memset(a->high, 0, sizeof a->high);
    for (size_t i = 0; i < a->n; i++)
        a->spot[i] = (struct spot){.slab = -1};
    for (size_t i = 0; i < a->n && !wrong; i++) {
        wrong = assign(a, i);
        if (!wrong && arena_bytes(a) > a->device->budget)
            wrong = over_budget(a, a->tensors[i]);
    }
    free_held(a->held);
    return wrong;
}

/* The most bytes ever live at once: no order takes less. */
static size_t bytes_live(const struct arena *a)
{
    size_t align = a->device->alignment, kept = 0, now = 0, most = 0;
    size_t *begins = allocate(a->n_moments + 1, sizeof *begins), *ends = allocate(a->n_moments + 1, sizeof *ends);
    for (size_t i = 0; i < a->n; i++) {
        const struct tensor *t = a->tensors[i];
        size_t bytes = round_up(t->bytes, align);
        if (t->persistent) {
            kept += bytes;
            continue;
        }
        begins[moments_before(a, moment_of(a, t, t->first))] += bytes;
        ends[moments_before(a, moment_of(a, t, t->last) + 1)] += bytes;
    }
    for (size_t i = 0; i < a->n_moments; i++) {
        now += begins[i] - ends[i];
        most = MAX(most, now);
    }
    free(begins), free(ends);
    return kept + most;
}

static void settle(const struct arena *a)
{
    for (size_t i = 0; i < a->n; i++)
        a->tensors[i]->slab = a->spot[i].slab, a->tensors[i]->address = a->spot[i].address;
}

/* In the other order too, and what takes less is kept.  `wrong`: what does not fit in the first one. */
static struct problem *assign_again(struct arena *a, struct problem *wrong)
{
    struct arena other = *a;
    other.tensors = copy_bytes(a->tensors, a->n * sizeof *a->tensors);
    other.spot = allocate(a->n, sizeof *other.spot);
    SORT(other.tensors, a->n, by_life);
    struct problem *again = assign_all(&other);
    bool better = !again && (wrong || arena_bytes(&other) < arena_bytes(a));
    if (better) {
        settle(&other);
        memcpy(a->high, other.high, sizeof a->high);
        a->n_slabs = other.n_slabs;
    }
    free(other.tensors), free(other.spot);
    free(better ? wrong : again);
    return better ? NULL : wrong;
}

static struct problem *place_device(struct arena *a)
{
    find_moments(a);
    a->spot = allocate(a->n, sizeof *a->spot);
    struct problem *wrong = assign_all(a);
    settle(a);
    if (wrong || arena_bytes(a) > bytes_live(a) + (size_t)a->n_slabs * guard_bytes(a->device))
        wrong = assign_again(a, wrong);
    free(a->moment), free(a->spot);
    return wrong;
}

/* All tensors that have an address, by turn: each arena gets its part of them.  The caller frees them. */
static struct tensor **deal_tensors(const struct pool *p, struct arena *arenas, struct step *const *steps)
{
    struct tensor **all = allocate(p->n, sizeof *all);
    size_t n = 0, first = 0;
    for (size_t i = 0; i < p->n; i++)
        if (is_used(p->tensors[i]))
            all[n++] = p->tensors[i];
    SORT(all, n, by_turn);
    for (int d = 0; d <= p->machine->n_devices; d++) {
        arenas[d] = (struct arena){.device = &p->machine->device[d], .steps = steps, .tensors = all + first};
        while (first < n && all[first]->device == arenas[d].device)
            first++, arenas[d].n++;
    }
    return all;
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

/* On paper, where memory is plenty, no tensors share bytes, so that nobody waits for any.  Of real memory no more is
 * taken than is needed. */
static void spread(struct arena *a)
{
    size_t align = a->device->alignment, sum = 0;
    for (size_t i = 0; i < a->n; i++)
        sum += round_up(a->tensors[i]->bytes, align);
    if (!a->device->by_hand || a->device->shares || sum > MIN(a->device->memory, slab_limit(a->device)))
        return;
    sum = 0;
    for (size_t i = 0; i < a->n; i++) {
        a->tensors[i]->slab = 0;
        a->tensors[i]->address = sum;
        sum += round_up(a->tensors[i]->bytes, align);
    }
}

struct problem *place(struct pool *p, struct step *const *steps, size_t n, bool check_only)
{
    struct machine *m = p->machine;
    struct arena *arenas = allocate((size_t)m->n_devices + 1, sizeof *arenas);
    struct problem *wrong = NULL;
    forget_places(p);
    for (size_t i = 0; i < n; i++)
        find_lifetimes(steps[i]);
    struct tensor **tensors = deal_tensors(p, arenas, steps);
    for (int d = 0; d <= m->n_devices && !wrong; d++) {
        wrong = place_device(&arenas[d]);
        m->device[d].placed = arena_bytes(&arenas[d]);
        if (!wrong)
            spread(&arenas[d]);
    }
    if (!wrong)
        wrong = check_ram(m, arenas);
    for (int d = 0; d <= m->n_devices && !check_only; d++)
        for (int i = 0; i < arenas[d].n_slabs && !wrong; i++)
            wrong = add_slab(m, &m->device[d], round_up(arenas[d].high[i], m->device[d].alignment));
    for (size_t i = 0; i < n; i++)
        find_peaks(steps[i]);
    free(tensors), free(arenas);
    return wrong;
}
