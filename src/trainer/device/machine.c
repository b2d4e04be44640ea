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

struct selection { /* one comma-separated part of -d */
    unsigned platform, device, pieces, shares;
};

/* The first GPU, or else the first device. */
static const char *default_device(char text[32])
{
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_device_id devices[MAX_PER_PLATFORM];
    bool gpu = false;
    cl_uint n = get_platforms(platforms);
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

static bool read_selection(const char **text, struct selection *s)
{
    char part[32], kind = '/';
    unsigned count = 0;
    int end = 0, length = (int)strcspn(*text, ",");
    snprintf(part, sizeof part, "%.*s", length, *text);
    *text += length;
    int n = sscanf(part, "%4u:%4u%n%c%4u%n", &s->platform, &s->device, &end, &kind, &count, &end);
    s->pieces = kind == '/' ? count : 0;
    s->shares = kind == 'x' ? count : 0;
    return part[end] == '\0' && strspn(part, "0123456789:/x") == strlen(part) &&
           (n == 2 || (n == 4 && s->pieces + s->shares > 0));
}

static cl_device_id find_device(const struct selection *s)
{
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_device_id devices[MAX_PER_PLATFORM];
    cl_uint n = get_platforms(platforms);
    if (n == 0)
        fail_without_device(platforms, n, EXIT_IO);
    if (s->platform >= n)
        fail(EXIT_NO_DEVICE, "-d %u:%u: OpenCL platforms here: %u, numbered from 0; run `yard devices`", s->platform,
             s->device, n);
    cl_uint count = get_devices(platforms[s->platform], devices);
    if (count == 0)
        check_kernel_cache(platforms[s->platform], EXIT_IO);
    if (s->device >= count)
        fail(EXIT_NO_DEVICE, "-d %u:%u: devices of platform %u: %u, numbered from 0; run `yard devices`", s->platform,
             s->device, s->platform, count);
    return devices[s->device];
}

/* ---- one device ------------------------------------------------------------------------------------------------ */

/* The kernels know vectors of 16, 8, 4 and 1 floats.  GPUs are scalar, and so is llvmpipe, a CPU driver that runs
 * work-items side by side in the lanes of its vectors.  YARD_VEC and YARD_WG force another shape. */
unsigned own_vector_width(cl_device_id id)
{
    bool cpu = device_number(id, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU;
    uint64_t native = cpu ? device_number(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT) : 1;
    const char *forced = getenv("YARD_VEC");
    if (forced)
        native = (uint64_t)atoi(forced);
    return native >= 16 ? 16 : native >= 8 ? 8 : native >= 4 ? 4 : 1;
}

static unsigned kernel_work_group(const struct device *d)
{
    const char *forced = getenv("YARD_WG");
    unsigned most = 256 / d->vector, power = 1; /* common.cl: for what a work-group keeps in local memory */
    int64_t wanted = d->one_item ? 1 : GPU_WORK_GROUP;
    if (forced && (!parse_int(forced, &wanted) || wanted < 1 || wanted > most))
        fail(EXIT_USAGE, "YARD_WG=%s: with vectors of %u the kernels know work-groups of 1 to %u work-items", forced,
             d->vector, most);
    while (power * 2 <= MIN((size_t)wanted, MIN(most, d->most_items)))
        power *= 2;
    return power;
}

/* What this process may take of it.  *limited: that is less than there is. */
static size_t host_memory(bool *limited)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t all = pages > 0 ? (size_t)pages * (size_t)page : SIZE_MAX / 4;
    size_t left = memory_left_by_limits();
    *limited = left < all;
    if (left == 0)
        fail(EXIT_USAGE,
             "a limit of this process's memory leaves nothing beside what the program and the OpenCL driver "
             "need: raise that of the container, or of the address space (ulimit -v)");
    return MIN(all, left);
}

static void describe_device(struct device *d, unsigned vector)
{
    size_t align = device_number(d->cl, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8; /* given in bits */
    device_text(d->cl, CL_DEVICE_NAME, d->name, sizeof d->name);
    d->is_cpu = device_number(d->cl, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU;
    d->uses_ram = d->is_cpu || device_number(d->cl, CL_DEVICE_HOST_UNIFIED_MEMORY);
    d->units = (unsigned)device_number(d->cl, CL_DEVICE_MAX_COMPUTE_UNITS);
    d->alignment = DEVICE_ALIGNMENT;
    if (align > DEVICE_ALIGNMENT)
        fail(EXIT_NO_DEVICE,
             "device %s wants parts of buffers aligned to %zu bytes, and ours are to %d: choose another", d->name,
             align, DEVICE_ALIGNMENT);
    /* Drivers' own guesses for CPUs change from run to run.  Integrated GPUs may be given all of the host's. */
    size_t most = d->uses_ram ? host_memory(&d->limited) / 4 * 3 : SIZE_MAX;
    d->memory = d->is_cpu ? most : MIN(most, device_number(d->cl, CL_DEVICE_GLOBAL_MEM_SIZE));
    d->max_allocation = device_number(d->cl, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    d->local_memory = device_number(d->cl, CL_DEVICE_LOCAL_MEM_SIZE);
    d->correct_divide = device_number(d->cl, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
    unsigned own = own_vector_width(d->cl);
    if (vector > own || (vector & (vector - 1)) || vector == 2)
        fail(EXIT_USAGE,
             "--vector %u: the kernels know vectors of 1, 4, 8 and 16 floats, and %s computes with vectors of %u "
             "floats; take that or fewer",
             vector, d->name, own);
    d->vector = vector ? vector : own;
    d->one_item = d->is_cpu && own > 1;
    d->forced_shape = getenv("YARD_VEC") || getenv("YARD_WG");
    d->most_items = device_number(d->cl, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    d->work_group = kernel_work_group(d);
    d->runs_late = is_pocl(platform_of(d)) && strncmp(d->name, "basic-", 6) == 0;
    d->short_loops = strncmp(d->name, "llvmpipe", 8) == 0;
    choose_tile(d);
}

static struct device *new_device(struct machine *m, cl_device_id id, cl_device_id root)
{
    if (m->n_devices == MAX_DEVICES)
        fail(EXIT_USAGE, "-d names more than %d devices; yard plan --hardware FILE takes more", MAX_DEVICES);
    struct device *d = &m->device[m->n_devices];
    d->index = m->n_devices++;
    d->cl = id;
    d->root = root;
    describe_device(d, m->options.vector);
    return d;
}

static void add_pieces(struct machine *m, const struct selection *s, cl_device_id root)
{
    cl_uint most = (cl_uint)device_number(root, CL_DEVICE_PARTITION_MAX_SUB_DEVICES), n = 0;
    cl_uint units = (cl_uint)device_number(root, CL_DEVICE_MAX_COMPUTE_UNITS);
    cl_device_id pieces[64];
    if (most < 2 || s->pieces > units || s->pieces > COUNT(pieces))
        fail(EXIT_USAGE,
             "-d %u:%u/%u: this device has %u compute units and can be cut into at most %u; use %u:%ux%u for "
             "logical devices",
             s->platform, s->device, s->pieces, units, most < 2 ? 1 : units, s->platform, s->device, s->pieces);
    cl_device_partition_property equally[] = {CL_DEVICE_PARTITION_EQUALLY,
                                              (cl_device_partition_property)(units / s->pieces), 0};
    CL(clCreateSubDevices(root, equally, COUNT(pieces), pieces, &n));
    for (unsigned i = 0; i < n; i++) {
        if (i >= s->pieces) { /* units that do not divide evenly stay unused */
            CL(clReleaseDevice(pieces[i]));
            continue;
        }
        struct device *d = new_device(m, pieces[i], root);
        snprintf(d->id, sizeof d->id, "%u:%u/%u.%u", s->platform, s->device, s->pieces, i);
        d->memory /= s->pieces; /* they share one memory */
    }
}

/* The device itself, or its shares, or the pieces into which it is cut. */
static void add_selection(struct machine *m, const struct selection *s)
{
    cl_device_id root = find_device(s);
    for (int i = 0; i < m->n_devices; i++)
        if (m->device[i].root == root)
            fail(EXIT_USAGE,
                 "-d names device %u:%u twice, whose compute units are there once: cut it with /n or share it with xN",
                 s->platform, s->device);
    if (s->pieces)
        add_pieces(m, s, root);
    for (unsigned i = 0; i < s->shares || (i == 0 && !s->pieces); i++) {
        struct device *d = new_device(m, root, root);
        d->is_logical = s->shares > 0;
        d->memory /= MAX(s->shares, 1);
        snprintf(d->id, sizeof d->id, d->is_logical ? "%u:%ux%u.%u" : "%u:%u", s->platform, s->device, s->shares, i);
    }
}

/* ---- contexts and lanes ---------------------------------------------------------------------------------------- */

/* For the device and those behind it that can share buffers with it, so that copies are direct. */
static void make_context(struct machine *m, struct device *first)
{
    cl_device_id ids[MAX_DEVICES];
    cl_uint n = 0;
    bool alone =
        m->options.separate || getenv("YARD_SEPARATE_CONTEXTS"); /* lets the staged path be tested on one machine */
    struct context *c = &m->context[m->n_contexts];
    c->index = m->n_contexts++;
    for (int i = first->index; i < m->n_devices; i++) {
        struct device *d = &m->device[i];
        bool alike = platform_of(d) == platform_of(first) && (d->root == first->root || (d->is_cpu && first->is_cpu));
        if (d->context || (d != first && (alone || !alike)))
            continue;
        d->context = c;
        if (n == 0 || ids[n - 1] != d->cl) /* the shares of a device stand together */
            ids[n++] = d->cl;
    }
    CL_MAKE(c->cl = clCreateContext(NULL, n, ids, NULL, NULL, &err));
}

struct lane *open_lane(struct machine *m, struct device *d, enum lane_kind kind, int nth)
{
    cl_command_queue_properties properties = m->options.profiling ? CL_QUEUE_PROFILING_ENABLE : 0;
    struct lane *lane = lane_of(d, kind, nth);
    if (lane)
        return lane;
    lane = add_lane(m, d, kind, nth);
    if (d->cl)
        CL_MAKE(lane->queue = clCreateCommandQueue(d->context->cl, d->cl, properties, &err));
    return lane;
}

struct lane *lane_for(struct machine *m, struct device *d, enum lane_kind kind, int purpose)
{
    const struct link *link = kind == LANE_COMPUTE ? NULL : d->link[kind == LANE_UPLOAD ? LINK_UP : LINK_DOWN];
    struct lane *lane = NULL, *last = NULL;
    int next = 0;
    for (struct lane *l = d->lane[kind]; l; l = l->more) {
        lane = l->purpose == purpose || (!lane && l->purpose == FOR_NOTHING) ? l : lane;
        last = l, next = MAX(next, l->nth + 1);
    }
    if (!lane && link && link->queues && count_lanes(d, kind) >= link->queues)
        return last;
    lane = lane ? lane : open_lane(m, d, kind, next);
    lane->purpose = purpose;
    return lane;
}

struct machine *open_machine(const struct machine_options *options)
{
    struct machine *m = new_machine(MAX_DEVICES);
    m->n_devices = 0;
    m->options = *options;
    const char *at = options->devices ? options->devices : default_device((char[32]){0});
    for (struct selection s; at; at = *at ? at + 1 : NULL) {
        if (!read_selection(&at, &s))
            fail(EXIT_USAGE,
                 "-d %s: expected P:D, P:D/n or P:DxN with n and N from 1 up, comma-separated, as in -d 0:0/2; run "
                 "`yard devices`",
                 options->devices);
        add_selection(m, &s);
    }
    for (int i = 0; i < m->n_devices; i++) {
        struct device *d = &m->device[i];
        if (!d->context)
            make_context(m, d);
        d->budget = options->device_memory ? options->device_memory : default_budget(d);
        for (enum lane_kind kind = LANE_COMPUTE; kind <= LANE_DOWNLOAD; kind++)
            open_lane(m, d, kind, 0);
    }
    bool limited;
    size_t of_host = host_memory(&limited);
    struct device *h = m->host = name_device(m, m->n_devices, "host", of_host);
    h->limited = limited;
    h->uses_ram = true;
    h->units = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    h->alignment = HOST_ALIGNMENT;
    for (const struct device *d = m->device; d < h; d++) /* so that each slab is memory that the device can map */
        if (!d->is_cpu)
            h->max_allocation = MIN(h->max_allocation, d->max_allocation - HOST_ALIGNMENT);
    h->budget = options->host_memory ? options->host_memory : h->memory;
    calibrate_clocks(m);
    return m;
}

static void free_machine(struct machine *m)
{
    for (int i = 0; i < m->n_lanes; i++)
        if (m->lane[i]->queue)
            CL(clReleaseCommandQueue(m->lane[i]->queue));
    for (struct context *c = m->context; c < m->context + m->n_contexts; c++) {
        for (size_t k = 0; k < c->n_programs; k++) {
            CL(clReleaseProgram(c->programs[k].cl));
            free(c->programs[k].file);
        }
        free(c->programs);
        if (c->cl) /* none on a machine on paper */
            CL(clReleaseContext(c->cl));
    }
    for (int i = 0; i < m->n_devices; i++)
        if (m->device[i].cl && m->device[i].cl != m->device[i].root)
            CL(clReleaseDevice(m->device[i].cl));
    drop_links(m);
    for (int i = 0; i < m->n_lanes; i++)
        free(m->lane[i]);
    free(m->link), free(m->device), free(m->lane), free(m->context);
    free(m);
}

/* PoCL's threads look at an event's queue and device for a moment after they have told that it ended.  So all but the
 * memory of a closed machine is released when the next one is closed. */
void close_machine(struct machine *m)
{
    static struct machine *closed;
    for (int i = 0; i <= m->n_devices; i++)
        free_slabs(m, &m->device[i]);
    if (closed)
        free_machine(closed);
    closed = m;
}

/* Cores that are used by CPU devices, each counted once. */
static unsigned count_cores(const struct machine *m)
{
    unsigned cores = 0;
    for (const struct device *d = m->device; d < m->host; d++)
        if (d->is_cpu && (d == m->device || d->cl != d[-1].cl)) /* the shares of a device stand together */
            cores += d->units;
    return cores;
}

unsigned spare_cores(const struct machine *m) { return m->host->units - MIN(count_cores(m), m->host->units); }

unsigned vector_width(const struct machine *m)
{
    for (int i = 1; i < m->n_devices; i++)
        if (m->device[i].vector != m->device[0].vector)
            return 0;
    return m->device[0].vector;
}

char *describe_machine(const struct machine *m)
{
    const struct device *d = &m->device[0], *last = &m->device[m->n_devices - 1];
    const char *plural = d->units == 1 ? "" : "s", *shared = d->is_logical ? ", shared: they only look parallel" : "";
    unsigned used = count_cores(m), width = vector_width(m);
    char *text = m->n_devices == 1 ? format_string("%s (%s, %u unit%s", d->name, d->id, d->units, plural)
                                   : format_string("%d devices, %s to %s: %s (%u unit%s each%s", m->n_devices, d->id,
                                                   last->id, d->name, d->units, plural, shared);
    if (used)
        append_text(&text, "; %u of the host's %u cores compute", used, m->host->units);
    if (width)
        append_text(&text, "; vectors of %u float%s)", width, width == 1 ? "" : "s");
    else /* where bits are compared they must be alike */
        append_text(&text, "; vectors of unlike widths)");
    return text;
}
