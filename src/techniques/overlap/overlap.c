/* overlap.c - the layered optimizer: some layers' updates run on the CPU while the device goes on.
 *
 * The idea.  An update reads and writes much memory for little arithmetic, and its parameters are not needed before the
 * layer's next forward.  So the CPU can do it while the device goes on with other layers.  Adam's state then lies in
 * the host's memory.
 *
 *     device   F0  F1  F2  F3  B3  B2  B1  B0  U0  | F0  F1  F2  F3        U0: the update of layer 0, on the device
 *     down                         g3  g2  g1      |                       g3: the gradients of layer 3
 *     CPU                              U3  U2  U1  |
 *     up                                   w3  w2  | w1                    w1: the new parameters of layer 1
 *
 * The rule.  The updates of a layer are a *bucket*.  A plan has a letter for each bucket:
 *
 *     D   on its device, where it stands: after the layer's backward, or after the norm
 *     C   on the CPU, in the order in which the backward releases the buckets
 *     L   on the CPU late, after all C, in the order in which the next forward needs them
 *
 *     released    layer 3   layer 2   layer 1   layer 0      layer 0's backward is last and its forward is first, so
 *     needed      layer 0   layer 1   layer 2   layer 3      what its update takes on the CPU is hard to hide
 *
 * This file carries a plan out.  choose.c finds the best plan.
 *
 * The rewrite.  Five edits move an update: its gradients go down as soon as they are made; the host's update stands in
 * for the device's; the host keeps the parameters too, as a mirror of them; Adam's state gets its home on the host; and
 * the new parameters go up.
 *
 *     the list before                        the list with layer 3 on the CPU            lane
 *     backward     writes g                  backward         writes g                   the device's compute
 *                                            overlap.down     host.g = g                 its download
 *     update       g, w, m, v                update           host.g, mirror of w, m, v  the host's cpu
 *                                            overlap.up       w = mirror of w            the device's upload
 *
 * A large update moves in pieces, so that one is computed while others are copied.  Copies are written as memcpy() is:
 * add_copy_for(step, name, to, from, which lanes), see step.h.
 *
 * lanes:   Gradients go down, and parameters up, on lanes for these copies alone (FOR_OFFLOAD).  Tensors that many
 *          updates read, such as the norm, have another lane (FOR_CONTROL).  Pieces take the host's CPU lanes in turn.
 *
 * edges:   They follow from the list, and none is added.  The next forward, and the tasks that send parameters to other
 *          devices, wait for `up` because they read what `up` writes.  So a device waits for a layer's parameters when
 *          it comes to that layer, and not for all layers at once.
 *
 * gates:   With clipping an update reads the norm, or is held in a step file (gate.c).  Gradients still go down during
 *          the backward, and the CPU works during the next forward.  A model's `state` holds the norm, and says whether
 *          training has halted.  So without clipping too it goes down, as soon as it is written.
 *
 * sharing: Copies on the host share bytes with nothing.  Gradients on the device either keep their bytes throughout the
 *          step, so that no task waits for their copy (GRADIENTS_ALONE); or they share their bytes with other tensors,
 *          which takes less memory (GRADIENTS_SHARED).  (A model's gradients persist and keep their bytes anyway,
 *          except for ZeRO-2 and -3 with one micro-batch.)
 *
 * places:  A copy down stands after the task that makes its gradient, and after the copies that already follow this
 *          task: so copies have the order of their pieces.  Positions are those of the list before the edit.
 *
 * Source: "Iterative computing method and device for model training" (Ant, 2025).
 */
#include "overlap.h"

/* ---- which updates can move -------------------------------------------------------------------------------------- */

static bool is_on_device(const struct access *a, enum memory_class class)
{
    return a->tensor->class == class && !a->tensor->device->is_host;
}

/* Does it write parameters that lie on a device? */
static bool renews_parameters(const struct access *a)
{
    return is_on_device(a, MEM_PARAMETERS) && (a->mode & ACCESS_WRITE);
}

/* The first parameters on a device that the task writes, or NULL. */
static const struct tensor *parameters_of(const struct task *t)
{
    for (int i = 0; i < t->n_access; i++)
        if (renews_parameters(&t->access[i]))
            return t->access[i].tensor;
    return NULL;
}

/* An update of a device that the host can do too. */
static bool host_can_do(const struct task *t)
{
    bool host_can = t->on_host.run || t->on_host.seconds >= 0;
    return t->role == ROLE_UPDATE && t->lane->kind == LANE_COMPUTE && host_can && parameters_of(t);
}

