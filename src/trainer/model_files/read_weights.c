/* read_weights.c - reads models of other programs: safetensors with Hugging Face's GPT-2 names.
 *
 *     model.safetensors              the parameters; wrappers may have put prefixes before their names
 *     model.safetensors.index.json   the same in several files, the shards: {"weight_map": {"wte.weight": "FILE", ...}}
 *     config.json                    beside these: what shapes do not say, and sizes that they do say (statements.c)
 */
#include "model_files.h"
#include "statements.h"
#include "trainer/base/additions.h"
#include "trainer/model/model.h"

#include <unistd.h>

/* ---- other forms ------------------------------------------------------------------------------------------------- */

void refuse_if_foreign_file(const char *path)
{
    const struct formats *formats = find_formats();
    if (formats)
        formats->refuse_if_foreign_file(path);
}

void refuse_if_foreign_folder(const char *folder)
{
    const struct formats *formats = find_formats();
    if (formats)
        formats->refuse_if_foreign_folder(folder);
}

/* ---- the tensors ------------------------------------------------------------------------------------------------- */

struct named_tensor {
    const char *bare; /* the tensor's name without prefixes */
    const struct st_tensor *tensor;
    const struct safetensors *file;
    bool known; /* the tensor is a parameter, or a head that may be left out */
};
struct weights {
    const char *path; /* as the user gave it */
    struct safetensors **files;
    size_t n_files, cap_files;
    struct named_tensor *named; /* all tensors of all files, in the order of bare names */
    size_t n, cap;
};

static int by_bare_name(const void *left, const void *right)
{
    const struct named_tensor *a = left;
    const struct named_tensor *b = right;
    return strcmp(a->bare, b->bare);
}

/* Wrappers put prefixes before names: torch.compile(), DataParallel, Lightning, GPT2LMHeadModel. */
static const char *without_prefixes(const char *name)
{
    static const char *const prefixes[] = {"_orig_mod.", "module.", "model.", "transformer."};
    size_t i = 0;
    while (i < COUNT(prefixes)) {
        size_t n = strlen(prefixes[i]);
        if (strncmp(name, prefixes[i], n) == 0) {
            name += n;
            i = 0; /* what follows may begin with any of them */
        } else {
            i++;
        }
    }
    return name;
}

static void add_named(struct weights *weights, const struct safetensors *file, const struct st_tensor *stored)
{
    GROW(weights->named, weights->cap, weights->n + 1);
    weights->named[weights->n++] =
        (struct named_tensor){.bare = without_prefixes(stored->name), .tensor = stored, .file = file};
}

static struct safetensors *add_file(struct weights *weights, const char *path)
{
    for (size_t i = 0; i < weights->n_files; i++)
        if (strcmp(weights->files[i]->file->path, path) == 0)
            return weights->files[i];
    refuse_if_foreign_file(path);
    struct safetensors *st = open_safetensors(path);
    GROW(weights->files, weights->cap_files, weights->n_files + 1);
    weights->files[weights->n_files++] = st;
    return st;
}

/* ---- shards ------------------------------------------------------------------------------------------------------ */

/* The path of the shard that the index names for a tensor; the caller frees it. */
static char *shard_path(const char *index, const char *tensor, const json_t *value)
{
    const char *name = json_string_value(value);
    if (!name || !*name || strchr(name, '/'))
        fail(EXIT_FAILED, "%s: weight_map must give the tensor %.80s the name of a file beside it", index, tensor);
    char *path = file_beside(index, name);
    if (access(path, F_OK) != 0)
        fail(EXIT_IO, "%s says that tensor %.80s is in %s, which is not there: fetch all of its shards", index, tensor,
             path);
    return path;
}

static void add_shards(struct weights *weights, const char *index)
{
    const char *name;
    json_t *json = read_json(index), *map = json_object_get(json, "weight_map"), *value;
    json_object_foreach(map, name, value)
    {
        char *path = shard_path(index, name, value);
        const struct safetensors *st = add_file(weights, path);
        const struct st_tensor *stored = find_tensor(st, name);
        if (!stored)
            fail(EXIT_FAILED,
                 "%s says that tensor %.80s is in %s, which has no tensor of that name: the two files do not belong "
                 "together, so fetch all files of the model again",
                 index, name, path);
        add_named(weights, st, stored);
        free(path);
    }
    for (size_t i = 0; i < weights->n_files; i++)
        for (size_t k = 0; k < weights->files[i]->n; k++)
            if (!json_object_get(map, weights->files[i]->tensors[k].name))
                fail(EXIT_FAILED,
                     "%s has tensor %.80s, which %s does not name: the two files do not belong together, so fetch all "
                     "files of the model again",
                     weights->files[i]->file->path, weights->files[i]->tensors[k].name, index);
    json_decref(json);
}

