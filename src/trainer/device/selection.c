/* selection.c - the devices that -d names.
 *
 *     -d 0:0          platform 0, device 0, numbered as `clinfo -l` numbers them
 *     -d 0:0/2        that device cut into two sub-devices: two devices that run truly in parallel
 *     -d 0:0x4        four logical devices sharing it: the structure of four devices, the speed of one
 *     -d 0:0,1:0      several, comma-separated
 */
#include "driver.h"

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
    int platform = parse_number(at, END);
    if (platform == NONE || **at != ':')
        return false;
    (*at)++;
    int device = parse_number(at, END);
    if (device == NONE)
        return false;
    *selection = (struct selection){.platform = (uint16_t)platform, .device = (uint16_t)device};
    char kind = **at;
    if (kind == '/' || kind == 'x') {
        (*at)++;
        int count = parse_number(at, END);
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
        cl_uint count = get_devices(platforms[p], devices);
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
    cl_uint n = load_platforms(platforms);
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

static void add_sub_devices(struct machine *machine, const struct selection *selection, cl_device_id root)
{
    cl_uint units = (cl_uint)device_number(root, CL_DEVICE_MAX_COMPUTE_UNITS);
    bool can_be_cut = device_number(root, CL_DEVICE_PARTITION_MAX_SUB_DEVICES) >= 2;
    cl_uint most = can_be_cut ? MIN(units, MOST_DEVICES) : 1;
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
        struct device *device = add_device(machine, pieces[i], root);
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
        struct device *device = add_device(machine, root, root);
        device->extra.is_logical = selection->shares > 0;
        device->memory /= shares;
        snprintf(device->id, sizeof device->id, device->extra.is_logical ? "%u:%ux%u.%u" : "%u:%u", selection->platform,
                 selection->device, shares, i);
    }
}

/* Adds the device itself, or its shares, or the pieces into which it is cut. */
static void add_selection(struct machine *machine, const struct selection *selection)
{
    cl_device_id root = find_device(selection);
    for (int i = 0; i < machine->n_devices; i++)
        if (machine->devices[i].extra.root == root)
            fail(EXIT_USAGE,
                 "-d names device %u:%u twice, but it has its compute units only once: cut the device with /n, or "
                 "share it with xN",
                 selection->platform, selection->device);
    if (selection->pieces)
        add_sub_devices(machine, selection, root);
    else
        add_shares(machine, selection, root);
}

void add_devices(struct machine *machine, const char *names)
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
