/* board.c - moves on a list, tried on a draft, kept with a proof (see board.h).
 *
 * The list itself is never placed: try_list() places, orders and simulates a draft of it, while it is edited too, and
 * shows that to look(), which writes the trace and proves.  A move is undone by the move that takes the task back over
 * the same others, so the list is as it was.
 */
#include "board.h"

#include "../file/file.h"
#include "../predict/predict.h"
#include "../proof/proof.h"
#include "../step/edit.h"

#include <math.h>

struct passage { /* of a task over others of the list, to a lane */
    struct task *task, *over; /* `over`: the farthest of them; NULL: it stays where it is in the list */
    bool later;
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
    struct edit *edit;    /* a move is tried; NULL: none is */
    struct passage *back; /* what takes back the moves that were kept, and the one that is tried, from the last on */
    size_t n_back, cap_back;
    size_t n_sure;        /* of those that were kept */
    size_t *begin;        /* in `back`, of each that was kept */
    size_t n_kept, cap_kept;
};

/* ---- what comes of it ------------------------------------------------------------------------------------------- */

struct looking {
    struct board *board;
    bool proves;
    char *wrong;
};

static char *title_of(const struct board *b)
{
    char before[32], now[32];
    char *title = format_string("%s   period %.4g ms", b->path, 1e3 * b->written.period);
    if (b->now.period != b->written.period)
        append_text(&title, " -> %.4g ms", 1e3 * b->now.period);
    append_text(&title, "   peak %s", format_bytes(before, (double)b->written.peak));
    if (b->now.peak != b->written.peak)
        append_text(&title, " -> %s", format_bytes(now, (double)b->now.peak));
    if (b->n_kept)
        append_text(&title, "   moved %zu", b->n_kept);
    return title;
}

static void look(void *context, const struct simulation *sim)
{
    struct looking *l = context;
    struct board *b = l->board;
    const struct step *s = sim->step;
    b->now = (struct outlook){sim->period, 0};
    for (int d = 0; d <= s->pool->machine->n_devices; d++)
        b->now.peak = MAX(b->now.peak, s->high[d]);
    if (!b->values) { /* for the first time */
        b->written = b->now;
        b->values = number_values(b->step);
    }
    char *title = title_of(b);
    write_simulation(sim, b->trace, title);
    free(title);
    if (l->proves && !(l->wrong = verify_devices(s)))
        l->wrong = verify(s, b->values);
}

/* NULL, or why the list as it is now cannot be; the caller frees it. */
static char *simulate_board(struct board *b, bool proves)
{
    struct looking l = {.board = b, .proves = proves};
    struct forecast f = try_list(b->step, NULL, INFINITY, look, &l);
    if (!l.wrong && f.why_not)
        l.wrong = copy_string(f.why_not->sentence);
    free_forecast(&f);
    return l.wrong;
}

/* Without simulating anything. */
static void take_back(struct board *b)
{
    if (b->edit)
        undo(b->edit);
    b->edit = NULL;
    b->n_back = b->n_sure;
}

/* ---- the board -------------------------------------------------------------------------------------------------- */

struct board *open_board(const char *path, double clip)
{
    struct board *b = allocate(1, sizeof *b);
    *b = (struct board){.path = path, .trace = private_trace(), .step = read_list(path)};
    if (clip > 0) {
        depend(b->step, false);
        gate_updates(b->step);
    }
    char *wrong = simulate_board(b, true);
    if (wrong)
        fail(EXIT_USAGE, "%s: %s", path, wrong);
    return b;
}

void close_board(struct board *b)
{
    struct machine *m = b->step->pool->machine;
    struct pool *p = b->step->pool;
    take_back(b);
    free_values(b->values);
    free_step(b->step);
    free_pool(p);
    close_machine(m);
    free(b->back), free(b->begin), free(b->trace), free(b);
}

const char *board_trace(const struct board *b) { return b->trace; }
size_t count_moves(const struct board *b) { return b->n_kept; }

/* ---- moves ------------------------------------------------------------------------------------------------------ */

static char *say_obstacle(const struct edit *e)
{
    const struct obstacle *o = what_was_in_the_way(e);
    char first[64], second[64];
    if (!o->over)
        return format_string("%s%s waits until %s%s has ended: no update starts before the norm is known (--clip)",
                             o->second->name, layer_and_micro(second, o->second), o->first->name,
                             layer_and_micro(first, o->first));
    bool reads = touches_bytes(o->second, o->over, ACCESS_READ) && touches_bytes(o->first, o->over, ACCESS_WRITE);
    return format_string("%s%s %s %s, which %s%s %s", o->second->name, layer_and_micro(second, o->second),
                         reads ? "needs" : "overwrites", o->over->name, o->first->name,
                         layer_and_micro(first, o->first),
                         touches_bytes(o->first, o->over, ACCESS_WRITE) ? "writes" : "reads before");
}

