/* snapfile_open.c - opens a snapshot file to write into it, and closes it.
 *
 *     lock_name                 locks the file that has the name, or makes it: the lock keeps a second run out
 *     recover                   reads from the disk what that file has
 *     choose_file               goes on with that file, if its layout is the same (take_over), or else makes a new one
 *                               beside it (make_file)
 *
 * A new file has a temporary name at first.  It is filled with zeros and synced, so that writing allocates nothing.  It
 * takes the name at once where there is nothing to lose, else when its first commit is durable.
 *
 * A file whose layout and options are the same is taken over: the run keeps the page and the slot of the commit that it
 * found in the file, whichever they are, and writes to the others.  Before the run writes anything it syncs the file
 * and its name, and reads the file again from the disk.  The first reading may have come from memory, and the disk may
 * have lost the bytes.
 */
#include "snapfile_parts.h"
#include "techniques/checkpoint/files.h"
#include "trainer/file/locks.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the name, locked -------------------------------------------------------------------------------------------- */

/* What is known while a file is opened.  What is allocated for it is kept here, where close_opening() finds it after a
 * problem. */
struct opening {
    struct snapfile_writer *writer;
    const struct snapfile_plan *plan;
    bool made;              /* this run has made the file that has the name: it is empty, and there to be locked */
    bool empty;             /* the file that has the name has no bytes */
    char *manifest;         /* that of the file to be written */
    struct checkpoint *old; /* the snapshot that is on the disk for sure; NULL: none that can be read */
};

