/* trace_parts.h - what the files that write and read a trace share, and nobody else needs: where its tables are.
 * Implemented in read.c; process_state() in follow.c.
 */
#ifndef TRACE_PARTS_H
#define TRACE_PARTS_H

#include "trace.h"

/* ---- follow.c ---------------------------------------------------------------------------------------------------- */

/* When a process was started, in the system's unit, and its state: 'R', 'S', 'T' stopped, 't' traced, 'Z' ...  Returns
 * false if there is no such process.  Where the system has no /proc, born is 0 and the state 'R'. */
bool process_state(int pid, uint64_t *born, char *state);

/* ---- read.c ------------------------------------------------------------------------------------------------------ */

#define DAMAGED "the trace %s is damaged: "

/* A table of the file: the offsets of its place and number of entries in the header, of its pointer in struct trace. */
struct trace_part {
    size_t at, n, table;
    size_t size; /* bytes of an entry */
};

enum { TRACE_PARTS = 6 };
extern const struct trace_part trace_parts[TRACE_PARTS]; /* read.c */
#define PART_OF(type, whole, offset) ((type *)(void *)((char *)(whole) + (offset)))

struct reader;

/* Reads header and tables, and checks them, into a zeroed trace; fails where something is wrong. */
void read_trace_tables(struct reader *file, struct trace *trace);

#endif
