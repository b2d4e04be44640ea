/* test_screen.c - what a terminal shows while yard runs on one.
 *
 * It tests screen.c of src/trainer/base, and the lines that commands draw again.  It checks that the screen has in the
 * end what yard prints where there is no terminal, whatever the width is: no line is left over, and none is
 * overwritten.  It catches a line that is wider than the screen, and a redrawn line that leaves letters of the old one.
 *
 * To see it fail: in screen.c, let the width be 80, whatever the terminal says.
 *
 * The terminal is in this program: a pseudo terminal, and a screen on which it carries out what yard writes.
 */
#include "tests/support/support.h"
#include "tests/support/support_training.h"
#include "trainer/file/file.h"
#include "trainer/train/progress.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#define TRAIN "train --model tiny --sample-tokens 0 --val-batches 1 "

enum { ROWS = 256, COLUMNS = 256 }; /* of what is kept, a terminal may be narrower */

struct screen {
    char row[ROWS][COLUMNS]; /* what is not ASCII is '#' */
    int n, at, code;         /* n: rows that are done; at: the column */
    int drawn, widest;       /* lines that can be written over; columns of the widest */
    double seconds;
};

static void obey(struct screen *screen, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        char *row = screen->row[screen->n];
        assert_below(screen->n, ROWS - 1);
        assert_below(screen->at, COLUMNS - 1);
        if (byte == '\r')
            screen->at = 0;
        else if (byte == '\n')
            screen->n++;
        else if (byte == '\033' && i + 2 < n && memcmp(bytes + i, "\033[K", 3) == 0) {
            memset(row + screen->at, 0, (size_t)(COLUMNS - screen->at));
            i += 2;
            if (screen->at > 0)
                screen->drawn++;
            screen->widest = MAX(screen->widest, screen->at);
        } else if ((byte & 0xc0) != 0x80)
            row[screen->at++] = (char)(byte < 0x80 ? byte : '#');
    }
}

/* Opens the terminal `name`, and becomes yard with these words there. */
static _Noreturn void become_yard(const char *name, const char *terminal, const char *words)
{
    const char *yard = getenv("YARD") ? getenv("YARD") : "./yard";
    setsid();
    int fd = open(name, O_RDWR);
    ioctl(fd, TIOCSCTTY, 0);
    for (int i = 0; i < 3; i++)
        dup2(fd, i);
    setenv("TERM", terminal, 1);
    execl("/bin/sh", "sh", "-c", lasting("exec %s %s", yard, words), (char *)NULL);
    _exit(99);
}

/* A terminal of so many columns, as its other side has it. */
static int open_terminal(int columns)
{
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0) /* a container without /dev/pts */
        skip();
    assert_int_equal(grantpt(master), 0);
    assert_int_equal(unlockpt(master), 0);
    assert_int_equal(ioctl(master, TIOCSWINSZ, &size), 0);
    return master;
}

/* All that the child writes until it ends; Ctrl-C is typed when `stop` has been shown.  *status: how it ended. */
static char *read_until_end(int master, pid_t child, const char *stop, size_t *n, int *status)
{
    char *all = NULL;
    size_t cap = 0;
    char byte;
    while (read(master, &byte, 1) == 1) { /* it fails when the child, the last that had the terminal open, has ended */
        GROW(all, cap, *n + 1);
        all[(*n)++] = byte;
        if (stop && *n >= strlen(stop) && memcmp(all + *n - strlen(stop), stop, strlen(stop)) == 0) {
            assert_int_equal(write(master, "\003", 1), 1);
            stop = NULL;
        }
    }
    assert_int_equal(waitpid(child, status, 0), child);
    return all;
}

/* Runs yard with these words on a terminal of so many columns, and types Ctrl-C when `stop` has been shown. */
static struct screen show(int columns, const char *terminal, const char *stop, const char *words)
{
    struct screen screen = {.code = -1};
    size_t n = 0;
    int status;
    int master = open_terminal(columns);
    uint64_t begun = now_ns();
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        become_yard(ptsname(master), terminal, words);
    char *all = read_until_end(master, child, stop, &n, &status);
    if (WIFEXITED(status))
        screen.code = WEXITSTATUS(status);
    screen.seconds = 1e-9 * (double)(now_ns() - begun);
    obey(&screen, all, n);
    close(master);
    free(all);
    return screen;
}