/* Is it the index of shards?  Another JSON text is refused, with a sentence that says what it is. */
static bool is_index(const char *path)
{
    if (!is_json(path))
        return false;
    if (kind_of_file(path)) /* a log begins as JSON does */
        refuse_if_foreign_file(path);
    json_t *json = read_json(path);
    bool yes = json_is_object(json_object_get(json, "weight_map"));
    json_decref(json);
    if (!yes)
        refuse_if_foreign_file(path);
    return yes;
}

static struct weights *open_weights(const char *path)
{
    struct weights *weights = allocate(1, sizeof *weights);
    weights->path = path;
    if (is_index(path))
        add_shards(weights, path);
    else {
        const struct safetensors *st = add_file(weights, path);
        for (size_t i = 0; i < st->n; i++)
            add_named(weights, st, &st->tensors[i]);
    }
    SORT(weights->named, weights->n, by_bare_name);
    return weights;
}

static void close_weights(struct weights *weights)
{
    for (size_t i = 0; i < weights->n_files; i++)
        close_safetensors(weights->files[i]);
    free(weights->files);
    free(weights->named);
    free(weights);
}

/* ---- finding a tensor -------------------------------------------------------------------------------------------- */

static bool is_named_before(const void *item, const void *key)
{
    const struct named_tensor *named = item;
    return strcmp(named->bare, key) < 0;
}

/* The tensor of that bare name; NULL: there is none. */
static struct named_tensor *find_named(struct weights *weights, const char *bare)
{
    size_t i = lower_bound(bare, weights->named, weights->n, sizeof *weights->named, is_named_before);
    if (i == weights->n || strcmp(weights->named[i].bare, bare) != 0)
        return NULL;
    if (i + 1 < weights->n && strcmp(weights->named[i + 1].bare, bare) == 0)
        fail(EXIT_FAILED,
             "%s has tensors %.80s and %.80s, of which only one can be the model's %s: write them to files "
             "of their own",
             weights->path, weights->named[i].tensor->name, weights->named[i + 1].tensor->name, bare);
    return &weights->named[i];
}

/* Ends the program, since the file has no GPT-2, with a sentence on what it has instead, as the names of its tensors
 * tell. */
static _Noreturn void refuse_other_tensors(struct weights *weights, const char *missing)
{
    for (size_t i = 0; i < weights->n; i++) {
        const char *name = weights->named[i].tensor->name;
        if (strstr(name, "lora_"))
            fail(EXIT_USAGE,
                 "%s is a LoRA adapter, which changes another model: merge it into that one with "
                 "merge_and_unload() of PEFT, and save the whole",
                 weights->path);
        if (strstr(name, "exp_avg"))
            fail(EXIT_USAGE, "%s holds the state of an optimizer: give the model, model.safetensors", weights->path);
        if (begins_with(name, "value/"))
            fail(EXIT_USAGE, "%s is a part of a checkpoint: give the checkpoint's folder", weights->path);
    }
    if (strstr(weights->path, "-of-") && weights->n_files == 1)
        fail(EXIT_FAILED,
             "%s has no tensor %s: it is one of several shards, so give their folder or their "
             "model.safetensors.index.json",
             weights->path, missing);
    if (find_named(weights, "wpe.weight") || find_named(weights, "h.0.ln_1.weight"))
        fail(EXIT_FAILED, "%s has no tensor %s, as every GPT-2 has: it is incomplete, fetch or save it anew",
             weights->path, missing);
    if (weights->n)
        fail(EXIT_FAILED,
             "%s has no tensor %s, but has %.80s: it is not a GPT-2 model with Hugging Face's names, and no other is "
             "computed here",
             weights->path, missing, weights->named[0].tensor->name);
    fail(EXIT_FAILED, "%s has no tensor %s: it is empty", weights->path, missing);
}

static struct named_tensor *need_named(struct weights *weights, const char *bare)
{
    struct named_tensor *named = find_named(weights, bare);
    if (!named)
        refuse_other_tensors(weights, bare);
    return named;
}

