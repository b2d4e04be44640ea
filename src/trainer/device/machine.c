/* machine.c - opens the devices that -d names, their contexts and lanes.
 *
 *     -d 0:0          platform 0, device 0, numbered as `clinfo -l` numbers them
 *     -d 0:0/2        that device cut into two sub-devices: two devices that run truly in parallel
 *     -d 0:0x4        four logical devices sharing it: the structure of four devices, the speed of one
 *     -d 0:0,1:0      several, comma-separated
 */
#include "device.h"

#include <unistd.h>

const char *const lane_kind_name[LANE_KINDS + 1] = {"compute", "upload", "download", "cpu", "disk", "report", "feed"};
enum { HOST_ALIGNMENT = 4096 };

/* ---- which devices --------------------------------------------------------------------------------------------- */

/* One comma-separated part of -d: P:D, P:D/PIECES or P:DxSHARES. */
struct selection {
    uint16_t platform, device; /* numbers, from 0; 16 bits, so that the `id` of struct device has room for all four */
    uint16_t pieces, shares;   /* how many; 0: the part does not ask for them */
};

/* The first GPU, or else the first device. */
static const char *default_device(char text[32])
{
    cl_platform_id platforms[MOST_PLATFORMS];
    cl_device_id devices[MOST_PER_PLATFORM];
    bool gpu = false;
    cl_uint n = load_platforms(platforms);
    *text = '\0';
    for (unsigned p = 0; p < n; p++) {
        cl_uint count = get_devices(platforms[p], devices);
        for (unsigned d = 0; d < count && !gpu; d++) {
            gpu = device_number(devices[d], CL_DEVICE_TYPE) & CL_DEVICE_TYPE_GPU;
            if (gpu || !*text)
                snprintf(text, 32, "%u:%u", p, d);
        }
    }
    if (!*text)
        fail_without_device(platforms, n, EXIT_IO);
    return text;
}

/* Reads the part of -d at *at, and moves *at to what follows.  Returns false if it is not a part such as 0:0/2. */
static bool read_selection(const char **at, struct selection *selection)
{
    enum { END = 10000 };
    const int platform = parse_number(at, END);
    if (platform == NONE || **at != ':')
        return false;
    (*at)++;
    const int device = parse_number(at, END);
    if (device == NONE)
        return false;
    *selection = (struct selection){.platform = (uint16_t)platform, .device = (uint16_t)device};
    const char kind = **at;
    if (kind == '/' || kind == 'x') {
        (*at)++;
        const int count = parse_number(at, END);
        if (count < 1)
            return false;
        if (kind == '/')
            selection->pieces = (uint16_t)count;
        else
            selection->shares = (uint16_t)count;
    }
    return **at == '\0' || **at == ',';
}

/* Ends the program: there is no such device.  Names those that there are, as -d does. */
static _Noreturn void refuse_selection(const struct selection *selection, const cl_platform_id *platforms, cl_uint n)
{
    cl_device_id devices[MOST_PER_PLATFORM];
    char *known = NULL;
    for (unsigned p = 0; p < n; p++) {
        const cl_uint count = get_devices(platforms[p], devices);
        for (unsigned d = 0; d < count; d++)
            append_text(&known, "%s%u:%u", known ? ", " : "", p, d);
    }
    if (!known)
        fail_without_device(platforms, n, EXIT_IO);
    fail(EXIT_NO_DEVICE, "-d %u:%u: there is no such device; `yard devices` describes those that there are: %s",
         selection->platform, selection->device, known);
}

static cl_device_id find_device(const struct selection *selection)
{
    cl_platform_id platforms[MOST_PLATFORMS];
    cl_device_id devices[MOST_PER_PLATFORM];
    const cl_uint n = load_platforms(platforms);
    cl_uint count = 0;
    if (selection->platform < n) {
        count = get_devices(platforms[selection->platform], devices);
        if (count == 0)
            check_kernel_cache(platforms[selection->platform], EXIT_IO);
    }
    if (selection->device >= count)
        refuse_selection(selection, platforms, n);
    return devices[selection->device];
}

