/* feed.c - batches: the host tasks that prepare windows of tokens, and their upload. */
#include "train.h"

#include <string.h>

/* ---- batches --------------------------------------------------------------------------------------------------- */

/* One tensor that is uploaded at once, with four views: tokens (N), targets (N), order (N), start (V+1). */
static struct batch new_batch(struct trainer *t, struct device *d, int n, int vocab)
{
    size_t section = round_up((size_t)n, UNIT_ALIGN), starts = round_up((size_t)vocab + 1, UNIT_ALIGN);
    struct batch b;
    b.all = new_tensor(t->pool, d, MEM_WORK, "batch", INT32, SHAPE((int64_t)(3 * section + starts)));
    b.tokens = new_view(t->pool, b.all, "batch.tokens", 0, SHAPE(n));
    b.targets = new_view(t->pool, b.all, "batch.targets", section, SHAPE(n));
    b.order = new_view(t->pool, b.all, "batch.order", 2 * section, SHAPE(n));
    b.start = new_view(t->pool, b.all, "batch.start", 3 * section, SHAPE(vocab + 1));
    return b;
}

/* Without data: tokens by the counter, so that a benchmark is the same everywhere. */
static void random_window(const struct trainer *t, uint32_t step, int sample, int32_t *tokens, int32_t *targets)
{
    for (int i = 0; i < t->seq; i++) {
        uint64_t at = (uint64_t)sample * (uint64_t)(t->seq + 1) + (uint64_t)i;
        tokens[i] = (int32_t)(random_words(1, STREAM_DATA, step, at).word[0] % (uint32_t)t->config.vocab);
        targets[i] = (int32_t)(random_words(1, STREAM_DATA, step, at + 1).word[0] % (uint32_t)t->config.vocab);
    }
}

/* Window `sample` of step `number` (from 1). */
static void fill_window(const struct trainer *t, uint32_t number, int sample, int32_t *tokens, int32_t *targets)
{
    size_t bytes = (size_t)t->seq * sizeof *tokens, at = (size_t)sample * (size_t)t->seq;
    if (t->fixed) {
        memcpy(tokens, t->fixed->tokens + at, bytes);
        memcpy(targets, t->fixed->targets + at, bytes);
    } else if (t->data)
        dataset_window(t->data, strcmp(t->settings->order, "file") ? ORDER_SHUFFLE : ORDER_FILE,
                       (uint64_t)t->settings->seed, number - 1, sample, t->batch, t->seq, tokens, targets);
    else
        random_window(t, number, sample, tokens, targets);
}

static void finish_batch(const struct trainer *t, const struct batch *host)
{
    int n = (int)count_elements(host->tokens);
    sort_positions(tensor_memory(host->tokens), n, t->config.vocab, tensor_memory(host->order),
                   tensor_memory(host->start));
}

void prepare_batch(void *context, const struct task *task, uint32_t number)
{
    (void)task;
    struct feed *f = context;
    struct trainer *t = f->trainer;
    int32_t *tokens = tensor_memory(f->host.tokens), *targets = tensor_memory(f->host.targets);
    memset(tensor_memory(f->host.all), 0, f->host.all->bytes); /* sections are padded */
    for (int i = 0; i < t->micro_batch; i++) {
        int sample = f->rank * t->micros * t->micro_batch + f->micro * t->micro_batch + i;
        fill_window(t, number, sample, tokens + i * t->seq, targets + i * t->seq);
    }
    finish_batch(t, &f->host);
}

size_t first_window(const struct trainer *t, int rank, uint32_t number)
{
    return ((size_t)(number - 1) * (size_t)t->ranks + (size_t)rank) * (size_t)t->micro_batch;
}

/* Evaluation: iteration i takes the next micro_batch windows for each rank; what is left over stays zero. */
void prepare_evaluation(void *context, const struct task *task, uint32_t number)
{
    (void)task;
    struct feed *f = context;
    struct trainer *t = f->trainer;
    size_t first = first_window(t, f->rank, number), n = validation_windows(t->data, t->seq);
    int32_t *tokens = tensor_memory(f->host.tokens), *targets = tensor_memory(f->host.targets);
    memset(tensor_memory(f->host.all), 0, f->host.all->bytes);
    for (int i = 0; i < t->micro_batch && first + (size_t)i < n; i++)
        validation_window(t->data, first + (size_t)i, t->seq, tokens + i * t->seq, targets + i * t->seq);
    finish_batch(t, &f->host);
}

void prepare_sample(void *context, const struct task *task, uint32_t number)
{
    (void)task, (void)number;
    struct feed *f = context;
    struct trainer *t = f->trainer;
    memset(tensor_memory(f->host.all), 0, f->host.all->bytes);
    memcpy(tensor_memory(f->host.tokens), t->sample_tokens, f->host.tokens->bytes);
    *(int32_t *)tensor_memory(f->host.targets) = t->sample_position;
}

void add_batch(struct trainer *t, struct step *s, struct feed *f, host_function *prepare, int n)
{
    struct device *d = t->model->replica[f->rank].device;
    f->host = new_batch(t, t->machine->host, n, t->config.vocab);
    f->device = new_batch(t, d, n, t->config.vocab);
    f->host.all->persistent = true; /* bytes of its own: shared ones would hold up the next batch */
    s->stamp = (struct stamp){-1, f->micro, ROLE_FEED};
    struct task *task = add_host(s, t->machine->host->lane[LANE_CPU], "batch.prepare", prepare, f);
    add_access(task, f->host.all, ACCESS_WRITE);
    add_copy(s, d->lane[LANE_UPLOAD], "batch.upload", f->device.all, f->host.all);
}
