/* board.c - moves tasks of a list, as a person asks, and simulates and proves each move (see board.h).
 *
 * The list itself is never placed: try_list() places, orders and simulates a draft of it and shows that to
 * look_at_board(), which writes the trace and proves.  Before a move the place and lane of each task are noted; an undo
 * restores them.
 */
#include "board.h"
#include "trainer/base/module.h"

#include "techniques/pass/edit.h"
#include "tools/lists/lists.h"
#include "tools/predict/forecast.h"
#include "tools/proof/proof.h"
#include "tools/trace/trace.h"
#include "trainer/file/file.h"

#include <math.h>

struct stand { /* where a task stands: its place in an array of these is its position in the list */
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
    struct stand **before;       /* by move: [tasks] the tasks in list order, and their lanes, before the move */
    size_t n_moves, cap_moves;
    bool tries;  /* the last move is only tried: it is not kept yet */
    char *wrong; /* what the proof says; NULL: all is well */
};

/* ---- simulation and proof --------------------------------------------------------------------------------------- */

size_t count_moves(const struct board *b) { return b->n_moves - b->tries; }

static void look_at_board(void *board, const struct simulation *sim)
{
    struct board *b = board;
    const struct list *list = sim->list;
    char before[32], now[32];
    b->now = (struct figures){.period = sim->period};
    for (int d = 0; d <= list->pool->machine->n_devices; d++)
        b->now.peak = MAX(b->now.peak, list->peak_total[d]);
    if (!b->values) { /* for the first time */
        b->written = b->now;
        b->values = number_values(b->list);
    }
    format_bytes(before, (double)b->written.peak);
    format_bytes(now, (double)b->now.peak);
    char *title = format_string("%s   period %.4g → %.4g ms   peak %s → %s   moved %zu", b->path,
                                1e3 * b->written.period, 1e3 * b->now.period, before, now, b->n_moves);
    write_simulation(sim, b->trace, title);
    free(title);
    b->wrong = verify_devices(list);
    if (!b->wrong)
        b->wrong = verify(list, b->values);
}

/* NULL, or why the list as it is now cannot be; the caller frees it. */
static char *simulate_board(struct board *b)
{
    b->wrong = NULL;
    struct forecast f = try_list(b->list, NULL, INFINITY, look_at_board, b);
    char *wrong = f.why_not ? copy_string(f.why_not->sentence) : b->wrong;
    free_forecast(&f);
    return wrong;
}

/* ---- the board -------------------------------------------------------------------------------------------------- */

struct board *open_board(const char *path, double clip)
{
    struct board *b = allocate(1, sizeof *b);
    *b = (struct board){.path = path, .trace = private_trace(), .list = read_list(path)};
    if (clip > 0)
        gate_updates(b->list);
    char *wrong = simulate_board(b);
    if (wrong) {
        remove(b->trace);
        fail(EXIT_USAGE, "%s: %s", path, wrong);
    }
    return b;
}

const char *board_trace(const struct board *b) { return b->trace; }

/* ---- moves ------------------------------------------------------------------------------------------------------ */

/* Restores places and lanes as they were before the last move. */
static void bring_back(struct board *b)
{
    const struct list *list = b->list;
    b->n_moves--;
    struct stand *stands = b->before[b->n_moves];
    size_t *order = allocate(list->n, sizeof *order);
    for (size_t i = 0; i < list->n; i++)
        order[i] = stands[i].task->index;
    permute_tasks(b->list, 0, order, list->n);
    for (size_t i = 0; i < list->n; i++)
        list->task[i]->lane = stands[i].lane;
    b->tries = false;
    free(order);
    free(stands);
}

/* "h.1.attn needs grad.3, which loss writes": why the order of two tasks of the list must stay. */
static char *say_obstacle(const struct list *list, const struct obstacle *o)
{
    char first[64], second[64];
    const char *verb = "needs", *why = "is part of";
    const char *thing = "the norm of all gradients (--clip)";
    if (o->over) {
        bool writes = touches_bytes(o->first, o->over, ACCESS_WRITE);
        bool reads = touches_bytes(o->second, o->over, ACCESS_READ);
        verb = writes && reads ? "needs" : "overwrites";
        thing = o->over->name;
        why = writes ? "writes" : "reads before";
    } else if (is_after(list, o->second, o->first, SAME_STEP)) {
        return format_string("%s%s waits for %s%s, as after= says", o->second->name, layer_and_micro(second, o->second),
                             o->first->name, layer_and_micro(first, o->first));
    }
    return format_string("%s%s %s %s, which %s%s %s", o->second->name, layer_and_micro(second, o->second), verb, thing,
                         o->first->name, layer_and_micro(first, o->first), why);
}

