/* llmc.c - the file formats of llm.c: model checkpoints and token shards.
 *
 * Both begin with a header of 256 int32 (1024 bytes), unused words zero, all little endian.
 *
 *     model   [0] 20240326  [1] version 3 (float32)  [2] maxT  [3] V  [4] L  [5] heads  [6] C  [7] Vp
 *             then 16 parameters, each for all layers together, in the order that model/params.c has
 *     tokens  [0] 20240520  [1] version 1  [2] number of tokens, then that many uint16
 *
 * Linear weights are (out, in), row-major; the head is tied to wte; rows V to Vp-1 of wte are padding.
 */
#include "file.h"

enum { HEADER_WORDS = LLMC_HEADER_BYTES / 4, LLMC_TOKENIZER_MAGIC = 20240328 };

/* 0 of a file that is too short for it. */
static int32_t first_word(struct reader *r)
{
    int32_t first = 0;
    if (r->size >= sizeof first)
        read_at(r, &first, sizeof first, 0);
    return first;
}

bool has_magic(const char *path, int32_t magic)
{
    struct reader *r = open_reader(path);
    bool yes = first_word(r) == magic;
    close_reader(r);
    return yes;
}

/* What a magic number stands for, to tell the user which file was given instead. */
static const char *magic_name(int32_t magic)
{
    return magic == LLMC_MODEL_MAGIC       ? "an llm.c model checkpoint"
           : magic == LLMC_TOKENS_MAGIC    ? "an llm.c token shard"
           : magic == LLMC_TOKENIZER_MAGIC ? "an llm.c tokenizer"
                                           : NULL;
}

/* Read the header; its first two words must be `magic` and `version`. */
static void read_header(struct reader *r, int32_t header[HEADER_WORDS], int32_t magic, int32_t version)
{
    if (r->size < LLMC_HEADER_BYTES)
        fail(EXIT_FAILED, "%s is damaged: it has %llu bytes, but %s begins with a header of %d bytes", r->path,
             (unsigned long long)r->size, magic_name(magic), LLMC_HEADER_BYTES);
    read_at(r, header, LLMC_HEADER_BYTES, 0);
    if (header[0] != magic && magic_name(header[0]))
        fail(EXIT_FAILED, "%s is %s; expected %s", r->path, magic_name(header[0]), magic_name(magic));
    if (header[0] != magic)
        fail(EXIT_FAILED, "%s is not %s: its first word is %d, expected %d", r->path, magic_name(magic), header[0],
             magic);
    if (header[1] != version)
        fail(EXIT_FAILED, "%s has version %d in header word 1, expected %d%s", r->path, header[1], version,
             magic == LLMC_MODEL_MAGIC && header[1] == 5 ? ": it holds bfloat16; export the model in float32" : "");
}

/* ---- model ----------------------------------------------------------------------------------------------------- */

struct llmc_model *open_llmc_model(const char *path)
{
    /* By header word.  The limits are far above any GPT-2 and keep every product below within 64 bits. */
    static const struct {
        const char *name;
        int32_t limit;
    } fields[] = {[2] = {"max_seq_len", 1 << 24}, [3] = {"vocab", 1 << 24},    [4] = {"layers", 1 << 12},
                  [5] = {"heads", 1 << 16},       [6] = {"channels", 1 << 16}, [7] = {"padded_vocab", 1 << 24}};
    int32_t header[HEADER_WORDS];
    struct reader *r = open_reader(path);
    read_header(r, header, LLMC_MODEL_MAGIC, 3);
    struct llmc_model *m = allocate(1, sizeof *m);
    *m = (struct llmc_model){r, header[2], header[3], header[4], header[5], header[6], header[7]};
    for (size_t i = 2; i < COUNT(fields); i++)
        if (header[i] < 1 || header[i] > fields[i].limit)
            fail(EXIT_FAILED, "%s is damaged: header word %zu (%s) is %d, expected 1 to %d", path, i, fields[i].name,
                 header[i], fields[i].limit);
    if (m->channels % m->heads)
        fail(EXIT_FAILED, "%s is damaged: %d channels (header word 6) cannot be shared by %d heads (word 5)", path,
             m->channels, m->heads);
    if (m->padded_vocab < m->vocab)
        fail(EXIT_FAILED, "%s is damaged: padded_vocab %d (header word 7) is less than vocab %d (word 3)", path,
             m->padded_vocab, m->vocab);
    const uint64_t C = (uint64_t)m->channels, L = (uint64_t)m->layers;
    const uint64_t elements = (uint64_t)(m->padded_vocab + m->max_seq_len + 2) * C + L * (12 * C + 13) * C;
    if (r->size != LLMC_HEADER_BYTES + 4 * elements)
        fail(EXIT_FAILED, "%s is damaged: its header asks for %llu parameters, that is %llu bytes, but it has %llu",
             path, (unsigned long long)elements, (unsigned long long)(LLMC_HEADER_BYTES + 4 * elements),
             (unsigned long long)r->size);
    return m;
}

void close_llmc_model(struct llmc_model *m)
{
    close_reader(m->file);
    free(m);
}

/* ---- tokens ---------------------------------------------------------------------------------------------------- */

static uint16_t *read_tokens(struct reader *r, uint64_t offset, size_t n)
{
    uint16_t *tokens = allocate(n, sizeof *tokens);
    read_at(r, tokens, n * sizeof *tokens, offset);
    close_reader(r);
    return tokens;
}

uint16_t *read_token_shard(const char *path, size_t *n)
{
    int32_t header[HEADER_WORDS];
    struct reader *r = open_reader(path);
    read_header(r, header, LLMC_TOKENS_MAGIC, 1);
    if (header[2] < 0 || r->size != LLMC_HEADER_BYTES + 2 * (uint64_t)header[2])
        fail(EXIT_FAILED,
             "%s is damaged: its header promises %d tokens of 2 bytes behind %d bytes, but it has %llu bytes", path,
             header[2], LLMC_HEADER_BYTES, (unsigned long long)r->size);
    *n = (size_t)header[2];
    return read_tokens(r, LLMC_HEADER_BYTES, *n);
}

uint16_t *read_headerless_tokens(const char *path, size_t *n)
{
    struct reader *r = open_reader(path);
    int32_t magic = first_word(r);
    if (magic_name(magic))
        fail(EXIT_FAILED, "%s is %s; expected token numbers of 16 bits", path, magic_name(magic));
    if (r->size % 2)
        fail(EXIT_FAILED,
             "%s has an odd number of bytes (%llu); a .bin file without llm.c's header holds 16-bit tokens", path,
             (unsigned long long)r->size);
    *n = (size_t)(r->size / 2);
    return read_tokens(r, 0, *n);
}
