/* read.c - the reader's half of trace.h.
 *
 * The file is somebody else's: it may be cut short, made up, or written to at this moment.  It is read, never mapped
 * (a mapped file that shrinks kills its reader), each part is checked before anything is derived from it, and what is
 * handed on is a copy.
 */
#include "trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../file/file.h"

#define DAMAGED "the trace %s is damaged: "

/* ---- header and tables ----------------------------------------------------------------------------------------- */

static void check_magic(const struct reader *file, const struct trace_header *h)
{
    if (memcmp(h->magic, TRACE_MAGIC, sizeof h->magic) != 0)
        fail(EXIT_FAILED, "%s is not a trace: it does not start with \"%s\"; yard train --trace FILE writes one",
             file->path, TRACE_MAGIC);
    if (file->size >= sizeof *h && h->version != TRACE_VERSION)
        fail(EXIT_FAILED, "the trace %s has version %" PRIu32 ", this yard reads version %d; record it again",
             file->path, h->version, TRACE_VERSION);
}

static void check_numbers(const char *path, const struct trace_header *h)
{
    if (h->kind > TRACE_SIMULATED)
        fail(EXIT_FAILED, DAMAGED "its kind is %" PRIu32 ", expected 0 to %d", path, h->kind, TRACE_SIMULATED);
    if (h->n_lists > COUNT(h->list))
        fail(EXIT_FAILED, DAMAGED "it has %" PRIu32 " task lists, expected at most %zu", path, h->n_lists,
             COUNT(h->list));
    if (h->n_lanes > TRACE_MAX_LANES)
        fail(EXIT_FAILED, DAMAGED "it has %" PRIu32 " lanes, expected at most %d", path, h->n_lanes, TRACE_MAX_LANES);
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

/* Records in the ring now: before it is full, the first `head`. */
static uint64_t ring_records(const struct trace_header *h) { return MIN(h->head, h->capacity); }

static void read_header(struct reader *file, struct trace_header *h)
{
    read_at(file, h, MIN(file->size, sizeof *h), 0);
    check_magic(file, h);
    if (file->size < sizeof *h)
        fail(EXIT_FAILED, DAMAGED "it has %" PRIu64 " bytes, its header alone takes %zu", file->path, file->size,
             sizeof *h);
    check_numbers(file->path, h);
    check_part(file, "lanes", h->lanes_at, h->n_lanes, sizeof(struct trace_lane));
    check_part(file, "tasks", h->tasks_at, h->n_tasks, sizeof(struct trace_task));
    check_part(file, "edges", h->edges_at, h->n_edges, sizeof(struct trace_edge));
    check_part(file, "records", h->records_at, ring_records(h), sizeof(struct trace_record));
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

static void check_lanes(const char *path, const struct trace *t)
{
    for (size_t i = 0; i < t->header.n_lanes; i++) {
        struct trace_lane *l = &t->lanes[i];
        clean_text(path, "lane", i, l->name, sizeof l->name);
        clean_text(path, "the device of lane", i, l->device, sizeof l->device);
        if (l->kind >= LANE_KINDS)
            fail(EXIT_FAILED, DAMAGED "lane %zu is of kind %" PRIu32 ", expected less than %d", path, i, l->kind,
                 LANE_KINDS);
    }
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

static void check_tasks(const char *path, const struct trace *t)
{
    for (size_t i = 0; i < t->header.n_tasks; i++) {
        struct trace_task *k = &t->tasks[i];
        clean_text(path, "task", i, k->name, sizeof k->name);
        check_index(path, "task", i, "lane", k->lane, t->header.n_lanes);
        check_index(path, "task", i, "list", k->list, t->header.n_lists);
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

static void *read_table(struct reader *file, uint64_t at, size_t n, size_t size)
{
    void *table = allocate(n, size);
    read_at(file, table, n * size, at);
    return table;
}

static void read_tables(struct reader *file, struct trace *t)
{
    struct trace_header *h = &t->header;
    t->lanes = read_table(file, h->lanes_at, h->n_lanes, sizeof *t->lanes);
    t->tasks = read_table(file, h->tasks_at, h->n_tasks, sizeof *t->tasks);
    t->edges = read_table(file, h->edges_at, h->n_edges, sizeof *t->edges);
    clean_text(file->path, "the model", 0, h->model, sizeof h->model);
    for (size_t i = 0; i < h->n_lists; i++)
        clean_text(file->path, "list", i, h->list[i], sizeof h->list[i]);
    check_lanes(file->path, t);
    check_tasks(file->path, t);
}

/* ---- records --------------------------------------------------------------------------------------------------- */

/* Keep a record with the ended or the unfinished ones.  `again` is what stood there a moment after `r`: the two are
 * equal unless the writer was at it in between (see the layout in trace.h). */
static void take_record(const char *path, struct trace *t, size_t cap[2], uint64_t slot, const struct trace_record *r,
                        const struct trace_record *again)
{
    check_index(path, "record", slot, "task", again->task, t->header.n_tasks);
    if (again->step == 0)
        fail(EXIT_FAILED, DAMAGED "record %" PRIu64 " is of step 0, they count from 1", path, slot);
    if (r->end == 0 || memcmp(r, again, sizeof *r) != 0) {
        struct trace_record *u = APPEND(t->unfinished, t->n_unfinished, cap[1]);
        *u = *again;
        u->start = u->end = 0;
        return;
    }
    if (r->start > r->end)
        fail(EXIT_FAILED, DAMAGED "record %" PRIu64 " ends %" PRIu64 " ns before it starts", path, slot,
             r->start - r->end);
    *APPEND(t->records, t->n_records, cap[0]) = *r;
}

/* In pieces, so that a made-up count in a file of holes does not ask for more memory than the records there are. */
static void read_records(struct reader *file, struct trace *t)
{
    enum { PIECE = 1024 };
    struct trace_record piece[PIECE], again[PIECE];
    size_t cap[2] = {0, 0};
    uint64_t n = ring_records(&t->header);
    for (uint64_t i = 0; i < n; i += PIECE) {
        size_t here = (size_t)MIN(n - i, PIECE);
        uint64_t at = t->header.records_at + i * sizeof *piece;
        read_at(file, piece, here * sizeof *piece, at);
        read_at(file, again, here * sizeof *piece, at);
        for (size_t k = 0; k < here; k++)
            take_record(file->path, t, cap, i + k, &piece[k], &again[k]);
    }
    t->n_lost = t->header.head - n;
}

/* Within a step the order of the list breaks ties: it is an order in which the tasks could run. */
static int by_start(const void *left, const void *right)
{
    const struct trace_record *a = left, *b = right;
    int order = COMPARE(a->start, b->start);
    order = order ? order : COMPARE(a->end, b->end);
    order = order ? order : COMPARE(a->step, b->step);
    return order ? order : COMPARE(a->task, b->task);
}

static int by_queued(const void *left, const void *right)
{
    const struct trace_record *a = left, *b = right;
    int order = COMPARE(a->queued, b->queued);
    return order ? order : COMPARE(a->task, b->task);
}

/* A step is whole when none of its records is unfinished, and a later one has begun or the trace is closed. */
static void find_steps(struct trace *t)
{
    uint32_t last_begun = 0, whole = UINT32_MAX;
    for (size_t i = 0; i < t->n_records; i++) {
        uint32_t step = t->records[i].step;
        t->first_step = i == 0 ? step : MIN(t->first_step, step);
        t->last_step = MAX(t->last_step, step);
    }
    last_begun = t->last_step;
    for (size_t i = 0; i < t->n_unfinished; i++) {
        last_begun = MAX(last_begun, t->unfinished[i].step);
        whole = MIN(whole, t->unfinished[i].step - 1);
    }
    if (!t->header.closed_ns)
        whole = MIN(whole, last_begun ? last_begun - 1 : 0);
    t->whole_step = MIN(whole, t->last_step);
}

struct reading { /* under way: what is made so far goes when it fails */
    const char *path;
    struct reader *file;
    struct trace *trace;
};

static void read_trace(void *reading)
{
    struct reading *r = reading;
    struct trace *t = r->trace;
    struct reader *file = r->file = open_reader(r->path);
    read_header(file, &t->header);
    read_tables(file, t);
    read_records(file, t);
    close_reader(file);
    if (t->n_records)
        qsort(t->records, t->n_records, sizeof *t->records, by_start);
    if (t->n_unfinished)
        qsort(t->unfinished, t->n_unfinished, sizeof *t->unfinished, by_queued);
    find_steps(t);
}

struct problem *trace_read(const char *path, struct trace **t)
{
    struct reading r = {path, NULL, allocate(1, sizeof *r.trace)};
    struct problem *wrong = attempt(read_trace, &r);
    if (wrong && r.file)
        close_reader(r.file);
    if (wrong)
        trace_free(r.trace);
    *t = wrong ? NULL : r.trace;
    return wrong;
}

struct trace *trace_open(const char *path)
{
    struct trace *t;
    must(trace_read(path, &t));
    return t;
}

void trace_free(struct trace *t)
{
    free(t->lanes);
    free(t->tasks);
    free(t->edges);
    free(t->records);
    free(t->unfinished);
    free(t);
}
