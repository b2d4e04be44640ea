/* search.c - the one search, for all techniques that have something to choose (see search.h). */
#include "search.h"
#include "trainer/base/module.h"

#include <math.h>

struct search {
    const struct question *question;
    double work;    /* how many tasks have been simulated so far */
    uint64_t draws; /* how many random numbers have been drawn */
    uint64_t begun; /* now_ns() when the search began */
    option_byte *best;
    struct score record; /* the score of `best` */
    size_t idle;         /* how many choices have been drawn since `best` was found, `best` included */
};

/* ---- scores ------------------------------------------------------------------------------------------------------ */

/* Is a less than b by more than rounding?  (Sums of the same numbers in another order differ by it.)  A difference to
 * an infinite b would be no number. */
static bool is_less(double a, double b)
{
    if (isinf(b))
        return a < b;
    return a < b - SAME_TIME * fabs(b);
}

bool is_better(const struct score *a, const struct score *b)
{
    if (a->excess_bytes != b->excess_bytes)
        return a->excess_bytes < b->excess_bytes;
    if (is_less(a->period, b->period) || is_less(b->period, a->period))
        return a->period < b->period;
    return is_less(a->copied_bytes, b->copied_bytes);
}

/* The bytes that all copies of the list move. */
static double sum_copies(const struct forecast *forecast)
{
    double bytes = 0;
    for (size_t i = 0; i < forecast->n; i++)
        if (is_copy(forecast->tasks[i]))
            bytes += (double)forecast->tasks[i]->accesses[0].tensor->bytes;
    return bytes;
}

/* Carries the choice out, looks at the list, and undoes it.  The list is placed; it is simulated too, unless it needs
 * more than `most` bytes beyond the budgets.  *work grows by the tasks that were simulated, or by a fifth of the list's
 * tasks if it was only placed. */
static struct score try_choice(const struct question *question, const option_byte *choice, double most, double *work)
{
    struct edit *edit = open_edit(question->list);
    question->apply(question->context, edit, choice);
    struct forecast forecast = forecast_list_within(question->list, question->costs, most, NULL, NULL);
    bool simulated = forecast.excess_bytes <= most;
    struct score score = {
        .excess_bytes = forecast.excess_bytes, .period = forecast.period, .copied_bytes = sum_copies(&forecast)};
    if (forecast.problem)
        score.excess_bytes = INFINITY;
    if (isnan(forecast.period))
        score.period = simulated ? 0 : INFINITY;
    *work += (double)forecast.n / (simulated ? 1 : 5);
    free_forecast(&forecast);
    undo_edit(edit);
    return score;
}

struct score score_choice(const struct question *question, const option_byte *choice)
{
    double work = 0;
    return try_choice(question, choice, INFINITY, &work);
}

/* ---- other choices ----------------------------------------------------------------------------------------------- */

/* A random number from 0 to n - 1. */
static size_t draw_below(struct search *search, size_t n)
{
    double u = random_uniform(0, STREAM_PLAN, 0, search->draws);
    search->draws++;
    return (size_t)((double)n * u);
}

/* Decision i gets the option, and all others of its group that have such an option. */
static void give_group(const struct question *question, option_byte *choice, size_t i, option_byte option)
{
    int group = question->decisions[i].group;
    choice[i] = option;
    if (group == NONE)
        return;
    for (size_t k = 0; k < question->n; k++)
        if (question->decisions[k].group == group && option < question->decisions[k].options)
            choice[k] = option;
}

/* Two times in eight two decisions exchange their options, if they may have them.  Else one decision gets another
 * option; one time in eight its group gets it too. */
