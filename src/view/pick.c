/* pick.c - what is under the mouse, what is selected, its edges, the critical path, and what of all that is lit. */
#include "view.h"

#include <stdlib.h>
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

void pick_again(const struct view *v, struct pick *p)
{
    if (is_picked(p))
        *p = pick_of(v, p->track, find_record(v->track[p->track], &p->copy));
}

static const struct bars *bars_of(const struct view *v, const struct pick *p)
{
    const struct track *k = v->track[p->track];
    return &k->lane[k->trace->tasks[p->copy.task].lane];
}

/* The bar at (x, y); of several in one column the longest; up to three pixels beside a narrow one count too. */
struct pick pick_at(const struct view *v, int x, int y)
{
    const struct row *row = row_at(v, x, y);
    if (!row || row->kind != ROW_LANE)
        return pick_of(v, 0, NOTHING);
    const struct track *k = v->track[row->track];
    const struct bars *b = &k->lane[row->index];
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

/* Move to the next bar on its lane (by = 1) or the one before (by = -1). */
void pick_neighbour(const struct view *v, struct pick *p, int by)
{
    const struct bars *b = bars_of(v, p);
    size_t i = first_bar_from(b, p->copy.start);
    while (i < b->n && b->bar[i].record != (size_t)p->record)
        i++;
    if (by < 0 ? i > 0 : i + 1 < b->n)
        *p = pick_of(v, p->track, (int64_t)b->bar[by < 0 ? i - 1 : i + 1].record);
}

/* The record of (task, step) in reach of `near` on the task's lane, before or behind it. */
static int64_t find_task(const struct track *k, uint32_t task, uint32_t step, uint64_t near)
{
    enum { REACH = 100000 };
    const struct bars *b = &k->lane[k->trace->tasks[task].lane];
    size_t middle = first_bar_from(b, near);
    for (size_t away = 0; away < REACH; away++) {
        size_t place[2] = {middle + away, middle - 1 - away}; /* the second wraps around below 0: then it is no bar */
        for (int side = 0; side < 2; side++) {
            if (place[side] >= b->n)
                continue;
            const struct trace_record *r = &k->trace->records[b->bar[place[side]].record];
            if (r->task == task && r->step == step)
                return (int64_t)b->bar[place[side]].record;
        }
        if (place[0] >= b->n && place[1] >= b->n)
            break;
    }
    return NOTHING;
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
    const struct track *k = v->track[p->track];
    const struct trace *t = k->trace;
    const struct trace_record *r = &p->copy;
    for (uint32_t i = 0; i < t->header.n_tasks; i++)
        for (uint32_t e = t->tasks[i].first_edge; e < t->tasks[i].first_edge + t->tasks[i].n_edges; e++) {
            const struct trace_edge *edge = &t->edges[e];
            uint32_t apart = edge->previous_step != 0;
            if (i == r->task)
                add_link(&l, find_task(k, edge->from, r->step - apart, r->start), p->record);
            if (edge->from == r->task)
                add_link(&l, p->record, find_task(k, i, r->step + apart, r->end));
        }
    return l;
}

/* ---- critical path --------------------------------------------------------------------------------------------- */

static int by_record(const void *a, const void *b) { return COMPARE(*(const size_t *)a, *(const size_t *)b); }

/* Two steps of the trace, as a trace of its own; `number`: the records' indices in the whole one. */
static struct trace cut_steps(const struct track *k, uint32_t first, uint32_t last, size_t **number)
{
    struct trace cut = *k->trace;
    size_t cap = 0, cap_number = 0, n_number = 0;
    cut.records = NULL;
    cut.n_records = 0;
    *number = NULL;
    for (size_t i = 0; i < k->trace->n_records; i++) {
        const struct trace_record *r = &k->trace->records[i];
        if (r->step >= first && r->step <= last && k->trace->tasks[r->task].list == k->list) {
            *APPEND(cut.records, cut.n_records, cap) = *r;
            *APPEND(*number, n_number, cap_number) = i;
        }
    }
    return cut;
}

/* Finds the path of the anchor step in the first trace: v->path, sorted. */
void find_critical_path(struct view *v)
{
    const struct track *k = v->track[0];
    size_t *number, step = 0;
    struct trace cut = cut_steps(k, v->anchor ? v->anchor - 1 : 0, v->anchor, &number);
    struct trace_steps steps = trace_steps_of(&cut, k->list);
    while (step + 1 < steps.n && steps.steps[step].step < v->anchor)
        step++;
    v->n_path = 0;
    if (steps.n) {
        struct trace_index *index = trace_index(&cut);
        struct trace_path path = trace_critical_path(&cut, &steps, index, step);
        for (size_t i = 0; i < path.n; i++)
            *APPEND(v->path, v->n_path, v->cap_path) = number[path.hops[i].record];
        free(path.hops);
        trace_index_free(index);
    }
    if (v->n_path)
        qsort(v->path, v->n_path, sizeof *v->path, by_record);
    trace_steps_free(&steps);
    free(cut.records);
    free(number);
}

/* ---- lit or dimmed --------------------------------------------------------------------------------------------- */

static bool matches(const struct view *v, const struct trace_task *task)
{
    return strcasestr(task->name, v->search) != NULL;
}

bool is_lit(const struct view *v, int track, size_t record)
{
    const struct trace *t = v->track[track]->trace;
    if (v->search[0] && !matches(v, &t->tasks[t->records[record].task]))
        return false;
    return !v->critical || track != 0 ||
           (v->n_path && bsearch(&record, v->path, v->n_path, sizeof *v->path, by_record));
}

size_t count_matches(const struct view *v)
{
    const struct trace *t = v->track[0]->trace;
    size_t n = 0;
    for (size_t i = 0; i < t->header.n_tasks; i++)
        n += t->tasks[i].list == v->track[0]->list && matches(v, &t->tasks[i]);
    return n;
}
