/* order.c - in which order shards go: as they stand in the list, which is the order in which updates end, or in the
 * order of their first use in the next step, as far as the list allows.
 *
 * Both orders are simulated, and the one with the shorter step stays.
 */
#include "order.h"

#include "tools/predict/forecast.h"

#include <math.h>

/* ---- the order of use -------------------------------------------------------------------------------------------- */

COMPARISON(by_first_use, struct message, BY(a->first_use, b->first_use, COMPARE(a->position, b->position)))

/* Moves the message to after the one that is needed sooner: the last copy first, so that all keep their order.  Where a
 * task is in the way of a copy, the message counts as being where its first copy is. */
static void sink_message(struct edit *e, struct message *message, const struct message *sooner)
{
    struct task *place = sooner->hops[sooner->n - 1].copy;
    for (size_t h = message->n; h > 0; h--)
        if (!sink(e, message->hops[h - 1].copy, place))
            return;
    message->position = sooner->position;
}

static void sort_messages(struct broadcast *b, struct edit *e)
{
    SORT(b->messages, b->n_messages, by_first_use);
    for (size_t i = 1; i < b->n_messages; i++)
        if (b->messages[i].position < b->messages[i - 1].position)
            sink_message(e, &b->messages[i], &b->messages[i - 1]);
}

struct edit *slice_list(struct broadcast *b)
{
    struct edit *e = open_edit(b->step);
    find_messages(b, e);
    if (b->by_use)
        sort_messages(b, e);
    send_slices(b, e);
    return e;
}

/* ---- trying both ------------------------------------------------------------------------------------------------- */

/* The period with slices, seconds; NAN: no times are known.  `plan` has no messages yet. */
static double try_slices(const struct broadcast *plan, const struct costs *c)
{
    struct broadcast b = *plan;
    struct edit *e = slice_list(&b);
    struct forecast f = try_step(b.step, c);
    double period = f.period;
    free_forecast(&f);
    undo(e);
    free_messages(&b);
    return period;
}

struct periods choose_order(struct broadcast *b, const struct costs *c)
{
    struct periods periods = {.period = try_slices(b, c), .one_queue = NAN};
    if (isnan(periods.period))
        return periods;
    struct broadcast other = *b;
    other.by_use = true;
    double by_use = try_slices(&other, c);
    if (by_use < periods.period) {
        b->by_use = true;
        periods.period = by_use;
    }
    other.by_use = b->by_use;
    other.options.queues = first_sending_queue(b) + 1;
    periods.one_queue = try_slices(&other, c);
    return periods;
}
