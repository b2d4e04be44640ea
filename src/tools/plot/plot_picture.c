/* plot_picture.c - the curves as pixels, with a legend beside them.
 *
 *     loss
 *     5 |\                  run.jsonl
 *       | \               - train      last 2.22, lowest 2.05 at step 390
 *     0 |  \____          = val        last 2.20, lowest 2.20 at step 400
 *       +--------
 */
#include "plot.h"
#include "trainer/base/base.h"

#include <math.h>

#define PAPER 0xffffffffu
#define INK 0xff202428u
#define QUIET 0xff5f6770u
#define RULE 0xffdfe3e8u

/* The viewer's colours of micro-batches, which colour-blind readers tell apart too, without those that are too light
 * for a thin line, or black. */
static uint32_t run_colour(const struct series *s)
{
    static const uint32_t colours[] = {0xff0072b2, 0xffd55e00, 0xff009e73, 0xffcc79a7, 0xffe69f00, 0xff56b4e9,
                                       0xff8800ff, 0xff663311, 0xff112288, 0xff554455, 0xffbb55ff, 0xff88bb66};
    return colours[s->run % COUNT(colours)];
}

/* Single steps are pale: there are many, and they jump. */
static bool is_pale(const struct plot *p, const struct series *s)
{
    return s->kind == EACH_STEP || (s->kind == TRAIN && !p->smoothing);
}

static uint32_t line_colour(const struct plot *p, const struct series *s)
{
    if (is_bound(s) && p->one_floor)
        return INK;
    if (is_pale(p, s))
        return blend(run_colour(s), PAPER, p->smoothing ? 0.7 : 0.5);
    return run_colour(s);
}

/* In sixteenths of a pixel. */
static int line_thickness(const struct plot *p, const struct series *s)
{
    if (s->kind == VAL)
        return 3 * SPOT;
    return is_pale(p, s) ? SPOT + 4 : 2 * SPOT;
}

/* ---- the frame --------------------------------------------------------------------------------------------------- */

static void draw_axes(struct canvas *canvas, const struct frame *f, const char *unit)
{
    char text[32];
    for (int i = 0; i < f->loss.n; i++) {
        const int y = y_of_loss(f, f->loss.tick[i], 1);
        fill_rect(canvas, f->x, y, f->width, 1, RULE);
        tick_text(text, &f->loss, i);
        draw_text(canvas, f->x - text_width(NORMAL_1X, text) - 8, y - 8, NORMAL_1X, text, INK);
    }
    for (int i = 0; i < f->step.n; i++) {
        const int x = x_of_step(f, f->step.tick[i], 1);
        fill_rect(canvas, x, f->y, 1, f->height, RULE);
        tick_text(text, &f->step, i);
        draw_text(canvas, x - text_width(NORMAL_1X, text) / 2, f->y + f->height + 6, NORMAL_1X, text, INK);
    }
    fill_rect(canvas, f->x, f->y, 1, f->height, INK);
    fill_rect(canvas, f->x, f->y + f->height, f->width, 1, INK);
    draw_text(canvas, f->x - 48, f->y - 26, NORMAL_1X, unit, INK);
    draw_text(canvas, f->x + (f->width - text_width(NORMAL_1X, "step")) / 2, f->y + f->height + 26, NORMAL_1X, "step",
              INK);
}

/* ---- curves ------------------------------------------------------------------------------------------------------ */

static void draw_curve(struct canvas *canvas, const struct plot *p, const struct frame *f, const struct series *s)
{
    enum { FEW = 40, DISC = 8 * SPOT };
    const struct clip clip = {.x = f->x + 1, .y = f->y, .width = f->width - 1, .height = f->height};
    const struct clip whole = {.width = canvas->width, .height = canvas->height};
    const bool shows_points = s->n == 1 || (s->kind == VAL && s->n <= FEW); /* one may stand alone */
    struct spot *spot = allocate(s->n, sizeof *spot);
    for (size_t i = 0; i < s->n; i++)
        spot[i] = (struct spot){x_of_step(f, s->point[i].step, SPOT), y_of_loss(f, s->point[i].loss, SPOT)};
    draw_stroke(canvas, &clip, spot, s->n, line_thickness(p, s), line_colour(p, s));
    for (size_t i = 0; i < s->n && shows_points; i++)
        if (spot[i].y <= (f->y + f->height) * SPOT)
            draw_stroke(canvas, &whole, spot + i, 1, DISC, line_colour(p, s));
    free(spot);
}

/* Dashes from x on. */
static void draw_dashes(struct canvas *canvas, int x, int y, int width, uint32_t colour)
{
    enum { DASH = 10, GAP = 6 };
    for (int at = 0; at < width; at += DASH + GAP)
        fill_rect(canvas, x + at, y - 1, MIN(DASH, width - at), 2, colour);
}

/* In the order of their kinds: validation is in front of all. */
static void draw_curves(struct canvas *canvas, const struct plot *p, const struct frame *f)
{
    for (int kind = 0; kind < SERIES_KINDS; kind++)
        for (const struct series *s = p->series; s < p->series + p->n; s++) {
            if ((int)s->kind == kind && is_bound(s))
                draw_dashes(canvas, f->x + 1, y_of_loss(f, s->point->loss, 1), f->width - 1, line_colour(p, s));
            else if ((int)s->kind == kind)
                draw_curve(canvas, p, f, s);
        }
}

