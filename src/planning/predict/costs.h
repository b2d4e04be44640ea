/* costs.h - how long tasks take: from a measured profile, or from a description of hardware.  Implemented in costs.c;
 * the files are read and written in costs_file.c, machines that are only described are made in costs_machine.c.
 *
 * Both files are text: `name = value` lines, '#' starts a comment.
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
#ifndef COSTS_H
#define COSTS_H

#include "trainer/step/list.h"

/* Where a task's time comes from. */
enum cost_source {
    COST_MEASURED, /* a profile has such a task, of the same FLOPs and bytes */
    COST_SCALED,   /* a profile has such a task of another size */
    COST_MODELLED, /* the roofline, or a link's rate and latency */
    COST_GIVEN,    /* a step file says it */
    COST_SOURCES
};

struct task_cost { /* a line `task` of a profile */
    char name[TASK_NAME];
    enum lane_kind lane;
    int layer;           /* NONE: the line is for all layers that have none of their own */
    double ns;           /* the median of its time */
    double flops, bytes; /* one task's operations; the bytes that it reads and writes */
};

struct lane_speed { /* speed of copies, or of what one kind of the host's lanes does; 0: it is not given */
    double bytes_per_s;
    double latency; /* seconds */
};

enum { MOST_PAPER_DEVICES = 1024 }; /* the devices that a plan can use */

struct costs {
    char *label;   /* what messages call them: the path of their file, "a trial" or "a step file" */
    bool measured; /* true: a profile; false: a description of hardware */

    /* a profile's fingerprint, and what it measured */
    char *device, *driver, *engine, *shape;
    struct task_cost *tasks;
    size_t n_tasks, cap_tasks;
    double peak_memory[MEM_CLASSES]; /* bytes of device 0 */

    /* a description's numbers */
    char *name;
    int64_t devices;            /* how many devices there are */
    int64_t link_share;         /* how many of them share a link to the host */
    double flops;               /* FLOP/s that a device could reach */
    double efficiency;          /* the share of these that products do reach */
    double bandwidth;           /* bytes/s of a device's memory */
    double launch;              /* seconds that each task of a device takes besides its work */
    double host_bandwidth;      /* bytes/s of the host's memory */
    double host_launch;         /* seconds that each task of the host takes besides its work */
    size_t memory, host_memory; /* bytes of a device, and of the host */

    /* what both have */
    int64_t units;  /* compute units of a device; 0: a description does not say */
    int64_t vector; /* floats per vector; 0: a description does not say, since it is of a GPU */
    struct lane_speed speeds[LANE_KINDS];
    double gap_seconds[LANE_KINDS]; /* from task to task; 0 in a description, whose `launch` has them already */
    double issue_seconds;           /* the host's time for each task; 0 in a description that does not say */

    double scale_link, scale_device, scale_cpu; /* what --what-if multiplies the speeds by */
};

/* Costs that know no task's time yet, and scale no speed.  The caller frees them with free_costs(). */
struct costs *new_costs(const char *label);
void add_task_cost(struct costs *costs, struct task_cost cost);

/* Reads a profile or a description.  What is wrong in the file ends the program (EXIT_USAGE) with its line.  The caller
 * frees the costs with free_costs(). */
struct costs *read_costs(const char *path);
void free_costs(struct costs *costs);

/* Applies --what-if, "link=2x cpu=0.5x device=1.5x mem=8G": speeds to costs, memory to the machine's budgets.  A wrong
 * word ends the program (EXIT_USAGE). */
void apply_what_if(struct costs *costs, struct machine *machine, const char *text);

/* Does what apply_what_if() does, to a step file's own times, links (not its disk) and memory.  Call it before
 * passes look at these. */
void apply_what_if_to_list(struct list *list, const char *text);

/* Ends the program (EXIT_USAGE) if the profile is of another device, driver, engine, number of units or vector width:
 * the message has the field and both values.  Another shape is allowed: its tasks are scaled. */
void refuse_if_other_fingerprint(const struct costs *costs, const struct device *device, const char *engine);

/* Seconds that the task takes alone; costs NULL: those that a step file gives.  *source: where they come from. */
double task_seconds(const struct costs *costs, const struct task *task, enum cost_source *source);

/* The links that a task occupies, NULL where there is none.  A copy between devices occupies the sender's link down and
 * the receiver's link up.  On a disk lane a copy, or a task whose time follows from its bytes, occupies the disk's. */
void links_of(const struct task *task, const struct link *links[2]);

/* Bytes per second of a copy on such links, where copies[i] copies are on links[i], itself one of them; NULL: it is
 * alone.  INFINITY: it has no link. */
double link_rate(const struct link *const links[2], const size_t *copies);

double link_latency(const struct link *const links[2]); /* seconds, the sum of both */
double given_seconds(const struct task *task); /* what a step file says; of a copy without a time, that of its links */

/* The time that task_seconds() says; 0 where no file says it: for work in a list without costs and times. */
double seconds_alone(const struct costs *costs, const struct task *task);

/* The seconds of a copy that is in no list: that many bytes on that lane, by a task of that name. */
double seconds_of_copy(const struct costs *costs, const char *name, struct lane *lane, struct device *to,
                       struct device *from, size_t bytes);

bool has_times(const struct list *list, const struct costs *costs); /* are the times of all tasks known? */

/* Writes a profile of what costs has, in place of any file of that path.  `shape` describes the configuration. */
void write_profile(const char *path, const struct costs *costs, const char *shape);

/* ---- costs_machine.c --------------------------------------------------------------------------------------------- */

/* A machine of n_devices devices as the description says, without OpenCL: for plans only.  The caller frees it with
 * close_machine(). */
struct machine *virtual_machine(const struct costs *costs, int n_devices);

/* Gives the machine the links of a description, or the gaps and the issue time of a profile, as simulate_list()
 * does. */
void set_speeds(struct machine *machine, const struct costs *costs);

#endif
