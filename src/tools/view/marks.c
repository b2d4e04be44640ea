/* marks.c - what is drawn over the rows: outlines, edges to producers and consumers, what is selected. */
#include "draw.h"
#include "planning/console/numbers.h"

#include <math.h>

static int mark_x(const struct view *view, const struct track *track, uint64_t clock)
{
    return pixel_of(view, axis_of(track, clock));
}

static const struct view_row *row_of_record(const struct view *view, int track, size_t record)
{
    const struct trace *trace = view->tracks[track]->trace;
    return row_of_lane(view, track, trace->tasks[trace->records[record].task].lane);
}

/* Outlines the time from one clock to another on the lane of a task. */
static void outline_time(const struct view *view, const struct pick *pick, uint64_t start, uint64_t end,
                         uint32_t colour)
{
    const struct track *track = view->tracks[pick->track];
    const struct view_row *row = row_of_record(view, pick->track, (size_t)pick->record);
    int dot = view->scale;
    if (!row)
        return;
    int from = mark_x(view, track, start) - 2 * dot;
    int to = mark_x(view, track, end) + 2 * dot;
    int wide = MAX(to - from, 5 * dot);
    int y = row->y, high = row->height;
    fill(view, from, y, wide, 2 * dot, colour);
    fill(view, from, y + high - 2 * dot, wide, 2 * dot, colour);
    fill(view, from, y, 2 * dot, high, colour);
    fill(view, from + wide - 2 * dot, y, 2 * dot, high, colour);
}

void draw_outline(const struct view *view, const struct pick *pick, uint32_t colour)
{
    outline_time(view, pick, pick->copy.start, pick->copy.end, colour);
}

void outline_gap(const struct view *view, const struct pick *after, uint32_t colour)
{
    const struct trace_gap gap = gap_before(view, after);
    outline_time(view, after, gap.at[0], gap.at[GAP_PARTS], colour);
}

/* ---- edges ------------------------------------------------------------------------------------------------------- */

/* Draws the head of an edge's arrow, whose point is at (x, y). */
static void draw_head(const struct view *view, int x, int y, uint32_t colour)
{
    for (int i = 0; i <= 5 * view->scale; i++)
        fill(view, x - i, y - i / 2, 1, i + 1, colour);
}

/* Draws an edge within a lane, from x0 to x1: along its row's upper edge if it arrives at the selected task, else along
 * the lower one.  A mark where it begins would cover the head of a short one. */
static void draw_edge_in_lane(const struct view *view, const struct view_row *row, int x0, int x1, bool arrives,
                              uint32_t colour)
{
    int dot = view->scale;
    int y = arrives ? row->y : row->y + row->height - dot;
    fill(view, MIN(x0, x1), y, abs(x1 - x0), dot, colour);
    if (x1 - x0 >= 12 * dot)
        fill(view, x0, y - 2 * dot, dot, 5 * dot, colour); /* where it begins */
    draw_head(view, x1, y, colour);
}

/* Draws an edge from the producer's end to the consumer's start.  Between two lanes it runs from one row to the other:
 * so it hides no name in either.  An edge that goes on beyond the rows' right end has its head there.  arrives: at the
 * selected task. */
static void draw_edge(const struct view *view, int track_index, const struct drawn_edge *drawn, bool arrives)
{
    uint32_t colour = arrives ? ACCENT : INK;
    const struct track *track = view->tracks[track_index];
    const struct trace_record *records = track->trace->records;
    const struct view_row *from = row_of_record(view, track_index, drawn->producer);
    const struct view_row *to = row_of_record(view, track_index, drawn->consumer);
    const struct box rows = places_of(view).rows;
    int dot = view->scale, edge = rows.x + rows.w;
    if (!from || !to)
        return;
    int x0 = mark_x(view, track, records[drawn->producer].end);
    int x1 = mark_x(view, track, records[drawn->consumer].start);
    int end = x0 < edge ? MIN(x1, edge) : x1;
    if (from == to) {
        draw_edge_in_lane(view, from, x0, end, arrives, colour);
        return;
    }
    bool down = from->y < to->y;
    int y0 = down ? from->y + from->height - dot : from->y;
    int y1 = down ? to->y : to->y + to->height - dot;
    if (end < x1)
        y1 = y0 + (int)((int64_t)(y1 - y0) * (end - x0) / (x1 - x0));
    for (int i = 0; i < dot; i++)
        draw_line(view->canvas, x0, y0 + i, end, y1 + i, colour);
    draw_head(view, end, y1, colour);
}

