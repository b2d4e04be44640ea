/* mouse.h - where the mouse is, and what it does: it is over a task, or drags rows, a time or a task. */
#ifndef MOUSE_H
#define MOUSE_H

#include "selection.h"

enum { OFF_WINDOW = -1 }; /* the mouse's place when it is not on the window */
enum drag { DRAG_NOTHING, DRAG_ROWS, DRAG_OVERVIEW, DRAG_RULER, DRAG_TASK };

struct bar_spot { /* where a task's bar is in a step */
    uint32_t lane;
    double middle; /* on the axis; NAN: the task does not run in the step */
};

struct gesture { /* a task of a board is dragged */
    int track;
    uint32_t step, task;
    double grip;            /* on the axis, from the middle of the task's bar to where the mouse took it up */
    struct bar_spot *spots; /* [tasks] where the bars were when it was taken up */
    bool tries;             /* true: a move has been tried */
    bool refused;           /* true: the last move that was tried was refused */
    struct move tried;
    struct pick blocker; /* the task that is in the way */
};

struct mouse {
    int x, y;          /* pixels, or OFF_WINDOW */
    struct pick hover; /* the task under it */
    enum drag drag;    /* what the held button moves */
    bool moved;        /* true: it has moved since the button went down */
    struct gesture gesture;
};

#endif
