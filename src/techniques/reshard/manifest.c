/* manifest.c - the description of a checkpoint: written last, read strictly.
 *
 *     {"hash":"c0ffee0123456789",           XXH64 of all bytes behind this line, in 16 digits
 *     "version":2, "step":30, ... "tensors":[
 *     {"name":"wte.weight","role":"value", ... "pieces":[{"file":"rank-0.safetensors","offset":4096, ...}]},
 *     ...]}
 *
 * The fields are those of tutorials/reference-files.md, no more and no fewer.  What can be computed from others is
 * compared with them: names and shapes with the table of parameters, a piece's file with its rank.
 *
 * "mesh" is the mesh of the pieces; the strategy is the text "mesh" among the options (see state.h).  Those of version
 * 1 have neither the run nor the program.  Of a version above ours only it and the program are looked at.
 *
 * A checkpoint in another form (struct store) has one too, with fewer fields.
 */
#include "state.h"

enum { VERSION = 2, HASH_LINE = 28 };
static const int64_t MOST = 1000000000000000; /* of what is counted: a billion steps of a million sequences */

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static json_t *range_json(const struct piece *p, int axis)
{
    return json_pack("[I, I]", (json_int_t)p->begin[axis], (json_int_t)p->end[axis]);
}

static json_t *hash_json(uint64_t hash) { return json_sprintf("%016llx", (unsigned long long)hash); }

/* lasting: of no state that comes and goes. */
static json_t *tensor_json(const struct checkpoint *c, const struct kept_tensor *t, bool lasting)
{
    json_t *shape = json_array(), *pieces = json_array();
    for (int i = 0; i < t->dims; i++)
        json_array_append_new(shape, json_integer(t->shape[i]));
    for (const struct piece *p = t->piece; p < t->piece + t->n; p++) {
        json_t *piece = json_pack("{s:I, s:i}", "offset", (json_int_t)p->offset, "rank", p->rank);
        json_t *held = p->flat ? range_json(p, 0) : json_array();
        for (int i = 0; i < t->dims && !p->flat; i++)
            json_array_append_new(held, range_json(p, i));
        json_object_set_new(piece, p->flat ? "flat" : "box", held);
        if (!lasting) {
            char *path = rank_file(c, p->rank), *name = strrchr(path, '/');
            json_object_set_new(piece, "file", json_string(name ? name + 1 : path));
            json_object_set_new(piece, "hash", hash_json(p->hash));
            free(path);
        }
        json_array_append_new(pieces, piece);
    }
    return json_pack("{s:s, s:s, s:o, s:o, s:i, s:o}", "name", t->name, "role", kept_name[t->role], "shape", shape,
                     "axis", t->axis < 0 ? json_null() : json_integer(t->axis), "sections", t->sections, "pieces",
                     pieces);
}

json_t *tensors_json(const struct checkpoint *c)
{
    json_t *all = json_array();
    for (size_t i = 0; i < c->pieces->n; i++)
        json_array_append_new(all, tensor_json(c, &c->pieces->tensor[i], false));
    return all;
}

json_t *mesh_json(const struct mesh *m)
{
    return json_pack("{s:i, s:i, s:i, s:i}", "dp", m->dp, "pp", m->pp, "tp", m->tp, "zero", m->zero);
}

