/* write.c - the writer's half of trace_file.h: a shared mapping, and a few stores per record.
 *
 * Only the order of the stores protects a reader (see the layout in trace_file.h).  The pages belong to the file, not
 * to the process: what was stored is there for readers however the process ends.
 *
 * When another program cuts the file, its pages are gone, and the next store would end the training with SIGBUS.  No
 * check before a store is early enough, and writing by system calls takes a microsecond or two each, a third of a small
 * task.  So the signal puts memory of the process in place of the lost pages: the store is done there, and the trace is
 * lost.
 */
#include "follow.h"
#include "trainer/file/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The structs are the file's layout: no compiler may pad them otherwise. */
_Static_assert(sizeof(struct trace_header) == 1088 && TRACE_LIVE == 960 && TRACE_CONTROL == 1024, "trace_header");
_Static_assert(sizeof(struct trace_device) == 120 && sizeof(struct trace_lane) == 64 &&
                   sizeof(struct trace_task) == 160 && sizeof(struct trace_tensor) == 80 &&
                   sizeof(struct trace_edge) == 8 && sizeof(struct trace_record) == 40,
               "the tables");

struct trace_writer {
    int fd;
    size_t size;                 /* the mapping's */
    struct trace_header *header; /* the mapping */
    struct trace_record *ring;
    uint64_t capacity, n_tasks; /* copies of the header's: other programs can write to the mapping */
    uint64_t head;              /* the issuing thread's copy of header->head */
    bool paused;                /* true: a viewer has paused the trainer since the last record was begun */
    bool lost;                  /* true: the file was cut, and a warning has said so */
};

/* ---- a file that is cut ---------------------------------------------------------------------------------------- */

static char *_Atomic mapped; /* the mapping of the writer that was opened last */
static _Atomic size_t mapped_size;
static atomic_bool cut;

/* Any other access that the system refuses ends the program, as usual. */
static void replace_lost_pages(int number, siginfo_t *info, void *unused)
{
    (void)unused;
    const int access = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    char *map = mapped, *at = info->si_addr;
    bool ours = map && at >= map && at < map + mapped_size;
    if (ours && mmap(map, mapped_size, access, flags, -1, 0) == map)
        cut = true;
    else
        signal(number, SIG_DFL);
}

