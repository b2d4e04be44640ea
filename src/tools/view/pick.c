/* pick.c - what is under the mouse, what is selected, its edges, the critical path, and which bars are lit. */
#include "pick.h"

#include <strings.h>

/* ---- hover and selection ----------------------------------------------------------------------------------------- */

struct pick pick_of(const struct view *view, int track, int64_t record)
{
    struct pick pick = {.track = track, .record = record};
    if (record != NONE)
        pick.copy = view->tracks[track]->trace->records[record];
    return pick;
}

bool is_picked(const struct pick *pick) { return pick->record != NONE; }

static struct pick nothing_picked(const struct view *view) { return pick_of(view, 0, NONE); }

/* The index of the longest of bars [i, end), or of the first thousand of them. */
static size_t find_longest(const struct bars *bars, size_t i, size_t end)
{
    size_t longest = i;
    end = MIN(end, i + 1000);
    for (; i < end; i++)
        if (bars->items[i].end - bars->items[i].start > bars->items[longest].end - bars->items[longest].start)
            longest = i;
    return longest;
}

struct pick pick_at(const struct view *view, int x, int y)
{
    const struct view_row *row = row_at(view, x, y);
    if (!row || row->kind != ROW_LANE)
        return nothing_picked(view);
    const struct track *track = view->tracks[row->track];
    const struct bars *bars = &track->trace->bars[row->index];
    for (int near = 0; near <= 3; near++) {
        uint64_t from = clock_of(track, axis_at(view, x - near));
        uint64_t to = clock_of(track, axis_at(view, x + near + 1));
        size_t i = first_bar_in(bars, from), end = first_bar_from(bars, to);
        if (i < end)
            return pick_of(view, row->track, (int64_t)bars->items[find_longest(bars, i, end)].record);
    }
    return nothing_picked(view);
}

struct pick pick_after_gap(const struct view *view)
{
    const struct view_row *row = row_at(view, view->mouse.x, view->mouse.y);
    if (!row || row->kind != ROW_LANE || is_picked(&view->mouse.hover))
        return nothing_picked(view);
    const struct track *track = view->tracks[row->track];
    const struct bars *bars = &track->trace->bars[row->index];
    size_t i = first_bar_from(bars, clock_of(track, axis_at(view, view->mouse.x)));
    if (i == bars->n)
        return nothing_picked(view);
    return pick_of(view, row->track, (int64_t)bars->items[i].record);
}

void pick_neighbour(const struct view *view, struct pick *pick, int by)
{
    const struct trace *trace = view->tracks[pick->track]->trace;
    const struct bars *bars = &trace->bars[trace->tasks[pick->copy.task].lane];
    size_t i = bar_of(trace, (size_t)pick->record);
    if (by < 0 && i > 0)
        *pick = pick_of(view, pick->track, (int64_t)bars->items[i - 1].record);
    if (by >= 0 && i + 1 < bars->n)
        *pick = pick_of(view, pick->track, (int64_t)bars->items[i + 1].record);
}

/* ---- edges ------------------------------------------------------------------------------------------------------- */

static void add_edge_between(struct drawn_edges *edges, int64_t from, int64_t to)
{
    if (from != NONE && to != NONE) {
        GROW(edges->items, edges->cap, edges->n + 1);
        edges->items[edges->n++] = (struct drawn_edge){(size_t)from, (size_t)to};
    }
}

struct drawn_edges edges_of_pick(const struct view *view, const struct pick *pick)
{
    struct drawn_edges edges = {0};
    const struct trace *trace = view->tracks[pick->track]->trace;
    const struct trace_record *record = &pick->copy;
    size_t here = (size_t)pick->record;
    for (uint32_t i = 0; i < trace->header.n_tasks; i++) {
        const struct trace_task *task = &trace->tasks[i];
        for (uint32_t k = task->first_edge; k < task->first_edge + task->n_edges; k++) {
            const struct trace_edge *edge = &trace->edges[k];
            uint32_t apart = edge->previous_step != 0;
            if (i == record->task)
                add_edge_between(&edges, find_run_before(trace, edge->producer, record->step - apart, here),
                                 pick->record);
            if (edge->producer == record->task)
                add_edge_between(&edges, pick->record, find_run_from(trace, i, record->step + apart, here));
        }
    }
    return edges;
}

/* ---- critical path ----------------------------------------------------------------------------------------------- */

static int by_record(const void *left, const void *right)
{
    const size_t *a = left;
    const size_t *b = right;
    return COMPARE(*a, *b);
}

