/* test_train.c - training runs: what gives the same bits and what comes close, what is logged and saved, and how a run
 * ends when it is stopped or diverges.
 */
#include "support.h"

#include <math.h>
#include <signal.h>
#include <time.h>

/* ---- runs inside this program ----------------------------------------------------------------------------------- */

struct variant { /* how a run is made; what is 0 stays at the default */
    const char *devices;
    enum gemm_engine gemm;
    int batch, micro_batch, steps;
    bool serial, audit, apart, untied;
};

static struct settings *tiny_settings(const struct variant *v)
{
    struct settings *s = parse_settings(CMD_TRAIN, 0, NULL);
    s->layers = 2, s->heads = 2, s->channels = 32, s->seq_len = 16;
    s->batch = v->batch ? v->batch : 4;
    s->micro_batch = v->micro_batch;
    s->devices = v->devices ? v->devices : "0:0";
    s->gemm = v->gemm ? v->gemm : GEMM_OWN;
    s->serial = v->serial;
    s->audit = v->audit;
    s->untied = v->untied;
    s->warmup = 2;
    return s;
}

static struct trainer *open_trainer(const struct variant *v)
{
    contexts_apart(v->apart);
    struct trainer *t = new_trainer(tiny_settings(v), LIST_TRAIN | LIST_EVAL, true, false);
    contexts_apart(false);
    init_random(t->model, 1337);
    return t;
}

/* Two steps in flight, as in the loop. */
static struct state run_variant(const struct variant *v)
{
    struct trainer *t = open_trainer(v);
    uint32_t steps = (uint32_t)(v->steps ? v->steps : 6);
    for (uint32_t number = 1; number <= steps; number++)
        run_step(t, number);
    assert_true(isfinite(step_result(t, steps)->loss));
    drain(t->train);
    expect_equal_replicas(t, "replica");
    for (int i = 0; i <= t->machine->n_devices; i++)
        assert_int_equal(damaged_guards(&t->machine->device[i]), 0);
    struct state s = read_state(t, 0);
    free_trainer(t);
    return s;
}

/* After the same steps: all parameters and all of Adam's state, to the bit. */
static void expect_same_run(const char *what, const struct variant *a, const struct variant *b)
{
    struct state x = run_variant(a), y = run_variant(b);
    assert_int_equal(x.n, y.n);
    expect_same_bits(what, x.values, y.values, x.n);
    free(x.values), free(y.values);
}

static void expect_near_run(const char *what, const struct variant *a, const struct variant *b, double tolerance)
{
    struct state x = run_variant(a), y = run_variant(b);
    double distance = relative_distance(x.values, y.values, x.n_parameters);
    if (!(distance <= tolerance))
        test_failed("%s: parameters are %g apart, expected at most %g\n", what, distance, tolerance);
    if (memcmp(x.values, y.values, x.n * sizeof *x.values) == 0)
        test_failed("%s: the bits are the same, so both runs are one\n", what);
    free(x.values), free(y.values);
}

TEST(serial_gives_the_same_bits)
{
    expect_same_run("one device", &(struct variant){.micro_batch = 2},
                    &(struct variant){.micro_batch = 2, .serial = true});
    expect_same_run("untied", &(struct variant){.untied = true}, &(struct variant){.untied = true, .serial = true});
    expect_same_run("two devices", &(struct variant){.devices = two_devices()},
                    &(struct variant){.devices = two_devices(), .serial = true});
}

TEST(audit_gives_the_same_bits)
{
    struct variant v = {.devices = two_devices(), .micro_batch = 1, .steps = 2}, audited = v;
    audited.serial = audited.audit = true;
    expect_same_run("audit", &v, &audited);
}

TEST(micro_batches_give_the_bits_of_one_batch)
{
    for (int micro = 1; micro <= 4; micro *= 2) {
        expect_same_run("tied", &(struct variant){.micro_batch = micro}, &(struct variant){0});
        expect_same_run("untied", &(struct variant){.micro_batch = micro, .untied = true},
                        &(struct variant){.untied = true});
    }
    expect_same_run("two devices", &(struct variant){.devices = two_devices(), .batch = 6, .micro_batch = 1},
                    &(struct variant){.devices = two_devices(), .batch = 6});
}

/* The gradient is summed in another order, so it differs by rounding, about 1e-7; Adam divides by the gradient's size
 * and magnifies this where it is nearly zero.  (Found: 1.2e-7 after six steps.) */
TEST(two_devices_train_like_one)
{
    expect_near_run("two devices", &(struct variant){.devices = two_devices()}, &(struct variant){0}, 1e-5);
}

/* Staged through the host and forwarded by threads, or shared: the same bits.  Likewise one core each or both shared.
 */
TEST(ways_of_cutting_a_device_give_the_same_bits)
{
    struct variant shared = {.devices = two_devices()}, apart = {.devices = two_devices(), .apart = true},
                   logical = {.devices = "0:0x2"};
    struct variant apart_serial = {.devices = two_devices(), .apart = true, .serial = true};
    expect_same_run("separate contexts", &apart, &shared);
    expect_same_run("separate contexts, serial", &apart_serial, &shared);
    expect_same_run("logical devices", &logical, &shared);
}

TEST(three_devices)
{
    struct variant shared = {.devices = "0:0x3", .batch = 6}, apart = {.devices = "0:0x3", .batch = 6, .apart = true};
    expect_same_run("three devices", &apart, &shared);
}

