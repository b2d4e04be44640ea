/* budgets.c - a list that does not fit: which budgets work for it. */
#include "predict.h"

void set_budgets(struct machine *m, size_t each, size_t host)
{
    for (struct device *d = m->device; d <= m->host; d++) {
        size_t bytes = d->is_host ? host : each;
        if (d->by_hand && bytes) {
            d->max_allocation = d->max_allocation == d->budget ? bytes : d->max_allocation;
            d->memory = bytes;
        }
        d->budget = bytes ? bytes : d->budget;
    }
}

struct device *lift_limits(struct machine *m, int n)
{
    struct device *had = copy_bytes(m->device, (size_t)n * sizeof *had);
    for (struct device *d = m->device; d < m->device + n; d++) {
        if (d->by_hand && d->max_allocation == d->budget)
            d->max_allocation = NO_LIMIT;
        d->budget = NO_LIMIT;
    }
    return had;
}

void restore_limits(struct machine *m, const struct device *had, int n)
{
    for (int i = 0; i < n; i++) {
        m->device[i].budget = had[i].budget;
        m->device[i].max_allocation = had[i].max_allocation;
    }
}

/* --device-mem is one number for all devices. */
char *raise_budgets(struct machine *m, const struct device *had, const struct forecast *f, const char *option)
{
    const struct device *d = had;
    size_t most = 0;
    while (!d->is_host && f->need[d->index] <= d->budget)
        d++;
    const struct task *t = f->task[f->at[d->index]];
    char *shortage = format_string("%s: device %s: task %s%s does not fit in the budget of %s", option, d->id, t->name,
                                   layer_and_micro((char[64]){0}, t), format_budget((char[128]){0}, d));
    for (int i = 0; i < m->n_devices; i++)
        most = MAX(most, f->need[i]);
    for (struct device *x = m->device; x <= m->host; x++) {
        size_t budget = MAX(x->budget, x->by_hand || x->is_host ? f->need[x->index] : most);
        x->max_allocation = x->by_hand && x->max_allocation == x->budget ? budget : x->max_allocation;
        x->budget = budget;
    }
    return shortage;
}

_Noreturn void refuse_budgets(const struct machine *m, const struct device *had, const char *shortage, bool sure)
{
    char *work = NULL;
    const struct device *first = NULL; /* that needs more */
    for (const struct device *d = m->device; d <= m->host; d++) {
        if (d->budget == had[d->index].budget || (first && !d->by_hand && !d->is_host))
            continue;
        first = first ? first : d;
        append_text(&work, "%s%zu bytes (%s) for %s", d == first ? "" : ", ", d->budget,
                    format_bytes((char[32]){0}, (double)d->budget),
                    d->by_hand   ? d->id
                    : d->is_host ? "the host (--host-mem)"
                                 : "each device");
    }
    fail(EXIT_USAGE, "%s; %s %s: use a larger %s%s, or %s", shortage, work,
         sure ? "work" : "are needed, or more where --overlap then chooses anew", first->by_hand ? "memory= or " : "",
         first->is_host ? "--host-mem" : "--device-mem",
         first->by_hand ? "smaller tensors" : "--recompute, --swap, --swap-what, a smaller --micro-batch or --seq-len");
}

_Noreturn void refuse_budget(struct machine *m, const struct forecast *f, const char *option, bool sure)
{
    struct device *had = copy_bytes(m->device, ((size_t)m->n_devices + 1) * sizeof *had);
    if (f->why_not) /* whatever the budget */
        must(f->why_not);
    refuse_budgets(m, had, raise_budgets(m, had, f, option), sure);
}
