/* uses.c - who touches a tensor, and when (see uses.h): all uses in one array, those of a tensor side by side. */
#include "edit.h"

struct uses *find_uses(struct task *const *task, size_t n, const struct pool *p)
{
    struct uses *u = allocate(1, sizeof *u);
    *u = (struct uses){.task = copy_bytes(task, n * sizeof(struct task *)), .n = n, .n_tensors = p->n};
    u->first = allocate(p->n + 1, sizeof *u->first);
    u->count = allocate(p->n + 1, sizeof *u->count);
    for (size_t i = 0; i < n; i++) /* room for each access */
        for (int k = 0; k < task[i]->n_access; k++)
            u->first[task[i]->access[k].tensor->storage->id + 1]++;
    for (size_t id = 0; id < p->n; id++)
        u->first[id + 1] += u->first[id];
    u->use = allocate(u->first[p->n] + 1, sizeof *u->use);
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < task[i]->n_access; k++) {
            size_t id = (size_t)task[i]->access[k].tensor->storage->id;
            struct use *of = &u->use[u->first[id]];
            if (!u->count[id] || of[u->count[id] - 1].at != (int)i)
                of[u->count[id]++] = (struct use){.at = (int)i};
            of[u->count[id] - 1].mode |= task[i]->access[k].mode;
        }
    return u;
}

void free_uses(struct uses *u)
{
    free(u->task), free(u->first), free(u->count), free(u->use);
    free(u);
}

const struct use *uses_of(const struct uses *u, const struct tensor *x, size_t *n)
{
    size_t id = (size_t)x->storage->id;
    *n = id < u->n_tensors ? u->count[id] : 0;
    return *n ? &u->use[u->first[id]] : NULL;
}

bool is_written_between(const struct uses *u, const struct tensor *x, int from, int to)
{
    size_t n;
    const struct use *use = uses_of(u, x, &n);
    bool written = false;
    for (size_t i = 0; i < n; i++)
        written |= use[i].at > from && use[i].at < to && (use[i].mode & ACCESS_WRITE);
    return written;
}

int last_write_before(const struct uses *u, const struct tensor *x, int at)
{
    size_t n;
    const struct use *use = uses_of(u, x, &n);
    while (n > 0 && (use[n - 1].at >= at || !touches_bytes(u->task[use[n - 1].at], x, ACCESS_WRITE)))
        n--;
    return n > 0 ? use[n - 1].at : NOWHERE;
}

bool is_whole_before(const struct uses *u, const struct tensor *x, int at)
{
    size_t n, bytes = 0;
    const struct use *use = uses_of(u, x, &n);
    for (size_t i = 0; i < n && use[i].at < at; i++)
        for (int k = 0; k < u->task[use[i].at]->n_access; k++) {
            const struct access *a = &u->task[use[i].at]->access[k];
            bool first = a->tensor->storage == x->storage && last_write_before(u, a->tensor, use[i].at) == NOWHERE;
            bytes += first && (a->mode & ACCESS_WRITE) ? a->tensor->bytes : 0;
        }
    return bytes >= x->storage->bytes;
}

int64_t *bytes_held(const struct uses *u, const struct pool *p, const struct device *d)
{
    int64_t *held = allocate(u->n + 1, sizeof *held);
    for (size_t i = 0; i < p->n; i++) {
        const struct tensor *x = p->tensors[i];
        size_t n;
        const struct use *use = uses_of(u, x, &n);
        bool always = x->persistent || (x->exclusive == EXCLUSIVE_ALWAYS && n > 0);
        if (x->storage != x || x->device != d || (!always && n == 0))
            continue;
        int64_t bytes = (int64_t)round_up(x->bytes, MAX(d->alignment, 1u));
        held[always ? 0 : use[0].at] += bytes;
        held[always ? (int)u->n : use[n - 1].at + 1] -= bytes;
    }
    for (size_t i = 1; i <= u->n; i++)
        held[i] += held[i - 1];
    return held;
}
