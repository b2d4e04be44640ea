/* snapread.c - a snapshot file as a checkpoint: its newest whole iteration.
 *
 * A superblock that has its hash and the file's length says how long the manifest is, which has the hash that the
 * superblock says.  Of the two commit pages those with their hash count; by falling seq, the first of which every
 * payload has the hash that it says is the newest whole iteration.  So all payloads are of one iteration: what a later
 * one has already written lies in another slot.  Every size is checked before it is used.  What does not hold is told,
 * a newer commit that is passed over too.
 *
 * Copies of a byte on its way back: from the page cache to the tensor as a whole, from there to the device.  All is
 * read and hashed once here, to choose, and read once more by whoever wants it.  In between a run may go on writing the
 * file; but it touches the slot of a commit only when a newer one is durable.  So who has read looks once more at the
 * commit pages: while there is no newer commit, what was read is what was hashed.
 */
#include "snap.h"

#include <sys/file.h>
#include <sys/stat.h>

enum { WINDOW = 1 << 18 };
#define NOTHING_COMMITTED "has no whole iteration: nothing was committed yet"

#define NOTE_DAMAGE(s, ...) (void)(*APPEND((s)->damage, (s)->n_damage, (s)->cap_damage) = format_string(__VA_ARGS__))

/* ---- the front -------------------------------------------------------------------------------------------------- */

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
    return empty || is_superblock(page[0]) || is_superblock(page[1]);
}

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

/* ---- payloads --------------------------------------------------------------------------------------------------- */

struct lying { /* a piece in a slot */
    struct piece *piece;
    const struct kept_tensor *tensor;
    uint64_t end;
};
struct lyings {
    struct lying *all; /* by offset */
    size_t n;
};

ORDER(by_offset, struct lying, COMPARE(a->piece->offset, b->piece->offset))

static struct lyings sort_pieces(const struct checkpoint *c)
{
    struct lyings l = {0};
    size_t cap = 0;
    for (size_t i = 0; i < c->pieces->n; i++)
        for (size_t k = 0; k < c->pieces->tensor[i].n; k++) {
            struct piece *p = &c->pieces->tensor[i].piece[k];
            *APPEND(l.all, l.n, cap) =
                (struct lying){p, &c->pieces->tensor[i], p->offset + ELEMENT_BYTES * piece_elements(p)};
        }
    SORT(l.all, l.n, by_offset);
    for (size_t i = 1; i < l.n; i++)
        if (l.all[i].piece->offset < l.all[i - 1].end)
            fail(EXIT_FAILED, "%s is damaged or not ours: pieces of %s, %s, and %s, %s, overlap in a slot", c->path,
                 l.all[i - 1].tensor->name, kept_name[l.all[i - 1].tensor->role], l.all[i].tensor->name,
                 kept_name[l.all[i].tensor->role]);
    return l;
}

/* Reads it from that slot. */
static uint64_t hash_payload(struct reader *r, const struct snapshot *s, int slot, const struct stored_payload *p,
                             char *window)
{
    struct hasher hash;
    hash_begin(&hash, 0);
    for (uint64_t done = 0, n; done < p->bytes; done += n) {
        n = MIN(WINDOW, p->bytes - done);
        read_at(r, window, (size_t)n, slot_at(s, slot) + p->at + done);
        hash_add(&hash, window, (size_t)n);
    }
    return hash_end(&hash);
}

static void note_payload(struct reader *r, struct snapshot *s, const struct snap_commit *c, size_t i, uint64_t hash,
                         const struct lyings *l)
{
    size_t k;
    const struct stored_payload *p = &s->payload[i];
    uint64_t at = slot_at(s, (int)c->slot) + p->at;
    FIND_FIRST(k, l->n, l->all[k].piece->offset < p->at);
    const struct lying *first = k < l->n ? &l->all[k] : &l->all[0];
    NOTE_DAMAGE(s,
                "%s: iteration %u is torn or damaged: payload %zu of %zu, from %s, %s, of rank %d on, bytes %llu to "
                "%llu, has hash %016llx, its commit says %016llx",
                r->path, c->step, i, s->n, first->tensor->name, kept_name[first->tensor->role], first->piece->rank,
                (unsigned long long)at, (unsigned long long)(at + p->bytes), (unsigned long long)hash,
                (unsigned long long)p->hash);
}

