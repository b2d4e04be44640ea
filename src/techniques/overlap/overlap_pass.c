/* overlap_pass.c - --overlap as a pass: its options, its run and its report.  The technique itself is in overlap.c.
 *
 *     all-device   no update moves; the report says how long a step would be with the other modes
 *     all-cpu      every update moves that can
 *     plan         choose.c looks for the best plan; or a file has it (--overlap-plan), which an earlier run wrote
 *     local        local.c: the running step decides
 *
 * run_overlap() is the pass:
 *
 *     try_each()       a plan for each mode: its moves are made in the list, simulated, and undone
 *     settle_plan()    the plan of the mode that is asked for, unless a file or the running step says otherwise
 *     rewrite_list()   makes its moves
 *     report_plans()   says how long a step would be with each mode
 *
 * A plan that needs more bytes than a device has is refused.  But where a pass that runs later makes room, the plan may
 * fit after it: which plans are taken then is a matter of its own (overlap_room.c).
 */
#include "overlap_pass.h"
#include "techniques/pass/traits.h"
#include "techniques/search/plan_text.h"
#include "tools/command/numbers.h"
#include "trainer/train/hooks.h"

#include <math.h>
#include <unistd.h>

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

static bool wants_overlap(const struct run_facts *facts) { return mode_of(facts) != OVERLAP_OFF; }

static bool decides(void) { return overlap_options.mode == OVERLAP_PLAN || overlap_options.mode == OVERLAP_LOCAL; }

/* A plan that is there already needs no times. */
static unsigned traits_by_options(void)
{
    const char *plan = overlap_options.plan;
    if (!decides())
        return 0;
    return plan && access(plan, F_OK) == 0 ? CHOOSES_EARLY : CHOOSES_EARLY | WANTS_TIMES;
}

/* ---- the pass at work on a list ---------------------------------------------------------------------------------- */

static struct overlapper *new_overlapper(struct list *list, const struct costs *costs, const struct run_facts *facts)
{
    struct overlapper *overlapper = allocate(1, sizeof *overlapper);
    struct planner *planner = &overlapper->planner;
    overlapper->facts = facts;
    planner->list = list;
    planner->costs = costs;
    planner->uses = find_uses(list->task, list->n, list->pool);
    find_buckets(&planner->buckets, planner->uses);
    const size_t n = planner->buckets.n;
    planner->cores = MAX((int)spare_cores(list->pool->machine), 1);
    planner->timed = n > 0 && has_times(list, costs);
    for (size_t b = 0; b < n; b++)
        planner->decision[b] = (struct decision){.options = SIDES, .group = NONE};
    planner->decision[n] = (struct decision){.options = 2, .group = NONE}; /* enum sharing */
    overlapper->rule = (struct rule){.random = facts->draw, .seed = facts->draw_seed, .planner = planner, .n_fixed = n};
    return overlapper;
}

static void free_overlapper(struct overlapper *overlapper)
{
    free_uses(overlapper->planner.uses);
    free(overlapper->planner.buckets.bucket_of);
    free(overlapper->remade);
    free(overlapper);
}

/* ---- the plan's file --------------------------------------------------------------------------------------------- */

