/* overlap.c - the layered optimizer: some layers' updates run on the CPU while the device goes on.
 *
 *     one layer, on the device:    backward .... (norm)  update                    | forward
 *                on the CPU:       backward  down  (norm)  update (cpu)  up        | forward
 *
 * The rewrite.  An update that can run on either side is moved by five edits: its gradients go down as soon as they are
 * made; the host's update stands in for the device's; the host keeps the parameters too, as a mirror of them; Adam's
 * state has its home on the host; and the new parameters go up.  The device waits for them where the next forward reads
 * them, layer by layer.  A large update moves in pieces, so that one is computed while others are copied.  With
 * clipping no update starts before the norm is known: gradients still go down under the backward, and the CPU works
 * under the next forward.
 *
 * The decisions.  One per *bucket*, the updates of a layer:
 *
 *     D   on its device, right behind the layer's backward
 *     C   on the CPU, in the order in which the backward releases them
 *     L   on the CPU late, behind all C, in the order in which the next forward needs them
 *
 *     released    layer 3   layer 2   layer 1   layer 0      layer 0's backward is last and its forward is first, so
 *     needed      layer 0   layer 1   layer 2   layer 3      what its update takes on the CPU is hard to hide
 *
 * So the CPU gets those that are released first, and the question is how many.  From that start the search
 * (../plan/plan.h) goes on by flips; what comes of a choice, the simulator says, which knows of links that are shared,
 * of pipelines and of memory.  One more decision is about memory: gradients that go down share bytes with nothing, so
 * that no task waits for their copy; or they do.  All on the device is a plan too: when none is shorter the pass
 * declines.
 *
 * --overlap local decides while the step runs: local.c.
 *
 * Positions.  A bucket is released by the last task of the list that makes one of its gradients.  Copies down stand
 * right behind that task, and those of later pieces behind them: bring_down() relies on it.  move_updates() walks over
 * the tasks as they were when the edit was opened.
 *
 * Source: "Iterative computing method and device for model training" (Ant, 2025).  Features A1-A7.
 */
#include "../plan/plan.h"
#include "../plan/text.h"
#include "../step/uses.h"
#include "local.h"
#include "pass.h"

#include <math.h>
#include <unistd.h>

enum {
    MOST_BUCKETS = 1024 /* what there is more stays on the device */,
    MOST_WORK = SEARCH_WORK / 6,
    MOST_STARTS = 16
};
enum memory { EXCLUSIVE, SHARED }; /* bytes of gradients that go down */
static const char *const letter[SIDES] = {[ON_CPU] = "C", [ON_CPU_LATE] = "L", [ON_DEVICE] = "D"};

struct plan {
    unsigned char choice[MOST_BUCKETS + 1]; /* by bucket enum side, then enum memory */
    struct score score;
};
struct planner {
    struct step *step;
    const struct costs *costs;
    struct uses *uses;
    struct bucket bucket[MOST_BUCKETS]; /* in order of release */
    size_t n;
    int *bucket_of;             /* by position: of which of them the task is, or NOWHERE */
    int cores;                  /* of the host, that no device computes on: its updates take them in turn */
    bool timed;                 /* it is known how long tasks take */
    double serial, least;       /* seconds: all on the CPU, one task after another; what no plan is below */
    struct plan plan[OVERLAPS]; /* what each --overlap comes to */
    struct local *how;          /* the running step decides; NULL: it is decided here */
};

bool wants_overlap(const struct pass_options *w) { return w->overlap != OVERLAP_OFF; }

/* ---- which updates can move -------------------------------------------------------------------------------------- */

static bool is_on_device(const struct access *a, enum memory_class class)
{
    return a->tensor->class == class && !a->tensor->device->is_host;
}

/* The first parameters on a device that the task writes, or NULL. */
static const struct tensor *parameters_of(const struct task *t)
{
    for (int i = 0; i < t->n_access; i++)
        if (is_on_device(&t->access[i], MEM_PARAMETERS) && (t->access[i].mode & ACCESS_WRITE))
            return t->access[i].tensor;
    return NULL;
}

