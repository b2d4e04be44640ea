/* checkpoint.c - a checkpoint as an object in memory: made like another one, asked about, and freed.
 *
 *     techniques/reshard <- checkpoint.c <- manifest_write.c <- manifest_read.c <- find.c
 *                                                            <- rank_files.c <- transfer.c <- save_and_load.c
 *
 * Each of these files calls only those on its left.  So what writing a manifest and reading one both ask of a
 * checkpoint is here.
 */
#include "files.h"
#include "trainer/base/module.h"

struct checkpoint *new_checkpoint_like(const struct checkpoint *checkpoint, const char *path)
{
    struct checkpoint *like = copy_bytes(checkpoint, sizeof *checkpoint);
    like->path = copy_string(path);
    like->tokenizer = copy_string(checkpoint->tokenizer);
    like->options = json_copy(checkpoint->options);
    like->cut = NULL;
    like->bytes = NULL;
    like->single_file = NULL;
    like->buffer = (struct read_buffer){0};
    like->times = (struct load_times){0};
    return like;
}

static void free_single_file(struct single_file *single_file)
{
    for (size_t i = 0; i < single_file->n_damage; i++)
        free(single_file->damage[i]);
    free(single_file->damage);
    free(single_file);
}

void free_checkpoint(struct checkpoint *checkpoint)
{
    if (checkpoint->cut)
        free_cut_tensors(checkpoint->cut);
    if (checkpoint->single_file)
        free_single_file(checkpoint->single_file);
    free(checkpoint->buffer.bytes);
    json_decref(checkpoint->options);
    free(checkpoint->path);
    free(checkpoint->tokenizer);
    free(checkpoint->bytes);
    free(checkpoint);
}

void refuse_damaged(enum exit_code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *sentence = format_arguments(format, arguments);
    va_end(arguments);
    fail(code, "%s; " ADVICE_IF_DAMAGED, sentence);
}

char *rank_file(const struct checkpoint *checkpoint, int rank)
{
    if (checkpoint->single_file)
        return copy_string(checkpoint->path);
    return format_string("%s/" RANK_FILE, checkpoint->path, rank);
}

const char *recorded_option(const struct checkpoint *checkpoint, const char *name)
{
    const char *text = json_string_value(json_object_get(checkpoint->options, name));
    return text ? text : "";
}

struct mesh read_strategy(const struct checkpoint *checkpoint)
{
    struct mesh mesh = checkpoint->cut->mesh;
    const char *text = recorded_option(checkpoint, "mesh");
    struct problem *problem = NULL;
    if (*text)
        problem = parse_mesh(text, 1, &mesh);
    if (problem)
        refuse_damaged(EXIT_FAILED, "%s is damaged, or is not a manifest that yard wrote: options: %s",
                       checkpoint->path, problem->sentence);
    mesh.zero = checkpoint->cut->mesh.zero;
    return mesh;
}

const struct checkpoint_form *find_checkpoint_form(const char *path)
{
    for (size_t i = 0; i < n_modules; i++) {
        const struct checkpoint_form *form = modules[i]->checkpoint_form;
        if (form && form->is_ours(path))
            return form;
    }
    return NULL;
}
