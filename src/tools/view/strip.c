/* strip.c - the steps above the rows: the overview with a bar for each, the ruler, borders. */
#include "draw.h"
#include "planning/console/numbers.h"

#include <inttypes.h>
#include <math.h>

/* Lengths, in dots. */
enum {
    SMALL_LINE = 17,    /* from one line to the next, where the lower one has small letters */
    SMALL_LETTERS = 14, /* the height of a line of small letters */
    BESIDE = 8,         /* between the overview or the ruler and the text on its left */
    TICK = 6,           /* the length of the ruler's ticks */
    TICK_GAP = 5        /* from a tick to its text */
};

/* ---- overview: a bar per step ------------------------------------------------------------------------------------ */

uint32_t step_at_overview(const struct view *view, int x)
{
    const struct trace_step_list *steps = view->tracks[0]->steps;
    const struct box box = places_of(view).overview;
    if (steps->n == 0)
        return 0;
    double index = fmin(fmax((double)(x - box.x) / box.w, 0), 1) * (double)steps->n;
    return steps->items[MIN((size_t)index, steps->n - 1)].step;
}

/* The median of the lengths of steps that have ended, or when there are many of a sample of them; 0: none has. */
static double median_step_ns(const struct track *track)
{
    double ns[1000];
    size_t n = track->steps->n;
    while (n > 0 && is_unfinished(track, &track->steps->items[n - 1]))
        n--;
    size_t sample = MIN(n, COUNT(ns));
    for (size_t i = 0; i < sample; i++)
        ns[i] = step_ns(track, &track->steps->items[i * n / sample]);
    return n > 0 ? median(ns, sample) : 0;
}

/* Draws the bar of step i; `top`: the length of a step at the upper edge, in nanoseconds.  A step that has not ended
 * has no length: its bar is as flat as can be. */
static void draw_step(const struct view *view, size_t i, double top)
{
    const struct track *track = view->tracks[0];
    const struct trace_step *step = &track->steps->items[i];
    const struct box box = places_of(view).overview;
    size_t n = track->steps->n, pixels = (size_t)box.w;
    int left = box.x + (int)(i * pixels / n);
    int width = box.x + (int)((i + 1) * pixels / n) - left;
    int high = is_unfinished(track, step) ? 2 * view->scale : (int)(fmin(step_ns(track, step) / top, 1) * box.h);
    if (width > 3) /* a gap before the next one */
        width--;
    width = MAX(width, 1);
    high = MAX(high, view->scale);
    fill(view, left, box.y + box.h - high, width, high, step->step == view->sight.anchor ? SOFT : STEP_BAR);
}

/* Where there are many steps some stand for all: every one, every second, every fourth ..., so that those that are
 * drawn stay when more come.  At least `most` / 2 are drawn. */
static size_t stride_of_steps(size_t n, size_t most)
{
    size_t stride = 1;
    while (n / stride > most)
        stride *= 2;
    return stride;
}

/* ---- the loss ---------------------------------------------------------------------------------------------------- */

bool shows_loss(const struct view *view) { return !view->layout.low && !isnan(last_loss(view->tracks[0])); }

static void draw_loss_line(const struct view *view, int x, int y, int to_x, int to_y)
{
    for (int k = 0; k < 2 * view->scale; k++)
        draw_line(view->canvas, x, y + k, to_x, to_y + k, LOSS);
}

enum { MOST_POINTS = 512 };
struct loss_curve {
    size_t stride;                /* every so many steps have a point */
    double loss[MOST_POINTS + 1]; /* NAN: the step has none */
    size_t n;
    double least, most; /* of these losses */
};

static struct loss_curve read_loss_curve(const struct track *track)
{
    struct loss_curve curve = {
        .stride = stride_of_steps(track->steps->n, MOST_POINTS), .least = INFINITY, .most = -INFINITY};
    for (size_t i = 0; i < track->steps->n; i += curve.stride) {
        double loss = step_loss(track, &track->steps->items[i]);
        curve.least = fmin(curve.least, loss);
        curve.most = fmax(curve.most, loss);
        curve.loss[curve.n++] = loss;
    }
    return curve;
}

