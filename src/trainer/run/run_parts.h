/* run_parts.h - what the files of this folder know of each other.  Other folders need run.h alone, or also
 * lane_instances.h.
 *
 *     list --> running --> task_instances, by task --> task_flight, by instance in flight <-- job
 *                 |                                    ^
 *                 |------> lane_instances, by lane ---> instance, which has its task and iteration
 *                 `------> late_tasks ------> jobs that are parked
 *
 * A *flight* is an instance that has been issued and is not retired yet:
 *
 *     issue     begin_flight(), tell_issued()                     the instance is in flight, and among its lane's
 *     look      nth_instance(), nth_flight(), has_ended()
 *     retire    note_end(), which calls tell_ended()              its times are known, and its place is free
 *
 * All this belongs to the thread that issues, apart from jobs.  Another thread that looks at flights holds
 * flights_lock.  A job belongs to the thread that has it, which may write its flight's times, `work` and `skipped`,
 * until `done` ends.
 */
#ifndef RUN_PARTS_H
#define RUN_PARTS_H

#include "lane_instances.h" /* brings: lane_instances, instance, flights_lock */
#include "trainer/device/driver.h"

/* ---- instances, by task ------------------------------------------------------------------------------------------ */

struct task_instances {                         /* the instances of one task */
    cl_kernel kernel;                           /* NULL: the task launches none */
    uint32_t issued, retired;                   /* how many instances have been */
    cl_event parked;                            /* the end of the last one that was parked; NULL: none was */
    struct task_flight flights[MOST_IN_FLIGHT]; /* those in flight: instance k is at k % MOST_IN_FLIGHT */
};

/* ---- flights.c --------------------------------------------------------------------------------------------------- */

/* A flight for an instance that is issued now, which is the last of its lane's.  The list owns it. */
struct task_flight *begin_flight(struct list *list, const struct task *task, uint32_t iteration);

/* Call it when the instance has ended: takes its times, if nobody has written them, and calls note_end().  If the task
 * might have been skipped at the last moment, observers are told only now that it was issued.  If it was skipped, they
 * are told nothing. */
void finish_flight(struct list *list, const struct task *task, struct task_flight *flight);

/* Call it when the task has run and its times are known: notes them for the iteration, and tells observers. */
void note_end(struct list *list, const struct task *task, const struct task_flight *flight);

/* The first of the lane's instances has ended: finishes its flight, and frees its place. */
void retire_first(struct list *list, struct lane_instances *lane_instances);

/* ---- wait.c ------------------------------------------------------------------------------------------------------ */

void wait_to_issue(struct list *list, uint32_t iteration); /* waits until that iteration may be issued */
void flush_lanes(const struct machine *machine);           /* submits what was issued, on every queue */

/* ---- alone.c ----------------------------------------------------------------------------------------------------- */

/* Must the task be issued with nothing else in flight? */
bool needs_to_be_alone(const struct list *list, const struct task *task);

/* ---- serial.c ---------------------------------------------------------------------------------------------------- */

void execute_serial(struct list *list, uint32_t iteration); /* runs that iteration of the list, and waits for its end */

/* ---- issue.c ----------------------------------------------------------------------------------------------------- */

struct issue { /* an instance that is being issued, and the events that it waits for */
    struct list *list;
    const struct task *task;
    uint32_t iteration;
    cl_uint n_wait;
    cl_event *wait_list; /* running->wait_list, which is used anew for each instance; flights own the events */
};

/* Puts the commands of a device's task into its lane's queue; *done gets the event of the last one, which the caller
 * releases. */
void enqueue(const struct issue *issue, cl_event *done);

cl_int event_status(cl_event event); /* CL_COMPLETE, another state, or, below 0, the error that it ended with */

/* Ends the program, since the task has failed with that status. */
_Noreturn void fail_task(const struct list *list, const struct task *task, uint32_t iteration, cl_int status);

/* Sets the flight's times to those of its event `work`.  lane_free: when the task before it on its lane ended, in ns on
 * the host's clock.  driver_end: as in event_times(). */
void take_times(const struct task *task, struct task_flight *flight, uint64_t lane_free, uint64_t *driver_end);

/* ---- observe.c: these call the functions of the same name that observers have ------------------------------------ */

void tell_issuing(struct list *list, const struct task *task, uint32_t iteration);
void tell_issued(const struct list *list, const struct task *task, struct task_flight *flight);
void tell_ended(const struct list *list, const struct task *task, const struct task_flight *flight);

/* ---- jobs, and the threads that run them: job.c, hostlane.c, thread.c -------------------------------------------- */

struct job;

/* What a thread does when the events of a job have ended: well (CL_COMPLETE), or with an error.  It takes the job over,
 * and at last calls end_job().  Here are two; pacer.c has another, and so has late.c, where an instance that stood
 * aside keeps its job until it is retired. */
typedef void job_function(struct job *job, cl_int status);
void run_host_task(struct job *job, cl_int status); /* runs a task of the host */
void end_job(struct job *job, cl_int status); /* completes the events by which tasks wait for the job, and frees it */
void do_host_task(struct job *job);           /* calls the task's function, and writes the times of its instance */

