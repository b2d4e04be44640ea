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
#include "trainer/run/run.h"

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
    struct list *list;
    struct image *images;
    size_t n, cap;
    uint64_t begun; /* now_ns() when open_audit() was called */
};

/* The filling of a word in that run; `word` is its number, by which integers alternate. */
static uint32_t filling(int run, enum element_type type, size_t word)
{
    return type == INT32 ? ((uint32_t)run + (uint32_t)word) & 1 : float_filling[run];
}

/* The slab gets the words; read_slab() is the way back.  Both block. */
static void write_slab(const struct image *image, const uint32_t *words)
{
    const struct slab *slab = &image->device->slabs[image->slab];
    if (slab->buffer)
        write_buffer(image->device, slab->buffer, 0, words, slab->bytes);
    else
        memcpy(slab->host, words, slab->bytes);
}

static void read_slab(const struct image *image, uint32_t *words)
{
    const struct slab *slab = &image->device->slabs[image->slab];
    if (slab->buffer)
        read_buffer(image->device, slab->buffer, 0, words, slab->bytes);
    else
        memcpy(words, slab->host, slab->bytes);
}

/* Adds an image of a slab of the device, with the bytes that the slab has now. */
static void add_image(struct audit *audit, struct device *device, int slab)
{
    size_t n = device->slabs[slab].bytes / ELEMENT_BYTES;
    GROW(audit->images, audit->cap, audit->n + 1);
    struct image *image = &audit->images[audit->n++];
    image->device = device;
    image->slab = slab;
    image->words = n;
    image->kept = allocate(4 * n, sizeof *image->kept);
    image->given = image->kept + n;
    image->first_run = image->kept + 2 * n;
    image->this_run = image->kept + 3 * n;
    read_slab(image, image->kept);
}

struct audit *open_audit(struct list *list)
{
    struct audit *audit = allocate(1, sizeof *audit);
    struct machine *machine = list->pool->machine;
    audit->list = list;
    audit->begun = now_ns();
    for (int i = 0; i <= machine->n_devices; i++)
        for (size_t k = 0; k < machine->devices[i].n_slabs; k++)
            add_image(audit, &machine->devices[i], (int)k);
    return audit;
}

void close_audit(struct audit *audit)
{
    for (size_t i = 0; i < audit->n; i++)
        free(audit->images[i].kept);
    free(audit->images);
    free(audit);
    erase_line();
}

/* ---- a run ------------------------------------------------------------------------------------------------------- */

/* The words of the image that access k of the task covers in that iteration; none where the tensor lies elsewhere. */
static struct range covered_words(const struct image *image, const struct task *task, uint32_t iteration, int k)
{
    const struct tensor *tensor = tensor_at(task->accesses[k].tensor, iteration);
    size_t begin = (tensor->storage->address + tensor->offset) / ELEMENT_BYTES;
    if (tensor->device != image->device || tensor->storage->slab != image->slab)
        return (struct range){0, 0};
    return (struct range){begin, begin + count_elements(tensor)};
}

/* Does the task run on the device, or touch a tensor there? */
static bool uses_device(const struct task *task, const struct device *device)
{
    if (task->lane->device == device)
        return true;
    for (int k = 0; k < task->n_accesses; k++)
        if (task->accesses[k].tensor->device == device)
            return true;
    return false;
}

/* What the bytes of an access hold when the task begins: this run's filling everywhere, or, where the list has computed
 * something, that. */
enum contents { ONLY_FILLING, WHAT_WAS_COMPUTED };

/* Writes to image->given what an access to elements of that type holds in these words. */
static void fill_words(const struct image *image, struct range range, enum element_type type, int run,
                       enum contents contents)
{
    for (size_t word = range.begin; word < range.end; word++)
        if (contents == WHAT_WAS_COMPUTED && image->kept[word] != float_filling[0])
            image->given[word] = image->kept[word];
        else
            image->given[word] = filling(run, type, word);
}

/* Fills image->given.  What the task declares to read is filled in last, since accesses may overlap. */
static void fill_image(const struct image *image, const struct task *task, uint32_t iteration, int run)
{
    for (size_t word = 0; word < image->words; word++)
        image->given[word] = float_filling[run];
    for (int k = 0; k < task->n_accesses; k++) {
        const struct access *access = &task->accesses[k];
        if (!(access->mode & ACCESS_READ))
            fill_words(image, covered_words(image, task, iteration, k), access->tensor->type, run, ONLY_FILLING);
    }
    for (int k = 0; k < task->n_accesses; k++) {
        const struct access *access = &task->accesses[k];
        if (access->mode & ACCESS_READ)
            fill_words(image, covered_words(image, task, iteration, k), access->tensor->type, run, WHAT_WAS_COMPUTED);
    }
}

/* Copies what the task declares to write, of this slab, from `source` to `target`. */
static void take_written(const struct image *image, const struct task *task, uint32_t iteration, uint32_t *target,
                         const uint32_t *source)
{
    for (int k = 0; k < task->n_accesses; k++) {
        struct range range = covered_words(image, task, iteration, k);
        if (task->accesses[k].mode & ACCESS_WRITE)
            memcpy(target + range.begin, source + range.begin, (range.end - range.begin) * sizeof *target);
    }
}

