/* data_paths.c - which files --data and --val-data name, and of which format they are.
 *
 *     --data self                 no file: the program's own sources
 *     --data NAME, NAME:FILE      no file: a text that a folder makes (struct text_maker)
 *     --data PATH                 a file, all files of a folder, or those that match a pattern; all of one format
 */
#include "data_parts.h"
#include "trainer/base/additions.h"
#include "trainer/file/file.h"

#include <glob.h>
#include <unistd.h>

const char *const format_name[] = {
    [FILE_TEXT] = "text", [FILE_SHARD] = "an llm.c token shard", [FILE_HEADERLESS] = "headerless 16-bit tokens"};

/* ---- formats ----------------------------------------------------------------------------------------------------- */

static enum data_format find_format(const char *path)
{
    if (has_magic(path, LLMC_TOKENS_MAGIC))
        return FILE_SHARD;
    return ends_with(path, ".bin") ? FILE_HEADERLESS : FILE_TEXT;
}

/* Refuses a file that says of itself that it is something else than text or tokens.  A text that is packed with gzip is
 * read only if it is named itself: in a folder it may lie beside the same text unpacked. */
static void refuse_if_foreign(const char *path, enum data_format format, bool named)
{
    const struct file_kind *found = kind_of_file(path);
    const char *other = format == FILE_TEXT ? llmc_kind(path) : NULL;
    if (found && found->kind == KIND_GZIP && format == FILE_TEXT) {
        if (named)
            return;
        fail(EXIT_USAGE,
             "%s is %s, which is not read as part of a folder or pattern: name this file alone, or unpack "
             "it with gunzip first",
             path, found->name);
    }
    if (found && found->kind == KIND_SHORT_MARK && format == FILE_HEADERLESS)
        return;
    if (is_foreign(found))
        fail(EXIT_USAGE, "%s is %s, not %s to train on: %s%s", path, found->name,
             format == FILE_TEXT ? "a text" : "token numbers", found->way,
             named ? "" : "; a quoted pattern, such as 'folder/*.txt', names only the files that you mean");
    if (other)
        fail(EXIT_USAGE,
             "%s is %s, not a text to train on; --data takes texts and files of token numbers (NAME.bin), and --init "
             "takes models",
             path, other);
}

/* ---- a folder of nanoGPT's --------------------------------------------------------------------------------------- */

static bool holds_file(const char *folder, const char *name)
{
    char *path = join_path(folder, name);
    bool there = access(path, F_OK) == 0 && !is_folder(path);
    free(path);
    return there;
}

/* nanoGPT's scripts write train.bin and val.bin into a folder, beside what they were made from. */
static bool is_nanogpt(const char *given)
{
    return is_folder(given) && holds_file(given, "train.bin") && holds_file(given, "val.bin");
}

struct data_options use_nanogpt_folders(struct dataset *dataset, const struct data_options *options)
{
    struct data_options named = *options;
    const char *val_folder = options->val_data && is_nanogpt(options->val_data) ? options->val_data : NULL;
    if (options->path && is_nanogpt(options->path)) {
        dataset->own_path[0] = join_path(options->path, "train.bin");
        named.path = dataset->own_path[0];
        if (!options->val_data)
            val_folder = options->path;
    }
    if (val_folder) {
        dataset->own_path[1] = join_path(val_folder, "val.bin");
        named.val_data = dataset->own_path[1];
    }
    if (dataset->own_path[0])
        inform("data: %s is laid out as nanoGPT's: %s to train, %s to validate; its other files are not read",
               options->path, named.path, options->val_data ? options->val_data : named.val_data);
    return named;
}

