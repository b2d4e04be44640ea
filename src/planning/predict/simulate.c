/* simulate.c - the cyclic list on a virtual clock.
 *
 * The rules are execute()'s own: a lane runs its tasks in list order; a task starts when the one before it on its lane
 * and all that it waits for have ended, and not before the host has issued it.  The host opens an iteration when the
 * compute lanes are done with the one two before it, and no task has MOST_RUNS runs in flight.  A task that skips an
 * iteration is not there: what waits for it waits for the last time that it ran.  A copy waits for the latency of its
 * links and is then on them: each of the k copies on a link gets 1/k of its rate, at most what one queue reaches; a
 * copy on two links goes at the smaller share.
 *
 * Iterations are run until their times repeat (pattern.c).
 *
 * Nodes number the tasks of all iterations: task i of iteration k is node k * n + i.  At most one node per lane runs,
 * so the next event is the earliest one over the lanes: the winner of a tournament between them.
 *
 * An event's effects come first.  Lanes on which it may let a task start are queued, and tried afterwards
 * (try_lanes()).
 *
 * Tasks that need a slot (struct slot_use in task.h) also wait until their iteration has asked for one, and leave it if
 * none is free: simulate_slots.c says when.
 */
#include "simulator.h"

#include <math.h>

/* ---- the lanes' events ----------------------------------------------------------------------------------------- */

/* The lane with the earlier event; at the same time the one with the smaller number. */
static int earlier_lane(const struct simulator *sim, int first, int second)
{
    double next_of_first = sim->lanes[first].next_event;
    double next_of_second = sim->lanes[second].next_event;
    if (next_of_first == next_of_second)
        return MIN(first, second);
    return next_of_second < next_of_first ? second : first;
}

/* The lane's next event is at this time: finds anew who wins the games that the lane plays, from its leaf upwards. */
static void set_next(struct simulator *sim, struct lane_state *lane, double next)
{
    lane->next_event = next;
    int leaf = sim->n_lanes + (int)(lane - sim->lanes);
    for (int i = leaf / 2; i > 0; i /= 2) {
        int before = sim->winner[i];
        sim->winner[i] = earlier_lane(sim, sim->winner[2 * i], sim->winner[2 * i + 1]);
        if (sim->winner[i] == before && before != leaf - sim->n_lanes)
            return; /* the lane has lost here, as it had before */
    }
}

/* The share of its full speed at which the lane's copy goes. */
static double copy_speed(const struct simulator *sim, const struct lane_state *lane)
{
    size_t copies[2] = {0}; /* on each of its links, itself too */
    for (int i = 0; i < 2; i++)
        if (lane->links[i])
            copies[i] = sim->on_link[lane->links[i]->index].n;
    return link_rate(lane->links, copies) / lane->full_rate;
}

/* Notes for each copy on the link, if there is one, how long what is left of it would take at full speed. */
static void note_left(const struct simulator *sim, const struct link *link)
{
    if (!link)
        return;
    const struct link_copies *on = &sim->on_link[link->index];
    for (size_t i = 0; i < on->n; i++) {
        struct lane_state *lane = on->lanes[i];
        lane->seconds_left = (lane->next_event - sim->now) * copy_speed(sim, lane);
    }
}

static void add_to_link(struct simulator *sim, const struct link *link, struct lane_state *copy)
{
    if (!link)
        return;
    struct link_copies *on = &sim->on_link[link->index];
    on->lanes = grow(on->lanes, &on->cap, on->n + 1, sizeof *on->lanes);
    on->lanes[on->n++] = copy;
}

static void drop_from_link(struct simulator *sim, const struct link *link, const struct lane_state *copy)
{
    if (!link)
        return;
    struct link_copies *on = &sim->on_link[link->index];
    size_t at = 0;
    while (on->lanes[at] != copy)
        at++;
    on->n--;
    on->lanes[at] = on->lanes[on->n];
}

/* Sets when each copy on the link ends, at the speed that it has now. */
static void set_ends(struct simulator *sim, const struct link *link)
{
    if (!link)
        return;
    const struct link_copies *on = &sim->on_link[link->index];
    for (size_t i = 0; i < on->n; i++)
        set_next(sim, on->lanes[i], sim->now + on->lanes[i]->seconds_left / copy_speed(sim, on->lanes[i]));
}

enum load_change { COPY_JOINS, COPY_LEAVES };

/* The lane's copy joins or leaves its links, which changes the speed of the other copies there.  A copy that is on both
 * links as well is looked at twice, with the same result. */
