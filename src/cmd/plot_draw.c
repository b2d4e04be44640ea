/* plot_draw.c - curves in a frame with an axis of losses and one of steps: as characters or as pixels.
 *
 * Both draw lines into a canvas.  On a terminal its pixels are no colours but numbers of series, one per character, or
 * two by four per character where it becomes a dot of braille.
 */
#include "cmd.h"

#include <math.h>

struct range {
    double low, high, tick; /* ticks are multiples of it */
};
struct frame { /* where the curves lie in the canvas, and what they show */
    int x, y, width, height;
    struct range step, loss;
};

static void widen(struct range *r, double value)
{
    r->low = fmin(r->low, value);
    r->high = fmax(r->high, value);
}

/* With at most so many ticks. */
static void settle(struct range *r, int ticks)
{
    if (r->high - r->low < 1e-9 * fmax(fabs(r->high), 1)) { /* one value: it lies in the middle */
        double half = fmax(fabs(r->high) / 10, 0.5);
        r->low -= half, r->high += half;
    }
    r->tick = tick_length((r->high - r->low) / MAX(ticks, 1));
}

static void find_ranges(struct frame *f, const struct plot *p, int step_ticks, int loss_ticks)
{
    f->step = f->loss = (struct range){INFINITY, -INFINITY, 0};
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < p->series[i].n; k++) {
            widen(&f->step, p->series[i].point[k].step);
            widen(&f->loss, p->series[i].point[k].loss);
        }
    settle(&f->step, step_ticks);
    settle(&f->loss, loss_ticks);
}

static double first_tick(const struct range *r) { return ceil(r->low / r->tick - 1e-9) * r->tick; }
static bool in_range(const struct range *r, double tick) { return tick <= r->high + 1e-9 * r->tick; }
static double share(const struct range *r, double value) { return (value - r->low) / (r->high - r->low); }

static int x_of(const struct frame *f, double step)
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
        size_t from = i ? i - 1 : 0; /* a single point is a line too */
        for (int t = 0; t < thick; t++)
            draw_line(c, x_of(f, s->point[from].step), y_of(f, s->point[from].loss) + t - thick / 2,
                      x_of(f, s->point[i].step), y_of(f, s->point[i].loss) + t - thick / 2, colour);
    }
}

static const char *tick_text(char text[32], double value, double tick)
{
    snprintf(text, 32, "%.5g", fabs(value) < 1e-9 * tick ? 0 : value);
    return text;
}

/* Last and lowest value. */
static void describe(char *text, size_t size, const struct series *s)
{
    size_t best = 0;
    for (size_t i = 0; i < s->n; i++)
        best = s->point[i].loss < s->point[best].loss ? i : best;
    snprintf(text, size, "%s %s: last %.4f, lowest %.4f at step %.0f", s->path, s->kind, s->point[s->n - 1].loss,
             s->point[best].loss, s->point[best].step);
    make_printable(text, false);
}

/* ---- characters ------------------------------------------------------------------------------------------------ */

enum { LABEL = 9 }; /* columns left of the curves */
static const char marks[] = "*o+x#@%&=~";
static const int hues[] = {4, 1, 2, 5, 6, 3}; /* of terminals */

static char mark_of(size_t series) { return marks[series % (sizeof marks - 1)]; }

static void set_colour(FILE *out, const struct series *s, bool on)
{
    if (s && on)
        fprintf(out, "\033[%s%dm", s->val ? "1;9" : "3", hues[s->run % COUNT(hues)]);
    else if (on)
        fputs("\033[0m", out);
}

/* A character of 2 x 4 pixels: the dots of braille, in the colour of the last series that has one. */
static uint32_t gather_dots(const struct canvas *c, int column, int row, uint32_t *dots)
{
    static const unsigned char bit[4][2] = {{0, 3}, {1, 4}, {2, 5}, {6, 7}};
    uint32_t last = 0;
    *dots = 0;
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 2; x++) {
            uint32_t series = c->pixels[(4 * row + y) * c->width + 2 * column + x];
            *dots |= series ? 1u << bit[y][x] : 0;
            last = MAX(last, series);
        }
    return last;
}

static void print_cell(FILE *out, const struct plot *p, const struct canvas *c, int column, int row, bool colour,
                       bool braille)
{
    uint32_t dots, series = braille ? gather_dots(c, column, row, &dots) : c->pixels[row * c->width + column];
    if (!series) {
        fputc(' ', out);
        return;
    }
    set_colour(out, &p->series[series - 1], colour);
    if (braille) /* U+2800 and a bit per dot, as UTF-8 */
        fprintf(out, "\xe2%c%c", (int)(0xa0 + (dots >> 6)), (int)(0x80 + (dots & 63)));
    else
        fputc(mark_of(series - 1), out);
    set_colour(out, NULL, colour);
}

/* The tick whose place is in this row, if there is one. */
static const char *row_label(char text[32], const struct frame *f, int row, int dots)
{
    for (double t = first_tick(&f->loss); in_range(&f->loss, t); t += f->loss.tick)
        if (y_of(f, t) / dots == row)
            return tick_text(text, t, f->loss.tick);
    return "";
}

