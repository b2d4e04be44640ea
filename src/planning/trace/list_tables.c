/* list_tables.c - makes a trace's tables of tasks, edges, lanes and tensors from finished lists. */
#include "list_tables.h"
#include "planning/pass/uses.h"

#include <stdarg.h>

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
static void add_shape(char *out, size_t size, const struct tensor *tensor)
{
    if (tensor->device->extra.described.by_hand) {
        add_text(out, size, "%s", tensor->name);
        return;
    }
    for (int i = 0; i < tensor->shape.n_dims; i++)
        add_text(out, size, "%s%lld", i ? "x" : "", (long long)tensor->shape.size[i]);
}

/* "512x1024 <- 512x256, 1024x256": the tensors that the task writes, then those that it reads; it may be cut. */
static void fill_shape(char *out, size_t size, const struct task *task)
{
    const char *before = "";
    out[0] = '\0';
    for (int i = 0; i < task->n_accesses; i++) {
        if (task->accesses[i].mode == ACCESS_READ)
            continue;
        add_text(out, size, "%s", before);
        add_shape(out, size, task->accesses[i].tensor);
        before = ", ";
    }
    before = *before ? " <- " : "<- ";
    for (int i = 0; i < task->n_accesses; i++) {
        if (task->accesses[i].mode != ACCESS_READ)
            continue;
        add_text(out, size, "%s", before);
        add_shape(out, size, task->accesses[i].tensor);
        before = ", ";
    }
}

/* Is it a backward that makes only gradients of weights?  The other half of a backward reads the weights, and so
 * does a whole backward. */
static bool is_of_weights(const struct task *task)
{
    bool any = false;
    for (int i = 0; i < task->n_accesses; i++) {
        enum memory_class class = task->accesses[i].tensor->class;
        any |= class == MEM_GRADIENTS;
        if (class == MEM_PARAMETERS)
            return false;
    }
    return any && task->role == ROLE_BACKWARD;
}

static void fill_lane(struct trace_lane *to, const struct lane *lane)
{
    const struct device *device = lane->device;
    const struct link *link = link_of_lanes(device, lane->kind);
    double rate = link ? link->rate : 0;
    bool computes = lane->kind == LANE_COMPUTE;
    *to = (struct trace_lane){.kind = (uint32_t)lane->kind,
                              .device_index = (uint32_t)device->index,
                              .flops_per_s = computes ? device->flops_per_s : 0,
                              .bytes_per_s = computes ? device->bytes_per_s : rate};
    snprintf(to->name, sizeof to->name, "%s", lane->name);
}

/* Adds the tasks and edges of list k to those of the lists before. */
static void fill_list(struct trace *tables, const struct list *list, uint32_t k, const struct trace_about *about)
{
    struct trace_header *header = &tables->header;
    uint32_t first = header->n_tasks;
    for (size_t i = 0; i < list->n; i++) {
        const struct task *task = list->tasks[i];
        struct trace_task *to = &tables->tasks[header->n_tasks];
        header->n_tasks++;
        *to = (struct trace_task){.layer = task->layer,
                                  .micro = task->micro,
                                  .lane = (uint32_t)task->lane->index,
                                  .list = k,
                                  .flops = task->flops,
                                  .bytes = is_copy(task) ? MIN(task->bytes, copy_target(task)->bytes) : task->bytes,
                                  .predicted_ns = about->predicted ? about->predicted(about->context, task) : 0,
                                  .first_edge = header->n_edges,
                                  .n_edges = (uint32_t)task->n_edges,
                                  .role = (uint32_t)task->role,
                                  .of_weights = is_of_weights(task)};
        snprintf(to->name, sizeof to->name, "%s", task->name);
        fill_shape(to->shape, sizeof to->shape, task);
        for (const struct edge *edge = task->edges; edge < task->edges + task->n_edges; edge++)
            tables->edges[header->n_edges++] = (struct trace_edge){
                .producer = first + edge->producer, .previous_step = edge->previous, .reuse = edge->kind == EDGE_REUSE};
    }
}

/* Adds a tensor with its uses in list number `list`; first_task: the index of that list's task 0.  A tensor that
 * persists is held all the time, so it gets no uses. */
static void fill_tensor(struct trace *tables, const struct tensor *tensor, uint32_t list, const struct uses *uses,
                        uint32_t first_task)
{
    struct trace_header *header = &tables->header;
    struct trace_tensor *to = &tables->tensors[header->n_tensors];
    header->n_tensors++;
    struct use_range found = {0};
    if (!tensor->persistent)
        found = uses_of(uses, tensor);
    *to = (struct trace_tensor){.device = (uint32_t)tensor->device->index,
                                .class = tensor->class,
                                .list = tensor->persistent ? 0 : list,
                                .bytes = tensor->bytes,
                                .first_use = header->n_uses,
                                .n_uses = (uint32_t)found.n};
    snprintf(to->name, sizeof to->name, "%s", tensor->name);
    for (size_t i = 0; i < found.n; i++)
        tables->uses[header->n_uses++] = first_task + (uint32_t)found.uses[i].position;
}

