/* swap_positions.c - between which tasks the copies of a swapped tensor come, and so how long its bytes are held for
 * them.
 *
 * A tensor that leaves is held until its copy has ended.  A tensor that comes back is held from the time at which its
 * copy must begin: its copy, which takes bytes / bandwidth, must end before the reader begins, and before the next copy
 * of its lane must begin.  Copies of one direction go one after another: the tensor that is made first leaves first,
 * and the one that is needed first comes back first.  Where bytes are short, tensors leave earlier and come back later,
 * and tasks wait.
 *
 *     uses alone     |=======|                             |=======|
 *     copies too     |=======|======>              <=======|=======|
 *     copies of a0    F0      out                   in      B0
 */
#include "swap_search.h"

#include <math.h>

/* The room of a device.  Positions are those of `uses`. */
struct room {
    const struct device *device;
    const struct uses *uses;
    const struct span *spans; /* as struct timed_list has them */
    const struct hold_rule *rule;
    int64_t *held; /* [n + 1] bytes that are held while each task runs */
    int64_t most;  /* the upper bound of `held` */
};

/* Is task i on the device's compute lane? */
static bool computes(const struct room *room, int i)
{
    return room->uses->tasks[i]->lane == room->device->lanes[LANE_COMPUTE];
}

/* How many seconds the tensor is held for one of its copies. */
static double time_for_copy(const struct room *room, const struct fate *fate)
{
    return room->rule->copy_times * fate->copy_seconds;
}

/* The two searches below look for a task of the gap by the time at which the device starts to compute it:
 *
 *     position         begin   +1    +2    +3    +4    end
 *     starts at                 2     4     6     8     10
 *
 *     last_by(6)       begin + 3, which starts at 6             last_by(1)       begin + 1: none starts by then
 *     last_before(6)   begin + 2                                last_before(2)   begin: none starts before
 */

/* Is task i one that the device starts to compute by that time? */
static bool starts_by(const struct room *room, int i, double time)
{
    return computes(room, i) && room->spans[i].start <= time;
}

/* The last task in (begin, end] that the device starts by `time`; if there is none, begin + 1. */
static int last_by(const struct room *room, const struct fate *fate, double time)
{
    int i = fate->end;
    while (i > fate->begin + 1 && !starts_by(room, i, time * (1 + SAME_TIME)))
        i--;
    return i;
}

/* The last task in (begin, end) before the first one that the device starts at `time` or later; if there is none,
 * begin. */
static int last_before(const struct room *room, const struct fate *fate, double time)
{
    int last = fate->begin;
    for (int i = fate->begin + 1; i < fate->end; i++) {
        if (!computes(room, i))
            continue;
        if (room->spans[i].start >= time * (1 - SAME_TIME))
            break;
        last = i;
    }
    return last;
}

/* Does a copy take the tensor from the device? */
static bool is_sent(const struct room *room, const struct fate *fate)
{
    return fate->gap->device == room->device && fate->sent;
}

/* Does a copy bring the tensor back to the device? */
static bool comes_back(const struct room *room, const struct fate *fate)
{
    return fate->gap->device == room->device && fate->end < (int)room->uses->n && !fate->gap->renewed;
}

/* A tensor that comes back is held from the moment when its copy must begin, for its reader and for the next copies of
 * the lane.  The tensor that is needed first finds room first, and none comes back before those needed sooner. */
static void set_ins(struct room *room, const struct swaps *swaps)
{
    int *soonest = allocate(swaps->n + 1, sizeof *soonest); /* by fate: the task by which its copy must begin */
    int earliest = 0;                                       /* where the copy before this one is */
    double must_begin = INFINITY;                           /* seconds: when the copy after this one must begin */
    for (size_t k = swaps->n; k-- > 0;) {
        const struct fate *fate = swaps->returning[k];
        if (!comes_back(room, fate))
            continue;
        must_begin = fmin(must_begin, room->spans[fate->end].start) - time_for_copy(room, fate);
        soonest[k] = last_by(room, fate, must_begin);
    }
    for (size_t k = 0; k < swaps->n; k++) {
        struct fate *fate = swaps->returning[k];
        if (!comes_back(room, fate))
            continue;
        int64_t bytes = gap_bytes(fate->gap);
        while (fate->in > MAX(soonest[k], earliest) && room->held[fate->in - 1] + bytes <= room->most) {
            fate->in--;
            room->held[fate->in] += bytes;
        }
        earliest = fate->in;
    }
    free(soonest);
}

/* A tensor that leaves is held until its copy has ended, which comes after the copies of tensors made before it.  The
 * tensor that was made last finds room first: those that have waited longest leave earlier. */
static void set_outs(struct room *room, const struct swaps *swaps)
{
    int *latest = allocate(swaps->n + 1, sizeof *latest); /* by fate: the task by which its copy has ended */
    double copied = -INFINITY;                            /* seconds: when the copy before this one has ended */
    for (size_t k = 0; k < swaps->n; k++) {
        const struct fate *fate = swaps->leaving[k];
        if (!is_sent(room, fate))
            continue;
        copied = fmax(copied, room->spans[fate->begin].end) + time_for_copy(room, fate);
        latest[k] = last_before(room, fate, copied);
    }
    for (size_t k = swaps->n; k-- > 0;) {
        struct fate *fate = swaps->leaving[k];
        if (!is_sent(room, fate))
            continue;
        int64_t bytes = gap_bytes(fate->gap);
        while (fate->out < MIN(latest[k], fate->in - 1) && room->held[fate->out + 1] + bytes <= room->most) {
            fate->out++;
            room->held[fate->out] += bytes;
        }
    }
    free(latest);
}

/* At first bytes are held for uses alone.  Each slab ends with a guard, which no tensor may use. */
void set_copy_positions(const struct device *device, const struct hold_rule *rule, const struct timed_list *timed,
                        const struct swaps *swaps)
{
    struct room room = {
        .device = device,
        .uses = timed->uses,
        .spans = timed->spans,
        .rule = rule,
        .held = bytes_held(timed->uses, timed->pool, device),
        .most = (int64_t)((double)device->budget * (1 - rule->margin)) - (int64_t)guard_bytes(device),
    };
    for (size_t k = 0; k < swaps->n; k++) {
        const struct fate *fate = swaps->leaving[k];
        if (fate->gap->device != device)
            continue;
        for (int i = fate->begin + 1; i < fate->end; i++)
            room.held[i] -= gap_bytes(fate->gap);
    }
    set_ins(&room, swaps);
    set_outs(&room, swaps);
    free(room.held);
}