static void print_step_axis(FILE *out, const struct frame *f, int columns, int dots)
{
    char *line = allocate((size_t)columns + 33, 1), text[32];
    size_t used = 0;
    fprintf(out, "%*s+", LABEL, "");
    for (int i = 0; i < columns; i++)
        fputc('-', out);
    for (double t = first_tick(&f->step); in_range(&f->step, t); t += f->step.tick) {
        size_t at = (size_t)(x_of(f, t) / dots), n = strlen(tick_text(text, t, f->step.tick));
        at = MIN(at, (size_t)columns - MIN(n, (size_t)columns));
        if (used && at < used + 2)
            continue;
        memset(line + used, ' ', at - used);
        memcpy(line + at, text, n);
        used = at + n;
    }
    fprintf(out, "\n%*sstep %s\n", LABEL - 4, "", line);
    free(line);
}

static void print_legend(FILE *out, const struct plot *p, bool colour, bool braille)
{
    char text[512];
    for (size_t i = 0; i < p->n; i++) {
        describe(text, sizeof text, &p->series[i]);
        fprintf(out, "%*s", LABEL - 1, "");
        set_colour(out, &p->series[i], colour);
        if (braille)
            fputs("\xe2\xa0\xa4\xe2\xa0\xa4", out);
        else
            fputc(mark_of(i), out);
        set_colour(out, NULL, colour);
        fprintf(out, "  %s\n", text);
    }
}

void draw_on_terminal(FILE *out, const struct plot *p, int columns, int rows, bool colour, bool braille)
{
    int across = braille ? 2 : 1, down = braille ? 4 : 1;
    char text[32];
    columns = MAX(columns - LABEL - 2, 10);
    struct canvas *c = new_canvas(columns * across, rows * down);
    struct frame f = {.width = c->width, .height = c->height};
    find_ranges(&f, p, columns / 12, rows / 3);
    for (size_t i = 0; i < p->n; i++)
        draw_curve(c, &f, &p->series[i], (uint32_t)i + 1, 1);
    for (int row = 0; row < rows; row++) {
        fprintf(out, "%*s |", LABEL - 1, row_label(text, &f, row, down));
        for (int column = 0; column < columns; column++)
            print_cell(out, p, c, column, row, colour, braille);
        fputc('\n', out);
    }
    print_step_axis(out, &f, columns, across);
    print_legend(out, p, colour, braille);
    free_canvas(c);
}

/* ---- pixels ---------------------------------------------------------------------------------------------------- */

#define PAPER 0xffffffffu
#define INK 0xff202428u
#define RULE 0xffdfe3e8u
/* Told apart by colour-blind readers too (Okabe and Ito); a validation curve is thick, a training one pale. */
static const uint32_t strong[] = {0xff0072b2, 0xffd55e00, 0xff009e73, 0xffcc79a7, 0xffe69f00, 0xff56b4e9};
static const uint32_t pale[] = {0xff8cbfdd, 0xffecb58c, 0xff8cd2bf, 0xffe8c4d7, 0xfff4d38c, 0xffb3dcf5};

static uint32_t colour_of(const struct series *s) { return (s->val ? strong : pale)[s->run % COUNT(pale)]; }

static void draw_axes(struct canvas *c, const struct frame *f, int scale)
{
    char text[32];
    for (double t = first_tick(&f->loss); in_range(&f->loss, t); t += f->loss.tick) {
        int width = text_width(scale, tick_text(text, t, f->loss.tick));
        fill_rect(c, f->x, y_of(f, t), f->width, 1, RULE);
        draw_text(c, f->x - width - 8 * scale, y_of(f, t) - 8 * scale, scale, text, INK);
    }
    for (double t = first_tick(&f->step); in_range(&f->step, t); t += f->step.tick) {
        int width = text_width(scale, tick_text(text, t, f->step.tick));
        fill_rect(c, x_of(f, t), f->y, 1, f->height, RULE);
        draw_text(c, x_of(f, t) - width / 2, f->y + f->height + 6 * scale, scale, text, INK);
    }
    fill_rect(c, f->x, f->y, scale, f->height, INK);
    fill_rect(c, f->x, f->y + f->height, f->width, scale, INK);
    draw_text(c, 8 * scale, f->y - 22 * scale, scale, "loss", INK);
    draw_text(c, f->x + f->width - text_width(scale, "step"), f->y + f->height + 24 * scale, scale, "step", INK);
}

static void draw_legend(struct canvas *c, const struct plot *p, const struct frame *f, int scale)
{
    char text[512];
    for (size_t i = 0; i < p->n; i++) {
        int y = f->y + f->height + (24 + 20 * (int)i) * scale;
        describe(text, sizeof text, &p->series[i]);
        fill_rect(c, f->x, y + 7 * scale, 24 * scale, (p->series[i].val ? 4 : 2) * scale, colour_of(&p->series[i]));
        draw_text_within(c, f->x + 32 * scale, y, scale, text, INK, f->x + f->width - 48 * scale);
    }
}

struct canvas *draw_picture(const struct plot *p, int width, int height)
{
    struct canvas *c = new_canvas(width, height);
    int scale = MIN(width, height) >= 1000 ? 2 : 1, left = 80 * scale, top = 36 * scale;
    int below = (32 + 20 * MIN((int)p->n, height / (40 * scale))) * scale; /* more have no room */
    struct frame f = {.x = left, .y = top, .width = width - left - 24 * scale, .height = height - top - below};
    find_ranges(&f, p, f.width / (100 * scale), f.height / (48 * scale));
    fill_rect(c, 0, 0, width, height, PAPER);
    draw_axes(c, &f, scale);
    for (int val = 0; val < 2; val++) /* in front of the others */
        for (size_t i = 0; i < p->n; i++)
            if (p->series[i].val == val)
                draw_curve(c, &f, &p->series[i], colour_of(&p->series[i]), (val ? 3 : 1) * scale);
    draw_legend(c, p, &f, scale);
    return c;
}
