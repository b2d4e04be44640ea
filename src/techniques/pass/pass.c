/* pass.c - the passes that folders bring along, and running them in their order. */
#include "pass.h"
#include "trainer/base/module.h"
#include "trainer/base/table.h"

#include <math.h>

ORDER_POINTERS(by_place, struct pass, COMPARE(a->place, b->place))

const struct pass *const *all_passes(size_t *n)
{
    static const struct pass **all;
    static size_t n_all;
    if (!all) {
        all = allocate(n_modules, sizeof *all);
        for (size_t i = 0; i < n_modules; i++)
            if (modules[i]->pass)
                all[n_all++] = modules[i]->pass;
        SORT(all, n_all, by_place);
    }
    *n = n_all;
    return all;
}

const struct pass *find_pass(const char *name)
{
    size_t n;
    const struct pass *const *all = all_passes(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}

typedef bool trait(const struct pass *p, const struct pass_options *w);
static bool sends(const struct pass *p, const struct pass_options *w) { return p->sends_copies && p->wanted(w); }
static bool gathers(const struct pass *p, const struct pass_options *w)
{
    (void)w; /* whether it is wanted or not */
    return p->gathers;
}
static bool reserves(const struct pass *p, const struct pass_options *w) { return p->reserve && p->wanted(w); }
static bool changes(const struct pass *p, const struct pass_options *w) { return p->may_change && p->may_change(w); }

static bool somebody(trait *has, const struct pass_options *w)
{
    size_t n;
    const struct pass *const *all = all_passes(&n);
    for (size_t i = 0; i < n; i++)
        if (has(all[i], w))
            return true;
    return false;
}

bool somebody_sends(const struct pass_options *w) { return somebody(sends, w); }
bool somebody_gathers(void) { return somebody(gathers, NULL); }
bool plan_may_change(const struct pass_options *w) { return somebody(changes, w); }

char *pass_names(void)
{
    size_t n;
    const struct pass *const *all = all_passes(&n);
    char *names = NULL;
    for (size_t i = 0; i < n; i++)
        append_text(&names, "%s%s", i ? ", " : "", all[i]->name);
    return names;
}

/* ---- budgets that are too small --------------------------------------------------------------------------------- */

/* --device-mem is one number for all devices. */
char *raise_budgets(struct machine *m, const struct device *had, const struct forecast *f, const char *option)
{
    const struct device *d = had;
    size_t most = 0;
    while (!d->is_host && f->need[d->index] <= d->budget)
        d++;
    const struct task *t = f->task[f->at[d->index]];
    char *shortage = format_string("%s: device %s: task %s%s does not fit in the budget of %s", option, d->id, t->name,
                                   layer_and_micro((char[64]){0}, t), format_budget((char[128]){0}, d));
    for (int i = 0; i < m->n_devices; i++)
        most = MAX(most, f->need[i]);
    for (struct device *x = m->device; x <= m->host; x++) {
        size_t budget = MAX(x->budget, x->by_hand || x->is_host ? f->need[x->index] : most);
        x->max_allocation = x->by_hand && x->max_allocation == x->budget ? budget : x->max_allocation;
        x->budget = budget;
    }
    return shortage;
}

_Noreturn void refuse_budgets(const struct machine *m, const struct device *had, const char *shortage, bool sure)
{
    char *work = NULL;
    const struct device *first = NULL; /* that needs more */
    for (const struct device *d = m->device; d <= m->host; d++) {
        if (d->budget == had[d->index].budget || (first && !d->by_hand && !d->is_host))
            continue;
        first = first ? first : d;
        append_text(&work, "%s%zu bytes (%s) for %s", d == first ? "" : ", ", d->budget,
                    format_bytes((char[32]){0}, (double)d->budget),
                    d->by_hand   ? d->id
                    : d->is_host ? "the host (--host-mem)"
                                 : "each device");
    }
    fail(EXIT_USAGE, "%s; %s %s: use a larger %s%s, or %s", shortage, work,
         sure ? "work" : "are needed, or more where --overlap then chooses anew", first->by_hand ? "memory= or " : "",
         first->is_host ? "--host-mem" : "--device-mem",
         first->by_hand ? "smaller tensors" : "--recompute, --swap, --swap-what, a smaller --micro-batch or --seq-len");
}

_Noreturn void refuse_budget(struct machine *m, const struct forecast *f, const char *option, bool sure)
{
    struct device *had = copy_bytes(m->device, ((size_t)m->n_devices + 1) * sizeof *had);
    if (f->why_not) /* whatever the budget */
        must(f->why_not);
    refuse_budgets(m, had, raise_budgets(m, had, f, option), sure);
}

/* ---- reports ------------------------------------------------------------------------------------------------------
 */

json_t *milliseconds(double seconds) { return number_json(1e3 * seconds); }

void report_ms(struct pass_report *r, const char *key, const char *what, double seconds)
{
    if (!r->fields)
        r->fields = json_object();
    if (key)
        json_object_set_new(r->fields, key, milliseconds(seconds));
    if (!what || isnan(seconds))
        return;
    append_text(&r->numbers, r->numbers ? ", " : "");
    append_text(&r->numbers, isfinite(seconds) ? "%s %.3f ms" : "%s does not fit", what, 1e3 * seconds);
}

static void append_change(char **text, const char *what, const char *now, const char *was)
{
    append_text(text, "%s %s", what, now);
    append_text(text, strcmp(now, was) == 0 ? " as before" : " instead of %s", was);
}

/* A list as it is before or behind a pass: bytes and time of one and the same run, where it is simulated. */
struct state_of_list {
    struct forecast f;
    size_t *held; /* by device: the most bytes at a time */
};

static void take_peaks(void *held, const struct simulation *sim) { *(size_t **)held = simulated_peaks(sim); }

/* A run may hold more than the list does in its order, since lanes run ahead of it: copies that come back early, say.
 * It never needs less, since addresses are given in that order. */
static struct state_of_list look_at_list(const struct step *s, const struct costs *c)
{
    size_t *peaks = NULL;
    struct state_of_list l = {.f = try_list(s, c, INFINITY, take_peaks, &peaks)};
    size_t n = (size_t)s->pool->machine->n_devices + 1;
    l.held = copy_bytes(l.f.high, n * sizeof *l.held);
    for (size_t d = 0; peaks && d < n; d++)
        l.held[d] = MAX(l.held[d], peaks[d]);
    free(peaks);
    return l;
}

static void forget_list(struct state_of_list *l)
{
    free_forecast(&l->f);
    free(l->held);
}

/* What the pass comes to: memory of the device that was fullest before it, and the step's time. */
static char *describe_gain(const struct machine *m, const struct state_of_list *had, const struct state_of_list *has)
{
    char now[32], was[32], *text = NULL;
    const struct forecast *before = &had->f, *after = &has->f;
    int fullest = 0;
    for (int d = 1; d <= m->n_devices; d++)
        fullest = had->held[d] > had->held[fullest] ? d : fullest;
    append_change(&text, JOINED(m->device[fullest].id, " holds at most"), format_bytes(now, (double)has->held[fullest]),
                  format_bytes(was, (double)had->held[fullest]));
    if (isnan(before->period) || isnan(after->period))
        return text;
    snprintf(now, sizeof now, "%.3f ms", 1e3 * after->period);
    snprintf(was, sizeof was, "%.3f ms", 1e3 * before->period);
    append_change(&text, ", a step takes", now, was);
    return text;
}

void free_reports(struct pass_report *reports, size_t n)
{
    for (struct pass_report *r = reports; r < reports + n; r++) {
        free(r->reason), free(r->numbers), free(r->gain);
        json_decref(r->fields);
        free_forecast(&r->after);
    }
    free(reports);
}

void print_reports(FILE *out, const struct pass_report *reports, size_t n)
{
    for (const struct pass_report *r = reports; r < reports + n; r++) {
        fprintf(out, "pass %s%s: %s\n", r->pass->name, r->declined ? " declines" : "", r->reason);
        if (r->numbers)
            fprintf(out, "    %s\n", r->numbers);
        if (r->gain)
            fprintf(out, "    %s\n", r->gain);
    }
}

json_t *reports_json(const struct pass_report *reports, size_t n)
{
    json_t *list = json_array();
    for (const struct pass_report *r = reports; r < reports + n; r++) {
        json_t *entry =
            json_pack("{s:s, s:b, s:s}", "pass", r->pass->name, "declined", r->declined, "reason", r->reason);
        json_object_update(entry, r->fields);
        json_array_append_new(list, entry);
    }
    return list;
}

/* ---- room for what is to come ------------------------------------------------------------------------------------ */

size_t reserve_room(struct step *s, const struct pass_options *w)
{
    size_t first = s->pool->n, n;
    const struct pass *const *all = all_passes(&n);
    for (size_t i = 0; i < n; i++)
        if (reserves(all[i], w))
            all[i]->reserve(s, w);
    return first;
}

void end_room(struct step *s, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        s->pool->tensors[i]->persistent = false; /* nobody touches it, and so it has no bytes any more */
}

/* ---- running them -------------------------------------------------------------------------------------------------
 */

/* With the bytes that later passes will add. */
static struct state_of_list look_with_room(struct step *s, const struct costs *c, const struct pass_options *w)
{
    size_t first = reserve_room(s, w), end = s->pool->n;
    struct state_of_list l = look_at_list(s, c);
    end_room(s, first, end);
    return l;
}

struct pass_report *run_passes(struct step *s, const struct costs *c, const struct pass_options *w, const char *after,
                               size_t *n)
{
    size_t n_passes;
    const struct pass *const *all = all_passes(&n_passes);
    struct pass_report *reports = allocate(n_passes, sizeof *reports);
    struct state_of_list before = {.held = NULL}; /* the list as the next pass finds it */
    const bool grows = somebody(reserves, w);
    size_t first = 0, end = 0; /* the tensors that keep room */
    bool kept = false;
    *n = 0;
    for (size_t i = 0; i < n_passes; i++) {
        const struct pass *p = all[i];
        const bool wants_it_kept = !p->reserve; /* else it is for this pass */
        if (grows && !p->own_room && kept != wants_it_kept) {
            end_room(s, first, end);
            first = wants_it_kept ? reserve_room(s, w) : s->pool->n;
            end = s->pool->n;
            kept = wants_it_kept;
            if (before.held)
                forget_list(&before);
            before = (struct state_of_list){.held = NULL};
        }
        if (p->wanted(w)) {
            struct pass_report *r = &reports[(*n)++];
            if (!before.held)
                before = p->own_room ? look_with_room(s, c, w) : look_at_list(s, c);
            r->pass = p;
            r->declined = !p->run(s, c, w, r);
            if (!r->declined) {
                struct state_of_list now = look_at_list(s, c);
                r->gain = describe_gain(s->pool->machine, &before, &now);
                forget_list(&before);
                before = now;
            }
        }
        if (after && strcmp(p->name, after) == 0) {
            if (!p->wanted(w))
                warn("--after %s: this pass is not wanted here, nor are those behind it shown", after);
            break;
        }
    }
    end_room(s, first, end);
    if (w->gather && !after && before.held && before.f.excess > 0) /* overlap left it to the passes behind */
        refuse_budget(s->pool->machine, &before.f, "--zero 3", !plan_may_change(w));
    if (before.held)
        forget_list(&before);
    return reports;
}

void run_on_other_list(struct step *s, const struct costs *c, const struct pass_options *w)
{
    size_t n;
    const struct pass *const *all = all_passes(&n);
    for (size_t i = 0; i < n; i++) {
        struct pass_report report = {0};
        if (all[i]->every_list && all[i]->wanted(w))
            all[i]->run(s, c, w, &report);
        free(report.reason);
    }
}
