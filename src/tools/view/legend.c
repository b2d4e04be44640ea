/* legend.c - what colours mean: a paragraph for bars, one for memory or for the causes of gaps.  What does not fit into
 * a line goes on in the next.  In a low window all is in two lines without titles, memory first, since no name tells
 * its colours, and an ellipsis ends them if more would follow. */
#include "draw.h"

enum { LOW_LINES = 2 };

/* ---- the shapes of signs: each is as wide and as high as `size`, with its left upper corner at (x, y) ------------ */

/* A box of three layers, the upper ones darker. */
static void draw_layers(const struct view *view, int x, int y, int size, uint32_t colour)
{
    int height = size / 3;
    for (int layer = 0; layer < 3; layer++)
        fill(view, x, y + layer * height, size, height, blend_colours(colour, PANEL, 0.35 * layer));
}

static void draw_bordered(const struct view *view, int x, int y, int size, int border, uint32_t border_colour,
                          uint32_t inside)
{
    fill(view, x, y, size, size, border_colour);
    fill(view, x + border, y + border, size - 2 * border, size - 2 * border, inside);
}

static void draw_box(const struct view *view, int x, int y, int size, uint32_t colour)
{
    fill(view, x, y, size, size, colour);
}

static void draw_hatched_box(const struct view *view, int x, int y, int size, uint32_t colour)
{
    hatch_box(view, &(struct box){x, y, size, size}, colour, DENSE);
}

static void draw_sparse_box(const struct view *view, int x, int y, int size, uint32_t colour)
{
    hatch_box(view, &(struct box){x, y, size, size}, colour, SPARSE);
}

static void draw_pale_box(const struct view *view, int x, int y, int size, uint32_t colour)
{
    draw_bordered(view, x, y, size, view->scale, BORDER, colour);
}

static void draw_frame(const struct view *view, int x, int y, int size, uint32_t colour)
{
    draw_bordered(view, x, y, size, 2 * view->scale, colour, PANEL);
}

static void draw_dashed_sign(const struct view *view, int x, int y, int size, uint32_t colour)
{
    draw_dashed_frame(view, &(struct box){x, y, size, size}, 2, colour);
}

/* A line across the middle of the sign. */
static void draw_across(const struct view *view, int x, int y, int size, int thickness, uint32_t colour)
{
    fill(view, x, y + size / 2 - thickness / 2, size, thickness, colour);
}

static void draw_low_box(const struct view *view, int x, int y, int size, uint32_t colour)
{
    draw_across(view, x, y, size, 4 * view->scale, colour);
}

static void draw_flat_line(const struct view *view, int x, int y, int size, uint32_t colour)
{
    draw_across(view, x, y, size, 2 * view->scale, colour);
}

static void draw_dotted_line(const struct view *view, int x, int y, int size, uint32_t colour)
{
    int dot = view->scale;
    for (int at = 0; at < size; at += QUEUED_APART * dot)
        fill(view, x + at, y + size / 2, dot, dot, colour);
}

static void draw_two_dashes(const struct view *view, int x, int y, int size, uint32_t colour)
{
    int dot = view->scale;
    for (int i = 0; i < 2; i++)
        fill(view, x + 7 * i * dot, y + size / 2, 5 * dot, dot, colour);
}

static void draw_upright_line(const struct view *view, int x, int y, int size, uint32_t colour)
{
    fill(view, x + size / 2, y, view->scale, size, colour);
}

static void draw_upright_dashes(const struct view *view, int x, int y, int size, uint32_t colour)
{
    int dot = view->scale;
    for (int i = 0; i < 2; i++)
        fill(view, x + size / 2, y + 7 * i * dot, dot, 5 * dot, colour);
}

/* A box with two holes at its upper edge and two at its lower one. */
static void draw_box_with_holes(const struct view *view, int x, int y, int size, uint32_t colour)
{
    int dot = view->scale;
    fill(view, x, y, size, size, colour);
    for (int column = 0; column < 2; column++)
        for (int row = 0; row < 2; row++)
            fill(view, x + (2 + 5 * column) * dot, y + (1 + 8 * row) * dot, 3 * dot, 2 * dot, PANEL);
}