TEST(clblast_trains_alike)
{
    expect_near_run("clblast", &(struct variant){.gemm = GEMM_CLBLAST, .steps = 3}, &(struct variant){.steps = 3},
                    1e-5);
    expect_same_run("clblast, serial", &(struct variant){.gemm = GEMM_CLBLAST, .steps = 3},
                    &(struct variant){.gemm = GEMM_CLBLAST, .steps = 3, .serial = true});
}

TEST(every_list_verifies)
{
    const struct variant variants[] = {{.micro_batch = 1},
                                       {.devices = two_devices(), .untied = true},
                                       {.devices = "0:0x4", .apart = true},
                                       {.gemm = GEMM_CLBLAST}};
    for (size_t i = 0; i < COUNT(variants); i++) {
        struct trainer *t = open_trainer(&variants[i]);
        struct step *lists[] = {t->train, t->eval};
        for (size_t k = 0; k < COUNT(lists); k++) {
            expect_sound(lasting("variant %zu, list %s", i, lists[k]->name), lists[k], NULL);
        }
        free_trainer(t);
    }
}

/* ---- what is not finite ----------------------------------------------------------------------------------------- */

static void poke(struct trainer *t, const char *name, size_t at, float value)
{
    for (int i = 0; i < t->model->params->n; i++) {
        const struct param *p = &t->model->params->param[i];
        if (strcmp(p->name, name) != 0)
            continue;
        float *values = allocate((size_t)(p->shape[0] * p->shape[1]), sizeof *values);
        read_param(t->model, i, KEPT_VALUE, values);
        values[at] = value;
        write_param(t->model, i, KEPT_VALUE, values);
        free(values);
        return;
    }
    test_failed("there is no parameter %s\n", name);
}

/* Two good steps, then an infinite weight: the steps from there on change neither parameters nor Adam's state. */
TEST(a_bad_step_changes_nothing)
{
    struct trainer *t = open_trainer(&(struct variant){.devices = two_devices()});
    run_step(t, 1), run_step(t, 2);
    drain(t->train);
    poke(t, "h.1.mlp.c_fc.weight", 5, INFINITY);
    struct state before = read_state(t, 0);
    run_step(t, 3), run_step(t, 4);
    const struct result *r = step_result(t, 3);
    assert_true(r->halted && !isfinite(r->norm));
    drain(t->train);
    struct state after = read_state(t, 0);
    expect_same_bits("state after a bad step", after.values, before.values, before.n);
    expect_equal_replicas(t, "replica");
    free(before.values), free(after.values);
    free_trainer(t);
}

/* An infinite loss with gradients that are finite: the fault of a kernel that someone has changed. */
TEST(a_bad_loss_changes_nothing)
{
    const char *folder = temp_path("kernels");
    char *line =
        lasting("cp -r cl '%s' && sed -i 's/total.0. = sum/total[0] = sum + INFINITY/' '%s/loss.cl'", folder, folder);
    assert_int_equal(system(line), 0); /* NOLINT */
    setenv("YARD_KERNELS", folder, 1);
    const char *devices[] = {"0:0", two_devices()};
    for (size_t i = 0; i < COUNT(devices); i++) {
        struct trainer *t = open_trainer(&(struct variant){.devices = devices[i]});
        struct state before = read_state(t, 0);
        run_step(t, 1), run_step(t, 2);
        const struct result *r = step_result(t, 1);
        assert_true(r->halted && isfinite(r->norm) && !isfinite(r->loss));
        drain(t->train);
        struct state after = read_state(t, 0);
        expect_same_bits("state after a bad loss", after.values, before.values, before.n);
        free(before.values), free(after.values);
        free_trainer(t);
    }
    unsetenv("YARD_KERNELS");
}

static void expect_run(const struct ran *r, int code, const char *part)
{
    if (r->code != code || (!strstr(r->err, part) && !strstr(r->out, part)))
        test_failed("expected exit code %d and \"%s\"; got %d and:\n%s\n%s\n", code, part, r->code, r->out, r->err);
}

/* Overwrite n floats of a tensor in a file. */
static void poke_file(const char *path, const char *name, size_t at, size_t n, float value)
{
    struct safetensors *st = open_safetensors(path);
    const struct st_tensor *tensor = find_tensor(st, name);
    FILE *f = fopen(path, "r+b");
    assert_true(f && tensor && at + n <= st_elements(tensor));
    assert_int_equal(fseek(f, (long)(tensor->offset + at * sizeof value), SEEK_SET), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(fwrite(&value, sizeof value, 1, f), 1);
    fclose(f);
    close_safetensors(st);
}

/* A file with a model of which n floats are `value`; training itself would not save such a thing. */
static void save_with(const char *path, const struct variant *v, const char *name, size_t at, size_t n, float value)
{
    struct trainer *t = open_trainer(v);
    save_model(t->model, path, "bytes", 0);
    free_trainer(t);
    poke_file(path, name, at, n, value);
}

static void save_poisoned(const char *path, const char *name)
{
    save_with(path, &(struct variant){0}, name, 7, 1, INFINITY);
}

TEST(the_culprit_is_named)
{
    const char *path = temp_path("poisoned.safetensors");
    save_poisoned(path, "h.1.mlp.c_fc.weight");
    const char *modes[] = {"", "--serial", "-d 0:0x2", "--micro-batch 1"};
    for (size_t i = 0; i < COUNT(modes); i++) {
        struct ran r = expect_yard(EXIT_FAILED, "step 1, layer 1, task mlp.fc: reads element ",
                                   "train --init '%s' --batch 4 --steps 3 --seq-len 16 %s", path, modes[i]);
        expect_run(&r, 1, "which was not finite before the step");
    }
}

/* Squares overflow, and gradients and losses do not.  Without clipping the step has been made by then. */
TEST(a_norm_alone_is_not_finite)
{
    const char *path = temp_path("steep.safetensors");
    save_with(path, &(struct variant){0}, "ln_f.weight", 0, 32, 1e25f);
    struct ran r = expect_yard(EXIT_FAILED, "no parameter was changed by this step",
                               "train --init '%s' --batch 4 --steps 3 --seq-len 16", path);
    r = expect_yard(EXIT_FAILED, "not finite", "train --init '%s' --batch 4 --steps 3 --seq-len 16 --clip 0", path);
    if (strstr(r.err, "no parameter was changed"))
        test_failed("%s", r.err);
}

TEST(divergence_stops_the_run)
{
    expect_yard(EXIT_FAILED, "is not finite",
                "train --model tiny --steps 40 --lr 1000 --clip 0 --warmup 0 --schedule constant --log '%s'",
                temp_path("diverged.jsonl"));
}

/* All lines of a log, each of them one JSON object. */
static json_t *read_log(const char *path)
{
    json_t *lines = json_array();
    char text[16384];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(text, sizeof text, f)) {
        json_error_t error;
        json_t *line = json_loads(text, JSON_REJECT_DUPLICATES, &error);
        if (!json_is_object(line) || text[strlen(text) - 1] != '\n')
            test_failed("%s: not one object: %s (%s)\n", path, text, error.text);
        json_array_append_new(lines, line);
    }
    fclose(f);
    return lines;
}

