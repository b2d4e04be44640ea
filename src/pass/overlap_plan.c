/* overlap_plan.c - the best place of every update: an exact search over labels, bounds, and two online rules.
 *
 * overlap.h has the formula.  For updates in order of release it is a flow shop of three machines with release times
 * and tails, and the device beside it.  The search goes over the updates once and keeps *labels*: what the choices so
 * far leave behind, six numbers and the bytes.  A label that is worse than another in all of them is dropped, whatever
 * comes later; so few are left, and the best last one is the best of all 2^n choices.
 *
 * The online rules see only what is known when a layer's backward ends.  Here they are asked what they are expected to
 * choose in a step that runs as predicted.
 */
#include "overlap.h"

#include "../base/base.h"

#include <math.h>

/* ---- the formula ------------------------------------------------------------------------------------------------- */

struct machines { /* when each is free */
    double down, cpu, up;
};

static double released(const struct offload *u, double updates) { return u->release + u->behind_updates * updates; }

/* Update u goes to the CPU; returns when its parameters are back. */
static double pass_through(struct machines *m, const struct offload *u, double updates)
{
    m->down = fmax(m->down, released(u, updates)) + u->down.all;
    m->cpu = fmax(fmax(m->cpu, m->down), u->gate) + u->host;
    return m->up = fmax(m->up, m->cpu) + u->up.all;
}

/* When each update's gradients have come down, and how long the device's own updates take. */
static double bring_down(const struct timing *t, const bool *on_cpu, double *there)
{
    double down = 0, updates = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct offload *u = &t->update[i];
        if (on_cpu[i])
            there[i] = down = fmax(down, released(u, updates)) + u->down.all;
        else
            updates += u->device;
    }
    return updates;
}

/* Of the updates that are left: of those that can start by `now`, the one needed first; else the next that can. */
static size_t next_update(const struct timing *t, const double *there, const bool *left, double now)
{
    size_t best = t->n;
    double earliest = INFINITY;
    for (size_t i = 0; i < t->n; i++) {
        double start = fmax(fmax(there[i], t->update[i].gate), now);
        if (!left[i] || start > earliest)
            continue;
        if (best == t->n || start < earliest || t->update[i].need < t->update[best].need)
            best = i;
        earliest = start;
    }
    return best;
}

size_t order_updates(const struct timing *t, const bool *on_cpu, enum cpu_order order, size_t *job)
{
    double there[MOST_UPDATES], now = 0;
    bool left[MOST_UPDATES];
    size_t n = 0;
    bring_down(t, on_cpu, there);
    for (size_t i = 0; i < t->n; i++)
        if ((left[i] = on_cpu[i]))
            job[n++] = i;
    for (size_t k = 0; k < n && order != ORDER_RELEASE; k++) {
        size_t i = job[k] = next_update(t, there, left, order == ORDER_FORWARD ? INFINITY : now);
        now = fmax(fmax(now, there[i]), t->update[i].gate) + t->update[i].host;
        left[i] = false;
    }
    return n;
}

double plan_seconds(const struct timing *t, const bool *on_cpu, enum cpu_order order, bool barrier)
{
    size_t job[MOST_UPDATES], n = order_updates(t, on_cpu, order, job);
    double there[MOST_UPDATES], updates = bring_down(t, on_cpu, there), cpu = 0, up = 0, late = 0;
    for (size_t k = 0; k < n; k++) {
        const struct offload *u = &t->update[job[k]];
        cpu = fmax(fmax(cpu, there[job[k]]), u->gate) + u->host;
        up = fmax(up, cpu) + u->up.all;
        late = fmax(late, up - (barrier ? 0 : u->need));
    }
    return fmax(t->fixed + updates, late);
}

/* ---- the best choice --------------------------------------------------------------------------------------------- */

