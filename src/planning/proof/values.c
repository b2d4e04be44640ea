/* values.c - gives hashes to the values of a list's tasks, to prove that a pass has not changed what is computed.
 *
 * The list is interpreted in its own order.  Iterations 0 to 2 are interpreted; every task runs in iteration 0, and
 * few of those that run once in several iterations run in the others.  Each write gets a hash of the task's origin and
 * of the hashes that the task read; a copy passes hashes on.  So a hash depends on the whole computation that led to
 * the value, and not on where tensors lie, on which lane or device a task runs, or on copies put in between.
 *
 * Two lists compute the same when the tasks of every origin have the same hashes.  A pass may put another task in a
 * task's place, or add a task that computes the same once more: these have the origin, and so the hash, of that task.
 * An elementwise task has a hash for each fragment of its elements, and its slices have together the fragments of the
 * whole task.
 */
#include "cells.h"
#include "proof.h"
#include "trainer/step/list.h"

enum { ITERATIONS = 3 };

/* The hash of one computation: a task in one iteration, or a fragment of an elementwise task's elements.  Copies have
 * none.  A *result*, what a persistent tensor holds at the end, has a hash too. */
struct fragment {
    uint64_t identity; /* the same in two lists for the same task and iteration, or the same tensor */
    uint64_t hash;     /* of all that was computed up to here */
    size_t begin, end; /* bytes of the task as it was before passes cut it; [0, 1) where it is whole */
    int node;          /* iteration * n + task; results follow after all nodes, in the pool's order */
    bool is_result;
    bool is_silent; /* the task writes nothing: where a pass has added it, it changes nothing */
};

/* How tasks and tensors are recognised in both lists. */
enum known_by { BY_ORIGIN, BY_NAME /* see hash_named_values() */ };
struct values {
    struct fragment *fragments; /* by identity, then by hash and begin */
    size_t n, cap;
    enum known_by known_by;
};

/* ---- reads and writes -------------------------------------------------------------------------------------------- */

/* The value of a persistent tensor before the first iteration: all its replicas have the same.  In a step file these
 * have one name, from the second on with "~" and a number behind it. */
static uint64_t initial_value(const struct tensor *storage, enum known_by known_by)
{
    if (known_by == BY_NAME)
        return hash_bytes(storage->name, strcspn(storage->name, "~"), 0);
    return hash_pair(UINT64_MAX, (uint64_t)storage->replica.of->id);
}

/* The cells of bytes [begin, end) of the tensor.  Each storage has a strip of its own. */
static struct byte_cell *cells_between(struct strip *strips, const struct tensor *tensor, size_t begin, size_t end,
                                       size_t *n)
{
    return cells_of(&strips[tensor->storage->id], tensor->offset + begin, tensor->offset + end, n);
}

/* The index of the first cell after cell i that does not go on with its value; n: all do. */
static size_t end_of_value(const struct byte_cell *cells, size_t n, size_t i)
{
    size_t end = i + 1;
    while (end < n && cells[end].value.hash == cells[i].value.hash && cells[end].value.begin == cells[i].value.begin)
        end++;
    return end;
}

/* A hash of the bytes that an access reads, as parts (value, begin, length), where begin counts from the first byte of
 * the value.  It does not depend on where cells are cut: cells (7, 0, 16) and (7, 16, 48) follow one another in
 * value 7, and are the part (7, 0, 64). */
static uint64_t hash_read_bytes(struct strip *strips, const struct tensor *tensor)
{
    size_t n;
    struct byte_cell *cells = cells_between(strips, tensor, 0, tensor->bytes, &n);
    uint64_t value = 0;
    size_t i = 0;
    while (i < n) {
        size_t end = end_of_value(cells, n, i);
        uint64_t begin = (uint64_t)((int64_t)cells[i].begin - cells[i].value.begin);
        uint64_t length = cells[end - 1].end - cells[i].begin;
        uint64_t part = hash_pair(begin, length);
        value = hash_pair(value, hash_pair(cells[i].value.hash, part));
        i = end;
    }
    return value;
}

/* Bytes [begin, end) of the tensor become that value. */
static void write_value(struct strip *strips, const struct tensor *tensor, size_t begin, size_t end,
                        struct byte_value written)
{
    size_t n;
    struct byte_cell *cells = cells_between(strips, tensor, begin, end, &n);
    for (size_t i = 0; i < n; i++)
        cells[i].value = written;
}

