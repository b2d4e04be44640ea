/* test_execute.c - running a list whose tasks fail, hang, run in the background, or run only in some steps.
 *
 * It tests execute() and drain() of src/trainer/run, the threads of lanes, and the watchdog of src/tools/watch.  It
 * catches an error that names another task, a task that runs although one that it waits for has failed, a background
 * that holds training up, a hang that is not reported, and one that a signal does not end.
 *
 * To see it fail: in flights.c, report the last failure in place of the first: exchange the arguments of is_before().
 *
 * Tasks hang at a barrier until a test opens it, or for ever in a process of their own.  The steps in which a task runs
 * were worked out by hand.
 */
#include "cl/shared.h" /* brings: SIDE_CPU, SIDE_DEVICE */
#include "planning/pass/edit.h"
#include "tests/support/support_schedule.h"
#include "tools/pace/pace.h"
#include "tools/watch/watch.h"
#include "trainer/run/run_parts.h"

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

/* ---- failing ----------------------------------------------------------------------------------------------------- */

static void enqueue_broken(const struct task *task, uint32_t iteration, cl_uint n_wait, const cl_event *wait,
                           cl_event *done)
{
    (void)iteration;
    (void)n_wait;
    (void)wait;
    CL_MAKE(err, *done = clCreateUserEvent(task->lane->device->context->cl, &err));
    CL(clSetUserEventStatus(*done, CL_OUT_OF_RESOURCES));
}

static void run_never(void *context, const struct task *task, uint32_t iteration)
{
    (void)context;
    (void)task;
    (void)iteration;
    _exit(99);
}

/* A task that waits for the broken one fails too, and does not run. */
static void run_broken(bool serial)
{
    struct journey journey = new_journey(no_work, NULL);
    struct task *task = add_own_commands(journey.list, journey.machine->devices[0].lanes[LANE_COMPUTE], "broken",
                                         enqueue_broken, NULL, 0);
    task->layer = 2;
    add_access(task, journey.p, ACCESS_BOTH);
    const struct device *host = journey.machine->host;
    struct task *never = add_host(journey.list, host->lanes[LANE_CPU], "never", run_never, NULL);
    add_access(never, journey.p, ACCESS_READ);
    struct task *after = add_host(journey.list, host->lanes[LANE_DISK], "after", no_work, NULL);
    add_access(after, journey.h, ACCESS_WRITE);
    must(finish_lists(journey.pool, &journey.list, 1));
    execution.serial = serial;
    execute(journey.list, 1);
    drain(journey.list);
}

CASE(failed_event) { run_broken(false); }
CASE(failed_event_serial) { run_broken(true); }

TEST(a_failed_event_names_its_task)
{
    const char *sentence =
        "iteration 1 of list journey: task broken (layer 2) on lane 0:0 compute failed with CL_OUT_OF_RESOURCES";
    expect_case("failed_event", EXIT_FAILED, sentence, NULL);
    expect_case("failed_event_serial", EXIT_FAILED, sentence, NULL);
}

/* ---- what is stuck ----------------------------------------------------------------------------------------------- */

struct barrier { /* a host task stands before it until it is opened */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
};

static void wait_at_barrier(void *context, const struct task *task, uint32_t iteration)
{
    (void)task;
    (void)iteration;
    struct barrier *barrier = context;
    pthread_mutex_lock(&barrier->lock);
    while (!barrier->open)
        pthread_cond_wait(&barrier->changed, &barrier->lock);
    pthread_mutex_unlock(&barrier->lock);
}

static void open_barrier(struct barrier *barrier)
{
    pthread_mutex_lock(&barrier->lock);
    barrier->open = true;
    pthread_cond_signal(&barrier->changed);
    pthread_mutex_unlock(&barrier->lock);
}

