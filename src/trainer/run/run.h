/* run.h - running lists: on OpenCL queues and host threads, or one task after another.
 *
 *     prepare    kernels, arguments and flights of finished lists                    prepare.c
 *     issue      the commands of one task, and their times                           issue.c
 *     execute    issues the tasks, and waits only where an edge crosses lanes        execute.c; job.c, thread.c,
 *                                                                                    hostlane.c, forwarder.c
 *     serial     runs tasks one after another, with --serial                         serial.c, alone.c
 *     flights    instances from when they are issued until they are retired          flights.c
 *     wait       waits for ends                                                      wait.c
 *     late       tasks that may be skipped at the last moment                        late.c
 *     pacer      lists of which the ends of tasks are held back                      pacer.c
 *     observe    tells observers what is issued and what has ended                   observe.c
 *     instances  those that lanes were given: for these files and a watchdog         lane_instances.h
 *     parts      what these files know of each other, and nobody else                run_parts.h
 *
 * Protocol: finish_lists() once for all lists that share the arena, then execute() any number of times, drain() before
 * another list runs, before anything is read, and before free_list().  (Lists that share an arena use the same bytes,
 * and no edge goes from one to another: so the one must have ended before the other begins.  A drain costs the tail of
 * one iteration.)
 */
#ifndef RUN_H
#define RUN_H

#include "trainer/step/list.h"

/* ---- what is in flight ------------------------------------------------------------------------------------------- */

struct task_flight { /* an instance of a task, from when it is issued until it is retired */
    uint32_t iteration;
    cl_event work; /* the end of its commands */
    /* The event that other tasks wait for: `work`; for host tasks, and where there is a pacer, a user event. */
    cl_event done;
    cl_event *in_context;         /* by context: a user event that stands for `done` there; NULL: no task waits there */
    uint64_t queued, start, end;  /* ns on the host's clock; for host tasks the lane's thread writes start and end */
    enum time_source time_source; /* where these times come from */
    uint64_t mark;                /* a number that one observer may keep with the instance */
    bool skipped;                 /* it was decided at the last moment that it does not run */
};

/* A pacer holds back the ends of tasks: those that wait for a task wait until hold_back() has returned, not only until
 * the task's work has ended.  The lane's thread calls hold_back() at that end.  hold_back() may wait, and may give the
 * run another start and end. */
struct pacer {
    void (*hold_back)(void *context, const struct task *task, struct task_flight *flight);
    void *context;
    double scale;     /* if the list keeps a schedule's time: seconds shown per second of the schedule; else 0 */
    const char *word; /* a word on that, printed after a step's results, or NULL */
};

enum { ISSUED_AHEAD = 2 }; /* iteration n is issued when the compute lanes have ended iteration n - ISSUED_AHEAD */
enum { KEPT_ENDS = 4 };    /* of how many iterations the ends are kept */
_Static_assert((int)KEPT_ENDS > (int)ISSUED_AHEAD, "the ends of all iterations that may be in flight are kept");

struct running {
    /* By position in the list: the task's kernel, and its instances in flight (run_parts.h). */
    struct task_instances *task_instances;
    struct lane_instances *lane_instances; /* by lane: the instances that it was given (lane_instances.h) */
    int n_lanes;
    cl_event *wait_list; /* room for the events that one task waits for */
    /* When the iteration's last retired instance on a compute lane ended, at iteration % KEPT_ENDS, on the host's
     * clock. */
    uint64_t iteration_end[KEPT_ENDS];
    struct pacer *pacer;           /* NULL: none */
    struct late_tasks *late_tasks; /* NULL: tasks that need a slot do not run */
};

/* ---- prepare.c --------------------------------------------------------------------------------------------------- */

/* Calls place() and depend(), then prepares kernels and their arguments.  Returns NULL, or place()'s problem. */
struct problem *finish_lists(struct pool *pool, struct list *const *lists, size_t n);

/* ---- alone.c ----------------------------------------------------------------------------------------------------- */

/* Runs the task in that iteration on this thread and waits for it; no other thread may use the list.  Its times are
 * left in *flight.  There `queued` (0: the task is queued now) and `mark` are kept, and all else is overwritten. */
void run_alone(struct list *list, const struct task *task, uint32_t iteration, struct task_flight *flight);

/* ---- execute.c --------------------------------------------------------------------------------------------------- */

/* Issues that iteration of the list, as soon as the compute lanes have ended the iteration ISSUED_AHEAD before it and
 * no task has MOST_IN_FLIGHT instances in flight.  Its numbers rise by one from 1, and begin anew only after a drain.
 * Serial: runs the iteration, one task after another, and creates no thread. */