/* Draws a curve through the steps' losses, as high as the strip, and writes the last one beside it. */
static void draw_loss(const struct view *view)
{
    const struct loss_curve curve = read_loss_curve(view->tracks[0]);
    const struct box box = places_of(view).overview;
    double n_steps = (double)view->tracks[0]->steps->n;
    int dot = view->scale;
    bool first = true;
    int x = 0, y = 0;
    for (size_t i = 0; i < curve.n; i++) {
        double loss = curve.loss[i];
        if (isnan(loss))
            continue;
        int to_x = box.x + (int)(((double)(i * curve.stride) + 0.5) / n_steps * box.w);
        int to_y = box.y + (int)((curve.most - loss) / fmax(curve.most - curve.least, 1e-9) * (box.h - 3 * dot));
        if (!first)
            draw_loss_line(view, x, y, to_x, to_y);
        x = to_x;
        y = to_y;
        first = false;
    }
    put_small(view, MARGIN * dot, box.y + box.h - SMALL_LETTERS * dot, box.x, LOSS, "loss %.3f",
              last_loss(view->tracks[0]));
}

/* ---- the strip --------------------------------------------------------------------------------------------------- */

/* The steps of a simulation are alike: then the strip only says how many there are.  Other lines tell their length. */
static void draw_quiet_overview(const struct view *view)
{
    const struct box box = places_of(view).overview;
    size_t n = view->tracks[0]->steps->n, stride = stride_of_steps(n, (size_t)MAX(2 * box.w, 1));
    int dot = view->scale, high = 3 * dot;
    for (size_t i = 0; i < n; i += stride)
        draw_step(view, i, 1);
    fill(view, box.x, box.y, box.w, box.h - high, PANEL);
    put_text(view, MARGIN * dot, box.y, box.x, INK, "%s%zu step%s", name_of_track(view, 0), n, PLURAL(n));
}

static void draw_overview(const struct view *view)
{
    const struct track *track = view->tracks[0];
    const struct box box = places_of(view).overview;
    size_t n = track->steps->n, stride = stride_of_steps(n, (size_t)MAX(2 * box.w, 1));
    double middle = median_step_ns(track); /* a first step that compiles kernels would flatten all others */
    bool loss = shows_loss(view);
    int dot = view->scale, y = loss ? box.y - 2 * dot : box.y + box.h / 2 - SMALL_LINE * dot;
    char text[NUMBER_TEXT];
    for (size_t i = 0; i < n; i += stride)
        draw_step(view, i, fmax(2 * middle, 1));
    fill(view, box.x, box.y + box.h, box.w, dot, BORDER);
    put_text(view, MARGIN * dot, y, box.x, INK, "%s%zu step%s", name_of_track(view, 0), n, PLURAL(n));
    if (middle > 0)
        put_small(view, MARGIN * dot, y + SMALL_LINE * dot, box.x - BESIDE * dot, SOFT, "median %s",
                  format_ns(text, middle));
    if (loss)
        draw_loss(view);
}

/* ---- ruler and step borders -------------------------------------------------------------------------------------- */

static void draw_ticks(const struct view *view)
{
    enum { APART = 110 }; /* dots from tick to tick, at least */
    const struct times times = find_times(view);
    const struct box ruler = places_of(view).ruler;
    int dot = view->scale, bottom = ruler.y + ruler.h;
    double tick = tick_length((view->sight.to - view->sight.from) * APART * dot / ruler.w);
    double first = ceil(view->sight.from / tick);
    int n = (int)(floor(view->sight.to / tick) - first);
    for (int i = 0; i <= n; i++) {
        double at = (first + i) * tick;
        int x = (int)x_of(view, at);
        char text[AXIS_TEXT];
        format_axis(view, text, at, tick);
        fill(view, x, bottom - TICK * dot, dot, TICK * dot, BORDER);
        int wide = small_width(view, text) + TICK_GAP * dot;
        if (x + wide < ruler.x + ruler.w && !is_covered(&times, x, wide))
            put_small(view, x + TICK_GAP * dot, bottom - SMALL_LINE * dot, view->width, SOFT, "%s", text);
    }
    fill(view, ruler.x, bottom - dot, ruler.w, dot, BORDER);
}

struct step_range { /* steps [begin, end), by index */
    size_t begin, end;
};

/* The steps that begin in sight.  Later ones than the newest that computes have not begun: only their batches have
 * been fetched. */
static struct step_range find_steps_in_sight(const struct view *view, const struct track *track)
{
    const struct trace_step *step = track->steps->items, *newest = newest_step(track);
    size_t n = newest ? (size_t)(newest - step) + 1 : 0;
    return (struct step_range){.begin = first_step_from(step, n, clock_of(track, view->sight.from)),
                               .end = first_step_from(step, n, clock_of(track, view->sight.to))};
}

