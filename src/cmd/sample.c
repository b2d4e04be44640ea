/* sample.c - yard sample */
#include "../train/train.h"
#include "cmd.h"

#include <stdlib.h>
#include <sys/stat.h>

/* A folder stands for what --save wrote into it. */
static char *model_path(const char *from)
{
    struct stat st;
    if (!from)
        fail(EXIT_USAGE, "yard sample needs --from DIR or FILE: what `yard train --save DIR` wrote");
    return stat(from, &st) == 0 && S_ISDIR(st.st_mode) ? format_string("%s/model.safetensors", from)
                                                       : copy_string(from);
}

int cmd_sample(int argc, char **argv)
{
    char **words;
    int n_words;
    struct settings *s = parse_settings(CMD_SAMPLE, argc, argv, &words, &n_words);
    if (n_words)
        fail(EXIT_USAGE, "'%s' is not an option; put the text behind --prompt", words[0]);
    char *path = model_path(s->from);
    struct config c = read_config(path);
    s->init = path;
    s->seq_len = c.seq_len;
    s->batch = 1;
    struct dataset *vocabulary = open_vocabulary(path, c.vocab);
    struct trainer *t = new_trainer_for(s, &c, vocabulary, LIST_SAMPLE, false);
    init_from_file(t->model, path);
    refuse_bad_parameters(t->model, path);
    sample_text(t, stdout, s->prompt,
                &(struct sampling){s->temperature, (int)s->top_k, (uint64_t)s->seed, (int)s->count});
    free_trainer(t);
    free(path);
    free(words);
    return EXIT_OK;
}
