/*
 * softmax.cl - attention weights, causal.
 *
 * scores and att are (B,H,T,T): row (b,h,t) holds the scores of query t against keys j = 0 .. T-1.  A token may look at
 * itself and at earlier ones only, so with r = (b*H + h)*T + t the row r has t = r % T and
 *
 *     att[j] = e^(scale (scores[j] - max)) / sum_k e^(scale (scores[k] - max))    for j <= t,    0 for j > t
 *
 * The maximum cancels out of the fraction; it keeps e^... from overflowing.  scale (1/sqrt(head size)) is positive.
 * exp() is the built-in: on PoCL it runs as fast on a float16 as a polynomial written by hand (measured within 5 %).
 * What lies above the diagonal in scores (and in datt) is never read: the matrix product need not write it.
 *
 * Backward, with s[j] = att[j]:   d att[j] / d scores[k] = scale s[j] ((j == k) - s[k]),   hence
 *
 *     dscores[j] = scale att[j] (datt[j] - sum_k att[k] datt[k])    for j <= t,    0 for j > t
 *
 * There is one work-group per row.  A work-item reads and writes the same elements in each pass, so both kernels may
 * work in place (att == scores; dscores == datt), and nothing is declared restrict.  src/trainer/model/attention.c
 * launches them with --attention plain; rows = B*H*T.
 */

/* Zeros from the first whole vector above the diagonal to the end of the row; `live` = t + 1 elements are below it. */
static void zero_rest(global float *row, int live, int T)
{
    int done = (live + VEC - 1) / VEC * VEC;
    for (int i = done + FIRST; i < T; i += STRIDE)
        store((vec)0, row + i, T - i);
}

KERNEL void softmax_forward(global float *att,          /* (rows,T) */
                            const global float *scores, /* (rows,T) */
                            int T, float scale)
{
    local float scratch[WG];
    int r = get_group_id(0);
    int live = r % T + 1;
    att += (size_t)r * T;
    scores += (size_t)r * T;

    /* 1. Find the maximum of the row. */
    vec top = -INFINITY;
    for (int i = FIRST; i < live; i += STRIDE)
        top = larger(top, load(scores + i, live - i, -INFINITY));
    float max_score = group_max(top, scratch);

    /* 2. Write the powers of e, and add them up. */
    vec sum = 0;
    for (int i = FIRST; i < live; i += STRIDE) {
        vec e = exp((load(scores + i, live - i, -INFINITY) - max_score) * scale); /* past the diagonal: e^-inf = 0 */
        sum += e;
        store(e, att + i, T - i);
    }
    float inv_sum = 1.0f / group_sum(sum, scratch);

    /* 3. Divide them by their sum. */
    for (int i = FIRST; i < live; i += STRIDE)
        store(load(att + i, T - i, 0) * inv_sum, att + i, T - i);
    zero_rest(att, live, T);
}

KERNEL void softmax_backward(global float *dscores,    /* (rows,T) */
                             const global float *datt, /* (rows,T) */
                             const global float *att,  /* (rows,T) */
                             int T, float scale)
{
    local float scratch[WG];
    int r = get_group_id(0);
    int live = r % T + 1;
    dscores += (size_t)r * T;
    datt += (size_t)r * T;
    att += (size_t)r * T;

    /* 1. Add up att[k] datt[k]. */
    vec products = 0;
    for (int i = FIRST; i < live; i += STRIDE)
        products = fma(load(att + i, live - i, 0), load(datt + i, live - i, 0), products);
    float dot_row = group_sum(products, scratch);

    /* 2. Write dscores. */
    for (int i = FIRST; i < live; i += STRIDE) {
        vec d = load(datt + i, live - i, dot_row) - dot_row; /* past the diagonal: 0 */
        store(load(att + i, live - i, 0) * d * scale, dscores + i, T - i);
    }
    zero_rest(dscores, live, T);
}
