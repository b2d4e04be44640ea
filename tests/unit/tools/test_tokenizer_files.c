/* test_tokenizer_files.c - byte-level BPE in files: our own, those of other programs, and the line in a checkpoint.
 *
 * It tests src/tools/tokens.  It checks that a tokenizer which goes through a file has the same tokens, that what a
 * file asks for and cannot be computed here is refused by its name, and that a model keeps its tokenizer.  It catches a
 * merge that is lost, a file that is believed although its tokens contradict each other, and one that is accepted
 * although it means other tokens.
 *
 * To see it fail: in read_tokenizer.c, let an added token have two numbers: no `known` in add_to_vocabulary().
 *
 * The files are texts in this program, or those of a tokenizer that is learnt or drawn here, with one field changed.
 */
#include "tests/support/support_tokens.h"
#include "trainer/file/file.h"

/* ---- as text and as JSON ----------------------------------------------------------------------------------------- */

static void expect_same_tokens(const struct bpe *a, const struct bpe *b, const struct text *text)
{
    size_t n, expected;
    uint16_t *ours = bpe_encode(a, text, &n), *theirs = bpe_encode(b, text, &expected);
    assert_int_equal(n, expected);
    assert_memory_equal(ours, theirs, n * sizeof *ours);
    expect_decoded(b, text, theirs, expected);
    free(ours);
    free(theirs);
}

static char *text_of_json(const struct bpe *bpe)
{
    json_t *json = bpe_to_json(bpe);
    char *text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return text;
}

TEST(a_tokenizer_goes_through_json)
{
    for (int i = 0; i < 10; i++) {
        struct draws draws = {.seed = (uint64_t)i};
        struct bpe *bpe = random_bpe(&draws, 258 + 100 * i);
        struct text text = random_text(&draws, 3000);
        json_t *json = bpe_to_json(bpe);
        struct bpe *again = bpe_from_json(json, "tokenizer.json");
        char *first = text_of_json(bpe), *second = text_of_json(again);
        assert_string_equal(first, second);
        assert_int_equal(valid_utf8(first, strlen(first)), strlen(first));
        expect_same_tokens(bpe, again, &text);
        json_decref(json);
        free(first);
        free(second);
        free((void *)text.bytes);
        free_bpe(bpe);
        free_bpe(again);
    }
}

