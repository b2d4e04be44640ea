/* shares.c - far out: the shares that colours have of the time of whole steps.
 *
 * Where a step is a few pixels wide, a column of pixels shows a part of a step that chance has chosen, and neighbours
 * differ though all steps are alike.  So whole steps are taken together, as many as are wide enough to be seen.  Such a
 * *span* begins at a step whose number is a multiple of some power of two, so it is the same wherever the view is
 * moved.  An evaluation that is as wide is a span of its own.
 *
 *     |B|F|B|W|F|B|F|        |FFFFFFF|FFFFFFF|
 *     |B|F|B|W|F|B|F|   ->   |BBBBBBB|BBBBBBB|    a span of four steps, and another one
 *     |B|F|B|W|F|B|F|        |WWWWWWW|WWWWWWW|
 *
 * A span may have ten thousand bars.  For each block of a lane's bars there are sums of what came before it, by colour.
 */
#include "draw.h"

#include <math.h>

enum { SPAN_WIDTH = 12 }; /* dots */

/* ---- spans ------------------------------------------------------------------------------------------------------- */

/* How many steps a span has; 1: a step is wide enough to show what is in it. */
static uint32_t steps_of_span(const struct view *view, const struct track *track)
{
    const struct trace_step_list *steps = track->steps;
    double pixels = places_of(view).rows.w / (view->sight.to - view->sight.from);
    uint32_t n = 1;
    if (steps->n < 2)
        return 1;
    double all = axis_of(track, steps->items[steps->n - 1].work) - axis_of(track, steps->items[0].work);
    double wide = pixels * all / (double)(steps->n - 1);
    while (n * wide < SPAN_WIDTH * view->scale && n < steps->n)
        n *= 2;
    return n;
}

bool is_far_out(const struct view *view, const struct track *track)
{
    return !view->show_causes && steps_of_span(view, track) > 1;
}

static bool begins_span(const struct trace_step *steps, size_t i, uint32_t span)
{
    return i == 0 || steps[i].step % span == 0;
}

/* Is the time from one clock to another as wide as spans of steps are?  Narrower ones would only cost time. */
static bool is_wide(const struct view *view, const struct track *track, uint64_t from, uint64_t to)
{
    double pixels = places_of(view).rows.w / (view->sight.to - view->sight.from);
    return (axis_of(track, to) - axis_of(track, from)) * pixels >= SPAN_WIDTH * view->scale;
}

/* The step with which the span begins that goes on at the left edge, or else the first one. */
static size_t first_of_spans(const struct view *view, const struct track *track, uint32_t span)
{
    const struct trace_step *steps = track->steps->items;
    uint64_t from = clock_of(track, view->sight.from);
    size_t i = first_step_from(steps, track->steps->n, from + 1);
    if (i > 0)
        i--; /* this step is under way there */
    while (!begins_span(steps, i, span))
        i--;
    return i;
}

/* The clock at which step i begins, or for the first step what ran before it. */
static uint64_t begin_of_step(const struct track *track, size_t i)
{
    uint64_t work = track->steps->items[i].work;
    return i > 0 ? work : MIN(work, track->trace->records[0].start);
}

static void add_span_edge(struct shares *shares, uint64_t clock)
{
    GROW(shares->edges, shares->cap_edges, shares->n_edges + 1);
    shares->edges[shares->n_edges++] = clock;
}

/* Finds the clocks between which the spans in sight lie. */
static void fill_span_edges(const struct view *view, const struct track *track, struct shares *shares)
{
    const struct trace_step *steps = track->steps->items;
    size_t n = track->steps->n;
    uint64_t to = clock_of(track, view->sight.to);
    uint32_t span = steps_of_span(view, track);
    uint64_t edge = 0; /* the last one */
    bool after = true; /* a span begins at step i, whatever its number is, since an interlude was before it */
    shares->n_edges = 0;
    for (size_t i = first_of_spans(view, track, span); i < n && edge < to; i++) {
        const struct interlude interlude = find_interlude(track, &steps[i]);
        if (after || begins_span(steps, i, span)) {
            edge = begin_of_step(track, i);
            add_span_edge(shares, edge);
        }
        after = interlude.name && is_wide(view, track, interlude.start, i + 1 < n ? steps[i + 1].work : track->last);
        if (after) {
            edge = interlude.start;
            add_span_edge(shares, edge);
        }
    }
    if (edge < to)
        add_span_edge(shares, MAX(track->last, edge));
}

