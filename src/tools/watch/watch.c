/* watch.c - a watchdog, which explains a run that hangs, and ends it.
 *
 * Two threads look five times a second.  The asker asks the driver which tasks have ended; where the driver hangs, the
 * asker may hang in there too.  The watchdog asks nobody.  When no task has ended for watchdog_seconds, it prints the
 * frontier: on each lane the first task that has not ended, and the producers it waits for.  It ends the program after
 * five times as long, or when a signal has asked for the end and no task has ended in five seconds since.  Seconds are
 * counted by the thread's own waking, so a stop in a debugger does not trip it.
 */
#include "watch.h"

#include "trainer/run/lane_instances.h"
#include "trainer/train/hooks.h"
#include "trainer/train/train.h"

#include <time.h>

enum {
    TIMES_OF_PATIENCE = 5,   /* quiet times of watchdog_seconds after which the run is given up */
    SECONDS_AFTER_SIGNAL = 5 /* without progress after a signal: then it is given up, too */
};

double watchdog_seconds;

/* Guards `watched` and `patience`.  No thread holds this lock while it calls the driver. */
static pthread_mutex_t watching = PTHREAD_MUTEX_INITIALIZER;
static struct list *watched; /* changed only by a thread that also holds flights_lock */
static double patience;
static const struct timespec nap = {.tv_nsec = 200000000};

static uint64_t first_open(const struct lane_instances *lane_instances)
{
    uint64_t retired = lane_instances->retired;
    return MAX(retired, lane_instances->ended);
}

/* The latest instance of a task, in that iteration or before, that was not seen to end; NULL: there is none. */
static const struct instance *find_open(const struct list *list, uint32_t task, uint32_t iteration)
{
    const struct lane_instances *lane_instances = &list->running->lane_instances[list->tasks[task]->lane->index];
    for (uint64_t nth = lane_instances->given, first = first_open(lane_instances); nth > first; nth--) {
        const struct instance *instance = nth_instance(lane_instances, nth - 1);
        if (instance->task_index == task && instance->iteration <= iteration)
            return instance;
    }
    return NULL;
}

/* The producers that this instance of a task still waits for. */
static void print_waits(FILE *out, const struct list *list, const struct instance *instance)
{
    const struct task *task = list->tasks[instance->task_index];
    for (const struct edge *edge = task->edges; edge < task->edges + task->n_edges; edge++) {
        const struct task *producer = list->tasks[edge->producer];
        const struct instance *open = find_open(list, edge->producer, instance->iteration - edge->previous);
        if (edge->needs_wait && open)
            fprintf(out, "      waits for task %u %s of %s %u on lane %s\n", edge->producer, producer->name,
                    iteration_noun(list), open->iteration, producer->lane->name);
    }
}

void print_frontier(FILE *out, const struct list *list)
{
    const struct running *running = list->running;
    fprintf(out, "yard: no task of list %s has ended for a while; this is where each lane stands:\n", list->name);
    for (int i = 0; i < running->n_lanes; i++) {
        const struct lane_instances *lane_instances = &running->lane_instances[i];
        if (first_open(lane_instances) >= lane_instances->given)
            continue;
        const struct instance *instance = nth_instance(lane_instances, first_open(lane_instances));
        const struct task *task = list->tasks[instance->task_index];
        char position[LAYER_AND_MICRO];
        fprintf(out, "  lane %s: task %u %s%s of %s %u has not ended\n", task->lane->name, instance->task_index,
                task->name, layer_and_micro(position, task), iteration_noun(list), instance->iteration);
        print_waits(out, list, instance);
    }
}

static void update_ended(struct lane_instances *lane_instances)
{
    lane_instances->ended = first_open(lane_instances);
    while (lane_instances->ended < lane_instances->given &&
           has_ended(nth_flight(watched, lane_instances, lane_instances->ended)))
        lane_instances->ended++;
}

static _Noreturn void *asker_main(void *unused)
{
    (void)unused;
    while (true) {
        pthread_mutex_lock(&flights_lock);
        if (watched)
            for (int i = 0; i < watched->running->n_lanes; i++)
                update_ended(&watched->running->lane_instances[i]);
        pthread_mutex_unlock(&flights_lock);
        nanosleep(&nap, NULL);
    }
}

