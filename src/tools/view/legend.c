/* legend.c - what colours mean: a paragraph for bars, one for memory or for the causes of gaps.  What does not fit into
 * a line goes on in the next. */
#include "draw.h"

enum { MOST_NAMES = 24, LINE = 18 };

struct legend_place { /* of the next item; the canvas is NULL while lines are counted */
    int x, y, left, lines;
};

static void begin_paragraph(const struct view *v, struct legend_place *at, const char *title)
{
    const int dot = v->scale;
    if (at->lines > 0)
        at->y += LINE * dot;
    at->lines++;
    if (v->canvas)
        put_small(v, 10 * dot, at->y + 5 * dot, v->width, SOFT, "%s", title);
    at->x = at->left;
}

static void draw_shape(const struct view *v, int x, int y, enum sign_shape shape, uint32_t colour)
{
    const int dot = v->scale, size = 12 * dot;
    const int middle = y + size / 2;
    if (shape == BOX || shape == FRAME || shape == HOLES)
        fill(v, x, y, size, size, colour);
    if (shape == PALE_BOX) {
        fill(v, x, y, size, size, BORDER);
        fill(v, x + dot, y + dot, size - 2 * dot, size - 2 * dot, colour);
    }
    if (shape == FRAME)
        fill(v, x + 2 * dot, y + 2 * dot, size - 4 * dot, size - 4 * dot, PANEL);
    if (shape == FLAT_LINE)
        fill(v, x, middle - dot, size, 2 * dot, colour);
    if (shape == UPRIGHT_LINE)
        fill(v, x + size / 2, y, dot, size, colour);
    for (int at = 0; at < 2 && shape == DASHES; at++)
        fill(v, x + 7 * at * dot, middle, 5 * dot, dot, colour);
    for (int at = 0; at < 2 && shape == UPRIGHT_DASHES; at++)
        fill(v, x + size / 2, y + 7 * at * dot, dot, 5 * dot, colour);
    for (int at = 0; at < 4 && shape == HOLES; at++)
        fill(v, x + (2 + at % 2 * 5) * dot, y + (at < 2 ? 1 : 9) * dot, 3 * dot, 2 * dot, PANEL);
}

static void draw_item(const struct view *v, struct legend_place *at, const char *text, enum sign_shape shape,
                      uint32_t colour)
{
    const int dot = v->scale, wide = width_of(v, text) + 17 * dot;
    if (at->x + wide > v->width && at->x > at->left) {
        at->x = at->left;
        at->y += LINE * dot;
        at->lines++;
    }
    if (v->canvas) {
        draw_shape(v, at->x, at->y + 7 * dot, shape, colour);
        put_text(v, at->x + 17 * dot, at->y + 5 * dot, v->width, INK, "%s", text);
    }
    at->x += wide + 12 * dot;
}

/* The legend lists the kinds, causes and classes that the picture has.  There is room for all of them, and all are
 * listed while what is in sight changes by itself. */
static bool lists_all(const struct view *v) { return !v->canvas || v->sight.follow; }

/* When there are many colours, some of them stand for all. */
static void draw_colours(const struct view *v, struct legend_place *at)
{
    char text[64];
    size_t n = 0, stride = 1;
    begin_paragraph(v, at, colour_way_name[v->colour]);
    while (colour_name(v, n, text))
        n++;
    if (v->colour != BY_KIND)
        stride = ceil_div(n, MOST_NAMES);
    for (size_t i = 0; i < n; i += stride)
        if (colour_name(v, i, text) && text[0] && (v->colour != BY_KIND || lists_all(v) || v->layout.seen.role[i]))
            draw_item(v, at, text, BOX, colour_number(v, (int64_t)i));
}

static void draw_causes(const struct view *v, struct legend_place *at)
{
    begin_paragraph(v, at, "idle for");
    for (int i = 0; i < CAUSES; i++)
        if (lists_all(v) || v->layout.seen.cause[i])
            draw_item(v, at, cause_name[i], BOX, cause_colour((enum cause)i));
}

/* The classes that the memory rows have. */
static void draw_classes(const struct view *v, struct legend_place *at)
{
    const struct trace *t = v->track[0]->trace;
    bool any = false;
    for (size_t i = 0; i < v->layout.n_rows; i++)
        any |= v->layout.row[i].kind == ROW_MEMORY;
    if (!any)
        return;
    begin_paragraph(v, at, "memory");
    for (size_t i = 0; i < t->header.n_classes; i++)
        if (lists_all(v) ? v->has_class[i] : v->layout.seen.class[i])
            draw_item(v, at, t->header.memory[i], BOX, class_colour(i));
}

