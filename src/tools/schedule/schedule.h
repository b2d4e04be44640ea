/* schedule.h - schedules of pipelines as PyTorch writes them, in CSV files: a row per device, a cell per turn.
 *
 *     0F0,0F1,0B0,0B1          device 0: forward of micro-batches 0 and 1 on stage 0, then their backwards
 *     1F0,1B0,1F1,1B1          device 1
 *
 *     cell               STAGE ACTION MICRO-BATCH, or two turns that overlap: (0F7;7B3)OVERLAP_F_B
 *     action             F forward, B backward; in two halves: I the gradient of the input, W those of the weights
 *
 *     cells      a file to a schedule, and back                  schedule_cells.c
 *     follow     can each cell's turn come, and in which order?  schedule_follow.c
 *     order      a schedule as an order for training             schedule_order.c
 *     write      a schedule as a list                            schedule_write.c
 *     read       the schedule that a list follows                schedule_read.c
 *     schedule   the options                                     schedule.c
 *
 * The format is that of torch.distributed.pipelining (schedules.py, "compute_only").  Other actions that such files may
 * have are left out: sends, and what PyTorch does with parameters and gradients, follow from these.
 */
#ifndef SCHEDULE_H
#define SCHEDULE_H

#include "trainer/model/model.h"

struct turn_cell {
    struct turn turns[2];
    int n;                   /* turns: 1, or 2 that overlap, a forward and a backward */
    int row;                 /* from 0 */
    int column;              /* the file's, from 0: empty cells are counted */
    const struct task *task; /* the list's with which it begins; NULL: it comes from a file */
};

struct row {
    struct turn_cell *cells;
    size_t n, cap;
};

struct listed_turn {
    const struct turn_cell *cell;
    const struct turn *turn; /* one of the cell's */
};

struct schedule {
    const char *name; /* what messages call it: the path of its file or list, or "--pipeline" */
    struct row *rows; /* one for each device */
    size_t n, cap;    /* rows */

    /* set by index_cells(), when all rows are there: */
    struct listed_turn *turns; /* [n_turns] all turns of all cells, row by row */
    size_t n_turns;
    int stages, micros;
    int *row_of;                    /* by stage */
    const struct turn_cell **doing; /* by computation, stage and micro-batch: the cell that does it; see cell_of() */
};

enum { MOST_STAGES = 1000, MOST_MICROS = 10000 }; /* they bound the size of `doing` */

/* ---- schedule_cells.c -------------------------------------------------------------------------------------------- */

/* The caller frees what these three return. */
char *cell_place(const struct turn_cell *cell); /* "row 2, cell 5", or, of a list, "task 12 backward" */
char *cell_text(const struct turn_cell *cell);  /* all turns of the cell: "1B3" */
char *turn_text(const struct turn *turn);       /* one turn: "1B3" */

/* Ends the program (EXIT_USAGE) with "FILE, row 2, cell 5: "1B3": " and the sentence by printf rules. */
_Noreturn void fail_in_cell(const struct schedule *schedule, const struct turn_cell *cell, const char *format, ...)
    PRINTF_LIKE(3, 4);

extern const char turn_letters[COMPUTATIONS]; /* 'F', 'B', 'I', 'W' */

/* The schedule of a file with that text.  What is wrong ends the program (EXIT_USAGE) with its row and cell.  Messages
 * call it `name`, which must live as long as the schedule.  The caller frees it with free_schedule(). */
struct schedule *read_schedule(const char *name, const char *text);
void free_schedule(struct schedule *schedule);
void add_cell(struct row *row, struct turn_cell cell); /* at the row's end; index_cells() comes after the last one */

char *format_schedule(const struct schedule *schedule); /* as such a file; the caller frees it */

/* Fills in what follows from the cells.  Ends the program unless each stage is in one row, and has each micro-batch
 * once. */
void index_cells(struct schedule *schedule);

/* The cell that does this computation (not BACKWARD: a whole backward does both its halves).  After index_cells() it is
 * never NULL. */
const struct turn_cell *cell_of(const struct schedule *schedule, enum computation computation, int stage, int micro);

/* ---- schedule_follow.c ------------------------------------------------------------------------------------------- */

/* All cells, *n of them, in an order in which they can be done one after another.  Ends the program where cells wait
 * for one another.  head: as for turn_needs() (pipeline.h).  The caller frees the array. */
const struct turn_cell **order_cells(const struct schedule *schedule, enum head_weights head, size_t *n);

/* Ends the program where order_cells() does. */
void refuse_if_waits_are_endless(const struct schedule *schedule, enum head_weights head);

/* Ends the program where PyTorch would run the schedule, and train something else, without a word. */
void refuse_if_wrong_in_pytorch(const struct schedule *schedule);

/* ---- schedule_order.c -------------------------------------------------------------------------------------------- */

/* The schedule as an order for training, which lives as long as the program.  Ends the program (EXIT_USAGE) if training
 * with it would not give one device's bits. */
struct turn_order *new_turn_order(const struct schedule *schedule);

/* ---- schedule_write.c -------------------------------------------------------------------------------------------- */

/* A list that follows the schedule, as the text of a step file, which the caller frees.  times: the words of --times,
 * or NULL. */
char *format_step_file(const struct schedule *schedule, const char *times);

/* ---- schedule_read.c --------------------------------------------------------------------------------------------- */

/* The schedule that the list of a step file follows.  Ends the program (EXIT_USAGE) with the task that fits into none.
 * The caller frees it with free_schedule(). */
struct schedule *new_schedule_of_list(const char *name, const struct list *list);

#endif
