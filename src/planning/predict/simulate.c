/* simulate.c - runs a list on a virtual clock, iteration after iteration: when does each task start and end?
 *
 * The rules are those of execute():
 *
 *     lane     runs its tasks in list order, one at a time.  After the last task comes the first of the next iteration
 *     start    a task starts when the task before it on its lane, and all tasks that it waits for, have ended, and not
 *              before the host has issued it
 *     host     opens an iteration when the compute lanes are done with the one two before it, and no task has
 *              MOST_IN_FLIGHT instances in flight
 *     skip     a task that skips an iteration is not there: what waits for it waits for the last time that it ran
 *     copy     waits for the latency of its links, and is then on them.  Each of the k copies on a link gets 1/k of its
 *              rate, but no more than one queue reaches.  A copy on two links has the smaller of the two shares
 *     slot     tasks that need one (struct slot_use in when.h) leave the iteration if none is free (simulate_slots.c)
 *
 * Two copies on a link whose whole rate one queue reaches: a takes 4 seconds alone, and b takes 1.
 *
 *     seconds    0    1    2    3    4    5
 *     copy a     |=========|---------|====|            = at full speed   - at half speed
 *     copy b               |---------|
 *
 * The clock goes from event to event.  A lane runs one task at a time, so it has one next event:
 *
 *     its task begins                  begin_node()    the host has issued it, and the lane's gap is over
 *     its copy is on the links         join_links()    the latency is over; other copies on these links become slower
 *     its task ends                    finish()        other copies become faster; waits end, and an iteration may open
 *
 * The earliest of these events is found by a tournament between the lanes: a binary tree, in which each inner place has
 * the lane with the earlier event of the two below it (set_next()).  Lanes on which an event may let a task start are
 * queued, and tried after the event (try_lanes()).  Iterations are run until their times repeat (simulate_pattern.c).
 *
 * Nodes number the tasks of all iterations: task i of iteration k is node k * n + i.
 */
#include "simulator.h"
#include "trainer/run/run.h"

#include <math.h>

/* ---- the lanes' events ------------------------------------------------------------------------------------------- */

/* The lane with the earlier event; at the same time the one with the smaller number. */
static int earlier_lane(const struct simulator *simulator, int first, int second)
{
    double next_of_first = simulator->lanes[first].next_event;
    double next_of_second = simulator->lanes[second].next_event;
    if (next_of_first == next_of_second)
        return MIN(first, second);
    return next_of_second < next_of_first ? second : first;
}

/* The lane's next event is at this time: finds anew who wins the games that the lane plays, from its leaf upwards. */
static void set_next(struct simulator *simulator, struct lane_state *lane, double next)
{
    lane->next_event = next;
    int leaf = simulator->n_lanes + (int)(lane - simulator->lanes);
    for (int i = leaf / 2; i > 0; i /= 2) {
        int before = simulator->winner[i];
        simulator->winner[i] = earlier_lane(simulator, simulator->winner[2 * i], simulator->winner[2 * i + 1]);
        if (simulator->winner[i] == before && before != leaf - simulator->n_lanes)
            return; /* the lane has lost here, as it had before */
    }
}

/* The share of its full speed at which the lane's copy goes. */
static double copy_speed(const struct simulator *simulator, const struct lane_state *lane)
{
    size_t copies[2] = {0}; /* on each of its links, itself too */
    for (int i = 0; i < 2; i++)
        if (lane->links[i])
            copies[i] = simulator->on_link[lane->links[i]->index].n;
    return link_rate(lane->links, copies) / lane->full_rate;
}

/* Notes for each copy on the link, if there is one, how long what is left of it would take at full speed. */
static void note_left(const struct simulator *simulator, const struct link *link)
{
    if (!link)
        return;
    const struct link_copies *sharing = &simulator->on_link[link->index];
    for (size_t i = 0; i < sharing->n; i++) {
        struct lane_state *lane = sharing->lanes[i];
        lane->seconds_left = (lane->next_event - simulator->now) * copy_speed(simulator, lane);
    }
}

