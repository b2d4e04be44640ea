/* transfer.c - copies bytes as a copy plan says, a tensor at a time: its pieces are read, hashed and copied.
 *
 *     read_kept    the pieces of a file become one tensor in memory
 *     reshard      the pieces of a file become the pieces of other files
 *     verify       read_kept() without the tensor in memory: only hashes are compared
 */
#include "transfer.h"
#include "copy_plan.h"
#include "rank_files.h"
#include "store.h"
#include "trainer/file/file.h"

/* ---- a tensor's pieces in memory --------------------------------------------------------------------------------- */

struct loaded {
    struct copies plan;
    char *bytes;     /* the pieces' bytes, in the checkpoint's buffer: valid until its next tensor is loaded */
    uint64_t *begin; /* [pieces + 1] where each piece begins in `bytes`, and the end */
};

static void free_loaded(struct loaded *l)
{
    free(l->plan.copy);
    free(l->begin);
}

/* Reads a piece's bytes from the file and compares their hash. */
static void load_piece(const struct checkpoint *c, const struct kept_tensor *t, const struct piece *p,
                       struct reader *file, char *into)
{
    size_t bytes = ELEMENT_BYTES * piece_elements(p);
    uint64_t begun = now_ns();
    read_at(file, into, bytes, p->file_offset);
    uint64_t there = now_ns();
    uint64_t hash = hash_bytes(into, bytes, 0);
    c->buffer->read += there - begun;
    c->buffer->verify += now_ns() - there;
    c->buffer->bytes_read += bytes;
    if (hash != p->hash)
        fail(EXIT_FAILED, "%s is damaged: tensor %s, %s, bytes %llu to %llu have hash %016llx, expected is %016llx; %s",
             file->path, t->name, kept_name[t->role], (unsigned long long)p->file_offset,
             (unsigned long long)(p->file_offset + bytes), (unsigned long long)hash, (unsigned long long)p->hash,
             c->stored ? c->stored->store->advice : "take another checkpoint");
}

static struct reader *open_file_of(const struct checkpoint *c, int rank)
{
    char *path = rank_file(c, rank);
    struct reader *file = open_reader(path);
    free(path);
    return file;
}

/* Loads all pieces of a tensor, with a plan of where their elements go in `to`.  The plan comes first: it refuses a
 * manifest whose pieces overlap, so that the buffer takes no more memory than the tensor has bytes (grow() may double
 * that). */
static struct loaded load_pieces(const struct checkpoint *c, size_t tensor, const struct kept_tensor *to)
{
    const struct kept_tensor *t = &c->pieces->tensor[tensor];
    struct loaded l = {.plan = plan_copies(t, to, c->path), .begin = allocate(t->n + 1, sizeof *l.begin)};
    struct reader *file = NULL;
    must(prove_copies(&l.plan));
    for (size_t k = 0; k < t->n; k++)
        l.begin[k + 1] = l.begin[k] + ELEMENT_BYTES * piece_elements(&t->piece[k]);
    c->buffer->bytes = grow(c->buffer->bytes, &c->buffer->cap, (size_t)l.begin[t->n], 1);
    l.bytes = c->buffer->bytes;
    for (size_t k = 0; k < t->n; k++) {
        const struct piece *p = &t->piece[k];
        if (file && p->rank != t->piece[k - 1].rank) {
            close_reader(file);
            file = NULL;
        }
        if (!file)
            file = open_file_of(c, p->rank);
        load_piece(c, t, p, file, l.bytes + l.begin[k]);
    }
    close_reader(file);
    return l;
}

static const char *copied_bytes(const struct loaded *l, const struct copy *x)
{
    return l->bytes + l->begin[x->from_piece] + ELEMENT_BYTES * x->from_offset;
}

/* ---- into memory, and into other files --------------------------------------------------------------------------- */

void read_kept(const struct checkpoint *c, size_t tensor, float *values)
{
    struct kept_tensor whole = c->pieces->tensor[tensor];
    whole.n = 1;
    whole.piece = &(struct piece){.end = {whole.shape[0], whole.shape[1]}};
    struct loaded l = load_pieces(c, tensor, &whole);
    for (const struct copy *x = l.plan.copy; values && x < l.plan.copy + l.plan.n; x++)
        memcpy(values + x->to_offset, copied_bytes(&l, x), ELEMENT_BYTES * x->n);
    free_loaded(&l);
}

struct verified { /* the argument of verify_bytes(), for attempt() */
    const struct checkpoint *c;
    size_t tensor;
};

static void verify_bytes(void *verified)
{
    const struct verified *v = verified;
    read_kept(v->c, v->tensor, NULL);
}

struct problem *verify_tensor(const struct checkpoint *c, size_t tensor)
{
    struct verified v = {c, tensor};
    return attempt(verify_bytes, &v);
}

/* Puts new piece k together from the old pieces. */
static void fill_piece(const struct loaded *l, size_t k, char *into)
{
    for (const struct copy *x = l->plan.copy; x < l->plan.copy + l->plan.n; x++)
        if (x->to_piece == k)
            memcpy(into + ELEMENT_BYTES * x->to_offset, copied_bytes(l, x), ELEMENT_BYTES * x->n);
}

uint64_t reshard(const struct checkpoint *from, struct checkpoint *to)
{
    uint64_t moved = 0;
    char *bytes = NULL; /* of one new piece */
    size_t cap = 0;
    struct ranks_written w = open_ranks(to);
    for (size_t i = 0; i < to->pieces->n; i++) { /* tensors and pieces in the order of open_ranks() */
        struct kept_tensor *t = &to->pieces->tensor[i];
        struct loaded l = load_pieces(from, i, t);
        for (size_t k = 0; k < t->n; k++) {
            struct piece *p = &t->piece[k];
            size_t n = ELEMENT_BYTES * piece_elements(p);
            bytes = grow(bytes, &cap, n, 1);
            fill_piece(&l, k, bytes);
            p->hash = hash_bytes(bytes, n, 0);
            st_write(w.file[p->rank], bytes, n);
            moved += n;
        }
        free_loaded(&l);
    }
    publish_ranks(&w, to);
    free(bytes);
    return moved;
}
