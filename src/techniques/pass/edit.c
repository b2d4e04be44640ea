/* edit.c - the verbs of passes (see edit.h).
 *
 * While an edit is open, the tasks are a ring of neighbours, so that every change of order is a change of a few
 * pointers.  The ring's head is a task that does nothing.  Before a verb changes anything else in tasks and tensors, it
 * notes the old bytes in a journal: undo() writes them back, the last change first.
 */
#include "edit.h"

#include "cl/shared.h" /* defines: BLOCK */

struct change {                                    /* an entry of the journal */
    void *where;                                   /* in a task or a tensor */
    unsigned char old[sizeof(struct state_range)]; /* the first n bytes count; nothing larger is changed */
    size_t n;
};
struct edit {
    struct step *step;
    struct task head; /* its `next` is the first task, its `prev` the last one */
    /* as they were when it was opened: */
    size_t n_tasks, n_tensors;
    uint64_t last_origin;
    int last_message;
    struct tags tags;
    /* since then: */
    struct change *journal;
    size_t n_changes, cap_changes;
    struct task **dropped;
    size_t n_dropped, cap_dropped;
    struct obstacle obstacle; /* what the last move met */
    /* by preview(): */
    struct task **before; /* the list's array before; NULL: there is no preview */
    size_t n_before;
};

/* ---- opening and closing --------------------------------------------------------------------------------------- */

struct edit *open_edit(struct step *s)
{
    CHECK(!s->cursor && !s->running, "list %s is being edited already, or ready to run", s->name);
    struct edit *e = allocate(1, sizeof *e);
    e->step = s;
    e->n_tasks = s->n;
    e->n_tensors = s->pool->n;
    e->last_origin = s->last_origin;
    e->last_message = s->last_message;
    e->tags = s->tags;
    e->head.prev = e->head.next = &e->head;
    for (size_t i = 0; i < s->n; i++)
        link_behind(s->task[i], e->head.prev);
    s->head = &e->head;
    s->cursor = e->head.prev;
    return e;
}

/* What commit() and undo() have in common. */
static void close_edit(struct edit *e)
{
    e->step->head = e->step->cursor = NULL;
    e->step->tags = e->tags;
    free(e->journal);
    free(e->dropped);
    free(e->before);
    free(e);
}

/* The array gets the tasks in the order of the ring. */
static void list_in_order(struct edit *e)
{
    struct step *s = e->step;
    s->n = 0;
    for (struct task *t = e->head.next; t != &e->head; t = t->next) {
        t->index = s->n;
        s->task[s->n++] = t;
    }
}

void preview(struct edit *e)
{
    struct step *s = e->step;
    e->n_before = s->n;
    e->before = copy_bytes(s->task, s->n * sizeof *s->task);
    list_in_order(e);
    s->head = s->cursor = NULL;
    s->tags = e->tags;
}

/* The array is as it was before preview(), so that undo() finds the new tasks at its end. */
static void end_preview(struct edit *e)
{
    struct step *s = e->step;
    CHECK(!s->cursor, "list %s is undone below an edit that is open", s->name);
    s->n = e->n_before;
    memcpy(s->task, e->before, s->n * sizeof *s->task);
    for (size_t i = 0; i < s->n; i++)
        s->task[i]->index = i;
}

void commit(struct edit *e)
{
    list_in_order(e);
    for (size_t i = 0; i < e->n_dropped; i++)
        free_task(e->dropped[i]);
    close_edit(e);
}

void undo(struct edit *e)
{
    struct step *s = e->step;
    if (e->before)
        end_preview(e);
    while (e->n_changes) {
        struct change *c = &e->journal[--e->n_changes];
        memcpy(c->where, c->old, c->n);
    }
    while (s->n > e->n_tasks)
        free_task(s->task[--s->n]);
    drop_tensors(s->pool, e->n_tensors);
    s->last_origin = e->last_origin;
    s->last_message = e->last_message;
    close_edit(e);
}

/* Notes in the journal n bytes that are about to change. */
static void remember(struct edit *e, void *where, size_t n)
{
    struct change *c = APPEND(e->journal, e->n_changes, e->cap_changes);
    CHECK(n <= sizeof c->old, "a change of %zu bytes", n);
    c->where = where;
    c->n = n;
    memcpy(c->old, where, n);
}
/* Sets a field of a task or tensor, and notes what it was. */
#define CHANGE(e, place, value)                                                                                        \
    do {                                                                                                               \
        remember((e), &(place), sizeof(place));                                                                        \
        (place) = (value);                                                                                             \
    } while (0)

/* ---- order ----------------------------------------------------------------------------------------------------- */

void insert_behind(struct edit *e, struct task *t)
{
    e->step->cursor = t;
    e->step->tags = (struct tags){.layer = t->layer, .micro = t->micro, .role = t->role};
}

void insert_before(struct edit *e, struct task *t)
{
    insert_behind(e, t);
    e->step->cursor = t->prev;
}

