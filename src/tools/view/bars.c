/* bars.c - the rows of lanes.
 *
 * A bar that is wide enough to be seen is drawn as one.  Others are merged: a column of pixels takes the colour of the
 * longest bar in it, and is the lower and the paler the less of its time the lane was busy.  A short bar that has no
 * other one beside it is drawn as such a column.
 *
 *     |#####| |##|              bars
 *     |#####| |##|   -  _-##-_  a short one, and merged columns, each as high as its lane was busy
 *
 * Where steps are narrow, whole steps are taken together instead (shares.c), as high as the lane was busy.  Only bars
 * that are wide enough to be seen are drawn over these.
 *
 * These bars are found by searches, so a picture costs a few steps per column however many records there are.  But a
 * million bars take 32 MB, more than most caches hold, and to wait for memory would take most of the time.  So the bars
 * of all columns of a lane are found first, and asked for, and drawn after that.
 */
#include "draw.h"

#include <math.h>

enum { SEEN_WIDTH = 3, NAMED_WIDTH = 14, SAMPLES = 4 };

struct brush { /* the lane whose bars are drawn, and where they go */
    const struct view *view;
    const struct track *track;
    const struct bars *bars;
    const struct lit_bars *lit; /* those of its bars that are lit; NULL: all are */
    int index;                  /* the track's index */
    int left, right, y, height;
    const uint32_t *firsts; /* [right - left + 1] the first bar that starts at each pixel or after it; or NULL */
    uint64_t seen;          /* nanoseconds of the clock: bars that last as long are wide enough to be seen */
    bool names_only;        /* true: bars are there already, and lines over them, which are not to run through names */
    struct seen *drawn;     /* what has been drawn is added to it; NULL: nothing new is drawn */
};

static double bar_x(const struct brush *brush, uint64_t clock)
{
    return x_of(brush->view, axis_of(brush->track, clock));
}

static uint64_t clock_at(const struct brush *brush, int x)
{
    return brush->view->clocks[brush->index][x - brush->left];
}

/* The pixel of a clock, or the edge of the rows. */
static int edge_x(const struct brush *brush, uint64_t clock)
{
    return (int)floor(fmin(fmax(bar_x(brush, clock) + 0.5, brush->left), brush->right));
}

/* Notes what the legend must have for the bar of a task. */
static void note_colour(const struct brush *brush, uint32_t task)
{
    if (!brush->drawn)
        return;
    brush->drawn->kind[brush->track->kind[task]] = true;
    brush->drawn->plain |= is_plain(brush->view, brush->track, task);
}

static uint32_t colour_of_bar(const struct brush *brush, const struct bar *bar)
{
    uint32_t colour = task_colour(brush->view, brush->track, bar->task);
    note_colour(brush, bar->task);
    return is_lit(brush->view, brush->index, bar->record) ? colour : blend(colour, PAPER, 0.85);
}

/* ---- merged columns -------------------------------------------------------------------------------------------- */

/* The longest of bars [i, end), or when there are many the longest of some of them.  chosen: NULL, or indices, and [i,
 * end) are places among these. */
static const struct bar *longest_bar(const struct brush *brush, const uint32_t *chosen, size_t i, size_t end)
{
    const struct bar *all = brush->bars->bars, *longest = &all[chosen ? chosen[i] : i];
    const size_t stride = ceil_div(end - i, SAMPLES);
    for (; i < end; i += stride) {
        const struct bar *bar = &all[chosen ? chosen[i] : i];
        if (bar->end - bar->start > longest->end - longest->start)
            longest = bar;
    }
    return longest;
}

/* The bar of [i, end) whose colour the column has.  Any lit bar comes before one that is not lit. */
static const struct bar *bar_of_column(const struct brush *brush, size_t i, size_t end)
{
    const struct lit_bars *lit = brush->lit;
    size_t first = 0, next = 0;
    if (lit) {
        FIND_FIRST(first, lit->n, lit->bars[first] < i);
        next = first;
        FIND_NEXT(next, lit->n, lit->bars[next] < end);
    }
    if (first < next)
        return longest_bar(brush, lit->bars, first, next);
    return longest_bar(brush, NULL, i, end);
}

/* Merged columns side by side, from pixel `left` on.  Each is as high as the lane at first, but for `cut` pixels at its
 * upper end and as many at its lower end. */
struct merged_columns {
    int left, n;
    int most_cut;
    uint16_t cut[MOST_PIXELS];
};

/* Two fifths of its height are left of a lane that is hardly busy: so its tasks are seen, also between hatched gaps. */
static int most_cut(const struct brush *brush) { return brush->height * 3 / 10; }

