/* hooks.h - the moments at which the trainer calls the folders that it does not name.
 *
 * A folder that takes part in a training, but is not of src/trainer, puts functions here, and names them in its struct
 * training_parts (base/additions.h).  At each moment the functions of all folders are called, in the order of
 * modules[].  A function that is NULL: the folder has nothing to do then.  At some moments a folder is asked, as by
 * ask_machine(), and answers; of the others it is told, as by tell_list_built().
 *
 * What a folder knows of a trainer hangs on one pointer, folder_data_of().
 */
#ifndef HOOKS_H
#define HOOKS_H

#include "trainer/base/additions.h"

#include <stdint.h>

struct list;
struct machine;
struct result;
struct settings;
struct task;
struct trainer;

/* Where a run that has ended is kept, and the command that continues it.  The texts are allocated, and whoever asks
 * frees them. */
struct kept_run {
    char *where;      /* where it is kept, if not in --save's folder: half a sentence; NULL: nowhere else */
    char *command;    /* the words after `yard train` that say from where it goes on; NULL: it cannot go on */
    char *more_words; /* further words of that command, or NULL */
};

/* The moments, in the order of a training.  "train": the moment comes in yard train alone.  "all": it comes in every
 * command that makes a trainer, such as yard check, if the command gets that far. */
struct hooks {
    /* train: yard train has read its options.  Does this process take part in the training?  false: it ends with *code.
     * argv: the command line. */
    bool (*takes_part)(struct settings *settings, int argc, char **argv, enum exit_code *code);
    void (*training_begins)(struct settings *settings); /* train: the trainer is about to be made */
    /* all: the devices are to be opened.  Returns the machine to use in their place; NULL: this host's devices, and if
     * each of these is to have a context of its own, the folder sets *separate, which is false before. */
    struct machine *(*machine)(struct trainer *trainer, bool *separate);
    void (*machine_opened)(struct trainer *trainer); /* all: the machine is there, and the mesh is known */
    /* all: a list has been built, but neither placed nor ordered: this is where passes rewrite it.  The hook is called
     * for the lists train, eval and sample in this order, as far as these are wanted. */
    void (*list_built)(struct trainer *trainer, struct list *list);
    void (*lists_ready)(struct trainer *trainer);     /* all: the lists could run; not called where none is to run */
    void (*model_filled)(struct trainer *trainer);    /* train: the parameters have their values */
    void (*summary_printed)(struct trainer *trainer); /* train: the folder adds its lines to what is trained */
    void (*step_issued)(struct trainer *trainer);     /* train: a step's tasks have been given to their lanes */
    /* all: the step's loss is known.  It is called on a lane's thread.  finite: loss and norm are finite. */
    void (*step_reported)(struct trainer *trainer, uint32_t step, bool finite);
    /* train: loss or norm of that step are not finite, and nothing is in flight.  It ends the program with the reason,
     * if that can be found. */
    void (*step_not_finite)(struct trainer *trainer, uint32_t step, const struct result *result);
    /* train: no further step comes.  The folder waits for what it still has under way.  The run may end badly: then the
     * program ends next. */
    void (*steps_ended)(struct trainer *trainer);
    /* train: the user is told how the run ended; the folder adds its lines */
    void (*run_ended)(struct trainer *trainer);
    /* train: writes to *run what the folder has kept of the run.  It may add to what others have written there. */
    void (*kept)(struct trainer *trainer, struct kept_run *run);
    /* all: the trainer is about to go.  Nothing is in flight; lists and machine are still there. */
    void (*trainer_closing)(struct trainer *trainer);

    /* ---- no moment, but a question that may come at any time ---- */

    /* How many seconds does the task take alone, as predicted?  NAN: not known. */
    double (*predicted_seconds)(const struct trainer *trainer, const struct task *task);
};

/* Where the folder keeps a pointer of its own for this trainer.  The pointer is NULL at first, and the folder frees
 * what it leads to at trainer_closing. */
void **folder_data_of(const struct trainer *trainer, const struct module *module);

/* Each calls this function of all folders that have it. */
bool ask_takes_part(struct settings *settings, int argc, char **argv, enum exit_code *code); /* until one says false */
void tell_training_begins(struct settings *settings);
/* Until one brings a machine, which the caller owns; NULL: none does. */
struct machine *ask_machine(struct trainer *trainer, bool *separate);
void tell_machine_opened(struct trainer *trainer);
void tell_list_built(struct trainer *trainer, struct list *list);
void tell_lists_ready(struct trainer *trainer);
void tell_model_filled(struct trainer *trainer);
void tell_summary_printed(struct trainer *trainer);
void tell_step_issued(struct trainer *trainer);
void tell_step_reported(struct trainer *trainer, uint32_t step, bool finite);
void tell_step_not_finite(struct trainer *trainer, uint32_t step, const struct result *result);
void tell_steps_ended(struct trainer *trainer);
void tell_run_ended(struct trainer *trainer);
void ask_kept(struct trainer *trainer, struct kept_run *kept_run);
void tell_trainer_closing(struct trainer *trainer);

double ask_predicted_seconds(const struct trainer *trainer, const struct task *task); /* NAN: no folder can tell */

#endif