static double field(const json_t *line, const char *name)
{
    const json_t *value = json_object_get(line, name);
    if (!json_is_number(value))
        test_failed("no number \"%s\" in a line of the log\n", name);
    return json_number_value(value);
}

/* The loss and the norm are those of the positions that are used: only the look before saving finds the bad one. */
TEST(a_bad_model_is_not_saved)
{
    const char *init = temp_path("bad.safetensors"), *folder = temp_path("good");
    char *good = lasting("%s/model.safetensors", folder);
    expect_yard(EXIT_OK, "", "train --model tiny --seq-len 16 --steps 2 --sample-tokens 0 --val-batches 1 --save '%s'",
                folder);
    size_t size, after_size;
    char *before = read_whole(good, &size);
    save_with(init, &(struct variant){0}, "wpe.weight", 12 * 32, 1, NAN);
    static const char *const more[] = {"", "--save-every 1", "--val-share 0", "--serial"};
    for (size_t i = 0; i < COUNT(more); i++) {
        expect_yard(EXIT_FAILED, "left values in parameter wpe.weight that are not finite",
                    "train --init '%s' --seq-len 8 --batch 4 --steps 3 --val-batches 1 --save '%s' %s", init, folder,
                    more[i]);
        char *after = read_whole(good, &after_size);
        assert_int_equal(after_size, size);
        assert_memory_equal(after, before, size);
        free(after);
    }
    free(before);
}

/* A row of the embedding that is so long that its layernorm overflows; only the validation text has its token. */
TEST(a_bad_validation_loss_fails)
{
    char text[500], other[100];
    memset(text, 'a', sizeof text), memset(other, 'z', sizeof other);
    const char *data = write_file("a.txt", text, sizeof text), *val = write_file("z.txt", other, sizeof other);
    char *words = lasting("--data '%s' --val-data '%s' --batch 2 --steps 3 --sample-tokens 0", data, val);
    static const float values[] = {3e38f, NAN};
    static const char *const parts[] = {"the validation loss is not finite", "parameter wte.weight"};
    for (size_t i = 0; i < COUNT(values); i++) {
        const char *init = temp_path("long.safetensors"), *log = temp_path("val.jsonl");
        save_with(init, &(struct variant){.untied = true}, "wte.weight", 'z' * 32, 32, values[i]);
        struct ran r = run_yard("train --init '%s' %s --log '%s'", init, words, log);
        expect_run(&r, 1, parts[i]);
        json_t *lines = read_log(log), *line = json_array_get(lines, json_array_size(lines) - 1);
        assert_int_equal(field(line, "step"), 3);
        assert_true(json_is_null(json_object_get(line, "val_loss")));
        json_decref(lines);
    }
}

TEST(a_bad_file_is_named)
{
    const char *path = temp_path("poisoned.safetensors");
    save_poisoned(path, "h.1.ln_2.bias");
    struct ran r = expect_yard(EXIT_FAILED, "tensor h.1.ln_2.bias holds a value that is infinite",
                               "sample --from '%s' --count 5", path);
    assert_string_equal(r.out, "");
    save_with(path, &(struct variant){0}, "wte.weight", 0, 32 * 256, 3e38f);
    r = expect_yard(EXIT_FAILED, "logits are not finite", "sample --from '%s' --count 5", path);
    char *line = lasting("cp tests/data/gpt2-tiny.safetensors '%s'", path);
    assert_int_equal(system(line), 0); /* NOLINT */
    poke_file(path, "h.0.mlp.c_fc.weight", 3, 1, NAN);
    r = expect_yard(EXIT_FAILED, "tensor h.0.mlp.c_fc.weight holds a value that is not a number", "check '%s'", path);
}

