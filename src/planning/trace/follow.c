/* follow.c - the reader's half of trace.h, for a file that may grow while it is read.
 *
 * A poll reads the part of the header that changes, the records begun since the last poll, and again those that had not
 * ended.  So an idle ring costs one read of a few bytes, and a busy one as much as is new.  Ended records are kept
 * sorted by start: ends arrive a little out of order, so new ones are sorted and merged into the tail.
 *
 * When the writer laps the reader, records are lost, and counted.  `head` is read again after the slots: slots that the
 * writer may have begun to overwrite by then are dropped.
 */
#include "follow.h"
#include "trace_parts.h"
#include "trainer/file/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <unistd.h>

enum {
    SLOTS = 1024,  /* so many are read at once */
    KEEP = 4 << 20 /* records; when there are more, and more than the ring holds, the older half is dropped */
};

struct trace_follower {
    const char *path; /* the caller's, which outlives this */
    struct reader *file;
    struct trace *trace;
    uint64_t *number; /* for each unfinished record its place in the run */
    size_t cap_number, cap_unfinished, cap_records;
    enum trace_life life;
    bool changed;                                         /* true: something has changed since the last poll */
    struct trace_record slots[SLOTS], slots_again[SLOTS]; /* of the ring, read twice */

    int fd;                       /* for writing requests; -1: we may only read */
    struct trace_control request; /* the one in the file; until 0: nothing is asked */
};

/* The state and the start time in the text of /proc/PID/stat: fields 3 and 22.  Field 2, the name in brackets, may
 * contain anything, so counting begins after the last bracket. */
static bool parse_process(const char *text, uint64_t *born, char *state)
{
    const char *fields = strrchr(text, ')');
    if (!fields)
        return false;
    return sscanf(fields + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
                  state, born) == 2;
}

