/* trace_ports.c - how fast new parameters travelled: the tasks of role broadcast, by the device and kind of their lane.
 *
 * A port's lanes are its queues.  Its speed is its bytes of a step over the time from the first one's start to the last
 * one's end, and its share is of what the link carries, where the trace knows that.
 */
#include "../base/table.h"
#include "../trace/trace.h"
#include "cmd.h"

#include <math.h>

struct port {       /* lanes of one kind of one device */
    uint64_t lanes; /* bit set: the first 64 */
    size_t copies;
    double bytes, link;     /* link: bytes per second, 0: not known */
    uint64_t *first, *last; /* by counted step */
};

static void add_copy_to(struct port *p, const struct trace *t, const struct trace_steps *s,
                        const struct trace_record *r)
{
    const struct trace_task *task = &t->tasks[r->task];
    size_t i = 0;
    while (s->steps[s->first + i].step != r->step)
        i++;
    if (!p->first) {
        p->first = allocate(s->counted, sizeof *p->first);
        p->last = allocate(s->counted, sizeof *p->last);
    }
    p->first[i] = p->last[i] ? MIN(p->first[i], r->start) : r->start;
    p->last[i] = MAX(p->last[i], r->end);
    p->lanes |= (uint64_t)1 << task->lane % 64;
    p->copies++;
    p->bytes += (double)task->bytes / 2; /* read and written */
    p->link = t->lanes[task->lane].kind == LANE_COMPUTE ? 0 : t->lanes[task->lane].bytes_per_s;
}

static double span_ns(const struct port *p, const struct trace_steps *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->counted; i++)
        sum += (double)(p->last[i] - p->first[i]);
    return sum;
}

struct table *port_table(const struct trace *t, const struct trace_steps *s)
{
    static const struct column columns[] = {
        {"broadcast", "device", CELL_TEXT, 23, 0}, {"lanes", "kind", CELL_TEXT, 9, 0},
        {"queues", "queues", CELL_COUNT, 6, 0},    {"copies/step", "copies", CELL_SHORT, 11, 0},
        {"MB/step", "mbytes", CELL_FIXED, 9, 3},   {"ms/step", "ms", CELL_FIXED, 9, 3},
        {"GB/s", "gbytes_per_s", CELL_RATE, 8, 2}, {"of the link", "of_link", CELL_SHARE, 11, 0}};
    static const char *const kinds[] = {"compute", "upload", "download"};
    struct table *table = new_table(columns, COUNT(columns));
    struct port *ports = allocate(t->header.n_devices * COUNT(kinds), sizeof *ports);
    for (size_t i = 0; i < t->n_records; i++) {
        const struct trace_task *task = &t->tasks[t->records[i].task];
        const struct trace_lane *l = &t->lanes[task->lane];
        if (l->kind < COUNT(kinds) && strcmp(t->header.role[task->role], "broadcast") == 0 && trace_counts(t, s, i))
            add_copy_to(&ports[l->device_index * COUNT(kinds) + l->kind], t, s, &t->records[i]);
    }
    for (size_t i = 0; i < t->header.n_devices * COUNT(kinds); i++) {
        const struct port *p = &ports[i];
        double ns = p->copies ? span_ns(p, s) : 0, n = (double)s->counted;
        if (p->copies)
            ROW(table, text_cell(t->devices[i / COUNT(kinds)].id), text_cell(kinds[i % COUNT(kinds)]),
                number_cell(__builtin_popcountll(p->lanes)), number_cell((double)p->copies / n),
                number_cell(p->bytes / n / 1e6), number_cell(ns / n / 1e6), number_cell(p->bytes / ns),
                number_cell(p->link > 0 ? 1e9 * p->bytes / ns / p->link : NAN));
        free(p->first), free(p->last);
    }
    free(ports);
    return table;
}
