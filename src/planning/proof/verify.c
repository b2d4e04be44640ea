/* verify.c - proves of a placed list, on its own, that it computes what the order of its tasks says, provided that
 * tasks touch what they declare (see audit.c).
 *
 *     values   Every read, in list order, finds bytes that were last written through the same tensor, and in this
 *              iteration unless the tensor persists.  This finds a lifetime that was cut short: another tensor has
 *              overwritten the bytes.
 *     order    A read starts after the last write of its bytes has ended; a write starts after that write and all
 *              reads since have ended.  So any two accesses of which one writes are ordered.  Lanes and waits order
 *              tasks, in the way that execute() waits, and nothing else does.  This finds an edge that was dropped.
 *              What a list says without a tensor, by gates and `after=`, is an order too.
 *
 * This file uses the edges that depend() has made, and nothing else of it.  A *node* is a task in one of two
 * iterations: iteration * n + task.
 */
#include "cells.h"
#include "proof.h"
#include "proof_parts.h"

struct pair { /* two nodes: the second must start after the end of the first */
    int first, second;
};
struct cell_touch { /* a node reads or writes the bytes of a cell */
    int node;
    int before; /* index of the touch before this one, or NONE; two parts of a cell that is cut share these touches */
    const struct tensor *storage; /* the tensor through which it touches them */
};
enum proven {
    ORDER_OF_ALL,  /* the order of all tasks, whichever of them are skipped */
    ONE_ITERATION, /* values and order of the tasks that run in one iteration */
};
struct proof {
    const struct list *list;
    enum proven proven;
    uint32_t iteration;   /* ONE_ITERATION: its number, from 1 */
    struct strip *strips; /* by device; a strip has the device's slabs one after another */
    struct cell_touch *touches;
    size_t n_touches, cap_touches;
    struct pair *pairs; /* what must be ordered; verify_order() proves it */
    size_t n_pairs, cap_pairs;
    struct problem *problem; /* the first violation; NULL: none so far */
};

static struct task *task_of_node(const struct list *list, int node) { return list->tasks[node % (int)list->n]; }

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* The node reads a cell whose last write was `writer`; NULL: there was none.  Returns NULL where that is right. */
static struct problem *cell_problem(const struct list *list, int node, const struct access *access,
                                    const struct cell_touch *writer)
{
    int n = (int)list->n;
    const struct tensor *storage = access->tensor->storage;
    const char *reader = task_of_node(list, node)->name;
    /* A side word holds for its own iteration.  Only the task that writes it anew may read it afterwards. */
    bool kept =
        storage->persistent && (!access->tensor->extra.is_side_word || writes_side_word(task_of_node(list, node)));
    if (storage->extra.slots && writer) /* another iteration wrote into another slot, not into this one */
        kept = false;
    if (writer && writer->storage != storage)
        return new_problem(EXIT_FAILED,
                           "task %d %s reads tensor %s, but its bytes were overwritten as tensor %s by task %d %s",
                           node % n, reader, access->tensor->name, writer->storage->name, writer->node % n,
                           task_of_node(list, writer->node)->name);
    if (!kept && (!writer || writer->node / n != node / n))
        return new_problem(EXIT_FAILED, "task %d %s reads tensor %s before anything is written to it", node % n, reader,
                           access->tensor->name);
    return NULL;
}

/* A sentence: nothing orders these two nodes.  It names the rule by which they had to be ordered. */
static struct problem *describe_conflict(const struct list *list, int first, int second)
{
    int i = first % (int)list->n;
    int k = second % (int)list->n;
    const struct task *earlier = task_of_node(list, first);
    const struct task *later = task_of_node(list, second);
    bool together = first - i == second - k; /* in one iteration */
    if (first == second)
        return new_problem(EXIT_FAILED, "task %d %s has two tensors on the same bytes", i, earlier->name);
    if (later->extra.gate == GATE_WAITS && earlier->extra.gate == GATE_OPENS && together)
        return new_problem(EXIT_FAILED, "task %d %s, an update, may start before task %d %s has ended", k, later->name,
                           i, earlier->name);
    if (is_after(list, later, earlier, together ? SAME_STEP : STEP_BEFORE))
        return new_problem(EXIT_FAILED,
                           "task %d %s may start before task %d %s%s has ended, which after= tells it to wait for", k,
                           later->name, i, earlier->name, together ? "" : " of the step before");
    return new_problem(EXIT_FAILED, "task %d %s and task %d %s%s touch the same bytes and nothing orders them", i,
                       earlier->name, k, later->name, together ? "" : " of the next step");
}

