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
 * The host has an arena for each context.  Its slabs are pinned for the context, and hold what the context's devices
 * copy.  A move between two contexts is two copies, down to the host and up from it, and its bytes can be pinned for
 * one context only.  They are pinned for the one that copies down.  The reason is NVIDIA's driver: a copy into memory
 * that is not pinned keeps the caller until the bytes are there, a copy out of it only until they have been read.
 *
 * A device of a step file that has room for all at once shares nothing, unless it says `share`.
 */
#include "step.h"
#include "trainer/base/module.h"

/* ---- lifetimes ------------------------------------------------------------------------------------------------- */

enum { APART = 512 }; /* tasks; in a long list a sixteenth of it */

/* An exclusive tensor keeps others away for so many tasks before and after its life.  Tasks that touch its bytes as
 * another tensor's then need not wait, since the tasks that they would wait for have ended long ago. */
static int distance_of(const struct tensor *t, int n)
{
    if (t->exclusive == EXCLUSIVE_ALWAYS)
        return n;
    return t->exclusive == EXCLUSIVE_SOME ? MAX(n / 16, APART) : 0;
}

static void find_lifetimes(struct step *s)
{
    int n = (int)s->n;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < s->task[i]->n_access; k++) {
            const struct access *a = &s->task[i]->access[k];
            struct tensor *t = a->tensor->storage;
            const struct device *d = s->task[i]->lane->device;
            if (!d->is_host && (!t->copier || (a->mode & ACCESS_WRITE)))
                for (struct tensor *member = t; member; member = member->next_member)
                    member->copier = d;
            if (t->persistent)
                continue;
            CHECK(!t->step || t->step == s, "tensor %s lives in lists %s and %s but does not persist", t->name,
                  t->step->name, s->name);
            int distance = distance_of(t, n);
            t->step = s;
            t->first = MIN(t->first, MAX(i - distance, 0));
            t->last = MAX(t->last, MIN(i + distance, n - 1));
        }
}

/* ---- levels ---------------------------------------------------------------------------------------------------- */

struct holding { /* from this position on a tensor's device holds so many bytes more, or fewer */
    int position;
    int64_t bytes;
    const struct tensor *tensor;
};

/* At one position, tensors that have ended go before those that begin. */
ORDER(in_time, struct holding, BY(a->position, b->position, COMPARE(a->bytes > 0, b->bytes > 0)))

/* All changes of what the list's devices hold, in their order; *n of them. */
static struct holding *list_holdings(const struct step *s, size_t *n)
{
    const struct pool *p = s->pool;
    struct holding *all = allocate(2 * p->n, sizeof *all);
    *n = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct tensor *t = p->tensors[i];
        if (t->storage != t || (!t->persistent && t->step != s))
            continue;
        struct holding begin = {.position = t->persistent ? 0 : t->first, .bytes = (int64_t)t->bytes, .tensor = t};
        struct holding end = {.position = t->last + 1, .bytes = -(int64_t)t->bytes, .tensor = t};
        all[(*n)++] = begin;
        if (!t->persistent && end.position < (int)s->n)
            all[(*n)++] = end;
    }
    SORT(all, *n, in_time);
    return all;
}

/* Levels are few, however many devices there are: only one on which a tensor begins or has ended gets a new one. */
static void find_levels(struct step *s)
{
    size_t n_devices = (size_t)s->pool->machine->n_devices + 1, n;
    size_t *last = allocate(n_devices, sizeof *last); /* by device: its last level so far */
    struct holding *holdings = list_holdings(s, &n);
    memset(s->peak, 0, n_devices * sizeof *s->peak);
    memset(s->high, 0, n_devices * sizeof *s->high);
    s->n_levels = 0;
    for (size_t d = 0; d < n_devices; d++) {
        *APPEND(s->level, s->n_levels, s->cap_levels) = (struct level){.device = (int)d};
        last[d] = d;
    }
    for (const struct holding *h = holdings; h < holdings + n; h++) {
        int d = h->tensor->device->index, class = (int)counted_as(h->tensor);
        if (s->level[last[d]].position < h->position) {
            struct level *next = APPEND(s->level, s->n_levels, s->cap_levels);
            *next = s->level[last[d]];
            next->position = h->position;
            last[d] = s->n_levels - 1;
        }
        struct level *level = &s->level[last[d]];
        level->of_class[class] += (size_t)h->bytes;
        level->bytes += (size_t)h->bytes;
        s->peak[d][class] = MAX(s->peak[d][class], level->of_class[class]);
        s->high[d] = MAX(s->high[d], level->bytes);
    }
    free(holdings);
    free(last);
}