/* The same, but none where there are so many that their lines would be too close to each other.  Far out only a few
 * long steps would have lines. */
static struct step_range find_borders(const struct view *view, const struct track *track)
{
    struct step_range range = find_steps_in_sight(view, track);
    if (is_far_out(view, track) || (double)(range.end - range.begin) > places_of(view).rows.w / (12.0 * view->scale))
        range.end = range.begin;
    return range;
}

static int border_x(const struct view *view, const struct track *track, size_t i)
{
    return pixel_of(view, axis_of(track, track->steps->items[i].work));
}

/* Has the line of step i room among those of the range?  A stretch of short steps has no lines. */
static bool has_border(const struct view *view, const struct track *track, size_t i, struct step_range range)
{
    int least = 8 * view->scale, x = border_x(view, track, i);
    bool free_before = i == range.begin || x - border_x(view, track, i - 1) >= least;
    bool free_after = i + 1 == range.end || border_x(view, track, i + 1) - x >= least;
    return free_before && free_after;
}

bool shows_borders(const struct view *view)
{
    const struct step_range range = find_borders(view, view->tracks[0]);
    for (size_t i = range.begin; i < range.end; i++)
        if (has_border(view, view->tracks[0], i, range))
            return true;
    return false;
}

void draw_borders(const struct view *view, const struct track *track, int y, int height)
{
    const struct step_range range = find_borders(view, track);
    for (size_t i = range.begin; i < range.end; i++)
        if (has_border(view, track, i, range))
            fill(view, border_x(view, track, i), y, view->scale, height, BORDER);
}

static bool begins_before_sight(const struct view *view, uint64_t clock)
{
    return axis_of(view->tracks[0], clock) < view->sight.from;
}

/* The interlude that goes on at the left edge of what is in sight; without a name: none, so that the step goes on. */
static struct interlude interlude_at_left(const struct view *view, const struct trace_step *step)
{
    const struct track *track = view->tracks[0];
    uint64_t clock = clock_of(track, view->sight.from);
    const struct interlude before = find_interludes(track, clock).before;
    bool has_begun = before.start > step->work;
    bool all_has_ended = clock >= track->last;
    return has_begun && !all_has_ended ? before : (struct interlude){.start = step->work};
}

/* Writes the name of the interlude after step i, if it is in sight and fits between the pixels `least` and `free_to`.
 * One that goes on at the left edge has its name there.  Returns where the name begins, or `free_to`. */
static int draw_interlude(const struct view *view, size_t i, int least, int free_to)
{
    const struct track *track = view->tracks[0];
    const struct trace_step *step = &track->steps->items[i];
    struct interlude interlude = find_interlude(track, step);
    if (interlude.name && begins_before_sight(view, interlude.start))
        interlude = interlude_at_left(view, step);
    if (!interlude.name)
        return free_to;
    double at = fmax(x_of(view, axis_of(track, interlude.start)), places_of(view).ruler.x);
    if (at > free_to)
        return free_to;
    int x = MAX((int)at, least);
    int wide = width_of(view, interlude.name);
    if (x + wide > free_to || is_between_marks(view, x, wide))
        return free_to;
    put_text(view, x, places_of(view).ruler.y + 2 * view->scale, view->width, SOFT, "%s", interlude.name);
    return x;
}

/* A step's number on the ruler, and where it stands. */
struct step_number {
    bool shown;
    char text[32];
    int x, wide;
};

/* Where the numbers of steps may stand, and which of them are shown if there is room. */
struct number_room {
    uint32_t stride;         /* multiples of it are shown */
    size_t newest, anchor;   /* indices of two steps that are shown too, wherever they begin */
    int anchor_end, free_to; /* pixels: where the anchor's number ends, and where that of the step after begins */
};

/* Places the number of step i between the anchor's and that of the step after it. */
static struct step_number place_number(const struct view *view, size_t i, const struct number_room *room)
{
    const struct trace_step *step = &view->tracks[0]->steps->items[i];
    const struct box box = places_of(view).ruler;
    bool is_asked = i == room->newest || i == room->anchor;
    struct step_number number = {.shown = false};
    if (step->step % room->stride != 0 && !is_asked) /* most steps of a long run: no text is made for them */
        return number;
    /* Then the number stands beside the ruler, or the step is over. */
    if (begins_before_sight(view, step->work) &&
        (step->step == view->sight.anchor || interlude_at_left(view, step).name))
        return number;
    snprintf(number.text, sizeof number.text, "step %" PRIu32, step->step);
    number.wide = width_of(view, number.text);
    number.x = (int)fmax(x_of(view, axis_of(view->tracks[0], step->work)), box.x);
    if (is_asked)
        number.x = MIN(number.x, box.x + box.w - number.wide);
    bool has_room = number.x + number.wide <= room->free_to && (i <= room->anchor || number.x >= room->anchor_end);
    number.shown = has_room && !is_between_marks(view, number.x, number.wide);
    return number;
}

