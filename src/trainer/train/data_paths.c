/* data_paths.c - which files --data and --val-data name, and of which format they are.
 *
 *     --data self                 no file: the program's own sources
 *     --data NAME, NAME:FILE      no file: a text that a folder makes (struct text_maker)
 *     --data PATH                 a file, all files of a folder, or those that match a pattern; all of one format
 */
#include "open_data.h"
#include "trainer/base/module.h"
#include "trainer/file/file.h"

#include <glob.h>
#include <unistd.h>

const char *const format_name[] = {
    [FILE_TEXT] = "text", [FILE_SHARD] = "an llm.c token shard", [FILE_HEADERLESS] = "headerless 16-bit tokens"};

/* ---- formats ---------------------------------------------------------------------------------------------------- */

static enum data_format format_of(const char *path)
{
    if (has_magic(path, LLMC_TOKENS_MAGIC))
        return FILE_SHARD;
    return ends_with(path, ".bin") ? FILE_HEADERLESS : FILE_TEXT;
}

/* Refuses a file that says of itself that it is something else than text or tokens.  A text that is packed with gzip is
 * read only if it is named itself: in a folder it may lie beside the same text unpacked. */
static void refuse_foreign(const char *path, enum data_format format, bool named)
{
    const struct file_kind *found = kind_of_file(path);
    const char *other = format == FILE_TEXT ? llmc_kind(path) : NULL;
    if (found && found->kind == KIND_GZIP && format == FILE_TEXT) {
        if (named)
            return;
        fail(EXIT_USAGE, "%s is %s: a folder or pattern takes none, so name it itself, or unpack it with gunzip first",
             path, found->name);
    }
    if (found && found->kind == KIND_SHORT_MARK && format == FILE_HEADERLESS)
        return;
    if (is_foreign(found))
        fail(EXIT_USAGE, "%s is %s, not %s to train on: %s%s", path, found->name,
             format == FILE_TEXT ? "a text" : "token numbers", found->way,
             named ? "" : "; a quoted pattern, such as 'folder/*.txt', takes what you mean");
    if (other)
        fail(EXIT_FAILED, "%s is %s, not a text to train on", path, other);
}

/* ---- a folder of nanoGPT's -------------------------------------------------------------------------------------- */

static char *file_of(const char *folder, const char *name)
{
    return format_string(ends_with(folder, "/") ? "%s%s" : "%s/%s", folder, name);
}

static bool holds_file(const char *folder, const char *name)
{
    char *path = file_of(folder, name);
    bool there = access(path, F_OK) == 0 && !is_folder(path);
    free(path);
    return there;
}

/* nanoGPT's scripts write train.bin and val.bin into a folder, beside what they were made from. */
static bool is_nanogpt(const char *given)
{
    return is_folder(given) && holds_file(given, "train.bin") && holds_file(given, "val.bin");
}

struct data_options name_files(struct dataset *d, const struct data_options *o)
{
    struct data_options named = *o;
    const char *val_folder = o->val_data && is_nanogpt(o->val_data) ? o->val_data : NULL;
    if (o->path && is_nanogpt(o->path)) {
        d->own_path[0] = file_of(o->path, "train.bin");
        named.path = d->own_path[0];
        if (!o->val_data)
            val_folder = o->path;
    }
    if (val_folder) {
        d->own_path[1] = file_of(val_folder, "val.bin");
        named.val_data = d->own_path[1];
    }
    if (d->own_path[0])
        note("data: %s is laid out as nanoGPT's: %s to train, %s to validate; its other files are not read", o->path,
             named.path, o->val_data ? o->val_data : named.val_data);
    return named;
}

/* A pattern such as '*.bin' takes all of them, also what nanoGPT keeps for validation. */
static void warn_of_validation(const struct files *f)
{
    const char *train = NULL, *val = NULL;
    for (size_t i = 0; i < f->n; i++) {
        if (ends_with(f->paths[i], "/train.bin"))
            train = f->paths[i];
        if (ends_with(f->paths[i], "/val.bin"))
            val = f->paths[i];
    }
    if (train && val)
        warn("%s takes %s too, which is trained on; to validate on it: --data %s --val-data %s", f->given, val, train,
             val);
}

