/* transfer.c - bytes along a plan: each piece is read, hashed and written from start to end, through windows.
 *
 * Bytes are hashed when they have just been read, while a core's cache has them, in blocks of a window.  Long runs of
 * one tensor are read to where they belong, without a window.
 *
 *     read_kept    the pieces of a file become one tensor in memory
 *     reshard      pieces of files become pieces of other files: no more than a window of each is in memory
 *     verify       a read that keeps nothing
 *     compare      two checkpoints, perhaps of unlike meshes, read along the plan from one to the other
 */
#include "snap.h"

#include <math.h>

enum { WINDOW = 1 << 18 }; /* bytes */

/* ---- a piece that is read --------------------------------------------------------------------------------------- */

struct source_piece {
    const struct piece *piece;
    uint64_t done, bytes; /* taken so far, and in all */
    char *window;         /* NULL: not begun, or at its end */
    size_t at, held;      /* in the window */
    struct hasher hash;
};
struct sources { /* the pieces of a tensor */
    const struct checkpoint *of;
    const struct kept_tensor *t;
    struct source_piece *piece;
    struct reader **file; /* by rank, opened on first use */
    uint64_t bytes;       /* read */
};

static struct sources open_sources(const struct checkpoint *c, size_t tensor)
{
    struct sources s = {.of = c, .t = &c->pieces->tensor[tensor]};
    s.piece = allocate(s.t->n, sizeof *s.piece);
    s.file = allocate((size_t)most_ranks(c->pieces), sizeof *s.file);
    for (size_t i = 0; i < s.t->n; i++) {
        s.piece[i].piece = &s.t->piece[i];
        s.piece[i].bytes = ELEMENT_BYTES * piece_elements(&s.t->piece[i]);
        hash_begin(&s.piece[i].hash, 0);
    }
    return s;
}

static void close_sources(struct sources *s)
{
    for (int r = 0; r < most_ranks(s->of->pieces); r++)
        if (s->file[r])
            close_reader(s->file[r]);
    for (size_t i = 0; i < s->t->n; i++)
        free(s->piece[i].window);
    free(s->file), free(s->piece);
}

static void check_hash(const struct sources *s, const struct source_piece *p)
{
    uint64_t hash = hash_end(&p->hash);
    if (hash != p->piece->hash)
        fail(EXIT_FAILED, "%s is damaged: tensor %s, %s, bytes %llu to %llu have hash %016llx, expected is %016llx; %s",
             rank_file(s->of, p->piece->rank), s->t->name, kept_name[s->t->role], (unsigned long long)p->piece->offset,
             (unsigned long long)(p->piece->offset + p->bytes), (unsigned long long)hash,
             (unsigned long long)p->piece->hash,
             s->of->snapshot ? "or a run writes there: read it once more, or copy it" : "take another checkpoint");
}

/* The piece's next n bytes of the file. */
static void fetch(struct sources *s, struct source_piece *p, void *into, size_t n)
{
    struct reader **file = &s->file[p->piece->rank];
    if (!*file) {
        char *path = rank_file(s->of, p->piece->rank);
        *file = open_reader(path);
        free(path);
    }
    read_at(*file, into, n, p->piece->offset + p->done);
    hash_add(&p->hash, into, n);
    p->done += n;
    s->bytes += n;
    if (p->done == p->bytes)
        check_hash(s, p);
}

/* The piece's next bytes, at most n: how many lie at *bytes, until the next call for this piece. */
static size_t take(struct sources *s, size_t piece, size_t n, const char **bytes)
{
    struct source_piece *p = &s->piece[piece];
    if (p->at == p->held) {
        p->window = p->window ? p->window : allocate((size_t)MIN(WINDOW, p->bytes), 1);
        p->held = (size_t)MIN(WINDOW, p->bytes - p->done);
        p->at = 0;
        fetch(s, p, p->window, p->held);
    }
    n = MIN(n, p->held - p->at);
    *bytes = p->window + p->at;
    p->at += n;
    return n;
}

/* The same to `into`; NULL: they are looked at only. */
static size_t take_into(struct sources *s, size_t piece, size_t n, char *into)
{
    const char *bytes;
    struct source_piece *p = &s->piece[piece];
    if (into && p->at == p->held && n >= WINDOW) {
        fetch(s, p, into, WINDOW);
        return WINDOW;
    }
    n = take(s, piece, n, &bytes);
    if (into)
        memcpy(into, bytes, n);
    return n;
}

