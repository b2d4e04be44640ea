/* opening.c - opens a snapshot file to write into it, and closes it.
 *
 *     lock_name                 locks the file that has the name, or makes it: the lock keeps a second run out
 *     recover                   reads from the disk what that file has
 *     make_file or take_over    makes a new file beside it; or goes on with that file, if its layout is the same
 *
 * A new file has a temporary name at first.  It is filled with zeros and synced, so that writing allocates nothing.  It
 * takes the name at once where there is nothing to lose, else when its first commit is durable.
 *
 * A file whose layout and options are the same is taken over: the run keeps the page and the slot of the commit that it
 * found in the file, whichever they are, and writes to the others.  Before the run writes anything it syncs the file
 * and its name, and reads the file again from the disk.  The first reading may have come from memory, and the disk may
 * have lost the bytes.
 */
#include "snapshot.h"
#include "techniques/reshard/checkpoint.h"
#include "techniques/reshard/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the name, locked -------------------------------------------------------------------------------------------- */

/* A second run, or a file that is no snapshot, is refused before anything is changed. */

struct opening { /* the argument of open_file(), for attempt() */
    struct snap *s;
    const struct snap_plan *plan;
    bool made;              /* this run has made the file that has the name, empty, to lock it */
    struct checkpoint *old; /* the snapshot that is on the disk for sure; NULL: none that can be read */
};

static void open_name(struct opening *o)
{
    struct snap *s = o->s;
    const char *path = s->file->path;
    struct stat status;
    o->made = access(path, F_OK) != 0;
    s->named_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
    if (s->named_fd < 0 || fstat(s->named_fd, &status) != 0)
        fail(EXIT_IO, "cannot write the snapshot file %s: %s; does its folder exist, and may you write there?", path,
             strerror(errno));
    if (!S_ISREG(status.st_mode))
        fail(EXIT_USAGE, "%s is no regular file: --snapshot needs one", path);
    if (flock(s->named_fd, LOCK_EX | LOCK_NB) == 0)
        return;
    if (errno == EWOULDBLOCK)
        fail(EXIT_USAGE, "another run is writing snapshots to %s: choose another file, or wait until it ends", path);
    fail(EXIT_IO, "cannot lock the snapshot file %s: %s", path, strerror(errno));
}

/* Opens and locks the file that has the name.  If a run that was just ending has replaced the file in between, this
 * begins anew with the new file. */
static void lock_name(struct opening *o)
{
    struct snap *s = o->s;
    open_name(o);
    while (!leads_to(s->file->path, s->named_fd)) {
        close(s->named_fd);
        open_name(o);
    }
    if (!is_snapshot(s->file->path))
        fail(EXIT_USAGE, "%s is no snapshot file, and --snapshot would replace it: choose another name", s->file->path);
}

/* ---- a new file -------------------------------------------------------------------------------------------------- */

/* A new file lies beside its name until it takes the name from the old file. */

static void make_file(struct snap *s, const char *manifest)
{
    enum { CHUNK = 1 << 18 };
    char page[SNAP_PAGE], bytes[32];
    const struct snapfile *f = snapfile_of(s->file);
    struct writer *w = open_writer(s->file->path);
    s->beside = w;
    uint64_t end = slot_at(f, f->slots + 1);
    int code = reserve_bytes(w->fd, end);
    if (code)
        fail(EXIT_IO,
             "cannot make room for the snapshot file %s: %s for %d slots: %s; fewer --snapshot-slots need less",
             s->file->path, format_bytes(bytes, (double)end), f->slots, strerror(code));
    fill_page(f, &(struct snap_commit){0}, page);
    write_bytes(w, page, SNAP_PAGE);
    write_bytes(w, page, SNAP_PAGE);
    write_bytes(w, manifest, (size_t)f->manifest_bytes);
    char *zeros = allocate(CHUNK, 1);
    while (w->offset < end)
        write_bytes(w, zeros, (size_t)MIN(CHUNK, end - w->offset));
    free(zeros);
    s->fd = fcntl(w->fd, F_DUPFD_CLOEXEC, 0);
    if (s->fd < 0 || flush_file(s->fd) != 0 || flock(s->fd, LOCK_EX | LOCK_NB) != 0)
        fail(EXIT_IO, "cannot finish the snapshot file %s: %s", s->file->path, strerror(errno));
}

void take_name(void *snap)
{
    struct snap *s = snap;
    struct writer *w = s->beside;
    s->beside = NULL;
    publish(w);
    close(s->named_fd);
    s->named_fd = -1;
}

/* ---- a file that is taken over ----------------------------------------------------------------------------------- */

/* What the disk has for sure is read before anything is written. */

static void read_old(void *opening)
{
    struct opening *o = opening;
    o->old = read_locked_snapshot(o->s->file->path);
}

/* Reads the snapshot that is on the disk for sure into o->old. */
static void recover(struct opening *o)
{
    sync_folder_of(o->s->file->path);
    forget_cached(o->s->named_fd);
    struct problem *p = attempt(read_old, o);
    if (p)
        warn("%s; another file takes its place when an iteration is stored", p->sentence);
    free(p);
}

static bool has_same_layout(const struct snapfile *a, const struct snapfile *b)
{
    return a->slots == b->slots && a->in.bytes == b->in.bytes && a->manifest_bytes == b->manifest_bytes &&
           a->manifest_hash == b->manifest_hash;
}

