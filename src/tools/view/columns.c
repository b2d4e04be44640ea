/* columns.c - bars of a lane that are too narrow to be drawn one by one: merged columns, and whole steps.
 *
 *     draw_columns()     merges bars: a column of pixels has the colour of the longest bar in it
 *     draw_short_bar()   draws one that has nothing beside it as such a column
 *     draw_spans()       far out, takes whole steps together
 *
 * Bars are found by searches, so a picture costs a few steps per column however many records there are.  But a million
 * bars take 32 MB, more than most caches hold, and to wait for memory would take most of the time.  So fill_firsts()
 * finds the bars of all columns of a lane first, and asks for them; they are drawn after that.
 */
#include "brush.h"
#include "planning/trace/near.h"

#include <math.h>

enum { SAMPLES = 4 }; /* of many bars in a column, how many are looked at */

/* ---- the first bar of each pixel --------------------------------------------------------------------------------- */

/* Asks for the bars [i, end) that will be looked at if they are merged in a column. */
static void fetch_samples(const struct brush *brush, size_t i, size_t end)
{
    size_t stride = ceil_div(end - i, SAMPLES);
    for (size_t k = i; k < end; k += stride)
        fetch_ahead(&brush->bars->items[k]);
}

void fill_firsts(const struct brush *brush, bool spans, uint32_t firsts[MOST_PIXELS + 1])
{
    size_t i = first_bar_from(brush->bars, clock_at(brush, brush->left));
    for (int x = brush->left; x <= brush->right; x++) {
        size_t before = i;
        i = next_bar_from(brush->bars, i, clock_at(brush, x));
        if (!spans)
            fetch_samples(brush, before, i);
        firsts[x - brush->left] = (uint32_t)i;
    }
}

/* ---- merged columns ---------------------------------------------------------------------------------------------- */

static const struct bar *longer_bar(const struct bar *a, const struct bar *b)
{
    return b->end - b->start > a->end - a->start ? b : a;
}

/* The longest of bars [i, end), or when there are many the longest of some of them. */
static const struct bar *longest_bar(const struct brush *brush, size_t i, size_t end)
{
    const struct bar *bars = brush->bars->items, *longest = &bars[i];
    size_t stride = ceil_div(end - i, SAMPLES);
    for (size_t k = i; k < end; k += stride)
        longest = longer_bar(longest, &bars[k]);
    return longest;
}

/* The same of lit bars: those at the places [first, end) of the list of lit bars. */
static const struct bar *longest_lit_bar(const struct brush *brush, size_t first, size_t end)
{
    const struct bar *bars = brush->bars->items;
    const uint32_t *lit = brush->lit->all;
    const struct bar *longest = &bars[lit[first]];
    size_t stride = ceil_div(end - first, SAMPLES);
    for (size_t k = first; k < end; k += stride)
        longest = longer_bar(longest, &bars[lit[k]]);
    return longest;
}

static bool is_lower(const void *item, const void *key)
{
    const uint32_t *bar = item;
    const size_t *i = key;
    return *bar < *i;
}

/* The bar of [i, end) whose colour the column has.  Any lit bar comes before one that is not lit. */
static const struct bar *bar_of_column(const struct brush *brush, size_t i, size_t end)
{
    const struct lit_bars *lit = brush->lit;
    size_t first = 0, next = 0;
    if (lit) {
        first = lower_bound(&i, lit->all, lit->n, sizeof *lit->all, is_lower);
        next = lower_bound_near(first, &end, lit->all, lit->n, sizeof *lit->all, is_lower);
    }
    if (first < next)
        return longest_lit_bar(brush, first, next);
    return longest_bar(brush, i, end);
}

/* Merged columns side by side, from pixel `left` on.  Each is as high as the lane at first, but for `cut` pixels at its
 * upper end and as many at its lower end. */
struct merged_columns {
    int left, n;
    int most_cut;
    uint16_t cut[MOST_PIXELS];
};

/* A lane that is hardly busy keeps two fifths of its height, so that its tasks are seen, also between hatched gaps. */
static int most_cut(const struct brush *brush) { return brush->height * 3 / 10; }

/* What counts as the busy share of a column with this bar: while others are dimmed, a lit one is drawn in full. */
static double shown_share(const struct brush *brush, const struct bar *bar, double busy)
{
    bool stands_out = brush->lit && is_lit(brush->view, brush->index, bar->record);
    return stands_out ? 1 : busy;
}

/* Draws the middle line of the next column, `width` pixels wide from pixel x on, of bar i and those after it that start
 * in it.  Returns the first bar that reaches beyond it. */
