/* trainer.c - the machine, the model and the lists of tasks.
 *
 * The train list, per step:
 *
 *     control.prepare, control.upload      lr, Adam's corrections ...        host, each rank
 *     for each micro-batch, each rank:
 *         batch.prepare, batch.upload      the windows of tokens             host, each rank
 *         forward, backward
 *     sums over ranks, norm, AdamW, parameters to all ranks                  see optimizer.c
 *     report.* , report                    loss and norm                     each rank, host
 *
 * Everything of a step follows from its number, so nothing is kept between steps but the model.  The list is cyclic and
 * two steps may be in flight: the next batch is prepared on the host while the device computes this one.
 */
#include "train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- batches -------------------------------------------------------------------------------------------------------
 */

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

static void prepare_batch(void *context, const struct task *task, uint32_t number)
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

/* Evaluation: iteration i takes the next micro_batch windows for each rank; what is left over stays zero. */
static void prepare_evaluation(void *context, const struct task *task, uint32_t number)
{
    (void)task;
    struct feed *f = context;
    struct trainer *t = f->trainer;
    size_t first = ((size_t)(number - 1) * (size_t)t->ranks + (size_t)f->rank) * (size_t)t->micro_batch;
    int32_t *tokens = tensor_memory(f->host.tokens), *targets = tensor_memory(f->host.targets);
    memset(tensor_memory(f->host.all), 0, f->host.all->bytes);
    for (int i = 0; i < t->micro_batch && first + (size_t)i < validation_windows(t->data, t->seq); i++)
        validation_window(t->data, first + (size_t)i, t->seq, tokens + i * t->seq, targets + i * t->seq);
    finish_batch(t, &f->host);
}

static void prepare_sample(void *context, const struct task *task, uint32_t number)
{
    (void)task, (void)number;
    struct feed *f = context;
    struct trainer *t = f->trainer;
    memset(tensor_memory(f->host.all), 0, f->host.all->bytes);
    memcpy(tensor_memory(f->host.tokens), t->sample_tokens, f->host.tokens->bytes);
    *(int32_t *)tensor_memory(f->host.targets) = t->sample_position;
}

static void add_batch(struct trainer *t, struct step *s, struct feed *f, host_function *prepare, int n)
{
    struct device *d = t->model->replica[f->rank].device;
    f->host = new_batch(t, t->machine->host, n, t->config.vocab);
    f->device = new_batch(t, d, n, t->config.vocab);
    f->host.all->persistent = true; /* bytes of its own: shared ones would hold up the next batch */
    struct task *task = add_host(s, t->machine->host->lane[LANE_CPU], "batch.prepare", prepare, f);
    task->micro = f->micro;
    add_access(task, f->host.all, ACCESS_WRITE);
    add_copy(s, d->lane[LANE_UPLOAD], "batch.upload", f->device.all, f->host.all)->micro = f->micro;
}

/* ---- the control block
 * ------------------------------------------------------------------------------------------------- */

static void fill_control(const struct trainer *t, uint32_t number, float *c)
{
    const struct settings *s = t->settings;
    double lr = learning_rate(&t->rate, number);
    double correction1 = 1 - pow(s->beta1, number), correction2 = 1 - pow(s->beta2, number);
    const double values[CONTROL_FLOATS] = {
        lr,
        s->beta1,
        s->beta2,
        s->eps,
        s->weight_decay,
        correction1,
        correction2,
        s->clip,
        1 - s->beta1,
        1 - s->beta2,
        1 - lr * s->weight_decay,
        lr / correction1,
        1 / sqrt(correction2),
    };
    for (int i = 0; i < CONTROL_FLOATS; i++)
        c[i] = (float)values[i];
}

static void prepare_control(void *context, const struct task *task, uint32_t number)
{
    (void)task;
    struct trainer *t = context;
    fill_control(t, number, tensor_memory(t->control));
}

static void add_control(struct trainer *t)
{
    t->control = new_tensor(t->pool, t->machine->host, MEM_WORK, "control.host", FLOAT32, SHAPE(CONTROL_FLOATS));
    t->control->persistent = true;
    struct task *task = add_host(t->train, t->machine->host->lane[LANE_CPU], "control.prepare", prepare_control, t);
    add_access(task, t->control, ACCESS_WRITE);
    for (int r = 0; r < t->ranks; r++) {
        struct replica *replica = &t->model->replica[r];
        add_copy(t->train, replica->device->lane[LANE_UPLOAD], "control.upload", replica->control, t->control);
    }
}

