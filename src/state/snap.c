/* snap.c - the run's side of a snapshot file: iterations are stored in turn, and one that is whole is never lost.
 *
 * The newest commit's slot and page stay as they are until a newer one is durable:
 *
 *     snap_begin    a slot that neither the newest written commit, nor the newest durable one, nor an iteration under
 *                   way holds; none: this iteration is dropped, and nobody waits
 *     snap_write    a piece at a time: are its values finite, its hash, and a write to the slot
 *     snap_commit   the commit page, into the page that the newest commit is not on      [lasts through a kill]
 *                   fdatasync, of payloads and page at once                              [and through a power cut]
 *
 *     page 0     commit 1 . . . . . . . commit 3 . . .         time goes to the right; two slots
 *     page 1             commit 2 . . . . . . . commit 4
 *     slot 1     1 . . . 3 3 3 . . . . .                       slot 1 is written again when 2 is durable
 *     slot 2         2 2 2 . . . 4 4 4
 *
 * Payloads and page may reach the disk in any order, whole or torn: the page has their hashes, so it counts only with
 * all of them.  One flush at a time is under way, so of two pages one is always sure.  Both are chosen by what is
 * there, not by counting: a run that goes on with a file keeps the page and slot of the commit that it found, whichever
 * they are.  Before it writes anything it syncs the file and its name, and reads it again from the disk: what it found
 * may so far have been in memory only, or, where the system lost it, is not there at all.
 *
 * A file is made beside its name, filled with zeros and synced, so that writing allocates nothing; it takes the name at
 * once where there is nothing to lose, else when its first commit is durable.  A lock on the file keeps a second run
 * out. When the system reports an error nothing is written or acknowledged any more: behind a failed fdatasync nobody
 * knows what is on the disk, and asking again does not tell.  Training goes on.
 *
 * Copies of a byte on its way out: one, from the device to the host's buffer (the snapshot).  From there the disk
 * fetches it itself (O_DIRECT), where the file system allows that and the payload fills whole pages; elsewhere there is
 * a second one, to the page cache, from which the disk is asked to fetch it at once.  Cores read the buffer once: piece
 * by piece, small enough for a core's cache, for the check, and from there for the hash and the second copy.  A file in
 * persistent memory is mapped, where libpmem is installed: then the second copy goes there, and is the write.
 */
#include "snap.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 18 };

