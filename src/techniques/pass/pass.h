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
 *     2. wants_NAME(): false where all its options are zero.  run_NAME(): open_edit(), the verbs, commit(), and a
 *        sentence in r->reason; or undo(), and false where nothing has changed: the pass declines
 *     3. rows of its options, which point to its own variables
 *     4. a struct pass and a struct module.  Its place in the order: first what only reorders, later what must see the
 *        tasks that others insert
 *
 * What a pass may rely on, and must leave so: s->task holds the list's order until an edit is open, and the first s->n
 * of then keep their places in the array until commit(); the origin of a task says what it computes; a storage that
 * persists has one home; tasks of one layer, micro-batch and role on a device are its block (same_block()).  The
 * gradient of a weight is of class MEM_GRADIENTS (of its storage), that of an input of MEM_ACTIVATIONS.
 */
#ifndef PASS_H
#define PASS_H

#include "edit.h"
#include "tools/predict/predict.h"

enum overlap { OVERLAP_OFF, OVERLAP_PLAN, OVERLAP_LOCAL, OVERLAP_ALL_CPU, OVERLAP_ALL_DEVICE, OVERLAPS };
enum recompute { RECOMPUTE_OFF, RECOMPUTE_FULL, RECOMPUTE_SELECTIVE, RECOMPUTE_AUTO };
enum swap { SWAP_OFF, SWAP_AUTO, SWAP_LAYER, SWAP_MICROBATCH };
enum { MOST_EVERY = 1000 }; /* of --snapshot-every */
enum snapshot_in { IN_HOST, IN_DEVICE };
struct snapshot_options {
    const char *file;             /* NULL: the pass is off */
    int every, slots, iterations; /* store every so many; room in the file; how many are reported */
    enum snapshot_in in;          /* where the copy lies for which an update waits; from the device it goes down */
};
struct pass_options { /* what the options ask of the passes */
    struct snapshot_options snapshot;
    enum recompute recompute;
    enum overlap overlap;
    const char *overlap_plan; /* the file of the plan: read when it is there, else written; NULL: none */
    uint64_t seed;            /* of the run: what is drawn follows from it */
    bool clipped;             /* updates wait for the norm, and so for the last backward */
    bool paced, draw; /* the step runs as predicted; local chooses by this seed, to show that no bit depends on it */
    uint64_t draw_seed;
    bool gather; /* parameters lie in shards, and are gathered a layer before their use */
    enum swap swap;
    unsigned swap_what; /* a bit per enum memory_class */
};

struct pass_report {
    const struct pass *pass;
    bool declined;
    char *reason;          /* a sentence on what was done, or why not; set by the pass, freed with the report */
    json_t *fields;        /* what else `plan --json` shows of it; NULL: nothing */
    char *numbers, *gain;  /* for people: what report_ms() was told; what the pass comes to.  NULL: nothing */
    struct forecast after; /* of the list as the pass leaves it, where it has tried that (n > 0) */
};
typedef bool pass_wanted(const struct pass_options *w);
/* true: the list is changed; false: declined, and the list is as it was.  Sets r's reason and fields.  Costs are NULL
 * where no hardware is described or measured; the tasks of a step file have their own. */
typedef bool pass_run(struct step *s, const struct costs *c, const struct pass_options *w, struct pass_report *r);
struct pass {
    int place;        /* in the order of application: ascending */
    const char *name; /* --after NAME */
    pass_wanted *wanted;
    pass_run *run;
    const char *turned_on[3]; /* by these options, each on its own: for the test of all combinations */
    bool every_list;          /* the lists of evaluation and sampling are rewritten too */
    /* Adds tensors that persist and that nobody touches, as large as what the pass will add to the list as it is now.
     * So passes before it, which look for what fits, see their bytes.  NULL: it adds nothing that persists. */
    void (*reserve)(struct step *s, const struct pass_options *w);
    bool own_room; /* it calls reserve_room() itself, for each of its choices */
    /* It chooses by the budgets, before it is known what later passes keep in the host: with larger ones it may choose
     * otherwise.  NULL: never. */
    bool (*may_change)(const struct pass_options *w);
    bool sends_copies; /* it sends parameters that others copy, over queues of its own */
    bool gathers;      /* it brings parameters together that lie in shards: without such a pass there is no --zero 3 */
};
const struct pass *const *all_passes(size_t *n);    /* in the order of application */
const struct pass *find_pass(const char *name);     /* NULL: there is none */
bool somebody_sends(const struct pass_options *w);  /* is such a pass wanted? */
bool somebody_gathers(void);                        /* is there such a pass? */
bool plan_may_change(const struct pass_options *w); /* may a pass, with larger ones, choose otherwise? */
char *pass_names(void);                             /* "recompute, swap"; the caller frees it */