/* Adam's state has one home, so no other layer's task may touch it. */
static bool can_move(const struct planner *p, const struct task *t)
{
    bool can = t->role == ROLE_UPDATE && t->lane->kind == LANE_COMPUTE && (t->host_seconds >= 0 || t->host_run) &&
               parameters_of(t);
    for (int i = 0; i < t->n_access && can; i++) {
        const struct tensor *x = t->access[i].tensor;
        size_t n = 0;
        const struct use *use = x->class == MEM_OPTIMIZER ? uses_of(p->uses, x, &n) : NULL;
        can = x->class == MEM_OPTIMIZER || x->class == MEM_PARAMETERS || !(t->access[i].mode & ACCESS_WRITE);
        for (size_t k = 0; k < n; k++)
            can &= p->step->task[use[k].at]->layer == t->layer;
    }
    return can;
}

/* The position of the last task that makes a gradient that t reads, or NOWHERE. */
static int last_maker(const struct planner *p, const struct task *t)
{
    int last = NOWHERE;
    for (int i = 0; i < t->n_access; i++)
        if (is_on_device(&t->access[i], MEM_GRADIENTS))
            last = MAX(last, last_write_before(p->uses, t->access[i].tensor, (int)t->index));
    return last;
}

ORDER(by_release, struct bucket, BY(a->released, b->released, COMPARE(a->first, b->first)))

static void find_buckets(struct planner *p)
{
    const struct step *s = p->step;
    for (int round = 0; round < 2; round++, SORT(p->bucket, p->n, by_release)) /* their numbers are those when sorted */
        for (size_t i = 0; i < s->n; i++) {
            const struct task *t = s->task[i];
            struct bucket new = {.layer = t->layer, .first = i, .released = NOWHERE};
            p->bucket_of[i] = NOWHERE;
            if (!can_move(p, t))
                continue;
            if (t->layer < 0)
                snprintf(new.name, sizeof new.name, "other %s", parameters_of(t)->storage->name);
            else
                snprintf(new.name, sizeof new.name, "layer %d", t->layer);
            size_t b = 0;
            while (b < p->n && strcmp(p->bucket[b].name, new.name) != 0)
                b++;
            if (b == MOST_BUCKETS)
                continue;
            if (b == p->n)
                p->bucket[p->n++] = new;
            p->bucket[b].released = MAX(p->bucket[b].released, last_maker(p, t));
            p->bucket_of[i] = (int)b;
        }
}

/* ---- the rewrite ------------------------------------------------------------------------------------------------- */

struct mover {
    struct planner *p;
    struct edit *edit;
    bool exclusive;
    struct tensor **on_host; /* by tensor: its mirror; or its copy, of what many updates read */
    struct task *last;       /* the last task that has moved, with its copies ... */
    size_t last_at;          /* ... and the position that it has come to */
    int pieces;
    double copied; /* bytes */
};

/* A copy of x on the host: behind its maker, and behind the copies before it there, so that pieces come in order.  It
 * shares bytes with nothing, so that nothing waits for the update. */
static struct tensor *bring_down(struct mover *m, struct tensor *x, int layer, int maker, enum purpose purpose)
{
    struct step *s = m->p->step;
    struct task *behind = maker == NOWHERE ? s->head : s->task[maker]; /* NOWHERE: of the step before */
    struct tensor *here =
        new_bytes_tensor(s->pool, s->pool->machine->host, x->class, JOINED("host.", x->name), x->bytes);
    set_alone(m->edit, here);
    if (m->exclusive && !x->storage->persistent)
        set_alone(m->edit, x);
    while (behind->next->role == ROLE_OFFLOAD)
        behind = behind->next;
    insert_behind(m->edit, behind);
    s->tags = (struct tags){layer, -1, ROLE_OFFLOAD};
    carry(s, "overlap.down", here, x, purpose);
    m->copied += (double)x->bytes;
    return here;
}

/* What the host's update touches where the device's touches access i of t, which is a piece of `whole` or all of it. */
static struct tensor *host_side(struct mover *m, const struct task *whole, const struct task *t, int i)
{
    const struct planner *p = m->p;
    struct tensor *x = t->access[i].tensor, *of = whole->access[i].tensor, **here = &m->on_host[of->id];
    int maker = last_write_before(p->uses, x, (int)whole->index);
    if (x->device->is_host)
        return x;
    if (x->class == MEM_PARAMETERS || (x->class == MEM_OPTIMIZER && p->how)) {
        *here = *here ? *here : mirror(m->edit, of, p->step->pool->machine->host);
        size_t begin = x->offset - of->offset;
        return new_range(p->step->pool, *here, x->name, begin, begin + x->bytes);
    }
    if (x->class == MEM_OPTIMIZER)
        return set_home(m->edit, x->storage, p->step->pool->machine->host), x;
    if (x->class == MEM_GRADIENTS)
        return bring_down(m, x, whole->layer, p->how ? last_maker(p, whole) : maker, FOR_OFFLOAD);
    if (!whole->host_run) /* a list by hand moves nothing else */
        return x;
    const struct task *made = maker == NOWHERE ? NULL : p->step->task[maker];
    if (!*here && made && made->copy && made->access[1].tensor->device->is_host && made->access[0].tensor == x)
        *here = made->access[1].tensor; /* it has come from there */
    return *here = *here ? *here : bring_down(m, x, whole->layer, maker, FOR_CONTROL);
}