bool process_state(int pid, uint64_t *born, char *state)
{
    char path[32], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    *born = 0;
    *state = 'R';
    FILE *file = fopen(path, "re");
    if (!file)
        return access("/proc/self/stat", R_OK) != 0 && (kill(pid, 0) == 0 || errno == EPERM);
    size_t n = fread(text, 1, sizeof text - 1, file);
    text[n] = '\0';
    fclose(file);
    return parse_process(text, born, state);
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

/* Ties within a step are broken by the list's order, which is an order in which the tasks can run. */
static int by_start(const void *left, const void *right)
{
    const struct trace_record *a = left;
    const struct trace_record *b = right;
    if (a->start != b->start)
        return COMPARE(a->start, b->start);
    if (a->end != b->end)
        return COMPARE(a->end, b->end);
    if (a->step != b->step)
        return COMPARE(a->step, b->step);
    return COMPARE(a->task, b->task);
}

void sort_records(struct trace_record *records, size_t n) { SORT(records, n, by_start); }

/* Stores a record among the ended or the unfinished ones.  `again` is a second reading of the same slot, which differs
 * from `record` if the writer changed the slot in between (see the layout in trace_file.h). */
static void take_record(struct trace_follower *follower, uint64_t number, const struct trace_record *record,
                        const struct trace_record *again)
{
    struct trace *trace = follower->trace;
    bool ended = record->end != 0 && memcmp(record, again, sizeof *record) == 0;
    if (again->task >= trace->header.n_tasks || again->step == 0 || (ended && record->start > record->end))
        fail(EXIT_FAILED, DAMAGED "its record %" PRIu64 " is impossible; record it again", follower->file->path,
             number);
    if (ended) {
        GROW(trace->records, follower->cap_records, trace->n_records + 1);
        trace->records[trace->n_records++] = *record;
        return;
    }
    size_t n = trace->n_unfinished;
    GROW(follower->number, follower->cap_number, n + 1);
    follower->number[n++] = number;
    GROW(trace->unfinished, follower->cap_unfinished, trace->n_unfinished + 1);
    struct trace_record *unfinished = &trace->unfinished[trace->n_unfinished++];
    *unfinished = *again;
    unfinished->start = 0;
    unfinished->end = 0;
}

static bool is_lapped(const struct trace_follower *follower, uint64_t number, uint64_t head)
{
    return head - number > follower->trace->header.capacity;
}

/* Reads, at once, those of the records number[i .. n) that are near the first of them in the ring, and takes them.
 * Returns the index of the first that is left.  Those that have not ended move up in the same array. */
static size_t take_neighbours(struct trace_follower *follower, size_t i, size_t n)
{
    const struct trace_header *header = &follower->trace->header;
    uint64_t first = follower->number[i];
    uint64_t slot = first % header->capacity;
    uint64_t at = header->records_at + slot * sizeof *follower->slots;
    uint64_t limit = first + MIN(SLOTS, header->capacity - slot); /* the ring ends there, or `slots` does */
    uint64_t head;
    size_t next = i + 1;
    while (next < n && follower->number[next] < limit)
        next++;
    size_t bytes = (size_t)(follower->number[next - 1] - first + 1) * sizeof *follower->slots;
    read_at(follower->file, follower->slots, bytes, at);
    read_at(follower->file, follower->slots_again, bytes, at);
    read_at(follower->file, &head, sizeof head, TRACE_LIVE);
    for (; i < next; i++) {
        uint64_t number = follower->number[i];
        if (is_lapped(follower, number, head))
            follower->trace->n_lost++;
        else
            take_record(follower, number, &follower->slots[number - first], &follower->slots_again[number - first]);
    }
    return next;
}

/* Takes the records that had not ended, and those from `next` on.  It does so in pieces: a made-up count in a file with
 * holes must not ask for more memory than the records that there are. */
static void take_records(struct trace_follower *follower, uint64_t next)
{
    struct trace *trace = follower->trace;
    do {
        size_t n = trace->n_unfinished;
        for (int room = SLOTS; next < trace->header.head && room > 0; room--) {
            GROW(follower->number, follower->cap_number, n + 1);
            follower->number[n++] = next;
            next++;
        }
        trace->n_unfinished = 0;
        for (size_t i = 0; i < n;)
            i = take_neighbours(follower, i, n);
    } while (next < trace->header.head);
}

static bool is_not_after(const void *item, const void *key) { return by_start(item, key) <= 0; }

/* Sorts the new records [old, n_records) into the old ones, and returns the first index that changed. */
static size_t merge_new(struct trace *trace, size_t old)
{
    size_t n = trace->n_records;
    if (old == n)
        return n;
    const struct trace_record *earliest = &trace->records[old];
    for (size_t i = old + 1; i < n; i++)
        if (by_start(&trace->records[i], earliest) < 0)
            earliest = &trace->records[i];
    size_t at = lower_bound(earliest, trace->records, old, sizeof *trace->records, is_not_after);
    SORT(trace->records + at, n - at, by_start);
    return at;
}

/* A step is whole when none of its records is unfinished, and a later step has begun or the trace is closed. */
static void update_whole_step(struct trace *trace)
{
    uint32_t whole = UINT32_MAX, last = 0;
    for (size_t i = 0; i < TRACE_LISTS; i++) {
        const struct trace_step_list *steps = &trace->steps[i];
        if (steps->n > 0)
            last = MAX(last, steps->items[steps->n - 1].step);
    }
    uint32_t begun = last;
    for (size_t i = 0; i < trace->n_unfinished; i++) {
        begun = MAX(begun, trace->unfinished[i].step);
        whole = MIN(whole, trace->unfinished[i].step - 1);
    }
    if (!trace->header.closed_ns && begun > 0)
        whole = MIN(whole, begun - 1);
    else if (!trace->header.closed_ns)
        whole = 0;
    trace->whole_step = MIN(whole, last);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

bool can_request(const struct trace_follower *follower)
{
    return follower->fd >= 0 && follower->life != LIFE_CLOSED && follower->life != LIFE_GONE;
}

const struct trace_control *current_request(const struct trace_follower *follower) { return &follower->request; }

/* If the request cannot be written, nothing is asked: the trainer then goes on, and its state shows that. */
void send_request(struct trace_follower *follower, struct trace_control wanted)
{
    wanted.until = 0;
    if (wanted.pause)
        wanted.until = now_ns() + TRACE_LEASE_MS * UINT64_C(1000000);
    bool written =
        can_request(follower) && pwrite(follower->fd, &wanted, sizeof wanted, TRACE_CONTROL) == sizeof wanted;
    if (!written)
        wanted = (struct trace_control){.tasks = wanted.tasks, .steps = wanted.steps};
    follower->request = wanted;
}

/* ---- the trainer ------------------------------------------------------------------------------------------------- */

static enum trace_life find_life(const struct trace *trace)
{
    const struct trace_header *header = &trace->header;
    uint64_t born = header->born;
    char state;
    if (header->closed_ns)
        return LIFE_CLOSED;
    if (!process_state(header->pid, &born, &state) || born != header->born || state == 'Z' || state == 'X')
        return LIFE_GONE;
    if (state == 'T' || state == 't')
        return LIFE_STOPPED;
    return header->paused_task ? LIFE_PAUSED : LIFE_RUNS;
}

enum trace_life trainer_life(const struct trace_follower *follower) { return follower->life; }

/* Has a task that the record waits for begun and not ended? */
static bool waits_for_unfinished(const struct trace *trace, const struct trace_record *record)
{
    const struct trace_task *task = &trace->tasks[record->task];
    for (uint32_t i = task->first_edge; i < task->first_edge + task->n_edges; i++) {
        const struct trace_edge *edge = &trace->edges[i];
        for (size_t k = 0; k < trace->n_unfinished; k++) {
            const struct trace_record *other = &trace->unfinished[k];
            if (other->task == edge->producer && other->step == record->step - edge->previous_step)
                return true;
        }
    }
    return false;
}

bool find_running_task(const struct trace *trace, uint32_t lane, struct trace_running_task *running)
{
    size_t i = 0;
    while (i < trace->n_unfinished && trace->tasks[trace->unfinished[i].task].lane != lane)
        i++;
    if (i == trace->n_unfinished)
        return false;
    const struct trace_record *record = &trace->unfinished[i];
    *running = (struct trace_running_task){
        .record = record, .waits = waits_for_unfinished(trace, record), .since = record->queued};
    if (running->waits)
        return true;
    const struct bars *bars = &trace->bars[lane];
    const struct trace_edge *edge;
    int64_t last = find_last_producer(trace, record->task, record->step, SIZE_MAX, &edge);
    if (bars->n > 0)
        running->since = MAX(running->since, bars->items[bars->n - 1].end);
    if (last != NONE)
        running->since = MAX(running->since, trace->records[last].end);
    return true;
}

/* ---- opening and polling ----------------------------------------------------------------------------------------- */

/* A viewer's memory must not fill up in a run of days: drops the older half of very many records.  Returns the first
 * index that changed, with `first` as the answer before. */
static size_t forget_oldest(struct trace *trace, size_t first)
{
    size_t half = trace->n_records / 2;
    if (trace->n_records <= MAX(trace->header.capacity, KEEP))
        return first;
    memmove(trace->records, trace->records + half, (trace->n_records - half) * sizeof *trace->records);
    trace->n_records -= half;
    trace->n_lost += half;
    return 0;
}

/* Takes the new records, and the part of the header that changes.  All of the header before its names must be as it was
 * when the file was opened, or it is another file by now. */
static void take_news(void *context)
{
    struct trace_follower *follower = context;
    struct trace *trace = follower->trace;
    struct trace_header now;
    struct trace_header *header = &trace->header;
    uint64_t taken = header->head;
    uint64_t next = taken;
    size_t before = trace->n_records;
    size_t unfinished = trace->n_unfinished;
    read_at(follower->file, &now, sizeof now, 0);
    if (memcmp(&now, header, offsetof(struct trace_header, list)) != 0 || now.head < taken)
        fail(EXIT_FAILED, "the trace %s was overwritten while it was read; open it again", follower->file->path);
    follower->changed =
        now.head != taken || now.closed_ns != header->closed_ns || now.paused_task != header->paused_task;
    memcpy(&header->head, &now.head, sizeof now - TRACE_LIVE);
    if (is_lapped(follower, taken, header->head))
        next = header->head - header->capacity;
    trace->n_lost += next - taken;
    take_records(follower, next);
    follower->changed |= trace->n_records > before || trace->n_unfinished != unfinished;
    size_t first = forget_oldest(trace, merge_new(trace, before));
    index_trace(trace, first);
    update_whole_step(trace);
    update_memory_use(trace, first);
}

struct problem *poll_follower(struct trace_follower *follower, bool *changed)
{
    enum trace_life before = follower->life;
    follower->changed = false;
    struct problem *problem = attempt(take_news, follower);
    follower->life = find_life(follower->trace);
    *changed = follower->changed || follower->life != before;
    if (follower->request.until) /* the lease is renewed */
        send_request(follower, follower->request);
    return problem;
}

static void open_now(void *context)
{
    struct trace_follower *follower = context;
    refuse_if_folder(follower->path, "a trace, which --trace writes");
    follower->file = open_reader(follower->path);
    read_trace_tables(follower->file, follower->trace);
    follower->trace->header.head = 0; /* nothing has been taken */
    take_news(follower);
    follower->life = find_life(follower->trace);
    follower->request = (struct trace_control){.tasks = follower->trace->header.control.tasks,
                                               .steps = follower->trace->header.control.steps};
    if (follower->life == LIFE_CLOSED)
        return;
    follower->fd = open(follower->path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    bool same =
        follower->fd >= 0 && leads_to(follower->path, follower->fd) && leads_to(follower->path, follower->file->fd);
    if (follower->fd >= 0 && !same) { /* the file was replaced in between */
        close(follower->fd);
        follower->fd = -1;
    }
}

struct problem *open_follower(const char *path, struct trace_follower **follower)
{
    struct trace_follower *opened = allocate(1, sizeof *opened);
    *opened = (struct trace_follower){.path = path, .fd = -1, .trace = allocate(1, sizeof *opened->trace)};
    struct problem *problem = attempt(open_now, opened);
    *follower = opened;
    if (problem) {
        close_follower(opened);
        *follower = NULL;
    }
    return problem;
}

/* Returns the trace, which the caller owns from now on. */
static struct trace *end_following(struct trace_follower *follower)
{
    struct trace *trace = follower->trace;
    if (follower->request.until)
        send_request(follower,
                     (struct trace_control){.tasks = follower->request.tasks, .steps = follower->request.steps});
    if (follower->fd >= 0)
        close(follower->fd);
    if (follower->file)
        close_reader(follower->file);
    free(follower->number);
    free(follower);
    return trace;
}

void close_follower(struct trace_follower *follower) { free_trace(end_following(follower)); }

struct trace *read_trace(const char *path)
{
    struct trace_follower *follower;
    must(open_follower(path, &follower));
    return end_following(follower);
}

bool is_trace_replaced(const struct trace_follower *follower)
{
    return access(follower->path, R_OK) == 0 && !leads_to(follower->path, follower->file->fd);
}

const struct trace *followed_trace(const struct trace_follower *follower) { return follower->trace; }
