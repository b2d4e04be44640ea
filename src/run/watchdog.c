/* watchdog.c - a hang explains itself.
 *
 * A thread looks five times a second how many tasks have ended.  When none has for execution.watchdog_seconds, it
 * prints the frontier: on each lane the first task that has not ended, and the producers it waits for.  After five
 * times as long it ends the program.  Seconds are counted by the thread's own waking, so a stop in a debugger does not
 * trip it.
 */
#include "run.h"

#include <time.h>

static struct step *watched; /* guarded by slots_lock, as is the next */
static double patience;
static bool started;
#define LOOK_SECONDS 0.2
enum { GIVE_UP = 5 }; /* times the patience */

/* Of the runs that the lane was given, the first that has not ended. */
static uint64_t first_open(const struct step *s, const struct queue *q)
{
    uint64_t nth = q->collected;
    while (nth < q->given && has_ended(queued_slot(s, q, nth)))
        nth++;
    return nth;
}

/* How many runs have ended so far, and how many have not. */
static size_t count_ended(const struct step *s, size_t *unfinished)
{
    size_t ended = 0;
    *unfinished = 0;
    for (int i = 0; i < s->n_queues; i++) {
        const struct queue *q = &s->queue[i];
        uint64_t nth = first_open(s, q);
        ended += nth;
        *unfinished += q->given - nth;
    }
    return ended;
}

static void print_unmet(FILE *out, const struct step *s, const struct task *t, uint32_t number)
{
    for (size_t k = 0; k < t->n_edges; k++) {
        const struct edge *e = &t->edges[k];
        const struct slot *slot = e->wait ? latest_run(s, s->task[e->from], number - e->previous) : NULL;
        if (!slot || has_ended(slot))
            continue;
        fprintf(out, "      waits for task %u %s on lane %s", e->from, s->task[e->from]->name,
                s->task[e->from]->lane->name);
        if (slot->number < number)
            fprintf(out, " of step %u", slot->number);
        fputc('\n', out);
    }
}

static void print_lane(FILE *out, const struct step *s, const struct queue *q)
{
    uint64_t nth = first_open(s, q);
    if (nth == q->given)
        return;
    const struct issued *r = queued_run(q, nth);
    const struct task *t = s->task[r->task];
    fprintf(out, "  lane %s: task %u %s%s of step %u has not ended\n", t->lane->name, r->task, t->name,
            layer_and_micro((char[64]){0}, t), r->number);
    print_unmet(out, s, t, r->number);
}

void print_frontier(FILE *out, struct step *s)
{
    fprintf(out, "yard: no task of list %s has ended for a while; the frontier is\n", s->name);
    for (int i = 0; i < s->n_queues; i++)
        print_lane(out, s, &s->queue[i]);
    fprintf(out, "  run with --serial to step through the tasks one by one\n");
}

/* What the thread remembers from look to look. */
struct look {
    double patience;     /* execution.watchdog_seconds; 0: off */
    size_t ended;        /* tasks that had ended */
    double quiet, spoke; /* seconds since one of them ended; and when it last said something */
};

/* Has no task of the watched list ended since the last look, although some are under way?  Called with the lock held.
 */
static bool stands_still(struct look *l)
{
    size_t unfinished = 0, before = l->ended;
    l->patience = patience;
    l->ended = watched ? count_ended(watched, &unfinished) : 0;
    return unfinished && l->ended == before;
}

static void speak(struct look *l, bool issuing)
{
    if (issuing)
        note("the driver has not come back from issuing a task for %.0f s", l->quiet);
    else
        print_frontier(stderr, watched);
    l->spoke = l->quiet;
    if (l->quiet > (GIVE_UP - 0.5) * l->patience)
        fail(EXIT_FAILED,
             "no task has ended for %.0f s, %d times --watchdog: the run is given up; what was saved before is whole.\n"
             "  If a task takes that long here, use a larger --watchdog; if the driver hangs, --serial or another -d",
             l->quiet, GIVE_UP);
}

/* Without the lock, the issuing thread is inside execute(), in a call that does not return. */
static void look_once(struct look *l)
{
    bool got = pthread_mutex_trylock(&slots_lock) == 0;
    if (got && !stands_still(l))
        l->quiet = l->spoke = 0;
    else
        l->quiet += LOOK_SECONDS;
    if (l->patience > 0 && l->quiet >= l->spoke + l->patience)
        speak(l, !got);
    if (got)
        pthread_mutex_unlock(&slots_lock);
}

static void *watchdog_main(void *unused)
{
    (void)unused;
    struct look look = {.patience = execution.watchdog_seconds};
    for (;;) {
        nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * LOOK_SECONDS)}, NULL);
        look_once(&look);
    }
    return NULL;
}

void watch(struct step *s)
{
    pthread_mutex_lock(&slots_lock);
    watched = s;
    patience = execution.watchdog_seconds;
    pthread_mutex_unlock(&slots_lock);
    if (s && !started && execution.watchdog_seconds > 0) {
        pthread_t thread;
        started = pthread_create(&thread, NULL, watchdog_main, NULL) == 0 && pthread_detach(thread) == 0;
    }
}
