/* verify.c - proves of a placed list, on its own, that it computes what its order on paper says, provided that tasks
 * touch what they declare (see audit.c).
 *
 * Values: in list order, every read finds bytes that were last written through the same tensor, in this iteration
 * unless the tensor persists.  (A lifetime cut short lets another tensor overwrite it: seen here.) Order: every two
 * accesses to the same bytes of which one writes are ordered by lanes and waits, the way execute() waits and no more.
 * (A dropped edge is seen here.) It shares the range tracker with depend(), but not its edges' derivation: it looks at
 * pairs, and asks for paths.
 */
#include "../step/ranges.h"
#include "proof.h"

#include <stdlib.h>
#include <string.h>

/* ---- values ---------------------------------------------------------------------------------------------------- */

static char *check_segment(const struct step *s, int node, const struct access *a, const struct segment *g)
{
    int n = (int)s->n, writer = g->writer;
    const struct tensor *root = a->tensor->root;
    const char *reader = s->task[node % n]->name;
    if (writer != NOBODY && g->owner != root)
        return format_string("task %d %s reads tensor %s, but its bytes were overwritten as tensor %s by task %d %s",
                             node % n, reader, a->tensor->name, g->owner->name, writer % n, s->task[writer % n]->name);
    if (!root->persistent && (writer == NOBODY || writer / n != node / n))
        return format_string("task %d %s reads tensor %s before anything is written to it", node % n, reader,
                             a->tensor->name);
    return NULL;
}

static char *check_access(const struct step *s, struct space *spaces, int node, const struct access *a, bool writing)
{
    size_t begin, end, count;
    struct space *space = find_range(spaces, true, a->tensor, &begin, &end);
    struct segment *g = cut_range(space, begin, end, &count);
    char *wrong = NULL;
    for (size_t i = 0; i < count && !wrong; i++) {
        if (writing) {
            g[i].writer = node;
            g[i].owner = a->tensor->root;
        } else
            wrong = check_segment(s, node, a, &g[i]);
    }
    return wrong;
}

/* With the tasks that run in iteration `number`, twice. */
static char *verify_iteration(const struct step *s, uint32_t number)
{
    size_t n_spaces;
    struct space *spaces = new_spaces(s->pool, true, &n_spaces);
    char *wrong = NULL;
    for (int node = 0; node < 2 * (int)s->n && !wrong; node++) {
        const struct task *t = s->task[node % (int)s->n];
        if (!runs(t, number))
            continue;
        for (int writing = 0; writing < 2; writing++)
            for (int i = 0; i < t->n_access && !wrong; i++)
                if (t->access[i].mode & (writing ? ACCESS_WRITE : ACCESS_READ))
                    wrong = check_access(s, spaces, node, &t->access[i], writing);
    }
    free_spaces(spaces, n_spaces);
    return wrong;
}

/* What runs in an iteration may only read what others wrote that run in it.  Each kind of conditional task is looked at
 * in an iteration in which it runs and as few others as can be. */
static char *verify_bytes(const struct step *s)
{
    uint32_t *number = allocate(s->n + 1, sizeof *number);
    size_t n = 1;
    number[0] = 1;
    for (size_t i = 0; i < s->n; i++) {
        const struct when *w = &s->task[i]->when;
        size_t k = 0;
        while (k < n && number[k] != (w->rest ? w->rest : w->every))
            k++;
        number[k] = w->rest ? w->rest : w->every;
        n = MAX(n, k + 1);
    }
    char *wrong = NULL;
    for (size_t k = 0; k < n && !wrong; k++)
        wrong = verify_iteration(s, number[k]);
    free(number);
    return wrong;
}

/* ---- order ----------------------------------------------------------------------------------------------------- */

struct touched { /* one access of one node */
    const struct tensor *root;
    int space, node;
    size_t begin, end;
    bool writes;
};

