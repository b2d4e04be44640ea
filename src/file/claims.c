/* claims.c - the register of the files that a command reads and writes, so that it destroys none of its own.
 *
 * A file is known by its device and inode, so that links lead to the same one.  A file that does not exist yet is known
 * by the nearest folder that does, and its path from there.
 */
#include "file.h"

#include <libgen.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_LINKS = 40 }; /* followed one after another, as the system does */

struct identity {
    dev_t device;
    ino_t inode;
    char *below; /* path below that folder; "" when the file itself exists */
    bool shared; /* a terminal or /dev/null: many may write there */
};
static struct claim {
    char *who, *path;
    bool written;
    const char *may_replace; /* the reader whose file this output may be, NULL: nobody's */
    struct identity file;
} * claims;
static size_t n_claims, cap_claims;

static struct identity identify(const char *path, int links);

/* Where the symbolic link `path` leads, or NULL when it is none.  The caller frees it. */
static char *link_target(const char *path)
{
    char target[PATH_MAX];
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n <= 0)
        return NULL;
    target[n] = '\0';
    const char *slash = strrchr(path, '/');
    return target[0] == '/' || !slash ? copy_string(target)
                                      : format_string("%.*s/%s", (int)(slash - path), path, target);
}

/* The identity of the folder that holds `path`, with the last name added. */
static struct identity identify_new(const char *path, int links)
{
    char *folder = copy_string(path), *copy = copy_string(path), *name = basename(copy);
    struct identity file = identify(dirname(folder), links);
    char *last = strrchr(file.below, '/');
    if (strcmp(name, "..") == 0 && last) /* of a folder that is still to be made */
        *last = '\0';
    else if (strcmp(name, ".") != 0)
        append_text(&file.below, "/%s", name);
    free(folder), free(copy);
    return file;
}

static struct identity identify(const char *path, int links)
{
    struct stat status;
    if (stat(path, &status) == 0)
        return (struct identity){status.st_dev, status.st_ino, copy_string(""),
                                 !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)};
    if (strcmp(path, ".") == 0 || strcmp(path, "/") == 0) /* a folder that was removed under us */
        return (struct identity){.below = copy_string(path)};
    char *target = links < MAX_LINKS ? link_target(path) : NULL;
    struct identity file = target ? identify(target, links + 1) : identify_new(path, links);
    free(target);
    return file;
}

static bool same_file(const struct identity *a, const struct identity *b)
{
    return a->device == b->device && a->inode == b->inode && strcmp(a->below, b->below) == 0 && !a->shared;
}

static void add_claim(const char *who, const char *path, bool written, const char *may_replace)
{
    if (!*path)
        fail(EXIT_USAGE, "%s takes a path, not \"\"", who);
    struct claim c = {copy_string(who), copy_string(path), written, may_replace, identify(path, 0)};
    for (size_t i = 0; i < n_claims; i++) {
        const struct claim *writer = written ? &c : &claims[i], *other = written ? &claims[i] : &c;
        bool allowed = !other->written && writer->may_replace && strcmp(writer->may_replace, other->who) == 0;
        if (writer->written && same_file(&c.file, &claims[i].file) && !allowed)
            fail(EXIT_USAGE, "%s %s would overwrite what %s %s: choose another path", writer->who, writer->path,
                 other->who, other->written ? "writes" : "reads");
    }
    *APPEND(claims, n_claims, cap_claims) = c;
}

void begin_claims(void)
{
    for (size_t i = 0; i < n_claims; i++)
        free(claims[i].who), free(claims[i].path), free(claims[i].file.below);
    n_claims = 0;
}

void claim_input(const char *who, const char *path) { add_claim(who, path, false, NULL); }

void claim_output(const char *who, const char *path, const char *may_replace)
{
    add_claim(who, path, true, may_replace);
}
