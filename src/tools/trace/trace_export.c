/* trace_export.c - yard trace export: a trace as Chrome's JSON, for Perfetto and chrome://tracing.
 *
 * A process per device, a thread per lane, an X event per record, a counter (C) of the bytes that each class
 * of tensors holds, and an arrow (a flow: s, then f) per edge between lanes.  What Perfetto asks for: times are
 * microseconds, decimals keep the nanoseconds; sort indices are numbers; slices of one thread nest; both ends of a flow
 * lie within a slice that has a length, which comes earlier in the file; an f without "bp":"e" would attach to the next
 * slice; ids are not used twice.
 */
#include "command.h"
#include "trace.h"
#include "trainer/cmd/cmd.h"
#include "trainer/file/file.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <unistd.h>
#include <zlib.h>

struct chrome {
    struct trace *trace;
    const char *path;
    gzFile out;
    uint32_t list;       /* the list that is shown: each list has step numbers of its own */
    int64_t first, last; /* the steps that are shown */
    uint64_t zero, end;  /* the clocks at which the first slice starts and the last ends; `zero` is shown as 0 */
    size_t n_events, n_flows;
    size_t *drawn_for; /* for each record the last consumer for which an arrow from it was considered */
};

static bool is_shown(const struct chrome *c, const struct trace_record *r)
{
    return c->trace->tasks[r->task].list == c->list && r->step >= c->first && r->step <= c->last;
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

static void put(struct chrome *c, const char *text)
{
    int error = Z_OK;
    size_t n = strlen(text);
    if (n && gzwrite(c->out, text, (unsigned)n) != (int)n)
        fail(EXIT_IO, "cannot write %s: %s", c->path, gzerror(c->out, &error));
}

/* 15 digits hold eleven days in nanoseconds, and show no noise of the conversion to binary. */
static void put_json(struct chrome *c, json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(15) | JSON_ENCODE_ANY);
    CHECK(text, "JSON of %s", c->path);
    put(c, text);
    free(text);
    json_decref(value);
}

/* Writes an event with the fields that all have (phase, name, process and thread), and `more`. */
static void put_event(struct chrome *c, const char *phase, const char *name, uint32_t lane, json_t *more)
{
    json_t *event = json_pack("{s:s, s:s, s:i, s:i}", "ph", phase, "name", name, "pid",
                              (int)c->trace->lanes[lane].device_index + 1, "tid", (int)lane + 1);
    json_object_update_new(event, more);
    put(c, c->n_events > 0 ? ",\n" : "\n");
    put_json(c, event);
    c->n_events++;
}

static double microseconds(const struct chrome *c, uint64_t ns) { return (double)(ns - c->zero) / 1e3; }

/* ---- slices ---------------------------------------------------------------------------------------------------- */

/* On a lane each slice must start where the one before ended, or later.  Measured times of an in-order queue can miss
 * that by a few nanoseconds, so they are mended. */
static void mend_records(struct chrome *c)
{
    const struct trace *t = c->trace;
    uint64_t *lane_end = allocate(t->header.n_lanes, sizeof *lane_end);
    c->zero = UINT64_MAX;
    for (size_t i = 0; i < t->n_records; i++) {
        struct trace_record *r = &t->records[i];
        uint64_t *end = &lane_end[t->tasks[r->task].lane];
        if (!is_shown(c, r))
            continue;
        r->start = MAX(r->start, *end);
        r->end = MAX(r->end, r->start);
        *end = r->end;
        c->zero = MIN(c->zero, r->start);
        c->end = MAX(c->end, r->end);
    }
    free(lane_end);
}

static void put_lanes(struct chrome *c)
{
    lane_purpose *purpose = trace_purposes(c->trace);
    for (uint32_t i = 0; i < c->trace->header.n_lanes; i++) {
        const struct trace_lane *l = &c->trace->lanes[i];
        const struct trace_device *d = &c->trace->devices[l->device_index];
        json_t *device = json_sprintf("%s %s", d->id, d->name);
        put_event(c, "M", "process_name", i, json_pack("{s:{s:o}}", "args", "name", device));
        put_event(c, "M", "process_sort_index", i, json_pack("{s:{s:i}}", "args", "sort_index", (int)l->device_index));
        put_event(c, "M", "thread_name", i, json_pack("{s:{s:s}}", "args", "name", purpose[i]));
        put_event(c, "M", "thread_sort_index", i, json_pack("{s:{s:i}}", "args", "sort_index", (int)i));
    }
    free(purpose);
}

/* NULL for nothing: json_pack() leaves it out. */
static json_t *above_0(double x) { return x > 0 ? json_real(x) : NULL; }
static json_t *from_0(int32_t x) { return x >= 0 ? json_integer(x) : NULL; }

