/* verify.c - proves of a placed list, on its own, that it computes what its order on paper says, provided that tasks
 * touch what they declare (see audit.c).
 *
 * Values: in list order, every read finds bytes that were last written through the same tensor, in this iteration
 * unless the tensor persists.  (A lifetime cut short lets another tensor overwrite it: seen here.) Order: a read starts
 * behind the last write of its bytes, a write behind that and behind all reads since; from there, so are any two
 * accesses of which one writes.  "Behind" follows from lanes and waits, the way execute() waits and no more.  (A
 * dropped edge is seen here.) It shares the range tracker with depend(), but knows nothing of its edges but where they
 * are.
 */
#include "../step/ranges.h"
#include "proof.h"

struct pair { /* of nodes: the second must start behind the end of the first */
    int first, second;
};
struct proof {
    const struct step *step;
    uint32_t number; /* only tasks that run in that iteration; 0: all */
    struct space *spaces;
    struct readers readers;
    struct pair *pairs;
    size_t n_pairs, cap_pairs;
    char *wrong;
};

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

static char *describe_conflict(const struct step *s, int first, int second)
{
    int i = first % (int)s->n, k = second % (int)s->n;
    const struct task *a = s->task[i], *b = s->task[k];
    bool together = first - i == second - k; /* in one iteration */
    if (first == second)
        return format_string("task %d %s has two tensors on the same bytes", i, a->name);
    if (b->gated && together && is_gate(s, a))
        return format_string("task %d %s, an update, may start before task %d %s has ended", k, b->name, i, a->name);
    return format_string("task %d %s and task %d %s%s touch the same bytes and nothing orders them", i, a->name, k,
                         b->name, together ? "" : " of the next iteration");
}

/* A task may work in place, but not on the bytes of two tensors. */
static void need_order(struct proof *p, int first, const struct tensor *root, int second, const struct tensor *other)
{
    if (first == second && root != other && !p->wrong)
        p->wrong = describe_conflict(p->step, first, second);
    if (first != NOBODY && first != second)
        *APPEND(p->pairs, p->n_pairs, p->cap_pairs) = (struct pair){first, second};
}

/* Gated updates come behind all their gates: the last one of each lane that always runs, those behind it, and so those
 * before it. */
static void need_gates(struct proof *p)
{
    const struct step *s = p->step;
    struct task **gate = allocate(s->n, sizeof *gate);
    bool *closed = allocate((size_t)s->pool->machine->n_lanes, sizeof *closed);
    for (size_t n = list_gates(s, gate); n-- > 0; closed[gate[n]->lane->index] |= !is_conditional(gate[n]))
        for (size_t i = 0; i < s->n && !closed[gate[n]->lane->index]; i++)
            if (s->task[i]->gated)
                *APPEND(p->pairs, p->n_pairs, p->cap_pairs) =
                    (struct pair){(int)(s->n + gate[n]->index), (int)(s->n + i)};
    free(gate), free(closed);
}

static void read_segment(struct proof *p, int node, const struct access *a, struct segment *g)
{
    if (!p->wrong && p->number)
        p->wrong = check_segment(p->step, node, a, g);
    need_order(p, g->writer, g->owner, node, a->tensor->root);
    for (int r = g->may_write ? g->reader : NOBODY; r != NOBODY; r = p->readers.list[r].before)
        if (p->readers.list[r].may_write)
            need_order(p, p->readers.list[r].node, p->readers.list[r].root, node, a->tensor->root);
    note_reader(&p->readers, g, node, a->tensor->root, false);
}

static void write_segment(struct proof *p, int node, const struct access *a, struct segment *g)
{
    const struct tensor *root = a->tensor->root;
    need_order(p, g->writer, g->owner, node, root);
    for (int r = g->reader; r != NOBODY; r = p->readers.list[r].before)
        need_order(p, p->readers.list[r].node, p->readers.list[r].root, node, root);
    if (p->number == 0 &&
        is_conditional(p->step->task[node % (int)p->step->n])) { /* it may not hide who wrote before */
        note_reader(&p->readers, g, node, root, true);
        return;
    }
    g->writer = node;
    g->owner = root;
    g->reader = NOBODY;
    g->may_write = false;
}

