/* support_data.h - data sets of small files: texts of letters, and tokens that tell where they stood. */
#ifndef SUPPORT_DATA_H
#define SUPPORT_DATA_H

#include "child.h"
#include "trainer/data/data.h"

enum { T = 16 }; /* tokens of a window, as --seq-len would say */

/* Batches of two windows of T tokens, from the data at this path; a tenth of them is for validation. */
struct data_options options_for(const char *path);

/* Opens the data set and closes it again; what is wrong with it ends the program. */
void open_and_close(void *options);

/* Opening fails with this exit code and one sentence that contains `part`. */
void expect_no_dataset(struct data_options options, int code, const char *part);

/* Opening succeeds, and gives so many tokens to train on and to validate with. */
void expect_splits(const struct data_options *options, size_t n_train, size_t n_val);

/* Writes n bytes, each of which is a letter of `alphabet`: first the alphabet in its order, then letters by chance. */
char *write_letters(const char *name, size_t n, const char *alphabet);

/* Writes tokens 0, 1, 2, ..., so that a token tells where it stood: nanoGPT's .bin, or a shard of llm.c. */
char *write_numbered(const char *name, size_t n, bool shard);

/* The first words of a shard's header, 12 bytes: magic number, version, number of tokens. */
enum { SHARD_MAGIC = 20240520, SHARD_HEADER = 1024 /* bytes */ };

#endif
