/* text.h - texts that are put together, numbers as text and back, and UTF-8.
 *
 * Functions format_*() write into an array of the caller's, and return it; format_string() and format_arguments() make
 * a new string.  Functions parse_*() return false, and leave the value alone, if the text as a whole is no such number.
 */
#ifndef TEXT_H
#define TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- text.c: texts that are put together ------------------------------------------------------------------------- */

#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))

/* Each makes a new string by printf rules.  The caller frees it. */
char *format_string(const char *format, ...) PRINTF_LIKE(1, 2);
char *format_arguments(const char *format, va_list arguments) PRINTF_LIKE(1, 0);

/* printf to the end of *text, which is reallocated; *text may be NULL before.  The caller frees it. */
#define append_text(text, ...) append_string((text), format_string(__VA_ARGS__))
void append_string(char **text, char *addition);   /* frees `addition` */
void append_quoted(char **text, const char *word); /* appends a word, quoted where a shell needs it */

/* A text that is printed to a file in memory:
 *
 *     struct begun_text begun;
 *     FILE *out = begin_text(&begun);
 *     fprintf(out, ...);
 *     char *text = end_text(&begun);
 *
 * The struct stays in place while the file is open.  The caller frees the text.  Where there is no memory left, the
 * program ends. */
struct begun_text {
    FILE *out;
    char *text;   /* set by the C library, complete when `out` is closed */
    size_t bytes; /* of `text`; set and complete when it is */
};
FILE *begin_text(struct begun_text *begun);
char *end_text(struct begun_text *begun);

/* The text a followed by the text b, cut to 63 characters.  The result lives as long as the block around the call. */
#define JOINED(a, b) join_texts((char[64]){0}, (a), (b))
char *join_texts(char out[64], const char *a, const char *b);

/* A copy of the text with lines of at most `columns` columns, broken between words.  The caller frees it.  What is
 * broken off a line begins below the line's second column, or, if it has one column, below its first word:
 *
 *     --steps N    how many steps the
 *                  training has */
char *fold_text(const char *text, int columns);
bool begins_with(const char *text, const char *begin);
bool ends_with(const char *text, const char *end);

bool has_word(const char *words, const char *word); /* `words`: words between spaces, or NULL */

/* Cuts the white space off the end of `text`, in place; returns its first character that is no white space. */
char *trim_text(char *text);

/* How many bytes must be added, left out or changed to turn a into b: for "did you mean". */
int edit_distance(const char *a, const char *b);

/* The word that was probably meant: one that begins with all that was typed, or has the fewest typing errors.  NULL: no
 * word is near. */
const char *nearest_word(const char *typed, const char *const *words, size_t n);

/* ---- text.c: numbers --------------------------------------------------------------------------------------------- */

/* How many bytes the array takes that one of these functions writes into, with the '\0' at its end.  Other functions
 * format_*() have such a constant too: SHAPE_TEXT, MESH_TEXT. */
enum { NUMBER_TEXT = 32 };

/* `x` with that many decimal `places`; from a million on with four digits, "1.903e+17"; "inf", "nan" without a sign. */
char *format_number(char out[NUMBER_TEXT], double x, int places);

/* With the fewest digits, from 6 on, that read back as the same number. */
char *format_exactly(char out[NUMBER_TEXT], double x);

char *format_bytes(char out[NUMBER_TEXT], double bytes);     /* "1.50 GiB", "12.3 KiB", "17 B" */
char *format_seconds(char out[NUMBER_TEXT], double seconds); /* "1 h 02 min", "3 min 10 s", "12 s" */

/* The end of a noun behind a number of any type: "1 step", "2 steps". */
#define PLURAL(n) ((n) == 1 ? "" : "s")

/* Bytes with an optional K, M, G suffix (1024-based): "512M", "1.5G", which is rounded down to whole bytes. */
bool parse_bytes(const char *text, size_t *bytes);
bool parse_int(const char *text, int64_t *value);
bool parse_double(const char *text, double *value);

/* Reads digits, and moves *at to what follows them.  NONE: there are none, or the number is not below `end`. */
int parse_number(const char **at, int end);

/* ---- utf8.c ------------------------------------------------------------------------------------------------------ */

enum { CODE_POINTS = 0x110000 }; /* a character's number is below it */
enum { UTF8_BYTES = 4 };         /* bytes of the longest character */

/* Decode the character that begins at `text`, where `left` bytes are.  Returns its length in bytes, or 0 when it is
 * invalid: a stray or missing continuation byte, a longer form than needed, a surrogate, or beyond U+10FFFF. */
size_t utf8_decode(const char *text, size_t left, uint32_t *character);

size_t utf8_encode(uint32_t c, char out[UTF8_BYTES]); /* returns how many bytes the character has */
size_t valid_utf8(const char *text, size_t n);        /* how many of the n bytes, from the first on, are valid UTF-8 */

/* A terminal shows each character of valid UTF-8 in one column.  count_characters() says how many characters begin in
 * the first n bytes of the text, and bytes_that_fit() how many of its bytes `columns` columns can show. */
int count_characters(const char *text, size_t n);
size_t bytes_that_fit(const char *text, int columns);

/* Prints UTF-8 whose bytes come a few at a time: a character is printed when its last byte has come.  Bytes that can be
 * no character become U+FFFD, one for all bytes that together could have begun a character.  Control characters except
 * '\t' and '\n' become '.'.  A stream begins as zeros; a character that is incomplete at its end becomes U+FFFD. */
struct text_stream {
    char begun[UTF8_BYTES]; /* the n bytes so far of the character that has begun */
    size_t n;
};
void show_bytes(struct text_stream *stream, FILE *out, const char *bytes, size_t n);
void end_stream(struct text_stream *stream, FILE *out);

enum text_lines { ONE_LINE, MANY_LINES };

/* Replace by '?', in place, each byte that is not UTF-8 and each control character, since a terminal would obey it.
 * '\t' stays, and with MANY_LINES '\n' too.  Returns `text`. */
char *make_printable(char *text, enum text_lines lines);

#endif
