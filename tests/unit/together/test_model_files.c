/* test_model_files.c - models of other programs: config.json, names, shards, heads, and files that are no model.
 *
 * It tests read_weights.c and read_model.c of src/trainer/model_files, and models.c of src/tools/foreign.  It checks
 * that a model which is computed in the same way here is accepted, whatever its names and files are, and that another
 * one is refused with the reason.  It catches heads that are guessed without a word, a tensor that is transposed, a
 * shard that is missing, and a second tensor of a name.
 *
 * To see it fail: in read_weights.c, let a name that two tensors have pass.
 *
 * The test writes the smallest model of each kind.  Three expected losses are those that Hugging Face's transformers
 * computes.
 */
#include "planning/lists/lists.h"
#include "techniques/checkpoint/checkpoint.h"
#include "tests/support/support_state.h"
#include "tools/ckpt/model_forms.h"
#include "trainer/model_files/model_files.h"
#include "trainer/train/train.h"

/* ---- a GPT-2 as others write it ---------------------------------------------------------------------------------- */

static const struct config gpt = {
    .layers = 1,
    .heads = 4, /* of 32 channels: a guess would be 2 */
    .channels = 128,
    .seq_len = 8,
    .vocab = 96,
    .tied = true,
};

/* The ways in which files differ.  Values depend on the parameter alone, and a tied file's are those of all. */
struct variant {
    const char *prefix;        /* stands before every name */
    const char *before_layers; /* stands before every name but the head's, after the prefix */
    bool no_embedding;         /* the matrix of the words is stored as the head alone */
    enum { NO_HEAD, SAME_HEAD, OTHER_HEAD } head;
    const char *metadata;       /* the value of "config" in the file's metadata */
    const char *renamed, *name; /* a parameter, and its name instead */
    const char *more;           /* the name of one more tensor, which has one element */
    int begin, end;             /* the parameters that are there; end 0: all are */
};

/* Random values for parameter i, drawn as if it were number `as` of the table. */
static float *values_of_param(const struct params *params, int i, int as)
{
    const struct param *param = &params->items[i];
    float *values = random_floats(param_elements(param), (uint64_t)as + 1);
    for (size_t k = 0; k < param_elements(param); k++)
        values[k] = param->init == INIT_ONE ? 1 + 0.1f * values[k] : 0.1f * values[k];
    return values;
}

static const char *name_in(const struct variant *variant, const char *name)
{
    bool head = strcmp(name, "lm_head.weight") == 0;
    if (variant->renamed && strcmp(name, variant->renamed) == 0)
        name = variant->name;
    if (variant->no_embedding && strcmp(name, "wte.weight") == 0)
        return lasting("%slm_head.weight", variant->prefix ? variant->prefix : "");
    return lasting("%s%s%s", variant->prefix ? variant->prefix : "",
                   variant->before_layers && !head ? variant->before_layers : "", name);
}

static const char *write_model(const char *path, const struct variant *variant)
{
    struct config config = gpt;
    config.tied = variant->head == NO_HEAD;
    struct params *params = new_params(&config, &one_rank, 0);
    struct st_writer *writer = new_st_writer(path);
    int end = variant->end ? variant->end : params->n;
    st_metadata(writer, "format", "pt");
    if (variant->metadata)
        st_metadata(writer, "config", variant->metadata);
    if (variant->more)
        st_declare(writer, variant->more, DTYPE_F32, 1, (int64_t[]){1});
    for (int i = variant->begin; i < end; i++) {
        const struct param *param = &params->items[i];
        st_declare(writer, name_in(variant, param->name), DTYPE_F32, param->n_dims,
                   (int64_t[]){param->shape[param->conv1d], param->shape[!param->conv1d]});
    }
    st_begin(writer);
    if (variant->more)
        st_write(writer, &(float){1}, sizeof(float));
    for (int i = variant->begin; i < end; i++) {
        const struct param *param = &params->items[i];
        bool head = strcmp(param->name, "lm_head.weight") == 0;
        int as = head && variant->head == SAME_HEAD ? WTE : i;
        if (!config.tied &&
            i > params->n - 3) /* ln_f comes after the head, and has the values that it has without one */
            as = i - 1;
        float *values = transpose_conv1d(param, values_of_param(params, i, as), OURS_TO_FILE);
        st_write(writer, values, param_elements(param) * sizeof *values);
        free(values);
    }
    st_publish(writer);
    free_params(params);
    return path;
}

