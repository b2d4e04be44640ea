/* board.c - moves tasks of a list, as a person asks, and simulates and proves each move (see board.h).
 *
 * The list itself is never placed: forecast_list_within() places, orders and simulates a draft of it and shows that to
 * take_simulation(), which writes the trace and proves.  Before a move the position and lane of each task are noted; an
 * undo restores them.
 */
#include "board.h"
#include "trainer/base/module.h"

#include "planning/console/numbers.h"
#include "planning/lists/lists.h"
#include "planning/pass/edit.h"
#include "planning/predict/forecast.h"
#include "planning/proof/proof.h"
#include "planning/trace/trace.h"
#include "trainer/base/json.h"
#include "trainer/file/file.h"

#include <math.h>

struct task_place { /* one position of the list: the task that is there, and its lane */
    const struct task *task;
    struct lane *lane;
};
struct figures {
    double period; /* seconds */
    size_t peak;   /* bytes that the fullest device holds */
};
struct board {
    const char *path;
    char *trace;
    struct list *list;
    struct values *values;       /* what reads find in the list as written; the proofs compare with them */
    struct figures written, now; /* the list as written, and as it is now */
    struct task_place **before;  /* by move: [tasks] all positions of the list as they were before the move */
    size_t n_moves, cap_moves;
    bool tries;              /* true: the last move is only tried, and not kept yet */
    struct problem *problem; /* what the proof says; NULL: all is well */
};

/* ---- simulation and proof ---------------------------------------------------------------------------------------- */

size_t count_moves(const struct board *board) { return board->tries ? board->n_moves - 1 : board->n_moves; }

/* The line above the picture: period and peak as they are now and, once a task was moved, as they were in the file.
 * The caller frees it. */
static char *format_title(const struct board *board)
{
    char period[NUMBER_TEXT], peak[NUMBER_TEXT], written_period[NUMBER_TEXT], written_peak[NUMBER_TEXT];
    format_ns(period, 1e9 * board->now.period);
    format_bytes(peak, (double)board->now.peak);
    if (board->n_moves == 0)
        return format_string("%s   period %s   needs %s", board->path, period, peak);
    format_ns(written_period, 1e9 * board->written.period);
    format_bytes(written_peak, (double)board->written.peak);
    return format_string("%s   period %s → %s   needs %s → %s   moved %zu", board->path, written_period, period,
                         written_peak, peak, board->n_moves);
}

static struct figures figures_of(const struct simulation *simulation)
{
    const struct list *list = simulation->list;
    struct figures figures = {.period = simulation->period};
    for (int d = 0; d <= list->pool->machine->n_devices; d++)
        figures.peak = MAX(figures.peak, list->extra.peak_total[d]);
    return figures;
}

/* Notes the figures of a simulation, writes its trace, and proves that the list means what it meant as written. */
static void take_simulation(void *context, const struct simulation *simulation)
{
    struct board *board = context;
    board->now = figures_of(simulation);
    bool is_first = !board->values;
    if (is_first) {
        board->written = board->now;
        board->values = hash_values(board->list);
    }
    char *title = format_title(board);
    write_simulation(simulation, board->trace, title);
    free(title);
    board->problem = verify_devices(simulation->list);
    if (!board->problem)
        board->problem = verify_list(simulation->list, board->values);
}

/* NULL, or why the list as it is now cannot be; the caller frees it. */
static struct problem *simulate_board(struct board *board)
{
    board->problem = NULL;
    struct forecast forecast = forecast_list_within(board->list, NULL, INFINITY, take_simulation, board);
    struct problem *problem = board->problem;
    if (forecast.problem) { /* it was not simulated, so take_simulation() was not called */
        problem = forecast.problem;
        forecast.problem = NULL;
    }
    free_forecast(&forecast);
    return problem;
}

/* ---- the board --------------------------------------------------------------------------------------------------- */

struct board *open_board(const char *path, double clip)
{
    struct board *board = allocate(1, sizeof *board);
    *board = (struct board){.path = path, .trace = private_trace_path(), .list = read_list(path)};
    if (clip > 0)
        gate_updates(board->list);
    struct problem *problem = simulate_board(board);
    if (problem) {
        remove(board->trace);
        fail(EXIT_USAGE, "%s: %s", path, problem->sentence); /* the mistake is in the user's file, whatever it is */
    }
    return board;
}

const char *board_trace(const struct board *board) { return board->trace; }

/* ---- moves ------------------------------------------------------------------------------------------------------- */

/* Restores places and lanes as they were before the last move. */
static void bring_back(struct board *board)
{
    const struct list *list = board->list;
    board->n_moves--;
    struct task_place *places = board->before[board->n_moves];
    size_t *positions = allocate(list->n, sizeof *positions);
    for (size_t i = 0; i < list->n; i++)
        positions[i] = places[i].task->index;
    permute_tasks(board->list, 0, positions, list->n);
    for (size_t i = 0; i < list->n; i++)
        list->tasks[i]->lane = places[i].lane;
    board->tries = false;
    free(positions);
    free(places);
}

