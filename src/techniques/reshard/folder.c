/* folder.c - folders that appear whole or not at all, as files do (file/publish.c): written beside, then renamed. */
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#define BESIDE ".new"
#define OLD ".old"

/* In a signal handler too. */
static void remove_folder_written(void *folder)
{
    struct folder *f = folder;
    for (size_t i = 0; i < f->n; i++)
        unlink(f->files[i]);
    rmdir(f->temporary);
}

/* What somebody else has put into a folder that goes stays beside, as `<folder>.kept-<pid>`. */
static void keep_rest(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *end = strstr(name, OLD TEMPORARY);
    end = end ? end : strstr(name, TEMPORARY);
    char *folder = format_string("%.*s", (int)(end ? end - path : (ptrdiff_t)strlen(path)), path);
    char *kept = format_string("%s.kept-%ld", folder, (long)getpid());
    if (rename(path, kept) == 0)
        warn("%s held more than yard had written there: the rest is in %s now", folder, kept);
    free(folder), free(kept);
}

/* What we may have written into a folder, of a checkpoint or an export or a temporary of one, and the folder.  What a
 * link leads to is somebody else's: only the link goes. */
static void remove_files(const char *path)
{
    static const char *const ours[] = {"manifest.json",       "rank-[0-9]*.safetensors", "model.safetensors",
                                       "config.json",         "tokenizer.json",          "tokenizer_config.json",
                                       "*" TEMPORARY "[0-9]*"};
    struct stat status;
    if (lstat(path, &status) == 0 && S_ISLNK(status.st_mode)) {
        unlink(path);
        return;
    }
    DIR *entries = opendir(path);
    for (const struct dirent *e; entries && (e = readdir(entries));)
        for (size_t i = 0; i < COUNT(ours); i++)
            if (fnmatch(ours[i], e->d_name, 0) == 0)
                unlinkat(dirfd(entries), e->d_name, 0);
    if (entries)
        closedir(entries);
    if (rmdir(path) != 0 && (errno == ENOTEMPTY || errno == EEXIST))
        keep_rest(path);
}

void remove_stray_folders(const char *parent, const char *begin)
{
    DIR *entries = opendir(parent);
    for (const struct dirent *e; entries && (e = readdir(entries));) {
        if (!is_stray(e->d_name, begin, true))
            continue;
        char *path = format_string("%s/%s", parent, e->d_name);
        remove_files(path);
        free(path);
    }
    if (entries)
        closedir(entries);
}

void remove_folder(const char *path)
{
    char *aside = format_string("%s" OLD TEMPORARY "%ld", path, (long)getpid());
    if (rename(path, aside) == 0)
        remove_files(aside);
    free(aside);
}

struct folder *open_folder(const char *path, size_t most_files)
{
    struct folder *f = allocate(1, sizeof *f);
    f->path = copy_string(path);
    for (size_t n = strlen(path); n > 1 && f->path[n - 1] == '/'; n--)
        f->path[n - 1] = '\0';
    if (access(f->path, F_OK) == 0 && !is_folder(f->path))
        fail(EXIT_IO, "cannot make the folder %s: a file of that name is in the way", f->path);
    f->temporary = format_string("%s" TEMPORARY "%ld", f->path, (long)getpid());
    f->cap = most_files;
    f->files = allocate(most_files, sizeof *f->files);
    remove_files(f->temporary); /* of an attempt of ours that failed */
    f->cleanup = (struct cleanup){.run = remove_folder_written, .argument = f};
    on_fail(&f->cleanup);
    if (mkdir(f->temporary, 0777) != 0)
        fail(EXIT_IO, "cannot make the folder %s: %s", f->temporary, strerror(errno));
    return f;
}

const char *file_in(struct folder *f, const char *name)
{
    CHECK(f->n < f->cap, "%s: more than %zu files", f->path, f->cap);
    f->files[f->n] = format_string("%s/%s", f->temporary, name);
    return f->files[f->n++];
}

/* The folder that waits beside, for sure, takes the other's place. */
static int take_place(const char *beside, const char *path)
{
    sync_folder_of(beside);
    remove_folder(path);
    return rename(beside, path);
}

void publish_folder(struct folder *f)
{
    struct stat status; /* of a link itself: one that leads nowhere is there */
    char *beside = format_string("%s" BESIDE, f->path);
    if (f->n)
        sync_folder_of(f->files[0]);
    if (lstat(beside, &status) == 0) /* whole, left by a process that was killed: it takes its place first */
        take_place(beside, f->path);
    bool there = lstat(f->path, &status) == 0, done = false;
    expect_unlocked("cannot write the folder", f->path); /* somebody may have made it in between */
#ifdef RENAME_EXCHANGE
    done = there && renameat2(AT_FDCWD, f->temporary, AT_FDCWD, f->path, RENAME_EXCHANGE) == 0;
#endif
    if (!done && there) /* where the system cannot do that (NFS): at each moment one of two names has a whole folder */
        done = rename(f->temporary, beside) == 0 && take_place(beside, f->path) == 0;
    else if (!done)
        done = rename(f->temporary, f->path) == 0;
    if (!done)
        fail(EXIT_IO, "cannot rename the finished folder %s to %s: %s", f->temporary, f->path, strerror(errno));
    sync_folder_of(f->path);
    if (there)
        remove_files(f->temporary);
    cancel_on_fail(&f->cleanup);
    for (size_t i = 0; i < f->n; i++)
        free(f->files[i]);
    free(beside), free(f->files), free(f->path), free(f->temporary), free(f);
}
