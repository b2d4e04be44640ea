/* trainer.c - opening a machine, a model and its lists by the settings, and running them. */
#include "train.h"

#include <math.h>
#include <unistd.h>

char *describe_shape(const struct trainer *t)
{
    char sizes[160];
    struct config c = t->config;
    c.seq_len = t->seq;
    return format_string("%s, batch %d in %d x %d on %d device%s", describe_sizes(sizes, &c), t->batch, t->micros,
                         t->micro_batch, t->machine->n_devices, t->machine->n_devices == 1 ? "" : "s");
}

static enum gemm_engine engine_of(const struct settings *s) { return (enum gemm_engine)chosen("gemm", s->gemm); }

const char *engine_name(const struct trainer *t)
{
    return choose_engine(&t->machine->device[0], engine_of(t->settings)) == GEMM_OWN ? "own" : "clblast";
}

double tokens_per_step(const struct trainer *t) { return (double)t->batch * t->seq; }

/* ---- mesh and sizes -------------------------------------------------------------------------------------------- */

static enum pipeline pipeline_of(const struct settings *s) { return (enum pipeline)chosen("pipeline", s->pipeline); }

/* Of this command, not recorded by the run that it resumes, whose mesh may have been another. */
static bool is_asked(const struct settings *s, const char *option) { return !s->resume || was_given(option); }

/* What --mesh asks for, of that many devices or, on paper, of its own number; layers are not cut yet. */
static struct mesh wanted_mesh(const struct settings *s, int devices)
{
    struct mesh m;
    if (s->resume && !s->mesh)
        m = resumed_mesh(s, devices);
    else
        must(parse_mesh(s->mesh, devices, &m));
    m.zero = (int)s->zero;
    const bool interleaved = pipeline_of(s) == PIPELINE_INTERLEAVED;
    if (interleaved && is_asked(s, "pipeline") && m.pp == 1)
        fail(EXIT_USAGE, "--pipeline interleaved: there is one stage; --mesh pp=N makes N of them");
    m.chunks = m.pp > 1 && interleaved ? 2 : 1;
    return m;
}

/* The mesh that the options ask of that many devices, or the end of the program; layers are not cut yet. */
static struct mesh mesh_for(const struct settings *s, int devices)
{
    struct mesh m = wanted_mesh(s, devices);
    int n = n_ranks(&m);
    if (n != devices) /* a mesh was given */
        fail(EXIT_USAGE, "--mesh %s needs %d devices, -d gives %d: name %d there, or use one as %d, such as -d 0:0x%d",
             s->mesh, n, devices, n, n, n);
    return m;
}

/* A twentieth of a second for each device's rate of multiply-adds.  Logical devices are one. */
static void measure_peaks(const struct machine *m)
{
    for (int i = 0; i < m->n_devices; i++) {
        struct device *d = &m->device[i];
        for (int k = 0; k < i; k++)
            if (m->device[k].cl == d->cl)
                d->flops_per_s = m->device[k].flops_per_s;
        if (d->flops_per_s == 0)
            d->flops_per_s = measure_fma_peak(d, 0.05);
    }
}

/* As they are asked for, or as a checkpoint records them, unless that is of another pipeline. */
static void set_stages(struct trainer *t)
{
    const struct settings *s = t->settings;
    bool asked = is_asked(s, "stages");
    if (asked && s->stages && t->mesh.pp == 1)
        fail(EXIT_USAGE, "--stages %s: there is one stage; --mesh pp=N makes N of them", s->stages);
    struct problem *p = cut_layers(&t->mesh, t->config.layers, s->stages);
    if (p && s->stages && !asked) {
        free(p), free_mesh(&t->mesh);
        p = cut_layers(&t->mesh, t->config.layers, NULL);
    }
    must(p);
}

static void set_mesh(struct trainer *t)
{
    t->mesh = mesh_for(t->settings, t->machine->n_devices);
    t->pipeline = pipeline_of(t->settings);
    set_stages(t);
    must(check_tp_ranks(&t->config, &t->mesh));
}

