/*
 * embed.cl - tokens become vectors.
 *
 *     x[n] = wte[tokens[n]] + wpe[n % T]            n = 0 .. N-1,  N = B*T tokens, row b*T + t is token t of sequence b
 *
 * wte (V,C) holds a learned vector per word of the vocabulary, wpe (Tmax,C) one per position, Tmax >= T.
 *
 * Backward: a row that was looked up several times receives the sum of all the gradients that arrive there:
 *
 *     dwte[v] = sum of dx[n] over all n with tokens[n] == v
 *     dwpe[t] = sum of dx[b*T + t] over all b
 *
 * The obvious way, a work-group per token that adds its dx to dwte[tokens[n]], is a race, and with atomics the order of
 * the additions (hence the last bits) would change from run to run.  So we turn it round: a work-group per row of
 * *dwte* collects its gradients.  To find them quickly the host sorts the positions by token (stable, so ascending
 * within a token):
 *
 *     by_token (N)  positions sorted by token
 *     start (V+1)   those of token v are by_token[start[v]] ... by_token[start[v+1] - 1]
 *
 * The sum is one chain in that order which begins at the old gradient: two micro-batches give the bits of one batch.
 *
 * Where the vocabulary is cut, a device has the rows of words `first` .. first+V-1, and other words give zeros.  One of
 * the devices adds the positions (adds_position).  The sum over all devices is then x to the bit.
 *
 * embed() of src/trainer/model/embedding.c, and its gradient there, launch these kernels.
 */

/* One work-group per token n. */
KERNEL void embed_forward(global float *x,          /* (N,C) */
                          const global float *wte,  /* (V,C), of words first .. first+V-1 */
                          const global float *wpe,  /* (Tmax,C) */
                          const global int *tokens, /* (N) */
                          int first, int V, int T, int C, int adds_position)
{
    int n = get_group_id(0);
    int word = tokens[n] - first;
    bool known = 0 <= word && word < V;
    const global float *token_row = wte + (size_t)(known ? word : 0) * C;
    const global float *position_row = wpe + (size_t)(n % T) * C;
    x += (size_t)n * C;

    for (int i = FIRST; i < C; i += STRIDE) {
        vec sum = known ? load(token_row + i, C - i, 0) : (vec)0;
        if (adds_position)
            sum += load(position_row + i, C - i, 0);
        store(sum, x + i, C - i);
    }
}

/* One work-group per word of the vocabulary that the device has.  accumulate: the sums begin at the old gradient. */
KERNEL void embed_backward_tokens(global float *dwte,         /* (V,C), of words from `first` on */
                                  const global float *dx,     /* (N,C) */
                                  const global int *by_token, /* (N) */
                                  const global int *start,    /* (V+1), of all words */
                                  int first, int C, int accumulate)
{
    int v = get_group_id(0);
    int begin = start[first + v], end = start[first + v + 1];
    if (accumulate && begin == end)
        return; /* most rows of a large vocabulary */
    dwte += (size_t)v * C;

    for (int i = FIRST; i < C; i += STRIDE) {
        vec sum = 0;
        if (accumulate)
            sum = load(dwte + i, C - i, 0);
        IN_ORDER for (int k = begin; k < end; k++)
            sum += load(dx + (size_t)by_token[k] * C + i, C - i, 0);
        store(sum, dwte + i, C - i);
    }
}

/* One work-group per position, 0 .. Tmax-1; positions from T on were not used.  accumulate: the sums begin at the
 * old gradient. */
KERNEL void embed_backward_positions(global float *dwpe,     /* (Tmax,C) */
                                     const global float *dx, /* (N,C) = (B,T,C) */
                                     int B, int T, int C, int accumulate)
{
    int t = get_group_id(0);
    int used = t < T ? B : 0;
    dwpe += (size_t)t * C;

    for (int i = FIRST; i < C; i += STRIDE) {
        vec sum = 0;
        if (accumulate)
            sum = load(dwpe + i, C - i, 0);
        IN_ORDER for (int b = 0; b < used; b++)
            sum += load(dx + ((size_t)b * T + t) * C + i, C - i, 0);
        store(sum, dwpe + i, C - i);
    }
}