/* A folder of that name with such a model, and a config.json; NULL: none. */
static const char *model_folder(const char *name, const struct variant *variant, const char *config)
{
    const char *folder = temp_path(name);
    make_folder(folder);
    write_model(lasting("%s/model.safetensors", folder), variant);
    if (config)
        publish_text(lasting("%s/config.json", folder), config);
    return folder;
}

/* XXH64 of all parameters as they are loaded. */
static uint64_t loaded(const char *path)
{
    struct source source = open_source(path, 4);
    struct machine *machine = open_machine(&(struct machine_options){0});
    struct pool *pool = new_pool(machine);
    struct model *model = new_model(pool, &source.config, &one_rank, TO_COMPUTE, (struct gradients){0});
    struct list *list = new_list(pool, "none");
    uint64_t hash = 0;
    must(finish_lists(pool, &list, 1));
    init_from_source(model, &source);
    for (int i = 0; i < model->params->n; i++) {
        size_t n = param_elements(&model->params->items[i]);
        float *values = allocate(n, sizeof *values);
        read_param(model, i, KEPT_VALUE, values);
        hash = hash_bytes(values, n * sizeof *values, hash);
        free(values);
    }
    free_model(model);
    free_list_and_machine(list);
    close_source(&source);
    return hash;
}

/* ---- what is said of a model ------------------------------------------------------------------------------------- */

#define SIZES "\"n_layer\": 1, \"n_head\": 4, \"n_embd\": 128, \"n_positions\": 8, \"vocab_size\": 96"

static struct config config_beside(const char *config)
{
    return read_config(lasting("%s/model.safetensors", model_folder("said", &(struct variant){0}, config)), 0);
}

TEST(heads_are_those_of_config_json)
{
    assert_int_equal(config_beside("{\"model_type\": \"gpt2\", " SIZES "}").heads, 4);
    assert_int_equal(config_beside("{\"num_attention_heads\": 8}").heads, 8);
    assert_int_equal(config_beside("{\"n_head\": 1, \"n_positions\": null}").heads, 1);
    assert_int_equal(config_beside("{\"n_head\": 4, \"n_positions\": 8, \"n_ctx\": 1024}").heads,
                     4); /* files of early GPT-2 have n_ctx too */
    struct variant said = {.metadata = "{\"n_head\": 4}"};
    assert_int_equal(read_config(write_model(temp_path("alone.safetensors"), &said), 0).heads, 4);
    const char *both = model_folder("both", &said, "{\"n_head\": 4}");
    assert_int_equal(read_config(lasting("%s/model.safetensors", both), 0).heads, 4);
}

/* A text of tokens that the model knows, and a step on its first 4 windows. */
static const char *one_step(void)
{
    char text[64] = "";
    for (int i = 0; i < 63; i++)
        text[i] = (char)(32 + 7 * i % 64);
    return lasting("--data '%s' --val-share 0 --order file --batch 4 --steps 1 --sample-tokens 0",
                   write_text("windows.txt", "%s", text));
}

/* The number of heads comes from config.json or from --heads.  Where neither says it, yard guesses it, and says so. */
TEST(heads_that_nobody_says_are_guessed_aloud)
{
    const char *said = model_folder("heads", &(struct variant){0}, "{" SIZES "}"), *step = one_step();
    const char *unsaid = model_folder("unsaid", &(struct variant){0}, NULL);
    expect_yard(EXIT_OK, "1 layers, 4 heads, 128 channels", "train --init '%s' --heads 4 %s", said, step);
    expect_yard(EXIT_USAGE, "has 4 heads, not 2", "train --init '%s' --heads 2 %s", said, step);
    struct ran ran =
        expect_yard(EXIT_OK, "1 layers, 4 heads, 128 channels", "train --init '%s' --heads 4 %s", unsaid, step);
    assert_null(strstr(ran.err, "guessed"));
    ran = expect_yard(EXIT_OK, "a model with 2 heads of 64 channels, as in GPT-2; --heads N says another",
                      "train --init '%s' %s", unsaid, step);
    assert_contains(ran.out, "1 layers, 2 heads, 128 channels");
    expect_yard(EXIT_USAGE, "has 4 heads, not 2", "sample --from '%s' --heads 2", said);
}

