/* costs_machine.c - makes a machine from a hardware description, without OpenCL, for plans of machines that one does
 * not have. */
#include "costs.h"

/* Gives device i a link in each direction.  `devices_per_link` (costs->link_share) neighbours share theirs. */
static void give_links(struct machine *machine, const struct costs *costs, int i)
{
    for (int direction = LINK_UP; direction < DIRECTIONS; direction++) {
        const struct lane_speed *speed = &costs->speeds[lane_of_direction[direction]];
        if (i % costs->link_share != 0)
            machine->devices[i].extra.described.links[direction] =
                machine->devices[i - 1].extra.described.links[direction];
        else
            machine->devices[i].extra.described.links[direction] =
                add_link(machine, speed->bytes_per_s * costs->scale_link, speed->latency);
    }
}

void set_speeds(struct machine *machine, const struct costs *costs)
{
    const struct lane_speed *disk = &costs->speeds[LANE_DISK];
    drop_links(machine);
    if (disk->bytes_per_s > 0)
        machine->host->extra.described.disk = add_link(machine, disk->bytes_per_s, disk->latency);
    for (int i = 0; i < machine->n_devices; i++) {
        if (!costs->measured) /* a profile has measured the copies, with their links */
            give_links(machine, costs, i);
        machine->devices[i].flops_per_s = costs->flops * costs->scale_device;
        machine->devices[i].bytes_per_s = costs->bandwidth * costs->scale_device;
    }
    machine->issue_seconds = costs->issue_seconds;
    for (int i = 0; i < machine->n_lanes; i++)
        machine->lanes[i]->gap_seconds = costs->gap_seconds[machine->lanes[i]->kind];
}

/* Sets what the description says of a device.  `vector` 0 stands for a GPU, as costs.h says. */
static void set_device(struct machine *machine, const struct costs *costs, int i)
{
    char id[sizeof machine->devices->id];
    snprintf(id, sizeof id, "%s.%d", costs->name, i);
    struct device *device = set_up_device(machine, i, id, costs->memory);
    snprintf(device->name, sizeof device->name, "%s", costs->name);
    device->alignment = DEVICE_ALIGNMENT;
    device->units = (unsigned)MAX(costs->units, 1);
    device->shape.vector = (unsigned)MAX(costs->vector, 1);
    device->shape.one_item = device->shape.vector > 1;
    device->shape.work_group = device->shape.one_item ? 1 : GPU_WORK_GROUP;
    choose_tile(device);
    if (device->shape.one_item)
        device->shape.local_memory = 256 << 10; /* with PoCL it is a core's L2 cache */
    device->context = &machine->contexts[i];    /* each device has its own, so moves are staged through the host */
}

struct machine *virtual_machine(const struct costs *costs, int n_devices)
{
    if (costs->measured)
        fail(EXIT_USAGE, "%s is a profile, not a hardware description: give it to --profile", costs->label);
    if (n_devices > MOST_PAPER_DEVICES)
        fail(EXIT_USAGE, "a plan can use %d devices at most, not %d: use a smaller --mesh, or -d", MOST_PAPER_DEVICES,
             n_devices);
    if (n_devices > costs->devices)
        fail(EXIT_USAGE, "%s has devices = %lld, not %d: use a smaller --mesh, or -d", costs->label,
             (long long)costs->devices, n_devices);
    struct machine *machine = new_machine(n_devices);
    for (int i = 0; i < n_devices; i++)
        set_device(machine, costs, i);
    struct device *host = set_up_device(machine, n_devices, "host", costs->host_memory);
    host->alignment = 4096; /* a page */
    return machine;
}
