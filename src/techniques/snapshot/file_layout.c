/* file_layout.c - says where every byte of a snapshot file lies, and makes and checks its pages.  reading.c reads it.
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
 *       24  u64 run that made the commit, u64 0            (both by chance where the manifest is of version 1)
 *       40  u32 slots, u32 pieces
 *       48  u64 bytes of the manifest, u64 its XXH64
 *       64  u64 seq, u32 iteration, u32 slot                 the commit; slot 0: none yet
 *       80  i64 sequences trained on, i64 session
 *       96  u64 XXH64 of the slot's hashes
 *     4088  u64 XXH64 of all before
 *
 * The manifest is a checkpoint's (manifest.c), and says where in a slot each piece lies.  A slot ends with the XXH64 of
 * each piece, in the manifest's order.  It has no header: only a page vouches for it.
 */
#include "snapshot.h"
#include "techniques/reshard/manifest.h"

#include <sys/stat.h>

enum { VERSION = 3, ENDIAN = 0x01020304 };

struct disk_page {
    char magic[8];
    uint32_t version, endian;
    uint64_t file_bytes, run, zero;
    uint32_t slots, pieces;
    uint64_t manifest_bytes, manifest_hash;
    struct snap_commit commit;
};
_Static_assert(sizeof(struct disk_page) == 104, "as drawn above");
static const char magic[] = "YARDSNAP"; /* without the 0 */

/* ---- payloads --------------------------------------------------------------------------------------------------- */

uint64_t payload_bytes(const struct state_range *r)
{
    return KEPT_ROLES * round_up(ELEMENT_BYTES * (r->end - r->begin), SNAP_PAGE);
}

/* Adds the pieces of a tensor that lie in a range of stored elements.  The range's payload begins at byte
 * `payload_begin` of a slot.  Returns how many elements these pieces have. */
static size_t add_stored(const struct model *m, struct kept_tensor *t, const struct state_range *r,
                         uint64_t payload_begin)
{
    size_t elements = 0, first = t->n;
    add_pieces(m, t, r->rank, (struct shard){r->begin, r->end});
    for (struct piece *p = t->piece + first; p < t->piece + t->n; p++) {
        const uint64_t role_begin = payload_begin + (uint64_t)t->role * payload_bytes(r) / KEPT_ROLES;
        p->file_offset = role_begin + ELEMENT_BYTES * p->memory_offset;
        elements += piece_elements(p);
    }
    return elements;
}

struct pieces *cut_stored(const struct snap_plan *plan)
{
    struct model *m = outline_model(plan->config, plan->mesh);
    struct pieces *s = uncut_state(plan->config);
    s->mesh = *plan->mesh;
    s->mesh.first_layer = NULL;
    for (struct kept_tensor *t = s->tensor; t < s->tensor + s->n; t++) {
        uint64_t payload_begin = 0;
        size_t elements = 0;
        for (const struct state_range *r = plan->range; r < plan->range + plan->n; r++) {
            if (r->unit == t->unit)
                elements += add_stored(m, t, r, payload_begin);
            payload_begin += payload_bytes(r);
        }
        if (elements != tensor_elements(t))
            fail(EXIT_USAGE, "tasks of role update store %zu of the %zu elements of %s, %s: this cannot be snapshot",
                 elements, tensor_elements(t), t->name, kept_name[t->role]);
    }
    free_model(m);
    return s;
}

/* ---- places and pages ------------------------------------------------------------------------------------------- */

struct snapfile *snapfile_of(const struct checkpoint *c)
{
    CHECK(c->stored && c->stored->store == &snapshot_store, "%s is no snapshot", c->path);
    return (struct snapfile *)c->stored;
}

uint64_t slot_at(const struct snapfile *f, int slot) { return f->slots_at + (uint64_t)(slot - 1) * f->in.bytes; }

uint64_t hashes_at(const struct snapfile *f, int slot)
{
    return slot_at(f, slot + 1) - round_up(sizeof(uint64_t) * f->in.n, SNAP_PAGE);
}

static uint64_t hash_of_page(const char *page) { return hash_bytes(page, SNAP_PAGE - 8, 0); }

void fill_page(const struct snapfile *f, const struct snap_commit *c, char page[SNAP_PAGE])
{
    struct disk_page p = {.version = VERSION,
                          .endian = ENDIAN,
                          .file_bytes = slot_at(f, f->slots + 1),
                          .run = f->run,
                          .slots = (uint32_t)f->slots,
                          .pieces = (uint32_t)f->in.n,
                          .manifest_bytes = f->manifest_bytes,
                          .manifest_hash = f->manifest_hash,
                          .commit = *c};
    memcpy(p.magic, magic, sizeof p.magic);
    memset(page, 0, SNAP_PAGE);
    memcpy(page, &p, sizeof p);
    uint64_t hash = hash_of_page(page);
    memcpy(page + SNAP_PAGE - 8, &hash, 8);
}

const char *parse_page(struct snapfile *f, const char page[SNAP_PAGE], const struct reader *r)
{
    struct disk_page p;
    const struct snap_commit *c = &p.commit;
    uint64_t hash = hash_of_page(page), file_bytes = r->size;
    memcpy(&p, page, sizeof p);
    if (memcmp(page, magic, 8) != 0 || memcmp(page + SNAP_PAGE - 8, &hash, 8) != 0)
        return "its hash is not that of its bytes";
    if (p.version > VERSION && p.endian == ENDIAN)
        fail(EXIT_FAILED,
             "%s was written by a newer yard, as a snapshot of version %u: this one, " YARD_VERSION
             ", reads version %d; use the newer one",
             r->path, p.version, VERSION);
    if (p.version != VERSION || p.endian != ENDIAN)
        return "it is of another version, or another kind of machine";
    if (p.file_bytes != file_bytes)
        return "the file is not as long as it says";
    if (p.slots < 1 || p.slots > MOST_MEMBERS || p.pieces < 1 || p.pieces > p.manifest_bytes / 2 ||
        p.manifest_bytes > MIN(file_bytes, (uint64_t)MOST_MANIFEST_BYTES) || c->slot > p.slots || c->step > LAST_STEP ||
        c->samples < 0 || (uint64_t)c->session > INT64_MAX / 2)
        return "it has impossible numbers";
    *f = (struct snapfile){.in = {.store = &snapshot_store, .n = p.pieces},
                           .run = p.run,
                           .slots = (int)p.slots,
                           .manifest_bytes = p.manifest_bytes,
                           .manifest_hash = p.manifest_hash,
                           .slots_at = MANIFEST_AT + round_up(p.manifest_bytes, SNAP_PAGE),
                           .newest = *c};
    uint64_t least = f->slots_at + (uint64_t)f->slots * round_up(sizeof(uint64_t) * f->in.n, SNAP_PAGE);
    if (file_bytes < least || (file_bytes - f->slots_at) % ((uint64_t)f->slots * SNAP_PAGE))
        return "the file does not end with a slot";
    f->in.bytes = (file_bytes - f->slots_at) / (uint64_t)f->slots;
    return NULL;
}

bool is_snapshot(const char *path)
{
    struct stat status;
    char page[2][8] = {{0}};
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return false;
    struct reader *r = open_reader(path);
    for (uint64_t k = 0; k < 2 && r->size >= k * SNAP_PAGE + 8; k++) /* also of one that was cut off */
        read_at(r, page[k], 8, k * SNAP_PAGE);
    bool empty = r->size == 0;
    close_reader(r);
    return empty || memcmp(page[0], magic, 8) == 0 || memcmp(page[1], magic, 8) == 0;
}
