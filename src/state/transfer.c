/* transfer.c - bytes along a plan, a tensor at a time: its pieces are read, hashed, and copied as the plan says.
 *
 *     read_kept    the pieces of a file become one tensor in memory
 *     reshard      they become the pieces of other files
 *     verify       a read that keeps nothing
 *     compare      two checkpoints, perhaps of unlike meshes, along the plan from one to the other
 */
#include "snap.h"

#include <math.h>

enum { CHUNK = 1 << 18 }; /* bytes: read, and hashed while a core's cache has them */

/* ---- a tensor's pieces in memory --------------------------------------------------------------------------------- */

struct loaded {
    char *bytes;  /* the checkpoint's room, until its next tensor is loaded */
    uint64_t *at; /* [pieces + 1] where each begins there, and the end */
};

static void load_piece(const struct checkpoint *c, const struct kept_tensor *t, const struct piece *p,
                       struct reader *file, char *into)
{
    struct hasher hasher;
    size_t bytes = ELEMENT_BYTES * piece_elements(p);
    hash_begin(&hasher, 0);
    for (size_t done = 0, n; done < bytes; done += n) {
        n = MIN(CHUNK, bytes - done);
        read_at(file, into + done, n, p->offset + done);
        hash_add(&hasher, into + done, n);
    }
    uint64_t hash = hash_end(&hasher);
    if (hash != p->hash)
        fail(EXIT_FAILED, "%s is damaged: tensor %s, %s, bytes %llu to %llu have hash %016llx, expected is %016llx; %s",
             file->path, t->name, kept_name[t->role], (unsigned long long)p->offset,
             (unsigned long long)(p->offset + bytes), (unsigned long long)hash, (unsigned long long)p->hash,
             c->snapshot ? "or a run writes there: read it once more, or copy it" : "take another checkpoint");
}

/* To be called with a plan at hand: then the pieces are no more bytes than the tensor. */
static struct loaded load_pieces(const struct checkpoint *c, const struct kept_tensor *t)
{
    struct loaded l = {.at = allocate(t->n + 1, sizeof *l.at)};
    struct reader *file = NULL;
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
        load_piece(c, t, &t->piece[k], file, l.bytes + l.at[k]);
    }
    close_reader(file);
    return l;
}

/* ---- into memory, and into other files --------------------------------------------------------------------------- */

void read_kept(const struct checkpoint *c, size_t tensor, float *values)
{
    struct kept_tensor *t = &c->pieces->tensor[tensor], whole = *t;
    whole.n = 1;
    whole.piece = &(struct piece){.end = {t->shape[0], t->shape[1]}};
    struct copies plan = plan_copies(t, &whole, c->path);
    must(prove_copies(&plan));
    struct loaded l = load_pieces(c, t);
    for (const struct copy *x = plan.copy; values && x < plan.copy + plan.n; x++)
        memcpy(values + x->to_at, l.bytes + l.at[x->from] + ELEMENT_BYTES * x->from_at, ELEMENT_BYTES * x->n);
    free_copies(&plan);
    free(l.at);
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
    struct ranks_written w = open_ranks(to);
    for (size_t i = 0; i < to->pieces->n; i++) {
        struct kept_tensor *t = &to->pieces->tensor[i];
        struct copies plan = plan_copies(&from->pieces->tensor[i], t, from->path);
        struct hasher *hash = allocate(t->n, sizeof *hash);
        must(prove_copies(&plan));
        struct loaded l = load_pieces(from, plan.from);
        for (size_t k = 0; k < t->n; k++)
            hash_begin(&hash[k], 0);
        for (const struct copy *x = plan.copy; x < plan.copy + plan.n; x++) {
            const char *bytes = l.bytes + l.at[x->from] + ELEMENT_BYTES * x->from_at;
            hash_add(&hash[x->to], bytes, ELEMENT_BYTES * x->n);
            st_write(w.file[t->piece[x->to].rank], bytes, ELEMENT_BYTES * x->n);
            moved += ELEMENT_BYTES * x->n;
        }
        for (size_t k = 0; k < t->n; k++)
            t->piece[k].hash = hash_end(&hash[k]);
        free(hash), free(l.at);
        free_copies(&plan);
    }
    publish_ranks(&w, to);
    return moved;
}

/* ---- two checkpoints -------------------------------------------------------------------------------------------- */

static void compare_floats(struct difference *d, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double gap = fabs((double)a[i] - (double)b[i]);
        d->elements += memcmp(&a[i], &b[i], sizeof *a) != 0;
        d->most = gap > d->most || isnan(gap) ? gap : d->most;
        d->distance += gap * gap;
        d->norm += (double)b[i] * b[i];
    }
}

struct difference compare_tensor(const struct checkpoint *a, const struct checkpoint *b, size_t tensor)
{
    struct difference d = {0};
    struct copies plan = plan_copies(&a->pieces->tensor[tensor], &b->pieces->tensor[tensor], a->path);
    struct loaded x = load_pieces(a, plan.from), y = load_pieces(b, plan.to);
    for (const struct copy *p = plan.copy; p < plan.copy + plan.n; p++)
        compare_floats(&d, (const float *)(const void *)(x.bytes + x.at[p->from]) + p->from_at,
                       (const float *)(const void *)(y.bytes + y.at[p->to]) + p->to_at, p->n);
    d.distance = sqrt(d.distance);
    d.norm = sqrt(d.norm);
    free_copies(&plan);
    free(x.at), free(y.at);
    return d;
}
