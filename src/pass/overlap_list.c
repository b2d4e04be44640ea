/* overlap_list.c - finds the updates that can move to the CPU, and takes their times and bytes. */
#include "overlap.h"

#include <math.h>

/* ---- which updates can move -------------------------------------------------------------------------------------- */

/* Adam's state has one home: no other layer's task may touch it. */
static bool is_its_own(const struct step *s, const struct task *t, const struct tensor *x)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->task[i]->layer != t->layer && touches_bytes(s->task[i], x->root, ACCESS_BOTH))
            return false;
    return true;
}

static bool can_move(const struct step *s, const struct task *t)
{
    if (t->role != ROLE_UPDATE || t->lane->kind != LANE_COMPUTE || (t->host_seconds < 0 && !t->host_run) ||
        !parameters_of(t))
        return false;
    for (int i = 0; i < t->n_access; i++) {
        const struct access *a = &t->access[i];
        bool state = a->tensor->class == MEM_OPTIMIZER;
        if ((a->mode & ACCESS_WRITE) && !state && a->tensor->class != MEM_PARAMETERS)
            return false;
        if (state && !is_its_own(s, t, a->tensor))
            return false;
    }
    return true;
}

static struct offload new_update(const struct task *t, size_t position)
{
    struct offload u = {.layer = t->layer, .first = position};
    if (t->layer < 0)
        snprintf(u.name, sizeof u.name, "other %s", parameters_of(t)->root->name);
    else
        snprintf(u.name, sizeof u.name, "layer %d", t->layer);
    return u;
}

/* The update that such a task is of; t->n: a new one. */
static size_t find_update(const struct timing *t, const struct task *task)
{
    struct offload u = new_update(task, 0);
    size_t i = 0;
    while (i < t->n && strcmp(t->update[i].name, u.name) != 0)
        i++;
    return i;
}

/* ---- times and bytes --------------------------------------------------------------------------------------------- */

/* The time of a device's compute lane when the list comes to each position, updates that can move left out; [n] is its
 * end. */
static double *read_clock(const struct offloads *o, const struct costs *c, const struct lane *lane)
{
    const struct step *s = o->step;
    double *clock = allocate(s->n + 1, sizeof *clock);
    for (size_t i = 0; i < s->n; i++) {
        bool counts = s->task[i]->lane == lane && o->update_at[i] == NOWHERE;
        clock[i + 1] = clock[i] + (counts ? seconds_alone(c, s->task[i]) / MAX(s->task[i]->when.every, 1u) : 0);
    }
    return clock;
}

/* The last task that holds the update at position i, but its gradients' makers; or NOWHERE. */
static int find_gate(const struct step *s, size_t i)
{
    const struct task *t = s->task[i];
    for (size_t k = i; k-- > 0;) {
        if (t->gated && is_gate(s, s->task[k]))
            return (int)k;
        for (int a = 0; s->task[k]->role == ROLE_NORM && a < t->n_access; a++)
            if ((t->access[a].mode & ACCESS_READ) && t->access[a].tensor->class != MEM_GRADIENTS &&
                touches_bytes(s->task[k], t->access[a].tensor, ACCESS_WRITE))
                return (int)k;
    }
    return NOWHERE;
}

/* The next step's first reader of what the update at position i makes. */
static size_t first_reader(const struct offloads *o, const struct tensor *x, size_t i)
{
    for (size_t r = 0; r < i; r++)
        if (o->update_at[r] == NOWHERE && touches_bytes(o->step->task[r], x, ACCESS_READ))
            return r;
    return o->step->n;
}

/* One task of update u. */
static void read_task(const struct offloads *o, const double *clock, const struct costs *c, size_t i, struct offload *u)
{
    const struct step *s = o->step;
    const struct task *t = s->task[i];
    bool counts = t->lane == s->task[u->first]->lane;
    u->gate = fmax(u->gate, clock[find_gate(s, i) + 1]);
    u->device += counts ? seconds_alone(c, t) : 0;
    for (int a = 0; a < t->n_access; a++) {
        const struct access *x = &t->access[a];
        if (is_on_device(x, MEM_GRADIENTS)) {
            int maker = find_maker(s, i, x->tensor);
            u->release = fmax(u->release, clock[maker + 1]);
            for (int k = 0; k < maker; k++)
                u->behind_updates |= o->update_at[k] != NOWHERE;
        }
        if (is_on_device(x, MEM_PARAMETERS) && (x->mode & ACCESS_WRITE))
            u->need = fmin(u->need, clock[first_reader(o, x->tensor, i)]);
        if (is_on_device(x, MEM_OPTIMIZER) && (x->mode & ACCESS_WRITE) && counts)
            u->device_bytes += (double)x->tensor->bytes;
    }
}