/* Adds the tensors of the pool.  Views are parts of others, so they are left out, and so are tensors that belong to
 * none of these lists.  first: by list, the index of its task 0. */
static void fill_tensors(struct trace *tables, struct list *const *lists, size_t n, const uint32_t *first)
{
    const struct pool *pool = lists[0]->pool;
    struct uses **uses = allocate(n, sizeof *uses); /* by list */
    size_t most = 0;
    for (size_t k = 0; k < n; k++) {
        uses[k] = new_uses(lists[k]->tasks, lists[k]->n, pool);
        most += uses[k]->first[pool->n];
    }
    tables->tensors = allocate(pool->n, sizeof *tables->tensors);
    tables->uses = allocate(most, sizeof *tables->uses);
    for (size_t i = 0; i < pool->n; i++) {
        const struct tensor *tensor = pool->tensors[i];
        if (tensor->storage != tensor)
            continue;
        uint32_t list = 0;
        while (list < n && lists[list] != tensor->list)
            list++;
        if (list < n)
            fill_tensor(tables, tensor, list, uses[list], first[list]);
        else if (tensor->persistent)
            fill_tensor(tables, tensor, 0, NULL, 0);
    }
    for (size_t k = 0; k < n; k++)
        free_uses(uses[k]);
    free(uses);
}

_Static_assert((int)ROLES <= (int)TRACE_ROLES && (int)MEM_CLASSES <= (int)TRACE_CLASSES, "names in a trace's header");

/* The tables for n_tasks tasks and n_edges edges, empty, and what the header says of their numbers. */
static struct trace *allocate_tables(const struct machine *machine, size_t n_lists, size_t n_tasks, size_t n_edges,
                                     const struct trace_about *about)
{
    int n_devices = machine->n_devices + 1; /* with the host */
    int n_lanes = machine->n_lanes;
    struct trace *trace = allocate(1, sizeof *trace);
    *trace = (struct trace){.header = {.kind = about->kind,
                                       .pace_scale = about->pace_scale,
                                       .n_devices = (uint32_t)n_devices,
                                       .n_lanes = (uint32_t)n_lanes,
                                       .n_lists = (uint32_t)n_lists,
                                       .n_roles = ROLES,
                                       .n_classes = MEM_CLASSES},
                            .devices = allocate_each(n_devices, sizeof *trace->devices),
                            .lanes = allocate_each(n_lanes, sizeof *trace->lanes),
                            .tasks = allocate(n_tasks, sizeof *trace->tasks),
                            .edges = allocate(n_edges, sizeof *trace->edges),
                            .memory_use = allocate_each(n_devices, sizeof *trace->memory_use),
                            .bars = allocate_each(n_lanes, sizeof *trace->bars),
                            .runs = allocate(n_tasks, sizeof *trace->runs)};
    return trace;
}

static void fill_names(struct trace_header *header, const struct trace_about *about)
{
    snprintf(header->model, sizeof header->model, "%s", about->model);
    for (size_t i = 0; i < ROLES; i++)
        snprintf(header->role[i], sizeof header->role[i], "%s", role_name[i]);
    for (size_t i = 0; i < MEM_CLASSES; i++)
        snprintf(header->memory[i], sizeof header->memory[i], "%s", memory_class_name[i]);
}

struct trace *new_trace_of_lists(const struct machine *machine, struct list **lists, size_t n,
                                 const struct trace_about *about)
{
    size_t n_tasks = 0, n_edges = 0;
    uint32_t first[TRACE_LISTS];
    CHECK(n <= TRACE_LISTS, "%zu lists", n);
    for (size_t k = 0; k < n; k++) {
        first[k] = (uint32_t)n_tasks;
        n_tasks += lists[k]->n;
        n_edges += lists[k]->n_edges;
    }
    struct trace *trace = allocate_tables(machine, n, n_tasks, n_edges, about);
    fill_names(&trace->header, about);
    for (int i = 0; i <= machine->n_devices; i++) {
        struct trace_device *to = &trace->devices[i];
        to->budget = machine->devices[i].budget;
        snprintf(to->id, sizeof to->id, "%s", machine->devices[i].id);
        snprintf(to->name, sizeof to->name, "%.79s", machine->devices[i].name);
    }
    for (int i = 0; i < machine->n_lanes; i++)
        fill_lane(&trace->lanes[i], machine->lanes[i]);
    for (size_t k = 0; k < n; k++) {
        snprintf(trace->header.list[k], sizeof trace->header.list[k], "%s", lists[k]->name);
        fill_list(trace, lists[k], (uint32_t)k, about);
    }
    fill_tensors(trace, lists, n, first);
    return trace;
}