/* Runs all passes that are wished for, up to the one named `after` (NULL: all).  *n reports, for free_reports(). */
struct pass_report *run_passes(struct step *s, const struct costs *c, const struct pass_options *w, const char *after,
                               size_t *n);
/* Those that are for every list, on another list than the training's. */
void run_on_other_list(struct step *s, const struct costs *c, const struct pass_options *w);
void free_reports(struct pass_report *reports, size_t n);
void print_reports(FILE *out, const struct pass_report *reports, size_t n);
json_t *reports_json(const struct pass_report *reports, size_t n); /* plan --json: "passes" */
json_t *milliseconds(double seconds);                              /* null where they are not known */
/* For a pass: one of its times, as the field `key` of its JSON, and behind the word `what` for people; each may be
 * NULL. INFINITY: what it is the time of does not fit; NAN: nobody knows. */
void report_ms(struct pass_report *r, const char *key, const char *what, double seconds);

/* recompute.c: of a list with those uses; swap asks too. */
bool same_block(const struct task *a, const struct task *b); /* of a layer, one way */
/* Need x not be there all the time?  Of these classes, a bit per enum memory_class. */
bool may_leave(const struct uses *u, const struct tensor *x, unsigned classes);
/* Everything that wrote x, before task `reader`, can be repeated there with the same result. */
bool may_remake(const struct uses *u, const struct tensor *x, int reader);
/* From task from[x->id] on (NOWHERE: never) what touches x takes one that is made again: right before that task, or
 * before all of its layer's backward.  By tensor what it has become, or NULL; the caller frees the array. */
struct tensor **remake(struct edit *e, struct pool *pool, const struct uses *u, const int *from, bool by_layer);
/* All that the rule makes again, full or selective: remake()'s `from`; the caller frees it. */
int *remade_by_rule(const struct uses *u, const struct pool *pool, bool full);
bool recompute_by_rule(struct step *s, bool full, struct pass_report *r);

/* phases.c: the fixed orders of swap. */
struct phases { /* of a device, in list order */
    struct phase {
        int first, last; /* positions of its tasks */
        bool backward;
    } * phase;    /* the caller frees it */
    int n, tasks; /* of the list */
};
struct phases find_phases(const struct uses *u, const struct device *d, bool by_layer); /* else by micro-batch */
/* Of a tensor that nobody uses between two positions: its bytes are held through *out, and again from *in on.  false:
 * there is no phase between in which it could leave.  maker NULL: it is state. */
bool place_by_phases(const struct phases *t, const struct task *maker, int before, int behind, int *out, int *in);

/* Ends the program (EXIT_USAGE): a list of that forecast does not fit, and what budgets work for it.  sure: with these
 * budgets the passes make the same list. */
_Noreturn void refuse_budget(struct machine *m, const struct forecast *f, const char *option, bool sure);
/* Its parts, for who looks for the budgets; `had` are the devices before.  They become as large as the forecast needs,
 * and what did not fit before is returned, which the caller frees; then the end. */
char *raise_budgets(struct machine *m, const struct device *had, const struct forecast *f, const char *option);
_Noreturn void refuse_budgets(const struct machine *m, const struct device *had, const char *shortage, bool sure);
/* What passes will add, for those that look for what fits.  Returns the pool's size before; where the edit that is open
 * is undone the tensors are gone.  Else end_room() takes their bytes away from those from `first` up to `end`. */
size_t reserve_room(struct step *s, const struct pass_options *w);
void end_room(struct step *s, size_t first, size_t end);
pass_wanted wants_overlap, wants_snapshot, wants_recompute, wants_swap;
pass_run run_overlap, run_snapshot, run_recompute, run_swap;
/* How often the running step has chosen what, as a sentence that the caller frees; NULL: never. */
char *describe_choices(const struct step *s);
/* A list beside the one that passes rewrite, and built before: what they have moved to the host is fetched for each
 * use. It only reads it. */
void fetch_state(struct step *s);

#endif