/* Takes t out of the ring; the place where new tasks come stays the same. */
static void take_out(struct edit *e, struct task *t)
{
    if (e->step->cursor == t)
        e->step->cursor = t->prev;
    t->prev->next = t->next;
    t->next->prev = t->prev;
}

/* The first tensor of t's for whose bytes t and `other` must keep their order; NULL: there is none. */
static const struct tensor *find_shared(const struct task *t, const struct task *other)
{
    for (int i = 0; i < t->n_access; i++) {
        const struct access *a = &t->access[i];
        enum access_mode forbidden = a->mode & ACCESS_WRITE ? ACCESS_BOTH : ACCESS_WRITE;
        if (touches_bytes(other, a->tensor, forbidden))
            return a->tensor;
    }
    return NULL;
}

enum move_way { EARLIER, LATER };

/* May t change places with its neighbour, which is the one after it where t moves LATER?  If not, the edit's obstacle
 * says why. */
static bool may_pass(struct edit *e, const struct task *t, const struct task *neighbour, enum move_way way)
{
    bool ends = neighbour == &e->head;
    const struct task *first = way == LATER ? t : neighbour;
    const struct task *second = way == LATER ? neighbour : t;
    e->obstacle = (struct obstacle){.first = first, .second = second, .on_way = ends ? NULL : neighbour};
    if (ends || (first->gate == GATE_HOLDS && second->gate == GATE_HELD) || is_after(e->step, second, first, SAME_STEP))
        return false;
    e->obstacle.over = find_shared(t, neighbour);
    return !e->obstacle.over;
}

/* Moves t past all tasks on the way to `where`, and past that; false: one of them is in the way. */
static bool move(struct edit *e, struct task *t, struct task *where, enum move_way way)
{
    const struct task *on_way = t;
    while (on_way != where) {
        on_way = way == LATER ? on_way->next : on_way->prev;
        if (!may_pass(e, t, on_way, way))
            return false;
    }
    if (t != where) {
        take_out(e, t);
        link_behind(t, way == LATER ? where : where->prev);
    }
    return true;
}

bool sink(struct edit *e, struct task *t, struct task *where) { return move(e, t, where, LATER); }
bool hoist(struct edit *e, struct task *t, struct task *where) { return move(e, t, where, EARLIER); }

const struct obstacle *last_obstacle(const struct edit *e) { return &e->obstacle; }

/* ---- where things are ------------------------------------------------------------------------------------------ */

void set_home(struct edit *e, struct tensor *x, struct device *d)
{
    CHECK(x->persistent && x->storage == x, "tensor %s does not persist, or is a view", x->name);
    for (struct tensor *part = x; part; part = part->view)
        CHANGE(e, part->device, d);
}

/* Sets whether x, with its views, keeps its bytes from step to step. */
static void set_persistent(struct edit *e, struct tensor *x, bool persistent)
{
    CHECK(x->storage == x, "tensor %s is a view", x->name);
    for (struct tensor *part = x; part; part = part->view)
        CHANGE(e, part->persistent, persistent);
}

void make_transient(struct edit *e, struct tensor *x) { set_persistent(e, x, false); }

void make_persistent(struct edit *e, struct tensor *x) { set_persistent(e, x, true); }

void set_exclusive(struct edit *e, struct tensor *x) { CHANGE(e, x->storage->exclusive, EXCLUSIVE_ALWAYS); }

struct tensor *mirror(struct edit *e, struct tensor *x, struct device *d)
{
    struct tensor *m = new_bytes_tensor(e->step->pool, d, x->class, x->name, x->bytes);
    CHECK(x->storage->persistent, "tensor %s does not persist", x->name);
    m->persistent = true;
    m->replica.of = x->storage->replica.of;
    m->replica.begin = x->storage->replica.begin + x->offset;
    m->mirror.of = x;
    struct tensor *first = e->step->pool->tensors[x->storage->replica.of->id];
    m->mirror.next = first->mirror.first;
    CHANGE(e, first->mirror.first, m);
    return m;
}

void repoint(struct edit *e, struct task *t, const struct tensor *old, struct tensor *new)
{
    CHECK(old->bytes == new->bytes, "tensor %s of %zu bytes in place of %s of %zu", new->name, new->bytes, old->name,
          old->bytes);
    CHECK(t->action != ACT_KERNEL || new->device == t->lane->device, "kernel task %s on %s would take tensor %s of %s",
          t->name, t->lane->name, new->name, new->device->id);
    for (int i = 0; i < t->n_access; i++) {
        const struct tensor *x = t->access[i].tensor;
        if (x == old)
            CHANGE(e, t->access[i].tensor, new);
        else if (x->storage == old)
            CHANGE(e, t->access[i].tensor, same_part(e->step->pool, new, x));
    }
}

