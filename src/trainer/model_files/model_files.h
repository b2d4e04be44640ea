/* model_files.h - models as files that other programs read and write: safetensors with Hugging Face's names, and
 * llm.c's.
 *
 *     writing             save_model()                                          save_model.c
 *     is there a model?   model_in_folder()                                     read_model.c
 *     reading             read_config(), then init_from_file()                  read_model.c
 *     only safetensors    read_weights_config(), then init_from_weights()       read_weights.c, statements.c
 *
 * A file that is wrong ends the program with a sentence that names it: EXIT_FAILED if it is damaged or contradicts
 * itself, EXIT_USAGE if it is right but not read here, EXIT_IO if it cannot be read.
 */
#ifndef MODEL_FILES_H
#define MODEL_FILES_H

#include "trainer/file/file.h"
#include "trainer/model/params.h"

struct model; /* model.h */

/* ---- save_model.c: a model as a file for other programs ---------------------------------------------------------- */

struct model_facts { /* what the file says of a model beside its sizes */
    uint32_t step;
    unsigned vector;       /* width of the devices' vectors; 0: the devices have different ones */
    const char *tokenizer; /* text that tokenizer_to_text() has made */
};

enum tensor_names {
    PLAIN_NAMES,   /* "wte.weight" */
    PREFIXED_NAMES /* "transformer.wte.weight"; but the head is "lm_head.weight" */
};

/* Begins a safetensors file with Hugging Face's names for the parameters in the table `params`.  The caller writes each
 * parameter whole, in the table's order, and then publishes the file. */
struct st_writer *begin_model_file(const char *path, const struct params *params, const struct model_facts *facts,
                                   enum tensor_names names);

void write_to_model_file(struct st_writer *writer, const struct param *param, float *values); /* frees the values */

/* Writes the whole model: reads a parameter at a time from the devices, with nothing in flight. */
void save_model(struct model *model, const char *path, uint32_t step, const char *tokenizer);

/* ---- read_model.c: a model's file, of any form that is known ----------------------------------------------------- */

/* Sizes of a file that --init or --from names: llm.c checkpoint or safetensors with GPT-2 names.  heads: the number
 * that --heads gives, for a file that does not say it; 0: not given. */
struct config read_config(const char *path, int heads);

/* Reads all values from such a file, whose sizes are the model's. */
void init_from_file(struct model *model, const char *path);

/* ---- read_weights.c: models of other programs -------------------------------------------------------------------- */

/* The sizes, and then the values, of a model in safetensors with GPT-2 names: one file, or several with an index.
 * read_config() and init_from_file() call these.  What the file and a config.json beside it say is taken;
 * what is not computed here, or contradicts the shapes, is refused by its name. */
struct config read_weights_config(const char *path, int heads);
void init_from_weights(struct model *model, const char *path);

char *read_weights_metadata(const char *path, const char *key); /* NULL: it has none; the caller frees the text */
void claim_weights(const char *claimant, const char *path);     /* claim_input() for all files of the model at `path` */

/* Fail with a sentence if the file is, or the folder has, a model in a form that is known but not read here, or under
 * another name. */
void refuse_if_foreign_file(const char *path);
void refuse_if_foreign_folder(const char *folder);

/* ---- read_model.c: is there a model? ----------------------------------------------------------------------------- */

#define MODEL_FILE "model.safetensors"
#define MODEL_INDEX "model.safetensors.index.json"
#define MODEL_CONFIG "config.json"

/* The path of MODEL_FILE or of MODEL_INDEX in a folder; NULL: it has neither.  The caller frees the path. */
char *model_in_folder(const char *folder);

#endif
