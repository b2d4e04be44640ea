/* manifest.c - the description of a checkpoint: written last, read strictly.
 *
 *     {"hash":"c0ffee0123456789",           XXH64 of all bytes behind this line, in 16 digits
 *     "version":1, "step":30, ... "tensors":[
 *     {"name":"wte.weight","role":"value", ... "pieces":[{"file":"rank-0.safetensors","offset":4096, ...}]},
 *     ...]}
 *
 * The fields are those of tutorials/reference-files.md, no more and no fewer.  What can be computed from others is
 * compared with them: names and shapes with the table of parameters, a piece's file with its rank.
 *
 * A snapshot file has one too.  It lasts while iterations come and go, so it has neither their numbers nor hashes: it
 * lists the payloads of a slot, in which the pieces lie, and "offset" counts from the slot's start.
 */
#include "snap.h"

enum { VERSION = 1, HASH_LINE = 28 };
static const int64_t MOST = 1000000000000000; /* of what is counted: a billion steps of a million sequences */

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static json_t *range_json(const struct piece *p, int axis)
{
    return json_pack("[I, I]", (json_int_t)p->begin[axis], (json_int_t)p->end[axis]);
}

static json_t *hash_json(uint64_t hash) { return json_sprintf("%016llx", (unsigned long long)hash); }

static json_t *piece_json(const struct checkpoint *c, const struct kept_tensor *t, const struct piece *p)
{
    char *path = rank_file(c, p->rank);
    json_t *piece = json_pack("{s:I, s:i}", "offset", (json_int_t)p->offset, "rank", p->rank);
    json_t *held = p->flat ? range_json(p, 0) : json_array();
    for (int i = 0; i < t->rank && !p->flat; i++)
        json_array_append_new(held, range_json(p, i));
    json_object_set_new(piece, p->flat ? "flat" : "box", held);
    if (!c->snapshot || c->snapshot->newest.slot) /* else it is that of all slots alike */
        json_object_set_new(piece, "file", json_string(strrchr(path, '/') ? strrchr(path, '/') + 1 : path));
    if (!c->snapshot)
        json_object_set_new(piece, "hash", hash_json(p->hash));
    free(path);
    return piece;
}

static json_t *tensor_json(const struct checkpoint *c, const struct kept_tensor *t)
{
    json_t *shape = json_array(), *pieces = json_array();
    for (int i = 0; i < t->rank; i++)
        json_array_append_new(shape, json_integer(t->shape[i]));
    for (size_t i = 0; i < t->n; i++)
        json_array_append_new(pieces, piece_json(c, t, &t->piece[i]));
    return json_pack("{s:s, s:s, s:o, s:o, s:i, s:o}", "name", t->name, "role", kept_name[t->role], "shape", shape,
                     "axis", t->axis < 0 ? json_null() : json_integer(t->axis), "sections", t->sections, "pieces",
                     pieces);
}

json_t *tensors_json(const struct checkpoint *c)
{
    json_t *all = json_array();
    for (size_t i = 0; i < c->pieces->n; i++)
        json_array_append_new(all, tensor_json(c, &c->pieces->tensor[i]));
    return all;
}

static json_t *files_json(const struct checkpoint *c)
{
    json_t *files = json_array();
    for (int r = 0; c->bytes && r < most_ranks(c->pieces); r++)
        if (c->bytes[r])
            json_array_append_new(files, json_pack("{s:i, s:I}", "rank", r, "bytes", (json_int_t)c->bytes[r]));
    return files;
}

static const char *const of_iteration[] = {"step", "session", "samples", "files"}; /* not in a snapshot file's */

/* Without those, and with the sizes of the payloads. */
static void make_head_of_slots(json_t *head, const struct snapshot *s)
{
    json_t *payloads = json_array();
    for (size_t i = 0; i < COUNT(of_iteration); i++)
        json_object_del(head, of_iteration[i]);
    for (size_t i = 0; i < s->n; i++)
        json_array_append_new(payloads, json_integer((json_int_t)s->payload[i].bytes));
    json_object_set_new(head, "payloads", payloads);
}

