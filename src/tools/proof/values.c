/* values.c - numbers the values that flow through a list, to prove that a pass has not changed what is computed.
 *
 * The list is interpreted in its own order over three iterations, the first of which has the number 0: all tasks that
 * run in every so many iterations run in it, and few of them in the others.  Every write makes a new value, whose
 * number is a hash of the task's origin and of all that it read; a copy carries the number of what it copies.  So the
 * number of a task, that of its reads, stands for the whole computation that led to it.  It does not depend on where
 * tensors lie, on which lane or device a task runs, or on copies put in between.  Two lists compute the same when the
 * tasks of every origin have the same numbers: a stand-in has its original's, a repeat has it once more, and the pieces
 * of an elementwise task, which is numbered in runs of elements, have together the runs of the whole.
 */
#include "cells.h"
#include "proof.h"

enum { ITERATIONS = 3 };
/* The number of one computation: a task in one iteration, or a run of an elementwise task's elements.  Copies have
 * none.  A *result*, what a persistent tensor holds at the end, has a number too. */
struct numbered {
    uint64_t identity; /* the same in two lists for the same task and iteration, or the same tensor */
    uint64_t value;    /* stands for all that was computed up to here */
    size_t begin, end; /* the run: bytes of the task as it was before passes cut it; [0, 1) where it is whole */
    int node;          /* iteration * n + task; results follow after all nodes, in the pool's order */
    bool is_result;
    bool is_silent; /* the task writes nothing: where a pass has added it, it changes nothing */
};
/* What a task and a tensor are known by in both lists. */
enum known_by { BY_ORIGIN, BY_NAME /* see number_named_values() */ };
struct values {
    struct numbered *list; /* by identity, then by run */
    size_t n, cap;
    enum known_by known_by;
};

/* ---- reads and writes ------------------------------------------------------------------------------------------ */

/* The value of a persistent tensor before the first iteration: all its replicas have the same.  In a step file these
 * have one name, from the second on with "~" and a number behind it. */
static uint64_t initial_value(const struct tensor *storage, enum known_by known_by)
{
    if (known_by == BY_NAME)
        return hash_bytes(storage->name, strcspn(storage->name, "~"), 0);
    return hash_pair(UINT64_MAX, (uint64_t)storage->replica.of->id);
}

/* The cells of bytes [begin, end) of the tensor.  Each storage has a strip of its own. */
static struct byte_cell *cells_between(struct strip *strips, const struct tensor *x, size_t begin, size_t end,
                                       size_t *n)
{
    return cells_of(&strips[x->storage->id], x->offset + begin, x->offset + end, n);
}

/* The cells of cells_between(), for a read: those that have never been written get their initial value. */
static struct byte_cell *read_cells(struct strip *strips, const struct tensor *x, size_t begin, size_t end, size_t *n)
{
    struct byte_cell *c = cells_between(strips, x, begin, end, n);
    for (size_t i = 0; i < *n; i++)
        if (c[i].iteration == NONE && !c[i].value) {
            c[i].value = strips[x->storage->id].initial;
            c[i].origin = -(int64_t)x->storage->replica.begin;
        }
    return c;
}

/* A number for the bytes that an access reads: a hash of runs (value, begin, length), where begin counts from the first
 * byte of the value.  Cells that follow one another in one value are one run, so the number does not depend on where
 * cells are cut. */
static uint64_t hash_read_bytes(struct strip *strips, const struct tensor *x)
{
    size_t n;
    struct byte_cell *c = read_cells(strips, x, 0, x->bytes, &n);
    uint64_t value = 0;
    for (size_t i = 0; i < n;) {
        size_t k = i + 1;
        while (k < n && c[k].value == c[i].value && c[k].origin == c[i].origin)
            k++;
        uint64_t begin = (uint64_t)((int64_t)c[i].begin - c[i].origin), length = c[k - 1].end - c[i].begin;
        uint64_t part = hash_pair(begin, length);
        value = hash_pair(value, hash_pair(c[i].value, part));
        i = k;
    }
    return value;
}

struct written_value { /* what a write leaves in each cell: see struct byte_cell */
    uint64_t value;
    int64_t origin;
    int iteration;
};

/* Bytes [begin, end) of the tensor become that value. */
static void write_value(struct strip *strips, const struct tensor *x, size_t begin, size_t end,
                        struct written_value written)
{
    size_t n;
    struct byte_cell *c = cells_between(strips, x, begin, end, &n);
    for (size_t i = 0; i < n; i++) {
        c[i].value = written.value;
        c[i].origin = written.origin;
        c[i].iteration = written.iteration;
    }
}

/* The target gets the source's values, piece by piece. */
static void copy_value(struct strip *strips, const struct tensor *target, const struct tensor *source, int iteration)
{
    size_t n;
    int64_t shift = (int64_t)target->offset - (int64_t)source->offset;
    struct byte_cell *c = read_cells(strips, source, 0, source->bytes, &n);
    for (size_t i = 0; i < n; i++) {
        struct written_value copied = {.value = c[i].value, .origin = c[i].origin + shift, .iteration = iteration};
        write_value(strips, target, c[i].begin - source->offset, c[i].end - source->offset, copied);
        c = cells_between(strips, source, 0, source->bytes, &n); /* anew: target and source may be one strip */
    }
}

