/* swap_auto.c - --swap auto and --recompute auto: only where a list does not fit, tensors are swapped in their gaps, or
 * are made again after them.  A search finds which, so that the step is as short as it can be.  What a choice of the
 * search does to the list is in swap_choice.c.
 *
 * One search serves both options, since both are about gaps; for --recompute auto nothing is swapped.  The pass of
 * recompute/ finds the search by choose_remade of struct pass_traits, so a program without this folder refuses
 * --recompute auto.
 *
 * The decisions:
 *
 *     about                                                          options
 *     a gap, the same one on all data-parallel devices               keep, swap, make again: what is possible
 *     all gaps of a tensor of state, since with its home on the      keep, swap
 *     host each of its uses needs copies
 *     LAYOUT: where copies come, and in a pipeline the order of      each of hold_rules[] in swap_choice.c, with the
 *     the tasks                                                      tasks as listed, or as they begin by the clock
 *
 * Both orders compute the same.  But a stage holds bytes for what it receives from the send's position in the list on,
 * and in the list of a pipeline that position may be long before the time at which the send begins.
 *
 * The search (search/search.h) starts from a rule.  More and more tensors leave, or are made again: first those that
 * are cheap to make again, then large ones, and of equally large ones those whose gaps are longest.  Classes
 * (--swap-what) are admitted one after another.  The search with one class more begins with the best choice so far, so
 * a further class never makes the step longer.
 */
#include "planning/pass/traits.h"
#include "swap_search.h"

#include <math.h>

/* The round of the search in which a class is admitted. */
static const int round_of[MEM_CLASSES] = {
    [MEM_ACTIVATIONS] = 0,
    [MEM_OPTIMIZER] = 1,
    [MEM_PARAMETERS] = 2,
    [MEM_GRADIENTS] = 3,
};

/* ---- decisions --------------------------------------------------------------------------------------------------- */

/* Tells the gaps of one tensor apart; those of state have one number, since one decision is about all of them. */
static int decision_number(const struct gap *gap) { return gap->tensor->persistent ? 0 : gap->uses_before; }

enum { SIZE_UNIT = 4096 }; /* bytes: sizes that differ by less than this may count as equal */

/* The order of decisions; 0: one decision is about both gaps.  They are those of replicas, which have the same names,
 * layer, micro-batch and role: only the name tells one tensor of a layer from the others.  Shards of replicas may
 * differ by some bytes, so sizes are compared in units.  If gaps are otherwise alike, those of low layers are longest,
 * and come first. */
static int compare_gaps(const struct gap *a, const struct gap *b)
{
    const struct task *maker_a = a->maker, *maker_b = b->maker;
    int64_t size_of_a = gap_bytes(a) / SIZE_UNIT;
    int64_t size_of_b = gap_bytes(b) / SIZE_UNIT;
    if (round_of[a->tensor->class] != round_of[b->tensor->class])
        return COMPARE(round_of[a->tensor->class], round_of[b->tensor->class]);
    if (a->tensor->extra.cheap != b->tensor->extra.cheap)
        return a->tensor->extra.cheap ? -1 : 1;
    if (size_of_a != size_of_b)
        return COMPARE(size_of_b, size_of_a);
    if (strcmp(a->tensor->name, b->tensor->name) != 0)
        return strcmp(a->tensor->name, b->tensor->name);
    if (strcmp(maker_a->name, maker_b->name) != 0)
        return strcmp(maker_a->name, maker_b->name);
    if (maker_a->layer != maker_b->layer)
        return COMPARE(maker_a->layer, maker_b->layer);
    if (maker_a->micro != maker_b->micro)
        return COMPARE(maker_a->micro, maker_b->micro);
    if (maker_a->role != maker_b->role)
        return COMPARE(maker_a->role, maker_b->role);
    return COMPARE(decision_number(a), decision_number(b));
}

static int by_decision(const void *left, const void *right)
{
    const struct gap_facts *a = *(struct gap_facts *const *)left;
    const struct gap_facts *b = *(struct gap_facts *const *)right;
    return compare_gaps(a->gap, b->gap);
}

/* How many options a decision has.  About a tensor that can be both swapped and made again: each enum action.  Else it
 * has two: KEEP_TENSOR, and THE_REMEDY, which is to swap the tensor or to make it again. */
enum { OPTIONS_OF_TWO_REMEDIES = ACTIONS, OPTIONS_OF_ONE_REMEDY = 2 };
enum { THE_REMEDY = 1 }; /* the option */

