/* manifest_write.c - writes the description of a checkpoint, which files.h draws.  manifest_read.c reads it.
 *
 * The fields are those of tutorials/reference-files.md, no more and no fewer.
 *
 * "mesh" is the mesh of the pieces; the strategy is the text "mesh" among the options (see checkpoint.h).  Manifests of
 * version 1 have neither "run" nor "program".  A manifest of a version above ours is refused: only these two fields of
 * it, "version" and "program", are read, for the message.
 *
 * A checkpoint in another form (struct checkpoint_form) has a manifest too, with fewer fields.
 */
#include "files.h"

/* ---- tensors and their pieces ------------------------------------------------------------------------------------ */

/* [begin, end) of the piece along that axis. */
static json_t *range_json(const struct piece *piece, int axis)
{
    return json_pack("[I, I]", (json_int_t)piece->begin[axis], (json_int_t)piece->end[axis]);
}

static json_t *hash_json(uint64_t hash) { return json_sprintf("%016llx", (unsigned long long)hash); }

static json_t *piece_json(const struct checkpoint *checkpoint, const struct kept_tensor *tensor,
                          const struct piece *piece, enum manifest_kind kind)
{
    json_t *json = json_pack("{s:I, s:i}", "offset", (json_int_t)piece->file_offset, "rank", piece->rank);
    if (piece->flat) {
        json_object_set_new(json, "flat", range_json(piece, 0));
    } else {
        json_t *box = json_array();
        for (int i = 0; i < tensor->dims; i++)
            json_array_append_new(box, range_json(piece, i));
        json_object_set_new(json, "box", box);
    }
    if (kind == STATE_MANIFEST) {
        char *path = rank_file(checkpoint, piece->rank); /* it may be the single file of another form */
        set_json_text(json, "file", last_part(path));
        json_object_set_new(json, "hash", hash_json(piece->hash));
        free(path);
    }
    return json;
}

json_t *tensor_json(const struct checkpoint *checkpoint, const struct kept_tensor *tensor, enum manifest_kind kind)
{
    json_t *json = json_pack("{s:s, s:s}", "name", tensor->name, "role", kept_name[tensor->role]);
    json_t *shape = json_array(), *pieces = json_array();
    for (int i = 0; i < tensor->dims; i++)
        json_array_append_new(shape, json_integer(tensor->shape[i]));
    for (size_t k = 0; k < tensor->n_pieces; k++)
        json_array_append_new(pieces, piece_json(checkpoint, tensor, &tensor->pieces[k], kind));
    json_object_set_new(json, "shape", shape);
    json_object_set_new(json, "axis", tensor->axis == NONE ? json_null() : json_integer(tensor->axis));
    set_json_integer(json, "sections", tensor->sections);
    json_object_set_new(json, "pieces", pieces);
    return json;
}

json_t *tensors_json(const struct checkpoint *checkpoint)
{
    json_t *all = json_array();
    for (size_t i = 0; i < checkpoint->cut->n; i++)
        json_array_append_new(all, tensor_json(checkpoint, &checkpoint->cut->tensors[i], STATE_MANIFEST));
    return all;
}

/* ---- the head, and the whole text -------------------------------------------------------------------------------- */

json_t *mesh_json(const struct mesh *mesh)
{
    json_t *json = json_object();
    set_json_integer(json, "dp", mesh->dp);
    set_json_integer(json, "pp", mesh->pp);
    set_json_integer(json, "tp", mesh->tp);
    set_json_integer(json, "zero", mesh->zero);
    return json;
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
static json_t *files_json(const struct checkpoint *checkpoint)
{
    json_t *files = json_array();
    for (int rank = 0; rank < n_ranks(&checkpoint->cut->mesh); rank++)
        if (checkpoint->bytes[rank])
            json_array_append_new(files,
                                  json_pack("{s:i, s:I}", "rank", rank, "bytes", (json_int_t)checkpoint->bytes[rank]));
    return files;
}

/* All fields but the hash and the tensors.  read_head() reads them. */
static json_t *head_json(const struct checkpoint *checkpoint)
{
    json_t *head = json_object();
    add_field(head, "version", json_integer(MANIFEST_VERSION));
    add_field(head, "program", json_string(YARD_VERSION));
    add_field(head, "data", hash_json(checkpoint->data));
    add_field(head, "vector", json_integer(checkpoint->vector));
    add_field(head, "tokenizer", json_string(checkpoint->tokenizer));
    add_field(head, "config", sizes_json(&checkpoint->cut->config));
    add_field(head, "mesh", mesh_json(&checkpoint->cut->mesh));
    add_field(head, "options", json_incref(checkpoint->options));
    if (checkpoint->single_file)
        return head;
    add_field(head, "files", files_json(checkpoint));
    add_field(head, "run", hash_json(checkpoint->run_id));
    add_field(head, "step", json_integer(checkpoint->step));
    add_field(head, "session", json_integer(checkpoint->session));
    add_field(head, "samples", json_integer(checkpoint->samples));
    return head;
}

/* All lines but the first, which has the hash of these: one for the head, and one for each tensor.  The caller frees
 * them. */
static char *lines_after_hash(const struct checkpoint *checkpoint)
{
    struct begun_text begun;
    FILE *out = begin_text(&begun);
    enum manifest_kind kind = checkpoint->single_file ? LAYOUT_MANIFEST : STATE_MANIFEST;
    json_t *head = head_json(checkpoint);
    const char *name;
    json_t *value;
    json_object_foreach(head, name, value)
    {
        char *text = dump_json(value, JSON_COMPACT);
        fprintf(out, "\"%s\":%s,", name, text);
        free(text);
    }
    fprintf(out, "\"tensors\":[");
    for (size_t i = 0; i < checkpoint->cut->n; i++) {
        json_t *tensor = tensor_json(checkpoint, &checkpoint->cut->tensors[i], kind);
        char *line = dump_json(tensor, JSON_COMPACT);
        fprintf(out, "%s\n%s", i ? "," : "", line);
        free(line);
        json_decref(tensor);
    }
    fprintf(out, "]}\n");
    json_decref(head);
    return end_text(&begun);
}

char *manifest_text(const struct checkpoint *checkpoint)
{
    char *lines = lines_after_hash(checkpoint);
    uint64_t hash = hash_bytes(lines, strlen(lines), 0);
    char *text = format_string("{\"hash\":\"%016llx\",\n%s", (unsigned long long)hash, lines);
    free(lines);
    return text;
}
