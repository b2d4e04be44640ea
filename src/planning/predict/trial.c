/* trial.c - how long each kind of task takes here: medians over a few training steps.
 *
 * `yard profile` writes them to a file.  A plan that is made right before training takes them as they are.
 */
#include "planning/console/numbers.h"
#include "planning/pass/traits.h"
#include "predict.h"
#include "trainer/device/driver.h"
#include "trainer/model/adamw_host.h"
#include "trainer/train/train.h"

#include <math.h>
#include <unistd.h>

enum {
    WARM_UP = 3,  /* steps in which kernels are compiled and caches filled */
    MEASURED = 9, /* steps of which each task's time is kept */
    ISSUED = 5,   /* steps of which the host's time is kept; each runs alone */
    STEPS = WARM_UP + MEASURED + ISSUED
};

struct samples {
    double *ns; /* nanoseconds */
    size_t n, cap;
};
struct task_kind { /* tasks of one name, lane kind and size */
    struct task_cost cost;
    struct samples took;
};
struct timings { /* of tasks, in the steps that are measured */
    struct task_kind *kinds;
    size_t n, cap;
    uint64_t *lane_end;              /* by lane: the end of its last task; 0: there was none */
    struct samples gaps[LANE_KINDS]; /* how long lanes stood still between tasks */
};

/* ---- the times of tasks ------------------------------------------------------------------------------------------ */

static bool is_alike(const struct task_cost *a, const struct task_cost *b)
{
    if (a->lane != b->lane || strcmp(a->name, b->name) != 0)
        return false;
    return a->flops == b->flops && a->bytes == b->bytes;
}

/* The kind of the task.  If no task of this kind has been timed before, the kind is added. */
static struct task_kind *find_or_add_kind(struct timings *timings, const struct task *task)
{
    struct task_cost cost = {
        .lane = task->lane->kind, .layer = NONE, .flops = task->flops, .bytes = (double)task->bytes};
    snprintf(cost.name, sizeof cost.name, "%s", task->name);
    for (size_t i = 0; i < timings->n; i++)
        if (is_alike(&timings->kinds[i].cost, &cost))
            return &timings->kinds[i];
    GROW(timings->kinds, timings->cap, timings->n + 1);
    timings->kinds[timings->n++] = (struct task_kind){.cost = cost};
    return &timings->kinds[timings->n - 1];
}

static bool waits_for_others(const struct task *task)
{
    for (const struct edge *edge = task->edges; edge < task->edges + task->n_edges; edge++)
        if (edge->needs_wait)
            return true;
    return false;
}

static void add_sample(struct samples *samples, uint64_t ns)
{
    GROW(samples->ns, samples->cap, samples->n + 1);
    samples->ns[samples->n++] = (double)ns;
}

/* A task has ended: notes how long it took and, if it waited for no other lane, how long its lane stood still before
 * it. */
static void add_timing(void *context, const struct list *list, const struct task *task,
                       const struct task_flight *flight)
{
    struct timings *timings = context;
    (void)list;
    if (flight->iteration <= WARM_UP)
        return;
    add_sample(&find_or_add_kind(timings, task)->took, flight->end - flight->start);
    uint64_t before = timings->lane_end[task->lane->index];
    if (before && !waits_for_others(task) && flight->start >= before)
        add_sample(&timings->gaps[task->lane->kind], flight->start - before);
    timings->lane_end[task->lane->index] = flight->end;
}

/* Runs the step alone, and returns the host's seconds per task: to issue it and, when all have ended, to retire it. */
static double time_issue(struct trainer *trainer, uint32_t number)
{
    uint64_t start = now_ns();
    issue_step(trainer, number);
    uint64_t issuing = now_ns() - start;
    wait_lanes(trainer->train_list);
    uint64_t ended = now_ns();
    drain(trainer->train_list);
    uint64_t retiring = now_ns() - ended;
    return 1e-9 * (double)(issuing + retiring) / (double)trainer->train_list->n;
}

