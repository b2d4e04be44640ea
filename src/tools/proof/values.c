/* values.c - numbers the values that flow through a list, to prove that a pass has not changed what is computed.
 *
 * The list is interpreted in its own order over three iterations, the first of which has the number 0: all tasks that
 * run in every so many iterations run in it, and few of them in the others.  Every write makes a new value, whose
 * number is a hash of the task's origin and of all that it read; a copy carries the number of what it copies.  So the
 * number of a task, that of its reads, stands for the whole computation behind it, and it does not depend on where
 * tensors lie, on which lane or device a task runs or on copies put in between.  Two lists compute the same when the
 * tasks of every origin have the same numbers: a stand-in has its original's, a repeat has it once more, and the pieces
 * of an elementwise task, which is numbered in runs of elements, have together the runs of the whole.
 */
#include "cells.h"
#include "proof.h"

enum { ITERATIONS = 3 };
struct numbered { /* a task of one iteration or a run of its elements, copies left out; or what a tensor ends with */
    uint64_t identity, value;
    size_t begin, end; /* bytes of the task before it was cut; 0 to 1 where it is whole */
    int node;          /* iteration * n + task; of a result: behind all of them, in the pool's order */
    bool is_result;
    bool is_silent; /* a task that writes nothing: where a pass has added it, it changes nothing */
};
struct values {
    struct numbered *list; /* by identity, then by run */
    size_t n, cap;
};

static uint64_t mix(uint64_t a, uint64_t b) { return hash_bytes(&(uint64_t[2]){a, b}, 16, 0); }

/* ---- reads and writes ------------------------------------------------------------------------------------------ */

/* What a persistent tensor holds before the first iteration, wherever it lies: the same as its replicas. */
static uint64_t initial_value(const struct tensor *t) { return mix(UINT64_MAX, (uint64_t)t->storage->replica_of->id); }

/* Bytes [from, to) of the tensor: each storage is a strip. */
static struct cell *cells_between(struct strip *strips, const struct tensor *t, size_t from, size_t to, size_t *n)
{
    return cells_of(&strips[t->storage->id], t->offset + from, t->offset + to, n);
}

/* The same, to be read: what has never been written has its initial value. */
static struct cell *read_cells(struct strip *strips, const struct tensor *t, size_t from, size_t to, size_t *n)
{
    struct cell *c = cells_between(strips, t, from, to, n);
    for (size_t i = 0; i < *n; i++)
        if (c[i].iteration == NEVER && !c[i].value) {
            c[i].value = initial_value(t);
            c[i].origin = -(int64_t)t->storage->replica_begin;
        }
    return c;
}

/* A number for the bytes that an access reads: runs of (value, part of it). */
static uint64_t read_value(struct strip *strips, const struct tensor *t)
{
    size_t n;
    struct cell *c = read_cells(strips, t, 0, t->bytes, &n);
    uint64_t value = 0;
    for (size_t i = 0; i < n;) {
        size_t k = i + 1;
        while (k < n && c[k].value == c[i].value && c[k].origin == c[i].origin)
            k++;
        value =
            mix(value, mix(c[i].value, mix((uint64_t)((int64_t)c[i].begin - c[i].origin), c[k - 1].end - c[i].begin)));
        i = k;
    }
    return value;
}

/* Bytes [from, to) of the tensor become a value that begins at `origin` in its strip. */
static void write_value(struct strip *strips, const struct tensor *t, size_t from, size_t to, uint64_t value,
                        int64_t origin, int iteration)
{
    size_t n;
    struct cell *c = cells_between(strips, t, from, to, &n);
    for (size_t i = 0; i < n; i++)
        c[i].value = value, c[i].origin = origin, c[i].iteration = iteration;
}

/* The target gets the source's values, piece by piece. */
static void copy_value(struct strip *strips, const struct tensor *to, const struct tensor *from, int iteration)
{
    size_t n;
    int64_t shift = (int64_t)to->offset - (int64_t)from->offset;
    struct cell *c = read_cells(strips, from, 0, from->bytes, &n);
    for (size_t i = 0; i < n; i++) {
        write_value(strips, to, c[i].begin - from->offset, c[i].end - from->offset, c[i].value, c[i].origin + shift,
                    iteration);
        c = cells_between(strips, from, 0, from->bytes, &n); /* (target and source may be one strip) */
    }
}

