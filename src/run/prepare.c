/* prepare.c - from lists on paper to lists that can run: addresses, edges, kernels with their arguments, slots. */
#include "run.h"

static cl_int set_argument(const struct task *t, cl_kernel kernel, cl_uint i)
{
    const struct arg *a = &t->args[i];
    cl_mem buffer = a->kind == ARG_TENSOR && a->i >= 0 ? tensor_buffer(t->access[a->i].tensor) : NULL;
    switch (a->kind) {
    case ARG_TENSOR:
        return clSetKernelArg(kernel, i, sizeof buffer, &buffer);
    case ARG_INT:
    case ARG_ELEMENTS:
        return clSetKernelArg(kernel, i, sizeof a->i, &a->i);
    case ARG_FLOAT:
        return clSetKernelArg(kernel, i, sizeof a->f, &a->f);
    case ARG_LOCAL:
        return clSetKernelArg(kernel, i, (size_t)a->i, NULL);
    }
    return CL_INVALID_VALUE;
}

static cl_kernel prepare_kernel(const struct task *t)
{
    cl_kernel kernel = make_kernel(t->lane->device, t->file, t->function);
    for (int i = 0; i < t->n_args; i++) {
        cl_int code = set_argument(t, kernel, (cl_uint)i);
        if (code != CL_SUCCESS)
            fail(EXIT_FAILED,
                 "task %s: argument %d of kernel %s (cl/%s): %s; does the .cl file still take the same "
                 "arguments?",
                 t->name, i, t->function, t->file, cl_error_name(code));
    }
    return kernel;
}

static void stop_running(struct step *s)
{
    struct running *r = s->running;
    for (int i = 0; i < r->n_queues; i++) {
        CHECK(r->queue[i].given == r->queue[i].retired, "list %s is freed while tasks of it are in flight", s->name);
        free(r->queue[i].run);
    }
    for (size_t i = 0; i < s->n; i++) {
        if (r->task[i].kernel)
            CL(clReleaseKernel(r->task[i].kernel));
        for (int run = 0; run < MOST_RUNS; run++)
            free(r->task[i].slot[run].foreign);
    }
    free(r->task), free(r->queue), free(r->wait);
    free(r);
}

static void make_running(struct step *s)
{
    const struct machine *m = s->pool->machine;
    struct running *r = s->running = allocate(1, sizeof *r);
    size_t most = 0;
    s->stop = stop_running;
    r->task = allocate(s->n, sizeof *r->task);
    r->n_queues = m->n_lanes;
    r->queue = allocate((size_t)m->n_lanes, sizeof *r->queue);
    for (size_t i = 0; i < s->n; i++) {
        const struct task *t = s->task[i];
        r->queue[t->lane->index].cap += MOST_RUNS;
        most = MAX(most, t->n_edges);
        r->task[i].kernel = t->file ? prepare_kernel(t) : NULL;
        for (size_t run = 0; t->notify && run < MOST_RUNS; run++)
            r->task[i].slot[run].foreign = allocate((size_t)m->n_contexts, sizeof(cl_event));
    }
    for (int i = 0; i < r->n_queues; i++)
        r->queue[i].run = allocate(r->queue[i].cap, sizeof *r->queue[i].run);
    r->wait = allocate(most + 1, sizeof *r->wait);
}

struct problem *finish_steps(struct pool *p, struct step *const *steps, size_t n)
{
    struct problem *wrong = place(p, steps, n, false);
    if (wrong)
        return wrong;
    for (size_t k = 0; k < n; k++) {
        struct step *s = steps[k];
        depend(s, true);
        make_running(s);
    }
    return NULL;
}
