/* frame.c - the picture around its rows' contents: state, names of rows, legend, details, help. */
#include "act.h"
#include "draw.h"

#include <math.h>

/* ---- the state line -------------------------------------------------------------------------------------------- */

/* A chip is a word on a ground of its own colour; `right`: where it ends.  Returns where the chip before it may end. */
static int draw_chip(const struct view *v, int right, int y, const char *text, uint32_t colour)
{
    int dot = v->scale, left = right - width_of(v, text) - 16 * dot;
    fill(v, left, y, right - left, 20 * dot, colour);
    put_text(v, left + 8 * dot, y + 2 * dot, right, readable_on(colour), "%s", text);
    return left - 6 * dot;
}

enum { GOOD = 0xff009e73, SLOW = 0xffe69f00, BAD = 0xffd55e00, CALM = 0xff8b95a3, PLAIN = 0xff0072b2 };
const char *const life_name[] = {"ended", "live", "paused", "stopped", "trainer gone"};
static const uint32_t life_colour[] = {CALM, GOOD, SLOW, BAD, BAD};

/* Draws chips from the right: what the trainer does, the kind of trace.  Returns the right end of what is left free. */
static int draw_state(const struct view *v, int track_index, int right, int y)
{
    const struct track *track = v->track[track_index];
    const struct trace_header *h = &track->trace->header;
    const enum trace_life life = trace_follow_life(track->follow);
    const double pace = h->pace_scale;
    const char *name = name_of_track(v, track_index), *kind = trace_kind_name(track->trace);
    char text[48];
    if (track->broken)
        right = draw_chip(v, right, y, "file damaged", BAD);
    else if (h->kind != TRACE_SIMULATED)
        right = draw_chip(v, right, y, life_name[life], life_colour[life]);
    if (h->kind == TRACE_PACED && pace != 1)
        snprintf(text, sizeof text, "%s%s, %.4gx %s", name, kind, fmax(pace, 1 / pace), pace < 1 ? "slower" : "faster");
    else
        snprintf(text, sizeof text, "%s%s", name, kind);
    return draw_chip(v, right, y, text, PLAIN);
}

/* ---- labels of rows -------------------------------------------------------------------------------------------- */

static uint32_t paper_of(const struct view_row *r)
{
    if (has_content(r))
        return PAPER;
    return r->track == 0 ? PANEL : RULE;
}

static void draw_device_label(const struct view *v, const struct view_row *row)
{
    const struct track *track = v->track[row->track];
    const struct trace_device *d = &track->trace->devices[row->index];
    const int dot = v->scale, right = v->width - 10 * dot;
    const int y = row->y + row->height / 2 - 8 * dot;
    const char *sign = track->folded[row->index] ? "▸" : "▾";
    const char *name = name_of_track(v, row->track);
    const char *driver = strcmp(d->id, d->name) == 0 ? "" : d->name;
    char text[160];
    snprintf(text, sizeof text, "%s %s%s   %s", sign, name, d->id, driver);
    fill(v, 0, row->y, 6 * dot + width_of(v, text), row->height, paper_of(row)); /* no edge runs through it */
    put_text(v, 6 * dot, y, right, INK, "%s", text);
}

static void draw_memory_label(const struct view *v, const struct view_row *row)
{
    const struct track *track = v->track[row->track];
    const int dot = v->scale, middle = row->y + row->height / 2;
    const bool two_lines = row->height >= 2 * GLYPH_HEIGHT * dot;
    char bytes[32];
    format_bytes(bytes, track->peak[row->index]);
    if (two_lines)
        put_text(v, 22 * dot, middle - 16 * dot, v->width, INK, "memory");
    put_small(v, 22 * dot, middle + (two_lines ? 0 : -8 * dot), v->width, SOFT, "peak %s", bytes);
    draw_axis_labels(v, row);
}

