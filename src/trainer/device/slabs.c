/* slabs.c - slabs: large blocks of memory from OpenCL.  A guard behind each of them shows writes past its end. */
#include "driver.h"

#include <pthread.h>
#include <sys/mman.h>

enum { GUARD_BYTE = 0xA5 };

/* ---- limits ------------------------------------------------------------------------------------------------------ */

size_t default_budget(const struct device *device)
{
    bool has_own_memory = device->cl && !device->uses_ram;
    if (!has_own_memory)
        return device->memory;
    size_t part = device->memory / 16;
    return device->memory - part - MIN(part, (size_t)256 << 20);
}

const char *format_budget(char out[BUDGET_TEXT], const struct device *device)
{
    char budget[NUMBER_TEXT], all[NUMBER_TEXT];
    bool is_default = device->budget == default_budget(device);
    format_bytes(budget, (double)device->budget);
    format_bytes(all, (double)device->memory);
    if (device->extra.limited && is_default)
        snprintf(out, BUDGET_TEXT,
                 "%s, all that the memory limit of this process leaves (of a container, a job or ulimit)", budget);
    else if (is_default && device->budget < device->memory)
        snprintf(out, BUDGET_TEXT, "%s (of %s; the rest is left to the driver)", budget, all);
    else
        snprintf(out, BUDGET_TEXT, "%s", budget);
    return out;
}

size_t guard_bytes(const struct device *device) { return device->extra.described.by_hand ? 0 : GUARD_BYTES; }

size_t slab_limit(const struct device *device)
{
    size_t usable = device->max_allocation - guard_bytes(device);
    return usable / device->alignment * device->alignment;
}

/* ---- new slabs --------------------------------------------------------------------------------------------------- */

/* Makes the slab's buffer, and fills it with zeros and the guard.  NVIDIA's driver (580) counts the patterns of a fill
 * in 32 bits: a fill of single bytes hangs above 2 GiB, and beyond 4 GiB it fills another place.  So the pattern is the
 * longest that all devices know, 16 bytes, and the guard is written, not filled. */
static cl_int make_slab_buffer(struct device *device, struct slab *slab)
{
    static const cl_uchar zeros[16];
    unsigned char guard[GUARD_BYTES];
    cl_command_queue queue = device->lanes[LANE_UPLOAD]->queue;
    cl_int code;
    memset(guard, GUARD_BYTE, sizeof guard);
    slab->buffer = clCreateBuffer(device->context->cl, CL_MEM_READ_WRITE, slab->bytes + GUARD_BYTES, NULL, &code);
    if (code != CL_SUCCESS)
        return code;
    /* Drivers of GPUs allocate a buffer when it is first used: a lack of memory may show only here. */
    code = clEnqueueFillBuffer(queue, slab->buffer, zeros, sizeof zeros, 0, slab->bytes, 0, NULL, NULL);
    if (code != CL_SUCCESS)
        return code;
    code = clEnqueueWriteBuffer(queue, slab->buffer, CL_FALSE, slab->bytes, GUARD_BYTES, guard, 0, NULL, NULL);
    if (code != CL_SUCCESS)
        return code;
    return clFinish(queue);
}

static struct problem *allocate_device_slab(struct device *device, struct slab *slab)
{
    cl_command_queue queue = device->lanes[LANE_UPLOAD]->queue;
    cl_int code = make_slab_buffer(device, slab);
    if (code != CL_SUCCESS) {
        char size[NUMBER_TEXT];
        if (slab->buffer)
            clReleaseMemObject(slab->buffer);
        return new_problem(
            EXIT_USAGE, "device %s cannot allocate %s (%s): use a smaller model, or a smaller --batch or --micro-batch",
            device->id, format_bytes(size, (double)slab->bytes), cl_error_name(code));
    }
    if (device->is_cpu) /* CPUs' drivers map a buffer where it lies: there a debugger can look at tensors */
        slab->debug_view =
            clEnqueueMapBuffer(queue, slab->buffer, CL_TRUE, CL_MAP_READ, 0, slab->bytes, 0, NULL, NULL, NULL);
    if (slab->debug_view)
        CL(clEnqueueUnmapMemObject(queue, slab->buffer, slab->debug_view, 0, NULL, NULL));
    return NULL;
}

/* Maps memory that OpenCL has allocated: it is pinned where that matters, for copies to devices of the copier's
 * context.  With some drivers copies to and from other memory block the caller.  slab->block stays NULL when it cannot
 * be had. */
static void allocate_pinned(const struct device *copier, struct slab *slab, size_t bytes)
{
    slab->queue = copier->lanes[LANE_UPLOAD]->queue;
    slab->pinned = clCreateBuffer(copier->context->cl, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, NULL, NULL);
    if (!slab->pinned)
        return;
    slab->block = clEnqueueMapBuffer(slab->queue, slab->pinned, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0, NULL,
                                     NULL, NULL);
    if (!slab->block) {
        CL(clReleaseMemObject(slab->pinned));
        slab->pinned = NULL;
    }
}

