/* settings_parts.h - what the files of this folder need of one another.  settings.h has what others need. */
#ifndef SETTINGS_PARTS_H
#define SETTINGS_PARTS_H

#include "settings.h"

/* ---- own_options.c: the trainer's own options, and the values of all that the trainer has ------------------------ */

extern struct settings own_settings; /* the values of the options: rows point into it; one command runs in a process */
extern const struct option own_options[];
extern const size_t n_own_options;

/* ---- presets.c: sizes by name, and sizes that the source of a model brings --------------------------------------- */

enum { PRESETS = 4 };
extern const char *preset_words[PRESETS + 1]; /* the words of --model; NULL ends them */
extern char preset_help[256];                 /* its help */
void fill_preset_texts(void);                 /* fills in both, from the table of presets */
void apply_preset(struct settings *settings); /* --model fills in the sizes that are still open (0) */

/* --resume and --init bring their own sizes: options may only repeat them, and so may --model if preset_counts.  Only
 * sequences may be shorter. */
void adopt_sizes(struct settings *settings, bool preset_counts);

#endif
