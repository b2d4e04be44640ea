/* snapfile_read.c - reads the newest iteration of a snapshot file that is whole.
 *
 *     page 0     commit 5, slot 1       the newer page names the newest commit: has slot 1 the hashes that it should?
 *     page 1     commit 4, slot 2       if not, the older page and its slot are checked in the same way
 *     slot 1     5 5 5 hashes           each piece is compared with its hash
 *     slot 2     4 4 4 hashes
 *
 * A page is valid if its own hash and the file's length are right.  A valid page, the hashes in its slot, and the
 * pieces of the manifest make a checkpoint like any other.  The valid page with the higher seq is tried
 * first, and the first that verifies is the newest recoverable iteration.  All its pieces are of one iteration, since a
 * later iteration writes to another slot.  Every size is checked before it is used.  A warning tells what is damaged,
 * and when a newer commit is passed over.
 *
 * Copies of a byte on its way back: from the page cache to memory, from there to the tensor, and to the device.  All is
 * read and hashed once here, to choose the commit, and once more when it is loaded: in between a run may have begun to
 * write the slot again, and then the hash shows it.
 */
#include "snapfile_parts.h"
#include "techniques/checkpoint/files.h"
#include "trainer/base/module.h"

#include <errno.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define NOTHING_COMMITTED "has no whole step: nothing was committed yet"

/* ---- the pages --------------------------------------------------------------------------------------------------- */

/* Is a run writing the file?  Then it has it locked. */
static bool is_written(struct reader *reader)
{
    if (flock(reader->fd, LOCK_SH | LOCK_NB) != 0)
        return errno == EWOULDBLOCK;
    flock(reader->fd, LOCK_UN);
    return false;
}

/* May a run be writing the file while it is read? */
enum writers { RUN_MAY_WRITE, NO_RUN_WRITES };

/* Reads page k, and returns why it is not valid, or NULL.  A page may be read half-written while a run writes it, so it
 * is read again until it is whole.  Where no run writes, a bad page stays bad. */
static const char *read_page(struct reader *reader, enum writers writers, int k, struct snapfile *found)
{
    bool live = writers == RUN_MAY_WRITE;
    enum { TRIES = 200 };
    const struct timespec wait = {.tv_nsec = 1000000}; /* 1 ms */
    char page[SNAPFILE_PAGE];
    const char *wrong;
    for (int tries = 0;; tries++) {
        read_at(reader, page, SNAPFILE_PAGE, (uint64_t)k * SNAPFILE_PAGE);
        wrong = parse_page(found, page, reader);
        if (!wrong || !live || tries == TRIES)
            return wrong;
        live = is_written(reader); /* false: the page is read once more, since a run may just have ended */
        if (live)
            nanosleep(&wait, NULL);
    }
}

struct pages {               /* the two pages of a file */
    struct snapfile says[2]; /* what each of them says of the file */
    const char *wrong[2];    /* why it is not valid; NULL: it is */
};

static struct pages read_pages(struct reader *reader, enum writers writers)
{
    struct pages pages = {0};
    for (int k = 0; k < 2; k++)
        pages.wrong[k] = read_page(reader, writers, k, &pages.says[k]);
    return pages;
}

/* The valid page that has the newer commit; NONE: no page is valid. */
static int newer_page(const struct pages *pages)
{
    if (pages->wrong[0] && pages->wrong[1])
        return NONE;
    if (pages->wrong[0])
        return 1;
    if (pages->wrong[1])
        return 0;
    return pages->says[1].newest.seq > pages->says[0].newest.seq ? 1 : 0;
}

/* Has a run committed something since `before` was read? */
static bool has_moved_on(struct reader *reader, const struct pages *before)
{
    struct pages now = read_pages(reader, RUN_MAY_WRITE);
    for (int k = 0; k < 2; k++)
        if (now.says[k].newest.seq != before->says[k].newest.seq)
            return true;
    return false;
}

struct snapfile_commit look_for_commit(const char *path)
{
    struct snapfile_commit newest = {0};
    if (!is_snapshot(path))
        return newest;
    struct reader *reader = open_reader(path);
    if (reader->size >= MANIFEST_AT) {
        struct pages pages = read_pages(reader, RUN_MAY_WRITE);
        int newer = newer_page(&pages);
        if (newer != NONE)
            newest = pages.says[newer].newest;
    }
    close_reader(reader);
    return newest;
}

/* ---- the newest commit that is whole ----------------------------------------------------------------------------- */

PRINTF_LIKE(2, 3) static void note_damage(struct snapfile *snapfile, const char *format, ...)
{
    struct single_file *base = &snapfile->base;
    va_list arguments;
    va_start(arguments, format);
    GROW(base->damage, base->cap_damage, base->n_damage + 1);
    base->damage[base->n_damage++] = format_arguments(format, arguments);
    va_end(arguments);
}

/* Gives the pieces their hashes, which are in the manifest's order, and moves their places from slot `before` to
 * `slot`.  before: NO_SLOT: so far the places count from 0. */