void draw_edges(const struct view *view)
{
    const struct drawn_edges edges = edges_of_pick(view, &view->selection.task);
    for (size_t i = 0; i < edges.n; i++) {
        bool arrives = (int64_t)edges.items[i].consumer == view->selection.task.record;
        draw_edge(view, view->selection.task.track, &edges.items[i], arrives);
    }
    free(edges.items);
}

/* ---- times: a stretch or a place, marks, the mouse --------------------------------------------------------------- */

static bool is_time_in_sight(const struct view *view, double at)
{
    return at >= view->sight.from && at <= view->sight.to;
}

void draw_region(const struct view *view)
{
    const struct box box = places_of(view).rows;
    for (int i = 0; i < 2; i++)
        fill(view, x_in_rows(view, view->selection.region.at[i]), box.y, view->scale, box.h, ACCENT);
}

void shade_region(const struct view *view)
{
    const struct box rows = places_of(view).rows;
    const double *at = view->selection.region.at;
    const int x[] = {x_in_rows(view, at[0]), x_in_rows(view, at[1])};
    shade_paper(view, &(struct box){MIN(x[0], x[1]), rows.y, abs(x[1] - x[0]), rows.h}, ACCENT, VEIL);
}

bool shows_mark(const struct view *view)
{
    for (int i = 0; i < view->selection.n_marks; i++)
        if (is_time_in_sight(view, view->selection.mark[i]))
            return true;
    return false;
}

void draw_marks(const struct view *view)
{
    const struct box rows = places_of(view).rows;
    int dot = view->scale;
    for (int i = 0; i < view->selection.n_marks; i++) {
        if (!is_time_in_sight(view, view->selection.mark[i]))
            continue;
        int x = (int)x_of(view, view->selection.mark[i]);
        for (int y = rows.y; y < rows.y + rows.h; y += 6 * dot)
            fill(view, x, y, dot, 4 * dot, INK);
    }
}

void draw_cursor(const struct view *view)
{
    const struct box rows = places_of(view).rows;
    if (is_inside(&rows, view->mouse.x, view->mouse.y))
        fill(view, view->mouse.x, rows.y, view->scale, rows.h, SOFT);
}

/* The side of its line on which a time stands. */
enum side { LEFT_OF_LINE, AT_LINE, RIGHT_OF_LINE };

bool is_covered(const struct times *times, int x, int wide)
{
    bool any = false;
    for (size_t i = 0; i < times->n; i++)
        any |= x < times->items[i].x + times->items[i].wide && x + wide > times->items[i].x;
    return any;
}

/* Adds the text of a time, if that is in sight, and no other one is there. */
static void add_time(const struct view *view, struct times *times, double at, enum side side, uint32_t colour)
{
    const struct box ruler = places_of(view).ruler;
    int dot = view->scale;
    struct shown_time *time = &times->items[times->n];
    if (!is_time_in_sight(view, at))
        return;
    format_axis(view, time->text, at, (view->sight.to - view->sight.from) / 1000);
    time->wide = small_width(view, time->text) + 8 * dot;
    time->colour = colour;
    int begin = (int)x_of(view, at);
    if (side == LEFT_OF_LINE)
        begin -= time->wide;
    else if (side == AT_LINE)
        begin -= time->wide / 2;
    time->x = MAX(MIN(begin, ruler.x + ruler.w - time->wide), ruler.x);
    if (!is_covered(times, time->x, time->wide))
        times->n++;
}

/* Two times stand on the outer sides of their lines, so that neither covers the other. */
static void add_two_times(const struct view *view, struct times *times, const double at[2], uint32_t colour)
{
    add_time(view, times, fmin(at[0], at[1]), LEFT_OF_LINE, colour);
    add_time(view, times, fmax(at[0], at[1]), RIGHT_OF_LINE, colour);
}

struct times find_times(const struct view *view)
{
    const struct box rows = places_of(view).rows;
    const struct view_selection *selection = &view->selection;
    struct times times = {.n = 0};
    if (selection->region.kind == STRETCH)
        add_two_times(view, &times, selection->region.at, ACCENT);
    if (selection->n_marks == 1)
        add_time(view, &times, selection->mark[0], AT_LINE, INK);
    if (selection->n_marks == MOST_MARKS)
        add_two_times(view, &times, selection->mark, INK);
    if (is_inside(&rows, view->mouse.x, view->mouse.y))
        add_time(view, &times, axis_at(view, view->mouse.x), AT_LINE, SOFT);
    return times;
}