/* Is there a bar of a task that runs, or a pale one of a task that has been queued and waits for another? */
static bool shows_running(const struct view *v, bool waits)
{
    for (size_t i = 0; i < v->layout.n_rows; i++) {
        const struct view_row *r = &v->layout.row[i];
        struct trace_running now;
        if (r->kind == ROW_LANE && trace_running(v->track[r->track]->trace, r->index, &now) && now.waits == waits)
            return true;
    }
    return false;
}

/* In a simulation tasks are not queued before they can start. */
static bool shows_queued(const struct view *v)
{
    bool any = false;
    for (int i = 0; i < v->n_tracks; i++)
        any |= v->track[i]->trace->header.kind != TRACE_SIMULATED;
    return any && !v->show_causes;
}

static bool shows_budget(const struct view *v)
{
    for (size_t i = 0; i < v->layout.n_rows; i++)
        if (v->layout.row[i].kind == ROW_MEMORY && budget_in_sight(v, &v->layout.row[i]) > 0)
            return true;
    return false;
}

/* The picture alone decides which signs are on it.  The signs of the mouse come last.  A window keeps room for them
 * when the legend's lines are counted, so that nothing moves when the mouse comes.  Pale columns are known only when
 * they have been drawn, so there is always room for their sign. */
size_t find_signs(const struct view *v, struct sign sign[MOST_SIGNS])
{
    const struct box rows = places_of(v).rows;
    const struct view_selection *s = &v->selection;
    const uint32_t bar = colour_number(v, 0), dimmed = blend(bar, PAPER, 0.85);
    const bool picked = is_picked(&s->task), room = !v->still && !v->canvas;
    const struct {
        bool seen;
        struct sign sign;
    } all[MOST_SIGNS] = {
        {shows_loss(v), {"loss", FLAT_LINE, LOSS}},
        {shows_borders(v), {"a step begins", UPRIGHT_LINE, BORDER}},
        {shows_budget(v), {"budget", DASHES, ACCENT}},
        {v->layout.seen.pale || !v->canvas, {"short tasks, mostly idle", PALE_BOX, blend(PAPER, bar, 0.4)}},
        {shows_queued(v), {"queued", FLAT_LINE, blend(bar, PAPER, 0.55)}},
        {shows_running(v, false), {"runs now", HOLES, bar}},
        {shows_running(v, true), {"waits for another task", PALE_BOX, blend(bar, PAPER, 0.8)}},
        {s->critical, {"not on the critical path", PALE_BOX, dimmed}},
        {s->search[0], {"not found", PALE_BOX, dimmed}},
        {picked, {"selected", FRAME, INK}},
        {picked, {"what it needs", FLAT_LINE, ACCENT}},
        {picked, {"what needs it", FLAT_LINE, INK}},
        {s->region.kind == STRETCH, {"selected time", PALE_BOX, blend(PAPER, ACCENT, 0.12)}},
        {s->region.kind == PLACE, {"selected place", UPRIGHT_LINE, ACCENT}},
        {shows_mark(v), {"mark", UPRIGHT_DASHES, INK}},
        {room || is_inside(&rows, v->mouse.x, v->mouse.y), {"time at the mouse", UPRIGHT_LINE, SOFT}},
        {room || is_picked(&v->mouse.hover), {"under the mouse", FRAME, ACCENT}},
    };
    size_t n = 0;
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i].seen)
            sign[n++] = all[i].sign;
    return n;
}

static void draw_signs(const struct view *v, struct legend_place *at)
{
    struct sign sign[MOST_SIGNS];
    const size_t n = find_signs(v, sign);
    if (n > 0)
        begin_paragraph(v, at, "signs");
    for (size_t i = 0; i < n; i++)
        draw_item(v, at, sign[i].name, sign[i].shape, sign[i].colour);
}

static int draw_paragraphs(const struct view *v, int y)
{
    struct legend_place at = {.y = y, .left = 10 * v->scale + small_width(v, "micro-batch") + 14 * v->scale};
    draw_colours(v, &at);
    if (v->show_causes)
        draw_causes(v, &at);
    draw_classes(v, &at);
    draw_signs(v, &at);
    return at.lines;
}

int count_legend_lines(const struct view *v) { return draw_paragraphs(v, 0); }

void draw_legend(const struct view *v, struct box b)
{
    fill(v, b.x, b.y, b.w, b.h, PANEL);
    fill(v, b.x, b.y, b.w, v->scale, RULE);
    draw_paragraphs(v, b.y);
}
