/* snapfile.c - a snapshot file: where every byte of it lies, and its newest whole iteration as a checkpoint.
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
 *        8  u32 version 2, u32 0x01020304               8  u64[2] id, as the superblock's
 *       16  u64 file_bytes                             24  u64 seq
 *       24  u64[2] id                                  32  u32 iteration, u32 slot, from 1
 *       40  u32 slots, u32 pieces                      40  i64 sequences trained on, i64 session
 *       48  u64 bytes of the manifest                  56  u64 pieces
 *       56  u64 its XXH64                              64  u64 XXH64 of each piece
 *     4088  u64 XXH64 of all before                  last  u64 XXH64 of all before, behind zeros
 *
 * A commit "page" is as many pages as its hashes take: one up to 503 pieces.  The manifest is a checkpoint's
 * (manifest.c), and says where in a slot each piece lies.  Slots are alike, have no header, and share out what is
 * behind the manifest.
 *
 * Reading.  A superblock that has its hash and the file's length says how long the manifest is, which has the hash that
 * the superblock says.  Of the two commit pages those with their hash count.  With its slot and hashes put into the
 * pieces a commit is a checkpoint like any other; by falling seq, the first one that verifies is the newest whole
 * iteration.  So all pieces are of one iteration: what a later one has already written lies in another slot.  Every
 * size is checked before it is used.  What does not hold is told, a newer commit that is passed over too.
 *
 * Copies of a byte on its way back: from the page cache to the tensor as a whole, from there to the device.  All is
 * read and hashed once here, to choose, and once more by whoever wants it: in between a run may have begun to write
 * the slot again, and then the hash tells.
 */
#include "snap.h"

#include <sys/stat.h>

enum { VERSION = 2, ENDIAN = 0x01020304 };
#define NOTHING_COMMITTED "has no whole iteration: nothing was committed yet"

struct super_page {
    char magic[8];
    uint32_t version, endian;
    uint64_t file_bytes, id[2];
    uint32_t slots, pieces;
    uint64_t manifest_bytes, manifest_hash;
};
struct commit_page {
    char magic[8];
    uint64_t id[2];
    struct snap_commit commit;
    uint64_t pieces;
};
_Static_assert(sizeof(struct super_page) == 64 && sizeof(struct commit_page) == 64, "as drawn above");
static const char super_magic[] = "YARDSNAP", commit_magic[] = "YARDCMIT"; /* without the 0 */

/* ---- places and pages ------------------------------------------------------------------------------------------- */

void place_parts(struct snapshot *s)
{
    s->commit_bytes = round_up(sizeof(struct commit_page) + 8 * s->n + 8, SNAP_PAGE);
    s->manifest_at = commit_at(s, 2);
    s->slots_at = round_up(s->manifest_at + s->manifest_bytes, SNAP_PAGE);
    s->file_bytes = slot_at(s, s->slots + 1);
}

uint64_t commit_at(const struct snapshot *s, int page) { return 2 * SNAP_PAGE + (uint64_t)page * s->commit_bytes; }

uint64_t slot_at(const struct snapshot *s, int slot) { return s->slots_at + (uint64_t)(slot - 1) * s->slot_bytes; }

void free_snapshot(struct snapshot *s)
{
    for (size_t i = 0; i < s->n_damage; i++)
        free(s->damage[i]);
    free(s->damage), free(s);
}

static uint64_t hash_of_page(const char *page, size_t bytes) { return hash_bytes(page, bytes - 8, 0); }

static bool is_page(const char *page, size_t bytes, const char *magic)
{
    uint64_t hash = hash_of_page(page, bytes);
    return memcmp(page, magic, 8) == 0 && memcmp(page + bytes - 8, &hash, 8) == 0;
}

/* The magic and a hash around what it holds already. */
static void finish_page(char *page, size_t bytes, const char *magic)
{
    memcpy(page, magic, 8);
    uint64_t hash = hash_of_page(page, bytes);
    memcpy(page + bytes - 8, &hash, 8);
}

void fill_superblock(const struct snapshot *s, char page[SNAP_PAGE])
{
    struct super_page p = {.version = VERSION,
                           .endian = ENDIAN,
                           .file_bytes = s->file_bytes,
                           .id = {s->id[0], s->id[1]},
                           .slots = (uint32_t)s->slots,
                           .pieces = (uint32_t)s->n,
                           .manifest_bytes = s->manifest_bytes,
                           .manifest_hash = s->manifest_hash};
    memset(page, 0, SNAP_PAGE);
    memcpy(page, &p, sizeof p);
    finish_page(page, SNAP_PAGE, super_magic);
}

