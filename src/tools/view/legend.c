/* legend.c - what colours mean: a line for bars, a line for memory or for the causes of gaps. */
#include "view.h"

enum { MOST_NAMES = 24 };

static int draw_title(const struct view *v, int y, const char *text)
{
    int dot = v->scale, x = 10 * dot;
    put_small(v, x, y + 5 * dot, v->width, SOFT, "%s", text);
    return x + width_of(v, "micro-batch") + 14 * dot;
}

/* Draws an item at x; returns where the next one goes.  What does not fit is left out. */
static int draw_item(const struct view *v, int x, int y, const char *text, uint32_t colour)
{
    int dot = v->scale, next = x + width_of(v, text) + 27 * dot;
    if (next <= v->width) {
        fill(v, x, y + 7 * dot, 12 * dot, 12 * dot, colour);
        put_text(v, x + 17 * dot, y + 5 * dot, next, INK, "%s", text);
    }
    return next;
}

/* The line for bars.  When there are many colours, some of them stand for all. */
static void draw_colours(const struct view *v, int y)
{
    char text[64];
    size_t n = 0, stride = 1;
    int x = draw_title(v, y, colour_way_name[v->colour]);
    while (colour_name(v, n, text))
        n++;
    if (v->colour != BY_KIND)
        stride = ceil_div(n, MOST_NAMES);
    for (size_t i = 0; i < n; i += stride)
        if (colour_name(v, i, text) && text[0])
            x = draw_item(v, x, y, text, colour_number(v, (int64_t)i));
}

static void draw_causes(const struct view *v, int y)
{
    int x = draw_title(v, y, "idle for");
    for (int i = 0; i < CAUSES; i++)
        x = draw_item(v, x, y, cause_name[i], cause_colour((enum cause)i));
}

static void draw_classes(const struct view *v, int y)
{
    const struct trace_header *h = &v->track[0]->trace->header;
    int x = draw_title(v, y, "memory");
    for (size_t i = 0; i < h->n_classes; i++)
        x = draw_item(v, x, y, h->memory[i], class_colour(i));
}

void draw_legend(const struct view *v, struct box b)
{
    const int second = b.y + 18 * v->scale;
    fill(v, b.x, b.y, b.w, b.h, PANEL);
    fill(v, b.x, b.y, b.w, v->scale, RULE);
    draw_colours(v, b.y);
    if (v->show_causes)
        draw_causes(v, second);
    else
        draw_classes(v, second);
}