/* Micro-batches come in rounds of an interleaved pipeline and in groups of the gradient. */
static void check_micros(const struct trainer *t)
{
    int groups = (int)t->settings->grad_groups, round = t->mesh.chunks > 1 ? t->mesh.pp : 1, together = round;
    if (groups > 1 && t->mesh.dp > 1)
        fail(EXIT_USAGE,
             "--grad-groups %d stands for the groups of dp=%d on one device: with dp=%d add --grad-groups 1", groups,
             groups, t->mesh.dp);
    while (together % groups)
        together += round;
    int unit = t->mesh.dp * together, near = MAX((t->batch + unit / 2) / unit, 1) * unit;
    if (t->micros % together)
        fail(EXIT_USAGE, "%s wants a multiple of %d micro-batches, not %d: try --batch %d --micro-batch %d",
             groups > 1 ? "--grad-groups" : "--pipeline interleaved", together, t->micros, near, near / unit);
}

/* A list that only samples has one sequence, whatever the devices are. */
static void set_batch(struct trainer *t, bool samples_only)
{
    const struct settings *s = t->settings;
    t->batch = samples_only ? t->mesh.dp : (int)s->batch;
    t->seq = (int)s->seq_len;
    int share = t->batch / t->mesh.dp, micro = s->micro_batch ? (int)s->micro_batch : MAX(share, 1),
        unit = t->mesh.dp * micro;
    if (t->batch % unit) {
        int near = MAX((t->batch + unit / 2) / unit, 1) * unit;
        fail(EXIT_USAGE, "--batch %d is not a multiple of dp=%d x --micro-batch %d: %s %d", t->batch, t->mesh.dp, micro,
             near > 1e6 ? "use a smaller --micro-batch, such as" : "the nearest that works is", near > 1e6 ? 1 : near);
    }
    t->micro_batch = micro;
    t->micros = t->batch / unit;
    if ((double)t->micros * t->mesh.dp * t->config.layers > 1e5)
        fail(EXIT_USAGE,
             "--batch %d in micro-batches of %d, for %d layers, is a list of millions of tasks: use a larger "
             "--micro-batch",
             t->batch, micro, t->config.layers);
    check_micros(t);
    if ((double)micro * t->seq * MAX(4 * t->config.channels, t->config.vocab) > 2e9 ||
        (double)micro * t->config.heads * t->seq * t->seq > 2e9)
        fail(EXIT_USAGE, "--micro-batch %d with --seq-len %d makes a tensor of more than 2^31 elements: use a %s",
             micro, t->seq, micro > 1 ? "smaller --micro-batch" : "shorter --seq-len");
}

static void set_rate(struct trainer *t)
{
    const struct settings *s = t->settings;
    t->rate = (struct rate){.schedule = (enum rate_schedule)chosen("schedule", s->schedule),
                            .lr = s->lr,
                            .lr_min = s->lr_min,
                            .steps = s->steps,
                            .warmup = s->warmup};
    check_rate(&t->rate);
}

/* ---- opening --------------------------------------------------------------------------------------------------- */

/* Of the model that a run begins with; false: it says nothing of one. */
static bool source_tokenizer(const struct source *s, struct tokenizer *t)
{
    if (s->checkpoint)
        return *t = tokenizer_from_text(s->checkpoint->tokenizer, s->path), true;
    if (!s->path || has_magic(s->path, LLMC_MODEL_MAGIC))
        return false;
    struct safetensors *st = open_safetensors(s->path);
    const char *text = find_metadata(st, "yard.tokenizer");
    bool known = text;
    if (known)
        *t = tokenizer_from_text(text, s->path);
    close_safetensors(st);
    return known;
}

struct dataset *open_vocabulary(const struct source *model, int vocab)
{
    struct dataset *d = allocate(1, sizeof *d);
    d->vocab = vocab;
    if (!source_tokenizer(model, &d->tokenizer))
        d->tokenizer = (struct tokenizer){.kind = vocab == 256 ? TOKENS_BYTES : TOKENS_IDS, .n = vocab};
    if (d->tokenizer.n > vocab)
        fail(EXIT_FAILED, "%s: its tokenizer has %d tokens, its model only %d: the file is damaged", model->path,
             d->tokenizer.n, vocab);
    return d;
}

