/* transfer.c - bytes along a plan, a tensor at a time: its pieces are read, hashed, and copied as the plan says.
 *
 *     read_kept    the pieces of a file become one tensor in memory
 *     reshard      they become the pieces of other files
 *     verify       a read that keeps nothing
 *     compare      two checkpoints, perhaps of unlike meshes, element by element
 */
#include "state.h"

#include <math.h>

/* ---- a tensor's pieces in memory --------------------------------------------------------------------------------- */

struct loaded {
    struct copies plan;
    char *bytes;  /* of the pieces that it reads: the checkpoint's room, until its next tensor is loaded */
    uint64_t *at; /* [pieces + 1] where each begins there, and the end */
};

/* All pieces of a tensor, and where they go.  The plan comes first: it refuses a manifest whose pieces overlap, so that
 * this buffer takes no more memory than the tensor has bytes (grow() may double that).  reshard() has a second one. */
static struct loaded load_pieces(const struct checkpoint *c, size_t tensor, const struct kept_tensor *to)
{
    const struct kept_tensor *t = &c->pieces->tensor[tensor];
    struct loaded l = {.plan = plan_copies(t, to, c->path), .at = allocate(t->n + 1, sizeof *l.at)};
    struct reader *file = NULL;
    must(prove_copies(&l.plan));
    for (size_t k = 0; k < t->n; k++)
        l.at[k + 1] = l.at[k] + ELEMENT_BYTES * piece_elements(&t->piece[k]);
    c->room->bytes = l.bytes = grow(c->room->bytes, &c->room->cap, (size_t)l.at[t->n], 1);
    for (size_t k = 0; k < t->n; k++) {
        if (k == 0 || t->piece[k].rank != t->piece[k - 1].rank) {
            char *path = rank_file(c, t->piece[k].rank);
            if (file)
                close_reader(file);
            file = open_reader(path);
            free(path);
        }
        const struct piece *p = &t->piece[k];
        size_t bytes = (size_t)(l.at[k + 1] - l.at[k]);
        uint64_t begun = now_ns();
        read_at(file, l.bytes + l.at[k], bytes, p->offset);
        uint64_t there = now_ns(), hash = hash_bytes(l.bytes + l.at[k], bytes, 0);
        c->room->read += there - begun;
        c->room->verify += now_ns() - there;
        c->room->bytes_read += bytes;
        if (hash != p->hash)
            fail(EXIT_FAILED,
                 "%s is damaged: tensor %s, %s, bytes %llu to %llu have hash %016llx, expected is %016llx; %s",
                 file->path, t->name, kept_name[t->role], (unsigned long long)p->offset,
                 (unsigned long long)(p->offset + bytes), (unsigned long long)hash, (unsigned long long)p->hash,
                 c->stored ? c->stored->store->advice : "take another checkpoint");
    }
    close_reader(file);
    return l;
}

static const char *copied_bytes(const struct loaded *l, const struct copy *x)
{
    return l->bytes + l->at[x->from] + ELEMENT_BYTES * x->from_at;
}

/* ---- into memory, and into other files --------------------------------------------------------------------------- */

void read_kept(const struct checkpoint *c, size_t tensor, float *values)
{
    struct kept_tensor whole = c->pieces->tensor[tensor];
    whole.n = 1;
    whole.piece = &(struct piece){.end = {whole.shape[0], whole.shape[1]}};
    struct loaded l = load_pieces(c, tensor, &whole);
    for (const struct copy *x = l.plan.copy; values && x < l.plan.copy + l.plan.n; x++)
        memcpy(values + x->to_at, copied_bytes(&l, x), ELEMENT_BYTES * x->n);
    free(l.plan.copy), free(l.at);
}

struct verified { /* of attempt() */
    const struct checkpoint *c;
    size_t tensor;
};

static void verify(void *verified)
{
    const struct verified *v = verified;
    read_kept(v->c, v->tensor, NULL);
}

struct problem *verify_tensor(const struct checkpoint *c, size_t tensor)
{
    return attempt(verify, &(struct verified){c, tensor});
}

uint64_t reshard(const struct checkpoint *from, struct checkpoint *to)
{
    uint64_t moved = 0;
    char *bytes = NULL; /* of the new pieces of a tensor, one behind another */
    size_t cap = 0;
    struct ranks_written w = open_ranks(to);
    for (size_t i = 0; i < to->pieces->n; i++) {
        struct kept_tensor *t = &to->pieces->tensor[i];
        struct loaded l = load_pieces(from, i, t);
        char *at = bytes = grow(bytes, &cap, (size_t)l.at[from->pieces->tensor[i].n], 1);
        for (size_t k = 0, n; k < t->n; k++, at += n) { /* tensors and pieces in the order of open_ranks() */
            n = ELEMENT_BYTES * piece_elements(&t->piece[k]);
            for (const struct copy *x = l.plan.copy; x < l.plan.copy + l.plan.n; x++)
                if (x->to == k)
                    memcpy(at + ELEMENT_BYTES * x->to_at, copied_bytes(&l, x), ELEMENT_BYTES * x->n);
            t->piece[k].hash = hash_bytes(at, n, 0);
            st_write(w.file[t->piece[k].rank], at, n);
            moved += n;
        }
        free(l.plan.copy), free(l.at);
    }
    publish_ranks(&w, to);
    free(bytes);
    return moved;
}

/* ---- two checkpoints -------------------------------------------------------------------------------------------- */

struct difference compare_floats(const float *a, const float *b, size_t n)
{
    struct difference d = {0};
    for (size_t i = 0; i < n; i++) {
        double gap = fabs((double)a[i] - (double)b[i]);
        d.elements += memcmp(&a[i], &b[i], sizeof *a) != 0;
        d.most = gap > d.most || isnan(gap) ? gap : d.most;
        d.distance += gap * gap;
        d.norm += (double)b[i] * b[i];
    }
    d.distance = sqrt(d.distance);
    d.norm = sqrt(d.norm);
    return d;
}

struct difference compare_tensor(const struct checkpoint *a, const struct checkpoint *b, size_t tensor)
{
    size_t n = tensor_elements(&a->pieces->tensor[tensor]);
    float *x = allocate(n, sizeof *x), *y = allocate(n, sizeof *y);
    read_kept(a, tensor, x);
    read_kept(b, tensor, y);
    struct difference d = compare_floats(x, y, n);
    free(x), free(y);
    return d;
}
