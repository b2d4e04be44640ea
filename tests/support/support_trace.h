/* support_trace.h - an example of a trace whose numbers are worked out by hand, and `yard trace` run on it. */
#ifndef SUPPORT_TRACE_H
#define SUPPORT_TRACE_H

#include "planning/trace/stats.h"
#include "support.h"

#include <jansson.h>

/* ---- the example ----------------------------------------------------------------------------------------------------
 *
 * Four lanes, the last a second compute lane of the same device; times in microseconds.  Step 2 begins before step 1
 * ends.  Steps end at 600, 700, 820 and 930, so they are 100, 120 and 110 apart.
 *
 *            step 1      step 2                step 3                step 4
 *   load       0-100     550-620               640-710               760-830
 *   fwd 0    100-300     630-650               710-740               835-850, queued 832
 *   fwd 1    300-500     650-680               740-770               850-880
 *   adamw    500-600     680-700               770-820               880-930
 *   side                 635-640               712-717               840-850
 *   eval                                                             1000-1040, once, in a list of its own
 */
enum { LOAD, FWD0, FWD1, ADAMW, SIDE, EVAL, N_TASKS };
extern struct trace_device example_devices[2];
extern struct trace_lane example_lanes[4];
extern struct trace_edge example_edges[4];
extern struct trace_task example_tasks[N_TASKS];
extern uint32_t example_uses[4];
extern const struct trace example_trace; /* the tables above, without records */

/* An instance of a task; times in microseconds. */
struct task_run {
    uint32_t step, task;
    unsigned start, end, queued;
};
extern const struct task_run example_runs[20];

/* Writes the run into a trace that begins at `zero` ns; its times are multiplied by `scale`. */
void put_run(struct trace_writer *w, const struct task_run *x, uint64_t zero, unsigned scale);

/* A file of this test's folder with these tables and runs; returns its path. */
const char *make_trace(const char *name, const struct trace *with, const struct task_run *runs, size_t n);
const char *make_example(const char *name); /* the same of the example */

uint64_t in_ns(unsigned microseconds);
void *read_bytes(const char *path, size_t *n); /* of a file, unpacked; the caller frees them */
void expect_near(double a, double b);          /* fails unless they are equal within rounding */

/* ---- running yard trace ------------------------------------------------------------------------------------------ */

struct command {
    int argc;
    char *argv[8];
    const char *out; /* a file for its stdout; NULL: that goes nowhere */
};
#define COMMAND(...) (&(struct command){COUNT(((char *[]){__VA_ARGS__})), {__VA_ARGS__}, NULL})

void run_in_child(void *command); /* runs `yard trace`, and ends the process with its exit code */

/* What the command writes on stdout, in a process of its own; the caller frees it. */
char *run_for_output(struct command *command, int expected);
json_t *run_for_json(struct command *command, int expected); /* the same, as JSON */
void expect_narrow(const char *text);                        /* fails if a line has more than 100 columns */

/* The object of an array whose `key` is this name. */
const json_t *object_named(const json_t *array, const char *key, const char *name);

#endif
