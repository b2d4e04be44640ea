/* process.h - signals, and this process: process.c. */
#ifndef PROCESS_H
#define PROCESS_H

#include "error.h"

/* How the user called this program, such as "./yard": for commands that messages tell the user to type. */
extern const char *program_name;

/* main() calls this first, with its argv[0].  Afterwards descriptors 0 to 2 are open, SIGXFSZ is ignored, and SIGINT,
 * SIGTERM and SIGHUP end the program with a sentence and EXIT_INTERRUPTED. */
void prepare_process(const char *called);

/* From now on the first of these signals makes interrupted() true, and only the second, half a second later or more,
 * ends the program.  The caller ends it after `what`, such as "the step": the user is told so. */
void defer_interrupts(const char *what);

/* Installs our handlers anew for those signals that the OpenCL driver's compiler has replaced them for. */
void take_signals_back(void);
bool interrupted(void);

/* For a signal's handler, which may not call fail(): prints the line, runs all cleanups (error.h), and ends the
 * program with `code`. */
_Noreturn void end_in_handler(enum exit_code code, const char *line);

/* Forks this process, which must have a single thread.  Returns true in the child, at once.  Returns false in the
 * parent after the child has ended, with *status as waitpid() gives it.  Until then the parent hands the signals above
 * on to the child; when the parent is killed, so is the child. */
bool live_in_child(int *status);

/* Forks this process, which must have a single thread.  Returns 0 in the child; in the parent the child's number, for
 * wait_for_process().  Signals that ask the program to end reach the parent only, and the child ends with it. */
int begin_helper(void);

/* Waits until the process of this number has ended.  Returns its status as waitpid() gives it. */
int wait_for_process(int number);

/* Memory that is 0 at first and that this process shares with the children it forks later; for munmap().  Ends the
 * program where there is none. */
void *allocate_shared(size_t bytes);

/* The path of this program; NULL when the system does not say it.  The caller frees it. */
char *own_binary(void);

#endif