static void put_pieces_in_slot(struct checkpoint *checkpoint, const uint64_t *hashes, uint32_t before, uint32_t slot)
{
    const struct snapfile *snapfile = snapfile_of(checkpoint);
    uint64_t from = before != NO_SLOT ? slot_at(snapfile, (int)before) : 0;
    uint64_t to = slot_at(snapfile, (int)slot);
    size_t n = 0;
    for (size_t i = 0; i < checkpoint->cut->n; i++) {
        struct kept_tensor *tensor = &checkpoint->cut->tensors[i];
        for (size_t k = 0; k < tensor->n_pieces; k++) {
            tensor->pieces[k].hash = hashes[n++];
            tensor->pieces[k].file_offset += to - from;
        }
    }
}

/* Makes `checkpoint` that of this commit: its pieces get the hashes and the places that they have in the commit's slot.
 * Returns true if it is whole. */
static bool install_commit(struct reader *reader, struct checkpoint *checkpoint, const struct snapfile_commit *commit)
{
    struct snapfile *snapfile = snapfile_of(checkpoint);
    uint64_t *hashes = allocate(snapfile->base.n, sizeof *hashes);
    uint32_t slot_before = snapfile->newest.slot;
    size_t damage_before = snapfile->base.n_damage;
    snapfile->newest = *commit;
    read_at(reader, hashes, sizeof *hashes * snapfile->base.n, hashes_at(snapfile, (int)commit->slot));
    if (hash_bytes(hashes, sizeof *hashes * snapfile->base.n, 0) != commit->hash)
        note_damage(snapfile, "%s: step %u is torn or damaged: the hashes at byte %llu do not match its commit",
                    checkpoint->path, commit->step, (unsigned long long)hashes_at(snapfile, (int)commit->slot));
    put_pieces_in_slot(checkpoint, hashes, slot_before, commit->slot);
    for (size_t i = 0; i < checkpoint->cut->n && snapfile->base.n_damage == damage_before; i++) {
        struct problem *problem = verify_tensor(checkpoint, i);
        if (problem)
            note_damage(snapfile, "step %u is torn or damaged: %s", commit->step, problem->sentence);
        free(problem);
    }
    free(hashes);
    return snapfile->base.n_damage == damage_before;
}

/* The checkpoint that the file's manifest describes, whose pieces lie in no slot yet.  It owns snapfile. */
static struct checkpoint *read_description(struct reader *reader, const char *path, struct snapfile *snapfile)
{
    size_t n = (size_t)snapfile->manifest_bytes;
    char *manifest = allocate(n + 1, 1);
    read_at(reader, manifest, n, MANIFEST_AT);
    if (hash_bytes(manifest, n, 0) != snapfile->manifest_hash)
        fail(EXIT_FAILED,
             "%s is damaged: its manifest, bytes %d to %zu, does not match the hash in its pages; use a checkpoint "
             "or another snapshot",
             path, MANIFEST_AT, MANIFEST_AT + n);
    struct checkpoint *checkpoint = parse_manifest(path, manifest, n, &snapfile->base);
    size_t pieces = count_pieces(checkpoint->cut);
    if (pieces != snapfile->base.n)
        fail(EXIT_FAILED,
             "%s is damaged, or not a snapshot of yard: its manifest has %zu pieces, but its pages say %zu; use a "
             "checkpoint or another snapshot",
             path, pieces, snapfile->base.n);
    free(manifest);
    return checkpoint;
}

/* Notes which pages are damaged, and the highest seq of the others. */
static void note_pages(struct snapfile *snapfile, const char *path, const struct pages *pages)
{
    for (int k = 0; k < 2; k++)
        if (pages->wrong[k])
            note_damage(snapfile, "%s: page %d is torn or damaged: %s", path, k, pages->wrong[k]);
        else
            snapfile->last_seq = MAX(snapfile->last_seq, pages->says[k].newest.seq);
}

/* Gives the checkpoint the newest commit that is whole.  Returns the page that has it; NONE: no commit is whole. */
static int choose_commit(struct reader *reader, struct checkpoint *checkpoint, const struct pages *pages)
{
    int newer = newer_page(pages);
    const int order[2] = {newer, 1 - newer};
    for (int i = 0; i < 2; i++) {
        int k = order[i];
        if (pages->wrong[k] || pages->says[k].newest.slot == NO_SLOT)
            continue;
        bool whole = install_commit(reader, checkpoint, &pages->says[k].newest);
        if (whole)
            return k;
    }
    return NONE;
}

/* Reads the pages.  Fails where none of them is valid. */
static struct pages read_valid_pages(struct reader *reader, enum writers writers)
{
    if (reader->size == 0) /* a run made the file, and was killed before it wrote to it */
        fail(EXIT_FAILED, "%s " NOTHING_COMMITTED, reader->path);
    if (reader->size < MANIFEST_AT)
        fail(EXIT_FAILED,
             "%s was cut off: it has %llu bytes, and any snapshot has at least %d; use a checkpoint or another "
             "snapshot",
             reader->path, (unsigned long long)reader->size, MANIFEST_AT);
    struct pages pages = read_pages(reader, writers);
    if (newer_page(&pages) == NONE)
        fail(EXIT_FAILED, "%s is damaged, or not a snapshot: page 0: %s; page 1: %s", reader->path, pages.wrong[0],
             pages.wrong[1]);
    return pages;
}

