/* wait.c - waits until instances have ended, and retires them.
 *
 *     wait_to_issue()  waits until an iteration may be issued
 *     retire_until()   waits for the instances up to an iteration, by retire_lanes_until() and retire_lane_until(), and
 *                      retires them; retire_all() waits for all instances
 *     drain()          waits for all instances, and for the threads that end them
 *
 * For observers, a long wait is cut into short ones of about a millisecond: so they are told of ends soon after these
 * happen, and the thread is not woken for each end.
 */
#include "run_parts.h"

/* The number of the first instance of the lane that comes after that iteration; if none has been given yet, the number
 * that it will have. */
static uint64_t first_instance_after(const struct lane_instances *lane_instances, uint32_t iteration)
{
    uint64_t nth = lane_instances->retired;
    while (nth < lane_instances->given && nth_instance(lane_instances, nth)->iteration <= iteration)
        nth++;
    return nth;
}

/* Waits until all of the lane's instances up to that iteration have ended, and retires them.  Meanwhile it retires
 * those that have ended on other lanes.
 *
 * It does not wait for the last of these instances at once, because of Intel's CPU runtime.  This runtime has one
 * thread fewer than the CPU has cores: the thread that waits for a kernel is to help compute it.  But that thread helps
 * only once the kernel can start, and its core is idle until then; the last kernel of a step can start only near the
 * step's end.  So the first wait is for the next instance, and each further one for twice as many as before.  With
 * observers a wait does not grow beyond about a millisecond (see the head of this file). */
static void retire_lane_until(struct list *list, struct lane_instances *lane_instances, uint32_t iteration)
{
    enum { SHORT_NS = 500000, LONG_NS = 2000000 };
    uint64_t until = first_instance_after(lane_instances, iteration);
    uint64_t at_once = 1; /* how many instances one wait is for */
    while (lane_instances->retired < until) {
        uint64_t next = MIN(until, lane_instances->retired + at_once), start = now_ns();
        clWaitForEvents(1, &nth_flight(list, lane_instances, next - 1)->done); /* retire_first() finds an error */
        uint64_t waited = now_ns() - start;
        if (!execution.observers || waited < SHORT_NS)
            at_once *= 2;
        else if (waited > LONG_NS && at_once > 1)
            at_once /= 2;
        while (lane_instances->retired < next)
            retire_first(list, lane_instances);
        retire_ended(list);
    }
}

enum lanes_waited { COMPUTE_LANES, OTHER_LANES };

/* Compute lanes come first: a thread that waits for them may compute meanwhile (retire_lane_until()), one that
 * waits for a host task does not. */
static void retire_lanes_until(struct list *list, uint32_t iteration, enum lanes_waited lanes)
{
    for (int i = 0; i < list->running->n_lanes; i++) {
        bool computes = list->pool->machine->lanes[i]->kind == LANE_COMPUTE;
        if (computes == (lanes == COMPUTE_LANES))
            retire_lane_until(list, &list->running->lane_instances[i], iteration);
    }
}

void retire_until(struct list *list, const struct task *task, uint32_t iteration)
{
    retire_lanes_until(list, iteration, COMPUTE_LANES);
    retire_lane_until(list, &list->running->lane_instances[task->lane->index], iteration);
}

bool is_computed(const struct list *list, uint32_t iteration)
{
    const struct running *running = list->running;
    for (int i = 0; i < running->n_lanes; i++)
        if (list->pool->machine->lanes[i]->kind == LANE_COMPUTE &&
            first_instance_after(&running->lane_instances[i], iteration) > running->lane_instances[i].retired)
            return false;
    return true;
}

void wait_to_issue(struct list *list, uint32_t iteration)
{
    if (iteration > ISSUED_AHEAD)
        retire_lanes_until(list, iteration - ISSUED_AHEAD, COMPUTE_LANES);
    for (size_t i = 0; i < list->n; i++) {
        const struct task_instances *instances = &list->running->task_instances[i];
        if (instances->issued - instances->retired == MOST_IN_FLIGHT)
            retire_lane_until(list, &list->running->lane_instances[list->tasks[i]->lane->index],
                              instances->flights[instances->retired % MOST_IN_FLIGHT].iteration);
    }
}

/* ---- until all has ended ----------------------------------------------------------------------------------------- */

void flush_lanes(const struct machine *machine)
{
    for (int i = 0; i < machine->n_lanes; i++)
        if (machine->lanes[i]->queue)
            CL(clFlush(machine->lanes[i]->queue));
}

void retire_all(struct list *list)
{
    flush_lanes(list->pool->machine);
    retire_lanes_until(list, UINT32_MAX, COMPUTE_LANES);
    retire_lanes_until(list, UINT32_MAX, OTHER_LANES);
}

/* An event may end before the thread has finished the job that waited for it, so threads are waited for too.  A lane's
 * thread may give its forwarder a new job, so forwarders are waited for second. */
void drain_except_disk(struct list *list)
{
    if (!list->running)
        return;
    retire_all(list);
    wait_for_threads(list->pool->machine, TASK_THREAD);
    wait_for_threads(list->pool->machine, FORWARDER);
    if (list->extra.restore_state)
        list->extra.restore_state(list);
    if (execution.watch)
        execution.watch(NULL);
}

void drain(struct list *list)
{
    drain_except_disk(list);
    if (!list->running || !list->running->late_tasks) /* else these threads run no task of this list */
        return;
    wait_for_threads(list->pool->machine, ASIDE_THREAD);
    retire_ended(list);
}