/* Moves the task to right after `over`, later in the list.  Tasks that follow from it go along, except those on
 * `lane`, to which it goes. */
static bool sink_along(struct edit *e, struct list *list, struct task *task, struct task *over, const struct lane *lane)
{
    while (!sink(e, task, over)) {
        const struct task *on_way = last_obstacle(e)->on_way;
        if (on_way == over || on_way->lane == lane)
            return false;
        if (!sink_along(e, list, list->task[on_way->index], over, lane))
            return false;
    }
    return true;
}

/* Moves the task to later, right after task m->behind; or to sooner, right before the next task of the lane.  A task
 * that stands between these two already stays.  Returns NULL, or what is in the way, with its position in *in_way. */
static char *move_task(struct list *list, const struct move *m, struct lane *lane, size_t *in_way)
{
    struct task *task = list->task[m->task];
    size_t next = (size_t)(m->behind + 1);
    while (next < list->n && (list->task[next]->lane != lane || next == m->task))
        next++;
    struct edit *e = open_edit(list);
    bool done = true;
    if (m->behind > (int64_t)m->task)
        done = sink_along(e, list, task, list->task[m->behind], lane);
    else if (next < m->task)
        done = hoist(e, task, list->task[next]);
    if (done) {
        commit(e);
        return NULL;
    }
    char *wrong = say_obstacle(list, last_obstacle(e));
    *in_way = last_obstacle(e)->on_way->index;
    undo(e);
    return wrong;
}

/* Work stays on lanes of its kind; a copy of a device may take any of the device's lanes. */
static bool fits(const struct task *task, const struct lane *lane)
{
    if (lane->device != task->lane->device)
        return false;
    return lane->kind == task->lane->kind || (is_copy(task) && !lane->device->is_host);
}

static void note_stands(struct board *b)
{
    const struct list *list = b->list;
    struct stand *stands = allocate(list->n, sizeof *stands);
    for (size_t i = 0; i < list->n; i++)
        stands[i] = (struct stand){list->task[i], list->task[i]->lane};
    *APPEND(b->before, b->n_moves, b->cap_moves) = stands;
}

char *try_move(struct board *b, const struct move *m, size_t *place)
{
    if (b->tries)
        bring_back(b);
    struct task *task = b->list->task[m->task];
    struct lane *lane = b->list->pool->machine->lane[m->lane];
    *place = m->task;
    note_stands(b);
    char *wrong = NULL;
    if (fits(task, lane))
        wrong = move_task(b->list, m, lane, place);
    else
        wrong = format_string("%s runs on the lane %s, and not on %s: it takes lanes of its device%s", task->name,
                              task->lane->name, lane->name, is_copy(task) ? "" : " and of its kind");
    b->tries = true;
    if (!wrong) {
        task->lane = lane;
        *place = task->index;
        wrong = simulate_board(b);
    }
    if (wrong)
        undo_move(b);
    return wrong;
}

void keep_move(struct board *b) { b->tries = false; }

bool undo_move(struct board *b)
{
    if (!b->n_moves)
        return false;
    bring_back(b);
    free(simulate_board(b)); /* nothing is wrong: it was simulated before */
    return true;
}

/* ---- saving ----------------------------------------------------------------------------------------------------- */

struct saving { /* the argument of save(), for attempt() */
    const char *path, *text;
};

static void save(void *saving)
{
    const struct saving *s = saving;
    publish_text(s->path, s->text);
}

struct problem *save_board(const struct board *b, const char *path)
{
    const struct list *list = b->list;
    double *seconds = allocate(list->n, sizeof *seconds);
    char *text;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    for (size_t i = 0; i < list->n; i++)
        seconds[i] = given_seconds(list->task[i]);
    write_list(out, list, seconds);
    fclose(out);
    struct saving saving = {path, text};
    struct problem *wrong = attempt(save, &saving);
    free(seconds);
    free(text);
    return wrong;
}

json_t *board_json(const struct board *b)
{
    return json_pack("{s:f, s:f, s:I, s:I, s:I}", "written_ms", 1e3 * b->written.period, "period_ms",
                     1e3 * b->now.period, "written_peak", (json_int_t)b->written.peak, "peak", (json_int_t)b->now.peak,
                     "moved", (json_int_t)count_moves(b));
}

const struct module module_board = {
    .name = "board",
    .needs = "pass predict proof lists trace",
};
