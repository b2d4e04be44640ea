/* cache.c - compiled programs, kept in the folder $YARD_CACHE for the next run.
 *
 * For drivers that keep nothing themselves: Intel's takes 15 s at each start.  PoCL and GPUs' drivers have caches of
 * their own, and PoCL compiles every kernel a second time to hand out a binary, so without YARD_CACHE nothing is kept.
 * An entry is a checksum and the binary as the driver gave it; its name is the key, a hash of all that decides about
 * the code.  The checksum begins with the key. Drivers crash on damaged binaries: one whose checksum disagrees is
 * compiled again and replaced.
 */
#include "device.h"

#include "trainer/file/file.h"

#include <unistd.h>

char *cache_entry(const struct device *d, const char *options, const char *source)
{
    static const cl_device_info of_device[] = {CL_DEVICE_NAME, CL_DEVICE_VENDOR, CL_DEVICE_VERSION, CL_DRIVER_VERSION};
    extern char **environ;
    const char *folder = getenv("YARD_CACHE");
    if (!folder || !*folder)
        return NULL;
    char text[256], *all = format_string("%s\n%s", options, source);
    uint64_t settings = 0;
    for (char **v = environ; *v; v++) /* compiler settings, in any order */
        if (strncmp(*v, "POCL_", 5) == 0 || strncmp(*v, "CL_CONFIG_", 10) == 0)
            settings += hash_bytes(*v, strlen(*v), 1);
    for (size_t i = 0; i < COUNT(of_device); i++) {
        device_text(d->cl, of_device[i], text, sizeof text);
        append_text(&all, "\n%s", text);
    }
    unsigned long long key = hash_bytes(all, strlen(all), settings);
    free(all);
    return format_string("%s/%016llx.program", folder, key);
}

/* The hash in an entry's name. */
static uint64_t key_of(const char *entry) { return strtoull(strrchr(entry, '/') + 1, NULL, 16); }

static cl_uint context_devices(const struct device *d, cl_device_id ids[MAX_DEVICES])
{
    size_t bytes;
    CL(clGetContextInfo(d->context->cl, CL_CONTEXT_DEVICES, MAX_DEVICES * sizeof *ids, ids, &bytes));
    return (cl_uint)(bytes / sizeof *ids);
}

cl_program load_program(const struct device *d, const char *entry, const char *options)
{
    cl_device_id ids[MAX_DEVICES];
    size_t bytes, sizes[MAX_DEVICES];
    const unsigned char *binaries[MAX_DEVICES];
    uint64_t checksum = 0;
    cl_int code = CL_INVALID_BINARY;
    cl_program program = NULL;
    if (!entry || access(entry, F_OK) != 0)
        return NULL;
    cl_uint n = context_devices(d, ids);
    char *file = read_whole(entry, &bytes), *binary = file + sizeof checksum;
    for (cl_uint i = 0; i < n; i++)
        sizes[i] = bytes - sizeof checksum, binaries[i] = (unsigned char *)binary;
    memcpy(&checksum, file, MIN(bytes, sizeof checksum));
    if (bytes > sizeof checksum && hash_bytes(binary, *sizes, key_of(entry)) == checksum)
        program = clCreateProgramWithBinary(d->context->cl, n, ids, sizes, binaries, NULL, &code);
    free(file);
    if (code == CL_SUCCESS && clBuildProgram(program, 0, NULL, options, NULL, NULL) == CL_SUCCESS)
        return program;
    if (code == CL_SUCCESS)
        CL(clReleaseProgram(program));
    return NULL;
}

/* What the driver made for the context's first device, whose kind the others share. */
void keep_program(const struct device *d, const char *entry, cl_program program)
{
    cl_device_id ids[MAX_DEVICES];
    size_t sizes[MAX_DEVICES] = {0};
    if (!entry)
        return;
    cl_uint n = context_devices(d, ids);
    CL(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, n * sizeof *sizes, sizes, NULL));
    unsigned char *binaries[MAX_DEVICES] = {allocate(*sizes + 1, 1)}; /* NULL: not wanted */
    CL(clGetProgramInfo(program, CL_PROGRAM_BINARIES, n * sizeof *binaries, binaries, NULL));
    uint64_t checksum = hash_bytes(*binaries, *sizes, key_of(entry));
    struct writer *w = open_writer(entry);
    write_bytes(w, &checksum, sizeof checksum);
    write_bytes(w, *binaries, *sizes);
    publish(w);
    free(*binaries);
}