static void add_task_times(const struct timings *timings, struct costs *costs)
{
    for (size_t i = 0; i < timings->n; i++) {
        struct task_kind *kind = &timings->kinds[i];
        kind->cost.ns = MAX(median(kind->took.ns, kind->took.n), 1);
        add_task_cost(costs, kind->cost);
    }
}

static void set_gaps(const struct timings *timings, struct costs *costs)
{
    for (int k = LANE_COMPUTE; k < LANE_KINDS; k++)
        costs->gap_seconds[k] = 1e-9 * median(timings->gaps[k].ns, timings->gaps[k].n);
}

static void free_timings(struct timings *timings)
{
    for (size_t i = 0; i < timings->n; i++)
        free(timings->kinds[i].took.ns);
    for (int k = LANE_COMPUTE; k < LANE_KINDS; k++)
        free(timings->gaps[k].ns);
    free(timings->kinds);
    free(timings->lane_end);
}

static void show_progress(uint64_t begun, uint32_t number)
{
    show_busy("timing each task", begun, (number - 1.0) / STEPS);
}

/* The times of tasks in the first steps on random weights.  begun: when all that is timed began.  The caller frees it
 * with free_timings(). */
static struct timings time_steps(struct trainer *trainer, uint64_t begun)
{
    struct timings timings = {.lane_end = allocate_each(trainer->machine->n_lanes, sizeof *timings.lane_end)};
    struct observer observer = {.ended = add_timing, .context = &timings};
    init_random(trainer->model, 1);
    add_observer(&observer);
    for (uint32_t i = 1; i <= WARM_UP + MEASURED; i++) {
        show_progress(begun, i);
        issue_step(trainer, i);
    }
    drain(trainer->train_list);
    remove_observer(&observer);
    erase_line();
    return timings;
}

