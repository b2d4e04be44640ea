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

static bool makes_room(const struct pass_traits *p) { return p->makes_room; }

static bool foretells_remade(const struct pass_traits *p) { return p->foretell_remade != NULL; }

/* A pass whose way to make room is not known before it has run. */
static bool surprises(const struct pass_traits *p) { return p->makes_room && !p->foretell_remade; }

static bool foretells_fit(const struct pass_traits *p) { return p->foretells_fit != NULL; }

/* ---- carrying a choice out --------------------------------------------------------------------------------------- */

static void carry_out(struct overlapper *o, struct edit *e, const unsigned char *side, enum sharing sharing)
{
    const struct planner *p = &o->planner;
    struct mover m = begin_moves(e, p->step, p->uses, p->cores, sharing);
    if (o->rule.n_fixed < p->buckets.n)
        offer_updates(&m, &o->rule, side);
    else
        move_updates(&m, &p->buckets, side);
    end_moves(&m);
}

/* carry_out() for a list that is scored, and undone: with what recompute will make again, and with room for snapshots,
 * which depends on where updates are. */
static void carry_out_to_try(void *pass, struct edit *e, const unsigned char *choice)
{
    const struct trying *trying = pass;
    struct overlapper *o = trying->overlapper;
    struct step *s = o->planner.step;
    carry_out(o, e, choice, choice[o->planner.buckets.n]); /* the last decision is the sharing */
    if (trying->remade)
        free(remake(e, s->pool, o->planner.uses, trying->remade, REMAKE_AT_BACKWARD));
    reserve_room(s, o->facts);
}

/* What a choice comes to, for as long as `trying` lives.  work: what a search may spend after its starts. */
static struct question question_of(struct trying *trying, double work)
{
    const struct planner *p = &trying->overlapper->planner;
    return (struct question){.step = p->step,
                             .costs = p->costs,
                             .activity = "looking for the updates to give to the CPU",
                             .decision = p->decision,
                             .n = p->buckets.n + 1,
                             .apply = carry_out_to_try,
                             .pass = trying,
                             .least_period = p->least_period,
                             .work = work};
}

/* ---- what each --overlap comes to -------------------------------------------------------------------------------- */

/* remade: as in struct trying. */
static struct plans try_all(struct overlapper *o, const int *remade, double work)
{
    struct trying trying = {o, remade};
    const struct question q = question_of(&trying, work);
    struct plans plans = find_plans(&o->planner, &q);
    if (o->planner.timed)
        expect_rule(&o->rule, &q, &plans.by_mode[OVERLAP_LOCAL]);
    else
        plans.by_mode[OVERLAP_LOCAL] = plans.by_mode[OVERLAP_PLAN];
    return plans;
}

/* The same as if budgets had no end.  Tasks know their devices by address, so the limits are lifted there, and are as
 * before when this returns. */
static struct plans try_all_without_limits(struct overlapper *o, double work)
{
    struct machine *m = o->planner.step->pool->machine;
    struct device *limits = lift_limits(m, m->n_devices);
    struct plans plans = try_all(o, NULL, work);
    restore_limits(m, limits, m->n_devices);
    free(limits);
    return plans;
}

/* No look at other plans is worth its work: the step is within 1 % of the shortest that there could be.  Or all updates
 * on the device fit, and all on the CPU do, with gradients that have bytes of their own: then budgets hardly keep any
 * plan away. */
static bool is_good_enough(const struct planner *p, const struct plans *plans, double period)
{
    const struct candidate *all = &plans->by_mode[OVERLAP_ALL_CPU];
    if (period <= 1.01 * p->least_period)
        return true;
    return plans->by_mode[OVERLAP_ALL_DEVICE].score.excess_bytes == 0 && all->score.excess_bytes == 0 &&
           all->sharing == GRADIENTS_ALONE;
}

/* A quick look, at the starts of the search alone: would the mode's step be at most so long if budgets had no end? */
static bool is_shorter_without_limits(struct overlapper *o, enum overlap mode, double seconds)
{
    struct plans quick = try_all_without_limits(o, 0);
    return quick.by_mode[mode].score.period <= seconds;
}

