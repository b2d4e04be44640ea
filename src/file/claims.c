/* claims.c - the register of the files that a command reads and writes, so that it destroys none of its own.
 *
 * A file is known by its device and inode, so that links lead to the same one.  One that does not exist yet is known by
 * its folder without links, and its name.
 */
#include "file.h"

#include <libgen.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

static struct claim {
    char *who, *path, *plain; /* plain: its folder without links, and its name */
    struct stat status;       /* st_mode 0: there is no such file */
    bool written;
    const char *may_replace; /* the reader whose file this output may be, NULL: nobody's */
} * claims;
static size_t n_claims, cap_claims;

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
    if (!*path)
        fail(EXIT_USAGE, "%s takes a path, not \"\"", who);
    struct claim c = {copy_string(who), copy_string(path), NULL, {0}, written, may_replace};
    char folder[PATH_MAX], *copies[] = {copy_string(path), copy_string(path)};
    c.plain = realpath(dirname(copies[0]), folder) ? format_string("%s/%s", folder, basename(copies[1]))
                                                   : copy_string(path); /* the folder is still to be made */
    free(copies[0]), free(copies[1]);
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
