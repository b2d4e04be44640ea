/* opening.c - a snapshot file that is there: read by a run that resumes, and taken over by a run that writes.
 *
 * Reading.  A page is valid if it has its hash, and the file's length.  With its slot and hashes put into the
 * manifest's pieces a commit is a checkpoint like any other; by falling seq, the first one that verifies is the newest
 * recoverable iteration.  So all pieces are of one iteration: what a later one has already written lies in another
 * slot.  Every size is checked before it is used.  What does not hold is told, a newer commit that is passed over too.
 *
 * Copies of a byte on its way back: from the page cache to memory, from there to the tensor, and to the device.  All is
 * read and hashed once here, to choose, and once more when it is loaded: in between a run may have begun to write the
 * slot again, and then the hash tells.
 *
 * Writing.  A new file is made beside its name, filled with zeros and synced, so that writing allocates nothing.  It
 * takes the name at once where there is nothing to lose, else when its first commit is durable.  A lock on the file
 * keeps a second run out.
 *
 * A file whose layout and options are the same is taken over.  Slot and page are chosen by what is there, not by
 * counting: a run that goes on with a file keeps the page and the slot of the commit that it found, whichever they are.
 * Before it writes anything it syncs the file and its name, and reads the file again from the disk.  What it found may
 * so far have been in memory only, or, where the system lost it, is not there at all.
 */
#include "snapshot.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NOTHING_COMMITTED "has no whole iteration: nothing was committed yet"

struct opening { /* the argument of open_file(), for attempt() */
    struct snap *s;
    const struct snap_plan *plan;
    bool made;              /* this run has made the file that has the name, empty, to lock it */
    struct checkpoint *old; /* the snapshot that is on the disk for sure; NULL: none that can be read */
};

/* ---- calls of the system ----------------------------------------------------------------------------------------- */

#ifdef __linux__
int flush_file(int fd) { return fdatasync(fd); } /* the file's length stays */

/* Only a hint: if something goes wrong, flush_file() tells. */
void start_writing(int fd, uint64_t at, size_t n) { sync_file_range(fd, (off_t)at, (off_t)n, SYNC_FILE_RANGE_WRITE); }

/* After this the next read is from the disk. */
static void forget_cached(int fd) { posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); }

/* The file itself, if it lies in persistent memory and libpmem is installed; else NULL. */
static char *map_memory(int fd, uint64_t bytes, persist_bytes **persist)
{
    char name[32];
    size_t mapped = 0;
    int persistent = 0;
    void *(*map)(const char *, size_t, int, mode_t, size_t *, int *) = NULL;
    void *library = dlopen("libpmem.so.1", RTLD_NOW | RTLD_LOCAL); /* stays */
    if (!library)
        return NULL;
    *(void **)&map = dlsym(library, "pmem_map_file");
    *(void **)persist = dlsym(library, "pmem_memcpy_persist");
    if (!map || !*persist)
        return NULL;
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    char *at = map(name, 0, 0, 0, &mapped, &persistent);
    if (at && persistent && mapped >= bytes)
        return at;
    if (at)
        munmap(at, mapped);
    return NULL;
}

/* The same file past the page cache; -1: reading a page tells that the file system does not have that. */
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
int flush_file(int fd) { return fcntl(fd, F_FULLFSYNC); }
void start_writing(int fd, uint64_t at, size_t n)
{
    (void)fd;
    (void)at;
    (void)n;
}
static void forget_cached(int fd) { (void)fd; }
static int open_direct(int fd)
{
    (void)fd;
    return -1;
}
static char *map_memory(int fd, uint64_t n, persist_bytes **persist)
{
    (void)fd;
    (void)n;
    (void)persist;
    return NULL;
}
#endif

/* ---- reading ---------------------------------------------------------------------------------------------------- */

#define NOTE_DAMAGE(s, ...)                                                                                            \
    (void)(*APPEND((s)->in.damage, (s)->in.n_damage, (s)->in.cap_damage) = format_string(__VA_ARGS__))

