/* shim_clock.c - stands before OpenCL's library and moves every SHIM_BACKth start of a command back by 0.3 ms, as a
 * driver whose clock steps back (clock.sh).
 */
#define CL_TARGET_OPENCL_VERSION 120
#include "shim.h"

#include <CL/cl.h>
#include <stdlib.h>

enum { NS_BACK = 300000 };

cl_int clGetEventProfilingInfo(cl_event event, cl_profiling_info what, size_t bytes, void *value, size_t *all)
{
    static int starts;
    const char *text = getenv("SHIM_BACK");
    int every = text ? atoi(text) : 0;
    cl_int code = REAL(clGetEventProfilingInfo)(event, what, bytes, value, all);
    if (what != CL_PROFILING_COMMAND_START || every == 0)
        return code;
    starts++;
    if (starts % every == 0)
        *(cl_ulong *)value -= NS_BACK;
    return code;
}