struct held_slot {
    bool taken; /* by an iteration under way */
    uint32_t iteration;
    bool *written; /* payloads, by number */
    uint64_t *hashes;
};
typedef void *persist_bytes(void *to, const void *from, size_t n);
struct snap {
    const char *path;        /* the description's */
    struct checkpoint *file; /* its description; step and samples as the run began */
    int64_t batch;
    int fd, direct; /* the same file, the second past the page cache; -1: not to be had */
    char *memory;   /* the same, in persistent memory; NULL: it lies elsewhere */
    persist_bytes *persist;
    struct writer *beside; /* the file has not its name yet, */
    int old;               /* which is this file's, locked; -1: none */
    pthread_mutex_t committing, lock;
    /* under the lock */
    struct held_slot slot[MAX_SLOTS + 1]; /* from 1 on */
    int written, durable;                 /* slots of the newest commits; 0: none */
    _Atomic bool failed;                  /* may be read without it */
    struct snap_counts counts;
    /* while committing */
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
    for (s->old = -1; s->old < 0 || !leads_to(s->path, s->old);) { /* a run that has just ended may have replaced it */
        if (s->old >= 0)
            close(s->old);
        o->made = access(s->path, F_OK) != 0;
        s->old = open(s->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
        if (s->old < 0 || fstat(s->old, &status) != 0)
            fail(EXIT_IO, "cannot write the snapshot file %s: %s; does its folder exist, and may you write there?",
                 s->path, strerror(errno));
        if (!S_ISREG(status.st_mode))
            fail(EXIT_USAGE, "%s is no regular file: --snapshot needs one", s->path);
        if (flock(s->old, LOCK_EX | LOCK_NB) == 0)
            continue;
        if (errno != EWOULDBLOCK)
            fail(EXIT_IO, "cannot lock the snapshot file %s: %s", s->path, strerror(errno));
        fail(EXIT_USAGE, "another run is writing snapshots to %s: choose another file, or wait until it ends", s->path);
    }
    if (!is_snapshot(s->path))
        fail(EXIT_USAGE, "%s is no snapshot file, and --snapshot would replace it: choose another name", s->path);
}

/* ---- a new file ------------------------------------------------------------------------------------------------- */

static void write_zeros(struct writer *w, uint64_t until)
{
    char *zeros = allocate((size_t)MIN(CHUNK, until), 1);
    while (w->offset < until)
        write_bytes(w, zeros, (size_t)MIN(CHUNK, until - w->offset));
    free(zeros);
}

static void make_file(struct snap *s, const char *manifest)
{
    char page[SNAP_PAGE], bytes[32];
    const struct snapshot *f = s->file->snapshot;
    struct writer *w = s->beside = open_writer(s->path);
    int code = reserve_bytes(w->fd, f->file_bytes);
    if (code)
        fail(EXIT_IO,
             "cannot make room for the snapshot file %s: %s for %d slots: %s; fewer --snapshot-slots need less",
             s->path, format_bytes(bytes, (double)f->file_bytes), f->slots, strerror(code));
    fill_superblock(f, page);
    write_bytes(w, page, SNAP_PAGE);
    write_bytes(w, page, SNAP_PAGE);
    write_zeros(w, f->manifest_at);
    write_bytes(w, manifest, (size_t)f->manifest_bytes);
    write_zeros(w, f->file_bytes);
    s->fd = fcntl(w->fd, F_DUPFD_CLOEXEC, 0);
    if (s->fd < 0 || flush(s->fd) != 0 || flock(s->fd, LOCK_EX | LOCK_NB) != 0)
        fail(EXIT_IO, "cannot finish the snapshot file %s: %s", s->path, strerror(errno));
}

static void take_name(void *snap)
{
    struct snap *s = snap;
    struct writer *w = s->beside;
    s->beside = NULL;
    publish(w);
    close(s->old);
    s->old = -1;
}

/* ---- the old file ----------------------------------------------------------------------------------------------- */

static void recover(void *opening)
{
    struct opening *o = opening;
    o->old = read_snapshot(o->s->path);
}

static void recover_old(struct opening *o)
{
    const struct snap *s = o->s;
    struct stat status;
    if (fstat(s->old, &status) != 0 || flush(s->old) != 0)
        fail(EXIT_IO, "cannot sync the snapshot file %s: %s", s->path, strerror(errno));
    if (status.st_size == 0)
        return;
    sync_folder_of(s->path);
    forget_cached(s->old);
    struct problem *p = attempt(recover, o);
    if (p)
        warn("%s; another file takes its place when an iteration is stored", p->sentence);
    free(p);
}

/* Goes on with the old file: its newest commit is kept. */
static void take_over(struct snap *s, const struct snapshot *old)
{
    struct snapshot *f = s->file->snapshot;
    f->id[0] = old->id[0], f->id[1] = old->id[1];
    s->fd = s->old;
    s->old = -1;
    s->written = s->durable = (int)old->newest.slot;
    s->page = old->page;
    s->seq = old->last_seq;
}

/* ---- opening ---------------------------------------------------------------------------------------------------- */

/* The file's layout; returns its manifest. */
static char *lay_out(struct snap *s, const struct snap_plan *plan)
{
    struct snapshot *f = s->file->snapshot = allocate(1, sizeof *f);
    f->slots = plan->slots;
    f->n = plan->n;
    f->payload = allocate(f->n, sizeof *f->payload);
    for (size_t i = 0; i < f->n; i++)
        f->payload[i].bytes = plan->payload[i].bytes;
    place_payloads(f);
    f->file_bytes = 0;
    s->file->pieces = cut_stored(plan, f);
    char *manifest = manifest_text(s->file);
    f->manifest_bytes = strlen(manifest);
    f->manifest_hash = hash_bytes(manifest, strlen(manifest), 0);
    place_payloads(f);
    if (getentropy(f->id, sizeof f->id) != 0)
        fail(EXIT_IO, "the system has no random numbers: %s", strerror(errno));
    return manifest;
}

static void open_file(void *opening)
{
    struct opening *o = opening;
    struct snap *s = o->s;
    lock_name(o);
    char *manifest = lay_out(s, o->plan);
    recover_old(o);
    struct checkpoint *old = o->old;
    if (old && old->snapshot->newest.slot && !same_sizes(&old->pieces->config, o->plan->config))
        fail(EXIT_USAGE, "%s is a snapshot of another model (%s): --snapshot in another file", s->path,
             describe_sizes((char[160]){0}, &old->pieces->config));
    const struct snapshot *a = s->file->snapshot, *b = old ? old->snapshot : NULL;
    if (b && a->slots == b->slots && a->manifest_bytes == b->manifest_bytes && a->manifest_hash == b->manifest_hash &&
        a->file_bytes == b->file_bytes)
        take_over(s, old->snapshot);
    else
        make_file(s, manifest);
    forget_cached(s->fd); /* what is written past the cache would have to look for it there */
    s->memory = map_memory(s->fd, s->file->snapshot->file_bytes, &s->persist);
    s->direct = s->memory ? -1 : open_direct(s->fd);
    bool empty = old ? !old->snapshot->newest.slot : lseek(s->old, 0, SEEK_END) == 0;
    if (s->beside && empty)
        take_name(s);
    if (old)
        free_checkpoint(old);
    free(manifest);
}

struct problem *open_snap(const char *path, const struct checkpoint *c, const struct snap_plan *plan, struct snap **out)
{
    CHECK(plan->slots > 0 && plan->slots <= MAX_SLOTS && plan->n, "%d slots of %zu payloads", plan->slots, plan->n);
    struct snap *s = *out = allocate(1, sizeof *s);
    struct opening o = {.s = s, .plan = plan};
    *s = (struct snap){.file = like_checkpoint(c, path), .batch = plan->batch, .page = -1};
    s->path = s->file->path;
    s->fd = s->direct = s->old = -1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->committing, NULL);
    for (int k = 1; k <= plan->slots; k++) {
        s->slot[k].hashes = allocate(plan->n, sizeof *s->slot[k].hashes);
        s->slot[k].written = allocate(plan->n, sizeof *s->slot[k].written);
    }
    struct problem *p = attempt(open_file, &o);
    if (p && o.made)
        unlink(path);
    if (p) {
        s->beside = NULL; /* attempt() has removed it */
        close_snap(s);
        *out = NULL;
    }
    return p;
}

