/* segments.c - the bytes of a tensor or a slab, cut into segments of one history each.  depend.c writes the history.
 */
#include "step_parts.h"

static bool begins_before(const void *item, const void *key)
{
    const struct segment *segment = item;
    const size_t *byte = key;
    return segment->begin < *byte;
}

size_t cut_segment(struct space *space, size_t byte)
{
    if (!space->n) {
        GROW(space->segments, space->cap, space->n + 1);
        space->segments[space->n++] = (struct segment){.begin = 0, .writer = NONE, .reader = NONE};
    }
    size_t i = lower_bound(&byte, space->segments, space->n, sizeof *space->segments, begins_before);
    if (i == space->n || space->segments[i].begin > byte) {
        space->segments = insert_item(space->segments, &space->n, &space->cap, i, sizeof *space->segments);
        space->segments[i] = space->segments[i - 1];
        space->segments[i].begin = byte;
    }
    return i;
}