static json_t *head_json(const struct checkpoint *c)
{
    const struct config *m = &c->pieces->config;
    json_t *config = json_pack("{s:i, s:i, s:i, s:i, s:i, s:b}", "layers", m->layers, "heads", m->heads, "channels",
                               m->channels, "seq-len", m->seq_len, "vocab", m->vocab, "tied", m->tied);
    json_t *mesh = json_pack("{s:i, s:i, s:i, s:i}", "dp", c->pieces->dp, "pp", c->pieces->pp, "tp", c->pieces->tp,
                             "zero", c->pieces->zero);
    json_t *head = json_pack("{s:i, s:I, s:I, s:I, s:o, s:i, s:s, s:o, s:o, s:O, s:o}", "version", VERSION, "step",
                             (json_int_t)c->step, "session", (json_int_t)c->session, "samples", (json_int_t)c->samples,
                             "data", hash_json(c->data), "vector", (int)c->vector, "tokenizer", c->tokenizer, "config",
                             config, "mesh", mesh, "options", c->options, "files", files_json(c));
    CHECK(head, "no manifest for step %u", c->step);
    if (c->snapshot)
        make_head_of_slots(head, c->snapshot);
    return head;
}

/* What is behind the line with the hash; the caller frees it. */
static char *body_text(const struct checkpoint *c)
{
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    json_t *head = head_json(c);
    char *fields = json_dumps(head, JSON_COMPACT);
    fprintf(out, "%.*s,\"tensors\":[", (int)strlen(fields) - 2, fields + 1); /* without its braces */
    for (size_t i = 0; i < c->pieces->n; i++) {
        json_t *tensor = tensor_json(c, &c->pieces->tensor[i]);
        char *line = json_dumps(tensor, JSON_COMPACT);
        fprintf(out, "%s\n%s", i ? "," : "", line);
        free(line);
        json_decref(tensor);
    }
    fprintf(out, "]}\n");
    fclose(out);
    free(fields);
    json_decref(head);
    return text;
}

char *manifest_text(const struct checkpoint *c)
{
    char *body = body_text(c);
    uint64_t hash = hash_bytes(body, strlen(body), 0);
    char *text = format_string("{\"hash\":\"%016llx\",\n%s", (unsigned long long)hash, body);
    free(body);
    return text;
}

/* ---- reading: refusing ------------------------------------------------------------------------------------------ */

struct place { /* in a manifest: what refusals name */
    const char *path, *what;
};

#define REFUSE(place, ...) refuse(place, format_string(__VA_ARGS__))
static _Noreturn void refuse(const struct place *at, const char *reason)
{
    fail(EXIT_FAILED, "%s is damaged or not ours: %s%s%s", at->path, at->what ? at->what : "", at->what ? ": " : "",
         reason);
}

static const json_t *need(const struct place *at, const json_t *object, const char *field)
{
    const json_t *value = json_object_get(object, field);
    if (!value)
        REFUSE(at, "the field \"%s\" is missing", field);
    return value;
}

/* Unknown fields may mean something that we would miss. */
static void expect_fields(const struct place *at, const json_t *object, size_t n)
{
    if (!json_is_object(object) || json_object_size(object) != n)
        REFUSE(at, "expected an object of %zu fields, found %zu", n, json_object_size(object));
}

static int64_t need_number(const struct place *at, const json_t *object, const char *field, int64_t low, int64_t high)
{
    const json_t *value = need(at, object, field);
    if (!json_is_integer(value) || json_integer_value(value) < low || json_integer_value(value) > high)
        REFUSE(at, "\"%s\" must be a whole number from %lld to %lld", field, (long long)low, (long long)high);
    return json_integer_value(value);
}

static const char *need_text(const struct place *at, const json_t *object, const char *field)
{
    const json_t *value = need(at, object, field);
    if (!json_is_string(value))
        REFUSE(at, "\"%s\" must be a text", field);
    return json_string_value(value);
}

static const json_t *need_list(const struct place *at, const json_t *object, const char *field, size_t least,
                               size_t most)
{
    const json_t *value = need(at, object, field);
    if (!json_is_array(value) || json_array_size(value) < least || json_array_size(value) > most)
        REFUSE(at, "\"%s\" must be a list of %zu to %zu", field, least, most);
    return value;
}

