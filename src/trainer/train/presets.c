/* presets.c - sizes by name, and sizes that the source of a model brings.
 *
 * A size that no option gives comes from the run that this one goes on from, or from --init; else from --model.
 */
#include "own_options.h"

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

void apply_preset(struct settings *s)
{
    const struct preset *p = &presets[s->preset];
    fill_in(&s->layers, p->layers);
    fill_in(&s->heads, p->heads);
    fill_in(&s->channels, p->channels);
    fill_in(&s->seq_len, p->seq_len);
    fill_in(&s->batch, p->batch);
    fill_in(&s->vocab, p->vocab);
}

/* Sets a size to that of the source's model, `theirs`.  The option `name`, or --model where its size counts as given,
 * may only repeat it. */
static void adopt_size(const struct settings *s, const char *name, int *size, int theirs, const int *by_preset)
{
    int given = theirs;
    if (*size)
        given = *size;
    else if (by_preset)
        given = *by_preset;
    if (given != theirs)
        fail(EXIT_USAGE, "%s has %d %s, not %d: leave --model and --%s out", s->source.path, theirs, name, given, name);
    *size = theirs;
}

void adopt_sizes(struct settings *s, bool preset_counts)
{
    const struct config config = s->source.config;
    const struct preset *p = &presets[s->preset];
    adopt_size(s, "layers", &s->layers, config.layers, preset_counts ? &p->layers : NULL);
    adopt_size(s, "heads", &s->heads, config.heads, preset_counts ? &p->heads : NULL);
    adopt_size(s, "channels", &s->channels, config.channels, preset_counts ? &p->channels : NULL);
    if (s->untied && config.tied)
        fail(EXIT_USAGE, "%s has a tied head: leave --untied out", s->source.path);
    if (s->seq_len > config.seq_len)
        fail(EXIT_USAGE, "--seq-len %d is longer than the %d positions of %s", s->seq_len, config.seq_len,
             s->source.path);
    s->untied = !config.tied;
    if (!s->seq_len)
        s->seq_len = config.seq_len;
}
