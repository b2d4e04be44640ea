/* gather.h - ZeRO-3: the rewrite of a list after which devices keep their parameters in shards.
 *
 *     gather.c         the technique: finds who reads parameters, and gathers them before      begin here
 *     gather_pass.c    the pass: when it runs, and what it says in the report
 *
 * Machinery from elsewhere: trainer/mesh/mesh.h adds the copies of a broadcast.  No other folder includes this header.
 */
#ifndef GATHER_H
#define GATHER_H

#include "planning/pass/edit.h"

/* A *window* is a run of tasks of one device that read the same parameters (the head of gather.c).  It is gathered so
 * many windows of its device before it is used. */
enum { WINDOWS_AHEAD = 1 };

/* Keeps the list's parameters in shards, and adds the copies that gather them, in the open edit.  sliced: another pass
 * is to send what is gathered, over several queues.  Returns how many windows are gathered; 0: no parameters lie in
 * shards, and the caller undoes the edit. */
size_t gather_parameters(struct list *list, struct edit *edit, bool sliced);

#endif
