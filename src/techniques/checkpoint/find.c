/* find.c - looks into the folder that --save fills: which checkpoints are complete, which is the newest, and
 * which are to be removed.
 *
 *     collect_checkpoints()    opens each of them, by attempt(): what is wrong with one is kept beside it
 *     find_newest()            takes the newest complete one; a warning names each that is not complete
 *
 * checkpoint.h draws what a folder may hold.
 */
#include "files.h"
#include "trainer/model_files/model_files.h"

#include <dirent.h>
#include <errno.h>
#include <unistd.h>

/* ---- is it complete? --------------------------------------------------------------------------------------------- */

static bool is_checkpoint(const char *folder)
{
    char *path = format_string("%s/" MANIFEST, folder);
    bool found = access(path, F_OK) == 0;
    free(path);
    return found;
}

void expect_outside(const char *claimant, const char *path)
{
    char *at = behind_links(path);
    for (char *end = at + strlen(at); end; end = strrchr(at, '/')) {
        *end = '\0';
        if (is_checkpoint(at))
            fail(EXIT_USAGE,
                 "%s %s: the folder %s is a checkpoint, to which nothing is added: "
                 "choose a path outside of it",
                 claimant, path, at);
    }
    free(at);
}

static bool has_metadata(const struct safetensors *st, const char *key, const char *expected)
{
    const char *text = find_metadata(st, key);
    return text && strcmp(text, expected) == 0;
}

/* Does the file's header say of this tensor what the manifest says of piece k? */
static bool is_same(const struct st_tensor *found, const struct kept_tensor *tensor, size_t k)
{
    const struct piece *piece = &tensor->pieces[k];
    char name[PIECE_NAME];
    if (strcmp(found->name, piece_name(name, tensor, k)) != 0 || found->dtype != DTYPE_F32)
        return false;
    if (found->offset != piece->file_offset || found->n_dims != (piece->flat ? 1 : tensor->dims))
        return false;
    for (int axis = 0; axis < found->n_dims; axis++)
        if (found->shape[axis] != piece->end[axis] - piece->begin[axis])
            return false;
    return true;
}

/* The tensors in the header of the rank's file must be the rank's pieces, in the manifest's order. */
static void refuse_if_other_tensors(const struct checkpoint *checkpoint, int rank, const char *path,
                                    const struct safetensors *st)
{
    const struct st_tensor *found = st->tensors, *end = found + st->n;
    for (size_t i = 0; i < checkpoint->cut->n; i++) {
        const struct kept_tensor *tensor = &checkpoint->cut->tensors[i];
        for (size_t k = 0; k < tensor->n_pieces; k++) {
            const struct piece *piece = &tensor->pieces[k];
            char name[PIECE_NAME];
            if (piece->rank != rank)
                continue;
            if (found == end || !is_same(found, tensor, k))
                refuse_damaged(
                    EXIT_FAILED, "%s does not have piece %s at byte %llu, %zu elements of F32, as the manifest says",
                    path, piece_name(name, tensor, k), (unsigned long long)piece->file_offset, piece_elements(piece));
            found++;
        }
    }
    if (found != end)
        refuse_damaged(EXIT_FAILED, "%s has tensor %s, which the manifest does not name", path, found->name);
}

/* The rank's file must agree with the manifest in size and header, so that both are of the same checkpoint. */
static void refuse_if_rank_differs(const struct checkpoint *checkpoint, int rank)
{
    char step[16];
    char *path = rank_file(checkpoint, rank);
    if (access(path, F_OK) != 0 && errno == ENOENT)
        refuse_damaged(EXIT_IO, "%s is not complete: it lacks %s, which its manifest names", checkpoint->path,
                       last_part(path));
    struct safetensors *st = open_safetensors(path);
    snprintf(step, sizeof step, "%u", checkpoint->step);
    if (st->file->size != checkpoint->bytes[rank])
        refuse_damaged(EXIT_FAILED, "%s has %llu bytes, but the manifest says %llu", path,
                       (unsigned long long)st->file->size, (unsigned long long)checkpoint->bytes[rank]);
    if (json_object_size(st->metadata) != 2 || !has_metadata(st, "format", "pt") ||
        !has_metadata(st, "yard.step", step))
        refuse_damaged(EXIT_FAILED, "%s: its metadata must be format \"pt\" and yard.step \"%s\", the manifest's step",
                       path, step);
    refuse_if_other_tensors(checkpoint, rank, path, st);
    close_safetensors(st);
    free(path);
}

