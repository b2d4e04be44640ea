/* snap.c - the run's side of a snapshot file: iterations are stored in turn, and the newest durable one is never lost.
 *
 * The newest commit's slot and page stay as they are until a newer one is durable:
 *
 *     snap_begin    a slot that neither the newest durable commit nor an iteration under way holds (take_slot()); none:
 *                   this iteration is dropped, and nobody waits.  An iteration is under way until it is durable
 *     snap_write    a payload: are its values finite, the hashes of its pieces, and a write to the slot
 *     snap_commit   the hashes, and a page that names the slot: the one that the newest commit is not on
 *                                                                                                  [recoverable]
 *                   fdatasync, of all at once                                                            [durable]
 *
 *     page 0     commit 1 . . . . . . . commit 3 . . .         time goes to the right; two slots
 *     page 1             commit 2 . . . . . . . commit 4
 *     slot 1     1 . . . 3 3 3 . . . . .                       slot 1 is written again when 2 is durable
 *     slot 2         2 2 2 . . . 4 4 4
 *
 * Payloads and page may reach the disk in any order, whole or torn: the hashes vouch for them, and the page for
 * the hashes, so it counts only with all of them.  One flush at a time is under way, so of two pages one is always
 * sure.  Slot and page are chosen by what is there, not by counting: a run that goes on with a file keeps the page and
 * slot of the commit that it found, whichever they are.  Before it writes anything it syncs the file and its name, and
 * reads it again from the disk: what it found may so far have been in memory only, or, where the system lost it, is not
 * there at all.
 *
 * A file is made beside its name, filled with zeros and synced, so that writing allocates nothing; it takes the name at
 * once where there is nothing to lose, else when its first commit is durable.  A lock on the file keeps a second run
 * out. When the system reports an error nothing is written or acknowledged any more: behind a failed fdatasync nobody
 * knows what is on the disk, and asking again does not tell.  Training goes on.
 *
 * Copies of a byte on its way out: one, from the device to the host's buffer (the snapshot).  From there the disk
 * fetches it itself (O_DIRECT), where the file system allows that; elsewhere there is a second one, to the page cache,
 * from which the disk is asked to fetch it at once.  For the check and the hash cores read the buffer once, in blocks
 * that fit into a core's cache.  A file in persistent memory is mapped, where libpmem is installed: then the second
 * copy goes there, and is the write.
 */
#include "snap.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 18 };

struct held_slot { /* of the last iteration that had it */
    uint32_t iteration;
    bool bad;         /* a value in it is not finite */
    size_t payloads;  /* that have come, in turn */
    uint64_t *hashes; /* of all pieces, as in the manifest */
};
typedef void *persist_bytes(void *to, const void *from, size_t n);
struct snap {
    struct checkpoint *file; /* its description; step and samples as the run began; its pieces are of no slot */
    int64_t batch;
    size_t n;             /* payloads */
    uint64_t *payload_at; /* [n + 1] in a slot: where each begins, and the end */
    int fd, direct;       /* the same file, the second past the page cache; -1: not to be had */
    char *memory;         /* the same, in persistent memory; NULL: it lies elsewhere */
    persist_bytes *persist;
    struct writer *beside; /* a new file that has not its name yet; NULL: it has */
    int named;             /* locked: the file that has the name as long as a new one has not; -1: none */
    pthread_mutex_t lock;  /* guards what follows */
    struct slots slots;
    bool failed;
    struct snap_counts counts;
    /* of the thread that writes; a slot's also of the one that begins it */
    struct held_slot slot[MAX_SLOTS + 1];
    int page; /* of the newest commit; -1: none */
    uint64_t seq;
};

/* ---- system calls ----------------------------------------------------------------------------------------------- */

