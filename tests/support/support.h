/* support.h - what several tests need: random arrays, comparing them, devices, running ./yard, and themselves. */
#ifndef SUPPORT_H
#define SUPPORT_H

#include "child.h"
#include "trainer/device/driver.h"

#include <jansson.h>

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

/* Random numbers, one after another; they follow from seed and row. */
struct draws {
    uint64_t seed;
    uint32_t row;
    uint64_t drawn;
};
size_t draw_below(struct draws *draws, size_t below); /* 0 to below - 1 */
int draw_between(struct draws *draws, int low, int high);

/* Normal numbers that depend on the seed only; the caller frees them. */
float *random_floats(size_t n, uint64_t seed);
float *copy_floats(const float *x, size_t n);

/* The test fails, naming `what`, the first element that differs and both values. */
void expect_same_bits(const char *what, const float *ours, const float *expected, size_t n);

/* |ours - expected| <= tolerance * (1 + |expected|) for every element; NaN is close to nothing. */
void expect_close(const char *what, const float *ours, const float *expected, size_t n, double tolerance);

/* ||a - b|| / ||b|| */
double relative_distance(const float *a, const float *b, size_t n);

/* ---- devices ----------------------------------------------------------------------------------------------------- */

/* -d for two devices that run in parallel; on a single core, for two that share it. */
const char *two_devices(void);

/* Skips the rest of a test where our own products cannot be computed: llvmpipe's loops are too short for them. */
void need_own_products(void);

/* Sets an environment variable; 0: to what it was before any test did, perhaps by tests/machines/drivers.sh. */
void set_number(const char *name, int value);

/* Devices that are opened from now on have contexts of their own, as GPUs have; false: as the environment says. */
void contexts_apart(bool apart);

void contexts_joined(void);  /* they share one context, whatever the environment says */
void restore_contexts(void); /* as the environment says: ends either of these */

/* What a tensor of a test's list holds: values of one iteration, or what goes on to the next. */
enum lifetime { TRANSIENT, PERSISTENT };

/* Opens `devices` with the vector width and work-group size forced (0: the device's own). */
struct machine *open_shaped(const char *devices, int vector, int work_group);

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* What ./yard (or $YARD) does with these words, which a shell splits. */
struct ran {
    int code;
    const char *words;       /* the command's, without the program's name */
    const char *stdout_path; /* a file with all of stdout, until the next run */
    char *out, *err;         /* the first 16 KiB of each; they last as long as the program */
};
struct ran run_yard(const char *format, ...) PRINTF_LIKE(1, 2);

/* yard must end with this code and say `part`, on stdout or stderr. */
struct ran expect_yard(int code, const char *part, const char *format, ...) PRINTF_LIKE(3, 4);

/* The one JSON object that yard writes when it succeeds; the object lasts as long as the program. */
json_t *yard_json(const char *format, ...) PRINTF_LIKE(1, 2);

/* What `yard plan` reports of these words in JSON; the plan is simulated, and its list proves right. */
json_t *verified_plan(const char *format, ...) PRINTF_LIKE(1, 2);

/* What is found by keys and indices, as in "passes.0.bound_ms"; it must be there, and a number, or a text. */
json_t *json_at(const json_t *from, const char *path);
double number_at(const json_t *from, const char *path);
const char *text_at(const json_t *from, const char *path);

/* All lines of a log, each of which must be one JSON object; and its last line.  They are valid until two more logs are
 * read. */
json_t *read_log(const char *path);
json_t *last_line(const char *path);

/* Runs a CASE() of this program in a process of its own: OpenCL does not survive a fork. */
struct outcome run_self(const char *name);

/* The case ends with `code`, and its messages contain the parts (up to a NULL) one behind another. */
void expect_case(const char *name, int code, const char *part, ...) __attribute__((sentinel));

#endif