/* What counts as the busy share of a column with this bar: while others are dimmed, a lit one is drawn in full. */
static double shown_share(const struct brush *brush, const struct bar *bar, double busy)
{
    const bool stands_out = brush->lit && is_lit(brush->view, brush->index, bar->record);
    return stands_out ? 1 : busy;
}

/* Draws the middle line of the next column, `width` pixels wide from pixel x on, of bar i and those after it that start
 * in it.  Returns the first bar that reaches beyond it. */
static size_t draw_column(const struct brush *brush, struct merged_columns *columns, int width, size_t i, int x)
{
    const struct bar *bars = brush->bars->bars;
    const uint64_t from = clock_at(brush, x), to = clock_at(brush, x + width);
    size_t first = i;
    double busy = 1;
    if (i > 0 && bars[i - 1].end > from) /* the one before reaches into the column */
        first = i - 1;
    const size_t end = MAX(brush->firsts[x + width - brush->left], i + 1);
    const uint64_t until = MIN(to, brush->track->last); /* a wide column may go beyond the trace's end */
    if (until > from)
        busy = (double)busy_from_to(&bars[first], &bars[end - 1], from, until) / (double)(until - from);
    const struct bar *shown = bar_of_column(brush, i, end);
    const uint32_t colour = colour_of_bar(brush, shown);
    busy = shown_share(brush, shown, busy);
    fill(brush->view, columns->left + columns->n, brush->y + columns->most_cut, width, 1,
         blend(PAPER, colour, 0.5 + 0.5 * busy));
    for (int k = 0; k < width; k++)
        columns->cut[columns->n + k] = (uint16_t)((1 - busy) * columns->most_cut);
    columns->n += width;
    brush->drawn->pale |= busy < 0.5;
    return bars[end - 1].end > to ? end - 1 : end;
}

/* Is bar i merged into a column that ends at clock `to`? */
static bool is_merged(const struct brush *brush, size_t i, uint64_t to)
{
    const struct bar *bar = &brush->bars->bars[i];
    return i < brush->bars->n && bar->start < to && bar->end - bar->start < brush->seen;
}

/* Copies the middle line of the columns up and down, line by line: memory is written in its order. */
static void spread_columns(const struct brush *brush, const struct merged_columns *columns)
{
    struct canvas *canvas = brush->view->canvas;
    const int middle = brush->y + columns->most_cut, below = brush->y + brush->height - 1;
    const uint32_t *line = canvas->pixels + (int64_t)middle * canvas->width + columns->left;
    copy_down(canvas, columns->left, middle, columns->n, brush->height - 2 * columns->most_cut);
    for (int row = 0; row < columns->most_cut; row++) {
        uint32_t *upper = canvas->pixels + (int64_t)(brush->y + row) * canvas->width + columns->left;
        uint32_t *lower = canvas->pixels + (int64_t)(below - row) * canvas->width + columns->left;
        for (int k = 0; k < columns->n; k++) {
            upper[k] = columns->cut[k] <= row ? line[k] : upper[k];
            lower[k] = columns->cut[k] <= row ? line[k] : lower[k];
        }
    }
}

/* Draws columns from x on, up to a bar that is wide enough to be seen or to a column without a bar, and returns where
 * that is. */
static int draw_columns(const struct brush *brush, int x, size_t *i)
{
    struct merged_columns columns;
    int width = 1;
    columns.left = x;
    columns.n = 0;
    columns.most_cut = most_cut(brush);
    do {
        size_t before = *i;
        *i = draw_column(brush, &columns, width, *i, x);
        x += width;
        width = MIN(column_width(brush->view, (*i - before) / (size_t)width), brush->right - x);
    } while (x < brush->right && is_merged(brush, *i, clock_at(brush, x + width)));
    spread_columns(brush, &columns);
    return x;
}

/* ---- shares of time -------------------------------------------------------------------------------------------- */

/* The first bar of the lane that starts at that clock or later.  x: the clock's pixel. */
static size_t bar_from(const struct brush *brush, uint64_t clock, int x)
{
    if (x <= brush->left || x >= brush->right)
        return first_bar_from(brush->bars, clock);
    return next_bar_from(brush->bars, brush->firsts[x - 1 - brush->left], clock);
}

/* Draws bars [i, end) of a span as a box from pixel x to `right`, at the lane's foot.  It is as high as the lane was
 * busy, a dot at least, and colours share its height as they share the time. */
