/* support_kernels.h - one device in all shapes of the kernels, and running one kernel on it.
 *
 *     for (size_t shape = 0; take_shape(shape); shape++) {
 *         RUN("elementwise.cl", "fill", blocks_of(n), ARRAY(x, n), REAL(1), WHOLE(n));   x is what the kernel left
 *     }
 *
 * A shape is a vector width (VEC) and a work-group size (WG): what another CPU or a GPU would choose.  Each array that
 * a kernel is given has guard words after it.
 */
#ifndef SUPPORT_KERNELS_H
#define SUPPORT_KERNELS_H

#include "reference.h"
#include "support.h"

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

enum { SHAPES = 6 };
extern struct machine *machines[SHAPES]; /* the first device, opened in each shape; machines[0] is in its own */
extern struct machine *machine;          /* the machine of the shape under test, */
extern struct device *device;            /* and its device, whose kernels are tested: take_shape() sets both */

void open_shapes(void);  /* is called in an ALWAYS() before the first test, */
void close_shapes(void); /* and this one after the last */

/* Puts that shape under test; false behind the last one.  take_shape(0): the shape that the device has. */
bool take_shape(size_t shape);

/* Calls the check in every shape, with each of these n sizes. */
void check_in_shapes(void (*check)(int size), const int *sizes, size_t n);

/* ---- running one kernel ------------------------------------------------------------------------------------------ */

struct value { /* an argument: an array of the host with its elements, or a number */
    enum { IS_ARRAY, IS_WHOLE, IS_REAL } kind;
    void *host;
    size_t n;
    int i;
    float f;
};
#define ARRAY(x, elements) ((struct value){.kind = IS_ARRAY, .host = (void *)(uintptr_t)(x), .n = (size_t)(elements)})
#define WHOLE(x) ((struct value){.kind = IS_WHOLE, .i = (x)})
#define REAL(x) ((struct value){.kind = IS_REAL, .f = (x)})

/* Runs the kernel with so many work-groups; the arrays then hold what it left.  Fails if a guard word has changed. */
void run_kernel(const char *file, const char *kernel, size_t n_groups, const struct value *args, size_t n);
#define RUN(file, kernel, groups, ...)                                                                                 \
    run_kernel(file, kernel, (size_t)(groups), (struct value[]){__VA_ARGS__}, COUNT(((struct value[]){__VA_ARGS__})))

/* Work-groups that cover n elements, or n columns. */
size_t blocks_of(int n);
size_t columns_of_groups(int n);

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

/* x and its twin for the reference; the caller frees both with free_twins(). */
struct twins {
    float *ours, *expected;
    size_t n;
};
struct twins twins(int n, uint64_t seed);
void free_twins(struct twins *t);
void expect_same_twins(const char *what, struct twins *t);
void expect_close_twins(const char *what, struct twins *t, double tolerance); /* expect_close() says what that means */

enum { LENGTHS = 7 };
extern const int lengths[LENGTHS]; /* of arrays: around a vector, around a block of 4096, and of three blocks */

#endif
