/* collective.c - one tensor to many devices.
 *
 * Devices of one context copy directly, each copy on the sender's download lane.  Between contexts the bytes come down
 * to the host once, and go up from there to each receiver on an upload lane that batches do not use.
 */
#include "mesh.h"

static bool is_direct(const struct tensor *to, const struct tensor *from)
{
    return to->device->context == from->device->context;
}

void add_broadcast(struct step *s, const char *name, struct tensor *const *to, int n, struct tensor *from)
{
    struct tensor *staged = NULL;
    for (int i = 0; i < n; i++)
        if (is_direct(to[i], from))
            add_copy(s, from->device->lane[LANE_DOWNLOAD], name, to[i], from);
        else {
            if (!staged)
                staged = add_download(s, name, from, 0);
            add_copy(s, open_lane(s->pool->machine, to[i]->device, LANE_UPLOAD, 1), name, to[i], staged);
        }
}
