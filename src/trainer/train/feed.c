/* feed.c - tasks that bring a step its batches: the host prepares windows of tokens, which are then uploaded. */
#include "train_parts.h"

/* ---- feeds ------------------------------------------------------------------------------------------------------- */

void make_feeds(struct trainer *trainer)
{
    int dp = trainer->mesh.dp, n = trainer->micro_batch * trainer->seq_len;
    trainer->train_feeds = allocate_each(trainer->micros * dp, sizeof *trainer->train_feeds);
    trainer->eval_feeds = allocate_each(dp, sizeof *trainer->eval_feeds);
    for (int i = 0; i < trainer->micros * dp; i++)
        trainer->train_feeds[i] = (struct feed){.trainer = trainer, .dp_rank = i % dp, .micro = i / dp, .n = n};
    for (int dp_rank = 0; dp_rank < dp; dp_rank++)
        trainer->eval_feeds[dp_rank] = (struct feed){.trainer = trainer, .dp_rank = dp_rank, .n = n};
    trainer->sample_feed = (struct feed){.trainer = trainer, .n = trainer->seq_len};
}

struct feed *train_feed(const struct trainer *trainer, int micro, int dp_rank)
{
    return &trainer->train_feeds[micro * trainer->mesh.dp + dp_rank];
}

