/* progress.c - shows the user how a training goes on: what is trained, its steps and evaluations, and how it ended.
 *
 * A terminal has one line for the steps, which is written over.  A file or a pipe gets a line per tenth of the run.
 * The log gets every step; log.c writes it.
 */
#include "progress.h"
#include "hooks.h"
#include "log.h"
#include "train_parts.h"
#include "trainer/base/json.h"
#include "trainer/settings/archive.h"

#include <math.h>
#include <unistd.h>

struct progress {
    struct trainer *trainer;
    uint32_t steps;    /* how many the training has */
    uint32_t last;     /* the last step of this run, which may stop earlier */
    int width;         /* how many digits `steps` has */
    bool on_screen;    /* stdout is a terminal */
    double flops;      /* operations of a step */
    uint64_t last_ns;  /* the end of the step before */
    uint64_t held_ns;  /* how much of execution.held_ns has been left out of steps' times */
    double average_ms; /* how long recent steps took, without the time in which they were held; for the time left */
    double total_ms;   /* how long all steps together took, but for the first, which compiles the kernels */
    uint32_t counted;  /* steps that have been shown */
    uint64_t begun_ns; /* when the run began */
};

/* ---- before the first step --------------------------------------------------------------------------------------- */

/* Prints the floor of a made text.  Where tokens are not bytes, only the information in the text is known. */
static void print_floor(const struct dataset *dataset, int seq_len)
{
    if (isnan(dataset->nats_per_byte))
        return;
    if (dataset->bytes_per_token != 1) {
        print_line(
            stdout,
            "floor       %.4f bits a byte: the text's information: no model and no choice of tokens can do better",
            dataset->nats_per_byte / M_LN2);
        return;
    }
    char windows_floor[NUMBER_TEXT] = "it is higher";
    if (!isnan(dataset->floor))
        format_number(windows_floor, dataset->floor, 4);
    print_line(stdout, "floor       %.4f nats a token: no model has a lower loss; on windows of %d tokens %s",
               dataset->nats_per_byte, seq_len, windows_floor);
}

static void print_data(const struct trainer *trainer)
{
    const struct dataset *dataset = trainer->data;
    const char *path = trainer->settings->data.path;
    char length[64] = "";
    if (dataset->bytes_per_token != 1 && !isnan(dataset->bytes_per_token))
        snprintf(length, sizeof length, ", %.2f bytes each", dataset->bytes_per_token);
    print_line(stdout, "data        %s: %zu tokens (%s%s) to train, %zu to validate", path ? path : default_data(),
               dataset->train.n, dataset->tokenizer.kind->noun, length, dataset->val.n);
    print_floor(dataset, trainer->seq_len);
}

/* The line of a single device, which shows its memory by class.  Several devices have a table. */
static void print_memory_classes(const struct list *list)
{
    char bytes[NUMBER_TEXT];
    char *classes = NULL; /* "parameters 1.2 MiB, gradients ..." */
    for (int c = 0; c < MEM_CLASSES; c++)
        append_text(&classes, "%s%s %s", c > 0 ? ", " : "", memory_class_name[c],
                    format_bytes(bytes, (double)list->extra.peak[0][c]));
    print_line(stdout, "memory      %s", classes);
    free(classes);
}

static void print_memory_use(const struct trainer *trainer)
{
    char together[NUMBER_TEXT], allocated[NUMBER_TEXT];
    format_bytes(allocated, (double)trainer->machine->allocated);
    if (trainer->machine->n_devices > 1) {
        print_line(stdout, "memory      allocated %s", allocated);
        return;
    }
    print_memory_classes(trainer->train_list);
    print_line(stdout, "            together at most %s; allocated %s",
               format_bytes(together, (double)trainer->train_list->extra.peak_total[0]), allocated);
}

static void print_training(const struct progress *progress)
{
    struct trainer *trainer = progress->trainer;
    int n = trainer->machine->n_devices;
    char *devices = describe_machine(trainer->machine);
    char sizes[SIZES_BYTES];
    print_line(stdout, "devices     %s", devices);
    print_line(stdout, "model       %s: %zu parameters", describe_sizes(sizes, &trainer->config),
               count_parameters(trainer->model->params));
    print_data(trainer);
    print_memory_use(trainer);
    char *place = n == 1 ? copy_string("1 device") : format_string("each of %d devices", n);
    print_line(stdout,
               "step        %d sequence%s of %d tokens: %.0f tokens in %d micro-batch%s on %s, %zu tasks, %.3g GFLOP",
               trainer->batch, PLURAL(trainer->batch), trainer->seq_len, tokens_per_step(trainer), trainer->micros,
               trainer->micros == 1 ? "" : "es", place, trainer->train_list->n, progress->flops / 1e9);
    free(place);
    tell_summary_printed(trainer);
    printf("\n");
    fflush(stdout);
    free(devices);
}