/* A line per tensor behind those of the hash and the head. */
char *manifest_text(const struct checkpoint *c)
{
    char *body = NULL;
    size_t n;
    FILE *out = open_memstream(&body, &n);
    const struct config *m = &c->pieces->config;
    json_t *config = json_pack("{s:i, s:i, s:i, s:i, s:i, s:b}", "layers", m->layers, "heads", m->heads, "channels",
                               m->channels, "seq-len", m->seq_len, "vocab", m->vocab, "tied", m->tied);
    json_t *head = json_pack("{s:i, s:s, s:o, s:i, s:s, s:o, s:o, s:O}", "version", VERSION, "program", YARD_VERSION,
                             "data", hash_json(c->data), "vector", (int)c->vector, "tokenizer", c->tokenizer, "config",
                             config, "mesh", mesh_json(&c->pieces->mesh), "options", c->options);
    CHECK(head, "no manifest for step %u", c->step);
    if (!c->stored) {
        json_t *files = json_array();
        for (int r = 0; r < n_ranks(&c->pieces->mesh); r++)
            if (c->bytes[r])
                json_array_append_new(files, json_pack("{s:i, s:I}", "rank", r, "bytes", (json_int_t)c->bytes[r]));
        json_object_update_new(head, json_pack("{s:o, s:o, s:I, s:I, s:I}", "files", files, "run", hash_json(c->run),
                                               "step", (json_int_t)c->step, "session", (json_int_t)c->session,
                                               "samples", (json_int_t)c->samples));
    }
    char *fields = json_dumps(head, JSON_COMPACT);
    fprintf(out, "%.*s,\"tensors\":[", (int)strlen(fields) - 2, fields + 1); /* without its braces */
    for (size_t i = 0; i < c->pieces->n; i++) {
        json_t *tensor = tensor_json(c, &c->pieces->tensor[i], c->stored);
        char *line = json_dumps(tensor, JSON_COMPACT);
        fprintf(out, "%s\n%s", i ? "," : "", line);
        free(line);
        json_decref(tensor);
    }
    fprintf(out, "]}\n");
    fclose(out);
    char *text = format_string("{\"hash\":\"%016llx\",\n%s", (unsigned long long)hash_bytes(body, n, 0), body);
    free(fields), free(body);
    json_decref(head);
    return text;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

struct place { /* in a manifest: what refusals name */
    const char *path, *what;
};

#define REFUSE(place, ...) refuse(place, format_string(__VA_ARGS__))
static _Noreturn void refuse(const struct place *at, const char *reason)
{
    fail(EXIT_FAILED, "%s is damaged or not ours: %s%s%s", at->path, at->what ? at->what : "", at->what ? ": " : "",
         reason);
}

/* As json_unpack() does it: "{s:I, s?s}" are a field that must be there, and one that may; more there must not be,
 * since it may mean something that we would miss. */
static void unpack(const struct place *at, json_t *value, const char *format, ...)
{
    json_error_t error;
    va_list fields;
    va_start(fields, format);
    if (json_vunpack_ex(value, &error, JSON_STRICT, format, fields) != 0)
        REFUSE(at, "%s", error.text);
    va_end(fields);
}

struct bounds { /* of a field */
    const char *field;
    json_int_t value, low, high;
};

#define EXPECT(at, ...) expect_within(at, (struct bounds[]){__VA_ARGS__}, COUNT(((struct bounds[]){__VA_ARGS__})))
static void expect_within(const struct place *at, const struct bounds *b, size_t n)
{
    for (; n > 0; b++, n--)
        if (b->value < b->low || b->value > b->high)
            REFUSE(at, "\"%s\" must be a whole number from %lld to %lld", b->field, b->low, b->high);
}

static uint64_t read_hash(const struct place *at, const char *field, const char *text)
{
    if (!text || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        REFUSE(at, "\"%s\" must be 16 hexadecimal digits", field);
    return strtoull(text, NULL, 16);
}

/* The tensors of such a model, and the mesh that cut them. */
static struct pieces *read_sizes(const char *path, json_t *config, json_t *mesh)
{
    const struct place in_config = {path, "config"}, in_mesh = {path, "mesh"};
    int tied;
    json_int_t layers, heads, channels, seq_len, vocab, dp, pp, tp, zero;
    unpack(&in_config, config, "{s:I, s:I, s:I, s:I, s:I, s:b}", "layers", &layers, "heads", &heads, "channels",
           &channels, "seq-len", &seq_len, "vocab", &vocab, "tied", &tied);
    EXPECT(&in_config, {"layers", layers, 1, MAX_LAYERS}, {"heads", heads, 1, 1 << 20},
           {"channels", channels, 1, 1 << 20}, {"seq-len", seq_len, 1, 1 << 30}, {"vocab", vocab, 1, 1 << 30});
    if (channels % heads)
        REFUSE(&in_config, "%lld channels cannot be shared by %lld heads", channels, heads);
    struct config sizes = {(int)layers, (int)heads, (int)channels, (int)seq_len, (int)vocab, tied};
    check_config(&sizes);
    unpack(&in_mesh, mesh, "{s:I, s:I, s:I, s:I}", "dp", &dp, "pp", &pp, "tp", &tp, "zero", &zero);
    EXPECT(&in_mesh, {"dp", dp, 1, MAX_RANKS}, {"pp", pp, 1, MAX_RANKS}, {"tp", tp, 1, MAX_RANKS},
           {"zero", zero, 0, 3});
    EXPECT(&in_mesh, {"dp * pp * tp", dp * pp * tp, 1, MAX_RANKS});
    struct pieces *s = uncut_state(&sizes);
    s->mesh = (struct mesh){.dp = (int)dp, .pp = (int)pp, .tp = (int)tp, .zero = (int)zero, .chunks = 1};
    return s;
}

const char *recorded_option(const struct checkpoint *c, const char *name)
{
    const char *text = json_string_value(json_object_get(c->options, name));
    return text ? text : "";
}

struct mesh strategy_of(const struct checkpoint *c)
{
    struct mesh m = c->pieces->mesh;
    const char *mesh = recorded_option(c, "mesh");
    struct problem *p = *mesh ? parse_mesh(mesh, 1, &m) : NULL;
    if (p)
        REFUSE((&(struct place){c->path, "options"}), "%s", p->sentence);
    m.zero = c->pieces->mesh.zero;
    return m;
}

/* Everything but the tensors, which are returned. */
static json_t *read_head(const char *path, json_t *all, struct checkpoint *c)
{
    const struct place whole = {.path = path}, in_options = {path, "options"}, in_files = {path, "files"}, *at = &whole;
    size_t i;
    const char *hash, *data, *tokenizer, *name, *program = "", *run = NULL;
    json_t *config, *mesh, *options, *tensors, *option, *file, *files = NULL;
    json_int_t version, vector, step = 0, session = 1, samples = 0; /* in another form it has not the last three */
    unpack(at, all,
           c->stored ? "{s:s, s:I, s?s, s:s, s:I, s:s, s:o, s:o, s:o, s:o}"
                     : "{s:s, s:I, s?s, s:s, s:I, s:s, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:o, s?s}",
           "hash", &hash, "version", &version, "program", &program, "data", &data, "vector", &vector, "tokenizer",
           &tokenizer, "config", &config, "mesh", &mesh, "options", &options, "tensors", &tensors, "step", &step,
           "session", &session, "samples", &samples, "files", &files, "run", &run);
    EXPECT(at, {"version", version, 1, VERSION}, {"vector", vector, 0, 1024}, {"step", step, 0, MAX_STEP},
           {"session", session, 1, MOST}, {"samples", samples, 0, MOST});
    snprintf(c->program, sizeof c->program, "%s", program);
    c->run = run ? read_hash(at, "run", run) : 0;
    c->data = read_hash(at, "data", data);
    c->vector = (unsigned)vector;
    c->step = (uint32_t)step, c->session = session, c->samples = samples;
    c->tokenizer = copy_string(tokenizer);
    c->pieces = read_sizes(path, config, mesh);
    if (!json_is_object(options))
        REFUSE(&in_options, "expected an object of texts");
    json_object_foreach(options, name, option) if (!json_is_string(option))
        REFUSE(&in_options, "\"%.40s\" must be a text", name);
    c->options = json_incref(options);
    strategy_of(c); /* or it is refused */
    int ranks = n_ranks(&c->pieces->mesh);
    c->bytes = c->stored ? NULL : allocate((size_t)ranks, sizeof *c->bytes);
    json_array_foreach(files, i, file)
    {
        json_int_t rank, bytes;
        unpack(&in_files, file, "{s:I, s:I}", "rank", &rank, "bytes", &bytes);
        EXPECT(&in_files, {"rank", rank, 0, ranks - 1}, {"bytes", bytes, 8, INT64_MAX});
        if (c->bytes[rank])
            REFUSE(&in_files, "rank %d is there twice", (int)rank);
        c->bytes[rank] = (uint64_t)bytes;
    }
    return tensors;
}

static void read_piece(const struct place *at, const struct checkpoint *c, const struct kept_tensor *t, json_t *piece,
                       struct piece *p)
{
    char name[48];
    const char *file = NULL, *hash = NULL;
    json_t *flat = NULL, *box = NULL;
    json_int_t offset, rank, e[4] = {0, 0, 0, 1}; /* a vector's second axis is [0, 1) */
    unpack(at, piece, c->stored ? "{s:I, s:I, s?o, s?o}" : "{s:I, s:I, s?o, s?o, s:s, s:s}", "offset", &offset, "rank",
           &rank, "flat", &flat, "box", &box, "file", &file, "hash", &hash);
    EXPECT(at, {"rank", rank, 0, n_ranks(&c->pieces->mesh) - 1});
    if (!flat == !box)
        REFUSE(at, "it must have either \"flat\" or \"box\"");
    unpack(at, flat ? flat : box,
           flat           ? "[I, I]"
           : t->dims == 1 ? "[[I, I]]"
                          : "[[I, I], [I, I]]",
           &e[0], &e[1], &e[2], &e[3]);
    for (int i = 0; i < 2; i++) {
        int64_t end = !flat ? t->shape[i] : i ? 1 : (int64_t)tensor_elements(t);
        if (e[2 * i] < 0 || e[2 * i] >= e[2 * i + 1] || e[2 * i + 1] > end)
            REFUSE(at, "the range [%lld, %lld) is empty or not within [0, %lld)", e[2 * i], e[2 * i + 1],
                   (long long)end);
    }
    *p = (struct piece){.rank = (int)rank, .flat = flat, .begin = {e[0], e[2]}, .end = {e[1], e[3]}};
    uint64_t bytes = ELEMENT_BYTES * piece_elements(p), room = c->stored ? c->stored->bytes : c->bytes[rank];
    snprintf(name, sizeof name, "rank-%d.safetensors", p->rank);
    if (file && strcmp(file, name) != 0)
        REFUSE(at, "\"file\" must be \"%s\", as its rank is %d", name, p->rank);
    if (bytes > room)
        REFUSE(at, "it takes %llu bytes, more than %s has", (unsigned long long)bytes,
               file ? file : c->stored->store->place);
    EXPECT(at, {"offset", offset, c->stored ? 0 : 8, (json_int_t)(room - bytes)});
    p->offset = (uint64_t)offset;
    p->hash = file ? read_hash(at, "hash", hash) : 0;
}

static void read_tensors(const char *path, json_t *tensors, const struct checkpoint *c)
{
    struct pieces *s = c->pieces;
    char what[160];
    size_t ranks = (size_t)n_ranks(&s->mesh);
    const struct place here = {path, what}, *at = &here;
    snprintf(what, sizeof what, "tensors");
    if (json_array_size(tensors) != s->n)
        REFUSE(at, "expected a list of %zu", s->n);
    for (size_t i = 0; i < s->n; i++) {
        struct kept_tensor *t = &s->tensor[i];
        json_t *expected = tensor_json(c, t, true), *found = json_copy(json_array_get(tensors, i));
        json_t *pieces = json_incref(json_object_get(found, "pieces"));
        snprintf(what, sizeof what, "tensor %zu (%s, %s)", i, t->name, kept_name[t->role]);
        json_object_del(expected, "pieces"), json_object_del(found, "pieces");
        if (!json_equal(expected, found))
            REFUSE(at, "expected %s, as the sizes of the model say", json_dumps(expected, JSON_COMPACT));
        json_decref(expected), json_decref(found);
        size_t most = c->stored ? c->stored->n : 3 * ranks; /* a ragged row, whole ones, a ragged row */
        most = MIN(most, tensor_elements(t));
        if (json_array_size(pieces) < 1 || json_array_size(pieces) > most)
            REFUSE(at, "\"pieces\" must be a list of 1 to %zu", most);
        t->piece = allocate(json_array_size(pieces), sizeof *t->piece);
        for (; t->n < json_array_size(pieces); t->n++) {
            snprintf(what, sizeof what, "tensor %s, %s, piece %zu", t->name, kept_name[t->role], t->n);
            read_piece(at, c, t, json_array_get(pieces, t->n), &t->piece[t->n]);
        }
        json_decref(pieces);
    }
}

struct checkpoint *parse_manifest(const char *path, const char *text, size_t n, struct in_store *s)
{
    const struct place *at = &(struct place){.path = path};
    char head[64];
    if (n < HASH_LINE || strncmp(text, "{\"hash\":\"", 9) != 0 || text[HASH_LINE - 1] != '\n')
        REFUSE(at, "it must begin with a line {\"hash\":\"...\", of 16 digits");
    snprintf(head, sizeof head, "{\"hash\":\"%016llx\",\n",
             (unsigned long long)hash_bytes(text + HASH_LINE, n - HASH_LINE, 0));
    if (strncmp(text, head, HASH_LINE) != 0)
        REFUSE(at, "its first line says hash %.16s, its other bytes have %.16s", text + 9, head + 9);
    json_error_t error; /* jansson refuses duplicate keys, and what is no UTF-8 */
    json_t *all = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
    if (!all)
        REFUSE(at, "it is no JSON at line %d: %s", error.line, error.text);
    json_int_t version = 0;
    const char *program = "";
    json_unpack(all, "{s:I, s?s}", "version", &version, "program", &program); /* a newer one may have other fields */
    if (version > VERSION)
        fail(EXIT_FAILED,
             "%s was written by a newer yard, %s, in format %lld: this one, " YARD_VERSION
             ", reads formats up to %d; use the newer one",
             path, program, version, VERSION);
    struct checkpoint *c = allocate(1, sizeof *c);
    c->path = copy_string(path);
    c->stored = s;
    c->room = allocate(1, sizeof *c->room);
    read_tensors(path, read_head(path, all, c), c);
    json_decref(all);
    return c;
}

struct checkpoint *read_manifest(const char *folder)
{
    size_t n;
    char *path = format_string("%s/" MANIFEST, folder), *text = read_whole(path, &n);
    struct checkpoint *c = parse_manifest(path, text, n, NULL);
    *strrchr(c->path, '/') = '\0';
    free(text), free(path);
    return c;
}

struct checkpoint *like_checkpoint(const struct checkpoint *c, const char *path)
{
    struct checkpoint *like = copy_bytes(c, sizeof *c);
    like->path = copy_string(path);
    like->tokenizer = copy_string(c->tokenizer);
    like->options = json_copy(c->options);
    like->pieces = NULL, like->bytes = NULL, like->stored = NULL, like->room = NULL;
    return like;
}

void free_checkpoint(struct checkpoint *c)
{
    if (c->pieces)
        free_pieces(c->pieces);
    for (size_t i = 0; c->stored && i < c->stored->n_damage; i++)
        free(c->stored->damage[i]);
    if (c->stored)
        free(c->stored->damage);
    if (c->room)
        free(c->room->bytes);
    json_decref(c->options), free(c->stored), free(c->room), free(c->path), free(c->tokenizer), free(c->bytes);
    free(c);
}

char *rank_file(const struct checkpoint *c, int rank)
{
    return c->stored ? copy_string(c->path) : format_string("%s/rank-%d.safetensors", c->path, rank);
}
