/* statements.c - what is said of a model of another program, in config.json beside it and in its file's header.
 *
 * Two models of the same shapes may compute different things.  So each field of config.json is looked at.  A field that
 * asks for what is computed here is followed; a field that asks for something else, or contradicts the shapes, is
 * refused by its name.  The metadata "config" in a file's header, as our own files have, say the same as a config.json.
 */
#include "statements.h"
#include "trainer/base/json.h"

enum { HEAD_CHANNELS = 64 }; /* the channels of a head in every GPT-2 */

/* ---- reading ----------------------------------------------------------------------------------------------------- */

struct statements read_statements(const char *path, struct safetensors *const *files, size_t n_files)
{
    struct statements said = {0};
    char *config = file_beside(path, MODEL_CONFIG);
    if (exists(config))
        said.all[said.n++] = (struct statement){copy_string(config), read_json(config)};
    free(config);
    for (size_t i = 0; i < n_files; i++) {
        const char *text = find_metadata(files[i], "config");
        if (!text)
            continue;
        json_t *fields = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        if (!json_is_object(fields))
            fail(EXIT_FAILED,
                 "%s: its metadata \"config\" is not a JSON object, or has a field twice; expected one such as "
                 "{\"n_head\": 12}",
                 path);
        const char *before = i ? find_metadata(files[0], "config") : NULL;
        if (before && strcmp(before, text) != 0)
            fail(EXIT_FAILED, "%s and %s have other metadata \"config\": the two are not of one model",
                 files[0]->file->path, files[i]->file->path);
        if (before)
            continue;
        said.all[said.n++] = (struct statement){format_string("%s, metadata \"config\"", files[i]->file->path), fields};
    }
    return said;
}

void free_statements(struct statements *statements)
{
    for (size_t i = 0; i < statements->n; i++) {
        free(statements->all[i].where);
        json_decref(statements->all[i].fields);
    }
}

/* The value of a field; NULL: the field is missing or null. */
static const json_t *field_of(const struct statement *statement, const char *name)
{
    const json_t *value = json_object_get(statement->fields, name);
    return json_is_null(value) ? NULL : value;
}

/* The names of a number in GPT-2's config.json and in that of other models; n_ctx is an old name. */
static const char *const layers_names[2] = {"n_layer", "num_hidden_layers"};
static const char *const heads_names[2] = {"n_head", "num_attention_heads"};
static const char *const channels_names[2] = {"n_embd", "hidden_size"};
static const char *const vocab_names[2] = {"vocab_size", NULL};
static const char *const positions_names[2] = {"n_positions", "max_position_embeddings"};
static const char *const old_positions_names[2] = {"n_ctx", NULL};

/* The number that the statement gives under one of these names; 0: it gives none.  Under both it must give the same.
 * *name becomes the first name that is there. */
static int64_t number_said(const struct statement *statement, const char *const names[2], const char **name)
{
    int64_t said = 0;
    for (size_t i = 0; i < 2 && names[i]; i++) {
        const json_t *value = field_of(statement, names[i]);
        if (!value)
            continue;
        if (!json_is_integer(value) || json_integer_value(value) < 1)
            fail(EXIT_FAILED, "%s: %s must be a whole number from 1 on", statement->where, names[i]);
        int64_t here = json_integer_value(value);
        if (said && here != said)
            fail(EXIT_FAILED, "%s contradicts itself: %s is %lld, %s is %lld; take the wrong one out", statement->where,
                 *name, (long long)said, names[i], (long long)here);
        if (!said)
            *name = names[i];
        said = here;
    }
    return said;
}

/* If the statement gives the number, it must be the one that the shapes of `path` give.  Does it give the number? */
static bool expect_number(const struct statement *statement, const char *path, const char *const names[2],
                          int64_t shaped)
{
    const char *name;
    int64_t said = number_said(statement, names, &name);
    if (said && said != shaped)
        fail(EXIT_FAILED, "%s says %s %lld, but by the shapes in %s it is %lld: the two are not of one model",
             statement->where, name, (long long)said, path, (long long)shaped);
    return said > 0;
}

/* ---- what is computed -------------------------------------------------------------------------------------------- */

/* Fields that change what a model computes, and a JSON array of the values that mean what is computed here; null and no
 * field mean the first.  Four names mean the tanh form of GELU. */
static const struct {
    const char *field, *allowed;
} computed[] = {{"model_type", "[\"gpt2\"]"},
                {"activation_function", "[\"gelu_new\", \"gelu_pytorch_tanh\", \"gelu_fast\", \"gelu_accurate\"]"},
                {"hidden_act", "[\"gelu_new\", \"gelu_pytorch_tanh\", \"gelu_fast\", \"gelu_accurate\"]"},
                {"layer_norm_epsilon", "[1e-5]"},
                {"layer_norm_eps", "[1e-5]"},
                {"scale_attn_weights", "[true]"},
                {"scale_attn_by_inverse_layer_idx", "[false]"},
                {"add_cross_attention", "[false]"},
                {"is_encoder_decoder", "[false]"},
                {"quantization_config", "[]"}};

