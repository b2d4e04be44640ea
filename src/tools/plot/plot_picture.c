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

/* Pixels. */
enum {
    LEFT = 72,        /* from the picture's edge to the curves: room for numbers of losses */
    TOP = 48,         /* above the curves: room for the unit */
    BELOW = 56,       /* below the curves: room for numbers of steps, and for a line of text */
    GAP = 28,         /* between the curves and the legend */
    LEGEND = 268,     /* the width of the legend */
    EDGE = 8,         /* between the picture's edge and the legend */
    TICK_WIDTH = 100, /* from number to number, about, on the axis of steps */
    TICK_HEIGHT = 48, /* from number to number, about, on the axis of losses */
    TICK_GAP = 6,     /* between the curves and numbers of steps */
    LOSS_GAP = 8,     /* between the curves and numbers of losses */
    UNIT_LEFT = 48,   /* from the unit's beginning to the curves */
    TITLE = 26,       /* from the curves to the titles of the axes: up to the top of the unit, down to that of "step" */
    LINE_HEIGHT = 20, /* of the legend */
    HALF_LETTER = 8,  /* from the top of a line to the middle of its letters */
    CLOSER = 3,       /* a line in small letters is that much closer to the line above it */
    RUN_GAP = 10,     /* between the runs of the legend */
    SAMPLE = 24,      /* a series' line in the legend */
    INDENT = SAMPLE + 8, /* from the beginning of that line to the text beside it */
    DISC = 8 * SPOT      /* the width of a point's disc, in sixteenths of a pixel */
};

/* Colours by Okabe and Ito, which colour-blind readers can tell apart, without yellow; then six others.  All can be
 * seen as thin lines. */
static uint32_t run_colour(const struct series *series)
{
    static const uint32_t colours[] = {0xff0072b2, 0xffd55e00, 0xff009e73, 0xffcc79a7, 0xffe69f00, 0xff56b4e9,
                                       0xff8800ff, 0xff663311, 0xff112288, 0xff554455, 0xffbb55ff, 0xff88bb66};
    return colours[series->run_number % COUNT(colours)];
}

/* Losses of single steps jump, so they are pale behind their means.  Without means they are pale in all runs if one run
 * has more than MANY, or has validation losses. */
static bool is_pale(const struct plot *plot, const struct series *series)
{
    enum { MANY = 200 };
    bool pale = false;
    for (const struct series *other = plot->series; other < plot->series + plot->n; other++)
        pale |= other->kind == VAL || (other->kind == TRAIN && other->n > MANY);
    return series->kind == EACH_STEP || (series->kind == TRAIN && !plot->smoothing && pale);
}

static uint32_t line_colour(const struct plot *plot, const struct series *series)
{
    if (is_bound(series) && plot->one_floor)
        return QUIET;
    if (is_pale(plot, series))
        return blend_colours(run_colour(series), PAPER, plot->smoothing ? 0.7 : 0.5);
    return run_colour(series);
}

/* In sixteenths of a pixel. */
static int line_thickness(const struct plot *plot, const struct series *series)
{
    if (series->kind == VAL)
        return 3 * SPOT;
    return is_pale(plot, series) ? SPOT + 4 : 2 * SPOT;
}

/* ---- the frame --------------------------------------------------------------------------------------------------- */

static void draw_axes(struct canvas *canvas, const struct frame *frame, const char *unit)
{
    char text[NUMBER_TEXT];
    for (int i = 0; i < frame->loss.n; i++) {
        int y = y_of_loss(frame, frame->loss.tick[i], 1);
        fill_rect(canvas, frame->x, y, frame->width, 1, RULE);
        tick_text(text, &frame->loss, i);
        draw_text(canvas, frame->x - text_width(NORMAL_1X, text) - LOSS_GAP, y - HALF_LETTER, NORMAL_1X, text, INK);
    }
    for (int i = 0; i < frame->step.n; i++) {
        int x = x_of_step(frame, frame->step.tick[i], 1);
        fill_rect(canvas, x, frame->y, 1, frame->height, RULE);
        tick_text(text, &frame->step, i);
        draw_text(canvas, x - text_width(NORMAL_1X, text) / 2, frame->y + frame->height + TICK_GAP, NORMAL_1X, text,
                  INK);
    }
    fill_rect(canvas, frame->x, frame->y, 1, frame->height, INK);
    fill_rect(canvas, frame->x, frame->y + frame->height, frame->width, 1, INK);
    draw_text(canvas, frame->x - UNIT_LEFT, frame->y - TITLE, NORMAL_1X, unit, INK);
    draw_text(canvas, frame->x + (frame->width - text_width(NORMAL_1X, "step")) / 2, frame->y + frame->height + TITLE,
              NORMAL_1X, "step", INK);
}

