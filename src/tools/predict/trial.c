/* trial.c - how long each kind of task takes here: medians over a few training steps.
 *
 * `yard profile` writes them to a file.  A plan that is made right before training takes them as they are.
 */
#include "predict.h"
#include "techniques/pass/pass.h"
#include "tools/command/numbers.h"
#include "trainer/train/train.h"

#include <unistd.h>

enum { WARM_UP = 3, MEASURED = 9, ISSUED = 5, STEPS = WARM_UP + MEASURED + ISSUED };

struct series { /* nanoseconds */
    double *ns;
    size_t n, cap;
};
struct kind { /* tasks of one name, lane kind and size */
    struct task_cost cost;
    struct series took;
};
struct collected {
    struct kind *kinds;
    size_t n, cap;
    uint64_t *lane_end; /* by lane */
    struct series gaps[LANE_KINDS];
};

/* How long the task took, and if it waited for nothing else how long its lane stood still before it.  The steps of the
 * warm-up, in which kernels are compiled and caches filled, do not count. */
static void collect(void *context, const struct step *s, const struct task *t, const struct task_flight *flight)
{
    struct collected *c = context;
    const struct task_cost cost = {.lane = t->lane->kind, .layer = -1, .flops = t->flops, .bytes = (double)t->bytes};
    struct series *gaps = &c->gaps[t->lane->kind];
    struct kind *kind = c->kinds;
    uint64_t *before = &c->lane_end[t->lane->index];
    bool waits = false;
    (void)s;
    if (flight->number <= WARM_UP)
        return;
    while (kind < c->kinds + c->n && (kind->cost.lane != cost.lane || kind->cost.flops != cost.flops ||
                                      kind->cost.bytes != cost.bytes || strcmp(kind->cost.name, t->name) != 0))
        kind++;
    if (kind == c->kinds + c->n) {
        kind = APPEND(c->kinds, c->n, c->cap);
        kind->cost = cost;
        snprintf(kind->cost.name, sizeof kind->cost.name, "%s", t->name);
    }
    *APPEND(kind->took.ns, kind->took.n, kind->took.cap) = (double)(flight->end - flight->start);
    for (size_t i = 0; i < t->n_edges; i++)
        waits |= t->edges[i].wait;
    if (*before && !waits && flight->start >= *before)
        *APPEND(gaps->ns, gaps->n, gaps->cap) = (double)(flight->start - *before);
    *before = flight->end;
}

/* Medians of what steps on random weights take, and the host seconds to issue a task and, when all has ended, to
 * retire it. */
static void time_steps(struct trainer *t, struct costs *costs)
{
    struct collected c = {.lane_end = allocate((size_t)t->machine->n_lanes, sizeof *c.lane_end)};
    struct observer collector = {.ended = collect, .context = &c};
    const uint64_t begun = now_ns();
    double seconds[ISSUED];
    init_random(t->model, 1);
    add_observer(&collector);
    for (uint32_t i = 1; i <= STEPS; i++) {
        show_busy("timing each task", begun, (i - 1.0) / STEPS);
        if (i == WARM_UP + MEASURED + 1) {
            drain(t->train);
            remove_observer(&collector);
        }
        uint64_t start = now_ns();
        run_step(t, i);
        uint64_t issued = now_ns();
        if (i <= WARM_UP + MEASURED)
            continue;
        wait_lanes(t->train);
        uint64_t ended = now_ns();
        drain(t->train);
        seconds[STEPS - i] = 1e-9 * (double)(issued - start + (now_ns() - ended)) / (double)t->train->n;
    }
    erase_line();
    costs->issue = median(seconds, ISSUED);
    for (size_t i = 0; i < c.n; i++) {
        struct kind *k = &c.kinds[i];
        k->cost.ns = MAX(median(k->took.ns, k->took.n), 1);
        *APPEND(costs->tasks, costs->n_tasks, costs->cap_tasks) = k->cost;
        free(k->took.ns);
    }
    for (int k = LANE_COMPUTE; k < LANE_KINDS; k++) {
        costs->gap[k] = 1e-9 * median(c.gaps[k].ns, c.gaps[k].n);
        free(c.gaps[k].ns);
    }
    free(c.kinds), free(c.lane_end);
}

