/* simulation.h - the list of a step on a virtual clock: when its tasks would run, and how long a step takes.
 *
 *     simulate.c           runs it: simulator.h names the other files of this
 *     simulate_report.c    shows what came of it
 */
#ifndef SIMULATION_H
#define SIMULATION_H

#include "costs.h"

#include <jansson.h>

struct moment {        /* one task in one simulated step */
    double start, end; /* seconds on the virtual clock */
    bool skipped;      /* the task does not run in this step */
};

struct simulation {
    const struct list *list;
    int steps;              /* steps that were run to their end: until their times repeat, see simulate_pattern.c */
    int first, pattern;     /* the steady pattern: steps first .. first + pattern - 1, numbered from 0, the last ones */
    bool settled;           /* false: the times never repeated, and the pattern is the later half of the steps */
    struct moment *moments; /* [begun * n]; node i is task i % n of step i / n */
    double *seconds;        /* [n]: the task's time alone */
    double *steady;         /* [n]: its mean time over the pattern, longer than alone where links are shared */
    size_t by_source[COST_SOURCES]; /* how many tasks have their times from each source */
    double period;                  /* seconds from one step's end to the next one's: the mean over the pattern */
    double end;                     /* when the last step ended, in seconds on the virtual clock */
    int begun;    /* steps that were begun by then; in those after `steps`, a task without an end has not started */
    double *busy; /* by lane: seconds per step, over the time of the pattern */
};

/* ---- simulate.c -------------------------------------------------------------------------------------------------- */

/* Runs the list on a virtual clock until it is steady: lanes in order, shared links by processor sharing.  The list has
 * been placed and has its edges.  costs: NULL for a step file, which has its times.  Returns NULL, and sets
 * *simulation, which the caller frees with free_simulation().  If the times make no sense together, returns the
 * problem. */
struct problem *simulate_list(const struct list *list, const struct costs *costs, struct simulation **simulation);

struct simulation *must_simulate(const struct list *list, const struct costs *costs); /* a problem ends the program */
void free_simulation(struct simulation *simulation);

/* ---- simulate_report.c ------------------------------------------------------------------------------------------- */

/* By device, the most bytes that its tensors hold at a time, by the clock; the caller frees it. */
size_t *simulated_peaks(const struct simulation *simulation);

void print_simulation(FILE *out, const struct simulation *simulation, const struct costs *costs); /* for people */
json_t *simulation_json(const struct simulation *simulation); /* "simulation" of plan --json; the caller owns it */

/* Writes the simulated steps as a trace, like a real one.  `model` says in it what was simulated. */
void write_simulation(const struct simulation *simulation, const char *path, const char *model);

/* Simulates the list as it is now, even while it is edited, and writes the simulation as a trace.
 * src/gdb/yard.py calls this function from the debugger. */
void show_list(const struct list *list, const struct costs *costs, char *path);

#endif
