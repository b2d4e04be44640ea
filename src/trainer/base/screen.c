/* screen.c - what a terminal can do: a line that is written over.
 *
 * There is one such line at most.  The cursor stands at its beginning, so that what a Ctrl-C echoes lies within it, and
 * whoever has something else to say erases it first: every message does, also that of a signal's handler.
 */
#include "base.h"

#include <math.h>
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
static uint64_t drawn_ns;

bool may_redraw(void) { return now_ns() - drawn_ns >= 100000000; }

void write_over(int fd, const char *text, bool stays)
{
    size_t n = 0;
    int room = screen_width(fd) - 1; /* in the last column some terminals wrap */
    while (text[n] && ((text[n] & 0xc0) == 0x80 || room-- > 0))
        n++;
    fflush(stdout);
    drawn_ns = now_ns();
    drawn_on = fd; /* before it is drawn and behind, for a signal's message may come between */
    dprintf(fd, "\r%.*s\033[K%c", (int)n, text, stays ? '\n' : '\r');
    drawn_on = stays ? 0 : fd;
}

void erase_line(void)
{
    int fd = atomic_exchange(&drawn_on, 0);
    drawn_ns = fd ? 0 : drawn_ns; /* what it had hidden may be drawn at once */
    if (fd && write(fd, "\r\033[K", 4) < 0)
        return; /* the terminal is gone */
}

/* ---- long work ------------------------------------------------------------------------------------------------- */

void show_busy(const char *what, uint64_t begun, double share)
{
    double seconds = 1e-9 * (double)(now_ns() - begun);
    char text[96];
    if (seconds < 1 || !may_redraw() || !is_screen(STDERR_FILENO))
        return;
    snprintf(text, sizeof text, share > 0 ? "%s: %.0f %%, %.0f s left" : "%s", what, 100 * fmin(share, 1),
             seconds * (1 / fmin(share, 1) - 1));
    write_over(STDERR_FILENO, text, false);
}