/* "h.1.attn needs grad.3, which loss writes": why the order of two tasks of the list must stay. */
static struct problem *say_obstacle(const struct list *list, const struct obstacle *obstacle)
{
    char first[LAYER_AND_MICRO], second[LAYER_AND_MICRO];
    const char *verb = "needs", *why = "is part of";
    const char *thing = "the norm of all gradients (--clip)";
    if (obstacle->over) {
        bool writes = touches_bytes(obstacle->first, obstacle->over, ACCESS_WRITE);
        bool reads = touches_bytes(obstacle->second, obstacle->over, ACCESS_READ);
        verb = writes && reads ? "needs" : "overwrites";
        thing = obstacle->over->name;
        why = writes ? "writes" : "reads before";
    } else if (is_after(list, obstacle->second, obstacle->first, SAME_STEP)) {
        return new_problem(EXIT_FAILED, "%s%s waits for %s%s, as after= says", obstacle->second->name,
                           layer_and_micro(second, obstacle->second), obstacle->first->name,
                           layer_and_micro(first, obstacle->first));
    }
    return new_problem(EXIT_FAILED, "%s%s %s %s, which %s%s %s", obstacle->second->name,
                       layer_and_micro(second, obstacle->second), verb, thing, obstacle->first->name,
                       layer_and_micro(first, obstacle->first), why);
}

/* Moves the task to right after `over`, later in the list.  Tasks that follow from it go along, except those on
 * `lane`, to which it goes. */
static bool sink_along(struct edit *edit, struct list *list, struct task *task, struct task *over,
                       const struct lane *lane)
{
    while (!sink_task(edit, task, over)) {
        const struct task *on_way = last_obstacle(edit)->on_way;
        if (on_way == over || on_way->lane == lane)
            return false;
        if (!sink_along(edit, list, list->tasks[on_way->index], over, lane))
            return false;
    }
    return true;
}

/* Moves the task to later, right after task move->behind; or to sooner, right before the next task of the lane.  A task
 * that stands between these two already stays.  Returns NULL, or what is in the way, with its position in *position. */
static struct problem *move_task(struct list *list, const struct move *move, struct lane *lane, size_t *position)
{
    struct task *task = list->tasks[move->task];
    size_t next = (size_t)(move->behind + 1);
    while (next < list->n && (list->tasks[next]->lane != lane || next == move->task))
        next++;
    struct edit *edit = open_edit(list);
    bool done = true;
    if (move->behind > (int64_t)move->task)
        done = sink_along(edit, list, task, list->tasks[move->behind], lane);
    else if (next < move->task)
        done = hoist_task(edit, task, list->tasks[next]);
    if (done) {
        commit_edit(edit);
        return NULL;
    }
    struct problem *problem = say_obstacle(list, last_obstacle(edit));
    *position = last_obstacle(edit)->on_way->index;
    undo_edit(edit);
    return problem;
}

/* Work stays on lanes of its kind; a copy of a device may take any of the device's lanes. */
static bool may_use_lane(const struct task *task, const struct lane *lane)
{
    if (lane->device != task->lane->device)
        return false;
    return lane->kind == task->lane->kind || (is_copy(task) && !lane->device->is_host);
}

static void note_places(struct board *board)
{
    const struct list *list = board->list;
    struct task_place *places = allocate(list->n, sizeof *places);
    for (size_t i = 0; i < list->n; i++)
        places[i] = (struct task_place){list->tasks[i], list->tasks[i]->lane};
    GROW(board->before, board->cap_moves, board->n_moves + 1);
    board->before[board->n_moves++] = places;
}

struct problem *try_move(struct board *board, const struct move *move, size_t *position)
{
    if (board->tries)
        bring_back(board);
    struct task *task = board->list->tasks[move->task];
    struct lane *lane = board->list->pool->machine->lanes[move->lane];
    *position = move->task;
    note_places(board);
    struct problem *problem = NULL;
    if (may_use_lane(task, lane))
        problem = move_task(board->list, move, lane, position);
    else
        problem =
            new_problem(EXIT_FAILED, "%s cannot move from the lane %s to %s: it can only use lanes of its device%s",
                        task->name, task->lane->name, lane->name, is_copy(task) ? "" : " and of its kind");
    board->tries = true;
    if (!problem) {
        task->lane = lane;
        *position = task->index;
        problem = simulate_board(board);
    }
    if (problem)
        undo_move(board);
    return problem;
}

void keep_move(struct board *board) { board->tries = false; }

bool undo_move(struct board *board)
{
    if (!board->n_moves)
        return false;
    bring_back(board);
    struct problem *problem = simulate_board(board);
    CHECK(!problem, "what was simulated before a move fails after its undo: %s", problem->sentence);
    return true;
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

struct problem *save_board(const struct board *board, const char *path)
{
    const struct list *list = board->list;
    double *seconds = allocate(list->n, sizeof *seconds);
    struct begun_text begun;
    FILE *out = begin_text(&begun);
    for (size_t i = 0; i < list->n; i++)
        seconds[i] = given_seconds(list->tasks[i]);
    write_list(out, list, seconds);
    char *text = end_text(&begun);
    struct problem *problem = try_publish_text(path, text);
    free(seconds);
    free(text);
    return problem;
}

json_t *board_json(const struct board *board)
{
    json_t *json = json_object();
    json_object_set_new(json, "written_ms", json_real(1e3 * board->written.period));
    json_object_set_new(json, "period_ms", json_real(1e3 * board->now.period));
    set_json_integer(json, "written_peak", (json_int_t)board->written.peak);
    set_json_integer(json, "peak", (json_int_t)board->now.peak);
    set_json_integer(json, "moved", (json_int_t)count_moves(board));
    return json;
}

const struct module module_board = {
    .name = "board",
    .needs = "pass predict proof lists trace",
};
