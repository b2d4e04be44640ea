/* base.h - what all other folders use: errors, memory, strings, time, random numbers, hashing, options.
 *
 * Nothing here knows of OpenCL or of training.
 *
 * Errors.  A user's mistake ends the program through fail(): one sentence on stderr that says what is wrong, where,
 * what was expected and what to do, and an exit code that scripts rely on.  A broken invariant of ours ends it
 * through CHECK(), which prints both values.  No user input may reach a CHECK.
 */
#ifndef BASE_H
#define BASE_H

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

#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))

/* Print "yard: <sentence>" on stderr and exit with `code`.  Removes files that are being written (see file.h). */
#define fail(code, ...) fail_with(new_problem((code), __VA_ARGS__))
/* One line on stderr: a warning ("yard: warning: ...") or plain information. */
#define warn(...) print_problem(stderr, "yard: warning: ", new_problem(EXIT_OK, __VA_ARGS__))
#define note(...) print_problem(stderr, "", new_problem(EXIT_OK, __VA_ARGS__))
/* printf for a line of results that quotes paths, files or drivers: made printable, as those above are. */
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
void clean_up_in_handler(void); /* runs all of them; for a signal's handler, which ends the program afterwards */

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
 * are run, and the problem is returned. */
struct problem *attempt(void (*work)(void *), void *argument);

/* An invariant of the program itself: prints both values, then aborts so that a debugger stops here. */
#define CHECK(condition, ...)                                                                                          \
    ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, #condition, format_string(__VA_ARGS__)))
_Noreturn void check_failed(const char *file, int line, const char *condition, const char *values);

/* ---- process.c ------------------------------------------------------------------------------------------------- */

/* main() calls this first.  Afterwards descriptors 0 to 2 are open, SIGXFSZ is ignored, and SIGINT, SIGTERM and SIGHUP
 * end the program with a sentence and EXIT_INTERRUPTED. */
void prepare_process(void);
/* From now on the first of these signals makes interrupted() true, and only the second ends the program. */
void defer_interrupts(void);
/* Install our handlers anew for those signals that the OpenCL driver's compiler has replaced them for. */
void take_signals_back(void);
bool interrupted(void);
/* Fork this process, which must have a single thread.  Returns true in the child, at once.  Returns false in the parent
 * after the child has ended, with *status as waitpid() gives it.  Until then the parent hands the signals above on to
 * the child; when the parent is killed, so is the child. */
bool live_in_child(int *status);
/* The path of this program; NULL when the system does not say it.  The caller frees it. */
char *own_binary(void);

/* ---- memory.c -------------------------------------------------------------------------------------------------- */

/* Zeroed memory that is never NULL: out of memory ends the program with a sentence.  Free with free(). */
void *allocate(size_t count, size_t size);
void *reallocate(void *old, size_t count, size_t size);
char *copy_string(const char *text);
void *copy_bytes(const void *from, size_t n); /* NULL when n is 0 */
/* A new string made by printf rules.  The caller frees it. */
char *format_string(const char *format, ...) PRINTF_LIKE(1, 2);

/* A growing array: `items` is the pointer field, `n` and `cap` are size_t fields.  APPEND(list.tasks, list.n, list.cap)
 * makes room for one more and yields a pointer to the new, zeroed element. */
#define APPEND(items, n, cap)                                                                                          \
    ((items) = grow((items), &(cap), (n) + 1, sizeof *(items)), (n)++, memset(&(items)[(n)-1], 0, sizeof *(items)),    \
     &(items)[(n)-1])
void *grow(void *items, size_t *cap, size_t wanted, size_t size);

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
/* qsort() for an array that may be NULL when n is 0.  `order` returns -1, 0 or 1, as COMPARE does. */
#define SORT(items, n, order) ((n) ? qsort((items), (n), sizeof *(items), (order)) : (void)0)
#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))
/* Binary search: `i` becomes the first of 0 .. n - 1 for which the condition `before`, which names `i`, is false; n
 * when it is true for all. */
