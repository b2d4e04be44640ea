/* device.h - OpenCL devices as memory arenas with lanes: opening them, their memory, kernels, clocks and errors.
 *
 * A *device* is a memory arena with a byte budget and some lanes: an OpenCL device, a sub-device, a share of one
 * (logical device), or the host.  A *lane* is an in-order queue: compute, upload and download on an OpenCL device,
 * threads on the host.  A *machine* is all devices of a run, the host last.
 *
 * Which devices share a context is one function (make_context in machine.c): CPU sub-devices and logical devices do,
 * so copies between them are direct; GPUs get a context each, because drivers may reserve a shared buffer on every
 * device, and moves between them are staged through the host.
 *
 * An arena is a list of slabs, none larger than the device's maximum allocation.  A tensor is an aligned sub-buffer of
 * one slab; it never lies in two, and the slab itself is never given to a kernel.  The host's slabs are pinned, each by
 * one context.
 */
#ifndef DEVICE_H
#define DEVICE_H

#ifdef __APPLE__
#include <OpenCL/cl.h>
#else
#include <CL/cl.h>
#endif

#include "trainer/base/base.h"
#include "trainer/base/lane.h"

/* ---- cl_error.c: OpenCL errors ----------------------------------------------------------------------------------- */

const char *cl_error_name(cl_int code); /* "CL_INVALID_KERNEL_ARGS", or "unknown OpenCL error" */
/* Run an OpenCL call that returns a cl_int; failing shows the call, the symbolic name, the file and line. */
#define CL(call) cl_check((call), #call, __FILE__, __LINE__)
/* CL() for a call that returns an object, and the code through a pointer: CL_MAKE(x = clCreateY(..., &err)). */
#define CL_MAKE(statement)                                                                                             \
    do {                                                                                                               \
        cl_int err = CL_SUCCESS;                                                                                       \
        statement;                                                                                                     \
        cl_check(err, #statement, __FILE__, __LINE__);                                                                 \
    } while (0)
void cl_check(cl_int code, const char *call, const char *file, int line);

/* ---- devices, lanes, the machine ------------------------------------------------------------------------------- */

extern const char *const lane_kind_name[LANE_KINDS + 1]; /* machine.c: "compute", "upload" ...; NULL ends them */

/* A large block of a device's memory.  `host` and the fields in the second group are only set for the host's slabs. */
struct slab {
    cl_mem buffer; /* NULL on the host */
    void *host;    /* the first usable byte; NULL on an OpenCL device */
    void *seen;    /* where a debugger finds the slab of an OpenCL CPU, or NULL */
    size_t bytes;  /* usable bytes; a guard of GUARD_BYTES lies behind them */
    cl_mem *parts; /* the sub-buffers that slab_part() made, oldest first; the newest is released first */
    size_t n_parts, cap_parts;

    cl_mem pinned;          /* the mapped buffer in which the bytes lie, so that copies need no staging; or NULL */
    cl_command_queue queue; /* a queue of the context that `pinned` belongs to */
    void *block;            /* the first byte of `pinned`; without it, what malloc() returned */
};
enum { GUARD_BYTES = 4096 };

struct program { /* one built .cl file */
    char *file;
    cl_program cl;
};

/* Devices that share memory objects, and the programs built for them. */
struct context {
    cl_context cl;
    int index; /* its place in machine->context */
    struct program *programs;
    size_t n_programs, cap_programs;
    bool clblast; /* CLBlast has begun to compile its kernels for it, and the user has been told */
};

/* Every device's tensors begin at multiples of this (NVIDIA's need it), so that a layout is the same everywhere. */
enum { DEVICE_ALIGNMENT = 512 };
/* A connection between the host and some devices in one direction, which all copies on it share.  Only described
 * machines have links. */
enum direction { LINK_UP, LINK_DOWN, DIRECTIONS }; /* up: host to device */
struct link {
    int index;      /* its place in machine->link */
    double rate;    /* bytes/s, which the copies on it share */
    double latency; /* s from a copy's start until its bytes are on the link */
    double queue;   /* the most bytes/s that one queue reaches; 0: the whole rate */
    int queues;     /* the most lanes of one device that may use it; 0: any number */
};

struct device;
struct host_thread; /* run/hostlane.c */
/* What a lane is for.  Tasks for two purposes on one lane would wait for each other. */
enum purpose {
    FOR_ALL,         /* a standard lane: batches up, results down */
    FOR_NOTHING,     /* a lane of a step file without tasks yet: it becomes one for the first purpose that needs it */
    FOR_MOVES,       /* copies of gradients and parameters between devices, up; down they use FOR_ALL */
    FOR_ACTIVATIONS, /* copies of activations between pipeline stages, which wait for their stage */
    FOR_GRADIENTS,   /* copies of gradients between pipeline stages, which wait for their stage */
    FOR_GATHER,      /* ZeRO-3: copies of parameters from their shards */
    FOR_OFFLOAD,     /* updates on the CPU: copies of gradients down and of parameters up */
    FOR_OFFERED, /* the same, if each step chooses where it updates: issued late, so no other task may follow them */
    FOR_CONTROL, /* copies of words that say what runs, and of the norm */
    FOR_STATE,   /* copies of an optimizer's state when its update moves between device and host */
    FOR_SWAP,
    FOR_SNAPSHOT,
    FOR_QUEUE, /* queue 0 of a broadcast; FOR_QUEUE + j: its queue j */
};
struct lane {
    char name[40]; /* "0:0 compute" */
    int index;     /* its place in machine->lane */
    enum lane_kind kind;
    int nth;           /* its number among those of its kind on the device, from 0 */
    int purpose;       /* enum purpose, or FOR_QUEUE + j */
    struct lane *more; /* the device's next lane of this kind, or NULL */
    double gap;        /* on a described machine: s from one task's end to the next one's start */
    struct device *device;
    cl_command_queue queue;      /* NULL on the host */
    struct host_thread *thread;  /* runs a host lane's tasks; made by the first execute() that is not serial */
    struct host_thread *forward; /* completes user events of other contexts when this lane's events end */
    struct host_thread *aside;   /* runs the jobs that nothing in the training waits for */
};

enum { MAX_DEVICES = 16 };
enum { SHORT_LOOPS = 65535 };  /* rounds in all after which llvmpipe ends a work-item's loops */
enum { GPU_WORK_GROUP = 128 }; /* work-items per row, unless one_item, the device or YARD_WG say otherwise */
struct device {
    char id[24];    /* its name for -d: "0:0", "0:0/2.1" (second half), "0:0x4.3" (fourth share); "host" */
    char name[128]; /* the driver's name for it */
    int index;      /* its place in machine->device */
    bool is_host, is_cpu, is_logical; /* is_logical: a logical device, which shares its cores with others */
    bool one_item;                    /* one work-item computes a whole row, as on CPUs with vectors */
    bool uses_ram;                    /* its memory is a part of the host's, which is counted once */
    bool limited;                     /* a limit of this process leaves it less memory than there is */
    bool by_hand;                     /* a step file describes it: all its bytes are for tensors, there are no guards */
    bool shares;                      /* tensors share bytes even if there is room for all at once (step files) */
    struct context *context;          /* NULL for the host */
    cl_device_id cl, root;            /* root: the device that a sub-device was cut from, else the same as cl */
    unsigned units;                   /* compute units (cores) */
    unsigned vector;                  /* floats per vector, VEC in the kernels: bits depend on it */
    unsigned work_group;              /* work-items per row: WG in the kernels, 1 on CPUs */
    size_t most_items;                /* the most work-items of a work-group; 0: not known (a described device) */
    bool forced_shape;                /* YARD_VEC or YARD_WG, which tests use, have set these */
    unsigned tile_rows, tile_vectors; /* register tile of the GEMM: ROWS, COLS in gemm.cl */
    bool correct_divide;              /* it rounds divisions and square roots correctly */
    bool runs_late;   /* PoCL's basic device: a command runs in the thread that waits for it, and not before */
    bool short_loops; /* llvmpipe: a work-item's loops end after SHORT_LOOPS rounds in all, without an error */
    size_t alignment, max_allocation, memory, local_memory; /* bytes */
    size_t budget, placed;           /* bytes that place() may use, and bytes that it has used last */
    double flops_per_s, bytes_per_s; /* the most that its arithmetic and its memory reach; 0: not known */
    struct slab *slabs;
    size_t n_slabs, cap_slabs;
    /* The next three are measured anew from time to time, while threads of lanes may ask for times. */
    _Atomic int64_t clock_offset;  /* host clock = device clock + offset, ns */
    _Atomic uint64_t clock_step;   /* the resolution of the device's clock, ns */
    _Atomic bool clock_valid;      /* false: the driver's times cannot be used */
    struct lane *lane[LANE_KINDS]; /* its first lane of each kind, or NULL */
    struct link *link[DIRECTIONS]; /* NULL: copies take no time of their own */
    struct link *disk;             /* the host's: the link that copies on its disk lanes share, or NULL */
};

struct machine_options {
    const char *devices;               /* the -d text; NULL: the first GPU, else the first device */
    size_t device_memory, host_memory; /* budgets in bytes; 0: all that the device may use */
    bool profiling;                    /* queues carry timestamps */
    bool separate;                     /* a context for each device, as GPUs have: moves are staged through the host */
    unsigned vector; /* floats per vector in all kernels, not more than a device has; 0: as many as each device has */
};
struct machine {
    struct device *device; /* n_devices OpenCL devices, then the host */
    int n_devices;
    struct device *host;
    struct context *context; /* n_contexts of them, at most one for each device */
    int n_contexts;
    struct lane **lane;
    int n_lanes;
    size_t cap_lanes;
    struct link **link; /* only a described machine has links */
    size_t n_links, cap_links;
    double issue;                   /* on a described machine: seconds that the host takes to issue a task */
    struct machine_options options; /* what open_machine() was given; zeros on a described machine */
    size_t allocated;               /* bytes of all slabs, guards included */
};

/* ---- machine.c ------------------------------------------------------------------------------------------------- */

/* Opens devices, contexts and queues.  Fails with EXIT_NO_DEVICE or EXIT_USAGE and a sentence. */
struct machine *open_machine(const struct machine_options *options);
void choose_tile(struct device *d); /* sets the rows and vectors of a register tile, by d->vector */
void close_machine(struct machine *m);
/* The nth lane of a kind on a device, from 0; NULL: it has none. */
struct lane *lane_of(const struct device *d, enum lane_kind kind, int nth);
int count_lanes(const struct device *d, enum lane_kind kind);
/* lane_of(), but the lane is made if it is missing.  Call it before lists that use the lane are finished. */
struct lane *open_lane(struct machine *m, struct device *d, enum lane_kind kind, int nth);
/* The link that copies on lanes of this kind use; NULL: none, or it takes no time. */
const struct link *link_of_lanes(const struct device *d, enum lane_kind kind);
/* The device's lane of a kind for that purpose alone, which is made if it is missing.  If the link takes no more lanes
 * (queues= in a step file), the last lane of the kind, whatever it is for. */
struct lane *lane_for(struct machine *m, struct device *d, enum lane_kind kind, int purpose);
/* The vector width that all devices compute with; 0: they differ.  The same width gives the same bits, if the drivers'
 * exp and log do. */
unsigned vector_width(const struct machine *m);
/* Cores of the host on which no device computes. */
unsigned spare_cores(const struct machine *m);
/* One line for people, "pthread-... (0:0, 2 units; vectors of 8 floats)".  The caller frees it. */
char *describe_machine(const struct machine *m);
/* Floats per vector of the kernels on this device, unless fewer are asked for: 16, 8, 4 or 1. */
unsigned own_vector_width(cl_device_id id);

/* ---- lanes.c: machines that are only described ------------------------------------------------------------------ */

/* A machine of n devices and the host. */
struct machine *new_machine(int n_devices);
/* Set up device i (i == n_devices: the host): its name, its memory in bytes and its standard lanes. */
struct device *name_device(struct machine *m, int i, const char *id, size_t memory);
struct lane *add_lane(struct machine *m, struct device *d, enum lane_kind kind, int nth);
struct link *add_link(struct machine *m, double rate, double latency);
void drop_links(struct machine *m);

/* ---- platforms.c ----------------------------------------------------------------------------------------------- */

enum { MAX_PLATFORMS = 16, MAX_PER_PLATFORM = 32 };
/* List the drivers in `out`, or a driver's devices; both return how many there are. */
cl_uint get_platforms(cl_platform_id out[MAX_PLATFORMS]);
cl_uint get_devices(cl_platform_id platform, cl_device_id out[MAX_PER_PLATFORM]);
uint64_t device_number(cl_device_id id, cl_device_info what); /* a property of any of OpenCL's integer types */
void device_text(cl_device_id id, cl_device_info what, char *out, size_t bytes); /* a property, made printable */
cl_platform_id platform_of(const struct device *d);
bool is_pocl(cl_platform_id platform);
extern bool main_has_returned; /* false at exit: a driver has called exit() */
/* For a driver that offers no device or does not compile: fails with `code` when it is PoCL and cannot use its folder
 * for compiled kernels. */
void check_kernel_cache(cl_platform_id platform, enum exit_code code);
/* End the program with the reason why none of the n drivers has a device: with `code` when it is PoCL's folder, else
 * with EXIT_NO_DEVICE. */
_Noreturn void fail_without_device(const cl_platform_id *platforms, cl_uint n, enum exit_code code);

/* ---- kernels.c ------------------------------------------------------------------------------------------------- */

/* A kernel object of its own (arguments are set once per object) from cl/<file>.  The .cl file is searched in
 * $YARD_KERNELS, ./cl and beside the binary; the copy embedded in the binary is the fallback.  A build error ends the
 * program with the compiler's log, which names the .cl file and line.  The caller releases the kernel. */
cl_kernel make_kernel(struct device *d, const char *file, const char *kernel);

/* ---- cache.c: compiled programs, kept between runs ------------------------------------------------------------- */

/* The path of the file that keeps the program built from that source with these options; the caller frees it.  NULL:
 * no programs are kept. */
char *cache_entry(const struct device *d, const char *options, const char *source);
/* The program in that file, built for all devices of d's context; NULL: there is no such file, or it is damaged. */
cl_program load_program(const struct device *d, const char *entry, const char *options);
void keep_program(const struct device *d, const char *entry, cl_program program);

/* ---- limits.c -------------------------------------------------------------------------------------------------- */

/* Bytes of the host's memory that this process may still take: a container's limit, or that of the address space, less
 * the bytes in use and those that the driver needs later.  NO_LIMIT: only the memory itself is a limit. */
size_t memory_left_by_limits(void);
/* Bytes left by the control groups that a file like /proc/self/cgroup names, whose own files lie below `root`;
 * SIZE_MAX: the groups have no limit. */
size_t left_by_groups(const char *groups, const char *root);

/* ---- slabs.c: memory --------------------------------------------------------------------------------------------- */

/* The bytes that tensors may take of d's memory if no option says otherwise.  A GPU's driver needs some of the GPU's
 * own memory, for contexts, code and the display, and OpenCL does not say how much is free: a sixteenth is left to it,
 * and as much again, but at most 256 MiB.  If the device uses the host's memory, it is all of d->memory:
 * describe_memory() has left some to others. */
size_t default_budget(const struct device *d);
/* Writes "10.9 GiB (of 12.0 GiB; the rest is left to the driver)" into out; returns out. */
const char *format_budget(char out[128], const struct device *d);
size_t guard_bytes(const struct device *d); /* the size of the guard behind each of d's slabs */
/* The usable bytes of the biggest slab that the device allows. */
size_t slab_limit(const struct device *d);
/* Add a slab of `bytes` to the device's arena, with zeros in it and its guard written.  A slab of the host is pinned
 * for copies to the devices of copier's context (NULL: of the first device's).  Returns NULL, or the problem when there
 * is no room. */
struct problem *add_slab(struct machine *m, struct device *d, const struct device *copier, size_t bytes);
/* Write `bytes` to a buffer of d, from byte `begin` on, and wait until they are there. */
void write_buffer(struct device *d, cl_mem buffer, size_t begin, const void *from, size_t bytes);
/* A sub-buffer of a device's slab: `bytes` of it from byte `begin` on.  The slab owns it. */
cl_mem slab_part(struct slab *slab, size_t begin, size_t bytes);
/* How many guards of the device's slabs have been overwritten: 0 when all is well. */
int damaged_guards(struct device *d);
void free_slabs(struct machine *m, struct device *d);

/* ---- device_clock.c ---------------------------------------------------------------------------------------------- */

/* Measure the clock_offset of all devices whose queues carry times, by timing tiny writes, and set clock_valid.
 * Nothing may be in flight.  Called again now and then, since clocks drift apart by some 20 us a second. */
void calibrate_clocks(struct machine *m);
/* Set *start and *end to an event's times on the host's clock.  The host queued the command at the time `queued` and
 * saw it complete at `seen`.  *told: on the device's clock, the latest end of the commands before it on its queue (0:
 * there are none); afterwards, with this command's end. */
enum told_times {
    TIMES_TRUE,
    TIMES_MISSING,      /* the driver gives none, or impossible ones: *start and *end are `queued` and `seen` */
    TIMES_STEPPED_BACK, /* the command seems to begin before *told: *start is the time *told */
};
enum told_times event_times(const struct device *d, cl_event event, uint64_t queued, uint64_t seen, uint64_t *told,
                            uint64_t *start, uint64_t *end);

#endif
