/* feed.c - batches: the host tasks that prepare windows of tokens, and their upload. */
#include "train.h"

/* One tensor that is uploaded at once, in four sections: tokens (N), targets (N), order (N), start (V+1). */
static size_t section_of(int n) { return round_up((size_t)n, UNIT_ALIGN); }

static struct tensor *new_batch(struct trainer *t, struct device *d, int n)
{
    size_t elements = 3 * section_of(n) + section_of(t->config.vocab + 1);
    return new_tensor(t->pool, d, MEM_WORK, "batch", INT32, SHAPE((int64_t)elements));
}

struct words { /* the sections on the host */
    int32_t *tokens, *targets, *order, *start;
};

/* The batch that the task writes, all zeros: sections are padded. */
static struct words clear_batch(const struct feed *f, const struct task *task)
{
    struct tensor *all = task->access[0].tensor;
    int32_t *word = memset(tensor_memory(all), 0, all->bytes);
    size_t section = section_of(f->n);
    return (struct words){word, word + section, word + 2 * section, word + 3 * section};
}

/* The windows of step `number` (from 1).  Without data: tokens by the counter, so that a benchmark is the same
 * everywhere. */
void prepare_batch(void *context, const struct task *task, uint32_t number)
{
    const struct feed *f = context;
    const struct trainer *t = f->trainer;
    const struct settings *s = t->settings;
    struct words w = clear_batch(f, task);
    for (int i = 0; i < t->micro_batch; i++) {
        int sample = (f->rank * t->micros + f->micro) * t->micro_batch + i;
        int32_t *tokens = w.tokens + i * t->seq, *targets = w.targets + i * t->seq;
        if (t->data) {
            dataset_window(t->data, s->order, (uint64_t)s->seed, number - 1 + t->ahead, sample, t->batch, t->seq,
                           tokens, targets);
            continue;
        }
        for (int at = 0; at < t->seq; at++) {
            uint64_t draw = (uint64_t)sample * (uint64_t)(t->seq + 1) + (uint64_t)at;
            const uint32_t vocab = (uint32_t)t->config.vocab;
            tokens[at] = t->fixed ? t->fixed->tokens[sample * t->seq + at]
                                  : (int32_t)(random_words(1, STREAM_DATA, number, draw).word[0] % vocab);
            targets[at] = t->fixed ? t->fixed->targets[sample * t->seq + at]
                                   : (int32_t)(random_words(1, STREAM_DATA, number, draw + 1).word[0] % vocab);
        }
    }
    sort_positions(w.tokens, f->n, t->config.vocab, w.order, w.start);
}

size_t first_window(const struct trainer *t, int rank, uint32_t number)
{
    return ((size_t)(number - 1) * (size_t)t->mesh.dp + (size_t)rank) * (size_t)t->micro_batch;
}

/* Evaluation: iteration i takes the next micro_batch windows for each rank; what is left over stays zero. */
void prepare_evaluation(void *context, const struct task *task, uint32_t number)
{
    struct feed *f = context;
    struct trainer *t = f->trainer;
    struct words w = clear_batch(f, task);
    size_t first = first_window(t, f->rank, number), n = validation_windows(t->data, t->seq);
    for (int i = 0; i < t->micro_batch && first + (size_t)i < n; i++)
        validation_window(t->data, first + (size_t)i, t->seq, w.tokens + i * t->seq, w.targets + i * t->seq);
    sort_positions(w.tokens, f->n, t->config.vocab, w.order, w.start);
}

void prepare_sample(void *context, const struct task *task, uint32_t number)
{
    (void)number;
    struct feed *f = context;
    struct words w = clear_batch(f, task);
    memcpy(w.tokens, f->trainer->sample_tokens, (size_t)f->n * sizeof *w.tokens);
    w.targets[0] = f->trainer->sample_position;
}

static struct batch upload_batch(struct trainer *t, struct step *s, int rank, struct tensor *host, int n)
{
    struct device *d = t->model->replica[rank].device;
    struct tensor *all = new_batch(t, d, n);
    size_t section = section_of(n);
    add_copy(s, d->lane[LANE_UPLOAD], "batch.upload", all, host);
    return (struct batch){.all = all,
                          .tokens = new_view(t->pool, all, "batch.tokens", 0, SHAPE(n)),
                          .targets = new_view(t->pool, all, "batch.targets", section, SHAPE(n)),
                          .order = new_view(t->pool, all, "batch.order", 2 * section, SHAPE(n)),
                          .start = new_view(t->pool, all, "batch.start", 3 * section, SHAPE(t->config.vocab + 1))};
}

void add_batch(struct trainer *t, struct step *s, struct feed *f, host_function *prepare, int n)
{
    int tp = t->mesh.tp, first = rank_at(&t->mesh, f->rank, 0),
        last = rank_at(&t->mesh, f->rank, n_stages(&t->mesh) - 1);
    struct tensor *host = new_batch(t, t->machine->host, n);
    host->persistent = true; /* bytes of its own: shared ones would hold up the next batch */
    f->n = n;
    s->tags = (struct tags){-1, f->micro, ROLE_FEED};
    struct task *task = add_host(s, t->machine->host->lane[LANE_FEED], "batch.prepare", prepare, f);
    add_access(task, host, ACCESS_WRITE);
    f->first = f->last = allocate((size_t)(2 * tp), sizeof *f->first);
    for (int k = 0; k < tp; k++)
        f->first[k] = upload_batch(t, s, first + k, host, n);
    if (last != first)
        f->last += tp;
    for (int k = 0; k < tp && last != first; k++)
        f->last[k] = upload_batch(t, s, last + k, host, n);
}

void free_feeds(struct feed *f, int n)
{
    for (int i = 0; f && i < n; i++)
        free(f[i].first);
    free(f);
}
