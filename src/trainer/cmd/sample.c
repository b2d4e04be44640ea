/* sample.c - yard sample: a saved model writes some text. */
#include "cmd.h"
#include "trainer/train/train.h"

static const struct usage usage = {
    .name = "sample",
    .takes = "--from DIR|FILE [options]",
    .examples = "--from out --prompt \"Anna found\"\n"
                "--from model.safetensors --count 50 --temperature 0.7\n",
    .text = "Lets a saved model write.",
    .classes = OF_SAMPLE | OF_RUN,
    .files = "--from FILE",
};

enum exit_code run_sample(int argc, char **argv)
{
    struct settings *settings = parse_settings(&usage, argc, argv);
    if (!settings->sample.from)
        fail(EXIT_USAGE, "sample needs --from DIR or --from FILE, a model that `yard train --save DIR` wrote");
    settings->source = open_source(settings->sample.from, given_heads());
    struct config config = settings->source.config;
    expect_heads(&config, settings->source.path);
    settings->seq_len = config.seq_len;
    settings->batch = 1;
    struct trainer *trainer = new_trainer_for(settings, &config, open_vocabulary(settings, config.vocab), LIST_SAMPLE);
    init_from_source(trainer->model, &settings->source);
    if (settings->source.checkpoint) /* the values of a model's file were looked at while they were read */
        refuse_if_not_finite(trainer->model, settings->source.path);
    sample_text(trainer, settings->sample.prompt, settings->sample.count);
    free_trainer(trainer);
    close_source(&settings->source);
    return EXIT_OK;
}
