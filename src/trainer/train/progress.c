/* progress.c - shows the user how a training goes on, and writes the log.
 *
 * A terminal has one line for the steps, which is written over.  A file or a pipe gets a line per tenth of the run, the
 * log every step.
 *
 * The log has one JSON object per line: the run, then steps and evaluations; not-a-number is null.
 */
#include "progress.h"
#include "hooks.h"
#include "trainer/base/json.h"
#include "trainer/settings/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

struct progress {
    struct trainer *trainer;
    int log;           /* the log's descriptor; NONE: there is no log, or it is lost */
    bool log_lost;     /* the log could not be written to its end */
    uint32_t steps;    /* how many the training has */
    uint32_t last;     /* the last step of this run, which may stop earlier */
    int width;         /* how many digits `steps` has */
    bool screen;       /* stdout is a terminal */
    double flops;      /* operations of a step */
    uint64_t last_ns;  /* the end of the step before */
    uint64_t held_ns;  /* how much of execution.held_ns has been left out of steps' times */
    double average_ms; /* how long recent steps took, without the time in which they were held; for the time left */
    double total_ms;   /* the same of all steps together, but for the first, which compiles the kernels */
    uint32_t counted;  /* steps that have been shown */
    uint64_t begun_ns; /* when the run began */
};

/* ---- the log --------------------------------------------------------------------------------------------------- */

/* Opens and locks the log before anything of this run is in it: another run's log would be lost.  A log that is the
 * same file as stdout or stderr is left to open_shared_log(). */
void open_log(struct trainer *trainer)
{
    const char *path = trainer->settings->log;
    if (leads_to(path, STDOUT_FILENO) || leads_to(path, STDERR_FILENO))
        return;
    trainer->log = open_locked("--log", path, O_RDWR | O_CREAT | O_APPEND);
    if (trainer->log != NONE)
        expect_own_kind("--log", path, KIND_LOG, "log of yard's");
}

/* Opens a log that others may write too.  If stdout is the same file, both share one position in it. */
static int open_shared_log(const char *path)
{
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (leads_to(path, fd))
            return dup(fd);
    return open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC);
}

/* Gives the log up: the run goes on without it. */
static void lose_log(struct progress *progress, const char *why)
{
    warn("cannot write the log %s: %s; training goes on without it, and ends with exit code %d if nobody interrupts it",
         progress->trainer->settings->log, why, EXIT_IO);
    if (progress->log != NONE)
        close(progress->log);
    progress->log = NONE;
    progress->log_lost = true;
}

/* write_all(), also where the log is a pipe: if its reader has gone, the SIGPIPE of that does not end the run. */
static size_t write_past_signal(int fd, const char *text, size_t n)
{
    sigset_t pipe_signal, blocked_before, pending;
    int number;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &blocked_before);
    size_t done = write_all(fd, text, n);
    const int problem = errno;
    sigpending(&pending);
    if (done < n && problem == EPIPE && sigismember(&pending, SIGPIPE))
        sigwait(&pipe_signal, &number);
    pthread_sigmask(SIG_SETMASK, &blocked_before, NULL);
    errno = problem;
    return done;
}

/* What a failed write says of the log. */
static const char *explain_write(int problem)
{
    if (problem == EPIPE)
        return "nobody reads it any more";
    if (problem == ENOSPC || problem == EDQUOT || problem == EFBIG)
        return "is the disk full?";
    return "is the disk in order?";
}

/* Adds a line at the end that the file has by then (O_APPEND).  If the line does not fit, its part is taken away. */
static void append_line(struct progress *progress, const char *line, size_t n)
{
    struct stat before;
    bool regular = fstat(progress->log, &before) == 0 && S_ISREG(before.st_mode);
    if (regular && before.st_nlink == 0) {
        lose_log(progress, "it was removed while it was written");
        return;
    }
    size_t done = write_past_signal(progress->log, line, n);
    if (done == n)
        return;
    char *why = format_string("%s; %s", strerror(errno), explain_write(errno));
    if (regular && done && ftruncate(progress->log, before.st_size) != 0)
        append_text(&why, " (its last line is cut)");
    lose_log(progress, why);
    free(why);
}

void write_log(struct trainer *trainer, json_t *line)
{
    struct progress *progress = trainer->progress;
    if (progress && progress->log != NONE) {
        char *text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(9));
        append_text(&text, "\n");
        append_line(progress, text, strlen(text));
        free(text);
    }
    json_decref(line);
}

/* The log's first line: the options, and what is known of the data. */
static void log_run(struct trainer *trainer)
{
    json_t *line = json_pack("{s:o}", "run", options_json(ALL_OPTIONS));
    if (trainer->data && !isnan(trainer->data->nats_per_byte)) {
        json_object_set_new(line, "rate", number_json(trainer->data->nats_per_byte * trainer->data->bytes_per_token));
        json_object_set_new(line, "floor", number_json(trainer->data->floor));
    }
    if (trainer->data)
        json_object_set_new(line, "bytes_per_token", number_json(trainer->data->bytes_per_token));
    write_log(trainer, line);
}

