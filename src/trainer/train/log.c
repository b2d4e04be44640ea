/* log.c - the file of --log: locks it, empties it or goes on with it, adds lines, and gives it up if that fails.
 *
 * The log has one JSON object per line: the run, then steps and evaluations; not-a-number is null.  This file makes the
 * first line.  progress.c makes those of steps and evaluations, and other folders add lines by write_log().
 *
 * A log that can no longer be written does not end the run: it is given up with a warning, and changes the exit code.
 */
#include "progress.h"
#include "train_parts.h"
#include "trainer/base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

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
static void lose_log(struct log *log, const char *why)
{
    warn("cannot write the log %s: %s; training goes on without it, and ends with exit code %d if nobody interrupts it",
         log->path, why, EXIT_IO);
    if (log->file != NONE)
        close(log->file);
    log->file = NONE;
    log->lost = true;
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
static void append_line(struct log *log, const char *line, size_t n)
{
    struct stat before;
    bool regular = fstat(log->file, &before) == 0 && S_ISREG(before.st_mode);
    if (regular && before.st_nlink == 0) {
        lose_log(log, "it was removed while it was written");
        return;
    }
    size_t done = write_past_signal(log->file, line, n);
    if (done == n)
        return;
    char *why = format_string("%s; %s", strerror(errno), explain_write(errno));
    if (regular && done && ftruncate(log->file, before.st_size) != 0)
        append_text(&why, " (its last line is cut)");
    lose_log(log, why);
    free(why);
}

void write_log(struct trainer *trainer, json_t *line)
{
    struct log *log = log_of(trainer);
    if (log && log->file != NONE) {
        char *text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(9));
        append_text(&text, "\n");
        append_line(log, text, strlen(text));
        free(text);
    }
    json_decref(line);
}

/* The log's first line: the options, and what is known of the data. */
static void log_run(struct trainer *trainer)
{
    const struct dataset *dataset = trainer->data;
    json_t *line = json_pack("{s:o}", "run", options_json(ALL_OPTIONS));
    if (!isnan(dataset->nats_per_byte)) {
        json_object_set_new(line, "rate", number_json(dataset->nats_per_byte * dataset->bytes_per_token));
        json_object_set_new(line, "floor", number_json(dataset->floor));
    }
    json_object_set_new(line, "bytes_per_token", number_json(dataset->bytes_per_token));
    write_log(trainer, line);
}

/* Does a resumed run find a log to add to?  The log of a killed run may end within a line, which is then ended. */
static bool goes_on_with_log(struct log *log)
{
    struct stat status;
    char last;
    if (fstat(log->file, &status) != 0 || status.st_size == 0)
        return false;
    if (pread(log->file, &last, 1, status.st_size - 1) == 1 && last != '\n')
        append_line(log, "\n", 1);
    return true;
}

void begin_log(struct trainer *trainer)
{
    struct log *log = log_of(trainer);
    const struct settings *settings = trainer->settings;
    const bool has_own_file = trainer->log != NONE; /* a regular file, locked by this run */
    const bool goes_on = settings->resumed || this_process->restarts;
    log->path = settings->log;
    log->file = trainer->log;
    if (!settings->log)
        return;
    if (!has_own_file)
        log->file = open_shared_log(settings->log);
    if (log->file < 0)
        fail(EXIT_IO, "cannot write the log %s: %s; give --log another file", settings->log, strerror(errno));
    if (has_own_file && goes_on && goes_on_with_log(log))
        return;
    if (has_own_file && ftruncate(log->file, 0) != 0)
        fail(EXIT_IO, "cannot empty the log %s: %s; give --log another file", settings->log, strerror(errno));
    log_run(trainer);
}

bool end_log(struct trainer *trainer)
{
    struct log *log = log_of(trainer);
    const int file = log->file;
    log->file = NONE;
    if (file != NONE && close(file) != 0) /* a file system may put off writing until then (NFS) */
        lose_log(log, strerror(errno));
    return !log->lost;
}