void switch_readers(struct edit *e, const struct uses *uses, const struct tensor *x, int from, const struct tensor *old,
                    struct tensor *new)
{
    size_t n;
    const struct use *use = uses_of(uses, x, &n);
    for (size_t i = 0; i < n; i++)
        if (use[i].position >= from)
            repoint(e, uses->task[use[i].position], old, new);
}

/* ---- what is computed, and how often ---------------------------------------------------------------------------- */

struct task *repeat(struct edit *e, const struct task *t) { return add_again(e->step, t); }

void drop(struct edit *e, struct task *t)
{
    take_out(e, t);
    *APPEND(e->dropped, e->n_dropped, e->cap_dropped) = t;
}

void stand_in(struct edit *e, struct task *mine, struct task *theirs)
{
    CHECK(mine->n_access == theirs->n_access, "task %s has %d accesses, task %s %d", mine->name, mine->n_access,
          theirs->name, theirs->n_access);
    CHANGE(e, mine->origin, theirs->origin);
    CHANGE(e, mine->message, theirs->message);
    CHANGE(e, mine->elementwise, theirs->elementwise);
    CHANGE(e, mine->gate, theirs->gate);
    CHANGE(e, mine->piece_begin, theirs->piece_begin);
    CHANGE(e, mine->state, theirs->state);
    drop(e, theirs);
}

struct task *replace_on_host(struct edit *e, struct task *t, struct lane *lane, struct tensor *const *host_tensors)
{
    insert_before(e, t);
    struct task *mine = add_host(e->step, lane, t->name, t->on_host.run, NULL);
    for (int i = 0; i < t->n_access; i++)
        add_access(mine, host_tensors[i], t->access[i].mode);
    mine->args = copy_bytes(t->args, (size_t)t->n_args * sizeof *t->args);
    mine->n_args = t->n_args;
    mine->seconds = t->on_host.seconds;
    mine->flops = t->flops;
    mine->bytes = t->bytes;
    mine->when = t->when;
    stand_in(e, mine, t);
    insert_behind(e, mine);
    return mine;
}

/* The kernel's counts of elements: those that are left from element `first` on, but at most n. */
static void narrow_args(struct task *t, size_t first, size_t n)
{
    for (int i = 0; i < t->n_args; i++) {
        struct arg *arg = &t->args[i];
        int64_t left = (int64_t)arg->i - (int64_t)first;
        if (arg->kind == ARG_ELEMENTS)
            arg->i = (int32_t)MIN(MAX(left, 0), (int64_t)n);
    }
}

/* The task works on bytes [begin, end) of its tensors alone.  These are the tensors as large as that of its first
 * access; others, such as the optimizer's control block, it still touches whole. */
static void narrow(struct task *t, struct pool *p, size_t begin, size_t end)
{
    size_t task_bytes = t->access[0].tensor->bytes;
    size_t first = begin / ELEMENT_BYTES;
    size_t n = (end - begin) / ELEMENT_BYTES;
    for (int i = 0; i < t->n_access; i++) {
        struct tensor *x = t->access[i].tensor;
        if (x->bytes == task_bytes)
            t->access[i].tensor = new_view(p, x, x->name, first, SHAPE((int64_t)n));
    }
    narrow_args(t, first, n);
    if (t->action == ACT_KERNEL)
        t->grid.global[0] = ceil_div(n, BLOCK) * t->grid.local[0];
    t->piece_begin += begin;
    t->state.begin += first;
    t->state.end = t->state.begin + n;
    t->flops *= (double)(end - begin) / (double)task_bytes;
    t->bytes = (size_t)((double)t->bytes * (double)(end - begin) / (double)task_bytes);
}

size_t cut(struct edit *e, struct task *t, size_t n, struct task **piece)
{
    CHECK(t->elementwise && n > 0, "task %s is cut into %zu pieces, but is %selementwise", t->name, n,
          t->elementwise ? "" : "not ");
    struct step *s = e->step;
    struct task *cursor = s->cursor;
    size_t bytes = t->access[0].tensor->bytes;
    size_t align = MAX(t->lane->device->alignment, (size_t)ELEMENT_BYTES);
    size_t units = ceil_div(bytes, align); /* pieces begin at multiples of `align` bytes */
    n = MIN(n, units);
    s->cursor = t;
    for (size_t i = 0; i < n; i++) {
        size_t begin = i * units / n * align;
        size_t end = (i + 1) * units / n * align;
        piece[i] = add_again(s, t);
        narrow(piece[i], s->pool, begin, MIN(end, bytes));
    }
    s->cursor = cursor == t ? piece[n - 1] : cursor;
    drop(e, t);
    return n;
}

void need_choice(struct task *t, struct tensor *word, int bits, enum assumption assumed)
{
    size_t bytes = t->bytes;
    add_access(t, word, ACCESS_READ);
    t->bytes = bytes; /* the word is no work */
    t->condition.needs = bits;
    t->condition.unexpected = assumed == ASSUME_SKIPPED;
    if (assumed == ASSUME_SKIPPED)
        t->seconds = 0; /* a task that does nothing takes no time */
}
