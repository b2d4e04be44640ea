/* gain.c - what a pass gains or costs: bytes and time of the list before and after the pass. */
#include "planning/pass/pass.h"
#include "planning/pass/traits.h"
#include "predict.h"

#include <math.h>

/* Appends "a step takes 3 ms instead of 4 ms", or "... as before". */
static void append_change(char **text, const char *label, const char *after, const char *before)
{
    append_text(text, "%s %s", label, after);
    if (strcmp(after, before) == 0)
        append_text(text, " as before");
    else
        append_text(text, " instead of %s", before);
}

/* A list as it is before or after a pass: bytes and time of one and the same run, where it is simulated. */
struct outlook {
    struct forecast forecast;
    size_t *held; /* by device: the most bytes that it holds at a time */
};

/* A simulation_look: *held becomes the most bytes that each device holds by the clock. */
static void take_peaks(void *held, const struct simulation *simulation)
{
    *(size_t **)held = simulated_peaks(simulation);
}

/* A run may hold more than the list does in its order, since lanes run ahead of it: copies that come back early, say.
 * It never needs less, since addresses are given in that order. */
static struct outlook *new_outlook(struct list *list, const struct costs *costs)
{
    size_t *peaks = NULL;
    struct outlook *outlook = allocate(1, sizeof *outlook);
    outlook->forecast = forecast_list_within(list, costs, INFINITY, take_peaks, &peaks);
    size_t n = (size_t)list->pool->machine->n_devices + 1;
    outlook->held = copy_bytes(outlook->forecast.peak_total, n * sizeof *outlook->held);
    if (peaks)
        for (size_t i = 0; i < n; i++)
            outlook->held[i] = MAX(outlook->held[i], peaks[i]);
    free(peaks);
    return outlook;
}

static void free_outlook(struct outlook *outlook)
{
    free_forecast(&outlook->forecast);
    free(outlook->held);
    free(outlook);
}

/* Says what a pass has changed: the bytes of the device that was fullest before the pass, and the step's time. */
static char *describe_gain(const struct machine *machine, const struct outlook *before, const struct outlook *after)
{
    char now[NUMBER_TEXT], was[NUMBER_TEXT];
    char *text = NULL;
    double period_before = before->forecast.period;
    double period_after = after->forecast.period;
    int fullest = 0;
    for (int i = 1; i <= machine->n_devices; i++)
        if (before->held[i] > before->held[fullest])
            fullest = i;
    append_change(&text, JOINED(machine->devices[fullest].id, " holds at most"),
                  format_bytes(now, (double)after->held[fullest]), format_bytes(was, (double)before->held[fullest]));
    if (isnan(period_before) || isnan(period_after))
        return text;
    snprintf(now, sizeof now, "%.3f ms", 1e3 * period_after);
    snprintf(was, sizeof was, "%.3f ms", 1e3 * period_before);
    append_change(&text, ", a step takes", now, was);
    return text;
}

static void refuse_if_outlook_is_too_large(struct machine *machine, const struct outlook *outlook, const char *option,
                                           const struct run_facts *facts)
{
    if (!forecast_fits(&outlook->forecast))
        fail_too_large(machine, &outlook->forecast, option, facts, replanning_of(facts));
}

static void free_kept_forecast(struct forecast *forecast)
{
    free_forecast(forecast);
    free(forecast);
}

static const struct costs *known_costs(const struct trainer *trainer) { return costs_of(trainer); }

const struct forecaster forecaster = {.costs = known_costs,
                                      .new_outlook = new_outlook,
                                      .free_outlook = free_outlook,
                                      .describe_gain = describe_gain,
                                      .refuse_if_outlook_is_too_large = refuse_if_outlook_is_too_large,
                                      .free_forecast = free_kept_forecast};