/* Does a resumed run find a log to add to?  The log of a killed run may end within a line, which is then ended. */
static bool goes_on_with_log(struct progress *progress)
{
    struct stat status;
    char last;
    if (fstat(progress->log, &status) != 0 || status.st_size == 0)
        return false;
    if (pread(progress->log, &last, 1, status.st_size - 1) == 1 && last != '\n')
        append_line(progress, "\n", 1);
    return true;
}

/* Begins the log of a new run, which is emptied no earlier than now, or goes on with that of a resumed one. */
static void begin_log(struct progress *progress)
{
    struct trainer *trainer = progress->trainer;
    const struct settings *settings = trainer->settings;
    const bool has_own_file = trainer->log != NONE; /* a regular file, locked by this run */
    const bool goes_on = settings->resumed || this_process->restarts;
    progress->log = trainer->log;
    if (!settings->log)
        return;
    if (!has_own_file)
        progress->log = open_shared_log(settings->log);
    if (progress->log < 0)
        fail(EXIT_IO, "cannot write the log %s: %s; give --log another file", settings->log, strerror(errno));
    if (has_own_file && goes_on && goes_on_with_log(progress))
        return;
    if (has_own_file && ftruncate(progress->log, 0) != 0)
        fail(EXIT_IO, "cannot empty the log %s: %s; give --log another file", settings->log, strerror(errno));
    log_run(trainer);
}

/* ---- before the first step ------------------------------------------------------------------------------------- */