/* ---- reports
 * --------------------------------------------------------------------------------------------------------------- */

double tokens_per_step(const struct trainer *t) { return (double)t->batch * t->seq; }

static void report(void *context, const struct task *task, uint32_t number)
{
    (void)task;
    struct trainer *t = context;
    const float *total = tensor_memory(t->totals), *state = tensor_memory(t->state);
    double sum = 0;
    for (int r = 0; r < t->ranks; r++)
        sum += total[r * UNIT_ALIGN];
    t->result[number & 3] = (struct result){.loss = sum / tokens_per_step(t),
                                            .norm = state[0],
                                            .lr = learning_rate(&t->rate, number),
                                            .halted = state[2] != 0,
                                            .ended_ns = now_ns()};
}

static void add_report(struct trainer *t)
{
    struct device *host = t->machine->host;
    t->totals = new_tensor(t->pool, host, MEM_WORK, "report.totals", FLOAT32, SHAPE(t->ranks, UNIT_ALIGN));
    t->state = new_tensor(t->pool, host, MEM_WORK, "report.state", FLOAT32, SHAPE(4));
    t->totals->persistent = t->state->persistent = true;
    struct tensor **part = allocate((size_t)t->ranks, sizeof *part);
    for (int r = 0; r < t->ranks; r++) {
        part[r] = new_view(t->pool, t->totals, "report.total", (size_t)r * UNIT_ALIGN, SHAPE(1));
        add_copy(t->train, t->model->replica[r].device->lane[LANE_DOWNLOAD], "report.loss", part[r], t->rank_total[r]);
    }
    struct replica *first = &t->model->replica[0];
    add_copy(t->train, first->device->lane[LANE_DOWNLOAD], "report.norm", t->state, first->state);
    struct task *task = add_host(t->train, host->lane[LANE_REPORT], "report", report, t);
    for (int r = 0; r < t->ranks; r++)
        add_access(task, part[r], ACCESS_READ);
    add_access(task, t->state, ACCESS_READ);
    free(part);
}

static void report_evaluation(void *context, const struct task *task, uint32_t number)
{
    (void)task;
    struct trainer *t = context;
    for (int r = 0; r < t->ranks; r++) {
        const float *losses = tensor_memory(t->eval_losses[r]);
        size_t first = ((size_t)(number - 1) * (size_t)t->ranks + (size_t)r) * (size_t)t->micro_batch;
        int32_t *scratch = allocate(2 * (size_t)t->seq, sizeof *scratch);
        for (int i = 0; i < t->micro_batch && first + (size_t)i < validation_windows(t->data, t->seq); i++) {
            int counted = validation_window(t->data, first + (size_t)i, t->seq, scratch, scratch + t->seq);
            for (int k = t->seq - counted; k < t->seq; k++)
                t->eval_sum += losses[i * t->seq + k];
            t->eval_counted += (uint64_t)counted;
        }
        free(scratch);
    }
}

/* ---- the lists
 * ------------------------------------------------------------------------------------------------------------------ */

static void build_train(struct trainer *t, enum gemm_engine engine)
{
    t->train = new_step(t->pool, "train");
    struct build b = new_build(t->train, t->model, engine, true);
    int n = t->micro_batch * t->seq;
    t->feeds = allocate((size_t)(t->ranks * t->micros), sizeof *t->feeds);
    t->rank_total = allocate((size_t)t->ranks, sizeof *t->rank_total);
    add_control(t);
    for (int r = 0; r < t->ranks; r++)
        t->rank_total[r] = new_tensor(t->pool, t->model->replica[r].device, MEM_WORK, "loss.total", FLOAT32, SHAPE(1));
    for (int micro = 0; micro < t->micros; micro++)
        for (int r = 0; r < t->ranks; r++) {
            struct feed *f = &t->feeds[micro * t->ranks + r];
            *f = (struct feed){.trainer = t, .rank = r, .micro = micro};
            add_batch(t, t->train, f, prepare_batch, n);
            start_micro_batch(&b, r, micro, t->micro_batch, t->seq);
            struct tensor *logits = gpt_forward(&b, &f->device);
            if (r == 0 && micro == 0)
                t->keep_logits = logits;
            cross_entropy(&b, logits, &f->device, t->rank_total[r], tokens_per_step(t));
            backward(&b);
        }
    add_update(&b);
    add_report(t);
    end_build(&b);
}

