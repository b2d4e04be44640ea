/* swap.c - training in less memory than the step would hold: data leaves for the host and comes back in time.
 *
 *     auto          only where a device's budget is too small, and so that the step is as short as it can be: what to
 *                   keep, to swap and to make again is found by trying plans (swap_plan.c)
 *     layer         layer k's data leaves while the next layer's forward runs, and comes back while the backward before
 *                   its own does
 *     microbatch    the same for the data of a whole micro-batch
 *
 * The latter two are fixed orders, for reading and comparing: they move all they can, whatever the budget.  What moves
 * is chosen by class (--swap-what).  State lives on the host, and is on the device while it is used.
 *
 * `--recompute auto` is the same planner, which makes again instead of swapping.
 */
#include "gaps.h"

#include <math.h>

bool swaps_state(const struct wishes *w)
{
    return w->swap != SWAP_OFF && w->swap_what & (1u << MEM_OPTIMIZER | 1u << MEM_PARAMETERS);
}

bool wants_swap(const struct wishes *w) { return w->swap != SWAP_OFF; }

struct swapper {
    struct step *step;
    const struct costs *costs;
    const struct wishes *wishes;
    struct survey *survey;
    struct planner planner;
    struct forecast before; /* the list as it was */
    struct limits *had;     /* by device: what the machine had before budgets were lifted; ... */
    size_t *budget;         /* ... of that the budgets alone */
    struct swap_plan plan;
    const size_t *smallest; /* by device: budget that works */
    double bound;
};

/* ---- budgets ----------------------------------------------------------------------------------------------------- */

/* Plans that do not fit are to be compared as well: by how much. */
static void lift_budgets(struct swapper *w)
{
    struct machine *m = w->step->pool->machine;
    w->had = lift_limits(m, m->n_devices + 1);
    w->budget = allocate((size_t)m->n_devices + 1, sizeof *w->budget);
    for (int d = 0; d <= m->n_devices; d++)
        w->budget[d] = w->had[d].budget;
}

static void restore_budgets(const struct swapper *w)
{
    struct machine *m = w->step->pool->machine;
    restore_limits(m, w->had, m->n_devices + 1);
}

static bool fits(const struct swapper *w, const size_t *need)
{
    for (int d = 0; d <= w->step->pool->machine->n_devices; d++)
        if (need[d] > w->budget[d])
            return false;
    return true;
}

static struct swapper *open_swapper(struct step *s, const struct costs *c, const struct wishes *w, unsigned classes,
                                    bool swap, bool remake)
{
    struct swapper *r = allocate(1, sizeof *r);
    *r = (struct swapper){.step = s, .costs = c, .wishes = w};
    lift_budgets(r);
    r->before = try_step(s, c);
    if (r->before.why_not)
        restore_budgets(r), must(r->before.why_not);
    r->survey = look_for_gaps(s, c, &r->before, classes);
    r->planner = open_planner(r->survey, r->budget, swap, remake);
    r->plan = new_plan(r->survey);
    r->bound = lower_bound(&r->planner, r->budget);
    return r;
}

