/*
 * flash.cl - causal attention without the (T,T) matrix.
 *
 * For each sequence and head, with hs = C/H channels and scores s[q][k] = scale * (q . k),
 *
 *     p[q][k] = e^(s[q][k] - lse[q]),     lse[q] = log sum_k e^s[q][k],     k <= q
 *     out[q]  = sum_k p[q][k] v[k]
 *
 * The plain kernels keep p, T*T floats per head, for backward.  Here a work-group has a square of it at a time, in
 * local memory, and makes it again when it is needed.  What is kept is lse, T floats per head: with it any p[q][k]
 * follows from q and k alone.
 *
 *                 keys 0 .. T-1                       A work-group owns a block of COLUMNS: of queries in
 *               +-----+-----+-----+                   flash_forward and flash_dq, of keys in flash_dkv.  It reads the
 *     queries   |  \  |     |     |                   other side in parts of a few rows: a stream.  The products are
 *     0 .. T-1  +-----+-----+-----+
 *               | <-- |  \  |     |  a block of          square (rows,columns) = stream (rows,hs) . kept^T (hs,columns)
 *               +-----+-----+-----+  queries             result^T (hs,columns) += stream^T (hs,rows) . square
 *               |     |     |  \  |
 *               +-----+-----+-----+                   so floats of a vec, or work-items side by side, are columns, and
 *                                                     no sum ever runs across them: neither VEC nor WG changes a chain.
 *                                                     What is wholly above the diagonal is left out.
 *
 * Online softmax.  The forward pass sees the keys in parts and knows the maximum only at the end.  So it works with the
 * maximum so far, `top`, and when a part raises it, what has been summed is scaled down to the new one:
 *
 *     f   = e^(scale (top - new))
 *     sum = f sum + sum_k e^(scale (s - new))
 *     out = f out + sum_k e^(scale (s - new)) v[k]
 *
 * At the end out/sum is the result, and lse = scale top + log sum.
 *
 * Backward.  With dp[q][k] = dout[q] . v[k] and delta[q] = sum_k p[q][k] dp[q][k] = dout[q] . out[q],
 *
 *     ds[q][k] = scale p[q][k] (dp[q][k] - delta[q])
 *     dq[q] = sum_k ds[q][k] k[k]            flash_dq, which makes delta too
 *     dk[k] = sum_q ds[q][k] q[q]            flash_dkv
 *     dv[k] = sum_q  p[q][k] dout[q]
 *
 * Nobody else adds to the same result, so no atomics are needed, whose order would change the last bits; for that p and
 * dp are computed twice.  Each element of dq, dk and dv is one chain over keys or queries in order.
 *
 * Launch.  global size {ceil(T / columns) * WG, B * H}, local size {WG, 1}: dimension 1 is a head of a sequence.
 * `columns` is a power of two and a multiple of WIDTH.  `rows` decides the bits of flash_forward, where each part is
 * summed by itself.  src/trainer/model/attention.c chooses both, and launches the kernels with --attention flash.
 *
 * Source: T. Dao, "FlashAttention-2", 2023, algorithms 1 and 2.
 */

/* All work-items go over all of a square (rows,columns), a vector at a time, once where WG and the number of vectors in
 * a row are powers of two.  Neighbours take neighbouring vectors of a row:
 *
 *     for (int m = first_row(columns); m < rows; m += rows_apart(columns))
 *         for (int n = first_column(columns); n < columns; n += STRIDE)
 *
 *     two vectors in a row, WG = 4:  |0|1|     eight vectors:  |0|1|2|3|0|1|2|3|
 *                                    |2|3|                     |0|1|2|3|0|1|2|3|
 *                                    |0|1|                     ...              */
static int vectors_across(int columns)
{
    return max(columns / VEC, 1);
}

static int first_row(int columns)
{
    return get_local_id(0) / vectors_across(columns);
}

static int rows_apart(int columns)
{
    return max(WG / vectors_across(columns), 1);
}

static int first_column(int columns)
{
    return (get_local_id(0) - first_row(columns) * vectors_across(columns)) * VEC;
}

