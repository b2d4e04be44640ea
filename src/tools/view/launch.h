/* launch.h - the window of --view: `yard view`, started on a trace that this process writes.  See launch.c. */
#ifndef LAUNCH_H
#define LAUNCH_H

/* Starts `yard view` on the trace.  The program goes on even if that fails: a warning says why there is no window.  The
 * viewer has the file open, so the file's name may be removed at once. */
void start_viewer(const char *path);

#endif
