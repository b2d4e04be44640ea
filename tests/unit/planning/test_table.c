/* test_table.c - a table is shown as text for people and as JSON for programs.
 *
 * It tests table.c of src/planning/console.  It checks that cells of every kind stand in their columns, that a text is
 * cut to its width, and that a number which does not exist is a dash in the text and null in the JSON.
 *
 * To see it fail: in table.c, let print_rows() begin with the row behind the first one.
 *
 * The expected text and JSON were written by hand.
 */
#include "planning/console/table.h"
#include "tests/support/support.h"

#include <math.h>

TEST(cells_of_a_table_fit_their_columns)
{
    static const struct column columns[] = {{"lane", "name", CELL_TEXT, 6, 0},   {NULL, "device", CELL_TEXT, 0, 0},
                                            {"n", "count", CELL_COUNT, 4, 0},    {"ms", NULL, CELL_FIXED, 7, 2},
                                            {"GB/s", "rate", CELL_RATE, 6, 1},   {"busy", "busy", CELL_SHARE, 6, 0},
                                            {"more", "more", CELL_CHANGE, 7, 0}, {"last", "last", CELL_SHORT, 6, 0}};
    struct table *rows = new_table(columns, COUNT(columns));
    ROW(rows, text_cell("compute"), text_cell("0:0"), number_cell(12), number_cell(1.239), number_cell(3.25),
        number_cell(0.125), number_cell(0.5), number_cell(1234567));
    ROW(rows, text_cell("up"), text_cell(NULL), number_cell(-1), number_cell(NAN), number_cell(0), number_cell(NAN),
        number_cell(-0.25), number_cell(8));
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    print_heading(out, rows);
    print_rows(out, rows, 0, rows->n);
    fclose(out);
    assert_string_equal(text, "\n"
                              "lane       n       ms    GB/s    busy     more    last\n"
                              "comput    12     1.24     3.2   12.5%  +50.00%  1.235e+06\n"
                              "up         -        -       -       -  -25.00%       8\n");
    json_t *found = table_json(rows);
    char *json = json_dumps(found, JSON_COMPACT | JSON_REAL_PRECISION(9));
    assert_string_equal(json, "[{\"name\":\"compute\",\"device\":\"0:0\",\"count\":12,\"rate\":3.25,\"busy\":0.125,"
                              "\"more\":0.5,\"last\":1234567.0},{\"name\":\"up\",\"device\":null,\"count\":-1,"
                              "\"rate\":0.0,\"busy\":null,\"more\":-0.25,\"last\":8.0}]");
    json_decref(found);
    free(json);
    free(text);
    free_table(rows);
}

/* Column "name" has 5 columns.  "größer" has 6 characters and 8 bytes; "Öl" has 2 characters and 3 bytes. */
TEST(texts_of_a_table_are_cut_and_padded_by_characters)
{
    static const struct column columns[] = {{"name", "name", CELL_TEXT, 5, 0}, {"last", "last", CELL_TEXT, 3, 0}};
    struct table *rows = new_table(columns, COUNT(columns));
    ROW(rows, text_cell("größer"), text_cell("größer"));
    ROW(rows, text_cell("Öl"), text_cell("Öl"));
    struct begun_text begun;
    FILE *out = begin_text(&begun);
    print_rows(out, rows, 0, rows->n);
    char *text = end_text(&begun);
    assert_string_equal(text, "größe  grö\n"
                              "Öl     Öl\n");
    free(text);
    free_table(rows);
}
