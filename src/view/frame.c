/* frame.c - the picture around its rows' contents: state, names of rows, legend, details, help. */
#include "view.h"

/* ---- the state line -------------------------------------------------------------------------------------------- */

static int draw_chip(const struct view *v, int right, int y, const char *text, uint32_t colour)
{
    int u = v->scale, width = width_of(v, text) + 16 * u;
    fill(v, right - width, y, width, 20 * u, colour);
    put_text(v, right - width + 8 * u, y + 2 * u, text, readable_on(colour));
    return right - width - 6 * u;
}

const char *life_name(enum trace_life life)
{
    static const char *const names[] = {[LIFE_CLOSED] = "ended",
                                        [LIFE_RUNS] = "live",
                                        [LIFE_PAUSED] = "paused",
                                        [LIFE_STOPPED] = "stopped",
                                        [LIFE_GONE] = "trainer gone"};
    return names[life];
}

static uint32_t life_colour(enum trace_life life)
{
    static const uint32_t colours[] = {[LIFE_CLOSED] = 0xff8b95a3,
                                       [LIFE_RUNS] = 0xff009e73,
                                       [LIFE_PAUSED] = 0xffe69f00,
                                       [LIFE_STOPPED] = 0xffd55e00,
                                       [LIFE_GONE] = 0xffd55e00};
    return colours[life];
}

static const char *kind_text(const struct trace *t, char out[48])
{
    double scale = t->header.pace_scale;
    snprintf(out, 48, "%s", trace_kind_name(t));
    if (t->header.kind == TRACE_PACED && scale < 1)
        snprintf(out, 48, "paced, %.4gx slower", 1 / scale);
    else if (t->header.kind == TRACE_PACED && scale > 1)
        snprintf(out, 48, "paced, %.4gx faster", scale);
    return out;
}

/* Chips from the right: what the trainer does, slow motion, the kind of trace.  Returns what is left of the line. */
static int draw_state(const struct view *v, const struct track *k, int right, int y)
{
    char text[48];
    enum trace_life life = trace_follow_life(k->follow);
    double slow = trace_asks(k->follow)->slow;
    if (k->broken)
        right = draw_chip(v, right, y, "file damaged", 0xffd55e00);
    else if (k->trace->header.kind != TRACE_SIMULATED)
        right = draw_chip(v, right, y, life_name(life), life_colour(life));
    snprintf(text, sizeof text, "%gx slower", slow);
    if (slow > 1)
        right = draw_chip(v, right, y, text, 0xffe69f00);
    return draw_chip(v, right, y, kind_text(k->trace, text), 0xff0072b2);
}

static void draw_header(const struct view *v)
{
    const struct theme *theme = theme_of(v);
    struct box b = places_of(v).header;
    int right = b.w - 8 * v->scale, y = 4 * v->scale;
    fill(v, b.x, b.y, b.w, b.h, theme->panel);
    if (v->n_tracks == 1)
        right = draw_state(v, v->track[0], right, y);
    if (v->follow)
        right = draw_chip(v, right, y, "following", 0xff009e73);
    put_text_within(v, 10 * v->scale, 6 * v->scale,
                    v->n_tracks > 1 ? "two traces on one axis" : v->track[0]->trace->header.model, theme->ink,
                    right - 10 * v->scale);
}

/* ---- labels of rows -------------------------------------------------------------------------------------------- */

/* "0:0 compute" in the group of "0:0" is "compute". */
static const char *short_lane_name(const char *name)
{
    const char *space = strrchr(name, ' ');
    return space ? space + 1 : name;
}

static void draw_lane_label(const struct view *v, const struct row *row)
{
    const struct track *k = v->track[row->track];
    const struct theme *theme = theme_of(v);
    int u = v->scale, y = row->y + (row->height - GLYPH_HEIGHT * u) / 2, right = places_of(v).rows.x - 8 * u;
    uint64_t from = clock_of(k, v->from), to = MIN(clock_of(k, v->to), k->now);
    char text[16] = "";
    if (to > from)
        snprintf(text, sizeof text, "%.0f%%",
                 100 * (double)busy_between(&k->trace->bars[row->index], from, to) / (double)(to - from));
    put_text(v, right - width_of(v, text), y, text, theme->soft);
    put_text_within(v, 22 * u, y, short_lane_name(k->trace->lanes[row->index].name), theme->ink,
                    right - width_of(v, "100%") - 6 * u);
}

