/* purpose.c - what a lane is for: "0:0 swap out" says more than "0:0 download3". */
#include "trace.h"

/* The purpose of a copy on a lane of this kind; "": it has none. */
static const char *purpose_of(enum lane_kind kind, const char *role)
{
    static const struct {
        const char *role, *up, *down; /* the purpose of copies to the device, and from it */
    } known[] = {{"swap", "swap in", "swap out"},
                 {"offload", "weights up", "grads down"},
                 {"reduce", "grads up", "grads down"},
                 {"norm", "grads up", "grads down"},
                 {"broadcast", "broadcast in", "broadcast"},
                 {"send", "receive", "send"},
                 {"snapshot", "snapshot up", "snapshot"}};
    if (kind != LANE_UPLOAD && kind != LANE_DOWNLOAD)
        return "";
    for (size_t i = 0; i < COUNT(known); i++)
        if (strcmp(role, known[i].role) == 0)
            return kind == LANE_UPLOAD ? known[i].up : known[i].down;
    return "";
}

/* An array by lane with the one purpose of all its tasks: NULL without tasks, "" where they have several or none. */
static const char **collect_purposes(const struct trace *trace)
{
    const char **purpose = allocate(trace->header.n_lanes, sizeof *purpose);
    for (size_t i = 0; i < trace->header.n_tasks; i++) {
        const struct trace_task *task = &trace->tasks[i];
        const char **so_far = &purpose[task->lane];
        const char *own = purpose_of(trace->lanes[task->lane].kind, trace->header.role[task->role]);
        if (!*so_far)
            *so_far = own;
        else if (strcmp(*so_far, own) != 0)
            *so_far = "";
    }
    return purpose;
}

/* When several lanes of a device have one purpose, they are numbered, and the number is shown from 2 on. */
static int number_of_lane(const struct trace *trace, const char **purpose, uint32_t lane)
{
    int number = 1;
    for (uint32_t i = 0; i < lane; i++) {
        bool same_device = trace->lanes[i].device_index == trace->lanes[lane].device_index;
        if (same_device && purpose[i] && strcmp(purpose[i], purpose[lane]) == 0)
            number++;
    }
    return number;
}

lane_purpose *new_lane_purposes(const struct trace *trace)
{
    uint32_t n_lanes = trace->header.n_lanes;
    lane_purpose *out = allocate(n_lanes, sizeof *out);
    const char **purpose = collect_purposes(trace);
    for (uint32_t i = 0; i < n_lanes; i++) {
        const struct trace_lane *lane = &trace->lanes[i];
        const char *device = trace->devices[lane->device_index].id;
        if (!purpose[i] || !purpose[i][0]) {
            snprintf(out[i], sizeof out[i], "%s", lane->name);
            continue;
        }
        int number = number_of_lane(trace, purpose, i);
        if (number > 1)
            snprintf(out[i], sizeof out[i], "%s %s %d", device, purpose[i], number);
        else
            snprintf(out[i], sizeof out[i], "%s %s", device, purpose[i]);
    }
    free(purpose);
    return out;
}
