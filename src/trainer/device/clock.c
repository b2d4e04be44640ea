/* clock.c - device clocks on the host's clock.
 *
 * clGetDeviceAndHostTimer is missing on many drivers (it fails on PoCL 3.1 and rusticl 22.3), so the offset is
 * measured: write one byte, wait, and read the host's clock at once; the smallest difference host - END of several
 * tries is the offset plus the shortest wake-up.  PoCL stamps with the very clock we use (CLOCK_MONOTONIC_RAW): there
 * the result is only that wake-up time, and 0 is used instead. Some drivers return zeros, or times that lie outside the
 * command's life, with success: every time is checked against the host's own record and replaced when it cannot be
 * true.  On others a command of a queue that runs in order starts before the one before it has ended: the clock has
 * stepped back, and the time is moved behind that end.
 */
#include "device.h"

enum { TRIES = 12, SLACK_NS = 1000000 };

static bool profiled(cl_event event, cl_profiling_info what, cl_ulong *ns)
{
    return clGetEventProfilingInfo(event, what, sizeof *ns, ns, NULL) == CL_SUCCESS && *ns != 0;
}

/* The least host - END of some tiny writes. */
void calibrate_clocks(struct machine *m)
{
    for (int i = 0; i < m->n_devices && m->options.profiling; i++) {
        struct device *d = &m->device[i];
        int64_t best = INT64_MAX;
        cl_mem byte;
        d->clock_step = device_number(d->cl, CL_DEVICE_PROFILING_TIMER_RESOLUTION);
        CL_MAKE(byte = clCreateBuffer(d->context->cl, CL_MEM_READ_WRITE, 1, NULL, &err));
        bool valid = true;
        for (int k = 0; k < TRIES && valid; k++) {
            cl_event event;
            cl_ulong end = 0;
            CL(clEnqueueWriteBuffer(d->lane[LANE_UPLOAD]->queue, byte, CL_FALSE, 0, 1, "", 0, NULL, &event));
            CL(clWaitForEvents(1, &event));
            uint64_t host = now_ns();
            valid = profiled(event, CL_PROFILING_COMMAND_END, &end);
            best = MIN(best, (int64_t)(host - end));
            CL(clReleaseEvent(event));
        }
        d->clock_offset = best >= 0 && best < SLACK_NS ? 0 : best;
        d->clock_valid = valid;
        CL(clReleaseMemObject(byte));
    }
}

enum told_times event_times(const struct device *d, cl_event event, uint64_t queued, uint64_t seen, uint64_t *told,
                            uint64_t *start, uint64_t *end)
{
    cl_ulong s = 0, e = 0;
    const uint64_t offset = (uint64_t)d->clock_offset;
    *start = queued;
    *end = seen;
    if (!d->clock_valid || !profiled(event, CL_PROFILING_COMMAND_START, &s) ||
        !profiled(event, CL_PROFILING_COMMAND_END, &e) || s > e || s + offset + SLACK_NS < queued ||
        e + offset > seen + SLACK_NS)
        return TIMES_MISSING;
    const bool stepped_back = s + d->clock_step < *told;
    if (stepped_back)
        s = *told;
    *told = MAX(*told, e);
    *start = s + offset;
    *end = MAX(s, e) + offset;
    return stepped_back ? TIMES_STEPPED_BACK : TIMES_TRUE;
}