/* The lane's name, and how much of the time in sight it is busy. */
static void draw_lane_label(const struct view *v, const struct view_row *row)
{
    const struct track *track = v->track[row->track];
    const struct trace *t = track->trace;
    const int dot = v->scale, right = places_of(v).rows.x - 8 * dot;
    const int top = row->y + (row->height - GLYPH_HEIGHT * dot) / 2;
    const uint64_t from = clock_of(track, v->sight.from), to = MIN(clock_of(track, v->sight.to), track->now);
    const double ns = (axis_of(track, to) - axis_of(track, from)) / t->header.pace_scale;
    const char *name = track->purpose[row->index];
    const char *group = t->devices[t->lanes[row->index].device_index].id;
    const size_t n = strlen(group);
    if (ns > 0) {
        const double busy = (double)busy_between(&t->bars[row->index], from, to);
        const bool little = busy > 0 && busy < 0.005 * ns;
        put_small(v, AT_RIGHT, top, right, SOFT, little ? "<1%%" : "%.0f%%", 100 * busy / ns);
    }
    if (strncmp(name, group, n) == 0 && name[n] == ' ') /* "0:0 swap out" in the group of "0:0" is "swap out" */
        name += n + 1;
    const int end = right - width_of(v, "100%") - 6 * dot;
    if (row->height < GLYPH_HEIGHT * dot)
        put_small(v, 22 * dot, top, end, INK, "%s", name);
    else
        put_text(v, 22 * dot, top, end, INK, "%s", name);
}

static void draw_row_label(const struct view *v, const struct view_row *row)
{
    if (row->height < 9 * v->scale) /* two traces: keys x and m make room */
        return;
    if (row->kind == ROW_DEVICE)
        draw_device_label(v, row);
    else if (row->kind == ROW_MEMORY)
        draw_memory_label(v, row);
    else
        draw_lane_label(v, row);
}

/* What the rows hold; it may reach too far to the left or right. */
static void draw_contents(struct view *v)
{
    v->layout.seen = (struct seen){.role = {false}};
    for (size_t i = 0; i < v->layout.n_rows; i++) {
        const struct view_row *r = &v->layout.row[i];
        if (!is_in_sight(v, r))
            continue;
        if (has_content(r))
            draw_borders(v, v->track[r->track], r->y, r->height);
        if (r->kind == ROW_LANE)
            draw_lane(v, r, &v->layout.seen);
        else if (r->kind == ROW_MEMORY)
            draw_memory(v, r, &v->layout.seen);
        else
            fill(v, 0, r->y, v->width, r->height, paper_of(r));
    }
}

static void draw_names(const struct view *v)
{
    for (size_t i = 0; i < v->layout.n_rows; i++)
        if (v->layout.row[i].kind == ROW_LANE && is_in_sight(v, &v->layout.row[i]))
            draw_lane_names(v, &v->layout.row[i]);
}

/* Where not all rows are in sight, a bar at the right edge shows which of them are. */
static void draw_scroll_bar(const struct view *v)
{
    const struct box b = places_of(v).rows;
    const int dot = v->scale, left = b.x + b.w + 3 * dot;
    const double all = v->layout.rows_height;
    int above = 0, seen = 0;
    if (v->layout.rows_height <= b.h)
        return;
    for (size_t i = 0; i < v->layout.n_rows; i++) {
        const struct view_row *r = &v->layout.row[i];
        above += r->y < b.y ? r->height : 0;
        seen += is_in_sight(v, r) ? r->height : 0;
    }
    fill(v, left, b.y, 6 * dot, b.h, RULE);
    fill(v, left, b.y + (int)(above / all * b.h), 6 * dot, (int)(seen / all * b.h), SOFT);
}

/* What is beside the rows, over what reaches too far. */
static void draw_margins(const struct view *v)
{
    const struct box b = places_of(v).rows;
    for (size_t i = 0; i < v->layout.n_rows; i++) {
        const struct view_row *r = &v->layout.row[i];
        if (!is_in_sight(v, r))
            continue;
        fill(v, 0, r->y, b.x, r->height, paper_of(r));
        fill(v, b.x + b.w, r->y, v->width, r->height, paper_of(r));
        draw_row_label(v, r);
    }
}

