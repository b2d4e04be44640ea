/* gaps.c - the survey of a list: its gaps, and how long copies take (see gaps.h). */
#include "gaps.h"

/* ---- uses and gaps ----------------------------------------------------------------------------------------------- */

struct gap_uses *find_gap_uses(struct task *const *task, int n, size_t tensors)
{
    struct gap_uses *all = allocate(tensors, sizeof *all);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < task[i]->n_access; k++) {
            struct gap_uses *u = &all[task[i]->access[k].tensor->root->id];
            if (!u->n || u->use[u->n - 1].task != i)
                APPEND(u->use, u->n, u->cap)->task = i;
            u->use[u->n - 1].mode |= task[i]->access[k].mode;
        }
    return all;
}

void free_gap_uses(struct gap_uses *uses, size_t tensors)
{
    for (size_t i = 0; i < tensors; i++)
        free(uses[i].use);
    free(uses);
}

bool crosses(const struct gap *g, int position) { return g->before < position && position < g->behind; }

bool same_block(const struct task *a, const struct task *b)
{
    return a->layer >= 0 && a->layer == b->layer && a->micro == b->micro && a->role == b->role;
}

static bool may_leave(const struct survey *v, const struct tensor *x, unsigned classes)
{
    const struct gap_uses *u = &v->uses[x->id];
    bool may = x->root == x && !x->apart && !x->device->is_host && classes >> x->class & 1 && u->n > 0;
    for (size_t i = 0; may && i < u->n; i++)
        may = !is_conditional(v->task[u->use[i].task]);
    return may;
}

bool is_rewritten_between(const struct survey *v, const struct tensor *x, int from, int to)
{
    bool written = false;
    for (size_t i = 0; (size_t)x->id < v->tensors && i < v->uses[x->id].n; i++) {
        const struct use *u = &v->uses[x->id].use[i];
        written |= u->task > from && u->task < to && (u->mode & ACCESS_WRITE);
    }
    return written;
}

/* Can be repeated before task `behind`: work of the device alone, whose reads have the same values still, which it has
 * not changed itself. */
static bool may_repeat(const struct survey *v, const struct task *t, const struct tensor *made, int behind)
{
    bool may = !t->run && !t->copy && !is_conditional(t) && t->lane->device == made->device;
    for (int i = 0; may && i < t->n_access; i++) {
        const struct tensor *x = t->access[i].tensor->root;
        bool reads = t->access[i].mode & ACCESS_READ, writes = t->access[i].mode & ACCESS_WRITE;
        may = !(writes && x->persistent) &&
              !(x != made && reads && is_rewritten_between(v, x, (int)t->index - 1, behind));
    }
    return may;
}

bool may_remake(const struct survey *v, const struct tensor *x, int behind)
{
    bool may = !x->persistent && x->class == MEM_ACTIVATIONS, written = false;
    for (size_t i = 0; may && i < v->uses[x->id].n; i++) {
        const struct use *u = &v->uses[x->id].use[i];
        if (!(u->mode & ACCESS_WRITE))
            continue;
        may = u->task < behind && may_repeat(v, v->task[u->task], x, behind);
        written = true;
    }
    return may && written;
}

bool is_of_one_layer(const struct survey *v, const struct candidate *c)
{
    const struct task *maker = v->task[c->maker], *reader = v->task[MIN(v->gaps[c->first].behind, v->n - 1)];
    const struct gap_uses *u = &v->uses[c->tensor->id];
    bool is = maker->layer >= 0 && reader->role == ROLE_BACKWARD;
    for (size_t i = 0; i < u->n; i++) {
        const struct task *t = v->task[u->use[i].task];
        is &= t->layer == maker->layer && t->micro == maker->micro;
        is &= t->role == (u->use[i].task < (int)reader->index ? ROLE_FORWARD : ROLE_BACKWARD);
    }
    return is;
}

/* Of the gaps from `first` on. */
static void add_candidate(struct survey *v, struct tensor *x, size_t first, bool remakeable)
{
    for (size_t g = first; g < v->n_gaps; g++)
        v->gaps[g].candidate = v->n_candidates;
    *APPEND(v->candidates, v->n_candidates, v->cap_candidates) =
        (struct candidate){x, x->device, first, v->n_gaps - first, v->uses[x->id].use[0].task, remakeable, 0, 0, 0};
}

/* Is other work between, of another layer, where tasks have any? */
static bool is_apart(const struct survey *v, int before, int behind)
{
    const struct task *a = v->task[before], *b = v->task[behind];
    return !same_block(a, b) && (behind - before > 1 || (a->role == ROLE_FORWARD && b->role == ROLE_BACKWARD));
}

static void find_gaps_of(struct survey *v, struct tensor *x)
{
    const struct gap_uses *u = &v->uses[x->id];
    size_t first = v->n_gaps;
    for (size_t i = 0; i <= u->n; i++) {
        int before = i > 0 ? u->use[i - 1].task : -1, behind = i < u->n ? u->use[i].task : v->n;
        bool inner = i > 0 && i < u->n;
        if (inner ? !is_apart(v, before, behind) : !x->persistent)
            continue;
        *APPEND(v->gaps, v->n_gaps, v->cap_gaps) = (struct gap){x, before, behind, 0};
        if (!x->persistent)
            add_candidate(v, x, v->n_gaps - 1, may_remake(v, x, behind));
    }
    if (x->persistent)
        add_candidate(v, x, first, false);
}