static void read_copy(struct transfer *x, double seconds)
{
    x->least = x->all > 0 ? fmin(x->least, seconds) : seconds;
    x->all += seconds;
}

/* What moving the update would add to the list. */
static void read_moved(const struct offloads *o, const struct costs *c, struct offload *u)
{
    struct step *s = o->step;
    size_t before = s->n, tensors = s->pool->n;
    struct edit *e = open_edit(s);
    bool on_cpu[MOST_UPDATES] = {false};
    on_cpu[u - o->timing.update] = true;
    move_updates(o, e, on_cpu, ORDER_RELEASE, false);
    for (size_t i = before; i < s->n; i++) {
        const struct task *t = s->task[i];
        if (t->copy)
            read_copy(t->access[0].tensor->device->is_host ? &u->down : &u->up, seconds_alone(c, t));
        else if (t->lane->device->is_host) /* not a piece of what has moved */
            u->host += seconds_alone(c, t);
    }
    u->host /= o->lanes;
    for (size_t i = tensors; i < s->pool->n; i++)
        if (s->pool->tensors[i]->root == s->pool->tensors[i])
            u->host_bytes += (double)s->pool->tensors[i]->bytes;
    u->host_bytes += u->device_bytes;
    undo(e);
}

static double room(const struct offloads *o, const struct costs *c, const struct device *d, bool all_on_cpu)
{
    bool on_cpu[MOST_UPDATES];
    memset(on_cpu, all_on_cpu, sizeof on_cpu);
    struct forecast f = try_updates(o, c, on_cpu, ORDER_RELEASE, false);
    double left = (double)d->budget - (double)f.high[d->index];
    free_forecast(&f);
    return left;
}

ORDER(by_release, struct offload, BY(a->release, b->release, COMPARE(a->first, b->first)))

static void read_times(struct offloads *o, const struct costs *c)
{
    struct timing *t = &o->timing;
    struct step *s = o->step;
    for (size_t g = 0; g < t->n; g++) {
        struct offload *u = &t->update[g];
        double *clock = read_clock(o, c, s->task[u->first]->lane);
        u->need = clock[s->n];
        t->fixed = fmax(t->fixed, u->need);
        for (size_t i = 0; i < s->n; i++)
            if (o->update_at[i] == (int)g)
                read_task(o, clock, c, i, u);
        read_moved(o, c, u);
        o->gated |= u->gate > 0;
        free(clock);
    }
    t->device_room = o->one_lane ? room(o, c, s->task[t->update[0].first]->lane->device, true) : INFINITY;
    t->host_room = room(o, c, s->pool->machine->host, false);
    SORT(t->update, t->n, by_release);
    for (size_t i = 0; i < s->n; i++)
        if (o->update_at[i] != NOWHERE)
            o->update_at[i] = (int)find_update(t, s->task[i]);
}

struct offloads *find_offloads(struct step *s, const struct costs *c)
{
    struct offloads *o = allocate(1, sizeof *o);
    struct timing *t = &o->timing;
    size_t cap = 0;
    *o = (struct offloads){.step = s, .one_lane = true, .lanes = MAX((int)spare_cores(s->pool->machine), 1)};
    o->update_at = allocate(s->n, sizeof *o->update_at);
    for (size_t i = 0; i < s->n; i++) {
        const struct task *task = s->task[i];
        o->layers = MAX(o->layers, task->layer + 1);
        o->one_lane &= task->lane->kind != LANE_COMPUTE || !is_conditional(task);
        o->update_at[i] = can_move(s, task) ? (int)find_update(t, task) : NOWHERE;
        if (o->update_at[i] == MOST_UPDATES)
            o->update_at[i] = NOWHERE;
        else if (o->update_at[i] == (int)t->n)
            *APPEND(t->update, t->n, cap) = new_update(task, i);
    }
    for (size_t g = 0; g < t->n; g++)
        o->one_lane &= s->task[t->update[g].first]->lane == s->task[t->update[0].first]->lane;
    o->timed = t->n > 0 && has_times(s, c);
    if (o->timed)
        read_times(o, c);
    return o;
}

void free_offloads(struct offloads *o)
{
    free(o->timing.update), free(o->update_at);
    free(o);
}

double serial_seconds(const struct offloads *o, const struct costs *c)
{
    struct step *s = o->step;
    bool on_cpu[MOST_UPDATES];
    double sum = 0;
    memset(on_cpu, true, sizeof on_cpu);
    struct edit *e = open_edit(s);
    move_updates(o, e, on_cpu, ORDER_RELEASE, false);
    for (const struct task *t = s->head->behind; t != s->head; t = t->behind)
        sum += seconds_alone(c, t) / t->when.every;
    undo(e);
    return sum;
}
