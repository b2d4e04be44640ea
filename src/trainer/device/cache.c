/* cache.c - compiled programs, kept in the folder $YARD_CACHE for the next run.
 *
 * This is for drivers that keep no compiled programs themselves: with Intel's each start takes 15 s.  Without
 * YARD_CACHE nothing is kept, since PoCL and GPUs' drivers have caches of their own, and PoCL compiles every kernel a
 * second time when it is asked for a binary.
 *
 * The file's name is the entry's key.  The file has a checksum (8 bytes), then
 * the binary as the driver gave it.  The checksum is a hash of the binary, seeded with the key.  Drivers crash on
 * damaged binaries, so when the checksum is wrong, the program is compiled again and the file replaced.
 */
#include "driver.h"

#include "trainer/file/file.h"

#include <unistd.h>

/* A hash of the compiler's settings in the environment, whose order does not matter. */
static uint64_t hash_settings(void)
{
    extern char **environ;
    uint64_t sum = 0;
    for (char **variable = environ; *variable; variable++)
        if (begins_with(*variable, "POCL_") || begins_with(*variable, "CL_CONFIG_"))
            sum += hash_bytes(*variable, strlen(*variable), 1);
    return sum;
}

struct cache_entry make_cache_entry(const struct device *device, const char *options, const char *source)
{
    static const cl_device_info of_device[] = {CL_DEVICE_NAME, CL_DEVICE_VENDOR, CL_DEVICE_VERSION, CL_DRIVER_VERSION};
    const char *folder = getenv("YARD_CACHE");
    struct cache_entry entry = {.path = NULL};
    if (!folder || !*folder)
        return entry;
    char *all = format_string("%s\n%s", options, source);
    for (size_t i = 0; i < COUNT(of_device); i++) {
        char text[256];
        device_text(device->cl, of_device[i], text, sizeof text);
        append_text(&all, "\n%s", text);
    }
    entry.key = hash_bytes(all, strlen(all), hash_settings());
    entry.path = format_string("%s/%016llx.program", folder, (unsigned long long)entry.key);
    free(all);
    return entry;
}

/* How many devices the device's context has; `ids` becomes a list of them. */
static cl_uint context_devices(const struct device *device, cl_device_id ids[MOST_DEVICES])
{
    size_t bytes;
    CL(clGetContextInfo(device->context->cl, CL_CONTEXT_DEVICES, MOST_DEVICES * sizeof *ids, ids, &bytes));
    return (cl_uint)(bytes / sizeof *ids);
}

/* A program of this binary for all devices of the device's context; NULL: the driver refuses it. */
static cl_program program_of_binary(const struct device *device, const char *binary, size_t size)
{
    cl_device_id ids[MOST_DEVICES];
    size_t sizes[MOST_DEVICES];
    const unsigned char *binaries[MOST_DEVICES];
    cl_int code;
    cl_uint n = context_devices(device, ids);
    for (cl_uint i = 0; i < n; i++) {
        sizes[i] = size;
        binaries[i] = (const unsigned char *)binary;
    }
    cl_program program = clCreateProgramWithBinary(device->context->cl, n, ids, sizes, binaries, NULL, &code);
    return code == CL_SUCCESS ? program : NULL;
}

cl_program load_program(const struct device *device, const struct cache_entry *entry, const char *options)
{
    size_t bytes;
    uint64_t checksum = 0;
    cl_program program = NULL;
    if (!entry->path || access(entry->path, F_OK) != 0)
        return NULL;
    char *file = read_whole(entry->path, &bytes);
    if (bytes > sizeof checksum) {
        const char *binary = file + sizeof checksum;
        size_t size = bytes - sizeof checksum;
        memcpy(&checksum, file, sizeof checksum);
        if (hash_bytes(binary, size, entry->key) == checksum)
            program = program_of_binary(device, binary, size);
    }
    free(file);
    if (!program)
        return NULL;
    if (clBuildProgram(program, 0, NULL, options, NULL, NULL) == CL_SUCCESS)
        return program;
    CL(clReleaseProgram(program));
    return NULL;
}

/* The first device's binary is enough, since all devices of a context are of one kind. */
void keep_program(const struct device *device, const struct cache_entry *entry, cl_program program)
{
    cl_device_id ids[MOST_DEVICES];
    size_t sizes[MOST_DEVICES] = {0};
    if (!entry->path)
        return;
    cl_uint n = context_devices(device, ids);
    CL(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, n * sizeof *sizes, sizes, NULL));
    size_t size = sizes[0];
    unsigned char *binary = allocate(size + 1, 1);
    unsigned char *binaries[MOST_DEVICES] = {binary}; /* the others are NULL: OpenCL leaves them out */
    CL(clGetProgramInfo(program, CL_PROGRAM_BINARIES, n * sizeof *binaries, binaries, NULL));
    uint64_t checksum = hash_bytes(binary, size, entry->key);
    struct writer *writer = open_writer(entry->path);
    write_bytes(writer, &checksum, sizeof checksum);
    write_bytes(writer, binary, size);
    must(publish(writer));
    free(binary);
}
