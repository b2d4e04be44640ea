/* cache.c - compiled programs, kept between runs: a start compiles only what has changed since the last one.
 *
 * An entry is one file in $YARD_CACHE, or else $XDG_CACHE_HOME/trainyard or ~/.cache/trainyard: a checksum, and the
 * binary as the driver gave it.  Its name is the key, a hash of all that decides about the code: driver, device,
 * options and source.  Drivers crash on damaged binaries, so nothing reaches them before the checksum, which begins
 * with the key, agrees; what does not is compiled again and replaced.  A binary is code that will be run, so folder and
 * file must belong to the user and be writable by nobody else.  The cache only saves time: where it cannot be used,
 * everything works without.
 */
#include "device.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the driver says of itself and of the device; and PoCL and Intel's runtime take compiler settings from the
 * environment, the order of whose variables is of no account. */
uint64_t program_key(const struct device *d, const char *options, const char *source)
{
    static const cl_platform_info of_platform[] = {CL_PLATFORM_NAME, CL_PLATFORM_VERSION};
    static const cl_device_info of_device[] = {CL_DEVICE_NAME, CL_DEVICE_VENDOR, CL_DEVICE_VERSION, CL_DRIVER_VERSION};
    extern char **environ;
    struct hasher h;
    uint64_t settings = 0;
    char text[256] = "";
    for (char **v = environ; *v; v++)
        if (strncmp(*v, "POCL_", 5) == 0 || strncmp(*v, "CL_CONFIG_", 10) == 0)
            settings += hash_bytes(*v, strlen(*v), 1);
    hash_begin(&h, settings);
    for (size_t i = 0; i < COUNT(of_platform); i++) {
        clGetPlatformInfo(platform_of(d), of_platform[i], sizeof text, text, NULL);
        hash_add(&h, text, strlen(text) + 1);
    }
    for (size_t i = 0; i < COUNT(of_device); i++) {
        device_text(d->cl, of_device[i], text, sizeof text);
        hash_add(&h, text, strlen(text) + 1);
    }
    hash_add(&h, options, strlen(options) + 1);
    hash_add(&h, source, strlen(source) + 1);
    return hash_end(&h);
}

static bool is_ours(const struct stat *s) { return s->st_uid == geteuid() && (s->st_mode & (S_IWGRP | S_IWOTH)) == 0; }

/* The file of that key, in a folder that is made if need be; NULL: there is none that can be trusted. */
static char *entry_path(uint64_t key)
{
    const char *chosen = getenv("YARD_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *folder = chosen               ? copy_string(chosen)
                   : xdg && *xdg == '/' ? format_string("%s/trainyard", xdg)
                   : home && *home      ? format_string("%s/.cache/trainyard", home)
                                        : copy_string("");
    char *name = strrchr(folder, '/'), *path = NULL;
    struct stat status;
    if (!chosen && name) { /* ~/.cache itself */
        *name = '\0';
        mkdir(folder, 0700);
        *name = '/';
    }
    mkdir(folder, 0700);
    if (stat(folder, &status) == 0 && S_ISDIR(status.st_mode) && is_ours(&status))
        path = format_string("%s/%016llx.program", folder, (unsigned long long)key);
    free(folder);
    return path;
}

static cl_uint context_devices(const struct device *d, cl_device_id ids[MAX_DEVICES])
{
    size_t bytes;
    CL(clGetContextInfo(d->context->cl, CL_CONTEXT_DEVICES, MAX_DEVICES * sizeof *ids, ids, &bytes));
    return (cl_uint)(bytes / sizeof *ids);
}

static cl_program program_of(struct device *d, const unsigned char *binary, size_t bytes, const char *options)
{
    cl_device_id ids[MAX_DEVICES];
    size_t sizes[MAX_DEVICES];
    const unsigned char *binaries[MAX_DEVICES];
    cl_uint n = context_devices(d, ids);
    cl_int code;
    for (cl_uint i = 0; i < n; i++)
        sizes[i] = bytes, binaries[i] = binary;
    cl_program program = clCreateProgramWithBinary(d->context->cl, n, ids, sizes, binaries, NULL, &code);
    if (code != CL_SUCCESS || clBuildProgram(program, 0, NULL, options, NULL, NULL) == CL_SUCCESS)
        return code == CL_SUCCESS ? program : NULL;
    CL(clReleaseProgram(program));
    return NULL;
}

cl_program load_program(struct device *d, uint64_t key, const char *options)
{
    char *path = entry_path(key);
    int fd = path ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    uint64_t checksum;
    struct stat status;
    cl_program program = NULL;
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && is_ours(&status) &&
        status.st_size > (off_t)sizeof checksum && read(fd, &checksum, sizeof checksum) == sizeof checksum) {
        size_t bytes = (size_t)status.st_size - sizeof checksum;
        unsigned char *binary = allocate(bytes, 1);
        if (read(fd, binary, bytes) == (ssize_t)bytes && hash_bytes(binary, bytes, key) == checksum)
            program = program_of(d, binary, bytes, options);
        free(binary);
    }
    if (fd >= 0)
        close(fd);
    free(path);
    return program;
}

/* What the driver made for the context's first device, whose kind the others share.  Oclgrind's lacks the source, which
 * it quotes.  Written beside and renamed, so that another process sees the old entry or the new one.  Nothing is
 * synced: what a power cut damages is found by its checksum. */
void keep_program(struct device *d, uint64_t key, cl_program program)
{
    cl_device_id ids[MAX_DEVICES];
    size_t sizes[MAX_DEVICES] = {0};
    cl_uint n = context_devices(d, ids);
    char *path = is_platform(platform_of(d), "Oclgrind") ? NULL : entry_path(key);
    if (!path)
        return;
    clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, n * sizeof *sizes, sizes, NULL);
    unsigned char *binaries[MAX_DEVICES] = {allocate(sizes[0] + 1, 1)}; /* NULL: not wanted */
    char *temporary = format_string("%s.tmp-%ld", path, (long)getpid());
    bool whole =
        sizes[0] && clGetProgramInfo(program, CL_PROGRAM_BINARIES, n * sizeof *binaries, binaries, NULL) == CL_SUCCESS;
    int fd = whole ? open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    if (fd >= 0) {
        uint64_t checksum = hash_bytes(binaries[0], sizes[0], key);
        bool written = write(fd, &checksum, sizeof checksum) == sizeof checksum &&
                       write(fd, binaries[0], sizes[0]) == (ssize_t)sizes[0];
        written &= close(fd) == 0;
        if (!written || rename(temporary, path) != 0)
            unlink(temporary);
    }
    free(binaries[0]), free(path), free(temporary);
}
