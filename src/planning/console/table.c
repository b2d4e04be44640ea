/* table.c - tables: rows of cells, which are printed for people or become JSON. */
#include "table.h"

#include <math.h>
#include <unistd.h>

struct table *new_table(const struct column *columns, size_t n_columns)
{
    struct table *table = allocate(1, sizeof *table);
    table->columns = allocate(n_columns, sizeof *columns);
    memcpy(table->columns, columns, n_columns * sizeof *columns);
    table->n_columns = n_columns;
    table->blanks = 2;
    return table;
}

void free_table(struct table *table)
{
    for (size_t i = 0; i < table->n * table->n_columns; i++)
        free((char *)table->cells[i].text);
    free(table->cells);
    free(table->columns);
    free(table);
}

void add_row(struct table *table, const struct cell *cells)
{
    GROW(table->cells, table->cap, (table->n + 1) * table->n_columns);
    struct cell *row = &table->cells[table->n * table->n_columns];
    for (size_t i = 0; i < table->n_columns; i++) {
        row[i] = cells[i];
        if (cells[i].text)
            row[i].text = copy_string(cells[i].text);
    }
    table->n++;
}

static const struct cell *cell_at(const struct table *table, size_t row, size_t column)
{
    return &table->cells[row * table->n_columns + column];
}

