/* error.c - ending the program with a sentence, and the invariants that must never break. */
#include "base.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>

static pthread_mutex_t cleanups_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cleanup *cleanups; /* guarded by cleanups_lock; the last registered comes first */

/* One line in one piece, although several threads may be talking. */
static void say(const char *prefix, const char *format, va_list arguments)
{
    flockfile(stderr);
    fputs(prefix, stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    funlockfile(stderr);
}

void warn(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say("yard: warning: ", format, arguments);
    va_end(arguments);
}

void note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say("", format, arguments);
    va_end(arguments);
}

void on_fail(struct cleanup *c)
{
    pthread_mutex_lock(&cleanups_lock);
    c->next = cleanups;
    cleanups = c;
    pthread_mutex_unlock(&cleanups_lock);
}

void cancel_on_fail(struct cleanup *c)
{
    pthread_mutex_lock(&cleanups_lock);
    struct cleanup **link = &cleanups;
    while (*link && *link != c)
        link = &(*link)->next;
    if (*link)
        *link = c->next;
    pthread_mutex_unlock(&cleanups_lock);
}

/* Take the first cleanup off the list, so that none runs twice. */
static struct cleanup *next_cleanup(void)
{
    pthread_mutex_lock(&cleanups_lock);
    struct cleanup *first = cleanups;
    if (first)
        cleanups = first->next;
    pthread_mutex_unlock(&cleanups_lock);
    return first;
}

/* Ends with _Exit: exit() would run the OpenCL driver's own exit handlers while our threads still use it. */
_Noreturn void fail(enum exit_code code, const char *format, ...)
{
    static pthread_mutex_t one_failure = PTHREAD_MUTEX_INITIALIZER; /* never unlocked: the first failure speaks */
    static _Thread_local bool failing;
    if (failing) /* a cleanup failed in turn; the sentence is already out */
        _Exit((int)code);
    failing = true;
    pthread_mutex_lock(&one_failure);

    va_list arguments;
    va_start(arguments, format);
    fflush(stdout); /* what came before appears before */
    say("yard: ", format, arguments);
    va_end(arguments);

    for (struct cleanup *c; (c = next_cleanup());)
        c->run(c->argument);
    fflush(NULL);
    _Exit((int)code);
}

_Noreturn void check_failed(const char *file, int line, const char *condition, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    flockfile(stderr);
    fprintf(stderr, "yard: %s:%d: broken invariant: %s: ", file, line, condition);
    vfprintf(stderr, format, arguments);
    fputs("\nThis is a mistake in yard itself, not in your input.\n", stderr);
    funlockfile(stderr);
    va_end(arguments);
    abort();
}
