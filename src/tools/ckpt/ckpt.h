/* ckpt.h - yard ckpt, which looks into checkpoints, checks, compares and rewrites them.
 *
 *     ckpt.c           its words and options, and what several words need
 *     ckpt_ls.c  ckpt_verify.c  ckpt_diff.c  ckpt_reshard.c  ckpt_export.c      a word each
 *     model_forms.h    the model alone, for other programs, which ckpt_export.c has written
 *
 * src/techniques/checkpoint says what a checkpoint is, and has all that reads and writes one.
 */
#ifndef CKPT_H
#define CKPT_H

#include "techniques/checkpoint/checkpoint.h"
#include "trainer/base/options.h"

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

struct ckpt_given { /* the values of the options */
    bool json, plan;
    const char *mesh; /* NULL: the pieces are merged */
    int zero;         /* it counts only if --zero was given */
};
extern struct ckpt_given asked_ckpt;
extern struct option_table ckpt_options;

/* ---- the words, each in its file --------------------------------------------------------------------------------- */

enum exit_code list_checkpoint(char **paths);
enum exit_code verify_checkpoints(char **paths);
enum exit_code diff_checkpoints(char **paths);
enum exit_code reshard_checkpoint(char **paths);
enum exit_code export_checkpoint(char **paths);

/* ---- what several words need: ckpt.c ----------------------------------------------------------------------------- */

enum { RUN_WORD = 20 }; /* bytes of a run's id as text, and more */

/* The id of the checkpoint's run, written into `out`; NULL: it is not known. */
const char *format_run(char out[RUN_WORD], const struct checkpoint *checkpoint);

/* Fails when the path lies in a checkpoint, or in the folder of a run that still goes on. */
void expect_place(const char *claimant, const char *path);

/* Fails when something would be replaced: the name must be free, or that of an empty folder that no run is using. */
void expect_free(const char *claimant, const char *path);

#endif
