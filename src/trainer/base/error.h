/* error.h - how the program ends when something is wrong: error.c.
 *
 * A user's mistake ends the program through fail(): one sentence on stderr that says what is wrong, where, what was
 * expected and what to do, and an exit code that scripts rely on.  A broken invariant of ours ends it through CHECK(),
 * which prints both values.  No user input may reach a CHECK.
 */
#ifndef ERROR_H
#define ERROR_H

#include "text.h"

enum exit_code {
    EXIT_OK = 0,
    EXIT_FAILED = 1,        /* a check, verify or comparison failed; a file is damaged; training hit NaN */
    EXIT_USAGE = 2,         /* unknown or impossible options or configuration, does not fit in memory */
    EXIT_NO_DEVICE = 3,     /* no OpenCL device or driver */
    EXIT_IO = 4,            /* disk full, no permission, no such file */
    EXIT_INTERRUPTED = 130, /* stopped by a signal; state saved where --save was given */
};

/* Prints "yard: <sentence>" on stderr and exits with `code`.  Removes files that are being written (see file.h). */
#define fail(code, ...) fail_with(new_problem((code), __VA_ARGS__))

/* A function to run when fail() or a signal ends the program, such as one that removes a temporary file.  The last
 * registered runs first.  The caller of on_fail() owns the struct, and keeps it until cancel_on_fail().  The function
 * may call only what is allowed in a signal handler. */
struct cleanup {
    void (*run)(void *);
    void *argument;
    const void *attempt; /* the attempt() during which it was registered, or NULL */
    struct cleanup *next;
};
void on_fail(struct cleanup *cleanup);        /* registers it */
void cancel_on_fail(struct cleanup *cleanup); /* it is not needed any more */
void clean_up_in_handler(void);               /* runs all registered cleanups; for a signal's handler */

/* ---- lines that do not end the program --------------------------------------------------------------------------- */

/* Prints the prefix, a sentence by printf rules, and a new line.  The sentence may quote paths, files or drivers: bytes
 * that a terminal would obey are replaced, and a terminal gets the line broken between words. */
void say(FILE *out, const char *prefix, const char *format, ...) PRINTF_LIKE(3, 4);

/* A warning on stderr, plain information there, and a line of results. */
#define warn(...) say(stderr, "yard: warning: ", __VA_ARGS__)
#define inform(...) say(stderr, "", __VA_ARGS__)
#define print_line(out, ...) say((out), "", __VA_ARGS__)

/* Ends the program with EXIT_IO when what was printed could not be written: the disk of `> file` may be full. */
void flush_output(void);

/* ---- problems ---------------------------------------------------------------------------------------------------- */

/* A function that meets a user's mistake calls fail() where each of its callers would end the program.  It returns the
 * problem, or NULL when all went well, where some caller goes on: for place() this is a search, which tries another
 * choice when one does not fit; for plan_copies() it is a test, which goes through several wrong tensors.  Functions
 * that belong together, such as cut_layers() and cut_layers_as_recorded(), do the same.  The exceptions are the
 * functions that attempt(), below, is for: they call fail().
 *
 * Functions whose purpose is to end the program, or to look for a reason to, have these names:
 *
 *     fail_X(), refuse_X()    end the program in any case, and say why
 *     refuse_if_X()           ends it if X is so
 *     expect_X()              ends it unless X is so
 *     check_X()               looks at X, and ends the program unless X obeys all its rules
 *     X_problem()             looks at X, and returns the problem, or NULL: the caller decides
 *     must_X(), must()        does X, or takes a result: a problem ends the program
 *
 * Functions of type struct problem * that have other names do or prove something, as place() and verify_list() do.
 * They too return the problem, or NULL. */

/* A sentence and an exit code.  A caller that ends the program with it calls must(); one that goes on frees it. */
struct problem {
    enum exit_code code;
    char sentence[];
};

/* Makes a problem of a sentence by printf rules.  The sentence may quote paths and files, so it is made printable; it
 * has several lines only if `format` has. */
struct problem *new_problem(enum exit_code code, const char *format, ...) PRINTF_LIKE(2, 3);

_Noreturn void fail_with(struct problem *problem); /* ends the program with it, as fail() does */

/* Ends the program as fail() does, without a sentence, where another process has printed it. */
_Noreturn void end_silently(enum exit_code code);

/* Prints the problem's sentence behind the prefix, as say() does, and frees the problem. */
void print_problem(const char *prefix, struct problem *problem);

/* Ends the program with the problem; does nothing when it is NULL. */
void must(struct problem *problem);

/* For work that many functions do, each of which may find something wrong: reading a trace that grows, a checkpoint, a
 * snapshot, or the tokenizer beside a model; and drafting a training.  Without attempt() each of these functions would
 * have to return its problem, and each of its callers to hand it on.  It is no pattern for other code: what goes wrong
 * in a few places returns its problem.
 *
 * Runs work(argument).  When it calls fail() on this thread, the program does not end: the cleanups that work
 * registered are run, and the problem is returned.  The rest of work is left out then, so
 *
 *     files     that are read or written have cleanups, which close or remove them;
 *     memory    is lost, unless `argument` leads to it: attempts are for what fails a few times in a run, such as a
 *               damaged file or a strategy that does not fit.  If each allocation had a cleanup, or each function
 *               returned its problem, all code that may fail would be longer, to save little;
 *     values    that work has set elsewhere stay: the caller puts them back, as restore_value() in options.h does;
 *     locks     stay locked: work must hold none where it may fail;
 *     threads   that work has started go on, and if one of them fails, the program ends. */
struct problem *attempt(void (*work)(void *), void *argument);

/* An invariant of the program itself: prints both values, then aborts so that a debugger stops here. */
#define CHECK(condition, ...)                                                                                          \
    ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, #condition, format_string(__VA_ARGS__)))

/* The same for a place that is never reached: prints the values, then aborts. */
#define BROKEN(...) check_failed(__FILE__, __LINE__, "false", format_string(__VA_ARGS__))

_Noreturn void check_failed(const char *file, int line, const char *condition, const char *values);

#endif