/* Two updates that the host can do too.  Are they of one bucket, so that a plan moves both or neither? */
static bool in_one_bucket(const struct task *a, const struct task *b)
{
    if (a->layer != b->layer)
        return false;
    return a->layer >= 0 || strcmp(parameters_of(a)->storage->name, parameters_of(b)->storage->name) == 0;
}

/* Does the task write some bytes of x, but not just those of x? */
static bool writes_other_range(const struct task *t, const struct tensor *x)
{
    for (int i = 0; i < t->n_access; i++) {
        const struct access *a = &t->access[i];
        if ((a->mode & ACCESS_WRITE) && share_bytes(a->tensor, x) && !same_bytes(a->tensor, x))
            return true;
    }
    return false;
}

/* x is state of the update.  Does all that touches x move with the update?  (Without ZeRO the shards of a layer have
 * one m and v on each device, which several updates share.)  moves: see find_movable(). */
static bool moves_as_one(const struct uses *uses, const bool *moves, const struct tensor *x, const struct task *update)
{
    size_t n;
    const struct use *use = uses_of(uses, x, &n);
    for (size_t k = 0; k < n; k++) {
        const struct task *t = uses->task[use[k].position];
        if (!moves[use[k].position] || !in_one_bucket(t, update))
            return false;
    }
    return true;
}

/* x are parameters of the update.  Does a task write them that may stay on its device when the update moves?  Then the
 * host's mirror of x would not know of it; nor would it where x is written as a part of another range, whose mirror is
 * another one. */
static bool is_written_by_others(const struct uses *uses, const bool *moves, const struct tensor *x,
                                 const struct task *update)
{
    size_t n;
    const struct use *use = uses_of(uses, x, &n);
    for (size_t k = 0; k < n; k++) {
        const struct task *t = uses->task[use[k].position];
        if (!touches_bytes(t, x, ACCESS_WRITE))
            continue;
        if (!moves[use[k].position] || !in_one_bucket(t, update) || writes_other_range(t, x))
            return true;
    }
    return false;
}

/* The host can do the update.  Does it write nothing but parameters and Adam's state?  Only parameters are copied up.
 * The state has one home, so all that touches it moves, or nothing does. */
static bool can_move(const struct uses *uses, const bool *moves, const struct task *t)
{
    for (int i = 0; i < t->n_access; i++) {
        const struct access *a = &t->access[i];
        enum memory_class class = a->tensor->class;
        if (class == MEM_PARAMETERS && is_written_by_others(uses, moves, a->tensor, t))
            return false;
        if (class == MEM_PARAMETERS)
            continue;
        if (class == MEM_OPTIMIZER && !moves_as_one(uses, moves, a->tensor, t))
            return false;
        if (class != MEM_OPTIMIZER && (a->mode & ACCESS_WRITE))
            return false;
    }
    return true;
}

/* Which tasks can move, by their positions in the list.  Where one update has to stay, others may have to stay because
 * of it, so the question is asked again until no answer changes.  The caller frees the array. */
static bool *find_movable(const struct uses *uses)
{
    bool *moves = allocate(uses->n, sizeof *moves);
    bool changed = true;
    for (size_t i = 0; i < uses->n; i++)
        moves[i] = host_can_do(uses->task[i]);
    while (changed) {
        changed = false;
        for (size_t i = 0; i < uses->n; i++)
            if (moves[i] && !can_move(uses, moves, uses->task[i])) {
                moves[i] = false;
                changed = true;
            }
    }
    return moves;
}

int last_maker(const struct uses *uses, const struct task *update)
{
    int last = NONE;
    for (int i = 0; i < update->n_access; i++) {
        const struct access *a = &update->access[i];
        if (!is_on_device(a, MEM_GRADIENTS))
            continue;
        int maker = last_write_before(uses, a->tensor, (int)update->index);
        last = MAX(last, maker);
    }
    return last;
}

/* The bucket that the update belongs to; NULL: there is none yet. */
static struct update_bucket *find_bucket(struct update_buckets *b, const struct uses *uses, const struct task *update)
{
    for (size_t k = 0; k < b->n; k++)
        if (in_one_bucket(uses->task[b->bucket[k].update], update))
            return &b->bucket[k];
    return NULL;
}

static struct update_bucket *add_bucket(struct update_buckets *b, const struct task *update)
{
    struct update_bucket *new = &b->bucket[b->n];
    b->n++;
    *new = (struct update_bucket){.layer = update->layer, .update = update->index, .released = NONE};
    if (update->layer < 0)
        snprintf(new->name, sizeof new->name, "other %s", parameters_of(update)->storage->name);
    else
        snprintf(new->name, sizeof new->name, "layer %d", update->layer);
    return new;
}

COMPARISON(by_release, struct update_bucket, BY(a->released, b->released, COMPARE(a->update, b->update)))

