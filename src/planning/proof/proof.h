/* proof.h - what can be known of a list without running it: the values that its tasks read, and that nothing races; and
 * by running it serially, whether its tasks do what they declare.
 *
 *     struct values *values = hash_values(list);          as it was built
 *     ...                                                 passes, place() and depend() change the list
 *     struct problem *problem = verify_list(list, values);     the finished list
 *     if (!problem)
 *         problem = verify_devices(list);
 *
 * A proof returns a problem (EXIT_FAILED) that says in a sentence what is wrong; NULL: nothing is.  The caller frees a
 * problem with free(), unless it ends the program with it.
 */
#ifndef PROOF_H
#define PROOF_H

#include "trainer/base/base.h"

struct list;          /* trainer/step/list.h */
struct module;        /* trainer/base/module.h */
struct serial_runner; /* trainer/run/run.h */
struct task;          /* trainer/step/task.h */
struct task_flight;   /* trainer/run/run.h */
struct trainer;       /* trainer/train/train.h */

/* ---- values.c ---------------------------------------------------------------------------------------------------- */

/* The values that flow through a list, each known by a hash.  The hashes are taken before passes rewrite the list;
 * verify_list() compares the rewritten list with them.  The caller frees them with free_values(). */
struct values;
struct values *hash_values(const struct list *list);

/* Does what hash_values() does, for lists of two step files: a task is known by name, layer, micro-batch and role,
 * and a tensor that persists by its name up to "~". */
struct values *hash_named_values(const struct list *list);
void free_values(struct values *values);

/* Does every task of the list read the same values as in the list that `expected` was taken from?  Returns NULL, or
 * the first task that does not. */
struct problem *compare_values(const struct values *expected, const struct list *list);

/* ---- verify.c ---------------------------------------------------------------------------------------------------- */

/* Checks the finished list on its own, and takes what tasks declare for true:
 *
 *     values    every read sees bytes that were last written through its own tensor
 *     order     two accesses to the same bytes, of which one writes, are ordered by waits and lanes: within an
 *               iteration, and into the next; further apart this follows, since lanes are in order
 *     memory    every tensor lies within its device's budget
 *     expected  every task reads the same values as in that list; NULL: this is not checked
 *
 * Returns NULL, or the first violation. */
struct problem *verify_list(const struct list *list, const struct values *expected);

/* ---- verify_places.c --------------------------------------------------------------------------------------------- */

/* Checks where tasks run: each touches only memory of its lane's device.  Copies are an exception, and so are tasks
 * that choose: these declare what they must come after, and do not look at it.  NULL, or the first violation. */
struct problem *verify_devices(const struct list *list);

/* ---- audit.c: checks what tasks declare, while nothing else runs ------------------------------------------------- */

/* The list is ready to run.  Audit its tasks in list order, and then call close_audit(), which frees the audit. */
struct audit *open_audit(struct list *list);

/* Runs the task in that iteration several times, each time with other bytes in all that it does not declare to read.
 * Returns NULL if each run left the same in its declared writes, and changed nothing else.  Otherwise it returns the
 * problem, and memory is as before the task. */
struct problem *audit_task(struct audit *audit, const struct task *task, uint32_t iteration,
                           struct task_flight *flight);
void close_audit(struct audit *audit);

/* For execution.serial_runner: audits every task of a serial run, and ends the program where one does something
 * undeclared. */
extern const struct serial_runner audit_runner;

/* ---- training_proofs.c: the proofs that a training asks for ------------------------------------------------------ */

struct proof_options {
    bool verify, audit;
};
extern struct proof_options asked_proof; /* only the table of options writes it */
extern const struct module module_proof;

/* The values of one of the trainer's lists as it was built; NULL: there is no --verify. */
struct values *values_of(const struct trainer *trainer, const struct list *list);

#endif
