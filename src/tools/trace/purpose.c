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
static const char **find_purposes(const struct trace *t)
{
    const char **purpose = allocate(t->header.n_lanes, sizeof *purpose);
    for (size_t i = 0; i < t->header.n_tasks; i++) {
        const struct trace_task *task = &t->tasks[i];
        const char **lanes = &purpose[task->lane];
        const char *own = purpose_of(t->lanes[task->lane].kind, t->header.role[task->role]);
        if (!*lanes)
            *lanes = own;
        else if (strcmp(*lanes, own) != 0)
            *lanes = "";
    }
    return purpose;
}

/* When several lanes of a device have one purpose, they are numbered, and the number is shown from 2 on. */
static int number_of_lane(const struct trace *t, const char **purpose, uint32_t lane)
{
    int number = 1;
    for (uint32_t i = 0; i < lane; i++) {
        bool same_device = t->lanes[i].device_index == t->lanes[lane].device_index;
        if (same_device && purpose[i] && strcmp(purpose[i], purpose[lane]) == 0)
            number++;
    }
    return number;
}

lane_purpose *trace_purposes(const struct trace *t)
{
    const uint32_t n_lanes = t->header.n_lanes;
    lane_purpose *out = allocate(n_lanes, sizeof *out);
    const char **purpose = find_purposes(t);
    for (uint32_t i = 0; i < n_lanes; i++) {
        const struct trace_lane *l = &t->lanes[i];
        const char *device = t->devices[l->device_index].id;
        if (!purpose[i] || !purpose[i][0]) {
            snprintf(out[i], sizeof out[i], "%s", l->name);
            continue;
        }
        int number = number_of_lane(t, purpose, i);
        if (number > 1)
            snprintf(out[i], sizeof out[i], "%s %s %d", device, purpose[i], number);
        else
            snprintf(out[i], sizeof out[i], "%s %s", device, purpose[i]);
    }
    free(purpose);
    return out;
}
