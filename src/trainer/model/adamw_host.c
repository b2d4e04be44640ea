/* adamw_host.c - AdamW on the host: the same bits as cl/adamw.cl, which says what is computed.
 *
 * The loop has only + - * / and sqrt, each rounded correctly, in the kernel's order, and is compiled without
 * contraction; so the compiler may use vectors of any width (Makefile: -O3 for this file).  It moves 28 bytes an
 * element, 16 in and 12 out, and is as fast as memory is.
 */
#include "adamw_host.h"
#include "model.h"

#include <math.h>

#if defined __x86_64__ && defined __gnu_linux__ && defined __GNUC__ && !defined __clang__ &&                           \
    !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#define WIDEST_VECTORS __attribute__((target_clones("avx2", "default"))) /* chosen when the program starts */
#else
#define WIDEST_VECTORS
#endif

WIDEST_VECTORS void update_elements(float *restrict p, float *restrict m, float *restrict v, const float *restrict g,
                                    size_t n, const struct adamw *with)
{
    const struct adamw a = *with;
    for (size_t i = 0; i < n; i++) {
        float gi = g[i] * a.scale;
        float mi = m[i] * a.beta1 + gi * a.one_minus_beta1;
        float vi = v[i] * a.beta2 + gi * gi * a.one_minus_beta2;
        float pi = p[i] * a.decay;
        m[i] = mi;
        v[i] = vi;
        p[i] = pi - a.step_size * mi / (sqrtf(vi) * a.inv_sqrt_correction2 + a.eps);
    }
}

static float *memory_at(const struct task *task, int access) { return tensor_memory(task->accesses[access].tensor); }

void adamw_on_host(void *argument, const struct task *task, uint32_t iteration)
{
    (void)argument;
    (void)iteration;
    float *values = memory_at(task, ADAMW_P);
    float *m = memory_at(task, ADAMW_M);
    float *v = memory_at(task, ADAMW_V);
    const float *gradient = memory_at(task, ADAMW_G);
    const float *control = memory_at(task, ADAMW_CONTROL);
    const float *verdict = memory_at(task, ADAMW_VERDICT);
    size_t n = (size_t)task->args[ADAMW_N].number;
    size_t n_decay = (size_t)task->args[ADAMW_N_DECAY].number;
    if (verdict[VERDICT_HALTED] != 0)
        return;
    struct adamw a = {.scale = verdict[VERDICT_SCALE],
                      .beta1 = control[CONTROL_BETA1],
                      .one_minus_beta1 = control[CONTROL_ONE_MINUS_BETA1],
                      .beta2 = control[CONTROL_BETA2],
                      .one_minus_beta2 = control[CONTROL_ONE_MINUS_BETA2],
                      .decay = control[CONTROL_DECAY],
                      .eps = control[CONTROL_EPS],
                      .step_size = control[CONTROL_STEP_SIZE],
                      .inv_sqrt_correction2 = control[CONTROL_INV_SQRT_CORRECTION2]};
    update_elements(values, m, v, gradient, n_decay, &a);
    a.decay = 1;
    update_elements(values + n_decay, m + n_decay, v + n_decay, gradient + n_decay, n - n_decay, &a);
}