void free_feeds(struct trainer *trainer)
{
    for (int i = 0; i < trainer->micros * trainer->mesh.dp; i++)
        free(trainer->train_feeds[i].on_first_stage);
    for (int dp_rank = 0; dp_rank < trainer->mesh.dp; dp_rank++)
        free(trainer->eval_feeds[dp_rank].on_first_stage);
    free(trainer->sample_feed.on_first_stage);
    free(trainer->train_feeds);
    free(trainer->eval_feeds);
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

/* Makes a batch: one tensor, which is uploaded at once, in four sections: tokens (N), targets (N), by_token (N) and
 * start (V+1). */
static struct batch make_batch(struct trainer *trainer, struct device *device, int n)
{
    int starts = trainer->config.vocab + 1;
    size_t section = round_up((size_t)n, UNIT_ALIGN);
    size_t elements = 3 * section + round_up((size_t)starts, UNIT_ALIGN);
    const struct tensor_form form = {
        .device = device,
        .class = MEM_WORK,
        .name = "batch",
        .type = INT32,
        .shape = SHAPE((int64_t)elements),
    };
    struct tensor *all = new_tensor(trainer->pool, &form);
    /* On the host it persists, so it shares its bytes with no other tensor.  If they were shared, the next batch could
     * not be prepared before the tasks that touch the other tensor have ended. */
    all->persistent = device->is_host;
    return (struct batch){
        .all = all,
        .tokens = new_view(trainer->pool, all, "batch.tokens", 0, SHAPE(n)),
        .targets = new_view(trainer->pool, all, "batch.targets", section, SHAPE(n)),
        .by_token = new_view(trainer->pool, all, "batch.by_token", 2 * section, SHAPE(n)),
        .start = new_view(trainer->pool, all, "batch.start", 3 * section, SHAPE(starts)),
    };
}

/* Fills the batch with zeros, since its sections are padded.  Returns where its tokens are. */
int32_t *clear_batch(const struct batch *batch) { return memset(tensor_memory(batch->all), 0, batch->all->bytes); }

/* Completes a batch whose tokens are there: sorts their positions, for the embedding's gradient, and copies all of it
 * to the task's other tensors. */
void complete_batch(const struct feed *feed, const struct task *task)
{
    const struct batch *batch = &feed->host;
    sort_positions(tensor_memory(batch->tokens), feed->n, feed->trainer->config.vocab, tensor_memory(batch->by_token),
                   tensor_memory(batch->start));
    copy_to_other_contexts(task);
}

/* ---- windows ----------------------------------------------------------------------------------------------------- */

/* Fills a window with tokens that follow from step and place alone, so that a benchmark is the same everywhere. */
static void random_window(const struct trainer *trainer, uint32_t iteration, int sample, int32_t *tokens,
                          int32_t *targets)
{
    enum { SEED = 1 }; /* whatever --seed is */
    uint32_t vocab = (uint32_t)trainer->config.vocab;
    uint64_t first = (uint64_t)sample * (uint64_t)(trainer->seq_len + 1);
    for (int at = 0; at < trainer->seq_len; at++) {
        uint64_t draw = first + (uint64_t)at;
        tokens[at] = (int32_t)(random_words(SEED, STREAM_DATA, iteration, draw).word[0] % vocab);
        targets[at] = (int32_t)(random_words(SEED, STREAM_DATA, iteration, draw + 1).word[0] % vocab);
    }
}

/* Describes the window that is to be taken from the data. */
static struct window data_window(const struct trainer *trainer, uint32_t iteration, int sample)
{
    return (struct window){.window_order = trainer->settings->data.window_order,
                           .seed = (uint64_t)trainer->settings->seed,
                           .step = iteration - 1 + trainer->extra.batches_ahead,
                           .sample = sample,
                           .batch = trainer->batch,
                           .seq_len = trainer->seq_len};
}

/* Fills in window `sample` of step `iteration`: fixed tokens, a window of the data, or random tokens. */
static void fill_window(const struct trainer *trainer, uint32_t iteration, int sample, int32_t *tokens,
                        int32_t *targets)
{
    size_t bytes = (size_t)trainer->seq_len * sizeof *tokens;
    if (trainer->extra.fixed_tokens) {
        memcpy(tokens, trainer->extra.fixed_tokens + sample * trainer->seq_len, bytes);
        memcpy(targets, trainer->extra.fixed_targets + sample * trainer->seq_len, bytes);
    } else if (trainer->data) {
        struct window window = data_window(trainer, iteration, sample);
        dataset_window(trainer->data, &window, tokens, targets);
    } else {
        random_window(trainer, iteration, sample, tokens, targets);
    }
}

/* Fills a micro-batch of step `iteration`, which counts from 1, with its windows. */
void prepare_batch(void *argument, const struct task *task, uint32_t iteration)
{
    const struct feed *feed = argument;
    const struct trainer *trainer = feed->trainer;
    int32_t *tokens = clear_batch(&feed->host);
    int32_t *targets = tensor_memory(feed->host.targets);
    int first = (feed->dp_rank * trainer->micros + feed->micro) * trainer->micro_batch;
    for (int i = 0; i < trainer->micro_batch; i++)
        fill_window(trainer, iteration, first + i, tokens + i * trainer->seq_len, targets + i * trainer->seq_len);
    complete_batch(feed, task);
}

/* ---- the tasks --------------------------------------------------------------------------------------------------- */

/* Makes batches[tp_rank] on each tensor-parallel rank, of which `first_rank` is the first, and uploads it. */
static void add_uploads(struct transfers *uploads, const struct feed *feed, struct batch *batches, int first_rank)
{
    struct trainer *trainer = feed->trainer;
    for (int tp_rank = 0; tp_rank < trainer->mesh.tp; tp_rank++) {
        batches[tp_rank] = make_batch(trainer, trainer->model->replicas[first_rank + tp_rank].device, feed->n);
        add_upload(uploads, "batch.upload", batches[tp_rank].all);
    }
}

void add_batch(struct list *list, struct feed *feed, host_function *prepare)
{
    struct trainer *trainer = feed->trainer;
    int tp = trainer->mesh.tp;
    int first_rank = rank_at(&trainer->mesh, feed->dp_rank, 0);
    int last_rank = rank_at(&trainer->mesh, feed->dp_rank, n_stages(&trainer->mesh) - 1);
    feed->host = make_batch(trainer, trainer->machine->host, feed->n);
    tag_tasks(list, NONE, feed->micro, ROLE_FEED);
    struct task *task = add_host(list, trainer->machine->host->lanes[LANE_FEED], "batch.prepare", prepare, feed);
    add_access(task, feed->host.all, ACCESS_WRITE);
    /* One array for both: the batches of the first stage, and then those of the last one if that is another. */
    feed->on_first_stage = allocate_each(2 * tp, sizeof *feed->on_first_stage);
    feed->on_last_stage = last_rank == first_rank ? feed->on_first_stage : feed->on_first_stage + tp;
    struct transfers uploads = {.list = list, .maker = task, .on_host = feed->host.all, .context = NONE};
    add_uploads(&uploads, feed, feed->on_first_stage, first_rank);
    if (last_rank != first_rank)
        add_uploads(&uploads, feed, feed->on_last_stage, last_rank);
}
