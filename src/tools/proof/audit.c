/* audit.c - checks what tasks declare (--serial --audit).
 *
 * A task runs alone, several times.  Each time it finds the same values in what it declares to read, and another
 * filling in all other memory of the devices that it touches.  Then:
 *
 *     what it declares to write differs between runs    it reads what it does not declare, or leaves some unwritten
 *     something else has changed                        it writes what it does not declare
 *
 * Three fillings, since no two will do.  NaN shows in every sum, even of products with 0.  But a branch may take it
 * like a number: `halted != 0` holds for NaN and for 0.01, `clip > 0` for neither NaN nor 0.  Integers may be indices,
 * so undeclared ones are 0 and 1 in turn, and the other way round in the next run.
 *
 * Partial tasks leave words unwritten.  These keep the first filling, a NaN that no arithmetic makes.  A task that
 * declares to read such a word finds each run's filling there too, and so must not depend on it.
 */
#include "proof.h"

enum { RUNS = 3 };
static const uint32_t float_filling[RUNS] = {0xFFFFA55A, 0, 0x3C23D70A};
static const char *const filling_name[RUNS] = {"NaN", "0", "0.01"};

/* One slab's words, four times, on the host.  The four arrays are one allocation, which begins with `kept`. */
struct image {
    struct device *device;
    int slab;
    size_t words;
    uint32_t *kept;                 /* what the list has computed so far */
    uint32_t *given;                /* what the task finds */
    uint32_t *first_run, *this_run; /* what the first run and this one leave */
};
struct audit {
    struct step *step;
    struct image *image;
    size_t n, cap;
    uint64_t begun; /* now_ns() then */
};

/* What a word is filled with in that run; `word` is its number, by which integers alternate. */
static uint32_t filling(int run, enum element element, size_t word)
{
    return element == INT32 ? ((uint32_t)run + (uint32_t)word) & 1 : float_filling[run];
}

/* The slab gets the words; read_slab() is the way back.  Both block. */
static void write_slab(const struct image *m, const uint32_t *words)
{
    const struct slab *slab = &m->device->slabs[m->slab];
    if (slab->buffer)
        write_buffer(m->device, slab->buffer, 0, words, slab->bytes);
    else
        memcpy(slab->host, words, slab->bytes);
}