struct label {
    double updates; /* seconds of those on the device */
    struct machines busy;
    double late;                     /* up_i - need_i so far, at most */
    double device_bytes, host_bytes; /* held */
    int before;                      /* the label that it came from; -1: none */
    bool on_cpu;
};
struct search {
    const struct timing *timing;
    bool barrier;
    struct label *label; /* all; the last ones are those of the update before */
    size_t n, cap, first;
};

static double seconds_of(const struct search *s, const struct label *l)
{
    return fmax(s->timing->fixed + l->updates, l->late);
}

/* Is a no worse than b, whatever comes? */
static bool dominates(const struct label *a, const struct label *b)
{
    return a->updates <= b->updates && a->busy.down <= b->busy.down && a->busy.cpu <= b->busy.cpu &&
           a->busy.up <= b->busy.up && a->late <= b->late && a->device_bytes <= b->device_bytes &&
           a->host_bytes <= b->host_bytes;
}

static void keep_label(struct search *s, const struct label *l)
{
    for (size_t i = s->first; i < s->n; i++)
        if (dominates(&s->label[i], l))
            return;
    size_t n = s->first;
    for (size_t i = s->first; i < s->n; i++)
        if (!dominates(l, &s->label[i]))
            s->label[n++] = s->label[i];
    s->n = n;
    *APPEND(s->label, s->n, s->cap) = *l;
}

/* Both choices for update u behind a label.  A machine that is free before the update's release is as free then. */
static void extend(struct search *s, const struct offload *u, size_t at)
{
    struct label d = s->label[at], c;
    double release = released(u, d.updates);
    d.busy = (struct machines){fmax(d.busy.down, release), fmax(d.busy.cpu, release), fmax(d.busy.up, release)};
    d.before = (int)at;
    c = d;
    c.on_cpu = true;
    c.late = fmax(c.late, pass_through(&c.busy, u, d.updates) - (s->barrier ? 0 : u->need));
    c.host_bytes += u->host_bytes;
    d.on_cpu = false;
    d.updates += u->device;
    d.device_bytes += u->device_bytes;
    if (d.device_bytes <= s->timing->device_room)
        keep_label(s, &d);
    if (c.host_bytes <= s->timing->host_room)
        keep_label(s, &c);
}

double best_choice(const struct timing *t, bool barrier, bool *on_cpu)
{
    struct search s = {.timing = t, .barrier = barrier};
    *APPEND(s.label, s.n, s.cap) = (struct label){.before = -1};
    for (size_t i = 0, begin = 0; i < t->n; i++) {
        size_t end = s.first = s.n;
        for (size_t at = begin; at < end; at++)
            extend(&s, &t->update[i], at);
        begin = end;
    }
    double best = INFINITY;
    size_t at = 0;
    for (size_t i = s.first; i < s.n; i++)
        if (seconds_of(&s, &s.label[i]) < best)
            best = seconds_of(&s, &s.label[at = i]);
    for (size_t i = t->n; isfinite(best) && i-- > 0; at = (size_t)s.label[at].before)
        on_cpu[i] = s.label[at].on_cpu;
    free(s.label);
    return best;
}

/* ---- with a gate ------------------------------------------------------------------------------------------------- */

ORDER(by_need, struct offload, COMPARE(a->need, b->need))

/* They all start at the gate, so no order is better than that in which they are needed, also if they were cut. */
double best_behind_gate(const struct timing *t, bool barrier, bool *on_cpu)
{
    struct offload update[MOST_UPDATES];
    struct timing sorted = *t;
    double gate = INFINITY;
    bool chosen[MOST_UPDATES];
    sorted.update = update;
    for (size_t i = 0; i < t->n; i++)
        gate = fmin(gate, t->update[i].gate);
    for (size_t i = 0; i < t->n; i++) {
        struct offload *u = &update[i];
        *u = t->update[i];
        u->need = (barrier ? 0 : u->need) - u->up.least;
        u->release = u->gate = gate, u->down = u->up = (struct transfer){0, 0}, u->behind_updates = false;
    }
    SORT(update, t->n, by_need);
    double best = best_choice(&sorted, false, chosen);
    for (size_t i = 0; i < t->n; i++)
        for (size_t k = 0; k < t->n; k++)
            if (update[k].first == t->update[i].first)
                on_cpu[i] = chosen[k];
    return best;
}

