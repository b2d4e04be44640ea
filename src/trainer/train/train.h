/* train.h - from settings to a running trainer.
 *
 *     struct trainer *trainer = new_trainer(settings, LIST_TRAIN | LIST_EVAL | OPEN_DATA);
 *     issue_step(trainer, 1);  issue_step(trainer, 2);  step_result(trainer, 1)->loss ...    as train_loop() does
 *     free_trainer(trainer);
 *
 * A user's mistake, a device without room or a file that cannot be read ends the program with a sentence.
 *
 * trainer/settings has what is asked for.  This header is for these files, and train_parts.h has what they need of one
 * another:
 *
 *     trainer     machine + model + the lists of tasks                    trainer.c, sizes.c, save_folder.c
 *     train list  its tasks, its batches, its control block               build_train.c, feed.c, control.c,
 *                                                                         interleave.c
 *     evaluation  its list, and its run                                   evaluation.c
 *     vocabulary  which tokenizer a run has                               vocabulary.c
 *     loop        steps, their results, what follows a step               loop.c, results.c, after_step.c
 *     what it shows, on the terminal and in the log                       progress.h, log.h
 *     sampler     text from the model                                     sampler.c
 */
#ifndef TRAIN_H
#define TRAIN_H

#include "this_process.h"              /* brings: this_process */
#include "trainer/data/data.h"         /* brings: dataset */
#include "trainer/model/model.h"       /* brings: model, replica, config, params, batch */
#include "trainer/run/run.h"           /* brings: list, task, tensor, machine, execute, execution, observer */
#include "trainer/settings/settings.h" /* brings: settings, usage, source, rate */

/* ---- trainer.c, trainer_settings.c ------------------------------------------------------------------------------- */

struct result {        /* what the report task says of one training step */
    double loss;       /* mean over the step's tokens, in nats */
    double norm;       /* the gradient's, before it is clipped */
    double lr;         /* the learning rate */
    bool halted;       /* the step was not finite, and has updated nothing */
    uint64_t ended_ns; /* when the step's last task on a compute lane ended (step_result), by now_ns() */
};

enum { RESULTS = KEPT_ENDS }; /* how many steps' results are kept */
enum { MOST_LISTS = 3 };      /* how many lists a trainer may have */

/* The losses of an evaluation's n tokens. */
struct losses {
    double sum; /* in nats */
    uint64_t n;
};

struct feed { /* what a batch.prepare task needs to know */
    struct trainer *trainer;
    int dp_rank, micro; /* data-parallel rank, micro-batch */
    int n;              /* number of tokens */
    struct batch host;  /* the batch that the task fills */
    /* The same batch on the ranks of the first stage, for the tokens, and of the last one, for the targets; by
     * tensor-parallel rank. */
    struct batch *on_first_stage;
    struct batch *on_last_stage;
};

/* What only a few files or folders ask.  A first reading skips it. */
struct trainer_extra {
    /* other tokens */
    const int32_t *fixed_tokens, *fixed_targets; /* each step's, (batch, seq_len), for yard check; NULL: from data */
    /* Step n trains on batch n + batches_ahead of the data: 0, unless the run before had another --batch.  After 100
     * steps of 8 sequences, step 101 of 4 sequences takes batch 201, so batches_ahead is 100: 201 - 101. */
    int64_t batches_ahead;

    /* what it writes */
    int lock;                  /* the descriptor that locks --save's folder; NONE: it is not locked */
    struct log *log;           /* the file of --log, see log.h; NULL: not given */
    struct progress *progress; /* its lines on the terminal and in the log; NULL: it has not begun */

    /* The thread that issues tasks writes these after the first step too, when no list is in flight. */
    uint32_t eval_iterations; /* the eval list's, of all evaluations before: the next one counts on from there */
    int32_t *sample_window; /* (seq_len) window for the next sampled token, which the thread of the lane `feed` reads */
    int sample_position;    /* where the last token is in that window */

    /* An evaluation's losses up to its iteration i, at i & 1: see evaluation.c.  evaluate() begins with zeros, then the
     * thread of the lane `report` writes them, and they are read when it has reported the iteration. */
    struct losses eval_sums[2];
};

struct trainer {
    const struct settings *settings;
    void **folder_data; /* a pointer for each folder, in the order of modules[]: see folder_data_of() */

    bool is_draft; /* see new_draft() */

    /* what the trainer trains, and where */
    struct machine *machine;
    struct pool *pool;
    struct mesh mesh;
    const struct turn_order *turn_order; /* of micro-batches in a pipeline of mesh.pp devices */
    struct config config;
    struct model *model;

    /* the data, and sizes of a step */
    struct rate rate;
    struct dataset *data;    /* NULL: random tokens */
    int batch;               /* sequences of a step, over all ranks */
    int seq_len;             /* tokens of a sequence */
    int micros, micro_batch; /* a data-parallel rank has `micros` micro-batches of micro_batch sequences each */

    /* feed.c: what the batch.prepare tasks of its lists need to know */
    struct feed *train_feeds; /* [micro * dp + data-parallel rank]: see train_feed() */
    struct feed *eval_feeds;  /* [data-parallel rank] */
    struct feed sample_feed;

    /* its lists; NULL where not wanted */
    struct list *train_list, *eval_list, *sample_list;
    const struct task *report; /* the train list's task that makes results */

