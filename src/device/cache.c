/* cache.c - compiled programs, kept between runs: a start compiles only what has changed since the last one.
 *
 * An entry is one file in $YARD_CACHE, or else $XDG_CACHE_HOME/trainyard or ~/.cache/trainyard:
 *
 *     magic "YARDPRG1" | second key | bytes of the binary | their checksum | the binary, as the driver gave it
 *
 * Its name is the first key.  Both keys are hashes of all that decides about the code: driver, device, options and
 * source.  Drivers crash on damaged binaries, so nothing reaches them before keys, size and checksum agree; what does
 * not is compiled again and replaced.  A binary is code that will be run, so folder and file must belong to the user
 * and be writable by nobody else.  The cache only saves time: where it cannot be used, everything works without.
 */
#include "device.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

struct header {
    char magic[8];
    uint64_t key, bytes, checksum;
};
static const char magic[8] = {'Y', 'A', 'R', 'D', 'P', 'R', 'G', '1'};
#define BEHIND_KEY ".program"             /* in an entry's name */
static const off_t MOST_BYTES = 64 << 20; /* of all entries together; a device and its options take about 1 MiB */

/* ---- the key --------------------------------------------------------------------------------------------------- */

static void add_text(struct program_key *key, const char *text)
{
    key->name = hash_bytes(text, strlen(text) + 1, key->name);
    key->check = hash_bytes(text, strlen(text) + 1, key->check);
}

/* What the driver says of itself and of the device. */
static void add_driver(struct program_key *key, const struct device *d)
{
    static const cl_platform_info of_platform[] = {CL_PLATFORM_NAME, CL_PLATFORM_VERSION};
    static const cl_device_info of_device[] = {CL_DEVICE_NAME, CL_DEVICE_VENDOR, CL_DEVICE_VERSION, CL_DRIVER_VERSION};
    char text[256] = "";
    for (size_t i = 0; i < COUNT(of_platform); i++) {
        clGetPlatformInfo(platform_of(d), of_platform[i], sizeof text, text, NULL);
        add_text(key, text);
    }
    for (size_t i = 0; i < COUNT(of_device); i++) {
        device_text(d->cl, of_device[i], text, sizeof text);
        add_text(key, text);
    }
}

/* PoCL and Intel's runtime take compiler settings from the environment; the order of its variables is of no account. */
static void add_environment(struct program_key *key)
{
    extern char **environ;
    for (char **v = environ; *v; v++)
        if (strncmp(*v, "POCL_", 5) == 0 || strncmp(*v, "CL_CONFIG_", 10) == 0) {
            key->name += hash_bytes(*v, strlen(*v), 1);
            key->check += hash_bytes(*v, strlen(*v), 2);
        }
}

struct program_key program_key(const struct device *d, const char *options, const char *source)
{
    struct program_key key = {0, 1};
    add_environment(&key);
    add_driver(&key, d);
    add_text(&key, options);
    add_text(&key, source);
    return key;
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

/* ---- reading an entry ------------------------------------------------------------------------------------------ */

/* The binary in an open file; NULL when the file is not what was stored for this key. */
static unsigned char *read_entry(int fd, const struct program_key *key, size_t *bytes)
{
    struct header h;
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || !is_ours(&status) || read(fd, &h, sizeof h) != sizeof h)
        return NULL;
    bool whole = memcmp(h.magic, magic, sizeof magic) == 0 && h.key == key->check && h.bytes > 0 &&
                 status.st_size <= MOST_BYTES && h.bytes == (uint64_t)status.st_size - sizeof h;
    if (!whole)
        return NULL;
    unsigned char *binary = allocate(h.bytes, 1);
    if (read(fd, binary, h.bytes) != (ssize_t)h.bytes || hash_bytes(binary, h.bytes, key->check) != h.checksum) {
        free(binary);
        return NULL;
    }
    futimens(fd, NULL); /* it has been used: among the last to go */
    *bytes = h.bytes;
    return binary;
}

static void entry_name(char out[64], const struct program_key *key)
{
    snprintf(out, 64, "%016llx" BEHIND_KEY, (unsigned long long)key->name);
}

static unsigned char *find_entry(const struct program_key *key, size_t *bytes)
{
    char name[64];
    int folder = open_folder();
    if (folder < 0)
        return NULL;
    entry_name(name, key);
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    unsigned char *binary = fd < 0 ? NULL : read_entry(fd, key, bytes);
    if (fd >= 0)
        close(fd);
    close(folder);
    return binary;
}