/* Copies to the checkpoint what the newest commit says of it; where no commit is whole, all of it is 0. */
static void take_facts(struct checkpoint *checkpoint, const struct pages *pages)
{
    struct snapfile *snapfile = snapfile_of(checkpoint);
    checkpoint->run_id = NOT_KNOWN;
    if (snapfile->page == NONE)
        snapfile->newest = (struct snapfile_commit){0};
    else if (*checkpoint->program) /* versions that did not write their name had other bytes in the run's place */
        checkpoint->run_id = pages->says[snapfile->page].run_id;
    checkpoint->step = snapfile->newest.step;
    checkpoint->samples = snapfile->newest.samples;
    checkpoint->session = snapfile->newest.session;
}

/* Reads the newest commit that is whole.  *overtaken becomes true if something does not match, and a run has committed
 * anew meanwhile: the run may have written the slot that was read. */
static struct checkpoint *read_once(const char *path, enum writers writers, bool *overtaken)
{
    struct reader *reader = open_reader(path);
    const struct pages pages = read_valid_pages(reader, writers);
    struct snapfile *snapfile = allocate(1, sizeof *snapfile);
    *snapfile = pages.says[pages.wrong[0] ? 1 : 0]; /* valid pages differ only in the commit and its run */
    snapfile->newest = (struct snapfile_commit){0};
    struct checkpoint *checkpoint = read_description(reader, path, snapfile);
    note_pages(snapfile, path, &pages);
    snapfile->page = choose_commit(reader, checkpoint, &pages);
    *overtaken = writers == RUN_MAY_WRITE && snapfile->base.n_damage && has_moved_on(reader, &pages);
    close_reader(reader);
    take_facts(checkpoint, &pages);
    return checkpoint;
}

struct checkpoint *read_snapshot(const char *path)
{
    enum { TRIES = 100 };
    bool overtaken = false;
    struct checkpoint *checkpoint = read_once(path, RUN_MAY_WRITE, &overtaken);
    for (int tries = 1; overtaken && tries < TRIES; tries++) {
        free_checkpoint(checkpoint);
        checkpoint = read_once(path, RUN_MAY_WRITE, &overtaken);
    }
    return checkpoint;
}

struct checkpoint *read_locked_snapshot(const char *path)
{
    bool overtaken; /* it stays false, since no run writes */
    return read_once(path, NO_RUN_WRITES, &overtaken);
}

struct checkpoint *read_newest_snapshot(const char *path)
{
    struct checkpoint *checkpoint = read_snapshot(path);
    const struct snapfile *snapfile = snapfile_of(checkpoint);
    if (snapfile->newest.slot == NO_SLOT && snapfile->base.n_damage)
        fail(EXIT_FAILED, "%s has no whole step: %s", path, snapfile->base.damage[0]);
    if (snapfile->newest.slot == NO_SLOT)
        fail(EXIT_FAILED, "%s " NOTHING_COMMITTED, path);
    return checkpoint;
}

/* ---- a snapshot file as another form of a checkpoint (struct checkpoint_form) ------------------------------------ */

static json_t *snapshot_json(const struct checkpoint *checkpoint)
{
    const struct snapfile *snapfile = snapfile_of(checkpoint);
    json_t *json = json_object();
    set_json_integer(json, "slots", snapfile->slots);
    set_json_integer(json, "slot", (json_int_t)snapfile->newest.slot);
    set_json_integer(json, "commit", (json_int_t)snapfile->newest.seq);
    set_json_integer(json, "slot_bytes", (json_int_t)snapfile->base.bytes);
    return json;
}

static void print_snapshot(const struct checkpoint *checkpoint)
{
    const struct snapfile *snapfile = snapfile_of(checkpoint);
    char bytes[NUMBER_TEXT];
    printf("snapshot    slot %u of %d, %zu pieces, %s a slot; commit %llu\n", snapfile->newest.slot, snapfile->slots,
           snapfile->base.n, format_bytes(bytes, (double)snapfile->base.bytes),
           (unsigned long long)snapfile->newest.seq);
}

const struct checkpoint_form snapfile_form = {.name = "snapshot",
                                              .option = "--snapshot",
                                              .place = "a slot",
                                              .advice = "or a run is writing this file: read the file once more, or "
                                                        "copy it",
                                              .is_ours = is_snapshot,
                                              .open = read_newest_snapshot,
                                              .to_json = snapshot_json,
                                              .print = print_snapshot};
const struct module module_snapfile = {
    .name = "snapfile",
    .needs = "checkpoint",
    .checkpoint_form = &snapfile_form,
};
