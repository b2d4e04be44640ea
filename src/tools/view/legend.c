/* legend.c - what colours mean: a line for bars, a line for memory or for the causes of gaps. */
#include "view.h"

enum { MOST_NAMES = 24 };

static int draw_title(const struct view *v, int y, const char *text)
{
    int u = v->scale, x = 10 * u;
    put_text(v, x, y + 5 * u, v->width, SOFT, "%s", text);
    return x + width_of(v, "micro-batch") + 14 * u;
}

/* At x; returns where the next one goes.  What does not fit is left out. */
static int draw_item(const struct view *v, int x, int y, const char *text, uint32_t colour)
{
    int u = v->scale, next = x + width_of(v, text) + 27 * u;
    if (next <= v->width) {
        fill(v, x, y + 7 * u, 12 * u, 12 * u, colour);
        put_text(v, x + 17 * u, y + 5 * u, next, INK, "%s", text);
    }
    return next;
}

void draw_legend(const struct view *v, struct box b)
{
    const struct trace_header *h = &v->track[0]->trace->header;
    char text[64];
    size_t n = 0;
    fill(v, b.x, b.y, b.w, b.h, PANEL);
    fill(v, b.x, b.y, b.w, v->scale, RULE);
    int x = draw_title(v, b.y, colour_way_name[v->colour]), y = b.y + 18 * v->scale;
    while (colour_name(v, n, text))
        n++;
    size_t stride = v->colour == BY_KIND ? 1 : ceil_div(n, MOST_NAMES); /* of many some stand for all */
    for (size_t i = 0; i < n; i += stride)
        if (colour_name(v, i, text) && text[0])
            x = draw_item(v, x, b.y, text, colour_number(v, (int64_t)i));
    x = draw_title(v, y, v->show_causes ? "idle for" : "memory");
    for (int i = 0; i < CAUSES && v->show_causes; i++)
        x = draw_item(v, x, y, cause_name[i], cause_colour((enum cause)i));
    for (size_t i = 0; i < h->n_classes && !v->show_causes; i++)
        x = draw_item(v, x, y, h->memory[i], class_colour(i));
}