/* A small and a large copy, the best of some, give latency and bandwidth. */
static struct lane_speed measure_link(struct device *d, bool upload)
{
    static const size_t bytes[] = {4096, 32 << 20};
    double best[2] = {1e9, 1e9};
    cl_mem buffer;
    void *host = allocate(bytes[1], 1);
    CL_MAKE(buffer = clCreateBuffer(d->context->cl, CL_MEM_READ_WRITE, bytes[1], NULL, &err));
    write_buffer(d, buffer, 0, host, bytes[1]); /* the pages are touched */
    for (int i = 0; i < 14; i++) {
        uint64_t start = now_ns();
        if (upload)
            write_buffer(d, buffer, 0, host, bytes[i % 2]);
        else
            CL(clEnqueueReadBuffer(d->lane[LANE_DOWNLOAD]->queue, buffer, CL_TRUE, 0, bytes[i % 2], host, 0, NULL,
                                   NULL));
        best[i % 2] = MIN(best[i % 2], 1e-9 * (double)(now_ns() - start));
    }
    CL(clReleaseMemObject(buffer));
    free(host);
    return (struct lane_speed){(double)(bytes[1] - bytes[0]) / MAX(best[1] - best[0], 1e-9), best[0]};
}

struct costs *measure_costs(struct trainer *t)
{
    struct device *d = &t->machine->device[0];
    struct costs *c = allocate(1, sizeof *c);
    char driver[128] = "";
    clGetDeviceInfo(d->cl, CL_DRIVER_VERSION, sizeof driver - 1, driver, NULL);
    *c = (struct costs){.path = copy_string("a trial"),
                        .measured = true,
                        .device = copy_string(d->name),
                        .driver = make_printable(copy_string(driver), false),
                        .engine = copy_string(engine_name(t)),
                        .units = d->units,
                        .vector = d->vector,
                        .link_share = 1,
                        .scale_link = 1,
                        .scale_device = 1,
                        .scale_cpu = 1};
    time_steps(t, c);
    /* Updates that can also run on the host are timed there too, one thread alone. */
    for (size_t i = 0, n = c->n_tasks; i < t->train->n; i++) {
        const struct task *task = t->train->task[i];
        struct task_cost k = {.lane = LANE_CPU, .layer = -1, .flops = task->flops, .bytes = (double)task->bytes};
        bool known = task->host_run != adamw_on_host;
        for (size_t e = n; e < c->n_tasks; e++)
            known |= c->tasks[e].bytes == k.bytes;
        if (known)
            continue;
        snprintf(k.name, sizeof k.name, "%s", task->name);
        k.ns = 1e9 * measure_adamw(count_elements(task->access[0].tensor));
        *APPEND(c->tasks, c->n_tasks, c->cap_tasks) = k;
    }
    c->link[LANE_UPLOAD] = measure_link(d, true);
    c->link[LANE_DOWNLOAD] = measure_link(d, false);
    for (int i = 0; i < MEM_CLASSES; i++)
        c->peak_memory[i] = (double)t->train->peak[0][i];
    return c;
}

/* What updates take on a device of which a trial had none: from a small model, all of which is there, since costs are
 * scaled by bytes.  The rest of what is measured stays as it is. */
static void time_device_updates(const struct settings *trial, int n_devices, struct costs *costs)
{
    struct settings small = *trial;
    struct costs had = *costs;
    small.plain = true;
    small.source = (struct source){0};
    small.past = NULL;
    small.mesh = small.stages = NULL;
    small.device_memory = small.host_memory = 0;
    small.layers = small.heads = small.grad_groups = small.zero = 1;
    small.channels = 512;
    small.vocab = 2048;
    small.seq_len = 8;
    small.batch = n_devices;
    small.micro_batch = 0;
    small.pipeline = PIPELINE_1F1B;
    struct trainer *t = new_trainer(&small, LIST_TRAIN, false, false);
    time_steps(t, costs);
    free_trainer(t);
    costs->issue = had.issue;
    memcpy(costs->gap, had.gap, sizeof had.gap);
}

static bool asks_times(const struct pass *p, const struct run_facts *w) { return p->wants_times && p->wants_times(w); }

/* Where a plan is to be made of times that no file gives, they are measured, by a trainer without a plan: all updates
 * are on the device where that has the room, else on the CPU, and swaps only fit.  Where those had nothing to do, no
 * times are needed. */
void run_trial_for(struct settings *s)
{
    struct run_facts w = facts_of(s);
    const struct predict_options *o = &predict_options;
    bool measures = false, moved = false;
    if (o->profile || o->hardware || o->pace || !find_wanted(asks_times, &w))
        return;
    struct settings plain = *s;
    plain.trial = true;
    plain.log = plain.save = NULL;
    plain.time_tasks = true;
    struct trainer *t = new_trainer(&plain, LIST_TRAIN, true, false);
    int n_devices = t->machine->n_devices;
    struct pass_reports done = reports_of(t);
    for (size_t i = 0; i < done.n; i++) {
        const struct pass *p = done.report[i].pass;
        measures |= p->plans_at_once ? asks_times(p, &w) : p->makes_room && !done.report[i].declined;
        moved |= p->plans_at_once && !done.report[i].declined;
    }
    struct costs *c = measures ? measure_costs(t) : NULL;
    free_trainer(t);
    if (measures && moved)
        time_device_updates(&plain, n_devices, c);
    keep_trial(c);
}
