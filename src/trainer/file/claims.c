/* claims.c - the register of the files that a command reads and writes.  It prevents that an output destroys another
 * file of the same command, or a file of another kind.
 *
 * A file is identified by its device and inode, so that several links to it count as one file.  A file that does not
 * exist yet is identified by its folder's path without links, and its name.
 */
#include "file.h"

#include <libgen.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static struct claim {
    char *claimant; /* what reads or writes the file: "--log" */
    char *path;
    char *plain;        /* the path of its folder without links, and its name */
    struct stat status; /* st_mode 0: there is no such file */
    bool written;
    const char *may_replace; /* the claimant of an input that this output may replace; NULL: it may replace none */
} * claims;
static size_t n_claims, cap_claims;

/* Two outputs may be the same terminal or /dev/null: only regular files and folders are compared. */
static bool same_file(const struct claim *a, const struct claim *b)
{
    const struct stat *s = &a->status, *t = &b->status;
    if (!s->st_mode || !t->st_mode)
        return strcmp(a->plain, b->plain) == 0;
    bool counts = S_ISREG(s->st_mode) || S_ISDIR(s->st_mode);
    return counts && s->st_dev == t->st_dev && s->st_ino == t->st_ino;
}

/* dirname() and basename() may write to the path that they are given, so each gets a copy. */
static char *plain_path(const char *path)
{
    char folder[PATH_MAX];
    char *for_folder = copy_string(path);
    char *for_name = copy_string(path);
    char *plain = NULL;
    if (realpath(dirname(for_folder), folder))
        plain = join_path(folder, basename(for_name));
    else /* the folder does not exist yet */
        plain = copy_string(path);
    free(for_folder);
    free(for_name);
    return plain;
}

/* Ends the program when `writer` writes the file of `other` without permission. */
static void expect_no_overwriting(const struct claim *writer, const struct claim *other)
{
    if (!writer->written || !same_file(writer, other))
        return;
    if (!other->written && writer->may_replace && strcmp(writer->may_replace, other->claimant) == 0)
        return;
    fail(EXIT_USAGE, "%s %s would overwrite what %s %s: choose another path", writer->claimant, writer->path,
         other->claimant, other->written ? "writes" : "reads");
}

enum file_use { READS, WRITES };

/* Adds the claim, or ends the program if an earlier one excludes it.  may_replace: see claim_output(). */
static void add_claim(const char *claimant, const char *path, enum file_use use, const char *may_replace)
{
    if (!*path)
        fail(EXIT_USAGE, "%s takes a path, not \"\"", claimant);
    struct claim claim = {.claimant = copy_string(claimant),
                          .path = copy_string(path),
                          .plain = plain_path(path),
                          .written = use == WRITES,
                          .may_replace = may_replace};
    if (stat(path, &claim.status) != 0)
        claim.status.st_mode = 0;
    for (size_t i = 0; i < n_claims; i++) {
        if (use == WRITES)
            expect_no_overwriting(&claim, &claims[i]);
        else
            expect_no_overwriting(&claims[i], &claim);
    }
    GROW(claims, cap_claims, n_claims + 1);
    claims[n_claims++] = claim;
}

void begin_claims(void)
{
    for (size_t i = 0; i < n_claims; i++) {
        free(claims[i].claimant);
        free(claims[i].path);
        free(claims[i].plain);
    }
    n_claims = 0;
}

void claim_input(const char *claimant, const char *path) { add_claim(claimant, path, READS, NULL); }

void claim_output(const char *claimant, const char *path, const char *may_replace)
{
    add_claim(claimant, path, WRITES, may_replace);
}

/* ---- what an output may replace ---------------------------------------------------------------------------------- */

/* The kind of the file that was packed with gzip, by its first bytes; NULL: they say nothing. */
static const struct file_kind *kind_of_packed(const char *path)
{
    char bytes[4096];
    gzFile file = gzopen(path, "rb");
    if (!file)
        return NULL;
    int n = gzread(file, bytes, sizeof bytes);
    gzclose(file);
    if (n <= 0)
        return NULL;
    return kind_of_bytes(bytes, (size_t)n);
}

static bool is_of_kind(const struct file_kind *found, const char *path, enum known_kind kind)
{
    if (found && found->kind == KIND_GZIP && kind == KIND_CHROME) /* a trace for browsers may be packed */
        found = kind_of_packed(path);
    return found && found->kind == kind;
}

void expect_own_kind(const char *claimant, const char *path, enum known_kind kind, const char *name)
{
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0)
        return;
    const struct file_kind *found = kind_of_file(path);
    if (is_of_kind(found, path, kind))
        return;
    fail(EXIT_USAGE, "%s %s would write over a file that is %s%s: choose another name, or remove that file first",
         claimant, path, found ? found->name : "not a ", found ? "" : name);
}

void expect_replaceable(const char *claimant, const char *path, enum known_kind kind, const char *name)
{
    expect_unlocked(claimant, path);
    expect_own_kind(claimant, path, kind, name);
}