static int by_place(const void *a, const void *b)
{
    const struct touched *x = a, *y = b;
    if (x->space != y->space)
        return x->space - y->space;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static struct touched *list_accesses(const struct step *s, size_t *n)
{
    struct touched *list = NULL;
    size_t cap = 0;
    *n = 0;
    for (int node = 0; node < 2 * (int)s->n; node++) {
        const struct task *t = s->task[node % (int)s->n];
        for (int i = 0; i < t->n_access; i++) {
            const struct tensor *x = t->access[i].tensor, *root = x->root;
            if (t->access[i].mode == ACCESS_NONE)
                continue;
            size_t begin = root->address + x->offset;
            *APPEND(list, *n, cap) = (struct touched){root,
                                                      root->device->index * SLABS_PER_DEVICE + root->slab,
                                                      node,
                                                      begin,
                                                      begin + x->bytes,
                                                      t->access[i].mode & ACCESS_WRITE};
        }
    }
    if (*n)
        qsort(list, *n, sizeof *list, by_place);
    return list;
}

/* Adds `node` to a set, and what has ended before it starts; but not of a task that may be skipped. */
static void add_node(const struct step *s, uint64_t *set, const uint64_t *before, size_t words, int node)
{
    set[node / 64] |= UINT64_C(1) << (node % 64);
    for (size_t w = 0; w < words && !is_conditional(s->task[node % (int)s->n]); w++)
        set[w] |= before[(size_t)node * words + w];
}

/* before[node] = bit set of the nodes that have ended when it starts. */
static uint64_t *reachable(const struct step *s, size_t *words)
{
    int n = (int)s->n;
    *words = ceil_div((size_t)(2 * n), 64);
    uint64_t *before = allocate((size_t)(2 * n) * *words, sizeof *before);
    uint64_t *on_lane = allocate((size_t)s->pool->machine->n_lanes * *words, sizeof *on_lane);
    for (int node = 0; node < 2 * n; node++) {
        const struct task *t = s->task[node % n];
        uint64_t *mine = &before[(size_t)node * *words], *lane = &on_lane[(size_t)t->lane->index * *words];
        memcpy(mine, lane, *words * sizeof *mine);
        for (size_t k = 0; k < t->n_edges; k++) {
            const struct edge *e = &t->edges[k];
            int from = (int)e->from + (node < n ? 0 : n) - (e->previous ? n : 0);
            if (e->wait && from >= 0)
                add_node(s, mine, before, *words, from);
        }
        add_node(s, lane, before, *words, node);
    }
    free(on_lane);
    return before;
}

static char *describe_conflict(const struct step *s, int first, int second)
{
    int n = (int)s->n;
    if (first == second)
        return format_string("task %d %s has two tensors on the same bytes", first % n, s->task[first % n]->name);
    return format_string("task %d %s and task %d %s%s touch the same bytes and nothing orders them", first % n,
                         s->task[first % n]->name, second % n, s->task[second % n]->name,
                         first / n == second / n ? "" : " of the next iteration");
}

/* Held updates come behind all that holds them. */
static char *verify_held(const struct step *s, const uint64_t *before, size_t words)
{
    struct task **holder = allocate(s->n, sizeof *holder);
    size_t n = list_holders(s, holder);
    char *wrong = NULL;
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < n && s->task[i]->held && !wrong; k++) {
            size_t node = s->n + holder[k]->index;
            if (!(before[(s->n + i) * words + node / 64] >> (node % 64) & 1))
                wrong = format_string("task %zu %s, an update, may start before task %zu %s has ended", i,
                                      s->task[i]->name, holder[k]->index, holder[k]->name);
        }
    free(holder);
    return wrong;
}

static char *verify_order(const struct step *s)
{
    size_t n, words;
    struct touched *list = list_accesses(s, &n);
    uint64_t *before = reachable(s, &words);
    char *wrong = verify_held(s, before, words);
    for (size_t i = 0; i < n && !wrong; i++)
        for (size_t k = i + 1; k < n && list[k].space == list[i].space && list[k].begin < list[i].end && !wrong; k++) {
            int first = MIN(list[i].node, list[k].node), second = MAX(list[i].node, list[k].node);
            if (!(list[i].writes || list[k].writes) || (first == second && list[i].root == list[k].root))
                continue; /* (a task may work in place, but not on the bytes of two tensors) */
            if (first == second || !(before[(size_t)second * words + (size_t)first / 64] >> (first % 64) & 1))
                wrong = describe_conflict(s, first, second);
        }
    free(list);
    free(before);
    return wrong;
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

static bool lives(const struct step *s, const struct tensor *t)
{
    return t->root == t && t->slab >= 0 && (t->persistent || t->step == s);
}

/* The state that is kept must be out of the way of every list, also of one that does not touch it. */
static char *verify_state(const struct step *s)
{
    const struct pool *p = s->pool;
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < p->n; k++) {
            const struct tensor *a = p->tensors[i], *b = p->tensors[k];
            if (a == b || !a->persistent || !lives(s, a) || !lives(s, b) || a->device != b->device ||
                a->slab != b->slab)
                continue;
            if (a->address < b->address + b->bytes && b->address < a->address + a->bytes)
                return format_string("tensor %s shares bytes with %s, which is kept from step to step", b->name,
                                     a->name);
        }
    return NULL;
}

/* Every tensor within its slab, once slabs have been made, and the slabs within the budget. */
static char *verify_budget(const struct step *s)
{
    const struct pool *p = s->pool;
    size_t high[SLABS_PER_DEVICE];
    for (int d = 0; d <= p->machine->n_devices; d++) {
        const struct device *device = &p->machine->device[d];
        size_t sum = 0;
        memset(high, 0, sizeof high);
        for (size_t i = 0; i < p->n; i++) {
            const struct tensor *t = p->tensors[i];
            if (t->device != device || t->root != t || t->slab < 0)
                continue;
            high[t->slab] = MAX(high[t->slab], t->address + t->bytes);
            if (s->ready && (t->slab >= (int)device->n_slabs || high[t->slab] > device->slabs[t->slab].bytes))
                return format_string("tensor %s ends behind its slab on device %s", t->name, device->id);
        }
        for (int i = 0; i < SLABS_PER_DEVICE; i++)
            sum += high[i];
        if (sum > device->budget)
            return format_string("device %s holds %zu bytes, its budget is %zu", device->id, sum, device->budget);
    }
    return NULL;
}

char *verify(const struct step *s, const struct values *expected)
{
    char *wrong = expected ? compare_values(expected, s) : NULL;
    if (!wrong)
        wrong = verify_bytes(s);
    if (!wrong)
        wrong = verify_order(s);
    if (!wrong)
        wrong = verify_state(s);
    return wrong ? wrong : verify_budget(s);
}
