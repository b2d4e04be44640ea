/* snapfile.c - a snapshot file: where every byte of it lies, and its newest recoverable iteration as a checkpoint.
 *
 *     0        4096     8192                                                           file_bytes
 *     | page 0 | page 1 | manifest ... | slot 1 ................... | slot 2 ... | ... |
 *                                      /                            \
 *                                      | payload 0 . | payload 1 .. | hashes |           in a slot
 *
 * All begin on multiples of 4096 bytes; numbers are little endian.  A payload is what one update wrote, and has pieces:
 * parts of one tensor each.
 *
 *     page       two: a commit goes to the one that the newest commit is not on
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
 *
 * Reading.  A page counts if it has its hash, and the file's length.  With its slot and hashes put into the manifest's
 * pieces a commit is a checkpoint like any other; by falling seq, the first one that verifies is the newest
 * recoverable iteration.  So all pieces are of one iteration: what a later one has already written lies in another
 * slot.  Every size is checked before it is used.  What does not hold is told, a newer commit that is passed over too.
 *
 * Copies of a byte on its way back: from the page cache to memory, from there to the tensor, and to the device.  All is
 * read and hashed once here, to choose, and once more by whoever wants it: in between a run may have begun to write
 * the slot again, and then the hash tells.
 */
#include "snapshot.h"

#include <errno.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

enum { VERSION = 3, ENDIAN = 0x01020304 };
#define NOTHING_COMMITTED "has no whole iteration: nothing was committed yet"

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

/* Those of a range get their places in its payload, which begins at byte `at` of a slot; their elements are returned.
 */