static void build_eval(struct trainer *t, enum gemm_engine engine)
{
    t->eval = new_step(t->pool, "eval");
    struct build b = new_build(t->eval, t->model, engine, false);
    int n = t->micro_batch * t->seq;
    struct task *task;
    t->eval_feeds = allocate((size_t)t->ranks, sizeof *t->eval_feeds);
    t->eval_losses = allocate((size_t)t->ranks, sizeof *t->eval_losses);
    for (int r = 0; r < t->ranks; r++) {
        struct feed *f = &t->eval_feeds[r];
        *f = (struct feed){.trainer = t, .rank = r};
        add_batch(t, t->eval, f, prepare_evaluation, n);
        start_micro_batch(&b, r, 0, t->micro_batch, t->seq);
        struct tensor *losses = cross_entropy(&b, gpt_forward(&b, &f->device), &f->device, NULL, 1);
        t->eval_losses[r] = new_tensor(t->pool, t->machine->host, MEM_WORK, "eval.losses", FLOAT32, SHAPE(n));
        add_copy(t->eval, b.device->lane[LANE_DOWNLOAD], "eval.download", t->eval_losses[r], losses);
    }
    task = add_host(t->eval, t->machine->host->lane[LANE_REPORT], "eval.report", report_evaluation, t);
    for (int r = 0; r < t->ranks; r++)
        add_access(task, t->eval_losses[r], ACCESS_READ);
    end_build(&b);
}

/* One sequence on rank 0; only the last token's hidden row goes through the head. */
static void build_sample(struct trainer *t, enum gemm_engine engine)
{
    t->sample = new_step(t->pool, "sample");
    struct build b = new_build(t->sample, t->model, engine, false);
    t->sample_feed = allocate(1, sizeof *t->sample_feed);
    *t->sample_feed = (struct feed){.trainer = t};
    t->sample_tokens = allocate((size_t)t->seq, sizeof *t->sample_tokens);
    add_batch(t, t->sample, t->sample_feed, prepare_sample, t->seq);
    start_micro_batch(&b, 0, 0, 1, t->seq);
    struct tensor *hidden = gpt_hidden(&b, &t->sample_feed->device);
    struct tensor *row = activation(&b, "last", SHAPE(1, t->config.channels));
    LAUNCH(&b, "last", "elementwise.cl", "pick_row", groups(&b, 1), OUT(row), IN(hidden),
           IN(t->sample_feed->device.targets), INT(t->config.channels));
    struct tensor *logits = linear(&b, "head", row, b.replica->other[HEAD], (struct weight){0});
    t->sample_logits = new_tensor(t->pool, t->machine->host, MEM_WORK, "logits.host", FLOAT32, SHAPE(t->config.vocab));
    t->sample_logits->persistent = true;
    add_copy(t->sample, b.device->lane[LANE_DOWNLOAD], "logits.download", t->sample_logits, logits);
    end_build(&b);
}

/* ---- mesh and sizes
 * ----------------------------------------------------------------------------------------------------------------- */

/* "dp=A,pp=B,tp=C" in any order, an omitted axis being 1. */
static void parse_mesh(const char *mesh, int axis[3])
{
    static const char *const names[] = {"dp=", "pp=", "tp="};
    axis[0] = axis[1] = axis[2] = 1;
    for (const char *at = mesh; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char *end = NULL;
        for (int i = 0; i < 3; i++)
            if (strncmp(at, names[i], 3) == 0)
                axis[i] = (int)strtol(at + 3, &end, 10);
        if (!end || end == at + 3 || (*end && *end != ','))
            fail(EXIT_USAGE, "--mesh %s: expected dp=A,pp=B,tp=C with numbers; an omitted axis is 1", mesh);
    }
}

static void check_mesh(const struct trainer *t)
{
    int axis[3], n = t->machine->n_devices;
    if (!t->settings->mesh)
        return;
    parse_mesh(t->settings->mesh, axis);
    if (axis[1] != 1 || axis[2] != 1)
        fail(EXIT_USAGE, "--mesh %s: this version trains data-parallel only; use --mesh dp=%d", t->settings->mesh, n);
    if (axis[0] != n)
        fail(EXIT_USAGE, "--mesh %s needs %d devices, -d gives %d", t->settings->mesh, axis[0], n);
}

