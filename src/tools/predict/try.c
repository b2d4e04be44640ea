/* try.c - what would come of a list: a planner's question, which costs milliseconds and changes nothing.
 *
 * A draft of the list is placed, ordered and simulated, whatever the budgets: it says by how much they are exceeded. It
 * has tasks of its own, but the list's tensors, so these get back what place() wrote into them.
 */
#include "predict.h"
#include "techniques/pass/edit.h"

#include <math.h>

struct step *draft_of(const struct step *s, struct task ***original)
{
    struct step *draft = new_step(s->pool, s->name);
    *original = tasks_in_order(s, &draft->n);
    struct task *block = allocate(draft->n, sizeof *block);
    draft->task = allocate(draft->n, sizeof *draft->task);
    for (size_t i = 0; i < draft->n; i++) {
        block[i] = *(*original)[i];
        block[i].index = i;
        block[i].edges = NULL;
        block[i].n_edges = 0;
        draft->task[i] = &block[i];
    }
    draft->last_origin = s->last_origin;
    return draft;
}

void free_draft(struct step *draft)
{
    free(draft->n ? draft->task[0] : NULL);
    draft->n = 0;
    free_step(draft);
}

static void note_memory(struct forecast *f, struct step *draft)
{
    const struct machine *m = draft->pool->machine;
    size_t n_devices = (size_t)m->n_devices + 1;
    f->high = copy_bytes(draft->high, n_devices * sizeof *f->high);
    f->at = allocate(n_devices, sizeof *f->at);
    f->need = allocate(n_devices, sizeof *f->need);
    for (size_t d = 0; d < n_devices; d++) {
        f->need[d] = m->device[d].placed;
        f->excess += f->need[d] > m->device[d].budget ? (double)(f->need[d] - m->device[d].budget) : 0;
    }
    for (size_t i = draft->n_levels; i-- > 0;)
        if (draft->level[i].bytes == f->high[draft->level[i].device])
            f->at[draft->level[i].device] = (size_t)draft->level[i].position;
}

static void note_times(struct forecast *f, const struct simulation *sim)
{
    const struct moment *before = &sim->moments[(size_t)(sim->first - 1) * f->n], *m = before + f->n;
    double from = 0;
    for (size_t i = 0; i < f->n; i++)
        from = before[i].skipped ? from : fmax(from, before[i].end);
    f->period = sim->period;
    f->alone = 0;
    f->span = allocate(f->n, sizeof *f->span);
    for (size_t i = 0; i < f->n; i++) {
        const struct moment *first = &sim->moments[i];
        f->alone = fmax(f->alone, first->skipped ? 0 : first->end);
        f->span[i] = (struct span){m[i].start - from, m[i].end - from};
    }
}

struct forecast try_list(const struct step *s, const struct costs *c, double most_excess, simulation_look *look,
                         void *context)
{
    struct forecast f = {.period = NAN, .alone = NAN};
    struct simulation *sim = NULL;
    struct step *draft = draft_of(s, &f.task);
    const struct pool *p = s->pool;
    struct machine *m = p->machine;
    struct device *had = lift_limits(m, m->n_devices + 1);
    struct tensor *tensors = allocate(p->n, sizeof *tensors);
    for (size_t i = 0; i < p->n; i++)
        tensors[i] = *p->tensors[i];
    f.n = draft->n;
    f.why_not = place(s->pool, &draft, 1, true);
    restore_limits(m, had, m->n_devices + 1);
    note_memory(&f, draft);
    if (!f.why_not && f.excess <= most_excess && has_times(draft, c)) {
        depend(draft, true);
        f.why_not = simulate(draft, c, &sim);
    }
    if (sim) {
        note_times(&f, sim);
        if (look)
            look(context, sim);
        free_simulation(sim);
    }
    for (size_t i = 0; i < p->n; i++)
        *p->tensors[i] = tensors[i];
    free(tensors), free(had);
    free_draft(draft);
    return f;
}

struct forecast try_step(const struct step *s, const struct costs *c) { return try_list(s, c, INFINITY, NULL, NULL); }

void free_forecast(struct forecast *f)
{
    free(f->why_not), free(f->high), free(f->at), free(f->task), free(f->span), free(f->need);
}

struct forecast *keep_forecast(struct forecast f) { return copy_bytes(&f, sizeof f); }
