/* overlap.c - the layered optimizer: some layers' updates run on the CPU while the device goes on.
 *
 * An update that can run on either side is moved by five edits: its gradients go down as soon as they are there; the
 * host's update stands in for the device's; the host keeps the parameters too, its mirror of them; Adam's state has its
 * home on the host; and the new parameters go up.  The device waits for them where the next forward reads them, layer
 * by layer.  With clipping no update starts before the norm is known: gradients still go down under the backward, and
 * the updates run under the next forward.
 *
 *     one layer, on the device:    backward ... norm  update                    | forward
 *                on the CPU:       backward  down     norm  update (cpu)  up    | forward
 *
 * Which layers?  overlap_plan.c proposes, by a formula that knows one device; the simulator judges the edited list,
 * which has shared links, pipelines and whatever else there is.  Up to MOST_TRIED combinations all are judged, of more
 * the proposal and what differs from it in one layer, as long as that helps.  The device alone is a plan too: when none
 * is better the pass declines.
 */
#include "overlap.h"

#include "pass.h"

#include <math.h>
#include <unistd.h>

enum { MOST_TRIED = 1 << 17 /* tasks in all choices together that are tried without a choice */ };
enum { BEST_BARRIER = OVERLAP_OFF, GIVEN = OVERLAP_ALL_DEVICE + 1, PLANS };

struct plan {
    bool on_cpu[MOST_UPDATES];
    enum cpu_order order;
    bool alone;             /* gradients share no bytes, see move_updates() */
    double period, barrier; /* simulated seconds; INFINITY: it does not fit */
};
struct planner {
    struct offloads *list;
    const struct timing *timing; /* the list's */
    const struct costs *costs;
    const struct wishes *wishes;
    size_t n;                /* updates */
    struct plan plan[PLANS]; /* by enum overlap; the best with a barrier between steps; and that of the file */
    struct online online;
    const char *now; /* why a rule decides now; NULL: it does not, or none is asked for */
};

bool wants_overlap(const struct wishes *w) { return w->overlap != OVERLAP_OFF; }

/* ---- trying ------------------------------------------------------------------------------------------------------ */

static bool better(double a, double b) { return a < b * (1 - 1e-9) || (isfinite(a) && !isfinite(b)); }

static bool try_bytes(const struct planner *p, struct plan *plan, bool alone)
{
    struct forecast f = try_updates(p->list, p->costs, plan->on_cpu, plan->order, alone);
    bool fits = !f.why_not && f.excess == 0;
    plan->alone = alone;
    plan->period = fits ? f.period : INFINITY;
    plan->barrier = fits ? f.alone : INFINITY;
    free_forecast(&f);
    return fits;
}

/* What comes of a choice in that order. */
static void try_plan(const struct planner *p, struct plan *plan)
{
    if (!try_bytes(p, plan, true))
        try_bytes(p, plan, false);
}

/* Would an order before that one do the same? */
static bool is_order_new(const struct planner *p, const bool *on_cpu, enum cpu_order order)
{
    size_t job[MOST_UPDATES], other[MOST_UPDATES];
    size_t n = order_updates(p->timing, on_cpu, order, job);
    bool new = order == ORDER_RELEASE || (p->list->timed && n > 0);
    for (enum cpu_order before = ORDER_RELEASE; before < order && new; before++) {
        order_updates(p->timing, on_cpu, before, other);
        new = memcmp(job, other, n * sizeof *job) != 0;
    }
    return new;
}

/* The choice gets the best order of the CPU's updates. */
static void try_orders(struct planner *p, struct plan *plan)
{
    struct plan next = *plan, *barrier = &p->plan[BEST_BARRIER];
    for (next.order = ORDER_RELEASE; next.order < CPU_ORDERS; next.order++) {
        if (!is_order_new(p, next.on_cpu, next.order))
            continue;
        try_plan(p, &next);
        if (better(next.barrier, barrier->barrier))
            *barrier = next;
        if (next.order == ORDER_RELEASE || better(next.period, plan->period))
            *plan = next;
    }
}

