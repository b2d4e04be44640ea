/* board.c - moves on a list, tried on a draft, each proved (see board.h).
 *
 * The list itself is never placed: try_list() places, orders and simulates a draft of it and shows that to look(),
 * which writes the trace and proves.  Before a move, where each task stands is noted, and brought back when it is
 * undone.
 */
#include "board.h"
#include "trainer/base/module.h"

#include "techniques/pass/edit.h"
#include "tools/lists/lists.h"
#include "tools/predict/predict.h"
#include "tools/proof/proof.h"
#include "tools/trace/trace.h"
#include "trainer/file/file.h"

#include <math.h>

struct stand {
    struct task *task;
    struct lane *lane;
};
struct outlook {
    double period; /* seconds */
    size_t peak;   /* bytes, of the device that holds most */
};
struct board {
    const char *path;
    char *trace;
    struct step *step;
    struct values *values; /* of the list as written */
    struct outlook written, now;
    struct stand **before; /* each move: [tasks], in the list's order */
    size_t n_moves, cap_moves;
    bool tries;  /* the last move is not kept yet */
    char *wrong; /* what the proof says */
};

/* ---- what comes of it ------------------------------------------------------------------------------------------- */

size_t count_moves(const struct board *b) { return b->n_moves - b->tries; }

static void look(void *board, const struct simulation *sim)
{
    struct board *b = board;
    const struct step *s = sim->step;
    char before[32], now[32];
    b->now = (struct outlook){sim->period, 0};
    for (int d = 0; d <= s->pool->machine->n_devices; d++)
        b->now.peak = MAX(b->now.peak, s->high[d]);
    if (!b->values) { /* for the first time */
        b->written = b->now;
        b->values = number_values(b->step);
    }
    char *title =
        format_string("%s   period %.4g -> %.4g ms   peak %s -> %s   moved %zu", b->path, 1e3 * b->written.period,
                      1e3 * b->now.period, format_bytes(before, (double)b->written.peak),
                      format_bytes(now, (double)b->now.peak), b->n_moves);
    write_simulation(sim, b->trace, title);
    free(title);
    if (!(b->wrong = verify_devices(s)))
        b->wrong = verify(s, b->values);
}

/* NULL, or why the list as it is now cannot be; the caller frees it. */
static char *simulate_board(struct board *b)
{
    b->wrong = NULL;
    struct forecast f = try_list(b->step, NULL, INFINITY, look, b);
    char *wrong = f.why_not ? copy_string(f.why_not->sentence) : b->wrong;
    free_forecast(&f);
    return wrong;
}

/* ---- the board -------------------------------------------------------------------------------------------------- */

struct board *open_board(const char *path, double clip)
{
    struct board *b = allocate(1, sizeof *b);
    *b = (struct board){.path = path, .trace = private_trace(), .step = read_list(path)};
    if (clip > 0)
        gate_updates(b->step);
    char *wrong = simulate_board(b);
    if (wrong) {
        remove(b->trace);
        fail(EXIT_USAGE, "%s: %s", path, wrong);
    }
    return b;
}

const char *board_trace(const struct board *b) { return b->trace; }

/* ---- moves ------------------------------------------------------------------------------------------------------ */

static void bring_back(struct board *b)
{
    struct stand *at = b->before[--b->n_moves];
    for (size_t i = 0; i < b->step->n; i++) {
        b->step->task[i] = at[i].task;
        at[i].task->index = i;
        at[i].task->lane = at[i].lane;
    }
    b->tries = false;
    free(at);
}

static char *say_obstacle(const struct obstacle *o)
{
    char first[64], second[64];
    bool writes = o->over && touches_bytes(o->first, o->over, ACCESS_WRITE);
    bool needs = !o->over || (writes && touches_bytes(o->second, o->over, ACCESS_READ));
    return format_string("%s%s %s %s, which %s%s %s", o->second->name, layer_and_micro(second, o->second),
                         needs ? "needs" : "overwrites", o->over ? o->over->name : "the norm of all gradients (--clip)",
                         o->first->name, layer_and_micro(first, o->first),
                         writes    ? "writes"
                         : o->over ? "reads before"
                                   : "is part of");
}

