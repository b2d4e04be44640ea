/* paper.c - makes a machine from a hardware description, without OpenCL, for plans of machines that one does not
 * have. */
#include "costs.h"

enum { MOST_PAPER_DEVICES = 1024 };

/* Gives device i a link in each direction.  `devices_per_link` (c->link_share) neighbours share theirs. */
static void describe_links(struct machine *m, const struct costs *c, int i)
{
    static const enum lane_kind lane[DIRECTIONS] = {[LINK_UP] = LANE_UPLOAD, [LINK_DOWN] = LANE_DOWNLOAD};
    for (int direction = LINK_UP; direction < DIRECTIONS; direction++) {
        const struct lane_speed *speed = &c->speed[lane[direction]];
        if (i % c->link_share != 0)
            m->device[i].described.link[direction] = m->device[i - 1].described.link[direction];
        else
            m->device[i].described.link[direction] = add_link(m, speed->bytes_per_s * c->scale_link, speed->latency);
    }
}

void describe_speeds(struct machine *m, const struct costs *c)
{
    const struct lane_speed *disk = &c->speed[LANE_DISK];
    drop_links(m);
    if (disk->bytes_per_s > 0)
        m->host->described.disk = add_link(m, disk->bytes_per_s, disk->latency);
    for (int i = 0; i < m->n_devices; i++) {
        if (!c->measured) /* (a profile has measured the copies, with their links) */
            describe_links(m, c, i);
        m->device[i].flops_per_s = c->flops * c->scale_device;
        m->device[i].bytes_per_s = c->bandwidth * c->scale_device;
    }
    m->issue_seconds = c->issue_seconds;
    for (int i = 0; i < m->n_lanes; i++)
        m->lane[i]->gap_seconds = c->gap_seconds[m->lane[i]->kind];
}

static void describe_device(struct machine *m, const struct costs *c, int i)
{
    char id[sizeof m->device->id];
    snprintf(id, sizeof id, "%s.%d", c->name, i);
    struct device *d = name_device(m, i, id, c->memory);
    snprintf(d->name, sizeof d->name, "%s", c->name);
    d->alignment = DEVICE_ALIGNMENT;
    d->units = (unsigned)MAX(c->units, 1);
    d->shape.vector = (unsigned)MAX(c->vector, 1);
    d->shape.one_item = d->shape.vector > 1;
    d->shape.work_group = d->shape.one_item ? 1 : GPU_WORK_GROUP;
    choose_tile(d);
    if (d->shape.one_item)
        d->shape.local_memory = 256 << 10; /* with PoCL it is a core's L2 cache */
    d->context = &m->context[i];           /* each device has its own, so moves are staged through the host */
}

struct machine *virtual_machine(const struct costs *c, int n_devices)
{
    if (c->measured)
        fail(EXIT_USAGE, "%s is a profile, not a hardware description: give it to --profile", c->path);
    if (n_devices > MIN(c->devices, MOST_PAPER_DEVICES))
        fail(EXIT_USAGE,
             "%s says devices = %lld, and a plan can use %d at most; --mesh asks for %d: use a smaller mesh", c->path,
             (long long)c->devices, MOST_PAPER_DEVICES, n_devices);
    struct machine *m = new_machine(n_devices);
    for (int i = 0; i < n_devices; i++)
        describe_device(m, c, i);
    name_device(m, n_devices, "host", c->host_memory)->alignment = 4096;
    return m;
}
