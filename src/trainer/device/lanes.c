/* lanes.c - the lanes and links of a machine.  A device that is only described, for plans, may have any number of lanes
 * of a kind, and links with speeds of their own.
 */
#include "driver.h"

const char *const lane_kind_name[LANE_KINDS + 1] = {
    [LANE_COMPUTE] = "compute", [LANE_UPLOAD] = "upload", [LANE_DOWNLOAD] = "download", [LANE_CPU] = "cpu",
    [LANE_DISK] = "disk",       [LANE_REPORT] = "report", [LANE_FEED] = "feed"};

/* ---- lanes ------------------------------------------------------------------------------------------------------- */

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

/* ---- lanes for a purpose ----------------------------------------------------------------------------------------- */

bool is_for(const struct lane *lane, const char *purpose) { return strcmp(lane->purpose, purpose) == 0; }

void set_purpose(struct lane *lane, const char *purpose)
{
    CHECK(strlen(purpose) < sizeof lane->purpose, "the purpose %s is too long", purpose);
    snprintf(lane->purpose, sizeof lane->purpose, "%s", purpose);
}

int count_lanes(const struct device *device, enum lane_kind kind)
{
    int n = 0;
    for (const struct lane *lane = device->lanes[kind]; lane; lane = lane->next_of_kind)
        n++;
    return n;
}

/* The device's lane for this purpose, or else a lane that has no purpose yet; NULL: there is neither. */
static struct lane *find_lane(const struct device *device, enum lane_kind kind, const char *purpose)
{
    struct lane *found = NULL;
    for (struct lane *lane = device->lanes[kind]; lane; lane = lane->next_of_kind) {
        if (is_for(lane, purpose))
            found = lane;
        else if (!found && is_for(lane, FOR_NOTHING))
            found = lane;
    }
    return found;
}

const struct link *link_of_lanes(const struct device *device, enum lane_kind kind)
{
    if (kind == LANE_COMPUTE)
        return NULL;
    return kind == LANE_UPLOAD ? device->described.links[LINK_UP] : device->described.links[LINK_DOWN];
}

struct lane *lane_for(struct machine *machine, struct device *device, enum lane_kind kind, const char *purpose)
{
    struct lane *lane = find_lane(device, kind, purpose);
    if (!lane) {
        const struct link *link = link_of_lanes(device, kind);
        struct lane *last = NULL;
        int next = 0; /* a number that no lane has */
        for (struct lane *other = device->lanes[kind]; other; other = other->next_of_kind) {
            last = other;
            next = MAX(next, other->nth + 1);
        }
        if (link && link->max_lanes && count_lanes(device, kind) >= link->max_lanes)
            return last;
        lane = open_lane(machine, device, kind, next);
    }
    set_purpose(lane, purpose);
    return lane;
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

const enum lane_kind lane_of_direction[DIRECTIONS] = {[LINK_UP] = LANE_UPLOAD, [LINK_DOWN] = LANE_DOWNLOAD};

struct link *add_link(struct machine *machine, double rate, double latency)
{
    struct link *link = allocate(1, sizeof *link);
    *link = (struct link){.index = machine->n_links, .rate = rate, .latency = latency};
    GROW(machine->links, machine->cap_links, machine->n_links + 1);
    machine->links[machine->n_links++] = link;
    return link;
}

void drop_links(struct machine *machine)
{
    for (int i = 0; i < machine->n_links; i++)
        free(machine->links[i]);
    for (int i = 0; i <= machine->n_devices; i++) {
        machine->devices[i].described.links[LINK_UP] = NULL;
        machine->devices[i].described.links[LINK_DOWN] = NULL;
    }
    machine->host->described.disk = NULL;
    machine->n_links = 0;
}
