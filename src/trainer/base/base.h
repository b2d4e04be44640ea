/* base.h - what all other folders use.  Nothing here calls OpenCL or trains.  Only two tables know of other folders:
 * the random streams (below), and what folders register (module.h).
 *
 *     base.h        errors                             error.c
 *                   signals, this process              process.c
 *                   clock, terminal, random, hashes    clock.c, screen.c, random.c, hash.c
 *     allocate.h    memory, arrays, sorting            allocate.c
 *     text.h        numbers as text, UTF-8             text.c, utf8.c
 *     options.h     words of the command line          options.c
 *     json.h        numbers and texts as JSON          json.c        (included where it is used)
 *     module.h      how folders register themselves    module.c      (included where it is used)
 *
 * Errors.  A user's mistake ends the program through fail(): one sentence on stderr that says what is wrong, where,
 * what was expected and what to do, and an exit code that scripts rely on.  A broken invariant of ours ends it
 * through CHECK(), which prints both values.  No user input may reach a CHECK.
 */
#ifndef BASE_H
#define BASE_H

#include "allocate.h" /* defines: allocate, APPEND, COUNT, MIN, MAX, SORT, FIND_FIRST, COMPARISON, PRINTF_LIKE */
#include "options.h"  /* defines: option, option_table */
#include "text.h"     /* defines: append_text, format_number, JOINED, text_stream */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define YARD_VERSION "0.2" /* also written into saved files, so that each says which version made it */

/* ---- error.c --------------------------------------------------------------------------------------------------- */

enum exit_code {
    EXIT_OK = 0,
    EXIT_FAILED = 1,        /* a check, verify or comparison failed; a file is damaged; training hit NaN */
    EXIT_USAGE = 2,         /* unknown or impossible options or configuration, does not fit in memory */
    EXIT_NO_DEVICE = 3,     /* no OpenCL device or driver */
    EXIT_IO = 4,            /* disk full, no permission, no such file */
    EXIT_INTERRUPTED = 130, /* stopped by a signal; state saved where --save was given */
};

/* Print "yard: <sentence>" on stderr and exit with `code`.  Removes files that are being written (see file.h). */
#define fail(code, ...) fail_with(new_problem((code), __VA_ARGS__))
/* One line on stderr: a warning ("yard: warning: ...") or plain information. */
#define warn(...) print_problem(stderr, "yard: warning: ", new_problem(EXIT_OK, __VA_ARGS__))
#define note(...) print_problem(stderr, "", new_problem(EXIT_OK, __VA_ARGS__))
/* Print a line of results that quotes paths, files or drivers, by printf rules.  As in warn() and note(), bytes that a
 * terminal would obey are replaced, and a terminal gets the line broken between words. */
#define print_line(out, ...) print_problem((out), "", new_problem(EXIT_OK, __VA_ARGS__))
/* A function to run when fail() or a signal ends the program, such as one that removes a temporary file.  The last
 * registered runs first.  The caller of on_fail() owns the struct, and keeps it until cancel_on_fail().  The function
 * may call only what is allowed in a signal handler. */
struct cleanup {
    void (*run)(void *);
    void *argument;
    const void *attempt; /* the attempt() during which it was registered; NULL: none was under way */
    struct cleanup *next;
};
void on_fail(struct cleanup *c);
void cancel_on_fail(struct cleanup *c);
void clean_up_in_handler(void); /* runs all registered cleanups; for a signal's handler */

/* Fail with EXIT_IO when what was printed could not be written, because the disk of `> file` is full, say. */
void flush_output(void);
/* A sentence and an exit code.  A library function that a user's mistake can make fail returns one, or NULL when all
 * went well.  Commands end the program with it; a caller that can go on otherwise frees it. */
struct problem {
    enum exit_code code;
    char sentence[];
};
struct problem *new_problem(enum exit_code code, const char *format, ...) PRINTF_LIKE(2, 3);
_Noreturn void fail_with(struct problem *p);
void print_problem(FILE *out, const char *prefix, struct problem *p); /* frees p */
/* End the program with p; do nothing when p is NULL. */
void must(struct problem *p);
/* Run work(argument).  When it calls fail() on this thread, the program does not end: the cleanups that work registered
 * are run, and the problem is returned.  Memory that work had allocated is not freed then. */
