/* budgets.c - sets the budgets of devices; and if a list does not fit, says which budgets would do. */
#include "forecast.h"

void set_budgets(struct machine *m, size_t each, size_t host)
{
    for (struct device *d = m->device; d <= m->host; d++) {
        size_t bytes = d->is_host ? host : each;
        if (bytes == 0)
            continue;
        if (d->described.by_hand && d->max_allocation == d->budget)
            d->max_allocation = bytes;
        if (d->described.by_hand)
            d->memory = bytes;
        d->budget = bytes;
    }
}

struct device *lift_limits(struct machine *m, int n)
{
    struct device *before = copy_bytes(m->device, (size_t)n * sizeof *before);
    for (struct device *d = m->device; d < m->device + n; d++) {
        if (d->described.by_hand && d->max_allocation == d->budget)
            d->max_allocation = NO_LIMIT;
        d->budget = NO_LIMIT;
    }
    return before;
}

void restore_limits(struct machine *m, const struct device *before, int n)
{
    for (int i = 0; i < n; i++) {
        m->device[i].budget = before[i].budget;
        m->device[i].max_allocation = before[i].max_allocation;
    }
}

/* Says what does not fit: the first device that needs more than its budget, and the task there. */
static char *describe_shortage(const struct device *before, const struct forecast *f, const char *option)
{
    char where[64], budget[128];
    const struct device *d = before;
    while (!d->is_host && f->needed_bytes[d->index] <= d->budget)
        d++;
    const struct task *t = f->task[f->peak_position[d->index]];
    return format_string("%s: device %s: task %s%s does not fit in the budget of %s", option, d->id, t->name,
                         layer_and_micro(where, t), format_budget(budget, d));
}

/* Devices that --device-mem limits all get the largest budget that one of them needs, since it is one number. */
char *raise_budgets(struct machine *m, const struct device *before, const struct forecast *f, const char *option)
{
    char *shortage = describe_shortage(before, f, option);
    size_t most = 0;
    for (int i = 0; i < m->n_devices; i++)
        most = MAX(most, f->needed_bytes[i]);
    for (struct device *d = m->device; d <= m->host; d++) {
        bool has_own = d->described.by_hand || d->is_host;
        size_t budget = MAX(d->budget, has_own ? f->needed_bytes[d->index] : most);
        if (d->described.by_hand && d->max_allocation == d->budget)
            d->max_allocation = budget;
        d->budget = budget;
    }
    return shortage;
}

/* The owner of the budget, as the user names it. */
static const char *owner_of(const struct device *d)
{
    if (d->described.by_hand)
        return d->id;
    return d->is_host ? "the host (--host-mem)" : "each device";
}

_Noreturn void refuse_budgets(const struct machine *m, const struct device *before, const char *shortage,
                              enum replanning replans)
{
    char *enough = NULL, text[32];
    const struct device *first = NULL; /* the first device that needs more */
    for (const struct device *d = m->device; d <= m->host; d++) {
        if (d->budget == before[d->index].budget || (first && !d->described.by_hand && !d->is_host))
            continue;
        append_text(&enough, "%s%zu bytes (%s) for %s", first ? ", " : "", d->budget,
                    format_bytes(text, (double)d->budget), owner_of(d));
        if (!first)
            first = d;
    }
    const char *verdict = replans == SAME_LIST ? "work" : "are needed, or more where --overlap then chooses anew";
    const char *option = first->is_host ? "--host-mem" : "--device-mem";
    if (first->described.by_hand)
        fail(EXIT_USAGE, "%s; %s %s: use a larger memory= or %s, or smaller tensors", shortage, enough, verdict,
             option);
    fail(EXIT_USAGE,
         "%s; %s %s: use a larger %s, or --recompute, --swap, --swap-what, a smaller --micro-batch or --seq-len",
         shortage, enough, verdict, option);
}

_Noreturn void refuse_budget(struct machine *m, const struct forecast *f, const char *option, enum replanning replans)
{
    struct device *before = copy_bytes(m->device, ((size_t)m->n_devices + 1) * sizeof *before);
    if (f->why_not) /* no budget would give the list a place */
        must(f->why_not);
    refuse_budgets(m, before, raise_budgets(m, before, f, option), replans);
}
