/* manifest_read.c - reads the description of a checkpoint, strictly, in the order of manifest_write.c.
 *
 * A field that is missing, or that no version of the form has, is refused, and so is a number that is out of bounds.
 * Functions take_*() take a field out of a copy of its object, so what is left in the end is what was not expected.
 * A field that can be computed from others is compared with them: names and shapes with the table of parameters, a
 * piece's file with its rank.  Every message has the path and the field, or the tensor.
 */
#include "files.h"

enum {
    HASH_LINE = 28,   /* bytes of a manifest's first line */
    MOST_PART = 160,  /* bytes of the words for a place in a manifest */
    HEADER_LENGTH = 8 /* bytes: the first of a rank's file, which say how long its header is */
};

/* The upper bounds of the numbers in a manifest.  They are far above what any model or machine has, so that only damage
 * is refused. */
enum {
    MOST_HEADS = 1 << 20,
    MOST_CHANNELS = 1 << 20,
    MOST_SEQ_LEN = 1 << 30,
    MOST_VOCAB = 1 << 30,
    MOST_VECTOR = 1024 /* floats of a vector of the device */
};
static const int64_t MOST_COUNTED = 1000000000000000; /* sessions, samples: a billion steps of a million sequences */

/* ---- fields ------------------------------------------------------------------------------------------------------ */

struct where {        /* where in a manifest something is wrong */
    const char *path; /* the manifest's */
    const char *part; /* the field or the tensor; NULL: none in particular */
};

#define REFUSE(where, ...) refuse(where, format_string(__VA_ARGS__))
static _Noreturn void refuse(const struct where *where, const char *reason)
{
    if (where->part)
        refuse_damaged(EXIT_FAILED, "%s is damaged, or is not a manifest that yard wrote: %s: %s", where->path,
                       where->part, reason);
    refuse_damaged(EXIT_FAILED, "%s is damaged, or is not a manifest that yard wrote: %s", where->path, reason);
}

/* Reads as json_unpack() does, for one field or one list: "{s:s}" is a text that must be there, "{s?s}" one that may
 * be. */
static void unpack(const struct where *where, json_t *value, const char *format, ...)
{
    json_error_t error;
    va_list fields;
    va_start(fields, format);
    if (json_vunpack_ex(value, &error, 0, format, fields) != 0)
        REFUSE(where, "%s", error.text);
    va_end(fields);
}

/* A copy of the object, to take fields out of; end_fields() frees it.  Both share the values, so what is taken lives as
 * long as the object. */
static json_t *begin_fields(json_t *object) { return json_copy(object); }

/* Refuses fields that have not been taken, since they may mean something that we would miss. */
static void end_fields(const struct where *where, json_t *fields)
{
    unpack(where, fields, "{!}"); /* '!' allows no field beyond those that the format has, which are none */
    json_decref(fields);
}

static void refuse_if_outside(const struct where *where, const char *field, json_int_t value, json_int_t low,
                              json_int_t high)
{
    if (value < low || value > high)
        REFUSE(where, "\"%s\" must be a whole number from %lld to %lld", field, low, high);
}

static int64_t take_number(const struct where *where, json_t *fields, const char *field, int64_t low, int64_t high)
{
    json_int_t value = 0;
    unpack(where, fields, "{s:I}", field, &value);
    refuse_if_outside(where, field, value, low, high);
    json_object_del(fields, field);
    return value;
}

static bool take_bool(const struct where *where, json_t *fields, const char *field)
{
    int value = 0;
    unpack(where, fields, "{s:b}", field, &value);
    json_object_del(fields, field);
    return value;
}

static const char *take_string(const struct where *where, json_t *fields, const char *field)
{
    const char *text = NULL;
    unpack(where, fields, "{s:s}", field, &text);
    json_object_del(fields, field);
    return text;
}

