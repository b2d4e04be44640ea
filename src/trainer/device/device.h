/* device.h - OpenCL devices as memory arenas with lanes: opening them, and their memory.
 *
 * A *device* is a memory arena with a byte budget and some lanes: an OpenCL device, a sub-device, a share of one
 * (logical device), or the host.  A *lane* is an in-order queue: compute, upload and download on an OpenCL device,
 * threads on the host.  A *machine* is all devices of a run, the host last.
 *
 * CPU sub-devices and logical devices share a context, so copies between them are direct.  GPUs get a context each,
 * because drivers may reserve a shared buffer on every device; moves between them are staged through the host.
 *
 * An arena is a list of slabs, none larger than the device's maximum allocation.  A tensor is an aligned sub-buffer of
 * one slab; it never lies in two, and the slab itself is never given to a kernel.  The host's slabs are pinned, each by
 * one context.
 *
 *     device.h          devices and their lanes, memory   machine.c, device.c; lanes.c, purposes.c; slabs.c
 *                       what is told of them              describe.c
 *                       the devices of -d                 selection.c, read_device.c
 *     device_facts.h    links; what devices are like      links.c
 *     driver.h          errors, drivers, kernels          cl_error.c; platforms.c; kernels.c, kernel_source.c, cache.c
 *                       limits of memory, clocks          limits.c; device_clock.c
 */
#ifndef DEVICE_H
#define DEVICE_H

#include "device_facts.h"

/* ---- memory and contexts ----------------------------------------------------------------------------------------- */

/* A large block of a device's memory.  `host`, `pinned`, `queue` and `block` are only set for the host's slabs. */
struct slab {
    cl_mem buffer;    /* NULL on the host */
    void *host;       /* the first usable byte; NULL on an OpenCL device */
    void *debug_view; /* where a debugger finds the slab of an OpenCL CPU, or NULL */
    size_t bytes;     /* usable bytes; a guard of GUARD_BYTES lies behind them */
    cl_mem *parts;    /* the sub-buffers that slab_part() made, oldest first; the newest is released first */
    size_t n_parts, cap_parts;
    cl_mem pinned;          /* the mapped buffer in which the bytes lie, so that copies need no staging; or NULL */
    cl_command_queue queue; /* a queue of the context that `pinned` belongs to */
    void *block;            /* the first byte of `pinned`; without it, what malloc() returned */
};

enum { GUARD_BYTES = 4096 };

/* Devices that share memory objects, and the programs built for them. */
struct context {
    cl_context cl;
    int index;                /* its place in machine->contexts */
    struct program *programs; /* driver.h */
    size_t n_programs, cap_programs;
    bool clblast_announced; /* the user has been told that CLBlast compiles its kernels for this context */
};

/* ---- lanes ------------------------------------------------------------------------------------------------------- */

extern const char *const lane_kind_name[LANE_KINDS + 1]; /* "compute", "upload" ...; NULL ends them */

struct device;
struct host_thread; /* run/run_parts.h */

struct lane {
    char name[40]; /* "0:0 compute" */
    int index;     /* its place in machine->lanes */
    enum lane_kind kind;
    int nth;                    /* its number among those of its kind on the device, from 0 */
    char purpose[PURPOSE_NAME]; /* FOR_ALL or another; a lane that is made is for all */
    struct lane *next_of_kind;  /* the device's next lane of this kind, or NULL */
    double gap_seconds;         /* on a described machine: s from one task's end to the next one's start */
    struct device *device;
    cl_command_queue queue;       /* NULL on the host */
    struct host_thread **threads; /* an array of the folder run/, by enum thread_kind; NULL: none has been started */
};

/* ---- devices and the machine ------------------------------------------------------------------------------------- */

enum { MOST_DEVICES = 16 };

