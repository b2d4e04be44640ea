/*
 * loss.cl: cross entropy, the price of the probability that the model gave to the right next token.
 *
 *     p[v] = e^logits[v] / sum_k e^logits[k]
 *     loss = -log p[target] = lse - logits[target],     lse = log sum_k e^logits[k]
 *
 * lse ("log-sum-exp") is computed as max + log sum_k e^(logits[k] - max), which cannot overflow.  It is kept: backward
 * then needs a single pass and no second maximum,
 *
 *     dloss / dlogits[v] = p[v] - (v == target),     p[v] = e^(logits[v] - lse)
 *
 * times `scale`, by which the caller averages: 1 / (number of tokens in the whole batch).
 *
 * Rows are tokens: logits (N,V), one work-group per row.  The total is one chain over the tokens in order (old total
 * first), so it does not depend on how the batch was cut into micro-batches.
 */
#pragma OPENCL FP_CONTRACT OFF

KERNEL void loss_forward(__global float *losses,       /* (N) */
                         __global float *lse,          /* (N) */
                         const __global float *logits, /* (N,V) */
                         const __global int *targets,  /* (N) */
                         int N, int V)
{
    __local float scratch[WG];
    int n = get_group_id(0);
    logits += (size_t)n * V;

    vec top = -INFINITY;
    for (int i = FIRST; i < V; i += STRIDE)
        top = larger(top, load(logits + i, V - i, -INFINITY));
    float max_logit = row_max(top, scratch);

    vec sum = 0;
    for (int i = FIRST; i < V; i += STRIDE)
        sum += exp(load(logits + i, V - i, -INFINITY) - max_logit);
    float total = row_sum(sum, scratch);

    if (get_local_id(0) == 0) {
        lse[n] = max_logit + log(total);
        losses[n] = lse[n] - logits[targets[n]];
    }
}

/* dlogits may be the same buffer as logits. */
KERNEL void loss_backward(__global float *dlogits,      /* (N,V) */
                          const __global float *logits, /* (N,V) */
                          const __global float *lse,    /* (N) */
                          const __global int *targets,  /* (N) */
                          int N, int V, float scale)
{
    int n = get_group_id(0);
    int target = targets[n];
    float lse_row = lse[n];
    dlogits += (size_t)n * V;
    logits += (size_t)n * V;

    for (int i = FIRST; i < V; i += STRIDE) {
        vec p = exp(load(logits + i, V - i, 0) - lse_row);
        vec onehot = i + LANES == target ? (vec)1.0f : (vec)0.0f;
        store((p - onehot) * scale, dlogits + i, V - i);
    }
}

/* One work-group; one work-item does the work. */
KERNEL void loss_sum(__global float *total,        /* (1) */
                     const __global float *losses, /* (N) */
                     int N, int accumulate)
{
    if (get_local_id(0) != 0)
        return;
    float sum = accumulate ? total[0] : 0.0f;
    IN_ORDER for (int n = 0; n < N; n++)
        sum += losses[n];
    total[0] = sum;
}
