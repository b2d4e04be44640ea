/* pass.c - running the passes in their order. */
#include "traits.h"

struct pass_runner { /* runs the passes over one list */
    struct list *list;
    const struct costs *costs;
    const struct run_facts *facts;
    const struct forecaster *forecaster; /* NULL: no folder predicts */
    struct outlook *before;              /* the list as the next pass finds it; NULL: not looked at yet */
    bool kept;                           /* there are tensors that keep room for what later passes add */
    size_t first, end;                   /* those tensors, as a range of the pool */
};

/* What was seen of the list before the next pass holds no longer. */
static void forget_before(struct pass_runner *runner)
{
    if (runner->before)
        runner->forecaster->free_outlook(runner->before);
    runner->before = NULL;
}

/* From here on tensors keep room for what later passes add. */
static void keep_room(struct pass_runner *runner)
{
    if (runner->kept)
        return;
    runner->first = reserve_room(runner->list, runner->facts);
    runner->end = runner->list->pool->n;
    runner->kept = true;
    forget_before(runner); /* it did not have these bytes */
}

/* From here on no tensor keeps such room. */
static void give_room_back(struct pass_runner *runner)
{
    if (!runner->kept)
        return;
    end_room(runner->list, runner->first, runner->end);
    runner->end = runner->first;
    runner->kept = false;
    forget_before(runner);
}

/* Before the pass runs: what later passes add has room, unless the pass itself adds it, or the pass moves updates: such
 * a pass reserves the room itself, for each of its choices. */
static void set_room(struct pass_runner *runner, const struct pass *pass)
{
    if (traits_of(pass)->moves_updates)
        return;
    if (traits_of(pass)->reserve)
        give_room_back(runner);
    else
        keep_room(runner);
}

/* Looks at the list as the pass finds it.  The outlook counts the bytes to come.  A pass that moves updates reserves
 * room itself, for each of its choices.  It finds the list without these bytes, and so they are there only for the
 * look. */
static void look_before(struct pass_runner *runner, const struct pass *pass)
{
    if (!runner->forecaster || runner->before)
        return;
    size_t first = runner->list->pool->n;
    if (traits_of(pass)->moves_updates)
        reserve_room(runner->list, runner->facts);
    size_t end = runner->list->pool->n;
    runner->before = runner->forecaster->new_outlook(runner->list, runner->costs);
    end_room(runner->list, first, end);
}

/* Runs one pass, and fills in its report. */
static void run_pass(struct pass_runner *runner, const struct pass *pass, struct pass_report *report)
{
    look_before(runner, pass);
    report->pass = pass;
    report->declined = !pass->run(runner->list, runner->costs, runner->facts, report);
    CHECK(!runner->list->cursor, "pass %s has left its edit open: commit_edit() or undo_edit() it", pass->name);
    CHECK(report->reason, "pass %s gives no reason", pass->name);
    if (report->declined || !runner->forecaster)
        return;
    struct outlook *after = runner->forecaster->new_outlook(runner->list, runner->costs);
    report->gain = runner->forecaster->describe_gain(runner->list->pool->machine, runner->before, after);
    forget_before(runner);
    runner->before = after;
}

static bool reserves(const struct pass_traits *traits) { return traits->reserve != NULL; }

struct pass_report *run_passes(struct list *list, const struct costs *costs, const struct run_facts *facts,
                               const char *after, size_t *n)
{
    size_t n_passes;
    const struct pass *const *all = all_passes(&n_passes);
    struct pass_report *reports = allocate(n_passes + 1, sizeof *reports);
    struct pass_runner runner = {.list = list, .costs = costs, .facts = facts};
    if (!facts->unread)
        runner.forecaster = find_forecaster();
    const bool grows = find_wanted(reserves, facts) != NULL;
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
    end_room(list, runner.first, runner.end);
    if (facts->gather && !after && runner.before) /* with gather, overlap leaves this question to the passes after it */
        runner.forecaster->refuse_outlook(list->pool->machine, runner.before, "--zero 3", replanning_of(facts));
    forget_before(&runner);
    return reports;
}

void run_on_other_list(struct list *list, const struct costs *costs, const struct run_facts *facts)
{
    size_t n;
    const struct pass *const *all = all_passes(&n);
    for (size_t i = 0; i < n; i++) {
        struct pass_report report = {0};
        if (traits_of(all[i])->every_list && all[i]->wanted(facts))
            all[i]->run(list, costs, facts, &report);
        free(report.reason);
    }
}
