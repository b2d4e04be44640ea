/* feed.c - batches: the host tasks that prepare windows of tokens, and their upload. */
#include "train.h"

/* One tensor that is uploaded at once, in four sections: tokens (N), targets (N), order (N), start (V+1). */
static struct batch new_batch(struct trainer *t, struct device *d, int n)
{
    const int starts = t->config.vocab + 1;
    const size_t section = round_up((size_t)n, UNIT_ALIGN),
                 elements = 3 * section + round_up((size_t)starts, UNIT_ALIGN);
    struct tensor *all = new_tensor(t->pool, d, MEM_WORK, "batch", INT32, SHAPE((int64_t)elements));
    /* On the host it persists, so it shares its bytes with no other tensor.  If it did, the next batch could not be
     * prepared before the tasks that touch the other tensor have ended. */
    all->persistent = d->is_host;
    return (struct batch){.all = all,
                          .tokens = new_view(t->pool, all, "batch.tokens", 0, SHAPE(n)),
                          .targets = new_view(t->pool, all, "batch.targets", section, SHAPE(n)),
                          .order = new_view(t->pool, all, "batch.order", 2 * section, SHAPE(n)),
                          .start = new_view(t->pool, all, "batch.start", 3 * section, SHAPE(starts))};
}

/* All zeros: sections are padded.  Returns where its tokens are. */
static int32_t *clear_batch(const struct batch *b) { return memset(tensor_memory(b->all), 0, b->all->bytes); }

struct tensor *for_upload(struct trainer *t, struct task *made, const struct device *before, const struct device *d)
{
    struct tensor *last = made->access[made->n_access - 1].tensor, *other = last;
    if (before->context->index != d->context->index) {
        other = tensor_like(t->pool, last->device, last);
        other->persistent = true;
        add_access(made, other, ACCESS_WRITE);
    }
    return other;
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

/* The windows of step `number` (from 1).  Without data: tokens by the counter, so that a benchmark is the same
 * everywhere. */
void prepare_batch(void *context, const struct task *task, uint32_t number)
{
    const struct feed *f = context;
    const struct trainer *t = f->trainer;
    const struct settings *s = t->settings;
    int32_t *tokens = clear_batch(&f->host), *targets = tensor_memory(f->host.targets);
    for (int i = 0; i < t->micro_batch; i++, tokens += t->seq, targets += t->seq) {
        int sample = (f->rank * t->micros + f->micro) * t->micro_batch + i;
        for (int at = 0; at < t->seq && t->fixed_tokens; at++) {
            tokens[at] = t->fixed_tokens[sample * t->seq + at];
            targets[at] = t->fixed_targets[sample * t->seq + at];
        }
        for (int at = 0; at < t->seq && !t->fixed_tokens && !t->data; at++) {
            uint64_t draw = (uint64_t)sample * (uint64_t)(t->seq + 1) + (uint64_t)at;
            const uint32_t vocab = (uint32_t)t->config.vocab;
            tokens[at] = (int32_t)(random_words(1, STREAM_DATA, number, draw).word[0] % vocab);
            targets[at] = (int32_t)(random_words(1, STREAM_DATA, number, draw + 1).word[0] % vocab);
        }
        if (t->data)
            dataset_window(t->data, s->data.order, (uint64_t)s->seed, number - 1 + t->ahead, sample, t->batch, t->seq,
                           tokens, targets);
    }
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
    int32_t *tokens = clear_batch(&f->host), *targets = tensor_memory(f->host.targets);
    size_t first = first_window(t, f->rank, number), n = validation_windows(t->data, t->seq);
    for (int i = 0; i < t->micro_batch && first + (size_t)i < n; i++)
        validation_window(t->data, first + (size_t)i, t->seq, tokens + i * t->seq, targets + i * t->seq);
    sort_batch(f, task);
}

void prepare_sample(void *context, const struct task *task, uint32_t number)
{
    (void)number;
    struct feed *f = context;
    memcpy(clear_batch(&f->host), f->trainer->sample_tokens, (size_t)f->n * sizeof(int32_t));
    *(int32_t *)tensor_memory(f->host.targets) = f->trainer->sample_position;
    fill_others(task);
}

void add_batch(struct trainer *t, struct step *s, struct feed *f, int rank, int micro, host_function *prepare, int n)
{
    const int tp = t->mesh.tp, first = rank_at(&t->mesh, rank, 0),
              last = rank_at(&t->mesh, rank, n_stages(&t->mesh) - 1);
    *f = (struct feed){.trainer = t, .rank = rank, .micro = micro, .n = n, .host = new_batch(t, t->machine->host, n)};
    s->tags = (struct tags){-1, micro, ROLE_FEED};
    struct task *task = add_host(s, t->machine->host->lane[LANE_FEED], "batch.prepare", prepare, f);
    add_access(task, f->host.all, ACCESS_WRITE);
    f->first = allocate((size_t)(2 * tp), sizeof *f->first);
    f->last = last == first ? f->first : f->first + tp;
    for (int k = 0; k < (last == first ? tp : 2 * tp); k++) {
        struct device *d = t->model->replica[k < tp ? first + k : last + k - tp].device;
        f->first[k] = new_batch(t, d, n);
        struct tensor *from = for_upload(t, task, f->first[MAX(k - 1, 0)].all->device, d);
        add_copy(s, d->lane[LANE_UPLOAD], "batch.upload", f->first[k].all, from);
    }
}