TEST(what_is_computed_here_is_taken)
{
    static const char *const taken[] = {
        "\"activation_function\": \"gelu_new\"",
        "\"activation_function\": \"gelu_pytorch_tanh\"",
        "\"layer_norm_epsilon\": 1e-05",
        "\"layer_norm_epsilon\": 0.000010000000001",
        "\"n_inner\": null",
        "\"n_inner\": 512",
        "\"scale_attn_weights\": true, \"scale_attn_by_inverse_layer_idx\": false, \"reorder_and_upcast_attn\": true",
        "\"hidden_size\": 128, \"num_hidden_layers\": 1, \"max_position_embeddings\": 8",
        "\"attn_pdrop\": 0.1, \"torch_dtype\": \"float16\", \"unheard_of\": {}"};
    for (size_t i = 0; i < COUNT(taken); i++)
        assert_int_equal(config_beside(lasting("{" SIZES ", %s}", taken[i])).heads, 4);
}

static void read_it(void *path) { read_config(path, 0); }

static const struct config_case {
    const char *fields; /* of config.json */
    const char *part;   /* of the sentence */
} not_computed[] = {
    {"\"activation_function\": \"relu\"", "config.json asks for activation_function \"relu\", but only \"gelu_new\""},
    {"\"activation_function\": \"gelu\"", "activation_function \"gelu\""},
    {"\"activation_function\": \"quick_gelu\"", "activation_function \"quick_gelu\""},
    {"\"activation_function\": 3", "activation_function 3"},
    {"\"hidden_act\": \"relu\"", "hidden_act \"relu\""},
    {"\"layer_norm_eps\": 1e-12", "layer_norm_eps 1e-12"},
    {"\"layer_norm_epsilon\": 0.1", "layer_norm_epsilon 0.1, but only"},
    {"\"layer_norm_epsilon\": 1e-6", "layer_norm_epsilon"},
    {"\"layer_norm_epsilon\": \"1e-5\"", "layer_norm_epsilon \"1e-5\""},
    {"\"n_inner\": 256", "n_inner 256, but only 512"},
    {"\"scale_attn_weights\": false", "scale_attn_weights false"},
    {"\"scale_attn_by_inverse_layer_idx\": true", "scale_attn_by_inverse_layer_idx true"},
    {"\"add_cross_attention\": true", "add_cross_attention true"},
    {"\"quantization_config\": {\"bits\": 4}", "quantization_config"},
    {"\"model_type\": \"llama\"", "model_type \"llama\""},
};

/* What the file and its config.json say of one model differs, or is no number. */
static const struct config_case contradicting[] = {
    {"\"n_layer\": 2", "config.json says n_layer 2, but by the shapes"},
    {"\"num_hidden_layers\": 12", "num_hidden_layers 12"},
    {"\"n_embd\": 768", "n_embd 768"},
    {"\"vocab_size\": 50257", "vocab_size 50257"},
    {"\"n_positions\": 1024", "n_positions 1024"},
    {"\"n_ctx\": 16", "n_ctx 16"},
    {"\"n_head\": 3", "n_head is 3, which must divide"},
    {"\"n_head\": \"4\"", "n_head must be a whole number"},
    {"\"n_head\": 0", "n_head must be a whole number"},
    {"\"n_head\": 4294967300", "n_head is 4294967300"},
    {"\"n_head\": 4, \"n_head\": 2", "is not valid JSON"},
    {"\"n_head\": 4, \"num_attention_heads\": 2", "contradicts itself: n_head is 4, num_attention_heads is 2"},
    {"\"n_layer\": 1, \"num_hidden_layers\": 2", "contradicts itself: n_layer is 1, num_hidden_layers is 2"},
    {"\"tie_word_embeddings\": \"yes\"", "tie_word_embeddings must be true or false"},
    {"\"tie_word_embeddings\": false", "has no tensor lm_head.weight: its head is missing"},
};

static void expect_named(const char *model, const struct config_case *cases, size_t n, int code)
{
    const char *folder = model_folder(model, &(struct variant){0}, NULL);
    char *path = lasting("%s/model.safetensors", folder);
    for (size_t i = 0; i < n; i++) {
        publish_text(lasting("%s/config.json", folder), lasting("{%s}", cases[i].fields));
        expect_refusal(read_it, path, code, cases[i].part);
    }
}

TEST(what_is_not_computed_here_is_named) { expect_named("uncomputed", not_computed, COUNT(not_computed), EXIT_USAGE); }

