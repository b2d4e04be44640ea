/* watch.c - a watchdog: a run that hangs explains itself, and ends.
 *
 * Two threads look five times a second.  The asker asks the driver which tasks have ended; where the driver hangs, the
 * asker may hang in there too.  The watchdog asks nobody.  When no task has ended for watchdog_seconds, it
 * prints the frontier: on each lane the first task that has not ended, and the producers it waits for.  It ends the
 * program after five times as long, or five seconds after a signal that asked for the end.  Seconds are counted by the
 * thread's own waking, so a stop in a debugger does not trip it.
 */
#include "watch.h"

#include "trainer/train/hooks.h"

#include <time.h>

double watchdog_seconds;
static pthread_mutex_t watching = PTHREAD_MUTEX_INITIALIZER; /* guards these; nobody holds it in a call of the driver */
static struct step *watched;                                 /* changes under flights_lock too */
static double patience;
static const struct timespec nap = {.tv_nsec = 200000000};

static uint64_t first_open(const struct queue *q)
{
    uint64_t retired = q->retired;
    return MAX(retired, q->ended);
}

/* The latest run of a task, in iteration `number` or before, that was not seen to end; NULL: there is none. */
static const struct issued *find_open(const struct step *s, uint32_t task, uint32_t number)
{
    const struct queue *q = &s->running->queue[s->task[task]->lane->index];
    for (uint64_t nth = q->given, first = first_open(q); nth > first; nth--) {
        const struct issued *r = queued_run(q, nth - 1);
        if (r->task == task && r->number <= number)
            return r;
    }
    return NULL;
}

void print_frontier(FILE *out, const struct step *s)
{
    const struct running *running = s->running;
    fprintf(out, "yard: no task of list %s has ended for a while; the frontier is\n", s->name);
    for (const struct queue *q = running->queue; q < running->queue + running->n_queues; q++) {
        if (first_open(q) >= q->given)
            continue;
        const struct issued *r = queued_run(q, first_open(q));
        const struct task *t = s->task[r->task];
        fprintf(out, "  lane %s: task %u %s%s of step %u has not ended\n", t->lane->name, r->task, t->name,
                layer_and_micro((char[64]){0}, t), r->number);
        for (const struct edge *e = t->edges; e < t->edges + t->n_edges; e++) {
            const struct issued *before = e->wait ? find_open(s, e->from, r->number - e->previous) : NULL;
            if (before)
                fprintf(out, "      waits for task %u %s of step %u on lane %s\n", e->from, s->task[e->from]->name,
                        before->number, s->task[e->from]->lane->name);
        }
    }
}

static void *asker_main(void *unused)
{
    for (;; nanosleep(&nap, NULL)) {
        pthread_mutex_lock(&flights_lock);
        for (int i = 0; watched && i < watched->running->n_queues; i++) {
            struct queue *q = &watched->running->queue[i];
            for (q->ended = first_open(q); q->ended < q->given && has_ended(queued_flight(watched, q, q->ended));)
                q->ended++;
        }
        pthread_mutex_unlock(&flights_lock);
    }
    return unused;
}

static void *watchdog_main(void *unused)
{
    enum { GIVE_UP = 5 /* times the patience */, GIVE_UP_STEP = 5 /* seconds after a signal */ };
    uint64_t before = 0;
    double quiet = 0, spoke = 0; /* seconds without an end; of them when it spoke */
    for (;; nanosleep(&nap, NULL)) {
        uint64_t now = 0, open = 0;
        pthread_mutex_lock(&watching);
        for (int i = 0; watched && i < watched->running->n_queues; i++) {
            const struct queue *q = &watched->running->queue[i];
            now += q->given + first_open(q);
            open += q->given - first_open(q);
        }
        quiet = open && now == before ? quiet + 1e-9 * (double)nap.tv_nsec : 0;
        spoke = quiet > 0 ? spoke : 0;
        before = now;
        bool given_up = quiet >= GIVE_UP * patience, stopped = quiet >= GIVE_UP_STEP && interrupted();
        if (quiet >= spoke + patience || stopped) {
            if (pthread_mutex_trylock(&flights_lock) == 0) /* who calls the driver holds it */
                pthread_mutex_unlock(&flights_lock);
            else
                note("the driver has not come back from a call for %.0f s", quiet);
            print_frontier(stderr, watched);
            spoke = quiet;
        }
        if (given_up || stopped)
            fail(stopped ? EXIT_INTERRUPTED : EXIT_FAILED,
                 "%sno task has ended for %.0f s: the run is given up; what was saved before is whole",
                 stopped ? "interrupted, and " : "", quiet);
        pthread_mutex_unlock(&watching);
    }
    return unused;
}

void watch(struct step *s)
{
    static bool started;
    pthread_t asker, watchdog;
    pthread_mutex_lock(&flights_lock);
    pthread_mutex_lock(&watching);
    watched = watchdog_seconds > 0 ? s : NULL;
    patience = watchdog_seconds;
    pthread_mutex_unlock(&watching);
    pthread_mutex_unlock(&flights_lock);
    if (watched && !started)
        started = pthread_create(&asker, NULL, asker_main, NULL) == 0 && pthread_detach(asker) == 0 &&
                  pthread_create(&watchdog, NULL, watchdog_main, NULL) == 0 && pthread_detach(watchdog) == 0;
}

/* ---- a training -------------------------------------------------------------------------------------------------- */

/* One task after another waits for its end itself. */
static bool start(struct settings *s, int argc, char **argv, int *code)
{
    (void)argc, (void)argv, (void)code;
    watchdog_seconds = s->serial ? 0 : 60;
    execution.watch = watch;
    return true;
}

static const struct hooks hooks = {.before = start};
const struct module module_watch = {.name = "watch", .place = 5, .hooks = &hooks};
