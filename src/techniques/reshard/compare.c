/* compare.c - how far two arrays, or two checkpoints, are apart.  A checkpoint's tensors are put together first
 * (read_kept()), so that the two may be cut by unlike meshes.
 */
#include "compare.h"
#include "transfer.h"

#include <math.h>

struct difference compare_floats(const float *a, const float *b, size_t n)
{
    struct difference d = {0};
    for (size_t i = 0; i < n; i++) {
        double gap = fabs((double)a[i] - (double)b[i]);
        d.elements += memcmp(&a[i], &b[i], sizeof *a) != 0;
        if (gap > d.most || isnan(gap))
            d.most = gap;
        d.distance += gap * gap;
        d.norm += (double)b[i] * b[i];
    }
    d.distance = sqrt(d.distance);
    d.norm = sqrt(d.norm);
    return d;
}

struct difference compare_tensor(const struct checkpoint *a, const struct checkpoint *b, size_t tensor)
{
    size_t n = tensor_elements(&a->pieces->tensor[tensor]);
    float *x = allocate(n, sizeof *x), *y = allocate(n, sizeof *y);
    read_kept(a, tensor, x);
    read_kept(b, tensor, y);
    struct difference d = compare_floats(x, y, n);
    free(x);
    free(y);
    return d;
}
