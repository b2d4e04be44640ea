/* platforms.c - the drivers that OpenCL's loader finds, and why one may offer nothing.
 *
 * PoCL, the driver that runs OpenCL on CPUs, keeps compiled kernels in a folder.  It offers no device when it cannot
 * make this folder, compiles nothing when it cannot write there, and says neither.
 */
#include "device.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder that PoCL takes.  The caller frees it. */
static char *cache_folder(void)
{
    static const struct {
        const char *variable, *below;
    } places[] = {{"POCL_CACHE_DIR", ""}, {"XDG_CACHE_HOME", "/pocl/kcache"}, {"HOME", "/.cache/pocl/kcache"}};
    for (size_t i = 0; i < COUNT(places); i++) {
        const char *value = getenv(places[i].variable);
        if (value && value[0])
            return format_string("%s%s", value, places[i].below);
    }
    return copy_string("/tmp/pocl/kcache");
}

/* Make the folder, as PoCL does, and see whether files can be made in it: 0, or an errno. */
static int try_cache(const char *folder)
{
    char *part = format_string("%s/.", folder);
    int made = 0;
    for (char *slash = part; (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        made = mkdir(part, 0700) == 0 || errno == EEXIST ? 0 : errno;
        *slash = '/';
    }
    int error = made ? made : access(part, W_OK | X_OK) != 0 ? errno : 0;
    free(part);
    return error;
}

cl_platform_id platform_of(const struct device *d)
{
    cl_platform_id platform;
    CL(clGetDeviceInfo(d->cl, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL));
    return platform;
}

cl_uint get_devices(cl_platform_id platform, cl_device_id out[MAX_PER_PLATFORM])
{
    cl_uint n = 0;
    cl_int code = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MAX_PER_PLATFORM, out, &n);
    return code == CL_SUCCESS ? MIN(n, (cl_uint)MAX_PER_PLATFORM) : 0;
}

uint64_t device_number(cl_device_id id, cl_device_info what)
{
    union {
        cl_uint small;
        cl_ulong large;
    } value = {.large = 0};
    size_t bytes = 0;
    CL(clGetDeviceInfo(id, what, sizeof value, &value, &bytes));
    return bytes == sizeof value.small ? value.small : value.large;
}

void device_text(cl_device_id id, cl_device_info what, char *out, size_t bytes)
{
    memset(out, 0, bytes);
    clGetDeviceInfo(id, what, bytes - 1, out, NULL);
    make_printable(out, false);
}

bool is_platform(cl_platform_id platform, const char *wanted)
{
    char name[64] = "";
    clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name - 1, name, NULL);
    return strcmp(name, wanted) == 0;
}

void check_kernel_cache(cl_platform_id platform, enum exit_code code)
{
    char *folder = is_platform(platform, POCL) ? cache_folder() : NULL;
    int error = folder ? try_cache(folder) : 0;
    if (error)
        fail(code,
             "the OpenCL driver PoCL cannot keep compiled kernels in %s (as POCL_CACHE_DIR, XDG_CACHE_HOME or HOME "
             "say): %s; set POCL_CACHE_DIR to a folder that you may write",
             folder, strerror(error));
    free(folder);
}

cl_uint get_platforms(cl_platform_id out[MAX_PLATFORMS])
{
    cl_uint n = 0;
    const char *cache = getenv("POCL_CACHE_DIR");
    if (cache && !cache[0])
        unsetenv("POCL_CACHE_DIR"); /* PoCL aborts on an empty one */
    cl_int code = clGetPlatformIDs(MAX_PLATFORMS, out, &n);
    return code == CL_SUCCESS ? MIN(n, (cl_uint)MAX_PLATFORMS) : 0;
}

/* The loader does not tell a driver that it cannot load from none. */
static void explain_unloaded(const char *folder)
{
    char library[512];
    DIR *entries = opendir(folder);
    for (const struct dirent *e; entries && (e = readdir(entries));) {
        char *path = format_string("%s/%s", folder, e->d_name);
        FILE *file = strstr(e->d_name, ".icd") ? fopen(path, "re") : NULL;
        if (file && fscanf(file, "%511s", library) == 1 && !dlopen(library, RTLD_NOW | RTLD_LOCAL))
            fail(EXIT_NO_DEVICE, "the OpenCL driver %s, of %s, cannot be loaded: %s", library, path, dlerror());
        if (file)
            fclose(file);
        free(path);
    }
    if (entries)
        closedir(entries);
}

_Noreturn void fail_without_device(const cl_platform_id *platforms, cl_uint n, enum exit_code code)
{
    const char *vendors = getenv("OCL_ICD_VENDORS");
    if (n == 0)
        explain_unloaded(vendors ? vendors : "/etc/OpenCL/vendors");
    if (n == 0)
        fail(EXIT_NO_DEVICE, "no OpenCL driver is installed; on Debian or Ubuntu: apt-get install pocl-opencl-icd");
    for (cl_uint i = 0; i < n; i++)
        check_kernel_cache(platforms[i], code);
    fail(EXIT_NO_DEVICE,
         "the OpenCL drivers here offer no device; on Debian or Ubuntu: apt-get install pocl-opencl-icd");
}
