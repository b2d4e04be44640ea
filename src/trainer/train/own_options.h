/* own_options.h - what the files that read settings know of each other.
 *
 *     settings.c      puts options together, and reads the command line and the config file         begin here
 *     own_options.c   the rows of the trainer's own options
 *     presets.c       sizes by name; sizes that the source of a model brings
 */
#ifndef OWN_OPTIONS_H
#define OWN_OPTIONS_H

#include "settings.h"

extern struct settings asked; /* the values of options: rows point into it; one command runs in a process */

/* ---- own_options.c ----------------------------------------------------------------------------------------------- */

extern const struct option own_options[];
extern const size_t n_own_options;

/* ---- presets.c --------------------------------------------------------------------------------------------------- */

enum { PRESETS = 4 };
extern const char *preset_words[PRESETS + 1]; /* the words of --model; NULL ends them */
extern char preset_help[256];                 /* its help */
void describe_presets(void);                  /* fills in the two, from the presets */
void apply_preset(struct settings *settings); /* --model fills in the sizes that are still open (0) */
/* --resume and --init bring their own sizes: options may only repeat them, and so may --model if preset_counts.  Only
 * sequences may be shorter. */
void adopt_sizes(struct settings *settings, bool preset_counts);

#endif
