/* overlap_list.c - finds the updates that can move to the CPU, and takes their times and bytes. */
#include "overlap_list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- which updates can move -------------------------------------------------------------------------------------- */

static const struct tensor *parameters_of(const struct task *t)
{
    for (int i = 0; i < t->n_access; i++)
        if ((t->access[i].mode & ACCESS_WRITE) && is_on_device(&t->access[i], MEM_PARAMETERS))
            return t->access[i].tensor;
    return NULL;
}

/* Adam's state has one home: no other layer's task may touch it. */
static bool is_its_own(const struct step *s, const struct task *t, const struct tensor *x)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->task[i]->layer != t->layer && touches(s->task[i], x->root, ACCESS_BOTH))
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

static struct group *group_of(struct offloads *o, const struct task *t)
{
    const char *name = parameters_of(t)->root->name;
    for (size_t i = 0; i < o->n; i++)
        if (o->group[i].layer == t->layer && (t->layer >= 0 || strcmp(o->group[i].name, name) == 0))
            return &o->group[i];
    struct group *g = APPEND(o->group, o->n, o->cap);
    *g = (struct group){.layer = t->layer, .name = name};
    return g;
}

static void find_groups(struct offloads *o)
{
    const struct step *s = o->step;
    for (size_t i = 0; i < s->n; i++) {
        o->layers = MAX(o->layers, s->task[i]->layer + 1);
        if (!can_move(s, s->task[i]))
            continue;
        struct group *g = group_of(o, s->task[i]);
        *APPEND(g->task, g->n, g->cap) = i;
        o->n_tasks++;
    }
}

/* ---- times and bytes --------------------------------------------------------------------------------------------- */

struct clock { /* of a device's compute lane in list order, updates that can move left out */
    const struct lane *lane;
    double *after; /* by position: its time behind the task */
    bool *moves;   /* by position */
};

static struct clock read_clock(const struct offloads *o, const struct costs *c, const struct group *group)
{
    const struct step *s = o->step;
    struct clock k = {s->task[group->task[0]]->lane, allocate(s->n, sizeof(double)), allocate(s->n, sizeof(bool))};
    double now = 0;
    for (size_t g = 0; g < o->n; g++)
        for (size_t i = 0; i < o->group[g].n; i++)
            k.moves[o->group[g].task[i]] = true;
    for (size_t i = 0; i < s->n; i++) {
        if (s->task[i]->lane == k.lane && !k.moves[i])
            now += seconds_alone(c, s->task[i]);
        k.after[i] = now;
    }
    return k;
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
                touches(s->task[k], t->access[a].tensor, ACCESS_WRITE))
                return (int)k;
    }
    return NOWHERE;
}

static double first_reader(const struct offloads *o, const struct clock *k, const struct tensor *x, size_t i)
{
    for (size_t r = 0; r < i; r++)
        if (!k->moves[r] && touches(o->step->task[r], x, ACCESS_READ))
            return r ? k->after[r - 1] : 0;
    return k->after[o->step->n - 1];
}

static bool stands_behind_updates(const struct clock *k, size_t maker)
{
    for (size_t i = 0; i < maker; i++)
        if (k->moves[i])
            return true;
    return false;
}

static void read_update(const struct offloads *o, const struct clock *k, const struct costs *c, size_t i,
                        struct offload *u)
{
    const struct task *t = o->step->task[i];
    int gate = find_gate(o->step, i);
    u->gate = fmax(u->gate, gate == NOWHERE ? 0 : k->after[gate]);
    u->device += t->lane == k->lane ? seconds_alone(c, t) : 0;
    for (int a = 0; a < t->n_access; a++) {
        const struct access *x = &t->access[a];
        int maker = is_on_device(x, MEM_GRADIENTS) ? find_maker(o->step, i, x->tensor) : NOWHERE;
        if (maker != NOWHERE) {
            u->release = fmax(u->release, k->after[maker]);
            u->behind_updates |= stands_behind_updates(k, (size_t)maker);
        }
        if (is_on_device(x, MEM_PARAMETERS) && (x->mode & ACCESS_WRITE))
            u->need = fmin(u->need, first_reader(o, k, x->tensor, i));
        if (is_on_device(x, MEM_OPTIMIZER) && (x->mode & ACCESS_WRITE) && t->lane == k->lane)
            u->device_bytes += (double)x->tensor->bytes;
    }
}

