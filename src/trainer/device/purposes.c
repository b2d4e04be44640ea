/* purposes.c - lanes for a purpose: device.h says what for. */
#include "driver.h"

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
    return kind == LANE_UPLOAD ? device->extra.described.links[LINK_UP] : device->extra.described.links[LINK_DOWN];
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
