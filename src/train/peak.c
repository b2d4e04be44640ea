/* peak.c - the limits of a device, measured: what everything else is a share of.  The kernels are in cl/bench.cl. */
#include "train.h"

static double run_kernel(struct device *d, cl_kernel k, size_t items, size_t group)
{
    cl_command_queue queue = d->lane[LANE_COMPUTE]->queue;
    uint64_t start = now_ns();
    CL(clEnqueueNDRangeKernel(queue, k, 1, NULL, &items, &group, 0, NULL, NULL));
    CL(clFinish(queue));
    return (double)(now_ns() - start) * 1e-9;
}

/* Best rate of several runs, for `seconds` in all: neighbours can only slow a run down. */
static double best_rate(struct device *d, cl_kernel k, size_t items, size_t group, double work, double seconds)
{
    double best = 0, spent = 0;
    run_kernel(d, k, items, group); /* compiles */
    while (spent < seconds) {
        double took = run_kernel(d, k, items, group);
        best = MAX(best, work / took);
        spent += took;
    }
    return best;
}

/* ---- the FMA probe --------------------------------------------------------------------------------------------- */

struct probe {
    struct device *device;
    cl_kernel kernel;
    cl_mem out;
    size_t group, items;
    double work; /* FLOPs of one run */
};

struct probe *open_probe(struct device *d)
{
    struct probe *p = allocate(1, sizeof *p);
    const bool alone = d->work_group == 1;
    cl_int rounds = alone ? 400000 / (cl_int)MAX(d->vector / 4, 1u) : 4000;
    cl_float x = 0.999f, y = 0.001f;
    p->device = d;
    p->group = d->work_group;
    p->items = alone ? d->units * 8 : d->units * 16 * p->group;
    p->work = 2.0 * FMA_CHAINS * d->vector * rounds * (double)p->items;
    p->kernel = make_kernel(d, "bench.cl", "fma_peak");
    CL_MAKE(p->out = clCreateBuffer(d->context->cl, CL_MEM_WRITE_ONLY, p->items * sizeof(float), NULL, &err));
    CL(clSetKernelArg(p->kernel, 0, sizeof p->out, &p->out));
    CL(clSetKernelArg(p->kernel, 1, sizeof rounds, &rounds));
    CL(clSetKernelArg(p->kernel, 2, sizeof x, &x));
    CL(clSetKernelArg(p->kernel, 3, sizeof y, &y));
    run_probe(p, 0); /* compiles */
    return p;
}

double run_probe(struct probe *p, double seconds)
{
    double spent = 0, work = 0;
    do {
        spent += run_kernel(p->device, p->kernel, p->items, p->group);
        work += p->work;
    } while (spent < seconds);
    return work / spent;
}

void close_probe(struct probe *p)
{
    CL(clReleaseMemObject(p->out));
    CL(clReleaseKernel(p->kernel));
    free(p);
}

double measure_fma_peak(struct device *d, double seconds)
{
    struct probe *p = open_probe(d);
    double rate = best_rate(d, p->kernel, p->items, p->group, p->work, seconds);
    close_probe(p);
    return rate;
}

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
    size_t group = d->work_group, items = ceil_div((size_t)n, BLOCK) * group;
    double rate = best_rate(d, k, items, group, 2.0 * n * sizeof(float), seconds);
    for (int i = 0; i < 2; i++)
        CL(clReleaseMemObject(buffer[i]));
    CL(clReleaseKernel(k));
    return rate;
}
