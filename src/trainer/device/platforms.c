/* platforms.c - the drivers that OpenCL's loader finds, and the reasons why a driver may offer no device.
 *
 * PoCL, the driver that runs OpenCL on CPUs, keeps compiled kernels in a folder.  It offers no device when it cannot
 * make this folder, and compiles nothing when it cannot write there; in neither case does it say why.
 */
#include "driver.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

bool main_has_returned;

/* Roughly what a driver and its compiler need: open files, processes and threads of the user, and bytes of one file,
 * which may be a compiled kernel. */
enum { LEAST_FILES = 64, LEAST_PROCESSES = 64, LEAST_FILE_BYTES = 4 << 20 };

/* Both of these describe a limit of this process with which a driver may fail; NULL: there is none.  The caller frees
 * the text. */
static char *limit_of_addresses(void)
{
    struct rlimit space;
    char size[NUMBER_TEXT];
    if (getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur == RLIM_INFINITY)
        return NULL;
    return format_string("an address space of %s: raise that limit (ulimit -v unlimited)",
                         format_bytes(size, (double)space.rlim_cur));
}

static char *other_limit(void)
{
    struct rlimit files, processes, bytes;
    char size[NUMBER_TEXT];
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < LEAST_FILES)
        return format_string("%llu open files at most: raise that limit (ulimit -n 1024)",
                             (unsigned long long)files.rlim_cur);
    if (getrlimit(RLIMIT_NPROC, &processes) == 0 && processes.rlim_cur < LEAST_PROCESSES)
        return format_string("%llu processes and threads of this user at most: raise that limit (ulimit -u 1024)",
                             (unsigned long long)processes.rlim_cur);
    if (getrlimit(RLIMIT_FSIZE, &bytes) == 0 && bytes.rlim_cur < LEAST_FILE_BYTES)
        return format_string("files of %s at most: raise that limit (ulimit -f unlimited)",
                             format_bytes(size, (double)bytes.rlim_cur));
    return NULL;
}

/* Called before a driver is loaded: when PoCL cannot open a file for its compiler or start a thread, it calls abort()
 * without saying why.  Whether the address space is too small is known only later, so it is not warned of here. */
static void warn_of_limits(void)
{
    char *addresses = limit_of_addresses(), *limit = other_limit();
    if (limit && !addresses)
        warn("the OpenCL driver may fail: this process may have %s", limit);
    free(addresses);
    free(limit);
}

cl_platform_id platform_of(const struct device *device)
{
    cl_platform_id platform;
    CL(clGetDeviceInfo(device->cl, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL));
    return platform;
}

cl_uint get_devices(cl_platform_id platform, cl_device_id out[MOST_PER_PLATFORM])
{
    cl_uint n = 0;
    cl_int code = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MOST_PER_PLATFORM, out, &n);
    if (code != CL_SUCCESS)
        return 0;
    return MIN(n, (cl_uint)MOST_PER_PLATFORM);
}

uint64_t device_number(cl_device_id id, cl_device_info property)
{
    union {
        cl_uint small;
        cl_ulong large;
    } value = {.large = 0};
    size_t bytes = 0;
    CL(clGetDeviceInfo(id, property, sizeof value, &value, &bytes));
    return bytes == sizeof value.small ? value.small : value.large;
}

void device_text(cl_device_id id, cl_device_info property, char *out, size_t bytes)
{
    memset(out, 0, bytes);
    clGetDeviceInfo(id, property, bytes - 1, out, NULL);
    make_printable(out, ONE_LINE);
}

void platform_text(cl_platform_id id, cl_platform_info property, char *out, size_t bytes)
{
    memset(out, 0, bytes);
    clGetPlatformInfo(id, property, bytes - 1, out, NULL);
    make_printable(out, ONE_LINE);
}

bool is_pocl(cl_platform_id platform)
{
    char name[64];
    platform_text(platform, CL_PLATFORM_NAME, name, sizeof name);
    return strcmp(name, "Portable Computing Language") == 0;
}

