/* config.c - the sizes of a model. */
#include "model.h"

bool same_sizes(const struct config *a, const struct config *b)
{
    return a->layers == b->layers && a->heads == b->heads && a->channels == b->channels && a->seq_len == b->seq_len &&
           a->vocab == b->vocab && a->tied == b->tied;
}

const char *describe_sizes(char out[SIZES_BYTES], const struct config *config)
{
    snprintf(out, SIZES_BYTES, "%d layers, %d heads, %d channels, seq-len %d, vocabulary %d, %s head", config->layers,
             config->heads, config->channels, config->seq_len, config->vocab, config->tied ? "tied" : "untied");
    return out;
}

void check_config(const struct config *config)
{
    char sizes[SIZES_BYTES];
    if (config->layers < 1 || config->heads < 1 || config->channels < 1 || config->seq_len < 1 || config->vocab < 1)
        fail(EXIT_USAGE, "a model needs at least 1 layer, head, channel, position and token; got %s",
             describe_sizes(sizes, config));
    if (config->layers > MOST_LAYERS)
        fail(EXIT_USAGE, "%d layers are more than the %d that a model may have", config->layers, MOST_LAYERS);
    if (config->channels % config->heads)
        fail(EXIT_USAGE, "--channels %d is not a multiple of --heads %d: change one, since heads take equal parts",
             config->channels, config->heads);
    double layer = 13.0 * config->channels * config->channels;
    double ends = ((double)padded_vocab(config->vocab) + config->seq_len) * config->channels;
    if (layer > INT32_MAX || ends > INT32_MAX)
        fail(EXIT_USAGE,
             "a layer of %.1f or an embedding of %.1f billion parameters is beyond this program, which counts them in "
             "31 bits: use fewer --channels",
             layer / 1e9, ends / 1e9);
}

/* As in llm.c, the head may have rows of zeros after those of its words, up to a whole tile of any GPU's product:
 * without them CLBlast copies the logits.  Only a large vocabulary has them, of which they are less than 1 %. */
int64_t padded_vocab(int64_t words)
{
    int64_t rows = (int64_t)round_up((size_t)words, 128);
    return 100 * (rows - words) < words ? rows : words;
}
