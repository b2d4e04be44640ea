/* screen.c - what a terminal can do: a line that is written over, and a pager.
 *
 * There is one such line at most.  The cursor stands at its beginning, so that what a Ctrl-C echoes lies within it, and
 * whoever has something else to say erases it first: every message does, also that of a signal's handler.
 */
#include "base.h"

#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool is_screen(int fd)
{
    const char *terminal = getenv("TERM");
    return isatty(fd) && !(terminal && strcmp(terminal, "dumb") == 0);
}

int screen_width(int fd)
{
    struct winsize window;
    return ioctl(fd, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 ? window.ws_col : 80;
}

/* ---- a line that is written over ------------------------------------------------------------------------------- */

static atomic_int drawn_on; /* the descriptor that has one; 0: there is none */

void write_over(int fd, const char *text, bool keep)
{
    size_t n = 0;
    int room = screen_width(fd) - 1; /* in the last column some terminals wrap */
    while (text[n] && ((text[n] & 0xc0) == 0x80 || room-- > 0))
        n++;
    fflush(stdout);
    drawn_on = fd; /* before it is drawn and behind, for a signal's message may come between */
    dprintf(fd, "\r%.*s\033[K%c", (int)n, text, keep ? '\n' : '\r');
    drawn_on = keep ? 0 : fd;
}

void erase_line(void)
{
    static const char erase[] = "\r\033[K";
    int fd = atomic_exchange(&drawn_on, 0);
    ssize_t unused = fd ? write(fd, erase, sizeof erase - 1) : 0;
    (void)unused; /* the terminal may be gone */
}

/* ---- long work ------------------------------------------------------------------------------------------------- */

void show_busy(struct busy *b, double share)
{
    static const uint64_t second = 1000000000;
    uint64_t now = now_ns();
    char text[96];
    b->begun = b->begun ? b->begun : now;
    b->shown = b->shown ? b->shown : now;
    if (now - b->shown < second || !is_screen(STDERR_FILENO))
        return;
    share = fmin(share, 1);
    double left = 1e-9 * (double)(now - b->begun) * (1 / share - 1);
    b->shown = now;
    snprintf(text, sizeof text, share > 0 ? "%s: %.0f %%, %.0f s left" : "%s", b->what, 100 * share, left);
    write_over(STDERR_FILENO, text, false);
}

void end_busy(struct busy *b)
{
    erase_line();
    *b = (struct busy){.what = b->what};
}

/* ---- a pager --------------------------------------------------------------------------------------------------- */

static struct sigaction at_interrupt; /* what SIGINT did before the pager had the terminal */

FILE *open_pager(void)
{
    static const char command[] = "pager=${PAGER-less -FRX}; command -v \"${pager%% *}\" >/dev/null || pager=cat\n"
                                  "eval \"exec $pager\"";
    fflush(stdout);
    FILE *out = is_screen(STDOUT_FILENO) ? popen(command, "w") : NULL;
    if (!out)
        return stdout;
    sigaction(SIGINT, &(struct sigaction){.sa_handler = SIG_IGN}, &at_interrupt); /* it is the pager's */
    signal(SIGPIPE, SIG_IGN);                                                     /* who has seen enough quits it */
    return out;
}

void close_pager(FILE *out)
{
    if (out == stdout)
        return;
    pclose(out);
    signal(SIGPIPE, SIG_DFL);
    sigaction(SIGINT, &at_interrupt, NULL);
}
