/* progress.c - what the user sees while training, and the log.
 *
 * A terminal has one line for the steps, which is written over.  A file or a pipe gets a line per tenth of the run, the
 * log every step.
 *
 * The log has one JSON object per line: the run, then steps and evaluations; not-a-number is null.
 */
#include "hooks.h"
#include "trainer/base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

struct progress {
    struct trainer *trainer;
    int log;              /* -1: none, or none any more */
    bool log_lost;        /* it could not be written to its end */
    uint32_t steps, last; /* of the training; where this run ends */
    int width;            /* digits of steps */
    bool screen;          /* stdout is one */
    double flops;         /* per step */
    uint64_t last_ns;     /* end of the step before */
    uint64_t held_ns;     /* of execution.held_ns what has been left out */
    double average_ms;    /* of recent steps without what they were held, for the time left */
    double total_ms;      /* the same of all steps but the first, which compiles the kernels */
    uint32_t counted;
    uint64_t begun_ns; /* the run */
};

/* ---- the log --------------------------------------------------------------------------------------------------- */

/* Locked before anything is in it that another run would lose.  What stdout leads to is left to open_device(). */
void open_log(struct trainer *t)
{
    const char *path = t->settings->log;
    if (leads_to(path, STDOUT_FILENO) || leads_to(path, STDERR_FILENO))
        return;
    t->log = open_locked("--log", path, O_RDWR | O_CREAT | O_APPEND);
    if (t->log >= 0)
        expect_own_kind("--log", path, KIND_LOG, "log of yard's");
}

/* Many may write there; what is the same as stdout has one place in the file with it. */
static int open_device(const char *path)
{
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (leads_to(path, fd))
            return dup(fd);
    return open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC);
}

/* The run goes on without it. */
static void lose_log(struct progress *p, const char *why)
{
    warn("cannot write the log %s: %s; training goes on without it, and ends with exit code %d",
         p->trainer->settings->log, why, EXIT_IO);
    close(p->log);
    p->log = -1;
    p->log_lost = true;
}

/* All of a line in one go, behind whatever is in the file by then (O_APPEND).  A line that does not fit goes again. */
static void append_line(struct progress *p, const char *line, size_t n)
{
    struct stat before;
    bool regular = fstat(p->log, &before) == 0 && S_ISREG(before.st_mode);
    if (regular && before.st_nlink == 0) {
        lose_log(p, "it was removed while it was written");
        return;
    }
    for (size_t done = 0; done < n;) {
        ssize_t written = write(p->log, line + done, n - done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            char *why = format_string("%s; is the disk full?", strerror(errno));
            if (regular && done && ftruncate(p->log, before.st_size) != 0)
                append_text(&why, " Its last line is cut");
            lose_log(p, why);
            free(why);
            return;
        }
        done += (size_t)written;
    }
}

void write_log(struct trainer *t, json_t *line)
{
    struct progress *p = t->progress;
    if (p && p->log >= 0) {
        char *text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(9));
        append_text(&text, "\n");
        append_line(p, text, strlen(text));
        free(text);
    }
    json_decref(line);
}

/* A new run's log is emptied only now.  A resumed run's goes on behind what is there, from a new line on: that of a
 * killed run may end within one. */
static void begin_log(struct progress *p)
{
    struct trainer *t = p->trainer;
    const struct settings *s = t->settings;
    const bool goes_on = s->past || this_life->restarts, known = t->data && !isnan(t->data->rate);
    struct stat status;
    char last;
    p->log = t->log;
    if (s->log && p->log < 0)
        p->log = open_device(s->log);
    if (s->log && (p->log < 0 || fstat(p->log, &status) != 0))
        fail(EXIT_IO, "cannot write the log %s: %s", s->log, strerror(errno));
    if (t->log >= 0 && !goes_on && ftruncate(t->log, 0) != 0)
        fail(EXIT_IO, "cannot empty the log %s: %s", s->log, strerror(errno));
    if (t->log >= 0 && goes_on && status.st_size > 0) {
        if (pread(t->log, &last, 1, status.st_size - 1) == 1 && last != '\n')
            append_line(p, "\n", 1);
        return;
    }
    write_log(p->trainer, json_pack("{s:o, s:o*, s:o*}", "run", options_json(false), "rate",
                                    known ? number_json(t->data->rate) : NULL, "floor",
                                    known ? number_json(t->data->floor) : NULL));
}