static void draw_span(const struct brush *brush, uint32_t lane, size_t i, size_t end, int x, int right, double busy)
{
    uint64_t ns[GROUPS], all = 0, before = 0;
    const int high = MAX((int)(busy * brush->height + 0.5), MIN(brush->view->scale, brush->height));
    const int top = brush->y + brush->height - high;
    sum_shares(brush->view, brush->index, lane, i, end, ns);
    for (size_t k = 0; k < GROUPS; k++)
        all += ns[k];
    for (size_t k = 0; k < GROUPS && all > 0; k++) {
        const int from = (int)(high * (double)before / (double)all + 0.5);
        before += ns[k];
        const int to = (int)(high * (double)before / (double)all + 0.5);
        if (to == from)
            continue;
        fill(brush->view, x, top + from, right - x, to - from, group_colour(brush->view, brush->track, k));
        if (brush->view->colour == BY_KIND)
            brush->drawn->kind[k] = true;
        else
            brush->drawn->plain |= k == GROUPS - 1;
    }
}

static void draw_spans(const struct brush *brush, uint32_t lane)
{
    const struct bar *bars = brush->bars->bars;
    const struct shares *shares = &brush->view->shares[brush->index];
    int x = edge_x(brush, shares->edges[0]);
    size_t i = bar_from(brush, shares->edges[0], x);
    for (size_t k = 1; k < shares->n_edges; k++) {
        const uint64_t from = shares->edges[k - 1], to = shares->edges[k];
        const int right = edge_x(brush, to);
        const size_t end = bar_from(brush, to, right);
        const size_t first = i > 0 && bars[i - 1].end > from ? i - 1 : i; /* one may reach into the span */
        if (end > first && right > x)
            draw_span(brush, lane, first, end, x, right,
                      (double)busy_from_to(&bars[first], &bars[end - 1], from, to) / (double)(to - from));
        x = right;
        i = end;
    }
}

/* ---- single bars ----------------------------------------------------------------------------------------------- */

/* Writes a task's name, in small letters if the row is low or the name, or its letter and number, fits only so.  It may
 * be cut where much of it fits.  The name of a bar that is not lit is pale, too. */
static void draw_bar_label(const struct brush *brush, uint32_t task, int x, int width, uint32_t colour, bool lit)
{
    enum { CUT_WIDTH = 48 };
    char text[128];
    const int dot = brush->view->scale;
    const bool small = brush->height < 26 * dot;
    enum font font = small ? small_font(brush->view) : normal_font(brush->view);
    const int room = width - 6 * dot;
    if (width < NAMED_WIDTH * dot || (small ? 12 : GLYPH_HEIGHT) * dot > brush->height)
        return;
    bool fits = fit_name(brush->view, brush->track, task, width, font, text);
    if (!small && !(fits && has_number(brush->view, brush->track, task, text))) {
        char smaller[128];
        const bool fits_small = fit_name(brush->view, brush->track, task, width, small_font(brush->view), smaller);
        if (fits_small && (!fits || has_number(brush->view, brush->track, task, smaller))) {
            font = small_font(brush->view);
            fits = true;
            snprintf(text, sizeof text, "%s", smaller);
        }
    }
    if (!fits && (room < CUT_WIDTH * dot || !text[0]))
        return;
    const int wide = fits ? text_width(font, text) : room;
    int left = x + (width - wide) / 2, top = brush->y + (brush->height - GLYPH_HEIGHT * dot) / 2;
    if (brush->names_only)
        fill(brush->view, left - dot, MAX(top, brush->y), wide + 2 * dot, MIN(GLYPH_HEIGHT * dot, brush->height),
             colour);
    uint32_t ink = lit ? readable_on(colour) : blend(readable_on(colour), colour, 0.6);
    draw_text_within(brush->view->canvas, left, top, font, text, ink, left + wide);
}

/* Is bar i too narrow to be seen, but has nothing beside it with which it could be merged? */
static bool stands_alone(const struct brush *brush, size_t i)
{
    const struct bar *bar = &brush->bars->bars[i];
    const bool free_before =
        i == 0 || bar[-1].end - bar[-1].start >= brush->seen || bar->start >= bar[-1].end + brush->seen;
    const bool free_after = i + 1 == brush->bars->n || bar[1].start >= bar->start + brush->seen;
    return free_before && free_after;
}

/* Draws a short bar that stands alone from column x on, two dots wide.  Like merged columns it is the lower and the
 * paler the less of its columns' time the lane was busy.  Returns the first free column. */
