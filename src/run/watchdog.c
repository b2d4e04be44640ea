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

static bool has_ended(const struct slot *slot)
{
    cl_int status = CL_QUEUED;
    if (slot->done)
        clGetEventInfo(slot->done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    return status <= CL_COMPLETE;
}

static size_t count_ended(struct step *s, size_t *unfinished)
{
    size_t ended = 0;
    *unfinished = 0;
    for (int parity = 0; parity < 2; parity++)
        for (size_t i = 0; i < s->n && s->number[parity]; i++) {
            bool done = has_ended(&s->slots[parity][i]);
            ended += done;
            *unfinished += !done && s->slots[parity][i].done;
        }
    return ended + s->n * (s->number[0] + s->number[1]); /* grows with every iteration too */
}

static void print_unmet(FILE *out, struct step *s, const struct task *t, uint32_t number)
{
    for (size_t k = 0; k < t->n_edges; k++) {
        const struct edge *e = &t->edges[k];
        uint32_t when = number - e->previous;
        if (!e->wait || when == 0 || s->number[when & 1] != when || has_ended(&s->slots[when & 1][e->from]))
            continue;
        fprintf(out, "      waits for task %u %s on lane %s%s\n", e->from, s->task[e->from]->name,
                s->task[e->from]->lane->name, e->previous ? " of the step before" : "");
    }
}

static void print_lane(FILE *out, struct step *s, const struct lane *lane)
{
    uint32_t first = s->number[0] && s->number[0] < s->number[1] ? s->number[0] : s->number[1];
    for (uint32_t number = first ? first : s->number[0]; number && s->number[number & 1] == number; number++)
        for (size_t i = 0; i < s->n; i++) {
            const struct task *t = s->task[i];
            const struct slot *slot = &s->slots[number & 1][i];
            if (t->lane != lane || !slot->done || has_ended(slot))
                continue;
            fprintf(out, "  lane %s: task %zu %s (layer %d, micro-batch %d) of step %u has not ended\n", lane->name, i,
                    t->name, t->layer, t->micro, number);
            print_unmet(out, s, t, number);
            return;
        }
}

void print_frontier(FILE *out, struct step *s)
{
    fprintf(out, "yard: no task of list %s has ended for a while; the frontier is\n", s->name);
    for (int i = 0; i < s->pool->machine->n_lanes; i++)
        print_lane(out, s, &s->pool->machine->lane[i]);
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
