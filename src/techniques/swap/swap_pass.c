/* swap_pass.c - --swap as a pass: its options, and which of two ways it goes.  swap.c has the fixed orders, and
 * swap_auto.c the search.
 */
#include "planning/pass/traits.h"
#include "swap_parts.h"

struct swap_options asked_swap;

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static bool run_swap(struct list *list, const struct costs *costs, const struct run_facts *facts,
                     struct pass_report *report)
{
    if (asked_swap.mode == SWAP_AUTO)
        return swap_by_search(list, costs, &asked_swap, facts, report);
    return swap_by_phases(list, costs, &asked_swap, facts, report);
}

static bool wants_swap(const struct run_facts *facts)
{
    (void)facts;
    return asked_swap.mode != SWAP_OFF;
}

static unsigned traits_by_options(void)
{
    unsigned state = 1u << MEM_OPTIMIZER | 1u << MEM_PARAMETERS;
    unsigned traits = asked_swap.mode == SWAP_AUTO ? WANTS_TIMES : TAKES_UNKNOWN_ROOM;
    if (asked_swap.may_leave & state)
        traits |= MOVES_STATE;
    return traits;
}

static bool can_make_fit(struct list *list, const struct costs *costs, double seconds)
{
    return asked_swap.mode == SWAP_AUTO && can_fit_within(list, costs, &asked_swap, seconds);
}

/* For --recompute auto, whose pass comes before this one. */
static bool choose_remade(struct list *list, const struct costs *costs, const struct run_facts *facts,
                          struct pass_report *report)
{
    return remake_by_search(list, costs, &asked_swap, facts, report);
}

static const struct pass_traits traits = {
    .always = MAKES_ROOM,
    .by_options = traits_by_options,
    .can_make_fit = can_make_fit,
    .choose_remade = choose_remade,
};
static const struct pass pass = {
    .runs_at = 50,
    .name = "swap",
    .wanted = wants_swap,
    .run = run_swap,
    .turned_on = {"--swap layer"},
    .traits = &traits,
};

/* ---- the options ------------------------------------------------------------------------------------------------- */

static const char *swap_what; /* --swap-what, as given */
static char *more_classes;    /* "--swap-what" with all classes, to be suggested; NULL: swap_what has all */

/* The names of the classes that --swap-what takes, those before MEM_WORK.  The caller frees the text. */
static char *name_classes(const char *between)
{
    char *names = NULL;
    for (int memory_class = 0; memory_class < MEM_WORK; memory_class++)
        append_text(&names, "%s%s", memory_class > 0 ? between : "", memory_class_name[memory_class]);
    return names;
}

/* Suggests --swap-what with all classes, if it has fewer. */
static void suggest_classes(void)
{
    unsigned all = (1u << MEM_WORK) - 1; /* the classes before MEM_WORK */
    free(more_classes);
    more_classes = NULL;
    if (asked_swap.may_leave == all)
        return;
    char *names = name_classes(",");
    more_classes = format_string("--swap-what %s", names);
    free(names);
}

/* Swap takes its room from the host.  When it is on, only more classes make more room. */
static const char *way_to_make_room(bool on_host)
{
    if (on_host)
        return NULL;
    return asked_swap.mode == SWAP_OFF ? "--swap auto" : more_classes;
}

/* The classes that --swap-what names, a bit each.  A word that is none of them ends the program. */
static unsigned read_classes(const char *what)
{
    unsigned classes = 0;
    char *text = copy_string(what), *rest = text;
    for (char *word = strsep(&rest, ","); word; word = strsep(&rest, ",")) {
        int memory_class = choice_number(memory_class_name, word);
        if (memory_class < 0 || memory_class >= MEM_WORK)
            fail(EXIT_USAGE, "--swap-what takes some of %s, with commas between, not \"%s\"", name_classes(", "), word);
        classes |= 1u << memory_class;
    }
    free(text);
    return classes;
}

static void take_swap_what(void)
{
    asked_swap.may_leave = read_classes(swap_what);
    suggest_classes();
}

static const struct option options[] = {
    {.name = "swap",
     .type = OPT_CHOICE,
     .value = &asked_swap.mode,
     .initial = "off",
     .argument =
         WORDS([SWAP_OFF] = "off", [SWAP_AUTO] = "auto", [SWAP_LAYER] = "layer", [SWAP_MICROBATCH] = "microbatch"),
     .group = GROUP_TECHNIQUES,
     .classes = OF_LIST,
     .help = "move data to the host, and back before it is needed. auto: as much as the budget needs, for the "
             "shortest step; what is cheaper to compute again is computed again. layer, microbatch: all that "
             "can leave, in a fixed order (tutorials/17-swap.md)"},
    {.name = "swap-what",
     .type = OPT_TEXT,
     .value = &swap_what,
     .initial = "activations",
     .argument = "CLASS,...",
     .group = GROUP_TECHNIQUES,
     .classes = OF_LIST,
     .help = "which of parameters, gradients, optimizer and activations may leave the device. All but "
             "activations then stay on the host between their tasks"},
};
static const struct option_rule rules[] = {{"swap-what", NEEDS, "swap", NULL}};
static const struct foreign_words foreign[] = {
    {"swap", "offload-activations swap-activations", NULL},
};
static const struct training_parts training = {.way_to_make_room = way_to_make_room};
static const struct planning_parts planning = {.pass = &pass};
const struct module module_swap = {
    .name = "swap",
    .needs = "pass predict search",
    .planning = &planning,
    .options = options,
    .n_options = COUNT(options),
    .training = &training,
    .foreign = foreign,
    .n_foreign = COUNT(foreign),
    .rules = rules,
    .n_rules = COUNT(rules),
    .check = take_swap_what,
};