/* Before the first update, no setting can help. */
TEST(advice_follows_the_settings)
{
    const char *all = "train --model tiny --steps 60 --lr 1000 --schedule constant";
    struct ran r = expect_yard(EXIT_FAILED, "try a smaller --lr than 1000, more --warmup than 0, or --clip 1",
                               "%s --clip 0 --warmup 0", all);
    const char *path = temp_path("poisoned.safetensors");
    save_poisoned(path, "h.1.ln_2.bias");
    r = expect_yard(EXIT_FAILED, "is the file that --init names sound?", "train --init '%s' --clip 0 --steps 3", path);
    assert_null(strstr(r.err, "--clip"));
}

/* ---- runs of ./yard --------------------------------------------------------------------------------------------- */

/* The last line's validation loss, as it was written. */
static double last_val_loss(const char *path)
{
    json_t *lines = read_log(path);
    double loss = field(json_array_get(lines, json_array_size(lines) - 1), "val_loss");
    json_decref(lines);
    return loss;
}

TEST(log_lines)
{
    const char *log = temp_path("log.jsonl");
    expect_yard(EXIT_OK, "", "train --model tiny --steps 5 --val-every 2 --val-batches 2 --sample-tokens 0 --log '%s'",
                log);
    json_t *lines = read_log(log);
    static const int order[] = {1, 2, -2, 3, 4, -4, 5, -5}; /* steps; below 0: evaluations after them */
    assert_int_equal(json_array_size(lines), 1 + COUNT(order));
    const json_t *run = json_at(lines, "0.run");
    assert_int_equal(field(run, "steps"), 5);
    assert_int_equal(field(run, "batch"), 4); /* the preset's: options are resolved */
    assert_int_equal(field(run, "seq-len"), 32);
    assert_string_equal(text_at(run, "model"), "tiny");
    for (size_t i = 0; i < COUNT(order); i++) {
        const json_t *line = json_array_get(lines, i + 1);
        assert_int_equal(field(line, "step"), abs(order[i]));
        assert_true(field(line, order[i] > 0 ? "loss" : "val_loss") > 0);
        assert_int_equal(json_object_size(line), order[i] > 0 ? 6 : 2);
        if (order[i] > 0)
            assert_true(field(line, "norm") > 0 && field(line, "lr") > 0 && field(line, "ms") > 0 &&
                        field(line, "tokens_per_s") > 0);
    }
    json_decref(lines);
}

/* When the compute lanes were done with each step, by the trace. */
static double *device_ends(const struct trace *t, uint32_t steps)
{
    double *ends = allocate(steps + 1, sizeof *ends);
    for (size_t i = 0; i < t->n_records; i++) {
        const struct trace_record *r = &t->records[i];
        const struct trace_task *k = &t->tasks[r->task];
        if (t->lanes[k->lane].kind == LANE_COMPUTE && strcmp(t->header.list[k->list], "train") == 0)
            ends[r->step] = fmax(ends[r->step], 1e-6 * (double)r->end);
    }
    return ends;
}

/* From where one step is computed to where the next is, not from when the host notices. */
TEST(steps_are_timed_on_the_device)
{
    enum { STEPS = 20 };
    const char *log = temp_path("timed.jsonl"), *trace = temp_path("timed.trace");
    static const char *const modes[] = {"", "--serial", "-d 0:0x2"};
    for (size_t m = 0; m < COUNT(modes); m++) {
        expect_yard(EXIT_OK, "",
                    "train --model tiny --steps %d --val-share 0 --sample-tokens 0 --log '%s' --trace '%s' %s", STEPS,
                    log, trace, modes[m]);
        json_t *lines = read_log(log);
        struct trace *t = trace_open(trace);
        double *ends = device_ends(t, STEPS);
        assert_non_null(strstr(t->header.model, m == 2 ? " on 2 devices" : " on 1 device")); /* all of the text */
        for (uint32_t i = 2; i <= STEPS; i++) {
            const json_t *line = json_array_get(lines, i);
            double ms = field(line, "ms");
            if (fabs(ms - (ends[i] - ends[i - 1])) > 1e-4)
                test_failed("%s: step %u took %.6f ms, its device %.6f\n", modes[m], i, ms, ends[i] - ends[i - 1]);
            assert_true(fabs(field(line, "tokens_per_s") * ms / 1e3 / (4 * 32) - 1) < 1e-6);
        }
        free(ends);
        trace_free(t);
        json_decref(lines);
    }
}

/* What show(p) prints; the caller frees it. */
static char *printed(struct progress *p, void (*show)(struct progress *p))
{
    const char *path = temp_path("printed");
    size_t n;
    fflush(stdout);
    int saved = dup(STDOUT_FILENO);
    assert_non_null(freopen(path, "w", stdout));
    show(p);
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    return read_whole(path, &n);
}

static void show_two_long_steps(struct progress *p)
{
    struct result r = {190269026897756160.0, -NAN, 1e-3, false, now_ns()};
    for (uint32_t i = 1; i <= 3; i++, r.ended_ns += 3000000000)
        show_step(p, i, &r);
    show_rate(p);
}

static void show_a_long_step(struct progress *p)
{
    struct result r = {1, 1, 1e-3, false, now_ns() + 10000000000};
    show_step(p, 4, &r);
    show_rate(p);
}

/* Behind ten seconds: the mean. */
TEST(long_runs_end_with_their_rate)
{
    struct trainer *t = open_trainer(&(struct variant){0});
    struct progress *p = new_progress(t, json_object());
    char *text = printed(p, show_two_long_steps);
    assert_null(strstr(text, "rate"));
    assert_non_null(strstr(text, "loss 1.903e+17  norm    nan  "));
    assert_null(strstr(text, "peak"));
    free(text);
    text = printed(p, show_a_long_step);
    assert_non_null(strstr(text, "rate        3 steps behind the first: mean "));
    free(text);
    free_progress(p);
    free_trainer(t);
}

