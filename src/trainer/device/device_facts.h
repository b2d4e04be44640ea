/* device_facts.h - what devices of several kinds are like: parts of the structs of device.h, which includes this
 * header.  A reader of device.h can do without them at first.
 */
#ifndef DEVICE_FACTS_H
#define DEVICE_FACTS_H

/* OpenCL has its types in this one header.  Fields here, in device.h, in tensors and in instances have these types. */
#ifdef __APPLE__
#include <OpenCL/cl.h>
#else
#include <CL/cl.h>
#endif

#include "trainer/base/base.h"
#include "trainer/base/lane.h"

/* ---- purposes of lanes ------------------------------------------------------------------------------------------- */

/* What a lane is for, in a word or two.  Tasks for two purposes on one lane would wait for each other, so each purpose
 * has lanes of its own (lane_for()).  Other folders define further words. */
enum { PURPOSE_NAME = 16 };   /* the most bytes of one, and its end */
#define FOR_ALL ""            /* a standard lane: batches up, results down */
#define FOR_NOTHING "nothing" /* a step file's lane without tasks yet: the first purpose in need gets it */
#define FOR_MOVES "moves"     /* copies of gradients and parameters between devices, up; down: FOR_ALL */

/* ---- links ------------------------------------------------------------------------------------------------------- */

/* A connection between the host and some devices in one direction, which all copies on it share.  Only described
 * machines have links. */
enum direction { LINK_UP, LINK_DOWN, DIRECTIONS }; /* up: host to device */
extern const enum lane_kind lane_of_direction[DIRECTIONS];

struct link {
    int index;         /* its place in machine->links */
    double rate;       /* bytes/s, which the copies on it share */
    double latency;    /* s from a copy's start until its bytes are on the link */
    double queue_rate; /* the most bytes/s that one queue reaches; 0: the whole rate */
    int max_lanes;     /* the most lanes of one device that may use it; 0: any number */
};

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Every device's tensors begin at multiples of this (NVIDIA's need it), so that a layout is the same everywhere. */
enum { DEVICE_ALIGNMENT = 512 };

#define NO_LIMIT ((size_t)1 << 50) /* bytes: the largest budget, and the size of memory where none is given */

/* ---- parts of struct device, a subject each ---------------------------------------------------------------------- */

enum { GPU_WORK_GROUP = 128 }; /* work-items per row, unless one_item, the device or YARD_WG say otherwise */

/* In which shape kernels are compiled for a device and launched on it. */
struct kernel_shape {
    unsigned vector;                  /* floats per vector, VEC in the kernels: bits depend on it */
    unsigned work_group;              /* work-items per row: WG in the kernels, 1 on CPUs */
    bool one_item;                    /* one work-item computes a whole row, as on CPUs with vectors */
    bool forced;                      /* YARD_VEC or YARD_WG, which tests use, have set the shape */
    unsigned tile_rows, tile_vectors; /* register tile of the GEMM: ROWS, COLS in gemm.cl */
    size_t most_items;                /* the most work-items of a work-group; 0: not known (a described device) */
    size_t local_memory;              /* bytes that a work-group may share */
};

enum { SHORT_LOOPS = 65535 }; /* rounds in all after which llvmpipe ends a work-item's loops */

/* How a device differs from others in what its driver does. */
struct quirks {
    bool correct_divide; /* it rounds divisions and square roots correctly */
    bool needs_waiter;   /* PoCL's basic device: a command runs in the thread that waits for it, and not before */
    bool short_loops;    /* llvmpipe: a work-item's loops end after SHORT_LOOPS rounds in all, without an error */
};

/* A device's clock against the host's.  It is measured anew from time to time (device_clock.c), while threads of lanes
 * may ask for times. */
struct device_clock {
    _Atomic int64_t offset; /* host clock = device clock + offset, ns */
    _Atomic uint64_t step;  /* the resolution of the device's clock, ns */
    _Atomic bool valid;     /* false: the driver's times cannot be used */
};

/* Where the times of a command come from. */
enum time_source {
    TIMES_TRUE,        /* the driver tells them */
    TIMES_MISSING,     /* the driver gives none, or impossible ones: start and end are `queued` and `seen` */
    TIMES_STEPPED_BACK /* the command seems to begin before *driver_end: its start is that time */
};

/* What a file says of a device that is only described: one of a step file, or of other hardware.  Zeros elsewhere. */
struct description {
    bool by_hand;                   /* a step file describes it: all its bytes are for tensors, there are no guards */
    bool shares_bytes;              /* tensors share bytes even if there is room for all at once (step files) */
    struct link *links[DIRECTIONS]; /* what its copies share; NULL: they take no time of their own */
    struct link *disk;              /* the host's: the link that copies on its disk lanes share, or NULL */
};

/* What drivers and files tell of a device, beside the fields that it has in device.h.  A first reading skips it. */
struct device_extra {
    bool is_logical;   /* it is a logical device, which shares its cores with others */
    cl_device_id root; /* the device that a sub-device was cut from, else the same as the device's `cl` */
    bool limited;      /* a limit of this process leaves it less memory than there is */
    struct quirks quirks;
    struct device_clock clock;
    struct description described;
};

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

/* What open_machine() is asked for. */
struct machine_options {
    const char *devices;               /* the -d text; NULL: the first GPU, else the first device */
    size_t device_memory, host_memory; /* budgets in bytes; 0: all that the device may use */
    bool profiling;                    /* queues carry timestamps */
    bool separate;                     /* a context for each device, as GPUs have: moves are staged through the host */
    unsigned vector; /* floats per vector in all kernels, not more than a device has; 0: as many as each device has */
};

#endif