static void draw_device_label(const struct view *v, const struct row *row)
{
    const struct trace_device *d = &v->track[row->track]->trace->devices[row->index];
    const struct theme *theme = theme_of(v);
    int u = v->scale;
    char text[128];
    snprintf(text, sizeof text, "%s%s%s", d->id, strcmp(d->id, d->name) ? "   " : "",
             strcmp(d->id, d->name) ? d->name : "");
    put_text_within(v, 10 * u, row->y + 2 * u, text, theme->ink, v->width - 10 * u);
}

static void draw_track_label(const struct view *v, const struct row *row)
{
    const struct track *k = v->track[row->track];
    const struct theme *theme = theme_of(v);
    int u = v->scale;
    char text[512];
    snprintf(text, sizeof text, "%c   %s   %s", 'A' + row->track, k->path, k->trace->header.model);
    int right = draw_state(v, k, v->width - 8 * u, row->y + 2 * u);
    put_text_within(v, 10 * u, row->y + 4 * u, text, theme->paper, right - 10 * u);
}

static void draw_memory_label(const struct view *v, const struct row *row)
{
    char text[64], bytes[32];
    int u = v->scale;
    format_bytes(bytes, v->track[row->track]->peak[row->index]);
    snprintf(text, sizeof text, "peak %s", bytes);
    put_text(v, 22 * u, row->y + row->height / 2 - 17 * u, "memory", theme_of(v)->ink);
    put_text(v, 22 * u, row->y + row->height / 2 + u, text, theme_of(v)->soft);
}

static bool in_sight(const struct view *v, const struct row *row)
{
    struct box b = places_of(v).rows;
    return row->y + row->height > b.y && row->y < b.y + b.h;
}

static uint32_t row_paper(const struct view *v, const struct row *row)
{
    const struct theme *theme = theme_of(v);
    return row->kind == ROW_TRACK ? theme->soft : row->kind == ROW_DEVICE ? theme->panel : theme->paper;
}

static void draw_contents(const struct view *v)
{
    for (size_t i = 0; i < v->n_rows; i++) {
        const struct row *row = &v->row[i];
        if (!in_sight(v, row))
            continue;
        if (row->kind == ROW_DEVICE || row->kind == ROW_TRACK) {
            fill(v, 0, row->y, v->width, row->height, row_paper(v, row));
            continue;
        }
        draw_borders(v, v->track[row->track], row->y, row->height);
        (row->kind == ROW_LANE ? draw_lane : draw_memory)(v, row);
    }
}

/* Over what was drawn too far to the left or right. */
static void draw_labels(const struct view *v)
{
    static void (*const draw[])(const struct view *, const struct row *) = {[ROW_TRACK] = draw_track_label,
                                                                            [ROW_DEVICE] = draw_device_label,
                                                                            [ROW_LANE] = draw_lane_label,
                                                                            [ROW_MEMORY] = draw_memory_label};
    struct box b = places_of(v).rows;
    for (size_t i = 0; i < v->n_rows; i++) {
        const struct row *row = &v->row[i];
        if (!in_sight(v, row))
            continue;
        fill(v, 0, row->y, b.x, row->height, row_paper(v, row));
        fill(v, b.x + b.w, row->y, v->width, row->height, row_paper(v, row));
        draw[row->kind](v, row);
    }
}

/* ---- legend, details, help ------------------------------------------------------------------------------------- */

static int draw_legend_item(const struct view *v, int x, const char *text, uint32_t colour)
{
    struct box b = places_of(v).legend;
    int u = v->scale;
    if (x + 16 * u + width_of(v, text) > b.w - 10 * u)
        return x;
    fill(v, x, b.y + 7 * u, 12 * u, 12 * u, colour);
    put_text(v, x + 17 * u, b.y + 5 * u, text, theme_of(v)->ink);
    return x + 17 * u + width_of(v, text) + 14 * u;
}

static bool shows_memory(const struct view *v)
{
    for (size_t i = 0; i < v->n_rows; i++)
        if (v->row[i].kind == ROW_MEMORY)
            return true;
    return false;
}