static int pixel_of_edge(const struct view *view, int track, size_t edge)
{
    return x_in_rows(view, axis_of(view->tracks[track], view->shares[track].edges[edge]));
}

/* The first of the track's edges that is right of x; n_edges: none is. */
static size_t first_edge_after(const struct view *view, int track, int x)
{
    size_t low = 0, high = view->shares[track].n_edges;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (pixel_of_edge(view, track, middle) <= x)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int span_end(const struct view *view, int track, int x)
{
    size_t i = first_edge_after(view, track, x);
    return i > 0 && i < view->shares[track].n_edges ? pixel_of_edge(view, track, i) : x + 1;
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

static void add_bar(const struct view *view, const struct track *track, const struct bar *bar, uint64_t ns[GROUPS])
{
    ns[colour_group(view, track, bar->task)] += bar->end - bar->start;
}

/* A late bar shifts those after it, so the sums of their blocks are no longer right. */
static bool is_valid(const struct share_block *block, const struct bar *last)
{
    return block->end == last->end && block->busy == last->busy;
}

/* Updates the sums of a lane, after bars have been added to it. */
static void update_lane_sums(const struct view *view, const struct track *track, uint32_t lane,
                             struct lane_shares *shares)
{
    const struct bars *bars = &track->trace->bars[lane];
    size_t n = bars->n / BARS_IN_BLOCK; /* whole blocks */
    shares->n = MIN(shares->n, n);
    while (shares->n > 0 && !is_valid(&shares->blocks[shares->n - 1], &bars->items[shares->n * BARS_IN_BLOCK - 1]))
        shares->n--;
    while (shares->n < n) {
        size_t first = shares->n * BARS_IN_BLOCK;
        GROW(shares->blocks, shares->cap, shares->n + 1);
        struct share_block *block = &shares->blocks[shares->n++];
        const struct bar *last = &bars->items[first + BARS_IN_BLOCK - 1];
        if (shares->n > 1)
            memcpy(block->ns, shares->blocks[shares->n - 2].ns, sizeof block->ns);
        else
            memset(block->ns, 0, sizeof block->ns);
        for (const struct bar *bar = &bars->items[first]; bar <= last; bar++)
            add_bar(view, track, bar, block->ns);
        block->end = last->end;
        block->busy = last->busy;
    }
}

static void forget_shares_of(struct shares *shares)
{
    for (uint32_t i = 0; i < shares->n_lanes; i++)
        free(shares->lanes[i].blocks);
    free(shares->lanes);
    free(shares->edges);
    *shares = (struct shares){.lanes = NULL};
}

void forget_shares(struct view *view)
{
    for (int k = 0; k < MOST_TRACKS; k++)
        forget_shares_of(&view->shares[k]);
}

void fill_shares(struct view *view)
{
    for (int k = 0; k < view->n_tracks; k++) {
        const struct track *track = view->tracks[k];
        struct shares *shares = &view->shares[k];
        if (!is_far_out(view, track))
            continue;
        if (shares->colour != view->colour)
            forget_shares_of(shares);
        if (!shares->lanes) {
            shares->n_lanes = track->trace->header.n_lanes;
            shares->lanes = allocate(shares->n_lanes, sizeof *shares->lanes);
            shares->colour = view->colour;
        }
        for (uint32_t lane = 0; lane < shares->n_lanes; lane++)
            update_lane_sums(view, track, lane, &shares->lanes[lane]);
        fill_span_edges(view, track, shares);
    }
}

void sum_shares(const struct view *view, int track_index, uint32_t lane, size_t i, size_t end, uint64_t ns[GROUPS])
{
    const struct track *track = view->tracks[track_index];
    const struct lane_shares *shares = &view->shares[track_index].lanes[lane];
    memset(ns, 0, GROUPS * sizeof *ns);
    if (end - i < FEW_BARS) {
        for (size_t k = i; k < end; k++)
            add_bar(view, track, &track->trace->bars[lane].items[k], ns);
        return;
    }
    /* A block in which a span ends counts as the next one's, so that each counts once. */
    size_t before = i / BARS_IN_BLOCK, after = end / BARS_IN_BLOCK;
    for (size_t k = 0; k < GROUPS; k++)
        ns[k] = shares->blocks[after - 1].ns[k] - (before > 0 ? shares->blocks[before - 1].ns[k] : 0);
}