/* A pattern such as '*.bin' takes all of them, also what nanoGPT keeps for validation. */
static void warn_of_validation(const struct files *files)
{
    const char *train = NULL, *val = NULL;
    for (size_t i = 0; i < files->n; i++) {
        if (ends_with(files->paths[i], "/train.bin"))
            train = files->paths[i];
        if (ends_with(files->paths[i], "/val.bin"))
            val = files->paths[i];
    }
    if (train && val)
        warn("%s names %s too, so the run trains on that file; to validate on it instead, give --data %s --val-data %s",
             files->given, val, train, val);
}

/* ---- texts that are made ----------------------------------------------------------------------------------------- */

/* The maker of --data NAME or NAME:FILE; NULL: `given` is a path. */
static const struct text_maker *find_maker(const char *given)
{
    for (size_t i = 0; i < n_modules; i++) {
        const struct text_maker *maker = training_parts_of(modules[i])->text;
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
    for (size_t i = 0; i < n_modules; i++) {
        const struct text_maker *maker = training_parts_of(modules[i])->text;
        if (maker)
            return maker->name;
    }
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

/* ---- finding ----------------------------------------------------------------------------------------------------- */

static void add_path(struct files *files, const char *path)
{
    GROW(files->paths, files->cap, files->n + 1);
    files->paths[files->n++] = copy_string(path);
}

/* Adds the files that match the pattern.  Returns how many folders do, which are not read. */
static size_t match_files(struct files *files, const char *pattern)
{
    glob_t found = {0};
    size_t folders = 0;
    glob(pattern, 0, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (is_folder(found.gl_pathv[i]))
            folders++;
        else
            add_path(files, found.gl_pathv[i]);
    }
    globfree(&found);
    return folders;
}

/* named: the user has named the one file itself. */
static void check_files(struct files *files, bool named)
{
    files->format = find_format(files->paths[0]);
    for (size_t i = 0; i < files->n; i++) {
        enum data_format format = find_format(files->paths[i]);
        claim_input("--data", files->paths[i]);
        refuse_if_foreign(files->paths[i], format, named);
        if (format != files->format)
            fail(EXIT_USAGE,
                 "%s mixes kinds of data: %s is %s, %s is %s; name the files of one kind, such as '%s/*.bin'",
                 files->given, files->paths[0], format_name[files->format], files->paths[i], format_name[format],
                 files->given);
    }
}

/* A file of that very name wins over a pattern, so that "a[1].txt" can be read.  A folder stands for the visible files
 * in it, but not for those of folders inside it. */
static void fill_paths(struct files *files)
{
    const char *given = files->given;
    bool folder = is_folder(given);
    bool is_file = !folder && access(given, F_OK) == 0;
    char *pattern = folder ? format_string("%s/*", given) : copy_string(given);
    size_t folders = 0;
    if (is_file)
        add_path(files, given);
    else
        folders = match_files(files, pattern);
    if (folder && files->n > 0 && folders > 0)
        warn("%s has %zu folder%s, whose files are not read; the quoted pattern '%s/*/*' names these files", given,
             folders, PLURAL(folders), given);
    if (files->n == 0 && is_left_out(given))
        fail(EXIT_USAGE, "--data %s: this yard was built without%s", given, left_out);
    if (files->n == 0)
        fail(EXIT_IO,
             "no file matches %s; expected a file, a folder with files (not in folders inside it) or a pattern such as "
             "'data/*.txt'",
             pattern);
    check_files(files, is_file);
    if (!is_file && !folder)
        warn_of_validation(files);
    free(pattern);
}

struct files find_files(const char *given)
{
    struct files files = {.given = given, .maker = find_maker(given)};
    if (files.maker)
        files.made = files.maker->open(file_of_data(given));
    if (files.maker || strcmp(given, "self") == 0) {
        GROW(files.paths, files.cap, files.n + 1);
        files.paths[files.n++] = NULL;
    } else
        fill_paths(&files);
    return files;
}

void free_files(struct files *files)
{
    for (size_t i = 0; i < files->n; i++)
        free(files->paths[i]);
    free(files->paths);
    if (files->maker)
        files->maker->close(files->made);
}