/* The pixel from which on something else may stand after the number. */
static int end_with_gap(const struct view *view, const struct step_number *number)
{
    return number->x + number->wide + 12 * view->scale;
}

/* The axis counts from the anchor, so its number comes before all others: room is kept for it. */
static struct number_room find_room(const struct view *view, size_t first, size_t end)
{
    const struct track *track = view->tracks[0];
    const struct box box = places_of(view).ruler;
    const struct trace_step *anchor = find_step(track, view->sight.anchor);
    double most = (double)box.w / (90 * view->scale); /* numbers that have room */
    struct number_room room = {.stride = (uint32_t)fmax(tick_length((double)(end - first) / most), 1),
                               .newest = end - 1,
                               .anchor = SIZE_MAX,
                               .anchor_end = box.x,
                               .free_to = box.x + box.w};
    size_t i = anchor ? (size_t)(anchor - track->steps->items) : SIZE_MAX;
    if (i < first || i >= end)
        return room;
    if (anchor->step != view->sight.anchor || axis_of(track, anchor->work) < view->sight.from)
        return room;
    room.anchor = i;
    const struct step_number number = place_number(view, i, &room);
    if (number.shown)
        room.anchor_end = end_with_gap(view, &number);
    return room;
}

/* Writes the numbers of the first trace's steps, from the right: those of all steps, or of every second, fifth, tenth
 * ... as there is room, that of the anchor, and that of the newest.  At the left edge is that of the step that goes on,
 * unless it is the anchor.  Interludes have their names there, too.  Returns whether the anchor's
 * number is among them. */
static bool draw_step_numbers(const struct view *view)
{
    const struct track *track = view->tracks[0];
    const struct box box = places_of(view).ruler;
    bool has_anchor = false;
    struct step_range range = find_steps_in_sight(view, track);
    if (range.begin > 0)
        range.begin--; /* the step that goes on at the left edge */
    struct number_room room = find_room(view, range.begin, range.end);
    for (size_t i = range.end; i-- > range.begin;) {
        const struct step_number number = place_number(view, i, &room);
        int free_from = i > room.anchor ? room.anchor_end : box.x;
        int least = number.shown ? end_with_gap(view, &number) : free_from;
        int begins = draw_interlude(view, i, least, room.free_to);
        if (number.shown) {
            bool is_anchor = track->steps->items[i].step == view->sight.anchor;
            put_text(view, number.x, box.y + 2 * view->scale, view->width, is_anchor ? ACCENT : INK, "%s", number.text);
            begins = number.x;
            has_anchor |= is_anchor;
        }
        if (begins < room.free_to)
            room.free_to = begins - 16 * view->scale;
    }
    return has_anchor;
}

/* Says beside the ruler from which step the axis counts. */
static void draw_anchor_beside(const struct view *view)
{
    const struct box box = places_of(view).ruler;
    int dot = view->scale;
    put_small(view, MARGIN * dot, box.y + box.h - SMALL_LINE * dot, box.x - BESIDE * dot, ACCENT,
              "time from step %" PRIu32, view->sight.anchor);
}

/* The overview has the same ground as the first line of the picture.  A line below it keeps the ruler's numbers of
 * steps from being read as names of the bars above. */
void draw_strip(const struct view *view)
{
    const struct places places = places_of(view);
    bool simulated = view->tracks[0]->trace->header.kind == TRACE_SIMULATED;
    fill(view, 0, places.header.h, view->width, places.ruler.y - places.header.h, PANEL);
    fill(view, 0, places.ruler.y, view->width, places.rows.y - places.ruler.y, PAPER);
    fill(view, 0, places.ruler.y, view->width, view->scale, RULE);
    if (!view->layout.low && simulated)
        draw_quiet_overview(view);
    else if (!view->layout.low)
        draw_overview(view);
    draw_ticks(view);
    if (!draw_step_numbers(view) && view->tracks[0]->steps->n > 0)
        draw_anchor_beside(view);
}
