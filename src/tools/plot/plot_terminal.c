/* plot_terminal.c - the curves on a terminal, with dots of Braille or with letters alone.
 *
 *     loss
 *            5 |⢣                         A character has two columns of dots and four rows.  Letters tell whose curve
 *              | ⢣A                       it is, also without colours: a for the training of the first run, A for its
 *            4 |  ⠣⡀A                     validation, b for the second run.  Letters alone draw all of a curve.
 */
#include "plot.h"
#include "trainer/base/base.h"

#include <math.h>

enum { LABEL = 9 }; /* columns left of the curves */

struct screen {
    const struct plot *plot;
    struct frame frame;    /* in dots */
    struct canvas *dots;   /* the number of a series in each dot, from 1; 0: none */
    struct canvas *letter; /* the number of the series whose letter stands at each character; 0: none */
    int across, down;      /* dots of a character */
    bool colour;
};

static char letter_of_series(const struct series *series)
{
    if (is_bound(series))
        return '-';
    return (char)((series->kind == VAL ? 'A' : 'a') + series->run_number % 26);
}

/* Prints a character of a series: in the colours of the picture, as terminals number them. */
static void print_mark(FILE *out, const struct series *series, const char *mark, bool colour)
{
    static const int colours[] = {25, 166, 36, 175, 172, 74, 94, 93};
    if (!colour || is_bound(series))
        fputs(mark, out);
    else
        fprintf(out, "\033[%s38;5;%dm%s\033[0m", series->kind == VAL ? "1;" : "",
                colours[series->run_number % COUNT(colours)], mark);
}

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

static void draw_series(struct screen *screen, const struct series *series, uint32_t number)
{
    const struct frame *frame = &screen->frame;
    for (size_t i = 0; i < series->n; i++) {
        const struct point *to = &series->points[i];
        const struct point *from = i > 0 ? to - 1 : to; /* a single point is a line too */
        draw_line(screen->dots, x_of_step(frame, from->step, 1), y_of_loss(frame, from->loss, 1),
                  x_of_step(frame, to->step, 1), y_of_loss(frame, to->loss, 1), number);
    }
}

static void put_letter_at(struct screen *screen, const struct point *point, uint32_t number)
{
    int x = x_of_step(&screen->frame, point->step, 1), y = y_of_loss(&screen->frame, point->loss, 1);
    if (y < screen->frame.height)
        fill_rect(screen->letter, x / screen->across, y / screen->down, 1, 1, number);
}

/* Puts the series' letter at each of a few validation losses, or else in PLACES places, which differ between runs. */
static void put_letters(struct screen *screen, const struct series *series, uint32_t number)
{
    enum { PLACES = 5 };
    bool few = series->kind == VAL && series->n <= (size_t)screen->letter->width / 4;
    if (few)
        for (size_t i = 0; i < series->n; i++)
            put_letter_at(screen, &series->points[i], number);
    else
        for (size_t i = 1; i <= PLACES; i++)
            put_letter_at(screen, &series->points[(series->n - 1) * (3 * i - series->run_number % 3) / (3 * PLACES)],
                          number);
}

static void draw_curves(struct screen *screen)
{
    for (int kind = FLOOR; kind < SERIES_KINDS; kind++)
        for (size_t i = 0; i < screen->plot->n; i++) {
            const struct series *series = &screen->plot->series[i];
            if ((int)series->kind != kind || is_below_axis(&screen->frame, series))
                continue;
            draw_series(screen, series, (uint32_t)i + 1);
            if (screen->across > 1 && !is_bound(series))
                put_letters(screen, series, (uint32_t)i + 1);
        }
}

/* ---- printing ---------------------------------------------------------------------------------------------------- */

/* The topmost series of a character's dots, and their pattern, as Unicode numbers it; NULL: it has none. */
static const struct series *look_at_dots(const struct screen *screen, int column, int row, uint32_t *pattern)
{
    static const uint32_t bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    const struct series *top = NULL;
    *pattern = 0;
    for (int y = 0; y < screen->down; y++)
        for (int x = 0; x < screen->across; x++) {
            int at = (row * screen->down + y) * screen->dots->width + column * screen->across + x;
            uint32_t number = screen->dots->pixels[at];
            if (number == 0)
                continue;
            const struct series *series = &screen->plot->series[number - 1];
            *pattern |= bits[y][x];
            if (!top || series->kind > top->kind)
                top = series;
        }
    return top;
}