static struct dataset *open_data(const struct settings *s, int vocab)
{
    struct tokenizer tokenizer = {0};
    bool known = source_tokenizer(&s->source, &tokenizer);
    struct data_options o = {.data = s->data,
                             .val_data = s->val_data,
                             .val_share = s->val_share,
                             .chars = strcmp(s->tokens, "chars") == 0,
                             .order = (enum data_order)chosen("order", s->order),
                             .batch = (int)s->batch,
                             .seq_len = (int)s->seq_len,
                             .tokenizer = known ? &tokenizer : NULL,
                             .vocab = vocab};
    if (known && tokenizer.kind != TOKENS_IDS && was_given("tokens") && o.chars != (tokenizer.kind == TOKENS_CHARS))
        fail(EXIT_USAGE, "--tokens %s: %s was trained on %s, and knows no others: leave --tokens out", s->tokens,
             s->source.path, o.chars ? "bytes" : "chars");
    struct dataset *d = open_dataset(&o);
    free_tokenizer(&tokenizer);
    return d;
}

struct machine_options machine_options_of(const struct settings *s)
{
    return (struct machine_options){.devices = s->devices,
                                    .device_memory = s->device_memory,
                                    .host_memory = s->host_memory,
                                    .profiling = s->trace || s->view || s->pace || s->time_tasks,
                                    .vector = (unsigned)s->vector};
}

struct config config_of(const struct settings *s)
{
    if (s->source.path)
        return source_config(&s->source);
    return (struct config){(int)s->layers, (int)s->heads, (int)s->channels, (int)s->seq_len, (int)s->vocab, !s->untied};
}

/* Devices as -d says; or, planning for hardware that is described and without -d, on paper. */
static struct machine *make_machine(struct trainer *t)
{
    const struct settings *s = t->settings;
    struct machine_options o = machine_options_of(s);
    const char *file = s->pace ? s->pace : s->profile ? s->profile : s->hardware;
    t->costs = file ? read_costs(file) : s->costs;
    if (s->profile && !t->costs->measured)
        fail(EXIT_USAGE, "%s is a hardware description, not a profile: give it to --hardware", s->profile);
    o.separate = t->costs && !t->costs->measured; /* as on the hardware that is described */
    bool on_paper = s->hardware && !s->devices;
    struct machine *m =
        on_paper ? virtual_machine(t->costs, n_ranks(&(struct mesh[]){wanted_mesh(s, 1)}[0])) : open_machine(&o);
    for (int i = 0; i < m->n_devices && on_paper && s->device_memory; i++)
        m->device[i].budget = s->device_memory;
    if (on_paper && s->host_memory)
        m->host->budget = s->host_memory;
    if (s->what_if)
        apply_what_if(t->costs, m, s->what_if);
    return m;
}

/* The run is padded to the times that the list was simulated with. */
static void pace_training(struct trainer *t)
{
    char seconds[32];
    struct simulation *sim = must_simulate(t->train, t->costs);
    struct pace *p = start_pacing(t->train, sim->steady, sim->period, t->settings->pace_scale);
    clear_optimizer(t->model); /* the trial that finds the scale has trained on zeros */
    note("paced: a modelled step of %.3f ms is shown at %.4g times its length, %s per step", 1e3 * sim->period,
         p->scale, format_seconds(seconds, sim->period * p->scale));
    free_simulation(sim);
}

static double predicted_ns(void *trainer, const struct task *t)
{
    enum cost_source source;
    return 1e9 * task_seconds(((struct trainer *)trainer)->costs, t, &source);
}

static void trace_training(struct trainer *t, struct step **lists, size_t n)
{
    char *title = describe_shape(t), *path = trace_path(t->settings);
    double scale = t->settings->pace ? 1 / t->train->running->wrapper->scale : 1;
    struct trace_about about = {title, t->settings->pace ? TRACE_PACED : TRACE_REAL, scale,
                                t->costs ? predicted_ns : NULL, t};
    if (t->settings->view)
        measure_peaks(t->machine);
    t->trace = execution.trace = start_trace(path, t->machine, lists, n, &about);
    if (t->settings->view)
        show_trace(path, t->settings->log, !t->settings->trace);
    free(title), free(path);
}

