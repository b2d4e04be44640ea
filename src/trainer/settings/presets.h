/* presets.h - sizes by name, and sizes that the source of a model brings: presets.c. */
#ifndef PRESETS_H
#define PRESETS_H

#include "settings.h"

enum { PRESETS = 4 };
extern const char *preset_words[PRESETS + 1]; /* the words of --model; NULL ends them */
extern char preset_help[256];                 /* its help */
void fill_preset_texts(void);                 /* fills in the two, from the presets */
void apply_preset(struct settings *settings); /* --model fills in the sizes that are still open (0) */

/* --resume and --init bring their own sizes: options may only repeat them, and so may --model if preset_counts.  Only
 * sequences may be shorter. */
void adopt_sizes(struct settings *settings, bool preset_counts);

#endif