#ifdef __linux__
static int flush(int fd) { return fdatasync(fd); } /* the file's length stays */
/* Only a hint: what goes wrong flush() tells. */
static void start_writing(int fd, uint64_t at, size_t n)
{
    sync_file_range(fd, (off_t)at, (off_t)n, SYNC_FILE_RANGE_WRITE);
}
/* So that the next read is of the disk. */
static void forget_cached(int fd) { posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); }
/* The file itself, if it lies in persistent memory and libpmem is installed; else NULL. */
static char *map_memory(int fd, uint64_t bytes, persist_bytes **persist)
{
    char name[32], *at = NULL;
    size_t mapped = 0;
    int persistent = 0;
    void *(*map)(const char *, size_t, int, mode_t, size_t *, int *) = NULL;
    void *library = dlopen("libpmem.so.1", RTLD_NOW | RTLD_LOCAL); /* stays */
    if (library) {
        *(void **)&map = dlsym(library, "pmem_map_file");
        *(void **)persist = dlsym(library, "pmem_memcpy_persist");
    }
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    if (map && *persist)
        at = map(name, 0, 0, 0, &mapped, &persistent);
    if (at && persistent && mapped >= bytes)
        return at;
    if (at)
        munmap(at, mapped);
    return NULL;
}
/* Reading a page tells whether the file system does it. */
static int open_direct(int fd)
{
    _Alignas(SNAP_PAGE) char page[SNAP_PAGE];
    char name[32];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    int direct = open(name, O_RDWR | O_CLOEXEC | O_DIRECT);
    if (direct >= 0 && pread(direct, page, SNAP_PAGE, 0) == SNAP_PAGE)
        return direct;
    if (direct >= 0)
        close(direct);
    return -1;
}
#else
static int flush(int fd) { return fcntl(fd, F_FULLFSYNC); }
static void start_writing(int fd, uint64_t at, size_t n) { (void)fd, (void)at, (void)n; }
static void forget_cached(int fd) { (void)fd; }
static int open_direct(int fd) { return (void)fd, -1; }
static char *map_memory(int fd, uint64_t n, persist_bytes **persist) { return (void)fd, (void)n, (void)persist, NULL; }
#endif

/* ---- the name, locked ------------------------------------------------------------------------------------------- */

struct opening { /* of attempt() */
    struct snap *s;
    const struct snap_plan *plan;
    bool made;              /* an empty file, to be locked */
    struct checkpoint *old; /* what is on the disk for sure; NULL: nothing that can be read */
};