#define FIND_FIRST(i, n, before) FIND_BETWEEN(i, 0, n, before)
/* The same, from the value of `i` on, by growing steps.  Elements near `i` are in the caches; a binary search among all
 * of a long array would miss them at each step. */
#define FIND_NEXT(i, n, before)                                                                                        \
    do {                                                                                                               \
        size_t from_ = (i);                                                                                            \
        size_t step_ = 1;                                                                                              \
        while ((i) < (n) && (before)) {                                                                                \
            from_ = (i) + 1;                                                                                           \
            (i) += step_;                                                                                              \
            step_ *= 2;                                                                                                \
        }                                                                                                              \
        size_t end_ = MIN((i), (n));                                                                                   \
        FIND_BETWEEN(i, from_, end_, before);                                                                          \
    } while (0)
#define FIND_BETWEEN(i, low, high, before)                                                                             \
    do {                                                                                                               \
        size_t low_ = (low);                                                                                           \
        size_t high_ = (high);                                                                                         \
        while (low_ < high_) {                                                                                         \
            (i) = low_ + (high_ - low_) / 2;                                                                           \
            if (before)                                                                                                \
                low_ = (i) + 1;                                                                                        \
            else                                                                                                       \
                high_ = (i);                                                                                           \
        }                                                                                                              \
        (i) = low_;                                                                                                    \
    } while (0)
/* COMPARE(a, b), or the comparison `then` where a and b are equal. */
#define BY(a, b, then) ((a) != (b) ? COMPARE(a, b) : (then))
/* Defines a function for qsort(), from an expression that compares *a and *b:
 * ORDER(longest_first, struct kind, COMPARE(b->ns, a->ns)) */
#define ORDER(name, type, order)                                                                                       \
    static int name(const void *a_, const void *b_)                                                                    \
    {                                                                                                                  \
        type const *a = a_, *b = b_;                                                                                   \
        return order;                                                                                                  \
    }
/* ORDER() for an array of pointers. */
#define ORDER_POINTERS(name, type, order)                                                                              \
    static int name(const void *a_, const void *b_)                                                                    \
    {                                                                                                                  \
        type const *a = *(type *const *)a_, *b = *(type *const *)b_;                                                   \
        return order;                                                                                                  \
    }
static inline size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }
static inline size_t ceil_div(size_t n, size_t unit) { return (n + unit - 1) / unit; }

/* ---- text.c ---------------------------------------------------------------------------------------------------- */

/* printf to the end of *text, which is reallocated; *text may be NULL before.  The caller frees it. */
#define append_text(text, ...) append_string((text), format_string(__VA_ARGS__))
void append_string(char **text, char *more);       /* frees `more` */
void append_quoted(char **text, const char *word); /* appends a word, quoted where a shell wants it */
/* `x` with so many decimal places; from a million on with four digits, "1.903e+17"; "inf", "nan" without a sign. */
char *format_number(char out[32], double x, int places);
char *format_exactly(char out[32], double x); /* with the fewest digits, from 6 on, that read back as the same number */
/* "1.50 GiB", "12.3 KiB", "17 B" into `out` (at least 32 bytes), which is returned. */
char *format_bytes(char out[32], double bytes);
/* "1 h 02 min", "3 min 10 s", "12 s" into `out`, which is returned. */
char *format_seconds(char out[32], double seconds);
/* The text a followed by the text b, cut to 63 characters.  It lives as long as the block around the call. */
#define JOINED(a, b) join_texts((char[64]){0}, (a), (b))
char *join_texts(char out[64], const char *a, const char *b);
bool ends_with(const char *text, const char *end);
#define NO_LIMIT ((size_t)1 << 50) /* bytes: the largest budget, and the size of memory where none is given */
/* Bytes with an optional K, M, G suffix (1024-based), "512M".  Returns false when `text` is not that. */
bool parse_bytes(const char *text, size_t *bytes);
bool parse_int(const char *text, int64_t *value);
bool parse_double(const char *text, double *value);
/* Cut the white space off the end of `text`, in place; returns its first character that is no white space. */
char *trim(char *text);
/* Decode the character that begins at `text`, where `left` bytes are.  Returns its length in bytes, or 0 when it is
 * invalid: a stray or missing continuation byte, a longer form than needed, a surrogate, or beyond U+10FFFF. */
