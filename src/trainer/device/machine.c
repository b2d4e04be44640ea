/* machine.c - makes a machine: its devices, their contexts and lanes, and the host.  open_machine() makes one of OpenCL
 * devices; new_machine() and set_up_device() make one whose devices are only described, for plans. */
#include "driver.h"

#include <unistd.h>

enum { HOST_ALIGNMENT = 4096 };

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

/* ---- contexts ---------------------------------------------------------------------------------------------------- */

/* Can two devices share buffers, so that copies between them are direct?  They are then given one context. */
static bool can_share(const struct device *a, const struct device *b)
{
    if (platform_of(a) != platform_of(b))
        return false;
    return a->root == b->root || (a->is_cpu && b->is_cpu);
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
    host->limited = limited;
    host->uses_ram = true;
    host->units = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    host->alignment = HOST_ALIGNMENT;
    /* A device that is no CPU must be able to map each of the host's slabs. */
    for (const struct device *device = machine->devices; device < host; device++)
        if (!device->is_cpu)
            host->max_allocation = MIN(host->max_allocation, device->max_allocation - HOST_ALIGNMENT);
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
        if (machine->devices[i].cl && machine->devices[i].cl != machine->devices[i].root)
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
