/* transfer.c - copies bytes as a copy plan says, a tensor at a time: its pieces are read, hashed and copied.
 *
 *     read_kept    the pieces of a file become one tensor in memory
 *     reshard      the pieces of a file become the pieces of other files
 *     verify       read_kept() without the tensor in memory: only hashes are compared
 *     compare      the same tensor of two checkpoints becomes two arrays, whose distance is computed
 */
#include "files.h"

#include <math.h>

/* ---- a tensor's pieces in memory --------------------------------------------------------------------------------- */

struct loaded_tensor {
    struct copies plan;
    char *bytes;     /* the pieces' bytes, in the checkpoint's buffer: valid until its next tensor is loaded */
    uint64_t *begin; /* [pieces + 1] where each piece begins in `bytes`, and the end */
};

static void free_loaded(struct loaded_tensor *loaded)
{
    free(loaded->plan.items);
    free(loaded->begin);
}

/* Reads a piece's bytes from the file and compares their hash. */
static void load_piece(struct checkpoint *checkpoint, const struct kept_tensor *tensor, const struct piece *piece,
                       struct reader *file, char *into)
{
    size_t bytes = ELEMENT_BYTES * piece_elements(piece);
    uint64_t begun = now_ns();
    read_at(file, into, bytes, piece->file_offset);
    uint64_t read_done = now_ns();
    uint64_t hash = hash_bytes(into, bytes, 0);
    checkpoint->times.read += read_done - begun;
    checkpoint->times.verify += now_ns() - read_done;
    checkpoint->times.bytes_read += bytes;
    if (hash != piece->hash)
        fail(EXIT_FAILED, "%s is damaged: tensor %s, %s, bytes %llu to %llu have hash %016llx, expected is %016llx; %s",
             file->path, tensor->name, kept_name[tensor->role], (unsigned long long)piece->file_offset,
             (unsigned long long)(piece->file_offset + bytes), (unsigned long long)hash,
             (unsigned long long)piece->hash,
             checkpoint->single_file ? checkpoint->single_file->form->advice : ADVICE_IF_DAMAGED);
}

static struct reader *open_file_of(const struct checkpoint *checkpoint, int rank)
{
    char *path = rank_file(checkpoint, rank);
    struct reader *file = open_reader(path);
    free(path);
    return file;
}

/* Reads all pieces of a tensor from their files, one after another, into loaded->bytes. */
static void read_pieces(struct checkpoint *checkpoint, const struct kept_tensor *tensor, struct loaded_tensor *loaded)
{
    struct reader *file = NULL;
    for (size_t k = 0; k < tensor->n_pieces; k++) {
        const struct piece *piece = &tensor->pieces[k];
        if (file && piece->rank != tensor->pieces[k - 1].rank) {
            close_reader(file);
            file = NULL;
        }
        if (!file)
            file = open_file_of(checkpoint, piece->rank);
        load_piece(checkpoint, tensor, piece, file, loaded->bytes + loaded->begin[k]);
    }
    close_reader(file);
}

/* Loads all pieces of a tensor, with a plan of where their elements go in `to`.  The plan comes first: it refuses a
 * manifest whose pieces overlap, so that the buffer takes no more memory than the tensor has bytes (grow() may double
 * that). */
static struct loaded_tensor load_pieces(struct checkpoint *checkpoint, size_t nth, const struct kept_tensor *to)
{
    const struct kept_tensor *tensor = &checkpoint->cut->tensors[nth];
    struct loaded_tensor loaded = {.begin = allocate(tensor->n_pieces + 1, sizeof *loaded.begin)};
    struct read_buffer *buffer = &checkpoint->buffer;
    must(plan_copies(tensor, to, checkpoint->path, &loaded.plan));
    must(prove_copies(&loaded.plan));
    for (size_t k = 0; k < tensor->n_pieces; k++)
        loaded.begin[k + 1] = loaded.begin[k] + ELEMENT_BYTES * piece_elements(&tensor->pieces[k]);
    GROW(buffer->bytes, buffer->cap, (size_t)loaded.begin[tensor->n_pieces]);
    loaded.bytes = buffer->bytes;
    read_pieces(checkpoint, tensor, &loaded);
    return loaded;
}

