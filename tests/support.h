/* support.h - what several tests need: random arrays, comparing them, running ./yard, running themselves again. */
#ifndef SUPPORT_H
#define SUPPORT_H

#include "../src/train/train.h"
#include "child.h"

/* ---- arrays ----------------------------------------------------------------------------------------------------- */

/* Normal numbers that depend on the seed only; the caller frees them. */
float *random_floats(size_t n, uint64_t seed);
float *copy_floats(const float *x, size_t n);
/* The test fails, naming `what`, the first element that differs and both values. */
void expect_same_bits(const char *what, const float *ours, const float *expected, size_t n);
/* |ours - expected| <= tolerance * (1 + |expected|) for every element; NaN is close to nothing. */
void expect_close(const char *what, const float *ours, const float *expected, size_t n, double tolerance);
/* ||a - b|| / ||b|| */
double relative_distance(const float *a, const float *b, size_t n);

/* ---- devices ---------------------------------------------------------------------------------------------------- */

/* -d for two devices that run in parallel; on a single core, for two that share it. */
const char *two_devices(void);
/* Skips the rest of a test where our own products cannot be computed: llvmpipe's loops are too short for them. */
void need_own_products(void);
/* Sets an environment variable; 0: to what it was before any test did, perhaps by tests/drivers.sh. */
void set_number(const char *name, int value);
/* Give devices opened from now on contexts of their own, as GPUs have; false: again as the environment says. */
void contexts_apart(bool apart);
void contexts_joined(void); /* whatever the environment says; contexts_apart(false) ends it */
/* Opens `devices` with the vector width and work-group size forced (0: the device's own). */
struct machine *open_shaped(const char *devices, int vector, int work_group);

/* ---- trainers --------------------------------------------------------------------------------------------------- */

/* Settings as `yard train` has them after these words; short warm-up, values kept for verify. */
struct settings *settings_of(const char *words);
struct state { /* parameters of one rank, then Adam's m and v of all units */
    float *values;
    size_t n, n_parameters;
};
struct state read_state(struct trainer *t, int rank); /* the caller frees the values */
struct state read_whole_state(struct trainer *t);     /* of all ranks, as on one device */
/* What ranks keep alike is the same to the bit: all of a parameter that is not cut, and the same part of one that is.
 */
void expect_equal_replicas(const struct trainer *t, const char *words);

/* ---- programs --------------------------------------------------------------------------------------------------- */

/* What ./yard (or $YARD) does with these words, which a shell splits. */
struct ran {
    int code;
    const char *stdout_path; /* all of it, until the next run */
    char out[16384], err[8192];
};
struct ran run_yard(const char *format, ...) PRINTF_LIKE(1, 2);
/* Runs a CASE() of this program in a process of its own: OpenCL does not survive a fork. */
struct outcome run_self(const char *name);
/* The case ends with `code` and says a sentence that contains each of the parts (up to a NULL). */
void expect_case(const char *name, int code, const char *part, ...);

#endif