enum { CODE_POINTS = 0x110000, UTF8_BYTES = 4 /* bytes of the longest character */ };
size_t utf8_decode(const char *text, size_t left, uint32_t *character);
size_t valid_utf8(const char *text, size_t n); /* how many of the n bytes, from the first on, are valid UTF-8 */
/* Prints UTF-8 whose bytes come a few at a time: a character is printed when its last byte has come.  Bytes that can be
 * no character become U+FFFD, one for all bytes that together could have begun a character.  Control characters except
 * '\t' and '\n' become '.'.  A stream begins as zeros; a character that is incomplete at its end becomes U+FFFD. */
struct text_stream {
    char begun[UTF8_BYTES]; /* the n bytes so far of the character that has begun */
    size_t n;
};
void show_bytes(struct text_stream *s, FILE *out, const char *bytes, size_t n);
void end_stream(struct text_stream *s, FILE *out);
/* Replace by '?', in place, each byte that is not UTF-8 and each control character, since a terminal would obey it.
 * '\t' stays, and so does '\n' where the text may have several `lines`.  Returns `text`. */
char *make_printable(char *text, bool lines);
/* Edit distance, for "did you mean". */
int edit_distance(const char *a, const char *b);

/* ---- clock.c --------------------------------------------------------------------------------------------------- */

/* Nanoseconds of CLOCK_MONOTONIC_RAW: the clock that PoCL stamps its events with; CLOCK_MONOTONIC is 259 ppm off it. */
uint64_t now_ns(void);

/* ---- screen.c -------------------------------------------------------------------------------------------------- */

bool is_screen(int fd);   /* a terminal that can write over a line */
int screen_width(int fd); /* the terminal's columns; 80 when it does not say */
/* Draw a line on that terminal over the line that was drawn last, cut to the terminal's width.  A line that `stays` is
 * not drawn over: the next one begins below it. */
void write_over(int fd, const char *text, bool stays);
bool may_redraw(void); /* true ten times a second; asked before a line is made that does not stay */
void erase_line(void); /* erases the last drawn line, unless it stays; may be called in a signal's handler */

/* Say on stderr how far long work, "validating", has come since the time `begun`.  Only a terminal is told, and only
 * after the first second; the caller calls erase_line() at the end.  share: the part that is done, 0 to 1. */
void show_busy(const char *what, uint64_t begun, double share);

/* ---- random.c -------------------------------------------------------------------------------------------------- */

/* Counter-based random numbers (Philox 4x32-10): a pure function of (seed, stream, step, element), so that the
 * result does not depend on the number of devices, threads or calls before. */
