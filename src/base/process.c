/* process.c - what the program does about the shell that started it: descriptors and signals.
 *
 * SIGINT, SIGTERM and SIGHUP ask the program to end.  Before training, and in every other command, it ends at once.
 * While it trains, the first one only sets a flag, which the training loop reads between steps, and the second one ends
 * the program.  A SIGHUP that the parent ignores (nohup) stays ignored; a SIGINT that a shell ignores for a job in the
 * background is taken all the same, since who sends it to that process means it.
 *
 * The handler may interrupt any instruction of any thread, so it calls only what POSIX allows there.
 */
#include "base.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_bool deferred, asked;

static void say_plainly(const char *text)
{
    ssize_t unused = write(STDERR_FILENO, text, strlen(text));
    (void)unused; /* the terminal may be gone */
}

static void handle_interrupt(int signal_number)
{
    (void)signal_number;
    bool again = atomic_exchange(&asked, true);
    if (deferred && !again) {
        signal(SIGPIPE, SIG_IGN); /* the same Ctrl-C ended the `| tee` that reads us: no reason not to save */
        say_plainly("yard: interrupted: finishing the step; a second signal ends the run at once\n");
        return;
    }
    say_plainly(again ? "yard: interrupted again: ended at once; what was saved before is whole\n"
                      : "yard: interrupted\n");
    clean_up_in_handler();
    _Exit(EXIT_INTERRUPTED);
}

void defer_interrupts(void) { deferred = true; }
bool interrupted(void) { return asked; }

/* open() takes the lowest free descriptor: a closed one of the three would become somebody's file. */
static void open_standard_descriptors(void)
{
    int fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = open("/dev/null", O_RDWR);
    if (fd >= 0)
        close(fd);
}

void prepare_process(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction old, take = {.sa_handler = handle_interrupt, .sa_flags = SA_RESTART};
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (numbers[i] != SIGHUP || (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN))
            sigaction(numbers[i], &take, NULL);
    signal(SIGXFSZ, SIG_IGN); /* writing past a limit of the file's size fails like a full disk */
    open_standard_descriptors();
}