/* What moving the group would add to the list. */
static void read_moved(struct offloads *o, const struct costs *c, size_t group, struct offload *u)
{
    struct step *s = o->step;
    size_t before = s->n, tensors = s->pool->n;
    struct edit *e = open_edit(s);
    bool *on_cpu = allocate(o->n, sizeof *on_cpu);
    on_cpu[group] = true;
    move_updates(o, e, on_cpu, ORDER_RELEASE, false);
    for (size_t i = before; i < s->n; i++) {
        const struct task *t = s->task[i];
        double *part = !t->copy ? &u->host : t->access[0].tensor->device->is_host ? &u->down : &u->up;
        *part += seconds_alone(c, t);
    }
    u->host /= o->lanes;
    for (size_t i = tensors; i < s->pool->n; i++)
        if (s->pool->tensors[i]->root == s->pool->tensors[i])
            u->host_bytes += (double)s->pool->tensors[i]->bytes;
    u->host_bytes += u->device_bytes;
    undo(e);
    free(on_cpu);
}

static double room(struct offloads *o, const struct costs *c, const struct device *d, bool all_on_cpu)
{
    bool *on_cpu = allocate(o->n, sizeof *on_cpu);
    memset(on_cpu, all_on_cpu, o->n);
    struct edit *e = open_edit(o->step);
    move_updates(o, e, on_cpu, ORDER_RELEASE, false);
    struct forecast f = try_step(o->step, c);
    undo(e);
    double left = (double)d->budget - (double)f.high[d->index];
    free_forecast(&f);
    free(on_cpu);
    return left;
}

/* Is it one device that all of them concern first? */
static bool are_on_one_lane(const struct offloads *o)
{
    for (size_t g = 1; g < o->n; g++)
        if (o->step->task[o->group[g].task[0]]->lane != o->step->task[o->group[0].task[0]]->lane)
            return false;
    return o->n > 0;
}

struct ranked {
    struct group group;
    struct offload update;
};

static int by_release(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    double i = x->update.release, k = y->update.release;
    if (i != k)
        return i < k ? -1 : 1;
    return COMPARE(x->group.task[0], y->group.task[0]);
}

static void sort_groups(struct offloads *o)
{
    struct ranked *all = allocate(o->n, sizeof *all);
    for (size_t g = 0; g < o->n; g++)
        all[g] = (struct ranked){o->group[g], o->timing.update[g]};
    qsort(all, o->n, sizeof *all, by_release);
    for (size_t g = 0; g < o->n; g++)
        o->group[g] = all[g].group, o->timing.update[g] = all[g].update;
    free(all);
}

static void read_times(struct offloads *o, const struct costs *c)
{
    struct timing *t = &o->timing;
    const struct step *s = o->step;
    for (size_t g = 0; g < o->n; g++) {
        struct clock k = read_clock(o, c, &o->group[g]);
        t->fixed = fmax(t->fixed, k.after[s->n - 1]);
        t->update[g].need = k.after[s->n - 1];
        for (size_t i = 0; i < o->group[g].n; i++)
            read_update(o, &k, c, o->group[g].task[i], &t->update[g]);
        read_moved(o, c, g, &t->update[g]);
        free(k.after), free(k.moves);
    }
    t->device_room = o->one_lane ? room(o, c, s->task[o->group[0].task[0]]->lane->device, true) : INFINITY;
    t->host_room = room(o, c, s->pool->machine->host, false);
    sort_groups(o);
}

struct offloads *find_offloads(struct step *s, const struct costs *c)
{
    struct offloads *o = allocate(1, sizeof *o);
    o->step = s;
    o->lanes = MAX((int)spare_cores(s->pool->machine), 1);
    find_groups(o);
    o->timing = (struct timing){allocate(o->n, sizeof(struct offload)), o->n, 0, 0, 0};
    o->timed = o->n > 0 && has_times(s, c);
    o->one_lane = are_on_one_lane(o);
    if (o->timed)
        read_times(o, c);
    return o;
}

void free_offloads(struct offloads *o)
{
    for (size_t g = 0; g < o->n; g++)
        free(o->group[g].task);
    free(o->group), free(o->timing.update), free(o->moved), free(o->on_host);
    free(o);
}

double serial_seconds(struct offloads *o, const struct costs *c)
{
    struct step *s = o->step;
    bool *on_cpu = allocate(o->n, sizeof *on_cpu);
    double sum = 0;
    memset(on_cpu, true, o->n);
    struct edit *e = open_edit(s);
    move_updates(o, e, on_cpu, ORDER_RELEASE, false);
    for (const struct task *t = s->head->behind; t != s->head; t = t->behind)
        sum += seconds_alone(c, t) / t->when.every;
    undo(e);
    free(on_cpu);
    return sum;
}

bool is_order_new(const struct offloads *o, const bool *on_cpu, enum cpu_order order)
{
    size_t *job = allocate(o->n, sizeof *job), *other = allocate(o->n, sizeof *other), n = 0;
    bool new = o->timed || order == ORDER_RELEASE;
    if (o->timed)
        n = order_updates(&o->timing, on_cpu, order, job);
    for (enum cpu_order before = ORDER_RELEASE; before < order && new; before++) {
        order_updates(&o->timing, on_cpu, before, other);
        new = n &&memcmp(job, other, n * sizeof *job) != 0;
    }
    free(job), free(other);
    return new;
}