/* The file's plan, where there is one, stands in for `best`, the search's; else that is written there.  Was it read? */
static bool read_or_write(const struct planner *planner, const struct question *question, const char *path,
                          struct candidate *best, struct pass_report *report)
{
    static const char *const letter[SIDES + 1] = {[ON_CPU] = "C", [ON_CPU_LATE] = "L", [ON_DEVICE] = "D"};
    const char *name[MOST_BUCKETS];
    struct choice_text text = {
        .title = "A plan of yard --overlap plan: D, on its device; C, on the CPU; L, there after all C.",
        .word = letter,
        .expected = "D, C or L",
        .name = name,
        .n = planner->buckets.n};
    for (size_t b = 0; b < planner->buckets.n; b++)
        name[b] = planner->buckets.bucket[b].name;
    bool read = read_choice(path, &text, best->side);
    if (read)
        try_candidate(question, best);
    else if (planner->timed)
        write_choice(path, &text, best->side);
    if (read || planner->timed)
        append_text(&report->reason, "%s %s: ", read ? "read from" : "written to", path);
    return read;
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

/* INFINITY: it does not fit, in budgets that overlap_room.c may have lifted; NAN: nobody knows. */
static double period_of(const struct planner *planner, const struct candidate *candidate)
{
    if (!planner->timed)
        return NAN;
    return candidate->score.excess_bytes == 0 ? candidate->score.period : INFINITY;
}

/* A letter per layer, layer 0 first.  (A plan's file begins at the last, and tells L from C.)  The caller frees it. */
static char *letters_of(const struct planner *planner, const unsigned char *side)
{
    size_t layers = 0;
    for (size_t i = 0; i < planner->list->n; i++)
        layers = MAX(layers, (size_t)(planner->list->task[i]->layer + 1));
    char *letters = allocate(layers + 1, 1);
    memset(letters, 'D', layers);
    for (size_t b = 0; b < planner->buckets.n; b++) {
        int layer = planner->buckets.bucket[b].layer;
        if (layer >= 0 && side[b] != ON_DEVICE)
            letters[layer] = 'C';
    }
    return letters;
}

static double if_timed(const struct planner *planner, double seconds) { return planner->timed ? seconds : NAN; }

/* The period that each --overlap would have. */
static void report_each(const struct planner *planner, const struct plans *plans, struct pass_report *report)
{
    const struct candidate *candidate = plans->by_mode;
    report_ms(report, "all_device_ms", "all on the device", period_of(planner, &candidate[OVERLAP_ALL_DEVICE]));
    report_ms(report, "all_cpu_ms", "all on the CPU", period_of(planner, &candidate[OVERLAP_ALL_CPU]));
    report_ms(report, "local_ms", "local", period_of(planner, &candidate[OVERLAP_LOCAL]));
    report_ms(report, NULL, "best plan", period_of(planner, &candidate[OVERLAP_PLAN]));
}

/* What the rule loses against the best plan. */
static void report_regret(const struct planner *planner, const struct plans *plans, struct pass_report *report)
{
    char ratio[32];
    double by_rule = period_of(planner, &plans->by_mode[OVERLAP_LOCAL]);
    double best = period_of(planner, &plans->by_mode[OVERLAP_PLAN]);
    if (isfinite(by_rule) && isfinite(best))
        append_text(&report->numbers, "; local: %s", format_ratio(ratio, by_rule / best, 1));
}

/* A model has fewer layers than MOST_BUCKETS, but a list that was written by hand may have more. */
static void report_left_out(const struct update_buckets *buckets, struct pass_report *report)
{
    if (buckets->n_left_out)
        append_text(&report->reason, "; %zu updates stay on the device, since only those of %d layers can move",
                    buckets->n_left_out, MOST_BUCKETS);
}

/* Reports on the list as it now is, and on what it could be. */
static void report_plans(const struct planner *planner, const struct plans *plans, enum overlap mode,
                         struct pass_report *report)
{
    const struct candidate *chosen = &plans->by_mode[mode];
    char *letters = letters_of(planner, chosen->side);
    report->after = keep_forecast(forecast_list(planner->list, planner->costs));
    report->fields = json_pack("{s:s}", "choice", letters);
    free(letters);
    report_each(planner, plans, report);
    report_ms(report, "bound_ms", "at least", if_timed(planner, planner->least_period));
    report_ms(report, "period_ms", NULL, period_of(planner, chosen));
    report_ms(report, "barrier_ms", NULL, if_timed(planner, report->after->alone));
    report_ms(report, "serial_ms", NULL, if_timed(planner, planner->serial));
    report_regret(planner, plans, report);
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

/* Finds a plan for each --overlap. */
static struct plans try_each(struct overlapper *overlapper)
{
    struct planner *planner = &overlapper->planner;
    if (planner->timed)
        measure_buckets(planner);
    const struct plans plans = try_all(overlapper, OVERLAP_WORK);
    if (!planner->timed || !find_wanted(MAKES_ROOM, overlapper->facts))
        return plans;
    return plans_with_room(overlapper, &plans);
}

/* Settles what the --overlap that is asked for does: *chosen, unless a file or the running step says otherwise.
 * Returns whether that is a file's plan. */
static bool settle_plan(struct overlapper *overlapper, struct candidate *chosen, struct pass_report *report)
{
    const struct run_facts *facts = overlapper->facts;
    const struct planner *planner = &overlapper->planner;
    const char *plan = facts->trial ? NULL : overlap_options.plan;
    const struct question question = question_of(overlapper, 0);
    if (plan && planner->buckets.n > 0)
        return read_or_write(planner, &question, plan, chosen, report);
    if (mode_of(facts) == OVERLAP_LOCAL && planner->timed)
        decide_in_step(&overlapper->rule, &question, facts, overlapper->room_maker, chosen, report);
    return false;
}

static void append_nothing_moved(const struct planner *planner, bool untimed, char **reason)
{
    if (untimed)
        append_text(reason, "add --profile or --hardware");
    else if (planner->buckets.n > 0)
        append_text(reason, "no update on the CPU");
    else
        append_text(reason, "the list has no update that could run on the CPU");
}

/* Rewrites the list and says so; or says why nothing is to be rewritten, and returns false. */
static bool rewrite_list(struct overlapper *overlapper, const struct candidate *chosen, bool read,
                         struct pass_report *report)
{
    const struct planner *planner = &overlapper->planner;
    const size_t n = planner->buckets.n; /* a bucket counts as one update, however many it has */
    size_t on_cpu = 0;
    for (size_t b = 0; b < n; b++)
        on_cpu += chosen->side[b] != ON_DEVICE;
    bool untimed = n > 0 && !planner->timed && !read && decides();
    if (untimed)
        append_text(&report->reason, "nobody knows how long tasks take: ");
    if (on_cpu == 0 && overlapper->rule.n_fixed >= n) {
        append_nothing_moved(planner, untimed, &report->reason);
        return false;
    }
    struct edit *edit = open_edit(planner->list);
    carry_out(overlapper, edit, chosen->side, chosen->sharing);
    commit_edit(edit);
    append_text(&report->reason, "%s%zu of %zu updates on the CPU, on %d of its cores",
                untimed ? "not all fits on the device, so " : "", on_cpu, n, planner->cores);
    return true;
}

static bool run_overlap(struct list *list, const struct costs *costs, const struct run_facts *facts,
                        struct pass_report *report)
{
    const enum overlap mode = mode_of(facts);
    struct overlapper *overlapper = new_overlapper(list, costs, facts);
    struct plans plans = try_each(overlapper);
    struct candidate *chosen = &plans.by_mode[mode];
    bool read = settle_plan(overlapper, chosen, report);
    bool changed = rewrite_list(overlapper, chosen, read, report);
    size_t first = reserve_room(list, facts), n = list->pool->n;
    report_left_out(&overlapper->planner.buckets, report);
    report_plans(&overlapper->planner, &plans, mode, report);
    end_room(list, first, n);
    bool is_final = !find_wanted(MAKES_ROOM, facts) && !find_wanted(BLAMED_LAST, facts);
    if (chosen->score.excess_bytes > 0 && is_final)
        refuse_too_large(list->pool->machine, report->after, "--overlap", SAME_LIST);
    free_overlapper(overlapper);
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

static void check_overlap_options(struct settings *settings)
{
    (void)settings;
    if (overlap_options.plan && overlap_options.mode != OVERLAP_PLAN)
        fail(EXIT_USAGE, "--overlap-plan %s is the plan of --overlap plan: add that", overlap_options.plan);
}

/* How often the running step has chosen what. */
static void tell_choices(struct trainer *trainer, struct kept_run *kept)
{
    (void)kept;
    char *choices = describe_choices(trainer->train);
    if (choices)
        note("overlap: %s", choices);
    free(choices);
}

static const struct option options[] = {
    {.name = "overlap",
     .type = OPT_CHOICE,
     .value = &overlap_options.mode,
     .initial = "off",
     .argument = WORDS([OVERLAP_OFF] = "off", [OVERLAP_PLAN] = "plan", [OVERLAP_LOCAL] = "local",
                       [OVERLAP_ALL_CPU] = "all-cpu", [OVERLAP_ALL_DEVICE] = "all-device"),
     .group = GROUP_TECHNIQUES,
     .commands = OF_LIST,
     .help = "run optimizer updates of some layers on the CPU while the device goes on. plan: a search before "
             "the run chooses the layers for the shortest step. local: at the end of each layer's backward a "
             "rule chooses, by the work that the CPU still has. all-cpu, all-device: all updates run there"},
    {.name = "overlap-plan",
     .type = OPT_OUTPUT,
     .value = &overlap_options.plan,
     .argument = "FILE",
     .group = GROUP_TECHNIQUES,
     .commands = OF_LIST,
     .help = "file with the plan of --overlap plan as text. It is read if it is there, and else written"},
};
static const struct hooks hooks = {
    .kept = tell_choices,
};
static const struct foreign_words foreign[] = {
    {"overlap", "cpu-offload offload offload-optimizer zero-offload", NULL},
};
const struct module module_overlap = {
    .name = "overlap",
    .needs = "pass predict search",
    .pass = &pass,
    .options = options,
    .n_options = COUNT(options),
    .foreign = foreign,
    .n_foreign = COUNT(foreign),
    .check = check_overlap_options,
    .hooks = &hooks,
};
