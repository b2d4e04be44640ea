/* pass.h - the techniques: each rewrites the list of a training step, and none changes what is computed.
 *
 *     pass        the passes that folders bring along, and running them in their order
 *     overlap     updates run on the CPU, layer by layer, under the device
 *     gather      ZeRO-3: parameters in shards, gathered layer by layer
 *     recompute   activations are made again instead of kept
 *     broadcast   new parameters go out in slices, over several queues
 *     swap        data leaves for the host and comes back in time
 *     snapshot    each unit is stored as soon as it is updated
 *
 * A pass edits the list (pass/edit.h) before addresses are given.  It asks tasks for their role, layer and
 * micro-batch, never for their names; who uses a tensor, and when, it asks find_uses() (pass/uses.h); and what it
 * would gain, try_step() (predict/predict.h).  Bytes come and go by carry() and switch_readers().  Where there is
 * something to choose, it gives choose() (search/plan.h) its decisions, some starts and its rewrite.
 *
 * To add one (tutorials/15-write-a-pass.md does it), make a folder with one file, NAME/NAME.c:
 *
 *     1. its idea, picture, rule and source, as the others begin
 *     2. wants_NAME(): false where all its options are zero.  run_NAME(): open_edit(), the verbs, then commit(), and a
 *        sentence in r->reason; or undo(), a sentence on why nothing has changed, and false: the pass declines
 *     3. rows of its options (struct option, base/base.h), which point to its own variables.  Their names begin with
 *        the folder's.  A switch:
 *            {"NAME", 0, OPT_FLAG, &is_on, NULL, NULL, 0, 0, GROUP_TECHNIQUES, OF_LIST, "what it does"}
 *     4. a struct pass and a struct module (base/module.h), which needs "pass".  The place of the pass in the order:
 *        overlap has 10, gather 20, recompute 30, broadcast 40, swap 50, snapshot 60; first what only reorders, later
 *        what must see the tasks that others insert
 *
 * The shortest that is there is recompute/.  A pass needs no hooks.
 *
 * What a pass may rely on, and must leave so: s->task holds the list's order; while an edit is open, the tasks that
 * were there keep their places in the array (edit.h says more); the origin of a task says what it computes; a storage
 * that persists has one home; tasks of one layer, micro-batch and role are a block (same_block(), which looks at no
 * device, and says no of tasks without a layer).  The gradient of a weight is of class MEM_GRADIENTS, as its storage
 * says; that of an input is of class MEM_ACTIVATIONS.
 */
#ifndef PASS_H
#define PASS_H

#include "edit.h"
#include "trainer/base/module.h"
#include "uses.h"

#include <jansson.h>

struct costs;    /* tools/predict/predict.h */
struct forecast; /* the same */
struct trainer;  /* trainer/train/train.h */

struct run_facts { /* of the training whose list is rewritten */
    uint64_t seed; /* what is drawn follows from it */
    bool clipped;  /* updates wait for the norm, and so for the last backward */
    bool paced;    /* the step runs as predicted */
    bool draw;     /* what is decided in the step is drawn by this seed, to show that no bit depends on it */
    uint64_t draw_seed;
    bool gather; /* parameters lie in shards, and are gathered a layer before their use */
    bool trial;  /* of a few steps to measure with: nothing is stored, and no time is known */
};
struct run_facts facts_of(const struct settings *s);

struct pass_report {
    const struct pass *pass;
    bool declined;
    char *reason;           /* a sentence on what was done, or why not; set by the pass, freed with the report */
    json_t *fields;         /* what else `plan --json` shows of it; NULL: nothing */
    char *numbers, *gain;   /* for people: what report_ms() was told; what the pass comes to.  NULL: nothing */
    struct forecast *after; /* of the list as the pass leaves it, where it has tried that; NULL */
};
typedef bool pass_wanted(const struct run_facts *w);
/* true: the list is changed; false: declined, and the list is as it was.  Sets r's reason and fields.  Costs are NULL
 * where no hardware is described or measured; the tasks of a step file have their own. */