static void add_pair(struct proof *proof, int first, int second)
{
    GROW(proof->pairs, proof->cap_pairs, proof->n_pairs + 1);
    proof->pairs[proof->n_pairs++] = (struct pair){first, second};
}

/* The node must come after this touch and after those before it.  A task may read and write the same tensor, but no two
 * tensors on the same bytes. */
static void need_order(struct proof *proof, int touch, int node, const struct tensor *storage)
{
    int n = (int)proof->list->n;
    for (; touch != NONE; touch = proof->touches[touch].before) {
        const struct cell_touch *earlier = &proof->touches[touch];
        if (storage->extra.slots && earlier->node / n != node / n)
            continue; /* another iteration uses another slot: see verify_slots() */
        if (earlier->node == node && earlier->storage != storage && !proof->problem)
            proof->problem = describe_conflict(proof->list, node, node);
        if (earlier->node != node)
            add_pair(proof, earlier->node, node);
    }
}

/* Adds the touch that has the index `before` as the one before it; returns the index of the new touch. */
static int add_touch(struct proof *proof, int node, int before, const struct tensor *storage)
{
    GROW(proof->touches, proof->cap_touches, proof->n_touches + 1);
    proof->touches[proof->n_touches++] = (struct cell_touch){.node = node, .before = before, .storage = storage};
    return (int)proof->n_touches - 1;
}

/* The node reads a cell: it must come after the cell's last write, but not after other reads. */
static void note_read(struct proof *proof, int node, const struct access *access, struct byte_cell *cell)
{
    const struct tensor *storage = access->tensor->storage;
    const struct cell_touch *writer = cell->latest.writer == NONE ? NULL : &proof->touches[cell->latest.writer];
    if (proof->proven == ONE_ITERATION && !proof->problem)
        proof->problem = cell_problem(proof->list, node, access, writer);
    need_order(proof, cell->latest.writer, node, storage);
    cell->latest.reader = add_touch(proof, node, cell->latest.reader, storage);
}

/* A write hides the touches before it: later nodes need to come after the write alone.  But a write that may be skipped
 * hides nothing. */
static void note_write(struct proof *proof, int node, const struct access *access, struct byte_cell *cell)
{
    const struct tensor *storage = access->tensor->storage;
    const struct task *task = task_of_node(proof->list, node);
    bool hides = proof->proven == ONE_ITERATION || !is_conditional(task);
    need_order(proof, cell->latest.writer, node, storage);
    need_order(proof, cell->latest.reader, node, storage);
    cell->latest.writer = add_touch(proof, node, hides ? NONE : cell->latest.writer, storage);
    if (hides)
        cell->latest.reader = NONE;
}

/* The node reads or writes (mode) all cells of the access. */
static void touch_cells(struct proof *proof, int node, const struct access *access, enum access_mode mode)
{
    size_t n, first = strip_begin(access->tensor);
    struct byte_cell *cell =
        cells_of(&proof->strips[access->tensor->device->index], first, first + access->tensor->bytes, &n);
    for (size_t k = 0; k < n; k++)
        if (mode == ACCESS_WRITE)
            note_write(proof, node, access, &cell[k]);
        else
            note_read(proof, node, access, &cell[k]);
}