/* Over the task that ends its way, if any, and onto its lane.  Sinking, it takes along what follows from it, unless that
 * is on the lane `carried` of the task that is carried.  false: something is in the way. */
static bool go(struct board *b, struct edit *e, const struct passage *p, const struct lane *carried)
{
    struct task *t = p->task;
    struct passage back = {t, NULL, !p->later, t->lane};
    for (bool is_over = !p->over; !is_over;) {
        back.over = p->later ? t->next : t->prev;
        is_over = (p->later ? sink : hoist)(e, t, p->over);
        const struct task *on_way = what_was_in_the_way(e)->on_way;
        bool follows = !is_over && p->later && on_way != p->over && on_way->lane != carried;
        if (!is_over &&
            !(follows && go(b, e, &(struct passage){b->step->task[on_way->index], p->over, true, on_way->lane}, carried)))
            return false;
    }
    put_on(e, t, p->lane);
    *APPEND(b->back, b->n_back, b->cap_back) = back;
    return true;
}

/* Down to the task that it comes behind on the lane, or up to the one behind that; or nowhere, where it is between. */
static struct passage passage_of(const struct step *s, const struct move *m)
{
    struct passage p = {.task = s->task[m->task], .lane = s->pool->machine->lane[m->lane]};
    size_t next = (size_t)(m->behind + 1);
    while (next < s->n && (s->task[next]->lane != p.lane || next == m->task))
        next++;
    p.later = m->behind > (int64_t)m->task;
    p.over = p.later ? s->task[m->behind] : next < m->task ? s->task[next] : NULL;
    return p;
}

/* Work stays on lanes of its kind; what a device copies may take any of its lanes. */
static char *check_lane(const struct task *t, const struct lane *to)
{
    const struct lane *from = t->lane;
    if (from->device == to->device && (from->kind == to->kind || (t->copy && !to->device->is_host)))
        return NULL;
    return format_string("%s runs on the lane %s, and cannot run on %s: it takes lanes of its device%s", t->name,
                         from->name, to->name, t->copy ? "" : " and of its kind");
}

/* In the list as it is edited. */
static size_t place_of(const struct step *s, const struct task *t)
{
    size_t n = 0;
    while ((t = t->prev) != s->head)
        n++;
    return n;
}

char *try_move(struct board *b, const struct move *m, size_t *place)
{
    struct passage p = passage_of(b->step, m);
    char *wrong = check_lane(p.task, p.lane);
    take_back(b);
    *place = m->task;
    if (!wrong) {
        b->edit = open_edit(b->step);
        bool moves = go(b, b->edit, &p, p.lane);
        *place = !moves ? what_was_in_the_way(b->edit)->on_way->index : place_of(b->step, p.task);
        wrong = moves ? simulate_board(b, false) : say_obstacle(b->edit);
    }
    if (wrong)
        leave_move(b);
    return wrong;
}

void leave_move(struct board *b)
{
    take_back(b);
    free(simulate_board(b, false)); /* nothing is wrong: it was simulated before */
}

char *keep_move(struct board *b)
{
    *APPEND(b->begin, b->n_kept, b->cap_kept) = b->n_sure;
    char *wrong = simulate_board(b, true);
    if (wrong) {
        b->n_kept--;
        leave_move(b);
    } else {
        commit(b->edit);
        b->n_sure = b->n_back;
    }
    b->edit = NULL;
    return wrong;
}

int64_t undo_move(struct board *b)
{
    if (!b->n_kept)
        return -1;
    take_back(b);
    struct edit *e = open_edit(b->step);
    struct task *t = NULL;
    for (size_t begin = b->begin[--b->n_kept]; b->n_sure > begin; b->n_back = b->n_sure) {
        const struct passage p = b->back[--b->n_sure];
        t = t ? t : p.task; /* the last to move was the one that was carried */
        CHECK(go(b, e, &p, NULL), "task %s does not come back", p.task->name);
    }
    commit(e);
    free(simulate_board(b, false));
    return (int64_t)t->index;
}

/* ---- what is left of it ----------------------------------------------------------------------------------------- */

void save_board(const struct board *b, const char *path)
{
    double *seconds = allocate(b->step->n, sizeof *seconds);
    char *text = NULL;
    size_t size;
    for (size_t i = 0; i < b->step->n; i++)
        seconds[i] = given_seconds(b->step->task[i]);
    FILE *out = open_memstream(&text, &size);
    write_list(out, b->step, seconds);
    fclose(out);
    struct writer *w = open_writer(path);
    write_bytes(w, text, size);
    publish(w);
    free(text), free(seconds);
}

json_t *board_json(const struct board *b)
{
    return json_pack("{s:f, s:f, s:I, s:I, s:I}", "written_ms", 1e3 * b->written.period, "period_ms",
                     1e3 * b->now.period, "written_peak", (json_int_t)b->written.peak, "peak", (json_int_t)b->now.peak,
                     "moved", (json_int_t)b->n_kept);
}
