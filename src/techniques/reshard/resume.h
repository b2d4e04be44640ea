/* resume.h - a training as a checkpoint, and how it goes on: resume.c, whose functions the trainer calls. */
#ifndef RESUME_H
#define RESUME_H

#include "checkpoint.h"
#include "trainer/train/archive.h"
#include "trainer/train/hooks.h"

extern const struct archive archive;
extern const struct hooks reshard_hooks;
/* A checkpoint of the run as it is after that step, without its pieces.  The caller frees it with
 * free_checkpoint(). */
struct checkpoint *describe_training(const struct trainer *trainer, uint32_t step);
const json_t *recorded_options(const struct trainer *trainer); /* as the run's checkpoints have them; the run's own */

#endif
