/* trace_export.c - yard trace export: a trace as Chrome's JSON, for Perfetto and chrome://tracing.
 *
 *     device                                  process
 *     lane                                    thread
 *     record                                  event X, a slice
 *     bytes that a class of tensors holds     counter C
 *     edge between lanes                      flow, an arrow: event s, then event f
 *
 * What Perfetto asks for: times are microseconds, decimals keep the nanoseconds; sort indices are numbers; slices of
 * one thread nest; both ends of a flow lie within a slice that has a length, which comes earlier in the file; an f
 * without "bp":"e" would attach to the next slice; ids are not used twice.
 */
#include "command.h"
#include "stats.h"
#include "trainer/base/json.h"
#include "trainer/cmd/cmd.h"
#include "trainer/file/file.h"

#include <errno.h>
#include <inttypes.h>
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

static bool is_exported(const struct chrome *chrome, const struct trace_record *record)
{
    return chrome->trace->tasks[record->task].list == chrome->list && record->step >= chrome->first &&
           record->step <= chrome->last;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void put(struct chrome *chrome, const char *text)
{
    int error = Z_OK;
    size_t n = strlen(text);
    if (n && gzwrite(chrome->out, text, (unsigned)n) != (int)n)
        fail(EXIT_IO, "cannot write %s: %s", chrome->path, gzerror(chrome->out, &error));
}

/* 15 digits hold eleven days in nanoseconds, and show no noise of the conversion to binary. */
static void put_json(struct chrome *chrome, json_t *value)
{
    char *text = dump_json(value, JSON_COMPACT | JSON_REAL_PRECISION(15));
    put(chrome, text);
    free(text);
    json_decref(value);
}

/* Writes an event with the fields that all have (phase, name, process and thread), and `more`. */
static void put_event(struct chrome *chrome, const char *phase, const char *name, uint32_t lane, json_t *more)
{
    json_t *event = json_object();
    set_json_text(event, "ph", phase);
    set_json_text(event, "name", name);
    set_json_integer(event, "pid", (json_int_t)chrome->trace->lanes[lane].device_index + 1);
    set_json_integer(event, "tid", (json_int_t)lane + 1);
    json_object_update_new(event, more);
    put(chrome, chrome->n_events > 0 ? ",\n" : "\n");
    put_json(chrome, event);
    chrome->n_events++;
}

static double microseconds(const struct chrome *chrome, uint64_t ns) { return (double)(ns - chrome->zero) / 1e3; }

/* ---- slices ------------------------------------------------------------------------------------------------------ */

/* On a lane each slice must start where the one before ended, or later.  Measured times of an in-order queue can miss
 * that by a few nanoseconds, so they are mended. */
static void mend_records(struct chrome *chrome)
{
    const struct trace *trace = chrome->trace;
    uint64_t *lane_end = allocate(trace->header.n_lanes, sizeof *lane_end);
    chrome->zero = UINT64_MAX;
    for (size_t i = 0; i < trace->n_records; i++) {
        struct trace_record *record = &trace->records[i];
        uint64_t *end = &lane_end[trace->tasks[record->task].lane];
        if (!is_exported(chrome, record))
            continue;
        record->start = MAX(record->start, *end);
        record->end = MAX(record->end, record->start);
        *end = record->end;
        chrome->zero = MIN(chrome->zero, record->start);
        chrome->end = MAX(chrome->end, record->end);
    }
    free(lane_end);
}

static void put_lanes(struct chrome *chrome)
{
    lane_purpose *purpose = new_lane_purposes(chrome->trace);
    for (uint32_t i = 0; i < chrome->trace->header.n_lanes; i++) {
        const struct trace_lane *lane = &chrome->trace->lanes[i];
        const struct trace_device *device = &chrome->trace->devices[lane->device_index];
        char *title = format_string("%s %s", device->id, device->name);
        put_event(chrome, "M", "process_name", i, json_pack("{s:{s:o}}", "args", "name", text_json(title)));
        free(title);
        put_event(chrome, "M", "process_sort_index", i,
                  json_pack("{s:{s:i}}", "args", "sort_index", (int)lane->device_index));
        put_event(chrome, "M", "thread_name", i, json_pack("{s:{s:o}}", "args", "name", text_json(purpose[i])));
        put_event(chrome, "M", "thread_sort_index", i, json_pack("{s:{s:i}}", "args", "sort_index", (int)i));
    }
    free(purpose);
}

/* NULL for nothing: json_object_set_new() leaves such a field out. */
static json_t *above_0(double number) { return number > 0 ? json_real(number) : NULL; }
static json_t *from_0(int32_t number) { return number >= 0 ? json_integer(number) : NULL; }

/* {"link": 12.5, "host": 2}: the parts of a gap, in microseconds. */
static json_t *gap_json(const struct trace_gap *gap)
{
    json_t *idle = json_object();
    for (int i = 0; i < GAP_PARTS; i++) {
        uint64_t from = gap->at[i];
        uint64_t to = gap->at[i + 1];
        if (to > from)
            json_object_set_new(idle, cause_name[gap->cause[i]], json_real((double)(to - from) / 1e3));
    }
    return idle;
}

/* What the trace says of record i, for the panel of a slice. */
static json_t *slice_arguments(const struct trace *trace, size_t i)
{
    const struct trace_record *record = &trace->records[i];
    const struct trace_task *task = &trace->tasks[record->task];
    const struct trace_gap gap = gap_before_bar(trace, &trace->bars[task->lane], bar_of(trace, i));
    double ns = (double)(record->end - record->start);
    double flop_rate = ns > 0 ? task->flops / ns : 0;
    double byte_rate = ns > 0 ? (double)task->bytes / ns : 0;
    double waited = 0;
    const char *blocker = NULL;
    if (record->queued)
        waited = (double)record->start - (double)record->queued;
    if (gap.blocker != NONE)
        blocker = trace->tasks[trace->records[gap.blocker].task].name;
    json_t *arguments = json_object();
    set_json_integer(arguments, "step", (json_int_t)record->step);
    json_object_set_new(arguments, "idle_us", gap_json(&gap));
    if (blocker)
        set_json_text(arguments, "last_producer", blocker);
    json_object_set_new(arguments, "layer", from_0(task->layer));
    json_object_set_new(arguments, "micro", from_0(task->micro));
    json_object_set_new(arguments, "flops", above_0(task->flops));
    json_object_set_new(arguments, "bytes", above_0((double)task->bytes));
    json_object_set_new(arguments, "GFLOP/s", above_0(flop_rate));
    json_object_set_new(arguments, "GB/s", above_0(byte_rate));
    json_object_set_new(arguments, "queued_us", above_0(waited / 1e3));
    json_object_set_new(arguments, "predicted_us", above_0(task->predicted_ns / 1e3));
    json_object_set_new(arguments, "approximate", record->flags & TRACE_APPROXIMATE ? json_true() : NULL);
    return arguments;
}

static void put_slice(struct chrome *chrome, size_t i)
{
    const struct trace *trace = chrome->trace;
    const struct trace_record *record = &trace->records[i];
    const struct trace_task *task = &trace->tasks[record->task];
    double ns = (double)(record->end - record->start);
    json_t *slice = json_object();
    set_json_text(slice, "cat", "task");
    json_object_set_new(slice, "ts", json_real(microseconds(chrome, record->start)));
    json_object_set_new(slice, "dur", json_real(ns / 1e3));
    json_object_set_new(slice, "args", slice_arguments(trace, i));
    put_event(chrome, "X", task->name, task->lane, slice);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* A counter belongs to a process; any lane of the device names the process. */
static void put_memory(struct chrome *chrome, uint32_t device)
{
    const struct trace *trace = chrome->trace;
    const struct memory_use *use = &trace->memory_use[device];
    uint32_t lane = 0;
    while (lane < trace->header.n_lanes && trace->lanes[lane].device_index != device)
        lane++;
    if (lane == trace->header.n_lanes)
        return;
    for (const struct amount *amount = amount_at(use, chrome->zero); amount <= amount_at(use, chrome->end); amount++) {
        json_t *classes = json_object();
        for (size_t i = 0; i < trace->header.n_classes; i++)
            set_json_integer(classes, trace->header.memory[i], (json_int_t)amount->bytes[i]);
        put_event(
            chrome, "C", "memory", lane,
            json_pack("{s:f, s:o}", "ts", microseconds(chrome, MAX(amount->clock, chrome->zero)), "args", classes));
    }
}

/* ---- arrows ------------------------------------------------------------------------------------------------------ */

static bool has_length(const struct trace_record *record) { return record->end > record->start; }

/* Writes one end of an arrow: phase "s" or "f".  The event of the second end needs "bp": "e". */
static void put_arrow_end(struct chrome *chrome, const char *phase, bool reuse, uint32_t lane, uint64_t at,
                          const char *bp)
{
    json_t *end = json_object();
    set_json_text(end, "cat", "edge");
    set_json_integer(end, "id", (json_int_t)chrome->n_flows);
    json_object_set_new(end, "ts", json_real(microseconds(chrome, at)));
    if (bp)
        set_json_text(end, "bp", bp);
    put_event(chrome, phase, reuse ? "reuse" : "data", lane, end);
}

/* Writes an arrow from the producer's last nanosecond to the consumer's first, both within their slices.  It cannot go
 * back in time (clocks of two devices may disagree a little). */
static void put_arrow(struct chrome *chrome, size_t producer, size_t consumer, bool reuse)
{
    const struct trace *trace = chrome->trace;
    const struct trace_record *from = &trace->records[producer];
    const struct trace_record *to = &trace->records[consumer];
    uint32_t from_lane = trace->tasks[from->task].lane;
    uint32_t to_lane = trace->tasks[to->task].lane;
    if (from_lane == to_lane || from->start > to->start)
        return;
    chrome->n_flows++;
    put_arrow_end(chrome, "s", reuse, from_lane, MIN(from->end - 1, to->start), NULL);
    put_arrow_end(chrome, "f", reuse, to_lane, to->start, "e");
}

/* Writes arrows to the consumer from all that record `at` waited for.  A slice without length can hold no end of an
 * arrow, so a copy that takes no time is replaced by the producers of its data.  Producers that have been looked at for
 * this consumer are marked in drawn_for. */
static void put_arrows(struct chrome *chrome, size_t at, size_t consumer)
{
    const struct trace *trace = chrome->trace;
    const struct trace_record *record = &trace->records[at];
    const struct trace_task *task = &trace->tasks[record->task];
    for (uint32_t i = task->first_edge; i < task->first_edge + task->n_edges; i++) {
        const struct trace_edge *edge = &trace->edges[i];
        int64_t producer = find_run_before(trace, edge->producer, record->step - (edge->previous_step != 0), at);
        if (producer == NONE || !is_exported(chrome, &trace->records[producer]) ||
            chrome->drawn_for[producer] == consumer)
            continue;
        bool through = at != consumer;
        bool whole = has_length(&trace->records[producer]);
        if (edge->reuse && (through || !whole))
            continue;
        chrome->drawn_for[producer] = consumer;
        if (whole)
            put_arrow(chrome, (size_t)producer, consumer, edge->reuse);
        else
            put_arrows(chrome, (size_t)producer, consumer);
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

static void put_slices(struct chrome *chrome)
{
    const struct trace *trace = chrome->trace;
    for (size_t i = 0; i < trace->n_records; i++)
        if (is_exported(chrome, &trace->records[i]))
            put_slice(chrome, i);
    if (chrome->end > 0)
        for (uint32_t device = 0; device < trace->header.n_devices; device++)
            put_memory(chrome, device);
}

/* Perfetto asks that arrows come after all slices. */
static void put_all_arrows(struct chrome *chrome)
{
    const struct trace *trace = chrome->trace;
    chrome->drawn_for = allocate(trace->n_records + 1, sizeof *chrome->drawn_for);
    for (size_t i = 0; i < trace->n_records; i++)
        chrome->drawn_for[i] = SIZE_MAX;
    for (size_t i = 0; i < trace->n_records; i++)
        if (is_exported(chrome, &trace->records[i]) && has_length(&trace->records[i]))
            put_arrows(chrome, i, i);
    free(chrome->drawn_for);
}

static void write_chrome(struct chrome *chrome)
{
    const struct trace *trace = chrome->trace;
    struct writer *file = open_writer(chrome->path);
    int fd = dup(file->fd); /* gzclose() closes this copy; publish() still needs file->fd */
    if (fd >= 0)
        chrome->out = gzdopen(fd, ends_with(chrome->path, ".gz") ? "wb6" : "wbT");
    if (!chrome->out)
        fail(EXIT_IO, "cannot write %s: %s", chrome->path, strerror(errno));
    put(chrome, "{\"displayTimeUnit\":\"ns\",\"otherData\":");
    put_json(chrome, json_pack("{s:o, s:s, s:I}", "model", text_json(trace->header.model), "kind",
                               name_of_trace_kind(trace), "lost_records", (json_int_t)MIN(trace->n_lost, INT64_MAX)));
    put(chrome, ",\"traceEvents\":[");
    put_lanes(chrome);
    put_slices(chrome);
    put_all_arrows(chrome);
    put(chrome, "\n]}\n");
    if (gzclose(chrome->out) != Z_OK)
        fail(EXIT_IO, "cannot write %s: %s", chrome->path, strerror(errno));
    must(publish(file));
}

enum exit_code trace_export(char **files)
{
    const char *path = files[0];
    const char *chrome_path = asked_trace.chrome;
    int64_t first = 1, last = UINT32_MAX;
    int64_t has_first = 0, has_last = 0;
    if (!chrome_path)
        fail(EXIT_USAGE, "trace export needs --chrome OUT.json.gz, the file to write");
    parse_steps(asked_trace.steps, &first, &last);
    struct trace *trace = read_modelled_trace(path);
    uint32_t chosen = find_trace_list(trace, path, asked_trace.list);
    const struct trace_step_list *steps = &trace->steps[chosen];
    if (steps->n > 0) {
        has_first = steps->items[0].step;
        has_last = steps->items[steps->n - 1].step;
    }
    if (trace->n_records && (first > has_last || last < has_first))
        fail(EXIT_USAGE,
             "the trace %s holds the steps %" PRId64 " to %" PRId64 " of list %s, none that --steps asks for: give "
             "--steps numbers among these",
             path, has_first, has_last, trace->header.list[chosen]);
    struct chrome chrome = {.trace = trace, .path = chrome_path, .list = chosen, .first = first, .last = last};
    mend_records(&chrome);
    expect_replaceable("--chrome", chrome_path, KIND_CHROME, "trace for browsers");
    write_chrome(&chrome);
    print_line(stdout, "wrote %s, steps %" PRId64 " to %" PRId64 " of list %s: open it at ui.perfetto.dev", chrome_path,
               MAX(first, has_first), MIN(last, has_last), trace->header.list[chosen]);
    free_trace(trace);
    return EXIT_OK;
}