static void add_to_link(struct simulator *simulator, const struct link *link, struct lane_state *lane)
{
    if (!link)
        return;
    struct link_copies *sharing = &simulator->on_link[link->index];
    GROW(sharing->lanes, sharing->cap, sharing->n + 1);
    sharing->lanes[sharing->n++] = lane;
}

static void drop_from_link(struct simulator *simulator, const struct link *link, const struct lane_state *lane)
{
    if (!link)
        return;
    struct link_copies *sharing = &simulator->on_link[link->index];
    size_t at = 0;
    while (sharing->lanes[at] != lane)
        at++;
    sharing->n--;
    sharing->lanes[at] = sharing->lanes[sharing->n];
}

/* Sets when each copy on the link ends, at the speed that it has now. */
static void set_ends(struct simulator *simulator, const struct link *link)
{
    if (!link)
        return;
    const struct link_copies *sharing = &simulator->on_link[link->index];
    for (size_t i = 0; i < sharing->n; i++) {
        struct lane_state *lane = sharing->lanes[i];
        set_next(simulator, lane, simulator->now + lane->seconds_left / copy_speed(simulator, lane));
    }
}

enum load_change { COPY_JOINS, COPY_LEAVES };

/* The lane's copy joins or leaves its links, which changes the speed of the other copies there.  Another copy that
 * is on both links is looked at twice, with the same result. */