TEST(the_frontier_names_what_is_stuck)
{
    struct barrier barrier = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    struct journey journey = new_journey(wait_at_barrier, &barrier);
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    must(finish_lists(journey.pool, &journey.list, 1));
    execute(journey.list, 1);
    execute(journey.list, 2);
    print_frontier(out, journey.list);
    open_barrier(&barrier);
    drain(journey.list);
    fclose(out);
    assert_contains(text, "lane host cpu: task 0 make of iteration 1 has not ended");
    assert_contains(text, "lane 0:0 upload: task 1 carry of iteration 1 has not ended\n"
                          "      waits for task 0 make of iteration 1 on lane host cpu\n");
    assert_contains(text, "lane 0:0 compute: task 2 twice");
    assert_contains(text, "      waits for task 1 carry of iteration 1 on lane 0:0 upload\n");
    assert_contains(text, "lane host report: task 5 show");
    free(text);
    end_journey(&journey);
}

/* ---- in the background, and now and then ------------------------------------------------------------------------- */

struct log { /* the runs that have been retired, by name and number */
    const char *name[64];
    uint32_t number[64];
    size_t n;
    uint64_t computed; /* when the last computation ended */
};

static void log_run(void *context, const struct list *list, const struct task *task, const struct task_flight *flight)
{
    (void)list;
    struct log *log = context;
    assert_at_most(flight->start, flight->end);
    assert_below(log->n, COUNT(log->name));
    if (task->extra.commands.only_last_event)
        assert_at_most(log->computed, flight->start);
    log->computed = task->lane->kind == LANE_COMPUTE ? flight->end : log->computed;
    log->name[log->n] = task->name;
    log->number[log->n++] = flight->iteration;
}

static size_t count_logged(const struct log *log, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < log->n; i++)
        if (strcmp(log->name[i], name) == 0)
            n++;
    return n;
}

/* Something on the disk lane does not end: later steps are computed, and their ends are seen, until a fifth instance of
 * it would be needed. */
TEST(the_background_holds_nobody_up)
{
    struct barrier barrier = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    struct journey journey = new_journey(no_work, NULL);
    struct log log = {.n = 0};
    struct tensor *kept = new_array(journey.pool, journey.machine->host, "kept", 4, PERSISTENT);
    struct lane *disk = journey.machine->host->lanes[LANE_DISK];
    struct task *persist = add_host(journey.list, disk, "persist", wait_at_barrier, &barrier);
    add_access(persist, kept, ACCESS_READ);
    journey.sum->extra.commands.only_last_event = true; /* it begins where `twice` ends */
    must(finish_lists(journey.pool, &journey.list, 1));
    struct log second = {.n = 0}; /* the log of a second observer */
    struct observer logger = {.ended = log_run, .context = &log}, other = {.ended = log_run, .context = &second};
    add_observer(&logger);
    add_observer(&other);
    for (uint32_t number = 1; number <= MOST_IN_FLIGHT; number++)
        execute(journey.list, number);
    retire_until(journey.list, journey.show, MOST_IN_FLIGHT);
    assert_int_equal(count_logged(&log, "sum"), MOST_IN_FLIGHT);
    assert_int_equal(count_logged(&log, "show"), MOST_IN_FLIGHT);
    assert_int_equal(count_logged(&log, "persist"), 0);
    open_barrier(&barrier);
    execute(journey.list, MOST_IN_FLIGHT + 1);
    drain(journey.list);
    remove_observer(&logger);
    remove_observer(&other);
    assert_int_equal(log.n, journey.list->n * (MOST_IN_FLIGHT + 1));
    assert_int_equal(second.n, log.n);
    end_journey(&journey);
}

#ifdef __linux__
static void note_policy(void *context, const struct task *task, uint32_t iteration)
{
    (void)task;
    struct sched_param ignored;
    int policy;
    pthread_getschedparam(pthread_self(), &policy, &ignored);
    ((int *)context)[iteration] = policy;
}

