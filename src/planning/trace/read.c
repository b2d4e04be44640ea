/* read.c - a trace's header and tables, checked; and freeing a trace.
 *
 * Another process owns the file: it may be cut short, made up, or written to at this moment.  It is read, never mapped
 * (a mapped file that shrinks kills its reader), each part is checked before anything is derived from it, and callers
 * get a copy.
 */
#include "trace_parts.h"

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

/* ---- checks ------------------------------------------------------------------------------------------------------ */

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
    for (char *character = text; *character; character++)
        if (*character == '\t')
            *character = '?';
}

static bool is_amount(double number) { return isfinite(number) && number >= 0; }

/* It must be a trace, and of this version. */
static void refuse_if_no_trace(const struct reader *file, const struct trace_header *header)
{
    const char *path = file->path;
    if (memcmp(header->magic, TRACE_MAGIC, sizeof header->magic) != 0) {
        refuse_if_other_kind(path, KIND_TRACE, "a trace, which --trace writes");
        fail(EXIT_FAILED,
             "%s is not a trace: `yard train --trace FILE` writes one, and lists that `yard view` shows end in .txt or "
             ".csv",
             path);
    }
    if (file->size >= offsetof(struct trace_header, kind) && header->version != TRACE_VERSION)
        fail(EXIT_FAILED, "the trace %s has version %" PRIu32 ", this yard reads version %d; record it again", path,
             header->version, TRACE_VERSION);
    if (file->size < sizeof *header)
        fail(EXIT_FAILED, DAMAGED "it has %" PRIu64 " bytes, its header alone takes %zu; record it again", path,
             file->size, sizeof *header);
}

/* n entries of `size` bytes must lie within the file.  No sum or product here can wrap. */
static void refuse_if_part_outside(const struct reader *file, size_t part, uint64_t at, uint64_t n, size_t size)
{
    expect(at % 64 == 0 && at >= sizeof(struct trace_header) && at <= file->size, file->path, "part", part);
    expect(n <= (file->size - at) / size, file->path, "part", part);
}

/* The header must be one of this version.  Its numbers must make sense, and its parts lie in the file. */
static void refuse_if_header_wrong(struct reader *file, struct trace_header *header)
{
    const char *path = file->path;
    refuse_if_no_trace(file, header);
    expect(header->kind <= TRACE_SIMULATED, path, "kind", header->kind);
    expect(header->n_lists <= TRACE_LISTS, path, "number of task lists", header->n_lists);
    expect(header->n_roles <= TRACE_ROLES, path, "number of roles", header->n_roles);
    expect(header->n_classes <= TRACE_CLASSES, path, "number of classes of memory", header->n_classes);
    expect(header->n_lanes <= TRACE_MAX_LANES, path, "number of lanes", header->n_lanes);
    expect(header->n_devices <= TRACE_MAX_LANES, path, "number of devices", header->n_devices);
    expect(header->capacity > 0 && header->capacity <= UINT32_MAX, path, "number of records", header->capacity);
    expect(header->pace_scale >= 1e-9 && header->pace_scale <= 1e9, path, "pace", 0);
    for (size_t i = 0; i < TRACE_PARTS; i++) {
        const struct trace_part *part = &trace_parts[i];
        refuse_if_part_outside(file, i, *PART_OF(uint64_t, header, part->at), *PART_OF(uint32_t, header, part->n),
                               part->size);
    }
    refuse_if_part_outside(file, TRACE_PARTS, header->records_at, MIN(header->head, header->capacity),
                           sizeof(struct trace_record));
    clean_text(path, "model", 0, header->model, sizeof header->model);
    for (size_t i = 0; i < header->n_lists; i++)
        clean_text(path, "task list", i, header->list[i], sizeof header->list[i]);
    for (size_t i = 0; i < header->n_roles; i++)
        clean_text(path, "role", i, header->role[i], sizeof header->role[i]);
    for (size_t i = 0; i < header->n_classes; i++)
        clean_text(path, "class of memory", i, header->memory[i], sizeof header->memory[i]);
}

static void refuse_if_lanes_wrong(const char *path, const struct trace *trace)
{
    const struct trace_header *header = &trace->header;
    for (size_t i = 0; i < header->n_devices; i++) {
        clean_text(path, "device", i, trace->devices[i].id, sizeof trace->devices[i].id);
        clean_text(path, "device", i, trace->devices[i].name, sizeof trace->devices[i].name);
    }
    for (size_t i = 0; i < header->n_lanes; i++) {
        struct trace_lane *lane = &trace->lanes[i];
        clean_text(path, "lane", i, lane->name, sizeof lane->name);
        expect(lane->device_index < header->n_devices && lane->kind < LANE_KINDS, path, "lane", i);
        expect(is_amount(lane->flops_per_s) && is_amount(lane->bytes_per_s), path, "lane", i);
    }
}

