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
 * Source: "Iterative computing method and device for model training" (Ant, 2025).
 */
#include "../plan/plan.h"
#include "../plan/text.h"
#include "../step/uses.h"
#include "local.h"
#include "pass.h"

#include <math.h>
#include <unistd.h>

enum { MOST_BUCKETS = 1024 /* what there is more stays on the device */, MOST_WORK = SEARCH_WORK / 6 };
enum memory { EXCLUSIVE, SHARED }; /* bytes of gradients that go down */
static const char *const letter[SIDES] = {[ON_CPU] = "C", [ON_CPU_LATE] = "L", [ON_DEVICE] = "D"};

struct plan {
    bool tried;
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
    enum side own;              /* the CPU's order that the list has already: ON_CPU or ON_CPU_LATE */
    struct plan plan[OVERLAPS]; /* what each --overlap comes to */
    struct local *how;          /* the running step decides; NULL: it is decided here */
    double work;                /* tasks that were simulated */
    bool tight;                 /* some plan did not fit */
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
            last = MAX(last, last_before(p->uses, t->access[i].tensor, ACCESS_WRITE, (int)t->index));
    return last;
}

ORDER(by_release, struct bucket, BY(a->released, b->released, COMPARE(a->first, b->first)))

static void find_buckets(struct planner *p)
{
    const struct step *s = p->step;
    for (int pass = 0; pass < 2; pass++, SORT(p->bucket, p->n, by_release)) /* (their numbers are known when sorted) */
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
    struct device *host;
    bool exclusive;
    size_t at; /* position of the task that moves */
    int maker; /* position of the task behind which its gradients go down; NOWHERE: each one's own maker */
    struct tensor **on_host; /* by tensor: its mirror, of storages; its copy, of what many updates read */
    struct task *last;       /* the last task that has moved, with its copies ... */
    size_t last_at;          /* ... and the position that it has come to */
    int pieces;
    double copied; /* bytes */
};

/* A copy of x on the host: behind its maker, and behind the copies before it there, so that pieces come in order.  It
 * shares bytes with nothing, so that nothing waits for the update. */
static struct tensor *bring_down(struct mover *m, struct tensor *x, int maker, enum purpose purpose)
{
    struct step *s = m->p->step;
    char *name = format_string("host.%s", x->name);
    struct tensor *here = new_bytes_tensor(s->pool, m->host, x->class, name, x->bytes);
    free(name);
    set_alone(m->edit, here);
    if (m->exclusive && !x->storage->persistent)
        set_alone(m->edit, x);
    struct task *behind = maker == NOWHERE ? s->head : s->task[maker]; /* NOWHERE: of the step before */
    while (behind->next->role == ROLE_OFFLOAD)
        behind = behind->next;
    insert_behind(m->edit, behind);
    s->tags = (struct tags){s->task[m->at]->layer, -1, ROLE_OFFLOAD};
    carry(s, "overlap.down", here, x, purpose);
    m->copied += (double)x->bytes;
    return here;
}

/* The part of the host's mirror that x is: it has all bytes of the storage that updates which can move touch. */
static struct tensor *mirrored(struct mover *m, const struct tensor *x)
{
    struct pool *p = m->p->step->pool;
    struct tensor **mine = &m->on_host[x->storage->id];
    size_t n, begin = x->storage->bytes, end = 0;
    const struct use *use = uses_of(m->p->uses, x, &n);
    for (size_t i = 0; i < n && !*mine; i++)
        for (int k = 0; m->p->bucket_of[use[i].at] != NOWHERE && k < m->p->step->task[use[i].at]->n_access; k++) {
            const struct tensor *part = m->p->step->task[use[i].at]->access[k].tensor;
            if (part->storage == x->storage)
                begin = MIN(begin, part->offset), end = MAX(end, part->offset + part->bytes);
        }
    if (!*mine)
        *mine = mirror(m->edit, new_range(p, x->storage, x->storage->name, begin, end), m->host);
    begin = x->offset - (*mine)->mirrors->offset;
    return new_range(p, *mine, x->name, begin, begin + x->bytes);
}

