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
 * State (parameters, and m and v of Adam) has a home.  When state is swapped, its home is the host, and it visits the
 * device for its uses.  Where the host updates parameters, it has their new values, and the device is given these only
 * before its next use (pass/guest.c):
 *
 *     compute      F0    F1    F2    F3    B3    B2    B1    B0          | F0
 *     w0           |=====|                                   |=====|     | |=====
 *     copies    in w0                                     in w0          in w0
 *     host                                                            U0
 *
 * A tensor that each step makes anew, such as a gradient, has no value from its last use to its first use in the next
 * step.  Its bytes are free in between, and nothing is copied.
 *
 * The rule.  A copy starts when its source is written, its lane is free, and the last user of the bytes that it writes
 * to has ended: the edges say so.  The place of the copy in the list decides how long bytes are held.  If a task were
 * given bytes from which a copy still reads, it would wait for that copy.  So a tensor that leaves is held until a
 * little after its copy began, and a tensor that comes back is held from a little before its reader on.
 *
 * The fixed orders, --swap layer and --swap microbatch.  They move every tensor that can leave, whatever the budget is,
 * and the program ends where the result does not fit.  (--swap auto moves only what the budget needs: swap_auto.c.)  A
 * *phase* is what a device computes of one layer, or of one micro-batch, in one direction: forward or backward.
 *
 *     phases       F0    F1    F2    F3    B3    B2    B1    B0
 *     data of 0    made  out                           in    read
 *     data of 1          made  out               in    read
 *
 * A tensor that a forward has made is held through the next phase, while its copy runs.  It comes back during the last
 * backward before its reader's phase, or, if there is no backward in between, during the phase before its reader's.
 * State goes by layers: it leaves at once, and comes back during the phase before its reader's.
 *
 * The rewrite.  swap.out comes right after task `out`, and swap.in right before task `in`.  Tasks that used the tensor
 * from the gap's end on use the new tensor that swap.in writes.
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

size_t uses_to_part(const struct uses *u, const struct tensor *x)
{
    size_t n, readers = x->persistent ? uses_of_guest(u, x) : 0;
    uses_of(u, x, &n);
    return readers ? readers : n;
}

/* May the task that ends a gap of x come right after the task that begins it?  Of what swap moves it may touch x
 * alone, else gaps of others would change; and there it may wait only for what its own lane made. */
static bool may_close(const struct gaps *all, const struct tensor *x, int end)
{
    const struct uses *u = all->uses;
    const struct task *t = u->task[end];
    for (int i = 0; i < t->n_access; i++) {
        const struct tensor *y = t->access[i].tensor->storage;
        if (y != x && may_leave(u, y, all->classes))
            return false;
    }
    return t->lane == u->task[last_write_before(u, x, end)]->lane;
}

static struct gap *add_gap(struct gaps *all, struct tensor *x, size_t nth, int begin, int end)
{
    size_t n;
    const struct use *use = uses_of(all->uses, x, &n);
    struct gap *g = APPEND(all->gap, all->n, all->cap);
    *g = (struct gap){
        .x = x,
        .device = x->device,
        .maker = all->uses->task[use[0].position],
        .begin = begin,
        .end = end,
        .nth = (int)nth,
    };
    /* The lane for its copy up is opened here: so lanes have the same order, whatever is chosen. */
    lane_for(all->step->pool->machine, x->device, LANE_UPLOAD, FOR_SWAP);
    return g;
}

/* A tensor cannot leave before all its bytes have been written: a copy would read what nobody has written. */
static void find_gaps_of(struct gaps *all, struct tensor *x)
{
    const struct uses *u = all->uses;
    size_t n_uses;
    const struct use *use = uses_of(u, x, &n_uses);
    const size_t n = uses_to_part(u, x);
    const bool renewed = x->persistent && is_renewed(u, x);
    if (x->persistent) {
        struct gap *g = add_gap(all, x, 0, NONE, use[0].position);
        g->renewed = renewed;
        g->guest = n < n_uses;
    }
    for (size_t i = 1; i < n; i++) {
        int begin = use[i - 1].position, end = use[i].position;
        bool is_state = x->persistent && !renewed;
        if (lies_idle(u, begin, end) && (is_state || is_whole_before(u, x, end)))
            add_gap(all, x, i, begin, end)->closes = renewed && may_close(all, x, end);
    }
    if (x->persistent)
        add_gap(all, x, n, use[n - 1].position, (int)u->n)->renewed = renewed;
}

COMPARISON(by_begin, struct gap, BY(a->begin, b->begin, BY(b->end, a->end, COMPARE(a->x->id, b->x->id))))

