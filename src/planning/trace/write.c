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
#include "trace_parts.h"
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

/* ---- a file that is cut ------------------------------------------------------------------------------------------ */

static char *_Atomic mapped; /* the mapping of the writer that was opened last */
static _Atomic size_t mapped_size;
static atomic_bool cut;

/* Any other access that the system refuses ends the program, as usual. */
static void replace_lost_pages(int number, siginfo_t *info, void *unused)
{
    (void)unused;
    int access = PROT_READ | PROT_WRITE;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    char *map = mapped;
    char *at = info->si_addr;
    bool ours = map && at >= map && at < map + mapped_size;
    if (ours && mmap(map, mapped_size, access, flags, -1, 0) == map)
        cut = true;
    else
        signal(number, SIG_DFL);
}

static void tell_when_cut(struct trace_writer *writer)
{
    if (cut && !writer->lost)
        warn("the trace was cut by another program while it was written: it is lost, and training goes on");
    writer->lost = cut;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static struct trace_header make_header(const struct trace_header *given, uint64_t capacity)
{
    char state;
    struct trace_header header = *given;
    uint64_t end = sizeof header;
    memcpy(header.magic, TRACE_MAGIC, sizeof header.magic);
    header.version = TRACE_VERSION;
    for (size_t i = 0; i < TRACE_PARTS; i++) {
        const struct trace_part *part = &trace_parts[i];
        *PART_OF(uint64_t, &header, part->at) = end;
        end = round_up(end + *PART_OF(uint32_t, &header, part->n) * part->size, 64);
    }
    header.records_at = end;
    header.capacity = capacity;
    header.start_ns = header.kind == TRACE_SIMULATED ? 0 : now_ns();
    header.pid = getpid();
    process_state(header.pid, &header.born, &state);
    return header;
}

/* Gives the file its name.  `old`: a file that had the name, and is locked; it is replaced.  If there was none, link()
 * finds out whether another run has taken the name meanwhile.  The rename of publish() then does nothing, so the
 * temporary name is removed here.  A symbolic link that leads nowhere is replaced. */
static void take_trace_name(struct writer *file, const char *name, int old)
{
    char *temporary = copy_string(file->temporary);
    bool is_free = old < 0 && !exists(file->path);
    if (is_free && link(temporary, file->path) != 0 && errno == EEXIST)
        fail(EXIT_USAGE, "--trace %s: another run is writing there; wait for its end or choose another name", name);
    must(publish(file));
    unlink(temporary);
    if (old >= 0)
        close(old);
    free(temporary);
}

/* Reserves the file's bytes and maps them.  A disk that fills up later would end the run with SIGBUS at a store. */
static void map_file(struct trace_writer *writer, const char *name)
{
    char text[NUMBER_TEXT];
    int error = reserve_bytes(writer->fd, writer->size);
    if (error == 0) {
        writer->header = mmap(NULL, writer->size, PROT_READ | PROT_WRITE, MAP_SHARED, writer->fd, 0);
        if (writer->header == MAP_FAILED)
            error = errno;
    }
    if (error)
        fail(EXIT_IO,
             "cannot make the trace %s with %s for its records: %s; write it to another disk, or make room "
             "there",
             name, format_bytes(text, (double)writer->size), strerror(error));
    mapped = (char *)writer->header;
    mapped_size = writer->size;
    cut = false;
    const struct sigaction action = {.sa_sigaction = replace_lost_pages, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
}

static void copy_tables(struct trace_writer *writer, const struct trace_header *header, const struct trace *given)
{
    for (size_t i = 0; i < TRACE_PARTS; i++) {
        const struct trace_part *part = &trace_parts[i];
        uint32_t n = *PART_OF(uint32_t, header, part->n);
        uint64_t at = *PART_OF(uint64_t, header, part->at);
        if (n > 0)
            memcpy((char *)writer->header + at, *PART_OF(void *, given, part->table), n * part->size);
    }
}

char *private_trace_path(void)
{
    const char *const places[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};
    size_t i = 0;
    while (i + 1 < COUNT(places) && (!places[i] || access(places[i], W_OK | X_OK) != 0))
        i++;
    return format_string("%s/yard-%ld.trace", places[i], (long)getpid());
}

/* The file is filled under another name and renamed: a program that waits for it finds it with its tables, and a viewer
 * that still shows the last run's file keeps that one.  It is locked before it has the name, and so is the file that
 * has the name until then: a second run is refused at any moment. */
struct trace_writer *open_trace_writer(const char *path, const struct trace *given, uint64_t capacity)
{
    if (given->header.n_lanes > TRACE_MAX_LANES)
        fail(EXIT_USAGE, "the list has %u lanes, but a trace has room for %d: take fewer devices",
             given->header.n_lanes, TRACE_MAX_LANES);
    int old;
    must(open_locked("--trace", path, O_RDONLY, &old));
    expect_own_kind("--trace", path, KIND_TRACE, "trace that yard wrote");
    struct writer *file = open_writer(path);
    struct trace_header header = make_header(&given->header, MAX(capacity, 1));
    struct trace_writer *writer = allocate(1, sizeof *writer);
    writer->size = header.records_at + header.capacity * sizeof *writer->ring;
    writer->capacity = header.capacity;
    writer->n_tasks = header.n_tasks;
    writer->fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
    if (writer->fd < 0 || fchmod(writer->fd, 0600) != 0)
        fail(EXIT_IO, "cannot write the trace %s: %s", path, strerror(errno));
    lock_file("--trace", path, writer->fd);
    map_file(writer, path);
    writer->ring = PART_OF(struct trace_record, writer->header, header.records_at);
    copy_tables(writer, &header, given);
    *writer->header = header;
    take_trace_name(file, path, old);
    return writer;
}

uint64_t begin_trace_record(struct trace_writer *writer, uint32_t step, uint32_t task, uint64_t queued)
{
    CHECK(task < writer->n_tasks && step > 0, "task %u of %u, step %u", task, (unsigned)writer->n_tasks, step);
    struct trace_record *record = &writer->ring[writer->head % writer->capacity];
    __atomic_store_n(&record->end, 0, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE); /* end = 0 is seen before any other change of the slot */
    record->start = 0;
    record->step = step;
    record->task = task;
    record->flags = writer->paused ? TRACE_AFTER_PAUSE : 0;
    record->loss = 0;
    writer->paused = false;
    record->queued = queued;
    __atomic_store_n(&writer->header->alive_ns, queued, __ATOMIC_RELAXED);
    __atomic_store_n(&writer->header->head, writer->head + 1, __ATOMIC_RELEASE);
    tell_when_cut(writer);
    return writer->head++;
}

/* Has the ring come round to the record? */
static bool is_overtaken(const struct trace_writer *writer, uint64_t number)
{
    return __atomic_load_n(&writer->header->head, __ATOMIC_RELAXED) - number > writer->capacity;
}

void tell_record_loss(struct trace_writer *writer, uint64_t number, double loss)
{
    if (!is_overtaken(writer, number))
        writer->ring[number % writer->capacity].loss = (float)loss;
}

void end_trace_record(struct trace_writer *writer, uint64_t number, uint64_t start, uint64_t end, uint32_t flags)
{
    if (is_overtaken(writer, number))
        return;
    struct trace_record *record = &writer->ring[number % writer->capacity];
    end = MAX(end, 1);
    record->start = MIN(start, end);
    record->flags = flags | (record->flags & TRACE_AFTER_PAUSE);
    if (start > end)
        record->flags |= TRACE_APPROXIMATE;
    __atomic_store_n(&record->end, end, __ATOMIC_RELEASE);
    __atomic_store_n(&writer->header->alive_ns, end, __ATOMIC_RELAXED);
}

void show_trainer_alive(struct trace_writer *writer, uint64_t paused_task)
{
    __atomic_store_n(&writer->header->alive_ns, now_ns(), __ATOMIC_RELAXED);
    __atomic_store_n(&writer->header->paused_task, paused_task, __ATOMIC_RELAXED);
    writer->paused |= paused_task != 0;
}

const struct trace_control *request_in_file(const struct trace_writer *writer) { return &writer->header->control; }

void close_trace_writer(struct trace_writer *writer)
{
    writer->header->closed_ns = now_ns();
    size_t used = writer->header->records_at + MIN(writer->head, writer->capacity) * sizeof *writer->ring;
    mapped = NULL;
    munmap(writer->header, writer->size);
    tell_when_cut(writer);
    if (!cut && ftruncate(writer->fd, (off_t)used) != 0)
        warn("the unused room at the trace's end could not be cut off: %s; the trace is whole", strerror(errno));
    close(writer->fd);
    free(writer);
}