enum random_stream {
    STREAM_INIT = 1,
    STREAM_DATA = 2,
    STREAM_SAMPLE = 3,
    STREAM_DELAY = 4,
    STREAM_TEST = 5,
    STREAM_DEAL = 6,
    STREAM_PLAN = 7,
    STREAM_CHOICE = 8,
    STREAM_STORY = 9
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

/* ---- options.c ------------------------------------------------------------------------------------------------- */

/* One table of options serves parsing, config files, --help and the resolved record in the log.
 * `--name value` and `--name=value`; OPT_FLAG takes no value (`--no-name` is not offered).
 * A config file has lines `name = value`, the same names, '#' starts a comment.
 * Precedence is the order of calls: the caller applies preset, then config file, then command line. */
enum option_type {
    OPT_FLAG,
    OPT_INT,
    OPT_LONG, /* a whole number of 64 bits */
    OPT_DOUBLE,
    OPT_FLOAT, /* a double that kernels get as a 32-bit float: no value between 0 and the smallest of those (FLT_MIN) */
    OPT_BYTES,
    OPT_TEXT,
    OPT_CHOICE, /* one of several words; the value is its place among them, an enumerator; -1: none */
    OPT_INPUT,  /* a path that is read */
    OPT_INPUTS, /* a path that is read, or a pattern of several; it is an error to give two of them */
    OPT_OUTPUT, /* a path that is written, never "" */
    OPT_KEPT    /* an OPT_OUTPUT that may also be the path that the run goes on from */
};
struct option {
    const char *name; /* without dashes */
    char letter;      /* 'd' also accepts -d; 0: no letter */
    enum option_type type;
    void *value;          /* bool*, int*, int64_t*, double*, double*, size_t*, int* for a choice, else const char** */
    const char *initial;  /* the value when the option is not given, as a user would write it; NULL: false, 0 or NULL */
    const void *argument; /* the value's name in the help, "N"; for an OPT_CHOICE its words, see choice_words() */
    double low, high;     /* the inclusive range of a number; both 0: any number */
    const char *group;    /* the heading in the help */
    unsigned commands;    /* bit set of the commands that take it; the parser is told one of them */
    const char *help;     /* one line, which print_options() wraps */
};
/* The argument of an OPT_CHOICE: WORDS([FIRST] = "first", [SECOND] = "second"). */
#define WORDS(...)                                                                                                     \
    (const char *const[]) { __VA_ARGS__, NULL }
/* The words of an OPT_CHOICE, indexed by enumerator; NULL ends them. */
const char *const *choice_words(const struct option *o);
bool is_output(const struct option *o);
enum { MOST_OPTIONS = 128 };
struct option_table {
    const struct option *options;
    size_t n;
    const struct foreign_lookup *foreign; /* module.h: how foreign words are found; NULL: no folder knows them */
    bool given[MOST_OPTIONS];             /* has the user given option i, on the command line or in a config file? */
};

/* Set every value to its initial one, or to 0, false or NULL where it has none; no option counts as given. */
void reset_options(struct option_table *table);

bool wants_help(int argc, char **argv); /* is --help or -h among the words? */
/* Parse argv[0..argc) for the command with bit `command`; words that are no options go to `words` (argv-like, new
 * array, *n_words of them).  Fails with EXIT_USAGE on an unknown option (naming the nearest), a missing or wrong value,
 * or an option that only other commands take. */
void parse_options(struct option_table *table, unsigned command, const char *command_name, int argc, char **argv,
                   char ***words, int *n_words);
/* Reads the lines `name = value` of a text that a person writes.  '#' at a line's start or after white space begins a
 * comment.  The first '=' that follows white space divides the line, or, if there is none, the first '='. */
struct settings_text {
    const char *path;
    char *rest;         /* the lines that are still to be read; next_setting() writes zeros into the text */
    int number;         /* the line's number, from 1 */
    char *name, *value; /* what the line says; both lie in the text */
};
bool next_setting(struct settings_text *t); /* false: there are no more lines */
/* Set options from the text of a config file, which is written to and must outlive the table; errors name path and
 * line. */
void parse_config(struct option_table *table, unsigned command, const char *path, char *text);
/* Set one option from a text, which must outlive the table.  The option counts as given.  `where` is how errors name
 * it, as the user wrote it: "--batch", or "run.conf, line 3: batch". */
void set_option(struct option_table *table, const struct option *o, const char *where, const char *text);
/* Half a sentence about a foreign word (module.h): what it is called here, or why it does not exist here; `dashes` is
 * written before names of options.  NULL: no folder knows the word.  The caller frees it. */
char *find_foreign(const struct option_table *table, unsigned command, const char *word, const char *dashes);
bool has_word(const char *words, const char *word); /* `words`: words between spaces, or NULL */
/* The index of `word` in the list; -1: it is not there. */
int choice_number(const char *const *words, const char *word);
bool option_given(const struct option_table *table, const char *name);
/* Print the `--name value` lines of the options of `command`, with their defaults, wrapped at 100 columns.  Options of
 * one group must stand together in the table. */
void print_options(FILE *out, const struct option_table *table, unsigned command);
/* Print `text`, wrapped and indented as the texts of the help; the cursor is in column `at`. */
void print_wrapped(FILE *out, const char *text, int at);
const struct option *find_option(const struct option_table *table, const char *name);
/* The option's present value as text, "" when unset; the caller frees it. */
char *option_text(const struct option *option);

#endif
