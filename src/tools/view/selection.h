/* selection.h - what the user has chosen: a task, a stretch of time or a place, marks, and what is searched for. */
#ifndef SELECTION_H
#define SELECTION_H

#include "track.h"

struct pick { /* a record of a track */
    int track;
    int64_t record;           /* the index in the trace, or NONE */
    struct trace_record copy; /* a copy of it, with which it is found again when the trace has grown */
};

enum region_kind { NO_REGION, STRETCH, PLACE };

struct region { /* the selected stretch of time, or the selected place on a memory row: the panel shows it */
    enum region_kind kind;
    double at[2]; /* a stretch's ends on the axis, in either order; a place has the same value twice */
    int track;    /* the place's */
    uint32_t device;
};

struct panel {           /* the text about the selected stretch or place */
    struct table *table; /* NULL: nothing is selected */
    struct table *brief; /* `table` for people, with kept tensors summed by class; NULL: `table` is brief */
    size_t n;            /* how many rows people see; those after them say almost nothing */
    char *title;
    double bytes; /* a stretch: bytes that links move; a place: bytes that are held */
};

struct lit_bars { /* the indices of a lane's bars that are lit, ascending */
    uint32_t *all;
    size_t n, cap;
};

struct highlight {          /* what is lit in a track while other bars are dimmed, and for what it was found */
    struct lit_bars *lanes; /* [n_lanes] NULL: all bars are lit */
    uint32_t n_lanes;
    char search[32];
    bool critical;
    uint64_t changes; /* the track's */
};

enum { MOST_MARKS = 2 };

struct view_selection {
    struct pick task;
    struct region region;
    struct panel panel;
    double mark[MOST_MARKS]; /* the times that are marked, on the axis, the oldest mark first */
    int n_marks;
    char search[32]; /* only tasks with this in their names are lit; "": all */
    bool typing;     /* true: keys are added to `search` */
    bool critical;   /* true: only the critical path of the anchor step is lit */
    size_t *path;    /* the records of that path in the first trace, ascending */
    size_t n_path, cap_path;
    struct highlight highlights[MOST_TRACKS];
};

#endif
