/* prepare.c - from lists on paper to lists that can run: addresses, edges, kernels with their arguments, slots. */
#include "run.h"

static cl_int set_argument(const struct task *t, cl_uint i)
{
    const struct arg *a = &t->args[i];
    cl_mem buffer = a->kind == ARG_TENSOR && a->i >= 0 ? tensor_buffer(t->access[a->i].tensor) : NULL;
    switch (a->kind) {
    case ARG_TENSOR:
        return clSetKernelArg(t->kernel, i, sizeof buffer, &buffer);
    case ARG_INT:
    case ARG_ELEMENTS:
        return clSetKernelArg(t->kernel, i, sizeof a->i, &a->i);
    case ARG_FLOAT:
        return clSetKernelArg(t->kernel, i, sizeof a->f, &a->f);
    case ARG_LOCAL:
        return clSetKernelArg(t->kernel, i, (size_t)a->i, NULL);
    }
    return CL_INVALID_VALUE;
}

static void set_arguments(struct task *t)
{
    t->kernel = make_kernel(t->lane->device, t->file, t->function);
    for (int i = 0; i < t->n_args; i++) {
        cl_int code = set_argument(t, (cl_uint)i);
        if (code != CL_SUCCESS)
            fail(EXIT_FAILED,
                 "task %s: argument %d of kernel %s (cl/%s): %s; does the .cl file still take the same "
                 "arguments?",
                 t->name, i, t->function, t->file, cl_error_name(code));
    }
}

/* What is decided late comes to its queue late: it would not keep its turn among others. */
static void check_lanes(const struct step *s)
{
    const struct task **first = allocate((size_t)s->pool->machine->n_lanes, sizeof *first);
    for (size_t i = 0; i < s->n; i++) {
        const struct task *t = s->task[i], **of = &first[t->lane->index];
        *of = *of ? *of : t;
        CHECK(t->lane->device->is_host || !t->needs == !(*of)->needs, "tasks %s and %s share lane %s", t->name,
              (*of)->name, t->lane->name);
    }
    free(first);
}

static void make_slots(struct step *s)
{
    const struct machine *m = s->pool->machine;
    size_t most = 0;
    s->slots = allocate(s->n * MOST_RUNS, sizeof *s->slots);
    s->queue = allocate((size_t)m->n_lanes, sizeof *s->queue);
    s->n_queues = m->n_lanes;
    for (size_t i = 0; i < s->n; i++) {
        const struct task *t = s->task[i];
        s->queue[t->lane->index].cap += MOST_RUNS;
        most = MAX(most, t->n_edges);
        for (size_t run = 0; t->notify && run < MOST_RUNS; run++)
            s->slots[i * MOST_RUNS + run].foreign = allocate((size_t)m->n_contexts, sizeof(cl_event));
    }
    for (int i = 0; i < m->n_lanes; i++)
        s->queue[i].run = allocate(s->queue[i].cap, sizeof *s->queue[i].run);
    s->wait = allocate(most + 1, sizeof *s->wait);
}

struct problem *finish_steps(struct pool *p, struct step *const *steps, size_t n)
{
    struct problem *wrong = place(p, steps, n, false);
    if (wrong)
        return wrong;
    for (size_t k = 0; k < n; k++) {
        struct step *s = steps[k];
        depend(s, true);
        for (size_t i = 0; i < s->n; i++)
            if (s->task[i]->file)
                set_arguments(s->task[i]);
        check_lanes(s);
        make_slots(s);
        s->ready = true;
    }
    return NULL;
}