/* Numbers are compared as the 32-bit floats that they become. */
static bool same_value(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b))
        return (float)json_number_value(a) == (float)json_number_value(b);
    return json_equal(a, b);
}

static _Noreturn void refuse_other_value(const struct statement *statement, const char *field, const json_t *value,
                                         const json_t *allowed)
{
    size_t flags = JSON_COMPACT | JSON_REAL_PRECISION(9);
    if (allowed)
        fail(EXIT_USAGE, "%s asks for %s %.80s, but only %s is computed here: the model would give other results",
             statement->where, field, dump_json(value, flags), dump_json(allowed, flags));
    fail(EXIT_USAGE, "%s asks for %s, which is not computed here: the model would give other results", statement->where,
         field);
}

static void refuse_if_other(const struct statement *statement)
{
    for (size_t i = 0; i < COUNT(computed); i++) {
        const json_t *value = field_of(statement, computed[i].field);
        json_t *allowed = json_loads(computed[i].allowed, 0, NULL);
        bool fits = !value;
        for (size_t k = 0; k < json_array_size(allowed); k++)
            if (value && same_value(value, json_array_get(allowed, k)))
                fits = true;
        if (!fits)
            refuse_other_value(statement, computed[i].field, value, json_array_get(allowed, 0));
        json_decref(allowed);
    }
}

void refuse_if_other_computation(const struct statements *statements)
{
    for (size_t i = 0; i < statements->n; i++)
        refuse_if_other(&statements->all[i]);
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static void expect_sizes_said(const struct statement *statement, const char *path, const struct config *config)
{
    const json_t *inner = field_of(statement, "n_inner");
    json_t *four = json_integer(4 * (json_int_t)config->channels);
    if (inner && !same_value(inner, four))
        refuse_other_value(statement, "n_inner", inner, four);
    json_decref(four);
    expect_number(statement, path, layers_names, config->layers);
    expect_number(statement, path, channels_names, config->channels);
    expect_number(statement, path, vocab_names, config->vocab);
    /* transformers once wrote n_ctx too, and did not change it when n_positions was changed */
    bool has_positions = expect_number(statement, path, positions_names, config->seq_len);
    if (!has_positions)
        expect_number(statement, path, old_positions_names, config->seq_len);
}

void expect_sizes(const struct statements *statements, const char *path, const struct config *config)
{
    for (size_t i = 0; i < statements->n; i++)
        expect_sizes_said(&statements->all[i], path, config);
}

/* The number of heads that the statements give; 0: none does. */
static int heads_said(const struct statements *statements, int channels)
{
    const char *where = NULL;
    int64_t said = 0;
    for (size_t i = 0; i < statements->n; i++) {
        const char *name;
        int64_t here = number_said(&statements->all[i], heads_names, &name);
        if (here && said && here != said)
            fail(EXIT_FAILED, "%s says %lld heads, but %s says %lld: the two are not of one model", where,
                 (long long)said, statements->all[i].where, (long long)here);
        if (here && (here > channels || channels % here))
            fail(EXIT_FAILED, "%s: cannot tell how many heads its %d channels make: %s is %lld, which must divide them",
                 statements->all[i].where, channels, name, (long long)here);
        if (here && !said) {
            said = here;
            where = statements->all[i].where;
        }
    }
    return (int)said;
}

int count_heads(const struct statements *statements, const char *path, int channels, int heads)
{
    int said = heads_said(statements, channels);
    if (said)
        return said;
    if (heads)
        return heads;
    if (channels < HEAD_CHANNELS || channels % HEAD_CHANNELS)
        fail(EXIT_FAILED,
             "%s: cannot tell how many heads its %d channels make: say it with --heads N, or in a config.json "
             "beside it, {\"n_head\": N}",
             path, channels);
    warn("neither %s nor a config.json beside it says how many heads it has: it is taken for a model with %d heads "
         "of %d channels, as in GPT-2; --heads N says another number",
         path, channels / HEAD_CHANNELS, HEAD_CHANNELS);
    return channels / HEAD_CHANNELS;
}

/* ---- the head ---------------------------------------------------------------------------------------------------- */

bool says_tied(const struct statement *statement) { return json_is_true(field_of(statement, TIED_FIELD)); }

const struct statement *find_tied_field(const struct statements *statements)
{
    const struct statement *found = NULL;
    for (size_t i = 0; i < statements->n; i++) {
        const json_t *value = field_of(&statements->all[i], TIED_FIELD);
        if (!value)
            continue;
        if (!json_is_boolean(value))
            fail(EXIT_FAILED, "%s: %s must be true or false", statements->all[i].where, TIED_FIELD);
        if (found && json_is_true(value) != says_tied(found))
            fail(EXIT_FAILED, "%s and %s contradict each other in %s: the two are not of one model", found->where,
                 statements->all[i].where, TIED_FIELD);
        found = &statements->all[i];
    }
    return found;
}