/* Adds the decision about a gap.  Tensors of one name, of all layers and micro-batches, are in one group.  last: the
 * gap before, in order of decisions. */
static void add_decision(struct swapper *swapper, struct gap_facts *gap_facts, const struct gap_facts *last)
{
    const struct tensor *tensor = gap_facts->gap->tensor;
    struct decision *decision = &swapper->decisions[swapper->n_decisions];
    bool has_both = swapper->may_swap && gap_facts->may_remake;
    decision->options = has_both ? OPTIONS_OF_TWO_REMEDIES : OPTIONS_OF_ONE_REMEDY;
    decision->group = (int)swapper->n_decisions;
    if (last && last->has_decision && strcmp(last->gap->tensor->name, tensor->name) == 0)
        decision->group = swapper->decisions[last->decision].group;
    gap_facts->has_decision = true;
    gap_facts->decision = swapper->n_decisions;
    swapper->n_decisions++;
    swapper->end[round_of[tensor->class]] = swapper->n_decisions;
}

/* Lists the decisions in their order, beginning with LAYOUT.  Gaps that compare equal share one. */
static void collect_decisions(struct swapper *swapper)
{
    size_t n = swapper->gaps.n;
    struct gap_facts **sorted = allocate(n + 1, sizeof(struct gap_facts *));
    for (size_t i = 0; i < n; i++)
        sorted[i] = &swapper->gap_facts[i];
    SORT(sorted, n, by_decision);
    swapper->decisions = allocate(n + 1, sizeof *swapper->decisions);
    bool has_moves = swapper->n_moves > 0; /* else the clock's order is the list's */
    swapper->decisions[LAYOUT] =
        (struct decision){.options = has_moves ? N_LAYOUTS : N_LAYOUTS_AS_LISTED, .group = NONE};
    swapper->n_decisions = 1;
    const struct gap_facts *last = NULL;
    for (size_t i = 0; i < n; i++) {
        struct gap_facts *gap_facts = sorted[i];
        if (last && compare_gaps(last->gap, gap_facts->gap) == 0) {
            gap_facts->has_decision = last->has_decision;
            gap_facts->decision = last->decision;
        } else if (swapper->may_swap || gap_facts->may_remake) {
            add_decision(swapper, gap_facts, last);
        }
        last = gap_facts;
    }
    free(sorted);
}

/* What the search must know of a gap: what a copy costs, and whether the tensor can be made again. */
static struct gap_facts look_at_gap(const struct swapper *swapper, const struct gap *gap)
{
    struct machine *machine = swapper->gaps.list->pool->machine;
    struct lane *up = lane_for(machine, gap->device, LANE_UPLOAD, FOR_SWAP);
    return (struct gap_facts){
        .gap = gap,
        .seconds = seconds_of_copy(swapper->costs, "swap.in", up, gap->device, machine->host, gap->tensor->bytes),
        .may_remake = may_remake(swapper->gaps.uses, gap->tensor, gap->end),
    };
}

enum remedies { SWAP_AND_REMAKE, REMAKE_ALONE };

/* A swapper of the list; free_swapper() frees what it points to.  classes: those of the tensors that may leave, a bit
 * per enum memory_class. */
static struct swapper make_swapper(struct list *list, const struct costs *costs, unsigned classes,
                                   enum remedies remedies)
{
    struct swapper swapper = {
        .gaps = collect_gaps(list, costs, classes),
        .costs = costs,
        .may_swap = remedies == SWAP_AND_REMAKE,
    };
    swapper.fates = keep_all(&swapper.gaps);
    swapper.gap_facts = allocate(swapper.gaps.n + 1, sizeof *swapper.gap_facts);
    for (size_t i = 0; i < swapper.gaps.n; i++)
        swapper.gap_facts[i] = look_at_gap(&swapper, &swapper.gaps.items[i]);
    fill_moves(&swapper);
    collect_decisions(&swapper);
    return swapper;
}

