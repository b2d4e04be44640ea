/* memory_use.c - what tensors hold on each device over time, by the clock.
 *
 * A tensor has a life in each step: from the start of the first of its tasks to the end of the last one.  Lives give
 * changes, by which more bytes are held or fewer, and changes in order of time give amounts.  In a step that is not
 * whole yet, a life goes on while tasks of its tensor are still to come.
 *
 * New records change the lives in their steps.  No change before these steps is new, so amounts up to there stay.  The
 * amounts after that are made again, from all steps that go on there.
 */
#include "trace.h"

#define OPEN UINT64_MAX /* the end of a life that goes on */
struct tensor_life {    /* the time in which a tensor is held in a step */
    uint64_t start, end;
    uint32_t ended; /* how many of its tasks have ended; 0: there is no life in this step */
};
struct memory_change { /* more or fewer bytes of a class are held on a device */
    uint64_t clock;
    uint64_t bytes; /* bytes that are added; fewer bytes wrap, and the sum is right */
    uint32_t device, class;
};
struct memory_changes {
    struct memory_change *change;
    size_t n, cap;
};
/* At one clock the order does not matter: the changes make one amount. */
COMPARISON(by_clock, struct memory_change, COMPARE(a->clock, b->clock))

/* Fills lives[0 .. n), those of a tensor in these steps of its list. */
static void find_lives(const struct trace *t, const struct trace_tensor *x, const struct trace_step *steps, size_t n,
                       struct tensor_life *lives)
{
    memset(lives, 0, n * sizeof *lives);
    for (size_t u = x->first_use; u < (size_t)x->first_use + x->n_uses; u++) {
        const struct runs *runs = &t->runs[t->uses[u]];
        size_t i, k = 0, before = n;
        FIND_FIRST(i, runs->n, t->records[runs->record[i]].step < steps->step);
        for (; i < runs->n; i++) { /* the steps of runs ascend, as `steps` do */
            const struct trace_record *r = &t->records[runs->record[i]];
            while (k < n && steps[k].step < r->step)
                k++;
            if (k == n || steps[k].step != r->step)
                continue;
            struct tensor_life *l = &lives[k];
            l->start = l->ended ? MIN(l->start, r->start) : r->start;
            l->end = MAX(l->end, r->end);
            if (k != before)
                l->ended++;
            before = k;
        }
    }
    for (size_t k = n; k > 0 && steps[k - 1].step > t->whole_step; k--)
        if (lives[k - 1].ended < x->n_uses)
            lives[k - 1].end = OPEN;
}

/* The first clock at which something happens in a step that goes on at `from`, or that was not whole before. */
static uint64_t first_change(const struct trace *t, uint64_t from)
{
    uint64_t clock = from;
    for (size_t list = 0; list < TRACE_LISTS; list++)
        for (size_t k = 0; k < t->steps[list].n; k++) {
            const struct trace_step *s = &t->steps[list].step[k];
            if (s->end >= from || s->step > t->memory_use_step)
                clock = MIN(clock, s->start);
        }
    return clock;
}

/* The clock from which amounts are made again, when records from `first` on are new. */
static uint64_t find_start(const struct trace *t, size_t first)
{
    if (first == 0)
        return 0;
    return first_change(t, first < t->n_records ? t->records[first].start : UINT64_MAX);
}

/* Removes the amounts from `from` on.  At 0 each device gets a first one: what is kept across all steps. */
static void forget_amounts(struct trace *t, uint64_t from)
{
    const struct trace_header *h = &t->header;
    for (struct memory_use *d = t->memory_use; d < t->memory_use + h->n_devices; d++) {
        while (d->n && d->amount[d->n - 1].clock >= from)
            d->n--;
        if (from == 0)
            (void)APPEND(d->amount, d->n, d->cap);
    }
    if (from > 0)
        return;
    for (const struct trace_tensor *x = t->tensors; x < t->tensors + h->n_tensors; x++)
        if (x->n_uses == 0)
            t->memory_use[x->device].amount->bytes[x->class] += x->bytes;
}

/* Adds the changes from `from` on that come from n lives of a tensor.  All its lives have the same bytes: one ends when
 * the next begins, so they are walked from the last. */
static void add_changes(struct memory_changes *all, const struct trace_tensor *x, const struct tensor_life *lives,
                        size_t n, uint64_t from)
{
    uint64_t next = OPEN;
    for (size_t i = n; i-- > 0;) {
        const struct tensor_life *l = &lives[i];
        uint64_t end = MAX(l->start, MIN(l->end, next));
        struct memory_change change = {.clock = l->start, .bytes = x->bytes, .device = x->device, .class = x->class};
        if (l->ended == 0)
            continue;
        if (l->start >= from)
            *APPEND(all->change, all->n, all->cap) = change;
        if (end != OPEN && end >= from) {
            change.clock = end;
            change.bytes = -x->bytes;
            *APPEND(all->change, all->n, all->cap) = change;
        }
        next = l->start;
    }
}

