/* frame.c - the picture around its rows' contents: state, names of rows, legend, details, help. */
#include "act.h"
#include "draw.h"

#include <math.h>

/* ---- the state line ---------------------------------------------------------------------------------------------- */

/* A chip is a word on a ground of its own colour; `right`: where it ends.  Returns where the chip before it may end. */
static int draw_chip(const struct view *view, int right, int y, const char *text, uint32_t colour)
{
    int dot = view->scale, left = right - width_of(view, text) - 16 * dot;
    fill(view, left, y, right - left, 20 * dot, colour);
    put_text(view, left + 8 * dot, y + 2 * dot, right, readable_on(colour), "%s", text);
    return left - 6 * dot;
}

enum { GOOD = 0xff009e73, SLOW = 0xffe69f00, BAD = 0xffd55e00, CALM = 0xff8b95a3, PLAIN = 0xff0072b2 };
const char *const life_name[] = {[LIFE_CLOSED] = "ended",
                                 [LIFE_RUNS] = "live",
                                 [LIFE_PAUSED] = "paused",
                                 [LIFE_STOPPED] = "stopped",
                                 [LIFE_GONE] = "trainer gone"};
static const uint32_t life_colour[] = {
    [LIFE_CLOSED] = CALM, [LIFE_RUNS] = GOOD, [LIFE_PAUSED] = SLOW, [LIFE_STOPPED] = BAD, [LIFE_GONE] = BAD};

/* Draws chips from the right: what the trainer does, the kind of trace.  Returns the right end of what is left free. */
static int draw_state(const struct view *view, int track_index, int right, int y)
{
    const struct track *track = view->tracks[track_index];
    const struct trace_header *header = &track->trace->header;
    enum trace_life life = trainer_life(track->follower);
    double pace = header->pace_scale;
    const char *name = name_of_track(view, track_index), *kind = name_of_trace_kind(track->trace);
    char text[48];
    if (track->problem)
        right = draw_chip(view, right, y, "file damaged", BAD);
    else if (header->kind != TRACE_SIMULATED)
        right = draw_chip(view, right, y, life_name[life], life_colour[life]);
    if (header->kind == TRACE_PACED && pace != 1)
        snprintf(text, sizeof text, "%s%s, %.4gx %s", name, kind, fmax(pace, 1 / pace), pace < 1 ? "slower" : "faster");
    else
        snprintf(text, sizeof text, "%s%s", name, kind);
    return draw_chip(view, right, y, text, PLAIN);
}

/* ---- labels of rows ---------------------------------------------------------------------------------------------- */

static uint32_t paper_of(const struct view_row *row)
{
    if (has_content(row))
        return PAPER;
    return row->track == 0 ? PANEL : RULE;
}

/* The lane's name without that of its device: "swap out" of "0:0 swap out" in the group of "0:0". */
static const char *short_name(const struct track *track, uint32_t lane)
{
    const char *name = track->purpose[lane];
    const char *group = track->trace->devices[track->trace->lanes[lane].device_index].id;
    size_t n = strlen(group);
    return strncmp(name, group, n) == 0 && name[n] == ' ' ? name + n + 1 : name;
}

enum { LEAST_NAMED = 9 }; /* dots: a lower row has no room for its name */

/* Is this a row of a lane of the device? */
static bool is_lane_of(const struct view *view, const struct view_row *row, const struct view_row *device)
{
    return row->kind == ROW_LANE && row->track == device->track &&
           view->tracks[row->track]->trace->lanes[row->index].device_index == device->index;
}

/* The names of a device's lanes in the order of their rows, if these are too low for names; else NULL. */
static char *lane_names(const struct view *view, const struct view_row *device)
{
    char *text = NULL;
    for (size_t i = 0; i < view->layout.n_rows; i++) {
        const struct view_row *row = &view->layout.rows[i];
        if (is_lane_of(view, row, device) && row->height < LEAST_NAMED * view->scale)
            append_text(&text, "%s%s", text ? ", " : "lanes: ", short_name(view->tracks[row->track], row->index));
    }
    return text;
}

/* The device's name, such as that of its driver; "" if this is its id, or the name of the device above it. */
static const char *name_of_device(const struct view *view, const struct view_row *row)
{
    const struct trace_device *device = &view->tracks[row->track]->trace->devices[row->index];
    const char *above = "";
    for (const struct view_row *other = view->layout.rows; other < row; other++)
        if (other->kind == ROW_DEVICE)
            above = view->tracks[other->track]->trace->devices[other->index].name;
    bool known = strcmp(device->id, device->name) == 0 || strcmp(above, device->name) == 0;
    return known ? "" : device->name;
}

