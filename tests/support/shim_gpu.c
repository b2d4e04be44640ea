/* shim_gpu.c - stands before OpenCL's library and answers as a GPU would, or fails as one does: for tests on machines
 * that have none (memory.sh).
 *
 *     SHIM_GPU=1         the device is a GPU         SHIM_MEMORY=BYTES   of its own, SHIM_UNIFIED=1: the host's
 *     SHIM_PIECE=BYTES   of one allocation at most
 *     SHIM_FAIL=fill     filling a buffer fails      SHIM_FAIL=finish    and so does waiting for that
 *
 * As NVIDIA's driver does, it ends the program in two cases: of two parts of a buffer that overlap the older one is
 * released first; or a buffer is filled with a pattern of fewer than 16 bytes.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include "shim.h"

#include <CL/cl.h>
#include <stdlib.h>
#include <string.h>

static bool plays_gpu(void) { return getenv("SHIM_GPU") != NULL; }

static bool fails(const char *what)
{
    const char *wanted = getenv("SHIM_FAIL");
    return wanted && strcmp(wanted, what) == 0;
}

/* ---- what the device is ------------------------------------------------------------------------------------------ */

/* The variable's number becomes the answer, of so many bytes, if both are there. */
static void answer(const char *variable, void *value, size_t bytes)
{
    const char *text = getenv(variable);
    if (!text || !value)
        return;
    unsigned long long number = strtoull(text, NULL, 10);
    memcpy(value, &number, bytes);
}

cl_int clGetDeviceInfo(cl_device_id id, cl_device_info what, size_t bytes, void *value, size_t *all)
{
    cl_int code = REAL(clGetDeviceInfo)(id, what, bytes, value, all);
    if (what == CL_DEVICE_TYPE && plays_gpu() && value)
        *(cl_device_type *)value = CL_DEVICE_TYPE_GPU;
    if (what == CL_DEVICE_GLOBAL_MEM_SIZE)
        answer("SHIM_MEMORY", value, sizeof(cl_ulong));
    if (what == CL_DEVICE_MAX_MEM_ALLOC_SIZE)
        answer("SHIM_PIECE", value, sizeof(cl_ulong));
    if (what == CL_DEVICE_HOST_UNIFIED_MEMORY && plays_gpu() && value)
        *(cl_bool *)value = getenv("SHIM_UNIFIED") != NULL;
    return code;
}

/* ---- parts of buffers -------------------------------------------------------------------------------------------- */

enum { MOST_PARTS = 100000 };
static struct part {
    cl_mem of, mem;
    size_t begin, end; /* bytes of the buffer that it is a part of */
} parts[MOST_PARTS];   /* those that are not released, the oldest first */
static int n_parts;

cl_mem clCreateSubBuffer(cl_mem of, cl_mem_flags flags, cl_buffer_create_type type, const void *what, cl_int *code)
{
    const cl_buffer_region *region = what;
    cl_mem mem = REAL(clCreateSubBuffer)(of, flags, type, what, code);
    if (n_parts < MOST_PARTS) {
        parts[n_parts] =
            (struct part){.of = of, .mem = mem, .begin = region->origin, .end = region->origin + region->size};
        n_parts++;
    }
    return mem;
}

static bool overlap(const struct part *a, const struct part *b)
{
    return a->of == b->of && a->begin < b->end && b->begin < a->end;
}

cl_int clReleaseMemObject(cl_mem mem)
{
    int i = n_parts - 1;
    while (i >= 0 && parts[i].mem != mem)
        i--;
    if (i >= 0) {
        for (int k = i + 1; k < n_parts; k++)
            if (plays_gpu() && overlap(&parts[i], &parts[k]))
                abort();
        n_parts--;
        memmove(&parts[i], &parts[i + 1], (size_t)(n_parts - i) * sizeof parts[0]);
    }
    return REAL(clReleaseMemObject)(mem);
}

/* ---- fills ------------------------------------------------------------------------------------------------------- */

static bool filled; /* since the last wait */

cl_int clEnqueueFillBuffer(cl_command_queue queue, cl_mem mem, const void *pattern, size_t pattern_bytes, size_t at,
                           size_t bytes, cl_uint n, const cl_event *wait, cl_event *done)
{
    filled = true;
    if (plays_gpu() && pattern_bytes < 16)
        abort();
    if (fails("fill"))
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return REAL(clEnqueueFillBuffer)(queue, mem, pattern, pattern_bytes, at, bytes, n, wait, done);
}

cl_int clFinish(cl_command_queue queue)
{
    cl_int code = REAL(clFinish)(queue);
    bool had_filled = filled;
    filled = false;
    return had_filled && fails("finish") ? CL_OUT_OF_RESOURCES : code;
}
