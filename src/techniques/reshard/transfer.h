/* transfer.h - bytes along a copy plan, a tensor at a time: loading, resharding, verifying.  Implemented in transfer.c.
 *
 * Whatever is read of a checkpoint is compared with its pieces' hashes.  What does not match ends the program
 * (EXIT_FAILED) with the tensor and the bytes of the file; verify_tensor() returns that sentence instead.  A parameter
 * `tensor` is an index into the checkpoint's pieces->tensors.
 */
#ifndef TRANSFER_H
#define TRANSFER_H

#include "checkpoint.h"

/* Reads a tensor's elements, all of them in order, into `values` (NULL: the pieces are only checked).  Fails where the
 * pieces do not cover each element once, or do not have their hashes. */
void read_kept(const struct checkpoint *checkpoint, size_t tensor, float *values);
/* Reads and checks like read_kept(), but returns the problem, which the caller frees; NULL: the tensor is sound. */
struct problem *verify_tensor(const struct checkpoint *checkpoint, size_t tensor);
/* Writes the same state in the pieces of another mesh, as a checkpoint of its own, a tensor at a time.  to->pieces has
 * the pieces without places and hashes, which are filled in.  Returns the bytes of all tensors. */
uint64_t reshard(const struct checkpoint *from, struct checkpoint *to);

#endif
