/*
 * loss.cl - cross entropy, the price of the probability that the model gave to the right next token.
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
 * Where the vocabulary is cut, a device has the logits of words `first` .. first+V-1.  It makes three numbers of a row:
 * its maximum m, s = sum_k e^(logits[k] - m), and the target's logit, or 0 where another device has that.  From the
 * numbers of all devices follows
 *
 *     lse = M + log sum_d s_d e^(m_d - M),     M = max_d m_d
 *
 * Rows are tokens: logits (N,W).  Unless a kernel says otherwise, it has a work-group per row.  After the V words of a
 * row comes padding, which has no probability and whose gradient is 0.  The total is one chain over the tokens, which
 * begins at the old total (common.cl, "sums in order").
 *
 * cross_entropy() of src/trainer/model/loss.c, and its gradient there, launch these kernels.
 */

/* The maximum of a row of V logits. */
static float largest_logit(const global float *logits, int V, local float *scratch)
{
    vec top = -INFINITY;
    for (int i = FIRST; i < V; i += STRIDE)
        top = larger(top, load(logits + i, V - i, -INFINITY));
    return group_max(top, scratch);
}

/* The sum of e^(logits[k] - max_logit) over a row of V logits. */
static float sum_of_powers(const global float *logits, int V, float max_logit, local float *scratch)
{
    vec sum = 0;
    for (int i = FIRST; i < V; i += STRIDE)
        sum += exp(load(logits + i, V - i, -INFINITY) - max_logit);
    return group_sum(sum, scratch);
}

/* Where the vocabulary is not cut: losses and lse of all rows. */
KERNEL void loss_forward(global float *losses,       /* (N) */
                         global float *lse,          /* (N) */
                         const global float *logits, /* (N,W) */
                         const global int *targets,  /* (N) */
                         int V, int W)
{
    local float scratch[WG];
    int n = get_group_id(0);
    logits += (size_t)n * W;

    float max_logit = largest_logit(logits, V, scratch);
    float total = sum_of_powers(logits, V, max_logit, scratch);
    if (get_local_id(0) == 0) {
        lse[n] = max_logit + log(total);
        losses[n] = lse[n] - logits[targets[n]];
    }
}

/* Where the vocabulary is cut, m, s and the target's logit of the rows each have an array of P: enum part_number.
 * One work-group per row, up to P >= N; those from N on get zeros. */
KERNEL void loss_part(global float *part,         /* (PART_NUMBERS,P) */
                      const global float *logits, /* (N,W) */
                      const global int *targets,  /* (N) */
                      int N, int P, int first, int V, int W)
{
    local float scratch[WG];
    int n = get_group_id(0);
    bool live = n < N;
    logits += live ? (size_t)n * W : 0;

    int words = live ? V : 0;
    float max_logit = largest_logit(logits, words, scratch);
    float total = sum_of_powers(logits, words, max_logit, scratch);
    if (get_local_id(0) == 0) {
        int target = live ? targets[n] - first : -1;
        part[PART_MAXIMUM * P + n] = live ? max_logit : 0;
        part[PART_SUM * P + n] = total;
        part[PART_TARGET * P + n] = 0 <= target && target < V ? logits[target] : 0;
    }
}

/* Makes losses and lse of what loss_part has made on each device.  One work-group per BLOCK tokens. */
KERNEL void loss_join(global float *losses,      /* (N) */
                      global float *lse,         /* (N) */
                      const global float *parts, /* (tp_ranks,PART_NUMBERS,P) */
                      int N, int P, int tp_ranks)
{
    int end = block_end(N);
    for (int i = block_begin() + FIRST; i < end; i += STRIDE) {
        /* 1. Find the maximum of all devices. */
        vec top = -INFINITY;
        for (int d = 0; d < tp_ranks; d++)
            top = larger(top, load(parts + (d * PART_NUMBERS + PART_MAXIMUM) * P + i, end - i, 0));
        /* 2. Add up the powers of e, and find the target's logit: all devices but one have 0 for it. */
        vec sum = 0, target = 0;
        for (int d = 0; d < tp_ranks; d++) {
            const global float *part = parts + d * PART_NUMBERS * P + i;
            vec below = load(part + PART_MAXIMUM * P, end - i, 0) - top;
            sum += load(part + PART_SUM * P, end - i, 1) * exp(below);
            target += load(part + PART_TARGET * P, end - i, 0);
        }
        /* 3. Write lse and the losses. */
        vec all = top + log(sum);
        store(all, lse + i, end - i);
        store(all - target, losses + i, end - i);
    }
}

/* dlogits may be the same buffer as logits.  V is the number of words that the device has, W with the padding. */
KERNEL void loss_backward(global float *dlogits,      /* (N,W) */
                          const global float *logits, /* (N,W) */
                          const global float *lse,    /* (N) */
                          const global int *targets,  /* (N) */
                          int first, int V, int W, float scale)
{
    int n = get_group_id(0);
    int word = targets[n] - first, target = word < V ? word : -1; /* else it would hit the padding */
    float lse_row = lse[n];
    dlogits += (size_t)n * W;
    logits += (size_t)n * W;

    for (int i = FIRST; i < W; i += STRIDE) {
        vec p = exp(load(logits + i, V - i, -INFINITY) - lse_row);
        vec onehot = i + NUMBERS == target ? (vec)1.0f : (vec)0.0f;
        store((p - onehot) * scale, dlogits + i, W - i);
    }
}

/* One work-group: all its work-items load, and one adds. */
KERNEL void loss_sum(global float *total,        /* (1) */
                     const global float *losses, /* (N) */
                     int N, int accumulate)
{
    local float tile[TILE_SIZE];
    bool adds = get_local_id(0) == 0;
    float sum = accumulate && adds ? total[0] : 0.0f;
    for (int begin = 0; begin < N; begin += TILE) {
        int left = N - begin;
        /* 1. All work-items load losses. */
        load_stretch(tile, losses + begin, TILE, left);
        wait_for_all();
        /* 2. One adds them in order. */
        IN_ORDER for (int i = 0; i < min((int)TILE, left) && adds; i++)
            sum += from_stretch(tile, losses + begin, i);
        wait_for_all();
    }
    if (adds)
        total[0] = sum;
}