struct trainer *new_trainer(const struct settings *s, unsigned lists, bool data_wanted, bool plan_only)
{
    struct config c = config_of(s);
    struct dataset *data = data_wanted ? open_data(s, s->source.path ? c.vocab : 0) : NULL;
    if (data && !s->source.path)
        c.vocab = data->vocab;
    check_config(&c);
    check_saved(s, &c);
    if (data && data->val.n == 0)
        lists &= ~(unsigned)LIST_EVAL;
    return new_trainer_for(s, &c, data, lists, plan_only);
}

static unsigned classes_of(const char *list)
{
    unsigned classes = 0;
    char *words = copy_string(list), *save = NULL;
    for (char *word = strtok_r(words, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        int class = 0;
        while (class < MEM_WORK && strcmp(memory_class_name[class], word) != 0)
            class ++;
        if (class == MEM_WORK)
            fail(EXIT_USAGE,
                 "--swap-what: '%s' is not a class; expected some of activations, gradients, optimizer, parameters, "
                 "with commas between",
                 word);
        classes |= 1u << class;
    }
    free(words);
    if (!classes)
        fail(EXIT_USAGE, "--swap-what names no class; expected some of activations, gradients, optimizer, parameters");
    return classes;
}

struct pass_options pass_options_of(const struct settings *s)
{
    return (struct pass_options){.snapshot = {.file = s->snapshot,
                                              .every = (int)s->snapshot_every,
                                              .slots = (int)s->snapshot_slots,
                                              .iterations = (int)s->iterations},
                                 .broadcast = {.queues = (int)s->queues,
                                               .slices = (int)s->slices,
                                               .at_random = strcmp(s->deal, "random") == 0,
                                               .seed = (uint64_t)s->seed,
                                               .main_sends = strcmp(s->main_queue, "both") == 0},
                                 .overlap = (enum overlap)chosen("overlap", s->overlap),
                                 .overlap_plan = s->overlap_plan,
                                 .paced = s->pace,
                                 .draw = s->delay_seed >= 0,
                                 .draw_seed = (uint64_t)s->delay_seed,
                                 .gather = s->zero == 3,
                                 .recompute = (enum recompute)chosen("recompute", s->recompute),
                                 .swap = (enum swap)chosen("swap", s->swap),
                                 .swap_what = classes_of(s->swap_what)};
}

/* Where parameters lie concerns all lists, all other passes only the one for training. */
static void rewrite_lists(struct trainer *t, struct pass_options w)
{
    w.gather &= t->mesh.dp > 1;
    struct step *others[] = {t->eval, t->sample};
    if (t->train)
        t->passes = run_passes(t->train, t->costs, &w, t->settings->after, &t->n_passes);
    for (size_t i = 0; i < COUNT(others); i++) {
        struct pass_report report = {0};
        if (others[i] && wants_gather(&w))
            run_gather(others[i], t->costs, &w, &report);
        if (others[i])
            fetch_state(others[i]);
        free(report.reason);
    }
}

static struct values *values_of(const struct trainer *t, const struct step *s)
{
    return s && t->settings->verify ? number_values(s) : NULL;
}

/* The lists that are wanted, into all[]; returns how many. */
static size_t build_lists(struct trainer *t, unsigned lists, struct step *all[3])
{
    enum gemm_engine engine = engine_of(t->settings);
    size_t n = 0;
    if (lists & LIST_TRAIN)
        build_train(t, engine), all[n++] = t->train;
    if (lists & LIST_EVAL)
        build_eval(t, engine), all[n++] = t->eval;
    if (lists & LIST_SAMPLE)
        build_sample(t, engine), all[n++] = t->sample;
    if (lists & KEEP_LOGITS)
        t->keep_logits->persistent = true;
    t->values = values_of(t, t->train);
    t->eval_values = values_of(t, t->eval), t->sample_values = values_of(t, t->sample);
    rewrite_lists(t, pass_options_of(t->settings));
    return n;
}

static void place_only(struct trainer *t, struct step **all, size_t n)
{
    must(place(t->pool, all, n, true));
    for (size_t i = 0; i < n; i++)
        depend(all[i], true);
}

/* How the training list is run: paced, delayed, traced. */
static void dress_training(struct trainer *t, struct step **all, size_t n)
{
    const struct settings *s = t->settings;
    if (s->pace)
        pace_training(t);
    if (s->delay_seed >= 0)
        start_delays(t->train, (uint64_t)s->delay_seed);
    if (s->save) { /* --trace and --log may lie in it */
        try_folder(s->save);
        t->lock = lock_folder("--save", s->save);
    }
    t->session = next_session(s);
    if (s->trace || s->view)
        trace_training(t, all, n);
}

struct trainer *new_trainer_for(const struct settings *s, const struct config *c, struct dataset *data, unsigned lists,
                                bool plan_only)
{
    struct trainer *t = allocate(1, sizeof *t);
    struct step *all[3];
    t->settings = s;
    t->data = data;
    t->config = *c;
    execution.serial = s->serial;
    execution.audit = s->audit;
    t->machine = make_machine(t);
    if (lists & KEEP_LOGITS && t->machine->n_devices > 1)
        fail(EXIT_USAGE, "yard check runs on one device: give a single one to -d");
    set_mesh(t);
    set_batch(t, lists == LIST_SAMPLE);
    if (lists & LIST_TRAIN) {
        set_rate(t);
        t->record = record_training(t);
        t->ahead = data_ahead(s);
    }
    if (t->costs && t->machine->device[0].cl)
        check_fingerprint(t->costs, &t->machine->device[0], engine_name(t));
    t->pool = new_pool(t->machine);
    t->model = new_model(t->pool, c, &t->mesh, (lists & LIST_TRAIN) != 0,
                         (struct gradients){.dropped = t->mesh.zero >= 2 && t->micros == 1,
                                            .grouped = s->grad_groups > 1 && (lists & LIST_TRAIN)});
    size_t n = build_lists(t, lists, all);
    if (plan_only) {
        place_only(t, all, n);
        return t;
    }
    must(finish_steps(t->pool, all, n));
    dress_training(t, all, n);
    return t;
}

void free_trainer(struct trainer *t)
{
    struct step *all[] = {t->train, t->eval, t->sample};
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i])
            stop_pacing(all[i]), drain(all[i]), free_step(all[i]);
    for (int i = 0; i < t->machine->n_lanes; i++) {
        stop_thread(&t->machine->lane[i]->thread);
        stop_thread(&t->machine->lane[i]->forward);
    }
    if (t->trace)
        trace_close(t->trace);
    execution.trace = NULL;
    free_values(t->values), free_values(t->eval_values), free_values(t->sample_values);
    free_reports(t->passes, t->n_passes);
    free_model(t->model);
    free_mesh(&t->mesh);
    free_pool(t->pool);
    close_machine(t->machine);
    if (t->costs && t->costs != t->settings->costs)
        free_costs(t->costs);
    json_decref(t->record);
    if (t->lock)
        close(t->lock);
    if (t->data)
        close_dataset(t->data);
    free_feeds(t->feeds, t->micros * t->mesh.dp), free_feeds(t->eval_feeds, t->mesh.dp), free_feeds(t->sample_feed, 1);
    free(t->rank_total);
    free(t->sample_tokens);
    free(t);
}