static void free_swapper(struct swapper *swapper)
{
    free_gaps(&swapper->gaps);
    free(swapper->moves);
    free(swapper->gap_facts);
    free(swapper->fates);
    free(swapper->decisions);
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

/* The starts swap 1/24, 2/24 ... of the tensors, and others make as many of them again.  One more is the best choice so
 * far. */
enum { SHARES = 24, STARTS = 1 + 2 * SHARES };

/* The decision's option that means the action, or, where there is one remedy, that remedy. */
static option_byte option_for(const struct decision *decision, enum action action)
{
    return decision->options == OPTIONS_OF_ONE_REMEDY ? THE_REMEDY : (option_byte)action;
}

/* Copies `best`, but among the first share / SHARES of the decisions, those that keep take the action instead. */
static void start_with_share(const struct swapper *swapper, option_byte *start, const option_byte *best, size_t share,
                             enum action action)
{
    size_t n = swapper->admitted;
    memcpy(start, best, n);
    for (size_t i = 1; i < n && i * SHARES <= n * share; i++)
        if (start[i] == KEEP_TENSOR)
            start[i] = option_for(&swapper->decisions[i], action);
}

/* The choice with which devices hold the fewest bytes. */
static void start_with_all(const struct swapper *swapper, option_byte *start, enum action action)
{
    start[LAYOUT] = LAYOUT_OF_FEWEST_BYTES;
    for (size_t i = 1; i < swapper->admitted; i++)
        start[i] = option_for(&swapper->decisions[i], action);
}

/* The starts of the search: the best choice so far; this choice with more and more tensors that leave, or that are made
 * again; and choices that keep nothing.  The caller frees the array. */
static option_byte *collect_starts(const struct swapper *swapper, const option_byte *best)
{
    size_t n = swapper->admitted;
    option_byte *starts = allocate(STARTS * n, 1);
    option_byte *start = starts; /* the one to write next */
    memcpy(start, best, n);
    start += n;
    for (enum action action = SWAP_TENSOR; action <= REMAKE_TENSOR; action++) {
        for (size_t share = 1; share < SHARES; share++) {
            start_with_share(swapper, start, best, share, action);
            start += n;
        }
        start_with_all(swapper, start, action);
        start += n;
    }
    return starts;
}

/* How much work a round may spend from its best start on. */
enum {
    /* The first round in which a choice fits.  How long the step takes is mostly decided here. */
    WORK_OF_FIRST_FIT = SEARCH_WORK,
    /* Each later round, which improves on a choice that has been searched for.  There are at most three, and together
     * they cost less than the first. */
    WORK_OF_LATER_FIT = SEARCH_WORK / 4,
    /* The last round, if nothing fits.  The starts that keep nothing did not fit, so there is little hope. */
    WORK_IF_NOTHING_FITS = SEARCH_WORK / 8,
    /* Each round for an earlier pass, which only asks whether swap can make the list fit.  The run's own search is
     * still to come. */
    WORK_OF_LOOK_AHEAD = SEARCH_WORK / 8,
};

/* The work that a round may spend.  0: no choice fits, and more classes are to come. */
static double work_after(const struct swapper *swapper, const struct score *best, bool fitted_before, bool is_last)
{
    if (swapper->looks_ahead)
        return WORK_OF_LOOK_AHEAD;
    if (score_fits(best))
        return fitted_before ? WORK_OF_LATER_FIT : WORK_OF_FIRST_FIT;
    return is_last ? WORK_IF_NOTHING_FITS : 0;
}

/* Finds the best choice.  A step as short as `least_period` seconds ends the search at once; INFINITY: any choice that
 * fits ends it. */
static struct score search_rounds(struct swapper *swapper, option_byte *best, double least_period)
{
    struct score score = {.excess_bytes = INFINITY, .period = INFINITY, .copied_bytes = INFINITY};
    struct question question = {.list = swapper->gaps.list,
                                .costs = swapper->costs,
                                .activity = "looking for what to swap",
                                .decisions = swapper->decisions,
                                .apply = apply_choice,
                                .context = swapper,
                                .least_period = least_period};
    memset(best, KEEP_TENSOR, swapper->n_decisions);
    best[LAYOUT] = FIRST_LAYOUT;
    for (int round = 0; round < MEM_CLASSES; round++) {
        if (swapper->end[round] == 0)
            continue;
        bool fitted = score_fits(&score);
        swapper->admitted = swapper->end[round];
        question.n = swapper->admitted;
        question.work = 0;
        option_byte *starts = collect_starts(swapper, best);
        score = find_best_choice(&question, starts, STARTS, best);
        question.work = work_after(swapper, &score, fitted, swapper->admitted == swapper->n_decisions);
        memcpy(starts, best, question.n);
        if (question.work > 0)
            score = find_best_choice(&question, starts, 1, best);
        free(starts);
    }
    return score;
}

/* ---- where nothing fits ------------------------------------------------------------------------------------------ */

/* Raises the budgets to what this choice needs.  Returns a sentence on what did not fit before; the caller frees it. */
static char *raise_for(struct swapper *swapper, const option_byte *choice, const struct device *before)
{
    struct list *list = swapper->gaps.list;
    struct edit *edit = open_edit(list);
    apply_choice(swapper, edit, choice);
    struct forecast forecast = forecast_list(list, swapper->costs);
    char *shortage = describe_shortage(before, &forecast);
    raise_budgets(list->pool->machine, &forecast);
    undo_edit(edit);
    free_forecast(&forecast);
    return shortage;
}

/* Raises the budgets until the same search finds a choice that fits, and ends the program with a sentence that names
 * them.  Each attempt raises them to what a choice needs: for --recompute auto the best one that was found, else the
 * one that holds the fewest bytes.  After MOST_ATTEMPTS the budgets are those of the list that keeps all tensors. */
static _Noreturn void fail_with_budgets(struct swapper *swapper, option_byte *best, const char *option,
                                        const struct run_facts *facts)
{
    struct machine *machine = swapper->gaps.list->pool->machine;
    struct device *before = copy_bytes(machine->devices, ((size_t)machine->n_devices + 1) * sizeof *before);
    enum { MOST_ATTEMPTS = 8 };
    bool fits = false;
    char *shortage = NULL;
    for (int attempts = 0; attempts < MOST_ATTEMPTS && !fits; attempts++) {
        if (swapper->may_swap)
            start_with_all(swapper, best, SWAP_TENSOR);
        free(shortage);
        shortage = raise_for(swapper, best, before);
        const struct score score = search_rounds(swapper, best, INFINITY);
        fits = score_fits(&score);
    }
    if (!fits) {
        free(shortage);
        raise_budgets(machine, &swapper->gaps.bare);
        shortage = describe_shortage(before, &swapper->gaps.bare);
    }
    refuse_and_name_budgets(machine, before, shortage, option, facts, replanning_of(facts));
}

/* ---- the passes -------------------------------------------------------------------------------------------------- */

/* Swaps tensors, or makes them again, where the list does not fit as it is, and fills in the report.  option: the one
 * that must make room, or the program ends; NULL: another pass may still make room.  false: all fits, and the list is
 * as it was. */
static bool swap_to_fit(struct swapper *swapper, const char *option, const struct run_facts *facts,
                        struct pass_report *report)
{
    struct gaps *gaps = &swapper->gaps;
    if (forecast_fits(&gaps->bare)) {
        report_gaps(gaps, swapper->fates, swapper->costs, "all fits", report);
        return false;
    }
    option_byte *best = allocate(swapper->n_decisions, 1);
    /* Where times are not known, whatever fits will do. */
    double least_period = gaps->bare.spans ? gaps->bare.period : INFINITY;
    struct score score = search_rounds(swapper, best, least_period);
    if (!score_fits(&score) && option)
        fail_with_budgets(swapper, best, option, facts);
    struct edit *edit = open_edit(gaps->list);
    apply_choice(swapper, edit, best);
    commit_edit(edit);
    free(best);
    report_gaps(gaps, swapper->fates, swapper->costs, NULL, report);
    return true;
}

bool swap_by_search(struct list *list, const struct costs *costs, const struct swap_options *options,
                    const struct run_facts *facts, struct pass_report *report)
{
    struct swapper swapper = make_swapper(list, costs, options->may_leave, SWAP_AND_REMAKE);
    bool changed = swap_to_fit(&swapper, "--swap auto", facts, report);
    free_swapper(&swapper);
    return changed;
}

bool can_fit_within(struct list *list, const struct costs *costs, const struct swap_options *options, double seconds)
{
    struct swapper swapper = make_swapper(list, costs, options->may_leave, SWAP_AND_REMAKE);
    swapper.looks_ahead = true;
    option_byte *best = allocate(swapper.n_decisions, 1);
    const struct score score = search_rounds(&swapper, best, seconds);
    free(best);
    free_swapper(&swapper);
    return score_fits(&score) && score.period <= seconds;
}

bool remake_by_search(struct list *list, const struct costs *costs, const struct swap_options *options,
                      const struct run_facts *facts, struct pass_report *report)
{
    struct swapper swapper = make_swapper(list, costs, 1u << MEM_ACTIVATIONS, REMAKE_ALONE);
    bool changed = false;
    if (options->mode == SWAP_AUTO)
        report_gaps(&swapper.gaps, swapper.fates, costs, "--swap auto chooses what is made again", report);
    else
        changed = swap_to_fit(&swapper, options->mode == SWAP_OFF ? "--recompute auto" : NULL, facts, report);
    free_swapper(&swapper);
    return changed;
}