/* ---- tasks ----------------------------------------------------------------------------------------------------- */

static bool by_element(const struct task *t, const struct access *a)
{
    return t->elementwise && a->tensor->bytes == t->access[0].tensor->bytes;
}

/* A number for the elements from byte `at` on, as far as all operands go on as they begin: *end moves there. */
static uint64_t read_elements(struct strip *strips, const struct task *t, size_t at, size_t *end, uint64_t value)
{
    for (int i = 0; i < t->n_access; i++) {
        const struct tensor *x = t->access[i].tensor;
        size_t n;
        if (!(t->access[i].mode & ACCESS_READ) || !by_element(t, &t->access[i]))
            continue;
        struct cell *c = read_cells(strips, x, at, *end, &n);
        value = mix(value, mix(c->value, (uint64_t)((int64_t)x->offset - c->origin - (int64_t)t->first)));
        *end = c->end - x->offset;
    }
    return value;
}

/* A task that is not elementwise is one run, of one byte. */
static void interpret_task(struct values *v, struct strip *strips, const struct task *t, struct numbered run,
                           int iteration)
{
    uint64_t common = run.identity;
    size_t bytes = t->elementwise ? t->access[0].tensor->bytes : 1;
    run.is_silent = true;
    for (int i = 0; i < t->n_access; i++) {
        const struct access *a = &t->access[i];
        if ((a->mode & ACCESS_READ) && !a->tensor->choice && !by_element(t, a))
            common = mix(common, read_value(strips, a->tensor));
        run.is_silent &= !(a->mode & ACCESS_WRITE) || a->tensor->choice;
    }
    for (size_t at = 0, end; at < bytes; at = end) {
        end = bytes;
        run.value = read_elements(strips, t, at, &end, common);
        run.begin = t->first + at;
        run.end = t->first + end;
        for (int i = 0; i < t->n_access; i++) {
            const struct tensor *x = t->access[i].tensor;
            if (t->access[i].mode & ACCESS_WRITE)
                write_value(strips, x, t->elementwise ? at : 0, t->elementwise ? end : x->bytes,
                            mix(run.value, (uint64_t)i), (int64_t)x->offset - (int64_t)t->first, iteration);
        }
        *APPEND(v->list, v->n, v->cap) = run;
    }
}

/* ---- the list -------------------------------------------------------------------------------------------------- */

/* What is left in the tensors that persist: a list that loses a copy out of the step loses a result.  Byte by byte of
 * what replicas are replicas of, so that shards have together what a whole one had. */
static void number_results(struct values *v, const struct step *s, struct strip *strips)
{
    for (size_t i = 0; i < s->pool->n; i++) {
        const struct tensor *t = s->pool->tensors[i];
        size_t n, first = t->replica_begin;
        if (t->storage != t || !t->persistent)
            continue;
        struct cell *c = read_cells(strips, t, 0, t->bytes, &n);
        if (t->shard && c->iteration == NEVER) /* the list has replicas in its place */
            continue;
        struct numbered result = {mix(initial_value(t), 1), .node = ITERATIONS * (int)s->n + t->id, .is_result = true};
        for (size_t k = 0; k < n; k++) {
            result.value = mix(c[k].value, (uint64_t)(c[k].origin + (int64_t)first));
            result.begin = first + c[k].begin, result.end = first + c[k].end;
            *APPEND(v->list, v->n, v->cap) = result;
        }
    }
}

ORDER(by_identity, struct numbered,
      BY(a->identity, b->identity, BY(a->value, b->value, BY(a->begin, b->begin, COMPARE(a->node, b->node)))))

/* Runs that touch or overlap and have the same number become one: how a task was cut, or how often it was repeated,
 * does not matter. */
static void join_runs(struct values *v)
{
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++) {
        struct numbered *last = n ? &v->list[n - 1] : NULL, *next = &v->list[i];
        if (last && last->identity == next->identity && last->value == next->value && next->begin <= last->end) {
            last->end = MAX(last->end, next->end);
            last->node = MIN(last->node, next->node);
        } else
            v->list[n++] = *next;
    }
    v->n = n;
}

