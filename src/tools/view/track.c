/* track.c - a trace made drawable: its axis, and where now is on it. */
#include "draw.h"

#include <math.h>

/* ---- the axis ---------------------------------------------------------------------------------------------------- */

const struct trace_step *find_step(const struct track *track, uint32_t step)
{
    const struct trace_step_list *steps = track->steps;
    size_t n = first_step_of(steps, (uint64_t)step + 1); /* steps up to that one */
    if (steps->n == 0)
        return NULL;
    return n > 0 ? &steps->items[n - 1] : &steps->items[0];
}

/* Where the step ends if no later step ends it: its last end, or now while tasks of it are unfinished. */
static uint64_t end_of_last(const struct track *track, const struct trace_step *step)
{
    const struct trace *trace = track->trace;
    uint64_t end = MAX(step->end, step->work);
    for (size_t i = 0; i < trace->n_unfinished; i++) {
        const struct trace_record *record = &trace->unfinished[i];
        if (record->step == step->step && trace->tasks[record->task].list == track->list)
            end = MAX(end, track->now);
    }
    return end;
}

struct interludes find_interludes(const struct track *track, uint64_t clock)
{
    struct interludes found = {.before = {.start = 0}, .after = {.start = UINT64_MAX}};
    for (uint32_t k = 0; k < TRACE_LISTS; k++) {
        const char *name = track->trace->header.list[k];
        const struct trace_step *runs = track->trace->steps[k].items;
        size_t n = track->trace->steps[k].n;
        if (k == track->list)
            continue;
        size_t i = first_step_from(runs, n, clock);
        if (i > 0 && runs[i - 1].work > found.before.start)
            found.before = (struct interlude){name, runs[i - 1].work};
        if (i < n && runs[i].work < found.after.start)
            found.after = (struct interlude){name, runs[i].work};
    }
    return found;
}

struct interlude find_interlude(const struct track *track, const struct trace_step *step)
{
    bool last = step + 1 == track->steps->items + track->steps->n;
    uint64_t next_step = last ? UINT64_MAX : step[1].work;
    const struct interlude after = find_interludes(track, step->work).after;
    return after.start < next_step ? after : (struct interlude){.start = next_step};
}

double step_ns(const struct track *track, const struct trace_step *step)
{
    const struct trace_step *next = step + 1;
    bool last = next == track->steps->items + track->steps->n || next->step != step->step + 1 ||
                next->work < step->work || next->computes < step->computes; /* then it only fetches ahead */
    const struct interlude after = find_interlude(track, step);
    uint64_t end = last || after.name ? end_of_last(track, step) : next->work;
    if (after.name)
        end = MIN(end, after.start);
    return axis_of(track, end) - axis_of(track, step->work);
}

const struct trace_step *newest_step(const struct track *track)
{
    size_t n = track->steps->n;
    while (n > 1 && !track->steps->items[n - 1].computes)
        n--;
    return n > 0 ? &track->steps->items[n - 1] : NULL;
}

/* A killed trainer's last step stays unfinished.  The lists run one after another: what comes after the step's last
 * record, an evaluation say, shows that the step has ended. */
bool is_unfinished(const struct track *track, const struct trace_step *step)
{
    const struct trace *trace = track->trace;
    if (step < newest_step(track) || trace->header.closed_ns > 0)
        return false;
    return trace->n_records == 0 || trace->tasks[trace->records[trace->n_records - 1].task].list == track->list;
}

double step_loss(const struct track *track, const struct trace_step *step)
{
    int64_t record = NONE;
    if (track->report != NONE)
        record = find_run_from(track->trace, (uint32_t)track->report, step->step, 0);
    if (record == NONE)
        return NAN;
    double loss = track->trace->records[record].loss;
    return isfinite(loss) && loss > 0 ? loss : NAN;
}

/* Some steps in flight have not been reported yet. */
double last_loss(const struct track *track)
{
    enum { IN_FLIGHT = 8 };
    const struct trace_step_list *steps = track->steps;
    for (size_t i = steps->n; i > 0 && i + IN_FLIGHT > steps->n; i--) {
        double loss = step_loss(track, &steps->items[i - 1]);
        if (!isnan(loss))
            return loss;
    }
    return NAN;
}

/* A clock less the time in which a viewer paused the trainer up to there. */
static uint64_t run_until(const struct track *track, uint64_t clock)
{
    return clock - paused_before(track->trace, clock);
}

double axis_of(const struct track *track, uint64_t clock)
{
    uint64_t at = run_until(track, clock), zero = run_until(track, track->zero);
    double ns = at >= zero ? (double)(at - zero) : -(double)(zero - at);
    return ns * track->trace->header.pace_scale;
}

/* key: a clock from which pauses are left out. */
static bool pause_is_before_axis(const void *item, const void *key)
{
    const struct pause *pause = item;
    const uint64_t *at = key;
    return pause->start - pause->before < *at;
}

uint64_t clock_of(const struct track *track, double axis)
{
    const struct trace *trace = track->trace;
    double ns = axis / trace->header.pace_scale;
    uint64_t zero = run_until(track, track->zero);
    uint64_t before = (uint64_t)fmin(fmax(-ns, 0), (double)zero);
    uint64_t after = (uint64_t)fmin(fmax(ns, 0), 0x1p62);
    uint64_t at = zero - before + after;
    size_t n = lower_bound(&at, trace->pauses, trace->n_pauses, sizeof *trace->pauses, pause_is_before_axis);
    if (n == 0)
        return at;
    const struct pause *last = &trace->pauses[n - 1];
    return at + last->before + (last->end - last->start);
}

