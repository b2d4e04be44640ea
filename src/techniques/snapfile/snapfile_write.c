/* snapfile_write.c - writes a snapshot file: iterations are stored in turn, and the newest durable one is never lost.
 *
 * The newest commit's slot and page stay as they are until a newer one is durable:
 *
 *     begin_commit      takes a slot by the rule of trainer/step/slots.c, until the commit has ended; or drops the
 *                       iteration
 *     write_payload     a payload: looks whether its values are finite, hashes its pieces, and writes it to the slot
 *     finish_commit     writes the hashes, and a page that names the slot: the page that the newest commit is not on.
 *                       Then the iteration is recoverable.  Calls fdatasync() for all at once: then it is durable
 *
 *     page 0     commit 1 . . . . . . . commit 3 . . .         time goes to the right; two slots
 *     page 1             commit 2 . . . . . . . commit 4
 *     slot 1     1 . . . 3 3 3 . . . . .                       slot 1 is written again when 2 is durable
 *     slot 2         2 2 2 . . . 4 4 4
 *
 * Payloads and page may reach the disk in any order, whole or torn.  The page has a hash of the pieces' hashes, and
 * these are compared with the pieces when the file is read.  So a commit is recoverable only if everything that its
 * page names is there.  One flush at a time is under way, so of the two pages one is always on the disk for sure.
 *
 * When the system reports an error, nothing is written or acknowledged any more: after a failed fdatasync() nobody
 * knows what is on the disk, and asking again does not tell.  Training goes on.
 *
 * Copies of a byte on its way out.  The first copy is the snapshot, from the device to the host's buffer.  Where the
 * file system allows O_DIRECT, the disk reads this buffer itself.  Elsewhere there is a second copy, to the page cache,
 * from which the disk is asked to read at once.  If libpmem is installed and the file lies in persistent memory, the
 * file is mapped, and the second copy is the write itself.  For the check and the hash, the CPU reads the buffer once.
 *
 * How the file is opened, and how writing begins with a file that is there already: snapfile_open.c.
 */
#include "snapfile_parts.h"

#include <errno.h>
#include <unistd.h>

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* Stores nothing any more, and warns once.  failure: a text such as "cannot write snapshot file run.snap: ...",
 * which is freed here. */
static void stop_storing(struct snapfile_writer *writer, char *failure)
{
    pthread_mutex_lock(&writer->lock);
    bool first = !writer->failed;
    const struct snapfile_counts counts = writer->counts;
    writer->failed = true;
    pthread_mutex_unlock(&writer->lock);
    if (first && counts.stored > 0)
        warn("%s; training goes on, but stores nothing more in this file; step %u is kept", failure, counts.newest);
    else if (first)
        warn("%s; training goes on, but stores nothing more in this file; no step of this run is kept", failure);
    free(failure);
}

/* Writes n bytes at that place of the file, with one call where the system takes them all.  (write_all() of publish.c
 * makes several calls, and then writing past the page cache would take twice as long.)  false: the file has failed. */
static bool put_bytes(struct snapfile_writer *writer, int fd, const char *bytes, size_t n, uint64_t at)
{
    while (n) {
        ssize_t done = pwrite(fd, bytes, n, (off_t)at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            stop_storing(writer, format_string("cannot write snapshot file %s: %s", writer->file->path,
                                               done ? strerror(errno) : "the system wrote no bytes"));
            return false;
        }
        bytes += done;
        n -= (size_t)done;
        at += (uint64_t)done;
    }
    return true;
}

/* ---- a slot ------------------------------------------------------------------------------------------------------ */

int begin_commit(struct snapfile_writer *writer, uint32_t iteration)
{
    pthread_mutex_lock(&writer->lock);
    int slot = writer->failed ? NO_SLOT : take_slot(writer->slots, iteration);
    if (slot != NO_SLOT)
        writer->held[slot] = (struct held_slot){.iteration = iteration, .hashes = writer->held[slot].hashes};
    else
        writer->counts.dropped++;
    pthread_mutex_unlock(&writer->lock);
    return slot;
}

/* ---- a payload --------------------------------------------------------------------------------------------------- */

static bool all_finite(const uint32_t *words, size_t n)
{
    enum { TOGETHER = 16 }; /* gcc -O2 makes vectors only of a loop of fixed length */
    uint32_t bad = 0;
    size_t first = 0;
    while (first + TOGETHER <= n) {
        for (size_t i = 0; i < TOGETHER; i++)
            bad |= !is_finite_word(words[first + i]);
        first += TOGETHER;
    }
    for (size_t i = first; i < n; i++)
        bad |= !is_finite_word(words[i]);
    return !bad;
}

/* Checks and hashes the pieces that lie in bytes [first, end) of a slot, in the order of all pieces. */
static void hash_pieces(const struct snapfile_writer *writer, struct held_slot *held, const char *bytes, uint64_t first,
                        uint64_t end)
{
    const struct cut_tensors *all = writer->file->cut;
    size_t nth = 0;
    for (size_t i = 0; i < all->n; i++)
        for (size_t k = 0; k < all->tensors[i].n_pieces; k++) {
            const struct piece *piece = &all->tensors[i].pieces[k];
            if (piece->file_offset >= first && piece->file_offset < end) {
                const char *of_piece = bytes + (piece->file_offset - first);
                held->not_finite |= !all_finite((const void *)of_piece, piece_elements(piece));
                held->hashes[nth] = hash_bytes(of_piece, ELEMENT_BYTES * piece_elements(piece), 0);
            }
            nth++;
        }
}

