/* pass.c - running the passes in their order. */
#include "traits.h"

struct pass_runner { /* runs the passes over one list */
    struct list *list;
    const struct costs *costs;
    const struct run_facts *facts;
    const struct forecaster *forecaster; /* NULL: no folder predicts */
    struct outlook *before;              /* the list as the next pass finds it; NULL: not looked at yet */
    bool keeps_room;                     /* there are tensors that keep room for what later passes add */
    struct reserved_room room;           /* those tensors */
};

/* Frees the outlook on the list as it was before the next pass. */
static void forget_before(struct pass_runner *runner)
{
    if (runner->before)
        runner->forecaster->free_outlook(runner->before);
    runner->before = NULL;
}

/* From here on tensors keep room for what later passes add. */
static void keep_room(struct pass_runner *runner)
{
    if (runner->keeps_room)
        return;
    runner->room = reserve_room(runner->list, runner->facts);
    runner->keeps_room = true;
    forget_before(runner); /* it did not have these bytes */
}

/* From here on no tensor keeps such room. */
static void give_room_back(struct pass_runner *runner)
{
    if (!runner->keeps_room)
        return;
    free_room(runner->list, runner->room);
    runner->room = (struct reserved_room){0};
    runner->keeps_room = false;
    forget_before(runner);
}

/* Called before each pass, where some pass will add tensors that persist.  Until that pass runs, tensors that no task
 * touches keep room for these.  A pass that moves updates reserves the room itself, for each of its choices, so none is
 * kept while it runs. */
static void set_room(struct pass_runner *runner, const struct pass *pass)
{
    if (has_trait(pass, MOVES_UPDATES))
        return;
    if (has_trait(pass, RESERVES_ROOM))
        give_room_back(runner);
    else
        keep_room(runner);
}

/* Looks at the list as the pass finds it, with the bytes that later passes will add.  For a pass that moves updates no
 * tensors keep these bytes (set_room()), so here some do for as long as the look takes. */
static void look_before(struct pass_runner *runner, const struct pass *pass)
{
    if (!runner->forecaster || runner->before)
        return;
    struct reserved_room room = {0};
    if (has_trait(pass, MOVES_UPDATES))
        room = reserve_room(runner->list, runner->facts);
    runner->before = runner->forecaster->new_outlook(runner->list, runner->costs);
    free_room(runner->list, room);
}

/* Runs one pass, and fills in its report. */
static void run_pass(struct pass_runner *runner, const struct pass *pass, struct pass_report *report)
{
    look_before(runner, pass);
    report->pass = pass;
    report->declined = !pass->run(runner->list, runner->costs, runner->facts, report);
    CHECK(!runner->list->extra.cursor, "pass %s has left its edit open: commit_edit() or undo_edit() it", pass->name);
    CHECK(report->reason, "pass %s gives no reason", pass->name);
    if (report->declined || !runner->forecaster)
        return;
    struct outlook *after = runner->forecaster->new_outlook(runner->list, runner->costs);
    report->gain = runner->forecaster->describe_gain(runner->list->pool->machine, runner->before, after);
    forget_before(runner);
    runner->before = after;
}

/* Ends the program where the list does not fit after the last of all passes, and frees what the runner has.  after: the
 * pass that was the last; NULL: all have run. */
static void finish_passes(struct pass_runner *runner, const char *after)
{
    free_room(runner->list, runner->room);
    const struct pass *blamed = find_wanted(IS_CHECKED_AT_END, runner->facts);
    if (blamed && !after && runner->before)
        runner->forecaster->refuse_if_outlook_is_too_large(runner->list->pool->machine, runner->before,
                                                           traits_of(blamed)->blamed_at_end, runner->facts);
    forget_before(runner);
}

struct pass_report *run_passes(struct list *list, const struct costs *costs, const struct run_facts *facts,
                               const char *after, size_t *n)
{
    size_t n_passes;
    const struct pass *const *all = all_passes(&n_passes);
    struct pass_report *reports = allocate(n_passes + 1, sizeof *reports);
    struct pass_runner runner = {.list = list, .costs = costs, .facts = facts};
    if (!facts->unread)
        runner.forecaster = find_forecaster();
    bool grows = find_wanted(RESERVES_ROOM, facts) != NULL;
    *n = 0;
    for (size_t i = 0; i < n_passes; i++) {
        const struct pass *pass = all[i];
        if (grows)
            set_room(&runner, pass);
        if (pass->wanted(facts)) {
            run_pass(&runner, pass, &reports[*n]);
            (*n)++;
        }
        if (after && strcmp(pass->name, after) == 0) {
            if (!pass->wanted(facts))
                warn("--after %s: this pass is off here, so it does not run; later passes are not shown", after);
            break;
        }
    }
    finish_passes(&runner, after);
    return reports;
}

void run_on_other_list(struct list *list, const struct costs *costs, const struct run_facts *facts)
{
    size_t n;
    const struct pass *const *all = all_passes(&n);
    for (size_t i = 0; i < n; i++) {
        struct pass_report report = {0};
        if (has_trait(all[i], IN_EVERY_LIST) && all[i]->wanted(facts))
            all[i]->run(list, costs, facts, &report);
        free(report.reason);
    }
}
