/* plot_draw.c - curves in a frame with an axis of losses and one of steps: as characters or as pixels.
 *
 * Both draw lines into a canvas.  On a terminal its pixels are characters, and no colours but numbers of series.
 */
#include "plot.h"
#include "trainer/cmd/cmd.h"

#include <math.h>

struct axis {
    double low, high;
    double tick;  /* from tick to tick; ticks are its multiples */
    double first; /* the first tick */
    int n;        /* how many ticks there are */
};
struct frame { /* where the curves lie in the canvas, and what they show */
    int x, y, width, height;
    struct axis step, loss;
};

static void widen(struct axis *axis, double value)
{
    axis->low = fmin(axis->low, value);
    axis->high = fmax(axis->high, value);
}

/* Gives the axis its ticks, about as many as asked for. */
static void place_ticks(struct axis *axis, int ticks)
{
    if (axis->high - axis->low < 1e-9 * fmax(fabs(axis->high), 1)) { /* one value: it lies in the middle */
        double half = fmax(fabs(axis->high) / 10, 0.5);
        axis->low -= half;
        axis->high += half;
    }
    axis->tick = tick_length((axis->high - axis->low) / MAX(ticks, 1));
    axis->first = ceil(axis->low / axis->tick - 1e-9) * axis->tick;
    axis->n = 1 + (int)floor((axis->high - axis->first) / axis->tick + 1e-9);
}

static void find_ranges(struct frame *f, const struct plot *p, int step_ticks, int loss_ticks)
{
    f->step = f->loss = (struct axis){.low = INFINITY, .high = -INFINITY};
    for (const struct series *s = p->series; s < p->series + p->n; s++)
        for (size_t k = 0; k < s->n; k++) {
            widen(&f->step, s->point[k].step);
            widen(&f->loss, s->point[k].loss);
        }
    f->loss.low -= 0.03 * (f->loss.high - f->loss.low); /* so that a floor does not lie on the axis */
    place_ticks(&f->step, step_ticks);
    place_ticks(&f->loss, loss_ticks);
}

/* The value of tick i, also as text. */
static double tick_at(const struct axis *axis, int i, char text[32])
{
    double value = axis->first + i * axis->tick;
    snprintf(text, 32, "%.5g", fabs(value) < 1e-9 * axis->tick ? 0 : value);
    return value;
}

static double share(const struct axis *axis, double value) { return (value - axis->low) / (axis->high - axis->low); }

static int column_of(const struct frame *f, double step)
{
    return f->x + (int)lround(share(&f->step, step) * (f->width - 1));
}

static int y_of(const struct frame *f, double loss)
{
    return f->y + f->height - 1 - (int)lround(share(&f->loss, loss) * (f->height - 1));
}

static void draw_curve(struct canvas *c, const struct frame *f, const struct series *s, uint32_t colour, int thick)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct point *to = &s->point[i];
        const struct point *from = i > 0 ? to - 1 : to; /* a single point is a line too */
        int x0 = column_of(f, from->step), y0 = y_of(f, from->loss);
        int x1 = column_of(f, to->step), y1 = y_of(f, to->loss);
        for (int down = -(thick / 2); down < thick - thick / 2; down++)
            draw_line(c, x0, y0 + down, x1, y1 + down, colour);
    }
}

/* A square for each point where they are so few that one may stand alone. */
static void draw_points(struct canvas *c, const struct frame *f, const struct series *s, uint32_t colour)
{
    enum { FEW = 40, SIDE = 9 };
    if (s->n > FEW)
        return;
    for (const struct point *point = s->point; point < s->point + s->n; point++)
        fill_rect(c, column_of(f, point->step) - SIDE / 2, y_of(f, point->loss) - SIDE / 2, SIDE, SIDE, colour);
}

/* A floor is the same at all steps: dashes through the whole frame. */
static void draw_floor(struct canvas *c, const struct frame *f, const struct series *s, uint32_t colour)
{
    enum { DASH = 12, GAP = 8 };
    const int y = y_of(f, s->point->loss);
    for (int x = f->x; x < f->x + f->width; x += DASH + GAP)
        fill_rect(c, x, y - 1, MIN(DASH, f->x + f->width - x), 3, colour);
}

/* Tells the last and the lowest value. */
static void describe(char *text, size_t size, const struct series *s)
{
    const struct point *last = &s->point[s->n - 1];
    const struct point *best = s->point;
    for (const struct point *point = s->point; point <= last; point++)
        if (point->loss < best->loss)
            best = point;
    snprintf(text, size, "%s %s: last %.4f, lowest %.4f at step %.0f", s->path, s->kind, last->loss, best->loss,
             best->step);
    make_printable(text, false);
}

/* ---- characters ------------------------------------------------------------------------------------------------ */

enum { LABEL = 9 }; /* columns left of the curves */

static void print_mark(FILE *out, const struct plot *p, size_t series, bool colour)
{
    static const char marks[] = "*o+x#@%&=~";
    static const int hues[] = {4, 1, 2, 5, 6, 3}; /* as terminals number them */
    const struct series *s = &p->series[series];
    char mark = marks[series % (sizeof marks - 1)];
    if (colour)
        fprintf(out, "\033[%s%dm%c\033[0m", s->val ? "1;9" : "3", hues[s->run % COUNT(hues)], mark);
    else
        fputc(mark, out);
}