/* ---- running --------------------------------------------------------------------------------------------------- */

void run_step(struct trainer *t, uint32_t number) { execute(t->train, number); }

const struct result *step_result(struct trainer *t, uint32_t number)
{
    wait_task(t->train, t->report, number);
    struct result *r = &t->result[number % RESULTS];
    r->ended_ns = t->train->running->ended[number & 3];
    return r;
}

bool step_reported(struct trainer *t, uint32_t number)
{
    retire_ended(t->train);
    return is_computed(t->train, number) && !latest_run(t->train, t->report, number);
}

double evaluate(struct trainer *t, int64_t batches, void (*between)(void *), void *context)
{
    size_t windows = validation_windows(t->data, t->seq), per_round = (size_t)(t->mesh.dp * t->micro_batch);
    size_t rounds = ceil_div(windows, per_round);
    if (batches > 0)
        rounds = MIN(rounds, ceil_div((size_t)batches * (size_t)t->batch, per_round));
    t->eval_sum[0] = (struct losses){0};
    struct busy busy = {.what = "validating"};
    for (size_t i = 1; i <= rounds; i++) {
        show_busy(&busy, (double)(i - 1) / (double)rounds);
        execute(t->eval, (uint32_t)i);
        if (between)
            between(context);
    }
    drain(t->eval);
    end_busy(&busy);
    const struct losses *all = &t->eval_sum[rounds & 1];
    return all->n ? all->sum / (double)all->n : NAN;
}

