/* frame.c - the picture around its rows' contents: state, names of rows, legend, details, help. */
#include "view.h"

#include <math.h>

/* ---- the state line -------------------------------------------------------------------------------------------- */

static int draw_chip(const struct view *v, int right, int y, const char *text, uint32_t colour)
{
    int u = v->scale, left = right - width_of(v, text) - 16 * u;
    fill(v, left, y, right - left, 20 * u, colour);
    put_text(v, left + 8 * u, y + 2 * u, right, readable_on(colour), "%s", text);
    return left - 6 * u;
}

enum { GOOD = 0xff009e73, SLOW = 0xffe69f00, BAD = 0xffd55e00, CALM = 0xff8b95a3, PLAIN = 0xff0072b2 };
const char *const life_name[] = {"ended", "live", "paused", "stopped", "trainer gone"};
static const uint32_t life_colour[] = {CALM, GOOD, SLOW, BAD, BAD};

/* Chips from the right: what the trainer does, the kind of trace.  Returns what is left of the line. */
static int draw_state(const struct view *v, int track, int right, int y)
{
    const struct track *k = v->track[track];
    char text[48];
    enum trace_life life = trace_follow_life(k->follow);
    double pace = k->trace->header.pace_scale;
    bool paced = k->trace->header.kind == TRACE_PACED && pace != 1;
    if (k->broken)
        right = draw_chip(v, right, y, "file damaged", BAD);
    else if (k->trace->header.kind != TRACE_SIMULATED)
        right = draw_chip(v, right, y, life_name[life], life_colour[life]);
    snprintf(text, sizeof text, paced ? "%s%s, %.4gx %s" : "%s%s", name_of_track(v, track), trace_kind_name(k->trace),
             fmax(pace, 1 / pace), pace < 1 ? "slower" : "faster");
    return draw_chip(v, right, y, text, PLAIN);
}

/* ---- labels of rows -------------------------------------------------------------------------------------------- */

static void draw_label(const struct view *v, const struct row *row)
{
    const struct track *k = v->track[row->track];
    int u = v->scale, y = row->y, middle = y + row->height / 2;
    if (row->height < 3 * GLYPH_HEIGHT * u / 4) /* two traces: keys x and m make room */
        return;
    if (row->kind == ROW_DEVICE) {
        const struct trace_device *d = &k->trace->devices[row->index];
        bool folded = k->folded[row->index];
        put_text(v, 6 * u, middle - 8 * u, v->width - 10 * u, INK, strcmp(d->id, d->name) ? "%c %s%s   %s" : "%c %s%s",
                 folded ? '+' : '-', name_of_track(v, row->track), d->id, d->name);
    } else if (row->kind == ROW_MEMORY) {
        char bytes[32];
        bool room = row->height >= 2 * GLYPH_HEIGHT * u;
        if (room)
            put_text(v, 22 * u, middle - 17 * u, v->width, INK, "memory");
        put_text(v, 22 * u, middle + (room ? 1 : -8) * u, v->width, SOFT, "peak %s",
                 format_bytes(bytes, k->peak[row->index]));
    } else { /* "0:0 swap out" in the group of "0:0" is "swap out" */
        int top = y + (row->height - GLYPH_HEIGHT * u) / 2, right = places_of(v).rows.x - 8 * u;
        uint64_t from = clock_of(k, v->from), to = MIN(clock_of(k, v->to), k->now);
        const char *name = k->purpose[row->index],
                   *group = k->trace->devices[k->trace->lanes[row->index].device_index].id;
        size_t n = strlen(group);
        double ns = (axis_of(k, to) - axis_of(k, from)) / k->trace->header.pace_scale;
        if (ns > 0)
            put_text(v, AT_RIGHT, top, right, SOFT, "%.0f%%",
                     100 * (double)busy_between(&k->trace->bars[row->index], from, to) / ns);
        put_text(v, 22 * u, top, right - width_of(v, "100%") - 6 * u, INK, "%s",
                 strncmp(name, group, n) == 0 && name[n] == ' ' ? name + n + 1 : name);
    }
}