/* ---- one device ------------------------------------------------------------------------------------------------ */

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
    const unsigned fits = 256 / device->shape.vector; /* common.cl: what a work-group keeps in local memory */
    int64_t wanted = device->shape.one_item ? 1 : GPU_WORK_GROUP;
    if (forced && (!parse_int(forced, &wanted) || wanted < 1 || wanted > fits))
        fail(EXIT_USAGE, "YARD_WG=%s: with vectors of %u the kernels know work-groups of 1 to %u work-items", forced,
             device->shape.vector, fits);
    const size_t allowed = MIN(fits, device->shape.most_items);
    const size_t most = MIN((size_t)wanted, allowed);
    unsigned power = 1;
    while (power * 2 <= most)
        power *= 2;
    return power;
}

/* Bytes of the host's memory that this process may take.  *limited: are they fewer than the host has? */
static size_t host_memory(bool *limited)
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
        most = host_memory(&device->limited) / 4 * 3;
    if (device->is_cpu) /* what drivers say of a CPU's memory changes from run to run */
        device->memory = most;
    else
        device->memory = MIN(most, device_number(device->cl, CL_DEVICE_GLOBAL_MEM_SIZE));
    device->max_allocation = device_number(device->cl, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    device->shape.local_memory = device_number(device->cl, CL_DEVICE_LOCAL_MEM_SIZE);
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
    device->quirks.correct_divide =
        device_number(device->cl, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
    device->quirks.needs_waiter = is_pocl(platform_of(device)) && begins_with(device->name, "basic-");
    device->quirks.short_loops = begins_with(device->name, "llvmpipe");
    read_memory(device);
    choose_shapes(device, vector);
}

static struct device *new_device(struct machine *machine, cl_device_id id, cl_device_id root)
{
    if (machine->n_devices == MOST_DEVICES)
        fail(EXIT_USAGE, "-d names more than %d devices; `yard plan --hardware FILE` takes more", MOST_DEVICES);
    struct device *device = &machine->devices[machine->n_devices];
    device->index = machine->n_devices;
    machine->n_devices++;
    device->cl = id;
    device->root = root;
    read_device(device, machine->options.vector);
    return device;
}

static void add_sub_devices(struct machine *machine, const struct selection *selection, cl_device_id root)
{
    const cl_uint units = (cl_uint)device_number(root, CL_DEVICE_MAX_COMPUTE_UNITS);
    const bool can_be_cut = device_number(root, CL_DEVICE_PARTITION_MAX_SUB_DEVICES) >= 2;
    const cl_uint most = can_be_cut ? MIN(units, MOST_DEVICES) : 1;
    cl_device_id pieces[64];
    cl_uint n = 0;
    if (!can_be_cut || selection->pieces > most)
        fail(EXIT_USAGE,
             "-d %u:%u/%u: this device has %u compute units and can be cut into at most %u; %u:%uxN makes N logical "
             "devices of it, up to %d",
             selection->platform, selection->device, selection->pieces, units, most, selection->platform,
             selection->device, MOST_DEVICES);
    cl_device_partition_property equally[] = {CL_DEVICE_PARTITION_EQUALLY,
                                              (cl_device_partition_property)(units / selection->pieces), 0};
    CL(clCreateSubDevices(root, equally, COUNT(pieces), pieces, &n));
    for (unsigned i = 0; i < n; i++) {
        if (i >= selection->pieces) { /* units that do not divide evenly stay unused */
            CL(clReleaseDevice(pieces[i]));
            continue;
        }
        struct device *device = new_device(machine, pieces[i], root);
        snprintf(device->id, sizeof device->id, "%u:%u/%u.%u", selection->platform, selection->device,
                 selection->pieces, i);
        device->memory /= selection->pieces; /* the pieces share one memory */
    }
}

/* Adds the shares of a device, or, where -d asks for none, the device itself. */
static void add_shares(struct machine *machine, const struct selection *selection, cl_device_id root)
{
    unsigned shares = MAX(selection->shares, 1);
    for (unsigned i = 0; i < shares; i++) {
        struct device *device = new_device(machine, root, root);
        device->is_logical = selection->shares > 0;
        device->memory /= shares;
        snprintf(device->id, sizeof device->id, device->is_logical ? "%u:%ux%u.%u" : "%u:%u", selection->platform,
                 selection->device, shares, i);
    }
}

/* Adds the device itself, or its shares, or the pieces into which it is cut. */
static void add_selection(struct machine *machine, const struct selection *selection)
{
    cl_device_id root = find_device(selection);
    for (int i = 0; i < machine->n_devices; i++)
        if (machine->devices[i].root == root)
            fail(EXIT_USAGE,
                 "-d names device %u:%u twice, but it has its compute units only once: cut the device with /n, or "
                 "share it with xN",
                 selection->platform, selection->device);
    if (selection->pieces)
        add_sub_devices(machine, selection, root);
    else
        add_shares(machine, selection, root);
}

/* ---- contexts and lanes ---------------------------------------------------------------------------------------- */

/* Can two devices share buffers, so that copies between them are direct?  They are then given one context. */
static bool can_share(const struct device *a, const struct device *b)
{
    if (platform_of(a) != platform_of(b))
        return false;
    return a->root == b->root || (a->is_cpu && b->is_cpu);
}

/* Makes a context for the device and for those after it that can share buffers with it. */
static void make_context(struct machine *machine, struct device *first)
{
    cl_device_id ids[MOST_DEVICES];
    cl_uint n = 0;
    /* A test sets this variable, so that copies go through the host. */
    bool alone = machine->options.separate || getenv("YARD_SEPARATE_CONTEXTS");
    struct context *context = &machine->contexts[machine->n_contexts];
    context->index = machine->n_contexts;
    machine->n_contexts++;
    for (int i = first->index; i < machine->n_devices; i++) {
        struct device *device = &machine->devices[i];
        bool joins = device == first || (!alone && can_share(device, first));
        if (device->context || !joins)
            continue;
        device->context = context;
        if (n == 0 || ids[n - 1] != device->cl) /* the shares of one device, which are neighbours, count once */
            ids[n++] = device->cl;
    }
    CL_MAKE(err, context->cl = clCreateContext(NULL, n, ids, NULL, NULL, &err));
}

/* Adds the devices that -d names; NULL: the default device. */
static void add_devices(struct machine *machine, const char *names)
{
    char text[32];
    const char *at = names ? names : default_device(text);
    for (;;) {
        struct selection selection;
        if (!read_selection(&at, &selection))
            fail(EXIT_USAGE,
                 "--devices (-d) takes P:D, P:D/n or P:DxN, with commas between, as in -d 0:0/2, not \"%s\"; `yard "
                 "devices` lists them, and n and N are 1 or more",
                 names);
        add_selection(machine, &selection);
        if (!*at)
            return;
        at++; /* the comma */
    }
}

/* The host comes after the OpenCL devices. */
static void add_host_device(struct machine *machine)
{
    bool limited;
    size_t memory = host_memory(&limited);
    struct device *host = set_up_device(machine, machine->n_devices, "host", memory);
    host->limited = limited;
    host->uses_ram = true;
    host->units = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    host->alignment = HOST_ALIGNMENT;
    /* A device that is no CPU must be able to map each of the host's slabs. */
    for (const struct device *device = machine->devices; device < host; device++)
        if (!device->is_cpu)
            host->max_allocation = MIN(host->max_allocation, device->max_allocation - HOST_ALIGNMENT);
    host->budget = machine->options.host_memory ? machine->options.host_memory : host->memory;
    machine->host = host;
}

struct machine *open_machine(const struct machine_options *options)
{
    struct machine *machine = new_machine(MOST_DEVICES);
    machine->n_devices = 0;
    machine->options = *options;
    add_devices(machine, options->devices);
    for (int i = 0; i < machine->n_devices; i++) {
        struct device *device = &machine->devices[i];
        if (!device->context)
            make_context(machine, device);
        device->budget = options->device_memory ? options->device_memory : default_budget(device);
        for (enum lane_kind kind = LANE_COMPUTE; kind <= LANE_DOWNLOAD; kind++)
            open_lane(machine, device, kind, 0);
    }
    add_host_device(machine);
    calibrate_clocks(machine);
    return machine;
}

static void free_machine(struct machine *machine)
{
    for (int i = 0; i < machine->n_lanes; i++)
        if (machine->lanes[i]->queue)
            CL(clReleaseCommandQueue(machine->lanes[i]->queue));
    for (struct context *context = machine->contexts; context < machine->contexts + machine->n_contexts; context++) {
        for (size_t i = 0; i < context->n_programs; i++) {
            CL(clReleaseProgram(context->programs[i].cl));
            free(context->programs[i].file);
        }
        free(context->programs);
        if (context->cl) /* a machine that is only described has none */
            CL(clReleaseContext(context->cl));
    }
    for (int i = 0; i < machine->n_devices; i++)
        if (machine->devices[i].cl && machine->devices[i].cl != machine->devices[i].root)
            CL(clReleaseDevice(machine->devices[i].cl));
    drop_links(machine);
    for (int i = 0; i < machine->n_lanes; i++)
        free(machine->lanes[i]);
    free(machine->links);
    free(machine->devices);
    free(machine->lanes);
    free(machine->contexts);
    free(machine);
}

/* PoCL's threads still read an event's queue and device for a moment after they have reported that it has ended.  So
 * only the slabs are freed now; everything else is released when the next machine is closed. */
void close_machine(struct machine *machine)
{
    static struct machine *closed;
    for (int i = 0; i <= machine->n_devices; i++)
        free_slabs(machine, &machine->devices[i]);
    if (closed)
        free_machine(closed);
    closed = machine;
}

/* Cores that are used by CPU devices, each counted once. */
static unsigned count_cores(const struct machine *machine)
{
    unsigned cores = 0;
    for (const struct device *device = machine->devices; device < machine->host; device++)
        /* The shares of one device are neighbours. */
        if (device->is_cpu && (device == machine->devices || device->cl != device[-1].cl))
            cores += device->units;
    return cores;
}

unsigned spare_cores(const struct machine *machine)
{
    return machine->host->units - MIN(count_cores(machine), machine->host->units);
}

unsigned vector_width(const struct machine *machine)
{
    for (int i = 1; i < machine->n_devices; i++)
        if (machine->devices[i].shape.vector != machine->devices[0].shape.vector)
            return 0;
    return machine->devices[0].shape.vector;
}

char *describe_machine(const struct machine *machine)
{
    const struct device *device = &machine->devices[0], *last = &machine->devices[machine->n_devices - 1];
    const char *plural = device->units == 1 ? "" : "s";
    const char *shared = device->is_logical ? ", shared: the devices take turns" : "";
    unsigned used = count_cores(machine), width = vector_width(machine);
    char *text = NULL;
    if (machine->n_devices == 1)
        append_text(&text, "%s (%s, %u unit%s", device->name, device->id, device->units, plural);
    else
        append_text(&text, "%d devices, %s to %s: %s (%u unit%s each%s", machine->n_devices, device->id, last->id,
                    device->name, device->units, plural, shared);
    if (used)
        append_text(&text, "; %u of the host's %u cores compute", used, machine->host->units);
    if (width)
        append_text(&text, "; vectors of %u float%s)", width, width == 1 ? "" : "s");
    else /* the user is told, since the same bits need the same width */
        append_text(&text, "; vectors of unlike widths)");
    return text;
}