void close_snap(struct snap *s)
{
    if (s->beside)
        abandon(s->beside);
    int fds[] = {s->fd, s->direct, s->old};
    for (size_t i = 0; i < COUNT(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    if (s->memory)
        munmap(s->memory, s->file->snapshot->file_bytes);
    for (int k = 1; k <= MAX_SLOTS; k++)
        free(s->slot[k].hashes), free(s->slot[k].written);
    free_checkpoint(s->file);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->committing);
    free(s);
}

/* ---- a run's calls ---------------------------------------------------------------------------------------------- */

static void give_up(struct snap *s, const char *what, const char *why)
{
    pthread_mutex_lock(&s->lock);
    bool first = !s->failed;
    uint32_t newest = s->counts.newest;
    s->failed = true;
    pthread_mutex_unlock(&s->lock);
    char *kept = newest ? format_string("iteration %u is its last", newest) : copy_string("it has none of this run");
    if (first)
        warn("%s snapshot file %s: %s; training goes on, but stores nothing there any more: %s", what, s->path, why,
             kept);
    free(kept);
}

static bool put_bytes(struct snap *s, int fd, const char *bytes, size_t n, uint64_t at)
{
    for (ssize_t done; n; bytes += done, n -= (size_t)done, at += (uint64_t)done) {
        done = pwrite(fd, bytes, n, (off_t)at);
        if (done < 0 && errno == EINTR)
            done = 0;
        else if (done <= 0) {
            give_up(s, "cannot write the", done ? strerror(errno) : "nothing was taken");
            return false;
        }
    }
    return true;
}

static int free_slot(const struct snap *s)
{
    for (int k = 1; k <= s->file->snapshot->slots && !s->failed; k++)
        if (!s->slot[k].taken && k != s->written && k != s->durable)
            return k;
    return 0;
}

int snap_begin(struct snap *s, uint32_t iteration)
{
    pthread_mutex_lock(&s->lock);
    int slot = free_slot(s);
    if (slot) {
        s->slot[slot].taken = true;
        s->slot[slot].iteration = iteration;
        memset(s->slot[slot].written, 0, s->file->snapshot->n * sizeof *s->slot[slot].written);
    } else
        s->counts.dropped++;
    pthread_mutex_unlock(&s->lock);
    return slot;
}

static bool all_finite(const uint32_t *word, size_t n)
{
    enum { EXPONENT = 0x7F800000, TOGETHER = 16 }; /* a vector or several */
    uint32_t bad = 0;
    for (; n >= TOGETHER; word += TOGETHER, n -= TOGETHER)
        for (size_t i = 0; i < TOGETHER; i++)
            bad |= (word[i] & EXPONENT) == EXPONENT;
    for (size_t i = 0; i < n; i++)
        bad |= (word[i] & EXPONENT) == EXPONENT;
    return !bad;
}

/* Into persistent memory; or to the page cache, and on to the disk. */
static bool put_chunk(struct snap *s, const char *bytes, size_t n, uint64_t at)
{
    if (s->memory)
        return s->persist(s->memory + at, bytes, n);
    bool sound = put_bytes(s, s->fd, bytes, n, at);
    start_writing(s->fd, at, n);
    return sound;
}

bool snap_write(struct snap *s, int slot, size_t payload, const void *bytes)
{
    struct hasher hash;
    uint64_t begin = now_ns(), at = slot_at(s->file->snapshot, slot) + s->file->snapshot->payload[payload].at;
    size_t all = (size_t)s->file->snapshot->payload[payload].bytes;
    bool direct = s->direct >= 0 && ((uintptr_t)bytes | all) % SNAP_PAGE == 0;
    bool sound = !s->failed, finite = true;
    hash_begin(&hash, 0);
    for (size_t done = 0, n; done < all && sound && finite; done += n) {
        const char *chunk = (const char *)bytes + done;
        n = MIN(CHUNK, all - done);
        finite = all_finite((const void *)chunk, n / ELEMENT_BYTES);
        hash_add(&hash, chunk, n);
        sound = !finite || direct || put_chunk(s, chunk, n, at + done);
    }
    if (direct && finite && sound)
        sound = put_bytes(s, s->direct, bytes, all, at);
    pthread_mutex_lock(&s->lock);
    s->slot[slot].hashes[payload] = hash_end(&hash);
    s->slot[slot].written[payload] = finite;
    s->counts.bytes += sound ? all : 0;
    s->counts.ns += now_ns() - begin;
    pthread_mutex_unlock(&s->lock);
    return finite;
}

void snap_drop(struct snap *s, int slot)
{
    pthread_mutex_lock(&s->lock);
    s->slot[slot].taken = false;
    s->counts.dropped++;
    pthread_mutex_unlock(&s->lock);
}

/* The commit page; recoverable, then, if the process is killed. */
static bool write_commit(struct snap *s, int slot)
{
    const struct snapshot *f = s->file->snapshot;
    uint32_t step = s->slot[slot].iteration;
    int64_t samples = s->file->samples + ((int64_t)step - s->file->step) * s->batch;
    struct snap_commit c = {s->seq + 1, step, (uint32_t)slot, samples, s->file->session};
    char *page = allocate(f->commit_bytes, 1);
    int at = s->page == 0;
    fill_commit(f, &c, s->slot[slot].hashes, page);
    bool done = put_bytes(s, s->fd, page, f->commit_bytes, commit_at(f, at));
    free(page);
    if (done)
        s->page = at, s->seq++;
    return done;
}

static bool make_durable(struct snap *s)
{
    if (flush(s->fd) != 0) {
        give_up(s, "cannot sync the", strerror(errno));
        return false;
    }
    struct problem *p = s->beside ? attempt(take_name, s) : NULL;
    if (p)
        give_up(s, "cannot rename the new", p->sentence);
    free(p);
    return !p;
}

/* Its slot is held as the newest one's from now on. */
static void note_written(struct snap *s, int slot)
{
    pthread_mutex_lock(&s->lock);
    s->written = slot;
    s->slot[slot].taken = false;
    pthread_mutex_unlock(&s->lock);
}

static void note_durable(struct snap *s, int slot, uint64_t begin)
{
    pthread_mutex_lock(&s->lock);
    s->durable = slot;
    s->counts.stored++;
    s->counts.newest = s->slot[slot].iteration;
    s->counts.ns += now_ns() - begin;
    pthread_mutex_unlock(&s->lock);
}

bool snap_commit(struct snap *s, int slot, struct snap_times *t)
{
    uint64_t begin = now_ns();
    pthread_mutex_lock(&s->committing);
    bool beside = s->beside != NULL, sound = !s->failed;
    for (size_t i = 0; i < s->file->snapshot->n; i++)
        CHECK(s->slot[slot].written[i], "iteration %u is committed without payload %zu", s->slot[slot].iteration, i);
    sound = sound && write_commit(s, slot);
    if (sound)
        note_written(s, slot);
    t->written = now_ns();
    sound = sound && make_durable(s);
    t->durable = now_ns();
    if (beside) /* it had not its name before */
        t->written = t->durable;
    if (sound)
        note_durable(s, slot, begin);
    else
        snap_drop(s, slot);
    pthread_mutex_unlock(&s->committing);
    return sound;
}

struct snap_counts snap_counts(struct snap *s)
{
    pthread_mutex_lock(&s->lock);
    struct snap_counts counts = s->counts;
    counts.in_memory = s->memory;
    pthread_mutex_unlock(&s->lock);
    return counts;
}
