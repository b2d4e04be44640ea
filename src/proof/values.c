/* values.c - numbers the values that flow through a list, to prove that a pass has not changed what is computed.
 *
 * The list is interpreted in its own order over three iterations.  Every write makes a new value, whose number is a
 * hash of the task and of all that it read; a copy carries the number of what it copies.  So the number of a task, that
 * of its reads, stands for the whole computation behind it, and it does not depend on where tensors lie, on which lane
 * a task runs or on copies put in between.  Two lists compute the same when their tasks have the same numbers.
 */
#include "../step/ranges.h"
#include "proof.h"

#include <stdlib.h>
#include <string.h>

enum { ITERATIONS = 3 };
struct numbered { /* one task of one iteration, copies left out; or what a tensor holds in the end */
    uint64_t identity, value;
    int node; /* iteration * n + task; of a result: behind all of them, in the pool's order */
    bool is_result;
};
struct values {
    struct numbered *list; /* by identity */
    size_t n, cap;
    char *wrong; /* a read before anything was written; NULL: none */
};

static uint64_t mix(uint64_t a, uint64_t b) { return hash_bytes(&(uint64_t[2]){a, b}, 16, 0); }

/* Which task this is, whatever the list: name, layer, micro-batch, device, and how many such came before. */
static uint64_t identity_of(const struct step *s, int task)
{
    const struct task *t = s->task[task];
    uint64_t same = 0;
    for (int i = 0; i < task; i++) {
        const struct task *o = s->task[i];
        same += o->layer == t->layer && o->micro == t->micro && o->lane->device == t->lane->device &&
                strcmp(o->name, t->name) == 0;
    }
    uint64_t id = hash_bytes(t->name, strlen(t->name), 0);
    return mix(mix(id, (uint64_t)(t->layer + 1)),
               mix((uint64_t)(t->micro + 1) << 32 | same, (uint64_t)t->lane->device->index));
}

/* ---- reads and writes ------------------------------------------------------------------------------------------ */

/* What a persistent tensor holds before the first iteration. */
static uint64_t initial_value(const struct tensor *t)
{
    const struct tensor *root = t->root;
    return hash_bytes(root->name, strlen(root->name), 0x1000 + (uint64_t)root->device->index);
}

static void define_untouched(struct segment *g, size_t n, const struct tensor *t)
{
    for (size_t i = 0; i < n; i++)
        if (g[i].writer == NOBODY && !g[i].value) {
            g[i].value = initial_value(t);
            g[i].origin = 0;
        }
}

/* A number for the bytes that an access reads: runs of (value, part of it). */
static uint64_t read_value(struct space *spaces, const struct tensor *t)
{
    size_t begin, end, n;
    struct space *space = find_range(spaces, false, t, &begin, &end);
    struct segment *g = cut_range(space, begin, end, &n);
    uint64_t value = 0;
    define_untouched(g, n, t);
    for (size_t i = 0; i < n;) {
        size_t k = i + 1;
        while (k < n && g[k].value == g[i].value && g[k].origin == g[i].origin)
            k++;
        value =
            mix(value, mix(g[i].value, mix((uint64_t)((int64_t)g[i].begin - g[i].origin), g[k - 1].end - g[i].begin)));
        i = k;
    }
    return value;
}

static bool is_written(struct space *spaces, const struct tensor *t, int iteration)
{
    size_t begin, end, n;
    struct space *space = find_range(spaces, false, t, &begin, &end);
    struct segment *g = cut_range(space, begin, end, &n);
    for (size_t i = 0; i < n; i++)
        if (!t->root->persistent && g[i].writer != iteration)
            return false;
    return true;
}

static void write_value(struct space *spaces, const struct tensor *t, uint64_t value, int iteration)
{
    size_t begin, end, n;
    struct space *space = find_range(spaces, false, t, &begin, &end);
    struct segment *g = cut_range(space, begin, end, &n);
    for (size_t i = 0; i < n; i++) {
        g[i].value = value;
        g[i].origin = (int64_t)begin;
        g[i].writer = iteration;
    }
}

/* The target gets the source's values, piece by piece. */
static void copy_value(struct space *spaces, const struct tensor *to, const struct tensor *from, int iteration)
{
    size_t begin, end, n, to_begin, to_end, unused;
    struct space *target = find_range(spaces, false, to, &to_begin, &to_end);
    struct space *source = find_range(spaces, false, from, &begin, &end);
    struct segment *g = cut_range(source, begin, end, &n);
    define_untouched(g, n, from);
    for (size_t i = 0; i < n; i++) {
        int64_t shift = (int64_t)to_begin - (int64_t)begin;
        size_t at = (size_t)((int64_t)g[i].begin + shift), stop = (size_t)((int64_t)g[i].end + shift);
        uint64_t value = g[i].value;
        int64_t origin = g[i].origin + shift;
        struct segment *h = cut_range(target, at, stop, &unused);
        for (size_t k = 0; k < unused; k++)
            h[k].value = value, h[k].origin = origin, h[k].writer = iteration;
        g = cut_range(source, begin, end, &n); /* (target and source may be one space) */
    }
}