static struct checkpoint *read_checkpoint(const char *folder)
{
    struct checkpoint *checkpoint = read_manifest(folder);
    for (int rank = 0; rank < n_ranks(&checkpoint->cut->mesh); rank++)
        if (checkpoint->bytes[rank])
            refuse_if_rank_differs(checkpoint, rank);
    return checkpoint;
}

/* ---- the checkpoints of a folder --------------------------------------------------------------------------------- */

struct entry {
    char *path;
    int64_t session;
    uint32_t step;
    struct problem *problem; /* why it is not a complete checkpoint; NULL: it is one */
};
struct entries {
    struct entry *items; /* sorted: the newest first, and at the end those with a problem, whose session is 0 */
    size_t n, cap;
};

static void read_entry(void *argument)
{
    struct entry *entry = argument;
    struct checkpoint *checkpoint = read_checkpoint(entry->path);
    entry->session = checkpoint->session;
    entry->step = checkpoint->step;
    free_checkpoint(checkpoint);
}

static int newest_first(const void *left, const void *right)
{
    const struct entry *a = left;
    const struct entry *b = right;
    return BY(b->session, a->session, COMPARE(b->step, a->step));
}

/* "30" of "step-30", the name of a checkpoint; NULL: the name is another one.  A folder with ".new" after the digits
 * waits for the place of the old folder (publish_folder()). */
static const char *step_in_name(const char *name)
{
    if (strncmp(name, "step-", 5) != 0)
        return NULL;
    const char *digits = name + 5;
    const char *ending = digits + strspn(digits, "0123456789");
    bool named = ending > digits && (!*ending || strcmp(ending, ".new") == 0);
    return named ? digits : NULL;
}

/* Lists the checkpoints in the folder, each of which is opened to see whether it is complete. */
static struct entries collect_checkpoints(const char *folder)
{
    struct entries all = {0};
    DIR *directory = opendir(folder);
    if (!directory && errno != ENOENT && errno != ENOTDIR)
        fail(EXIT_IO, "cannot list the folder %s: %s", folder, strerror(errno));
    const struct dirent *found;
    while (directory && (found = readdir(directory))) {
        const char *digits = step_in_name(found->d_name);
        if (!digits)
            continue;
        GROW(all.items, all.cap, all.n + 1);
        struct entry *entry = &all.items[all.n++];
        *entry = (struct entry){.path = join_path(folder, found->d_name), .step = (uint32_t)strtoul(digits, NULL, 10)};
        entry->problem = attempt(read_entry, entry);
    }
    if (directory)
        closedir(directory);
    SORT(all.items, all.n, newest_first);
    return all;
}

static void free_entries(struct entries *all)
{
    for (size_t i = 0; i < all->n; i++) {
        free(all->items[i].path);
        free(all->items[i].problem);
    }
    free(all->items);
}

/* See find_checkpoint().  *code: the exit code for NULL, which is that of the first checkpoint that was passed over. */
static char *find_newest(const char *path, enum exit_code *code)
{
    char *found = NULL;
    if (is_checkpoint(path))
        return copy_string(path);
    struct entries all = collect_checkpoints(path);
    *code = EXIT_IO;
    if (all.n && all.items[0].problem)
        *code = all.items[0].problem->code;
    bool passes_over = false;
    for (size_t i = 0; i < all.n; i++) {
        if (all.items[i].problem) {
            warn("%s is passed over: %s", all.items[i].path, all.items[i].problem->sentence);
            passes_over = true;
        } else if (!found) {
            found = copy_string(all.items[i].path);
        }
    }
    if (found && passes_over)
        inform("%s is taken", found);
    free_entries(&all);
    return found;
}