/* c (M,columns) = a (M,K) . b (K,columns), which with `more` is added to c.  Element (m,k) of a is
 * a[m*a_row + k*a_step].  The work-items share the tiles of c, which are as tile() of gemm.cl explains them. */
static INLINE void multiply(local float *c, int M, int columns, const local float *a, int a_row, int a_step,
                            const local float *b, int K, const bool more)
{
    const int across = columns / WIDTH, tiles = across * ((M + ROWS - 1) / ROWS);
    for (int t = get_local_id(0); t < tiles; t += WG) {
        const int down = t / across, m = down * ROWS;
        const int x = (t - down * across) * VEC, apart = across * VEC; /* neighbours read neighbouring floats */
        vec acc[ROWS][COLS];
        const local float *row[ROWS];
        foreach (i, ROWS) {
            const int at = min(m + i, M - 1);
            row[i] = a + at * a_row;
            foreach (j, COLS)
                acc[i][j] = more ? GET(c + at * columns + x + j * apart) : (vec)0.0f;
        }
        for (int k = 0; k < K; k++) {
            vec y[COLS];
            foreach (j, COLS)
                y[j] = GET(b + k * columns + x + j * apart);
            foreach (i, ROWS) {
                const vec factor = (vec)(row[i][k * a_step]);
                foreach (j, COLS)
                    acc[i][j] = fma(factor, y[j], acc[i][j]);
            }
        }
        foreach (i, ROWS)
            foreach (j, COLS)
                if (m + i < M)
                    PUT(acc[i][j], c + (m + i) * columns + x + j * apart);
    }
}

/* to (n,hs) = rows `begin` .. begin+n-1 of x.  The rows of x are ld floats apart, those of `to` hs + 1, so that a
 * column's floats lie in different banks of local memory. */
static INLINE void load_stream(local float *to, const global float *x, size_t ld, int begin, int n, int hs)
{
    const int whole = hs / VEC * VEC;
    for (int m = first_row(whole); m < n; m += rows_apart(whole))
        for (int d = first_column(whole); d < whole; d += STRIDE)
            PUT(GET(x + (begin + m) * ld + d), to + m * (hs + 1) + d);
    for (int d = whole; d < hs; d++)
        for (int m = get_local_id(0); m < n; m += WG)
            to[m * (hs + 1) + d] = x[(begin + m) * ld + d];
}

/* to (hs,columns) = rows `begin` ... of x, transposed; zeros from row T on. */
static INLINE void load_columns(local float *to, const global float *x, size_t ld, int begin, int columns, int T,
                                int hs)
{
    for (int n = 0; n < columns; n += 4)
        for (int d = 4 * get_local_id(0); d < hs; d += 4 * WG) {
            const global float *from = x + (begin + n) * ld + d;
            local float *at = to + d * columns + n;
            if (begin + n + 4 <= T && d + 4 <= hs)
                TRANSPOSE_SQUARE(from, from + ld, from + 2 * ld, from + 3 * ld, at, columns);
            else
                for (int i = 0; i < min(4, hs - d); i++)
                    for (int j = 0; j < 4; j++)
                        at[i * columns + j] = begin + n + j < T ? from[j * ld + i] : 0.0f;
        }
}

/* The way back: rows `begin` ... of x = from (hs,columns), transposed; rows from T on are not written. */
static INLINE void store_columns(const local float *from, global float *x, size_t ld, int begin, int columns, int T,
                                 int hs)
{
    for (int n = 0; n < min(columns, T - begin); n += 4)
        for (int d = 4 * get_local_id(0); d < hs; d += 4 * WG) {
            global float *to = x + (begin + n) * ld + d;
            const local float *at = from + d * columns + n;
            if (begin + n + 4 <= T && d + 4 <= hs)
                TRANSPOSE_SQUARE(at, at + columns, at + 2 * columns, at + 3 * columns, to, ld);
            else
                for (int i = 0; i < min(4, hs - d); i++)
                    for (int j = 0; j < min(4, T - begin - n); j++)
                        to[j * ld + i] = at[i * columns + j];
        }
}

