/* gather_pass.c - --zero 3 as a pass.  The technique itself is in gather.c. */
#include "gather.h"
#include "planning/pass/traits.h"

static bool wants_gather(const struct run_facts *facts) { return facts->gather; }

static bool run_gather(struct list *list, const struct costs *costs, const struct run_facts *facts,
                       struct pass_report *report)
{
    (void)costs;
    const bool sliced = find_wanted(SENDS_COPIES, facts) != NULL;
    return gather_parameters(list, sliced, report);
}

static const struct pass_traits traits = {
    .always = IN_EVERY_LIST | TAKES_UNKNOWN_ROOM,
    .blamed_at_end = "--zero 3",
};
static const struct pass pass = {
    .runs_at = 20,
    .name = "gather",
    .wanted = wants_gather,
    .run = run_gather,
    .turned_on = {"--zero 3"},
    .traits = &traits,
};
const struct module module_gather = {
    .name = "gather",
    .needs = "pass",
    .pass = &pass,
    .gathers = true,
};