typedef void draw_function(const struct view *view, int x, int y, int size, uint32_t colour);
static draw_function *const draw_sign[] = {
    [BOX] = draw_box,
    [HATCHED_BOX] = draw_hatched_box,
    [SPARSE_BOX] = draw_sparse_box,
    [LAYERED_BOX] = draw_layers,
    [LOW_BOX] = draw_low_box,
    [PALE_BOX] = draw_pale_box,
    [FRAME] = draw_frame,
    [DASHED_FRAME] = draw_dashed_sign,
    [FLAT_LINE] = draw_flat_line,
    [DOTTED_LINE] = draw_dotted_line,
    [DASHES] = draw_two_dashes,
    [UPRIGHT_LINE] = draw_upright_line,
    [UPRIGHT_DASHES] = draw_upright_dashes,
    [HOLES] = draw_box_with_holes,
};

/* ---- items and paragraphs ---------------------------------------------------------------------------------------- */

struct legend_place { /* the next item's; the canvas is NULL while lines are counted */
    int x, y, left, lines;
};

static void begin_paragraph(const struct view *view, struct legend_place *at, const char *title)
{
    int dot = view->scale;
    if (view->layout.low)
        return;
    if (at->lines > 0)
        at->y += LINE * dot;
    at->lines++;
    if (view->canvas)
        put_small(view, MARGIN * dot, at->y + 5 * dot, view->width, SOFT, "%s", title);
    at->x = at->left;
}

static void draw_item(const struct view *view, struct legend_place *at, const char *text, enum sign_shape shape,
                      uint32_t colour)
{
    int dot = view->scale, wide = width_of(view, text) + 17 * dot;
    bool last_line = view->layout.low && at->lines == LOW_LINES;
    if (last_line && at->x + wide + 12 * dot > view->width) {
        if (view->canvas && at->x < view->width)
            put_text(view, at->x, at->y + 5 * dot, view->width, INK, "…");
        at->x = view->width; /* nothing stands after it */
        return;
    }
    if (at->x + wide > view->width && at->x > at->left) {
        at->x = at->left;
        at->y += LINE * dot;
        at->lines++;
    }
    if (view->canvas) {
        draw_sign[shape](view, at->x, at->y + 7 * dot, 12 * dot, colour);
        put_text(view, at->x + 17 * dot, at->y + 5 * dot, view->width, INK, "%s", text);
    }
    at->x += wide + 12 * dot;
}

/* The legend lists the kinds, causes and classes that the picture has.  There is room for all of them, and all are
 * listed while what is in sight changes by itself. */
static bool lists_all(const struct view *view) { return !view->canvas || view->sight.follow; }

/* Is the colour shown?  Writes its name to `text`. */
static bool is_listed(const struct view *view, size_t colour, char text[COLOUR_NAME])
{
    if (!colour_name(view, colour, text) || !text[0])
        return false;
    return view->colour != BY_KIND || lists_all(view) || view->layout.contents.kind[colour];
}

/* When there are many colours, some of them stand for all. */
static void draw_colours(const struct view *view, struct legend_place *at)
{
    char text[COLOUR_NAME];
    size_t n = 0;
    begin_paragraph(view, at, colour_way_name[view->colour]);
    while (colour_name(view, n, text))
        n++;
    for (size_t i = 0; i < n; i += colour_stride(view))
        if (is_listed(view, i, text))
            draw_item(view, at, text, BOX, colour_number(view, (int64_t)i));
    if (lists_all(view) ? view->has_plain[view->colour] : view->layout.contents.plain)
        draw_item(view, at, "none", BOX, colour_number(view, NONE));
}

/* Hues of causes are those of kinds, so the legend says what tells them apart. */
static const char idle_title[] = "idle (hatched) for";

