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

#include <unistd.h>

enum { HEADER_WORDS = LLMC_HEADER_BYTES / 4 };

/* The first int32; 0 when the file is shorter than that. */
static int32_t first_word(struct reader *reader)
{
    int32_t first = 0;
    if (reader->size >= sizeof first)
        read_at(reader, &first, sizeof first, 0);
    return first;
}

bool has_magic(const char *path, int32_t magic)
{
    struct reader *reader = open_reader(path);
    bool yes = first_word(reader) == magic;
    close_reader(reader);
    return yes;
}

/* The kind of file that a magic number means, so that an error can say what was given instead; NULL: it is none of
 * llm.c's.  Each number is the day on which llm.c's authors made the format. */
static const char *magic_name(int32_t magic)
{
    static const struct {
        int32_t magic;
        const char *name;
    } known[] = {{LLMC_MODEL_MAGIC, "an llm.c model checkpoint"},
                 {20240327, "an llm.c debug state"},
                 {20240328, "an llm.c tokenizer"},
                 {LLMC_TOKENS_MAGIC, "an llm.c token shard"},
                 {20240522, "an llm.c evaluation set"},
                 {20240527, "an llm.c optimizer state"},
                 {20240801, "an llm.c token shard of Llama 3, with tokens of 32 bits"},
                 {20240803, "an llm.c model checkpoint of Llama 3"}};
    for (size_t i = 0; i < COUNT(known); i++)
        if (known[i].magic == magic)
            return known[i].name;
    return NULL;
}

const char *llmc_kind_of_bytes(const char *bytes, size_t n)
{
    int32_t first = 0;
    if (n >= sizeof first)
        memcpy(&first, bytes, sizeof first);
    return magic_name(first);
}

const char *llmc_kind(const char *path)
{
    struct reader *reader = open_reader(path);
    const char *name = magic_name(first_word(reader));
    close_reader(reader);
    return name;
}

/* Reads the header; its first two words must be `magic` and `version`. */
static void read_llmc_header(struct reader *reader, int32_t header[HEADER_WORDS], int32_t magic, int32_t version)
{
    if (reader->size < LLMC_HEADER_BYTES)
        fail(EXIT_FAILED, "%s is damaged: it has %llu bytes, but %s begins with a header of %d bytes; get a fresh copy",
             reader->path, (unsigned long long)reader->size, magic_name(magic), LLMC_HEADER_BYTES);
    read_at(reader, header, LLMC_HEADER_BYTES, 0);
    if (header[0] != magic && magic_name(header[0]))
        fail(EXIT_FAILED, "%s is %s; expected %s", reader->path, magic_name(header[0]), magic_name(magic));
    if (header[0] != magic)
        fail(EXIT_FAILED, "%s is not %s: its first word is %d, expected %d", reader->path, magic_name(magic), header[0],
             magic);
    if (header[1] != version)
        fail(EXIT_FAILED, "%s has version %d in header word 1, expected %d%s", reader->path, header[1], version,
             magic == LLMC_MODEL_MAGIC && header[1] == 5 ? ": it holds bfloat16; export the model in float32" : "");
}

/* ---- model ------------------------------------------------------------------------------------------------------- */

/* Fails unless the header's fields are sane, and the file has the size that they ask for. */
static void check_llmc_model(const struct llmc_model *file, const int32_t header[HEADER_WORDS])
{
    const char *path = file->file->path;
    /* [i]: header word i.  The limits are far above any GPT-2, and small enough that no product below overflows. */
    static const struct {
        const char *name;
        int32_t limit;
    } fields[] = {[2] = {"max_seq_len", 1 << 24}, [3] = {"vocab", 1 << 24},    [4] = {"layers", 1 << 12},
                  [5] = {"heads", 1 << 16},       [6] = {"channels", 1 << 16}, [7] = {"padded_vocab", 1 << 24}};
    for (size_t i = 2; i < COUNT(fields); i++)
        if (header[i] < 1 || header[i] > fields[i].limit)
            fail(EXIT_FAILED, "%s is damaged: header word %zu (%s) is %d, expected 1 to %d; get a fresh copy", path, i,
                 fields[i].name, header[i], fields[i].limit);
    if (file->channels % file->heads)
        fail(EXIT_FAILED,
             "%s is damaged: %d channels (header word 6) cannot be shared by %d heads (word 5); get a fresh copy", path,
             file->channels, file->heads);
    if (file->padded_vocab < file->vocab)
        fail(EXIT_FAILED,
             "%s is damaged: padded_vocab %d (header word 7) is less than vocab %d (word 3); get a fresh copy", path,
             file->padded_vocab, file->vocab);
    const uint64_t C = (uint64_t)file->channels, L = (uint64_t)file->layers;
    uint64_t elements = (uint64_t)(file->padded_vocab + file->max_seq_len + 2) * C + L * (12 * C + 13) * C;
    if (file->file->size != LLMC_HEADER_BYTES + 4 * elements)
        fail(EXIT_FAILED,
             "%s is damaged: its header asks for %llu parameters, that is %llu bytes, but it has %llu; get a fresh "
             "copy",
             path, (unsigned long long)elements, (unsigned long long)(LLMC_HEADER_BYTES + 4 * elements),
             (unsigned long long)file->file->size);
}

