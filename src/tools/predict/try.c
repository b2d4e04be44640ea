/* try.c - what would come of a list: a planner's question, which costs milliseconds and changes nothing.
 *
 * A draft of the list is placed, ordered and simulated, whatever the budgets: it says by how much they are exceeded.
 * The draft has tasks of its own, but the list's tensors.  place() writes into these, so they are put back as they
 * were.
 */
#include "forecast.h"
#include "techniques/pass/edit.h"

#include <math.h>

/* The list in that order, with tasks of its own on the same tensors: to be placed, ordered and simulated, not run.
 * *original: the list's own tasks by position, which the caller frees. */
static struct step *draft_of(const struct step *s, struct task ***original)
{
    struct step *draft = new_step(s->pool, s->name);
    struct task **tasks = tasks_in_order(s, &draft->n);
    struct task *block = allocate(draft->n, sizeof *block);
    draft->task = allocate(draft->n, sizeof *draft->task);
    for (size_t i = 0; i < draft->n; i++) {
        block[i] = *tasks[i];
        block[i].index = i;
        block[i].edges = NULL;
        block[i].n_edges = 0;
        draft->task[i] = &block[i];
    }
    draft->last_origin = s->last_origin;
    draft->after = copy_bytes(s->after, s->n_after * sizeof *s->after);
    draft->n_after = s->n_after;
    *original = tasks;
    return draft;
}

static void free_draft(struct step *draft)
{
    if (draft->n > 0)
        free(draft->task[0]); /* the block of all */
    draft->n = 0;
    free_step(draft);
}

/* Notes what the placed draft needs on each device, and where in the list that is most. */
static void note_memory(struct forecast *f, struct step *draft)
{
    const struct machine *m = draft->pool->machine;
    size_t n_devices = (size_t)m->n_devices + 1;
    f->peak_total = copy_bytes(draft->peak_total, n_devices * sizeof *f->peak_total);
    f->peak_position = allocate(n_devices, sizeof *f->peak_position);
    f->needed_bytes = allocate(n_devices, sizeof *f->needed_bytes);
    for (size_t d = 0; d < n_devices; d++) {
        f->needed_bytes[d] = m->device[d].placed_bytes;
        if (f->needed_bytes[d] > m->device[d].budget)
            f->excess_bytes += (double)(f->needed_bytes[d] - m->device[d].budget);
    }
    for (size_t i = draft->n_levels; i-- > 0;) {
        const struct level *level = &draft->level[i];
        if (level->bytes == f->peak_total[level->device])
            f->peak_position[level->device] = (size_t)level->position;
    }
}

/* The end of the last of these n tasks. */
static double last_end(const struct moment *m, size_t n)
{
    double end = 0;
    for (size_t i = 0; i < n; i++)
        if (!m[i].skipped)
            end = fmax(end, m[i].end);
    return end;
}

/* Notes the period, and when each task runs in the steady step. */
static void note_times(struct forecast *f, const struct simulation *sim)
{
    const struct moment *steady = &sim->moments[(size_t)sim->first * f->n];
    double begin = last_end(steady - f->n, f->n); /* the end of the step before */
    f->period = sim->period;
    f->alone = last_end(sim->moments, f->n);
    f->span = allocate(f->n, sizeof *f->span);
    for (size_t i = 0; i < f->n; i++)
        f->span[i] = (struct span){steady[i].start - begin, steady[i].end - begin};
}

static struct tensor *copy_tensors(const struct pool *p)
{
    struct tensor *tensors = allocate(p->n, sizeof *tensors);
    for (size_t i = 0; i < p->n; i++)
        tensors[i] = *p->tensors[i];
    return tensors;
}

static void restore_tensors(const struct pool *p, const struct tensor *tensors)
{
    for (size_t i = 0; i < p->n; i++)
        *p->tensors[i] = tensors[i];
}

struct asked {             /* what a draft is asked for */
    bool without_bytes;    /* no task waits for bytes that another tensor has had */
    double most_excess;    /* a list that needs more bytes beyond the budgets is not simulated */
    simulation_look *look; /* NULL: nobody looks at the simulation */
    void *context;
};

/* Places, orders and simulates a draft of the list, with budgets that nothing exceeds, and puts the tensors back. */
static struct forecast forecast_of(const struct step *s, const struct costs *c, const struct asked *asked)
{
    struct forecast f = {.period = NAN, .alone = NAN};
    struct simulation *sim = NULL;
    struct step *draft = draft_of(s, &f.task);
    struct machine *m = s->pool->machine;
    struct device *limits = lift_limits(m, m->n_devices + 1);
    struct tensor *tensors = copy_tensors(s->pool);
    f.n = draft->n;
    f.why_not = place(s->pool, &draft, 1, PLACE_TO_CHECK);
    restore_limits(m, limits, m->n_devices + 1);
    note_memory(&f, draft);
    if (!f.why_not && f.excess_bytes <= asked->most_excess && has_times(draft, c)) {
        depend(draft, asked->without_bytes ? DATA_EDGES : ALL_EDGES);
        f.why_not = simulate(draft, c, &sim);
    }
    if (sim) {
        note_times(&f, sim);
        if (asked->look)
            asked->look(asked->context, sim);
        free_simulation(sim);
    }
    restore_tensors(s->pool, tensors);
    free(tensors);
    free(limits);
    free_draft(draft);
    return f;
}

struct forecast try_list(const struct step *s, const struct costs *c, double most_excess, simulation_look *look,
                         void *context)
{
    return forecast_of(s, c, &(struct asked){.most_excess = most_excess, .look = look, .context = context});
}

struct forecast try_step(const struct step *s, const struct costs *c) { return try_list(s, c, INFINITY, NULL, NULL); }

struct forecast try_data(const struct step *s, const struct costs *c)
{
    return forecast_of(s, c, &(struct asked){.without_bytes = true, .most_excess = INFINITY});
}

void free_forecast(struct forecast *f)
{
    free(f->why_not);
    free(f->peak_total);
    free(f->peak_position);
    free(f->task);
    free(f->span);
    free(f->needed_bytes);
}

struct forecast *keep_forecast(struct forecast f) { return copy_bytes(&f, sizeof f); }
