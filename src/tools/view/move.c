/* move.c - a task of a step file is dragged elsewhere (see board/board.h).
 *
 * Its new place follows from the picture in which it was taken up and from where the mouse is now, not from the mouse's
 * way: after the last task of the lane, in the same step, whose middle is left of the dragged bar's.  The list is
 * simulated at most once per frame, and only where the place is another one than before.
 */
#include "act.h"

#include <fcntl.h>
#include <math.h>
#include <unistd.h>

/* The record of a task in a step. */
static struct pick pick_task(const struct view *v, int track, uint32_t task, uint32_t step)
{
    return pick_of(v, track, trace_find_from(v->track[track]->trace, task, step, 0));
}

static struct bar_spot spot_of(const struct track *track, uint32_t task, uint32_t step)
{
    const struct trace *t = track->trace;
    struct bar_spot spot = {t->tasks[task].lane, NAN};
    int64_t at = trace_find_from(t, task, step, 0);
    if (at != NONE)
        spot.middle = (axis_of(track, t->records[at].start) + axis_of(track, t->records[at].end)) / 2;
    return spot;
}

void take_up(struct view *v, const struct pick *p)
{
    const struct track *track = v->track[p->track];
    const uint32_t n_tasks = track->trace->header.n_tasks;
    struct gesture *g = &v->mouse.gesture;
    free(g->spot);
    *g = (struct gesture){.track = p->track, .step = p->copy.step, .task = p->copy.task, .blocker = {.record = NONE}};
    g->spot = allocate(n_tasks, sizeof *g->spot);
    for (uint32_t i = 0; i < n_tasks; i++)
        g->spot[i] = spot_of(track, i, g->step);
    g->grip = axis_at(v, v->mouse.x) - g->spot[g->task].middle;
    v->selection.task = *p;
}

/* Above or below the rows of lanes the task stays on its own lane. */
static struct move place_under_mouse(const struct view *v)
{
    const struct gesture *g = &v->mouse.gesture;
    const struct box rows = places_of(v).rows;
    const int x = MAX(MIN(v->mouse.x, rows.x + rows.w - 1), rows.x);
    const struct view_row *row = row_at(v, x, v->mouse.y);
    bool lane = row && row->kind == ROW_LANE && row->track == g->track;
    struct move m = {.task = g->task, .lane = lane ? row->index : g->spot[g->task].lane, .behind = NONE};
    double middle = axis_at(v, v->mouse.x) - g->grip;
    for (uint32_t i = 0; i < v->track[g->track]->trace->header.n_tasks; i++)
        if (i != g->task && g->spot[i].lane == m.lane && g->spot[i].middle < middle)
            m.behind = i;
    return m;
}

/* Shows what the board has now, and selects a task. */
static void show_board(struct view *v, int track_index, uint32_t task, uint32_t step)
{
    struct track *track = v->track[track_index];
    renew_track(track);
    const struct trace_step *s = find_step(track, v->sight.anchor);
    if (s)
        track->zero = s->work;
    v->selection.task = pick_task(v, track_index, task, step);
    refresh(v);
}

void carry_task(struct view *v)
{
    struct gesture *g = &v->mouse.gesture;
    size_t at;
    if (v->mouse.drag != DRAG_TASK || !v->mouse.moved)
        return;
    struct move m = place_under_mouse(v);
    if (g->tries && m.lane == g->tried.lane && m.behind == g->tried.behind)
        return;
    char *wrong = try_move(v->track[g->track]->board, &m, &at);
    g->tried = m;
    g->tries = true;
    g->refused = wrong;
    show_board(v, g->track, wrong ? g->task : (uint32_t)at, g->step);
    if (wrong)
        g->blocker = pick_task(v, g->track, (uint32_t)at, g->step);
    else
        g->blocker.record = NONE;
    SAY(v, "%s", wrong ? wrong : "");
    free(wrong);
}

void put_down(struct view *v)
{
    struct gesture *g = &v->mouse.gesture;
    carry_task(v);
    uint32_t at = v->selection.task.copy.task; /* the index that it has now */
    if (g->refused || (at == g->task && g->tried.lane == g->spot[g->task].lane)) {
        call_off(v);
        return;
    }
    v->mouse.drag = DRAG_NOTHING;
    keep_move(v->track[g->track]->board);
    SAY(v, "every task reads the values that it read before: u undoes, s saves");
}

void call_off(struct view *v)
{
    v->mouse.drag = DRAG_NOTHING;
    if (!v->mouse.gesture.tries || v->mouse.gesture.refused)
        return;
    undo_move(v->track[v->mouse.gesture.track]->board);
    show_board(v, v->mouse.gesture.track, v->mouse.gesture.task, v->mouse.gesture.step);
}

/* ---- keys ------------------------------------------------------------------------------------------------------- */

/* Is the file at `path` one of those that are shown, whatever its name there is? */
static bool is_shown_file(const struct view *v, const char *path)
{
    bool shown = false;
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    for (int i = 0; i < v->n_tracks; i++)
        shown |= leads_to(v->track[i]->path, file);
    close(file);
    return shown;
}

/* It never writes over a file that was read: --output is claimed. */
static void save_track(struct view *v, const struct track *track)
{
    const int length = (int)strlen(track->path) - (int)strlen(".txt");
    char *path = v->save_as ? copy_string(v->save_as) : format_string("%.*s.moved.txt", length, track->path);
    struct problem *wrong;
    if (is_shown_file(v, path))
        wrong = new_problem(EXIT_USAGE, "%s is shown here: -o FILE takes another name", path);
    else
        wrong = save_board(track->board, path);
    if (wrong) {
        v->exit_code = wrong->code;
        SAY(v, "%s", wrong->sentence);
    } else {
        v->exit_code = EXIT_OK;
        SAY(v, "wrote %s: yard plan --list takes it", path);
    }
    free(wrong);
    free(path);
}

/* The index of the track with a board; NONE, and a message: there is none. */
static int find_board(struct view *v)
{
    for (int i = 0; i < v->n_tracks; i++)
        if (v->track[i]->board)
            return i;
    SAY(v, "This is a trace.  The tasks of a step file can be moved, and saved: yard view FILE.txt");
    return NONE;
}

void save_list(struct view *v)
{
    int track = find_board(v);
    if (track >= 0)
        save_track(v, v->track[track]);
}

void undo_last_move(struct view *v)
{
    int track = find_board(v);
    if (track < 0)
        return;
    struct board *b = v->track[track]->board;
    if (!undo_move(b)) {
        SAY(v, "nothing has been moved");
        return;
    }
    show_board(v, track, 0, v->sight.anchor);
    v->selection.task.record = NONE;
    SAY(v, "undone: %zu moved", count_moves(b));
}
