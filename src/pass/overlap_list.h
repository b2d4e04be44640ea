/* overlap_list.h - the updates of a list that can run on the CPU: what they are and how long they take
 * (overlap_list.c), moving them (overlap_move.c), and a plan as text (overlap_file.c).
 */
#ifndef OVERLAP_LIST_H
#define OVERLAP_LIST_H

#include "../predict/predict.h"
#include "../step/edit.h"
#include "overlap.h"

struct group { /* the updates of a layer: they go together */
    int layer; /* -1: none; then it is known by the parameters it updates */
    const char *name;
    size_t *task; /* positions */
    size_t n, cap;
};
struct moved { /* one of them, and its copies, in an edited list */
    struct task *update;
    size_t group, ups; /* that many copies stand right behind it */
};
struct offloads {
    struct step *step;
    struct group *group; /* in order of release */
    size_t n, cap, n_tasks;
    int layers;           /* of the whole list */
    struct timing timing; /* by group */
    bool timed;           /* it is known how long tasks take */
    bool one_lane;        /* all are updated on one device, or first on it: then the formula's bounds are bounds */
    bool alone;           /* of the edit that is under way: see move_updates() */
    struct moved *moved;
    size_t n_moved, cap_moved;
    struct tensor **on_host; /* by tensor: its copy on the host, for reading */
    int lanes;               /* of the host's CPU: one for each core that is left to it */
};
/* Costs NULL: the tasks have times, or nobody knows them. */
struct offloads *find_offloads(struct step *s, const struct costs *c);
void free_offloads(struct offloads *o);
/* Would an order before that one do the same? */
bool is_order_new(const struct offloads *o, const bool *on_cpu, enum cpu_order order);
/* With all updates on the CPU, one task after another. */
double serial_seconds(struct offloads *o, const struct costs *c);

/* ---- overlap_move.c -----------------------------------------------------------------------------------------------
 */

/* Those groups run on the CPU, in that order.  `alone`: their gradients on the device share with nothing either, which
 * takes more bytes, but nothing waits until they have gone down. */
void move_updates(struct offloads *o, struct edit *e, const bool *on_cpu, enum cpu_order order, bool alone);
enum { NOWHERE = -1 };
/* The last task before position i that writes x. */
int find_maker(const struct step *s, size_t i, const struct tensor *x);
bool touches(const struct task *t, const struct tensor *x, enum access_mode mode);
bool is_on_device(const struct access *a, enum memory_class class);

/* ---- overlap_file.c: a plan as text, to be read, edited and loaded --------------------------------------------- */

extern const char *const cpu_order_name[CPU_ORDERS];
void write_plan(const char *path, const struct offloads *o, const bool *on_cpu, enum cpu_order order);
/* Ends the program (EXIT_USAGE) with the line that is wrong, or the update that is missing. */
void read_plan(const char *path, const struct offloads *o, bool *on_cpu, enum cpu_order *order);

#endif
