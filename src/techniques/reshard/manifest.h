/* manifest.h - what manifest.c, which writes manifests, and read_manifest.c know of each other. */
#ifndef MANIFEST_H
#define MANIFEST_H

#include "state.h"

enum {
    VERSION = 2,   /* of the form */
    HASH_LINE = 28 /* bytes of a manifest's first line, which has the hash of the others */
};
/* A manifest for many states, as a snapshot file has, says only how they are laid out.  It leaves out the fields that
 * belong to one state. */
enum manifest_of { OF_LAYOUT, OF_STATE };

/* A tensor with its pieces, as an entry of "tensors"; the caller owns it.  read_manifest.c compares entries with it. */
json_t *tensor_json(const struct checkpoint *c, const struct kept_tensor *t, enum manifest_of of);

#endif
