/* save_and_load.h - the state of the devices as a checkpoint, and back.  Implemented in save_and_load.c. */
#ifndef SAVE_AND_LOAD_H
#define SAVE_AND_LOAD_H

#include "checkpoint.h"
#include "trainer/train/archive.h" /* defines: loaded_state */

/* Writes the model's state as DIR/step-N.  The caller has set all of the checkpoint except path, pieces and bytes,
 * which are set here; the caller frees it. */
void save_checkpoint(struct model *model, const char *folder, struct checkpoint *checkpoint);
/* Loads the parameters, or all state, into the devices of the model.  Fails as read_kept() does. */
void load_checkpoint(struct model *model, const struct checkpoint *checkpoint, enum loaded_state wanted);

#endif
