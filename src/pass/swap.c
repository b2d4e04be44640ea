/* swap.c - training in less memory than the step would hold: data leaves for the host and comes back in time.
 *
 * Between two uses of a tensor lies a *gap*, in which it lies idle.  There is a choice for each gap: the tensor is
 * kept; or swapped, a copy takes it to the host and another one brings it back, as a new tensor that the later tasks
 * read; or made again (recompute.c).
 *
 *     compute      F0    F1    F2    F3    B3    B2    B1    B0
 *     a0 kept      |===========================================|
 *     a0 swapped   |=====|                             |=======|      held through `out`, and again from `in` on
 *     copies          out a0                     in a0
 *                                                  '---- its seconds ---- B0
 *
 * State that persists lives on the host when it is swapped, and visits the device for its uses.
 *
 * The rule for a copy: its place in the list decides how long bytes are held.  What leaves is held until its copy has
 * ended, or the task that takes the bytes would wait for it; what comes back is held from when its copy must begin, so
 * that its reader does not wait.  Copies go one after another: made first leaves first, needed first comes first. Where
 * bytes are short, what leaves goes earlier and what comes back later.
 *
 * auto          only where a device's budget is too small, and so that the step is as short as it can be: which gaps
 *               are kept, swapped and made again is found by the search of ../plan/plan.h.  It starts from rules:
 *               whatever is too much leaves, that with the furthest next use first (Belady 1966), or what is cheapest
 *               to have again.  Classes (--swap-what) are admitted one after another, so that one more never makes a
 *               step longer.
 *
 * layer         layer k's data leaves while the next layer's forward runs, and comes back while the backward before its
 *               own does (Rhu et al. 2016)
 *
 * microbatch    the same for the data of a whole micro-batch
 *
 * The latter two are fixed orders, for reading and comparing: they move all they can, whatever the budget.
 */
#include "../plan/plan.h"
#include "pass.h"

#include <math.h>

enum action { KEEP, SWAP, REMAKE };
struct gap {
    struct tensor *x;
    struct device *device;    /* that x is on; state changes its home */
    const struct task *maker; /* the first task that uses x */
    int before, behind;       /* positions of the uses around it; of state NOWHERE: none before, n: none behind */
    int nth;                  /* of x; all gaps of state count as one */
    int64_t bytes;
    double out_seconds, in_seconds, again_seconds; /* of copies, and of what writes x */
    bool may_remake;
    size_t decision;        /* 0: none, x is kept */
    struct gap *replica_of; /* the next one of this decision */

    /* What is done about it; positions are those of the list with all that is made again. */
    enum action action;
    int begin, end;   /* before and behind, there */
    int out, in;      /* the bytes are held through `out`, and again from `in` on */
    struct gap *last; /* in which x was swapped before */
    bool copied;      /* to the host: not so what is there already */
    struct tensor *there, *back;
    struct task *leaves, *comes, *ready, *reader; /* copies, or the first and last task that make it again */
};
/* How copies find their places; the search may choose another way, for all of them. */
static const struct placement {
    double lead;   /* so many times as long as a copy takes are its bytes held for it; 0: for uses alone */
    double margin; /* share of the budget that stays free: addresses leave holes */
} placements[] = {{1, 0}, {2, 0}, {0, 0}, {1e6, 0}, {1, 0.03}, {1, 0.12}};
enum { PLACEMENT, LEAST = 2 }; /* that decision; its option that holds the fewest bytes */
struct swapper {
    struct step *step;
    const struct costs *costs;
    bool swap, remake;    /* what may be done */
    struct forecast bare; /* the list as it is ... */
    struct uses *uses;    /* ... and its uses */
    struct gap *gap;      /* in the order of `before` */
    size_t n_gaps, cap;
    struct decision *decision;
    struct gap **first; /* of each decision */
    size_t n, admitted; /* decisions; the others keep */
    double copied;      /* bytes, by what is done about all gaps */
};

bool wants_swap(const struct pass_options *w) { return w->swap != SWAP_OFF; }