static bool is_whole(struct reader *r, struct snapshot *s, const struct snap_commit *c, const uint64_t *hashes,
                     const struct lyings *l)
{
    bool whole = true;
    char *window = allocate((size_t)MIN(WINDOW, s->slot_bytes), 1);
    for (size_t i = 0; i < s->n; i++) {
        s->payload[i].hash = hashes[i];
        uint64_t hash = hash_payload(r, s, (int)c->slot, &s->payload[i], window);
        if (hash != hashes[i])
            note_payload(r, s, c, i, hash, l);
        whole &= hash == hashes[i];
    }
    free(window);
    return whole;
}

/* ---- commits ---------------------------------------------------------------------------------------------------- */

struct seen { /* on a commit page */
    struct snap_commit commit;
    uint64_t *hashes;
    const char *wrong; /* NULL: it is valid */
    bool unused;
};

static struct seen read_page(struct reader *r, const struct snapshot *s, int k)
{
    struct seen c = {.hashes = allocate(s->n, sizeof *c.hashes)};
    char *page = allocate(s->commit_bytes, 1);
    read_at(r, page, s->commit_bytes, commit_at(s, k));
    c.wrong = parse_commit(s, page, &c.commit, c.hashes);
    c.unused = page[0] == 0 && memcmp(page, page + 1, s->commit_bytes - 1) == 0; /* all zeros */
    free(page);
    return c;
}

void expect_untouched(const struct snapshot *s, struct reader *r)
{
    bool same = false, newer = false;
    for (int k = 0; k < 2; k++) {
        struct seen c = read_page(r, s, k);
        same |= !c.wrong && k == s->page && c.commit.seq == s->newest.seq;
        newer |= !c.wrong && c.commit.seq > s->last_seq;
        free(c.hashes);
    }
    if (!same || newer)
        fail(EXIT_FAILED,
             "%s was written while it was read: a run stores snapshots there; read it once more, or copy it", r->path);
}

static void choose(struct reader *r, struct checkpoint *c)
{
    struct snapshot *s = c->snapshot;
    struct lyings l = sort_pieces(c);
    struct seen seen[2] = {read_page(r, s, 0), read_page(r, s, 1)};
    bool second = !seen[1].wrong && (seen[0].wrong || seen[1].commit.seq > seen[0].commit.seq);
    for (int k = 0; k < 2; k++)
        if (seen[k].wrong && !seen[k].unused)
            NOTE_DAMAGE(s, "%s: commit page %d, at byte %llu, %s", r->path, k, (unsigned long long)commit_at(s, k),
                        seen[k].wrong);
    for (int i = 0; i < 2; i++) {
        const struct seen *x = &seen[i ^ second];
        if (x->wrong)
            continue;
        s->last_seq = MAX(s->last_seq, x->commit.seq);
        if (!s->newest.slot && is_whole(r, s, &x->commit, x->hashes, &l))
            s->newest = x->commit, s->page = i ^ second;
    }
    for (size_t i = 0; s->newest.slot && i < l.n; i++)
        l.all[i].piece->offset += slot_at(s, (int)s->newest.slot);
    free(seen[0].hashes), free(seen[1].hashes), free(l.all);
}

struct checkpoint *read_snapshot(const char *path)
{
    struct reader *r = open_reader(path);
    struct checkpoint *c = read_front(r);
    choose(r, c);
    c->step = c->snapshot->newest.step;
    c->samples = c->snapshot->newest.samples;
    c->session = c->snapshot->newest.session;
    close_reader(r);
    return c;
}

static bool is_in_use(const char *path)
{
    struct reader *r = open_reader(path);
    bool locked = flock(r->fd, LOCK_SH | LOCK_NB) != 0;
    close_reader(r);
    return locked;
}

struct checkpoint *open_snapshot(const char *path)
{
    struct checkpoint *c = read_snapshot(path);
    const struct snapshot *s = c->snapshot;
    if (!s->newest.slot)
        fail(EXIT_FAILED, "%s %s%s%s", path, s->n_damage ? "has no whole iteration: " : NOTHING_COMMITTED,
             s->n_damage ? s->damage[0] : "",
             is_in_use(path) ? "; a run is writing it: read it when that has ended, or once more" : "");
    return c;
}
