/* overlap.c - the layered optimizer: some layers' updates run on the CPU while the device goes on.
 *
 *     one layer, on the device:    backward .... (norm)  update                    | forward
 *                on the CPU:       backward  down  (norm)  update (cpu)  up        | forward
 *
 * The rewrite.  An update that can run on either side is moved by five edits: its gradients go down as soon as they are
 * made; the host's update stands in for the device's; the host keeps the parameters too, as a mirror of them; Adam's
 * state has its home on the host; and the new parameters go up.  A large update moves in pieces, so that one is
 * computed while others are copied.  Copies are written as memcpy() is: carry(step, name, to, from).
 *
 * lanes:   Gradients go down, and parameters up, on lanes that nothing else is on (FOR_OFFLOAD; FOR_OFFERED where the
 *          running step decides).  What many updates read, as the norm, has another (FOR_CONTROL).  Pieces take the CPU
 *          lanes of the host in turn.
 *
 * edges:   They follow from the list, none is added.  The next forward, and what sends parameters to other devices,
 *          waits for `up` because it reads what that writes.  So a device waits layer by layer.
 *
 * gates:   With clipping an update reads the norm, or is held in a step file (gate.c).  Gradients still go down under
 *          the backward, and the CPU works under the next forward.  A model's `state` holds the norm, and says whether
 *          training has halted: so it goes down without clipping too, as soon as that is known.
 *
 * memory:  What the host gets shares bytes with nothing.  Gradients that go down share theirs with nothing either, so
 *          that no task waits for their copy (GRADIENTS_ALONE); or they do, which takes less (GRADIENTS_SHARED).
 *
 * The decisions.  One per *bucket*, the updates of a layer:
 *
 *     D   on its device, where it stands: behind the layer's backward, or behind the norm
 *     C   on the CPU, in the order in which the backward releases them
 *     L   on the CPU late, behind all C, in the order in which the next forward needs them
 *
 *     released    layer 3   layer 2   layer 1   layer 0      layer 0's backward is last and its forward is first, so
 *     needed      layer 0   layer 1   layer 2   layer 3      what its update takes on the CPU is hard to hide
 *
 * So the CPU gets those that are released first, and the question is how many.  From that start the search
 * (search/plan.h) goes on by flips; what comes of a choice, the simulator says, which knows of links that are shared,
 * of pipelines and of memory.  One more decision is whether gradients share bytes.  All on the device is a plan too:
 * when none is shorter the pass declines.
 *
 * --overlap local decides while the step runs: local.c.  Then an update is in the list on both sides, and so are
 * parameters and Adam's state.
 *
 * Positions.  A copy down stands behind the task that makes that gradient, and behind the copies that stand there
 * already, so that they come in the order of their pieces.  An update that the running step decides about gets its
 * copies behind the last maker of all its gradients.  move_updates() walks over the tasks as they were when the edit
 * was opened.
 *
 * Source: "Iterative computing method and device for model training" (Ant, 2025).
 */
#include "local.h"
#include "techniques/search/plan.h"
#include "techniques/search/text.h"
#include "tools/command/numbers.h"
#include "trainer/train/hooks.h"

#include <math.h>
#include <unistd.h>

enum { MOST_WORK = SEARCH_WORK / 6 };
static const char *const letter[SIDES] = {[ON_CPU] = "C", [ON_CPU_LATE] = "L", [ON_DEVICE] = "D"};

struct planner {
    struct step *step;
    struct question question; /* what a choice comes to */
    struct decision decision[MOST_BUCKETS + 1];
    struct uses *uses;
    struct updates bucket[MOST_BUCKETS]; /* in order of release */
    size_t n;
    const struct run_facts *asked;
    int *bucket_of;                /* by position: of which of them the task is, or NOWHERE */
    int *remade;                   /* by tensor, for remake(): as if recompute had run too; NULL: as if not */
    struct rule rule;              /* its cores are those that no device computes on: updates take them in turn */
    bool timed;                    /* it is known how long tasks take */
    double serial;                 /* seconds: all on the CPU, one task after another */
    struct candidate of[OVERLAPS]; /* what each --overlap comes to */
};

struct overlap_options overlap_options;

/* In a trial nothing is decided in the step. */
static enum overlap asked_of(const struct run_facts *w)
{
    bool later = overlap_options.how == OVERLAP_LOCAL && w->trial;
    return later ? OVERLAP_PLAN : overlap_options.how;
}

