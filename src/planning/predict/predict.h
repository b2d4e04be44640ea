/* predict.h - predicting a step before it runs.
 *
 *     header         what it answers                                              implemented in
 *
 *     costs.h        how long does a task take alone?  a profile measures it,     costs.c
 *                    a description of hardware says it                            costs_file.c
 *                    what machine does the description describe?                  costs_machine.c
 *     simulation.h   when does each task run, if the list repeats?                simulate.c
 *                    a simulation for people, as JSON, as a trace                 simulate_report.c
 *     forecast.h     what would come of this list?  a planner's question          forecast.c
 *                    with which budgets?                                          budgets.c
 *                    if it does not fit, which budgets would do?                  shortage.c
 *     predict.h      what does a training use of all that?                        training_costs.c
 *                    a few steps, to measure where no file says how long          trial.c
 *                    tasks take; and the command that stores the profile          profile.c
 *                    what does a pass gain?                                       gain.c
 *     plan.h         a training whose lists are looked at, and do not run         plan.c
 *
 * A header includes those above it.  Files costs_*.c do parts of the work of costs.c, and files simulate_*.c parts of
 * that of simulate.c.  simulator.h is for simulate.c and the files simulate_*.c alone.
 *
 * The search and the techniques include this folder: they choose by how long a list would take.  So it includes none of
 * them, and of planning only console, pass and trace.
 *
 * Every number that is shown says what it is: simulated, paced or real.
 */
#ifndef PREDICT_H
#define PREDICT_H

#include "forecast.h"
#include "trainer/base/module.h"

struct settings; /* trainer/settings/settings.h */
struct trainer;  /* trainer/train/train.h */

struct predict_options {
    bool simulate;
    const char *profile, *hardware; /* files; NULL: not given, as for the two below */
    const char *what_if;
    const char *output; /* the profile that `yard profile` writes */
    const char *pace;   /* the file of the folder that paces, which sets it; NULL: nothing paces */
};
extern struct predict_options asked_predict;
extern const struct forecaster forecaster; /* planning/pass/pass.h */
extern const struct module module_predict;

/* ---- training_costs.c -------------------------------------------------------------------------------------------- */

/* How many of --hardware's devices -d N asks for; 0: it is not given, or names devices of this host. */
int n_paper_devices(const struct settings *settings);

/* The trainer's costs, from --profile, --hardware, --pace or a trial; NULL: none.  The trainer owns them. */
struct costs *costs_of(const struct trainer *trainer);

void use_trial_costs(struct costs *costs); /* takes over the costs of a trial, which later trainers have too */

/* ---- trial.c ----------------------------------------------------------------------------------------------------- */

/* Measures a few steps on random tokens or the trainer's data; they change the trainer's weights.  The caller frees
 * the costs with free_costs(). */
struct costs *measure_costs(struct trainer *trainer);

/* The engine that computes matrix products on device 0: "own" or "clblast". */
const char *engine_name(const struct trainer *trainer);

/* Where a plan needs times that no file gives, this measures them, with a trainer of its own that has no plan, and
 * whose swaps are only those that the budget needs.  Later trainers of this process have these times. */
void run_trial_for(struct settings *settings);

/* ---- profile.c --------------------------------------------------------------------------------------------------- */

enum exit_code run_profile(int argc, char **argv); /* yard profile */

#endif