/* ---- before the first step ------------------------------------------------------------------------------------- */

static void print_summary(const struct progress *p)
{
    static const char *const kinds[] = {[TOKENS_BYTES] = "bytes", [TOKENS_CHARS] = "characters", [TOKENS_IDS] = "ids"};
    struct trainer *t = p->trainer;
    const int n = t->machine->n_devices;
    char *devices = describe_machine(t->machine), text[160];
    printf("devices     %s\n", devices);
    printf("model       %s: %zu parameters\n", describe_sizes(text, &t->config), count_parameters(t->model->params));
    if (t->data)
        print_line(stdout, "data        %s: %zu tokens (%s) to train, %zu to validate",
                   t->settings->data.path ? t->settings->data.path : default_data(), t->data->train.n,
                   kinds[t->data->tokenizer.kind], t->data->val.n);
    if (t->data && !isnan(t->data->rate))
        printf("floor       %.4f nats a token: no model has a lower loss; on windows of %d tokens %s\n", t->data->rate,
               t->seq, isnan(t->data->floor) ? "it is higher" : format_number(text, t->data->floor, 4));
    printf("memory      ");
    for (int c = 0; c < MEM_CLASSES && n == 1; c++)
        printf("%s%s %s", c ? ", " : "", memory_class_name[c], format_bytes(text, (double)t->train->peak[0][c]));
    if (n == 1) /* of several there is a table */
        printf("\n            together at most %s; ", format_bytes(text, (double)t->train->high[0]));
    printf("allocated %s\n", format_bytes(text, (double)t->machine->allocated));
    printf("step        %d sequence%s of %d tokens: %.0f tokens in %d micro-batch%s on %s%d device%s, %zu tasks, %.3g "
           "GFLOP\n",
           t->batch, t->batch == 1 ? "" : "s", t->seq, tokens_per_step(t), t->micros, t->micros == 1 ? "" : "es",
           n == 1 ? "" : "each of ", n, n == 1 ? "" : "s", t->train->n, p->flops / 1e9);
    ask_summary(t);
    printf("\n");
    fflush(stdout);
    free(devices);
}

struct progress *begin_progress(struct trainer *t)
{
    const struct settings *s = t->settings;
    struct progress *p = allocate(1, sizeof *p);
    p->trainer = t;
    p->steps = (uint32_t)s->steps;
    p->last = (uint32_t)(s->stop_after ? s->stop_after : s->steps);
    p->screen = is_screen(STDOUT_FILENO);
    p->width = snprintf(NULL, 0, "%u", p->steps);
    p->flops = flops_per_token(t->model->params, t->seq) * tokens_per_step(t);
    t->progress = p;
    begin_log(p);
    print_summary(p);
    p->last_ns = p->begun_ns = now_ns();
    return p;
}

/* ---- a step ---------------------------------------------------------------------------------------------------- */

