/* overlap_pass.c - --overlap as a pass: its options, its run and its report.  The technique itself is in overlap.c.
 *
 *     all-device   no update moves; the report says how long a step would be with the other modes
 *     all-cpu      every update moves that can
 *     plan         overlap_choose.c looks for the best plan; or a file of an earlier run has it (--overlap-plan)
 *     local        overlap_local.c: the running step decides
 *
 * run_overlap() is the pass:
 *
 *     plan_each_mode()   a plan for each mode: its moves are made in the list, simulated, and undone
 *     replace_plan()     the plan of the mode that is asked for, unless a file or the running step says otherwise
 *     rewrite_list()     makes its moves
 *     report_moves()     says how many updates have moved, or why none has
 *     report_plans()     says how long a step would be with each mode
 *
 * A plan that needs more bytes than a device has is refused.  But where a pass that runs later makes room, the plan may
 * fit after it: which plans are taken then is a matter of its own (overlap_room.c).
 */
#include "overlap_plan.h"
#include "planning/pass/traits.h"
#include "planning/search/choice_text.h"
#include "trainer/train/hooks.h"
#include "trainer/train/train.h"

#include <math.h>
#include <unistd.h>

struct overlap_options asked_overlap;

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

/* The --overlap that the run has.  In a trial `local` counts as `plan`: nothing is decided in the step. */
static enum overlap mode_of(const struct run_facts *facts)
{
    if (asked_overlap.mode == OVERLAP_LOCAL && facts->trial)
        return OVERLAP_PLAN;
    return asked_overlap.mode;
}

static bool wants_overlap(const struct run_facts *facts) { return mode_of(facts) != OVERLAP_OFF; }

static bool mode_has_choices(void) { return asked_overlap.mode == OVERLAP_PLAN || asked_overlap.mode == OVERLAP_LOCAL; }

/* A plan that is read from its file needs no times. */
static unsigned traits_by_options(void)
{
    const char *path = asked_overlap.plan_file;
    if (!mode_has_choices())
        return 0;
    return path && access(path, F_OK) == 0 ? CHOOSES_EARLY : CHOOSES_EARLY | WANTS_TIMES;
}

/* ---- the pass at work on a list ---------------------------------------------------------------------------------- */

static struct update_planner *new_planner(struct list *list, const struct costs *costs, const struct run_facts *facts)
{
    struct update_planner *planner = allocate(1, sizeof *planner);
    struct update_survey *survey = &planner->survey;
    planner->mode = mode_of(facts);
    planner->facts = facts;
    survey->list = list;
    survey->costs = costs;
    survey->uses = new_uses(list->tasks, list->n, list->pool);
    fill_buckets(&survey->buckets, survey->uses);
    size_t n = survey->buckets.n;
    survey->cores = MAX((int)spare_cores(list->pool->machine), 1);
    survey->timed = n > 0 && has_times(list, costs);
    set_decisions(survey);
    planner->rule = (struct local_rule){.drawn = facts->drawn, .draw_seed = facts->draw_seed, .survey = survey};
    return planner;
}

static void free_planner(struct update_planner *planner)
{
    free_uses(planner->survey.uses);
    free(planner->survey.buckets.bucket_of);
    free(planner);
}

/* ---- the plan's file --------------------------------------------------------------------------------------------- */

