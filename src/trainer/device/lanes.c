/* lanes.c - a machine as devices, lanes and links.  The devices are OpenCL devices (machine.c), or only described, for
 * plans: a described device may have any number of lanes of a kind, and links with speeds of their own.
 */
#include "device.h"

struct machine *new_machine(int n_devices)
{
    struct machine *m = allocate(1, sizeof *m);
    m->device = allocate((size_t)n_devices + 1, sizeof *m->device);
    m->context = allocate((size_t)n_devices + 1, sizeof *m->context);
    m->n_devices = n_devices;
    m->host = &m->device[n_devices];
    return m;
}

struct lane *lane_of(const struct device *d, enum lane_kind kind, int nth)
{
    struct lane *lane = d->lane[kind];
    while (lane && lane->nth != nth)
        lane = lane->next_of_kind;
    return lane;
}

bool is_for(const struct lane *lane, const char *purpose) { return strcmp(lane->purpose, purpose) == 0; }

void set_purpose(struct lane *lane, const char *purpose)
{
    CHECK(strlen(purpose) < sizeof lane->purpose, "the purpose %s is too long", purpose);
    snprintf(lane->purpose, sizeof lane->purpose, "%s", purpose);
}

int count_lanes(const struct device *d, enum lane_kind kind)
{
    int n = 0;
    for (const struct lane *l = d->lane[kind]; l; l = l->next_of_kind)
        n++;
    return n;
}

struct lane *add_lane(struct machine *m, struct device *d, enum lane_kind kind, int nth)
{
    size_t n = (size_t)m->n_lanes;
    struct lane *lane = allocate(1, sizeof *lane);
    *lane = (struct lane){.index = m->n_lanes, .kind = kind, .nth = nth, .device = d};
    if (nth == 0)
        snprintf(lane->name, sizeof lane->name, "%s %s", d->id, lane_kind_name[kind]);
    else
        snprintf(lane->name, sizeof lane->name, "%s %s%d", d->id, lane_kind_name[kind], nth);
    *APPEND(m->lane, n, m->cap_lanes) = lane;
    m->n_lanes = (int)n;
    struct lane **end = &d->lane[kind];
    while (*end)
        end = &(*end)->next_of_kind;
    *end = lane;
    return lane;
}

void choose_tile(struct device *d)
{
    d->shape.tile_rows = 6; /* gemm.cl says why */
    d->shape.tile_vectors = 2;
    if (d->shape.vector == 16)
        d->shape.tile_vectors = 4;
    if (d->shape.vector == 1) {
        d->shape.tile_rows = 4;
        d->shape.tile_vectors = 4;
    }
}

struct device *name_device(struct machine *m, int i, const char *id, size_t memory)
{
    struct device *device = &m->device[i];
    bool host = i == m->n_devices;
    *device = (struct device){
        .index = i,
        .is_host = host,
        .is_cpu = host,
        .units = 1,
        .memory = memory,
        .max_allocation = memory,
        .alignment = 1,
        .budget = memory,
        .shape = {.vector = 1, .work_group = 1, .local_memory = 32768},
    };
    choose_tile(device);
    snprintf(device->id, sizeof device->id, "%s", id);
    snprintf(device->name, sizeof device->name, "%s", id);
    enum lane_kind first = LANE_CPU, last = LANE_FEED;
    if (!host) {
        device->context = &m->context[0];
        first = LANE_COMPUTE;
        last = LANE_DOWNLOAD;
    }
    for (enum lane_kind kind = first; kind <= last; kind++)
        add_lane(m, device, kind, 0);
    return device;
}

/* ---- links ----------------------------------------------------------------------------------------------------- */

struct link *add_link(struct machine *m, double rate, double latency)
{
    struct link *link = allocate(1, sizeof *link);
    *link = (struct link){.index = (int)m->n_links, .rate = rate, .latency = latency};
    *APPEND(m->link, m->n_links, m->cap_links) = link;
    return link;
}

void drop_links(struct machine *m)
{
    for (size_t i = 0; i < m->n_links; i++)
        free(m->link[i]);
    for (int i = 0; i <= m->n_devices; i++) {
        m->device[i].described.link[LINK_UP] = NULL;
        m->device[i].described.link[LINK_DOWN] = NULL;
    }
    m->host->described.disk = NULL;
    m->n_links = 0;
}
