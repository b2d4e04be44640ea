/* table.h - a table that is filled once and shown either as text for people or as JSON for programs.
 *
 *     static const struct column columns[] = {{"lane", "name", CELL_TEXT, 21}, {"busy", "share", CELL_SHARE, 8}};
 *     struct table *table = new_table(columns, COUNT(columns));
 *     ROW(table, text_cell("0:0 compute"), number_cell(0.97));
 *     print_heading(stdout, table);              lane                       busy
 *     print_rows(stdout, table, 0, table->n);    0:0 compute               97.0%
 *     table_json(table)                          [{"name": "0:0 compute", "share": 0.97}]
 */
#ifndef TABLE_H
#define TABLE_H

#include "trainer/base/json.h"

enum cell_kind {
    CELL_TEXT,  /* on the left of its column, cut to its width */
    CELL_COUNT, /* an integer; negative: "-" */
    CELL_SHORT, /* four digits: 12.5, 1e+06 */
    CELL_FIXED, /* with the column's decimals */
    CELL_RATE,  /* with the column's decimals; 0: "-", since there is no such work */
    CELL_SHARE, /* 0 to 1, as text in per cent; not a number: "-" */
    CELL_CHANGE /* a share in per cent with its sign: "+3.40%"; not a number: "-" */
};

struct column {
    const char *heading; /* what is above the column in the text; NULL: it is in the JSON only; the last has one */
    const char *key;     /* its name in the JSON; NULL: it is in the text only */
    enum cell_kind kind;
    int width, decimals;
};

struct cell {
    const char *text; /* for a column of texts; NULL: there is none */
    double number;    /* for any other column */
};

struct table {
    struct column *columns; /* a copy of the caller's; their texts are the caller's */
    size_t n_columns;
    struct cell *cells; /* [n * n_columns]; texts are copies */
    size_t n, cap;      /* rows */
    int blanks;         /* between two columns of the text */
};

/* A table without rows.  The caller frees it with free_table(). */
struct table *new_table(const struct column *columns, size_t n_columns);
void free_table(struct table *table);
static inline struct cell text_cell(const char *text) { return (struct cell){text, 0}; }
static inline struct cell number_cell(double number) { return (struct cell){NULL, number}; }

/* One cell per column, in their order. */
#define ROW(table, ...) add_row((table), (struct cell[]){__VA_ARGS__})
void add_row(struct table *table, const struct cell *cells);

void sort_table(struct table *table, size_t column); /* by its numbers, the largest first */
bool shows_colour(void);                             /* is stdout a terminal that has some, and NO_COLOR not set? */

/* The heading (bold on a terminal, unless NO_COLOR is set) and rows [first, end). */
void print_heading(FILE *out, const struct table *table);
void print_rows(FILE *out, const struct table *table, size_t first, size_t end);

/* These two functions make columns narrower where a terminal is too narrow for them.
 *
 *     print_top()      the heading and the first rows; then how many others there are, and the sum of their column
 *                      number `ms_column`, in milliseconds
 *     print_table()    an empty line, the heading and all rows */
void print_top(FILE *out, struct table *table, size_t ms_column);
void print_table(FILE *out, struct table *table);

/* Prints the heading and the rows before `end`, for a reader that sets columns in a font of its own.  Each line is
 * preceded by '\n', each text cell by '\t', and each number cell by '\v'.  A column of "-" alone is left out. */
void print_cells(FILE *out, const struct table *table, size_t end);

/* An array of objects, which the caller owns; a number that is not finite is null. */
json_t *table_json(const struct table *table);

/* Prints the object on stdout, and a new line after it; the object is released. */
void print_json(json_t *object);

#endif
