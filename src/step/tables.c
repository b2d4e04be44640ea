/* tables.c - the trace's tables from finished lists. */
#include "step.h"

#include <stdlib.h>
#include <string.h>

enum { RING_RECORDS = 1 << 20 };

static void fill_lanes(const struct machine *m, struct trace_lane *lanes)
{
    for (int i = 0; i < m->n_lanes; i++) {
        const struct lane *l = m->lane[i];
        lanes[i].kind = (uint32_t)l->kind;
        lanes[i].device_index = (uint32_t)l->device->index;
        snprintf(lanes[i].name, sizeof lanes[i].name, "%s", l->name);
        snprintf(lanes[i].device, sizeof lanes[i].device, "%.79s", l->device->name);
    }
}

static void fill_task(struct trace_task *to, const struct task *t, uint32_t list, uint32_t first_edge)
{
    *to = (struct trace_task){.layer = t->layer,
                              .micro = t->micro,
                              .lane = (uint32_t)t->lane->index,
                              .list = list,
                              .flops = t->flops,
                              .bytes = t->bytes,
                              .first_edge = first_edge,
                              .n_edges = (uint32_t)t->n_edges};
    snprintf(to->name, sizeof to->name, "%s", t->name);
}

static size_t count_edges(struct step *const *steps, size_t n, size_t *n_tasks)
{
    size_t edges = 0;
    *n_tasks = 0;
    for (size_t k = 0; k < n; k++) {
        *n_tasks += steps[k]->n;
        for (size_t i = 0; i < steps[k]->n; i++)
            edges += steps[k]->task[i]->n_edges;
    }
    return edges;
}

struct trace_writer *start_trace(const char *path, const struct machine *m, struct step **steps, size_t n,
                                 const char *model, enum trace_kind kind, double pace_scale)
{
    size_t n_tasks, n_edges = count_edges(steps, n, &n_tasks), task = 0, edge = 0;
    struct trace_lane *lanes = allocate((size_t)m->n_lanes, sizeof *lanes);
    struct trace_task *tasks = allocate(n_tasks, sizeof *tasks);
    struct trace_edge *edges = allocate(n_edges, sizeof *edges);
    const char **lists = allocate(n, sizeof *lists);
    fill_lanes(m, lanes);
    for (size_t k = 0; k < n; k++) {
        uint32_t first = steps[k]->first_trace_task = (uint32_t)task;
        lists[k] = steps[k]->name;
        for (size_t i = 0; i < steps[k]->n; i++) {
            const struct task *t = steps[k]->task[i];
            fill_task(&tasks[task++], t, (uint32_t)k, (uint32_t)edge);
            for (size_t e = 0; e < t->n_edges; e++)
                edges[edge++] =
                    (struct trace_edge){first + t->edges[e].from, t->edges[e].previous, t->edges[e].kind == EDGE_REUSE};
        }
    }
    struct trace_tables tables = {.kind = kind,
                                  .pace_scale = pace_scale,
                                  .model = model,
                                  .n_lanes = (size_t)m->n_lanes,
                                  .n_tasks = n_tasks,
                                  .n_edges = n_edges,
                                  .n_lists = n,
                                  .lanes = lanes,
                                  .tasks = tasks,
                                  .edges = edges,
                                  .lists = lists};
    struct trace_writer *w = trace_create(path, &tables, RING_RECORDS);
    free(lanes), free(tasks), free(edges), free(lists);
    return w;
}
