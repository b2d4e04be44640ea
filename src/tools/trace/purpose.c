/* purpose.c - what a lane is for: "0:0 swap out" says more than "0:0 download3". */
#include "trace.h"

/* "": it has no name here. */
static const char *purpose_of(enum lane_kind kind, const char *role)
{
    static const struct {
        const char *role, *up, *down; /* of copies to the device, and from it */
    } known[] = {{"swap", "swap in", "swap out"},
                 {"offload", "weights up", "grads down"},
                 {"reduce", "grads up", "grads down"},
                 {"norm", "grads up", "grads down"},
                 {"broadcast", "broadcast in", "broadcast"},
                 {"send", "receive", "send"},
                 {"snapshot", "snapshot up", "snapshot"}};
    for (size_t i = 0; i < COUNT(known) && (kind == LANE_UPLOAD || kind == LANE_DOWNLOAD); i++)
        if (strcmp(role, known[i].role) == 0)
            return kind == LANE_UPLOAD ? known[i].up : known[i].down;
    return "";
}

/* Of several lanes of a device for one thing, those behind the first are numbered from 2. */
lane_purpose *trace_purposes(const struct trace *t)
{
    const struct trace_header *h = &t->header;
    lane_purpose *out = allocate(h->n_lanes, sizeof *out);
    const char **purpose = allocate(h->n_lanes, sizeof *purpose);
    for (const struct trace_task *k = t->tasks; k < t->tasks + h->n_tasks; k++) {
        const char *is = purpose_of(t->lanes[k->lane].kind, h->role[k->role]), **of = &purpose[k->lane];
        *of = !*of || strcmp(*of, is) == 0 ? is : "";
    }
    for (uint32_t i = 0; i < h->n_lanes; i++) {
        const struct trace_lane *l = &t->lanes[i];
        bool named = purpose[i] && purpose[i][0];
        int number = 1;
        for (uint32_t k = 0; k < i && named; k++)
            number += purpose[k] && strcmp(purpose[k], purpose[i]) == 0 && t->lanes[k].device_index == l->device_index;
        if (named)
            snprintf(out[i], sizeof out[i], number > 1 ? "%s %s %d" : "%s %s", t->devices[l->device_index].id,
                     purpose[i], number);
        else
            snprintf(out[i], sizeof out[i], "%s", l->name);
    }
    free(purpose);
    return out;
}