static const char *copied_bytes(const struct loaded_tensor *loaded, const struct copy *copy)
{
    return loaded->bytes + loaded->begin[copy->from_piece] + ELEMENT_BYTES * copy->from_offset;
}

/* ---- into memory, and into other files --------------------------------------------------------------------------- */

void read_kept(struct checkpoint *checkpoint, size_t nth, float *values)
{
    struct kept_tensor whole = checkpoint->cut->tensors[nth];
    whole.n_pieces = 1;
    whole.pieces = &(struct piece){.end = {whole.shape[0], whole.shape[1]}};
    struct loaded_tensor loaded = load_pieces(checkpoint, nth, &whole);
    if (values)
        for (size_t i = 0; i < loaded.plan.n; i++) {
            const struct copy *copy = &loaded.plan.items[i];
            memcpy(values + copy->to_offset, copied_bytes(&loaded, copy), ELEMENT_BYTES * copy->n);
        }
    free_loaded(&loaded);
}

struct verification { /* the argument of verify_bytes(), for attempt() */
    struct checkpoint *checkpoint;
    size_t nth;
};

static void verify_bytes(void *argument)
{
    const struct verification *verification = argument;
    read_kept(verification->checkpoint, verification->nth, NULL);
}

struct problem *verify_tensor(struct checkpoint *checkpoint, size_t nth)
{
    struct verification verification = {checkpoint, nth};
    return attempt(verify_bytes, &verification);
}

/* Puts new piece k together from the old pieces. */
static void fill_piece(const struct loaded_tensor *loaded, size_t k, char *into)
{
    for (const struct copy *copy = loaded->plan.items; copy < loaded->plan.items + loaded->plan.n; copy++)
        if (copy->to_piece == k)
            memcpy(into + ELEMENT_BYTES * copy->to_offset, copied_bytes(loaded, copy), ELEMENT_BYTES * copy->n);
}

uint64_t reshard_into(struct checkpoint *from, struct checkpoint *to)
{
    uint64_t moved = 0;
    char *bytes = NULL; /* one new piece's */
    size_t cap = 0;
    struct rank_writers writers = open_ranks(to);
    for (size_t i = 0; i < to->cut->n; i++) { /* tensors and pieces in the order of open_ranks() */
        struct kept_tensor *tensor = &to->cut->tensors[i];
        struct loaded_tensor loaded = load_pieces(from, i, tensor);
        for (size_t k = 0; k < tensor->n_pieces; k++) {
            struct piece *piece = &tensor->pieces[k];
            size_t n = ELEMENT_BYTES * piece_elements(piece);
            GROW(bytes, cap, n);
            fill_piece(&loaded, k, bytes);
            write_piece(&writers, piece, bytes);
            moved += n;
        }
        free_loaded(&loaded);
    }
    publish_ranks(&writers, to);
    free(bytes);
    return moved;
}

/* ---- how far two are apart --------------------------------------------------------------------------------------- */

struct difference compare_floats(const float *a, const float *b, size_t n)
{
    struct difference difference = {0};
    for (size_t i = 0; i < n; i++) {
        double gap = fabs((double)a[i] - (double)b[i]);
        difference.elements += memcmp(&a[i], &b[i], sizeof *a) != 0;
        if (gap > difference.most || isnan(gap))
            difference.most = gap;
        difference.distance += gap * gap;
        difference.norm += (double)b[i] * b[i];
    }
    difference.distance = sqrt(difference.distance);
    difference.norm = sqrt(difference.norm);
    return difference;
}

/* Both tensors are put together first, so that the two checkpoints may be cut by unlike meshes. */
struct difference compare_tensor(struct checkpoint *a, struct checkpoint *b, size_t nth)
{
    size_t n = tensor_elements(&a->cut->tensors[nth]);
    float *a_values = allocate(n, sizeof *a_values), *b_values = allocate(n, sizeof *b_values);
    read_kept(a, nth, a_values);
    read_kept(b, nth, b_values);
    struct difference difference = compare_floats(a_values, b_values, n);
    free(a_values);
    free(b_values);
    return difference;
}
