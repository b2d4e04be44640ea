/* predict.h - predicting a step before it runs.
 *
 *     costs      how long a task takes: from a measured profile, or from a description of hardware     costs.c
 *     paper      a machine that is only described, for plans                                           paper.c
 *     simulate   the cyclic list on a virtual clock                                                    simulate.c
 *     report     a simulation for people, as JSON, as a trace                                          report.c
 *     try        what would come of a list as it is now: a planner's question                          try.c
 *     gain       what a pass comes to; budgets.c: which ones a list needs                              gain.c
 *     trial      a few steps, to measure where nobody says how long tasks take                         trial.c
 *     profile    the command: such a trial, written as a profile                                       profile.c
 *     training   what a training uses of all that: its costs, its machine on paper                     training_costs.c
 *
 * Techniques may include this folder: they choose by how long a list would take.  So it includes no technique but
 * `pass`, and of the tools command, lists, proof and trace.
 *
 * Every number that is shown says what it is: simulated, paced or real.
 */
#ifndef PREDICT_H
#define PREDICT_H

#include "techniques/pass/pass.h" /* defines: replanning */
#include "trainer/base/module.h"
#include "trainer/step/step.h"

#include <jansson.h>

struct settings; /* trainer/train/settings.h */
struct trainer;  /* trainer/train/train.h */

/* ---- costs.c --------------------------------------------------------------------------------------------------- */

/* Both files are text: `name = value` lines, '#' starts a comment.
 *
 * A profile (yard profile -o FILE) is what one device did with one configuration.  Besides its fingerprint it has a
 * line per kind of task and lane, and per lane of copies:
 *
 *     task NAME LANE = NANOSECONDS FLOPS BYTES        median of one task of that kind; for one layer only:
 *     task NAME LANE layer=K = NANOSECONDS FLOPS BYTES
 *     link LANE = BYTES_PER_SECOND LATENCY_SECONDS    upload and download; also disk, and other lanes of the host
 *     gap LANE = SECONDS                              from one task's end to the next one's start, back to back
 *     issue = SECONDS                                 host time to issue and retire one task
 *     memory CLASS = BYTES                            peak, for people
 *
 * A hardware description (data/hardware/...) gives speeds instead, from which tasks are modelled by the roofline:
 * latency + max(flops / (flops/s), bytes / (bytes/s)).  Two lines may be left out:
 *
 *     units = N       compute units (a GPU's multiprocessors): a kernel of fewer work-groups, but for products, reaches
 *                     only that share of bytes/s
 *     vector = N      floats per vector of a CPU, whose grids and products the list then has; else it is a GPU's list
 */
enum cost_source { COST_MEASURED, COST_SCALED, COST_MODELLED, COST_GIVEN /* in a step file */, COST_SOURCES };
struct task_cost { /* a line `task` of a profile */
    char name[40];
    enum lane_kind lane;
    int layer;           /* -1: the line is for all layers that have none of their own */
    double ns;           /* the median of its time */
    double flops, bytes; /* of one task: operations; bytes read and written */
};
struct lane_speed { /* speed of copies, or of what one kind of the host's lanes does; 0: it is not given */
    double bytes_per_s;
    double latency; /* seconds */
};
struct costs {
    char *path;
    bool measured; /* true: a profile; false: a description of hardware */

    /* a profile's fingerprint, and what it measured */
    char *device, *driver, *engine, *shape;
    struct task_cost *tasks;
    size_t n_tasks, cap_tasks;
    double peak_memory[MEM_CLASSES];

    /* a description's numbers */
    char *name;
    int64_t devices;            /* how many devices there are */
    int64_t link_share;         /* how many of them share a link to the host */
    double flops;               /* FLOP/s */
    double efficiency;          /* the share of them that products reach */
    double bandwidth;           /* bytes/s */
    double launch;              /* seconds per task */
    double host_bandwidth;      /* bytes/s of the host's memory */
    double host_launch;         /* seconds per task of the host */
    size_t memory, host_memory; /* bytes */

    /* what both have */
    int64_t units, vector; /* 0: a description does not say */
    struct lane_speed speed[LANE_KINDS];
    double
        gap_seconds[LANE_KINDS]; /* seconds from task to task; 0 in a description, whose `launch` holds them already */
    double issue_seconds;        /* seconds of the host per task; 0 in a description that does not say */