static void refuse_if_tasks_wrong(const char *path, const struct trace *trace)
{
    const struct trace_header *header = &trace->header;
    for (size_t i = 0; i < header->n_tasks; i++) {
        struct trace_task *task = &trace->tasks[i];
        clean_text(path, "task", i, task->name, sizeof task->name);
        clean_text(path, "task", i, task->shape, sizeof task->shape);
        expect(task->lane < header->n_lanes && task->list < header->n_lists, path, "task", i);
        expect(task->role < MAX(header->n_roles, 1), path, "task", i); /* a file may be without roles */
        expect((uint64_t)task->first_edge + task->n_edges <= header->n_edges, path, "task", i);
        expect(is_amount(task->flops) && is_amount(task->predicted_ns), path, "task", i);
    }
    for (size_t i = 0; i < header->n_edges; i++)
        expect(trace->edges[i].producer < header->n_tasks, path, "edge", i);
}

static void refuse_if_tensors_wrong(const char *path, const struct trace *trace)
{
    const struct trace_header *header = &trace->header;
    uint32_t uses = 0; /* the uses of the tensors before: each use belongs to one tensor */
    for (size_t i = 0; i < header->n_tensors; i++) {
        struct trace_tensor *tensor = &trace->tensors[i];
        clean_text(path, "tensor", i, tensor->name, sizeof tensor->name);
        expect(tensor->device < header->n_devices && tensor->class < header->n_classes &&
                   tensor->list < header->n_lists,
               path, "tensor", i);
        expect(tensor->first_use == uses && tensor->n_uses <= header->n_uses - uses, path, "tensor", i);
        expect(tensor->bytes <= UINT64_C(1) << 56, path, "tensor", i);
        uses += tensor->n_uses;
    }
    expect(uses == header->n_uses, path, "number of uses", header->n_uses);
    for (size_t i = 0; i < header->n_uses; i++)
        expect(trace->uses[i] < header->n_tasks, path, "use", i);
}

void read_trace_tables(struct reader *file, struct trace *trace)
{
    struct trace_header *header = &trace->header;
    read_at(file, header, MIN(file->size, sizeof *header), 0);
    refuse_if_header_wrong(file, header);
    for (const struct trace_part *part = trace_parts; part < trace_parts + TRACE_PARTS; part++) {
        size_t n = *PART_OF(uint32_t, header, part->n);
        void *table = allocate(n, part->size);
        *PART_OF(void *, trace, part->table) = table;
        read_at(file, table, n * part->size, *PART_OF(uint64_t, header, part->at));
    }
    trace->bars = allocate(header->n_lanes, sizeof *trace->bars);
    trace->runs = allocate(header->n_tasks, sizeof *trace->runs);
    trace->memory_use = allocate(header->n_devices, sizeof *trace->memory_use);
    refuse_if_lanes_wrong(file->path, trace); /* every index in the tables, and their texts */
    refuse_if_tasks_wrong(file->path, trace);
    refuse_if_tensors_wrong(file->path, trace);
}

/* ---- the trace --------------------------------------------------------------------------------------------------- */

void free_trace(struct trace *trace)
{
    if (trace->bars)
        for (size_t i = 0; i < trace->header.n_lanes; i++) {
            free(trace->bars[i].items);
            free(trace->bars[i].starts);
        }
    if (trace->runs)
        for (size_t i = 0; i < trace->header.n_tasks; i++)
            free(trace->runs[i].record);
    if (trace->memory_use)
        for (size_t i = 0; i < trace->header.n_devices; i++) {
            free(trace->memory_use[i].amounts);
            free(trace->memory_use[i].sums);
            free(trace->memory_use[i].blocks);
        }
    for (size_t i = 0; i < TRACE_LISTS; i++)
        free(trace->steps[i].items);
    for (size_t i = 0; i < TRACE_PARTS; i++)
        free(*PART_OF(void *, trace, trace_parts[i].table));
    free(trace->bars);
    free(trace->runs);
    free(trace->memory_use);
    free(trace->records);
    free(trace->unfinished);
    free(trace->pauses);
    free(trace);
}
