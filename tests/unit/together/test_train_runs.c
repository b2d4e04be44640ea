/* test_train_runs.c - runs of ./yard, as a user starts them: what they log, save and say, and how they end.
 *
 * It tests src/trainer/train and src/trainer/cmd.  It checks that every step is in the log, with its time; that options
 * come from where they should; that a saved run goes on and prints the same; and that an interrupted run has saved what
 * it has done.  It catches a log that lacks a step, a tokenizer that does not travel with its model, and a run that
 * ends without a word.
 *
 * To see it fail: in after_step.c, evaluate and save a step late: let falls_on() ask for a rest of 1.
 *
 * The expected result is that of another run, the trace of the same run, or a text so simple that a model learns it by
 * heart.
 */
#include "planning/trace/trace.h"
#include "tests/support/support.h"
#include "trainer/file/file.h"

#include <math.h>
#include <signal.h>
#include <time.h>

/* ---- runs of ./yard ---------------------------------------------------------------------------------------------- */

TEST(the_log_has_a_line_for_each_step_and_evaluation)
{
    const char *log = temp_path("log.jsonl");
    expect_yard(EXIT_OK, "", "train --model tiny --steps 5 --val-every 2 --val-batches 2 --sample-tokens 0 --log '%s'",
                log);
    json_t *lines = read_log(log);
    static const int order[] = {1, 2, -2, 3, 4, -4, 5, -5}; /* steps; below 0: evaluations after them */
    assert_int_equal(json_array_size(lines), 1 + COUNT(order));
    const json_t *run = json_at(lines, "0.run");
    assert_close(number_at(json_array_get(lines, 0), "bytes_per_token"), 1, 0);
    assert_int_equal(number_at(run, "steps"), 5);
    assert_int_equal(number_at(run, "batch"), 4); /* the preset's: options are resolved */
    assert_int_equal(number_at(run, "seq-len"), 32);
    assert_string_equal(text_at(run, "model"), "tiny");
    for (size_t i = 0; i < COUNT(order); i++) {
        const json_t *line = json_array_get(lines, i + 1);
        assert_int_equal(number_at(line, "step"), abs(order[i]));
        assert_above(number_at(line, order[i] > 0 ? "loss" : "val_loss"), 0);
        assert_int_equal(json_object_size(line), order[i] > 0 ? 6 : 3);
        if (order[i] < 0) /* a token is a byte */
            assert_close(number_at(line, "val_bits_per_byte") * M_LN2, number_at(line, "val_loss"), 1e-6);
        if (order[i] > 0) {
            assert_above(number_at(line, "norm"), 0);
            assert_above(number_at(line, "lr"), 0);
            assert_above(number_at(line, "ms"), 0);
            assert_above(number_at(line, "tokens_per_s"), 0);
        }
    }
}

/* When the compute lanes were done with each step, by the trace. */
static double *device_ends(const struct trace *trace, uint32_t steps)
{
    double *ends = allocate(steps + 1, sizeof *ends);
    for (size_t i = 0; i < trace->n_records; i++) {
        const struct trace_record *record = &trace->records[i];
        const struct trace_task *task = &trace->tasks[record->task];
        if (trace->lanes[task->lane].kind == LANE_COMPUTE && strcmp(trace->header.list[task->list], "train") == 0)
            ends[record->step] = fmax(ends[record->step], 1e-6 * (double)record->end);
    }
    return ends;
}

/* A step's time goes from its end on the device to the next one's, not from when the host notices. */
TEST(steps_are_timed_on_the_device)
{
    enum { STEPS = 20 };
    const char *log = temp_path("timed.jsonl"), *path = temp_path("timed.trace");
    static const char *const modes[] = {"", "--serial", "-d 0:0x2"};
    for (size_t m = 0; m < COUNT(modes); m++) {
        expect_yard(EXIT_OK, "",
                    "train --model tiny --steps %d --val-share 0 --sample-tokens 0 --log '%s' --trace '%s' %s", STEPS,
                    log, path, modes[m]);
        json_t *lines = read_log(log);
        struct trace *trace = read_trace(path);
        double *ends = device_ends(trace, STEPS);
        assert_contains(trace->header.model, m == 2 ? " on 2 devices" : " on 1 device"); /* all of the text */
        for (uint32_t i = 2; i <= STEPS; i++) {
            const json_t *line = json_array_get(lines, i);
            double ms = number_at(line, "ms");
            if (fabs(ms - (ends[i] - ends[i - 1])) > 1e-4)
                test_failed("%s: step %u took %.6f ms, its device %.6f\n", modes[m], i, ms, ends[i] - ends[i - 1]);
            assert_close(number_at(line, "tokens_per_s") * ms / 1e3 / (4 * 32), 1, 1e-6);
        }
        free(ends);
        free_trace(trace);
    }
}

