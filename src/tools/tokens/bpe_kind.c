/* bpe_kind.c - registers byte pair encoding as a kind of tokenizer, which --tokens bpe:N learns, --tokens FILE reads,
 * and a file beside a model may hold. */
#include "tokens_parts.h"
#include "trainer/base/additions.h"
#include "trainer/base/json.h"
#include "trainer/file/file.h"
#include "trainer/model_files/model_files.h"

enum { LEAST_N = 257 };
static const char end_of_texts[] = "<|endoftext|>";

static const struct bpe *bpe_of(const struct tokenizer *tokenizer) { return tokenizer->own; }

static struct tokenizer tokenizer_of(struct bpe *bpe);

/* The N of "bpe:N", a value of --tokens; 0: the value does not have such a number. */
static int number_after_colon(const char *value)
{
    int64_t n;
    const char *colon = strchr(value, ':');
    if (!colon || !parse_int(colon + 1, &n))
        return 0;
    return n >= LEAST_N && n <= MOST_TOKENS ? (int)n : 0;
}

static void refuse_if_no_number(const char *value)
{
    if (!number_after_colon(value))
        fail(EXIT_USAGE, "--tokens %s: expected bpe:N, where N is how many tokens to learn, from %d to %d", value,
             LEAST_N, MOST_TOKENS);
}

/* Learns tokens from the training text alone: any bytes can be encoded, so `val` is not needed.  If the training text
 * has <|endoftext|>, this becomes an added token. */
static struct tokenizer learn(const char *value, const struct texts *train, const struct texts *val)
{
    (void)val;
    static const char *const end_alone[] = {end_of_texts, NULL};
    const char *found = NULL;
    for (size_t i = 0; i < train->n && !found; i++)
        found = memmem(train->items[i].bytes, train->items[i].n, end_of_texts, strlen(end_of_texts));
    int wanted = number_after_colon(value);
    struct tokenizer tokenizer = tokenizer_of(learn_bpe(train->items, train->n, wanted, found ? end_alone : NULL));
    if (tokenizer.n < wanted)
        warn("--tokens %s: the training text gives only %d tokens, since then no two tokens stand side by side twice; "
             "give more text for more tokens",
             value, tokenizer.n);
    return tokenizer;
}

static struct tokenizer read_tokenizer_file(const char *path)
{
    json_t *json = json_load_file(path, 0, NULL); /* NULL: the file is no JSON */
    struct tokenizer tokenizer = single_from_json(json);
    json_decref(json);
    if (tokenizer.n == 0)
        tokenizer = tokenizer_of(read_bpe(path));
    if (tokenizer.takes_ids)
        inform("%s has no merges, so it only decodes: give prompts as token numbers, and train on files of tokens",
               path);
    return tokenizer;
}

struct neighbour { /* a file beside a model; the argument of read_neighbour(), for attempt() */
    char *path;    /* NULL: there is none */
    struct tokenizer tokenizer;
};

static void read_neighbour(void *argument)
{
    struct neighbour *neighbour = argument;
    neighbour->tokenizer = read_tokenizer_file(neighbour->path);
}

static struct tokenizer read_beside(const char *model)
{
    static const char *const file_names[] = {"tokenizer.json", "vocab.json", "gpt2_tokenizer.bin"};
    struct neighbour neighbour = {0};
    for (size_t i = 0; i < COUNT(file_names) && !neighbour.path; i++) {
        char *path = file_beside(model, file_names[i]);
        if (exists(path))
            neighbour.path = path;
        else
            free(path);
    }
    if (!neighbour.path)
        return neighbour.tokenizer;
    struct problem *problem = attempt(read_neighbour, &neighbour);
    if (problem)
        print_problem("yard: warning: the tokenizer beside the model is not used: ", problem);
    free(neighbour.path);
    return neighbour.tokenizer;
}

static uint16_t *encode_bpe(const struct tokenizer *tokenizer, const struct text *text, size_t *n)
{
    return tokenizer->takes_ids ? encode_ids(tokenizer, text, n) : bpe_encode(bpe_of(tokenizer), text, n);
}

static const char *decode_bpe(const struct tokenizer *tokenizer, int32_t token, char own[DECODED_BYTES], size_t *n)
{
    (void)own;
    return bpe_decode(bpe_of(tokenizer), token, n);
}

static int find_end(const struct tokenizer *tokenizer) { return find_added(bpe_of(tokenizer), end_of_texts); }

static char *bpe_to_text(const struct tokenizer *tokenizer)
{
    json_t *json = bpe_to_json(bpe_of(tokenizer));
    char *compact = dump_json(json, JSON_COMPACT);
    char *text = format_string(" %s", compact);
    json_decref(json);
    free(compact);
    return text;
}

static struct tokenizer bpe_from_text(const char *text)
{
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    struct tokenizer tokenizer = {0};
    if (json_is_object(json))
        tokenizer = tokenizer_of(bpe_from_json(json, "the tokenizer of the model"));
    json_decref(json);
    return tokenizer;
}

static const struct token_kind token_bpe;
static json_t *bpe_or_single_to_json(const struct tokenizer *tokenizer)
{
    if (tokenizer->kind != &token_bpe)
        return single_to_json(tokenizer);
    return tokenizer->takes_ids ? NULL : bpe_to_json(bpe_of(tokenizer));
}

static bool drop_bpe_tokens(struct tokenizer *tokenizer, int n)
{
    if (!drop_tokens(tokenizer->own, n))
        return false;
    tokenizer->n = n;
    return true;
}

static void free_bpe_tokenizer(struct tokenizer *tokenizer) { free_bpe(tokenizer->own); }

static const struct tokenizer_files files = {
    .read = read_tokenizer_file,
    .read_beside = read_beside,
    .to_json = bpe_or_single_to_json,
};
static const struct token_kind token_bpe = {
    .name = "bpe",
    .word = "bpe:N",
    .noun = "byte pairs",
    .learns = true,
    .check = refuse_if_no_number,
    .make = learn,
    .encode = encode_bpe,
    .decode = decode_bpe,
    .end = find_end,
    .to_text = bpe_to_text,
    .from_text = bpe_from_text,
    .drop = drop_bpe_tokens,
    .free = free_bpe_tokenizer,
    .files = &files,
};

static struct tokenizer tokenizer_of(struct bpe *bpe)
{
    return (struct tokenizer){.kind = &token_bpe, .n = bpe->n, .takes_ids = bpe->decodes_only, .own = bpe};
}

static const struct training_parts training = {.tokens = &token_bpe};
const struct module module_tokens = {
    .name = "tokens",
    .training = &training,
};