static void change_load(struct simulator *sim, struct lane_state *copy, enum load_change change)
{
    for (int i = 0; i < 2; i++)
        note_left(sim, copy->links[i]);
    for (int i = 0; i < 2; i++) {
        if (change == COPY_JOINS)
            add_to_link(sim, copy->links[i], copy);
        else
            drop_from_link(sim, copy->links[i], copy);
    }
    for (int i = 0; i < 2; i++)
        set_ends(sim, copy->links[i]);
}

/* ---- running --------------------------------------------------------------------------------------------------- */

/* The turn on the lane goes to its next task, and after the last one to its first of the next iteration. */
static void pass_turn(const struct simulator *sim, struct lane_state *lane)
{
    lane->next_task = sim->tasks[lane->next_task].next_on_lane;
    if (lane->next_task == NONE) {
        lane->next_task = lane->first_task;
        lane->iteration++;
    }
}

static void join_links(struct simulator *sim, struct lane_state *lane)
{
    lane->on_links = true;
    change_load(sim, lane, COPY_JOINS);
}

/* The lane's node begins to compute, or to wait for the latency of its links. */
static void begin_node(struct simulator *sim, struct lane_state *lane)
{
    bool copies = isfinite(lane->full_rate);
    lane->begun = true;
    set_next(sim, lane, sim->now + (copies ? lane->latency : lane->seconds_left));
    if (copies && lane->next_event <= sim->now)
        join_links(sim, lane);
}

/* May the node start when it has its turn? */
static bool may_start(const struct simulator *sim, int node)
{
    return sim->unmet[node] == 0 && !waits_for_slot(sim, node);
}

/* The lane runs the node from `start` on, which is now or later. */
static void start_task(struct simulator *sim, struct lane_state *lane, int node, double start)
{
    double seconds = sim->result->seconds[node % sim->n];
    lane->node = node;
    lane->on_links = false;
    lane->begun = false;
    lane->links[0] = NULL;
    lane->links[1] = NULL;
    if (seconds > 0)
        links_of(task_of(sim, node), lane->links);
    lane->full_rate = link_rate(lane->links, NULL);
    lane->latency = isfinite(lane->full_rate) ? fmin(link_latency(lane->links), seconds) : 0;
    lane->seconds_left = seconds - lane->latency;
    sim->result->moments[node] = (struct moment){.start = start};
    if (start > sim->now)
        set_next(sim, lane, start);
    else
        begin_node(sim, lane);
}

/* ---- what an end does -------------------------------------------------------------------------------------------- */

/* A task may start on the lane now. */
static void queue_lane(struct simulator *sim, struct lane_state *lane)
{
    sim->to_try = grow(sim->to_try, &sim->cap_to_try, sim->n_to_try + 1, sizeof *sim->to_try);
    sim->to_try[sim->n_to_try++] = lane;
}

/* The last iteration up to this one in which task i runs, or NONE. */
static int latest_iteration(const struct simulator *sim, int i, int iteration)
{
    while (iteration >= 0 && skipped(sim, node_of(sim, iteration, i)))
        iteration--;
    return iteration;
}

/* A task that the node waits for has ended. */
static void end_wait(struct simulator *sim, int node)
{
    if (skipped(sim, node))
        return;
    sim->unmet[node]--;
    if (sim->unmet[node] == 0)
        queue_lane(sim, lane_of_node(sim, node));
}

/* Task i of the iteration has ended, or has left it.  This ends all waits for this run: those of tasks in this
 * iteration, and in later ones as long as task i is skipped there. */
static void release(struct simulator *sim, int i, int iteration)
{
    for (int k = sim->tasks[i].first_wait; k != NONE; k = sim->waits[k].next_wait) {
        const int ahead = sim->waits[k].next_step ? 1 : 0;
        for (int later = iteration; later + ahead < sim->opened; later++) {
            if (later > iteration && !skipped(sim, node_of(sim, later, i)))
                break; /* from here on the waits are for that run */
            end_wait(sim, node_of(sim, later + ahead, sim->waits[k].consumer));
        }
    }
}

/* A run of task i comes into flight (change 1) or ends (-1).  A task that stands aside is outside of its lane until its
 * iteration has asked for a slot, so its runs do not count. */
static void count_run(struct simulator *sim, int i, int change)
{
    struct task_state *state = &sim->tasks[i];
    if (task_of(sim, i)->slot.aside)
        return;
    bool was_full = state->in_flight == MOST_RUNS;
    state->in_flight += change;
    bool is_full = state->in_flight == MOST_RUNS;
    if (is_full && !was_full)
        sim->tasks_at_limit++;
    if (was_full && !is_full)
        sim->tasks_at_limit--;
}

