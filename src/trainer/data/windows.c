/* windows.c - windows of tokens, in the order of the file or at random; and positions by token. */
#include "data.h"

static void copy_window(const struct split *split, size_t offset, int seq_len, int32_t *tokens, int32_t *targets)
{
    CHECK(offset + (size_t)seq_len < split->n, "window at %zu of %d tokens, split of %zu", offset, seq_len, split->n);
    const uint16_t *from = split->tokens + offset;
    for (int t = 0; t < seq_len; t++) {
        tokens[t] = from[t];
        targets[t] = from[t + 1];
    }
}

/* The place of number i after shuffling the numbers below n.  A Feistel network permutes the numbers of an
 * even count of bits, and is applied again until the result is below n.  Nothing is stored, so any step can
 * be asked for directly. */
static uint64_t shuffled(uint64_t i, uint64_t n, uint64_t seed, uint32_t epoch)
{
    unsigned half = 1;
    while (half < 32 && (UINT64_C(1) << 2 * half) < n)
        half++;
    uint64_t mask = (UINT64_C(1) << half) - 1;
    do {
        uint64_t left = i >> half, right = i & mask;
        for (uint64_t round = 0; round < 4; round++) {
            uint64_t mixed = left ^ (random_words(seed, STREAM_DATA, epoch, round << 32 | right).word[0] & mask);
            left = right;
            right = mixed;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}

/* In the order of the file a batch moves by batch * seq_len tokens but reads one more, the last target.
 *
 * At random, windows are drawn without replacement.  The text is taken as a ring.  Each epoch cuts it into windows side
 * by side, from a random place on, and goes through them in random order, so the cuts fall elsewhere in each epoch.
 * (Of windows that are drawn with replacement, an epoch would not see a third of the tokens.) */
void dataset_window(const struct dataset *dataset, const struct window *window, int32_t *tokens, int32_t *targets)
{
    CHECK(window->step >= 0 && window->sample >= 0 && window->sample < window->batch, "step %lld, sample %d of %d",
          (long long)window->step, window->sample, window->batch);
    uint64_t length = (uint64_t)window->seq_len, batch = (uint64_t)window->batch, n = dataset->train.n;
    if (window->window_order == ORDER_FILE) {
        uint64_t stride = batch * length;
        uint64_t batches = (n - 1) / stride; /* batches until the file's beginning comes again */
        uint64_t offset = (uint64_t)window->step % batches * stride + (uint64_t)window->sample * length;
        copy_window(&dataset->train, offset, window->seq_len, tokens, targets);
        return;
    }
    uint64_t counter = (uint64_t)window->step * batch + (uint64_t)window->sample;
    uint64_t choices = n - length;
    uint64_t windows = MAX(choices / length, 1); /* in an epoch */
    uint32_t epoch = (uint32_t)(counter / windows);
    uint64_t start = (uint64_t)(random_uniform(window->seed, STREAM_DATA, epoch, UINT64_MAX) * (double)choices);
    uint64_t nth = shuffled(counter % windows, windows, window->seed, epoch);
    copy_window(&dataset->train, (start + nth * length) % choices, window->seq_len, tokens, targets);
}

size_t validation_windows(const struct dataset *dataset, int seq_len)
{
    return dataset->val.n ? ceil_div(dataset->val.n - 1, (size_t)seq_len) : 0;
}

int validation_count(const struct dataset *dataset, size_t i, int seq_len)
{
    CHECK(i < validation_windows(dataset, seq_len), "window %zu of %zu", i, validation_windows(dataset, seq_len));
    return (int)MIN((size_t)seq_len, dataset->val.n - 1 - i * (size_t)seq_len);
}

int validation_window(const struct dataset *dataset, size_t i, int seq_len, int32_t *tokens, int32_t *targets)
{
    int count = validation_count(dataset, i, seq_len);
    copy_window(&dataset->val, i * (size_t)seq_len - (size_t)(seq_len - count), seq_len, tokens, targets);
    return count;
}

/* A counting sort, stable.  While positions are dealt out, start[v] is where the next position of v goes; in the end it
 * is where v + 1 begins, so the whole array moves up by one. */
void sort_positions(const int32_t *tokens, int n, int vocab, int32_t *by_token, int32_t *start)
{
    memset(start, 0, ((size_t)vocab + 1) * sizeof *start);
    for (int i = 0; i < n; i++)
        start[tokens[i] + 1]++;
    for (int v = 0; v < vocab; v++)
        start[v + 1] += start[v];
    for (int i = 0; i < n; i++) {
        int32_t *next = &start[tokens[i]];
        by_token[*next] = i;
        (*next)++;
    }
    memmove(start + 1, start, (size_t)vocab * sizeof *start);
    start[0] = 0;
}
