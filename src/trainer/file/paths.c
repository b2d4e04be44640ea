/* paths.c - what is at a path, and the folders on the way there. */
#include "file.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

bool exists(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0;
}

/* Makes one folder, whose parent is there. */
static void make_one_folder(const char *path)
{
    if (mkdir(path, 0777) == 0)
        return;
    int reason = errno;
    if (is_folder(path))
        return;
    bool in_the_way = reason == EEXIST || reason == ENOTDIR;
    if (in_the_way)
        fail(EXIT_IO, "cannot make the folder %s: a file of that name is in the way", path);
    fail(EXIT_IO, "cannot make the folder %s: %s; may folders be made there?", path, strerror(reason));
}

void make_folder(const char *path)
{
    size_t n = strlen(path);
    char *part = copy_string(path);
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        part[i] = '\0';
        make_one_folder(part);
        part[i] = path[i];
    }
    free(part);
}

char *behind_links(const char *path)
{
    char real[PATH_MAX];
    if (access(path, F_OK) != 0)
        return copy_string(path);
    if (!realpath(path, real))
        fail(EXIT_IO, "cannot write %s: this link leads to a file without a name; choose another name", path);
    return copy_string(real);
}

char *join_path(const char *folder, const char *name)
{
    return format_string(ends_with(folder, "/") ? "%s%s" : "%s/%s", folder, name);
}

char *file_beside(const char *path, const char *name)
{
    char *copy = copy_string(path);
    char *result = join_path(dirname(copy), name);
    free(copy);
    return result;
}