static const char head_name[] = "lm_head.weight", embedding_name[] = "wte.weight";

/* The words' matrix.  A tied model has one, under either name. */
static struct named_tensor *need_embedding(struct weights *weights)
{
    struct named_tensor *named = find_named(weights, embedding_name);
    if (!named)
        named = find_named(weights, head_name);
    if (!named)
        named = need_named(weights, embedding_name); /* fails, since there is none */
    return named;
}

static _Noreturn void refuse_shape(const struct weights *weights, const struct param *param,
                                   const struct st_tensor *stored, const int64_t expected[2])
{
    char theirs[SHAPE_TEXT], ours[SHAPE_TEXT];
    bool turned =
        param->conv1d && stored->n_dims == 2 && stored->shape[0] == expected[1] && stored->shape[1] == expected[0];
    const char *why = "";
    if (turned)
        why = ": it is stored (out, in), as nanoGPT has it; Hugging Face's GPT-2 has (in, out)";
    fail(EXIT_FAILED, "%s: tensor %s has shape %s, expected %s%s", weights->path, stored->name,
         format_shape(theirs, stored->n_dims, stored->shape), format_shape(ours, param->n_dims, expected), why);
}

/* The tensor of a parameter, in the shape that the table of parameters gives it; Conv1D weights are transposed. */
static struct named_tensor *expect_tensor(struct weights *weights, const struct param *param)
{
    bool is_embedding = strcmp(param->name, embedding_name) == 0;
    struct named_tensor *named = is_embedding ? need_embedding(weights) : need_named(weights, param->name);
    const struct st_tensor *stored = named->tensor;
    int64_t shape[2];
    shape_in_file(param, shape);
    bool fits = stored->n_dims == param->n_dims && stored->shape[0] == shape[0] &&
                (param->n_dims == 1 || stored->shape[1] == shape[1]);
    if (!fits)
        refuse_shape(weights, param, stored, shape);
    named->known = true;
    return named;
}

/* The highest N of h.N.*, plus one: so a layer that lacks a tensor is named, not left out. */
static int count_layers(const struct weights *weights)
{
    long layers = 0;
    for (size_t i = 0; i < weights->n; i++) {
        const char *bare = weights->named[i].bare;
        if (!begins_with(bare, "h.") || bare[2] < '0' || bare[2] > '9')
            continue;
        char *end;
        long layer = strtol(bare + 2, &end, 10);
        if (*end != '.')
            continue;
        if (layer >= MOST_LAYERS)
            fail(EXIT_FAILED, "%s: tensor %.80s is of a layer beyond the %d that a model may have", weights->path,
                 weights->named[i].tensor->name, MOST_LAYERS);
        layers = MAX(layers, layer + 1);
    }
    return (int)layers;
}

/* A tensor of the model's layers that is no parameter changes what the model computes.  Masks do not: transformers once
 * saved them, and they are the same in every GPT-2. */
static void refuse_if_tensors_are_unknown(const struct weights *weights)
{
    static const char *const parts[] = {"h.", "wte.", "wpe.", "ln_f.", "lm_head."};
    for (size_t i = 0; i < weights->n; i++) {
        const struct named_tensor *named = &weights->named[i];
        bool mask = ends_with(named->bare, ".attn.bias") || ends_with(named->bare, ".attn.masked_bias");
        for (size_t k = 0; k < COUNT(parts); k++)
            if (!named->known && !mask && begins_with(named->bare, parts[k]))
                fail(EXIT_USAGE,
                     "%s has tensor %.80s, which GPT-2 as it is computed here has not: the model computes "
                     "something else",
                     weights->path, named->tensor->name);
    }
}

/* ---- the head ---------------------------------------------------------------------------------------------------- */

static bool same_values(const struct named_tensor *a, const struct named_tensor *b)
{
    size_t n = st_elements(a->tensor);
    if (a->tensor->n_dims != b->tensor->n_dims || n != st_elements(b->tensor) ||
        a->tensor->shape[0] != b->tensor->shape[0])
        return false;
    float *x = allocate(n, sizeof *x), *y = allocate(n, sizeof *y);
    read_floats(a->file, a->tensor, x);
    read_floats(b->file, b->tensor, y);
    bool same = memcmp(x, y, n * sizeof *x) == 0;
    free(x);
    free(y);
    return same;
}

