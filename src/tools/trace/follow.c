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
#include "trainer/file/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <unistd.h>

enum {
    RUN = 1024,    /* slots that are read at once */
    KEEP = 4 << 20 /* records; when there are more, and more than the ring holds, the older half is dropped */
};

struct trace_follow {
    const char *path; /* the caller's, which outlives this */
    struct reader *file;
    struct trace *trace;
    uint64_t *number; /* for each unfinished record its place in the run */
    size_t cap_number, cap_unfinished, cap_records;
    enum trace_life life;
    bool changed;                             /* true: something has changed since the last poll */
    struct trace_record run[RUN], again[RUN]; /* the slots, read twice */

    int fd;                   /* for writing requests; -1: we may only read */
    struct trace_control ask; /* the request in the file; until 0: nothing is asked */
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

/* ---- records --------------------------------------------------------------------------------------------------- */

/* Ties within a step are broken by the list's order, which is an order in which the tasks can run. */
COMPARISON(by_start, struct trace_record,
           BY(a->start, b->start, BY(a->end, b->end, BY(a->step, b->step, COMPARE(a->task, b->task)))))

void trace_sort(struct trace_record *records, size_t n) { SORT(records, n, by_start); }

/* Stores a record among the ended or the unfinished ones.  `again` is a second reading of the same slot, which differs
 * from `r` if the writer changed the slot in between (see the layout in trace_file.h). */
static void take_record(struct trace_follow *f, uint64_t number, const struct trace_record *r,
                        const struct trace_record *again)
{
    struct trace *t = f->trace;
    bool ended = r->end != 0 && memcmp(r, again, sizeof *r) == 0;
    if (again->task >= t->header.n_tasks || again->step == 0 || (ended && r->start > r->end))
        fail(EXIT_FAILED, DAMAGED "its record %" PRIu64 " is impossible; record it again", f->file->path, number);
    if (ended) {
        *APPEND(t->records, t->n_records, f->cap_records) = *r;
        return;
    }
    size_t n = t->n_unfinished;
    *APPEND(f->number, n, f->cap_number) = number;
    struct trace_record *u = APPEND(t->unfinished, t->n_unfinished, f->cap_unfinished);
    *u = *again;
    u->start = 0;
    u->end = 0;
}

static bool is_lapped(const struct trace_follow *f, uint64_t number, uint64_t head)
{
    return head - number > f->trace->header.capacity;
}

/* Reads, at once, those of the records number[i .. n) that are near the first of them in the ring, and takes them.
 * Returns the index of the first that is left.  Those that have not ended move up in the same array. */
static size_t take_some(struct trace_follow *f, size_t i, size_t n)
{
    const struct trace_header *h = &f->trace->header;
    const uint64_t first = f->number[i];
    const uint64_t slot = first % h->capacity;
    const uint64_t at = h->records_at + slot * sizeof *f->run;
    const uint64_t limit = first + MIN(RUN, h->capacity - slot); /* the ring ends there, or `run` does */
    uint64_t head;
    size_t next = i + 1;
    while (next < n && f->number[next] < limit)
        next++;
    size_t slots = (size_t)(f->number[next - 1] - first + 1);
    read_at(f->file, f->run, slots * sizeof *f->run, at);
    read_at(f->file, f->again, slots * sizeof *f->run, at);
    read_at(f->file, &head, sizeof head, TRACE_LIVE);
    for (; i < next; i++) {
        uint64_t number = f->number[i];
        if (is_lapped(f, number, head))
            f->trace->n_lost++;
        else
            take_record(f, number, &f->run[number - first], &f->again[number - first]);
    }
    return next;
}

/* Takes the records that had not ended, and those from `next` on.  It does so in pieces: a made-up count in a file with
 * holes must not ask for more memory than the records that there are. */
static void take_records(struct trace_follow *f, uint64_t next)
{
    struct trace *t = f->trace;
    do {
        size_t n = t->n_unfinished;
        for (int room = RUN; next < t->header.head && room > 0; room--) {
            *APPEND(f->number, n, f->cap_number) = next;
            next++;
        }
        t->n_unfinished = 0;
        for (size_t i = 0; i < n;)
            i = take_some(f, i, n);
    } while (next < t->header.head);
}

/* Sorts the new records [old, n_records) into the old ones, and returns the first index that changed. */
static size_t merge_new(struct trace *t, size_t old)
{
    size_t n = t->n_records, at;
    if (old == n)
        return n;
    const struct trace_record *earliest = &t->records[old];
    for (size_t i = old + 1; i < n; i++)
        if (by_start(&t->records[i], earliest) < 0)
            earliest = &t->records[i];
    FIND_FIRST(at, old, by_start(&t->records[at], earliest) <= 0);
    SORT(t->records + at, n - at, by_start);
    return at;
}

/* A step is whole when none of its records is unfinished, and a later step has begun or the trace is closed. */
static void find_whole_step(struct trace *t)
{
    uint32_t whole = UINT32_MAX, last = 0;
    for (size_t i = 0; i < TRACE_LISTS; i++) {
        const struct trace_step_list *steps = &t->steps[i];
        if (steps->n > 0)
            last = MAX(last, steps->step[steps->n - 1].step);
    }
    uint32_t begun = last;
    for (size_t i = 0; i < t->n_unfinished; i++) {
        begun = MAX(begun, t->unfinished[i].step);
        whole = MIN(whole, t->unfinished[i].step - 1);
    }
    if (!t->header.closed_ns && begun > 0)
        whole = MIN(whole, begun - 1);
    else if (!t->header.closed_ns)
        whole = 0;
    t->whole_step = MIN(whole, last);
}

/* ---- asking ---------------------------------------------------------------------------------------------------- */

bool trace_can_ask(const struct trace_follow *f)
{
    return f->fd >= 0 && f->life != LIFE_CLOSED && f->life != LIFE_GONE;
}

const struct trace_control *trace_asks(const struct trace_follow *f) { return &f->ask; }

/* If the request cannot be written, nothing is asked: the trainer then goes on, and its state shows that. */
void trace_ask(struct trace_follow *f, struct trace_control wanted)
{
    wanted.until = 0;
    if (wanted.pause)
        wanted.until = now_ns() + TRACE_LEASE_MS * UINT64_C(1000000);
    bool written = trace_can_ask(f) && pwrite(f->fd, &wanted, sizeof wanted, TRACE_CONTROL) == sizeof wanted;
    if (!written)
        wanted = (struct trace_control){.tasks = wanted.tasks, .steps = wanted.steps};
    f->ask = wanted;
}

/* ---- the trainer ----------------------------------------------------------------------------------------------- */

static enum trace_life find_life(const struct trace *t)
{
    const struct trace_header *h = &t->header;
    uint64_t born = h->born;
    char state;
    if (h->closed_ns)
        return LIFE_CLOSED;
    if (!process_state(h->pid, &born, &state) || born != h->born || state == 'Z' || state == 'X')
        return LIFE_GONE;
    if (state == 'T' || state == 't')
        return LIFE_STOPPED;
    return h->paused_task ? LIFE_PAUSED : LIFE_RUNS;
}

enum trace_life trace_follow_life(const struct trace_follow *f) { return f->life; }

/* Has a task that record `u` waits for begun and not ended? */
static bool waits_for_unfinished(const struct trace *t, const struct trace_record *u)
{
    const struct trace_task *task = &t->tasks[u->task];
    for (uint32_t e = task->first_edge; e < task->first_edge + task->n_edges; e++) {
        const struct trace_edge *edge = &t->edges[e];
        for (size_t i = 0; i < t->n_unfinished; i++) {
            const struct trace_record *other = &t->unfinished[i];
            if (other->task == edge->producer && other->step == u->step - edge->previous_step)
                return true;
        }
    }
    return false;
}

bool trace_running(const struct trace *t, uint32_t lane, struct trace_running *r)
{
    size_t i = 0;
    while (i < t->n_unfinished && t->tasks[t->unfinished[i].task].lane != lane)
        i++;
    if (i == t->n_unfinished)
        return false;
    const struct trace_record *u = &t->unfinished[i];
    *r = (struct trace_running){.record = u, .waits = waits_for_unfinished(t, u), .since = u->queued};
    if (r->waits)
        return true;
    const struct bars *b = &t->bars[lane];
    const struct trace_edge *edge;
    int64_t last = trace_last_producer(t, u->task, u->step, SIZE_MAX, &edge);
    if (b->n > 0)
        r->since = MAX(r->since, b->bar[b->n - 1].end);
    if (last != NONE)
        r->since = MAX(r->since, t->records[last].end);
    return true;
}

/* ---- opening and polling --------------------------------------------------------------------------------------- */

/* A viewer's memory must not fill up in a run of days: drops the older half of very many records.  Returns the first
 * index that changed, with `first` as the answer before. */
static size_t forget_oldest(struct trace *t, size_t first)
{
    size_t half = t->n_records / 2;
    if (t->n_records <= MAX(t->header.capacity, KEEP))
        return first;
    memmove(t->records, t->records + half, (t->n_records - half) * sizeof *t->records);
    t->n_records -= half;
    t->n_lost += half;
    return 0;
}

/* Takes the new records, and the part of the header that changes.  All of the header before its names must be as it was
 * when the file was opened, or it is another file by now. */
static void take_all(void *follower)
{
    struct trace_follow *f = follower;
    struct trace *t = f->trace;
    struct trace_header now, *h = &t->header;
    uint64_t taken = h->head;
    uint64_t next = taken;
    size_t before = t->n_records, unfinished = t->n_unfinished;
    read_at(f->file, &now, sizeof now, 0);
    if (memcmp(&now, h, offsetof(struct trace_header, list)) != 0 || now.head < taken)
        fail(EXIT_FAILED, "the trace %s was overwritten while it was read; open it again", f->file->path);
    f->changed = now.head != taken || now.closed_ns != h->closed_ns || now.paused_task != h->paused_task;
    memcpy(&h->head, &now.head, sizeof now - TRACE_LIVE);
    if (is_lapped(f, taken, h->head))
        next = h->head - h->capacity;
    t->n_lost += next - taken;
    take_records(f, next);
    f->changed |= t->n_records > before || t->n_unfinished != unfinished;
    size_t first = forget_oldest(t, merge_new(t, before));
    trace_index(t, first);
    find_whole_step(t);
    trace_update_memory(t, first);
}

struct problem *trace_follow_poll(struct trace_follow *f, bool *changed)
{
    enum trace_life before = f->life;
    f->changed = false;
    struct problem *wrong = attempt(take_all, f);
    f->life = find_life(f->trace);
    *changed = f->changed || f->life != before;
    if (f->ask.until) /* the lease is renewed */
        trace_ask(f, f->ask);
    return wrong;
}

static void open_now(void *follower)
{
    struct trace_follow *f = follower;
    f->file = open_reader(f->path);
    trace_read_tables(f->file, f->trace);
    f->trace->header.head = 0; /* nothing has been taken */
    take_all(f);
    f->life = find_life(f->trace);
    f->ask = (struct trace_control){.tasks = f->trace->header.control.tasks, .steps = f->trace->header.control.steps};
    if (f->life == LIFE_CLOSED)
        return;
    f->fd = open(f->path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    bool same = f->fd >= 0 && leads_to(f->path, f->fd) && leads_to(f->path, f->file->fd);
    if (f->fd >= 0 && !same) { /* the file was replaced in between */
        close(f->fd);
        f->fd = -1;
    }
}

struct problem *trace_follow_open(const char *path, struct trace_follow **follow)
{
    struct trace_follow *f = allocate(1, sizeof *f);
    *f = (struct trace_follow){.path = path, .fd = -1, .trace = allocate(1, sizeof *f->trace)};
    struct problem *wrong = attempt(open_now, f);
    *follow = f;
    if (wrong) {
        trace_follow_close(f);
        *follow = NULL;
    }
    return wrong;
}

/* Returns the trace, which the caller owns from now on. */
static struct trace *end_following(struct trace_follow *f)
{
    struct trace *t = f->trace;
    if (f->ask.until)
        trace_ask(f, (struct trace_control){.tasks = f->ask.tasks, .steps = f->ask.steps});
    if (f->fd >= 0)
        close(f->fd);
    if (f->file)
        close_reader(f->file);
    free(f->number);
    free(f);
    return t;
}

void trace_follow_close(struct trace_follow *f) { trace_free(end_following(f)); }

struct trace *trace_open(const char *path)
{
    struct trace_follow *f;
    must(trace_follow_open(path, &f));
    return end_following(f);
}

bool trace_follow_replaced(const struct trace_follow *f)
{
    return access(f->path, R_OK) == 0 && !leads_to(f->path, f->file->fd);
}

const struct trace *trace_follow_trace(const struct trace_follow *f) { return f->trace; }