static bool wants_overlap(const struct run_facts *w) { return asked_of(w) != OVERLAP_OFF; }

static bool decides(void) { return overlap_options.how == OVERLAP_PLAN || overlap_options.how == OVERLAP_LOCAL; }

static bool fills_host(const struct pass *p, const struct run_facts *w)
{
    (void)w;
    return p->fills_host && p->fills_host();
}

static bool may_change(const struct run_facts *w) { return decides() && (w->gather || find_wanted(fills_host, w)); }

/* A plan that is there already needs none. */
static bool wants_times(const struct run_facts *w)
{
    const char *plan = overlap_options.plan;
    (void)w;
    return decides() && !(plan && access(plan, F_OK) == 0);
}

/* What passes behind this one do. */
static bool makes_room(const struct pass *p, const struct run_facts *w)
{
    (void)w;
    return p->makes_room;
}

static bool remakes(const struct pass *p, const struct run_facts *w)
{
    (void)w;
    return p->remakes != NULL;
}

/* One whose way to make room is not known before it has run. */
static bool surprises(const struct pass *p, const struct run_facts *w) { return makes_room(p, w) && !p->remakes; }

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

ORDER(by_release, struct updates, BY(a->released, b->released, COMPARE(a->update, b->update)))

static void find_buckets(struct planner *p)
{
    const struct step *s = p->step;
    for (int round = 0; round < 2; round++) { /* the second one numbers tasks by the buckets' order */
        for (size_t i = 0; i < s->n; i++) {
            const struct task *t = s->task[i];
            struct updates new = {.layer = t->layer, .update = i, .released = NOWHERE};
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
        SORT(p->bucket, p->n, by_release);
    }
}

/* ---- the rewrite ------------------------------------------------------------------------------------------------- */

struct mover {
    struct planner *p;
    struct edit *edit;
    enum memory memory;
    struct tensor **counterpart; /* by tensor, on the host: its mirror; or its copy, of what many updates read */
    struct task *last;           /* of the updates that have moved, and their copies: the last one in the list ... */
    size_t last_at;              /* ... and the position where they stand */
    int n_pieces;                /* so far */
};

/* A copy of x on the host: behind its maker, and behind the copies before it there, so that pieces come in order.  The
 * copy shares bytes with nothing, so that nothing waits for the update; and x with nothing for GRADIENTS_ALONE, so that
 * nothing waits for the copy (what persists does not share in any case). */
static struct tensor *bring_down(struct mover *m, struct tensor *x, int layer, int maker, enum purpose purpose)
{
    struct step *s = m->p->step;
    struct task *behind = maker == NOWHERE ? s->head : s->task[maker]; /* NOWHERE: of the step before */
    struct tensor *copy =
        new_bytes_tensor(s->pool, s->pool->machine->host, x->class, JOINED("host.", x->name), x->bytes);
    set_alone(m->edit, copy);
    if (m->memory == GRADIENTS_ALONE && !x->storage->persistent)
        set_alone(m->edit, x);
    while (behind->next->role == ROLE_OFFLOAD)
        behind = behind->next;
    insert_behind(m->edit, behind);
    s->tags = (struct tags){layer, -1, ROLE_OFFLOAD};
    carry(s, "overlap.down", copy, x, purpose);
    return copy;
}

/* What the host's update touches where the device's touches access i of t, which is a piece of `whole` or all of it.
 * stays: the device's update is in the list too. */
static struct tensor *host_side(struct mover *m, const struct task *whole, const struct task *t, int i, bool stays)
{
    const struct planner *p = m->p;
    struct tensor *x = t->access[i].tensor, *of = whole->access[i].tensor, **mine = &m->counterpart[of->id];
    int maker = last_write_before(p->uses, x, (int)whole->index);
    if (x->device->is_host)
        return x;
    if (x->class == MEM_PARAMETERS || (x->class == MEM_OPTIMIZER && stays)) {
        *mine = *mine ? *mine : mirror(m->edit, of, p->step->pool->machine->host);
        size_t begin = x->offset - of->offset;
        return new_range(p->step->pool, *mine, x->name, begin, begin + x->bytes);
    }
    if (x->class == MEM_OPTIMIZER)
        return set_home(m->edit, x->storage, p->step->pool->machine->host), x;
    if (x->class == MEM_GRADIENTS)
        return bring_down(m, x, whole->layer, stays ? last_maker(p, whole) : maker, stays ? FOR_OFFERED : FOR_OFFLOAD);
    if (!whole->host_run) /* a list by hand moves nothing else */
        return x;
    const struct task *made = maker == NOWHERE ? NULL : p->step->task[maker];
    if (!*mine && made && made->copy && made->access[1].tensor->device->is_host && made->access[0].tensor == x)
        *mine = made->access[1].tensor; /* it came from the host: `control`; in dp=2, to replica 1, `state` */
    return *mine = *mine ? *mine : bring_down(m, x, whole->layer, maker, FOR_CONTROL);
}

/* The update and its copies, up to `end`, come behind those that moved before, unless something is in their way.
 *
 *     layer 0 has moved       .... U1 up1 .... U0 up0         layer 1's stand at `at`, layer 0's at `last_at`
 *     then layer 1            ................ U0 up0 U1 up1  both stand at `last_at`
 */
static void keep_order(struct mover *m, size_t at, struct task *update, struct task *end)
{
    bool overtakes = m->last && at < m->last_at, moves = true;
    for (struct task *t = end, *before, *stop = update->prev; overtakes && moves && t != stop; t = before) {
        before = t->prev;
        moves = sink(m->edit, t, m->last);
    }
    if (moves)
        m->last = end, m->last_at = overtakes ? m->last_at : at;
}

/* To the host's side.  A large update moves in pieces: as many as the host has cores for, and none above LARGEST. */
static void move_update(struct mover *m, size_t at, enum side expected)
{
    enum { LARGEST = 16 << 20, SMALLEST = 256 << 10 };
    struct planner *p = m->p;
    struct step *s = p->step;
    struct task *whole = s->task[at];
    bool stays = p->bucket_of[at] >= (int)p->rule.fixed;
    size_t bytes = whole->access[0].tensor->bytes, n = 1, n_tasks = s->n;
    if (whole->elementwise && bytes > SMALLEST)
        n = MAX((size_t)p->rule.cores, ceil_div(bytes, LARGEST));
    struct task **piece = allocate(n, sizeof *piece);
    struct tensor **on_host = allocate((size_t)whole->n_access, sizeof(struct tensor *));
    piece[0] = whole;
    if (n > 1)
        n = cut(m->edit, whole, n, piece);
    for (size_t k = 0; k < n; k++) {
        struct task *t = piece[k];
        for (int i = 0; i < t->n_access; i++)
            on_host[i] = host_side(m, whole, t, i, stays);
        int nth = m->n_pieces++ % p->rule.cores;
        struct lane *lane = open_lane(s->pool->machine, s->pool->machine->host, LANE_CPU, nth);
        struct task *update = replace_on_host(m->edit, t, lane, on_host), *end = update;
        s->tags.role = ROLE_OFFLOAD; /* (new tasks come behind `update`) */
        for (int i = 0; i < t->n_access; i++)
            if (is_on_device(&t->access[i], MEM_PARAMETERS) && (t->access[i].mode & ACCESS_WRITE))
                end = carry(s, "overlap.up", t->access[i].tensor, on_host[i], stays ? FOR_OFFERED : FOR_OFFLOAD);
        keep_order(m, at, update, end);
    }
    if (stays)
        offer_both(m->edit, s, &p->rule, whole, s->task[last_maker(p, whole)], n_tasks, expected);
    free(piece), free(on_host);
}

/* Carries a choice out, bucket by bucket, each behind the one before: all C from the first released on, then all L from
 * the last released back.  Where the running step decides, nothing leaves its place in the list. */
static void move_updates(void *pass, struct edit *e, const unsigned char *choice)
{
    struct planner *p = pass;
    size_t tasks = p->step->n, n = p->n;
    bool in_place = p->rule.fixed < n;
    struct mover m = {.p = p, .edit = e, .memory = choice[n]};
    m.counterpart = allocate(p->step->pool->n, sizeof *m.counterpart);
    p->rule.ring = NULL;
    for (size_t i = 0; i < tasks && in_place; i++) {
        size_t b = (size_t)p->bucket_of[i];
        if (p->bucket_of[i] != NOWHERE && (b >= p->rule.fixed || choice[b] != ON_DEVICE))
            move_update(&m, i, choice[b]);
    }
    for (size_t k = 0; k < 2 * n && !in_place; k++) {
        size_t b = k < n ? k : 2 * n - 1 - k;
        for (size_t i = 0; i < tasks && choice[b] == (k < n ? ON_CPU : ON_CPU_LATE); i++)
            if (p->bucket_of[i] == (int)b)
                move_update(&m, i, choice[b]);
    }
    if (p->remade)
        free(remake(e, p->step->pool, p->uses, p->remade, true));
    free(m.counterpart);
}

/* The same for a trial, with room for snapshots, which depends on where updates are. */
static void try_updates(void *pass, struct edit *e, const unsigned char *choice)
{
    struct planner *p = pass;
    move_updates(p, e, choice);
    reserve_room(p->step, p->asked);
}

/* ---- the choice -------------------------------------------------------------------------------------------------- */

static double seconds_of(const struct planner *p, const struct task *t)
{
    return seconds_alone(p->question.costs, t) / t->when.every;
}

/* Those k on the CPU that are released before all others. */
static void choose_earliest(const struct planner *p, unsigned char *choice, size_t k, enum side side,
                            enum memory memory)
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
        struct updates *of = p->bucket_of[i] == NOWHERE ? NULL : &p->bucket[p->bucket_of[i]];
        if (!of)
            p->question.floor = fmax(p->question.floor, busy[t->lane->index] += seconds_of(p, t));
        else if (t->lane == s->task[of->update]->lane)
            of->on_device += seconds_of(p, t);
    }
    for (size_t b = 0; b <= p->n; b++) { /* one alone on the CPU; then all */
        struct edit *e = open_edit(s);
        choose_earliest(p, choice, b < p->n ? 0 : p->n, ON_CPU, GRADIENTS_SHARED);
        choice[b] = b < p->n ? ON_CPU : GRADIENTS_SHARED;
        move_updates(p, e, choice);
        for (size_t i = tasks; i < s->n && b < p->n; i++) {
            const struct task *t = s->task[i];
            if (t->copy && t->access[0].tensor->device->is_host)
                p->bucket[b].down += seconds_of(p, t);
            else if (t->role == ROLE_UPDATE && t->lane->device->is_host)
                p->bucket[b].on_cpu += seconds_of(p, t) / p->rule.cores;
        }
        for (const struct task *t = s->head->next; t != s->head && b == p->n; t = t->next)
            p->serial += seconds_of(p, t);
        undo(e);
    }
    free(busy);
}

