/* hold.c - doing what a viewer asks for: wait, issue one task or one step, go slowly (struct trace_control).
 *
 * The issuing thread looks before every task: two loads while nothing is asked.  All that is asked holds until a moment
 * that the viewer moves on as long as it lives, so none that is killed can keep the trainer.  Nothing is taken on
 * trust: the words are clamped here.  A trainer that is held waits first until all it has issued has ended, so that it
 * stands between two tasks, and no thread of its needs the processor.
 */
#include "../trace/follow.h"
#include "run.h"

#include <time.h>

enum { MOST_AT_ONCE = 1000 }; /* tasks or steps that are granted, however many are asked for */
#define LOOK_NS 2000000
#define LONGEST_NS 5000000000 /* that a task is stretched to: the watchdog must not take it for a hang */

static struct {
    bool held;
    uint64_t tasks, steps;           /* what had been asked for when it was last looked at */
    uint64_t left_tasks, left_steps; /* granted, and not used */
    const struct step *step;         /* the iteration that may run to its end */
    uint32_t number;
} state; /* of the issuing thread */

/* Is anything asked, by a viewer that lives? */
static bool is_asked(const struct trace_control *c)
{
    uint64_t until = __atomic_load_n(&c->until, __ATOMIC_RELAXED), now;
    if (!until)
        return false;
    now = now_ns();
    return until > now && until - now <= TRACE_LONGEST_LEASE_MS * UINT64_C(1000000);
}

static bool is_pause_asked(void)
{
    const struct trace_control *c = trace_asked(execution.trace);
    return is_asked(c) && __atomic_load_n(&c->pause, __ATOMIC_RELAXED);
}

double asked_slowness(void)
{
    const struct trace_control *c = execution.trace ? trace_asked(execution.trace) : NULL;
    double slow = 1;
    if (c && is_asked(c))
        __atomic_load(&c->slow, &slow, __ATOMIC_RELAXED);
    return slow > 1 ? MIN(slow, TRACE_SLOWEST) : 1; /* not a number: 1 */
}

/* ---- pause ----------------------------------------------------------------------------------------------------- */

static void take_grants(uint64_t *seen, const uint64_t *asked, uint64_t *left)
{
    uint64_t now = __atomic_load_n(asked, __ATOMIC_RELAXED);
    *left = MIN(*left + (now > *seen ? now - *seen : 0), MOST_AT_ONCE);
    *seen = now;
}

static void look(void)
{
    const struct trace_control *c = trace_asked(execution.trace);
    take_grants(&state.tasks, &c->tasks, &state.left_tasks);
    take_grants(&state.steps, &c->steps, &state.left_steps);
}

/* May the task be issued although there is a pause? */
static bool is_granted(const struct step *s, uint32_t number)
{
    if (state.step == s && state.number == number)
        return true;
    if (state.left_steps) {
        state.left_steps--;
        state.step = s;
        state.number = number;
        return true;
    }
    bool one = state.left_tasks > 0;
    state.left_tasks -= one;
    return one;
}

bool is_held(const struct step *s, uint32_t number)
{
    if (!execution.trace)
        return false;
    if (!is_pause_asked()) {
        state.held = false;
        return false;
    }
    if (!state.held) { /* what was asked before the pause does not count */
        look();
        state.left_tasks = state.left_steps = 0;
        state.step = NULL;
        state.held = true;
    }
    return !(state.step == s && state.number == number);
}

void wait_for_viewer(struct step *s, uint32_t number, size_t i)
{
    flush_lanes(s->pool->machine);
    wait_iteration(s, UINT32_MAX);
    for (look(); is_pause_asked() && !interrupted() && !is_granted(s, number); look()) {
        trace_alive(execution.trace, 1 + s->first_trace_task + (uint64_t)i);
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
    trace_alive(execution.trace, 0);
}

/* ---- slow motion ----------------------------------------------------------------------------------------------- */

uint64_t stretch(uint64_t start, uint64_t end)
{
    for (;;) { /* in short sleeps: the factor may change, or its viewer die */
        double ns = MIN((double)(end - start) * asked_slowness(), (double)LONGEST_NS);
        uint64_t until = MAX(start + (uint64_t)ns, end), now = now_ns();
        if (now >= until || interrupted())
            return MAX(now, end);
        nanosleep(&(struct timespec){.tv_nsec = (long)MIN(until - now, 50000000)}, NULL);
    }
}
