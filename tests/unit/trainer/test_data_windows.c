/* test_data_windows.c - windows: which tokens a sequence of a step has, in each order, and in validation.
 *
 * It tests src/trainer/data/windows.c.  It checks that a target is the token one place later; that in the order of the
 * file the windows are those of llm.c's loader; that shuffled windows follow only from the seed and from the sample's
 * number among all samples, so that runs with other batches see the same ones; that no token is seen twice in an epoch;
 * and that validation counts each target once.  It catches a window that begins a token off, an order that depends on
 * the batch, and a last window whose targets count twice.
 *
 * To see it fail: in windows.c, let the counter be step + sample instead of step * batch + sample.
 *
 * Tokens are numbered, so a token tells where it stood, and the expected tokens follow from places alone.
 */
#include "tests/support/support_data.h"

/* ---- the order of the file --------------------------------------------------------------------------------------- */

static struct dataset *numbered(size_t n, enum window_order window_order, double val_share)
{
    struct data_options options = options_for(write_numbered("numbered.bin", n, false));
    options.window_order = window_order;
    options.val_share = val_share;
    return open_dataset(&options);
}

/* llm.c's loader as it keeps its state: move by B*T, read B*T+1, start anew when that would go past the end. */
TEST(file_order_is_that_of_llmc)
{
    enum { B = 2 };
    static const size_t sizes[] = {33, 34, 64, 65, 66, 96, 97, 98, 200}; /* around multiples of B*T = 32, and 33 */
    for (size_t i_size = 0; i_size < COUNT(sizes); i_size++) {
        struct dataset *data = numbered(sizes[i_size], ORDER_FILE, 0);
        size_t position = 0;
        for (int step = 0; step < 20; step++) {
            if (position + B * T + 1 > sizes[i_size])
                position = 0;
            for (int sample = 0; sample < B; sample++) {
                const struct window window = {
                    .window_order = ORDER_FILE, .seed = 7, .step = step, .sample = sample, .batch = B, .seq_len = T};
                int32_t tokens[T], targets[T];
                dataset_window(data, &window, tokens, targets);
                for (int t = 0; t < T; t++) {
                    assert_int_equal(tokens[t], position + (size_t)(sample * T + t));
                    assert_int_equal(targets[t], tokens[t] + 1);
                }
            }
            position += B * T;
        }
        close_dataset(data);
    }
}

/* ---- shuffled ---------------------------------------------------------------------------------------------------- */

/* The place of the first token of this window of T tokens, in shuffled order.  The others follow it, and targets are
 * one place later. */
static int32_t offset_of(const struct dataset *data, struct window window)
{
    window.window_order = ORDER_SHUFFLE;
    window.seq_len = T;
    int32_t tokens[T], targets[T];
    dataset_window(data, &window, tokens, targets);
    for (int t = 0; t < T; t++) {
        assert_int_equal(tokens[t], tokens[0] + t);
        assert_int_equal(targets[t], tokens[t] + 1);
    }
    return tokens[0];
}

/* Sample 20 of a seed is the same window, be it sample 4 of step 2 in batches of 8, or sample 8 of step 1 in batches of
 * 12. */
TEST(shuffle_depends_on_the_global_sample_only)
{
    struct dataset *data = numbered(10000, ORDER_SHUFFLE, 0);
    for (int i = 0; i < 240; i++)
        assert_int_equal(offset_of(data, (struct window){.seed = 5, .step = i / 8, .sample = i % 8, .batch = 8}),
                         offset_of(data, (struct window){.seed = 5, .step = i / 12, .sample = i % 12, .batch = 12}));
    assert_int_equal(offset_of(data, (struct window){.seed = 5, .step = 7, .sample = 3, .batch = 8}),
                     offset_of(data, (struct window){.seed = 5, .step = 7, .sample = 3, .batch = 8}));
    close_dataset(data);
}

/* By chance a window of seed 5 is that of seed 6 once in 625 windows (10,000 tokens of 16); more than 4 of 1,000 would
 * be a sign that the seed hardly counts. */
