/* plot_draw.c - curves in a frame with an axis of losses and one of steps: as characters or as pixels.
 *
 * Both draw lines into a canvas.  On a terminal its pixels are characters, and no colours but numbers of series.
 */
#include "plot.h"
#include "trainer/cmd/cmd.h"

#include <math.h>

struct range {
    double low, high;
    double tick, first; /* ticks are multiples of it, from the first on, */
    int n;              /* so many */
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

/* With about so many ticks. */
static void settle(struct range *r, int ticks)
{
    if (r->high - r->low < 1e-9 * fmax(fabs(r->high), 1)) { /* one value: it lies in the middle */
        double half = fmax(fabs(r->high) / 10, 0.5);
        r->low -= half, r->high += half;
    }
    r->tick = tick_length((r->high - r->low) / MAX(ticks, 1));
    r->first = ceil(r->low / r->tick - 1e-9) * r->tick;
    r->n = 1 + (int)floor((r->high - r->first) / r->tick + 1e-9);
}

static void find_ranges(struct frame *f, const struct plot *p, int step_ticks, int loss_ticks)
{
    f->step = f->loss = (struct range){.low = INFINITY, .high = -INFINITY};
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < p->series[i].n; k++) {
            widen(&f->step, p->series[i].point[k].step);
            widen(&f->loss, p->series[i].point[k].loss);
        }
    settle(&f->step, step_ticks);
    settle(&f->loss, loss_ticks);
}

static double tick_at(const struct range *r, int i, char text[32])
{
    double value = r->first + i * r->tick;
    snprintf(text, 32, "%.5g", fabs(value) < 1e-9 * r->tick ? 0 : value);
    return value;
}

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

static void print_mark(FILE *out, const struct plot *p, size_t series, bool colour)
{
    static const char marks[] = "*o+x#@%&=~";
    static const int hues[] = {4, 1, 2, 5, 6, 3}; /* of terminals */
    const struct series *s = &p->series[series];
    if (colour)
        fprintf(out, "\033[%s%dm", s->val ? "1;9" : "3", hues[s->run % COUNT(hues)]);
    fprintf(out, "%c%s", marks[series % (sizeof marks - 1)], colour ? "\033[0m" : "");
}

static void print_step_axis(FILE *out, const struct frame *f)
{
    char *line = allocate((size_t)f->width + 33, 1), text[32];
    size_t used = 0, columns = (size_t)f->width;
    fprintf(out, "%*s+", LABEL, "");
    for (size_t i = 0; i < columns; i++)
        fputc('-', out);
    for (int i = 0; i < f->step.n; i++) {
        size_t at = (size_t)x_of(f, tick_at(&f->step, i, text)), n = strlen(text);
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

void draw_on_terminal(FILE *out, const struct plot *p, int columns, int rows, bool colour)
{
    char text[512];
    struct frame f = {.width = MAX(columns - LABEL - 2, 10), .height = rows};
    struct canvas *c = new_canvas(f.width, f.height);
    find_ranges(&f, p, f.width / 12, rows / 3);
    for (size_t i = 0; i < p->n; i++)
        draw_curve(c, &f, &p->series[i], (uint32_t)i + 1, 1);
    for (int row = 0; row < rows; row++) {
        int i = 0; /* the tick of this row */
        while (i < f.loss.n && y_of(&f, tick_at(&f.loss, i, text)) != row)
            i++;
        fprintf(out, "%*s |", LABEL - 1, i < f.loss.n ? text : "");
        for (const uint32_t *pixel = &c->pixels[row * f.width]; pixel < &c->pixels[(row + 1) * f.width]; pixel++)
            if (*pixel)
                print_mark(out, p, *pixel - 1, colour);
            else
                fputc(' ', out);
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

/* Told apart by colour-blind readers too (Okabe and Ito); a validation curve is thick, a training one pale. */
static uint32_t colour_of(const struct series *s)
{
    static const uint32_t strong[] = {0xff0072b2, 0xffd55e00, 0xff009e73, 0xffcc79a7, 0xffe69f00, 0xff56b4e9};
    static const uint32_t pale[] = {0xff8cbfdd, 0xffecb58c, 0xff8cd2bf, 0xffe8c4d7, 0xfff4d38c, 0xffb3dcf5};
    return (s->val ? strong : pale)[s->run % COUNT(pale)];
}

static void draw_axes(struct canvas *c, const struct frame *f)
{
    char text[32];
    for (int i = 0; i < f->loss.n; i++) {
        int y = y_of(f, tick_at(&f->loss, i, text));
        fill_rect(c, f->x, y, f->width, 1, RULE);
        draw_text(c, f->x - text_width(1, text) - 8, y - 8, 1, text, INK);
    }
    for (int i = 0; i < f->step.n; i++) {
        int x = x_of(f, tick_at(&f->step, i, text));
        fill_rect(c, x, f->y, 1, f->height, RULE);
        draw_text(c, x - text_width(1, text) / 2, f->y + f->height + 6, 1, text, INK);
    }
    fill_rect(c, f->x, f->y, 1, f->height, INK);
    fill_rect(c, f->x, f->y + f->height, f->width, 1, INK);
    draw_text(c, 8, f->y - 22, 1, "loss", INK);
    draw_text(c, f->x + f->width - text_width(1, "step"), f->y + f->height + 24, 1, "step", INK);
}

struct canvas *draw_picture(const struct plot *p, int width, int height)
{
    char text[512];
    struct canvas *c = new_canvas(width, height);
    int left = 80, top = 36, below = 32 + 20 * MIN((int)p->n, height / 40); /* more have no room */
    struct frame f = {.x = left, .y = top, .width = width - left - 24, .height = height - top - below};
    find_ranges(&f, p, f.width / 100, f.height / 48);
    fill_rect(c, 0, 0, width, height, PAPER);
    draw_axes(c, &f);
    for (int val = 0; val < 2; val++) /* in front of the others */
        for (size_t i = 0; i < p->n; i++)
            if (p->series[i].val == val)
                draw_curve(c, &f, &p->series[i], colour_of(&p->series[i]), val ? 3 : 1);
    for (size_t i = 0; i < p->n; i++) {
        int y = f.y + f.height + 24 + 20 * (int)i;
        describe(text, sizeof text, &p->series[i]);
        fill_rect(c, f.x, y + 7, 24, p->series[i].val ? 4 : 2, colour_of(&p->series[i]));
        draw_text_within(c, f.x + 32, y, 1, text, INK, f.x + f.width - 48);
    }
    return c;
}
