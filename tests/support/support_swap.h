/* support_swap.h - random lists, budgets and reports for the tests of swapping. */
#ifndef SUPPORT_SWAP_H
#define SUPPORT_SWAP_H

#include "support.h"
#include "techniques/swap/swap_parts.h"

#define MIB ((size_t)1 << 20)
#define AUTO "--swap auto"
#define ALL_CLASSES "activations,gradients,optimizer,parameters"
#define STREAMED "--overlap all-cpu --swap auto --swap-what activations,gradients,parameters" /* the host updates all */

/* The kth random number of a seed, from 0 up to 1. */
double draw_kth(int seed, int k);

/* A random step file of tests/data/lists.awk, with so many layers; the caller frees it. */
char *random_list(const char *kind, int seed, int layers);

/* The same list, which begins with its device, on one of so many bytes. */
char *list_within(size_t bytes, const char *text);

/* The pass's report on a list. */
json_t *plan_file(const char *text, const char *options);

/* The bytes that a refusal says are enough. */
size_t budget_in(const char *refusal);

/* The same of the refusal that this list gets.  It must say `part` too. */
size_t refused_budget(const char *part, const char *text, const char *options);

#endif
