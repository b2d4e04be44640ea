/* ring.c - a tensor of which there are several, so that a few iterations can each have one of its own.
 *
 * A task that stores an iteration needs the iteration's bytes for longer than the iteration lasts.  So the tensor that
 * it reads is a ring of several *members*: tensors alike, each with bytes of its own.  The accesses of tasks in the
 * list name the first member.  When a task runs, it touches the member that its iteration has: tensor_at().
 *
 *     iteration     1    2    3    4    5    6           two members
 *     member        1    2    -    1    -    2           -: none was free, and nothing of the iteration is stored
 *
 * The rule.  A member is free unless an iteration has it, or it holds the newest iteration that is durable.  An
 * iteration has its member from take_member() until return_member(), which says whether the member's contents are
 * durable now.  An iteration that finds no free member does without one, and nothing waits.  A run follows this rule
 * (snapfile_begin()), and so does the simulation (simulate_ring.c).
 *
 * All rings of a pool are taken together: an iteration that has member k has member k of each ring.
 */
#include "list.h"

int take_member(struct ring *ring, uint32_t iteration)
{
    for (int k = 1; k <= ring->n; k++)
        if (!ring->iteration[k] && k != ring->durable) {
            ring->iteration[k] = iteration;
            return k;
        }
    return 0;
}

void return_member(struct ring *ring, uint32_t iteration, bool durable)
{
    int k = member_of(ring, iteration);
    if (durable)
        ring->durable = k;
    ring->iteration[k] = 0;
}

int member_of(const struct ring *ring, uint32_t iteration)
{
    for (int k = 1; k <= ring->n; k++)
        if (ring->iteration[k] == iteration)
            return k;
    return 0;
}

/* ---- its tensors ------------------------------------------------------------------------------------------------- */

struct tensor *nth_member(struct tensor *tensor, int k)
{
    for (int i = 1; i < k && tensor; i++)
        tensor = tensor->next_member;
    CHECK(k > 0 && tensor, "a ring has no member %d", k);
    return tensor;
}

struct tensor *tensor_at(struct tensor *tensor, uint32_t iteration)
{
    const struct ring *ring = tensor->storage->ring;
    return ring ? nth_member(tensor, member_of(ring, iteration)) : tensor;
}