/* Both forms of a step's line; the terminal's leaves out what only the log need have. */
static void print_shown(struct progress *p, uint32_t number, const struct result *r, double ms)
{
    const struct wrapper *wrapper = p->trainer->train->running->wrapper;
    char loss[32], norm[32], time[32], left[32];
    char *line = format_string("step %*u/%u  loss %s", p->width, number, p->steps, format_number(loss, r->loss, 4));
    if (!p->screen)
        append_text(&line, "  norm %6s  lr %.1e  %6s ms", format_number(norm, r->norm, 3), r->lr,
                    format_number(time, ms, 1));
    else if (!isnan(p->trainer->data->floor))
        append_text(&line, "  floor %.4f", p->trainer->data->floor);
    append_text(&line, "  %5.0f tok/s", tokens_per_step(p->trainer) / p->average_ms * 1e3);
    if (wrapper && wrapper->word)
        append_text(&line, "  %s", wrapper->word);
    if (p->counted > 1 && number < p->steps)
        append_text(&line, "  %s left", format_seconds(left, p->average_ms * 1e-3 * (p->steps - number)));
    if (p->screen)
        write_over(STDOUT_FILENO, line, number == p->last);
    else
        printf("%s\n", line), fflush(stdout);
    free(line);
}

void show_step(struct progress *p, uint32_t number, const struct result *r)
{
    const double ms = (double)(int64_t)(r->ended_ns - p->last_ns) * 1e-6, tokens = tokens_per_step(p->trainer);
    const double held = fmax(fmin(1e-6 * (double)(execution.held_ns - p->held_ns), ms), 0), ran = ms - held;
    const uint64_t tenth = 10 * (uint64_t)number / p->steps;
    const bool first = p->counted == 0, last = number == p->last;
    p->last_ns = r->ended_ns;
    p->held_ns += (uint64_t)(1e6 * held);
    p->total_ms += p->counted++ ? ran : 0;
    /* The first step compiles the kernels.  What is far longer than the others was stopped, and counts as two. */
    p->average_ms = p->counted <= 2 ? ran : 0.9 * p->average_ms + 0.1 * fmin(ran, 2 * p->average_ms);
    if (last || (p->screen ? may_redraw() : first || tenth != 10 * (uint64_t)(number - 1) / p->steps))
        print_shown(p, number, r, ms);
    this_life->step = number;
    write_log(p->trainer, json_pack("{s:i, s:o, s:o, s:o, s:o, s:o}", "step", (int)number, "loss", number_json(r->loss),
                                    "norm", number_json(r->norm), "lr", number_json(r->lr), "ms", number_json(ms),
                                    "tokens_per_s", number_json(tokens / ms * 1e3)));
}

/* What can be learnt lies between the loss of one who knows nothing, ln V, and the floor. */
void show_evaluation(struct progress *p, uint32_t number, double loss)
{
    const struct dataset *d = p->trainer->data;
    erase_line();
    printf("step %*u/%u  validation loss %s", p->width, number, p->steps, format_number((char[32]){0}, loss, 4));
    if (d->floor < log(d->vocab)) /* not if it is not a number, or with a vocabulary of one */
        printf("  floor %.4f  %.1f %% learnt", d->floor, 100 * (log(d->vocab) - loss) / (log(d->vocab) - d->floor));
    printf("\n");
    fflush(stdout);
    write_log(p->trainer, json_pack("{s:i, s:o}", "step", (int)number, "val_loss", number_json(loss)));
    p->last_ns = now_ns(); /* the evaluation's time is not the next step's */
    p->held_ns = execution.held_ns;
}

uint64_t run_began(const struct trainer *t) { return t->progress->begun_ns; }

/* ---- behind the last step -------------------------------------------------------------------------------------- */

enum exit_code end_progress(struct progress *p)
{
    const double ms = p->total_ms / (p->counted - 1.0);
    if (p->total_ms >= 1e4 && !execution.serial && !p->trainer->train->running->wrapper && !interrupted())
        printf("\nrate        %u steps behind the first: mean %.4g ms, %.0f tokens/s, %.4g GFLOP/s\n", p->counted - 1,
               ms, tokens_per_step(p->trainer) / ms * 1e3, p->flops / ms * 1e-6);
    if (p->log >= 0 && close(p->log) != 0) { /* where writing is put off (NFS) */
        p->log = -1;
        lose_log(p, strerror(errno));
    }
    const enum exit_code code = p->log_lost ? EXIT_IO : EXIT_OK;
    p->trainer->progress = NULL;
    free(p);
    return code;
}