/* ---- texts that are made ---------------------------------------------------------------------------------------- */

/* The maker of --data NAME or NAME:FILE; NULL: `given` is a path. */
static const struct text_maker *find_maker(const char *given)
{
    for (size_t i = 0; i < n_modules; i++) {
        const struct text_maker *maker = modules[i]->text;
        if (!maker)
            continue;
        size_t length = strlen(maker->name);
        bool begins = strncmp(given, maker->name, length) == 0;
        if (begins && (given[length] == '\0' || given[length] == ':'))
            return maker;
    }
    return NULL;
}

const char *default_data(void)
{
    for (size_t i = 0; i < n_modules; i++)
        if (modules[i]->text)
            return modules[i]->text->name;
    return "self";
}

const char *file_of_data(const char *given)
{
    if (strcmp(given, "self") == 0)
        return NULL;
    if (!find_maker(given))
        return given;
    const char *colon = strchr(given, ':');
    return colon ? colon + 1 : NULL;
}

/* ---- finding ---------------------------------------------------------------------------------------------------- */

static void add_path(struct files *f, const char *path) { *APPEND(f->paths, f->n, f->cap) = copy_string(path); }

/* Adds the files that match the pattern.  Returns how many folders do, which are not read. */
static size_t match_files(struct files *f, const char *pattern)
{
    glob_t found = {0};
    size_t folders = 0;
    glob(pattern, 0, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (is_folder(found.gl_pathv[i]))
            folders++;
        else
            add_path(f, found.gl_pathv[i]);
    }
    globfree(&found);
    return folders;
}

/* named: the user has named the one file itself. */
static void check_files(struct files *f, bool named)
{
    f->format = format_of(f->paths[0]);
    for (size_t i = 0; i < f->n; i++) {
        enum data_format format = format_of(f->paths[i]);
        claim_input("--data", f->paths[i]);
        refuse_foreign(f->paths[i], format, named);
        if (format != f->format)
            fail(EXIT_USAGE,
                 "%s mixes kinds of data: %s is %s, %s is %s; name the files of one kind, such as '%s/*.bin'", f->given,
                 f->paths[0], format_name[f->format], f->paths[i], format_name[format], f->given);
    }
}

/* A file of that very name wins over a pattern, so that "a[1].txt" can be read.  A folder stands for the visible files
 * in it, but not for those of folders inside it. */
static void find_paths(struct files *f)
{
    const char *given = f->given;
    const bool folder = is_folder(given);
    const bool is_file = !folder && access(given, F_OK) == 0;
    char *pattern = folder ? format_string("%s/*", given) : copy_string(given);
    size_t folders = 0;
    if (is_file)
        add_path(f, given);
    else
        folders = match_files(f, pattern);
    if (folder && f->n > 0 && folders > 0)
        warn("%s has %zu folder%s, whose files are not read; the quoted pattern '%s/*/*' takes them", given, folders,
             folders == 1 ? "" : "s", given);
    if (f->n == 0 && is_left_out(given))
        fail(EXIT_USAGE, "--data %s: this yard was built without%s", given, left_out);
    if (f->n == 0)
        fail(EXIT_IO,
             "no file matches %s; expected a file, a folder with files or a pattern such as 'data/*.txt'; of "
             "a folder the files are read, but not those of folders inside it",
             pattern);
    check_files(f, is_file);
    if (!is_file && !folder)
        warn_of_validation(f);
    free(pattern);
}

struct files find_files(const char *given)
{
    struct files f = {.given = given, .maker = find_maker(given)};
    if (f.maker)
        f.made = f.maker->open(file_of_data(given));
    if (f.maker || strcmp(given, "self") == 0)
        *APPEND(f.paths, f.n, f.cap) = NULL;
    else
        find_paths(&f);
    return f;
}

void free_files(struct files *f)
{
    for (size_t i = 0; i < f->n; i++)
        free(f->paths[i]);
    free(f->paths);
    if (f->maker)
        f->maker->close(f->made);
}
