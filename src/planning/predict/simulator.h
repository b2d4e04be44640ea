/* simulator.h - what the four files that run a list on a virtual clock know of each other.
 *
 *     simulate.c           the idea: lanes, links, starts and ends, one event after another    begin here
 *     simulate_slots.c     which iterations get a slot
 *     simulate_pattern.c   after which iteration the times repeat, and what comes of it
 *     simulate_setup.c     makes the simulator from a list and its tasks' times
 */
#ifndef SIMULATOR_H
#define SIMULATOR_H

#include "simulation.h"

struct lane_state {
    int first_task;              /* the first task of the lane; NONE: it has none */
    int next_task, iteration;    /* the task whose turn is next, and its iteration */
    int node;                    /* the node that runs; NONE: the lane is idle */
    bool begun;                  /* false: the node still waits for the host, or for the lane's gap */
    bool on_links;               /* false: the node computes, or waits for the latency */
    double latency;              /* seconds that the node's copy waits before it is on its links */
    double seconds_left;         /* seconds of work that the node has left at `now`, at full speed */
    double next_event;           /* when the node, its latency or its wait ends, at the present speed; INFINITY: idle */
    double full_rate;            /* bytes per second that the node's copy reaches alone */
    const struct link *links[2]; /* the links of the node's copy; NULL: none */
};

struct wait {
    int consumer;   /* the task that waits */
    bool next_step; /* true: the consumer of the next iteration waits */
    int next_wait;  /* the next wait for the same task; NONE: this is the last one */
};

struct task_state {
    int next_on_lane; /* the next task of its lane; NONE: the task is the last one */
    int first_wait;   /* the first wait for the task; NONE: nothing waits for it */
    int last_ended;   /* the last iteration in which the task has ended; NONE: it never has */
    int in_flight;    /* instances that have been opened and have not ended */
    bool before_slot; /* a task that needs a slot follows from it within the iteration */
};

struct iteration {
    int tasks_left;         /* tasks that have not ended */
    int compute_tasks_left; /* how many of these are on compute lanes */
    double end;             /* when this iteration and all before it had ended */
    double issue_begin;     /* when the host begins to issue its tasks */
    bool has_asked;         /* true: the iteration has asked for a slot */
    bool has_slot;          /* true: the iteration has got a slot */
};

struct link_copies {
    struct lane_state **lanes; /* the lanes whose copies are on the link */
    size_t n, cap;
};

struct simulator {
    struct simulation *result;   /* what is filled in */
    int n, n_lanes;              /* tasks and lanes */
    int limit;                   /* the most iterations that are simulated */
    int repeat;                  /* iterations after which the same tasks run again */
    struct task_state *tasks;    /* by task */
    struct wait *waits;          /* a list for each task, by `first_wait` and `next_wait` */
    int *unmet;                  /* by node: how many tasks it waits for that have not ended */
    struct lane_state *lanes;    /* by lane */
    int *winner;                 /* [2 n_lanes]: place i has the lane with the earlier event of places 2 i and 2 i + 1;
                                  * the last n_lanes places have the lanes */
    struct link_copies *on_link; /* by link */
    struct iteration *iterations;
    struct lane_state **to_try; /* a queue of the lanes on which a task may start now; some stand in it twice */
    size_t n_to_try, cap_to_try;
    int opened;           /* iterations that the host has opened */
    int done;             /* iterations that have ended, and all before them */
    int tasks_at_limit;   /* tasks with MOST_IN_FLIGHT in flight */
    double issue_seconds; /* host seconds per task */
    double now;           /* seconds on the virtual clock */
    bool stop;            /* the clock is to stop */
    size_t cap_moments, cap_unmet;
    struct slots slots;
    const struct task *returning_task; /* the task that returns a slot; NULL: no task needs one */
};

/* Task i of the iteration. */
static inline int node_of(const struct simulator *simulator, int iteration, int i)
{
    return iteration * simulator->n + i;
}

static inline const struct task *task_of(const struct simulator *simulator, int node)
{
    return simulator->result->list->tasks[node % simulator->n];
}

static inline struct lane_state *lane_of_node(const struct simulator *simulator, int node)
{
    return &simulator->lanes[task_of(simulator, node)->lane->index];
}

static inline bool skipped(const struct simulator *simulator, int node)
{
    return simulator->result->moments[node].skipped;
}

/* ---- simulate_slots.c -------------------------------------------------------------------------------------------- */

/* Each iteration asks once for a slot.  In a list without slots all answers here are false. */

/* Does the node need a slot for which its iteration has not asked yet? */
bool waits_for_slot(const struct simulator *simulator, int node);

/* Must the iteration ask now, at one of three moments: when it is opened; when the node has its turn on its lane; when
 * task i of it has ended? */
bool asks_at_once(const struct simulator *simulator, int iteration);
bool asks_in_turn(const struct simulator *simulator, int node);
bool asks_at_end(const struct simulator *simulator, int i, int iteration);

/* The iteration asks, and iterations[iteration].has_slot has the answer.  false: it needs no slot. */
bool give_slot(struct simulator *simulator, int iteration);

/* Task i of the iteration has ended.  If that is the task that returns the iteration's slot, the slot is free. */
void return_at_end(struct simulator *simulator, int i, int iteration);

/* ---- simulate_pattern.c ------------------------------------------------------------------------------------------ */

/* Called when iteration `last` has ended.  If the times repeat, or `limit` is reached, notes the pattern and its period
 * in the result, and tells the clock to stop. */
void look_for_pattern(struct simulator *simulator, int last);

/* Sums up the pattern: how long each task takes, and what lanes do in its periods, whichever iteration it is for. */
void sum_up_pattern(const struct simulator *simulator);

/* ---- simulate_setup.c -------------------------------------------------------------------------------------------- */

/* Asks for the time of each task.  Returns a problem where they make no sense together. */
struct problem *compute_task_times(struct simulation *result, const struct costs *costs);

struct simulator make_simulator(struct simulation *result); /* its times are known */
void free_simulator(struct simulator *simulator);           /* but not the result */

#endif
