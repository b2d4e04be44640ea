/* board.h - a step file as something to play with: its tasks are moved, and what comes of it is simulated.
 *
 * A task goes elsewhere along its lane, or to another lane of its device.  What follows from it on other lanes is put
 * off with it where it goes later in the list; all others stay in their order.  A move is tried first: the list with it
 * is simulated, and verify() agrees that every task reads what it read in the list as written.  Then it is kept, or
 * left.  A place where the list would mean something else is refused by the verbs of edit.h.
 *
 * Tasks are named by their places in the list as it is without the move that is tried.
 */
#ifndef BOARD_H
#define BOARD_H

#include "trainer/base/base.h"

#include <jansson.h>

struct board;
/* Reads the step file as yard plan --list does; what is wrong with it ends the program, with which a board ends too. */
struct board *open_board(const char *path, double clip);

/* The simulation of the list as it is now, or is tried, as a trace: the caller removes the file when it has read it.
 * Task i of the trace is that at place i of the list. */
const char *board_trace(const struct board *b);

enum { FIRST = -1 };
struct move {
    size_t task, lane; /* lane: its index in the machine, and in the trace */
    int64_t behind;    /* the task of that lane which comes right before it there; FIRST: none */
};
/* Try the move, in place of one that was tried before.  NULL: it can be kept, and *place says where the task is now; or
 * why not, as a sentence that the caller frees, and *place the task that is in the way, else the task itself. */
char *try_move(struct board *b, const struct move *m, size_t *place);
void keep_move(struct board *b);
/* Takes back the one that is tried, or the last one that was kept; false: there is none. */
bool undo_move(struct board *b);

size_t count_moves(const struct board *b); /* that were kept */
struct problem *save_board(const struct board *b, const char *path);
json_t *board_json(const struct board *b); /* period and peak, as written and now; how many moves */

#endif