TEST(contradictions_are_named) { expect_named("untrue", contradicting, COUNT(contradicting), EXIT_FAILED); }

TEST(a_config_that_is_no_object_is_refused)
{
    const char *folder = model_folder("no-object", &(struct variant){0}, NULL);
    char *path = lasting("%s/model.safetensors", folder);
    publish_text(lasting("%s/config.json", folder), "[]");
    expect_refusal(read_it, path, EXIT_FAILED, "expected a JSON object");
    publish_text(lasting("%s/config.json", folder), "{\"n_head\": 4");
    expect_refusal(read_it, path, EXIT_FAILED, "config.json is not valid JSON: line 1");
}

TEST(numbers_of_heads_that_differ_are_refused)
{
    struct variant two = {.metadata = "{\"n_head\": 2}"};
    char *path = lasting("%s/model.safetensors", model_folder("two", &two, "{\"n_head\": 4}"));
    expect_refusal(read_it, path, EXIT_FAILED, "config.json says 4 heads, but");
    struct variant twice = {.metadata = "{\"n_head\": 4, \"n_head\": 2}"};
    expect_refusal(read_it, lasting("%s", write_model(temp_path("twice.safetensors"), &twice)), EXIT_FAILED,
                   "or has a field twice");
}

TEST(a_config_that_is_a_link_to_nothing_is_refused)
{
    char *path = lasting("%s/model.safetensors", model_folder("nowhere", &(struct variant){0}, NULL));
    assert_int_equal(symlink("gone.json", lasting("%s/config.json", temp_path("nowhere"))), 0);
    expect_refusal(read_it, path, EXIT_IO, "cannot open");
}

/* ---- names and files --------------------------------------------------------------------------------------------- */

static void write_index(const char *path, const char *first, const char *second)
{
    struct params *params = new_params(&gpt, &one_rank, 0);
    json_t *map = json_object();
    for (int i = 0; i < params->n; i++)
        json_object_set_new(map, lasting("transformer.%s", params->items[i].name), json_string(i < 6 ? first : second));
    json_t *index = json_pack("{s:{s:i}, s:o}", "metadata", "total_size", 1, "weight_map", map);
    publish_text(path, json_dumps(index, 0));
    json_decref(index);
    free_params(params);
}

static const char first_shard[] = "model-00001-of-00002.safetensors",
                  second_shard[] = "model-00002-of-00002.safetensors";

static const char *shards(const char *name)
{
    const char *folder = temp_path(name);
    make_folder(folder);
    struct variant variant = {.before_layers = "transformer.", .end = 6};
    write_model(lasting("%s/%s", folder, first_shard), &variant);
    variant = (struct variant){.before_layers = "transformer.", .begin = 6};
    write_model(lasting("%s/%s", folder, second_shard), &variant);
    write_index(lasting("%s/model.safetensors.index.json", folder), first_shard, second_shard);
    publish_text(lasting("%s/config.json", folder), "{" SIZES "}");
    return folder;
}

static void open_it(void *path) { open_source(path, 4); }

TEST(names_and_shards_are_one_model)
{
    static const struct variant variants[] = {{.before_layers = "transformer."},
                                              {.prefix = "_orig_mod.", .before_layers = "transformer."},
                                              {.prefix = "module."},
                                              {.prefix = "module._orig_mod.", .before_layers = "transformer."},
                                              {.prefix = "_orig_mod.module.", .before_layers = "transformer."},
                                              {.prefix = "model.", .before_layers = "transformer."},
                                              {.before_layers = "transformer.", .no_embedding = true},
                                              {.no_embedding = true},
                                              {.prefix = "_orig_mod.", .no_embedding = true},
                                              {.before_layers = "transformer.", .head = SAME_HEAD},
                                              {.more = "h.0.attn.bias"},
                                              {.more = "transformer.h.0.attn.masked_bias"},
                                              {.more = "score.weight"}};
    const char *path = write_model(temp_path("plain.safetensors"), &(struct variant){0}), *folder = shards("shards");
    uint64_t plain = loaded(path);
    for (size_t i = 0; i < COUNT(variants); i++) {
        path = write_model(temp_path("variant.safetensors"), &variants[i]);
        if (loaded(path) != plain || !read_config(path, 4).tied)
            test_failed("variant %zu is another model\n", i);
    }
    assert_int_equal(loaded(folder), plain);
    assert_int_equal(loaded(lasting("%s/model.safetensors.index.json", folder)), plain);
}

