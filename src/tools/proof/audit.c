/* audit.c - checks what tasks declare (--serial --audit).
 *
 * A task runs alone, several times.  Each time it finds the same in what it declares to read, and another filling in
 * all other memory of the devices that it touches.  What gives it away:
 *
 *     its declared writes are not the same each time    it reads what it does not declare, or leaves some unwritten
 *     something else is not as it was                   it writes what it does not declare
 *
 * Three fillings, since no two will do.  NaN shows in every sum, even of products with 0.  But a branch may take it
 * like a number: `halted != 0` holds for NaN and for 0.01, `clip > 0` for neither NaN nor 0.  Integers may be indices,
 * so undeclared ones are 0 and 1 in turn, and the other way round in the next run.
 *
 * Partial tasks leave words unwritten.  These keep the first filling, a NaN that no arithmetic makes.  Whoever declares
 * to read such a word finds each run's filling there too, and so must not depend on it.
 */
#include "proof.h"

enum { RUNS = 3 };
static const uint32_t float_filling[RUNS] = {0xFFFFA55A, 0, 0x3C23D70A};
static const char *const filling_name[RUNS] = {"NaN", "0", "0.01"};

struct image { /* of one slab, on the host */
    struct device *device;
    int slab;
    size_t words;
    uint32_t *kept;         /* what the list has computed so far; the other three lie behind it */
    uint32_t *given;        /* what the task finds */
    uint32_t *first, *left; /* what the first run and this one leave */
};
struct audit {
    struct step *step;
    struct image *image;
    size_t n, cap;
    uint64_t begun;
};

static uint32_t filling(int run, enum element element, size_t word)
{
    return element == INT32 ? ((uint32_t)run + (uint32_t)word) & 1 : float_filling[run];
}

static void transfer(const struct image *m, uint32_t *words, bool to_slab)
{
    const struct slab *slab = &m->device->slabs[m->slab];
    if (!slab->buffer)
        memcpy(to_slab ? slab->host : words, to_slab ? words : slab->host, slab->bytes);
    else if (to_slab)
        write_buffer(m->device, slab->buffer, 0, words, slab->bytes);
    else
        CL(clEnqueueReadBuffer(m->device->lane[LANE_DOWNLOAD]->queue, slab->buffer, CL_TRUE, 0, slab->bytes, words, 0,
                               NULL, NULL));
}

struct audit *open_audit(struct step *s)
{
    struct audit *a = allocate(1, sizeof *a);
    struct machine *machine = s->pool->machine;
    a->step = s;
    a->begun = now_ns();
    for (struct device *d = machine->device; d <= machine->host; d++)
        for (size_t k = 0; k < d->n_slabs; k++) {
            struct image *m = APPEND(a->image, a->n, a->cap);
            size_t n = d->slabs[k].bytes / ELEMENT_BYTES;
            uint32_t *words = allocate(4 * n, sizeof *words);
            *m = (struct image){d, (int)k, n, words, words + n, words + 2 * n, words + 3 * n};
            transfer(m, m->kept, false);
        }
    return a;
}

void close_audit(struct audit *a)
{
    for (size_t i = 0; i < a->n; i++)
        free(a->image[i].kept);
    free(a->image);
    free(a);
    erase_line();
}

/* ---- a run ------------------------------------------------------------------------------------------------------ */

struct range { /* words of an image */
    size_t begin, end;
};

/* What access k of t covers of m in that iteration: nothing where it lies elsewhere. */
static struct range covered(const struct image *m, const struct task *t, uint32_t number, int k)
{
    const struct tensor *x = tensor_at(t->access[k].tensor, number);
    size_t begin = (x->storage->address + x->offset) / ELEMENT_BYTES;
    if (x->device != m->device || x->storage->slab != m->slab)
        return (struct range){0, 0};
    return (struct range){begin, begin + count_elements(x)};
}

static bool touches(const struct task *t, const struct device *d)
{
    bool yes = t->lane->device == d;
    for (int k = 0; k < t->n_access; k++)
        yes |= t->access[k].tensor->device == d;
    return yes;
}

static void fill(const struct image *m, const struct task *t, uint32_t number, int run)
{
    for (size_t w = 0; w < m->words; w++)
        m->given[w] = float_filling[run];
    for (unsigned reads = 0; reads <= ACCESS_READ; reads++) /* last, since accesses may overlap */
        for (int k = 0; k < t->n_access; k++) {
            struct range r = covered(m, t, number, k);
            for (size_t w = r.begin; (t->access[k].mode & ACCESS_READ) == reads && w < r.end; w++) {
                bool written = m->kept[w] != float_filling[0];
                m->given[w] = reads && written ? m->kept[w] : filling(run, t->access[k].tensor->element, w);
            }
        }
}