/* Where one head of one sequence begins, in floats. */
struct head {
    size_t wide; /* from a token to the next one in (B,T,3C): 3C */
    size_t qkv;  /* its query of token 0 in (B,T,3C); its key and its value are C and 2C further */
    size_t out;  /* the same in (B,T,C) */
    size_t row;  /* the same in (B,H,T) */
};
static struct head this_head(int T, int heads, int hs)
{
    const size_t z = get_group_id(1), sequence = z / heads, channels = (size_t)heads * hs;
    const size_t first = (z - sequence * heads) * hs, token = sequence * T;
    return (struct head){3 * channels, token * 3 * channels + first, token * channels + first, z * T};
}

/* Writes out and lse.  A work-group makes them for a block of queries. */
KERNEL void flash_forward(global float *out,       /* (B,T,C) */
                          global float *lse,       /* (B,H,T) */
                          const global float *qkv, /* (B,T,3C) */
                          int T, int heads, int hs, float scale, int columns, int rows,
                          local float *room) /* as flash_costs[] says */
{
    const struct head h = this_head(T, heads, hs);
    const size_t C = h.wide / 3;
    const int first = (get_num_groups(0) - 1 - get_group_id(0)) * columns; /* the last queries have most to do */
    local float *q = room;                          /* (hs,columns): the queries, transposed */
    local float *result = q + hs * columns;         /* (hs,columns): out, transposed, times sum */
    local float *stream = result + hs * columns;    /* (rows,hs), hs + 1 apart: keys, then their values */
    local float *square = stream + rows * (hs + 1); /* (rows,columns): scores, then e^... of them */
    local float *top = square + rows * columns;     /* (columns): the maximum so far */
    local float *sum = top + columns;               /* (columns) */
    local float *factor = sum + columns;            /* (columns): f, by which the sums so far shrink */

    /* 1. Load the queries, and begin the sums. */
    load_columns(q, qkv + h.qkv, h.wide, first, columns, T, hs);
    for (int i = FIRST; i < hs * columns; i += STRIDE)
        PUT((vec)0.0f, result + i);
    for (int n = FIRST; n < columns; n += STRIDE) { /* every query sees key 0, so the first part makes top finite */
        PUT((vec)-INFINITY, top + n);
        PUT((vec)0.0f, sum + n);
    }
    for (int begin = 0; begin < min(first + columns, T); begin += rows) {
        const int live = min(rows, min(first + columns, T) - begin);
        /* 2. Load a part of the keys. */
        load_stream(stream, qkv + h.qkv + C, h.wide, begin, live, hs);
        wait_for_all();
        /* 3. Compute scores: keys times queries. */
        multiply(square, live, columns, stream, hs + 1, 1, q, hs, false);
        wait_for_all();
        /* 4. Load the values of these keys.  Find top and factor. */
        load_stream(stream, qkv + h.qkv + 2 * C, h.wide, begin, live, hs);
        for (int n = FIRST; n < columns; n += STRIDE) {
            const vec old = GET(top + n);
            vec most = old;
            for (int m = 0; m < live; m++)
                most = larger(most, begin + m <= first + n + NUMBERS ? GET(square + m * columns + n) : (vec)-INFINITY);
            PUT(most, top + n);
            PUT(exp((old - most) * scale), factor + n);
        }
        wait_for_all();
        /* 5. Make powers of e of the scores; keys later than the query get 0.  Scale the result so far. */
        for (int m = first_row(columns); m < live; m += rows_apart(columns))
            for (int n = first_column(columns); n < columns; n += STRIDE) {
                local float *at = square + m * columns + n;
                const vec e = exp((GET(at) - GET(top + n)) * scale);
                PUT(begin + m <= first + n + NUMBERS ? e : (vec)0.0f, at);
            }
        for (int d = first_row(columns); d < hs; d += rows_apart(columns))
            for (int n = first_column(columns); n < columns; n += STRIDE)
                PUT(GET(result + d * columns + n) * GET(factor + n), result + d * columns + n);
        wait_for_all();
        /* 6. Add the powers of this part to sum, and powers times values to the result. */
        for (int n = FIRST; n < columns; n += STRIDE) {
            vec part = 0;
            IN_ORDER for (int m = 0; m < live; m++)
                part += GET(square + m * columns + n);
            PUT(GET(sum + n) * GET(factor + n) + part, sum + n);
        }
        multiply(result, hs, columns, stream, 1, hs + 1, square, live, true);
        wait_for_all();
    }
    /* 7. Divide the result by the sum. */
    for (int d = first_row(columns); d < hs; d += rows_apart(columns))
        for (int n = first_column(columns); n < columns; n += STRIDE)
            PUT(GET(result + d * columns + n) / GET(sum + n), result + d * columns + n);
    wait_for_all();
    /* 8. Write out and lse. */
    store_columns(result, out + h.out, C, first, columns, T, hs);
    for (int n = FIRST; n < min(columns, T - first); n += STRIDE)
        store(GET(top + n) * scale + log(GET(sum + n)), lse + h.row + first + n, T - first - n);
}

