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

#include "overlap_list.h"
#include "pass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_TRIED = 1 << 17 /* tasks in all choices together that are tried without a choice */ };

struct plan {
    bool *on_cpu; /* by group */
    enum cpu_order order;
    bool alone;             /* gradients share no bytes, see move_updates() */
    double period, barrier; /* simulated seconds; INFINITY: it does not fit */
};
struct planner {
    struct offloads *list;
    const struct costs *costs;
    const struct wishes *wishes;
    size_t n; /* groups */
    struct plan best, best_barrier, all_device, all_cpu, local, slack;
};

bool wants_overlap(const struct wishes *w) { return w->overlap != OVERLAP_OFF; }

/* ---- trying ------------------------------------------------------------------------------------------------------ */

static void copy_plan(const struct planner *p, struct plan *to, const struct plan *from)
{
    bool *on_cpu = to->on_cpu;
    *to = *from;
    to->on_cpu = on_cpu;
    memcpy(on_cpu, from->on_cpu, p->n * sizeof *on_cpu);
}

static struct problem *try_bytes(const struct planner *p, struct plan *plan)
{
    struct edit *e = open_edit(p->list->step);
    move_updates(p->list, e, plan->on_cpu, plan->order, plan->alone);
    struct forecast f = try_step(p->list->step, p->costs);
    undo(e);
    plan->period = f.why_not ? INFINITY : f.period;
    plan->barrier = f.why_not ? INFINITY : f.alone;
    struct problem *why_not = f.why_not;
    f.why_not = NULL;
    free_forecast(&f);
    return why_not;
}

/* What comes of a choice in that order; NULL: it fits. */
static struct problem *try_plan(const struct planner *p, struct plan *plan)
{
    plan->alone = true;
    struct problem *why_not = try_bytes(p, plan);
    if (!why_not)
        return NULL;
    free(why_not);
    plan->alone = false;
    return try_bytes(p, plan);
}

static bool better(double a, double b) { return a < b * (1 - 1e-9) || (isfinite(a) && !isfinite(b)); }

static void note_barrier(struct planner *p, const struct plan *plan)
{
    if (better(plan->barrier, p->best_barrier.barrier))
        copy_plan(p, &p->best_barrier, plan);
}

/* The best order of the CPU's updates. */
static void try_orders(struct planner *p, struct plan *plan)
{
    struct plan next = *plan;
    plan->period = plan->barrier = INFINITY;
    for (next.order = ORDER_RELEASE; next.order < CPU_ORDERS; next.order++) {
        if (!is_order_new(p->list, next.on_cpu, next.order))
            continue;
        free(try_plan(p, &next));
        note_barrier(p, &next);
        if (next.order == ORDER_RELEASE || better(next.period, plan->period))
            *plan = next;
    }
}

static bool consider(struct planner *p, const bool *on_cpu)
{
    struct plan plan = {.on_cpu = (bool *)on_cpu};
    try_orders(p, &plan);
    bool helps = better(plan.period, p->best.period);
    if (helps)
        copy_plan(p, &p->best, &plan);
    return helps;
}

/* ---- looking for the best ---------------------------------------------------------------------------------------- */

static void try_all(struct planner *p)
{
    bool *on_cpu = allocate(p->n, sizeof *on_cpu);
    for (size_t bits = 0; bits < (size_t)1 << p->n; bits++) {
        for (size_t g = 0; g < p->n; g++)
            on_cpu[g] = bits >> g & 1;
        double least = p->list->timed && p->list->one_lane ? least_of_choice(&p->list->timing, on_cpu) : 0;
        if (better(least, p->best.period) || better(least, p->best_barrier.barrier))
            consider(p, on_cpu);
    }
    free(on_cpu);
}

/* One update after another changes sides, as long as that helps. */
static void climb(struct planner *p)
{
    bool *on_cpu = allocate(p->n, sizeof *on_cpu), helps = true;
    while (helps) {
        helps = false;
        for (size_t g = 0; g < p->n; g++) {
            memcpy(on_cpu, p->best.on_cpu, p->n * sizeof *on_cpu);
            on_cpu[g] = !on_cpu[g];
            helps |= consider(p, on_cpu);
        }
    }
    free(on_cpu);
}

/* What the formula says of the plan; it knows of one device. */
static double formula_of(const struct planner *p, const struct plan *plan)
{
    return p->list->timed && p->list->one_lane ? plan_seconds(&p->list->timing, plan->on_cpu, plan->order, false)
                                               : INFINITY;
}

