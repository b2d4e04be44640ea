/* pen.c - boxes and letters on the view's canvas, in the view's scale. */
#include "draw.h"

#include <stdarg.h>

/* Writes one line of text.  If place.x is negative, the text ends at place.right. */
static void put_arguments(const struct view *view, struct text_place place, enum font font, uint32_t colour,
                          const char *format, va_list arguments)
{
    char text[512];
    vsnprintf(text, sizeof text, format, arguments);
    if (place.x < 0)
        place.x = place.right - text_width(font, text);
    draw_text_within(view->canvas, &place, font, text, colour);
}

void put_text(const struct view *view, int x, int y, int right, uint32_t colour, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    put_arguments(view, (struct text_place){x, y, right}, normal_font(view), colour, format, arguments);
    va_end(arguments);
}

void put_small(const struct view *view, int x, int y, int right, uint32_t colour, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    put_arguments(view, (struct text_place){x, y, right}, small_font(view), colour, format, arguments);
    va_end(arguments);
}

struct paint { /* what changes the pixels of a box; each kind of paint uses the fields that it needs */
    uint32_t colour;
    uint32_t part;   /* how much of the colour a veil has, in parts of 256 */
    uint32_t ground; /* the colour between stripes */
    int scale;       /* pixels per dot */
    int apart;       /* dots from stripe to stripe */
};

/* Returns the colour that the paint gives the pixel at (x, y), which has the colour `old`. */
typedef uint32_t paint_kind(const struct paint *paint, uint32_t old, int x, int y);

/* Paints the part of a box that lies in the canvas. */
static void paint_box(const struct view *view, const struct box *box, paint_kind *kind, const struct paint *paint)
{
    struct canvas *canvas = view->canvas;
    int right = MIN(box->x + box->w, canvas->width), bottom = MIN(box->y + box->h, canvas->height);
    for (int y = MAX(box->y, 0); y < bottom; y++)
        for (int x = MAX(box->x, 0); x < right; x++) {
            uint32_t *pixel = &canvas->pixels[y * canvas->width + x];
            *pixel = kind(paint, *pixel, x, y);
        }
}

static uint32_t paint_veil(const struct paint *paint, uint32_t old, int x, int y)
{
    (void)x;
    (void)y;
    return mix_colours(old, paint->colour, paint->part);
}

static uint32_t paint_veil_on_paper(const struct paint *paint, uint32_t old, int x, int y)
{
    return old == PAPER ? paint_veil(paint, old, x, y) : old;
}

static uint32_t paint_stripes(const struct paint *paint, uint32_t old, int x, int y)
{
    (void)old;
    return (x + y) / paint->scale % paint->apart == 0 ? paint->colour : paint->ground;
}

static uint32_t in_256_parts(double share) { return (uint32_t)(256 * share); }

void shade_box(const struct view *view, const struct box *box, uint32_t colour, double share)
{
    paint_box(view, box, paint_veil, &(struct paint){.colour = colour, .part = in_256_parts(share)});
}

void shade_paper(const struct view *view, const struct box *box, uint32_t colour, double share)
{
    paint_box(view, box, paint_veil_on_paper, &(struct paint){.colour = colour, .part = in_256_parts(share)});
}

void hatch_box(const struct view *view, const struct box *box, uint32_t colour, int apart)
{
    const struct paint stripes = {
        .colour = colour, .ground = blend_colours(colour, PAPER, 0.85), .scale = view->scale, .apart = apart};
    paint_box(view, box, paint_stripes, &stripes);
}

void draw_dashed_frame(const struct view *view, const struct box *box, int gap, uint32_t colour)
{
    enum { DASH = 5, THICK = 2 };
    int dot = view->scale;
    int right = box->x + box->w, bottom = box->y + box->h;
    for (int x = box->x; x < right; x += (DASH + gap) * dot) {
        int wide = MIN(DASH * dot, right - x);
        fill(view, x, box->y, wide, THICK * dot, colour);
        fill(view, x, bottom - THICK * dot, wide, THICK * dot, colour);
    }
    for (int y = box->y; y < bottom; y += (DASH + gap) * dot) {
        int high = MIN(DASH * dot, bottom - y);
        fill(view, box->x, y, THICK * dot, high, colour);
        fill(view, right - THICK * dot, y, THICK * dot, high, colour);
    }
}

void put_lines(const struct view *view, int x, int y, const struct line_style *style, const char *text)
{
    for (const char *line = text; *line; y += style->high) {
        int n = (int)strcspn(line, "\n");
        uint32_t colour = line == text ? style->first : style->rest;
        put_text(view, x, y, style->right, colour, "%.*s", n, line);
        line += n;
        if (*line)
            line++;
    }
}
