/* base.h - what every floor above stands on: failing, memory, strings, time, random numbers, hashing, options.
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

#define YARD_VERSION "0.2" /* also in what is saved, which says who wrote it */

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
/* What to run when fail() or a signal ends the program (removing temporary files); the last registered runs first.  The
 * struct is its owner's, and lives until it is cancelled.  It calls only what is allowed in a signal handler. */
struct cleanup {
    void (*run)(void *);
    void *argument;
    const void *attempt; /* in which it was registered */
    struct cleanup *next;
};
void on_fail(struct cleanup *c);
void cancel_on_fail(struct cleanup *c);
void clean_up_in_handler(void); /* runs them; the program ends behind it */

/* Fail with EXIT_IO when what was printed could not be written: a full disk behind `> file`. */
void flush_output(void);
/* Library functions that a user's mistake can make fail return NULL, or a problem: the sentence and the exit code it
 * deserves.  Commands end the program with it; callers that have another way drop it. */
struct problem {
    enum exit_code code;
    char sentence[];
};
struct problem *new_problem(enum exit_code code, const char *format, ...) PRINTF_LIKE(2, 3);
_Noreturn void fail_with(struct problem *p);
void print_problem(FILE *out, const char *prefix, struct problem *p); /* and free it */
/* Fail with it, unless it is NULL. */
void must(struct problem *p);
/* Run work(argument); where it calls fail() on this thread, what it registered with on_fail() since is run, and the
 * problem comes back instead of the end of the program. */
struct problem *attempt(void (*work)(void *), void *argument);

/* An invariant of the program itself: prints both values, then aborts so that a debugger stops here. */
#define CHECK(condition, ...)                                                                                          \
    ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, #condition, format_string(__VA_ARGS__)))
_Noreturn void check_failed(const char *file, int line, const char *condition, const char *values);

/* ---- process.c ------------------------------------------------------------------------------------------------- */

/* First of all in main(): descriptors 0 to 2 are open, SIGXFSZ is ignored, and SIGINT, SIGTERM and SIGHUP end the
 * program with a sentence and EXIT_INTERRUPTED. */
void prepare_process(void);
/* From here on the first of these signals makes interrupted() true, and only the second ends the program. */
void defer_interrupts(void);
/* Again, those that the OpenCL driver's compiler has taken since. */
void take_signals_back(void);
bool interrupted(void);
/* True in a new child, a copy of this process of a single thread, which ends it when it is killed, and hands the
 * signals above on to it; false here when the child has ended: *status as waitpid() gives it. */
bool live_in_child(int *status);
/* The path of this program; NULL: the system does not say.  The caller frees it. */
char *own_binary(void);

/* ---- memory.c -------------------------------------------------------------------------------------------------- */

/* Zeroed memory that is never NULL: out of memory ends the program with a sentence.  Free with free(). */
void *allocate(size_t count, size_t size);
void *reallocate(void *old, size_t count, size_t size);
char *copy_string(const char *text);
void *copy_bytes(const void *from, size_t n); /* NULL for none */
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
/* qsort takes no NULL, which an array of none may be.  `order` gives -1, 0 or 1, as COMPARE does. */
#define SORT(items, n, order) ((n) ? qsort((items), (n), sizeof *(items), (order)) : (void)0)
#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))
/* Binary search: `i` becomes the first of 0 .. n - 1 for which `before`, said of `i`, is false; n: there is none. */
#define FIND_FIRST(i, n, before) FIND_BETWEEN(i, 0, n, before)
/* The same from `i` on, by growing steps: in a long array a search among all misses the caches at each of its own. */
#define FIND_NEXT(i, n, before)                                                                                        \
    do {                                                                                                               \
        size_t from_ = (i), step_ = 1;                                                                                 \
        for (; (i) < (n) && (before); step_ *= 2)                                                                      \
            from_ = (i) + 1, (i) += step_;                                                                             \
        size_t end_ = MIN((i), (n));                                                                                   \
        FIND_BETWEEN(i, from_, end_, before);                                                                          \
    } while (0)
#define FIND_BETWEEN(i, low, high, before)                                                                             \
    do {                                                                                                               \
        size_t low_ = (low), high_ = (high);                                                                           \
        while ((i) = low_ + (high_ - low_) / 2, low_ < high_)                                                          \
            if (before)                                                                                                \
                low_ = (i) + 1;                                                                                        \
            else                                                                                                       \
                high_ = (i);                                                                                           \
    } while (0)
