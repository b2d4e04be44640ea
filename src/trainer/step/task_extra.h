/* task_extra.h - what passes, proofs, forecasts and techniques ask of a task, beside what every task has (task.h).  In
 * most tasks nearly all of it is zero.  A first reading skips this header, and when.h, which says in which iterations a
 * task runs.
 */
#ifndef TASK_EXTRA_H
#define TASK_EXTRA_H

#include "when.h"

/* ---- the types of its fields ------------------------------------------------------------------------------------- */

/* Enqueues the task's commands of `iteration` on its lane's queue, after n_wait events.  *done gets the event of the
 * last command, which the caller releases. */
typedef void enqueue_function(const struct task *task, uint32_t iteration, cl_uint n_wait, const cl_event *wait_list,
                              cl_event *done);

/* A stand-in on the host: how the host would do the task's work, with accesses and args in the same order. */
struct host_version {
    /* A host_function.  NULL: the host cannot do it, or, in a list of a step file, it is only planned. */
    void (*function)(void *argument, const struct task *task, uint32_t iteration);
    double seconds; /* how long it would take there; NAN: not said */
};

/* Commands of a task that are no single kernel and no copy (ACT_OWN), such as those of CLBlast. */
struct own_commands {
    enqueue_function *enqueue;
    /* It is called before the first instance, so that `enqueue` need not compile; or NULL. */
    void (*compile)(const struct task *task);
    /* Its event is that of its last command alone, so its bar begins where the lane's task before it ended. */
    bool only_last_event;
};

/* A gate.  Each task that waits at the gate waits for all tasks of its iteration that open it, as if it read what they
 * write. */
enum gate { GATE_NONE, GATE_OPENS, GATE_WAITS };

/* A part of the model's state. */
struct state_range {
    int rank, unit;        /* a unit of the model, as far as the rank has it */
    struct range elements; /* which ones of its parameters, and of Adam's m and v alike */
};

/* ---- the fields -------------------------------------------------------------------------------------------------- */

struct task_extra {
    /* Updates: what can be done with one. */
    bool elementwise;            /* it may be cut into slices: see set_elementwise() */
    size_t slice_begin;          /* a slice's: its bytes from the start of the uncut task */
    struct host_version on_host; /* it may move to the host */
    struct state_range state;    /* the state that this update makes anew, or that this task stores */

    /* Set when the task is added.  A task that takes another one's place gets both numbers from it. */
    uint64_t origin; /* a number that a task shares with its slices, its repeats and its stand-ins; proofs compare it */
    int message;     /* a number that all copies of the same bytes share, see add_broadcast(); 0: none */

    /* When it runs, and how long: the same for all that run, simulate or print a list. */
    struct when when;
    struct condition condition;
    struct slot_use slot;
    enum gate gate; /* depend() makes edges of it */
    double seconds; /* how long it takes on its lane, for the simulation; NAN: not said */

    /* Tasks that are no single kernel of cl/. */
    struct own_commands commands; /* ACT_OWN */
    size_t argument_bytes;        /* size in bytes of `argument`, if the task owns it and frees it; 0: it does not */
    bool partial; /* it leaves part of what it writes unwritten, and nothing reads that part; read by proofs */
};

#endif
