/* progress.h - what a run shows of itself, on the terminal and in the log. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include "train.h"

/* Begins the log, and prints what is trained.  The caller passes it to end_progress(), which frees it. */
struct progress *begin_progress(struct trainer *trainer);

/* Adds the step to the log, and prints its line where one is due.  Call it for each step in turn. */
void show_step(struct progress *progress, uint32_t step, const struct result *result);

/* loss: in nats per token, after that step; it is printed and goes to the log. */
void show_evaluation(struct progress *progress, uint32_t step, double loss);

/* Closes the log, shows the mean speed of a run that took some time and was not interrupted, and frees the progress.
 * Returns EXIT_OK, or EXIT_IO where the log was lost. */
enum exit_code end_progress(struct progress *progress);

/* Says what the run has kept, and with which command it goes on.  step: the last one. */
void show_end(struct trainer *trainer, uint32_t step);

uint64_t run_begin_ns(const struct trainer *trainer); /* now_ns() when the run began */

#endif