/* Writes dq, the first third of each row of dqkv, and delta.  A work-group makes them for a block of queries. */
KERNEL void flash_dq(global float *dqkv,       /* (B,T,3C) */
                     global float *delta,      /* (B,H,T) */
                     const global float *dout, /* (B,T,C) */
                     const global float *out,  /* (B,T,C) */
                     const global float *lse,  /* (B,H,T) */
                     const global float *qkv,  /* (B,T,3C) */
                     int T, int heads, int hs, float scale, int columns, int rows,
                     local float *room) /* as flash_costs[] says */
{
    const struct head h = this_head(T, heads, hs);
    const size_t C = h.wide / 3;
    const int first = (get_num_groups(0) - 1 - get_group_id(0)) * columns;
    local float *q = room;                          /* (hs,columns): the queries, transposed */
    local float *dy = q + hs * columns;             /* (hs,columns): dout, transposed */
    local float *result = dy + hs * columns;        /* (hs,columns): dq, transposed */
    local float *keys = result + hs * columns;      /* (rows,hs), hs + 1 apart */
    local float *values = keys + rows * (hs + 1);   /* (rows,hs), hs + 1 apart */
    local float *square = values + rows * (hs + 1); /* (rows,columns): scores, then ds */
    local float *dp = square + rows * columns;      /* (rows,columns) */
    local float *dot = dp + rows * columns;         /* (columns): delta */

    /* 1. Load the queries, dout and out. */
    load_columns(q, qkv + h.qkv, h.wide, first, columns, T, hs);
    load_columns(dy, dout + h.out, C, first, columns, T, hs);
    load_columns(result, out + h.out, C, first, columns, T, hs);
    wait_for_all();
    /* 2. Compute delta from dout and out. */
    for (int n = FIRST; n < columns; n += STRIDE) {
        vec sum = 0;
        for (int d = 0; d < hs; d++)
            sum = fma(GET(dy + d * columns + n), GET(result + d * columns + n), sum);
        PUT(sum, dot + n);
        store(sum, delta + h.row + first + n, T - first - n);
    }
    wait_for_all();
    /* 3. Begin dq, where out was. */
    for (int i = FIRST; i < hs * columns; i += STRIDE)
        PUT((vec)0.0f, result + i);
    for (int begin = 0; begin < min(first + columns, T); begin += rows) {
        const int live = min(rows, min(first + columns, T) - begin);
        /* 4. Load a part of the keys, and their values. */
        load_stream(keys, qkv + h.qkv + C, h.wide, begin, live, hs);
        load_stream(values, qkv + h.qkv + 2 * C, h.wide, begin, live, hs);
        wait_for_all();
        /* 5. Compute scores and dp: keys times queries, values times dout. */
        multiply(square, live, columns, keys, hs + 1, 1, q, hs, false);
        multiply(dp, live, columns, values, hs + 1, 1, dy, hs, false);
        wait_for_all();
        /* 6. Make ds of both. */
        for (int m = first_row(columns); m < live; m += rows_apart(columns))
            for (int n = first_column(columns); n < columns; n += STRIDE) {
                const vec known = load(lse + h.row + first + n, T - first - n, 0);
                const vec p = exp(GET(square + m * columns + n) * scale - known);
                const vec ds = p * (GET(dp + m * columns + n) - GET(dot + n)) * scale;
                PUT(begin + m <= first + n + NUMBERS ? ds : (vec)0.0f, square + m * columns + n);
            }
        wait_for_all();
        /* 7. Add ds times keys to dq. */
        multiply(result, hs, columns, keys, 1, hs + 1, square, live, true);
        wait_for_all();
    }
    /* 8. Write dq. */
    store_columns(result, dqkv + h.qkv, h.wide, first, columns, T, hs);
}

