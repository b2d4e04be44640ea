/* move.c - a task of a step file is dragged elsewhere (see board/board.h).
 *
 * Where it goes follows from the picture in which it was taken up and from where the mouse is now, not from the way:
 * behind the last task of the lane, in the same step, whose middle is left of the dragged bar's.  The list is simulated
 * once per frame at most, and only where the place is another one than before.
 */
#include "view.h"

#include <fcntl.h>
#include <math.h>
#include <unistd.h>

static struct pick pick_task(const struct view *v, int track, uint32_t task, uint32_t step)
{
    return pick_of(v, track, trace_find_from(v->track[track]->trace, task, step, 0));
}

void take_up(struct view *v, const struct pick *p)
{
    const struct track *k = v->track[p->track];
    const struct trace *t = k->trace;
    struct gesture *g = &v->gesture;
    free(g->spot);
    *g = (struct gesture){p->track, p->copy.step, p->copy.task, .blocker = {.record = NOTHING}};
    g->spot = allocate(t->header.n_tasks, sizeof *g->spot);
    for (uint32_t i = 0; i < t->header.n_tasks; i++) {
        int64_t at = trace_find_from(t, i, g->step, 0);
        const struct trace_record *r = at == NO_RECORD ? NULL : &t->records[at];
        g->spot[i] = (struct spot){t->tasks[i].lane, r ? (axis_of(k, r->start) + axis_of(k, r->end)) / 2 : NAN};
    }
    g->grip = axis_at(v, v->mouse_x) - g->spot[g->task].middle;
    v->selected = *p;
}

/* Above or below the rows of lanes it stays on its own. */
static struct move place_under_mouse(const struct view *v)
{
    const struct gesture *g = &v->gesture;
    struct box rows = places_of(v).rows;
    const struct row *row = row_at(v, MAX(MIN(v->mouse_x, rows.x + rows.w - 1), rows.x), v->mouse_y);
    bool lane = row && row->kind == ROW_LANE && row->track == g->track;
    struct move m = {g->task, lane ? row->index : g->spot[g->task].lane, FIRST};
    double middle = axis_at(v, v->mouse_x) - g->grip;
    for (uint32_t i = 0; i < v->track[g->track]->trace->header.n_tasks; i++)
        if (i != g->task && g->spot[i].lane == m.lane && g->spot[i].middle < middle)
            m.behind = i;
    return m;
}

/* What the board shows by now; the task at that place is selected. */
static void show_board(struct view *v, int track, uint32_t task, uint32_t step)
{
    struct track *k = v->track[track];
    renew_track(k);
    const struct trace_step *s = find_step(k, v->anchor);
    k->zero = s ? s->work : k->zero;
    v->selected = pick_task(v, track, task, step);
    refresh(v);
}

void carry_task(struct view *v)
{
    struct gesture *g = &v->gesture;
    size_t at;
    if (v->drag != DRAG_TASK || !v->moved)
        return;
    struct move m = place_under_mouse(v);
    if (g->tries && m.lane == g->tried.lane && m.behind == g->tried.behind)
        return;
    char *wrong = try_move(v->track[g->track]->board, &m, &at);
    g->tried = m;
    g->tries = true;
    g->refused = wrong;
    show_board(v, g->track, wrong ? g->task : (uint32_t)at, g->step);
    g->blocker = wrong ? pick_task(v, g->track, (uint32_t)at, g->step) : pick_of(v, g->track, NOTHING);
    SAY(v, "%s", wrong ? wrong : "");
    free(wrong);
}

void put_down(struct view *v)
{
    struct gesture *g = &v->gesture;
    carry_task(v);
    uint32_t at = v->selected.copy.task; /* where it is now */
    if (g->refused || (at == g->task && g->tried.lane == g->spot[g->task].lane)) {
        call_off(v);
        return;
    }
    v->drag = DRAG_NOTHING;
    keep_move(v->track[g->track]->board);
    SAY(v, "every task reads the values that it read before: u undoes, s saves");
}

void call_off(struct view *v)
{
    v->drag = DRAG_NOTHING;
    if (!v->gesture.tries || v->gesture.refused)
        return;
    undo_move(v->track[v->gesture.track]->board);
    show_board(v, v->gesture.track, v->gesture.task, v->gesture.step);
}

/* ---- what is drawn ---------------------------------------------------------------------------------------------- */

/* What is in the way of the dragged task, and why. */
void draw_blocker(const struct view *v)
{
    const struct gesture *g = &v->gesture;
    const struct track *k = v->track[g->track];
    const struct pick *in_way = &g->blocker;
    const struct box rows = places_of(v).rows;
    int u = v->scale;
    const struct row *row =
        is_picked(in_way) ? row_of_lane(v, g->track, k->trace->tasks[in_way->copy.task].lane) : NULL;
    if (!row || !v->message[0])
        return;
    int wide = width_of(v, v->message) + 12 * u, y = row->y + row->height;
    int x = MAX(MIN((int)x_of(v, axis_of(k, in_way->copy.start)), rows.x + rows.w - wide), rows.x);
    draw_outline(v, in_way, ACCENT);
    fill(v, x, y, wide, 20 * u, ACCENT);
    put_text(v, x + 6 * u, y + 2 * u, v->width, PAPER, "%s", v->message);
}

/* ---- keys ------------------------------------------------------------------------------------------------------- */

/* Never over a file that was read: --output is claimed. */
static void save(struct view *v, const struct track *k)
{
    int length = (int)strlen(k->path) - (int)strlen(".txt");
    char *path = v->save_as ? copy_string(v->save_as) : format_string("%.*s.moved.txt", length, k->path);
    bool shown = false; /* whatever name leads there */
    int old = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    for (int i = 0; i < v->n_tracks; i++)
        shown |= leads_to(v->track[i]->path, old);
    close(old);
    struct problem *wrong = shown ? new_problem(EXIT_USAGE, "%s is shown here: -o FILE takes another name", path)
                                  : save_board(k->board, path);
    v->exit_code = wrong ? wrong->code : EXIT_OK;
    SAY(v, wrong ? "%s" : "wrote %s: yard plan --list takes it", wrong ? wrong->sentence : path);
    free(wrong), free(path);
}

void change_list(struct view *v, double what)
{
    const struct track *k = v->track[0]->board ? v->track[0] : v->track[v->n_tracks - 1];
    if (!k->board)
        SAY(v, "This is a trace.  The tasks of a step file can be moved, and saved: yard view FILE.txt");
    else if (what == SAVE)
        save(v, k);
    else if (!undo_move(k->board))
        SAY(v, "nothing has been moved");
    else {
        show_board(v, k != v->track[0], 0, v->anchor);
        v->selected.record = NOTHING;
        SAY(v, "undone: %zu moved", count_moves(k->board));
    }
}