const char *parse_superblock(struct snapshot *s, const char page[SNAP_PAGE], uint64_t file_bytes)
{
    struct super_page p;
    memcpy(&p, page, sizeof p);
    if (!is_page(page, SNAP_PAGE, super_magic))
        return "its hash is not that of its bytes";
    if (p.version != VERSION || p.endian != ENDIAN)
        return "it is of another version, or another kind of machine";
    if (p.file_bytes != file_bytes)
        return "the file is not as long as it says";
    if (p.slots < 1 || p.slots > MAX_SLOTS || p.pieces < 1 ||
        p.manifest_bytes > MIN(file_bytes, (uint64_t)MAX_MANIFEST) || p.pieces > p.manifest_bytes / 2)
        return "its numbers of slots, pieces or bytes are impossible";
    *s = (struct snapshot){.id = {p.id[0], p.id[1]},
                           .slots = (int)p.slots,
                           .n = p.pieces,
                           .manifest_bytes = p.manifest_bytes,
                           .manifest_hash = p.manifest_hash,
                           .page = -1};
    place_parts(s);
    if (s->slots_at > file_bytes || (file_bytes - s->slots_at) % ((uint64_t)s->slots * SNAP_PAGE))
        return "the file does not end with a slot";
    s->slot_bytes = (file_bytes - s->slots_at) / (uint64_t)s->slots;
    place_parts(s);
    return NULL;
}

void fill_commit(const struct snapshot *s, const struct snap_commit *c, const uint64_t *hashes, char *page)
{
    struct commit_page p = {.id = {s->id[0], s->id[1]}, .commit = *c, .pieces = s->n};
    memset(page, 0, s->commit_bytes);
    memcpy(page, &p, sizeof p);
    memcpy(page + sizeof p, hashes, 8 * s->n);
    finish_page(page, s->commit_bytes, commit_magic);
}

static const char *parse_commit(const struct snapshot *s, const char *page, struct snap_commit *c)
{
    struct commit_page p;
    memcpy(&p, page, sizeof p);
    *c = p.commit;
    if (!is_page(page, s->commit_bytes, commit_magic))
        return "is torn or damaged: its hash is not that of its bytes";
    if (p.id[0] != s->id[0] || p.id[1] != s->id[1])
        return "is of another snapshot file";
    bool possible = c->slot >= 1 && c->slot <= (uint32_t)s->slots && p.pieces == s->n && c->step <= MAX_STEP &&
                    c->samples >= 0 && c->session >= 1;
    return possible ? NULL : "has impossible numbers";
}

/* ---- reading the front ------------------------------------------------------------------------------------------ */

bool is_snapshot(const char *path)
{
    struct stat status;
    char page[2][SNAP_PAGE] = {{0}};
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return false;
    struct reader *r = open_reader(path);
    for (uint64_t k = 0; k < 2 && r->size >= (k + 1) * SNAP_PAGE; k++)
        read_at(r, page[k], SNAP_PAGE, k * SNAP_PAGE);
    bool empty = r->size == 0;
    close_reader(r);
    return empty || memcmp(page[0], super_magic, 8) == 0 || memcmp(page[1], super_magic, 8) == 0;
}

#define NOTE_DAMAGE(s, ...) (void)(*APPEND((s)->damage, (s)->n_damage, (s)->cap_damage) = format_string(__VA_ARGS__))

static struct snapshot *read_superblocks(struct reader *r)
{
    char page[SNAP_PAGE];
    const char *wrong[2];
    struct snapshot found[2], *s = allocate(1, sizeof *s);
    if (r->size == 0) /* a run that was killed just now had only made it */
        fail(EXIT_FAILED, "%s " NOTHING_COMMITTED, r->path);
    if (r->size < 2 * SNAP_PAGE)
        fail(EXIT_FAILED, "%s has %llu bytes, which is no snapshot: it was cut off", r->path,
             (unsigned long long)r->size);
    for (int k = 0; k < 2; k++) {
        read_at(r, page, SNAP_PAGE, (uint64_t)k * SNAP_PAGE);
        wrong[k] = parse_superblock(&found[k], page, r->size);
    }
    if (wrong[0] && wrong[1])
        fail(EXIT_FAILED, "%s is damaged or no snapshot: superblock 0: %s; superblock 1: %s", r->path, wrong[0],
             wrong[1]);
    *s = found[wrong[0] != NULL];
    for (int k = 0; k < 2; k++)
        if (wrong[k])
            NOTE_DAMAGE(s, "%s: superblock %d is damaged: %s; superblock %d is used", r->path, k, wrong[k], 1 - k);
    return s;
}