    /* tensors in which its lists leave results */
    struct tensor **rank_losses;  /* by data-parallel rank: a tensor (1), the sum of the rank's losses */
    struct tensor *kept_logits;   /* logits of rank 0's first micro-batch, which yard check compares */
    struct tensor *sample_logits; /* (V) on the host */

    /* Up to here the fields are set before the first step, by the thread that issues tasks.  The thread of the lane
     * `report` writes these, except ended_ns.  They are read when it has reported the step. */
    struct result results[RESULTS]; /* by step % RESULTS */

    struct trainer_extra extra;
};

/* Bits: what a trainer is made with. */
enum wanted {
    LIST_TRAIN = 1,
    LIST_EVAL = 2,
    LIST_SAMPLE = 4,
    ALL_LISTS = LIST_TRAIN | LIST_EVAL | LIST_SAMPLE,
    KEEP_LOGITS = 8,      /* there is one device */
    OPEN_DATA = 16,       /* text to train on; without it tokens are random */
    OPEN_GIVEN_DATA = 32, /* that text, but only if --data was given */
    ONLY_DRAFT = 64       /* its lists are looked at and do not run: see new_draft() */
};

/* Opens the devices that are asked for, as open_machine() does.  separate: each has a context of its own. */
struct machine *open_machine_for(const struct settings *settings, bool separate);

/* The model's sizes: those of its source, the file of --init or --resume; without a source those of the options. */
struct config config_of(const struct settings *settings);

/* Opens devices and data, makes the model and the lists, places them.  Sets execution.serial as the settings say: one
 * trainer runs at a time. */
struct trainer *new_trainer(const struct settings *settings, unsigned wanted);

/* new_trainer() with sizes and data of the caller's (yard check); data NULL: random tokens. */
struct trainer *new_trainer_for(const struct settings *settings, const struct config *config, struct dataset *data,
                                unsigned wanted);

/* new_trainer() for lists that are looked at and not run: nothing is allocated on devices, which --hardware may
 * describe.  The lists have no addresses and no edges (planning/predict/plan.h goes on from there). */
struct trainer *new_draft(const struct settings *settings, unsigned wanted);

/* Writes the lists that the trainer has to all[], and returns how many there are. */
size_t lists_of(const struct trainer *trainer, struct list *all[MOST_LISTS]);

/* Waits until nothing is in flight, then frees the trainer with its machine and data. */
void free_trainer(struct trainer *trainer);

double tokens_per_step(const struct trainer *trainer); /* of all ranks together */

/* ---- save_folder.c ----------------------------------------------------------------------------------------------- */

/* Ends the program, since the model at `path`, where this one is to be saved, has sizes of its own. */
_Noreturn void refuse_other_sizes(const char *path, const struct config *its);

/* ---- loop.c ------------------------------------------------------------------------------------------------------ */

/* Trains by the settings, a resumed run from the step after its last.  The trainer has data.  Returns the exit
 * code, 130 when interrupted. */
enum exit_code train_loop(struct trainer *trainer);

/* Issues that training step, as soon as the step ISSUED_AHEAD before it has been computed. */
void issue_step(struct trainer *trainer, uint32_t step);

/* ---- results.c, not_finite.c ------------------------------------------------------------------------------------- */

/* Waits until that step has been computed and reported, and returns its result. */
const struct result *step_result(struct trainer *trainer, uint32_t step);

/* Retires instances that have ended.  true: the result of that step is there, so step_result() would return at once. */
bool poll_result(struct trainer *trainer, uint32_t step);

/* Ends the program, and names the task that first made something that is not finite, if a folder can tell it. */
_Noreturn void fail_not_finite(struct trainer *trainer, uint32_t step, const struct result *result);

const char *not_finite_advice(const struct trainer *trainer); /* what to try, as the end of a message */

/* Ends the program with the sentence that after `step` a value is not finite, where no step's loss shows it: that of
 * `parameter`, or, for NULL, the validation loss. */
_Noreturn void fail_model_not_finite(const struct trainer *trainer, uint32_t step, const char *parameter);

/* ---- evaluation.c ------------------------------------------------------------------------------------------------ */

/* Mean loss over the validation split, or its first `batches` batches (0: all).  `goes_on`, unless NULL, is called
 * after every round; where it says false the rest is left out, and there is no loss: NAN. */
double evaluate(struct trainer *trainer, int64_t batches, bool (*goes_on)(void *), void *context);

/* ---- sizes.c ----------------------------------------------------------------------------------------------------- */

/* The mesh that --mesh asks for, of that many devices; 0: of as many as it names.  Its layers are not cut yet. */
struct mesh wanted_mesh(const struct settings *settings, int devices);

/* ---- vocabulary.c ------------------------------------------------------------------------------------------------ */

/* The tokenizer of the source, a saved model, as a data set without tokens (yard sample). */
struct dataset *open_vocabulary(const struct settings *settings, int vocab);

/* ---- sampler.c --------------------------------------------------------------------------------------------------- */

/* Continues a text by `count` tokens, and prints all of it token by token. */
void sample_text(struct trainer *trainer, const char *prompt, int count);

/* Continues the first character of the data by --sample-tokens tokens, after a training. */
void print_sample(struct trainer *trainer);

#endif