/* What the host's update touches where the device's touched x. */
static struct tensor *host_side(struct mover *m, const struct task *t, struct tensor *x)
{
    int maker = last_before(m->p->uses, x, ACCESS_WRITE, (int)m->at);
    const struct task *made = maker == NOWHERE ? NULL : m->p->step->task[maker];
    if (x->device->is_host)
        return x;
    if (x->class == MEM_PARAMETERS || (x->class == MEM_OPTIMIZER && m->p->how))
        return mirrored(m, x);
    if (x->class == MEM_OPTIMIZER)
        return set_home(m->edit, x->storage, m->host), x;
    if (x->class == MEM_GRADIENTS)
        return bring_down(m, x, m->maker == NOWHERE ? maker : m->maker, FOR_OFFLOAD);
    if (!t->host_run) /* a list by hand moves nothing else */
        return x;
    struct tensor **here = &m->on_host[x->id];
    if (!*here) /* what many updates read, such as the norm, comes once; or it was uploaded from there */
        *here = made && made->copy && made->access[1].tensor->device->is_host && made->access[0].tensor == x
                    ? made->access[1].tensor
                    : bring_down(m, x, maker, FOR_CONTROL);
    return *here;
}

/* The update and its copies, up to `end`, come behind those that moved before, unless something is in their way. */
static void keep_order(struct mover *m, struct task *update, struct task *end)
{
    char *why_not = NULL;
    bool late = m->last && m->at < m->last_at;
    for (struct task *t = end, *before; late && !why_not; t = before) {
        before = t->prev;
        why_not = sink(m->edit, t, m->last);
        if (t == update)
            break;
    }
    if (!why_not)
        m->last = end, m->last_at = late ? m->last_at : m->at;
    free(why_not);
}

/* The task, or a piece of it. */
static void move_piece(struct mover *m, struct task *t)
{
    struct step *s = m->p->step;
    struct tensor **there = allocate((size_t)t->n_access, sizeof(struct tensor *));
    for (int i = 0; i < t->n_access; i++)
        there[i] = host_side(m, t, t->access[i].tensor);
    struct lane *lane = open_lane(s->pool->machine, m->host, LANE_CPU, m->pieces++ % m->p->cores);
    struct task *mine = repeat_on_host(m->edit, t, lane, there), *end = mine;
    s->tags.role = ROLE_OFFLOAD;
    for (int i = 0; i < t->n_access; i++) {
        struct tensor *x = t->access[i].tensor;
        if (!is_on_device(&t->access[i], MEM_PARAMETERS) || !(t->access[i].mode & ACCESS_WRITE))
            continue;
        end = carry(s, "overlap.up", x, there[i], FOR_OFFLOAD);
        m->copied += (double)x->bytes;
    }
    keep_order(m, mine, end);
    free(there);
}

/* One that is large moves in pieces: as many as the host has cores for, and none above LARGEST. */
static void move_update(struct mover *m, size_t at, enum side expected)
{
    enum { LARGEST = 16 << 20, SMALLEST = 256 << 10 };
    struct task *t = m->p->step->task[m->at = at];
    size_t bytes = t->access[0].tensor->bytes, n = 1, first = m->p->step->n;
    if (t->elementwise && bytes > SMALLEST)
        n = MAX((size_t)m->p->cores, ceil_div(bytes, LARGEST));
    struct task **piece = allocate(n, sizeof *piece);
    m->maker = m->p->how ? last_maker(m->p, t) : NOWHERE;
    piece[0] = t;
    if (n > 1)
        n = cut(m->edit, t, n, piece);
    for (size_t i = 0; i < n; i++)
        move_piece(m, piece[i]);
    free(piece);
    if (m->p->how)
        offer_both(m->edit, m->p->step, m->p->how, t, m->p->step->task[m->maker], first, expected);
}

/* Carries a choice out. */
static double move_updates(void *pass, struct edit *e, const unsigned char *choice)
{
    struct planner *p = pass;
    size_t tasks = p->step->n;
    struct mover m = {.p = p, .edit = e, .host = p->step->pool->machine->host, .maker = NOWHERE};
    m.exclusive = choice[p->n] == EXCLUSIVE;
    m.on_host = allocate(p->step->pool->n, sizeof *m.on_host);
    if (p->how)
        p->how->ring = NULL;
    for (size_t i = 0; i < tasks && p->how; i++) /* the running step takes the list's own order */
        if (p->bucket_of[i] != NOWHERE)
            move_update(&m, i, choice[p->bucket_of[i]]);
    for (size_t k = 0; k < 2 * p->n && !p->how; k++) { /* forth, and back for those that are late */
        size_t b = k < p->n ? k : 2 * p->n - 1 - k;
        for (size_t i = 0; i < tasks && choice[b] == (k < p->n ? ON_CPU : ON_CPU_LATE); i++)
            if (p->bucket_of[i] == (int)b)
                move_update(&m, i, choice[b]);
    }
    free(m.on_host);
    return m.copied;
}