bool swaps_state(const struct pass_options *w)
{
    return wants_swap(w) && w->swap_what & (1u << MEM_OPTIMIZER | 1u << MEM_PARAMETERS);
}

/* ---- gaps -------------------------------------------------------------------------------------------------------- */

/* Where no times are known, a copy takes as long as four tasks. */
static void time_gap(const struct swapper *w, struct gap *g, const struct use *use, size_t n)
{
    struct step *s = w->step;
    struct tensor *there = tensor_like(s->pool, s->pool->machine->host, g->x);
    struct task *out = carry(s, "swap.out", there, g->x, FOR_SWAP);
    struct task *in = carry(s, "swap.in", g->x, there, FOR_SWAP);
    bool known = w->bare.span != NULL;
    g->out_seconds = known ? seconds_alone(w->costs, out) : 4;
    g->in_seconds = known ? seconds_alone(w->costs, in) : 4;
    for (size_t i = 0; i < n; i++)
        if (use[i].mode & ACCESS_WRITE)
            g->again_seconds += known ? seconds_alone(w->costs, w->uses->task[use[i].at]) : 1;
}

/* Between two uses where other work lies, of another layer where tasks have any; of state also before and behind all.
 */
static void find_gaps(struct swapper *w, struct tensor *x)
{
    size_t n;
    const struct use *use = uses_of(w->uses, x, &n);
    struct task **task = w->uses->task;
    for (size_t i = 0; i <= n; i++) {
        const struct task *a = i > 0 ? task[use[i - 1].at] : NULL, *b = i < n ? task[use[i].at] : NULL;
        bool turns = a && b && a->role == ROLE_FORWARD && b->role == ROLE_BACKWARD;
        bool near = a && b && (same_block(a, b) || (!turns && b->index - a->index == 1));
        if (near || (!x->persistent && (!a || !b || !is_whole_before(w->uses, x, use[i].at))))
            continue;
        struct gap *g = APPEND(w->gap, w->n_gaps, w->cap);
        *g = (struct gap){.x = x, .device = x->device, .maker = task[use[0].at], .nth = x->persistent ? 0 : (int)i};
        g->before = a ? (int)a->index : NOWHERE, g->behind = b ? (int)b->index : (int)w->uses->n;
        g->bytes = (int64_t)round_up(x->bytes, x->device->alignment);
        g->may_remake = w->remake && may_remake(w->uses, x, g->behind);
        time_gap(w, g, use, n);
    }
}

ORDER(by_before, struct gap, BY(a->before, b->before, BY(b->behind, a->behind, COMPARE(a->x->id, b->x->id))))

/* ---- decisions --------------------------------------------------------------------------------------------------- */

/* In this order classes are admitted. */
static int turn_of(const struct gap *g)
{
    static const int turn[MEM_CLASSES] = {[MEM_OPTIMIZER] = 1, [MEM_PARAMETERS] = 2, [MEM_GRADIENTS] = 3};
    return turn[g->x->class];
}

/* Replicas have the same tensors: of a name, layer and micro-batch, though shards need not be equal. */
static int by_decision(const void *a, const void *b)
{
    const struct gap *x = *(struct gap *const *)a, *y = *(struct gap *const *)b;
    const struct task *s = x->maker, *t = y->maker;
    int of_x[] = {s->layer, s->micro, (int)s->role, x->nth}, of_y[] = {t->layer, t->micro, (int)t->role, y->nth};
    int order = BY(turn_of(x), turn_of(y), COMPARE(y->bytes >> 12, x->bytes >> 12));
    order = order ? order : strcmp(x->x->name, y->x->name);
    order = order ? order : strcmp(s->name, t->name);
    for (size_t i = 0; i < COUNT(of_x) && !order; i++)
        order = COMPARE(of_x[i], of_y[i]);
    return order;
}

