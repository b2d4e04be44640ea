/* snapfile_layout.c - where every byte of a snapshot file lies; makes and checks its pages.  snapfile_read.c reads it.
 *
 *     0        4096     8192                                                           file_bytes
 *     | page 0 | page 1 | manifest ... | slot 1 ................... | slot 2 ... | ... |
 *                                      /                            \
 *                                      | payload 0 . | payload 1 .. | hashes |           in a slot
 *
 *                                      | value | m | v |                                in a payload
 *
 * All begin on multiples of 4096 bytes; numbers are little endian.  A payload is what one update wrote: of values, of m
 * and of v the same range of elements each.  These are cut into pieces, parts of one tensor each.
 *
 *     page       there are two: a commit goes to the page that does not have the newest commit
 *        0  "YARDSNAP"                                       the same on both pages, but for the run:
 *        8  u32 version 3, u32 0x01020304
 *       16  u64 file_bytes
 *       24  u64 run that made the commit, u64 0            (where the manifest is of version 1, both have any value)
 *       40  u32 slots, u32 pieces
 *       48  u64 bytes of the manifest, u64 its XXH64
 *       64  u64 seq, u32 iteration, u32 slot                 the commit; slot 0: none yet
 *       80  i64 sequences trained on, i64 session
 *       96  u64 XXH64 of the slot's hashes
 *     4088  u64 XXH64 of all before
 *
 * The manifest is a checkpoint's (manifest_write.c), and says where in a slot each piece lies.  A slot ends with the
 * XXH64 of each piece, in the manifest's order.  It has no header: only a page vouches for it.
 */
#include "snapfile_parts.h"
#include "techniques/checkpoint/files.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VERSION = 3, ENDIAN = 0x01020304 };

_Static_assert(sizeof(struct snapfile_page) == 104, "as drawn above");
static const char magic[] = "YARDSNAP"; /* the file has it without the 0 at its end */

/* ---- payloads ---------------------------------------------------------------------------------------------------- */

uint64_t payload_bytes(const struct state_range *range)
{
    return STORED_ROLES * round_up(ELEMENT_BYTES * (range->elements.end - range->elements.begin), SNAPFILE_PAGE);
}

uint64_t hashes_bytes(size_t pieces) { return round_up(HASH_BYTES * pieces, SNAPFILE_PAGE); }

/* Adds the pieces of a tensor that lie in a range of stored elements.  The range's payload begins at byte
 * `payload_begin` of a slot.  Returns how many elements these pieces have. */
static size_t add_stored(const struct model *model, struct kept_tensor *tensor, const struct state_range *range,
                         uint64_t payload_begin)
{
    size_t elements = 0, first = tensor->n_pieces;
    add_pieces(model, tensor, range->rank, range->elements);
    for (struct piece *piece = tensor->pieces + first; piece < tensor->pieces + tensor->n_pieces; piece++) {
        uint64_t role_begin = payload_begin + (uint64_t)tensor->role * payload_bytes(range) / STORED_ROLES;
        piece->file_offset = role_begin + ELEMENT_BYTES * piece->memory_offset;
        elements += piece_elements(piece);
    }
    return elements;
}

/* Adds the pieces of a tensor that lie in any payload.  Returns how many elements these have. */
static size_t add_all_stored(const struct model *model, struct kept_tensor *tensor, const struct snapfile_plan *plan)
{
    uint64_t payload_begin = 0;
    size_t elements = 0;
    for (const struct state_range *range = plan->ranges; range < plan->ranges + plan->n; range++) {
        if (range->unit == tensor->unit)
            elements += add_stored(model, tensor, range, payload_begin);
        payload_begin += payload_bytes(range);
    }
    return elements;
}

struct problem *cut_stored(const struct snapfile_plan *plan, struct cut_tensors **out)
{
    struct model *model = outline_model(plan->config, plan->mesh);
    struct cut_tensors *cut = new_uncut_tensors(plan->config);
    struct problem *problem = NULL;
    cut->mesh = *plan->mesh;
    cut->mesh.first_layer = NULL;
    for (size_t i = 0; i < cut->n && !problem; i++) {
        struct kept_tensor *tensor = &cut->tensors[i];
        size_t elements = add_all_stored(model, tensor, plan);
        if (elements != tensor_elements(tensor))
            problem = new_problem(EXIT_USAGE,
                                  "tasks of role update store %zu of the %zu elements of %s, %s: a snapshot needs each "
                                  "of them once; mend these tasks, or leave --snapshot out",
                                  elements, tensor_elements(tensor), tensor->name, kept_name[tensor->role]);
    }
    free_model(model);
    *out = cut;
    return problem;
}

/* ---- places and pages -------------------------------------------------------------------------------------------- */

struct snapfile *snapfile_of(const struct checkpoint *checkpoint)
{
    CHECK(checkpoint->single_file && checkpoint->single_file->form == &snapfile_form, "%s is not a snapshot",
          checkpoint->path);
    return (struct snapfile *)checkpoint->single_file;
}

uint64_t slot_at(const struct snapfile *snapfile, int slot)
{
    return snapfile->slots_at + (uint64_t)(slot - 1) * snapfile->base.bytes;
}

