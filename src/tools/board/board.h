/* board.h - a step file as something to play with: its tasks are moved, and the changed list is simulated.
 *
 * A task goes elsewhere along its lane, or to another lane of its device.  When it goes later in the list, the tasks of
 * other lanes that follow from it go with it; all others stay in their order.  A move is tried first: the list with it
 * is simulated, and verify_list() agrees that every task reads what it read in the list as written.  Then the move is
 * kept, or taken back.  A place where the list would mean something else is refused by the verbs of edit.h.
 *
 * Tasks are named by their places in the list as it is without the move that is tried.
 */
#ifndef BOARD_H
#define BOARD_H

#include "trainer/base/base.h"

#include <jansson.h>

struct board;

/* Reads the step file as yard plan --list does; a mistake ends the program.  clip: that of --clip, 0 for none.  A board
 * lasts until the program ends. */
struct board *open_board(const char *path, double clip);

/* The file with a trace of the simulated list, the move that is tried included: the caller removes the file when it has
 * read it.  Task i of the trace is that at position i of the list. */
const char *board_trace(const struct board *board);

struct move {
    size_t task, lane; /* lane: its index in the machine, and in the trace */
    int64_t behind;    /* the task of that lane which comes right before it there; NONE: it is the first */
};

/* Tries the move, instead of one that was tried before.  NULL: the move can be kept, and *position says where the task
 * is now.  Otherwise why it cannot; the caller frees the problem, and *position is that of the task that is in the way,
 * or else of the task itself. */
struct problem *try_move(struct board *board, const struct move *move, size_t *position);
void keep_move(struct board *board); /* keeps the move that was tried last */

/* Takes back the move that is tried, or the last one that was kept; false: there is none. */
bool undo_move(struct board *board);

/* How many moves were kept. */
size_t count_moves(const struct board *board);

/* Writes the list, as it is now, as a step file.  NULL: it is saved; otherwise the caller frees the problem. */
struct problem *save_board(const struct board *board, const char *path);

/* Period and peak, as the list was written and as it is now, and how many moves were kept. */
json_t *board_json(const struct board *board);

#endif
