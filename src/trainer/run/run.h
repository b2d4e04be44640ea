/* run.h - running lists: on OpenCL queues and host threads, or one task after another.
 *
 *     prepare    kernels, arguments and flights of finished lists; commands         prepare.c
 *     execute    issues the tasks, and waits only where an edge crosses lanes; or
 *                runs one after another                                              execute.c, hostlane.c
 *     retire     sees what was issued end                                            retire.c
 *     late       tasks of which it is decided late whether they run                  late.c
 *     observe    tells whoever looks on what is issued and what has ended            observe.c
 *
 * Protocol: finish_steps() once for all lists that share the arena, then execute() any number of times, drain() before
 * another list runs, before anything is read, and before free_step().  (Lists that share an arena use the same bytes,
 * and no edge goes from one to another: so the one must have ended before the other begins.  What a drain costs is the
 * tail of one iteration.)
 */
#ifndef RUN_H
#define RUN_H

#include "trainer/step/step.h"

#include <pthread.h>

/* ---- what runs of a list --------------------------------------------------------------------------------------- */

struct task_flight {   /* a run of a task, from when it is issued until it is retired */
    uint32_t number;   /* iteration */
    cl_event work;     /* the end of its commands */
    cl_event done;     /* what others wait for: `work`; of host tasks, and where there is a wrapper, a user event */
    cl_event *foreign; /* by context: user events that stand for `done` elsewhere; NULL: nobody waits there */
    uint64_t queued, start, end; /* start, end: written by host threads */
    enum told_times told;        /* are those what the driver told? */
    uint64_t mark;               /* what an observer keeps of it: one of them may */
    bool skipped;                /* it has not run: decided late */
};
struct task_runs {                        /* of a task */
    cl_kernel kernel;                     /* NULL: it is none */
    uint32_t issued, retired;             /* how often */
    cl_event parked;                      /* the end of the last run that was parked; NULL: none was */
    struct task_flight flight[MOST_RUNS]; /* of those that are in flight */
};
struct issued { /* a run that has not been retired */
    _Atomic uint32_t task, number;
};
struct queue { /* what a lane has been given: a ring, since it runs in order */
    struct issued *run;
    size_t cap;
    _Atomic uint64_t given, retired; /* how many in all */
    _Atomic uint64_t ended;          /* how many the driver was last seen to have ended: the watchdog's */
    uint64_t last_end;               /* of its runs, as reported, */
    uint64_t told_end;               /* and as told by the driver */
};
/* Round the end of every task: what others wait for is not the end of its work, but of finish(), which the lane's
 * thread calls then.  It may wait, and give the run another start and end. */
struct wrapper {
    void (*finish)(struct step *s, size_t task, struct task_flight *flight);
    double scale;     /* of a list that keeps a schedule's time: seconds shown per second of the schedule; else 0 */
    const char *word; /* of that, behind a step's results; NULL: none */
};
enum { KEPT_ENDS = 4 }; /* of iterations: more than can be in flight */
struct running {
    struct task_runs *task; /* by position in the list */
    struct queue *queue;    /* by lane */
    int n_queues;
    cl_event *wait; /* room for what one task waits for */
    /* By iteration % KEPT_ENDS, as far as retired: its last end on a compute lane, on the host's clock. */
    uint64_t ended[KEPT_ENDS];
    struct wrapper *wrapper; /* NULL: none */
    struct late *late;       /* late.c: what is decided late; NULL: nothing runs that needs a member */
};

/* ---- prepare.c ------------------------------------------------------------------------------------------------- */

/* place + depend + kernels and their arguments.  NULL, or place()'s problem. */
struct problem *finish_steps(struct pool *p, struct step *const *steps, size_t n);

struct execution {
    bool serial;
    const struct lone_runner *alone; /* what runs a serial run's tasks; NULL: run_alone() does */
    /* Is told of a list that is about to run, and of NULL when nothing does any more: a watchdog.  NULL: there is none.
     */
    void (*watch)(struct step *s);
    struct observer *observers; /* a chain: see add_observer() */
    uint64_t held_ns;           /* for so long they have held the run */
};
/* Of the whole process: what it says of how lists run is set before the first execute(). */
extern struct execution execution;

/* Issues the commands of a device's task; *done gets the event of the last one. */
void issue(const struct step *s, const struct task *t, uint32_t number, cl_uint n_wait, const cl_event *wait,
           cl_event *done);
cl_int event_status(cl_event event);
/* Ends the program where the task of that event has failed. */
void check_status(const struct step *s, const struct task *t, uint32_t number, cl_event event);
/* The times of a flight's work, of its event; told_end as event_times() has it. */
void take_times(const struct task *t, struct task_flight *flight, uint64_t *told_end);
/* Run task i of iteration `number` on this thread and wait for it; the caller keeps the list to itself.  Its times are
 * left in *flight. */
void run_alone(struct step *s, uint32_t number, size_t i, struct task_flight *flight);
/* What does that in a serial run its own way: once or several times, as if once. */
struct lone_runner {
    void *(*begin)(struct step *s); /* an iteration: what it returns is handed to the others */
    void (*run)(void *begun, uint32_t number, size_t i, struct task_flight *flight);
    void (*end)(void *begun);
};

/* ---- execute.c ------------------------------------------------------------------------------------------------- */

/* Issue iteration `number` of the list (numbers rise by one from 1, and begin anew only behind a drain): as soon as
 * the compute lanes are done with the one two before it, and no task has MOST_RUNS runs in flight.  Serial: run it, one
 * task after another, and create no thread. */
