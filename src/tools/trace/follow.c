/* follow.c - the reader's half of trace.h, of a file that may grow while it is read.
 *
 * A poll reads the header's living words, the records begun since the last poll, and again those that had not ended.
 * So an idle ring costs one read of a few bytes, and a busy one as much as is new.  Ended records are kept sorted by
 * start: ends arrive a little out of order, so new ones are sorted and merged into the tail.
 *
 * When the writer laps the reader, records are lost, and counted.  `head` is read again behind the slots: what the
 * writer may have begun to overwrite by then is dropped.
 */
#include "follow.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <unistd.h>

#include "trainer/file/file.h"

enum {
    RUN = 1024,
    KEEP = 4 << 20 /* records; the older half goes when there are more, and more than the ring holds */
};

struct trace_follow {
    const char *path; /* while it is opened */
    struct reader *file;
    struct trace *trace;
    uint64_t *number; /* of each unfinished record: its place in the run */
    size_t cap_number, cap_unfinished, cap_records;
    enum trace_life life;
    bool changed;                             /* since the last poll */
    struct trace_record run[RUN], again[RUN]; /* slots, read twice */

    int fd;                   /* for asking; -1: we may only read */
    struct trace_control ask; /* as written to the file; until 0: nothing is asked */
};

/* The fields of /proc/PID/stat behind the name, which is in brackets and may hold anything: 3 is the state, 22 the time
 * of the start in clock ticks. */
bool process_state(int pid, uint64_t *born, char *state)
{
    char path[32], text[1024], *fields;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    *born = 0, *state = 'R';
    FILE *file = fopen(path, "re");
    if (!file)
        return access("/proc/self/stat", R_OK) != 0 && (kill(pid, 0) == 0 || errno == EPERM);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    fields = strrchr(text, ')');
    return fields &&
           sscanf(fields + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
                  state, born) == 2;
}

/* ---- records --------------------------------------------------------------------------------------------------- */

/* Within a step the order of the list breaks ties: it is an order in which the tasks could run. */
ORDER(by_start, struct trace_record,
      BY(a->start, b->start, BY(a->end, b->end, BY(a->step, b->step, COMPARE(a->task, b->task)))))

void trace_sort(struct trace_record *records, size_t n) { SORT(records, n, by_start); }

/* Keep a record with the ended or the unfinished ones.  `again` is what stood there a moment after `r`: the two are
 * equal unless the writer was at it in between (see the layout in trace.h). */
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
    u->start = u->end = 0;
}

static bool is_lapped(const struct trace_follow *f, uint64_t number, uint64_t head)
{
    return head - number > f->trace->header.capacity;
}

/* Take as many of the records number[i .. n) as lie near each other in the ring, with one reading; the first that is
 * left.  Those that have not ended move up in the same array. */
static size_t take_some(struct trace_follow *f, size_t i, size_t n)
{
    const struct trace_header *h = &f->trace->header;
    uint64_t first = f->number[i], end = first + MIN(RUN, h->capacity - first % h->capacity), head;
    uint64_t at = h->records_at + first % h->capacity * sizeof *f->run;
    size_t behind = i + 1;
    while (behind < n && f->number[behind] < end)
        behind++;
    size_t slots = (size_t)(f->number[behind - 1] - first + 1);
    read_at(f->file, f->run, slots * sizeof *f->run, at);
    read_at(f->file, f->again, slots * sizeof *f->run, at);
    read_at(f->file, &head, sizeof head, TRACE_LIVE);
    for (; i < behind; i++)
        if (is_lapped(f, f->number[i], head))
            f->trace->n_lost++;
        else
            take_record(f, f->number[i], &f->run[f->number[i] - first], &f->again[f->number[i] - first]);
    return behind;
}

/* Those that had not ended, and those from `next` on.  In pieces: a made-up count in a file of holes does not ask for
 * more memory than the records there are. */
static void take_records(struct trace_follow *f, uint64_t next)
{
    struct trace *t = f->trace;
    do {
        size_t n = t->n_unfinished;
        for (int room = RUN; next < t->header.head && room > 0; room--)
            *APPEND(f->number, n, f->cap_number) = next++;
        t->n_unfinished = 0;
        for (size_t i = 0; i < n;)
            i = take_some(f, i, n);
    } while (next < t->header.head);
}

/* Records [old, n_records) are new: sort them in; the first index that changed. */
static size_t merge_new(struct trace *t, size_t old)
{
    size_t n = t->n_records, first = old, at;
    if (old == n)
        return n;
    for (size_t i = old; i < n; i++)
        first = by_start(&t->records[i], &t->records[first]) < 0 ? i : first;
    FIND_FIRST(at, old, by_start(&t->records[at], &t->records[first]) <= 0);
    SORT(t->records + at, n - at, by_start);
    return at;
}