static int draw_short_bar(const struct brush *brush, const struct bar *bar, int x)
{
    const int width = 2 * brush->view->scale;
    const double pixels = bar_x(brush, bar->end) - bar_x(brush, bar->start);
    const double busy = shown_share(brush, bar, fmin(pixels / width, 1));
    const int cut = (int)((1 - busy) * most_cut(brush));
    fill(brush->view, x, brush->y + cut, width, brush->height - 2 * cut,
         blend(PAPER, colour_of_bar(brush, bar), 0.5 + 0.5 * busy));
    brush->drawn->pale |= busy < 0.5;
    return MAX(edge_x(brush, bar->end), x + width);
}

/* Draws a bar from column x on, with a pixel of paper between it and the next one.  Returns the first free column. */
static int draw_bar(const struct brush *brush, const struct bar *bar, int x)
{
    int from = MAX(edge_x(brush, bar->start), x);
    int to = edge_x(brush, bar->end);
    int width = to - from;
    uint32_t colour = colour_of_bar(brush, bar);
    if (width > 4)
        width--;
    width = MAX(width, 2 * brush->view->scale);
    if (!brush->names_only)
        fill(brush->view, from, brush->y, width, brush->height, colour);
    /* Whole pixels make bars of one length differ by a pixel in width; their names do not depend on that.  They may
     * reach into the pixel of paper. */
    const double pixels = bar_x(brush, bar->end) - bar_x(brush, bar->start);
    const int room = (int)fmin(width + 1, fmax(floor(pixels) - 1, 0));
    draw_bar_label(brush, bar->task, from, room, colour, is_lit(brush->view, brush->index, bar->record));
    return MAX(to, x + 1);
}

/* Draws the gap before bar i, a quarter as high as a bar, hatched in the colours of what it waited for.  It is dimmed
 * if the bar is.  x: the first free column. */
static void draw_gap(const struct brush *brush, size_t i, int x)
{
    struct trace_gap gap = trace_gap_of_bar(brush->track->trace, brush->bars, i);
    const bool lit = is_lit(brush->view, brush->index, brush->bars->bars[i].record);
    const int high = MAX(brush->height / 4, brush->view->scale);
    for (int k = 0; k < GAP_PARTS; k++) {
        int left = MAX(edge_x(brush, gap.at[k]), x), right = edge_x(brush, gap.at[k + 1]);
        hatch(brush->view, left, brush->y + (brush->height - high) / 2, right - left, high,
              blend(cause_colour(gap.cause[k]), PAPER, lit ? 0 : 0.7), cause_stripes(gap.cause[k]));
        brush->drawn->cause[gap.cause[k]] |= right > left;
    }
}

/* Draws dots before bar i at the lane's foot, from when it was queued and the bar before it had ended up to its start.
 * x: the first free column. */
static void draw_queued(const struct brush *brush, size_t i, int x)
{
    const struct bar *bar = &brush->bars->bars[i];
    const int dot = brush->view->scale;
    const int right = edge_x(brush, bar->start);
    const bool low = brush->height < 8 * dot; /* the dots of a folded device would look like its tasks */
    if (low || x + dot >= right)              /* there is no room for a dot, so that the record need not be looked at */
        return;
    uint64_t since = brush->track->trace->records[bar->record].queued;
    if (i > 0)
        since = MAX(since, bar[-1].end);
    const int left = MAX(edge_x(brush, MIN(since, bar->start)), x);
    for (int at = left + dot; at < right; at += QUEUED_APART * dot)
        fill(brush->view, at, brush->y + brush->height - dot, dot, dot, QUEUED);
}

/* The task that runs on the lane now, or ran when the trainer stopped, is perforated like a film.  A task that waits
 * for another lane is pale.  Where time does not go on, it has the width of its name, not of its time. */
static void draw_running(const struct brush *brush, uint32_t lane)
{
    struct trace_running now;
    if (!trace_running(brush->track->trace, lane, &now))
        return;
    const int dot = brush->view->scale;
    const int hole = brush->height < 24 * dot ? 2 * dot : 3 * dot; /* a name is between them */
    const int least = brush->track->stands ? 120 * dot : 0;
    uint64_t since = now.since;
    if (brush->bars->n > 0)
        since = MAX(since, brush->bars->bars[brush->bars->n - 1].end);
    int from = edge_x(brush, since);
    int to = MIN(MAX(edge_x(brush, brush->track->now), from + least), brush->right);
    uint32_t colour = task_colour(brush->view, brush->track, now.record->task);
    if (to <= from)
        return;
    note_colour(brush, now.record->task);
    if (brush->drawn)
        brush->drawn->unfinished[now.waits] = true;
    if (now.waits)
        colour = blend(colour, PAPER, 0.8);
    if (!brush->names_only) {
        fill(brush->view, from, brush->y, to - from, brush->height, colour);
        for (int x = from + 2 * dot; x + 4 * dot <= to && !now.waits; x += 8 * dot) {
            fill(brush->view, x, brush->y + dot, 4 * dot, hole, PAPER);
            fill(brush->view, x, brush->y + brush->height - dot - hole, 4 * dot, hole, PAPER);
        }
    }
    draw_bar_label(brush, now.record->task, from, to - from, colour, true);
}

