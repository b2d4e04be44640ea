/* restart.c - yard train --restart: training runs in a child, and is started again from the newest commit when it dies.
 *
 * The parent opens no device and starts no thread.  So what happens to a driver happens to the child alone, and a child
 * needs no exec(): it is the program as it was when it had read its options.
 *
 *     the child                                         then
 *     ends as it should, or is interrupted              the parent ends with its exit code
 *     meets not-a-number, and once more when it runs    the parent ends too: the same bits would come again
 *       the bad step again (fail_not_finite())
 *     ends with 2 or 4: usage, memory, files            the parent ends too: somebody has to do something
 *     ends with 1 or 3: a driver, the watchdog          if this command has trained a step, another child begins; if
 *                                                       not, the parent ends too
 *     is killed by a signal                             another child begins
 *
 * A child goes on from the newest commit in the snapshot file.  While the file has no new commit, the child begins as
 * the options say.
 */
#include "techniques/snapfile/snapfile.h"
#include "techniques/snapshot/snapshot.h"
#include "trainer/train/hooks.h"
#include "trainer/train/train.h"

#include <sys/wait.h>
#include <unistd.h>

enum { MOST_FRUITLESS = 3 }; /* restarts, one after another, without a newer commit */

static bool asked_restart; /* is --restart given? */

/* Trainings in children, one after another, as the parent sees them. */
struct children {
    const char *file;
    uint64_t resumed_seq; /* seq of the commit that --resume goes on from, which is not new; 0: each commit is new */
    struct snapfile_commit newest; /* the newest commit when the last child ended */
    int fruitless;                 /* restarts since a newer commit came */
    bool trained;                  /* has a child trained a step? */
};

static bool has_new_commit(const struct children *children)
{
    return children->newest.slot != NO_SLOT && children->newest.seq != children->resumed_seq;
}

/* The exit code of a child, as that of this program. */
static enum exit_code code_of(int status)
{
    if (WIFEXITED(status))
        return (enum exit_code)WEXITSTATUS(status);
    return interrupted() ? EXIT_INTERRUPTED : EXIT_FAILED;
}

/* May another child get further than this one did?  status, code: how it ended, as wait() and code_of() say. */
static bool may_go_on(const struct children *children, int status, enum exit_code code)
{
    bool device_failed = children->trained && (code == EXIT_FAILED || code == EXIT_NO_DEVICE);
    return (WIFSIGNALED(status) || device_failed) && !interrupted() && !this_process->not_finite;
}

/* "was killed by signal 9 (Killed) after step 12"; the caller frees it. */
static char *describe_end(int status)
{
    char *end = NULL;
    if (WIFSIGNALED(status))
        append_text(&end, "was killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        append_text(&end, "failed with exit code %d", WEXITSTATUS(status));
    if (this_process->step)
        append_text(&end, " after step %u", this_process->step);
    else
        append_text(&end, " before its first step");
    return end;
}

/* Says how the child has ended, and from where the next child goes on.  Ends the program after too many restarts. */
static void prepare_restart(struct children *children, int nth, int status)
{
    uint64_t before = children->newest.seq;
    children->newest = look_for_commit(children->file);
    children->fruitless++;
    if (children->newest.seq != before)
        children->fruitless = 0;
    if (is_screen(STDOUT_FILENO))
        write_over(STDOUT_FILENO, "", IS_DRAWN_OVER); /* erases the line that the child had drawn */
    char *end = describe_end(status);
    if (children->fruitless > MOST_FRUITLESS)
        fail(EXIT_FAILED, "given up after %d restarts without a newer commit in %s: the run %s", MOST_FRUITLESS,
             children->file, end);
    if (has_new_commit(children))
        append_text(&end, "; it goes on from step %u of %s", children->newest.step, children->file);
    else
        append_text(&end, "; it begins again: %s has no commit of it", children->file);
    say(stderr, "yard: ", "restart %d: the run %s", nth, end);
    free(end);
    if (children->fruitless > 1)
        sleep(1); /* a driver may need a moment */
}

/* Sets all of *settings anew: parse_settings() always returns the same struct. */
static void reread_settings(struct settings *settings, int argc, char **argv)
{
    const struct settings *read = parse_settings(&train_usage, argc, argv);
    CHECK(read == settings, "the settings were read into another struct");
}

enum supervised { IN_CHILD, ALL_ENDED };

/* Begins children one after another.  Returns IN_CHILD in each of them, and ALL_ENDED in the parent, when no child
 * comes any more: *code is then the last one's exit code. */
static enum supervised supervise(struct children *children, enum exit_code *code)
{
    for (int nth = 0;; nth++) {
        int status;
        const char *from = has_new_commit(children) ? children->file : NULL;
        *this_process = (struct process_facts){.begun = now_ns(), .restarts = nth, .from = from};
        if (live_in_child(&status))
            return IN_CHILD;
        children->trained |= this_process->step > 0;
        *code = code_of(status);
        if (!may_go_on(children, status, *code))
            return ALL_ENDED;
        prepare_restart(children, nth + 1, status);
    }
}

/* Returns true where this process trains: in each child, and without --restart; false in the parent, at the end. */
static bool train_in_children(struct settings *settings, int argc, char **argv, enum exit_code *code)
{
    struct children children = {.file = asked_snapshot.file};
    if (!asked_restart)
        return true;
    children.newest = look_for_commit(children.file);
    if (settings->resumed)
        children.resumed_seq = children.newest.seq;
    this_process = allocate_shared(sizeof *this_process);
    if (supervise(&children, code) == IN_CHILD) {
        if (this_process->from) /* the run goes on from there, whatever the options say */
            reread_settings(settings, argc, argv);
        return true;
    }
    if (this_process->not_finite)
        inform("the run is not restarted, since the same step would give the same bits");
    return false;
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static void check_restart_options(void)
{
    if (asked_restart && !asked_snapshot.file)
        fail(EXIT_USAGE, "--restart goes on from a snapshot: add --snapshot FILE");
}

static void add_restart_word(struct trainer *trainer, struct kept_run *kept_run)
{
    (void)trainer;
    if (asked_restart)
        append_text(&kept_run->more_words, " --restart");
}

static const struct option options[] = {
    {.name = "restart",
     .type = OPT_FLAG,
     .value = &asked_restart,
     .group = GROUP_TECHNIQUES,
     .classes = OF_TRAIN,
     .help = "train in a process of its own, which goes on from the newest commit in --snapshot FILE. If it dies, "
             "another process goes on in the same way. With --resume the first one goes on from there. Ctrl-C, a loss "
             "that is not finite, and 3 restarts without a newer commit end the run"},
};
static const struct hooks hooks = {
    .takes_part = train_in_children,
    .kept = add_restart_word,
};
static const struct training_parts training = {.hooks = &hooks};
const struct module module_restart = {
    .name = "restart",
    .needs = "snapshot",
    .options = options,
    .n_options = COUNT(options),
    .unrecorded = "restart",
    .check = check_restart_options,
    .training = &training,
};
