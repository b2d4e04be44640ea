/* uses.c - which tasks touch a tensor, and when (see uses.h). */
#include "edit.h"

/* The index of the accessed storage in arrays by tensor. */
static size_t storage_id(const struct access *a) { return (size_t)a->tensor->storage->id; }

/* Lays out the array of uses: each tensor gets room for as many as there are accesses of it. */
static void make_places(struct uses *u)
{
    u->first = allocate(u->n_tensors + 1, sizeof *u->first);
    u->count = allocate(u->n_tensors + 1, sizeof *u->count);
    for (size_t i = 0; i < u->n; i++)
        for (int k = 0; k < u->task[i]->n_access; k++)
            u->first[storage_id(&u->task[i]->access[k]) + 1]++;
    for (size_t id = 0; id < u->n_tensors; id++)
        u->first[id + 1] += u->first[id];
    u->use = allocate(u->first[u->n_tensors] + 1, sizeof *u->use);
}

/* Adds a use; of accesses of one task to the same tensor all but the first add only their mode. */
static void note_use(struct uses *u, size_t position, const struct access *a)
{
    size_t id = storage_id(a);
    struct use *use = &u->use[u->first[id]];
    size_t n = u->count[id];
    if (n > 0 && use[n - 1].position == (int)position) {
        use[n - 1].mode |= a->mode;
    } else {
        use[n] = (struct use){.position = (int)position, .mode = a->mode};
        u->count[id] = n + 1;
    }
}

struct uses *find_uses(struct task *const *task, size_t n, const struct pool *p)
{
    struct uses *u = allocate(1, sizeof *u);
    u->task = copy_bytes(task, n * sizeof *u->task);
    u->n = n;
    u->n_tensors = p->n;
    make_places(u);
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < task[i]->n_access; k++)
            note_use(u, i, &task[i]->access[k]);
    return u;
}

void free_uses(struct uses *u)
{
    free(u->task);
    free(u->first);
    free(u->count);
    free(u->use);
    free(u);
}

const struct use *uses_of(const struct uses *u, const struct tensor *x, size_t *n)
{
    size_t id = (size_t)x->storage->id;
    *n = id < u->n_tensors ? u->count[id] : 0;
    return *n ? &u->use[u->first[id]] : NULL;
}

bool is_written_between(const struct uses *u, const struct tensor *x, int begin, int end)
{
    size_t n;
    const struct use *use = uses_of(u, x, &n);
    for (size_t i = 0; i < n; i++)
        if (use[i].position > begin && use[i].position < end && (use[i].mode & ACCESS_WRITE))
            return true;
    return false;
}

int last_write_before(const struct uses *u, const struct tensor *x, int position)
{
    size_t n;
    const struct use *use = uses_of(u, x, &n);
    for (size_t i = n; i > 0; i--) {
        int earlier = use[i - 1].position;
        if (earlier < position && touches_bytes(u->task[earlier], x, ACCESS_WRITE))
            return earlier;
    }
    return NONE;
}

/* Bytes of x's storage that the task at that position writes, and that no task before it has written. */
static size_t first_written(const struct uses *u, const struct tensor *x, int position)
{
    const struct task *t = u->task[position];
    size_t bytes = 0;
    for (int k = 0; k < t->n_access; k++) {
        const struct tensor *y = t->access[k].tensor;
        if (y->storage != x->storage || !(t->access[k].mode & ACCESS_WRITE))
            continue;
        if (last_write_before(u, y, position) == NONE)
            bytes += y->bytes;
    }
    return bytes;
}

bool is_whole_before(const struct uses *u, const struct tensor *x, int position)
{
    size_t n;
    const struct use *use = uses_of(u, x, &n);
    size_t bytes = 0;
    for (size_t i = 0; i < n && use[i].position < position; i++)
        bytes += first_written(u, x, use[i].position);
    return bytes >= x->storage->bytes;
}

bool is_renewed(const struct uses *u, const struct tensor *x)
{
    size_t n, first_read = 0;
    const struct use *use = uses_of(u, x, &n);
    while (first_read < n && !(use[first_read].mode & ACCESS_READ))
        first_read++;
    bool is_state = x->class == MEM_PARAMETERS || x->class == MEM_OPTIMIZER;
    return first_read < n && !is_state && is_whole_before(u, x, use[first_read].position);
}

int64_t *bytes_held(const struct uses *u, const struct pool *p, const struct device *d)
{
    int64_t *held = allocate(u->n + 1, sizeof *held); /* first by how much it changes at each position */
    for (size_t i = 0; i < p->n; i++) {
        const struct tensor *x = p->tensors[i];
        if (x->storage != x || x->device != d)
            continue;
        size_t n;
        const struct use *use = uses_of(u, x, &n);
        int64_t bytes = (int64_t)round_up(x->bytes, MAX(d->alignment, 1u));
        if (x->persistent || (x->exclusive == EXCLUSIVE_ALWAYS && n > 0)) {
            held[0] += bytes;
            held[u->n] -= bytes;
        } else if (n > 0) {
            held[use[0].position] += bytes;
            held[use[n - 1].position + 1] -= bytes;
        }
    }
    for (size_t i = 1; i <= u->n; i++)
        held[i] += held[i - 1];
    return held;
}
