/* sampler.c - draws a text from the model, one token at a time: the list that computes logits, and its run.
 *
 * Deliberately simple: no cache of keys and values; each token runs the whole window through the model again.
 */
#include "train_parts.h"

#include <math.h>

static int bigger_first(const void *left, const void *right)
{
    const float *a = left;
    const float *b = right;
    return COMPARE(*b, *a);
}

static int largest(const float *logits, int vocab)
{
    int best = 0;
    for (int i = 1; i < vocab; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

/* The smallest of the k largest logits. */
static float kth_largest(const float *logits, int vocab, int k)
{
    float *sorted = copy_bytes(logits, (size_t)vocab * sizeof *sorted);
    SORT(sorted, (size_t)vocab, bigger_first);
    float kth = sorted[k - 1];
    free(sorted);
    return kth;
}

/* The first token up to which the weights, added up, exceed `drawn`. */
static int token_at(const double *weight, int vocab, double drawn)
{
    int chosen = 0;
    while (chosen < vocab - 1) {
        drawn -= weight[chosen];
        if (drawn < 0)
            break;
        chosen++;
    }
    while (weight[chosen] == 0 && chosen > 0) /* rounding may lead to the very end */
        chosen--;
    return chosen;
}

/* Draws from the softmax over the --top-k largest logits at --temperature; at temperature 0 takes the largest. */
static int32_t choose_token(const float *logits, int vocab, const struct settings *settings, uint64_t draw)
{
    int best = largest(logits, vocab);
    if (settings->sample.temperature <= 0)
        return best;
    float least = -INFINITY;
    if (settings->sample.top_k > 0 && settings->sample.top_k < vocab)
        least = kth_largest(logits, vocab, settings->sample.top_k);
    double *weight = allocate_each(vocab, sizeof *weight);
    double sum = 0;
    for (int i = 0; i < vocab; i++) {
        if (logits[i] >= least)
            weight[i] = exp((logits[i] - logits[best]) / settings->sample.temperature);
        sum += weight[i];
    }
    double drawn = random_uniform((uint64_t)settings->seed, STREAM_SAMPLE, 0, draw) * sum;
    int chosen = token_at(weight, vocab, drawn);
    free(weight);
    return chosen;
}

/* Shows a token.  If it ends within a character, the character is shown when the last of its tokens comes. */
static void print_token(struct text_stream *shown, const struct tokenizer *tokenizer, int32_t token)
{
    char own[DECODED_BYTES];
    size_t n;
    const char *bytes = decode_token(tokenizer, token, own, &n);
    show_bytes(shown, stdout, bytes, n);
    fflush(stdout);
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

static void prepare_sample(void *argument, const struct task *task, uint32_t iteration)
{
    (void)iteration;
    struct feed *feed = argument;
    int32_t *tokens = clear_batch(&feed->host);
    int32_t *targets = tensor_memory(feed->host.targets);
    memcpy(tokens, feed->trainer->extra.sample_window, (size_t)feed->n * sizeof *tokens);
    targets[0] = feed->trainer->extra.sample_position; /* the row of logits that is wanted */
    copy_to_other_contexts(task);
}

/* Adds the rank's logits of the token that is wanted: only its hidden row, of those in `out`, goes through the head.
 * The logits go to their place on the host. */
static void add_sampled_logits(struct builder *b, struct trainer *trainer, struct tensor *out, struct tensor *wanted)
{
    int channels = trainer->config.channels;
    struct tensor *row = activation(b, "last", SHAPE(1, channels));
    struct task *pick = LAUNCH(b, "last", "elementwise.cl", "pick_row", work_groups(b, 1),
                               OUT(row),
                               IN(out), IN(wanted),
                               INT(channels));
    set_traffic(pick, 2.0 * channels);
    struct tensor *logits = gpt_head(b, row);
    size_t first = (size_t)b->replica->unlayered[HEAD].first;
    size_t words = (size_t)rank_vocab(b);
    struct tensor *host =
        view_of_shard(trainer->pool, trainer->sample_logits, b->tp_rank, (struct range){first, first + words});
    struct tensor *view = new_view(trainer->pool, logits, "logits", 0, SHAPE((int64_t)words));
    tag_role(trainer->sample_list, ROLE_REPORT);
    add_copy(trainer->sample_list, b->device->lanes[LANE_DOWNLOAD], "logits.download", host, view);
}

void build_sample(struct trainer *trainer)
{
    trainer->sample_list = new_list(trainer->pool, "sample");
    struct builder b =
        make_builder(trainer->sample_list, trainer->model, trainer->settings->kernels, 1, trainer->seq_len);
    struct tape *tapes = allocate_each(trainer->mesh.tp, sizeof *tapes);
    struct feed *feed = &trainer->sample_feed;
    trainer->extra.sample_window = allocate_each(trainer->seq_len, sizeof *trainer->extra.sample_window);
    trainer->sample_logits =
        new_kept_work_tensor(trainer->pool, trainer->machine->host, "logits.host", SHAPE(trainer->config.vocab));
    add_batch(trainer->sample_list, feed, prepare_sample);
    add_stages(&b, feed, 0, tapes);
    for (int tp_rank = 0; tp_rank < trainer->mesh.tp; tp_rank++) {
        begin_tp_rank(&b, tp_rank);
        on_tape(&b, &tapes[tp_rank], ROLE_FORWARD);
        add_sampled_logits(&b, trainer, tapes[tp_rank].out, feed->on_last_stage[tp_rank].targets);
        end_tp_rank(&b);
    }
    end_build(&b);
    free(tapes);
}

/* ---- its run ----------------------------------------------------------------------------------------------------- */

/* Runs the sample list, as that iteration.  Returns the logits for the token after these n tokens.  The last `seq_len`
 * of them go into the window.  What comes after them in the window is never seen, since attention is causal. */
static const float *compute_logits(struct trainer *trainer, const int32_t *tokens, size_t n, uint32_t iteration)
{
    const float *logits = tensor_memory(trainer->sample_logits);
    size_t used = MIN(n, (size_t)trainer->seq_len);
    memset(trainer->extra.sample_window, 0, (size_t)trainer->seq_len * sizeof *trainer->extra.sample_window);
    memcpy(trainer->extra.sample_window, tokens + n - used, used * sizeof *tokens);
    trainer->extra.sample_position = (int)used - 1;
    execute(trainer->sample_list, iteration);
    drain(trainer->sample_list);
    for (int v = 0; v < trainer->config.vocab; v++)
        if (!isfinite(logits[v]))
            fail(EXIT_FAILED,
                 "after token %zu of the text the model's logits are not finite: its parameters are too large, as "
                 "those of a run that diverged; take an earlier checkpoint",
                 n);
    return logits;
}

/* Continues n given tokens by `count`, and prints all of it token by token. */
static void sample_tokens(struct trainer *trainer, const uint16_t *given, size_t n, int count)
{
    const struct tokenizer *tokenizer = &trainer->data->tokenizer;
    int end = end_of_text(tokenizer);
    int32_t *tokens = allocate(n + (size_t)count, sizeof *tokens);
    struct text_stream shown = {0};
    for (size_t i = 0; i < n; i++) {
        tokens[i] = given[i];
        print_token(&shown, tokenizer, tokens[i]);
    }
    for (int i = 0; i < count && !interrupted(); i++) {
        const float *logits = compute_logits(trainer, tokens, n, (uint32_t)i + 1);
        tokens[n] = choose_token(logits, MIN(trainer->config.vocab, tokenizer->n), trainer->settings, (uint64_t)i);
        if (tokens[n] == end)
            break;
        print_token(&shown, tokenizer, tokens[n]);
        n++;
    }
    end_stream(&shown, stdout);
    putchar('\n');
    free(tokens);
}

void sample_text(struct trainer *trainer, const char *prompt, int count)
{
    const struct text text = {.name = "the prompt", .bytes = prompt, .n = strlen(prompt)};
    size_t n;
    uint16_t *given = encode_text(&trainer->data->tokenizer, &text, &n);
    if (n == 0 && trainer->data->tokenizer.takes_ids)
        fail(EXIT_USAGE, "the model knows token numbers, not text: give numbers to continue, such as --prompt "
                         "\"17 4 25\", or its tokenizer with --tokens FILE");
    if (n == 0)
        fail(EXIT_USAGE, "--prompt is empty: give at least one character to continue");
    sample_tokens(trainer, given, n, count);
    free(given);
}

/* How many tokens the first character of the data has.  A sample goes on from this character, which may have several
 * bytes. */
static size_t first_character(const struct dataset *dataset)
{
    char bytes[UTF8_BYTES];
    uint32_t c;
    size_t n = MIN(dataset->train.n, sizeof bytes);
    if (dataset->tokenizer.kind != &token_bytes)
        return 1;
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)dataset->train.tokens[i];
    size_t length = utf8_decode(bytes, n, &c);
    return MAX(length, 1);
}

void print_sample(struct trainer *trainer)
{
    printf("\nsample:\n");
    sample_tokens(trainer, trainer->data->train.tokens, first_character(trainer->data),
                  trainer->settings->sample_length);
}