static void read_slab(const struct image *m, uint32_t *words)
{
    const struct slab *slab = &m->device->slabs[m->slab];
    if (slab->buffer)
        CL(clEnqueueReadBuffer(m->device->lane[LANE_DOWNLOAD]->queue, slab->buffer, CL_TRUE, 0, slab->bytes, words, 0,
                               NULL, NULL));
    else
        memcpy(words, slab->host, slab->bytes);
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
            m->device = d;
            m->slab = (int)k;
            m->words = n;
            m->kept = allocate(4 * n, sizeof *m->kept);
            m->given = m->kept + n;
            m->first_run = m->kept + 2 * n;
            m->this_run = m->kept + 3 * n;
            read_slab(m, m->kept);
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

struct word_range { /* words of an image */
    size_t begin, end;
};

/* The words of m that access k of t covers in that iteration; none where the tensor lies elsewhere. */
static struct word_range covered_words(const struct image *m, const struct task *t, uint32_t number, int k)
{
    const struct tensor *x = tensor_at(t->access[k].tensor, number);
    size_t begin = (x->storage->address + x->offset) / ELEMENT_BYTES;
    if (x->device != m->device || x->storage->slab != m->slab)
        return (struct word_range){0, 0};
    return (struct word_range){begin, begin + count_elements(x)};
}

/* Does the task run on the device, or touch a tensor there? */
static bool uses_device(const struct task *t, const struct device *d)
{
    if (t->lane->device == d)
        return true;
    for (int k = 0; k < t->n_access; k++)
        if (t->access[k].tensor->device == d)
            return true;
    return false;
}

/* What the bytes of an access hold when the task begins: this run's filling everywhere, or, where the list has computed
 * something, that. */
enum contents { ONLY_FILLING, WHAT_WAS_COMPUTED };
static void fill_access(const struct image *m, const struct task *t, uint32_t number, int k, int run,
                        enum contents contents)
{
    struct word_range r = covered_words(m, t, number, k);
    enum element element = t->access[k].tensor->element;
    for (size_t w = r.begin; w < r.end; w++)
        if (contents == WHAT_WAS_COMPUTED && m->kept[w] != float_filling[0])
            m->given[w] = m->kept[w];
        else
            m->given[w] = filling(run, element, w);
}

/* Fills m->given.  What the task declares to read is filled in last, since accesses may overlap. */
static void fill_image(const struct image *m, const struct task *t, uint32_t number, int run)
{
    for (size_t w = 0; w < m->words; w++)
        m->given[w] = float_filling[run];
    for (int k = 0; k < t->n_access; k++)
        if (!(t->access[k].mode & ACCESS_READ))
            fill_access(m, t, number, k, run, ONLY_FILLING);
    for (int k = 0; k < t->n_access; k++)
        if (t->access[k].mode & ACCESS_READ)
            fill_access(m, t, number, k, run, WHAT_WAS_COMPUTED);
}

/* Copies what the task declares to write, of this slab, from `source` to `target`. */
static void copy_written(const struct image *m, const struct task *t, uint32_t number, uint32_t *target,
                         const uint32_t *source)
{
    for (int k = 0; k < t->n_access; k++) {
        struct word_range r = covered_words(m, t, number, k);
        if (t->access[k].mode & ACCESS_WRITE)
            memcpy(target + r.begin, source + r.begin, (r.end - r.begin) * sizeof *target);
    }
}

/* ---- what a run has left ----------------------------------------------------------------------------------------- */

/* The name of the tensor that has this byte of the slab. */
static const char *name_at(const struct step *s, const struct image *m, size_t at)
{
    const char *name = "no tensor";
    for (size_t i = 0; i < s->pool->n; i++) {
        const struct tensor *x = s->pool->tensors[i];
        if (x->storage != x || x->device != m->device || x->slab != m->slab)
            continue;
        if (at >= x->address && at < x->address + x->bytes && (x->persistent || x->step == s))
            name = x->name;
    }
    return name;
}

/* Has the task changed only what it declares to write?  Returns what is wrong, or NULL. */
static char *check_others(const struct step *s, const struct task *t, const struct image *m, uint32_t number,
                          const uint32_t *found)
{
    const unsigned char *before = (const void *)m->given, *after = (const void *)found;
    char position[64];
    size_t at = 0;
    copy_written(m, t, number, m->given, found);
    if (memcmp(before, after, m->words * sizeof *found) == 0)
        return NULL;
    while (before[at] == after[at])
        at++;
    return format_string("task %s%s wrote byte %zu of slab %d on %s (%s), which it does not declare to write", t->name,
                         layer_and_micro(position, t), at, m->slab, m->device->id, name_at(s, m, at));
}

/* Has access k, a write, left the same as in the first run?  Returns what is wrong, or NULL. */
static char *check_written(const struct task *t, const struct image *m, uint32_t number, int k, int run)
{
    const struct tensor *x = t->access[k].tensor;
    struct word_range r = covered_words(m, t, number, k);
    char position[64];
    for (size_t w = r.begin; w < r.end; w++) {
        bool unwritten = m->first_run[w] == filling(0, x->element, w) && m->this_run[w] == filling(run, x->element, w);
        if (m->this_run[w] != m->first_run[w] && !(t->partial && unwritten))
            return format_string("task %s%s leaves another element %zu of tensor %s where it finds %s in place of NaN: "
                                 "it reads something that it does not declare, or does not write all of the tensor",
                                 t->name, layer_and_micro(position, t), w - r.begin, x->name, filling_name[run]);
    }
    return NULL;
}

/* Fetches what the run has left of the slab, and checks it. */
static char *check_left(const struct step *s, const struct task *t, const struct image *m, uint32_t number, int run)
{
    uint32_t *found = run == 0 ? m->first_run : m->this_run;
    read_slab(m, found);
    char *wrong = check_others(s, t, m, number, found);
    for (int k = 0; k < t->n_access && run > 0 && !wrong; k++)
        if (t->access[k].mode & ACCESS_WRITE)
            wrong = check_written(t, m, number, k, run);
    return wrong;
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
            if (uses_device(t, m->device)) {
                fill_image(m, t, number, run);
                write_slab(m, m->given);
            }
        run_alone(a->step, number, i, flight);
        for (const struct image *m = a->image; m < end && !wrong; m++)
            if (uses_device(t, m->device))
                wrong = check_left(a->step, t, m, number, run);
    }
    for (const struct image *m = a->image; m < end; m++) {
        if (!wrong)
            copy_written(m, t, number, m->kept, m->first_run);
        if (uses_device(t, m->device))
            write_slab(m, m->kept); /* conditions of later tasks read memory: they must find what was computed */
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

const struct serial_runner audit_runner = {begin_iteration, run_audited, end_iteration};
