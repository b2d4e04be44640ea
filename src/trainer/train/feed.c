/* feed.c - tasks that bring a step its batches: the host prepares windows of tokens, which are then uploaded. */
#include "train.h"

/* ---- feeds ------------------------------------------------------------------------------------------------------- */

void new_feeds(struct trainer *t)
{
    const int dp = t->mesh.dp, n = t->micro_batch * t->seq;
    t->train_feeds = allocate((size_t)(t->micros * dp), sizeof *t->train_feeds);
    t->eval_feeds = allocate((size_t)dp, sizeof *t->eval_feeds);
    for (int i = 0; i < t->micros * dp; i++)
        t->train_feeds[i] = (struct feed){.trainer = t, .rank = i % dp, .micro = i / dp, .n = n};
    for (int k = 0; k < dp; k++)
        t->eval_feeds[k] = (struct feed){.trainer = t, .rank = k, .n = n};
    t->sample_feed = (struct feed){.trainer = t, .n = t->seq};
}

struct feed *train_feed(const struct trainer *t, int micro, int k) { return &t->train_feeds[micro * t->mesh.dp + k]; }

void free_feeds(struct trainer *t)
{
    for (int i = 0; i < t->micros * t->mesh.dp; i++)
        free(t->train_feeds[i].first);
    for (int k = 0; k < t->mesh.dp; k++)
        free(t->eval_feeds[k].first);
    free(t->sample_feed.first);
    free(t->train_feeds);
    free(t->eval_feeds);
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

/* One tensor that is uploaded at once, in four sections: tokens (N), targets (N), order (N), start (V+1). */
static struct batch new_batch(struct trainer *t, struct device *d, int n)
{
    const int starts = t->config.vocab + 1;
    const size_t section = round_up((size_t)n, UNIT_ALIGN);
    const size_t elements = 3 * section + round_up((size_t)starts, UNIT_ALIGN);
    const struct tensor_form form = {
        .device = d,
        .class = MEM_WORK,
        .name = "batch",
        .element = INT32,
        .shape = SHAPE((int64_t)elements),
    };
    struct tensor *all = new_tensor(t->pool, &form);
    /* On the host it persists, so it shares its bytes with no other tensor.  If it did, the next batch could not be
     * prepared before the tasks that touch the other tensor have ended. */
    all->persistent = d->is_host;
    return (struct batch){
        .all = all,
        .tokens = new_view(t->pool, all, "batch.tokens", 0, SHAPE(n)),
        .targets = new_view(t->pool, all, "batch.targets", section, SHAPE(n)),
        .order = new_view(t->pool, all, "batch.order", 2 * section, SHAPE(n)),
        .start = new_view(t->pool, all, "batch.start", 3 * section, SHAPE(starts)),
    };
}

/* Fills the batch with zeros, since its sections are padded.  Returns where its tokens are. */
static int32_t *clear_batch(const struct batch *b) { return memset(tensor_memory(b->all), 0, b->all->bytes); }

struct tensor *for_upload(struct trainer *t, struct task *made, const struct device *before, const struct device *d)
{
    struct tensor *last = made->access[made->n_access - 1].tensor;
    if (before->context->index == d->context->index)
        return last;
    struct tensor *further = tensor_like(t->pool, last->device, last);
    further->persistent = true;
    add_access(made, further, ACCESS_WRITE);
    return further;
}

void fill_others(const struct task *made)
{
    const struct tensor *x = made->access[0].tensor;
    for (int k = 1; k < made->n_access; k++)
        memcpy(tensor_memory(made->access[k].tensor), tensor_memory(x), x->bytes);
}

static void sort_batch(const struct feed *f, const struct task *task)
{
    const struct batch *b = &f->host;
    sort_positions(tensor_memory(b->tokens), f->n, f->trainer->config.vocab, tensor_memory(b->order),
                   tensor_memory(b->start));
    fill_others(task);
}

/* ---- the host tasks ---------------------------------------------------------------------------------------------- */

/* Tokens drawn by the counter, so that a benchmark is the same everywhere. */
static void random_window(const struct trainer *t, uint32_t number, int sample, int32_t *tokens, int32_t *targets)
{
    const uint32_t vocab = (uint32_t)t->config.vocab;
    uint64_t first = (uint64_t)sample * (uint64_t)(t->seq + 1);
    for (int at = 0; at < t->seq; at++) {
        uint64_t draw = first + (uint64_t)at;
        tokens[at] = (int32_t)(random_words(1, STREAM_DATA, number, draw).word[0] % vocab);
        targets[at] = (int32_t)(random_words(1, STREAM_DATA, number, draw + 1).word[0] % vocab);
    }
}

static struct window data_window(const struct trainer *t, uint32_t number, int sample)
{
    return (struct window){.order = t->settings->data.order,
                           .seed = (uint64_t)t->settings->seed,
                           .step = number - 1 + t->ahead,
                           .sample = sample,
                           .batch = t->batch,
                           .seq_len = t->seq};
}

/* Fills in window `sample` of step `number`: fixed tokens, a window of the data, or random tokens. */
static void fill_window(const struct trainer *t, uint32_t number, int sample, int32_t *tokens, int32_t *targets)
{
    const size_t bytes = (size_t)t->seq * sizeof *tokens;
    if (t->fixed_tokens) {
        memcpy(tokens, t->fixed_tokens + sample * t->seq, bytes);
        memcpy(targets, t->fixed_targets + sample * t->seq, bytes);
    } else if (t->data) {
        struct window w = data_window(t, number, sample);
        dataset_window(t->data, &w, tokens, targets);
    } else {
        random_window(t, number, sample, tokens, targets);
    }
}

/* The windows of step `number` (from 1). */
void prepare_batch(void *context, const struct task *task, uint32_t number)
{
    const struct feed *f = context;
    const struct trainer *t = f->trainer;
    int32_t *tokens = clear_batch(&f->host);
    int32_t *targets = tensor_memory(f->host.targets);
    int first = (f->rank * t->micros + f->micro) * t->micro_batch;
    for (int i = 0; i < t->micro_batch; i++)
        fill_window(t, number, first + i, tokens + i * t->seq, targets + i * t->seq);
    sort_batch(f, task);
}

size_t first_window(const struct trainer *t, int rank, uint32_t number)
{
    return ((size_t)(number - t->evaluated - 1) * (size_t)t->mesh.dp + (size_t)rank) * (size_t)t->micro_batch;
}

/* Evaluation: iteration i takes the next micro_batch windows for each rank; what is left over stays zero. */
void prepare_evaluation(void *context, const struct task *task, uint32_t number)
{
    struct feed *f = context;
    struct trainer *t = f->trainer;
    int32_t *tokens = clear_batch(&f->host);
    int32_t *targets = tensor_memory(f->host.targets);
    size_t window = first_window(t, f->rank, number);
    size_t n_windows = validation_windows(t->data, t->seq);
    for (int i = 0; i < t->micro_batch && window < n_windows; i++) {
        validation_window(t->data, window, t->seq, tokens + i * t->seq, targets + i * t->seq);
        window++;
    }
    sort_batch(f, task);
}

void prepare_sample(void *context, const struct task *task, uint32_t number)
{
    (void)number;
    struct feed *f = context;
    int32_t *tokens = clear_batch(&f->host);
    int32_t *targets = tensor_memory(f->host.targets);
    memcpy(tokens, f->trainer->sample_tokens, (size_t)f->n * sizeof *tokens);
    targets[0] = f->trainer->sample_position; /* the row of logits that is wanted */
    fill_others(task);
}

/* ---- adding them to a list --------------------------------------------------------------------------------------- */

/* Makes the rank's batch and its upload.  before: the device of the upload before it.  Returns the rank's device. */
static const struct device *upload_batch(struct step *s, const struct feed *f, struct task *prepare,
                                         struct batch *batch, int rank, const struct device *before)
{
    struct trainer *t = f->trainer;
    struct device *d = t->model->replica[rank].device;
    *batch = new_batch(t, d, f->n);
    struct tensor *from = for_upload(t, prepare, before, d);
    add_copy(s, d->lane[LANE_UPLOAD], "batch.upload", batch->all, from);
    return d;
}

void add_batch(struct step *s, struct feed *f, host_function *prepare)
{
    struct trainer *t = f->trainer;
    const int tp = t->mesh.tp;
    const int first = rank_at(&t->mesh, f->rank, 0);
    const int last = rank_at(&t->mesh, f->rank, n_stages(&t->mesh) - 1);
    f->host = new_batch(t, t->machine->host, f->n);
    s->tags = (struct tags){.layer = NONE, .micro = f->micro, .role = ROLE_FEED};
    struct task *task = add_host(s, t->machine->host->lane[LANE_FEED], "batch.prepare", prepare, f);
    add_access(task, f->host.all, ACCESS_WRITE);
    f->first = allocate((size_t)(2 * tp), sizeof *f->first); /* the batches of the last stage come after these */
    f->last = last == first ? f->first : f->first + tp;
    const struct device *before = t->model->replica[first].device;
    for (int k = 0; k < tp; k++)
        before = upload_batch(s, f, task, &f->first[k], first + k, before);
    for (int k = 0; k < tp && last != first; k++)
        before = upload_batch(s, f, task, &f->last[k], last + k, before);
}
