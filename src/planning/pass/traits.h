/* traits.h - what a pass tells others of itself before it runs.
 *
 * Passes run one after another, and each sees the list as the ones before it have left it.  That is enough for a rule
 * that always does the same.  But some passes choose by what fits, or by how long a step takes, and later passes change
 * both.  So a pass can ask whether a later one has some trait, and a few passes can be asked for more.  A simple pass
 * has no traits and asks nothing.
 *
 * An example: overlap before recompute in a tight budget,
 *
 *     yard train --overlap plan --recompute full --snapshot FILE --device-mem BYTES
 *
 *     when               what is asked           who has the trait or answers, and what follows
 *
 *     before the list    WANTS_TIMES             Overlap.  No file has times, so a trial runs a few steps with the same
 *     is built                                   passes (predict/trial.c).
 *
 *     after the trial    MOVES_UPDATES           Overlap.  Updates that had no room on the device in the trial are
 *                                                timed there too, in a small model.
 *
 *     overlap runs       reserve()               Snapshot adds the bytes of its buffers, for each choice that is tried.
 *                        MAKES_ROOM              Recompute.  So no choice is refused yet, though none fits.
 *                        remade_tensors()        Recompute.  All choices are tried anew, as if these tensors were made
 *                                                again already.
 *
 *     recompute runs     reserve()               Snapshot adds the bytes of its buffers to the list
 *                                                that overlap has left.
 *
 *     snapshot runs                              It adds the buffers themselves.
 *
 * With --swap layer in place of recompute:
 *
 *     overlap runs       remade_tensors()        Nobody has it.  All choices are tried again, as if nothing limited
 *                                                them.
 *                        can_make_fit()          Swap does not know; with --swap auto it says yes or no.  This is asked
 *                                                where a choice fits and another one would make a shorter step.
 *
 *     swap refuses       CHOOSES_EARLY           Overlap.
 *     the budget         TAKES_UNKNOWN_ROOM      Swap.  With the larger budgets that swap names, overlap might choose
 *                                                otherwise, so swap does not promise that they work.
 */
#ifndef TRAITS_H
#define TRAITS_H

#include "pass.h"

/* Traits are bits, so that a pass can have several. */
enum trait {
    WANTS_TIMES = 1,          /* the pass chooses by how long tasks take */
    MOVES_UPDATES = 2,        /* the pass moves updates to the CPU */
    MOVES_STATE = 4,          /* the pass moves parameters or the optimizer's state */
    SENDS_COPIES = 8,         /* the pass sends parameters that others copy, over queues of its own */
    CHOOSES_EARLY = 16,       /* the pass chooses by budgets of which later passes will take a part */
    IN_EVERY_LIST = 32,       /* the pass rewrites the lists of evaluation and sampling too: run_on_other_list() */
    MAKES_ROOM = 64,          /* the pass may save bytes.  If it declines, it needs no times */
    TAKES_UNKNOWN_ROOM = 128, /* nobody knows how many bytes the pass takes before it has run */

    /* has_trait() knows these from the fields of struct pass_traits: */
    KNOWS_REMADE_TENSORS = 256, /* the pass says before it runs what it will make again */
    MAKES_UNKNOWN_ROOM = 512,   /* the pass MAKES_ROOM, and only its run says where */
    KNOWS_WHAT_FITS = 1024,     /* the pass says before it runs whether it can make a list fit */
    RESERVES_ROOM = 2048,       /* the pass reserves bytes before it runs */
    IS_CHECKED_AT_END = 4096,   /* whether the pass's list fits is seen after the last pass */
};

/* A field is 0 or NULL where the pass has no such thing. */
struct pass_traits {
    unsigned always;              /* the traits that the pass has with all options */
    unsigned (*by_options)(void); /* further traits, which it has with the options as they are */

    /* ---- for passes that run earlier and look for what fits ---- */

    /* The tensors that the pass will make again, as the array that remake_tensors() takes.  NULL: the pass must run to
     * know them. */
    int *(*remade_tensors)(const struct uses *uses, const struct pool *pool);
    /* Can the pass make the list fit, with a step of at most `seconds`?  The list stays as it is.  false: no, or that
     * is not known. */
    bool (*can_make_fit)(struct list *list, const struct costs *costs, double seconds);
    /* Adds tensors that persist and that no task touches, as large as what the pass will add to the list as it is now.
     * The bytes may depend on where updates are: so a pass that moves updates calls reserve_room() itself, for each of
     * its choices.  NULL: the pass adds nothing that persists. */
    void (*reserve)(struct list *list, const struct run_facts *facts);
    /* The option to blame, "--zero 3", where the list does not fit after the last pass.  NULL: the pass refuses a list
     * that does not fit when it runs. */
    const char *blamed_at_end;

    /* ---- for another pass, whether or not this one is wanted ---- */

    /* Searches for the tensors to make again, and makes them so.  A pass that makes tensors again, but has no search,
     * calls it.  NULL: the pass does not search. */
    pass_run *choose_remade;
};

/* The traits of a pass, never NULL: those of a pass without traits are all zero. */
const struct pass_traits *traits_of(const struct pass *pass);
bool has_trait(const struct pass *pass, enum trait trait);

/* The first of the wanted passes that has this trait; NULL: none has it. */
const struct pass *find_wanted(enum trait trait, const struct run_facts *facts);

/* Might a wanted pass choose otherwise with larger budgets?  A pass that chooses early might, if it must choose before
 * it is known how many bytes other passes take. */
enum replanning replanning_of(const struct run_facts *facts);

struct reserved_room { /* the tensors of a pool that keep it */
    size_t first, end; /* from tensor `first` up to, but without, `end` */
};

/* Adds tensors as large as what the wanted passes will add, so that a pass that looks for what fits sees their bytes.
 * When the open edit is undone, the tensors are gone.  Else free_room() takes their bytes away. */
struct reserved_room reserve_room(struct list *list, const struct run_facts *facts);
void free_room(struct list *list, struct reserved_room room);

#endif