/* A step is whole when none of its records is unfinished, and a later one has begun or the trace is closed. */
static void find_whole_step(struct trace *t)
{
    uint32_t whole = UINT32_MAX, last = 0;
    for (size_t i = 0; i < TRACE_LISTS; i++)
        last = t->steps[i].n ? MAX(last, t->steps[i].step[t->steps[i].n - 1].step) : last;
    uint32_t begun = last;
    for (size_t i = 0; i < t->n_unfinished; i++) {
        begun = MAX(begun, t->unfinished[i].step);
        whole = MIN(whole, t->unfinished[i].step - 1);
    }
    if (!t->header.closed_ns)
        whole = MIN(whole, begun ? begun - 1 : 0);
    t->whole_step = MIN(whole, last);
}

/* ---- asking ---------------------------------------------------------------------------------------------------- */

bool trace_can_ask(const struct trace_follow *f)
{
    return f->fd >= 0 && f->life != LIFE_CLOSED && f->life != LIFE_GONE;
}

const struct trace_control *trace_asks(const struct trace_follow *f) { return &f->ask; }

/* What cannot be written is not asked: the trainer then goes on, and its state shows that. */
void trace_ask(struct trace_follow *f, struct trace_control wanted)
{
    wanted.until = wanted.pause ? now_ns() + TRACE_LEASE_MS * UINT64_C(1000000) : 0;
    if (!trace_can_ask(f) || pwrite(f->fd, &wanted, sizeof wanted, TRACE_CONTROL) != sizeof wanted)
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
    return h->held ? LIFE_PAUSED : LIFE_RUNS;
}

enum trace_life trace_follow_life(const struct trace_follow *f) { return f->life; }

bool trace_running(const struct trace *t, uint32_t lane, struct trace_running *r)
{
    size_t i = 0, n = t->bars[lane].n;
    while (i < t->n_unfinished && t->tasks[t->unfinished[i].task].lane != lane)
        i++;
    if (i == t->n_unfinished)
        return false;
    const struct trace_record *u = &t->unfinished[i];
    const struct trace_task *task = &t->tasks[u->task];
    const struct trace_edge *edge;
    int64_t last = trace_last_producer(t, u->task, u->step, SIZE_MAX, &edge);
    *r = (struct trace_running){u, false, MAX(u->queued, n ? t->bars[lane].bar[n - 1].end : 0)};
    r->since = MAX(r->since, last == NO_RECORD ? 0 : t->records[last].end);
    for (const struct trace_edge *e = &t->edges[task->first_edge], *end = e + task->n_edges; e < end; e++)
        for (size_t k = 0; k < t->n_unfinished; k++)
            r->waits |= t->unfinished[k].task == e->from && t->unfinished[k].step == u->step - e->previous_step;
    r->since = r->waits ? u->queued : r->since;
    return true;
}

/* ---- opening and polling --------------------------------------------------------------------------------------- */

/* Take what is new, behind the living words.  All of the header before the names stays as it was when the file was
 * opened, or it is another file by now. */
static void take_all(void *follower)
{
    struct trace_follow *f = follower;
    struct trace *t = f->trace;
    struct trace_header now, *h = &t->header;
    uint64_t taken = h->head, next;
    size_t before = t->n_records, unfinished = t->n_unfinished;
    read_at(f->file, &now, sizeof now, 0);
    if (memcmp(&now, h, offsetof(struct trace_header, list)) != 0 || now.head < taken)
        fail(EXIT_FAILED, "the trace %s was overwritten while it was read; open it again", f->file->path);
    f->changed = now.head != taken || now.closed_ns != h->closed_ns || now.held != h->held;
    memcpy(&h->head, &now.head, sizeof now - TRACE_LIVE);
    next = is_lapped(f, taken, h->head) ? h->head - h->capacity : taken;
    t->n_lost += next - taken;
    take_records(f, next);
    f->changed |= t->n_records > before || t->n_unfinished != unfinished;
    size_t first = merge_new(t, before), half = t->n_records / 2;
    if (t->n_records > MAX(h->capacity, KEEP)) { /* a run of days must not fill the viewer's memory */
        memmove(t->records, t->records + half, (t->n_records - half) * sizeof *t->records);
        t->n_records -= half;
        t->n_lost += half;
        first = 0;
    }
    trace_index(t, first);
    find_whole_step(t);
    trace_hold(t, first);
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
    if (f->life != LIFE_CLOSED)
        f->fd = open(f->path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);           /* for asking */
    if (f->fd >= 0 && !(leads_to(f->path, f->fd) && leads_to(f->path, f->file->fd))) { /* replaced in between */
        close(f->fd);
        f->fd = -1;
    }
}

struct problem *trace_follow_open(const char *path, struct trace_follow **follow)
{
    struct trace_follow *f = *follow = allocate(1, sizeof *f);
    *f = (struct trace_follow){.path = path, .fd = -1, .trace = allocate(1, sizeof *f->trace)};
    struct problem *wrong = attempt(open_now, f);
    if (wrong) {
        trace_follow_close(f);
        *follow = NULL;
    }
    return wrong;
}

/* What has been read is the caller's by now. */
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
