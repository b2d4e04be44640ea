/* support_state.h - checkpoints without a device: of random numbers that depend on a seed, cut by any mesh. */
#ifndef SUPPORT_STATE_H
#define SUPPORT_STATE_H

#include "support.h"

/* Sizes and a mesh that fit each other, by chance: uneven heads, layers and vocabulary; shards that are empty. */
struct random_case {
    struct config config;
    struct mesh from, to; /* layers are cut; the caller frees them */
};
struct random_case random_case(uint32_t number);
struct mesh mesh_of(const struct config *c, int dp, int pp, int tp, int zero);
/* Element i of tensor t. */
float state_value(uint64_t seed, size_t tensor, size_t i);
/* A checkpoint of such values at `path`, whose parent exists. */
void write_random_state(const char *path, const struct config *c, const struct mesh *m, uint32_t step, int64_t session,
                        uint64_t seed);
/* All values of a safetensors file, of whatever dtype. */
void read_all_tensors(const char *path);
/* Fails the test unless all tensors of the checkpoint have the values of that seed. */
void expect_state(const struct checkpoint *c, uint64_t seed);
/* The same as an answer. */
bool has_state(const struct checkpoint *c, uint64_t seed);

#endif
