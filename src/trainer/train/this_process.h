/* this_process.h - what this process knows of itself: trainer.c.
 *
 * With --restart a process starts trainings in children, one after another.  Then this is memory that they share: the
 * process that starts trainings sets the first three fields, and a training tells it the last two.
 */
#ifndef THIS_PROCESS_H
#define THIS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

struct process_facts {
    uint64_t begun;   /* now_ns() at its start, from which a resumed run counts how long it took to begin */
    const char *from; /* the run to go on from, whatever the command line says; NULL: as the command line says */
    int restarts;     /* how many trainings came before this one; 0 without --restart */
    uint32_t step;    /* the last step that the training has shown; 0: none */
    bool not_finite;  /* the training ends because a value is not finite, which would happen again */
};
extern struct process_facts *this_process;

#endif
