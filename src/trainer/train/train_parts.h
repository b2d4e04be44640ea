/* train_parts.h - what the files of this folder need of one another.  train.h has what others need. */
#ifndef TRAIN_PARTS_H
#define TRAIN_PARTS_H

#include "train.h"

/* ---- trainer_settings.c ------------------------------------------------------------------------------------------ */

void set_rate(struct trainer *trainer); /* the schedule of the learning rate */

/* Sets from which batch a resumed run goes on: whole batches, so that no sequence is trained on twice. */
void set_batches_ahead(struct trainer *trainer);

/* ---- sizes.c: mesh and batch ------------------------------------------------------------------------------------- */

/* Sets the mesh of all devices of the machine and its order, and cuts the layers. */
void set_mesh(struct trainer *trainer);

/* Sets the sizes of a step.  wanted: as for new_trainer(); where LIST_SAMPLE is the only list, it has one sequence,
 * whatever the devices are. */
void set_batch(struct trainer *trainer, unsigned wanted);

/* ---- feed.c: host tasks that fill batches ------------------------------------------------------------------------ */

void make_feeds(struct trainer *trainer); /* makes the trainer's feeds, with their trainer, dp_rank, micro and n */
void free_feeds(struct trainer *trainer);

/* The feed of a micro-batch of the train list, on that data-parallel rank. */
struct feed *train_feed(const struct trainer *trainer, int micro, int dp_rank);

/* The host_function of batch.prepare; like the others that fill batches, it is given a struct feed. */
void prepare_batch(void *argument, const struct task *task, uint32_t iteration);

/* A task that fills a batch begins with the first of these, which returns where the tokens are, and ends with the
 * second: see feed.c. */
int32_t *clear_batch(const struct batch *batch);
void complete_batch(const struct feed *feed, const struct task *task);

/* Adds batch.prepare (on the host) and batch.upload (to the feed's rank), and makes the feed's batches. */
void add_batch(struct list *list, struct feed *feed, host_function *prepare);

/* ---- uploads.c --------------------------------------------------------------------------------------------------- */

/* Transfers between the host and one device after another.  Devices of one OpenCL context use the same tensor of the
 * host, since it is pinned for that context; the next context gets one of its own. */
struct transfers {
    struct list *list;
    struct task *maker;     /* uploads: the host task that fills the tensors; else NULL */
    struct tensor *on_host; /* of the latest context; at first one that the caller has made */
    int context;            /* that of the transfer before, by index; NONE: there is none yet */
};

/* The tensor of the host for the next transfer, which is to or from that device. */
struct tensor *tensor_on_host(struct transfers *transfers, const struct device *device);

/* Adds the upload of `target` from the host's tensor for its device. */
void add_upload(struct transfers *uploads, const char *name, struct tensor *target);

/* Copies what the task has written to the first of the host's tensors to those of other contexts.  The task that fills
 * tensors for uploads, transfers->maker, calls it at its end. */
void copy_to_other_contexts(const struct task *maker);

/* ---- control.c: the control block, losses, the report ------------------------------------------------------------ */

/* Adds the tasks that make the control block and upload it. */
void add_control(struct trainer *trainer);

/* The rank that has the losses of a data-parallel rank: the first tensor-parallel rank of the last stage. */
int loss_rank(const struct trainer *trainer, int dp_rank);

/* Makes trainer->rank_losses, a tensor for each data-parallel rank's sum of losses.  Returns the tensor on the norm's
 * device in which these sums are gathered. */
struct tensor *new_loss_totals(struct trainer *trainer);

/* Adds the tasks that report loss and norm. */
void add_report(struct trainer *trainer);

/* ---- the lists of tasks: build_train.c, evaluation.c, sampler.c -------------------------------------------------- */

/* Each builds the list of its name, trainer->train_list and so on, which is neither placed nor ordered then.  An
 * iteration of the sample list computes the logits of the next token of one sequence. */
void build_train(struct trainer *trainer);
void build_eval(struct trainer *trainer);
void build_sample(struct trainer *trainer);

/* Adds the forward of all stages on a data-parallel rank, up to the last LayerNorm, without a backward
 * (evaluation.c).  tapes[tp_rank] gets what comes out on that tensor-parallel rank. */
void add_stages(struct builder *b, const struct feed *feed, int dp_rank, struct tape *tapes);

/* ---- interleave.c ------------------------------------------------------------------------------------------------ */

/* Puts the forwards of all ranks side by side, layer by layer: what all ranks need for a layer can be sent when the
 * first of them begins it.  Rank k's forward is at the positions from begin[k] on, before begin[k + 1]. */
void interleave_ranks(struct list *list, const size_t *begin, int ranks);

/* ---- save_folder.c ----------------------------------------------------------------------------------------------- */

/* Refuses to save over a model of other sizes. */
void check_saved(const struct settings *settings, const struct config *ours);

/* Makes --save's folder, and locks it. */
void open_folder_of_save(struct trainer *trainer);

/* ---- loop.c, results.c, after_step.c ----------------------------------------------------------------------------- */

struct loop_state { /* how far the steps of a run have come */
    struct trainer *trainer;
    struct progress *progress;
    uint32_t shown;            /* results up to this step have been shown */
    uint32_t last;             /* the last step of this run; an interrupt makes it the step that is under way */
    uint32_t saved_step;       /* the last step after which the run was saved; 0: none yet */
    uint32_t exported_step;    /* the last step after which the model was written for other programs; 0: none yet */
    uint32_t evaluated_step;   /* the last step after which the model was evaluated; 0: none yet */
    const char *bad_parameter; /* a parameter that is not finite: such a model is not saved; or NULL */
};

/* Shows all results up to `step`, waiting for those that have not been reported. */
void show_results(struct loop_state *loop_state, uint32_t step);

/* What happens after a step, with nothing in flight: it is evaluated and saved where that is due. */
void after_step(struct loop_state *loop_state, uint32_t step);

/* ---- vocabulary.c ------------------------------------------------------------------------------------------------ */

/* The data of --data and --val-data, as tokens of the source's tokenizer, or, without a source, of their own.  vocab:
 * the source's; 0: there is none. */
struct dataset *open_training_data(const struct settings *settings, int vocab);

#endif
