/* claims.h - what the command reads and writes: claims.c. */
#ifndef CLAIMS_H
#define CLAIMS_H

#include "kinds.h"

void begin_claims(void); /* forget all claims: a command begins */

/* Enter the file `path` under its claimant, the name of what reads or writes it: "--log".  Every file is claimed before
 * the first output is opened.  They end the program (EXIT_USAGE) when the path is empty, or when an output is a file
 * that was entered before.
 *
 * may_replace: the claimant of an input that this output may replace, as --save may replace what --resume has read
 * whole; NULL: it may replace none. */
void claim_input(const char *claimant, const char *path);
void claim_output(const char *claimant, const char *path, const char *may_replace);

/* Ends the program unless an output may take this path: nothing is there, or a file of the output's own kind, an empty
 * file, or what is not a regular file.  `name` is the kind's name in the sentence, "log that yard wrote". */
void expect_own_kind(const char *claimant, const char *path, enum known_kind kind, const char *name);

/* expect_own_kind(), and no other process may be writing to the file. */
void expect_replaceable(const char *claimant, const char *path, enum known_kind kind, const char *name);

#endif
