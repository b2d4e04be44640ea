/* lanes.c - the lanes of a machine.  A device that is only described, for plans, may have any number of lanes of a
 * kind. */
#include "driver.h"

const char *const lane_kind_name[LANE_KINDS + 1] = {
    [LANE_COMPUTE] = "compute", [LANE_UPLOAD] = "upload", [LANE_DOWNLOAD] = "download", [LANE_CPU] = "cpu",
    [LANE_DISK] = "disk",       [LANE_REPORT] = "report", [LANE_FEED] = "feed"};

struct lane *add_lane(struct machine *machine, struct device *device, enum lane_kind kind, int nth)
{
    struct lane *lane = allocate(1, sizeof *lane);
    *lane = (struct lane){.index = machine->n_lanes, .kind = kind, .nth = nth, .device = device};
    if (nth == 0)
        snprintf(lane->name, sizeof lane->name, "%s %s", device->id, lane_kind_name[kind]);
    else
        snprintf(lane->name, sizeof lane->name, "%s %s%d", device->id, lane_kind_name[kind], nth);
    GROW(machine->lanes, machine->cap_lanes, machine->n_lanes + 1);
    machine->lanes[machine->n_lanes++] = lane;
    struct lane **end = &device->lanes[kind];
    while (*end)
        end = &(*end)->next_of_kind;
    *end = lane;
    return lane;
}

struct lane *lane_of(const struct device *device, enum lane_kind kind, int nth)
{
    struct lane *lane = device->lanes[kind];
    while (lane && lane->nth != nth)
        lane = lane->next_of_kind;
    return lane;
}

struct lane *open_lane(struct machine *machine, struct device *device, enum lane_kind kind, int nth)
{
    cl_command_queue_properties properties = machine->options.profiling ? CL_QUEUE_PROFILING_ENABLE : 0;
    struct lane *lane = lane_of(device, kind, nth);
    if (lane)
        return lane;
    lane = add_lane(machine, device, kind, nth);
    if (device->cl)
        CL_MAKE(err, lane->queue = clCreateCommandQueue(device->context->cl, device->cl, properties, &err));
    return lane;
}
