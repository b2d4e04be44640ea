/* data_parts.h - how a data set is opened, in steps that a file each takes.  Only these files include it.
 *
 *     --data ─ find_files() ─▶ text files ─ open_texts() ─▶ texts ─ cut_texts() ─▶ texts ─ encode ─▶ train | val
 *                    └───────▶ .bin files ─ read ─▶ token numbers ─ cut ────────────────────────▶ train | val
 *
 *     data_paths.c    which files they are, and of which format
 *     texts.c         what is in files of text, and how the texts are cut into training and validation
 *     splits.c        texts and files of numbers become tokens, a split to train on and one to validate on
 *     data.c          all of it, in order: open_dataset()
 */
#ifndef DATA_PARTS_H
#define DATA_PARTS_H

#include "data.h"

/* ---- data_paths.c ------------------------------------------------------------------------------------------------ */

enum data_format { FILE_TEXT, FILE_SHARD, FILE_HEADERLESS };
extern const char *const format_name[]; /* by format: what a sentence calls such a file */
struct files {                          /* the files of --data or --val-data, all of one format */
    const char *given;                  /* the user's words, for messages */
    enum data_format format;
    char **paths; /* sorted; NULL stands for a text that is no file: the program's own sources, or a made one */
    size_t n, cap;
    const struct text_maker *maker; /* it makes the text; NULL: the text is read */
    void *made;                     /* what its open() returned */
};

/* Finds what --data or --val-data says.  Ends the program if nothing is there that could be trained on. */
struct files find_files(const char *given);
void free_files(struct files *files);

/* A folder as nanoGPT lays it out becomes its two files; val.bin is for validation if nothing else is named.  The paths
 * last as long as the dataset. */
struct data_options use_nanogpt_folders(struct dataset *dataset, const struct data_options *options);

/* ---- texts.c ----------------------------------------------------------------------------------------------------- */

enum { MADE_BYTES = 2 << 20 }; /* how long a made text is */

/* The texts of the files.  as_bytes: every byte is a token, whatever the encoding is. */
struct texts open_texts(const struct files *files, bool as_bytes);
void close_texts(struct texts *all);
size_t count_bytes(const struct texts *all);

/* Adds bytes [begin, end) of all texts together, as a text for each file in which they lie. */
void add_text_range(struct texts *to, const struct texts *all, size_t begin, size_t end);

/* The texts together are cut into `parts` of about the same size, and the last share of each is for validation.
 * Several files may be of several kinds, so one part would not do: all of C would be trained on and only Markdown be
 * validated. */
void cut_texts(const struct texts *all, double share, size_t parts, struct texts *train, struct texts *val);

/* ---- splits.c ---------------------------------------------------------------------------------------------------- */

/* Each fills in the dataset's splits and its tokenizer: from files of text, or from files of token numbers. */
void load_texts(struct dataset *dataset, const struct data_options *options, const struct files *train,
                const struct files *val);
void load_tokens(struct dataset *dataset, const struct data_options *options, const struct files *train,
                 const struct files *val);

#endif
