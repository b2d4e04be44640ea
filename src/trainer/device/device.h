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
 * An arena is a list of slabs, none larger than the device's maximum allocation.  A tensor never straddles two; it is
 * an aligned sub-buffer of one; the slab itself is never given to a kernel.  The host's are pinned, each by one
 * context.
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

/* ---- error.c: OpenCL errors ------------------------------------------------------------------------------------ */

const char *cl_error_name(cl_int code); /* "CL_INVALID_KERNEL_ARGS", or "unknown OpenCL error" */
/* Run an OpenCL call that returns a cl_int; failing shows the call, the symbolic name, the file and line. */
#define CL(call) cl_check((call), #call, __FILE__, __LINE__)
/* The same for calls that return an object and the code through a pointer: CL_MAKE(x = clCreateY(..., &err)). */
#define CL_MAKE(statement)                                                                                             \
    do {                                                                                                               \
        cl_int err = CL_SUCCESS;                                                                                       \
        statement;                                                                                                     \
        cl_check(err, #statement, __FILE__, __LINE__);                                                                 \
    } while (0)
void cl_check(cl_int code, const char *call, const char *file, int line);

/* ---- devices, lanes, the machine ------------------------------------------------------------------------------- */

extern const char *const lane_kind_name[LANE_KINDS + 1]; /* machine.c: "compute", "upload" ...; NULL ends them */

struct slab {
    cl_mem buffer; /* NULL on the host */
    void *host;    /* the host's slab; NULL on an OpenCL device */
    void *seen;    /* an OpenCL CPU's: where a debugger finds it; or NULL */
    size_t bytes;  /* usable bytes; a guard of GUARD_BYTES lies behind them */
    cl_mem pinned; /* host: the mapped buffer that the bytes lie in, so that copies need no staging; or NULL ... */
    cl_command_queue queue; /* ... of this queue's context ... */
    void *block;            /* ... and where it begins; or what malloc gave */
    cl_mem *parts;          /* what slab_part() made, the oldest first: released with the slab, the newest first */
    size_t n_parts, cap_parts;
};
enum { GUARD_BYTES = 4096 };

struct program { /* one built .cl file */
    char *file;
    cl_program cl;
};

/* Devices that share memory objects, and the programs built for them. */
struct context {
    cl_context cl;
    int index;
    struct program *programs;
    size_t n_programs, cap_programs;
    bool clblast; /* CLBlast compiles for it, and has said so */
};

/* Every device's tensors begin at multiples of this (NVIDIA's need it), so that a layout is the same everywhere. */
enum { DEVICE_ALIGNMENT = 512 };
/* What copies between the host and some devices share in one direction.  Only described machines have any. */
enum direction { LINK_UP, LINK_DOWN, DIRECTIONS }; /* up: host to device */
struct link {
    int index;            /* in machine->link */
    double rate, latency; /* bytes/s that the copies on it share; s of each copy before it is on it */
    double queue;         /* bytes/s that one queue reaches at most; 0: the whole rate */
    int queues;           /* lanes of one device that may use it, at most; 0: as many as one likes */
};

struct device;
struct host_thread; /* run/hostlane.c */
/* What a lane is for: tasks of two purposes on one lane would wait for each other. */
enum purpose {
    FOR_ALL,         /* standard lanes: batches up, results down */
    FOR_NOTHING,     /* a lane of a step file that no task of the file is on: the first who asks gets it */
    FOR_MOVES,       /* of gradients and parameters between devices: up beside the batches, down as FOR_ALL */
    FOR_ACTIVATIONS, /* between pipeline stages: they wait for their stage ... */
    FOR_GRADIENTS,   /* ... and so do these */
    FOR_GATHER,      /* ZeRO-3: parameters from their shards */
    FOR_OFFLOAD,     /* gradients down, parameters up, of updates on the CPU */
    FOR_OFFERED,     /* the same where the step chooses: issued late, so nothing else may stand behind them */
    FOR_CONTROL,     /* words that say what runs, and the norm */
    FOR_STATE,       /* of an optimizer that changes sides */
    FOR_SWAP,
    FOR_SNAPSHOT,
    FOR_QUEUE, /* and any number above: queue j of a broadcast is for FOR_QUEUE + j */
};
struct lane {
    char name[40]; /* "0:0 compute" */
    int index;     /* in machine->lane */
    enum lane_kind kind;
    int nth;           /* 0: the first of its kind on the device */
    int purpose;       /* enum purpose */
    struct lane *more; /* the next one of its kind there, or NULL */
    double gap;        /* described machines: s from one task's end to the next one's start */
    struct device *device;
    cl_command_queue queue;      /* NULL on the host */
    struct host_thread *thread;  /* host lanes: made by the first execute() that is not serial */
    struct host_thread *forward; /* completes user events of other contexts when this lane's events end */
    struct host_thread *aside;   /* has the jobs that nothing in the training waits for */
};

enum { MAX_DEVICES = 16 };
enum { SHORT_LOOPS = 65535, GPU_WORK_GROUP = 128 };
struct device {
    char id[24];    /* as given to -d: "0:0", "0:0/2.1" (second half), "0:0x4.3" (fourth share); "host" */
    char name[128]; /* as the driver gives it */
    int index;      /* in machine->device */
    bool is_host, is_cpu, is_logical; /* is_logical: a logical device, which shares its cores with others */
    bool one_item;                    /* a work-item computes a whole row: CPUs with vectors */
    bool uses_ram;                    /* its memory is the host's: counted once ... */
    bool limited;                     /* ... and no more of it than a limit of this process leaves */
    bool by_hand;                     /* of a step file: its bytes are all for tensors, without guards ... */
    bool shares;                      /* ... which share them even where there is room for all at once */
    struct context *context;          /* NULL for the host */
    cl_device_id cl, root;            /* root: the device a sub-device was cut from, else the same */
    unsigned units;                   /* compute units (cores) */
    unsigned vector;                  /* floats per vector, VEC of the kernels: bits depend on it */
    unsigned work_group;              /* work-items per row: WG of the kernels, 1 on CPUs */
    size_t most_items;                /* that a work-group may have; 0: not known, on paper */
    bool forced_shape;                /* by YARD_VEC or YARD_WG, for tests */
    unsigned tile_rows, tile_vectors; /* register tile of the GEMM: ROWS, COLS of gemm.cl */
    bool correct_divide;              /* correctly rounded divide and square root */
    bool runs_late;   /* PoCL's basic device: a command runs in the thread that waits for it, and not before */
    bool short_loops; /* llvmpipe: a work-item's loops end after SHORT_LOOPS rounds in all, without an error */
    size_t alignment, max_allocation, memory, local_memory;
    size_t budget, placed;           /* bytes that place() may use; that it needed last */
    double flops_per_s, bytes_per_s; /* what its arithmetic and its memory reach at most; 0: not known */
    struct slab *slabs;
    size_t n_slabs, cap_slabs;
    /* Measured anew from time to time, while threads of lanes may ask for times: */
    _Atomic int64_t clock_offset;  /* host clock = device clock + offset, ns */
    _Atomic uint64_t clock_step;   /* the step of the device's clock, ns */
    _Atomic bool clock_valid;      /* false: the driver's times cannot be used */
    struct lane *lane[LANE_KINDS]; /* the first of each kind, NULL where it has none */
    struct link *link[DIRECTIONS]; /* NULL: copies take no time of their own */
    struct link *disk;             /* of the host: what copies on its disk lanes share, or NULL */
};

struct machine_options {
    const char *devices;               /* the -d text; NULL: the first GPU, else the first device */
    size_t device_memory, host_memory; /* budgets in bytes; 0: what the device has */
    bool profiling;                    /* queues carry timestamps */
    bool separate;                     /* a context for each device, as GPUs have: moves are staged through the host */
    unsigned vector; /* floats per vector in all kernels, at most what a device has; 0: what each has */
};
struct machine {
    struct device *device; /* n_devices OpenCL devices, then the host */
    int n_devices;
    struct device *host;
    struct context *context; /* one for each device at most */
    int n_contexts;
    struct lane **lane;
    int n_lanes;
    size_t cap_lanes;
    struct link **link; /* of a described machine */
    size_t n_links, cap_links;
    double issue;                   /* of a described machine: host seconds per task */
    struct machine_options options; /* by which it was opened; on paper none */
    size_t allocated;               /* bytes asked of OpenCL for slabs, guards included */
};

/* ---- machine.c ------------------------------------------------------------------------------------------------- */

/* Opens devices, contexts and queues.  Fails with EXIT_NO_DEVICE or EXIT_USAGE and a sentence. */
struct machine *open_machine(const struct machine_options *options);
void choose_tile(struct device *d); /* rows and vectors of a register tile, by the width of vectors */
void close_machine(struct machine *m);
/* The nth lane of a kind on a device, from 0; NULL: it has none. */
struct lane *lane_of(const struct device *d, enum lane_kind kind, int nth);
int count_lanes(const struct device *d, enum lane_kind kind);
/* The same, and it is made where there is none yet: before the lists are finished that use it. */
struct lane *open_lane(struct machine *m, struct device *d, enum lane_kind kind, int nth);
/* The device's lane of a kind for that purpose alone, made where there is none; the last one, whatever it is for, where
 * the link takes no more (queues= of a step file). */
struct lane *lane_for(struct machine *m, struct device *d, enum lane_kind kind, int purpose);
/* The vector width that all devices compute with; 0: they differ.  The same width gives the same bits where the
 * driver's exp and log do. */
unsigned vector_width(const struct machine *m);
/* Cores of the host on which no device computes. */
unsigned spare_cores(const struct machine *m);
/* One line for people: "2 x pthread-... (sub-devices, 1 unit each)". */
char *describe_machine(const struct machine *m);
/* Floats per vector of the kernels on this device, unless fewer are asked for: 16, 8, 4 or 1. */
unsigned own_vector_width(cl_device_id id);

/* ---- lanes.c: machines that are only described ------------------------------------------------------------------ */

/* A machine of n devices and the host. */
struct machine *new_machine(int n_devices);
/* Names device i (n_devices: the host) and gives it memory and its standard lanes. */
struct device *name_device(struct machine *m, int i, const char *id, size_t memory);
struct lane *add_lane(struct machine *m, struct device *d, enum lane_kind kind, int nth);
struct link *add_link(struct machine *m, double rate, double latency);
void drop_links(struct machine *m);

/* ---- platforms.c ----------------------------------------------------------------------------------------------- */

enum { MAX_PLATFORMS = 16, MAX_PER_PLATFORM = 32 };
/* The drivers here; how many, at most MAX_PLATFORMS. */
cl_uint get_platforms(cl_platform_id out[MAX_PLATFORMS]);
cl_uint get_devices(cl_platform_id platform, cl_device_id out[MAX_PER_PLATFORM]);
uint64_t device_number(cl_device_id id, cl_device_info what); /* of any of OpenCL's types of whole numbers */
void device_text(cl_device_id id, cl_device_info what, char *out, size_t bytes); /* printable */
cl_platform_id platform_of(const struct device *d);
bool is_pocl(cl_platform_id platform);
extern bool main_has_returned; /* what calls exit() before is a driver */
/* For a driver that offers no device or does not compile: fails with `code` when it is PoCL and cannot use its folder
 * for compiled kernels. */
void check_kernel_cache(cl_platform_id platform, enum exit_code code);
/* Says why none of the n drivers has a device: `code` as above, else EXIT_NO_DEVICE. */
_Noreturn void fail_without_device(const cl_platform_id *platforms, cl_uint n, enum exit_code code);

/* ---- kernels.c ------------------------------------------------------------------------------------------------- */

/* A kernel object of its own (arguments are set once per object) from cl/<file>.  The .cl file is searched in
 * $YARD_KERNELS, ./cl and beside the binary; the copy embedded in the binary is the fallback.  A build error ends the
 * program with the compiler's log, which names the .cl file and line.  The caller releases the kernel. */
cl_kernel make_kernel(struct device *d, const char *file, const char *kernel);

/* ---- cache.c: compiled programs, kept between runs ------------------------------------------------------------- */

/* The file for a program from that source; the caller frees it.  NULL: nothing is kept. */
char *cache_entry(const struct device *d, const char *options, const char *source);
/* The program in that file, built for all devices of d's context; NULL: it is not there, or not as it was stored. */
cl_program load_program(const struct device *d, const char *entry, const char *options);
void keep_program(const struct device *d, const char *entry, cl_program program);

/* ---- limits.c -------------------------------------------------------------------------------------------------- */

/* Bytes of the host's memory that this process may still take: a container's limit, or one of the address space, less
 * what is in use and what the driver needs later.  NO_LIMIT: there is no limit but the memory itself. */
size_t memory_left_by_limits(void);
/* What is left in the control groups that a file like /proc/self/cgroup names, below `root`; SIZE_MAX: all. */
size_t left_by_groups(const char *groups, const char *root);

/* ---- memory.c -------------------------------------------------------------------------------------------------- */

/* Of d's memory, what tensors may take where no option says.  A GPU's driver needs some of the GPU's own memory, for
 * contexts, code and the display, and OpenCL does not say how much is free: a sixteenth is left to it, and as much
 * again, but at most 256 MiB.  Memory that is the host's is left as it is: see describe_device(). */
size_t default_budget(const struct device *d);
/* "10.9 GiB (of 12.0 GiB; the rest is left to the driver)". */
const char *format_budget(char out[128], const struct device *d);
size_t guard_bytes(const struct device *d); /* behind each slab */
/* The biggest slab the device allows, guard excluded, aligned down. */
size_t slab_limit(const struct device *d);
/* Add a slab of `bytes` (zeroed, guard written) to the arena, of the host pinned for the copies of copier's context
 * (NULL: of any).  NULL, or the problem when there is no room. */
struct problem *add_slab(struct machine *m, struct device *d, const struct device *copier, size_t bytes);
/* Write `bytes` to a buffer of d, from byte `begin` on, and wait until they are there. */
void write_buffer(struct device *d, cl_mem buffer, size_t begin, const void *from, size_t bytes);
/* `bytes` of a device's slab from byte `begin` on, as a buffer that the slab owns. */
cl_mem slab_part(struct slab *slab, size_t begin, size_t bytes);
/* How many guards behind the device's slabs have been overwritten: 0 when all is well. */
int damaged_guards(struct device *d);
void free_slabs(struct machine *m, struct device *d);

/* ---- clock.c --------------------------------------------------------------------------------------------------- */

/* Measures clock_offset by timing tiny writes and sets clock_valid, of all devices whose queues carry times, with
 * nothing in flight.  Again now and then: clocks drift apart by some 20 us a second. */
void calibrate_clocks(struct machine *m);
/* An event's start and end on the host's clock.  *told is the latest end of the commands before it on its queue, on the
 * device's clock (0: there are none), and becomes this command's. */
enum told_times {
    TIMES_TRUE,
    TIMES_MISSING,      /* or impossible: the command was `queued` later, or `seen` complete before; these stand in */
    TIMES_STEPPED_BACK, /* it began before *told, which stands in */
};
enum told_times event_times(const struct device *d, cl_event event, uint64_t queued, uint64_t seen, uint64_t *told,
                            uint64_t *start, uint64_t *end);

#endif