TEST(another_seed_shuffles_otherwise)
{
    struct dataset *data = numbered(10000, ORDER_SHUFFLE, 0);
    int same = 0;
    for (int i = 0; i < 1000; i++) {
        int32_t one = offset_of(data, (struct window){.seed = 5, .step = i, .batch = 1});
        int32_t other = offset_of(data, (struct window){.seed = 6, .step = i, .batch = 1});
        if (one == other)
            same++;
    }
    assert_below(same, 5);
    close_dataset(data);
}

static int by_value(const void *a, const void *b) { return *(const int32_t *)a - *(const int32_t *)b; }

/* Within an epoch no two windows overlap (but where the ring closes), and the next epoch cuts elsewhere. */
TEST(shuffle_draws_without_replacement)
{
    enum { TOKENS = 10000, WINDOWS = (TOKENS - T) / T };
    struct dataset *data = numbered(TOKENS, ORDER_SHUFFLE, 0);
    int32_t offset[2][WINDOWS];
    for (int epoch = 0; epoch < 2; epoch++) {
        for (int i = 0; i < WINDOWS; i++)
            offset[epoch][i] = offset_of(data, (struct window){.seed = 3, .step = epoch * WINDOWS + i, .batch = 1});
        int in_order = 0;
        for (int i = 1; i < WINDOWS; i++)
            if (offset[epoch][i] > offset[epoch][i - 1])
                in_order++;
        assert_below(abs(in_order - WINDOWS / 2), WINDOWS / 4); /* half of all pairs, where order is chance */
        qsort(offset[epoch], WINDOWS, sizeof(int32_t), by_value);
        int overlaps = 0;
        for (int i = 1; i < WINDOWS; i++)
            if (offset[epoch][i] - offset[epoch][i - 1] < T)
                overlaps++;
        assert_at_most(overlaps, 1);
    }
    assert_int_not_equal(offset[0][0] % T, offset[1][0] % T);
    close_dataset(data);
}

/* ---- validation -------------------------------------------------------------------------------------------------- */

/* Each token of the split but the first is a counted target exactly once, whatever the length. */
TEST(validation_counts_each_target_once)
{
    for (size_t n = T + 1; n < 5 * T; n++) {
        struct dataset data = {.val = {.tokens = allocate(n, sizeof(uint16_t)), .n = n}};
        for (size_t i = 0; i < n; i++)
            data.val.tokens[i] = (uint16_t)i;
        int windows = (int)validation_windows(&data, T);
        int next = 1; /* the target that no window has counted yet */
        for (int i = 0; i < windows; i++) {
            int32_t tokens[T], targets[T];
            int count = validation_window(&data, (size_t)i, T, tokens, targets);
            if (i < windows - 1) /* the last one may be short */
                assert_int_equal(count, T);
            assert_in_range(count, 1, T);
            for (int t = T - count; t < T; t++) {
                assert_int_equal(targets[t], next);
                assert_int_equal(tokens[t], next - 1);
                next++;
            }
        }
        assert_int_equal(next, n);
        free(data.val.tokens);
    }
}

/* ---- positions by token ------------------------------------------------------------------------------------------ */

/* start[v] counts the positions of smaller tokens; from there on stand those of token v, ascending. */
TEST(positions_are_sorted_by_token)
{
    enum { N = 500, V = 23 };
    int32_t tokens[N], by_token[N], start[V + 1];
    for (int i = 0; i < N; i++) /* token 4 never occurs, nor does the last */
        tokens[i] = (int32_t)(random_words(3, STREAM_TEST, 0, (uint64_t)i).word[0] % (V - 1));
    for (int i = 0; i < N; i++)
        if (tokens[i] == 4)
            tokens[i]++;
    sort_positions(tokens, N, V, by_token, start);
    int at = 0;
    for (int v = 0; v < V; v++) {
        assert_int_equal(start[v], at);
        for (int i = 0; i < N; i++)
            if (tokens[i] == v) {
                assert_int_equal(by_token[at], i);
                at++;
            }
    }
    assert_int_equal(start[V], N);
    sort_positions(tokens, 0, V, by_token, start);
    assert_int_equal(start[V], 0);
}
