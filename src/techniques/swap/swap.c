/* swap.c - training in less memory than the step would hold: data leaves for the host and comes back in time.
 *
 * Between two uses of a tensor lies a *gap*, in which it lies idle.  There is a choice for each gap: the tensor is
 * kept; or swapped, a copy takes it to the host and another one brings it back, as a new tensor that the later tasks
 * read; or made again (recompute.c).
 *
 *     compute      F0    F1    F2    F3    B3    B2    B1    B0
 *     a0 kept      |===========================================|
 *     a0 swapped   |===========|                       |=======|      held through `out` (F1), from `in` (B1) on
 *     copies             out a0                  in a0                 each with a reserve for the copy's own time
 *
 * State that persists lives on the host when it is swapped, and visits the device for its uses.
 *
 * The rule.  A copy starts when its source is written, its lane is free, and the last user of its bytes has ended.  Its
 * place in the list decides how long bytes are held.  What leaves is held until its copy has ended, else the task that
 * takes the bytes would wait for it; what comes back is held from when its copy must begin, so that its reader does not
 * wait.  Copies go one after another: made first leaves first, needed first comes first.  Where bytes are short, what
 * leaves goes earlier and what comes back later.
 *
 * The rewrite.  First what is made again is put into the list, then outs right behind `out` and ins right before `in`;
 * readers from the gap's end on are switched to what came back.  Gaps are found in the list as it was;
 * repeat_and_line_up() finds where they begin and end in the list with repeats.
 *
 * Which gaps, --swap says:
 *
 * auto          only where a device's budget is too small, and so that the step is as short as it can be: which gaps
 *               are kept, swapped and made again is found by the search of search/plan.h.  It starts from a rule:
 *               more and more leaves, or is made again, what is cheap to make again and what is large first, and of
 *               that what waits longest.  Classes (--swap-what) are admitted one after another, so that one more never
 *               makes a step longer.
 *
 * layer         phases.c: layer k's data leaves while the next layer's forward runs, and comes back while the backward
 *               before its own does
 *
 * microbatch    the same for the data of a whole micro-batch
 *
 * The latter two are fixed orders, for reading and comparing: they move all they can, whatever the budget, and
 * are refused where that does not fit.
 *
 * Source: "Data movement method, distributed training system, electronic device and storage medium" (2023).
 */
#include "swap.h"
#include "techniques/search/plan.h"

#include <math.h>

enum action { KEEP, SWAP, REMAKE };
struct gap {
    struct tensor *x;
    struct device *device;    /* that x is on; state changes its home */
    const struct task *maker; /* the first task that uses x */
    int before, behind;       /* positions of the uses around it; of state NOWHERE: none before, n: none behind */
    int nth;                  /* of x; all gaps of state count as one */
    int64_t bytes;
    double seconds; /* of a copy one way */
    bool may_remake;
    size_t decision; /* 0: none, x is kept */

    /* What is done about it.  These positions are of the list with all that is made again; those above, without. */
    enum action action;
    int begin, end; /* where `before` is now; and x's next use, perhaps a repeat's */
    int out, in;    /* the bytes are held through the task at `out`, behind which the copy stands; again from `in` */
    struct gap *earlier;           /* x's gap before this one in which it is swapped; NULL: none */
    bool sent;                     /* a copy takes x to the host: it is not there already */
    struct tensor *on_host, *back; /* back: also as it is made again; NULL: nobody reads it any more */
    struct task *leaves;           /* the copy to the host, or NULL */
};
/* How copies find their places; the search may choose another way, for all of them. */
static const struct placement {
    double copy_times; /* bytes are held for their copy, so many times as long as it takes; 0: for uses alone, and no
                        * copy looks for a better place */
    double margin;     /* share of the budget that stays free: addresses leave holes */
} placements[] = {{1, 0}, {2, 0}, {0, 0}, {1e6, 0}, {1, 0.03}, {1, 0.12}};
enum { PLACEMENT, LEAST = 2 }; /* that decision; its option that holds the fewest bytes */
/* In this order classes are admitted. */
static const int round_of[MEM_CLASSES] = {[MEM_OPTIMIZER] = 1, [MEM_PARAMETERS] = 2, [MEM_GRADIENTS] = 3};
struct swapper {
    struct step *step;
    const struct costs *costs;
    bool swap;            /* or all may only be made again */
    struct forecast bare; /* the list as it is ... */
    struct uses *uses;    /* ... and its uses */
    struct gap *gap;      /* in the order of `before` */
    size_t n_gaps, cap;
    struct decision *decision;
    size_t n, admitted;      /* decisions; the others keep */
    size_t end[MEM_CLASSES]; /* of each round's decisions; 0: it has none */
};

