/* overlap_pass.c - --overlap as a pass: its options, its answers to other passes, and its report.  The technique itself
 * is in overlap.c.
 *
 *     all-device   no update moves; the report says what the other modes would come to
 *     all-cpu      every update moves that can
 *     plan         choose.c looks for the best plan; or a file has it (--overlap-plan), which an earlier run wrote
 *     local        local.c: the running step decides
 *
 * Passes that run later may make room: after them the list fits in fewer bytes than it needs now.  So where no plan
 * fits, all plans are tried again as if budgets had no end.  Or, where it is known before which tensors a later pass
 * makes again, they are tried as if that pass had run.
 *
 * Where a plan fits, that plan may still make a longer step than one that needs more bytes and gets them from a later
 * pass.  So where steps would be shorter if budgets had no end, the later pass is asked whether it can make the best of
 * these plans fit, and still with a step that is shorter.
 */
#include "choose.h"
#include "local.h"
#include "techniques/pass/traits.h"
#include "techniques/search/plan_text.h"
#include "tools/command/numbers.h"
#include "trainer/train/hooks.h"

#include <math.h>
#include <unistd.h>

struct overlapper { /* the pass at work on a list */
    struct planner planner;
    struct rule rule;
    const struct run_facts *facts;
};

struct trying { /* how choices are tried: the `pass` of a question */
    struct overlapper *overlapper;
    const int *remade; /* they are tried as if this were made again already; NULL: with the list as it is */
};

/* What comes of a look at all plans, and what later passes will do about a list that does not fit. */
struct findings {
    struct plans plans;
    int *remade;              /* what one of them makes again, for remake(); NULL: nothing, or that is not known yet */
    const struct pass *maker; /* the one that makes room in a way that is not known yet; NULL: none */
};

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

/* In a trial nothing is decided in the step. */
static enum overlap mode_of(const struct run_facts *facts)
{
    bool later = overlap_options.mode == OVERLAP_LOCAL && facts->trial;
    return later ? OVERLAP_PLAN : overlap_options.mode;
}

static bool wants_overlap(const struct run_facts *facts) { return mode_of(facts) != OVERLAP_OFF; }

static bool decides(void) { return overlap_options.mode == OVERLAP_PLAN || overlap_options.mode == OVERLAP_LOCAL; }

/* A plan that is there already needs none. */
static bool wants_times(void)
{
    const char *plan = overlap_options.plan;
    return decides() && !(plan && access(plan, F_OK) == 0);
}

/* ---- other passes, which run later ------------------------------------------------------------------------------- */

static bool makes_room(const struct pass_traits *traits) { return traits->makes_room; }

static bool foretells_remade(const struct pass_traits *traits) { return traits->foretell_remade != NULL; }

/* A pass whose way to make room is not known before it has run. */
static bool makes_unknown_room(const struct pass_traits *traits)
{
    return traits->makes_room && !traits->foretell_remade;
}

static bool foretells_fit(const struct pass_traits *traits) { return traits->foretells_fit != NULL; }

/* ---- carrying a choice out --------------------------------------------------------------------------------------- */

static void carry_out(struct overlapper *overlapper, struct edit *edit, const unsigned char *side, enum sharing sharing)
{
    const struct planner *planner = &overlapper->planner;
    struct mover mover = begin_moves(edit, planner->list, planner->uses, planner->cores, sharing);
    if (overlapper->rule.n_fixed < planner->buckets.n)
        offer_updates(&mover, &overlapper->rule, side);
    else
        move_updates(&mover, &planner->buckets, side);
    end_moves(&mover);
}

/* carry_out() for a list that is scored, and undone: with what recompute will make again, and with room for snapshots,
 * which depends on where updates are. */
static void carry_out_to_try(void *pass, struct edit *edit, const unsigned char *choice)
{
    const struct trying *trying = pass;
    struct overlapper *overlapper = trying->overlapper;
    struct list *list = overlapper->planner.list;
    carry_out(overlapper, edit, choice, choice[overlapper->planner.buckets.n]); /* the last decision is the sharing */
    if (trying->remade)
        free(remake(edit, list->pool, overlapper->planner.uses, trying->remade, REMAKE_AT_BACKWARD));
    reserve_room(list, overlapper->facts);
}

/* What a choice comes to, for as long as `trying` lives.  work: what a search may spend after its starts. */
static struct question question_of(struct trying *trying, double work)
{
    const struct planner *planner = &trying->overlapper->planner;
    return (struct question){.list = planner->list,
                             .costs = planner->costs,
                             .activity = "looking for the updates to give to the CPU",
                             .decision = planner->decision,
                             .n = planner->buckets.n + 1,
                             .apply = carry_out_to_try,
                             .pass = trying,
                             .least_period = planner->least_period,
                             .work = work};
}

/* ---- what each --overlap comes to -------------------------------------------------------------------------------- */