/* Task i of the iteration has ended there, or skips it after all. */
static void count_end(struct simulator *sim, int i, int iteration)
{
    struct iteration *state = &sim->iterations[iteration];
    count_run(sim, i, -1);
    state->tasks_left--;
    if (task_of(sim, i)->lane->kind == LANE_COMPUTE)
        state->compute_tasks_left--;
}

/* ---- slots ------------------------------------------------------------------------------------------------------- */

/* All tasks that need a slot leave the iteration, which has got none. */
static void leave_iteration(struct simulator *sim, int iteration)
{
    for (int i = 0; i < sim->n; i++) {
        if (!task_of(sim, i)->slot.needed)
            continue;
        sim->result->moments[node_of(sim, iteration, i)].skipped = true;
        count_end(sim, i, iteration);
    }
}

/* The iteration asks for a slot, and the tasks that need one go on or leave. */
static void ask_for_slot(struct simulator *sim, int iteration)
{
    if (!give_slot(sim, iteration))
        return;
    const bool has_slot = sim->iterations[iteration].has_slot;
    if (!has_slot)
        leave_iteration(sim, iteration); /* all of them leave before a task that waits for them can start */
    for (int i = 0; i < sim->n; i++) {
        if (!task_of(sim, i)->slot.needed)
            continue;
        /* If the task's last run has not ended, release() is called when it does. */
        const bool last_run_ended = latest_iteration(sim, i, iteration - 1) <= sim->tasks[i].last_ended;
        if (!has_slot && last_run_ended)
            release(sim, i, iteration);
        queue_lane(sim, lane_of_node(sim, i));
    }
}

/* ---- starting a task --------------------------------------------------------------------------------------------- */

/* Starts the lane's next task that is not skipped, of the open iterations, if all that it waits for has ended. */
static void try_start(struct simulator *sim, struct lane_state *lane)
{
    if (lane->node != NONE || lane->first_task == NONE)
        return;
    while (lane->iteration < sim->opened && skipped(sim, node_of(sim, lane->iteration, lane->next_task)))
        pass_turn(sim, lane);
    if (lane->iteration == sim->opened)
        return;
    int node = node_of(sim, lane->iteration, lane->next_task);
    if (must_ask(sim, node)) {
        ask_for_slot(sim, lane->iteration); /* this puts the lane into the queue again */
        return;
    }
    if (!may_start(sim, node))
        return;
    double start = sim->now + task_of(sim, node)->lane->gap_seconds;
    if (sim->issue_seconds > 0) /* the host issues in list order */
        start = fmax(start, sim->iterations[lane->iteration].issue_begin + (lane->next_task + 1) * sim->issue_seconds);
    pass_turn(sim, lane);
    start_task(sim, lane, node, start);
}

/* Tries all lanes of the queue.  A try may put further lanes into it. */
static void try_lanes(struct simulator *sim)
{
    for (size_t i = 0; i < sim->n_to_try; i++)
        try_start(sim, sim->to_try[i]);
    sim->n_to_try = 0;
}

/* ---- opening an iteration ---------------------------------------------------------------------------------------- */

/* How many ends a task of that iteration has to wait for. */
static int count_unmet(const struct simulator *sim, const struct task *task, int iteration)
{
    int unmet = 0;
    for (const struct edge *edge = task->edges; edge < task->edges + task->n_edges; edge++) {
        int producer = (int)edge->producer;
        if (!edge->wait)
            continue;
        int awaited = latest_iteration(sim, producer, iteration - edge->previous); /* NONE: there was no run */
        if (awaited > sim->tasks[producer].last_ended)
            unmet++;
    }
    return unmet;
}

/* The host opens the next iteration. */
static void open_iteration(struct simulator *sim)
{
    int iteration = sim->opened++;
    struct simulation *result = sim->result;
    struct iteration *state = &sim->iterations[iteration];
    size_t n_moments = (size_t)sim->opened * (size_t)sim->n;
    result->moments = grow(result->moments, &sim->cap_moments, n_moments, sizeof *result->moments);
    sim->unmet = grow(sim->unmet, &sim->cap_unmet, n_moments, sizeof *sim->unmet);
    if (iteration > 0)
        state->issue_begin = fmax(sim->now, sim->iterations[iteration - 1].issue_begin + sim->n * sim->issue_seconds);
    for (int i = 0; i < sim->n; i++) {
        const struct task *task = result->list->tasks[i];
        int node = node_of(sim, iteration, i);
        result->moments[node] = (struct moment){.skipped = !is_due(task, (uint32_t)iteration + 1)};
        sim->unmet[node] = 0;
        if (skipped(sim, node))
            continue;
        sim->unmet[node] = count_unmet(sim, task, iteration);
        state->tasks_left++;
        if (task->lane->kind == LANE_COMPUTE)
            state->compute_tasks_left++;
        count_run(sim, i, 1);
    }
    if (asks_at_once(sim, iteration))
        ask_for_slot(sim, iteration);
}

