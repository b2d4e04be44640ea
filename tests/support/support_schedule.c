/* support_schedule.c - lists of tasks that are run: machines, arrays, tasks, and the journey. */
#include "support_schedule.h"

/* ---- machines ---------------------------------------------------------------------------------------------------- */

struct machine *open_one(void) { return open_machine(&(struct machine_options){.devices = "0:0"}); }

struct machine *open_two(bool apart)
{
    const char *devices = two_devices();
    contexts_apart(apart);
    struct machine *m = open_machine(&(struct machine_options){.devices = devices});
    contexts_apart(false);
    return m;
}

void close_used(struct machine *m)
{
    for (int i = 0; i < m->n_lanes; i++) {
        stop_thread(&m->lane[i]->thread);
        stop_thread(&m->lane[i]->forwarder);
        stop_thread(&m->lane[i]->aside_thread);
    }
    close_machine(m);
}

/* ---- making lists ------------------------------------------------------------------------------------------------ */

struct tensor *new_array(struct pool *p, struct device *d, const char *name, int64_t n, bool persistent)
{
    const struct tensor_form form = {
        .device = d,
        .class = persistent ? MEM_PARAMETERS : MEM_ACTIVATIONS,
        .name = name,
        .shape = SHAPE(n),
    };
    struct tensor *t = new_tensor(p, &form);
    t->persistent = persistent;
    return t;
}

static struct grid cover(const struct device *d, size_t n)
{
    size_t wg = d->shape.work_group;
    return (struct grid){1, {ceil_div(n, 4096) * wg, 1, 1}, {wg, 1, 1}};
}

static struct task *kernel_task(struct step *s, const char *name, const char *function, struct tensor *of,
                                const struct arg *args, int n)
{
    struct kernel_call call = {.file = "elementwise.cl", .function = function, .args = args, .n_args = n};
    call.grid = cover(of->device, count_elements(of));
    return add_kernel(s, of->device->lane[LANE_COMPUTE], name, &call);
}
#define KERNEL(s, name, function, of, ...)                                                                             \
    kernel_task(s, name, function, of, (struct arg[]){__VA_ARGS__}, (int)COUNT(((struct arg[]){__VA_ARGS__})))

struct task *add_two(struct step *s, const char *name, struct tensor *out, struct tensor *a, struct tensor *b)
{
    return KERNEL(s, name, "add", out, OUT(out), IN(a), IN(b), INT(count_elements(out)));
}

struct task *add_fill(struct step *s, const char *name, struct tensor *out, float value)
{
    return KERNEL(s, name, "fill", out, OUT(out), FLOAT(value), INT(count_elements(out)));
}

struct task *add_accumulate(struct step *s, const char *name, struct tensor *sum, struct tensor *x)
{
    return KERNEL(s, name, "accumulate", sum, INOUT(sum), IN(x), INT(count_elements(sum)));
}

struct step *new_list(struct machine *m) { return new_step(new_pool(m), "list"); }

void end_list(struct step *s)
{
    struct pool *p = s->pool;
    struct machine *m = p->machine;
    free_step(s);
    free_pool(p);
    close_used(m);
}

void no_work(void *context, const struct task *t, uint32_t number)
{
    (void)context;
    (void)t;
    (void)number;
}

/* ---- the journey ------------------------------------------------------------------------------------------------- */

struct journey new_journey(host_function *make, void *context)
{
    struct journey j = {.machine = open_one()};
    struct device *dev = &j.machine->device[0], *host = j.machine->host;
    j.pool = new_pool(j.machine);
    struct step *s = j.step = new_step(j.pool, "journey");
    j.h = new_array(j.pool, host, "h", 64, false);
    j.r = new_array(j.pool, host, "r", 64, false);
    j.d = new_array(j.pool, dev, "d", 64, false);
    j.o = new_array(j.pool, dev, "o", 64, false);
    j.p = new_array(j.pool, dev, "p", 64, true);
    add_access(add_host(s, host->lane[LANE_CPU], "make", make, context), j.h, ACCESS_WRITE);
    add_copy(s, dev->lane[LANE_UPLOAD], "carry", j.d, j.h);
    add_two(s, "twice", j.o, j.d, j.d);
    add_accumulate(s, "sum", j.p, j.o);
    add_copy(s, dev->lane[LANE_DOWNLOAD], "fetch", j.r, j.p);
    add_access(add_host(s, host->lane[LANE_REPORT], "show", no_work, NULL), j.r, ACCESS_READ);
    return j;
}

void end_journey(struct journey *j)
{
    drain(j->step);
    free_step(j->step);
    free_pool(j->pool);
    close_used(j->machine);
}
