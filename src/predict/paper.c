/* paper.c - a machine as a hardware description has it, without OpenCL: for plans of machines that are not here. */
#include "predict.h"

#include <stdlib.h>

static void add_paper_lane(struct machine *m, struct device *d, enum lane_kind kind)
{
    char *id = copy_string(d->id); /* (the compiler cannot see that the two do not overlap) */
    struct lane *lane = &m->lane[m->n_lanes];
    lane->index = m->n_lanes++;
    lane->kind = kind;
    lane->device = d;
    d->lane[kind] = lane;
    snprintf(lane->name, sizeof lane->name, "%s %s", id, lane_kind_name[kind]);
    free(id);
}

static void add_paper_device(struct machine *m, const struct costs *c, int index)
{
    struct device *d = &m->device[index];
    snprintf(d->id, sizeof d->id, "%s.%d", c->name, index);
    snprintf(d->name, sizeof d->name, "%s", c->name);
    d->index = index;
    d->context = &m->context[index]; /* each its own: moves are staged through the host */
    d->context->index = index;
    d->units = 1;
    d->vector = d->work_group = 1;
    d->tile_rows = d->tile_vectors = 4;
    d->alignment = DEVICE_ALIGNMENT;
    d->memory = d->budget = c->memory;
    d->max_allocation = c->memory;
    d->local_memory = 32768;
    for (enum lane_kind kind = LANE_COMPUTE; kind <= LANE_DOWNLOAD; kind++)
        add_paper_lane(m, d, kind);
}

struct machine *virtual_machine(const struct costs *c, int n_devices)
{
    struct machine *m = allocate(1, sizeof *m);
    if (c->measured)
        fail(EXIT_USAGE, "%s is a profile, not a hardware description: give it to --profile", c->path);
    if (n_devices > MAX_DEVICES || n_devices > c->devices)
        fail(EXIT_USAGE, "devices of %s: %lld, and a plan can use %d at most; --mesh asks for %d", c->path,
             (long long)c->devices, MAX_DEVICES, n_devices);
    m->n_devices = m->n_contexts = n_devices;
    for (int i = 0; i < n_devices; i++)
        add_paper_device(m, c, i);
    struct device *h = m->host = &m->device[n_devices];
    h->index = n_devices;
    h->is_host = h->is_cpu = true;
    snprintf(h->id, sizeof h->id, "host");
    snprintf(h->name, sizeof h->name, "host");
    h->alignment = 4096;
    h->memory = h->budget = h->max_allocation = c->host_memory;
    for (enum lane_kind kind = LANE_CPU; kind <= LANE_REPORT; kind++)
        add_paper_lane(m, h, kind);
    return m;
}
