/* additions.h - what a folder may add to the trainer, which asks for it without knowing the folder.
 *
 * The folder names these parts in its struct module (module.h).  The folder of src/trainer that asks for a part
 * declares its struct, in the header that stands beside the part here.  This header is in base/, since file/ asks too,
 * and file/ includes no other folder than base/.
 */
#ifndef ADDITIONS_H
#define ADDITIONS_H

#include "module.h"

/* A field that is NULL says that the folder does not have this part. */
struct training_parts {
    const struct hooks *hooks;     /* functions to call at moments of a training: train/hooks.h */
    const struct text_maker *text; /* a source that --data can name: data/data.h */
    /* Values of the trainer's own options that need the folder, between spaces: "zero=3".  The option is refused where
     * no folder enables the value. */
    const char *enables;
    /* The options to suggest where memory is too small, "--swap auto": that of the host, or of a device.  It returns
     * NULL where there are none, or where they are given already. */
    const char *(*way_to_make_room)(bool on_host);

    /* At most one folder may have each of these. */
    const struct archive *archive;     /* functions that keep runs and resume them: settings/archive.h */
    const struct token_kind *tokens;   /* a further kind of tokenizer: data/tokens.h */
    const struct formats *formats;     /* functions that know files of other programs: file/kinds.h */
    const struct order_reader *orders; /* functions that read a pipeline's order: model/pipeline.h */
};

/* What that folder adds to the trainer, never NULL. */
const struct training_parts *training_parts_of(const struct module *module);

/* Each of these finds the one folder that has the part; NULL: none has. */
const struct archive *find_archive(void);
const struct token_kind *find_further_tokens(void);
const struct formats *find_formats(void);
const struct order_reader *find_order_reader(void);

/* Never NULL: for callers that hold what an archive has made, such as a run that goes on. */
const struct archive *the_archive(void);

/* Does a folder enable that value of an option, "zero=3"? */
bool is_enabled(const char *value);

/* Which options make a model's tensors smaller, for messages. */
extern const char ways_to_shrink[];

/* A text for messages, which the caller frees.  It names what makes room in a model's list, apart from options that are
 * given: "--recompute full, --swap auto, a smaller ...".  on_host: it is the host that needs room, and not a
 * device. */
char *ways_to_make_room(bool on_host);

#endif
