/* test_tokens.c - byte-level BPE: words, encoding, learning, files. */
#include "../src/tools/tokens/inner.h"
#include "../src/trainer/file/file.h"
#include "support.h"

/* ---- for tests/tokenizers.sh ------------------------------------------------------------------------------------ */

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    if (!value)
        fail(EXIT_USAGE, "the environment variable %s is not set", name);
    return value;
}

static struct text text_of_file(const char *path)
{
    struct text text = {.name = path};
    text.bytes = read_whole(path, &text.n);
    return text;
}

/* Writes the numbers of the text TEXT by the tokenizer TOKENS to the file OUT, as uint16. */
CASE(encode)
{
    struct bpe *b = read_bpe(variable("TOKENS"));
    struct text text = text_of_file(variable("TEXT"));
    const uint64_t begun = now_ns();
    size_t n;
    uint16_t *tokens = bpe_encode(b, &text, &n);
    const double seconds = 1e-9 * (double)(now_ns() - begun);
    printf("%zu bytes, %zu tokens, %.3f s, %.1f MB/s\n", text.n, n, seconds, 1e-6 * (double)text.n / seconds);
    struct writer *w = open_writer(variable("OUT"));
    write_bytes(w, tokens, n * sizeof *tokens);
    publish(w);
}

/* Learns N tokens from TEXT, among them <|endoftext|>, and writes OUT, a tokenizer.json. */
CASE(learn)
{
    static const char *const added[] = {"<|endoftext|>", NULL};
    struct text text = text_of_file(variable("TEXT"));
    int64_t n;
    if (!parse_int(variable("N"), &n))
        fail(EXIT_USAGE, "N is no number");
    const uint64_t begun = now_ns();
    struct bpe *b = learn_bpe(&text, 1, (int)n, added);
    printf("%zu bytes, %d tokens, %.3f s\n", text.n, b->n, 1e-9 * (double)(now_ns() - begun));
    json_t *json = bpe_to_json(b);
    char *out = json_dumps(json, 0);
    publish_text(variable("OUT"), out);
}
