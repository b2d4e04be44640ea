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
 * The rule.  A copy's place in the list decides how long bytes are held.  What leaves is held until its copy has ended,
 * or the task that takes the bytes would wait for it; what comes back is held from when its copy must begin, so that
 * its reader does not wait.  Copies go one after another: made first leaves first, needed first comes first.  Where
 * bytes are short, what leaves goes earlier and what comes back later.
 *
 * The rewrite.  First what is made again is put into the list, then each copy right behind its place; readers from the
 * gap's end on are switched to what came back.  Positions of gaps are those of the list before; open_line() finds the
 * same uses in the list with repeats, which only adds tasks and changes no order.
 *
 * Which gaps, --swap says:
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
 *
 * Source: "Data movement method, distributed training system, electronic device and storage medium" (2023).  Features
 * C1-C7; C2's recomputation is recompute.c's.
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
    double seconds, again; /* of a copy one way, and of what writes x */
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
static double seconds_of(const struct swapper *w, const struct task *t)
{
    return w->bare.span ? seconds_alone(w->costs, t) : t->copy ? 4 : 1;
}

/* Between two uses where other work lies, of another layer where tasks have any; of state also before and behind all.
 */
static void find_gaps(struct swapper *w, struct tensor *x)
{
    size_t n;
    const struct use *use = uses_of(w->uses, x, &n);
    struct task **task = w->uses->task;
    struct step *s = w->step;
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
        struct tensor *there = tensor_like(s->pool, s->pool->machine->host, x);
        g->seconds = seconds_of(w, carry(s, "swap.in", x, there, FOR_SWAP));
        for (size_t k = 0; k < n; k++)
            g->again += use[k].mode & ACCESS_WRITE ? seconds_of(w, task[use[k].at]) : 0;
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
    int order = BY(turn_of(x), turn_of(y), COMPARE(y->bytes >> 12, x->bytes >> 12));
    order = order ? order : strcmp(x->x->name, y->x->name);
    order = order ? order : strcmp(s->name, t->name);
    return order ? order
                 : BY(s->layer, t->layer, BY(s->micro, t->micro, BY(s->role, t->role, COMPARE(x->nth, y->nth))));
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

/* Makes again what is to be, and lists what is swapped.  What leaves once more, and has not been written since it came
 * back, is on the host still. */
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
    struct task **task = tasks_in_order(w->step, &n);
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
        if (made == g->behind) {
            g->comes = task[uses_of(l.uses, twin[g->x->id], &n_uses)->at];
            g->ready = task[last_write_before(l.uses, twin[g->x->id], (int)n)];
        }
    }
    SORT(l.out, l.n, by_begin);
    l.in = copy_bytes(l.out, (l.n + 1) * sizeof *l.in);
    SORT(l.in, l.n, by_end);
    struct gap **last = allocate(n_tensors, sizeof *last);
    for (size_t k = 0; k < l.n; k++) {
        struct gap *g = l.out[k];
        g->last = last[g->x->id], last[g->x->id] = g;
        g->copied =
            g->before != NOWHERE && (!g->last || is_written_between(w->uses, g->x, g->last->behind - 1, g->before + 1));
    }
    free(from), free(twin), free(task), free(at), free(last);
    return l;
}

static bool computes(const struct line *l, int i, const struct device *d)
{
    return l->uses->task[i]->lane == d->lane[LANE_COMPUTE];
}

static void take_away(const struct gap *g, const struct device *d, int begin, int end, int64_t *held)
{
    for (int i = begin + 1; g->device == d && i < end; i++)
        held[i] -= g->bytes;
}