/* ---- reading: the head ------------------------------------------------------------------------------------------ */

/* jansson refuses duplicate keys, and what is no UTF-8. */
static json_t *parse(const struct place *at, const char *text, size_t n)
{
    json_error_t error;
    char head[64];
    if (n < HASH_LINE || strncmp(text, "{\"hash\":\"", 9) != 0 || text[HASH_LINE - 1] != '\n')
        REFUSE(at, "it must begin with a line {\"hash\":\"...\", of 16 digits");
    snprintf(head, sizeof head, "{\"hash\":\"%016llx\",\n",
             (unsigned long long)hash_bytes(text + HASH_LINE, n - HASH_LINE, 0));
    if (strncmp(text, head, HASH_LINE) != 0)
        REFUSE(at, "its first line says hash %.16s, its other bytes have %.16s", text + 9, head + 9);
    json_t *all = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
    if (!all)
        REFUSE(at, "it is no JSON at line %d: %s", error.line, error.text);
    return all;
}

static uint64_t need_hash(const struct place *at, const json_t *object, const char *field)
{
    const char *text = need_text(at, object, field);
    if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        REFUSE(at, "\"%s\" must be 16 hexadecimal digits", field);
    return strtoull(text, NULL, 16);
}

static struct config read_sizes(const struct place *all_at, const json_t *all)
{
    const json_t *o = need(all_at, all, "config"), *tied;
    const struct place here = {all_at->path, "config"}, *at = &here;
    expect_fields(at, o, 6);
    struct config c = {.layers = (int)need_number(at, o, "layers", 1, MAX_LAYERS),
                       .heads = (int)need_number(at, o, "heads", 1, 1 << 20),
                       .channels = (int)need_number(at, o, "channels", 1, 1 << 20),
                       .seq_len = (int)need_number(at, o, "seq-len", 1, 1 << 30),
                       .vocab = (int)need_number(at, o, "vocab", 1, 1 << 30)};
    tied = need(at, o, "tied");
    if (!json_is_boolean(tied))
        REFUSE(at, "\"tied\" must be true or false");
    if (c.channels % c.heads)
        REFUSE(at, "%d channels cannot be shared by %d heads", c.channels, c.heads);
    c.tied = json_is_true(tied);
    check_config(&c);
    return c;
}

static void read_mesh(const struct place *all_at, const json_t *all, struct pieces *p)
{
    const json_t *o = need(all_at, all, "mesh");
    const struct place here = {all_at->path, "mesh"}, *at = &here;
    expect_fields(at, o, 4);
    p->dp = (int)need_number(at, o, "dp", 1, MAX_RANKS);
    p->pp = (int)need_number(at, o, "pp", 1, MAX_RANKS / p->dp);
    p->tp = (int)need_number(at, o, "tp", 1, MAX_RANKS / (p->dp * p->pp));
    p->zero = (int)need_number(at, o, "zero", 0, 3);
}

static void read_options(const struct place *at, const json_t *all, struct checkpoint *c)
{
    const char *name;
    json_t *value, *options = (json_t *)need(at, all, "options");
    const struct place here = {at->path, "options"};
    if (!json_is_object(options))
        REFUSE(&here, "expected an object of texts");
    json_object_foreach(options, name, value) if (!json_is_string(value))
        REFUSE(&here, "\"%.40s\" must be a text", name);
    c->options = json_incref(options);
}

static void read_files(const struct place *all_at, const json_t *all, struct checkpoint *c)
{
    size_t i;
    json_t *file;
    char what[40];
    const struct place here = {all_at->path, what}, *at = &here;
    const json_t *files = need_list(all_at, all, "files", 1, (size_t)most_ranks(c->pieces));
    c->bytes = allocate((size_t)most_ranks(c->pieces), sizeof *c->bytes);
    json_array_foreach(files, i, file)
    {
        snprintf(what, sizeof what, "files, entry %zu", i);
        expect_fields(at, file, 2);
        int64_t rank = need_number(at, file, "rank", 0, most_ranks(c->pieces) - 1);
        if (c->bytes[rank])
            REFUSE(at, "rank %d is there twice", (int)rank);
        c->bytes[rank] = (uint64_t)need_number(at, file, "bytes", 8, INT64_MAX);
    }
}

