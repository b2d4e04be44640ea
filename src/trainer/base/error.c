/* error.c - ending the program with a sentence, and the invariants that must never break. */
#include "base.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdatomic.h>

/* Set while a thread changes the list of cleanups.  A mutex would not do: a signal's handler may not use one. */
static atomic_flag cleanups_lock = ATOMIC_FLAG_INIT;
static struct cleanup *cleanups; /* guarded by cleanups_lock; the last registered comes first */

/* A call of attempt() that is under way. */
struct attempt {
    jmp_buf back;          /* where fail() jumps to */
    struct attempt *outer; /* the attempt() around this one, or NULL */
};
static _Thread_local struct attempt *attempting; /* the innermost one on this thread, or NULL */

/* The problem that this thread's last attempt() ended with, or NULL.  It is no local variable of attempt(): one that
 * changes between setjmp() and longjmp() has no certain value afterwards (C11, 7.13.2.1). */
static _Thread_local struct problem *caught_problem;

static void lock_cleanups(void)
{
    while (atomic_flag_test_and_set(&cleanups_lock))
        sched_yield();
}

static void unlock_cleanups(void) { atomic_flag_clear(&cleanups_lock); }

void on_fail(struct cleanup *cleanup)
{
    lock_cleanups();
    cleanup->attempt = attempting;
    cleanup->next = cleanups;
    cleanups = cleanup;
    unlock_cleanups();
}

void cancel_on_fail(struct cleanup *cleanup)
{
    lock_cleanups();
    struct cleanup **link = &cleanups;
    while (*link && *link != cleanup)
        link = &(*link)->next;
    if (*link)
        *link = cleanup->next;
    unlock_cleanups();
}

/* Takes the first cleanup that was registered in that attempt off the list; attempt NULL: the first of all.  NULL:
 * there is none. */
static struct cleanup *take_cleanup(const struct attempt *attempt)
{
    lock_cleanups();
    struct cleanup **link = &cleanups;
    while (attempt && *link && (*link)->attempt != attempt)
        link = &(*link)->next;
    struct cleanup *taken = *link;
    if (taken)
        *link = taken->next;
    unlock_cleanups();
    return taken;
}

/* Each cleanup is taken off the list before it runs, so that none runs twice. */
static void run_cleanups(const struct attempt *attempt)
{
    for (;;) {
        struct cleanup *cleanup = take_cleanup(attempt);
        if (!cleanup)
            return;
        cleanup->run(cleanup->argument);
    }
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static void print_folded(FILE *out, const char *prefix, const char *sentence)
{
    char *line = format_string("%s%s", prefix, sentence);
    char *folded = fold_text(line, screen_width(fileno(out)));
    fprintf(out, "%s\n", folded);
    free(folded);
    free(line);
}

static void print_sentence(FILE *out, const char *prefix, const char *sentence)
{
    erase_line();
    if (out == stderr)
        fflush(stdout); /* so that earlier output appears first */
    /* The line is one call, since other threads may print at the same time. */
    if (is_screen(fileno(out)))
        print_folded(out, prefix, sentence);
    else
        fprintf(out, "%s%s\n", prefix, sentence);
}

void say(FILE *out, const char *prefix, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *sentence = format_arguments(format, arguments);
    va_end(arguments);
    print_sentence(out, prefix, make_printable(sentence, strchr(format, '\n') ? MANY_LINES : ONE_LINE));
    free(sentence);
}

/* ---- problems ---------------------------------------------------------------------------------------------------- */

struct problem *new_problem(enum exit_code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    size_t bytes = (size_t)MAX(length, 0) + 1;
    struct problem *problem = malloc(sizeof *problem + bytes);
    if (!problem) {
        fputs("yard: out of memory\n", stderr);
        _Exit(code == EXIT_OK ? EXIT_FAILED : (int)code);
    }
    problem->code = code;
    va_start(arguments, format);
    vsnprintf(problem->sentence, bytes, format, arguments);
    va_end(arguments);
    make_printable(problem->sentence, strchr(format, '\n') ? MANY_LINES : ONE_LINE);
    return problem;
}

void print_problem(const char *prefix, struct problem *problem)
{
    print_sentence(stderr, prefix, problem->sentence);
    free(problem);
}

struct problem *attempt(void (*work)(void *), void *argument)
{
    struct attempt this_attempt = {.outer = attempting};
    attempting = &this_attempt;
    if (setjmp(this_attempt.back) == 0) {
        work(argument);
        caught_problem = NULL; /* an attempt() inside of `work` may have left one */
    }
    lock_cleanups();
    /* After a success the cleanups that `work` has left belong to the attempt around this one. */
    for (struct cleanup *cleanup = cleanups; cleanup; cleanup = cleanup->next)
        if (cleanup->attempt == &this_attempt)
            cleanup->attempt = this_attempt.outer;
    unlock_cleanups();
    attempting = this_attempt.outer;
    return caught_problem;
}

/* The lock may be held by another thread, or by this one, which the signal has interrupted in on_fail(), say.  So this
 * function must not wait for it.  Temporaries then stay, and the next writer of their file removes them. */
void clean_up_in_handler(void)
{
    if (atomic_flag_test_and_set(&cleanups_lock))
        return; /* the list is being changed */
    /* The lock stays held on purpose, since the program ends: no other thread may change the list any more. */
    for (const struct cleanup *cleanup = cleanups; cleanup; cleanup = cleanup->next)
        cleanup->run(cleanup->argument);
}

/* Ends with _Exit: exit() would run the OpenCL driver's own exit handlers while our threads still use it. */
_Noreturn void end_silently(enum exit_code code)
{
    run_cleanups(NULL);
    fflush(NULL);
    _Exit((int)code);
}

_Noreturn void fail_with(struct problem *problem)
{
    static pthread_mutex_t one_failure = PTHREAD_MUTEX_INITIALIZER; /* never unlocked: the first failure speaks */
    static _Thread_local bool failing;
    if (attempting) {
        run_cleanups(attempting);
        caught_problem = problem;
        longjmp(attempting->back, 1);
    }
    if (failing) /* a cleanup has failed in turn; the first sentence is already printed */
        _Exit((int)problem->code);
    failing = true;
    pthread_mutex_lock(&one_failure);
    enum exit_code code = problem->code;
    print_problem("yard: ", problem);
    end_silently(code);
}

void flush_output(void)
{
    if (fflush(stdout) || ferror(stdout))
        fail(EXIT_IO, "cannot write to the standard output: is the disk full?");
}

void must(struct problem *problem)
{
    if (problem)
        fail_with(problem);
}

_Noreturn void check_failed(const char *file, int line, const char *condition, const char *values)
{
    erase_line();
    fprintf(stderr,
            "yard: %s:%d: broken invariant: %s: %s\nThis is a mistake in yard itself, or in what you have changed of "
            "it, not in your input.\n",
            file, line, condition, values);
    abort();
}
