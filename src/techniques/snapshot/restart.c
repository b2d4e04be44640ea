/* restart.c - yard train --restart: training runs in a child, and is started again from the newest commit when it dies.
 *
 * The parent opens no device and starts no thread, so whatever befalls a driver befalls the child alone, and a child
 * needs no exec: it is the program as it was when it had read its words.
 *
 *     the child                                         then
 *     comes to its end, or is interrupted               the parent ends with its exit code
 *     meets not-a-number, and once more when it runs    the same: the same bits would come again
 *       the bad step again (explain_not_finite())
 *     ends with 2 or 4: usage, memory, files            the same: somebody has to do something
 *     ends with 1 or 3: a driver, the watchdog          another child, once this command has come to a step; before
 *                                                       that, the same
 *     is killed by a signal                             another child
 *
 * It goes on from the snapshot file, but as the words say while that has no commit newer than it had at the start.
 */
#include "snap.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_FRUITLESS = 3 }; /* restarts, one after another, without a newer commit */

bool train_in_children(struct settings *s, int argc, char **argv, int *code)
{
    const char *file = snapshot_options.file;
    if (!snapshot_options.restart)
        return true;
    struct snap_commit newest = look_for_commit(file);
    const uint64_t known = s->past ? newest.seq : 0;
    bool trained = false;
    this_life = mmap(NULL, sizeof *this_life, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (this_life == MAP_FAILED)
        fail(EXIT_FAILED, "cannot share memory with another process");
    for (int restarts = 0, fruitless = 0, status;; restarts++) {
        bool goes_on = newest.slot && newest.seq != known;
        *this_life = (struct one_life){.begun = now_ns(), .restarts = restarts, .from = goes_on ? file : NULL};
        if (live_in_child(&status)) {
            if (goes_on)
                parse_settings(&train_page, argc, argv); /* from there, whatever the words say */
            return true;
        }
        trained |= this_life->step > 0;
        *code = WIFEXITED(status) ? WEXITSTATUS(status) : interrupted() ? EXIT_INTERRUPTED : EXIT_FAILED;
        if (this_life->not_finite)
            note("no restart: the same step would come to the same, bit for bit");
        bool died = WIFSIGNALED(status) || (trained && (*code == EXIT_FAILED || *code == EXIT_NO_DEVICE));
        if (!died || interrupted() || this_life->not_finite)
            return false;
        uint64_t before = newest.seq;
        newest = look_for_commit(file);
        fruitless = newest.seq == before ? fruitless + 1 : 0;
        if (is_screen(STDOUT_FILENO))
            write_over(STDOUT_FILENO, "", false); /* over what the child had drawn */
        char *end = WIFSIGNALED(status)
                        ? format_string("was killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)))
                        : format_string("failed with exit code %d", WEXITSTATUS(status));
        append_text(&end, this_life->step ? " after step %u" : " before its first step", this_life->step);
        if (fruitless > MOST_FRUITLESS)
            fail(EXIT_FAILED, "given up: %d restarts, and no newer commit in %s; the run %s", MOST_FRUITLESS, file,
                 end);
        if (newest.slot && newest.seq != known)
            append_text(&end, "; it goes on from iteration %u of %s", newest.step, file);
        else
            append_text(&end, "; it begins again: %s has no commit of it", file);
        print_problem(stderr, "yard: ", new_problem(EXIT_OK, "restart %d: the run %s", restarts + 1, end));
        free(end);
        sleep(fruitless > 1); /* a driver may need a moment */
    }
}