/* What replicas do is one decision.  The same tensor of other layers and micro-batches is a group. */
static void list_decisions(struct swapper *w)
{
    struct gap **gap = allocate(w->n_gaps + 1, sizeof *gap);
    w->decision = allocate(w->n_gaps + 1, sizeof *w->decision);
    w->first = allocate(w->n_gaps + 1, sizeof(struct gap *));
    w->decision[PLACEMENT] = (struct decision){COUNT(placements), NO_GROUP};
    w->n = 1;
    for (size_t i = 0; i < w->n_gaps; i++)
        gap[i] = &w->gap[i];
    SORT(gap, w->n_gaps, by_decision);
    for (size_t i = 0; i < w->n_gaps; i++) {
        struct gap *g = gap[i], *last = i ? gap[i - 1] : NULL;
        if (last && by_decision(&gap[i - 1], &gap[i]) == 0)
            last->replica_of = g, g->decision = last->decision;
        else if (w->swap || g->may_remake) {
            bool same = last && last->decision && strcmp(last->x->name, g->x->name) == 0;
            w->decision[w->n].options = w->swap && g->may_remake ? 3 : 2;
            w->decision[w->n].group = same ? w->decision[last->decision].group : (int)w->n;
            w->first[w->n] = g;
            g->decision = w->n++;
        }
    }
    free(gap);
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

struct line { /* the list with what is made again, in which copies find their places */
    struct uses *uses;
    struct span *span;      /* of each task, roughly: what is made again takes no time */
    struct gap **out, **in; /* gaps that are swapped: made first, first; needed first, first */
    size_t n;
};
ORDER_POINTERS(by_begin, struct gap, BY(a->begin, b->begin, BY(b->end, a->end, COMPARE(a, b))))
ORDER_POINTERS(by_end, struct gap, BY(a->end, b->end, BY(a->begin, b->begin, COMPARE(a, b))))

/* Makes again what is to be, and lists what is swapped. */
static struct line open_line(struct swapper *w, struct edit *e)
{
    struct line l = {.out = allocate(w->n_gaps + 1, sizeof *l.out)};
    size_t n, n_uses, n_tensors = w->uses->n_tensors;
    int *from = allocate(n_tensors, sizeof *from);
    memset(from, NOWHERE, n_tensors * sizeof *from);
    for (size_t i = w->n_gaps; i-- > 0;)
        if (w->gap[i].action == REMAKE)
            from[w->gap[i].x->id] = w->gap[i].behind;
    struct tensor **twin = remake(e, w->step->pool, w->uses, from, false);
    struct task **task = tasks_in_order(e, &n);
    l.uses = find_uses(task, n, w->step->pool);
    l.span = allocate(n + 1, sizeof *l.span);
    int *at = allocate(w->step->n, sizeof *at);
    for (size_t i = n; i-- > 0;) {
        size_t was = task[i]->index;
        struct span own = {(double)was, (double)was + 1}, none = {l.span[i + 1].start, l.span[i + 1].start};
        l.span[i] = was >= w->uses->n ? none : w->bare.span ? w->bare.span[was] : own;
        at[was] = (int)i;
    }
    for (struct gap *g = w->gap; g < w->gap + w->n_gaps; g++) {
        int made = from[g->x->id];
        const struct use *use = uses_of(l.uses, g->x, &n_uses);
        g->leaves = g->comes = g->ready = NULL;
        g->begin = g->before == NOWHERE ? NOWHERE : at[g->before], g->end = (int)n;
        g->reader = g->behind < (int)w->uses->n ? w->uses->task[g->behind] : NULL;
        while (n_uses-- > 0 && use[n_uses].at > g->begin)
            g->end = use[n_uses].at;
        if (g->action == SWAP && (made == NOWHERE || made > g->before))
            l.out[l.n++] = g;
        if (made != g->behind)
            continue;
        use = uses_of(l.uses, twin[g->x->id], &n_uses);
        g->comes = task[use[0].at];
        for (size_t i = 0; i < n_uses; i++)
            g->ready = use[i].mode & ACCESS_WRITE ? task[use[i].at] : g->ready;
    }
    SORT(l.out, l.n, by_begin);
    l.in = copy_bytes(l.out, (l.n + 1) * sizeof *l.in);
    SORT(l.in, l.n, by_end);
    free(from), free(twin), free(task), free(at);
    return l;
}

/* What leaves once more, and has not been written since it came back, is on the host still. */
static void note_copied(const struct swapper *w, struct line *l)
{
    struct gap **last = allocate(w->uses->n_tensors, sizeof *last);
    for (size_t k = 0; k < l->n; k++) {
        struct gap *g = l->out[k];
        g->last = last[g->x->id], last[g->x->id] = g;
        g->copied =
            g->before != NOWHERE && (!g->last || is_written_between(w->uses, g->x, g->last->behind - 1, g->before + 1));
    }
    free(last);
}

static bool computes(const struct line *l, int i, const struct device *d)
{
    return l->uses->task[i]->lane == d->lane[LANE_COMPUTE];
}

/* Each until its copy has ended.  The last made finds room first: what has waited longest leaves earlier. */
static void place_outs(struct line *l, const struct device *d, double lead, int64_t *held, int64_t most)
{
    double done = -INFINITY;
    for (size_t k = 0; k < l->n; k++) {
        struct gap *g = l->out[k];
        if (g->device != d || !g->copied)
            continue;
        done = fmax(done, l->span[g->begin].end) + lead * g->out_seconds;
        for (int i = g->begin + 1; i < g->end && !(computes(l, i, d) && l->span[i].start >= done * (1 - 1e-9)); i++)
            g->out = computes(l, i, d) ? i : g->out;
    }
    for (size_t k = l->n; k-- > 0;) {
        struct gap *g = l->out[k];
        int latest = MIN(g->out, g->in - 1);
        if (g->device != d)
            continue;
        for (g->out = g->begin; g->out < latest && held[g->out + 1] + g->bytes <= most;)
            held[++g->out] += g->bytes;
    }
}

/* Each from when its copy must begin.  The first needed finds room first, and none comes before those. */
static void place_ins(struct line *l, const struct device *d, double lead, int64_t *held, int64_t most)
{
    int before = 0, n = (int)l->uses->n;
    double next = INFINITY;
    for (size_t k = l->n; k-- > 0;) {
        struct gap *g = l->in[k];
        if (g->device != d || g->end == n)
            continue;
        next = fmin(next, l->span[g->end].start) - lead * g->in_seconds;
        while (g->in > g->begin + 1 && !(computes(l, g->in, d) && l->span[g->in].start <= next * (1 + 1e-9)))
            g->in--;
    }
    for (size_t k = 0; k < l->n; k++) {
        struct gap *g = l->in[k];
        int soonest = MAX(g->in, before);
        if (g->device != d || g->end == n)
            continue;
        for (g->in = g->end; g->in > soonest && held[g->in - 1] + g->bytes <= most;)
            held[--g->in] += g->bytes;
        before = g->in;
    }
}

static void place_copies(const struct swapper *w, struct line *l, const struct placement *p)
{
    const struct pool *pool = w->step->pool;
    for (size_t k = 0; k < l->n; k++)
        l->out[k]->out = l->out[k]->begin, l->out[k]->in = l->out[k]->end;
    for (int i = 0; i < pool->machine->n_devices && p->lead > 0; i++) {
        const struct device *d = &pool->machine->device[i];
        int64_t *held = bytes_held(l->uses, pool, d);
        int64_t most = (int64_t)((double)d->budget * (1 - p->margin)) - (int64_t)guard_bytes(d);
        for (size_t k = 0; k < l->n; k++)
            for (int at = l->out[k]->begin + 1; l->out[k]->device == d && at < l->out[k]->end; at++)
                held[at] -= l->out[k]->bytes;
        place_ins(l, d, p->lead, held, most);
        place_outs(l, d, p->lead, held, most);
        free(held);
    }
}

/* Backwards, each right behind its place, so that copies at one place come in the order of the lists, outs first. */
static void insert_copies(struct swapper *w, struct edit *e, struct line *l)
{
    struct step *s = w->step;
    struct device *host = s->pool->machine->host;
    w->copied = 0;
    for (size_t k = 0; k < l->n; k++) {
        struct gap *g = l->out[k];
        struct tensor *now = g->last ? g->last->back : g->x;
        g->there = g->x->persistent ? g->x : g->copied ? tensor_like(s->pool, host, g->x) : g->last->there;
        g->back = g->end < (int)l->uses->n ? tensor_like(s->pool, g->device, g->x) : NULL;
        if (g->back)
            switch_readers(e, l->uses, g->x, g->end, now, g->back);
        if (g->x->persistent && !g->last)
            set_home(e, g->x, host);
        w->copied += (double)g->x->bytes * (g->copied + (g->back != NULL));
    }
    for (size_t k = 2 * l->n; k-- > 0;) {
        bool in = k >= l->n;
        struct gap *g = in ? l->in[k - l->n] : l->out[k];
        int place = in ? g->in - 1 : g->out;
        if (in ? !g->back : !g->copied)
            continue;
        insert_behind(e, place < 0 ? s->head : l->uses->task[place]);
        s->tags = (struct tags){g->maker->layer, g->maker->micro, ROLE_SWAP};
        if (in)
            g->comes = g->ready = carry(s, "swap.in", g->back, g->there, FOR_SWAP);
        else
            g->leaves = carry(s, "swap.out", g->there, g->last ? g->last->back : g->x, FOR_SWAP);
    }
}

/* The list becomes what is to be done about all gaps.  p NULL: copies have their places. */
static void rewrite(struct swapper *w, struct edit *e, const struct placement *p)
{
    struct line l = open_line(w, e);
    note_copied(w, &l);
    if (p)
        place_copies(w, &l, p);
    insert_copies(w, e, &l);
    free_uses(l.uses);
    free(l.span), free(l.out), free(l.in);
}

/* ---- auto -------------------------------------------------------------------------------------------------------- */

/* Where it cannot be what was chosen, it is the other one. */
static double apply(void *swapper, struct edit *e, const unsigned char *choice)
{
    struct swapper *w = swapper;
    for (struct gap *g = w->gap; g < w->gap + w->n_gaps; g++) {
        bool keeps = !g->decision || g->decision >= w->admitted || choice[g->decision] == KEEP;
        bool again = g->may_remake && (!w->swap || (!keeps && choice[g->decision] == REMAKE));
        g->action = keeps || !(again || w->swap) ? KEEP : again ? REMAKE : SWAP;
    }
    rewrite(w, e, &placements[choice[PLACEMENT]]);
    return w->copied;
}

static void take_away(const struct gap *g, const struct device *d, int64_t *held)
{
    for (int i = g->before + 1; g->device == d && i < g->behind; i++)
        held[i] -= g->bytes;
}

/* Of those that lie around position i and are kept, which the others leave, the one to leave: that is needed last, or
 * that is cheapest to have again.  NULL: there is none. */
static const struct gap *best_to_leave(const struct gap **here, size_t *n, int i, const unsigned char *choice,
                                       enum action wish, bool by_cost)
{
    const struct gap *best = NULL;
    double most = -1;
    size_t kept = 0;
    for (size_t k = 0; k < *n; k++) {
        const struct gap *g = here[k];
        double cost = wish == REMAKE ? fmax(g->again_seconds, 1e-12) : 1;
        double merit = by_cost ? (double)g->bytes / cost : g->behind;
        if (g->behind <= i || choice[g->decision] != KEEP)
            continue;
        here[kept++] = g;
        if (merit > most)
            best = g, most = merit;
    }
    *n = kept;
    return best;
}

/* A rule for a start: something leaves wherever a device would hold more than its budget less a share of it. */
static void evict(const struct swapper *w, unsigned char *choice, enum action wish, bool by_cost, double spare)
{
    const struct pool *pool = w->step->pool;
    const struct gap **here = allocate(w->n_gaps + 1, sizeof *here), *best;
    for (const struct device *d = pool->machine->device; !d->is_host; d++) {
        int64_t *held = bytes_held(w->uses, pool, d);
        size_t next = 0, n_here = 0;
        for (size_t k = 0; k < w->n_gaps; k++)
            if (w->gap[k].decision && w->gap[k].decision < w->admitted && choice[w->gap[k].decision] != KEEP)
                take_away(&w->gap[k], d, held);
        for (int i = 0; i < (int)w->uses->n; i++) {
            for (; next < w->n_gaps && w->gap[next].before < i; next++)
                if (w->gap[next].device == d && w->gap[next].decision && w->gap[next].decision < w->admitted)
                    here[n_here++] = &w->gap[next];
            while ((double)held[i] > (1 - spare) * (double)d->budget - (double)guard_bytes(d) &&
                   (best = best_to_leave(here, &n_here, i, choice, wish, by_cost))) {
                choice[best->decision] = (unsigned char)wish;
                for (const struct gap *g = w->first[best->decision]; g; g = g->replica_of)
                    take_away(g, d, held);
            }
        }
        free(held);
    }
    free(here);
}

enum which { ALL, OF_LAYERS, CHEAP }; /* what a layer's forward has made for its backward; what recompute calls cheap */

static void leave(const struct swapper *w, unsigned char *choice, enum action action, enum which which)
{
    for (size_t i = 1; i < w->admitted; i++) {
        const struct tensor *x = w->first[i]->x;
        if (which == ALL || (kept_for(w->uses, x) != NOWHERE && (which == OF_LAYERS || x->cheap)))
            choice[i] = (unsigned char)action;
    }
}

/* Choices by rule, one behind the other; how many.  First is the best one with fewer classes, last what holds least. */
static size_t list_starts(const struct swapper *w, const unsigned char *best, unsigned char *start)
{
    static const double spare[] = {0, 0.05, 0.1, 0.2, 0.3};
    size_t n = w->admitted, n_starts = 1;
    memcpy(start, best, n);
    for (enum action action = SWAP; action <= (w->swap ? REMAKE : SWAP); action++) {
        for (size_t i = 0; i < 4 * COUNT(spare); i++, n_starts++) {
            memcpy(start + n * n_starts, best, i & 2 ? n : 0);
            evict(w, start + n * n_starts, action, i & 1, spare[i / 4]);
        }
        for (enum which which = ALL; which <= CHEAP; which++)
            leave(w, start + n * n_starts++, action, which);
        leave(w, start + n * n_starts, action, ALL);
        start[n * n_starts++] = LEAST;
    }
    return n_starts;
}
enum { MOST_STARTS = 1 + 2 * (20 + 4) };

/* Classes are admitted one after another, each time with a search of its own that begins with what is best so far. */
static struct score choose_actions(struct swapper *w, unsigned char *best)
{
    struct score score = {INFINITY, INFINITY, INFINITY};
    struct question q = {w->step, w->costs, "looking for what to swap", w->decision, .apply = apply, .pass = w};
    bool found = false;
    q.floor = w->bare.span ? w->bare.period : INFINITY; /* where nobody knows times, whatever fits will do */
    while (w->admitted < w->n && (score.excess > 0 || score.period > q.floor * (1 + 1e-9))) {
        int turn = turn_of(w->first[w->admitted]);
        while (w->admitted < w->n && turn_of(w->first[w->admitted]) == turn)
            w->admitted++;
        unsigned char *start = allocate(MOST_STARTS * w->admitted, 1);
        size_t n_starts = list_starts(w, best, start);
        q.n = w->admitted, q.work = 0;
        score = choose(&q, start, MIN(n_starts, 4 + SEARCH_WORK / w->uses->n), best);
        if (score.excess == 0)
            q.work = found ? SEARCH_WORK / 4 : SEARCH_WORK, found = true;
        else if (w->admitted == w->n)
            q.work = SEARCH_WORK / 8;
        memcpy(start, best, q.n);
        if (q.work > 0)
            score = choose(&q, start, 1, best);
        free(start);
    }
    return score;
}

/* ---- layer, microbatch ------------------------------------------------------------------------------------------ */

/* A turn is what a device computes of one micro-batch, or of one layer of it, one way. */
static bool same_turn(const struct task *a, const struct task *b, bool by_layer)
{
    return a->role == b->role && a->micro == b->micro && (!by_layer || a->layer == b->layer);
}

/* The last task of the turn of task i on d, forward or back; *next: the first task behind it, or NOWHERE. */
static int end_of_turn(const struct swapper *w, const struct device *d, int i, int by, bool by_layer, int *next)
{
    struct task **task = w->uses->task;
    int end = i;
    *next = NOWHERE;
    for (int k = i + by; k >= 0 && k < (int)w->uses->n && *next == NOWHERE; k += by)
        if (task[k]->lane == d->lane[LANE_COMPUTE] && (by_layer ? task[k]->layer : task[k]->micro) >= 0)
            *(same_turn(task[k], task[i], by_layer) ? &end : next) = k;
    return end;
}

/* What a forward has made leaves during the turn behind it, and comes back during the last backward before its reader's
 * turn; where there is none between, during the turn before.  State leaves at once, and comes back during that. */
static bool place_by_turn(const struct swapper *w, struct gap *g, bool by_layer)
{
    bool state = g->x->persistent;
    int made = (int)g->maker->index, next, before, back, beyond;
    end_of_turn(w, g->device, made, 1, by_layer, &next);
    g->out = g->before, g->in = g->behind;
    if (!state && next != NOWHERE)
        g->out = MAX(end_of_turn(w, g->device, next, 1, by_layer, &beyond), g->before);
    if (g->behind == (int)w->uses->n)
        return state;
    end_of_turn(w, g->device, g->behind, -1, by_layer, &before);
    for (back = before; !state && back > made && w->uses->task[back]->role != ROLE_BACKWARD;)
        end_of_turn(w, g->device, back, -1, by_layer, &back);
    back = back > made ? back : before;
    if (back > g->before)
        g->in = MAX(end_of_turn(w, g->device, back, -1, by_layer, &beyond), g->before + 1);
    return g->in > g->out && (state || (g->maker->role == ROLE_FORWARD && next != NOWHERE && back >= next));
}

static bool choose_by_turn(struct swapper *w, bool by_layer)
{
    bool any = false;
    for (struct gap *g = w->gap; g < w->gap + w->n_gaps; g++) {
        g->action = place_by_turn(w, g, by_layer || g->x->persistent) ? SWAP : KEEP;
        any |= g->action == SWAP;
    }
    return any;
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

static json_t *span_ms(const struct forecast *f, const struct task *t, bool end)
{
    bool known = t && f->span;
    return milliseconds(!known ? NAN : end ? f->span[t->index].end : f->span[t->index].start);
}

/* The steady step starts with its first task, which may run while the step before still does; but for those that
 * prepare its batch, a step early, and those that skip this one. */
static void count_from_first(struct forecast *f)
{
    double start = 0;
    for (size_t i = 0; f->span && i < f->n; i++)
        if (f->task[i]->role != ROLE_FEED && f->task[i]->when.every <= 1)
            start = fmin(start, f->span[i].start);
    for (size_t i = 0; f->span && i < f->n; i++)
        f->span[i].start -= start, f->span[i].end -= start;
}

/* f: the list as it is now. */
static void report(const struct swapper *w, const struct forecast *f, const char *declines, struct pass_report *r)
{
    const struct machine *m = w->step->pool->machine;
    json_t *moves = json_array(), *peaks = json_object();
    size_t n[3] = {0};
    double stall = f->period - fmin(f->period, w->bare.period);
    for (const struct gap *g = w->gap; g < w->gap + w->n_gaps && !declines; g++) {
        if (!g->leaves && !g->comes)
            continue;
        n[g->action] += g->comes != NULL;
        json_array_append_new(moves, json_pack("{s:s, s:i, s:i, s:s, s:I, s:s, s:o, s:o, s:o, s:o, s:o}", "tensor",
                                               g->x->name, "layer", g->maker->layer, "micro", g->maker->micro, "device",
                                               g->device->id, "bytes", (json_int_t)g->x->bytes, "how",
                                               g->action == SWAP ? "swap" : "recompute", "out_start_ms",
                                               span_ms(f, g->leaves, false), "out_end_ms", span_ms(f, g->leaves, true),
                                               "in_start_ms", span_ms(f, g->comes, false), "in_end_ms",
                                               span_ms(f, g->ready, true), "needed_ms", span_ms(f, g->reader, false)));
    }
    for (int d = 0; d <= m->n_devices; d++)
        json_object_set_new(
            peaks, m->device[d].id,
            json_pack("{s:I, s:I}", "before", (json_int_t)w->bare.need[d], "after", (json_int_t)f->need[d]));
    r->fields = json_pack("{s:o, s:o, s:o, s:o, s:o}", "moves", moves, "bare_ms", milliseconds(w->bare.period),
                          "period_ms", milliseconds(f->period), "stall_ms", milliseconds(stall), "peak_bytes", peaks);
    r->reason = declines ? copy_string(declines)
                         : format_string("%zu swapped, %zu made again, %s copied", n[SWAP], n[REMAKE],
                                         format_bytes((char[32]){0}, w->copied));
    if (!declines && !isnan(stall))
        append_text(&r->reason, "\n    stall %.3f ms", 1e3 * stall);
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static struct swapper open_swapper(struct step *s, const struct costs *c, unsigned classes, bool swap, bool again)
{
    struct swapper w = {.step = s, .costs = c, .swap = swap, .remake = again, .admitted = 1, .bare = try_step(s, c)};
    must(w.bare.why_not);
    w.uses = find_uses(s->task, s->n, s->pool);
    struct edit *e = open_edit(s); /* for copies whose time is asked */
    for (size_t i = 0; i < w.uses->n_tensors; i++)
        if (may_leave(w.uses, s->pool->tensors[i], classes))
            find_gaps(&w, s->pool->tensors[i]);
    undo(e);
    SORT(w.gap, w.n_gaps, by_before);
    list_decisions(&w);
    return w;
}

/* Closes the swapper.  e: the edit in which the list is what was chosen; must_fit: by this option, NULL: it need not.
 */
static bool finish(struct swapper *w, struct edit *e, const char *declines, const char *must_fit, struct pass_report *r)
{
    struct forecast f = try_step(w->step, w->costs);
    if (f.excess > 0 && must_fit)
        refuse_budget(w->step->pool->machine, &f, must_fit);
    if (e)
        commit(e);
    count_from_first(&f);
    report(w, &f, declines, r);
    r->after = f;
    free_forecast(&w->bare), free_uses(w->uses);
    free(w->gap), free(w->decision), free(w->first);
    return !declines;
}

static bool run_auto(struct swapper *w, const char *must_fit, struct pass_report *r)
{
    if (w->bare.excess == 0)
        return finish(w, NULL, "all fits", NULL, r);
    unsigned char *best = allocate(w->n, 1);
    if (choose_actions(w, best).excess > 0 && must_fit) {
        leave(w, best, SWAP, w->swap ? ALL : OF_LAYERS);
        best[PLACEMENT] = LEAST;
    }
    struct edit *e = open_edit(w->step);
    apply(w, e, best);
    free(best);
    return finish(w, e, NULL, must_fit, r);
}

bool run_swap(struct step *s, const struct costs *c, const struct pass_options *w, struct pass_report *r)
{
    bool by_layer = w->swap == SWAP_LAYER;
    struct swapper x = open_swapper(s, c, w->swap_what, true, w->swap == SWAP_AUTO);
    if (w->swap == SWAP_AUTO)
        return run_auto(&x, "--swap auto", r);
    if (!choose_by_turn(&x, by_layer))
        return finish(&x, NULL, "no data of that class waits for another layer or micro-batch", NULL, r);
    struct edit *e = open_edit(s);
    rewrite(&x, e, NULL);
    return finish(&x, e, NULL, by_layer ? "--swap layer" : "--swap microbatch", r);
}

bool run_recompute(struct step *s, const struct costs *c, const struct pass_options *w, struct pass_report *r)
{
    if (w->recompute != RECOMPUTE_AUTO)
        return recompute_by_rule(s, w->recompute == RECOMPUTE_FULL, r);
    struct swapper x = open_swapper(s, c, 1u << MEM_ACTIVATIONS, false, true);
    if (w->swap == SWAP_AUTO)
        return finish(&x, NULL, "--swap auto chooses what is made again", NULL, r);
    return run_auto(&x, w->swap == SWAP_OFF ? "--recompute auto" : NULL, r);
}
