/* recompute_pass.c - --recompute as a pass: its options, and who does its work.  The technique is in recompute.c. */
#include "planning/pass/traits.h"
#include "recompute.h"

struct recompute_options asked_recompute;

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

/* The search for what is made again, which swap's pass has (swap/swap_auto.c), whether or not --swap is given; NULL:
 * swap was left out. */
static pass_run *find_search(void)
{
    size_t n;
    const struct pass *const *all = all_passes(&n);
    for (size_t i = 0; i < n; i++)
        if (traits_of(all[i])->choose_remade)
            return traits_of(all[i])->choose_remade;
    return NULL;
}

static bool wants_recompute(const struct run_facts *facts)
{
    (void)facts;
    return asked_recompute.mode != RECOMPUTE_OFF;
}

static unsigned traits_by_options(void) { return asked_recompute.mode == RECOMPUTE_AUTO ? WANTS_TIMES : 0; }

static int *remade_tensors(const struct uses *uses, const struct pool *pool)
{
    return remade_by_rule(uses, pool, asked_recompute.mode);
}

static bool run_recompute(struct list *list, const struct costs *costs, const struct run_facts *facts,
                          struct pass_report *report)
{
    if (asked_recompute.mode != RECOMPUTE_AUTO)
        return recompute_by_rule(list, asked_recompute.mode, report);
    pass_run *search = find_search();
    CHECK(search, "--recompute auto has no search"); /* else check_recompute_options() has refused it */
    return search(list, costs, facts, report);
}

static void check_recompute_options(void)
{
    if (asked_recompute.mode == RECOMPUTE_AUTO && !find_search())
        fail(EXIT_USAGE, "--recompute auto needs the search of --swap auto, and this yard was built without%s",
             left_out);
}

/* Activations are on devices.  RECOMPUTE_AUTO makes again as much as `full` if it must. */
static const char *way_to_make_room(bool on_host)
{
    if (on_host || asked_recompute.mode == RECOMPUTE_FULL || asked_recompute.mode == RECOMPUTE_AUTO)
        return NULL;
    return "--recompute full";
}

static const struct pass_traits traits = {
    .always = MAKES_ROOM,
    .by_options = traits_by_options,
    .remade_tensors = remade_tensors,
};
static const struct pass pass = {
    .runs_at = 30,
    .name = "recompute",
    .wanted = wants_recompute,
    .run = run_recompute,
    .turned_on = {"--recompute selective", "--recompute full"},
    .traits = &traits,
};
static const struct option options[] = {
    {.name = "recompute",
     .type = OPT_CHOICE,
     .value = &asked_recompute.mode,
     .initial = "off",
     .argument = WORDS([RECOMPUTE_OFF] = "off", [RECOMPUTE_FULL] = "full", [RECOMPUTE_SELECTIVE] = "selective",
                       [RECOMPUTE_AUTO] = "auto"),
     .group = GROUP_TECHNIQUES,
     .classes = OF_LIST,
     .help = "compute activations again before a layer's backward instead of keeping them. full: all but the "
             "layer's input. selective: attention's (T, T) matrices and GELU's output. auto: as many as the "
             "budget needs, for the shortest step"},
};
static const struct foreign_words foreign[] = {
    {"recompute",
     "gradient-checkpointing activation-checkpointing recompute-activations checkpoint-activations "
     "activations-checkpoint-method",
     NULL},
};
static const struct training_parts training = {.way_to_make_room = way_to_make_room};
static const struct planning_parts planning = {.pass = &pass};
const struct module module_recompute = {
    .name = "recompute",
    .needs = "pass",
    .planning = &planning,
    .options = options,
    .n_options = COUNT(options),
    .training = &training,
    .foreign = foreign,
    .n_foreign = COUNT(foreign),
    .check = check_recompute_options,
};
