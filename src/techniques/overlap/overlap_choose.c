/* overlap_choose.c - which updates the CPU gets: the search for the plan that makes the shortest step.
 *
 * There is one decision per bucket, D, C or L (overlap.c says what they are), and one more: whether gradients that are
 * copied to the host share bytes.  The simulator says how long a step with a plan takes: it knows of links that are
 * shared, of pipelines and of memory.  One of the plans leaves all updates on the device; when no step is shorter, the
 * pass declines.
 *
 * The CPU gets the buckets that are released first, so the question is how many.  The search (search/search.h) starts
 * from
 *
 *     D D D D   C D D D   C C D D   C C C D   C C C C        the last layer first, in order of release
 *               L D D D   L L D D   L L L D   L L L L
 *
 * and goes on from the best start by flips.
 *
 * Source: that of overlap.c.
 */
#include "overlap_plan.h"

#include <math.h>

/* The first k buckets, which are released before all others, are on the side `earliest`. */
static void choose_earliest(const struct update_survey *survey, side_byte *side, size_t k, enum side earliest)
{
    for (size_t bucket = 0; bucket < survey->buckets.n; bucket++)
        side[bucket] = (side_byte)(bucket < k ? earliest : ON_DEVICE);
}

/* ---- a plan as a choice ------------------------------------------------------------------------------------------ */

/* The decisions are the side of each bucket, and then the sharing.  Only these three functions know that. */

void set_decisions(struct update_survey *survey)
{
    size_t n = survey->buckets.n;
    for (size_t bucket = 0; bucket < n; bucket++)
        survey->decisions[bucket] = (struct decision){.options = SIDES, .group = NONE};
    survey->decisions[n] = (struct decision){.options = SHARINGS, .group = NONE};
    survey->n_decisions = n + 1;
}

static void plan_to_choice(const struct update_plan *plan, size_t n_decisions, option_byte *choice)
{
    memcpy(choice, plan->side, n_decisions - 1);
    choice[n_decisions - 1] = (option_byte)plan->sharing;
}

void choice_to_plan(const option_byte *choice, size_t n_decisions, struct update_plan *plan)
{
    memcpy(plan->side, choice, n_decisions - 1);
    plan->sharing = choice[n_decisions - 1];
}

/* ---- trying a plan ----------------------------------------------------------------------------------------------- */

void score_plan(const struct question *question, struct update_plan *plan)
{
    option_byte choice[MOST_DECISIONS];
    plan_to_choice(plan, question->n, choice);
    plan->score = score_choice(question, choice);
}

void try_plan(const struct question *question, struct update_plan *plan)
{
    plan->sharing = GRADIENTS_ALONE;
    score_plan(question, plan);
    if (score_fits(&plan->score))
        return;
    plan->sharing = GRADIENTS_SHARED;
    score_plan(question, plan);
}

/* ---- how long it takes ------------------------------------------------------------------------------------------- */

/* The task's time, in the mean over all steps. */
static double seconds_of(const struct update_survey *survey, const struct task *task)
{
    return seconds_alone(survey->costs, task) / task->extra.when.every;
}

/* Measures what each bucket takes on its device; and the least period, the time that all other work takes on the
 * busiest lane. */
static void measure_device(struct update_survey *survey)
{
    struct list *list = survey->list;
    double *busy = allocate_each(list->pool->machine->n_lanes, sizeof *busy);
    for (size_t i = 0; i < list->n; i++) {
        const struct task *task = list->tasks[i];
        int bucket = survey->buckets.bucket_of[i];
        double seconds = seconds_of(survey, task);
        if (bucket == NONE) {
            busy[task->lane->index] += seconds;
            survey->least_period = fmax(survey->least_period, busy[task->lane->index]);
        } else if (task->lane == list->tasks[survey->buckets.items[bucket].first_update]->lane) {
            survey->seconds[bucket].on_device += seconds;
        }
    }
    free(busy);
}

/* Opens an edit, and moves the buckets to these sides. */
static struct edit *move_to_sides(const struct update_survey *survey, const side_byte *side)
{
    struct edit *edit = open_edit(survey->list);
    struct update_mover mover = begin_moves(edit, survey->list, survey->uses, survey->cores, GRADIENTS_SHARED);
    move_updates(&mover, &survey->buckets, side);
    end_moves(&mover);
    return edit;
}