/* Two iterations, one behind the other. */
static void walk_bytes(struct proof *p)
{
    int n = (int)p->step->n;
    for (int node = 0; node < 2 * n && !p->wrong; node++) {
        const struct task *t = p->step->task[node % n];
        if (p->number && !runs(t, p->number))
            continue;
        for (int writing = 0; writing < 2; writing++)
            for (int i = 0; i < t->n_access; i++) {
                size_t begin, end, count;
                if (!(t->access[i].mode & (writing ? ACCESS_WRITE : ACCESS_READ)))
                    continue;
                struct space *space = find_range(p->spaces, true, t->access[i].tensor, &begin, &end);
                struct segment *g = cut_range(space, begin, end, &count);
                for (size_t k = 0; k < count; k++)
                    (writing ? write_segment : read_segment)(p, node, &t->access[i], &g[k]);
            }
    }
}

/* ---- order ----------------------------------------------------------------------------------------------------- */

enum { LANES_AT_A_TIME = 32 };
struct ends { /* for lanes first .. first + LANES_AT_A_TIME - 1: the latest node that has ended */
    int latest[LANES_AT_A_TIME];
};

static void join(struct ends *mine, const struct ends *other)
{
    for (int i = 0; i < LANES_AT_A_TIME; i++)
        mine->latest[i] = MAX(mine->latest[i], other->latest[i]);
}

static void note_end(const struct step *s, struct ends *mine, int node, int first_lane)
{
    int lane = s->task[node % (int)s->n]->lane->index - first_lane;
    if (lane >= 0 && lane < LANES_AT_A_TIME)
        mine->latest[lane] = MAX(mine->latest[lane], node);
}

/* What has ended when each node starts: what had when those started that it waits for, and they themselves; but of
 * those that may be skipped only what stands before them on the node's own lane. */
static void find_ends(const struct step *s, int first_lane, struct ends *ends)
{
    int n = (int)s->n, n_lanes = s->pool->machine->n_lanes;
    int *last = allocate(2 * (size_t)n_lanes, sizeof *last), *certain = last + n_lanes;
    memset(last, -1, 2 * (size_t)n_lanes * sizeof *last);
    memset(ends, -1, 2 * s->n * sizeof *ends);
    for (int node = 0; node < 2 * n; node++) {
        const struct task *t = s->task[node % n];
        int lane = t->lane->index;
        if (certain[lane] >= 0)
            join(&ends[node], &ends[certain[lane]]);
        if (last[lane] >= 0)
            note_end(s, &ends[node], last[lane], first_lane);
        for (size_t k = 0; k < t->n_edges; k++) {
            const struct edge *e = &t->edges[k];
            int from = (int)e->from + (node < n ? 0 : n) - (e->previous ? n : 0);
            if (!e->wait || from < 0 || is_conditional(s->task[e->from]))
                continue;
            join(&ends[node], &ends[from]);
            note_end(s, &ends[node], from, first_lane);
        }
        last[lane] = node;
        if (!is_conditional(t))
            certain[lane] = node;
    }
    free(last);
}

/* Does the second node wait for the first one itself? */
static bool waits_for(const struct step *s, struct pair x)
{
    int n = (int)s->n;
    const struct task *t = s->task[x.second % n];
    bool yes = false;
    for (size_t k = 0; k < t->n_edges; k++) {
        const struct edge *e = &t->edges[k];
        yes |= e->wait && (int)e->from == x.first % n && e->previous == (x.first / n != x.second / n);
    }
    return yes;
}

static void verify_order(struct proof *p)
{
    const struct step *s = p->step;
    struct ends *ends = allocate(2 * s->n, sizeof *ends);
    for (int lane = 0; lane < s->pool->machine->n_lanes && !p->wrong; lane += LANES_AT_A_TIME) {
        find_ends(s, lane, ends);
        for (size_t i = 0; i < p->n_pairs && !p->wrong; i++) {
            struct pair x = p->pairs[i];
            int of = s->task[x.first % (int)s->n]->lane->index - lane;
            if (of >= 0 && of < LANES_AT_A_TIME && ends[x.second].latest[of] < x.first && !waits_for(s, x))
                p->wrong = describe_conflict(s, x.first, x.second);
        }
    }
    free(ends);
}