struct device {
    char id[24];    /* its name for -d: "0:0", "0:0/2.1" (second half), "0:0x4.3" (fourth share); "host" */
    char name[128]; /* the driver's name for it */
    int index;      /* its place in machine->devices */
    bool is_host, is_cpu;
    struct context *context;        /* NULL for the host */
    cl_device_id cl;                /* NULL for the host, and if the device is only described */
    struct lane *lanes[LANE_KINDS]; /* its first lane of each kind, or NULL */

    /* how fast it computes */
    unsigned units;                  /* compute units (cores) */
    double flops_per_s, bytes_per_s; /* the most that its arithmetic and its memory reach; 0: not known */

    /* its memory, in bytes */
    size_t memory;         /* all of it, as far as this process may have it */
    size_t max_allocation; /* the most bytes of one buffer, and so of a slab */
    size_t alignment;      /* tensors begin at multiples of this */
    size_t budget;         /* what place() may use */
    size_t placed_bytes;   /* what place() has found last that tensors need where they share bytes */
    bool uses_ram;         /* its memory is a part of the host's, which is counted once */
    struct slab *slabs;
    size_t n_slabs, cap_slabs;

    struct kernel_shape shape;

    struct device_extra extra; /* device_facts.h */
};

struct machine {
    /* n_devices OpenCL devices, then the host.  So a loop for i < n_devices has no host, and for i <= n_devices it has
     * the host too, last. */
    struct device *devices;
    int n_devices;
    struct device *host;
    struct context *contexts; /* n_contexts of them, at most one for each device */
    int n_contexts;
    struct lane **lanes;
    int n_lanes;
    size_t cap_lanes;
    struct machine_options options; /* what open_machine() was given; zeros on a described machine */
    size_t allocated;               /* bytes of all slabs, guards included */
    struct link **links;            /* only a described machine has links */
    int n_links;
    size_t cap_links;
    double issue_seconds; /* on a described machine: seconds that the host takes to issue a task */
};

/* ---- machine.c, device.c ----------------------------------------------------------------------------------------- */

/* Opens devices, contexts and queues; close_machine() closes them.  Ends the program with a sentence, with
 * EXIT_NO_DEVICE or EXIT_USAGE, where that fails. */
struct machine *open_machine(const struct machine_options *options);

/* Frees the machine's slabs, and the machine that was closed before; the rest of this one is freed when the next one is
 * closed (device.c says why).  Nothing may be in flight. */
void close_machine(struct machine *machine);

/* A machine of n devices and the host, which set_up_device() is to set up.  The caller frees it with
 * close_machine(). */
struct machine *new_machine(int n_devices);

/* Sets up device i (i == n_devices: the host): its name, its memory in bytes and its standard lanes. */
struct device *set_up_device(struct machine *machine, int i, const char *id, size_t memory);

/* ---- describe.c -------------------------------------------------------------------------------------------------- */

/* The vector width that all devices compute with; 0: they differ.  The same width gives the same bits, if the drivers'
 * exp and log do. */
unsigned vector_width(const struct machine *machine);

/* Cores of the host on which no device computes. */
unsigned spare_cores(const struct machine *machine);

/* One line for people, "pthread-... (0:0, 2 units; vectors of 8 floats)".  The caller frees it. */
char *describe_machine(const struct machine *machine);

/* ---- selection.c ------------------------------------------------------------------------------------------------- */

/* Adds the devices that -d names; NULL: the default device. */
void add_devices(struct machine *machine, const char *names);

/* ---- read_device.c ----------------------------------------------------------------------------------------------- */

/* Adds a device to the machine, as its driver describes it.  root: the device of which it is a part, or itself. */
struct device *add_device(struct machine *machine, cl_device_id id, cl_device_id root);

/* Bytes of the host's memory that this process may take.  *limited: are they fewer than the host has? */
size_t host_memory(bool *limited);

/* Floats per vector of the kernels on this device, unless fewer are asked for: 16, 8, 4 or 1. */
unsigned own_vector_width(cl_device_id id);

void choose_tile(struct device *device); /* sets the rows and vectors of a register tile, by shape.vector */

/* ---- lanes.c, purposes.c, links.c -------------------------------------------------------------------------------- */

