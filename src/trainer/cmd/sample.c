/* sample.c - yard sample: a saved model writes some text. */
#include "cmd.h"
#include "trainer/train/train.h"

static const struct page page = {
    .name = "sample",
    .takes = "--from DIR|FILE [options]",
    .examples = "--from out --prompt \"Anna found\"\n"
                "--from model.safetensors --count 50 --temperature 0.7\n",
    .text = "Lets a saved model write.",
    .classes = OF_SAMPLE | OF_RUN,
};

int run_sample(int argc, char **argv)
{
    struct settings *s = parse_settings(&page, argc, argv);
    if (!s->from)
        fail(EXIT_USAGE, "yard sample needs --from DIR or FILE: what `yard train --save DIR` wrote");
    s->source = open_source(s->from, given_heads());
    struct config c = s->source.config;
    expect_heads(&c, s->source.path);
    s->seq_len = c.seq_len;
    s->batch = 1;
    struct trainer *t = new_trainer_for(s, &c, open_vocabulary(s, c.vocab), LIST_SAMPLE, false);
    init_from_source(t->model, &s->source);
    refuse_bad_parameters(t->model, s->source.path);
    sample_text(t, s->prompt, s->count);
    free_trainer(t);
    close_source(&s->source);
    return EXIT_OK;
}