/* The manifest, whose pieces lie in no slot yet. */
static struct checkpoint *read_front(struct reader *r)
{
    struct snapshot *s = read_superblocks(r);
    size_t n = (size_t)s->manifest_bytes;
    char *text = allocate(n + 1, 1);
    read_at(r, text, n, s->manifest_at);
    if (hash_bytes(text, n, 0) != s->manifest_hash)
        fail(EXIT_FAILED, "%s is damaged: its manifest, bytes %llu to %llu, has not the hash that the superblock says",
             r->path, (unsigned long long)s->manifest_at, (unsigned long long)(s->manifest_at + n));
    struct checkpoint *c = parse_manifest(r->path, text, n, s);
    free(text);
    return c;
}

/* ---- the newest whole iteration ---------------------------------------------------------------------------------- */

/* With the commit's hashes, and its slot's place, its pieces are those of a checkpoint.  Are they? */
static bool is_whole(struct checkpoint *c, const struct snap_commit *commit, const char *page)
{
    struct snapshot *s = c->snapshot;
    const char *hash = page + sizeof(struct commit_page);
    uint64_t begin = slot_at(s, (int)commit->slot), before = s->newest.slot ? slot_at(s, (int)s->newest.slot) : 0;
    size_t damage = s->n_damage;
    s->newest = *commit;
    for (size_t i = 0; i < c->pieces->n; i++)
        for (size_t k = 0; k < c->pieces->tensor[i].n; k++, hash += 8) {
            memcpy(&c->pieces->tensor[i].piece[k].hash, hash, 8);
            c->pieces->tensor[i].piece[k].offset += begin - before;
        }
    for (size_t i = 0; i < c->pieces->n; i++) {
        struct problem *p = verify_tensor(c, i);
        if (p)
            NOTE_DAMAGE(s, "iteration %u is torn or damaged: %s", commit->step, p->sentence);
        free(p);
    }
    return s->n_damage == damage;
}

struct checkpoint *read_snapshot(const char *path)
{
    struct reader *r = open_reader(path);
    struct checkpoint *c = read_front(r);
    struct snapshot *s = c->snapshot;
    struct snap_commit commit[2];
    const char *wrong[2];
    char *page[2];
    for (int k = 0; k < 2; k++) {
        page[k] = allocate(s->commit_bytes, 1);
        read_at(r, page[k], s->commit_bytes, commit_at(s, k));
        wrong[k] = parse_commit(s, page[k], &commit[k]);
        bool unused = page[k][0] == 0 && memcmp(page[k], page[k] + 1, s->commit_bytes - 1) == 0; /* all zeros */
        if (wrong[k] && !unused)
            NOTE_DAMAGE(s, "%s: commit page %d, at byte %llu, %s", r->path, k, (unsigned long long)commit_at(s, k),
                        wrong[k]);
        s->last_seq = MAX(s->last_seq, wrong[k] ? 0 : commit[k].seq);
    }
    close_reader(r);
    int newer = wrong[0] || (!wrong[1] && commit[1].seq > commit[0].seq);
    for (int i = 0; i < 2 && s->page < 0; i++) {
        int k = newer ^ i;
        s->page = !wrong[k] && is_whole(c, &commit[k], page[k]) ? k : -1;
    }
    if (s->page < 0)
        s->newest = (struct snap_commit){0};
    c->step = s->newest.step;
    c->samples = s->newest.samples;
    c->session = s->newest.session;
    free(page[0]), free(page[1]);
    return c;
}

struct checkpoint *open_snapshot(const char *path)
{
    struct checkpoint *c = read_snapshot(path);
    const struct snapshot *s = c->snapshot;
    if (!s->newest.slot)
        fail(EXIT_FAILED, "%s %s%s", path, s->n_damage ? "has no whole iteration: " : NOTHING_COMMITTED,
             s->n_damage ? s->damage[0] : "");
    return c;
}
