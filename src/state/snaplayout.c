/* snaplayout.c - where every byte of a snapshot file lies.
 *
 *     0         4096                                                                      file_bytes
 *     | super 0 | super 1 | commit 0 .. | commit 1 .. | manifest | slot 1 ... | slot 2 ... | ... |
 *                                                                /            \
 *                                                                | payload 0 . | payload 1 .. |     in a slot
 *
 * All begin on pages of 4096 bytes; numbers are little endian.
 *
 *     superblock    two copies, never changed        commit page       two, used in turn
 *        0  "YARDSNAP"                                  0  "YARDCMIT"
 *        8  u32 version 1, u32 0x01020304               8  u64[2] id, as the superblock's
 *       16  u64 file_bytes                             24  u64 seq
 *       24  u64[2] id                                  32  u32 iteration, u32 slot, from 1
 *       40  u32 slots, u32 payloads                    40  i64 sequences trained on, i64 session
 *       48  u64 bytes of the manifest                  56  u64 payloads
 *       56  u64 its XXH64                              64  u64 XXH64 of each payload
 *     4088  u64 XXH64 of all before                  last  u64 XXH64 of all before, behind zeros
 *
 * A commit "page" is as many pages as its hashes take: one up to 503 payloads.  The manifest is a checkpoint's
 * (manifest.c): model, mesh, options, the payloads' sizes, and where in a slot each piece lies.  Slots are alike and
 * have no header: a payload is the bytes of what one update wrote, as the device has them, and only a commit vouches
 * for them.  From the payloads' sizes, the number of slots and the manifest's length all other places follow.
 */
#include "snap.h"

enum { VERSION = 1, ENDIAN = 0x01020304 };
static const char super_magic[8] = {'Y', 'A', 'R', 'D', 'S', 'N', 'A', 'P'};
static const char commit_magic[8] = {'Y', 'A', 'R', 'D', 'C', 'M', 'I', 'T'};

struct super_page {
    char magic[8];
    uint32_t version, endian;
    uint64_t file_bytes, id[2];
    uint32_t slots, payloads;
    uint64_t manifest_bytes, manifest_hash;
};
struct commit_page {
    char magic[8];
    uint64_t id[2], seq;
    uint32_t step, slot;
    int64_t samples, session;
    uint64_t payloads;
};
_Static_assert(sizeof(struct super_page) == 64 && sizeof(struct commit_page) == 64, "as drawn above");

/* ---- places ----------------------------------------------------------------------------------------------------- */

static void place_front(struct snapshot *s)
{
    s->commit_bytes = round_up(sizeof(struct commit_page) + 8 * s->n + 8, SNAP_PAGE);
    s->manifest_at = commit_at(s, 2);
    s->slots_at = round_up(s->manifest_at + s->manifest_bytes, SNAP_PAGE);
}

const char *place_payloads(struct snapshot *s)
{
    uint64_t at = 0, most = (s->file_bytes ? s->file_bytes : INT64_MAX) / (uint64_t)s->slots;
    place_front(s);
    for (size_t i = 0; i < s->n; i++) {
        if (at > most || s->payload[i].bytes > most - at)
            return "the payloads take more bytes than the file has";
        s->payload[i].at = at;
        at += round_up(s->payload[i].bytes, SNAP_PAGE);
    }
    s->slot_bytes = at;
    uint64_t end = slot_at(s, s->slots + 1);
    if (s->file_bytes && s->file_bytes != end)
        return "slots of these payloads do not end where the file does";
    s->file_bytes = end;
    return NULL;
}

uint64_t commit_at(const struct snapshot *s, int page) { return 2 * SNAP_PAGE + (uint64_t)page * s->commit_bytes; }

uint64_t slot_at(const struct snapshot *s, int slot) { return s->slots_at + (uint64_t)(slot - 1) * s->slot_bytes; }

const struct stored_payload *payload_at(const struct snapshot *s, uint64_t offset, uint64_t bytes)
{
    size_t i;
    FIND_FIRST(i, s->n, s->payload[i].at <= offset);
    const struct stored_payload *p = &s->payload[i - 1]; /* the first one is at 0 */
    uint64_t before = offset - p->at;
    return before <= p->bytes && bytes <= p->bytes - before ? p : NULL;
}