    double scale_link, scale_device, scale_cpu; /* what --what-if multiplies the speeds by */
};
struct costs *read_costs(const char *path);
void free_costs(struct costs *c);
/* Apply "link=2x cpu=0.5x device=1.5x mem=8G"; memory applies to the machine's budgets. */
void apply_what_if(struct costs *c, struct machine *m, const char *text);
/* apply_what_if() for a step file's own times, links (not its disk) and memory; before passes look at them. */
void apply_what_if_to_list(struct step *s, const char *text);
/* A profile of another device, driver, engine, number of units or vector width is refused, naming the field and both
 * values; another shape is allowed: its tasks are scaled. */
void check_fingerprint(const struct costs *c, const struct device *d, const char *engine);
/* Seconds that the task takes alone; c NULL: those that a step file gives.  *source: where they come from. */
double task_seconds(const struct costs *c, const struct task *t, enum cost_source *source);
/* The links that a task occupies, NULL where there is none.  A copy between devices occupies the sender's link down and
 * the receiver's link up.  On a disk lane a copy, or a task whose time follows from its bytes, occupies the disk's. */
void links_of(const struct task *t, const struct link *link[2]);
/* Bytes per second of a copy on such links, when `load[link->index]` copies are on each; load NULL: alone. */
double link_rate(const struct link *const link[2], const int *load);
double link_latency(const struct link *const link[2]); /* seconds, the sum of both */
double given_seconds(const struct task *t); /* what a step file says; of a copy without a time, that of its links */
/* What task_seconds() says; 0 where no file says it: for work in a list without costs and times. */
double seconds_alone(const struct costs *c, const struct task *t);
/* The seconds of a copy that is in no list: that many bytes on that lane, by a task of that name. */
double seconds_of_copy(const struct costs *c, const char *name, struct lane *lane, struct device *to,
                       struct device *from, size_t bytes);
bool has_times(const struct step *s, const struct costs *c); /* are the times of all tasks known? */
/* Writes a profile; `shape` describes the configuration. */
void write_profile(const char *path, const struct costs *c, const char *shape);

/* ---- paper.c ----------------------------------------------------------------------------------------------------- */

/* A machine as the description says, without OpenCL: for plans only. */
struct machine *virtual_machine(const struct costs *c, int n_devices);
/* Gives the machine the links of a description, or the gaps and the issue time of a profile.  simulate() does it. */
void describe_speeds(struct machine *m, const struct costs *c);

/* ---- simulate.c ------------------------------------------------------------------------------------------------ */

struct moment {        /* one task in one simulated step */
    double start, end; /* seconds on the virtual clock */
    bool skipped;      /* the task does not run in this step */
};
struct simulation {
    const struct step *step;
    int steps;              /* steps that were run to their end: until their times repeat, see pattern.c */
    int first, pattern;     /* the steady pattern: steps first .. first + pattern - 1, the last ones */
    bool settled;           /* false: the times never repeated, and the pattern is the later half of the steps */
    struct moment *moments; /* [begun * n]; node i is task i % n of step i / n */
    double *seconds;        /* [n]: the task's time alone */
    double *steady;         /* [n]: its mean time over the pattern, longer than alone where links are shared */
    size_t by_source[COST_SOURCES]; /* how many tasks have their times from there */
    double period;                  /* from one step's end to the next one's: the mean over the pattern */
    double end;                     /* when the last step ended */
    int begun;                      /* all steps that were begun then; in later ones what has no end has not started */
    double *busy;                   /* by lane: seconds per step, over the time of the pattern */
};
/* Runs the list on a virtual clock until it is steady: lanes in order, shared links by processor sharing.  c NULL: a
 * step file, which has its times.  NULL, or the problem: its numbers make no sense. */
struct problem *simulate(const struct step *s, const struct costs *c, struct simulation **sim);
struct simulation *must_simulate(const struct step *s, const struct costs *c); /* a problem ends the program */
void free_simulation(struct simulation *sim);

/* ---- report.c ---------------------------------------------------------------------------------------------------- */

/* By device, the most bytes that its tensors hold at a time, by the clock; the caller frees it. */
size_t *simulated_peaks(const struct simulation *sim);
void print_simulation(FILE *out, const struct simulation *sim, const struct costs *c);
json_t *simulation_json(const struct simulation *sim);
/* The simulated steps as a trace, like a real one. */
void write_simulation(const struct simulation *sim, const char *path, const char *model);
/* Simulates the list as it is now and writes that as a trace, while it is edited too: tutorials/gdb/yard.py calls it
 * from the debugger. */
void show_list(const struct step *s, const struct costs *c, char *path);