TEST(a_head_is_tied_as_is_said)
{
    struct variant variant = {.head = SAME_HEAD}, other = {.head = OTHER_HEAD};
    const char *same_path = lasting("%s/model.safetensors", model_folder("same", &variant, NULL));
    char *folder = lasting("%s", model_folder("other", &other, NULL));
    char *path = lasting("%s/model.safetensors", folder), *config = lasting("%s/config.json", folder);
    assert_true(read_config(same_path, 4).tied);
    assert_false(read_config(path, 4).tied);
    publish_text(lasting("%s/config.json", temp_path("same")), "{\"tie_word_embeddings\": false}");
    assert_false(read_config(same_path, 4).tied);
    publish_text(config, "{\"tie_word_embeddings\": true}");
    assert_true(read_config(path, 4).tied);
    assert_contains(run_child(open_it, path).text, "lm_head.weight is left out");
    publish_text(config, "{\"tie_word_embeddings\": false}");
    assert_false(read_config(path, 4).tied);
    assert_string_equal(run_child(open_it, path).text, "");
    publish_text(config, "{\"n_head\": 4}");
    assert_false(read_config(path, 4).tied);
    assert_contains(run_child(open_it, path).text, "does not say tie_word_embeddings");
}

TEST(wrong_tensors_are_named)
{
    static const struct {
        struct variant variant;
        int code;
        const char *part;
    } cases[] = {
        {{.more = "h.0.crossattention.c_attn.weight"}, 2, "has tensor h.0.crossattention.c_attn.weight, which GPT-2"},
        {{.more = "lm_head.bias"}, 2, "has tensor lm_head.bias"},
        {{.more = "transformer.wte.weight"}, 1, "has tensors "},
        {{.renamed = "ln_f.bias", .name = "final.bias"},
         1,
         "has no tensor ln_f.bias, as every GPT-2 has: it is incomplete"},
        {{.prefix = "base_model.lora_A."}, 2, "is a LoRA adapter"},
        {{.prefix = "state.exp_avg."}, 2, "holds the state of an optimizer"},
        {{.prefix = "value/"}, 2, "is a part of a checkpoint"},
        {{.prefix = "bert."}, 1, "but has bert.h.0"},
        {{.metadata = "n_head 4"}, 1, "metadata \"config\" is not a JSON object"}};
    for (size_t i = 0; i < COUNT(cases); i++)
        expect_refusal(open_it, (void *)write_model(temp_path("wrong.safetensors"), &cases[i].variant), cases[i].code,
                       cases[i].part);
}