/* What each --overlap comes to, whichever is carried out.  The search starts from none, some and all of the buckets on
 * the CPU, those released first before others, once as C and once as L. */
static void find_candidates(struct planner *p)
{
    bool updates_wait_for_norm = p->n && (int)p->bucket[0].update > p->bucket[p->n - 1].released;
    struct candidate *none = &p->of[OVERLAP_ALL_DEVICE], *all = &p->of[OVERLAP_ALL_CPU], *best = &p->of[OVERLAP_PLAN];
    choose_earliest(p, none->choice, 0, ON_CPU, GRADIENTS_ALONE);
    try_candidate(&p->question, none);
    choose_earliest(p, all->choice, p->n, updates_wait_for_norm ? ON_CPU_LATE : ON_CPU, GRADIENTS_ALONE);
    try_candidate(&p->question, all);
    if (!p->timed) { /* all on the CPU where the device has no room for its state */
        *best = p->of[OVERLAP_LOCAL] = is_better(&all->score, &none->score) ? *all : *none;
        return;
    }
    size_t n = p->n + 1, steps = MAX(MIN(MIN(p->n, MOST_STARTS), MOST_WORK / 4 / p->step->n), 1), n_starts = 0;
    unsigned char *start = allocate(4 * (steps + 1) * n, 1);
    for (enum memory memory = GRADIENTS_ALONE; memory <= all->choice[p->n]; memory++)
        for (enum side side = ON_CPU; side <= ON_CPU_LATE; side++)
            for (size_t k = 0; k <= steps; k++)
                choose_earliest(p, start + n * n_starts++, p->n * k / steps, side, memory);
    best->score = choose(&p->question, start, n_starts, best->choice);
    free(start);
    expect_rule(&p->rule, &p->of[OVERLAP_LOCAL]);
}