void execute(struct list *list, uint32_t iteration);

/* What runs the tasks of serial execution in place of run_alone(), to audit them, for example.  It may run a task
 * several times, if the result is as if the task ran once. */
struct serial_runner {
    void *(*begin)(struct list *list); /* begins an iteration; `run` and `end` are given what it returns */
    void (*run)(void *begun, const struct task *task, uint32_t iteration, struct task_flight *flight);
    void (*end)(void *begun);
};

/* ---- execution --------------------------------------------------------------------------------------------------- */

/* How lists run in this process, and which one runs now: so it belongs to no list.  `serial`, `serial_runner` and
 * `watch` are set before the first execute(). */
struct execution {
    bool serial;
    const struct serial_runner *serial_runner; /* runs the tasks, if `serial`; NULL: run_alone() does */
    /* A watchdog: told of each list that is about to run, and of NULL when none runs any more.  NULL: there is none. */
    void (*watch)(struct list *list);
    struct observer *observers; /* a chain: see add_observer() */
    uint64_t held_ns;           /* how long observers have held execute() */
    /* Where execute() is, for a debugger, which may find it at any moment; list: NULL between two iterations. */
    struct list_position {
        const struct list *list;
        uint32_t iteration;
        const struct task *task; /* it is issued now, or, if `serial`, runs */
    } now;
};
extern struct execution execution;

/* ---- wait.c ------------------------------------------------------------------------------------------------------ */

/* Waits for all that was issued, and until no thread reads the list any more. */
void drain(struct list *list);

/* drain(), but without waiting for tasks that stand aside, whose bytes are still on their way to the disk.  Both bring
 * back state that tasks have left elsewhere (list->extra.restore_state). */
void drain_except_disk(struct list *list);

/* Waits until all instances up to that iteration on the compute lanes, and those on the task's lane, have ended, and
 * retires them. */
void retire_until(struct list *list, const struct task *task, uint32_t iteration);

/* Have all instances up to that iteration on the compute lanes been retired? */
bool is_computed(const struct list *list, uint32_t iteration);

void retire_all(struct list *list); /* submits what was issued, and waits until all of it has been retired */

/* ---- flights.c --------------------------------------------------------------------------------------------------- */

void retire_ended(struct list *list); /* retires instances that have ended, without waiting */
void wait_lanes(struct list *list);   /* waits until all that was issued has ended, without retiring it */

/* The latest instance of a task, in that iteration or before, that has not been retired, or NULL. */
struct task_flight *latest_flight(const struct list *list, const struct task *task, uint32_t iteration);

/* ---- observe.c: observers ---------------------------------------------------------------------------------------- */

/* An observer is told of every instance of a task, by the thread that issues.  Any function may be NULL. */
struct observer {
    /* Called before the task of that iteration is issued.  It may hold execute(), and adds to execution.held_ns for
     * how long. */
    void (*issuing)(void *context, struct list *list, const struct task *task, uint32_t iteration);
    /* Called when an instance begins its flight, of which iteration and queued are known.  For a task that may be
     * skipped at the last moment it is called when the task has run, right before `ended`. */
    void (*issued)(void *context, const struct list *list, const struct task *task, struct task_flight *flight);
    /* Called when the instance has ended and its times are known, in the order of its lane. */
    void (*ended)(void *context, const struct list *list, const struct task *task, const struct task_flight *flight);
    void *context;
    struct observer *next; /* the next one in the chain */
};

/* The caller owns the observer.  It is told after those that were added before.  Remove it after a drain. */
void add_observer(struct observer *observer);
void remove_observer(struct observer *observer);

/* ---- thread.c: threads of host lanes and forwarders -------------------------------------------------------------- */

/* Waits until all jobs of the threads of the machine's lanes are finished, and ends the threads. */
void stop_lane_threads(struct machine *machine);

/* ---- late.c: tasks that may be skipped at the last moment -------------------------------------------------------- */

/* Calls take_slot() for the iteration, or decides not to.  It is called once for each iteration that needs a slot, from
 * any thread, when the first of its tasks that need one could run. */
typedef void slot_asker(void *context, uint32_t iteration);

/* Between start_late() and stop_late(), tasks that need a slot run; before and after, none does.  Call both after a
 * drain. */
void start_late(struct list *list, slot_asker *ask, void *context);
void stop_late(struct list *list);

#endif
