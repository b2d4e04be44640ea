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
    uint32_t list; /* they have step numbers of their own, so one is shown */
    int64_t first, last;
    uint64_t zero, end; /* times that are shown, the first as 0 */
    size_t n_events, n_flows;
    size_t *drawn_for; /* by record: the last consumer to which an arrow from it was thought of */
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

/* 15 digits hold eleven days in nanoseconds, and no more of a double's binary noise than that. */
static void put_json(struct chrome *c, json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(15) | JSON_ENCODE_ANY);
    CHECK(text, "JSON of %s", c->path);
    put(c, text);
    free(text);
    json_decref(value);
}

/* An event with what all have: phase, name, process and thread; and `more`. */
static void put_event(struct chrome *c, const char *phase, const char *name, uint32_t lane, json_t *more)
{
    json_t *event = json_pack("{s:s, s:s, s:i, s:i}", "ph", phase, "name", name, "pid",
                              (int)c->trace->lanes[lane].device_index + 1, "tid", (int)lane + 1);
    json_object_update_new(event, more);
    put(c, c->n_events++ ? ",\n" : "\n");
    put_json(c, event);
}

static double microseconds(const struct chrome *c, uint64_t ns) { return (double)(ns - c->zero) / 1e3; }

/* ---- slices ---------------------------------------------------------------------------------------------------- */

/* On a lane each slice starts where the one before ended or later.  Measured times of an in-order queue can miss that
 * by a few nanoseconds, so they are mended. */
