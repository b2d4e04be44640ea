/* held.c - which bytes are held when: a tree over time (see held.h).
 *
 * A node of the tree stands for a span of moments, its two children for the halves of it, a leaf for one moment.  A
 * life is put together of few nodes, at most two of each size.  Each node knows the bytes that are held at all of its
 * moments by what was put there as a whole, and those that are held at some moment below it; both as runs, which grow
 * together where they touch, so that a device that is packed well has few of them.
 */
#include "held.h"

#include "../base/base.h"

/* ---- runs ------------------------------------------------------------------------------------------------------ */

struct run { /* bytes [begin, end) */
    size_t begin, end;
};
struct runs { /* sorted, apart from each other */
    struct run *run;
    size_t n, cap;
};

static size_t first_ending_from(const struct runs *r, size_t at)
{
    size_t i;
    FIND_FIRST(i, r->n, r->run[i].end < at);
    return i;
}

static void add_run(struct runs *r, struct run new)
{
    size_t i = first_ending_from(r, new.begin), stop = i;
    for (; stop < r->n && r->run[stop].begin <= new.end; stop++) { /* what it touches becomes one with it */
        new.begin = MIN(new.begin, r->run[stop].begin);
        new.end = MAX(new.end, r->run[stop].end);
    }
    size_t behind = r->n - stop;
    if (stop == i)
        (void)APPEND(r->run, r->n, r->cap);
    r->n = i + 1 + behind;
    memmove(&r->run[i + 1], &r->run[stop], behind * sizeof *r->run);
    r->run[i] = new;
}

/* From `at` on, the first address of so many bytes that are free, not across a multiple of the limit. */
static size_t first_free(const struct runs *r, size_t at, size_t bytes, size_t limit)
{
    for (size_t i = first_ending_from(r, at + 1);; i++) {
        if (at % limit + bytes > limit)
            at = round_up(at, limit);
        if (i == r->n || at + bytes <= r->run[i].begin)
            return at;
        at = MAX(at, r->run[i].end);
    }
}

/* ---- the tree -------------------------------------------------------------------------------------------------- */

struct node {
    struct runs some, all; /* bytes held at one of its moments or more; bytes held at all of them */
};
struct held {
    size_t n_leaves;   /* a power of two */
    struct node *node; /* node 1 is the root, those below node k are 2k and 2k + 1 */
};

struct held *new_held(size_t n_moments)
{
    struct held *h = allocate(1, sizeof *h);
    for (h->n_leaves = 1; h->n_leaves < n_moments;)
        h->n_leaves *= 2;
    h->node = allocate(2 * h->n_leaves, sizeof *h->node);
    return h;
}

void free_held(struct held *h)
{
    for (size_t k = 0; k < 2 * h->n_leaves; k++)
        free(h->node[k].some.run), free(h->node[k].all.run);
    free(h->node);
    free(h);
}

enum { MOST_NODES = 128 }; /* four of each size at most */
struct life {
    size_t first, last;
    struct node *node[MOST_NODES]; /* whose moments it meets, from the root down to those that it covers */
    bool covers[MOST_NODES];
    size_t n;
};

/* Node k stands for moments begin .. end - 1. */
static void find_nodes(const struct held *h, struct life *l, size_t k, size_t begin, size_t end)
{
    if (l->last < begin || end <= l->first)
        return;
    bool covers = l->covers[l->n] = l->first <= begin && end <= l->last + 1;
    l->node[l->n++] = &h->node[k];
    if (!covers) {
        find_nodes(h, l, 2 * k, begin, (begin + end) / 2);
        find_nodes(h, l, 2 * k + 1, (begin + end) / 2, end);
    }
}

size_t hold_lowest(struct held *h, size_t first, size_t last, size_t bytes, size_t limit)
{
    struct life l = {.first = first, .last = last};
    const struct runs *held[MOST_NODES]; /* together, what is held meanwhile */
    size_t at = 0, n = 0;
    find_nodes(h, &l, 1, 0, h->n_leaves);
    for (size_t i = 0; i < l.n; i++) {
        const struct runs *r = l.covers[i] ? &l.node[i]->some : &l.node[i]->all;
        if (r->n)
            held[n++] = r;
    }
    for (size_t i = 0, agreed = 0; agreed < n; i = (i + 1) % n) { /* until it is free in all of them */
        size_t free_at = first_free(held[i], at, bytes, limit);
        agreed = free_at == at ? agreed + 1 : 1;
        at = free_at;
    }
    for (size_t i = 0; i < l.n; i++) {
        add_run(&l.node[i]->some, (struct run){at, at + bytes});
        if (l.covers[i])
            add_run(&l.node[i]->all, (struct run){at, at + bytes});
    }
    return at;
}
