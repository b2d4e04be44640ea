/* task.c - adds tasks to a list: kernels, copies, work of the host; and declares what they touch. */
#include "step.h"

const char *const role_name[ROLES] = {"other", "forward", "backward", "reduce",  "norm", "update",  "broadcast",
                                      "send",  "feed",    "report",   "offload", "swap", "snapshot"};

struct step *new_step(struct pool *p, const char *name)
{
    struct step *s = allocate(1, sizeof *s);
    snprintf(s->name, sizeof s->name, "%s", name);
    s->pool = p;
    s->tags = (struct tags){.layer = NONE, .micro = NONE, .role = ROLE_OTHER};
    s->peak = allocate((size_t)p->machine->n_devices + 1, sizeof *s->peak);
    s->peak_total = allocate((size_t)p->machine->n_devices + 1, sizeof *s->peak_total);
    return s;
}

const char *layer_and_micro(char out[64], const struct task *t)
{
    *out = '\0';
    if (t->layer >= 0 && t->micro >= 0)
        snprintf(out, 64, " (layer %d, micro-batch %d)", t->layer, t->micro);
    else if (t->layer >= 0)
        snprintf(out, 64, " (layer %d)", t->layer);
    else if (t->micro >= 0)
        snprintf(out, 64, " (micro-batch %d)", t->micro);
    return out;
}

void free_task(struct task *t)
{
    if (t->context_bytes)
        free(t->context);
    free(t->args);
    free(t->access);
    free(t);
}

void free_step(struct step *s)
{
    if (s->free_running)
        s->free_running(s);
    for (size_t i = 0; i < s->n; i++)
        free_task(s->task[i]);
    free(s->task);
    free(s->peak);
    free(s->peak_total);
    free(s->level);
    free(s->after);
    free(s->edges);
    free(s);
}

void link_behind(struct task *t, struct task *where)
{
    t->prev = where;
    t->next = where->next;
    t->prev->next = t->next->prev = t;
}

struct task *append_task(struct step *s)
{
    if (s->n == MOST_TASKS)
        fail(EXIT_USAGE,
             "the list %s has more than %d tasks, which is as many as can be planned: take fewer devices (each sends "
             "what it updates to all others), layers or micro-batches",
             s->name, MOST_TASKS);
    struct task *t = *APPEND(s->task, s->n, s->cap) = allocate(1, sizeof *t);
    t->index = s->n - 1;
    if (s->cursor) {
        link_behind(t, s->cursor);
        s->cursor = t;
    }
    return t;
}

void permute_tasks(struct step *s, size_t first, const size_t *order, size_t n)
{
    struct task **before = copy_bytes(s->task + first, n * sizeof *before);
    for (size_t i = 0; i < n; i++) {
        struct task *t = before[order[i] - first];
        t->index = first + i;
        s->task[first + i] = t;
    }
    free(before);
}

static struct task *add_task(struct step *s, struct lane *lane, const char *name)
{
    CHECK(lane != NULL, "task %s has no lane", name);
    struct task *task = append_task(s);
    s->last_origin++;
    task->origin = s->last_origin;
    snprintf(task->name, sizeof task->name, "%s", name);
    task->lane = lane;
    task->layer = s->tags.layer;
    task->micro = s->tags.micro;
    task->role = s->tags.role;
    task->message = s->message;
    task->seconds = task->on_host.seconds = -1;
    task->when.every = 1;
    return task;
}

bool runs(const struct task *t, uint32_t iteration) { return iteration % t->when.every == t->when.remainder; }

/* Euclid's greatest common divisor. */
static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (a) {
        uint64_t rest = b % a;
        b = a;
        a = rest;
    }
    return b;
}

uint32_t repeat_of(const struct step *s, uint32_t most)
{
    uint64_t repeat = 1; /* the least common multiple of all `every` so far */
    for (size_t i = 0; i < s->n && repeat < most; i++) {
        uint64_t every = s->task[i]->when.every;
        repeat = repeat / common_divisor(every, repeat) * every;
    }
    return (uint32_t)MIN(repeat, most);
}

void add_access(struct task *t, struct tensor *tensor, enum access_mode mode)
{
    unsigned more = mode; /* the part of mode that it has not declared so far */
    CHECK(mode != ACCESS_NONE, "task %s does not say whether it reads or writes tensor %s", t->name, tensor->name);
    for (int i = 0; i < t->n_access; i++)
        if (t->access[i].tensor == tensor)
            more &= ~(unsigned)t->access[i].mode;
    if (more & ACCESS_READ)
        t->bytes += tensor->bytes;
    if (more & ACCESS_WRITE)
        t->bytes += tensor->bytes;
    t->access = reallocate(t->access, (size_t)t->n_access + 1, sizeof *t->access);
    t->access[t->n_access++] = (struct access){tensor, mode};
}