static void read_payloads(const struct place *at, const json_t *all, struct snapshot *s)
{
    const json_t *payloads = need_list(at, all, "payloads", s->n, s->n);
    s->payload = allocate(s->n, sizeof *s->payload);
    for (size_t i = 0; i < s->n; i++) {
        const json_t *bytes = json_array_get(payloads, i);
        if (!json_is_integer(bytes) || json_integer_value(bytes) < 1)
            REFUSE(at, "payload %zu must have a whole number of bytes", i);
        s->payload[i].bytes = (uint64_t)json_integer_value(bytes);
    }
    const char *wrong = place_payloads(s);
    if (wrong)
        REFUSE(at, "%s", wrong);
}

static void read_head(const struct place *at, const json_t *all, struct checkpoint *c)
{
    expect_fields(at, all, c->snapshot ? 10 : 13);
    need_number(at, all, "version", VERSION, VERSION);
    c->data = need_hash(at, all, "data");
    c->vector = (unsigned)need_number(at, all, "vector", 0, 1024);
    c->tokenizer = copy_string(need_text(at, all, "tokenizer"));
    struct config config = read_sizes(at, all);
    c->pieces = whole_state(&config);
    read_mesh(at, all, c->pieces);
    read_options(at, all, c);
    if (c->snapshot) {
        read_payloads(at, all, c->snapshot);
        return;
    }
    c->step = (uint32_t)need_number(at, all, "step", 0, MAX_STEP);
    c->session = need_number(at, all, "session", 1, MOST);
    c->samples = need_number(at, all, "samples", 0, MOST);
    read_files(at, all, c);
}

/* ---- reading: tensors ------------------------------------------------------------------------------------------- */

static void read_range(const struct place *at, const json_t *range, int64_t end, struct piece *p, int axis)
{
    const json_t *first = json_array_get(range, 0), *last = json_array_get(range, 1);
    if (!json_is_array(range) || json_array_size(range) != 2 || !json_is_integer(first) || !json_is_integer(last))
        REFUSE(at, "a range must be a list of two whole numbers");
    p->begin[axis] = json_integer_value(first);
    p->end[axis] = json_integer_value(last);
    if (p->begin[axis] < 0 || p->begin[axis] >= p->end[axis] || p->end[axis] > end)
        REFUSE(at, "the range [%lld, %lld) is empty or not within [0, %lld)", (long long)p->begin[axis],
               (long long)p->end[axis], (long long)end);
}

static void place_in_file(const struct place *at, const struct checkpoint *c, const json_t *piece, struct piece *p)
{
    char file[48];
    uint64_t bytes = ELEMENT_BYTES * piece_elements(p), in_file = c->bytes[p->rank];
    snprintf(file, sizeof file, "rank-%d.safetensors", p->rank);
    if (strcmp(need_text(at, piece, "file"), file) != 0)
        REFUSE(at, "\"file\" must be \"%s\", as its rank is %d", file, p->rank);
    if (bytes > in_file)
        REFUSE(at, "it takes %llu bytes, but %s has %llu", (unsigned long long)bytes, file,
               (unsigned long long)in_file);
    p->offset = (uint64_t)need_number(at, piece, "offset", 8, (int64_t)(in_file - bytes));
    p->hash = need_hash(at, piece, "hash");
}

static void place_in_slot(const struct place *at, const struct snapshot *s, const json_t *piece, struct piece *p)
{
    uint64_t bytes = ELEMENT_BYTES * piece_elements(p);
    p->offset = (uint64_t)need_number(at, piece, "offset", 0, (int64_t)s->slot_bytes);
    if (!payload_at(s, p->offset, bytes))
        REFUSE(at, "its %llu bytes from %llu on are in no payload", (unsigned long long)bytes,
               (unsigned long long)p->offset);
}

