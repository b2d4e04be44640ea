/* bars.c - the rows of lanes.
 *
 * A bar that is wide enough to be seen is drawn as one.  Others are merged: a column of pixels takes the colour of the
 * longest bar in it.  Its height is the share of its time in which the lane was busy, and a small share also makes it
 * pale.  A short bar that has no other one beside it is drawn as such a column.
 *
 *     |#####| |##|              bars
 *     |#####| |##|   -  _-##-_  a short one, and merged columns (columns.c), each as high as its lane was busy
 *
 * Where steps are narrow, whole steps are taken together instead (shares.c), as high as the lane was busy.  Only bars
 * that are wide enough to be seen are drawn over these.
 */
#include "brush.h"
#include "planning/trace/near.h"

#include <math.h>

/* Lengths in dots. */
enum {
    SEEN_WIDTH = 3,      /* a narrower bar is merged with others */
    NAMED_WIDTH = 14,    /* a narrower bar has no name */
    LOW_ROW = 26,        /* a lower row has small letters */
    STANDING_WIDTH = 120 /* of the bar of a task that runs where time does not go on: room for its name */
};

/* ---- single bars ------------------------------------------------------------------------------------------------- */

struct label { /* a bar's name */
    char text[BAR_NAME];
    enum font font;
    bool fits;           /* false: the bar has no room for the whole text */
    int left, top, wide; /* pixels, as place_label() sets them */
};

static struct label label_in(const struct brush *brush, uint32_t task, int width, enum font font)
{
    struct label label = {.font = font};
    label.fits = fit_name(brush->view, brush->track, task, width, font, label.text);
    return label;
}

static bool label_has_number(const struct brush *brush, uint32_t task, const struct label *label)
{
    return has_number(brush->view, brush->track, task, label->text);
}

/* Letters are small in a low row, and where the name, or its letter and number, fits only so. */
static struct label choose_label(const struct brush *brush, uint32_t task, int width, bool low)
{
    if (low)
        return label_in(brush, task, width, small_font(brush->view));
    const struct label normal = label_in(brush, task, width, normal_font(brush->view));
    if (normal.fits && label_has_number(brush, task, &normal))
        return normal;
    const struct label small = label_in(brush, task, width, small_font(brush->view));
    if (small.fits && (!normal.fits || label_has_number(brush, task, &small)))
        return small;
    return normal;
}

/* Finds the task's name and its place in a bar, where it may be cut if much of it fits.  Returns false if the bar has
 * no room for it. */
static bool place_label(const struct brush *brush, uint32_t task, int x, int width, struct label *label)
{
    enum { CUT_WIDTH = 48 };
    int dot = brush->view->scale;
    bool low = brush->height < LOW_ROW * dot;
    int room = width - 6 * dot;
    if (width < NAMED_WIDTH * dot || (low ? 12 : GLYPH_HEIGHT) * dot > brush->height)
        return false;
    *label = choose_label(brush, task, width, low);
    label->wide = label->fits ? text_width(label->font, label->text) : room;
    label->left = x + (width - label->wide) / 2;
    label->top = brush->y + (brush->height - GLYPH_HEIGHT * dot) / 2;
    return label->fits || (room >= CUT_WIDTH * dot && label->text[0]);
}

/* Writes the name into a bar of that colour.  The name of a bar that is not lit is pale, too. */
static void draw_label(const struct brush *brush, const struct label *label, uint32_t colour, bool lit)
{
    uint32_t ink = lit ? readable_on(colour) : blend_colours(readable_on(colour), colour, 0.6);
    const struct text_place place = {label->left, label->top, label->left + label->wide};
    draw_text_within(brush->view->canvas, &place, label->font, label->text, ink);
}

/* Writes the name again, where lines run over the bar. */
static void draw_label_over_lines(const struct brush *brush, const struct label *label, uint32_t colour, bool lit)
{
    int dot = brush->view->scale;
    fill(brush->view, label->left - dot, MAX(label->top, brush->y), label->wide + 2 * dot,
         MIN(GLYPH_HEIGHT * dot, brush->height), colour);
    draw_label(brush, label, colour, lit);
}