/* remade: as in struct trying. */
static struct plans try_all(struct overlapper *overlapper, const int *remade, double work)
{
    struct trying trying = {overlapper, remade};
    const struct question question = question_of(&trying, work);
    struct plans plans = find_plans(&overlapper->planner, &question);
    if (overlapper->planner.timed)
        expect_rule(&overlapper->rule, &question, &plans.by_mode[OVERLAP_LOCAL]);
    else
        plans.by_mode[OVERLAP_LOCAL] = plans.by_mode[OVERLAP_PLAN];
    return plans;
}

/* The same as if budgets had no end.  Tasks know their devices by address, so the limits are lifted there, and are as
 * before when this returns. */
static struct plans try_all_without_limits(struct overlapper *overlapper, double work)
{
    struct machine *machine = overlapper->planner.list->pool->machine;
    struct device *limits = lift_limits(machine, machine->n_devices);
    struct plans plans = try_all(overlapper, NULL, work);
    restore_limits(machine, limits, machine->n_devices);
    free(limits);
    return plans;
}

/* No look at other plans is worth its work: the step is within 1 % of the shortest that there could be.  Or all updates
 * on the device fit, and all on the CPU do, with gradients that have bytes of their own: then budgets hardly keep any
 * plan away. */
static bool is_good_enough(const struct planner *planner, const struct plans *plans, double period)
{
    const struct candidate *all = &plans->by_mode[OVERLAP_ALL_CPU];
    if (period <= 1.01 * planner->least_period)
        return true;
    return plans->by_mode[OVERLAP_ALL_DEVICE].score.excess_bytes == 0 && all->score.excess_bytes == 0 &&
           all->sharing == GRADIENTS_ALONE;
}

/* A quick look, at the starts of the search alone: would the mode's step be at most so long if budgets had no end? */
static bool is_shorter_without_limits(struct overlapper *overlapper, enum overlap mode, double seconds)
{
    struct plans quick = try_all_without_limits(overlapper, 0);
    return quick.by_mode[mode].score.period <= seconds;
}

/* Can `maker` make the list fit with this candidate, and a step of at most so many seconds? */
static bool can_be_made_to_fit(struct overlapper *overlapper, const struct candidate *candidate,
                               const struct pass *maker, double seconds)
{
    const struct planner *planner = &overlapper->planner;
    struct trying trying = {overlapper, NULL};
    const struct question question = question_of(&trying, 0);
    struct candidate within = *candidate;
    score_candidate(&question, &within);
    if (!isfinite(within.score.excess_bytes)) /* no address can be found for a tensor, which no pass mends */
        return false;
    struct edit *edit = open_edit(planner->list);
    carry_out(overlapper, edit, candidate->side, candidate->sharing);
    reserve_room(planner->list, overlapper->facts);
    preview(edit);
    bool fits = traits_of(maker)->foretells_fit(planner->list, planner->costs, seconds);
    undo(edit);
    return fits;
}

static bool candidate_fits(struct overlapper *overlapper, struct candidate candidate, const int *remade)
{
    struct trying trying = {overlapper, remade};
    const struct question question = question_of(&trying, 0);
    try_candidate(&question, &candidate);
    return candidate.score.excess_bytes <= 0;
}

/* Nothing fits, and later passes make room.  So all is tried again, as if
 *
 *     what they make is enough                                 budgets had no end
 *     one that makes tensors again is alone, and it is not     it had run
 */
static struct findings try_all_with_room(struct overlapper *overlapper)
{
    const struct planner *planner = &overlapper->planner;
    const struct pass *remaking = find_wanted(foretells_remade, overlapper->facts);
    const struct pass *maker = find_wanted(makes_unknown_room, overlapper->facts);
    struct findings found = {.plans = try_all_without_limits(overlapper, OVERLAP_WORK)};
    if (!remaking) {
        found.maker = maker;
        return found;
    }
    found.remade = traits_of(remaking)->foretell_remade(planner->uses, planner->list->pool);
    if (!candidate_fits(overlapper, found.plans.by_mode[mode_of(overlapper->facts)], found.remade) && !maker)
        found.plans = try_all(overlapper, found.remade, OVERLAP_WORK);
    return found;
}

/* These plans fit.  Would another one make a shorter step after a later pass has made room for it?  Then the plans are
 * those of budgets without end.  Of `local` this is not asked, since the step decides. */