static void close_swapper(struct swapper *w)
{
    free_plan(&w->plan);
    close_planner(&w->planner);
    free_survey(w->survey);
    free_forecast(&w->before);
    free(w->budget), free(w->had);
    free(w);
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

static json_t *span_ms(const struct forecast *f, const struct task *t, bool end)
{
    if (!t || !f->span)
        return json_null();
    return milliseconds(end ? f->span[t->index].end : f->span[t->index].start);
}

static json_t *move_json(const struct swapper *w, const struct forecast *f, size_t gap, const struct deed *d)
{
    const struct candidate *c = &w->survey->candidates[w->survey->gaps[gap].candidate];
    const struct task *maker = w->survey->task[c->maker];
    const char *how = w->plan.fate[w->survey->gaps[gap].candidate] == SWAP ? "swap" : "recompute";
    return json_pack("{s:s, s:i, s:i, s:s, s:I, s:s, s:o, s:o, s:o, s:o, s:o}", "tensor", c->tensor->name, "layer",
                     maker->layer, "micro", maker->micro, "device", c->device->id, "bytes",
                     (json_int_t)c->tensor->bytes, "how", how, "out_start_ms", span_ms(f, d->out, false), "out_end_ms",
                     span_ms(f, d->out, true), "in_start_ms", span_ms(f, d->in, false), "in_end_ms",
                     span_ms(f, d->ready, true), "needed_ms", span_ms(f, d->reader, false));
}

/* The steady step starts with its first task, which may run while the step before still does; but for those that
 * prepare its batch, a step early. */
static void count_from_first(struct forecast *f)
{
    double start = INFINITY;
    for (size_t i = 0; f->span && i < f->n; i++)
        if (f->task[i]->role != ROLE_FEED)
            start = fmin(start, f->span[i].start);
    for (size_t i = 0; f->span && i < f->n; i++)
        f->span[i].start -= start, f->span[i].end -= start;
}

/* deeds NULL: nothing has moved. */
static json_t *moves_json(const struct swapper *w, const struct forecast *f, const struct deed *deeds)
{
    json_t *moves = json_array();
    for (size_t g = 0; g < w->survey->n_gaps && deeds; g++)
        if (deeds[g].out || deeds[g].in)
            json_array_append_new(moves, move_json(w, f, g, &deeds[g]));
    return moves;
}

static void add_devices(struct swapper *w, const struct forecast *after, json_t *fields)
{
    const struct machine *m = w->step->pool->machine;
    json_t *peaks = json_object(), *smallest = json_object();
    for (int d = 0; d <= m->n_devices; d++) {
        json_object_set_new(
            peaks, m->device[d].id,
            json_pack("{s:I, s:I}", "before", (json_int_t)w->before.need[d], "after", (json_int_t)after->need[d]));
        if (d < m->n_devices)
            json_object_set_new(smallest, m->device[d].id, json_integer((json_int_t)w->smallest[d]));
    }
    json_object_set_new(fields, "peak_bytes", peaks);
    json_object_set_new(fields, "smallest_budget", smallest);
}

static json_t *fields_of(struct swapper *w, const struct forecast *after, const struct deed *deeds)
{
    double bare = w->before.period, stall = fmax(after->period - bare, 0);
    json_t *fields =
        json_pack("{s:o, s:o, s:o, s:o, s:o}", "moves", moves_json(w, after, deeds), "bare_ms", milliseconds(bare),
                  "period_ms", milliseconds(after->period), "bound_ms", milliseconds(isnan(bare) ? NAN : w->bound),
                  "stall_ms", milliseconds(isnan(after->period) ? NAN : stall));
    add_devices(w, after, fields);
    return fields;
}

/* ---- making a plan true ------------------------------------------------------------------------------------------ */

/* What comes back several times a step, though it is no state, moves in vain: there is too little room. */
static void name_thrash(FILE *out, const struct swapper *w, const struct deed *deeds)
{
    const struct survey *v = w->survey;
    size_t first = 0, fetches = 0, named = 0;
    for (size_t g = 0; g <= v->n_gaps; g++) {
        if (g == v->n_gaps || v->gaps[g].tensor != v->gaps[first].tensor) {
            if (fetches > 1 && !v->gaps[first].tensor->persistent && named++ < 3)
                fprintf(out, "%s %s %zu times", named == 1 ? "\n    thrash: these come back more than once:" : ",",
                        v->gaps[first].tensor->name, fetches);
            first = g, fetches = 0;
        }
        fetches += g < v->n_gaps && deeds[g].in && deeds[g].in->copy;
    }
}

static char *describe(const struct swapper *w, const struct forecast *after, const struct deed *deeds)
{
    const struct machine *m = w->step->pool->machine;
    size_t swapped = 0, remade = 0, size;
    char bytes[32], *text = NULL;
    FILE *out = open_memstream(&text, &size);
    for (size_t g = 0; g < w->survey->n_gaps; g++) {
        swapped += deeds[g].in && deeds[g].in->copy;
        remade += deeds[g].in && !deeds[g].in->copy;
    }
    fprintf(out, "%zu swapped, %zu made again, %s copied; smallest budget%s", swapped, remade,
            format_bytes(bytes, w->plan.moved), m->n_devices == 1 ? "" : "s");
    for (int d = 0; d < m->n_devices; d++)
        fprintf(out, "%s %s", d ? "," : "", format_bytes(bytes, (double)w->smallest[d]));
    if (!isnan(after->period))
        fprintf(out, "\n    stall %.3f ms; no step is shorter than %.3f ms in this budget (%s)",
                1e3 * fmax(after->period - w->before.period, 0), 1e3 * w->bound,
                format_ratio((char[32]){0}, fmax(after->period / w->bound, 1), 2));
    name_thrash(out, w, deeds);
    fclose(out);
    return text;
}

/* The list becomes what the plan says.  Budgets are the machine's again. */
static void carry_out(struct swapper *w, struct pass_report *r)
{
    struct edit *e = open_edit(w->step);
    struct line l = follow_plan(w->survey, e, &w->plan);
    commit(e);
    restore_budgets(w);
    r->after = try_step(w->step, w->costs);
    count_from_first(&r->after);
    r->reason = describe(w, &r->after, l.deeds);
    r->fields = fields_of(w, &r->after, l.deeds);
    free_line(&l);
}

static bool decline(struct swapper *w, struct pass_report *r, const char *why)
{
    restore_budgets(w);
    r->reason = copy_string(why);
    r->fields = fields_of(w, &w->before, NULL);
    close_swapper(w);
    return false;
}

/* Ends the program: names the task that needs most, and the smallest budget. */
_Noreturn static void refuse(struct swapper *w, const char *option)
{
    struct machine *m = w->step->pool->machine;
    int d = 0;
    while (d < m->n_devices && w->plan.need[d] <= w->budget[d])
        d++;
    struct edit *e = open_edit(w->step);
    follow_plan(w->survey, e, &w->plan);
    struct forecast f = try_step(w->step, w->costs);
    const struct task *t = f.task[f.at[d]];
    size_t smallest = d < m->n_devices ? w->smallest[d] : w->plan.need[d];
    char most[32], budget[32];
    restore_budgets(w);
    fail(EXIT_USAGE,
         "%s: device %s: task %s%s does not fit: %s are needed there, the budget is %s; the "
         "smallest that works is %zu bytes (%s): a larger %s, or %s",
         option, m->device[d].id, t->name, layer_and_micro((char[64]){0}, t),
         format_bytes(most, (double)w->plan.need[d]), format_bytes(budget, (double)w->budget[d]), smallest,
         format_bytes((char[32]){0}, (double)smallest),
         m->device[d].by_hand   ? "memory="
         : m->device[d].is_host ? "--host-mem"
                                : "--device-mem",
         m->device[d].by_hand ? "smaller tensors"
                              : "more classes in --swap-what, a smaller --micro-batch or --seq-len");
}

/* ---- the planner's choice ---------------------------------------------------------------------------------------- */

static bool run_planner(struct swapper *w, const char *option, bool must_fit, struct pass_report *r)
{
    w->smallest = least_plan(&w->planner)->need;
    if (fits(w, w->before.need))
        return decline(w, r, "all fits");
    bool possible = fits(w, w->smallest);
    free_plan(&w->plan);
    w->plan = possible ? find_plan(&w->planner) : copy_of_plan(w->survey, least_plan(&w->planner));
    if (!fits(w, w->plan.need) && must_fit)
        refuse(w, option);
    carry_out(w, r);
    close_swapper(w);
    return true;
}

bool run_recompute_auto(struct step *s, const struct costs *c, const struct wishes *w, struct pass_report *r)
{
    struct swapper *x = open_swapper(s, c, w, 1u << MEM_ACTIVATIONS, false, true);
    if (w->swap != SWAP_AUTO)
        return run_planner(x, "--recompute auto", w->swap == SWAP_OFF, r);
    x->smallest = least_plan(&x->planner)->need;
    return decline(x, r, "--swap auto chooses what is made again");
}

/* ---- the two fixed orders ---------------------------------------------------------------------------------------- */

struct turn { /* what a device computes of one micro-batch, or of one layer of it, one way */
    const struct task *task;
    int first, last;
};

static bool same_turn(const struct swapper *w, const struct task *a, const struct task *b)
{
    return a->micro == b->micro && (w->wishes->swap != SWAP_LAYER || a->layer == b->layer);
}

static struct turn *list_turns(const struct swapper *w, const struct device *d, int *n)
{
    struct turn *turns = allocate((size_t)w->survey->n + 1, sizeof *turns), *last = NULL;
    for (int i = 0; i < w->survey->n; i++) {
        const struct task *t = w->survey->task[i];
        if (t->lane != d->lane[LANE_COMPUTE] || (w->wishes->swap == SWAP_LAYER ? t->layer : t->micro) < 0)
            continue;
        if (!last || last->task->role != t->role || !same_turn(w, last->task, t)) {
            last = last ? last + 1 : turns;
            last->task = t, last->first = i;
        }
        last->last = i;
    }
    *n = last ? (int)(last - turns) + 1 : 0;
    return turns;
}

/* What a forward has made leaves during the turn behind it, and comes back during the last backward before its own;
 * where there is none between, during the turn before. */
static bool place_by_turn(const struct swapper *w, const struct candidate *c, const struct turn *turns, int n,
                          struct spot *spot)
{
    const struct task *maker = w->survey->task[c->maker];
    const struct gap *g = &w->survey->gaps[c->first];
    int made = 0, own;
    while (made < n && turns[made].last < c->maker)
        made++;
    if (made == n || turns[made].first > c->maker || maker->role != ROLE_FORWARD)
        return false;
    for (own = made + 1; own < n && turns[own].first < g->behind; own++)
        if (turns[own].task->role == ROLE_BACKWARD && same_turn(w, turns[own].task, maker))
            break;
    int back = own - 1;
    while (back > made && turns[back].task->role != ROLE_BACKWARD)
        back--;
    back = back > made ? back : own - 1;
    *spot = (struct spot){MAX(turns[made + 1].last, g->before), MIN(turns[back].first, g->behind)};
    return back > made && spot->in > spot->out;
}

/* State comes right before it is used, during what is computed before that; and leaves when it has been. */
static void place_state(const struct survey *v, const struct candidate *c, struct spot *spots)
{
    for (size_t g = c->first; g < c->first + c->n; g++) {
        const struct gap *gap = &v->gaps[g];
        int in = gap->behind;
        for (int i = gap->behind - 1; i > gap->before && i >= 0; i--)
            if (v->task[i]->lane == c->device->lane[LANE_COMPUTE]) {
                if (in < gap->behind &&
                    (v->task[i]->layer != v->task[in]->layer || v->task[i]->role != v->task[in]->role))
                    break;
                in = i;
            }
        spots[g] = (struct spot){gap->before, gap->behind == v->n ? v->n : in};
    }
}

static bool choose_fixed(struct swapper *w)
{
    const struct survey *v = w->survey;
    bool any = false;
    for (int d = 0; d < v->step->pool->machine->n_devices; d++) {
        int n;
        struct turn *turns = list_turns(w, &v->step->pool->machine->device[d], &n);
        for (size_t i = 0; i < v->n_candidates; i++) {
            const struct candidate *c = &v->candidates[i];
            if (c->device->index != d)
                continue;
            if (c->tensor->persistent)
                place_state(v, c, w->plan.spot);
            if (c->tensor->persistent || place_by_turn(w, c, turns, n, &w->plan.spot[c->first]))
                w->plan.fate[i] = SWAP, any = true;
        }
        free(turns);
    }
    return any;
}

static bool run_fixed(struct swapper *w, struct pass_report *r)
{
    if (!choose_fixed(w)) {
        w->smallest = least_plan(&w->planner)->need;
        return decline(w, r, "no data of that class waits for another layer or micro-batch");
    }
    try_within(&w->planner, &w->plan, NULL, INFINITY);
    w->smallest = w->plan.need;
    if (w->plan.excess > 0)
        refuse(w, w->wishes->swap == SWAP_LAYER ? "--swap layer" : "--swap microbatch");
    carry_out(w, r);
    close_swapper(w);
    return true;
}

bool run_swap(struct step *s, const struct costs *c, const struct wishes *w, struct pass_report *r)
{
    bool planned = w->swap == SWAP_AUTO;
    struct swapper *x = open_swapper(s, c, w, w->swap_what, true, planned);
    return planned ? run_planner(x, "--swap auto", true, r) : run_fixed(x, r);
}