static void tell_when_cut(struct trace_writer *w)
{
    if (cut && !w->lost)
        warn("the trace was cut by another program while it was written: it is lost, and training goes on");
    w->lost = cut;
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

static struct trace_header make_header(const struct trace_header *given, uint64_t capacity)
{
    char state;
    struct trace_header h = *given;
    uint64_t end = sizeof h;
    memcpy(h.magic, TRACE_MAGIC, sizeof h.magic);
    h.version = TRACE_VERSION;
    for (size_t i = 0; i < TRACE_PARTS; i++) {
        const struct trace_part *p = &trace_parts[i];
        *PART_OF(uint64_t, &h, p->at) = end;
        end = round_up(end + *PART_OF(uint32_t, &h, p->n) * p->size, 64);
    }
    h.records_at = end;
    h.capacity = capacity;
    h.start_ns = h.kind == TRACE_SIMULATED ? 0 : now_ns();
    h.pid = getpid();
    process_state(h.pid, &h.born, &state);
    return h;
}

/* Gives the file its name.  It replaces `old`, which had the name and is locked.  Where there was none, a link shows
 * whether another run was faster; the rename then does nothing, and the temporary name is removed.  A link that leads
 * nowhere is replaced. */
static void take_trace_name(struct writer *file, const char *name, int old)
{
    char *temporary = copy_string(file->temporary);
    bool is_free = old < 0 && !exists(file->path);
    if (is_free && link(temporary, file->path) != 0 && errno == EEXIST)
        fail(EXIT_USAGE, "--trace %s: another run is writing there; wait for its end or choose another name", name);
    publish(file);
    unlink(temporary);
    if (old >= 0)
        close(old);
    free(temporary);
}

/* Reserves the file's bytes and maps them.  A disk that fills up later would end the run with SIGBUS at a store. */
static void map_file(struct trace_writer *w, const char *name)
{
    char text[32];
    int error = reserve_bytes(w->fd, w->size);
    if (error == 0) {
        w->header = mmap(NULL, w->size, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd, 0);
        if (w->header == MAP_FAILED)
            error = errno;
    }
    if (error)
        fail(EXIT_IO, "cannot make the trace %s with %s for its records: %s; take another place or fewer records", name,
             format_bytes(text, (double)w->size), strerror(error));
    mapped = (char *)w->header;
    mapped_size = w->size;
    cut = false;
    const struct sigaction action = {.sa_sigaction = replace_lost_pages, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
}

static void copy_tables(struct trace_writer *w, const struct trace_header *h, const struct trace *given)
{
    for (size_t i = 0; i < TRACE_PARTS; i++) {
        const struct trace_part *p = &trace_parts[i];
        const uint32_t n = *PART_OF(uint32_t, h, p->n);
        const uint64_t at = *PART_OF(uint64_t, h, p->at);
        if (n > 0)
            memcpy((char *)w->header + at, *PART_OF(void *, given, p->table), n * p->size);
    }
}

/* The file is filled under another name and renamed: a program that waits for it finds it with its tables, and a viewer
 * that still shows the last run's file keeps that one.  It is locked before it has the name, and so is the file that
 * has the name until then: a second run is refused at any moment. */
struct trace_writer *trace_create(const char *name, const struct trace *given, uint64_t capacity)
{
    int old = open_locked("--trace", name, O_RDONLY);
    expect_own_kind("--trace", name, KIND_TRACE, "trace of yard's");
    struct writer *file = open_writer(name);
    struct trace_header h = make_header(&given->header, MAX(capacity, 1));
    struct trace_writer *w = allocate(1, sizeof *w);
    w->size = h.records_at + h.capacity * sizeof *w->ring;
    w->capacity = h.capacity;
    w->n_tasks = h.n_tasks;
    w->fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
    if (w->fd < 0 || fchmod(w->fd, 0600) != 0)
        fail(EXIT_IO, "cannot write the trace %s: %s", name, strerror(errno));
    lock_file("--trace", name, w->fd);
    map_file(w, name);
    w->ring = PART_OF(struct trace_record, w->header, h.records_at);
    copy_tables(w, &h, given);
    *w->header = h;
    take_trace_name(file, name, old);
    return w;
}

uint64_t trace_begin(struct trace_writer *w, uint32_t step, uint32_t task, uint64_t queued)
{
    CHECK(task < w->n_tasks && step > 0, "task %u of %u, step %u", task, (unsigned)w->n_tasks, step);
    struct trace_record *r = &w->ring[w->head % w->capacity];
    __atomic_store_n(&r->end, 0, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE); /* end = 0 is seen before any other change of the slot */
    r->start = 0;
    r->step = step;
    r->task = task;
    r->flags = w->paused ? TRACE_AFTER_PAUSE : 0;
    r->loss = 0;
    w->paused = false;
    r->queued = queued;
    __atomic_store_n(&w->header->alive_ns, queued, __ATOMIC_RELAXED);
    __atomic_store_n(&w->header->head, w->head + 1, __ATOMIC_RELEASE);
    tell_when_cut(w);
    return w->head++;
}

/* Has the ring come round to the record? */
static bool is_overtaken(const struct trace_writer *w, uint64_t number)
{
    return __atomic_load_n(&w->header->head, __ATOMIC_RELAXED) - number > w->capacity;
}

void trace_tell_loss(struct trace_writer *w, uint64_t number, double loss)
{
    if (!is_overtaken(w, number))
        w->ring[number % w->capacity].loss = (float)loss;
}

void trace_end(struct trace_writer *w, uint64_t number, uint64_t start, uint64_t end, uint32_t flags)
{
    if (is_overtaken(w, number))
        return;
    struct trace_record *r = &w->ring[number % w->capacity];
    end = MAX(end, 1);
    r->start = MIN(start, end);
    r->flags = flags | (r->flags & TRACE_AFTER_PAUSE);
    if (start > end)
        r->flags |= TRACE_APPROXIMATE;
    __atomic_store_n(&r->end, end, __ATOMIC_RELEASE);
    __atomic_store_n(&w->header->alive_ns, end, __ATOMIC_RELAXED);
}

void trace_alive(struct trace_writer *w, uint64_t paused_task)
{
    __atomic_store_n(&w->header->alive_ns, now_ns(), __ATOMIC_RELAXED);
    __atomic_store_n(&w->header->paused_task, paused_task, __ATOMIC_RELAXED);
    w->paused |= paused_task != 0;
}

const struct trace_control *trace_asked(const struct trace_writer *w) { return &w->header->control; }

void trace_close(struct trace_writer *w)
{
    w->header->closed_ns = now_ns();
    size_t used = w->header->records_at + MIN(w->head, w->capacity) * sizeof *w->ring;
    mapped = NULL;
    munmap(w->header, w->size);
    tell_when_cut(w);
    if (!cut && ftruncate(w->fd, (off_t)used) != 0)
        warn("the trace keeps its unused room: %s", strerror(errno));
    close(w->fd);
    free(w);
}