/* Returns NULL where there is no such field. */
static const char *take_optional_string(const struct where *where, json_t *fields, const char *field)
{
    const char *text = NULL;
    unpack(where, fields, "{s?s}", field, &text);
    json_object_del(fields, field);
    return text;
}

static json_t *take_field(const struct where *where, json_t *fields, const char *field)
{
    json_t *value = NULL;
    unpack(where, fields, "{s:o}", field, &value);
    json_object_del(fields, field);
    return value;
}

/* Returns NULL where there is no such field. */
static json_t *take_optional_field(json_t *fields, const char *field)
{
    json_t *value = json_object_get(fields, field);
    json_object_del(fields, field);
    return value;
}

static uint64_t parse_hash(const struct where *where, const char *field, const char *text)
{
    if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        REFUSE(where, "\"%s\" must be 16 hexadecimal digits", field);
    return strtoull(text, NULL, 16);
}

static uint64_t take_hash(const struct where *where, json_t *fields, const char *field)
{
    return parse_hash(where, field, take_string(where, fields, field));
}

/* ---- the head ---------------------------------------------------------------------------------------------------- */

static struct config read_sizes(const char *path, json_t *config)
{
    const struct where where = {path, "config"};
    json_t *fields = begin_fields(config);
    struct config sizes = {0};
    sizes.layers = (int)take_number(&where, fields, "layers", 1, MOST_LAYERS);
    sizes.heads = (int)take_number(&where, fields, "heads", 1, MOST_HEADS);
    sizes.channels = (int)take_number(&where, fields, "channels", 1, MOST_CHANNELS);
    sizes.seq_len = (int)take_number(&where, fields, "seq-len", 1, MOST_SEQ_LEN);
    sizes.vocab = (int)take_number(&where, fields, "vocab", 1, MOST_VOCAB);
    sizes.tied = take_bool(&where, fields, "tied");
    end_fields(&where, fields);
    if (sizes.channels % sizes.heads)
        REFUSE(&where, "%d channels cannot be shared by %d heads", sizes.channels, sizes.heads);
    check_config(&sizes);
    return sizes;
}

static struct mesh read_mesh(const char *path, json_t *json)
{
    const struct where where = {path, "mesh"};
    json_t *fields = begin_fields(json);
    struct mesh mesh = {.chunks = 1};
    mesh.dp = (int)take_number(&where, fields, "dp", 1, MOST_RANKS);
    mesh.pp = (int)take_number(&where, fields, "pp", 1, MOST_RANKS);
    mesh.tp = (int)take_number(&where, fields, "tp", 1, MOST_RANKS);
    mesh.zero = (int)take_number(&where, fields, "zero", 0, 3);
    end_fields(&where, fields);
    refuse_if_outside(&where, "dp * pp * tp", (json_int_t)mesh.dp * mesh.pp * mesh.tp, 1, MOST_RANKS);
    return mesh;
}

static void read_recorded_options(const char *path, json_t *options, struct checkpoint *checkpoint)
{
    const struct where where = {path, "options"};
    const char *name;
    json_t *option;
    if (!json_is_object(options))
        REFUSE(&where, "expected an object of texts");
    json_object_foreach(options, name, option)
    {
        if (!json_is_string(option))
            REFUSE(&where, "\"%.40s\" must be a text", name);
    }
    checkpoint->options = json_incref(options);
    read_strategy(checkpoint); /* fails where the text "mesh" is no mesh */
}

static void read_files(const char *path, json_t *files, struct checkpoint *checkpoint)
{
    const struct where where = {path, "files"};
    int ranks = n_ranks(&checkpoint->cut->mesh);
    size_t i;
    json_t *file;
    checkpoint->bytes = allocate_each(ranks, sizeof *checkpoint->bytes);
    json_array_foreach(files, i, file)
    {
        json_t *fields = begin_fields(file);
        int rank = (int)take_number(&where, fields, "rank", 0, ranks - 1);
        int64_t bytes = take_number(&where, fields, "bytes", HEADER_LENGTH, INT64_MAX);
        end_fields(&where, fields);
        if (checkpoint->bytes[rank])
            REFUSE(&where, "rank %d is there twice", rank);
        checkpoint->bytes[rank] = (uint64_t)bytes;
    }
}

