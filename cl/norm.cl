/*
 * norm.cl - the length of the whole gradient, and what it decides.
 *
 *     norm = sqrt(sum over all gradient elements of g^2)
 *     scale = clip / norm  if clip > 0 and norm > clip,  else 1           ("clip the gradient to length clip")
 *
 * There are two stages, which src/trainer/model/norm.c launches.  norm_blocks sums the squares of each NORM_BLOCK
 * elements, in parallel.  norm_finish sums the blocks, in order, which is one chain.  Since they have a fixed size and
 * order, gradients on several devices (cut on block borders) give the same norm as gradients on one.
 *
 * Inside a block there are always NORM_SUMS running sums.  Sum l takes elements l, l + NORM_SUMS, ..., and then the
 * upper half of the sums is added to the lower half until one is left.  A CPU keeps them in vectors, a GPU in
 * work-items: the additions are the same, and so are the bits.
 *
 * A norm or a loss that is not finite (a diverged run, a broken kernel) sets VERDICT_HALTED, and from then on adamw
 * changes nothing: the parameters are still those from before the bad step, so it can be replayed under a debugger.
 * Whoever replays a step clears it first.  Without clipping, no update waits for the norm: they wait for norm_finish of
 * no blocks, which looks at the losses alone, and a norm that is not finite halts the next step.
 */

#define NORM_SUMS MOST_STRIDE

/* One work-group per NORM_BLOCK elements of a flat array of n. */
KERNEL void norm_blocks(global float *partial,    /* (ceil(n / NORM_BLOCK)) */
                        const global float *grad, /* (n) */
                        int n)
{
    enum { K = NORM_SUMS / STRIDE }; /* vectors per work-item */
    local float scratch[WG];
    int begin = get_group_id(0) * NORM_BLOCK;
    int end = min(begin + NORM_BLOCK, n);
    vec sum[K];

    for (int k = 0; k < K; k++)
        sum[k] = 0;
    for (int i = begin + FIRST; i < end; i += NORM_SUMS)
        for (int k = 0; k < K; k++) {
            vec g = load(grad + i + k * STRIDE, end - i - k * STRIDE, 0);
            sum[k] = fma(g, g, sum[k]);
        }
    for (int part = K / 2; part > 0; part /= 2)
        for (int k = 0; k < part; k++)
            sum[k] += sum[k + part];

    float total = group_sum(sum[0], scratch);
    if (get_local_id(0) == 0)
        partial[get_group_id(0)] = total;
}

/* One work-group: all its work-items load, and one adds.  Its sum is Kahan's compensated sum, where `lost` is what the
 * last addition rounded off, so that thousands of blocks lose no more than a single addition does. */
KERNEL void norm_finish(global float *verdict,         /* (VERDICT_SIZE) */
                        const global float *partial,   /* (n_blocks) */
                        int n_blocks,
                        const global float *control,   /* (CONTROL_SIZE) */
                        const global float *losses,    /* (n_losses): the loss's sums; 0 between them */
                        int n_losses)
{
    local float tile[TILE_SIZE], scratch[WG];
    bool adds = get_local_id(0) == 0;
    float sum = 0, lost = 0, wrong = 0;
    for (int begin = 0; begin < n_blocks; begin += TILE) {
        int left = n_blocks - begin;
        load_stretch(tile, partial + begin, TILE, left);
        wait_for_all();
        IN_ORDER for (int i = 0; i < min((int)TILE, left) && adds; i++) {
            float term = from_stretch(tile, partial + begin, i) - lost;
            float next = sum + term;
            lost = (next - sum) - term;
            sum = next;
        }
        wait_for_all();
    }
    for (int i = get_local_id(0); i < n_losses; i += WG)
        wrong = isfinite(losses[i]) ? wrong : 1;
    wrong = group_max((vec)wrong, scratch);
    if (!adds)
        return;
    float norm = sqrt(sum);
    float clip = control[CONTROL_CLIP];
    verdict[VERDICT_NORM] = norm;
    verdict[VERDICT_SCALE] = clip > 0 && norm > clip ? clip / norm : 1.0f;
    if (wrong || !isfinite(norm))
        verdict[VERDICT_HALTED] = 1.0f; /* whoever replays the step clears it */
}
