/* order.c - in which order shards go: as they stand in the list, which is the order in which updates end, or in the
 * order of their first use in the next step, as far as the list allows.
 *
 * Both orders are simulated, and the one with the shorter step stays.
 */
#include "order.h"

#include "planning/predict/forecast.h"

#include <math.h>

/* ---- the order of use -------------------------------------------------------------------------------------------- */

COMPARISON(by_first_use, struct message, BY(a->first_use, b->first_use, COMPARE(a->position, b->position)))

/* Moves the message to after the one that is needed sooner: the last copy first, so that all keep their order.  Where a
 * task is in the way of a copy, the message counts as being where its first copy is. */
static void sink_message(struct edit *edit, struct message *message, const struct message *sooner)
{
    struct task *place = sooner->hops[sooner->n - 1].copy;
    for (size_t h = message->n; h > 0; h--)
        if (!sink(edit, message->hops[h - 1].copy, place))
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

/* ---- trying both ------------------------------------------------------------------------------------------------- */

/* The period with slices, seconds; NAN: no times are known.  `plan` has no messages yet. */
static double try_slices(const struct broadcast *plan, const struct costs *costs)
{
    struct broadcast broadcast = *plan;
    struct edit *edit = slice_list(&broadcast);
    struct forecast forecast = forecast_list(broadcast.list, costs);
    double period = forecast.period;
    free_forecast(&forecast);
    undo_edit(edit);
    free_messages(&broadcast);
    return period;
}

struct periods choose_order(struct broadcast *broadcast, const struct costs *costs)
{
    struct periods periods = {.period = try_slices(broadcast, costs), .one_queue = NAN};
    if (isnan(periods.period))
        return periods;
    struct broadcast other = *broadcast;
    other.by_use = true;
    double by_use = try_slices(&other, costs);
    if (by_use < periods.period) {
        broadcast->by_use = true;
        periods.period = by_use;
    }
    other.by_use = broadcast->by_use;
    other.options.queues = first_sending_queue(broadcast) + 1;
    periods.one_queue = try_slices(&other, costs);
    return periods;
}