void fill_critical_path(struct view *view)
{
    const struct track *track = view->tracks[0];
    const struct trace_step *step = find_step(track, view->sight.anchor);
    struct trace_steps steps = steps_of_list(track->trace, track->list);
    view->selection.n_path = 0;
    if (!step)
        return;
    struct trace_path path = find_critical_path(track->trace, &steps, (size_t)(step - track->steps->items));
    for (size_t i = 0; i < path.n; i++) {
        GROW(view->selection.path, view->selection.cap_path, view->selection.n_path + 1);
        view->selection.path[view->selection.n_path++] = path.hops[i].record;
    }
    free(path.hops);
    SORT(view->selection.path, view->selection.n_path, by_record);
}

/* ---- lit or dimmed ----------------------------------------------------------------------------------------------- */

bool is_lit(const struct view *view, int track, size_t record)
{
    const struct trace *trace = view->tracks[track]->trace;
    if (view->selection.search[0] &&
        !strcasestr(trace->tasks[trace->records[record].task].name, view->selection.search))
        return false;
    if (!view->selection.critical || track != 0)
        return true;
    return view->selection.n_path > 0 &&
           bsearch(&record, view->selection.path, view->selection.n_path, sizeof *view->selection.path, by_record);
}

static void forget_highlight(struct highlight *highlight)
{
    for (uint32_t i = 0; i < highlight->n_lanes; i++)
        free(highlight->lanes[i].all);
    free(highlight->lanes);
    *highlight = (struct highlight){.lanes = NULL};
}

void forget_lit(struct view *view)
{
    for (int k = 0; k < MOST_TRACKS; k++)
        forget_highlight(&view->selection.highlights[k]);
}

static void add_lit_bar(struct highlight *highlight, uint32_t lane, size_t bar)
{
    struct lit_bars *lane_bars = &highlight->lanes[lane];
    GROW(lane_bars->all, lane_bars->cap, lane_bars->n + 1);
    lane_bars->all[lane_bars->n++] = (uint32_t)bar;
}

/* Adds the bars on the critical path, of tasks that the search finds.  found: by task. */
static void add_lit_path(const struct view *view, struct highlight *highlight, const struct trace *trace,
                         const bool *found)
{
    for (size_t i = 0; i < view->selection.n_path; i++) {
        size_t record = view->selection.path[i];
        uint32_t task = trace->records[record].task;
        if (found[task])
            add_lit_bar(highlight, trace->tasks[task].lane, bar_of(trace, record));
    }
}

/* Adds all bars of tasks that the search finds. */
static void add_all_lit_bars(struct highlight *highlight, const struct trace *trace, const bool *found)
{
    for (uint32_t lane = 0; lane < trace->header.n_lanes; lane++)
        for (size_t i = 0; i < trace->bars[lane].n; i++)
            if (found[trace->bars[lane].items[i].task])
                add_lit_bar(highlight, lane, i);
}

static void add_lit_bars(const struct view *view, struct highlight *highlight, int track)
{
    const struct trace *trace = view->tracks[track]->trace;
    bool *found = allocate(trace->header.n_tasks, sizeof *found);
    for (uint32_t i = 0; i < trace->header.n_tasks; i++)
        found[i] = strcasestr(trace->tasks[i].name, highlight->search) != NULL;
    if (highlight->critical)
        add_lit_path(view, highlight, trace, found);
    else
        add_all_lit_bars(highlight, trace, found);
    free(found);
}

/* A search looks at all bars, so what it has found is kept until the word or the trace is another one.  A critical path
 * is short, and may be another step's. */
void fill_lit(struct view *view)
{
    const struct view_selection *selection = &view->selection;
    for (int k = 0; k < view->n_tracks; k++) {
        struct highlight *highlight = &view->selection.highlights[k];
        const struct track *track = view->tracks[k];
        bool critical = selection->critical && k == 0, dims = critical || selection->search[0];
        bool same_search = strcmp(highlight->search, selection->search) == 0 && highlight->changes == track->changes;
        bool keeps = same_search && !critical && !highlight->critical;
        if (highlight->lanes && dims && keeps)
            continue;
        forget_highlight(highlight);
        if (!dims)
            continue;
        highlight->n_lanes = track->trace->header.n_lanes;
        highlight->lanes = allocate(highlight->n_lanes, sizeof *highlight->lanes);
        highlight->critical = critical;
        highlight->changes = track->changes;
        snprintf(highlight->search, sizeof highlight->search, "%s", selection->search);
        add_lit_bars(view, highlight, k);
    }
}
