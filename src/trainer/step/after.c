/* after.c - which tasks wait for which because the list says so, though no tensor does: `after=` of step files, gates.
 *
 *     the list says          b after a            of origins, so that passes need not know of it
 *     the list has           a  b.0  c  b.1       b was cut into two slices
 *     collect_listed_waits() a -> b.0, a -> b.1
 *
 * Slices, repeats and stand-ins have the origin of their original.  So if the original waits, all of them wait, and if
 * another task waits for the original, it waits for all of them.  Within the step a task waits only for those before it
 * in the list; across the step's end it waits for all.
 *
 * A gate (enum gate) is kept with its tasks.  collect_waits_with_gates() puts the waits of both together, for
 * depend().
 */
#include "step_parts.h"

static bool comes_before(const void *item, const void *key)
{
    const struct origin_wait *a = item;
    const struct origin_wait *b = key;
    if (a->consumer != b->consumer)
        return a->consumer < b->consumer;
    return BY(a->previous, b->previous, COMPARE(a->producer, b->producer)) < 0;
}

/* Fills in the wait of the consumer for the producer.  Returns its index in list->extra.origin_waits, or, if it is not
 * there, the index at which it belongs. */
static size_t find_origin_wait(const struct list *list, const struct task *consumer, const struct task *producer,
                               enum step_waited which, struct origin_wait *wait)
{
    *wait = (struct origin_wait){
        .producer = producer->extra.origin, .consumer = consumer->extra.origin, .previous = which == STEP_BEFORE};
    return lower_bound(wait, list->extra.origin_waits, list->extra.n_origin_waits, sizeof *list->extra.origin_waits,
                       comes_before);
}

void add_after(struct list *list, const struct task *consumer, const struct task *producer, enum step_waited which)
{
    struct origin_wait new;
    size_t i = find_origin_wait(list, consumer, producer, which, &new);
    list->extra.origin_waits = insert_item(list->extra.origin_waits, &list->extra.n_origin_waits,
                                           &list->extra.cap_origin_waits, i, sizeof *list->extra.origin_waits);
    list->extra.origin_waits[i] = new;
}

bool is_after(const struct list *list, const struct task *consumer, const struct task *producer, enum step_waited which)
{
    struct origin_wait sought;
    size_t i = find_origin_wait(list, consumer, producer, which, &sought);
    return i < list->extra.n_origin_waits && !comes_before(&sought, &list->extra.origin_waits[i]);
}

/* The tasks of each origin, the last of the list first. */
struct origins {
    int *last;   /* by origin: the position of its last task, or NONE */
    int *before; /* by position: that of the task of the same origin before it, or NONE */
};

static struct origins make_origins(const struct list *list)
{
    struct origins origins = {.last = allocate(list->extra.last_origin + 1, sizeof *origins.last),
                              .before = allocate(list->n, sizeof *origins.before)};
    fill_none(origins.last, list->extra.last_origin + 1);
    for (size_t i = 0; i < list->n; i++) {
        int *last = &origins.last[list->tasks[i]->extra.origin];
        origins.before[i] = *last;
        *last = (int)i;
    }
    return origins;
}

static int by_consumer(const void *left, const void *right)
{
    const struct listed_wait *a = left;
    const struct listed_wait *b = right;
    if (a->consumer != b->consumer)
        return COMPARE(a->consumer, b->consumer);
    return BY(a->previous, b->previous, COMPARE(a->producer, b->producer));
}

struct listed_waits {
    struct listed_wait *items;
    size_t n, cap;
};

static void add_wait(struct listed_waits *all, struct listed_wait wait)
{
    GROW(all->items, all->cap, all->n + 1);
    all->items[all->n++] = wait;
}

/* Adds the waits of the consumer's tasks for those of the producer. */
static void add_waits_of_origin(struct listed_waits *all, const struct origins *origins, const struct origin_wait *wait)
{
    for (int k = origins->last[wait->consumer]; k != NONE; k = origins->before[k])
        for (int i = origins->last[wait->producer]; i != NONE; i = origins->before[i])
            if (i < k || wait->previous)
                add_wait(all, (struct listed_wait){.producer = i, .consumer = k, .previous = wait->previous});
}

static void add_listed_waits(struct listed_waits *all, const struct list *list)
{
    struct origins origins = make_origins(list);
    for (size_t i = 0; i < list->extra.n_origin_waits; i++)
        add_waits_of_origin(all, &origins, &list->extra.origin_waits[i]);
    free(origins.last);
    free(origins.before);
}

struct listed_wait *collect_listed_waits(const struct list *list, size_t *n)
{
    struct listed_waits all = {0};
    add_listed_waits(&all, list);
    SORT(all.items, all.n, by_consumer);
    *n = all.n;
    return all.items;
}

/* ---- gates ------------------------------------------------------------------------------------------------------- */

/* The tasks for which a task at the gate must wait: on each lane the last of those that open the gate and always run,
 * and those that open it after that one.  Returns how many. */
static size_t collect_openers(const struct list *list, int *openers)
{
    /* By lane: has the last task been found that opens the gate and always runs? */
    bool *passed = allocate_each(list->pool->machine->n_lanes, sizeof *passed);
    size_t n_openers = 0;
    for (size_t i = list->n; i-- > 0;) {
        const struct task *task = list->tasks[i];
        if (task->extra.gate != GATE_OPENS || passed[task->lane->index])
            continue;
        openers[n_openers++] = (int)i;
        passed[task->lane->index] = !is_conditional(task);
    }
    free(passed);
    return n_openers;
}

static void add_gate_waits(struct listed_waits *all, const struct list *list)
{
    int *openers = allocate(list->n, sizeof *openers);
    size_t n_openers = collect_openers(list, openers);
    for (size_t i = 0; i < list->n; i++)
        for (size_t k = 0; k < n_openers && list->tasks[i]->extra.gate == GATE_WAITS; k++)
            add_wait(all, (struct listed_wait){.producer = openers[k], .consumer = (int)i});
    free(openers);
}

struct listed_wait *collect_waits_with_gates(const struct list *list, size_t *n)
{
    struct listed_waits all = {0};
    add_listed_waits(&all, list);
    add_gate_waits(&all, list);
    SORT(all.items, all.n, by_consumer);
    *n = all.n;
    return all.items;
}
