/* sampler.c - text from the model, one token at a time.
 *
 * Deliberately simple: no cache of keys and values; each token runs the whole window through the model again.
 */
#include "train.h"

#include <math.h>

ORDER(bigger_first, float, COMPARE(*b, *a))

/* Softmax over the --top-k largest logits at --temperature; at temperature 0 the largest. */
static int32_t choose(const float *logits, int vocab, const struct settings *s, uint64_t draw)
{
    int best = 0, chosen = 0;
    for (int i = 1; i < vocab; i++)
        if (logits[i] > logits[best])
            best = i;
    if (s->temperature <= 0)
        return best;
    float *sorted = copy_bytes(logits, (size_t)vocab * sizeof *sorted), least = -INFINITY;
    SORT(sorted, (size_t)vocab, bigger_first);
    if (s->top_k > 0 && s->top_k < vocab)
        least = sorted[s->top_k - 1];
    double sum = 0, *weight = allocate((size_t)vocab, sizeof *weight);
    for (int i = 0; i < vocab; i++)
        sum += weight[i] = logits[i] >= least ? exp((logits[i] - logits[best]) / s->temperature) : 0;
    double at = random_uniform((uint64_t)s->seed, STREAM_SAMPLE, 0, draw) * sum;
    while (chosen < vocab - 1 && (at -= weight[chosen]) >= 0)
        chosen++;
    while (weight[chosen] == 0 && chosen > 0) /* rounding at the very end */
        chosen--;
    free(weight), free(sorted);
    return chosen;
}

/* A token of bytes may be a part of a character only, which is shown when the last of its tokens comes. */
static void print_token(struct text_stream *shown, const struct tokenizer *tokenizer, int32_t token)
{
    char bytes[DECODED_BYTES];
    size_t n = decode_token(tokenizer, token, bytes);
    show_bytes(shown, stdout, bytes, n);
    fflush(stdout);
}

void sample_tokens(struct trainer *t, const uint16_t *given, size_t n, int count)
{
    const struct tokenizer *tokenizer = &t->data->tokenizer;
    int32_t *tokens = allocate(n + (size_t)count, sizeof *tokens);
    struct text_stream shown = {0};
    for (size_t i = 0; i < n; i++) {
        tokens[i] = given[i];
        print_token(&shown, tokenizer, tokens[i]);
    }
    for (int i = 0; i < count && !interrupted(); i++, n++) {
        /* The last seq tokens go into the window; what is behind the text is never seen, attention being causal. */
        const float *logits = tensor_memory(t->sample_logits);
        size_t used = MIN(n, (size_t)t->seq);
        memset(t->sample_tokens, 0, (size_t)t->seq * sizeof *t->sample_tokens);
        memcpy(t->sample_tokens, tokens + n - used, used * sizeof *tokens);
        t->sample_position = (int)used - 1;
        execute(t->sample, (uint32_t)i + 1);
        drain(t->sample);
        for (int v = 0; v < t->config.vocab; v++)
            if (!isfinite(logits[v]))
                fail(EXIT_FAILED,
                     "behind token %zu of the text the model's logits are not finite: its parameters are too large, "
                     "as those of a run that diverged",
                     n);
        tokens[n] = choose(logits, MIN(t->config.vocab, tokenizer->n), t->settings, (uint64_t)i);
        print_token(&shown, tokenizer, tokens[n]);
    }
    end_stream(&shown, stdout);
    putchar('\n');
    free(tokens);
}

void sample_text(struct trainer *t, const char *prompt, int count)
{
    struct text text = {"the prompt", copy_string(prompt), strlen(prompt)};
    size_t n;
    uint16_t *given = encode_text(&t->data->tokenizer, &text, &n);
    if (n == 0)
        fail(EXIT_USAGE, "%s",
             t->data->tokenizer.kind == TOKENS_IDS
                 ? "the model knows token numbers, not text: give it some to continue, such as --prompt \"17 4 25\""
                 : "--prompt is empty: give at least one character to continue");
    sample_tokens(t, given, n, count);
    free(given);
    free(text.bytes);
}