/* ---- try.c ----------------------------------------------------------------------------------------------------- */

struct span {          /* when a task runs in the steady step */
    double start, end; /* seconds from that step's start, which is the end of the step before it */
};
/* The answer to what would come of a list, placed, ordered and simulated by itself. */
struct forecast {
    struct problem *why_not; /* NULL: it can be placed, and simulated */
    double excess_bytes;     /* bytes that it needs beyond the devices' budgets, summed; 0: it fits */
    double period;           /* seconds per step; NAN where it was not simulated, or its tasks' times are not known */
    double alone;            /* seconds of one step alone: the period with a barrier between steps */
    struct span *span;       /* by position; NULL where there is no period */
    size_t n;                /* how many tasks it has */
    size_t *needed_bytes;    /* by device: bytes of its arena, as far as all fits: what a budget must be */
    size_t *peak_total;      /* by device: the most bytes held at a time, in a list that does not fit too */
    size_t *peak_position;   /* by device: the first position where so many are held */
    struct task **task;      /* by position */
};
/* Tries the list as it is now, while it is edited too.  It takes milliseconds, ends nothing and leaves everything as it
 * was: addresses, lifetimes, edges, peaks.  Costs as for simulate(). */
struct forecast try_step(const struct step *s, const struct costs *c);
/* try_step(), but a list that needs more bytes beyond the budgets is not simulated, which is four fifths of the work;
 * and what was simulated is shown to look(), unless NULL. */
typedef void simulation_look(void *context, const struct simulation *sim);
struct forecast try_list(const struct step *s, const struct costs *c, double most_excess, simulation_look *look,
                         void *context);
/* try_step(), but tasks wait for data alone, and none for bytes that another tensor has had. */
struct forecast try_data(const struct step *s, const struct costs *c);
void free_forecast(struct forecast *f);
struct forecast *keep_forecast(struct forecast f); /* for a pass's report, which frees it */

/* ---- budgets.c -------------------------------------------------------------------------------------------------- */

/* Sets the budget of each device and of the host, in bytes; 0 leaves what there is.  In a step file's machine the
 * budget is all the memory there is. */
void set_budgets(struct machine *m, size_t each, size_t host);
/* To try lists that do not fit: gives the first n devices, of which the host is the last one, budgets that nothing
 * exceeds. Returns the devices as they were, for restore_limits(); the caller frees the array. */
struct device *lift_limits(struct machine *m, int n);
void restore_limits(struct machine *m, const struct device *before, int n);
/* Ends the program (EXIT_USAGE) with a sentence: that a list with this forecast does not fit, and which budgets would
 * do. */
_Noreturn void refuse_budget(struct machine *m, const struct forecast *f, const char *option, enum replanning replans);
/* The two halves of refuse_budget(), for a caller that looks for the budgets itself; `before` has the devices as they
 * were at first.  raise_budgets() makes the budgets as large as the forecast needs, and returns a sentence on what did
 * not fit before, which the caller frees.  refuse_budgets() ends the program with this sentence. */
char *raise_budgets(struct machine *m, const struct device *before, const struct forecast *f, const char *option);
_Noreturn void refuse_budgets(const struct machine *m, const struct device *before, const char *shortage,
                              enum replanning replans);

/* ---- a training's predictions ------------------------------------------------------------------------------------ */

struct predict_options {
    bool simulate;
    const char *profile, *hardware, *what_if;
    const char *pace; /* the file of the folder that paces, which sets it; NULL: nothing paces */
    const char *output;
};
extern struct predict_options predict_options;
/* How many of --hardware's devices -d N asks for; 0: it is not given, or names devices of this host. */
int counted_devices(const struct settings *s);
struct costs *costs_of(const struct trainer *t); /* from --profile, --hardware, --pace or a trial; NULL: none */
/* Measures a few steps on random tokens or the trainer's data; they change the trainer's weights.  The caller frees
 * the costs. */
struct costs *measure_costs(struct trainer *t);
const char *engine_name(const struct trainer *t); /* what computes matrix products on device 0: "own" or "clblast" */
/* Where a plan is to be made of times that no file gives, it measures them with a trainer that has no plan, and whose
 * swaps only fit.  Later trainers of this process have these times. */
void run_trial_for(struct settings *s);
void keep_trial(struct costs *c);          /* gives them to later trainers */
extern const struct forecaster forecaster; /* techniques/pass/pass.h */
extern const struct module module_predict;
int run_profile(int argc, char **argv); /* yard profile */

#endif