/* The preset, then the config file, then the command line. */
TEST(the_command_line_overrides_the_file_that_overrides_the_preset)
{
    static const char text[] = "# smaller\nchannels = 48\nheads = 3\nsteps = 9\n";
    const char *config = write_file("config", text, sizeof text - 1), *log = temp_path("precedence.jsonl");
    expect_yard(EXIT_OK, "",
                "train --steps 1 --model tiny --config '%s' --heads=4 --val-batches 1 --sample-tokens 0 "
                "--log '%s'",
                config, log);
    json_t *lines = read_log(log), *run = json_at(lines, "0.run");
    assert_int_equal(number_at(run, "channels"), 48);
    assert_int_equal(number_at(run, "heads"), 4);
    assert_int_equal(number_at(run, "steps"), 1);
    assert_int_equal(number_at(run, "layers"), 2);
}

/* --stop-after saves and stops, and the learning rate is that of the longer run. */
TEST(stop_after_keeps_the_rate_of_the_longer_run)
{
    const char *log = temp_path("stopped.jsonl");
    const char *whole_log = temp_path("whole.jsonl");
    const char *folder = temp_path("stopped");
    expect_yard(EXIT_OK, "", "train --model tiny --steps 8 --stop-after 3 --save '%s' --sample-tokens 0 --log '%s'",
                folder, log);
    expect_yard(EXIT_OK, "", "train --model tiny --steps 8 --sample-tokens 0 --log '%s'", whole_log);
    json_t *stopped = read_log(log), *whole = read_log(whole_log);
    assert_int_equal(json_array_size(stopped), 1 + 3 + 1);
    for (size_t i = 1; i <= 3; i++) {
        const json_t *line = json_array_get(stopped, i), *expected = json_array_get(whole, i);
        assert_close(number_at(line, "lr"), number_at(expected, "lr"), 0);
        assert_close(number_at(line, "loss"), number_at(expected, "loss"), 0);
    }
    char *model = lasting("%s/model.safetensors", folder);
    assert_int_equal(access(model, R_OK), 0);
}

TEST(a_saved_model_starts_another_run_and_samples)
{
    const char *log = temp_path("first.jsonl"), *second_log = temp_path("second.jsonl");
    const char *more[] = {"", "--untied"}, *folders[] = {temp_path("saved"), temp_path("untied")};
    for (size_t i = 0; i < COUNT(more); i++) {
        const char *folder = folders[i];
        expect_yard(EXIT_OK, "",
                    "train --model tiny --steps 5 %s --save '%s' --log '%s' --val-batches 20 --sample-tokens 5",
                    more[i], folder, log);
        expect_yard(
            EXIT_OK, "validation loss",
            "train --init '%s/model.safetensors' --batch 4 --steps 1 --lr 0 --lr-min 0 --log '%s' --val-batches 20",
            folder, second_log);
        assert_close(number_at(last_line(log), "val_loss"), number_at(last_line(second_log), "val_loss"), 0);
        struct ran first = run_yard("sample --from '%s' --prompt 'int main' --count 20 --seed 5", folder);
        struct ran second =
            run_yard("sample --from '%s/model.safetensors' --prompt 'int main' --count 20 --seed 5", folder);
        assert_int_equal(first.code, 0);
        assert_int_equal(second.code, 0);
        assert_begins_with(first.out, "int main");
        assert_string_equal(first.out, second.out);
        second = run_yard("sample --from '%s' --prompt 'int main' --count 20 --seed 6", folder);
        assert_string_not_equal(first.out, second.out);
    }
}

