/* move.c - a task of a step file is dragged elsewhere (see board/board.h).
 *
 * Its new place follows from the picture in which it was taken up and from where the mouse is now, not from the mouse's
 * way: after the last task of the lane, in the same step, whose middle is left of the dragged bar's.  The list is
 * simulated at most once per frame, and only where the place is another one than before.
 */
#include "act.h"
#include "draw.h"

#include <fcntl.h>
#include <math.h>
#include <unistd.h>

/* The record of a task in a step. */
static struct pick pick_task(const struct view *view, int track, uint32_t task, uint32_t step)
{
    return pick_of(view, track, find_run_from(view->tracks[track]->trace, task, step, 0));
}

static struct bar_spot spot_of(const struct track *track, uint32_t task, uint32_t step)
{
    const struct trace *trace = track->trace;
    struct bar_spot spot = {trace->tasks[task].lane, NAN};
    int64_t at = find_run_from(trace, task, step, 0);
    if (at != NONE)
        spot.middle = (axis_of(track, trace->records[at].start) + axis_of(track, trace->records[at].end)) / 2;
    return spot;
}

void take_up(struct view *view, const struct pick *pick)
{
    const struct track *track = view->tracks[pick->track];
    uint32_t n_tasks = track->trace->header.n_tasks;
    struct gesture *gesture = &view->mouse.gesture;
    free(gesture->spots);
    *gesture = (struct gesture){
        .track = pick->track, .step = pick->copy.step, .task = pick->copy.task, .blocker = {.record = NONE}};
    gesture->spots = allocate(n_tasks, sizeof *gesture->spots);
    for (uint32_t i = 0; i < n_tasks; i++)
        gesture->spots[i] = spot_of(track, i, gesture->step);
    gesture->grip = axis_at(view, view->mouse.x) - gesture->spots[gesture->task].middle;
    view->selection.task = *pick;
}

/* Above or below the rows of lanes the task stays on its own lane. */
static struct move place_under_mouse(const struct view *view)
{
    const struct gesture *gesture = &view->mouse.gesture;
    const struct box rows = places_of(view).rows;
    int x = MAX(MIN(view->mouse.x, rows.x + rows.w - 1), rows.x);
    const struct view_row *row = row_at(view, x, view->mouse.y);
    bool lane = row && row->kind == ROW_LANE && row->track == gesture->track;
    struct move move = {
        .task = gesture->task, .lane = lane ? row->index : gesture->spots[gesture->task].lane, .behind = NONE};
    double middle = axis_at(view, view->mouse.x) - gesture->grip;
    for (uint32_t i = 0; i < view->tracks[gesture->track]->trace->header.n_tasks; i++)
        if (i != gesture->task && gesture->spots[i].lane == move.lane && gesture->spots[i].middle < middle)
            move.behind = i;
    return move;
}

/* Shows what the board has now, and selects a task. */
static void show_board(struct view *view, int track_index, uint32_t task, uint32_t number)
{
    struct track *track = view->tracks[track_index];
    renew_track(track);
    forget_shares(view);
    const struct trace_step *step = find_step(track, view->sight.anchor);
    if (step)
        track->zero = step->work;
    view->selection.task = pick_task(view, track_index, task, number);
    refresh_view(view);
}

void carry_task(struct view *view)
{
    struct gesture *gesture = &view->mouse.gesture;
    size_t at;
    if (view->mouse.drag != DRAG_TASK || !view->mouse.moved)
        return;
    struct move move = place_under_mouse(view);
    if (gesture->tries && move.lane == gesture->tried.lane && move.behind == gesture->tried.behind)
        return;
    struct problem *problem = try_move(view->tracks[gesture->track]->board, &move, &at);
    gesture->tried = move;
    gesture->tries = true;
    gesture->refused = problem != NULL;
    show_board(view, gesture->track, problem ? gesture->task : (uint32_t)at, gesture->step);
    if (problem)
        gesture->blocker = pick_task(view, gesture->track, (uint32_t)at, gesture->step);
    else
        gesture->blocker.record = NONE;
    show_message(view, "%s", problem ? problem->sentence : "");
    free(problem);
}

void put_down(struct view *view)
{
    struct gesture *gesture = &view->mouse.gesture;
    carry_task(view);
    uint32_t at = view->selection.task.copy.task; /* the index that it has now */
    if (gesture->refused || (at == gesture->task && gesture->tried.lane == gesture->spots[gesture->task].lane)) {
        call_off(view);
        return;
    }
    view->mouse.drag = DRAG_NOTHING;
    keep_move(view->tracks[gesture->track]->board);
    show_message(view, "every task reads the values that it read before: u undoes, s saves");
}

void call_off(struct view *view)
{
    view->mouse.drag = DRAG_NOTHING;
    if (!view->mouse.gesture.tries || view->mouse.gesture.refused)
        return;
    undo_move(view->tracks[view->mouse.gesture.track]->board);
    show_board(view, view->mouse.gesture.track, view->mouse.gesture.task, view->mouse.gesture.step);
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

/* Is the file at `path` one of those that are shown, whatever its name there is? */
static bool is_shown_file(const struct view *view, const char *path)
{
    bool shown = false;
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    for (int i = 0; i < view->n_tracks; i++)
        shown |= leads_to(view->tracks[i]->path, file);
    close(file);
    return shown;
}

/* Never writes over a file that was read, since --output is claimed. */
static void save_track(struct view *view, const struct track *track)
{
    int length = (int)strlen(track->path) - (int)strlen(".txt");
    char *path = view->save_as ? copy_string(view->save_as) : format_string("%.*s.moved.txt", length, track->path);
    struct problem *problem;
    if (is_shown_file(view, path))
        problem = new_problem(EXIT_USAGE, "%s is shown here: -o FILE takes another name", path);
    else
        problem = save_board(track->board, path);
    if (problem) {
        view->exit_code = problem->code;
        show_message(view, "%s", problem->sentence);
    } else {
        view->exit_code = EXIT_OK;
        show_message(view, "wrote %s: `yard plan --list` takes it", path);
    }
    free(problem);
    free(path);
}

/* The index of the track with a board; NONE, and a message: there is none. */
static int board_or_message(struct view *view)
{
    for (int i = 0; i < view->n_tracks; i++)
        if (view->tracks[i]->board)
            return i;
    show_message(view, "this is a trace; tasks of a step file can be moved and saved: `yard view FILE.txt`");
    return NONE;
}

void save_list(struct view *view)
{
    int track = board_or_message(view);
    if (track >= 0)
        save_track(view, view->tracks[track]);
}

void undo_last_move(struct view *view)
{
    int track = board_or_message(view);
    if (track < 0)
        return;
    struct board *board = view->tracks[track]->board;
    if (!undo_move(board)) {
        show_message(view, "nothing has been moved");
        return;
    }
    show_board(view, track, 0, view->sight.anchor);
    view->selection.task.record = NONE;
    show_message(view, "undone: %zu moved", count_moves(board));
}
