/* support_schedule.c - lists of tasks that are run: machines, arrays, tasks, and the journey. */
#include "support_schedule.h"

#include "trainer/step/kernel_args.h"

/* ---- machines ---------------------------------------------------------------------------------------------------- */

struct machine *open_one(void) { return open_machine(&(struct machine_options){.devices = "0:0"}); }

struct machine *open_two(bool apart)
{
    const char *devices = two_devices();
    contexts_apart(apart);
    struct machine *machine = open_machine(&(struct machine_options){.devices = devices});
    restore_contexts();
    return machine;
}

void close_used(struct machine *machine)
{
    stop_lane_threads(machine);
    close_machine(machine);
}

/* ---- making lists ------------------------------------------------------------------------------------------------ */

struct tensor *new_array(struct pool *pool, struct device *device, const char *name, int64_t n, enum lifetime lifetime)
{
    const struct tensor_form form = {
        .device = device,
        .class = lifetime == PERSISTENT ? MEM_PARAMETERS : MEM_ACTIVATIONS,
        .name = name,
        .shape = SHAPE(n),
    };
    struct tensor *tensor = new_tensor(pool, &form);
    tensor->persistent = lifetime == PERSISTENT;
    return tensor;
}

static struct grid cover(const struct device *device, size_t n)
{
    size_t wg = device->shape.work_group;
    return (struct grid){1, {ceil_div(n, 4096) * wg, 1, 1}, {wg, 1, 1}};
}

static struct task *kernel_task(struct list *list, const char *name, const char *kernel, struct tensor *of,
                                const struct arg *args, int n)
{
    struct kernel_call call = {.file = "elementwise.cl", .kernel = kernel, .args = args, .n_args = n};
    call.grid = cover(of->device, count_elements(of));
    return add_kernel(list, of->device->lanes[LANE_COMPUTE], name, &call);
}
#define KERNEL(s, name, kernel, of, ...)                                                                               \
    kernel_task(s, name, kernel, of, (struct arg[]){__VA_ARGS__}, (int)COUNT(((struct arg[]){__VA_ARGS__})))

struct task *add_two(struct list *list, const char *name, struct tensor *out, struct tensor *a, struct tensor *b)
{
    return KERNEL(list, name, "add", out, OUT(out), IN(a), IN(b), INT(count_elements(out)));
}

struct task *add_fill(struct list *list, const char *name, struct tensor *out, float value)
{
    return KERNEL(list, name, "fill", out, OUT(out), FLOAT(value), INT(count_elements(out)));
}

struct task *add_accumulate(struct list *list, const char *name, struct tensor *sum, struct tensor *tensor)
{
    return KERNEL(list, name, "add_to", sum, INOUT(sum), IN(tensor), INT(count_elements(sum)));
}

struct list *new_list_on(struct machine *machine) { return new_list(new_pool(machine), "list"); }

void end_list(struct list *list)
{
    struct pool *pool = list->pool;
    struct machine *machine = pool->machine;
    free_list(list);
    free_pool(pool);
    close_used(machine);
}

void no_work(void *context, const struct task *task, uint32_t iteration)
{
    (void)context;
    (void)task;
    (void)iteration;
}

/* ---- the journey ------------------------------------------------------------------------------------------------- */

struct journey new_journey(host_function *make, void *context)
{
    struct journey journey = {.machine = open_one()};
    struct device *dev = &journey.machine->devices[0], *host = journey.machine->host;
    journey.pool = new_pool(journey.machine);
    struct list *list = journey.list = new_list(journey.pool, "journey");
    journey.h = new_array(journey.pool, host, "h", 64, TRANSIENT);
    journey.r = new_array(journey.pool, host, "r", 64, TRANSIENT);
    journey.d = new_array(journey.pool, dev, "d", 64, TRANSIENT);
    journey.o = new_array(journey.pool, dev, "o", 64, TRANSIENT);
    journey.p = new_array(journey.pool, dev, "p", 64, PERSISTENT);
    struct task *maker = add_host(list, host->lanes[LANE_CPU], "make", make, context);
    add_access(maker, journey.h, ACCESS_WRITE);
    add_copy(list, dev->lanes[LANE_UPLOAD], "carry", journey.d, journey.h);
    add_two(list, "twice", journey.o, journey.d, journey.d);
    journey.sum = add_accumulate(list, "sum", journey.p, journey.o);
    add_copy(list, dev->lanes[LANE_DOWNLOAD], "fetch", journey.r, journey.p);
    journey.show = add_host(list, host->lanes[LANE_REPORT], "show", no_work, NULL);
    add_access(journey.show, journey.r, ACCESS_READ);
    return journey;
}

void end_journey(struct journey *journey)
{
    drain(journey->list);
    free_list(journey->list);
    free_pool(journey->pool);
    close_used(journey->machine);
}
