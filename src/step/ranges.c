/* ranges.c - the range tracker (see ranges.h). */
#include "ranges.h"

static void insert_segment(struct space *s, size_t at, struct segment new)
{
    (void)APPEND(s->segments, s->n, s->cap);
    memmove(&s->segments[at + 1], &s->segments[at], (s->n - 1 - at) * sizeof *s->segments);
    s->segments[at] = new;
}

/* Cut segment `at` in two at byte `where`; both keep its history. */
static void split(struct space *s, size_t at, size_t where)
{
    struct segment right = s->segments[at];
    right.begin = where;
    s->segments[at].end = where;
    insert_segment(s, at + 1, right);
}

struct segment *cut_range(struct space *s, size_t begin, size_t end, size_t *count)
{
    size_t first;
    FIND_FIRST(first, s->n, s->segments[first].end <= begin);
    if (first < s->n && s->segments[first].begin < begin)
        split(s, first++, begin);
    size_t i = first;
    for (size_t at = begin; at < end; i++) {
        size_t next = i < s->n ? s->segments[i].begin : SIZE_MAX;
        if (next > at) /* a gap: never touched before */
            insert_segment(s, i,
                           (struct segment){.begin = at, .end = MIN(next, end), .writer = NOBODY, .reader = NOBODY});
        else if (s->segments[i].end > end)
            split(s, i, end);
        at = s->segments[i].end;
    }
    *count = i - first;
    return &s->segments[first];
}

void note_reader(struct readers *r, struct segment *s, int node, const struct tensor *root, bool may_write)
{
    *APPEND(r->list, r->n, r->cap) = (struct reader){node, s->reader, may_write, root};
    s->may_write |= may_write;
    s->reader = (int)r->n - 1;
}

struct space *new_spaces(const struct pool *p, bool by_address, size_t *n)
{
    *n = by_address ? (size_t)(p->machine->n_devices + 1) * SLABS_PER_DEVICE : p->n;
    return allocate(*n, sizeof(struct space));
}

void free_spaces(struct space *spaces, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(spaces[i].segments);
    free(spaces);
}

struct space *find_range(struct space *spaces, bool by_address, const struct tensor *t, size_t *begin, size_t *end)
{
    const struct tensor *root = t->root;
    *begin = t->offset + (by_address ? root->address : 0);
    *end = *begin + t->bytes;
    return &spaces[by_address ? root->device->index * SLABS_PER_DEVICE + root->slab : root->id];
}