/* Merges as pairs and a step in a sequence mean the same. */
TEST(a_tokenizer_may_be_written_in_other_ways)
{
    struct draws draws = {.seed = 1};
    struct bpe *bpe = random_bpe(&draws, 400);
    struct text text = random_text(&draws, 3000);
    json_t *json = bpe_to_json(bpe), *merges = json_object_get(json_object_get(json, "model"), "merges"), *merge;
    size_t i;
    json_array_foreach(merges, i, merge)
    {
        char *copy = copy_string(json_string_value(merge)), *space = strchr(copy, ' ');
        *space = '\0';
        json_array_set_new(merges, i, json_pack("[s, s]", copy, space + 1));
        free(copy);
    }
    json_object_set_new(
        json, "pre_tokenizer",
        json_pack("{s:s, s:[O]}", "type", "Sequence", "pretokenizers", json_object_get(json, "decoder")));
    struct bpe *again = bpe_from_json(json, "tokenizer.json");
    expect_same_tokens(bpe, again, &text);
    json_decref(json);
    free((void *)text.bytes);
    free_bpe(bpe);
    free_bpe(again);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

/* A tokenizer.json in which the field at this path has another value. */
struct edit {
    const char *path, *value;
};
static json_t *edited(const struct edit *edit)
{
    struct text text = text_of("abab abab abc abc");
    struct bpe *bpe = learn_bpe(&text, 1, 300, two_added);
    json_t *json = json_deep_copy(bpe_to_json(bpe)), *at = json; /* it has one "ByteLevel" twice */
    char *copy = copy_string(edit->path), *rest = copy, *key = strsep(&rest, ".");
    for (; rest; key = strsep(&rest, "."))
        at = json_is_array(at) ? json_array_get(at, (size_t)atoi(key)) : json_object_get(at, key);
    json_t *value = json_loads(edit->value, JSON_DECODE_ANY, NULL);
    if (json_is_array(at))
        json_array_set_new(at, (size_t)atoi(key), value);
    else if (value)
        json_object_set_new(at, key, value);
    else
        json_object_del(at, key);
    return json;
}

static void read_edited(void *edit) { bpe_from_json(edited(edit), "t.json"); }

/* A change of the file, and what the refusal says. */
struct refused_edit {
    struct edit edit;
    const char *part;
};

static void expect_refusals(const struct refused_edit *refused, size_t n, enum exit_code code)
{
    for (size_t i = 0; i < n; i++)
        expect_refusal(read_edited, (void *)&refused[i].edit, code, refused[i].part);
}

TEST(what_is_not_computed_is_refused_by_its_name)
{
    static const struct refused_edit asks[] = {
        {{"normalizer", "{\"type\": \"NFC\"}"}, "t.json asks for normalizer.type \"NFC\", but only"},
        {{"normalizer", "\"Lowercase\""}, "asks for normalizer.type \"Lowercase\""},
        {{"normalizer", "{\"a\": 1}"}, "asks for normalizer {\"a\":1}"},
        {{"model.type", "\"Unigram\""}, "asks for model.type \"Unigram\""},
        {{"model.type", ""}, "asks for model.type null"},
        {{"model.dropout", "0.1"}, "asks for model.dropout 0.1"},
        {{"model.unk_token", "\"<unk>\""}, "model.unk_token \"<unk>\""},
        {{"model.continuing_subword_prefix", "\"##\""}, "model.continuing_subword_prefix \"##\""},
        {{"model.end_of_word_suffix", "\"</w>\""}, "model.end_of_word_suffix"},
        {{"model.byte_fallback", "true"}, "model.byte_fallback true"},
        {{"model.ignore_merges", "true"}, "model.ignore_merges true"},
        {{"pre_tokenizer.add_prefix_space", "true"}, "pre_tokenizer.add_prefix_space true"},
        {{"pre_tokenizer.use_regex", "false"}, "asks for pre_tokenizer.use_regex false"},
        {{"pre_tokenizer.type", "\"Metaspace\""}, "asks for pre_tokenizer.type \"Metaspace\""},
        {{"pre_tokenizer", "null"}, "asks for pre_tokenizer.type null"},
        {{"post_processor", "{\"type\": \"BertProcessing\"}"}, "post_processor.type \"BertProcessing\""},
        {{"post_processor", "{\"type\": \"TemplateProcessing\", \"single\": []}"}, "post_processor.single []"},
        {{"decoder", "{\"type\": \"Metaspace\"}"}, "decoder.type \"Metaspace\""},
        {{"added_tokens.0.lstrip", "true"}, "asks for lstrip with the added token \"<|end|>\""},
    };
    expect_refusals(asks, COUNT(asks), EXIT_USAGE);
}

TEST(damaged_tokenizer_files_are_refused)
{
    static const struct refused_edit damages[] = {
        {{"model.merges", "\"a b\""}, "its merges must be a list"},
        {{"added_tokens", "{\"content\": 1}"}, "its added_tokens must be a list"},
        {{"added_tokens.0.id", "7"}, "added token 0, \"<|end|>\", has two numbers"},
        {{"added_tokens.0.id", "\"7\""}, "added token 0 must have a content and a number"},
        {{"added_tokens.0.content", "\"\""}, "\"\" must have a number of its own from 0 to"},
        {{"model.vocab.a", "65"}, "must have a number of its own from 0 to 260"}, /* which b has */
        {{"model.vocab.a", "-1"}, "the token \"a\" must have a number of its own from 0 to 260"},
        {{"model.vocab.a", "261"}, "the token \"a\" must have"},
        {{"model.vocab.a", ""}, "must have a number of its own from 0 to 259"}, /* a hole */
        {{"model.vocab", "[1]"}, "its vocab must be an object"},
        {{"model.vocab", ""}, "its vocab must be an object"},
        {{"model.vocab", "{}"}, "must have a number of its own"},
        {{"model.merges.0", "\"ab\""}, "merge 0 must have two tokens, as \"a b\""},
        {{"model.merges.0", "[\"a\", \"b\", \"c\"]"}, "merge 0 must have two tokens"},
        {{"model.merges.0", "\"a q\""}, "merge 0, \"a q\", needs \"aq\", which is not a token of t.json"},
        {{"model.merges.0", "\"a nothing\""}, "needs \"nothing\", which is not a token"},
        {{"model.merges.1", "\"a b\""}, "merge 1, \"a b\", is there twice"},
        {{"model.merges.0", "\"Ġ ab\""}, "merge 0, \"Ġ ab\", joins a token that neither a byte nor a merge"},
    };
    expect_refusals(damages, COUNT(damages), EXIT_FAILED);
}

static void read_file(void *path) { read_bpe(path); }

/* The vocabulary and the merges as GPT-2's two files have them; the texts last. */
struct two_files {
    const char *vocab, *merges;
};
static struct two_files make_two_files(const struct bpe *bpe, int end_of_text)
{
    json_t *json = bpe_to_json(bpe), *model = json_object_get(json, "model"), *merge;
    json_t *vocab = json_object_get(model, "vocab");
    char *merges = copy_string("#version: 0.2\n"), *names;
    size_t i;
    json_object_set_new(vocab, "<|endoftext|>", json_integer(end_of_text));
    json_object_set_new(vocab, "model", json_integer(end_of_text + 1)); /* GPT-2 has this token: it is no field */
    json_array_foreach(json_object_get(model, "merges"), i, merge)
        append_text(&merges, "%s\r\n", json_string_value(merge));
    names = json_dumps(vocab, 0);
    struct two_files two = {.vocab = lasting("%s", names), .merges = lasting("%s", merges)};
    json_decref(json);
    free(names);
    free(merges);
    return two;
}

TEST(gpt2s_two_files_are_one_tokenizer)
{
    struct draws draws = {.seed = 1};
    struct text text = random_text(&draws, 2000);
    struct bpe *bpe = random_bpe(&draws, 400);
    struct two_files two = make_two_files(bpe, 400);
    char *path = write_text("gpt2-vocab.json", "%s", two.vocab);
    char *second = write_text("gpt2-merges.txt", "%s", two.merges);
    struct bpe *by_vocab = read_bpe(path), *by_merges = read_bpe(second);
    assert_int_equal(find_added(by_vocab, "<|endoftext|>"), 400);
    expect_same_tokens(by_vocab, by_merges, &text);
    write_text("marked-merges.txt", "%s", two.merges);
    struct bpe *marked = read_bpe(write_text("marked-vocab.json", "\xEF\xBB\xBF%s", two.vocab)); /* byte order mark */
    expect_same_tokens(by_vocab, marked, &text);
    free_bpe(marked);
    expect_refusal(read_file, write_text("vocab.json", "%s", two.vocab), EXIT_IO, "merges.txt");
    expect_refusal(read_file, write_text("other.json", "%s", two.vocab), EXIT_USAGE,
                   "other.json is not a tokenizer: it has no");
    expect_refusal(read_file, write_text("twice.json", "{\"model\": 1, \"model\": 2}"), EXIT_FAILED,
                   "duplicate object key");
    expect_refusal(read_file, write_text("array.json", "[]"), EXIT_USAGE,
                   "array.json is not a tokenizer: it is no JSON object");
    write_text("gpt2-merges.txt", "a b\nno\xFF t\n");
    expect_refusal(read_file, path, EXIT_FAILED, "gpt2-merges.txt: merge 1 is not UTF-8");
    write_text("gpt2-merges.txt", "a a a\n");
    expect_refusal(read_file, path, EXIT_FAILED, "merge 0, \"a a a\", needs \"a a\", which is not a token of ");
    free((void *)text.bytes);
    free_bpe(bpe);
    free_bpe(by_vocab);
    free_bpe(by_merges);
}

/* Numbers made elsewhere: --tokens FILE says what they mean, and no other word can. */
TEST(a_file_says_what_numbers_mean)
{
    struct draws draws = {.seed = 1};
    struct bpe *bpe = random_bpe(&draws, 400);
    struct two_files two = make_two_files(bpe, 400);
    write_text("gpt2-merges.txt", "%s", two.merges);
    const char *vocab = lasting("%s", write_text("gpt2-vocab.json", "%s", two.vocab));
    char *text = allocate(8001, 1);
    memset(text, 0x81, 8000); /* as numbers of 16 bits: 0x8181 is 33153 */
    const char *ids = lasting("%s", write_text("ids.bin", "%s", text));
    expect_yard(EXIT_USAGE, "has token 33153, but --tokens ", "train --steps 1 --data %s --tokens %s", ids, vocab);
    expect_yard(EXIT_OK, "--tokens chars has no effect: ",
                "train --model tiny --steps 1 --sample-tokens 0 --data %s --tokens chars", ids);
    free(text);
    free_bpe(bpe);
}

TEST(too_many_tokens_are_refused_by_their_number)
{
    struct bpe *bpe = only_bytes(258);
    json_t *json = bpe_to_json(bpe), *many = json_object();
    for (int i = 0; i < 65537; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        json_object_set_new(many, name, json_integer(i));
    }
    json_object_set_new(json_object_get(json, "model"), "vocab", many);
    char *text = json_dumps(json, 0);
    expect_refusal(
        read_file, write_text("many.json", "%s", text), EXIT_USAGE,
        "many.json has 65539 tokens, but token numbers are kept in 16 bits: take a tokenizer of at most 65536");
    json_decref(json);
    free(text);
    free_bpe(bpe);
}

/* llm.c's gpt2_tokenizer.bin with this version and number of tokens, and then the tokens "a" and "end". */
static char *write_llmc(int32_t version, int32_t n)
{
    unsigned char file[1024 + 6] = {[1024] = 1, 'a', 3, 'e', 'n', 'd'};
    memcpy(file, (int32_t[]){20240328, version, n, 1}, 16);
    return write_file("gpt2_tokenizer.bin", file, sizeof file);
}

TEST(a_tokenizer_of_llmc_only_decodes)
{
    struct bpe *bpe = read_bpe(write_llmc(2, 2));
    size_t n;
    assert_memory_equal(bpe_decode(bpe, 1, &n), "end", 3);
    assert_int_equal(n, 3);
    assert_int_equal(find_added(bpe, "end"), 1);
    json_t *json = bpe_to_json(bpe);
    struct bpe *again = bpe_from_json(json, "x");
    assert_true(again->decodes_only);
    assert_int_equal(find_added(again, "end"), 1);
    expect_refusal(read_file, write_file("cut.bin", (int32_t[]){20240328, 2, 2, 1}, 16), EXIT_FAILED,
                   "cut.bin is cut off: it has 16 bytes, and its header alone 1024");
    expect_refusal(read_file, write_llmc(3, 2), EXIT_FAILED, "says version 3 and 2 tokens");
    expect_refusal(read_file, write_llmc(1, 70000), EXIT_FAILED, "and 70000 tokens");
    expect_refusal(read_file, write_llmc(1, -1), EXIT_FAILED, "and -1 tokens");
    expect_refusal(read_file, write_llmc(1, 3), EXIT_FAILED, "token 2 has no bytes");
    expect_refusal(read_file, write_llmc(1, 1), EXIT_FAILED, "goes on after its last token, at byte 1026");
    json_decref(json);
    free_bpe(bpe);
    free_bpe(again);
}

/* The tokens come back from tokenizer.json; of any other nothing is taken. */
TEST(tokenizers_come_back)
{
    static const char *const ours[] = {"bytes", "chars a 20 41 416 20ac 1f600"};
    static const char *const others[] = {
        "{}",
        "{\"model\": {\"vocab\": {\"a\": 0, \"b\": 1}, \"merges\": [\"a b\"]}}",
        "{\"model\": {\"vocab\": {\"ab\": 0, \"b\": 1}, \"merges\": []}}",
        "{\"model\": {\"vocab\": {\"b\": 0, \"a\": 1}, \"merges\": []}}",
        "{\"model\": {\"vocab\": {\"a\": 0, \"b\": 0}, \"merges\": []}}",
        "{\"model\": {\"vocab\": {\"a\": 0, \"b\": 2}, \"merges\": []}}",
        "{\"model\": {\"vocab\": {\"a\": 0, \"b\": \"1\"}, \"merges\": []}}",
        "{\"pre_tokenizer\": {\"type\": \"ByteLevel\"}, \"model\": {\"vocab\": {\"a\": 0}, \"merges\": []}}",
        "{\"normalizer\": {\"type\": \"Lowercase\"}, \"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": "
        "[]}}",
        "{\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"a\": 0}, \"merges\": []}}",
        "{\"added_tokens\": [{}], \"model\": {\"vocab\": {\"a\": 0}, \"merges\": []}}"};
    for (size_t i = 0; i < COUNT(ours); i++) {
        struct tokenizer tokenizer = tokenizer_from_text(ours[i], "");
        json_t *json = tokenizer_to_json(&tokenizer);
        struct tokenizer back = single_from_json(json);
        char *text = tokenizer_to_text(&back);
        assert_string_equal(text, ours[i]);
        free(text);
        free_tokenizer(&tokenizer);
        free_tokenizer(&back);
        json_decref(json);
    }
    for (size_t i = 0; i < COUNT(others); i++) {
        json_t *json = json_loads(others[i], 0, NULL);
        assert_non_null(json);
        assert_int_equal(single_from_json(json).n, 0);
        json_decref(json);
    }
    assert_int_equal(single_from_json(NULL).n, 0);
}

/* ---- as a kind of tokenizer -------------------------------------------------------------------------------------- */

/* A tokenizer of n tokens as JSON; the text lasts. */
static const char *json_of_tokens(int n)
{
    struct draws draws = {.seed = 1};
    struct bpe *bpe = random_bpe(&draws, n);
    char *text = text_of_json(bpe);
    const char *json = lasting("%s", text);
    free(text);
    free_bpe(bpe);
    return json;
}

/* How many tokens the tokenizer beside a model has; 0: there is none. */
static int tokens_beside(const char *model)
{
    struct tokenizer tokenizer = tokenizer_beside(temp_path(model));
    int n = tokenizer.n;
    free_tokenizer(&tokenizer);
    return n;
}

/* Each folder has a tokenizer of another size.  What lies beside it in a folder, or above, is not taken. */
TEST(a_model_has_the_tokenizer_of_its_own_folder)
{
    static const char *const folders[] = {"beside-300", "beside-400", "beside-none"};
    for (size_t i = 0; i < COUNT(folders); i++)
        make_folder(temp_path(folders[i]));
    write_text("tokenizer.json", "%s", json_of_tokens(500));
    write_text("beside-300/tokenizer.json", "%s", json_of_tokens(300));
    write_text("beside-300/vocab.json", "{}"); /* comes after tokenizer.json */
    write_text("beside-400/tokenizer.json", "%s", json_of_tokens(400));
    assert_int_equal(tokens_beside("model.safetensors"), 500);
    assert_int_equal(tokens_beside("beside-300/model.safetensors"), 300);
    assert_int_equal(tokens_beside("beside-400/model.safetensors"), 400);
    assert_int_equal(tokens_beside("beside-none/model.safetensors"), 0);
    write_text("beside-400/tokenizer.json", "{\"model\": 1}"); /* a damaged one is left out, with a warning */
    assert_int_equal(tokens_beside("beside-400/model.safetensors"), 0);
}

TEST(two_files_beside_a_model_are_its_tokenizer)
{
    struct draws draws = {.seed = 1};
    struct bpe *bpe = random_bpe(&draws, 400);
    struct two_files two = make_two_files(bpe, 400);
    make_folder(temp_path("beside-two"));
    write_text("beside-two/vocab.json", "%s", two.vocab);
    write_text("beside-two/merges.txt", "%s", two.merges);
    assert_int_equal(tokens_beside("beside-two/model.safetensors"), 402); /* 400, and two that are added to them */
    free_bpe(bpe);
}

static void read_line(void *line) { tokenizer_from_text(line, "run/model"); }
static void check_word(void *word) { check_tokens(word); }

TEST(a_checkpoint_keeps_a_tokenizer)
{
    const struct text text = text_of("abab abab<|endoftext|> abc abc");
    const struct texts train = {.items = (struct text *)&text, .n = 1};
    struct tokenizer tokenizer = make_tokenizer("bpe:300", &train, &train);
    char *line = tokenizer_to_text(&tokenizer);
    struct tokenizer again = tokenizer_from_text(line, "run/model");
    assert_int_equal(again.n, tokenizer.n);
    assert_false(again.takes_ids);
    assert_at_least(end_of_text(&tokenizer), 0); /* the text has such a token */
    assert_int_equal(end_of_text(&tokenizer), end_of_text(&again));
    assert_false(is_tokenizer(&again, lasting("bpe:%d", tokenizer.n))); /* it would learn others */
    assert_false(is_tokenizer(&again, "bytes"));
    expect_same_tokens(tokenizer.own, again.own, &text);
    for (size_t n = 0; n < strlen(line); n += 97) {
        char *cut = format_string("%.*s", (int)n, line);
        expect_refusal(read_line, cut, EXIT_FAILED, "run/model is damaged: its tokenizer");
        free(cut);
    }
    free(line);
    free_tokenizer(&tokenizer);
    free_tokenizer(&again);
}

TEST(words_of_tokens_are_checked)
{
    check_tokens("bytes");
    check_tokens("bpe:257");
    check_tokens("bpe:65536");
    static const char *const wrong[] = {"bpe", "bpe:", "bpe:256", "bpe:65537", "bpe:1k"};
    for (size_t i = 0; i < COUNT(wrong); i++)
        expect_refusal(check_word, (void *)wrong[i], EXIT_USAGE, "expected bpe:N, where N is how many tokens to learn");
    expect_refusal(check_word, (char *)"words", EXIT_USAGE, "takes bytes, chars, bpe:N, or the FILE of a tokenizer: ");
    expect_refusal(check_word, (char *)"ids", EXIT_USAGE, "\"ids\" is none of these");
}

static void encode_by_llmc(void *tokenizer)
{
    const struct text text = text_of("a");
    size_t n;
    encode_text(tokenizer, &text, &n);
}

TEST(a_tokenizer_that_only_decodes_takes_numbers)
{
    struct tokenizer tokenizer = make_tokenizer(write_llmc(2, 2), NULL, NULL);
    const struct text text = text_of("1 0");
    size_t n;
    assert_true(tokenizer.takes_ids);
    assert_null(tokenizer_to_json(&tokenizer));
    uint16_t *tokens = encode_text(&tokenizer, &text, &n);
    assert_int_equal(n, 2);
    assert_int_equal(tokens[0], 1);
    char *line = tokenizer_to_text(&tokenizer);
    struct tokenizer again = tokenizer_from_text(line, "x");
    assert_true(again.takes_ids);
    expect_refusal(encode_by_llmc, &again, EXIT_USAGE, "has \"a\", but this model knows only token numbers");
    free(tokens);
    free(line);
    free_tokenizer(&tokenizer);
    free_tokenizer(&again);
}
