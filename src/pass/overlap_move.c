/* overlap_move.c - moving updates to the CPU: the edits of one, and the order of all. */
#include "overlap_list.h"

#include <stdlib.h>
#include <string.h>

/* ---- what a task touches ----------------------------------------------------------------------------------------- */

bool touches(const struct task *t, const struct tensor *x, enum access_mode mode)
{
    for (int i = 0; i < t->n_access; i++)
        if ((t->access[i].mode & mode) && share_bytes(t->access[i].tensor, x))
            return true;
    return false;
}

bool is_on_device(const struct access *a, enum memory_class class)
{
    return a->tensor->class == class && !a->tensor->device->is_host;
}

int find_maker(const struct step *s, size_t i, const struct tensor *x)
{
    while (i-- > 0)
        if (touches(s->task[i], x, ACCESS_WRITE))
            return (int)i;
    return NOWHERE;
}

/* ---- moving one update ------------------------------------------------------------------------------------------- */

/* A copy's own lane, so that it waits for nothing but its like; a list by hand has the lanes that it says. */
static struct lane *copy_lane(const struct step *s, struct device *d, enum lane_kind kind)
{
    enum { OVERLAP_LANE = 9 };
    return d->by_hand ? d->lane[kind] : open_lane(s->pool->machine, d, kind, OVERLAP_LANE);
}

/* Bytes of x, as the task at that position finds them, on the host for one step; they share with nothing, so that
 * nothing waits for the update. */
static struct tensor *bring(struct offloads *o, struct edit *e, struct task *t, size_t position, struct tensor *x)
{
    struct step *s = o->step;
    char *name = format_string("host.%s", x->name);
    struct tensor *here = new_bytes_tensor(s->pool, s->pool->machine->host, x->class, name, x->bytes);
    int maker = find_maker(s, position, x);
    here->apart = APART_ALWAYS;
    if (o->alone && !x->root->persistent)
        set_alone(e, x);
    if (maker == NOWHERE)
        insert_before(e, t);
    else
        insert_behind(e, s->task[maker]);
    s->stamp = (struct stamp){t->layer, -1, ROLE_OTHER};
    add_copy(s, copy_lane(s, x->device, LANE_DOWNLOAD), "overlap.down", here, x);
    free(name);
    return here;
}

/* What many updates read, such as the norm: brought once; or what it was uploaded from. */
static struct tensor *bring_once(struct offloads *o, struct edit *e, struct task *t, size_t position, struct tensor *x)
{
    int maker = find_maker(o->step, position, x);
    const struct task *made = maker == NOWHERE ? NULL : o->step->task[maker];
    struct tensor **here = &o->on_host[x->id];
    if (!*here && made && made->copy && made->access[0].tensor == x && made->access[1].tensor->device->is_host)
        *here = made->access[1].tensor;
    else if (!*here)
        *here = bring(o, e, t, position, x);
    return *here;
}

/* The span of a tensor that a task touches, as a view of its root. */
static void find_span(const struct task *t, const struct tensor *root, size_t *begin, size_t *end)
{
    *begin = root->bytes, *end = 0;
    for (int i = 0; i < t->n_access; i++)
        if (t->access[i].tensor->root == root) {
            *begin = MIN(*begin, t->access[i].tensor->offset);
            *end = MAX(*end, t->access[i].tensor->offset + t->access[i].tensor->bytes);
        }
}

/* The host's parameters of that update; `held` are those of its first access, or NULL. */
static struct tensor *keep_parameters(struct offloads *o, struct edit *e, const struct task *t, struct tensor *x,
                                      struct tensor **held)
{
    struct pool *p = o->step->pool;
    size_t begin, end;
    find_span(t, x->root, &begin, &end);
    if (!*held || (*held)->mirrors->root != x->root)
        *held = mirror(e, new_range(p, x->root, x->root->name, begin, end), p->machine->host);
    return new_range(p, *held, x->name, x->offset - begin, x->offset - begin + x->bytes);
}

static struct tensor *host_side(struct offloads *o, struct edit *e, struct task *t, size_t position, struct tensor *x,
                                struct tensor **held)
{
    if (x->device->is_host)
        return x;
    if (x->class == MEM_PARAMETERS)
        return keep_parameters(o, e, t, x, held);
    if (x->class == MEM_OPTIMIZER)
        set_home(e, x->root, o->step->pool->machine->host);
    if (x->class == MEM_GRADIENTS)
        return bring(o, e, t, position, x);
    return x->class != MEM_OPTIMIZER && t->host_run ? bring_once(o, e, t, position, x) : x;
}

static struct task *stand_in_on_host(struct offloads *o, struct edit *e, struct task *t, size_t position,
                                     struct lane *lane)
{
    struct step *s = o->step;
    struct tensor *held = NULL, **there = allocate((size_t)t->n_access, sizeof(struct tensor *));
    for (int i = 0; i < t->n_access; i++)
        there[i] = host_side(o, e, t, position, t->access[i].tensor, &held);
    insert_before(e, t);
    struct task *mine = add_host(s, lane, t->name, t->host_run, NULL);
    for (int i = 0; i < t->n_access; i++)
        add_access(mine, there[i], t->access[i].mode);
    mine->args = allocate((size_t)t->n_args, sizeof *mine->args);
    mine->n_args = t->n_args;
    if (t->n_args)
        memcpy(mine->args, t->args, (size_t)t->n_args * sizeof *t->args);
    mine->seconds = t->host_seconds;
    mine->flops = t->flops, mine->bytes = t->bytes;
    mine->when = t->when;
    free(there);
    return mine;
}

