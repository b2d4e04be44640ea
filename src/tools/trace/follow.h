/* follow.h - reading a trace that may still be written, and asking its trainer to wait: the viewer's side of trace.h.
 *
 * The file is somebody else's, as in read.c: it is read by position, never mapped, each part is checked, and what is
 * handed on is a copy.  Nothing here ends the program.  A struct trace_follow belongs to one thread.
 */
#ifndef FOLLOW_H
#define FOLLOW_H

#include "trace.h"

struct trace_follow;

/* NULL and the follower, which has taken all records so far; or what is wrong: EXIT_IO: it cannot be read;
 * EXIT_FAILED: it is not a trace, or damaged. */
struct problem *trace_follow_open(const char *path, struct trace_follow **f);
void trace_follow_close(struct trace_follow *f); /* gives up a pause that it asked for */

/* Another trace has its path by now. */
bool trace_follow_replaced(const struct trace_follow *f);
/* What has been read.  The trace stays where it is, its arrays may move at a poll. */
const struct trace *trace_follow_trace(const struct trace_follow *f);

/* Take what is new, and renew a pause; changed: records, unfinished ones or the trainer's state are not what they were.
 * NULL, or what is wrong with the file by now (cut, overwritten by something else): what was read before stays, and
 * there is nothing more to come from it. */
struct problem *trace_follow_poll(struct trace_follow *f, bool *changed);

/* ---- the trainer ----------------------------------------------------------------------------------------------- */

enum trace_life {
    LIFE_CLOSED,  /* the trace is complete */
    LIFE_RUNS,    /* the trainer runs */
    LIFE_PAUSED,  /* it has stopped between tasks, as it was asked to; header.held - 1 is the task that comes next */
    LIFE_STOPPED, /* its process stands: at a breakpoint, or by SIGSTOP */
    LIFE_GONE     /* its process has ended without closing the trace */
};
enum trace_life trace_follow_life(const struct trace_follow *f); /* as of the last poll */

/* What a lane is at: its oldest task that has not ended.  false: none. */
struct trace_running {
    const struct trace_record *record; /* of trace->unfinished */
    bool waits;                        /* a task that it needs has not ended */
    uint64_t since;                    /* the earliest moment at which it can have started; of one that waits: queued */
};
bool trace_running(const struct trace *t, uint32_t lane, struct trace_running *r);

/* ---- what it is asked ------------------------------------------------------------------------------------------ */

/* Can the trainer be asked anything: does it run, and may we write to the file? */
bool trace_can_ask(const struct trace_follow *f);
/* What is asked, and asking something else: all but `until`, which is ours.  It holds as long as trace_follow_poll() is
 * called at least once in TRACE_LEASE_MS; then the trainer goes on at full speed, so a viewer that is killed or hangs
 * does not hold it. */
enum { TRACE_LEASE_MS = 2000, TRACE_LONGEST_LEASE_MS = 10000 };
const struct trace_control *trace_asks(const struct trace_follow *f);
void trace_ask(struct trace_follow *f, struct trace_control wanted);

/* ---- between the files of this folder -------------------------------------------------------------------------- */

/* When a process was started, in a unit of the system's own, and its state: 'R', 'S', 'T' stopped, 't' traced, 'Z' ...
 * false: there is none.  Where the system has no /proc, born is 0 and the state 'R'. */
bool process_state(int pid, uint64_t *born, char *state);

#define DAMAGED "the trace %s is damaged: "
/* A table of the file: where the header says how long it is and where, and where struct trace has it. */
struct trace_part {
    size_t at, n, table, size; /* the last: of an entry */
};
enum { TRACE_PARTS = 6 };
extern const struct trace_part trace_parts[TRACE_PARTS]; /* read.c */
#define PART_OF(type, whole, offset) ((type *)(void *)((char *)(whole) + (offset)))

struct reader;
/* Header and tables, checked, into a zeroed trace; fails with what is wrong. */
void trace_read_tables(struct reader *file, struct trace *t);

#endif