static size_t add_stored(const struct model *m, struct kept_tensor *t, const struct state_range *r, uint64_t at)
{
    size_t elements = 0, first = t->n;
    add_pieces(m, t, r->rank, (struct shard){r->begin, r->end});
    for (struct piece *p = t->piece + first; p < t->piece + t->n; p++) {
        p->offset = at + (uint64_t)t->role * payload_bytes(r) / KEPT_ROLES + ELEMENT_BYTES * p->at;
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
        uint64_t at = 0;
        size_t elements = 0;
        for (const struct state_range *r = plan->range; r < plan->range + plan->n; r++) {
            elements += r->unit == t->unit ? add_stored(m, t, r, at) : 0;
            at += payload_bytes(r);
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

uint64_t slot_at(const struct snapfile *s, int slot) { return s->slots_at + (uint64_t)(slot - 1) * s->in.bytes; }

uint64_t hashes_at(const struct snapfile *s, int slot)
{
    return slot_at(s, slot + 1) - round_up(sizeof(uint64_t) * s->in.n, SNAP_PAGE);
}

static uint64_t hash_of_page(const char *page) { return hash_bytes(page, SNAP_PAGE - 8, 0); }

void fill_page(const struct snapfile *s, const struct snap_commit *c, char page[SNAP_PAGE])
{
    struct disk_page p = {.version = VERSION,
                          .endian = ENDIAN,
                          .file_bytes = slot_at(s, s->slots + 1),
                          .run = s->run,
                          .slots = (uint32_t)s->slots,
                          .pieces = (uint32_t)s->in.n,
                          .manifest_bytes = s->manifest_bytes,
                          .manifest_hash = s->manifest_hash,
                          .commit = *c};
    memcpy(p.magic, magic, sizeof p.magic);
    memset(page, 0, SNAP_PAGE);
    memcpy(page, &p, sizeof p);
    uint64_t hash = hash_of_page(page);
    memcpy(page + SNAP_PAGE - 8, &hash, 8);
}

/* What is read back may be anything.  NULL, or what is wrong. */
static const char *parse_page(struct snapfile *s, const char page[SNAP_PAGE], const struct reader *r)
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
        p.manifest_bytes > MIN(file_bytes, (uint64_t)MAX_MANIFEST) || c->slot > p.slots || c->step > MAX_STEP ||
        c->samples < 0 || (uint64_t)c->session > INT64_MAX / 2)
        return "it has impossible numbers";
    *s = (struct snapfile){.in = {.store = &snapshot_store, .n = p.pieces},
                           .run = p.run,
                           .slots = (int)p.slots,
                           .manifest_bytes = p.manifest_bytes,
                           .manifest_hash = p.manifest_hash,
                           .slots_at = MANIFEST_AT + round_up(p.manifest_bytes, SNAP_PAGE),
                           .newest = *c};
    uint64_t least = s->slots_at + (uint64_t)s->slots * round_up(sizeof(uint64_t) * s->in.n, SNAP_PAGE);
    if (file_bytes < least || (file_bytes - s->slots_at) % ((uint64_t)s->slots * SNAP_PAGE))
        return "the file does not end with a slot";
    s->in.bytes = (file_bytes - s->slots_at) / (uint64_t)s->slots;
    return NULL;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

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

#define NOTE_DAMAGE(s, ...)                                                                                            \
    (void)(*APPEND((s)->in.damage, (s)->in.n_damage, (s)->in.cap_damage) = format_string(__VA_ARGS__))

/* The pieces get the commit's hashes and its slot's place, and are then those of a checkpoint.  Is it whole? */
static bool install_commit(struct reader *r, struct checkpoint *c, const struct snap_commit *commit)
{
    struct snapfile *s = snapfile_of(c);
    uint64_t *hashes = allocate(s->in.n, sizeof *hashes), *hash = hashes;
    uint64_t tried = s->newest.slot ? slot_at(s, (int)s->newest.slot) : 0; /* offsets are moved from there */
    size_t damage = s->in.n_damage;
    s->newest = *commit;
    read_at(r, hashes, sizeof *hashes * s->in.n, hashes_at(s, (int)commit->slot));
    if (hash_bytes(hashes, sizeof *hashes * s->in.n, 0) != commit->hash)
        NOTE_DAMAGE(s, "%s: iteration %u is torn or damaged: the hashes at byte %llu are not those of its commit",
                    c->path, commit->step, (unsigned long long)hashes_at(s, (int)commit->slot));
    for (size_t i = 0; i < c->pieces->n; i++)
        for (size_t k = 0; k < c->pieces->tensor[i].n; k++) {
            c->pieces->tensor[i].piece[k].hash = *hash++;
            c->pieces->tensor[i].piece[k].offset += slot_at(s, (int)commit->slot) - tried;
        }
    for (size_t i = 0; i < c->pieces->n && s->in.n_damage == damage; i++) {
        struct problem *p = verify_tensor(c, i);
        if (p)
            NOTE_DAMAGE(s, "iteration %u is torn or damaged: %s", commit->step, p->sentence);
        free(p);
    }
    free(hashes);
    return s->in.n_damage == damage;
}

/* By a run, which has it locked. */
static bool is_written(struct reader *r)
{
    if (flock(r->fd, LOCK_SH | LOCK_NB) != 0)
        return errno == EWOULDBLOCK;
    flock(r->fd, LOCK_UN);
    return false;
}

/* What is being written may be met half: in a moment it is whole.  What nobody writes stays as it is. */
static const char *read_page(struct reader *r, bool live, int k, struct snapfile *found)
{
    enum { TRIES = 200, WAIT_NS = 1000000 };
    char page[SNAP_PAGE];
    const char *wrong;
    for (int tries = 0;; tries++) {
        read_at(r, page, SNAP_PAGE, (uint64_t)k * SNAP_PAGE);
        wrong = parse_page(found, page, r);
        if (!wrong || !live || tries == TRIES)
            return wrong;
        live = is_written(r); /* else once more: a run may just have ended */
        if (live)
            nanosleep(&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
    }
}

/* wrong[k]: why page k does not count; NULL: it does.  The one with the newer commit, if any counts. */
static int read_pages(struct reader *r, bool live, struct snapfile found[2], const char *wrong[2])
{
    for (int k = 0; k < 2; k++)
        wrong[k] = read_page(r, live, k, &found[k]);
    return wrong[0] || (!wrong[1] && found[1].newest.seq > found[0].newest.seq);
}

struct snap_commit look_for_commit(const char *path)
{
    struct snapfile found[2] = {0};
    const char *wrong[2];
    if (!is_snapshot(path))
        return (struct snap_commit){0};
    struct reader *r = open_reader(path);
    int newer = r->size < MANIFEST_AT ? 0 : read_pages(r, true, found, wrong);
    close_reader(r);
    return found[newer].newest; /* of a page that does not count nothing was taken */
}

/* Has a run committed something since then? */
static bool has_moved_on(struct reader *r, const struct snapfile before[2])
{
    struct snapfile now[2] = {0};
    const char *wrong[2];
    read_pages(r, true, now, wrong);
    return now[0].newest.seq != before[0].newest.seq || now[1].newest.seq != before[1].newest.seq;
}

/* live: a run may be writing.  *overtaken: something does not match, and meanwhile it has committed anew: it may have
 * written the slot that was read. */
static struct checkpoint *read_once(const char *path, bool live, bool *overtaken)
{
    const char *wrong[2];
    struct snapfile found[2] = {0}, *s = allocate(1, sizeof *s); /* zeros: has_moved_on() compares both */
    struct reader *r = open_reader(path);
    if (r->size == 0) /* a run that was killed just now had only made it */
        fail(EXIT_FAILED, "%s " NOTHING_COMMITTED, path);
    if (r->size < MANIFEST_AT)
        fail(EXIT_FAILED, "%s has %llu bytes, which is no snapshot: it was cut off", path, (unsigned long long)r->size);
    int newer = read_pages(r, live, found, wrong);
    if (wrong[0] && wrong[1])
        fail(EXIT_FAILED, "%s is damaged or no snapshot: page 0: %s; page 1: %s", path, wrong[0], wrong[1]);
    *s = found[wrong[0] != NULL];
    s->newest = (struct snap_commit){0};
    s->page = -1;
    size_t n = (size_t)s->manifest_bytes;
    char *manifest = allocate(n + 1, 1);
    read_at(r, manifest, n, MANIFEST_AT);
    if (hash_bytes(manifest, n, 0) != s->manifest_hash)
        fail(EXIT_FAILED, "%s is damaged: its manifest, bytes %d to %zu, has not the hash that its pages say", path,
             MANIFEST_AT, MANIFEST_AT + n);
    struct checkpoint *c = parse_manifest(path, manifest, n, &s->in); /* its pieces lie in no slot yet */
    size_t pieces = count_pieces(c->pieces);
    if (pieces != s->in.n)
        fail(EXIT_FAILED, "%s is damaged or not ours: it has %zu pieces, its pages say %zu", path, pieces, s->in.n);
    free(manifest);
    for (int k = 0; k < 2; k++)
        if (wrong[k])
            NOTE_DAMAGE(s, "%s: page %d is torn or damaged: %s", path, k, wrong[k]);
        else
            s->last_seq = MAX(s->last_seq, found[k].newest.seq);
    for (int i = 0; i < 2 && s->page < 0; i++) {
        int k = newer ^ i;
        s->page = !wrong[k] && found[k].newest.slot && install_commit(r, c, &found[k].newest) ? k : -1;
    }
    *overtaken = live && s->in.n_damage && has_moved_on(r, found);
    close_reader(r);
    if (s->page < 0)
        s->newest = (struct snap_commit){0};
    c->run = s->page < 0 || !*c->program ? 0 : found[s->page].run; /* an older yard had something else there */
    c->step = s->newest.step;
    c->samples = s->newest.samples;
    c->session = s->newest.session;
    return c;
}

struct checkpoint *read_snapshot(const char *path)
{
    enum { TRIES = 100 };
    bool overtaken = false;
    struct checkpoint *c = read_once(path, true, &overtaken);
    for (int tries = 1; overtaken && tries < TRIES; tries++) {
        free_checkpoint(c);
        c = read_once(path, true, &overtaken);
    }
    return c;
}

struct checkpoint *read_own_snapshot(const char *path)
{
    bool overtaken;
    return read_once(path, false, &overtaken);
}

struct checkpoint *open_snapshot(const char *path)
{
    struct checkpoint *c = read_snapshot(path);
    const struct snapfile *s = snapfile_of(c);
    if (!s->newest.slot)
        fail(EXIT_FAILED, "%s %s%s", path, s->in.n_damage ? "has no whole iteration: " : NOTHING_COMMITTED,
             s->in.n_damage ? s->in.damage[0] : "");
    return c;
}

/* ---- to others a checkpoint in another form ---------------------------------------------------------------------- */

static json_t *snapshot_json(const struct checkpoint *c)
{
    const struct snapfile *s = snapfile_of(c);
    return json_pack("{s:i, s:i, s:I, s:I}", "slots", s->slots, "slot", (int)s->newest.slot, "commit",
                     (json_int_t)s->newest.seq, "slot_bytes", (json_int_t)s->in.bytes);
}

static void print_snapshot(const struct checkpoint *c)
{
    const struct snapfile *s = snapfile_of(c);
    printf("snapshot    slot %u of %d, %zu pieces, %s a slot; commit %llu\n", s->newest.slot, s->slots, s->in.n,
           format_bytes((char[32]){0}, (double)s->in.bytes), (unsigned long long)s->newest.seq);
}

const struct store snapshot_store = {.name = "snapshot",
                                     .place = "a slot",
                                     .advice = "or a run writes there: read it once more, or copy it",
                                     .is_ours = is_snapshot,
                                     .open = open_snapshot,
                                     .to_json = snapshot_json,
                                     .print = print_snapshot};
