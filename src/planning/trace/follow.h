/* follow.h - reading a trace that may still be written, and asking its trainer to wait: the viewer's side of trace.h.
 *
 * Another process owns the file, as in read.c: it is read by position, never mapped, each part is checked, and callers
 * get copies.  Nothing here ends the program.  A struct trace_follower belongs to one thread.
 */
#ifndef FOLLOW_H
#define FOLLOW_H

#include "trace.h"

struct trace_follower;

/* Returns NULL, and the follower, which has taken all records so far; or the problem: EXIT_IO: the file cannot be read;
 * EXIT_FAILED: it is not a trace, or damaged. */
struct problem *open_follower(const char *path, struct trace_follower **follower);

void close_follower(struct trace_follower *follower); /* withdraws a pause that it asked for */

/* Does another trace have its path by now? */
bool is_trace_replaced(const struct trace_follower *follower);

/* The trace as far as it has been read.  The struct stays where it is; its arrays may move at a poll. */
const struct trace *followed_trace(const struct trace_follower *follower);

/* Takes the new records, and renews a pause.  *changed: are there other records, unfinished ones, or another state of
 * the trainer?  Returns NULL, or a problem with the file, which was cut, or overwritten by another program: then what
 * was read before stays, and nothing more will come from the file. */
struct problem *poll_follower(struct trace_follower *follower, bool *changed);

/* ---- the trainer ------------------------------------------------------------------------------------------------- */

enum trace_life {
    LIFE_CLOSED,  /* the trace is complete */
    LIFE_RUNS,    /* the trainer runs */
    LIFE_PAUSED,  /* it has stopped between tasks, as it was asked to; header.paused_task - 1 comes next */
    LIFE_STOPPED, /* its process is stopped: at a breakpoint, or by SIGSTOP */
    LIFE_GONE     /* its process has ended without closing the trace */
};

enum trace_life trainer_life(const struct trace_follower *follower); /* as of the last poll */

/* The task that a lane works on: its oldest that has not ended.  Returns false where there is none. */
struct trace_running_task {
    const struct trace_record *record; /* an element of trace->unfinished */
    bool waits;                        /* true: a task that it needs has not ended */
    uint64_t since;                    /* the earliest time at which it can have started; when it waits: queued */
};
bool find_running_task(const struct trace *trace, uint32_t lane, struct trace_running_task *running);

/* ---- what it is asked -------------------------------------------------------------------------------------------- */

/* Can the trainer be asked anything: does it run, and may we write to the file? */
bool can_request(const struct trace_follower *follower);

/* current_request(): what is asked.  send_request() asks for something else; it sets `until` itself.  A
 * request holds as long as poll_follower() is called at least once in TRACE_LEASE_MS.  After that the trainer goes
 * on at full speed: a viewer that is killed or hangs does not pause it. */
enum { TRACE_LEASE_MS = 2000, TRACE_LONGEST_LEASE_MS = 10000 };
const struct trace_control *current_request(const struct trace_follower *follower);
void send_request(struct trace_follower *follower, struct trace_control wanted);

#endif