/* ---- into memory ------------------------------------------------------------------------------------------------ */

struct walk { /* of attempt() */
    const struct checkpoint *c;
    size_t tensor;
    float *values; /* NULL: they are looked at only */
    uint64_t bytes;
};

static void walk_tensor(void *walk)
{
    struct walk *w = walk;
    struct sources s = open_sources(w->c, w->tensor);
    struct piece all = {.end = {s.t->shape[0], s.t->shape[1]}};
    struct kept_tensor whole = *s.t; /* in one piece */
    whole.n = 1;
    whole.piece = &all;
    struct copies plan = plan_copies(s.t, &whole, w->c->path);
    must(prove_copies(&plan));
    for (size_t i = 0; i < plan.n; i++) {
        size_t to = ELEMENT_BYTES * plan.copy[i].to_at;
        for (size_t left = ELEMENT_BYTES * plan.copy[i].n, n; left; left -= n, to += n)
            n = take_into(&s, plan.copy[i].from, left, w->values ? (char *)w->values + to : NULL);
    }
    w->bytes = s.bytes;
    free_copies(&plan);
    close_sources(&s);
}

void read_kept(const struct checkpoint *c, size_t tensor, float *values)
{
    walk_tensor(&(struct walk){c, tensor, values, 0});
}

struct problem *verify_tensor(const struct checkpoint *c, size_t tensor, uint64_t *bytes)
{
    struct walk w = {c, tensor, NULL, 0};
    struct problem *p = attempt(walk_tensor, &w);
    *bytes += w.bytes;
    return p;
}

/* ---- into other files ------------------------------------------------------------------------------------------- */

static void reshard_tensor(const struct checkpoint *from, struct checkpoint *to, size_t tensor,
                           struct st_writer *const *file, struct moved *moved)
{
    struct sources s = open_sources(from, tensor);
    struct kept_tensor *t = &to->pieces->tensor[tensor];
    struct copies plan = plan_copies(s.t, t, from->path);
    struct hasher *hash = allocate(t->n, sizeof *hash);
    must(prove_copies(&plan));
    for (size_t k = 0; k < t->n; k++)
        hash_begin(&hash[k], 0);
    for (size_t i = 0; i < plan.n; i++)
        for (size_t left = ELEMENT_BYTES * plan.copy[i].n, n; left; left -= n) {
            const char *bytes;
            n = take(&s, plan.copy[i].from, left, &bytes);
            hash_add(&hash[plan.copy[i].to], bytes, n);
            st_write(file[t->piece[plan.copy[i].to].rank], bytes, n);
            moved->written += n;
        }
    for (size_t k = 0; k < t->n; k++)
        t->piece[k].hash = hash_end(&hash[k]);
    moved->read += s.bytes;
    free(hash);
    free_copies(&plan);
    close_sources(&s);
}

struct moved reshard(const struct checkpoint *from, struct checkpoint *to)
{
    struct moved moved = {0};
    struct ranks_written w = open_ranks(to);
    for (size_t i = 0; i < to->pieces->n; i++)
        reshard_tensor(from, to, i, w.file, &moved);
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

/* Equal parts of both: windows and copies are whole elements. */
static void compare_copy(struct difference *d, struct sources *a, struct sources *b, const struct copy *c)
{
    const char *x, *y;
    for (size_t left = ELEMENT_BYTES * c->n, n; left; left -= n) {
        n = take(a, c->from, left, &x);
        for (size_t done = 0, m; done < n; done += m) {
            m = take(b, c->to, n - done, &y);
            compare_floats(d, (const float *)(const void *)(x + done), (const float *)(const void *)y,
                           m / ELEMENT_BYTES);
        }
    }
}

struct difference compare_tensor(const struct checkpoint *a, const struct checkpoint *b, size_t tensor)
{
    struct difference d = {0};
    struct sources x = open_sources(a, tensor), y = open_sources(b, tensor);
    struct copies plan = plan_copies(x.t, y.t, a->path);
    for (size_t i = 0; i < plan.n; i++)
        compare_copy(&d, &x, &y, &plan.copy[i]);
    d.distance = sqrt(d.distance);
    d.norm = sqrt(d.norm);
    free_copies(&plan);
    close_sources(&x), close_sources(&y);
    return d;
}