/* {"link": 12.5, "host": 2}: the parts of a gap, in microseconds. */
static json_t *gap_json(const struct trace_gap *gap)
{
    json_t *idle = json_object();
    for (int i = 0; i < GAP_PARTS; i++) {
        uint64_t from = gap->at[i], to = gap->at[i + 1];
        if (to > from)
            json_object_set_new(idle, cause_name[gap->cause[i]], json_real((double)(to - from) / 1e3));
    }
    return idle;
}

static void put_slice(struct chrome *c, size_t i)
{
    const struct trace *t = c->trace;
    const struct trace_record *r = &t->records[i];
    const struct trace_task *task = &t->tasks[r->task];
    const struct trace_gap gap = trace_gap_of_bar(t, &t->bars[task->lane], bar_of(t, i));
    const double ns = (double)(r->end - r->start);
    const double flop_rate = ns > 0 ? task->flops / ns : 0;
    const double byte_rate = ns > 0 ? (double)task->bytes / ns : 0;
    double waited = 0;
    const char *blocker = NULL;
    if (r->queued)
        waited = (double)r->start - (double)r->queued;
    if (gap.blocker != NONE)
        blocker = t->tasks[t->records[gap.blocker].task].name;
    json_t *arguments =
        json_pack("{s:I, s:o, s:s*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*}", "step", (json_int_t)r->step,
                  "idle_us", gap_json(&gap), "last_producer", blocker, "layer", from_0(task->layer), "micro",
                  from_0(task->micro), "flops", above_0(task->flops), "bytes", above_0((double)task->bytes), "GFLOP/s",
                  above_0(flop_rate), "GB/s", above_0(byte_rate), "queued_us", above_0(waited / 1e3), "predicted_us",
                  above_0(task->predicted_ns / 1e3), "approximate", r->flags & TRACE_APPROXIMATE ? json_true() : NULL);
    put_event(c, "X", task->name, task->lane,
              json_pack("{s:s, s:f, s:f, s:o}", "cat", "task", "ts", microseconds(c, r->start), "dur", ns / 1e3, "args",
                        arguments));
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

/* A counter belongs to a process; any lane of the device names the process. */
static void put_memory(struct chrome *c, uint32_t device)
{
    const struct trace *t = c->trace;
    const struct memory_use *use = &t->memory_use[device];
    uint32_t lane = 0;
    while (lane < t->header.n_lanes && t->lanes[lane].device_index != device)
        lane++;
    if (lane == t->header.n_lanes)
        return;
    for (const struct amount *a = amount_at(use, c->zero); a <= amount_at(use, c->end); a++) {
        json_t *classes = json_object();
        for (size_t i = 0; i < t->header.n_classes; i++)
            json_object_set_new(classes, t->header.memory[i], json_integer((json_int_t)a->bytes[i]));
        put_event(c, "C", "memory", lane,
                  json_pack("{s:f, s:o}", "ts", microseconds(c, MAX(a->clock, c->zero)), "args", classes));
    }
}

/* ---- arrows ---------------------------------------------------------------------------------------------------- */

static bool has_length(const struct trace_record *r) { return r->end > r->start; }

/* Writes one end of an arrow: phase "s" or "f".  The event of the second end needs "bp": "e". */
static void put_arrow_end(struct chrome *c, const char *phase, bool reuse, uint32_t lane, uint64_t at, const char *bp)
{
    put_event(c, phase, reuse ? "reuse" : "data", lane,
              json_pack("{s:s, s:I, s:f, s:s*}", "cat", "edge", "id", (json_int_t)c->n_flows, "ts", microseconds(c, at),
                        "bp", bp));
}

/* Writes an arrow from the producer's last nanosecond to the consumer's first, both within their slices.  It cannot go
 * back in time (clocks of two devices may disagree a little). */
static void put_arrow(struct chrome *c, size_t producer, size_t consumer, bool reuse)
{
    const struct trace *t = c->trace;
    const struct trace_record *from = &t->records[producer], *to = &t->records[consumer];
    const uint32_t from_lane = t->tasks[from->task].lane;
    const uint32_t to_lane = t->tasks[to->task].lane;
    if (from_lane == to_lane || from->start > to->start)
        return;
    c->n_flows++;
    put_arrow_end(c, "s", reuse, from_lane, MIN(from->end - 1, to->start), NULL);
    put_arrow_end(c, "f", reuse, to_lane, to->start, "e");
}

/* Writes arrows to the consumer from all that record `at` waited for.  A slice without length can hold no end of an
 * arrow, so a copy that takes no time is replaced by the producers of its data.  Producers that have been looked at for
 * this consumer are marked in drawn_for. */
static void put_arrows(struct chrome *c, size_t at, size_t consumer)
{
    const struct trace *t = c->trace;
    const struct trace_record *r = &t->records[at];
    const struct trace_task *task = &t->tasks[r->task];
    for (uint32_t e = task->first_edge; e < task->first_edge + task->n_edges; e++) {
        const struct trace_edge *edge = &t->edges[e];
        int64_t producer = trace_find_before(t, edge->producer, r->step - (edge->previous_step != 0), at);
        if (producer == NONE || !is_shown(c, &t->records[producer]) || c->drawn_for[producer] == consumer)
            continue;
        bool through = at != consumer, whole = has_length(&t->records[producer]);
        if (edge->reuse && (through || !whole))
            continue;
        c->drawn_for[producer] = consumer;
        if (whole)
            put_arrow(c, (size_t)producer, consumer, edge->reuse);
        else
            put_arrows(c, (size_t)producer, consumer);
    }
}

/* Reads "2:4", "2:", ":4" or "2"; NULL: all steps. */
static void parse_steps(const char *text, int64_t *first, int64_t *last)
{
    char *begin = copy_string(text ? text : ":");
    char *end = begin;
    strsep(&end, ":"); /* end becomes NULL for one step */
    bool good = (end && !*begin) || parse_int(begin, first);
    if (!end)
        *last = *first;
    else if (*end)
        good &= parse_int(end, last);
    if (!good || *first < 1 || *last < *first || *last > UINT32_MAX)
        fail(EXIT_USAGE, "--steps takes A:B, two step numbers that count from 1 with A at most B, not \"%s\"", text);
    free(begin);
}

static void put_slices(struct chrome *c)
{
    const struct trace *t = c->trace;
    for (size_t i = 0; i < t->n_records; i++)
        if (is_shown(c, &t->records[i]))
            put_slice(c, i);
    for (uint32_t device = 0; device < t->header.n_devices && c->end > 0; device++)
        put_memory(c, device);
}

/* Perfetto asks that arrows come after all slices. */
static void put_all_arrows(struct chrome *c)
{
    const struct trace *t = c->trace;
    c->drawn_for = allocate(t->n_records + 1, sizeof *c->drawn_for);
    for (size_t i = 0; i < t->n_records; i++)
        c->drawn_for[i] = SIZE_MAX;
    for (size_t i = 0; i < t->n_records; i++)
        if (is_shown(c, &t->records[i]) && has_length(&t->records[i]))
            put_arrows(c, i, i);
    free(c->drawn_for);
}

static void write_chrome(struct chrome *c)
{
    const struct trace *t = c->trace;
    struct writer *file = open_writer(c->path);
    int fd = dup(file->fd); /* gzclose() closes this copy; publish() still needs file->fd */
    if (fd >= 0)
        c->out = gzdopen(fd, ends_with(c->path, ".gz") ? "wb6" : "wbT");
    if (!c->out)
        fail(EXIT_IO, "cannot write %s: %s", c->path, strerror(errno));
    put(c, "{\"displayTimeUnit\":\"ns\",\"otherData\":");
    put_json(c, json_pack("{s:s, s:s, s:I}", "model", t->header.model, "kind", trace_kind_name(t), "lost_records",
                          (json_int_t)MIN(t->n_lost, INT64_MAX)));
    put(c, ",\"traceEvents\":[");
    put_lanes(c);
    put_slices(c);
    put_all_arrows(c);
    put(c, "\n]}\n");
    if (gzclose(c->out) != Z_OK)
        fail(EXIT_IO, "cannot write %s: %s", c->path, strerror(errno));
    publish(file);
}

int trace_export(char **files)
{
    const char *path = files[0], *chrome = trace_options.chrome;
    int64_t first = 1, last = UINT32_MAX;
    int64_t has_first = 0, has_last = 0;
    if (!chrome)
        fail(EXIT_USAGE, "yard trace export needs --chrome OUT.json.gz, the file to write");
    parse_steps(trace_options.steps, &first, &last);
    struct trace *t = trace_open_modelled(path);
    uint32_t chosen = trace_list(t, path, trace_options.list);
    const struct trace_step_list *steps = &t->steps[chosen];
    if (steps->n > 0) {
        has_first = steps->step[0].step;
        has_last = steps->step[steps->n - 1].step;
    }
    if (t->n_records && (first > has_last || last < has_first))
        fail(EXIT_USAGE,
             "the trace %s holds the steps %" PRId64 " to %" PRId64 " of list %s, none that --steps asks for: give "
             "--steps numbers among these",
             path, has_first, has_last, t->header.list[chosen]);
    struct chrome c = {.trace = t, .path = chrome, .list = chosen, .first = first, .last = last};
    mend_records(&c);
    expect_replaceable("--chrome", chrome, KIND_CHROME, "trace for browsers");
    write_chrome(&c);
    print_line(stdout, "wrote %s, steps %" PRId64 " to %" PRId64 " of list %s: open it at ui.perfetto.dev", chrome,
               MAX(first, has_first), MIN(last, has_last), t->header.list[chosen]);
    return EXIT_OK;
}