/* The folder in which PoCL keeps compiled kernels; the caller frees it. */
static char *kernel_cache(void)
{
    const char *set = getenv("POCL_CACHE_DIR"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (set && *set)
        return format_string("%s/", set);
    if (xdg && *xdg)
        return format_string("%s/pocl/kcache/", xdg);
    if (home && *home)
        return format_string("%s/.cache/pocl/kcache/", home);
    return copy_string("/tmp/pocl/kcache/");
}

/* Runs at exit.  PoCL's compiler calls exit(), with a message of its own, when it cannot write a kernel. */
static void explain_full_cache(void)
{
    enum { LEAST = 1 << 20 }; /* bytes that a kernel may take */
    if (main_has_returned)
        return;
    struct statvfs disk;
    char *folder = kernel_cache();
    if (statvfs(folder, &disk) == 0 && (uint64_t)disk.f_bavail * disk.f_frsize < LEAST) {
        fprintf(stderr,
                "yard: the OpenCL driver PoCL ended the program: the disk under %s, where it keeps compiled kernels, "
                "is full; make room there, or set POCL_CACHE_DIR to a folder on another disk\n",
                folder);
        _Exit(EXIT_IO);
    }
    free(folder);
}

/* Makes the folder, as PoCL does, and checks whether files can be made in it. */
void check_kernel_cache(cl_platform_id platform, enum exit_code code)
{
    if (!is_pocl(platform))
        return;
    char *folder = kernel_cache();
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(folder, 0700);
        *slash = slash[1] ? '/' : '\0';
    }
    if (access(folder, W_OK | X_OK) != 0)
        fail(code,
             "the OpenCL driver PoCL cannot keep compiled kernels in %s (of POCL_CACHE_DIR, XDG_CACHE_HOME or HOME): "
             "%s; set POCL_CACHE_DIR to a folder that you may write",
             folder, strerror(errno));
    free(folder);
}

/* What must be done once, before the first driver is loaded. */
static void prepare_for_drivers(void)
{
    static bool was_called;
    const char *cache = getenv("POCL_CACHE_DIR");
    if (was_called)
        return;
    was_called = true;
    atexit(explain_full_cache);
    warn_of_limits();
    if (cache && !cache[0])
        unsetenv("POCL_CACHE_DIR"); /* PoCL aborts on an empty one */
}

cl_uint load_platforms(cl_platform_id out[MOST_PLATFORMS])
{
    cl_uint n = 0;
    prepare_for_drivers();
    cl_int code = clGetPlatformIDs(MOST_PLATFORMS, out, &n);
    if (code != CL_SUCCESS)
        return 0;
    return MIN(n, (cl_uint)MOST_PLATFORMS);
}

_Noreturn void fail_without_device(const cl_platform_id *platforms, cl_uint n, enum exit_code code)
{
    const char *vendors = getenv("OCL_ICD_VENDORS"), *pocl = getenv("POCL_DEVICES");
    char *limit = limit_of_addresses();
    if (!limit)
        limit = other_limit();
    if (n == 0 && limit)
        fail(EXIT_NO_DEVICE, "no OpenCL driver could be loaded with %s", limit);
    free(limit);
    if (n == 0)
        fail(EXIT_NO_DEVICE,
             "no OpenCL driver is installed, or none of %s can be loaded; on Debian or Ubuntu: apt-get install "
             "pocl-opencl-icd",
             vendors ? vendors : "/etc/OpenCL/vendors");
    for (cl_uint i = 0; i < n; i++)
        check_kernel_cache(platforms[i], code);
    for (cl_uint i = 0; i < n; i++)
        if (is_pocl(platforms[i]) && pocl)
            fail(EXIT_NO_DEVICE,
                 "the OpenCL drivers here offer no device: POCL_DEVICES=%s names none that PoCL has; unset it, or set "
                 "it to pthread",
                 pocl);
    fail(EXIT_NO_DEVICE,
         "the OpenCL drivers here offer no device; on Debian or Ubuntu: apt-get install pocl-opencl-icd");
}