/* ---- times and bytes --------------------------------------------------------------------------------------------- */

static void note_times(struct survey *v, const struct forecast *f)
{
    v->start = allocate((size_t)v->n, sizeof *v->start), v->end = allocate((size_t)v->n, sizeof *v->end);
    for (int i = 0; i < v->n; i++) {
        v->start[i] = f && f->span ? f->span[i].start : i;
        v->end[i] = f && f->span ? f->span[i].end : i + 1;
    }
}

static void note_devices(struct survey *v, const struct forecast *f)
{
    struct machine *m = v->step->pool->machine;
    size_t n = (size_t)m->n_devices;
    v->held = allocate(n, sizeof *v->held);
    v->to_host = allocate(n, sizeof *v->to_host), v->from_host = allocate(n, sizeof *v->from_host);
    for (size_t d = 0; f && d < n; d++) {
        v->held[d] = bytes_at_positions(f, &m->device[d]);
        v->to_host[d] = free_lane(v->step, &m->device[d], LANE_DOWNLOAD, 0, ROLES);
        v->from_host[d] = free_lane(v->step, &m->device[d], LANE_UPLOAD, 0, ROLES);
    }
}

/* Where no times are known, a copy takes as long as four tasks. */
static void time_copies(struct survey *v, bool known)
{
    struct pool *pool = v->step->pool;
    struct edit *e = open_edit(v->step);
    for (size_t i = 0; i < v->n_candidates; i++) {
        struct candidate *c = &v->candidates[i];
        struct tensor *there = new_twin(pool, pool->machine->host, c->tensor);
        int d = c->device->index;
        struct task *out = add_copy(v->step, v->to_host[d], "swap.out", there, c->tensor),
                    *in = add_copy(v->step, v->from_host[d], "swap.in", c->tensor, there);
        c->out = known ? seconds_alone(v->costs, out) : 4;
        c->in = known ? seconds_alone(v->costs, in) : 4;
        for (size_t k = 0; k < v->uses[c->tensor->id].n; k++) {
            const struct use *u = &v->uses[c->tensor->id].use[k];
            if (u->mode & ACCESS_WRITE)
                c->again += known ? seconds_alone(v->costs, v->task[u->task]) : 1;
        }
    }
    undo(e);
}

struct survey *look_for_gaps(struct step *s, const struct costs *c, const struct forecast *f, unsigned classes)
{
    struct survey *v = allocate(1, sizeof *v);
    *v = (struct survey){.step = s, .costs = c, .n = (int)s->n, .tensors = s->pool->n};
    v->task = allocate(s->n, sizeof *v->task);
    memcpy(v->task, s->task, s->n * sizeof *v->task);
    v->uses = find_gap_uses(v->task, v->n, v->tensors);
    note_times(v, f);
    note_devices(v, f);
    for (size_t i = 0; i < v->tensors; i++)
        if (may_leave(v, s->pool->tensors[i], classes))
            find_gaps_of(v, s->pool->tensors[i]);
    if (f)
        time_copies(v, f->span);
    return v;
}

void free_survey(struct survey *v)
{
    for (int d = 0; d < v->step->pool->machine->n_devices; d++)
        free(v->held[d]);
    free_gap_uses(v->uses, v->tensors);
    free(v->task), free(v->gaps), free(v->candidates), free(v->start), free(v->end);
    free(v->held), free(v->to_host), free(v->from_host);
    free(v);
}

/* ---- lists that are not planned ---------------------------------------------------------------------------------- */

struct fetched { /* state of the host, as the device has it for now */
    struct tensor *there;
    const struct task *user; /* the last one */
};

static void fetch(struct edit *e, struct step *s, struct lane *up, struct task *t, struct tensor *x, struct fetched *f)
{
    struct device *d = t->lane->device;
    bool here = f->there && f->there->device == d && (same_block(f->user, t) || t->index - f->user->index == 1);
    if (!here) {
        f->there = new_twin(s->pool, d, x);
        insert_before(e, t);
        s->stamp.role = ROLE_SWAP;
        add_copy(s, up, "swap.in", f->there, x);
    }
    f->user = t;
    repoint(e, t, x, f->there);
}

void fetch_state(struct step *s)
{
    struct machine *m = s->pool->machine;
    size_t n = s->n, tensors = s->pool->n;
    struct fetched *fetched = allocate(tensors, sizeof *fetched);
    struct lane **from_host = allocate((size_t)m->n_devices, sizeof(struct lane *));
    for (int d = 0; d < m->n_devices; d++)
        from_host[d] = free_lane(s, &m->device[d], LANE_UPLOAD, 0, ROLES);
    struct edit *e = open_edit(s);
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < s->task[i]->n_access && !s->task[i]->copy && !s->task[i]->lane->device->is_host; k++) {
            struct tensor *x = s->task[i]->access[k].tensor->root;
            if ((size_t)x->id < tensors && x->device->is_host)
                fetch(e, s, from_host[s->task[i]->lane->device->index], s->task[i], x, &fetched[x->id]);
        }
    commit(e);
    free(fetched), free(from_host);
}