/* The host's seconds per task, the median over the steps that come next. */
static double measure_issue(struct trainer *trainer, uint64_t begun)
{
    double seconds[ISSUED];
    for (uint32_t i = 0; i < ISSUED; i++) {
        uint32_t number = WARM_UP + MEASURED + 1 + i;
        show_progress(begun, number);
        seconds[i] = time_issue(trainer, number);
    }
    erase_line();
    return median(seconds, ISSUED);
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

/* Seconds of a copy to the device (LANE_UPLOAD) or from it (LANE_DOWNLOAD). */
static double time_copy(struct device *device, cl_mem buffer, void *host, size_t bytes, enum lane_kind direction)
{
    uint64_t start = now_ns();
    if (direction == LANE_UPLOAD)
        write_buffer(device, buffer, 0, host, bytes);
    else
        read_buffer(device, buffer, 0, host, bytes);
    return 1e-9 * (double)(now_ns() - start);
}

/* A small and a large copy give latency and bandwidth.  The fastest of several tries counts. */
static struct lane_speed measure_link(struct device *device, enum lane_kind direction)
{
    enum { SMALL = 4096, LARGE = 32 << 20, TRIES = 7 };
    double small = INFINITY; /* seconds of the fastest small copy */
    double large = INFINITY; /* and of the fastest large one */
    cl_mem buffer;
    void *host = allocate(LARGE, 1);
    CL_MAKE(err, buffer = clCreateBuffer(device->context->cl, CL_MEM_READ_WRITE, LARGE, NULL, &err));
    write_buffer(device, buffer, 0, host, LARGE); /* the pages are touched */
    for (int i = 0; i < TRIES; i++) {
        small = fmin(small, time_copy(device, buffer, host, SMALL, direction));
        large = fmin(large, time_copy(device, buffer, host, LARGE, direction));
    }
    CL(clReleaseMemObject(buffer));
    free(host);
    return (struct lane_speed){.bytes_per_s = (LARGE - SMALL) / fmax(large - small, 1e-9), .latency = small};
}

/* ---- updates on the host ----------------------------------------------------------------------------------------- */

/* Is an update of that size among the tasks from `first` on? */
static bool has_update(const struct costs *costs, size_t first, double bytes)
{
    for (size_t i = first; i < costs->n_tasks; i++)
        if (costs->tasks[i].bytes == bytes)
            return true;
    return false;
}

/* n numbers of that value; the caller frees them. */
static float *new_floats(size_t n, float value)
{
    float *numbers = allocate(n, sizeof *numbers);
    for (size_t i = 0; i < n; i++)
        numbers[i] = value;
    return numbers;
}

/* Seconds that AdamW takes on the host for so many elements, alone on a core.  The fastest of several tries counts.  If
 * there are very many elements, some are updated, and the time is scaled. */
static double measure_adamw(size_t elements)
{
    enum { LARGEST = 1 << 22, TRIES = 5 };
    /* With these numbers none becomes so small that a processor takes longer for it. */
    static const struct adamw adamw = {.scale = 1,
                                       .beta1 = 0.9f,
                                       .one_minus_beta1 = 0.1f,
                                       .beta2 = 0.99f,
                                       .one_minus_beta2 = 0.01f,
                                       .decay = 1,
                                       .eps = 1e-8f,
                                       .step_size = 1e-3f,
                                       .inv_sqrt_correction2 = 1};
    size_t n = MIN(elements, (size_t)LARGEST);
    float *values = new_floats(n, 1);
    float *gradients = new_floats(n, 1);
    float *m = new_floats(n, 0);
    float *v = new_floats(n, 0);
    double best = INFINITY; /* seconds */
    for (int i = 0; i < TRIES; i++) {
        uint64_t start = now_ns();
        update_elements(values, m, v, gradients, n, &adamw);
        best = fmin(best, 1e-9 * (double)(now_ns() - start));
    }
    free(values);
    free(gradients);
    free(m);
    free(v);
    return best * (double)elements / (double)n;
}

/* Updates that can also run on the host are timed there too, one thread alone. */
static void time_host_updates(const struct list *list, struct costs *costs)
{
    size_t first = costs->n_tasks;
    for (size_t i = 0; i < list->n; i++) {
        const struct task *task = list->tasks[i];
        struct task_cost cost = {.lane = LANE_CPU, .layer = NONE, .flops = task->flops, .bytes = (double)task->bytes};
        if (task->extra.on_host.function != adamw_on_host || has_update(costs, first, cost.bytes))
            continue;
        snprintf(cost.name, sizeof cost.name, "%s", task->name);
        cost.ns = 1e9 * measure_adamw(count_elements(task->accesses[0].tensor));
        add_task_cost(costs, cost);
    }
}

/* ---- all that is measured ---------------------------------------------------------------------------------------- */

const char *engine_name(const struct trainer *trainer)
{
    return word_of("gemm", (int)choose_engine(&trainer->machine->devices[0], trainer->settings->kernels.gemm));
}

struct costs *measure_costs(struct trainer *trainer)
{
    struct device *device = &trainer->machine->devices[0];
    struct costs *costs = new_costs("a trial");
    uint64_t begun = now_ns();
    char driver[128];
    device_text(device->cl, CL_DRIVER_VERSION, driver, sizeof driver);
    costs->measured = true;
    costs->device = copy_string(device->name);
    costs->driver = copy_string(driver);
    costs->engine = copy_string(engine_name(trainer));
    costs->units = device->units;
    costs->vector = device->shape.vector;
    struct timings timings = time_steps(trainer, begun);
    add_task_times(&timings, costs);
    set_gaps(&timings, costs);
    free_timings(&timings);
    costs->issue_seconds = measure_issue(trainer, begun);
    time_host_updates(trainer->train_list, costs);
    costs->speeds[LANE_UPLOAD] = measure_link(device, LANE_UPLOAD);
    costs->speeds[LANE_DOWNLOAD] = measure_link(device, LANE_DOWNLOAD);
    for (int i = 0; i < MEM_CLASSES; i++)
        costs->peak_memory[i] = (double)trainer->train_list->extra.peak[0][i];
    return costs;
}

/* ---- a trial ----------------------------------------------------------------------------------------------------- */

/* A small training on n devices like those of devices_of, with room for all updates on them.
 *
 *     channels    a layer has 3 million weights: an update takes far longer than a launch, and fits everywhere
 *     vocab       the embedding has a third of that, for a second size
 *     seq_len     few tokens: forward and backward only have to be there
 *     AdamW       any values with which all numbers stay finite: the time does not depend on them */
static struct settings small_settings(const struct settings *devices_of, int n)
{
    return (struct settings){
        .devices = devices_of->devices,
        .vector = devices_of->vector,
        .kernels = devices_of->kernels,
        .serial = devices_of->serial,
        .clip = devices_of->clip, /* 0: the list has no tasks for the norm */
        .turn_order = &pipeline_orders[PIPELINE_1F1B],
        .zero = 1,
        .layers = 1,
        .heads = 1,
        .channels = 512,
        .vocab = 2048,
        .seq_len = 8,
        .batch = n,
        .grad_groups = 1,
        .steps = STEPS,
        .lr = 3e-4,
        .beta1 = 0.9,
        .beta2 = 0.95,
        .eps = 1e-8,
        .demands =
            {
                .draw_seed = -1,
                .time_tasks = true,
                .trial = true,
                .no_passes = true,
            },
    };
}

/* Times updates on a device, where the trial had none there: a task's time is scaled by its bytes from one of the same
 * name. */
static void time_device_updates(const struct settings *trial, int n_devices, struct costs *costs)
{
    struct settings small = small_settings(trial, n_devices);
    struct trainer *trainer = new_trainer(&small, LIST_TRAIN);
    struct timings timings = time_steps(trainer, now_ns());
    add_task_times(&timings, costs);
    free_timings(&timings);
    free_trainer(trainer);
}

/* Does a pass need times, after what it has done to the list without any?  One that only makes room needs none where
 * it had nothing to do. */
static bool needs_times(const struct pass_report *done)
{
    return has_trait(done->pass, MAKES_ROOM) ? !done->declined : has_trait(done->pass, WANTS_TIMES);
}

/* Does some pass need times, after what these have done? */
static bool some_need_times(struct pass_reports done)
{
    for (size_t i = 0; i < done.n; i++)
        if (needs_times(&done.items[i]))
            return true;
    return false;
}

/* Has a pass moved updates to the CPU? */
static bool have_moved_updates(struct pass_reports done)
{
    for (size_t i = 0; i < done.n; i++)
        if (has_trait(done.items[i].pass, MOVES_UPDATES) && !done.items[i].declined)
            return true;
    return false;
}

/* In the trainer of the trial, all updates are on the device where that has the room, else on the CPU. */
void run_trial_for(struct settings *settings)
{
    struct run_facts facts = facts_of(settings);
    const struct predict_options *options = &asked_predict;
    if (options->profile || options->hardware || options->pace || !find_wanted(WANTS_TIMES, &facts))
        return;
    struct settings plain = *settings;
    plain.demands.trial = true;
    plain.log = NULL;
    plain.save = NULL;
    plain.demands.time_tasks = true;
    struct trainer *trainer = new_trainer(&plain, LIST_TRAIN | OPEN_DATA);
    int n_devices = trainer->machine->n_devices;
    const struct pass_reports done = reports_of(trainer);
    bool measures = some_need_times(done);
    bool moved = have_moved_updates(done);
    struct costs *costs = measures ? measure_costs(trainer) : NULL;
    free_trainer(trainer);
    if (measures && moved)
        time_device_updates(&plain, n_devices, costs);
    use_trial_costs(costs);
}
