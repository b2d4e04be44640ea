/* watchdog.c - a hang explains itself.
 *
 * Two threads look five times a second.  The asker asks the driver how many tasks have ended; where the driver hangs,
 * it may hang in there too.  The watchdog asks nobody: it counts what was issued, what was retired and what the asker
 * has seen, and takes no lock that anyone holds while it calls the driver.
 *
 * When no task has ended for execution.watchdog_seconds, it prints the frontier: on each lane the first task that has
 * not ended, and the producers it waits for.  After five times as long it ends the program; and sooner when a signal
 * has asked for the end, which waits for the step in flight: then the step is given up.  Seconds are counted by the
 * thread's own waking, so a stop in a debugger does not trip it.
 */
#include "run.h"

#include <math.h>
#include <time.h>

static pthread_mutex_t watching = PTHREAD_MUTEX_INITIALIZER; /* held for moments, and by no caller of the driver */
static struct step *watched;      /* guarded by that, and by slots_lock too where it changes */
static _Atomic double patience;   /* execution.watchdog_seconds; 0: off */
static _Atomic uint32_t answered; /* how often the asker came back */
static bool started;
#define LOOK_SECONDS 0.2
enum {
    GIVE_UP = 5,     /* times the patience */
    GIVE_UP_STEP = 5 /* seconds behind a signal; or twice what tasks were seen to take, where that is more */
};

static void pause_a_look(void) { nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * LOOK_SECONDS)}, NULL); }

/* ---- the asker ------------------------------------------------------------------------------------------------- */

/* Of the runs that the lane was given, the first that has not ended. */
static uint64_t first_open(const struct step *s, const struct queue *q)
{
    uint64_t nth = q->retired;
    while (nth < q->given && has_ended(queued_slot(s, q, nth)))
        nth++;
    return nth;
}

static void *asker_main(void *unused)
{
    (void)unused;
    pthread_detach(pthread_self());
    for (;; pause_a_look()) {
        pthread_mutex_lock(&slots_lock);
        for (int i = 0; watched && i < watched->running->n_queues; i++)
            watched->running->queue[i].ended = first_open(watched, &watched->running->queue[i]);
        pthread_mutex_unlock(&slots_lock);
        answered++;
    }
    return NULL;
}

/* ---- the frontier ---------------------------------------------------------------------------------------------- */

static uint64_t first_unseen(const struct queue *q)
{
    uint64_t retired = q->retired, ended = q->ended;
    return MAX(retired, ended);
}

/* The latest run of a task, in iteration `number` or before, that was not seen to end; NULL: there is none. */
static const struct issued *find_open(const struct step *s, uint32_t task, uint32_t number)
{
    const struct queue *q = &s->running->queue[s->task[task]->lane->index];
    for (uint64_t nth = q->given, first = first_unseen(q); nth > first; nth--) {
        const struct issued *r = queued_run(q, nth - 1);
        if (r->task == task && r->number <= number)
            return r;
    }
    return NULL;
}

static void print_unmet(FILE *out, const struct step *s, const struct task *t, uint32_t number)
{
    for (size_t k = 0; k < t->n_edges; k++) {
        const struct edge *e = &t->edges[k];
        const struct issued *r = e->wait ? find_open(s, e->from, number - e->previous) : NULL;
        if (!r)
            continue;
        fprintf(out, "      waits for task %u %s on lane %s", e->from, s->task[e->from]->name,
                s->task[e->from]->lane->name);
        if (r->number < number)
            fprintf(out, " of step %u", r->number);
        fputc('\n', out);
    }
}

static void print_lane(FILE *out, const struct step *s, const struct queue *q)
{
    uint64_t nth = first_unseen(q);
    if (nth >= q->given)
        return;
    const struct issued *r = queued_run(q, nth);
    const struct task *t = s->task[r->task];
    fprintf(out, "  lane %s: task %u %s%s of step %u has not ended\n", t->lane->name, r->task, t->name,
            layer_and_micro((char[64]){0}, t), r->number);
    print_unmet(out, s, t, r->number);
}

void print_frontier(FILE *out, const struct step *s)
{
    fprintf(out, "yard: no task of list %s has ended for a while; the frontier is\n", s->name);
    for (int i = 0; i < s->running->n_queues; i++)
        print_lane(out, s, &s->running->queue[i]);
    fprintf(out, "  run with --serial to step through the tasks one by one\n");
}

/* ---- the watchdog ---------------------------------------------------------------------------------------------- */

/* What it remembers from look to look. */
struct look {
    uint64_t moved;      /* runs that were issued, and that had ended */
    uint32_t answered;   /* by the asker */
    double quiet, spoke; /* seconds since one of them ended; and when it last said something */
    double longest;      /* that it was quiet before */
    double late;         /* seconds of `quiet` behind a signal */
    double silent;       /* seconds since the asker came back */
};

/* Has no task of the watched list been issued or ended since the last look, although some are under way?  Called with
 * `watching`. */
static bool stands_still(struct look *l)
{
    uint64_t moved = 0, unfinished = 0;
    for (int i = 0; watched && i < watched->running->n_queues; i++) {
        uint64_t ended = first_unseen(&watched->running->queue[i]), given = watched->running->queue[i].given;
        moved += given + ended;
        unfinished += given - ended;
    }
    bool same = moved == l->moved;
    l->moved = moved;
    return unfinished && same;
}

static void speak(struct look *l)
{
    if (l->silent >= 1)
        note("the driver has not come back from a call for %.0f s", l->silent);
    print_frontier(stderr, watched);
    l->spoke = l->quiet;
}

static void lose_patience(struct look *l)
{
    double most = patience;
    bool give_up = most > 0 && l->quiet > (GIVE_UP - 0.5) * most,
         interrupted_long = l->late > fmax(GIVE_UP_STEP, 2 * l->longest);
    if (give_up || interrupted_long || (most > 0 && l->quiet >= l->spoke + most))
        speak(l);
    if (interrupted_long)
        fail(EXIT_INTERRUPTED,
             "interrupted, but no task has ended for %.0f s: the step is given up, and what was trained since the last "
             "save or snapshot is lost; what was saved before is whole",
             l->late);
    if (give_up)
        fail(EXIT_FAILED,
             "no task has ended for %.0f s, the run is given up; what was saved before is whole.\n"
             "  Where a task takes that long, or the driver hangs, use --serial or another -d",
             l->quiet);
}

static void *watchdog_main(void *unused)
{
    (void)unused;
    struct look look = {0}, *l = &look;
    pthread_detach(pthread_self());
    for (;; pause_a_look()) {
        l->silent = l->answered == answered ? l->silent + LOOK_SECONDS : 0;
        l->answered = answered;
        pthread_mutex_lock(&watching);
        if (stands_still(l)) {
            l->quiet += LOOK_SECONDS;
            l->late += interrupted() ? LOOK_SECONDS : 0;
            lose_patience(l);
        } else {
            l->longest = fmax(l->longest, l->quiet);
            l->quiet = l->spoke = l->late = 0;
        }
        pthread_mutex_unlock(&watching);
    }
    return NULL;
}

void watch(struct step *s)
{
    pthread_mutex_lock(&slots_lock);
    pthread_mutex_lock(&watching);
    watched = s;
    patience = execution.watchdog_seconds;
    pthread_mutex_unlock(&watching);
    pthread_mutex_unlock(&slots_lock);
    pthread_t asker, watchdog;
    if (s && !started && (patience > 0 || interrupts_are_deferred()))
        started = pthread_create(&asker, NULL, asker_main, NULL) == 0 &&
                  pthread_create(&watchdog, NULL, watchdog_main, NULL) == 0;
}
