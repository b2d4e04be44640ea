/* model_forms.h - the model alone, whole, for programs that know nothing of checkpoints.  model_forms.c has the forms.
 * What the system refuses ends the program (EXIT_IO); damage ends it as read_kept() does. */
#ifndef MODEL_FORMS_H
#define MODEL_FORMS_H

#include "techniques/checkpoint/checkpoint.h"
#include "trainer/model_files/model_files.h"

/* Writes all parameters as safetensors with Hugging Face's GPT-2 names.  transformers 4 reads a head only beside
 * prefixed names. */
void export_safetensors(struct checkpoint *checkpoint, const char *path, enum tensor_names names);

/* Writes a folder with the model in Hugging Face's GPT-2 form.  tokenizer: what tokenizer_to_json() returned; NULL: no
 * tokenizer is written.  end: what end_of_text() returned. */
void export_huggingface(struct checkpoint *checkpoint, const char *path, const json_t *tokenizer, int end);

/* Writes one file with the model in llm.c's form. */
void export_llmc(struct checkpoint *checkpoint, const char *path);

#endif