/* Nothing fits, and later passes make room.  So all is tried again, as if
 *
 *     what they make is enough                                 budgets had no end
 *     one that makes tensors again is alone, and it is not     it had run
 *
 * Once such a pass has been asked, what is tried later, as a plan of a file, is tried as if it had run: p->remade stays
 * until the list is rewritten. */
static void find_roomy_candidates(struct planner *p, const struct run_facts *w)
{
    struct machine *m = p->step->pool->machine;
    struct device *had = lift_limits(m, m->n_devices);
    find_candidates(p);
    restore_limits(m, had, m->n_devices);
    free(had);
    const struct pass *remaking = find_wanted(remakes, w);
    if (!remaking)
        return;
    struct candidate wanted = p->of[asked_of(w)];
    p->remade = remaking->remakes(p->uses, p->step->pool);
    try_candidate(&p->question, &wanted);
    if (wanted.score.excess > 0 && !find_wanted(surprises, w))
        find_candidates(p);
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

/* INFINITY: it does not fit, in limits that find_roomy_candidates() may have lifted; NAN: nobody knows. */
static double period_of(const struct planner *p, enum overlap of)
{
    return !p->timed ? NAN : p->of[of].score.excess == 0 ? p->of[of].score.period : INFINITY;
}

/* Of the list as it now is; of the rule also its regret, what it loses against the best plan.  "choice" has a letter
 * per layer, layer 0 first; a plan's file begins with the last layer, and tells L from C. */
static void report(const struct planner *p, enum overlap of, struct pass_report *r)
{
    double by_rule = period_of(p, OVERLAP_LOCAL), best = period_of(p, OVERLAP_PLAN), if_timed = p->timed ? 0 : NAN;
    size_t layers = 0;
    for (size_t i = 0; i < p->step->n; i++)
        layers = MAX(layers, (size_t)(p->step->task[i]->layer + 1));
    char *letters = memset(allocate(layers + 1, 1), 'D', layers);
    for (size_t b = 0; b < p->n; b++)
        if (p->bucket[b].layer >= 0 && p->of[of].choice[b] != ON_DEVICE)
            letters[p->bucket[b].layer] = 'C';
    r->after = keep_forecast(try_step(p->step, p->question.costs));
    r->fields = json_pack("{s:s}", "choice", letters);
    free(letters);
    report_ms(r, "all_device_ms", "all on the device", period_of(p, OVERLAP_ALL_DEVICE));
    report_ms(r, "all_cpu_ms", "all on the CPU", period_of(p, OVERLAP_ALL_CPU));
    report_ms(r, "local_ms", "local", by_rule);
    report_ms(r, NULL, "best plan", best);
    report_ms(r, "bound_ms", "at least", p->question.floor + if_timed);
    report_ms(r, "period_ms", NULL, period_of(p, of));
    report_ms(r, "barrier_ms", NULL, r->after->alone + if_timed);
    report_ms(r, "serial_ms", NULL, p->serial + if_timed);
    if (isfinite(by_rule) && isfinite(best))
        append_text(&r->numbers, "; local: %s", format_ratio((char[32]){0}, by_rule / best, 1));
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

/* The plan of the file, where there is one, stands in for that of the search; else that is written there. */
static bool read_or_write(struct planner *p, const char *path, struct pass_report *r)
{
    const char *name[MOST_BUCKETS];
    struct candidate *best = &p->of[OVERLAP_PLAN];
    for (size_t b = 0; b < p->n; b++)
        name[b] = p->bucket[b].name;
    static const char head[] = "A plan of yard --overlap plan: D, on its device; C, on the CPU; L, there behind all C.";
    struct choice_text text = {head, letter, SIDES, "D, C or L", name, p->n};
    bool read = read_choice(path, &text, best->choice);
    if (read)
        try_candidate(&p->question, best);
    else if (p->timed)
        write_choice(path, &text, best->choice);
    if (read || p->timed)
        append_text(&r->reason, "%s %s: ", read ? "read from" : "written to", path);
    return read;
}

static bool run_overlap(struct step *s, const struct costs *c, const struct run_facts *w, struct pass_report *r)
{
    struct planner *p = allocate(1, sizeof *p);
    struct machine *m = s->pool->machine;
    const enum overlap how = asked_of(w);
    const char *plan = w->trial ? NULL : overlap_options.plan;
    const struct candidate *chosen = &p->of[how];
    bool room_later = find_wanted(makes_room, w) != NULL;
    bool remaking = find_wanted(remakes, w) != NULL, read = false;
    size_t on_cpu = 0;
    p->step = s;
    p->asked = w;
    p->uses = find_uses(s->task, s->n, s->pool);
    p->bucket_of = allocate(s->n, sizeof *p->bucket_of);
    find_buckets(p);
    p->rule = (struct rule){w->draw, w->draw_seed, &p->question, p->bucket, MAX((int)spare_cores(m), 1), p->n, NULL};
    for (size_t b = 0; b <= p->n; b++)
        p->decision[b] = (struct decision){b < p->n ? SIDES : 2, NO_GROUP};
    p->question = (struct question){
        s, c, "looking for the updates to give to the CPU", p->decision, p->n + 1, try_updates, p, 0, MOST_WORK};
    p->timed = p->n > 0 && has_times(s, c);
    if (p->timed)
        measure(p);
    find_candidates(p);
    bool lacks_room = room_later && p->timed && p->of[OVERLAP_PLAN].score.excess > 0;
    if (lacks_room)
        find_roomy_candidates(p, w);
    if (plan && p->n)
        read = read_or_write(p, plan, r);
    else if (how == OVERLAP_LOCAL && p->timed)
        decide_in_step(&p->rule, w, lacks_room && !remaking ? find_wanted(surprises, w) : NULL, &p->of[OVERLAP_LOCAL],
                       r);
    free(p->remade);
    p->remade = NULL;
    for (size_t b = 0; b < p->n; b++)
        on_cpu += chosen->choice[b] != ON_DEVICE;
    bool untimed = p->n && !p->timed && !read && decides(), changes = on_cpu || p->rule.fixed < p->n;
    if (untimed)
        append_text(&r->reason, "nobody knows how long tasks take: ");
    struct edit *e = open_edit(s);
    if (changes) {
        move_updates(p, e, chosen->choice);
        append_text(&r->reason, "%s%zu of %zu updates on the CPU, on %d of its cores",
                    untimed ? "not all fits on the device, so " : "", on_cpu, p->n, p->rule.cores);
    } else
        append_text(&r->reason, "%s",
                    untimed ? "add --profile or --hardware"
                    : p->n  ? "no update on the CPU"
                            : "the list has no update that could run on the CPU");
    commit(e);
    size_t first = reserve_room(s, w), end = s->pool->n;
    report(p, how, r);
    end_room(s, first, end);
    if (chosen->score.excess > 0 && !room_later && !w->gather)
        refuse_budget(m, r->after, "--overlap", true);
    free_uses(p->uses);
    free(p->bucket_of), free(p);
    return changes;
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static const struct pass pass = {.place = 10,
                                 .name = "overlap",
                                 .wanted = wants_overlap,
                                 .run = run_overlap,
                                 .turned_on = {"--overlap all-cpu"},
                                 .own_room = true,
                                 .may_change = may_change,
                                 .wants_times = wants_times,
                                 .plans_at_once = true};

static void check(struct settings *s)
{
    (void)s;
    if (overlap_options.plan && overlap_options.how != OVERLAP_PLAN)
        fail(EXIT_USAGE, "--overlap-plan %s is the plan of --overlap plan: add that", overlap_options.plan);
}

/* How often the running step has chosen what. */
static void tell_choices(struct trainer *t, struct kept_run *k)
{
    (void)k;
    char *choices = describe_choices(t->train);
    if (choices)
        note("overlap: %s", choices);
    free(choices);
}

static const struct option options[] = {
    {"overlap", 0, OPT_CHOICE, &overlap_options.how, "off",
     WORDS([OVERLAP_OFF] = "off", [OVERLAP_PLAN] = "plan", [OVERLAP_LOCAL] = "local", [OVERLAP_ALL_CPU] = "all-cpu",
           [OVERLAP_ALL_DEVICE] = "all-device"),
     0, 0, GROUP_TECHNIQUES, OF_LIST,
     "run optimizer updates of some layers on the CPU while the device goes on. plan: chosen for the shortest step; "
     "local: chosen at the end of each layer's backward, by the work that the CPU still has"},
    {"overlap-plan", 0, OPT_OUTPUT, &overlap_options.plan, NULL, "FILE", 0, 0, GROUP_TECHNIQUES, OF_LIST,
     "of --overlap plan: the plan as text, read when the file is there, else written"},
};
static const struct hooks hooks = {.keeps = tell_choices};
static const struct foreign_words foreign[] = {
    {"overlap", "cpu-offload offload offload-optimizer zero-offload", NULL},
};
const struct module module_overlap = {.name = "overlap",
                                      .needs = "pass predict search",
                                      .place = 21,
                                      .pass = &pass,
                                      .options = options,
                                      .n_options = COUNT(options),
                                      .foreign = foreign,
                                      .n_foreign = COUNT(foreign),
                                      .check = check,
                                      .hooks = &hooks};