static void print_character(FILE *out, const struct screen *screen, int column, int row)
{
    uint32_t pattern;
    char mark[UTF8_BYTES + 1] = "";
    uint32_t named = screen->letter->pixels[row * screen->letter->width + column];
    const struct series *series = look_at_dots(screen, column, row, &pattern);
    if (named > 0)
        series = &screen->plot->series[named - 1];
    if (!series) {
        fputc(' ', out);
        return;
    }
    if (screen->across > 1 && named == 0)
        utf8_encode(0x2800 + pattern, mark);
    else
        mark[0] = letter_of_series(series);
    print_mark(out, series, mark, screen->colour);
}

/* The number of the tick that lies in this row of characters; NONE: none does. */
static int tick_of_row(const struct screen *screen, int row)
{
    for (int i = 0; i < screen->frame.loss.n; i++)
        if (y_of_loss(&screen->frame, screen->frame.loss.tick[i], 1) / screen->down == row)
            return i;
    return NONE;
}

static void print_step_axis(FILE *out, const struct screen *screen)
{
    size_t columns = (size_t)screen->letter->width;
    char *line = allocate(columns + 33, 1);
    char text[NUMBER_TEXT];
    size_t used = 0;
    fprintf(out, "%*s+", LABEL, "");
    for (size_t i = 0; i < columns; i++)
        fputc('-', out);
    for (int i = 0; i < screen->frame.step.n; i++) {
        size_t n = strlen(tick_text(text, &screen->frame.step, i));
        size_t at = (size_t)(x_of_step(&screen->frame, screen->frame.step.tick[i], 1) / screen->across);
        at = MIN(at, columns - MIN(n, columns));
        if (used && at < used + 2)
            continue;
        memset(line + used, ' ', at - used);
        memcpy(line + at, text, n);
        used = at + n;
    }
    fprintf(out, "\n%*sstep %s\n", LABEL - 4, "", line);
    free(line);
}

/* What the legend says of a series, behind room for its mark.  The caller frees it. */
static char *legend_text(const struct screen *screen, const struct series *series)
{
    char title[128], values[128];
    bool of_all = is_bound(series) && screen->plot->one_floor;
    const struct series *same = same_before(screen->plot, series);
    char *text = format_string("%*s", LABEL + 2, "");
    if (!of_all)
        append_text(&text, "%s ", run_name(screen->plot, series));
    append_text(&text, "%s: %s", series_title(title, screen->plot, series),
                series_values(values, &screen->frame, series));
    if (same)
        append_text(&text, ", the same as %s", run_name(screen->plot, same));
    return make_printable(text, ONE_LINE);
}

static void print_legend(FILE *out, const struct screen *screen, int columns)
{
    int width = is_screen(fileno(out)) ? MAX(columns, 40) : INT32_MAX;
    for (size_t i = 0; i < screen->plot->n; i++) {
        const struct series *series = &screen->plot->series[i];
        if (series->kind == EACH_STEP)
            continue;
        char *text = legend_text(screen, series);
        char *folded = fold_text(text, width);
        fprintf(out, "%*s", LABEL - 1, "");
        print_mark(out, series, (char[]){letter_of_series(series), '\0'}, screen->colour);
        fprintf(out, "%s\n", folded + LABEL);
        free(folded);
        free(text);
    }
}

void draw_on_terminal(FILE *out, const struct plot *plot, int columns, int rows, bool colour, bool braille)
{
    char label[NUMBER_TEXT];
    int width = MAX(columns - LABEL - 2, 10);
    struct screen screen = {.plot = plot, .across = braille ? 2 : 1, .down = braille ? 4 : 1, .colour = colour};
    screen.frame = (struct frame){.width = width * screen.across, .height = rows * screen.down};
    screen.dots = new_canvas(screen.frame.width, screen.frame.height);
    screen.letter = new_canvas(width, rows);
    fit_axes(&screen.frame, plot, width / 12, rows / 3);
    draw_curves(&screen);
    fprintf(out, "%*s\n", MAX((int)strlen(plot->unit), LABEL - 1), plot->unit);
    for (int row = 0; row < rows; row++) {
        int tick = tick_of_row(&screen, row);
        fprintf(out, "%*s |", LABEL - 1, tick == NONE ? "" : tick_text(label, &screen.frame.loss, tick));
        for (int column = 0; column < width; column++)
            print_character(out, &screen, column, row);
        fputc('\n', out);
    }
    print_step_axis(out, &screen);
    size_t below = count_below(&screen.frame, plot, FLOOR);
    if (below > 0)
        fprintf(out, "%*s%zu %s below the axis\n", LABEL + 2, "", below, losses_are(below));
    print_legend(out, &screen, columns);
    free_canvas(screen.dots);
    free_canvas(screen.letter);
}