/* COMPARE(), and where they are equal another comparison. */
#define BY(a, b, then) ((a) != (b) ? COMPARE(a, b) : (then))
/* A function for qsort() that compares a and b: ORDER(longest_first, struct kind, COMPARE(b->ns, a->ns)) */
#define ORDER(name, type, order)                                                                                       \
    static int name(const void *a_, const void *b_)                                                                    \
    {                                                                                                                  \
        type const *a = a_, *b = b_;                                                                                   \
        return order;                                                                                                  \
    }
/* The same for an array of pointers. */
#define ORDER_POINTERS(name, type, order)                                                                              \
    static int name(const void *a_, const void *b_)                                                                    \
    {                                                                                                                  \
        type const *a = *(type *const *)a_, *b = *(type *const *)b_;                                                   \
        return order;                                                                                                  \
    }
static inline size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }
static inline size_t ceil_div(size_t n, size_t unit) { return (n + unit - 1) / unit; }

/* ---- text.c ---------------------------------------------------------------------------------------------------- */

/* printf behind what is in *text, which grows; NULL: nothing is.  The caller frees it. */
#define append_text(text, ...) append_string((text), format_string(__VA_ARGS__))
void append_string(char **text, char *more); /* which is freed */
/* `x` with so many decimal places; from a million on with four digits, "1.903e+17"; "inf", "nan" without a sign. */
char *format_number(char out[32], double x, int places);
char *format_exactly(char out[32], double x); /* with the fewest digits, from 6 on, that read back as the same number */
/* "1.50 GiB", "12.3 KiB", "17 B" into `out` (at least 32 bytes), which is returned. */
char *format_bytes(char out[32], double bytes);
/* "1 h 02 min", "3 min 10 s", "12 s" into `out`, which is returned. */
char *format_seconds(char out[32], double seconds);
/* Two texts, one behind the other, as long as the block around lives; cut to 63 characters. */
#define JOINED(a, b) join_texts((char[64]){0}, (a), (b))
char *join_texts(char out[64], const char *a, const char *b);
bool ends_with(const char *text, const char *end);
#define NO_LIMIT ((size_t)1 << 50) /* bytes: the largest budget, and that of memory whose size is not given */
/* Bytes with an optional K, M, G suffix (1024-based), "512M".  Returns false when `text` is not that. */
bool parse_bytes(const char *text, size_t *bytes);
bool parse_int(const char *text, int64_t *value);
bool parse_double(const char *text, double *value);
/* `text` without the white space around it: cut at its end, in place, and its first character is returned. */
char *trim(char *text);
/* Decode the character at `text`, of which `left` bytes are there; its length, or 0 when it is invalid: a stray or
 * missing continuation byte, a longer form than needed, a surrogate, or beyond U+10FFFF. */
enum { CODE_POINTS = 0x110000, UTF8_BYTES = 4 /* of a character, at most */ };
size_t utf8_decode(const char *text, size_t left, uint32_t *character);
size_t valid_utf8(const char *text, size_t n); /* of n bytes, as many as are UTF-8 from the first on */
/* Bytes that come a few at a time, shown as the UTF-8 that they make: a character is shown with its last byte.  What
 * can be none becomes U+FFFD, once for all bytes that could have begun one.  Control characters but '\t' and '\n'
 * become '.'. A stream begins as zeros; at its end a character that only began is shown as U+FFFD. */
struct text_stream {
    char begun[UTF8_BYTES]; /* bytes of a character */
    size_t n;
};
void show_bytes(struct text_stream *s, FILE *out, const char *bytes, size_t n);
void end_stream(struct text_stream *s, FILE *out);
/* In place: what a terminal would obey instead of show, and what is not UTF-8, becomes '?'.  '\t' stays, and '\n' where
 * there may be several `lines`.  Returns `text`. */
char *make_printable(char *text, bool lines);
/* Edit distance, for "did you mean". */
int edit_distance(const char *a, const char *b);

/* ---- clock.c --------------------------------------------------------------------------------------------------- */

/* Nanoseconds of CLOCK_MONOTONIC_RAW: the clock that PoCL stamps its events with; CLOCK_MONOTONIC is 259 ppm off it. */
uint64_t now_ns(void);

/* ---- screen.c -------------------------------------------------------------------------------------------------- */

bool is_screen(int fd);   /* a terminal that can write over a line */
int screen_width(int fd); /* in columns; 80 where it does not say */
/* A line of that terminal in place of the one that was drawn before, cut to its width; below one that is to stay the
 * next begins. */
