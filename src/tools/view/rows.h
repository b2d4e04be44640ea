/* rows.h - the rows of the picture from top to bottom: devices, lanes, memory.  layout.c fills them in. */
#ifndef ROWS_H
#define ROWS_H

#include "track.h"

enum row_kind { ROW_DEVICE, ROW_LANE, ROW_MEMORY };

struct view_row {
    enum row_kind kind;
    int track;
    uint32_t index; /* the lane, or the device */
    bool empty;     /* true: it is a lane without a task */
    int y, height;
};
static inline bool has_content(const struct view_row *row) { return row->kind == ROW_LANE || row->kind == ROW_MEMORY; }

struct contents { /* what the picture has, as far as it is drawn: kinds of the first trace's bars, causes of gaps */
    bool kind[KINDS], cause[CAUSES];
    bool class[TRACE_CLASSES]; /* classes of memory */
    bool pale;                 /* true: a lane was mostly idle where short tasks share a column */
    bool unfinished[2];        /* tasks that have not ended: [0] one runs, [1] one waits for another */
    bool plain;                /* true: a bar's task is_plain(), and so has no colour of its own */
};

struct layout {
    struct view_row *rows; /* top to bottom */
    size_t n_rows, cap_rows;
    int rows_height; /* the height of all rows, also of those out of sight */
    int good_height; /* what it would be if they had all the room that they want */
    int legend_lines, details_lines;
    bool low;                /* true: the window is so low that it has no overview, and a legend of two lines at most */
    bool no_room_for_memory; /* true: its rows would be too low to be read, so they are left out */
    struct contents contents;
};

#endif