/* ---- what a run has left ----------------------------------------------------------------------------------------- */

/* The name of the tensor that has this byte of the slab. */
static const char *name_at(const struct list *list, const struct image *image, size_t at)
{
    const char *name = "no tensor";
    for (size_t i = 0; i < list->pool->n; i++) {
        const struct tensor *tensor = list->pool->tensors[i];
        if (tensor->storage != tensor || tensor->device != image->device || tensor->slab != image->slab)
            continue;
        if (at >= tensor->address && at < tensor->address + tensor->bytes &&
            (tensor->persistent || tensor->list == list))
            name = tensor->name;
    }
    return name;
}

/* NULL: the task has changed only what it declares to write. */
static struct problem *others_problem(const struct list *list, const struct task *task, const struct image *image,
                                      uint32_t iteration, const uint32_t *found)
{
    const unsigned char *before = (const void *)image->given, *after = (const void *)found;
    char position[LAYER_AND_MICRO];
    size_t at = 0;
    take_written(image, task, iteration, image->given, found);
    if (memcmp(before, after, image->words * sizeof *found) == 0)
        return NULL;
    while (before[at] == after[at])
        at++;
    return new_problem(EXIT_FAILED,
                       "task %s%s wrote byte %zu of slab %d on %s (%s), which it does not declare to write", task->name,
                       layer_and_micro(position, task), at, image->slab, image->device->id, name_at(list, image, at));
}

/* NULL: access k, a write, has left the same as in the first run. */
static struct problem *written_problem(const struct task *task, const struct image *image, uint32_t iteration, int k,
                                       int run)
{
    const struct tensor *tensor = task->accesses[k].tensor;
    struct range range = covered_words(image, task, iteration, k);
    char position[LAYER_AND_MICRO];
    for (size_t word = range.begin; word < range.end; word++) {
        bool unwritten = image->first_run[word] == filling(0, tensor->type, word) &&
                         image->this_run[word] == filling(run, tensor->type, word);
        if (image->this_run[word] != image->first_run[word] && !(task->extra.partial && unwritten))
            return new_problem(EXIT_FAILED,
                               "task %s%s changes element %zu of tensor %s when the memory that it does not declare "
                               "to read holds %s instead of NaN: it reads something that it does not declare, or does "
                               "not write all of the tensor",
                               task->name, layer_and_micro(position, task), word - range.begin, tensor->name,
                               filling_name[run]);
    }
    return NULL;
}

/* Fetches what the run has left of the slab.  NULL: this is as the task declares. */
static struct problem *left_problem(const struct list *list, const struct task *task, const struct image *image,
                                    uint32_t iteration, int run)
{
    uint32_t *found = run == 0 ? image->first_run : image->this_run;
    read_slab(image, found);
    struct problem *problem = others_problem(list, task, image, iteration, found);
    if (run == 0)
        return problem;
    for (int k = 0; k < task->n_accesses && !problem; k++)
        if (task->accesses[k].mode & ACCESS_WRITE)
            problem = written_problem(task, image, iteration, k, run);
    return problem;
}

/* ---- a task ------------------------------------------------------------------------------------------------------ */

struct problem *audit_task(struct audit *audit, const struct task *task, uint32_t iteration, struct task_flight *flight)
{
    const struct image *end = audit->images + audit->n;
    struct problem *problem = NULL;
    show_busy("auditing this step", audit->begun, (double)task->index / (double)audit->list->n);
    for (int run = 0; run < RUNS && !problem; run++) {
        for (const struct image *image = audit->images; image < end; image++)
            if (uses_device(task, image->device)) {
                fill_image(image, task, iteration, run);
                write_slab(image, image->given);
            }
        run_alone(audit->list, task, iteration, flight);
        for (const struct image *image = audit->images; image < end && !problem; image++)
            if (uses_device(task, image->device))
                problem = left_problem(audit->list, task, image, iteration, run);
    }
    /* The memory gets its contents back too: conditions of later tasks read it, and must find what was computed. */
    for (const struct image *image = audit->images; image < end; image++) {
        if (!problem)
            take_written(image, task, iteration, image->kept, image->first_run);
        if (uses_device(task, image->device))
            write_slab(image, image->kept);
    }
    return problem;
}

/* ---- a serial run ------------------------------------------------------------------------------------------------ */

static void *begin_audited(struct list *list) { return open_audit(list); }

static void run_audited(void *audit, const struct task *task, uint32_t iteration, struct task_flight *flight)
{
    struct problem *problem = audit_task(audit, task, iteration, flight);
    if (problem)
        fail(EXIT_FAILED, "audit: %s", problem->sentence);
}

static void end_iteration(void *audit) { close_audit(audit); }

const struct serial_runner audit_runner = {begin_audited, run_audited, end_iteration};