/* Does the simulator say the same?  Then its best choice is the best. */
static bool is_proved(const struct planner *p)
{
    double formula = formula_of(p, &p->best);
    return !better(formula, p->best.period) && !better(p->best.period, formula);
}

static bool is_gated(const struct planner *p)
{
    bool gated = false;
    for (size_t g = 0; g < p->n; g++)
        gated |= p->list->timing.update[g].gate > 0;
    return gated;
}

static void propose(struct planner *p)
{
    const struct timing *t = &p->list->timing;
    bool *on_cpu = allocate(p->n, sizeof *on_cpu);
    for (int barrier = 0; barrier < 2; barrier++) {
        if (best_choice(t, barrier, on_cpu))
            consider(p, on_cpu);
        if (is_gated(p) && best_behind_gate(t, barrier, on_cpu))
            consider(p, on_cpu);
    }
    free(on_cpu);
}

static void find_best(struct planner *p)
{
    consider(p, p->all_device.on_cpu);
    consider(p, p->all_cpu.on_cpu);
    if (p->list->timed)
        propose(p);
    if (p->n < 20 && p->list->step->n << p->n <= MOST_TRIED)
        try_all(p);
    else if (is_gated(p) || !is_proved(p))
        climb(p);
}

static struct plan new_plan(const struct planner *p, bool all_on_cpu)
{
    struct plan plan = {allocate(p->n + 1, sizeof(bool)), ORDER_RELEASE, true, INFINITY, INFINITY};
    memset(plan.on_cpu, all_on_cpu, p->n);
    return plan;
}

/* All that the report shows, whichever is chosen. */
static void look_at_all(struct planner *p)
{
    const struct timing *t = &p->list->timing;
    if (p->list->timed) {
        choose_locally(t, false, p->local.on_cpu);
        choose_locally(t, true, p->slack.on_cpu);
    }
    free(try_plan(p, &p->all_device)), free(try_plan(p, &p->all_cpu));
    free(try_plan(p, &p->local)), free(try_plan(p, &p->slack));
    if (is_gated(p))
        try_orders(p, &p->all_cpu);
    find_best(p);
}

/* ---- what fits --------------------------------------------------------------------------------------------------- */

/* The least budgets, by device, with which the plan fits; the caller frees them. */
static size_t *smallest_budgets(const struct planner *p, const struct plan *plan)
{
    const struct machine *m = p->list->step->pool->machine;
    size_t *budget = allocate((size_t)m->n_devices + 1, sizeof *budget);
    for (int i = 0; i <= m->n_devices; i++)
        budget[i] = m->device[i].budget, m->device[i].budget = (size_t)1 << 50;
    struct edit *e = open_edit(p->list->step);
    move_updates(p->list, e, plan->on_cpu, plan->order, false);
    struct forecast f = try_step(p->list->step, p->costs);
    undo(e);
    for (int i = 0; i <= m->n_devices; i++)
        m->device[i].budget = budget[i], budget[i] = f.need[i];
    free_forecast(&f);
    return budget;
}

/* A choice that needs few bytes of the device as far as the host has room for it: the most for their host bytes first.
 */
static void choose_small(const struct planner *p, struct plan *plan)
{
    const struct timing *t = &p->list->timing;
    double left = t->host_room;
    memset(plan->on_cpu, !p->list->timed, p->n);
    for (;;) {
        size_t best = p->n;
        for (size_t g = 0; g < p->n; g++)
            if (!plan->on_cpu[g] && t->update[g].host_bytes <= left && t->update[g].device_bytes > 0 &&
                (best == p->n || t->update[g].device_bytes * t->update[best].host_bytes >
                                     t->update[best].device_bytes * t->update[g].host_bytes))
                best = g;
        if (best == p->n)
            return;
        plan->on_cpu[best] = true;
        left -= t->update[best].host_bytes;
    }
}