void find_buckets(struct update_buckets *b, const struct uses *uses)
{
    bool *moves = find_movable(uses);
    b->n = 0;
    b->bucket_of = allocate(uses->n, sizeof *b->bucket_of);
    for (size_t i = 0; i < uses->n; i++) {
        const struct task *t = uses->task[i];
        struct update_bucket *bucket = moves[i] ? find_bucket(b, uses, t) : NULL;
        if (moves[i] && !bucket && b->n < MOST_BUCKETS)
            bucket = add_bucket(b, t);
        if (!bucket)
            continue;
        int maker = last_maker(uses, t);
        bucket->released = MAX(bucket->released, maker);
    }
    SORT(b->bucket, b->n, by_release);
    for (size_t i = 0; i < uses->n; i++) { /* now their numbers are known */
        const struct update_bucket *bucket = moves[i] ? find_bucket(b, uses, uses->task[i]) : NULL;
        b->bucket_of[i] = bucket ? (int)(bucket - b->bucket) : NONE;
    }
    free(moves);
}

/* ---- what the host's update works on ----------------------------------------------------------------------------- */

static struct device *host_of(const struct mover *m) { return m->step->pool->machine->host; }

/* The task that makes x for the update; what the step before has made is there at the head of the list. */
static struct task *maker_of(const struct mover *m, const struct tensor *x, const struct task *update)
{
    int at = last_write_before(m->uses, x, (int)update->index);
    return at == NONE ? m->step->head : m->step->task[at];
}

/* The copy shares bytes with nothing, so that no task waits for the update; and with GRADIENTS_ALONE x does not,
 * so that no task waits for the copy. */
struct tensor *bring_down(struct mover *m, struct tensor *x, struct task *maker, int layer, const char *purpose)
{
    struct step *s = m->step;
    const char *name = JOINED("host.", x->name);
    struct tensor *copy = new_bytes_tensor(s->pool, host_of(m), x->class, name, x->bytes);
    struct task *last = maker;
    set_exclusive(m->edit, copy);
    if (m->sharing == GRADIENTS_ALONE && !x->storage->persistent)
        make_persistent(m->edit, x->storage);
    while (last->next->role == ROLE_OFFLOAD)
        last = last->next;
    insert_behind(m->edit, last);
    s->tags = (struct tags){layer, NONE, ROLE_OFFLOAD};
    add_copy_for(s, "overlap.down", copy, x, purpose);
    return copy;
}

/* The first tensor that has the same bytes as x: what several tensors name has one mirror. */
static struct tensor *first_same_bytes(struct tensor *x)
{
    struct tensor *first = x;
    for (struct tensor *view = x->storage->view; view; view = view->view)
        if (same_bytes(view, x) && view->id < first->id)
            first = view;
    return same_bytes(x->storage, x) ? x->storage : first;
}

struct tensor *part_of_mirror(struct mover *m, struct tensor *whole, const struct tensor *part)
{
    size_t begin = part->offset - whole->offset;
    struct tensor *first = first_same_bytes(whole);
    if (!m->counterpart[first->id])
        m->counterpart[first->id] = mirror(m->edit, first, host_of(m));
    struct tensor *mine = m->counterpart[first->id];
    return new_range(m->step->pool, mine, part->name, begin, begin + part->bytes);
}

/* Is the task a copy up, of what the host has? */
static bool brings_up(const struct task *t) { return is_copy(t) && copy_source(t)->device->is_host; }

/* `whole`, which many updates read, as the norm, is brought down once.  What the host has sent up is used there
 * directly: `control`, and in dp=2 `state` of replica 1.  In a list by hand `whole` stays where it is. */
static struct tensor *shared_copy(struct mover *m, const struct task *update, struct tensor *whole)
{
    struct task *maker = maker_of(m, whole, update);
    struct tensor **mine = &m->counterpart[whole->id];
    if (!update->on_host.run)
        return whole;
    if (*mine)
        return *mine;
    if (brings_up(maker) && copy_target(maker) == whole)
        *mine = copy_source(maker);
    else
        *mine = bring_down(m, whole, maker, update->layer, FOR_CONTROL);
    return *mine;
}

struct tensor *host_side(struct mover *m, const struct task *update, const struct task *piece, int i)
{
    struct tensor *x = piece->access[i].tensor, *whole = update->access[i].tensor;
    if (x->device->is_host)
        return x;
    switch (x->class) {
    case MEM_GRADIENTS:
        return bring_down(m, x, maker_of(m, x, update), update->layer, FOR_OFFLOAD);
    case MEM_PARAMETERS:
        return part_of_mirror(m, whole, x);
    case MEM_OPTIMIZER:
        set_home(m->edit, x->storage, host_of(m));
        return x;
    default:
        return shared_copy(m, update, whole);
    }
}