/* The update and its copies, up to `end`, come behind those that moved before, unless something is in their way. */
static void keep_order(struct mover *m, size_t at, struct task *update, struct task *end)
{
    bool late = m->last && at < m->last_at, moves = true;
    for (struct task *t = end, *before; late && moves; t = before) {
        before = t->prev;
        moves = sink(m->edit, t, m->last);
        if (t == update)
            break;
    }
    if (moves)
        m->last = end, m->last_at = late ? m->last_at : at;
}

/* To the host's side.  A large update moves in pieces: as many as the host has cores for, and none above LARGEST. */
static void move_update(struct mover *m, size_t at, enum side expected)
{
    enum { LARGEST = 16 << 20, SMALLEST = 256 << 10 };
    struct planner *p = m->p;
    struct step *s = p->step;
    struct task *whole = s->task[at];
    size_t bytes = whole->access[0].tensor->bytes, n = 1, n_tasks = s->n;
    if (whole->elementwise && bytes > SMALLEST)
        n = MAX((size_t)p->cores, ceil_div(bytes, LARGEST));
    struct task **piece = allocate(n, sizeof *piece);
    struct tensor **there = allocate((size_t)whole->n_access, sizeof(struct tensor *));
    piece[0] = whole;
    if (n > 1)
        n = cut(m->edit, whole, n, piece);
    for (size_t k = 0; k < n; k++) {
        struct task *t = piece[k];
        for (int i = 0; i < t->n_access; i++)
            there[i] = host_side(m, whole, t, i);
        struct lane *lane = open_lane(s->pool->machine, s->pool->machine->host, LANE_CPU, m->pieces++ % p->cores);
        struct task *update = repeat_on_host(m->edit, t, lane, there), *end = update;
        s->tags.role = ROLE_OFFLOAD;
        for (int i = 0; i < t->n_access; i++)
            if (is_on_device(&t->access[i], MEM_PARAMETERS) && (t->access[i].mode & ACCESS_WRITE)) {
                end = carry(s, "overlap.up", t->access[i].tensor, there[i], FOR_OFFLOAD);
                m->copied += (double)t->access[i].tensor->bytes;
            }
        keep_order(m, at, update, end);
    }
    if (p->how)
        offer_both(m->edit, s, p->how, whole, s->task[last_maker(p, whole)], n_tasks, expected);
    free(piece), free(there);
}

/* Carries a choice out: those on the CPU move forth, then the late ones back; in the list's order where the running
 * step decides. */
static double move_updates(void *pass, struct edit *e, const unsigned char *choice)
{
    struct planner *p = pass;
    size_t tasks = p->step->n;
    struct mover m = {.p = p, .edit = e, .exclusive = choice[p->n] == EXCLUSIVE};
    m.on_host = allocate(p->step->pool->n, sizeof *m.on_host);
    if (p->how)
        p->how->ring = NULL;
    for (size_t i = 0; i < tasks && p->how; i++)
        if (p->bucket_of[i] != NOWHERE)
            move_update(&m, i, choice[p->bucket_of[i]]);
    for (size_t k = 0; k < 2 * p->n && !p->how; k++) {
        size_t b = k < p->n ? k : 2 * p->n - 1 - k;
        for (size_t i = 0; i < tasks && choice[b] == (k < p->n ? ON_CPU : ON_CPU_LATE); i++)
            if (p->bucket_of[i] == (int)b)
                move_update(&m, i, choice[b]);
    }
    free(m.on_host);
    return m.copied;
}

/* ---- the choice -------------------------------------------------------------------------------------------------- */

static double seconds_of(const struct planner *p, const struct task *t)
{
    return seconds_alone(p->costs, t) / t->when.every;
}

