/* source.h - the model with which training or sampling begins: source.c.
 *
 *     struct source s = open_source(path, heads);       a file of weights, or what a run has left; sizes are known now
 *     init_from_source(model, &s);                      the values
 *     close_source(&s);
 */
#ifndef SOURCE_H
#define SOURCE_H

#include "trainer/model/model.h"

struct settings;

struct source {
    char *path; /* NULL: there is no source */
    struct config config;
    struct checkpoint *checkpoint; /* a run, which only the folder that keeps runs can read; NULL: a file */
    const char *tokenizer;         /* the run's, as text */
};

/* path, as --init and --from take it: a file for init_from_file(), a folder with one in it, or what a run has left.
 * heads: see read_config(). */
struct source open_source(const char *path, int heads);
void close_source(struct source *source);

void init_from_source(struct model *model, const struct source *source); /* the values only */
char *saved_model(const struct settings *settings); /* the path in --save DIR for other programs; the caller frees it */

#endif