/* Prints the floor of a made text.  Where tokens are not bytes, only the information in the text is known. */
static void print_floor(const struct dataset *dataset, int seq_len)
{
    if (isnan(dataset->nats_per_byte))
        return;
    if (dataset->bytes_per_token != 1) {
        print_line(stdout,
                   "floor       %.4f bits a byte: the text's information, which no tokens and no model can lower",
                   dataset->nats_per_byte / M_LN2);
        return;
    }
    char windows_floor[32] = "it is higher";
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

/* The line of a single device, which shows its memory by class.  Of several devices there is a table. */
static void print_memory_classes(const struct list *list)
{
    char bytes[32];
    char *classes = NULL; /* "parameters 1.2 MiB, gradients ..." */
    for (int c = 0; c < MEM_CLASSES; c++)
        append_text(&classes, "%s%s %s", c > 0 ? ", " : "", memory_class_name[c],
                    format_bytes(bytes, (double)list->peak[0][c]));
    print_line(stdout, "memory      %s", classes);
    free(classes);
}

static void print_memory_use(const struct trainer *trainer)
{
    char together[32], allocated[32];
    format_bytes(allocated, (double)trainer->machine->allocated);
    if (trainer->machine->n_devices > 1) {
        print_line(stdout, "memory      allocated %s", allocated);
        return;
    }
    print_memory_classes(trainer->train);
    print_line(stdout, "            together at most %s; allocated %s",
               format_bytes(together, (double)trainer->train->peak_total[0]), allocated);
}

static void print_training(const struct progress *progress)
{
    struct trainer *trainer = progress->trainer;
    const int n = trainer->machine->n_devices;
    char *devices = describe_machine(trainer->machine);
    char sizes[160];
    print_line(stdout, "devices     %s", devices);
    print_line(stdout, "model       %s: %zu parameters", describe_sizes(sizes, &trainer->config),
               count_parameters(trainer->model->params));
    print_data(trainer);
    print_memory_use(trainer);
    char *place = n == 1 ? copy_string("1 device") : format_string("each of %d devices", n);
    print_line(stdout,
               "step        %d sequence%s of %d tokens: %.0f tokens in %d micro-batch%s on %s, %zu tasks, %.3g GFLOP",
               trainer->batch, trainer->batch == 1 ? "" : "s", trainer->seq_len, tokens_per_step(trainer),
               trainer->micros, trainer->micros == 1 ? "" : "es", place, trainer->train->n, progress->flops / 1e9);
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
    progress->screen = is_screen(STDOUT_FILENO);
    progress->width = snprintf(NULL, 0, "%u", progress->steps);
    progress->flops = flops_per_token(trainer->model->params, trainer->seq_len) * tokens_per_step(trainer);
    trainer->progress = progress;
    begin_log(progress);
    print_training(progress);
    progress->begun_ns = now_ns();
    progress->last_ns = progress->begun_ns;
    return progress;
}

/* ---- a step ---------------------------------------------------------------------------------------------------- */

/* Prints a step's line.  On a terminal it leaves out what only the log need have. */
static void print_step_line(struct progress *progress, uint32_t step, const struct result *result, double ms)
{
    const struct wrapper *wrapper = progress->trainer->train->running->wrapper;
    char loss[32], norm[32], took[32], left[32];
    char *line = format_string("step %*u/%u  loss %s", progress->width, step, progress->steps,
                               format_number(loss, result->loss, 4));
    if (!progress->screen)
        append_text(&line, "  norm %6s  lr %.1e  %6s ms", format_number(norm, result->norm, 3), result->lr,
                    format_number(took, ms, 1));
    else if (!isnan(progress->trainer->data->floor))
        append_text(&line, "  floor %.4f", progress->trainer->data->floor);
    append_text(&line, "  %7.0f tok/s", tokens_per_step(progress->trainer) / progress->average_ms * 1e3);
    if (wrapper && wrapper->word)
        append_text(&line, "  %s", wrapper->word);
    if (progress->counted > 1 && step < progress->steps)
        append_text(&line, "  %s left", format_seconds(left, progress->average_ms * 1e-3 * (progress->steps - step)));
    if (progress->screen) {
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
    const uint64_t tenth = 10 * (uint64_t)step / progress->steps;
    const uint64_t tenth_before = 10 * (uint64_t)(step - 1) / progress->steps;
    if (step == progress->last)
        return true;
    if (progress->screen)
        return may_redraw();
    return first || tenth != tenth_before;
}

static void log_step(struct progress *progress, uint32_t step, const struct result *result, double ms)
{
    json_t *line = json_pack("{s:i}", "step", (int)step);
    json_object_set_new(line, "loss", number_json(result->loss));
    json_object_set_new(line, "norm", number_json(result->norm));
    json_object_set_new(line, "lr", number_json(result->lr));
    json_object_set_new(line, "ms", number_json(ms));
    json_object_set_new(line, "tokens_per_s", number_json(tokens_per_step(progress->trainer) / ms * 1e3));
    write_log(progress->trainer, line);
}

void show_step(struct progress *progress, uint32_t step, const struct result *result)
{
    const double ms = (double)(int64_t)(result->ended_ns - progress->last_ns) * 1e-6;
    const double held = 1e-6 * (double)(execution.held_ns - progress->held_ns);
    const double held_here = fmax(fmin(held, ms), 0); /* the rest was held in later steps */
    const bool first = progress->counted == 0;
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
    const double most = log(dataset->vocab);
    const double bits = bits_per_byte(dataset, loss);
    char text[32];
    erase_line();
    printf("step %*u/%u  validation loss %s", progress->width, step, progress->steps, format_number(text, loss, 4));
    if (dataset->floor < most) /* not if the floor is not a number, or with a vocabulary of one */
        printf("  floor %.4f  %.1f %% learnt", dataset->floor, 100 * (most - loss) / (most - dataset->floor));
    if (dataset->bytes_per_token != 1 && !isnan(bits))
        printf("  %.4f bits a byte", bits);
    printf("\n");
    fflush(stdout);
    write_log(progress->trainer, json_pack("{s:i, s:o, s:o}", "step", (int)step, "val_loss", number_json(loss),
                                           "val_bits_per_byte", number_json(bits)));
    progress->last_ns = now_ns(); /* the evaluation's time is not the next step's */
    progress->held_ns = execution.held_ns;
}

uint64_t run_began(const struct trainer *trainer) { return trainer->progress->begun_ns; }

/* ---- after the last step --------------------------------------------------------------------------------------- */

enum exit_code end_progress(struct progress *progress)
{
    const double ms = progress->total_ms / (progress->counted - 1.0);
    if (progress->total_ms >= 1e4 && !execution.serial && !progress->trainer->train->running->wrapper && !interrupted())
        printf("\nrate        %u steps after the first: mean %.4g ms, %.0f tokens/s, %.4g GFLOP/s\n",
               progress->counted - 1, ms, tokens_per_step(progress->trainer) / ms * 1e3, progress->flops / ms * 1e-6);
    const int log = progress->log;
    progress->log = NONE;
    if (log != NONE && close(log) != 0) /* a file system may put off writing until then (NFS) */
        lose_log(progress, strerror(errno));
    const enum exit_code code = progress->log_lost ? EXIT_IO : EXIT_OK;
    progress->trainer->progress = NULL;
    free(progress);
    return code;
}

void show_end(struct trainer *trainer, uint32_t step)
{
    const struct settings *settings = trainer->settings;
    const bool stopped = interrupted();
    struct kept_run run = {NULL, NULL, NULL};
    ask_kept(trainer, &run);
    if (stopped && settings->save)
        note("interrupted after step %u, saved", step);
    else if (stopped)
        note("interrupted after step %u; %s", step, run.where ? run.where : "nothing is saved without --save DIR");
    if (run.command && (stopped || (settings->stop_after && settings->stop_after < settings->steps))) {
        if (settings->log) {
            append_text(&run.more_words, " --log ");
            append_quoted(&run.more_words, settings->log);
        }
        char *program = NULL;
        append_quoted(&program, program_name);
        note("it goes on with: %s train%s%s", program, run.command, run.more_words ? run.more_words : "");
        free(program);
    } else if (settings->resumed && step > settings->resumed->step && !settings->save &&
               !settings->demands.kept_elsewhere) {
        note("nothing that this run has trained is saved: %s %s would go on saving there", settings->resumed->kept_by,
             settings->resumed->given_path);
    }
    free(run.where);
    free(run.command);
    free(run.more_words);
}
