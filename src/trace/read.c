/* read.c - a trace's header and tables, checked; and a whole trace at once.
 *
 * The file is somebody else's: it may be cut short, made up, or written to at this moment.  It is read, never mapped
 * (a mapped file that shrinks kills its reader), each part is checked before anything is derived from it, and what is
 * handed on is a copy.
 */
#include "follow.h"

#include <inttypes.h>
#include <math.h>

#include "../file/file.h"

#define PART(what, name)                                                                                               \
    {                                                                                                                  \
        what, offsetof(struct trace_header, name##_at), offsetof(struct trace_header, n_##name),                       \
            offsetof(struct trace, name), sizeof *((struct trace *)0)->name                                            \
    }
const struct trace_part trace_parts[TRACE_PARTS] = {PART("devices", devices), PART("lanes", lanes),
                                                    PART("tasks", tasks), PART("edges", edges),
                                                    PART("memory entries", memory)};

/* ---- header and tables ----------------------------------------------------------------------------------------- */

static void check_magic(const struct reader *file, const struct trace_header *h)
{
    if (memcmp(h->magic, TRACE_MAGIC, sizeof h->magic) != 0)
        fail(EXIT_FAILED, "%s is not a trace: it does not start with \"%s\"; yard train --trace FILE writes one",
             file->path, TRACE_MAGIC);
    if (file->size >= offsetof(struct trace_header, kind) && h->version != TRACE_VERSION)
        fail(EXIT_FAILED, "the trace %s has version %" PRIu32 ", this yard reads version %d; record it again",
             file->path, h->version, TRACE_VERSION);
}

static void check_count(const char *path, const char *what, uint32_t n, uint32_t limit)
{
    if (n > limit)
        fail(EXIT_FAILED, DAMAGED "it has %" PRIu32 " %s, expected at most %" PRIu32, path, n, what, limit);
}

static void check_numbers(const char *path, const struct trace_header *h)
{
    if (h->kind > TRACE_SIMULATED)
        fail(EXIT_FAILED, DAMAGED "its kind is %" PRIu32 ", expected 0 to %d", path, h->kind, TRACE_SIMULATED);
    check_count(path, "task lists", h->n_lists, TRACE_LISTS);
    check_count(path, "roles", h->n_roles, TRACE_ROLES);
    check_count(path, "classes of memory", h->n_classes, TRACE_CLASSES);
    check_count(path, "lanes", h->n_lanes, TRACE_MAX_LANES);
    check_count(path, "devices", h->n_devices, TRACE_MAX_LANES);
    if (h->capacity == 0)
        fail(EXIT_FAILED, DAMAGED "its ring has room for 0 records", path);
    if (!(h->pace_scale >= 1e-9 && h->pace_scale <= 1e9))
        fail(EXIT_FAILED, DAMAGED "its pace scale is %g, expected 1e-9 to 1e9", path, h->pace_scale);
}

/* Do `count` items of `size` bytes fit in the file at `at`?  No sum or product here can wrap. */
static void check_part(const struct reader *file, const char *what, uint64_t at, uint64_t count, size_t size)
{
    if (at % 64 != 0 || at < sizeof(struct trace_header))
        fail(EXIT_FAILED, DAMAGED "its %s start at byte %" PRIu64 ", expected a multiple of 64 behind the header",
             file->path, what, at);
    if (at > file->size || count > (file->size - at) / size)
        fail(EXIT_FAILED, DAMAGED "%" PRIu64 " %s of %zu bytes at byte %" PRIu64 " do not fit in its %" PRIu64 " bytes",
             file->path, count, what, size, at, file->size);
}

static void read_header(struct reader *file, struct trace_header *h)
{
    read_at(file, h, MIN(file->size, sizeof *h), 0);
    check_magic(file, h);
    if (file->size < sizeof *h)
        fail(EXIT_FAILED, DAMAGED "it has %" PRIu64 " bytes, its header alone takes %zu", file->path, file->size,
             sizeof *h);
    check_numbers(file->path, h);
    for (const struct trace_part *p = trace_parts; p < trace_parts + TRACE_PARTS; p++)
        check_part(file, p->what, *PART_OF(uint64_t, h, p->at), *PART_OF(uint32_t, h, p->n), p->size);
    check_part(file, "records", h->records_at, MIN(h->head, h->capacity), sizeof(struct trace_record));
}

/* End the text within its field and keep it from talking to the terminal or breaking JSON. */
static void clean_text(const char *path, const char *what, size_t i, char *text, size_t size)
{
    if (!memchr(text, '\0', size))
        fail(EXIT_FAILED, DAMAGED "the text of %s %zu does not end within its %zu bytes", path, what, i, size);
    for (char *c = text; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

/* Index `value` of `limit`: every index of the file passes here. */
static void check_index(const char *path, const char *whose, uint64_t i, const char *what, uint64_t value,
                        uint64_t limit)
{
    if (value >= limit)
        fail(EXIT_FAILED, DAMAGED "%s %" PRIu64 " names %s %" PRIu64 " of %" PRIu64, path, whose, i, what, value,
             limit);
}

static bool is_amount(double x) { return isfinite(x) && x >= 0; }

static int compare_memory(const struct trace_memory *m, uint32_t list, uint32_t device, uint32_t task)
{
    return BY(m->list, list, BY(m->device, device, COMPARE(m->task, task)));
}

const struct trace_memory *trace_memory_at(const struct trace *t, uint32_t task, uint32_t device)
{
    size_t behind;
    uint32_t list = t->tasks[task].list;
    FIND_FIRST(behind, t->header.n_memory, compare_memory(&t->memory[behind], list, device, task) <= 0);
    const struct trace_memory *m = behind ? &t->memory[behind - 1] : NULL;
    return m && m->list == list && m->device == device ? m : NULL;
}

static void check_devices(const char *path, const struct trace *t)
{
    for (size_t i = 0; i < t->header.n_devices; i++) {
        clean_text(path, "device", i, t->devices[i].id, sizeof t->devices[i].id);
        clean_text(path, "the name of device", i, t->devices[i].name, sizeof t->devices[i].name);
    }
}

static void check_lanes(const char *path, const struct trace *t)
{
    for (size_t i = 0; i < t->header.n_lanes; i++) {
        struct trace_lane *l = &t->lanes[i];
        clean_text(path, "lane", i, l->name, sizeof l->name);
        check_index(path, "lane", i, "device", l->device_index, t->header.n_devices);
        if (l->kind >= LANE_KINDS)
            fail(EXIT_FAILED, DAMAGED "lane %zu is of kind %" PRIu32 ", expected less than %d", path, i, l->kind,
                 LANE_KINDS);
        if (!is_amount(l->flops_per_s) || !is_amount(l->bytes_per_s))
            fail(EXIT_FAILED, DAMAGED "lane %zu does %g FLOP/s and %g bytes/s", path, i, l->flops_per_s,
                 l->bytes_per_s);
    }
}

static void check_tasks(const char *path, const struct trace *t)
{
    for (size_t i = 0; i < t->header.n_tasks; i++) {
        struct trace_task *k = &t->tasks[i];
        clean_text(path, "task", i, k->name, sizeof k->name);
        check_index(path, "task", i, "lane", k->lane, t->header.n_lanes);
        check_index(path, "task", i, "list", k->list, t->header.n_lists);
        check_index(path, "task", i, "role", k->role, MAX(t->header.n_roles, 1)); /* a file may do without */
        clean_text(path, "the shape of task", i, k->shape, sizeof k->shape);
        if ((uint64_t)k->first_edge + k->n_edges > t->header.n_edges)
            fail(EXIT_FAILED, DAMAGED "the edges of task %zu end at %" PRIu64 ", there are %" PRIu32, path, i,
                 (uint64_t)k->first_edge + k->n_edges, t->header.n_edges);
        if (!is_amount(k->flops) || !is_amount(k->predicted_ns))
            fail(EXIT_FAILED, DAMAGED "task %zu has %g FLOPs and a prediction of %g ns", path, i, k->flops,
                 k->predicted_ns);
    }
    for (size_t i = 0; i < t->header.n_edges; i++)
        check_index(path, "edge", i, "task", t->edges[i].from, t->header.n_tasks);
}

/* In the order that trace_memory_at() searches by. */
static void check_memory(const char *path, const struct trace *t)
{
    for (size_t i = 0; i < t->header.n_memory; i++) {
        const struct trace_memory *m = &t->memory[i], *before = i ? m - 1 : NULL;
        check_index(path, "memory entry", i, "list", m->list, t->header.n_lists);
        check_index(path, "memory entry", i, "device", m->device, t->header.n_devices);
        check_index(path, "memory entry", i, "task", m->task, t->header.n_tasks);
        if (before && compare_memory(before, m->list, m->device, m->task) >= 0)
            fail(EXIT_FAILED, DAMAGED "memory entry %zu is out of order", path, i);
    }
}

static void clean_names(const char *path, struct trace_header *h)
{
    clean_text(path, "the model", 0, h->model, sizeof h->model);
    for (size_t i = 0; i < h->n_lists; i++)
        clean_text(path, "list", i, h->list[i], sizeof h->list[i]);
    for (size_t i = 0; i < h->n_roles; i++)
        clean_text(path, "role", i, h->role[i], sizeof h->role[i]);
    for (size_t i = 0; i < h->n_classes; i++)
        clean_text(path, "class of memory", i, h->memory[i], sizeof h->memory[i]);
}

void trace_read_tables(struct reader *file, struct trace *t)
{
    struct trace_header *h = &t->header;
    read_header(file, h);
    for (const struct trace_part *p = trace_parts; p < trace_parts + TRACE_PARTS; p++) {
        size_t n = *PART_OF(uint32_t, h, p->n);
        void *table = *PART_OF(void *, t, p->table) = allocate(n, p->size);
        read_at(file, table, n * p->size, *PART_OF(uint64_t, h, p->at));
    }
    t->bars = allocate(h->n_lanes, sizeof *t->bars);
    t->runs = allocate(h->n_tasks, sizeof *t->runs);
    clean_names(file->path, h);
    check_devices(file->path, t);
    check_lanes(file->path, t);
    check_tasks(file->path, t);
    check_memory(file->path, t);
}

void trace_free(struct trace *t)
{
    for (size_t i = 0; t->bars && i < t->header.n_lanes; i++)
        free(t->bars[i].bar);
    for (size_t i = 0; t->runs && i < t->header.n_tasks; i++)
        free(t->runs[i].record);
    for (size_t i = 0; i < TRACE_LISTS; i++)
        free(t->steps[i].step);
    for (size_t i = 0; i < TRACE_PARTS; i++)
        free(*PART_OF(void *, t, trace_parts[i].table));
    free(t->bars), free(t->runs), free(t->records), free(t->unfinished);
    free(t);
}