void execute(struct step *s, uint32_t number);
/* Wait for everything issued, and until no thread reads the list any more. */
void drain(struct step *s);
/* The same, but not for what stands aside: what is still on its way to the disk.  State that tasks have left elsewhere
 * comes back (s->settled). */
void drain_but_disk(struct step *s);

/* ---- retire.c -------------------------------------------------------------------------------------------------- */

/* Wait until what was issued up to iteration `number` has ended on the compute lanes, and that task's runs; retire it.
 */
void wait_task(struct step *s, const struct task *t, uint32_t number);
/* Has the compute lanes' part up to iteration `number` been retired? */
bool is_computed(const struct step *s, uint32_t number);
void wait_lanes(struct step *s);   /* wait until all that was issued has ended, without retiring it */
void retire_ended(struct step *s); /* what has ended, without waiting */
/* The latest run of a task, in iteration `number` or before, that has not been retired, or NULL. */
struct task_flight *latest_run(const struct step *s, const struct task *t, uint32_t number);

/* For the other files here. */
extern pthread_mutex_t flights_lock;             /* held while flights change, and by who asks the driver about them */
void make_room(struct step *s, uint32_t number); /* wait until iteration `number` may be issued */
void flush_lanes(const struct machine *m);       /* what was issued is submitted, on every queue */
void wait_all(struct step *s);                   /* that, and wait until all of it has been retired */
struct task_flight *open_flight(struct step *s, struct task *t, uint32_t number); /* for a run that is issued now */
/* The nth run that the lane was given, from q->retired on, and its flight. */
struct issued *queued_run(const struct queue *q, uint64_t nth);
struct task_flight *queued_flight(const struct step *s, const struct queue *q, uint64_t nth);
bool has_ended(const struct task_flight *flight);
/* It has run, and its times are known. */
void report_run(struct step *s, const struct task *t, const struct task_flight *flight);

/* ---- observe.c: who looks on ------------------------------------------------------------------------------------- */

/* Is told of every run of a task, by the thread that issues.  Any function may be NULL. */
struct observer {
    /* Task i of iteration `number` comes next: it may hold the run, and adds to execution.held_ns for how long. */
    void (*issuing)(void *context, struct step *s, uint32_t number, size_t i);
    /* A run begins its flight, with what is known by then: number and queued.  Of a task that is decided late this
     * comes when it has run, right before its end. */
    void (*issued)(void *context, const struct step *s, const struct task *t, struct task_flight *flight);
    /* It has ended; its times are known.  In the order of its lane. */
    void (*ended)(void *context, const struct step *s, const struct task *t, const struct task_flight *flight);
    void *context;
    struct observer *next; /* of the chain */
};
/* It is the caller's, and stays in the chain, behind those that were added before, until it is removed: behind a drain.
 */
void add_observer(struct observer *o);
void remove_observer(struct observer *o);
void tell_issuing(struct step *s, uint32_t number, size_t i);
void tell_issued(const struct step *s, const struct task *t, struct task_flight *flight);
void tell_ended(const struct step *s, const struct task *t, const struct task_flight *flight);

/* ---- hostlane.c: threads of host lanes and forwarders ---------------------------------------------------------- */

struct job { /* wait for events, run a host task (or nothing), complete user events */
    struct step *step;
    struct task_flight *flight;
    size_t task;
    uint32_t number; /* iteration */
    bool run;        /* the task is the host's: run it and write its times to the flight */
    /* Asked first, unless NULL: false, it does not run.  A device's task is issued only then. */
    bool (*goes)(struct step *s, const struct task *t, uint32_t number);
    /* Takes it over when it has ended; NULL: nobody does. */
    void (*ended)(struct job *job);
    cl_uint n_wait, n_complete;
    cl_event *wait, *complete;
    struct task_flight own; /* of a job that has none of its task's */
    struct job *next;       /* of its thread, or of those that wait for one, or have ended */
};
struct job *keep_job(const struct job *job); /* a copy, with its events: handed to a thread, or given up */
void give_job(struct host_thread **thread, const char *name, struct job *kept);
/* The same to a thread for what stands aside, which runs when nothing else wants the core. */
void give_job_aside(struct host_thread **thread, const char *name, struct job *kept);
void drop_job(struct job *kept);
void wait_until_idle(struct host_thread *thread); /* every job submitted has been finished; NULL is idle */
void stop_thread(struct host_thread **thread);

/* ---- late.c: tasks of which it is decided late whether they run ------------------------------------------------- */

/* Asks for a member of the rings for iteration `number`: take_member(), or not.  Called once for each iteration that
 * wants one, from any thread, when the first of its tasks that need a member could run. */
typedef void member_asker(void *context, uint32_t number);
/* From here on tasks that need a member run; before, and after stop_late(), none does.  Both after a drain. */
void start_late(struct step *s, member_asker *ask, void *context);
void stop_late(struct step *s);
/* Whether it runs is known only when it could: it needs a choice, or a member. */
bool is_decided_late(const struct task *t);
/* Does t run?  The first task that needs a member asks, for all of its iteration. */
bool decide_late(struct step *s, const struct task *t, uint32_t number);
/* A task that stands aside waits outside of its lane until its iteration has asked for a member.  Then it is given to
 * the lane, or dropped. */
void park_job(struct step *s, const struct job *job);
/* Those that have ended since it was asked last, a chain, which the caller drops. */
struct job *take_ended(struct step *s);

#endif