/* ---- times ------------------------------------------------------------------------------------------------------- */

static double seconds_of(const struct planner *p, const struct task *t)
{
    return seconds_alone(p->costs, t) / t->when.every;
}

/* The first k that are released run on the CPU. */
static struct plan suffix(const struct planner *p, size_t k, enum side side, enum memory memory)
{
    struct plan plan = {.tried = false};
    for (size_t b = 0; b < p->n; b++)
        plan.choice[b] = (unsigned char)(b < k ? side : ON_DEVICE);
    plan.choice[p->n] = (unsigned char)memory;
    return plan;
}

/* What each bucket takes, what all take one after another, and what no choice is below: the work of the busiest lane
 * that no choice moves. */
static void measure(struct planner *p)
{
    struct step *s = p->step;
    size_t tasks = s->n;
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
        struct plan plan = suffix(p, b < p->n ? 0 : p->n, ON_CPU, SHARED);
        struct edit *e = open_edit(s);
        plan.choice[b] = b < p->n ? ON_CPU : SHARED;
        move_updates(p, e, plan.choice);
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

/* ---- the choice -------------------------------------------------------------------------------------------------- */

static struct question question_of(struct planner *p)
{
    return (struct question){.step = p->step,
                             .costs = p->costs,
                             .what = "looking for the updates to give to the CPU",
                             .n = p->n + 1,
                             .apply = move_updates,
                             .pass = p,
                             .floor = p->least};
}

static void try_plan(struct planner *p, struct plan *plan)
{
    struct question q = question_of(p);
    plan->score = score_choice(&q, plan->choice);
    plan->tried = true;
    p->work += (double)p->step->n;
    p->tight |= plan->score.excess > 0;
}

static void keep_better(struct plan *best, const struct plan *plan)
{
    if (!best->tried || is_better(&plan->score, &best->score))
        *best = *plan;
}

static struct plan try_suffix(struct planner *p, size_t k, enum side side, enum memory memory)
{
    struct plan plan = suffix(p, k, side, memory);
    try_plan(p, &plan);
    keep_better(&p->plan[OVERLAP_PLAN], &plan);
    if (k == p->n && side == p->own)
        keep_better(&p->plan[OVERLAP_ALL_CPU], &plan);
    return plan;
}

/* The best number of updates on the CPU, by halving steps down from all. */
static void try_suffixes(struct planner *p, enum side side, enum memory memory)
{
    struct plan best = try_suffix(p, p->n, side, memory);
    size_t k = p->n, step = 1;
    while (2 * step <= p->n)
        step *= 2;
    for (; step > 0 && p->timed && p->work < MOST_WORK; step /= 2)
        for (int more = 0; more < 2; more++) {
            size_t next = more ? k + step : k - MIN(step, k);
            struct plan plan = next <= p->n ? try_suffix(p, next, side, memory) : best;
            if (is_better(&plan.score, &best.score)) {
                best = plan, k = next;
                break;
            }
        }
}

/* On from the best start, by flips between so many of enum side. */
static void search(struct planner *p, enum overlap of, unsigned char sides, double work)
{
    struct decision decision[MOST_BUCKETS + 1];
    struct plan start = p->plan[of];
    for (size_t b = 0; b < p->n; b++)
        decision[b] = (struct decision){sides, NO_GROUP};
    decision[p->n] = (struct decision){p->tight ? 2 : 1, NO_GROUP};
    struct question q = question_of(p);
    q.decision = decision;
    q.work = fmax(work, 0);
    p->plan[of].score = choose(&q, start.choice, 1, p->plan[of].choice);
}

/* What local.c's rule is expected to choose; where that does not fit, the last ones go where there is room. */
static void expect_local(struct planner *p)
{
    struct plan plan = suffix(p, 0, ON_CPU, p->tight ? SHARED : EXCLUSIVE);
    struct forecast f = try_step(p->step, p->costs);
    choose_locally(&f, p->bucket, p->n, plan.choice);
    free_forecast(&f);
    try_plan(p, &plan);
    for (size_t b = p->n; b-- > 0 && plan.score.excess > 0;) {
        struct plan other = plan;
        other.choice[b] = plan.choice[b] == ON_CPU ? ON_DEVICE : ON_CPU;
        try_plan(p, &other);
        plan = other.score.excess < plan.score.excess ? other : plan;
    }
    p->plan[OVERLAP_LOCAL] = plan;
}

/* What each --overlap comes to, whichever is carried out. */
static void find_plans(struct planner *p)
{
    bool held = p->n && (int)p->bucket[0].first > p->bucket[p->n - 1].released; /* by the norm */
    struct plan none = suffix(p, 0, ON_CPU, EXCLUSIVE);
    p->work = 0, p->tight = false;
    try_plan(p, &none);
    p->plan[OVERLAP_PLAN] = p->plan[OVERLAP_ALL_DEVICE] = none;
    p->plan[OVERLAP_ALL_CPU].tried = false;
    p->own = held ? ON_CPU_LATE : ON_CPU;
    for (enum memory memory = EXCLUSIVE; memory <= (p->tight ? SHARED : EXCLUSIVE); memory++)
        for (int other = 0; other < (p->timed ? 2 : 1); other++)
            try_suffixes(p, held != other ? ON_CPU_LATE : ON_CPU, memory);
    if (!p->timed)
        return;
    if (held)
        search(p, OVERLAP_ALL_CPU, ON_DEVICE, (MOST_WORK - p->work) / 4);
    search(p, OVERLAP_PLAN, SIDES, MOST_WORK - p->work);
    expect_local(p);
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

/* INFINITY: it does not fit, or nobody knows. */
static double period_of(const struct planner *p, enum overlap of)
{
    return p->timed && p->plan[of].score.excess == 0 ? p->plan[of].score.period : INFINITY;
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

static void append_ms(char **text, const char *name, double seconds)
{
    append_text(text, isfinite(seconds) ? "%s %.3f ms, " : "%s does not fit, ", name, 1e3 * seconds);
}

/* Of the list as it now is; of the local rule also its regret, what it loses against the best plan. */
static void report(const struct planner *p, enum overlap of, struct pass_report *r)
{
    struct forecast now = try_step(p->step, p->costs);
    double unknown = p->timed ? 0 : INFINITY, local = period_of(p, OVERLAP_LOCAL), best = period_of(p, OVERLAP_PLAN);
    size_t layers = 0, beside = 0;
    for (size_t i = 0; i < p->step->n; i++)
        layers = MAX(layers, (size_t)(p->step->task[i]->layer + 1));
    char *letters = memset(allocate(layers + 1, 1), 'D', layers);
    letters[layers] = '\0';
    for (size_t b = 0; b < p->n; b++)
        if (p->bucket[b].layer >= 0 && p->plan[of].choice[b] != ON_DEVICE)
            letters[p->bucket[b].layer] = 'C';
    json_t *updates = report_updates(&now, &beside);
    if (json_array_size(updates))
        append_text(&r->reason, "; %zu of %zu tasks there run beside a later backward or update", beside,
                    json_array_size(updates));
    r->fields = json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "choice", letters, "period_ms", milliseconds(period_of(p, of)),
        "barrier_ms", milliseconds(now.alone + unknown), "bound_ms", milliseconds(p->least + unknown), "all_device_ms",
        milliseconds(period_of(p, OVERLAP_ALL_DEVICE)), "all_cpu_ms", milliseconds(period_of(p, OVERLAP_ALL_CPU)),
        "serial_ms", milliseconds(p->serial + unknown), "local_ms", milliseconds(local), "updates", updates);
    free(letters);
    r->after = now;
    if (!p->timed)
        return;
    append_ms(&r->reason, "\n    all on the device", period_of(p, OVERLAP_ALL_DEVICE));
    append_ms(&r->reason, "all on the CPU", period_of(p, OVERLAP_ALL_CPU));
    append_ms(&r->reason, "local", local);
    append_ms(&r->reason, "best plan", best);
    append_text(&r->reason, "at least %.3f ms", 1e3 * p->least);
    if (isfinite(local) && isfinite(best))
        append_text(&r->reason, "; local: %s", format_ratio((char[32]){0}, local / best, 1));
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

/* The plan of the file stands in for that of the search; or it is written there. */
static void read_or_write(struct planner *p, const char *path, bool read)
{
    const char *name[MOST_BUCKETS];
    for (size_t b = 0; b < p->n; b++)
        name[b] = p->bucket[b].name;
    struct choice_text text = {"A plan of yard --overlap plan: D, on its device; C, on the CPU; L, there behind all C.",
                               letter,
                               SIDES,
                               "D, C or L",
                               name,
                               p->n};
    struct plan *plan = &p->plan[OVERLAP_PLAN];
    if (!read) {
        write_choice(path, &text, plan->choice);
        return;
    }
    *plan = suffix(p, 0, ON_CPU, EXCLUSIVE);
    read_choice(path, &text, plan->choice);
    try_plan(p, plan);
    plan->choice[p->n] = plan->score.excess > 0 ? SHARED : EXCLUSIVE;
    try_plan(p, plan);
}

/* Why the local rule decides now, from what is predicted, and not in the running step; NULL: it can wait. */
static const char *why_now(struct planner *p, const struct pass_options *w, struct local *how, bool makes_room)
{
    const char *why = !p->step->task[p->bucket[0].first]->host_run ? "nothing of a step file runs"
                      : w->paced                                   ? "the step runs as predicted"
                      : w->snapshot.file || w->gather || swaps_state(w) || makes_room
                          ? "another pass moves or stores state, or makes room"
                          : NULL;
    struct plan both = p->plan[OVERLAP_LOCAL];
    if (why)
        return why;
    p->how = how;
    try_plan(p, &both);
    if (both.score.excess > 0) {
        p->how = NULL;
        return "state on both sides does not fit";
    }
    p->plan[OVERLAP_LOCAL] = both;
    return NULL;
}

/* Carries the plan out, if it has updates on the CPU, and says so. */
static bool carry_out(struct planner *p, const struct plan *plan, const char *how, char **reason)
{
    size_t on_cpu = 0;
    for (size_t b = 0; b < p->n; b++)
        on_cpu += plan->choice[b] != ON_DEVICE;
    if (!on_cpu && !(p->how && p->how->drawn)) {
        *reason = copy_string(!p->n ? "the list has no update that could run on the CPU" : "no update on the CPU");
        return false;
    }
    struct edit *e = open_edit(p->step);
    move_updates(p, e, plan->choice);
    commit(e);
    *reason = format_string("%s%zu of %zu updates on the CPU, on %d of its cores", how, on_cpu, p->n, p->cores);
    return true;
}

bool run_overlap(struct step *s, const struct costs *c, const struct pass_options *w, struct pass_report *r)
{
    struct planner *p = allocate(1, sizeof *p);
    struct machine *m = s->pool->machine;
    struct local how = {w->draw, w->draw_seed, c, MAX((int)spare_cores(m), 1), NULL};
    struct plan *plan = &p->plan[w->overlap];
    char *origin = NULL;
    bool given = w->overlap_plan && access(w->overlap_plan, F_OK) == 0, changes = false;
    bool room_later = w->recompute != RECOMPUTE_OFF || w->swap != SWAP_OFF;
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
    if (w->overlap_plan && p->n && (given || p->timed))
        read_or_write(p, w->overlap_plan, given);
    if (plan->score.excess > 0 && !room_later) {
        move_updates(p, open_edit(s), plan->choice);
        refuse_budgets(s, c,
                       w->overlap == OVERLAP_PLAN && !given ? "--overlap: no choice of updates fits"
                                                            : "--overlap: this choice of updates does not fit");
    }
    const char *now = w->overlap == OVERLAP_LOCAL && p->timed ? why_now(p, w, &how, had) : NULL;
    if (w->overlap_plan)
        origin = format_string("%s %s: ", given ? "read from" : "written to", w->overlap_plan);
    else if (now)
        origin = format_string("chosen before the step runs, since %s: ", now);
    else if (p->how)
        origin = format_string("%s in every step, expected: ", how.drawn ? "drawn at random" : "chosen");
    if (p->n && !p->timed && !given && (w->overlap == OVERLAP_PLAN || w->overlap == OVERLAP_LOCAL))
        r->reason = copy_string("nobody knows how long tasks take: add --profile or --hardware");
    else
        changes = carry_out(p, plan, origin ? origin : "", &r->reason);
    report(p, w->overlap, r);
    if (had)
        restore_limits(m, had, m->n_devices);
    free_uses(p->uses);
    free(had), free(origin), free(p->bucket_of), free(p);
    return changes;
}