/* ---- addresses ------------------------------------------------------------------------------------------------- */

/* Time is counted in positions, one list's after those of the list before: two lives meet when they share one. */
struct life {
    struct tensor *tensor;
    size_t first, last; /* positions */
    size_t bytes;       /* how many bytes it takes, rounded up to the device's alignment */
    size_t at;          /* its first byte, counted over all slabs: slab k begins at k times the limit of slabs */
};
struct arena {
    struct device *device;
    struct life *lives; /* one for each of its tensors */
    size_t n, cap;
    size_t n_positions;            /* positions of all lists together */
    size_t before;                 /* bytes of the device's arenas before this one */
    int first_slab;                /* slabs of the device's arenas before this one */
    size_t high[SLABS_PER_DEVICE]; /* by slab: bytes in use from its start */
    int n_slabs;
};

/* Addresses that are in use, as ranges in their order; two that meet are one. */
struct address_range {
    size_t begin, end;
};
struct taken {
    struct address_range *range;
    size_t n, cap;
};

/* A map of all lives that have an address.  Time is cut into stretches of equally many positions, more in a long list.
 * They are the leaves of a binary tree, whose nodes stand for longer and longer pieces of time:
 *
 *     node 1           |-------------------------------|
 *     nodes 2, 3       |---------------|---------------|
 *     nodes 4 .. 7     |-------|-------|-------|-------|      stretches 0 .. 3
 *     a life               |===================|              begins within stretch 0; covers node 5, and stretch 2
 *
 * A life is noted at the few nodes that together make up the time which it covers, and in the stretches of its ends.
 * The ranges that cover a node are passed on to the halves below when a life comes that covers only a part of the node.
 * So a life, however long, looks at few nodes, and there at ranges, which meet and become one, rather than at lives. */
enum { LIVES_PER_STRETCH = 128, MOST_NODES = 128 };
struct node {
    struct taken touched; /* addresses of all lives that are there for some of its time */
    struct taken covered; /* addresses of lives that are there for all of it, if not yet passed on to the nodes below */
    struct life *life;    /* if it is a stretch: the lives that begin or end within it, by address */
    size_t n, cap;
};
struct map {
    struct node *node;
    size_t n_stretches; /* a power of 2 */
    size_t positions;   /* positions of a stretch */
    size_t *looks;      /* counts ranges and lives that are looked at or moved */
    /* What the life that gets an address must not meet: */
    const struct taken *set[MOST_NODES]; /* ranges; the set of the longest node comes first */
    const struct node *end[2];           /* lives of the stretches in which it begins and ends */
    size_t n_sets, n_ends;
    size_t widest; /* positions of the longest node in set[] */
};

static void open_map(struct map *m, const struct arena *a, size_t *looks)
{
    *m = (struct map){.n_stretches = 1, .looks = looks};
    while (m->n_stretches * LIVES_PER_STRETCH < a->n)
        m->n_stretches *= 2;
    m->positions = a->n_positions / m->n_stretches + 1;
    m->node = allocate(2 * m->n_stretches, sizeof *m->node);
}

static void close_map(struct map *m)
{
    for (size_t i = 0; i < 2 * m->n_stretches; i++) {
        free(m->node[i].covered.range);
        free(m->node[i].touched.range);
        free(m->node[i].life);
    }
    free(m->node);
}

/* Counts a look at an address, which it returns. */
static size_t look_at(const struct map *m, size_t address)
{
    (*m->looks)++;
    return address;
}

/* The first range that ends at `at` or at a higher address. */
static size_t find_range(const struct map *m, const struct taken *t, size_t at)
{
    size_t i;
    FIND_FIRST(i, t->n, look_at(m, t->range[i].end) < at);
    return i;
}

