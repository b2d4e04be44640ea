/* purpose.c - what a lane is for: "0:0 swap out" says more than "0:0 download3". */
#include "trace.h"

static const struct {
    const char *role, *up, *down; /* of copies to the device, and from it */
} purposes[] = {{"swap", "swap in", "swap out"},
                {"offload", "parameters up", "gradients down"},
                {"reduce", "gradients up", "gradients down"},
                {"broadcast", "broadcast in", "broadcast"},
                {"send", "receive", "send"},
                {"snapshot", "snapshot up", "snapshot"}};

/* NULL: what it does has several roles, or one without a name here. */
static const char *purpose_of(const struct trace *t, uint32_t lane, const char *role)
{
    enum lane_kind kind = t->lanes[lane].kind;
    for (size_t i = 0; role && i < COUNT(purposes); i++)
        if (strcmp(role, purposes[i].role) == 0 && (kind == LANE_UPLOAD || kind == LANE_DOWNLOAD))
            return kind == LANE_UPLOAD ? purposes[i].up : purposes[i].down;
    return NULL;
}

/* Of several lanes of a device for one thing, those behind the first are numbered from 2. */
lane_purpose *trace_purposes(const struct trace *t)
{
    const struct trace_header *h = &t->header;
    lane_purpose *out = allocate(h->n_lanes, sizeof *out);
    const char **role = allocate(h->n_lanes, sizeof *role), **purpose = allocate(h->n_lanes, sizeof *purpose);
    for (const struct trace_task *k = t->tasks; k < t->tasks + h->n_tasks; k++)
        role[k->lane] = !role[k->lane] || role[k->lane] == h->role[k->role] ? h->role[k->role] : "";
    for (uint32_t i = 0; i < h->n_lanes; i++) {
        const struct trace_lane *l = &t->lanes[i];
        int number = 1;
        purpose[i] = purpose_of(t, i, role[i]);
        for (uint32_t k = 0; k < i && purpose[i]; k++)
            number += purpose[k] == purpose[i] && t->lanes[k].device_index == l->device_index;
        if (!purpose[i])
            snprintf(out[i], sizeof out[i], "%s", l->name);
        else
            snprintf(out[i], sizeof out[i], number > 1 ? "%s %s %d" : "%s %s", t->devices[l->device_index].id,
                     purpose[i], number);
    }
    free(role), free(purpose);
    return out;
}