/* The target gets the source's values, piece by piece. */
static void copy_value(struct strip *strips, const struct tensor *target, const struct tensor *source, int iteration)
{
    size_t n;
    int64_t shift = (int64_t)target->offset - (int64_t)source->offset;
    struct byte_cell *cells = cells_between(strips, source, 0, source->bytes, &n);
    for (size_t i = 0; i < n; i++) {
        struct byte_value copied = {
            .hash = cells[i].value.hash, .begin = cells[i].value.begin + shift, .iteration = iteration};
        write_value(strips, target, cells[i].begin - source->offset, cells[i].end - source->offset, copied);
        cells = cells_between(strips, source, 0, source->bytes, &n); /* anew: target and source may be one strip */
    }
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

/* Does element i of the task touch only element i of this access? */
static bool by_element(const struct task *task, const struct access *access)
{
    return task->extra.elementwise && access->tensor->bytes == task->accesses[0].tensor->bytes;
}

/* A hash of the elements from byte `at` up to *end.  When it is called, *end is the end of all elements; it moves to
 * the first byte at which a value of some operand ends. */
static uint64_t hash_elements(struct strip *strips, const struct task *task, size_t at, size_t *end, uint64_t value)
{
    for (int i = 0; i < task->n_accesses; i++) {
        const struct access *access = &task->accesses[i];
        if (!(access->mode & ACCESS_READ) || !by_element(task, access))
            continue;
        size_t n;
        const struct byte_cell *first = cells_between(strips, access->tensor, at, *end, &n);
        /* Byte b of the task, as it was before passes cut it, reads byte b + shift of the value. */
        int64_t shift = (int64_t)access->tensor->offset - first->value.begin - (int64_t)task->extra.slice_begin;
        value = hash_pair(value, hash_pair(first->value.hash, (uint64_t)shift));
        *end = first->end - access->tensor->offset;
    }
    return value;
}

/* A hash of all that the task reads whole. */
static uint64_t hash_whole_reads(struct strip *strips, const struct task *task, uint64_t identity)
{
    uint64_t value = identity;
    for (int i = 0; i < task->n_accesses; i++) {
        const struct access *access = &task->accesses[i];
        if ((access->mode & ACCESS_READ) && !access->tensor->extra.is_side_word && !by_element(task, access))
            value = hash_pair(value, hash_read_bytes(strips, access->tensor));
    }
    return value;
}

/* A number for the task, the same in all lists that are compared: its origin, or, in two files, a hash of its name and
 * tags. */
static uint64_t identify(const struct values *values, const struct task *task)
{
    const int tags[] = {task->layer, task->micro, (int)task->role};
    if (values->known_by == BY_ORIGIN)
        return task->extra.origin;
    return hash_bytes(tags, sizeof tags, hash_bytes(task->name, strlen(task->name), 0));
}

/* Does the task write no value?  (A side word is none.) */
static bool writes_nothing(const struct task *task)
{
    for (int i = 0; i < task->n_accesses; i++)
        if ((task->accesses[i].mode & ACCESS_WRITE) && !task->accesses[i].tensor->extra.is_side_word)
            return false;
    return true;
}

/* The task writes bytes [at, end) of its tensors, or, where it is not elementwise, its tensors whole. */
static void write_fragment(struct strip *strips, const struct task *task, size_t at, size_t end, uint64_t value,
                           int iteration)
{
    for (int i = 0; i < task->n_accesses; i++) {
        const struct tensor *tensor = task->accesses[i].tensor;
        if (!(task->accesses[i].mode & ACCESS_WRITE))
            continue;
        const struct byte_value written = {
            .hash = hash_pair(value, (uint64_t)i),
            .begin = (int64_t)tensor->offset - (int64_t)task->extra.slice_begin,
            .iteration = iteration,
        };
        if (task->extra.elementwise)
            write_value(strips, tensor, at, end, written);
        else
            write_value(strips, tensor, 0, tensor->bytes, written);
    }
}

static void add_fragment(struct values *values, struct fragment fragment)
{
    GROW(values->fragments, values->cap, values->n + 1);
    values->fragments[values->n++] = fragment;
}

/* Notes the hashes of what the task computes, and writes these values.  An elementwise task is cut into fragments,
 * wherever a value that it reads begins or ends.  Any other task is one fragment, of one byte.  fragment: its identity
 * and node are set. */
static void interpret_task(struct values *values, struct strip *strips, const struct task *task,
                           struct fragment fragment, int iteration)
{
    uint64_t common = hash_whole_reads(strips, task, fragment.identity);
    size_t bytes = task->extra.elementwise ? task->accesses[0].tensor->bytes : 1;
    fragment.is_silent = writes_nothing(task);
    size_t at = 0;
    while (at < bytes) {
        size_t end = bytes;
        fragment.hash = hash_elements(strips, task, at, &end, common);
        fragment.begin = task->extra.slice_begin + at;
        fragment.end = task->extra.slice_begin + end;
        write_fragment(strips, task, at, end, fragment.hash, iteration);
        add_fragment(values, fragment);
        at = end;
    }
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

/* Is what the tensor holds at the end a result?  In a step file, `keep` may only mean that a tensor has its own place:
 * there, only state counts. */
static bool leaves_result(const struct values *values, const struct tensor *tensor)
{
    bool is_state = tensor->class == MEM_PARAMETERS || tensor->class == MEM_OPTIMIZER;
    if (tensor->storage != tensor || !tensor->persistent)
        return false;
    return values->known_by == BY_ORIGIN || is_state;
}

/* Notes the hash of what is left in the tensor.  Its bytes are counted in the tensor that `replica.of` names, so that
 * shards have together the result of a whole tensor. */
static void hash_result(struct values *values, const struct list *list, struct strip *strips,
                        const struct tensor *tensor)
{
    size_t first = tensor->replica.begin;
    size_t n;
    const struct byte_cell *cells = cells_between(strips, tensor, 0, tensor->bytes, &n);
    if (tensor->replica.is_shard && cells->value.iteration == NONE) /* this list uses replicas instead of the shard */
        return;
    struct fragment result = {
        .identity = hash_pair(strips[tensor->id].whole.value.hash, 1),
        .node = ITERATIONS * (int)list->n + (int)tensor->id,
        .is_result = true,
    };
    for (size_t k = 0; k < n; k++) {
        result.hash = hash_pair(cells[k].value.hash, (uint64_t)(cells[k].value.begin + (int64_t)first));
        result.begin = first + cells[k].begin;
        result.end = first + cells[k].end;
        add_fragment(values, result);
    }
}

/* Notes the hashes of what is left in the tensors that persist, so that a list that has lost a copy out of the step has
 * lost a result. */
static void hash_results(struct values *values, const struct list *list, struct strip *strips)
{
    for (size_t i = 0; i < list->pool->n; i++)
        if (leaves_result(values, list->pool->tensors[i]))
            hash_result(values, list, strips, list->pool->tensors[i]);
}

static int by_identity(const void *left, const void *right)
{
    const struct fragment *a = left;
    const struct fragment *b = right;
    if (a->identity != b->identity)
        return COMPARE(a->identity, b->identity);
    if (a->hash != b->hash)
        return COMPARE(a->hash, b->hash);
    if (a->begin != b->begin)
        return COMPARE(a->begin, b->begin);
    return COMPARE(a->node, b->node);
}

/* Stretches that touch or overlap and have the same hash become one: how a task was cut, or how often it was repeated,
 * does not matter. */
static void join_fragments(struct values *values)
{
    size_t n = 0;
    for (size_t i = 0; i < values->n; i++) {
        struct fragment *last = n ? &values->fragments[n - 1] : NULL;
        struct fragment *next = &values->fragments[i];
        if (last && last->identity == next->identity && last->hash == next->hash && next->begin <= last->end) {
            last->end = MAX(last->end, next->end);
            last->node = MIN(last->node, next->node);
        } else {
            values->fragments[n++] = *next;
        }
    }
    values->n = n;
}

/* Interprets task i of the list in that iteration, if it runs then. */
static void interpret_if_due(struct values *values, const struct list *list, struct strip *strips, int i, int iteration)
{
    const struct task *task = list->tasks[i];
    if (!is_due(task, (uint32_t)iteration))
        return;
    if (is_copy(task)) {
        copy_value(strips, copy_target(task), copy_source(task), iteration);
        return;
    }
    const struct fragment fragment = {
        .identity = hash_pair(identify(values, task), (uint64_t)iteration),
        .node = iteration * (int)list->n + i,
    };
    interpret_task(values, strips, task, fragment, iteration);
}

/* Strips for the tensors of the pool, by id, with the values before the first iteration. */
static struct strip *initial_strips(const struct pool *pool, enum known_by known_by)
{
    struct strip *strips = new_strips(pool->n, (struct byte_cell){.value = {.iteration = NONE}});
    for (size_t i = 0; i < pool->n; i++) {
        const struct tensor *storage = pool->tensors[i]->storage;
        strips[i].whole.value.hash = initial_value(storage, known_by);
        strips[i].whole.value.begin = -(int64_t)storage->replica.begin;
    }
    return strips;
}

/* Interprets the list, and notes the hashes of all that it computes. */
static struct values *hash_list(const struct list *list, enum known_by known_by)
{
    struct values *values = allocate(1, sizeof *values);
    struct strip *strips = initial_strips(list->pool, known_by);
    values->known_by = known_by;
    for (int iteration = 0; iteration < ITERATIONS; iteration++)
        for (int i = 0; i < (int)list->n; i++)
            interpret_if_due(values, list, strips, i, iteration);
    hash_results(values, list, strips);
    SORT(values->fragments, values->n, by_identity);
    join_fragments(values);
    free_strips(strips, list->pool->n);
    return values;
}

struct values *hash_values(const struct list *list) { return hash_list(list, BY_ORIGIN); }
struct values *hash_named_values(const struct list *list) { return hash_list(list, BY_NAME); }

void free_values(struct values *values)
{
    if (values)
        free(values->fragments);
    free(values);
}

/* ---- two lists --------------------------------------------------------------------------------------------------- */

struct list_difference {
    int node;     /* the first node whose hash differs, or NONE */
    bool missing; /* a task is in one list only */
    int partial;  /* the first node of which a part of the work is missing, or NONE */
};

/* The end of the entries that have the identity of entry i. */
static size_t group_end(const struct values *values, size_t i)
{
    size_t end = i;
    while (end < values->n && values->fragments[end].identity == values->fragments[i].identity)
        end++;
    return end;
}

static void note_first(int *first, int node)
{
    if (*first == NONE || node < *first)
        *first = node;
}

/* The bytes of these fragments together. */
static size_t sum_fragments(const struct fragment *fragments, size_t n)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += fragments[i].end - fragments[i].begin;
    return bytes;
}

/* Does the fragment lie within one of the others that has the same hash? */
static bool lies_in_one(const struct fragment *fragment, const struct fragment *others, size_t n)
{
    for (const struct fragment *other = others; other < others + n; other++)
        if (other->hash == fragment->hash && other->begin <= fragment->begin && fragment->end <= other->end)
            return true;
    return false;
}

/* Compares the fragments that were found of one task, or one result, with those expected.  Each must lie within an
 * expected one of the same hash, and together they must have as many bytes.  No byte counts twice, since
 * join_fragments() has joined the fragments of one hash. */
static void compare_fragments(const struct fragment *expected, size_t n_expected, const struct fragment *found,
                              size_t n_found, struct list_difference *difference)
{
    for (size_t i = 0; i < n_found; i++)
        if (!lies_in_one(&found[i], expected, n_expected))
            note_first(&difference->node, found[i].node);
    if (sum_fragments(found, n_found) != sum_fragments(expected, n_expected))
        note_first(found->is_result ? &difference->node : &difference->partial, found->node);
}

/* expected: what is expected, values: what is found.  Both are sorted by identity, so this is a merge.  A tensor that
 * persists in one list only (a pass may add its own) is no difference. */
static struct list_difference compare_lists(const struct values *expected, const struct values *values)
{
    struct list_difference difference = {.node = NONE, .partial = NONE};
    size_t i = 0, k = 0; /* the first entries of both that have not been compared */
    while (i < expected->n || k < values->n) {
        const struct fragment *wanted = i < expected->n ? &expected->fragments[i] : NULL;
        const struct fragment *found = k < values->n ? &values->fragments[k] : NULL;
        if (wanted && found && wanted->identity == found->identity) {
            size_t wanted_end = group_end(expected, i);
            size_t found_end = group_end(values, k);
            compare_fragments(wanted, wanted_end - i, found, found_end - k, &difference);
            i = wanted_end;
            k = found_end;
        } else if (wanted && (!found || wanted->identity < found->identity)) {
            difference.missing |= !wanted->is_result;
            i++;
        } else {
            difference.missing |= !found->is_result && !found->is_silent;
            k++;
        }
    }
    return difference;
}

/* "task 3 mlp.fc (layer 0) ", the fault, and "without passes" or what else the other list is. */
static struct problem *blame_task(const struct list *list, int node, const char *fault, const char *other)
{
    int i = node % (int)list->n;
    const struct task *task = list->tasks[i];
    char position[LAYER_AND_MICRO];
    return new_problem(EXIT_FAILED, "task %d %s%s %s %s", i, task->name, layer_and_micro(position, task), fault, other);
}

/* The difference as a sentence; NULL: there is none. */
static struct problem *describe_difference(const struct list_difference *difference, const struct list *list,
                                           enum known_by known_by)
{
    const char *other = known_by == BY_NAME ? "in the list of --like" : "without passes";
    if (difference->missing)
        return new_problem(EXIT_FAILED, "the list has other tasks (copies left out) than %s",
                           known_by == BY_NAME ? "the list of --like has" : "without passes");
    if (difference->node != NONE && difference->node < ITERATIONS * (int)list->n)
        return blame_task(list, difference->node, "reads other values than", other);
    if (difference->partial != NONE)
        return blame_task(list, difference->partial, "and its other slices do not cover what it did", other);
    if (difference->node != NONE)
        return new_problem(EXIT_FAILED, "a tensor that persists ends with another value than %s", other);
    return NULL;
}

struct problem *compare_values(const struct values *expected, const struct list *list)
{
    struct values *values = hash_list(list, expected->known_by);
    struct list_difference difference = compare_lists(expected, values);
    free_values(values);
    return describe_difference(&difference, list, expected->known_by);
}