/* Adds a range; those that meet it become one with it. */
static void take(const struct map *m, struct taken *t, size_t begin, size_t end)
{
    size_t i = find_range(m, t, begin);
    size_t next = i; /* the first range that lies wholly after the new one */
    while (next < t->n && t->range[next].begin <= end) {
        begin = MIN(begin, t->range[next].begin);
        end = MAX(end, t->range[next].end);
        next++;
    }
    if (next == i) { /* it meets none */
        (void)APPEND(t->range, t->n, t->cap);
        memmove(&t->range[i + 1], &t->range[i], (t->n - 1 - i) * sizeof *t->range);
    } else {
        memmove(&t->range[i + 1], &t->range[next], (t->n - next) * sizeof *t->range);
        t->n -= next - i - 1;
    }
    t->range[i] = (struct address_range){begin, end};
    *m->looks += t->n - i;
}

/* The lowest address from `end` on at which a life does not lie across the border of two slabs. */
static size_t within_slab(size_t end, const struct life *l, size_t limit)
{
    bool lies_across = end % limit + l->bytes > limit;
    return lies_across ? round_up(end, limit) : end;
}

/* From l->at on, the lowest address at which all bytes of the life are free, not across a multiple of the limit. */
static size_t free_of_ranges(const struct map *m, const struct taken *t, const struct life *l, size_t limit)
{
    size_t at = l->at;
    for (size_t i = find_range(m, t, at); i < t->n && t->range[i].begin < at + l->bytes; i++) {
        if (t->range[i].end > at)
            at = within_slab(t->range[i].end, l, limit);
        (*m->looks)++;
    }
    return at;
}

static size_t free_of_lives(const struct map *m, const struct node *s, const struct life *l, size_t limit)
{
    size_t at = l->at;
    for (const struct life *x = s->life; x < s->life + s->n && x->at < at + l->bytes; x++) {
        if (x->first <= l->last && l->first <= x->last && x->at + x->bytes > at)
            at = within_slab(x->at + x->bytes, l, limit);
        (*m->looks)++;
    }
    return at;
}

/* Adds the part of a life that lies in a stretch to the lives of that stretch, which are sorted by address. */
static void hold_in(const struct map *m, struct node *s, const struct life *part)
{
    size_t i;
    FIND_FIRST(i, s->n, look_at(m, s->life[i].at) < part->at);
    struct life *below = i ? &s->life[i - 1] : NULL;
    bool same_time = below && below->first == part->first && below->last == part->last;
    if (same_time && below->at + below->bytes == part->at) {
        below->bytes += part->bytes; /* the two become one */
        return;
    }
    (void)APPEND(s->life, s->n, s->cap);
    memmove(&s->life[i + 1], &s->life[i], (s->n - 1 - i) * sizeof *part);
    s->life[i] = *part;
    *m->looks += s->n - i;
}

/* How much of a node's time, so many positions from `begin` on, a life meets. */
enum meeting { MEETS_NOT, MEETS_PART, MEETS_ALL };
static enum meeting meeting_of(const struct life *l, size_t begin, size_t positions)
{
    if (l->last < begin || l->first >= begin + positions)
        return MEETS_NOT;
    if (l->first <= begin && l->last >= begin + positions - 1)
        return MEETS_ALL;
    return MEETS_PART;
}

/* Passes what covers a node on to both nodes below. */
static void pass_on(const struct map *m, size_t node)
{
    struct taken *all = &m->node[node].covered;
    for (size_t child = 2 * node; child <= 2 * node + 1; child++)
        for (size_t i = 0; i < all->n; i++) {
            take(m, &m->node[child].touched, all->range[i].begin, all->range[i].end);
            take(m, &m->node[child].covered, all->range[i].begin, all->range[i].end);
        }
    all->n = 0;
}

static void add_set(struct map *m, const struct taken *set)
{
    CHECK(m->n_sets < MOST_NODES, "a life covers more than %d nodes", MOST_NODES);
    m->set[m->n_sets++] = set;
}

/* Lists what a life without an address may meet, at the node and below. */
static void list_sets(struct map *m, size_t node, size_t begin, size_t positions, const struct life *l)
{
    const struct node *here = &m->node[node];
    enum meeting how = meeting_of(l, begin, positions);
    bool is_stretch = node >= m->n_stretches;
    if (how == MEETS_NOT)
        return;
    if (how == MEETS_ALL) {
        add_set(m, &here->touched);
        if (positions > m->widest) {
            m->set[m->n_sets - 1] = m->set[0];
            m->set[0] = &here->touched;
            m->widest = positions;
        }
        return;
    }
    if (is_stretch) {
        add_set(m, &here->covered);
        m->end[m->n_ends++] = here;
        return;
    }
    pass_on(m, node);
    list_sets(m, 2 * node, begin, positions / 2, l);
    list_sets(m, 2 * node + 1, begin + positions / 2, positions / 2, l);
}

