/* hooks.h - the moments at which the trainer calls the folders that it does not name.
 *
 * A folder that takes part in a training, but is not of src/trainer, puts functions here, and names them in its struct
 * module (base/module.h).  At each moment the functions of all folders are called, in the order of modules[].
 * A function that is NULL: the folder has nothing to do then.  The moments, in the order of a training:
 *
 *     train   options_read      yard train has read its options: does this process train?
 *     train   training_begins   it does, and the trainer is about to be made
 *     all     machine           the devices are to be opened: is there a machine to use in their place?
 *     all     machine_opened    the machine is there, and the mesh is known
 *     all     list_built        a list has been built: this is where passes rewrite it       (once for each list)
 *     all     lists_ready       all lists have their addresses and could run
 *     train   model_filled      the parameters have their values
 *     train   summary_printed   the trainer has printed what it trains: the folder adds its lines
 *     train   step_issued       a step's tasks have been given to their lanes
 *     all     step_reported     its loss is known                                            (on a lane's thread)
 *     train   step_not_finite   its loss or norm is not a number
 *     train   steps_ended       no further step comes
 *     train   run_ended         the user is told how the run ended: the folder adds its lines
 *     train   kept              what has the folder kept of the run?
 *     all     trainer_closing   the trainer is about to go
 *
 * "train": the moment comes in yard train alone.  "all": it comes in every command that makes a trainer, such as yard
 * check, if the command gets that far.  At a moment with a question mark a folder is asked, as by ask_machine(), and
 * answers; of the other moments it is told, as by tell_list_built().
 *
 * What a folder knows of a trainer hangs on one pointer, folder_data_of().
 */
#ifndef HOOKS_H
#define HOOKS_H

#include "train.h"
#include "trainer/base/module.h"

/* What a run that has ended leaves to go on from.  The texts are allocated, and whoever asks frees them. */
struct kept_run {
    char *where;      /* where it is kept, if not in --save's folder: half a sentence; NULL: nowhere else */
    char *command;    /* the words after `yard train` that say from where it goes on; NULL: it cannot go on */
    char *more_words; /* further words of that command; NULL: none */
};

struct hooks {
    /* false: this process has no part in the training, and ends with *code.  argv: the command line. */
    bool (*options_read)(struct settings *settings, int argc, char **argv, int *code);
    void (*training_begins)(struct settings *settings);
    struct machine *(*machine)(struct trainer *trainer); /* NULL: this host's devices are used */
    void (*machine_opened)(struct trainer *trainer);
    /* The list is neither placed nor ordered yet.  The hook is called for the lists train, eval and sample in this
     * order, as far as these are wanted. */
    void (*list_built)(struct trainer *trainer, struct list *list);
    void (*lists_ready)(struct trainer *trainer); /* not called where no list is to run */
    void (*model_filled)(struct trainer *trainer);
    void (*summary_printed)(struct trainer *trainer);
    void (*step_issued)(struct trainer *trainer);
    /* sound: loss and norm are finite. */
    void (*step_reported)(struct trainer *trainer, uint32_t step, bool sound);
    /* Loss or norm of that step are not finite, and nothing is in flight: ends the program with the reason, if it can
     * be found. */
    void (*step_not_finite)(struct trainer *trainer, uint32_t step, const struct result *result);
    /* The folder waits for what it still has under way.  The run may end badly: then the program ends next. */
    void (*steps_ended)(struct trainer *trainer);
    void (*run_ended)(struct trainer *trainer);
    /* Writes to *run what the folder has kept of the run.  It may add to what others have written there. */
    void (*kept)(struct trainer *trainer, struct kept_run *run);
    /* Nothing is in flight; lists and machine are still there. */
    void (*trainer_closing)(struct trainer *trainer);

    /* ---- no moment, but a question that may come at any time ---- */

    /* How many seconds does the task take alone, as predicted?  NAN: not known. */
    double (*predicted_seconds)(const struct trainer *trainer, const struct task *task);
};

/* Where the folder keeps a pointer of its own for this trainer.  The pointer is NULL at first, and the folder frees
 * what it leads to at trainer_closing. */
void **folder_data_of(const struct trainer *trainer, const struct module *module);

/* Each calls this function of all folders that have it. */
bool ask_options_read(struct settings *settings, int argc, char **argv, int *code); /* until one says false */
void tell_training_begins(struct settings *settings);
struct machine *ask_machine(struct trainer *trainer); /* until one brings one, which the caller owns; NULL: none does */
void tell_machine_opened(struct trainer *trainer);
void tell_list_built(struct trainer *trainer, struct list *list);
void tell_lists_ready(struct trainer *trainer);
void tell_model_filled(struct trainer *trainer);
void tell_summary_printed(struct trainer *trainer);
void tell_step_issued(struct trainer *trainer);
void tell_step_reported(struct trainer *trainer, uint32_t step, bool sound);
void tell_step_not_finite(struct trainer *trainer, uint32_t step, const struct result *result);
void tell_steps_ended(struct trainer *trainer);
void tell_run_ended(struct trainer *trainer);
void ask_kept(struct trainer *trainer, struct kept_run *kept_run);
void tell_trainer_closing(struct trainer *trainer);

double ask_predicted_seconds(const struct trainer *trainer, const struct task *task); /* NAN: no folder can tell */

#endif