/* ---- details, help --------------------------------------------------------------------------------------------- */

static void draw_details(const struct view *v)
{
    struct box b = places_of(v).details;
    const int dot = v->scale, high = 18 * dot;
    const int x = 10 * dot, y = b.y + 4 * dot;
    char *text = find_details(v);
    fill(v, b.x, b.y, b.w, b.h, PANEL);
    put_lines(v, x, y, v->width - x, high, INK, SOFT, text);
    if (v->message[0]) { /* it takes the place of the last line */
        const int last = y + (v->layout.details_lines - 1) * high;
        fill(v, b.x, last, b.w, high, PANEL);
        put_text(v, x, last, v->width - x, SOFT, "%s", v->message);
    }
    free(text);
}

static void draw_help(const struct view *v)
{
    char *text = copy_string("Keys");
    size_t rows = (n_actions + 1) / 2;
    for (size_t i = 0; i < rows; i++) {
        append_text(&text, "\n\t%s\t%s", actions[i].keys, actions[i].help);
        if (i + rows < n_actions)
            append_text(&text, "\t%s\t%s", actions[i + rows].keys, actions[i + rows].help);
    }
    draw_popup(v, places_of(v).rows.x + 6 * v->scale, places_of(v).rows.y + 6 * v->scale, text);
    free(text);
}

/* The line at the top: what is shown, and its state. */
static void draw_header(const struct view *v)
{
    struct box b = places_of(v).header;
    const int dot = v->scale;
    int right = b.w - 8 * dot;
    fill(v, b.x, b.y, b.w, b.h, PANEL);
    for (int i = v->n_tracks - 1; i >= 0; i--)
        right = draw_state(v, i, right, 4 * dot);
    if (v->sight.follow && is_frozen(v))
        right = draw_chip(v, right, 4 * dot, "still under the mouse", CALM);
    else if (v->sight.follow)
        right = draw_chip(v, right, 4 * dot, "following", GOOD);
    right -= 10 * dot;
    if (v->n_tracks > 1)
        put_text(v, 10 * dot, 6 * dot, right, INK, "A %s   B %s", v->track[0]->path, v->track[1]->path);
    else
        put_text(v, 10 * dot, 6 * dot, right, INK, "%s", v->track[0]->trace->header.model);
}

/* Draws lines and veils over the bars, then once more the bars' names, through which none of them runs. */
static void draw_over_bars(const struct view *v)
{
    const struct box rows = places_of(v).rows;
    const bool picked = is_picked(&v->selection.task), marked = v->selection.region.kind != NO_REGION;
    if (marked)
        draw_region(v);
    if (picked)
        draw_links(v);
    draw_marks(v);
    draw_cursor(v);
    if (picked || marked || v->selection.n_marks > 0 || is_inside(&rows, v->mouse.x, v->mouse.y))
        draw_names(v);
    if (marked)
        shade_region(v);
    if (picked)
        draw_outline(v, &v->selection.task, INK);
    if (is_picked(&v->mouse.hover))
        draw_outline(v, &v->mouse.hover, ACCENT);
    draw_blocker(v);
}

void draw_view(struct view *v, struct canvas *c)
{
    carry_task(v);
    lay_out(v);
    v->canvas = c;
    fill_rect(c, 0, 0, v->width, v->height, PAPER);
    draw_contents(v);
    draw_over_bars(v);
    draw_margins(v);
    draw_scroll_bar(v);
    draw_strip(v);
    draw_header(v);
    draw_legend(v, places_of(v).legend);
    draw_details(v);
    draw_times(v);
    draw_panel(v);
    draw_tooltip(v);
    if (v->help)
        draw_help(v);
    v->canvas = NULL;
}

void write_view(struct view *v, const char *path)
{
    struct canvas *c = new_canvas(v->width, v->height);
    draw_view(v, c);
    write_png(path, c->pixels, c->width, c->height);
    free_canvas(c);
}
