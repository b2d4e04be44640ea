/* this_process.c - what this process knows of itself, where no other process shares it. */
#include "this_process.h"

static struct process_facts own_facts;
struct process_facts *this_process = &own_facts;