/* The first k that are released run on the CPU. */
static void choose_first(const struct planner *p, unsigned char *choice, size_t k, enum side side, enum memory memory)
{
    for (size_t b = 0; b < p->n; b++)
        choice[b] = (unsigned char)(b < k ? side : ON_DEVICE);
    choice[p->n] = (unsigned char)memory;
}

/* What each bucket takes, what all take one after another, and what no choice is below: the work of the busiest lane
 * that no choice moves. */
static void measure(struct planner *p)
{
    struct step *s = p->step;
    size_t tasks = s->n;
    unsigned char choice[MOST_BUCKETS + 1];
    double *busy = allocate((size_t)s->pool->machine->n_lanes, sizeof *busy);
    for (size_t i = 0; i < tasks; i++) {
        const struct task *t = s->task[i];
        struct bucket *of = p->bucket_of[i] == NOWHERE ? NULL : &p->bucket[p->bucket_of[i]];
        if (!of)
            p->least = fmax(p->least, busy[t->lane->index] += seconds_of(p, t));
        else if (t->lane == s->task[of->first]->lane)
            of->device += seconds_of(p, t);
    }
    for (size_t b = 0; b <= p->n; b++) { /* one alone on the CPU; then all */
        struct edit *e = open_edit(s);
        choose_first(p, choice, b < p->n ? 0 : p->n, ON_CPU, SHARED);
        choice[b] = b < p->n ? ON_CPU : SHARED;
        move_updates(p, e, choice);
        for (size_t i = tasks; i < s->n && b < p->n; i++) {
            const struct task *t = s->task[i];
            if (t->copy && t->access[0].tensor->device->is_host)
                p->bucket[b].down += seconds_of(p, t);
            else if (t->role == ROLE_UPDATE && t->lane->device->is_host)
                p->bucket[b].host += seconds_of(p, t) / p->cores;
        }
        for (const struct task *t = s->head->next; t != s->head && b == p->n; t = t->next)
            p->serial += seconds_of(p, t);
        undo(e);
    }
    free(busy);
}

/* What comes of it; where it does not fit, with gradients that share bytes. */
static struct score try_choice(struct planner *p, unsigned char *choice)
{
    struct question q = {.step = p->step, .costs = p->costs, .n = p->n + 1, .apply = move_updates, .pass = p};
    choice[p->n] = EXCLUSIVE;
    struct score score = score_choice(&q, choice);
    if (score.excess > 0) {
        choice[p->n] = SHARED;
        score = score_choice(&q, choice);
    }
    return score;
}

/* What local.c's rule is expected to choose; where that does not fit, the last ones go where there is room. */
static void expect_local(struct planner *p)
{
    struct plan *plan = &p->plan[OVERLAP_LOCAL], other;
    struct forecast f = try_step(p->step, p->costs);
    choose_locally(&f, p->bucket, p->n, plan->choice);
    free_forecast(&f);
    plan->score = try_choice(p, plan->choice);
    for (size_t b = p->n; b-- > 0 && plan->score.excess > 0;) {
        other = *plan;
        other.choice[b] = plan->choice[b] == ON_CPU ? ON_DEVICE : ON_CPU;
        other.score = try_choice(p, other.choice);
        *plan = other.score.excess < plan->score.excess ? other : *plan;
    }
}

/* What each --overlap comes to, whichever is carried out.  The search starts from so many of the first on the CPU, in
 * either order. */