char *find_checkpoint(const char *path)
{
    enum exit_code unused;
    return find_newest(path, &unused);
}

char **all_checkpoints(const char *path, size_t *n)
{
    struct entries all = {0};
    if (!is_checkpoint(path))
        all = collect_checkpoints(path);
    *n = MAX(all.n, 1);
    char **paths = allocate(*n, sizeof *paths);
    for (size_t i = 0; i < *n; i++)
        paths[i] = copy_string(all.n ? all.items[i].path : path);
    free_entries(&all);
    return paths;
}

/* What a caller takes at a path. */
enum taken { CHECKPOINTS, CHECKPOINTS_AND_MODELS };

/* Says what the path is instead of a checkpoint.  code: the exit code where it is a folder without a complete one. */
static _Noreturn void fail_without_checkpoint(const char *path, enum taken taken, enum exit_code code)
{
    if (access(path, F_OK) != 0)
        fail(EXIT_IO, "cannot open %s: %s; give a checkpoint, a folder of them or a snapshot file", path,
             strerror(errno));
    if (begins_with(last_part(path), "rank-") && !is_folder(path))
        fail(EXIT_IO, "%s is a part of a checkpoint: give the checkpoint's folder", path);
    if (ends_with(path, ".safetensors") && !is_folder(path))
        fail(EXIT_IO,
             "%s is a model and no checkpoint: `yard plan --init FILE` shows the memory that it takes, `yard sample "
             "--from FILE` lets it write, and `yard train --init FILE` trains it on",
             path);
    if (!is_folder(path))
        fail(EXIT_IO,
             "%s is not a checkpoint: give the folder that --save wrote, a checkpoint in it, or a file of --snapshot",
             path);
    if (taken == CHECKPOINTS_AND_MODELS)
        fail(code,
             "%s holds no complete checkpoint and no model: give a model's file, a folder with a " MODEL_FILE
             ", or the folder that --save wrote",
             path);
    fail(code, "%s holds no complete checkpoint: a run saves one at its end, and with --save-every before%s", path,
         model_in_folder(path) ? "; a training begins from its model with --init" : "");
}

static struct checkpoint *open_single_file(const struct checkpoint_form *form, const char *path)
{
    struct checkpoint *checkpoint = form->open(path);
    for (size_t i = 0; i < checkpoint->single_file->n_damage; i++)
        warn("%s", checkpoint->single_file->damage[i]);
    return checkpoint;
}

static struct checkpoint *open_from(const char *path, enum taken taken)
{
    enum exit_code code;
    const struct checkpoint_form *form = find_checkpoint_form(path);
    if (form)
        return open_single_file(form, path);
    char *folder = find_newest(path, &code);
    if (!folder)
        fail_without_checkpoint(path, taken, code);
    struct checkpoint *checkpoint = read_checkpoint(folder);
    free(folder);
    return checkpoint;
}

struct checkpoint *open_checkpoint(const char *path) { return open_from(path, CHECKPOINTS); }

struct checkpoint *open_checkpoint_or_model(const char *path) { return open_from(path, CHECKPOINTS_AND_MODELS); }

int64_t last_session(const char *folder)
{
    struct entries all = collect_checkpoints(folder);
    int64_t last = all.n ? all.items[0].session : 0;
    free_entries(&all);
    return last;
}

void prune_checkpoints(const char *folder, int64_t session, int64_t keep)
{
    struct entries all = collect_checkpoints(folder);
    for (size_t i = 0; i < all.n; i++)
        if (!all.items[i].problem && (all.items[i].session < session || (keep != KEEP_ALL && (int64_t)i >= keep)))
            remove_folder(all.items[i].path);
    free_entries(&all);
}
