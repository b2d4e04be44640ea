/* process.c - what the program does about the shell that started it: descriptors and signals.
 *
 * SIGINT, SIGTERM and SIGHUP ask the program to end, and so do SIGUSR1, SIGUSR2 and SIGXCPU, by which schedulers say
 * that a job's time is over.  In training SIGPIPE does too: the reader of our output has gone.
 *
 *     in training               the first signal sets a flag, which the training loop reads between steps; the second
 *                               one ends the program
 *     before, other commands    the first signal ends the program
 *
 * One wish to end may arrive as two signals.  A Ctrl-C at a terminal reaches the child of a parent process
 * (live_in_child()) directly, and from the parent, which hands signals on.  timeout(1) sends its signal to the process,
 * and then to its group.  So a signal is the second one only if the first one came the same way, and more than
 * ONE_SIGNAL_NS before.
 *
 * A signal that the program's caller ignores, as nohup does with SIGHUP, stays ignored.  The exception is SIGINT: a
 * shell ignores it for jobs in the background, but a user who sends it to this process by its number means it.
 *
 * The handler may interrupt any instruction of any thread.  So it leaves errno as it was, and calls only what POSIX
 * allows in handlers.
 */
#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
static void end_with_parent(void) { prctl(PR_SET_PDEATHSIG, SIGKILL); }
#else
static void end_with_parent(void) {} /* the child of a parent that is killed goes on */
#endif

/* What the first signal lets end before the program ends, such as "the step".  NULL: the first signal ends it. */
static const char *_Atomic unfinished;
static atomic_bool has_said_so; /* the user has been told what is being finished */
/* When the first signal came, [0] from elsewhere, [1] from the parent process; 0: none has come. */
static _Atomic uint64_t first_came_ns[2];
static _Atomic pid_t parent;  /* in a child, its parent's number; otherwise 0 */
static atomic_int child;      /* in a parent, its child's number; otherwise 0 */
static atomic_bool is_helper; /* in a child: the parent acts on signals */

static const uint64_t ONE_SIGNAL_NS = 500000000;

static void write_plainly(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        return; /* the terminal is gone */
}

static void say_plainly(const char *text)
{
    erase_line();
    write_plainly(text);
}

_Noreturn void end_in_handler(enum exit_code code, const char *line)
{
    say_plainly(line);
    clean_up_in_handler();
    _Exit((int)code);
}

bool interrupted(void) { return first_came_ns[0] || first_came_ns[1]; }

/* The user is told once that the program ends after what it is at. */
static void tell_what_is_finished(int signal_number)
{
    if (atomic_exchange(&has_said_so, true))
        return;
    say_plainly("yard: interrupted: ");
    if (signal_number == SIGPIPE)
        write_plainly("nobody reads the output any more: ");
    write_plainly("finishing ");
    write_plainly(unfinished);
    if (signal_number != SIGPIPE)
        write_plainly("; a second signal ends the run at once");
    write_plainly("\n");
}

static void interrupt_by(int signal_number, const siginfo_t *from)
{
    if (is_helper)
        return;
    if (signal_number == SIGXCPU && interrupted())
        return; /* the system sends it every second; all of them count as one */
    bool handed_on = parent && from->si_pid == parent;
    uint64_t now = now_ns(), first = 0;
    bool again = !atomic_compare_exchange_strong(&first_came_ns[handed_on], &first, now);
    if (again && now < first + ONE_SIGNAL_NS) /* `first` is when the first one came */
        return;
    if (child) {
        kill(child, signal_number);
        return;
    }
    if (unfinished && !again) {
        signal(SIGPIPE, SIG_IGN); /* the same Ctrl-C has ended the `| tee` that reads our output: save all the same */
        tell_what_is_finished(signal_number);
        return;
    }
    end_in_handler(EXIT_INTERRUPTED, again ? "yard: interrupted again: ended at once; what was saved before is whole\n"
                                           : "yard: interrupted\n");
}

static void handle_interrupt(int signal_number, siginfo_t *from, void *context)
{
    int errno_before = errno;
    (void)context;
    interrupt_by(signal_number, from);
    errno = errno_before;
}

static void take_signal(int number)
{
    struct sigaction action = {.sa_sigaction = handle_interrupt, .sa_flags = SA_RESTART | SA_SIGINFO};
    sigaction(number, &action, NULL);
}

static bool is_ignored(int number)
{
    struct sigaction old;
    return sigaction(number, NULL, &old) != 0 || old.sa_handler == SIG_IGN;
}

static struct {
    int number;
    bool ours; /* it is handled here; a signal that the caller ignores is not */
} handled[] = {{SIGINT, true}, {SIGTERM, false}, {SIGHUP, false}, {SIGUSR1, false}, {SIGUSR2, false}, {SIGXCPU, false}};

/* LLVM installs handlers of its own for all of these when a driver compiles its first kernel.  They do nothing, or act
 * once: a second signal of the same moment would end the program. */
void take_signals_back(void)
{
    for (size_t i = 0; i < COUNT(handled); i++)
        if (handled[i].ours)
            take_signal(handled[i].number);
}

void defer_interrupts(const char *what)
{
    unfinished = what;
    if (!is_ignored(SIGPIPE)) /* otherwise writing fails, and main() says so */
        take_signal(SIGPIPE);
}

const char *program_name = "yard";

void prepare_process(const char *called)
{
    program_name = called;
    for (size_t i = 1; i < COUNT(handled); i++)
        handled[i].ours = !is_ignored(handled[i].number);
    take_signals_back();
    signal(SIGXFSZ, SIG_IGN); /* then writing past a limit of file sizes fails as on a full disk */
    /* open() takes the lowest free descriptor.  A file must not get one of the first three, to which messages go. */
    int fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = open("/dev/null", O_RDWR);
    if (fd >= 0)
        close(fd);
}

int wait_for_process(int number)
{
    int status;
    while (waitpid(number, &status, 0) < 0)
        if (errno != EINTR)
            fail(EXIT_FAILED, "cannot wait for a process: %s", strerror(errno));
    return status;
}

void *allocate_shared(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail(EXIT_FAILED, "cannot share memory with another process: %s; close other programs", strerror(errno));
    return memory;
}

/* Returns 0 in the child, which ends with its parent; in the parent the child's number. */
static pid_t fork_child(void)
{
    pid_t self = getpid();
    fflush(NULL);             /* else the child would print the same text again */
    signal(SIGCHLD, SIG_DFL); /* where this signal is ignored, waitpid() does not learn how a child has ended */
    pid_t pid = fork();
    if (pid < 0)
        fail(EXIT_FAILED, "cannot start a process: %s; allow this user more of them (ulimit -u)", strerror(errno));
    if (pid > 0)
        return pid;
    parent = self;
    end_with_parent();
    if (getppid() != parent) /* the parent was killed before end_with_parent() */
        _Exit(EXIT_INTERRUPTED);
    return 0;
}

bool live_in_child(int *status)
{
    pid_t pid = fork_child();
    if (pid == 0)
        return true;
    child = pid;
    *status = wait_for_process(pid);
    child = 0;
    return false;
}

int begin_helper(void)
{
    pid_t pid = fork_child();
    if (pid == 0)
        is_helper = true;
    return pid;
}

char *own_binary(void)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    if (n <= 0)
        return NULL;
    return format_string("%.*s", (int)n, path);
}
