/* pass.h - the techniques: each rewrites the list of a training step, and none changes what is computed.
 *
 *     pass        the passes that folders bring along, and running them one after another
 *     overlap     updates run on the CPU, layer by layer, under the device
 *     gather      ZeRO-3: parameters in shards, gathered layer by layer
 *     recompute   activations are made again instead of kept
 *     broadcast   new parameters go out in slices, over several queues
 *     swap        data leaves for the host and comes back in time
 *     snapshot    each unit is stored as soon as it is updated
 *
 * The folder pass/ has, beside the passes' order and their run, what several of them need:
 *
 *     edit.h       the verbs that change a list                  edit.c, ranges.c
 *     uses.h       which tasks use a tensor, and when            uses.c
 *     remake.h     tensors that are made again                   remake.c
 *     guest.h      state that the host updates                   guest.c
 *     reports.h    what a pass has done                          reports.c
 *
 * These are included where they are used:
 *
 *     traits.h     what passes ask of one another                traits.c
 *     fetch.h      other lists, which read state on the host     fetch.c
 *
 * A pass edits the list (pass/edit.h) before addresses are given.  It asks tasks for their role, layer and micro-batch,
 * never for what their names are.  (It may ask whether two names are equal: replicas of a tensor, and tensors that
 * stand at the same place in two layers, have one name, and nothing else says what they have in common.)  new_uses()
 * (pass/uses.h) tells it which tasks use a tensor, and when; forecast_list() (predict/forecast.h) what it would gain.
 * Bytes come and go by add_copy_for() and switch_readers().  Where there is something to choose, it gives
 * find_best_choice() (search/search.h) its decisions, some starts and its rewrite.
 *
 * To add one (tutorials/22-write-a-pass.md does it), make a folder with one file, NAME/NAME.c:
 *
 *     1. its idea, picture, rule and source, as the others begin
 *     2. wants_NAME(): false where all its options are zero.  run_NAME(): open_edit(), the verbs, then commit_edit()
 *        and a sentence in report->reason; or undo_edit(), a sentence on why nothing has changed, and false: the pass
 *        declines
 *     3. rows of its options (struct option, base/options.h), which point to its own variables.  Their names begin with
 *        the folder's.  A switch:
 *            {.name = "NAME",
 *             .type = OPT_FLAG,
 *             .value = &asked_NAME,
 *             .group = GROUP_TECHNIQUES,
 *             .classes = OF_LIST,
 *             .help = "what it does"}
 *     4. a struct pass, a struct planning_parts (below) that names it, and a struct module (base/module.h) that names
 *        these parts and needs "pass".  `make modules` prints where the other passes run: a pass that only reorders
 *        runs before the first of them, and one that must see their tasks after the last
 *
 * The shortest that is there is recompute/.  A pass needs no hooks.
 *
 * A pass may rely on the following, and must leave it so:
 *     - list->tasks holds the list's order.  While an edit is open, the tasks that were there keep their positions in
 *       the array (edit.h says more).
 *     - The origin of a task says what it computes.
 *     - A storage that persists has one home.
 *     - Tasks of one layer, micro-batch and role on a device are a *block*, also where they are apart.  same_block()
 *       says whether two are of one; it looks at no device, and says no of tasks without a layer.
 *     - The gradient of a weight is of class MEM_GRADIENTS, as its storage says; that of an input is of class
 *       MEM_ACTIVATIONS.
 */
#ifndef PASS_H
#define PASS_H

#include "edit.h"
#include "guest.h"
#include "remake.h"
#include "reports.h"
#include "trainer/base/additions.h"
#include "uses.h"

/* The other folders of planning include this one, so this one includes none of them.  It hands costs on to the passes
 * and to the forecaster (struct forecaster, below), and does not look into them itself. */
struct costs;   /* planning/predict/costs.h */
struct trainer; /* trainer/train/train.h */

/* What a folder may add to planning, as it says in its struct module.  A field that is NULL says that the folder does
 * not have this part. */
struct planning_parts {
    const struct pass *pass;             /* a function that rewrites lists: below */
    const struct other_plan *plan;       /* another way to show a plan: planning/lists/plan_command.h */
    const struct list_form *list_form;   /* another form of files that describe a list: planning/lists/lists.h */
    const struct forecaster *forecaster; /* functions that predict a list's time: below.  At most one folder has them */
    const struct trace_window *window;   /* shows a trace: planning/trace/record.h.  At most one folder has one */
};

