/* pace.c - lengthens the tasks of a real run: pads every task to its predicted end, or delays its end at random.
 *
 * A task of a list with a pacer is issued as ever, but other tasks do not wait for the end of its work: they wait for a
 * user event that the lane's thread completes later.  Pacing completes it at a deadline: the latest end of the task's
 * predecessors plus its own duration.  Deadlines follow from deadlines, so late wake-ups do not add up; a task whose
 * real work ends after its deadline is an overrun, and its successors count from there.  Work, queues, events and data
 * are all real, so a paced run of a server's schedule on a laptop exercises the event graph as the server would.
 */
#include "pace.h"
#include "planning/console/numbers.h"
#include "planning/predict/predict.h"
#include "trainer/train/hooks.h"
#include "trainer/train/train.h"

#include <math.h>
#include <time.h>

static void sleep_until(uint64_t when)
{
    for (uint64_t now = now_ns(); now < when; now = now_ns()) {
        uint64_t left = when - now;
        struct timespec wait = {(time_t)(left / 1000000000), (long)(left % 1000000000)};
        nanosleep(&wait, NULL);
    }
}

/* Where the padded end of task i's latest instance is kept; slot > 0: where that of its instance in the iteration with
 * this slot is kept.
 *
 * They differ where another task stands aside.  Say iterations 1 and 2 have slots 1 and 2, task i copies an update into
 * the iteration's slot, and the other task writes a slot to the disk.  When that writes slot 1, task i may have run in
 * iteration 2 already.  So the latest end is that of iteration 2, while what the other task has waited for is the end
 * in iteration 1. */
static uint64_t *end_of(const struct pace *pace, size_t i, int slot)
{
    return &pace->ended[(size_t)slot * pace->list->n + i];
}

/* The lane's thread calls hold_padded() or hold_delayed() when the task's work has ended, before other tasks are told.
 * The padded start comes after the end of the task before it on the lane, after the ends of its producers, and not
 * before it was issued.  When this runs, the producers have ended.  A producer does not run again before the tasks that
 * waited for it have ended, since they touch the same bytes; end_of() has the exception. */
static void hold_padded(void *context, const struct task *task, struct task_flight *flight)
{
    struct pace *pace = context;
    const struct list *list = pace->list;
    uint64_t start = MAX(flight->queued, pace->lane_end[task->lane->index]);
    int slot = task->extra.slot.needed ? slot_of(&list->pool->slots, flight->iteration) : 0;
    for (const struct edge *edge = task->edges; edge < task->edges + task->n_edges; edge++) {
        bool in_slot = list->tasks[edge->producer]->extra.slot.needed && !edge->previous;
        if (edge->needs_wait)
            start = MAX(start, *end_of(pace, edge->producer, in_slot ? slot : 0));
    }
    flight->start = start + (uint64_t)(1e9 * task->lane->gap_seconds * pace->pacer.scale);
    flight->end = flight->start + (uint64_t)(1e9 * pace->seconds[task->index] * pace->pacer.scale);
    pace->tasks++;
    uint64_t now = now_ns();
    if (now > flight->end) {
        pace->overruns++;
        pace->overrun_ns += now - flight->end;
        flight->end = now;
    }
    pace->lane_end[task->lane->index] = flight->end;
    *end_of(pace, task->index, 0) = flight->end;
    *end_of(pace, task->index, slot) = flight->end;
    sleep_until(flight->end);
}

static void hold_delayed(void *context, const struct task *task, struct task_flight *flight)
{
    const struct pace *pace = context;
    enum { LONGEST_DELAY_US = 300 };
    double delay = random_uniform(pace->seed, STREAM_DELAY, flight->iteration, task->index);
    if (delay >= 0.5) /* half of the tasks are not delayed at all */
        sleep_until(now_ns() + (uint64_t)(1e3 * LONGEST_DELAY_US * (delay - 0.5) * 2));
}

/* ---- starting and stopping --------------------------------------------------------------------------------------- */

static struct pace *start_pacing(struct list *list, struct pace initial)
{
    struct pace *pace = copy_bytes(&initial, sizeof initial);
    pace->ended = allocate(((size_t)list->pool->slots.n + 1) * list->n, sizeof *pace->ended);
    pace->lane_end = allocate_each(list->pool->machine->n_lanes, sizeof *pace->lane_end);
    pace->list = list;
    pace->pacer.context = pace;
    list->running->pacer = &pace->pacer;
    return pace;
}

/* Seconds that a real step takes, as fast as it goes: the second of two, since the first one is slow. */
static double time_real_step(struct list *list)
{
    execute(list, 1);
    drain(list);
    uint64_t begun = now_ns();
    execute(list, 2);
    drain(list);
    return 1e-9 * (double)(now_ns() - begun);
}

