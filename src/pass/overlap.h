/* overlap.h - where each layer's update runs: the question as numbers, and its answers (overlap_plan.c); the list that
 * it is asked of (overlap_list.c); moving updates (overlap_move.c); offering them to both sides (overlap_online.c); a
 * plan as text (overlap_file.c).
 *
 * A step has the device's work in list order; time 0 is its start, and all times count the device's own work but no
 * updates.  Update i may start when its gradients are there (`release`), and its parameters are needed by the next step
 * (`need`).  On the device (D) it takes `device` seconds of it; on the CPU (C) gradients come down, the host updates,
 * parameters go up, each on a machine of its own that works in one order:
 *
 *     down_i = max(down, release_i + D updates before it) + d_i
 *     cpu_i  = max(cpu, down_i, gate_i) + c_i                         gate: the norm, or the last backward
 *     up_i   = max(up, cpu_i) + h_i
 *
 * Nothing of a step is left when the next one needs it, so steps follow each other every
 *
 *     T = max(fixed + all D updates, up_i - need_i of all C updates)
 *
 * seconds: a late update of layer i delays the next step by what it exceeds need_i.  With a barrier between steps
 * need_i is 0.  Layer 0 is released last and needed first, so every update has a release and a tail, and the best
 * choice is no simple rule.
 */
#ifndef OVERLAP_H
#define OVERLAP_H

#include "../predict/predict.h"
#include "../step/edit.h"

/* ---- overlap_plan.c ---------------------------------------------------------------------------------------------- */

enum { MOST_UPDATES = 1024 }; /* what there is more stays on the device */
struct transfer {             /* an update's gradients down, or its parameters up: seconds */
    double all, least;        /* of its pieces together, and of the shortest one */
};
struct offload { /* the updates of a layer, which go together: seconds and bytes */
    double release, need, gate;
    double device, host;
    struct transfer down, up;
    double device_bytes, host_bytes; /* that it holds there if it runs there */
    bool behind_updates;             /* of the device: those released earlier delay its gradients */
    int layer;                       /* -1: none */
    char name[56];                   /* "layer 3"; of no layer "other param.0", by the parameters it updates */
    size_t first;                    /* position of its first task */
};
struct timing {
    struct offload *update; /* in order of release */
    size_t n;
    double fixed;                  /* the device's work but for these updates */
    double device_room, host_room; /* bytes for all of them */
};
enum cpu_order {
    ORDER_RELEASE, /* as gradients come */
    ORDER_NEED,    /* of those that are there, the one that is needed first */
    ORDER_FORWARD, /* the one that is needed first, there or not */
    CPU_ORDERS
};

/* The formula; barrier: between the steps. */
double plan_seconds(const struct timing *t, const bool *on_cpu, enum cpu_order order, bool barrier);
/* The order in which the CPU takes its updates, into job[]; returns how many. */
size_t order_updates(const struct timing *t, const bool *on_cpu, enum cpu_order order, size_t *job);
/* The best choice for updates in order of release, exactly, and its seconds; INFINITY: none fits into the room. */
double best_choice(const struct timing *t, bool barrier, bool *on_cpu);
/* The same for updates that wait for a gate, as if their gradients had come down by then and none waited for another on
 * its way up: a proposal, and no choice that fits takes less. */
double best_behind_gate(const struct timing *t, bool barrier, bool *on_cpu);
/* No choice and no order is faster; nor is this choice, by what its devices have to do alone. */
double least_seconds(const struct timing *t);
double least_of_choice(const struct timing *t, const bool *on_cpu);

/* Rules that decide at the end of each layer's backward, from what has gone to the CPU so far.  local: to the CPU when
 * what it still has to do takes no longer than this update on the device; slack: when its result would delay the next
 * forward by no more than that. */
void choose_locally(const struct timing *t, bool by_slack, bool *on_cpu);

/* ---- overlap_list.c ---------------------------------------------------------------------------------------------- */

enum { NOWHERE = -1 };
struct offloads { /* the updates of a list that can run on the CPU */
    struct step *step;
    struct timing timing;
    int *update_at; /* by position: which of them the task is of, or NOWHERE */
    bool timed;     /* it is known how long tasks take */
    bool gated;     /* some wait for more than their gradients */
    bool one_lane;  /* all are updated on one device, or first on it, in every step: then the formula's bounds hold */
    int layers;     /* of the whole list */
    int lanes;      /* of the host's CPU: one for each core that is left to it */
    const struct online *online; /* updates are offered to both sides, and take one in each step; NULL: decided here */
};
/* Costs NULL: the tasks have times, or nobody knows them. */
struct offloads *find_offloads(struct step *s, const struct costs *c);
void free_offloads(struct offloads *o);
/* With all updates on the CPU, one task after another. */
double serial_seconds(const struct offloads *o, const struct costs *c);

/* ---- overlap_move.c ---------------------------------------------------------------------------------------------- */

struct mover { /* moves one task after another */
    const struct offloads *list;
    struct step *step;
    struct edit *edit;
    struct device *host;
    bool alone;
    size_t position;         /* of the task that moves, in the list as it was ... */
    struct task *task;       /* ... it, or a piece of it */
    struct tensor **on_host; /* by tensor: its copy on the host, for reading */
    struct task **copied;    /* by position: the last copy of what the task there makes; NULL: none yet */
    struct task *chosen;     /* online: gradients come down behind it; the last of them */
    size_t n;                /* tasks that have moved */
    struct task *last;       /* the last one of those in the order, with its copies ... */
    size_t at;               /* ... and the position that it has come to */
};
void move_task(struct mover *m, size_t position);
/* A copy's own lane, so that it waits for nothing but its like; a list by hand has the lanes that it says. */
enum copy_lanes { OVERLAP_LANE = 9, CHOICE_LANE, STATE_LANE };
struct lane *copy_lane(const struct mover *m, struct device *d, enum lane_kind kind, enum copy_lanes nth);
/* Those updates run on the CPU, in that order; online: they are expected to.  `alone`: their gradients on the device share with nothing either, which takes more bytes, but nothing
 * waits until they have gone down.  Returns how many tasks that are. */
size_t move_updates(const struct offloads *o, struct edit *e, const bool *on_cpu, enum cpu_order order, bool alone);
/* What comes of that; the list is as it was. */
struct forecast try_updates(const struct offloads *o, const struct costs *c, const bool *on_cpu, enum cpu_order order,
                            bool alone);
/* The last task before position i that writes x, or NOWHERE. */
int find_maker(const struct step *s, size_t i, const struct tensor *x);
bool is_on_device(const struct access *a, enum memory_class class);
/* What the update changes. */
struct tensor *parameters_of(const struct task *t);

/* ---- overlap_online.c: the rules where they belong, in the running step -------------------------------------------
 */

struct online {
    bool by_slack, at_random;
    uint64_t seed;
    const struct costs *costs;
    void (*offer)(struct mover *m, const bool *expected); /* offer_updates */
};
/* All updates can run on both sides; those are expected on the CPU. */
void offer_updates(struct mover *m, const bool *expected);

/* ---- overlap_file.c: a plan as text, to be read, edited and loaded ----------------------------------------------- */

extern const char *const cpu_order_name[CPU_ORDERS];
void write_plan(const char *path, const struct timing *t, const bool *on_cpu, enum cpu_order order);
/* Ends the program (EXIT_USAGE) with the line that is wrong, or the update that is missing. */
void read_plan(const char *path, const struct timing *t, bool *on_cpu, enum cpu_order *order);

#endif
