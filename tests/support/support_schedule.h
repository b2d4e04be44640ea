/* support_schedule.h - lists of tasks that are run: machines for them, arrays, tasks, and one list that several tests
 * use, the journey.
 */
#ifndef SUPPORT_SCHEDULE_H
#define SUPPORT_SCHEDULE_H

#include "support.h"
#include "trainer/run/run.h"

/* ---- machines ---------------------------------------------------------------------------------------------------- */

struct machine *open_one(void);

/* Two devices; `apart` gives each a context of its own, as two GPUs have. */
struct machine *open_two(bool apart);

void close_used(struct machine *machine); /* stops the threads of its lanes first */

/* ---- making lists ------------------------------------------------------------------------------------------------ */

/* A list in a pool of its own on this machine; end_list() frees all three. */
struct list *new_list_on(struct machine *machine);
void end_list(struct list *list);
struct tensor *new_array(struct pool *pool, struct device *device, const char *name, int64_t n, enum lifetime lifetime);

/* Kernels of elementwise.cl: out = a + b, out = value, sum += x. */
struct task *add_two(struct list *list, const char *name, struct tensor *out, struct tensor *a, struct tensor *b);
struct task *add_fill(struct list *list, const char *name, struct tensor *out, float value);
enum { FILL_ELEMENTS = 2 }; /* the argument of a fill that says how many elements it writes */
struct task *add_accumulate(struct list *list, const char *name, struct tensor *sum, struct tensor *tensor);

void no_work(void *context, const struct task *task, uint32_t iteration); /* a host_function */

/* ---- the journey ------------------------------------------------------------------------------------------------- */

/* A number's way to the device and back, each task on another lane:
 *
 *     0 make    cpu       h <-            h and r are on the host and never live together: they share bytes
 *     1 carry   upload    d <- h          d, o, p are on the device; d and o live together in task 2
 *     2 twice   compute   o <- d + d
 *     3 sum     compute   p += o          p persists
 *     4 fetch   download  r <- p
 *     5 show    report         r
 */
struct journey {
    struct machine *machine;
    struct pool *pool;
    struct list *list;
    struct tensor *h, *d, *o, *p, *r;
    struct task *sum, *show;
};

/* `make` is what task 0 does. */
struct journey new_journey(host_function *make, void *context);
void end_journey(struct journey *j);

#endif