/* ---- the clock --------------------------------------------------------------------------------------------------- */

/* May the host open another iteration? */
static bool may_open(const struct simulator *sim)
{
    if (sim->opened == sim->limit || sim->tasks_at_limit > 0)
        return false;
    return sim->opened < 2 || sim->iterations[sim->opened - 2].compute_tasks_left == 0;
}

/* Notes which iterations have ended, and opens others as long as the host may.  Then any lane may have a task that can
 * start. */
static void update_iterations(struct simulator *sim)
{
    int before = sim->opened;
    while (!sim->stop) {
        if (sim->done < sim->opened && sim->iterations[sim->done].tasks_left == 0) {
            sim->iterations[sim->done].end = sim->now;
            if (sim->done > 0)
                look_for_pattern(sim, sim->done);
            sim->done++;
        } else if (may_open(sim)) {
            open_iteration(sim);
        } else {
            break;
        }
    }
    if (sim->opened == before)
        return;
    for (int i = 0; i < sim->n_lanes; i++)
        queue_lane(sim, &sim->lanes[i]);
}

/* The lane's node ends now.  What waited for this end may start, and the lane goes on. */
static void finish(struct simulator *sim, struct lane_state *lane)
{
    int i = lane->node % sim->n;
    int iteration = lane->node / sim->n;
    sim->result->moments[lane->node].end = sim->now;
    if (lane->on_links)
        change_load(sim, lane, COPY_LEAVES);
    lane->node = NONE;
    set_next(sim, lane, INFINITY);
    sim->tasks[i].last_ended = iteration;
    if (asks_at_end(sim, i, iteration))
        ask_for_slot(sim, iteration);
    return_at_end(sim, i, iteration);
    release(sim, i, iteration);
    count_end(sim, i, iteration);
    /* This comes first: tasks may leave an iteration that asks for a slot now, and then it may be over. */
    try_lanes(sim);
    update_iterations(sim);
    queue_lane(sim, lane);
}

/* The lane with the earliest event.  If several have events at the same time, it is the disk's, which may return a
 * slot. */
static struct lane_state *earliest(const struct simulator *sim)
{
    const struct device *host = sim->result->list->pool->machine->host;
    struct lane_state *best = &sim->lanes[sim->winner[1]];
    struct lane_state *disk = &sim->lanes[host->lanes[LANE_DISK]->index];
    if (sim->returning_task && disk->next_event <= best->next_event * (1 + 1e-12))
        return disk;
    return best;
}

/* Goes from event to event until a pattern is found.  An event is that a node begins, gets on its links, or ends. */
static void run_clock(struct simulator *sim)
{
    update_iterations(sim);
    try_lanes(sim);
    for (struct lane_state *lane = earliest(sim); lane->node != NONE && !sim->stop; lane = earliest(sim)) {
        sim->now = fmax(sim->now, lane->next_event); /* earliest() may choose a disk that is a rounding error late */
        if (!lane->begun)
            begin_node(sim, lane);
        else if (isfinite(lane->full_rate) && !lane->on_links)
            join_links(sim, lane);
        else
            finish(sim, lane);
        try_lanes(sim);
    }
    CHECK(sim->stop, "%d iterations ended: the list deadlocks", sim->result->steps);
}

struct problem *simulate(const struct list *list, const struct costs *costs, struct simulation **out)
{
    struct simulation *result = allocate(1, sizeof *result);
    struct machine *machine = list->pool->machine;
    result->list = list;
    result->seconds = allocate(list->n, sizeof *result->seconds);
    result->steady = allocate(list->n, sizeof *result->steady);
    result->busy = allocate((size_t)machine->n_lanes, sizeof *result->busy);
    if (costs)
        set_speeds(machine, costs);
    struct problem *problem = find_task_times(result, costs);
    if (problem) {
        free_simulation(result);
        return problem;
    }
    struct simulator sim = new_simulator(result);
    run_clock(&sim);
    sum_up_pattern(&sim);
    free_simulator(&sim);
    *out = result;
    return NULL;
}

struct simulation *must_simulate(const struct list *list, const struct costs *costs)
{
    struct simulation *sim;
    must(simulate(list, costs, &sim));
    return sim;
}

void free_simulation(struct simulation *sim)
{
    free(sim->moments);
    free(sim->seconds);
    free(sim->steady);
    free(sim->busy);
    free(sim);
}
