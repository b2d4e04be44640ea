/* init.c - first values, random or from files. */
#include "model.h"

#include <math.h>

/* ---- random ---------------------------------------------------------------------------------------------------- */

void init_random(struct model *m, uint64_t seed)
{
    for (int i = 0; i < m->params->n; i++) {
        const struct param *p = &m->params->param[i];
        size_t n = param_elements(p);
        float *values = allocate(n, sizeof *values);
        double deviation = 0.02;
        if (p->init == INIT_RESIDUAL) /* what is added to the residual stream 2L times keeps its variance */
            deviation /= sqrt(2.0 * m->params->config.layers);
        for (size_t k = 0; k < n; k++)
            values[k] = p->init == INIT_ZERO  ? 0
                        : p->init == INIT_ONE ? 1
                                              : (float)(deviation * random_normal(seed, STREAM_INIT, (uint32_t)i, k));
        write_param(m, i, KEPT_VALUE, values);
        free(values);
    }
}

/* ---- are they numbers? ----------------------------------------------------------------------------------------- */

const char *find_bad_parameter(struct model *m)
{
    const char *bad = NULL;
    for (int i = 0; i < m->params->n && !bad; i++) {
        size_t n = param_elements(&m->params->param[i]);
        float *values = allocate(n, sizeof *values);
        read_param(m, i, KEPT_VALUE, values);
        for (size_t k = 0; k < n && !bad; k++)
            bad = isfinite(values[k]) ? NULL : m->params->param[i].name;
        free(values);
    }
    return bad;
}

void refuse_bad_parameters(struct model *m, const char *path)
{
    const char *name = find_bad_parameter(m);
    if (name)
        fail(EXIT_FAILED,
             "%s: tensor %s holds a value that is not finite: the file is damaged, or its training diverged", path,
             name);
}

/* ---- safetensors with GPT-2 names ------------------------------------------------------------------------------ */

float *turn_conv1d(const struct param *p, float *values, bool for_file)
{
    int64_t rows = p->shape[!for_file], columns = p->shape[for_file];
    float *turned = p->conv1d ? allocate(param_elements(p), sizeof *turned) : values;
    for (int64_t r = 0; r < rows && p->conv1d; r++)
        for (int64_t c = 0; c < columns; c++)
            turned[c * rows + r] = values[r * columns + c];
    if (p->conv1d)
        free(values);
    return turned;
}

/* Names come with or without the prefix "transformer.". */
static const struct st_tensor *need_named(const struct safetensors *st, const char *name)
{
    const struct st_tensor *t = find_tensor(st, name);
    t = t ? t : find_tensor(st, JOINED("transformer.", name));
    if (!t)
        fail(EXIT_FAILED, "%s has no tensor %s: it is not a GPT-2 model with Hugging Face's names", st->file->path,
             name);
    return t;
}

/* The highest N of h.N.*, plus one: a layer of which some tensor is missing is then named, not left out. */
static int count_layers(const struct safetensors *st)
{
    long layers = 0;
    for (size_t i = 0; i < st->n; i++) {
        const char *name = st->tensors[i].name, *bare = strncmp(name, "transformer.", 12) == 0 ? name + 12 : name;
        if (strncmp(bare, "h.", 2) != 0 || bare[2] < '0' || bare[2] > '9')
            continue;
        char *end;
        long layer = strtol(bare + 2, &end, 10);
        if (*end != '.')
            continue;
        if (layer >= MAX_LAYERS)
            fail(EXIT_FAILED, "%s: tensor %.80s is of a layer beyond the %d that a model may have", st->file->path,
                 name, MAX_LAYERS);
        layers = MAX(layers, layer + 1);
    }
    return (int)layers;
}