/* A token is a byte, a letter of this text two of them: what is shown is text, the prompt too, also into a file. */
TEST(letters_of_two_bytes_are_shown_whole)
{
    char text[4096] = "";
    while (strlen(text) < sizeof text - 20)
        strcat(text, "\u0436\u0438\u043B\u0438 "); /* 4 letters and a space */
    write_text("russian.txt", "%s", text);
    const char *folder = temp_path("russian");
    expect_yard(EXIT_OK, "\u0438\u043B\u0438",
                "train --model tiny --data '%s' --steps 400 --lr 5e-3 --val-share 0 --sample-tokens 40 --save '%s'",
                temp_path("russian.txt"), folder);
    expect_yard(EXIT_OK, "\u0436\u0438\u043B\u0438 \u0436\u0438\u043B\u0438\n",
                "sample --from '%s' --prompt '\u0436\u0438\u043B' --count 11 --temperature 0", folder);
    expect_yard(EXIT_OK, "\u0436\u0438\u043B\u0438 \uFFFD\n", /* the last letter has only begun */
                "sample --from '%s' --prompt '\u0436\u0438\u043B\u0438' --count 2 --temperature 0", folder);
}

/* Characters travel with the model: the prompt is read with the tokens of the training text. */
TEST(characters_travel_with_the_model)
{
    char text[900];
    char *at = text;
    for (int i = 0; i < 100; i++)
        at += sprintf(at, "äbcd%s", i % 10 ? "" : "\n");
    const char *data = write_file("letters.txt", text, strlen(text)), *folder = temp_path("letters");
    expect_yard(EXIT_OK, "vocabulary 5", /* a b c d newline, the first one with two dots */
                "train --model tiny --seq-len 8 --tokens chars --data '%s' --steps 120 --lr 1e-2 --save '%s'", data,
                folder);
    expect_yard(EXIT_OK, "äbcdäbc", "sample --from '%s' --prompt 'äb' --count 5 --temperature 0", folder);
    expect_yard(EXIT_USAGE, "x", "sample --from '%s' --prompt 'xyz' --count 5", folder);
}

/* A tokenizer is learnt, kept by checkpoints and models, and written for other programs. */
TEST(learnt_tokens_go_with_the_model)
{
    const char *folder = temp_path("learnt"), *hf = temp_path("learnt-hf"), *log = temp_path("learnt.jsonl");
    const char *both = temp_path("learnt-2"), *again = "--sample-tokens 0 --val-batches 1";
    expect_yard(EXIT_OK, "vocabulary 300", "train --model tiny --tokens bpe:300 --steps 20 %s --save '%s' --log '%s'",
                again, folder, log);
    const json_t *first = json_array_get(read_log(log), 0), *last = last_line(log);
    double bits = number_at(last, "val_loss") / M_LN2 / number_at(first, "bytes_per_token");
    assert_above(number_at(first, "bytes_per_token"), 1.5);
    assert_close(number_at(last, "val_bits_per_byte"), bits, 1e-6);
    expect_yard(EXIT_OK, "step 22/22", "train --resume '%s' --tokens bpe:300 --steps 22 %s", folder, again);
    expect_yard(EXIT_OK, "", "ckpt reshard '%s' '%s' --mesh dp=2", folder, both);
    expect_yard(EXIT_OK, "step 22/22", "train --resume '%s' -d 0:0x2 --steps 22 %s", both, again);
    expect_yard(EXIT_OK, "", "ckpt export '%s' '%s'", folder, hf);
    expect_yard(EXIT_OK, "step 2/2", "train --init '%s' --steps 2 %s", hf, again);
    expect_yard(EXIT_OK, "Tom went", "sample --from '%s' --prompt 'Tom went' --count 3 --temperature 0", hf);
    expect_yard(EXIT_USAGE, "was trained on byte pairs, and knows only its own tokens",
                "train --init '%s' --tokens bpe:301 --steps 1", hf);
    assert_int_equal(remove(lasting("%s/tokenizer.json", hf)), 0); /* its metadata have it too */
    expect_yard(EXIT_OK, "Tom went", "sample --from '%s' --prompt 'Tom went' --count 3 --temperature 0", hf);
}

