/* compare.h - how far two arrays, or two checkpoints, are apart, element by element.  Implemented in compare.c. */
#ifndef COMPARE_H
#define COMPARE_H

#include "checkpoint.h"

struct difference {
    size_t elements;       /* number of elements with different bits */
    double most;           /* largest |a - b| */
    double distance, norm; /* ||a - b||, ||b|| */
};
/* Compares two arrays of n floats. */
struct difference compare_floats(const float *a, const float *b, size_t n);
/* Compares tensor pieces->tensors[tensor] of two checkpoints of models of the same sizes, whatever their meshes are.
 * Fails as read_kept() does. */
struct difference compare_tensor(const struct checkpoint *a, const struct checkpoint *b, size_t tensor);

#endif
