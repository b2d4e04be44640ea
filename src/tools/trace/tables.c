/* tables.c - the trace's tables from finished lists. */
#include "tables.h"
#include "techniques/pass/uses.h"

/* "512x1024 <- 512x256, 1024x256": what is written, then what is read, by name in a step file; cut. */
static void fill_shape(char *text, size_t size, const struct task *t)
{
    size_t used = 0;
    bool arrow = false;
    for (int reading = 0; reading < 2; reading++)
        for (int i = 0; i < t->n_access && used < size; i++) {
            const struct tensor *x = t->access[i].tensor;
            if (reading != (t->access[i].mode == ACCESS_READ))
                continue;
            const bool named = x->device->by_hand;
            const char *before = reading && !arrow ? used ? " <- " : "<- " : used ? ", " : "";
            arrow |= reading;
            used += (size_t)snprintf(text + used, size - used, "%s%s", before, named ? x->name : "");
            for (int k = 0; k < x->rank && used < size && !named; k++)
                used += (size_t)snprintf(text + used, size - used, "%s%lld", k ? "x" : "", (long long)x->shape[k]);
        }
}

static void fill_lane(struct trace_lane *to, const struct lane *l)
{
    const struct device *d = l->device;
    const struct link *link = d->link[l->kind == LANE_UPLOAD ? LINK_UP : LINK_DOWN];
    double rate = link ? link->rate : 0;
    bool computes = l->kind == LANE_COMPUTE;
    *to = (struct trace_lane){.kind = (uint32_t)l->kind,
                              .device_index = (uint32_t)d->index,
                              .flops_per_s = computes ? d->flops_per_s : 0,
                              .bytes_per_s = computes ? d->bytes_per_s : rate};
    snprintf(to->name, sizeof to->name, "%s", l->name);
}

/* The tasks and edges of list k, behind those there are. */
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
                                  .bytes = t->copy ? MIN(t->bytes, t->access[0].tensor->bytes) : t->bytes,
                                  .predicted_ns = about->predicted ? about->predicted(about->context, t) : 0,
                                  .first_edge = h->n_edges,
                                  .n_edges = (uint32_t)t->n_edges,
                                  .role = (uint32_t)t->role};
        snprintf(to->name, sizeof to->name, "%s", t->name);
        fill_shape(to->shape, sizeof to->shape, t);
        for (size_t e = 0; e < t->n_edges; e++)
            tables->edges[h->n_edges++] =
                (struct trace_edge){first + t->edges[e].from, t->edges[e].previous, t->edges[e].kind == EDGE_REUSE};
    }
}

/* The pool's, each once: views are parts of others.  What persists is kept, so it has no uses; what is of no list here
 * is left out.  first: by list, the index of its task 0. */
static void fill_tensors(struct trace *tables, struct step *const *steps, size_t n, const uint32_t *first)
{
    struct trace_header *h = &tables->header;
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
        uint32_t list = 0;
        while (list < n && steps[list] != x->step)
            list++;
        if (x->storage != x || (!x->persistent && list == n))
            continue;
        size_t n_uses = 0;
        const struct use *use = x->persistent ? NULL : uses_of(uses[list], x, &n_uses);
        struct trace_tensor *to = &tables->tensors[h->n_tensors++];
        *to = (struct trace_tensor){.device = (uint32_t)x->device->index,
                                    .class = x->class,
                                    .list = x->persistent ? 0 : list,
                                    .bytes = x->bytes,
                                    .first_use = h->n_uses,
                                    .n_uses = (uint32_t)n_uses};
        snprintf(to->name, sizeof to->name, "%s", x->name);
        for (size_t k = 0; k < n_uses; k++)
            tables->uses[h->n_uses++] = first[list] + (uint32_t)use[k].at;
    }
    for (size_t k = 0; k < n; k++)
        free_uses(uses[k]);
    free(uses);
}

_Static_assert((int)ROLES <= (int)TRACE_ROLES && (int)MEM_CLASSES <= (int)TRACE_CLASSES, "names in a trace's header");

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
    struct trace *t = allocate(1, sizeof *t);
    *t = (struct trace){.header = {.kind = about->kind,
                                   .pace_scale = about->pace_scale,
                                   .n_devices = (uint32_t)m->n_devices + 1,
                                   .n_lanes = (uint32_t)m->n_lanes,
                                   .n_lists = (uint32_t)n,
                                   .n_roles = ROLES,
                                   .n_classes = MEM_CLASSES},
                        .devices = allocate((size_t)m->n_devices + 1, sizeof *t->devices),
                        .lanes = allocate((size_t)m->n_lanes, sizeof *t->lanes),
                        .tasks = allocate(n_tasks, sizeof *t->tasks),
                        .edges = allocate(n_edges, sizeof *t->edges),
                        .held = allocate((size_t)m->n_devices + 1, sizeof *t->held),
                        .bars = allocate((size_t)m->n_lanes, sizeof *t->bars),
                        .runs = allocate(n_tasks, sizeof *t->runs)};
    struct trace_header *h = &t->header;
    snprintf(h->model, sizeof h->model, "%s", about->model);
    for (size_t i = 0; i < ROLES; i++)
        snprintf(h->role[i], sizeof h->role[i], "%s", role_name[i]);
    for (size_t i = 0; i < MEM_CLASSES; i++)
        snprintf(h->memory[i], sizeof h->memory[i], "%s", memory_class_name[i]);
    for (int i = 0; i <= m->n_devices; i++) {
        t->devices[i].budget = m->device[i].budget;
        snprintf(t->devices[i].id, sizeof t->devices[i].id, "%s", m->device[i].id);
        snprintf(t->devices[i].name, sizeof t->devices[i].name, "%.79s", m->device[i].name);
    }
    for (int i = 0; i < m->n_lanes; i++)
        fill_lane(&t->lanes[i], m->lane[i]);
    for (size_t k = 0; k < n; k++) {
        snprintf(h->list[k], sizeof h->list[k], "%s", steps[k]->name);
        fill_list(t, steps[k], (uint32_t)k, about);
    }
    fill_tensors(t, steps, n, first);
    return t;
}
