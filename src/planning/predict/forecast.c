/* forecast.c - what would come of a list: a planner's question, which costs milliseconds and changes nothing.
 *
 * A draft of the list is placed, ordered and simulated, whatever the budgets: it says by how much they are exceeded.
 * The draft has tasks of its own, but the list's tensors.  place() writes into these, so they are put back as they
 * were.
 */
#include "forecast.h"
#include "planning/pass/edit.h"

#include <math.h>

/* ---- a draft ----------------------------------------------------------------------------------------------------- */

/* Makes a list like this one in its present order, with tasks of its own on the same tensors: it is placed, ordered and
 * simulated, but not run.  *original: the list's own tasks by position, which the caller frees. */
static struct list *new_draft_of(const struct list *list, struct task ***original)
{
    struct list *draft = new_list(list->pool, list->name);
    struct task **tasks = tasks_in_order(list, &draft->n);
    struct task *block = allocate(draft->n, sizeof *block);
    draft->tasks = allocate(draft->n, sizeof *draft->tasks);
    for (size_t i = 0; i < draft->n; i++) {
        block[i] = *tasks[i];
        block[i].index = i;
        block[i].edges = NULL;
        block[i].n_edges = 0;
        draft->tasks[i] = &block[i];
    }
    draft->extra.last_origin = list->extra.last_origin;
    draft->extra.origin_waits =
        copy_bytes(list->extra.origin_waits, list->extra.n_origin_waits * sizeof *list->extra.origin_waits);
    draft->extra.n_origin_waits = list->extra.n_origin_waits;
    *original = tasks;
    return draft;
}

static void free_draft(struct list *draft)
{
    if (draft->n > 0)
        free(draft->tasks[0]); /* the block of all */
    draft->n = 0;
    free_list(draft);
}

/* ---- what becomes known of it ------------------------------------------------------------------------------------ */

/* Notes what the placed draft needs on each device, and where in the list that is most. */
static void note_memory(struct forecast *forecast, struct list *draft)
{
    const struct machine *machine = draft->pool->machine;
    size_t n_devices = (size_t)machine->n_devices + 1;
    forecast->peak_total = copy_bytes(draft->extra.peak_total, n_devices * sizeof *forecast->peak_total);
    forecast->peak_position = allocate(n_devices, sizeof *forecast->peak_position);
    forecast->needed_bytes = allocate(n_devices, sizeof *forecast->needed_bytes);
    for (size_t i = 0; i < n_devices; i++) {
        forecast->needed_bytes[i] = machine->devices[i].placed_bytes;
        if (forecast->needed_bytes[i] > machine->devices[i].budget)
            forecast->excess_bytes += (double)(forecast->needed_bytes[i] - machine->devices[i].budget);
    }
    for (size_t i = draft->extra.n_levels; i-- > 0;) {
        const struct level *level = &draft->extra.levels[i];
        if (level->bytes == forecast->peak_total[level->device])
            forecast->peak_position[level->device] = (size_t)level->position;
    }
}

/* The end of the last of these n tasks. */
static double last_end(const struct moment *moment, size_t n)
{
    double end = 0;
    for (size_t i = 0; i < n; i++)
        if (!moment[i].skipped)
            end = fmax(end, moment[i].end);
    return end;
}

/* Notes the period, and when each task runs in the steady step. */
static void note_times(struct forecast *forecast, const struct simulation *simulation)
{
    const struct moment *steady = &simulation->moments[(size_t)simulation->first * forecast->n];
    double begin = last_end(steady - forecast->n, forecast->n); /* the end of the step before */
    forecast->period = simulation->period;
    forecast->alone = last_end(simulation->moments, forecast->n);
    forecast->spans = allocate(forecast->n, sizeof *forecast->spans);
    for (size_t i = 0; i < forecast->n; i++)
        forecast->spans[i] = (struct span){steady[i].start - begin, steady[i].end - begin};
}

/* ---- forecasts --------------------------------------------------------------------------------------------------- */

static struct tensor *copy_tensors(const struct pool *pool)
{
    struct tensor *tensors = allocate(pool->n, sizeof *tensors);
    for (size_t i = 0; i < pool->n; i++)
        tensors[i] = *pool->tensors[i];
    return tensors;
}

static void restore_tensors(const struct pool *pool, const struct tensor *tensors)
{
    for (size_t i = 0; i < pool->n; i++)
        *pool->tensors[i] = tensors[i];
}

struct request {           /* what is to be known of a draft */
    bool without_bytes;    /* no task waits for bytes that another tensor has had */
    double most_excess;    /* a list that needs more bytes beyond the budgets is not simulated */
    simulation_look *look; /* NULL: nobody looks at the simulation */
    void *context;
};

/* Places, orders and simulates a draft of the list, with budgets that nothing exceeds, and puts the tensors back. */
static struct forecast make_forecast(const struct list *list, const struct costs *costs, const struct request *request)
{
    struct forecast forecast = {.period = NAN, .alone = NAN};
    struct simulation *simulation = NULL;
    struct list *draft = new_draft_of(list, &forecast.tasks);
    struct machine *machine = list->pool->machine;
    struct device *limits = lift_limits(machine, machine->n_devices + 1);
    struct tensor *tensors = copy_tensors(list->pool);
    forecast.n = draft->n;
    forecast.problem = place(list->pool, &draft, 1, PLACE_TO_CHECK);
    restore_limits(machine, limits, machine->n_devices + 1);
    note_memory(&forecast, draft);
    if (!forecast.problem && forecast.excess_bytes <= request->most_excess && has_times(draft, costs)) {
        depend(draft, request->without_bytes ? DATA_EDGES : ALL_EDGES);
        forecast.problem = simulate_list(draft, costs, &simulation);
    }
    if (simulation) {
        note_times(&forecast, simulation);
        if (request->look)
            request->look(request->context, simulation);
        free_simulation(simulation);
    }
    restore_tensors(list->pool, tensors);
    free(tensors);
    free(limits);
    free_draft(draft);
    return forecast;
}

struct forecast forecast_list_within(const struct list *list, const struct costs *costs, double most_excess,
                                     simulation_look *look, void *context)
{
    return make_forecast(list, costs, &(struct request){.most_excess = most_excess, .look = look, .context = context});
}

struct forecast forecast_list(const struct list *list, const struct costs *costs)
{
    return forecast_list_within(list, costs, INFINITY, NULL, NULL);
}

struct forecast forecast_by_data(const struct list *list, const struct costs *costs)
{
    return make_forecast(list, costs, &(struct request){.without_bytes = true, .most_excess = INFINITY});
}

size_t host_bytes_of(const struct list *list)
{
    enum { NO_SIMULATION = -1 }; /* every excess is more than that */
    struct forecast forecast = make_forecast(list, NULL, &(struct request){.most_excess = NO_SIMULATION});
    size_t bytes = forecast.needed_bytes[list->pool->machine->host->index];
    free_forecast(&forecast);
    return bytes;
}

void free_forecast(struct forecast *forecast)
{
    free(forecast->problem);
    free(forecast->peak_total);
    free(forecast->peak_position);
    free(forecast->tasks);
    free(forecast->spans);
    free(forecast->needed_bytes);
}

struct forecast *keep_forecast(struct forecast forecast) { return copy_bytes(&forecast, sizeof forecast); }