static bool consider(struct planner *p, struct plan plan)
{
    try_orders(p, &plan);
    bool helps = better(plan.period, p->plan[OVERLAP_PLAN].period);
    if (helps)
        p->plan[OVERLAP_PLAN] = plan;
    return helps;
}

/* ---- looking for the best ---------------------------------------------------------------------------------------- */

static void propose(struct planner *p)
{
    struct plan plan;
    for (int barrier = 0; barrier < 2; barrier++) {
        if (isfinite(best_choice(p->timing, barrier, plan.on_cpu)))
            consider(p, plan);
        if (p->list->gated && isfinite(best_behind_gate(p->timing, barrier, plan.on_cpu)))
            consider(p, plan);
    }
}

static bool has_formula(const struct planner *p) { return p->list->timed && p->list->one_lane; }

static void try_all(struct planner *p)
{
    struct plan plan;
    for (size_t bits = 0; bits < (size_t)1 << p->n; bits++) {
        for (size_t g = 0; g < p->n; g++)
            plan.on_cpu[g] = bits >> g & 1;
        double least = has_formula(p) ? least_of_choice(p->timing, plan.on_cpu) : 0;
        if (better(least, p->plan[OVERLAP_PLAN].period) || better(least, p->plan[BEST_BARRIER].barrier))
            consider(p, plan);
    }
}

/* One update after another changes sides, as long as that helps. */
static void climb(struct planner *p)
{
    for (bool helps = true; helps;) {
        helps = false;
        for (size_t g = 0; g < p->n; g++) {
            struct plan plan = p->plan[OVERLAP_PLAN];
            plan.on_cpu[g] = !plan.on_cpu[g];
            helps |= consider(p, plan);
        }
    }
}

/* What the formula says of the plan; it knows of one device. */
static double formula_of(const struct planner *p, const struct plan *plan)
{
    return has_formula(p) ? plan_seconds(p->timing, plan->on_cpu, plan->order, false) : INFINITY;
}

/* The bound; of several devices only what the busiest one has to do. */
static double least(const struct planner *p) { return p->list->one_lane ? least_seconds(p->timing) : p->timing->fixed; }

/* It is as short as the bound; or the simulator says the same as the formula, whose best choice it is. */
static bool is_proved(const struct planner *p)
{
    const struct plan *best = &p->plan[OVERLAP_PLAN];
    double formula = formula_of(p, best);
    return !better(least(p), best->period) ||
           (!p->list->gated && !better(formula, best->period) && !better(best->period, formula));
}

/* All plans that the report shows, whichever is chosen. */
static void find_plans(struct planner *p)
{
    memset(p->plan[OVERLAP_ALL_CPU].on_cpu, true, p->n);
    if (p->list->timed) {
        choose_locally(p->timing, false, p->plan[OVERLAP_LOCAL].on_cpu);
        choose_locally(p->timing, true, p->plan[OVERLAP_SLACK].on_cpu);
    }
    for (enum overlap o = OVERLAP_LOCAL; o <= OVERLAP_ALL_DEVICE; o++)
        try_plan(p, &p->plan[o]);
    if (p->list->gated)
        try_orders(p, &p->plan[OVERLAP_ALL_CPU]);
    consider(p, p->plan[OVERLAP_ALL_DEVICE]);
    consider(p, p->plan[OVERLAP_ALL_CPU]);
    if (p->list->timed)
        propose(p);
    if (p->n < 20 && p->list->step->n << p->n <= MOST_TRIED)
        try_all(p);
    else if (!is_proved(p))
        climb(p);
}

/* ---- what fits --------------------------------------------------------------------------------------------------- */

static bool makes_room_later(const struct wishes *w) { return w->recompute != RECOMPUTE_OFF || w->swap != SWAP_OFF; }

/* Where nothing fits, but other passes make room later, plans are made as if the devices, not the host, had all of it:
 * then what they had is returned. */