/* Ends the program: for each device that is too small for the plan, the budget that is not. */
static _Noreturn void refuse(const struct planner *p, const struct plan *plan, bool any)
{
    const struct machine *m = p->list->step->pool->machine;
    char *text = copy_string("");
    size_t *least = smallest_budgets(p, plan);
    for (int i = 0; i <= m->n_devices; i++) {
        struct device *d = &m->device[i];
        char *more = least[i] <= d->budget ? copy_string("")
                                           : format_string("%s device %s needs %zu bytes, the budget is %zu;",
                                                           *text ? "," : "", d->id, least[i], d->budget);
        char *both = format_string("%s%s", text, more);
        free(text), free(more);
        text = both;
    }
    fail(EXIT_USAGE, "--overlap: %s:%s raise %s%s",
         any ? "no choice of updates fits" : "this choice of updates does not fit", text,
         m->host->by_hand || m->device[0].by_hand ? "memory=" : "--device-mem or --host-mem",
         any ? "" : ", or choose other updates for the CPU");
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

static json_t *milliseconds(double seconds) { return isfinite(seconds) ? json_real(1e3 * seconds) : json_null(); }

/* Of several devices only what the busiest one has to do. */
static double least(const struct planner *p)
{
    return p->list->one_lane ? least_seconds(&p->list->timing) : p->list->timing.fixed;
}

/* A letter per layer; those of no layer are reported beside. */
static json_t *letters(const struct planner *p, const bool *on_cpu)
{
    char *text = allocate((size_t)p->list->layers + 1, 1);
    memset(text, 'D', (size_t)p->list->layers);
    for (size_t g = 0; g < p->n; g++)
        if (p->list->group[g].layer >= 0 && on_cpu[g])
            text[p->list->group[g].layer] = 'C';
    json_t *word = json_string(text);
    free(text);
    return word;
}

static json_t *others(const struct planner *p, const bool *on_cpu)
{
    json_t *list = json_object();
    for (size_t g = 0; g < p->n; g++)
        if (p->list->group[g].layer < 0)
            json_object_set_new(list, p->list->group[g].name, json_string(on_cpu[g] ? "C" : "D"));
    return list;
}

static json_t *report(const struct planner *p, const struct plan *plan)
{
    double serial = p->list->timed ? serial_seconds(p->list, p->costs) : INFINITY;
    json_t *f = json_object(), *barrier = json_object();
    json_object_set_new(barrier, "choice", letters(p, p->best_barrier.on_cpu));
    json_object_set_new(barrier, "ms", milliseconds(p->best_barrier.barrier));
    json_object_set_new(f, "choice", letters(p, plan->on_cpu));
    json_object_set_new(f, "others", others(p, plan->on_cpu));
    json_object_set_new(f, "order", json_string(cpu_order_name[plan->order]));
    json_object_set_new(f, "period_ms", milliseconds(plan->period));
    json_object_set_new(f, "formula_ms", milliseconds(formula_of(p, plan)));
    json_object_set_new(f, "barrier_ms", milliseconds(plan->barrier));
    json_object_set_new(f, "best_barrier", barrier);
    json_object_set_new(f, "bound_ms", milliseconds(least(p)));
    json_object_set_new(f, "all_device_ms", milliseconds(p->all_device.period));
    json_object_set_new(f, "all_cpu_ms", milliseconds(p->all_cpu.period));
    json_object_set_new(f, "serial_ms", milliseconds(serial));
    json_object_set_new(f, "local_ms", milliseconds(p->list->timed ? p->local.period : INFINITY));
    json_object_set_new(f, "slack_ms", milliseconds(p->list->timed ? p->slack.period : INFINITY));
    return f;
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
 * something. */
static size_t report_updates(const struct planner *p, json_t *fields)
{
    struct forecast f = try_step(p->list->step, p->costs);
    json_t *list = json_array();
    size_t n = 0;
    for (size_t i = 0; f.span && i < f.n; i++) {
        const struct task *t = f.task[i];
        if (t->role != ROLE_UPDATE || t->lane->kind != LANE_CPU)
            continue;
        const struct task *beside = find_beside(&f, i);
        n += beside != NULL;
        json_t *entry = json_pack("{s:i, s:f, s:f}", "layer", t->layer, "start_ms", 1e3 * f.span[i].start, "end_ms",
                                  1e3 * f.span[i].end);
        json_object_set_new(entry, "beside", beside ? json_string(beside->name) : json_null());
        json_array_append_new(list, entry);
    }
    json_object_set_new(fields, "updates", list);
    free_forecast(&f);
    return n;
}

static char *describe_times(const struct planner *p)
{
    char text[3][32];
    if (!p->list->timed)
        return copy_string("nobody knows how long tasks take");
    const double seconds[] = {p->all_device.period, p->all_cpu.period, p->best.period};
    for (int i = 0; i < 3; i++)
        if (isfinite(seconds[i]))
            snprintf(text[i], sizeof text[i], "%.3f ms", 1e3 * seconds[i]);
        else
            snprintf(text[i], sizeof text[i], "does not fit");
    return format_string("all on the device %s, all on the CPU %s, best plan %s, at least %.3f ms", text[0], text[1],
                         text[2], 1e3 * least(p));
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static void obey(struct planner *p, struct plan *plan)
{
    switch (p->wishes->overlap) {
    case OVERLAP_PLAN:
        copy_plan(p, plan, &p->best);
        break;
    case OVERLAP_LOCAL:
        copy_plan(p, plan, &p->local);
        break;
    case OVERLAP_SLACK:
        copy_plan(p, plan, &p->slack);
        break;
    case OVERLAP_ALL_CPU:
        copy_plan(p, plan, &p->all_cpu);
        break;
    default:
        copy_plan(p, plan, &p->all_device);
    }
}

/* The plan that is asked for; from the file when it is there. */
static struct plan choose(struct planner *p)
{
    struct plan plan = new_plan(p, false);
    const char *path = p->wishes->overlap_plan;
    bool given = path && access(path, F_OK) == 0, forced = given || p->wishes->overlap >= OVERLAP_ALL_CPU;
    if (!p->list->timed && !forced) { /* it declines */
        plan.period = NAN;
    } else if (given) {
        read_plan(path, p->list, plan.on_cpu, &plan.order);
        free(try_plan(p, &plan));
    } else {
        obey(p, &plan);
        if (path)
            write_plan(path, p->list, plan.on_cpu, plan.order);
    }
    bool any = p->wishes->overlap == OVERLAP_PLAN && !given;
    bool others = p->wishes->recompute != RECOMPUTE_OFF || p->wishes->swap != SWAP_OFF; /* may yet make room */
    if (plan.period == INFINITY && !others) {
        if (any)
            choose_small(p, &plan);
        refuse(p, &plan, any);
    }
    return plan;
}

static size_t count_on_cpu(const struct planner *p, const struct plan *plan)
{
    size_t n = 0;
    for (size_t g = 0; g < p->n; g++)
        n += plan->on_cpu[g];
    return n;
}

static void carry_out(struct planner *p, const struct plan *plan, struct pass_report *r)
{
    struct edit *e = open_edit(p->list->step);
    move_updates(p->list, e, plan->on_cpu, plan->order, plan->alone);
    commit(e);
    size_t beside = report_updates(p, r->fields);
    char *times = describe_times(p);
    size_t n = p->list->n_moved;
    r->reason =
        format_string("%zu of %zu updates on the CPU, on %d of its cores; %zu of %zu tasks there run beside a later "
                      "backward or update; %s",
                      count_on_cpu(p, plan), p->n, p->list->lanes, beside, n, times);
    free(times);
}

static void free_planner(struct planner *p)
{
    struct plan *all[] = {&p->best, &p->best_barrier, &p->all_device, &p->all_cpu, &p->local, &p->slack};
    for (size_t i = 0; i < COUNT(all); i++)
        free(all[i]->on_cpu);
    free_offloads(p->list);
}

bool run_overlap(struct step *s, const struct costs *c, const struct wishes *w, struct pass_report *r)
{
    struct planner p = {.list = find_offloads(s, c), .costs = c, .wishes = w};
    struct plan *all[] = {&p.best, &p.best_barrier, &p.all_device, &p.local, &p.slack};
    p.n = p.list->n;
    for (size_t i = 0; i < COUNT(all); i++)
        *all[i] = new_plan(&p, false);
    p.all_cpu = new_plan(&p, true);
    look_at_all(&p);
    struct plan plan = choose(&p);
    bool moves = count_on_cpu(&p, &plan) > 0;
    r->fields = report(&p, &plan);
    if (moves) {
        carry_out(&p, &plan, r);
    } else {
        char *times = describe_times(&p);
        r->reason = !p.n                               ? copy_string("the list has no update that could run on the CPU")
                    : w->overlap == OVERLAP_ALL_DEVICE ? copy_string("all updates stay on the device, as asked")
                    : !p.list->timed ? copy_string("nobody knows how long tasks take: add --profile or --hardware")
                                     : format_string("no update on the CPU: %s", times);
        free(times);
    }
    free(plan.on_cpu);
    free_planner(&p);
    return moves;
}
