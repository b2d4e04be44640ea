/* own_options.h - the trainer's own options, and the values of all that the trainer has: own_options.c. */
#ifndef OWN_OPTIONS_H
#define OWN_OPTIONS_H

#include "settings.h"

extern struct settings own_settings; /* the values of the options: rows point into it; one command runs in a process */
extern const struct option own_options[];
extern const size_t n_own_options;

#endif