static struct limits *find_plans_that_fit(struct planner *p)
{
    struct machine *m = p->list->step->pool->machine;
    find_plans(p);
    if (p->plan[OVERLAP_PLAN].period < INFINITY || !makes_room_later(p->wishes))
        return NULL;
    struct limits *had = lift_limits(m, m->n_devices);
    p->list->timing.device_room = INFINITY;
    find_plans(p);
    return had;
}

/* Ends the program: for each device that is too small for the plan, the budget that is not.  Where any plan would do,
 * that of all updates on the CPU, which needs the least of the devices. */
static _Noreturn void refuse(const struct planner *p, const struct plan *plan, bool any)
{
    struct machine *m = p->list->step->pool->machine;
    int n = m->n_devices + 1;
    const struct plan *least = any ? &p->plan[OVERLAP_ALL_CPU] : plan;
    struct limits *had = lift_limits(m, n);
    struct forecast f = try_updates(p->list, p->costs, least->on_cpu, least->order, false);
    restore_limits(m, had, n);
    char *text;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    for (int i = 0; i < n; i++)
        if (f.need[i] > m->device[i].budget)
            fprintf(out, " device %s needs %zu bytes, the budget is %zu;", m->device[i].id, f.need[i],
                    m->device[i].budget);
    fclose(out);
    fail(EXIT_USAGE, "--overlap: %s:%s raise %s%s",
         any ? "no choice of updates fits, not even all on the CPU" : "this choice of updates does not fit", text,
         m->host->by_hand || m->device[0].by_hand ? "memory=" : "--device-mem or --host-mem",
         any ? "" : ", or choose other updates for the CPU");
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

/* A letter per layer; those of no layer by name, into `others`. */
static json_t *choice(const struct planner *p, const bool *on_cpu, json_t *others)
{
    char *text = allocate((size_t)p->list->layers + 1, 1);
    memset(text, 'D', (size_t)p->list->layers);
    for (size_t g = 0; g < p->n; g++) {
        const struct offload *u = &p->timing->update[g];
        if (u->layer < 0)
            json_object_set_new(others, strchr(u->name, ' ') + 1, json_string(on_cpu[g] ? "C" : "D"));
        else if (on_cpu[g])
            text[u->layer] = 'C';
    }
    json_t *word = json_string(text);
    free(text);
    return word;
}

static json_t *report(const struct planner *p, const struct plan *plan)
{
    const struct plan *barrier = &p->plan[BEST_BARRIER];
    json_t *others = json_object();
    double unknown = p->list->timed ? 0 : INFINITY, serial = p->list->timed ? serial_seconds(p->list, p->costs) : 0;
    json_t *best =
        json_pack("{s:o, s:o}", "choice", choice(p, barrier->on_cpu, NULL), "ms", milliseconds(barrier->barrier));
    return json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "choice",
                     choice(p, plan->on_cpu, others), "others", others, "order", cpu_order_name[plan->order],
                     "period_ms", milliseconds(plan->period), "formula_ms", milliseconds(formula_of(p, plan)),
                     "barrier_ms", milliseconds(plan->barrier), "best_barrier", best, "bound_ms",
                     milliseconds(least(p)), "all_device_ms", milliseconds(p->plan[OVERLAP_ALL_DEVICE].period),
                     "all_cpu_ms", milliseconds(p->plan[OVERLAP_ALL_CPU].period), "serial_ms",
                     milliseconds(serial + unknown), "local_ms", milliseconds(p->plan[OVERLAP_LOCAL].period + unknown),
                     "slack_ms", milliseconds(p->plan[OVERLAP_SLACK].period + unknown));
}

/* The first later backward or update of a device that runs while task i does, or NULL. */
static const struct task *find_beside(const struct forecast *f, size_t i)
{
    for (size_t k = 0; k < f->n; k++) {
        const struct task *t = f->task[k];
        bool counts = t->lane->kind == LANE_COMPUTE && (t->role == ROLE_BACKWARD || t->role == ROLE_UPDATE);
        if (counts && f->span[k].start < f->span[i].end && f->span[i].start < f->span[k].end)
            return t;
    }
    return NULL;
}

/* Per CPU update of the list as it now is: when it runs in a step, and what runs beside it.  Returns how many have
 * something; *of loses those that are not expected to run. */