static void set_batch(struct trainer *t)
{
    const struct settings *s = t->settings;
    t->batch = (int)s->batch;
    t->seq = (int)s->seq_len;
    int share = t->batch / t->ranks, micro = s->micro_batch ? (int)s->micro_batch : MAX(share, 1),
        unit = t->ranks * micro;
    if (t->batch % unit) {
        int near = MAX((t->batch + unit / 2) / unit, 1) * unit;
        fail(EXIT_USAGE, "--batch %d is not a multiple of %d devices x --micro-batch %d: the nearest that works is %d",
             t->batch, t->ranks, micro, near);
    }
    t->micro_batch = micro;
    t->micros = t->batch / unit;
    if ((double)micro * t->seq * MAX(4 * t->config.channels, t->config.vocab) > 2e9 ||
        (double)micro * t->config.heads * t->seq * t->seq > 2e9)
        fail(EXIT_USAGE, "--micro-batch %d makes a tensor of more than 2^31 elements: use a smaller one", micro);
}

static void set_rate(struct trainer *t)
{
    const struct settings *s = t->settings;
    static const char *const names[] = {
        [RATE_CONSTANT] = "constant", [RATE_COSINE] = "cosine", [RATE_LINEAR] = "linear", [RATE_WSD] = "wsd"};
    t->rate = (struct rate){
        .lr = s->lr, .lr_min = s->lr_min, .steps = s->steps, .warmup = s->warmup, .decay_share = s->decay_share};
    for (size_t i = 0; i < COUNT(names); i++)
        if (strcmp(names[i], s->schedule) == 0)
            t->rate.schedule = (enum rate_schedule)i;
    check_rate(&t->rate);
}

static enum gemm_engine engine_of(const struct settings *s)
{
    return strcmp(s->gemm, "own") == 0 ? GEMM_OWN : strcmp(s->gemm, "clblast") == 0 ? GEMM_CLBLAST : GEMM_AUTO;
}

/* ---- opening
 * --------------------------------------------------------------------------------------------------------------------------
 */

static struct tokenizer *file_tokenizer(const char *path)
{
    if (has_magic(path, LLMC_MODEL_MAGIC))
        return NULL;
    struct safetensors *st = open_safetensors(path);
    const char *text = find_metadata(st, "yard.tokenizer");
    struct tokenizer *t = text ? allocate(1, sizeof *t) : NULL;
    if (text)
        *t = tokenizer_from_text(text, path);
    close_safetensors(st);
    return t;
}

struct dataset *open_vocabulary(const char *model_path, int vocab)
{
    struct dataset *d = allocate(1, sizeof *d);
    struct tokenizer *t = file_tokenizer(model_path);
    d->vocab = vocab;
    d->tokenizer = t ? *t : (struct tokenizer){.kind = vocab == 256 ? TOKENS_BYTES : TOKENS_IDS, .n = vocab};
    free(t);
    return d;
}

static struct dataset *open_data(const struct settings *s, int vocab)
{
    struct tokenizer *tokenizer = s->init ? file_tokenizer(s->init) : NULL;
    struct data_options o = {.data = s->data,
                             .val_data = s->val_data,
                             .val_share = s->val_share,
                             .chars = strcmp(s->tokens, "chars") == 0,
                             .order = strcmp(s->order, "file") ? ORDER_SHUFFLE : ORDER_FILE,
                             .batch = (int)s->batch,
                             .seq_len = (int)s->seq_len,
                             .tokenizer = tokenizer,
                             .vocab = vocab};
    struct dataset *d = open_dataset(&o);
    if (tokenizer)
        free_tokenizer(tokenizer);
    free(tokenizer);
    return d;
}

struct trainer *new_trainer(const struct settings *s, unsigned lists, bool data_wanted, bool plan_only)
{
    struct config c = {(int)s->layers, (int)s->heads, (int)s->channels, (int)s->seq_len, 256, !s->untied};
    if (s->init)
        c = read_config(s->init);
    struct dataset *data = data_wanted ? open_data(s, s->init ? c.vocab : 0) : NULL;
    if (data && !s->init)
        c.vocab = data->vocab;
    if (data && data->val.n == 0)
        lists &= ~(unsigned)LIST_EVAL;
    return new_trainer_for(s, &c, data, lists, plan_only);
}