/* ---- curves ------------------------------------------------------------------------------------------------------ */

static void draw_curve(struct canvas *canvas, const struct plot *plot, const struct frame *frame,
                       const struct series *series)
{
    enum { FEW = 40 };
    const struct clip clip = {.x = frame->x + 1, .y = frame->y, .width = frame->width - 1, .height = frame->height};
    const struct clip whole = {.width = canvas->width, .height = canvas->height};
    bool shows_points = series->n == 1 || (series->kind == VAL && series->n <= FEW); /* one may stand alone */
    struct spot *spots = allocate(series->n, sizeof *spots);
    for (size_t i = 0; i < series->n; i++)
        spots[i] = (struct spot){x_of_step(frame, series->points[i].step, SPOT),
                                 y_of_loss(frame, series->points[i].loss, SPOT)};
    draw_stroke(canvas, &clip, spots, series->n, line_thickness(plot, series), line_colour(plot, series));
    if (shows_points)
        for (size_t i = 0; i < series->n; i++)
            if (spots[i].y <= (frame->y + frame->height) * SPOT)
                draw_stroke(canvas, &whole, &spots[i], 1, DISC, line_colour(plot, series));
    free(spots);
}

/* Draws a dashed line from x on. */
static void draw_dashes(struct canvas *canvas, int x, int y, int width, uint32_t colour)
{
    enum { DASH = 10, PAUSE = 6 };
    for (int at = 0; at < width; at += DASH + PAUSE)
        fill_rect(canvas, x + at, y, MIN(DASH, width - at), 1, colour);
}

/* Draws the series in the order of their kinds, so that validation losses are in front. */
static void draw_curves(struct canvas *canvas, const struct plot *plot, const struct frame *frame)
{
    for (int kind = 0; kind < SERIES_KINDS; kind++)
        for (const struct series *series = plot->series; series < plot->series + plot->n; series++) {
            if ((int)series->kind != kind || is_below_axis(frame, series))
                continue;
            if (is_bound(series))
                draw_dashes(canvas, frame->x + 1, y_of_loss(frame, series->points->loss, 1), frame->width - 1,
                            line_colour(plot, series));
            else
                draw_curve(canvas, plot, frame, series);
        }
}

/* Says how many losses lie below the axis, where curves leave the picture. */
static void tell_below(struct canvas *canvas, const struct plot *plot, const struct frame *frame)
{
    size_t n = count_below(frame, plot, EACH_STEP);
    if (n == 0)
        return;
    char *text = format_string("%zu %s below the axis", n, losses_are(n));
    draw_text(canvas, frame->x, frame->y + frame->height + TITLE, SMALL_1X, text, QUIET);
    free(text);
}

/* ---- the legend -------------------------------------------------------------------------------------------------- */

struct legend {
    struct canvas *canvas;
    const struct plot *plot;
    const struct frame *frame;
    int x, y, end; /* where its next line begins, and where its lines end on the right */
    int bottom;    /* no text lies below it */
};

static void write_line(struct legend *legend, int indent, enum font font, const char *text, uint32_t colour)
{
    char *shown = make_printable(copy_string(text), ONE_LINE);
    const struct text_place place = {legend->x + indent, legend->y, legend->end};
    draw_text_within(legend->canvas, &place, font, shown, colour);
    legend->y += LINE_HEIGHT;
    free(shown);
}

/* Draws a piece of the series' line, as wide as SAMPLE. */
static void draw_sample(struct legend *legend, const struct series *series)
{
    uint32_t colour = line_colour(legend->plot, series);
    const struct clip clip = {.width = legend->canvas->width, .height = legend->canvas->height};
    int y = legend->y + HALF_LETTER;
    const struct spot ends[] = {{legend->x * SPOT, y * SPOT}, {(legend->x + SAMPLE) * SPOT, y * SPOT}};
    const struct spot middle = {(ends[0].x + ends[1].x) / 2, ends[0].y};
    if (is_bound(series))
        draw_dashes(legend->canvas, legend->x, y, SAMPLE + 2, colour);
    else
        draw_stroke(legend->canvas, &clip, ends, COUNT(ends), line_thickness(legend->plot, series), colour);
    if (series->kind == VAL)
        draw_stroke(legend->canvas, &clip, &middle, 1, DISC, colour);
}