/* Writes by one of the three ways that the file's head comment names.  false: the file has failed. */
static bool put_payload(struct snapfile_writer *writer, const void *bytes, size_t n, uint64_t at)
{
    if (writer->memory) {
        writer->persist(writer->memory + at, bytes, n);
        return true;
    }
    if (writer->direct_fd != NONE && (uintptr_t)bytes % SNAPFILE_PAGE == 0)
        return put_bytes(writer, writer->direct_fd, bytes, n, at);
    if (!put_bytes(writer, writer->fd, bytes, n, at))
        return false;
    start_writing(writer->fd, at, n);
    return true;
}

void write_payload(struct snapfile_writer *writer, uint32_t iteration, size_t payload, const void *bytes)
{
    int slot = slot_of(writer->slots, iteration);
    struct held_slot *held = &writer->held[slot];
    uint64_t first = writer->payload_at[payload], end = writer->payload_at[payload + 1]; /* in the slot */
    uint64_t begun = now_ns();
    CHECK(payload <= held->payloads, "payload %zu of a slot comes before payload %zu", payload, held->payloads);
    if (payload < held->payloads) /* an audit runs the task several times */
        return;
    held->payloads++;
    if (!held->not_finite)
        hash_pieces(writer, held, bytes, first, end);
    if (held->not_finite || writer->failed)
        return;
    size_t n = (size_t)(end - first);
    if (put_payload(writer, bytes, n, slot_at(snapfile_of(writer->file), slot) + first))
        writer->counts.bytes += n;
    writer->counts.ns += now_ns() - begun;
}

/* ---- a commit ---------------------------------------------------------------------------------------------------- */

/* Writes the hashes, and the commit's page: then the iteration is recoverable. */
static bool write_commit(struct snapfile_writer *writer, int slot)
{
    char page[SNAPFILE_PAGE];
    const struct snapfile *snapfile = snapfile_of(writer->file);
    const struct held_slot *held = &writer->held[slot];
    size_t n = sizeof *held->hashes * snapfile->base.n;
    struct snapfile_commit commit = {
        .seq = writer->seq + 1,
        .step = held->iteration,
        .slot = (uint32_t)slot,
        .samples = writer->file->samples + ((int64_t)held->iteration - writer->file->step) * writer->batch,
        .session = writer->file->session,
        .hash = hash_bytes(held->hashes, n, 0),
    };
    int other = writer->page == 0 ? 1 : 0;
    fill_page(snapfile, &commit, page);
    if (!put_bytes(writer, writer->fd, (const char *)held->hashes, n, hashes_at(snapfile, slot)))
        return false;
    if (!put_bytes(writer, writer->fd, page, SNAPFILE_PAGE, (uint64_t)other * SNAPFILE_PAGE))
        return false;
    writer->page = other;
    writer->seq++;
    return true;
}

static bool make_durable(struct snapfile_writer *writer)
{
    if (flush_file(writer->fd) != 0) {
        stop_storing(writer, format_string("cannot sync snapshot file %s: %s", writer->file->path, strerror(errno)));
        return false;
    }
    struct problem *problem = writer->beside ? take_name(writer) : NULL;
    if (problem) {
        stop_storing(writer, format_string("cannot put the new snapshot file in the place of %s: %s",
                                           writer->file->path, problem->sentence));
        free(problem);
        return false;
    }
    return !give_up_if_lost(writer);
}

/* The iteration gives its slot back, and is counted.  ns: the time that its commit took. */
static void return_and_count(struct snapfile_writer *writer, uint32_t iteration, bool durable, uint64_t ns)
{
    pthread_mutex_lock(&writer->lock);
    return_slot(writer->slots, iteration, durable);
    if (durable) {
        writer->counts.stored++;
        writer->counts.newest = iteration;
        writer->counts.ns += ns;
    } else {
        writer->counts.dropped++;
    }
    pthread_mutex_unlock(&writer->lock);
}

bool finish_commit(struct snapfile_writer *writer, uint32_t iteration, bool sound, struct commit_times *times)
{
    int slot = slot_of(writer->slots, iteration);
    const struct held_slot *held = &writer->held[slot];
    bool had_name = !writer->beside; /* without its name nobody finds the file */
    uint64_t begin = now_ns();
    if (slot == NO_SLOT) /* an audit runs the task several times */
        return false;
    CHECK(!sound || held->payloads == writer->n, "iteration %u is committed with %zu of %zu payloads", iteration,
          held->payloads, writer->n);
    bool recoverable = sound && !held->not_finite && !writer->failed && write_commit(writer, slot);
    times->step = iteration;
    times->recoverable = now_ns();
    bool durable = recoverable && make_durable(writer);
    times->durable = now_ns();
    if (!had_name)
        times->recoverable = times->durable;
    return_and_count(writer, iteration, durable, times->durable - begin);
    return durable;
}