/* Can `maker` make the list fit with this candidate, and a step of at most so many seconds? */
static bool can_be_made_to_fit(struct overlapper *o, const struct candidate *c, const struct pass *maker,
                               double seconds)
{
    const struct planner *p = &o->planner;
    struct trying trying = {o, NULL};
    const struct question q = question_of(&trying, 0);
    struct candidate within = *c;
    score_candidate(&q, &within);
    if (!isfinite(within.score.excess_bytes)) /* no address can be found for a tensor, which no pass mends */
        return false;
    struct edit *e = open_edit(p->step);
    carry_out(o, e, c->side, c->sharing);
    reserve_room(p->step, o->facts);
    preview(e);
    bool fits = traits_of(maker)->foretells_fit(p->step, p->costs, seconds);
    undo(e);
    return fits;
}

static bool candidate_fits(struct overlapper *o, struct candidate candidate, const int *remade)
{
    struct trying trying = {o, remade};
    const struct question q = question_of(&trying, 0);
    try_candidate(&q, &candidate);
    return candidate.score.excess_bytes <= 0;
}

/* Nothing fits, and later passes make room.  So all is tried again, as if
 *
 *     what they make is enough                                 budgets had no end
 *     one that makes tensors again is alone, and it is not     it had run
 */
static struct findings try_all_with_room(struct overlapper *o)
{
    const struct planner *p = &o->planner;
    const struct pass *remaking = find_wanted(foretells_remade, o->facts);
    const struct pass *maker = find_wanted(surprises, o->facts);
    struct findings found = {.plans = try_all_without_limits(o, OVERLAP_WORK)};
    if (!remaking) {
        found.maker = maker;
        return found;
    }
    found.remade = traits_of(remaking)->foretell_remade(p->uses, p->step->pool);
    if (!candidate_fits(o, found.plans.by_mode[mode_of(o->facts)], found.remade) && !maker)
        found.plans = try_all(o, found.remade, OVERLAP_WORK);
    return found;
}

/* These plans fit.  Would another one make a shorter step after a later pass has made room for it?  Then the plans are
 * those of budgets without end.  Of `local` this is not asked, since the step decides. */
static struct findings weigh_room(struct overlapper *o, const struct plans *plans)
{
    const enum overlap mode = mode_of(o->facts);
    const struct pass *maker = find_wanted(foretells_fit, o->facts);
    const struct score fits = plans->by_mode[mode].score;
    const struct findings within = {.plans = *plans};
    bool is_asked = mode == OVERLAP_PLAN || mode == OVERLAP_ALL_CPU;
    if (!is_asked || !maker || find_wanted(foretells_remade, o->facts))
        return within;
    if (fits.excess_bytes > 0 || is_good_enough(&o->planner, plans, fits.period))
        return within;
    const double shorter = fits.period * (1 - 1e-6); /* by more than rounding */
    if (!is_shorter_without_limits(o, mode, shorter))
        return within;
    const struct findings beyond = {.plans = try_all_without_limits(o, OVERLAP_WORK), .maker = maker};
    return can_be_made_to_fit(o, &beyond.plans.by_mode[mode], maker, shorter) ? beyond : within;
}

static struct overlapper *new_overlapper(struct step *s, const struct costs *c, const struct run_facts *facts)
{
    struct overlapper *o = allocate(1, sizeof *o);
    struct planner *p = &o->planner;
    o->facts = facts;
    p->step = s;
    p->costs = c;
    p->uses = find_uses(s->task, s->n, s->pool);
    find_buckets(&p->buckets, p->uses);
    const size_t n = p->buckets.n;
    p->cores = MAX((int)spare_cores(s->pool->machine), 1);
    p->timed = n > 0 && has_times(s, c);
    for (size_t b = 0; b < n; b++)
        p->decision[b] = (struct decision){SIDES, NONE};
    p->decision[n] = (struct decision){2, NONE}; /* enum sharing */
    o->rule = (struct rule){.random = facts->draw, .seed = facts->draw_seed, .planner = p, .n_fixed = n};
    return o;
}

static void free_overlapper(struct overlapper *o)
{
    free_uses(o->planner.uses);
    free(o->planner.buckets.bucket_of);
    free(o);
}

