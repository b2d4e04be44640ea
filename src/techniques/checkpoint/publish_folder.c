/* publish_folder.c - folders appear whole or not at all, as files do (file/publish.c): written beside, then renamed.
 *
 *     DIR/step-30.tmp-1234    is written; a kill leaves it, and the next run removes it
 *     DIR/step-30.new         is whole, and waits until the old DIR/step-30 is gone
 *     DIR/step-30             is whole, and has its name
 *
 * Where the system can exchange two names in one go, or where there is no old folder, there is no `.new`.
 */
#include "files.h"
#include "trainer/model_files/model_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#define BESIDE ".new"
#define OLD ".old"

/* Removes the temporary folder, where the program fails.  Runs in a signal handler too. */
static void remove_folder_written(void *argument)
{
    struct folder *folder = argument;
    for (size_t i = 0; i < folder->n; i++)
        unlink(folder->files[i]);
    rmdir(folder->temporary);
}

/* A folder is to be removed, and still has files that are not ours.  It stays, as `<folder>.kept-<pid>`. */
static void keep_rest(const char *path)
{
    const char *name = last_part(path);
    const char *end = strstr(name, OLD TEMPORARY); /* the name's end without what we have put there */
    if (!end)
        end = strstr(name, TEMPORARY);
    if (!end)
        end = name + strlen(name);
    char *folder = format_string("%.*s", (int)(end - path), path);
    char *aside = format_string("%s.kept-%ld", folder, (long)getpid());
    const char *rest = rename(path, aside) == 0 ? aside : path;
    warn("%s held more than yard had written there: the rest is in %s now", folder, rest);
    free(folder);
    free(aside);
}

/* Removes this file of the folder if it has a name that yard gives. */
static void remove_ours(DIR *entries, const char *name)
{
    static const char *const ours[] = {MANIFEST,
                                       "rank-[0-9]*.safetensors",
                                       MODEL_FILE,
                                       "config.json",
                                       "tokenizer.json",
                                       "tokenizer_config.json",
                                       "*" TEMPORARY "[0-9]*"};
    for (size_t i = 0; i < COUNT(ours); i++)
        if (fnmatch(ours[i], name, 0) == 0)
            unlinkat(dirfd(entries), name, 0);
}

/* Removes a folder - a checkpoint, an export or a temporary of one - and the files that yard writes into such a folder.
 * The folder that a link leads to is somebody else's: only the link is removed. */
static void remove_in_place(const char *path)
{
    struct stat status;
    if (lstat(path, &status) == 0 && S_ISLNK(status.st_mode)) {
        unlink(path);
        return;
    }
    DIR *entries = opendir(path);
    const struct dirent *found;
    while (entries && (found = readdir(entries)))
        remove_ours(entries, found->d_name);
    if (entries)
        closedir(entries);
    if (rmdir(path) != 0 && (errno == ENOTEMPTY || errno == EEXIST))
        keep_rest(path);
}

void remove_stray_folders(const char *parent, const char *begin)
{
    DIR *entries = opendir(parent);
    const struct dirent *found;
    while (entries && (found = readdir(entries))) {
        if (!is_stray(found->d_name, begin, STRAY_BEGINS))
            continue;
        char *path = join_path(parent, found->d_name);
        remove_in_place(path);
        free(path);
    }
    if (entries)
        closedir(entries);
}

void remove_folder(const char *path)
{
    char *aside = format_string("%s" OLD TEMPORARY "%ld", path, (long)getpid());
    if (rename(path, aside) == 0)
        remove_in_place(aside);
    else if (errno != ENOENT)
        warn("cannot remove the folder %s: %s", path, strerror(errno));
    free(aside);
}

struct folder *open_folder(const char *path, size_t most_files)
{
    struct folder *folder = allocate(1, sizeof *folder);
    folder->path = copy_string(path);
    for (size_t n = strlen(path); n > 1 && folder->path[n - 1] == '/'; n--)
        folder->path[n - 1] = '\0';
    if (access(folder->path, F_OK) == 0 && !is_folder(folder->path))
        fail(EXIT_IO, "cannot make the folder %s: a file of that name is in the way; choose another name",
             folder->path);
    folder->temporary = format_string("%s" TEMPORARY "%ld", folder->path, (long)getpid());
    folder->cap = most_files;
    folder->files = allocate(most_files, sizeof *folder->files);
    remove_in_place(folder->temporary); /* an earlier attempt of this process may have failed and left it */
    folder->cleanup = (struct cleanup){.run = remove_folder_written, .argument = folder};
    on_fail(&folder->cleanup);
    if (mkdir(folder->temporary, 0777) != 0)
        fail(EXIT_IO,
             "cannot make the folder %s: %s; does the folder exist in which it would lie, and may you write there?",
             folder->path, strerror(errno));
    return folder;
}

const char *file_in(struct folder *folder, const char *name)
{
    CHECK(folder->n < folder->cap, "%s: more than %zu files", folder->path, folder->cap);
    char *path = join_path(folder->temporary, name);
    folder->files[folder->n++] = path;
    return path;
}

/* The whole folder `beside` takes the place of the folder `path`, after `beside` is on the disk for sure. */
static bool take_place(const char *beside, const char *path)
{
    must(sync_folder_of(beside));
    remove_folder(path);
    return rename(beside, path) == 0;
}

/* The finished folder takes the place of an old one, which then has the temporary name or is removed. */
static bool replace_folder(const struct folder *folder, const char *beside)
{
#ifdef RENAME_EXCHANGE
    if (renameat2(AT_FDCWD, folder->temporary, AT_FDCWD, folder->path, RENAME_EXCHANGE) == 0)
        return true;
#endif
    /* The system cannot exchange them (NFS).  At each moment one of two names has a whole folder. */
    return rename(folder->temporary, beside) == 0 && take_place(beside, folder->path);
}

static void free_folder(struct folder *folder)
{
    for (size_t i = 0; i < folder->n; i++)
        free(folder->files[i]);
    free(folder->files);
    free(folder->path);
    free(folder->temporary);
    free(folder);
}

void publish_folder(struct folder *folder)
{
    char *beside = format_string("%s" BESIDE, folder->path);
    if (folder->n)
        must(sync_folder_of(folder->files[0]));
    /* A process that was killed may have left it.  It is whole, and takes its place first. */
    if (exists(beside) && !take_place(beside, folder->path))
        fail(EXIT_IO, "cannot rename the folder %s, which an earlier run has left, to %s: %s", beside, folder->path,
             strerror(errno));
    bool replaces = exists(folder->path);
    expect_unlocked("cannot write the folder", folder->path); /* a run may have made it in between */
    bool done = replaces ? replace_folder(folder, beside) : rename(folder->temporary, folder->path) == 0;
    if (!done)
        fail(EXIT_IO, "cannot rename the finished folder %s to %s: %s", folder->temporary, folder->path,
             strerror(errno));
    must(sync_folder_of(folder->path));
    if (replaces)
        remove_in_place(folder->temporary);
    cancel_on_fail(&folder->cleanup);
    free(beside);
    free_folder(folder);
}