struct values *number_values(const struct step *s)
{
    struct values *v = allocate(1, sizeof *v);
    struct strip *strips = allocate(s->pool->n, sizeof *strips);
    for (int iteration = 0; iteration < ITERATIONS; iteration++)
        for (int i = 0; i < (int)s->n; i++) {
            const struct task *t = s->task[i];
            struct numbered task = {.identity = mix(t->origin, (uint64_t)iteration), .node = iteration * (int)s->n + i};
            if (runs(t, (uint32_t)iteration) && t->copy)
                copy_value(strips, t->access[0].tensor, t->access[1].tensor, iteration);
            else if (runs(t, (uint32_t)iteration))
                interpret_task(v, strips, t, task, iteration);
        }
    number_results(v, s, strips);
    SORT(v->list, v->n, by_identity);
    join_runs(v);
    free_strips(strips, s->pool->n);
    return v;
}

void free_values(struct values *v)
{
    if (v)
        free(v->list);
    free(v);
}

/* ---- two lists ------------------------------------------------------------------------------------------------- */

struct difference {
    int node;     /* the first whose number differs; -1: none */
    bool missing; /* a task is in one list only */
    int part;     /* the first of whose work a part is missing; -1: none */
};

/* The end of the entries that have the identity of entry i. */
static size_t group_end(const struct values *v, size_t i)
{
    size_t end = i;
    while (end < v->n && v->list[end].identity == v->list[i].identity)
        end++;
    return end;
}

static void note_first(int *first, int node) { *first = *first < 0 ? node : MIN(*first, node); }

/* All that is known of one task in both lists: the runs x as they should be, and y. */
static void compare_runs(const struct numbered *x, size_t n_x, const struct numbered *y, size_t n_y,
                         struct difference *d)
{
    size_t work = 0;
    for (size_t i = 0; i < n_x; i++)
        work += x[i].end - x[i].begin;
    for (size_t i = 0; i < n_y; i++) {
        bool expected = false;
        for (size_t k = 0; k < n_x && !expected; k++)
            expected = x[k].value == y[i].value && x[k].begin <= y[i].begin && y[i].end <= x[k].end;
        if (!expected)
            note_first(&d->node, y[i].node);
        work -= y[i].end - y[i].begin;
    }
    if (work)
        note_first(y->is_result ? &d->node : &d->part, y->node);
}

/* A tensor that persists in one list only (a pass may add its own) is no difference. */
static struct difference compare_lists(const struct values *a, const struct values *b)
{
    struct difference d = {-1, false, -1};
    for (size_t i = 0, k = 0; i < a->n || k < b->n;) {
        const struct numbered *x = i < a->n ? &a->list[i] : NULL, *y = k < b->n ? &b->list[k] : NULL;
        if (x && y && x->identity == y->identity) {
            size_t end = group_end(a, i), stop = group_end(b, k);
            compare_runs(x, end - i, y, stop - k, &d);
            i = end, k = stop;
        } else if (x && (!y || x->identity < y->identity)) {
            d.missing |= !x->is_result;
            i++;
        } else {
            d.missing |= !y->is_result && !y->is_silent;
            k++;
        }
    }
    return d;
}

static char *describe_task(const struct step *s, int node, const char *what)
{
    int i = node % (int)s->n;
    const struct task *t = s->task[i];
    return format_string("task %d %s%s %s", i, t->name, layer_and_micro((char[64]){0}, t), what);
}

char *compare_values(const struct values *expected, const struct step *s)
{
    struct values *v = number_values(s);
    struct difference d = compare_lists(expected, v);
    char *wrong = NULL;
    if (d.missing)
        wrong = copy_string("the list has other tasks (copies left out) than without passes");
    if (!wrong && d.node >= 0 && d.node < ITERATIONS * (int)s->n)
        wrong = describe_task(s, d.node, "reads other values than without passes");
    if (!wrong && d.part >= 0)
        wrong = describe_task(s, d.part, "and its other pieces do not cover what it did without passes");
    if (!wrong && d.node >= 0)
        wrong = copy_string("a tensor that persists ends with another value than without passes");
    free_values(v);
    return wrong;
}