static void copy_written(const struct image *m, const struct task *t, uint32_t number, uint32_t *to,
                         const uint32_t *from)
{
    for (int k = 0; k < t->n_access; k++) {
        struct range r = covered(m, t, number, k);
        if (t->access[k].mode & ACCESS_WRITE)
            memcpy(to + r.begin, from + r.begin, (r.end - r.begin) * sizeof *to);
    }
}

/* ---- what it left ----------------------------------------------------------------------------------------------- */

/* Is all as it was given, but for what the task declares to write? */
static char *check_others(const struct step *s, const struct task *t, const struct image *m, uint32_t number,
                          const uint32_t *left)
{
    const unsigned char *before = (const void *)m->given, *after = (const void *)left;
    const char *name = "no tensor";
    size_t at = 0;
    copy_written(m, t, number, m->given, left);
    if (memcmp(before, after, m->words * sizeof *left) == 0)
        return NULL;
    while (before[at] == after[at])
        at++;
    for (size_t i = 0; i < s->pool->n; i++) {
        const struct tensor *x = s->pool->tensors[i];
        if (x->storage == x && x->device == m->device && x->slab == m->slab && at >= x->address &&
            at < x->address + x->bytes && (x->persistent || x->step == s))
            name = x->name;
    }
    return format_string("task %s%s wrote byte %zu of slab %d on %s (%s), which it does not declare to write", t->name,
                         layer_and_micro((char[64]){0}, t), at, m->slab, m->device->id, name);
}

static char *check_written(const struct task *t, const struct image *m, uint32_t number, int k, int run)
{
    const struct tensor *x = t->access[k].tensor;
    struct range r = covered(m, t, number, k);
    for (size_t w = r.begin; (t->access[k].mode & ACCESS_WRITE) && w < r.end; w++) {
        bool unwritten = m->first[w] == filling(0, x->element, w) && m->left[w] == filling(run, x->element, w);
        if (m->left[w] != m->first[w] && !(t->partial && unwritten))
            return format_string("task %s%s leaves another element %zu of tensor %s where it finds %s in place of NaN: "
                                 "it reads something that it does not declare, or does not write all of the tensor",
                                 t->name, layer_and_micro((char[64]){0}, t), w - r.begin, x->name, filling_name[run]);
    }
    return NULL;
}

/* ---- a task ----------------------------------------------------------------------------------------------------- */

char *audit_task(struct audit *a, uint32_t number, size_t i, struct task_flight *flight)
{
    const struct task *t = a->step->task[i];
    const struct image *end = a->image + a->n;
    char *wrong = NULL;
    show_busy("auditing this step", a->begun, (double)i / (double)a->step->n);
    for (int run = 0; run < RUNS && !wrong; run++) {
        for (const struct image *m = a->image; m < end; m++)
            if (touches(t, m->device)) {
                fill(m, t, number, run);
                transfer(m, m->given, true);
            }
        run_alone(a->step, number, i, flight);
        for (const struct image *m = a->image; m < end && !wrong; m++) {
            uint32_t *left = run ? m->left : m->first;
            if (!touches(t, m->device))
                continue;
            transfer(m, left, false);
            wrong = check_others(a->step, t, m, number, left);
            for (int k = 0; run && k < t->n_access && !wrong; k++)
                wrong = check_written(t, m, number, k, run);
        }
    }
    for (const struct image *m = a->image; m < end; m++) {
        if (!wrong)
            copy_written(m, t, number, m->kept, m->first);
        if (touches(t, m->device))
            transfer(m, m->kept, true); /* whether the next task goes ahead may depend on it */
    }
    return wrong;
}

/* ---- a serial run ----------------------------------------------------------------------------------------------- */

static void *begin_iteration(struct step *s) { return open_audit(s); }

static void run_audited(void *audit, uint32_t number, size_t i, struct task_flight *flight)
{
    char *wrong = audit_task(audit, number, i, flight);
    if (wrong)
        fail(EXIT_FAILED, "audit: %s", wrong);
}

static void end_iteration(void *audit) { close_audit(audit); }

const struct lone_runner audit_runner = {begin_iteration, run_audited, end_iteration};