/* Goes through two iterations, one after the other.  A task reads before it writes. */
static void walk_bytes(struct proof *proof)
{
    int n = (int)proof->list->n;
    for (int node = 0; node < 2 * n && !proof->problem; node++) {
        const struct task *task = task_of_node(proof->list, node);
        if (proof->proven == ONE_ITERATION && !is_due(task, proof->iteration))
            continue;
        for (int i = 0; i < task->n_accesses; i++)
            if (task->accesses[i].mode & ACCESS_READ)
                touch_cells(proof, node, &task->accesses[i], ACCESS_READ);
        for (int i = 0; i < task->n_accesses; i++)
            if (task->accesses[i].mode & ACCESS_WRITE)
                touch_cells(proof, node, &task->accesses[i], ACCESS_WRITE);
    }
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

/* For each node there is an array of what has ended by its start.  Lanes are proved some at a time, so that these
 * arrays take 2 n * LANES_AT_A_TIME numbers, however many lanes there are. */
enum { LANES_AT_A_TIME = 32 };
struct ends {                    /* what has ended at some moment, on lanes from a first one on */
    int latest[LANES_AT_A_TIME]; /* by lane: its latest node that has ended; NONE: none has */
};

/* Adds what had ended when another node started: a node that waits for that one starts later. */
static void join_ends(struct ends *mine, const struct ends *other)
{
    for (int i = 0; i < LANES_AT_A_TIME; i++)
        mine->latest[i] = MAX(mine->latest[i], other->latest[i]);
}

/* Adds the other node's own end. */
static void add_end(const struct list *list, struct ends *mine, int node, int first_lane)
{
    int lane = task_of_node(list, node)->lane->index - first_lane;
    if (lane >= 0 && lane < LANES_AT_A_TIME)
        mine->latest[lane] = MAX(mine->latest[lane], node);
}

/* The node that an edge of this node comes from; negative: it is in an iteration before both. */
static int producer_node(const struct list *list, int node, const struct edge *edge)
{
    int n = (int)list->n;
    int iteration = node / n;
    if (edge->previous)
        iteration--;
    return iteration * n + (int)edge->producer;
}

/* Adds the nodes that this node waits for, and all that had ended when these started.  A wait for a node that may be
 * skipped proves nothing. */
static void add_waits(const struct list *list, int node, int first_lane, struct ends *ends)
{
    const struct task *task = task_of_node(list, node);
    for (const struct edge *edge = task->edges; edge < task->edges + task->n_edges; edge++) {
        int producer = producer_node(list, node, edge);
        if (!edge->needs_wait || producer < 0 || is_conditional(list->tasks[edge->producer]))
            continue;
        join_ends(&ends[node], &ends[producer]);
        add_end(list, &ends[node], producer, first_lane);
    }
}

/* Finds for each node what has ended when it starts.  Nodes of one lane end in order, also those that may be
 * skipped. */
static void fill_ended_nodes(const struct list *list, int first_lane, struct ends *ends)
{
    int n = (int)list->n;
    int n_lanes = list->pool->machine->n_lanes;
    int *last = allocate_each(n_lanes, sizeof *last);       /* by lane: its latest node so far */
    int *certain = allocate_each(n_lanes, sizeof *certain); /* by lane: its latest one that cannot be skipped */
    fill_none(last, (size_t)n_lanes);
    fill_none(certain, (size_t)n_lanes);
    for (size_t i = 0; i < 2 * list->n; i++)
        fill_none(ends[i].latest, LANES_AT_A_TIME);
    for (int node = 0; node < 2 * n; node++) {
        const struct task *task = task_of_node(list, node);
        int lane = task->lane->index;
        if (certain[lane] != NONE)
            join_ends(&ends[node], &ends[certain[lane]]);
        if (last[lane] != NONE)
            add_end(list, &ends[node], last[lane], first_lane);
        add_waits(list, node, first_lane, ends);
        last[lane] = node;
        if (!is_conditional(task))
            certain[lane] = node;
    }
    free(last);
    free(certain);
}

/* Does the second node itself wait for the first one, which may be skipped? */
static bool waits_for(const struct list *list, struct pair pair)
{
    const struct task *task = task_of_node(list, pair.second);
    for (const struct edge *edge = task->edges; edge < task->edges + task->n_edges; edge++)
        if (edge->needs_wait && producer_node(list, pair.second, edge) == pair.first)
            return true;
    return false;
}

/* Proves of each pair that the first node has ended when the second one starts.  A lane ends its nodes in order.  So it
 * is enough that, when the second one starts, the lane of the first one has ended that node or a later one. */
static void verify_order(struct proof *proof)
{
    const struct list *list = proof->list;
    struct ends *ends = allocate(2 * list->n, sizeof *ends);
    for (int first_lane = 0; first_lane < list->pool->machine->n_lanes && !proof->problem;
         first_lane += LANES_AT_A_TIME) {
        fill_ended_nodes(list, first_lane, ends);
        for (size_t i = 0; i < proof->n_pairs && !proof->problem; i++) {
            struct pair pair = proof->pairs[i];
            int lane = task_of_node(list, pair.first)->lane->index - first_lane;
            if (lane < 0 || lane >= LANES_AT_A_TIME)
                continue;
            if (ends[pair.second].latest[lane] < pair.first && !waits_for(list, pair))
                proof->problem = describe_conflict(list, pair.first, pair.second);
        }
    }
    free(ends);
}

/* Tasks that wait at the gate come after all tasks of their iteration that open it, whatever bytes they touch.  This is
 * so in each iteration or in none, so only the second one is looked at. */
static void need_gates(struct proof *proof)
{
    const struct list *list = proof->list;
    int n = (int)list->n;
    for (int i = 0; i < n; i++) {
        if (list->tasks[i]->extra.gate != GATE_OPENS)
            continue;
        for (int k = 0; k < n; k++)
            if (list->tasks[k]->extra.gate == GATE_WAITS)
                add_pair(proof, n + i, n + k);
    }
}

/* Where the list says that a task waits for another (after.c), it comes after the other. */
static void need_after(struct proof *proof)
{
    size_t n_waits;
    int n = (int)proof->list->n;
    struct listed_wait *waits = collect_listed_waits(proof->list, &n_waits);
    for (const struct listed_wait *wait = waits; wait < waits + n_waits; wait++) {
        int first = wait->previous ? wait->producer : n + wait->producer;
        add_pair(proof, first, n + wait->consumer);
    }
    free(waits);
}

static struct problem *prove(struct proof proof)
{
    size_t n = (size_t)proof.list->pool->machine->n_devices + 1;
    proof.strips = new_strips(n, (struct byte_cell){.latest = {.writer = NONE, .reader = NONE}});
    need_gates(&proof);
    need_after(&proof);
    walk_bytes(&proof);
    if (!proof.problem)
        verify_order(&proof);
    free_strips(proof.strips, n);
    free(proof.touches);
    free(proof.pairs);
    return proof.problem;
}

static struct problem *prove_order_of_all(const struct list *list)
{
    return prove((struct proof){.list = list, .proven = ORDER_OF_ALL});
}

static struct problem *prove_iteration(const struct list *list, uint32_t iteration)
{
    return prove((struct proof){.list = list, .proven = ONE_ITERATION, .iteration = iteration});
}

enum { MOST_ITERATIONS = 10000 }; /* as many are looked at where conditional tasks take longer to come round */

static bool has_conditional(const struct list *list)
{
    for (size_t i = 0; i < list->n; i++)
        if (is_conditional(list->tasks[i]))
            return true;
    return false;
}

/* A number for the set of tasks that run in this iteration. */
static uint64_t hash_running(const struct list *list, uint32_t iteration)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < list->n; i++) {
        const struct task *task = list->tasks[i];
        if (task->extra.when.every > 1 && is_due(task, iteration))
            hash = hash_pair(hash, i);
    }
    return hash;
}

