/* pace.c - wrappers round a lane's issue: padding every task to its predicted end, or delaying it at random.
 *
 * A wrapped task is issued as ever, but what others wait for is not the end of its work: it is a user event that the
 * lane's thread completes later.  Pacing: at an absolute deadline, the latest end of its predecessors plus its own
 * duration.  Deadlines follow from deadlines, so late wake-ups do not add up; a task whose real work ends after its
 * deadline is an overrun, and its successors count from there.  Work, queues, events and data are all real, so a paced
 * run of a server's schedule on a laptop exercises the event graph as the server would.
 */
#include "pace.h"

#include <math.h>
#include <time.h>

/* The wrapper of a list that is paced or delayed is the beginning of it. */
static struct pace *pace_of(const struct step *s) { return (struct pace *)s->running->wrapper; }

static void sleep_until(uint64_t when)
{
    for (uint64_t now = now_ns(); now < when; now = now_ns()) {
        uint64_t left = when - now;
        nanosleep(&(struct timespec){(time_t)(left / 1000000000), (long)(left % 1000000000)}, NULL);
    }
}

/* The lane's thread calls one of these two when the task's work has ended, before anyone is told.  The padded start is
 * behind the task before it on the lane, behind what it waits for, and not before it was issued.  A producer has ended,
 * and it does not run again before all that waited for it: both touch the same bytes. */
static void finish_padded(struct step *s, size_t i, struct task_flight *flight)
{
    struct pace *p = pace_of(s);
    const struct task *t = s->task[i];
    uint64_t start = MAX(flight->queued, p->lane_end[t->lane->index]);
    for (size_t k = 0; k < t->n_edges; k++)
        if (t->edges[k].wait)
            start = MAX(start, p->ended[t->edges[k].from]);
    flight->start = start + (uint64_t)(1e9 * t->lane->gap * p->wrapper.scale);
    flight->end = flight->start + (uint64_t)(1e9 * p->seconds[i] * p->wrapper.scale);
    uint64_t now = now_ns(), late = now > flight->end ? now - flight->end : 0;
    p->tasks++;
    p->overruns += late > 0;
    p->overrun_ns += late;
    flight->end += late;
    p->ended[i] = p->lane_end[t->lane->index] = flight->end;
    sleep_until(flight->end);
}

static void finish_delayed(struct step *s, size_t i, struct task_flight *flight)
{
    enum { LONGEST_DELAY_US = 300 };
    double delay = random_uniform(pace_of(s)->seed, STREAM_DELAY, flight->number, i);
    if (delay >= 0.5) /* half of the tasks are not delayed at all */
        sleep_until(now_ns() + (uint64_t)(1e3 * LONGEST_DELAY_US * (delay - 0.5) * 2));
}

/* ---- starting and stopping ------------------------------------------------------------------------------------- */

static struct pace *wrap(struct step *s, struct pace pace)
{
    struct pace *p = copy_bytes(&pace, sizeof pace);
    p->ended = allocate(s->n, sizeof *p->ended);
    p->lane_end = allocate((size_t)s->pool->machine->n_lanes, sizeof *p->lane_end);
    s->running->wrapper = &p->wrapper;
    return p;
}

struct pace *start_pacing(struct step *s, const double *seconds, double period, double scale)
{
    if (scale <= 0) {
        uint64_t start = 0; /* of one real step, as fast as it goes: the second of two */
        for (uint32_t i = 1; i <= 2; i++) {
            start = now_ns();
            execute(s, i);
            drain(s);
        }
        double half_busy = 2e-9 * (double)(now_ns() - start) / period, *sorted;
        scale = fmax(half_busy, 5e-3 / median(sorted = copy_bytes(seconds, s->n * sizeof *seconds), s->n));
        free(sorted);
    }
    if (!(scale <= 1e9 && scale * period <= 1e6))
        fail(EXIT_USAGE, "--pace: a modelled step of %.3g s, shown at %.3g times its length, is longer than 1e6 s",
             period, scale);
    return wrap(s, (struct pace){.wrapper = {finish_padded, scale, "paced"},
                                 .seconds = copy_bytes(seconds, s->n * sizeof *seconds)});
}

void start_delays(struct step *s, uint64_t seed)
{
    wrap(s, (struct pace){.wrapper = {.finish = finish_delayed}, .seed = seed});
}

void stop_pacing(struct step *s)
{
    struct pace *p = s->running ? pace_of(s) : NULL;
    if (!p)
        return;
    drain(s);
    if (p->seconds)
        note("paced: %zu of %zu tasks overran their time, by %.3f modelled ms in all", p->overruns, p->tasks,
             1e-6 * (double)p->overrun_ns / p->wrapper.scale);
    s->running->wrapper = NULL;
    free(p->seconds), free(p->ended), free(p->lane_end);
    free(p);
}
