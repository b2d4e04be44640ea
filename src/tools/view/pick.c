/* pick.c - what is under the mouse, what is selected, its edges, the critical path, and what of all that is lit. */
#include "view.h"

#include <strings.h>

/* ---- hover and selection --------------------------------------------------------------------------------------- */

struct pick pick_of(const struct view *v, int track, int64_t record)
{
    struct pick p = {track, record, {0}};
    if (record != NOTHING)
        p.copy = v->track[track]->trace->records[record];
    return p;
}

bool is_picked(const struct pick *p) { return p->record != NOTHING; }

/* The bar at (x, y); of several in one column the longest; up to three pixels beside a narrow one count too. */
struct pick pick_at(const struct view *v, int x, int y)
{
    const struct row *row = row_at(v, x, y);
    if (!row || row->kind != ROW_LANE)
        return pick_of(v, 0, NOTHING);
    const struct track *k = v->track[row->track];
    const struct bars *b = &k->trace->bars[row->index];
    for (int near = 0; near <= 3; near++) {
        uint64_t from = clock_of(k, axis_at(v, x - near)), to = clock_of(k, axis_at(v, x + near + 1));
        size_t i = first_bar_in(b, from), longest = i, end = first_bar_from(b, to);
        for (size_t n = 0; i < end && n < 1000; i++, n++)
            if (b->bar[i].end - b->bar[i].start > b->bar[longest].end - b->bar[longest].start)
                longest = i;
        if (longest < end)
            return pick_of(v, row->track, (int64_t)b->bar[longest].record);
    }
    return pick_of(v, 0, NOTHING);
}

struct pick pick_behind(const struct view *v)
{
    const struct row *row = row_at(v, v->mouse_x, v->mouse_y);
    const struct track *k = row ? v->track[row->track] : NULL;
    const struct bars *b = row && row->kind == ROW_LANE ? &k->trace->bars[row->index] : NULL;
    size_t i = b ? first_bar_from(b, clock_of(k, axis_at(v, v->mouse_x))) : 0;
    return b && i < b->n ? pick_of(v, row->track, (int64_t)b->bar[i].record) : pick_of(v, 0, NOTHING);
}

void pick_neighbour(const struct view *v, struct pick *p, int by)
{
    const struct trace *t = v->track[p->track]->trace;
    const struct bars *b = &t->bars[t->tasks[p->copy.task].lane];
    size_t i = bar_of(t, (size_t)p->record);
    if (by < 0 ? i > 0 : i + 1 < b->n)
        *p = pick_of(v, p->track, (int64_t)b->bar[by < 0 ? i - 1 : i + 1].record);
}

/* ---- edges ----------------------------------------------------------------------------------------------------- */

static void add_link(struct links *l, int64_t from, int64_t to)
{
    if (from != NOTHING && to != NOTHING)
        *APPEND(l->link, l->n, l->cap) = (struct link_drawn){(size_t)from, (size_t)to};
}

struct links links_of_pick(const struct view *v, const struct pick *p)
{
    struct links l = {0};
    const struct trace *t = v->track[p->track]->trace;
    const struct trace_record *r = &p->copy;
    size_t here = (size_t)p->record;
    for (uint32_t i = 0; i < t->header.n_tasks; i++)
        for (uint32_t e = t->tasks[i].first_edge; e < t->tasks[i].first_edge + t->tasks[i].n_edges; e++) {
            const struct trace_edge *edge = &t->edges[e];
            uint32_t apart = edge->previous_step != 0;
            if (i == r->task)
                add_link(&l, trace_find_before(t, edge->from, r->step - apart, here), p->record);
            if (edge->from == r->task)
                add_link(&l, p->record, trace_find_from(t, i, r->step + apart, here));
        }
    return l;
}

/* ---- critical path --------------------------------------------------------------------------------------------- */

static int by_record(const void *a, const void *b) { return COMPARE(*(const size_t *)a, *(const size_t *)b); }

void find_critical_path(struct view *v)
{
    const struct track *k = v->track[0];
    const struct trace_step *step = find_step(k, v->anchor);
    struct trace_steps steps = trace_steps_of(k->trace, k->list);
    v->n_path = 0;
    if (!step)
        return;
    struct trace_path path = trace_critical_path(k->trace, &steps, (size_t)(step - k->steps->step));
    for (size_t i = 0; i < path.n; i++)
        *APPEND(v->path, v->n_path, v->cap_path) = path.hops[i].record;
    free(path.hops);
    SORT(v->path, v->n_path, by_record);
}

/* ---- lit or dimmed --------------------------------------------------------------------------------------------- */

bool is_lit(const struct view *v, int track, size_t record)
{
    const struct trace *t = v->track[track]->trace;
    if (v->search[0] && !strcasestr(t->tasks[t->records[record].task].name, v->search))
        return false;
    return !v->critical || track != 0 ||
           (v->n_path && bsearch(&record, v->path, v->n_path, sizeof *v->path, by_record));
}
