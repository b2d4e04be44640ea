/* presets.c - sizes by name, and sizes that the source of a model brings.
 *
 * A size that no option gives comes from the resumed run, or from --init; else from --model.
 */
#include "settings_parts.h"

static const struct preset {
    const char *name;            /* its word in --model */
    int layers, heads, channels; /* L, H, C */
    int seq_len, batch;          /* T, B, where no option gives them */
    int vocab;                   /* where neither the data nor an option gives it */
} presets[PRESETS] = {
    {.name = "tiny", .layers = 2, .heads = 2, .channels = 32, .seq_len = 32, .batch = 4, .vocab = 256},
    {.name = "nano", .layers = 4, .heads = 4, .channels = 128, .seq_len = 64, .batch = 12, .vocab = 256},
    {.name = "char", .layers = 6, .heads = 6, .channels = 384, .seq_len = 256, .batch = 8, .vocab = 256},
    {.name = "gpt2", .layers = 12, .heads = 12, .channels = 768, .seq_len = 1024, .batch = 4, .vocab = 50257},
};
const char *preset_words[PRESETS + 1];
char preset_help[512];

void fill_preset_texts(void)
{
    char *help = NULL;
    const char *before = "sizes by name: ";
    for (int i = 0; i < PRESETS; i++) {
        const struct preset *preset = &presets[i];
        append_text(&help, "%s%s has %d layers, %d heads, %d channels, seq-len %d, batch %d", before, preset->name,
                    preset->layers, preset->heads, preset->channels, preset->seq_len, preset->batch);
        before = "; ";
        preset_words[i] = preset->name;
    }
    snprintf(preset_help, sizeof preset_help, "%s", help);
    free(help);
}

static void fill_in(int *size, int by_preset)
{
    if (!*size)
        *size = by_preset;
}

void apply_preset(struct settings *settings)
{
    const struct preset *preset = &presets[settings->preset];
    fill_in(&settings->layers, preset->layers);
    fill_in(&settings->heads, preset->heads);
    fill_in(&settings->channels, preset->channels);
    fill_in(&settings->seq_len, preset->seq_len);
    fill_in(&settings->batch, preset->batch);
    fill_in(&settings->vocab, preset->vocab);
}

/* Sets a size to that of the source's model, `theirs`.  The option `name`, or --model where its size counts as given,
 * may only repeat it.  by_preset: the size of --model; NULL: it does not count as given. */
static void adopt_size(const struct settings *settings, const char *name, int *size, int theirs, const int *by_preset)
{
    if (*size && *size != theirs)
        fail(EXIT_USAGE, "%s has %d %s, not %d: leave --%s out", settings->source.path, theirs, name, *size, name);
    if (!*size && by_preset && *by_preset != theirs)
        fail(EXIT_USAGE, "%s has %d %s, and --model %s has %d: leave --model out", settings->source.path, theirs, name,
             word_of("model", settings->preset), *by_preset);
    *size = theirs;
}

void adopt_sizes(struct settings *settings, bool preset_counts)
{
    const struct config config = settings->source.config;
    const struct preset *preset = &presets[settings->preset];
    adopt_size(settings, "layers", &settings->layers, config.layers, preset_counts ? &preset->layers : NULL);
    adopt_size(settings, "heads", &settings->heads, config.heads, preset_counts ? &preset->heads : NULL);
    adopt_size(settings, "channels", &settings->channels, config.channels, preset_counts ? &preset->channels : NULL);
    if (settings->untied && config.tied)
        fail(EXIT_USAGE, "%s has a tied head: leave --untied out", settings->source.path);
    if (settings->seq_len > config.seq_len)
        fail(EXIT_USAGE, "--seq-len %d is longer than the %d positions of %s: give at most that, or leave it out",
             settings->seq_len, config.seq_len, settings->source.path);
    settings->untied = !config.tied;
    if (!settings->seq_len)
        settings->seq_len = config.seq_len;
}