static void mend_records(struct chrome *c)
{
    const struct trace *t = c->trace;
    uint64_t *lane_end = allocate(t->header.n_lanes, sizeof *lane_end);
    c->zero = UINT64_MAX;
    for (struct trace_record *r = t->records; r < t->records + t->n_records; r++) {
        uint64_t *before = &lane_end[t->tasks[r->task].lane];
        if (!is_shown(c, r))
            continue;
        r->start = MAX(r->start, *before);
        *before = r->end = MAX(r->end, r->start);
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

/* NULL: there is none, and json_pack() leaves it out. */
static json_t *above_0(double x) { return x > 0 ? json_real(x) : NULL; }

static void put_slice(struct chrome *c, size_t i)
{
    const struct trace_record *r = &c->trace->records[i];
    const struct trace_task *k = &c->trace->tasks[r->task];
    double ns = (double)(r->end - r->start), waited = r->queued ? (double)r->start - (double)r->queued : 0;
    const struct trace_gap gap = trace_gap_of_bar(c->trace, &c->trace->bars[k->lane], bar_of(c->trace, i));
    json_t *idle = json_object(); /* {"link": 12.5, "host": 2}: the gap before it */
    for (int part = 0; part < GAP_PARTS; part++)
        if (gap.at[part + 1] > gap.at[part])
            json_object_set_new(idle, cause_name[gap.cause[part]],
                                json_real((double)(gap.at[part + 1] - gap.at[part]) / 1e3));
    const char *blocker = gap.blocker == NO_RECORD ? NULL : c->trace->tasks[c->trace->records[gap.blocker].task].name;
    json_t *arguments =
        json_pack("{s:I, s:o, s:s*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*, s:o*}", "step", (json_int_t)r->step,
                  "idle_us", idle, "last_producer", blocker, "layer", k->layer >= 0 ? json_integer(k->layer) : NULL,
                  "micro", k->micro >= 0 ? json_integer(k->micro) : NULL, "flops", above_0(k->flops), "bytes",
                  above_0((double)k->bytes), "GFLOP/s", ns > 0 ? above_0(k->flops / ns) : NULL, "GB/s",
                  ns > 0 ? above_0((double)k->bytes / ns) : NULL, "queued_us", above_0(waited / 1e3), "predicted_us",
                  above_0(k->predicted_ns / 1e3), "approximate", r->flags & TRACE_APPROXIMATE ? json_true() : NULL);
    put_event(c, "X", k->name, k->lane,
              json_pack("{s:s, s:f, s:f, s:o}", "cat", "task", "ts", microseconds(c, r->start), "dur", ns / 1e3, "args",
                        arguments));
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

/* A counter belongs to a process; any lane of the device leads to that. */
static void put_memory(struct chrome *c, uint32_t device)
{
    const struct trace *t = c->trace;
    const struct held *h = &t->held[device];
    uint32_t lane = 0;
    while (lane < t->header.n_lanes && t->lanes[lane].device_index != device)
        lane++;
    if (lane == t->header.n_lanes)
        return;
    for (const struct amount *a = amount_at(h, c->zero); a <= amount_at(h, c->end); a++) {
        json_t *classes = json_object();
        for (size_t i = 0; i < t->header.n_classes; i++)
            json_object_set_new(classes, t->header.memory[i], json_integer((json_int_t)a->bytes[i]));
        put_event(c, "C", "memory", lane,
                  json_pack("{s:f, s:o}", "ts", microseconds(c, MAX(a->clock, c->zero)), "args", classes));
    }
}

/* ---- arrows ---------------------------------------------------------------------------------------------------- */

static bool has_length(const struct trace_record *r) { return r->end > r->start; }

/* From the producer's last nanosecond to the consumer's first, both within their slices.  An arrow cannot go back in
 * time (clocks of two devices may disagree a little). */
static void put_arrow(struct chrome *c, size_t producer, size_t consumer, bool reuse)
{
    const struct trace *t = c->trace;
    const struct trace_record *from = &t->records[producer], *to = &t->records[consumer];
    const uint32_t lane[] = {t->tasks[from->task].lane, t->tasks[to->task].lane};
    if (lane[0] == lane[1] || from->start > to->start)
        return;
    const uint64_t at[] = {MIN(from->end - 1, to->start), to->start};
    c->n_flows++;
    for (int end = 0; end < 2; end++)
        put_event(c, end ? "f" : "s", reuse ? "reuse" : "data", lane[end],
                  json_pack("{s:s, s:I, s:f, s:s*}", "cat", "edge", "id", (json_int_t)c->n_flows, "ts",
                            microseconds(c, at[end]), "bp", end ? "e" : NULL));
}

/* Arrows to the consumer from all that record `at` waited for.  A slice without length can hold no end of an arrow: so
 * a copy that takes no time is passed through, to what had made its data.  Those that have been looked at for this
 * consumer are marked in drawn_for. */
static void put_arrows(struct chrome *c, size_t at, size_t consumer)
{
    const struct trace *t = c->trace;
    const struct trace_record *r = &t->records[at];
    const struct trace_task *k = &t->tasks[r->task];
    for (uint32_t e = k->first_edge; e < k->first_edge + k->n_edges; e++) {
        const struct trace_edge *edge = &t->edges[e];
        int64_t producer = trace_find_before(t, edge->from, r->step - (edge->previous_step != 0), at);
        if (producer == NO_RECORD || !is_shown(c, &t->records[producer]) || c->drawn_for[producer] == consumer)
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

/* "2:4", "2:", ":4" or "2"; NULL: all steps. */
static void parse_steps(const char *text, int64_t *first, int64_t *last)
{
    char *begin = copy_string(text ? text : ":"), *end = begin;
    strsep(&end, ":"); /* NULL: one step */
    bool good = (end && !*begin) || parse_int(begin, first);
    if (!end)
        *last = *first;
    else if (*end)
        good &= parse_int(end, last);
    if (!good || *first < 1 || *last < *first || *last > UINT32_MAX)
        fail(EXIT_USAGE, "--steps takes A:B, two step numbers that count from 1 with A at most B, not \"%s\"", text);
    free(begin);
}

int trace_export(char **files)
{
    const char *path = files[0], *chrome = trace_options.chrome;
    int64_t first = 1, last = UINT32_MAX, has_first = 0, has_last = 0;
    if (!chrome)
        fail(EXIT_USAGE, "yard trace export needs --chrome OUT.json.gz, the file to write");
    parse_steps(trace_options.steps, &first, &last);
    struct trace *t = trace_open_modelled(path);
    uint32_t chosen = trace_list(t, path, trace_options.list);
    const struct trace_step_list *steps = &t->steps[chosen];
    if (steps->n)
        has_first = steps->step[0].step, has_last = steps->step[steps->n - 1].step;
    if (t->n_records && (first > has_last || last < has_first))
        fail(EXIT_USAGE,
             "the trace %s holds the steps %" PRId64 " to %" PRId64 " of list %s, none that --steps asks for", path,
             has_first, has_last, t->header.list[chosen]);
    struct chrome c = {.trace = t, .path = chrome, .list = chosen, .first = first, .last = last};
    mend_records(&c);

    expect_replaceable("--chrome", chrome, KIND_CHROME, "trace for browsers");
    struct writer *file = open_writer(chrome);
    int fd = dup(file->fd); /* gzclose closes its own; publish() still needs the other */
    c.out = fd < 0 ? NULL : gzdopen(fd, ends_with(chrome, ".gz") ? "wb6" : "wbT");
    if (!c.out)
        fail(EXIT_IO, "cannot write %s: %s", chrome, strerror(errno));
    put(&c, "{\"displayTimeUnit\":\"ns\",\"otherData\":");
    put_json(&c, json_pack("{s:s, s:s, s:I}", "model", t->header.model, "kind", trace_kind_name(t), "lost_records",
                           (json_int_t)MIN(t->n_lost, INT64_MAX)));
    put(&c, ",\"traceEvents\":[");
    put_lanes(&c);
    for (size_t i = 0; i < t->n_records; i++)
        if (is_shown(&c, &t->records[i]))
            put_slice(&c, i);
    for (uint32_t device = 0; device < t->header.n_devices && c.end; device++)
        put_memory(&c, device);
    c.drawn_for = allocate(t->n_records + 1, sizeof *c.drawn_for);
    for (size_t i = 0; i < t->n_records; i++)
        c.drawn_for[i] = SIZE_MAX;
    for (size_t i = 0; i < t->n_records; i++) /* behind all slices */
        if (is_shown(&c, &t->records[i]) && has_length(&t->records[i]))
            put_arrows(&c, i, i);
    free(c.drawn_for);
    put(&c, "\n]}\n");
    if (gzclose(c.out) != Z_OK)
        fail(EXIT_IO, "cannot write %s: %s", chrome, strerror(errno));
    publish(file);
    print_line(stdout, "wrote %s, steps %" PRId64 " to %" PRId64 " of list %s: open it at ui.perfetto.dev", chrome,
               MAX(first, has_first), MIN(last, has_last), t->header.list[chosen]);
    return EXIT_OK;
}
