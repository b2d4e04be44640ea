/* claims.c - the register of the files that a command reads and writes, so that it destroys none of its own.
 *
 * A file is known by its device and inode, so that links lead to the same one.  One that does not exist yet is known by
 * its path without links.
 */
#include "file.h"

#include <libgen.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

static struct claim {
    char *who, *path, *plain; /* plain: the path without links */
    struct stat status;       /* st_mode 0: there is no such file */
    bool written;
    const char *may_replace; /* the reader whose file this output may be, NULL: nobody's */
} * claims;
static size_t n_claims, cap_claims;

/* `path` without links, "." and "..": realpath() for what is still to be made.  The caller frees it. */
static char *plain_path(const char *path, int links)
{
    char text[PATH_MAX] = "";
    if (realpath(path, text) || strcmp(path, ".") == 0 || strcmp(path, "/") == 0) /* (a folder removed under us) */
        return copy_string(text);
    char *copies[] = {copy_string(path), copy_string(path)}, *name = basename(copies[1]);
    char *plain = plain_path(dirname(copies[0]), links), *folder = plain;
    ssize_t n = links ? readlink(path, text, sizeof text - 1) : -1;
    if (n > 0) {
        text[n] = '\0';
        char *target = text[0] == '/' ? copy_string(text) : format_string("%s/%s", folder, text);
        plain = plain_path(target, links - 1);
        free(target), free(folder);
    } else if (strcmp(name, "..") == 0 && strchr(folder, '/')) /* of a folder that is still to be made */
        *strrchr(folder, '/') = '\0';
    else if (strcmp(name, ".") != 0)
        append_text(&plain, "/%s", name);
    free(copies[0]), free(copies[1]);
    return plain;
}

/* Many may write to a terminal or /dev/null. */
static bool same_file(const struct claim *a, const struct claim *b)
{
    const struct stat *s = &a->status, *t = &b->status;
    if (s->st_mode && t->st_mode)
        return s->st_dev == t->st_dev && s->st_ino == t->st_ino && (S_ISREG(s->st_mode) || S_ISDIR(s->st_mode));
    return strcmp(a->plain, b->plain) == 0;
}

static void add_claim(const char *who, const char *path, bool written, const char *may_replace)
{
    enum { MAX_LINKS = 40 }; /* followed one after another, as the system does */
    if (!*path)
        fail(EXIT_USAGE, "%s takes a path, not \"\"", who);
    struct claim c = {copy_string(who), copy_string(path), plain_path(path, MAX_LINKS), {0}, written, may_replace};
    if (stat(path, &c.status) != 0)
        c.status.st_mode = 0;
    for (size_t i = 0; i < n_claims; i++) {
        const struct claim *writer = written ? &c : &claims[i], *other = written ? &claims[i] : &c;
        bool allowed = !other->written && writer->may_replace && strcmp(writer->may_replace, other->who) == 0;
        if (writer->written && same_file(&c, &claims[i]) && !allowed)
            fail(EXIT_USAGE, "%s %s would overwrite what %s %s: choose another path", writer->who, writer->path,
                 other->who, other->written ? "writes" : "reads");
    }
    *APPEND(claims, n_claims, cap_claims) = c;
}

void begin_claims(void)
{
    for (size_t i = 0; i < n_claims; i++)
        free(claims[i].who), free(claims[i].path), free(claims[i].plain);
    n_claims = 0;
}

void claim_input(const char *who, const char *path) { add_claim(who, path, false, NULL); }

void claim_output(const char *who, const char *path, const char *may_replace)
{
    add_claim(who, path, true, may_replace);
}
