/* front.c - the front of --search: what was simulated, and takes less memory than all that is faster.
 *
 *     bytes
 *       | a
 *       |    c          a, b and d are the front: b is faster than c in less memory
 *       |  b
 *       |       d
 *       +---------- time
 */
#include "mesh_search.h"

#include <math.h>

/* Is the outcome as good as these numbers in both respects, and better in one? */
static bool beats(const struct mesh_outcome *outcome, double bytes, double seconds)
{
    bool is_worse = outcome->seconds > seconds || outcome->bytes > bytes;
    bool is_better = outcome->seconds < seconds || outcome->bytes < bytes;
    return is_better && !is_worse;
}

bool is_beaten(const struct mesh_search *search, double bytes, double seconds)
{
    for (const struct mesh_outcome *outcome = search->outcomes; outcome < search->outcomes + search->n_outcomes;
         outcome++)
        if (beats(outcome, bytes, seconds))
            return true;
    return false;
}

static int by_time(const void *left, const void *right)
{
    const struct mesh_outcome *a = left;
    const struct mesh_outcome *b = right;
    if (a->seconds != b->seconds)
        return COMPARE(a->seconds, b->seconds);
    if (a->bytes != b->bytes)
        return COMPARE(a->bytes, b->bytes);
    return COMPARE(a->candidate.number, b->candidate.number);
}

size_t sort_front(struct mesh_search *search, double budget)
{
    size_t n = 0;
    double least = nextafter(budget, INFINITY);
    SORT(search->outcomes, search->n_outcomes, by_time);
    for (size_t i = 0; i < search->n_outcomes; i++)
        if (search->outcomes[i].bytes < least) {
            struct mesh_outcome row = search->outcomes[i];
            least = row.bytes;
            search->outcomes[i] = search->outcomes[n];
            search->outcomes[n++] = row;
        }
    return n;
}