/* The tensor of a parameter, in the shape that the table of parameters gives it; Conv1D weights are transposed. */
static const struct st_tensor *expect_tensor(const struct safetensors *st, const struct param *p)
{
    const struct st_tensor *t = need_named(st, p->name);
    const int64_t shape[] = {p->shape[p->conv1d], p->shape[!p->conv1d]};
    if (t->rank != p->rank || t->shape[0] != shape[0] || (p->rank == 2 && t->shape[1] != shape[1]))
        fail(EXIT_FAILED, "%s: tensor %s has shape %s, expected %s", st->file->path, t->name,
             format_shape((char[128]){0}, t->rank, t->shape), format_shape((char[128]){0}, p->rank, shape));
    return t;
}

/* Sizes from a file are not to be trusted before all of its tensors agree with them: building a model takes long. */
struct config read_config(const char *path)
{
    if (has_magic(path, LLMC_MODEL_MAGIC)) {
        struct llmc_model *f = open_llmc_model(path);
        struct config c = {f->layers, f->heads, f->channels, f->max_seq_len, f->vocab, true};
        check_config(&c);
        close_llmc_model(f);
        return c;
    }
    struct safetensors *st = open_safetensors(path);
    const struct st_tensor *embedding[2] = {need_named(st, "wte.weight"), need_named(st, "wpe.weight")};
    for (int i = 0; i < 2; i++) {
        const struct st_tensor *t = embedding[i];
        if (t->rank != 2 || t->shape[0] > INT32_MAX || t->shape[1] > INT32_MAX)
            fail(EXIT_FAILED, "%s: tensor %s has shape %s, expected two dimensions below 2^31", path, t->name,
                 format_shape((char[128]){0}, t->rank, t->shape));
    }
    struct config c = {.layers = count_layers(st),
                       .channels = (int)embedding[0]->shape[1],
                       .vocab = (int)embedding[0]->shape[0],
                       .seq_len = (int)embedding[1]->shape[0],
                       .tied = !find_tensor(st, "lm_head.weight")};
    /* Heads are not in the tensors' shapes: from the metadata {"n_head": H}, else 64 channels each as in GPT-2. */
    const char *config = find_metadata(st, "config"), *field = config ? strstr(config, "\"n_head\"") : NULL;
    long heads = field && strchr(field, ':') ? strtol(strchr(field, ':') + 1, NULL, 10) : c.channels / 64;
    if (heads < 1 || heads > c.channels || c.channels % heads)
        fail(EXIT_FAILED,
             "%s: cannot tell how many heads its %d channels make: metadata \"config\" should hold "
             "{\"n_head\": N}",
             path, c.channels);
    c.heads = (int)heads;
    check_config(&c);
    struct params *p = new_params(&c, &one_rank, 0);
    for (int i = 0; i < p->n; i++)
        expect_tensor(st, &p->param[i]);
    free_params(p);
    close_safetensors(st);
    return c;
}

/* llm.c's parameters come in its own order, each for all layers; of the words' the padding is left out. */
static void init_from_llmc(struct model *m, const char *path)
{
    struct llmc_model *f = open_llmc_model(path);
    uint64_t at = LLMC_HEADER_BYTES;
    for (int k = 0; k < LLMC_PARAMETERS; k++)
        for (int i = 0; i < m->params->n; i++) {
            const struct param *p = &m->params->param[i];
            size_t n = param_elements(p);
            float *values = p->llmc == k ? allocate(n, sizeof *values) : NULL;
            if (!values)
                continue;
            read_at(f->file, values, n * sizeof *values, at);
            write_param(m, i, KEPT_VALUE, values);
            free(values);
            at += 4 * (uint64_t)p->shape[1] * (uint64_t)(i == WTE ? f->padded_vocab : p->shape[0]);
        }
    close_llmc_model(f);
}

void init_from_file(struct model *m, const char *path)
{
    if (has_magic(path, LLMC_MODEL_MAGIC)) {
        init_from_llmc(m, path);
        return;
    }
    struct safetensors *st = open_safetensors(path);
    for (int i = 0; i < m->params->n; i++) {
        const struct param *p = &m->params->param[i];
        float *values = allocate(param_elements(p), sizeof *values);
        read_floats(st, expect_tensor(st, p), values);
        values = turn_conv1d(p, values, false);
        write_param(m, i, KEPT_VALUE, values);
        free(values);
    }
    close_safetensors(st);
}