struct extent { /* of a bar */
    int from, width;
    int after; /* the first free column after it */
    int room;  /* for its name: pixels from `from` on */
};

/* A bar from column x on, with a pixel of paper between it and the next one. */
static struct extent extent_of_bar(const struct brush *brush, const struct bar *bar, int x)
{
    int from = MAX(edge_x(brush, bar->start), x), to = edge_x(brush, bar->end);
    int width = to - from;
    if (width > 4)
        width--;
    width = MAX(width, 2 * brush->view->scale);
    /* Whole pixels make bars of one length differ by a pixel in width; their names do not depend on that.  They may
     * reach into the pixel of paper. */
    double pixels = bar_x(brush, bar->end) - bar_x(brush, bar->start);
    int room = (int)fmin(width + 1, fmax(floor(pixels) - 1, 0));
    return (struct extent){.from = from, .width = width, .after = MAX(to, x + 1), .room = room};
}

/* Draws a bar from column x on.  Returns the first free column. */
static int draw_bar(const struct brush *brush, const struct bar *bar, int x)
{
    const struct extent extent = extent_of_bar(brush, bar, x);
    uint32_t colour = colour_of_bar(brush, bar);
    struct label label;
    fill(brush->view, extent.from, brush->y, extent.width, brush->height, colour);
    if (place_label(brush, bar->task, extent.from, extent.room, &label))
        draw_label(brush, &label, colour, is_lit(brush->view, brush->index, bar->record));
    return extent.after;
}

/* Writes the name of such a bar again, over lines.  Returns the first free column. */
static int draw_name(const struct brush *brush, const struct bar *bar, int x)
{
    const struct extent extent = extent_of_bar(brush, bar, x);
    struct label label;
    if (place_label(brush, bar->task, extent.from, extent.room, &label))
        draw_label_over_lines(brush, &label, colour_of_bar(brush, bar), is_lit(brush->view, brush->index, bar->record));
    return extent.after;
}

/* Draws the gap before bar i, a quarter as high as a bar, hatched in the colours of what it waited for.  It is dimmed
 * if the bar is.  x: the first free column. */
static void draw_gap(const struct brush *brush, size_t i, int x)
{
    struct trace_gap gap = gap_before_bar(brush->track->trace, brush->bars, i);
    bool lit = is_lit(brush->view, brush->index, brush->bars->items[i].record);
    int high = MAX(brush->height / 4, brush->view->scale);
    for (int k = 0; k < GAP_PARTS; k++) {
        int left = MAX(edge_x(brush, gap.at[k]), x), right = edge_x(brush, gap.at[k + 1]);
        const struct box box = {left, brush->y + (brush->height - high) / 2, right - left, high};
        hatch_box(brush->view, &box, blend_colours(cause_colour(gap.cause[k]), PAPER, lit ? 0 : 0.7),
                  cause_stripes(gap.cause[k]));
        brush->contents->cause[gap.cause[k]] |= right > left;
    }
}

/* Draws dots before bar i at the lane's foot, from when it was queued and the bar before it had ended up to its start.
 * x: the first free column. */
static void draw_queued(const struct brush *brush, size_t i, int x)
{
    const struct bar *bar = &brush->bars->items[i];
    int dot = brush->view->scale;
    int right = edge_x(brush, bar->start);
    bool low = brush->height < 8 * dot; /* the dots of a folded device would look like its tasks */
    if (low || x + dot >= right)        /* there is no room for a dot, so that the record need not be looked at */
        return;
    uint64_t since = brush->track->trace->records[bar->record].queued;
    if (i > 0)
        since = MAX(since, brush->bars->items[i - 1].end);
    int left = MAX(edge_x(brush, MIN(since, bar->start)), x);
    for (int at = left + dot; at < right; at += QUEUED_APART * dot)
        fill(brush->view, at, brush->y + brush->height - dot, dot, dot, QUEUED);
}

struct running_bar { /* the bar of the task that runs on a lane now, or ran when the trainer stopped */
    uint32_t task;
    int from, to; /* columns */
    bool waits;   /* for another lane */
    uint32_t colour;
};

/* Finds the bar of the task that runs on the lane; false: none is seen.  A task that waits for another lane is pale.
 * Where time does not go on, the bar has the width of its name, not of its time. */