struct watchdog {
    uint64_t progress;   /* instances of tasks that were given to lanes, and ends that were seen, at the last look */
    double quiet;        /* seconds without progress */
    double since_signal; /* those of them since a signal asked for the end */
    double quiet_when_printed; /* the value of `quiet` when the frontier was printed last */
};

/* Counts the seconds without progress while instances are in flight. */
static void look_for_stall(struct watchdog *watchdog)
{
    double seconds = 1e-9 * (double)nap.tv_nsec;
    int n_lanes = watched ? watched->running->n_lanes : 0;
    uint64_t progress = 0, open = 0;
    for (int i = 0; i < n_lanes; i++) {
        const struct lane_instances *lane_instances = &watched->running->lane_instances[i];
        progress += lane_instances->given + first_open(lane_instances);
        open += lane_instances->given - first_open(lane_instances);
    }
    if (open && progress == watchdog->progress) {
        watchdog->quiet += seconds;
        if (interrupted())
            watchdog->since_signal += seconds;
    } else {
        watchdog->quiet = 0;
        watchdog->since_signal = 0;
        watchdog->quiet_when_printed = 0;
    }
    watchdog->progress = progress;
}

static void print_stall(struct watchdog *watchdog)
{
    if (pthread_mutex_trylock(&flights_lock) == 0)
        pthread_mutex_unlock(&flights_lock);
    else /* a thread that calls the driver holds the lock */
        inform("the driver has not come back from a call for %.0f s", watchdog->quiet);
    print_frontier(stderr, watched);
    watchdog->quiet_when_printed = watchdog->quiet;
}

static _Noreturn void *watchdog_main(void *unused)
{
    (void)unused;
    struct watchdog watchdog = {0};
    while (true) {
        pthread_mutex_lock(&watching);
        look_for_stall(&watchdog);
        bool given_up = watchdog.quiet >= TIMES_OF_PATIENCE * patience;
        bool stopped = watchdog.since_signal >= SECONDS_AFTER_SIGNAL;
        if (watchdog.quiet >= watchdog.quiet_when_printed + patience || stopped)
            print_stall(&watchdog);
        if (stopped)
            fail(EXIT_INTERRUPTED,
                 "interrupted, and no task has ended for %.0f s: the run is given up; what was saved before is whole",
                 watchdog.quiet);
        if (given_up)
            fail(EXIT_FAILED, "no task has ended for %.0f s: the run is given up; what was saved before is whole",
                 watchdog.quiet);
        pthread_mutex_unlock(&watching);
        nanosleep(&nap, NULL);
    }
}

static bool start_detached_thread(void *(*run)(void *unused))
{
    pthread_t thread;
    return pthread_create(&thread, NULL, run, NULL) == 0 && pthread_detach(thread) == 0;
}

void watch_list(struct list *list)
{
    static bool started;
    pthread_mutex_lock(&flights_lock);
    pthread_mutex_lock(&watching);
    bool is_watched = watchdog_seconds > 0;
    watched = is_watched ? list : NULL;
    patience = watchdog_seconds;
    pthread_mutex_unlock(&watching);
    pthread_mutex_unlock(&flights_lock);
    if (!is_watched || started)
        return;
    started = true; /* also where that fails: it is tried once */
    if (!start_detached_thread(asker_main) || !start_detached_thread(watchdog_main))
        warn("there is no watchdog, since the system gives no further thread: a run that hangs will not end by itself");
}

/* ---- a training -------------------------------------------------------------------------------------------------- */

/* A serial run needs no watchdog: it waits for the end of each task itself. */
static void start_watch(struct settings *settings)
{
    watchdog_seconds = settings->serial ? 0 : 60;
    execution.watch = watch_list;
}

static const struct hooks hooks = {
    .training_begins = start_watch,
};
static const struct training_parts training = {.hooks = &hooks};
const struct module module_watch = {
    .name = "watch",
    .training = &training,
};
