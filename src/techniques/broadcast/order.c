/* order.c - in which order shards go: as they stand in the list, which is the order in which updates end, or in the
 * order of their first use in the next step, as far as the list allows.
 *
 * Both orders are simulated, and the one with the shorter step stays.
 */
#include "order.h"

#include "planning/predict/forecast.h"

#include <math.h>

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
