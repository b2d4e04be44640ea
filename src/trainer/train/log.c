/* log.c - the file of --log: locks it, empties it or goes on with it, adds lines, and gives it up if that fails.
 *
 * The log has one JSON object per line: the run, then steps and evaluations; not-a-number is null.  This file makes the
 * first line.  progress.c makes those of steps and evaluations, and other folders add lines by write_log().
 *
 * A log that can no longer be written does not end the run: it is given up with a warning, and changes the exit code.
 */
#include "log.h"
#include "trainer/base/base.h"
#include "trainer/base/json.h"
#include "trainer/data/data.h"
#include "trainer/file/file.h"
#include "trainer/settings/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

struct log {
    const char *path;
    int file;    /* its descriptor; NONE: it is shared and has not begun, or it is lost */
    bool locked; /* it is a regular file, which only this run writes */
    bool lost;   /* a line could not be written, and no more are */
};

/* The lock is taken before anything of this run is written, since another run's log would be lost otherwise.  Only a
 * regular file is locked.  A device, a pipe, or the file that is stdout or stderr too, is left to open_shared_log(). */
struct log *open_log(const char *path)
{
    if (!path)
        return NULL;
    struct log *log = allocate(1, sizeof *log);
    *log = (struct log){.path = path, .file = NONE};
    if (leads_to(path, STDOUT_FILENO) || leads_to(path, STDERR_FILENO))
        return log;
    must(open_locked("--log", path, O_RDWR | O_CREAT | O_APPEND, &log->file));
    log->locked = log->file != NONE;
    if (log->locked)
        expect_own_kind("--log", path, KIND_LOG, "log that yard wrote");
    return log;
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
static void give_up_log(struct log *log, const char *why)
{
    warn("cannot write the log %s: %s; training goes on without it, and ends with exit code %d", log->path, why,
         EXIT_IO);
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
    int error = errno;
    sigpending(&pending);
    if (done < n && error == EPIPE && sigismember(&pending, SIGPIPE))
        sigwait(&pipe_signal, &number);
    pthread_sigmask(SIG_SETMASK, &blocked_before, NULL);
    errno = error;
    return done;
}

/* What a failed write says of the log. */
static const char *explain_write(int error)
{
    if (error == EPIPE)
        return "nobody reads it any more";
    if (error == ENOSPC || error == EDQUOT || error == EFBIG)
        return "is the disk full?";
    return "is the disk in order?";
}

/* Adds a line at the end that the file has by then (O_APPEND).  If the line does not fit, its part is taken away. */
static void append_line(struct log *log, const char *line, size_t n)
{
    struct stat before;
    bool is_regular = fstat(log->file, &before) == 0 && S_ISREG(before.st_mode);
    if (is_regular && before.st_nlink == 0) {
        give_up_log(log, "it was removed while it was written");
        return;
    }
    size_t done = write_past_signal(log->file, line, n);
    if (done == n)
        return;
    char *why = format_string("%s; %s", strerror(errno), explain_write(errno));
    if (is_regular && done && ftruncate(log->file, before.st_size) != 0)
        append_text(&why, " (its last line is cut)");
    give_up_log(log, why);
    free(why);
}

void write_log(struct log *log, json_t *line)
{
    if (log && log->file != NONE) {
        char *text = dump_json(line, JSON_COMPACT | JSON_REAL_PRECISION(9));
        append_text(&text, "\n");
        append_line(log, text, strlen(text));
        free(text);
    }
    json_decref(line);
}

static void log_run(struct log *log, const struct dataset *dataset)
{
    json_t *line = json_pack("{s:o}", "run", options_json(ALL_OPTIONS));
    if (!isnan(dataset->nats_per_byte)) {
        set_json_number(line, "rate", dataset->nats_per_byte * dataset->bytes_per_token);
        set_json_number(line, "floor", dataset->floor);
    }
    set_json_number(line, "bytes_per_token", dataset->bytes_per_token);
    write_log(log, line);
}

/* Does a run that goes on find a log to add to?  The log of a killed run may end within a line, which is then ended. */
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

void begin_log(struct log *log, bool goes_on, const struct dataset *dataset)
{
    if (!log)
        return;
    if (!log->locked)
        log->file = open_shared_log(log->path);
    if (log->file < 0)
        fail(EXIT_IO, "cannot write the log %s: %s; give --log another file", log->path, strerror(errno));
    if (log->locked && goes_on && goes_on_with_log(log))
        return;
    if (log->locked && ftruncate(log->file, 0) != 0)
        fail(EXIT_IO, "cannot empty the log %s: %s; give --log another file", log->path, strerror(errno));
    log_run(log, dataset);
}

bool end_log(struct log *log)
{
    if (!log)
        return true;
    int file = log->file;
    log->file = NONE;
    if (file != NONE && close(file) != 0) /* a file system may put off writing until then (NFS) */
        give_up_log(log, strerror(errno));
    bool whole = !log->lost;
    free(log);
    return whole;
}