/* Of the tasks that run in that iteration. */
static char *prove(const struct step *s, uint32_t number)
{
    size_t n_spaces;
    struct proof p = {.step = s, .number = number, .spaces = new_spaces(s->pool, true, &n_spaces)};
    need_gates(&p);
    walk_bytes(&p);
    if (!p.wrong)
        verify_order(&p);
    free_spaces(p.spaces, n_spaces);
    free(p.readers.list), free(p.pairs);
    return p.wrong;
}

enum { MOST_ITERATIONS = 10000 };

/* A number for the set of tasks that run in that iteration. */
static uint64_t set_running(const struct step *s, uint32_t number)
{
    uint64_t set = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct when *w = &s->task[i]->when;
        if (w->every > 1 && number % w->every == w->rest)
            set = hash_bytes(&(uint64_t[2]){set, i}, 16, 0);
    }
    return set;
}

/* The order among all tasks, whichever are skipped; and what runs in an iteration may only read what others wrote that
 * run in it: one iteration is looked at of each set of tasks that run together. */
static char *verify_accesses(const struct step *s)
{
    uint32_t last = repeat_of(s, MOST_ITERATIONS);
    uint64_t *seen = allocate(last, sizeof *seen);
    size_t n = 0, i;
    bool conditional = false;
    for (i = 0; i < s->n; i++)
        conditional |= is_conditional(s->task[i]);
    char *wrong = conditional ? prove(s, 0) : NULL;
    for (uint32_t number = 1; number <= last && !wrong; number++) {
        seen[n] = set_running(s, number);
        for (i = 0; seen[i] != seen[n]; i++)
            ;
        if (i == n) {
            wrong = prove(s, number);
            n++;
        }
    }
    free(seen);
    return wrong;
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

/* What is kept from step to step must be out of the list's way, also where the list does not touch it; and every tensor
 * within its slab, once slabs have been made. */
static char *verify_tensor(const struct step *s, struct space *spaces, const struct tensor *t)
{
    size_t begin, end, n;
    struct space *space = find_range(spaces, true, t, &begin, &end);
    struct segment *g = cut_range(space, begin, end, &n);
    if (s->ready && (t->slab >= (int)t->device->n_slabs || end > t->device->slabs[t->slab].bytes))
        return format_string("tensor %s ends behind its slab on device %s", t->name, t->device->id);
    for (size_t i = 0; i < n && (t->persistent || t->step == s); i++) {
        if (g[i].owner)
            return format_string("tensor %s shares bytes with %s, which is kept from step to step", t->name,
                                 g[i].owner->name);
        g[i].owner = t->persistent ? t : NULL;
    }
    return NULL;
}

/* The slabs within the budget, as far as tensors reach in them. */
static char *verify_budget(const struct device *d, const struct space *slabs)
{
    size_t sum = 0;
    for (int i = 0; i < SLABS_PER_DEVICE; i++)
        sum += slabs[i].n ? slabs[i].segments[slabs[i].n - 1].end : 0;
    return sum > d->budget ? format_string("device %s holds %zu bytes, its budget is %zu", d->id, sum, d->budget)
                           : NULL;
}

static char *verify_memory(const struct step *s)
{
    const struct pool *p = s->pool;
    size_t n_spaces;
    struct space *spaces = new_spaces(p, true, &n_spaces);
    char *wrong = NULL;
    for (size_t i = 0; i < 2 * p->n && !wrong; i++) { /* first all that is kept */
        const struct tensor *t = p->tensors[i % p->n];
        if (t->root == t && t->slab >= 0 && t->persistent == (i < p->n))
            wrong = verify_tensor(s, spaces, t);
    }
    for (int d = 0; d <= p->machine->n_devices && !wrong; d++)
        wrong = verify_budget(&p->machine->device[d], &spaces[d * SLABS_PER_DEVICE]);
    free_spaces(spaces, n_spaces);
    return wrong;
}

char *verify(const struct step *s, const struct values *expected)
{
    char *wrong = expected ? compare_values(expected, s) : NULL;
    if (!wrong)
        wrong = verify_accesses(s);
    return wrong ? wrong : verify_memory(s);
}
