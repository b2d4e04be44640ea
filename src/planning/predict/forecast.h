/* forecast.h - what would come of a list as it is now: how long its step takes, what memory it needs, and which budgets
 * would do.  Implemented in forecast.c, budgets.c and shortage.c.
 */
#ifndef FORECAST_H
#define FORECAST_H

#include "planning/pass/pass.h" /* brings: replanning */
#include "simulation.h"

/* Times that differ by a smaller share differ by rounding alone: they are the same. */
#define SAME_TIME 1e-9

struct span {          /* when a task runs in the steady step */
    double start, end; /* seconds from that step's start, which is the end of the step before it */
};

/* The answer to what would come of a list, placed, ordered and simulated by itself. */
struct forecast {
    struct problem *problem; /* NULL: it can be placed, and simulated */
    double excess_bytes;     /* bytes that it needs beyond the devices' budgets, summed; 0: it fits */
    double period;           /* seconds per step; NAN where it was not simulated, or its tasks' times are not known */
    double alone;            /* seconds of one step alone: the period with a barrier between steps */
    struct span *spans;      /* by position; NULL where there is no period */
    size_t n;                /* how many tasks it has */
    size_t *needed_bytes;    /* by device: bytes of its arena, as far as all fits: what a budget must be */
    size_t *peak_total;      /* by device: the most bytes held at a time, in a list that does not fit too */
    size_t *peak_position;   /* by device: the first position where so many are held */
    struct task **tasks;     /* by position */
};

/* Does the list fit into the budgets? */
static inline bool forecast_fits(const struct forecast *forecast) { return forecast->excess_bytes == 0; }

/* ---- forecast.c -------------------------------------------------------------------------------------------------- */

/* The forecast of the list as it is now, while it is edited too.  It takes milliseconds, never ends the program, and
 * leaves everything as it was: addresses, lifetimes, edges, peaks.  costs: those that simulate_list() takes.  The
 * caller frees what the forecast has with free_forecast(); its tasks are the list's own. */
struct forecast forecast_list(const struct list *list, const struct costs *costs);

/* forecast_list(), but a list whose excess_bytes are more than most_excess is not simulated, which saves four fifths of
 * the work; and what was simulated is shown to look(context, ...), unless look is NULL. */
typedef void simulation_look(void *context, const struct simulation *simulation);
struct forecast forecast_list_within(const struct list *list, const struct costs *costs, double most_excess,
                                     simulation_look *look, void *context);

/* forecast_list(), but tasks wait for data alone, and none for bytes that another tensor has had. */
struct forecast forecast_by_data(const struct list *list, const struct costs *costs);
void free_forecast(struct forecast *forecast);

/* Bytes of the host's arena with this list alone, whatever the budgets.  Everything else stays as it was. */
size_t host_bytes_of(const struct list *list);

/* Moves the forecast to the heap, for a pass's report, which frees it. */
struct forecast *keep_forecast(struct forecast forecast);

/* ---- budgets.c --------------------------------------------------------------------------------------------------- */

/* Sets the budget of each device and of the host, in bytes; 0 leaves what there is.  In a step file's machine the
 * budget is all the memory there is. */
void set_budgets(struct machine *machine, size_t each, size_t host);

/* Sets the device's budget to these bytes, if it is smaller. */
void raise_budget(struct device *device, size_t bytes);

/* For the forecast of a list that does not fit: gives the first n devices budgets that nothing exceeds; the host is one
 * of them if n is n_devices + 1.  Returns the devices as they were, for restore_limits(); the caller frees these. */
struct device *lift_limits(struct machine *machine, int n);
void restore_limits(struct machine *machine, const struct device *before, int n);

/* ---- shortage.c -------------------------------------------------------------------------------------------------- */

/* Ends the program (EXIT_USAGE) with a sentence: that a list with this forecast does not fit, and which budgets would
 * do.  option: the option that asked for the list, "--zero 3".  replans: whether the passes may make another list with
 * these budgets. */
_Noreturn void fail_too_large(struct machine *machine, const struct forecast *forecast, const char *option,
                              const struct run_facts *facts, enum replanning replans);

/* The three parts of fail_too_large(), for a caller that looks for the budgets itself.  `before` has the devices as
 * they were at first.
 *
 *     raise_budgets()               makes the budgets as large as the forecast needs
 *     describe_shortage()           a sentence, which the caller frees: the first device whose budget was too small for
 *                                   the forecast, and the task there
 *     refuse_and_name_budgets()     ends the program with this sentence and the budgets that were raised, after it has
 *                                   raised the host's to what the training's other lists need */
void raise_budgets(struct machine *machine, const struct forecast *forecast);
char *describe_shortage(const struct device *before, const struct forecast *forecast);
_Noreturn void refuse_and_name_budgets(struct machine *machine, const struct device *before, const char *shortage,
                                       const char *option, const struct run_facts *facts, enum replanning replans);

#endif