struct problem *attempt(void (*work)(void *), void *argument);

/* An invariant of the program itself: prints both values, then aborts so that a debugger stops here. */
#define CHECK(condition, ...)                                                                                          \
    ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, #condition, format_string(__VA_ARGS__)))
_Noreturn void check_failed(const char *file, int line, const char *condition, const char *values);

/* ---- process.c ------------------------------------------------------------------------------------------------- */

/* main() calls this first.  Afterwards descriptors 0 to 2 are open, SIGXFSZ is ignored, and SIGINT, SIGTERM and SIGHUP
 * end the program with a sentence and EXIT_INTERRUPTED. */
void prepare_process(void);
/* From now on the first of these signals makes interrupted() true, and only the second ends the program.  The caller
 * ends it after `what`, such as "the step": the user is told so. */
void defer_interrupts(const char *what);
/* Install our handlers anew for those signals that the OpenCL driver's compiler has replaced them for. */
void take_signals_back(void);
bool interrupted(void);
/* Fork this process, which must have a single thread.  Returns true in the child, at once.  Returns false in the parent
 * after the child has ended, with *status as waitpid() gives it.  Until then the parent hands the signals above on to
 * the child; when the parent is killed, so is the child. */
bool live_in_child(int *status);
/* The path of this program; NULL when the system does not say it.  The caller frees it. */
char *own_binary(void);

/* ---- clock.c --------------------------------------------------------------------------------------------------- */

/* Nanoseconds of CLOCK_MONOTONIC_RAW: the clock that PoCL stamps its events with; CLOCK_MONOTONIC is 259 ppm off it. */
uint64_t now_ns(void);

/* ---- screen.c -------------------------------------------------------------------------------------------------- */

bool is_screen(int fd);   /* a terminal that can write over a line */
int screen_width(int fd); /* the terminal's columns; 80 when it does not say */
/* Draw a line on the terminal `fd`, over the line that was drawn last, and cut to the terminal's width.  A line
 * that STAYS is not drawn over: the next line begins below it. */
enum drawn_line { IS_DRAWN_OVER, STAYS };
void write_over(int fd, const char *text, enum drawn_line fate);
bool may_redraw(void); /* true ten times a second; asked before a line is made that does not stay */
void erase_line(void); /* erases the last drawn line, unless it stays; may be called in a signal's handler */

/* Say on stderr how far long work, "validating", has come since the time `begun`.  Only a terminal is told, and only
 * after the first second; the caller calls erase_line() at the end.  share: the part that is done, 0 to 1. */
void show_busy(const char *activity, uint64_t begun, double share);

/* ---- random.c -------------------------------------------------------------------------------------------------- */

/* Counter-based random numbers (Philox 4x32-10): a pure function of (seed, stream, step, element), so that the
 * result does not depend on the number of devices, threads or calls before. */
enum random_stream {
    STREAM_INIT = 1,   /* a new model's parameters */
    STREAM_DATA = 2,   /* the order of windows; tokens where there are no data */
    STREAM_SAMPLE = 3, /* sampled tokens */
    STREAM_DELAY = 4,  /* delays of tasks, which tests add */
    STREAM_TEST = 5,   /* values for checks of kernels */
    STREAM_DEAL = 6,   /* which queue of a broadcast gets a shard */
    STREAM_PLAN = 7,   /* what a search for a plan tries */
    STREAM_CHOICE = 8, /* on which side an update runs, where that is left to chance */
    STREAM_STORY = 9   /* the stories of the built-in grammar */
};
struct random4 {
    uint32_t word[4];
};
struct random4 random_words(uint64_t seed, uint32_t stream, uint32_t step, uint64_t element);
double random_uniform(uint64_t seed, uint32_t stream, uint32_t step, uint64_t element); /* [0, 1), 53 bits */
double random_normal(uint64_t seed, uint32_t stream, uint32_t step, uint64_t element);  /* mean 0, deviation 1 */

/* ---- hash.c ---------------------------------------------------------------------------------------------------- */

/* 64-bit content hash (XXH64), about memory speed. */
uint64_t hash_bytes(const void *bytes, size_t n, uint64_t seed);

#endif