static void run_when_idle(struct job *job, cl_int status)
{
    make_idle();
    run_host_task(job, status);
}

/* A task that stands aside runs when nothing else wants the core; a later task of the same lane does not stand
 * aside. */
TEST(only_what_stands_aside_is_idle)
{
    int policy[4] = {-1, -1, -1, -1};
    struct task_flight flight = {.iteration = 0};
    struct journey journey = new_journey(no_work, NULL);
    struct lane *disk = journey.machine->host->lanes[LANE_DISK];
    struct task *task = add_host(journey.list, disk, "note", note_policy, policy);
    must(finish_lists(journey.pool, &journey.list, 1));
    for (uint32_t number = 1; number <= 3; number++) {
        const struct issue issue = {.list = journey.list, .task = task, .iteration = number};
        if (number == 2)
            give_job(disk, ASIDE_THREAD, new_job(&issue, &flight, run_when_idle));
        else
            give_job(disk, TASK_THREAD, new_job(&issue, &flight, run_host_task));
        wait_for_threads(journey.machine, ASIDE_THREAD);
        wait_for_threads(journey.machine, TASK_THREAD);
    }
    assert_int_equal(policy[1], SCHED_OTHER);
    assert_int_equal(policy[2], SCHED_IDLE);
    assert_int_equal(policy[3], SCHED_OTHER);
    end_journey(&journey);
}
#endif

static void add_number(void *context, const struct task *task, uint32_t iteration)
{
    (void)context;
    float *sum = tensor_memory(task->accesses[0].tensor);
    sum[0] = 10 * sum[0] + (float)iteration; /* the order of the writes shows */
}

/* The tensor is written on three lanes (every second step; steps 2, 5, 8; steps 3, 6, 9) and read on a fourth. */
static float run_now_and_then(bool serial)
{
    struct journey journey = new_journey(no_work, NULL);
    const struct device *host = journey.machine->host;
    struct tensor *tensor = new_array(journey.pool, journey.machine->host, "x", 4, PERSISTENT);
    struct task *even = add_host(journey.list, host->lanes[LANE_CPU], "even", add_number, NULL);
    struct task *third = add_host(journey.list, host->lanes[LANE_DISK], "third", add_number, NULL);
    struct task *whole = add_host(journey.list, host->lanes[LANE_FEED], "whole", add_number, NULL);
    even->extra.when.every = 2;
    third->extra.when.every = 3;
    third->extra.when.remainder = 2;
    whole->extra.when.every = 3;
    add_access(even, tensor, ACCESS_BOTH);
    add_access(third, tensor, ACCESS_BOTH);
    add_access(whole, tensor, ACCESS_BOTH);
    must(finish_lists(journey.pool, &journey.list, 1));
    start_delays(journey.list, 7);
    execution.serial = serial;
    for (uint32_t number = 1; number <= 5; number++)
        execute(journey.list, number);
    drain(journey.list);
    execution.serial = false;
    stop_pacing(journey.list);
    float result = *(float *)tensor_memory(tensor);
    end_journey(&journey);
    return result;
}

/* A digit for each write, of the step in which it was: `third` in 2, after `even` in 2, `whole` in 3, `even` in 4, and
 * `third` in 5. */
TEST(tasks_run_in_the_steps_that_they_name)
{
    assert_close(run_now_and_then(true), 22345.f, 0);
    assert_close(run_now_and_then(false), 22345.f, 0);
}

/* ---- paced ------------------------------------------------------------------------------------------------------- */

static bool second_has_ended; /* by when the first kernel was let go */

static void hold_first(void *context, const struct task *task, struct task_flight *flight)
{
    const struct list *list = context;
    if (task->index != 0)
        return;
    static const struct timespec tenth = {.tv_nsec = 100000000}; /* a kernel of 4 floats ends sooner, if it may begin */
    nanosleep(&tenth, NULL);
    pthread_mutex_lock(&flights_lock);
    const struct task_flight *second = latest_flight(list, list->tasks[1], flight->iteration);
    second_has_ended = second && event_status(second->work) <= CL_COMPLETE;
    pthread_mutex_unlock(&flights_lock);
}

