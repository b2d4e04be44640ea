/* device_clock.c - converts times of a device's clock to the host's clock.
 *
 * clGetDeviceAndHostTimer is missing on many drivers (it fails on PoCL 3.1 and rusticl 22.3), so the offset is
 * measured: write one byte, wait, and read the host's clock at once.  The smallest difference host - END of several
 * tries is the offset plus the shortest wake-up.  PoCL stamps with the very clock we use (CLOCK_MONOTONIC_RAW): there
 * the result would be only that wake-up, and 0 is used instead.
 *
 * Some drivers return zeros, or times before the command was queued or after it was seen complete, and report success.
 * So every time is compared with the host's own record, and replaced when it cannot be true.  With other drivers a
 * command of an in-order queue seems to start before the previous one has ended: the device's clock has stepped back,
 * and the start is set to that end.
 */
#include "driver.h"

enum { TRIES = 12, SLACK_NS = 1000000 };

static bool read_event_time(cl_event event, cl_profiling_info property, cl_ulong *ns)
{
    return clGetEventProfilingInfo(event, property, sizeof *ns, ns, NULL) == CL_SUCCESS && *ns != 0;
}

/* The least difference host - END of some tiny writes. */
static void calibrate_clock(struct device *device)
{
    int64_t best = INT64_MAX;
    cl_mem byte;
    device->extra.clock.step = device_number(device->cl, CL_DEVICE_PROFILING_TIMER_RESOLUTION);
    CL_MAKE(err, byte = clCreateBuffer(device->context->cl, CL_MEM_READ_WRITE, 1, NULL, &err));
    bool valid = true;
    for (int try = 0; try < TRIES && valid; try++) {
        cl_event event;
        cl_ulong end = 0;
        CL(clEnqueueWriteBuffer(device->lanes[LANE_UPLOAD]->queue, byte, CL_FALSE, 0, 1, "", 0, NULL, &event));
        CL(clWaitForEvents(1, &event));
        uint64_t host = now_ns();
        valid = read_event_time(event, CL_PROFILING_COMMAND_END, &end);
        best = MIN(best, (int64_t)(host - end));
        CL(clReleaseEvent(event));
    }
    if (best >= 0 && best < SLACK_NS) /* it is the same clock: the difference is only the wake-up time */
        best = 0;
    device->extra.clock.offset = best;
    device->extra.clock.valid = valid;
    CL(clReleaseMemObject(byte));
}

void calibrate_clocks(struct machine *machine)
{
    if (!machine->options.profiling)
        return;
    for (int i = 0; i < machine->n_devices; i++)
        calibrate_clock(&machine->devices[i]);
}

enum time_source event_times(const struct device *device, cl_event event, uint64_t *driver_end,
                             struct command_times *times)
{
    cl_ulong began = 0, ended = 0; /* on the device's clock */
    uint64_t offset = (uint64_t)device->extra.clock.offset;
    times->start = times->queued;
    times->end = times->seen;
    if (!device->extra.clock.valid || !read_event_time(event, CL_PROFILING_COMMAND_START, &began) ||
        !read_event_time(event, CL_PROFILING_COMMAND_END, &ended))
        return TIMES_MISSING;
    if (began > ended || began + offset + SLACK_NS < times->queued || ended + offset > times->seen + SLACK_NS)
        return TIMES_MISSING;
    bool stepped_back = began + device->extra.clock.step < *driver_end;
    if (stepped_back)
        began = *driver_end;
    *driver_end = MAX(*driver_end, ended);
    times->start = began + offset;
    times->end = MAX(began, ended) + offset;
    return stepped_back ? TIMES_STEPPED_BACK : TIMES_TRUE;
}
