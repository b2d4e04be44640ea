/* audit.c - checks what tasks declare (--serial --audit).
 *
 * Before a task, all memory of all arenas is copied aside and filled with NaN, but for the bytes that the task declares
 * to read.  It then runs alone.  What it writes outside its declared writes shows as bytes that are no longer the fill
 * (or no longer what was declared read); what it reads undeclared is NaN and shows in what it writes.  Everything it
 * did not declare to write is then put back.  The fill is all one bits: a NaN as a float, -1 as an integer.
 */
#include "schedule.h"

#include <stdlib.h>
#include <string.h>

enum { FILL = 0xFF };
struct image { /* the bytes of one slab, on the host */
    unsigned char *bytes;
    size_t n;
};

static void transfer(struct device *d, const struct slab *slab, unsigned char *host, bool to_slab)
{
    if (!slab->buffer)
        memcpy(to_slab ? slab->host : host, to_slab ? host : slab->host, slab->bytes);
    else if (to_slab)
        write_buffer(d, slab->buffer, host, slab->bytes);
    else
        CL(clEnqueueReadBuffer(d->lane[LANE_DOWNLOAD]->queue, slab->buffer, CL_TRUE, 0, slab->bytes, host, 0, NULL,
                               NULL));
}

/* Copy the bytes that t declares in `mode` on slab k of d. */
static void copy_declared(const struct task *t, const struct device *d, int k, enum access_mode mode, unsigned char *to,
                          const unsigned char *from)
{
    for (int i = 0; i < t->n_access; i++) {
        const struct tensor *x = t->access[i].tensor;
        if ((t->access[i].mode & mode) && x->device == d && x->root->slab == k)
            memcpy(to + x->root->address + x->offset, from + x->root->address + x->offset, x->bytes);
    }
}

static _Noreturn void fail_write(const struct step *s, const struct task *t, const struct device *d, int slab,
                                 size_t at)
{
    const char *name = "no tensor";
    for (size_t i = 0; i < s->pool->n; i++) {
        const struct tensor *x = s->pool->tensors[i];
        if (x->root == x && x->device == d && x->slab == slab && at >= x->address && at < x->address + x->bytes &&
            (x->persistent || x->step == s))
            name = x->name;
    }
    fail(EXIT_FAILED,
         "audit: task %s (layer %d) wrote byte %zu of slab %d on %s (%s), which it does not declare to write", t->name,
         t->layer, at, slab, d->id, name);
}

/* `after` against `before` outside the declared writes. */
static void check_writes(const struct step *s, const struct task *t, struct device *d, int k,
                         const struct image *before, const unsigned char *after)
{
    unsigned char *expected = allocate(before->n, 1);
    memcpy(expected, before->bytes, before->n);
    copy_declared(t, d, k, ACCESS_WRITE, expected, after);
    for (size_t at = 0; at < before->n; at++)
        if (expected[at] != after[at])
            fail_write(s, t, d, k, at);
    free(expected);
}

static void check_values(const struct task *t, const struct tensor *x, const unsigned char *slab)
{
    const uint32_t *word = (const uint32_t *)(const void *)(slab + x->root->address + x->offset);
    for (size_t i = 0; i < count_elements(x); i++) {
        bool nan = x->element == FLOAT32 ? (word[i] & 0x7FFFFFFF) > 0x7F800000 : word[i] == UINT32_MAX;
        if (nan)
            fail(EXIT_FAILED,
                 "audit: task %s (layer %d) left NaN in element %zu of tensor %s: it reads something that it "
                 "does not declare, or does not write all of the tensor",
                 t->name, t->layer, i, x->name);
    }
}

static size_t total_slabs(const struct machine *m)
{
    size_t n = 0;
    for (int d = 0; d <= m->n_devices; d++)
        n += m->device[d].n_slabs;
    return n;
}

/* Fill every slab but for the declared reads; what was there goes to `saved`, what is there now to `filled`. */
static void isolate(struct machine *m, const struct task *t, struct image *saved, struct image *filled)
{
    size_t at = 0;
    for (int i = 0; i <= m->n_devices; i++)
        for (size_t k = 0; k < m->device[i].n_slabs; k++, at++) {
            struct device *d = &m->device[i];
            size_t n = d->slabs[k].bytes;
            saved[at] = (struct image){allocate(n, 1), n};
            filled[at] = (struct image){allocate(n, 1), n};
            transfer(d, &d->slabs[k], saved[at].bytes, false);
            memset(filled[at].bytes, FILL, n);
            copy_declared(t, d, (int)k, ACCESS_READ, filled[at].bytes, saved[at].bytes);
            transfer(d, &d->slabs[k], filled[at].bytes, true);
        }
}

static void inspect_and_restore(struct step *s, const struct task *t, struct image *saved, struct image *filled)
{
    struct machine *m = s->pool->machine;
    size_t at = 0;
    for (int i = 0; i <= m->n_devices; i++)
        for (size_t k = 0; k < m->device[i].n_slabs; k++, at++) {
            struct device *d = &m->device[i];
            unsigned char *after = allocate(saved[at].n, 1);
            transfer(d, &d->slabs[k], after, false);
            check_writes(s, t, d, (int)k, &filled[at], after);
            for (int j = 0; j < t->n_access; j++)
                if ((t->access[j].mode & ACCESS_WRITE) && !t->partial && t->access[j].tensor->device == d &&
                    t->access[j].tensor->root->slab == (int)k)
                    check_values(t, t->access[j].tensor, after);
            copy_declared(t, d, (int)k, ACCESS_WRITE, saved[at].bytes, after);
            transfer(d, &d->slabs[k], saved[at].bytes, true);
            free(after);
            free(saved[at].bytes);
            free(filled[at].bytes);
        }
}

void audit_task(struct step *s, uint32_t number, size_t i)
{
    size_t n = total_slabs(s->pool->machine);
    struct image *saved = allocate(n, sizeof *saved), *filled = allocate(n, sizeof *filled);
    isolate(s->pool->machine, &s->tasks[i], saved, filled);
    run_alone(s, number, i);
    inspect_and_restore(s, &s->tasks[i], saved, filled);
    free(saved);
    free(filled);
}