/* What other programs take of a CPU's cores is not the time of our work: sleeping stands for it. */
TEST(work_is_not_the_time_that_passes)
{
    struct trainer *t = open_trainer(&(struct variant){0});
    const struct device *d = &t->machine->device[0];
    double begin = work_seconds(d), work;
    uint64_t from = now_ns();
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    work = work_seconds(d) - begin;
    if (d->is_cpu)
        assert_true(work < 0.5e-9 * (double)(now_ns() - from));
    else
        assert_true(work >= 0.2);
    free_trainer(t);
}

/* The preset, then the config file, then the command line. */
TEST(precedence_of_options)
{
    static const char text[] = "# smaller\nchannels = 48\nheads = 3\nsteps = 9\n";
    const char *config = write_file("config", text, sizeof text - 1), *log = temp_path("precedence.jsonl");
    expect_yard(EXIT_OK, "",
                "train --steps 1 --model tiny --config '%s' --heads=4 --val-batches 1 --sample-tokens 0 "
                "--log '%s'",
                config, log);
    json_t *lines = read_log(log), *run = json_at(lines, "0.run");
    assert_int_equal(field(run, "channels"), 48);
    assert_int_equal(field(run, "heads"), 4);
    assert_int_equal(field(run, "steps"), 1);
    assert_int_equal(field(run, "layers"), 2);
    json_decref(lines);
}

TEST(a_diverged_log_has_null)
{
    const char *path = temp_path("poisoned.safetensors"), *log = temp_path("null.jsonl");
    save_poisoned(path, "h.0.ln_1.bias");
    expect_yard(EXIT_FAILED, "step 1, layer 0, task attn.ln",
                "train --init '%s' --batch 2 --steps 3 --seq-len 16 --log '%s'", path, log);
    json_t *lines = read_log(log), *line = json_array_get(lines, json_array_size(lines) - 1);
    assert_int_equal(field(line, "step"), 1);
    assert_true(json_is_null(json_object_get(line, "loss")) && json_is_null(json_object_get(line, "norm")));
    json_decref(lines);
}

/* --stop-after saves and stops, and the learning rate is that of the longer run. */
TEST(stop_after)
{
    const char *a = temp_path("stopped.jsonl"), *b = temp_path("whole.jsonl"), *folder = temp_path("stopped");
    expect_yard(EXIT_OK, "", "train --model tiny --steps 8 --stop-after 3 --save '%s' --sample-tokens 0 --log '%s'",
                folder, a);
    expect_yard(EXIT_OK, "", "train --model tiny --steps 8 --sample-tokens 0 --log '%s'", b);
    json_t *stopped = read_log(a), *whole = read_log(b);
    assert_int_equal(json_array_size(stopped), 1 + 3 + 1);
    for (size_t i = 1; i <= 3; i++) {
        const json_t *x = json_array_get(stopped, i), *y = json_array_get(whole, i);
        assert_true(field(x, "lr") == field(y, "lr") && field(x, "loss") == field(y, "loss"));
    }
    json_decref(stopped), json_decref(whole);
    char *model = lasting("%s/model.safetensors", folder);
    assert_int_equal(access(model, R_OK), 0);
}

TEST(save_then_init_and_sample)
{
    const char *a = temp_path("first.jsonl"), *b = temp_path("second.jsonl");
    const char *more[] = {"", "--untied"}, *folders[] = {temp_path("saved"), temp_path("untied")};
    for (size_t i = 0; i < COUNT(more); i++) {
        const char *folder = folders[i];
        expect_yard(EXIT_OK, "",
                    "train --model tiny --steps 5 %s --save '%s' --log '%s' --val-batches 20 --sample-tokens 5",
                    more[i], folder, a);
        expect_yard(
            EXIT_OK, "validation loss",
            "train --init '%s/model.safetensors' --batch 4 --steps 1 --lr 0 --lr-min 0 --log '%s' --val-batches 20",
            folder, b);
        assert_true(last_val_loss(a) == last_val_loss(b));
        struct ran x = run_yard("sample --from '%s' --prompt 'int main' --count 20 --seed 5", folder);
        struct ran y = run_yard("sample --from '%s/model.safetensors' --prompt 'int main' --count 20 --seed 5", folder);
        assert_true(x.code == 0 && y.code == 0 && strncmp(x.out, "int main", 8) == 0);
        assert_string_equal(x.out, y.out);
        y = run_yard("sample --from '%s' --prompt 'int main' --count 20 --seed 6", folder);
        assert_string_not_equal(x.out, y.out);
    }
}

/* Characters travel with the model: the prompt is read with the tokens of the training text. */
TEST(sample_with_characters)
{
    char text[900], *at = text;
    for (int i = 0; i < 100; i++)
        at += sprintf(at, "äbcd%s", i % 10 ? "" : "\n");
    const char *data = write_file("letters.txt", text, strlen(text)), *folder = temp_path("letters");
    struct ran r = run_yard(
        "train --model tiny --seq-len 8 --tokens chars --data '%s' --steps 120 --lr 1e-2 --save '%s'", data, folder);
    expect_run(&r, 0, "vocabulary 5"); /* a b c d newline, the first one with two dots */
    r = expect_yard(EXIT_OK, "äbcdäbc", "sample --from '%s' --prompt 'äb' --count 5 --temperature 0", folder);
    r = expect_yard(EXIT_USAGE, "x", "sample --from '%s' --prompt 'xyz' --count 5", folder);
}