/* Sinking, it takes along what follows from it, unless that is on `lane`, to which it goes. */
static bool go(struct edit *e, struct step *s, struct task *t, struct task *over, bool later, const struct lane *lane)
{
    while (!(later ? sink : hoist)(e, t, over)) {
        const struct task *on_way = what_was_in_the_way(e)->on_way;
        bool follows = later && on_way != over && on_way->lane != lane;
        if (!follows || !go(e, s, s->task[on_way->index], over, later, lane))
            return false;
    }
    return true;
}

/* Down to the task that it comes behind on the lane, or up to the one behind that; or nowhere, where it is between. */
static char *move_task(struct step *s, const struct move *m, struct lane *lane, size_t *in_way)
{
    struct task *t = s->task[m->task];
    size_t next = (size_t)(m->behind + 1);
    while (next < s->n && (s->task[next]->lane != lane || next == m->task))
        next++;
    bool later = m->behind > (int64_t)m->task;
    struct edit *e = open_edit(s);
    char *wrong = NULL;
    if ((later || next < m->task) && !go(e, s, t, s->task[later ? (size_t)m->behind : next], later, lane)) {
        wrong = say_obstacle(what_was_in_the_way(e));
        *in_way = what_was_in_the_way(e)->on_way->index;
        undo(e);
    } else
        commit(e);
    return wrong;
}

char *try_move(struct board *b, const struct move *m, size_t *place)
{
    if (b->tries)
        bring_back(b);
    struct task *t = b->step->task[m->task];
    struct lane *lane = b->step->pool->machine->lane[m->lane];
    *place = m->task;
    struct stand *at = *APPEND(b->before, b->n_moves, b->cap_moves) = allocate(b->step->n, sizeof *at);
    for (size_t i = 0; i < b->step->n; i++)
        at[i] = (struct stand){b->step->task[i], b->step->task[i]->lane};
    /* Work stays on lanes of its kind; what a device copies may take any of its lanes. */
    bool fits = lane->device == t->lane->device && (lane->kind == t->lane->kind || (t->copy && !lane->device->is_host));
    char *wrong = fits ? move_task(b->step, m, lane, place)
                       : format_string("%s runs on the lane %s, and not on %s: it takes lanes of its "
                                       "device%s",
                                       t->name, t->lane->name, lane->name, t->copy ? "" : " and of its kind");
    b->tries = true;
    if (!wrong) {
        t->lane = lane;
        *place = t->index;
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

/* ---- what is left of it ----------------------------------------------------------------------------------------- */

struct saving { /* of attempt() */
    const char *path, *text;
};

static void save(void *saving)
{
    const struct saving *s = saving;
    publish_text(s->path, s->text);
}

struct problem *save_board(const struct board *b, const char *path)
{
    const struct step *s = b->step;
    double *seconds = allocate(s->n, sizeof *seconds);
    char *text;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    for (size_t i = 0; i < s->n; i++)
        seconds[i] = given_seconds(s->task[i]);
    write_list(out, s, seconds);
    fclose(out);
    struct problem *wrong = attempt(save, &(struct saving){path, text});
    free(seconds), free(text);
    return wrong;
}

json_t *board_json(const struct board *b)
{
    return json_pack("{s:f, s:f, s:I, s:I, s:I}", "written_ms", 1e3 * b->written.period, "period_ms",
                     1e3 * b->now.period, "written_peak", (json_int_t)b->written.peak, "peak", (json_int_t)b->now.peak,
                     "moved", (json_int_t)count_moves(b));
}

const struct module module_board = {.name = "board", .needs = "pass predict proof lists trace"};