/* Neither kernel reads what the other one writes, and both are on one lane. */
TEST(a_paced_kernel_waits_until_the_one_before_it_is_let_go)
{
    struct list *list = new_list_on(open_one());
    struct pacer pacer = {.hold_back = hold_first, .context = list};
    struct device *device = &list->pool->machine->devices[0];
    add_fill(list, "first", new_array(list->pool, device, "a", 4, PERSISTENT), 1);
    add_fill(list, "second", new_array(list->pool, device, "b", 4, PERSISTENT), 2);
    must(finish_lists(list->pool, &list, 1));
    list->running->pacer = &pacer;
    execute(list, 1);
    drain(list);
    assert_false(second_has_ended);
    end_list(list);
}

/* Counts by position in the list how often a task's end is held back. */
static void count_end(void *context, const struct task *task, struct task_flight *flight)
{
    (void)flight;
    int *times = context;
    times[task->index]++;
}

static void choose_device(void *context, const struct task *task, uint32_t iteration)
{
    (void)context;
    (void)iteration;
    *(int32_t *)tensor_memory(task->accesses[0].tensor) = SIDE_DEVICE;
}

/* The word says the device, so of each pair below the first task runs, and the second one is skipped. */
TEST(only_the_ends_of_tasks_that_have_run_are_held_back)
{
    struct list *list = new_list_on(open_one());
    const int expected[] = {2, 2, 0, 2, 0}; /* two iterations */
    int times[COUNT(expected)] = {0};
    struct pacer pacer = {.hold_back = count_end, .context = times};
    const struct device *host = list->pool->machine->host, *device = &list->pool->machine->devices[0];
    struct tensor *word = new_array(list->pool, list->pool->machine->host, "side", 1, PERSISTENT);
    struct tensor *from = new_array(list->pool, list->pool->machine->host, "from", 4, PERSISTENT);
    struct tensor *to = new_array(list->pool, &list->pool->machine->devices[0], "to", 4, PERSISTENT);
    word->extra.is_side_word = true;
    add_access(add_host(list, host->lanes[LANE_FEED], "choose", choose_device, NULL), word, ACCESS_WRITE);
    need_side_bits(add_host(list, host->lanes[LANE_CPU], "runs", no_work, NULL), word, SIDE_DEVICE, ASSUME_RUNS);
    need_side_bits(add_host(list, host->lanes[LANE_CPU], "skipped", run_never, NULL), word, SIDE_CPU, ASSUME_RUNS);
    need_side_bits(add_copy(list, device->lanes[LANE_UPLOAD], "copies", to, from), word, SIDE_DEVICE, ASSUME_RUNS);
    need_side_bits(add_copy(list, device->lanes[LANE_UPLOAD], "skipped", to, from), word, SIDE_CPU, ASSUME_RUNS);
    assert_int_equal(list->n, COUNT(expected));
    must(finish_lists(list->pool, &list, 1));
    list->running->pacer = &pacer;
    execute(list, 1);
    execute(list, 2);
    drain(list);
    for (size_t i = 0; i < COUNT(expected); i++)
        assert_int_equal(times[i], expected[i]);
    end_list(list);
}

/* ---- hanging ----------------------------------------------------------------------------------------------------- */

