/* held.c - what tensors hold on each device over time, by the clock.
 *
 * A tensor has a life in each step: from the start of the first of its tasks to the end of the last one.  Lives give
 * events, more bytes or fewer, and events in order give amounts.  In a step that is not whole yet, a life goes on while
 * tasks of its tensor are still to come.
 *
 * When records come, lives of their steps change.  No event before these steps does, so amounts up to there stay, and
 * those behind are made again, from all steps that go on there.
 */
#include "trace.h"

#define OPEN UINT64_MAX
struct life {            /* of a tensor in a step; ended: of how many of its tasks */
    uint64_t start, end; /* OPEN: it goes on */
    uint32_t ended;      /* 0: there is none */
};
struct event {
    uint64_t clock, bytes; /* fewer bytes wrap, and the sum is right */
    uint32_t device, class;
};
/* At one clock the order does not matter: they make one amount. */
ORDER(by_clock, struct event, COMPARE(a->clock, b->clock))

/* [n] lives in these steps of the tensor's list. */
static void find_lives(const struct trace *t, const struct trace_tensor *x, const struct trace_step *steps, size_t n,
                       struct life *lives)
{
    memset(lives, 0, n * sizeof *lives);
    for (size_t u = x->first_use; u < (size_t)x->first_use + x->n_uses; u++) {
        const struct runs *runs = &t->runs[t->uses[u]];
        size_t i, k = 0, before = n;
        FIND_FIRST(i, runs->n, t->records[runs->record[i]].step < steps->step);
        for (; i < runs->n; i++) { /* both ascend */
            const struct trace_record *r = &t->records[runs->record[i]];
            while (k < n && steps[k].step < r->step)
                k++;
            if (k == n || steps[k].step != r->step)
                continue;
            struct life *l = &lives[k];
            *l = (struct life){l->ended ? MIN(l->start, r->start) : r->start, MAX(l->end, r->end),
                               l->ended + (k != before)};
            before = k;
        }
    }
    for (size_t k = n; k > 0 && steps[k - 1].step > t->whole_step; k--)
        lives[k - 1].end = lives[k - 1].ended < x->n_uses ? OPEN : lives[k - 1].end;
}

/* The first clock at which something happens in a step that goes on at `from`, or was not whole before. */
static uint64_t first_change(const struct trace *t, uint64_t from)
{
    uint64_t clock = from;
    for (size_t list = 0; list < TRACE_LISTS; list++)
        for (size_t k = 0; k < t->steps[list].n; k++) {
            const struct trace_step *s = &t->steps[list].step[k];
            clock = s->end >= from || s->step > t->held_step ? MIN(clock, s->start) : clock;
        }
    return clock;
}

void trace_hold(struct trace *t, size_t first)
{
    const struct trace_header *h = &t->header;
    uint64_t from = first ? first_change(t, first < t->n_records ? t->records[first].start : UINT64_MAX) : 0;
    struct event *events = NULL;
    struct life *lives = NULL;
    size_t n = 0, cap = 0, cap_lives = 0;
    for (struct held *d = t->held; d < t->held + h->n_devices; d++) {
        while (d->n && d->amount[d->n - 1].clock >= from)
            d->n--;
        if (from == 0)
            (void)APPEND(d->amount, d->n, d->cap);
    }
    for (const struct trace_tensor *x = t->tensors; x < t->tensors + h->n_tensors; x++) {
        const struct trace_step_list *steps = &t->steps[x->list];
        size_t k = 0;
        while (k < steps->n && steps->step[k].end < from && steps->step[k].step <= t->held_step)
            k++;
        if (!x->n_uses && from == 0)
            t->held[x->device].amount->bytes[x->class] += x->bytes;
        if (!x->n_uses || k == steps->n)
            continue;
        lives = grow(lives, &cap_lives, steps->n - k, sizeof *lives);
        find_lives(t, x, &steps->step[k], steps->n - k, lives);
        uint64_t next = OPEN; /* its bytes are the same ones: a life ends when the next begins */
        for (const struct life *l = lives + steps->n - k; l-- > lives;) {
            uint64_t end = MAX(l->start, MIN(l->end, next));
            if (l->ended && l->start >= from)
                *APPEND(events, n, cap) = (struct event){l->start, x->bytes, x->device, x->class};
            if (l->ended && end != OPEN && end >= from)
                *APPEND(events, n, cap) = (struct event){end, -x->bytes, x->device, x->class};
            next = l->ended ? l->start : next;
        }
    }
    SORT(events, n, by_clock);
    for (const struct event *e = events; e < events + n; e++) {
        struct held *d = &t->held[e->device];
        struct amount last = d->amount[d->n - 1];
        if (last.clock < e->clock)
            *APPEND(d->amount, d->n, d->cap) = last;
        d->amount[d->n - 1].clock = e->clock;
        d->amount[d->n - 1].bytes[e->class] += e->bytes;
    }
    t->held_step = t->whole_step;
    free(events), free(lives);
}

/* ---- questions -------------------------------------------------------------------------------------------------- */

const struct amount *amount_at(const struct held *h, uint64_t clock)
{
    size_t i;
    FIND_FIRST(i, h->n, h->amount[i].clock <= clock);
    return &h->amount[i - 1];
}

uint64_t sum_amount(const struct amount *a)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < TRACE_CLASSES; i++)
        sum += a->bytes[i];
    return sum;
}

uint64_t trace_peak(const struct held *h)
{
    uint64_t peak = 0;
    for (size_t i = 0; i < h->n; i++)
        peak = MAX(peak, sum_amount(&h->amount[i]));
    return peak;
}

ORDER_POINTERS(largest_first, struct trace_tensor, BY(b->bytes, a->bytes, COMPARE(a, b)))

static bool is_alive(const struct trace *t, const struct trace_tensor *x, uint64_t clock)
{
    const struct trace_step_list *steps = &t->steps[x->list];
    bool alive = !x->n_uses;
    for (size_t k = 0; k < steps->n && !alive; k++) {
        const struct trace_step *s = &steps->step[k];
        struct life l;
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
