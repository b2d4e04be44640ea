/* levels.c - how many bytes each device holds, by class, from which position of the list on.  Reports and the viewer
 * show this.
 */
#include "place.h"

struct holding { /* from this position on a tensor's device holds so many bytes more, or fewer */
    int position;
    int64_t bytes;
    const struct tensor *tensor;
};

/* At one position, tensors that have ended go before those that begin. */
COMPARISON(in_time, struct holding, BY(a->position, b->position, COMPARE(a->bytes > 0, b->bytes > 0)))

/* All changes of what the list's devices hold, in their order; *n of them. */
static struct holding *list_holdings(const struct step *s, size_t *n)
{
    const struct pool *p = s->pool;
    struct holding *all = allocate(2 * p->n, sizeof *all);
    *n = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct tensor *x = p->tensors[i];
        if (x->storage != x || (!x->persistent && x->step != s))
            continue;
        struct holding begin = {.position = x->persistent ? 0 : x->held_from, .bytes = (int64_t)x->bytes, .tensor = x};
        struct holding end = {.position = x->held_until + 1, .bytes = -(int64_t)x->bytes, .tensor = x};
        all[(*n)++] = begin;
        if (!x->persistent && end.position < (int)s->n)
            all[(*n)++] = end;
    }
    SORT(all, *n, in_time);
    return all;
}

/* A device gets a new level only where a tensor begins or has ended on it.  So levels are few, however many devices
 * there are. */
void find_levels(struct step *s)
{
    size_t n_devices = (size_t)s->pool->machine->n_devices + 1, n;
    size_t *last = allocate(n_devices, sizeof *last); /* by device: its last level so far */
    struct holding *holdings = list_holdings(s, &n);
    memset(s->peak, 0, n_devices * sizeof *s->peak);
    memset(s->peak_total, 0, n_devices * sizeof *s->peak_total);
    s->n_levels = 0;
    for (size_t d = 0; d < n_devices; d++) {
        *APPEND(s->level, s->n_levels, s->cap_levels) = (struct level){.device = (int)d};
        last[d] = d;
    }
    for (const struct holding *h = holdings; h < holdings + n; h++) {
        int device = h->tensor->device->index, class = (int)counted_as(h->tensor);
        if (s->level[last[device]].position < h->position) {
            struct level *next = APPEND(s->level, s->n_levels, s->cap_levels);
            *next = s->level[last[device]];
            next->position = h->position;
            last[device] = s->n_levels - 1;
        }
        struct level *level = &s->level[last[device]];
        level->of_class[class] += (size_t)h->bytes;
        level->bytes += (size_t)h->bytes;
        s->peak[device][class] = MAX(s->peak[device][class], level->of_class[class]);
        s->peak_total[device] = MAX(s->peak_total[device], level->bytes);
    }
    free(holdings);
    free(last);
}
