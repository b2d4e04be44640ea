/* kernel_args.h - the arguments of a kernel, as add_kernel() and LAUNCH() take them.  A file that adds no
 * kernels does not include this header.
 *
 *     LAUNCH(b, name, "gelu.cl", "gelu_forward", blocks(b, elements),
 *            OUT(out), IN(x), ELEMENTS(elements));
 *
 * The names are short and have no prefix, because such a line is read beside the kernel's own list of parameters: a
 * word for each.
 */
#ifndef KERNEL_ARGS_H
#define KERNEL_ARGS_H

#include "task.h"

#define IN(t) ((struct arg){.kind = ARG_TENSOR, .given = {(t), ACCESS_READ}})
#define OUT(t) ((struct arg){.kind = ARG_TENSOR, .given = {(t), ACCESS_WRITE}})
#define INOUT(t) ((struct arg){.kind = ARG_TENSOR, .given = {(t), ACCESS_BOTH}})

/* The kernel adds to what is in t, or, as for the first micro-batch of a gradient, starts anew and only writes. */
#define ACCUMULATE(t, adds) ((struct arg){.kind = ARG_TENSOR, .given = {(t), (adds) ? ACCESS_BOTH : ACCESS_WRITE}})

/* A buffer that the kernel will not touch. */
#define NO_TENSOR ((struct arg){.kind = ARG_TENSOR})
#define INT(n) ((struct arg){.kind = ARG_INT, .number = (int32_t)(n)})

/* The number of elements of an elementwise task.  A slice of the task gets its own, smaller number. */
#define ELEMENTS(n) ((struct arg){.kind = ARG_ELEMENTS, .number = (int32_t)(n)})
#define FLOAT(x) ((struct arg){.kind = ARG_FLOAT, .real = (x)})

/* A struct of cl/shared.h: the variable x, which is copied. */
#define STRUCT(x) struct_arg(&(x), sizeof(x))
struct arg struct_arg(const void *value, size_t bytes); /* task.c */

/* `bytes` bytes of local memory. */
#define LOCAL(bytes) ((struct arg){.kind = ARG_LOCAL, .n_bytes = (uint32_t)(bytes)})

#endif