struct llmc_model *open_llmc_model(const char *path)
{
    int32_t header[HEADER_WORDS];
    struct reader *reader = open_reader(path);
    read_llmc_header(reader, header, LLMC_MODEL_MAGIC, 3);
    struct llmc_model *model = allocate(1, sizeof *model);
    *model = (struct llmc_model){.file = reader,
                                 .max_seq_len = header[2],
                                 .vocab = header[3],
                                 .layers = header[4],
                                 .heads = header[5],
                                 .channels = header[6],
                                 .padded_vocab = header[7]};
    check_llmc_model(model, header);
    return model;
}

void close_llmc_model(struct llmc_model *file)
{
    close_reader(file->file);
    free(file);
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

static uint16_t *read_tokens(struct reader *reader, uint64_t offset, size_t n)
{
    uint16_t *tokens = allocate(n, sizeof *tokens);
    read_at(reader, tokens, n * sizeof *tokens, offset);
    close_reader(reader);
    return tokens;
}

uint16_t *read_token_shard(const char *path, size_t *n)
{
    int32_t header[HEADER_WORDS];
    struct reader *reader = open_reader(path);
    read_llmc_header(reader, header, LLMC_TOKENS_MAGIC, 1);
    if (header[2] < 0 || reader->size != LLMC_HEADER_BYTES + 2 * (uint64_t)header[2])
        fail(EXIT_FAILED,
             "%s is damaged: its header promises %d tokens of 2 bytes after %d bytes, but it has %llu bytes; get a "
             "fresh copy",
             path, header[2], LLMC_HEADER_BYTES, (unsigned long long)reader->size);
    *n = (size_t)header[2];
    return read_tokens(reader, LLMC_HEADER_BYTES, *n);
}

/* ---- tokens without a header ------------------------------------------------------------------------------------- */

static bool is_day(int32_t number)
{
    int32_t year = number / 10000, month = number / 100 % 100;
    int32_t day = number % 100;
    return year >= 2023 && year < 2050 && month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

/* Refuse a file that begins with a day, a small version and a header that is mostly zeros: it has one of llm.c's
 * formats that came later. */
static void refuse_if_magic_is_unknown(struct reader *reader)
{
    int32_t header[HEADER_WORDS];
    if (reader->size < LLMC_HEADER_BYTES)
        return;
    read_at(reader, header, LLMC_HEADER_BYTES, 0);
    if (!is_day(header[0]) || header[1] < 0 || header[1] >= 100)
        return;
    for (size_t i = 32; i < HEADER_WORDS; i++)
        if (header[i] != 0)
            return;
    fail(EXIT_FAILED,
         "%s begins as llm.c's files do, with the magic number %d, which this yard does not know; expected %d, or "
         "token numbers of 16 bits without a header",
         reader->path, header[0], LLMC_TOKENS_MAGIC);
}

/* Megatron keeps the tokens in NAME.bin, and says in NAME.idx how wide they are. */
static void expect_16_bits(const char *path, const char *index)
{
    enum { TYPE_AT = 17, UINT16 = 8 };
    static const char magic[] = "MMIDIDX\0"; /* 9 bytes: the 0 that C adds belongs to it */
    char begin[TYPE_AT + 1];
    struct reader *reader = open_reader(index);
    if (reader->size >= sizeof begin) {
        read_at(reader, begin, sizeof begin, 0);
        if (memcmp(begin, magic, sizeof magic) == 0 && begin[TYPE_AT] != UINT16)
            fail(EXIT_FAILED,
                 "%s has tokens that are not of 16 bits, as %s says (type %d); write them as uint16 numbers", path,
                 index, begin[TYPE_AT]);
    }
    close_reader(reader);
}

static void check_index(const char *path)
{
    if (!ends_with(path, ".bin"))
        return;
    char *index = format_string("%.*s.idx", (int)(strlen(path) - strlen(".bin")), path);
    if (access(index, R_OK) == 0)
        expect_16_bits(path, index);
    free(index);
}

/* Counts of pairs of 16-bit numbers that are taken for the halves of wider numbers. */
struct halves {
    size_t pairs;
    size_t zero;      /* high halves that are 0 */
    size_t small;     /* high halves of a token that a vocabulary above 65536 may have, or of -1 */
    size_t nonzero;   /* low halves that are not 0 */
    size_t not_small; /* low halves that are 16 or more */
    bool eight;       /* are the numbers of 8 bytes?  Then every second low half is 0 too */
};

static struct halves count_halves(const uint16_t *tokens, size_t n, bool big_endian)
{
    enum { MOST = 1 << 20, SMALL = 16 /* x 65536: no vocabulary is larger */ };
    struct halves h = {.pairs = MIN(n, (size_t)MOST) / 2, .eight = n % 4 == 0};
    for (size_t i = 0; i < h.pairs; i++) {
        uint16_t first = tokens[2 * i], second = tokens[2 * i + 1];
        uint16_t high = second;
        uint16_t low = first;
        if (big_endian) {
            high = (uint16_t)(first << 8 | first >> 8);
            low = second;
        }
        h.zero += high == 0;
        h.small += high < SMALL || high == UINT16_MAX;
        h.nonzero += low != 0;
        h.not_small += low >= SMALL;
        if (i % 2 != big_endian)
            h.eight &= low == 0;
    }
    return h;
}

/* Refuse numbers of 4 or 8 bytes.  Read as numbers of 2, every other one is 0, or nearly every other one when some of
 * the wide numbers are above 65535 or -1.  Real token numbers of 2 bytes are never like that. */
static void refuse_if_wide(const char *path, const uint16_t *tokens, size_t n)
{
    enum { LEAST = 64 }; /* fewer numbers might be like that by chance */
    if (n < LEAST)
        return;
    for (int big_endian = 0; big_endian < 2; big_endian++) {
        const struct halves h = count_halves(tokens, n, big_endian);
        bool all_zero = h.zero == h.pairs && h.nonzero;
        bool mostly = h.small == h.pairs && 2 * h.zero > h.pairs && 4 * h.not_small > h.pairs;
        if (all_zero || mostly)
            fail(EXIT_FAILED,
                 "%s holds tokens of %d bytes%s: %s other 16-bit number is 0; write the tokens as uint16 numbers, of "
                 "2 bytes, or put llm.c's header before them if they are of 2 bytes already",
                 path, h.eight ? 8 : 4, big_endian ? ", the high one first" : "", all_zero ? "every" : "nearly every");
    }
}

static bool is_text_character(uint32_t c) { return c >= ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }

/* Is the beginning of the file UTF-8 throughout?  Token numbers are never that by chance. */
static bool looks_like_text(const char *bytes, size_t size)
{
    enum { LEAST = 64, MOST = 4096 };
    size_t n = MIN(size, (size_t)MOST);
    size_t at = 0;
    while (at < n) {
        uint32_t c = 0;
        size_t length = utf8_decode(bytes + at, n - at, &c);
        if (length == 0 && n < size && n - at < 4)
            break; /* the last character is cut off */
        if (length == 0 || !is_text_character(c))
            return false;
        at += length;
    }
    return n >= LEAST;
}

uint16_t *read_headerless_tokens(const char *path, size_t *n)
{
    struct reader *reader = open_reader(path);
    int32_t magic = first_word(reader);
    if (magic_name(magic))
        fail(EXIT_FAILED, "%s is %s; expected token numbers of 16 bits", path, magic_name(magic));
    refuse_if_magic_is_unknown(reader);
    check_index(path);
    if (reader->size % 2)
        fail(EXIT_FAILED,
             "%s has an odd number of bytes (%llu); a .bin file without llm.c's header holds 16-bit tokens", path,
             (unsigned long long)reader->size);
    *n = (size_t)(reader->size / 2);
    uint16_t *tokens = read_tokens(reader, 0, *n);
    if (looks_like_text((const char *)tokens, 2 * *n)) {
        size_t stem = strlen(path) - (ends_with(path, ".bin") ? strlen(".bin") : 0); /* characters before ".bin" */
        fail(EXIT_USAGE, "%s is text, but a .bin file holds token numbers; give it another name, such as %.*s.txt",
             path, (int)stem, path);
    }
    refuse_if_wide(path, tokens, *n);
    return tokens;
}