/* What follows the device's id is paler. */
static void draw_device_label(const struct view *view, const struct view_row *row)
{
    const struct track *track = view->tracks[row->track];
    int dot = view->scale, right = view->width - MARGIN * dot;
    int y = row->y + row->height / 2 - 8 * dot;
    const char *name = name_of_track(view, row->track), *id = track->trace->devices[row->index].id;
    char *text = format_string("%s %s%s", track->folded[row->index] ? "▸" : "▾", name, id);
    char *lanes = lane_names(view, row);
    put_text(view, 6 * dot, y, right, INK, "%s", text);
    put_text(view, 6 * dot + width_of(view, text) + 18 * dot, y, right, blend_colours(SOFT, INK, 0.4), "%s",
             lanes ? lanes : name_of_device(view, row));
    free(lanes);
    free(text);
}

static void draw_memory_label(const struct view *view, const struct view_row *row)
{
    const struct track *track = view->tracks[row->track];
    int dot = view->scale, middle = row->y + row->height / 2;
    int x = 22 * dot, close = 2 * (GLYPH_HEIGHT - 3) * dot; /* small letters are lower than their glyphs */
    char bytes[NUMBER_TEXT];
    format_bytes(bytes, track->peak[row->index]);
    if (row->height >= 2 * GLYPH_HEIGHT * dot) {
        put_text(view, x, middle - 16 * dot, view->width, INK, "memory");
        put_small(view, x, middle, view->width, SOFT, "peak %s", bytes);
    } else if (row->height >= close) {
        put_small(view, x, middle - 15 * dot, view->width, INK, "memory");
        put_small(view, x, middle - 2 * dot, view->width, SOFT, "peak %s", bytes);
    } else {
        put_small(view, x, middle - 8 * dot, view->width, SOFT, "peak %s", bytes);
    }
    draw_axis_labels(view, row);
}

/* The lane's name, and how much of the time in sight it is busy. */
static void draw_lane_label(const struct view *view, const struct view_row *row)
{
    const struct track *track = view->tracks[row->track];
    const struct trace *trace = track->trace;
    int dot = view->scale, right = places_of(view).rows.x - 8 * dot;
    int top = row->y + (row->height - GLYPH_HEIGHT * dot) / 2;
    uint64_t from = clock_of(track, view->sight.from), to = MIN(clock_of(track, view->sight.to), track->now);
    double ns = (axis_of(track, to) - axis_of(track, from)) / trace->header.pace_scale;
    const char *name = short_name(track, row->index);
    if (ns > 0) {
        double busy = (double)busy_between(&trace->bars[row->index], from, to);
        bool little = busy > 0 && busy < 0.005 * ns;
        put_small(view, AT_RIGHT, top, right, SOFT, little ? "<1%%" : "%.0f%%", 100 * busy / ns);
    }
    int end = right - width_of(view, "100%") - 6 * dot;
    if (row->height < GLYPH_HEIGHT * dot)
        put_small(view, 22 * dot, top, end, INK, "%s", name);
    else
        put_text(view, 22 * dot, top, end, INK, "%s", name);
}

static void draw_row_label(const struct view *view, const struct view_row *row)
{
    if (row->height < LEAST_NAMED * view->scale) /* the device's row has it; keys x and m make room */
        return;
    if (row->kind == ROW_DEVICE)
        draw_device_label(view, row);
    else if (row->kind == ROW_MEMORY)
        draw_memory_label(view, row);
    else
        draw_lane_label(view, row);
}

/* What the rows hold; it may reach too far to the left or right. */
static void draw_contents(struct view *view)
{
    view->layout.contents = (struct contents){.kind = {false}};
    for (size_t i = 0; i < view->layout.n_rows; i++) {
        const struct view_row *row = &view->layout.rows[i];
        if (!is_in_sight(view, row))
            continue;
        if (has_content(row))
            draw_borders(view, view->tracks[row->track], row->y, row->height);
        if (row->kind == ROW_LANE)
            draw_lane(view, row, &view->layout.contents);
        else if (row->kind == ROW_MEMORY)
            draw_memory(view, row, &view->layout.contents);
        else
            fill(view, 0, row->y, view->width, row->height, paper_of(row));
    }
}

static void draw_names_of_lanes(const struct view *view)
{
    for (size_t i = 0; i < view->layout.n_rows; i++)
        if (view->layout.rows[i].kind == ROW_LANE && is_in_sight(view, &view->layout.rows[i]))
            draw_lane_names(view, &view->layout.rows[i]);
}

/* Where not all rows are in sight, a bar at the right edge shows which of them are. */
static void draw_scroll_bar(const struct view *view)
{
    const struct box box = places_of(view).rows;
    int dot = view->scale, left = box.x + box.w + 3 * dot;
    double all = view->layout.rows_height;
    int above = 0, seen = 0;
    if (view->layout.rows_height <= box.h)
        return;
    for (size_t i = 0; i < view->layout.n_rows; i++) {
        const struct view_row *row = &view->layout.rows[i];
        above += row->y < box.y ? row->height : 0;
        seen += is_in_sight(view, row) ? row->height : 0;
    }
    fill(view, left, box.y, 6 * dot, box.h, RULE);
    fill(view, left, box.y + (int)(above / all * box.h), 6 * dot, (int)(seen / all * box.h), SOFT);
}

