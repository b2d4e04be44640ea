/* uses.c - which tasks touch a tensor, and when (see uses.h). */
#include "uses.h"

/* The index of the accessed storage in arrays by tensor. */
static size_t storage_id(const struct access *access) { return access->tensor->storage->id; }

/* Lays out the array of uses: each tensor gets room for as many as there are accesses of it. */
static void make_places(struct uses *uses)
{
    uses->first = allocate(uses->n_tensors + 1, sizeof *uses->first);
    uses->count = allocate(uses->n_tensors + 1, sizeof *uses->count);
    for (size_t i = 0; i < uses->n; i++)
        for (int k = 0; k < uses->tasks[i]->n_accesses; k++)
            uses->first[storage_id(&uses->tasks[i]->accesses[k]) + 1]++;
    for (size_t id = 0; id < uses->n_tensors; id++)
        uses->first[id + 1] += uses->first[id];
    uses->items = allocate(uses->first[uses->n_tensors] + 1, sizeof *uses->items);
}

/* Adds a use; of accesses of one task to the same tensor all but the first add only their mode. */
static void note_use(struct uses *uses, size_t position, const struct access *access)
{
    size_t id = storage_id(access);
    struct use *its_uses = &uses->items[uses->first[id]];
    size_t n = uses->count[id];
    if (n > 0 && its_uses[n - 1].position == (int)position) {
        its_uses[n - 1].mode |= access->mode;
    } else {
        its_uses[n] = (struct use){.task = uses->tasks[position], .position = (int)position, .mode = access->mode};
        uses->count[id] = n + 1;
    }
}

struct uses *new_uses(struct task *const *tasks, size_t n, const struct pool *pool)
{
    struct uses *uses = allocate(1, sizeof *uses);
    uses->tasks = copy_bytes(tasks, n * sizeof *uses->tasks);
    uses->n = n;
    uses->n_tensors = pool->n;
    make_places(uses);
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < tasks[i]->n_accesses; k++)
            note_use(uses, i, &tasks[i]->accesses[k]);
    return uses;
}

void free_uses(struct uses *uses)
{
    free(uses->tasks);
    free(uses->first);
    free(uses->count);
    free(uses->items);
    free(uses);
}

struct use_range uses_of(const struct uses *uses, const struct tensor *tensor)
{
    size_t id = tensor->storage->id;
    if (id >= uses->n_tensors)
        return (struct use_range){0};
    return (struct use_range){.uses = &uses->items[uses->first[id]], .n = uses->count[id]};
}

bool touches_bytes(const struct task *task, const struct tensor *tensor, enum access_mode mode)
{
    for (int i = 0; i < task->n_accesses; i++)
        if ((task->accesses[i].mode & mode) && share_bytes(task->accesses[i].tensor, tensor))
            return true;
    return false;
}

bool is_written_between(const struct uses *uses, const struct tensor *tensor, int begin, int end)
{
    const struct use_range found = uses_of(uses, tensor);
    for (size_t i = 0; i < found.n; i++) {
        const struct use *use = &found.uses[i];
        if (use->position > begin && use->position < end && (use->mode & ACCESS_WRITE))
            return true;
    }
    return false;
}

int last_write_before(const struct uses *uses, const struct tensor *tensor, int position)
{
    const struct use_range found = uses_of(uses, tensor);
    for (size_t i = found.n; i > 0; i--) {
        const struct use *earlier = &found.uses[i - 1];
        if (earlier->position < position && touches_bytes(earlier->task, tensor, ACCESS_WRITE))
            return earlier->position;
    }
    return NONE;
}

/* Bytes of the tensor's storage that the task at that position writes, and that no task before it has written. */
static size_t first_written(const struct uses *uses, const struct tensor *tensor, int position)
{
    const struct task *task = uses->tasks[position];
    size_t bytes = 0;
    for (int k = 0; k < task->n_accesses; k++) {
        const struct tensor *written = task->accesses[k].tensor;
        if (written->storage != tensor->storage || !(task->accesses[k].mode & ACCESS_WRITE))
            continue;
        if (last_write_before(uses, written, position) == NONE)
            bytes += written->bytes;
    }
    return bytes;
}

bool is_whole_before(const struct uses *uses, const struct tensor *tensor, int position)
{
    const struct use_range found = uses_of(uses, tensor);
    size_t bytes = 0;
    for (size_t i = 0; i < found.n && found.uses[i].position < position; i++)
        bytes += first_written(uses, tensor, found.uses[i].position);
    return bytes >= tensor->storage->bytes;
}

bool is_renewed(const struct uses *uses, const struct tensor *tensor)
{
    size_t first_read = 0;
    const struct use_range found = uses_of(uses, tensor);
    while (first_read < found.n && !(found.uses[first_read].mode & ACCESS_READ))
        first_read++;
    bool is_state = tensor->class == MEM_PARAMETERS || tensor->class == MEM_OPTIMIZER;
    return first_read < found.n && !is_state && is_whole_before(uses, tensor, found.uses[first_read].position);
}

int64_t *bytes_held(const struct uses *uses, const struct pool *pool, const struct device *device)
{
    int64_t *held = allocate(uses->n + 1, sizeof *held); /* first by how much it changes at each position */
    for (size_t i = 0; i < pool->n; i++) {
        const struct tensor *tensor = pool->tensors[i];
        if (tensor->storage != tensor || tensor->device != device)
            continue;
        const struct use_range found = uses_of(uses, tensor);
        int64_t bytes = (int64_t)round_up(tensor->bytes, MAX(device->alignment, 1u));
        if (tensor->persistent || (tensor->extra.exclusive == EXCLUSIVE_ALWAYS && found.n > 0)) {
            held[0] += bytes;
            held[uses->n] -= bytes;
        } else if (found.n > 0) {
            held[found.uses[0].position] += bytes;
            held[found.uses[found.n - 1].position + 1] -= bytes;
        }
    }
    for (size_t i = 1; i <= uses->n; i++)
        held[i] += held[i - 1];
    return held;
}