static void print_step_axis(FILE *out, const struct frame *f)
{
    char *line = allocate((size_t)f->width + 33, 1), text[32];
    size_t used = 0, columns = (size_t)f->width;
    fprintf(out, "%*s+", LABEL, "");
    for (size_t i = 0; i < columns; i++)
        fputc('-', out);
    for (int i = 0; i < f->step.n; i++) {
        double tick = tick_at(&f->step, i, text);
        size_t at = (size_t)column_of(f, tick), n = strlen(text);
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

/* The loss of the row's tick, as text; "": it has none. */
static void label_row(const struct frame *f, int row, char text[32])
{
    for (int i = 0; i < f->loss.n; i++) {
        double tick = tick_at(&f->loss, i, text);
        if (y_of(f, tick) == row)
            return;
    }
    text[0] = '\0';
}

void draw_on_terminal(FILE *out, const struct plot *p, int columns, int rows, bool colour)
{
    char text[512], label[32];
    struct frame f = {.width = MAX(columns - LABEL - 2, 10), .height = rows};
    struct canvas *c = new_canvas(f.width, f.height);
    find_ranges(&f, p, f.width / 12, rows / 3);
    for (size_t i = 0; i < p->n; i++)
        draw_curve(c, &f, &p->series[i], (uint32_t)i + 1, 1);
    for (int row = 0; row < rows; row++) {
        label_row(&f, row, label);
        fprintf(out, "%*s |", LABEL - 1, label);
        for (int x = 0; x < f.width; x++) {
            uint32_t pixel = c->pixels[row * f.width + x];
            if (pixel)
                print_mark(out, p, pixel - 1, colour);
            else
                fputc(' ', out);
        }
        fputc('\n', out);
    }
    print_step_axis(out, &f);
    for (size_t i = 0; i < p->n; i++) {
        describe(text, sizeof text, &p->series[i]);
        fprintf(out, "%*s", LABEL - 1, "");
        print_mark(out, p, i, colour);
        fprintf(out, "  %s\n", text);
    }
    free_canvas(c);
}

/* ---- pixels ---------------------------------------------------------------------------------------------------- */

#define PAPER 0xffffffffu
#define INK 0xff202428u
#define RULE 0xffdfe3e8u

static bool is_floor(const struct series *s) { return strcmp(s->kind, "floor") == 0 || strcmp(s->kind, "rate") == 0; }

/* Told apart by colour-blind readers too (Okabe and Ito); validation and floor are strong, training is pale. */
static uint32_t colour_of(const struct series *s)
{
    static const uint32_t strong[] = {0xff0072b2, 0xffd55e00, 0xff009e73, 0xffcc79a7, 0xffe69f00, 0xff56b4e9};
    static const uint32_t pale[] = {0xff8cbfdd, 0xffecb58c, 0xff8cd2bf, 0xffe8c4d7, 0xfff4d38c, 0xffb3dcf5};
    return (s->val || is_floor(s) ? strong : pale)[s->run % COUNT(pale)];
}

static void draw_axes(struct canvas *c, const struct frame *f, const char *unit)
{
    char text[32];
    for (int i = 0; i < f->loss.n; i++) {
        int y = y_of(f, tick_at(&f->loss, i, text));
        fill_rect(c, f->x, y, f->width, 1, RULE);
        draw_text(c, f->x - text_width(NORMAL_1X, text) - 8, y - 8, NORMAL_1X, text, INK);
    }
    for (int i = 0; i < f->step.n; i++) {
        int x = column_of(f, tick_at(&f->step, i, text));
        fill_rect(c, x, f->y, 1, f->height, RULE);
        draw_text(c, x - text_width(NORMAL_1X, text) / 2, f->y + f->height + 6, NORMAL_1X, text, INK);
    }
    fill_rect(c, f->x, f->y, 1, f->height, INK);
    fill_rect(c, f->x, f->y + f->height, f->width, 1, INK);
    draw_text(c, 8, f->y - 22, NORMAL_1X, unit, INK);
    draw_text(c, f->x + f->width - text_width(NORMAL_1X, "step"), f->y + f->height + 24, NORMAL_1X, "step", INK);
}

struct canvas *draw_picture(const struct plot *p, int width, int height)
{
    enum { LEFT = 80, TOP = 36, RIGHT = 24 };
    char text[512];
    struct canvas *c = new_canvas(width, height);
    int below = 32 + 20 * MIN((int)p->n, height / 40); /* more lines have no room */
    struct frame f = {.x = LEFT, .y = TOP, .width = width - LEFT - RIGHT, .height = height - TOP - below};
    find_ranges(&f, p, f.width / 100, f.height / 48);
    fill_rect(c, 0, 0, width, height, PAPER);
    draw_axes(c, &f, p->unit);
    for (const struct series *s = p->series; s < p->series + p->n; s++)
        if (is_floor(s))
            draw_floor(c, &f, s, colour_of(s));
        else if (!s->val)
            draw_curve(c, &f, s, colour_of(s), 1);
    for (const struct series *s = p->series; s < p->series + p->n; s++)
        if (s->val) { /* in front of the others */
            draw_curve(c, &f, s, colour_of(s), 3);
            draw_points(c, &f, s, colour_of(s));
        }
    for (size_t i = 0; i < p->n; i++) {
        const struct series *s = &p->series[i];
        int y = f.y + f.height + 24 + 20 * (int)i;
        describe(text, sizeof text, s);
        fill_rect(c, f.x, y + 7, 24, s->val ? 4 : 2, colour_of(s));
        draw_text_within(c, f.x + 32, y, NORMAL_1X, text, INK, f.x + f.width - 48);
    }
    return c;
}
