/* process.c - what the program does about the shell that started it: descriptors and signals.
 *
 * SIGINT, SIGTERM and SIGHUP ask the program to end, and so do SIGUSR1, SIGUSR2 and SIGXCPU, by which schedulers say
 * that a job's time is over; a driver that takes one of these keeps it.  In training SIGPIPE does too: the reader of
 * our output has gone.  Before training, and in every other command, it ends at once.
 * While it trains, the first one only sets a flag, which the training loop reads between steps, and the second one ends
 * the program.  A parent hands them on to its child.  A Ctrl-C at a terminal reaches both, and is one: the child's
 * second signal is the second one that came the same way.  One that the parent ignores, as nohup does
 * with SIGHUP, stays ignored; a SIGINT that a shell ignores for a job in the background is taken all the same, since
 * who sends it to that process means it.
 *
 * The handler may interrupt any instruction of any thread, so it calls only what POSIX allows there.
 */
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
static void end_with_parent(void) { prctl(PR_SET_PDEATHSIG, SIGKILL); }
#else
static void end_with_parent(void) {} /* a parent that is killed leaves its child behind */
#endif

static atomic_bool deferred, told;
static atomic_bool asked[2]; /* the second: by the parent */
static pid_t parent;         /* of a child; 0: this is none */
static atomic_int child;     /* of a parent; 0: there is none */

static void say_plainly(const char *text)
{
    erase_line();
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        return; /* the terminal is gone */
}

bool interrupted(void) { return asked[0] || asked[1]; }

static void handle_interrupt(int signal_number, siginfo_t *from, void *context)
{
    (void)context;
    if (signal_number == SIGXCPU && interrupted())
        return; /* it comes every second, and is one */
    bool handed_on = parent && from->si_pid == parent, again = atomic_exchange(&asked[handed_on], true);
    if (child) {
        kill(child, signal_number);
        return;
    }
    if (deferred && !again) {
        signal(SIGPIPE, SIG_IGN); /* the same Ctrl-C ended the `| tee` that reads us: no reason not to save */
        if (!atomic_exchange(&told, true))
            say_plainly(signal_number == SIGPIPE
                            ? "yard: interrupted: nobody reads the output any more: finishing the step\n"
                            : "yard: interrupted: finishing the step; a second signal ends the run at once\n");
        return;
    }
    say_plainly(again ? "yard: interrupted again: ended at once; what was saved before is whole\n"
                      : "yard: interrupted\n");
    clean_up_in_handler();
    _Exit(EXIT_INTERRUPTED);
}

static void take(int number)
{
    struct sigaction action = {.sa_sigaction = handle_interrupt, .sa_flags = SA_RESTART | SA_SIGINFO};
    sigaction(number, &action, NULL);
}

/* Unless it is ignored, as some parents leave it: then writing fails, and main() says so. */
static bool take_unless_ignored(int number)
{
    struct sigaction old;
    if (sigaction(number, NULL, &old) != 0 || old.sa_handler == SIG_IGN)
        return false;
    take(number);
    return true;
}

/* Signals that LLVM takes when a driver compiles its first kernel, and swallows. */
static struct {
    const int number;
    bool ours;
} swallowed[] = {{SIGUSR1, false}, {SIGXCPU, false}};

void take_signals_back(void)
{
    for (size_t i = 0; i < COUNT(swallowed); i++)
        if (swallowed[i].ours)
            take(swallowed[i].number);
}

void defer_interrupts(void)
{
    deferred = true;
    take_unless_ignored(SIGPIPE);
}

void prepare_process(void)
{
    static const int others[] = {SIGTERM, SIGHUP, SIGUSR2};
    take(SIGINT);
    for (size_t i = 0; i < COUNT(others); i++)
        take_unless_ignored(others[i]);
    for (size_t i = 0; i < COUNT(swallowed); i++)
        swallowed[i].ours = take_unless_ignored(swallowed[i].number);
    signal(SIGXFSZ, SIG_IGN); /* writing past a limit of the file's size fails like a full disk */
    /* open() takes the lowest free descriptor: a closed one of the three would become somebody's file. */
    int fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = open("/dev/null", O_RDWR);
    if (fd >= 0)
        close(fd);
}

bool live_in_child(int *status)
{
    const pid_t self = getpid();
    fflush(NULL);             /* else the child would print it again */
    signal(SIGCHLD, SIG_DFL); /* ignored, as a process may inherit it, how a child ends is lost */
    pid_t pid = fork();
    if (pid < 0)
        fail(EXIT_FAILED, "cannot start a process: %s", strerror(errno));
    if (pid) {
        child = pid;
        while (waitpid(pid, status, 0) < 0)
            if (errno != EINTR)
                fail(EXIT_FAILED, "cannot wait for a process: %s", strerror(errno));
        child = 0;
        return false;
    }
    parent = self;
    end_with_parent();
    if (getppid() != parent) /* it has just been killed */
        _Exit(EXIT_INTERRUPTED);
    return true;
}

char *own_binary(void)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    return n > 0 ? format_string("%.*s", (int)n, path) : NULL;
}