typedef bool pass_run(struct step *s, const struct costs *c, const struct run_facts *w, struct pass_report *r);
struct pass {
    int place;        /* in the order of application: ascending */
    const char *name; /* --after NAME */
    pass_wanted *wanted;
    pass_run *run;
    const char *turned_on[3]; /* by these options, each on its own: for the tests of all combinations */
    bool every_list;          /* the lists of evaluation and sampling are rewritten too */
    /* Adds tensors that persist and that nobody touches, as large as what the pass will add to the list as it is now.
     * So passes before it, which look for what fits, see their bytes.  NULL: it adds nothing that persists. */
    void (*reserve)(struct step *s, const struct run_facts *w);
    bool own_room; /* it calls reserve_room() itself, for each of its choices */
    /* It chooses by the budgets, before it is known what later passes keep in the host: with larger ones it may choose
     * otherwise.  NULL: never. */
    bool (*may_change)(const struct run_facts *w);
    /* Does it choose by how long tasks take?  Where nobody says, a trial measures that, in which the pass does without:
     * and needs times only if it had something to do, or moves updates then for lack of room (plans_at_once). */
    bool (*wants_times)(const struct run_facts *w);
    bool plans_at_once;
    bool sends_copies; /* it sends parameters that others copy, over queues of its own */
    /* What passes before it ask, that look ahead.  It makes room: behind it the list may fit in less than it needs now.
     * What it makes again, as remake() takes it; NULL: nothing that could be told before.  And of what is asked of it:
     * does it move parameters and the optimizer's state; is what it keeps in the host known only when it has run? */
    bool makes_room;
    int *(*remakes)(const struct uses *u, const struct pool *pool);
    bool (*moves_state)(void), (*fills_host)(void);
    pass_run *remake; /* it chooses what recompute makes again */
};
const struct pass *const *all_passes(size_t *n); /* in the order of application */
const struct pass *find_pass(const char *name);  /* NULL: there is none */
bool somebody_sends(const struct run_facts *w);  /* is such a pass wanted? */
/* Is a pass wanted that has this?  The first one, or NULL. */
typedef bool pass_trait(const struct pass *p, const struct run_facts *w);
const struct pass *find_wanted(pass_trait *has, const struct run_facts *w);
bool plan_may_change(const struct run_facts *w); /* may a pass, with larger ones, choose otherwise? */
char *pass_names(void);                          /* "recompute, swap"; the caller frees it */

/* ---- what they come to ------------------------------------------------------------------------------------------- */

/* The folder that predicts, of which there is one at most: it looks at the list before and behind each pass. */
struct forecaster {
    const struct costs *(*costs)(const struct trainer *t);          /* NULL: none are known */
    struct outlook *(*look)(struct step *s, const struct costs *c); /* bytes and time of the list as it is */
    void (*forget)(struct outlook *o);
    char *(*compare)(const struct machine *m, const struct outlook *had, const struct outlook *has); /* a sentence */
    /* Ends the program where the list does not fit; the option is "--zero 3".  sure: with larger budgets the passes
     * make the same list. */
    void (*must_fit)(struct machine *m, const struct outlook *o, const char *option, bool sure);
    void (*free)(struct forecast *f);
};
const struct forecaster *find_forecaster(void); /* NULL: there is none */

/* Runs all passes that are wished for, up to the one named `after` (NULL: all).  *n reports, for free_reports(). */
struct pass_report *run_passes(struct step *s, const struct costs *c, const struct run_facts *w, const char *after,
                               size_t *n);
/* Those that are for every list, on another list than the training's. */
void run_on_other_list(struct step *s, const struct costs *c, const struct run_facts *w);
void free_reports(struct pass_report *reports, size_t n);
/* What they did to the list for training. */
struct pass_reports {
    struct pass_report *report;
    size_t n;
};
struct pass_reports reports_of(const struct trainer *t);
void run_all_passes(void); /* from here on, whatever --after says */
void print_reports(FILE *out, const struct pass_report *reports, size_t n);
json_t *reports_json(const struct pass_report *reports, size_t n); /* plan --json: "passes" */
json_t *milliseconds(double seconds);                              /* null where they are not known */
/* For a pass: one of its times, as the field `key` of its JSON, and behind the word `what` for people; each may be
 * NULL. INFINITY: what it is the time of does not fit; NAN: nobody knows. */
void report_ms(struct pass_report *r, const char *key, const char *what, double seconds);

/* ---- remake.c: tensors that are made again ----------------------------------------------------------------------- */

bool same_block(const struct task *a, const struct task *b); /* of a layer, one way */
/* Need x not be there all the time?  Of these classes, a bit per enum memory_class. */
bool may_leave(const struct uses *u, const struct tensor *x, unsigned classes);
/* Everything that wrote x, before task `reader`, can be repeated there with the same result. */
bool may_remake(const struct uses *u, const struct tensor *x, int reader);
/* From task from[x->id] on (NOWHERE: never) what touches x takes one that is made again: right before that task, or
 * before all of its layer's backward.  By tensor what it has become, or NULL; the caller frees the array. */
struct tensor **remake(struct edit *e, struct pool *pool, const struct uses *u, const int *from, bool by_layer);

/* What passes will add, for those that look for what fits.  Returns the pool's size before; where the edit that is open
 * is undone the tensors are gone.  Else end_room() takes their bytes away from those from `first` up to `end`. */
size_t reserve_room(struct step *s, const struct run_facts *w);
void end_room(struct step *s, size_t first, size_t end);
/* A list beside the one that passes rewrite, and built before: what they have moved to the host is fetched for each
 * use. It only reads it. */
void fetch_state(struct step *s);

#endif
