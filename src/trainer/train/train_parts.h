/* train_parts.h - what the files of this folder need of one another.  train.h has what others need. */
#ifndef TRAIN_PARTS_H
#define TRAIN_PARTS_H

#include "train.h"

/* ---- sizes.c: mesh and batch ------------------------------------------------------------------------------------- */

/* Sets the mesh of all devices of the machine and its order, and cuts the layers. */
void set_mesh(struct trainer *trainer);

/* Sets the sizes of a step.  wanted: as for new_trainer(); where LIST_SAMPLE is the only list, it has one sequence,
 * whatever the devices are. */
void set_batch(struct trainer *trainer, unsigned wanted);

/* ---- feed.c: host tasks that fill batches ------------------------------------------------------------------------ */

void new_feeds(struct trainer *trainer); /* makes the trainer's feeds, with their trainer, dp_rank, micro and n */
void free_feeds(struct trainer *trainer);

/* The feed of a micro-batch of the train list, on that data-parallel rank. */
struct feed *train_feed(const struct trainer *trainer, int micro, int dp_rank);
host_function prepare_batch, prepare_evaluation, prepare_sample; /* their argument is a struct feed */

/* The first of the micro_batch validation windows that a data-parallel rank takes in that iteration. */
size_t first_window(const struct trainer *trainer, int dp_rank, uint32_t iteration);

/* Adds batch.prepare (on the host) and batch.upload (to the feed's rank), and makes the feed's batches. */
void add_batch(struct list *list, struct feed *feed, host_function *prepare);

/* Transfers between the host and one device after another.  Devices of one OpenCL context use the same tensor of the
 * host, since it is pinned for that context; the next context gets one of its own. */
struct transfers {
    struct list *list;
    struct task *maker;     /* uploads: the host task that fills the tensors, by fill_copies() at its end; else NULL */
    struct tensor *on_host; /* of the latest context; at first one that the caller has made */
    int context;            /* that of the transfer before, by index; NONE: there is none yet */
};

/* The tensor of the host for the next transfer, which is to or from that device. */
struct tensor *tensor_on_host(struct transfers *transfers, const struct device *device);
void add_upload(struct transfers *uploads, const char *name, struct tensor *target);
void fill_copies(const struct task *maker);

/* ---- control.c: the control block, losses, the report ------------------------------------------------------------ */

/* Adds the tasks that make the control block and upload it. */
void add_control(struct trainer *trainer);

/* The rank that has the losses of a data-parallel rank: the first tensor-parallel rank of the last stage. */
int loss_rank(const struct trainer *trainer, int dp_rank);

/* Makes trainer->rank_totals, a tensor for each data-parallel rank's sum of losses.  Returns the tensor on the norm's
 * device in which these sums are gathered. */
struct tensor *new_losses(struct trainer *trainer);

/* Adds the tasks that report loss and norm. */
void add_report(struct trainer *trainer);
host_function report_evaluation; /* adds an iteration's losses to trainer->eval_sums; its argument is the trainer */

/* ---- build_lists.c: the lists of tasks --------------------------------------------------------------------------- */

/* Each builds the list of its name, trainer->train_list and so on, which is neither placed nor ordered then.  An
 * iteration of the eval list takes a micro-batch on each data-parallel rank, and copies the losses to the host; one of
 * the sample list computes the logits of the next token of one sequence. */
void build_train(struct trainer *trainer);
void build_eval(struct trainer *trainer);
void build_sample(struct trainer *trainer);

/* ---- vocabulary.c ---------------------------------------------------------------------------------------------- */

/* The data of --data and --val-data, as tokens of the source's tokenizer, or, without a source, of their own.  vocab:
 * the source's; 0: there is none. */
struct dataset *open_training_data(const struct settings *settings, int vocab);

#endif
