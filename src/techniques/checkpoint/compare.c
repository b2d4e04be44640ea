/* compare.c - how far two arrays, or two checkpoints, are apart.  A checkpoint's tensors are put together
 * first (read_kept()), so that the two may be cut by unlike meshes.
 */
#include "checkpoint.h"

#include <math.h>

struct difference compare_floats(const float *a, const float *b, size_t n)
{
    struct difference difference = {0};
    for (size_t i = 0; i < n; i++) {
        double gap = fabs((double)a[i] - (double)b[i]);
        difference.elements += memcmp(&a[i], &b[i], sizeof *a) != 0;
        if (gap > difference.most || isnan(gap))
            difference.most = gap;
        difference.distance += gap * gap;
        difference.norm += (double)b[i] * b[i];
    }
    difference.distance = sqrt(difference.distance);
    difference.norm = sqrt(difference.norm);
    return difference;
}

struct difference compare_tensor(const struct checkpoint *a, const struct checkpoint *b, size_t tensor)
{
    size_t n = tensor_elements(&a->pieces->tensors[tensor]);
    float *a_values = allocate(n, sizeof *a_values), *b_values = allocate(n, sizeof *b_values);
    read_kept(a, tensor, a_values);
    read_kept(b, tensor, b_values);
    struct difference difference = compare_floats(a_values, b_values, n);
    free(a_values);
    free(b_values);
    return difference;
}
