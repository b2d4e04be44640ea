/* resume.h - a training as a checkpoint, and back.
 *
 *     save_and_load.c        the devices' state into files, and from files into the devices
 *     resume.c               what a checkpoint records of its run, and how a training goes on from that
 *     checkpoint_options.c   --resume and --keep; the folder's module
 *
 *     train --save      devices ──▶ save_checkpoint() ──▶ DIR/step-N
 *     train --resume    DIR/step-N ──▶ load_checkpoint() ──▶ devices, on another mesh too
 */
#ifndef RESUME_H
#define RESUME_H

#include "checkpoint.h"
#include "trainer/settings/archive.h"
#include "trainer/train/hooks.h"
#include "trainer/train/train.h"

/* ---- save_and_load.c: the state of the devices ------------------------------------------------------------------- */

/* Writes the model's state as DIR/step-N.  The caller has set all of the checkpoint except path, pieces and bytes,
 * which are set here; the caller frees it. */
void save_checkpoint(struct model *model, const char *folder, struct checkpoint *checkpoint);

/* Loads the parameters, or all state, into the devices of the model.  Fails as read_kept() does. */
void load_checkpoint(struct model *model, struct checkpoint *checkpoint, enum loaded_state wanted);

/* ---- resume.c: whose functions the trainer calls ----------------------------------------------------------------- */

extern const struct archive archive;
extern const struct hooks checkpoint_hooks;

/* A checkpoint of the run as it is after that step, without its pieces.  The caller frees it with
 * free_checkpoint(). */
struct checkpoint *new_checkpoint(const struct trainer *trainer, uint32_t step);

const json_t *recorded_options(const struct trainer *trainer); /* as the run's checkpoints have them; the run's own */

/* ---- checkpoint_options.c ---------------------------------------------------------------------------------------- */

struct checkpoint_options {
    const char *resume; /* the path that --resume names; NULL: the run begins from nothing, or from a model */
    int keep;           /* how many checkpoints stay; or KEEP_ALL */
};
extern struct checkpoint_options asked_checkpoint;
extern const struct module module_checkpoint;

#endif