static void draw_causes(const struct view *view, struct legend_place *at)
{
    static const char *const plainer[CAUSES] = {
        [CAUSE_BYTES] = "bytes (memory in use)", [CAUSE_LAUNCH] = "launch (by the driver)"};
    bool any = false;
    begin_paragraph(view, at, idle_title);
    for (enum cause i = 0; i < CAUSES; i++)
        if (lists_all(view) || view->layout.contents.cause[i]) {
            draw_item(view, at, plainer[i] ? plainer[i] : cause_name[i],
                      cause_stripes(i) == SPARSE ? SPARSE_BOX : HATCHED_BOX, cause_colour(i));
            any = true;
        }
    if (!any && !view->layout.low)
        put_text(view, at->x, at->y + 5 * view->scale, view->width, INK, "no gap is in sight");
}

/* The classes that the memory rows have. */
static void draw_classes(const struct view *view, struct legend_place *at)
{
    const struct trace *trace = view->tracks[0]->trace;
    bool any = false;
    for (size_t i = 0; i < view->layout.n_rows; i++)
        any |= view->layout.rows[i].kind == ROW_MEMORY;
    if (!any && !view->layout.no_room_for_memory)
        return;
    begin_paragraph(view, at, "memory");
    if (!any && view->canvas && !view->layout.low)
        put_text(view, at->x, at->y + 5 * view->scale, view->width, INK, "not shown: its rows have no room");
    if (!any)
        return;
    for (size_t i = 0; i < trace->header.n_classes; i++)
        if (lists_all(view) ? view->has_class[i] : view->layout.contents.class[i])
            draw_item(view, at, trace->header.memory[i], BOX, class_colour(i));
}

/* Tasks that have not ended: the bar of one that has been queued and waits for another is pale. */
enum unfinished { RUNS, WAITS };

/* What is in sight is known when it has been drawn.  Before that there is room for what might be. */
static bool shows_unfinished(const struct view *view, enum unfinished wanted)
{
    if (view->canvas)
        return view->layout.contents.unfinished[wanted];
    for (size_t i = 0; i < view->layout.n_rows; i++) {
        const struct view_row *row = &view->layout.rows[i];
        struct trace_running_task now;
        if (row->kind != ROW_LANE || !find_running_task(view->tracks[row->track]->trace, row->index, &now))
            continue;
        enum unfinished found = now.waits ? WAITS : RUNS;
        if (found == wanted)
            return true;
    }
    return false;
}

static bool shows_shares(const struct view *view)
{
    return is_far_out(view, view->tracks[0]) && !view->selection.search[0] && !view->selection.critical;
}

/* In a simulation tasks are not queued before they can start. */
static bool shows_queued(const struct view *view)
{
    bool any = false;
    for (int i = 0; i < view->n_tracks; i++)
        any |= view->tracks[i]->trace->header.kind != TRACE_SIMULATED;
    return any && !view->show_causes && !shows_shares(view);
}

static bool shows_budget(const struct view *view)
{
    for (size_t i = 0; i < view->layout.n_rows; i++)
        if (view->layout.rows[i].kind == ROW_MEMORY && budget_in_sight(view, &view->layout.rows[i]) > 0)
            return true;
    return false;
}

struct signs {
    struct sign *all;
    size_t n;
};

static void add_sign(struct signs *signs, bool seen, struct sign sign)
{
    if (!seen)
        return;
    CHECK(signs->n < MOST_SIGNS, "the legend has more than %d signs", MOST_SIGNS);
    signs->all[signs->n++] = sign;
}

/* The signs of tasks and steps.  Pale columns are known only when they have been drawn, so there is always room for
 * their sign. */
static void add_signs_of_tasks(const struct view *view, struct signs *signs)
{
    uint32_t bar = colour_number(view, 0);
    bool pale = view->layout.contents.pale || !view->canvas;
    add_sign(signs, shows_loss(view), (struct sign){"loss", FLAT_LINE, LOSS});
    add_sign(signs, shows_borders(view), (struct sign){"a step begins", UPRIGHT_LINE, BORDER});
    add_sign(signs, shows_budget(view), (struct sign){"budget", DASHES, ACCENT});
    add_sign(signs, pale, (struct sign){"short tasks, mostly idle", LOW_BOX, blend_colours(PAPER, bar, 0.5)});
    add_sign(signs, shows_shares(view), (struct sign){"height is a share of time", LAYERED_BOX, bar});
    add_sign(signs, shows_queued(view), (struct sign){"queued", DOTTED_LINE, QUEUED});
    add_sign(signs, shows_unfinished(view, RUNS), (struct sign){"runs now", HOLES, bar});
    add_sign(signs, shows_unfinished(view, WAITS),
             (struct sign){"waits for another task", PALE_BOX, blend_colours(bar, PAPER, WAITING)});
}

