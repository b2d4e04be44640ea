/* resume.h - a training as a checkpoint, and how it goes on; what the folder registers.
 *
 *     reshard_options.c   registers the folder: its options, and what is below
 *     resume.c            the parts of a training that the trainer calls
 */
#ifndef RESUME_H
#define RESUME_H

#include "checkpoint.h"
#include "trainer/train/archive.h"
#include "trainer/train/hooks.h"

/* ---- resume.c --------------------------------------------------------------------------------------------------- */

extern const struct archive archive;
extern const struct hooks reshard_hooks;
/* A checkpoint of the run as it is after that step, without its pieces.  The caller frees it with
 * free_checkpoint(). */
struct checkpoint *describe_training(const struct trainer *trainer, uint32_t step);
const json_t *recorded_options(const struct trainer *trainer); /* as the run's checkpoints have them; the run's own */

/* ---- what is registered ----------------------------------------------------------------------------------------- */

struct reshard_options {
    const char *resume; /* the path that --resume names; NULL: the run begins from nothing, or from a model */
    int keep;           /* how many checkpoints stay; 0: all */
};
extern struct reshard_options reshard_options;
extern const struct module module_reshard;

#endif