void set_elementwise(struct task *t)
{
    const size_t bytes = t->access[0].tensor->bytes;
    for (int i = 0; i < t->n_access; i++) {
        const struct tensor *x = t->access[i].tensor;
        CHECK(t->access[i].mode == ACCESS_READ || x->bytes == bytes,
              "task %s writes tensor %s of %zu bytes, but works on elements of %zu bytes", t->name, x->name, x->bytes,
              bytes);
    }
    t->elementwise = true;
}

void set_traffic(struct task *t, double elements) { t->bytes = (size_t)(elements * ELEMENT_BYTES); }

/* ---- kernels --------------------------------------------------------------------------------------------------- */

struct task *add_kernel(struct step *s, struct lane *lane, const char *name, const struct kernel_call *call)
{
    struct task *task = add_task(s, lane, name);
    task->action = ACT_KERNEL;
    task->file = call->file;
    task->function = call->function;
    task->grid = call->grid;
    task->args = copy_bytes(call->args, (size_t)call->n_args * sizeof *call->args);
    task->n_args = call->n_args;
    for (int k = 0; k < task->n_args; k++) { /* tensors move to the access list: what is bound is what is declared */
        struct arg *arg = &task->args[k];
        struct tensor *tensor = arg->given.tensor;
        if (arg->kind != ARG_TENSOR)
            continue;
        CHECK((tensor != NULL) == (arg->given.mode != ACCESS_NONE),
              "task %s, kernel %s, argument %d (%s): a tensor takes IN, OUT or INOUT, and only NO_TENSOR takes none",
              task->name, task->function, k, tensor ? tensor->name : "no tensor");
        CHECK(!tensor || tensor->device == lane->device, "task %s on %s takes tensor %s of device %s", task->name,
              lane->name, tensor->name, tensor->device->id);
        arg->i = tensor ? task->n_access : NONE;
        if (tensor)
            add_access(task, tensor, arg->given.mode);
        arg->given = (struct access){0};
    }
    return task;
}

/* ---- copies ---------------------------------------------------------------------------------------------------- */

/* Copies from the host's memory to the host's memory. */
static void run_copy(void *context, const struct task *t, uint32_t iteration)
{
    (void)context;
    const struct tensor *to = tensor_at(copy_target(t), iteration);
    const struct tensor *from = tensor_at(copy_source(t), iteration);
    memcpy(tensor_memory(to), tensor_memory(from), to->bytes);
}

bool copies_nothing(const struct task *t)
{
    if (!is_copy(t))
        return false; /* such a task may have fewer than two accesses */
    const struct tensor *to = copy_target(t), *from = copy_source(t);
    return to->storage == from->storage && to->offset == from->offset;
}

struct task *add_copy(struct step *s, struct lane *lane, const char *name, struct tensor *to, struct tensor *from)
{
    CHECK(to->bytes == from->bytes, "copy %s: %s has %zu bytes, %s has %zu", name, to->name, to->bytes, from->name,
          from->bytes);
    struct task *task = add_task(s, lane, name);
    task->run = lane->device->is_host ? run_copy : NULL;
    task->action = ACT_COPY;
    add_access(task, to, ACCESS_WRITE);
    add_access(task, from, ACCESS_READ);
    if (copies_nothing(task)) {
        task->seconds = 0;
        task->bytes = 0;
    }
    return task;
}

struct task *add_copy_for(struct step *s, const char *name, struct tensor *to, struct tensor *from, const char *purpose)
{
    bool up = from->device->is_host;
    if (strcmp(purpose, FOR_MOVES) == 0 && !up)
        purpose = FOR_ALL;
    struct device *d = up ? to->device : from->device;
    struct lane *lane = lane_for(s->pool->machine, d, up ? LANE_UPLOAD : LANE_DOWNLOAD, purpose);
    return add_copy(s, lane, name, to, from);
}

struct tensor *add_download(struct step *s, const char *name, struct tensor *from, const char *purpose)
{
    struct tensor *staged = as_buffer(tensor_like(s->pool, s->pool->machine->host, from));
    staged->class = MEM_WORK;
    staged->exclusive = EXCLUSIVE_SOME; /* else one move would wait for another */
    add_copy_for(s, name, staged, from, purpose);
    return staged;
}

/* ---- tasks that call functions --------------------------------------------------------------------------------- */

struct task *add_host(struct step *s, struct lane *lane, const char *name, host_function *run, void *context)
{
    struct task *t = add_task(s, lane, name);
    t->action = ACT_HOST;
    t->run = run;
    t->context = context;
    return t;
}

struct task *add_issue(struct step *s, struct lane *lane, const char *name, issue_function *issue,
                       const void *description, size_t bytes)
{
    struct task *t = add_task(s, lane, name);
    t->action = ACT_ISSUE;
    t->commands.issue = issue;
    t->context = copy_bytes(description, bytes);
    t->context_bytes = bytes;
    return t;
}
