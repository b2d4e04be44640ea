/* gain.c - what a pass comes to: the list is tried before and after it. */
#include "predict.h"
#include "techniques/pass/pass.h"

#include <math.h>

static void append_change(char **text, const char *what, const char *now, const char *was)
{
    append_text(text, "%s %s", what, now);
    if (strcmp(now, was) == 0)
        append_text(text, " as before");
    else
        append_text(text, " instead of %s", was);
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

/* Says what the pass comes to: memory of the device that was fullest before it, and the step's time. */
static char *describe_gain(const struct machine *m, const struct outlook *had, const struct outlook *has)
{
    char now[32], was[32], *text = NULL;
    const struct forecast *before = &had->f, *after = &has->f;
    int fullest = 0;
    for (int d = 1; d <= m->n_devices; d++)
        if (had->held[d] > had->held[fullest])
            fullest = d;
    append_change(&text, JOINED(m->device[fullest].id, " holds at most"), format_bytes(now, (double)has->held[fullest]),
                  format_bytes(was, (double)had->held[fullest]));
    if (isnan(before->period) || isnan(after->period))
        return text;
    snprintf(now, sizeof now, "%.3f ms", 1e3 * after->period);
    snprintf(was, sizeof was, "%.3f ms", 1e3 * before->period);
    append_change(&text, ", a step takes", now, was);
    return text;
}

static void refuse_outlook(struct machine *m, const struct outlook *l, const char *option, bool sure)
{
    if (l->f.excess > 0)
        refuse_budget(m, &l->f, option, sure);
}

static void free_after(struct forecast *f)
{
    free_forecast(f);
    free(f);
}

static const struct costs *known_costs(const struct trainer *t) { return costs_of(t); }

const struct forecaster forecaster = {.costs = known_costs,
                                      .look = new_outlook,
                                      .forget = free_outlook,
                                      .compare = describe_gain,
                                      .must_fit = refuse_outlook,
                                      .free = free_after};