static void vary_choice(struct search *search, option_byte *choice)
{
    const struct decision *decisions = search->question->decisions;
    size_t i = draw_below(search, search->question->n);
    size_t other = draw_below(search, search->question->n);
    size_t draw = draw_below(search, 8);
    option_byte mine = choice[i];
    if (draw < 2 && choice[other] < decisions[i].options && mine < decisions[other].options) {
        choice[i] = choice[other];
        choice[other] = mine;
        return;
    }
    option_byte option = (option_byte)draw_below(search, decisions[i].options);
    if (draw == 2)
        give_group(search->question, choice, i, option);
    else
        choice[i] = option;
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

/* Tries a choice, and keeps it if it is the best so far.  It is not simulated if it needs more than `most_excess` bytes
 * beyond the budgets. */
static struct score consider(struct search *search, const option_byte *choice, double most_excess)
{
    struct score score = try_choice(search->question, choice, most_excess, &search->work);
    if (is_better(&score, &search->record)) {
        search->record = score;
        memcpy(search->best, choice, search->question->n);
        search->idle = 1;
    }
    show_busy(search->question->activity, search->begun, search->work / (search->question->work + 1));
    return score;
}

/* Can no choice be better?  The record fits, and its step is as short as any can be. */
static bool is_perfect(const struct search *search)
{
    return score_fits(&search->record) && search->question->least_period > 0 &&
           !is_less(search->question->least_period, search->record.period);
}

static bool goes_on(const struct search *search)
{
    return search->work < search->question->work && !is_perfect(search);
}

/* Gives each group of the best choice each of its options, once. */
static void try_groups(struct search *search)
{
    const struct question *question = search->question;
    option_byte *next = allocate(question->n, 1);
    for (size_t i = 0; i < question->n; i++) {
        const struct decision *decision = &question->decisions[i];
        bool speaks_for_group = decision->group == NONE || decision->group == (int)i;
        if (!speaks_for_group)
            continue;
        for (option_byte option = 0; option < decision->options; option++) {
            memcpy(next, search->best, question->n);
            give_group(question, next, i, option);
            if (memcmp(next, search->best, question->n) != 0 && goes_on(search))
                consider(search, next, search->record.excess_bytes);
        }
    }
    free(next);
}

/* ---- record-to-record travel (Dueck 1993) ------------------------------------------------------------------------ */

/* The travel ends when MOST_IDLE choices, and some more for each decision, have been drawn without a better one. */
enum { MOST_IDLE = 12000, IDLE_PER_DECISION = 20 };

static const double MOST_WORSE = 0.3; /* 30 % */

struct travel {
    option_byte *current; /* the choice that the travel goes on from */
    double excess;        /* the bytes that `current` takes beyond the budgets */
    size_t most_idle;     /* the travel ends when search->idle is as large */
};

/* By which share of the record's period may the period of `current` be longer?  The share grows, up to MOST_WORSE, for
 * as long as nothing better is found; the cube keeps it small for most of that time. */
static double allowed_share(const struct search *search, const struct travel *travel)
{
    return MOST_WORSE * pow((double)search->idle / (double)travel->most_idle, 3);
}

/* May a choice of this score be the current one?  It may if it takes fewer bytes beyond the budgets than the current
 * one; or as many, and a period that is longer than the record's by at most the share. */
static bool is_near_record(const struct search *search, const struct travel *travel, const struct score *score,
                           double share)
{
    if (score->excess_bytes != travel->excess)
        return score->excess_bytes < travel->excess;
    return score->period <= search->record.period * (1 + share);
}

/* Draws a choice like the current one.  If it is near the record, it becomes the current one.  next: n bytes of room
 * for it. */
static void take_step(struct search *search, struct travel *travel, option_byte *next)
{
    size_t n = search->question->n;
    double share = allowed_share(search, travel);
    search->idle++;
    memcpy(next, travel->current, n);
    vary_choice(search, next);
    if (memcmp(next, travel->current, n) == 0)
        return;
    struct score score = consider(search, next, travel->excess);
    if (is_near_record(search, travel, &score, share)) {
        memcpy(travel->current, next, n);
        travel->excess = score.excess_bytes;
    }
}

/* Goes from choice to choice, each of which is like the one before it and near the record: the best score so far. */
static void travel_from_record(struct search *search)
{
    size_t n = search->question->n;
    struct travel travel = {.current = copy_bytes(search->best, n),
                            .excess = search->record.excess_bytes,
                            .most_idle = MOST_IDLE + IDLE_PER_DECISION * n};
    option_byte *next = allocate(n, 1);
    search->idle = 0;
    while (search->idle < travel.most_idle && goes_on(search))
        take_step(search, &travel, next);
    free(travel.current);
    free(next);
}

/* ---- the search as a whole --------------------------------------------------------------------------------------- */

/* The options of start i: one for each decision. */
static const option_byte *nth_start(const struct question *question, const option_byte *starts, size_t i)
{
    return starts + i * question->n;
}

/* Is start i the same as one before it? */
static bool is_repeated(const struct question *question, const option_byte *starts, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (memcmp(nth_start(question, starts, k), nth_start(question, starts, i), question->n) == 0)
            return true;
    return false;
}

/* Does the start give each decision an option that it has? */
static bool has_known_options(const struct question *question, const option_byte *start)
{
    for (size_t i = 0; i < question->n; i++)
        if (start[i] >= question->decisions[i].options)
            return false;
    return true;
}

static void try_starts(struct search *search, const option_byte *starts, size_t n_starts)
{
    for (size_t i = 0; i < n_starts && !is_perfect(search); i++) {
        const option_byte *start = nth_start(search->question, starts, i);
        CHECK(has_known_options(search->question, start), "start %zu gives an option that there is not", i);
        if (!is_repeated(search->question, starts, i))
            consider(search, start, search->record.excess_bytes);
    }
}

struct score find_best_choice(const struct question *question, const option_byte *starts, size_t n_starts,
                              option_byte *best)
{
    const struct score worst = {.excess_bytes = INFINITY, .period = INFINITY, .copied_bytes = INFINITY};
    struct search search = {.question = question, .begun = now_ns(), .best = best, .record = worst};
    try_starts(&search, starts, n_starts);
    if (question->n > 0 && question->work > 0) {
        try_groups(&search);
        travel_from_record(&search);
    }
    erase_line();
    return search.record;
}

const struct module module_search = {
    .name = "search",
    .needs = "lists predict",
};