static size_t report_updates(const struct planner *p, json_t *fields, size_t *of)
{
    struct forecast f = try_step(p->list->step, p->costs);
    json_t *list = json_array();
    size_t n = 0;
    for (size_t i = 0; f.span && i < f.n; i++) {
        const struct task *t = f.task[i];
        if (t->role != ROLE_UPDATE || t->lane->kind != LANE_CPU)
            continue;
        *of -= t->idle;
        if (t->idle)
            continue;
        const struct task *beside = find_beside(&f, i);
        n += beside != NULL;
        json_array_append_new(list,
                              json_pack("{s:i, s:f, s:f, s:s?}", "layer", t->layer, "start_ms", 1e3 * f.span[i].start,
                                        "end_ms", 1e3 * f.span[i].end, "beside", beside ? beside->name : NULL));
    }
    json_object_set_new(fields, "updates", list);
    free_forecast(&f);
    return n;
}

/* Of the plan that an online rule makes, also what it loses against the best one. */
static char *describe_times(const struct planner *p)
{
    static const struct {
        enum overlap of;
        const char *name;
    } shown[] = {{OVERLAP_ALL_DEVICE, "all on the device"},
                 {OVERLAP_ALL_CPU, "all on the CPU"},
                 {OVERLAP_LOCAL, "local"},
                 {OVERLAP_SLACK, "slack"},
                 {OVERLAP_PLAN, "best plan"}};
    char *text;
    size_t n;
    if (!p->list->timed)
        return copy_string("nobody knows how long tasks take");
    FILE *f = open_memstream(&text, &n);
    for (size_t i = 0; i < COUNT(shown); i++) {
        double seconds = p->plan[shown[i].of].period, more = seconds / p->plan[OVERLAP_PLAN].period - 1;
        bool is_rule = shown[i].of == OVERLAP_LOCAL || shown[i].of == OVERLAP_SLACK;
        if (!isfinite(seconds))
            fprintf(f, "%s does not fit, ", shown[i].name);
        else
            fprintf(f, is_rule ? "%s %.3f ms (+ %.1f %%), " : "%s %.3f ms, ", shown[i].name, 1e3 * seconds, 100 * more);
    }
    fprintf(f, "at least %.3f ms", 1e3 * least(p));
    fclose(f);
    return text;
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static bool is_given(const struct wishes *w) { return w->overlap_plan && access(w->overlap_plan, F_OK) == 0; }

static void read_given(struct planner *p)
{
    struct plan *plan = &p->plan[GIVEN];
    read_plan(p->wishes->overlap_plan, p->timing, plan->on_cpu, &plan->order);
    try_plan(p, plan);
}

/* The plan that is asked for; from the file when it is there. */
static struct plan *choose(struct planner *p)
{
    const struct wishes *w = p->wishes;
    const char *path = w->overlap_plan;
    bool given = is_given(w), forced = given || w->overlap >= OVERLAP_ALL_CPU;
    struct plan *plan = &p->plan[given ? GIVEN : w->overlap];
    if (!p->list->timed && !forced)
        return &p->plan[GIVEN]; /* it declines */
    if (given)
        read_given(p);
    else if (path)
        write_plan(path, p->timing, plan->on_cpu, plan->order);
    if (plan->period == INFINITY && !makes_room_later(w))
        refuse(p, plan, w->overlap == OVERLAP_PLAN && !given);
    return plan;
}

/* Why a rule decides now, from what is predicted, and not in the running step. */
static const char *why_now(const struct planner *p, bool makes_room)
{
    const struct wishes *w = p->wishes;
    if (!p->list->step->task[p->timing->update[0].first]->host_run)
        return "nothing of a step file runs";
    if (w->overlap_once)
        return "the step runs as predicted";
    if (w->snapshot.file)
        return "a snapshot stores state where its update runs";
    if (w->gather || swaps_state(w))
        return "another pass moves state too";
    return makes_room ? "state on both sides would take room that other passes make" : NULL;
}

/* A rule's plan becomes what it is expected to choose in the running step, or stays as it is. */
static void decide_later(struct planner *p, struct plan *plan, bool makes_room)
{
    const struct wishes *w = p->wishes;
    struct plan online = *plan;
    if ((w->overlap != OVERLAP_LOCAL && w->overlap != OVERLAP_SLACK) || !p->list->timed)
        return;
    p->now = why_now(p, makes_room || plan->period == INFINITY);
    if (p->now)
        return;
    p->online =
        (struct online){w->overlap == OVERLAP_SLACK, w->overlap_at_random, w->overlap_seed, p->costs, offer_updates};
    p->list->online = &p->online;
    try_plan(p, &online);
    if (online.period < INFINITY) {
        *plan = online;
        return;
    }
    p->list->online = NULL;
    p->now = "state on both sides does not fit";
}

/* When the rule chooses or where the plan lies, as the beginning of a sentence; "" for others. */
static char *describe_origin(const struct planner *p, const struct plan *plan)
{
    const struct online *online = p->list->online;
    const char *path = p->wishes->overlap_plan;
    if (path)
        return format_string("%s %s: ", plan == &p->plan[GIVEN] ? "read from" : "written to", path);
    if (online)
        return copy_string(online->at_random ? "drawn at random in every step; the rule expects: "
                                             : "chosen in every step, expected: ");
    return p->now ? format_string("chosen before the step runs, since %s: ", p->now) : copy_string("");
}

static char *carry_out(struct planner *p, const struct plan *plan, size_t on_cpu, json_t *fields, const char *times)
{
    struct edit *e = open_edit(p->list->step);
    size_t n = move_updates(p->list, e, plan->on_cpu, plan->order, plan->alone);
    commit(e);
    size_t n_beside = report_updates(p, fields, &n);
    char *origin = describe_origin(p, plan), *beside = NULL;
    if (p->list->timed)
        beside = format_string("; %zu of %zu tasks there run beside a later backward or update", n_beside, n);
    char *text = format_string("%s%zu of %zu updates on the CPU, on %d of its cores%s\n    %s", origin, on_cpu, p->n,
                               p->list->lanes, beside ? beside : "", times);
    free(origin), free(beside);
    return text;
}

static char *why_not(const struct planner *p, const char *times)
{
    if (!p->n)
        return copy_string("the list has no update that could run on the CPU");
    if (p->wishes->overlap == OVERLAP_ALL_DEVICE)
        return copy_string("all updates stay on the device, as asked");
    return p->list->timed ? format_string("no update on the CPU\n    %s", times)
                          : copy_string("nobody knows how long tasks take: add --profile or --hardware");
}

static struct planner new_planner(struct step *s, const struct costs *c, const struct wishes *w)
{
    struct planner p = {.list = find_offloads(s, c), .costs = c, .wishes = w};
    p.timing = &p.list->timing;
    p.n = p.timing->n;
    for (int i = 0; i < PLANS; i++)
        p.plan[i] = (struct plan){.period = INFINITY, .barrier = INFINITY};
    return p;
}

/* What the devices had, unless NULL, is theirs again. */
static void free_planner(struct planner *p, struct limits *had)
{
    struct machine *m = p->list->step->pool->machine;
    if (had)
        restore_limits(m, had, m->n_devices);
    free(had);
    free_offloads(p->list);
}

bool run_overlap(struct step *s, const struct costs *c, const struct wishes *w, struct pass_report *r)
{
    struct planner p = new_planner(s, c, w);
    size_t on_cpu = 0;
    struct limits *had = find_plans_that_fit(&p);
    struct plan *plan = choose(&p);
    decide_later(&p, plan, had);
    char *times = describe_times(&p);
    for (size_t g = 0; g < p.n; g++)
        on_cpu += plan->on_cpu[g];
    r->fields = report(&p, plan);
    bool changes = on_cpu > 0 || (p.list->online && w->overlap_at_random);
    r->reason = changes ? carry_out(&p, plan, on_cpu, r->fields, times) : why_not(&p, times);
    free(times);
    free_planner(&p, had);
    return changes;
}