/* ---- the plan's file --------------------------------------------------------------------------------------------- */

/* The file's plan, where there is one, stands in for `best`, the search's; else that is written there.  Was it read? */
static bool read_or_write(const struct planner *p, const struct question *q, const char *path, struct candidate *best,
                          struct pass_report *r)
{
    static const char *const letter[SIDES + 1] = {[ON_CPU] = "C", [ON_CPU_LATE] = "L", [ON_DEVICE] = "D"};
    const char *name[MOST_BUCKETS];
    struct choice_text text = {
        .head = "A plan of yard --overlap plan: D, on its device; C, on the CPU; L, there after all C.",
        .word = letter,
        .expected = "D, C or L",
        .name = name,
        .n = p->buckets.n};
    for (size_t b = 0; b < p->buckets.n; b++)
        name[b] = p->buckets.bucket[b].name;
    bool read = read_choice(path, &text, best->side);
    if (read)
        try_candidate(q, best);
    else if (p->timed)
        write_choice(path, &text, best->side);
    if (read || p->timed)
        append_text(&r->reason, "%s %s: ", read ? "read from" : "written to", path);
    return read;
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

/* INFINITY: it does not fit, in limits that try_all_with_room() may have lifted; NAN: nobody knows. */
static double period_of(const struct planner *p, const struct candidate *c)
{
    if (!p->timed)
        return NAN;
    return c->score.excess_bytes == 0 ? c->score.period : INFINITY;
}

/* A letter per layer, layer 0 first.  (A plan's file begins at the last, and tells L from C.)  The caller frees it. */
static char *letters_of(const struct planner *p, const unsigned char *side)
{
    size_t layers = 0;
    for (size_t i = 0; i < p->step->n; i++)
        layers = MAX(layers, (size_t)(p->step->task[i]->layer + 1));
    char *letters = allocate(layers + 1, 1);
    memset(letters, 'D', layers);
    for (size_t b = 0; b < p->buckets.n; b++) {
        int layer = p->buckets.bucket[b].layer;
        if (layer >= 0 && side[b] != ON_DEVICE)
            letters[layer] = 'C';
    }
    return letters;
}

static double if_timed(const struct planner *p, double seconds) { return p->timed ? seconds : NAN; }

/* The period that each --overlap would have. */
static void report_each(const struct planner *p, const struct plans *plans, struct pass_report *r)
{
    const struct candidate *c = plans->by_mode;
    report_ms(r, "all_device_ms", "all on the device", period_of(p, &c[OVERLAP_ALL_DEVICE]));
    report_ms(r, "all_cpu_ms", "all on the CPU", period_of(p, &c[OVERLAP_ALL_CPU]));
    report_ms(r, "local_ms", "local", period_of(p, &c[OVERLAP_LOCAL]));
    report_ms(r, NULL, "best plan", period_of(p, &c[OVERLAP_PLAN]));
}

/* What the rule loses against the best plan. */
static void report_regret(const struct planner *p, const struct plans *plans, struct pass_report *r)
{
    char ratio[32];
    double by_rule = period_of(p, &plans->by_mode[OVERLAP_LOCAL]);
    double best = period_of(p, &plans->by_mode[OVERLAP_PLAN]);
    if (isfinite(by_rule) && isfinite(best))
        append_text(&r->numbers, "; local: %s", format_ratio(ratio, by_rule / best, 1));
}

/* Reports on the list as it now is, and on what it could be. */
static void report_plans(const struct planner *p, const struct plans *plans, enum overlap mode, struct pass_report *r)
{
    const struct candidate *chosen = &plans->by_mode[mode];
    char *letters = letters_of(p, chosen->side);
    r->after = keep_forecast(try_step(p->step, p->costs));
    r->fields = json_pack("{s:s}", "choice", letters);
    free(letters);
    report_each(p, plans, r);
    report_ms(r, "bound_ms", "at least", if_timed(p, p->least_period));
    report_ms(r, "period_ms", NULL, period_of(p, chosen));
    report_ms(r, "barrier_ms", NULL, if_timed(p, r->after->alone));
    report_ms(r, "serial_ms", NULL, if_timed(p, p->serial));
    report_regret(p, plans, r);
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

/* Finds what each --overlap comes to, and what later passes have to do for that. */
static struct findings try_each(struct overlapper *o)
{
    struct planner *p = &o->planner;
    if (p->timed)
        measure_buckets(p);
    const struct plans plans = try_all(o, NULL, OVERLAP_WORK);
    if (!p->timed || !find_wanted(makes_room, o->facts))
        return (struct findings){.plans = plans};
    bool lacks_room = plans.by_mode[OVERLAP_PLAN].score.excess_bytes > 0;
    return lacks_room ? try_all_with_room(o) : weigh_room(o, &plans);
}

/* Settles what the --overlap that is asked for does: *chosen, unless a file or the running step says otherwise.
 * Returns whether that is a file's plan. */
static bool settle_plan(struct overlapper *o, const struct findings *found, struct candidate *chosen,
                        struct pass_report *r)
{
    const struct run_facts *facts = o->facts;
    const struct planner *p = &o->planner;
    const char *plan = facts->trial ? NULL : overlap_options.plan;
    struct trying trying = {o, found->remade};
    const struct question q = question_of(&trying, 0);
    if (plan && p->buckets.n > 0)
        return read_or_write(p, &q, plan, chosen, r);
    if (mode_of(facts) == OVERLAP_LOCAL && p->timed)
        decide_in_step(&o->rule, &q, facts, found->maker, chosen, r);
    return false;
}

static void append_nothing_moved(const struct planner *p, bool untimed, char **reason)
{
    if (untimed)
        append_text(reason, "add --profile or --hardware");
    else if (p->buckets.n > 0)
        append_text(reason, "no update on the CPU");
    else
        append_text(reason, "the list has no update that could run on the CPU");
}

/* Rewrites the list and says so; or says why nothing is to be rewritten, and returns false. */
static bool rewrite_list(struct overlapper *o, const struct candidate *chosen, bool read, struct pass_report *r)
{
    const struct planner *p = &o->planner;
    const size_t n = p->buckets.n; /* a bucket counts as one update, however many it has */
    size_t on_cpu = 0;
    for (size_t b = 0; b < n; b++)
        on_cpu += chosen->side[b] != ON_DEVICE;
    bool untimed = n > 0 && !p->timed && !read && decides();
    if (untimed)
        append_text(&r->reason, "nobody knows how long tasks take: ");
    if (on_cpu == 0 && o->rule.n_fixed >= n) {
        append_nothing_moved(p, untimed, &r->reason);
        return false;
    }
    struct edit *e = open_edit(p->step);
    carry_out(o, e, chosen->side, chosen->sharing);
    commit(e);
    append_text(&r->reason, "%s%zu of %zu updates on the CPU, on %d of its cores",
                untimed ? "not all fits on the device, so " : "", on_cpu, n, p->cores);
    return true;
}

static bool run_overlap(struct step *s, const struct costs *c, const struct run_facts *facts, struct pass_report *r)
{
    const enum overlap mode = mode_of(facts);
    struct overlapper *o = new_overlapper(s, c, facts);
    struct findings found = try_each(o);
    struct candidate *chosen = &found.plans.by_mode[mode];
    bool read = settle_plan(o, &found, chosen, r);
    bool changed = rewrite_list(o, chosen, read, r);
    size_t first = reserve_room(s, facts), n = s->pool->n;
    report_plans(&o->planner, &found.plans, mode, r);
    end_room(s, first, n);
    if (chosen->score.excess_bytes > 0 && !find_wanted(makes_room, facts) && !facts->gather)
        refuse_budget(s->pool->machine, r->after, "--overlap", SAME_LIST);
    free(found.remade);
    free_overlapper(o);
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

static void check_overlap_options(struct settings *s)
{
    (void)s;
    if (overlap_options.plan && overlap_options.mode != OVERLAP_PLAN)
        fail(EXIT_USAGE, "--overlap-plan %s is the plan of --overlap plan: add that", overlap_options.plan);
}

/* How often the running step has chosen what. */
static void tell_choices(struct trainer *t, struct kept_run *k)
{
    (void)k;
    char *choices = describe_choices(t->train);
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
