/* device.c - machines and devices as structs.  new_machine() and set_up_device() serve open_machine(), and plans whose
 * devices are only described; close_machine() frees a machine. */
#include "driver.h"

/* ---- devices ----------------------------------------------------------------------------------------------------- */

struct machine *new_machine(int n_devices)
{
    struct machine *machine = allocate(1, sizeof *machine);
    machine->devices = allocate_each(n_devices + 1, sizeof *machine->devices);
    machine->contexts = allocate_each(n_devices + 1, sizeof *machine->contexts);
    machine->n_devices = n_devices;
    machine->host = &machine->devices[n_devices];
    return machine;
}

struct device *set_up_device(struct machine *machine, int i, const char *id, size_t memory)
{
    struct device *device = &machine->devices[i];
    bool is_host = i == machine->n_devices;
    *device = (struct device){
        .index = i,
        .is_host = is_host,
        .is_cpu = is_host,
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
    if (!is_host)
        device->context = &machine->contexts[0];
    enum lane_kind first = is_host ? LANE_CPU : LANE_COMPUTE, last = is_host ? LANE_FEED : LANE_DOWNLOAD;
    for (enum lane_kind kind = first; kind <= last; kind++)
        add_lane(machine, device, kind, 0);
    return device;
}

/* ---- closing a machine ------------------------------------------------------------------------------------------- */

static void free_machine(struct machine *machine)
{
    for (int i = 0; i < machine->n_lanes; i++)
        if (machine->lanes[i]->queue)
            CL(clReleaseCommandQueue(machine->lanes[i]->queue));
    for (struct context *context = machine->contexts; context < machine->contexts + machine->n_contexts; context++) {
        for (size_t i = 0; i < context->n_programs; i++) {
            CL(clReleaseProgram(context->programs[i].cl));
            free(context->programs[i].file);
        }
        free(context->programs);
        if (context->cl) /* a machine that is only described has none */
            CL(clReleaseContext(context->cl));
    }
    for (int i = 0; i < machine->n_devices; i++)
        if (machine->devices[i].cl && machine->devices[i].cl != machine->devices[i].extra.root)
            CL(clReleaseDevice(machine->devices[i].cl));
    drop_links(machine);
    for (int i = 0; i < machine->n_lanes; i++)
        free(machine->lanes[i]);
    free(machine->links);
    free(machine->devices);
    free(machine->lanes);
    free(machine->contexts);
    free(machine);
}

/* PoCL's threads still read an event's queue and device for a moment after they have reported that it has ended.  So
 * only the slabs are freed now; everything else is released when the next machine is closed. */
void close_machine(struct machine *machine)
{
    static struct machine *closed;
    for (int i = 0; i <= machine->n_devices; i++)
        free_slabs(machine, &machine->devices[i]);
    if (closed)
        free_machine(closed);
    closed = machine;
}
