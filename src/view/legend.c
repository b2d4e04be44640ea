/* legend.c - what the colours of bars and of memory mean, in as many lines as that takes. */
#include "view.h"

enum { MOST_NAMES = 24 };

/* The legend is walked through twice: to count its lines, and to draw them. */
struct legend {
    const struct view *v;
    bool draws;
    int top, x, line;
};

/* What does not fit goes to the next line, and is left out behind the last one. */
static void add_legend_item(struct legend *l, const char *text, uint32_t colour)
{
    const struct view *v = l->v;
    int u = v->scale, width = 17 * u + width_of(v, text), most = v->width - 10 * u - (width - u);
    if (l->x > most && l->line + 1 < LEGEND_LINES)
        l->line++, l->x = 10 * u;
    if (l->x > most)
        return;
    int y = l->top + l->line * LEGEND_LINE * u;
    if (l->draws) {
        fill(v, l->x, y + 7 * u, 12 * u, 12 * u, colour);
        put_text(v, l->x + 17 * u, y + 5 * u, l->x + width, theme_of(v)->ink, "%s", text);
    }
    l->x += width + 10 * u;
}

static void add_legend_title(struct legend *l, const char *text, const char *widest)
{
    int u = l->v->scale;
    if (l->draws)
        put_text(l->v, l->x, l->top + (l->line * LEGEND_LINE + 5) * u, l->v->width, theme_of(l->v)->soft, "%s", text);
    l->x += width_of(l->v, widest) + 14 * u;
}

static void walk_legend(struct legend *l)
{
    const struct view *v = l->v;
    const struct trace_header *h = &v->track[0]->trace->header;
    char text[64];
    bool memory = false;
    add_legend_title(l, colour_way_name(v->colour), "micro-batch");
    size_t n = 0, stride = 1;
    while (colour_name(v, n, text))
        n++;
    if (v->colour != BY_KIND) /* of many some stand for all, and the last one does */
        stride = ceil_div(n, MOST_NAMES);
    for (size_t i = 0; colour_name(v, i, text); i++)
        if (text[0] && (i % stride == 0 || i + 1 == n))
            add_legend_item(l, text, colour_number(v, (int64_t)i));
    if (v->show_causes) { /* in the place of memory's */
        l->x += 10 * v->scale;
        add_legend_title(l, "idle for", "idle for");
        for (int i = 0; i < CAUSES; i++)
            add_legend_item(l, cause_name[i], cause_colour(v, (enum cause)i));
        return;
    }
    for (size_t i = 0; i < v->n_rows; i++)
        memory |= v->row[i].kind == ROW_MEMORY;
    if (!memory)
        return;
    l->x += 10 * v->scale;
    add_legend_title(l, "memory", "memory");
    for (size_t i = 0; i < h->n_classes; i++)
        add_legend_item(l, h->memory[i], class_colour(i));
}

int count_legend_lines(const struct view *v)
{
    struct legend l = {.v = v, .x = 10 * v->scale};
    walk_legend(&l);
    return l.line + 1;
}

void draw_legend(const struct view *v, struct box b)
{
    fill(v, b.x, b.y, b.w, b.h, theme_of(v)->panel);
    fill(v, 0, b.y, b.w, v->scale, theme_of(v)->rule);
    walk_legend(&(struct legend){.v = v, .draws = true, .top = b.y, .x = 10 * v->scale});
}
