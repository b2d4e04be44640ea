/* pass.c - the table of passes, and running them in its order. */
#include "pass.h"
#include "../base/table.h"

#include <math.h>

const struct pass passes[] = {
    {"overlap", wants_overlap, run_overlap, {"--overlap all-cpu"}},
    {"recompute", wants_recompute, run_recompute, {"--recompute selective", "--recompute full"}},
    {"gather", wants_gather, run_gather, {"--zero 3"}},
    {"broadcast",
     wants_broadcast,
     run_broadcast,
     {"--broadcast-queues 3 --broadcast-main compute",
      "--broadcast-queues 2 --broadcast-slices 5 --broadcast-deal random"}},
    {"swap", wants_swap, run_swap, {"--swap layer"}},
    {"snapshot", wants_snapshot, run_snapshot, {NULL}},
};
const size_t n_passes = COUNT(passes);

enum overlap overlap_named(const char *word)
{
    static const char *const name[OVERLAPS] = {[OVERLAP_OFF] = "off",
                                               [OVERLAP_PLAN] = "plan",
                                               [OVERLAP_LOCAL] = "local",
                                               [OVERLAP_ALL_CPU] = "all-cpu",
                                               [OVERLAP_ALL_DEVICE] = "all-device"};
    enum overlap o = OVERLAP_OFF;
    while (o + 1 < OVERLAPS && strcmp(name[o], word) != 0)
        o++;
    return o;
}

const struct pass *find_pass(const char *name)
{
    for (size_t i = 0; i < n_passes; i++)
        if (strcmp(passes[i].name, name) == 0)
            return &passes[i];
    return NULL;
}

char *pass_names(void)
{
    char *names = NULL;
    for (size_t i = 0; i < n_passes; i++)
        append_text(&names, "%s%s", i ? ", " : "", passes[i].name);
    return names;
}

_Noreturn void refuse_budgets(const struct step *s, const struct costs *c, const char *what)
{
    const struct machine *m = s->pool->machine;
    struct forecast f = try_step(s, c);
    char *text = copy_string(what);
    for (int d = 0; d <= m->n_devices; d++)
        if (f.need[d] > m->device[d].budget)
            append_text(&text, "%s device %s needs %zu bytes, the budget is %zu", strcmp(text, what) ? ";" : ":",
                        m->device[d].id, f.need[d], m->device[d].budget);
    fail(EXIT_USAGE, "%s; raise %s", text,
         m->host->by_hand || m->device[0].by_hand ? "memory=" : "--device-mem or --host-mem");
}

static const struct device *fullest(const struct machine *m, const struct forecast *f)
{
    const struct device *best = m->device;
    for (int d = 1; d <= m->n_devices; d++)
        if (f->high[d] > f->high[best->index])
            best = &m->device[d];
    return best;
}

/* What is printed alike is not printed twice. */
static void append_change(char **text, const char *now, const char *was)
{
    if (strcmp(now, was) == 0)
        append_text(text, "%s as before", now);
    else
        append_text(text, "%s instead of %s", now, was);
}

static char *describe_gain(const struct machine *m, const struct forecast *before, const struct forecast *after)
{
    char now[32], was[32];
    const struct device *d = fullest(m, before);
    char *text = format_string("%s holds at most ", d->id);
    append_change(&text, format_bytes(now, (double)after->high[d->index]),
                  format_bytes(was, (double)before->high[d->index]));
    if (isnan(before->period) || isnan(after->period))
        return text;
    snprintf(now, sizeof now, "%.3f ms", 1e3 * after->period),
        snprintf(was, sizeof was, "%.3f ms", 1e3 * before->period);
    append_text(&text, ", a step takes ");
    append_change(&text, now, was);
    return text;
}

/* now: what the list is forecast to do, before the pass and then behind it. */
static void run_pass(const struct pass *p, struct step *s, const struct costs *c, const struct pass_options *w,
                     struct forecast *now, struct pass_report *r)
{
    r->pass = p;
    r->declined = !p->run(s, c, w, r);
    if (r->declined)
        return;
    struct forecast before = *now;
    *now = r->after.n ? r->after : try_step(s, c);
    r->after = (struct forecast){.n = 0};
    r->gain = describe_gain(s->pool->machine, &before, now);
    free_forecast(&before);
}

struct pass_report *run_passes(struct step *s, const struct costs *c, const struct pass_options *w, const char *after,
                               size_t *n)
{
    struct pass_report *reports = allocate(n_passes, sizeof *reports);
    struct forecast now;
    *n = 0;
    for (size_t i = 0; i < n_passes; i++) {
        const struct pass *p = &passes[i];
        if (p->wanted(w)) {
            if (*n == 0)
                now = try_step(s, c);
            run_pass(p, s, c, w, &now, &reports[(*n)++]);
        }
        if (after && strcmp(p->name, after) == 0) {
            if (!p->wanted(w))
                warn("--after %s: this pass is not wanted here, nor are those behind it shown", after);
            break;
        }
    }
    if (*n)
        free_forecast(&now);
    return reports;
}

void free_reports(struct pass_report *reports, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(reports[i].reason), free(reports[i].gain), json_decref(reports[i].fields),
            free_forecast(&reports[i].after);
    free(reports);
}

void print_reports(FILE *out, const struct pass_report *reports, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        fprintf(out, "pass %s%s: %s\n", reports[i].pass->name, reports[i].declined ? " declines" : "",
                reports[i].reason);
        if (reports[i].gain)
            fprintf(out, "    %s\n", reports[i].gain);
    }
}

json_t *milliseconds(double seconds) { return number_json(1e3 * seconds); }

json_t *reports_json(const struct pass_report *reports, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        const struct pass_report *r = &reports[i];
        json_t *entry =
            json_pack("{s:s, s:b, s:s}", "pass", r->pass->name, "declined", r->declined, "reason", r->reason);
        json_object_update(entry, r->fields);
        json_array_append_new(list, entry);
    }
    return list;
}