/* Hangs until the watchdog has said something. */
static void wait_for_stderr(void *context, const struct task *task, uint32_t iteration)
{
    (void)context;
    (void)task;
    (void)iteration;
    struct stat status;
    while (fstat(STDERR_FILENO, &status) == 0 && status.st_size == 0)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

CASE(hang)
{
    execution.watch = watch_list;
    watchdog_seconds = 0.3;
    struct journey journey = new_journey(wait_for_stderr, NULL);
    must(finish_lists(journey.pool, &journey.list, 1));
    execute(journey.list, 1);
    drain(journey.list);
    end_journey(&journey);
}

CASE(hang_for_ever)
{
    struct barrier barrier = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    execution.watch = watch_list;
    watchdog_seconds = 0.3;
    struct journey journey = new_journey(wait_at_barrier, &barrier);
    must(finish_lists(journey.pool, &journey.list, 1));
    execute(journey.list, 1);
    drain(journey.list);
}

/* The same, and the user types Ctrl-C.  The run is given up before 5 x 4 s are over, which is when it would be given up
 * without a signal. */
CASE(hang_after_a_signal)
{
    struct barrier barrier = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    execution.watch = watch_list;
    watchdog_seconds = 4;
    prepare_process("yard");
    defer_interrupts("the step");
    struct journey journey = new_journey(wait_at_barrier, &barrier);
    must(finish_lists(journey.pool, &journey.list, 1));
    execute(journey.list, 1);
    raise(SIGINT);
    drain(journey.list);
}

static void outlast_signal(void *context, const struct task *task, uint32_t iteration)
{
    (void)context;
    (void)task;
    (void)iteration;
    while (!interrupted())
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    nanosleep(&(struct timespec){.tv_sec = 1}, NULL); /* the watchdog looks a few times, and finds it still running */
}

/* The task that runs at the signal ends, and so do those behind it. */
CASE(end_after_a_signal)
{
    execution.watch = watch_list;
    watchdog_seconds = 60;
    prepare_process("yard");
    defer_interrupts("the step");
    struct journey journey = new_journey(outlast_signal, NULL);
    must(finish_lists(journey.pool, &journey.list, 1));
    execute(journey.list, 1);
    raise(SIGINT);
    drain(journey.list);
    end_journey(&journey);
}

/* The issuing thread does not come back from the driver. */
static void enqueue_for_ever(const struct task *task, uint32_t iteration, cl_uint n_wait, const cl_event *wait,
                             cl_event *done)
{
    (void)task;
    (void)iteration;
    (void)n_wait;
    (void)wait;
    (void)done;
    for (;;)
        pause();
}

CASE(driver_hangs)
{
    execution.watch = watch_list;
    watchdog_seconds = 0.3;
    struct journey journey = new_journey(no_work, NULL);
    add_own_commands(journey.list, journey.machine->devices[0].lanes[LANE_COMPUTE], "stuck", enqueue_for_ever, NULL, 0);
    must(finish_lists(journey.pool, &journey.list, 1));
    execute(journey.list, 1);
}

TEST(the_watchdog_names_what_hangs)
{
    expect_case("hang", 0, "no task of list journey has ended for a while", "lane host cpu: task 0 make", NULL);
}

TEST(the_watchdog_ends_what_hangs_for_ever)
{
    expect_case("hang_for_ever", EXIT_FAILED, "lane host cpu: task 0 make", "the run is given up", NULL);
    expect_case("driver_hangs", EXIT_FAILED, "the driver has not come back", "the run is given up", NULL);
}

/* Five seconds after the signal, with the exit code of a run that is interrupted. */
LONG_TEST(the_watchdog_ends_a_hang_after_a_signal)
{
    expect_case("hang_after_a_signal", EXIT_INTERRUPTED, "yard: interrupted: finishing the step",
                "this is where each lane stands", "lane host cpu: task 0 make of iteration 1 has not ended",
                "interrupted, and no task has ended for", "the run is given up; what was saved before is whole", NULL);
}

TEST(the_watchdog_lets_a_step_end_after_a_signal)
{
    struct outcome outcome = run_self("end_after_a_signal");
    assert_string_equal(outcome.text, "yard: interrupted: finishing the step; a second signal ends the run at once\n");
    assert_int_equal(outcome.code, EXIT_OK);
}