static bool place_running(const struct brush *brush, uint32_t lane, struct running_bar *running)
{
    struct trace_running_task now;
    if (!find_running_task(brush->track->trace, lane, &now))
        return false;
    int least = brush->track->stands ? STANDING_WIDTH * brush->view->scale : 0;
    uint64_t since = now.since;
    if (brush->bars->n > 0)
        since = MAX(since, brush->bars->items[brush->bars->n - 1].end);
    running->task = now.record->task;
    running->waits = now.waits;
    running->from = edge_x(brush, since);
    running->to = MIN(MAX(edge_x(brush, brush->track->now), running->from + least), brush->right);
    running->colour = task_colour(brush->view, brush->track, running->task);
    if (running->waits)
        running->colour = blend_colours(running->colour, PAPER, WAITING);
    return running->from < running->to;
}

/* Perforates the bar like a film. */
static void draw_holes(const struct brush *brush, const struct running_bar *running)
{
    int dot = brush->view->scale;
    int hole = brush->height < 24 * dot ? 2 * dot : 3 * dot; /* a name is between them */
    for (int x = running->from + 2 * dot; x + 4 * dot <= running->to; x += 8 * dot) {
        fill(brush->view, x, brush->y + dot, 4 * dot, hole, PAPER);
        fill(brush->view, x, brush->y + brush->height - dot - hole, 4 * dot, hole, PAPER);
    }
}

static void draw_running(const struct brush *brush, uint32_t lane)
{
    struct running_bar running;
    struct label label;
    if (!place_running(brush, lane, &running))
        return;
    int width = running.to - running.from;
    note_colour(brush, running.task);
    brush->contents->unfinished[running.waits] = true;
    fill(brush->view, running.from, brush->y, width, brush->height, running.colour);
    if (!running.waits)
        draw_holes(brush, &running);
    if (place_label(brush, running.task, running.from, width, &label))
        draw_label(brush, &label, running.colour, true);
}

static void draw_running_name(const struct brush *brush, uint32_t lane)
{
    struct running_bar running;
    struct label label;
    if (place_running(brush, lane, &running) &&
        place_label(brush, running.task, running.from, running.to - running.from, &label))
        draw_label_over_lines(brush, &label, running.colour, true);
}

/* Is the bar wide enough to be seen? */
static bool is_wide(const struct brush *brush, const struct bar *bar)
{
    return bar->end - bar->start >= brush->visible_ns;
}

struct bar_walk { /* a walk over the bars in sight, from left to right */
    size_t i;     /* the next bar */
    int x;        /* the first free column */
};

static struct bar_walk begin_walk(const struct brush *brush)
{
    return (struct bar_walk){.i = first_bar_in(brush->bars, clock_of(brush->track, brush->view->sight.from)),
                             .x = brush->left};
}

static bool goes_on(const struct brush *brush, const struct bar_walk *walk)
{
    return walk->i < brush->bars->n && walk->x < brush->right;
}

/* Passes over the columns before the next bar.  Returns that bar; NULL: it begins right of what is in sight. */
static const struct bar *reach_bar(const struct brush *brush, struct bar_walk *walk)
{
    const struct bar *bar = &brush->bars->items[walk->i];
    double from = bar_x(brush, bar->start);
    if (from >= brush->right)
        return NULL;
    walk->x = (int)fmax(from, walk->x);
    return bar;
}

/* Draws why the next bar did not start earlier, where columns before it are free. */
static void draw_before_bar(const struct brush *brush, const struct bar_walk *walk)
{
    if (bar_x(brush, brush->bars->items[walk->i].start) < walk->x + 1)
        return;
    if (brush->view->show_causes)
        draw_gap(brush, walk->i, walk->x);
    else
        draw_queued(brush, walk->i, walk->x);
}