/* ---- tasks ----------------------------------------------------------------------------------------------------- */

/* Does element i of the task touch only element i of this access? */
static bool by_element(const struct task *t, const struct access *a)
{
    return t->elementwise && a->tensor->bytes == t->access[0].tensor->bytes;
}

/* A number for the elements from byte `at` on, up to the first byte at which a value of some operand ends: *end. */
static uint64_t hash_elements(struct strip *strips, const struct task *t, size_t at, size_t *end, uint64_t value)
{
    for (int i = 0; i < t->n_access; i++) {
        const struct tensor *x = t->access[i].tensor;
        size_t n;
        if (!(t->access[i].mode & ACCESS_READ) || !by_element(t, &t->access[i]))
            continue;
        struct byte_cell *c = read_cells(strips, x, at, *end, &n);
        int64_t part = (int64_t)x->offset - c->origin - (int64_t)t->piece_begin;
        value = hash_pair(value, hash_pair(c->value, (uint64_t)part));
        *end = c->end - x->offset;
    }
    return value;
}

/* A number for all that the task reads whole. */
static uint64_t hash_whole_reads(struct strip *strips, const struct task *t, uint64_t identity)
{
    uint64_t value = identity;
    for (int i = 0; i < t->n_access; i++) {
        const struct access *a = &t->access[i];
        if ((a->mode & ACCESS_READ) && !a->tensor->choice && !by_element(t, a))
            value = hash_pair(value, hash_read_bytes(strips, a->tensor));
    }
    return value;
}

/* What a task is in all lists that are compared: its origin, or, in two files, its name with its tags. */
static uint64_t identify(const struct values *v, const struct task *t)
{
    const int tags[] = {t->layer, t->micro, (int)t->role};
    if (v->known_by == BY_ORIGIN)
        return t->origin;
    return hash_bytes(tags, sizeof tags, hash_bytes(t->name, strlen(t->name), 0));
}

/* Does the task write no value?  (A choice word is none.) */
static bool writes_nothing(const struct task *t)
{
    for (int i = 0; i < t->n_access; i++)
        if ((t->access[i].mode & ACCESS_WRITE) && !t->access[i].tensor->choice)
            return false;
    return true;
}

/* The task writes bytes [at, end) of its tensors, or, where it is not elementwise, its tensors whole. */
static void write_run(struct strip *strips, const struct task *t, size_t at, size_t end, uint64_t value, int iteration)
{
    for (int i = 0; i < t->n_access; i++) {
        const struct tensor *x = t->access[i].tensor;
        struct written_value written = {.value = hash_pair(value, (uint64_t)i), .iteration = iteration};
        written.origin = (int64_t)x->offset - (int64_t)t->piece_begin;
        if (!(t->access[i].mode & ACCESS_WRITE))
            continue;
        if (t->elementwise)
            write_value(strips, x, at, end, written);
        else
            write_value(strips, x, 0, x->bytes, written);
    }
}

/* Numbers what the task computes, and writes these values.  An elementwise task is cut into runs, wherever a value that
 * it reads begins or ends.  Any other task is one run, of one byte. */
static void interpret_task(struct values *v, struct strip *strips, const struct task *t, struct numbered run,
                           int iteration)
{
    uint64_t common = hash_whole_reads(strips, t, run.identity);
    size_t bytes = t->elementwise ? t->access[0].tensor->bytes : 1;
    run.is_silent = writes_nothing(t);
    for (size_t at = 0, end; at < bytes; at = end) {
        end = bytes;
        run.value = hash_elements(strips, t, at, &end, common);
        run.begin = t->piece_begin + at;
        run.end = t->piece_begin + end;
        write_run(strips, t, at, end, run.value, iteration);
        *APPEND(v->list, v->n, v->cap) = run;
    }
}

/* ---- the list -------------------------------------------------------------------------------------------------- */

/* Numbers what is left in the tensors that persist, so that a list that has lost a copy out of the step has lost a
 * result.  A result's bytes are counted in the tensor that `replica_of` names, so that shards have together the result
 * of a whole tensor. */
static void number_results(struct values *v, const struct step *s, struct strip *strips)
{
    for (size_t i = 0; i < s->pool->n; i++) {
        const struct tensor *x = s->pool->tensors[i];
        size_t n, first = x->replica.begin;
        if (x->storage != x || !x->persistent)
            continue;
        if (v->known_by == BY_NAME && x->class != MEM_PARAMETERS &&
            x->class != MEM_OPTIMIZER) /* `keep` may stand for a place */
            continue;
        struct byte_cell *c = read_cells(strips, x, 0, x->bytes, &n);
        if (x->replica.is_shard && c->iteration == NONE) /* this list uses replicas instead of the shard */
            continue;
        struct numbered result = {.identity = hash_pair(strips[x->id].initial, 1), .is_result = true};
        result.node = ITERATIONS * (int)s->n + x->id;
        for (size_t k = 0; k < n; k++) {
            result.value = hash_pair(c[k].value, (uint64_t)(c[k].origin + (int64_t)first));
            result.begin = first + c[k].begin;
            result.end = first + c[k].end;
            *APPEND(v->list, v->n, v->cap) = result;
        }
    }
}

