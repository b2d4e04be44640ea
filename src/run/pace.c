/* pace.c - wrappers round a lane's issue: padding every task to its predicted end, stretching it in slow motion, or
 * delaying it at random.
 *
 * A wrapped task is issued as ever, but what others wait for is not the end of its work: it is a user event that the
 * lane's thread completes later.  Pacing: at an absolute deadline, the latest end of its predecessors plus its own
 * duration.  Deadlines follow from deadlines, so late wake-ups do not add up; a task whose real work ends after its
 * deadline is an overrun, and its successors count from there.  Work, queues, events and data are all real, so a paced
 * run of a server's schedule on a laptop exercises the event graph as the server would.
 */
#include "run.h"

#include <math.h>
#include <time.h>

struct pace {
    double scale;         /* seconds shown per modelled second */
    double *seconds;      /* of a padded list: per task, modelled */
    uint64_t seed;        /* of a delayed one */
    uint64_t *ended;      /* when each task last ended, on the padded clock */
    uint64_t *lane_end;   /* and each lane, the lane's own thread's business */
    pthread_mutex_t lock; /* guards what follows */
    size_t tasks, overruns;
    double overrun_ns;
};

enum { LONGEST_DELAY_US = 300 };

/* ---- ends ------------------------------------------------------------------------------------------------------ */

static void sleep_until(uint64_t when)
{
    for (uint64_t now = now_ns(); now < when; now = now_ns()) {
        uint64_t left = when - now;
        nanosleep(&(struct timespec){(time_t)(left / 1000000000), (long)(left % 1000000000)}, NULL);
    }
}

/* The padded start: behind the task before it on the lane, behind what it waits for, and not before it was issued.  A
 * producer has ended, and it does not run again before all that waited for it: both touch the same bytes. */
static uint64_t padded_start(const struct pace *p, const struct task *t, uint64_t queued)
{
    uint64_t start = MAX(queued, p->lane_end[t->lane->index]);
    for (size_t k = 0; k < t->n_edges; k++)
        if (t->edges[k].wait)
            start = MAX(start, p->ended[t->edges[k].from]);
    return start;
}

static void count_task(struct pace *p, uint64_t late)
{
    pthread_mutex_lock(&p->lock);
    p->tasks++;
    p->overruns += late > 0;
    p->overrun_ns += (double)late;
    pthread_mutex_unlock(&p->lock);
}

/* The lane's thread calls one of these when the task's work has ended, before anyone is told. */
static void finish_padded(struct step *s, uint32_t number, size_t i, struct slot *slot)
{
    (void)number;
    struct pace *p = s->running->wrapper;
    const struct task *t = s->task[i];
    double scale = p->scale * asked_slowness();
    slot->start = padded_start(p, t, slot->queued) + (uint64_t)(1e9 * t->lane->gap * scale);
    slot->end = slot->start + (uint64_t)(1e9 * p->seconds[i] * scale);
    uint64_t now = now_ns(), late = now > slot->end ? now - slot->end : 0;
    count_task(p, late);
    slot->end += late;
    p->ended[i] = p->lane_end[t->lane->index] = slot->end;
    sleep_until(slot->end);
}

/* Its own time, counted from the padded start. */
static void finish_stretched(struct step *s, uint32_t number, size_t i, struct slot *slot)
{
    (void)number;
    struct pace *p = s->running->wrapper;
    const struct task *t = s->task[i];
    task_times(t, slot, now_ns());
    uint64_t took = slot->end - MIN(slot->start, slot->end), start = padded_start(p, t, slot->queued);
    slot->end = stretch(start, start + took);
    slot->start = start;
    p->ended[i] = p->lane_end[t->lane->index] = slot->end;
}

static void finish_delayed(struct step *s, uint32_t number, size_t i, struct slot *slot)
{
    (void)slot;
    double delay = random_uniform(s->running->wrapper->seed, STREAM_DELAY, number, i);
    if (delay < 0.5) /* half of the tasks are not delayed at all */
        return;
    sleep_until(now_ns() + (uint64_t)(1e3 * LONGEST_DELAY_US * (delay - 0.5) * 2));
}

/* ---- starting and stopping ------------------------------------------------------------------------------------- */

static void wrap(struct step *s, struct pace *p, finish_function *finish)
{
    p->ended = allocate(s->n, sizeof *p->ended);
    p->lane_end = allocate((size_t)s->running->n_queues, sizeof *p->lane_end);
    pthread_mutex_init(&p->lock, NULL);
    s->running->wrapper = p;
    s->running->finish = finish;
}

/* Seconds of one real step, as fast as it goes: the second of two. */
static double real_step(struct step *s)
{
    uint64_t start = 0;
    for (uint32_t i = 1; i <= 2; i++) {
        start = now_ns();
        execute(s, i);
        drain(s);
    }
    return 1e-9 * (double)(now_ns() - start);
}

static double choose_scale(struct step *s, const double *seconds, double period)
{
    double *sorted = copy_bytes(seconds, s->n * sizeof *seconds);
    double median = trace_median(sorted, s->n), half_busy = 2 * real_step(s) / period;
    free(sorted);
    return fmax(half_busy, 5e-3 / median);
}

struct pace *start_pacing(struct step *s, const double *seconds, double period, double scale)
{
    struct pace *p = allocate(1, sizeof *p);
    p->scale = scale > 0 ? scale : choose_scale(s, seconds, period);
    if (!(p->scale <= 1e9 && p->scale * period <= 1e6))
        fail(
            EXIT_USAGE,
            "--pace: a modelled step of %.3g s, shown at %.3g times its length, is longer than 1e6 s: check the file's "
            "numbers",
            period, p->scale);
    p->seconds = copy_bytes(seconds, s->n * sizeof *seconds);
    wrap(s, p, finish_padded);
    return p;
}

void start_delays(struct step *s, uint64_t seed)
{
    struct pace *p = allocate(1, sizeof *p);
    p->seed = seed;
    wrap(s, p, finish_delayed);
}

void adopt_slowness(struct step *s)
{
    bool slow = asked_slowness() > 1;
    if (!slow && s->running->finish == finish_stretched)
        stop_pacing(s);
    if (!s->running->wrapper && slow && !execution.serial) {
        drain(s);
        wrap(s, allocate(1, sizeof(struct pace)), finish_stretched);
    }
    if (execution.trace) /* last: what ran before has its record */
        trace_slowed(execution.trace, slow);
}

double pace_scale(const struct pace *p) { return p->scale; }

void pace_overruns(const struct pace *p, size_t *n, size_t *tasks, double *seconds)
{
    *n = p->overruns;
    *tasks = p->tasks;
    *seconds = 1e-9 * p->overrun_ns / p->scale;
}

void stop_pacing(struct step *s)
{
    struct pace *p = s->running ? s->running->wrapper : NULL;
    if (!p)
        return;
    drain(s);
    if (p->seconds)
        note("paced: %zu of %zu tasks overran their time, by %.3f modelled ms in all", p->overruns, p->tasks,
             1e-6 * p->overrun_ns / p->scale);
    s->running->wrapper = NULL;
    s->running->finish = NULL;
    pthread_mutex_destroy(&p->lock);
    free(p->seconds), free(p->ended), free(p->lane_end);
    free(p);
}