static void draw_bars(const struct brush *brush)
{
    struct bar_walk walk = begin_walk(brush);
    while (goes_on(brush, &walk)) {
        draw_before_bar(brush, &walk);
        const struct bar *bar = reach_bar(brush, &walk);
        if (!bar)
            break;
        if (is_wide(brush, bar)) {
            walk.x = draw_bar(brush, bar, walk.x);
            walk.i++;
        } else if (stands_alone(brush, walk.i)) {
            walk.x = draw_short_bar(brush, bar, walk.x);
            walk.i++;
        } else {
            walk.x = draw_columns(brush, walk.x, &walk.i);
        }
    }
}

static bool bar_ends_up_to(const void *item, const void *key)
{
    const struct bar *bar = item;
    const uint64_t *clock = key;
    return bar->end <= *clock;
}

/* Passes bars over that are too narrow for a name: up to the first that reaches so far that it may have room. */
static int skip_nameless(const struct brush *brush, int x, size_t *i)
{
    const struct bars *bars = brush->bars;
    uint64_t clock = clock_of(brush->track, axis_at(brush->view, x + NAMED_WIDTH * brush->view->scale));
    *i = lower_bound_near(*i + 1, &clock, bars->items, bars->n, sizeof *bars->items, bar_ends_up_to);
    return x + 1;
}

/* Writes the names of bars again, over lines. */
static void draw_bar_names_again(const struct brush *brush)
{
    struct bar_walk walk = begin_walk(brush);
    while (goes_on(brush, &walk)) {
        const struct bar *bar = reach_bar(brush, &walk);
        if (!bar)
            break;
        if (is_wide(brush, bar)) {
            walk.x = draw_name(brush, bar, walk.x);
            walk.i++;
        } else {
            walk.x = skip_nameless(brush, walk.x, &walk.i);
        }
    }
}

/* Draws the bars that are wide enough to be seen, over spans.  Where such a bar goes on, no other starts for some
 * pixels. */
static void draw_wide_bars(const struct brush *brush)
{
    const struct bar *bars = brush->bars->items;
    size_t drawn = 0; /* bars before this one are drawn, or too narrow */
    for (int x = brush->left; x < brush->right; x++) {
        size_t i = brush->firsts[x + 1 - brush->left];
        if (i <= drawn || i != brush->firsts[x - brush->left])
            continue;
        drawn = i;
        if (is_wide(brush, &bars[i - 1]))
            draw_bar(brush, &bars[i - 1], brush->left);
    }
}

/* The pixels between a row's edge and its bars: a low row keeps its height for names. */
static int air_of(const struct view *view, const struct view_row *row)
{
    if (row->height <= 8 * view->scale)
        return 0;
    return (row->height < 18 * view->scale ? 1 : 2) * view->scale;
}

static struct brush make_brush(const struct view *view, const struct view_row *row)
{
    const struct box rows = places_of(view).rows;
    const struct track *track = view->tracks[row->track];
    int air = air_of(view, row);
    const struct highlight *highlight = &view->selection.highlights[row->track];
    double visible_ns =
        SEEN_WIDTH * view->scale * (view->sight.to - view->sight.from) / rows.w / track->trace->header.pace_scale;
    return (struct brush){.view = view,
                          .track = track,
                          .bars = &track->trace->bars[row->index],
                          .lit = highlight->lanes ? &highlight->lanes[row->index] : NULL,
                          .index = row->track,
                          .left = rows.x,
                          .right = rows.x + rows.w,
                          .y = row->y + air,
                          .height = row->height - 2 * air,
                          .visible_ns =
                              (uint64_t)fmin(ceil(visible_ns), 0x1p62)}; /* at least 1: no length is never seen */
}

void draw_lane(const struct view *view, const struct view_row *row, struct contents *contents)
{
    struct brush brush = make_brush(view, row);
    brush.contents = contents;
    uint32_t firsts[MOST_PIXELS + 1];
    bool spans = is_far_out(view, view->tracks[row->track]) && !brush.lit;
    fill_firsts(&brush, spans, firsts);
    brush.firsts = firsts;
    if (spans) {
        draw_spans(&brush, row->index);
        draw_wide_bars(&brush);
    } else {
        draw_bars(&brush);
    }
    draw_running(&brush, row->index);
}

void draw_lane_names(const struct view *view, const struct view_row *row)
{
    const struct brush brush = make_brush(view, row);
    draw_bar_names_again(&brush);
    draw_running_name(&brush, row->index);
}