/* ---- following --------------------------------------------------------------------------------------------------- */

/* The clock while the trainer runs, its last sign of life when it is stopped, else 0. */
static uint64_t present(const struct track *track)
{
    enum trace_life life = trainer_life(track->follower);
    if (life == LIFE_RUNS)
        return now_ns();
    if (life == LIFE_STOPPED)
        return MIN(track->trace->header.alive_ns, now_ns());
    return 0;
}

static int64_t find_report(const struct track *track)
{
    const struct trace *trace = track->trace;
    for (uint32_t i = 0; i < trace->header.n_tasks; i++)
        if (trace->tasks[i].list == track->list && trace->lanes[trace->tasks[i].lane].kind == LANE_REPORT)
            return i;
    return NONE;
}

/* Updates what follows from the trace. */
static void update_track(struct track *track)
{
    enum trace_life life = trainer_life(track->follower);
    const struct trace_header *header = &track->trace->header;
    track->changes++;
    track->list = find_trace_list(track->trace, track->path, NULL);
    track->steps = &track->trace->steps[track->list];
    track->report = find_report(track);
    for (uint32_t i = 0; i < header->n_devices; i++) {
        track->peak[i] = (double)most_bytes_held(&track->trace->memory_use[i]);
        track->highest_peak = fmax(track->highest_peak, track->peak[i]);
    }
    track->last = 0;
    for (size_t i = 0; i < header->n_lanes; i++) {
        const struct bars *bars = &track->trace->bars[i];
        if (bars->n > 0)
            track->last = MAX(track->last, bars->items[bars->n - 1].end);
    }
    track->stands = life == LIFE_PAUSED || life == LIFE_STOPPED || life == LIFE_GONE;
    track->now = MAX(track->last, present(track));
}

/* Whoever reads on another device what a copy wrote is the one that it is for.  An upload is for its own device. */
static int64_t *new_receivers(const struct trace *trace)
{
    int64_t *receiver = allocate(trace->header.n_tasks, sizeof *receiver);
    for (uint32_t i = 0; i < trace->header.n_tasks; i++)
        receiver[i] = NONE;
    for (uint32_t i = 0; i < trace->header.n_tasks; i++) {
        const struct trace_task *reader = &trace->tasks[i];
        uint32_t device = trace->lanes[reader->lane].device_index;
        for (uint32_t k = reader->first_edge; k < reader->first_edge + reader->n_edges; k++) {
            uint32_t from = trace->edges[k].producer;
            const struct trace_lane *lane = &trace->lanes[trace->tasks[from].lane];
            bool is_send = lane->kind == LANE_DOWNLOAD && device != lane->device_index;
            if (is_send && !trace->edges[k].reuse && receiver[from] == NONE)
                receiver[from] = device;
        }
    }
    return receiver;
}

/* Notes what is known of the trace's lanes and tasks before any of them has run. */
static void note_tasks(struct track *track)
{
    const struct trace *trace = track->trace;
    free(track->purpose);
    free(track->receiver);
    free(track->kind);
    track->purpose = new_lane_purposes(trace);
    track->receiver = new_receivers(trace);
    track->kind = allocate(trace->header.n_tasks, sizeof *track->kind);
    for (uint32_t i = 0; i < trace->header.n_tasks; i++)
        track->kind[i] = (uint8_t)kind_of_task(trace, &trace->tasks[i]);
    for (size_t i = 0; i < KINDS; i++)
        track->kind_colour[i] = kind_colour(kind_name(trace, i));
}

void renew_track(struct track *track)
{
    const char *path = track->board ? board_trace(track->board) : track->path;
    uint32_t had = track->trace ? track->trace->header.n_devices : 0;
    if (track->follower)
        close_follower(track->follower);
    must(open_follower(path, &track->follower));
    if (track->board)
        remove(path); /* its contents are mapped; if the name stays, the next move writes over the file */
    const struct trace *trace = followed_trace(track->follower);
    track->trace = trace;
    free(track->peak);
    track->highest_peak = 0;
    track->peak = allocate(trace->header.n_devices, sizeof *track->peak);
    note_tasks(track);
    if (trace->header.n_devices != had) { /* another machine */
        free(track->folded);
        track->folded = allocate(trace->header.n_devices, sizeof *track->folded);
    }
    update_track(track);
    track->zero = track->steps->n > 0 ? track->steps->items[0].work : trace->header.start_ns;
}

struct track *open_track(const char *path, struct board *board)
{
    struct track *track = allocate(1, sizeof *track);
    track->path = path;
    track->board = board;
    renew_track(track);
    return track;
}

void close_track(struct track *track)
{
    close_follower(track->follower);
    free(track->problem);
    free(track->peak);
    free(track->purpose);
    free(track->receiver);
    free(track->kind);
    free(track->folded);
    free(track);
}

bool is_living(const struct track *track)
{
    enum trace_life life = trainer_life(track->follower);
    return !track->problem && life != LIFE_CLOSED && life != LIFE_GONE;
}

bool poll_track(struct track *track)
{
    bool changed = false;
    if (!is_living(track))
        return false;
    track->problem = poll_follower(track->follower, &changed);
    if (changed)
        update_track(track);
    return changed || track->problem;
}