/* The nth lane of a kind on a device, from 0; NULL: it has none. */
struct lane *lane_of(const struct device *device, enum lane_kind kind, int nth);
int count_lanes(const struct device *device, enum lane_kind kind);

bool is_for(const struct lane *lane, const char *purpose); /* has the lane this purpose? */
void set_purpose(struct lane *lane, const char *purpose);  /* `purpose` is copied */

/* Adds a lane without a queue.  The machine owns it. */
struct lane *add_lane(struct machine *machine, struct device *device, enum lane_kind kind, int nth);

/* lane_of(), but the lane is made if it is missing.  Call it before lists that use the lane are finished. */
struct lane *open_lane(struct machine *machine, struct device *device, enum lane_kind kind, int nth);

/* The link that copies on lanes of this kind use; NULL: none, or it takes no time. */
const struct link *link_of_lanes(const struct device *device, enum lane_kind kind);

/* The device's lane of that kind for that purpose alone, which is made if it is missing.  If the link takes no more
 * lanes (queues= in a step file), it is the last lane of the kind, whatever that lane is for. */
struct lane *lane_for(struct machine *machine, struct device *device, enum lane_kind kind, const char *purpose);

/* Adds a link to a described machine, which owns it; rate: bytes/s, latency: seconds. */
struct link *add_link(struct machine *machine, double rate, double latency);

void drop_links(struct machine *machine); /* frees all links, and its copies take no time of their own then */

/* ---- device_clock.c ---------------------------------------------------------------------------------------------- */

/* Measures clock.offset of all devices whose queues carry times, by timing tiny writes, and sets clock.valid.
 * Nothing may be in flight.  Called again now and then, since clocks drift apart by some 20 us a second. */
void calibrate_clocks(struct machine *machine);

/* ---- slabs.c: memory --------------------------------------------------------------------------------------------- */

/* The bytes of its memory that tensors may take if no option says otherwise.  A GPU's driver needs some of the GPU's
 * own memory, for contexts, code and the display, and OpenCL does not say how much is free.  So two parts are left to
 * the driver: a sixteenth, and another sixteenth of at most 256 MiB.  A device that uses the host's memory may take all
 * of its `memory`: read_memory() has left some of the host's memory to other programs. */
size_t default_budget(const struct device *device);

/* Writes "10.9 GiB (of 12.0 GiB; the rest is left to the driver)" into out; returns out. */
enum { BUDGET_TEXT = 128 };
const char *format_budget(char out[BUDGET_TEXT], const struct device *device);

size_t guard_bytes(const struct device *device); /* the size of the guard behind each of its slabs */

/* The usable bytes of the biggest slab that the device allows. */
size_t slab_limit(const struct device *device);

/* Adds a slab of `bytes` to the device's arena: zeros, with its guard after them.  A slab of the host is pinned for
 * copies to the devices of copier's context (NULL: of the first device's).  Returns NULL, or the problem when there is
 * no room. */
struct problem *add_slab(struct machine *machine, struct device *device, const struct device *copier, size_t bytes);

/* Copies `bytes` bytes of `from` to the device's buffer, to byte `begin` and on, and waits until they are there. */
void write_buffer(struct device *device, cl_mem buffer, size_t begin, const void *from, size_t bytes);

/* Copies `bytes` bytes of the device's buffer, from byte `begin` on, to `into`, and waits until they are there.  It
 * does not wait for tasks of other lanes. */
void read_buffer(struct device *device, cl_mem buffer, size_t begin, void *into, size_t bytes);

/* A sub-buffer of a device's slab: `bytes` of it from byte `begin` on.  The slab owns it. */
cl_mem slab_part(struct slab *slab, size_t begin, size_t bytes);

/* How many guards of the device's slabs have been overwritten: 0 when all is well. */
int damaged_guards(struct device *device);

/* Releases the device's slabs with their sub-buffers.  Nothing may be in flight. */
void free_slabs(struct machine *machine, struct device *device);

#endif