static size_t draw_column(const struct brush *brush, struct merged_columns *columns, int width, size_t i, int x)
{
    const struct bar *bars = brush->bars->items;
    uint64_t from = clock_at(brush, x), to = clock_at(brush, x + width);
    size_t first = i;
    double busy = 1;
    if (i > 0 && bars[i - 1].end > from) /* the one before reaches into the column */
        first = i - 1;
    size_t end = MAX(brush->firsts[x + width - brush->left], i + 1);
    uint64_t until = MIN(to, brush->track->last); /* a wide column may go beyond the trace's end */
    if (until > from)
        busy = (double)busy_from_to(&bars[first], &bars[end - 1], from, until) / (double)(until - from);
    const struct bar *shown = bar_of_column(brush, i, end);
    uint32_t colour = colour_of_bar(brush, shown);
    busy = shown_share(brush, shown, busy);
    fill(brush->view, columns->left + columns->n, brush->y + columns->most_cut, width, 1,
         blend_colours(PAPER, colour, 0.5 + 0.5 * busy));
    for (int k = 0; k < width; k++)
        columns->cut[columns->n + k] = (uint16_t)((1 - busy) * columns->most_cut);
    columns->n += width;
    brush->contents->pale |= busy < 0.5;
    return bars[end - 1].end > to ? end - 1 : end;
}

/* Is bar i merged into a column that ends at clock `to`? */
static bool is_merged(const struct brush *brush, size_t i, uint64_t to)
{
    const struct bar *bar = &brush->bars->items[i];
    return i < brush->bars->n && bar->start < to && bar->end - bar->start < brush->visible_ns;
}

/* Copies the middle line of the columns up and down, line by line: memory is written in its order. */
static void spread_columns(const struct brush *brush, const struct merged_columns *columns)
{
    struct canvas *canvas = brush->view->canvas;
    int middle = brush->y + columns->most_cut, below = brush->y + brush->height - 1;
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

int draw_columns(const struct brush *brush, int x, size_t *i)
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

/* ---- a short bar that stands alone ------------------------------------------------------------------------------- */

bool stands_alone(const struct brush *brush, size_t i)
{
    const struct bar *bar = &brush->bars->items[i];
    if (i > 0) {
        const struct bar *previous = &brush->bars->items[i - 1];
        bool previous_is_long = previous->end - previous->start >= brush->visible_ns;
        if (!previous_is_long && bar->start < previous->end + brush->visible_ns)
            return false;
    }
    if (i + 1 < brush->bars->n) {
        const struct bar *next = &brush->bars->items[i + 1];
        if (next->start < bar->start + brush->visible_ns)
            return false;
    }
    return true;
}

int draw_short_bar(const struct brush *brush, const struct bar *bar, int x)
{
    int width = 2 * brush->view->scale;
    double pixels = bar_x(brush, bar->end) - bar_x(brush, bar->start);
    double busy = shown_share(brush, bar, fmin(pixels / width, 1));
    int cut = (int)((1 - busy) * most_cut(brush));
    fill(brush->view, x, brush->y + cut, width, brush->height - 2 * cut,
         blend_colours(PAPER, colour_of_bar(brush, bar), 0.5 + 0.5 * busy));
    brush->contents->pale |= busy < 0.5;
    return MAX(edge_x(brush, bar->end), x + width);
}

/* ---- whole steps: shares of time --------------------------------------------------------------------------------- */

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
    uint64_t ns[GROUPS];
    uint64_t all = 0, before = 0;
    int high = MAX((int)(busy * brush->height + 0.5), MIN(brush->view->scale, brush->height));
    int top = brush->y + brush->height - high;
    sum_shares(brush->view, brush->index, lane, i, end, ns);
    for (size_t k = 0; k < GROUPS; k++)
        all += ns[k];
    for (size_t k = 0; k < GROUPS && all > 0; k++) {
        int from = (int)(high * (double)before / (double)all + 0.5);
        before += ns[k];
        int to = (int)(high * (double)before / (double)all + 0.5);
        if (to == from)
            continue;
        fill(brush->view, x, top + from, right - x, to - from, group_colour(brush->view, brush->track, k));
        if (brush->view->colour == BY_KIND)
            brush->contents->kind[k] = true;
        else
            brush->contents->plain |= k == GROUPS - 1;
    }
}

void draw_spans(const struct brush *brush, uint32_t lane)
{
    const struct bar *bars = brush->bars->items;
    const struct shares *shares = &brush->view->shares[brush->index];
    int x = edge_x(brush, shares->edges[0]);
    size_t i = bar_from(brush, shares->edges[0], x);
    for (size_t k = 1; k < shares->n_edges; k++) {
        uint64_t from = shares->edges[k - 1], to = shares->edges[k];
        int right = edge_x(brush, to);
        size_t end = bar_from(brush, to, right);
        size_t first = i > 0 && bars[i - 1].end > from ? i - 1 : i; /* one may reach into the span */
        if (end > first && right > x)
            draw_span(brush, lane, first, end, x, right,
                      (double)busy_from_to(&bars[first], &bars[end - 1], from, to) / (double)(to - from));
        x = right;
        i = end;
    }
}