static struct findings weigh_room(struct overlapper *overlapper, const struct plans *plans)
{
    const enum overlap mode = mode_of(overlapper->facts);
    const struct pass *maker = find_wanted(foretells_fit, overlapper->facts);
    const struct score fits = plans->by_mode[mode].score;
    const struct findings within = {.plans = *plans};
    bool is_asked = mode == OVERLAP_PLAN || mode == OVERLAP_ALL_CPU;
    if (!is_asked || !maker || find_wanted(foretells_remade, overlapper->facts))
        return within;
    if (fits.excess_bytes > 0 || is_good_enough(&overlapper->planner, plans, fits.period))
        return within;
    const double shorter = fits.period * (1 - 1e-6); /* by more than rounding */
    if (!is_shorter_without_limits(overlapper, mode, shorter))
        return within;
    const struct findings beyond = {.plans = try_all_without_limits(overlapper, OVERLAP_WORK), .maker = maker};
    return can_be_made_to_fit(overlapper, &beyond.plans.by_mode[mode], maker, shorter) ? beyond : within;
}

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
        planner->decision[b] = (struct decision){SIDES, NONE};
    planner->decision[n] = (struct decision){2, NONE}; /* enum sharing */
    overlapper->rule = (struct rule){.random = facts->draw, .seed = facts->draw_seed, .planner = planner, .n_fixed = n};
    return overlapper;
}

static void free_overlapper(struct overlapper *overlapper)
{
    free_uses(overlapper->planner.uses);
    free(overlapper->planner.buckets.bucket_of);
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
        .head = "A plan of yard --overlap plan: D, on its device; C, on the CPU; L, there after all C.",
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

/* INFINITY: it does not fit, in limits that try_all_with_room() may have lifted; NAN: nobody knows. */
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

/* Reports on the list as it now is, and on what it could be. */
static void report_plans(const struct planner *planner, const struct plans *plans, enum overlap mode,
                         struct pass_report *report)
{
    const struct candidate *chosen = &plans->by_mode[mode];
    char *letters = letters_of(planner, chosen->side);
    report->after = keep_forecast(try_step(planner->list, planner->costs));
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

/* Finds what each --overlap comes to, and what later passes have to do for that.  Which plans these are:
 *
 *     no later pass makes room           those within the budgets: try_all()
 *     one does, and none of those fits   those that would fit after it: try_all_with_room()
 *     one does, and one of those fits    those within the budgets, unless others are shorter and the later pass can
 *                                        make room for them: weigh_room()
 */
static struct findings try_each(struct overlapper *overlapper)
{
    struct planner *planner = &overlapper->planner;
    if (planner->timed)
        measure_buckets(planner);
    const struct plans plans = try_all(overlapper, NULL, OVERLAP_WORK);
    if (!planner->timed || !find_wanted(makes_room, overlapper->facts))
        return (struct findings){.plans = plans};
    bool lacks_room = plans.by_mode[OVERLAP_PLAN].score.excess_bytes > 0;
    return lacks_room ? try_all_with_room(overlapper) : weigh_room(overlapper, &plans);
}

/* Settles what the --overlap that is asked for does: *chosen, unless a file or the running step says otherwise.
 * Returns whether that is a file's plan. */
static bool settle_plan(struct overlapper *overlapper, const struct findings *found, struct candidate *chosen,
                        struct pass_report *report)
{
    const struct run_facts *facts = overlapper->facts;
    const struct planner *planner = &overlapper->planner;
    const char *plan = facts->trial ? NULL : overlap_options.plan;
    struct trying trying = {overlapper, found->remade};
    const struct question question = question_of(&trying, 0);
    if (plan && planner->buckets.n > 0)
        return read_or_write(planner, &question, plan, chosen, report);
    if (mode_of(facts) == OVERLAP_LOCAL && planner->timed)
        decide_in_step(&overlapper->rule, &question, facts, found->maker, chosen, report);
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
    commit(edit);
    append_text(&report->reason, "%s%zu of %zu updates on the CPU, on %d of its cores",
                untimed ? "not all fits on the device, so " : "", on_cpu, n, planner->cores);
    return true;
}

static bool run_overlap(struct list *list, const struct costs *costs, const struct run_facts *facts,
                        struct pass_report *report)
{
    const enum overlap mode = mode_of(facts);
    struct overlapper *overlapper = new_overlapper(list, costs, facts);
    struct findings found = try_each(overlapper);
    struct candidate *chosen = &found.plans.by_mode[mode];
    bool read = settle_plan(overlapper, &found, chosen, report);
    bool changed = rewrite_list(overlapper, chosen, read, report);
    size_t first = reserve_room(list, facts), n = list->pool->n;
    report_plans(&overlapper->planner, &found.plans, mode, report);
    end_room(list, first, n);
    if (chosen->score.excess_bytes > 0 && !find_wanted(makes_room, facts) && !facts->gather)
        refuse_budget(list->pool->machine, report->after, "--overlap", SAME_LIST);
    free(found.remade);
    free_overlapper(overlapper);
    return changed;
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static const struct pass_traits traits = {
    .wants_times = wants_times,
    .moves_updates = true,
    .chooses_early = decides,
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
    .table_place = 21,
    .pass = &pass,
    .options = options,
    .n_options = COUNT(options),
    .foreign = foreign,
    .n_foreign = COUNT(foreign),
    .check = check_overlap_options,
    .hooks = &hooks,
};
