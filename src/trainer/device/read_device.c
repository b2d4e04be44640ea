/* read_device.c - what a device is like: its name, its memory, and the shapes with which its kernels are compiled. */
#include "driver.h"

/* GPUs are scalar, and so is llvmpipe, a CPU driver that runs work-items side by side in the lanes of its vectors.
 * YARD_VEC forces another width. */
unsigned own_vector_width(cl_device_id id)
{
    bool cpu = device_number(id, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU;
    uint64_t native = cpu ? device_number(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT) : 1;
    const char *forced = getenv("YARD_VEC");
    int64_t width = 0;
    if (forced && (!parse_int(forced, &width) || width < 1))
        fail(EXIT_USAGE, "YARD_VEC=%s: give a whole number of floats; the kernels know vectors of 16, 8, 4 and 1",
             forced);
    if (forced)
        native = (uint64_t)width;
    if (native >= 16)
        return 16;
    if (native >= 8)
        return 8;
    if (native >= 4)
        return 4;
    return 1;
}

/* The largest power of two that is wanted, fits into local memory and is allowed by the device. */
static unsigned kernel_work_group(const struct device *device)
{
    const char *forced = getenv("YARD_WG");
    unsigned fits = 256 / device->shape.vector; /* common.cl: what a work-group keeps in local memory */
    int64_t wanted = device->shape.one_item ? 1 : GPU_WORK_GROUP;
    if (forced && (!parse_int(forced, &wanted) || wanted < 1 || wanted > fits))
        fail(EXIT_USAGE, "YARD_WG=%s: with vectors of %u the kernels know work-groups of 1 to %u work-items", forced,
             device->shape.vector, fits);
    size_t allowed = MIN(fits, device->shape.most_items);
    size_t most = MIN((size_t)wanted, allowed);
    unsigned power = 1;
    while (power * 2 <= most)
        power *= 2;
    return power;
}

size_t host_memory(bool *limited)
{
    size_t all = physical_memory();
    size_t left = memory_left_by_limits();
    *limited = left < all;
    if (left == 0)
        fail(EXIT_USAGE,
             "the limit of this process's memory leaves nothing beside what the program and the OpenCL driver need: "
             "raise the limit of the container, or of the address space (ulimit -v)");
    return MIN(all, left);
}

static void read_memory(struct device *device)
{
    size_t align = device_number(device->cl, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8; /* OpenCL gives it in bits */
    device->alignment = DEVICE_ALIGNMENT;
    if (align > DEVICE_ALIGNMENT)
        fail(EXIT_NO_DEVICE,
             "device %s needs parts of buffers aligned to %zu bytes, and this program aligns them to %d: choose "
             "another device with -d",
             device->name, align, DEVICE_ALIGNMENT);
    device->uses_ram = device->is_cpu || device_number(device->cl, CL_DEVICE_HOST_UNIFIED_MEMORY);
    size_t most = SIZE_MAX;
    if (device->uses_ram) /* a driver may say that an integrated GPU has all of the host's memory */
        most = host_memory(&device->extra.limited) / 4 * 3;
    if (device->is_cpu) /* what drivers say of a CPU's memory changes from run to run */
        device->memory = most;
    else
        device->memory = MIN(most, device_number(device->cl, CL_DEVICE_GLOBAL_MEM_SIZE));
    device->max_allocation = device_number(device->cl, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    device->shape.local_memory = device_number(device->cl, CL_DEVICE_LOCAL_MEM_SIZE);
}

void choose_tile(struct device *device)
{
    unsigned vector = device->shape.vector; /* gemm.cl has this table, and says why */
    device->shape.tile_rows = vector == 1 ? 4 : 6;
    device->shape.tile_vectors = vector == 1 || vector == 16 ? 4 : 2;
}

/* The shapes of vectors, work-groups and tiles with which kernels are compiled.  vector: the width that --vector asks
 * for; 0: the device's own. */
static void choose_shapes(struct device *device, unsigned vector)
{
    unsigned own = own_vector_width(device->cl);
    bool power_of_two = (vector & (vector - 1)) == 0;
    if (vector > own || !power_of_two || vector == 2)
        fail(EXIT_USAGE, "--vector %u: take 1, 4, 8 or 16, and at most %u: %s has vectors of that many floats", vector,
             own, device->name);
    device->shape.vector = vector ? vector : own;
    device->shape.one_item = device->is_cpu && own > 1;
    device->shape.forced = getenv("YARD_VEC") || getenv("YARD_WG");
    device->shape.most_items = device_number(device->cl, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    device->shape.work_group = kernel_work_group(device);
    choose_tile(device);
}

static void read_device(struct device *device, unsigned vector)
{
    device_text(device->cl, CL_DEVICE_NAME, device->name, sizeof device->name);
    device->is_cpu = device_number(device->cl, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU;
    device->units = (unsigned)device_number(device->cl, CL_DEVICE_MAX_COMPUTE_UNITS);
    device->extra.quirks.correct_divide =
        device_number(device->cl, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
    device->extra.quirks.needs_waiter = is_pocl(platform_of(device)) && begins_with(device->name, "basic-");
    device->extra.quirks.short_loops = begins_with(device->name, "llvmpipe");
    read_memory(device);
    choose_shapes(device, vector);
}

struct device *add_device(struct machine *machine, cl_device_id id, cl_device_id root)
{
    if (machine->n_devices == MOST_DEVICES)
        fail(EXIT_USAGE, "-d names more than %d devices; `yard plan --hardware FILE` takes more", MOST_DEVICES);
    struct device *device = &machine->devices[machine->n_devices];
    device->index = machine->n_devices;
    machine->n_devices++;
    device->cl = id;
    device->extra.root = root;
    read_device(device, machine->options.vector);
    return device;
}