/* Measures how long the bucket takes when it alone is on the CPU. */
static void measure_on_cpu(struct update_survey *survey, size_t bucket)
{
    struct list *list = survey->list;
    side_byte side[MOST_BUCKETS];
    memset(side, ON_DEVICE, sizeof side);
    side[bucket] = ON_CPU;
    struct edit *edit = move_to_sides(survey, side);
    for (size_t i = survey->uses->n; i < list->n; i++) { /* tasks that are new */
        const struct task *task = list->tasks[i];
        if (is_copy(task) && copy_target(task)->device->is_host)
            survey->seconds[bucket].down += seconds_of(survey, task);
        else if (task->role == ROLE_UPDATE && task->lane->device->is_host)
            survey->seconds[bucket].on_cpu += seconds_of(survey, task) / survey->cores;
    }
    undo_edit(edit);
}

/* Measures a step with all updates on the CPU, if tasks ran one after another. */
static void measure_serial(struct update_survey *survey)
{
    struct list *list = survey->list;
    side_byte side[MOST_BUCKETS];
    memset(side, ON_CPU, sizeof side);
    struct edit *edit = move_to_sides(survey, side);
    for (const struct task *task = list->extra.sentinel->next; task != list->extra.sentinel; task = task->next)
        survey->serial += seconds_of(survey, task);
    undo_edit(edit);
}

void measure_buckets(struct update_survey *survey)
{
    measure_device(survey);
    for (size_t bucket = 0; bucket < survey->buckets.n; bucket++)
        measure_on_cpu(survey, bucket);
    measure_serial(survey);
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

enum { MOST_ROWS = 4 }; /* rows of starts: as C or L, each with gradients alone or sharing */

/* In how many steps a row of starts goes from no bucket on the CPU to all. */
static size_t count_shares(const struct update_survey *survey)
{
    size_t wanted = MIN(survey->buckets.n, MOST_STARTS);
    size_t affordable = OVERLAP_WORK / MOST_ROWS / survey->list->n;
    return MAX(MIN(wanted, affordable), 1);
}

/* Writes a row of starts to starts[]: 0/shares, 1/shares ... of the buckets are on that side, the others on the device.
 * Returns where the row ends. */
static option_byte *add_starts(const struct update_survey *survey, option_byte *starts, size_t shares,
                               enum sharing sharing, enum side side)
{
    struct update_plan plan = {.sharing = sharing};
    for (size_t k = 0; k <= shares; k++) {
        choose_earliest(survey, plan.side, survey->buckets.n * k / shares, side);
        plan_to_choice(&plan, survey->n_decisions, starts);
        starts += survey->n_decisions;
    }
    return starts;
}

/* Starts with none, some and all of the buckets on the CPU, once as C and once as L; and once more with gradients that
 * share bytes, where all on the CPU do not fit otherwise. */
static void search_plan(const struct update_survey *survey, const struct question *question, struct update_plans *plans)
{
    size_t n = survey->n_decisions;
    size_t shares = count_shares(survey);
    enum sharing last = plans->by_mode[OVERLAP_ALL_CPU].sharing;
    struct update_plan *best = &plans->by_mode[OVERLAP_PLAN];
    option_byte found[MOST_DECISIONS];
    option_byte *starts = allocate(MOST_ROWS * (shares + 1) * n, 1);
    option_byte *end = starts;
    for (enum sharing sharing = GRADIENTS_ALONE; sharing <= last; sharing++)
        for (enum side side = ON_CPU; side <= ON_CPU_LAST; side++)
            end = add_starts(survey, end, shares, sharing, side);
    size_t n_starts = (size_t)(end - starts) / n;
    best->score = find_best_choice(question, starts, n_starts, found);
    choice_to_plan(found, n, best);
    free(starts);
}

struct update_plans choose_plans(const struct update_survey *survey, const struct question *question)
{
    const struct update_bucket *bucket = survey->buckets.items;
    size_t n = survey->buckets.n;
    struct update_plans plans = {0};
    struct update_plan *none = &plans.by_mode[OVERLAP_ALL_DEVICE], *all = &plans.by_mode[OVERLAP_ALL_CPU];
    bool updates_wait_for_norm = n > 0 && (int)bucket[0].first_update > bucket[n - 1].released;
    /* If updates wait for the norm, none can run before it.  So all go to the CPU last, in the order in which the next
     * forward needs them. */
    enum side on_cpu = updates_wait_for_norm ? ON_CPU_LAST : ON_CPU;
    choose_earliest(survey, none->side, 0, ON_CPU);
    try_plan(question, none);
    choose_earliest(survey, all->side, n, on_cpu);
    try_plan(question, all);
    if (survey->timed)
        search_plan(survey, question, &plans);
    else
        plans.by_mode[OVERLAP_PLAN] = is_better(&all->score, &none->score) ? *all : *none;
    return plans;
}