static bool has_item(const uint64_t *items, size_t n, uint64_t item)
{
    for (size_t i = 0; i < n; i++)
        if (items[i] == item)
            return true;
    return false;
}

/* Proves the order among all tasks, whichever of them are skipped.  Then it proves one iteration for each set of tasks
 * that run together, since a task may read only what tasks of the same iteration wrote. */
static struct problem *verify_accesses(const struct list *list)
{
    uint32_t last = repeat_of(list, MOST_ITERATIONS);
    uint64_t *seen = allocate(last, sizeof *seen); /* the sets that were proved */
    size_t n = 0;
    struct problem *problem = NULL;
    if (has_conditional(list))
        problem = prove_order_of_all(list);
    for (uint32_t iteration = 1; iteration <= last && !problem; iteration++) {
        uint64_t set = hash_running(list, iteration);
        if (has_item(seen, n, set))
            continue;
        seen[n++] = set;
        problem = prove_iteration(list, iteration);
    }
    free(seen);
    return problem;
}

/* `after=` binds a task to those of the named tasks that stand before it in the list.  A task that a pass has moved to
 * before all of them waits for none, and no pair of nodes says so: that is looked for here. */
static struct problem *verify_after(const struct list *list)
{
    struct problem *problem = NULL;
    /* By origin: the position of its first task. */
    int *earliest = allocate(list->extra.last_origin + 1, sizeof *earliest);
    fill_none(earliest, list->extra.last_origin + 1);
    for (size_t i = list->n; i-- > 0;)
        earliest[list->tasks[i]->extra.origin] = (int)i;
    for (size_t i = 0; i < list->extra.n_origin_waits && !problem; i++) {
        const struct origin_wait *said = &list->extra.origin_waits[i];
        int waits = earliest[said->consumer];
        int first = earliest[said->producer];
        if (waits != NONE && !said->previous && (first == NONE || first > waits))
            problem = new_problem(EXIT_FAILED, "task %d %s comes before all that after= tells it to wait for", waits,
                                  list->tasks[waits]->name);
    }
    free(earliest);
    return problem;
}

struct problem *verify_list(const struct list *list, const struct values *expected)
{
    /* This comes first, since its message names the tensor that is read. */
    struct problem *problem = verify_accesses(list);
    if (!problem)
        problem = verify_after(list);
    if (!problem)
        problem = verify_slots(list);
    if (!problem && expected)
        problem = compare_values(expected, list);
    if (!problem)
        problem = verify_memory(list);
    return problem;
}