/* Notes a life that has its address. */
static void note_life(struct map *m, size_t node, size_t begin, size_t positions, const struct life *l)
{
    struct node *here = &m->node[node];
    enum meeting how = meeting_of(l, begin, positions);
    if (how == MEETS_NOT)
        return;
    take(m, &here->touched, l->at, l->at + l->bytes);
    if (how == MEETS_ALL) {
        take(m, &here->covered, l->at, l->at + l->bytes);
        return;
    }
    if (node >= m->n_stretches) {
        struct life part = *l;
        part.first = MAX(l->first, begin);
        part.last = MIN(l->last, begin + positions - 1);
        hold_in(m, here, &part);
        return;
    }
    note_life(m, 2 * node, begin, positions / 2, l);
    note_life(m, 2 * node + 1, begin + positions / 2, positions / 2, l);
}

/* The lowest address from l->at on that is free in set or stretch i of those that the life may meet. */
static size_t free_in(const struct map *m, size_t i, const struct life *l, size_t limit)
{
    if (i < m->n_sets)
        return free_of_ranges(m, m->set[i], l, limit);
    return free_of_lives(m, m->end[i - m->n_sets], l, limit);
}

/* The life gets the lowest address that is free for all of its time. */
static void hold_lowest(struct map *m, struct life *l, size_t limit)
{
    size_t all = m->n_stretches * m->positions;
    l->at = 0;
    m->n_sets = m->n_ends = m->widest = 0;
    list_sets(m, 1, 0, all, l);
    size_t n = m->n_sets + m->n_ends;
    size_t agreed = 0; /* in how many of them the address is known to be free */
    for (size_t i = 0; agreed < n; i = (i + 1) % n) {
        size_t at = free_in(m, i, l, limit);
        agreed = at == l->at ? agreed + 1 : 1;
        l->at = at;
    }
    note_life(m, 1, 0, all, l);
}

/* Adds a tensor's life to its device's arena.  The host has an arena for each context: that of the context that copies
 * the tensor takes it. */
static void add_life(struct arena *arenas, struct tensor *t, struct step *const *steps)
{
    struct arena *a = &arenas[t->device->index];
    if (t->device->is_host && t->copier)
        a += t->copier->context->index;
    struct life *l = APPEND(a->lives, a->n, a->cap);
    *l = (struct life){.tensor = t, .last = SIZE_MAX, .bytes = round_up(t->bytes, t->device->alignment)};
    if (t->persistent)
        return;
    size_t start = 0; /* positions of the lists before the tensor's */
    for (; *steps != t->step; steps++)
        start += (*steps)->n;
    l->first = start + (size_t)t->first;
    l->last = start + (size_t)t->last;
}

static size_t arena_bytes(const struct arena *a)
{
    size_t sum = a->before;
    for (int i = 0; i < a->n_slabs; i++)
        sum += round_up(a->high[i], a->device->alignment) + guard_bytes(a->device);
    return sum;
}

/* Names what would make room for tensor t; the caller frees the text.  task: the first that touches t; NULL: t
 * persists. */
static char *advice_on_room(const struct device *d, const struct task *task, const struct tensor *t, bool in_one_piece)
{
    char *advice = NULL;
    if (d->by_hand)
        return copy_string("smaller tensors, or a larger memory= or ");
    if (in_one_piece && !task)
        return copy_string("a smaller model");
    if (in_one_piece && t->rank == 4) /* (B, H, T, T) */
        return copy_string("--attention flash, a smaller --micro-batch or --seq-len");
    if (in_one_piece)
        return copy_string("a smaller --micro-batch or --seq-len");
    if (!task)
        return copy_string("a smaller model, or a larger ");
    for (size_t i = 0; i < n_modules; i++)
        if (modules[i]->makes_room)
            append_text(&advice, "%s, ", modules[i]->makes_room);
    append_text(&advice, "a smaller --micro-batch or --seq-len, or a larger ");
    return advice;
}

