/* claims.c - the register of the files that a command reads and writes, so that it destroys none of its own; and no
 * file of another kind.
 *
 * A file is known by its device and inode, so that links lead to the same one.  One that does not exist yet is known by
 * its folder without links, and its name.
 */
#include "file.h"

#include <libgen.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

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

/* ---- what an output may replace ---------------------------------------------------------------------------------- */

/* Of what gzip has packed: its first bytes say it. */
static const struct file_kind *kind_of_packed(const char *path)
{
    char bytes[4096];
    gzFile file = gzopen(path, "rb");
    int n = file ? gzread(file, bytes, sizeof bytes) : 0;
    if (file)
        gzclose(file);
    return n > 0 ? kind_of_bytes(bytes, (size_t)n) : NULL;
}

static bool is_of_kind(const struct file_kind *found, const char *path, enum known_kind kind)
{
    if (found && found->kind == KIND_GZIP && kind == KIND_CHROME) /* which may be packed */
        found = kind_of_packed(path);
    return found && found->kind == kind;
}

void expect_own_kind(const char *who, const char *path, enum known_kind kind, const char *name)
{
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0)
        return;
    const struct file_kind *found = kind_of_file(path);
    if (is_of_kind(found, path, kind))
        return;
    fail(EXIT_USAGE, "%s %s would write over a file that is %s%s: choose another name, or remove it first", who, path,
         found ? found->name : "no ", found ? "" : name);
}

void expect_replaceable(const char *who, const char *path, enum known_kind kind, const char *name)
{
    expect_unlocked(who, path);
    expect_own_kind(who, path, kind, name);
}
