/* error.c - ending the program with a sentence, and the invariants that must never break. */
#include "base.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>

struct cleanup {
    void (*run)(void *);
    void *argument;
    struct cleanup *next;
};

static pthread_mutex_t cleanups_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cleanup *cleanups; /* guarded by cleanups_lock; the last registered comes first */

/* In one piece, although several threads may be talking, and printable, whatever paths and files it quotes.  More lines
 * than one appear only where the format itself has them. */
static void say(FILE *out, const char *prefix, const char *format, va_list arguments)
{
    char short_of_memory[512], *text;
    va_list again;
    va_copy(again, arguments);
    bool whole = vasprintf(&text, format, arguments) >= 0;
    if (!whole)
        vsnprintf(text = short_of_memory, sizeof short_of_memory, format, again);
    va_end(again);
    flockfile(out);
    fputs(prefix, out);
    fputs(make_printable(text, strchr(format, '\n') != NULL), out);
    fputc('\n', out);
    funlockfile(out);
    if (whole)
        free(text);
}

void print_line(FILE *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(out, "", format, arguments);
    va_end(arguments);
}

void warn(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(stderr, "yard: warning: ", format, arguments);
    va_end(arguments);
}

void note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(stderr, "", format, arguments);
    va_end(arguments);
}

void on_fail(void (*cleanup)(void *), void *argument)
{
    struct cleanup *c = allocate(1, sizeof *c);
    pthread_mutex_lock(&cleanups_lock);
    *c = (struct cleanup){cleanup, argument, cleanups};
    cleanups = c;
    pthread_mutex_unlock(&cleanups_lock);
}

void cancel_on_fail(void (*cleanup)(void *), void *argument)
{
    pthread_mutex_lock(&cleanups_lock);
    struct cleanup **link = &cleanups;
    while (*link && ((*link)->run != cleanup || (*link)->argument != argument))
        link = &(*link)->next;
    struct cleanup *found = *link;
    if (found)
        *link = found->next;
    pthread_mutex_unlock(&cleanups_lock);
    free(found);
}

/* Take the first cleanup off the list, so that none runs twice. */
static bool next_cleanup(struct cleanup *taken)
{
    pthread_mutex_lock(&cleanups_lock);
    struct cleanup *first = cleanups;
    if (first) {
        *taken = *first;
        cleanups = first->next;
    }
    pthread_mutex_unlock(&cleanups_lock);
    return first != NULL;
}

void clean_up_in_handler(void)
{
    if (pthread_mutex_trylock(&cleanups_lock) != 0)
        return; /* the list is being changed: what is left behind the next writer of that file removes */
    for (const struct cleanup *c = cleanups; c; c = c->next)
        c->run(c->argument);
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
    say(stderr, "yard: ", format, arguments);
    va_end(arguments);

    for (struct cleanup c; next_cleanup(&c);)
        c.run(c.argument);
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