/* Reads the fields that belong to one state.  In another form of checkpoint they come from elsewhere. */
static void read_state(const struct where *where, json_t *fields, struct checkpoint *checkpoint)
{
    read_files(where->path, take_field(where, fields, "files"), checkpoint);
    const char *run = take_optional_string(where, fields, "run");
    if (run)
        checkpoint->run_id = parse_hash(where, "run", run);
    checkpoint->step = (uint32_t)take_number(where, fields, "step", 0, LAST_STEP);
    checkpoint->session = take_number(where, fields, "session", 1, MOST_COUNTED);
    checkpoint->samples = take_number(where, fields, "samples", 0, MOST_COUNTED);
}

/* Reads all fields that head_json() has written. */
static void read_head(const struct where *where, json_t *fields, struct checkpoint *checkpoint)
{
    take_number(where, fields, "version", 1, MANIFEST_VERSION);
    const char *program = take_optional_string(where, fields, "program");
    snprintf(checkpoint->program, sizeof checkpoint->program, "%s", program ? program : "");
    checkpoint->data = take_hash(where, fields, "data");
    checkpoint->vector = (unsigned)take_number(where, fields, "vector", VECTORS_DIFFER, MOST_VECTOR);
    checkpoint->tokenizer = copy_string(take_string(where, fields, "tokenizer"));
    struct config sizes = read_sizes(where->path, take_field(where, fields, "config"));
    checkpoint->cut = new_uncut_tensors(&sizes);
    checkpoint->cut->mesh = read_mesh(where->path, take_field(where, fields, "mesh"));
    read_recorded_options(where->path, take_field(where, fields, "options"), checkpoint);
    if (!checkpoint->single_file)
        read_state(where, fields, checkpoint);
}

/* ---- tensors and their pieces ------------------------------------------------------------------------------------ */

static void refuse_if_no_range(const struct where *where, const struct piece *piece, int axis, int64_t end)
{
    if (piece->begin[axis] < 0 || piece->begin[axis] >= piece->end[axis] || piece->end[axis] > end)
        REFUSE(where, "the range [%lld, %lld) is empty or not within [0, %lld)", (long long)piece->begin[axis],
               (long long)piece->end[axis], (long long)end);
}

/* The elements that a piece has: "flat": [begin, end], or "box": a pair [begin, end] for each axis.  In a format '!'
 * refuses a longer list. */
static void read_ranges(const struct where *where, const struct kept_tensor *tensor, json_t *flat, json_t *box,
                        struct piece *piece)
{
    json_int_t first[2] = {0, 1}, second[2] = {0, 1}; /* begin and end; a vector's second axis is [0, 1) */
    if ((flat != NULL) == (box != NULL))
        REFUSE(where, "it must have either \"flat\" or \"box\"");
    if (flat)
        unpack(where, flat, "[I, I!]", &first[0], &first[1]);
    else if (tensor->dims == 1)
        unpack(where, box, "[[I, I!]!]", &first[0], &first[1]);
    else
        unpack(where, box, "[[I, I!], [I, I!]!]", &first[0], &first[1], &second[0], &second[1]);
    piece->flat = flat != NULL;
    piece->begin[0] = first[0];
    piece->end[0] = first[1];
    piece->begin[1] = second[0];
    piece->end[1] = second[1];
    refuse_if_no_range(where, piece, 0, flat ? (int64_t)tensor_elements(tensor) : tensor->shape[0]);
    if (!flat)
        refuse_if_no_range(where, piece, 1, tensor->shape[1]);
}

struct piece_space { /* where a piece's bytes may lie */
    char name[48];   /* "rank-0.safetensors" */
    uint64_t bytes;
    int64_t first; /* the lowest offset that a piece can have */
};

