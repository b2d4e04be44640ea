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

/* An item's sign is a box of its colour as high as the letters, or where `high` is less, a line. */
static void draw_sign(const struct view *v, struct legend_place *at, const char *text, uint32_t colour, int high)
{
    const int dot = v->scale, wide = width_of(v, text) + 17 * dot;
    if (at->x + wide > v->width && at->x > at->left) {
        at->x = at->left;
        at->y += LINE * dot;
        at->lines++;
    }
    if (v->canvas) {
        fill(v, at->x, at->y + (13 - high / 2) * dot, 12 * dot, high * dot, colour);
        put_text(v, at->x + 17 * dot, at->y + 5 * dot, v->width, INK, "%s", text);
    }
    at->x += wide + 12 * dot;
}

static void draw_item(const struct view *v, struct legend_place *at, const char *text, uint32_t colour)
{
    draw_sign(v, at, text, colour, 12);
}

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
        if (colour_name(v, i, text) && text[0])
            draw_item(v, at, text, colour_number(v, (int64_t)i));
}

static void draw_causes(const struct view *v, struct legend_place *at)
{
    begin_paragraph(v, at, "idle for");
    for (int i = 0; i < CAUSES; i++)
        draw_item(v, at, cause_name[i], cause_colour((enum cause)i));
}

/* The classes of what any device in sight holds. */
static void draw_classes(const struct view *v, struct legend_place *at)
{
    const struct trace *t = v->track[0]->trace;
    bool any = false, held[TRACE_CLASSES] = {false};
    for (size_t i = 0; i < v->layout.n_rows; i++)
        any |= v->layout.row[i].kind == ROW_MEMORY;
    if (!any)
        return;
    for (size_t i = 0; i < t->header.n_tensors; i++)
        held[t->tensors[i].class] |= t->tensors[i].bytes > 0;
    begin_paragraph(v, at, "memory");
    for (size_t i = 0; i < t->header.n_classes; i++)
        if (held[i] || v->n_tracks > 1)
            draw_item(v, at, t->header.memory[i], class_colour(i));
}

/* Are bars in sight that are too narrow to be drawn one by one? */
static bool merges_bars(const struct view *v)
{
    for (size_t i = 0; i < v->layout.n_rows; i++) {
        const struct track *track = v->track[v->layout.row[i].track];
        if (v->layout.row[i].kind != ROW_LANE)
            continue;
        const struct bars *b = &track->trace->bars[v->layout.row[i].index];
        const size_t first = first_bar_in(b, clock_of(track, v->sight.from));
        if (first_bar_from(b, clock_of(track, v->sight.to)) > first + (size_t)v->width / 6)
            return true;
    }
    return false;
}

static bool shows_budget(const struct view *v)
{
    for (size_t i = 0; i < v->layout.n_rows; i++)
        if (v->layout.row[i].kind == ROW_MEMORY && budget_in_sight(v, &v->layout.row[i]) > 0)
            return true;
    return false;
}

/* What lines, pale bars and thin ones are, as far as the picture has any. */
static void draw_signs(const struct view *v, struct legend_place *at)
{
    const struct trace *t = v->track[0]->trace;
    const uint32_t bar = colour_number(v, 0);
    const bool picked = is_picked(&v->selection.task), waits = t->header.kind != TRACE_SIMULATED && !v->show_causes;
    const bool dims = v->selection.search[0] || v->selection.critical;
    const bool merges = merges_bars(v), budget = shows_budget(v);
    if (!picked && !waits && !dims && !merges && !budget && t->n_unfinished == 0)
        return;
    begin_paragraph(v, at, "signs");
    if (picked) {
        draw_sign(v, at, "what it needs", ACCENT, 2);
        draw_sign(v, at, "what needs it", INK, 2);
    }
    if (v->selection.critical)
        draw_item(v, at, "not on the critical path", blend(bar, PAPER, 0.85));
    if (v->selection.search[0])
        draw_item(v, at, "not found", blend(bar, PAPER, 0.85));
    if (merges)
        draw_item(v, at, "many tasks, mostly idle", blend(PAPER, bar, 0.4));
    if (waits)
        draw_sign(v, at, "queued", blend(bar, PAPER, 0.55), 2);
    if (t->n_unfinished > 0)
        draw_item(v, at, "perforated: runs now", bar);
    if (budget)
        draw_sign(v, at, "budget", ACCENT, 1);
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