void write_over(int fd, const char *text, bool stays);
bool may_redraw(void); /* ten times a second; to be asked before a line is made that is not to stay */
void erase_line(void); /* that was drawn and not kept, if there is one; also in a signal's handler */

/* How far long work, "validating", has come since `begun`: on a terminal, after its first second, on a line of stderr,
 * which the caller erases at the end.  share: 0 to 1; 0: just begun. */
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
    OPT_FLOAT, /* a double that ends as a 32-bit float, so nothing between 0 and the smallest of those (FLT_MIN) */
    OPT_BYTES,
    OPT_TEXT,
    OPT_CHOICE, /* a word, kept as its place among them: an enumerator; -1: none */
    OPT_INPUT,  /* a path that is read, */
    OPT_INPUTS, /* or a pattern of several: who gives it twice means both, and is told, */
    OPT_OUTPUT, /* one that is written: never "", */
    OPT_KEPT    /* and that may be what the run goes on from */
};
struct option {
    const char *name; /* without dashes */
    char letter;      /* 'd' also accepts -d; 0 for none */
    enum option_type type;
    void *value;          /* bool*, int*, int64_t*, double*, double*, size_t*, int* of a choice, else const char** */
    const char *initial;  /* what it is without the option, as it would be written; NULL: false, 0 or NULL */
    const void *argument; /* name of the value in the help, "N"; OPT_CHOICE: its words, see choice_words() */
    double low, high;     /* inclusive range of numbers; both 0: any */
    const char *group;    /* heading in the help */
    unsigned commands;    /* bit set of the commands that take it; the parser is told one of them */
    const char *help;     /* a line, which is wrapped */
};
/* The argument of an OPT_CHOICE: WORDS([FIRST] = "first", [SECOND] = "second"). */
#define WORDS(...)                                                                                                     \
    (const char *const[]) { __VA_ARGS__, NULL }
/* Of an OPT_CHOICE, by enumerator; NULL ends them. */
const char *const *choice_words(const struct option *o);
bool is_output(const struct option *o);
enum { MOST_OPTIONS = 128 };
struct option_table {
    const struct option *options;
    size_t n;
    const struct other_words *others; /* module.h: of a folder that knows words of other programs; NULL: none does */
    bool given[MOST_OPTIONS];         /* by the user: on the command line or in a config file */
};

/* Values that have an initial one get it, others become 0, false or NULL, and no option is given. */
void reset_options(struct option_table *table);

bool wants_help(int argc, char **argv); /* is --help or -h among them? */
/* Parse argv[0..argc) for the command with bit `command`; words that are no options go to `words` (argv-like, new
 * array, *n_words of them).  Fails with EXIT_USAGE on an unknown option (naming the nearest), a missing or wrong value,
 * or an option that another command takes. */
void parse_options(struct option_table *table, unsigned command, const char *command_name, int argc, char **argv,
                   char ***words, int *n_words);
/* The next line `name = value` of a text that a person writes, which is cut up.  '#' at a line's start or behind white
 * space begins a comment; the '=' is the first one behind white space, or else the first.  false: there is no more. */
struct settings_text {
    const char *path;
    char *rest;
    int number; /* of the line, from 1 */
    char *name, *value;
};
bool next_setting(struct settings_text *t);
/* Options from the text of a config file, which is cut up and must outlive the table; errors name its path and line. */
void parse_config(struct option_table *table, unsigned command, const char *path, char *text);
/* One option from a text, which must outlive the table; errors begin with `where`: "--batch".  It counts as given. */
void set_option(struct option_table *table, const struct option *o, const char *where, const char *text);
/* What an unknown word is called here, or why it is not there: half a sentence, with `dashes` before the names of
 * options.  NULL: nobody knows it.  The caller frees it. */
char *known_elsewhere(const struct option_table *table, unsigned command, const char *word, const char *dashes);
bool has_word(const char *words, const char *word); /* between spaces; words NULL: there are none */
/* The place of `word` among the words; -1: it is none of them. */
int choice_number(const char *const *words, const char *word);
bool option_given(const struct option_table *table, const char *name);
/* The `--name value` lines of the options of `command`, with their defaults, wrapped at 100 columns.  A group's stand
 * together in the table. */
void print_options(FILE *out, const struct option_table *table, unsigned command);
/* Words of `text` from column `at` on, wrapped and indented as the help's. */
void print_wrapped(FILE *out, const char *text, int at);
const struct option *find_option(const struct option_table *table, const char *name);
/* The resolved value as text, "" when unset; the caller frees it. */
char *option_text(const struct option *option);

#endif
