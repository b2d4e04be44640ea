/* machine.c - opens a machine of OpenCL devices: their contexts and lanes, and the host. */
#include "driver.h"

#include <unistd.h>

enum { HOST_ALIGNMENT = 4096 };

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

/* Can two devices share buffers, so that copies between them are direct?  They are then given one context. */
static bool can_share(const struct device *a, const struct device *b)
{
    if (platform_of(a) != platform_of(b))
        return false;
    return a->extra.root == b->extra.root || (a->is_cpu && b->is_cpu);
}

/* Makes a context for the device and for those after it that can share buffers with it. */
static void make_context(struct machine *machine, struct device *first)
{
    cl_device_id ids[MOST_DEVICES];
    cl_uint n = 0;
    /* A test sets this variable, so that copies go through the host. */
    bool alone = machine->options.separate || getenv("YARD_SEPARATE_CONTEXTS");
    struct context *context = &machine->contexts[machine->n_contexts];
    context->index = machine->n_contexts;
    machine->n_contexts++;
    for (int i = first->index; i < machine->n_devices; i++) {
        struct device *device = &machine->devices[i];
        bool joins = device == first || (!alone && can_share(device, first));
        if (device->context || !joins)
            continue;
        device->context = context;
        if (n == 0 || ids[n - 1] != device->cl) /* the shares of one device, which are neighbours, count once */
            ids[n++] = device->cl;
    }
    CL_MAKE(err, context->cl = clCreateContext(NULL, n, ids, NULL, NULL, &err));
}

/* ---- a machine --------------------------------------------------------------------------------------------------- */

/* Adds the host, which comes after the OpenCL devices. */
static void add_host_device(struct machine *machine)
{
    bool limited;
    size_t memory = host_memory(&limited);
    struct device *host = set_up_device(machine, machine->n_devices, "host", memory);
    host->extra.limited = limited;
    host->uses_ram = true;
    host->units = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    host->alignment = HOST_ALIGNMENT;
    /* A device that is no CPU must be able to map each of the host's slabs. */
    for (int i = 0; i < machine->n_devices; i++)
        if (!machine->devices[i].is_cpu)
            host->max_allocation = MIN(host->max_allocation, machine->devices[i].max_allocation - HOST_ALIGNMENT);
    host->budget = machine->options.host_memory ? machine->options.host_memory : host->memory;
    machine->host = host;
}

struct machine *open_machine(const struct machine_options *options)
{
    struct machine *machine = new_machine(MOST_DEVICES);
    machine->n_devices = 0; /* there is room for MOST_DEVICES, of which add_devices() finds some */
    machine->options = *options;
    add_devices(machine, options->devices);
    for (int i = 0; i < machine->n_devices; i++) {
        struct device *device = &machine->devices[i];
        if (!device->context)
            make_context(machine, device);
        device->budget = options->device_memory ? options->device_memory : default_budget(device);
        for (enum lane_kind kind = LANE_COMPUTE; kind <= LANE_DOWNLOAD; kind++)
            open_lane(machine, device, kind, 0);
    }
    add_host_device(machine);
    calibrate_clocks(machine);
    return machine;
}