/* How many rows begin so; the last of them. */
static int rows_with(const struct screen *screen, const char *start, const char **last)
{
    int count = 0;
    for (int i = 0; i <= screen->n; i++)
        if (strncmp(screen->row[i], start, strlen(start)) == 0) {
            count++;
            *last = screen->row[i];
        }
    return count;
}

static int lines_of_log(const char *path)
{
    size_t n;
    int count = 0;
    char *text = read_whole(path, &n);
    for (const char *at = text; (at = strstr(at, "\"step\":")); at++)
        if (strstr(at, "\"loss\"") == at + strcspn(at, ",") + 1)
            count++;
    free(text);
    return count;
}

/* Between evaluations steps have one line, cut to the terminal, at most ten times a second; the log has them all. */
TEST(steps_share_a_line)
{
    const char *log = temp_path("log"), *last = "";
    for (int wide = 0; wide < 2; wide++) {
        int columns = wide ? 100 : 20;
        struct screen screen =
            show(columns, "xterm", NULL, lasting(TRAIN "--steps 1500 --val-every 750 --log %s", log));
        assert_int_equal(screen.code, 0);
        assert_int_equal(rows_with(&screen, "step ", &last), 4); /* two evaluations, the last step; what a step is */
        assert_begins_with(last, "step 1500/1500  validation loss");
        assert_below(screen.widest, columns);
        assert_above(screen.drawn, 2);
        assert_at_most(screen.drawn, 10 * screen.seconds + 2);
        assert_int_equal(lines_of_log(log), 1500);
    }
}

/* A message stands on a row of its own, and nothing is left of the line. */
TEST(what_is_said_erases_the_line)
{
    const char *row = "";
    struct screen screen = show(90, "xterm", "tok/s", TRAIN "--steps 100000000");
    assert_int_equal(screen.code, EXIT_INTERRUPTED);
    assert_int_equal(rows_with(&screen, "yard: interrupted: ", &row), 1);
    assert_string_equal(row, "yard: interrupted: finishing the step; a second signal ends the run at once");
    assert_int_equal(rows_with(&screen, "interrupted after step ", &row), 1);
    assert_string_equal(screen.row[screen.n], "");
    screen = show(90, "xterm", NULL, TRAIN "--steps 100 --lr 1000 --clip 0");
    assert_int_equal(screen.code, EXIT_FAILED);
    assert_int_equal(rows_with(&screen, "yard: ", &row), 1);
    assert_int_equal(rows_with(&screen, "step", &row), 1); /* what a step is */
}

/* An audited step may take minutes. */
LONG_TEST(an_audit_says_how_far_it_is)
{
    struct screen screen = show(90, "xterm", "s left", TRAIN "--seq-len 128 --batch 16 --steps 1 --serial --audit");
    assert_int_equal(screen.code, EXIT_INTERRUPTED); /* only where a time is shown */
}

/* Elsewhere: the first step, and one line per tenth. */
LONG_TEST(a_file_gets_a_line_per_tenth)
{
    static const int steps[] = {1, 7, 10, 11, 25, 300};
    const char *log = temp_path("log"), *last;
    for (size_t i = 0; i < COUNT(steps); i++) {
        struct screen screen = show(80, "dumb", NULL, lasting(TRAIN "--steps %d --log %s", steps[i], log));
        assert_int_equal(rows_with(&screen, "step ", &last),
                         MIN(steps[i], 11) + 1 + 1); /* and one line each that tells the step and the validation */
        assert_int_equal(screen.drawn, 0);
        assert_int_equal(lines_of_log(log), steps[i]);
    }
}

/* A step that is held, here for 10 s among some of 10 ms, is not taken for the pace of those to come. */
CASE(held)
{
    struct settings *settings = parse_words(TINY_SIZES "--steps 20");
    struct progress *progress = begin_progress(open_training(settings, LIST_TRAIN));
    uint64_t ended = now_ns();
    fflush(stdout);
    dup2(2, 1);
    for (uint32_t step = 1; step <= 10; step++) {
        ended += step == 10 ? 10000000000 : 10000000;
        show_step(progress, step, &(struct result){.ended_ns = ended});
    }
    fail(EXIT_FAILED, "held");
}

TEST(time_left_forgets_a_pause) { assert_contains(run_self("held").text, "  0.1 s left\nyard: held"); }
