/* simulate_setup.c - a simulator before its first event: the tasks' times, lists of each lane's tasks and of the waits
 * for each task, and how many iterations may pass until the times repeat.
 */
#include "simulator.h"

#include <math.h>

enum {
    STEPS_OF_SHORT_LIST = 64, /* this many iterations may pass in any list of moderate length */
    MOST_STEPS = 20000,
    STEPS_OF_ANY_LIST = 8, /* so many are simulated, however long the list is */
    MOST_NODES = 1 << 25   /* what they have together, as far as memory allows */
};
enum { STORED_STEPS = 1024, STORED_NODES = 1 << 21 }; /* with snapshots, whose pattern may be long, or there is none */

static void clear_lanes(struct simulator *simulator)
{
    for (int i = 0; i < simulator->n_lanes; i++) {
        simulator->lanes[i] = (struct lane_state){.first_task = NONE, .node = NONE, .next_event = INFINITY};
        simulator->winner[simulator->n_lanes + i] = i;
    }
    for (int i = simulator->n_lanes - 1; i > 0; i--)
        simulator->winner[i] = simulator->winner[2 * i];
}

/* True if the edge's producer runs in the same iteration, and must end before this task asks for a slot. */
static bool leads_to_slot(const struct list *list, const struct task *task, const struct edge *edge)
{
    return task->extra.slot.needed && !task->extra.condition.unexpected && !edge->previous &&
           !writes_side_word(list->tasks[edge->producer]);
}

/* Makes a list of each lane's tasks, in list order: from the last task on, each one is put in front of the others. */
static void list_lanes(struct simulator *simulator)
{
    clear_lanes(simulator);
    for (int i = simulator->n - 1; i >= 0; i--) {
        struct lane_state *lane = lane_of_node(simulator, i);
        simulator->tasks[i].last_ended = NONE;
        simulator->tasks[i].next_on_lane = lane->first_task;
        lane->first_task = i;
        lane->next_task = i;
    }
}

/* Makes a list of the waits for each task, in list order: from the last wait on, each one is put in front of the
 * others. */
static void list_waits(struct simulator *simulator)
{
    const struct list *list = simulator->result->list;
    int n_waits = 0;
    for (int i = 0; i < simulator->n; i++)
        simulator->tasks[i].first_wait = NONE;
    for (int i = simulator->n - 1; i >= 0; i--)
        for (size_t k = list->tasks[i]->n_edges; k-- > 0;) {
            const struct edge *edge = &list->tasks[i]->edges[k];
            if (!edge->needs_wait)
                continue;
            struct task_state *producer = &simulator->tasks[edge->producer];
            simulator->waits[n_waits] =
                (struct wait){.consumer = i, .next_step = edge->previous, .next_wait = producer->first_wait};
            producer->first_wait = n_waits;
            n_waits++;
        }
}

/* Finds the tasks that must end before another one asks for a slot, and the task that returns slots. */
static void find_slot_users(struct simulator *simulator)
{
    const struct list *list = simulator->result->list;
    for (int i = simulator->n - 1; i >= 0; i--) {
        const struct task *task = list->tasks[i];
        if (task->extra.slot.returns)
            simulator->returning_task = task;
        for (const struct edge *edge = task->edges; edge < task->edges + task->n_edges; edge++)
            if (leads_to_slot(list, task, edge))
                simulator->tasks[edge->producer].before_slot = true;
    }
}

struct problem *compute_task_times(struct simulation *result, const struct costs *costs)
{
    const struct list *list = result->list;
    double total = (double)list->n * list->pool->machine->issue_seconds;
    for (size_t i = 0; i < list->n; i++) {
        enum cost_source source;
        result->seconds[i] = task_seconds(costs, list->tasks[i], &source);
        result->by_source[source]++;
        total += list->tasks[i]->lane->gap_seconds + result->seconds[i];
    }
    if (total >= 1e-9 && total <= 1e6) /* from a nanosecond to eleven days: times fit their clocks */
        return NULL;
    return new_problem(EXIT_USAGE,
                       "the tasks of a step take %.3g s in all by %s; expected 1e-9 to 1e6 s: look for a wrong number "
                       "in it",
                       total, costs ? costs->label : "the step file");
}

/* The most iterations that are simulated: conditional tasks come round four times, if that takes neither too long nor
 * too much memory. */
static int choose_limit(const struct simulator *simulator)
{
    int limit = MIN(MAX(STEPS_OF_SHORT_LIST, 4 * simulator->repeat), MOST_STEPS);
    limit = MIN(limit, MAX(STEPS_OF_ANY_LIST, MOST_NODES / simulator->n));
    if (simulator->returning_task)
        limit = MAX(limit, MIN(STORED_STEPS, STORED_NODES / simulator->n));
    return limit;
}

struct simulator make_simulator(struct simulation *result)
{
    const struct list *list = result->list;
    const struct machine *machine = list->pool->machine;
    struct simulator simulator = {.result = result,
                                  .n = (int)list->n,
                                  .n_lanes = machine->n_lanes,
                                  .issue_seconds = machine->issue_seconds,
                                  .slots.n = list->pool->slots.n,
                                  .repeat = (int)repeat_of(list, 2 * MOST_STEPS)};
    simulator.tasks = allocate(list->n, sizeof *simulator.tasks);
    simulator.waits = allocate(list->n_edges, sizeof *simulator.waits);
    simulator.lanes = allocate_each(machine->n_lanes, sizeof *simulator.lanes);
    simulator.winner = allocate_each(2 * machine->n_lanes, sizeof *simulator.winner);
    simulator.on_link = allocate_each(machine->n_links, sizeof *simulator.on_link);
    list_lanes(&simulator);
    list_waits(&simulator);
    find_slot_users(&simulator);
    simulator.limit = choose_limit(&simulator);
    simulator.iterations = allocate_each(simulator.limit, sizeof *simulator.iterations);
    return simulator;
}

void free_simulator(struct simulator *simulator)
{
    free(simulator->tasks);
    free(simulator->waits);
    free(simulator->unmet);
    free(simulator->lanes);
    free(simulator->winner);
    for (int i = 0; i < simulator->result->list->pool->machine->n_links; i++)
        free(simulator->on_link[i].lanes);
    free(simulator->on_link);
    free(simulator->iterations);
    free(simulator->to_try);
}