/* Writes dk and dv, the other two thirds.  A work-group makes them for a block of keys. */
KERNEL void flash_dkv(global float *dqkv,        /* (B,T,3C) */
                      const global float *dout,  /* (B,T,C) */
                      const global float *lse,   /* (B,H,T) */
                      const global float *delta, /* (B,H,T) */
                      const global float *qkv,   /* (B,T,3C) */
                      int T, int heads, int hs, float scale, int columns, int rows,
                      local float *room) /* as flash_costs[] says */
{
    const struct head h = this_head(T, heads, hs);
    const size_t C = h.wide / 3;
    const int first = get_group_id(0) * columns; /* the first keys have most to do */
    local float *k = room;                       /* (hs,columns): the keys, transposed */
    local float *v = k + hs * columns;           /* (hs,columns): their values, transposed */
    local float *dk = v + hs * columns;          /* (hs,columns), transposed */
    local float *dv = dk + hs * columns;         /* (hs,columns), transposed */
    local float *queries = dv + hs * columns;    /* (rows,hs), hs + 1 apart */
    local float *dy = queries + rows * (hs + 1); /* (rows,hs), hs + 1 apart: dout */
    local float *square = dy + rows * (hs + 1);  /* (rows,columns): scores, then p */
    local float *dp = square + rows * columns;   /* (rows,columns): dp, then ds */

    /* 1. Load the keys and their values, and begin dk and dv. */
    load_columns(k, qkv + h.qkv + C, h.wide, first, columns, T, hs);
    load_columns(v, qkv + h.qkv + 2 * C, h.wide, first, columns, T, hs);
    for (int i = FIRST; i < hs * columns; i += STRIDE)
        PUT((vec)0.0f, dk + i);
    for (int i = FIRST; i < hs * columns; i += STRIDE)
        PUT((vec)0.0f, dv + i);
    for (int begin = first; begin < T; begin += rows) {
        const int live = min(rows, T - begin);
        /* 2. Load a part of the queries, and their rows of dout. */
        load_stream(queries, qkv + h.qkv, h.wide, begin, live, hs);
        load_stream(dy, dout + h.out, C, begin, live, hs);
        wait_for_all();
        /* 3. Compute scores and dp: queries times keys, dout times values. */
        multiply(square, live, columns, queries, hs + 1, 1, k, hs, false);
        multiply(dp, live, columns, dy, hs + 1, 1, v, hs, false);
        wait_for_all();
        /* 4. Make p of the scores, and ds of both. */
        for (int m = first_row(columns); m < live; m += rows_apart(columns))
            for (int n = first_column(columns); n < columns; n += STRIDE) {
                const size_t row = h.row + begin + m;
                const vec p = exp(GET(square + m * columns + n) * scale - lse[row]);
                const vec ds = p * (GET(dp + m * columns + n) - delta[row]) * scale;
                const ivec seen = first + n + NUMBERS <= begin + m;
                PUT(seen ? p : (vec)0.0f, square + m * columns + n);
                PUT(seen ? ds : (vec)0.0f, dp + m * columns + n);
            }
        wait_for_all();
        /* 5. Add p times dout to dv, and ds times queries to dk. */
        multiply(dv, hs, columns, dy, 1, hs + 1, square, live, true);
        multiply(dk, hs, columns, queries, 1, hs + 1, dp, live, true);
        wait_for_all();
    }
    /* 6. Write dk and dv. */
    store_columns(dk, dqkv + h.qkv + C, h.wide, first, columns, T, hs);
    store_columns(dv, dqkv + h.qkv + 2 * C, h.wide, first, columns, T, hs);
}
