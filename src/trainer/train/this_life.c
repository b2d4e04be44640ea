/* this_life.c - what this process knows of itself, where no other process shares it. */
#include "this_life.h"

static struct one_life own_life;
struct one_life *this_life = &own_life;
