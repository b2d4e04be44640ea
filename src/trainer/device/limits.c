/* limits.c - how much of the host's memory this process may take.
 *
 * A container, or a scheduler's job, may have less than the machine: it is a *control group* with a limit, and the
 * system kills a process that goes beyond it, without a message.  There are two versions of the files that say the
 * limit, both below /sys/fs/cgroup.  A group is limited by the groups around it too, so all up to the root are read:
 *
 *     version 2    /proc/self/cgroup has "0::/job/step"            job/step/memory.max, memory.current
 *     version 1    ... "4:memory:/job/step"    memory/job/step/memory.limit_in_bytes, memory.usage_in_bytes
 *
 * A limit of the address space (ulimit -v) counts as well.
 */
#include "driver.h"
#include "trainer/file/file.h"

#include <sys/resource.h>
#include <unistd.h>

/* Bytes that a driver takes after it has been loaded: PoCL's compiler needs about 90 MiB. */
enum { FOR_DRIVER = 96 << 20 };

/* The number in a file of that folder; `otherwise` when there is no such file or it says "max". */
static size_t number_in(const char *folder, const char *name, size_t otherwise)
{
    char *path = join_path(folder, name);
    unsigned long long value;
    FILE *f = fopen(path, "re");
    free(path);
    if (!f)
        return otherwise;
    bool found = fscanf(f, "%llu", &value) == 1;
    fclose(f);
    if (!found || value >= SIZE_MAX)
        return otherwise;
    return (size_t)value;
}

/* Bytes of files that the system caches in memory for a group.  The group's usage includes them, but the system gives
 * them up when memory is short. */
static size_t file_bytes(const char *folder)
{
    char *path = format_string("%s/memory.stat", folder);
    char name[64];
    unsigned long long value;
    size_t sum = 0;
    FILE *f = fopen(path, "re");
    free(path);
    if (!f)
        return 0;
    while (fscanf(f, "%63s %llu", name, &value) == 2) {
        if (strcmp(name, "inactive_file") == 0 || strcmp(name, "active_file") == 0)
            sum += (size_t)value;
    }
    fclose(f);
    return sum;
}

/* Bytes that a group and those around it leave; SIZE_MAX: none of them has a limit.  `group` is changed: it loses its
 * last folder again and again. */
static size_t left_in(const char *root, char *group, const char *limit_name, const char *usage_name)
{
    size_t least = SIZE_MAX;
    for (;;) {
        char *folder = format_string("%s%s", root, group);
        size_t limit = number_in(folder, limit_name, SIZE_MAX);
        size_t used = number_in(folder, usage_name, 0);
        size_t files = file_bytes(folder);
        used -= MIN(used, files);
        if (limit < SIZE_MAX)
            least = MIN(least, limit - MIN(limit, used));
        free(folder);
        char *slash = strrchr(group, '/');
        if (!slash)
            return least;
        *slash = '\0';
    }
}

/* Bytes that are left in the group which a line of /proc/self/cgroup names, "4:memory:/job/step".  `line` is
 * changed. */
static size_t left_by_line(char *line, const char *root)
{
    line[strcspn(line, "\n")] = '\0';
    char *kinds = strchr(line, ':');
    char *group = kinds ? strchr(kinds + 1, ':') : NULL;
    if (!group)
        return SIZE_MAX;
    *kinds = '\0';
    kinds++;
    *group = '\0';
    group++;
    if (strcmp(line, "0") == 0 && *kinds == '\0') /* version 2 */
        return left_in(root, group, "memory.max", "memory.current");
    if (!strstr(kinds, "memory"))
        return SIZE_MAX;
    char *memory_root = format_string("%s/memory", root);
    size_t left = left_in(memory_root, group, "memory.limit_in_bytes", "memory.usage_in_bytes");
    free(memory_root);
    return left;
}

size_t left_by_groups(const char *groups, const char *root)
{
    char line[4096];
    size_t least = SIZE_MAX;
    FILE *f = fopen(groups, "re");
    if (!f)
        return SIZE_MAX;
    while (fgets(line, sizeof line, f)) {
        size_t left = left_by_line(line, root);
        least = MIN(least, left);
    }
    fclose(f);
    return least;
}

/* Bytes of the address space, less those that are mapped already; SIZE_MAX: there is no limit. */
static size_t left_of_addresses(void)
{
    struct rlimit limit;
    long page = sysconf(_SC_PAGESIZE);
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || page <= 0)
        return SIZE_MAX;
    size_t mapped = number_in("/proc/self", "statm", 0) * (size_t)page;
    return (size_t)limit.rlim_cur - MIN((size_t)limit.rlim_cur, mapped);
}

size_t physical_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages <= 0)
        return SIZE_MAX / 4;
    return (size_t)pages * (size_t)page;
}

size_t memory_left_by_limits(void)
{
    size_t in_groups = left_by_groups("/proc/self/cgroup", "/sys/fs/cgroup");
    size_t addresses = left_of_addresses();
    size_t left = MIN(in_groups, addresses);
    if (left >= NO_LIMIT)
        return NO_LIMIT;
    return left - MIN(left, (size_t)FOR_DRIVER);
}