/* What is beside the rows, over what reaches too far. */
static void draw_margins(const struct view *view)
{
    const struct box box = places_of(view).rows;
    for (size_t i = 0; i < view->layout.n_rows; i++) {
        const struct view_row *row = &view->layout.rows[i];
        if (!is_in_sight(view, row))
            continue;
        fill(view, 0, row->y, box.x, row->height, paper_of(row));
        fill(view, box.x + box.w, row->y, view->width, row->height, paper_of(row));
        draw_row_label(view, row);
    }
}

/* ---- details, help ----------------------------------------------------------------------------------------------- */

static void draw_details(const struct view *view)
{
    struct box box = places_of(view).details;
    int dot = view->scale, high = LINE * dot;
    int x = MARGIN * dot, y = box.y + 4 * dot;
    char *text = new_details(view);
    fill(view, box.x, box.y, box.w, box.h, PANEL);
    const struct line_style style = {.right = view->width - x, .high = high, .first = INK, .rest = SOFT};
    put_lines(view, x, y, &style, text);
    if (view->message[0] && !shows_blocker(view)) { /* it takes the place of the last line */
        int last = y + (view->layout.details_lines - 1) * high;
        fill(view, box.x, last, box.w, high, PANEL);
        put_text(view, x, last, view->width - x, SOFT, "%s", view->message);
    }
    free(text);
}

static void draw_help(const struct view *view)
{
    char *text = copy_string("Keys");
    char keys[KEYS_SIZE];
    size_t rows = (n_actions + 1) / 2;
    for (size_t i = 0; i < rows; i++) {
        append_text(&text, "\n\t%s\t%s", key_names(&actions[i], keys), actions[i].help);
        if (i + rows < n_actions)
            append_text(&text, "\t%s\t%s", key_names(&actions[i + rows], keys), actions[i + rows].help);
    }
    draw_popup(view, places_of(view).rows.x + 6 * view->scale, places_of(view).rows.y + 6 * view->scale, text);
    free(text);
}

/* The line at the top: what is shown, and its state. */
static void draw_header(const struct view *view)
{
    struct box box = places_of(view).header;
    int dot = view->scale;
    int right = box.w - 8 * dot;
    fill(view, box.x, box.y, box.w, box.h, PANEL);
    for (int i = view->n_tracks - 1; i >= 0; i--)
        right = draw_state(view, i, right, 4 * dot);
    bool follows = view->sight.follow && is_followed(view);
    if (follows && is_frozen(view))
        right = draw_chip(view, right, 4 * dot, "still under the mouse", CALM);
    else if (follows)
        right = draw_chip(view, right, 4 * dot, "following", GOOD);
    right -= 10 * dot;
    if (view->n_tracks > 1)
        put_text(view, MARGIN * dot, 6 * dot, right, INK, "A %s   B %s", view->tracks[0]->path, view->tracks[1]->path);
    else
        put_text(view, MARGIN * dot, 6 * dot, right, INK, "%s", view->tracks[0]->trace->header.model);
}

/* Draws lines and veils over the bars, then once more the bars' names, through which none of them runs. */
static void draw_over_bars(const struct view *view)
{
    const struct box rows = places_of(view).rows;
    const struct pick after_gap = pick_after_gap(view);
    bool picked = is_picked(&view->selection.task), marked = view->selection.region.kind != NO_REGION;
    if (marked) {
        shade_region(view);
        draw_region(view);
    }
    if (picked)
        draw_edges(view);
    draw_marks(view);
    draw_cursor(view);
    bool selected = picked || marked || view->selection.n_marks > 0;
    if (selected || is_inside(&rows, view->mouse.x, view->mouse.y))
        draw_names_of_lanes(view);
    if (picked)
        draw_outline(view, &view->selection.task, INK);
    if (is_hovered(view))
        draw_outline(view, &view->mouse.hover, ACCENT);
    if (is_picked(&after_gap) && view->mouse.drag == DRAG_NOTHING)
        outline_gap(view, &after_gap, ACCENT);
    draw_blocker(view);
}

void draw_view(struct view *view, struct canvas *canvas)
{
    carry_task(view);
    lay_out(view);
    fill_shares(view);
    view->canvas = canvas;
    fill_clocks(view);
    fill_rect(canvas, 0, 0, view->width, view->height, PAPER);
    draw_contents(view);
    draw_over_bars(view);
    draw_margins(view);
    draw_scroll_bar(view);
    draw_strip(view);
    draw_header(view);
    draw_legend(view, places_of(view).legend);
    draw_details(view);
    draw_times(view);
    draw_panel(view);
    if (view->help)
        draw_help(view);
    else
        draw_tooltip(view);
    view->canvas = NULL;
    free_clocks(view);
}

void write_view(struct view *view, const char *path)
{
    struct canvas *canvas = new_canvas(view->width, view->height);
    draw_view(view, canvas);
    write_png(path, canvas->pixels, canvas->width, canvas->height);
    free_canvas(canvas);
}