/* The pieces get the commit's hashes and its slot's place, and are then those of a checkpoint.  Is it whole? */
static bool install_commit(struct reader *r, struct checkpoint *c, const struct snap_commit *commit)
{
    struct snapfile *s = snapfile_of(c);
    uint64_t *hashes = allocate(s->in.n, sizeof *hashes), *hash = hashes;
    uint64_t slot_before = 0; /* the slot that the pieces' places in the file count from so far */
    if (s->newest.slot)
        slot_before = slot_at(s, (int)s->newest.slot);
    size_t damage = s->in.n_damage;
    s->newest = *commit;
    read_at(r, hashes, sizeof *hashes * s->in.n, hashes_at(s, (int)commit->slot));
    if (hash_bytes(hashes, sizeof *hashes * s->in.n, 0) != commit->hash)
        NOTE_DAMAGE(s, "%s: iteration %u is torn or damaged: the hashes at byte %llu are not those of its commit",
                    c->path, commit->step, (unsigned long long)hashes_at(s, (int)commit->slot));
    for (size_t i = 0; i < c->pieces->n; i++)
        for (size_t k = 0; k < c->pieces->tensor[i].n; k++) {
            c->pieces->tensor[i].piece[k].hash = *hash++;
            c->pieces->tensor[i].piece[k].file_at += slot_at(s, (int)commit->slot) - slot_before;
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

/* Is a run writing the file?  Then it has it locked. */
static bool is_written(struct reader *r)
{
    if (flock(r->fd, LOCK_SH | LOCK_NB) != 0)
        return errno == EWOULDBLOCK;
    flock(r->fd, LOCK_UN);
    return false;
}

/* A page that a run is writing may be read half-written: it is read again, until it is whole.  Without a run a bad page
 * stays bad. */
static const char *read_page(struct reader *r, bool live, int k, struct snapfile *found)
{
    enum { TRIES = 200 };
    const struct timespec wait = {.tv_nsec = 1000000};
    char page[SNAP_PAGE];
    const char *wrong;
    for (int tries = 0;; tries++) {
        read_at(r, page, SNAP_PAGE, (uint64_t)k * SNAP_PAGE);
        wrong = parse_page(found, page, r);
        if (!wrong || !live || tries == TRIES)
            return wrong;
        live = is_written(r); /* false: the page is read once more, since a run may just have ended */
        if (live)
            nanosleep(&wait, NULL);
    }
}

/* Returns the page with the newer commit, if a page is valid.  wrong[k]: why page k is not valid; NULL: it is. */
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
    return found[newer].newest; /* all zeros where the page is not valid */
}

/* Has a run committed something since then? */
static bool has_moved_on(struct reader *r, const struct snapfile before[2])
{
    struct snapfile now[2] = {0};
    const char *wrong[2];
    read_pages(r, true, now, wrong);
    return now[0].newest.seq != before[0].newest.seq || now[1].newest.seq != before[1].newest.seq;
}

/* The checkpoint that the file's manifest describes, whose pieces lie in no slot yet.  It owns s. */
static struct checkpoint *read_description(struct reader *r, const char *path, struct snapfile *s)
{
    size_t n = (size_t)s->manifest_bytes;
    char *manifest = allocate(n + 1, 1);
    read_at(r, manifest, n, MANIFEST_AT);
    if (hash_bytes(manifest, n, 0) != s->manifest_hash)
        fail(EXIT_FAILED, "%s is damaged: its manifest, bytes %d to %zu, has not the hash that its pages say", path,
             MANIFEST_AT, MANIFEST_AT + n);
    struct checkpoint *c = parse_manifest(path, manifest, n, &s->in);
    size_t pieces = count_pieces(c->pieces);
    if (pieces != s->in.n)
        fail(EXIT_FAILED, "%s is damaged or not ours: it has %zu pieces, its pages say %zu", path, pieces, s->in.n);
    free(manifest);
    return c;
}

/* live: a run may be writing.  *overtaken: something does not match, and meanwhile the run has committed anew, so it
 * may have written the slot that was read. */
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
    struct checkpoint *c = read_description(r, path, s);
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
    c->run = 0;                      /* not known */
    if (s->page >= 0 && *c->program) /* versions that did not write their name had other bytes in the run's place */
        c->run = found[s->page].run;
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

struct checkpoint *open_snapshot(const char *path)
{
    struct checkpoint *c = read_snapshot(path);
    const struct snapfile *s = snapfile_of(c);
    if (!s->newest.slot && s->in.n_damage)
        fail(EXIT_FAILED, "%s has no whole iteration: %s", path, s->in.damage[0]);
    if (!s->newest.slot)
        fail(EXIT_FAILED, "%s " NOTHING_COMMITTED, path);
    return c;
}

/* ---- a snapshot file as a store (struct store) ------------------------------------------------------------------- */

static json_t *snapshot_json(const struct checkpoint *c)
{
    const struct snapfile *s = snapfile_of(c);
    return json_pack("{s:i, s:i, s:I, s:I}", "slots", s->slots, "slot", (int)s->newest.slot, "commit",
                     (json_int_t)s->newest.seq, "slot_bytes", (json_int_t)s->in.bytes);
}

static void print_snapshot(const struct checkpoint *c)
{
    const struct snapfile *s = snapfile_of(c);
    char bytes[32];
    printf("snapshot    slot %u of %d, %zu pieces, %s a slot; commit %llu\n", s->newest.slot, s->slots, s->in.n,
           format_bytes(bytes, (double)s->in.bytes), (unsigned long long)s->newest.seq);
}

const struct store snapshot_store = {.name = "snapshot",
                                     .place = "a slot",
                                     .advice = "or a run writes there: read it once more, or copy it",
                                     .is_ours = is_snapshot,
                                     .open = open_snapshot,
                                     .to_json = snapshot_json,
                                     .print = print_snapshot};

/* ---- the name, locked -------------------------------------------------------------------------------------------- */

static void open_name(struct opening *o)
{
    struct snap *s = o->s;
    const char *path = s->file->path;
    struct stat status;
    o->made = access(path, F_OK) != 0;
    s->named = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
    if (s->named < 0 || fstat(s->named, &status) != 0)
        fail(EXIT_IO, "cannot write the snapshot file %s: %s; does its folder exist, and may you write there?", path,
             strerror(errno));
    if (!S_ISREG(status.st_mode))
        fail(EXIT_USAGE, "%s is no regular file: --snapshot needs one", path);
    if (flock(s->named, LOCK_EX | LOCK_NB) == 0)
        return;
    if (errno == EWOULDBLOCK)
        fail(EXIT_USAGE, "another run is writing snapshots to %s: choose another file, or wait until it ends", path);
    fail(EXIT_IO, "cannot lock the snapshot file %s: %s", path, strerror(errno));
}

/* Once more where a run that has just ended has replaced the file in between. */
static void lock_name(struct opening *o)
{
    struct snap *s = o->s;
    open_name(o);
    while (!leads_to(s->file->path, s->named)) {
        close(s->named);
        open_name(o);
    }
    if (!is_snapshot(s->file->path))
        fail(EXIT_USAGE, "%s is no snapshot file, and --snapshot would replace it: choose another name", s->file->path);
}

/* ---- a new file -------------------------------------------------------------------------------------------------- */

static void make_file(struct snap *s, const char *manifest)
{
    enum { CHUNK = 1 << 18 };
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
    if (s->fd < 0 || flush_file(s->fd) != 0 || flock(s->fd, LOCK_EX | LOCK_NB) != 0)
        fail(EXIT_IO, "cannot finish the snapshot file %s: %s", s->file->path, strerror(errno));
}

void take_name(void *snap)
{
    struct snap *s = snap;
    struct writer *w = s->beside;
    s->beside = NULL;
    publish(w);
    close(s->named);
    s->named = -1;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

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

static void read_old(void *opening)
{
    struct opening *o = opening;
    bool overtaken;
    o->old = read_once(o->s->file->path, false, &overtaken); /* the file is locked: no other run is writing */
}

/* Reads the snapshot that is on the disk for sure into o->old. */
static void recover(struct opening *o)
{
    sync_folder_of(o->s->file->path);
    forget_cached(o->s->named);
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
    s->fd = s->named;
    s->named = -1;
    s->ring->kept = (int)old->newest.slot;
    s->page = old->page;
}

static void open_file(void *opening)
{
    struct opening *o = opening;
    struct snap *s = o->s;
    struct stat status;
    lock_name(o);
    char *manifest = lay_out(s, o->plan);
    if (fstat(s->named, &status) != 0 || flush_file(s->named) != 0)
        fail(EXIT_IO, "cannot sync the snapshot file %s: %s", s->file->path, strerror(errno));
    bool empty = status.st_size == 0;
    if (!empty)
        recover(o);
    const struct snapfile *f = snapfile_of(s->file);
    const struct snapfile *old = o->old ? snapfile_of(o->old) : NULL;
    bool nothing_to_lose = empty || (old && !old->newest.slot);
    char sizes[160];
    s->seq = old ? old->last_seq : 0; /* also for a new file: its commits are newer */
    if (old && old->newest.slot && !same_sizes(&o->old->pieces->config, o->plan->config))
        fail(EXIT_USAGE, "%s is a snapshot of another model (%s): --snapshot in another file", s->file->path,
             describe_sizes(sizes, &o->old->pieces->config));
    if (old && has_same_layout(f, old))
        take_over(s, old);
    else
        make_file(s, manifest);
    forget_cached(s->fd); /* each write past the cache would have to look for its page in it */
    s->memory = map_memory(s->fd, slot_at(f, f->slots + 1), &s->persist);
    s->counts.in_memory = s->memory;
    s->direct = s->memory ? -1 : open_direct(s->fd);
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
    *s = (struct snap){.file = like_checkpoint(c, path), .batch = plan->batch, .ring = plan->ring, .page = -1};
    s->fd = -1;
    s->direct = -1;
    s->named = -1;
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
    int fds[] = {s->fd, s->direct, s->named};
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