/* Goes on with the old file, whose newest commit is kept. */
static void take_over(struct snap *s, const struct snapfile *old)
{
    s->fd = s->named_fd;
    s->named_fd = -1;
    s->ring->durable = (int)old->newest.slot;
    s->page = old->page;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* A run either makes a new file or takes over the one that is there. */

/* Decides where everything lies in the file and in a slot.  Returns the manifest, which the caller frees. */
static char *plan_layout(struct snap *s, const struct snap_plan *plan)
{
    struct snapfile *f = allocate(1, sizeof *f);
    f->in.store = &snapshot_store;
    s->file->stored = &f->in;
    s->n = plan->n;
    s->payload_at = allocate(plan->n + 1, sizeof *s->payload_at);
    for (size_t i = 0; i < plan->n; i++)
        s->payload_at[i + 1] = s->payload_at[i] + payload_bytes(&plan->range[i]);
    s->file->pieces = cut_stored(plan);
    f->in.n = count_pieces(s->file->pieces);
    char *manifest = manifest_text(s->file);
    f->slots = plan->ring->n;
    f->in.bytes = s->payload_at[plan->n] + round_up(sizeof(uint64_t) * f->in.n, SNAP_PAGE);
    f->manifest_bytes = strlen(manifest);
    f->manifest_hash = hash_bytes(manifest, strlen(manifest), 0);
    f->slots_at = MANIFEST_AT + round_up(f->manifest_bytes, SNAP_PAGE);
    f->run = s->file->run;
    for (int k = 1; k <= f->slots; k++)
        s->slot[k].hashes = allocate(f->in.n, sizeof *s->slot[k].hashes);
    return manifest;
}

static void refuse_other_model(const struct opening *o)
{
    char sizes[160];
    const struct config *old = &o->old->pieces->config;
    if (snapfile_of(o->old)->newest.slot && !same_sizes(old, o->plan->config))
        fail(EXIT_USAGE, "%s is a snapshot of another model (%s): --snapshot in another file", o->s->file->path,
             describe_sizes(sizes, old));
}

/* Chooses how the file is written: as memory; or past the page cache; or, where the system can do neither, through the
 * cache. */
static void choose_way_to_write(struct snap *s)
{
    const struct snapfile *f = snapfile_of(s->file);
    forget_cached(s->fd); /* else each write past the cache would have to look for its page in the cache */
    s->memory = map_memory(s->fd, slot_at(f, f->slots + 1), &s->persist);
    s->counts.in_memory = s->memory;
    if (!s->memory)
        s->direct_fd = open_direct(s->fd);
}

static void open_file(void *opening)
{
    struct opening *o = opening;
    struct snap *s = o->s;
    struct stat status;
    lock_name(o);
    char *manifest = plan_layout(s, o->plan);
    if (fstat(s->named_fd, &status) != 0 || flush_file(s->named_fd) != 0)
        fail(EXIT_IO, "cannot sync the snapshot file %s: %s", s->file->path, strerror(errno));
    bool empty = status.st_size == 0;
    if (!empty)
        recover(o);
    const struct snapfile *old = NULL;
    if (o->old) {
        refuse_other_model(o);
        old = snapfile_of(o->old);
        s->seq = old->last_seq; /* also for a new file: its commits are newer */
    }
    bool nothing_to_lose = empty || (old && !old->newest.slot);
    if (old && has_same_layout(snapfile_of(s->file), old))
        take_over(s, old);
    else
        make_file(s, manifest);
    choose_way_to_write(s);
    if (s->beside && nothing_to_lose)
        take_name(s);
    if (o->old)
        free_checkpoint(o->old);
    free(manifest);
}

struct problem *open_snap(const char *path, const struct checkpoint *c, const struct snap_plan *plan, struct snap **out)
{
    const int slots = plan->ring->n;
    CHECK(slots > 0 && slots <= MOST_MEMBERS && plan->n, "%d slots of %zu payloads", slots, plan->n);
    struct snap *s = allocate(1, sizeof *s);
    struct opening o = {.s = s, .plan = plan};
    *plan->ring = (struct ring){.n = slots};
    s->file = like_checkpoint(c, path);
    s->batch = plan->batch;
    s->ring = plan->ring;
    s->page = NONE;
    s->fd = -1;
    s->direct_fd = -1;
    s->named_fd = -1;
    pthread_mutex_init(&s->lock, NULL);
    struct problem *p = attempt(open_file, &o);
    if (p && o.made)
        unlink(path);
    if (p) {
        s->beside = NULL; /* fail() has removed it */
        close_snap(s);
    }
    *out = p ? NULL : s;
    return p;
}

/* ---- closing ----------------------------------------------------------------------------------------------------- */

/* A file without its name is lost: to this run, and to any run that would resume it. */
bool tell_when_lost(struct snap *s)
{
    if (leads_to(s->file->path, s->fd))
        return false;
    pthread_mutex_lock(&s->lock);
    s->failed = true;
    s->counts.dropped += s->counts.stored;
    s->counts.stored = s->counts.newest = 0;
    pthread_mutex_unlock(&s->lock);
    warn("the snapshot file %s was removed, renamed or replaced by another program while it was written, and what it "
         "held went with it; training goes on, but stores nothing any more",
         s->file->path);
    return true;
}

struct snap_counts close_snap(struct snap *s)
{
    if (s->counts.newest)
        tell_when_lost(s);
    const struct snap_counts counts = s->counts;
    if (s->beside)
        abandon(s->beside);
    int fds[] = {s->fd, s->direct_fd, s->named_fd};
    for (size_t i = 0; i < COUNT(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    if (s->memory)
        munmap(s->memory, slot_at(snapfile_of(s->file), s->ring->n + 1));
    for (int k = 1; k <= MOST_MEMBERS; k++)
        free(s->slot[k].hashes);
    free_checkpoint(s->file);
    pthread_mutex_destroy(&s->lock);
    free(s->payload_at);
    free(s);
    return counts;
}
