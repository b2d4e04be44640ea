/* peak.c - measures the limits of a device, FLOP/s and bytes/s, of which other speeds are shown as shares.  The kernels
 * are in cl/bench.cl. */
#include "peak.h"
#include "trainer/model/model.h"

#include <math.h>
#include <time.h>

static double run_kernel(struct device *d, cl_kernel k, size_t items, size_t group)
{
    cl_command_queue queue = d->lane[LANE_COMPUTE]->queue;
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

struct probe *open_probe(struct device *d)
{
    const bool one_item = d->shape.work_group == 1;
    const size_t group = d->shape.work_group;
    const size_t items = one_item ? d->units * 8 : d->units * 16 * group;
    cl_int rounds = one_item ? 400000 / (cl_int)MAX(d->shape.vector / 4, 1u) : 4000;
    cl_float x = 0.999f, y = 0.001f;
    struct probe *p = allocate(1, sizeof *p);
    *p = (struct probe){.device = d,
                        .kernel = make_kernel(d, "bench.cl", "fma_peak"),
                        .group = group,
                        .items = items,
                        .work = 2.0 * FMA_CHAINS * d->shape.vector * rounds * (double)items};
    CL_MAKE(p->out = clCreateBuffer(d->context->cl, CL_MEM_WRITE_ONLY, items * sizeof(float), NULL, &err));
    CL(clSetKernelArg(p->kernel, 0, sizeof p->out, &p->out));
    CL(clSetKernelArg(p->kernel, 1, sizeof rounds, &rounds));
    CL(clSetKernelArg(p->kernel, 2, sizeof x, &x));
    CL(clSetKernelArg(p->kernel, 3, sizeof y, &y));
    run_probe(p, 0); /* compiles */
    return p;
}

double work_seconds(const struct device *d)
{
    struct timespec t;
    clock_gettime(d->is_cpu ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC_RAW, &t);
    double seconds = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    return d->is_cpu ? seconds / d->units : seconds;
}

double run_probe(struct probe *p, double seconds)
{
    double begin = work_seconds(p->device), spent, work = 0;
    do {
        run_kernel(p->device, p->kernel, p->items, p->group);
        work += p->work;
        spent = work_seconds(p->device) - begin;
    } while (spent < seconds);
    return work / spent;
}

void close_probe(struct probe *p)
{
    CL(clReleaseMemObject(p->out));
    CL(clReleaseKernel(p->kernel));
    free(p);
}

/* Of several runs the fastest counts, since other programs can only slow a run down. */
double measure_copy(struct device *d, double seconds)
{
    cl_int n = 16 << 20; /* 64 MiB each way: more than the caches hold */
    cl_kernel k = make_kernel(d, "bench.cl", "copy");
    cl_mem buffer[2];
    for (cl_uint i = 0; i < 2; i++) {
        CL_MAKE(buffer[i] = clCreateBuffer(d->context->cl, CL_MEM_READ_WRITE, (size_t)n * sizeof(float), NULL, &err));
        CL(clSetKernelArg(k, i, sizeof buffer[i], &buffer[i]));
    }
    CL(clSetKernelArg(k, 2, sizeof n, &n));
    size_t group = d->shape.work_group, items = ceil_div((size_t)n, BLOCK) * group;
    double least = INFINITY, spent = 0;
    run_kernel(d, k, items, group); /* compiles */
    while (spent < seconds) {
        double took = run_kernel(d, k, items, group);
        least = fmin(least, took);
        spent += took;
    }
    for (int i = 0; i < 2; i++)
        CL(clReleaseMemObject(buffer[i]));
    CL(clReleaseKernel(k));
    return 2.0 * n * sizeof(float) / least;
}