/* Adds a slab of the host. */
static struct problem *allocate_host_slab(const struct device *device, const struct device *copier, struct slab *slab)
{
    size_t bytes = slab->bytes + GUARD_BYTES + device->alignment; /* with room to align the slab's start */
    allocate_pinned(copier, slab, bytes);
    if (!slab->block)
        slab->block = malloc(bytes);
    char size[NUMBER_TEXT];
    if (!slab->block)
        return new_problem(EXIT_USAGE, "the host cannot allocate %s: use a smaller model or a smaller --batch",
                           format_bytes(size, (double)slab->bytes));
    size_t skipped = (device->alignment - (uintptr_t)slab->block % device->alignment) % device->alignment;
    slab->host = (char *)slab->block + skipped;
#ifdef MADV_HUGEPAGE
    madvise(slab->host, slab->bytes, MADV_HUGEPAGE); /* then a disk can fetch large pieces at once from here */
#endif
    memset(slab->host, 0, slab->bytes);
    memset((char *)slab->host + slab->bytes, GUARD_BYTE, GUARD_BYTES);
    return NULL;
}

struct problem *add_slab(struct machine *machine, struct device *device, const struct device *copier, size_t bytes)
{
    GROW(device->slabs, device->cap_slabs, device->n_slabs + 1);
    struct slab *slab = &device->slabs[device->n_slabs++];
    *slab = (struct slab){.bytes = bytes};
    struct problem *problem = NULL;
    if (device->is_host)
        problem = allocate_host_slab(device, copier ? copier : machine->devices, slab);
    else
        problem = allocate_device_slab(device, slab);
    if (problem)
        device->n_slabs--;
    else
        machine->allocated += bytes + GUARD_BYTES;
    return problem;
}

/* ---- sub-buffers ------------------------------------------------------------------------------------------------- */

cl_mem slab_part(struct slab *slab, size_t begin, size_t bytes)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* lanes' threads call this too */
    cl_buffer_region span = {begin, bytes};
    cl_mem part;
    pthread_mutex_lock(&lock); /* so that parts are listed in the order in which they are made */
    CL_MAKE(err, part = clCreateSubBuffer(slab->buffer, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &span, &err));
    GROW(slab->parts, slab->cap_parts, slab->n_parts + 1);
    slab->parts[slab->n_parts++] = part;
    pthread_mutex_unlock(&lock);
    return part;
}

/* ---- reading and writing ----------------------------------------------------------------------------------------- */

/* A blocking write is not enough: OpenCL 1.2 lets it return when the driver has copied the data to memory of its own,
 * as Intel's does.  A kernel on another lane could then start before the data arrive, and they would overwrite its
 * results. */
void write_buffer(struct device *device, cl_mem buffer, size_t begin, const void *from, size_t bytes)
{
    cl_command_queue queue = device->lanes[LANE_UPLOAD]->queue;
    CL(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, begin, bytes, from, 0, NULL, NULL));
    CL(clFinish(queue));
}

void read_buffer(struct device *device, cl_mem buffer, size_t begin, void *into, size_t bytes)
{
    CL(clEnqueueReadBuffer(device->lanes[LANE_DOWNLOAD]->queue, buffer, CL_TRUE, begin, bytes, into, 0, NULL, NULL));
}

/* ---- guards, and freeing ----------------------------------------------------------------------------------------- */

int damaged_guards(struct device *device)
{
    unsigned char guard[GUARD_BYTES], whole[GUARD_BYTES];
    int damaged = 0;
    memset(whole, GUARD_BYTE, sizeof whole);
    for (const struct slab *slab = device->slabs; slab < device->slabs + device->n_slabs; slab++) {
        if (slab->buffer)
            read_buffer(device, slab->buffer, slab->bytes, guard, GUARD_BYTES);
        else
            memcpy(guard, (char *)slab->host + slab->bytes, GUARD_BYTES);
        if (memcmp(guard, whole, GUARD_BYTES) != 0)
            damaged++;
    }
    return damaged;
}

/* NVIDIA's driver (580) crashes when the older of two parts that overlap is released first. */
static void release_parts(struct slab *slab)
{
    while (slab->n_parts > 0) {
        slab->n_parts--;
        CL(clReleaseMemObject(slab->parts[slab->n_parts]));
    }
    free(slab->parts);
}

void free_slabs(struct machine *machine, struct device *device)
{
    for (struct slab *slab = device->slabs; slab < device->slabs + device->n_slabs; slab++) {
        release_parts(slab);
        if (slab->pinned) {
            CL(clEnqueueUnmapMemObject(slab->queue, slab->pinned, slab->block, 0, NULL, NULL));
            CL(clFinish(slab->queue));
            CL(clReleaseMemObject(slab->pinned));
        } else {
            free(slab->block);
        }
        if (slab->buffer)
            CL(clReleaseMemObject(slab->buffer));
        machine->allocated -= slab->bytes + GUARD_BYTES;
    }
    free(device->slabs);
    device->slabs = NULL;
    device->n_slabs = 0;
    device->cap_slabs = 0;
}
