/* traits.h - what a pass tells others of itself before it runs.
 *
 * Passes run one after another, and each sees the list as the ones before it have left it.  That is enough for a rule
 * that always does the same.  A pass that chooses by what fits, or by how long a step takes, would choose wrongly where
 * later passes change both.  So it asks them.  Most passes have no traits and ask nothing.
 *
 * An example: overlap before recompute in a tight budget,
 *
 *     yard train --overlap plan --recompute full --snapshot FILE --device-mem BYTES
 *
 *     when               what is asked           who answers, and what follows
 *
 *     before the list    wants_times             overlap: yes.  No file has times, so a trial runs a few steps with the
 *     is built                                   same passes (predict/trial.c)
 *     after the trial    moves_updates           overlap: yes.  Updates that had no room on the device in the trial are
 *                                                timed there too, in a small model
 *
 *     overlap runs       reserve                 snapshot: adds the bytes of its buffers, for each choice that is tried
 *                        makes_room              recompute: yes.  So no choice is refused yet, though none fits
 *                        foretell_remade         recompute: these tensors.  All choices are tried anew, as if they were
 *                                                made again already
 *
 *     recompute runs     reserve                 snapshot: as above, in the list that overlap has left
 *
 *     snapshot runs                              it adds the buffers themselves
 *
 * With --swap layer in place of recompute:
 *
 *     overlap runs       foretell_remade         nobody.  All choices are tried again, as if budgets had no end
 *                        foretells_fit           swap: not known; with --swap auto, yes or no.  This is asked where a
 *                                                choice fits and another one would make a shorter step
 *     swap refuses       chooses_early           overlap: yes; and
 *     the budget         fills_host              swap: yes.  With the larger budgets that swap names, overlap might
 *                                                choose otherwise, so swap does not promise that they do
 */
#ifndef TRAITS_H
#define TRAITS_H

#include "pass.h"

/* A trait that is a function may be NULL: the answer is no. */
struct pass_traits {
    /* ---- times ---- */
    bool (*wants_times)(void); /* does the pass choose by how long tasks take? */

    /* ---- room: passes that run earlier look for what fits ---- */

    /* The list may need fewer bytes after the pass than before it.  The pass needs times only if it has something to
     * do. */
    bool makes_room;
    /* The tensors that the pass will make again, as the array that remake() takes.  NULL: the pass must run to know
     * them. */
    int *(*foretell_remade)(const struct uses *uses, const struct pool *pool);
    /* Can the pass make the list fit, with a step of at most so many seconds?  The list stays as it is.  false: no, or
     * that is not known. */
    bool (*foretells_fit)(struct list *list, const struct costs *costs, double seconds);
    /* Adds tensors that persist and that no task touches, as large as what the pass will add to the list as it is now.
     * NULL: the pass adds nothing that persists. */
    void (*reserve)(struct list *list, const struct run_facts *facts);

    /* ---- where data lie ---- */

    /* The pass moves updates to the CPU.  What others reserve depends on where updates are, so this pass calls
     * reserve_room() itself, for each of its choices. */
    bool moves_updates;
    bool (*moves_state)(void); /* does the pass move parameters and the optimizer's state? */
    bool sends_copies;         /* the pass sends parameters that others copy, over queues of its own */

    /* ---- may larger budgets give another list? (replanning_of()) ---- */
    bool (*chooses_early)(void); /* does the pass choose by budgets of which later passes will take a part? */
    bool (*fills_host)(void);    /* must the pass run before one knows how many bytes it keeps on the host? */

    /* ---- beyond its own options and list ---- */
    bool every_list;         /* the pass rewrites the lists of evaluation and sampling too: run_on_other_list() */
    pass_run *choose_remade; /* the search for what `--recompute auto` makes again; NULL: the pass has none */
};
/* The traits of a pass, never NULL: those of a pass without traits are all zero. */
const struct pass_traits *traits_of(const struct pass *pass);
/* Of the wanted passes, the first one that has this trait; NULL: none has it. */
typedef bool has_trait(const struct pass_traits *traits);
const struct pass *find_wanted(has_trait *trait, const struct run_facts *facts);
/* Might a wanted pass choose otherwise with larger budgets?  A pass that chooses early might, if it chooses before it
 * is known what gather needs, or what other passes keep on the host. */
enum replanning replanning_of(const struct run_facts *facts);

/* Adds tensors as large as what the wanted passes will add, so that a pass that looks for what fits sees their bytes.
 * Returns the pool's size before.  When the open edit is undone, the tensors are gone.  Else end_room() takes the bytes
 * of tensors `first` to `end` - 1 of the pool away. */
size_t reserve_room(struct list *list, const struct run_facts *facts);
void end_room(struct list *list, size_t first, size_t end);

#endif
