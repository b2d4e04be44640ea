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

enum { APART = 512 }; /* tasks, or a sixteenth of the list */

static void find_lifetimes(struct step *s)
{
    int n = (int)s->n;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < s->task[i]->n_access; k++) {
            struct tensor *t = s->task[i]->access[k].tensor->storage;
            const struct device *d = s->task[i]->lane->device;
            if (!d->is_host && (!t->copier || (s->task[i]->access[k].mode & ACCESS_WRITE)))
                for (struct tensor *member = t; member; member = member->next_member)
                    member->copier = d;
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

/* Time is counted in positions, list standing behind list: two lives meet when they share one. */
struct life {
    struct tensor *tensor;
    size_t first, last; /* positions */
    size_t bytes;       /* that it takes, and ... */
    size_t at;          /* ... from where on: slab k lies at k times the limit of slabs */
};
struct arena {
    struct device *device;
    struct life *lives; /* of all its tensors */
    size_t n, cap, n_positions;
    size_t before;                 /* bytes of the device's arenas before this one ... */
    int first_slab;                /* ... and their slabs */
    size_t high[SLABS_PER_DEVICE]; /* per slab: bytes in use from its start */
    int n_slabs;
};

/* Addresses that are in use, as ranges in their order; two that meet are one. */
struct taken {
    struct range {
        size_t begin, end;
    } * range;
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
 * A life is noted at the few nodes that together are all which it covers, and in the stretches of its ends.  What
 * covers a node is passed on to the halves below when a life comes that covers only a part of it.  So a life, however
 * long, looks at few nodes, and there at ranges, which meet and become one, rather than at lives. */
enum { LIVES_PER_STRETCH = 128, MOST_NODES = 128 };
struct node {
    struct taken touched; /* by all lives that are there for some of its time */
    struct taken covered; /* by those that are there for all of it, and have not been passed on to the nodes below */
    struct life *life;    /* of a stretch: those that begin or end within it, by address */
    size_t n, cap;
};
struct map {
    struct node *node;
    size_t n_stretches, positions; /* a power of 2; positions in each */
    size_t *looks;                 /* counts ranges and lives that are looked at or moved */
    /* What the life that gets an address must not meet: */
    const struct taken *set[MOST_NODES];
    const struct node *end[2];
    size_t n_sets, n_ends, widest; /* the set of the longest node, first */
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

static size_t count_look(const struct map *m, size_t address)
{
    ++*m->looks;
    return address;
}

/* The first range that ends at `at` or behind it. */
static size_t find_range(const struct map *m, const struct taken *t, size_t at)
{
    size_t i;
    FIND_FIRST(i, t->n, count_look(m, t->range[i].end) < at);
    return i;
}

static void take(const struct map *m, struct taken *t, size_t begin, size_t end)
{
    size_t i = find_range(m, t, begin), next = i;
    for (; next < t->n && t->range[next].begin <= end; next++) {
        begin = MIN(begin, t->range[next].begin);
        end = MAX(end, t->range[next].end);
    }
    if (next == i) {
        (void)APPEND(t->range, t->n, t->cap);
        next++;
        memmove(&t->range[i + 1], &t->range[i], (t->n - 1 - i) * sizeof *t->range);
    } else {
        memmove(&t->range[i + 1], &t->range[next], (t->n - next) * sizeof *t->range);
        t->n -= next - i - 1;
    }
    t->range[i] = (struct range){begin, end};
    *m->looks += t->n - i;
}

/* Behind what ends at `end`: there, or where the next slab begins if the life would lie across. */
static size_t behind(size_t end, const struct life *l, size_t limit)
{
    return end % limit + l->bytes > limit ? round_up(end, limit) : end;
}

/* From l->at on, the lowest address at which all bytes of the life are free, not across a multiple of the limit. */
static size_t free_of_ranges(const struct map *m, const struct taken *t, const struct life *l, size_t limit)
{
    size_t at = l->at;
    for (size_t i = find_range(m, t, at); i < t->n && t->range[i].begin < at + l->bytes; i++) {
        if (t->range[i].end > at)
            at = behind(t->range[i].end, l, limit);
        ++*m->looks;
    }
    return at;
}

static size_t free_of_lives(const struct map *m, const struct node *s, const struct life *l, size_t limit)
{
    size_t at = l->at;
    for (const struct life *x = s->life; x < s->life + s->n && x->at < at + l->bytes; x++) {
        if (x->first <= l->last && l->first <= x->last && x->at + x->bytes > at)
            at = behind(x->at + x->bytes, l, limit);
        ++*m->looks;
    }
    return at;
}

/* Among the lives of a stretch, of which it is a part: it comes behind those of lower addresses. */
static void hold_in(const struct map *m, struct node *s, const struct life *part)
{
    size_t i;
    FIND_FIRST(i, s->n, count_look(m, s->life[i].at) < part->at);
    struct life *below = i ? &s->life[i - 1] : NULL;
    if (below && below->first == part->first && below->last == part->last && below->at + below->bytes == part->at) {
        below->bytes += part->bytes; /* they are one */
        return;
    }
    (void)APPEND(s->life, s->n, s->cap);
    memmove(&s->life[i + 1], &s->life[i], (s->n - 1 - i) * sizeof *part);
    s->life[i] = *part;
    *m->looks += s->n - i;
}

/* How a life and a node's time, which begins at a position, lie. */
enum meeting { MEETS_NOT, MEETS_PART, MEETS_ALL };
static enum meeting meet(const struct life *l, size_t begin, size_t positions)
{
    if (l->last < begin || l->first >= begin + positions)
        return MEETS_NOT;
    return l->first <= begin && l->last >= begin + positions - 1 ? MEETS_ALL : MEETS_PART;
}

/* To both nodes below. */
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

/* Lists what a life without an address may meet, at the node and below. */
static void list_sets(struct map *m, size_t node, size_t begin, size_t positions, const struct life *l)
{
    const struct node *here = &m->node[node];
    enum meeting how = meet(l, begin, positions);
    if (how == MEETS_NOT)
        return;
    bool is_stretch = node >= m->n_stretches;
    if (how == MEETS_ALL || is_stretch) {
        CHECK(m->n_sets < MOST_NODES, "a life covers more than %d nodes", MOST_NODES);
        m->set[m->n_sets++] = how == MEETS_ALL ? &here->touched : &here->covered;
        if (how == MEETS_ALL && positions > m->widest) {
            const struct taken *first = m->set[0];
            m->set[0] = &here->touched;
            m->set[m->n_sets - 1] = first;
            m->widest = positions;
        }
        if (how == MEETS_PART)
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
    enum meeting how = meet(l, begin, positions);
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

/* It gets the lowest address that is free for all of it. */
static void hold_lowest(struct map *m, struct life *l, size_t limit)
{
    size_t all = m->n_stretches * m->positions;
    l->at = 0;
    m->n_sets = m->n_ends = m->widest = 0;
    list_sets(m, 1, 0, all, l);
    size_t n = m->n_sets + m->n_ends, agreed = 0;
    for (size_t i = 0; agreed < n; i = (i + 1) % n) { /* until it is free in all of them */
        size_t at =
            i < m->n_sets ? free_of_ranges(m, m->set[i], l, limit) : free_of_lives(m, m->end[i - m->n_sets], l, limit);
        agreed = at == l->at ? agreed + 1 : 1;
        l->at = at;
    }
    note_life(m, 1, 0, all, l);
}

/* To the device's arena, or of the host's that of the context that copies it. */
static void add_life(struct arena *arenas, struct tensor *t, struct step *const *steps)
{
    struct arena *a = &arenas[t->device->index + (t->device->is_host && t->copier ? t->copier->context->index : 0)];
    struct life *l = APPEND(a->lives, a->n, a->cap);
    size_t start = 0;
    for (; !t->persistent && *steps != t->step; steps++)
        start += (*steps)->n;
    *l = (struct life){t, 0, SIZE_MAX, round_up(t->bytes, t->device->alignment), 0};
    if (!t->persistent)
        l->first = start + (size_t)t->first, l->last = start + (size_t)t->last;
}

static size_t arena_bytes(const struct arena *a)
{
    size_t sum = a->before;
    for (int i = 0; i < a->n_slabs; i++)
        sum += round_up(a->high[i], a->device->alignment) + guard_bytes(a->device);
    return sum;
}

/* What makes room for tensor t, which task is the first to touch; the caller frees it. */
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

/* With tensor t, which must be in one piece, or stay within the budget together with those placed before it. */
static struct problem *does_not_fit(const struct arena *a, const struct tensor *t, bool in_one_piece)
{
    char need[32], more[32], have[128], size[32];
    const struct device *d = a->device;
    const struct task *task = NULL; /* the first that touches it */
    for (size_t i = (size_t)t->first; !t->persistent && !task; i++)
        for (int k = 0; k < t->step->task[i]->n_access; k++)
            if (t->step->task[i]->access[k].tensor->storage == t)
                task = t->step->task[i];
    char *what = task ? format_string("task %s%s of the %s list", task->name, layer_and_micro((char[64]){0}, task),
                                      t->step->name)
                      : copy_string("the state that is kept from step to step");
    format_bytes(size, (double)t->bytes), format_bytes(need, (double)arena_bytes(a));
    char *why = in_one_piece
                    ? format_string("tensor %s needs %s in one piece, the device allows %s", t->name, size,
                                    format_bytes(have, (double)slab_limit(d)))
                    : format_string("with tensor %s (%s, %s) at least %s are needed, %s more than the budget of %s",
                                    t->name, memory_class_name[counted_as(t)], size, need,
                                    format_bytes(more, (double)(arena_bytes(a) - d->budget)), format_budget(have, d));
    const char *budget = d->limited && d->budget == default_budget(d) ? "limit"
                         : d->is_host                                 ? "--host-mem"
                                                                      : "--device-mem";
    char *advice = advice_on_room(d, task, t, in_one_piece);
    struct problem *p = new_problem(EXIT_USAGE, "device %s: %s does not fit: %s; use %s%s", d->id, what, why, advice,
                                    !in_one_piece || d->by_hand ? budget : "");
    free(advice);
    free(what), free(why);
    return p;
}

/* NULL, or what does not fit. */
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

/* What persists comes first, in the order it was made. */
ORDER(by_life, struct life,
      BY(b->tensor->persistent, a->tensor->persistent,
         BY(a->tensor->persistent ? 0 : a->tensor->first, b->tensor->persistent ? 0 : b->tensor->first,
            COMPARE(a->tensor->id, b->tensor->id))))

ORDER(by_size, struct life,
      a->tensor->persistent || b->tensor->persistent ? by_life(a, b)
                                                     : BY(b->tensor->bytes, a->tensor->bytes, by_life(a, b)))

/* Of the two orders the one that takes less. */
static struct problem *place_device(struct arena *a, size_t *looks)
{
    SORT(a->lives, a->n, by_life);
    struct problem *other = assign(a, looks);
    size_t bytes = arena_bytes(a), all = 0;
    SORT(a->lives, a->n, by_size);
    struct problem *wrong = assign(a, looks);
    if (!other && (wrong || bytes < arena_bytes(a))) {
        free(wrong);
        SORT(a->lives, a->n, by_life);
        wrong = assign(a, looks);
    }
    free(other);
    for (size_t i = 0; i < a->n; i++)
        all += a->lives[i].bytes;
    if (wrong || !a->device->by_hand || a->device->shares || all > MIN(a->device->memory, slab_limit(a->device)))
        return wrong;
    /* On paper, where memory is plenty, no tensors share bytes, so that nobody waits for any. */
    for (size_t i = 0, at = 0; i < a->n; i++) {
        a->lives[i].tensor->slab = 0;
        a->lives[i].tensor->address = at;
        at += a->lives[i].bytes;
    }
    return NULL;
}

struct problem *place(struct pool *p, struct step *const *steps, size_t n, bool check_only)
{
    struct machine *m = p->machine;
    size_t host = (size_t)m->n_devices, n_arenas = host + (size_t)MAX(m->n_contexts, 1), ram = 0, n_positions = 0;
    struct arena *arenas = allocate(n_arenas, sizeof *arenas); /* one per device, then the host's, one per context */
    struct problem *wrong = NULL;
    p->looks = 0;
    for (size_t i = 0; i < p->n; i++) {
        struct tensor *t = p->tensors[i];
        t->step = NULL;
        t->copier = NULL;
        t->first = INT32_MAX;
        t->last = t->slab = -1;
        t->address = 0;
    }
    for (size_t i = 0; i < n; i++) {
        find_lifetimes(steps[i]);
        n_positions += steps[i]->n;
    }
    for (size_t i = 0; i < p->n; i++) {
        struct tensor *t = p->tensors[i];
        if (t->storage == t && (t->persistent || t->step))
            add_life(arenas, t, steps);
    }
    for (size_t i = 0; i < n_arenas && !wrong; i++) {
        struct arena *a = &arenas[i];
        a->device = &m->device[MIN(i, host)];
        a->before = i > host ? arena_bytes(a - 1) : 0;
        a->first_slab = i > host ? a[-1].first_slab + a[-1].n_slabs : 0;
        a->n_positions = n_positions;
        wrong = place_device(a, &p->looks);
        a->device->placed = arena_bytes(a);
        ram += a->device->uses_ram ? a->device->placed - a->before : 0;
    }
    if (!wrong && ram > m->host->memory)
        wrong =
            new_problem(EXIT_USAGE,
                        "the devices and the host share one memory of %s, and together need %s; use a smaller "
                        "model, --micro-batch or --seq-len",
                        format_bytes((char[32]){0}, (double)m->host->memory), format_bytes((char[32]){0}, (double)ram));
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