/* Passes bars over that are too narrow for a name: up to the first that reaches so far that it may have room. */
static int skip_nameless(const struct brush *brush, int x, size_t *i)
{
    const struct bar *bars = brush->bars->bars;
    const uint64_t clock = clock_of(brush->track, axis_at(brush->view, x + NAMED_WIDTH * brush->view->scale));
    size_t next = *i + 1;
    FIND_NEXT(next, brush->bars->n, bars[next].end <= clock);
    *i = next;
    return x + 1;
}

static void draw_bars(const struct brush *brush)
{
    size_t i = first_bar_in(brush->bars, clock_of(brush->track, brush->view->sight.from));
    int x = brush->left;
    while (i < brush->bars->n && x < brush->right) {
        const struct bar *bar = &brush->bars->bars[i];
        double from = bar_x(brush, bar->start);
        if (from >= x + 1 && !brush->names_only) {
            if (brush->view->show_causes)
                draw_gap(brush, i, x);
            else
                draw_queued(brush, i, x);
        }
        if (from >= brush->right)
            break;
        x = (int)fmax(from, x);
        if (bar->end - bar->start >= brush->seen) {
            x = draw_bar(brush, bar, x);
            i++;
        } else if (brush->names_only) {
            x = skip_nameless(brush, x, &i);
        } else if (stands_alone(brush, i)) {
            x = draw_short_bar(brush, bar, x);
            i++;
        } else {
            x = draw_columns(brush, x, &i);
        }
    }
}

/* Draws the bars that are wide enough to be seen, over spans.  Where such a bar goes on, no other starts for some
 * pixels. */
static void draw_wide_bars(const struct brush *brush)
{
    const struct bar *bars = brush->bars->bars;
    size_t drawn = 0; /* bars before this one are drawn, or too narrow */
    for (int x = brush->left; x < brush->right; x++) {
        const size_t i = brush->firsts[x + 1 - brush->left];
        if (i <= drawn || i != brush->firsts[x - brush->left])
            continue;
        drawn = i;
        if (bars[i - 1].end - bars[i - 1].start >= brush->seen)
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
    const int air = air_of(view, row);
    const struct lit *lit = &view->selection.lit[row->track];
    const double seen =
        SEEN_WIDTH * view->scale * (view->sight.to - view->sight.from) / rows.w / track->trace->header.pace_scale;
    return (struct brush){.view = view,
                          .track = track,
                          .bars = &track->trace->bars[row->index],
                          .lit = lit->lanes ? &lit->lanes[row->index] : NULL,
                          .index = row->track,
                          .left = rows.x,
                          .right = rows.x + rows.w,
                          .y = row->y + air,
                          .height = row->height - 2 * air,
                          .seen = (uint64_t)fmin(ceil(seen), 0x1p62)}; /* at least 1: no length is never seen */
}

/* Finds the first bar that starts at each pixel or after it.  Unless spans are drawn, it asks for those that
 * longest_bar() will look at if a pixel is a column. */
static void find_firsts(const struct brush *brush, bool spans, uint32_t firsts[MOST_PIXELS + 1])
{
    size_t i = first_bar_from(brush->bars, clock_at(brush, brush->left));
    for (int x = brush->left; x <= brush->right; x++) {
        const size_t before = i;
        i = next_bar_from(brush->bars, i, clock_at(brush, x));
        const size_t stride = ceil_div(i - before, SAMPLES);
        for (size_t sample = before; sample < i && !spans; sample += stride)
            fetch_ahead(&brush->bars->bars[sample]);
        firsts[x - brush->left] = (uint32_t)i;
    }
}

void draw_lane(const struct view *view, const struct view_row *row, struct seen *seen)
{
    struct brush brush = make_brush(view, row);
    brush.drawn = seen;
    uint32_t firsts[MOST_PIXELS + 1];
    const bool spans = is_far_out(view, view->tracks[row->track]) && !brush.lit;
    find_firsts(&brush, spans, firsts);
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
    struct brush brush = make_brush(view, row);
    brush.names_only = true;
    draw_bars(&brush);
    draw_running(&brush, row->index);
}