void sort_table(struct table *table, size_t column)
{
    size_t n = table->n_columns;
    size_t size = n * sizeof *table->cells;
    struct cell *row = allocate(n, sizeof *row);
    for (size_t i = 1; i < table->n; i++) { /* insertion sort, the largest first: rows before i are sorted already */
        size_t at = i;
        memcpy(row, cell_at(table, i, 0), size);
        while (at > 0 && cell_at(table, at - 1, column)->number < row[column].number) {
            memcpy(&table->cells[at * n], cell_at(table, at - 1, 0), size);
            at--;
        }
        memcpy(&table->cells[at * n], row, size);
    }
    free(row);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static bool is_shown(const struct column *column, double x)
{
    if (column->kind == CELL_RATE && x == 0)
        return false;
    if (column->kind == CELL_COUNT && x < 0)
        return false;
    return isfinite(x);
}

enum { CELL_BYTES = 64 }; /* of a number as text, with its end */

static const char *format_cell(char out[CELL_BYTES], const struct column *column, const struct cell *cell)
{
    double x = cell->number;
    if (column->kind == CELL_TEXT)
        return cell->text;
    if (!is_shown(column, x))
        return "-";
    if (column->kind == CELL_COUNT)
        snprintf(out, CELL_BYTES, "%.0f", x);
    else if (column->kind == CELL_SHORT)
        snprintf(out, CELL_BYTES, "%.4g", x);
    else if (column->kind == CELL_SHARE)
        snprintf(out, CELL_BYTES, "%.1f%%", 100 * x);
    else if (column->kind == CELL_CHANGE)
        snprintf(out, CELL_BYTES, "%+.2f%%", 100 * x);
    else
        format_number(out, x, column->decimals);
    return out;
}

enum { LAST_WIDTH = 20 }; /* a text in the last column is folded to no less */

/* The columns of the terminal left of column i. */
static int columns_before(const struct table *table, size_t i)
{
    int total = 0;
    for (size_t k = 0; k < i; k++)
        if (table->columns[k].heading)
            total += table->columns[k].width + table->blanks;
    return total;
}

/* A text in the last column goes on below itself where the terminal ends. */
static void print_last_text(FILE *out, const struct table *table, const char *text)
{
    int before = columns_before(table, table->n_columns - 1);
    int bytes = (int)bytes_that_fit(text, table->columns[table->n_columns - 1].width);
    if (!is_screen(fileno(out))) {
        fprintf(out, "%.*s", bytes, text);
        return;
    }
    char *line = format_string("%*s%.*s", before, "", bytes, text);
    char *folded = fold_text(line, MAX(screen_width(fileno(out)), before + LAST_WIDTH));
    fputs(folded + before, out);
    free(folded);
    free(line);
}

/* printf cuts and pads texts by bytes, but a character that is not ASCII has several. */
static void print_text(FILE *out, const char *text, int width)
{
    size_t bytes = bytes_that_fit(text, width);
    int blanks = width - count_characters(text, bytes);
    fprintf(out, "%.*s%*s", (int)bytes, text, blanks, "");
}

/* Prints a cell of column i, and blanks up to the next column, if there is one. */
static void print_cell(FILE *out, const struct table *table, size_t i, const char *text)
{
    const struct column *column = &table->columns[i];
    bool last = i + 1 == table->n_columns;
    if (column->kind == CELL_TEXT && last)
        print_last_text(out, table, text);
    else if (column->kind == CELL_TEXT)
        print_text(out, text, column->width);
    else
        fprintf(out, "%*s", column->width, text);
    if (!last)
        fprintf(out, "%*s", table->blanks, "");
}

/* The columns of the terminal that the longest text of column i takes, which may be its heading. */
static int widest_cell(const struct table *table, size_t i)
{
    const struct column *column = &table->columns[i];
    int widest = (int)strlen(column->heading);
    for (size_t row = 0; row < table->n; row++) {
        char number[CELL_BYTES];
        const char *text = format_cell(number, column, cell_at(table, row, i));
        widest = MAX(widest, count_characters(text, strlen(text)));
    }
    return widest;
}

/* On a terminal that is too narrow for the table, columns become no wider than what they hold, and if need be stand
 * closer together. */
static void fit_columns(FILE *out, struct table *table)
{
    int room = screen_width(fileno(out));
    if (!is_screen(fileno(out)) || columns_before(table, table->n_columns) - table->blanks <= room)
        return;
    for (size_t i = 0; i < table->n_columns; i++) {
        struct column *column = &table->columns[i];
        if (column->heading)
            column->width = MIN(column->width, widest_cell(table, i));
    }
    const struct column *last = &table->columns[table->n_columns - 1];
    int least = last->kind == CELL_TEXT ? MIN(last->width, LAST_WIDTH) : last->width; /* a text can be folded */
    if (columns_before(table, table->n_columns - 1) + least > room)
        table->blanks = 1;
}

bool shows_colour(void) { return is_screen(STDOUT_FILENO) && !getenv("NO_COLOR"); }

void print_heading(FILE *out, const struct table *table)
{
    bool bold = out == stdout && shows_colour();
    fprintf(out, bold ? "\n\033[1m" : "\n");
    for (size_t i = 0; i < table->n_columns; i++)
        if (table->columns[i].heading)
            print_cell(out, table, i, table->columns[i].heading);
    fprintf(out, bold ? "\033[0m\n" : "\n");
}

void print_rows(FILE *out, const struct table *table, size_t first, size_t end)
{
    for (size_t row = first; row < MIN(end, table->n); row++) {
        for (size_t i = 0; i < table->n_columns; i++) {
            char text[CELL_BYTES];
            if (table->columns[i].heading)
                print_cell(out, table, i, format_cell(text, &table->columns[i], cell_at(table, row, i)));
        }
        fputc('\n', out);
    }
}

/* Is every row before `end` a "-" in this column? */
static bool is_blank(const struct table *table, size_t column, size_t end)
{
    char text[CELL_BYTES];
    for (size_t row = 0; row < MIN(end, table->n); row++) {
        if (strcmp(format_cell(text, &table->columns[column], cell_at(table, row, column)), "-") != 0)
            return false;
    }
    return table->n > 0;
}

enum { HEADING = -1 }; /* its row */

/* One line of print_cells(): the headings, or the texts of a row. */
static void print_line_of_cells(FILE *out, const struct table *table, int64_t row, size_t end)
{
    fputc('\n', out);
    for (size_t i = 0; i < table->n_columns; i++) {
        const struct column *column = &table->columns[i];
        if (!column->heading || is_blank(table, i, end))
            continue;
        char number[CELL_BYTES];
        const char *text = column->heading;
        if (row != HEADING)
            text = format_cell(number, column, cell_at(table, (size_t)row, i));
        fputc(column->kind == CELL_TEXT ? '\t' : '\v', out);
        fputs(text, out);
    }
}

void print_cells(FILE *out, const struct table *table, size_t end)
{
    print_line_of_cells(out, table, HEADING, end);
    for (size_t row = 0; row < MIN(end, table->n); row++)
        print_line_of_cells(out, table, (int64_t)row, end);
}

void print_table(FILE *out, struct table *table)
{
    fit_columns(out, table);
    print_heading(out, table);
    print_rows(out, table, 0, table->n);
}

void print_top(FILE *out, struct table *table, size_t ms_column)
{
    enum { TOP = 12 };
    double rest = 0;
    fit_columns(out, table);
    print_heading(out, table);
    print_rows(out, table, 0, TOP);
    for (size_t i = TOP; i < table->n; i++)
        rest += cell_at(table, i, ms_column)->number;
    if (table->n > TOP)
        fprintf(out, "%zu more, %.3f ms in all: --json shows them\n", table->n - TOP, rest);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *cell_json(const struct column *column, const struct cell *cell)
{
    if (column->kind == CELL_TEXT)
        return text_json(cell->text);
    if (column->kind == CELL_COUNT && isfinite(cell->number))
        return json_integer((json_int_t)cell->number);
    return number_json(cell->number);
}

json_t *table_json(const struct table *table)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < table->n; i++) {
        json_t *row = json_object();
        for (size_t k = 0; k < table->n_columns; k++) {
            const struct column *column = &table->columns[k];
            if (column->key)
                json_object_set_new(row, column->key, cell_json(column, cell_at(table, i, k)));
        }
        json_array_append_new(rows, row);
    }
    return rows;
}

void print_json(json_t *object)
{
    CHECK(object, "no JSON");
    json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    putchar('\n');
    json_decref(object);
}