/* ---- bounds ------------------------------------------------------------------------------------------------------ */

/* Alone on the CPU, with nothing in its way: of its pieces the shortest one comes down first, and one goes up last. */
static double least_late(const struct offload *u)
{
    return fmax(u->release + u->down.least, u->gate) + u->host + u->up.least - u->need;
}

double least_of_choice(const struct timing *t, const bool *on_cpu)
{
    double device = t->fixed, down = 0, host = 0, up = 0, late = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct offload *u = &t->update[i];
        if (on_cpu[i])
            down += u->down.all, host += u->host, up += u->up.all, late = fmax(late, least_late(u));
        else
            device += u->device;
    }
    return fmax(fmax(fmax(device, late), host), fmax(down, up));
}

static int by_ratio(const void *a, const void *b)
{
    const struct offload *x = a, *y = b;
    double i = x->device > 0 ? x->host / x->device : INFINITY, k = y->device > 0 ? y->host / y->device : INFINITY;
    return COMPARE(i, k);
}

/* Updates move to the CPU, the cheapest there first and the last one in part, until it has as much to do as the device.
 */
static double least_balanced(const struct timing *t)
{
    struct offload u[MOST_UPDATES];
    double device = t->fixed, host = 0;
    for (size_t i = 0; i < t->n; i++)
        device += (u[i] = t->update[i]).device;
    SORT(u, t->n, by_ratio);
    for (size_t i = 0; i < t->n && host < device; i++) {
        double share = fmin((device - host) / (u[i].device + u[i].host), 1);
        device -= share * u[i].device, host += share * u[i].host;
    }
    return device;
}

double least_seconds(const struct timing *t)
{
    struct timing roomy = *t;
    roomy.device_room = roomy.host_room = INFINITY;
    bool on_cpu[MOST_UPDATES];
    double least = t->n ? fmax(least_balanced(t), best_behind_gate(&roomy, false, on_cpu)) : t->fixed;
    for (size_t i = 0; i < t->n; i++)
        least = fmax(least, fmin(t->fixed + t->update[i].device, least_late(&t->update[i])));
    return least;
}

/* ---- online rules ------------------------------------------------------------------------------------------------ */

/* What the CPU has still to do at `now` of updates that it was given before; ends: when its work on each ends. */
static double backlog(const struct timing *t, const bool *on_cpu, const double *ends, size_t i, double now)
{
    double sum = 0;
    for (size_t k = 0; k < i; k++)
        if (on_cpu[k])
            sum += fmin(fmax(ends[k] - now, 0), t->update[k].host);
    return sum;
}

/* By how much it would delay the next step, if the device did nothing but its fixed work from now on. */
static double delay(const struct timing *t, struct machines m, const struct offload *u, double updates)
{
    return pass_through(&m, u, updates) - (t->fixed + updates + u->need);
}

void choose_locally(const struct timing *t, bool by_slack, bool *on_cpu)
{
    struct machines busy = {0, 0, 0};
    double updates = 0, device_bytes = 0, host_bytes = 0, ends[MOST_UPDATES];
    for (size_t i = 0; i < t->n; i++) {
        const struct offload *u = &t->update[i];
        double costs = by_slack ? delay(t, busy, u, updates) : backlog(t, on_cpu, ends, i, released(u, updates));
        bool fits = device_bytes + u->device_bytes <= t->device_room;
        on_cpu[i] = host_bytes + u->host_bytes <= t->host_room && (!fits || costs <= u->device);
        if (on_cpu[i]) {
            pass_through(&busy, u, updates);
            ends[i] = busy.cpu;
            host_bytes += u->host_bytes;
        } else {
            updates += u->device;
            device_bytes += u->device_bytes;
        }
    }
}