/* The first task that touches a tensor of its list; NULL: the tensor persists. */
static const struct task *first_task(const struct tensor *t)
{
    if (t->persistent)
        return NULL;
    for (size_t i = (size_t)t->first; i < t->step->n; i++) {
        const struct task *task = t->step->task[i];
        for (int k = 0; k < task->n_access; k++)
            if (task->access[k].tensor->storage == t)
                return task;
    }
    return NULL;
}

static char *why_not_in_one_piece(const struct device *d, const struct tensor *t)
{
    char size[32], have[32];
    format_bytes(size, (double)t->bytes);
    format_bytes(have, (double)slab_limit(d));
    return format_string("tensor %s needs %s in one piece, the device allows %s", t->name, size, have);
}

static char *why_not_in_budget(const struct arena *a, const struct tensor *t)
{
    char need[32], more[32], have[128], size[32];
    const struct device *d = a->device;
    format_bytes(size, (double)t->bytes);
    format_bytes(need, (double)arena_bytes(a));
    format_bytes(more, (double)(arena_bytes(a) - d->budget));
    format_budget(have, d);
    return format_string("with tensor %s (%s, %s) at least %s are needed, %s more than the budget of %s", t->name,
                         memory_class_name[counted_as(t)], size, need, more, have);
}

/* What the user would set to give the device a larger budget. */
static const char *budget_option(const struct device *d)
{
    if (d->limited && d->budget == default_budget(d))
        return "limit";
    return d->is_host ? "--host-mem" : "--device-mem";
}

/* Tensor t does not fit: it must lie in one piece, or it must stay within the budget together with the tensors that
 * were placed before it. */
static struct problem *does_not_fit(const struct arena *a, const struct tensor *t, bool in_one_piece)
{
    char where[64];
    const struct device *d = a->device;
    const struct task *task = first_task(t);
    char *what = NULL;
    if (task)
        what = format_string("task %s%s of the %s list", task->name, layer_and_micro(where, task), t->step->name);
    else
        what = copy_string("the state that is kept from step to step");
    char *why = in_one_piece ? why_not_in_one_piece(d, t) : why_not_in_budget(a, t);
    char *advice = advice_on_room(d, task, t, in_one_piece);
    const char *option = !in_one_piece || d->by_hand ? budget_option(d) : "";
    struct problem *p =
        new_problem(EXIT_USAGE, "device %s: %s does not fit: %s; use %s%s", d->id, what, why, advice, option);
    free(advice);
    free(what);
    free(why);
    return p;
}

/* Gives the arena's lives addresses, in the order of a->lives.  Returns NULL, or a problem if one does not fit. */
static struct problem *assign(struct arena *a, size_t *looks)
{
    struct problem *wrong = NULL;
    size_t limit = slab_limit(a->device);
    struct map map;
    open_map(&map, a, looks);
    a->n_slabs = 0;
    memset(a->high, 0, sizeof a->high);
    for (struct life *l = a->lives; l < a->lives + a->n && !wrong; l++) {
        struct tensor *t = l->tensor;
        if (t->bytes <= limit)
            hold_lowest(&map, l, limit);
        size_t slab = l->at / limit;
        if (t->bytes > limit || slab + (size_t)a->first_slab >= COUNT(a->high)) {
            wrong = does_not_fit(a, t, true);
            break;
        }
        t->slab = a->first_slab + (int)slab;
        t->address = l->at % limit;
        a->n_slabs = MAX(a->n_slabs, (int)slab + 1);
        a->high[slab] = MAX(a->high[slab], t->address + t->bytes);
        if (arena_bytes(a) > a->device->budget)
            wrong = does_not_fit(a, t, false);
    }
    close_map(&map);
    return wrong;
}

/* Persistent tensors come first, in the order they were made; then the others, as they begin to live. */
static int by_life(const void *a_, const void *b_)
{
    const struct tensor *a = ((const struct life *)a_)->tensor;
    const struct tensor *b = ((const struct life *)b_)->tensor;
    if (a->persistent != b->persistent)
        return a->persistent ? -1 : 1;
    if (!a->persistent && a->first != b->first)
        return COMPARE(a->first, b->first);
    return COMPARE(a->id, b->id);
}

/* The same, but the others come by size, the largest first. */
static int by_size(const void *a_, const void *b_)
{
    const struct tensor *a = ((const struct life *)a_)->tensor;
    const struct tensor *b = ((const struct life *)b_)->tensor;
    if (!a->persistent && !b->persistent && a->bytes != b->bytes)
        return COMPARE(b->bytes, a->bytes);
    return by_life(a_, b_);
}

