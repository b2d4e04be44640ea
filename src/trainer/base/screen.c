/* screen.c - what a terminal can do that a file cannot: show a line that the next one is written over.
 *
 * There is one such line at most.  The cursor is at its beginning, so that the "^C" of a Ctrl-C is drawn over it.
 * Every message erases the line first, also a message of a signal's handler.
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
    if (ioctl(fd, TIOCGWINSZ, &window) != 0 || window.ws_col == 0)
        return 80;
    return window.ws_col;
}

/* ---- a line that is written over --------------------------------------------------------------------------------- */

static atomic_int drawn_on;       /* the descriptor of the terminal that shows a line; 0: there is none */
static _Atomic uint64_t drawn_ns; /* when it was drawn */

bool may_redraw(void) { return now_ns() - drawn_ns >= 100000000; }

void write_over(int fd, const char *text, enum drawn_line fate)
{
    int columns = screen_width(fd) - 1; /* some terminals wrap after their last column */
    fflush(stdout);
    drawn_ns = now_ns();
    drawn_on = fd; /* set before the line is drawn, and again afterwards: a signal's message may come between */
    dprintf(fd, "\r%.*s\033[K%c", (int)bytes_that_fit(text, columns), text, fate == STAYS ? '\n' : '\r');
    drawn_on = fate == STAYS ? 0 : fd;
}

void erase_line(void)
{
    int fd = atomic_exchange(&drawn_on, 0);
    if (!fd)
        return;
    drawn_ns = 0; /* the line may be drawn again at once */
    if (write(fd, "\r\033[K", 4) < 0)
        return; /* the terminal is gone */
}

/* ---- long work --------------------------------------------------------------------------------------------------- */

void show_busy(const char *activity, uint64_t begun, double share)
{
    double seconds = 1e-9 * (double)(now_ns() - begun);
    double done = fmin(share, 1);
    char text[96];
    if (seconds < 1 || !may_redraw() || !is_screen(STDERR_FILENO))
        return;
    if (done > 0)
        snprintf(text, sizeof text, "%s: %.0f %%, %.0f s left", activity, 100 * done, seconds * (1 / done - 1));
    else
        snprintf(text, sizeof text, "%s", activity);
    write_over(STDERR_FILENO, text, IS_DRAWN_OVER);
}
