/* driver.h - what is asked of OpenCL's drivers: errors, drivers, kernels, limits of memory, times.  Only files that
 * call OpenCL include it.
 */
#ifndef DRIVER_H
#define DRIVER_H

#include "device.h"

/* ---- cl_error.c: OpenCL errors ----------------------------------------------------------------------------------- */

const char *cl_error_name(cl_int code); /* "CL_INVALID_KERNEL_ARGS", or "unknown OpenCL error" */

/* Runs an OpenCL call that returns a cl_int; failing shows the call, the symbolic name, the file and line. */
#define CL(call) cl_check((call), #call, __FILE__, __LINE__)

/* CL() for a call that returns an object, and the code through a pointer: CL_MAKE(err, x = clCreateY(..., &err)). */
#define CL_MAKE(err, statement)                                                                                        \
    do {                                                                                                               \
        cl_int err = CL_SUCCESS;                                                                                       \
        statement;                                                                                                     \
        cl_check(err, #statement, __FILE__, __LINE__);                                                                 \
    } while (0)
void cl_check(cl_int code, const char *call, const char *file, int line); /* for these two */

/* ---- platforms.c ------------------------------------------------------------------------------------------------- */

enum { MOST_PLATFORMS = 16, MOST_PER_PLATFORM = 32 };

/* Loads OpenCL's drivers and lists them in `out`.  Returns how many there are.  The first call warns of limits of this
 * process with which a driver may fail. */
cl_uint load_platforms(cl_platform_id out[MOST_PLATFORMS]);

/* Lists a driver's devices in `out`.  Returns how many there are. */
cl_uint get_devices(cl_platform_id platform, cl_device_id out[MOST_PER_PLATFORM]);

uint64_t device_number(cl_device_id id, cl_device_info property); /* a property of any of OpenCL's integer types */

/* A property of a device, or of a driver, made printable; "": it has none. */
void device_text(cl_device_id id, cl_device_info property, char *out, size_t bytes);
void platform_text(cl_platform_id id, cl_platform_info property, char *out, size_t bytes);

cl_platform_id platform_of(const struct device *device); /* the driver of a device that is not only described */
bool is_pocl(cl_platform_id platform);
extern bool main_has_returned; /* false at exit: a driver has called exit() */

/* Call it when a driver offers no device or does not compile.  Ends the program with `code` if the driver is PoCL and
 * cannot use its folder for compiled kernels; else returns. */
void check_kernel_cache(cl_platform_id platform, enum exit_code code);

/* Ends the program with the reason why none of the n drivers has a device: with `code` when PoCL's folder is the
 * reason, else with EXIT_NO_DEVICE. */
_Noreturn void fail_without_device(const cl_platform_id *platforms, cl_uint n, enum exit_code code);

/* ---- kernel_source.c --------------------------------------------------------------------------------------------- */

/* The text of cl/<file>; *path becomes the path that it came from.  The file is taken from the folder YARD_KERNELS if
 * that is set, else from ./cl, else from the folder cl beside the binary, else from the binary itself.  The caller
 * frees both. */
char *kernel_source(const char *file, char **path);

/* ---- kernels.c --------------------------------------------------------------------------------------------------- */

struct program { /* one built .cl file */
    char *file;
    cl_program cl;
};

/* A kernel object of its own (arguments are set once per object) from cl/<file>.  The .cl file is searched in
 * $YARD_KERNELS, ./cl and beside the binary; the copy embedded in the binary is the fallback.  A build error ends the
 * program with the compiler's log, which names the .cl file and line.  The caller releases the kernel. */
cl_kernel new_kernel(struct device *device, const char *file, const char *name);

/* ---- cache.c: compiled programs, kept between runs --------------------------------------------------------------- */

struct cache_entry { /* where the program of a source with its options is kept */
    uint64_t key;    /* a hash of everything on which the program depends */
    char *path;      /* the file, which the caller frees; NULL: no programs are kept */
};
struct cache_entry make_cache_entry(const struct device *device, const char *options, const char *source);

/* The program in that file, built for all devices of the device's context; NULL: there is no such file, or it is
 * damaged. */
cl_program load_program(const struct device *device, const struct cache_entry *entry, const char *options);

/* Writes the program, built for all devices of the device's context, to entry->path.  NULL: it is not kept. */
void keep_program(const struct device *device, const struct cache_entry *entry, cl_program program);

/* ---- limits.c ---------------------------------------------------------------------------------------------------- */

/* Bytes that the host has; SIZE_MAX / 4: the system does not say it. */
size_t physical_memory(void);

/* Bytes of the host's memory that this process may still take: a container's limit, or that of the address space, less
 * the bytes in use and those that the driver needs later.  NO_LIMIT: only the memory itself is a limit. */
size_t memory_left_by_limits(void);

/* Bytes left by the control groups that a file like /proc/self/cgroup names, whose own files lie below `root`;
 * SIZE_MAX: the groups have no limit. */
size_t left_by_groups(const char *groups, const char *root);

/* ---- device_clock.c ---------------------------------------------------------------------------------------------- */

/* A command's times, in ns of the host's clock. */
struct command_times {
    uint64_t queued, seen; /* when the host queued it, and when the host saw it complete; the caller sets them */
    uint64_t start, end;   /* when it ran; event_times() sets them */
};

/* Finds when the command of that event ran: sets times->start and times->end.  *driver_end: the latest end of the
 * commands of that queue so far, on the device's clock; 0 before the first one.  The caller keeps it from one call to
 * the next, and this function makes it later. */
enum time_source event_times(const struct device *device, cl_event event, uint64_t *driver_end,
                             struct command_times *times);

#endif
