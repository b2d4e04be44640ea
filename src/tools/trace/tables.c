/* tables.c - makes a trace's tables of tasks, edges, lanes and tensors from finished lists. */
#include "tables.h"
#include "techniques/pass/uses.h"

/* Adds to the text in `out`, as far as there is room. */
PRINTF_LIKE(3, 4) static void add_text(char *out, size_t size, const char *format, ...)
{
    size_t used = strlen(out);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out + used, size - used, format, arguments);
    va_end(arguments);
}

/* "512x1024", or in a step file the name. */
static void add_shape(char *out, size_t size, const struct tensor *x)
{
    if (x->device->described.by_hand) {
        add_text(out, size, "%s", x->name);
        return;
    }
    for (int i = 0; i < x->shape.n_dims; i++)
        add_text(out, size, "%s%lld", i ? "x" : "", (long long)x->shape.size[i]);
}

/* "512x1024 <- 512x256, 1024x256": the tensors that the task writes, then those that it reads; it may be cut. */
static void fill_shape(char *out, size_t size, const struct task *t)
{
    const char *before = "";
    out[0] = '\0';
    for (int i = 0; i < t->n_access; i++) {
        if (t->access[i].mode == ACCESS_READ)
            continue;
        add_text(out, size, "%s", before);
        add_shape(out, size, t->access[i].tensor);
        before = ", ";
    }
    before = *before ? " <- " : "<- ";
    for (int i = 0; i < t->n_access; i++) {
        if (t->access[i].mode != ACCESS_READ)
            continue;
        add_text(out, size, "%s", before);
        add_shape(out, size, t->access[i].tensor);
        before = ", ";
    }
}

static void fill_lane(struct trace_lane *to, const struct lane *l)
{
    const struct device *d = l->device;
    const struct link *link = link_of_lanes(d, l->kind);
    double rate = link ? link->rate : 0;
    bool computes = l->kind == LANE_COMPUTE;
    *to = (struct trace_lane){.kind = (uint32_t)l->kind,
                              .device_index = (uint32_t)d->index,
                              .flops_per_s = computes ? d->flops_per_s : 0,
                              .bytes_per_s = computes ? d->bytes_per_s : rate};
    snprintf(to->name, sizeof to->name, "%s", l->name);
}

/* Adds the tasks and edges of list k to those of the lists before. */
static void fill_list(struct trace *tables, const struct step *s, uint32_t k, const struct trace_about *about)
{
    struct trace_header *h = &tables->header;
    const uint32_t first = h->n_tasks;
    for (size_t i = 0; i < s->n; i++) {
        const struct task *t = s->task[i];
        struct trace_task *to = &tables->tasks[h->n_tasks++];
        *to = (struct trace_task){.layer = t->layer,
                                  .micro = t->micro,
                                  .lane = (uint32_t)t->lane->index,
                                  .list = k,
                                  .flops = t->flops,
                                  .bytes = is_copy(t) ? MIN(t->bytes, copy_target(t)->bytes) : t->bytes,
                                  .predicted_ns = about->predicted ? about->predicted(about->context, t) : 0,
                                  .first_edge = h->n_edges,
                                  .n_edges = (uint32_t)t->n_edges,
                                  .role = (uint32_t)t->role};
        snprintf(to->name, sizeof to->name, "%s", t->name);
        fill_shape(to->shape, sizeof to->shape, t);
        for (size_t e = 0; e < t->n_edges; e++) {
            const struct edge *edge = &t->edges[e];
            tables->edges[h->n_edges++] = (struct trace_edge){
                .producer = first + edge->producer, .previous_step = edge->previous, .reuse = edge->kind == EDGE_REUSE};
        }
    }
}

/* Adds a tensor with its uses in list number `list`; first_task: the index of that list's task 0.  A tensor that
 * persists is held all the time, so it gets no uses. */
static void fill_tensor(struct trace *tables, const struct tensor *x, uint32_t list, const struct uses *uses,
                        uint32_t first_task)
{
    struct trace_header *h = &tables->header;
    struct trace_tensor *to = &tables->tensors[h->n_tensors++];
    size_t n_uses = 0;
    const struct use *use = x->persistent ? NULL : uses_of(uses, x, &n_uses);
    *to = (struct trace_tensor){.device = (uint32_t)x->device->index,
                                .class = x->class,
                                .list = x->persistent ? 0 : list,
                                .bytes = x->bytes,
                                .first_use = h->n_uses,
                                .n_uses = (uint32_t)n_uses};
    snprintf(to->name, sizeof to->name, "%s", x->name);
    for (size_t i = 0; i < n_uses; i++)
        tables->uses[h->n_uses++] = first_task + (uint32_t)use[i].position;
}

