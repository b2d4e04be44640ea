/* front.c - the front of --search: what was simulated, and takes less memory than all that is faster.
 *
 *     bytes
 *       | a
 *       |    c          a, b and d are the front: b is faster than c in less memory
 *       |  b
 *       |       d
 *       +---------- time
 */
#include "meshes.h"

#include <math.h>

bool is_beaten(const struct mesh_search *search, double bytes, double seconds)
{
    for (const struct planned *planned = search->plans; planned < search->plans + search->n; planned++)
        if (planned->seconds <= seconds && planned->bytes <= bytes &&
            (planned->seconds < seconds || planned->bytes < bytes))
            return true;
    return false;
}

COMPARISON(by_time, struct planned,
           BY(a->seconds, b->seconds, BY(a->bytes, b->bytes, COMPARE(a->candidate.number, b->candidate.number))))

size_t sort_front(struct mesh_search *search, double budget)
{
    size_t n = 0;
    double least = nextafter(budget, INFINITY);
    SORT(search->plans, search->n, by_time);
    for (size_t i = 0; i < search->n; i++)
        if (search->plans[i].bytes < least) {
            struct planned row = search->plans[i];
            least = row.bytes;
            search->plans[i] = search->plans[n];
            search->plans[n++] = row;
        }
    return n;
}
