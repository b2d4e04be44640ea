/* swap.c - training in less memory than the step would hold: data leaves for the host and comes back in time.
 *
 * Between two tasks that use a tensor lies a *gap*, in which the tensor lies idle.  To swap it is to copy it to the
 * host and to fetch it back before the gap ends.  In between its bytes on the device are free for others.
 *
 *     compute      F0    F1    F2    F3    B3    B2    B1    B0
 *     a0 kept      |===========================================|
 *     a0 swapped   |===========|                       |=======|      held through `out` (F1), from `in` (B1) on
 *     copies             out a0                        in a0
 *
 * State (parameters, and m and v of Adam) has a home.  When it is swapped that is the host, and the state visits the
 * device for its uses.
 *
 * The rule.  A copy starts when its source is written, its lane is free, and the last user of the bytes that it writes
 * to has ended: the edges say so.  Its place in the list decides how long bytes are held.  A task that takes bytes from
 * which a copy still reads would wait for that copy.  So what leaves is held a little longer, and what comes back is
 * held a little earlier.
 *
 * The fixed orders, --swap layer and --swap microbatch.  They move all they can, whatever the budget, and are refused
 * where that does not fit.  (--swap auto looks for what the budget needs: swap_auto.c.)  What a device computes of one
 * layer, or of one micro-batch, one way, is a *phase*.
 *
 *     phases       F0    F1    F2    F3    B3    B2    B1    B0
 *     data of 0    made  out                           in    read
 *     data of 1          made  out               in    read
 *
 * What a forward has made is held through the next phase, while its copy runs, and comes back during the last backward
 * before its reader's phase; where there is none between, during the phase before its reader's.  State goes by layers:
 * it leaves at once, and comes back during the phase before its reader's.
 *
 * The rewrite.  swap.out comes right after task `out`, swap.in right before task `in`, and what used the tensor from
 * the gap's end on uses what came back.
 *
 * Source: "Data movement method, distributed training system, electronic device and storage medium" (2023); of the
 * fixed orders "vDNN: Virtualized Deep Neural Networks for Scalable, Memory-Efficient Neural Network Design" (Rhu et
 * al. 2016).
 */
#include "swap.h"
#include "techniques/pass/traits.h"

/* ---- gaps -------------------------------------------------------------------------------------------------------- */

/* Tasks at a and b use a tensor, and none between them does.  A block (tasks of one layer, micro-batch and role) has no
 * gap inside; from forward to backward there is one even between neighbours. */
static bool lies_idle(const struct uses *u, int a, int b)
{
    const struct task *first = u->task[a], *second = u->task[b];
    if (same_block(first, second))
        return false;
    return b - a > 1 || (first->role == ROLE_FORWARD && second->role == ROLE_BACKWARD);
}

static void add_gap(struct gaps *all, struct tensor *x, size_t nth, int begin, int end)
{
    size_t n;
    const struct use *use = uses_of(all->uses, x, &n);
    struct gap *g = APPEND(all->gap, all->n, all->cap);
    *g = (struct gap){
        .x = x, .device = x->device, .maker = all->uses->task[use[0].at], .begin = begin, .end = end, .nth = (int)nth};
    /* The lane for its copy up is opened here: so lanes have the same order, whatever is chosen. */
    lane_for(all->step->pool->machine, x->device, LANE_UPLOAD, FOR_SWAP);
}

/* A tensor cannot leave before all its bytes have been written: a copy would read what nobody has written. */
static void find_gaps_of(struct gaps *all, struct tensor *x)
{
    const struct uses *u = all->uses;
    size_t n;
    const struct use *use = uses_of(u, x, &n);
    if (x->persistent)
        add_gap(all, x, 0, NOWHERE, use[0].at);
    for (size_t i = 1; i < n; i++) {
        int begin = use[i - 1].at, end = use[i].at;
        if (lies_idle(u, begin, end) && (x->persistent || is_whole_before(u, x, end)))
            add_gap(all, x, i, begin, end);
    }
    if (x->persistent)
        add_gap(all, x, n, use[n - 1].at, (int)u->n);
}

ORDER(by_begin, struct gap, BY(a->begin, b->begin, BY(b->end, a->end, COMPARE(a->x->id, b->x->id))))

