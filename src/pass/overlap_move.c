/* overlap_move.c - moving updates to the CPU: the edits of one, and the order of all. */
#include "overlap.h"

bool is_on_device(const struct access *a, enum memory_class class)
{
    return a->tensor->class == class && !a->tensor->device->is_host;
}

struct tensor *parameters_of(const struct task *t)
{
    struct tensor *found = NULL;
    bool writes = false;
    for (int i = t->n_access - 1; i >= 0; i--)
        if (is_on_device(&t->access[i], MEM_PARAMETERS)) {
            bool written = (t->access[i].mode & ACCESS_WRITE) != 0;
            writes |= written;
            if (t->access[i].tensor->root->persistent && (written || !found))
                found = t->access[i].tensor;
        }
    return writes ? found : NULL;
}

int find_maker(const struct step *s, size_t i, const struct tensor *x)
{
    while (i-- > 0)
        if (touches_bytes(s->task[i], x, ACCESS_WRITE))
            return (int)i;
    return NOWHERE;
}

/* ---- moving one update ------------------------------------------------------------------------------------------- */

struct lane *copy_lane(const struct mover *m, struct device *d, enum lane_kind kind, enum copy_lanes nth)
{
    return d->by_hand ? d->lane[kind] : open_lane(m->step->pool->machine, d, kind, (int)nth);
}

/* As many bytes on the host for one step; they share with nothing, so that nothing waits for the update. */
static struct tensor *new_on_host(struct mover *m, const struct tensor *x)
{
    char *name = format_string("host.%s", x->name);
    struct tensor *here = new_bytes_tensor(m->step->pool, m->host, x->class, name, x->bytes);
    free(name);
    here->apart = APART_ALWAYS;
    return here;
}

/* Bytes of x, as the task finds them. */
static struct tensor *bring(struct mover *m, struct tensor *x)
{
    struct tensor *here = new_on_host(m, x);
    int maker = find_maker(m->step, m->position, x);
    if (m->alone && !x->root->persistent)
        set_alone(m->edit, x);
    struct task **last = m->chosen && x->class == MEM_GRADIENTS ? &m->chosen
                         : maker == NOWHERE                     ? NULL
                                                                : &m->copied[maker];
    if (!last) /* it is of the step before */
        insert_before(m->edit, m->step->head->behind);
    else
        insert_behind(m->edit, *last ? *last : m->step->task[maker]);
    m->step->stamp = (struct stamp){m->task->layer, -1, ROLE_OFFLOAD};
    struct task *down =
        add_copy(m->step, copy_lane(m, x->device, LANE_DOWNLOAD, OVERLAP_LANE), "overlap.down", here, x);
    if (last)
        *last = down;
    return here;
}

/* What many updates read, such as the norm: brought once; or what it was uploaded from. */
static struct tensor *bring_once(struct mover *m, struct tensor *x)
{
    int maker = find_maker(m->step, m->position, x);
    const struct task *made = maker == NOWHERE ? NULL : m->step->task[maker];
    struct tensor **here = &m->on_host[x->id];
    if (!*here && made && made->copy && made->access[0].tensor == x && made->access[1].tensor->device->is_host)
        *here = made->access[1].tensor;
    else if (!*here)
        *here = bring(m, x);
    return *here;
}

/* The host's parameters of that update, or its state, of all bytes of them that it touches; `held` are those of the
 * access before, or NULL. */
static struct tensor *keep_both(const struct mover *m, struct tensor *x, struct tensor **held)
{
    struct pool *p = m->step->pool;
    size_t begin = x->root->bytes, end = 0;
    for (int i = 0; i < m->task->n_access; i++) {
        const struct tensor *part = m->task->access[i].tensor;
        if (part->root == x->root)
            begin = MIN(begin, part->offset), end = MAX(end, part->offset + part->bytes);
    }
    if (!*held || (*held)->mirrors->root != x->root)
        *held = mirror(m->edit, new_range(p, x->root, x->root->name, begin, end), m->host);
    begin = (*held)->mirrors->offset;
    return new_range(p, *held, x->name, x->offset - begin, x->offset - begin + x->bytes);
}

static struct tensor *host_side(struct mover *m, struct tensor *x, struct tensor **held)
{
    if (x->device->is_host)
        return x;
    if (x->class == MEM_PARAMETERS || (x->class == MEM_OPTIMIZER && m->list->online))
        return keep_both(m, x, held);
    if (x->class == MEM_GRADIENTS)
        return bring(m, x);
    if (x->class == MEM_OPTIMIZER)
        set_home(m->edit, x->root, m->host);
    return x->class != MEM_OPTIMIZER && m->task->host_run ? bring_once(m, x) : x;
}

