/* presets.c - sizes by name, and sizes that the source of a model brings.
 *
 * Sizes that no option gives are those of the run that this one goes on from, or of --init; else those of --model.
 */
#include "own_options.h"

static const struct preset {
    const char *name;
    int layers, heads, channels, seq_len, batch, vocab;
} presets[PRESETS] = {
    {.name = "tiny", .layers = 2, .heads = 2, .channels = 32, .seq_len = 32, .batch = 4, .vocab = 256},
    {.name = "nano", .layers = 4, .heads = 4, .channels = 128, .seq_len = 64, .batch = 12, .vocab = 256},
    {.name = "char", .layers = 6, .heads = 6, .channels = 384, .seq_len = 256, .batch = 8, .vocab = 256},
    {.name = "gpt2", .layers = 12, .heads = 12, .channels = 768, .seq_len = 1024, .batch = 4, .vocab = 50257},
};
const char *preset_words[PRESETS + 1];
char preset_help[256];

void describe_presets(void)
{
    const struct preset *p = &presets[0];
    char *help = NULL;
    append_text(&help, "sizes by name: %s (%d layers, %d heads, %d channels, seq-len %d, batch %d)", p->name, p->layers,
                p->heads, p->channels, p->seq_len, p->batch);
    for (int i = 1; i < PRESETS; i++) {
        p = &presets[i];
        append_text(&help, ", %s (%d, %d, %d, %d, %d)", p->name, p->layers, p->heads, p->channels, p->seq_len,
                    p->batch);
    }
    for (int i = 0; i < PRESETS; i++)
        preset_words[i] = presets[i].name;
    snprintf(preset_help, sizeof preset_help, "%s", help);
    free(help);
}

static void fill_in(int *size, int by_preset)
{
    if (!*size)
        *size = by_preset;
}

void apply_preset(void)
{
    const struct preset *p = &presets[asked.preset];
    fill_in(&asked.layers, p->layers);
    fill_in(&asked.heads, p->heads);
    fill_in(&asked.channels, p->channels);
    fill_in(&asked.seq_len, p->seq_len);
    fill_in(&asked.batch, p->batch);
    fill_in(&asked.vocab, p->vocab);
}

/* Sets a size to that of the source's model, `theirs`.  The option `name`, or --model where a run goes on, may only
 * repeat it. */
static void adopt_size(const char *name, int *size, int theirs, int by_preset)
{
    int given = theirs;
    if (*size)
        given = *size;
    else if (asked.resumed && was_given("model"))
        given = by_preset;
    if (given != theirs)
        fail(EXIT_USAGE, "%s has %d %s, not %d: leave --model and --%s out", asked.source.path, theirs, name, given,
             name);
    *size = theirs;
}

void adopt_sizes(void)
{
    const struct config c = asked.source.config;
    const struct preset *p = &presets[asked.preset];
    adopt_size("layers", &asked.layers, c.layers, p->layers);
    adopt_size("heads", &asked.heads, c.heads, p->heads);
    adopt_size("channels", &asked.channels, c.channels, p->channels);
    if (asked.untied && c.tied)
        fail(EXIT_USAGE, "%s has a tied head: leave --untied out", asked.source.path);
    if (asked.seq_len > c.seq_len)
        fail(EXIT_USAGE, "--seq-len %d is longer than the %d positions of %s", asked.seq_len, c.seq_len,
             asked.source.path);
    asked.untied = !c.tied;
    if (!asked.seq_len)
        asked.seq_len = c.seq_len;
}