/* ---- the legend -------------------------------------------------------------------------------------------------- */

struct legend {
    struct canvas *c;
    const struct plot *p;
    int x, y, end; /* where its next line begins, and where its lines end on the right */
    int bottom;    /* what would lie below has no room */
};

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* The file without its folder, unless another run's file has the same name. */
static const char *run_name(const struct plot *p, const struct series *of)
{
    for (const struct series *s = p->series; s < p->series + p->n; s++)
        if (s->run != of->run && strcmp(last_part(s->path), last_part(of->path)) == 0)
            return of->path;
    return last_part(of->path);
}

static void write_line(struct legend *l, int indent, enum font font, const char *text, uint32_t colour)
{
    char *shown = make_printable(copy_string(text), ONE_LINE);
    draw_text_within(l->c, l->x + indent, l->y, font, shown, colour, l->end);
    l->y += 20;
    free(shown);
}

enum { SAMPLE = 24, INDENT = SAMPLE + 8 }; /* pixels */

/* A piece of the series' line. */
static void draw_sample(struct legend *l, const struct series *s)
{
    const uint32_t colour = line_colour(l->p, s);
    const struct clip clip = {.width = l->c->width, .height = l->c->height};
    const struct spot ends[] = {{l->x * SPOT, (l->y + 8) * SPOT}, {(l->x + SAMPLE) * SPOT, (l->y + 8) * SPOT}};
    const struct spot middle = {(ends[0].x + ends[1].x) / 2, ends[0].y};
    if (is_bound(s))
        draw_dashes(l->c, l->x, l->y + 8, SAMPLE + 2, colour);
    else
        draw_stroke(l->c, &clip, ends, COUNT(ends), line_thickness(l->p, s), colour);
    if (s->kind == VAL)
        draw_stroke(l->c, &clip, &middle, 1, 8 * SPOT, colour);
}

static void write_series(struct legend *l, const struct series *s)
{
    char title[128], values[128];
    draw_sample(l, s);
    series_title(title, l->p, s);
    series_values(values, s);
    if (is_bound(s)) {
        char *text = format_string("%s %s", title, values);
        write_line(l, INDENT, NORMAL_1X, text, INK);
        free(text);
        return;
    }
    write_line(l, INDENT, NORMAL_1X, title, INK);
    if (s->kind == EACH_STEP)
        return;
    l->y -= 3;
    write_line(l, INDENT, SMALL_1X, values, QUIET);
}

/* All that is of the run; its floor is left out if it is that of all. */
static void write_run(struct legend *l, size_t run)
{
    bool named = false;
    for (int kind = SERIES_KINDS - 1; kind >= 0; kind--)
        for (const struct series *s = l->p->series; s < l->p->series + l->p->n; s++) {
            if ((int)s->kind != kind || s->run != run || (is_bound(s) && l->p->one_floor))
                continue;
            if (!named)
                write_line(l, 0, NORMAL_1X, run_name(l->p, s), INK);
            named = true;
            write_series(l, s);
        }
    l->y += named ? 10 : 0;
}

/* The run's name, beside its last kind of line: for many runs. */
static void write_name(struct legend *l, size_t run)
{
    const struct series *last = NULL;
    for (const struct series *s = l->p->series; s < l->p->series + l->p->n; s++)
        if (s->run == run && (!last || s->kind > last->kind))
            last = s;
    if (!last)
        return;
    draw_sample(l, last);
    write_line(l, INDENT, NORMAL_1X, run_name(l->p, last), INK);
}

static void write_legend(struct legend *l)
{
    enum { RUN = 124 }; /* the height of most runs */
    size_t runs = 0;
    for (const struct series *s = l->p->series; s < l->p->series + l->p->n; s++)
        runs = MAX(runs, s->run + 1);
    const bool brief = l->y + (int)MIN(runs, 1000) * RUN > l->bottom;
    for (const struct series *s = l->p->series; s < l->p->series + l->p->n; s++)
        if (is_bound(s) && l->p->one_floor) {
            write_series(l, s);
            l->y += 10;
        }
    for (size_t run = 0; run < runs; run++) {
        if (l->y + 40 > l->bottom && run + 1 < runs) {
            char *text = format_string("and %zu more runs", runs - run);
            write_line(l, 0, NORMAL_1X, text, QUIET);
            free(text);
            return;
        }
        if (brief && runs > 1)
            write_name(l, run);
        else
            write_run(l, run);
    }
}

struct canvas *draw_picture(const struct plot *p, int width, int height)
{
    enum { LEFT = 72, TOP = 48, GAP = 28, BELOW = 56, LEGEND = 268 };
    const int legend = MIN(LEGEND, width / 4);
    struct canvas *canvas = new_canvas(width, height);
    struct frame f = {.x = LEFT, .y = TOP, .width = width - LEFT - GAP - legend, .height = height - TOP - BELOW};
    struct legend l = {
        .c = canvas, .p = p, .x = f.x + f.width + GAP, .y = TOP - 8, .end = width - 8, .bottom = height - 8};
    fit_axes(&f, p, f.width / 100, f.height / 48);
    fill_rect(canvas, 0, 0, width, height, PAPER);
    draw_axes(canvas, &f, p->unit);
    draw_curves(canvas, p, &f);
    write_legend(&l);
    return canvas;
}