static void draw_legend(const struct view *v)
{
    struct box b = places_of(v).legend;
    char text[64];
    int u = v->scale, x = 10 * u;
    fill(v, b.x, b.y, b.w, b.h, theme_of(v)->panel);
    fill(v, 0, b.y, b.w, u, theme_of(v)->rule);
    put_text(v, x, b.y + 5 * u, colour_way_name(v->colour), theme_of(v)->soft);
    x += width_of(v, "micro-batch") + 14 * u;
    for (size_t i = 0; i < colour_count(v); i++)
        if (colour_name(v, i, text))
            x = draw_legend_item(v, x, text, colour_number(v, (int64_t)i));
    if (shows_memory(v)) {
        put_text(v, x + 10 * u, b.y + 5 * u, "memory", theme_of(v)->soft);
        x += width_of(v, "memory") + 24 * u;
    }
    for (size_t i = 0; shows_memory(v) && i < v->track[0]->trace->header.n_classes; i++)
        x = draw_legend_item(v, x, v->track[0]->trace->header.memory[i], class_colour(i));
}

static void draw_lines(const struct view *v, int x, int y, const struct text_line *lines, int right)
{
    for (int i = 0; i < DETAIL_LINES; i++)
        put_text_within(v, x, y + 20 * i * v->scale, lines[i].text, i ? theme_of(v)->soft : theme_of(v)->ink, right);
}

static void draw_details(const struct view *v)
{
    struct box b = places_of(v).details;
    struct text_line lines[DETAIL_LINES];
    const struct pick *p = is_picked(&v->hover) ? &v->hover : &v->selected;
    if (is_picked(p))
        describe_record(v->track[p->track]->trace, &p->copy, lines);
    else
        describe_step(v, lines);
    if (v->typing || v->search[0])
        snprintf(lines[2].text, sizeof lines[2].text, "search: %s%s", v->search,
                 v->typing ? "_" : "   (Escape ends it)");
    if (v->message[0])
        snprintf(lines[2].text, sizeof lines[2].text, "%s", v->message);
    fill(v, b.x, b.y, b.w, b.h, theme_of(v)->panel);
    draw_lines(v, 10 * v->scale, b.y + 6 * v->scale, lines, v->width - 10 * v->scale);
}

static void draw_help(const struct view *v)
{
    int u = v->scale, rows = (int)(n_actions + 1) / 2, column = 370 * u, high = (rows * 20 + 60) * u;
    struct box b = {(v->width - 2 * column - 20 * u) / 2, (v->height - high) / 2, 2 * column + 20 * u, high};
    const struct theme *theme = theme_of(v);
    shade(v, 0, 0, v->width, v->height, 0xff000000, 0.45);
    fill(v, b.x, b.y, b.w, b.h, theme->paper);
    put_text(v, b.x + 20 * u, b.y + 14 * u, "Keys", theme->accent);
    for (int i = 0; i < (int)n_actions; i++) {
        int x = b.x + 20 * u + i / rows * column, y = b.y + (44 + 20 * (i % rows)) * u;
        put_text(v, x, y, actions[i].keys, theme->accent);
        put_text(v, x + 96 * u, y, actions[i].help, theme->ink);
    }
}

void draw_view(struct view *v, struct canvas *c)
{
    v->canvas = c;
    lay_out(v);
    fill_rect(c, 0, 0, v->width, v->height, theme_of(v)->paper);
    draw_contents(v);
    if (is_picked(&v->selected)) {
        draw_links(v);
        draw_outline(v, &v->selected, theme_of(v)->ink);
    }
    if (is_picked(&v->hover))
        draw_outline(v, &v->hover, theme_of(v)->accent);
    draw_labels(v);
    if (v->measuring)
        draw_measure(v);
    draw_strip(v);
    draw_header(v);
    draw_legend(v);
    draw_details(v);
    if (v->help) { /* in letters so large that all of it is seen */
        int scale = v->scale;
        v->scale = MIN(scale, MIN(v->width / LEAST_WIDTH, v->height / LEAST_HEIGHT));
        draw_help(v);
        v->scale = scale;
    }
    v->canvas = NULL;
}