/* On device d, whose budget leaves room for `most` bytes. */
static void place_copies(const struct swapper *w, struct line *l, const struct placement *p, const struct device *d)
{
    int64_t *held = bytes_held(l->uses, w->step->pool, d);
    int64_t most = (int64_t)((double)d->budget * (1 - p->margin)) - (int64_t)guard_bytes(d);
    int before = 0, n = (int)l->uses->n;
    double next = INFINITY, done = -INFINITY;
    for (size_t k = 0; k < l->n; k++)
        take_away(l->out[k], d, l->out[k]->begin, l->out[k]->end, held);
    /* What comes back is held from when its copy must begin, for its reader and for the copies behind it.  The first
     * needed finds room first, and none comes before those. */
    for (size_t k = l->n; k-- > 0;) {
        struct gap *g = l->in[k];
        if (g->device != d || g->end == n)
            continue;
        next = fmin(next, l->span[g->end].start) - p->lead * g->seconds;
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
    /* What leaves is held until its copy has ended, behind the copies before it.  The last made finds room first: what
     * has waited longest leaves earlier. */
    for (size_t k = 0; k < l->n; k++) {
        struct gap *g = l->out[k];
        if (g->device != d || !g->copied)
            continue;
        done = fmax(done, l->span[g->begin].end) + p->lead * g->seconds;
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
    free(held);
}

/* The list becomes what is to be done about all gaps.  p NULL: copies have their places. */
static void rewrite(struct swapper *w, struct edit *e, const struct placement *p)
{
    struct line l = open_line(w, e);
    struct step *s = w->step;
    struct device *host = s->pool->machine->host;
    for (size_t k = 0; k < l.n && p; k++)
        l.out[k]->out = l.out[k]->begin, l.out[k]->in = l.out[k]->end;
    for (const struct device *d = s->pool->machine->device; !d->is_host && p && p->lead > 0; d++)
        place_copies(w, &l, p, d);
    w->copied = 0;
    for (size_t k = 0; k < l.n; k++) {
        struct gap *g = l.out[k];
        g->there = g->x->persistent ? g->x : g->copied ? tensor_like(s->pool, host, g->x) : g->last->there;
        g->back = g->end < (int)l.uses->n ? tensor_like(s->pool, g->device, g->x) : NULL;
        if (g->back)
            switch_readers(e, l.uses, g->x, g->end, g->last ? g->last->back : g->x, g->back);
        if (g->x->persistent && !g->last)
            set_home(e, g->x, host);
        w->copied += (double)g->x->bytes * (g->copied + (g->back != NULL));
    }
    for (size_t k = 2 * l.n; k-- > 0;) { /* backwards, each right behind its place: at one place outs come first */
        bool in = k >= l.n;
        struct gap *g = in ? l.in[k - l.n] : l.out[k];
        int place = in ? g->in - 1 : g->out;
        if (in ? !g->back : !g->copied)
            continue;
        insert_behind(e, place < 0 ? s->head : l.uses->task[place]);
        s->tags = (struct tags){g->maker->layer, g->maker->micro, ROLE_SWAP};
        if (in)
            g->comes = g->ready = carry(s, "swap.in", g->back, g->there, FOR_SWAP);
        else
            g->leaves = carry(s, "swap.out", g->there, g->last ? g->last->back : g->x, FOR_SWAP);
    }
    free_uses(l.uses);
    free(l.span), free(l.out), free(l.in);
}

/* ---- auto -------------------------------------------------------------------------------------------------------- */

static bool is_kept(const struct swapper *w, const struct gap *g, const unsigned char *choice)
{
    return !g->decision || g->decision >= w->admitted || choice[g->decision] == KEEP;
}

/* Where it cannot be what was chosen, it is the other one. */
static void apply(void *swapper, struct edit *e, const unsigned char *choice)
{
    struct swapper *w = swapper;
    for (struct gap *g = w->gap; g < w->gap + w->n_gaps; g++) {
        bool kept = is_kept(w, g, choice),
             again = !kept && g->may_remake && (!w->swap || choice[g->decision] == REMAKE);
        g->action = again ? REMAKE : !kept && w->swap ? SWAP : KEEP;
    }
    rewrite(w, e, &placements[choice[PLACEMENT]]);
}

/* A rule for a start: something leaves wherever a device would hold more than its budget less a share of it; what is
 * needed last, or what is cheapest to have again. */
static void evict(const struct swapper *w, unsigned char *choice, enum action action, bool by_cost, double spare)
{
    for (const struct device *d = w->step->pool->machine->device; !d->is_host; d++) {
        int64_t *held = bytes_held(w->uses, w->step->pool, d);
        double most = (1 - spare) * (double)d->budget - (double)guard_bytes(d);
        for (const struct gap *g = w->gap; g < w->gap + w->n_gaps; g++)
            if (!is_kept(w, g, choice))
                take_away(g, d, g->before, g->behind, held);
        for (int i = 0; i < (int)w->uses->n; i++)
            for (const struct gap *best = w->gap; best && (double)held[i] > most;) {
                double merit = -1;
                best = NULL;
                for (const struct gap *g = w->gap; g < w->gap + w->n_gaps && g->before < i; g++) {
                    double cost = action == REMAKE ? fmax(g->again, 1e-12) : 1;
                    double mine = by_cost ? (double)g->bytes / cost : g->behind;
                    bool may = g->device == d && g->behind > i && g->decision && g->decision < w->admitted;
                    if (may && choice[g->decision] == KEEP && mine > merit)
                        best = g, merit = mine;
                }
                for (const struct gap *g = best ? w->first[best->decision] : NULL; g; g = g->replica_of)
                    take_away(g, d, g->before, g->behind, held);
                if (best)
                    choice[best->decision] = (unsigned char)action;
            }
        free(held);
    }
}

/* Classes are admitted one after another, each time with a search of its own.  It starts with what is best so far, with
 * what leaves by the rules, and with what holds least. */
static struct score choose_actions(struct swapper *w, unsigned char *best)
{
    static const double spare[] = {0, 0.1, 0.3};
    enum { MOST_STARTS = 1 + 2 * (2 * COUNT(spare) + 1) };
    struct score score = {INFINITY, INFINITY, INFINITY};
    struct question q = {w->step, w->costs, "looking for what to swap", w->decision, .apply = apply, .pass = w};
    q.floor = w->bare.span ? w->bare.period : INFINITY; /* where nobody knows times, whatever fits will do */
    while (w->admitted < w->n && (score.excess > 0 || score.period > q.floor * (1 + 1e-9))) {
        bool found = score.excess == 0;
        int turn = turn_of(w->first[w->admitted]);
        while (w->admitted < w->n && turn_of(w->first[w->admitted]) == turn)
            w->admitted++;
        q.n = w->admitted;
        unsigned char *start = allocate(MOST_STARTS * q.n, 1), *next = start;
        for (size_t i = 0; i < MOST_STARTS; i++)
            memcpy(start + i * q.n, best, q.n);
        for (enum action action = SWAP; action <= (w->swap ? REMAKE : SWAP); action++) {
            for (size_t i = 0; i < 2 * COUNT(spare); i++)
                evict(w, next += q.n, action, i & 1, spare[i / 2]);
            memset(next += q.n, (int)action, q.n);
            next[PLACEMENT] = LEAST;
        }
        q.work = 0;
        score = choose(&q, start, (size_t)(next - start) / q.n + 1, best);
        q.work = score.excess == 0 ? SEARCH_WORK / (found ? 4 : 1) : w->admitted == w->n ? SEARCH_WORK / 8 : 0;
        memcpy(start, best, q.n);
        if (q.work > 0)
            score = choose(&q, start, 1, best);
        free(start);
    }
    return score;
}

/* ---- layer, microbatch ------------------------------------------------------------------------------------------ */

/* What a device computes of one micro-batch, or of one layer of it, one way, is a *turn*.  What a forward has made
 * leaves during the turn behind it, and comes back during the last backward before its reader's turn; where there is
 * none between, during the turn before.  State leaves at once, and comes back during that. */
static bool place_by_turn(const struct swapper *w, struct gap *g, bool by_layer)
{
    struct turn {
        int first, last; /* positions */
        bool backward;
    } *turn = allocate(w->uses->n + 1, sizeof *turn);
    bool state = g->x->persistent;
    const struct task *before = NULL;
    int n = 0, made = 0, reads = 0;
    for (int i = 0; i < (int)w->uses->n; i++) { /* the turns of its device, which lie side by side */
        const struct task *t = w->uses->task[i];
        if (t->lane != g->device->lane[LANE_COMPUTE] || (by_layer || state ? t->layer : t->micro) < 0)
            continue;
        if (!before || t->role != before->role || t->micro != before->micro ||
            ((by_layer || state) && t->layer != before->layer))
            turn[n++] = (struct turn){.first = i, .backward = t->role == ROLE_BACKWARD};
        turn[n - 1].last = i;
        before = t;
    }
    while (made < n && turn[made].last < (int)g->maker->index)
        made++;
    while (reads < n && turn[reads].last < g->behind)
        reads++;
    int next = made + 1, back = reads - 1;
    while (!state && back > made && !turn[back].backward)
        back--;
    back = back > made ? back : reads - 1;
    g->out = g->before, g->in = g->behind;
    if (!state && next < n)
        g->out = MAX(turn[next].last, g->before);
    if (g->behind < (int)w->uses->n && back >= 0 && turn[back].last > g->before)
        g->in = MAX(turn[back].first, g->before + 1);
    free(turn);
    return state || (g->in > g->out && g->maker->role == ROLE_FORWARD && next <= back);
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

/* Reports the list as it is now, in edit e, which is committed; NULL: nothing has changed.  must_fit: by this option;
 * NULL: it need not.  Times count from the steady step's first task, which may run while the step before still does;
 * but for those that prepare its batch, a step early, and those that skip this one. */
static bool finish(struct swapper *w, struct edit *e, const char *declines, const char *must_fit, struct pass_report *r)
{
    const struct forecast *f = &r->after;
    const struct machine *m = w->step->pool->machine;
    json_t *moves = json_array(), *peaks = json_object();
    size_t n[3] = {0};
    double begin = 0;
    r->after = try_step(w->step, w->costs);
    if (f->excess > 0 && must_fit)
        refuse_budget(m, f, must_fit);
    if (e)
        commit(e);
    for (size_t i = 0; f->span && i < f->n; i++)
        if (f->task[i]->role != ROLE_FEED && f->task[i]->when.every <= 1)
            begin = fmin(begin, f->span[i].start);
    for (const struct gap *g = w->gap; g < w->gap + w->n_gaps && !declines; g++) {
        const struct task *task[] = {g->leaves, g->leaves, g->comes, g->ready, g->reader};
        static const char *const key[] = {"out_start_ms", "out_end_ms", "in_start_ms", "in_end_ms", "needed_ms"};
        if (!g->leaves && !g->comes)
            continue;
        n[g->action] += g->comes != NULL;
        json_t *move = json_pack("{s:s, s:i, s:i, s:s, s:I, s:s}", "tensor", g->x->name, "layer", g->maker->layer,
                                 "micro", g->maker->micro, "device", g->device->id, "bytes", (json_int_t)g->x->bytes,
                                 "how", g->action == SWAP ? "swap" : "recompute");
        for (int i = 0; i < (int)COUNT(key); i++) {
            const struct span *span = task[i] && f->span ? &f->span[task[i]->index] : NULL;
            double at = !span ? NAN : i % 2 ? span->end : span->start;
            json_object_set_new(move, key[i], milliseconds(at - begin));
        }
        json_array_append_new(moves, move);
    }
    for (int d = 0; d <= m->n_devices; d++)
        json_object_set_new(
            peaks, m->device[d].id,
            json_pack("{s:I, s:I}", "before", (json_int_t)w->bare.need[d], "after", (json_int_t)f->need[d]));
    r->reason = declines ? copy_string(declines)
                         : format_string("%zu swapped, %zu made again, %s copied", n[SWAP], n[REMAKE],
                                         format_bytes((char[32]){0}, w->copied));
    r->fields = json_pack("{s:o, s:o}", "moves", moves, "peak_bytes", peaks);
    report_ms(r, "stall_ms", declines ? NULL : "stall", f->period - fmin(f->period, w->bare.period));
    report_ms(r, "bare_ms", NULL, w->bare.period);
    report_ms(r, "period_ms", NULL, f->period);
    free_forecast(&w->bare), free_uses(w->uses);
    free(w->gap), free(w->decision), free(w->first);
    return !declines;
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

static bool run_auto(struct swapper *w, const char *must_fit, struct pass_report *r)
{
    if (w->bare.excess == 0)
        return finish(w, NULL, "all fits", NULL, r);
    unsigned char *best = allocate(w->n, 1);
    if (choose_actions(w, best).excess > 0 && must_fit && w->swap) { /* a budget that works: of what holds least */
        memset(best, SWAP, w->n);
        best[PLACEMENT] = LEAST;
    }
    struct edit *e = open_edit(w->step);
    apply(w, e, best);
    free(best);
    return finish(w, e, NULL, must_fit, r);
}

bool run_swap(struct step *s, const struct costs *c, const struct pass_options *w, struct pass_report *r)
{
    bool by_layer = w->swap == SWAP_LAYER, any = false;
    struct swapper x = open_swapper(s, c, w->swap_what, true, w->swap == SWAP_AUTO);
    if (w->swap == SWAP_AUTO)
        return run_auto(&x, "--swap auto", r);
    for (struct gap *g = x.gap; g < x.gap + x.n_gaps; g++) {
        g->action = place_by_turn(&x, g, by_layer) ? SWAP : KEEP;
        any |= g->action == SWAP;
    }
    if (!any)
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