/* The room is the rank's file; or, in another form of checkpoint, the place of one state. */
static struct piece_space room_for_piece(const struct checkpoint *checkpoint, int rank)
{
    const struct single_file *single_file = checkpoint->single_file;
    struct piece_space space;
    if (single_file) {
        space = (struct piece_space){.bytes = single_file->bytes, .first = 0};
        snprintf(space.name, sizeof space.name, "%s", single_file->form->place);
    } else {
        space = (struct piece_space){.bytes = checkpoint->bytes[rank], .first = HEADER_LENGTH};
        snprintf(space.name, sizeof space.name, RANK_FILE, rank);
    }
    return space;
}

/* Reads where the piece's bytes begin, and checks that they lie within its space. */
static void read_offset(const struct where *where, json_t *fields, const struct piece_space *space, struct piece *piece)
{
    uint64_t bytes = ELEMENT_BYTES * piece_elements(piece);
    if (bytes > space->bytes)
        REFUSE(where, "it takes %llu bytes, more than %s has", (unsigned long long)bytes, space->name);
    piece->file_offset = (uint64_t)take_number(where, fields, "offset", space->first, (int64_t)(space->bytes - bytes));
}

/* A piece of a checkpoint that is a folder names its rank's file, and has its hash. */
static void read_file_and_hash(const struct where *where, json_t *fields, const struct piece_space *space,
                               struct piece *piece)
{
    const char *file = take_string(where, fields, "file");
    if (strcmp(file, space->name) != 0)
        REFUSE(where, "\"file\" must be \"%s\", as its rank is %d", space->name, piece->rank);
    piece->hash = take_hash(where, fields, "hash");
}

static struct piece read_piece(const struct where *where, const struct checkpoint *checkpoint,
                               const struct kept_tensor *tensor, json_t *json)
{
    struct piece piece = {0};
    json_t *fields = begin_fields(json);
    piece.rank = (int)take_number(where, fields, "rank", 0, n_ranks(&checkpoint->cut->mesh) - 1);
    json_t *flat = take_optional_field(fields, "flat"), *box = take_optional_field(fields, "box");
    read_ranges(where, tensor, flat, box, &piece);
    const struct piece_space space = room_for_piece(checkpoint, piece.rank);
    if (!checkpoint->single_file)
        read_file_and_hash(where, fields, &space, &piece);
    read_offset(where, fields, &space, &piece); /* the last one, since its bounds follow from the others */
    end_fields(where, fields);
    return piece;
}

/* Name, role, shape and the like must be those of the model's table of parameters. */
static void compare_with_table(const struct where *where, const struct checkpoint *checkpoint,
                               const struct kept_tensor *tensor, json_t *json)
{
    json_t *expected = tensor_json(checkpoint, tensor, LAYOUT_MANIFEST), *found = json_copy(json);
    json_object_del(expected, "pieces");
    json_object_del(found, "pieces");
    if (!json_equal(expected, found))
        REFUSE(where, "expected %s, as the sizes of the model say", dump_json(expected, JSON_COMPACT));
    json_decref(expected);
    json_decref(found);
}

/* Reads the list of the tensor's pieces.  `part` is what where->part points to; it is set to the piece that is read. */
static void read_pieces_of(const struct where *where, char part[MOST_PART], const struct checkpoint *checkpoint,
                           const json_t *list, struct kept_tensor *tensor)
{
    /* A rank's part may begin and end within a row: a part of a row, whole rows and a part of a row are 3 pieces. */
    size_t most = 3 * (size_t)n_ranks(&checkpoint->cut->mesh);
    if (checkpoint->single_file)
        most = checkpoint->single_file->n;
    most = MIN(most, tensor_elements(tensor));
    if (json_array_size(list) < 1 || json_array_size(list) > most)
        REFUSE(where, "\"pieces\" must be a list of 1 to %zu", most);
    tensor->pieces = allocate(json_array_size(list), sizeof *tensor->pieces);
    for (size_t k = 0; k < json_array_size(list); k++) {
        snprintf(part, MOST_PART, "tensor %s, %s, piece %zu", tensor->name, kept_name[tensor->role], k);
        tensor->pieces[k] = read_piece(where, checkpoint, tensor, json_array_get(list, k));
        tensor->n_pieces = k + 1;
    }
}