struct progress *begin_progress(struct trainer *trainer)
{
    const struct settings *settings = trainer->settings;
    struct progress *progress = allocate(1, sizeof *progress);
    progress->trainer = trainer;
    progress->steps = (uint32_t)settings->steps;
    progress->last = last_step(settings);
    progress->on_screen = is_screen(STDOUT_FILENO);
    progress->width = snprintf(NULL, 0, "%u", progress->steps);
    progress->flops = flops_per_token(trainer->model->params, trainer->seq_len) * tokens_per_step(trainer);
    trainer->extra.progress = progress;
    begin_log(trainer->extra.log, settings->resumed || this_process->restarts, trainer->data);
    print_training(progress);
    progress->begun_ns = now_ns();
    progress->last_ns = progress->begun_ns;
    return progress;
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

/* Prints a step's line.  On a terminal it leaves out what is only for the log. */
static void print_step_line(struct progress *progress, uint32_t step, const struct result *result, double ms)
{
    const struct pacer *pacer = progress->trainer->train_list->running->pacer;
    char loss[NUMBER_TEXT], norm[NUMBER_TEXT], took[NUMBER_TEXT], left[NUMBER_TEXT];
    char *line = format_string("step %*u/%u  loss %s", progress->width, step, progress->steps,
                               format_number(loss, result->loss, 4));
    if (!progress->on_screen)
        append_text(&line, "  norm %6s  lr %.1e  %6s ms", format_number(norm, result->norm, 3), result->lr,
                    format_number(took, ms, 1));
    else if (!isnan(progress->trainer->data->floor))
        append_text(&line, "  floor %.4f", progress->trainer->data->floor);
    append_text(&line, "  %7.0f tok/s", tokens_per_step(progress->trainer) / progress->average_ms * 1e3);
    if (pacer && pacer->word)
        append_text(&line, "  %s", pacer->word);
    if (progress->counted > 1 && step < progress->steps)
        append_text(&line, "  %s left", format_seconds(left, progress->average_ms * 1e-3 * (progress->steps - step)));
    if (progress->on_screen) {
        write_over(STDOUT_FILENO, line, step == progress->last ? STAYS : IS_DRAWN_OVER);
    } else {
        printf("%s\n", line);
        fflush(stdout);
    }
    free(line);
}

/* Counts a step, which took `ran` ms without the time in which it was held.  The first step compiles the kernels: it
 * does not count in the total, and is the average only until the second one has ended.  A step that took far longer
 * than the others was stopped by somebody, so in the average it counts only as long as two of them. */
static void count_step(struct progress *progress, double ran)
{
    if (progress->counted > 0)
        progress->total_ms += ran;
    progress->counted++;
    if (progress->counted <= 2)
        progress->average_ms = ran;
    else
        progress->average_ms = 0.9 * progress->average_ms + 0.1 * fmin(ran, 2 * progress->average_ms);
}

/* A terminal shows steps as often as it may be redrawn; a file the first one, and one in each tenth of the run. */
static bool shows_step(const struct progress *progress, uint32_t step, bool first)
{
    uint64_t tenth = 10 * (uint64_t)step / progress->steps;
    uint64_t tenth_before = 10 * (uint64_t)(step - 1) / progress->steps;
    if (step == progress->last)
        return true;
    if (progress->on_screen)
        return may_redraw();
    return first || tenth != tenth_before;
}

static void log_step(struct progress *progress, uint32_t step, const struct result *result, double ms)
{
    json_t *line = json_pack("{s:i}", "step", (int)step);
    set_json_number(line, "loss", result->loss);
    set_json_number(line, "norm", result->norm);
    set_json_number(line, "lr", result->lr);
    set_json_number(line, "ms", ms);
    set_json_number(line, "tokens_per_s", tokens_per_step(progress->trainer) / ms * 1e3);
    write_log(progress->trainer->extra.log, line);
}

/* A step has taken `ms` from the end of the step before.  A viewer may have held the run since.  Such a pause
 * is subtracted from this step, up to its length; the rest is subtracted from the steps after it. */
void show_step(struct progress *progress, uint32_t step, const struct result *result)
{
    /* Signed, since the step may seem to end before last_ns: a device's clock may give one, and ours the other. */
    double ms = (double)(int64_t)(result->ended_ns - progress->last_ns) * 1e-6;
    double held = 1e-6 * (double)(execution.held_ns - progress->held_ns);
    double held_here = fmax(fmin(held, ms), 0);
    bool first = progress->counted == 0;
    progress->last_ns = result->ended_ns;
    progress->held_ns += (uint64_t)(1e6 * held_here);
    count_step(progress, ms - held_here);
    if (shows_step(progress, step, first))
        print_step_line(progress, step, result, ms);
    this_process->step = step;
    log_step(progress, step, result, ms);
}

/* What can be learnt lies between ln V, the loss of a model that knows nothing, and the floor. */
void show_evaluation(struct progress *progress, uint32_t step, double loss)
{
    const struct dataset *dataset = progress->trainer->data;
    double most = log(dataset->vocab);
    double bits = bits_per_byte(dataset, loss);
    char text[NUMBER_TEXT];
    erase_line();
    printf("step %*u/%u  validation loss %s", progress->width, step, progress->steps, format_number(text, loss, 4));
    if (dataset->floor < most) /* not if the floor is not a number, or with a vocabulary of one */
        printf("  floor %.4f  %.1f %% learnt", dataset->floor, 100 * (most - loss) / (most - dataset->floor));
    if (dataset->bytes_per_token != 1 && !isnan(bits))
        printf("  %.4f bits a byte", bits);
    printf("\n");
    fflush(stdout);
    write_log(progress->trainer->extra.log, json_pack("{s:i, s:o, s:o}", "step", (int)step, "val_loss",
                                                      number_json(loss), "val_bits_per_byte", number_json(bits)));
    progress->last_ns = now_ns(); /* the evaluation's time is not the next step's */
    progress->held_ns = execution.held_ns;
}

uint64_t run_begin_ns(const struct trainer *trainer) { return trainer->extra.progress->begun_ns; }

/* ---- after the last step ----------------------------------------------------------------------------------------- */

/* Says something of the device only if the run took long enough, and nothing held its steps. */
static bool shows_rate(const struct progress *progress)
{
    enum { LEAST_MS = 10000 }; /* a shorter run says more of the host's start than of the device */
    bool paced = progress->trainer->train_list->running->pacer != NULL;
    return progress->total_ms >= LEAST_MS && !execution.serial && !paced && !interrupted();
}

/* The first step has no part in the total, so there are others. */
static void print_rate(const struct progress *progress)
{
    uint32_t steps = progress->counted - 1;
    double ms = progress->total_ms / steps;
    printf("\nrate        %u steps after the first: mean %.4g ms, %.0f tokens/s, %.4g GFLOP/s\n", steps, ms,
           tokens_per_step(progress->trainer) / ms * 1e3, progress->flops / ms * 1e-6);
}

enum exit_code end_progress(struct progress *progress)
{
    if (shows_rate(progress))
        print_rate(progress);
    bool log_is_whole = end_log(progress->trainer->extra.log);
    progress->trainer->extra.log = NULL;
    progress->trainer->extra.progress = NULL;
    free(progress);
    return log_is_whole ? EXIT_OK : EXIT_IO;
}

static void say_interrupted(const struct settings *settings, uint32_t step, const struct kept_run *run)
{
    if (settings->save)
        inform("interrupted after step %u, saved", step);
    else
        inform("interrupted after step %u; %s", step, run->where ? run->where : "nothing is saved without --save DIR");
}

/* Says with which command the run goes on.  Its log goes on in the same file. */
static void say_command(const struct settings *settings, struct kept_run *run)
{
    char *program = NULL;
    if (settings->log) {
        append_text(&run->more_words, " --log ");
        append_quoted(&run->more_words, settings->log);
    }
    append_quoted(&program, program_name);
    inform("it goes on with: %s train%s%s", program, run->command, run->more_words ? run->more_words : "");
    free(program);
}

/* Does the run end before its last step, because of the user or of --stop-after? */
static bool ends_early(const struct settings *settings)
{
    return interrupted() || (settings->stop_after && settings->stop_after < settings->steps);
}

/* Has a resumed run trained steps that are kept nowhere? */
static bool trained_unsaved(const struct settings *settings, uint32_t step)
{
    bool keeps = settings->save || settings->demands.kept_elsewhere;
    return settings->resumed && step > settings->resumed->step && !keeps;
}

static void say_unsaved(const struct resumed_run *resumed)
{
    inform("nothing that this run has trained is saved; with %s %s it would have been", resumed->kept_by,
           resumed->given_path);
}

void show_end(struct trainer *trainer, uint32_t step)
{
    const struct settings *settings = trainer->settings;
    struct kept_run run = {NULL, NULL, NULL};
    tell_run_ended(trainer);
    ask_kept(trainer, &run);
    if (interrupted())
        say_interrupted(settings, step, &run);
    if (run.command && ends_early(settings))
        say_command(settings, &run);
    else if (trained_unsaved(settings, step))
        say_unsaved(settings->resumed);
    free(run.where);
    free(run.command);
    free(run.more_words);
}