/* The signs of what the user has selected, searched or marked. */
static void add_signs_of_selection(const struct view *view, struct signs *signs)
{
    const struct view_selection *selection = &view->selection;
    uint32_t dimmed = blend_colours(colour_number(view, 0), PAPER, DIMMED);
    bool picked = is_picked(&selection->task);
    add_sign(signs, selection->critical, (struct sign){"not on the critical path", PALE_BOX, dimmed});
    add_sign(signs, selection->search[0], (struct sign){"other tasks", PALE_BOX, dimmed});
    add_sign(signs, picked, (struct sign){"selected", FRAME, INK});
    add_sign(signs, picked, (struct sign){"what it needs", FLAT_LINE, ACCENT});
    add_sign(signs, picked, (struct sign){"what needs it", FLAT_LINE, INK});
    add_sign(signs, selection->region.kind == STRETCH,
             (struct sign){"selected time", PALE_BOX, blend_colours(PAPER, ACCENT, VEIL)});
    add_sign(signs, selection->region.kind == PLACE, (struct sign){"selected place", UPRIGHT_LINE, ACCENT});
    add_sign(signs, shows_mark(view), (struct sign){"mark", UPRIGHT_DASHES, INK});
}

/* The signs of the mouse.  A window keeps room for them when the legend's lines are counted, so that nothing moves when
 * the mouse comes. */
static void add_signs_of_mouse(const struct view *view, struct signs *signs)
{
    const struct box rows = places_of(view).rows;
    const struct pick after_gap = pick_after_gap(view);
    bool room = !view->still && !view->canvas;
    bool inside = is_inside(&rows, view->mouse.x, view->mouse.y);
    bool hovers = is_hovered(view) || (is_picked(&after_gap) && view->mouse.drag == DRAG_NOTHING);
    add_sign(signs, room || inside, (struct sign){"time at the mouse", UPRIGHT_LINE, SOFT});
    add_sign(signs, shows_blocker(view), (struct sign){"in the way", DASHED_FRAME, ACCENT});
    add_sign(signs, room || hovers, (struct sign){"under the mouse", FRAME, ACCENT});
}

/* The picture alone decides which signs are on it. */
size_t fill_signs(const struct view *view, struct sign all[MOST_SIGNS])
{
    struct signs signs = {.all = all};
    add_signs_of_tasks(view, &signs);
    add_signs_of_selection(view, &signs);
    add_signs_of_mouse(view, &signs);
    return signs.n;
}

static void draw_signs(const struct view *view, struct legend_place *at)
{
    struct sign signs[MOST_SIGNS];
    size_t n = fill_signs(view, signs);
    if (n > 0)
        begin_paragraph(view, at, "signs");
    for (size_t i = 0; i < n; i++)
        draw_item(view, at, signs[i].name, signs[i].shape, signs[i].colour);
}

static int draw_paragraphs(const struct view *view, int y)
{
    int dot = view->scale;
    int titles = small_width(view, view->show_causes ? idle_title : "micro-batch") + 14 * dot;
    bool low = view->layout.low;
    struct legend_place at = {.x = MARGIN * dot, .y = y, .left = MARGIN * dot};
    if (low) {
        at.lines = 1;
        draw_classes(view, &at);
    } else {
        at.left += titles;
    }
    draw_colours(view, &at);
    if (view->show_causes)
        draw_causes(view, &at);
    if (!low)
        draw_classes(view, &at);
    draw_signs(view, &at);
    return at.lines;
}

int count_legend_lines(const struct view *view) { return draw_paragraphs(view, 0); }

void draw_legend(const struct view *view, struct box box)
{
    fill(view, box.x, box.y, box.w, box.h, PANEL);
    fill(view, box.x, box.y, box.w, view->scale, RULE);
    draw_paragraphs(view, box.y);
}
