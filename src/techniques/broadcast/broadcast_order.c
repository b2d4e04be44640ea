/* broadcast_order.c - puts what is sent in the order of its first use in the next step, as far as the list allows.  In
 * the list, it is in the order in which updates end.  broadcast_pass.c tries both.
 */
#include "broadcast.h"

static int by_first_use(const void *left, const void *right)
{
    const struct message *a = left;
    const struct message *b = right;
    return BY(a->first_use, b->first_use, COMPARE(a->position, b->position));
}

/* Moves the message to after the one that is needed sooner: the last copy first, so that all keep their order.  Where a
 * task is in the way of a copy, the message counts as being where its first copy is. */
static void sink_message(struct edit *edit, struct message *message, const struct message *sooner)
{
    struct task *behind = sooner->hops[sooner->n - 1].copy;
    for (size_t h = message->n; h > 0; h--)
        if (!sink(edit, message->hops[h - 1].copy, behind))
            return;
    message->position = sooner->position;
}

void sort_messages(struct broadcast *broadcast, struct edit *edit)
{
    SORT(broadcast->messages, broadcast->n_messages, by_first_use);
    for (size_t i = 1; i < broadcast->n_messages; i++)
        if (broadcast->messages[i].position < broadcast->messages[i - 1].position)
            sink_message(edit, &broadcast->messages[i], &broadcast->messages[i - 1]);
}