static void lock_name(struct opening *o)
{
    struct snap *s = o->s;
    struct stat status;
    while (s->named < 0 || !leads_to(s->file->path, s->named)) { /* a run that has just ended may have replaced it */
        if (s->named >= 0)
            close(s->named);
        o->made = access(s->file->path, F_OK) != 0;
        s->named = open(s->file->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
        if (s->named < 0 || fstat(s->named, &status) != 0)
            fail(EXIT_IO, "cannot write the snapshot file %s: %s; does its folder exist, and may you write there?",
                 s->file->path, strerror(errno));
        if (!S_ISREG(status.st_mode))
            fail(EXIT_USAGE, "%s is no regular file: --snapshot needs one", s->file->path);
        if (flock(s->named, LOCK_EX | LOCK_NB) == 0)
            continue;
        if (errno != EWOULDBLOCK)
            fail(EXIT_IO, "cannot lock the snapshot file %s: %s", s->file->path, strerror(errno));
        fail(EXIT_USAGE, "another run is writing snapshots to %s: choose another file, or wait until it ends",
             s->file->path);
    }
    if (!is_snapshot(s->file->path))
        fail(EXIT_USAGE, "%s is no snapshot file, and --snapshot would replace it: choose another name", s->file->path);
}

/* ---- a new file ------------------------------------------------------------------------------------------------- */

static void make_file(struct snap *s, const char *manifest)
{
    char page[SNAP_PAGE], bytes[32];
    const struct snapfile *f = snapfile_of(s->file);
    struct writer *w = s->beside = open_writer(s->file->path);
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
    if (s->fd < 0 || flush(s->fd) != 0 || flock(s->fd, LOCK_EX | LOCK_NB) != 0)
        fail(EXIT_IO, "cannot finish the snapshot file %s: %s", s->file->path, strerror(errno));
}

static void take_name(void *snap)
{
    struct snap *s = snap;
    struct writer *w = s->beside;
    s->beside = NULL;
    publish(w);
    close(s->named);
    s->named = -1;
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

static void recover(void *opening)
{
    struct opening *o = opening;
    o->old = read_own_snapshot(o->s->file->path);
}

/* Where everything lies in the file and in a slot; returns the manifest. */
static char *lay_out(struct snap *s, const struct snap_plan *plan)
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
    f->slots = s->slots.n = plan->slots;
    f->in.bytes = s->payload_at[plan->n] + round_up(sizeof(uint64_t) * f->in.n, SNAP_PAGE);
    f->manifest_bytes = strlen(manifest);
    f->manifest_hash = hash_bytes(manifest, strlen(manifest), 0);
    f->slots_at = MANIFEST_AT + round_up(f->manifest_bytes, SNAP_PAGE);
    f->run = s->file->run;
    for (int k = 1; k <= plan->slots; k++)
        s->slot[k].hashes = allocate(f->in.n, sizeof *s->slot[k].hashes);
    return manifest;
}

static void open_file(void *opening)
{
    struct opening *o = opening;
    struct snap *s = o->s;
    lock_name(o);
    char *manifest = lay_out(s, o->plan);
    struct stat status;
    if (fstat(s->named, &status) != 0 || flush(s->named) != 0)
        fail(EXIT_IO, "cannot sync the snapshot file %s: %s", s->file->path, strerror(errno));
    bool empty = status.st_size == 0;
    if (!empty) { /* what is on the disk for sure becomes o->old */
        sync_folder_of(s->file->path);
        forget_cached(s->named);
        struct problem *p = attempt(recover, o);
        if (p)
            warn("%s; another file takes its place when an iteration is stored", p->sentence);
        free(p);
    }
    struct snapfile *f = snapfile_of(s->file);
    const struct snapfile *old = o->old ? snapfile_of(o->old) : NULL;
    s->seq = old ? old->last_seq : 0; /* of a new file too: its commits are newer */
    if (old && old->newest.slot && !same_sizes(&o->old->pieces->config, o->plan->config))
        fail(EXIT_USAGE, "%s is a snapshot of another model (%s): --snapshot in another file", s->file->path,
             describe_sizes((char[160]){0}, &o->old->pieces->config));
    if (old && f->slots == old->slots && f->in.bytes == old->in.bytes && f->manifest_bytes == old->manifest_bytes &&
        f->manifest_hash == old->manifest_hash) {
        s->fd = s->named; /* goes on with the old file, whose newest commit is kept */
        s->named = -1;
        s->slots.kept = (int)old->newest.slot;
        s->page = old->page;
    } else
        make_file(s, manifest);
    forget_cached(s->fd); /* what is written past the cache would have to look for it there */
    s->memory = map_memory(s->fd, slot_at(f, f->slots + 1), &s->persist);
    s->counts.in_memory = s->memory;
    s->direct = s->memory ? -1 : open_direct(s->fd);
    if (s->beside && (empty || (old && !old->newest.slot)))
        take_name(s);
    if (o->old)
        free_checkpoint(o->old);
    free(manifest);
}

struct problem *open_snap(const char *path, const struct checkpoint *c, const struct snap_plan *plan, struct snap **out)
{
    CHECK(plan->slots > 0 && plan->slots <= MAX_SLOTS && plan->n, "%d slots of %zu payloads", plan->slots, plan->n);
    struct snap *s = *out = allocate(1, sizeof *s);
    struct opening o = {.s = s, .plan = plan};
    *s = (struct snap){.file = like_checkpoint(c, path), .batch = plan->batch, .page = -1};
    s->fd = s->direct = s->named = -1;
    pthread_mutex_init(&s->lock, NULL);
    struct problem *p = attempt(open_file, &o);
    if (p && o.made)
        unlink(path);
    if (p) {
        s->beside = NULL; /* fail() has removed it */
        close_snap(s);
        *out = NULL;
    }
    return p;
}

/* Who has taken the name from the file has taken what is in it, from us and from whoever would resume. */
static bool tell_when_lost(struct snap *s)
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
    int fds[] = {s->fd, s->direct, s->named};
    for (size_t i = 0; i < COUNT(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    if (s->memory)
        munmap(s->memory, slot_at(snapfile_of(s->file), s->slots.n + 1));
    for (int k = 1; k <= MAX_SLOTS; k++)
        free(s->slot[k].hashes);
    free_checkpoint(s->file);
    pthread_mutex_destroy(&s->lock);
    free(s->payload_at), free(s);
    return counts;
}

/* ---- a run's calls ---------------------------------------------------------------------------------------------- */

static bool stop_storing(struct snap *s, const char *what, const char *why)
{
    pthread_mutex_lock(&s->lock);
    bool first = !s->failed;
    uint32_t newest = s->counts.newest;
    s->failed = true;
    pthread_mutex_unlock(&s->lock);
    if (first)
        warn("%s snapshot file %s: %s; training goes on, but stores nothing there any more: its newest iteration of "
             "this run is %u (0: it has none)",
             what, s->file->path, why, newest);
    return false;
}

static bool put_bytes(struct snap *s, int fd, const char *bytes, size_t n, uint64_t at)
{
    for (ssize_t done; n; bytes += done, n -= (size_t)done, at += (uint64_t)done) {
        done = pwrite(fd, bytes, n, (off_t)at);
        if (done < 0 && errno == EINTR)
            done = 0;
        else if (done <= 0)
            return stop_storing(s, "cannot write the", done ? strerror(errno) : "nothing was taken");
    }
    return true;
}

int snap_begin(struct snap *s, uint32_t iteration)
{
    pthread_mutex_lock(&s->lock);
    int slot = s->failed ? 0 : take_slot(&s->slots);
    s->counts.dropped += !slot;
    s->slot[slot] = (struct held_slot){.iteration = iteration, .hashes = s->slot[slot].hashes}; /* [0]: dropped */
    pthread_mutex_unlock(&s->lock);
    return slot;
}

static bool all_finite(const uint32_t *word, size_t n)
{
    enum { EXPONENT = 0x7F800000, TOGETHER = 16 }; /* gcc -O2 makes vectors only of a loop of fixed length */
    uint32_t bad = 0;
    for (; n >= TOGETHER; word += TOGETHER, n -= TOGETHER)
        for (size_t i = 0; i < TOGETHER; i++)
            bad |= (word[i] & EXPONENT) == EXPONENT;
    for (size_t i = 0; i < n; i++)
        bad |= (word[i] & EXPONENT) == EXPONENT;
    return !bad;
}

void snap_write(struct snap *s, int slot, size_t payload, const void *bytes)
{
    struct held_slot *held = &s->slot[slot];
    const struct pieces *all = s->file->pieces;
    uint64_t begin = now_ns(), first = s->payload_at[payload], end = s->payload_at[payload + 1];
    uint64_t at = slot_at(snapfile_of(s->file), slot) + first;
    size_t nth = 0, n = (size_t)(end - first);
    bool in_turn = held->payloads == payload; /* an audit runs the task several times */
    bool stored = in_turn && !held->bad;
    held->payloads += in_turn;
    for (size_t i = 0; i < all->n && stored; i++)
        for (size_t k = 0; k < all->tensor[i].n; k++, nth++) {
            const struct piece *p = &all->tensor[i].piece[k];
            const char *of_piece = (const char *)bytes + (p->offset - first);
            if (p->offset < first || p->offset >= end)
                continue;
            held->bad |= !all_finite((const void *)of_piece, piece_elements(p));
            held->hashes[nth] = hash_bytes(of_piece, ELEMENT_BYTES * piece_elements(p), 0);
        }
    if (!stored || held->bad || s->failed)
        return;
    if (s->memory)
        s->persist(s->memory + at, bytes, n);
    else if (s->direct >= 0 && (uintptr_t)bytes % SNAP_PAGE == 0)
        stored = put_bytes(s, s->direct, bytes, n, at);
    else if ((stored = put_bytes(s, s->fd, bytes, n, at)))
        start_writing(s->fd, at, n);
    s->counts.bytes += stored ? n : 0;
    s->counts.ns += now_ns() - begin;
}

/* The hashes, and the commit's page: then the iteration is recoverable. */
static bool write_commit(struct snap *s, int slot)
{
    char page[SNAP_PAGE];
    const struct snapfile *f = snapfile_of(s->file);
    const struct held_slot *held = &s->slot[slot];
    size_t n = sizeof *held->hashes * f->in.n;
    struct snap_commit c = {
        .seq = s->seq + 1,
        .step = held->iteration,
        .slot = (uint32_t)slot,
        .samples = s->file->samples + ((int64_t)held->iteration - s->file->step) * s->batch,
        .session = s->file->session,
        .hash = hash_bytes(held->hashes, n, 0),
    };
    int at = s->page == 0;
    fill_page(f, &c, page);
    if (!put_bytes(s, s->fd, (const char *)held->hashes, n, hashes_at(f, slot)) ||
        !put_bytes(s, s->fd, page, SNAP_PAGE, (uint64_t)at * SNAP_PAGE))
        return false;
    s->page = at;
    s->seq++;
    return true;
}

static bool make_durable(struct snap *s)
{
    if (flush(s->fd) != 0)
        return stop_storing(s, "cannot sync the", strerror(errno));
    struct problem *p = s->beside ? attempt(take_name, s) : NULL;
    if (p)
        stop_storing(s, "cannot rename the new", p->sentence);
    bool taken = !p;
    free(p);
    return taken && !tell_when_lost(s);
}

bool snap_commit(struct snap *s, int slot, bool sound, struct stored_step *stored)
{
    uint64_t begin = now_ns();
    bool beside = s->beside != NULL; /* without its name it cannot be found */
    const struct held_slot *held = &s->slot[slot];
    if (!s->slots.taken[slot]) /* an audit runs the task several times */
        return false;
    CHECK(!sound || held->payloads == s->n, "iteration %u is committed with %zu of %zu payloads", held->iteration,
          held->payloads, s->n);
    bool recoverable = sound && !held->bad && !s->failed && write_commit(s, slot);
    stored->step = held->iteration;
    stored->recoverable = now_ns();
    bool durable = recoverable && make_durable(s);
    stored->durable = now_ns();
    stored->recoverable = beside ? stored->durable : stored->recoverable;
    pthread_mutex_lock(&s->lock);
    s->slots.taken[slot] = false;
    if (durable) {
        s->slots.kept = slot;
        s->counts.stored++;
        s->counts.newest = held->iteration;
        s->counts.ns += stored->durable - begin;
    } else
        s->counts.dropped++;
    pthread_mutex_unlock(&s->lock);
    return durable;
}