static void read_tensors(const char *path, json_t *tensors, const struct checkpoint *checkpoint)
{
    struct cut_tensors *cut = checkpoint->cut;
    char part[MOST_PART] = "tensors";
    const struct where where = {path, part};
    if (json_array_size(tensors) != cut->n)
        REFUSE(&where, "expected a list of %zu", cut->n);
    for (size_t i = 0; i < cut->n; i++) {
        struct kept_tensor *tensor = &cut->tensors[i];
        json_t *json = json_array_get(tensors, i);
        snprintf(part, MOST_PART, "tensor %zu (%s, %s)", i, tensor->name, kept_name[tensor->role]);
        compare_with_table(&where, checkpoint, tensor, json);
        read_pieces_of(&where, part, checkpoint, json_object_get(json, "pieces"), tensor);
    }
}

/* ---- the whole text ---------------------------------------------------------------------------------------------- */

/* The first line of a manifest is the hash of the others. */
static void refuse_if_hash_differs(const struct where *where, const char *text, size_t n)
{
    char head[64];
    if (n < HASH_LINE || strncmp(text, "{\"hash\":\"", 9) != 0 || text[HASH_LINE - 1] != '\n')
        REFUSE(where, "it must begin with a line {\"hash\":\"...\", of 16 digits");
    snprintf(head, sizeof head, "{\"hash\":\"%016llx\",\n",
             (unsigned long long)hash_bytes(text + HASH_LINE, n - HASH_LINE, 0));
    if (strncmp(text, head, HASH_LINE) != 0)
        REFUSE(where, "its first line says hash %.16s, its other bytes have %.16s", text + 9, head + 9);
}

/* This reading is not strict, since a newer manifest has other fields. */
static void refuse_if_newer(const char *path, json_t *all)
{
    json_int_t version = 0;
    const char *program = "";
    json_unpack(all, "{s:I, s?s}", "version", &version, "program", &program);
    if (version > MANIFEST_VERSION)
        fail(EXIT_FAILED,
             "%s was written by a newer yard, %s, in format %lld: this one, " YARD_VERSION
             ", reads formats up to %d; use the newer one",
             path, program, version, MANIFEST_VERSION);
}

struct checkpoint *parse_manifest(const char *path, const char *text, size_t n, struct single_file *single_file)
{
    const struct where where = {.path = path};
    refuse_if_hash_differs(&where, text, n);
    json_error_t error; /* jansson refuses duplicate keys, and what is not UTF-8 */
    json_t *all = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
    if (!all)
        REFUSE(&where, "it is not JSON at line %d: %s", error.line, error.text);
    refuse_if_newer(path, all);
    struct checkpoint *checkpoint = allocate(1, sizeof *checkpoint);
    checkpoint->path = copy_string(path);
    checkpoint->single_file = single_file;
    json_t *fields = begin_fields(all);
    take_string(&where, fields, "hash"); /* refuse_if_hash_differs() has compared it */
    read_head(&where, fields, checkpoint);
    read_tensors(path, take_field(&where, fields, "tensors"), checkpoint);
    end_fields(&where, fields);
    json_decref(all);
    return checkpoint;
}

struct checkpoint *read_manifest(const char *folder)
{
    size_t n;
    char *path = format_string("%s/" MANIFEST, folder), *text = read_whole(path, &n);
    struct checkpoint *checkpoint = parse_manifest(path, text, n, NULL);
    free(checkpoint->path);
    checkpoint->path = copy_string(folder);
    free(text);
    free(path);
    return checkpoint;
}