static void read_piece(const struct place *at, const struct checkpoint *c, const struct kept_tensor *t,
                       const json_t *piece, struct piece *p)
{
    const json_t *flat = json_object_get(piece, "flat");
    expect_fields(at, piece, c->snapshot ? 3 : 5);
    p->rank = (int)need_number(at, piece, "rank", 0, most_ranks(c->pieces) - 1);
    p->flat = flat != NULL;
    if (flat)
        read_range(at, flat, (int64_t)tensor_elements(t), p, 0);
    else {
        const json_t *box = need_list(at, piece, "box", (size_t)t->rank, (size_t)t->rank);
        p->end[1] = 1; /* of a vector */
        for (int i = 0; i < t->rank; i++)
            read_range(at, json_array_get(box, (size_t)i), t->shape[i], p, i);
    }
    if (c->snapshot)
        place_in_slot(at, c->snapshot, piece, p);
    else
        place_in_file(at, c, piece, p);
}

static void expect_same(const struct place *at, const struct checkpoint *c, const struct kept_tensor *t,
                        const json_t *tensor)
{
    json_t *expected = tensor_json(c, t), *found = json_copy((json_t *)tensor);
    json_object_del(expected, "pieces"), json_object_del(found, "pieces");
    if (!json_equal(expected, found)) {
        char *text = json_dumps(expected, JSON_COMPACT);
        REFUSE(at, "expected %s, as the sizes of the model say", text);
    }
    json_decref(expected), json_decref(found);
}

static void read_tensors(const struct place *all_at, const json_t *all, const struct checkpoint *c)
{
    struct pieces *s = c->pieces;
    char what[160];
    const struct place here = {all_at->path, what}, *at = &here;
    const json_t *tensors = need_list(all_at, all, "tensors", s->n, s->n);
    for (size_t i = 0; i < s->n; i++) {
        struct kept_tensor *t = &s->tensor[i];
        const json_t *tensor = json_array_get(tensors, i), *pieces;
        snprintf(what, sizeof what, "tensor %zu (%s, %s)", i, t->name, kept_name[t->role]);
        expect_fields(at, tensor, 6);
        expect_same(at, c, t, tensor);
        size_t most = c->snapshot ? SIZE_MAX : 3 * (size_t)most_ranks(s); /* a ragged row, whole ones, a ragged row */
        pieces = need_list(at, tensor, "pieces", 1, MIN(most, tensor_elements(t)));
        t->piece = allocate(json_array_size(pieces), sizeof *t->piece);
        for (; t->n < json_array_size(pieces); t->n++) {
            snprintf(what, sizeof what, "tensor %s, %s, piece %zu", t->name, kept_name[t->role], t->n);
            read_piece(at, c, t, json_array_get(pieces, t->n), &t->piece[t->n]);
        }
    }
}

struct checkpoint *parse_manifest(const char *path, const char *text, size_t n, struct snapshot *s)
{
    struct place at = {.path = path};
    json_t *all = parse(&at, text, n);
    struct checkpoint *c = allocate(1, sizeof *c);
    c->path = copy_string(path);
    c->snapshot = s;
    read_head(&at, all, c);
    read_tensors(&at, all, c);
    json_decref(all);
    return c;
}

struct checkpoint *read_manifest(const char *folder)
{
    char *path = format_string("%s/" MANIFEST, folder);
    struct reader *r = open_reader(path);
    size_t n = (size_t)r->size;
    if (n > MAX_MANIFEST)
        REFUSE(&(struct place){.path = path}, "it has %zu bytes, expected at most %d", n, MAX_MANIFEST);
    char *text = read_all(r);
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
    like->pieces = NULL, like->bytes = NULL, like->snapshot = NULL;
    return like;
}

void free_checkpoint(struct checkpoint *c)
{
    if (c->pieces)
        free_pieces(c->pieces);
    if (c->snapshot)
        free_snapshot(c->snapshot);
    json_decref(c->options), free(c->path), free(c->tokenizer), free(c->bytes);
    free(c);
}

char *rank_file(const struct checkpoint *c, int rank)
{
    return c->snapshot ? copy_string(c->path) : format_string("%s/rank-%d.safetensors", c->path, rank);
}