void free_snapshot(struct snapshot *s)
{
    for (size_t i = 0; i < s->n_damage; i++)
        free(s->damage[i]);
    free(s->damage), free(s->payload), free(s);
}

/* ---- superblocks ------------------------------------------------------------------------------------------------ */

static void put_hash(char *page, size_t bytes)
{
    uint64_t hash = hash_bytes(page, bytes - 8, 0);
    memcpy(page + bytes - 8, &hash, 8);
}

static bool has_hash(const char *page, size_t bytes)
{
    uint64_t hash = hash_bytes(page, bytes - 8, 0);
    return memcmp(page + bytes - 8, &hash, 8) == 0;
}

void fill_superblock(const struct snapshot *s, char page[SNAP_PAGE])
{
    struct super_page p = {.version = VERSION,
                           .endian = ENDIAN,
                           .file_bytes = s->file_bytes,
                           .id = {s->id[0], s->id[1]},
                           .slots = (uint32_t)s->slots,
                           .payloads = (uint32_t)s->n,
                           .manifest_bytes = s->manifest_bytes,
                           .manifest_hash = s->manifest_hash};
    memcpy(p.magic, super_magic, sizeof p.magic);
    memset(page, 0, SNAP_PAGE);
    memcpy(page, &p, sizeof p);
    put_hash(page, SNAP_PAGE);
}

bool is_superblock(const char *page) { return memcmp(page, super_magic, sizeof super_magic) == 0; }

const char *parse_superblock(struct snapshot *s, const char page[SNAP_PAGE], uint64_t file_bytes)
{
    struct super_page p;
    memcpy(&p, page, sizeof p);
    if (!is_superblock(page) || !has_hash(page, SNAP_PAGE))
        return "its hash is not that of its bytes";
    if (p.version != VERSION || p.endian != ENDIAN)
        return "it is of another version, or another kind of machine";
    if (p.file_bytes != file_bytes)
        return "the file is not as long as it says";
    if (p.slots < 1 || p.slots > MAX_SLOTS || p.payloads < 1 ||
        p.manifest_bytes > MIN(file_bytes, (uint64_t)MAX_MANIFEST) || p.payloads > p.manifest_bytes / 2)
        return "its numbers of slots, payloads or bytes are impossible";
    *s = (struct snapshot){.id = {p.id[0], p.id[1]},
                           .slots = (int)p.slots,
                           .n = p.payloads,
                           .manifest_bytes = p.manifest_bytes,
                           .manifest_hash = p.manifest_hash,
                           .file_bytes = file_bytes,
                           .page = -1};
    place_front(s);
    return s->slots_at > file_bytes ? "the file ends within its commit pages or its manifest" : NULL;
}

/* ---- commit pages ----------------------------------------------------------------------------------------------- */

void fill_commit(const struct snapshot *s, const struct snap_commit *c, const uint64_t *hashes, char *page)
{
    struct commit_page p = {.id = {s->id[0], s->id[1]},
                            .seq = c->seq,
                            .step = c->step,
                            .slot = c->slot,
                            .samples = c->samples,
                            .session = c->session,
                            .payloads = s->n};
    memcpy(p.magic, commit_magic, sizeof p.magic);
    memset(page, 0, s->commit_bytes);
    memcpy(page, &p, sizeof p);
    memcpy(page + sizeof p, hashes, 8 * s->n);
    put_hash(page, s->commit_bytes);
}

const char *parse_commit(const struct snapshot *s, const char *page, struct snap_commit *c, uint64_t *hashes)
{
    struct commit_page p;
    memcpy(&p, page, sizeof p);
    *c = (struct snap_commit){p.seq, p.step, p.slot, p.samples, p.session};
    if (memcmp(p.magic, commit_magic, sizeof p.magic) != 0 || !has_hash(page, s->commit_bytes))
        return "is torn or damaged: its hash is not that of its bytes";
    if (p.id[0] != s->id[0] || p.id[1] != s->id[1])
        return "is of another snapshot file";
    if (p.slot < 1 || p.slot > (uint32_t)s->slots || p.payloads != s->n || p.step > MAX_STEP || p.samples < 0 ||
        p.session < 1)
        return "has impossible numbers";
    memcpy(hashes, page + sizeof p, 8 * s->n);
    return NULL;
}