/* A tokenizer that is larger than the model is refused by number; of one that cannot be read the reason is said. */
TEST(a_tokenizer_that_does_not_fit_the_model_is_refused)
{
    const char *folder = temp_path("beside");
    assert_int_equal(mkdir(folder, 0777), 0);
    expect_yard(EXIT_OK, "", "train --model tiny --steps 1 --sample-tokens 0 --val-batches 1 --save '%s'",
                temp_path("beside-0"));
    expect_yard(EXIT_OK, "", "ckpt export '%s' '%s.bin'", temp_path("beside-0"), temp_path("beside/model"));
    write_text("beside/tokenizer.json", "{\"model\": {\"type\": \"Unigram\"}}");
    expect_yard(EXIT_OK, "asks for model.type \"Unigram\"", "sample --from '%s/model.bin' --count 2", folder);
    expect_yard(EXIT_OK, "", "train --model tiny --tokens bpe:300 --steps 1 --sample-tokens 0 --save '%s'",
                temp_path("beside-1"));
    expect_yard(EXIT_OK, "", "ckpt export '%s' '%s'", temp_path("beside-1"), temp_path("beside-2"));
    const char *large = temp_path("beside-2/tokenizer.json");
    expect_yard(EXIT_FAILED,
                "the tokenizer has 300 tokens and the model only 256, so they do not belong together; put the",
                "sample --from '%s/model.bin' --tokens '%s' --count 2", folder, large);
    expect_yard(EXIT_USAGE, "knows only its own tokens", "train --init '%s' --tokens bpe:300 --steps 1",
                temp_path("beside-2"));
    /* Others add tokens for special texts, and the model has no rows for them. */
    json_t *json = json_load_file(large, 0, NULL);
    json_array_append_new(json_object_get(json, "added_tokens"),
                          json_pack("{s:i, s:s}", "id", 300, "content", "<|pad|>"));
    write_text("beside-2/tokenizer.json", "%s", json_dumps(json, 0));
    write_text("beside/padded.json", "%s", json_dumps(json, 0));
    expect_yard(EXIT_OK, "", "ckpt export '%s' '%s.bin'", temp_path("beside-1"), temp_path("beside/learnt"));
    expect_yard(EXIT_OK, "the tokenizer has 301 tokens and the model only 300; the tokens beyond these",
                "sample --from '%s/learnt.bin' --tokens '%s' --count 2", folder, temp_path("beside/padded.json"));
    expect_yard(EXIT_USAGE, "or its tokenizer with --tokens FILE", "sample --from '%s/learnt.bin' --prompt you",
                folder);
}

/* The text ends where the model says so. */
TEST(a_sample_ends_with_the_text)
{
    char text[2000] = "";
    while (strlen(text) < 1900)
        strcat(text, "ab<|endoftext|>");
    const char *data = write_text("ends.txt", "%s", text), *folder = temp_path("ends");
    expect_yard(EXIT_OK, "vocabulary 258", /* 256 bytes, the end of a text, "ab" */
                "train --model tiny --seq-len 8 --tokens bpe:300 --data '%s' --steps 100 --lr 1e-2 --save '%s'", data,
                folder);
    struct ran ran =
        expect_yard(EXIT_OK, "", "sample --from '%s' --prompt '<|endoftext|>' --count 50 --temperature 0", folder);
    assert_string_equal(ran.out, "<|endoftext|>ab\n");
}

/* Ctrl-C: the step in flight ends, the model is saved, the exit code says so.  The log tells when training began. */
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
    for (long size = 0; size < 4096;) { /* until some steps are in the log */
        struct stat status_of_log;
        size = stat(log, &status_of_log) == 0 ? (long)status_of_log.st_size : 0;
        if (waitpid(child, &status, WNOHANG) == child)
            test_failed("training ended by itself, status %d\n", status);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    kill(child, SIGINT);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(an_interrupted_run_saves)
{
    const char *log = temp_path("interrupted.jsonl");
    const char *folder = temp_path("interrupted");
    const char *err = temp_path("err");
    int code = interrupt_training(log, folder, err);
    if (code != 130)
        test_failed("exit code %d instead of 130:\n%s\n", code, read_text(err));
    json_t *lines = read_log(log);
    char *path = lasting("%s/model.safetensors", folder);
    struct safetensors *st = open_safetensors(path);
    const json_t *last = json_array_get(lines, json_array_size(lines) - 1); /* the evaluation after the last step */
    assert_int_equal(number_at(last, "step"), atoi(find_metadata(st, "yard.step")));
    assert_above(number_at(last, "val_loss"), 0);
    close_safetensors(st);
}