/* ---- moving an update -------------------------------------------------------------------------------------------- */

/* Cuts it into as many pieces as there are cores, and more where one would be larger than LARGEST. */
struct update_pieces cut_update(struct mover *m, struct task *update)
{
    enum { LARGEST = 16 << 20, SMALLEST = 256 << 10 }; /* bytes */
    size_t bytes = update->access[0].tensor->bytes;
    struct update_pieces p = {.n = 1};
    if (update->elementwise && bytes > SMALLEST)
        p.n = MAX((size_t)m->cores, ceil_div(bytes, LARGEST));
    p.piece = allocate(p.n, sizeof *p.piece);
    p.piece[0] = update;
    if (p.n > 1)
        p.n = cut(m->edit, update, p.n, p.piece);
    return p;
}

/* The host's task in place of `piece`.  Pieces take the CPU's lanes in turn. */
static struct task *run_on_host(struct mover *m, struct task *piece, struct tensor *const *on_host)
{
    struct lane *lane = open_lane(m->step->pool->machine, host_of(m), LANE_CPU, m->n_pieces % m->cores);
    m->n_pieces++;
    return replace_on_host(m->edit, piece, lane, on_host);
}

struct task *bring_up(struct mover *m, const struct task *piece, struct tensor *const *on_host, const char *purpose)
{
    struct task *last = NULL;
    m->step->tags.role = ROLE_OFFLOAD;
    for (int i = 0; i < piece->n_access; i++) {
        const struct access *a = &piece->access[i];
        if (renews_parameters(a))
            last = add_copy_for(m->step, "overlap.up", a->tensor, on_host[i], purpose);
    }
    return last;
}

/* The tasks from `first` to `end` stand beside the update at that position.  They come after those that have moved
 * before, unless something is in their way.  For example two L, without clipping:
 *
 *     layer 0 has moved       .... U1 up1 .... U0 up0         layer 1's stand at `position`, 0's at `last_position`
 *     then layer 1            ................ U0 up0 U1 up1  both stand at `last_position`
 */
static void keep_order(struct mover *m, size_t position, const struct task *first, struct task *end)
{
    const struct task *stop = first->prev;
    bool overtakes = m->last && position < m->last_position;
    struct task *t = end;
    while (overtakes && t != stop) {
        struct task *before = t->prev;
        if (!sink(m->edit, t, m->last))
            return;
        t = before;
    }
    m->last = end;
    if (!overtakes)
        m->last_position = position;
}

struct moved move_piece(struct mover *m, const struct task *update, struct task *piece,
                        const struct transport *transport)
{
    struct moved moved;
    struct tensor **on_host = allocate((size_t)piece->n_access, sizeof(struct tensor *));
    for (int i = 0; i < piece->n_access; i++)
        on_host[i] = transport->host_side(m, update, piece, i);
    moved.update = run_on_host(m, piece, on_host); /* in place of `piece`, which lives until commit() */
    moved.last_copy = bring_up(m, piece, on_host, transport->purpose);
    free(on_host);
    return moved;
}

void move_update(struct mover *m, size_t position)
{
    static const struct transport transport = {.host_side = host_side, .purpose = FOR_OFFLOAD};
    struct task *update = m->step->task[position];
    struct update_pieces pieces = cut_update(m, update);
    for (size_t k = 0; k < pieces.n; k++) {
        struct moved moved = move_piece(m, update, pieces.piece[k], &transport);
        keep_order(m, position, moved.update, moved.last_copy);
    }
    free(pieces.piece);
}

/* ---- carrying a plan out ----------------------------------------------------------------------------------------- */

struct mover begin_moves(struct edit *e, struct step *s, const struct uses *uses, int cores, enum sharing sharing)
{
    struct mover m = {.edit = e, .step = s, .uses = uses, .cores = cores, .sharing = sharing};
    m.counterpart = allocate(s->pool->n, sizeof *m.counterpart);
    return m;
}

void end_moves(struct mover *m) { free(m->counterpart); }

static void move_bucket(struct mover *m, const struct update_buckets *b, size_t bucket)
{
    for (size_t i = 0; i < m->uses->n; i++)
        if (b->bucket_of[i] == (int)bucket)
            move_update(m, i);
}

/* All C from the first released on, then all L from the last released back. */
void move_updates(struct mover *m, const struct update_buckets *b, const unsigned char *side)
{
    for (size_t k = 0; k < b->n; k++)
        if (side[k] == ON_CPU)
            move_bucket(m, b, k);
    for (size_t k = b->n; k > 0; k--)
        if (side[k - 1] == ON_CPU_LATE)
            move_bucket(m, b, k - 1);
}