static cl_uint context_devices(const struct device *d, cl_device_id ids[MAX_DEVICES])
{
    size_t bytes;
    CL(clGetContextInfo(d->context->cl, CL_CONTEXT_DEVICES, MAX_DEVICES * sizeof *ids, ids, &bytes));
    return (cl_uint)(bytes / sizeof *ids);
}

cl_program load_program(struct device *d, const struct program_key *key, const char *options)
{
    cl_device_id ids[MAX_DEVICES];
    size_t bytes, sizes[MAX_DEVICES];
    unsigned char *binary = find_entry(key, &bytes);
    const unsigned char *binaries[MAX_DEVICES];
    if (!binary)
        return NULL;
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
static void write_entry(int folder, const struct program_key *key, const unsigned char *binary, size_t bytes)
{
    struct header h = {.key = key->check, .bytes = bytes, .checksum = hash_bytes(binary, bytes, key->check)};
    char name[64], temporary[96];
    memcpy(h.magic, magic, sizeof magic);
    entry_name(name, key);
    snprintf(temporary, sizeof temporary, "%s.tmp-%ld", name, (long)getpid());
    int fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    bool written = write(fd, &h, sizeof h) == sizeof h && write(fd, binary, bytes) == (ssize_t)bytes;
    written &= close(fd) == 0;
    if (!written || renameat(folder, temporary, folder, name) != 0)
        unlinkat(folder, temporary, 0);
}

/* Also one that is being written.  The folder may hold anything else: it is the user's. */
static bool is_entry(const char *name)
{
    return strspn(name, "0123456789abcdef") == 16 && strncmp(name + 16, BEHIND_KEY, strlen(BEHIND_KEY)) == 0;
}

/* The bytes of all entries in the folder, and the name of the one that was not used for longest. */
static off_t survey(DIR *folder, char oldest[256])
{
    off_t total = 0;
    time_t least = 0;
    struct stat s;
    oldest[0] = '\0';
    rewinddir(folder);
    for (struct dirent *e; (e = readdir(folder));) {
        if (!is_entry(e->d_name) || fstatat(dirfd(folder), e->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(s.st_mode))
            continue;
        total += s.st_size;
        if (!oldest[0] || s.st_mtime < least) {
            least = s.st_mtime;
            snprintf(oldest, 256, "%s", e->d_name);
        }
    }
    return total;
}

/* Takes over the descriptor. */
static void remove_oldest(int fd)
{
    char oldest[256];
    DIR *folder = fdopendir(fd);
    if (!folder) {
        close(fd);
        return;
    }
    while (survey(folder, oldest) > MOST_BYTES && unlinkat(fd, oldest, 0) == 0)
        continue;
    closedir(folder);
}

/* What the driver made for the context's first device, whose kind the others share; NULL: it gives nothing. */
static unsigned char *binary_of(const struct device *d, cl_program program, size_t *bytes)
{
    cl_device_id ids[MAX_DEVICES];
    size_t sizes[MAX_DEVICES] = {0};
    unsigned char *binaries[MAX_DEVICES] = {NULL};
    cl_uint n = context_devices(d, ids);
    if (clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, n * sizeof *sizes, sizes, NULL) != CL_SUCCESS)
        return NULL;
    for (cl_uint i = 0; i < n; i++)
        binaries[i] = allocate(sizes[i] + 1, 1);
    cl_int code = clGetProgramInfo(program, CL_PROGRAM_BINARIES, n * sizeof *binaries, binaries, NULL);
    for (cl_uint i = 1; i < n; i++)
        free(binaries[i]);
    *bytes = sizes[0];
    if (code == CL_SUCCESS && *bytes > 0)
        return binaries[0];
    free(binaries[0]);
    return NULL;
}

/* PoCL keeps its kernels itself, and to hand out a binary compiles each a second time, for any work-group size: worth
 * it for a source that stays, not for one that is being edited.  Oclgrind quotes the source, which a binary lacks. */
static bool is_worth_it(const struct device *d, bool edited)
{
    cl_platform_id platform = platform_of(d);
    return is_platform(platform, POCL) ? !edited : !is_platform(platform, "Oclgrind");
}

void keep_program(struct device *d, const struct program_key *key, cl_program program, bool edited)
{
    int folder = is_worth_it(d, edited) ? open_folder() : -1;
    if (folder < 0)
        return;
    size_t bytes;
    unsigned char *binary = binary_of(d, program, &bytes);
    if (binary)
        write_entry(folder, key, binary, bytes);
    free(binary);
    remove_oldest(folder);
}