/* What rows hold, or with `labels` what is beside it, over what was drawn too far to the left or right. */
static void draw_rows(const struct view *v, bool labels)
{
    struct box b = places_of(v).rows;
    for (const struct row *r = v->row; r < v->row + v->n_rows; r++) {
        uint32_t paper = has_content(r) ? PAPER : r->track ? RULE : PANEL;
        if (r->y + r->height <= b.y || r->y >= b.y + b.h)
            continue;
        if (labels) {
            fill(v, 0, r->y, b.x, r->height, paper);
            fill(v, b.x + b.w, r->y, v->width, r->height, paper);
            draw_label(v, r);
        } else if (has_content(r)) {
            draw_borders(v, v->track[r->track], r->y, r->height);
            (r->kind == ROW_LANE ? draw_lane : draw_memory)(v, r);
        } else
            fill(v, 0, r->y, v->width, r->height, paper);
    }
}

/* ---- details, help --------------------------------------------------------------------------------------------- */

static void draw_details(const struct view *v)
{
    struct box b = places_of(v).details;
    const struct pick *p = is_picked(&v->hover) ? &v->hover : &v->selected;
    const struct pick behind = pick_behind(v);
    bool gap = !is_picked(&v->hover) && is_picked(&behind) && v->drag != DRAG_TASK;
    p = gap ? &behind : p;
    char *said = is_picked(p) ? describe_record(v->track[p->track]->trace, (size_t)p->record) : describe_step(v);
    char *text = format_string(gap ? "idle, then   %s" : "%s", said);
    int u = v->scale, x = 10 * u, y = b.y + 6 * u;
    fill(v, b.x, b.y, b.w, b.h, PANEL);
    put_lines(v, x, y, v->width - x, 20 * u, INK, SOFT, text);
    if (v->message[0]) { /* in the place of the third line */
        fill(v, b.x, y + 40 * u, b.w, 20 * u, PANEL);
        put_text(v, x, y + 40 * u, v->width - x, SOFT, "%s", v->message);
    }
    free(said), free(text);
}

static void draw_help(const struct view *v)
{
    char *text = copy_string("Keys\n");
    size_t rows = (n_actions + 1) / 2;
    for (size_t i = 0; i < rows; i++) {
        append_text(&text, "%-10s %-30s", actions[i].keys, actions[i].help);
        if (i + rows < n_actions)
            append_text(&text, "%-10s %s", actions[i + rows].keys, actions[i + rows].help);
        append_text(&text, "\n");
    }
    put_panel(v, false, text);
    free(text);
}

void draw_view(struct view *v, struct canvas *c)
{
    v->canvas = c;
    carry_task(v);
    lay_out(v);
    fill_rect(c, 0, 0, v->width, v->height, PAPER);
    draw_rows(v, false);
    if (is_picked(&v->selected)) {
        draw_links(v);
        draw_outline(v, &v->selected, INK);
    }
    if (is_picked(&v->hover))
        draw_outline(v, &v->hover, ACCENT);
    draw_blocker(v);
    draw_rows(v, true);
    if (v->region.kind != NO_REGION)
        draw_region(v);
    draw_panel(v);
    draw_strip(v);
    struct box b = places_of(v).header;
    int right = b.w - 8 * v->scale, y = 4 * v->scale;
    fill(v, b.x, b.y, b.w, b.h, PANEL);
    for (int i = v->n_tracks - 1; i >= 0; i--)
        right = draw_state(v, i, right, y);
    if (v->follow)
        right =
            draw_chip(v, right, y, is_frozen(v) ? "still under the mouse" : "following", is_frozen(v) ? CALM : GOOD);
    put_text(v, 10 * v->scale, 6 * v->scale, right - 10 * v->scale, INK, v->n_tracks > 1 ? "A %s   B %s" : "%s",
             v->n_tracks > 1 ? v->track[0]->path : v->track[0]->trace->header.model, v->track[v->n_tracks - 1]->path);
    draw_legend(v, places_of(v).legend);
    draw_details(v);
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