static void expect_tensor(const struct safetensors *st, const char *name, int rank, int64_t rows, int64_t columns)
{
    const struct st_tensor *t = find_tensor(st, name);
    if (!t || t->dtype != DTYPE_F32 || t->rank != rank || t->shape[0] != rows || (rank == 2 && t->shape[1] != columns))
        test_failed("%s: expected F32 [%lld, %lld]\n", name, (long long)rows, (long long)columns);
}

/* The names and shapes of Hugging Face's GPT-2: projections are Conv1D, stored (in, out). */
static void check_export(bool untied)
{
    struct trainer *t = open_trainer(&(struct variant){.untied = untied});
    const char *path = temp_path("export.safetensors");
    save_model(t->model, path, "bytes", 17);
    struct safetensors *st = open_safetensors(path);
    assert_int_equal(st->n, 2 + 2 * 12 + 2 + untied);
    expect_tensor(st, "wte.weight", 2, 256, 32), expect_tensor(st, "wpe.weight", 2, 16, 32);
    for (int l = 0; l < 2; l++) {
        static const struct {
            const char *name;
            int rank, rows, columns;
        } expected[] = {
            {"ln_1.weight", 1, 32, 0},         {"ln_1.bias", 1, 32, 0},         {"ln_2.weight", 1, 32, 0},
            {"ln_2.bias", 1, 32, 0},           {"attn.c_attn.bias", 1, 96, 0},  {"attn.c_proj.bias", 1, 32, 0},
            {"mlp.c_fc.bias", 1, 128, 0},      {"mlp.c_proj.bias", 1, 32, 0},   {"attn.c_attn.weight", 2, 32, 96},
            {"attn.c_proj.weight", 2, 32, 32}, {"mlp.c_fc.weight", 2, 32, 128}, {"mlp.c_proj.weight", 2, 128, 32}};
        for (size_t i = 0; i < COUNT(expected); i++) {
            char *name = lasting("h.%d.%s", l, expected[i].name);
            expect_tensor(st, name, expected[i].rank, expected[i].rows, expected[i].columns);
        }
    }
    expect_tensor(st, "ln_f.weight", 1, 32, 0), expect_tensor(st, "ln_f.bias", 1, 32, 0);
    if (untied)
        expect_tensor(st, "lm_head.weight", 2, 256, 32);
    assert_string_equal(find_metadata(st, "yard.step"), "17");
    struct config c = read_config(path);
    assert_true(c.layers == 2 && c.heads == 2 && c.channels == 32 && c.seq_len == 16 && c.vocab == 256 &&
                c.tied == !untied);
    close_safetensors(st);
    free_trainer(t);
}

TEST(export)
{
    check_export(false);
    check_export(true);
}

/* Ctrl-C: the step in flight ends, the model is saved, the exit code says so.  The log tells when training has begun.
 */
static int interrupt_training(const char *log, const char *folder, const char *err)
{
    const char *program = getenv("YARD");
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stdout) || !freopen(err, "w", stderr))
            _exit(98);
        execl(program ? program : "./yard", "yard", "train", "--model", "tiny", "--steps", "100000000", "--val-batches",
              "1", "--log", log, "--save", folder, (char *)NULL);
        _exit(99);
    }
    for (long size = 0; size < 4096;) { /* some steps */
        struct stat s;
        size = stat(log, &s) == 0 ? (long)s.st_size : 0;
        if (waitpid(child, &status, WNOHANG) == child)
            test_failed("training ended by itself, status %d\n", status);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    kill(child, SIGINT);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(interrupt_saves)
{
    const char *log = temp_path("interrupted.jsonl"), *folder = temp_path("interrupted"), *err = temp_path("err");
    int code = interrupt_training(log, folder, err);
    if (code != 130)
        test_failed("exit code %d instead of 130:\n%s\n", code, read_text(err));
    json_t *lines = read_log(log);
    char *path = lasting("%s/model.safetensors", folder);
    struct safetensors *st = open_safetensors(path);
    const json_t *last = json_array_get(lines, json_array_size(lines) - 1); /* the evaluation behind the last step */
    assert_int_equal(field(last, "step"), atoi(find_metadata(st, "yard.step")));
    assert_true(field(last, "val_loss") > 0);
    close_safetensors(st);
    json_decref(lines);
}

/* ---- evaluation ------------------------------------------------------------------------------------------------- */

/* With wte as it is, ln_f.weight 0 and ln_f.bias b, the hidden state is b whatever comes in: the model gives each token
 * v always the logit wte[v].b, and the loss of every target can be summed by hand. */
static double loss_by_hand(struct trainer *t, const float *b)
{
    int channels = t->config.channels, vocab = t->config.vocab;
    float *wte = allocate((size_t)(vocab * channels), sizeof *wte);
    double *logit = allocate((size_t)vocab, sizeof *logit), sum = 0, loss = 0;
    read_param(t->model, 0, KEPT_VALUE, wte);
    for (int v = 0; v < vocab; v++) {
        for (int c = 0; c < channels; c++)
            logit[v] += (double)wte[v * channels + c] * b[c];
        sum += exp(logit[v]);
    }
    for (size_t i = 1; i < t->data->val.n; i++)
        loss += log(sum) - logit[t->data->val.tokens[i]];
    free(wte), free(logit);
    return loss / (double)(t->data->val.n - 1);
}

static void set_constant_model(struct trainer *t, float *b)
{
    for (int i = 0; i < t->model->params->n; i++) {
        const struct param *p = &t->model->params->param[i];
        size_t n = (size_t)(p->shape[0] * p->shape[1]);
        float *values = random_floats(n, 3);
        if (strcmp(p->name, "ln_f.weight") == 0)
            memset(values, 0, n * sizeof *values);
        if (strcmp(p->name, "ln_f.bias") == 0)
            memcpy(b, values, n * sizeof *values);
        write_param(t->model, i, KEPT_VALUE, values);
        free(values);
    }
}

static struct trainer *validate_bytes(const char *devices, int batch, int bytes)
{
    char *text = allocate((size_t)bytes, 1);
    for (int i = 0; i < bytes; i++)
        text[i] = (char)('a' + random_words(4, STREAM_TEST, 0, (uint64_t)i).word[0] % 20);
    struct settings *s = tiny_settings(&(struct variant){.devices = devices, .batch = batch});
    s->val_data = write_file("validation.txt", text, (size_t)bytes);
    free(text);
    return new_trainer(s, LIST_TRAIN | LIST_EVAL, true, false);
}

static void check_evaluation(const char *devices, int batch, int bytes)
{
    float b[32];
    struct trainer *t = validate_bytes(devices, batch, bytes);
    set_constant_model(t, b);
    double ours = evaluate(t, 0, NULL, NULL), expected = loss_by_hand(t, b);
    if (!(fabs(ours - expected) <= 1e-6 * expected))
        test_failed("-d %s, %d bytes: validation loss %.9g, by hand %.9g\n", devices, bytes, ours, expected);
    free_trainer(t);
}

/* Windows of 16 and one target more; the last window is short, and the last round has too few for all devices. */
TEST(evaluation_goes_over_the_whole_split)
{
    static const int lengths[] = {17, 18, 33, 100, 161, 200};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        check_evaluation("0:0", 4, lengths[i]);
        check_evaluation(two_devices(), 4, lengths[i]);
    }
    check_evaluation("0:0x3", 3, 100);
}

