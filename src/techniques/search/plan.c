/* plan.c - the one search behind all techniques that choose (see plan.h). */
#include "plan.h"
#include "trainer/base/module.h"

#include <math.h>

struct search {
    const struct question *q;
    double work; /* tasks simulated so far */
    uint64_t draws;
    uint64_t begun;
    unsigned char *best;
    struct score record; /* of it */
};

/* ---- scores ------------------------------------------------------------------------------------------------------ */

static bool is_less(double a, double b) { return a < b - 1e-9 * fabs(b); }

bool is_better(const struct score *a, const struct score *b)
{
    if (a->excess != b->excess)
        return a->excess < b->excess;
    if (is_less(a->period, b->period) || is_less(b->period, a->period))
        return a->period < b->period;
    return is_less(a->copied, b->copied);
}

static struct score try_choice(const struct question *q, const unsigned char *choice, double most, double *work)
{
    struct edit *e = open_edit(q->step);
    struct score score = {.copied = 0};
    q->apply(q->pass, e, choice);
    struct forecast f = try_list(q->step, q->costs, most, NULL, NULL);
    for (size_t i = 0; i < f.n; i++)
        score.copied += f.task[i]->copy ? (double)f.task[i]->access[0].tensor->bytes : 0;
    bool simulated = f.excess <= most;
    score.excess = f.why_not ? INFINITY : f.excess;
    score.period = !isnan(f.period) ? f.period : simulated ? 0 : INFINITY;
    *work += (double)f.n / (simulated ? 1 : 5);
    free_forecast(&f);
    undo(e);
    return score;
}

struct score score_choice(const struct question *q, const unsigned char *choice)
{
    return try_choice(q, choice, INFINITY, &(double){0});
}

/* ---- other choices ----------------------------------------------------------------------------------------------- */

static size_t draw(struct search *s, size_t n)
{
    return (size_t)((double)n * random_uniform(0, STREAM_PLAN, 0, s->draws++));
}

/* Of one decision, or of all of its group that have that option. */
static void give_option(const struct question *q, unsigned char *choice, size_t i, unsigned char option, bool by_group)
{
    choice[i] = option;
    for (size_t k = 0; k < q->n && by_group && q->decision[i].group != NO_GROUP; k++)
        if (q->decision[k].group == q->decision[i].group && option < q->decision[k].options)
            choice[k] = option;
}

/* Gives one decision another option, or all of its group that have it; or two decisions exchange theirs. */
static void change(struct search *s, unsigned char *choice)
{
    const struct decision *decision = s->q->decision;
    size_t i = draw(s, s->q->n), other = draw(s, s->q->n), kind = draw(s, 8);
    unsigned char mine = choice[i];
    if (kind < 2 && choice[other] < decision[i].options && mine < decision[other].options)
        choice[i] = choice[other], choice[other] = mine;
    else
        give_option(s->q, choice, i, (unsigned char)draw(s, decision[i].options), kind == 2);
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

/* What comes of it, which may be a record. */
static struct score consider(struct search *s, const unsigned char *choice, double most_excess)
{
    struct score score = try_choice(s->q, choice, most_excess, &s->work);
    if (is_better(&score, &s->record)) {
        s->record = score;
        memcpy(s->best, choice, s->q->n);
    }
    show_busy(s->q->what, s->begun, s->work / (s->q->work + 1));
    return score;
}

static bool is_perfect(const struct search *s)
{
    return s->record.excess == 0 && s->q->floor > 0 && !is_less(s->q->floor, s->record.period);
}

/* Begins with every option of every group in turn, once. */
static void try_groups(struct search *s)
{
    const struct question *q = s->q;
    unsigned char *next = allocate(q->n, 1);
    for (size_t i = 0; i < q->n; i++)
        for (unsigned char option = 0; option < q->decision[i].options; option++) {
            bool first = q->decision[i].group == NO_GROUP || q->decision[i].group == (int)i;
            memcpy(next, s->best, q->n);
            give_option(q, next, i, option, true);
            if (first && memcmp(next, s->best, q->n) != 0 && s->work < q->work && !is_perfect(s))
                consider(s, next, s->record.excess);
        }
    free(next);
}

/* Goes on from a choice that is worse than the record by at most a share, which grows for as long as no better one is
 * found. */
static void travel(struct search *s)
{
    const struct question *q = s->q;
    size_t most_idle = 12000 + 20 * q->n;
    unsigned char *now = copy_bytes(s->best, q->n), *next = allocate(q->n, 1);
    double excess = s->record.excess;
    for (size_t idle = 0; idle < most_idle && s->work < q->work && !is_perfect(s); idle++) {
        struct score record = s->record;
        double share = 0.3 * pow((double)idle / (double)most_idle, 3);
        memcpy(next, now, q->n);
        change(s, next);
        if (memcmp(next, now, q->n) == 0)
            continue;
        struct score score = consider(s, next, excess);
        if (is_better(&s->record, &record))
            idle = 0;
        if (score.excess < excess || (score.excess == excess && score.period <= s->record.period * (1 + share))) {
            memcpy(now, next, q->n);
            excess = score.excess;
        }
    }
    free(now), free(next);
}

struct score choose(const struct question *q, const unsigned char *start, size_t n_starts, unsigned char *best)
{
    struct search s = {.q = q, .begun = now_ns(), .best = best, .record = {INFINITY, INFINITY, INFINITY}};
    for (size_t i = 0, k; i < n_starts && !is_perfect(&s); i++) {
        for (k = 0; memcmp(start + k * q->n, start + i * q->n, q->n) != 0;)
            k++;
        if (k == i) /* the first one like it */
            consider(&s, start + i * q->n, s.record.excess);
    }
    if (q->n > 0 && q->work > 0)
        try_groups(&s), travel(&s);
    erase_line();
    return s.record;
}

const struct module module_search = {.name = "search", .needs = "lists predict"};