/* The first step of a list that goes on at `from`, or was not whole before. */
static size_t first_open_step(const struct trace *t, const struct trace_step_list *steps, uint64_t from)
{
    size_t k = 0;
    while (k < steps->n && steps->step[k].end < from && steps->step[k].step <= t->memory_use_step)
        k++;
    return k;
}

/* By how much the bytes of tensors change from that clock on, sorted by clock; the caller frees `change`. */
static struct memory_changes find_changes(const struct trace *t, uint64_t from)
{
    struct memory_changes all = {NULL, 0, 0};
    struct tensor_life *lives = NULL;
    size_t cap = 0, first[TRACE_LISTS];
    for (size_t list = 0; list < TRACE_LISTS; list++)
        first[list] = first_open_step(t, &t->steps[list], from);
    for (const struct trace_tensor *x = t->tensors; x < t->tensors + t->header.n_tensors; x++) {
        const struct trace_step_list *steps = &t->steps[x->list];
        const size_t k = first[x->list], n = steps->n - k;
        if (x->n_uses == 0 || n == 0)
            continue;
        lives = grow(lives, &cap, n, sizeof *lives);
        find_lives(t, x, &steps->step[k], n, lives);
        add_changes(&all, x, lives, n, from);
    }
    free(lives);
    SORT(all.change, all.n, by_clock);
    return all;
}

/* Updates the peaks of the amounts from index i on. */
static void update_peaks(struct memory_use *d, size_t i)
{
    for (; i < d->n; i++) {
        const uint64_t before = i > 0 ? d->amount[i - 1].peak : 0;
        d->amount[i].peak = MAX(before, sum_amount(&d->amount[i]));
    }
}

void trace_update_memory(struct trace *t, size_t first)
{
    const uint32_t n_devices = t->header.n_devices;
    uint64_t from = find_start(t, first);
    forget_amounts(t, from);
    size_t *kept = allocate(n_devices, sizeof *kept); /* the amounts that stay; the last of them may be changed */
    for (uint32_t i = 0; i < n_devices; i++)
        kept[i] = t->memory_use[i].n - 1;
    struct memory_changes all = find_changes(t, from);
    for (size_t i = 0; i < all.n; i++) {
        const struct memory_change *change = &all.change[i];
        struct memory_use *d = &t->memory_use[change->device];
        struct amount last = d->amount[d->n - 1];
        if (last.clock < change->clock)
            *APPEND(d->amount, d->n, d->cap) = last;
        d->amount[d->n - 1].clock = change->clock;
        d->amount[d->n - 1].bytes[change->class] += change->bytes;
    }
    for (uint32_t i = 0; i < n_devices; i++)
        update_peaks(&t->memory_use[i], kept[i]);
    t->memory_use_step = t->whole_step;
    free(kept);
    free(all.change);
}

/* ---- questions -------------------------------------------------------------------------------------------------- */

const struct amount *amount_at(const struct memory_use *use, uint64_t clock)
{
    size_t i;
    FIND_FIRST(i, use->n, use->amount[i].clock <= clock);
    return &use->amount[i - 1];
}

uint64_t sum_amount(const struct amount *a)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < TRACE_CLASSES; i++)
        sum += a->bytes[i];
    return sum;
}

uint64_t trace_peak(const struct memory_use *use) { return use->amount[use->n - 1].peak; }

COMPARISON_POINTERS(largest_first, struct trace_tensor, BY(b->bytes, a->bytes, COMPARE(a, b)))

static bool is_alive(const struct trace *t, const struct trace_tensor *x, uint64_t clock)
{
    const struct trace_step_list *steps = &t->steps[x->list];
    bool alive = !x->n_uses;
    for (size_t k = 0; k < steps->n && !alive; k++) {
        const struct trace_step *s = &steps->step[k];
        struct tensor_life l;
        if (s->start > clock || (s->end <= clock && s->step <= t->whole_step))
            continue;
        find_lives(t, x, s, 1, &l);
        alive = l.ended && l.start <= clock && l.end > clock;
    }
    return alive;
}

size_t trace_alive_at(const struct trace *t, uint32_t device, uint64_t clock, const struct trace_tensor ***tensors)
{
    size_t n = 0, cap = 0;
    *tensors = NULL;
    for (const struct trace_tensor *x = t->tensors; x < t->tensors + t->header.n_tensors; x++)
        if (x->device == device && is_alive(t, x, clock))
            *APPEND(*tensors, n, cap) = x;
    SORT(*tensors, n, largest_first);
    return n;
}
