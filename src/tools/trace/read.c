/* read.c - a trace's header and tables, checked; and freeing a trace.
 *
 * Another process owns the file: it may be cut short, made up, or written to at this moment.  It is read, never mapped
 * (a mapped file that shrinks kills its reader), each part is checked before anything is derived from it, and callers
 * get a copy.
 */
#include "follow.h"

#include <inttypes.h>
#include <math.h>

#include "trainer/file/file.h"

#define PART(name)                                                                                                     \
    {                                                                                                                  \
        offsetof(struct trace_header, name##_at), offsetof(struct trace_header, n_##name),                             \
            offsetof(struct trace, name), sizeof *((struct trace *)0)->name                                            \
    }
const struct trace_part trace_parts[TRACE_PARTS] = {PART(devices), PART(lanes),   PART(tasks),
                                                    PART(edges),   PART(tensors), PART(uses)};

/* ---- checks ---------------------------------------------------------------------------------------------------- */

/* Fails unless `good`.  The sentence names an entry of a table, "lane 3", or a number of the header, "kind 7": `what`
 * is the noun, i the number. */
static void expect(bool good, const char *path, const char *what, size_t i)
{
    if (!good)
        fail(EXIT_FAILED, DAMAGED "its %s %zu is impossible; record it again", path, what, i);
}

/* Ends the text within its field, and keeps it from controlling the terminal or breaking JSON. */
static void clean_text(const char *path, const char *what, size_t i, char *text, size_t size)
{
    expect(memchr(text, '\0', size), path, what, i);
    make_printable(text, ONE_LINE);
    for (char *c = text; *c; c++)
        if (*c == '\t')
            *c = '?';
}

static bool is_amount(double x) { return isfinite(x) && x >= 0; }

/* Is it a trace, and of this version? */
static void expect_trace_header(const struct reader *file, const struct trace_header *h)
{
    const char *path = file->path;
    if (memcmp(h->magic, TRACE_MAGIC, sizeof h->magic) != 0)
        fail(EXIT_FAILED,
             "%s is not a trace: it does not start with \"%s\"; yard train --trace FILE writes one, and lists "
             "that yard view shows end in .txt or .csv",
             path, TRACE_MAGIC);
    if (file->size >= offsetof(struct trace_header, kind) && h->version != TRACE_VERSION)
        fail(EXIT_FAILED, "the trace %s has version %" PRIu32 ", this yard reads version %d; record it again", path,
             h->version, TRACE_VERSION);
    if (file->size < sizeof *h)
        fail(EXIT_FAILED, DAMAGED "it has %" PRIu64 " bytes, its header alone takes %zu; record it again", path,
             file->size, sizeof *h);
}

/* Do n entries of `size` bytes lie within the file?  No sum or product here can wrap. */
static void check_part(const struct reader *file, size_t part, uint64_t at, uint64_t n, size_t size)
{
    expect(at % 64 == 0 && at >= sizeof(struct trace_header) && at <= file->size, file->path, "part", part);
    expect(n <= (file->size - at) / size, file->path, "part", part);
}

/* Is the header one of this version?  Then: do its numbers make sense, and do its parts lie in the file? */
static void check_header(struct reader *file, struct trace_header *h)
{
    const char *path = file->path;
    expect_trace_header(file, h);
    expect(h->kind <= TRACE_SIMULATED, path, "kind", h->kind);
    expect(h->n_lists <= TRACE_LISTS, path, "number of task lists", h->n_lists);
    expect(h->n_roles <= TRACE_ROLES, path, "number of roles", h->n_roles);
    expect(h->n_classes <= TRACE_CLASSES, path, "number of classes of memory", h->n_classes);
    expect(h->n_lanes <= TRACE_MAX_LANES, path, "number of lanes", h->n_lanes);
    expect(h->n_devices <= TRACE_MAX_LANES, path, "number of devices", h->n_devices);
    expect(h->capacity > 0 && h->capacity <= UINT32_MAX, path, "number of records", h->capacity);
    expect(h->pace_scale >= 1e-9 && h->pace_scale <= 1e9, path, "pace", 0);
    for (size_t i = 0; i < TRACE_PARTS; i++) {
        const struct trace_part *p = &trace_parts[i];
        check_part(file, i, *PART_OF(uint64_t, h, p->at), *PART_OF(uint32_t, h, p->n), p->size);
    }
    check_part(file, TRACE_PARTS, h->records_at, MIN(h->head, h->capacity), sizeof(struct trace_record));
    clean_text(path, "model", 0, h->model, sizeof h->model);
    for (size_t i = 0; i < h->n_lists; i++)
        clean_text(path, "task list", i, h->list[i], sizeof h->list[i]);
    for (size_t i = 0; i < h->n_roles; i++)
        clean_text(path, "role", i, h->role[i], sizeof h->role[i]);
    for (size_t i = 0; i < h->n_classes; i++)
        clean_text(path, "class of memory", i, h->memory[i], sizeof h->memory[i]);
}

static void check_lanes(const char *path, const struct trace *t)
{
    const struct trace_header *h = &t->header;
    for (size_t i = 0; i < h->n_devices; i++) {
        clean_text(path, "device", i, t->devices[i].id, sizeof t->devices[i].id);
        clean_text(path, "device", i, t->devices[i].name, sizeof t->devices[i].name);
    }
    for (size_t i = 0; i < h->n_lanes; i++) {
        struct trace_lane *l = &t->lanes[i];
        clean_text(path, "lane", i, l->name, sizeof l->name);
        expect(l->device_index < h->n_devices && l->kind < LANE_KINDS, path, "lane", i);
        expect(is_amount(l->flops_per_s) && is_amount(l->bytes_per_s), path, "lane", i);
    }
}

static void check_tasks(const char *path, const struct trace *t)
{
    const struct trace_header *h = &t->header;
    for (size_t i = 0; i < h->n_tasks; i++) {
        struct trace_task *k = &t->tasks[i];
        clean_text(path, "task", i, k->name, sizeof k->name);
        clean_text(path, "task", i, k->shape, sizeof k->shape);
        expect(k->lane < h->n_lanes && k->list < h->n_lists, path, "task", i);
        expect(k->role < MAX(h->n_roles, 1), path, "task", i); /* a file may be without roles */
        expect((uint64_t)k->first_edge + k->n_edges <= h->n_edges, path, "task", i);
        expect(is_amount(k->flops) && is_amount(k->predicted_ns), path, "task", i);
    }
    for (size_t i = 0; i < h->n_edges; i++)
        expect(t->edges[i].producer < h->n_tasks, path, "edge", i);
}

static void check_tensors(const char *path, const struct trace *t)
{
    const struct trace_header *h = &t->header;
    uint32_t uses = 0; /* the uses of the tensors before: each use belongs to one tensor */
    for (size_t i = 0; i < h->n_tensors; i++) {
        struct trace_tensor *x = &t->tensors[i];
        clean_text(path, "tensor", i, x->name, sizeof x->name);
        expect(x->device < h->n_devices && x->class < h->n_classes && x->list < h->n_lists, path, "tensor", i);
        expect(x->first_use == uses && x->n_uses <= h->n_uses - uses, path, "tensor", i);
        expect(x->bytes <= UINT64_C(1) << 56, path, "tensor", i);
        uses += x->n_uses;
    }
    expect(uses == h->n_uses, path, "number of uses", h->n_uses);
    for (size_t i = 0; i < h->n_uses; i++)
        expect(t->uses[i] < h->n_tasks, path, "use", i);
}

void trace_read_tables(struct reader *file, struct trace *t)
{
    struct trace_header *h = &t->header;
    read_at(file, h, MIN(file->size, sizeof *h), 0);
    check_header(file, h);
    for (const struct trace_part *p = trace_parts; p < trace_parts + TRACE_PARTS; p++) {
        size_t n = *PART_OF(uint32_t, h, p->n);
        void *table = allocate(n, p->size);
        *PART_OF(void *, t, p->table) = table;
        read_at(file, table, n * p->size, *PART_OF(uint64_t, h, p->at));
    }
    t->bars = allocate(h->n_lanes, sizeof *t->bars);
    t->runs = allocate(h->n_tasks, sizeof *t->runs);
    t->memory_use = allocate(h->n_devices, sizeof *t->memory_use);
    check_lanes(file->path, t); /* every index in the tables, and their texts */
    check_tasks(file->path, t);
    check_tensors(file->path, t);
}

/* ---- the trace -------------------------------------------------------------------------------------------------- */

void trace_free(struct trace *t)
{
    for (size_t i = 0; t->bars && i < t->header.n_lanes; i++)
        free(t->bars[i].bar);
    for (size_t i = 0; t->runs && i < t->header.n_tasks; i++)
        free(t->runs[i].record);
    for (size_t i = 0; t->memory_use && i < t->header.n_devices; i++)
        free(t->memory_use[i].amount);
    for (size_t i = 0; i < TRACE_LISTS; i++)
        free(t->steps[i].step);
    for (size_t i = 0; i < TRACE_PARTS; i++)
        free(*PART_OF(void *, t, trace_parts[i].table));
    free(t->bars);
    free(t->runs);
    free(t->memory_use);
    free(t->records);
    free(t->unfinished);
    free(t->pauses);
    free(t);
}
