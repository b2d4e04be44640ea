/* try.c - what would come of a list: a planner's question, which costs milliseconds and changes nothing.
 *
 * A draft of the list is placed, ordered and simulated, whatever the budgets: it says by how much they are exceeded. It
 * has tasks of its own, but the list's tensors, so these get back what place() wrote into them.
 */
#include "predict.h"

#include <math.h>

struct spot { /* of a tensor: what place() sets */
    struct step *step;
    int first, last, slab;
    size_t address;
};

static struct spot *save_spots(const struct pool *p)
{
    struct spot *spots = allocate(p->n, sizeof *spots);
    for (size_t i = 0; i < p->n; i++) {
        const struct tensor *t = p->tensors[i];
        spots[i] = (struct spot){t->step, t->first, t->last, t->slab, t->address};
    }
    return spots;
}

static void restore_spots(const struct pool *p, struct spot *spots)
{
    for (size_t i = 0; i < p->n; i++) {
        struct tensor *t = p->tensors[i];
        t->step = spots[i].step;
        t->first = spots[i].first, t->last = spots[i].last;
        t->slab = spots[i].slab;
        t->address = spots[i].address;
    }
    free(spots);
}

static void note_memory(struct forecast *f, struct step *draft)
{
    f->n_devices = (size_t)draft->pool->machine->n_devices + 1;
    f->high = allocate(f->n_devices, sizeof *f->high);
    f->at = allocate(f->n_devices, sizeof *f->at);
    f->need = allocate(f->n_devices, sizeof *f->need);
    for (size_t d = 0; d < f->n_devices; d++) {
        size_t budget = draft->pool->machine->device[d].budget;
        f->need[d] = draft->pool->machine->device[d].placed;
        f->excess += f->need[d] > budget ? (double)(f->need[d] - budget) : 0;
    }
    f->level = draft->level, f->n_levels = draft->n_levels;
    draft->level = NULL;
    for (size_t i = 0; i < f->n_levels; i++) {
        const struct level *l = &f->level[i];
        if (l->bytes > f->high[l->device])
            f->high[l->device] = l->bytes, f->at[l->device] = (size_t)l->position;
    }
}

static void note_times(struct forecast *f, const struct simulation *sim)
{
    const struct moment *before = &sim->moments[(size_t)(sim->first - 1) * f->n], *m = before + f->n;
    double from = 0;
    for (size_t i = 0; i < f->n; i++)
        from = before[i].blocker == SKIPPED ? from : fmax(from, before[i].end);
    f->period = sim->period;
    f->alone = 0;
    f->span = allocate(f->n, sizeof *f->span);
    for (size_t i = 0; i < f->n; i++) {
        const struct moment *first = &sim->moments[i];
        f->alone = fmax(f->alone, first->blocker == SKIPPED ? 0 : first->end);
        f->span[i] = (struct span){m[i].start - from, m[i].end - from};
    }
}

struct hooks { /* who sees what while a list is tried */
    forecast_check *goes_on;
    simulation_look *look;
    void *context;
};

static struct forecast try_draft(const struct step *s, const struct costs *c, const struct hooks *hooks)
{
    struct forecast f = {.period = NAN, .alone = NAN};
    struct simulation *sim = NULL;
    struct step *draft = draft_of(s, &f.task);
    struct spot *spots = save_spots(s->pool);
    struct machine *m = s->pool->machine;
    struct limits *had = lift_limits(m, m->n_devices + 1);
    f.n = draft->n;
    f.why_not = place(s->pool, &draft, 1, true);
    restore_limits(m, had, m->n_devices + 1);
    free(had);
    note_memory(&f, draft);
    if (!f.why_not && (!hooks->goes_on || hooks->goes_on(hooks->context, &f)) && has_times(draft, c)) {
        depend(draft, true);
        f.why_not = simulate(draft, c, &sim);
    }
    if (sim) {
        note_times(&f, sim);
        if (hooks->look)
            hooks->look(hooks->context, sim);
        free_simulation(sim);
    }
    restore_spots(s->pool, spots);
    free_draft(draft);
    return f;
}

struct forecast try_step(const struct step *s, const struct costs *c) { return try_draft(s, c, &(struct hooks){0}); }

struct forecast try_and_look(const struct step *s, const struct costs *c, simulation_look *look, void *context)
{
    return try_draft(s, c, &(struct hooks){.look = look, .context = context});
}

struct forecast try_while(const struct step *s, const struct costs *c, forecast_check *goes_on, void *context)
{
    return try_draft(s, c, &(struct hooks){.goes_on = goes_on, .context = context});
}

void free_forecast(struct forecast *f)
{
    free(f->why_not), free(f->high), free(f->at), free(f->task), free(f->level), free(f->span), free(f->need);
}

size_t *bytes_at_positions(const struct forecast *f, const struct device *d)
{
    size_t *bytes = allocate(f->n, sizeof *bytes), next = 0, now = 0;
    for (size_t i = 0; i < f->n_levels; i++) {
        if (f->level[i].device != d->index)
            continue;
        while (next < (size_t)f->level[i].position)
            bytes[next++] = now;
        now = f->level[i].bytes;
    }
    while (next < f->n)
        bytes[next++] = now;
    return bytes;
}
