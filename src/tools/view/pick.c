/* pick.c - what is under the mouse, what is selected, its edges, the critical path, and which bars are lit. */
#include "pick.h"

#include <strings.h>

/* ---- hover and selection --------------------------------------------------------------------------------------- */

struct pick pick_of(const struct view *v, int track, int64_t record)
{
    struct pick p = {.track = track, .record = record};
    if (record != NONE)
        p.copy = v->track[track]->trace->records[record];
    return p;
}

bool is_picked(const struct pick *p) { return p->record != NONE; }

static struct pick nothing_picked(const struct view *v) { return pick_of(v, 0, NONE); }

/* The index of the longest of bars [i, end), or of the first thousand of them. */
static size_t find_longest(const struct bars *b, size_t i, size_t end)
{
    size_t longest = i;
    end = MIN(end, i + 1000);
    for (; i < end; i++)
        if (b->bar[i].end - b->bar[i].start > b->bar[longest].end - b->bar[longest].start)
            longest = i;
    return longest;
}

/* The bar at (x, y).  When there are several in one column it is the longest; a narrow one counts up to three pixels
 * beside it. */
struct pick pick_at(const struct view *v, int x, int y)
{
    const struct view_row *row = row_at(v, x, y);
    if (!row || row->kind != ROW_LANE)
        return nothing_picked(v);
    const struct track *track = v->track[row->track];
    const struct bars *b = &track->trace->bars[row->index];
    for (int near = 0; near <= 3; near++) {
        uint64_t from = clock_of(track, axis_at(v, x - near));
        uint64_t to = clock_of(track, axis_at(v, x + near + 1));
        size_t i = first_bar_in(b, from), end = first_bar_from(b, to);
        if (i < end)
            return pick_of(v, row->track, (int64_t)b->bar[find_longest(b, i, end)].record);
    }
    return nothing_picked(v);
}

struct pick pick_after_gap(const struct view *v)
{
    const struct view_row *row = row_at(v, v->mouse.x, v->mouse.y);
    if (!row || row->kind != ROW_LANE)
        return nothing_picked(v);
    const struct track *track = v->track[row->track];
    const struct bars *b = &track->trace->bars[row->index];
    size_t i = first_bar_from(b, clock_of(track, axis_at(v, v->mouse.x)));
    if (i == b->n)
        return nothing_picked(v);
    return pick_of(v, row->track, (int64_t)b->bar[i].record);
}

void pick_neighbour(const struct view *v, struct pick *p, int by)
{
    const struct trace *t = v->track[p->track]->trace;
    const struct bars *b = &t->bars[t->tasks[p->copy.task].lane];
    size_t i = bar_of(t, (size_t)p->record);
    if (by < 0 && i > 0)
        *p = pick_of(v, p->track, (int64_t)b->bar[i - 1].record);
    if (by >= 0 && i + 1 < b->n)
        *p = pick_of(v, p->track, (int64_t)b->bar[i + 1].record);
}

/* ---- edges ----------------------------------------------------------------------------------------------------- */

static void add_drawn_link(struct links *l, int64_t from, int64_t to)
{
    if (from != NONE && to != NONE)
        *APPEND(l->link, l->n, l->cap) = (struct link_drawn){(size_t)from, (size_t)to};
}

struct links links_of_pick(const struct view *v, const struct pick *p)
{
    struct links l = {0};
    const struct trace *t = v->track[p->track]->trace;
    const struct trace_record *r = &p->copy;
    const size_t here = (size_t)p->record;
    for (uint32_t i = 0; i < t->header.n_tasks; i++) {
        const struct trace_task *task = &t->tasks[i];
        for (uint32_t e = task->first_edge; e < task->first_edge + task->n_edges; e++) {
            const struct trace_edge *edge = &t->edges[e];
            const uint32_t apart = edge->previous_step != 0;
            if (i == r->task)
                add_drawn_link(&l, trace_find_before(t, edge->producer, r->step - apart, here), p->record);
            if (edge->producer == r->task)
                add_drawn_link(&l, p->record, trace_find_from(t, i, r->step + apart, here));
        }
    }
    return l;
}

/* ---- critical path --------------------------------------------------------------------------------------------- */

COMPARISON(by_record, size_t, COMPARE(*a, *b))

void find_critical_path(struct view *v)
{
    const struct track *track = v->track[0];
    const struct trace_step *step = find_step(track, v->sight.anchor);
    struct trace_steps steps = trace_steps_of(track->trace, track->list);
    v->selection.n_path = 0;
    if (!step)
        return;
    struct trace_path path = trace_critical_path(track->trace, &steps, (size_t)(step - track->steps->step));
    for (size_t i = 0; i < path.n; i++)
        *APPEND(v->selection.path, v->selection.n_path, v->selection.cap_path) = path.hops[i].record;
    free(path.hops);
    SORT(v->selection.path, v->selection.n_path, by_record);
}

/* ---- lit or dimmed --------------------------------------------------------------------------------------------- */

bool is_lit(const struct view *v, int track, size_t record)
{
    const struct trace *t = v->track[track]->trace;
    if (v->selection.search[0] && !strcasestr(t->tasks[t->records[record].task].name, v->selection.search))
        return false;
    if (!v->selection.critical || track != 0)
        return true;
    return v->selection.n_path > 0 &&
           bsearch(&record, v->selection.path, v->selection.n_path, sizeof *v->selection.path, by_record);
}