struct swap_options swap_options;

static bool wants_swap(const struct run_facts *w)
{
    (void)w;
    return swap_options.how != SWAP_OFF;
}

/* ---- gaps -------------------------------------------------------------------------------------------------------- */

/* Two uses neither in one block nor adjacent; from forward to backward, adjacent ones too.  Of state also before the
 * first use and behind the last. */
static void find_gaps(struct swapper *w, struct tensor *x)
{
    size_t n;
    const struct use *use = uses_of(w->uses, x, &n);
    struct task **task = w->uses->task;
    struct step *s = w->step;
    for (size_t i = 0; i <= n; i++) {
        const struct task *a = i > 0 ? task[use[i - 1].at] : NULL, *b = i < n ? task[use[i].at] : NULL;
        bool returns = a && b && a->role == ROLE_FORWARD && b->role == ROLE_BACKWARD;
        bool near = a && b && (same_block(a, b) || (!returns && b->index - a->index == 1));
        if (near || (!x->persistent && (!a || !b || !is_whole_before(w->uses, x, use[i].at))))
            continue;
        struct gap *g = APPEND(w->gap, w->n_gaps, w->cap);
        *g = (struct gap){.x = x, .device = x->device, .maker = task[use[0].at], .nth = x->persistent ? 0 : (int)i};
        g->before = a ? (int)a->index : NOWHERE, g->behind = b ? (int)b->index : (int)w->uses->n;
        g->bytes = (int64_t)round_up(x->bytes, x->device->alignment);
        g->may_remake = may_remake(w->uses, x, g->behind);
        struct tensor *there = tensor_like(s->pool, s->pool->machine->host, x);
        g->seconds = seconds_alone(w->costs, carry(s, "swap.in", x, there, FOR_SWAP));
    }
}

ORDER(by_before, struct gap, BY(a->before, b->before, BY(b->behind, a->behind, COMPARE(a->x->id, b->x->id))))

/* ---- decisions --------------------------------------------------------------------------------------------------- */

/* The class that is admitted first comes first, then what is cheap to make again, then what is large, and of that the
 * low layers, which wait longest.  Replicas have the same tensors: of a name, layer and micro-batch, though shards need
 * not be equal. */
ORDER(by_decision, struct gap,
      BY(round_of[a->x->class], round_of[b->x->class],
         BY(b->x->cheap, a->x->cheap,
            BY(b->bytes >> 12, a->bytes >> 12,
               BY(strcmp(a->x->name, b->x->name), 0,
                  BY(strcmp(a->maker->name, b->maker->name), 0,
                     BY(a->maker->layer, b->maker->layer,
                        BY(a->maker->micro, b->maker->micro,
                           BY(a->maker->role, b->maker->role, COMPARE(a->nth, b->nth))))))))))

/* What replicas do is one decision; so is what all gaps of one state tensor do, since its home is the host then, and
 * each use needs its copies.  The same tensor of other layers and micro-batches is a group. */