bool is_between_marks(const struct view *view, int x, int wide)
{
    const double *mark = view->selection.mark;
    if (view->selection.n_marks < MOST_MARKS)
        return false;
    return x < x_of(view, fmax(mark[0], mark[1])) && x + wide > x_of(view, fmin(mark[0], mark[1]));
}

/* Draws a line from mark to mark, above the times, with the time between them. */
static void draw_between(const struct view *view, const double mark[2])
{
    const struct box ruler = places_of(view).ruler;
    int dot = view->scale, y = ruler.y + dot;
    double from = fmax(fmin(mark[0], mark[1]), view->sight.from);
    double to = fmin(fmax(mark[0], mark[1]), view->sight.to);
    char text[NUMBER_TEXT];
    if (from > to)
        return;
    format_ns(text, fabs(mark[1] - mark[0]));
    int left = (int)x_of(view, from);
    int right = (int)x_of(view, to);
    int wide = small_width(view, text) + 8 * dot;
    int at = MAX(MIN((left + right - wide) / 2, ruler.x + ruler.w - wide), ruler.x);
    fill(view, left, y + 8 * dot, right - left, dot, INK);
    fill(view, at, y, wide, 16 * dot, INK);
    put_small(view, at + 4 * dot, y, at + wide, PAPER, "%s", text);
}

void draw_times(const struct view *view)
{
    const struct box ruler = places_of(view).ruler;
    int dot = view->scale, y = ruler.y + ruler.h - 18 * dot;
    const struct times times = find_times(view);
    for (size_t i = 0; i < times.n; i++) {
        const struct shown_time *time = &times.items[i];
        fill(view, time->x, y, time->wide, 17 * dot, time->colour);
        put_small(view, time->x + 4 * dot, y + dot, time->x + time->wide, PAPER, "%s", time->text);
    }
    if (view->selection.n_marks == MOST_MARKS)
        draw_between(view, view->selection.mark);
}

/* ---- moving a task ----------------------------------------------------------------------------------------------- */

/* The row of the task that is in the way of the dragged one; NULL: none is, or its lane has no row. */
static const struct view_row *row_of_blocker(const struct view *view)
{
    const struct gesture *gesture = &view->mouse.gesture;
    const struct pick *blocker = &gesture->blocker;
    if (!is_picked(blocker) || !view->message[0])
        return NULL;
    return row_of_lane(view, gesture->track, view->tracks[gesture->track]->trace->tasks[blocker->copy.task].lane);
}

bool shows_blocker(const struct view *view) { return row_of_blocker(view) != NULL; }

struct text_size {
    int lines, width; /* width: of the widest line, in pixels */
};

static struct text_size measure_lines(const struct view *view, const char *text)
{
    struct text_size size = {0, 0};
    char *lines = copy_string(text), *line;
    char *rest = lines;
    while ((line = strsep(&rest, "\n"))) {
        size.width = MAX(size.width, width_of(view, line));
        size.lines++;
    }
    free(lines);
    return size;
}

void draw_blocker(const struct view *view)
{
    enum { COLUMNS = 60, NOTE_LINE = 17 };
    const struct gesture *gesture = &view->mouse.gesture;
    const struct track *track = view->tracks[gesture->track];
    const struct box rows = places_of(view).rows;
    const struct view_row *row = row_of_blocker(view);
    int dot = view->scale;
    if (!row)
        return;
    char *text = fold_text(view->message, COLUMNS);
    const struct text_size size = measure_lines(view, text);
    int wide = size.width + 12 * dot;
    int from = x_in_rows(view, axis_of(track, gesture->blocker.copy.start)) - 2 * dot;
    int to = MAX(x_in_rows(view, axis_of(track, gesture->blocker.copy.end)) + 2 * dot, from + 5 * dot);
    int x = MAX(MIN(from, rows.x + rows.w - wide), rows.x);
    int high = (size.lines * NOTE_LINE + 4) * dot, below = row->y + row->height;
    int y = below + high <= rows.y + rows.h ? below : row->y - high;
    draw_dashed_frame(view, &(struct box){from, row->y, to - from, row->height}, 3, ACCENT);
    fill(view, x, y, wide, high, ACCENT);
    const struct line_style style = {.right = view->width, .high = NOTE_LINE * dot, .first = PAPER, .rest = PAPER};
    put_lines(view, x + 6 * dot, y + 2 * dot, &style, text);
    free(text);
}
