/* swap_report.c - reports the gaps that are swapped or made again, to people and to `plan --json`.
 *
 * Times count from the steady step's first task, which may run while the step before still does.  Two kinds of tasks do
 * not count as the first one: those that prepare the step's batch, a step early, and those that skip this step.
 */
#include "swap.h"

#include <math.h>

struct gap_times { /* one gap's, in seconds; NAN: the time is not known, or there is no such task */
    double out_start, out_end, in_start, in_end; /* the copies' */
    double needed;                               /* start of the first task that reads the tensor that came back */
};

/* When the steady step's first task starts. */
static double first_start(const struct forecast *f)
{
    double first = 0;
    for (size_t i = 0; f->span && i < f->n; i++)
        if (f->task[i]->role != ROLE_FEED && f->task[i]->when.every <= 1)
            first = fmin(first, f->span[i].start);
    return first;
}

/* The first use of a tensor that came back is the copy.  The first use of one that is made again is the repeated task;
 * where there are several, the last makes the tensor whole. */
static void find_return(struct gap_times *t, const struct absence *a, const struct forecast *f, const struct uses *u)
{
    size_t n;
    const struct use *use = uses_of(u, a->back, &n), *last = use;
    while (a->action == REMAKE && last[1].mode & ACCESS_WRITE)
        last++;
    t->in_start = f->span[use->position].start;
    t->in_end = f->span[last->position].end;
    t->needed = f->span[last[1].position].start;
}

static struct gap_times times_of_gap(const struct absence *a, const struct forecast *f, const struct uses *u)
{
    struct gap_times t = {.out_start = NAN, .out_end = NAN, .in_start = NAN, .in_end = NAN, .needed = NAN};
    if (f->span && a->leaves) {
        t.out_start = f->span[a->leaves->index].start;
        t.out_end = f->span[a->leaves->index].end;
    }
    if (f->span && a->back)
        find_return(&t, a, f, u);
    return t;
}

static json_t *move_json(const struct absence *a, const struct gap_times *t, double zero)
{
    const struct gap *g = a->gap;
    const char *action = a->action == SWAP ? "swap" : "recompute";
    json_t *move = json_pack("{s:s, s:i, s:i, s:s, s:I, s:s}", "tensor", g->x->name, "layer", g->maker->layer, "micro",
                             g->maker->micro, "device", g->device->id, "bytes", (json_int_t)g->x->bytes, "how", action);
    json_object_set_new(move, "out_start_ms", milliseconds(t->out_start - zero));
    json_object_set_new(move, "out_end_ms", milliseconds(t->out_end - zero));
    json_object_set_new(move, "in_start_ms", milliseconds(t->in_start - zero));
    json_object_set_new(move, "in_end_ms", milliseconds(t->in_end - zero));
    json_object_set_new(move, "needed_ms", milliseconds(t->needed - zero));
    return move;
}

static json_t *moves_json(const struct gaps *all, const struct absence *absence, const struct forecast *f)
{
    struct uses *u = find_uses(f->task, f->n, all->step->pool);
    const double zero = first_start(f);
    json_t *moves = json_array();
    for (const struct absence *a = absence; a < absence + all->n; a++) {
        if (!a->leaves && !a->back)
            continue;
        struct gap_times t = times_of_gap(a, f, u);
        json_array_append_new(moves, move_json(a, &t, zero));
    }
    free_uses(u);
    return moves;
}

static json_t *peaks_json(const struct gaps *all, const struct forecast *f)
{
    const struct machine *m = all->step->pool->machine;
    json_t *peaks = json_object();
    for (int d = 0; d <= m->n_devices; d++) {
        json_int_t before = (json_int_t)all->bare.needed_bytes[d], after = (json_int_t)f->needed_bytes[d];
        json_object_set_new(peaks, m->device[d].id, json_pack("{s:I, s:I}", "before", before, "after", after));
    }
    return peaks;
}

static char *sum_up(const struct absence *absence, size_t n)
{
    size_t n_swapped = 0, n_remade = 0;
    double copied = 0;
    char bytes[32];
    for (const struct absence *a = absence; a < absence + n; a++) {
        const double bytes_of_x = (double)a->gap->x->bytes;
        n_swapped += a->action == SWAP && a->back;
        n_remade += a->action == REMAKE && a->back;
        if (a->action == SWAP && a->leaves)
            copied += bytes_of_x;
        if (a->action == SWAP && a->back)
            copied += bytes_of_x;
    }
    return format_string("%zu swapped, %zu made again, %s copied", n_swapped, n_remade, format_bytes(bytes, copied));
}

void report_gaps(const struct gaps *all, const struct absence *absence, const struct costs *c, const char *declines,
                 struct pass_report *r)
{
    r->after = keep_forecast(try_step(all->step, c));
    const struct forecast *f = r->after;
    double bare = all->bare.period, stall = f->period - fmin(f->period, bare);
    r->reason = declines ? copy_string(declines) : sum_up(absence, all->n);
    r->fields = json_pack("{s:o, s:o}", "moves", moves_json(all, absence, f), "peak_bytes", peaks_json(all, f));
    report_ms(r, "stall_ms", declines ? NULL : "stall", stall);
    report_ms(r, "bare_ms", NULL, bare);
    report_ms(r, "period_ms", NULL, f->period);
}
