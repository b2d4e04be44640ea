/* settings_parts.h - what the files of this folder need of one another.  settings.h has what others need. */
#ifndef SETTINGS_PARTS_H
#define SETTINGS_PARTS_H

#include "settings.h"

/* ---- own_options.c: the trainer's own options, and the values of all that the trainer has ------------------------ */

extern struct settings own_settings; /* the values of the options: rows point into it; one command runs in a process */
extern const struct option own_options[];
extern const size_t n_own_options;

/* ---- all_options.c ----------------------------------------------------------------------------------------------- */

extern struct option_table all_options; /* these and those of folders, group by group */
void gather_options(void);              /* fills the table */

/* The options that the usage names one by one belong to the command at hand too. */
void mark_options(const struct usage *usage);

/* ---- check_settings.c -------------------------------------------------------------------------------------------- */

void set_order(void); /* finds the order that --pipeline names */

/* Refuses options that make no sense together, and warns of those that have no effect. */
void check_together(void);

/* Claims the files that options name, before any is opened for writing.  Files in folders are claimed where the folders
 * are listed. */
void claim_files(const struct usage *usage);

/* ---- source.c ---------------------------------------------------------------------------------------------------- */

void open_init(void); /* opens the model of --init */

/* ---- recorded.c -------------------------------------------------------------------------------------------------- */

struct resumed_run;

/* Takes over the options of the resumed run.  They do not count as given. */
void apply_recorded(const struct resumed_run *past);

/* ---- usage.c ----------------------------------------------------------------------------------------------------- */

unsigned classes_of(const struct usage *usage);          /* of the options that the command takes */
_Noreturn void end_with_help(const struct usage *usage); /* prints the command's help and ends the program */

/* Refuses a word that is not an option, where the command takes none. */
_Noreturn void refuse_word(const struct usage *usage, const char *word);

/* ---- presets.c: sizes by name, and sizes that the source of a model brings --------------------------------------- */

enum { PRESETS = 4 };
extern const char *preset_words[PRESETS + 1]; /* the words of --model; NULL ends them */
extern char preset_help[512];                 /* its help */
void fill_preset_texts(void);                 /* fills in both, from the table of presets */
void apply_preset(struct settings *settings); /* --model fills in the sizes that are still open (0) */

/* --resume and --init bring their own sizes: options may only repeat them, and so may --model if preset_counts.  Only
 * sequences may be shorter. */
void adopt_sizes(struct settings *settings, bool preset_counts);

#endif