struct run_facts {      /* what passes know of the training whose list they rewrite */
    uint64_t seed;      /* the training's: random numbers of a pass follow from it */
    bool clipped;       /* updates wait for the norm, and so for the last backward */
    bool paced;         /* the step runs as predicted */
    bool drawn;         /* decisions within the step are drawn at random, to show that no bit depends on them */
    uint64_t draw_seed; /* the seed of these */
    bool gather;        /* parameters lie in shards, and are gathered a layer before their use */
    bool trial;         /* the training is a few steps to measure with: nothing is stored, and no time is known */
    bool unread;        /* no report of the passes is shown */
    const struct trainer *trainer; /* whose other lists use the same memory, one list at a time; NULL: a step file's */
};

typedef bool pass_wanted(const struct run_facts *facts);

/* true: the list is changed; false: declined, and the list is as it was.  Sets the report's reason and fields.
 * costs is NULL where no hardware is described or measured; the tasks of a step file have their own times. */
typedef bool pass_run(struct list *list, const struct costs *costs, const struct run_facts *facts,
                      struct pass_report *report);
struct pass_traits;

struct pass {
    int runs_at;      /* passes run by ascending numbers; `make modules` prints them */
    const char *name; /* --after NAME */
    pass_wanted *wanted;
    pass_run *run;
    const char *turned_on[3];         /* options, each of which turns it on: for the tests of all combinations */
    const struct pass_traits *traits; /* what other passes may ask of it (traits.h); NULL: nothing */
};

/* ---- pass_table.c ------------------------------------------------------------------------------------------------ */

const struct planning_parts *planning_parts_of(const struct module *module); /* never NULL */

const struct pass *const *all_passes(size_t *n); /* by ascending runs_at */
const struct pass *find_pass(const char *name);  /* NULL: no pass has this name */
char *pass_names(void);                          /* "recompute, swap"; the caller frees it */

/* ---- what they come to ------------------------------------------------------------------------------------------- */

/* Do the passes make the same list with larger budgets?  Or another one, which may need more again? */
enum replanning { SAME_LIST, LIST_MAY_CHANGE };

/* Functions of planning/predict, which predicts how many bytes a list holds and how long it takes.  Before and after
 * each pass, pass.c asks for such an *outlook*, and reports what the pass has changed.  Since predict/ includes this
 * folder, this folder cannot include predict/, and so cannot call it by name: predict/ hands its functions over in this
 * struct.  A program that is built without predict/ runs its passes without these reports. */
struct forecaster {
    const struct costs *(*costs)(const struct trainer *trainer); /* NULL: none are known */
    /* Bytes and time of the list as it is.  The caller frees it with free_outlook(). */
    struct outlook *(*new_outlook)(struct list *list, const struct costs *costs);
    void (*free_outlook)(struct outlook *outlook);
    /* A sentence on what has changed, which the caller frees. */
    char *(*describe_gain)(const struct machine *machine, const struct outlook *before, const struct outlook *after);
    /* Ends the program where the list does not fit.  option: the option that asked for it, "--zero 3". */
    void (*refuse_if_outlook_is_too_large)(struct machine *machine, const struct outlook *outlook, const char *option,
                                           const struct run_facts *facts);
    void (*free_forecast)(struct forecast *forecast);
};
const struct forecaster *find_forecaster(void); /* NULL: no folder predicts */
const struct forecaster *the_forecaster(void);  /* never NULL: for callers that hold a forecast, which it has made */

/* ---- pass.c ------------------------------------------------------------------------------------------------------ */

/* Runs all passes that are wanted, up to the one named `after` (NULL: all).  Returns *n reports.  The caller frees them
 * with free_reports(). */
struct pass_report *run_passes(struct list *list, const struct costs *costs, const struct run_facts *facts,
                               const char *after, size_t *n);

/* Runs the passes that are IN_EVERY_LIST on a list that is not the training's. */
void run_on_other_list(struct list *list, const struct costs *costs, const struct run_facts *facts);

/* ---- pass_hooks.c ------------------------------------------------------------------------------------------------ */

struct run_facts facts_of(const struct settings *settings);

struct pass_reports {
    struct pass_report *items;
    size_t n;
};
struct pass_reports reports_of(const struct trainer *trainer); /* on the list for training */

extern const struct module module_pass;

#endif