/* Evaluating between steps leaves no trace in the training. */
TEST(evaluation_changes_nothing)
{
    struct state plain = run_variant(&(struct variant){0});
    struct trainer *t = open_trainer(&(struct variant){0});
    for (uint32_t number = 1; number <= 6; number++) {
        run_step(t, number);
        drain(t->train);
        evaluate(t, 1, NULL, NULL);
    }
    struct state evaluated = read_state(t, 0);
    expect_same_bits("with evaluations", evaluated.values, plain.values, plain.n);
    free(plain.values), free(evaluated.values);
    free_trainer(t);
}

static void rest(void *unused)
{
    (void)unused;
    usleep(400000);
}

static void evaluate_slowly(void *trainer) { evaluate(trainer, 0, rest, NULL); }

/* Four rounds of at least 0.4 s: the last one begins behind the first second. */
TEST(a_long_evaluation_is_shown)
{
    char text[1024];
    struct trainer *t = validate_bytes("0:0", 4, 200);
    run_on_terminal(evaluate_slowly, t, text, sizeof text);
    if (strncmp(text, "\rvalidating: ", 13) != 0 || !strstr(text, " s left") || strchr(text, '\n'))
        test_failed("on the terminal: \"%s\"\n", text);
    free_trainer(t);
}

/* ---- the width of vectors --------------------------------------------------------------------------------------- */

static char *trained_bytes(const char *words, unsigned width, size_t *n)
{
    const char *folder = temp_path("width"), *log = temp_path("width.jsonl");
    struct ran r = run_yard("train --model tiny --steps 3 --val-batches 1 --sample-tokens 0 --save '%s' --log '%s' %s",
                            folder, log, words);
    char *path = lasting("%s/model.safetensors", folder), *line = lasting("vectors of %u float", width);
    expect_run(&r, 0, line);
    json_t *lines = read_log(log);
    assert_int_equal(field(json_at(lines, "0.run"), "vector"), width);
    json_decref(lines);
    struct safetensors *st = open_safetensors(path);
    assert_int_equal(atoi(find_metadata(st, "yard.vector")), width);
    close_safetensors(st);
    r = expect_yard(EXIT_OK, "", "sample --from '%s' --count 3", folder);
    char *bytes = read_whole(path, n);
    return bytes;
}

/* Of each width the device can do: what --vector gives is what a device of that width gives (YARD_VEC stands for one;
 * of width 1 it would be a GPU's shape), and no two widths give the same. */
TEST(bits_follow_the_vector_width)
{
    struct machine *m = open_machine(&(struct machine_options){.devices = "0:0"});
    unsigned own = m->device[0].vector;
    close_machine(m);
    static const unsigned widths[] = {1, 4, 8, 16};
    char *before = NULL;
    size_t n, size;
    for (size_t i = 0; i < COUNT(widths) && widths[i] <= own; i++) {
        char words[32];
        snprintf(words, sizeof words, "--vector %u", widths[i]);
        char *asked = trained_bytes(words, widths[i], &size);
        if (widths[i] > 1)
            set_number("YARD_VEC", (int)widths[i]);
        char *native = trained_bytes(widths[i] > 1 ? "" : "--vector 1", widths[i], &n);
        set_number("YARD_VEC", 0);
        assert_int_equal(n, size);
        assert_memory_equal(asked, native, n);
        size_t floats = n - 4 * 34688; /* what is behind the header */
        if (before && memcmp(asked + floats, before, n - floats) == 0)
            test_failed("width %u gives the bits of the width before it\n", widths[i]);
        free(before), free(native);
        before = memcpy(allocate(n - floats, 1), asked + floats, n - floats);
        free(asked);
    }
    free(before);
}