/* A device of a step file that has room for all its tensors: none share bytes, so that no task waits for bytes. */
static void place_apart(struct arena *a)
{
    size_t at = 0;
    for (size_t i = 0; i < a->n; i++) {
        struct tensor *t = a->lives[i].tensor;
        t->slab = 0;
        t->address = at;
        at += a->lives[i].bytes;
    }
}

/* Takes that of the two orders that needs fewer bytes. */
static struct problem *place_device(struct arena *a, size_t *looks)
{
    const struct device *d = a->device;
    SORT(a->lives, a->n, by_life);
    struct problem *other = assign(a, looks);
    size_t bytes = arena_bytes(a);
    SORT(a->lives, a->n, by_size);
    struct problem *wrong = assign(a, looks);
    if (!other && (wrong || bytes < arena_bytes(a))) {
        free(wrong);
        SORT(a->lives, a->n, by_life);
        wrong = assign(a, looks);
    }
    free(other);
    size_t all = 0;
    for (size_t i = 0; i < a->n; i++)
        all += a->lives[i].bytes;
    if (!wrong && d->by_hand && !d->shares && all <= MIN(d->memory, slab_limit(d)))
        place_apart(a);
    return wrong;
}

/* Forgets addresses of an earlier call. */
static void reset_tensors(struct pool *p)
{
    p->looks = 0;
    for (size_t i = 0; i < p->n; i++) {
        struct tensor *t = p->tensors[i];
        t->step = NULL;
        t->copier = NULL;
        t->first = INT32_MAX;
        t->last = t->slab = -1;
        t->address = 0;
    }
}

/* The arenas: one per device, then the host's, one per context.  `ram` becomes the bytes that all devices and the host
 * take of the host's memory. */
static struct problem *place_arenas(struct pool *p, struct arena *arenas, size_t n, size_t n_positions, size_t *ram)
{
    struct machine *m = p->machine;
    size_t host = (size_t)m->n_devices;
    *ram = 0;
    for (size_t i = 0; i < n; i++) {
        struct arena *a = &arenas[i];
        a->device = &m->device[MIN(i, host)];
        if (i > host) {
            a->before = arena_bytes(a - 1);
            a->first_slab = a[-1].first_slab + a[-1].n_slabs;
        }
        a->n_positions = n_positions;
        struct problem *wrong = place_device(a, &p->looks);
        a->device->placed = arena_bytes(a);
        if (wrong)
            return wrong;
        if (a->device->uses_ram)
            *ram += a->device->placed - a->before;
    }
    return NULL;
}

static struct problem *refuse_ram(const struct machine *m, size_t ram)
{
    char have[32], need[32];
    return new_problem(EXIT_USAGE,
                       "the devices and the host share one memory of %s, and together need %s; use a smaller model, "
                       "--micro-batch or --seq-len",
                       format_bytes(have, (double)m->host->memory), format_bytes(need, (double)ram));
}

struct problem *place(struct pool *p, struct step *const *steps, size_t n, bool check_only)
{
    struct machine *m = p->machine;
    size_t n_arenas = (size_t)m->n_devices + (size_t)MAX(m->n_contexts, 1);
    struct arena *arenas = allocate(n_arenas, sizeof *arenas);
    size_t n_positions = 0, ram = 0;
    reset_tensors(p);
    for (size_t i = 0; i < n; i++) {
        find_lifetimes(steps[i]);
        n_positions += steps[i]->n;
    }
    for (size_t i = 0; i < p->n; i++) {
        struct tensor *t = p->tensors[i];
        if (t->storage == t && (t->persistent || t->step))
            add_life(arenas, t, steps);
    }
    struct problem *wrong = place_arenas(p, arenas, n_arenas, n_positions, &ram);
    if (!wrong && ram > m->host->memory)
        wrong = refuse_ram(m, ram);
    for (size_t i = 0; i < n_arenas; i++) {
        struct arena *a = &arenas[i];
        for (int k = 0; k < a->n_slabs && !wrong && !check_only; k++)
            wrong = add_slab(m, a->device, a->lives[0].tensor->copier, round_up(a->high[k], a->device->alignment));
        free(a->lives);
    }
    for (size_t i = 0; i < n; i++)
        find_levels(steps[i]);
    free(arenas);
    return wrong;
}
