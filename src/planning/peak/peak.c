/* peak.c - measures the limits of a device, FLOP/s and bytes/s, of which other speeds are shown as shares.  The kernels
 * are in cl/bench.cl. */
#include "peak.h"
#include "trainer/base/module.h"
#include "trainer/device/driver.h"
#include "trainer/model/model.h"

#include <math.h>
#include <time.h>

static double run_kernel(struct device *device, cl_kernel k, size_t items, size_t group)
{
    cl_command_queue queue = device->lanes[LANE_COMPUTE]->queue;
    uint64_t start = now_ns();
    CL(clEnqueueNDRangeKernel(queue, k, 1, NULL, &items, &group, 0, NULL, NULL));
    CL(clFinish(queue));
    return (double)(now_ns() - start) * 1e-9;
}

struct probe {
    struct device *device;
    cl_kernel kernel;
    cl_mem out;
    size_t group, items;
    double work; /* FLOPs of one run */
};

/* A run lasts some milliseconds, so that its launch does not count.  Each unit has several pieces of work, so that none
 * is idle for long at the end. */
enum {
    ITEMS_PER_CORE = 8,         /* on a CPU, where a work-group is one work-item */
    FLOATS_PER_CHAIN = 1600000, /* on a CPU: the wider its vectors are, the fewer are the rounds */
    GROUPS_PER_UNIT = 16,       /* on a GPU */
    ROUNDS_ON_GPU = 4000,
};

struct probe *open_probe(struct device *device)
{
    bool one_item = device->shape.work_group == 1;
    size_t group = device->shape.work_group;
    size_t items = one_item ? device->units * ITEMS_PER_CORE : device->units * GROUPS_PER_UNIT * group;
    cl_int rounds = one_item ? FLOATS_PER_CHAIN / (cl_int)device->shape.vector : ROUNDS_ON_GPU;
    cl_float factor = 0.999f, summand = 0.001f;
    struct probe *probe = allocate(1, sizeof *probe);
    *probe = (struct probe){.device = device,
                            .kernel = new_kernel(device, "bench.cl", "fma_peak"),
                            .group = group,
                            .items = items,
                            .work = 2.0 * FMA_CHAINS * device->shape.vector * rounds * (double)items};
    CL_MAKE(err,
            probe->out = clCreateBuffer(device->context->cl, CL_MEM_WRITE_ONLY, items * sizeof(float), NULL, &err));
    CL(clSetKernelArg(probe->kernel, 0, sizeof probe->out, &probe->out));
    CL(clSetKernelArg(probe->kernel, 1, sizeof rounds, &rounds));
    CL(clSetKernelArg(probe->kernel, 2, sizeof factor, &factor));
    CL(clSetKernelArg(probe->kernel, 3, sizeof summand, &summand));
    run_probe(probe, 0); /* compiles */
    return probe;
}

double work_seconds(const struct device *device)
{
    struct timespec time;
    clock_gettime(device->is_cpu ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC_RAW, &time);
    double seconds = (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
    return device->is_cpu ? seconds / device->units : seconds;
}

double run_probe(struct probe *probe, double seconds)
{
    double begin = work_seconds(probe->device);
    double spent;
    double work = 0;
    do {
        run_kernel(probe->device, probe->kernel, probe->items, probe->group);
        work += probe->work;
        spent = work_seconds(probe->device) - begin;
    } while (spent < seconds);
    return work / spent;
}

void close_probe(struct probe *probe)
{
    CL(clReleaseMemObject(probe->out));
    CL(clReleaseKernel(probe->kernel));
    free(probe);
}

/* The fastest of several runs counts, since other programs can only slow a run down. */
double measure_copy_speed(struct device *device, double seconds)
{
    cl_int n = 16 << 20; /* 64 MiB each way: more than the caches hold */
    cl_kernel kernel = new_kernel(device, "bench.cl", "copy");
    cl_mem buffer[2];
    for (cl_uint i = 0; i < 2; i++) {
        CL_MAKE(err, buffer[i] =
                         clCreateBuffer(device->context->cl, CL_MEM_READ_WRITE, (size_t)n * sizeof(float), NULL, &err));
        CL(clSetKernelArg(kernel, i, sizeof buffer[i], &buffer[i]));
    }
    CL(clSetKernelArg(kernel, 2, sizeof n, &n));
    size_t group = device->shape.work_group;
    size_t items = ceil_div((size_t)n, BLOCK) * group;
    double least = INFINITY, spent = 0;
    run_kernel(device, kernel, items, group); /* compiles */
    while (spent < seconds) {
        double took = run_kernel(device, kernel, items, group);
        least = fmin(least, took);
        spent += took;
    }
    for (int i = 0; i < 2; i++)
        CL(clReleaseMemObject(buffer[i]));
    CL(clReleaseKernel(kernel));
    return 2.0 * n * sizeof(float) / least;
}

const struct module module_peak = {
    .name = "peak",
};