struct gaps find_gaps(struct step *s, const struct costs *c, unsigned classes)
{
    struct gaps all = {.step = s, .bare = try_step(s, c)};
    must(all.bare.why_not);
    all.uses = find_uses(s->task, s->n, s->pool);
    for (size_t i = 0; i < all.uses->n_tensors; i++) {
        struct tensor *x = s->pool->tensors[i];
        if (may_leave(all.uses, x, classes))
            find_gaps_of(&all, x);
    }
    SORT(all.gap, all.n, by_begin);
    return all;
}

void free_gaps(struct gaps *all)
{
    free_forecast(&all->bare);
    free_uses(all->uses);
    free(all->gap);
}

/* ---- the fixed orders -------------------------------------------------------------------------------------------- */

struct phase {
    int first, last; /* positions of its tasks */
    bool backward;
};
struct phases { /* a device's phases, in list order; the caller frees `phase` */
    struct phase *phase;
    int n;
};

/* Task t comes after `last` on a device. */
static bool begins_phase(const struct task *last, const struct task *t, bool by_layer)
{
    return t->role != last->role || t->micro != last->micro || (by_layer && t->layer != last->layer);
}

/* The tasks of a phase follow each other on the device. */
static struct phases find_phases(const struct uses *u, const struct device *d, bool by_layer)
{
    struct phases all = {.phase = allocate(u->n + 1, sizeof *all.phase)};
    const struct task *last = NULL;
    for (int i = 0; i < (int)u->n; i++) {
        const struct task *t = u->task[i];
        int number = by_layer ? t->layer : t->micro;
        if (t->lane != d->lane[LANE_COMPUTE] || number < 0)
            continue;
        if (!last || begins_phase(last, t, by_layer)) {
            all.phase[all.n] = (struct phase){.first = i, .backward = t->role == ROLE_BACKWARD};
            all.n++;
        }
        all.phase[all.n - 1].last = i;
        last = t;
    }
    return all;
}

/* The first phase that ends at this position or after it; p->n: none. */
static int phase_at(const struct phases *p, int position)
{
    int i = 0;
    while (i < p->n && p->phase[i].last < position)
        i++;
    return i;
}

/* The gap's tensor comes back at the beginning of that phase, or at the gap's own beginning if that is later.  Where
 * there is no such phase (-1), or it ends before the gap begins, it comes back right before its reader. */
static void come_back_during(const struct phases *p, int back, struct gap *g)
{
    g->in = g->end;
    if (back >= 0 && p->phase[back].last > g->begin)
        g->in = MAX(p->phase[back].first, g->begin + 1);
}

static void place_state(const struct phases *p, struct gap *g, int n_tasks)
{
    g->out = g->begin;
    g->in = g->end;
    if (g->end < n_tasks)
        come_back_during(p, phase_at(p, g->end) - 1, g);
}

/* false: fewer than two phases lie in between, one for the data to leave in and one for them to come back in. */
static bool place_data(const struct phases *p, struct gap *g)
{
    int made = phase_at(p, (int)g->maker->index), before_reader = phase_at(p, g->end) - 1;
    int back = before_reader; /* becomes the last backward before the reader's phase, if there is one after `made` */
    while (back > made && !p->phase[back].backward)
        back--;
    if (back <= made)
        back = before_reader;
    g->out = g->begin;
    if (made + 1 < p->n)
        g->out = MAX(p->phase[made + 1].last, g->begin);
    come_back_during(p, back, g);
    return g->in > g->out && g->maker->role == ROLE_FORWARD && made + 1 <= back;
}

/* Chooses what of a device is swapped, and when; false: nothing. */
static bool place_by_phases(struct gaps *all, const struct device *d, bool by_layer)
{
    struct phases data = find_phases(all->uses, d, by_layer), state = find_phases(all->uses, d, true);
    bool some = false;
    for (struct gap *g = all->gap; g < all->gap + all->n; g++) {
        if (g->device != d)
            continue;
        bool leaves = true;
        if (g->x->persistent)
            place_state(&state, g, (int)all->uses->n);
        else
            leaves = place_data(&data, g);
        g->action = leaves ? SWAP : KEEP;
        some |= leaves;
    }
    free(data.phase);
    free(state.phase);
    return some;
}

/* ---- the rewrite ------------------------------------------------------------------------------------------------- */

ORDER_POINTERS(by_end, struct gap, BY(a->end, b->end, BY(a->begin, b->begin, COMPARE(a, b))))

