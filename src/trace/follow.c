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
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../file/file.h"

#define DAMAGED "the trace %s is damaged: "
enum {
    RUN = 1024,
    KEEP = 4 << 20 /* records; the older half goes when there are more, and more than the ring holds */
};

struct trace_follow {
    struct reader *file;
    struct trace *trace;
    uint64_t *number; /* of each unfinished record: its place in the run */
    size_t cap_number, cap_unfinished, cap_records;
    size_t sorted;      /* records from here on came with this poll, and are not in order yet */
    uint64_t *lane_end; /* latest end on each lane */
    enum trace_life life;
    struct trace_record run[RUN], again[RUN]; /* slots, read twice */

    int fd;                   /* for asking; -1: we may only read */
    struct trace_control ask; /* as written to the file; until 0: nothing is asked */
};

/* ---- records --------------------------------------------------------------------------------------------------- */

/* Within a step the order of the list breaks ties: it is an order in which the tasks could run. */
static int by_start(const void *left, const void *right)
{
    const struct trace_record *a = left, *b = right;
    int order = COMPARE(a->start, b->start);
    order = order ? order : COMPARE(a->end, b->end);
    order = order ? order : COMPARE(a->step, b->step);
    return order ? order : COMPARE(a->task, b->task);
}

static void keep_unfinished(struct trace_follow *f, uint64_t number, const struct trace_record *r)
{
    struct trace *t = f->trace;
    size_t n = t->n_unfinished;
    *APPEND(f->number, n, f->cap_number) = number;
    struct trace_record *u = APPEND(t->unfinished, t->n_unfinished, f->cap_unfinished);
    *u = *r;
    u->start = u->end = 0;
}

/* Keep a record with the ended or the unfinished ones.  `again` is what stood there a moment after `r`: the two are
 * equal unless the writer was at it in between (see the layout in trace.h). */
static void take_record(struct trace_follow *f, uint64_t number, const struct trace_record *r,
                        const struct trace_record *again)
{
    struct trace *t = f->trace;
    const char *path = f->file->path;
    if (again->task >= t->header.n_tasks)
        fail(EXIT_FAILED, DAMAGED "record %" PRIu64 " names task %" PRIu32 " of %" PRIu32, path, number, again->task,
             t->header.n_tasks);
    if (again->step == 0)
        fail(EXIT_FAILED, DAMAGED "record %" PRIu64 " is of step 0, they count from 1", path, number);
    if (r->end == 0 || memcmp(r, again, sizeof *r) != 0) {
        keep_unfinished(f, number, again);
        return;
    }
    if (r->start > r->end)
        fail(EXIT_FAILED, DAMAGED "record %" PRIu64 " ends %" PRIu64 " ns before it starts", path, number,
             r->start - r->end);
    *APPEND(t->records, t->n_records, f->cap_records) = *r;
    uint64_t *lane_end = &f->lane_end[t->tasks[r->task].lane];
    *lane_end = MAX(*lane_end, r->end);
}

static uint64_t read_head(struct trace_follow *f)
{
    uint64_t head;
    read_at(f->file, &head, sizeof head, TRACE_LIVE);
    return head;
}

static bool is_lapped(const struct trace_follow *f, uint64_t number, uint64_t head)
{
    return head - number > f->trace->header.capacity;
}

/* Read slots [first, first + n), which do not cross the ring's end, into f->run and f->again. */
static uint64_t read_run(struct trace_follow *f, uint64_t first, size_t n)
{
    const struct trace_header *h = &f->trace->header;
    uint64_t at = h->records_at + first % h->capacity * sizeof *f->run;
    read_at(f->file, f->run, n * sizeof *f->run, at);
    read_at(f->file, f->again, n * sizeof *f->run, at);
    return read_head(f);
}

/* Records [first, last) of the run, in pieces: a made-up count in a file of holes does not ask for more memory than
 * the records there are. */