uint64_t hashes_at(const struct snapfile *snapfile, int slot)
{
    return slot_at(snapfile, slot + 1) - hashes_bytes(snapfile->base.n);
}

static uint64_t hash_of_page(const char *page) { return hash_bytes(page, PAGE_HASH_AT, 0); }

void fill_page(const struct snapfile *snapfile, const struct snapfile_commit *commit, char page[SNAPFILE_PAGE])
{
    struct snapfile_page contents = {.version = VERSION,
                                     .endian = ENDIAN,
                                     .file_bytes = slot_at(snapfile, snapfile->slots + 1),
                                     .run_id = snapfile->run_id,
                                     .slots = (uint32_t)snapfile->slots,
                                     .pieces = (uint32_t)snapfile->base.n,
                                     .manifest_bytes = snapfile->manifest_bytes,
                                     .manifest_hash = snapfile->manifest_hash,
                                     .commit = *commit};
    memcpy(contents.magic, magic, MAGIC_BYTES);
    memset(page, 0, SNAPFILE_PAGE);
    memcpy(page, &contents, sizeof contents);
    uint64_t hash = hash_of_page(page);
    memcpy(page + PAGE_HASH_AT, &hash, HASH_BYTES);
}

/* Are the numbers within bounds?  They may have any values, since bytes that were changed can have a hash that fits. */
static bool is_possible(const struct snapfile_page *page)
{
    const struct snapfile_commit *commit = &page->commit;
    if (page->slots < 1 || page->slots > MOST_SLOTS || commit->slot > page->slots)
        return false;
    if (page->manifest_bytes > MIN(page->file_bytes, (uint64_t)MOST_MANIFEST_BYTES))
        return false;
    if (page->pieces < 1 || page->pieces > page->manifest_bytes / 2) /* the manifest has a "{}" at least for each */
        return false;
    /* The session's upper bound leaves room for the numbers of later sessions. */
    return commit->step <= LAST_STEP && commit->samples >= 0 && (uint64_t)commit->session <= INT64_MAX / 2;
}

const char *parse_page(struct snapfile *snapfile, const char page[SNAPFILE_PAGE], const struct reader *reader)
{
    struct snapfile_page contents;
    uint64_t hash = hash_of_page(page), file_bytes = reader->size;
    memcpy(&contents, page, sizeof contents);
    if (memcmp(contents.magic, magic, MAGIC_BYTES) != 0 || memcmp(page + PAGE_HASH_AT, &hash, HASH_BYTES) != 0)
        return "its hash does not match its bytes";
    if (contents.version > VERSION && contents.endian == ENDIAN)
        fail(EXIT_FAILED,
             "%s was written by a newer yard, as a snapshot of version %u: this one, " YARD_VERSION
             ", reads version %d; use the newer one",
             reader->path, contents.version, VERSION);
    if (contents.version != VERSION || contents.endian != ENDIAN)
        return "it is of another version, or from another kind of machine";
    if (contents.file_bytes != file_bytes)
        return "the file is not as long as it says";
    if (!is_possible(&contents))
        return "it has impossible numbers";
    *snapfile = (struct snapfile){.base = {.form = &snapfile_form, .n = contents.pieces},
                                  .run_id = contents.run_id,
                                  .slots = (int)contents.slots,
                                  .manifest_bytes = contents.manifest_bytes,
                                  .manifest_hash = contents.manifest_hash,
                                  .slots_at = MANIFEST_AT + round_up(contents.manifest_bytes, SNAPFILE_PAGE),
                                  .newest = contents.commit};
    uint64_t least = snapfile->slots_at + (uint64_t)snapfile->slots * hashes_bytes(snapfile->base.n);
    if (file_bytes < least || (file_bytes - snapfile->slots_at) % ((uint64_t)snapfile->slots * SNAPFILE_PAGE))
        return "the file does not end with a slot";
    snapfile->base.bytes = (file_bytes - snapfile->slots_at) / (uint64_t)snapfile->slots;
    return NULL;
}

struct problem *look_for_pages(int fd, const char *path, bool *is_ours)
{
    char page[2][MAGIC_BYTES] = {{0}};
    bool empty = false;
    for (int k = 0; k < 2; k++) {
        /* A file that was cut off may have only the first page: nothing is read then. */
        ssize_t n;
        do
            n = pread(fd, page[k], MAGIC_BYTES, k * SNAPFILE_PAGE);
        while (n < 0 && errno == EINTR);
        if (n < 0)
            return new_problem(EXIT_IO, "cannot read %s: %s; is its disk in order?", path, strerror(errno));
        if (k == 0)
            empty = n == 0;
    }
    *is_ours = empty || memcmp(page[0], magic, MAGIC_BYTES) == 0 || memcmp(page[1], magic, MAGIC_BYTES) == 0;
    return NULL;
}

bool is_snapshot(const char *path)
{
    struct stat status;
    bool is_ours;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return false;
    struct reader *reader = open_reader(path);
    must(look_for_pages(reader->fd, path, &is_ours));
    close_reader(reader);
    return is_ours;
}