static void list_decisions(struct swapper *w)
{
    w->decision = allocate(w->n_gaps + 1, sizeof *w->decision);
    w->decision[PLACEMENT] = (struct decision){COUNT(placements), NO_GROUP};
    w->n = 1;
    SORT(w->gap, w->n_gaps, by_decision);
    for (size_t i = 0; i < w->n_gaps; i++) {
        struct gap *g = &w->gap[i], *neighbour = i ? g - 1 : NULL;
        if (neighbour && by_decision(neighbour, g) == 0)
            g->decision = neighbour->decision;
        else if (w->swap || g->may_remake) {
            bool same = neighbour && neighbour->decision && strcmp(neighbour->x->name, g->x->name) == 0;
            w->decision[w->n].options = w->swap && g->may_remake ? 3 : 2;
            w->decision[w->n].group = same ? w->decision[neighbour->decision].group : (int)w->n;
            g->decision = w->n++;
            w->end[round_of[g->x->class]] = w->n;
        }
    }
    SORT(w->gap, w->n_gaps, by_before);
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

struct line { /* the list with what is made again, in which copies find their places */
    struct uses *uses;
    struct span *span;      /* of each task, roughly: what is made again takes no time */
    struct gap **out, **in; /* gaps that are swapped: made first, first; needed first, first */
    size_t n;
};
ORDER_POINTERS(by_end, struct gap, BY(a->end, b->end, BY(a->begin, b->begin, COMPARE(a, b))))

/* Makes again what is to be, and lists what is swapped.  A tensor that is made again for one gap is kept in those
 * behind it, whatever was chosen for them: there it is the repeat's.  What leaves once more, and has not been written
 * since it came back, is on the host still. */
static struct line repeat_and_line_up(struct swapper *w, struct edit *e)
{
    struct line l = {.out = allocate(w->n_gaps + 1, sizeof *l.out)};
    size_t n_tensors = w->uses->n_tensors, n, n_uses;
    int *from = allocate(n_tensors, sizeof *from);
    memset(from, NOWHERE, n_tensors * sizeof *from);
    for (size_t i = w->n_gaps; i-- > 0;) /* backwards: of several gaps the first one counts */
        if (w->gap[i].action == REMAKE)
            from[w->gap[i].x->id] = w->gap[i].behind;
    struct tensor **twin = remake(e, w->step->pool, w->uses, from, false);
    struct task **task = tasks_in_order(w->step, &n);
    l.uses = find_uses(task, n, w->step->pool);
    l.span = allocate(n + 1, sizeof *l.span);
    int *at = allocate(n, sizeof *at); /* where tasks are now, by their place before */
    for (size_t i = n; i-- > 0;) {
        size_t was = task[i]->index;
        struct span none = {l.span[i + 1].start, l.span[i + 1].start};
        l.span[i] = w->bare.span && was < w->uses->n ? w->bare.span[was] : none;
        at[was] = (int)i;
    }
    struct gap **earlier = allocate(n_tensors, sizeof *earlier); /* by tensor: its last gap so far */
    for (struct gap *g = w->gap; g < w->gap + w->n_gaps; g++) {
        int id = g->x->id;
        const struct use *use = uses_of(l.uses, g->x, &n_uses);
        g->begin = g->before == NOWHERE ? NOWHERE : at[g->before], g->end = (int)n;
        while (n_uses-- > 0 && use[n_uses].at > g->begin)
            g->end = use[n_uses].at;
        g->action = from[id] != NOWHERE && from[id] <= g->before ? KEEP : g->action;
        g->back = g->action == REMAKE ? twin[id] : NULL;
        g->leaves = NULL;
        if (g->action == SWAP) {
            g->earlier = earlier[id], earlier[id] = l.out[l.n++] = g;
            g->sent = g->before != NOWHERE && /* is it written from `earlier->behind` to `before`, both included? */
                      (!g->earlier || is_written_between(w->uses, g->x, g->earlier->behind - 1, g->before + 1));
        }
    }
    l.in = copy_bytes(l.out, (l.n + 1) * sizeof *l.in);
    SORT(l.in, l.n, by_end);
    free(from), free(twin), free(task), free(at), free(earlier);
    return l;
}

static bool computes(const struct line *l, int i, const struct device *d)
{
    return l->uses->task[i]->lane == d->lane[LANE_COMPUTE];
}

/* On device d, whose budget leaves room for `most` bytes: behind each slab lies a guard. */
static void place_copies(const struct swapper *w, struct line *l, const struct placement *p, const struct device *d)
{
    int64_t *held = bytes_held(l->uses, w->step->pool, d);
    int64_t most = (int64_t)((double)d->budget * (1 - p->margin)) - (int64_t)guard_bytes(d);
    int n = (int)l->uses->n, earliest = 0;
    int *soonest = allocate(l->n + 1, sizeof *soonest), *latest = allocate(l->n + 1, sizeof *latest);
    double must_begin = INFINITY, copied = -INFINITY;
    for (size_t k = 0; k < l->n; k++) /* its uses still hold it */
        for (int i = l->out[k]->begin + 1; l->out[k]->device == d && i < l->out[k]->end; i++)
            held[i] -= l->out[k]->bytes;
    /* What comes back is held from when its copy must begin, for its reader and for the copies behind it.  The first
     * needed finds room first, and none comes before those. */
    for (size_t k = l->n; k-- > 0;) {
        struct gap *g = l->in[k];
        if (g->device != d || g->end == n)
            continue;
        must_begin = fmin(must_begin, l->span[g->end].start) - p->copy_times * g->seconds;
        for (soonest[k] = g->end; soonest[k] > g->begin + 1; soonest[k]--)
            if (computes(l, soonest[k], d) && l->span[soonest[k]].start <= must_begin * (1 + 1e-9))
                break;
    }
    for (size_t k = 0; k < l->n; k++) {
        struct gap *g = l->in[k];
        if (g->device != d || g->end == n)
            continue;
        while (g->in > MAX(soonest[k], earliest) && held[g->in - 1] + g->bytes <= most)
            held[--g->in] += g->bytes;
        earliest = g->in;
    }
    /* What leaves is held until its copy has ended, behind the copies before it.  The last made finds room first: what
     * has waited longest leaves earlier. */
    for (size_t k = 0; k < l->n; k++) {
        struct gap *g = l->out[k];
        latest[k] = g->begin;
        if (g->device != d || !g->sent)
            continue;
        copied = fmax(copied, l->span[g->begin].end) + p->copy_times * g->seconds;
        for (int i = g->begin + 1; i < g->end && !(computes(l, i, d) && l->span[i].start >= copied * (1 - 1e-9)); i++)
            latest[k] = computes(l, i, d) ? i : latest[k];
    }
    for (size_t k = l->n; k-- > 0;) {
        struct gap *g = l->out[k];
        while (g->device == d && g->out < MIN(latest[k], g->in - 1) && held[g->out + 1] + g->bytes <= most)
            held[++g->out] += g->bytes;
    }
    free(held), free(soonest), free(latest);
}

/* The list becomes what is to be done about all gaps.  p NULL: copies have their places. */
static void rewrite(struct swapper *w, struct edit *e, const struct placement *p)
{
    struct line l = repeat_and_line_up(w, e);
    struct step *s = w->step;
    struct device *host = s->pool->machine->host;
    for (size_t k = 0; k < l.n && p; k++)
        l.out[k]->out = l.out[k]->begin, l.out[k]->in = l.out[k]->end;
    for (const struct device *d = s->pool->machine->device; !d->is_host && p && p->copy_times > 0 && w->bare.span; d++)
        place_copies(w, &l, p, d);
    for (size_t k = 0; k < l.n; k++) {
        struct gap *g = l.out[k];
        g->on_host = g->x->persistent ? g->x : g->sent ? tensor_like(s->pool, host, g->x) : g->earlier->on_host;
        if (g->end < (int)l.uses->n) {
            g->back = tensor_like(s->pool, g->device, g->x);
            switch_readers(e, l.uses, g->x, g->end, g->earlier ? g->earlier->back : g->x, g->back);
        }
        if (g->x->persistent && !g->earlier)
            set_home(e, g->x, host);
    }
    for (size_t k = 2 * l.n; k-- > 0;) { /* backwards: at one place outs come first */
        bool in = k >= l.n;
        struct gap *g = in ? l.in[k - l.n] : l.out[k];
        int place = in ? g->in - 1 : g->out;
        if (in ? !g->back : !g->sent)
            continue;
        insert_behind(e, place < 0 ? s->head : l.uses->task[place]);
        s->tags = (struct tags){g->maker->layer, g->maker->micro, ROLE_SWAP};
        if (in)
            carry(s, "swap.in", g->back, g->on_host, FOR_SWAP);
        else
            g->leaves = carry(s, "swap.out", g->on_host, g->earlier ? g->earlier->back : g->x, FOR_SWAP);
    }
    free_uses(l.uses);
    free(l.span), free(l.out), free(l.in);
}

/* ---- auto -------------------------------------------------------------------------------------------------------- */

/* What a choice means for a gap: an action, but where nothing may be swapped, SWAP makes again too. */
static enum action action_of(const struct swapper *w, const struct gap *g, const unsigned char *choice)
{
    bool kept = !g->decision || g->decision >= w->admitted || choice[g->decision] == KEEP;
    if (!kept && g->may_remake && (!w->swap || choice[g->decision] == REMAKE))
        return REMAKE;
    return !kept && w->swap ? SWAP : KEEP;
}

static void apply(void *swapper, struct edit *e, const unsigned char *choice)
{
    struct swapper *w = swapper;
    for (struct gap *g = w->gap; g < w->gap + w->n_gaps; g++)
        g->action = action_of(w, g, choice);
    rewrite(w, e, &placements[choice[PLACEMENT]]);
}

/* Classes are admitted one after another; where it fits in a step as short as `floor` (INFINITY: whatever fits will do)
 * the search is over at once.  Each time the starts are what is best so far, that with more and more decisions of what
 * it keeps, in their order, and nothing kept, which holds least.  A search follows, unless nothing fits and more
 * classes are to come. */
static struct score choose_actions(struct swapper *w, unsigned char *best, double floor)
{
    enum { STEPS = 24, STARTS = 1 + 2 * STEPS };
    struct score score = {INFINITY, INFINITY, INFINITY};
    struct question q = {w->step,   w->costs,      "looking for what to swap", w->decision, .apply = apply,
                         .pass = w, .floor = floor};
    memset(best, KEEP, w->n);
    for (int round = 0; round < MEM_CLASSES; round++) {
        bool found = score.excess == 0;
        if (w->end[round] == 0)
            continue;
        q.n = w->admitted = w->end[round];
        unsigned char *start = allocate(STARTS * q.n, 1), *next = memcpy(start, best, q.n);
        for (unsigned char action = SWAP; action <= REMAKE; action++)
            for (size_t step = 1; step <= STEPS; step++) {
                next = memcpy(next + q.n, best, q.n);
                next[PLACEMENT] = step == STEPS ? LEAST : next[PLACEMENT];
                for (size_t i = 1; i < q.n; i++)
                    if (step == STEPS || (next[i] == KEEP && i * STEPS <= q.n * step))
                        next[i] = action;
            }
        q.work = 0;
        score = choose(&q, start, STARTS, best);
        q.work = score.excess == 0 ? SEARCH_WORK / (found ? 4 : 1) : w->admitted == w->n ? SEARCH_WORK / 8 : 0;
        memcpy(start, best, q.n);
        if (q.work > 0)
            score = choose(&q, start, 1, best);
        free(start);
    }
    return score;
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

/* Ends the pass: commits edit e, reports the list and frees the swapper.  declines: why nothing has changed; e NULL, or
 * empty.
 *
 * Times count from the steady step's first task, which may run while the step before still does; but for those that
 * prepare its batch, a step early, and those that skip this one. */
static bool finish(struct swapper *w, struct edit *e, const char *declines, struct pass_report *r)
{
    const struct machine *m = w->step->pool->machine;
    json_t *peaks = json_object(), *moves = json_array();
    size_t n[3] = {0}, n_uses;
    double from = 0, copied = 0;
    if (e)
        commit(e);
    const struct forecast *f = r->after = keep_forecast(try_step(w->step, w->costs));
    for (size_t i = 0; f->span && i < f->n; i++)
        if (f->task[i]->role != ROLE_FEED && f->task[i]->when.every <= 1)
            from = fmin(from, f->span[i].start);
    struct uses *uses = find_uses(f->task, f->n, w->step->pool);
    for (const struct gap *g = w->gap; g < w->gap + w->n_gaps; g++) {
        const struct span never = {NAN, NAN}, *out = &never, *in = &never, *whole = &never, *reader = &never;
        if (!g->leaves && !g->back)
            continue;
        if (f->span && g->leaves)
            out = &f->span[g->leaves->index];
        if (f->span && g->back) { /* its first use is a copy or a repeat; of several repeats the last makes it whole */
            const struct use *use = uses_of(uses, g->back, &n_uses);
            in = &f->span[use->at];
            while (g->action == REMAKE && use[1].mode & ACCESS_WRITE)
                use++;
            whole = &f->span[use[0].at], reader = &f->span[use[1].at];
        }
        n[g->action] += g->back != NULL;
        copied += g->action == SWAP ? (double)g->x->bytes * ((g->leaves != NULL) + (g->back != NULL)) : 0;
        json_array_append_new(
            moves, json_pack("{s:s, s:i, s:i, s:s, s:I, s:s, s:o, s:o, s:o, s:o, s:o}", "tensor", g->x->name, "layer",
                             g->maker->layer, "micro", g->maker->micro, "device", g->device->id, "bytes",
                             (json_int_t)g->x->bytes, "how", g->action == SWAP ? "swap" : "recompute", "out_start_ms",
                             milliseconds(out->start - from), "out_end_ms", milliseconds(out->end - from),
                             "in_start_ms", milliseconds(in->start - from), "in_end_ms",
                             milliseconds(whole->end - from), "needed_ms", milliseconds(reader->start - from)));
    }
    for (int d = 0; d <= m->n_devices; d++)
        json_object_set_new(
            peaks, m->device[d].id,
            json_pack("{s:I, s:I}", "before", (json_int_t)w->bare.need[d], "after", (json_int_t)f->need[d]));
    r->reason = declines ? copy_string(declines)
                         : format_string("%zu swapped, %zu made again, %s copied", n[SWAP], n[REMAKE],
                                         format_bytes((char[32]){0}, copied));
    r->fields = json_pack("{s:o, s:o}", "moves", moves, "peak_bytes", peaks);
    report_ms(r, "stall_ms", declines ? NULL : "stall", f->period - fmin(f->period, w->bare.period));
    report_ms(r, "bare_ms", NULL, w->bare.period);
    report_ms(r, "period_ms", NULL, f->period);
    free_forecast(&w->bare), free_uses(w->uses), free_uses(uses);
    free(w->gap), free(w->decision);
    return !declines;
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static struct swapper open_swapper(struct step *s, const struct costs *c, unsigned classes, bool swap)
{
    struct swapper w = {.step = s, .costs = c, .swap = swap, .bare = try_step(s, c)};
    must(w.bare.why_not);
    w.uses = find_uses(s->task, s->n, s->pool);
    struct edit *e = open_edit(s); /* for copies whose time is asked */
    for (size_t i = 0; i < w.uses->n_tensors; i++)
        if (may_leave(w.uses, s->pool->tensors[i], classes))
            find_gaps(&w, s->pool->tensors[i]);
    undo(e);
    list_decisions(&w);
    return w;
}

/* Where nothing fits, budgets are raised to what a choice needs (of --recompute auto what was found, else what holds
 * least) until the same search finds room in them; then the program ends, naming them.  After some attempts they are
 * what the list needs that keeps all. */
static bool run_auto(struct swapper *w, const char *must_fit, bool may_change, struct pass_report *r)
{
    struct machine *m = w->step->pool->machine;
    if (w->bare.excess == 0)
        return finish(w, NULL, "all fits", r);
    unsigned char *best = allocate(w->n, 1);
    double floor = w->bare.span ? w->bare.period : INFINITY; /* where nobody knows times, whatever fits will do */
    struct device *had = NULL;
    char *shortage = NULL;
    for (int left = 8; left >= 0 && choose_actions(w, best, had ? INFINITY : floor).excess > 0 && must_fit; left--) {
        if (w->swap) {
            memset(best, SWAP, w->n);
            best[PLACEMENT] = LEAST;
        }
        struct edit *e = open_edit(w->step);
        apply(w, e, best);
        struct forecast f = try_step(w->step, w->costs);
        had = had ? had : copy_bytes(m->device, ((size_t)m->n_devices + 1) * sizeof *had);
        free(shortage);
        shortage = raise_budgets(m, had, left > 0 ? &f : &w->bare, must_fit);
        undo(e);
        free_forecast(&f);
    }
    if (had)
        refuse_budgets(m, had, shortage, !may_change);
    struct edit *e = open_edit(w->step);
    apply(w, e, best);
    free(best);
    return finish(w, e, NULL, r);
}

/* --recompute auto, whose pass comes before this one. */
static bool choose_remade(struct step *s, const struct costs *c, const struct run_facts *w, struct pass_report *r)
{
    struct swapper all = open_swapper(s, c, 1u << MEM_ACTIVATIONS, false);
    if (swap_options.how == SWAP_AUTO)
        return finish(&all, NULL, "--swap auto chooses what is made again", r);
    return run_auto(&all, swap_options.how == SWAP_OFF ? "--recompute auto" : NULL, plan_may_change(w), r);
}

static bool run_swap(struct step *s, const struct costs *c, const struct run_facts *asked, struct pass_report *r)
{
    struct machine *m = s->pool->machine;
    bool by_layer = swap_options.how == SWAP_LAYER;
    struct swapper w = open_swapper(s, c, swap_options.what, true);
    if (swap_options.how == SWAP_AUTO)
        return run_auto(&w, "--swap auto", plan_may_change(asked), r);
    bool moves = false;
    for (const struct device *d = m->device; !d->is_host; d++) {
        struct phases data = find_phases(w.uses, d, by_layer), state = find_phases(w.uses, d, true);
        for (struct gap *g = w.gap; g < w.gap + w.n_gaps; g++)
            if (g->device == d) {
                bool is_state = g->x->persistent;
                bool leaves = place_by_phases(is_state ? &state : &data, is_state ? NULL : g->maker, g->before,
                                              g->behind, &g->out, &g->in);
                g->action = leaves ? SWAP : KEEP;
                moves |= leaves;
            }
        free(data.phase), free(state.phase);
    }
    static const char why[] =
        "nothing can leave, since fewer than two others run between each forward and its backward";
    struct edit *e = open_edit(s);
    rewrite(&w, e, NULL);
    bool changed = finish(&w, e, moves ? NULL : why, r);
    if (r->after->excess > 0)
        refuse_budget(m, r->after, by_layer ? "--swap layer" : "--swap microbatch", !plan_may_change(asked));
    return changed;
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static bool moves_state(void)
{
    const unsigned state = 1u << MEM_OPTIMIZER | 1u << MEM_PARAMETERS;
    return swap_options.how != SWAP_OFF && (swap_options.what & state);
}

static bool fills_host(void) { return swap_options.how == SWAP_LAYER || swap_options.how == SWAP_MICROBATCH; }

static bool wants_times(const struct run_facts *w)
{
    (void)w;
    return swap_options.how == SWAP_AUTO;
}

static const struct pass pass = {.place = 50,
                                 .name = "swap",
                                 .wanted = wants_swap,
                                 .run = run_swap,
                                 .turned_on = {"--swap layer"},
                                 .wants_times = wants_times,
                                 .makes_room = true,
                                 .moves_state = moves_state,
                                 .fills_host = fills_host,
                                 .remake = choose_remade};

static const char *classes; /* --swap-what */

static void check(struct settings *s)
{
    (void)s;
    char *text = copy_string(classes), *rest = text;
    swap_options.what = 0;
    for (char *word = strsep(&rest, ","); word; word = strsep(&rest, ",")) {
        int class = choice_number(memory_class_name, word);
        if (class < 0 || class >= MEM_WORK)
            fail(EXIT_USAGE,
                 "--swap-what: '%s' is not a class; expected some of activations, gradients, optimizer, parameters, "
                 "with commas between",
                 word);
        swap_options.what |= 1u << class;
    }
    free(text);
}

static const struct option options[] = {
    {"swap", 0, OPT_CHOICE, &swap_options.how, "off",
     WORDS([SWAP_OFF] = "off", [SWAP_AUTO] = "auto", [SWAP_LAYER] = "layer", [SWAP_MICROBATCH] = "microbatch"), 0, 0,
     GROUP_TECHNIQUES, OF_LIST,
     "move data to the host and back in time. auto: as the budget needs, for the shortest step; data that is cheaper "
     "to make again is made again. layer: away during the next layer's forward, back during that layer's backward. "
     "microbatch: away behind a micro-batch's forward, back during the backward before its own"},
    {"swap-what", 0, OPT_TEXT, &classes, "activations", "CLASS,...", 0, 0, GROUP_TECHNIQUES, OF_LIST,
     "which of activations, gradients, optimizer and parameters may leave; state then lives on the host"},
};
static const struct law laws[] = {{"swap-what", "swap", NULL}};
static const struct foreign_words foreign[] = {
    {"swap", "offload-activations swap-activations", NULL},
};
const struct module module_swap = {.name = "swap",
                                   .needs = "pass predict search",
                                   .place = 23,
                                   .pass = &pass,
                                   .options = options,
                                   .n_options = COUNT(options),
                                   .makes_room = "--swap auto",
                                   .foreign = foreign,
                                   .n_foreign = COUNT(foreign),
                                   .laws = laws,
                                   .n_laws = COUNT(laws),
                                   .check = check};