/* The task's work, on the host's lanes in turn. */
static struct task *add_on_host(struct mover *m)
{
    const struct task *t = m->task;
    struct tensor *held = NULL, **there = allocate((size_t)t->n_access, sizeof(struct tensor *));
    for (int i = 0; i < t->n_access; i++)
        there[i] = host_side(m, t->access[i].tensor, &held);
    insert_before(m->edit, m->task);
    struct lane *lane = open_lane(m->step->pool->machine, m->host, LANE_CPU, (int)(m->n++ % (size_t)m->list->lanes));
    struct task *mine = add_host(m->step, lane, t->name, t->host_run, NULL);
    for (int i = 0; i < t->n_access; i++)
        add_access(mine, there[i], t->access[i].mode);
    mine->args = allocate((size_t)t->n_args, sizeof *mine->args);
    mine->n_args = t->n_args;
    for (int i = 0; i < t->n_args; i++)
        mine->args[i] = t->args[i];
    mine->seconds = t->host_seconds;
    mine->flops = t->flops, mine->bytes = t->bytes;
    mine->when = t->when;
    free(there);
    return mine;
}

/* ---- moving all of them, in an order ----------------------------------------------------------------------------- */

/* The update, and its copies up to `end`, come behind those before them in the order, unless something is in their way.
 */
static void keep_order(struct mover *m, struct task *update, struct task *end)
{
    char *why_not = NULL;
    bool late = m->list->timed && m->position < m->at;
    for (struct task *t = end, *before; late && !why_not; t = before) {
        before = t->before;
        why_not = sink(m->edit, t, m->last);
        if (t == update)
            break;
    }
    if (!why_not)
        m->last = end, m->at = late ? m->at : m->position;
    free(why_not);
}

/* The task, or a piece of it. */
static void move_piece(struct mover *m, struct task *t)
{
    m->task = t;
    struct task *mine = add_on_host(m), *end = mine;
    insert_behind(m->edit, mine);
    m->step->stamp.role = ROLE_OFFLOAD;
    for (int i = 0; i < t->n_access; i++)
        if (is_on_device(&t->access[i], MEM_PARAMETERS) && (t->access[i].mode & ACCESS_WRITE)) {
            struct tensor *to = t->access[i].tensor;
            end = add_copy(m->step, copy_lane(m, to->device, LANE_UPLOAD, OVERLAP_LANE), "overlap.up", to,
                           mine->access[i].tensor);
        }
    stand_in(m->edit, mine, t);
    keep_order(m, mine, end);
}

/* One that is large moves in pieces: as many as there are lanes, and none above LARGEST. */
void move_task(struct mover *m, size_t position)
{
    enum { LARGEST = 16 << 20, SMALLEST = 256 << 10 };
    struct task *t = m->step->task[m->position = position];
    size_t bytes = t->access[0].tensor->bytes, n = 1;
    if (t->elementwise && bytes > SMALLEST)
        n = MAX((size_t)m->list->lanes, ceil_div(bytes, LARGEST));
    struct task **piece = allocate(n, sizeof *piece);
    piece[0] = t;
    if (n > 1)
        n = cut(m->edit, t, n, piece);
    for (size_t i = 0; i < n; i++)
        move_piece(m, piece[i]);
    free(piece);
}

size_t move_updates(const struct offloads *o, struct edit *e, const bool *on_cpu, enum cpu_order order, bool alone)
{
    struct step *s = o->step;
    struct mover m = {.list = o, .step = s, .edit = e, .host = s->pool->machine->host, .alone = alone};
    size_t job[MOST_UPDATES], n = s->n;
    m.on_host = allocate(s->pool->n, sizeof *m.on_host);
    m.copied = allocate(n, sizeof *m.copied);
    size_t jobs = o->online ? 0 : order_updates(&o->timing, on_cpu, order, job);
    for (size_t k = 0; k < jobs; k++)
        for (size_t i = 0; i < n; i++)
            if (o->update_at[i] == (int)job[k])
                move_task(&m, i);
    if (o->online)
        o->online->offer(&m, on_cpu);
    free(m.on_host), free(m.copied);
    return m.n;
}

struct forecast try_updates(const struct offloads *o, const struct costs *c, const bool *on_cpu, enum cpu_order order,
                            bool alone)
{
    struct edit *e = open_edit(o->step);
    move_updates(o, e, on_cpu, order, alone);
    struct forecast f = try_step(o->step, c);
    undo(e);
    return f;
}
