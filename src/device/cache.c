/* cache.c - compiled programs, kept between runs: a start compiles only what has changed since the last one.
 *
 * An entry is one file in $YARD_CACHE, or else $XDG_CACHE_HOME/trainyard or ~/.cache/trainyard:
 *
 *     magic "YARDPRG1" | key | bytes of the binary | their checksum | the binary, as the driver gave it
 *
 * Its name is the key, a hash of all that decides about the code: driver, device, options and source.  Drivers crash on
 * damaged binaries, so nothing reaches them before key, size and checksum agree; what does not is compiled again and
 * replaced.  A binary is code that will be run, so folder and file must belong to the user and be writable by nobody
 * else.  The cache only saves time: where it cannot be used, everything works without.
 */
#include "device.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

struct header {
    char magic[8];
    uint64_t key, bytes, checksum;
};
static const char magic[8] = {'Y', 'A', 'R', 'D', 'P', 'R', 'G', '1'};

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

/* ---- the folder ------------------------------------------------------------------------------------------------ */

static bool is_ours(const struct stat *s) { return s->st_uid == geteuid() && (s->st_mode & (S_IWGRP | S_IWOTH)) == 0; }

/* NULL: no cache is wanted, or there is no place for it.  The caller frees it. */
static char *folder_path(void)
{
    const char *chosen = getenv("YARD_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (chosen)
        return *chosen ? copy_string(chosen) : NULL;
    char *parent = xdg && *xdg == '/' ? copy_string(xdg) : home && *home ? format_string("%s/.cache", home) : NULL;
    if (!parent)
        return NULL;
    mkdir(parent, 0700);
    char *path = format_string("%s/trainyard", parent);
    free(parent);
    return path;
}

/* A descriptor of the folder, made if need be; -1: there is none that can be trusted. */
static int open_folder(void)
{
    struct stat status;
    char *path = folder_path();
    if (!path)
        return -1;
    mkdir(path, 0700);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(path);
    if (fd >= 0 && (fstat(fd, &status) != 0 || !is_ours(&status))) {
        close(fd);
        return -1;
    }
    return fd;
}

#define ENTRY "%016llx.program"

/* ---- reading an entry ------------------------------------------------------------------------------------------ */

/* The binary in an open file; NULL when the file is not what was stored for this key. */
static unsigned char *read_binary(int fd, uint64_t key, size_t *bytes)
{
    struct header h;
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || !is_ours(&status) || read(fd, &h, sizeof h) != sizeof h)
        return NULL;
    *bytes = (size_t)status.st_size - sizeof h;
    if (memcmp(h.magic, magic, sizeof magic) != 0 || h.key != key || h.bytes != *bytes || h.bytes == 0)
        return NULL;
    unsigned char *binary = allocate(*bytes, 1);
    if (read(fd, binary, *bytes) == (ssize_t)*bytes && hash_bytes(binary, *bytes, key) == h.checksum)
        return binary;
    free(binary);
    return NULL;
}

static cl_uint context_devices(const struct device *d, cl_device_id ids[MAX_DEVICES])
{
    size_t bytes;
    CL(clGetContextInfo(d->context->cl, CL_CONTEXT_DEVICES, MAX_DEVICES * sizeof *ids, ids, &bytes));
    return (cl_uint)(bytes / sizeof *ids);
}

cl_program load_program(struct device *d, uint64_t key, const char *options)
{
    char name[32];
    snprintf(name, sizeof name, ENTRY, (unsigned long long)key);
    int folder = open_folder();
    int fd = folder < 0 ? -1 : openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    size_t bytes, sizes[MAX_DEVICES];
    unsigned char *binary = fd < 0 ? NULL : read_binary(fd, key, &bytes);
    close(fd), close(folder);
    if (!binary)
        return NULL;
    cl_device_id ids[MAX_DEVICES];
    const unsigned char *binaries[MAX_DEVICES];
    cl_uint n = context_devices(d, ids);
    for (cl_uint i = 0; i < n; i++)
        sizes[i] = bytes, binaries[i] = binary;
    cl_int code;
    cl_program program = clCreateProgramWithBinary(d->context->cl, n, ids, sizes, binaries, NULL, &code);
    free(binary);
    if (code == CL_SUCCESS && clBuildProgram(program, 0, NULL, options, NULL, NULL) != CL_SUCCESS) {
        CL(clReleaseProgram(program));
        return NULL;
    }
    return code == CL_SUCCESS ? program : NULL;
}

/* ---- writing an entry ------------------------------------------------------------------------------------------ */

/* Written beside and renamed, so that another process sees the old entry or the new one.  Nothing is synced: what a
 * power cut damages is found by its checksum. */
static void write_entry(int folder, uint64_t key, const unsigned char *binary, size_t bytes)
{
    struct header h = {.key = key, .bytes = bytes, .checksum = hash_bytes(binary, bytes, key)};
    char name[32], temporary[64];
    memcpy(h.magic, magic, sizeof magic);
    snprintf(name, sizeof name, ENTRY, (unsigned long long)key);
    snprintf(temporary, sizeof temporary, "%s.tmp-%ld", name, (long)getpid());
    int fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    bool written = write(fd, &h, sizeof h) == sizeof h && write(fd, binary, bytes) == (ssize_t)bytes;
    written &= close(fd) == 0;
    if (!written || renameat(folder, temporary, folder, name) != 0)
        unlinkat(folder, temporary, 0);
}

/* What the driver made for the context's first device, whose kind the others share.  Oclgrind's lacks the source, which
 * it quotes. */
void keep_program(struct device *d, uint64_t key, cl_program program)
{
    cl_device_id ids[MAX_DEVICES];
    size_t sizes[MAX_DEVICES] = {0};
    cl_uint n = context_devices(d, ids);
    int folder = is_platform(platform_of(d), "Oclgrind") ? -1 : open_folder();
    if (folder < 0)
        return;
    clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, n * sizeof *sizes, sizes, NULL);
    unsigned char *binaries[MAX_DEVICES] = {allocate(sizes[0] + 1, 1)}; /* NULL: not wanted */
    if (sizes[0] && clGetProgramInfo(program, CL_PROGRAM_BINARIES, n * sizeof *binaries, binaries, NULL) == CL_SUCCESS)
        write_entry(folder, key, binaries[0], sizes[0]);
    free(binaries[0]);
    close(folder);
}