static void find_plans(struct planner *p)
{
    bool held = p->n && (int)p->bucket[0].first > p->bucket[p->n - 1].released; /* by the norm: for the next forward */
    struct plan *none = &p->plan[OVERLAP_ALL_DEVICE], *all = &p->plan[OVERLAP_ALL_CPU], *best = &p->plan[OVERLAP_PLAN];
    choose_first(p, none->choice, 0, ON_CPU, EXCLUSIVE);
    none->score = try_choice(p, none->choice);
    choose_first(p, all->choice, p->n, held ? ON_CPU_LATE : ON_CPU, EXCLUSIVE);
    all->score = try_choice(p, all->choice);
    if (!p->timed) {
        *best = is_better(&all->score, &none->score) ? *all : *none;
        return;
    }
    struct decision decision[MOST_BUCKETS + 1];
    for (size_t b = 0; b <= p->n; b++)
        decision[b] = (struct decision){b < p->n ? SIDES : 2, NO_GROUP};
    size_t n = p->n + 1, steps = MAX(MIN(MIN(p->n, MOST_STARTS), MOST_WORK / 4 / p->step->n), 1), n_starts = 0;
    unsigned char *start = allocate(4 * (steps + 1) * n, 1);
    for (enum memory memory = EXCLUSIVE; memory <= all->choice[p->n]; memory++)
        for (enum side side = ON_CPU; side <= ON_CPU_LATE; side++)
            for (size_t k = 0; k <= steps; k++)
                choose_first(p, start + n * n_starts++, p->n * k / steps, side, memory);
    struct question q = {p->step,  p->costs, "looking for the updates to give to the CPU", decision, n, move_updates, p,
                         p->least, MOST_WORK};
    best->score = choose(&q, start, n_starts, best->choice);
    free(start);
    expect_local(p);
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

/* INFINITY: it does not fit; NAN: nobody knows. */
static double period_of(const struct planner *p, enum overlap of)
{
    return !p->timed ? NAN : p->plan[of].score.excess == 0 ? p->plan[of].score.period : INFINITY;
}

/* Per update that is expected on the CPU: when it runs in a step, and the first later backward or update of a device
 * that runs beside it. */
static json_t *report_updates(const struct forecast *f, size_t *n_beside)
{
    json_t *list = json_array();
    for (size_t i = 0; f->span && i < f->n; i++) {
        const struct task *t = f->task[i], *beside = NULL;
        struct span mine = f->span[i];
        if (t->role != ROLE_UPDATE || t->lane->kind != LANE_CPU || mine.start == mine.end)
            continue;
        for (size_t k = 0; k < f->n && !beside; k++)
            if (f->task[k]->lane->kind == LANE_COMPUTE && f->span[k].start < mine.end && mine.start < f->span[k].end &&
                (f->task[k]->role == ROLE_BACKWARD || f->task[k]->role == ROLE_UPDATE))
                beside = f->task[k];
        *n_beside += beside != NULL;
        json_array_append_new(list, json_pack("{s:i, s:f, s:f, s:s?}", "layer", t->layer, "start_ms", 1e3 * mine.start,
                                              "end_ms", 1e3 * mine.end, "beside", beside ? beside->name : NULL));
    }
    return list;
}

/* Of the list as it now is; of the local rule also its regret, what it loses against the best plan. */
static void report(const struct planner *p, enum overlap of, struct pass_report *r)
{
    double local = period_of(p, OVERLAP_LOCAL), best = period_of(p, OVERLAP_PLAN), unknown = p->timed ? 0 : NAN;
    size_t layers = 0, beside = 0;
    for (size_t i = 0; i < p->step->n; i++)
        layers = MAX(layers, (size_t)(p->step->task[i]->layer + 1));
    char *letters = memset(allocate(layers + 1, 1), 'D', layers);
    letters[layers] = '\0';
    for (size_t b = 0; b < p->n; b++)
        if (p->bucket[b].layer >= 0 && p->plan[of].choice[b] != ON_DEVICE)
            letters[p->bucket[b].layer] = 'C';
    r->after = try_step(p->step, p->costs);
    json_t *updates = report_updates(&r->after, &beside);
    if (json_array_size(updates))
        append_text(&r->reason, "; %zu of %zu tasks there run beside a later backward or update", beside,
                    json_array_size(updates));
    r->fields = json_pack("{s:s, s:o}", "choice", letters, "updates", updates);
    free(letters);
    report_ms(r, "all_device_ms", "all on the device", period_of(p, OVERLAP_ALL_DEVICE));
    report_ms(r, "all_cpu_ms", "all on the CPU", period_of(p, OVERLAP_ALL_CPU));
    report_ms(r, "local_ms", "local", local);
    report_ms(r, NULL, "best plan", best);
    report_ms(r, "bound_ms", "at least", p->least + unknown);
    report_ms(r, "period_ms", NULL, period_of(p, of));
    report_ms(r, "barrier_ms", NULL, r->after.alone + unknown);
    report_ms(r, "serial_ms", NULL, p->serial + unknown);
    if (isfinite(local) && isfinite(best))
        append_text(&r->numbers, "; local: %s", format_ratio((char[32]){0}, local / best, 1));
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

/* The plan of the file stands in for that of the search; or it is written there. */
static void read_or_write(struct planner *p, const char *path, bool read)
{
    const char *name[MOST_BUCKETS];
    struct plan *plan = &p->plan[OVERLAP_PLAN];
    for (size_t b = 0; b < p->n; b++)
        name[b] = p->bucket[b].name;
    struct choice_text text = {"A plan of yard --overlap plan: D, on its device; C, on the CPU; L, there behind all C.",
                               letter,
                               SIDES,
                               "D, C or L",
                               name,
                               p->n};
    if (!read) {
        write_choice(path, &text, plan->choice);
        return;
    }
    read_choice(path, &text, plan->choice);
    plan->score = try_choice(p, plan->choice);
}

/* Why the local rule decides now, from what is predicted, and not in the running step; NULL: it can wait. */
static const char *why_now(struct planner *p, const struct pass_options *w, struct local *how, bool makes_room)
{
    if (!p->step->task[p->bucket[0].first]->host_run)
        return "nothing of a step file runs";
    if (w->paced)
        return "the step runs as predicted";
    bool swaps_state = w->swap != SWAP_OFF && w->swap_what & (1u << MEM_OPTIMIZER | 1u << MEM_PARAMETERS);
    if (w->snapshot.file || w->gather || swaps_state || makes_room)
        return "another pass moves or stores state, or makes room";
    struct plan both = p->plan[OVERLAP_LOCAL];
    p->how = how;
    both.score = try_choice(p, both.choice);
    if (both.score.excess == 0) {
        p->plan[OVERLAP_LOCAL] = both;
        return NULL;
    }
    p->how = NULL;
    return "state on both sides does not fit";
}

bool run_overlap(struct step *s, const struct costs *c, const struct pass_options *w, struct pass_report *r)
{
    struct planner *p = allocate(1, sizeof *p);
    struct machine *m = s->pool->machine;
    struct local how = {w->draw, w->draw_seed, c, MAX((int)spare_cores(m), 1), NULL};
    const struct plan *plan = &p->plan[w->overlap];
    bool given = w->overlap_plan && access(w->overlap_plan, F_OK) == 0;
    bool room_later = w->recompute != RECOMPUTE_OFF || w->swap != SWAP_OFF;
    size_t on_cpu = 0;
    p->step = s, p->costs = c, p->cores = how.cores;
    p->uses = find_uses(s->task, s->n, s->pool);
    p->bucket_of = allocate(s->n, sizeof *p->bucket_of);
    find_buckets(p);
    p->timed = p->n > 0 && has_times(s, c);
    if (p->timed)
        measure(p);
    find_plans(p);
    struct limits *had = room_later && p->plan[OVERLAP_PLAN].score.excess > 0 ? lift_limits(m, m->n_devices) : NULL;
    if (had) /* as if the devices had the room that later passes make */
        find_plans(p);
    if (w->overlap_plan && p->n && (given || p->timed)) {
        read_or_write(p, w->overlap_plan, given);
        append_text(&r->reason, "%s %s: ", given ? "read from" : "written to", w->overlap_plan);
    } else if (w->overlap == OVERLAP_LOCAL && p->timed) {
        const char *now = why_now(p, w, &how, had);
        append_text(&r->reason, now ? "chosen before the step runs, since %s: " : "%s in every step, expected: ",
                    now         ? now
                    : how.drawn ? "drawn at random"
                                : "chosen");
    }
    for (size_t b = 0; b < p->n; b++)
        on_cpu += plan->choice[b] != ON_DEVICE;
    bool unknown = p->n && !p->timed && !given && (w->overlap == OVERLAP_PLAN || w->overlap == OVERLAP_LOCAL);
    bool changes = !unknown && (on_cpu || (p->how && p->how->drawn));
    struct edit *e = open_edit(s);
    if (changes)
        move_updates(p, e, plan->choice);
    if (plan->score.excess > 0 && !room_later) {
        struct forecast f = try_step(s, c);
        refuse_budget(m, &f, "--overlap");
    }
    commit(e);
    if (changes)
        append_text(&r->reason, "%zu of %zu updates on the CPU, on %d of its cores", on_cpu, p->n, p->cores);
    else
        append_text(&r->reason, "%s",
                    unknown ? "nobody knows how long tasks take: add --profile or --hardware"
                    : p->n  ? "no update on the CPU"
                            : "the list has no update that could run on the CPU");
    report(p, w->overlap, r);
    if (had)
        restore_limits(m, had, m->n_devices);
    free_uses(p->uses);
    free(had), free(p->bucket_of), free(p);
    return changes;
}