TEST(impossible_widths_are_refused)
{
    struct ran r = expect_yard(EXIT_USAGE, "--vector 3: the kernels know vectors of 1, 4, 8 and 16 floats",
                               "train --model tiny --vector 3");
    r = expect_yard(EXIT_USAGE, "--vector takes a whole number from 0 to 16", "train --model tiny --vector 32");
    set_number("YARD_VEC", 4);
    r = run_yard("train --model tiny --vector 8");
    set_number("YARD_VEC", 0);
    expect_run(&r, 2, "computes with vectors of 4 floats; take that or fewer");
    r = expect_yard(EXIT_USAGE, "--vector: the devices of data/hardware/server.txt are on paper",
                    "plan --hardware data/hardware/server.txt --vector 4");
}

/* ---- the plan --------------------------------------------------------------------------------------------------- */

TEST(plan_as_data)
{
    struct ran r = expect_yard(EXIT_OK, "every read sees the right value",
                               "plan --model tiny -d 0:0x2 --micro-batch 1 --json --verify");
    json_t *plan = json_load_file(r.stdout_path, JSON_REJECT_DUPLICATES, NULL);
    const json_t *tasks = json_at(plan, "lists.0.tasks");
    assert_true(json_array_size(tasks) > 100);
    const json_t *memory = json_object_get(plan, "memory");
    assert_non_null(json_at(memory, "0.peak"));
    double bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE); /* the same from run to run */
    assert_true(field(json_array_get(memory, 2), "budget") == bytes);
    struct machine *m = open_machine(&(struct machine_options){.devices = "0:0"});
    if (m->device[0].is_cpu) /* of two shares */
        assert_true(fabs(field(json_array_get(memory, 0), "budget") / (0.75 * bytes / 2) - 1) < 1e-6);
    close_machine(m);
    json_decref(plan);
    r = expect_yard(EXIT_OK, "every conflict is ordered", "plan --model tiny --verify");
}

/* The last task of the sample list brings one token's logits to the host: 4 bytes per word of the vocabulary. */
static void expect_vocabulary(const char *options, int vocab)
{
    struct ran r = run_yard("plan --layers 1 --hardware data/hardware/server.txt --json %s", options);
    json_t *plan = json_load_file(r.stdout_path, JSON_REJECT_DUPLICATES, NULL);
    const json_t *tasks = json_at(plan, "lists.1.tasks");
    const json_t *last = json_array_get(tasks, json_array_size(tasks) - 1);
    const json_t *logits = json_at(last, "accesses.0");
    assert_string_equal(text_at(logits, "tensor"), "logits.host");
    assert_int_equal(json_integer_value(json_object_get(logits, "bytes")), 4 * vocab);
    json_decref(plan);
}

TEST(vocabulary)
{
    expect_vocabulary("--model gpt2", 50257);
    expect_vocabulary("--model gpt2 --vocab 99", 99);
    expect_vocabulary("--model nano", 256);
    expect_vocabulary("--model gpt2 --data tests/data/llmc-tokens.bin", 123);
}

TEST(devices_as_data)
{
    struct ran r = run_yard("devices --json");
    json_t *all = json_loads(r.out, JSON_REJECT_DUPLICATES, NULL), *platforms = json_object_get(all, "platforms");
    assert_int_equal(r.code, 0);
    assert_true(json_array_size(platforms) > 0);
    const json_t *device = json_at(json_array_get(platforms, 0), "devices.0");
    assert_string_equal(text_at(device, "id"), "0:0");
    assert_true(field(device, "vector_width") >= 1 && field(device, "kernel_vector") >= 1);
    assert_true(field(device, "memory") >= field(device, "max_allocation") && field(device, "units") >= 1);
    r = expect_yard(EXIT_OK, "-d 0:0", "devices");
    bool exact = json_is_true(json_object_get(device, "correctly_rounded_divide_sqrt"));
    expect_run(&r, 0,
               exact ? "are correctly rounded: AdamW gives the bits" : "NOT correctly rounded: AdamW's bits differ");
    json_decref(all);
}

/* The memory that the plan foretells is the memory that the run takes. */
TEST(predicted_memory_is_what_is_allocated)
{
    struct settings *s = tiny_settings(&(struct variant){.devices = two_devices()});
    struct trainer *planned = new_trainer(s, LIST_TRAIN, true, true), *real = new_trainer(s, LIST_TRAIN, true, false);
    size_t predicted = 0, given = 0, n = real->pool->n;
    assert_int_equal(planned->machine->allocated, 0);
    assert_int_equal(planned->pool->n, n);
    for (int d = 0; d <= planned->machine->n_devices; d++) {
        size_t end[64] = {0};
        for (size_t i = 0; i < n; i++) {
            const struct tensor *x = planned->pool->tensors[i], *y = real->pool->tensors[i];
            assert_true(x->slab == y->slab && x->address == y->address);
            if (x->storage == x && x->slab >= 0 && x->device->index == d)
                end[x->slab] = MAX(end[x->slab], round_up(x->address + x->bytes, x->device->alignment) + GUARD_BYTES);
        }
        for (int k = 0; k < 64; k++)
            predicted += end[k];
        for (size_t k = 0; k < real->machine->device[d].n_slabs; k++)
            given += real->machine->device[d].slabs[k].bytes + GUARD_BYTES;
        assert_int_equal(planned->train->high[d], real->train->high[d]);
    }
    assert_int_equal(predicted, given);
    assert_int_equal(given, real->machine->allocated);
    free_trainer(planned), free_trainer(real);
}