/* The host's lanes take turns. */
static struct lane *next_lane(const struct offloads *o)
{
    struct machine *m = o->step->pool->machine;
    return open_lane(m, m->host, LANE_CPU, (int)(o->n_moved % (size_t)o->lanes));
}

/* `t` is the task at that position, or a piece of it. */
static void move_update(struct offloads *o, struct edit *e, struct task *t, size_t position, size_t group)
{
    struct step *s = o->step;
    struct task *mine = stand_in_on_host(o, e, t, position, next_lane(o));
    struct moved *m = APPEND(o->moved, o->n_moved, o->cap_moved);
    *m = (struct moved){mine, group, 0};
    insert_behind(e, m->update);
    s->stamp.role = ROLE_OTHER;
    for (int i = 0; i < t->n_access; i++)
        if (is_on_device(&t->access[i], MEM_PARAMETERS) && (t->access[i].mode & ACCESS_WRITE)) {
            struct tensor *to = t->access[i].tensor;
            add_copy(s, copy_lane(s, to->device, LANE_UPLOAD), "overlap.up", to, m->update->access[i].tensor);
            m->ups++;
        }
    stand_in(e, m->update, t);
}

/* ---- moving all of them, in an order ------------------------------------------------------------------------------
 */

/* Behind `where`, its copies with it, as far as nothing is in their way. */
static void sink_update(struct edit *e, const struct moved *m, struct task *where)
{
    struct task **up = allocate(m->ups, sizeof *up), *next = m->update;
    char *why_not = NULL;
    for (size_t i = 0; i < m->ups; i++)
        up[i] = next = next->behind;
    for (size_t i = m->ups; i-- > 0 && !why_not;)
        why_not = sink(e, up[i], where);
    if (!why_not)
        why_not = sink(e, m->update, where);
    free(why_not), free(up);
}

/* One that is large moves in pieces: as many as there are lanes, and none above LARGEST. */
static void move_task(struct offloads *o, struct edit *e, size_t position, size_t group)
{
    enum { LARGEST = 16 << 20, SMALLEST = 256 << 10 };
    struct task *t = o->step->task[position];
    size_t bytes = t->access[0].tensor->bytes, n = 1;
    if (t->elementwise && bytes > SMALLEST)
        n = MAX((size_t)o->lanes, ceil_div(bytes, LARGEST));
    struct task **piece = allocate(n, sizeof *piece);
    if (n > 1)
        n = cut(e, t, n, piece);
    else
        piece[0] = t;
    for (size_t i = 0; i < n; i++)
        move_update(o, e, piece[i], position, group);
    free(piece);
}

static struct task *last_copy(const struct moved *m)
{
    struct task *t = m->update;
    for (size_t i = 0; i < m->ups; i++)
        t = t->behind;
    return t;
}

/* Where its group comes among the CPU's. */
static size_t rank_of(const size_t *job, size_t n, size_t group)
{
    size_t i = 0;
    while (i < n && job[i] != group)
        i++;
    return i;
}

/* From the last one to the first: behind all that come before it.  `moved` is in list order. */
static void put_in_order(struct offloads *o, struct edit *e, const size_t *job, size_t n)
{
    struct moved *m = o->moved;
    for (size_t left = o->n_moved; left > 1; left--) {
        size_t last = 0;
        for (size_t i = 1; i < left; i++)
            if (rank_of(job, n, m[i].group) >= rank_of(job, n, m[last].group))
                last = i;
        struct moved mine = m[last];
        if (last < left - 1)
            sink_update(e, &mine, last_copy(&m[left - 1]));
        memmove(&m[last], &m[last + 1], (left - 1 - last) * sizeof *m);
        m[left - 1] = mine;
    }
}

static size_t group_at(const struct offloads *o, size_t position)
{
    for (size_t g = 0; g < o->n; g++)
        for (size_t i = 0; i < o->group[g].n; i++)
            if (o->group[g].task[i] == position)
                return g;
    return o->n;
}

void move_updates(struct offloads *o, struct edit *e, const bool *on_cpu, enum cpu_order order, bool alone)
{
    size_t *job = allocate(o->n, sizeof *job), n = o->step->n;
    o->n_moved = 0;
    o->alone = alone;
    free(o->on_host);
    o->on_host = allocate(o->step->pool->n, sizeof(struct tensor *));
    for (size_t i = 0, group; i < n; i++)
        if ((group = group_at(o, i)) < o->n && on_cpu[group])
            move_task(o, e, i, group);
    if (o->timed) {
        size_t n_jobs = order_updates(&o->timing, on_cpu, order, job);
        put_in_order(o, e, job, n_jobs);
    }
    free(job);
}