/* ---- the list -------------------------------------------------------------------------------------------------- */

static void interpret(struct values *v, const struct step *s, struct space *spaces, int task, int iteration,
                      uint64_t identity)
{
    const struct task *t = s->task[task];
    uint64_t value = identity;
    for (int i = 0; i < t->n_access; i++)
        if (t->access[i].mode & ACCESS_READ) {
            if (!v->wrong && !is_written(spaces, t->access[i].tensor, iteration))
                v->wrong = format_string("task %d %s reads tensor %s before anything is written to it", task, t->name,
                                         t->access[i].tensor->name);
            value = mix(value, read_value(spaces, t->access[i].tensor));
        }
    if (t->copy) {
        copy_value(spaces, t->access[0].tensor, t->access[1].tensor, iteration);
        return;
    }
    *APPEND(v->list, v->n, v->cap) = (struct numbered){identity, value, iteration * (int)s->n + task, false};
    for (int i = 0; i < t->n_access; i++)
        if (t->access[i].mode & ACCESS_WRITE)
            write_value(spaces, t->access[i].tensor, mix(value, (uint64_t)i), iteration);
}

/* Tensors may have the same name: they stay in the pool's order, behind which a pass adds its own. */
static int by_identity(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;
    if (x->identity != y->identity)
        return x->identity < y->identity ? -1 : 1;
    return x->node - y->node;
}

/* What is left in the tensors that persist: a list that loses a copy out of the step loses a result. */
static void number_results(struct values *v, const struct step *s, struct space *spaces)
{
    for (size_t i = 0; i < s->pool->n; i++) {
        const struct tensor *t = s->pool->tensors[i];
        if (t->root == t && t->persistent)
            *APPEND(v->list, v->n, v->cap) = (struct numbered){mix(initial_value(t), 1), read_value(spaces, t),
                                                               ITERATIONS * (int)s->n + t->id, true};
    }
}

struct values *number_values(const struct step *s)
{
    size_t n_spaces;
    struct values *v = allocate(1, sizeof *v);
    struct space *spaces = new_spaces(s->pool, false, &n_spaces);
    uint64_t *base = allocate(s->n, sizeof *base);
    for (int i = 0; i < (int)s->n; i++)
        base[i] = identity_of(s, i);
    for (int iteration = 0; iteration < ITERATIONS; iteration++)
        for (int i = 0; i < (int)s->n; i++)
            interpret(v, s, spaces, i, iteration, mix(base[i], (uint64_t)iteration));
    number_results(v, s, spaces);
    if (v->n)
        qsort(v->list, v->n, sizeof *v->list, by_identity);
    free_spaces(spaces, n_spaces);
    free(base);
    return v;
}

void free_values(struct values *v)
{
    if (!v)
        return;
    free(v->list);
    free(v->wrong);
    free(v);
}

/* The node whose number differs first; -1: none.  *missing is set when a task is in one list only; a
 * tensor that persists in one only (a pass may add its own) is no difference. */
static int first_difference(const struct values *a, const struct values *b, bool *missing)
{
    int first = -1;
    for (size_t i = 0, k = 0; i < a->n || k < b->n;) {
        const struct numbered *x = i < a->n ? &a->list[i] : NULL, *y = k < b->n ? &b->list[k] : NULL;
        if (x && y && x->identity == y->identity) {
            if (x->value != y->value && (first < 0 || y->node < first))
                first = y->node;
            i++, k++;
            continue;
        }
        if (x && (!y || x->identity < y->identity)) {
            *missing |= !x->is_result;
            i++;
        } else if (y) {
            *missing |= !y->is_result;
            k++;
        }
    }
    return first;
}

static char *describe_reader(const struct step *s, int task)
{
    const struct task *t = s->task[task];
    return format_string("task %d %s (layer %d, micro-batch %d) reads other values than without passes", task, t->name,
                         t->layer, t->micro);
}

char *compare_values(const struct values *expected, const struct step *s)
{
    struct values *v = number_values(s);
    bool missing = false;
    char *wrong = v->wrong;
    int first = first_difference(expected, v, &missing);
    v->wrong = NULL;
    if (!wrong && missing)
        wrong = copy_string("the list has other tasks (copies left out) than without passes");
    if (!wrong && first >= ITERATIONS * (int)s->n)
        wrong = copy_string("a tensor that persists ends with another value than without passes");
    if (!wrong && first >= 0)
        wrong = describe_reader(s, first % (int)s->n);
    free_values(v);
    return wrong;
}