static void write_series(struct legend *legend, const struct series *series)
{
    char title[128], values[128];
    const struct series *same = same_before(legend->plot, series);
    if (!is_below_axis(legend->frame, series))
        draw_sample(legend, series);
    series_title(title, legend->plot, series);
    series_values(values, legend->frame, series);
    if (is_bound(series)) {
        char *text = format_string("%s %s", title, values);
        write_line(legend, INDENT, NORMAL_1X, text, INK);
        free(text);
        return;
    }
    write_line(legend, INDENT, NORMAL_1X, title, INK);
    if (series->kind == EACH_STEP)
        return;
    legend->y -= CLOSER;
    char *small = same ? format_string("the same as %s", run_name(legend->plot, same)) : copy_string(values);
    write_line(legend, INDENT, SMALL_1X, small, QUIET);
    free(small);
}

/* Writes the run's name and its series.  Its floor is left out if it is the floor of all runs. */
static void write_run(struct legend *legend, size_t run)
{
    const struct plot *plot = legend->plot;
    bool named = false;
    for (int kind = SERIES_KINDS - 1; kind >= 0; kind--)
        for (size_t i = 0; i < plot->n; i++) {
            const struct series *series = &plot->series[i];
            bool is_next = (int)series->kind == kind && series->run_number == run;
            bool is_left_out = is_bound(series) && plot->one_floor;
            if (!is_next || is_left_out)
                continue;
            if (!named)
                write_line(legend, 0, NORMAL_1X, run_name(plot, series), INK);
            named = true;
            write_series(legend, series);
        }
    if (named)
        legend->y += RUN_GAP;
}

/* Writes only the run's name, beside one of its lines: that of its validation losses, if it has any.  If each of its
 * curves lies under the curve of an earlier run, the text is such as "b.jsonl = a.jsonl". */
static void write_name(struct legend *legend, size_t run)
{
    const struct plot *plot = legend->plot;
    const struct series *last = NULL;
    bool same = true;
    for (const struct series *series = plot->series; series < plot->series + plot->n; series++) {
        if (series->run_number != run)
            continue;
        same &= same_before(plot, series) != NULL;
        if (!last || series->kind > last->kind)
            last = series;
    }
    if (!last)
        return;
    char *name = format_string("%s%s%s", run_name(plot, last), same ? " = " : "",
                               same ? run_name(plot, same_before(plot, last)) : "");
    draw_sample(legend, last);
    write_line(legend, INDENT, NORMAL_1X, name, INK);
    free(name);
}

static void write_legend(struct legend *legend)
{
    enum { RUN = 124 }; /* pixels: the height of most runs */
    size_t runs = 0;
    for (const struct series *series = legend->plot->series; series < legend->plot->series + legend->plot->n; series++)
        runs = MAX(runs, series->run_number + 1);
    /* So many runs are too many for any picture, and the product stays an int. */
    bool brief = legend->y + (int)MIN(runs, 1000) * RUN > legend->bottom;
    for (const struct series *series = legend->plot->series; series < legend->plot->series + legend->plot->n; series++)
        if (is_bound(series) && legend->plot->one_floor) {
            write_series(legend, series);
            legend->y += RUN_GAP;
        }
    for (size_t run = 0; run < runs; run++) {
        if (legend->y + 2 * LINE_HEIGHT > legend->bottom && run + 1 < runs) {
            char *text = format_string("and %zu more runs", runs - run);
            write_line(legend, 0, NORMAL_1X, text, QUIET);
            free(text);
            return;
        }
        if (brief && runs > 1)
            write_name(legend, run);
        else
            write_run(legend, run);
    }
}

struct canvas *draw_picture(const struct plot *plot, int width, int height)
{
    int legend_width = MIN(LEGEND, width / 4);
    struct canvas *canvas = new_canvas(width, height);
    struct frame frame = {
        .x = LEFT, .y = TOP, .width = width - LEFT - GAP - legend_width, .height = height - TOP - BELOW};
    struct legend legend = {.canvas = canvas,
                            .plot = plot,
                            .frame = &frame,
                            .x = frame.x + frame.width + GAP,
                            .y = TOP - HALF_LETTER,
                            .end = width - EDGE,
                            .bottom = height - EDGE};
    fit_axes(&frame, plot, frame.width / TICK_WIDTH, frame.height / TICK_HEIGHT);
    fill_rect(canvas, 0, 0, width, height, PAPER);
    draw_axes(canvas, &frame, plot->unit);
    draw_curves(canvas, plot, &frame);
    tell_below(canvas, plot, &frame);
    write_legend(&legend);
    return canvas;
}
