/* choose.c - which updates the CPU gets: the search for the plan that makes the shortest step.
 *
 * There is one decision per bucket, D, C or L (overlap.c says what they are), and one more: whether gradients that are
 * copied to the host share bytes.  The simulator says how long a step with a choice takes: it knows of links that are
 * shared, of pipelines and of memory.  One of the choices is to leave all updates on the device; when no step is
 * shorter, the pass declines.
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
#include "choose.h"

#include <math.h>

struct overlap_options overlap_options;

/* The first k buckets, which are released before all others, are on the side `earliest`. */
static void choose_earliest(const struct planner *p, unsigned char *side, size_t k, enum side earliest)
{
    for (size_t b = 0; b < p->buckets.n; b++)
        side[b] = (unsigned char)(b < k ? earliest : ON_DEVICE);
}

void score_candidate(const struct question *q, struct candidate *c)
{
    unsigned char choice[MOST_BUCKETS + 1];
    memcpy(choice, c->side, q->n - 1);
    choice[q->n - 1] = (unsigned char)c->sharing;
    c->score = score_choice(q, choice);
}

void try_candidate(const struct question *q, struct candidate *c)
{
    c->sharing = GRADIENTS_ALONE;
    score_candidate(q, c);
    if (c->score.excess_bytes == 0)
        return;
    c->sharing = GRADIENTS_SHARED;
    score_candidate(q, c);
}

/* ---- how long it takes ------------------------------------------------------------------------------------------- */

/* The task's time, in the mean over all steps. */
static double seconds_of(const struct planner *p, const struct task *t)
{
    return seconds_alone(p->costs, t) / t->when.every;
}

/* What each bucket takes on its device; and the floor, which is what all other work takes the busiest lane. */
static void measure_device(struct planner *p)
{
    struct step *s = p->step;
    double *busy = allocate((size_t)s->pool->machine->n_lanes, sizeof *busy);
    for (size_t i = 0; i < s->n; i++) {
        const struct task *t = s->task[i];
        int b = p->buckets.bucket_of[i];
        double seconds = seconds_of(p, t);
        if (b == NONE) {
            busy[t->lane->index] += seconds;
            p->least_period = fmax(p->least_period, busy[t->lane->index]);
        } else if (t->lane == s->task[p->buckets.bucket[b].update]->lane)
            p->seconds[b].on_device += seconds;
    }
    free(busy);
}

/* An open edit with the first k buckets on the CPU, and `one` too, unless that is NONE. */
static struct edit *move_some(const struct planner *p, size_t k, int one)
{
    unsigned char side[MOST_BUCKETS];
    struct edit *e = open_edit(p->step);
    struct mover m = begin_moves(e, p->step, p->uses, p->cores, GRADIENTS_SHARED);
    choose_earliest(p, side, k, ON_CPU);
    if (one != NONE)
        side[one] = ON_CPU;
    move_updates(&m, &p->buckets, side);
    end_moves(&m);
    return e;
}

/* Measures how long a bucket takes that is the only one on the CPU. */
static void measure_on_cpu(struct planner *p, size_t b)
{
    struct step *s = p->step;
    struct edit *e = move_some(p, 0, (int)b);
    for (size_t i = p->uses->n; i < s->n; i++) { /* tasks that are new */
        const struct task *t = s->task[i];
        if (is_copy(t) && copy_target(t)->device->is_host)
            p->seconds[b].down += seconds_of(p, t);
        else if (t->role == ROLE_UPDATE && t->lane->device->is_host)
            p->seconds[b].on_cpu += seconds_of(p, t) / p->cores;
    }
    undo(e);
}

static void measure_serial(struct planner *p)
{
    struct step *s = p->step;
    struct edit *e = move_some(p, p->buckets.n, NONE);
    for (const struct task *t = s->head->next; t != s->head; t = t->next)
        p->serial += seconds_of(p, t);
    undo(e);
}

void measure_buckets(struct planner *p)
{
    measure_device(p);
    for (size_t b = 0; b < p->buckets.n; b++)
        measure_on_cpu(p, b);
    measure_serial(p);
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

/* Starts with none, some and all of the buckets on the CPU, once as C and once as L; and once more with gradients that
 * share bytes, where all on the CPU do not fit otherwise. */
static void search_plan(const struct planner *p, const struct question *q, struct plans *plans)
{
    const size_t n = p->buckets.n, most_starts = MIN(n, MOST_STARTS);
    const size_t affordable = OVERLAP_WORK / 4 / p->step->n; /* so many starts in each of the four rows */
    const size_t steps = MAX(MIN(most_starts, affordable), 1);
    struct candidate *best = &plans->by_mode[OVERLAP_PLAN];
    const enum sharing last = plans->by_mode[OVERLAP_ALL_CPU].sharing;
    unsigned char found[MOST_BUCKETS + 1];
    unsigned char *start = allocate(4 * (steps + 1) * (n + 1), 1), *next = start;
    size_t n_starts = 0;
    for (enum sharing sharing = GRADIENTS_ALONE; sharing <= last; sharing++)
        for (enum side side = ON_CPU; side <= ON_CPU_LATE; side++)
            for (size_t k = 0; k <= steps; k++) {
                choose_earliest(p, next, n * k / steps, side);
                next[n] = (unsigned char)sharing;
                next += n + 1;
                n_starts++;
            }
    best->score = choose(q, start, n_starts, found);
    memcpy(best->side, found, n);
    best->sharing = found[n];
    free(start);
}

struct plans find_plans(const struct planner *p, const struct question *q)
{
    const struct update_bucket *bucket = p->buckets.bucket;
    const size_t n = p->buckets.n;
    struct plans plans = {0};
    struct candidate *none = &plans.by_mode[OVERLAP_ALL_DEVICE], *all = &plans.by_mode[OVERLAP_ALL_CPU];
    bool updates_wait_for_norm = n > 0 && (int)bucket[0].update > bucket[n - 1].released;
    /* If updates wait for the norm, none can run before it.  So all go to the CPU late, in the order in which the next
     * forward needs them. */
    enum side on_cpu = updates_wait_for_norm ? ON_CPU_LATE : ON_CPU;
    choose_earliest(p, none->side, 0, ON_CPU);
    try_candidate(q, none);
    choose_earliest(p, all->side, n, on_cpu);
    try_candidate(q, all);
    if (p->timed)
        search_plan(p, q, &plans);
    else
        plans.by_mode[OVERLAP_PLAN] = is_better(&all->score, &none->score) ? *all : *none;
    return plans;
}