struct job { /* what a thread is given: it waits for events, and then calls the job's function */
    job_function *when_ready;
    struct list *list;
    struct task_flight *flight;
    const struct task *task;
    uint32_t iteration;
    cl_uint n_wait, n_complete;
    cl_event *wait_list;                 /* those that it waits for; the job owns the array, and retains the events */
    cl_event complete[MOST_DEVICES + 1]; /* those that it is to complete, at most one in each context; retained too */
    struct job *next;                    /* the next one in its chain */
};

struct job_chain {
    struct job *first, *last; /* first is NULL where the chain is empty; last then has no meaning */
};
void append_job(struct job_chain *chain, struct job *job);
struct job *take_job(struct job_chain *chain); /* takes the first one out of the chain; NULL: it is empty */

/* A job for an instance that is being issued, whose flight is given; give it to a thread, or to free_job().  The first
 * waits for the same events as the instance, the second for none yet. */
struct job *new_job(const struct issue *issue, struct task_flight *flight, job_function *when_ready);
struct job *new_job_without_waits(const struct issue *issue, struct task_flight *flight, job_function *when_ready);

void set_waits(struct job *job, const cl_event *events, cl_uint n); /* the job waits for these, and no others */

/* Makes a user event of that context, which the job is to complete.  The caller releases it. */
cl_event add_user_event(struct job *job, int context);

void complete_events(const struct job *job, cl_int status); /* with this status, CL_COMPLETE or an error */

void free_job(struct job *job);

/* Gives the job to the thread of its lane, with the user events by which other tasks wait for the task. */
void give_to_lane(struct job *job);

struct host_thread {
    pthread_t thread;
    pthread_mutex_t lock;   /* guards the fields below */
    pthread_cond_t changed; /* one of them has changed */
    struct job_chain jobs;  /* those that have not been taken */
    bool busy;              /* a job has been taken and not finished */
    bool stop;              /* the thread is to end when it has no more jobs */
};

/* What a thread of a lane is for.  It is started when it is given its first job, so a serial run has none.
 *
 *     TASK_THREAD     runs a host lane's tasks, and decides for a device whether a copy is skipped (late.c)
 *     FORWARDER       completes user events of other contexts when this lane's events end
 *     ASIDE_THREAD    runs the jobs that nothing in the training waits for
 */
enum thread_kind { TASK_THREAD, FORWARDER, ASIDE_THREAD, THREAD_KINDS };

/* Gives a job to this thread of the lane, which takes it over. */
void give_job(struct lane *lane, enum thread_kind kind, struct job *job);

/* Waits until all lanes' threads of this kind have finished their jobs. */
void wait_for_threads(const struct machine *machine, enum thread_kind kind);

/* ---- forwarders: forwarder.c ------------------------------------------------------------------------------------- */

/* A job that waits for the end of the instance's commands, the flight's `work`. */
struct job *new_forwarded_job(const struct issue *issue, struct task_flight *flight, job_function *when_ready);

/* For each other context where tasks wait for this instance, the job is to complete a user event there. */
void add_events_of_contexts(struct job *job);

/* Gives a forwarded job to the forwarder of its lane, with user events in the other contexts where tasks wait for the
 * instance. */
void forward_end(struct job *job);

/* ---- late.c: tasks that may be skipped at the last moment -------------------------------------------------------- */

/* What late.c knows of a list whose tasks that need a slot run. */
struct late_tasks {
    slot_asker *ask;
    void *context;           /* the first argument of `ask` */
    pthread_mutex_t lock;    /* guards the fields below, and is held while `ask` is called, which waits for nothing */
    uint32_t last_request;   /* the last iteration that has asked */
    struct job_chain parked; /* jobs whose iterations have not asked, in list order */
    struct job_chain ended;  /* parked jobs that have ended, in the order of their ends */
};

/* Hands a task of which is_decided_late() says yes to the thread of its lane. */
void issue_late(const struct issue *issue);

/* Parks a job for a task that stands aside: it waits outside of its lane until its iteration has asked for a slot.
 * Then it is given to a thread, or freed. */
void park_task(struct issue *issue);

/* Does the task run in this iteration?  To be called when all that it waits for has ended.  The first task of an
 * iteration that needs a slot asks for one, for the whole iteration. */
bool decide_late(struct list *list, const struct task *task, uint32_t iteration);

/* Lets the calling thread run only when no other one wants the core. */
void make_idle(void);

/* ---- pacer.c: lists with a pacer --------------------------------------------------------------------------------- */

/* Lets a device's task wait until the pacer has released the task before it on its lane.  The queue alone would wait
 * only until that task's work has ended. */
void wait_for_turn(struct issue *issue);

/* Issues a device's task of a list with a pacer, which runs for certain. */
void issue_paced(const struct issue *issue, struct task_flight *flight);

/* The instance has ended: if its list has a pacer, returns when this releases the instance. */
void hold_back(const struct job *job);

#endif
