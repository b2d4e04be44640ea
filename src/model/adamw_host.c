/* adamw_host.c - AdamW on the host: the same bits as cl/adamw.cl, which says what is computed; of a tied embedding's
 * two parts too.
 *
 * The loop has only + - * / and sqrt, each rounded correctly, in the kernel's order, and is compiled without
 * contraction; so the compiler may use vectors of any width (Makefile: -O3 for this file).  It moves 28 bytes an
 * element, 16 in and 12 out, and is as fast as memory is.
 */
#include "model.h"

#include <math.h>

#if defined __x86_64__ && defined __gnu_linux__ && defined __GNUC__ && !defined __clang__ &&                           \
    !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#define WIDEST_VECTORS __attribute__((target_clones("avx2", "default"))) /* chosen when the program starts */
#else
#define WIDEST_VECTORS
#endif

struct adamw { /* what all elements share */
    float scale, beta1, one_minus_beta1, beta2, one_minus_beta2, decay, eps, step_size, inv_sqrt_correction2;
    float more; /* added to gradients */
};

WIDEST_VECTORS static void update(float *restrict p, float *restrict m, float *restrict v, const float *restrict g,
                                  size_t n, const struct adamw *with)
{
    const struct adamw a = *with;
    for (size_t i = 0; i < n; i++) {
        float gi = (g[i] + a.more) * a.scale;
        float mi = m[i] * a.beta1 + gi * a.one_minus_beta1;
        float vi = v[i] * a.beta2 + gi * gi * a.one_minus_beta2;
        float pi = p[i] * a.decay;
        m[i] = mi;
        v[i] = vi;
        p[i] = pi - a.step_size * mi / (sqrtf(vi) * a.inv_sqrt_correction2 + a.eps);
    }
}

static void *memory_at(const struct task *t, int access) { return tensor_memory(t->access[access].tensor); }

static struct adamw read_control(const float *control, const float *state, float more)
{
    return (struct adamw){state[STATE_SCALE],
                          control[CONTROL_BETA1],
                          control[CONTROL_ONE_MINUS_BETA1],
                          control[CONTROL_BETA2],
                          control[CONTROL_ONE_MINUS_BETA2],
                          control[CONTROL_DECAY],
                          control[CONTROL_EPS],
                          control[CONTROL_STEP_SIZE],
                          control[CONTROL_INV_SQRT_CORRECTION2],
                          more};
}

/* Rows of words that the batch does not have, of elements from `first` on. */
static void update_absent(float *p, float *m, float *v, const float *g, size_t n, const int32_t *start, size_t first,
                          size_t row, const struct adamw *a)
{
    for (size_t begin = 0, end; begin < n; begin = end) {
        size_t word = (first + begin) / row;
        end = MIN((word + 1) * row - first, n);
        if (start[word] == start[word + 1])
            update(p + begin, m + begin, v + begin, g + begin, end - begin, a);
    }
}

void adamw_on_host(void *context, const struct task *task, uint32_t number)
{
    (void)context, (void)number;
    float *p = memory_at(task, 0), *m = memory_at(task, 1), *v = memory_at(task, 2);
    const float *g = memory_at(task, 3), *control = memory_at(task, 4), *state = memory_at(task, 5);
    size_t n = (size_t)task->args[6].i, n_decay = (size_t)task->args[7].i;
    bool in_parts = task->args[9].i >= 0;
    if (state[STATE_HALTED] != 0)
        return;
    struct adamw a = read_control(control, state, in_parts ? 0.0f : -0.0f);
    if (in_parts) {
        update_absent(p, m, v, g, n, memory_at(task, 6), (size_t)task->args[8].i, (size_t)task->args[10].i, &a);
        return;
    }
    update(p, m, v, g, n_decay, &a);
    a.decay = 1;
    update(p + n_decay, m + n_decay, v + n_decay, g + n_decay, n - n_decay, &a);
}

void adamw_rows_on_host(void *context, const struct task *task, uint32_t number)
{
    (void)context, (void)number;
    float *packed = memory_at(task, 0), *p = memory_at(task, 1), *m = memory_at(task, 2), *v = memory_at(task, 3);
    const float *g = memory_at(task, 4), *control = memory_at(task, 5), *state = memory_at(task, 6);
    const int32_t *order = memory_at(task, 7), *start = memory_at(task, 8);
    size_t row = (size_t)task->args[9].i, words = count_elements(task->access[1].tensor) / row;
    struct adamw a = read_control(control, state, -0.0f);
    for (size_t w = 0; w < words; w++) {
        int32_t begin = start[w], end = start[w + 1];
        if (begin == end)
            continue;
        float *new = packed + (size_t)order[begin] * row;
        memcpy(new, p + w * row, row * sizeof *p);
        if (state[STATE_HALTED] == 0)
            update(new, m + w * row, v + w * row, g + (size_t)order[begin] * row, row, &a);
        for (int32_t k = begin + 1; k < end; k++)
            memcpy(packed + (size_t)order[k] * row, new, row * sizeof *p);
    }
}

void unpack_on_host(void *context, const struct task *task, uint32_t number)
{
    (void)context, (void)number;
    float *p = memory_at(task, 0), *packed = memory_at(task, 1);
    const int32_t *order = memory_at(task, 2), *start = memory_at(task, 3);
    size_t row = (size_t)task->args[4].i, words = count_elements(task->access[0].tensor) / row;
    for (size_t w = 0; w < words; w++)
        if (start[w] < start[w + 1])
            memcpy(p + w * row, packed + (size_t)order[start[w]] * row, row * sizeof *p);
}

double measure_adamw(size_t elements)
{
    enum { LARGEST = 1 << 22, TIMES = 5 };
    size_t n = elements < LARGEST ? elements : LARGEST;
    float *all = allocate(4 * n, sizeof *all);
    double best = INFINITY;
    struct adamw a = {1, 0.9f, 0.1f, 0.99f, 0.01f, 1, 1e-8f, 1e-3f, 1, -0.0f};
    for (size_t i = 0; i < n; i++)
        all[i] = all[3 * n + i] = 1; /* what is 0, or below the smallest normal number, may take another time */
    for (int k = 0; k < TIMES; k++) {
        uint64_t start = now_ns();
        update(all, all + n, all + 2 * n, all + 3 * n, n, &a);
        best = fmin(best, 1e-9 * (double)(now_ns() - start));
    }
    free(all);
    return best * (double)elements / (double)n;
}