static double copy_and_take_median(const double *seconds, size_t n)
{
    double *sorted = copy_bytes(seconds, n * sizeof *seconds);
    double middle = median(sorted, n);
    free(sorted);
    return middle;
}

struct pace *start_padding(struct list *list, const double *seconds, double period, double scale)
{
    if (scale <= 0) {
        double half_busy = 2 * time_real_step(list) / period;
        scale = fmax(half_busy, 5e-3 / copy_and_take_median(seconds, list->n));
    }
    /* Asks whether it is within the limits, since of a NaN each comparison is false. */
    if (!(scale <= 1e9 && scale * period <= 1e6))
        fail(EXIT_USAGE, "--pace: a modelled step of %.3g s, shown at %.3g times its length, is longer than 1e6 s",
             period, scale);
    return start_pacing(list, (struct pace){.pacer = {.hold_back = hold_padded, .scale = scale, .word = "paced"},
                                            .seconds = copy_bytes(seconds, list->n * sizeof *seconds)});
}

void start_delays(struct list *list, uint64_t seed)
{
    start_pacing(list, (struct pace){.pacer = {.hold_back = hold_delayed}, .seed = seed});
}

void stop_pacing(struct list *list)
{
    if (!list->running || !list->running->pacer)
        return;
    struct pace *pace = list->running->pacer->context;
    drain(list);
    if (pace->seconds)
        inform("paced: %zu of %zu tasks overran their time, by %.3f modelled ms in all", pace->overruns, pace->tasks,
               1e-6 * (double)pace->overrun_ns / pace->pacer.scale);
    list->running->pacer = NULL;
    free(pace->seconds);
    free(pace->ended);
    free(pace->lane_end);
    free(pace);
}

/* ---- a training -------------------------------------------------------------------------------------------------- */

struct pace_options asked_pace;

static void check_pace_options(struct settings *settings)
{
    settings->demands.paced = asked_pace.file != NULL;
    settings->demands.time_tasks |= settings->demands.paced;
    settings->demands.draw_seed = asked_pace.delay_seed;
    asked_predict.pace = asked_pace.file;
}

/* Tasks are padded to the times that the list was simulated with. */
static void pad_training(struct trainer *trainer)
{
    char text[NUMBER_TEXT];
    struct simulation *simulation = must_simulate(trainer->train_list, costs_of(trainer));
    /* The steps that find the scale train on zeros, whose gradients are 0: Adam's state stays so. */
    struct pace *pace = start_padding(trainer->train_list, simulation->steady, simulation->period, asked_pace.scale);
    inform("paced: a modelled step of %.3f ms is shown at %.4g times its length, %s per step", 1e3 * simulation->period,
           pace->pacer.scale, format_seconds(text, simulation->period * pace->pacer.scale));
    free_simulation(simulation);
}

static void start_pacing_trainer(struct trainer *trainer)
{
    if (!trainer->train_list || trainer->settings->demands.trial)
        return;
    if (asked_pace.file)
        pad_training(trainer);
    if (asked_pace.delay_seed >= 0)
        start_delays(trainer->train_list, (uint64_t)asked_pace.delay_seed);
}

static void stop_pacing_trainer(struct trainer *trainer)
{
    if (trainer->train_list)
        stop_pacing(trainer->train_list);
}

static const struct option options[] = {
    {.name = "pace",
     .type = OPT_INPUT,
     .value = &asked_pace.file,
     .argument = "FILE",
     .group = GROUP_PREDICTING,
     .classes = OF_TRAIN,
     .help = "hold every task of a real run until its predicted end. A profile or a hardware description "
             "gives the times, which are all stretched by one factor"},
    {.name = "delay-seed",
     .type = OPT_LONG,
     .value = &asked_pace.delay_seed,
     .initial = "-1",
     .argument = "N",
     .low = -1,
     .high = 9e15,
     .group = GROUP_LOOKING,
     .classes = OF_TRAIN,
     .help = "delay the end of tasks at random, with this seed. With --overlap local the side of each update "
             "is random too (-1: off)"},
};
static const struct option_rule rules[] = {
    {"hardware", EXCLUDES, "pace", "both say how long tasks take"},
    {"profile", EXCLUDES, "pace", "both say how long tasks take"},
    {"pace", EXCLUDES, "delay-seed", "both decide when tasks end"},
    {"serial", EXCLUDES, "pace", "tasks run one after another, as fast as they can"},
    {"serial", EXCLUDES, "delay-seed", "tasks run one after another, as fast as they can"}};
static const struct hooks hooks = {
    .lists_ready = start_pacing_trainer,
    .trainer_closing = stop_pacing_trainer,
};
static const struct training_parts training = {.hooks = &hooks};
const struct module module_pace = {
    .name = "pace",
    .needs = "predict",
    .options = options,
    .n_options = COUNT(options),
    .rules = rules,
    .n_rules = COUNT(rules),
    .check_settings = check_pace_options,
    .training = &training,
};
