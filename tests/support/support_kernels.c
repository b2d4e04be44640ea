/* support_kernels.c - one device in all shapes of the kernels, and running one kernel on it. */
#include "support_kernels.h"

#include "trainer/model/model.h"

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

/* 0: what the device would choose. */
static const struct machine_shape {
    int vector, work_group;
} shapes[SHAPES] = {{0, 0}, {8, 1}, {4, 1}, {1, 1}, {4, 64}, {1, 64}};
struct machine *machines[SHAPES];
struct machine *machine;
struct device *device;

void open_shapes(void)
{
    for (size_t i = 0; i < SHAPES; i++)
        machines[i] = open_shaped("0:0", shapes[i].vector, shapes[i].work_group);
}

void close_shapes(void)
{
    for (size_t i = 0; i < SHAPES; i++)
        close_machine(machines[i]);
}

bool take_shape(size_t shape)
{
    if (shape == SHAPES)
        return false;
    machine = machines[shape];
    device = &machine->devices[0];
    return true;
}

void check_in_shapes(void (*check)(int size), const int *sizes, size_t n)
{
    for (size_t shape = 0; take_shape(shape); shape++)
        for (size_t i = 0; i < n; i++)
            check(sizes[i]);
}

/* ---- running one kernel ------------------------------------------------------------------------------------------ */

enum { GUARD_WORDS = 64, MOST_BUFFERS = 8 };
static const uint32_t guard_word = 0x5AFEC0DE;

struct buffers { /* arrays on the device; the same array twice is one buffer: kernels that work in place */
    const struct value *of[MOST_BUFFERS];
    cl_mem mem[MOST_BUFFERS];
    int n;
};

static cl_command_queue queue(void) { return device->lanes[LANE_COMPUTE]->queue; }

static cl_mem find_or_make_buffer(struct buffers *buffers, const struct value *value)
{
    for (int i = 0; i < buffers->n; i++)
        if (buffers->of[i]->host == value->host)
            return buffers->mem[i];
    uint32_t *words = allocate(value->n + GUARD_WORDS, sizeof *words);
    memcpy(words, value->host, value->n * sizeof *words);
    for (int i = 0; i < GUARD_WORDS; i++)
        words[value->n + (size_t)i] = guard_word;
    cl_mem mem;
    CL_MAKE(err, mem = clCreateBuffer(device->context->cl, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                      (value->n + GUARD_WORDS) * sizeof *words, words, &err));
    free(words);
    buffers->of[buffers->n] = value;
    buffers->mem[buffers->n] = mem;
    buffers->n++;
    return mem;
}

/* The arrays get what the device has; its buffers go. */
static void fetch(struct buffers *buffers, const char *kernel)
{
    for (int i = 0; i < buffers->n; i++) {
        size_t n = buffers->of[i]->n;
        uint32_t *words = allocate(n + GUARD_WORDS, sizeof *words);
        CL(clEnqueueReadBuffer(queue(), buffers->mem[i], CL_TRUE, 0, (n + GUARD_WORDS) * sizeof *words, words, 0, NULL,
                               NULL));
        for (size_t k = n; k < n + GUARD_WORDS; k++)
            if (words[k] != guard_word)
                test_failed("%s wrote %zu words behind an array of %zu\n", kernel, k - n + 1, n);
        memcpy(buffers->of[i]->host, words, n * sizeof *words);
        free(words);
        CL(clReleaseMemObject(buffers->mem[i]));
    }
}

void run_kernel(const char *file, const char *kernel, size_t n_groups, const struct value *args, size_t n)
{
    struct buffers buffers = {.n = 0};
    cl_kernel k = new_kernel(device, file, kernel);
    for (cl_uint i = 0; i < n; i++) {
        cl_mem mem = args[i].kind == IS_ARRAY ? find_or_make_buffer(&buffers, &args[i]) : NULL;
        const void *at = &args[i].f;
        if (args[i].kind == IS_ARRAY)
            at = &mem;
        else if (args[i].kind == IS_WHOLE)
            at = &args[i].i;
        CL(clSetKernelArg(k, i, args[i].kind == IS_ARRAY ? sizeof mem : 4, at));
    }
    size_t local = device->shape.work_group, global = n_groups * local;
    CL(clEnqueueNDRangeKernel(queue(), k, 1, NULL, &global, &local, 0, NULL, NULL));
    fetch(&buffers, kernel);
    CL(clReleaseKernel(k));
}

size_t blocks_of(int n) { return ceil_div((size_t)n, BLOCK); }

size_t columns_of_groups(int n)
{
    return ceil_div((size_t)n, device->shape.work_group > 1 ? GPU_COLUMNS : CPU_COLUMNS);
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

const int lengths[LENGTHS] = {1, 15, 17, 100, 4096, 4097, 9001};

struct twins twins(int n, uint64_t seed)
{
    float *x = random_floats((size_t)n, seed);
    return (struct twins){x, copy_floats(x, (size_t)n), (size_t)n};
}

void free_twins(struct twins *t)
{
    free(t->ours);
    free(t->expected);
}

void expect_same_twins(const char *what, struct twins *t)
{
    for (size_t i = 0; i < t->n && device->extra.quirks.short_loops; i++)
        t->ours[i] += 0.0f; /* llvmpipe: -0 becomes 0 */
    expect_same_bits(what, t->ours, t->expected, t->n);
}

void expect_close_twins(const char *what, struct twins *t, double tolerance)
{
    expect_close(what, t->ours, t->expected, t->n, tolerance);
}