/* Returns whether the head is the embedding.  A file with one matrix means that it is.  For a file with both matrices
 * the statements decide, or, where they do not say, whether the two are equal. */
static bool decide_tied(struct weights *weights, const struct statements *statements)
{
    struct named_tensor *embedding = find_named(weights, embedding_name), *head = find_named(weights, head_name);
    bool both = embedding && head;
    const struct statement *by = find_tied_field(statements); /* the statement that decides; NULL: there is none */
    bool said_false = by && !says_tied(by);
    if (said_false && !both)
        fail(EXIT_FAILED, "%s says %s false, but %s has no tensor %s: its head is missing", by->where, TIED_FIELD,
             weights->path, embedding ? head_name : embedding_name);
    if (!both)
        return true;
    if (said_false)
        return false;
    bool same = same_values(embedding, head);
    if (by && !same)
        warn("%s is left out: %s says %s true, so the head is %s, which has other values", head->tensor->name,
             by->where, TIED_FIELD, embedding->tensor->name);
    bool tied = by || same;
    if (!tied && statements->n && ends_with(statements->all[0].where, MODEL_CONFIG))
        warn("%s does not say %s, and %s and %s differ: both are taken, as if it said false", statements->all[0].where,
             TIED_FIELD, embedding->tensor->name, head->tensor->name);
    if (tied)
        head->known = true; /* so that it is not refused as a tensor without meaning */
    return tied;
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

static void expect_matrix(const char *path, const struct st_tensor *stored)
{
    char shape[SHAPE_TEXT];
    if (stored->n_dims != 2 || stored->shape[0] > INT32_MAX || stored->shape[1] > INT32_MAX)
        fail(EXIT_FAILED, "%s: tensor %s has shape %s, expected two dimensions below 2^31", path, stored->name,
             format_shape(shape, stored->n_dims, stored->shape));
}

/* All tensors of the file are compared with the sizes before these are trusted: building a model takes long. */
struct config read_weights_config(const char *path, int heads)
{
    struct weights *weights = open_weights(path);
    struct statements said = read_statements(weights->path, weights->files, weights->n_files);
    refuse_if_other_computation(&said);
    const struct st_tensor *words = need_embedding(weights)->tensor;
    const struct st_tensor *positions = need_named(weights, "wpe.weight")->tensor;
    expect_matrix(path, words);
    expect_matrix(path, positions);
    struct config config = {.layers = count_layers(weights),
                            .channels = (int)words->shape[1],
                            .vocab = (int)words->shape[0],
                            .seq_len = (int)positions->shape[0]};
    expect_sizes(&said, path, &config);
    config.tied = decide_tied(weights, &said);
    config.heads = 1; /* no shape depends on it; the number is guessed when the model is known to be complete */
    check_config(&config);
    struct params *params = new_params(&config, &one_rank, 0);
    for (int i = 0; i < params->n; i++)
        expect_tensor(weights, &params->items[i]);
    refuse_if_tensors_are_unknown(weights);
    config.heads = count_heads(&said, path, config.channels, heads);
    free_params(params);
    free_statements(&said);
    close_weights(weights);
    return config;
}

void init_from_weights(struct model *model, const char *path)
{
    struct weights *weights = open_weights(path);
    for (int i = 0; i < model->params->n; i++) {
        const struct param *param = &model->params->items[i];
        const struct named_tensor *named = expect_tensor(weights, param);
        float *values = allocate(param_elements(param), sizeof *values);
        read_floats(named->file, named->tensor, values);
        values = transpose_conv1d(param, values, FILE_TO_OURS);
        write_param_of_file(model, i, values, path);
        free(values);
    }
    close_weights(weights);
}

char *read_weights_metadata(const char *path, const char *key)
{
    struct weights *weights = open_weights(path);
    const char *value = NULL;
    for (size_t i = 0; i < weights->n_files && !value; i++)
        value = find_metadata(weights->files[i], key);
    char *copy = value ? copy_string(value) : NULL;
    close_weights(weights);
    return copy;
}

void claim_weights(const char *claimant, const char *path)
{
    if (has_magic(path, LLMC_MODEL_MAGIC))
        return;
    char *config = file_beside(path, MODEL_CONFIG);
    if (exists(config))
        claim_input(claimant, config);
    free(config);
    struct weights *weights = open_weights(path);
    for (size_t i = 0; i < weights->n_files; i++)
        claim_input(claimant, weights->files[i]->file->path);
    close_weights(weights);
}
