/* manifest.c - writes the description of a checkpoint, which manifest.h draws.  read_manifest.c reads it.
 *
 * The fields are those of tutorials/reference-files.md, no more and no fewer.
 *
 * "mesh" is the mesh of the pieces; the strategy is the text "mesh" among the options (see checkpoint.h).  Manifests of
 * version 1 have neither "run" nor "program".  A manifest of a version above ours is refused: only these two fields of
 * it, "version" and "program", are read, for the message.
 *
 * A checkpoint in another form (struct store) has a manifest too, with fewer fields.
 */
#include "manifest.h"

/* ---- tensors and their pieces --------------------------------------------------------------------------------- */

/* [begin, end) of the piece along that axis. */
static json_t *range_json(const struct piece *p, int axis)
{
    return json_pack("[I, I]", (json_int_t)p->begin[axis], (json_int_t)p->end[axis]);
}

static json_t *hash_json(uint64_t hash) { return json_sprintf("%016llx", (unsigned long long)hash); }

static json_t *piece_json(const struct checkpoint *c, const struct kept_tensor *t, const struct piece *p,
                          enum manifest_of of)
{
    json_t *piece = json_pack("{s:I, s:i}", "offset", (json_int_t)p->file_offset, "rank", p->rank);
    if (p->flat) {
        json_object_set_new(piece, "flat", range_json(p, 0));
    } else {
        json_t *box = json_array();
        for (int i = 0; i < t->dims; i++)
            json_array_append_new(box, range_json(p, i));
        json_object_set_new(piece, "box", box);
    }
    if (of == OF_STATE) {
        char *path = rank_file(c, p->rank);
        const char *slash = strrchr(path, '/');
        json_object_set_new(piece, "file", json_string(slash ? slash + 1 : path));
        json_object_set_new(piece, "hash", hash_json(p->hash));
        free(path);
    }
    return piece;
}

json_t *tensor_json(const struct checkpoint *c, const struct kept_tensor *t, enum manifest_of of)
{
    json_t *tensor = json_pack("{s:s, s:s}", "name", t->name, "role", kept_name[t->role]);
    json_t *shape = json_array(), *pieces = json_array();
    for (int i = 0; i < t->dims; i++)
        json_array_append_new(shape, json_integer(t->shape[i]));
    for (size_t k = 0; k < t->n; k++)
        json_array_append_new(pieces, piece_json(c, t, &t->piece[k], of));
    json_object_set_new(tensor, "shape", shape);
    json_object_set_new(tensor, "axis", t->axis < 0 ? json_null() : json_integer(t->axis));
    json_object_set_new(tensor, "sections", json_integer(t->sections));
    json_object_set_new(tensor, "pieces", pieces);
    return tensor;
}

json_t *tensors_json(const struct checkpoint *c)
{
    json_t *all = json_array();
    for (size_t i = 0; i < c->pieces->n; i++)
        json_array_append_new(all, tensor_json(c, &c->pieces->tensor[i], OF_STATE));
    return all;
}

/* ---- the head, and the whole text -------------------------------------------------------------------------------- */

json_t *mesh_json(const struct mesh *m)
{
    return json_pack("{s:i, s:i, s:i, s:i}", "dp", m->dp, "pp", m->pp, "tp", m->tp, "zero", m->zero);
}

/* Adds the field, whose value the object then owns. */
static void add_field(json_t *object, const char *name, json_t *value)
{
    CHECK(value, "the field \"%s\" of a manifest has no value", name);
    json_object_set_new(object, name, value);
}

static json_t *sizes_json(const struct config *sizes)
{
    json_t *config = json_object();
    add_field(config, "layers", json_integer(sizes->layers));
    add_field(config, "heads", json_integer(sizes->heads));
    add_field(config, "channels", json_integer(sizes->channels));
    add_field(config, "seq-len", json_integer(sizes->seq_len));
    add_field(config, "vocab", json_integer(sizes->vocab));
    add_field(config, "tied", json_boolean(sizes->tied));
    return config;
}

/* The size in bytes of each rank's file. */
static json_t *files_json(const struct checkpoint *c)
{
    json_t *files = json_array();
    for (int r = 0; r < n_ranks(&c->pieces->mesh); r++)
        if (c->bytes[r])
            json_array_append_new(files, json_pack("{s:i, s:I}", "rank", r, "bytes", (json_int_t)c->bytes[r]));
    return files;
}

/* All fields but the hash and the tensors.  read_head() reads them. */
static json_t *head_json(const struct checkpoint *c)
{
    json_t *head = json_object();
    add_field(head, "version", json_integer(MANIFEST_VERSION));
    add_field(head, "program", json_string(YARD_VERSION));
    add_field(head, "data", hash_json(c->data));
    add_field(head, "vector", json_integer(c->vector));
    add_field(head, "tokenizer", json_string(c->tokenizer));
    add_field(head, "config", sizes_json(&c->pieces->config));
    add_field(head, "mesh", mesh_json(&c->pieces->mesh));
    add_field(head, "options", json_incref(c->options));
    if (c->stored)
        return head;
    add_field(head, "files", files_json(c));
    add_field(head, "run", hash_json(c->run));
    add_field(head, "step", json_integer(c->step));
    add_field(head, "session", json_integer(c->session));
    add_field(head, "samples", json_integer(c->samples));
    return head;
}

/* A line for the hash, one for the head, and one for each tensor. */
char *manifest_text(const struct checkpoint *c)
{
    char *body = NULL;
    size_t n;
    FILE *out = open_memstream(&body, &n);
    json_t *head = head_json(c);
    char *fields = json_dumps(head, JSON_COMPACT);
    fprintf(out, "%.*s,\"tensors\":[", (int)strlen(fields) - 2, fields + 1); /* without its braces */
    for (size_t i = 0; i < c->pieces->n; i++) {
        json_t *tensor = tensor_json(c, &c->pieces->tensor[i], c->stored ? OF_LAYOUT : OF_STATE);
        char *line = json_dumps(tensor, JSON_COMPACT);
        fprintf(out, "%s\n%s", i ? "," : "", line);
        free(line);
        json_decref(tensor);
    }
    fprintf(out, "]}\n");
    fclose(out);
    char *text = format_string("{\"hash\":\"%016llx\",\n%s", (unsigned long long)hash_bytes(body, n, 0), body);
    free(fields);
    free(body);
    json_decref(head);
    return text;
}