/* Adds the tensors of the pool.  Views are parts of others, so they are left out, and so are tensors that belong to
 * none of these lists.  first: by list, the index of its task 0. */
static void fill_tensors(struct trace *tables, struct step *const *steps, size_t n, const uint32_t *first)
{
    const struct pool *p = steps[0]->pool;
    struct uses **uses = allocate(n, sizeof *uses); /* by list */
    size_t most = 0;
    for (size_t k = 0; k < n; k++) {
        uses[k] = find_uses(steps[k]->task, steps[k]->n, p);
        most += uses[k]->first[p->n];
    }
    tables->tensors = allocate(p->n, sizeof *tables->tensors);
    tables->uses = allocate(most, sizeof *tables->uses);
    for (size_t i = 0; i < p->n; i++) {
        const struct tensor *x = p->tensors[i];
        if (x->storage != x)
            continue;
        uint32_t list = 0;
        while (list < n && steps[list] != x->step)
            list++;
        if (list < n)
            fill_tensor(tables, x, list, uses[list], first[list]);
        else if (x->persistent)
            fill_tensor(tables, x, 0, NULL, 0);
    }
    for (size_t k = 0; k < n; k++)
        free_uses(uses[k]);
    free(uses);
}

_Static_assert((int)ROLES <= (int)TRACE_ROLES && (int)MEM_CLASSES <= (int)TRACE_CLASSES, "names in a trace's header");

/* The tables for so many tasks and edges, empty, and what the header says of their numbers. */
static struct trace *allocate_tables(const struct machine *m, size_t n_lists, size_t n_tasks, size_t n_edges,
                                     const struct trace_about *about)
{
    const size_t n_devices = (size_t)m->n_devices + 1; /* with the host */
    const size_t n_lanes = (size_t)m->n_lanes;
    struct trace *t = allocate(1, sizeof *t);
    *t = (struct trace){.header = {.kind = about->kind,
                                   .pace_scale = about->pace_scale,
                                   .n_devices = (uint32_t)n_devices,
                                   .n_lanes = (uint32_t)n_lanes,
                                   .n_lists = (uint32_t)n_lists,
                                   .n_roles = ROLES,
                                   .n_classes = MEM_CLASSES},
                        .devices = allocate(n_devices, sizeof *t->devices),
                        .lanes = allocate(n_lanes, sizeof *t->lanes),
                        .tasks = allocate(n_tasks, sizeof *t->tasks),
                        .edges = allocate(n_edges, sizeof *t->edges),
                        .memory_use = allocate(n_devices, sizeof *t->memory_use),
                        .bars = allocate(n_lanes, sizeof *t->bars),
                        .runs = allocate(n_tasks, sizeof *t->runs)};
    return t;
}

static void fill_names(struct trace_header *h, const struct trace_about *about)
{
    snprintf(h->model, sizeof h->model, "%s", about->model);
    for (size_t i = 0; i < ROLES; i++)
        snprintf(h->role[i], sizeof h->role[i], "%s", role_name[i]);
    for (size_t i = 0; i < MEM_CLASSES; i++)
        snprintf(h->memory[i], sizeof h->memory[i], "%s", memory_class_name[i]);
}

struct trace *trace_tables(const struct machine *m, struct step **steps, size_t n, const struct trace_about *about)
{
    size_t n_tasks = 0, n_edges = 0;
    uint32_t first[TRACE_LISTS];
    CHECK(n <= TRACE_LISTS, "%zu lists", n);
    for (size_t k = 0; k < n; k++) {
        first[k] = (uint32_t)n_tasks;
        n_tasks += steps[k]->n;
        n_edges += steps[k]->n_edges;
    }
    struct trace *t = allocate_tables(m, n, n_tasks, n_edges, about);
    fill_names(&t->header, about);
    for (int i = 0; i <= m->n_devices; i++) {
        struct trace_device *to = &t->devices[i];
        to->budget = m->device[i].budget;
        snprintf(to->id, sizeof to->id, "%s", m->device[i].id);
        snprintf(to->name, sizeof to->name, "%.79s", m->device[i].name);
    }
    for (int i = 0; i < m->n_lanes; i++)
        fill_lane(&t->lanes[i], m->lane[i]);
    for (size_t k = 0; k < n; k++) {
        snprintf(t->header.list[k], sizeof t->header.list[k], "%s", steps[k]->name);
        fill_list(t, steps[k], (uint32_t)k, about);
    }
    fill_tensors(t, steps, n, first);
    return t;
}
