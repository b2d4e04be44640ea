/* ckpt_export.c - yard ckpt export: the model in the form of another program; model_forms.c has the forms. */
#include "ckpt.h"
#include "model_forms.h"
#include "planning/console/arguments.h"
#include "planning/console/table.h"
#include "trainer/train/train.h"

#include <sys/stat.h>

/* Writes one file, which may replace another one of llm.c's, but no other kind of file. */
static void export_file(struct checkpoint *checkpoint, const char *path)
{
    struct stat status;
    expect_place("ckpt export", path);
    expect_unlocked("ckpt export", path);
    if (stat(path, &status) == 0 && status.st_size && !has_magic(path, LLMC_MODEL_MAGIC))
        fail(EXIT_USAGE, "%s is a file of another kind: choose another name", path);
    export_llmc(checkpoint, path);
}

static void say_why_no_tokenizer(const struct tokenizer *tokenizer)
{
    if (tokenizer->kind != &token_ids && tokenizer->takes_ids)
        inform("the folder gets no tokenizer.json: the tokenizer of this model only decodes, and Hugging Face has no "
               "such tokenizer");
    else if (tokenizer->kind != &token_ids)
        inform("the folder gets no tokenizer.json: %s cannot be written as one%s%s", tokenizer->kind->noun,
               *left_out ? ", since this yard was built without" : "", left_out);
    else
        inform("the folder gets no tokenizer: what the token numbers of this model stand for is not known here");
}

static void export_folder(struct checkpoint *checkpoint, const char *path)
{
    struct tokenizer tokenizer = tokenizer_from_text(checkpoint->tokenizer, checkpoint->path);
    json_t *json = tokenizer_to_json(&tokenizer);
    expect_free("ckpt export", path);
    export_huggingface(checkpoint, path, json, end_of_text(&tokenizer));
    if (!json)
        say_why_no_tokenizer(&tokenizer);
    json_decref(json);
    free_tokenizer(&tokenizer);
}

enum exit_code export_checkpoint(char **paths)
{
    bool llmc = ends_with(paths[1], ".bin");
    struct checkpoint *checkpoint = open_checkpoint(paths[0]);
    claim_output("ckpt export", paths[1], NULL);
    if (llmc)
        export_file(checkpoint, paths[1]);
    else
        export_folder(checkpoint, paths[1]);
    if (asked_ckpt.json)
        print_json(json_pack("{s:o, s:s, s:i}", "file", text_json(paths[1]), "format", llmc ? "llmc" : "hf", "step",
                             (int)checkpoint->step));
    else
        print_line(stdout, "%s: step %u in %s form", paths[1], checkpoint->step, llmc ? "llm.c's" : "Hugging Face's");
    free_checkpoint(checkpoint);
    return EXIT_OK;
}