struct gaps find_gaps(struct step *s, const struct costs *c, unsigned classes)
{
    struct gaps all = {.step = s, .bare = try_step(s, c), .classes = classes};
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

struct absence *keep_all(const struct gaps *all)
{
    struct absence *absence = allocate(all->n + 1, sizeof *absence);
    for (size_t i = 0; i < all->n; i++) {
        const struct gap *g = &all->gap[i];
        absence[i] = (struct absence){.gap = g, .action = KEEP, .begin = g->begin, .end = g->end};
    }
    return absence;
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

/* Does task t, which comes after `last` on a device, begin another phase? */
enum phase_of { PHASE_OF_LAYER, PHASE_OF_MICROBATCH };
static bool begins_phase(const struct task *last, const struct task *t, enum phase_of of)
{
    if (t->role != last->role || t->micro != last->micro)
        return true;
    return of == PHASE_OF_LAYER && t->layer != last->layer;
}

/* The tasks of a phase follow each other on the device. */
static struct phases find_phases(const struct uses *u, const struct device *d, enum phase_of of)
{
    struct phases all = {.phase = allocate(u->n + 1, sizeof *all.phase)};
    const struct task *last = NULL;
    for (int i = 0; i < (int)u->n; i++) {
        const struct task *t = u->task[i];
        int number = of == PHASE_OF_LAYER ? t->layer : t->micro;
        if (t->lane != d->lane[LANE_COMPUTE] || number < 0)
            continue;
        if (!last || begins_phase(last, t, of)) {
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

/* The tensor comes back at the beginning of that phase, or at the gap's own beginning if that is later.  Where there is
 * no such phase (-1), or it ends before the gap begins, it comes back right before its reader. */
static void come_back_during(const struct phases *p, int back, struct absence *a)
{
    a->in = a->end;
    if (back >= 0 && p->phase[back].last > a->begin)
        a->in = MAX(p->phase[back].first, a->begin + 1);
}

/* State leaves right after its last use, and comes back in the phase before its reader's. */
static void place_state(const struct phases *p, struct absence *a, int n_tasks)
{
    a->out = a->begin;
    a->in = a->end;
    if (a->end < n_tasks)
        come_back_during(p, phase_at(p, a->end) - 1, a);
}

/* false: fewer than two phases lie in between, one for the data to leave in and one for them to come back in. */
static bool place_data(const struct phases *p, struct absence *a)
{
    const struct task *maker = a->gap->maker;
    int made = phase_at(p, (int)maker->index);
    int before_reader = phase_at(p, a->end) - 1;
    int back = before_reader; /* becomes the last backward before the reader's phase, if there is one after `made` */
    while (back > made && !p->phase[back].backward)
        back--;
    if (back <= made)
        back = before_reader;
    a->out = a->begin;
    if (made + 1 < p->n)
        a->out = MAX(p->phase[made + 1].last, a->begin);
    come_back_during(p, back, a);
    return a->in > a->out && maker->role == ROLE_FORWARD && made + 1 <= back;
}

/* Chooses what of a device is swapped, and when; false: nothing.  absence: one for each gap. */
static bool place_by_phases(const struct gaps *all, struct absence *absence, const struct device *d, enum phase_of of)
{
    struct phases data = find_phases(all->uses, d, of);
    struct phases state = find_phases(all->uses, d, PHASE_OF_LAYER);
    bool any_leaves = false;
    for (struct absence *a = absence; a < absence + all->n; a++) {
        if (a->gap->device != d)
            continue;
        bool leaves = true;
        if (a->gap->x->persistent)
            place_state(&state, a, (int)all->uses->n);
        else
            leaves = place_data(&data, a);
        a->action = leaves ? SWAP : KEEP;
        any_leaves |= leaves;
    }
    free(data.phase);
    free(state.phase);
    return any_leaves;
}

/* ---- the rewrite ------------------------------------------------------------------------------------------------- */

/* Where both ends are the same, gaps have the order that find_gaps() has given to their array: addresses compare so. */
COMPARISON_POINTERS(by_end, struct absence, BY(a->end, b->end, BY(a->begin, b->begin, COMPARE(a->gap, b->gap))))

/* Must a copy take x to the host?  The host has x already in two cases.  Before the first use of x, x is state, whose
 * home is the host.  Or x was swapped before, and no task has written x since it came back, from the use at
 * earlier->end to the use at `begin`, both included.  (A guest is written only by copies up, and these come after its
 * last gap has begun.) */
static bool is_new_for_host(const struct absence *a, const struct uses *u)
{
    if (a->begin == NONE || a->gap->renewed)
        return false;
    return !a->earlier || is_written_between(u, a->gap->x, a->earlier->end - 1, a->begin + 1);
}

struct swaps line_up(struct absence *absence, size_t n, const struct uses *u)
{
    struct swaps line = {.leaving = allocate(n + 1, sizeof(struct absence *))};
    struct absence **last = allocate(u->n_tensors, sizeof(struct absence *)); /* by tensor: its last swap so far */
    for (struct absence *a = absence; a < absence + n; a++) {
        if (a->action != SWAP)
            continue;
        const int x = a->gap->x->id;
        a->earlier = last[x];
        a->sent = is_new_for_host(a, u);
        last[x] = a;
        line.leaving[line.n] = a;
        line.n++;
    }
    free(last);
    line.returning = copy_bytes(line.leaving, (line.n + 1) * sizeof(struct absence *));
    SORT(line.returning, line.n, by_end);
    return line;
}

void free_swaps(struct swaps *all)
{
    free(all->leaving);
    free(all->returning);
}

/* The tensor that the device holds when the gap begins. */
static struct tensor *held_before(const struct absence *a)
{
    return a->earlier && a->earlier->back ? a->earlier->back : a->gap->x;
}

/* Makes the tensors that hold x while it is away and after it has come back.  Later users of x use the second one. */
static void make_tensors(struct edit *e, struct step *s, const struct uses *u, struct absence *a)
{
    struct tensor *x = a->gap->x;
    struct device *host = s->pool->machine->host;
    if (a->gap->renewed) {
        make_transient(e, x);
        return;
    }
    if (x->persistent)
        a->on_host = x;
    else if (a->sent)
        a->on_host = tensor_like(s->pool, host, x);
    else
        a->on_host = a->earlier->on_host;
    if (a->end < (int)u->n) {
        a->back = tensor_like(s->pool, a->gap->device, x);
        switch_readers(e, u, x, a->end, held_before(a), a->back);
    }
    if (x->persistent && !a->earlier)
        set_home(e, x, host);
}

/* New tasks come right after the task at `position` (NONE: they begin the list), with the layer and micro-batch of
 * the task that made x. */
static void insert_for(struct edit *e, struct step *s, const struct uses *u, int position, const struct gap *g)
{
    insert_behind(e, position == NONE ? s->head : u->task[position]);
    s->tags = (struct tags){g->maker->layer, g->maker->micro, ROLE_SWAP};
}

/* Copies are inserted from the last to the first: each comes right after its task, before the copies that have been
 * inserted there.  Where one tensor leaves and another comes back, swap.out stands first, so it is inserted last. */
void swap_gaps(struct edit *e, struct step *s, const struct uses *u, const struct swaps *all)
{
    for (size_t k = 0; k < all->n; k++)
        make_tensors(e, s, u, all->leaving[k]);
    for (size_t k = all->n; k-- > 0;) {
        const struct absence *a = all->returning[k];
        if (!a->back)
            continue;
        CHECK(a->out < a->in, "tensor %s leaves after task %d, and comes back before task %d", a->back->name, a->out,
              a->in);
        insert_for(e, s, u, a->in - 1, a->gap);
        add_copy_for(s, "swap.in", a->back, a->on_host, FOR_SWAP);
    }
    for (size_t k = all->n; k-- > 0;) {
        struct absence *a = all->leaving[k];
        if (!a->sent)
            continue;
        insert_for(e, s, u, a->out, a->gap);
        a->leaves = add_copy_for(s, "swap.out", a->on_host, held_before(a), FOR_SWAP);
    }
    for (size_t k = 0; k < all->n; k++)
        if (all->leaving[k]->gap->guest)
            give_way(e, s->pool, u, all->leaving[k]->gap->x);
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

bool swap_by_phases(struct step *s, const struct costs *c, const struct run_facts *facts, struct pass_report *r)
{
    static const char why_not[] =
        "nothing can leave, since fewer than two other phases run between each forward and its backward";
    struct machine *m = s->pool->machine;
    const enum phase_of of = swap_options.mode == SWAP_LAYER ? PHASE_OF_LAYER : PHASE_OF_MICROBATCH;
    struct gaps all = find_gaps(s, c, swap_options.classes);
    struct absence *absence = keep_all(&all);
    bool changed = false;
    for (const struct device *d = m->device; !d->is_host; d++)
        changed |= place_by_phases(&all, absence, d, of);
    struct swaps line = line_up(absence, all.n, all.uses);
    struct edit *e = open_edit(s);
    swap_gaps(e, s, all.uses, &line);
    commit(e);
    report_gaps(&all, absence, c, changed ? NULL : why_not, r);
    free_swaps(&line);
    free(absence);
    free_gaps(&all);
    if (r->after->excess_bytes > 0)
        refuse_budget(m, r->after, of == PHASE_OF_LAYER ? "--swap layer" : "--swap microbatch", replanning_of(facts));
    return changed;
}