COMPARISON(by_identity, struct numbered,
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
        } else {
            v->list[n++] = *next;
        }
    }
    v->n = n;
}

/* Interprets the list, and numbers all that it computes. */
static struct values *number_list(const struct step *s, enum known_by known_by)
{
    struct values *v = allocate(1, sizeof *v);
    struct strip *strips = allocate(s->pool->n, sizeof *strips);
    v->known_by = known_by;
    for (size_t i = 0; i < s->pool->n; i++)
        strips[i].initial = initial_value(s->pool->tensors[i]->storage, known_by);
    for (int iteration = 0; iteration < ITERATIONS; iteration++)
        for (int i = 0; i < (int)s->n; i++) {
            const struct task *t = s->task[i];
            struct numbered run = {.identity = hash_pair(identify(v, t), (uint64_t)iteration)};
            run.node = iteration * (int)s->n + i;
            if (!runs(t, (uint32_t)iteration))
                continue;
            if (is_copy(t))
                copy_value(strips, copy_target(t), copy_source(t), iteration);
            else
                interpret_task(v, strips, t, run, iteration);
        }
    number_results(v, s, strips);
    SORT(v->list, v->n, by_identity);
    join_runs(v);
    free_strips(strips, s->pool->n);
    return v;
}

struct values *number_values(const struct step *s) { return number_list(s, BY_ORIGIN); }
struct values *number_named_values(const struct step *s) { return number_list(s, BY_NAME); }

void free_values(struct values *v)
{
    if (v)
        free(v->list);
    free(v);
}

/* ---- two lists ------------------------------------------------------------------------------------------------- */

struct list_difference {
    int node;     /* the first node whose number differs, or NONE */
    bool missing; /* a task is in one list only */
    int part;     /* the first node of which a part of the work is missing, or NONE */
};

/* The end of the entries that have the identity of entry i. */
static size_t group_end(const struct values *v, size_t i)
{
    size_t end = i;
    while (end < v->n && v->list[end].identity == v->list[i].identity)
        end++;
    return end;
}

static void note_first(int *first, int node)
{
    if (*first == NONE || node < *first)
        *first = node;
}

/* Compares the runs of one task: x is as they should be, y as they are in the other list.  Each y must lie within an x
 * of the same value; and together they must have as many bytes.  join_runs() has joined runs of one value, so no byte
 * of these counts twice. */
static void compare_runs(const struct numbered *x, size_t n_x, const struct numbered *y, size_t n_y,
                         struct list_difference *d)
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

/* a: what is expected, b: what is found.  Both are sorted by identity, so this is a merge.  A tensor that persists in
 * one list only (a pass may add its own) is no difference. */
static struct list_difference compare_lists(const struct values *a, const struct values *b)
{
    struct list_difference d = {.node = NONE, .part = NONE};
    size_t i = 0, k = 0; /* the first entries of a and b that have not been compared */
    while (i < a->n || k < b->n) {
        const struct numbered *x = i < a->n ? &a->list[i] : NULL;
        const struct numbered *y = k < b->n ? &b->list[k] : NULL;
        if (x && y && x->identity == y->identity) {
            size_t x_end = group_end(a, i), y_end = group_end(b, k);
            compare_runs(x, x_end - i, y, y_end - k, &d);
            i = x_end;
            k = y_end;
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

/* "task 3 mlp.fc (layer 0) ", and the fault. */
static char *describe_task(const struct step *s, int node, const char *fault)
{
    int i = node % (int)s->n;
    const struct task *t = s->task[i];
    char position[64];
    return format_string("task %d %s%s %s", i, t->name, layer_and_micro(position, t), fault);
}

char *compare_values(const struct values *expected, const struct step *s)
{
    struct values *v = number_list(s, expected->known_by);
    struct list_difference d = compare_lists(expected, v);
    const char *other = expected->known_by == BY_NAME ? "in the list of --like" : "without passes";
    char *wrong = NULL, *fault = NULL;
    if (d.missing)
        wrong = format_string("the list has other tasks (copies left out) than %s", other);
    else if (d.node != NONE && d.node < ITERATIONS * (int)s->n)
        fault = format_string("reads other values than %s", other);
    else if (d.part != NONE)
        fault = format_string("and its other pieces do not cover what it did %s", other);
    else if (d.node != NONE)
        wrong = format_string("a tensor that persists ends with another value than %s", other);
    if (fault)
        wrong = describe_task(s, d.node != NONE ? d.node : d.part, fault);
    free(fault);
    free_values(v);
    return wrong;
}
