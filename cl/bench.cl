/*
 * bench.cl - what this device can do at best: the yardsticks for gemm.cl and for the memory-bound kernels.
 *
 *     fma_peak    multiply-adds per second, with every operand in a register
 *     copy        bytes per second from memory to memory
 *
 * src/planning/trace/peak.c launches both.
 */

/* rounds * FMA_CHAINS * VEC fma()s per work-item.  An fma() takes about 4 cycles and a core starts up to 2 per cycle,
 * so 8 chains keep it busy; 12 leave some slack and, with the two factors, still fit 16 registers.  With |x| < 1 the
 * numbers neither overflow nor become denormal (those can be slow).  Because the sums are written to `out`, the
 * compiler cannot drop the work.  Global size: some multiple of the number of cores. */
kernel void fma_peak(global float *out, /* (global size) */
                     int rounds, float x, float y)
{
    vec chain[FMA_CHAINS];
    vec sum = 0;
#pragma unroll
    for (int i = 0; i < FMA_CHAINS; i++)
        chain[i] = (vec)(float)i;
    for (int r = 0; r < rounds; r++) {
#pragma unroll
        for (int i = 0; i < FMA_CHAINS; i++)
            chain[i] = fma(chain[i], (vec)x, (vec)y);
    }
#pragma unroll
    for (int i = 0; i < FMA_CHAINS; i++)
        sum += chain[i];
    out[get_global_id(0)] = vec_sum(sum);
}

/* Reads and writes 4*n bytes.  Each work-group copies BLOCK floats; global size ceil(n / BLOCK) * WG, local size WG. */
KERNEL void copy(global float *out, const global float *in, int n) /* (n), (n) */
{
    int end = block_end(n);
    for (int i = block_begin() + FIRST; i < end; i += STRIDE)
        store(load(in + i, end - i, 0), out + i, end - i);
}
