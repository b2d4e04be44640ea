/* tables.c - the trace's tables from finished lists. */
#include "step.h"

enum { RING_RECORDS = 1 << 20 };

static void fill_devices(const struct machine *m, struct trace_device *devices)
{
    for (int i = 0; i <= m->n_devices; i++) {
        const struct device *d = &m->device[i];
        devices[i].budget = d->budget;
        snprintf(devices[i].id, sizeof devices[i].id, "%s", d->id);
        snprintf(devices[i].name, sizeof devices[i].name, "%.79s", d->name);
    }
}

static void fill_lanes(const struct machine *m, struct trace_lane *lanes)
{
    for (int i = 0; i < m->n_lanes; i++) {
        const struct lane *l = m->lane[i];
        bool computes = l->kind == LANE_COMPUTE;
        const struct link *link = computes ? NULL : l->device->link[l->kind == LANE_UPLOAD ? LINK_UP : LINK_DOWN];
        lanes[i].kind = (uint32_t)l->kind;
        lanes[i].device_index = (uint32_t)l->device->index;
        lanes[i].flops_per_s = computes ? l->device->flops_per_s : 0;
        lanes[i].bytes_per_s = computes ? l->device->bytes_per_s : link ? link->rate : 0;
        snprintf(lanes[i].name, sizeof lanes[i].name, "%s", l->name);
    }
}

/* "512x1024" behind what is there, cut to the field. */
static void add_shape(char *text, size_t size, const char *before, const struct tensor *t)
{
    size_t used = strlen(text);
    used += (size_t)snprintf(text + used, size - used, "%s", before);
    for (int i = 0; i < t->rank && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", i ? "x" : "", (long long)t->shape[i]);
}

/* What is written, then what is read. */
static void fill_shape(char *text, size_t size, const struct task *t)
{
    for (int i = 0; i < t->n_access; i++)
        if (t->access[i].mode & ACCESS_WRITE)
            add_shape(text, size, *text ? ", " : "", t->access[i].tensor);
    const char *before = *text ? " <- " : "<- ";
    for (int i = 0; i < t->n_access; i++)
        if (t->access[i].mode == ACCESS_READ) {
            add_shape(text, size, before, t->access[i].tensor);
            before = ", ";
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
                              .n_edges = (uint32_t)t->n_edges,
                              .role = (uint32_t)t->role};
    snprintf(to->name, sizeof to->name, "%s", t->name);
    fill_shape(to->shape, sizeof to->shape, t);
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

struct entries {
    struct trace_memory *entry;
    size_t n, cap;
};

/* What device d holds, by task. */
static void add_entries(struct entries *e, const struct step *s, uint32_t list, int d)
{
    for (const struct level *l = s->level; l < s->level + s->n_levels; l++) {
        if (l->device != d)
            continue;
        struct trace_memory *m = APPEND(e->entry, e->n, e->cap);
        *m = (struct trace_memory){
            .list = list, .device = (uint32_t)d, .task = s->first_trace_task + (uint32_t)l->position};
        for (int c = 0; c < MEM_CLASSES; c++)
            m->bytes[c] = l->of_class[c];
    }
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

/* The tasks and edges of list k, behind those there are. */
static void fill_list(struct step *s, uint32_t k, const struct trace_about *about, struct trace_task *tasks,
                      size_t *n_tasks, struct trace_edge *edges, size_t *n_edges)
{
    uint32_t first = s->first_trace_task = (uint32_t)*n_tasks;
    for (size_t i = 0; i < s->n; i++) {
        const struct task *t = s->task[i];
        struct trace_task *to = &tasks[(*n_tasks)++];
        fill_task(to, t, k, (uint32_t)*n_edges);
        to->predicted_ns = about->predicted ? about->predicted(about->context, t) : 0;
        for (size_t e = 0; e < t->n_edges; e++)
            edges[(*n_edges)++] =
                (struct trace_edge){first + t->edges[e].from, t->edges[e].previous, t->edges[e].kind == EDGE_REUSE};
    }
}

_Static_assert((int)ROLES <= (int)TRACE_ROLES && (int)MEM_CLASSES <= (int)TRACE_CLASSES, "names in a trace's header");

static void fill_header(struct trace_header *h, struct step *const *steps, size_t n, const struct trace_about *about)
{
    CHECK(n <= TRACE_LISTS, "%zu lists", n);
    *h = (struct trace_header){.kind = about->kind,
                               .pace_scale = about->pace_scale,
                               .n_lists = (uint32_t)n,
                               .n_roles = ROLES,
                               .n_classes = MEM_CLASSES};
    snprintf(h->model, sizeof h->model, "%s", about->model);
    for (size_t i = 0; i < n; i++)
        snprintf(h->list[i], sizeof h->list[i], "%s", steps[i]->name);
    for (size_t i = 0; i < ROLES; i++)
        snprintf(h->role[i], sizeof h->role[i], "%s", role_name[i]);
    for (size_t i = 0; i < MEM_CLASSES; i++)
        snprintf(h->memory[i], sizeof h->memory[i], "%s", memory_class_name[i]);
}

struct trace_writer *start_trace(const char *path, const struct machine *m, struct step **steps, size_t n,
                                 const struct trace_about *about)
{
    size_t n_tasks, n_edges = count_edges(steps, n, &n_tasks), task = 0, edge = 0;
    struct trace t = {.devices = allocate((size_t)m->n_devices + 1, sizeof *t.devices),
                      .lanes = allocate((size_t)m->n_lanes, sizeof *t.lanes),
                      .tasks = allocate(n_tasks, sizeof *t.tasks),
                      .edges = allocate(n_edges, sizeof *t.edges)};
    struct entries memory = {.n = 0};
    fill_header(&t.header, steps, n, about);
    fill_devices(m, t.devices);
    fill_lanes(m, t.lanes);
    for (size_t k = 0; k < n; k++) {
        fill_list(steps[k], (uint32_t)k, about, t.tasks, &task, t.edges, &edge);
        for (int d = 0; d <= m->n_devices; d++)
            add_entries(&memory, steps[k], (uint32_t)k, d);
    }
    t.memory = memory.entry;
    t.header.n_devices = (uint32_t)m->n_devices + 1;
    t.header.n_lanes = (uint32_t)m->n_lanes;
    t.header.n_tasks = (uint32_t)n_tasks;
    t.header.n_edges = (uint32_t)n_edges;
    t.header.n_memory = (uint32_t)memory.n;
    struct trace_writer *w = trace_create(path, &t, RING_RECORDS);
    free(t.devices), free(t.lanes), free(t.tasks), free(t.edges), free(t.memory);
    return w;
}