static void take_new(struct trace_follow *f, uint64_t first, uint64_t last)
{
    uint64_t capacity = f->trace->header.capacity;
    while (first < last) {
        size_t n = (size_t)MIN(MIN(last - first, RUN), capacity - first % capacity);
        uint64_t head = read_run(f, first, n);
        for (size_t i = 0; i < n; i++)
            if (is_lapped(f, first + i, head))
                f->trace->n_lost++;
            else
                take_record(f, first + i, &f->run[i], &f->again[i]);
        first += n;
    }
}

/* Those that had not ended, again: neighbours with one read.  What is kept moves up in the same arrays. */
static void take_unfinished(struct trace_follow *f)
{
    struct trace *t = f->trace;
    size_t n = t->n_unfinished, i = 0;
    uint64_t capacity = t->header.capacity;
    t->n_unfinished = 0;
    while (i < n) {
        uint64_t first = f->number[i], end = first + MIN(RUN, capacity - first % capacity);
        size_t behind = i + 1;
        while (behind < n && f->number[behind] < end)
            behind++;
        uint64_t head = read_run(f, first, (size_t)(f->number[behind - 1] - first + 1));
        for (; i < behind; i++) {
            uint64_t number = f->number[i];
            if (is_lapped(f, number, head))
                t->n_lost++;
            else
                take_record(f, number, &f->run[number - first], &f->again[number - first]);
        }
    }
}

/* Sort what came with this poll and merge it with what was there; the first index that changed. */
static size_t merge_new(struct trace_follow *f)
{
    struct trace_record *all = f->trace->records;
    size_t old = f->sorted, n = f->trace->n_records, fresh = n - old, at = n;
    f->sorted = n;
    if (fresh == 0)
        return n;
    qsort(all + old, fresh, sizeof *all, by_start);
    if (old == 0 || by_start(&all[old - 1], &all[old]) <= 0)
        return old;
    struct trace_record *tail = allocate(fresh, sizeof *tail);
    memcpy(tail, all + old, fresh * sizeof *tail);
    while (fresh > 0)
        if (old > 0 && by_start(&all[old - 1], &tail[fresh - 1]) > 0)
            all[--at] = all[--old];
        else
            all[--at] = tail[--fresh];
    free(tail);
    return at;
}

/* A step is whole when none of its records is unfinished, and a later one has begun or the trace is closed. */
static void find_steps(struct trace *t, size_t from)
{
    uint32_t whole = UINT32_MAX;
    for (size_t i = from; i < t->n_records; i++) {
        uint32_t step = t->records[i].step;
        t->first_step = t->first_step == 0 ? step : MIN(t->first_step, step);
        t->last_step = MAX(t->last_step, step);
    }
    uint32_t last_begun = t->last_step;
    for (size_t i = 0; i < t->n_unfinished; i++) {
        last_begun = MAX(last_begun, t->unfinished[i].step);
        whole = MIN(whole, t->unfinished[i].step - 1);
    }
    if (!t->header.closed_ns)
        whole = MIN(whole, last_begun ? last_begun - 1 : 0);
    t->whole_step = MIN(whole, t->last_step);
}

/* A run of days must not fill the viewer's memory. */
static bool drop_old(struct trace_follow *f)
{
    struct trace *t = f->trace;
    size_t half = t->n_records / 2;
    if (t->n_records <= MAX(t->header.capacity, KEEP))
        return false;
    memmove(t->records, t->records + half, (t->n_records - half) * sizeof *t->records);
    t->n_records -= half;
    t->n_lost += half;
    f->sorted = t->n_records;
    t->first_step = 0;
    find_steps(t, 0);
    return true;
}

/* ---- asking ---------------------------------------------------------------------------------------------------- */

