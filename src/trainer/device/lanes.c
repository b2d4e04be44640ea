/* lanes.c - a machine as devices, lanes and links, whether OpenCL devices stand behind them (machine.c) or only a
 * description of hardware, for plans: then a device has as many lanes of a kind as one likes, and links with speeds of
 * their own.
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
        lane = lane->more;
    return lane;
}

int count_lanes(const struct device *d, enum lane_kind kind)
{
    int n = 0;
    for (const struct lane *l = d->lane[kind]; l; l = l->more)
        n++;
    return n;
}

struct lane *add_lane(struct machine *m, struct device *d, enum lane_kind kind, int nth)
{
    size_t n = (size_t)m->n_lanes++;
    struct lane *lane = *APPEND(m->lane, n, m->cap_lanes) = allocate(1, sizeof *lane), **end = &d->lane[kind];
    while (*end)
        end = &(*end)->more;
    *end = lane;
    *lane = (struct lane){.index = (int)n - 1, .kind = kind, .nth = nth, .device = d};
    snprintf(lane->name, sizeof lane->name, nth ? "%s %s%d" : "%s %s", d->id, lane_kind_name[kind], nth);
    return lane;
}

void choose_tile(struct device *d)
{
    d->tile_rows = d->vector == 1 ? 4 : 6; /* gemm.cl says why */
    d->tile_vectors = d->vector == 16 || d->vector == 1 ? 4 : 2;
}

struct device *name_device(struct machine *m, int i, const char *id, size_t memory)
{
    struct device *d = &m->device[i];
    bool host = i == m->n_devices;
    *d = (struct device){.index = i,
                         .is_host = host,
                         .is_cpu = host,
                         .units = 1,
                         .vector = 1,
                         .work_group = 1,
                         .alignment = 1,
                         .memory = memory,
                         .budget = memory,
                         .max_allocation = memory,
                         .local_memory = 32768};
    choose_tile(d);
    snprintf(d->id, sizeof d->id, "%s", id);
    snprintf(d->name, sizeof d->name, "%s", id);
    if (!host)
        d->context = &m->context[0];
    for (enum lane_kind kind = host ? LANE_CPU : LANE_COMPUTE; kind <= (host ? LANE_FEED : LANE_DOWNLOAD); kind++)
        add_lane(m, d, kind, 0);
    return d;
}

/* ---- links ----------------------------------------------------------------------------------------------------- */

struct link *add_link(struct machine *m, double rate, double latency)
{
    struct link *link = *APPEND(m->link, m->n_links, m->cap_links) = allocate(1, sizeof *link);
    *link = (struct link){.index = (int)m->n_links - 1, .rate = rate, .latency = latency};
    return link;
}

void drop_links(struct machine *m)
{
    for (size_t i = 0; i < m->n_links; i++)
        free(m->link[i]);
    for (int d = 0; d <= m->n_devices; d++)
        m->device[d].link[LINK_UP] = m->device[d].link[LINK_DOWN] = NULL;
    m->host->disk = NULL;
    m->n_links = 0;
}