/* ---- what is not finite ---------------------------------------------------------------------------------------- */

/* What to try, of what is not so already.  Before the first update, no setting of the optimizer can have done it. */
static char *advise(const struct trainer *t, uint32_t updates)
{
    const struct settings *s = t->settings;
    bool learns = updates > 0 && s->lr > 0;
    char *text = copy_string(!learns && s->init ? " is the file that --init names sound?" : "");
    if (learns)
        append_text(&text, " try a smaller --lr (it is %g)", s->lr);
    if (learns && s->warmup < 100 && s->warmup < s->steps - 1)
        append_text(&text, ", more --warmup (it is %lld)", (long long)s->warmup);
    if (learns && s->clip == 0)
        append_text(&text, ", --clip 1 (it is off)");
    if (learns && s->clip > 1)
        append_text(&text, ", --clip 1 (it is %g)", s->clip);
    if (learns && s->eps < 1e-10)
        append_text(&text, ", a larger --eps (it is %g)", s->eps);
    append_text(&text, "%s `yard check tests/data/gpt2-tiny.safetensors` tests the kernels", learns ? ";" : "");
    return text;
}

void explain_bad_model(const struct trainer *t, uint32_t step, const char *parameter)
{
    char *advice = advise(t, step);
    if (parameter)
        fail(EXIT_FAILED,
             "step %u: its update left values in parameter %s that are not finite, and nothing is saved;%s", step,
             parameter, advice);
    fail(EXIT_FAILED, "step %u: the validation loss is not finite, though all parameters are;%s", step, advice);
}

/* AdamW is halted by a norm or loss that is not finite, so the bad step can be run again from the same parameters, one
 * task at a time.  Without clipping it does not wait for the norm: where that alone is not finite, they have changed.
 */
void explain_not_finite(struct trainer *t, uint32_t number, const struct result *r)
{
    struct first_nan b;
    bool changed = !r->halted || (t->settings->clip == 0 && isfinite(r->loss));
    const char *unchanged = changed ? "" : " no parameter was changed by this step;";
    const char *before = r->halted && changed ? "when the step ran again (with --clip 0 no update waits for the norm)"
                                              : "before the step";
    char *advice = advise(t, number - 1);
    drain(t->train);
    write_tensor(t->model->replica[t->model->norm_rank].state, (float[STATE_SIZE]){0});
    if (!find_not_finite(t->train, number, &b))
        fail(EXIT_FAILED, "step %u: the loss or the gradient's norm is not finite, but running the step again it is;%s",
             number, advice);
    char layer[32] = "";
    if (b.task->layer >= 0)
        snprintf(layer, sizeof layer, ", layer %d", b.task->layer);
    if (b.before)
        fail(EXIT_FAILED, "step %u%s, task %s: reads element %zu of tensor %s, which was not finite %s;%s", number,
             layer, b.task->name, b.element, b.tensor->name, before, advice);
    fail(EXIT_FAILED, "step %u%s, task %s: element %zu of tensor %s is the first that is not finite;%s%s", number,
         layer, b.task->name, b.element, b.tensor->name, unchanged, advice);
}
