/*
 * shared.h - the numbers on which kernels and host agree.  C for the host, OpenCL C for the kernels: the loader puts
 * this text in front of every .cl file.
 */
#ifndef SHARED_H
#define SHARED_H

enum {
    BLOCK = 4096,      /* elements per work-group of flat (elementwise) kernels: enough to hide the cost of
                          starting a work-group on a CPU, few enough to leave many of them */
    CPU_COLUMNS = 64,  /* columns per work-group of kernels that sum down the columns, on a CPU: one work-item */
    GPU_COLUMNS = 32,  /* the same on a GPU: a work-item each, as many as a warp, so that there are enough groups */
    NORM_BLOCK = 4096, /* elements per partial sum of the gradient's norm */
    FMA_CHAINS = 12,   /* independent chains of the probe of fused multiply-adds */
};

/* A matrix product C = start + A B: with what C begins; and which matrix is a lower triangle, whose other elements are
 * not computed, or are 0: none, C, A, A transposed. */
enum gemm_start { START_ZERO, START_OLD, START_BIAS };
enum gemm_causal { CAUSAL_NONE, CAUSAL_OUT, CAUSAL_A, CAUSAL_A_TRANSPOSED };

/* What the kernel gemm (gemm.cl) is told, with each struct as one argument: the product; what one work-item computes
 * of it; and where the elements of A, of B and of C lie.  Element (r,c) of matrix (i,h), for sequence i and head h, is
 * at offset + i*batch_stride + h*head_stride + r*row + c*col. */
struct gemm_sizes {
    int M, N, K;
    int heads;         /* of a sequence; 1: there are none */
    int start, causal; /* enum gemm_start, enum gemm_causal */
};
struct gemm_blocking {
    int band, span; /* rows of C, a multiple of ROWS; columns of C, a multiple of WIDTH */
    int depth;      /* steps of k for which B is packed at a time */
    int block;      /* rows of A that are packed at a time: a multiple of ROWS; 0: A is not packed */
};
struct gemm_strides {
    int offset, batch_stride, head_stride;
    int row, col;
};

/* The control block: what changes from step to step, written by the host before each step (see adamw.cl). */
enum control_word {
    CONTROL_BETA1,
    CONTROL_BETA2,
    CONTROL_EPS,
    CONTROL_CLIP,
    CONTROL_ONE_MINUS_BETA1,
    CONTROL_ONE_MINUS_BETA2,
    CONTROL_DECAY,
    CONTROL_STEP_SIZE,
    CONTROL_INV_SQRT_CORRECTION2,
    CONTROL_SIZE = 16 /* the words after these stay 0 */
};

/* An update that may run on either side: on which this time, and whether it was the other one before. */
enum side_bit { SIDE_CPU = 1, SIDE_DEVICE = 2, SIDE_MOVED = 4 };

/* What a device makes of its words' logits of a token, where the vocabulary is cut (see loss.cl). */
enum part_number { PART_MAXIMUM, PART_SUM, PART_TARGET, PART_NUMBERS };

/* The verdict on the gradient: written by norm_finish, read by adamw.  VERDICT_SPARE is not used. */
enum verdict_word { VERDICT_NORM, VERDICT_SCALE, VERDICT_HALTED, VERDICT_SPARE, VERDICT_SIZE };

#endif