static void change_load(struct simulator *simulator, struct lane_state *lane, enum load_change change)
{
    for (int i = 0; i < 2; i++)
        note_left(simulator, lane->links[i]);
    for (int i = 0; i < 2; i++) {
        if (change == COPY_JOINS)
            add_to_link(simulator, lane->links[i], lane);
        else
            drop_from_link(simulator, lane->links[i], lane);
    }
    for (int i = 0; i < 2; i++)
        set_ends(simulator, lane->links[i]);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* The turn on the lane goes to its next task, and after the last one to its first of the next iteration. */
static void pass_turn(const struct simulator *simulator, struct lane_state *lane)
{
    lane->next_task = simulator->tasks[lane->next_task].next_on_lane;
    if (lane->next_task == NONE) {
        lane->next_task = lane->first_task;
        lane->iteration++;
    }
}

static void join_links(struct simulator *simulator, struct lane_state *lane)
{
    lane->on_links = true;
    change_load(simulator, lane, COPY_JOINS);
}

/* The lane's node begins to compute, or to wait for the latency of its links. */
static void begin_node(struct simulator *simulator, struct lane_state *lane)
{
    bool copies = isfinite(lane->full_rate);
    lane->begun = true;
    set_next(simulator, lane, simulator->now + (copies ? lane->latency : lane->seconds_left));
    if (copies && lane->next_event <= simulator->now)
        join_links(simulator, lane);
}

/* May the node start when it has its turn? */
static bool may_start(const struct simulator *simulator, int node)
{
    return simulator->unmet[node] == 0 && !waits_for_slot(simulator, node);
}

/* The lane runs the node from `start` on, which is now or later. */
static void start_task(struct simulator *simulator, struct lane_state *lane, int node, double start)
{
    double seconds = simulator->result->seconds[node % simulator->n];
    lane->node = node;
    lane->on_links = false;
    lane->begun = false;
    lane->links[0] = NULL;
    lane->links[1] = NULL;
    if (seconds > 0)
        links_of(task_of(simulator, node), lane->links);
    lane->full_rate = link_rate(lane->links, NULL);
    lane->latency = isfinite(lane->full_rate) ? fmin(link_latency(lane->links), seconds) : 0;
    lane->seconds_left = seconds - lane->latency;
    simulator->result->moments[node] = (struct moment){.start = start};
    if (start > simulator->now)
        set_next(simulator, lane, start);
    else
        begin_node(simulator, lane);
}

/* ---- what an end does -------------------------------------------------------------------------------------------- */

/* A task may start on the lane now. */
static void queue_lane(struct simulator *simulator, struct lane_state *lane)
{
    GROW(simulator->to_try, simulator->cap_to_try, simulator->n_to_try + 1);
    simulator->to_try[simulator->n_to_try++] = lane;
}

/* The last iteration up to this one in which task i runs, or NONE. */
static int latest_iteration(const struct simulator *simulator, int i, int iteration)
{
    while (iteration >= 0 && skipped(simulator, node_of(simulator, iteration, i)))
        iteration--;
    return iteration;
}

/* A task that the node waits for has ended. */
static void end_wait(struct simulator *simulator, int node)
{
    if (skipped(simulator, node))
        return;
    simulator->unmet[node]--;
    if (simulator->unmet[node] == 0)
        queue_lane(simulator, lane_of_node(simulator, node));
}

/* Task i of the iteration has ended, or has left it.  This ends all waits for this instance: those of tasks in this
 * iteration, and in later ones as long as task i is skipped there. */
static void release(struct simulator *simulator, int i, int iteration)
{
    for (int k = simulator->tasks[i].first_wait; k != NONE; k = simulator->waits[k].next_wait) {
        int ahead = simulator->waits[k].next_step ? 1 : 0;
        for (int later = iteration; later + ahead < simulator->opened; later++) {
            if (later > iteration && !skipped(simulator, node_of(simulator, later, i)))
                break; /* from here on the waits are for that instance */
            end_wait(simulator, node_of(simulator, later + ahead, simulator->waits[k].consumer));
        }
    }
}

/* An instance of task i comes into flight (change 1) or ends (-1).  A task that stands aside is outside of its lane
 * until its iteration has asked for a slot, so its instances do not count. */
static void count_instance(struct simulator *simulator, int i, int change)
{
    struct task_state *state = &simulator->tasks[i];
    if (task_of(simulator, i)->extra.slot.aside)
        return;
    bool was_full = state->in_flight == MOST_IN_FLIGHT;
    state->in_flight += change;
    bool is_full = state->in_flight == MOST_IN_FLIGHT;
    if (is_full && !was_full)
        simulator->tasks_at_limit++;
    if (was_full && !is_full)
        simulator->tasks_at_limit--;
}

/* Task i of the iteration has ended there, or skips it after all. */
static void count_end(struct simulator *simulator, int i, int iteration)
{
    struct iteration *state = &simulator->iterations[iteration];
    count_instance(simulator, i, -1);
    state->tasks_left--;
    if (task_of(simulator, i)->lane->kind == LANE_COMPUTE)
        state->compute_tasks_left--;
}

/* ---- slots ------------------------------------------------------------------------------------------------------- */

/* All tasks that need a slot leave the iteration, which has got none. */
static void leave_iteration(struct simulator *simulator, int iteration)
{
    for (int i = 0; i < simulator->n; i++) {
        if (!task_of(simulator, i)->extra.slot.needed)
            continue;
        simulator->result->moments[node_of(simulator, iteration, i)].skipped = true;
        count_end(simulator, i, iteration);
    }
}

/* The iteration asks for a slot, and the tasks that need one go on or leave. */
static void ask_for_slot(struct simulator *simulator, int iteration)
{
    if (!give_slot(simulator, iteration))
        return;
    bool has_slot = simulator->iterations[iteration].has_slot;
    if (!has_slot)
        leave_iteration(simulator, iteration); /* all of them leave before a task that waits for them can start */
    for (int i = 0; i < simulator->n; i++) {
        if (!task_of(simulator, i)->extra.slot.needed)
            continue;
        /* If the task's last instance has not ended, release() is called when it does. */
        bool last_has_ended = latest_iteration(simulator, i, iteration - 1) <= simulator->tasks[i].last_ended;
        if (!has_slot && last_has_ended)
            release(simulator, i, iteration);
        queue_lane(simulator, lane_of_node(simulator, i)); /* task i is the node of its iteration 0 */
    }
}

/* ---- starting a task --------------------------------------------------------------------------------------------- */

/* Starts the lane's next task that is not skipped, of the open iterations, if all that it waits for has ended. */
static void try_start(struct simulator *simulator, struct lane_state *lane)
{
    if (lane->node != NONE || lane->first_task == NONE)
        return;
    while (lane->iteration < simulator->opened &&
           skipped(simulator, node_of(simulator, lane->iteration, lane->next_task)))
        pass_turn(simulator, lane);
    if (lane->iteration == simulator->opened)
        return;
    int node = node_of(simulator, lane->iteration, lane->next_task);
    if (asks_in_turn(simulator, node)) {
        ask_for_slot(simulator, lane->iteration); /* this puts the lane into the queue again */
        return;
    }
    if (!may_start(simulator, node))
        return;
    double start = simulator->now + task_of(simulator, node)->lane->gap_seconds;
    if (simulator->issue_seconds > 0) /* the host issues in list order */
        start = fmax(start, simulator->iterations[lane->iteration].issue_begin +
                                (lane->next_task + 1) * simulator->issue_seconds);
    pass_turn(simulator, lane);
    start_task(simulator, lane, node, start);
}

/* Tries all lanes of the queue.  A try may put further lanes into it. */
static void try_lanes(struct simulator *simulator)
{
    for (size_t i = 0; i < simulator->n_to_try; i++)
        try_start(simulator, simulator->to_try[i]);
    simulator->n_to_try = 0;
}

/* ---- opening an iteration ---------------------------------------------------------------------------------------- */

/* How many ends a task of that iteration has to wait for. */
static int count_unmet(const struct simulator *simulator, const struct task *task, int iteration)
{
    int unmet = 0;
    for (const struct edge *edge = task->edges; edge < task->edges + task->n_edges; edge++) {
        int producer = (int)edge->producer;
        if (!edge->needs_wait)
            continue;
        int awaited = latest_iteration(simulator, producer, iteration - edge->previous); /* NONE: there was none */
        if (awaited > simulator->tasks[producer].last_ended)
            unmet++;
    }
    return unmet;
}

/* The host opens the next iteration. */
static void open_iteration(struct simulator *simulator)
{
    int iteration = simulator->opened++;
    struct simulation *result = simulator->result;
    struct iteration *state = &simulator->iterations[iteration];
    size_t n_moments = (size_t)simulator->opened * (size_t)simulator->n;
    GROW(result->moments, simulator->cap_moments, n_moments);
    GROW(simulator->unmet, simulator->cap_unmet, n_moments);
    if (iteration > 0)
        state->issue_begin = fmax(simulator->now, simulator->iterations[iteration - 1].issue_begin +
                                                      simulator->n * simulator->issue_seconds);
    for (int i = 0; i < simulator->n; i++) {
        const struct task *task = result->list->tasks[i];
        int node = node_of(simulator, iteration, i);
        result->moments[node] = (struct moment){.skipped = !is_due(task, (uint32_t)iteration + 1)};
        simulator->unmet[node] = 0;
        if (skipped(simulator, node))
            continue;
        simulator->unmet[node] = count_unmet(simulator, task, iteration);
        state->tasks_left++;
        if (task->lane->kind == LANE_COMPUTE)
            state->compute_tasks_left++;
        count_instance(simulator, i, 1);
    }
    if (asks_at_once(simulator, iteration))
        ask_for_slot(simulator, iteration);
}

/* ---- the clock --------------------------------------------------------------------------------------------------- */

/* May the host open another iteration? */
static bool may_open(const struct simulator *simulator)
{
    if (simulator->opened == simulator->limit || simulator->tasks_at_limit > 0)
        return false;
    return simulator->opened < ISSUED_AHEAD ||
           simulator->iterations[simulator->opened - ISSUED_AHEAD].compute_tasks_left == 0;
}

/* Notes which iterations have ended, and opens others as long as the host may.  Then any lane may have a task that can
 * start. */
static void update_iterations(struct simulator *simulator)
{
    int before = simulator->opened;
    while (!simulator->stop) {
        if (simulator->done < simulator->opened && simulator->iterations[simulator->done].tasks_left == 0) {
            simulator->iterations[simulator->done].end = simulator->now;
            if (simulator->done > 0)
                look_for_pattern(simulator, simulator->done);
            simulator->done++;
        } else if (may_open(simulator)) {
            open_iteration(simulator);
        } else {
            break;
        }
    }
    if (simulator->opened == before)
        return;
    for (int i = 0; i < simulator->n_lanes; i++)
        queue_lane(simulator, &simulator->lanes[i]);
}

/* The lane's node ends now.  What waited for this end may start, and the lane goes on. */
static void finish(struct simulator *simulator, struct lane_state *lane)
{
    int i = lane->node % simulator->n;
    int iteration = lane->node / simulator->n;
    simulator->result->moments[lane->node].end = simulator->now;
    if (lane->on_links)
        change_load(simulator, lane, COPY_LEAVES);
    lane->node = NONE;
    set_next(simulator, lane, INFINITY);
    simulator->tasks[i].last_ended = iteration;
    if (asks_at_end(simulator, i, iteration))
        ask_for_slot(simulator, iteration);
    return_at_end(simulator, i, iteration);
    release(simulator, i, iteration);
    count_end(simulator, i, iteration);
    /* Lanes are tried before iterations are looked at: a task that is tried and asks for a slot may find none.  Then
     * the other tasks of its iteration are skipped, and the iteration has ended. */
    try_lanes(simulator);
    update_iterations(simulator);
    queue_lane(simulator, lane);
}

/* Moments that differ by a smaller share are the same: the sums that they are have other terms, and differ by rounding.
 * SAME_TIME is for times that have gone through more sums. */
static const double SAME_MOMENT = 1e-12;

/* The lane with the earliest event.  If the disk's lane, whose task may return a slot, has an event at the same time,
 * the disk's lane comes first. */
static struct lane_state *earliest(const struct simulator *simulator)
{
    const struct device *host = simulator->result->list->pool->machine->host;
    struct lane_state *best = &simulator->lanes[simulator->winner[1]];
    struct lane_state *disk = &simulator->lanes[host->lanes[LANE_DISK]->index];
    if (simulator->returning_task && disk->next_event <= best->next_event * (1 + SAME_MOMENT))
        return disk;
    return best;
}

/* Goes from event to event until a pattern is found.  An event is that a node begins, gets on its links, or ends. */
static void run_clock(struct simulator *simulator)
{
    update_iterations(simulator);
    try_lanes(simulator);
    for (struct lane_state *lane = earliest(simulator); lane->node != NONE && !simulator->stop;
         lane = earliest(simulator)) {
        /* earliest() may choose a disk that is a rounding error late. */
        simulator->now = fmax(simulator->now, lane->next_event);
        if (!lane->begun)
            begin_node(simulator, lane);
        else if (isfinite(lane->full_rate) && !lane->on_links)
            join_links(simulator, lane);
        else
            finish(simulator, lane);
        try_lanes(simulator);
    }
    CHECK(simulator->stop, "%d iterations ended: the list deadlocks", simulator->result->steps);
}

struct problem *simulate_list(const struct list *list, const struct costs *costs, struct simulation **simulation)
{
    struct simulation *result = allocate(1, sizeof *result);
    struct machine *machine = list->pool->machine;
    result->list = list;
    result->seconds = allocate(list->n, sizeof *result->seconds);
    result->steady = allocate(list->n, sizeof *result->steady);
    result->busy = allocate_each(machine->n_lanes, sizeof *result->busy);
    if (costs)
        set_speeds(machine, costs);
    struct problem *problem = compute_task_times(result, costs);
    if (problem) {
        free_simulation(result);
        return problem;
    }
    struct simulator simulator = make_simulator(result);
    run_clock(&simulator);
    sum_up_pattern(&simulator);
    free_simulator(&simulator);
    *simulation = result;
    return NULL;
}

struct simulation *must_simulate(const struct list *list, const struct costs *costs)
{
    struct simulation *simulation;
    must(simulate_list(list, costs, &simulation));
    return simulation;
}

void free_simulation(struct simulation *simulation)
{
    free(simulation->moments);
    free(simulation->seconds);
    free(simulation->steady);
    free(simulation->busy);
    free(simulation);
}