/* Makes an empty file.  false: there is one of that name, or the system refuses. */
static bool make_empty_file(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Locks the file that has the name, which may be made here.  A second run, or a file that is not a snapshot, is refused
 * before anything is changed. */
static struct problem *lock_name(struct opening *opening)
{
    struct snapfile_writer *writer = opening->writer;
    const char *path = writer->file->path;
    struct stat status;
    bool made = make_empty_file(path);
    struct problem *problem = open_locked("--snapshot", path, O_RDWR | O_CREAT, &writer->named_fd);
    if (problem)
        return problem;
    if (writer->named_fd == NONE)
        return new_problem(EXIT_USAGE, "%s is not a regular file: --snapshot needs one", path);
    if (fstat(writer->named_fd, &status) != 0)
        return new_problem(EXIT_IO, "cannot look at the snapshot file %s: %s", path, strerror(errno));
    opening->made = made && status.st_size == 0; /* else another run has put its file there since */
    /* open_locked() lets a file pass that cannot be locked.  Such a file is not written here. */
    if (flock(writer->named_fd, LOCK_EX | LOCK_NB) != 0)
        return new_problem(EXIT_IO, "cannot lock the snapshot file %s: %s", path, strerror(errno));
    bool is_ours;
    problem = look_for_pages(writer->named_fd, path, &is_ours);
    if (!problem && !is_ours)
        return new_problem(EXIT_USAGE,
                           "%s is not a snapshot file, and --snapshot would replace it: choose another name", path);
    return problem;
}

/* ---- a new file -------------------------------------------------------------------------------------------------- */

enum { CHUNK = 1 << 18 };
static const char zeros[CHUNK];

/* Writes pages without a commit, the manifest, and zeros up to `end`. */
static struct problem *fill_file(const struct snapfile *snapfile, const char *manifest, struct writer *beside,
                                 uint64_t end)
{
    char page[SNAPFILE_PAGE];
    fill_page(snapfile, &(struct snapfile_commit){0}, page);
    struct problem *problem = try_write_bytes(beside, page, SNAPFILE_PAGE);
    if (!problem)
        problem = try_write_bytes(beside, page, SNAPFILE_PAGE);
    if (!problem)
        problem = try_write_bytes(beside, manifest, (size_t)snapfile->manifest_bytes);
    while (!problem && beside->offset < end)
        problem = try_write_bytes(beside, zeros, (size_t)MIN(CHUNK, end - beside->offset));
    return problem;
}

/* Makes a new file, which lies beside its name until take_name() gives it the name of the old file. */
static struct problem *make_file(const struct opening *opening)
{
    struct snapfile_writer *writer = opening->writer;
    char bytes[NUMBER_TEXT];
    const struct snapfile *snapfile = snapfile_of(writer->file);
    struct problem *problem = try_open_writer(writer->file->path, &writer->beside);
    if (problem)
        return problem;
    int beside_fd = writer->beside->fd;
    uint64_t end = slot_at(snapfile, snapfile->slots + 1);
    int code = reserve_bytes(beside_fd, end);
    if (code)
        return new_problem(EXIT_IO,
                           "cannot make room for the snapshot file %s: %s for %d slots: %s; fewer --snapshot-slots "
                           "need less",
                           writer->file->path, format_bytes(bytes, (double)end), snapfile->slots, strerror(code));
    problem = fill_file(snapfile, opening->manifest, writer->beside, end);
    if (problem)
        return problem;
    writer->fd = fcntl(beside_fd, F_DUPFD_CLOEXEC, 0);
    if (writer->fd < 0 || flush_file(writer->fd) != 0 || flock(writer->fd, LOCK_EX | LOCK_NB) != 0)
        return new_problem(EXIT_IO, "cannot finish the snapshot file %s: %s", writer->file->path, strerror(errno));
    return NULL;
}

struct problem *take_name(struct snapfile_writer *writer)
{
    struct writer *beside = writer->beside;
    writer->beside = NULL; /* publish() ends with it, also where it fails */
    struct problem *problem = publish(beside);
    if (problem)
        return problem;
    close(writer->named_fd);
    writer->named_fd = NONE;
    return NULL;
}

/* ---- a file that is taken over ----------------------------------------------------------------------------------- */

/* For attempt(): reads the snapshot of an opening. */
static void read_old(void *argument)
{
    struct opening *opening = argument;
    opening->old = read_locked_snapshot(opening->writer->file->path);
}

/* Syncs the file that has the name.  Then reads the snapshot that is on the disk for sure into opening->old, before
 * anything is written. */
static struct problem *recover(struct opening *opening)
{
    struct stat status;
    const char *path = opening->writer->file->path;
    int fd = opening->writer->named_fd;
    if (fstat(fd, &status) != 0 || flush_file(fd) != 0)
        return new_problem(EXIT_IO, "cannot sync the snapshot file %s: %s", path, strerror(errno));
    opening->empty = status.st_size == 0;
    if (opening->empty)
        return NULL;
    struct problem *problem = sync_folder_of(path);
    if (problem)
        return problem;
    forget_cached(fd);
    struct problem *unreadable = attempt(read_old, opening);
    if (unreadable)
        warn("%s; another file takes its place when a step is stored", unreadable->sentence);
    free(unreadable);
    return NULL;
}

static bool has_same_layout(const struct snapfile *a, const struct snapfile *b)
{
    return a->slots == b->slots && a->base.bytes == b->base.bytes && a->manifest_bytes == b->manifest_bytes &&
           a->manifest_hash == b->manifest_hash;
}

/* Goes on with the old file, whose newest commit is kept. */
static void take_over(struct snapfile_writer *writer, const struct snapfile *old)
{
    writer->fd = writer->named_fd;
    writer->named_fd = NONE;
    writer->slots->durable = (int)old->newest.slot;
    writer->page = old->page;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* Decides where everything lies in the file and in a slot, and makes the manifest. */
static struct problem *plan_layout(struct opening *opening)
{
    struct snapfile_writer *writer = opening->writer;
    const struct snapfile_plan *plan = opening->plan;
    struct snapfile *snapfile = allocate(1, sizeof *snapfile);
    snapfile->base.form = &snapfile_form;
    writer->file->single_file = &snapfile->base;
    writer->n = plan->n;
    writer->payload_at = allocate(plan->n + 1, sizeof *writer->payload_at);
    for (size_t i = 0; i < plan->n; i++)
        writer->payload_at[i + 1] = writer->payload_at[i] + payload_bytes(&plan->ranges[i]);
    struct problem *problem = cut_stored(plan, &writer->file->cut);
    if (problem)
        return problem;
    snapfile->base.n = count_pieces(writer->file->cut);
    opening->manifest = manifest_text(writer->file);
    snapfile->slots = plan->slots->n;
    snapfile->base.bytes = writer->payload_at[plan->n] + hashes_bytes(snapfile->base.n);
    snapfile->manifest_bytes = strlen(opening->manifest);
    snapfile->manifest_hash = hash_bytes(opening->manifest, snapfile->manifest_bytes, 0);
    snapfile->slots_at = MANIFEST_AT + round_up(snapfile->manifest_bytes, SNAPFILE_PAGE);
    snapfile->run_id = writer->file->run_id;
    for (int k = 1; k <= snapfile->slots; k++)
        writer->held[k].hashes = allocate(snapfile->base.n, sizeof *writer->held[k].hashes);
    return NULL;
}

static struct problem *other_model_problem(const struct opening *opening)
{
    char sizes[SIZES_BYTES];
    const struct config *old = &opening->old->cut->config;
    if (snapfile_of(opening->old)->newest.slot == NO_SLOT || same_sizes(old, opening->plan->config))
        return NULL;
    return new_problem(EXIT_USAGE, "%s is a snapshot of another model (%s): give --snapshot another file",
                       opening->writer->file->path, describe_sizes(sizes, old));
}

/* A new run writes over the snapshots of an earlier one: says so while they are still there. */
static void warn_of_replaced(const struct opening *opening)
{
    const struct checkpoint *old = opening->old, *file = opening->writer->file;
    if (snapfile_of(old)->newest.slot != NO_SLOT && old->run_id != file->run_id)
        warn("%s has step %u of an earlier run, which this run's snapshots will replace; --resume %s goes on from it, "
             "and another file for --snapshot keeps it",
             file->path, old->step, file->path);
}

/* The file of `fd`, opened once more to be written past the page cache; NONE: that cannot be done here. */
static int open_once_more(int fd)
{
    char name[32];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd); /* Linux opens by it even a file that has no name yet */
    return open_past_cache(name, O_RDWR);
}

/* Chooses how the file is written: as memory; or past the page cache; or, where the system can do neither, through the
 * cache. */
static void choose_way_to_write(struct snapfile_writer *writer)
{
    const struct snapfile *snapfile = snapfile_of(writer->file);
    /* Else each write past the cache would have to look for its page in the cache. */
    forget_cached(writer->fd);
    writer->memory = map_memory(writer->fd, slot_at(snapfile, snapfile->slots + 1), &writer->persist);
    writer->counts.in_memory = writer->memory;
    if (!writer->memory)
        writer->direct_fd = open_once_more(writer->fd);
}

/* Takes over the file that is there, if its layout is the same; else makes a new one. */
static struct problem *choose_file(struct opening *opening)
{
    struct snapfile_writer *writer = opening->writer;
    const struct snapfile *old = opening->old ? snapfile_of(opening->old) : NULL;
    if (old && has_same_layout(snapfile_of(writer->file), old)) {
        take_over(writer, old);
        choose_way_to_write(writer);
        return NULL;
    }
    struct problem *problem = make_file(opening);
    if (problem)
        return problem;
    choose_way_to_write(writer);
    bool nothing_to_lose = opening->empty || (old && old->newest.slot == NO_SLOT);
    return nothing_to_lose ? take_name(writer) : NULL;
}

/* Opens the file of opening->writer.  After a problem the writer may be half open: close_snapfile_writer() closes what
 * there is of it. */
static struct problem *open_file(struct opening *opening)
{
    struct problem *problem = lock_name(opening);
    if (!problem)
        problem = plan_layout(opening);
    if (!problem)
        problem = recover(opening);
    if (!problem && opening->old)
        problem = other_model_problem(opening);
    if (problem)
        return problem;
    if (opening->old) {
        warn_of_replaced(opening);
        opening->writer->seq = snapfile_of(opening->old)->last_seq; /* also for a new file: its commits are newer */
    }
    return choose_file(opening);
}

/* Frees what only the opening needed, and after a problem removes what it made. */
static void close_opening(struct opening *opening, const struct problem *problem)
{
    if (problem && opening->made)
        unlink(opening->writer->file->path);
    if (problem)
        close_snapfile_writer(opening->writer);
    if (opening->old)
        free_checkpoint(opening->old);
    free(opening->manifest);
}

/* Makes the writer of a file that is not open yet. */
static struct snapfile_writer *new_snapfile_writer(const char *path, const struct checkpoint *checkpoint,
                                                   const struct snapfile_plan *plan)
{
    struct snapfile_writer *writer = allocate(1, sizeof *writer);
    writer->file = new_checkpoint_like(checkpoint, path);
    writer->batch = plan->batch;
    writer->slots = plan->slots;
    writer->page = NONE;
    writer->fd = NONE;
    writer->direct_fd = NONE;
    writer->named_fd = NONE;
    pthread_mutex_init(&writer->lock, NULL);
    return writer;
}

struct problem *open_snapfile_writer(const char *path, const struct checkpoint *checkpoint,
                                     const struct snapfile_plan *plan, struct snapfile_writer **out)
{
    int slots = plan->slots->n;
    CHECK(slots > 0 && slots <= MOST_SLOTS && plan->n, "%d slots of %zu payloads", slots, plan->n);
    *plan->slots = (struct slots){.n = slots};
    struct snapfile_writer *writer = new_snapfile_writer(path, checkpoint, plan);
    struct opening opening = {.writer = writer, .plan = plan};
    struct problem *problem = open_file(&opening);
    close_opening(&opening, problem);
    *out = problem ? NULL : writer;
    return problem;
}

/* ---- closing ----------------------------------------------------------------------------------------------------- */

/* A file without its name is lost: to this run, and to any run that would resume it. */
bool give_up_if_lost(struct snapfile_writer *writer)
{
    if (leads_to(writer->file->path, writer->fd))
        return false;
    pthread_mutex_lock(&writer->lock);
    writer->failed = true;
    writer->counts.dropped += writer->counts.stored;
    writer->counts.stored = 0;
    pthread_mutex_unlock(&writer->lock);
    warn("the snapshot file %s was removed, renamed or replaced by another program while it was written, and what it "
         "held is lost; training goes on, but no longer stores anything",
         writer->file->path);
    return true;
}

struct snapfile_counts close_snapfile_writer(struct snapfile_writer *writer)
{
    if (writer->counts.stored > 0)
        give_up_if_lost(writer);
    const struct snapfile_counts counts = writer->counts;
    if (writer->beside)
        abandon(writer->beside);
    int fds[] = {writer->fd, writer->direct_fd, writer->named_fd};
    for (size_t i = 0; i < COUNT(fds); i++)
        if (fds[i] != NONE)
            close(fds[i]);
    if (writer->memory)
        munmap(writer->memory, slot_at(snapfile_of(writer->file), writer->slots->n + 1));
    for (int k = 1; k <= MOST_SLOTS; k++)
        free(writer->held[k].hashes);
    free_checkpoint(writer->file);
    pthread_mutex_destroy(&writer->lock);
    free(writer->payload_at);
    free(writer);
    return counts;
}