/* If the file is there, its plan replaces the best one, which the search has found; else the best is written to it. */
static void use_plan_file(struct update_planner *planner, const char *path, struct update_plans *plans,
                          struct pass_report *report)
{
    static const char *const letter[SIDES + 1] = {[ON_CPU] = "C", [ON_CPU_LAST] = "L", [ON_DEVICE] = "D"};
    struct update_plan *best = &plans->by_mode[planner->mode];
    const struct update_survey *survey = &planner->survey;
    const char *name[MOST_BUCKETS];
    struct choice_text text = {
        .title = "A plan of yard --overlap plan: D, on its device; C, on the CPU; L, there after all C.",
        .word = letter,
        .expected = "D, C or L",
        .name = name,
        .n = survey->buckets.n};
    for (size_t bucket = 0; bucket < survey->buckets.n; bucket++)
        name[bucket] = survey->buckets.items[bucket].name;
    planner->is_from_file = read_choice(path, &text, best->side);
    if (planner->is_from_file) {
        try_with(planner, plans->remade, best);
        append_text(&report->reason, "read from %s: ", path);
    } else if (survey->timed) {
        write_choice(path, &text, best->side);
        append_text(&report->reason, "written to %s: ", path);
    }
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

static size_t count_on_cpu(const struct update_survey *survey, const side_byte *side)
{
    size_t n = 0;
    for (size_t bucket = 0; bucket < survey->buckets.n; bucket++)
        n += side[bucket] != ON_DEVICE;
    return n;
}

/* Seconds of a step with the plan.  INFINITY: the plan does not fit, in budgets that overlap_room.c may have lifted;
 * NAN: times are not known. */
static double period_of(const struct update_survey *survey, const struct update_plan *plan)
{
    if (!survey->timed)
        return NAN;
    return score_fits(&plan->score) ? plan->score.period : INFINITY;
}

/* A letter per layer, layer 0 first.  (A plan's file begins at the last, and tells L from C.)  The caller frees it. */
static char *format_letters(const struct update_survey *survey, const side_byte *side)
{
    size_t layers = 0;
    for (size_t i = 0; i < survey->list->n; i++)
        layers = MAX(layers, (size_t)(survey->list->tasks[i]->layer + 1));
    char *letters = allocate(layers + 1, 1);
    memset(letters, 'D', layers);
    for (size_t bucket = 0; bucket < survey->buckets.n; bucket++) {
        int layer = survey->buckets.items[bucket].layer;
        if (layer >= 0 && side[bucket] != ON_DEVICE)
            letters[layer] = 'C';
    }
    return letters;
}

static double if_timed(const struct update_survey *survey, double seconds) { return survey->timed ? seconds : NAN; }

/* Says how long a step is with each --overlap. */
static void report_each(const struct update_planner *planner, const struct update_plans *plans,
                        struct pass_report *report)
{
    const struct update_survey *survey = &planner->survey;
    const struct update_plan *by_mode = plans->by_mode;
    report_ms(report, "all_device_ms", "a step: all on the device", period_of(survey, &by_mode[OVERLAP_ALL_DEVICE]));
    report_ms(report, "all_cpu_ms", "all on the CPU", period_of(survey, &by_mode[OVERLAP_ALL_CPU]));
    report_ms(report, "local_ms", "local", period_of(survey, &by_mode[OVERLAP_LOCAL]));
    report_ms(report, NOT_IN_JSON, planner->is_from_file ? "the file's plan" : "best plan",
              period_of(survey, &by_mode[OVERLAP_PLAN]));
}

static const double LEAST_PERCENT = 0.05; /* a smaller difference would be shown as 0.0 % */

/* Says how much longer a step of the rule is than one of the best plan, unless a file's plan stands in the place of the
 * best one.  The rule may win, since the search may miss the best plan. */
static void report_regret(const struct update_planner *planner, const struct update_plans *plans,
                          struct pass_report *report)
{
    const struct update_survey *survey = &planner->survey;
    if (planner->is_from_file)
        return;
    double by_rule = period_of(survey, &plans->by_mode[OVERLAP_LOCAL]);
    double best = period_of(survey, &plans->by_mode[OVERLAP_PLAN]);
    if (!isfinite(by_rule) || !isfinite(best))
        return;
    double percent = 100 * (by_rule / best - 1);
    if (fabs(percent) < LEAST_PERCENT)
        append_text(&report->numbers, "; steps of --overlap local take as long as those of the best plan");
    else
        append_text(&report->numbers, "; steps of --overlap local take %.1f %% %s than those of the best plan",
                    fabs(percent), percent > 0 ? "longer" : "less time");
}

/* A model has fewer layers than MOST_BUCKETS, but a list that was written by hand may have more. */
static void report_left_out(const struct update_buckets *buckets, struct pass_report *report)
{
    if (buckets->n_left_out)
        append_text(&report->reason, "; %zu updates stay on the device, since only those of %d layers can move",
                    buckets->n_left_out, MOST_BUCKETS);
}

/* Says how many updates have moved, or why none has. */
static void report_moves(const struct update_planner *planner, const struct update_plan *chosen, bool changed,
                         struct pass_report *report)
{
    const struct update_survey *survey = &planner->survey;
    size_t n = survey->buckets.n; /* a bucket counts as one update, however many it has */
    size_t on_cpu = count_on_cpu(survey, chosen->side);
    bool lacks_times = n > 0 && !survey->timed && !planner->is_from_file && mode_has_choices();
    char **reason = &report->reason;
    if (n == 0)
        append_text(reason, "the list has no update that could run on the CPU");
    else if (!changed && lacks_times)
        append_text(reason, "the times of tasks are not known: add --profile or --hardware");
    else if (!changed)
        append_text(reason, "no update on the CPU");
    else if (lacks_times)
        append_text(reason,
                    "the times of tasks are not known, and not all fits on the device: %zu of %zu updates on the CPU, "
                    "on %d of its cores",
                    on_cpu, n, survey->cores);
    else
        append_text(reason, "%zu of %zu updates on the CPU, on %d of its cores", on_cpu, n, survey->cores);
}

/* Reports on the list as it now is, and on what it could be. */
static void report_plans(const struct update_planner *planner, const struct update_plans *plans,
                         struct pass_report *report)
{
    const struct update_survey *survey = &planner->survey;
    const struct update_plan *chosen = &plans->by_mode[planner->mode];
    char *letters = format_letters(survey, chosen->side);
    report->after = keep_forecast(forecast_list(survey->list, survey->costs));
    report->fields = json_pack("{s:s}", "choice", letters);
    free(letters);
    report_each(planner, plans, report);
    report_ms(report, "bound_ms", "any plan at least", if_timed(survey, survey->least_period));
    report_ms(report, "period_ms", ONLY_IN_JSON, period_of(survey, chosen));
    report_ms(report, "barrier_ms", ONLY_IN_JSON, if_timed(survey, report->after->alone));
    report_ms(report, "serial_ms", ONLY_IN_JSON, if_timed(survey, survey->serial));
    report_regret(planner, plans, report);
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

/* Finds a plan for each --overlap. */
static struct update_plans plan_each_mode(struct update_planner *planner)
{
    struct update_survey *survey = &planner->survey;
    if (survey->timed)
        measure_buckets(survey);
    const struct update_plans plans = plans_within_budgets(planner, NULL);
    if (!survey->timed || !find_wanted(MAKES_ROOM, planner->facts))
        return plans;
    return plans_for_later_room(planner, &plans);
}

/* Replaces the plan of the --overlap that is asked for, where a file or the running step says otherwise. */
static void replace_plan(struct update_planner *planner, struct update_plans *plans, struct pass_report *report)
{
    const struct update_survey *survey = &planner->survey;
    const char *path = planner->facts->trial ? NULL : asked_overlap.plan_file;
    if (path && survey->buckets.n > 0)
        use_plan_file(planner, path, plans, report);
    else if (planner->mode == OVERLAP_LOCAL && survey->timed)
        leave_to_step(planner, plans, report);
}

/* Rewrites the list; false: there is nothing to rewrite. */
static bool rewrite_list(struct update_planner *planner, const struct update_plan *chosen)
{
    const struct update_survey *survey = &planner->survey;
    if (count_on_cpu(survey, chosen->side) == 0 && chosen->n_left_to_step == 0)
        return false;
    struct edit *edit = open_edit(survey->list);
    carry_out_plan(planner, edit, chosen);
    commit_edit(edit);
    return true;
}

static bool run_overlap(struct list *list, const struct costs *costs, const struct run_facts *facts,
                        struct pass_report *report)
{
    struct update_planner *planner = new_planner(list, costs, facts);
    struct update_plans plans = plan_each_mode(planner);
    replace_plan(planner, &plans, report);
    const struct update_plan *chosen = &plans.by_mode[planner->mode];
    bool changed = rewrite_list(planner, chosen);
    report_moves(planner, chosen, changed, report);
    const struct reserved_room room = reserve_room(list, facts);
    report_left_out(&planner->survey.buckets, report);
    report_plans(planner, &plans, report);
    free_room(list, room);
    bool is_final = !find_wanted(MAKES_ROOM, facts) && !find_wanted(IS_CHECKED_AT_END, facts);
    if (!score_fits(&chosen->score) && is_final)
        fail_too_large(list->pool->machine, report->after, "--overlap", facts, SAME_LIST);
    free(plans.remade);
    free_planner(planner);
    return changed;
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static const struct pass_traits traits = {
    .always = MOVES_UPDATES,
    .by_options = traits_by_options,
};
static const struct pass pass = {
    .runs_at = 10,
    .name = "overlap",
    .wanted = wants_overlap,
    .run = run_overlap,
    .turned_on = {"--overlap all-cpu"},
    .traits = &traits,
};

static void check_overlap_options(void)
{
    if (asked_overlap.plan_file && asked_overlap.mode != OVERLAP_PLAN)
        fail(EXIT_USAGE, "--overlap-plan %s is for --overlap plan: add that option", asked_overlap.plan_file);
}

/* Prints how often the running step has chosen what. */
static void print_sides(struct trainer *trainer)
{
    char *sides = describe_sides(trainer->train_list);
    if (sides)
        inform("overlap: %s", sides);
    free(sides);
}

static const struct option options[] = {
    {.name = "overlap",
     .type = OPT_CHOICE,
     .value = &asked_overlap.mode,
     .initial = "off",
     .argument = WORDS([OVERLAP_OFF] = "off", [OVERLAP_PLAN] = "plan", [OVERLAP_LOCAL] = "local",
                       [OVERLAP_ALL_CPU] = "all-cpu", [OVERLAP_ALL_DEVICE] = "all-device"),
     .group = GROUP_TECHNIQUES,
     .classes = OF_LIST,
     .help = "run optimizer updates of some layers on the CPU while the device goes on. plan: a search before "
             "the run chooses the layers for the shortest step. local: a rule chooses after each layer's "
             "backward. all-cpu: all updates run on the CPU. all-device: all run on the device "
             "(tutorials/15-overlap.md)"},
    {.name = "overlap-plan",
     .type = OPT_OUTPUT,
     .value = &asked_overlap.plan_file,
     .argument = "FILE",
     .group = GROUP_TECHNIQUES,
     .classes = OF_LIST,
     .help = "file with the plan of --overlap plan as text. It is read if it is there, and else written"},
};
static const struct hooks hooks = {
    .run_ended = print_sides,
};
static const struct foreign_words foreign[] = {
    {"overlap", "cpu-offload offload offload-optimizer zero-offload", NULL},
};
static const struct training_parts training = {.hooks = &hooks};
static const struct planning_parts planning = {.pass = &pass};
const struct module module_overlap = {
    .name = "overlap",
    .needs = "pass predict search",
    .planning = &planning,
    .options = options,
    .n_options = COUNT(options),
    .foreign = foreign,
    .n_foreign = COUNT(foreign),
    .check = check_overlap_options,
    .training = &training,
};
