/* support_view.h - views for tests: of step files, and of traces that a test writes itself. */
#ifndef SUPPORT_VIEW_H
#define SUPPORT_VIEW_H

#include "support.h"
#include "tools/view/act.h"
#include "tools/view/draw.h"

/* ---- views ------------------------------------------------------------------------------------------------------- */

/* The simulation of a step file as a trace, in this test's folder.  Another one is written over it. */
char *trace_of_list(const char *list);        /* its path, always the same, which the caller frees */
char *second_trace_of_list(const char *list); /* the same with another path, to be shown below the first */

/* A view of one trace or two; other: NULL or the second. */
struct view *open_test_view(const char *trace, const char *other, int width, int height, int scale);

struct view *view_of_list(const char *list, int width, int height, int scale); /* of a step file: tasks can be moved */
void end_view(struct view *view);

/* ---- what is seen in a view -------------------------------------------------------------------------------------- */

const char *selected_name(const struct view *view); /* of the selected task; "": none is */
double period_of(const struct view *view);          /* in ms, of the list that is edited */

/* The middle of the nth bar of the anchor step on a lane: returns x, and sets y. */
int bar_at(const struct view *view, const char *lane, size_t nth, int *y);

struct canvas *new_picture(struct view *view);            /* the caller frees it */
bool has_sign(const struct view *view, const char *name); /* is it in the legend? */

/* Fails unless the lists of lit bars are those that a search and the critical path leave lit. */
void expect_lit(const struct view *view);

/* ---- traces that are written ------------------------------------------------------------------------------------- */

/* A trace of a list of TASKS tasks, one after another, task i on lane i % LANES; and of a report on a lane of its own.
 * It holds weight (100 bytes) all the time, x (1,000 bytes) from task 0 to task 8 and y (500 bytes) from task 5 to
 * task 11.  It keeps 200 records, and older ones are lost. */
enum { LANES = 3, TASKS = 12 };
struct trace_writer *begin_trace(const char *path);

/* Writes a step of one task after another, of `ns` each, from `clock` on; returns the clock at its end. */
uint64_t write_step(struct trace_writer *w, uint32_t step, uint64_t clock, uint64_t ns);

/* ---- memory by the clock ----------------------------------------------------------------------------------------- */

/* Fails unless the amounts that a trace keeps up to date are those that are counted at that clock, and the tensors that
 * are alive then have as many bytes. */
void expect_held(const struct trace *trace, uint64_t clock);

#endif