TEST(shards_that_do_not_fit_are_named)
{
    char *folder = lasting("%s", shards("unfit")), *index = lasting("%s/model.safetensors.index.json", folder);
    char *second = lasting("%s/%s", folder, second_shard);
    expect_refusal(open_it, second, EXIT_FAILED, "it is one of several shards, so give their folder");
    write_index(index, first_shard, first_shard);
    expect_refusal(open_it, folder, EXIT_FAILED, "which has no tensor of that name");
    write_index(index, first_shard, "../unfit/model-00002-of-00002.safetensors");
    expect_refusal(open_it, folder, EXIT_FAILED, "the name of a file beside it");
    write_index(index, first_shard, "model-00003-of-00003.safetensors");
    expect_refusal(open_it, folder, EXIT_IO, "which is not there: fetch all of its shards");
    write_index(index, first_shard, second_shard);
    json_t *less = json_load_file(index, 0, NULL); /* by one tensor */
    json_object_del(json_object_get(less, "weight_map"), "transformer.wpe.weight");
    publish_text(index, json_dumps(less, 0));
    json_decref(less);
    expect_refusal(open_it, folder, EXIT_FAILED, "has tensor transformer.wpe.weight, which");
    write_index(index, first_shard, second_shard);
    publish_text(second, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n");
    expect_refusal(open_it, folder, EXIT_USAGE, "is a pointer that Git LFS keeps in place of the file");
    remove(index);
    expect_refusal(open_it, folder, EXIT_USAGE, "but no model.safetensors.index.json");
}

/* No output may replace a file that --init reads: also one that lies beside it, or that its index names. */
TEST(what_lies_beside_is_an_input)
{
    const char *folder = shards("inputs");
    expect_yard(EXIT_USAGE, "would overwrite what --init reads",
                "train --init '%s' --data LICENSE --log '%s/config.json'", folder, folder);
    expect_yard(EXIT_USAGE, "would overwrite what --init reads", "train --init '%s' --data LICENSE --log '%s/%s'",
                folder, folder, second_shard);
}

/* ---- what is no model that is read here -------------------------------------------------------------------------- */

#define BYTES(text) text, sizeof(text) - 1
static const struct foreign {
    const char *name, *bytes;
    size_t n;
    const char *part;
} foreign[] = {
    {"pytorch_model.bin", BYTES("PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\0archive/data.pkl"),
     "is a model of PyTorch in pickle form"},
    {"old.pt",
     BYTES("\x80\2\x8a\nl\xfc\x9c"
           "F\xf9 j\xa8P\x19."),
     "is a model of PyTorch in pickle form"},
    {"optimizer.pt", BYTES("PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x12\0\0\0optimizer/data.pkl"),
     "is the state of an optimizer"},
    {"state.pth", BYTES("\x80\2}q\0(X\x0c\0\0\0param_groupsq\1"), "is the state of an optimizer"},
    {"model.gguf", BYTES("GGUF\3\0\0\0{\0\0\0\0\0\0\0"), "is a GGUF file of llama.cpp"},
    {"model.npz", BYTES("PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x0e\0\0\0wte.weight.npy"),
     "is an archive of NumPy arrays"},
    {"wte.npy", BYTES("\x93NUMPY\1\0v\0{'descr'"), "is an array of NumPy"},
    {"tf_model.h5", BYTES("\x89HDF\r\n\x1a\n\0\0\0"), "is an HDF5 file"},
    {"flax_model.msgpack",
     BYTES("\x81\xab"
           "transformer"),
     "is a Flax model"},
    {"model.ckpt.index", BYTES("\0\0\1\2"), "is a part of a TensorFlow checkpoint"},
    {"model.safetensors.gz", BYTES("\x1f\x8b\x08\0\0\0\0\0\0\3"), "is packed with gzip"},
    {"model.zip", BYTES("PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0a"), "is a zip archive"},
    {"pointer.safetensors", BYTES("version https://git-lfs.github.com/spec/v1\n"), "is a pointer that Git LFS keeps"},
    {"page.safetensors", BYTES("<!DOCTYPE html><html>"), "is a web page"},
    {"config.json", BYTES("{\"n_head\": 4}"), "is the description of a model"},
    {"pytorch_model.bin.index.json", BYTES("{\"weight_map\": {}}"), "has no tensor wte.weight: it is empty"},
    {"state_00000001.bin", BYTES("\x8f\xd8\x34\x01\1\0\0\0"), "is the optimizer's state of an llm.c run"},
    {"tokenizer.bin", BYTES("\xc8\xd7\x34\x01\1\0\0\0"), "is a tokenizer of llm.c"},
    {"shard.bin", BYTES("\x88\xd8\x34\x01\1\0\0\0"), "is a token shard of llm.c"},
};

TEST(foreign_files_are_named)
{
    for (size_t i = 0; i < COUNT(foreign); i++) {
        char *path = write_file(foreign[i].name, foreign[i].bytes, foreign[i].n);
        bool index = strstr(foreign[i].name, "index.json");
        expect_refusal(read_it, path, index ? 1 : 2, foreign[i].part);
        remove(path);
    }
}

/* The name of a folder's model in another form, not what lies beside it. */
TEST(foreign_folders_are_named)
{
    char *folder = lasting("%s", temp_path("pickles"));
    make_folder(folder);
    publish_text(lasting("%s/config.json", folder), "{" SIZES "}");
    for (size_t i = 0; i < 3; i += 2) { /* the model and the optimizer's state */
        struct writer *writer = open_writer(lasting("%s/%s", folder, foreign[i].name));
        write_bytes(writer, foreign[i].bytes, foreign[i].n);
        must(publish(writer));
    }
    expect_refusal(open_it, folder, EXIT_USAGE, "its pytorch_model.bin is a model of PyTorch in pickle form");
    write_model(lasting("%s/mine.safetensors", folder), &(struct variant){0});
    expect_refusal(open_it, folder, EXIT_USAGE, "give the file itself, such as");
}

/* A header may be as long as the number that a gzip, a pickle or a zip begins with. */
TEST(a_header_of_any_length_is_read)
{
    static const uint64_t lengths[] = {0x8b1f, 0x04034b50 % 0x10000, 0x0280, 0x0480};
    const char *plain = write_model(temp_path("length.safetensors"), &(struct variant){.metadata = "{\"n_head\": 4}"});
    size_t n;
    char *bytes = read_whole(plain, &n);
    uint64_t header;
    memcpy(&header, bytes, sizeof header);
    while (bytes[8 + header - 1] == ' ')
        header--;
    for (size_t i = 0; i < COUNT(lengths); i++) {
        uint64_t length = lengths[i];
        while (length < header) /* the low bytes stay */
            length += 0x10000;
        uint64_t data;
        memcpy(&data, bytes, sizeof data);
        char *spaces = format_string("%*s", (int)(length - header), "");
        struct writer *writer = open_writer(temp_path("long.safetensors"));
        write_bytes(writer, &length, sizeof length);
        write_bytes(writer, bytes + 8, header);
        write_bytes(writer, spaces, length - header);
        write_bytes(writer, bytes + 8 + data, n - 8 - data);
        must(publish(writer));
        assert_int_equal(read_config(temp_path("long.safetensors"), 0).heads, 4);
        free(spaces);
    }
    free(bytes);
}

/* ---- our own export, through other programs ---------------------------------------------------------------------- */

/* A program that reads all tensors and writes them again leaves the metadata out. */
TEST(an_export_written_anew_has_its_heads)
{
    struct mesh mesh = cut_mesh(&gpt, (struct mesh){.dp = 1});
    const char *state = temp_path("ours"), *folder = temp_path("exported");
    write_random_state(state, &gpt, &mesh, 3, 1, 5);
    struct checkpoint *checkpoint = open_checkpoint(state);
    export_huggingface(checkpoint, folder, NULL, -1);
    char *file = lasting("%s/model.safetensors", folder);
    assert_int_equal(read_config(file, 0).heads, 4);
    uint64_t before = loaded(folder);
    struct safetensors *st = open_safetensors(file);
    struct st_writer *writer = new_st_writer(file);
    for (size_t i = 0; i < st->n; i++)
        st_declare(writer, st->tensors[i].name, DTYPE_F32, st->tensors[i].n_dims, st->tensors[i].shape);
    st_begin(writer);
    for (size_t i = 0; i < st->n; i++) {
        float *values = allocate(st_elements(&st->tensors[i]), sizeof *values);
        read_floats(st, &st->tensors[i], values);
        st_write(writer, values, st->tensors[i].bytes);
        free(values);
    }
    st_publish(writer);
    close_safetensors(st);
    assert_int_equal(read_config(file, 0).heads, 4);
    assert_int_equal(loaded(folder), before);
    free_checkpoint(checkpoint);
    free_mesh(&mesh);
}

/* Where something else is wanted and a model is given, the message names --init. */
TEST(a_model_elsewhere_is_named)
{
    const char *folder = model_folder("elsewhere", &(struct variant){0}, "{" SIZES "}");
    expect_yard(EXIT_IO, "begins from its model with --init", "train --resume '%s'", folder);
    expect_yard(EXIT_IO, "`yard train --init FILE` trains it on", "train --resume '%s/model.safetensors'", folder);
    expect_yard(EXIT_USAGE, "the config.json of a model is read by --init", "train --config '%s/config.json'", folder);
}

/* Losses that Hugging Face's transformers computes of these files: the same values with 4 heads, 2 heads, and its
 * own. */
TEST(losses_are_those_of_transformers)
{
    static const struct {
        struct variant variant;
        const char *config, *loss;
    } cases[] = {
        {{.before_layers = "transformer."}, "{\"model_type\": \"gpt2\", " SIZES "}", "loss 5.0341 "},
        {{.before_layers = "transformer."}, "{\"model_type\": \"gpt2\", \"n_head\": 2}", "loss 5.1058 "},
        {{.before_layers = "transformer.", .head = OTHER_HEAD},
         "{\"model_type\": \"gpt2\", " SIZES ", \"tie_word_embeddings\": false}",
         "loss 5.0443 "},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        expect_yard(EXIT_OK, cases[i].loss, "train --init '%s' %s",
                    model_folder(lasting("loss-%zu", i), &cases[i].variant, cases[i].config), one_step());
}