struct trainer *new_trainer_for(const struct settings *s, const struct config *c, struct dataset *data, unsigned lists,
                                bool plan_only)
{
    struct trainer *t = allocate(1, sizeof *t);
    struct machine_options o = {s->devices, s->device_memory, s->host_memory, s->trace != NULL, s->oversubscribe};
    t->settings = s;
    t->data = data;
    t->config = *c;
    execution.serial = s->serial;
    execution.audit = s->audit;
    execution.watchdog_seconds = s->serial ? 0 : s->watchdog;
    t->machine = open_machine(&o);
    t->ranks = t->machine->n_devices;
    check_mesh(t);
    set_batch(t);
    if (lists & LIST_TRAIN)
        set_rate(t);
    t->pool = new_pool(t->machine);
    t->model = new_model(t->pool, c, t->ranks, (lists & LIST_TRAIN) != 0);
    struct step *all[3];
    size_t n = 0;
    if (lists & LIST_TRAIN)
        build_train(t, engine_of(s)), all[n++] = t->train;
    if (lists & LIST_EVAL)
        build_eval(t, engine_of(s)), all[n++] = t->eval;
    if (lists & LIST_SAMPLE)
        build_sample(t, engine_of(s)), all[n++] = t->sample;
    if (lists & KEEP_LOGITS)
        t->keep_logits->persistent = true;
    if (plan_only) {
        place(t->pool, all, n, true);
        for (size_t i = 0; i < n; i++)
            depend(all[i], true);
        return t;
    }
    finish_steps(t->pool, all, n);
    if (s->trace && *s->trace) {
        char *title = format_string("%d layers, %d heads, %d channels, seq-len %d, batch %d, %d device%s", c->layers,
                                    c->heads, c->channels, t->seq, t->batch, t->ranks, t->ranks == 1 ? "" : "s");
        t->trace = execution.trace = start_trace(s->trace, t->machine, all, n, title);
        free(title);
    }
    return t;
}

void free_trainer(struct trainer *t)
{
    struct step *all[] = {t->train, t->eval, t->sample};
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i])
            free_step(all[i]);
    for (int i = 0; i < t->machine->n_lanes; i++) {
        stop_thread(&t->machine->lane[i].thread);
        stop_thread(&t->machine->lane[i].forward);
    }
    if (t->trace)
        trace_close(t->trace);
    execution.trace = NULL;
    free_model(t->model);
    free_pool(t->pool);
    close_machine(t->machine);
    if (t->data)
        close_dataset(t->data);
    free(t->feeds), free(t->eval_feeds), free(t->sample_feed), free(t->rank_total), free(t->eval_losses);
    free(t->sample_tokens);
    free(t);
}

/* ---- running
 * ------------------------------------------------------------------------------------------------------------------------------
 */

void run_step(struct trainer *t, uint32_t number) { execute(t->train, number); }

const struct result *step_result(struct trainer *t, uint32_t number)
{
    wait_iteration(t->train, number);
    return &t->result[number & 3];
}

double evaluate(struct trainer *t, int64_t batches)
{
    size_t windows = validation_windows(t->data, t->seq), per_round = (size_t)(t->ranks * t->micro_batch);
    size_t rounds = ceil_div(windows, per_round);
    if (batches > 0)
        rounds = MIN(rounds, ceil_div((size_t)batches * (size_t)t->batch, per_round));
    t->eval_sum = 0;
    t->eval_counted = 0;
    for (size_t i = 1; i <= rounds; i++)
        execute(t->eval, (uint32_t)i);
    drain(t->eval);
    return t->eval_counted ? t->eval_sum / (double)t->eval_counted : NAN;
}

/* The bad step changed no parameter (AdamW is halted), so it can be run again, one task at a time. */
void explain_not_finite(struct trainer *t, uint32_t number)
{
    const struct task *task;
    const struct tensor *tensor;
    size_t element;
    drain(t->train);
    write_tensor(t->model->replica[0].state, (float[4]){0});
    const char *hint = "try a smaller --lr, more --warmup, or --clip 1";
    if (!find_not_finite(t->train, number, &task, &tensor, &element))
        fail(EXIT_FAILED,
             "step %u: the loss or the gradient's norm is not finite, but running the step again it is; %s", number,
             hint);
    fail(EXIT_FAILED,
         "step %u, layer %d, task %s: element %zu of tensor %s is the first that is not finite; no parameter was "
         "changed by this step; %s",
         number, task->layer, task->name, element, tensor->name, hint);
}
