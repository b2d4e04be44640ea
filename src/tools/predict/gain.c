/* gain.c - what a pass gains or costs: bytes and time of the list before and after the pass. */
#include "predict.h"
#include "techniques/pass/pass.h"

#include <math.h>

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
    struct forecast f;
    size_t *held; /* by device: the most bytes that it holds at a time */
};

static void take_peaks(void *held, const struct simulation *sim) { *(size_t **)held = simulated_peaks(sim); }

/* A run may hold more than the list does in its order, since lanes run ahead of it: copies that come back early, say.
 * It never needs less, since addresses are given in that order. */
static struct outlook *new_outlook(struct step *s, const struct costs *c)
{
    size_t *peaks = NULL;
    struct outlook *l = allocate(1, sizeof *l);
    l->f = try_list(s, c, INFINITY, take_peaks, &peaks);
    size_t n = (size_t)s->pool->machine->n_devices + 1;
    l->held = copy_bytes(l->f.peak_total, n * sizeof *l->held);
    for (size_t d = 0; peaks && d < n; d++)
        l->held[d] = MAX(l->held[d], peaks[d]);
    free(peaks);
    return l;
}

static void free_outlook(struct outlook *l)
{
    free_forecast(&l->f);
    free(l->held);
    free(l);
}

/* Says what a pass has changed: the bytes of the device that was fullest before the pass, and the step's time. */
static char *describe_gain(const struct machine *m, const struct outlook *outlook_before,
                           const struct outlook *outlook_after)
{
    char now[32], was[32], *text = NULL;
    const struct forecast *before = &outlook_before->f, *after = &outlook_after->f;
    int fullest = 0;
    for (int d = 1; d <= m->n_devices; d++)
        if (outlook_before->held[d] > outlook_before->held[fullest])
            fullest = d;
    append_change(&text, JOINED(m->device[fullest].id, " holds at most"),
                  format_bytes(now, (double)outlook_after->held[fullest]),
                  format_bytes(was, (double)outlook_before->held[fullest]));
    if (isnan(before->period) || isnan(after->period))
        return text;
    snprintf(now, sizeof now, "%.3f ms", 1e3 * after->period);
    snprintf(was, sizeof was, "%.3f ms", 1e3 * before->period);
    append_change(&text, ", a step takes", now, was);
    return text;
}

static void refuse_outlook(struct machine *m, const struct outlook *l, const char *option, enum replanning replans)
{
    if (l->f.excess_bytes > 0)
        refuse_budget(m, &l->f, option, replans);
}

static void free_after(struct forecast *f)
{
    free_forecast(f);
    free(f);
}

static const struct costs *known_costs(const struct trainer *t) { return costs_of(t); }

const struct forecaster forecaster = {.costs = known_costs,
                                      .new_outlook = new_outlook,
                                      .free_outlook = free_outlook,
                                      .describe_gain = describe_gain,
                                      .refuse_outlook = refuse_outlook,
                                      .free_forecast = free_after};