static void open_for_asking(struct trace_follow *f)
{
    struct stat ours, there;
    if (f->trace->header.closed_ns)
        return;
    f->fd = open(f->file->path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (f->fd >= 0 && fstat(f->file->fd, &ours) == 0 && fstat(f->fd, &there) == 0 &&
        (ours.st_ino != there.st_ino || ours.st_dev != there.st_dev)) { /* replaced in between */
        close(f->fd);
        f->fd = -1;
    }
    f->ask = (struct trace_control){
        .tasks = f->trace->header.control.tasks, .steps = f->trace->header.control.steps, .slow = 1};
}

bool trace_can_ask(const struct trace_follow *f)
{
    return f->fd >= 0 && f->life != LIFE_CLOSED && f->life != LIFE_GONE;
}

/* What cannot be written is not asked: the trainer then goes on, and its state shows that. */
static void write_asked(struct trace_follow *f)
{
    struct trace_control *a = &f->ask;
    a->until = a->pause || a->slow > 1 ? now_ns() + TRACE_LEASE_MS * UINT64_C(1000000) : 0;
    if (trace_can_ask(f) && pwrite(f->fd, a, sizeof *a, TRACE_CONTROL) != sizeof *a)
        a->pause = 0;
}

static void renew(struct trace_follow *f)
{
    if (f->ask.until)
        write_asked(f);
}

void trace_ask_pause(struct trace_follow *f, bool on)
{
    f->ask.pause = on;
    write_asked(f);
}

bool trace_asks_pause(const struct trace_follow *f) { return f->ask.pause && trace_can_ask(f); }

static void ask_one(struct trace_follow *f, uint64_t *count)
{
    *count += f->ask.pause;
    f->ask.pause = true;
    write_asked(f);
}

void trace_ask_task(struct trace_follow *f) { ask_one(f, &f->ask.tasks); }
void trace_ask_step(struct trace_follow *f) { ask_one(f, &f->ask.steps); }

void trace_ask_slow(struct trace_follow *f, double factor)
{
    f->ask.slow = factor > 1 ? MIN(factor, TRACE_SLOWEST) : 1;
    write_asked(f);
}

double trace_asks_slow(const struct trace_follow *f) { return trace_can_ask(f) ? f->ask.slow : 1; }

static void stop_asking(struct trace_follow *f)
{
    if (f->ask.until) {
        f->ask.pause = 0;
        trace_ask_slow(f, 1);
    }
    if (f->fd >= 0)
        close(f->fd);
}

/* ---- the trainer ----------------------------------------------------------------------------------------------- */

enum trace_life trace_follow_life(const struct trace_follow *f)
{
    const struct trace_header *h = &f->trace->header;
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

static bool is_unfinished(const struct trace *t, uint32_t task, uint32_t step)
{
    for (size_t i = 0; i < t->n_unfinished; i++)
        if (t->unfinished[i].task == task && t->unfinished[i].step == step)
            return true;
    return false;
}

/* When the task ended in that step; 0: not within the last records. */
static uint64_t recent_end(const struct trace *t, uint32_t task, uint32_t step)
{
    size_t look = MIN(t->n_records, 4 * (size_t)t->header.n_tasks);
    for (size_t i = t->n_records; look-- > 0 && i-- > 0;)
        if (t->records[i].task == task && t->records[i].step == step)
            return t->records[i].end;
    return 0;
}

bool trace_follow_running(const struct trace_follow *f, uint32_t lane, struct trace_running *r)
{
    const struct trace *t = f->trace;
    size_t i = 0;
    while (i < t->n_unfinished && t->tasks[t->unfinished[i].task].lane != lane)
        i++;
    if (i == t->n_unfinished)
        return false;
    const struct trace_record *u = &t->unfinished[i];
    const struct trace_task *task = &t->tasks[u->task];
    *r = (struct trace_running){u, false, MAX(u->queued, f->lane_end[lane])};
    for (size_t e = task->first_edge; e < (size_t)task->first_edge + task->n_edges; e++) {
        uint32_t step = u->step - t->edges[e].previous_step;
        r->waits |= is_unfinished(t, t->edges[e].from, step);
        r->since = MAX(r->since, recent_end(t, t->edges[e].from, step));
    }
    r->since = r->waits ? u->queued : r->since;
    return true;
}

/* ---- opening and polling --------------------------------------------------------------------------------------- */

/* The living words.  All before the names stays as it was when the file was opened, or it is another file by now. */
static void read_live(struct trace_follow *f)
{
    struct trace_header now, *h = &f->trace->header;
    read_at(f->file, &now, sizeof now, 0);
    if (memcmp(&now, h, offsetof(struct trace_header, list)) != 0 || now.head < h->head)
        fail(EXIT_FAILED, "the trace %s was overwritten while it was read; open it again", f->file->path);
    memcpy(&h->head, &now.head, sizeof now - TRACE_LIVE);
}

/* Take what is new; the first index that changed. */
static size_t take_all(struct trace_follow *f)
{
    struct trace *t = f->trace;
    uint64_t taken = t->header.head;
    size_t before = t->n_records;
    read_live(f);
    take_unfinished(f);
    uint64_t from = is_lapped(f, taken, t->header.head) ? t->header.head - t->header.capacity : taken;
    t->n_lost += from - taken;
    take_new(f, from, t->header.head);
    find_steps(t, before);
    size_t first = merge_new(f);
    return drop_old(f) ? 0 : first;
}

struct polling {
    struct trace_follow *f;
    struct trace_news *news;
};

static void poll_now(void *polling)
{
    struct polling *p = polling;
    const struct trace *t = p->f->trace;
    struct trace_header before = t->header;
    size_t n = t->n_records, unfinished = t->n_unfinished;
    p->news->first = take_all(p->f);
    p->news->changed = p->news->first < t->n_records || n != t->n_records || unfinished != t->n_unfinished ||
                       before.head != t->header.head || before.closed_ns != t->header.closed_ns ||
                       before.held != t->header.held;
}

struct problem *trace_follow_poll(struct trace_follow *f, struct trace_news *news)
{
    struct polling p = {f, news};
    *news = (struct trace_news){false, f->trace->n_records};
    enum trace_life before = f->life;
    struct problem *wrong = attempt(poll_now, &p);
    f->life = trace_follow_life(f);
    news->changed |= f->life != before;
    renew(f);
    return wrong;
}

struct opening {
    const char *path;
    struct trace_follow *f;
};

static void open_now(void *opening)
{
    struct opening *o = opening;
    struct trace_follow *f = o->f;
    f->file = open_reader(o->path);
    trace_read_tables(f->file, f->trace);
    f->lane_end = allocate(f->trace->header.n_lanes, sizeof *f->lane_end);
    f->trace->header.head = 0; /* nothing has been taken */
    take_all(f);
    open_for_asking(f);
}

struct problem *trace_follow_open(const char *path, struct trace_follow **f)
{
    struct opening o = {path, allocate(1, sizeof *o.f)};
    o.f->fd = -1;
    o.f->trace = allocate(1, sizeof *o.f->trace);
    struct problem *wrong = attempt(open_now, &o);
    if (wrong)
        trace_follow_close(o.f);
    else
        o.f->life = trace_follow_life(o.f);
    *f = wrong ? NULL : o.f;
    return wrong;
}

struct trace *trace_follow_end(struct trace_follow *f)
{
    struct trace *t = f->trace;
    stop_asking(f);
    if (f->file)
        close_reader(f->file);
    free(f->number), free(f->lane_end);
    free(f);
    return t;
}

void trace_follow_close(struct trace_follow *f) { trace_free(trace_follow_end(f)); }

const struct trace *trace_follow_trace(const struct trace_follow *f) { return f->trace; }

bool trace_follow_replaced(const struct trace_follow *f)
{
    struct stat ours, there;
    return fstat(f->file->fd, &ours) == 0 && stat(f->file->path, &there) == 0 &&
           (ours.st_ino != there.st_ino || ours.st_dev != there.st_dev);
}

/* ---- a whole trace --------------------------------------------------------------------------------------------- */

struct problem *trace_read(const char *path, struct trace **t)
{
    struct trace_follow *f;
    struct problem *wrong = trace_follow_open(path, &f);
    *t = wrong ? NULL : trace_follow_end(f);
    return wrong;
}

struct trace *trace_open(const char *path)
{
    struct trace *t;
    must(trace_read(path, &t));
    return t;
}