/* Must a copy take x to the host?  The host has x already in two cases: before its first use, since that is then the
 * home of state; and where x was swapped before and no task has written it since it came back, from the use at
 * earlier->end to the use at `begin`, both included. */
static bool is_new_for_host(const struct gap *g, const struct uses *u)
{
    if (g->begin == NOWHERE)
        return false;
    return !g->earlier || is_written_between(u, g->x, g->earlier->end - 1, g->begin + 1);
}

struct swaps line_up(const struct gaps *all, const struct uses *u)
{
    struct swaps line = {.out = allocate(all->n + 1, sizeof(struct gap *))};
    struct gap **last = allocate(u->n_tensors, sizeof(struct gap *)); /* by tensor: its last gap so far */
    for (struct gap *g = all->gap; g < all->gap + all->n; g++) {
        if (g->action != SWAP)
            continue;
        g->earlier = last[g->x->id];
        g->sent = is_new_for_host(g, u);
        last[g->x->id] = g;
        line.out[line.n++] = g;
    }
    free(last);
    line.in = copy_bytes(line.out, (line.n + 1) * sizeof(struct gap *));
    SORT(line.in, line.n, by_end);
    return line;
}

/* The tensor that the device holds when the gap begins. */
static struct tensor *held_before(const struct gap *g) { return g->earlier ? g->earlier->back : g->x; }

/* Makes the tensors that x is while it is away and when it is back, and switches its users to the latter. */
static void make_tensors(struct edit *e, struct step *s, const struct uses *u, struct gap *g)
{
    struct tensor *x = g->x;
    struct device *host = s->pool->machine->host;
    if (x->persistent)
        g->on_host = x;
    else if (g->sent)
        g->on_host = tensor_like(s->pool, host, x);
    else
        g->on_host = g->earlier->on_host;
    if (g->end < (int)u->n) {
        g->back = tensor_like(s->pool, g->device, x);
        switch_readers(e, u, x, g->end, held_before(g), g->back);
    }
    if (x->persistent && !g->earlier)
        set_home(e, x, host);
}

/* New tasks come right after task `at` (NOWHERE: they begin the list), with the layer and micro-batch that made x. */
static void insert_for(struct edit *e, struct step *s, const struct uses *u, int at, const struct gap *g)
{
    insert_behind(e, at == NOWHERE ? s->head : u->task[at]);
    s->tags = (struct tags){g->maker->layer, g->maker->micro, ROLE_SWAP};
}

/* Copies are put in from the last one to the first: each comes right after its task, before copies that stand there
 * already.  Where one tensor leaves and another comes back, the one that leaves stands first, so it is put in last. */
void swap_gaps(struct edit *e, struct step *s, const struct uses *u, const struct swaps *all)
{
    for (size_t k = 0; k < all->n; k++)
        make_tensors(e, s, u, all->out[k]);
    for (size_t k = all->n; k-- > 0;) {
        struct gap *g = all->in[k];
        if (!g->back)
            continue;
        insert_for(e, s, u, g->in - 1, g);
        carry(s, "swap.in", g->back, g->on_host, FOR_SWAP);
    }
    for (size_t k = all->n; k-- > 0;) {
        struct gap *g = all->out[k];
        if (!g->sent)
            continue;
        insert_for(e, s, u, g->out, g);
        g->leaves = carry(s, "swap.out", g->on_host, held_before(g), FOR_SWAP);
    }
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

bool swap_by_phases(struct step *s, const struct costs *c, const struct run_facts *w, struct pass_report *r)
{
    static const char why_not[] =
        "nothing can leave, since fewer than two other phases run between each forward and its backward";
    struct machine *m = s->pool->machine;
    const bool by_layer = swap_options.how == SWAP_LAYER;
    struct gaps all = find_gaps(s, c, swap_options.what);
    bool changed = false;
    for (const struct device *d = m->device; !d->is_host; d++)
        changed |= place_by_phases(&all, d, by_layer);
    struct swaps line = line_up(&all, all.uses);
    struct edit *e = open_edit(s);
    swap_gaps(e, s, all.uses, &line);
    commit(e);
    report_gaps(&all, c, changed ? NULL : why_not, r);
    free(line.out);
    free(line.in);
    free_gaps(&all);
    if (r->after->excess > 0)
        refuse_budget(m, r->after, by_layer ? "--swap layer" : "--swap microbatch", !plan_may_change(w));
    return changed;
}
